"""A table that was dropped on the page, or named on the command line, becomes points.

Columns of numbers are inputs; one column is the target, few values of text or whole numbers being classes.
Rows with a gap in these columns are left out, and longer tables are drawn from: the notes say how many.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars

from mercer import read_table
from mercer.errors import InputError
from mercer.studio import limits
from mercer.studio.machines import CLASSES, NUMBERS
from mercer.studio.points import VECTORS, Points
from mercer.studio.readers import Json
from mercer.tables.intake import TableFile
from mercer.tables.roles import Role, role_of

SHOWN = 30
INPUT, TARGET, ASIDE = "input", "target", "left out"


@dataclass(frozen=True)
class Column:
    """A column of a table: what it is, and what it could be used as."""

    role: Role
    numeric: bool
    classes: bool

    @property
    def name(self) -> str:
        return self.role.column


@dataclass(frozen=True)
class Dropped:
    """A table as it was read, with its columns; `points` makes the data of a page of it."""

    name: str
    frame: polars.DataFrame
    columns: tuple[Column, ...]
    notes: tuple[str, ...]

    @classmethod
    def of_bytes(cls, name: str, content: bytes) -> Dropped:
        """A file that came with a message. Its name decides no more than how it is read."""
        if len(content) > limits.MOST_TABLE_BYTES:
            raise InputError(
                f"{name} has {len(content) / 1e6:.1f} MB, and the page takes at most "
                f"{limits.MOST_TABLE_BYTES / 1e6:.0f} MB. Use fewer rows, or `mercer fit` on the whole file."
            )
        suffix = "".join(Path(Path(name).name).suffixes[-2:]) or ".csv"
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / f"table{suffix}"
            place.write_bytes(content)
            try:
                return cls.of_table(name, read_table(place))
            except InputError as error:
                raise InputError(str(error).replace(str(place), name)) from error

    @classmethod
    def of_table(cls, name: str, table: TableFile) -> Dropped:
        """A table that was read."""
        if table.frame is None:
            raise InputError(f"{name} holds sparse rows, which the page does not draw. Use `mercer fit`.")
        columns = tuple(_column(column, table.frame[column]) for column in table.frame.columns)
        return cls(name, table.frame, columns, table.notes)

    def target(self) -> str:
        """The target that is proposed: the last column that could be one."""
        usable = [c.name for c in self.columns if c.classes or c.numeric]
        if not usable:
            raise InputError(f"{self.name} has no column of numbers or of few values to be the target.")
        return usable[-1]

    def points(self, target: str | None = None, inputs: list[str] | None = None) -> Points:
        """The rows that are whole, with the target and inputs asked for, or those proposed."""
        target = target or self.target()
        by_name = {column.name: column for column in self.columns}
        if target not in by_name:
            raise InputError(f"there is no column {target!r:.60} in {self.name}.")
        usable = [c.name for c in self.columns if c.numeric and c.name != target]
        chosen = usable if inputs is None else [name for name in inputs if name in usable]
        if not chosen:
            raise InputError(
                f"{self.name} has no column of numbers besides {target} to learn from. Choose another target."
            )
        chosen = chosen[: limits.MOST_COLUMNS]
        whole = self.frame.select([*chosen, target]).drop_nulls()
        notes = list(self.notes)
        if whole.height < self.frame.height:
            notes.append(f"{self.frame.height - whole.height} rows have a gap in these columns: left out.")
        whole = _sampled(whole, notes)
        X = whole.select(chosen).cast(polars.Float64).to_numpy()
        finite = np.isfinite(X).all(axis=1)
        return _pointed(by_name[target], X[finite], whole[target].filter(finite), chosen, notes, self.name)

    def as_json(self) -> Json:
        """For the data view: columns, roles, and the first rows."""
        shown = self.frame.head(SHOWN)
        return {
            "name": self.name,
            "rows": self.frame.height,
            "columns": [
                {
                    "name": c.name,
                    "kind": c.role.kind,
                    "why": c.role.why,
                    "gaps": c.role.gaps,
                    "numeric": c.numeric,
                    "classes": c.classes,
                }
                for c in self.columns
            ],
            "first": [[_cell(value) for value in row] for row in shown.iter_rows()],
            "notes": list(self.notes),
        }


def _cell(value: object) -> str:
    return "" if value is None else str(value)[:60]


def _column(name: str, values: polars.Series) -> Column:
    role = role_of(name, values.to_list())
    distinct = values.drop_nulls().n_unique()
    few = 2 <= distinct <= limits.MOST_CLASSES
    whole = not values.dtype.is_float() or bool((values.drop_nulls() % 1 == 0).all())
    return Column(role, values.dtype.is_numeric() or values.dtype == polars.Boolean, few and whole)


def _sampled(frame: polars.DataFrame, notes: list[str]) -> polars.DataFrame:
    if not frame.height:
        raise InputError("No row has a value in all of these columns. Choose other columns.")
    if frame.height <= limits.MOST_ROWS:
        return frame
    notes.append(f"{limits.MOST_ROWS} of {frame.height} rows are shown, drawn at random.")
    rows = np.sort(np.random.default_rng(0).choice(frame.height, limits.MOST_ROWS, replace=False))
    kept: polars.DataFrame = frame[rows.tolist()]
    return kept


def _pointed(
    target: Column,
    X: np.ndarray,
    y: polars.Series,
    columns: list[str],
    notes: list[str],
    name: str,
) -> Points:
    notes.insert(0, f"From {name}.")
    if target.classes:
        texts = [str(value) for value in y.to_list()]
        labels = tuple(sorted(set(texts), key=_by_number))
        codes = np.array([labels.index(value) for value in texts], dtype=float)
        return Points(VECTORS, CLASSES, X, codes, tuple(columns), target.name, labels, tuple(notes[:20]))
    numbers = y.cast(polars.Float64, strict=False).to_numpy()
    if not np.isfinite(numbers).all():
        raise InputError(
            f"{target.name} has more than {limits.MOST_CLASSES} values that are no numbers, so that it is no "
            "target here. Choose another target."
        )
    return Points(VECTORS, NUMBERS, X, numbers, tuple(columns), target.name, (), tuple(notes[:20]))


def _by_number(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
