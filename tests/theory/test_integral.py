"""Mercer's condition as an integral: closed forms, the error stated, and the finite form that it is."""

import math

import numpy as np
import pytest

from mercer import RBF, Brownian, Custom, Exponential, Linear, Polynomial, White, theory
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError


def ones(X):
    return np.ones(len(X))


def gaussian(X):
    return np.exp(-0.5 * (X**2).sum(axis=1))


def brownian_wave(n):
    """An eigenfunction of min(x, z) on [0, 1], with the eigenvalue 1 / ((n - ½)π)²."""
    return lambda X: math.sqrt(2) * np.sin((n - 0.5) * math.pi * X[:, 0])


CASES = [
    (RBF(1.0), gaussian, -9.0, 9.0, 2 * math.pi / math.sqrt(3)),
    (RBF(0.5), gaussian, -9.0, 9.0, 2 * math.pi / math.sqrt(1 + 2 / 0.25)),
    (RBF(1.0), gaussian, [-8.0, -8.0], [8.0, 8.0], (2 * math.pi / math.sqrt(3)) ** 2),
    (Brownian(), ones, 0.0, 1.0, 1 / 3),
    (Brownian(), brownian_wave(1), 0.0, 1.0, 4 / math.pi**2),
    (Brownian(), brownian_wave(3), 0.0, 1.0, 1 / (2.5 * math.pi) ** 2),
    (Exponential(1.0), ones, 0.0, 1.0, 2 / math.e),
    (Linear(), lambda X: X[:, 0], 0.0, 1.0, 1 / 9),
    (Polynomial(2, offset=0.0), ones, [0.0, 0.0], [1.0, 1.0], 1 / 9 + 1 / 9 + 2 / 16),
    (-RBF(1.0), gaussian, -9.0, 9.0, -2 * math.pi / math.sqrt(3)),
    (RBF(1.0) - RBF(2.0), gaussian, -9.0, 9.0, 2 * math.pi * (3**-0.5 - 1.5**-0.5)),
]


def short(value):
    """A name without the address of a function, which differs from process to process."""
    return getattr(value, "__name__", str(value)[:30])


@pytest.mark.parametrize(("k", "f", "low", "high", "exact"), CASES, ids=short)
def test_the_integral_is_its_closed_form_to_within_the_error_stated(k, f, low, high, exact):
    in_the_plane = not np.isscalar(low)
    found = theory.mercer_integral(k, f, low, high, points=4096 if in_the_plane else 1024)
    assert abs(found.value - exact) <= found.error
    assert found.error <= (1e-2 if in_the_plane else 1e-3) * abs(exact)
    assert found.sign == np.sign(exact)
    assert found.refutes == (exact < 0)
    assert ("not a kernel" in str(found)) == (exact < 0)


@pytest.mark.parametrize(("k", "f", "low", "high", "exact"), CASES[:4] + CASES[-2:], ids=short)
def test_the_integral_is_the_quadratic_form_of_its_nodes(k, f, low, high, exact):
    found = theory.mercer_integral(k, f, low, high, points=300)
    assert found.q @ k(found.X) @ found.q == pytest.approx(found.value, rel=1e-10)
    assert len(found.X) == len(found.q) <= 300
    assert found.levels[-1] == found.value


def test_the_measure_has_a_density():
    found = theory.mercer_integral(RBF(1.0), ones, -9.0, 9.0, density=gaussian)
    assert found.value == pytest.approx(2 * math.pi / math.sqrt(3), rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_no_random_function_makes_a_kernel_negative(seed):
    rng = np.random.default_rng(seed)
    c, w = rng.normal(size=6), rng.uniform(0, 8, size=6)
    for k in (RBF(0.7), Brownian(), Polynomial(3)):
        found = theory.mercer_integral(k, lambda X: np.cos(X[:, :1] * w) @ c, 0.0, 1.0, points=64)
        assert not found.refutes
        assert found.sign >= 0


@pytest.mark.parametrize("k", [Polynomial(1, offset=0.0), Polynomial(3, offset=0.0)])
def test_an_integral_that_is_zero_refutes_nothing(k):
    """An odd kernel and an even f: what is left is rounding, of either sign."""
    for power in (0, 2, 4):
        found = theory.mercer_integral(k, lambda X, power=power: X[:, 0] ** power, -1.0, 1.0, points=64)
        assert abs(found.value) <= found.rounding
        assert not found.refutes
        assert found.sign == 0


def test_noise_of_the_observation_has_no_share_in_the_integral():
    plain = theory.mercer_integral(RBF(1.0), gaussian, -9.0, 9.0, points=64)
    noisy = theory.mercer_integral(RBF(1.0) + White(5.0), gaussian, -9.0, 9.0, points=64)
    assert noisy.value == plain.value


def test_what_cannot_be_integrated_is_refused():
    k = RBF(1.0)
    for low, high in [(1.0, 0.0), (0.0, np.inf), (0.0, 0.0), ("a", 1.0), ([0.0, 0.0], [1.0, 0.0])]:
        with pytest.raises(ParameterError, match="low"):
            theory.mercer_integral(k, ones, low, high)
    with pytest.raises(ShapeError, match="one number"):
        theory.mercer_integral(k, lambda X: X, 0.0, 1.0)
    with pytest.raises(InputError, match="real"):
        theory.mercer_integral(k, lambda X: 1j * X[:, 0], 0.0, 1.0)
    with pytest.raises(NotFiniteError, match="nan"):
        theory.mercer_integral(k, lambda X: X[:, 0] * np.nan, 0.0, 1.0)
    with pytest.raises(NotFiniteError, match="density"):
        theory.mercer_integral(k, ones, 0.0, 1.0, density=lambda X: -ones(X))
    with pytest.raises(ParameterError, match="points"):
        theory.mercer_integral(k, ones, np.zeros(5), np.ones(5))
    with pytest.raises(ParameterError, match="tol"):
        theory.mercer_integral(k, ones, 0.0, 1.0, tol=0)


def test_a_function_of_ones_own_is_refuted_by_an_integral():
    found = theory.mercer_integral(
        Custom(lambda x, z: float(abs(x[0] - z[0]))), lambda X: X[:, 0], -1.0, 1.0, points=64
    )
    assert found.refutes
    assert found.sign == -1
