"""The rows to tune on: at most so many, drawn at random."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.arrays import Rows, column_names, read_rows
from mercer.errors import InputTypeError, ShapeError
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Table, Targets


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows with their targets.

    `X` is what a machine or a Pipeline is fitted on, and `seen` what the machine gets of it behind the
    transformers of a Pipeline. `rows` are these as the kernel takes them: with the names of columns, where
    there are any. `numbers` are the same as a matrix, None where they are things that are no numbers.
    """

    X: Table
    y: Labels
    numbers: Matrix | None
    rows: Rows
    seen: Table

    @classmethod
    def of(
        cls,
        X: Table,
        y: Targets,
        max_rows: int | None,
        seed: int,
        *,
        things: bool = False,
        before: Pipeline | None = None,
    ) -> Sample:
        """At most so many rows, drawn at random; with `things` they need not be numbers.

        What the kernel takes has gone through the transformers `before` it, fitted on these rows.
        """
        part = _draw(number_of_rows(X, y), max_rows, seed)
        t = np.asarray(y)[part]
        if before is None:
            some = _take(X, part, things)
            seen = some
        else:
            some = _picked(X, part)
            seen = clone(before).fit_transform(some, t)
        read = read_rows(seen, things)
        rows = Rows(read, "X", column_names(seen))
        numbers = None
        if read.dtype.kind != "O":
            numbers = read
        return cls(some, t, numbers, rows, seen)

    def part(self, count: int, Y: Array, seed: int) -> tuple[Rows, Array]:
        """So many of the rows and of their targets Y, drawn at random."""
        if count >= len(self):
            return self.rows, Y
        some = _draw(len(self), count, seed)
        return self.rows.rows(some), Y[some]

    def __len__(self) -> int:
        return len(self.y)


def number_of_rows(X: Table, y: Targets) -> int:
    """How many rows there are, each with its target."""
    n = _length(X)
    shape = np.asarray(y).shape
    if y is None or shape[:1] != (n,):
        raise ShapeError(f"X has {n} rows and y has shape {shape}. Pass one target for each row.")
    return n


def number_of_columns(X: Table) -> int:
    """How many numbers a row has, in a sparse matrix those that are stored."""
    stored = getattr(X, "nnz", None)
    if stored is not None:
        return int(stored) // max(_length(X), 1)
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = np.asarray(X).shape
    return int(shape[1]) if len(shape) > 1 else 1


def _length(X: Table) -> int:
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0])
    if isinstance(X, Sized):
        return len(X)
    raise InputTypeError(f"X has no length; got {type(X).__name__}. Pass a list, an array or a data frame.")


def _draw(n: int, max_rows: int | None, seed: int) -> Integers:
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, int(max_rows), replace=False))


def _take(X: Table, part: Integers, things: bool) -> Table:
    table: Any = X
    if not hasattr(X, "shape"):
        # A list of numbers is a matrix; one of strings or graphs is not to be taken apart.
        table = read_rows(X, things)
    return _picked(table, part)


def _picked(X: Table, part: Integers) -> Table:
    """Some rows of a table, an array or a list, in a form of the same kind."""
    table: Any = X
    if not hasattr(X, "shape"):
        return [table[i] for i in part]
    some: Table = table.iloc[part] if hasattr(table, "iloc") else table[part]
    return some
