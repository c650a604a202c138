"""Sums over all rows of k(x, Z) products, a tile at a time: what Falkon needs of data that do not fit in memory.

With K_ZZ = L Lᵀ and φ(x) = L⁻¹ k(Z, x), ridge regression on the span of the landmarks is

        (ΦᵀWΦ + αI) w = ΦᵀWy,        f(x) = φ(x)·w = k(x, Z) c,   c = L⁻ᵀ w
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.errors import InputError, NotPositiveDefiniteError
from mercer.gram import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.batches import passes
from mercer.machines.landmarks.selection import Basis, row_slices
from mercer.panels import even, whole_from_lower
from mercer.solve import Cholesky, cg, factor
from mercer.solve.solution import Solution


@dataclass(eq=False)
class Scan:
    """What one pass over the rows tells: how many, their total weight, and a sample of them."""

    n: int
    weight: float
    width: int
    rows: Any
    weights: np.ndarray


def scan(source: Any, size: int, rng: np.random.Generator, look: Callable[[np.ndarray], None]) -> Scan:
    """One pass: `look(y)` sees every batch of targets; up to `size` rows are kept, drawn by weight if there are more."""
    n, total, width = 0, 0.0, None
    kept: Any = None
    keys = weights = np.empty(0)
    for A, y, w in passes(source):
        width, n = A.shape[1], n + A.shape[0]
        look(y)
        X = A.toarray() if not isinstance(A, np.ndarray) else A.astype(np.float64, copy=False)
        total += float(w.sum())
        live = w > 0
        with np.errstate(divide="ignore"):
            fresh = np.log(rng.random(int(live.sum()))) / w[live]  # the largest log(u) / w: draws by weight
        kept = X[live] if kept is None else np.vstack([kept, X[live]])
        keys, weights = np.concatenate([keys, fresh]), np.concatenate([weights, w[live]])
        if len(keys) > size:
            best = np.sort(np.argpartition(keys, -size)[-size:])
            kept, keys, weights = kept[best], keys[best], weights[best]
    if width is None:
        raise InputError("the source has 0 sample(s) while a minimum of 1 is required: it gave no rows.")
    if total == 0:
        raise InputError("all weights are zero, so no rows are left. Give some row a positive weight.")
    if len(keys) == size < n:
        weights = np.ones(size)  # a row stands for its weight by having been drawn
    return Scan(n, total, width, kept, weights)


class Streamed:
    """Products with Φ over a source of batches; the tiles are k(x, Z) in `dtype`, everything else is float64."""

    def __init__(
        self,
        kernel: Kernel,
        Z: Any,
        basis: Basis,
        source: Any,
        names: Any,
        dtype: Any,
        n_jobs: int | None,
        n: int,
    ) -> None:
        self.kernel, self.basis, self.source, self.names, self.n = kernel, basis, source, names, n
        self.dtype, self.n_jobs = np.dtype(dtype), n_jobs
        self.z = Rows(np.asarray(Z, dtype=dtype), "landmarks", names)
        self.passes, self.careful = 0, False

    def tiles(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, slice]]:
        """(k(x, Z), y, weight, which rows) for every row, about 64 MiB at a time."""
        at = 0
        self.passes += 1
        for A, y, w in passes(self.source, self.z.width):
            X = A.toarray() if not isinstance(A, np.ndarray) else A
            for part in row_slices(len(X), self.basis.rank, self.dtype.itemsize):
                x = Rows(X[part].astype(self.dtype, copy=False), "X", self.names)
                K = Tiles(self.kernel, x, self.z, dtype=self.dtype, n_jobs=self.n_jobs).dense()
                yield K, y[part], w[part], slice(at + part.start, at + part.stop)
            at += len(X)

    def factored(self, alpha: float, targets: Any, weights: Any = None) -> tuple[Cholesky, np.ndarray]:
        """The factor of ΦᵀWΦ + αI, and ΦᵀWY; `targets(y, rows)` and `weights(w, rows)` say Y and W.

        First K_ZnWK_nZ is summed and L taken out of the sum, in one pass. Where that leaves a matrix that rounding has made
        indefinite, another pass, and all later ones, take L out of every tile before summing, at twice the work. A pass that would end
        after the seconds is left by `clock.OutOfTime`, with what it would take.
        """
        if not self.careful:
            M, b = self._sums(targets, weights)
            try:
                return factor(M, alpha), b
            except NotPositiveDefiniteError:
                self.careful = True
        M, b = self._sums(targets, weights)
        return factor(M, alpha), b

    def _sums(self, targets: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        r = self.basis.rank
        H = np.zeros((r, r), order="F")
        b: Any = 0.0
        began = clock.now()
        for K, y, w, rows in self.tiles():
            K = K.astype(np.float64, copy=False)
            if self.careful:
                K = self.basis.whiten(K)
            w = w if weights is None else weights(w, rows)
            b = b + K.T @ (w[:, None] * targets(y, rows))
            if not np.all(w == 1.0):
                K *= np.sqrt(w)[:, None]
            H = lapack.syrk(1.0, K.T, beta=1.0, C=H)
            needed = (clock.now() - began) * self.n / rows.stop
            if began + needed >= clock.until():
                raise clock.OutOfTime(needed)
        H = whole_from_lower(H)
        if self.careful:
            return H, b
        half = self.whiten(H)
        M = self.whiten(half.T)
        return even(M), self.whiten(b)

    def whiten(self, G: np.ndarray) -> np.ndarray:
        """L⁻¹ G: from sums over k(x, Z) to sums over φ(x)."""
        return lapack.solve_triangular(self.basis.lower, G)

    def right_side(self, targets: Any) -> np.ndarray:
        """ΦᵀWY."""
        out: Any = 0.0
        for K, y, w, rows in self.tiles():
            out = out + K.T.astype(np.float64, copy=False) @ (w[:, None] * targets(y, rows))
        return self.whiten(out)

    def values(self, W: np.ndarray) -> np.ndarray:
        """ΦW for every row: n × columns of W."""
        c = self.basis.coefficients(W)
        return np.vstack([K.astype(np.float64, copy=False) @ c for K, *_ in self.tiles()])


class Normal:
    """ΦᵀWΦ as an operator: each product is one pass over the rows."""

    def __init__(self, of: Streamed, weights: Any = None) -> None:
        self.of, self.weights = of, weights
        self.shape, self.dtype = (of.basis.rank, of.basis.rank), np.dtype(np.float64)

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        c = self.of.basis.coefficients(V.reshape(len(V), -1))
        out: Any = 0.0
        for K, _, w, rows in self.of.tiles():
            K = K.astype(np.float64, copy=False)
            w = w if self.weights is None else self.weights(w, rows)
            out = out + K.T @ (w[:, None] * (K @ c))
        return self.of.whiten(out).reshape(V.shape)


def landmark_factor(basis: Basis, share: float, alpha: float) -> Cholesky:
    """share · LᵀL + αI: what ΦᵀWΦ + αI is when the rows are the landmarks, each standing for `share` of the weight."""
    return factor(share * lapack.matmul(basis.lower.T, basis.lower), alpha, overwrite=True)


def solve_normal(
    of: Streamed,
    b: np.ndarray,
    alpha: float,
    inverse: Any,
    *,
    weights: Any = None,
    start: bool,
    **limits: Any,
) -> Solution[np.ndarray]:
    """(ΦᵀWΦ + αI) w = b by conjugate gradients with `inverse`; with `start`, from what `inverse` says the answer is."""
    x0 = np.asarray(inverse @ b) if start else None
    return cg(Normal(of, weights), b, alpha, preconditioner=inverse, x0=x0, **limits)
