"""Compare: two machines, or exact against approximate, on the same grid; and where they differ."""

from __future__ import annotations

import numpy as np

from mercer.errors import InputError
from mercer.studio.fitted import Fitted
from mercer.studio.machines import CLASSES
from mercer.studio.packing import packed
from mercer.studio.planes import box_around, grid_on, is_slice
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows
from mercer.typing import Array

COLUMNS, ROWS = 72, 54


def comparison(first: Fitted, second: Fitted, view: View) -> Json:
    """Both functions on one grid, the difference of them, and how far apart they are on the points."""
    points = first.points
    answer: Json = {"first": first.summary(), "second": second.summary()}
    a, b = first.values(points.X), second.values(points.X)
    answer["rows"] = _apart(a, b)
    if points.task == CLASSES:
        answer["disagree"] = int((first.winners(a) != second.winners(b)).sum())
    if points.width == 1:
        x = points.X[:, 0]
        room = 0.15 * (float(np.ptp(x)) or 1.0)
        grid = np.linspace(x.min() - room, x.max() + room, 200)
        answer["mode"] = "curve"
        answer["x"] = packed(grid)
        answer["lines"] = [packed(one.values(grid[:, None])) for one in (first, second)]
        answer["grid"] = _apart(*(one.values(grid[:, None]) for one in (first, second)))
        return answer
    if not is_slice(points, view):
        answer["mode"] = "points"
        return answer
    box = view.box or box_around(points.X[:, list(view.axes)])
    rows = held_rows(view, *grid_on(box, COLUMNS, ROWS))
    f, g = first.values(rows), second.values(rows)
    if f.shape != g.shape:
        raise InputError("The two machines have different functions, so that they cannot be subtracted.")
    answer.update({"mode": "plane", "box": list(box), "grid": _apart(f, g)})
    answer["fields"] = [packed(_one(values).reshape(ROWS, COLUMNS)) for values in (f, g)]
    answer["difference"] = packed(_one(np.abs(g - f)).reshape(ROWS, COLUMNS))
    return answer


def _one(values: Array) -> Array:
    """One number for each place: f itself, or the lead of the winner."""
    if values.ndim == 1:
        return values
    ordered = np.sort(values, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def _apart(a: Array, b: Array) -> Json | None:
    if a.shape != b.shape:
        return None
    apart = np.abs(a - b)
    return {"rms": float(np.sqrt(np.mean(apart**2))), "most": float(apart.max())}
