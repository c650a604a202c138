"""The spectra of stationary kernels: k(x, z) = amplitude · E cos ω·(x - z) over random frequencies ω (Bochner).

One rule per kernel class. A rule says how many uniform numbers make one frequency and how: so the same rule serves plain,
quasi-random and, where the spectrum is a mixture of Gaussians, orthogonal frequencies.

    RBF                 ω ~ N(0, 1/ℓ²)
    Matern, Exponential N(0, τ/ℓ²), 1/τ ~ χ²(2ν)/2ν          (Student t)
    RationalQuadratic   N(0, τ/ℓ²), τ ~ Γ(α)/α
    Laplacian           Cauchy(1/ℓ) in each column
    Periodic            2πk/p with P(±k) ∝ I_k(1/ℓ²)          (a Fourier series)
    Cosine              ±2π/p
    SpectralMixture     2π(±μ_q + σ_q g) with P(q) ∝ w_q
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ive, ndtri

from mercer.arrays import Rows
from mercer.errors import ParameterError, ShapeError
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.leaves import columns, radial, special
from mercer.kernels.leaves.families import Radial

EXACT = 1e-14  # mass of a discrete spectrum that may be left out and still be called exact
MOST_TERMS = 4096  # of one Fourier series


class NoSpectrum(Exception):
    """The kernel has no rule here; the message says why."""


@dataclass(frozen=True)
class Spectrum:
    """Frequencies in d columns: `uniforms` numbers in (0, 1) make one of them; `amplitude` is k(x, x)."""

    d: int
    amplitude: float

    @property
    @abstractmethod
    def uniforms(self) -> int: ...

    @abstractmethod
    def frequencies(self, U: np.ndarray) -> np.ndarray:
        """ω, m × d, from m × uniforms numbers in (0, 1)."""

    def atoms(self, most: int) -> tuple[np.ndarray, np.ndarray] | None:
        """All frequencies and their probabilities, where the spectrum is discrete with at most so many; else None."""
        return None


@dataclass(frozen=True)
class GaussianMixture(Spectrum):
    """ω = √τ g / ℓ with g standard normal; `mixing` is the quantile function of τ, None for τ = 1."""

    inverse: np.ndarray
    mixing: Any = None

    @property
    def uniforms(self) -> int:
        return self.d + (self.mixing is not None)

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        return ndtri(U[:, : self.d]) * (self.scales(U[:, self.d :]) * self.inverse)

    def scales(self, U: np.ndarray) -> np.ndarray:
        """√τ, as a column."""
        return np.ones((len(U), 1)) if self.mixing is None else np.sqrt(self.mixing(U))


@dataclass(frozen=True)
class CauchyColumns(Spectrum):
    """Independent Cauchy frequencies of width 1/ℓ."""

    inverse: np.ndarray

    @property
    def uniforms(self) -> int:
        return self.d

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        return np.tan(np.pi * (U - 0.5)) * self.inverse


@dataclass(frozen=True)
class Series(Spectrum):
    """Independent discrete frequencies: in column j, base_j times a whole number k with P(k) = weights[j][|k|], mirrored."""

    base: np.ndarray
    weights: tuple[np.ndarray, ...]

    @property
    def uniforms(self) -> int:
        return self.d

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        out = np.empty((len(U), self.d))
        for j, w in enumerate(self.weights):
            signed = np.concatenate([0.5 * w[:0:-1], w[:1], 0.5 * w[1:]])
            k = np.searchsorted(np.cumsum(signed / signed.sum()), U[:, j], side="right")
            out[:, j] = np.minimum(k, len(signed) - 1) - (len(w) - 1)
        return out * self.base

    def atoms(self, most: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Up to a common sign, which cosines do not see."""
        lines = []
        for w in self.weights:
            k = np.arange(-(len(w) - 1), len(w))
            p = np.where(k == 0, 1.0, 0.5) * w[np.abs(k)]
            keep = p > EXACT / (4 * self.d * len(k))
            lines.append(list(zip(k[keep], p[keep], strict=True)))
        if np.prod([float(len(line)) for line in lines]) > 4 * most + 4:
            return None
        mass: dict[tuple[int, ...], float] = {}
        for combination in product(*lines):
            whole = tuple(int(c[0]) for c in combination)
            first = next((v for v in whole if v), 0)
            key = whole if first >= 0 else tuple(-v for v in whole)
            mass[key] = mass.get(key, 0.0) + float(np.prod([c[1] for c in combination]))
        if len(mass) > most:
            return None
        return np.array(list(mass)) * self.base, np.array(list(mass.values()))


