"""Features of rows that are on the workers of a cluster: ΦΦᵀ, and the sums by which ridge is solved in Φ.

    sums       Σ w φφᵀ, Σ w φy and ‖φ‖²      one pass, D × D numbers come back, whatever the number of rows
    errors     y - φ·β, and their Σ w φ      one pass, n numbers come back
    pull, push Σ φ r and φ·v                 one pass each

A pass is one task for every block. It makes the features of its rows, some at a time, and forgets them; the
workers add what the tasks sum up in the order of the blocks. So Φ is nowhere as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mercer import lapack
from mercer.arrays import Rows
from mercer.gram.blocks import Index, row_blocks
from mercer.gram.cluster import Cluster, active
from mercer.gram.distributed import LEAST_ROWS
from mercer.gram.of_kernel import Tiles
from mercer.gram.operators import GramOperator
from mercer.kernels.base import Kernel
from mercer.panels import whole_from_lower
from mercer.threads import no_blas_threads
from mercer.typing import Array


class RowMap(Protocol):
    """What makes features of rows: an approximation, or landmarks. It is sent to every worker."""

    @property
    def dimension(self) -> int: ...

    def features(self, rows: Rows) -> Array: ...


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """φ(x) = k(x, Z) C for landmarks Z."""

    kernel: Kernel
    z: Rows
    change: Array

    @property
    def dimension(self) -> int:
        return int(self.change.shape[1])

    def features(self, rows: Rows) -> Array:
        return np.asarray(Tiles(self.kernel, rows, self.z, n_jobs=1).dense() @ self.change)


class FeatureSums(NamedTuple):
    """Σ w (φ - mean)(φ - mean)ᵀ, Σ w (φ - mean) y, and ‖φ‖² of every row."""

    products: Array
    goal: Array
    norms: Array


def far_from_here(n: int) -> Cluster | None:
    """The cluster that computes what n rows have; None where there is none, or the rows are few."""
    return active() if n >= LEAST_ROWS else None


class FarFeatures(GramOperator):
    """Φ Φᵀ of rows on the workers, and what is summed over their features. `mean` is taken from each φ."""

    kind = "far features"

    def __init__(self, map: RowMap, rows: Rows, cluster: Cluster) -> None:
        self.map = map
        self.rows = rows
        self.cluster = cluster
        super().__init__(np.float64, (len(rows), len(rows)))

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return self.map.dimension

    # ── passes ──────────────────────────────────────────────────────────────────────────────────────────────

    def sums(self, weight: Array, Y: Array, mean: Array | None = None) -> FeatureSums:
        """The sums of the normal equations."""
        ((H, b, norms),) = self._pass(summed, mean, each=(weight, Y), total=True)
        return FeatureSums(whole_from_lower(np.asfortranarray(H)), b, np.concatenate(norms))

    def errors(self, Y: Array, weight: Array, beta: Array, mean: Array | None = None) -> tuple[Array, Array]:
        """R = Y - (φ - mean)·β of every row, and Σ w (φ - mean) R."""
        ((pull, parts),) = self._pass(missed, beta, mean, each=(weight, Y), total=True)
        return np.concatenate(parts), pull

    def pull(self, R: Array) -> Array:
        """Σ φ r."""
        ((out,),) = self._pass(pulled, each=(R.reshape(len(R), -1),), total=True)
        return np.asarray(out).reshape(-1, *R.shape[1:])

    def push(self, V: Array) -> Array:
        """φ·v of every row."""
        return np.concatenate(self._pass(pushed, V))

    def squares(self, lower: Array | None = None, mean: Array | None = None) -> Array:
        """‖L⁻¹(φ - mean)‖² of every row; without L, that of φ - mean."""
        return np.concatenate(self._pass(squared, lower, mean))

    def whole(self) -> Array:
        """Φ, which comes here: n × D numbers."""
        return np.concatenate(self._pass(written))

    def _pass(
        self,
        task: Callable[..., Any],
        *arrays: Any,
        each: tuple[Array, ...] | None = None,
        total: bool = False,
    ) -> list[Any]:
        spread = self.cluster.spread(self.rows)
        lines = spread.lines
        cut = None
        if each is not None:
            cut = [tuple(A[lines.rows(b)] for A in each) for b in range(lines.blocks)]
        return self.cluster.run(spread, task, None, self.map, *arrays, each=cut, blocks=True, total=total)

    # ── the operator ────────────────────────────────────────────────────────────────────────────────────────

    def _matmat(self, V: Array) -> Array:
        return self.push(self.pull(V))

    def diag(self) -> Array:
        return self.squares()

    def block(self, rows: Index, cols: Index) -> Array:
        every = np.arange(len(self.rows))
        left, right = (self.map.features(self.rows.rows(every[index])) for index in (rows, cols))
        return np.asarray(lapack.matmul(left, right.T))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Φ made here, some rows at a time: for questions about a fit that are asked after it."""
        return features_of_rows(self.rows, self.map)

    def _transpose(self) -> FarFeatures:
        return self


