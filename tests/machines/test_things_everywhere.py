"""Graphs, texts, sets, series and tables in every machine: what k says of two things is all that counts."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tests.estimators_under_test import LABELS, NUMBERS, SUBJECTS, X, outputs
from tests.machines.test_kernel_on_rows import NO_THINGS, WORDS, quietly, with_kernel

from mercer import (
    RBF,
    SVC,
    Categorical,
    Graph,
    Jaccard,
    KernelRidge,
    Linear,
    Nystroem,
    RandomFeatures,
    Signature,
    Text,
    WeisfeilerLehman,
    choose,
    theory,
    verify,
)
from mercer.errors import MercerError

NEW = 5
N = len(X) + NEW
ROWS = np.vstack([X, X[:NEW] + 0.25])


def _graph(row: np.ndarray, i: int) -> Graph:
    nodes = 3 + i % 4
    rng = np.random.default_rng(i)
    edges = np.argwhere(np.triu(rng.random((nodes, nodes)) < 0.5 + 0.1 * np.sign(row[0]), 1))
    return Graph(nodes, edges, ["C" if value < 0.6 else "N" for value in rng.random(nodes)])


def _table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": ROWS[:, 0],
            "colour": [("red", "blue", None)[i % 3] for i in range(N)],
            "said": [f"{WORDS[i % 12]} {WORDS[(5 * i) % 11]}" for i in range(N)],
        }
    )


KINDS = {
    "graphs": (WeisfeilerLehman(1).normalized(), [_graph(row, i) for i, row in enumerate(ROWS)]),
    "texts": (Text("characters", 2, 3), [f"{WORDS[i % 12]} {WORDS[(7 * i) % 12]}" for i in range(N)]),
    "sets": (Jaccard(), [set(WORDS[i % 12]) | {i % 5} for i in range(N)]),
    "series": (
        Signature(2).fix("scale").normalized(),
        [row[: 2 + i % 2].cumsum() for i, row in enumerate(ROWS)],
    ),
    "tables": (
        0.5 * RBF(1.0).on("size") + 0.25 * Categorical(1.0).on("colour") + 0.25 * Text().on("said"),
        _table(),
    ),
}
WITH_THINGS = [s for s in SUBJECTS if s.name not in NO_THINGS]
ANSWERS_DIFFER = {
    "GaussianProcessRegressor, tuned": "the numbers of a kernel are tuned, and those of vectors are others",
    "KernelKMeans": "equal things are ties, which rounding decides",
    "NuSVC": "where labels have nothing to do with things the best margin is 0, and f has no scale",
    "NadarayaWatson": "products of vectors that are 0 round below it, which a window refuses",
    "Nystroem": "equal things are ties among landmarks, which rounding decides",
}


def split(things):
    return things[: len(X)], things[len(X) :]


def as_vectors(kernel, things):
    """Vectors with the same products: F with F Fᵀ = K."""
    values, vectors = np.linalg.eigh(kernel(things))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def told_apart(answers):
    """Rows with a label of their own: where f is 0 it is a tie between two, which rounding decides."""
    f = np.asarray(answers.get("decision_function", 1.0))
    return np.abs(f) > 1e-6 if f.ndim == 1 else slice(None)


@pytest.mark.parametrize("s", WITH_THINGS, ids=lambda s: s.name)
@pytest.mark.parametrize("kind", KINDS)
def test_every_machine_answers_by_kernel_values_alone(kind, s):
    kernel, things = KINDS[kind]
    old, new = split(things)
    model = quietly(with_kernel(s, kernel).fit, old, s.y)
    ours = quietly(outputs, model, new)
    if s.name in ANSWERS_DIFFER:
        assert all(np.all(np.isfinite(values)) for values in ours.values())
        return
    F = as_vectors(kernel, things)
    referee = quietly(with_kernel(s, Linear()).fit, F[: len(X)], s.y)
    theirs = quietly(outputs, referee, F[len(X) :])
    assert ours.keys() == theirs.keys()
    told = told_apart(theirs)
    for name in ours:
        pair = [values[name][told] if name == "predict" else values[name] for values in (ours, theirs)]
        np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_fits_are_verified_cloned_pickled_and_searched(kind):
    kernel, things = KINDS[kind]
    old, new = split(things)
    for machine, y in ((SVC(kernel), LABELS), (KernelRidge(kernel, 0.3), NUMBERS)):
        model = clone(machine).fit(old, y)
        assert verify(model, old, y).ok
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
    search = GridSearchCV(SVC(kernel), {"C": [0.1, 1.0]}, cv=3).fit(old, LABELS)
    assert search.best_estimator_.predict(new).shape == (NEW,)


@pytest.mark.parametrize("kind", KINDS)
def test_choose_tests_and_landmarks_take_them(kind):
    kernel, things = KINDS[kind]
    old, new = split(things)
    found = quietly(lambda: choose(KernelRidge(2.0 * kernel, 0.3), old, NUMBERS))
    assert np.all(np.isfinite(KernelRidge(found.kernel, 0.3).fit(old, NUMBERS).predict(new)))
    assert 0 < theory.mmd_test(old, new, kernel, random_state=0).p_value <= 1
    assert 0 < theory.hsic_test(old, NUMBERS, kernel, "RBF()", random_state=0).p_value <= 1
    features = Nystroem(kernel, len(X), random_state=0).fit_transform(old)
    np.testing.assert_allclose(features @ features.T, kernel(old), atol=1e-6)
    with pytest.raises(MercerError, match=r"functions of columns of numbers, and .* reads things"):
        RandomFeatures(kernel).fit(old)
