"""Many graphs as one that falls into parts, so that all of them are counted at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.kernels.things.graphs.graph import Graph
from mercer.typing import Integers


@dataclass(frozen=True, eq=False)
class Stack:
    """All nodes of some graphs, one after another.

    owner        the graph of each node
    labels       the label of each node; None if no graph has any
    source       every edge from each of its ends, in the order of `source`
    target
    first        where the edges from each node begin in `source`
    edge_labels  the label of each such edge; None if no graph has any
    """

    graphs: Sequence[Graph]
    owner: Integers
    labels: list[Hashable] | None
    source: Integers
    target: Integers
    first: Integers
    edge_labels: list[Hashable] | None

    @property
    def nodes(self) -> int:
        """How many there are in all graphs."""
        return len(self.owner)

    def degrees(self) -> Integers:
        """The number of neighbours of each node."""
        return np.diff(self.first)


def stacked(graphs: Sequence[Graph]) -> Stack:
    """The graphs, whose labels were compared before, as one."""
    sizes = np.array([graph.nodes for graph in graphs], dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    counts = np.array([len(graph.edges) for graph in graphs], dtype=np.intp)
    ends = np.concatenate([graph.edges for graph in graphs]) + np.repeat(starts, counts)[:, None]
    # an edge from a node to itself leaves it once
    back = np.flatnonzero(ends[:, 0] != ends[:, 1])
    edge = np.concatenate([np.arange(len(ends)), back])
    source = np.concatenate([ends[:, 0], ends[back, 1]])
    target = np.concatenate([ends[:, 1], ends[back, 0]])
    order = np.argsort(source, kind="stable")
    total = int(sizes.sum())
    first = np.searchsorted(source[order], np.arange(total + 1))
    bonds = _joined([graph.edge_labels for graph in graphs])
    return Stack(
        graphs=graphs,
        owner=np.repeat(np.arange(len(graphs)), sizes),
        labels=_joined([graph.labels for graph in graphs]),
        source=source[order],
        target=target[order],
        first=first,
        edge_labels=None if bonds is None else [bonds[e] for e in edge[order].tolist()],
    )


def _joined(parts: Sequence[Sequence[Hashable] | None]) -> list[Hashable] | None:
    """The labels of all graphs in one list; a graph without nodes, or without edges, need not have any."""
    known = [part for part in parts if part is not None]
    if not any(len(part) for part in known):
        return None
    return [label for part in known for label in part]
