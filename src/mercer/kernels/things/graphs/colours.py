"""Colours of nodes, refined by those of their neighbours, in all graphs at once (Weisfeiler and Lehman).

Two nodes have the same colour at depth h if the trees of all walks of h steps from them look the same. A
colour is a column of a vocabulary: at depth 0 of ("label", label), then of (colour before, colours of the
neighbours in order), as the bytes of a row of whole numbers. What a closed vocabulary has not seen is
`ABSENT`, and so is then whatever looks at it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from mercer.kernels.things.graphs.stack import Stack
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.typing import Integers

UNLABELLED = "*"
"""What a node is called in graphs without labels."""

BONDS = "edge labels"
"""The vocabulary of the labels of edges."""

LARGEST_CODE = 2**62
"""Numbers that stand for rows stay below this."""


def colours(stack: Stack, vocabulary: Vocabulary, height: int) -> Iterator[Integers]:
    """The colours of all nodes at depth 0, 1, … to `height`."""
    fresh = vocabulary.is_fresh
    now = first_colours(stack, vocabulary)
    yield now
    bonds = edge_colours(stack, vocabulary)
    degrees = stack.degrees()
    groups = []
    for degree in np.unique(degrees).tolist():
        nodes = np.flatnonzero(degrees == degree)
        groups.append((nodes, stack.first[nodes][:, None] + np.arange(degree)))
    for _ in range(height):
        now = _refined(now, bonds, stack, groups, vocabulary, fresh)
        yield now


def first_colours(stack: Stack, vocabulary: Vocabulary) -> Integers:
    """The labels of all nodes as numbers; without labels, all nodes are alike."""
    if stack.labels is None:
        return np.full(stack.nodes, vocabulary.column(("label", UNLABELLED)) if stack.nodes else 0)
    column = {label: vocabulary.column(("label", label)) for label in dict.fromkeys(stack.labels)}
    return np.array([column[label] for label in stack.labels], dtype=np.intp)


def edge_colours(stack: Stack, vocabulary: Vocabulary) -> Integers | None:
    """The labels of the edges from all nodes as numbers; None where there are none."""
    if stack.edge_labels is None:
        return None
    return vocabulary.beside(BONDS).columns(stack.edge_labels)


def _refined(
    now: Integers,
    bonds: Integers | None,
    stack: Stack,
    groups: Sequence[tuple[Integers, Integers]],
    vocabulary: Vocabulary,
    fresh: bool,
) -> Integers:
    """The colours one step deeper.

    The neighbours of every node are sorted in one go. Nodes with equally many neighbours, a group, are then
    rows of a table, and only its distinct rows are looked up. None of them is known if the vocabulary was
    fresh, since they are made of the colours of the step before.
    """
    # -1 for what is absent becomes 0
    width = len(vocabulary) + 1
    around = now[stack.target] + 1
    if bonds is not None:
        around = (bonds + 1) * width + around
    wide = int(around.max(initial=0)) + 1
    around = np.sort(stack.source * wide + around) % wide
    out = np.empty(stack.nodes, dtype=np.intp)
    for nodes, places in groups:
        beside = around[places]
        if bonds is not None:
            pairs = np.stack([beside // width - 1, beside % width - 1], axis=2)
            table = np.column_stack([now[nodes], pairs.reshape(len(nodes), -1)])
        else:
            table = np.column_stack([now[nodes], beside - 1])
        out[nodes] = columns_of_rows(table, vocabulary, fresh)
    return out


def columns_of_rows(table: Integers, vocabulary: Vocabulary, fresh: bool) -> Integers:
    """The column of each row of whole numbers; only distinct rows are looked up, and none if all are new."""
    rows, which = distinct_rows(table)
    # bytes are made, hashed and compared faster than tuples
    keys = np.ascontiguousarray(rows, dtype=np.int64).view(f"V{8 * rows.shape[1]}").ravel()
    if fresh:
        return vocabulary.columns_of_new(keys)[which]
    return vocabulary.columns(keys.tolist())[which]


def numbers_of(feature: Hashable) -> list[int]:
    """The row of whole numbers that a feature is.

    >>> words = Vocabulary()
    >>> columns_of_rows(np.array([[3, 4], [1, 2], [3, 4]]), words, fresh=True).tolist()
    [1, 0, 1]
    >>> [numbers_of(feature) for feature in words.features()]
    [[1, 2], [3, 4]]
    """
    assert isinstance(feature, bytes)
    numbers: list[int] = np.frombuffer(feature, dtype=np.int64).tolist()
    return numbers


def distinct_rows(table: Integers) -> tuple[Integers, Integers]:
    """The rows of a table, each once, and which of them every row is.

    >>> distinct_rows(np.array([[1, 2], [0, 5], [1, 2]]))[1].tolist()
    [1, 0, 1]
    """
    if len(table) == 0:
        return table, np.zeros(0, dtype=np.intp)
    codes = _codes(table)
    order = np.argsort(codes)
    ordered = codes[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    which = np.empty(len(codes), dtype=np.intp)
    which[order] = np.cumsum(new) - 1
    return table[order[new]], which


def _codes(table: Integers) -> Integers:
    """One number for each row, in the order of the rows and equal only for equal ones."""
    codes = np.zeros(len(table), dtype=np.int64)
    size = 1
    for column in np.ascontiguousarray(table.T):
        shifted = column - column.min()
        width = int(shifted.max()) + 1
        if size * width > LARGEST_CODE:
            # the numbers so far by their ranks, of which there are no more than rows
            codes = np.unique(codes, return_inverse=True)[1]
            size = len(codes)
        codes = codes * width + shifted
        size *= width
    return codes


class Patterns:
    """Colours as trees in text: "C(C,N)" is a C with the neighbours C and N.

    The label of an edge stands before the neighbour that it leads to, as in "C(1:C,2:O)". A node without
    neighbours is "C()", at depth two "C()()".
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._colours: Sequence[Hashable] = vocabulary.features()
        self._bonds: Sequence[Hashable] = vocabulary.beside(BONDS).features()
        self._known: dict[int, str] = {}

    def __call__(self, colour: int) -> str:
        """The tree of one colour."""
        if colour not in self._known:
            self._known[colour] = self._written(colour)
        return self._known[colour]

    def label(self, colour: int) -> str:
        """The label at the root."""
        feature = self._colours[colour]
        while not isinstance(feature, tuple):
            feature = self._colours[numbers_of(feature)[0]]
        return str(feature[1])

    def bond(self, number: int) -> str:
        """The label of an edge; where edges have none, 1 for a path of one step."""
        return str(self._bonds[number]) if self._bonds else str(number)

    def _written(self, colour: int) -> str:
        feature = self._colours[colour]
        if isinstance(feature, tuple):
            return str(feature[1])
        before, *around = numbers_of(feature)
        if not around:
            return f"{self(before)}()"
        if self._bonds:
            beside = [f"{self.bond(e)}:{self(c)}" for e, c in zip(around[::2], around[1::2], strict=True)]
        else:
            beside = [self(c) for c in around]
        return f"{self.label(colour)}({','.join(sorted(beside))})"
