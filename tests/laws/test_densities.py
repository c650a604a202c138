"""The law of declared densities: believed where they are non-negative and give f back, and never elsewhere.

The referee is the closed form of the transform in 50 digits.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import j1

from mercer import ProvedAsDeclared, Refuted, Stationary, Undecided
from mercer.errors import ParameterError, ShapeError
from mercer.kernels.proofs import validity
from mercer.kernels.proofs.densities import integrate
from reference import kernels as ref
from reference import proofs as referee

# ── named ones ──────────────────────────────────────────────────────────────────────────────────────────────


def length(delta):
    return np.linalg.norm(delta, axis=-1)


def triangle(delta):
    return np.maximum(0, 1 - length(delta))


def triangle_density(w):
    return np.sinc(w / (2 * np.pi)) ** 2 / (2 * np.pi)


def decay(delta):
    return np.exp(-length(delta))


def cauchy(w):
    return 1 / (np.pi * (1 + w**2))


def disc(delta):
    """The transform of a disc: 2 J₁(r) / r."""
    r = length(delta)
    safe = np.where(r == 0, 1.0, r)
    return np.where(r == 0, 1.0, 2 * j1(safe) / safe)


def gauss(delta):
    return np.exp(-0.5 * length(delta) ** 2)


def gauss_density(d):
    return lambda w: np.exp(-(w**2) / 2) / (2 * np.pi) ** (d / 2)


TRUE = {
    "triangle": (triangle, triangle_density, 1),
    "sinc": (lambda delta: np.sinc(delta[..., 0]), lambda w: (w < np.pi) / (2 * np.pi), 1),
    "exponential": (decay, cauchy, 1),
    "exponential in the plane": (decay, lambda w: (1 + w**2) ** -1.5 / (2 * np.pi), 2),
    "exponential in space": (decay, lambda w: (np.pi * (1 + w**2)) ** -2.0, 3),
    "disc": (disc, lambda w: (w < 1) / np.pi, 2),
    "Gaussian in 6 columns": (gauss, gauss_density(6), 6),
    "in other units": (lambda delta: decay(1e8 * delta), lambda w: 1e-8 * cauchy(1e-8 * w), 1),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_density_is_believed_and_said_to_be_declared(name):
    f, density, columns = TRUE[name]
    answer = Stationary(f, density=density, columns=columns).validity()
    assert isinstance(answer, ProvedAsDeclared)
    assert answer.proof.rule == "Bochner's theorem"
    assert "∫ ρ" in answer.assumptions[0]
    assert answer.proof.conditions == (f"x and z have {columns} column(s)",)


FALSE = {
    "another factor": (triangle, lambda w: 1.00001 * triangle_density(w), 1),
    "a constant more": (lambda delta: triangle(delta) + 1e-5, triangle_density, 1),
    "of another dimension": (decay, cauchy, 2),
    "not of the length": (lambda delta: np.exp(-np.abs(delta).sum(-1)), TRUE["disc"][1], 2),
    "noise at 0": (lambda delta: np.where(length(delta) == 0, 1.3, decay(delta)), cauchy, 1),
    "a hole at 0": (lambda delta: np.where(length(delta) == 0, 0.98, decay(delta)), cauchy, 1),
    "never falling": (lambda delta: np.cos(1e-30 * delta[..., 0]), cauchy, 1),
    "no number": (decay, lambda w: w / 0.0 * np.nan, 1),
    "raising": (decay, lambda w: math.exp(w), 1),
    "of another shape": (decay, lambda w: np.ones(3), 1),
    "zero at 0": (lambda delta: length(delta) * decay(delta), cauchy, 1),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_function_that_is_not_its_declared_transform_is_never_proved(name, monkeypatch):
    monkeypatch.setattr(validity, "_WORK", 40_000)
    f, density, columns = FALSE[name]
    k = Stationary(f, density=density, columns=columns)
    answer = k.validity()
    assert isinstance(answer, Refuted | Undecided)
    assert k.wanting()
    if isinstance(answer, Undecided):
        assert k.wanting() in answer.missing


def test_a_density_below_zero_by_rounding_alone_is_neither_believed_nor_called_negative():
    k = Stationary(gauss, density=lambda w: gauss_density(1)(w) - 1e-20)
    assert "If that is rounding" in k.wanting()
    assert isinstance(k.validity(), Undecided)


def test_a_negative_density_names_its_frequency_and_is_refuted():
    def f(delta):
        return gauss(delta) * (1.5 - 0.5 * np.cos(3 * delta[..., 0]))

    def density(w):
        return 1.5 * gauss_density(1)(w) - 0.25 * (gauss_density(1)(w - 3) + gauss_density(1)(w + 3))

    answer = Stationary(f, density=density).validity()
    assert isinstance(answer, Refuted)
    assert answer.check()
    assert answer.remark.startswith("The declared density is negative: at ‖ω‖ = 3.")
    assert answer.remark in str(answer)


@pytest.mark.parametrize("gamma", [2.2, 2.5, 3.0, 6.0])
def test_a_powered_exponential_above_two_is_refuted(gamma):
    answer = Stationary(lambda delta: np.exp(-(length(delta) ** gamma))).validity(columns=1)
    assert isinstance(answer, Refuted)
    assert answer.check()


# ── powered exponentials, and functions of compact support ──────────────────────────────────────────────────


def powered(gamma):
    return lambda delta: np.exp(-(length(delta) ** gamma))


def powered_density(gamma):
    """(1/π) ∫ cos(ωt) exp(-t^γ) dt along a ray of the complex plane on which nothing oscillates,
    for γ < 2.
    """
    u = np.linspace(-3.9, 2.8, 301)
    s = np.exp(0.5 * np.pi * np.sinh(u))
    steps = (u[1] - u[0]) * 0.5 * np.pi * np.cosh(u) * s
    ray = np.exp(0.25j * np.pi)
    falling = steps * np.exp(-(s**gamma) * ray**gamma)

    def density(w):
        w = np.asarray(w, dtype=float)
        waves = np.exp(1j * ray * np.multiply.outer(w, s))
        return (ray * (waves @ falling)).real / np.pi

    return density


def transform(profile, d):
    """The density in d = 1 or 3 columns of a polynomial of r = ‖δ‖ on [0, 1], which is 0 beyond."""
    p = np.polynomial.Polynomial(profile)
    q = p if d == 1 else p * np.polynomial.Polynomial([0.0, 1.0])
    r, weights = np.polynomial.legendre.leggauss(64)
    r, weights = 0.5 * (r + 1), 0.5 * weights

    def by_parts(w):
        return sum(
            (-1) ** k * (q.deriv(k)(1.0) * np.exp(1j * w) - q.deriv(k)(0.0)) / (1j * w) ** (k + 1)
            for k in range(q.degree() + 1)
        )

    def density(w):
        w = np.asarray(w, dtype=float)
        some = np.where(w == 0, 1e-9, w)
        near = np.exp(1j * np.multiply.outer(some, r)) @ (weights * q(r))
        found = np.where(some < 40, near, by_parts(np.maximum(some, 40.0)))
        return found.real / np.pi if d == 1 else found.imag / (2 * np.pi**2 * some)

    return density


def compact(profile):
    return lambda delta: np.where(length(delta) < 1, np.polynomial.Polynomial(profile)(length(delta)), 0.0)


ASKEY = [1.0, -1.0]  # (1 - r)₊, a kernel in one column alone
SQUARED = [1.0, -2.0, 1.0]  # (1 - r)₊², in up to three
WENDLAND = [1.0, 0.0, -10.0, 20.0, -15.0, 4.0]  # (1 - r)₊⁴ (4r + 1), in up to three


def test_a_powered_exponential_below_two_is_decided_by_its_density():
    w = np.array([0.0, 1.0, 30.0])
    np.testing.assert_allclose(powered_density(1.0)(w), cauchy(w), rtol=1e-11)
    answer = Stationary(powered(1.5), density=powered_density(1.5)).validity()
    assert isinstance(answer, ProvedAsDeclared), str(answer)


@pytest.mark.parametrize(("profile", "columns"), [(ASKEY, 1), (SQUARED, 3), (WENDLAND, 1), (WENDLAND, 3)])
def test_a_function_of_compact_support_is_a_kernel_in_few_columns(profile, columns):
    k = Stationary(compact(profile), density=transform(profile, columns), columns=columns)
    answer = k.validity()
    assert isinstance(answer, ProvedAsDeclared), str(answer)
    with pytest.raises(ShapeError, match=f"one of {columns} column"):
        k(np.zeros((2, columns + 1)))


def test_a_function_of_compact_support_is_refuted_in_too_many_columns():
    answer = Stationary(compact(ASKEY), density=transform(ASKEY, 3), columns=3).validity()
    assert isinstance(answer, Refuted)
    assert answer.check()
    assert answer.remark.startswith("The declared density is negative")
    assert isinstance(Stationary(compact(ASKEY), density=triangle_density).validity(), ProvedAsDeclared)


def test_a_density_belongs_to_its_number_of_columns():
    k = Stationary(decay, density=cauchy)
    assert k.columns == 1
    assert k([[0.0]], [[1.0]])[0, 0] == pytest.approx(math.exp(-1))
    with pytest.raises(ShapeError, match="one of 1 column"):
        k([[0.0, 1.0]])
    plane = k.on(0) * k.on(1)
    assert isinstance(plane.validity(), ProvedAsDeclared)


@pytest.mark.parametrize("columns", [0, -1, 1.5, True, "2", 10**6])
def test_columns_is_a_whole_number(columns):
    with pytest.raises(ParameterError, match="columns must be a whole number"):
        Stationary(decay, density=cauchy, columns=columns)


def test_columns_needs_a_density_and_a_density_is_a_function():
    with pytest.raises(ParameterError, match="columns belongs to a density"):
        Stationary(decay, columns=2)
    with pytest.raises(ParameterError, match="density must be a function"):
        Stationary(decay, density=[1.0, 2.0])


# ── random ones ─────────────────────────────────────────────────────────────────────────────────────────────


def mixture(r, negative):
    """Bumps and boxes of the spectrum: (weight, middle, width, whether a box); the last may be taken away,
    beyond the others.
    """
    parts = [
        (float(r.uniform(0.2, 1)), float(r.uniform(0, 4)), float(r.uniform(0.4, 1.5)), bool(r.integers(2)))
        for _ in range(int(r.integers(1, 4)))
    ]
    if negative:
        parts.append((-float(r.uniform(0.1, 0.2)), 9.0, float(r.uniform(0.5, 1)), bool(r.integers(2))))
    return parts


def values(parts, delta, m):
    """f by its closed form; m is numpy or mpmath."""
    total = 0 * delta
    for weight, middle, width, box in parts:
        shape = m.sinc(width * delta) if box else m.exp(-((width * delta) ** 2) / 2)
        total = total + weight * m.cos(middle * delta) * shape
    return total


class Numpy:
    cos = staticmethod(np.cos)
    exp = staticmethod(np.exp)

    @staticmethod
    def sinc(t):
        return np.sinc(t / np.pi)


def density_of(parts):
    def density(w):
        total = np.zeros_like(w)
        for weight, middle, width, box in parts:
            for v in (w - middle, w + middle):
                bump = np.exp(-((v / width) ** 2) / 2) / math.sqrt(2 * math.pi)
                total += weight / (2 * width) * ((np.abs(v) < width) / 2 if box else bump)
        return total

    return density


@pytest.mark.parametrize("negative", [False, True], ids=["non-negative", "with a negative part"])
@pytest.mark.parametrize("seed", range(8))
def test_random_densities_are_answered_as_their_sign_says(seed, negative):
    r = np.random.default_rng([seed, negative])
    parts = mixture(r, negative)
    k = Stationary(lambda delta: values(parts, delta[..., 0], Numpy), density=density_of(parts))
    answer = k.validity()
    assert isinstance(answer, Refuted if negative else ProvedAsDeclared), answer
    X = answer.X if negative else 3 * r.normal(size=(6, 1))
    with mpmath.workdps(referee.DIGITS):
        truth = ref.stationary(lambda delta: values(parts, delta[0], mpmath))
        K = mpmath.matrix(ref.block(truth, X))
    if negative:
        assert answer.check()
        assert referee.form(K, answer.q) < 0
        assert "The declared density is negative: at ‖ω‖ = " in str(answer)
    else:
        assert referee.lowest_eigenvalue(K) > mpmath.mpf("-1e-35")


# ── quadrature ──────────────────────────────────────────────────────────────────────────────────────────────


def test_quadrature_closes_in_on_jumps_and_kinks_and_knows_its_error():
    def g(x):
        return np.array([(x < 1 / 3) * 1.0, np.abs(x - 0.7), np.exp(x)])

    found, error = integrate(g, np.linspace(0, 1, 5))
    truth = [1 / 3, (0.7**2 + 0.3**2) / 2, math.e - 1]
    assert np.abs(found - truth).max() <= 10 * error
    assert error < 1e-9


def test_quadrature_at_a_singular_end_knows_its_error():
    found, error = integrate(lambda x: x[None, :] ** -0.5, np.linspace(0, 1, 5))
    assert abs(found[0] - 2) <= error < 1e-4


def test_quadrature_sees_a_jump_wherever_it_is():
    jumps = np.random.default_rng(0).uniform(0, 1, size=200)
    for jump in [*jumps, 0.25 + 1e-5, 0.25 - 1e-5, 0.5 - 1e-3]:
        found, _ = integrate(lambda x, jump=jump: (x < jump)[None, :] * 1.0, np.linspace(0, 1, 5))
        assert found[0] == pytest.approx(jump, abs=1e-9)
