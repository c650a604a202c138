"""Pairs of nodes by their colours and what lies between them: an edge, or the shortest path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes in order: the graph they are in, their places in the stack, what is between them."""

    owner: Integers
    source: Integers
    target: Integers
    between: Integers

    def counted(self, colours: Integers, vocabulary: Vocabulary, fresh: bool) -> Found:
        """The features (colour, what is between, colour) and their graphs."""
        table = np.column_stack([colours[self.source], self.between, colours[self.target]])
        return self.owner, columns_of_rows(table, vocabulary, fresh), np.ones(len(table))


def neighbours(stack: Stack, bonds: Integers | None) -> Pairs:
    """Both directions of every edge; what is between is the label of the edge, or a path of length 1."""
    between = np.ones(len(stack.source), dtype=np.intp) if bonds is None else bonds
    return Pairs(stack.owner[stack.source], stack.source, stack.target, between)


def connected_pairs(stack: Stack) -> Pairs:
    """All pairs of different nodes between which there is a path, with the length of the shortest one."""
    start = 0
    parts = []
    for number, graph in enumerate(stack.graphs):
        i, j, length = _lengths(graph)
        parts.append((np.full(len(i), number), i + start, j + start, length))
        start += graph.nodes
    return Pairs(*(np.concatenate(group).astype(np.intp) for group in zip(*parts, strict=True)))


def _lengths(graph: Graph) -> tuple[Integers, Integers, Integers]:
    if len(graph.edges) == 0:
        none = np.zeros(0, dtype=np.intp)
        return none, none, none
    lengths = shortest_path(graph.adjacency(), directed=False, unweighted=True)
    i, j = np.nonzero(np.isfinite(lengths) & (lengths > 0))
    return i, j, lengths[i, j].astype(np.intp)


def names_of_pairs(vocabulary: Vocabulary, between: Callable[[int], str]) -> Sequence[str]:
    """Features as text: "C -2- N"."""
    patterns = Patterns(vocabulary.beside(COLOURS))
    features = vocabulary.features()

    def name(i: int) -> str:
        a, middle, b = numbers_of(features[i])
        return f"{patterns(a)} -{between(middle)}- {patterns(b)}"

    return Names(len(features), name)


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
        return connected_pairs(stack).counted(colours, vocabulary, vocabulary.is_fresh)

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        return names_of_pairs(vocabulary, str)
