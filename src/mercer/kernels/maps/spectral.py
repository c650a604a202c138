"""The spectra of stationary kernels: k(x, z) = amplitude · E cos ω·(x - z) over random ω (Bochner).

`Kernel.spectrum` says which of these a kernel has. A spectrum says how many uniform numbers make one
frequency and how: so the same spectrum serves plain, quasi-random and, where it is a mixture of Gaussians,
orthogonal frequencies.

    RBF                 ω ~ N(0, 1/ℓ²)
    Matern, Exponential N(0, τ/ℓ²), 1/τ ~ χ²(2ν)/2ν          (Student t)
    RationalQuadratic   N(0, τ/ℓ²), τ ~ Γ(α)/α
    Laplacian           Cauchy(1/ℓ) in each column
    Periodic            2πk/p with P(±k) ∝ I_k(1/ℓ²)          (a Fourier series)
    ZeroMeanPeriodic    the same without k = 0
    Cosine              ±2π/p
    SpectralMixture     2π(±μ_q + σ_q g) with P(q) ∝ w_q
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import ndtri

from mercer.errors import ParameterError
from mercer.typing import Array

# Mass of a discrete spectrum that may be left out and still be called exact.
EXACT = 1e-14


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
    def frequencies(self, U: Array) -> Array:
        """ω, m × d, from m × uniforms numbers in (0, 1)."""

    def atoms(self, most: int) -> tuple[Array, Array] | None:
        """All frequencies and probabilities of a discrete spectrum with at most `most` of them; else None."""
        return None


@dataclass(frozen=True)
class GaussianMixture(Spectrum):
    """ω = √τ g / ℓ with g standard normal; `mixing` is the quantile function of τ, None for τ = 1."""

    inverse: Array
    mixing: Callable[[Array], Array] | None = None

    @property
    def uniforms(self) -> int:
        return self.d + (self.mixing is not None)

    def frequencies(self, U: Array) -> Array:
        return np.asarray(ndtri(U[:, : self.d]) * (self.scales(U[:, self.d :]) * self.inverse))

    def scales(self, U: Array) -> Array:
        """√τ, as a column."""
        if self.mixing is None:
            return np.ones((len(U), 1))
        return np.sqrt(self.mixing(U))


@dataclass(frozen=True)
class CauchyColumns(Spectrum):
    """Independent Cauchy frequencies of width 1/ℓ."""

    inverse: Array

    @property
    def uniforms(self) -> int:
        return self.d

    def frequencies(self, U: Array) -> Array:
        return np.tan(np.pi * (U - 0.5)) * self.inverse


@dataclass(frozen=True)
class Series(Spectrum):
    """Independent discrete frequencies, multiples of a base in each column.

    In column j, base_j times a whole number k with P(k) = weights[j][|k|], mirrored.
    """

    base: Array
    weights: tuple[Array, ...]

    @property
    def uniforms(self) -> int:
        return self.d

    def frequencies(self, U: Array) -> Array:
        out = np.empty((len(U), self.d))
        for j, w in enumerate(self.weights):
            signed = np.concatenate([0.5 * w[:0:-1], w[:1], 0.5 * w[1:]])
            k = np.searchsorted(np.cumsum(signed / signed.sum()), U[:, j], side="right")
            out[:, j] = np.minimum(k, len(signed) - 1) - (len(w) - 1)
        return out * self.base

    def atoms(self, most: int) -> tuple[Array, Array] | None:
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

    probability: Array
    means: Array
    scales: Array

    @property
    def uniforms(self) -> int:
        return 2 * self.d + 1

    def frequencies(self, U: Array) -> Array:
        q = np.minimum(
            np.searchsorted(np.cumsum(self.probability), U[:, 0], side="right"), len(self.means) - 1
        )
        sign = np.where(U[:, 1 : self.d + 1] < 0.5, -1.0, 1.0)
        return np.asarray(2 * np.pi * (sign * self.means[q] + self.scales[q] * ndtri(U[:, self.d + 1 :])))


@dataclass(frozen=True)
class SumOfFrequencies(Spectrum):
    """The spectrum of a product of kernels: independent frequencies are added."""

    parts: tuple[Spectrum, ...]

    @property
    def uniforms(self) -> int:
        return sum(p.uniforms for p in self.parts)

    def frequencies(self, U: Array) -> Array:
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
    A: Array

    @property
    def uniforms(self) -> int:
        return self.inner.uniforms

    def frequencies(self, U: Array) -> Array:
        return self.inner.frequencies(U) @ self.A

    def atoms(self, most: int) -> tuple[Array, Array] | None:
        found = self.inner.atoms(most)
        if found is None:
            return None
        return (found[0] @ self.A, found[1])


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw(s: Spectrum, m: int, kind: str, rng: np.random.Generator) -> Array:
    """m frequencies of a spectrum, drawn as `kind` says.

    "gaussian" (independent), "orthogonal" (blocks at right angles) or "quasi" (scrambled Sobol or Halton).
    """
    # scipy.stats takes a second to import, and only those who draw need it
    from scipy import stats

    tiny = np.finfo(float).tiny
    if kind == "orthogonal":
        scale, inner = orthogonal(s)
        if inner is None:
            raise ParameterError(
                "kind='orthogonal' is for kernels whose spectrum is a mixture of Gaussians (RBF, "
                "Exponential, Matern, "
                "RationalQuadratic, and those on columns or after a matrix). Use 'quasi' or 'gaussian'."
            )
        return _orthogonal(inner, m, rng) @ scale
    if kind == "quasi":
        d = s.uniforms
        if d <= stats.qmc.Sobol.MAXDIM:
            U = stats.qmc.Sobol(d, rng=rng).random_base2(int(np.ceil(np.log2(max(m, 1)))))[:m]
        else:
            U = stats.qmc.Halton(d, rng=rng).random(m)
    else:
        U = rng.random((m, s.uniforms))
    return s.frequencies(np.clip(U, tiny, 1 - 2**-53))


def orthogonal(s: Spectrum) -> tuple[Array, GaussianMixture | None]:
    """The mixture of Gaussians inside, and the matrix that its frequencies are multiplied by."""
    if isinstance(s, GaussianMixture):
        return np.eye(s.d), s
    if isinstance(s, Mapped):
        A, inner = orthogonal(s.inner)
        return A @ s.A, inner
    return np.eye(s.d), None


def _orthogonal(s: GaussianMixture, m: int, rng: np.random.Generator) -> Array:
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
