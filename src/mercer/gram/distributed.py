"""K by the workers of a cluster: row blocks live there, and only vectors travel.

    K @ V             every worker gets V; a line of blocks answers with its rows of the product
    K[:, cols] @ V    every worker gets the chosen rows and V; a block answers with its rows
    K.contract(U, V)  as a product; a line answers with one number for each hyperparameter

Entries that are cheap to compute are computed where they are asked for (`block`, `diag`): sending one takes
longer. The whole of K is written down only where the memory allowed holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.errors import MemoryBudgetError
from mercer.gram import blocks
from mercer.gram.blocks import Index
from mercer.gram.cluster import Cluster, Part, active
from mercer.gram.core import Arguments
from mercer.gram.of_kernel import Tiles
from mercer.kernels.base import Kernel
from mercer.kernels.terms import noise_of
from mercer.memory import memory_limit, say_bytes
from mercer.threads import no_blas_threads
from mercer.typing import Array, Integers, Memory, Numbers, Table

if TYPE_CHECKING:
    from mercer.gram.cluster import Spread

# Rows from which the workers are asked: fewer are multiplied before a message has arrived.
LEAST_ROWS = 1000
# Entries of a block, and numbers read for one of them, from which the workers compute it.
LARGE_BLOCK = 1 << 22
WIDE = 128


class Distributed(Tiles):
    """K of a kernel on rows that are spread over the workers of a cluster.

    It is computed here once the cluster is gone, and copies and files hold it as `Tiles`.
    """

    kind = "distributed"

    def __init__(
        self,
        kernel: Kernel,
        X: Table | Rows,
        cluster: Cluster,
        *,
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
        memory: Memory | None = None,
    ) -> None:
        super().__init__(kernel, X, dtype=dtype, n_jobs=n_jobs)
        self.cluster = cluster
        self.memory = None if memory is None else memory_limit(memory)
        self.token = uuid4().hex

    @property
    def _spread(self) -> Spread:
        return self.cluster.spread(self.x)

    def _matmat(self, V: Array) -> Array:
        if not self.cluster.is_open:
            return super()._matmat(V)
        spread = self._spread
        V = np.ascontiguousarray(V, dtype=self.dtype)
        total = np.zeros((self.shape[0], V.shape[1]))
        found = self.cluster.run(spread, multiplied, self._asked, V)
        for task, part in zip(spread.lines.tasks, found, strict=True):
            spread.lines.add(part, task, total)
        return total.astype(self.dtype, copy=False)

    @property
    def is_far(self) -> bool:
        """Whether the workers compute it."""
        return self.cluster.is_open

    def columns_times(self, cols: Index, V: Array) -> Array:
        """K[:, cols] V, for a price that is proportional to the number of columns."""
        j = np.arange(self.shape[1])[cols]
        V = np.ascontiguousarray(V, dtype=np.float64).reshape(len(j), -1)
        if not self.cluster.is_open:
            return np.asarray(self.block(slice(None), j) @ V)
        found = self.cluster.run(self._spread, across, self._asked, self.x.rows(j), j, V)
        return np.concatenate(found)

    def block(self, rows: Index, cols: Index) -> Array:
        n = self.shape[0]
        i = np.arange(n)[rows]
        j = np.arange(n)[cols]
        cheap = self.low is not None and self.x.width < WIDE
        if not self.cluster.is_open or cheap or len(i) * len(j) < LARGE_BLOCK:
            return super().block(rows, cols)
        ends = self._spread.lines.ends
        each = [i[(i >= ends[t[0]]) & (i < ends[t[-1] + 1])] for t in self._spread.lines.tasks]
        found = self.cluster.run(self._spread, entries, self._asked, self.x.rows(j), j, each=each)
        out = np.empty((len(i), len(j)), dtype=self.dtype)
        out[np.argsort(_owner(self._spread, i), kind="stable")] = np.concatenate(found)
        return out

    def dense(self) -> Array:
        needed = self.shape[0] ** 2 * self.dtype.itemsize
        if self.memory is not None and needed > self.memory:
            raise MemoryBudgetError(
                f"this needs all entries of K at once, {say_bytes(needed)} for {self.shape[0]} rows; the "
                f"limit is {say_bytes(self.memory)}, and on a cluster K is never put together beyond it. "
                "Use a method that only multiplies with K (solver='cg'), landmarks (approximation=, "
                "FalkonRegressor), fewer rows, or raise memory=."
            )
        return super().dense()

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        if W is not None or not self.cluster.is_open:
            return super().contract(U, V, W=W)
        left, right, _ = self._weights(U, V, W)
        total = np.zeros(sum(p.free for p in self.kernel.parameters))
        for part in self.cluster.run(self._spread, contracted, self._asked, left, right):
            total += part
        if not np.isfinite(total).all():
            self._require_finite_values()
        return total

    def program(self) -> Arguments | None:
        """None while the workers compute: the core is not to compute rows here."""
        return None if self.cluster.is_open else super().program()

    @property
    def _asked(self) -> tuple[Kernel, npt.DTypeLike, str]:
        return self.kernel, self.dtype, self.token

    def _transpose(self) -> Distributed:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _tiles, (self.kernel, self.x, self.dtype, self.n_jobs)


def _tiles(kernel: Kernel, x: Rows, dtype: npt.DTypeLike, n_jobs: int | None) -> Tiles:
    return Tiles(kernel, x, dtype=dtype, n_jobs=n_jobs)


def tiles(
    kernel: Kernel,
    X: Table | Rows,
    *,
    dtype: npt.DTypeLike | None = None,
    n_jobs: int | None = None,
    memory: Memory | None = None,
) -> Tiles:
    """K of one sample that is not stored: by the cluster, where there is one and the rows are many."""
    rows = Rows.of(X, "X")
    spread = far_tiles(kernel, rows, dtype=dtype, n_jobs=n_jobs, memory=memory)
    return Tiles(kernel, rows, dtype=dtype, n_jobs=n_jobs) if spread is None else spread


def far_tiles(
    kernel: Kernel,
    rows: Rows,
    *,
    dtype: npt.DTypeLike | None = None,
    n_jobs: int | None = None,
    memory: Memory | None = None,
) -> Distributed | None:
    """K by the cluster that computes now; None where there is none, or the rows are few."""
    cluster = active()
    if cluster is None or len(rows) < LEAST_ROWS:
        return None
    return Distributed(kernel, rows, cluster, dtype=dtype, n_jobs=n_jobs, memory=memory)


# ── where the rows are ──────────────────────────────────────────────────────────────────────────────────────


def _owner(spread: Spread, rows: Integers) -> Integers:
    """The task whose own blocks hold each row."""
    ends = spread.lines.ends[[task[-1] + 1 for task in spread.lines.tasks]]
    return np.searchsorted(ends, rows, side="right")


# ── tasks: pure functions of a part of the rows, run by workers on one thread ───────────────────────────────

Asked = tuple[Kernel, npt.DTypeLike, str]


class Line(NamedTuple):
    """K of the rows on a line, and where its blocks are: in all rows, and in the part.

    `own` is K of its own block, and at which place that is on the line, where the pairs of a block with
    itself cannot be left out of the product, and are taken away again.
    """

    whole: Tiles
    rows: list[slice]
    places: list[slice]
    own: tuple[Tiles, int] | None

    def of(self, V: Array) -> Array:
        """The rows of V that are on the line."""
        return np.concatenate([V[rows] for rows in self.rows])


def _line(part: Part, line: int, asked: Asked) -> Line:
    """A line of a part, with its programs, which are kept for the next product."""
    kernel, dtype, token = asked

    def made(places: Integers) -> Tiles:
        return Tiles(kernel, part.rows.rows(places), dtype=dtype, n_jobs=1)

    def make() -> dict[int, Line]:
        return {}

    known = part.remembered(token, make)
    if line not in known:
        lines = part.lines
        on = sorted(lines.on(line))
        whole = made(part.places(on))
        own = None
        if lines.of_parts and whole.low is not None and whole.met is None:
            whole.parts = lines.parts(line)
        elif lines.order:
            own = made(part.places([line])), on.index(line)
        known[line] = Line(whole, [lines.rows(b) for b in on], part.slices(on), own)
    return known[line]


def multiplied(part: Part, task: list[int], asked: Asked, V: Array) -> Array:
    """The products of all lines of a task, summed, less what the lines have too often."""
    out = np.zeros((len(part.rows), V.shape[1]))
    with no_blas_threads():
        for number in task:
            line = _line(part, number, asked)
            product = line.whole @ line.of(V)
            at = 0
            for place in line.places:
                size = place.stop - place.start
                out[place] += product[at : at + size]
                at += size
            if line.own is not None:
                own, k = line.own
                mine = own @ np.ascontiguousarray(V[line.rows[k]])
                out[line.places[k]] -= part.lines.order * mine.astype(np.float64)
    return out.astype(V.dtype, copy=False)


def contracted(part: Part, task: list[int], asked: Asked, U: Array, V: Array) -> Array:
    """Σ U_i V_j ∂K_ij/∂θ over the lines of a task, less what the lines have too often."""
    total = np.zeros(sum(p.free for p in asked[0].parameters))
    with no_blas_threads():
        for number in task:
            line = _line(part, number, asked)
            total = total + line.whole.contract(line.of(U), line.of(V))
            if line.own is not None:
                own, k = line.own
                rows = line.rows[k]
                total = total - part.lines.order * own.contract(U[rows], V[rows])
    return total


def across(part: Part, task: list[int], asked: Asked, chosen: Rows, cols: Integers, V: Array) -> Array:
    """K[own rows, cols] V for the rows of the blocks that a task owns."""
    return np.concatenate([_beside(part, line, asked, chosen, cols, V) for line in task])


def _beside(part: Part, line: int, asked: Asked, chosen: Rows, cols: Integers, V: Array) -> Array:
    kernel, dtype, _ = asked
    own = part.lines.rows(line)
    x = part.rows.rows(part.places([line]))
    z = Rows(chosen.data, "Z", chosen.names)
    with no_blas_threads():
        out = np.asarray(Tiles(kernel, x, z, dtype=dtype, n_jobs=1) @ V.astype(dtype), dtype=np.float64)
        # Two samples have no noise in common; where they are the same observation, it is added.
        a, b = blocks.same_observations(np.arange(own.start, own.stop), cols)
        noise = noise_of(kernel, x.rows(a)) if len(a) else None
        if noise is not None:
            np.add.at(out, a, noise[:, None] * V[b])
    return out


def entries(part: Part, task: list[int], asked: Asked, chosen: Rows, cols: Integers, rows: Integers) -> Array:
    """K[rows, cols] for rows of the blocks that a task owns."""
    kernel, dtype, _ = asked
    first = part.lines.rows(task[0]).start
    x = part.rows.rows(part.places(task)).rows(rows - first)
    with no_blas_threads():
        out = np.array(Tiles(kernel, x, Rows(chosen.data, "Z", chosen.names), dtype=dtype, n_jobs=1).dense())
        a, b = blocks.same_observations(rows, cols)
        if len(a):
            out[a, b] = kernel.diagonal(x.rows(a))
    return out
