"""The curve: what a machine says along one column, with band, terms and sample paths of a process.

Sample paths are mean + C^{1/2} z with the same numbers z at every question and the symmetric root of the
covariance, which moves continuously with it: so the paths bend smoothly while a point is dragged.
"""

from __future__ import annotations

import numpy as np

from mercer.errors import MercerError
from mercer.studio.fitted import Fitted
from mercer.studio.limits import MOST_CURVE
from mercer.studio.machines import CLASSES
from mercer.studio.packing import packed
from mercer.studio.planes import PAD, marks
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows
from mercer.typing import Array

SEED = 20
# Places at which sample paths are drawn: each costs an eigenvector.
SAMPLED = 160


def curve(fitted: Fitted, view: View, count: int) -> Json:
    """f along one column; the others are held."""
    points = fitted.points
    axis = view.axes[0]
    x = points.X[:, axis]
    left, right = float(x.min()), float(x.max())
    room = PAD * ((right - left) or 1.0)
    span = (left - room, right + room) if view.box is None else view.box[:2]
    grid = np.linspace(span[0], span[1], min(max(count, 20), MOST_CURVE))
    rows = held_rows(view, grid, grid) if points.width == 1 else _held_but_one(view, grid)
    answer: Json = {
        "x": packed(grid),
        "names": [points.columns[axis], points.target],
        "span": list(span),
        "band": None,
        "terms": [],
        "paths": None,
        "tube": dict(fitted.choice.arguments()).get("epsilon"),
    }
    if fitted.choice.machine == "GaussianProcessRegressor":
        _process(answer, fitted, view, rows)
    else:
        values = fitted.values(rows)
        answer["mean"] = packed(values if values.ndim == 1 else values.T)
    answer["isClasses"] = points.task == CLASSES
    answer.update(marks(fitted))
    if points.task != CLASSES:
        answer["rest"] = packed(points.y - fitted.values(points.X))
    return answer


def _held_but_one(view: View, grid: Array) -> Array:
    rows = np.tile(np.asarray(view.held, dtype=float), (len(grid), 1))
    rows[:, view.axes[0]] = grid
    return rows


def _process(answer: Json, fitted: Fitted, view: View, rows: Array) -> None:
    """Mean, the band of f and that of new observations, every term, and sample paths."""
    model = fitted.model
    mean, std = model.predict(rows, return_std=True)
    answer["mean"] = packed(mean)
    answer["band"] = packed(2 * std)
    noise = float(dict(fitted.choice.arguments())["noise"])  # type: ignore[arg-type]
    noise += fitted.choice.kernel.noise_variance() or 0.0
    answer["noisy"] = packed(2 * np.sqrt(std**2 + noise))
    answer["terms"] = _terms(fitted, rows)
    if view.samples:
        some = np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED)).astype(int)
        answer["paths"] = packed(sample_paths(fitted, rows[some], view.samples))
        answer["pathPlaces"] = packed(rows[some, view.axes[0]])


def sample_paths(fitted: Fitted, rows: Array, count: int) -> Array:
    """Draws of f given the data, count × rows, from the same random numbers every time."""
    mean, covariance = fitted.model.predict(rows, return_cov=True)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    draws = np.random.default_rng(SEED).normal(size=(len(rows), count))
    return np.asarray((mean[:, None] + root @ draws).T)


def _terms(fitted: Fitted, rows: Array) -> list[Json]:
    """The mean of each term of a sum, and twice its deviation; nothing where there is one term only."""
    try:
        found = fitted.model.decompose(rows)
    except MercerError:
        return []
    if len(found) < 2:
        return []
    # each is drawn around the level of the data, where its ups and downs can be compared with them
    return [
        {"name": name, "mean": packed(mean + found.offset), "band": packed(2 * std)}
        for name, mean, std in found
    ]
