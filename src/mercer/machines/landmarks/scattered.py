"""Falkon's sums over rows that are on the workers of a cluster: one pass is one task for every block.

A task makes the tiles k(x, Z) of its block and returns what it sums over them; the workers add these sums in
the order of the blocks, so that m × m numbers come back, whatever the number of rows. The rows never come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.gram import Tiles
from mercer.gram.cluster import Cluster, Spread
from mercer.gram.elsewhere import some_rows
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.selection import Basis, row_slices
from mercer.machines.landmarks.streamed import (
    Anew,
    Curved,
    Scan,
    Streamed,
    Sums,
    Targeting,
    Weighting,
    written_out,
)
from mercer.panels import even, whole_from_lower
from mercer.sparse import dense
from mercer.threads import no_blas_threads
from mercer.typing import Array, Labels


@dataclass(frozen=True, eq=False)
class FarRows:
    """Rows on the workers of a cluster, with their targets and weights, which are here."""

    cluster: Cluster
    spread: Spread
    y: Labels
    weight: Array
    width: int

    @property
    def n(self) -> int:
        return self.spread.lines.n

    def scan(self, size: int, rng: np.random.Generator, look: Callable[[Labels], None]) -> Scan:
        """What `streamed.scan` finds, from the same random numbers; only the sample comes here."""
        look(self.y)
        live = np.flatnonzero(self.weight > 0)
        if not len(live):
            raise InputError("all weights are zero, so no rows are left. Give some row a positive weight.")
        keys = np.log(rng.random(len(live))) / self.weight[live]
        if len(live) > size:
            live = live[np.sort(np.argpartition(keys, -size)[-size:])]
        weights = self.weight[live]
        if len(live) == size < self.n:
            # A row stands for its weight by having been drawn.
            weights = np.ones(size)
        rows = written_out(some_rows(self.cluster, self.spread, live))
        return Scan(self.n, float(self.weight.sum()), self.width, rows, weights)


class Asked(NamedTuple):
    """The kernel, the precision of the tiles, and the names of the columns."""

    kernel: Kernel
    dtype: np.dtype
    names: list[str] | None


class Scattered(Streamed):
    """Products with Φ over rows on the workers; what a pass sums comes back, and nothing else."""

    def __init__(self, kernel: Kernel, Z: Any, basis: Basis, far: FarRows, **options: Any) -> None:
        super().__init__(kernel, Z, basis, (), n=far.n, **options)
        self.far = far

    def keep(self) -> None:
        """Tiles are computed anew in every pass: they would be the workers' memory, not ours."""

    def part(self, count: int) -> Scattered:
        lower = np.asfortranarray(self.basis.lower[:count, :count])
        first = Basis(lower, self.basis.kept[:count], 0, self.basis.threshold)
        options = {"names": self.names, "dtype": self.dtype.name, "n_jobs": self.n_jobs}
        return Scattered(self.kernel, self.z.data[:count], first, self.far, **options)

    def labels_and_weights(self) -> tuple[Labels, Array]:
        return self.far.y, self.far.weight

    def sums(self, targets: Targeting, weights: Weighting | None = None) -> Sums:
        began = clock.now()
        every = slice(0, self.n)
        w = self.far.weight if weights is None else weights(self.far.weight, every)
        Y = targets(self.far.y, every)
        lower = self.basis if self.careful else None
        each = self._cut(w, Y)
        ((H, b),) = self._pass(summed, lower, each=each, total=True)
        if clock.late():
            raise clock.OutOfTime(clock.now() - began)
        size = float(np.vdot(w[:, None] * Y, Y))
        H = whole_from_lower(np.asfortranarray(H))
        if self.careful:
            return Sums(H, b, size)
        half = self.whiten(H)
        return Sums(even(self.whiten(half.T)), self.whiten(b), size)

    def right_side(self, targets: Targeting) -> Array:
        every = slice(0, self.n)
        return self.right_side_of(self.far.weight[:, None] * targets(self.far.y, every))

    def right_side_of(self, pull: Array) -> Array:
        ((b,),) = self._pass(pulled, each=self._cut(pull), total=True)
        return self.whiten(b)

    def values(self, W: Array) -> Array:
        return np.vstack(self._pass(pushed, self.basis.coefficients(W)))

    def bent(self, c: Array, S: Array) -> Array:
        ((out,),) = self._pass(bent, c, each=self._cut(S), total=True)
        return np.asarray(out)

    def bent_by_weight(self, c: Array, weights: Weighting | None) -> Array:
        w = self.far.weight if weights is None else weights(self.far.weight, slice(0, self.n))
        return self.bent(c, w[:, None])

    def curvatures(self, T: Array) -> Curved:
        return Anew(self, T)

    def _cut(self, *arrays: Array) -> list[tuple[Array, ...]]:
        lines = self.far.spread.lines
        return [tuple(A[lines.rows(b)] for A in arrays) for b in range(lines.blocks)]

    def _pass(self, task: Callable[..., Any], *arrays: Any, **options: Any) -> list[Any]:
        """One pass over the rows: the task for every block, with the landmarks and `arrays`."""
        self.passes += 1
        asked = Asked(self.kernel, self.dtype, None if self.names is None else list(self.names))
        far = self.far
        return far.cluster.run(far.spread, task, asked, self.z, *arrays, blocks=True, **options)


