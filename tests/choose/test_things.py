"""Choosing on things that are no vectors: strings, objects and tables give what the same numbers give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import RBF, SVC, Custom, GaussianProcessRegressor, KernelRidge, Linear
from mercer.choose.sample import Sample
from mercer.errors import InputError

ALPHABET = "abcdefgh"
RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list(ALPHABET[:5] if i % 2 else ALPHABET[3:]), 6)) for i in range(30)]
LABELS = np.array(["even", "odd"])[np.arange(30) % 2]
NUMBERS = np.array([w.count("a") - 0.3 * w.count("h") for w in WORDS]) + RNG.normal(0, 0.2, 30)


def counts(words):
    """How often each letter occurs: the map of the kernel below, so that strings and vectors must agree."""
    return np.array([[word.count(letter) for letter in ALPHABET] for word in words], dtype=float)


def letters_in_common(a, b):
    return float(sum(a.count(letter) * b.count(letter) for letter in ALPHABET))


TEXT = 0.5 * Custom(letters_in_common)
VECTORS = 0.5 * Linear()
TASKS = {
    "cv": (SVC, LABELS, {"n_trials": 6, "cv": 3}),
    "alignment": (SVC, LABELS, {"n_trials": 2}),
    "loo": (KernelRidge, NUMBERS, {"n_trials": 2}),
    "evidence": (GaussianProcessRegressor, NUMBERS, {"n_trials": 2}),
}


@pytest.mark.parametrize("by", TASKS)
def test_strings_are_chosen_for_as_their_vectors_of_counts_are(by):
    build, y, options = TASKS[by]
    text = mercer.choose(build(TEXT), WORDS, y, by=by, **options)
    numbers = mercer.choose(build(VECTORS), counts(WORDS), y, by=by, **options)
    assert text.score == pytest.approx(numbers.score, rel=1e-6)
    assert len(text.trials) == len(numbers.trials)
    assert {*text.parameters} == {*numbers.parameters}
    found = text.machine.predict(WORDS[:5])
    wanted = numbers.machine.predict(counts(WORDS[:5]))
    if by in ("cv", "alignment"):
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_leave_one_out_of_strings_is_as_many_refits_as_strings():
    found = mercer.choose(KernelRidge(TEXT.fix("scale")), WORDS, NUMBERS, n_trials=1)
    alpha = found.parameters["alpha"]
    missed = []
    for i in range(len(WORDS)):
        rest = [j for j in range(len(WORDS)) if j != i]
        refit = KernelRidge(TEXT, alpha).fit([WORDS[j] for j in rest], NUMBERS[rest])
        missed.append(NUMBERS[i] - refit.predict([WORDS[i]])[0])
    assert found.score == pytest.approx(-np.mean(np.square(missed)), rel=1e-6)


@pytest.mark.parametrize("form", [list, tuple, lambda words: np.array(words, dtype=object), np.array])
def test_the_form_of_the_strings_does_not_matter(form):
    wanted = mercer.choose(KernelRidge(TEXT), WORDS, NUMBERS, n_trials=1)
    assert mercer.choose(KernelRidge(TEXT), form(WORDS), NUMBERS, n_trials=1).score == wanted.score


def test_things_with_a_length_are_not_taken_apart():
    """Lists of numbers of one length each are a matrix for kernels of numbers, and things for a function."""
    pairs = [(len(w), w.count("a")) for w in WORDS]
    sets = [frozenset(w) for w in WORDS]
    shared = Custom(lambda a, b: float(len(set(a) & set(b))))
    for things in (pairs, sets):
        assert np.isfinite(mercer.choose(KernelRidge(shared), things, NUMBERS, n_trials=1).score)


def test_fewer_rows_are_drawn_of_strings_too():
    found = mercer.choose(SVC(TEXT), WORDS, LABELS, n_trials=2, cv=3, max_rows=20)
    assert "Tuned on 20 of 30 rows" in found.why
    assert found.machine.predict(WORDS).shape == (30,)
    sample = Sample.of(WORDS, LABELS, 20, 0, things=True)
    assert len(sample) == 20 and sample.numbers is None
    assert {*sample.X} <= {*WORDS}


@pytest.mark.parametrize("build, y", [(KernelRidge, NUMBERS), (SVC, LABELS)])
def test_a_table_of_several_types_is_chosen_for_by_the_names_of_its_columns(build, y):
    number = RNG.normal(size=30)
    table = pd.DataFrame({"size": number, "word": WORDS, "note": ["text"] * 30})
    kernel = RBF().on("size") * Custom(letters_in_common).on("word")
    found = mercer.choose(build(kernel), table, y, n_trials=2)
    assert found.machine.predict(table.iloc[:4]).shape == (4,)
    assert not found.kernel.is_open
    alone = table[["size", "word"]]
    assert mercer.choose(build(kernel), alone, y, n_trials=2).score == found.score


def test_several_kernels_of_strings_are_compared():
    other = Custom(lambda a, b: float(a[0] == b[0]))
    found = mercer.choose(SVC(TEXT), WORDS, LABELS, kernels=[TEXT, other], n_trials=2, cv=3)
    assert {str(t.kernel).split("*")[-1] for t in found.trials} == {str(TEXT).split("*")[-1], str(other)}


def test_text_for_a_kernel_of_numbers_is_refused():
    with pytest.raises(InputError):
        mercer.choose(KernelRidge("RBF()"), WORDS, NUMBERS)
    with pytest.raises(InputError):
        mercer.choose(KernelRidge(TEXT), WORDS, NUMBERS, kernels=[TEXT, "RBF()"])
