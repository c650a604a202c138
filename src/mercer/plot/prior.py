"""Random functions with a given covariance, f ~ GP(0, k), on a grid: the numbers behind the pictures.

A Gram matrix is often singular (a linear kernel has rank 1), so it is factored by its eigenvalues:
f = V √Λ z with z standard normal. Eigenvalues negative by no more than rounding count as 0; where one is
negative by more there is no such random function, which is said rather than hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.typing import Array


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of a Gram matrix, ascending, with its eigenvectors."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, K: Array) -> Spectrum:
        values, vectors = linalg.eigh(0.5 * (K + K.T))
        return cls(values, vectors)

    @property
    def threshold(self) -> float:
        """What rounding can make of a zero eigenvalue."""
        return float(50 * len(self.values) * np.finfo(float).eps * np.abs(self.values).max())

    @property
    def negative(self) -> int:
        """How many eigenvalues are negative beyond rounding."""
        return int((self.values < -self.threshold).sum())

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """`count` random functions, one per column."""
        # The largest eigenvalue gets the first number, so that a finer grid changes a sample little.
        z = rng.standard_normal((len(self.values), count))[::-1]
        functions: Array = self.vectors @ (np.sqrt(np.clip(self.values, 0.0, None))[:, None] * z)
        return functions


@dataclass(frozen=True)
class Prior:
    """Sample functions on a grid, and the standard deviation of the noise that each observation adds."""

    functions: Array
    noise: Array


def sample_prior(K: Array, between: Array, count: int, seed: int) -> Prior | Spectrum:
    """Samples from GP(0, K), the noise of single observations apart; or the spectrum, where K is indefinite.

    `K` is k(X), in which an observation meets itself; `between` is k(X, X), two samples at the same places.
    They differ by the white noise of the kernel, on the diagonal only.
    """
    rng = np.random.default_rng(seed)
    noise = np.diag(K) - np.diag(between)
    noise = np.where(np.abs(noise) <= 1e-12 * np.abs(np.diag(K)), 0.0, noise)
    smooth = Spectrum.of(between)
    if noise.min() >= 0 and not smooth.negative:
        return Prior(smooth.draw(count, rng), np.sqrt(noise))
    whole = Spectrum.of(K)
    return whole if whole.negative else Prior(whole.draw(count, rng), np.zeros(len(K)))
