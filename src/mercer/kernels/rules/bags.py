"""A kernel of bags from a kernel of points: `RBF(1.0).bags()` compares the mean embeddings of two bags.

    k(X, Z) = (1/|X||Z|) Σ_(a in X) Σ_(b in Z) k(a, b)

A bag is an array of points, or a list of things. `RBF().of(k.bags())` is a Gaussian of the distance of two
mean embeddings, the MMD: what distribution regression uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import InputTypeError, ShapeError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.rules.combined import Unary, remembered
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import given
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

# Kernel values of points that are held at the same time.
AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class Stack:
    """The points of all bags, one bag after the other."""

    points: Rows
    starts: Integers
    """Where each bag begins, and where the last one ends."""

    @property
    def sizes(self) -> Integers:
        """How many points each bag has."""
        return np.diff(self.starts)

    def averaging(self) -> Matrix:
        """The matrix with which values at the points become means over bags: bags × points."""
        weights = np.repeat(1 / self.sizes, self.sizes)
        places = np.arange(int(self.starts[-1]))
        return sparse.csr_array((weights, places, self.starts), shape=(len(self.sizes), len(places)))

    def some(self, first: int, last: int) -> Rows:
        """The points from one place to another."""
        return self.points.rows(np.arange(first, last))

    def panels(self, columns: int) -> Iterator[slice]:
        """Slices of points whose products with so many others are few enough."""
        step = max(1, AT_ONCE // max(columns, 1))
        total = int(self.starts[-1])
        for first in range(0, total, step):
            yield slice(first, min(first + step, total))


@expression
class Bags(Unary):
    """The inner product of the mean embeddings of two bags of points."""

    kernel: Kernel = given()

    def takes_things(self) -> bool:
        return True

    def reads_numbers(self) -> bool:
        return False

    def columns_needed(self) -> tuple[int | None, int]:
        return None, 1

    def compare_columns(self, x: Rows, z: Rows) -> None:
        self.kernel.compare_columns(self.stacked(x).points, self.stacked(z).points)

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        stack = self.stacked(rows)
        each = None if weight is None else np.repeat(weight, stack.sizes)
        return self.with_children([self.kernel.resolved_on(stack.points, each)])

    def stacked(self, x: Rows) -> Stack:
        """The points of all bags, put together once for each sample."""
        numbers = self.kernel.reads_numbers()
        return x.remembered(("bags", numbers), lambda: _stacked(x, numbers))

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self.stacked(x)
        b = a if z is None else self.stacked(z)
        left = sparse.csc_array(a.averaging())
        right = sparse.csc_array(b.averaging())
        total = int(b.starts[-1])
        out = np.zeros((len(a.sizes), len(b.sizes)))
        for rows in a.panels(total):
            # of one sample only the upper half is needed
            first = rows.start if z is None else 0
            G = np.asarray(self.kernel(a.some(rows.start, rows.stop), b.some(first, total)), dtype=float)
            out += left[:, rows] @ (right[:, first:] @ G.T).T
        if z is None:
            out = np.triu(out, 1)
            out += out.T
            np.fill_diagonal(out, self.diagonal(x))
        return out

    def diagonal(self, x: Rows) -> Array:
        stack = self.stacked(x)
        out = np.empty(len(stack.sizes))
        for i, n in enumerate(stack.sizes):
            # the points of a bag are the same observations on both sides
            K = self.kernel.gram(stack.some(stack.starts[i], stack.starts[i + 1]), memory=8 * AT_ONCE)
            out[i] = float(np.sum(K @ np.ones(n))) / n**2
        return out

    def contract(self, W: Array, at: Sweep) -> None:
        a = self.stacked(at.x)
        b = self.stacked(at.z)
        left = sparse.csc_array(a.averaging())
        right = b.averaging()
        total = int(b.starts[-1])
        inside = at.child("kernel")
        for rows in a.panels(total):
            weights = left[:, rows].T @ (right.T @ W.T).T
            start = None if at.start is None else int(b.starts[at.start]) + rows.start
            part = replace(inside, x=a.some(rows.start, rows.stop), z=b.points, start=start)
            self.kernel.contract(np.asarray(weights), part)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        stack = self.stacked(x)
        inner = self.kernel.sparse_map(stack.points)
        if inner is None:
            return None
        mean = sparse.csr_array(stack.averaging() @ inner.matrix)
        return SparseMap(inner.names, mean, partial(self._mean_of, inner.without_rows()))

    def _mean_of(self, inner: SparseMap, rows: Rows) -> Matrix:
        """The mean over each bag of the features of its points."""
        stack = self.stacked(rows)
        return sparse.csr_array(stack.averaging() @ inner.of_rows(stack.points))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.bags()"

    def latex(self) -> str:
        return rf"\frac{{1}}{{|X||Z|}}\sum_{{x\in X}}\sum_{{z\in Z}} {self.kernel.latex_inside(2)}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(
            Fact("mean embedding", "k(X, Z) is the inner product of the means of φ over X and over Z")
        )


def _stacked(x: Rows, numbers: bool) -> Stack:
    bags = [_points(thing, i, x, numbers) for i, thing in enumerate(x.things)]
    starts = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
    name = f"the bags of {x.name}"
    if not numbers:
        return Stack(Rows([point for bag in bags for point in bag], name), starts)
    for i, bag in enumerate(bags):
        if bag.shape[1] != bags[0].shape[1]:
            raise ShapeError(
                f"row {i} of {x.name} is a bag of points with {bag.shape[1]} columns, and those of row 0 "
                f"have {bags[0].shape[1]}. Give all points the same columns."
            )
    points = Rows(np.vstack(bags), name)
    if not np.all(np.isfinite(points.data)):
        row, column = np.argwhere(~np.isfinite(points.data))[0].tolist()
        bag = int(np.searchsorted(starts, row, side="right")) - 1
        raise InputTypeError(
            f"row {bag} of {x.name}, point {row - int(starts[bag])}, has {points.data[row, column]} in "
            f"column {column}: the points of a bag are finite numbers. Leave the point out, or fill it in."
        )
    return Stack(points, starts)


def _points(thing: Thing, i: int, x: Rows, numbers: bool) -> Thing:
    """The points of one bag: an array of rows, or a list of things."""
    if thing is None or isinstance(thing, str) or not hasattr(thing, "__len__") or len(thing) == 0:
        got = "None" if thing is None else f"a {type(thing).__name__}"
        if thing is not None and hasattr(thing, "__len__") and len(thing) == 0:
            got = "an empty bag"
        raise InputTypeError(f"bags() reads bags of points, but row {i} of {x.name} is {got}.")
    if not numbers:
        return list(thing)
    try:
        points = np.asarray(thing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"row {i} of {x.name} is no bag of points in numbers: {error}.") from error
    if points.ndim == 1:
        return points[:, None]
    if points.ndim != 2:
        raise ShapeError(f"row {i} of {x.name} is a bag of shape {points.shape}; give points x columns.")
    return points
