"""How many small graphs are inside a large one: exact counts, by formulas instead of a look at every subset.

Counted first is how often each small graph H can be laid into the edges of G (`_laid`), for which there are
formulas in degrees, common neighbours and triangles. The subgraphs that nodes of G span, no more and no fewer
edges, follow from them by a triangular system of whole numbers: a graph with many edges contains those
with few in known numbers (`_contains`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.graphs.counting import Found, GraphCounts
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.graphs.stack import Stack
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.params import whole
from mercer.typing import Array, Integers

Edges = tuple[tuple[int, int], ...]

# Small graphs by name, those with fewer edges first.
SHAPES: dict[int, dict[str, Edges]] = {
    3: {
        "3 nodes": (),
        "edge + node": ((0, 1),),
        "path of 3": ((0, 1), (1, 2)),
        "triangle": ((0, 1), (1, 2), (0, 2)),
    },
    4: {
        "4 nodes": (),
        "edge + 2 nodes": ((0, 1),),
        "2 edges": ((0, 1), (2, 3)),
        "path of 3 + node": ((0, 1), (1, 2)),
        "triangle + node": ((0, 1), (1, 2), (0, 2)),
        "star of 4": ((0, 1), (0, 2), (0, 3)),
        "path of 4": ((0, 1), (1, 2), (2, 3)),
        "square": ((0, 1), (1, 2), (2, 3), (0, 3)),
        "triangle with a tail": ((0, 1), (1, 2), (0, 2), (2, 3)),
        "two triangles": ((0, 1), (1, 2), (0, 2), (1, 3), (2, 3)),
        "all 6 edges": tuple(itertools.combinations(range(4), 2)),
    },
}


@leaf
class Graphlet(GraphCounts):
    """Subgraphs of three or four nodes by their shape, counted (Shervashidze et al.).

        k(x, z) = Σ_s (subsets of `size` nodes of x that span shape s) (such subsets of z)

    All subsets are counted exactly, connected or not. Labels, and edges from a node to itself, are not read.
    A graph with fewer nodes has no features. Counts grow as nodes^size, so `.normalized()` is the usual form.

    >>> path = [(0, 1), (1, 2), (2, 3)]
    >>> Graphlet(3).count(path)
    {'edge + node': 2.0, 'path of 3': 2.0}
    >>> Graphlet(4)([path])
    array([[1.]])
    """

    size: int = whole(3, at_least=3, at_most=4)

    formula: ClassVar = r"\sum_{|s|=<size>} \#_s(x)\,\#_s(z)"

    def reads_labels(self) -> bool:
        return False

    def found(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        counts = np.array([graphlets(graph, self.size) for graph in stack.graphs])
        owner, shape = np.nonzero(counts)
        names = list(SHAPES[self.size])
        met, which = np.unique(shape, return_inverse=True)
        columns = vocabulary.columns(names[s] for s in met.tolist())
        return owner, columns[which], counts[owner, shape]


def graphlets(graph: Graph, size: int) -> Array:
    """How many subsets of nodes span each shape."""
    if graph.nodes < size:
        return np.zeros(len(SHAPES[size]))
    laid = (_laid_3 if size == 3 else _laid_4)(graph)
    contains = _contains(size)
    # from the shape with most edges to that with fewest: whole numbers, so that nothing is rounded
    out = [0] * len(laid)
    for s in reversed(range(len(laid))):
        out[s] = laid[s] - sum(int(contains[s, t]) * out[t] for t in range(s + 1, len(laid)))
    if max(out) > 2**53:
        raise ParameterError(
            f"Graphlet: a graph with {graph.nodes} nodes has more subsets of {size} than float64 counts."
        )
    return np.array(out, dtype=np.float64)


def _laid_3(graph: Graph) -> list[int]:
    look = _Look(graph)
    n = graph.nodes
    return [_choose(n, 3), look.edges * (n - 2), look.wedges, look.triangles]


def _laid_4(graph: Graph) -> list[int]:
    """How often each shape of four nodes can be laid into the edges, in the order of `SHAPES`."""
    look = _Look(graph)
    n = graph.nodes
    m = look.edges
    degree = look.degree
    paths = int(((degree[look.i] - 1) * (degree[look.j] - 1)).sum()) - 3 * look.triangles
    squares = int(_pairs(np.triu(look.common, 1)).sum()) // 2
    return [
        _choose(n, 4),
        m * _choose(n - 2, 2),
        _choose(m, 2) - look.wedges,
        look.wedges * (n - 3),
        look.triangles * (n - 3),
        int((degree * (degree - 1) * (degree - 2) // 6).sum()),
        paths,
        squares,
        int((look.triangles_at * (degree - 2)).sum()),
        int(_pairs(look.common[look.i, look.j]).sum()),
        look.complete(),
    ]


class _Look:
    """Degrees, common neighbours and triangles of one graph, without edges from a node to itself."""

    def __init__(self, graph: Graph) -> None:
        pairs = graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]
        self.i, self.j = pairs.T
        self.neighbours = np.zeros((graph.nodes, graph.nodes))
        self.neighbours[self.i, self.j] = 1
        self.neighbours[self.j, self.i] = 1
        # whole numbers below 2^53, so that products of floats are exact and fast
        self.common: Integers = (self.neighbours @ self.neighbours).astype(np.int64)
        self.degree: Integers = self.neighbours.sum(axis=1).astype(np.int64)
        self.edges = len(pairs)
        self.wedges = int(_pairs(self.degree).sum())
        self.triangles_at: Integers = (self.common * self.neighbours).sum(axis=1).astype(np.int64) // 2
        self.triangles = int(self.triangles_at.sum()) // 3

    def complete(self) -> int:
        """Four nodes that are all neighbours: an edge, and an edge among its common neighbours."""
        total = 0
        for a, b in zip(self.i.tolist(), self.j.tolist(), strict=True):
            if self.common[a, b] >= 2:
                both = np.flatnonzero(self.neighbours[a] * self.neighbours[b])
                total += int(self.neighbours[np.ix_(both, both)].sum()) // 2
        return total // 6


def _pairs(counts: Integers) -> Integers:
    return counts * (counts - 1) // 2


def _choose(n: int, k: int) -> int:
    out = 1
    for i in range(k):
        out = out * (n - i) // (i + 1)
    return out


@lru_cache(maxsize=2)
def _contains(size: int) -> Integers:
    """In how many ways each shape is some of the edges of each other."""
    shapes = list(SHAPES[size].values())
    forms = [_forms(shape, size) for shape in shapes]
    out = np.zeros((len(shapes), len(shapes)), dtype=np.int64)
    for t, edges in enumerate(shapes):
        for chosen in _subsets(edges):
            (s,) = [s for s, all_forms in enumerate(forms) if frozenset(chosen) in all_forms]
            out[s, t] += 1
    return out


def _forms(shape: Edges, size: int) -> set[frozenset[tuple[int, int]]]:
    """A shape with its nodes in every order."""
    return {
        frozenset((min(p[a], p[b]), max(p[a], p[b])) for a, b in shape)
        for p in itertools.permutations(range(size))
    }


def _subsets(edges: Edges) -> Sequence[Edges]:
    return [c for r in range(len(edges) + 1) for c in itertools.combinations(edges, r)]
