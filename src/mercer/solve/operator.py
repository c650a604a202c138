"""The operator protocol: all that a solver may know of a matrix; and an array seen through it.

A solver never asks what is behind an operator. Products run in the operator's own precision; everything else
here is float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from mercer.errors import NotFiniteError, ParameterError, ShapeError
from mercer.panels import Entries, panels
from mercer.typing import Array, Index


class Products(Protocol):
    """A symmetric matrix of which nothing but its products is known: enough for conjugate gradients."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __matmul__(self, V: Array) -> Array: ...


class Operator(Products, Protocol):
    """A symmetric n×n matrix, known by what it does.

    `@` takes a vector or an n×r block of the operator's dtype; `block` takes integer arrays or slices, and
    `slice(None)` means all; arrays handed out by `block`, `diag` and `dense` are not written to by any
    solver. What only some operators can do, the others answer with None, as this class does for those that
    inherit from it.
    """

    def diag(self) -> Array: ...

    def block(self, rows: Index, cols: Index) -> Array: ...

    def dense(self) -> Array: ...

    def shifted(self, lam: float) -> Operator: ...

    def low_rank_factor(self) -> Array | None:
        """F with A = F Fᵀ where A is known to be that, with few columns; else None."""
        return None

    def program(self) -> tuple[object, ...] | None:
        """What the core needs to compute rows of A by itself; else None."""
        return None

    def in_memory(self) -> Entries | None:
        """Where A is in memory; None where it is not."""
        return None


