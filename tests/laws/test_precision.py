"""Right to rounding where the textbook formula is not: far from the origin, near together,
at extreme scales.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import sparse

from kernels_under_test import every_leaf, grid
from mercer.arrays import Rows
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cosine,
    CosineSimilarity,
    ExpDot,
    Exponential,
    Laplacian,
    Logistic,
    Matern,
    Periodic,
    RationalQuadratic,
    ZeroMeanPeriodic,
)
from mercer.kernels.leaves.distances import squared_distances
from mercer.kernels.programs.program import origin
from reference import kernels as ref


def numpy_spelling(kernel, X, Z=None):
    return kernel.block(Rows.of(X), None if Z is None else Rows.of(Z))


def engine(kernel, X, Z=None):
    return kernel(X, Z)


def spellings():
    """Both ways to evaluate a kernel: the compiled engine, and the NumPy formulas."""
    return pytest.mark.parametrize("evaluate", [numpy_spelling, engine])


OFFSETS = pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, 1e12])


def near_duplicates(offset, n=12, d=3):
    """Points a few units of rounding to a few hundredths apart, at a distance from the origin."""
    rng = np.random.default_rng(3)
    X = offset + rng.normal(size=(1, d)) + rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 0, size=(n, 1))
    X[1] = X[0]
    X[2] = np.nextafter(X[0], np.inf)
    return X


def exact_squared_distances(X, weights):
    rows = [[Fraction(v) for v in x] for x in X.tolist()]
    w = [Fraction(v) for v in weights]
    return np.array(
        [[float(sum(c * (a - b) ** 2 for c, a, b in zip(w, x, z, strict=True))) for z in rows] for x in rows]
    )


@OFFSETS
@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.25, 4.0, 1.5]], ids=["isotropic", "ard"])
def test_squared_distances_of_near_duplicates_are_right_to_rounding(offset, weights):
    X = near_duplicates(offset)
    exact = exact_squared_distances(X, weights)
    w = np.array(weights)
    np.testing.assert_allclose(squared_distances(X, None, w), exact, rtol=1e-15 * 8)
    np.testing.assert_allclose(squared_distances(X, X.copy(), w), exact, rtol=1e-15 * 8)


@OFFSETS
@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.25, 4.0, 1.5]], ids=["isotropic", "ard"])
def test_squared_distances_of_sparse_near_duplicates_are_right(offset, weights):
    X = near_duplicates(offset)
    X[4:, 1] = 0.0
    exact = exact_squared_distances(X, weights)
    A = sparse.csr_array(X)
    np.testing.assert_allclose(squared_distances(A, None, np.array(weights)), exact, rtol=1e-11)
    np.testing.assert_allclose(squared_distances(A, X, np.array(weights)), exact, rtol=1e-11)


STATIONARY = [
    (RBF(0.01), ref.rbf(0.01)),
    (RBF([0.01, 0.03, 0.02]), ref.rbf([0.01, 0.03, 0.02])),
    (Laplacian(0.01), ref.laplacian(0.01)),
    (Exponential(0.01), ref.exponential(0.01)),
    (Matern(0.01, nu=1.5), ref.matern(0.01, 1.5)),
    (Matern(0.01, nu=3.3), ref.matern(0.01, 3.3)),
    (RationalQuadratic(0.01), ref.rational_quadratic(0.01, 1.0)),
    (Periodic(0.5), ref.periodic(0.5, 1.0)),
    (ZeroMeanPeriodic(0.5), ref.zero_mean_periodic(0.5, 1.0)),
    (Cosine(0.5), ref.cosine(0.5)),
]


@spellings()
@OFFSETS
@pytest.mark.parametrize(
    "kernel, reference", STATIONARY, ids=lambda v: str(v) if not callable(v) or hasattr(v, "diag") else ""
)
def test_stationary_kernels_do_not_feel_an_offset(evaluate, kernel, reference, offset):
    X = near_duplicates(offset)
    expected = np.array([[float(v) for v in row] for row in ref.block(reference, X)])
    np.testing.assert_allclose(evaluate(kernel, X), expected, rtol=1e-12, atol=1e-14)


@spellings()
@OFFSETS
@pytest.mark.parametrize("lengthscale", [0.01, [0.01, 0.03, 0.02]], ids=["one", "per column"])
def test_sparse_points_do_not_feel_an_offset(evaluate, lengthscale, offset):
    X = near_duplicates(offset)
    expected = np.array([[float(v) for v in row] for row in ref.block(ref.rbf(lengthscale), X)])
    np.testing.assert_allclose(
        evaluate(RBF(lengthscale), sparse.csr_array(X)), expected, rtol=1e-9, atol=1e-10
    )


@spellings()
@pytest.mark.parametrize(
    "kernel", [Periodic(0.5, lengthscale=0.7), ZeroMeanPeriodic(0.5, lengthscale=0.7), Cosine(0.5)], ids=str
)
def test_a_whole_number_of_periods_away_is_the_same_point(evaluate, kernel):
    X = np.array([[0.125]])
    far = 0.125 + 0.5 * np.array([[1.0], [3e6], [2.0**40], [2.0**50]])
    np.testing.assert_allclose(evaluate(kernel, X, far), np.ones((1, 4)), rtol=1e-12)


@spellings()
@pytest.mark.parametrize("lengthscale", [1e-3, 0.03, 0.5, 0.99, 1.01, 30.0, 1e4, 1e8, 1e12, 1e100])
def test_a_pattern_without_its_constant_is_right_for_every_lengthscale(evaluate, lengthscale):
    X = np.linspace(0.0, 1.0, 9)[:, None] + np.array([[0.0], [1e-4]] * 4 + [[0.3]])
    expected = ref.block(ref.zero_mean_periodic(2.0, lengthscale), X)
    found = evaluate(ZeroMeanPeriodic(2.0, lengthscale), X)
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("lengthscale", [0.2, 1.0, 5.0])
def test_a_pattern_without_its_constant_has_mean_zero_along_every_column(lengthscale):
    # equal steps over a period integrate a smooth periodic function to rounding
    phases = np.arange(256) / 256 * 3.0
    k = ZeroMeanPeriodic(3.0, lengthscale=lengthscale)
    along_first = np.column_stack([phases, np.full(256, 0.7)])
    along_second = along_first[:, ::-1]
    here = np.array([[0.4, 1.1]])
    assert abs(k(here, along_first).mean()) < 1e-14
    assert abs(k(here, along_second).mean()) < 1e-14


def test_a_pattern_without_its_constant_becomes_the_cosine():
    X = np.linspace(0.0, 5.0, 40)[:, None]
    np.testing.assert_allclose(ZeroMeanPeriodic(2.0, 1e9)(X), Cosine(2.0)(X), rtol=0, atol=1e-13)


@spellings()
@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1.0, 1e100, 1e150])
def test_the_cosine_does_not_feel_the_length_of_vectors(evaluate, scale):
    X = np.array([[3.0, 4.0], [4.0, 3.0], [-1.0, 2.0]])
    expected = CosineSimilarity()(X)
    np.testing.assert_allclose(evaluate(CosineSimilarity(), scale * X), expected, rtol=1e-14)
    np.testing.assert_allclose(evaluate(CosineSimilarity(), scale * X, X), expected, rtol=1e-14)
    np.testing.assert_allclose(
        evaluate(CosineSimilarity(), sparse.csr_array(scale * X)), expected, rtol=1e-14
    )
    np.testing.assert_array_equal(CosineSimilarity().diag(scale * X), [1, 1, 1])


@spellings()
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-5, np.pi / 2, np.pi - 1e-9, np.pi])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_sees_small_angles(evaluate, order, angle):
    x, z = np.array([[2.0, 0.0]]), 3 * np.array([[np.cos(angle), np.sin(angle)]])
    with mpmath.workdps(60):
        expected = float(ref.block(ref.arc_cosine(order), x, z)[0][0])
    np.testing.assert_allclose(evaluate(ArcCosine(order), x, z), [[expected]], rtol=1e-13, atol=1e-14)


@spellings()
def test_repeated_directions_have_exactly_the_arc_cosine_of_the_angle_zero(evaluate):
    X = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(np.diag(evaluate(ArcCosine(0), X, X.copy())), np.ones(5))


def test_the_logistic_keeps_its_digits_far_below_zero():
    t = np.array([[-700.0], [-300.0], [-40.0], [-1.0], [40.0], [700.0]])
    expected = [[float(1 / (1 + mpmath.exp(-mpmath.mpf(v))))] for v in t[:, 0]]
    np.testing.assert_allclose(Logistic()(t, [[1.0]]), expected, rtol=1e-13)


@pytest.mark.parametrize("nu", [0.01, 0.5, 0.999, 1.0, 1.001, 2.0, 2.0 + 1e-13, 2.001, 3.0, 10.5, 49.9, 50.0])
def test_matern_of_any_smoothness_is_right_from_touching_to_far(nu):
    r = np.array([[0.0], [1e-100], [1e-30], [1e-9], [3e-6], [1e-4], [0.01], [1.0], [10.0], [50.0]])
    expected = np.array([[float(v)] for (v,) in ref.block(ref.matern(1.0, nu), r, [[0.0]])])
    np.testing.assert_allclose(Matern(1.0, nu=nu)(r, [[0.0]]), expected, rtol=1e-11, atol=1e-300)


@spellings()
@pytest.mark.parametrize("lengthscale", [1e-300, 1e-200, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("family", [RBF, Exponential, Laplacian, Matern, RationalQuadratic])
@pytest.mark.parametrize("per_column", [False, True])
def test_extreme_lengthscales_give_the_limit_and_never_nan(evaluate, family, lengthscale, per_column):
    X = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, -2.0], [1e10, 5.0]])
    k = family([lengthscale, 1.1 * lengthscale]) if per_column else family(lengthscale)
    limit = np.ones((4, 4)) if lengthscale > 1 else (X[:, None] == X[None]).all(-1).astype(float)
    np.testing.assert_allclose(evaluate(k, X), limit, atol=1e-200)
    np.testing.assert_allclose(evaluate(k, sparse.csr_array(X)), limit, atol=1e-200)


@spellings()
@pytest.mark.parametrize(
    "case", [c for c in every_leaf() if c.name in ("rbf", "matern-1.5", "rational-quadratic")], ids=repr
)
def test_points_and_lengthscale_may_be_small_together(evaluate, case):
    X = case.points(5)
    small = case.kernel.set_params(lengthscale=1e-120)
    np.testing.assert_allclose(
        evaluate(small, 1e-120 * X), case.kernel.set_params(lengthscale=1.0)(X), rtol=1e-12
    )


def test_a_float32_block_is_near_the_float64_block_even_far_from_the_origin():
    X = (1e4 + np.random.default_rng(0).normal(size=(20, 4))).astype(np.float32)
    for k in (RBF(2.0), Laplacian(2.0), ExpDot(1e-9)):
        np.testing.assert_allclose(k(X), k(X.astype(np.float64)), rtol=2e-6, atol=1e-7)


def test_the_arc_cosine_kernel_of_order_zero_has_no_negative_eigenvalue_on_a_grid():
    K = numpy_spelling(ArcCosine(0), grid(10, 2, 0.1) - 0.45)
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.parametrize("seed", range(30))
def test_the_shift_of_far_rows_rounds_nothing(seed):
    r = np.random.default_rng(seed)
    dtype = [np.float64, np.float32][seed % 2]
    far = r.choice([-1, 1], size=3) * 10.0 ** r.uniform(1, 6 if dtype is np.float32 else 12, size=3)
    X = (far + 10.0 ** r.uniform(-3, 0) * r.normal(size=(12, 3))).astype(dtype)
    shift = origin(X, None)
    if shift is None:
        return
    moved = X.astype(np.float64) - shift
    for i, j in np.ndindex(*X.shape):
        assert Fraction(float(X[i, j])) - Fraction(float(shift[j])) == Fraction(float(moved[i, j]))
