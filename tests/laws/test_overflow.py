"""A kernel that overflows on the rows is refused by one sentence, whatever is asked of its Gram operator."""

from __future__ import annotations

import numpy as np
import pytest

from kernels_under_test import every_kernel, squares
from mercer import RBF, Custom, ExpDot, Linear, Polynomial
from mercer.errors import MagnitudeError, NotFiniteError
from mercer.gram import Dense, Tiles
from mercer.gram.operators import SumOf
from mercer.gram.weighted import Weighted

SCALES = (1.0, 30.0, 1e3, 1e8, 1e40, 1e100)


def refusal(kernel, X, Z=None):
    """The sentence by which k(X, Z) is refused, or None."""
    try:
        kernel(X) if Z is None else kernel(X, Z)
    except (MagnitudeError, NotFiniteError) as error:
        return str(error)
    return None


def contractions(K):
    """Every way to ask for Σ W ∂K, with weights that have zeros among them."""
    rng = np.random.default_rng(0)
    n, m = K.shape
    U, V = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    W = rng.normal(size=(n, m))
    W[0, :] = 0.0
    yield lambda: K.contract(U, V)
    yield lambda: K.contract(U[:, 0], V[:, 0])
    yield lambda: K.contract(W=W)


def is_said(ask, sentence):
    """The contraction is finite, or the same sentence is said; whether it was said."""
    found = said = None
    try:
        found = ask()
    except (MagnitudeError, NotFiniteError) as error:
        said = str(error)
    if said is None:
        assert np.isfinite(found).all(), found
        return False
    assert said == sentence
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", every_kernel(), ids=repr)
def test_a_contraction_is_finite_or_says_what_the_kernel_says(case):
    base = np.random.default_rng(1).normal(size=(6, case.columns or 3))
    for scale in SCALES:
        X = scale * base
        if case.histogram:
            X = np.abs(X)
        Z = X[:4] * 0.5
        for sample in (None, Z):
            sentence = refusal(case.kernel, X, sample)
            if sentence is None:
                continue
            for kind in (Dense, Tiles):
                K = said = None
                try:
                    K = kind(case.kernel, X, sample)
                except MagnitudeError as error:
                    said = str(error)
                if K is None:
                    # What a map makes of the rows is already too large.
                    assert said == sentence
                    continue
                for ask in contractions(K):
                    is_said(ask, sentence)


LARGE = [
    ExpDot(1.0),
    ExpDot(1.0).of(squares),
    2.0 * ExpDot(0.5) + RBF(1.0),
    Polynomial(150, 2.0) * RBF(1.0),
    ExpDot(1.0) + Custom(lambda a, b: float(a @ b)),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kernel", LARGE, ids=str)
def test_tiles_blocks_and_operators_made_of_others_say_it_too(kernel):
    X = 60.0 * np.random.default_rng(2).normal(size=(8, 2)) ** 5
    sentence = refusal(kernel, X)
    assert sentence is not None
    for inner in (Dense(kernel, X), Tiles(kernel, X)):
        for K in (
            inner,
            inner.shifted(0.5),
            SumOf(Dense(Linear(), X), inner),
            Weighted(inner, np.linspace(0.5, 2.0, 8)),
        ):
            for ask in contractions(K):
                assert is_said(ask, sentence)


def test_the_rows_named_are_those_of_the_data_also_beyond_the_first_panel(monkeypatch):
    monkeypatch.setattr("mercer.panels.PANEL_BYTES", 8 * 50 * 3)
    X = np.ones((50, 1))
    X[[33, 41]] = 40.0
    with pytest.raises(MagnitudeError, match="rows 33 and 33"):
        ExpDot(1.0)(X)
    with pytest.raises(MagnitudeError, match="rows 33 and 33"):
        Tiles(ExpDot(1.0), X).contract(np.ones(50))


def test_input_gradients_of_a_kernel_that_overflows_are_refused_too():
    X = 40.0 * np.ones((3, 1))
    with pytest.raises(MagnitudeError, match="overflows"):
        Tiles(ExpDot(1.0), X).contract_inputs(np.ones(3))


def test_a_weight_that_is_no_number_is_not_the_kernel_s_fault():
    K = Tiles(RBF(1.0), np.arange(3.0)[:, None])
    assert np.isnan(K.contract(np.array([np.nan, 1.0, 1.0]))).all()
