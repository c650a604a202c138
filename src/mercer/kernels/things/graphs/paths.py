"""Pairs of nodes by their colours and what lies between them: an edge, or the shortest path."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.sparse.csgraph import shortest_path

from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.graphs.colours import Patterns, columns_of_rows, first_colours, numbers_of
from mercer.kernels.things.graphs.counting import Found, GraphCounts
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.graphs.stack import Stack
from mercer.kernels.things.sparse_map import Names
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.typing import Integers

COLOURS = "colours"
"""The vocabulary of colours, where they are not the features themselves."""


TOGETHER = 2**17
"""Pairs of nodes that are held at one time."""

MANY_TOGETHER = 2**21
"""The same where nearly every pair is a feature of its own, which are looked up again for each part."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes in order: the graph they are in, their places in the stack, what is between them."""

    owner: Integers
    source: Integers
    target: Integers
    between: Integers

    def counted(self, colours: Integers, vocabulary: Vocabulary, fresh: bool) -> Found:
        """The features (colour, what is between, colour), how often each is in which graph."""
        return summed(self.owner, self.columns(colours, vocabulary, fresh))

    def columns(self, colours: Integers, vocabulary: Vocabulary, fresh: bool) -> Integers:
        """The column of the feature that each pair is."""
        table = np.column_stack([colours[self.source], self.between, colours[self.target]])
        return columns_of_rows(table, vocabulary, fresh)


def summed(owner: Integers, column: Integers) -> Found:
    """Each feature of each graph once, with how often it was met.

    >>> [part.tolist() for part in summed(np.array([1, 0, 1]), np.array([4, 5, 4]))]
    [[0, 1], [5, 4], [1.0, 2.0]]
    """
    # what is absent has the column -1
    width = int(column.max(initial=0)) + 2
    met, times = np.unique(owner * width + column + 1, return_counts=True)
    return met // width, met % width - 1, times.astype(np.float64)


def neighbours(stack: Stack, bonds: Integers | None) -> Pairs:
    """Both directions of every edge; what is between is the label of the edge, or a path of length 1."""
    between = np.ones(len(stack.source), dtype=np.intp) if bonds is None else bonds
    return Pairs(stack.owner[stack.source], stack.source, stack.target, between)


def connected_pairs(stack: Stack, together: int) -> Iterator[Pairs]:
    """All pairs of different nodes between which there is a path, with the length of the shortest one.

    Some graphs at a time, or some nodes of a large graph, so that no more pairs than `together` are held.
    """
    start = 0
    parts: list[tuple[Integers, ...]] = []
    held = 0
    for number, graph in enumerate(stack.graphs):
        step = max(1, together // max(graph.nodes, 1))
        for first in range(0, graph.nodes, step):
            i, j, length = _lengths(graph, np.arange(first, min(first + step, graph.nodes)))
            if parts and held + len(i) > together:
                yield _joined(parts)
                parts = []
                held = 0
            parts.append((np.full(len(i), number), i + start, j + start, length))
            held += len(i)
        start += graph.nodes
    if parts:
        yield _joined(parts)


def _joined(parts: Sequence[tuple[Integers, ...]]) -> Pairs:
    return Pairs(*(np.concatenate(group).astype(np.intp) for group in zip(*parts, strict=True)))


def _lengths(graph: Graph, sources: Integers) -> tuple[Integers, Integers, Integers]:
    """Sources, targets and lengths of the shortest paths from some nodes."""
    if len(graph.edges) == 0:
        none = np.zeros(0, dtype=np.intp)
        return none, none, none
    some = None if len(sources) == graph.nodes else sources
    lengths = shortest_path(graph.adjacency(), directed=False, unweighted=True, indices=some)
    i, j = np.nonzero(np.isfinite(lengths) & (lengths > 0))
    return sources[i], j, lengths[i, j].astype(np.intp)


def pairs_counted(
    pairs: Iterable[Pairs], colours: Sequence[Integers], vocabulary: Vocabulary, fresh: bool
) -> Found:
    """The pairs by each of these colours; what is met in several parts is known from the second on."""
    none = np.zeros(0, dtype=np.intp)
    parts: list[Found] = [(none, none, np.zeros(0))]
    for some in pairs:
        for now in colours:
            parts.append(some.counted(now, vocabulary, fresh))
        fresh = False
    owner, column, times = (np.concatenate(group) for group in zip(*parts, strict=True))
    return owner, column, times


def pairs_at_nodes(pairs: Iterable[Pairs], colours: Sequence[Integers], vocabulary: Vocabulary) -> Found:
    """The pairs by each of these colours, half of each at either of its nodes."""
    none = np.zeros(0, dtype=np.intp)
    nodes = [none]
    columns = [none]
    for some in pairs:
        for now in colours:
            column = some.columns(now, vocabulary, fresh=False)
            nodes += [some.source, some.target]
            columns += [column, column]
    found = np.concatenate(columns)
    return np.concatenate(nodes), found, np.full(len(found), 0.5)


def names_of_pairs(vocabulary: Vocabulary, between: Callable[[int], str]) -> Sequence[str]:
    """Features as text: "C -2- N"."""
    patterns = Patterns(vocabulary.beside(COLOURS))
    features = vocabulary.features()
    return Names(len(features), partial(_written_pair, features, patterns, between))


def _written_pair(
    features: Sequence[Hashable], patterns: Patterns, between: Callable[[int], str], i: int
) -> str:
    a, middle, b = numbers_of(features[i])
    return f"{patterns(a)} -{between(middle)}- {patterns(b)}"


@leaf
class ShortestPath(GraphCounts):
    """Pairs of nodes by their labels and the length of the shortest path (Borgwardt and Kriegel).

        k(x, z) = Σ_(a,b,d) (pairs of x from label a to label b at distance d) (such pairs of z)

    A pair is counted from each of its ends. Nodes without a path between them are no pair, so that a graph
    without edges has no features. Labels of edges are not read.

    >>> ethanol = ([(0, 1), (1, 2)], ["C", "C", "O"])
    >>> ethane = ([(0, 1)], ["C", "C"])
    >>> ShortestPath()([ethanol, ethane])                 # C -1- C: 2·2;  and C -1- O, C -2- O both ways
    array([[8., 4.],
           [4., 4.]])
    """

    formula: ClassVar = r"\sum_{a,b,d} \#_{a,b,d}(x)\,\#_{a,b,d}(z)"

    def found(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        colours = first_colours(stack, vocabulary.beside(COLOURS))
        return pairs_counted(connected_pairs(stack, TOGETHER), [colours], vocabulary, vocabulary.is_fresh)

    def found_at_nodes(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        colours = first_colours(stack, vocabulary.beside(COLOURS))
        return pairs_at_nodes(connected_pairs(stack, TOGETHER), [colours], vocabulary)

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        return names_of_pairs(vocabulary, str)
