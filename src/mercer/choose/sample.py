"""The rows to tune on: at most so many, drawn at random."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Rows, column_names, read_rows
from mercer.errors import InputTypeError, ShapeError
from mercer.sparse import Matrix
from mercer.typing import Integers, Labels, Table, Targets


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows with their targets.

    `X` is what a machine is fitted on, and `rows` what a kernel takes: with the names of columns, where
    there are any. `numbers` are the same rows as a matrix, None where they are things that are no numbers.
    """

    X: Table
    y: Labels
    numbers: Matrix | None
    rows: Rows

    @classmethod
    def of(cls, X: Table, y: Targets, max_rows: int | None, seed: int, *, things: bool = False) -> Sample:
        """At most so many rows, drawn at random; with `things` they need not be numbers."""
        part = _draw(number_of_rows(X, y), max_rows, seed)
        some = _take(X, part, things)
        read = read_rows(some, things)
        rows = Rows(read, "X", column_names(some))
        numbers = None
        if read.dtype.kind != "O":
            numbers = read
        return cls(some, np.asarray(y)[part], numbers, rows)

    def __len__(self) -> int:
        return len(self.y)


def number_of_rows(X: Table, y: Targets) -> int:
    """How many rows there are, each with its target."""
    n = _length(X)
    shape = np.asarray(y).shape
    if y is None or shape[:1] != (n,):
        raise ShapeError(f"X has {n} rows and y has shape {shape}. Pass one target for each row.")
    return n


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
    some: Table = table.iloc[part] if hasattr(table, "iloc") else table[part]
    return some
