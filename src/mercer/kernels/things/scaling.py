"""Columns of numbers made ready inside the kernel: standardised, and with what is missing filled in.

Both learn from the rows of fit (they are open until then), so that a model predicts from the raw table.

    Standardized   (x - mean) / deviation
    Filled         the median in place of what is missing
    Known          1 where there is a value, 0 where it is missing
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, ShapeError
from mercer.kernels.leaves.closing import column_deviations
from mercer.kernels.things.reading import Reading, reading
from mercer.params import given
from mercer.sparse import dense
from mercer.typing import Array
from mercer.vectors import check_vectors

Numbers = tuple[float, ...]


@reading
class Standardized(Reading):
    """Every column with mean 0 and deviation 1 over the rows of fit; a constant column becomes 0.

    >>> from mercer import Linear
    >>> k = Linear().of(Standardized()).resolved([[1.0, 10.0], [3.0, 30.0]])
    >>> k
    Linear().of(Standardized([2.0, 20.0], [1.0, 10.0]))
    >>> k([[1.0, 10.0], [3.0, 30.0]])
    array([[ 2., -2.],
           [-2.,  2.]])
    """

    means: Numbers | None = given(None)
    deviations: Numbers | None = given(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("means", "deviations"):
            _store_numbers(self, name)

    @property
    def is_open(self) -> bool:
        return self.means is None or self.deviations is None

    def resolved_on(self, x: Rows, weight: Array | None) -> Reading:
        if not self.is_open:
            return self
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        w = np.ones(len(X)) if weight is None else weight
        means = X[0] + (w / w.sum()) @ (X - X[0])
        spread = column_deviations(X, weight)
        unit = np.where(spread > 0, spread, 1.0)
        # the place of 0 to a 10th digit of the deviation, which no model can tell apart
        near = np.round(means / unit, 10) * unit
        return Standardized(tuple(np.where(spread > 0, near, means).tolist()), _rounded(unit))

    def read(self, x: Rows) -> Rows:
        assert self.means is not None and self.deviations is not None
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        _require_width(x, X.shape[1], len(self.means), "Standardized")
        return Rows((X - np.array(self.means)) / np.array(self.deviations), x.name, x.names)


@reading
class Filled(Reading):
    """The median of the known values of the rows of fit, in place of what is missing.

    >>> from mercer import RBF
    >>> k = RBF(1.0).of(Filled()).resolved([[1.0], [2.0], [None], [9.0]])
    >>> k, float(k([[None]], [[2.0]])[0, 0])
    (RBF(1.0).of(Filled([2.0])), 1.0)
    """

    medians: Numbers | None = given(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        _store_numbers(self, "medians")

    @property
    def is_open(self) -> bool:
        return self.medians is None

    def resolved_on(self, x: Rows, weight: Array | None) -> Reading:
        if not self.is_open:
            return self
        X = numbers_with_gaps(x)
        live = slice(None) if weight is None else weight > 0
        known = ~np.isnan(X[live]).all(axis=0)
        if not known.all():
            raise InputError(
                f"column {int(np.argmin(known))} of {x.name} has no value at all, so nothing can be filled "
                "in. Leave that column out."
            )
        return Filled(_rounded(np.nanmedian(X[live], axis=0)))

    def read(self, x: Rows) -> Rows:
        assert self.medians is not None
        X = numbers_with_gaps(x)
        _require_width(x, X.shape[1], len(self.medians), "Filled")
        return Rows(np.where(np.isnan(X), np.array(self.medians), X), x.name, x.names)


@reading
class Known(Reading):
    """1 where a value is known, 0 where it is missing.

    >>> Known().read(Rows([[1.5], [None]])).vectors.ravel().tolist()
    [1.0, 0.0]
    """

    def read(self, x: Rows) -> Rows:
        return Rows((~np.isnan(numbers_with_gaps(x))).astype(float), x.name, x.names)


def numbers_with_gaps(x: Rows) -> Array:
    """The rows as numbers, NaN where a value is missing; all else that is no number is refused."""

    def make() -> Array:
        table = np.array([list(row) if np.ndim(row) else [row] for row in x.things], dtype=object)
        gaps = np.array([[_is_gap(cell) for cell in row] for row in table])
        filled = check_vectors(np.where(gaps, 0.0, table), x.name, x.names)
        return np.where(gaps, np.nan, np.asarray(filled, dtype=np.float64))

    return x.remembered("numbers with gaps", make)


def _is_gap(cell: object) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def _store_numbers(owner: Reading, name: str) -> None:
    """Keep a list of numbers as a tuple of floats."""
    value = getattr(owner, name)
    if value is not None:
        object.__setattr__(owner, name, tuple(float(v) for v in value))


def _rounded(values: Array) -> Numbers:
    """Twelve digits, so that weight 2 and a row twice give the same kernel."""
    return tuple(float(f"{v:.12g}") for v in values)


def _require_width(x: Rows, found: int, wanted: int, who: str) -> None:
    if found != wanted:
        raise ShapeError(f"{who} was fitted on {wanted} columns, but {x.name} has {found}.")
