"""Rows to look at a fitted model with: those of its fit, its landmarks, or rows that are given.

Gaussian processes     the rows of the fit, with their targets
machines on landmarks  the landmarks, without targets
a table that is given  its rows, with the target if it has that column
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.frames import frame_column, frame_names, frame_rows, frame_without, is_frame
from mercer.recipe.explain import LANDMARKS, kept, targets_of_fit
from mercer.recipe.given import Source, as_target
from mercer.tables.intake import TableFile, read_table
from mercer.typing import Integers, Labels, Table

if TYPE_CHECKING:
    from mercer.recipe.estimators import TableMachine


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as the kernel of a model reads them, their targets if known, and in words which they are."""

    rows: Rows
    targets: Labels | None
    words: str

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, most: int, seed: int = 0) -> Sample:
        """At most so many of the rows, drawn at random, in their order."""
        if len(self) <= most:
            return self
        index = np.sort(np.random.default_rng(seed).permutation(len(self))[:most])
        targets = None if self.targets is None else self.targets[index]
        return Sample(self.rows.rows(index), targets, f"{most} rows drawn from {self.words}")

    def with_constant(self, column: str, row: int) -> Rows:
        """The rows with one column everywhere as it is in one of them."""
        assert self.rows.names is not None
        data = np.array(self.rows.data)
        place = self.rows.names.index(column)
        data[:, place] = data[row, place]
        return Rows(data, self.rows.name, self.rows.names)

    def with_other(self, column: str, order: Integers) -> Rows:
        """The rows, one column in another order."""
        assert self.rows.names is not None
        data = np.array(self.rows.data)
        place = self.rows.names.index(column)
        data[:, place] = data[order, place]
        return Rows(data, self.rows.name, self.rows.names)

    def column(self, name: str) -> np.ndarray:
        """The cells of one column."""
        assert self.rows.names is not None
        cells: np.ndarray = self.rows.data[:, self.rows.names.index(name)]
        return cells

    def frame(self) -> polars.DataFrame:
        """The rows as a table, which the model takes."""
        assert self.rows.names is not None
        columns = {name: self.rows.data[:, j].tolist() for j, name in enumerate(self.rows.names)}
        return polars.DataFrame(columns, strict=False)


def sample_of(model: TableMachine, table: Source | None = None) -> Sample:
    """The rows there are to look at a fitted model with."""
    if table is not None:
        return _given(model, table)
    rows = kept(model)
    if rows.name == LANDMARKS:
        return Sample(rows, None, f"the {len(rows)} landmarks, which is what the machine keeps")
    return Sample(rows, targets_of_fit(model, len(rows)), f"the {len(rows)} rows of the fit")


def _given(model: TableMachine, table: Source) -> Sample:
    """The rows of a table, without those whose target is missing."""
    if isinstance(table, str | os.PathLike):
        table = read_table(os.fspath(table))
    values: Labels | None = None
    X: Table
    if not isinstance(table, TableFile):
        X = table
    elif table.frame is not None:
        X = table.frame
    else:
        assert table.matrix is not None
        X = table.matrix
        values = table.target
    target = getattr(model, "target_", None)
    if is_frame(X) and target in frame_names(X):
        values, known = as_target(frame_column(X, str(target)))
        X = frame_without(frame_rows(X, known.tolist()), [str(target)])
    rows = Rows.of(model._rows(X), "the table")
    if values is not None and len(values) != len(rows):
        raise InputError(f"the table has {len(rows)} rows and {len(values)} targets.")
    return Sample(rows, _like(model, values), f"the {len(rows)} rows of the table given")


def _like(model: TableMachine, values: Labels | None) -> Labels | None:
    """Targets in the type of those of the fit; None where they are not of its classes."""
    if values is None:
        return None
    if model.task == "numbers":
        return values.astype(np.float64) if values.dtype.kind in "biuf" else None
    classes = {str(label): label for label in model.classes_}
    if not all(str(value) in classes for value in values.tolist()):
        return None
    return np.array([classes[str(value)] for value in values.tolist()])
