"""Why: f(x) of one place as a sum, with the terms c_i k(x_i, x) that are largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.studio.fitted import Fitted
from mercer.studio.planes import is_slice
from mercer.studio.points import VECTORS
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows
from mercer.typing import Array

SHOWN = 12


def why(fitted: Fitted, view: View) -> Json:
    """The largest terms for a chosen row, or for a place in the plane."""
    x, told = _asked(fitted, view)
    beta = fitted.coefficients
    functions = fitted.functions
    if functions is None or not beta.shape[1]:
        raise InputError(
            f"{fitted.choice.machine} is here no sum of kernel products with the rows, so that there are no "
            "terms to show. Choose another machine, or no approximation."
        )
    terms = (beta * np.asarray(fitted.choice.kernel(x, fitted.points.X))[0][:, None]).T
    which = _function(fitted, terms.sum(axis=1) + functions.offset)
    offset, mine = float(functions.offset[which]), terms[which]
    order = np.argsort(-np.abs(mine), kind="stable")[:SHOWN]
    order = order[mine[order] != 0]
    return {
        "of": told,
        "function": _name(fitted, which),
        "total": float(mine.sum() + offset),
        "offset": offset,
        "rest": float(mine.sum() - mine[order].sum()),
        "terms": [_term(fitted, int(row), x, float(mine[row]), float(beta[row, which])) for row in order],
        "used": int((mine != 0).sum()),
    }


def _asked(fitted: Fitted, view: View) -> tuple[Any, Json]:
    points = fitted.points
    if view.chosen is not None:
        row = points.part([view.chosen]).X
        return row, {"row": view.chosen}
    if view.at is not None and points.kind == VECTORS and (points.width == 1 or is_slice(points, view)):
        row = held_rows(view, np.array([view.at[0]]), np.array([view.at[1]]))
        return row, {"at": list(view.at)}
    row = points.part([0]).X
    return row, {"row": 0}


def _function(fitted: Fitted, values: Array) -> int:
    """The function that decided: the only one, or the one that says most."""
    return 0 if len(values) == 1 else int(np.argmax(np.abs(values)))


def _name(fitted: Fitted, which: int) -> str:
    functions = fitted.functions
    if functions is None or functions.classes is None or not functions.duels:
        return "f"
    plus, minus = functions.duels[which]
    other = "the rest" if minus is None else functions.classes[minus]
    return f"{functions.classes[plus]} against {other}"


def _term(fitted: Fitted, row: int, x: Any, value: float, coefficient: float) -> Json:
    shown = fitted.points.part([row]).X
    k = float(np.asarray(fitted.choice.kernel(x, shown))[0, 0])
    return {"row": row, "value": value, "coefficient": coefficient, "k": k}
