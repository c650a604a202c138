"""What a model reads: the columns of its table, their types, and which of them may be missing.

Types are those of the cells that the model has kept. Whether a cell may be missing is found by asking the
model about a row that lacks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars
from scipy import sparse

from mercer.errors import InputError, MercerError
from mercer.files.trial import one_row
from mercer.recipe.estimators import TableMachine
from mercer.recipe.explain import typical_value
from mercer.tables.roles import Role

# A fitted machine; what it has is asked where it is needed.
Model = Any
Cell = object
Cells = list[list[Cell]]

NUMBER = "number"
BOOLEAN = "boolean"
STRING = "string"
KEPT = ("X_fit_", "support_vectors_", "relevance_vectors_", "landmarks_", "X_train_")
WORDS = {NUMBER: "a number", BOOLEAN: "true or false", STRING: "text"}


@dataclass(frozen=True)
class Column:
    """One column: its name, the JSON types of its cells, and what is known about it.

    `used` is whether the model reads it; what it does not read may be left out of a request. `gaps` is
    whether null is answered. `sample` is a cell that the model takes, `example` one that may be shown.
    """

    name: str
    types: tuple[str, ...]
    role: str
    why: str
    used: bool = True
    gaps: bool = False
    sample: Cell = None
    example: Cell = None

    @property
    def needed(self) -> str:
        """What a cell must be, in words."""
        words = [WORDS[kind] for kind in self.types]
        if self.gaps:
            words.append("null")
        return " or ".join(words)


def columns_of(model: Model) -> list[Column] | None:
    """The columns of the table that a model was fitted to; None where its rows have no names."""
    inner = model.machine_ if isinstance(model, TableMachine) else model
    kept = kept_cells(inner)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    found = [_column(model, str(name), j, kept) for j, name in enumerate(names)]
    return [_with_gaps(model, found, j) for j in range(len(found))]


def kept_cells(machine: Model) -> np.ndarray | None:
    """The rows that a machine has kept; None where there are none that show what cells look like."""
    for name in KEPT:
        rows = getattr(machine, name, None)
        if rows is None or sparse.issparse(rows):
            continue
        rows = np.asarray(rows)
        if rows.ndim != 2 and rows.dtype.kind == "O":
            raise InputError(
                f"{type(machine).__name__} was fitted to things such as {rows.flat[0]!r:.40}, and rows of a "
                "request are cells of a table. Only models of tables or of rows of numbers are served."
            )
        if rows.ndim == 2 and len(rows):
            return rows
    return None


def _column(model: Model, name: str, j: int, kept: np.ndarray | None) -> Column:
    role = _role(model, name)
    known: list[Cell] = []
    if kept is not None and j < kept.shape[1]:
        known = [cell for cell in kept[:, j].tolist() if cell is not None and cell == cell]
    types = _types(known, role)
    used = role is None or role.kind != "left out"
    kind = "column" if role is None else role.kind
    why = "" if role is None else role.why
    sample = _as_json(typical_value(np.array(known, dtype=object))) if known else None
    # texts are shown to nobody: the most frequent one may be what somebody wrote
    example = None if kind == "text" else sample
    return Column(name, types, kind, why, used, not used, sample, example)


def _role(model: Model, name: str) -> Role | None:
    """What a column was taken for; None of a machine that does not tell."""
    if not isinstance(model, TableMachine):
        return None
    for role in model.roles_:
        if role.column == name:
            return role
    return Role(name, "left out", "left out as you said")


def _types(known: Sequence[Cell], role: Role | None) -> tuple[str, ...]:
    numbers = [cell for cell in known if isinstance(cell, int | float)]
    found = []
    if numbers:
        found.append(NUMBER)
        if set(numbers) <= {0, 1}:
            found.append(BOOLEAN)
    if len(numbers) < len(known):
        found.append(STRING)
    if found:
        return tuple(found)
    if role is None or role.kind == "number":
        return (NUMBER,)
    if role.kind in ("date", "text"):
        return (STRING,)
    return (NUMBER, BOOLEAN, STRING)


def _as_json(cell: Cell) -> Cell:
    """A cell as a request has it: dates are text."""
    if cell is None or isinstance(cell, bool | int | float | str):
        return cell
    isoformat = getattr(cell, "isoformat", None)
    return str(cell) if isoformat is None else isoformat()


def _with_gaps(model: Model, columns: list[Column], j: int) -> Column:
    """A column that knows whether null is answered."""
    column = columns[j]
    if not column.used:
        return column
    row: list[Cell] = [other.sample for other in columns]
    row[j] = None
    try:
        model.predict(frame_of(columns, [row]))
    except (MercerError, ValueError, TypeError):
        return column
    return Column(**{**vars(column), "gaps": True})


def frame_of(columns: Sequence[Column], rows: Cells) -> polars.DataFrame:
    """Rows of cells as a table."""
    # by name: of a list of series, polars would give one without a name another name
    return polars.DataFrame(
        {column.name: _series(column, [row[j] for row in rows]) for j, column in enumerate(columns)}
    )


def _series(column: Column, cells: list[Cell]) -> polars.Series:
    if STRING not in column.types:
        numbers = [None if cell is None else float(cell) for cell in cells]  # type: ignore[arg-type]
        return polars.Series(column.name, numbers, dtype=polars.Float64)
    if column.types == (STRING,):
        return polars.Series(column.name, cells, dtype=polars.String)
    return polars.Series(column.name, [_level(cell) for cell in cells], dtype=polars.Object)


def _level(cell: Cell) -> Cell:
    """A cell of a column of numbers and text: truth values are 0 and 1 there."""
    return float(cell) if isinstance(cell, bool | int) else cell


def zeros_or_kept(model: Model) -> np.ndarray:
    """A row of numbers that a model without names of columns can be asked about."""
    row = one_row(model.machine_ if isinstance(model, TableMachine) else model)
    width = int(model.n_features_in_)
    if row is None:
        return np.zeros((1, width))
    dense = row.toarray() if sparse.issparse(row) else np.asarray(row)
    return dense.reshape(1, -1).astype(np.float64)
