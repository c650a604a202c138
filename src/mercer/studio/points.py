"""The data of a page: rows of numbers, strings or small graphs, with a class or a number for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import Graph
from mercer.errors import InputError
from mercer.studio import limits
from mercer.studio.machines import CLASSES, NUMBERS
from mercer.studio.readers import Json, items, number, one_of, record, text, whole
from mercer.typing import Array

VECTORS = "vectors"
STRINGS = "strings"
GRAPHS = "graphs"
KINDS = (VECTORS, STRINGS, GRAPHS)
_ENTRIES = ("preset", "kind", "task", "columns", "target", "labels", "X", "y", "notes")


@dataclass(frozen=True, eq=False)
class Points:
    """Rows `X` and what belongs to each: `y` holds places in `labels`, or numbers where the task is such."""

    kind: str
    task: str
    X: Any
    y: Array
    columns: tuple[str, ...]
    target: str = "y"
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    preset: str = ""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def width(self) -> int:
        """Columns of numbers; 0 for things that have none."""
        return len(self.columns) if self.kind == VECTORS else 0

    def targets(self) -> Any:
        """y as a machine is given it: labels, or numbers."""
        if self.task == NUMBERS:
            return self.y
        return np.asarray(self.labels)[self.y.astype(int)]

    def moved(self, row: int, values: Array) -> Points:
        """The same points, one of them elsewhere."""
        if self.kind != VECTORS or not 0 <= row < len(self) or len(values) != self.width:
            raise InputError(f"there is no row {row} of {self.width} columns to move.")
        X = self.X.copy()
        X[row] = values
        return Points(
            self.kind, self.task, X, self.y, self.columns, self.target, self.labels, self.notes, self.preset
        )

    def part(self, rows: Any) -> Points:
        """Some of the rows."""
        X = self.X[rows] if self.kind == VECTORS else [self.X[i] for i in rows]
        return Points(
            self.kind, self.task, X, self.y[rows], self.columns, self.target, self.labels, self.notes
        )

    def as_json(self) -> Json:
        """What `Points.read` takes."""
        X = self.X.tolist() if self.kind == VECTORS else list(self.X)
        if self.kind == GRAPHS:
            X = [graph_as_json(graph) for graph in self.X]
        y = self.y.tolist() if self.task == NUMBERS else self.y.astype(int).tolist()
        return {
            "preset": self.preset,
            "kind": self.kind,
            "task": self.task,
            "columns": list(self.columns),
            "target": self.target,
            "labels": list(self.labels),
            "X": X,
            "y": y,
            "notes": list(self.notes),
        }

    @classmethod
    def read(cls, value: object) -> Points:
        """The points of a page, checked."""
        given = record(value, "the data", _ENTRIES)
        kind = one_of(given.get("kind", VECTORS), "the kind of the data", KINDS)
        task = one_of(given.get("task", CLASSES), "the task", (CLASSES, NUMBERS))
        columns = tuple(
            text(name, "the name of a column", 200)
            for name in items(given.get("columns", ["x1", "x2"]), "the columns", limits.MOST_COLUMNS)
        )
        labels = tuple(
            text(name, "a label", 200)
            for name in items(given.get("labels", []), "the labels", limits.MOST_CLASSES)
        )
        X = items(given.get("X", []), "the rows", limits.MOST_ROWS)
        y = items(given.get("y", []), "the targets", limits.MOST_ROWS)
        if len(X) != len(y):
            raise InputError(f"there are {len(X)} rows and {len(y)} targets. Give one for each row.")
        return cls(
            kind,
            task,
            _rows(kind, X, len(columns)),
            _targets(task, y, len(labels)),
            columns,
            text(given.get("target", "y"), "the name of the target", 200),
            labels,
            tuple(text(note, "a note", 2_000) for note in items(given.get("notes", []), "the notes", 20)),
            text(given.get("preset", ""), "the preset", 40),
        )


def _rows(kind: str, X: list[Any], width: int) -> Any:
    if kind == STRINGS:
        return [text(row, "a string", limits.MOST_CHARACTERS) for row in X]
    if kind == GRAPHS:
        return [read_graph(row) for row in X]
    if not width:
        raise InputError("rows of numbers need at least one column.")
    out = np.empty((len(X), width))
    for i, row in enumerate(X):
        cells = items(row, f"row {i + 1}", limits.MOST_COLUMNS)
        if len(cells) != width:
            raise InputError(f"row {i + 1} has {len(cells)} numbers, and there are {width} columns.")
        out[i] = [number(cell, f"row {i + 1}") for cell in cells]
    return out


def _targets(task: str, y: list[Any], classes: int) -> Array:
    if task == NUMBERS:
        return np.array([number(value, f"the target of row {i + 1}") for i, value in enumerate(y)])
    if y and not classes:
        raise InputError("classes need labels.")
    return np.array([whole(value, f"the class of row {i + 1}", 0, classes - 1) for i, value in enumerate(y)])


def read_graph(value: object) -> Graph:
    """A graph from its nodes, edges and labels."""
    given = record(value, "a graph", ("nodes", "edges", "labels"))
    nodes = whole(given.get("nodes"), "the number of nodes", 1, limits.MOST_NODES)
    edges = []
    for pair in items(given.get("edges", []), "the edges", limits.MOST_NODES**2):
        if len(items(pair, "an edge", 2)) != 2:
            raise InputError("an edge joins two nodes.")
        edges.append([whole(node, "a node of an edge", 0, nodes - 1) for node in pair])
    labels = None
    if given.get("labels") is not None:
        labels = [text(name, "the label of a node", 20) for name in items(given["labels"], "labels", nodes)]
    return Graph(nodes, edges, labels=labels)


def graph_as_json(graph: Graph) -> Json:
    """What `read_graph` takes."""
    labels = None if graph.labels is None else [str(label) for label in graph.labels]
    return {"nodes": graph.nodes, "edges": graph.edges.tolist(), "labels": labels}
