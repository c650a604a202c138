"""What the kernel tests share: two samples as one, open lengthscales by the median, p-values, the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from mercer.arrays import Rows, column_names
from mercer.errors import InputError, ParameterError, ShapeError
from mercer.frames import is_frame
from mercer.gram import Tiles
from mercer.kernels.base import Kernel, as_kernel
from mercer.params import is_whole
from mercer.sparse import dense
from mercer.theory.judge import judge_on_rows
from mercer.typing import Array, Table
from mercer.vectors import check_vectors

COLUMNS = 256  # permutations that are looked at together
MEDIAN_ROWS = 1000  # rows among which the median distance is taken
# Statistics that differ by less, relatively, are equal: then the permutation counts against rejection.
TIE = 1e-10


@dataclass(frozen=True, eq=False)
class KernelTest:
    """What a test found: the statistic, its p-value, and the statistic under each permutation (`null`).

    `p_value` = (1 + #{null ≥ statistic}) / (1 + permutations), which keeps the level exactly: a true null
    hypothesis is rejected at level a with probability at most a, whatever the sizes and the kernel.
    """

    name: str
    statistic: float
    p_value: float
    null: Array
    kernels: tuple[Kernel, ...]
    method: str
    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def rejects(self, level: float = 0.05) -> bool:
        """Whether the null hypothesis is rejected at this level."""
        if not 0 < level < 1:
            raise ParameterError(f"level must lie between 0 and 1; got {level!r}.")
        return self.p_value <= level

    def __str__(self) -> str:
        head = f"{self.name} = {self.statistic:.6g}, p = {self.p_value:.4g} ({self.method})"
        kernels = ", ".join(str(k) for k in self.kernels)
        sizes = " and ".join(map(str, self.sizes))
        return "\n".join([head, f"  {kernels} on {sizes} rows", *(f"  {note}" for note in self.notes)])


def rows_of(X: Table, name: str, *kernels: Kernel | str) -> Rows:
    """A sample as rows: numbers checked, with the names of their columns, or things left as they are.

    So are tables whose cells the kernels read one by one, and which may have gaps that these know of.
    """
    rows = Rows.of(X, name)
    if rows.is_opaque and not _is_numbers(X):
        return rows
    by_name = not any(as_kernel(kernel).reads_numbers() for kernel in kernels)
    if is_frame(X) and (rows.data.dtype.kind == "O" or by_name):
        # each part of the kernel reads its columns
        return rows
    return Rows(check_vectors(X, name).astype(np.float64, copy=False), name, column_names(X))


def _is_numbers(X: object) -> bool:
    try:
        return np.asarray(X).dtype.kind in "fiub"
    except ValueError:
        # Things of different shapes.
        return False


def pooled(x: Rows, z: Rows) -> Rows:
    """Both samples one after the other."""
    if x.is_opaque or z.is_opaque:
        return Rows([*x.data, *z.data], "X and Z")
    if x.data.dtype.kind == "O" and x.names != z.names:
        raise ShapeError(f"X has the columns {x.names} and Z {z.names}; both samples need the same ones.")
    if x.data.shape[1] != z.data.shape[1]:
        raise ShapeError(
            f"X has {x.data.shape[1]} columns and Z {z.data.shape[1]}; both samples need the same ones."
        )
    if sparse.issparse(x.data) or sparse.issparse(z.data):
        return Rows(sparse.csr_array(sparse.vstack([x.data, z.data])), "X and Z", x.names)
    return Rows(np.vstack([x.data, z.data]), "X and Z", x.names)


def with_median(kernel: Kernel | str, rows: Rows) -> Kernel:
    """The kernel; an open lengthscale is the median distance between the rows.

    Of more than 1000 rows, 1000 evenly spread along one direction are taken, so that the choice does not
    depend on the order of the rows, and a permutation test with it stays exact.

    >>> with_median("RBF()", Rows(np.array([[0.0], [1.0], [3.0]]), "X"))
    RBF(2.0)
    """
    found = as_kernel(kernel)
    if not found.is_open:
        return found
    if rows.is_opaque:
        raise ParameterError(
            f"{kernel} takes its lengthscale from distances, and these rows are not vectors."
        )
    A = rows.data
    if A.shape[0] > MEDIAN_ROWS:
        order = np.argsort(A @ np.cos(np.arange(1.0, A.shape[1] + 1)), kind="stable")
        A = A[order[np.linspace(0, len(order) - 1, MEDIAN_ROWS).astype(int)]]
    A = dense(A)
    distances = pdist(A)
    distances = distances[distances > 0]
    length = float(np.median(distances)) if len(distances) else 1.0
    return found.closed(length)


def judged(kernel: Kernel, rows: Rows, *, strict: bool, lost: str) -> tuple[str, ...]:
    """What has to be said of the kernel of a test, in which a constant cancels; refused if `strict`."""
    return judge_on_rows(
        kernel,
        Tiles(kernel, rows),
        np.arange(len(rows)),
        1 if rows.is_opaque else rows.width,
        strict=bool(strict),
        lost=lost,
        note="the kernel is not positive semi-definite after centring: the statistic is no squared length",
        centred=True,
    ).notes


def check_count(value: object, name: str, low: int) -> int:
    if not is_whole(value) or int(value) < low:
        raise ParameterError(f"{name} must be a whole number >= {low}; got {value!r}.")
    return int(value)


def check_statistic(value: object) -> bool:
    """Whether the biased statistic is wanted."""
    if value not in ("biased", "unbiased"):
        raise ParameterError(f"statistic must be 'biased' or 'unbiased'; got {value!r}.")
    return value == "biased"


def check_sizes(sizes: tuple[int, ...], low: int) -> None:
    if min(sizes) < low:
        raise InputError(
            f"at least {low} rows of each sample are needed; got {' and '.join(map(str, sizes))}."
        )


def p_value(statistic: float, null: Array) -> float:
    """(1 + #{null ≥ statistic}) / (1 + #null); what is equal but for rounding counts as equal.

    >>> p_value(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    close = TIE * max(abs(statistic), float(np.abs(null).max(initial=0.0)))
    return (1 + int((null >= statistic - close).sum())) / (1 + len(null))


def batches(count: int, size: int = COLUMNS) -> Iterator[int]:
    """`count` in parts of at most `size`."""
    for start in range(0, count, size):
        yield min(size, count - start)
