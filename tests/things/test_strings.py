"""Kernels of strings beyond the laws: alphabets that are left to the data, gradients, shifts, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    SVC,
    EditDistance,
    GaussianProcessRegressor,
    Mismatch,
    Spectrum,
    Subsequence,
    WeightedDegree,
    White,
    parse,
)
from mercer.errors import InputTypeError, InvalidKernelWarning, OpenParameterError, ParameterError
from mercer.gram import Dense
from mercer.kernels.things import gaps, sequences
from mercer.kernels.things.positions import shift_factor

r = np.random.default_rng(5)
GENES = ["".join(r.choice(list("ACGT"), size=int(n))) for n in r.integers(4, 14, size=12)]


def test_without_mismatches_it_is_the_spectrum():
    k = Mismatch(3, 0).resolved(GENES)
    np.testing.assert_array_equal(k(GENES), Spectrum(3)(GENES))


def test_an_open_alphabet_is_that_of_the_sample():
    k = Mismatch(3, 1)
    assert k.is_open and k.validity().status == "proved" and parse(str(k)) == k
    closed = k.resolved(["TACC", "CAAA"])
    assert closed == Mismatch(3, 1, alphabet="ACT")
    assert closed == k.resolved(["TACC", "CAAA", "GGG"], sample_weight=[1.0, 2.0, 0.0])
    with pytest.raises(OpenParameterError, match="alphabet"):
        k(GENES)
    model = SVC(k, C=1.0).fit(GENES, np.arange(12) % 2)
    assert model.kernel_ == Mismatch(3, 1, alphabet="ACGT")
    assert model.predict(["NNACGT", ""]).shape == (2,)


def test_an_alphabet_of_words_is_written_and_read():
    k = Mismatch(2, 1).resolved([["to", "be"], ["or", "not"]])
    assert k == Mismatch(2, 1, alphabet=["not", "or", "to", "be"]) == parse(str(k))


@pytest.mark.parametrize("bad", [7, "", []])
def test_an_alphabet_is_made_of_symbols(bad):
    with pytest.raises(ParameterError, match="alphabet"):
        Mismatch(3, 1, alphabet=bad)


def test_more_mismatches_than_letters_are_refused():
    with pytest.raises(ParameterError, match="less than length"):
        Mismatch(2, 2)


@pytest.mark.parametrize(
    "k", [Subsequence(3, 0.6), EditDistance(2.0), 2.0 * Subsequence(2, 0.4).normalized()]
)
def test_the_gradient_is_that_of_differences(k):
    W = r.normal(size=(12, 12))
    found = Dense(k, GENES).contract(W=W)
    for i, t in enumerate(k.theta):
        up, down = (k.with_theta(k.theta + h * np.eye(len(k.theta))[i])(GENES) for h in (1e-5, -1e-5))
        assert found[i] == pytest.approx((W * (up - down)).sum() / 2e-5, rel=1e-6, abs=1e-8), t


def test_a_process_tunes_the_decay():
    y = np.array([s.count("A") for s in GENES], dtype=float)
    start = 1.0 * Subsequence(2, 0.3).normalized() + White(0.1)
    model = GaussianProcessRegressor(start).fit(GENES, y)
    decays = [k.get_params()["k1__kernel__kernel__decay"] for k in (start, model.kernel_)]
    assert decays[0] != decays[1] > 0
    assert model.certificate_.status == "converged"


def test_tables_in_parts_are_tables_in_one(monkeypatch):
    whole = Subsequence(3, 0.6)(GENES)
    for module in (gaps, sequences):
        monkeypatch.setattr(module, "TABLE", 40)
    np.testing.assert_allclose(Subsequence(3, 0.6)(GENES), whole, rtol=1e-14)
    np.testing.assert_array_equal(EditDistance(1.0)(GENES)[0, 0], 1.0)


@pytest.mark.parametrize("shift", [1, 2, 5, 30, 100])
def test_the_weights_of_shifts_are_a_square(shift):
    p = np.array(shift_factor(shift))
    for s in range(shift + 1):
        wanted = 1.0 if s == 0 else 0.5 / (s + 1)
        assert p[: shift + 1 - s] @ p[s:] == pytest.approx(wanted, abs=1e-14)
    angles = np.linspace(0, np.pi, 2001)
    symbol = 1 + sum(np.cos(s * angles) / (s + 1) for s in range(1, shift + 1))
    assert symbol.min() >= 0.5


def test_a_shift_forgives_what_no_shift_does():
    moved = ["ACGTAC", "AACGTA"]
    assert WeightedDegree(3, shift=1).normalized()(moved)[0, 1] > WeightedDegree(3).normalized()(moved)[0, 1]


def test_the_edit_distance_is_refuted_by_strings_and_announced_by_machines():
    words = ["aa", "bb", "aab", "aba", "abb", "baa", "bab", "bba"]
    answer = EditDistance(2.0).validity(samples=words)
    assert answer.status == "refuted"
    K = EditDistance(2.0)(list(answer.X))
    assert answer.q @ K @ answer.q < 0
    # without samples, rows of numbers are the strings
    assert EditDistance(2.0).validity().status == "refuted"
    with pytest.warns(InvalidKernelWarning, match="not positive semi-definite"):
        SVC(EditDistance(2.0), C=10.0).fit(words, np.arange(8) % 2)


@pytest.mark.parametrize(
    "k", [Subsequence(), EditDistance(), WeightedDegree(), Mismatch(alphabet="ab")], ids=str
)
def test_a_number_among_strings_is_named_by_its_row(k):
    with pytest.raises(InputTypeError, match="row 1 of X is a int"):
        k(["ab", 3, "b"])
