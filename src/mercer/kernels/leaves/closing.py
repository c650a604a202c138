"""Open lengthscales, closed by the spread of the columns, so that units do not matter.

    ℓ_j = s_j √(v/2)

for v columns that vary, with deviations s_j: of standardised columns it is the rule that scikit-learn calls
gamma="scale". Some columns follow a common rule, because their own deviation says little of how far apart
their values are:

    more than half of it one value    (zeros, the background of a picture, indicators) s is the root mean
                                      square of the deviations of all such columns, so that a rare other
                                      value does not count most
    constant                          s is that of all columns; it makes no difference
    of very wide sparse rows          s is that of all columns

Rows count by their weight. Twelve digits are kept, so that weight 2 and a row twice give the same kernel.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy import sparse

from mercer.arrays import MOST_SORTED
from mercer.errors import PrecisionWarning, warn
from mercer.panels import column_ends, largest_entry
from mercer.sparse import Matrix
from mercer.typing import Array, Flags

# The most columns of sparse rows that have lengthscales of their own.
WIDEST = 10_000


def closing_lengths(
    A: Matrix, weight: Array | None = None, ordered: Array | None = None
) -> float | tuple[float, ...]:
    """One number where all columns have the same, else one for each column.

    `ordered` is A with every column sorted, where that is known.

    >>> closing_lengths(np.array([[0.1, 0.0], [2.1, 2000.0]]))
    (1.0, 1000.0)
    """
    # In units of the largest entry: the variance of very small or very large numbers is no number.
    unit = _unit(_largest(A, ordered))
    B = A if unit == 1.0 else A / unit
    w = np.ones(A.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    if sparse.issparse(B):
        spread, varying = _sparse_spread(sparse.csr_array(B), w)
    else:
        if ordered is not None and not np.logical_and.reduce(w == 1.0):
            ordered = None
        if ordered is not None and unit != 1.0:
            ordered = ordered / unit
        spread, varying = column_spread(np.asarray(B, dtype=np.float64), w, ordered)
    if varying == 0:
        warn(
            "X is constant, so every kernel value is the same and nothing can be learned from it; the "
            "lengthscale is taken as 1. Look for a column that varies.",
            PrecisionWarning,
        )
        return 1.0
    if (spread == spread[0]).all():
        spread = spread[:1]
    each = unit * sqrt(0.5 * varying) * spread
    lengths = tuple(float(f"{length:.12g}") for length in each.tolist())
    if len(lengths) == 1:
        return lengths[0]
    return lengths


def column_spread(A: Array, weight: Array, ordered: Array | None = None) -> tuple[Array, int]:
    """The deviation that counts for each column, its own or a common one, and how many columns vary.

    `ordered` is A with every column sorted, known where all rows have weight 1.
    """
    if ordered is None:
        deviations = column_deviations(A, weight)
        pooled = mostly_one_value(A, weight)
    else:
        share = np.full(len(A), 1.0 / len(A))
        deviations = _deviations(A, share, ordered[0], ordered[-1])
        pooled = _mostly_one(ordered)
    return _common(deviations, pooled), int(np.count_nonzero(deviations))


def mostly_one_value(A: Array, weight: Array) -> Flags:
    """Columns where one value has more than half the weight; of many rows, the median of a thousand is tried.

    >>> mostly_one_value(np.array([[0.0, 1.0], [0.0, 2.0], [7.0, 3.0]]), np.ones(3))
    array([ True, False])
    """
    some = weight.nonzero()[0]
    if len(some) > MOST_SORTED:
        some = some[np.linspace(0, len(some) - 1, MOST_SORTED).astype(int)]
    B = A[some]
    order = B.argsort(axis=0, kind="stable")
    below = weight[some][order].cumsum(axis=0)
    middle = (2 * below >= below[-1]).argmax(axis=0)
    columns = np.arange(A.shape[1])
    return _has_most(B[order[middle, columns], columns], A, weight, weight.sum())


def _mostly_one(ordered: Array) -> Flags:
    """Columns where more than half of the rows have one value, which then stands in the middle.

    So many equal entries also reach a quarter of all rows beyond the middle, on one side or the other.
    """
    n = len(ordered)
    middle = (n - 1) // 2
    value = ordered[middle]
    reaches: Flags = (ordered[middle - n // 4] == value) | (ordered[middle + n // 4] == value)
    if not np.logical_or.reduce(reaches):
        return reaches
    return np.asarray(2 * np.count_nonzero(ordered == value, axis=0) > n)


def _has_most(value: Array, A: Array, weight: Array, total: float) -> Flags:
    """Whether a value has more than half the total weight, for each column."""
    return np.asarray(2 * (weight @ (value == A)) > total)


def _sparse_spread(A: Matrix, weight: Array) -> tuple[Array, int]:
    """The same of sparse rows, skipping columns that store nothing; very many columns share one number."""
    live = np.flatnonzero(weight)
    A = A[live]
    weight = weight[live]
    row = np.repeat(np.arange(len(live)), np.diff(A.indptr))
    stored, column = np.unique(A.indices, return_inverse=True)
    w = weight[row]
    x = A.data
    total = weight.sum()

    def per_column(values: Array) -> Array:
        return np.asarray(np.bincount(column, values, minlength=len(stored)), dtype=float)

    mean = per_column(w * x) / total
    # a column that every row stores has nothing missing, and one value in it is a constant, whatever is
    # rounded
    full = np.bincount(column, minlength=len(stored)) == len(live)
    missing = np.where(full, 0.0, total - per_column(w))
    deviations = np.sqrt((per_column(w * (x - mean[column]) ** 2) + missing * mean**2) / total)
    first = np.zeros(len(stored))
    first[column[::-1]] = x[::-1]
    differs = per_column(x != first[column]) > 0
    deviations[~differs & (full | (first == 0))] = 0.0
    varying = int((deviations > 0).sum())
    if varying == 0:
        return np.zeros(1), 0
    pooled = 2 * (total - per_column(w * (x != 0))) > total
    if A.shape[1] <= WIDEST and not pooled.all():
        others = np.flatnonzero(~pooled)
        pooled[others] = mostly_one_value(A[:, stored[others]].toarray(), weight)
    if A.shape[1] > WIDEST or (pooled | (deviations == 0)).all():
        return np.array([np.sqrt(np.mean(deviations[deviations > 0] ** 2))]), varying
    every = np.zeros(A.shape[1])
    every[stored] = deviations
    common = np.ones(A.shape[1], dtype=bool)
    common[stored] = pooled
    return _common(every, common), varying


def _common(deviations: Array, pooled: Flags) -> Array:
    """Deviations, with a common one for pooled and for constant columns."""
    varies = deviations > 0
    if (varies & ~pooled).all():
        return deviations
    out = deviations.copy()
    if (pooled & varies).any():
        out[pooled] = np.sqrt(np.mean(deviations[pooled & varies] ** 2))
    if varies.any():
        out[~varies] = np.sqrt(np.mean(deviations[varies] ** 2))
    if (pooled | ~varies).all() and varies.any():
        # one number says it all
        out[:] = np.sqrt(np.mean(deviations[varies] ** 2))
    return out


def column_deviations(A: Array, weight: Array | None = None) -> Array:
    """The standard deviation of each column, rows counted by weight; exactly 0 where a column has one value.

    >>> column_deviations(np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 5.0]]), np.array([1.0, 0.0, 1.0]))
    array([0., 2.])
    """
    w = np.ones(A.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    live = w > 0
    kept = A if weight is None else A[live]
    w = w[live] / w.sum()
    return _deviations(kept, w, *column_ends(kept))


def _deviations(A: Array, share: Array, low: Array, high: Array) -> Array:
    """The deviation of each column between its ends, for shares of the rows that add up to 1."""
    middle = A[0] + share @ (A - A[0])
    return np.where(high > low, np.sqrt(share @ (A - middle) ** 2), 0.0)


def variance(A: Matrix, weight: Array | None = None) -> float:
    """The variance of all entries of A together, each row counted by its weight."""
    w = np.ones(A.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    count = w.sum() * A.shape[1]
    if sparse.issparse(A):
        data = A.data
        row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        mean = float(w[row] @ data) / count
        filled = float(w[row] @ (data - mean) ** 2)
        spread = (filled + (count - float(w[row].sum())) * mean**2) / count
    else:
        mean = float(w @ A.sum(axis=1)) / count
        spread = float(w @ ((A - mean) ** 2).sum(axis=1)) / count
    if spread > (1e-14 * mean) ** 2:
        return float(spread)
    return 0.0


def _largest(A: Matrix, ordered: Array | None) -> float:
    """max |a_ij|, which is at an end of a column."""
    if ordered is not None:
        return float(max(-np.minimum.reduce(ordered[0]), np.maximum.reduce(ordered[-1])))
    return float(abs(A).max()) if sparse.issparse(A) else largest_entry(A)


def _unit(top: float) -> float:
    """A power of two near the largest entry if that is far from 1, else 1; division by it is exact."""
    if top == 0 or 1e-70 < top < 1e70:
        return 1.0
    return float(np.exp2(max(np.floor(np.log2(top)), -1022.0)))
