"""`mercer.studio(X, y)`: the page inside a notebook, on your own data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import column_names
from mercer.errors import InputError
from mercer.studio import limits
from mercer.studio.machines import CLASSES, NUMBERS
from mercer.studio.points import STRINGS, VECTORS, Points
from mercer.theory.alignment import are_labels
from mercer.typing import Array, Table, Targets


def studio(X: Table | None = None, y: Targets | None = None) -> Any:
    """The studio as a widget: shown at the end of a cell, with the same views as the page of `mercer studio`.

    Parameters
    ----------
    X : rows of numbers (an array, a data frame) or a list of strings; None begins with a preset.
    y : a label or a number for each row; None makes all rows one class.

    It needs anywidget: pip install 'mercer[studio]'. What was drawn and chosen is in `widget.points`,
    `widget.model` and `widget.python`.
    """
    try:
        from mercer.studio.widget import StudioWidget
    except ModuleNotFoundError as error:
        raise InputError(
            f"the studio in a notebook needs {error.name}, which is not installed: "
            "pip install 'mercer[studio]'."
        ) from error
    return StudioWidget(None if X is None else points_of(X, y))


def points_of(X: Table, y: Targets | None) -> Points:
    """Points of a page from rows and targets as people have them.

    >>> found = points_of([[0.0, 1.0], [2.0, 3.0]], ["a", "b"])
    >>> found.columns, found.labels, found.y.tolist()
    (('x1', 'x2'), ('a', 'b'), [0.0, 1.0])
    """
    kind, rows, columns = _rows(X)
    n = len(rows)
    if n > limits.MOST_ROWS:
        raise InputError(
            f"X has {n} rows, and the studio draws at most {limits.MOST_ROWS}. Pass some of them."
        )
    given = np.zeros(n, dtype=int) if y is None else np.asarray(y).ravel()
    if len(given) != n:
        raise InputError(f"X has {n} rows and y has {len(given)}. Pass one target for each row.")
    if y is not None and not are_labels(given):
        return Points(kind, NUMBERS, rows, given.astype(float), columns)
    names, codes = np.unique(given.astype(str), return_inverse=True)
    if len(names) > limits.MOST_CLASSES:
        raise InputError(f"y has {len(names)} classes, and the studio tells {limits.MOST_CLASSES} apart.")
    return Points(kind, CLASSES, rows, codes.astype(float), columns, "y", tuple(names.tolist()))


def _rows(X: Table) -> tuple[str, Any, tuple[str, ...]]:
    if isinstance(X, list) and X and all(isinstance(row, str) for row in X):
        return STRINGS, X, ()
    names = column_names(X)
    try:
        A: Array = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold rows of numbers, or be a list of strings: {error}.") from error
    A = A.reshape(-1, 1) if A.ndim == 1 else A
    if A.ndim != 2 or not 1 <= A.shape[1] <= limits.MOST_COLUMNS:
        raise InputError(
            f"X must be a table of 1 to {limits.MOST_COLUMNS} columns of numbers; got shape {A.shape}."
        )
    if not np.isfinite(A).all():
        raise InputError("X holds NaN or infinity. Leave these rows out.")
    return VECTORS, A, tuple(names or (f"x{c + 1}" for c in range(A.shape[1])))
