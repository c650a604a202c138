"""`contract` is the derivative of Σ W K for every leaf, at every width, with equal rows,
on every instruction set.

The referee is the central difference of the NumPy spelling, which computes distances one by one. Equal rows
matter: an expanded squared distance of two of them can fall below zero, and a root or a power of that is NaN.
"""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from kernels_under_test import registered_leaves
from mercer import (
    RBF,
    AllSubsets,
    ArcCosine,
    Bilinear,
    Brownian,
    Chi2,
    Constant,
    Cosine,
    CosineSimilarity,
    Custom,
    Dot,
    ExpDot,
    Exponential,
    Intersection,
    Laplacian,
    Linear,
    Logistic,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Stationary,
    White,
    ZeroMeanPeriodic,
)
from mercer.arrays import Rows
from mercer.gram import Tiles

WIDTHS = [1, 3, 16, 17, 33, 100, 400]
ROWS = 37
MOST = 5  # parameters of one kernel that are moved: the first, the last and some between


def each(d, low=0.8, high=1.7):
    """One number per column."""
    return list(np.linspace(low, high, d))


LEAVES = {
    "RBF": lambda d: RBF(1.3),
    "RBF per column": lambda d: RBF(each(d)),
    "Exponential": lambda d: Exponential(1.3),
    "Exponential per column": lambda d: Exponential(each(d)),
    "Matern 1/2": lambda d: Matern(1.3, nu=0.5),
    "Matern 3/2": lambda d: Matern(1.3),
    "Matern 3/2 per column": lambda d: Matern(each(d)),
    "Matern 5/2": lambda d: Matern(1.3, nu=2.5),
    "Matern 0.7": lambda d: Matern(1.3, nu=0.7),
    "RationalQuadratic": lambda d: RationalQuadratic(1.3, alpha=0.6),
    "RationalQuadratic per column": lambda d: RationalQuadratic(each(d), alpha=0.6),
    "Laplacian": lambda d: Laplacian(1.3 * np.sqrt(d)),
    "Laplacian per column": lambda d: Laplacian(each(d, np.sqrt(d), 2 * np.sqrt(d))),
    "Periodic": lambda d: Periodic(2.3, lengthscale=1.4),
    "Periodic per column": lambda d: Periodic(each(d, 2.0, 3.0), lengthscale=each(d)),
    "ZeroMeanPeriodic": lambda d: ZeroMeanPeriodic(6.0, lengthscale=1.4),
    "ZeroMeanPeriodic per column": lambda d: ZeroMeanPeriodic(each(d, 5.0, 9.0), lengthscale=each(d)),
    "Cosine": lambda d: Cosine(6.0),
    "Cosine per column": lambda d: Cosine(each(d, 5.0, 9.0)),
    "SpectralMixture": lambda d: SpectralMixture(
        [0.6, 0.3], [each(d, 0.02, 0.05)] * 2, [each(d, 0.02, 0.09)] * 2
    ),
    "Linear": lambda d: Linear(),
    "Polynomial": lambda d: Polynomial(3, offset=0.7, scale=0.8),
    "ExpDot": lambda d: ExpDot(0.6),
    "Sigmoid": lambda d: Sigmoid(0.6, offset=-0.2),
    "Logistic": lambda d: Logistic(0.6, offset=-0.2),
    "Dot": lambda d: Dot(taylor=[0.5, 1.0, 0.25]),
    "ArcCosine 0": lambda d: ArcCosine(0),
    "ArcCosine 1": lambda d: ArcCosine(1),
    "ArcCosine 2": lambda d: ArcCosine(2),
    "CosineSimilarity": lambda d: CosineSimilarity(),
    "AllSubsets": lambda d: AllSubsets(),
    "Brownian": lambda d: Brownian().on(0),
    "Intersection": lambda d: Intersection().of(np.abs),
    "Chi2": lambda d: Chi2(0.4).of(np.abs),
    "Bilinear": lambda d: Bilinear(np.diag(each(d))),
    "Constant": lambda d: Constant(0.8),
    "White": lambda d: White(0.3),
}
RULES = {
    "fractional power of a product": lambda d: (Matern(1.3) * RBF(1.1)) ** 0.5,
    "fractional power of zeros": lambda d: (White(0.86) * Periodic(1.9) * (Matern(1.9, nu=2.5) + 1.0)) ** 0.5,
    "fractional power, in NumPy": lambda d: (
        (White(0.86) * Periodic(1.9) * (Matern(1.9) + AllSubsets())) ** 0.5
    ),
    "normalized with zero rows": lambda d: (Linear() * RBF(1.2)).normalized(),
    "normalized sum": lambda d: (Matern(1.3) + Polynomial(2)).normalized(),
    "exponential of a root": lambda d: (0.5 * Exponential(1.3) * Matern(0.9)).exp(),
}
KERNELS = {**LEAVES, **RULES}


