"""Targets, checked once: numbers in one column or several, labels in one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer.arrays import dense
from mercer.errors import InputError, InputTypeError, NotFiniteError, ShapeError
from mercer.params import is_real


def check_target_block(y: Any, n: int, who: str) -> tuple[np.ndarray, bool]:
    """y as an n×t float64 block, and whether it came as a single vector.

    >>> check_target_block([1, 2], 2, "KernelRidge")
    (array([[1.],
           [2.]]), True)
    """
    if y is None:
        raise InputError(f"{who} requires y to be passed, but the target y is None.")
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        raise InputError("y has masked entries; a mask would be dropped silently. Drop those rows first.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        Y = np.asarray(dense(y))
    if Y.dtype.kind == "c":
        raise InputError("Complex data not supported: y is complex.")
    if Y.dtype.kind in "mM":
        raise InputTypeError(
            f"y holds dates or times ({Y.dtype}). Convert them to numbers in a unit you choose."
        )
    try:
        Y = Y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers: {error}.") from error
    if Y.ndim not in (1, 2) or (Y.ndim == 2 and Y.shape[1] == 0):
        raise ShapeError(f"y should be a 1d array, or 2d with one column per target; got shape {Y.shape}.")
    if len(Y) != n:
        raise ShapeError(f"X has {n} rows and y has {len(Y)}. Pass one target for each row.")
    if not np.all(np.isfinite(Y)):
        row = int(np.argwhere(~np.isfinite(Y))[0][0])
        what = "NaN" if np.isnan(Y[row]).any() else "infinity or a value too large for dtype('float64')"
        raise NotFiniteError(f"Input y contains {what}. (First at row {row}: drop these rows.)")
    return (Y[:, None], True) if Y.ndim == 1 else (Y, False)


def as_labels(y: Any, n: int, who: str) -> np.ndarray:
    """n labels in one dimension: text, whole numbers, or numbers that are whole; never NaN, never continuous.

    >>> as_labels(np.array([0, 1, 1], dtype=object), 3, "SVC")
    array([0, 1, 1])
    """
    if y is None:
        raise InputError(f"{who} requires y to be passed, but the target y is None")
    if not plain_labels(y):
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "O":
            y = _plainer(y)
        check_finite_targets(y)
        check_classification_targets(y)
    check_length(y, n)
    return y


def plain_labels(y: Any) -> bool:
    """Whole numbers or booleans in one dimension: labels that need no further look, which is slow on small data."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iub"


def _plainer(y: np.ndarray) -> np.ndarray:
    """Labels that came as objects: numbers as numbers; a missing one among others is refused."""
    if all(is_real(v) for v in y):
        return np.array(y.tolist())
    for i, v in enumerate(y):
        if v is None or (is_real(v) and v != v) or type(v).__name__ == "NAType":
            raise NotFiniteError(f"Input y contains NaN. (First at row {i}: drop these rows.)")
    return y


def check_length(y: np.ndarray, n: int) -> None:
    if len(y) != n:
        raise ShapeError(f"X has {n} rows and y has {len(y)}. Pass one target for each row.")


def check_finite_targets(y: np.ndarray) -> None:
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        i = int(np.argmax(~np.isfinite(y)))
        what = "NaN" if np.isnan(y[i]) else "infinity or a value too large for dtype('float64')"
        raise NotFiniteError(f"Input y contains {what}. (First at row {i}: drop these rows.)")
