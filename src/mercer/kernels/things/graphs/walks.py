"""Common walks of two graphs, long ones counting less."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import ParameterError, PrecisionWarning, warn
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.things.graphs.colours import first_colours
from mercer.kernels.things.graphs.counting import graphs_of, require_alike, require_alike_samples
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.graphs.stack import Stack, stacked
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.params import shape_number
from mercer.typing import Array, Integers

# Relative residual at which a system is solved, and the most steps until then.
SOLVED = 1e-14
MOST_STEPS = 10_000
# How well eigenvalues are known, and some more.
ROUNDING = 1e-12


@leaf
class RandomWalk(Leaf):
    """Pairs of walks, one in each graph, over nodes with the same labels (Gärtner, Flach and Wrobel).

        k(x, z) = Σ_s decay^s (pairs of walks of s steps with the same labels) = 1ᵀ (I - decay A)⁻¹ 1

    A is the matrix of neighbours of the product graph: its nodes are the pairs of nodes with the same label.
    The sum is finite if decay < 1/(ρ(x) ρ(z)), where ρ is the largest eigenvalue of the matrix of
    neighbours; it is compared with the largest ρ of the graphs before anything is computed. Labels of edges
    are not read.

    >>> edge = [(0, 1)]
    >>> RandomWalk(0.5)([edge])                      # 4 pairs of nodes: 4 (1 + 1/2 + 1/4 + …)
    array([[8.]])
    >>> RandomWalk(1.0)([edge])
    Traceback (most recent call last):
    ...
    mercer.errors.ParameterError: RandomWalk: decay = 1 is too large for these graphs: ... below 1.
    """

    decay: float = shape_number(0.01, words="a number > 0", low=0.0)

    because: ClassVar = Fact(
        "convergent sum of inner products",
        "walks of s steps are counted by the labels they pass, and decay^s > 0; convergence is checked first",
    )
    formula: ClassVar = r"\mathbf 1^\top (I - <decay>\, A_{x\times z})^{-1}\, \mathbf 1"

    def takes_things(self) -> bool:
        return True

    def compare_columns(self, x: Rows, z: Rows) -> None:
        require_alike_samples(self, x, z)

    def block(self, x: Rows, z: Rows | None) -> Array:
        self._require_convergence(x, z)
        first = self._read(x)
        second = first if z is None else self._read(z)
        labels = Vocabulary()
        mine = first_colours(first, labels)
        theirs = first_colours(second, labels)
        walks = _Walks(self, second, theirs)
        starts = np.cumsum([0, *(graph.nodes for graph in first.graphs)])
        rows = []
        for i, graph in enumerate(first.graphs):
            # of one sample with itself, only the pairs (i, j) with j >= i
            begin = i if z is None else 0
            rows.append(walks.of(graph, mine[starts[i] : starts[i + 1]], begin))
        K = np.array(rows)
        if z is None:
            K = np.triu(K) + np.triu(K, 1).T
        return K

    def diagonal(self, x: Rows) -> Array:
        self._require_convergence(x, None)
        labels = Vocabulary()
        out = []
        for graph in self._read(x).graphs:
            alone = stacked([graph])
            colours = first_colours(alone, labels)
            out.append(_Walks(self, alone, colours).of(graph, colours, 0)[0])
        return np.array(out)

    def _read(self, x: Rows) -> Stack:
        def make() -> Stack:
            graphs = graphs_of(self, x)
            require_alike(graphs, x.name)
            return stacked(graphs)

        return x.remembered("stack of graphs", make)

    def _require_convergence(self, x: Rows, z: Rows | None) -> None:
        """Refuse a decay with which the sum of walks may not be finite."""
        samples = [x] if z is None else [x, z]
        largest, where = max(
            (float(radius), f"row {i} of {rows.name}")
            for rows in samples
            for i, radius in enumerate(_radii(self, rows))
        )
        # a sum that grows by all but rounding is not finite either
        if self.decay * largest**2 >= 1 - ROUNDING:
            raise ParameterError(
                f"RandomWalk: decay = {self.decay:g} is too large for these graphs: walks of {where} grow by "
                f"{largest:.6g} a step, so that the sum is surely finite only for decay below "
                f"{1 / largest**2:.6g}."
            )


def _radii(kernel: Leaf, x: Rows) -> Array:
    """The largest eigenvalue of each graph."""

    def make() -> Array:
        return np.array([_radius(graph) for graph in graphs_of(kernel, x)])

    return x.remembered("spectral radii", make)


def _radius(graph: Graph) -> float:
    if len(graph.edges) == 0:
        return 0.0
    return float(np.linalg.eigvalsh(graph.adjacency().toarray())[-1])


class _Walks:
    """Walks that graphs have in common with each graph of one stack, by conjugate gradients side by side."""

    def __init__(self, kernel: RandomWalk, stack: Stack, colours: Integers) -> None:
        self.kernel = kernel
        self.colours = colours
        self.first_node = np.cumsum([0, *(graph.nodes for graph in stack.graphs)])
        ones = np.ones(len(stack.target))
        shape = (stack.nodes, stack.nodes)
        self.neighbours = sparse.csr_array((ones, stack.target, stack.first), shape=shape)

    def of(self, graph: Graph, colours: Integers, begin: int) -> Array:
        """k of one graph with those of the stack from `begin` on; 0 for those before."""
        start = int(self.first_node[begin])
        ends = self.first_node[begin:] - start
        B = self.neighbours[start:, start:]
        A = graph.adjacency()
        same = (colours[:, None] == self.colours[None, start:]).astype(np.float64)

        def system(X: Array) -> Array:
            return np.asarray(X - self.kernel.decay * same * (A @ (B @ X.T).T))

        group = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        X = _solved(system, same, group, len(ends) - 1)
        return np.concatenate([np.zeros(begin), _sums(X, group, len(ends) - 1)])


def _solved(system: Callable[[Array], Array], right: Array, group: Integers, groups: int) -> Array:
    """X with system(X) = right: conjugate gradients, with steps of their own for each group of columns."""
    X = np.zeros_like(right)
    residual = right.copy()
    direction = right.copy()
    square = _sums(residual**2, group, groups)
    enough = SOLVED**2 * square
    for _ in range(MOST_STEPS):
        going = square > enough
        if not going.any():
            return X
        turned = system(direction)
        curvature = _sums(direction * turned, group, groups)
        step = np.divide(square, curvature, out=np.zeros(groups), where=going)[group]
        X += step * direction
        residual -= step * turned
        left = _sums(residual**2, group, groups)
        direction = residual + np.divide(left, square, out=np.zeros(groups), where=going)[group] * direction
        square = left
    warn(
        f"RandomWalk: {MOST_STEPS} steps of conjugate gradients did not reach a relative residual of "
        f"{SOLVED:g}. Take a smaller decay.",
        PrecisionWarning,
    )
    return X


def _sums(X: Array, group: Integers, groups: int) -> Array:
    """The sum of each group of columns."""
    return np.bincount(group, weights=X.sum(axis=0), minlength=groups).astype(np.float64, copy=False)