# ── tasks: pure functions of a block of rows ────────────────────────────────────────────────────────────────


def features_of_rows(rows: Rows, map: RowMap) -> Iterator[tuple[slice, Array]]:
    """φ of some rows at a time, and which they are."""
    for part in row_blocks(len(rows), map.dimension):
        yield part, map.features(rows.rows(np.arange(part.start, part.stop)))


def _less(P: Array, mean: Array | None) -> Array:
    return P if mean is None else P - mean


def summed(
    rows: Rows, number: int, asked: None, map: RowMap, mean: Array | None, each: tuple[Array, Array]
) -> tuple[Array, Array, list[Array]]:
    """The lower triangle of Σ w φφᵀ, Σ w φy, and ‖φ‖² of each row; the list grows by being added up."""
    w, Y = each
    H = np.zeros((map.dimension, map.dimension), order="F")
    b = np.zeros((map.dimension, Y.shape[1]))
    norms = np.empty(len(rows))
    with no_blas_threads():
        for part, P in features_of_rows(rows, map):
            norms[part] = np.einsum("ij,ij->i", P, P)
            P = _less(P, mean)
            b += P.T @ (w[part][:, None] * Y[part])
            if not np.all(w[part] == 1.0):
                P = P * np.sqrt(w[part])[:, None]
            H = lapack.syrk(1.0, P.T, beta=1.0, C=H)
    return H, b, [norms]


def missed(
    rows: Rows,
    number: int,
    asked: None,
    map: RowMap,
    beta: Array,
    mean: Array | None,
    each: tuple[Array, Array],
) -> tuple[Array, list[Array]]:
    """Σ w φ R and R = y - φ·β."""
    w, Y = each
    R = np.empty_like(Y)
    out = np.zeros_like(beta)
    with no_blas_threads():
        for part, P in features_of_rows(rows, map):
            P = _less(P, mean)
            R[part] = Y[part] - P @ beta
            out += P.T @ (w[part][:, None] * R[part])
    return out, [R]


def pulled(rows: Rows, number: int, asked: None, map: RowMap, each: tuple[Array]) -> tuple[Array]:
    """Σ φ r."""
    (R,) = each
    out = np.zeros((map.dimension, R.shape[1]))
    with no_blas_threads():
        for part, P in features_of_rows(rows, map):
            out += P.T @ R[part]
    return (out,)


def pushed(rows: Rows, number: int, asked: None, map: RowMap, V: Array) -> Array:
    """φ·v."""
    with no_blas_threads():
        return np.concatenate([P @ V for _, P in features_of_rows(rows, map)])


def squared(
    rows: Rows, number: int, asked: None, map: RowMap, lower: Array | None, mean: Array | None
) -> Array:
    """‖L⁻¹(φ - mean)‖²."""
    out = np.empty(len(rows))
    with no_blas_threads():
        for part, P in features_of_rows(rows, map):
            T = _less(P, mean).T
            T = T if lower is None else lapack.solve_triangular(lower, T)
            out[part] = np.einsum("ij,ij->j", T, T)
    return out


def written(rows: Rows, number: int, asked: None, map: RowMap) -> Array:
    """φ."""
    with no_blas_threads():
        return np.concatenate([P for _, P in features_of_rows(rows, map)])
