"""Against scikit-learn: its pairwise kernels and its Gaussian-process kernels, on random data."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    RBF,
    Chi2,
    Constant,
    CosineSimilarity,
    Exponential,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    White,
)


@pytest.fixture(params=[(1, 0), (3, 1), (8, 2)], ids=lambda p: f"{p[0]}-columns")
def data(request):
    d, seed = request.param
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, d)), rng.normal(size=(15, d))


PAIRWISE = [
    (Linear(), pairwise.linear_kernel),
    (RBF(gamma=0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
    (Laplacian(1 / 0.3), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3)),
    (
        Polynomial(3, offset=0.5, scale=0.2),
        lambda X, Z: pairwise.polynomial_kernel(X, Z, 3, gamma=0.2, coef0=0.5),
    ),
    (Sigmoid(0.2, offset=-0.4), lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.2, coef0=-0.4)),
    (CosineSimilarity(), pairwise.cosine_similarity),
]


@pytest.mark.parametrize("kernel, peer", PAIRWISE, ids=lambda v: str(v) if hasattr(v, "diag") else "")
def test_pairwise_kernels_agree(kernel, peer, data):
    X, Z = data
    np.testing.assert_allclose(kernel(X, Z), peer(X, Z), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X), peer(X, X), rtol=1e-10, atol=1e-12)


def test_chi2_agrees_on_histograms(data):
    X, Z = map(np.abs, data)
    X[0, 0] = Z[0, 0] = 0.0
    np.testing.assert_allclose(Chi2(0.7)(X, Z), pairwise.chi2_kernel(X, Z, gamma=0.7), rtol=1e-10)


PROCESS = [
    (RBF(0.8), gp.RBF(0.8)),
    (Exponential(0.8), gp.Matern(0.8, nu=0.5)),
    *((Matern(0.8, nu=nu), gp.Matern(0.8, nu=nu)) for nu in (0.5, 1.5, 2.5, 0.7, 3.2)),
    (RationalQuadratic(0.8, alpha=0.6), gp.RationalQuadratic(0.8, alpha=0.6)),
    (Linear() + 1.5**2, gp.DotProduct(1.5)),
    (
        2.0 * RBF(0.8) + Linear() * Constant(0.5),
        gp.ConstantKernel(2.0) * gp.RBF(0.8) + gp.DotProduct(0.0) * gp.ConstantKernel(0.5),
    ),
    ((RBF(0.8) + 1.0) ** 2, gp.Exponentiation(gp.RBF(0.8) + gp.ConstantKernel(1.0), 2)),
    (RBF(0.8) + White(0.3), gp.RBF(0.8) + gp.WhiteKernel(0.3)),
]


@pytest.mark.parametrize("kernel, peer", PROCESS, ids=lambda v: str(v))
def test_gaussian_process_kernels_agree(kernel, peer, data):
    X, Z = data
    np.testing.assert_allclose(kernel(X, Z), peer(X, Z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(X), peer(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), peer.diag(X), rtol=1e-9)


def test_one_lengthscale_per_column_agrees():
    rng = np.random.default_rng(3)
    X, Z, scales = rng.normal(size=(9, 3)), rng.normal(size=(7, 3)), [0.5, 2.0, 7.0]
    np.testing.assert_allclose(RBF(scales)(X, Z), gp.RBF(scales)(X, Z), rtol=1e-10)
    np.testing.assert_allclose(Matern(scales, nu=2.5)(X, Z), gp.Matern(scales, nu=2.5)(X, Z), rtol=1e-10)


def test_periodic_agrees_in_one_dimension():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(9, 1)), rng.normal(size=(7, 1))
    peer = gp.ExpSineSquared(length_scale=0.7, periodicity=1.3)
    np.testing.assert_allclose(Periodic(1.3, lengthscale=0.7)(X, Z), peer(X, Z), rtol=1e-10)


def test_far_from_the_origin_mercer_is_right_where_the_expanded_square_is_not():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 3))
    moved = X + 1e8
    there = moved - 1e8  # the points as float64 can hold them at that offset
    np.testing.assert_allclose(RBF(1.0)(moved), RBF(1.0)(there), rtol=1e-12)
    assert np.abs(pairwise.rbf_kernel(moved, gamma=0.5) - RBF(1.0)(there)).max() > 1e-3
