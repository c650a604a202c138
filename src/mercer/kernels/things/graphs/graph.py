"""A graph as the kernels read it: numbered nodes, undirected edges, and labels where there are some."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer.errors import InputError
from mercer.typing import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes 0 to `nodes` - 1 and undirected edges between them; a value that never changes.

    An edge that is named twice, or in both directions, is one edge; an edge from a node to itself is allowed.
    `labels` has an entry for each node and `edge_labels` one for each edge as they are given, or None.

    >>> water = Graph(3, [(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> water, water.edges.tolist()
    (Graph(3 nodes, 2 edges, labels), [[0, 1], [0, 2]])
    >>> water == Graph(3, [(2, 0), (1, 0), (0, 1)], labels="OHH")
    True
    """

    nodes: int
    edges: Integers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.intp))
    labels: Sequence[Hashable] | None = None
    edge_labels: Sequence[Hashable] | None = None

    def __init__(
        self,
        nodes: int,
        edges: npt.ArrayLike = (),
        labels: Sequence[Hashable] | None = None,
        edge_labels: Sequence[Hashable] | None = None,
    ) -> None:
        pairs = _checked_edges(edges, nodes)
        kept = _checked_labels(labels, nodes, "nodes")
        bonds = _checked_labels(edge_labels, len(pairs), "edges")
        ends = np.sort(pairs, axis=1)
        codes, first, which = np.unique(
            ends[:, 0] * max(nodes, 1) + ends[:, 1], return_index=True, return_inverse=True
        )
        if bonds is not None:
            _require_one_label(bonds, first[which], ends)
            bonds = tuple(bonds[i] for i in first.tolist())
        found = np.column_stack([codes // max(nodes, 1), codes % max(nodes, 1)]).astype(np.intp)
        found.setflags(write=False)
        values = {"nodes": int(nodes), "edges": found, "labels": kept, "edge_labels": bonds}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def permuted(self, order: npt.ArrayLike) -> Graph:
        """The same graph with its nodes in another order: node i is what `order[i]` was.

        >>> Graph(3, [(0, 1)], labels="abc").permuted([2, 0, 1]).edges.tolist()
        [[1, 2]]
        """
        before = np.asarray(order, dtype=np.intp)
        if not np.array_equal(np.sort(before), np.arange(self.nodes)):
            raise InputError(f"order must name each of the {self.nodes} nodes once; got {order!r:.60}.")
        now = np.argsort(before)
        labels = None if self.labels is None else [self.labels[i] for i in before]
        return Graph(self.nodes, now[self.edges], labels, self.edge_labels)

    def without_edge_labels(self) -> Graph:
        """The same graph, whose edges are all alike."""
        return Graph(self.nodes, self.edges, self.labels)

    def adjacency(self) -> sparse.csr_array:
        """The symmetric matrix with a 1 for every edge.

        >>> Graph(2, [(0, 1)]).adjacency().toarray()
        array([[0., 1.],
               [1., 0.]])
        """
        i, j = self.edges.T
        other = i != j
        rows = np.concatenate([i, j[other]])
        columns = np.concatenate([j, i[other]])
        return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.nodes, self.nodes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Hashable, ...]:
        return self.nodes, self.edges.tobytes(), self.labels, self.edge_labels

    def __repr__(self) -> str:
        words = [f"{self.nodes} nodes", f"{len(self.edges)} edges"]
        if self.labels is not None:
            words.append("labels")
        if self.edge_labels is not None:
            words.append("labels of edges")
        return f"Graph({', '.join(words)})"


def _checked_edges(edges: npt.ArrayLike, nodes: int) -> Integers:
    """The edges as pairs of nodes that are there."""
    if isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or nodes < 0:
        raise InputError(f"a graph has a whole number of nodes, 0 or more; got {nodes!r}")
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise InputError("an edge is not a pair of nodes") from error
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges must be pairs of nodes; got an array of shape {pairs.shape}")
    if pairs.dtype.kind not in "iu":
        raise InputError(f"edges name nodes by whole numbers from 0; got {pairs.dtype}")
    bad = (pairs < 0) | (pairs >= nodes)
    if bad.any():
        a, b = pairs[int(np.argmax(bad.any(axis=1)))]
        raise InputError(f"the edge ({a}, {b}) leads outside the {nodes} nodes, which are numbered from 0")
    return pairs.astype(np.intp)


def _checked_labels(labels: Sequence[Hashable] | None, wanted: int, of: str) -> tuple[Hashable, ...] | None:
    """Labels as a tuple, one for each node or edge, all of which can be compared."""
    if labels is None:
        return None
    found: tuple[Hashable, ...] = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    if len(found) != wanted:
        raise InputError(f"there are {len(found)} labels for {wanted} {of}")
    for i, label in enumerate(found):
        if label is None or label != label:
            raise InputError(f"label {i} of the {of} is missing; label all of them, or none")
        try:
            hash(label)
        except TypeError as error:
            raise InputError(
                f"label {i} of the {of} is a {type(label).__name__}; use text, numbers or tuples"
            ) from error
    return found


def _require_one_label(labels: tuple[Hashable, ...], first: Integers, ends: Integers) -> None:
    """Refuse an edge that is named twice with two labels."""
    for i, j in enumerate(first.tolist()):
        if labels[i] != labels[j]:
            a, b = ends[i]
            raise InputError(f"the edge ({a}, {b}) has two labels, {labels[j]!r} and {labels[i]!r}")
