"""Sums over all rows of k(x, Z) products, a tile at a time: Falkon's share of data that do not fit in memory.

With K_ZZ = L Lᵀ and φ(x) = L⁻¹ k(Z, x), ridge regression on the span of the landmarks is

        (ΦᵀWΦ + αI) w = ΦᵀWy,        f(x) = φ(x)·w = k(x, Z) c,   c = L⁻ᵀ w
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.errors import InputError, NotPositiveDefiniteError
from mercer.gram import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.batches import Batch, passes
from mercer.machines.landmarks.selection import Basis, row_slices
from mercer.panels import even, whole_from_lower
from mercer.solve import Cholesky, cg, factor
from mercer.solve.solution import Solution
from mercer.sparse import Matrix, dense
from mercer.threads import side_by_side
from mercer.typing import Array, Labels

# Rows whose features stay in cache between a product with them and one with their transpose.
CHUNK = 256
# Rows whose features are computed in float64 before they are rounded.
PANEL = 1024
# Rows of a stripe at least, and stripes of a tile at most: each has a sum of its own.
STRIPE = 2048
STRIPES = 16
# Columns from which products are worth threads.
WIDE = 4

# Targets or weights of some rows, from what the source says of them and their places among all rows.
Targeting: TypeAlias = Callable[[Labels, slice], Array]
Weighting: TypeAlias = Callable[[Array, slice], Array]
# k(x, Z) of some rows, their targets and weights, and which rows they are.
Tile: TypeAlias = tuple[Array, Labels, Array, slice]


@dataclass(eq=False)
class Scan:
    """What one pass over the rows tells: how many, their total weight, and a sample of them."""

    n: int
    weight: float
    width: int
    rows: Matrix
    weights: Array


def scan(
    source: Iterable[Batch], size: int, rng: np.random.Generator, look: Callable[[Labels], None]
) -> Scan:
    """One pass: `look(y)` sees every batch of targets; up to `size` rows are kept, drawn by weight."""
    n = 0
    total = 0.0
    width = None
    kept: Matrix = None
    keys = np.empty(0)
    weights = np.empty(0)
    for A, y, w in passes(source):
        width = A.shape[1] if A.ndim == 2 else 0
        n += A.shape[0]
        look(y)
        X = written_out(A)
        total += float(w.sum())
        live = w > 0
        with np.errstate(divide="ignore"):
            # Rows with the largest log(u) / w are a draw by weight.
            fresh = np.log(rng.random(int(live.sum()))) / w[live]
        kept = X[live] if kept is None else np.concatenate([kept, X[live]])
        keys = np.concatenate([keys, fresh])
        weights = np.concatenate([weights, w[live]])
        if len(keys) > size:
            best = np.sort(np.argpartition(keys, -size)[-size:])
            kept = kept[best]
            keys = keys[best]
            weights = weights[best]
    if width is None:
        raise InputError("the source has 0 sample(s) while a minimum of 1 is required: it gave no rows.")
    if total == 0:
        raise InputError("all weights are zero, so no rows are left. Give some row a positive weight.")
    if len(keys) == size < n:
        # A row stands for its weight by having been drawn.
        weights = np.ones(size)
    return Scan(n, total, width, kept, weights)


def written_out(A: Matrix) -> Matrix:
    """Numbers as a dense float64 array; things as they are."""
    return A if A.dtype.kind == "O" else dense(A).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Sums:
    """M = ΦᵀWΦ, b = ΦᵀWY, and the sum of w y² over all targets."""

    M: Array
    b: Array
    size: float


class Streamed:
    """Products with Φ over a source of batches; the tiles k(x, Z) are in `dtype`, all else in float64.

    Tiles that fit in `memory`, in bytes, are kept after the first pass if `keep` is called.
    """

    def __init__(
        self,
        kernel: Kernel,
        Z: Matrix,
        basis: Basis,
        source: Iterable[Batch],
        names: Sequence[str] | None,
        dtype: str,
        n_jobs: int | None,
        n: int,
        memory: int = 0,
    ) -> None:
        self.kernel = kernel
        self.basis = basis
        self.source = source
        self.names = names
        self.n = n
        self.dtype = np.dtype(dtype)
        self.n_jobs = n_jobs
        self.z = Rows(self._rounded(Z), "landmarks", names)
        self.passes = 0
        self.careful = False
        self.memory = memory
        self.keeping = False
        self.kept: list[Tile] = []

    def keep(self) -> None:
        """From now on tiles are kept, if all of them fit in the memory allowed: there will be many passes."""
        self.keeping = self.n * self.basis.rank * self.dtype.itemsize <= self.memory

    def part(self, count: int) -> Streamed:
        """The same rows and the first landmarks only: their factor is the first part of L."""
        lower = np.asfortranarray(self.basis.lower[:count, :count])
        first = Basis(lower, self.basis.kept[:count], 0, self.basis.threshold)
        Z = self.z.data[:count]
        return Streamed(self.kernel, Z, first, self.source, self.names, self.dtype.name, self.n_jobs, self.n)

    def _rounded(self, A: Matrix) -> Matrix:
        """Numbers in the precision of the tiles; things as they are."""
        return A if A.dtype.kind == "O" else A.astype(self.dtype, copy=False)

    def tiles(self) -> Iterator[Tile]:
        """(k(x, Z), y, weight, which rows) for every row, about 64 MiB at a time."""
        self.passes += 1
        if self.kept:
            yield from self.kept
            return
        fresh: list[Tile] = []
        for tile in self._computed():
            if self.keeping:
                fresh.append(tile)
            yield tile
        self.kept = fresh

    def _computed(self) -> Iterator[Tile]:
        at = 0
        width = self.z.data.shape[1] if self.z.data.ndim == 2 else None
        for A, y, w in passes(self.source, width):
            X = dense(A)
            for part in row_slices(len(X), self.basis.rank, self.dtype.itemsize):
                x = Rows(self._rounded(X[part]), "X", self.names)
                K = Tiles(self.kernel, x, self.z, dtype=self.dtype, n_jobs=self.n_jobs).dense()
                yield K, y[part], w[part], slice(at + part.start, at + part.stop)
            at += len(X)

    def factored(
        self,
        alpha: float,
        targets: Targeting,
        weights: Weighting | None = None,
        known: Sums | None = None,
    ) -> tuple[Cholesky, Array]:
        """The factor of ΦᵀWΦ + αI, and ΦᵀWY; `targets(y, rows)` and `weights(w, rows)` say Y and W.

        `known` are their sums, where somebody has made them before.
        """
        found = self.sums(targets, weights) if known is None else known
        try:
            return factor(found.M, alpha), found.b
        except NotPositiveDefiniteError:
            if self.careful:
                raise
        self.careful = True
        found = self.sums(targets, weights)
        return factor(found.M, alpha), found.b

    def sums(self, targets: Targeting, weights: Weighting | None = None) -> Sums:
        """ΦᵀWΦ and ΦᵀWY.

        First K_ZnWK_nZ is summed and L taken out of the sum, in one pass. Where that left a matrix that
        rounding has made indefinite, another pass, and all later ones, take L out of every tile before
        summing, at twice the work. A pass that would end after the seconds is left by `clock.OutOfTime`,
        with what it would take.
        """
        r = self.basis.rank
        H = np.zeros((r, r), order="F")
        b: Array = np.zeros(1)
        size = 0.0
        began = clock.now()
        for K, y, w, rows in self.tiles():
            K = K.astype(np.float64, copy=False)
            own = not self.keeping
            if self.careful:
                # It is overwritten.
                K = self.basis.whiten(K if own else K.copy())
                own = True
            w = w if weights is None else weights(w, rows)
            Y = targets(y, rows)
            weighted = w[:, None] * Y
            b = b + self._against(K, weighted)
            size += float(np.vdot(weighted, Y))
            if not np.all(w == 1.0):
                K = np.multiply(K, np.sqrt(w)[:, None], out=K if own else None)
            H = lapack.syrk(1.0, K.T, beta=1.0, C=H)
            needed = (clock.now() - began) * self.n / rows.stop
            if began + needed >= clock.until():
                raise clock.OutOfTime(needed)
        H = whole_from_lower(H)
        if self.careful:
            return Sums(H, b, size)
        half = self.whiten(H)
        M = self.whiten(half.T)
        return Sums(even(M), self.whiten(b), size)

    def whiten(self, G: Array) -> Array:
        """L⁻¹ G: from sums over k(x, Z) to sums over φ(x)."""
        return lapack.solve_triangular(self.basis.lower, G)

    def right_side(self, targets: Targeting) -> Array:
        """ΦᵀWY."""
        out: Array = np.zeros(1)
        for K, y, w, rows in self.tiles():
            out = out + self._against(K, w[:, None] * targets(y, rows))
        return self.whiten(out)

    def right_side_of(self, pull: Array) -> Array:
        """Φᵀ pull, with a row of `pull` for every row."""
        out: Array = np.zeros(1)
        for K, _, _, rows in self.tiles():
            out = out + self._against(K, pull[rows])
        return self.whiten(out)

    def _against(self, K: Array, V: Array) -> Array:
        """KᵀV."""

        def work(stripe: slice) -> Array:
            summed: Array = _exact(K[stripe]).T @ V[stripe]
            return summed

        return in_stripes(work, len(K), jobs_for(V, self.n_jobs))

    def curvatures(self, T: Array) -> Curved:
        """Products with Tᵀ k(Z, x) S k(x, Z) T; k(x, Z) T is kept in float32 if it fits in memory."""
        needed = 4 * self.n * T.shape[1]
        if needed > self.memory or clock.late():
            return Anew(self, T)
        kept = Rounded(self.n, T.shape[1], self.n_jobs)
        # What is left is for k(x, Z) itself.
        self.memory -= needed
        self.keep()
        for K, _, _, rows in self.tiles():
            kept.fill(rows, K, T)
        return kept

    def bent(self, c: Array, S: Array) -> Array:
        """Σ k(Z, x) s (k(x, Z) c), with a row of S for every row."""
        out: Array = np.zeros(1)
        for K, _, _, rows in self.tiles():
            out = out + self._bent(K, c, S[rows])
        return out

    def bent_by_weight(self, c: Array, weights: Weighting | None) -> Array:
        """Σ w k(Z, x) k(x, Z) c, with the weights of the rows or what `weights` makes of them."""
        out: Array = np.zeros(1)
        for K, _, w, rows in self.tiles():
            w = w if weights is None else weights(w, rows)
            out = out + self._bent(K, c, w[:, None])
        return out

    def _bent(self, K: Array, c: Array, S: Array) -> Array:
        """Kᵀ (S · Kc)."""

        def work(stripe: slice) -> Array:
            part = _exact(K[stripe])
            bent: Array = part.T @ (S[stripe] * (part @ c))
            return bent

        return in_stripes(work, len(K), jobs_for(c, self.n_jobs))

    def labels_and_weights(self) -> tuple[Labels, Array]:
        """Targets and weights of all rows, in one pass."""
        parts = [(y, w) for _, y, w in passes(self.source)]
        self.passes += 1
        return np.concatenate([y for y, _ in parts]), np.concatenate([w for _, w in parts])

    def values(self, W: Array) -> Array:
        """ΦW for every row: n × columns of W."""
        c = self.basis.coefficients(W)
        parts = []
        for K, *_ in self.tiles():
            parts += self._times(K, c)
        return np.vstack(parts)

    def _times(self, K: Array, c: Array) -> list[Array]:
        """Kc by stripes."""

        def work(stripe: slice) -> Array:
            values: Array = _exact(K[stripe]) @ c
            return values

        return side_by_side(work, stripes(len(K)), jobs_for(c, self.n_jobs))


def stripes(n: int) -> list[slice]:
    """Rows that a thread does at a time: always the same, since sums depend on where they end."""
    step = max(STRIPE, -(-n // STRIPES))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def jobs_for(columns: Array, n_jobs: int | None) -> int | None:
    """Few columns are multiplied before a second thread has its turn with the interpreter."""
    return n_jobs if columns.shape[1] >= WIDE else 1


def in_stripes(work: Callable[[slice], Array], n: int, n_jobs: int | None) -> Array:
    """The sum of what `work` makes of each stripe of n rows."""
    return reduce(np.add, side_by_side(work, stripes(n), n_jobs))


def _exact(K: Array) -> Array:
    return K.astype(np.float64, copy=False)


class Curved(Protocol):
    """Tᵀ k(Z, x) S k(x, Z) T as an operator on the columns of P, each with a column of S of its own."""

    def product(self, P: Array, S: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Anew:
    """The products of `Curved` from tiles, one pass each."""

    of: Streamed
    T: Array

    def product(self, P: Array, S: Array) -> Array:
        return self.T.T @ self.of.bent(self.T @ P, S)


class Rounded:
    """The products of `Curved` from k(x, Z) T in float32: for directions, which need few digits."""

    def __init__(self, n: int, columns: int, n_jobs: int | None) -> None:
        self.phi = np.empty((n, columns), dtype=np.float32)
        self.n_jobs = n_jobs

    def fill(self, rows: slice, K: Array, T: Array) -> None:
        """The features of some rows, a panel at a time: what is rounded is still in cache."""
        part = self.phi[rows]

        def work(panel: slice) -> None:
            part[panel] = _exact(K[panel]) @ T

        panels = [slice(start, start + PANEL) for start in range(0, len(K), PANEL)]
        side_by_side(work, panels, self.n_jobs)

    def product(self, P: Array, S: Array) -> Array:
        few = P.astype(np.float32)

        def work(stripe: slice) -> Array:
            out = np.zeros(P.shape)
            for start in range(stripe.start, stripe.stop, CHUNK):
                rows = slice(start, min(start + CHUNK, stripe.stop))
                part = self.phi[rows]
                values = part @ few
                values *= S[rows]
                out += part.T @ values
            return out

        return in_stripes(work, len(self.phi), jobs_for(P, self.n_jobs))


class Normal:
    """ΦᵀWΦ as an operator: each product is one pass over the rows."""

    def __init__(self, of: Streamed, weights: Weighting | None = None) -> None:
        self.of = of
        self.weights = weights
        self.shape = (of.basis.rank, of.basis.rank)
        self.dtype = np.dtype(np.float64)

    def __matmul__(self, V: Array) -> Array:
        c = self.of.basis.coefficients(V.reshape(len(V), -1))
        return self.of.whiten(self.of.bent_by_weight(c, self.weights)).reshape(V.shape)


def landmark_factor(basis: Basis, share: float, alpha: float) -> Cholesky:
    """share · LᵀL + αI: ΦᵀWΦ + αI if the rows were the landmarks, each standing for `share` of the weight."""
    return factor(share * lapack.matmul(basis.lower.T, basis.lower), alpha, overwrite=True)


def solve_normal(
    of: Streamed,
    b: Array,
    alpha: float,
    inverse: Cholesky,
    *,
    weights: Weighting | None = None,
    start: bool,
    **limits: Any,
) -> Solution[Array]:
    """(ΦᵀWΦ + αI) w = b by conjugate gradients with `inverse`; with `start`, from the answer of `inverse`."""
    x0 = np.asarray(inverse @ b) if start else None
    return cg(Normal(of, weights), b, alpha, preconditioner=inverse, x0=x0, **limits)