# ── tasks: pure functions of a block of rows ────────────────────────────────────────────────────────────────


def _tiles(rows: Rows, asked: Asked, z: Rows) -> Iterator[tuple[slice, Array]]:
    """k(x, Z) of a block, some rows at a time, in float64."""
    things = getattr(rows.data, "dtype", np.dtype(object)).kind == "O"
    X = rows.data if things else dense(rows.vectors).astype(asked.dtype, copy=False)
    for part in row_slices(len(rows), len(z), asked.dtype.itemsize):
        x = Rows(X[part], "X", asked.names)
        K = Tiles(asked.kernel, x, z, dtype=asked.dtype, n_jobs=1).dense()
        yield part, K.astype(np.float64, copy=False)


def summed(
    rows: Rows, number: int, asked: Asked, z: Rows, basis: Basis | None, each: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Σ w k(Z, x) k(x, Z), its lower triangle, and Σ w k(Z, x) y; of φ if there is a basis."""
    w, Y = each
    H = np.zeros((len(z), len(z)), order="F")
    b = np.zeros((len(z), Y.shape[1]))
    with no_blas_threads():
        for part, K in _tiles(rows, asked, z):
            K = K if basis is None else basis.whiten(K)
            b += K.T @ (w[part][:, None] * Y[part])
            if not np.all(w[part] == 1.0):
                K = K * np.sqrt(w[part])[:, None]
            H = lapack.syrk(1.0, K.T, beta=1.0, C=H)
    return H, b


def pulled(rows: Rows, number: int, asked: Asked, z: Rows, each: tuple[Array]) -> tuple[Array]:
    """Σ k(Z, x) r."""
    (R,) = each
    with no_blas_threads():
        return (sum((K.T @ R[part] for part, K in _tiles(rows, asked, z)), np.zeros((len(z), R.shape[1]))),)


def pushed(rows: Rows, number: int, asked: Asked, z: Rows, c: Array) -> Array:
    """k(x, Z) c."""
    with no_blas_threads():
        return np.vstack([K @ c for _, K in _tiles(rows, asked, z)])


def bent(rows: Rows, number: int, asked: Asked, z: Rows, c: Array, each: tuple[Array]) -> tuple[Array]:
    """Σ k(Z, x) s (k(x, Z) c)."""
    (S,) = each
    out = np.zeros((len(z), c.shape[1]))
    with no_blas_threads():
        for part, K in _tiles(rows, asked, z):
            out += K.T @ (S[part] * (K @ c))
    return (out,)
