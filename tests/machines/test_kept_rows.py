"""The rows that a machine keeps are read once for each fit, and what is predicted does not depend on it."""

from __future__ import annotations

import pickle
import threading
from copy import copy, deepcopy

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.arrays import MOST_REMEMBERED, Rows
from mercer.kernels.things.text import Text
from mercer.machines.shared.kept import READ

pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = ("oak", "ash", "elm", "fir", "old oak", "an ash tree")
MIXED = (
    'RBF(1.0).on("size") + Categorical(1.0).on("kind") + RBF(1.0).of(Text(weighting="idf")).on("said")'
    ' + Text("characters", 2, 3).on("said") + White(0.1)'
)
NUMBERS = "2.0*RBF(1.5) + Linear() + White(0.1)"
MACHINES = {
    "ridge": lambda kernel: mercer.KernelRidge(kernel, alpha=0.3),
    "process": lambda kernel: mercer.GaussianProcessRegressor(kernel, optimizer=None),
    "margin": lambda kernel: mercer.SVR(kernel),
    "landmarks": lambda kernel: mercer.FalkonRegressor(kernel, n_landmarks=12, alpha=0.1, random_state=0),
    "features": lambda kernel: mercer.KernelRidge(
        kernel, alpha=0.3, approximation=mercer.Nystroem(n_components=12, random_state=0)
    ),
}


def numbers(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 2))


def table(n, seed):
    rng = np.random.default_rng(seed)
    said = rng.choice(WORDS, n).tolist()
    return pd.DataFrame({"size": rng.normal(size=n), "kind": rng.choice(WORDS[:3], n), "said": said})


ROWS = {MIXED: table, NUMBERS: numbers}
SUBJECTS = [(name, kernel) for name in MACHINES for kernel in ROWS]


def fitted(name, kernel):
    rows = ROWS[kernel](30, 0)
    y = np.sin(np.arange(30.0))
    return MACHINES[name](kernel).fit(rows, y)


@pytest.mark.parametrize(("name", "kernel"), SUBJECTS)
def test_a_machine_that_was_asked_before_answers_as_one_that_was_not(name, kernel):
    model = fitted(name, kernel)
    new = ROWS[kernel](5, 1)
    first = model.predict(new)
    assert np.array_equal(model.predict(new), first)
    assert np.array_equal(deepcopy(model).predict(new), first)
    one = new[:1]
    assert np.allclose(model.predict(one), first[:1], rtol=1e-12, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(one), model.predict(one))


def test_bands_are_those_of_a_process_that_was_not_asked_before():
    model = fitted("process", MIXED)
    new = table(5, 1)
    first = model.predict(new, return_std=True, noise=True)
    again = deepcopy(model).predict(new, return_std=True, noise=True)
    assert np.array_equal(first, again)
    assert np.array_equal(first[0], model.predict(new))


def test_words_of_kept_rows_are_counted_once(monkeypatch):
    model = fitted("process", MIXED)
    model.predict(table(3, 1), return_std=True)
    counted = []
    count = Text._tokens

    def counting(self, things, name, known):
        counted.append(len(things))
        return count(self, things, name, known)

    monkeypatch.setattr(Text, "_tokens", counting)
    model.predict(table(1, 2), return_std=True)
    assert counted
    assert max(counted) == 1


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_a_fit_to_the_same_array_with_other_numbers_is_not_answered_from_the_last(name):
    X = numbers(30, 0)
    y = np.sin(np.arange(30.0))
    model = MACHINES[name](NUMBERS).fit(X, y)
    model.predict(X[:3])
    X[:] = numbers(30, 7)
    new = numbers(4, 1)
    expected = MACHINES[name](NUMBERS).fit(X.copy(), y).predict(new)
    assert np.array_equal(model.fit(X, y).predict(new), expected)


def test_copies_and_pickles_carry_no_readings():
    model = fitted("process", MIXED)
    before = len(pickle.dumps(model))
    model.predict(table(3, 1))
    assert vars(model)[READ].known(model.X_fit_) is not None
    assert len(pickle.dumps(model)) == before
    assert vars(deepcopy(model))[READ].known(model.X_fit_) is None
    assert np.array_equal(copy(model).predict(table(3, 1)), model.predict(table(3, 1)))


def test_rows_that_are_not_kept_are_not_remembered():
    model = fitted("ridge", NUMBERS)
    others = numbers(5, 3)
    assert model.kept(others).data is others
    assert vars(model)[READ].known(others) is None


def test_threads_that_ask_at_once_get_the_answers_of_one():
    model = fitted("process", MIXED)
    new = table(24, 1)
    expected = deepcopy(model).predict(new, return_std=True)
    found = {}
    together = threading.Barrier(8)

    def ask(k):
        together.wait()
        part = new.iloc[3 * k : 3 * k + 3]
        found[k] = model.predict(part, return_std=True)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for j in (0, 1):
        assert np.allclose(np.concatenate([found[k][j] for k in range(8)]), expected[j], rtol=1e-12)


def test_what_rows_remember_is_bounded():
    rows = Rows(np.zeros((2, 1)))
    for k in range(3 * MOST_REMEMBERED):
        assert rows.remembered(k, lambda k=k: k) == k
        assert len(rows._remembered) <= MOST_REMEMBERED
    assert rows.recalled(3 * MOST_REMEMBERED - 1) == 3 * MOST_REMEMBERED - 1


def test_nothing_is_remembered_as_nothing():
    rows = Rows(np.zeros((2, 1)))
    made = []
    for _ in range(3):
        assert rows.remembered("map", lambda: made.append(1)) is None
    assert made == [1]
