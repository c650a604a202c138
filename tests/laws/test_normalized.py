"""`normalized()` is the cosine in feature space, also where norms leave the range of numbers;
the referee has 60 digits.
"""

import mpmath
import numpy as np
import pytest
from scipy import sparse

from mercer import RBF, AllSubsets, Constant, ExpDot, Linear, Polynomial
from mercer.errors import MagnitudeError, MercerError
from mercer.gram import Tiles, blocks

mpmath.mp.dps = 60


def product(x, z):
    return mpmath.fsum(mpmath.mpf(float(a)) * mpmath.mpf(float(b)) for a, b in zip(x, z, strict=True))


def distance(x, z):
    return mpmath.fsum((mpmath.mpf(float(a)) - mpmath.mpf(float(b))) ** 2 for a, b in zip(x, z, strict=True))


CASES = {
    "exponential": (ExpDot(0.5), lambda x, z: mpmath.exp(product(x, z) / 2)),
    "exponential of a form": ((0.5 * Linear()).exp(), lambda x, z: mpmath.exp(product(x, z) / 2)),
    "exponential of a square": (
        (0.01 * Polynomial(2)).exp(),
        lambda x, z: mpmath.exp(mpmath.mpf(0.01) * (1 + product(x, z)) ** 2),
    ),
    "high degree": (Polynomial(200), lambda x, z: (1 + product(x, z)) ** 200),
    "odd degree": (Polynomial(151, offset=0.0), lambda x, z: product(x, z) ** 151),
    "product": (
        ExpDot(0.5) * Polynomial(3) * RBF(9.0),
        lambda x, z: (
            mpmath.exp(product(x, z) / 2) * (1 + product(x, z)) ** 3 * mpmath.exp(-distance(x, z) / 162)
        ),
    ),
    "sum": (
        ExpDot(0.5) + 3.0 * Linear() + Constant(1e200),
        lambda x, z: mpmath.exp(product(x, z) / 2) + 3 * product(x, z) + mpmath.mpf(1e200),
    ),
    "power": (ExpDot(0.25) ** 2.5, lambda x, z: mpmath.exp(product(x, z) * mpmath.mpf(0.625))),
    "scaled": (1e300 * Polynomial(2), lambda x, z: (1 + product(x, z)) ** 2),
    "small": (1e-300 * Polynomial(2), lambda x, z: (1 + product(x, z)) ** 2),
}


def referee(k, X):
    norm = [mpmath.sqrt(k(x, x)) for x in X]
    rows = list(zip(X, norm, strict=True))
    return np.array([[float(k(x, z) / (a * b)) if a * b else 0.0 for z, b in rows] for x, a in rows])


@pytest.mark.parametrize("size", [0.1, 1.0, 7.0, 40.0, 100.0])
@pytest.mark.parametrize("name", CASES)
def test_cosines_are_right_to_rounding_of_their_logarithms(name, size):
    kernel, formula = CASES[name]
    X = np.random.default_rng(0).normal(size=(7, 3))
    X = size * X / np.linalg.norm(X, axis=1)[:, None]
    X[3] = X[2] * (1 + 1e-3)
    X[4] = -X[0]
    expected = referee(formula, X)
    largest = max(1.0, max(abs(float(mpmath.log(abs(formula(x, x))))) for x in X))
    tolerance = 1e-13 + 30 * np.finfo(float).eps * largest
    k = kernel.normalized()
    for K in (k(X), k(X, X.copy()), k.gram(X, memory=1) @ np.eye(7), k(sparse.csr_array(X))):
        np.testing.assert_allclose(K, expected, rtol=0, atol=tolerance)
        assert np.abs(K).max() <= 1 + tolerance
    np.testing.assert_array_equal(k(X).diagonal(), 1.0)
    np.testing.assert_array_equal(k.diag(X), 1.0)


def test_an_exponential_kernel_does_not_overflow_to_zero():
    X = np.array([[40.0], [40.5], [-40.0], [0.0]])
    np.testing.assert_allclose(ExpDot(0.5).normalized()(X), RBF(np.sqrt(2.0))(X), rtol=1e-13)


def test_its_gradient_is_that_of_the_gaussian_it_is():
    X = 12.0 * np.random.default_rng(1).normal(size=(9, 3))
    u = np.random.default_rng(2).normal(size=9)
    k = ExpDot(0.01).normalized()
    h = 1e-6
    up, down = (float(u @ k.with_theta(k.theta + s)(X) @ u) for s in (h, -h))
    assert Tiles(k, X).contract(u)[0] == pytest.approx((up - down) / (2 * h), rel=1e-7)
    Y = 0.1 * X
    found, by_numpy = (
        Tiles(k, Y).contract(u),
        blocks.contract(k, Tiles(k, Y).x, None, U=u[:, None], V=u[:, None]),
    )
    np.testing.assert_allclose(found, by_numpy * k.kernel.scale, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e-155, 1e-160, 1e-170, 1e-200, 1e-310])
@pytest.mark.parametrize("kernel", [Linear(), Linear() * 2.0, Polynomial(1, offset=0.0)], ids=str)
def test_rows_whose_squares_vanish_are_refused_by_their_number_or_right(kernel, size):
    X = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, -1.0]])
    X[1] *= size
    refused = ""
    try:
        K = kernel.normalized()(X)
    except MagnitudeError as error:
        refused = str(error)
    if refused:
        assert "row 1" in refused
    else:
        np.testing.assert_allclose(K, referee(product, X), rtol=1e-12, atol=1e-15)


def test_single_precision_takes_the_same_care():
    X = np.array([[1e-12, 2e-12], [2e-12, -1e-12], [3e-12, 1e-12]], dtype=np.float32)
    k = (Linear() ** 2).normalized()
    np.testing.assert_allclose(k(X), k(X.astype(float)), rtol=1e-5, atol=1e-6)


def test_a_kernel_without_a_logarithm_is_refused_where_it_overflows():
    X = np.full((3, 400), 30.0)
    X[1] = 0.1
    with pytest.raises(MagnitudeError, match="row 0"):
        AllSubsets().normalized()(X)


def test_a_zero_row_has_cosine_zero_beside_rows_beyond_the_range():
    k = Polynomial(151, offset=0.0).normalized()
    X = np.array([[0.0, 0.0], [100.0, 200.0], [-100.0, -200.0]])
    np.testing.assert_allclose(k(X), [[0, 0, 0], [0, 1, -1], [0, -1, 1]], atol=1e-12)
    np.testing.assert_array_equal(k.diag(X), [0.0, 1.0, 1.0])


def test_the_cosine_of_a_cosine_is_itself():
    k = (Linear() + 1).normalized()
    assert k.normalized() == k


def test_a_gradient_beyond_the_range_is_refused():
    k = ((0.5 * Linear()).exp()).normalized()
    with pytest.raises(MercerError, match="gradient"):
        k.gram(np.array([[40.0], [41.0]])).contract(np.ones(2))
