"""The plane: a decision field on a grid, and what each point is to the machine.

Two columns are the plane itself. Of wider data it is a slice through the values that are held, or the plane
of the two leading kernel principal components, as it is for strings and graphs.
"""

from __future__ import annotations

import numpy as np

from mercer.studio.components import components
from mercer.studio.fitted import Fitted, plain
from mercer.studio.limits import MOST_GRID
from mercer.studio.machines import CLASSES
from mercer.studio.packing import packed
from mercer.studio.points import VECTORS, Points
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows
from mercer.typing import Array

Box = tuple[float, float, float, float]
# Room around the points, as a share of their width.
PAD = 0.15
# Columns whose widths differ by more than this factor are each stretched to the picture.
UNLIKE = 4.0


def is_slice(points: Points, view: View) -> bool:
    """Whether the plane is one of columns, and not of components."""
    if points.kind != VECTORS or points.width < 2:
        return False
    return points.width == 2 or view.plane == "slice"


def box_around(places: Array, aspect: float | None = None) -> Box:
    """Left, right, bottom, top around points in the plane.

    With the width of the picture over its height, a unit is as long across as up, unless the columns are of
    very different size.

    >>> box_around(np.array([[0.0, 0.0], [1.0, 1.0]]), aspect=2.0)
    (-0.8, 1.8, -0.15, 1.15)
    """
    if not len(places):
        return -2.0, 2.0, -2.0, 2.0
    low, high = places.min(axis=0), places.max(axis=0)
    low, high = low - PAD * (high - low), high + PAD * (high - low)
    size = np.where(high > low, high - low, 1.0)
    middle = (low + high) / 2
    if aspect is not None and 1 / UNLIKE < size[0] / size[1] < UNLIKE:
        size = np.maximum(size, [size[1] * aspect, size[0] / aspect])
    left, bottom = (middle - size / 2).round(12).tolist()
    right, top = (middle + size / 2).round(12).tolist()
    return left, right, bottom, top


def grid_on(box: Box, columns: int, rows: int) -> tuple[Array, Array]:
    """Across and up of a grid of points, row by row from the bottom."""
    across = np.linspace(box[0], box[1], min(max(columns, 2), MOST_GRID))
    up = np.linspace(box[2], box[3], min(max(rows, 2), MOST_GRID))
    A, B = np.meshgrid(across, up)
    return A.ravel(), B.ravel()


def plane(fitted: Fitted, view: View, columns: int, rows: int, aspect: float | None = None) -> Json:
    """The decision field and the points."""
    points = fitted.points
    values: Array | None
    if is_slice(points, view):
        places = points.X[:, list(view.axes)]
        box = view.box or box_around(places, aspect)
        across, up = grid_on(box, columns, rows)
        values = fitted.values(held_rows(view, across, up))
        answer: Json = {"mode": "slice", "box": list(box), "places": None}
        answer["names"] = [points.columns[a] for a in view.axes]
    else:
        answer, values = _on_components(fitted, columns, rows)
    shape = (min(max(rows, 2), MOST_GRID), min(max(columns, 2), MOST_GRID))
    answer.update(_field(fitted, values, shape))
    answer.update(marks(fitted))
    return answer


def _on_components(fitted: Fitted, columns: int, rows: int) -> tuple[Json, Array | None]:
    found = components(fitted, 2)
    box = box_around(found.places)
    answer: Json = {
        "mode": "components",
        "box": list(box),
        "places": packed(found.places),
        "shares": plain(found.shares),
        "names": ["component 1", "component 2"],
    }
    if found.slopes is None or found.level is None or len(found.slopes) != 1:
        return answer, None
    across, up = grid_on(box, columns, rows)
    values = np.column_stack([across, up]) @ found.slopes[0] + found.level[0]
    return answer, np.asarray(values)


def _field(fitted: Fitted, values: Array | None, shape: tuple[int, int]) -> Json:
    """f on the grid: one function, or the winner of several and by how much."""
    if values is None:
        return {"field": None}
    if values.ndim == 1:
        answer: Json = {"field": packed(values.reshape(shape)), "winner": None}
        answer["sides"] = fitted.sides if fitted.points.task == CLASSES else None
        functions = fitted.functions
        answer["margin"] = bool(functions is not None and functions.canonical)
        return answer
    ordered = np.sort(values, axis=1)
    lead = (ordered[:, -1] - ordered[:, -2]).reshape(shape)
    return {"field": packed(lead), "winner": packed(fitted.winners(values).reshape(shape)), "margin": False}


def marks(fitted: Fitted) -> Json:
    """What each point is: α, free or at the bound, misfit, and f."""
    values = fitted.values(fitted.points.X)
    f = values if values.ndim == 1 else np.sort(values, axis=1)[:, -1]
    return {
        "weights": packed(fitted.weights),
        "standing": plain(fitted.standing),
        "misfits": fitted.misfits,
        "f": packed(f),
    }
