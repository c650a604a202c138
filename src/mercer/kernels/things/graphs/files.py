"""Sets of graphs in the text files of TU Dortmund (https://chrsmrrs.github.io/datasets)."""

from __future__ import annotations

import gzip
from collections.abc import Hashable
from pathlib import Path

import numpy as np

from mercer.errors import InputError
from mercer.kernels.things.graphs.graph import Graph
from mercer.typing import Integers, Labels


def read_tu(folder: str | Path, *, edge_labels: bool = True) -> tuple[list[Graph], Labels]:
    """The graphs of a folder and the class of each.

    The folder has NAME_A.txt (an edge a line, nodes from 1), NAME_graph_indicator.txt (the graph of each
    node, from 1) and NAME_graph_labels.txt, and perhaps NAME_node_labels.txt and NAME_edge_labels.txt, each
    also as .txt.gz. Nodes without edges stay. Attributes, which are numbers, are not read.

    >>> graphs, y = read_tu("../shared/data/mutag")                                    # doctest: +SKIP
    >>> len(graphs), graphs[0]                                                         # doctest: +SKIP
    (188, Graph(17 nodes, 19 edges, labels, labels of edges))
    """
    files = _files(Path(folder))
    pairs = _numbers(files["A"], 2) - 1
    owner = _numbers(files["graph_indicator"], 1)[:, 0] - 1
    y = _numbers(files["graph_labels"], 1)[:, 0]
    nodes = _optional(files, "node_labels", len(owner))
    bonds = _optional(files, "edge_labels", len(pairs)) if edge_labels else None
    _check(files, pairs, owner, len(y))
    return _taken_apart(pairs, owner, len(y), nodes, bonds), y


def _taken_apart(
    pairs: Integers,
    owner: Integers,
    count: int,
    nodes: list[Hashable] | None,
    bonds: list[Hashable] | None,
) -> list[Graph]:
    """One graph for each number in `owner`, which ascends."""
    order = np.argsort(owner[pairs[:, 0]], kind="stable")
    first_node = np.searchsorted(owner, np.arange(count + 1))
    first_edge = np.searchsorted(owner[pairs[order, 0]], np.arange(count + 1))
    out = []
    for g in range(count):
        here = order[first_edge[g] : first_edge[g + 1]]
        start = int(first_node[g])
        end = int(first_node[g + 1])
        labels = None if nodes is None else nodes[start:end]
        marks = None if bonds is None else [bonds[e] for e in here.tolist()]
        out.append(Graph(end - start, pairs[here] - start, labels, marks))
    return out


def _files(folder: Path) -> dict[str, Path]:
    """The files of one set by what they hold."""
    found = sorted(folder.glob("*_graph_indicator.txt*"))
    if len(found) != 1:
        raise InputError(
            f"{folder} must hold one file NAME_graph_indicator.txt of a set of graphs; it holds {len(found)}."
        )
    name = found[0].name.split("_graph_indicator.txt")[0]
    out = {}
    for what in ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels"):
        for path in (folder / f"{name}_{what}.txt", folder / f"{name}_{what}.txt.gz"):
            if path.exists():
                out[what] = path
    missing = [what for what in ("A", "graph_labels") if what not in out]
    if missing:
        raise InputError(f"{folder} lacks {name}_{missing[0]}.txt.")
    return out


def _numbers(path: Path, columns: int) -> Integers:
    """Whole numbers, so many to a line."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        flat = np.array(data.decode().replace(",", " ").split(), dtype=np.intp)
        return flat.reshape(-1, columns)
    except ValueError as error:
        raise InputError(f"{path} must hold {columns} whole number(s) on each line.") from error


def _optional(files: dict[str, Path], what: str, wanted: int) -> list[Hashable] | None:
    """The labels of nodes or edges, if there is a file of them."""
    if what not in files:
        return None
    found: list[Hashable] = _numbers(files[what], 1)[:, 0].tolist()
    if len(found) != wanted:
        raise InputError(f"{files[what]} has {len(found)} lines, and {wanted} were expected.")
    return found


def _check(files: dict[str, Path], pairs: Integers, owner: Integers, count: int) -> None:
    """Refuse files that do not fit together."""
    if len(owner) == 0 or owner.min() < 0 or owner.max() >= count or np.any(np.diff(owner) < 0):
        raise InputError(f"{files['graph_indicator']} must ascend from 1 to the {count} graphs.")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= len(owner)):
        raise InputError(f"{files['A']} names a node outside 1 to {len(owner)}.")
    crossing = owner[pairs[:, 0]] != owner[pairs[:, 1]]
    if crossing.any():
        line = int(np.argmax(crossing))
        raise InputError(f"line {line + 1} of {files['A']} joins nodes of two graphs.")
