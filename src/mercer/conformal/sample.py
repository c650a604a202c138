"""Rows of anything, taken by their places, and the groups that Mondrian prediction keeps apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError, ParameterError, ShapeError
from mercer.frames import frame_column, frame_names, frame_rows, is_frame
from mercer.typing import Integers, Labels, Table

# Entries of rows × rows of fit that are made at a time.
MOST_ENTRIES = 1 << 23


@dataclass(frozen=True)
class Sample:
    """Rows as they came: numbers, sparse rows, data frames, texts, graphs, or products with other rows."""

    X: Any
    pairwise: bool = False

    @classmethod
    def of(cls, X: Table, pairwise: bool = False) -> Sample:
        if is_frame(X):
            return cls(X, pairwise)
        if sparse.issparse(X):
            return cls(X.tocsr(), pairwise)  # type: ignore[union-attr]
        if not isinstance(X, list | tuple) and not hasattr(X, "shape"):
            X = np.asarray(X)
        if getattr(X, "shape", None) == ():
            raise InputError(f"X must have rows; got {X!r}. Reshape your data: Expected 2D array.")
        return cls(X, pairwise)

    def __len__(self) -> int:
        shape = getattr(self.X, "shape", None)
        return len(self.X) if shape is None else int(shape[0])

    def rows(self, index: Integers) -> Any:
        """Some of the rows, in the same form."""
        if is_frame(self.X):
            return frame_rows(self.X, index.tolist())
        if isinstance(self.X, list | tuple):
            return [self.X[i] for i in index]
        return self.X[index]

    def learned(self, index: Integers) -> Any:
        """Rows to fit a model to; of products those with one another."""
        return self.compared(index, index)

    def compared(self, index: Integers, fitted: Integers | None) -> Any:
        """Rows to ask a model about that was fitted to others; of products those with the others."""
        if not self.pairwise or fitted is None:
            return self.rows(index)
        return np.asarray(self.X)[np.ix_(index, fitted)]

    def chunks(self, columns: int) -> list[Integers]:
        """Places of all rows, as many at a time as make an array of moderate size with so many columns."""
        count = max(1, MOST_ENTRIES // max(columns, 1))
        every = np.arange(len(self))
        return [every[start : start + count] for start in range(0, len(self), count)]


def groups_of(by: int | str | None, X: Table, given: object, n: int) -> Labels | None:
    """The group of each row: given, or what a column holds; None where all rows are one group."""
    if given is not None:
        groups = np.asarray(given)
        if groups.shape != (n,):
            raise ShapeError(f"groups must have one label for each of {n} rows; got shape {groups.shape}.")
        return _known(groups)
    if by is None:
        return None
    return _known(_column(by, X))


def _column(by: int | str, X: Table) -> Labels:
    if is_frame(X):
        names = frame_names(X)
        name = names[by] if isinstance(by, int) and -len(names) <= by < len(names) else str(by)
        if name not in names:
            raise ParameterError(f"by={by!r} is no column; X has {', '.join(map(str, names))}.")
        return np.asarray(frame_column(X, name))
    if isinstance(by, str):
        raise ParameterError(f"by={by!r} names a column, and X has no names. Pass a number, or groups=.")
    table: Any = X if sparse.issparse(X) else np.asarray(X)
    width = table.shape[1] if table.ndim == 2 else 0
    if not -width <= by < width:
        raise ParameterError(f"by={by!r} is no column; X has {width}.")
    if sparse.issparse(table):
        return np.asarray(table[:, [by]].toarray())[:, 0]
    return np.asarray(table[:, by])


def _known(groups: Labels) -> Labels:
    """Labels of groups as text or numbers; missing ones are refused."""
    if groups.dtype.kind == "O":
        groups = np.array(groups.tolist())
    if groups.dtype.kind == "O" or (groups.dtype.kind == "f" and np.isnan(groups).any()):
        row = next((i for i, each in enumerate(groups.tolist()) if each is None or each != each), 0)
        raise InputError(f"row {row} has no group. Give every row one, for instance the word 'other'.")
    return groups
