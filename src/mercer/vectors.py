"""Numbers that come in are checked once: `check_vectors` decides what a matrix of them may contain.

Finite, not so large that squares overflow, no dates, no text; an error names the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from math import isfinite

import numpy as np
from scipy import sparse

from mercer.errors import DomainError, InputError, InputTypeError, MagnitudeError, NotFiniteError, ShapeError
from mercer.frames import cells, frame_names, is_frame
from mercer.panels import largest_entry
from mercer.sparse import Matrix, check_format, dense
from mercer.typing import Array, Flags


def check_vectors(X: object, name: str = "X", names: Sequence[str] | None = None) -> Matrix:
    """`X` as a 2-D array or CSR matrix of finite float64 or float32 numbers, copied only where needed.

    >>> check_vectors([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if sparse.issparse(X):
        return _check_sparse(X, name)
    X = unmasked(X, name)
    if is_frame(X):
        names = frame_names(X) if names is None else names
        X = cells(X)
    A = _as_array(X, name)
    if A.ndim != 2:
        if A.ndim == 1 and A.size and all(isinstance(thing, str | bytes) for thing in A):
            raise ShapeError(
                f"{name} is a list of text, and columns of numbers are read here. Use a kernel of things, "
                "such as Custom(function), or turn them into numbers first by kernel.of(map)."
            )
        hint = "Reshape your data with X.reshape(-1, 1) for one column, or X.reshape(1, -1) for one row."
        raise ShapeError(
            f"{name} must have two dimensions, rows and columns; got {A.ndim} (shape {A.shape}). {hint}"
        )
    _check_size(A.shape, name)
    A = _as_float(A, name, names)
    _check_values(A, name, names)
    return A


def unmasked(X: object, name: str) -> object:
    """The data of a masked array that masks nothing; one that masks entries is refused; all else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    mask = np.ma.getmaskarray(X)
    if mask.any():
        first = [int(v) for v in np.unravel_index(int(np.argmax(mask)), mask.shape)]
        where = f"row {first[0]}" + "".join(f", column {j}" for j in first[1:])
        raise InputError(
            f"{name} has masked entries (first at {where}). A mask would be dropped silently: drop those "
            f"rows, or fill them first, for example {name}.filled({name}.mean())."
        )
    return X.data


def read_numbers(values: object, name: str) -> Array:
    """Numbers in one or two dimensions: no mask, text, date or complex number, as in rows; NaN is kept.

    >>> read_numbers([1, 2], "y").dtype
    dtype('float64')
    """
    A = _as_array(dense(unmasked(values, name)), name)
    if A.ndim not in (1, 2):
        raise ShapeError(f"{name} must have one or two dimensions; got {A.ndim} (shape {A.shape}).")
    table = A.reshape(len(A), -1) if A.size else A
    return _as_float(table, name, None).reshape(A.shape)


def _as_array(X: object, name: str) -> np.ndarray:
    try:
        A = np.asarray(X)
        if A.dtype.kind in "US" and not isinstance(X, np.ndarray):
            # A list that mixes text and numbers: keep them apart for the message.
            A = np.asarray(X, dtype=object)
        return A
    except (ValueError, TypeError) as error:
        raise ShapeError(
            f"{name} cannot be read as a table of numbers: {str(error).rstrip('.')}. "
            "Give all rows equal length."
        ) from error


def _as_float(A: np.ndarray, name: str, names: Sequence[str] | None) -> Array:
    kind = A.dtype.kind
    if A.dtype in (np.float64, np.float32):
        return A
    if kind == "c":
        raise InputError(
            f"Complex data not supported: {name} is {A.dtype}. Pass real and imaginary parts as columns."
        )
    if kind in "mM":
        raise _dates(name, str(A.dtype))
    if kind in "biuf":
        # A longdouble beyond float64 is refused as infinity later.
        with np.errstate(over="ignore"):
            return A.astype(np.float64)
    return _cells_to_float(A, name, names)


def _dates(name: str, what: str) -> InputTypeError:
    """The error of dates where numbers are read."""
    return InputTypeError(
        f"{name} holds dates or times ({what}), which have no natural unit here. Read them by "
        f'k.of(Date("years")), or convert them first, for example to days: '
        f"({name} - {name}.min()) / np.timedelta64(1, 'D')."
    )


PLAIN = frozenset({float, int, bool, type(None), np.float64, np.float32, np.int64, np.int32, np.bool_})
# Whole numbers up to here are float64 without a loss, and none beyond can be out of its range.
EXACT = 2**53


def plain_numbers(A: object) -> Array | None:
    """A table of numbers as float64 at once, NaN where there is None; None where a cell is anything else.

    >>> plain_numbers(np.array([[1, None], [2.5, True]], dtype=object))
    array([[1. , nan],
           [2.5, 1. ]])
    >>> plain_numbers(np.array([["1"]], dtype=object)) is None
    True
    """
    if not isinstance(A, np.ndarray) or A.ndim != 2:
        return None
    if A.dtype in (np.float64, np.float32):
        return A.astype(np.float64, copy=False)
    if A.dtype != object:
        return None
    cells = A.ravel().tolist()
    kinds = set(map(type, cells))
    if not kinds <= PLAIN:
        return None
    if int in kinds and any(type(cell) is int and abs(cell) > EXACT for cell in cells):
        return None
    return A.astype(np.float64)


def _cells_to_float(A: np.ndarray, name: str, names: Sequence[str] | None) -> Array:
    """Object and text arrays; where they are not plain numbers cell by cell, so that errors name the cell."""
    plain = plain_numbers(A)
    if plain is not None:
        return plain

    def where(i: int, j: int) -> str:
        return f"row {i}, {_column(j, names)}"

    out = np.empty(A.shape)
    for (i, j), cell in np.ndenumerate(A):
        if isinstance(cell, date | np.datetime64):
            raise _dates(name, f"a {type(cell).__name__} at {where(i, j)}")
        if isinstance(cell, str | bytes):
            raise InputError(
                f"{name} has text {str(cell)!r} at {where(i, j)}; numbers were expected. Encode it, drop the "
                "column, or convert numeric text with .astype(float)."
            )
        try:
            out[i, j] = float(cell)
        except OverflowError as error:
            raise MagnitudeError(
                f"{name} has a number beyond the range of float64 at {where(i, j)}. Rescale that column."
            ) from error
        except TypeError as error:
            if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
                out[i, j] = np.nan
                continue
            raise InputTypeError(
                f"{name} has a {type(cell).__name__} at {where(i, j)}; numbers were expected. ({error})"
            ) from error
    return out


def _check_sparse(X: Matrix, name: str) -> Matrix:
    if X.ndim != 2:
        raise ShapeError(f"{name} must have two dimensions; got {X.ndim}.")
    check_format(X, name)
    A = sparse.csr_array(X)
    if len(A.data) > A.indptr[-1]:
        A = A.copy()
        A.prune()
    if not A.has_sorted_indices:
        # turned twice it is sorted, in fewer steps than by sorting rows, unless columns outnumber entries
        A = A.tocsc().tocsr() if A.shape[1] <= A.nnz else A.copy()
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    _check_size(A.shape, name)
    if A.dtype not in (np.float64, np.float32):
        one_entry = A.data[:1].reshape(1, -1) if A.nnz else np.zeros((1, 1), A.dtype)
        A = A.astype(_as_float(one_entry, name, None).dtype)
    top = largest_entry(A.data[:, None])
    if not isfinite(top):
        k = int(np.argmax(~np.isfinite(A.data)))
        row = int(np.searchsorted(A.indptr, k, side="right") - 1)
        _refuse_nonfinite(A.data[k], row, int(A.indices[k]), name, None)
    if top > _largest_allowed(A.dtype, A.shape[1]):
        k = int(np.argmax(np.abs(A.data)))
        _check_magnitude(top, A.dtype, A.shape[1], int(A.indices[k]), name, None)
    return A


def _check_size(shape: tuple[int, ...], name: str) -> None:
    if shape[0] == 0:
        raise ShapeError(f"{name} has 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise ShapeError(f"{name} has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def _check_values(A: Array, name: str, names: Sequence[str] | None) -> None:
    top = largest_entry(A)
    if not isfinite(top):
        i, j = largest_at(~np.isfinite(A))
        _refuse_nonfinite(A[i, j], i, j, name, names)
    if top > _largest_allowed(A.dtype, A.shape[1]):
        j = int(np.argmax(np.abs(A).max(axis=0)))
        _check_magnitude(top, A.dtype, A.shape[1], j, name, names)


@lru_cache(maxsize=256)
def _largest_allowed(dtype: np.dtype, d: int) -> float:
    """Rows of d entries up to this have squared distances that are numbers."""
    return float(np.sqrt(np.finfo(dtype).max / (8 * d)))


def _check_magnitude(
    top: float, dtype: np.dtype, d: int, j: int, name: str, names: Sequence[str] | None
) -> None:
    if top > _largest_allowed(dtype, d):
        raise MagnitudeError(
            f"{name} reaches {top:.3g} in {_column(j, names)}: squared distances overflow {dtype}. "
            "Rescale that column (or look for a placeholder such as 1e300 that means 'missing')."
        )


def _refuse_nonfinite(value: float, i: int, j: int, name: str, names: Sequence[str] | None) -> None:
    word = "NaN" if np.isnan(value) else "infinity"
    raise NotFiniteError(
        f"Input {name} contains {word} (first at row {i}, {_column(j, names)}). Impute or drop it, for "
        "example sklearn.impute.SimpleImputer().fit_transform(X)."
    )


def largest_at(A: Array | Flags) -> tuple[int, int]:
    """Where the largest entry of a matrix is, the first one; of flags, the first that is raised."""
    i, j = np.unravel_index(int(np.argmax(A)), A.shape)
    return int(i), int(j)


def _column(j: int, names: Sequence[str] | None) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"


def real_numbers(values: object, owner: str) -> Array:
    """What a user's function returned, as float64; complex numbers and what is no number are refused."""
    try:
        out = np.asarray(values)
        if not np.iscomplexobj(out):
            return out.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{owner}: the function must return numbers; it returned {values!r:.60}.") from error
    raise InputError(
        f"{owner}: the function returned complex numbers, and the values of a kernel are real. Return the "
        "real part, for example np.real(value), if that is what is meant."
    )


def require_nonnegative(A: Matrix, kernel: str, name: str) -> None:
    """Histogram kernels are defined on counts and frequencies only."""
    values = A.data if sparse.issparse(A) else A
    if values.size and values.min() < 0:
        if sparse.issparse(A):
            k = int(np.argmax(values < 0))
            value = values[k]
            i = int(np.searchsorted(A.indptr, k, side="right") - 1)
            j = int(A.indices[k])
        else:
            i, j = largest_at(A < 0)
            value = A[i, j]
        raise DomainError(
            f"{kernel} is a kernel on histograms: all entries must be >= 0, but {name} has {value:g} at "
            f"row {i}, column {j}. Shift or clip the data, or use another kernel."
        )
