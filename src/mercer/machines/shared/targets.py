"""Targets, checked once: numbers in one column or several, labels in one."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer.errors import InputError, InputTypeError, NotFiniteError, ParameterError, ShapeError
from mercer.params import is_real
from mercer.typing import Array, Integers, Labels, Setting, Targets
from mercer.vectors import read_numbers, unmasked


def check_target_block(y: Targets | None, n: int, who: str) -> tuple[Array, bool]:
    """y as an n×t float64 block, and whether it came as a single vector.

    >>> check_target_block([1, 2], 2, "KernelRidge")
    (array([[1.],
           [2.]]), True)
    """
    if y is None:
        raise InputError(f"{who} requires y to be passed, but the target y is None.")
    Y = np.asarray(y)
    if Y.ndim in (1, 2):
        Y = read_numbers(y, "y").astype(np.float64)
    if Y.ndim not in (1, 2) or (Y.ndim == 2 and Y.shape[1] == 0):
        raise ShapeError(f"y should be a 1d array, or 2d with one column per target; got shape {Y.shape}.")
    if len(Y) != n:
        raise ShapeError(f"X has {n} rows and y has {len(Y)}. Pass one target for each row.")
    if not np.all(np.isfinite(Y)):
        row = int(np.argwhere(~np.isfinite(Y))[0][0])
        _refuse_nonfinite(bool(np.isnan(Y[row]).any()), row)
    single = Y.ndim == 1
    return (Y[:, None] if single else Y), single


def check_numbers(y: Targets | None, n: int, who: str) -> Array:
    """y as n finite numbers in one dimension.

    >>> check_numbers([1, 2], 2, "SVR")
    array([1., 2.])
    """
    if y is None:
        raise InputError(f"{who} requires y to be passed, but the target y is None")
    numbers = read_numbers(y, "y")
    if numbers.ndim != 1:
        numbers = column_or_1d(numbers, warn=True)
    numbers = numbers.astype(np.float64)
    check_length(numbers, n)
    check_finite_targets(numbers)
    return numbers


def as_labels(y: Targets | None, n: int, who: str) -> Labels:
    """n labels in one dimension: text, or whole numbers of any type; never NaN, never continuous.

    >>> as_labels(np.array([0, 1, 1], dtype=object), 3, "SVC")
    array([0, 1, 1])
    """
    if y is None:
        raise InputError(f"{who} requires y to be passed, but the target y is None")
    labels = np.asarray(y) if plain_labels(y) else _read_labels(y)
    check_length(labels, n)
    return labels


def _read_labels(y: Targets) -> Labels:
    """Labels of any type in one dimension, looked through."""
    labels: Labels = column_or_1d(unmasked(y, "y"), warn=True)
    if labels.dtype.kind == "O":
        labels = _plainer(labels)
    if labels.dtype.kind in "mM":
        raise InputTypeError(
            f"y holds dates or times ({labels.dtype}), and classes are text or whole numbers. Name the "
            "classes by one of them, for example y.astype(str)."
        )
    check_finite_targets(labels)
    check_classification_targets(labels)
    return labels


def plain_labels(y: object) -> bool:
    """Whole numbers or booleans in one dimension: labels that need no look, which is slow on small data."""
    return (
        isinstance(y, np.ndarray)
        and not isinstance(y, np.ma.MaskedArray)
        and y.ndim == 1
        and y.dtype.kind in "iub"
    )


def _plainer(y: Labels) -> Labels:
    """Labels that came as objects: numbers as numbers, text as it is.

    Missing ones, dates and mixtures are refused.
    """
    if all(is_real(v) for v in y):
        return np.array(y.tolist())
    for i, v in enumerate(y):
        if v is None or (is_real(v) and v != v) or type(v).__name__ in ("NAType", "NaTType"):
            raise NotFiniteError(f"Input y contains NaN. (First at row {i}: drop these rows.)")
        if isinstance(v, date | timedelta | np.datetime64 | np.timedelta64):
            raise InputTypeError(
                f"y has a {type(v).__name__} at row {i}, and classes are text or whole numbers. Name the "
                "classes by one of them, for example by str."
            )
    kinds = {"text" if isinstance(v, str) else "a number" for v in y if is_real(v) or isinstance(v, str)}
    if len(kinds) > 1:
        raise InputError(
            "y mixes text and numbers, so that 1 and '1' would be two classes. Name all classes in one way, "
            "for example [str(v) for v in y]."
        )
    return y


def check_length(y: Labels, n: int) -> None:
    """One target for each of n rows."""
    if len(y) != n:
        raise ShapeError(f"X has {n} rows and y has {len(y)}. Pass one target for each row.")


def check_finite_targets(y: Labels) -> None:
    """Refuse NaN and infinity, with the first row that has it."""
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        i = int(np.argmax(~np.isfinite(y)))
        _refuse_nonfinite(bool(np.isnan(y[i])), i)


def _refuse_nonfinite(missing: bool, row: int) -> None:
    what = "NaN" if missing else "infinity or a value too large for dtype('float64')"
    raise NotFiniteError(f"Input y contains {what}. (First at row {row}: drop these rows.)")


def check_labels(y: Targets | None, n: int, who: str) -> tuple[Labels, Integers]:
    """The classes of n labels, sorted, at least two; and the labels as codes 0, 1, 2, …"""
    labels = as_labels(y, n, who)
    classes = np.unique(labels)
    codes = np.searchsorted(classes, labels)
    if len(classes) < 2:
        raise InputError(
            f"y has one class only, {classes[0]!r}, and a classifier needs at least two (the number of "
            "classes has to be greater than one; got 1 class). To describe a single class use OneClassSVM."
        )
    return classes, codes


def class_weights(given: Setting, classes: Labels, codes: Integers, w: Array) -> Array:
    """One factor for each class: from a dict by label, or "balanced" (rows counted by their weight)."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        mass = np.bincount(codes, w, minlength=len(classes))
        balanced: Array = np.divide(w.sum(), len(classes) * mass, out=np.zeros(len(classes)), where=mass > 0)
        return balanced
    if not isinstance(given, dict):
        raise ParameterError(f"class_weight must be None, 'balanced' or a dict by label; got {given!r}.")
    unknown = [c for c in given if c not in classes.tolist()]
    if unknown:
        raise ParameterError(
            f"The classes, {unknown}, are not in class_weight's data: y has the classes {classes.tolist()}."
        )
    out = np.array([float(given.get(c, 1.0)) for c in classes.tolist()])
    if not np.all(np.isfinite(out) & (out >= 0)):
        raise ParameterError(f"class weights must be finite and >= 0; got {given!r}.")
    return out
