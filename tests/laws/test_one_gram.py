"""A kernel has one Gram matrix, however it is asked for: dense, as an operator, in tiles, in NumPy,
and asked again.
"""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels_under_test import fitting
from mercer import RBF, Bilinear, KernelRidge, Linear, White
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.gram import Tiles, blocks

MANY = max(60, settings().max_examples)


def by_copies(k, X):
    """k between the rows and equal rows of another sample,
    with the diagonal of the same observation laid over it.
    """
    K = k(X, X.copy())
    np.fill_diagonal(K, k.diag(X))
    return K


def spellings(k, X):
    """The Gram matrix in every way that it can be asked for."""
    one = np.eye(len(X))
    yield "k(X)", k(X)
    yield "operator", k.gram(X) @ one
    yield "tiles", k.gram(X, memory=1) @ one
    yield "dense tiles", Tiles(k, X).dense()
    yield "block", Tiles(k, X).block(slice(None), np.arange(len(X)))
    with np.errstate(all="ignore"):
        yield "NumPy", k.block(Rows(X), None)
        yield "NumPy in blocks", blocks.apply(k, Rows(X), None, one)


def assert_one_gram(k, X):
    expected = by_copies(k, X)
    size = max(float(np.abs(expected).max()), 1e-300)
    for time in ("once", "again"):
        for name, K in spellings(k, X):
            worst = float(np.abs(K - expected).max()) / size
            assert worst <= 1e-8, f"{name}, {time}: off by {worst:.1e} of its size"
        gc.collect(1)


@pytest.mark.parametrize(
    "k",
    [
        RBF(2.0).of(np.square) + RBF(1.0).on(1),
        RBF(1.0).of(np.sin) + RBF(1.0).of(np.cos) + RBF(1.0).of(np.tanh),
        RBF(1.0).of([[1.0, 2.0]]) * RBF(2.0).of([[0.5, -1.0], [1.0, 0.0]]) + Linear().of(np.abs),
        Bilinear([[2.0, 1.0], [1.0, 2.0]]) + Linear().of([[1.0, -1.0]]) + Linear().of(np.square),
        (RBF(1.0).of(np.square) + White(0.3)).of(np.sin) + RBF(0.5).of(np.square).on(0, 1),
    ],
    ids=str,
)
def test_a_term_is_not_computed_on_the_columns_of_another(k):
    X = np.random.default_rng(0).normal(size=(30, 2))
    for _ in range(6):
        assert_one_gram(k, X)


def test_a_ridge_on_terms_with_maps_of_their_own_predicts_what_its_system_says():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    k = RBF(2.0).of(np.square) + RBF(1.0).on(1)
    for _ in range(6):
        alpha = np.linalg.solve(k(X, X.copy()) + 0.1 * np.eye(60), y)
        found = KernelRidge(kernel=k, alpha=0.1).fit(X, y).predict(X)
        np.testing.assert_allclose(found, k(X, X.copy()) @ alpha, rtol=1e-7, atol=1e-8)


@settings(max_examples=MANY)
@given(
    data=st.data(), d=st.sampled_from([1, 2, 3, 4, 17]), n=st.integers(2, 23), seed=st.integers(0, 2**32 - 1)
)
def test_every_expression_has_one_gram(data, d, n, seed):
    k = data.draw(fitting(d) if d <= 4 else fitting(d, depth=2, ard=False))
    X = np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(max(1.0, d / 4))
    X[n // 2] = X[0]
    try:
        k(X)
        k.diag(X)
    except MercerError:
        return
    assert_one_gram(k, X)