def test_every_leaf_is_under_this_law():
    without_slopes = {Custom.__name__, Stationary.__name__}  # a function of the user's has no hyperparameters
    under = {name.split()[0] for name in LEAVES}
    assert under == set(registered_leaves()) - without_slopes


def points(d):
    """Rows of which some are equal, the last among them, and one is zero."""
    X = np.random.default_rng(d).normal(size=(ROWS, d)) / np.sqrt(d)
    X[[0, 5, 11]] = X[-1]
    X[20] = X[21]
    X[8] = 0.0
    return X


@cache
def refereed(name, d):
    """The kernel, weights, and for some parameters the central difference of Σ W K in NumPy."""
    kernel = 0.7 * KERNELS[name](d)
    X, theta = points(d), kernel.theta
    W = np.random.default_rng(1).normal(size=(ROWS, ROWS))

    def total(t):
        return float((W * kernel.with_theta(t).block(Rows(X), None)).sum())

    chosen = np.unique(np.linspace(0, len(theta) - 1, min(MOST, len(theta))).astype(int))
    steps = 1e-5 * np.eye(len(theta))[chosen]
    slopes = [(total(theta + step) - total(theta - step)) / 2e-5 for step in steps]
    size = float(np.abs(W * kernel(X)).sum())
    return kernel, X, W, chosen, np.array(slopes), size


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("name", KERNELS)
def test_contract_is_the_central_difference(name, d, isa):
    kernel, X, W, chosen, slopes, size = refereed(name, d)
    K = Tiles(kernel, X)
    found = K.contract(W=W)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[chosen], slopes, rtol=1e-6, atol=1e-7 * size)
    U = np.random.default_rng(2).normal(size=(ROWS, 2))
    np.testing.assert_allclose(K.contract(U), K.contract(W=U @ U.T), rtol=1e-9, atol=1e-10 * size)


@pytest.mark.parametrize("d", [17, 33, 500])
@pytest.mark.parametrize("name", ["Matern 3/2", "Exponential", "RationalQuadratic", "Exponential per column"])
def test_sparse_rows_have_the_gradient_of_dense_ones(name, d, isa):
    kernel, X, W, *_ = refereed(name, d)
    thin = X * (np.random.default_rng(3).random(X.shape) < 0.2)
    found = Tiles(kernel, sparse.csr_array(thin)).contract(W=W)
    expected = Tiles(kernel, thin).contract(W=W)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(W).sum())


@pytest.mark.parametrize("d", [17, 32])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_gradients_of_matern_are_numbers_above_sixteen_columns(nu, d, isa):
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(200, d))
        K = Tiles(Matern(1.0, nu=nu), X)
        assert np.all(np.isfinite(K.contract(np.ones(200))))
        assert np.all(np.isfinite(K.contract_inputs(np.ones(200))[0]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 16, 17, 33, 100])
def test_no_squared_distance_is_negative(d, dtype, isa):
    X = np.random.default_rng(d).normal(size=(50, d)).astype(dtype) + dtype(30)
    X = np.vstack([X, X[::-1], X[:7] * (1 + np.finfo(dtype).eps)])
    K = Tiles(Exponential(1.0), X).dense()
    assert np.all(K <= 1) and np.all(np.isfinite(K))
    np.testing.assert_array_equal(K.diagonal(), 1)


@pytest.mark.parametrize(
    "leaf", [RBF, Exponential, Matern, RationalQuadratic], ids=lambda leaf: leaf.__name__
)
def test_rows_as_far_apart_as_numbers_allow_have_a_value_and_a_gradient(leaf, isa):
    X = np.array([[0.0], [1e150], [-1e150], [1.0]])
    K = Tiles(leaf(1e-10), X)
    np.testing.assert_allclose(K.dense(), np.eye(4), atol=1e-19)
    assert np.all(np.isfinite(K.contract(np.ones(4))))
