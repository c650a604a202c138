"""Targets of regression: one column of numbers or several, checked once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.arrays import dense
from mercer.errors import InputError, InputTypeError, NotFiniteError, ShapeError


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
