"""An algorithm one step at a time, each step by the machine itself: stopped after so many steps.

    KernelPerceptron     a step is a mistake: α of the row grows by one
    Adatron              a step is a pass over all rows
    SVC, SVR             a step is a working set: two multipliers move
    KernelLeastSquares   a step is one of gradient descent

Every frame holds f on a coarse grid and the coefficients, and what is known of the way to the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.studio.fitted import Fitted, plain
from mercer.studio.limits import MOST_STEPS_ROWS
from mercer.studio.machines import Choice
from mercer.studio.packing import packed
from mercer.studio.planes import box_around, grid_on, is_slice
from mercer.studio.points import VECTORS, Points
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows
from mercer.typing import Array

FRAMES = 40
COLUMNS, ROWS = 40, 30
ALGORITHMS = {
    "KernelPerceptron": "mistake",
    "Adatron": "pass",
    "SVC": "working set",
    "SVR": "working set",
    "KernelLeastSquares": "step",
}


@dataclass(frozen=True)
class Frame:
    """The machine after `step` steps: coefficients of all rows, b, and its objectives where it has them."""

    step: int
    coefficients: Array
    offset: float
    primal: float | None = None
    dual: float | None = None
    error: float | None = None


def certificate_view(fitted: Fitted, view: View) -> Json:
    """The certificate of the fit, and the way to it."""
    answer: Json = {"certificate": plain(fitted.model.certificate_.to_dict()), "steps": None}
    name = ALGORITHMS.get(fitted.choice.machine)
    if name is None:
        answer["why"] = f"{fitted.choice.machine} solves its problem at once: there are no steps to show."
    elif fitted.points.task == "classes" and not fitted.is_binary:
        answer["why"] = "Steps are shown for two classes: with more, several problems are solved."
    elif fitted.choice.approximation != "none":
        answer["why"] = "Steps are shown without an approximation of the kernel."
    else:
        answer["steps"] = _steps(fitted, view, name)
    return answer


def _steps(fitted: Fitted, view: View, name: str) -> Json:
    points = fitted.points
    if len(points) > MOST_STEPS_ROWS:
        raise InputError(f"Steps are shown for at most {MOST_STEPS_ROWS} points; there are {len(points)}.")
    found = frames(points, fitted.choice)
    rows, more = _places(points, view)
    answer: Json = {"unit": name, "count": len(found), **more}
    if rows is not None:
        K = np.asarray(fitted.choice.kernel(rows, points.X))
        answer["fields"] = packed([K @ frame.coefficients + frame.offset for frame in found])
    answer["coefficients"] = packed([frame.coefficients for frame in found])
    answer["step"] = [frame.step for frame in found]
    for key in ("primal", "dual", "error"):
        answer[key] = plain([getattr(frame, key) for frame in found])
    return answer


def _places(points: Points, view: View) -> tuple[Array | None, Json]:
    """Where f is drawn: a grid in the plane, or along one column."""
    if points.kind == VECTORS and points.width == 1:
        x = points.X[:, 0]
        room = 0.15 * (float(np.ptp(x)) or 1.0)
        grid = np.linspace(x.min() - room, x.max() + room, 120)
        return grid[:, None], {"mode": "curve", "x": packed(grid)}
    if is_slice(points, view):
        box = view.box or box_around(points.X[:, list(view.axes)])
        rows = held_rows(view, *grid_on(box, COLUMNS, ROWS))
        return rows, {"mode": "plane", "box": list(box), "shape": [ROWS, COLUMNS]}
    return None, {"mode": "none"}


def frames(points: Points, choice: Choice) -> list[Frame]:
    """At most so many steps, from none to the end, close together where most happens."""
    if choice.machine == "KernelPerceptron":
        return _mistakes(points, choice)
    counts = _counts(_last(points, choice))
    return [_stopped(points, choice, count) for count in counts]


def _mistakes(points: Points, choice: Choice) -> list[Frame]:
    """The perceptron keeps the rows of its mistakes in order: that is the whole story."""
    model: Any = Fitted.of(points, choice).model
    signs = np.where(points.targets() == model.classes_[1], 1.0, -1.0)
    counts = [0, *_counts(len(model.mistakes_))]
    found = []
    for count in counts:
        made = model.mistakes_[:count]
        alpha = np.zeros(len(points))
        np.add.at(alpha, made, signs[made])
        found.append(Frame(count, alpha, float(alpha.sum()), error=float(count)))
    return found


def _last(points: Points, choice: Choice) -> int:
    certificate = Fitted.of(points, choice).model.certificate_
    return int(certificate.iterations or 1)


def _counts(last: int) -> list[int]:
    """From 1 to the last, evenly by logarithm."""
    if last <= FRAMES:
        return list(range(1, last + 1))
    spread = np.geomspace(1, last, FRAMES)
    return [int(c) for c in np.unique(spread.round().astype(int))]


def _stopped(points: Points, choice: Choice, count: int) -> Frame:
    """The machine, told to stop after so many steps."""
    fitted = Fitted.of(points, choice, max_iter=count)
    certificate = fitted.model.certificate_
    functions = fitted.functions
    beta = fitted.coefficients
    if functions is None or beta.shape[1] != 1:
        raise InputError("This machine keeps no coefficients of the rows, so that its steps cannot be drawn.")
    error = None
    if choice.machine == "KernelLeastSquares":
        error = float(np.mean((fitted.values(points.X) - points.y) ** 2))
    return Frame(count, beta[:, 0], float(functions.offset[0]), certificate.primal, certificate.dual, error)
