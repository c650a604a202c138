"""Leaves that are functions of the scaled squared distance s = ‖(x - z) / ℓ‖²."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, kve

from mercer.kernels.formulas.formula import Values, polynomial
from mercer.kernels.leaves.families import Radial
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.maps.spectral import GaussianMixture, Spectrum
from mercer.kernels.proofs.enclosure import TWO, ZERO, Enclosed, Sample, entries, measured
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Fact
from mercer.params import Vector, positive, shape_number
from mercer.typing import Array


def _schoenberg(mixture: str) -> Fact:
    return Fact(
        "Schoenberg's theorem",
        "as a function of the squared distance it is completely monotone, a positive mixture of Gaussians: "
        f"{mixture}",
    )


def _lengthscale_from_gamma(gamma: Vector) -> Vector:
    if isinstance(gamma, tuple):
        return tuple(math.sqrt(0.5) / math.sqrt(g) if g < 1e-300 else math.sqrt(0.5 / g) for g in gamma)
    return _lengthscale_from_gamma((gamma,))[0]  # type: ignore[index]


@leaf
class RBF(Radial):
    """The Gaussian kernel: infinitely smooth. γ = 1/(2σ²) = 1/(2ℓ²) name the same kernel.

        k(s) = e^(-s/2),    s = ‖(x - z) / ℓ‖²

    >>> float(RBF(1.0)([[0, 0]], [[1, 1]])[0, 0])             # s = 2, so 1/e
    0.36787944117144233
    >>> RBF(gamma=0.125) == RBF(sigma=2.0) == RBF(2.0)
    True
    """

    because: ClassVar = _schoenberg("here a single one")
    divisible: ClassVar = "k^r is the same Gaussian with ℓ/√r in place of ℓ"
    spellings: ClassVar = {
        "gamma": ("lengthscale", _lengthscale_from_gamma),
        "sigma": ("lengthscale", lambda s: s),
    }

    def value(self, s: Values) -> Values:
        return np.exp(-0.5 * s)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return GaussianMixture(d, 1.0, 1.0 / self.column_values("lengthscale", d))

    def log_integral(self, d: int) -> float:
        return float(np.log(self.column_values("lengthscale", d)).sum()) + d * (0.5 * math.log(2 * math.pi))


@leaf
class Exponential(Radial):
    """The Ornstein-Uhlenbeck kernel, = Matérn ½: continuous and nowhere smooth (Euclidean distance).

        k(s) = e^(-√s),    s = ‖(x - z) / ℓ‖²

    >>> float(Exponential(5.0)([[0, 0]], [[3, 4]])[0, 0])     # s = 1, so 1/e
    0.36787944117144233
    """

    because: ClassVar = _schoenberg("e^(-√s) = ∫ e^(-su) dμ(u) with the Lévy density μ")
    divisible: ClassVar = "k^r is the same kernel with ℓ/r in place of ℓ"

    def value(self, s: Values) -> Values:
        return np.exp(-np.sqrt(s))

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return GaussianMixture(d, 1.0, 1.0 / self.column_values("lengthscale", d), _student(0.5))


@leaf
class Matern(Radial):
    """Matérn of smoothness ν: ν = ½ is `Exponential`, ν → ∞ is `RBF`; paths have ⌈ν⌉ - 1 derivatives.

        k(s) = 2^(1-ν)/Γ(ν) a^ν K_ν(a),    a = √(2νs)
        ν = 3/2:  (1 + a) e^(-a)           ν = 5/2:  (1 + a + a²/3) e^(-a)

    >>> float(Matern(1.0, nu=1.5)([[0, 0]], [[0, 1]])[0, 0])  # a = √3: (1 + √3) e^(-√3)
    0.48335772459650...
    """

    nu: float = shape_number(
        1.5, words="a number > 0 and <= 50 (beyond that use RBF, which is its limit)", low=0, high=50
    )

    because: ClassVar = _schoenberg(
        "the width has an inverse-gamma distribution, so a^ν K_ν(a) is a Student-t characteristic function"
    )
    divisible: ClassVar = (
        "it is the characteristic function of a Student t distribution, "
        "which is infinitely divisible (Grosswald)"
    )
    formula: ClassVar = (
        r"\mathrm{Mat\'ern}_{\nu=<nu>}\left(\left\lVert\frac{x-z}{<lengthscale>}\right\rVert\right)"
    )

    def value(self, s: Values) -> Values:
        a = np.sqrt(2 * self.nu * s)
        if self.nu == 0.5:
            return np.exp(-a)
        if self.nu == 1.5:
            return (1 + a) * np.exp(-a)
        if self.nu == 2.5:
            return (1 + a + a * a / 3) * np.exp(-a)
        if self.nu == int(self.nu) + 0.5:
            return polynomial(a, _bessel_polynomial(int(self.nu))) * np.exp(-a)
        return _matern(self.nu, a)

    def slope(self, s: Values) -> Values:
        a = np.sqrt(2 * self.nu * s)
        if self.nu == 0.5:
            return -0.5 * np.exp(-a) / np.where(a == 0, np.inf, a)
        if self.nu == 1.5:
            return -1.5 * np.exp(-a)
        if self.nu == 2.5:
            return -5 / 6 * (1 + a) * np.exp(-a)
        # d/da a^ν K_ν = -a^ν K_(ν-1), da/ds = ν/a
        if self.nu < 1:
            small = np.where(a == 0, np.inf, a)
            return (
                -self.nu
                * np.exp((1 - self.nu) * math.log(2) - gammaln(self.nu) - a)
                * small ** (self.nu - 1)
                * kve(1 - self.nu, np.where(a == 0, 1.0, a))
                * np.where(a == 0, 0.0, 1.0)
            )
        if self.nu == 1:
            return -_k0(a)
        return -self.nu / (2 * (self.nu - 1)) * _matern(self.nu - 1, a)

    def enclosed(self, sample: Sample) -> Enclosed:
        """ν = p + ½: e^(-a) p!/(2p)! Σ (p+i)!/(i!(p-i)!) (2a)^(p-i); other ν are measured."""
        p = int(self.nu)
        if self.nu != p + 0.5:
            return measured(self, sample)
        coefs = [
            Fraction(factorial(p) * factorial(p + i), factorial(2 * p) * factorial(i) * factorial(p - i))
            for i in range(p, -1, -1)
        ]

        def value(s: Interval) -> Interval:
            a = (Interval.exact(2 * p + 1) * s).sqrt()
            total = ZERO
            for c in reversed(coefs):
                total = total * TWO * a + Interval.exact(c.numerator) / Interval.exact(c.denominator)
            return (-a).exp() * total

        return entries(sample.pairs(self.enclosed_variable), value)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return GaussianMixture(d, 1.0, 1.0 / self.column_values("lengthscale", d), _student(self.nu))


def _student(nu: float) -> Callable[[Array], Array]:
    """The quantiles of τ with 1/τ ~ χ²(2ν)/2ν, which makes a Gaussian of variance τ a Student t."""

    def quantile(U: Array) -> Array:
        # scipy.stats takes a second to import, and only random features need it
        from scipy import stats

        return 2 * nu / np.asarray(stats.chi2.isf(U, 2 * nu))

    return quantile


def _bessel_polynomial(p: int) -> tuple[float, ...]:
    """The coefficients of a^ν K_ν(a) e^a for ν = p + ½, divided by their first.

    They are p!/(2p)! (p+i)!/(i! (p-i)!) 2^(p-i).
    """
    coefs = []
    for power in range(p + 1):
        i = p - power
        whole = factorial(p) * factorial(p + i) * 2**power
        coefs.append(float(Fraction(whole, factorial(2 * p) * factorial(i) * factorial(power))))
    return tuple(coefs)


def _matern(nu: float, a: Values) -> Values:
    """2^(1-ν)/Γ(ν) a^ν K_ν(a), by its series where K_ν overflows or a = 0."""
    scale = (1 - nu) * math.log(2) - gammaln(nu)
    tiny = np.abs(a) < 1e-5 * max(nu, 1) ** 0.5 if nu > 2 else np.abs(a) < 1e-140
    safe = np.where(tiny, 1.0, a)
    whole = np.exp(scale + nu * np.log(safe) - safe) * kve(nu, safe)
    series = 1 - a * a / (4 * (nu - 1)) if nu > 2 else np.ones_like(whole)
    return np.where(tiny, series, whole)


def _k0(a: Values) -> Values:
    """a⁰ K_0(a) of the slope at ν = 1: a logarithmic singularity at 0, where 0 stands for it."""
    safe = np.where(a == 0, 1.0, a)
    return np.where(a == 0, 0.0, kve(0, safe) * np.exp(-safe))


@leaf
class RationalQuadratic(Radial):
    """Gaussians of every width, averaged; heavier tails than `RBF`.

        k(s) = (1 + s / 2α)^-α,    s = ‖(x - z) / ℓ‖²

    >>> float(RationalQuadratic(1.0, alpha=1.0)([[0, 0]], [[1, 2]])[0, 0])   # s = 5, so 1 / (1 + 5/2)
    0.285714285714285...
    """

    alpha: float = positive(1.0)

    because: ClassVar = _schoenberg("the squared inverse width has a gamma distribution")
    divisible: ClassVar = (
        "k^r is the Laplace transform of a gamma distribution of shape rα: again a mixture of Gaussians"
    )
    formula: ClassVar = (
        r"\left(1+\frac{1}{2\cdot <alpha>}"
        r"\left\lVert\frac{x-z}{<lengthscale>}\right\rVert^2\right)^{-<alpha>}"
    )

    def value(self, s: Values) -> Values:
        return np.exp(-self.alpha * np.log1p(s / (2 * self.alpha)))

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        return GaussianMixture(d, 1.0, 1.0 / self.column_values("lengthscale", d), self._mixing)

    def _mixing(self, U: Array) -> Array:
        """The quantiles of τ ~ Γ(α)/α."""
        # scipy.stats takes a second to import, and only random features need it
        from scipy import stats

        return np.asarray(stats.gamma.ppf(U, self.alpha) / self.alpha)
