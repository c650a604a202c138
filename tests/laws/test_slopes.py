"""A leaf's slope is the derivative of its value.

Complex step: value(s + ih) has the derivative in its imaginary part, without cancellation, so exact to
rounding.
"""

import mpmath
import numpy as np
import pytest

from kernels_under_test import every_leaf, registered_leaves
from mercer.kernels import Dot, DotProduct, Matern, PerColumn, Radial

FAMILIES = (Radial, DotProduct, PerColumn)
WITH_SLOPE = [case for case in every_leaf() if isinstance(case.kernel, FAMILIES)]
DISTANCES = np.array([1e-8, 1e-3, 0.1, 1.0, 7.0, 40.0])
PRODUCTS = np.array([-40.0, -3.0, -0.1, 1e-6, 0.5, 2.0, 30.0])


def arguments(kernel):
    if isinstance(kernel, Matern) and kernel.nu not in (0.5, 1.5, 2.5):
        # Nearer to 0 the complex Bessel function cancels; see the test in 30 digits below.
        return DISTANCES[2:]
    return PRODUCTS if isinstance(kernel, DotProduct) else DISTANCES


def complex_step(f, t, h=1e-30):
    return np.asarray(f(t + 1j * h)).imag / h


def is_a_function(kernel):
    return isinstance(kernel, Dot) and not isinstance(kernel.taylor, tuple)


def test_every_leaf_of_a_family_is_under_this_law():
    expected = {name for name, cls in registered_leaves().items() if issubclass(cls, FAMILIES)}
    assert {type(case.kernel).__name__ for case in WITH_SLOPE} == expected


@pytest.mark.parametrize("case", [c for c in WITH_SLOPE if not is_a_function(c.kernel)], ids=repr)
def test_slope_is_the_derivative_of_value(case):
    t = arguments(case.kernel)
    np.testing.assert_allclose(
        case.kernel.slope(t), complex_step(case.kernel.value, t), rtol=2e-11, atol=1e-300
    )


@pytest.mark.parametrize("case", [c for c in WITH_SLOPE if is_a_function(c.kernel)], ids=repr)
def test_slope_of_a_users_function_is_near_its_derivative(case):
    t = arguments(case.kernel) / 10
    np.testing.assert_allclose(case.kernel.slope(t), complex_step(case.kernel.value, t), rtol=1e-7)


@pytest.mark.parametrize("case", WITH_SLOPE, ids=repr)
def test_slope_is_finite_and_silent_where_distances_and_products_vanish_or_are_large(case):
    t = np.array([0.0, 1e-300, 300.0, 650.0])
    if isinstance(case.kernel, Dot) and is_a_function(case.kernel):
        t = t[:3]
    slope = case.kernel.slope(t)
    assert slope.shape == t.shape
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("scale", [1e3, 1e6])
@pytest.mark.parametrize("name", ["Sigmoid", "Logistic"])
def test_saturated_units_have_a_slope_of_zero_without_overflow(name, scale):
    kernel = registered_leaves()[name]()
    np.testing.assert_array_equal(kernel.slope(np.array([-scale, scale])), [0.0, 0.0])


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.999, 1.0, 1.001, 1.5, 2.0, 2.5, 3.5, 7.25, 20.0, 50.0])
def test_slope_of_matern_is_right_from_touching_to_far(nu):
    def slope(s):  # d/da a^ν K_ν(a) = -a^ν K_(ν-1)(a), and da/ds = ν/a
        order = mpmath.mpf(nu)
        a = mpmath.sqrt(2 * order * mpmath.mpf(s))
        return (
            -order * 2 ** (1 - order) / mpmath.gamma(order) * a ** (order - 1) * mpmath.besselk(order - 1, a)
        )

    s = np.array([1e-12, 1e-8, 1e-3, 0.1, 1.0, 40.0])
    np.testing.assert_allclose(Matern(nu=nu).slope(s), [float(slope(v)) for v in s], rtol=1e-11)
