"""What is given becomes rows that kernels compare, a target, and a task.

a data frame          as it is: columns have names
an array, few columns a table whose columns are called x1, x2, …
an array, many        rows of numbers, compared as a whole, dense or sparse
a list of text        a table of one column
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars
from scipy import sparse

from mercer.errors import InputError, ParameterError, ShapeError, TargetError
from mercer.frames import frame_names, frame_rows, gaps, is_frame, with_text_names
from mercer.sparse import Matrix
from mercer.tables.intake import TableFile, read_table
from mercer.typing import Integers, Labels, Table, Targets

TASKS = ("numbers", "classes")
# Numbers in more columns than these are compared as a whole: one lengthscale for each is too many.
MOST_COLUMNS = 60
# A target of whole numbers with at most so many different values is a label.
MOST_LABELS = 10


Source = str | os.PathLike[str] | TableFile | Table


def rows_in(source: Source, columns: int = 0) -> Table:
    """The rows of a file, named or read, without a target that stands beside them; other rows as they are.

    `columns` are those of the model, which a file that leaves out zeros need not have all.
    """
    if isinstance(source, str | os.PathLike):
        source = read_table(os.fspath(source))
    if not isinstance(source, TableFile):
        return source
    source = source.as_wide_as(columns)
    rows = source.matrix if source.frame is None else source.frame
    assert rows is not None
    return rows


@dataclass(frozen=True)
class Given:
    """Rows with named columns, or rows of numbers without names (`names` is None)."""

    table: Any
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, X: Table) -> Given:
        """Rows as they are compared.

        >>> Given.of(np.zeros((3, 2))).names
        ('x1', 'x2')
        >>> Given.of(["red moss", "grey stone"]).names
        ('x1',)
        """
        if is_frame(X):
            names = tuple(frame_names(X))
            _refuse_twins(names)
            return cls(with_text_names(X), names)
        if sparse.issparse(X):
            rows = sparse.csr_array(X)
            if rows.shape[1] > MOST_COLUMNS:
                return cls(rows, None)
            return cls._with_names(rows.toarray())
        array = np.asarray(X)
        if array.ndim == 1 and array.dtype.kind in "UO":
            array = array[:, None]
        if array.ndim != 2:
            raise InputError(f"the table must have rows and columns; got an array of shape {array.shape}.")
        if array.dtype.kind in "biuf" and array.shape[1] > MOST_COLUMNS:
            return cls(array.astype(np.float64, copy=False), None)
        return cls._with_names(array)

    @classmethod
    def _with_names(cls, array: np.ndarray) -> Given:
        names = tuple(f"x{j + 1}" for j in range(array.shape[1]))
        if array.dtype.kind in "biuf":
            columns = {name: array[:, j] for j, name in enumerate(names)}
            return cls(polars.DataFrame(columns), names)
        listed = {name: array[:, j].tolist() for j, name in enumerate(names)}
        return cls(polars.DataFrame(listed, strict=False), names)

    def __len__(self) -> int:
        n = int(self.matrix.shape[0]) if self.names is None else len(self.table)
        if n == 0:
            raise ShapeError("the table has 0 sample(s) while a minimum of 1 is required.")
        return n

    @property
    def matrix(self) -> Matrix:
        """The rows of numbers that have no names."""
        assert self.names is None
        found: Matrix = self.table
        return found

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.matrix.shape[1]) if self.names is None else len(self.names)

    def called(self, names: Sequence[str]) -> Given:
        """The same rows, their columns called by these names, in this order."""
        if self.names is None:
            dense = self.matrix.toarray() if sparse.issparse(self.matrix) else self.matrix
            columns = {name: dense[:, j] for j, name in enumerate(names)}
            return Given(polars.DataFrame(columns), tuple(names))
        return Given(self.table.rename(dict(zip(self.table.columns, names, strict=True))), tuple(names))

    def rows(self, index: Integers) -> Any:
        """Some of the rows, in the same form."""
        if self.names is None:
            return self.matrix[index]
        return frame_rows(self.table, index.tolist())


def _refuse_twins(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two columns of the table are called {name!r}. Rename one of them.")
        seen.add(name)


def as_target(values: Targets, n: int | None = None) -> tuple[Labels, Integers]:
    """The target as an array without gaps, and the rows that have one.

    `n` is how many there must be.

    >>> as_target([3.0, None, 5.0], 3)
    (array([3., 5.]), array([0, 2]))
    """
    to_list = getattr(values, "to_list", None)
    listed: list[Any] = np.asarray(values).ravel().tolist() if to_list is None else to_list()
    if n is not None and len(listed) != n:
        raise TargetError(f"the target must have one value for each of {n} rows; got {len(listed)}.")
    known = np.flatnonzero(~gaps(listed))
    if not len(known):
        raise TargetError("the target has no value at all: there is nothing to learn.")
    if len(known) == len(listed):
        return np.array(listed), known
    return np.array([listed[i] for i in known.tolist()]), known


def find_task(values: Labels, wanted: str | None) -> tuple[str, str]:
    """Numbers or classes, and why.

    >>> find_task(np.array(["oak", "ash", "oak"]), None)
    ('classes', 'The target has 2 different values: classes.')
    """
    distinct = len(set(values.tolist()))
    numeric = values.dtype.kind in "iuf"
    if wanted is not None:
        _check_task(wanted, values, numeric)
        return wanted, f"The target is {wanted}, as you said."
    if distinct < 2:
        (only,) = values.flat[:1].tolist()
        raise TargetError(
            f"the target is {only!r} in every row: there is nothing to tell apart or to predict."
        )
    if not numeric:
        _refuse_what_is_no_class(values, distinct)
        return "classes", f"The target has {distinct} different values: classes."
    whole = bool(np.all(values == np.round(values)))
    if whole and distinct <= MOST_LABELS:
        return "classes", f"The target has {distinct} different whole numbers: classes."
    return "numbers", f"The target has {distinct} different numbers."


def _refuse_what_is_no_class(values: Labels, distinct: int) -> None:
    """Refuse texts as classes where most of them are numbers, or each row has its own; not a few rows."""
    if distinct <= MOST_LABELS:
        return
    cells = values.tolist()
    strange = [i for i, cell in enumerate(cells) if not _reads_as_number(cell)]
    if 0 < len(strange) < len(cells) / 2:
        first = cells[strange[0]]
        raise TargetError(
            f"the target has numbers in {len(cells) - len(strange)} of {len(cells)} rows and {first!r:.60} "
            f"in row {strange[0] + 1} of those with a target. Correct it, or name it as a missing value "
            f"(--missing {first!r:.60}); task='classes' takes every value as a class."
        )
    if distinct == len(cells):
        raise TargetError(
            f"the target has another value in each of its {distinct} rows, such as {cells[0]!r:.60}: it is a "
            "key or a text, and no class can be learned from a single row. Name another column to predict."
        )


def _reads_as_number(cell: object) -> bool:
    try:
        return math.isfinite(float(str(cell)))
    except ValueError:
        return False


def _check_task(wanted: str, values: Labels, numeric: bool) -> None:
    if wanted not in TASKS:
        raise ParameterError(f"task must be 'numbers', 'classes' or None; got {wanted!r}.")
    if wanted == "numbers" and not numeric and values.dtype.kind != "b":
        raise TargetError(
            f"the target holds text such as {values.flat[0]!r}, which is no number: ask for task='classes', "
            "or correct the column."
        )
