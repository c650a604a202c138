"""Graphs in the forms that people have: networkx, a matrix of neighbours, a list of edges."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.things.graphs.graph import Graph
from mercer.sparse import Matrix

LABEL = "label"
"""The attribute of networkx's nodes and edges that is read."""


def as_graph(thing: Thing) -> Graph:
    """A graph, whatever form it comes in; an error says what is wrong with it.

    A matrix, dense or sparse, says which nodes are neighbours; a list of pairs are the edges. Either may come
    with the labels of the nodes, as a tuple of two.

    >>> as_graph(([(0, 1), (1, 2)], ["C", "C", "O"]))
    Graph(3 nodes, 2 edges, labels)
    >>> as_graph(np.array([[0, 1], [1, 0]]))
    Graph(2 nodes, 1 edges)
    """
    if isinstance(thing, Graph):
        return thing
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(thing, networkx.Graph):
        return _of_networkx(thing)
    if isinstance(thing, tuple) and len(thing) == 2 and not _is_number(thing[0]):
        return _of_parts(thing[0], thing[1])
    return _of_parts(thing, None)


def _of_parts(first: Thing, labels: Sequence[Hashable] | None) -> Graph:
    """A matrix or a list of edges, with the labels of the nodes or None."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence | np.ndarray | None):
        raise InputError(f"labels must be a list with one for each node; got a {type(labels).__name__}")
    if sparse.issparse(first) or isinstance(first, np.ndarray):
        return _of_matrix(first, labels)
    if not isinstance(first, Sequence) or isinstance(first, str | bytes):
        raise TypeError("a Graph, a networkx graph, a matrix of neighbours or a list of edges was expected")
    nodes = len(labels) if labels is not None else _last_node(first) + 1
    return Graph(nodes, first, labels)


def _last_node(edges: Sequence[Any]) -> int:
    """The largest node of a list of edges; -1 if there is none. Bad edges are found later."""
    try:
        found = np.asarray(edges)
    except ValueError as error:
        raise InputError("an edge is not a pair of nodes") from error
    if found.size == 0 or found.dtype.kind not in "iu":
        return -1
    return int(found.max())


def _of_matrix(matrix: Matrix, labels: Sequence[Hashable] | None) -> Graph:
    """A symmetric matrix of zeros and ones."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"a matrix of neighbours is square; got shape {tuple(matrix.shape)}. Edges are given as a "
            "list of pairs"
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"a matrix of neighbours has zeros and ones; got {matrix.dtype}")
    A = sparse.coo_array(matrix)
    A.sum_duplicates()
    A.eliminate_zeros()
    if not np.all(A.data == 1):
        k = int(np.argmax(A.data != 1))
        raise InputError(
            f"entry ({A.row[k]}, {A.col[k]}) of the matrix of neighbours is {A.data[k]:g}; zeros and ones "
            "were expected, since these kernels read no weights. Pass matrix != 0 to leave them out"
        )
    n = int(A.shape[0])
    here = A.row.astype(np.int64) * n + A.col
    there = A.col.astype(np.int64) * n + A.row
    lonely = ~np.isin(here, there)
    if lonely.any():
        k = int(np.argmax(lonely))
        raise InputError(
            f"the matrix of neighbours is not symmetric: {A.row[k]} has the neighbour {A.col[k]}, and "
            f"{A.col[k]} has not the neighbour {A.row[k]}"
        )
    return Graph(n, np.column_stack([A.row, A.col]), labels)


def _of_networkx(graph: Any) -> Graph:
    """An undirected simple graph of networkx; labels are the attribute "label"."""
    if graph.is_directed():
        raise InputError("it is directed; pass graph.to_undirected()")
    if graph.is_multigraph():
        raise InputError("it has parallel edges; pass networkx.Graph(graph)")
    place = {node: i for i, node in enumerate(graph.nodes)}
    ends = list(graph.edges)
    labels = _attributes([graph.nodes[node] for node in place], [f"node {node!r}" for node in place])
    bonds = _attributes([graph.edges[pair] for pair in ends], [f"edge {pair!r}" for pair in ends])
    return Graph(len(place), [(place[a], place[b]) for a, b in ends], labels, bonds)


def _attributes(dictionaries: list[dict[str, Hashable]], names: list[str]) -> list[Hashable] | None:
    """The labels of all nodes or edges; None if none has one."""
    has = [LABEL in attributes for attributes in dictionaries]
    if not any(has):
        return None
    if not all(has):
        raise InputError(
            f"{names[has.index(True)]} has a label and {names[has.index(False)]} has none; label all of "
            "them, or none"
        )
    return [attributes[LABEL] for attributes in dictionaries]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)
