"""Columns of numbers made ready inside the kernel: standardised, ranked, and with what is missing filled in.

They learn from the rows of fit (they are open until then), so that a model predicts from the raw table.

    Standardized   (x - mean) / deviation
    Ranked         the normal score of the share of the rows that have less
    Filled         the median in place of what is missing
    Known          1 where there is a value, 0 where it is missing
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError, ShapeError
from mercer.frames import is_missing
from mercer.kernels.leaves.closing import column_deviations
from mercer.kernels.things.reading import Reading, reading
from mercer.params import given
from mercer.sparse import dense
from mercer.typing import Array
from mercer.vectors import check_vectors, plain_numbers

Numbers = tuple[float, ...]

# The most values of a column between which shares are interpolated.
MOST_KNOTS = 200


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
class Ranked(Reading):
    """Every number by its rank among the rows of fit, as a normal score.

        Φ⁻¹(share of the rows of fit that have less, ties counted half)

    Units, tails and what stretches a column do not matter then: the column looks normal, with deviation 1.
    Between the values of fit scores are interpolated, beyond them they stay where they are. A column with
    more than 200 different values keeps 200 of them at most, evenly spread over the scores.

    >>> from mercer import Linear
    >>> k = Linear().of(Ranked()).resolved([[1.0], [10.0], [10.0], [1000.0]])
    >>> k
    Linear().of(Ranked([[1.0, 10.0, 1000.0]], [[-1.15034938038, 0.0, 1.15034938038]]))
    >>> k.reading.read(Rows([[0.0], [10.0], [505.0]])).vectors.ravel().round(3).tolist()
    [-1.15, 0.0, 0.575]
    """

    values: tuple[Numbers, ...] | None = given(None)
    scores: tuple[Numbers, ...] | None = given(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("values", "scores"):
            lists = getattr(self, name)
            if lists is not None:
                object.__setattr__(self, name, tuple(tuple(float(v) for v in column) for column in lists))
        if self.values is None or self.scores is None:
            return
        lengths = [len(column) for column in self.values]
        rising = all(np.all(np.diff(column) > 0) for column in (*self.values, *self.scores))
        if lengths != [len(column) for column in self.scores] or 0 in lengths or not rising:
            raise ParameterError(
                "Ranked: values and scores are lists of rising numbers for each column, as long as one "
                f"another; got {self.values!r:.60} and {self.scores!r:.60}."
            )

    @property
    def is_open(self) -> bool:
        return self.values is None or self.scores is None

    def resolved_on(self, x: Rows, weight: Array | None) -> Reading:
        if not self.is_open:
            return self
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
        knots = [_knots(column, w) for column in X.T]
        return Ranked(tuple(values for values, _ in knots), tuple(scores for _, scores in knots))

    def read(self, x: Rows) -> Rows:
        assert self.values is not None and self.scores is not None
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        _require_width(x, X.shape[1], len(self.values), "Ranked")
        columns = zip(X.T, self.values, self.scores, strict=True)
        ranks = [np.interp(column, values, scores) for column, values, scores in columns]
        return Rows(np.column_stack(ranks), x.name, x.names)


def _knots(column: Array, weight: Array) -> tuple[Numbers, Numbers]:
    """The different values of a column, or some of many, and the normal score of each."""
    live = weight > 0
    values, place = np.unique(column[live], return_inverse=True)
    own = np.bincount(place, weights=weight[live])
    shares = (np.cumsum(own) - own / 2) / own.sum()
    # the middle is 0 itself
    scores = np.where(np.abs(shares - 0.5) < 1e-15, 0.0, ndtri(shares))
    if len(values) > MOST_KNOTS:
        wanted = np.linspace(scores[0], scores[-1], MOST_KNOTS)
        kept = np.unique(np.searchsorted(scores, wanted - 1e-12))
        values = values[kept]
        scores = scores[kept]
    return tuple(values.tolist()), _rounded(scores)


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
    """1 where a value is known, 0 where it is missing: of numbers, dates, text or anything else.

    >>> Known().read(Rows([[1.5], [None]])).vectors.ravel().tolist()
    [1.0, 0.0]
    """

    def read(self, x: Rows) -> Rows:
        plain = plain_numbers(x.data)
        if plain is not None:
            return Rows((~np.isnan(plain)).astype(np.float64), x.name, x.names)
        known = [[float(not is_missing(cell)) for cell in row] for row in _cells(x)]
        return Rows(np.array(known), x.name, x.names)


def numbers_with_gaps(x: Rows) -> Array:
    """The rows as numbers, NaN where a value is missing; all else that is no number is refused."""

    def make() -> Array:
        plain = plain_numbers(x.data)
        if plain is not None:
            check_vectors(np.where(np.isnan(plain), 0.0, plain), x.name, x.names)
            return plain
        table = np.array(_cells(x), dtype=object)
        gaps = np.array([[is_missing(cell) for cell in row] for row in table])
        filled = check_vectors(np.where(gaps, 0.0, table), x.name, x.names)
        return np.where(gaps, np.nan, np.asarray(filled, dtype=np.float64))

    return x.remembered("numbers with gaps", make)


def _cells(x: Rows) -> list[list[object]]:
    """The cells of each row; a single value is a row of one."""
    return [list(row) if isinstance(row, np.ndarray | list | tuple) else [row] for row in x.things]


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
