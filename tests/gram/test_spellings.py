"""The two spellings of every kernel, the compiled engine and NumPy in blocks, hold together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from kernels_under_test import every_kernel, expressions
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.gram import Dense, Tiles, blocks, lower

KERNELS = pytest.mark.parametrize("case", every_kernel(), ids=repr)

# What has no program, and must say so; everything else must have one.
BY_NUMPY = ("Custom", "Stationary", "Dot(<", "ArcCosine(0)", "nu=", "Bilinear")


def scale_of(K):
    return max(1.0, float(np.abs(K).max()))


def samples(case):
    X = case.points(37, seed=1)
    return X, (None, case.points(11, seed=2))


@KERNELS
def test_values_products_and_diagonals_agree(case):
    X, others = samples(case)
    for Z in others:
        expected = case.kernel.block(Rows(X), None if Z is None else Rows(Z))
        K = Dense(case.kernel, X, Z)
        atol = 1e-12 * scale_of(expected)
        np.testing.assert_allclose(K.array, expected, rtol=1e-10, atol=atol)
        V = np.random.default_rng(0).normal(size=(K.shape[1], 3))
        np.testing.assert_allclose(Tiles(case.kernel, X, Z) @ V, expected @ V, rtol=1e-9, atol=100 * atol)
        np.testing.assert_allclose(
            blocks.apply(case.kernel, K.x, K.z, V), expected @ V, rtol=1e-9, atol=100 * atol
        )
    np.testing.assert_allclose(Dense(case.kernel, X).diag(), case.kernel.diag(X), rtol=1e-12)


@KERNELS
def test_gradients_agree_with_each_other_and_with_differences(case):
    X, others = samples(case)
    theta = case.kernel.theta
    for Z in others:
        K = Tiles(case.kernel, X, Z)
        U, V = (np.random.default_rng(s).normal(size=(n, 2)) for s, n in enumerate(K.shape))
        found = K.contract(U, V)
        numpy = blocks.contract(case.kernel, K.x, K.z, U=U, V=V)
        chained = [v * p.derivative for v, p in zip(numpy, case.kernel.parameters, strict=True) if p.free]
        size = 1 + np.abs(found).max(initial=0.0)
        np.testing.assert_allclose(found, chained, rtol=1e-7, atol=1e-7 * size)
        for i in range(len(theta)):
            step = 1e-6 * np.eye(len(theta))[i]
            up, down = (Dense(case.kernel.with_theta(theta + s * step), X, Z).array for s in (1, -1))
            assert found[i] == pytest.approx(
                ((U @ V.T) * (up - down)).sum() / 2e-6, rel=1e-4, abs=1e-5 * size
            )


@KERNELS
def test_float32_gradients_are_near_those_of_float64(case):
    X = case.points(37, seed=1)
    U = np.random.default_rng(0).normal(size=(37, 1))
    double = Tiles(case.kernel, X).contract(U)
    single = Tiles(case.kernel, X.astype(np.float32)).contract(U.astype(np.float32))
    np.testing.assert_allclose(single, double, rtol=2e-3, atol=2e-3 * (1 + np.abs(double).max(initial=0.0)))


@KERNELS
def test_only_the_known_few_have_no_program(case):
    low, notes = lower.lowered(case.kernel, Rows(case.points(4)), None, np.float64)
    if low is None:
        assert any(word in str(case.kernel) for word in BY_NUMPY) or "fractional" in notes[0], notes
    else:
        assert not any(word in str(case.kernel) for word in ("Custom", "Stationary"))


@given(k=expressions())
def test_random_expressions_agree(k):
    X = np.random.default_rng(5).normal(size=(23, 3))
    X = np.abs(X) if k.needs_nonnegative() else X
    try:
        with np.errstate(all="ignore"):
            expected = k.block(Rows(X), None)
    except MercerError:
        return
    if not np.all(np.isfinite(expected)):
        return
    K = Dense(k, X).array
    np.testing.assert_allclose(K, expected, rtol=1e-8, atol=1e-9 * scale_of(expected))
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("density", [0.05, 0.6])
@KERNELS
def test_sparse_rows_give_the_dense_answer(case, density):
    X = case.points(30, seed=3)
    X[np.random.default_rng(0).random(X.shape) > density] = 0.0
    Z = X[::-2].copy()
    for other in (None, Z):
        dense = Tiles(case.kernel, X, other)
        thin = Tiles(case.kernel, sparse.csr_array(X), None if other is None else sparse.csr_array(other))
        K = dense.dense()
        np.testing.assert_allclose(thin.dense(), K, rtol=1e-9, atol=1e-10 * scale_of(K))
        V = np.ones((K.shape[1], 2))
        np.testing.assert_allclose(thin @ V, K @ V, rtol=1e-9, atol=1e-8 * scale_of(K))
        np.testing.assert_allclose(
            thin.contract(np.ones(K.shape[0]), np.ones(K.shape[1])),
            dense.contract(np.ones(K.shape[0]), np.ones(K.shape[1])),
            rtol=1e-7,
            atol=1e-7 * scale_of(K),
        )
