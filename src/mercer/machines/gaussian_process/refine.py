"""Descent from near the minimum, where every evaluation costs much and a similar problem told the curvature.

BFGS in a box: the first step is Newton's by the curvature of the similar problem (the same targets on fewer
rows), and every step corrects it. It ends where no step promises a gain that is worth an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.solve.solution import Status
from mercer.typing import Array, Flags

# Per observation: a slope above this is no optimum, whatever the curvature promises.
FLAT = 1e-4
# The longest step of one number: a factor of e.
LONGEST = 1.0
# Trial points of one line search.
TRIALS = 8
# Of the promised fall, at least.
ARMIJO = 1e-4
# The step by which slopes are compared: a hundredth of a factor of e.
APART = 0.01
# Of the largest curvature, the smallest that is believed: a direction that is flatter takes short steps.
BELIEVED = 1e-4


class Enough(NamedTuple):
    """Where a descent ends: a step promises less than `gain` in all, and no slope is above `slope`."""

    gain: float
    slope: float


EXACT = Enough(0.01, FLAT)
# An estimate has an error of its own, and so has its slope.
ESTIMATED = Enough(0.1, np.inf)


@dataclass(frozen=True, eq=False)
class Descent:
    """Why it ended, after how many steps, and the inverse Hessian as it was known then."""

    status: Status
    steps: int
    inverse: Array


def descend(
    value: Callable[[Array], tuple[float, Array]],
    inverse: Array,
    low: Array,
    high: Array,
    *,
    size: float,
    max_iter: int,
    enough: Enough = EXACT,
) -> Descent:
    """Minimise from 0 between `low` and `high`, with a guess of the inverse Hessian.

    `value` gives a mean over `size` observations and its gradient; whoever calls remembers the best point.

    >>> seen = []
    >>> def bowl(u):
    ...     seen.append(float(u[0]))
    ...     return float((u[0] - 0.5) ** 2), 2 * (u - 0.5)
    >>> done = descend(bowl, np.array([[0.5]]), np.array([-9.0]), np.array([9.0]), size=1e3, max_iter=9)
    >>> done.status, done.steps, seen
    ('converged', 1, [0.0, 0.5])
    """
    u = np.zeros(len(low))
    f, g = value(u)
    for steps in range(max_iter + 1):
        free = ~(((u <= low) & (g > 0)) | ((u >= high) & (g < 0)))
        step = _newton(inverse, g, free)
        promised = -0.5 * float(g @ step)
        if promised * size <= enough.gain and float(np.abs(g[free]).max(initial=0.0)) <= enough.slope:
            return Descent(Status.CONVERGED, steps, inverse)
        if steps == max_iter:
            break
        found = _search(value, u, f, g, step, low, high)
        if found is None:
            return Descent(Status.STAGNATED, steps, inverse)
        inverse = _corrected(inverse, found[0] - u, found[2] - g)
        u, f, g = found
    return Descent(Status.LIMIT, max_iter, inverse)


def _newton(inverse: Array, g: Array, free: Flags) -> Array:
    """The step in the numbers that are free to move, none of them longer than `LONGEST`."""
    step = np.zeros_like(g)
    step[free] = -inverse[np.ix_(free, free)] @ g[free]
    return step * min(1.0, LONGEST / max(float(np.abs(step).max(initial=0.0)), LONGEST))


def _search(
    value: Callable[[Array], tuple[float, Array]],
    u: Array,
    f: float,
    g: Array,
    step: Array,
    low: Array,
    high: Array,
) -> tuple[Array, float, Array] | None:
    """A point along the step that is lower as promised; None where rounding leaves none."""
    length = 1.0
    for _ in range(TRIALS):
        new = np.clip(u + length * step, low, high)
        slope = float(g @ (new - u))
        there, gradient = value(new)
        if there <= f + ARMIJO * slope:
            return new, there, gradient
        # The parabola through both values with the slope at u has its lowest point here.
        bend = 2 * (there - f - slope)
        length *= float(np.clip(-slope / bend, 0.1, 0.5))
    return None


def _corrected(inverse: Array, s: Array, y: Array) -> Array:
    """BFGS: the inverse Hessian that takes y to s; as it was where the curvature along s is not positive."""
    sy = float(s @ y)
    if sy <= 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return inverse
    left = np.eye(len(s)) - np.outer(s, y) / sy
    found: Array = left @ inverse @ left.T + np.outer(s, s) / sy
    return found


def inverse_curvature(gradient: Callable[[Array], Array], count: int) -> Array:
    """The inverse Hessian at 0 of a function of `count` numbers, by differences of its gradient.

    Directions of negative curvature count as bent the other way, and flat ones as bent a little.

    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> bool(np.allclose(inverse_curvature(lambda u: H @ u, 2) @ H, np.eye(2)))
    True
    """
    here = gradient(np.zeros(count))
    H = np.array([(gradient(APART * e) - here) / APART for e in np.eye(count)])
    bends, directions = np.linalg.eigh((H + H.T) / 2)
    bends = np.abs(bends)
    bends = np.maximum(bends, BELIEVED * bends.max(initial=0.0))
    if not bends.all():
        return np.eye(count)
    found: Array = (directions / bends) @ directions.T
    return found
