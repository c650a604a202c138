"""Where to begin: lengthscales that suit the data, before anything is tuned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from mercer.errors import ParameterError
from mercer.sparse import dense
from mercer.typing import Array, Seed, Table
from mercer.vectors import check_vectors

# pairs of so many rows, half a million, fix a median to well under one per cent
MOST_ROWS = 1000


@dataclass(frozen=True)
class Scales:
    """Lengthscales for radial kernels on these rows; all positive and finite.

    median       the median distance between different rows
    variance     √(d·Var(X)/2), what scikit-learn calls gamma="scale"
    nearest      the median distance from a row to its nearest other one; with a smaller lengthscale a kernel
                 sees isolated points
    widest       the largest distance; with a larger lengthscale it sees one point
    per_column   √d times the median distance in each column, for one lengthscale per column: columns in
                 other units then weigh alike. A column without variation gets the median of the others,
                 since its lengthscale does not matter.
    """

    median: float
    variance: float
    nearest: float
    widest: float
    per_column: tuple[float, ...]


def scales(X: Table, *, max_rows: int = MOST_ROWS, random_state: Seed = 0) -> Scales:
    """Lengthscales that suit the rows of X, from at most `max_rows` of them drawn at random.

    Equal rows are counted once, so that duplicates do not pull the median to 0. Where nothing varies, all
    are 1.

    >>> scales([[0.0], [3.0], [4.0]])
    Scales(median=3.0, variance=1.2018504251546631, nearest=1.0, widest=4.0, per_column=(3.0,))
    """
    if isinstance(max_rows, bool) or not isinstance(max_rows, int | np.integer) or max_rows < 2:
        raise ParameterError(f"max_rows must be a whole number >= 2; got {max_rows!r}.")
    A = check_vectors(X)
    if A.shape[0] > max_rows:
        A = A[np.sort(np.random.default_rng(random_state).choice(A.shape[0], max_rows, replace=False))]
    A = np.unique(np.asarray(dense(A), dtype=np.float64), axis=0)
    n, d = A.shape
    if n == 1:
        return Scales(1.0, 1.0, 1.0, 1.0, (1.0,) * d)
    distances = pdist(A)
    square = squareform(distances)
    np.fill_diagonal(square, np.inf)
    columns = np.array([_typical(A[:, j]) for j in range(d)]) * np.sqrt(d)
    varied = columns[columns > 0]
    columns[columns == 0] = np.median(varied) if len(varied) else 1.0
    return Scales(
        median=float(np.median(distances)),
        variance=float(np.sqrt(0.5 * d * A.var())),
        nearest=float(np.median(square.min(axis=1))),
        widest=float(distances.max()),
        per_column=tuple(columns.tolist()),
    )


def median_lengthscale(X: Table, *, max_rows: int = MOST_ROWS, random_state: Seed = 0) -> float:
    """The median distance between different rows: the usual first guess of a lengthscale.

    >>> median_lengthscale([[0.0], [3.0], [4.0], [4.0]])
    3.0
    """
    return scales(X, max_rows=max_rows, random_state=random_state).median


def _typical(column: Array) -> float:
    """The median distance between different values of one column; 0 where there is one value."""
    values = np.unique(column)
    return float(np.median(pdist(values[:, None]))) if len(values) > 1 else 0.0
