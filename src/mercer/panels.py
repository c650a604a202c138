"""Work on whole matrices, a panel of rows at a time.

No second matrix is needed, and Ctrl-C is heard between two panels.
"""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

import numpy as np

from mercer.typing import Array


class Entries(NamedTuple):
    """A symmetric matrix K in memory, which stands for HKH, H = I - 11ᵀ/n, if `centred`."""

    array: Array
    centred: bool = False
    n_jobs: int | None = None


# Of a matrix, handed around at one time: some hundredths of a second.
PANEL_BYTES = 8 << 20


def panels(n: int, itemsize: int = 8, columns: int | None = None) -> list[slice]:
    """Runs of rows of an n×n matrix, or one with so many columns, each about 8 MiB.

    >>> panels(3), len(panels(4096)), len(panels(4096, columns=1))
    ([slice(0, 3, None)], 16, 1)
    """
    width = n if columns is None else columns
    step = max(1, PANEL_BYTES // (itemsize * max(width, 1)))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def largest_entry(A: Array) -> float:
    """max |a_ij|, NaN if any entry is.

    >>> largest_entry(np.array([[1.0, -3.0]]))
    3.0
    """
    if A.nbytes <= PANEL_BYTES and A.size:
        high = float(np.maximum.reduce(A, axis=None))
        if isnan(high):
            return high
        return max(high, -float(np.minimum.reduce(A, axis=None)), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        ends = [(A[rows].max(), -A[rows].min()) for rows in panels(len(A), A.itemsize, A.shape[1])]
        return float(np.max(ends, initial=0.0))


def column_ends(A: Array) -> tuple[Array, Array]:
    """The smallest and the largest entry of each column.

    >>> [v.tolist() for v in column_ends(np.array([[1.0, -3.0], [0.0, 5.0]]))]
    [[0.0, -3.0], [1.0, 5.0]]
    """
    if A.nbytes <= PANEL_BYTES:
        return np.minimum.reduce(A, axis=0), np.maximum.reduce(A, axis=0)
    runs = panels(len(A), A.itemsize, A.shape[1])
    low = np.min([A[rows].min(axis=0) for rows in runs], axis=0)
    return low, np.max([A[rows].max(axis=0) for rows in runs], axis=0)


def even(K: Array) -> Array:
    """½(K + Kᵀ).

    >>> even(np.array([[1.0, 2.0], [4.0, 1.0]])).tolist()
    [[1.0, 3.0], [3.0, 1.0]]
    """
    out = np.empty(K.shape)
    for rows in panels(len(K)):
        np.add(K[rows], K[:, rows].T, out=out[rows])
        out[rows] *= 0.5
    return out


def least_symmetric(K: Array) -> tuple[int, int]:
    """Where k_ij and k_ji differ most.

    >>> least_symmetric(np.array([[1.0, 2.0], [4.0, 1.0]]))
    (0, 1)
    """
    worst = -1.0
    where = (0, 0)
    for rows in panels(len(K)):
        gap = np.abs(K[rows] - K[:, rows].T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > worst:
            worst = float(gap[i, j])
            where = (rows.start + int(i), int(j))
    return where


def whole_from_lower(lower: Array) -> Array:
    """A symmetric matrix from its lower triangle, whatever is above it.

    >>> whole_from_lower(np.array([[1.0, 9.0], [2.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    out = np.empty(lower.shape, lower.dtype)
    for part in panels(len(lower)):
        square = np.tril(lower[part, part], -1)
        out[part, : part.start] = lower[part, : part.start]
        out[part, part] = square + square.T
        out[part, part.stop :] = lower[part.stop :, part].T
    out[np.diag_indices_from(out)] = lower.diagonal()
    return out


def clear_above(A: Array) -> Array:
    """The matrix itself, with zeros written above its diagonal.

    >>> clear_above(np.array([[1.0, 9.0], [2.0, 3.0]])).tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    for part in panels(len(A), A.itemsize):
        A[part, part] = np.tril(A[part, part])
        A[part, part.stop :] = 0.0
    return A


def without_means(K: Array, means: Array, mean: float) -> Array:
    """k_ij - m_i - m_j + m.

    >>> without_means(np.eye(2), np.full(2, 0.5), 0.5).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    out = np.empty(K.shape)
    for rows in panels(len(K)):
        np.subtract(K[rows], means[rows, None], out=out[rows])
        out[rows] -= means
        out[rows] += mean
    return out


def scaled_both_sides(left: Array, K: Array) -> Array:
    """l_i k_ij l_j.

    >>> scaled_both_sides(np.array([1.0, 2.0]), np.ones((2, 2))).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    out = np.empty(K.shape)
    for rows in panels(len(K)):
        np.multiply(left[rows, None], K[rows], out=out[rows])
        out[rows] *= left
    return out


def scaled_columns(K: Array, weights: Array) -> Array:
    """k_ij w_j.

    >>> scaled_columns(np.ones((2, 2)), np.array([1.0, 2.0])).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    out = np.empty(K.shape)
    for rows in panels(len(K)):
        np.multiply(K[rows], weights, out=out[rows])
    return out


def fortran(A: Array) -> Array:
    """A copy in Fortran's order.

    >>> fortran(np.ones((2, 3))).flags.f_contiguous
    True
    """
    out = np.empty(A.shape, A.dtype, order="F")
    if A.ndim < 2:
        out[...] = A
        return out
    # Column by column of the copy: rows would ask the system for all of its memory at once.
    for part in panels(A.shape[1], A.itemsize, len(A)):
        out[:, part] = A[:, part]
    return out