@runtime_checkable
class FarOperator(Protocol):
    """A matrix whose rows are computed by other machines: some columns are cheap, and all entries are not."""

    @property
    def is_far(self) -> bool:
        """Whether they still are."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def block(self, rows: Index, cols: Index) -> Array: ...

    def columns_times(self, cols: Index, V: Array) -> Array:
        """A[:, cols] V, for a price that is proportional to the number of columns."""


MEMBERS = ("__matmul__", "diag", "block", "dense", "shifted", "low_rank_factor", "program", "in_memory")

# What solvers are called with: an operator, or the entries of a symmetric matrix.
MatrixLike: TypeAlias = Operator | Array | list[list[float]]


@dataclass(frozen=True, eq=False)
class ArrayOperator(Operator):
    """A symmetric array as an operator; the array is not copied.

    >>> A = ArrayOperator(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> A.shifted(1.0) @ np.array([1.0, 0.0])
    array([3., 1.])
    """

    array: Array
    shift: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    def __matmul__(self, V: Array) -> Array:
        out: Array = self.array @ V
        if self.shift:
            out = out + self.dtype.type(self.shift) * V
        return out

    def diag(self) -> Array:
        out: Array = self.array.diagonal() + self.dtype.type(self.shift)
        return out

    def block(self, rows: Index, cols: Index) -> Array:
        every = np.arange(self.shape[0])
        i = every[rows]
        j = every[cols]
        part: Array
        if isinstance(rows, slice) or isinstance(cols, slice):
            part = self.array[rows, cols]
        else:
            part = self.array[np.ix_(i, j)]
        if self.shift:
            part = part + self.dtype.type(self.shift) * (i[:, None] == j[None, :])
        return part

    def dense(self) -> Array:
        if not self.shift:
            return self.array
        return self.block(slice(None), slice(None))

    def shifted(self, lam: float) -> ArrayOperator:
        return ArrayOperator(self.array, self.shift + lam)

    def in_memory(self) -> Entries | None:
        return None if self.shift else Entries(self.array)


@dataclass(frozen=True, eq=False)
class TwoPrecisions(Operator):
    """One matrix twice: `single` in float32 for products, `exact` in float64 for residuals and entries.

    >>> A = ArrayOperator(np.array([[2.0, 0.1], [0.1, 3.0]]))
    >>> pair = TwoPrecisions(ArrayOperator(A.array.astype(np.float32)), A)
    >>> multiply_exactly(pair, np.array([0.0, 1.0])), pair.dtype
    (array([0.1, 3. ]), dtype('float32'))
    """

    single: Operator
    exact: Operator

    @property
    def shape(self) -> tuple[int, int]:
        return self.exact.shape

    @property
    def dtype(self) -> np.dtype:
        return self.single.dtype

    def __matmul__(self, V: Array) -> Array:
        return self.single @ V

    def diag(self) -> Array:
        return self.exact.diag()

    def block(self, rows: Index, cols: Index) -> Array:
        return self.exact.block(rows, cols)

    def dense(self) -> Array:
        return self.exact.dense()

    def shifted(self, lam: float) -> TwoPrecisions:
        return TwoPrecisions(self.single.shifted(lam), self.exact.shifted(lam))


def as_operator(A: MatrixLike | Products, *, products_only: bool = False) -> Operator:
    """`A` itself if it is an operator; an array, checked for shape, finiteness and symmetry, as one.

    A solver of `products_only` asks for nothing but `shape`, `dtype` and `@`.

    >>> as_operator([[1.0, 0.5], [0.0, 1.0]])
    Traceback (most recent call last):
        ...
    mercer.errors.ShapeError: The matrix is not symmetric: entries (0, 1) and (1, 0) differ by 0.5. Pass a
    symmetric one, for example (A + A.T) / 2 if that is what you mean.
    """
    if not isinstance(A, np.ndarray | list | tuple):
        if not products_only:
            _require_members(A)
        _require_square(A.shape)
        return cast("Operator", A)
    array = np.asarray(A)
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    _require_square(array.shape)
    for rows in panels(len(array), array.itemsize):
        upper = array[rows]
        if not np.isfinite(upper).all():
            i, j = np.argwhere(~np.isfinite(upper))[0]
            raise NotFiniteError(
                f"The matrix contains NaN or infinity (first at row {rows.start + i}, column {j}). "
                "Look for missing values in the data, or for a kernel that overflows."
            )
        gap = np.abs(upper - array[:, rows].T)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[i, j] > 8 * np.finfo(array.dtype).eps * np.abs(upper).max():
            row = i + rows.start
            raise ShapeError(
                f"The matrix is not symmetric: entries ({row}, {j}) and ({j}, {row}) differ by "
                f"{gap[i, j]:.3g}. Pass a symmetric one, for example (A + A.T) / 2 if that is what you mean."
            )
    return ArrayOperator(array)


def _require_members(A: object) -> None:
    missing = [name for name in MEMBERS if getattr(type(A), name, None) is None]
    if missing:
        raise ParameterError(
            f"{type(A).__name__} is no operator: it has no {', '.join(missing)}. Pass a symmetric array, or "
            "inherit from mercer.solve.Operator, which answers for what only some operators can do."
        )


def _require_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ShapeError(f"A square matrix with at least one row is needed; got shape {tuple(shape)}.")


def multiply(op: Operator, V: Array, shift: float = 0.0) -> Array:
    """(A + shift·I) V in float64, the product with A in the operator's own precision.

    >>> multiply(ArrayOperator(np.eye(2, dtype=np.float32)), np.array([1.0, 2.0]), shift=1.0)
    array([2., 4.])
    """
    out = np.asarray(op @ np.ascontiguousarray(V, dtype=op.dtype), dtype=np.float64)
    return out + shift * V if shift else out


def multiply_exactly(op: Operator, V: Array, shift: float = 0.0) -> Array:
    """(A + shift·I) V in float64 throughout; a float32 operator is asked for its entries, block by block."""
    if op.dtype == np.float64:
        return multiply(op, V, shift)
    if isinstance(op, TwoPrecisions):
        return multiply(op.exact, V, shift)
    out = shift * V
    for rows in panels(op.shape[0], 8):
        out[rows] += np.asarray(op.block(rows, slice(None)), dtype=np.float64) @ V
    return out


def check_targets(op: Operator, b: npt.ArrayLike, name: str = "b") -> tuple[Array, bool]:
    """The right-hand sides as a float64 n×r block, and whether they came as a single vector."""
    B = np.asarray(b, dtype=np.float64)
    n = op.shape[0]
    if B.ndim not in (1, 2) or B.shape[0] != n:
        raise ShapeError(f"{name} has shape {B.shape}; the matrix needs ({n},) or ({n}, r).")
    if not np.isfinite(B).all():
        row = int(np.argwhere(~np.isfinite(B))[0][0])
        raise NotFiniteError(
            f"{name} contains NaN or infinity (first at row {row}). Impute or drop that row."
        )
    return (B[:, None], True) if B.ndim == 1 else (B, False)


def check_number(value: float, name: str, low: float, *, strict: bool = False) -> float:
    """A finite number that is at least (or, if strict, more than) `low`."""
    number = float(value)
    if not np.isfinite(number) or number < low or (strict and number == low):
        raise ParameterError(
            f"{name} must be a finite number {'>' if strict else '>='} {low:g}; got {value!r}."
        )
    return number


def relative(R: Array, B: Array) -> Array:
    """‖r‖ / ‖b‖ for each column; where b = 0, ‖r‖ itself.

    >>> relative(np.array([[0.5], [0.0]]), np.array([[2.0], [0.0]]))
    array([0.25])
    """
    size = _column_norms(B)
    out: Array = _column_norms(R) / np.where(size > 0, size, 1.0)
    return out


def _column_norms(A: Array) -> Array:
    """‖a‖ of each column: the sums of `np.linalg.norm`, without its questions."""
    out: Array = np.sqrt(np.add.reduce(A * A, axis=0))
    return out