@dataclass(frozen=True)
class Components(Spectrum):
    """One of several Gaussian blobs at ±means, with probabilities."""

    probability: np.ndarray
    means: np.ndarray
    scales: np.ndarray

    @property
    def uniforms(self) -> int:
        return 2 * self.d + 1

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        q = np.minimum(
            np.searchsorted(np.cumsum(self.probability), U[:, 0], side="right"), len(self.means) - 1
        )
        sign = np.where(U[:, 1 : self.d + 1] < 0.5, -1.0, 1.0)
        return 2 * np.pi * (sign * self.means[q] + self.scales[q] * ndtri(U[:, self.d + 1 :]))


@dataclass(frozen=True)
class SumOfFrequencies(Spectrum):
    """The spectrum of a product of kernels: independent frequencies are added."""

    parts: tuple[Spectrum, ...]

    @property
    def uniforms(self) -> int:
        return sum(p.uniforms for p in self.parts)

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        cuts = np.cumsum([p.uniforms for p in self.parts])[:-1]
        blocks = np.split(U, cuts, axis=1)
        return sum(
            (p.frequencies(b) for p, b in zip(self.parts[1:], blocks[1:], strict=True)),
            self.parts[0].frequencies(blocks[0]),
        )


@dataclass(frozen=True)
class Mapped(Spectrum):
    """The spectrum of k(Ax, Az): frequencies Aᵀω. Choosing columns is such an A."""

    inner: Spectrum
    A: np.ndarray

    @property
    def uniforms(self) -> int:
        return self.inner.uniforms

    def frequencies(self, U: np.ndarray) -> np.ndarray:
        return self.inner.frequencies(U) @ self.A

    def atoms(self, most: int) -> tuple[np.ndarray, np.ndarray] | None:
        found = self.inner.atoms(most)
        return None if found is None else (found[0] @ self.A, found[1])


# ── the rules ───────────────────────────────────────────────────────────────────────────────────────────────


@singledispatch
def spectrum(k: Kernel, d: int, names: Any = None) -> Spectrum:
    """The spectrum of a stationary kernel on d columns; `NoSpectrum` with the reason where there is none.

    >>> spectrum(radial.RBF(2.0), 3).frequencies(np.full((1, 3), 0.5))          # the middle of N(0, 1/4)
    array([[0., 0., 0.]])
    """
    raise NoSpectrum(f"{k} has no known spectrum")


def _inverse(k: Any, d: int, name: str = "lengthscale") -> np.ndarray:
    return 1.0 / k.column_values(name, d)


@spectrum.register
def _(k: Radial, d: int, names: Any = None) -> Spectrum:
    raise NoSpectrum(f"{k} is radial, but its mixture of Gaussians is not known")


@spectrum.register
def _(k: radial.RBF, d: int, names: Any = None) -> Spectrum:
    return GaussianMixture(d, 1.0, _inverse(k, d))


@spectrum.register
def _(k: radial.Exponential, d: int, names: Any = None) -> Spectrum:
    return GaussianMixture(d, 1.0, _inverse(k, d), _student(0.5))


@spectrum.register
def _(k: radial.Matern, d: int, names: Any = None) -> Spectrum:
    return GaussianMixture(d, 1.0, _inverse(k, d), _student(k.nu))


def _student(nu: float) -> Any:
    return lambda U: 2 * nu / stats.chi2.isf(U, 2 * nu)


@spectrum.register
def _(k: radial.RationalQuadratic, d: int, names: Any = None) -> Spectrum:
    return GaussianMixture(d, 1.0, _inverse(k, d), lambda U: stats.gamma.ppf(U, k.alpha) / k.alpha)


@spectrum.register
def _(k: columns.Laplacian, d: int, names: Any = None) -> Spectrum:
    return CauchyColumns(d, 1.0, _inverse(k, d))


@spectrum.register
def _(k: columns.Periodic, d: int, names: Any = None) -> Spectrum:
    weights = []
    for length in k.column_values("lengthscale", d):
        a = float(length) ** -2.0  # e^(-2 sin²(u/2)/ℓ²) = Σ c_k cos ku with c_0 = Ĩ_0(a), c_k = 2 Ĩ_k(a)
        terms = int(min(MOST_TERMS, 20 + a + 12 * np.sqrt(a)))
        w = 2 * ive(np.arange(terms), a)
        w[0] *= 0.5
        if not abs(w.sum() - 1) < 1e-12:
            raise NoSpectrum(
                f"{k} needs more than {MOST_TERMS} terms of its Fourier series, because its lengthscale is so small"
            )
        weights.append(w)
    return Series(d, 1.0, 2 * np.pi * _inverse(k, d, "period"), tuple(weights))


