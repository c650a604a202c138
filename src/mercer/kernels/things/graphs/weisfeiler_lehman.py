"""Kernels that compare the colours of nodes: Weisfeiler-Lehman, and its optimal assignment."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.graphs.colours import Patterns, colours, columns_of_rows, edge_colours, numbers_of
from mercer.kernels.things.graphs.counting import Found, GraphCounts
from mercer.kernels.things.graphs.paths import (
    COLOURS,
    MANY_TOGETHER,
    Pairs,
    connected_pairs,
    names_of_pairs,
    neighbours,
    pairs_at_nodes,
    pairs_counted,
)
from mercer.kernels.things.graphs.stack import Stack
from mercer.kernels.things.sparse_map import Names
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.params import given, whole
from mercer.typing import Integers

BASES = ("subtree", "edges", "shortest paths")


@leaf
class WeisfeilerLehman(GraphCounts):
    """Nodes that look alike to a given depth, counted (Shervashidze et al.).

        k(x, z) = Σ_h Σ_c (nodes of x with colour c) (nodes of z with colour c),   h = 0 … `height`

    A colour at depth 0 is a label, and at depth h + 1 the colour before with those of the neighbours. `base`
    says what is counted at each depth: nodes ("subtree"); neighbours in order, by their two colours
    ("edges"); or pairs of nodes in order, by their colours and distance ("shortest paths").

    Graphs without labels have one label everywhere, so that depth 1 is the number of neighbours. Labels of
    edges count where graphs have them. A node without neighbours keeps its label at every depth.

    >>> ethanol = ([(0, 1), (1, 2)], ["C", "C", "O"])
    >>> ethane = ([(0, 1)], ["C", "C"])
    >>> WeisfeilerLehman(1)([ethanol, ethane])     # 2·2 + 1·1 + 3 patterns; 2·2 and C(C) 1·2; 2·2 + 2·2
    array([[8., 6.],
           [6., 8.]])
    >>> WeisfeilerLehman(1).count(ethanol)
    {'C': 2.0, 'O': 1.0, 'C(C)': 1.0, 'O(C)': 1.0, 'C(C,O)': 1.0}
    """

    height: int = whole(3, at_least=0)
    base: str = given("subtree")

    formula: ClassVar = r"\sum_{h=0}^{<height>}\sum_c \#_c^{(h)}(x)\,\#_c^{(h)}(z)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base not in BASES:
            raise ParameterError(
                f"WeisfeilerLehman: base must be one of {', '.join(map(repr, BASES))}; got {self.base!r}."
            )

    def found(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        if self.base == "subtree":
            found = np.concatenate(list(colours(stack, vocabulary, self.height)))
            return np.tile(stack.owner, self.height + 1), found, np.ones(len(found))
        pairs, depths = self._pairs(stack, vocabulary.beside(COLOURS))
        return pairs_counted(pairs, depths, vocabulary, vocabulary.is_fresh)

    def found_at_nodes(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        if self.base == "subtree":
            found = np.concatenate(list(colours(stack, vocabulary, self.height)))
            return np.tile(np.arange(stack.nodes), self.height + 1), found, np.ones(len(found))
        pairs, depths = self._pairs(stack, vocabulary.beside(COLOURS))
        return pairs_at_nodes(pairs, depths, vocabulary)

    def _pairs(self, stack: Stack, inner: Vocabulary) -> tuple[Iterable[Pairs], list[Integers]]:
        """The pairs of nodes that are counted, and the colours of all nodes at each depth."""
        if self.base == "edges":
            pairs: Iterable[Pairs] = [neighbours(stack, edge_colours(stack, inner))]
        else:
            pairs = connected_pairs(stack, MANY_TOGETHER)
        return pairs, list(colours(stack, inner, self.height))

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        if self.base == "subtree":
            return Names(len(vocabulary), Patterns(vocabulary))
        patterns = Patterns(vocabulary.beside(COLOURS))
        return names_of_pairs(vocabulary, patterns.bond if self.base == "edges" else str)


@leaf
class OptimalAssignment(GraphCounts):
    """The best pairing of the nodes of two graphs by how deep they look alike (Kriege, Giscard and Wilson).

        k(x, z) = Σ_h Σ_c min(nodes of x with colour c, nodes of z with colour c),   h = 0 … `height`

    Two nodes that are paired count one for each depth to which their colours agree, and no pairing has a
    greater sum. A number n written as n ones turns the minimum into an inner product, so this is a proved
    kernel, whose features are "at least so many nodes with colour c".

    >>> ethanol = ([(0, 1), (1, 2)], ["C", "C", "O"])
    >>> ethane = ([(0, 1)], ["C", "C"])
    >>> OptimalAssignment(1)([ethanol, ethane])            # C C and C(C) in common
    array([[6., 3.],
           [3., 4.]])
    """

    height: int = whole(3, at_least=0)

    formula: ClassVar = r"\sum_{h=0}^{<height>}\sum_c \min\bigl(\#_c^{(h)}(x), \#_c^{(h)}(z)\bigr)"

    def found(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        inner = vocabulary.beside(COLOURS)
        met = np.concatenate(list(colours(stack, inner, self.height)))
        owner = np.tile(stack.owner, self.height + 1)
        owner, met = (part[met != ABSENT] for part in (owner, met))
        order = np.lexsort([met, owner])
        owner, met = owner[order], met[order]
        times = _how_often_before(owner, met)
        columns = columns_of_rows(np.column_stack([met, times]), vocabulary, vocabulary.is_fresh)
        return owner, columns, np.ones(len(owner))

    def found_at_nodes(self, stack: Stack, vocabulary: Vocabulary) -> Found:
        """Of n nodes with one colour, each has an n-th of "at least 1", …, "at least n"."""
        inner = vocabulary.beside(COLOURS)
        met = np.concatenate(list(colours(stack, inner, self.height)))
        node = np.tile(np.arange(stack.nodes), self.height + 1)
        node, met = (part[met != ABSENT] for part in (node, met))
        _, group, sizes = np.unique(
            np.column_stack([stack.owner[node], met]), axis=0, return_inverse=True, return_counts=True
        )
        alike = sizes[group.ravel()]
        ends = np.cumsum(alike)
        before = np.arange(int(alike.sum())) - np.repeat(ends - alike, alike)
        table = np.column_stack([np.repeat(met, alike), before])
        columns = columns_of_rows(table, vocabulary, fresh=False)
        return np.repeat(node, alike), columns, np.repeat(1 / alike, alike)

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        patterns = Patterns(vocabulary.beside(COLOURS))
        features = vocabulary.features()
        return Names(len(features), partial(_written_number, features, patterns))


def _written_number(features: Sequence[Hashable], patterns: Patterns, i: int) -> str:
    colour, before = numbers_of(features[i])
    return f"{patterns(colour)} ≥ {before + 1}"


def _how_often_before(owner: Integers, met: Integers) -> Integers:
    """For each entry of two sorted lists, how many equal ones stand before it."""
    place = np.arange(len(met))
    new = np.ones(len(met), dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (met[1:] != met[:-1])
    return place - np.maximum.accumulate(np.where(new, place, 0))
