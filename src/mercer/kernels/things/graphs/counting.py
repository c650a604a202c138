"""Leaves that count something in each graph: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.things.counted import Counted, sparse_rows
from mercer.kernels.things.graphs.colours import UNLABELLED
from mercer.kernels.things.graphs.forms import as_graph
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.graphs.stack import Stack, stacked
from mercer.kernels.things.on_things import unreadable
from mercer.kernels.things.placed import Placed, all_in_places
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

Found = tuple[Integers, Integers, Array]
"""Features that were met: in which graph (or at which node), in which column, how often."""


class GraphCounts(Counted):
    """A kernel of graphs by what they have in common.

    A subclass gives `found(stack, vocabulary)`: the features of all graphs at once. A graph without nodes has
    no features, so that its product with every graph is 0.
    """

    things_are: ClassVar = "graphs"

    @abstractmethod
    def found(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        """Which feature was met in which graph and how often; one may be listed several times."""

    def reads_labels(self) -> bool:
        """Whether labels count; where they do, all graphs have them, or none."""
        return True

    def found_at_nodes(self, stack: Stack, vocabulary: Vocabulary) -> Found | None:
        """The same features shared out among the nodes of the stack; None where they belong to no nodes."""
        return None

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        graphs = self._read(things, name)
        owner, column, times = self.found(stacked(graphs), vocabulary)
        there = column != ABSENT
        order = np.argsort(owner[there], kind="stable")
        starts = np.searchsorted(owner[there][order], np.arange(len(graphs) + 1))
        return sparse_rows(times[there][order], column[there][order], starts, len(vocabulary))

    def placed(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> list[Placed] | None:
        graphs = self._read(things, name)
        found = self.found_at_nodes(stacked(graphs), vocabulary)
        if found is None:
            return None
        node, column, amount = (part[found[1] != ABSENT] for part in found)
        ends = np.cumsum([graph.nodes for graph in graphs])
        shape = (int(ends[-1]), max(len(vocabulary), 1))
        matrix = sparse.csr_array(sparse.coo_array((amount, (node, column)), shape=shape))
        out = []
        for graph, end in zip(graphs, ends.tolist(), strict=True):
            out.append(all_in_places(graph, names_of_nodes(graph), matrix[end - graph.nodes : end]))
        return out

    def _read(self, things: Sequence[Thing], name: str) -> list[Graph]:
        graphs = read_graphs(self, things, name)
        if self.reads_labels():
            require_alike(graphs, name)
        return graphs

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        """The features of one graph by their names."""
        words = Vocabulary()
        row = self.counts([thing], words)
        names = self.feature_names(words)
        return {names[j]: float(v) for j, v in zip(row.indices, row.data, strict=True)}

    def compare_columns(self, x: Rows, z: Rows) -> None:
        if self.reads_labels():
            require_alike_samples(self, x, z)


def read_graphs(kernel: Leaf, things: Sequence[Thing], name: str) -> list[Graph]:
    """The graphs of a sample; what is none is refused with its row."""
    out = []
    for i, thing in enumerate(things):
        try:
            out.append(as_graph(thing))
        except (InputError, TypeError) as error:
            raise unreadable(type(kernel).__name__, "graphs", thing, i, name, str(error)) from error
    return out


def names_of_nodes(graph: Graph) -> list[str]:
    """The labels of the nodes as text."""
    if graph.labels is None:
        return [UNLABELLED] * graph.nodes
    return [str(label) for label in graph.labels]


def graphs_of(kernel: Leaf, x: Rows) -> list[Graph]:
    """The graphs of some rows, read once."""
    return x.remembered("graphs", lambda: read_graphs(kernel, x.things, x.name))


def require_alike(graphs: Sequence[Graph], name: str) -> None:
    """Refuse a sample in which some graphs have labels and some have none."""
    for of, has in (("nodes", _labelled), ("edges", _edge_labelled)):
        marks = [has(graph) for graph in graphs]
        if True in marks and False in marks:
            raise InputError(
                f"row {marks.index(True)} of {name} is a graph with labels of its {of}, and row "
                f"{marks.index(False)} has none. Label the {of} of all graphs, or of none."
            )


def require_alike_samples(kernel: Leaf, x: Rows, z: Rows) -> None:
    """Refuse two samples of which one has labels and the other has none."""
    for of, has in (("nodes", _labelled), ("edges", _edge_labelled)):
        first = {has(graph) for graph in graphs_of(kernel, x)} - {None}
        second = {has(graph) for graph in graphs_of(kernel, z)} - {None}
        if first and second and first != second:
            with_labels, without = (x, z) if True in first else (z, x)
            raise InputError(
                f"the {of} of the graphs of {with_labels.name} have labels, and those of {without.name} have "
                f"none. Label the {of} of all graphs, or of none."
            )


def _labelled(graph: Graph) -> bool | None:
    """Whether nodes have labels; None where there are no nodes."""
    return graph.labels is not None if graph.nodes else None


def _edge_labelled(graph: Graph) -> bool | None:
    return graph.edge_labels is not None if len(graph.edges) else None