@spectrum.register
def _(k: columns.Cosine, d: int, names: Any = None) -> Spectrum:
    return Series(d, 1.0, 2 * np.pi * _inverse(k, d, "period"), (np.array([0.0, 1.0]),) * d)


@spectrum.register
def _(k: special.SpectralMixture, d: int, names: Any = None) -> Spectrum:
    if k.columns_needed()[0] != d:
        raise ShapeError(f"SpectralMixture: means are for {k.columns_needed()[0]} column(s), not {d}.")
    w = np.array(k.weights)
    means = np.array(k.means, dtype=float).reshape(len(w), -1)
    scales = np.array(k.scales, dtype=float).reshape(len(w), -1)
    return Components(d, float(w.sum()), w / w.sum(), means, scales)


@spectrum.register
def _(k: algebra.Scaled, d: int, names: Any = None) -> Spectrum:
    if k.scale < 0:
        raise NoSpectrum(f"{k} has a negative factor")
    inner = spectrum(k.kernel, d, names)
    return Mapped(d, k.scale * inner.amplitude, inner, np.eye(d))


@spectrum.register
def _(k: algebra.Product, d: int, names: Any = None) -> Spectrum:
    parts = tuple(spectrum(p, d, names) for p in k.parts)
    return SumOfFrequencies(d, float(np.prod([p.amplitude for p in parts])), parts)


@spectrum.register
def _(k: algebra.Power, d: int, names: Any = None) -> Spectrum:
    r = int(k.exponent)
    if r != k.exponent or not 1 <= r <= 64:
        raise NoSpectrum(f"{k} is not a product of copies: its exponent is not a whole number from 1 to 64")
    inner = spectrum(k.kernel, d, names)
    return SumOfFrequencies(d, inner.amplitude**r, (inner,) * r)


@spectrum.register
def _(k: algebra.On, d: int, names: Any = None) -> Spectrum:
    chosen = Rows(np.eye(d), "X", names).take(k.columns)
    A = np.asarray(chosen.vectors).T
    return Mapped(d, (inner := spectrum(k.kernel, len(A), chosen.names)).amplitude, inner, A)


@spectrum.register
def _(k: algebra.LinearMap, d: int, names: Any = None) -> Spectrum:
    A = np.array(k.A)
    if A.shape[1] != d:
        raise ShapeError(f"of(A): A has {A.shape[1]} columns, but there are {d}.")
    return Mapped(d, (inner := spectrum(k.kernel, len(A))).amplitude, inner, A)


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw(s: Spectrum, m: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """m frequencies: "gaussian" (independent), "orthogonal" (blocks at right angles) or "quasi" (scrambled Sobol or Halton)."""
    tiny = np.finfo(float).tiny
    if kind == "orthogonal":
        scale, inner = orthogonal(s)
        if inner is None:
            raise ParameterError(
                "kind='orthogonal' is for kernels whose spectrum is a mixture of Gaussians (RBF, Exponential, Matern, "
                "RationalQuadratic, and those on columns or after a matrix). Use 'quasi' or 'gaussian'."
            )
        return _orthogonal(inner, m, rng) @ scale
    if kind == "quasi":
        d = s.uniforms
        if d <= stats.qmc.Sobol.MAXDIM:
            engine: Any = stats.qmc.Sobol(d, rng=rng)
            U = engine.random_base2(int(np.ceil(np.log2(max(m, 1)))))[:m]
        else:
            U = stats.qmc.Halton(d, rng=rng).random(m)
    else:
        U = rng.random((m, s.uniforms))
    return s.frequencies(np.clip(U, tiny, 1 - 2**-53))


def orthogonal(s: Spectrum) -> tuple[np.ndarray, GaussianMixture | None]:
    """The mixture of Gaussians inside, and the matrix that its frequencies are multiplied by."""
    if isinstance(s, GaussianMixture):
        return np.eye(s.d), s
    if isinstance(s, Mapped):
        A, inner = orthogonal(s.inner)
        return A @ s.A, inner
    return np.eye(s.d), None


def _orthogonal(s: GaussianMixture, m: int, rng: np.random.Generator) -> np.ndarray:
    """Each ω is √τ χ_d u / ℓ as before, but the directions u are orthonormal in blocks of d."""
    blocks = []
    for _ in range(-(-m // s.d)):
        Q, R = np.linalg.qr(rng.standard_normal((s.d, s.d)))
        blocks.append((Q * np.sign(R.diagonal())).T)
    directions = np.vstack(blocks)[:m]
    lengths = np.sqrt(rng.chisquare(s.d, size=(m, 1)))
    mixing = (
        s.scales(np.clip(rng.random((m, s.uniforms - s.d)), 1e-300, 1.0)) if s.mixing is not None else 1.0
    )
    return directions * lengths * mixing * s.inverse
