"""A table of several kinds of columns as numbers, so that distances between its rows can be measured.

number      (x - mean) / deviation; what is missing is filled with the median
category    an indicator, 0 or 1, for each value that was met; a value that was not has none
date        its years, as a number
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError, ShapeError
from mercer.frames import is_missing
from mercer.kernels.leaves.closing import column_deviations
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.things.categories import MISSING
from mercer.kernels.things.dates import Date
from mercer.kernels.things.reading import Reading, reading
from mercer.kernels.things.scaling import Filled, numbers_with_gaps
from mercer.params import given
from mercer.sparse import dense
from mercer.typing import Array
from mercer.vectors import plain_numbers

Numbers = tuple[float, ...]
Names = tuple[str, ...]

NUMBER, CATEGORY, DATE = "number", "category", "date"
# Fewer gaps than this teach nothing: a mark would only make such rows unlike all others.
ENOUGH_GAPS = 5
# Of a category with more values, so many of the most frequent have an indicator.
MOST_VALUES = 100


class CodedColumn(NamedTuple):
    """One of the numbers: the column that it was made of, and for a category the value that it marks."""

    source: int
    value: str | None = None

    def called(self, names: list[str]) -> str:
        name = names[self.source]
        return name if self.value is None else f"{name} = {self.value}"


KNOWN = "(known)"


@reading
class Coded(Reading):
    """A mixed table as numbers: numbers standardised, categories as indicators, dates as years.

    `kinds` has "number", "category", "date", or "date" with the way dates are written, "date %d.%m.%Y", for
    each column; without it a column whose known cells are numbers is one of numbers, and any other one of
    categories. A number or date that is missing is filled with the median, and where five or more are
    missing in fit, one more indicator says which are known. A missing category is a category of its own.
    The squared distance of two different categories is 2, which is also that of two standardised numbers in
    the mean.

    >>> from mercer import RBF
    >>> k = RBF(1.0).of(Coded()).resolved([[1.0, "red"], [3.0, "blue"]])
    >>> k
    RBF(1.0).of(Coded(["number", "category"], [[2.0, 2.0, 1.0, 0.0]], [["blue", "red"]]))
    >>> k.reading.read(Rows([[5.0, "red"], [None, "grey"]])).vectors.tolist()
    [[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    kinds: Names | None = given(None)
    # median, mean, deviation, and 1 where it is said which are known: of each column of numbers or dates
    numbers: tuple[Numbers, ...] | None = given(None)
    # the values of each category
    values: tuple[Names, ...] | None = given(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kinds is not None:
            object.__setattr__(self, "kinds", tuple(self.kinds))
            for kind in self.kinds:
                if kind not in (NUMBER, CATEGORY) and str(kind).partition(" ")[0] != DATE:
                    raise ParameterError(
                        f"Coded: a kind is 'number', 'category', 'date', or 'date' with its form as in "
                        f"'date %d.%m.%Y'; got {kind!r}."
                    )
        if self.numbers is not None:
            object.__setattr__(self, "numbers", tuple(tuple(map(float, each)) for each in self.numbers))
        if self.values is not None:
            object.__setattr__(self, "values", tuple(tuple(map(str, each)) for each in self.values))
        self._check_closed()

    def _check_closed(self) -> None:
        if self.is_open:
            return
        assert self.kinds is not None and self.numbers is not None and self.values is not None
        categories = sum(kind == CATEGORY for kind in self.kinds)
        proper = all(len(each) == 4 and each[2] > 0 for each in self.numbers)
        if (
            len(self.values) != categories
            or len(self.numbers) != len(self.kinds) - categories
            or not proper
            or not np.isfinite(np.array(self.numbers)).all()
        ):
            raise ParameterError(
                "Coded: numbers has median, mean, a deviation above 0 and a mark for each column of numbers "
                f"or dates, and values a list for each of categories; got {self.numbers!r:.60} and "
                f"{self.values!r:.60} for {self.kinds!r:.60}."
            )

    @property
    def is_open(self) -> bool:
        return self.kinds is None or self.numbers is None or self.values is None

    def resolved_on(self, x: Rows, weight: Array | None) -> Reading:
        if not self.is_open:
            return self
        columns = _columns(x)
        kinds = self.kinds or tuple(_kind_of(column) for column in columns)
        self._require_width(x, len(columns), len(kinds))
        numbers = []
        values = []
        for kind, column in zip(kinds, columns, strict=True):
            if kind == CATEGORY:
                values.append(_met(column, weight))
            else:
                numbers.append(_measured(_numbers(kind, column), weight))
        return Coded(kinds, tuple(numbers), tuple(values))

    def read(self, x: Rows) -> Rows:
        assert self.kinds is not None and self.numbers is not None and self.values is not None
        columns = _columns(x)
        self._require_width(x, len(columns), len(self.kinds))
        numbers = iter(self.numbers)
        values = iter(self.values)
        parts: list[Array] = []
        for kind, column in zip(self.kinds, columns, strict=True):
            if kind == CATEGORY:
                keys = np.array([_key(cell) for cell in _cells(column)], dtype=object)
                parts += [(keys == value).astype(np.float64) for value in next(values)]
                continue
            median, mean, deviation, marked = next(numbers)
            cells = _numbers(kind, column)
            known = ~np.isnan(cells)
            parts.append((np.where(known, cells, median) - mean) / deviation)
            if marked:
                parts.append(known.astype(np.float64))
        return Rows(np.column_stack(parts), x.name)

    def coded_columns(self) -> list[CodedColumn]:
        """What each of the numbers is, in their order."""
        assert self.kinds is not None and self.numbers is not None and self.values is not None
        numbers = iter(self.numbers)
        values = iter(self.values)
        found: list[CodedColumn] = []
        for j, kind in enumerate(self.kinds):
            if kind == CATEGORY:
                found += [CodedColumn(j, value) for value in next(values)]
                continue
            found.append(CodedColumn(j))
            if next(numbers)[3]:
                found.append(CodedColumn(j, KNOWN))
        return found

    def _require_width(self, x: Rows, found: int, wanted: int) -> None:
        if found != wanted:
            raise ShapeError(f"Coded has the kinds of {wanted} columns, but {x.name} has {found}.")


def _columns(x: Rows) -> list[Rows]:
    """Every column by itself, its name in words of the table."""
    data = dense(x.vectors) if sparse.issparse(x.data) else x.data
    if not isinstance(data, np.ndarray) or data.ndim != 2:
        rows = [row if isinstance(row, list | tuple | np.ndarray) else [row] for row in x.things]
        data = np.array(rows, dtype=object)
    return [Rows(data[:, [j]], x.name) for j in range(data.shape[1])]


def _cells(column: Rows) -> list[Thing]:
    found: list[Thing] = np.asarray(column.data)[:, 0].tolist()
    return found


def _kind_of(column: Rows) -> str:
    if plain_numbers(column.data) is not None:
        return NUMBER
    known = [cell for cell in _cells(column) if not is_missing(cell)]
    numeric = all(isinstance(cell, int | float | np.integer | np.floating | np.bool_) for cell in known)
    return NUMBER if numeric and known else CATEGORY


def _numbers(kind: str, column: Rows) -> Array:
    """A column of numbers or dates, NaN where a value is missing."""
    if kind == NUMBER:
        return numbers_with_gaps(column)[:, 0]
    format = kind.partition(" ")[2] or None
    cells = Rows(_cells(column), column.name)
    years = Date("years", format, gaps="keep").read(cells).data
    return np.asarray(years[:, 0], dtype=np.float64)


def _measured(cells: Array, weight: Array | None) -> Numbers:
    """Median, mean and deviation of what is known, filled; and 1 where it is said which are known."""
    w = np.ones(len(cells)) if weight is None else np.asarray(weight, dtype=np.float64)
    filled = Filled().resolved_on(Rows(cells[:, None]), weight)
    assert isinstance(filled, Filled) and filled.medians is not None
    median = filled.medians[0]
    gaps = np.isnan(cells)
    whole = np.where(gaps, median, cells)[:, None]
    # sums of differences keep what the mean itself would lose
    mean = float(whole[0, 0] + (w / w.sum()) @ (whole[:, 0] - whole[0, 0]))
    deviation = float(column_deviations(whole, weight)[0])
    marked = float(np.count_nonzero(gaps & (w > 0)) >= ENOUGH_GAPS)
    if not deviation > 0:
        return median, median, 1.0, marked
    return median, float(f"{mean:.12g}"), float(f"{deviation:.12g}"), marked


def _met(column: Rows, weight: Array | None) -> Names:
    """The values of a category, in alphabetical order; of very many the most frequent."""
    w = np.ones(len(column)) if weight is None else np.asarray(weight, dtype=np.float64)
    counts: Counter[str] = Counter()
    for cell, count in zip(_cells(column), w.tolist(), strict=True):
        if count > 0:
            counts[_key(cell)] += count
    kept = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_VALUES]
    return tuple(sorted(kept))


def _key(value: Thing) -> str:
    """A category as text: 1, 1.0 and True are one, and so are all missing values."""
    if is_missing(value):
        return MISSING
    if isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return f"{float(value):.12g}"
    if isinstance(value, list | dict | set):
        raise InputError(f"a category is a single value; got a {type(value).__name__}, {value!r:.40}.")
    return str(value)
