"""Choice: a criterion over two numbers of kernel and machine, and the path of a search on it.

    Gaussian processes   the log evidence
    KernelRidge          the leave-one-out error, in closed form
    other machines       the error of three folds

The path is that of a search which may look at these two numbers only: L-BFGS on the evidence, and for the
other two the compass that halves its steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from mercer.errors import InputError, MercerError
from mercer.studio.fitted import Fitted, check_enough
from mercer.studio.limits import MOST_CHOICE_ROWS
from mercer.studio.machines import CLASSES, Choice
from mercer.studio.packing import packed
from mercer.studio.points import Points
from mercer.studio.readers import Json
from mercer.studio.state import View, moved
from mercer.typing import Array

SIDE = 9
DECADES = 1.5
FOLDS = 3
EVIDENCE = "log evidence"
LOO = "leave-one-out error"
FOLDED = "error of three folds"


@dataclass(frozen=True)
class Knob:
    """One number that may be turned: `place` of a free number of the kernel, or a number of the machine."""

    name: str
    value: float
    place: int | None = None

    def turned(self, choice: Choice, value: float) -> Choice:
        """The same machine with this number elsewhere."""
        if self.place is None:
            settings = dict(choice.settings)
            settings[self.name] = value
            return replace(choice, settings=tuple(settings.items()))
        free = [p for p in choice.kernel.parameters if p.free]
        signed = math.copysign(value, free[self.place].value)
        return replace(choice, kernel=moved(choice.kernel, {str(self.place): signed}))


def knobs(choice: Choice) -> list[Knob]:
    """All numbers that are turned by their logarithm."""
    found = []
    for place, p in enumerate(q for q in choice.kernel.parameters if q.free):
        if p.domain.logarithmic and p.bounds is None:
            found.append(Knob(p.name, abs(p.value), place))
    arguments = choice.arguments()
    for slider in choice.offer.sliders:
        if not slider.whole:
            found.append(Knob(slider.name, float(arguments[slider.name])))  # type: ignore[arg-type]
    return found


def surface(points: Points, choice: Choice, view: View) -> Json:
    """The criterion on a grid around where the numbers stand, and a search on it."""
    check_enough(points, choice)
    if choice.offer.unlabelled:
        raise InputError("Without labels there is nothing to choose by. Choose another machine.")
    known = knobs(choice)
    if len(known) < 2:
        raise InputError("A surface needs two numbers. Choose a kernel or a machine with more of them.")
    first, second = _asked(known, view)
    some = points
    if len(points) > MOST_CHOICE_ROWS:
        some = points.part(np.unique(np.linspace(0, len(points) - 1, MOST_CHOICE_ROWS).astype(int)))
    criterion, score = scorer(some, choice)
    spread = np.linspace(-DECADES, DECADES, SIDE)
    a = np.log10(first.value) + spread
    b = np.log10(second.value) + spread

    def at(u: float, v: float) -> float:
        turned = second.turned(first.turned(choice, 10**u), 10**v)
        return score(turned)

    values = np.array([[at(u, v) for u in a] for v in b])
    path = _search(at, a, b, higher=criterion == EVIDENCE)
    return {
        "criterion": criterion,
        "higher": criterion == EVIDENCE,
        "names": [first.name, second.name],
        "places": [first.place, second.place],
        "known": [knob.name for knob in known],
        "a": (10**a).tolist(),
        "b": (10**b).tolist(),
        "values": packed(values),
        "path": [[10**u, 10**v, s] for u, v, s in path],
        "rows": len(some),
    }


def _asked(known: list[Knob], view: View) -> tuple[Knob, Knob]:
    by_name = {knob.name: knob for knob in known}
    if view.surface is not None and all(name in by_name for name in view.surface):
        first, second = (by_name[name] for name in view.surface)
        if first != second:
            return first, second
    return known[0], known[-1]


def scorer(points: Points, choice: Choice) -> tuple[str, Callable[[Choice], float]]:
    """What the machine is chosen by, and the function that computes it; NaN where it cannot be."""
    if choice.machine.startswith("GaussianProcess"):
        return EVIDENCE, _quietly(lambda c: _evidence(points, c))
    if choice.machine == "KernelRidge":
        return LOO, _quietly(lambda c: float(np.sqrt(np.mean(Fitted.of(points, c).model.loo_error_))))
    return FOLDED, _quietly(lambda c: _folded(points, c))


def _quietly(score: Callable[[Choice], float]) -> Callable[[Choice], float]:
    def scored(choice: Choice) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return score(choice)
            except (MercerError, np.linalg.LinAlgError):
                return math.nan

    return scored


def _evidence(points: Points, choice: Choice) -> float:
    model = Fitted.of(points, choice).model
    if choice.machine == "GaussianProcessClassifier":
        return float(model.log_evidence())
    return float(model.log_evidence_)


def _folded(points: Points, choice: Choice) -> float:
    """The error on rows left out: a third after the other, drawn once, so that it is the same every time."""
    order = np.random.default_rng(0).permutation(len(points))
    missed = 0.0
    for fold in range(FOLDS):
        out = order[fold::FOLDS]
        kept = np.setdiff1d(order, out)
        fitted = Fitted.of(points.part(kept), choice)
        left = points.part(out)
        values = fitted.values(left.X)
        if points.task == CLASSES:
            missed += float((fitted.winners(values) != left.y.astype(int)).sum())
        else:
            missed += float(((values - left.y) ** 2).sum())
    mean = missed / len(points)
    return mean if points.task == CLASSES else math.sqrt(mean)


def _search(
    at: Callable[[float, float], float], a: Array, b: Array, *, higher: bool
) -> list[tuple[float, float, float]]:
    """From a corner of the square to the best place found inside it, step by step."""
    start = np.array([a[1], b[-2]])
    sign = -1.0 if higher else 1.0
    path: list[tuple[float, float, float]] = []

    def cost(t: Array) -> float:
        found = sign * at(float(t[0]), float(t[1]))
        return found if math.isfinite(found) else 1e12

    def keep(t: Array) -> None:
        path.append((float(t[0]), float(t[1]), sign * cost(t)))

    keep(start)
    bounds = [(a[0], a[-1]), (b[0], b[-1])]
    if higher:
        options = {"maxiter": 12, "ftol": 1e-9}
        minimize(cost, start, method="L-BFGS-B", bounds=bounds, callback=keep, options=options)
    else:
        _compass(cost, start, bounds, keep)
    return path


def _compass(
    cost: Callable[[Array], float],
    t: Array,
    bounds: list[tuple[float, float]],
    keep: Callable[[Array], None],
) -> None:
    """Steps along the axes as long as they help, then half as long."""
    low, high = np.array(bounds).T
    best = cost(t)
    length = 0.5
    while length > 0.1:
        trials = [np.clip(t + length * np.array(d), low, high) for d in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        costs = [cost(trial) for trial in trials]
        if min(costs) < best:
            best = min(costs)
            t = trials[int(np.argmin(costs))]
            keep(t)
        else:
            length /= 2
