"""Leaves that look at the columns one by one: a term for each, then a sum or a product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import i0e, i1e, ive

from mercer.arrays import Rows
from mercer.kernels.formulas.formula import Values
from mercer.kernels.leaves.dot import Linear
from mercer.kernels.leaves.families import PerColumn, require_usual
from mercer.kernels.leaves.leaf import Leaf, expression, leaf
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Node, Space, Waves
from mercer.kernels.maps.spectral import CauchyColumns, NoSpectrum, Series, Spectrum
from mercer.kernels.programs.program import MOST_STEPS, NotLowered, Place, scattered
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.enclosure import ONE, TWO, ZERO
from mercer.kernels.proofs.expansion import Terms
from mercer.kernels.proofs.intervals import Interval, NotEnclosed, pi
from mercer.kernels.proofs.proof import Fact
from mercer.params import OPEN, Vector, positive
from mercer.typing import Array

# The most terms of one Fourier series.
MOST_TERMS = 4096
# A lengthscale on the circle beyond which a pattern without its constant is the cosine, to rounding.
LONGEST = 1e10
# A part of a sum that its sixty digits do not see.
TINY_PART = Decimal("1e-60")


def _phase(delta: Values, period: Values) -> Values:
    """δ/p less whole periods, so that its digits are kept far away (fmod is exact).

    A derivative by the period (a complex step) needs the whole of δ, and gets it.
    """
    return (np.fmod(delta, period) if np.isrealobj(period) else delta) / period


def _wave(delta: Interval, period: float) -> Interval:
    """cos(2πδ/p) with certain bounds."""
    return (TWO * pi() * delta / Interval.exact(period)).cos()


@leaf
class Laplacian(PerColumn):
    """The exponential of the L1 distance: rough, with corners along the axes.

        k(x, z) = e^(-Σ |x_d - z_d| / ℓ_d)

    >>> float(Laplacian(3.0)([[0, 0]], [[1, 2]])[0, 0])       # L1 distance 3, so 1/e
    0.36787944117144233
    """

    lengthscale: Vector = positive(OPEN, per_column=True)

    because: ClassVar = Fact(
        "Bochner's theorem",
        "a product over the columns of e^(-|δ|/ℓ), whose Fourier transform, the Cauchy density, is positive",
    )
    divisible: ClassVar = "k^r is the same kernel with ℓ/r in place of ℓ"
    formula: ClassVar = r"\exp\left(-\left\lVert\frac{x-z}{<lengthscale>}\right\rVert_1\right)"

    def term(self, x: Values, z: Values, lengthscale: Values = 1.0) -> Values:
        with np.errstate(over="ignore"):
            return np.abs(x - z) / lengthscale

    def value(self, r: Values) -> Values:
        return np.exp(-r)

    def reduction_program(self, at: Place) -> None:
        value = self.closed_value("lengthscale")
        require_usual(value, self)
        if not isinstance(value, tuple):
            at.step("L1", at.view(centred=True, dense_only=True))
            at.affine(at.param(1 / value, "lengthscale", -(value**-2.0)))
            return
        scale = 1 / self.column_values("lengthscale", at.width)
        view = at.view(centred=True, scale=scale, dense_only=True)
        at.step("L1", view)
        for j, length in enumerate(value):
            at.link((view, 0, j), f"lengthscale[{j}]", -1 / length)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return CauchyColumns(d, 1.0, 1.0 / self.column_values("lengthscale", d))

    def log_integral(self, d: int) -> float:
        return float(np.log(self.column_values("lengthscale", d)).sum()) + d * math.log(2)


@leaf
class Periodic(PerColumn):
    """Functions that repeat: an `RBF` on the circle of circumference `period`, one circle per column.

        k(x, z) = exp(-2 Σ sin²(π (x_d - z_d) / p_d) / ℓ_d²)

    >>> float(Periodic(4.0, lengthscale=1.0)([[0.0]], [[1.0]])[0, 0])   # sin²(π/4) = 1/2, so 1/e
    0.367879441171442...
    """

    period: Vector = positive(1.0, per_column=True)
    lengthscale: Vector = positive(1.0, per_column=True)

    because: ClassVar = Fact(
        "composition with a map",
        "it is the Gaussian kernel after ψ(x) = (cos 2πx/p, sin 2πx/p), because ‖ψ(x) - ψ(z)‖² = 4 sin²(π(x "
        "- z)/p), "
        "column by column, and the Gaussian is a kernel by Schoenberg's theorem",
    )
    divisible: ClassVar = "k^r is the same kernel with ℓ/√r in place of ℓ"
    formula: ClassVar = r"\exp\left(-\frac{2}{<lengthscale>^2}\sin^2\frac{\pi(x-z)}{<period>}\right)"

    def term(self, x: Values, z: Values, period: Values = 1.0, lengthscale: Values = 1.0) -> Values:
        return (np.sin(np.pi * _phase(x - z, period)) / lengthscale) ** 2

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        """sin²(πδ/p) = (1 - cos(2πδ/p)) / 2."""
        at = self.at_column(j)
        return (ONE - _wave(x - z, at["period"])) / (TWO * Interval.exact(at["lengthscale"]).square())

    def value(self, r: Values) -> Values:
        return np.exp(-2 * r)

    def reduction_program(self, at: Place) -> None:
        period = self.column_values("period", at.width)
        length = self.column_values("lengthscale", at.width)
        view = at.view(centred=True, scale=np.pi / period, period=period, dense_only=True)
        at.step("PERIODIC", view, at.weights(length**-2.0))
        for j in range(at.width):
            at.link((view, 0, j), self.entry_name("lengthscale", j), -2.0 / length[j])
        for j in range(at.width):
            at.link((view, 1, j), self.entry_name("period", j), -1.0 / period[j])

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        weights = tuple(self._series(float(length)) for length in self.column_values("lengthscale", d))
        return Series(d, 1.0, 2 * np.pi * (1.0 / self.column_values("period", d)), weights)

    def _series(self, length: float) -> Array:
        return _fourier_weights(length, self)


def _fourier_weights(length: float, kernel: Leaf) -> Array:
    """e^(-2 sin²(u/2)/ℓ²) = Σ c_k cos ku with c_0 = Ĩ_0(a), c_k = 2 Ĩ_k(a), a = 1/ℓ²."""
    a = length**-2.0
    terms = int(min(MOST_TERMS, 20 + a + 12 * np.sqrt(a)))
    w: Array = 2 * ive(np.arange(terms), a)
    w[0] *= 0.5
    if not abs(w.sum() - 1) < 1e-12:
        raise NoSpectrum(
            f"{kernel} needs more than {MOST_TERMS} terms of its Fourier series, because its lengthscale "
            "is so small"
        )
    return w


@leaf
class ZeroMeanPeriodic(PerColumn):
    """Functions that repeat and have the mean 0 over a period: `Periodic` without its constant.

        k(x, z) = Π (e^(a_d cos(2π(x_d - z_d) / p_d)) - I_0(a_d)) / (e^(a_d) - I_0(a_d)),    a_d = 1/ℓ_d²

    A sum of a trend and such a pattern tells them apart: the pattern has no level of its own (Lloyd et al.,
    2014). With several columns it is the product of one pattern for each, so that the mean along every single
    column is 0; a sum of patterns is written by `.on`. For a long lengthscale it is `Cosine`.

    >>> k = ZeroMeanPeriodic(4.0, lengthscale=1.0)
    >>> round(float(k([[0.0]], [[1.0]])[0, 0]), 6)         # cos(π/2) = 0, so (1 - I₀(1)) / (e - I₀(1))
    -0.183214
    """

    period: Vector = positive(1.0, per_column=True)
    lengthscale: Vector = positive(1.0, per_column=True)

    reduction: ClassVar = "product"
    because: ClassVar = Fact(
        "Bochner's theorem",
        "a product over the columns of Fourier series Σ c_n cos(2πnδ/p), n ≥ 1, in which c_n is a positive "
        "multiple of the Bessel function I_n(1/ℓ²) > 0: e^(a cos u) = I_0(a) + 2 Σ I_n(a) cos nu",
    )
    formula: ClassVar = (
        r"\prod_d \frac{\exp\left(<lengthscale>^{-2}\cos\frac{2\pi(x_d-z_d)}{<period>}\right)"
        r" - I_0(<lengthscale>^{-2})}{\exp(<lengthscale>^{-2}) - I_0(<lengthscale>^{-2})}"
    )

    def term(self, x: Values, z: Values, period: Values = 1.0, lengthscale: Values = 1.0) -> Values:
        """1 + (e^(-2r) - 1) / (1 - e^(-a) I_0(a)), r = sin²(πδ/p)/ℓ²: nothing large cancels."""
        # from here on it is the cosine, to rounding
        length = np.minimum(lengthscale, LONGEST)
        r = (np.sin(np.pi * _phase(x - z, period)) / length) ** 2
        return 1 + np.expm1(-2 * r) / _varying(1 / length**2)

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        at = self.at_column(j)
        a = ONE / Interval.exact(at["lengthscale"]).square()
        mean = _enclosed_bessel(a)
        return ((a * _wave(x - z, at["period"])).exp() - mean) / (a.exp() - mean)

    def reduction_program(self, at: Place) -> None:
        """Column by column 1 - 2h/v: h = tanh r / (1 + tanh r) = (1 - e^(-2r))/2, v = 1 - e^(-a) I_0(a)."""
        period = self.column_values("period", at.width)
        length = np.minimum(self.column_values("lengthscale", at.width), LONGEST)
        require_usual(self.closed_value("lengthscale"), self)
        if 12 * at.width > MOST_STEPS:
            raise NotLowered(f"{type(self).__name__} of {at.width} columns has too many steps")
        for j in range(at.width):
            column = at.mapped(partial(Rows.take, columns=(j,)), scattered([j], at.width))
            p, a = period[j : j + 1], length[j] ** -2.0
            view = column.view(centred=True, scale=np.pi / p, period=p, dense_only=True)
            weights = at.weights(np.array([a]))
            one = at.param(1.0)
            at.step("PERIODIC", view, weights)
            at.step("TANH")
            at.affine(one, one)
            at.step("RECIPROCAL")
            at.step("PERIODIC", view, weights)
            at.step("TANH")
            at.step("MUL")
            v = float(_varying(a))
            # d(-2/v)/dℓ = 2 v'/v² · da/dℓ, da/dℓ = -2 a/ℓ
            moved = -4 * _varying_slope(a) * a / (length[j] * v**2)
            at.affine(at.param(-2 / v, self.entry_name("lengthscale", j), moved), one)
            at.link((view, 0, 0), self.entry_name("lengthscale", j), -2.0 / length[j])
            at.link((view, 1, 0), self.entry_name("period", j), -1.0 / period[j])
            if j:
                at.step("MUL")

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        weights = tuple(self._series(float(length)) for length in self.column_values("lengthscale", d))
        return Series(d, 1.0, 2 * np.pi * (1.0 / self.column_values("period", d)), weights)

    def _series(self, length: float) -> Array:
        w = _fourier_weights(length, self)
        w[0] = 0.0
        return np.asarray(w / w.sum())


def _varying(a: Values) -> Values:
    """1 - e^(-a) I_0(a), what of e^(a cos u - a) is not its mean; a complex step in `a` is allowed."""
    if np.iscomplexobj(a):
        return _varying(np.real(a)) + 1j * np.imag(a) * _varying_slope(np.real(a))
    if a >= 1:
        return 1 - i0e(a)
    # I_0(a) - 1 by its series: all of its terms are positive, and few are needed
    return -np.expm1(-a) - np.exp(-a) * sum((a / 2) ** (2 * n) / math.factorial(n) ** 2 for n in range(1, 12))


def _varying_slope(a: float) -> float:
    """Its derivative, e^(-a) (I_0(a) - I_1(a))."""
    return float(i0e(a) - i1e(a))


def _enclosed_bessel(a: Interval) -> Interval:
    """I_0(a) = Σ (a/2)^(2n) / n!² with certain bounds: where terms have begun to halve, the rest is at most
    the last of them."""
    if a.high > MOST_TERMS:
        raise NotEnclosed("the Bessel function of so small a lengthscale")
    square = (a / TWO).square()
    term, total = ONE, ONE
    n = 0
    while n * n < 2 * square.high or term.high > TINY_PART * total.high:
        n += 1
        term = term * square / Interval.exact(n * n)
        total = total + term
    return Interval(total.low, (total + term).high)


@leaf
class Cosine(PerColumn):
    """One pure frequency per column: sinusoids of that period and nothing else.

        k(x, z) = Π cos(2π (x_d - z_d) / p_d)

    >>> float(Cosine(8.0)([[0.0]], [[1.0]])[0, 0])            # cos(π/4)
    0.707106781186547...
    """

    period: Vector = positive(1.0, per_column=True)

    reduction: ClassVar = "product"
    because: ClassVar = Fact(
        "Bochner's theorem",
        "a product over the columns of cos(ωδ), whose Fourier transform is two equal positive masses at ±ω "
        "(cos ω(x - z) = cos ωx cos ωz + sin ωx sin ωz)",
    )
    formula: ClassVar = r"\prod_d \cos\frac{2\pi(x_d-z_d)}{<period>}"

    def term(self, x: Values, z: Values, period: Values = 1.0) -> Values:
        return np.cos(2 * np.pi * _phase(x - z, period))

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        return _wave(x - z, self.at_column(j)["period"])

    def reduction_program(self, at: Place) -> None:
        period = self.column_values("period", at.width)
        view = at.view(centred=True, scale=2 * np.pi / period, period=period, dense_only=True)
        at.step("COSPROD", view)
        for j in range(at.width):
            at.link((view, 0, j), self.entry_name("period", j), -1 / period[j])

    def feature_map(self, space: Space) -> Node:
        return Waves(self.column_values("period", space.d), space)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return Series(
            d, 1.0, 2 * np.pi * (1.0 / self.column_values("period", d)), (np.array([0.0, 1.0]),) * d
        )


@leaf
class AllSubsets(PerColumn):
    """Every product of distinct columns, 2^d features at the cost of d multiplications.

        k(x, z) = Π (1 + x_d z_d)

    >>> float(AllSubsets()([[1, 2]], [[3, 4]])[0, 0])         # (1 + 3)(1 + 8)
    36.0
    """

    reduction: ClassVar = "product"
    because: ClassVar = Fact(
        "product of kernels",
        "each factor 1 + x_d z_d is the inner product of (1, x_d) and (1, z_d), and a product of kernels is "
        "a kernel",
    )
    formula: ClassVar = r"\prod_d (1 + x_d z_d)"

    def term(self, x: Values, z: Values) -> Values:
        return 1 + x * z

    def reduction_program(self, at: Place) -> None:
        at.step("ALLSUBSETS", at.view(dense_only=True))

    def in_columns(self) -> Expansion:
        return Expansion.of({(0, 1): 1})

    def expanded(self, *, split: bool) -> Terms:
        if not split:
            return expansion.one_atom(self)
        small = expansion.plus(expansion.number(1), expansion.one_atom(Linear()))
        return expansion.plus(small, expansion.one_atom(LargerSubsets()))


@expression
class LargerSubsets(Leaf):
    """Products of two and more distinct columns: what `AllSubsets` has beyond 1 + x·z."""

    because: ClassVar = Fact(
        "sum of kernels",
        "Π (1 + x_d z_d) - 1 - x·z is the sum of Π x_d z_d over all sets of two or more columns, each a "
        "kernel",
    )
    formula: ClassVar = r"\left(\prod_d (1 + x_d z_d) - x^\top z - 1\right)"

    def text(self) -> str:
        return "(AllSubsets() - Linear() - 1)"

    def block(self, x: Rows, z: Rows | None) -> Array:
        return AllSubsets().block(x, z) - Linear().block(x, z) - 1

    def diagonal(self, x: Rows) -> Array:
        return AllSubsets().diagonal(x) - Linear().diagonal(x) - 1


@leaf
class Brownian(PerColumn):
    """Brownian motion from 0, forwards and backwards; the Brownian sheet for several columns.

        k(x, z) = Π min(|x_d|, |z_d|) where x_d and z_d have the same sign, else 0

    >>> float(Brownian()([[2, 3]], [[1, 5]])[0, 0])           # min(2, 1) · min(3, 5)
    3.0
    """

    reduction: ClassVar = "product"
    because: ClassVar = Fact(
        "inner product of functions",
        "min(x, z) = ∫ 1[0,x](u) 1[0,z](u) du for x, z ≥ 0 (likewise below 0, and intervals on either side "
        "of 0 do not "
        "meet), and a product over the columns of kernels is a kernel",
    )
    divisible: ClassVar = (
        "min(|x|, |z|)^r = min(|x|^r, |z|^r), "
        "so k^r is the same kernel at the points with coordinates ±|x_d|^r"
    )
    formula: ClassVar = r"\prod_d \min(\lvert x_d\rvert, \lvert z_d\rvert)\,[x_d z_d > 0]"

    def term(self, x: Values, z: Values) -> Values:
        return np.where(np.sign(x) == np.sign(z), np.minimum(np.abs(x), np.abs(z)), 0.0)

    def reduction_program(self, at: Place) -> None:
        at.step("MINPROD", at.view(dense_only=True))

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        if (x.low > 0 and z.low > 0) or (x.high < 0 and z.high < 0):
            return x.absolute().smaller(z.absolute())
        if x.high <= 0 <= z.low or z.high <= 0 <= x.low:
            return ZERO
        raise NotEnclosed("the sign of a coordinate is not known")


@leaf
class Intersection(PerColumn):
    """How much two histograms share.

        k(x, z) = Σ min(x_d, z_d),    x, z ≥ 0

    >>> float(Intersection()([[2, 3]], [[1, 5]])[0, 0])       # 1 + 3
    4.0
    """

    histogram: ClassVar = True
    because: ClassVar = Fact(
        "inner product of functions",
        "min(x, z) = ∫ 1[0,x](u) 1[0,z](u) du for x, z ≥ 0, and a sum of kernels is a kernel",
    )
    formula: ClassVar = r"\sum_d \min(x_d, z_d)"

    def term(self, x: Values, z: Values) -> Values:
        return np.minimum(x, z)

    def reduction_program(self, at: Place) -> None:
        at.step("MINSUM", at.view(dense_only=True))


@leaf
class Chi2(PerColumn):
    """The exponential χ² kernel on histograms.

        k(x, z) = exp(-γ Σ (x_d - z_d)² / (x_d + z_d)),    x, z ≥ 0, 0/0 = 0

    >>> float(Chi2(gamma=0.5)([[1, 0]], [[0, 1]])[0, 0])      # 1/1 + 1/1 = 2, so 1/e
    0.36787944117144233
    """

    gamma: float = positive(1.0)

    histogram: ClassVar = True
    because: ClassVar = Fact(
        "Schoenberg's theorem",
        "(x - z)²/(x + z) = x + z - 4xz/(x + z), and xz/(x + z) = ∫ x e^(-xu) z e^(-zu) du is a kernel, so "
        "the distance is "
        "conditionally negative and the exponential of its negative is a kernel",
    )
    divisible: ClassVar = "k^r is the same kernel with rγ in place of γ"
    formula: ClassVar = r"\exp\left(-<gamma> \sum_d \frac{(x_d-z_d)^2}{x_d+z_d}\right)"

    def term(self, x: Values, z: Values) -> Values:
        total = x + z
        return (x - z) ** 2 / np.where(total == 0, 1.0, total)

    def reduction_program(self, at: Place) -> None:
        at.step("CHI2", at.view(dense_only=True))

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        total = x + z
        if total.is_zero():
            return ZERO
        return (x - z).square() / total

    def value(self, r: Values) -> Values:
        return np.exp(-self.gamma * r)
