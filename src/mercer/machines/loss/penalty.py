"""Any non-decreasing penalty Ω(‖f‖): the representer theorem leaves a search over one number (M13).

    min  Σ w_i ℓ(y_i, f(x_i) + b) + α Ω(‖f‖)

Among all f of one norm r the best one minimises the loss under ‖f‖ ≤ r, and is the solution f_a of a ridge
problem, with (a/2)‖f‖² in place of the penalty. So only the equivalent price a is left to find. Where Ω is
convex the optimum has

    a r = α Ω'(r),      r = ‖f_a‖

whose left side grows with a and whose right side does not: a bracket finds it. The gap is Fenchel's, for any
slopes s:

    gap = Σ (ℓ(z) + ℓ*(s) - s z) + αΩ(r) + (αΩ)*(‖s‖) + Σ s f,      ‖s‖² = sᵀKs
    (αΩ)*(t) = sup_r t r - αΩ(r)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from mercer import clock
from mercer.errors import ParameterError
from mercer.gram import GramOperator
from mercer.machines.loss.objective import Objective, Problem, ProblemSolution, why_outside
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array

GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 241)])
# relative, of the slopes of Ω by differences
STEP = 1e-9
# in natural logarithms: how far the equivalent price is looked for from α
FARTHEST = 40.0
# prices tried where Ω is not convex
COARSE = 65


@dataclass(frozen=True, eq=False)
class Penalty:
    """α Ω(r) of a function Ω of the norm, found to be non-decreasing on a grid, and perhaps `convex` too."""

    omega: Callable[[float], float]
    alpha: float
    convex: bool

    def value(self, r: float) -> float:
        return self.alpha * float(self.omega(float(r)))

    def slope(self, r: float) -> float:
        """Between the slopes to the left and to the right of r; infinite where Ω becomes so.

        A difference over a short step sees kinks and loses digits, one over a longer step does not: where
        they agree, the longer one counts.
        """
        near = self._slope(r, STEP)
        wide = self._slope(r, 1e4 * STEP)
        if abs(near - wide) <= 1e-6 * abs(near):
            return wide
        return near

    def far_slope(self, r: float) -> float:
        """The slope far beyond r: the largest t for which (αΩ)*(t) is finite, or more."""
        end = 1e6 * max(r, 1e-12)
        high = self.value(end)
        if not np.isfinite(high):
            return np.inf
        return (high - self.value(0.5 * end)) / (0.5 * end)

    def _slope(self, r: float, step: float) -> float:
        h = step * max(r, 1e-300)
        above = self.value(r + h)
        if not np.isfinite(above):
            return np.inf
        return max(above - self.value(max(r - h, 0.0)), 0.0) / (h + min(h, r))

    def conjugate(self, t: float, near: float) -> float:
        """sup_r t r - αΩ(r), looked for around `near`; infinite where it has no end."""
        points = np.concatenate([[0.0], max(near, 1e-12) * np.geomspace(1e-6, 1e6, 121)])
        values = np.array([t * r - self.value(r) for r in points])
        best = int(np.argmax(values))
        if best == len(points) - 1:
            return np.inf
        low = points[max(best - 1, 0)]
        high = points[best + 1]
        top = _highest(lambda r: t * r - self.value(r), float(low), float(high))
        here = t * near - self.value(near)
        return float(max(top, values[best], here))


def _highest(concave: Callable[[float], float], low: float, high: float) -> float:
    """The largest value of a concave function between two points, by golden sections; it may reach -∞."""
    share = 0.5 * (np.sqrt(5.0) - 1.0)
    left = high - share * (high - low)
    right = low + share * (high - low)
    at_left = concave(left)
    at_right = concave(right)
    best = max(at_left, at_right)
    for _ in range(100):
        if at_left >= at_right:
            high = right
            right = left
            at_right = at_left
            left = high - share * (high - low)
            at_left = concave(left)
        else:
            low = left
            left = right
            at_left = at_right
            right = low + share * (high - low)
            at_right = concave(right)
        best = max(best, at_left, at_right)
    return float(best)


def as_penalty(given: object, alpha: float) -> Penalty | None:
    """None for "l2", which needs no search; a `Penalty` of a function of the norm; else why it is none."""
    if isinstance(given, str) and given == "l2":
        return None
    if not callable(given):
        raise ParameterError(why_outside(given))
    values = _on_grid(given)
    if not np.isfinite(values[0]):
        raise ParameterError(f"penalty(0) is {values[0]}; Ω must be finite at 0, or no f is allowed.")
    if _of_a_vector(given):
        raise ParameterError(
            "penalty is a function of the vector w and not of its length: penalty([3, 4]) differs from "
            "penalty(5). " + why_outside("lasso")
        )
    finite = values[np.isfinite(values)]
    if not np.all(np.isfinite(values[: len(finite)])):
        raise ParameterError(
            "penalty is infinite, and then finite again for a longer f: it is not non-decreasing."
        )
    fall = np.diff(finite)
    size = np.abs(finite[1:]) + np.abs(finite[:-1])
    if np.any(fall < -1e-12 * size):
        i = int(np.argmax(fall < -1e-12 * size))
        raise ParameterError(
            f"penalty falls from {finite[i]:.6g} at ‖f‖ = {GRID[i]:.3g} to {finite[i + 1]:.6g} at "
            f"{GRID[i + 1]:.3g}. The representer theorem needs a non-decreasing Ω(‖f‖): else the part of f "
            "outside the span of the data, which changes no value, could lower it. Use a penalty that never "
            "falls."
        )
    secants = fall / np.diff(GRID[: len(finite)])
    convex = bool(np.all(np.diff(secants) >= -1e-7 * (np.abs(secants[1:]) + np.abs(secants[:-1]))))
    return Penalty(given, alpha, convex)


def _on_grid(omega: Callable[..., float]) -> Array:
    try:
        values = np.array([float(omega(float(r))) for r in GRID])
    except (TypeError, ValueError) as error:
        raise ParameterError(
            "penalty must be 'l2' or a function that takes the norm ‖f‖, a number, and gives a number: "
            f"{error}."
        ) from error
    if np.any(np.isnan(values)) or np.any(values == -np.inf):
        i = int(np.argmax(~(values > -np.inf)))
        raise ParameterError(
            f"penalty({GRID[i]:.3g}) is {values[i]}; it must be a number for every norm >= 0."
        )
    return values


def _of_a_vector(omega: Callable[..., float]) -> bool:
    """Whether a function gives another number for a vector than for its length: a penalty of coordinates."""
    try:
        found = np.asarray(omega(np.array([3.0, 4.0])), dtype=float)
    except Exception:
        # It takes numbers only, as it should.
        return False
    return found.ndim == 0 and not np.isclose(float(found), float(omega(5.0)), rtol=1e-9, atol=0)


def search(
    penalty: Penalty,
    problem: Problem,
    K: GramOperator,
    solve_at: Callable[[float], ProblemSolution],
    intercept: bool,
) -> tuple[ProblemSolution, float]:
    """The solution, and the equivalent price a of ½‖f‖²."""
    tried: dict[float, _Trial] = {}
    ended: list[Status] = []
    taken: list[float] = []

    def at(log_price: float) -> _Trial:
        """What the problem with this price of ½‖f‖² comes to."""
        if log_price not in tried:
            if tried and clock.short_of(min(taken)):
                ended.append(Status.LIMIT)
                raise clock.OutOfTime
            began = clock.now()
            solved = solve_at(float(np.exp(log_price)))
            f = np.asarray(K @ solved.beta)
            taken.append(clock.now() - began)
            r = _norm(solved.beta, f)
            total = float(problem.value(f + solved.b).sum()) + penalty.value(r)
            tried[log_price] = _Trial(r, total, solved)
            status = solved.certificate.status
            if status.on_request or status == Status.LIMIT:
                ended.append(status)
            # what was cut short is no f_a: its norm says nothing of where to look
            if status.on_request or (status == Status.LIMIT and clock.late()):
                raise clock.OutOfTime
        return tried[log_price]

    def excess(log_price: float) -> float:
        r = at(log_price).norm
        pull = float(np.exp(log_price)) * r
        return float(np.clip(pull - penalty.slope(r), -1e300, 1e300))

    middle = float(np.log(penalty.alpha))
    with suppress(clock.OutOfTime):
        if penalty.convex:
            _bracketed(excess, middle)
        else:
            _scanned(lambda v: at(v).objective, middle)
    best = min(tried, key=lambda v: tried[v].objective)
    beta, b, found = tried[best].solved
    price = float(np.exp(best))
    if _nothing_is_better(penalty, problem, K, beta, b):
        beta = np.zeros_like(beta)
    c = certify_penalised(
        penalty,
        problem,
        K,
        price,
        beta,
        b,
        intercept=intercept,
        status=_outcome(found.status, ended),
        notes=found.notes,
    )
    certificates = [trial.solved.certificate for trial in tried.values()]
    c = replace(
        c,
        method=f"{found.method}, {len(tried)} prices of ‖f‖² tried",
        iterations=sum(int(each.iterations or 0) for each in certificates),
        seconds=sum(float(each.seconds or 0.0) for each in certificates),
    )
    return ProblemSolution(beta, b, c), price


class _Trial(NamedTuple):
    """The problem with one price of ½‖f‖²: the norm of f, the objective with Ω, and the solution."""

    norm: float
    objective: float
    solved: ProblemSolution


def _norm(beta: Array, f: Array) -> float:
    """‖f‖ from β and f = Kβ."""
    return float(np.sqrt(max(float((beta * f).sum()), 0.0)))


def _outcome(found: Status, ended: list[Status]) -> Status:
    """A search that was cut short is that first of all; rounding in the price that it kept comes second."""
    if ended and found in (Status.CONVERGED, Status.STAGNATED):
        return Status.worst(ended)
    return Status.worst((found, *ended))


def _bracketed(excess: Callable[[float], float], middle: float) -> None:
    """Evaluate `excess` towards its root: downwards and upwards until its sign changes, then between."""
    here = excess(middle)
    if here == 0:
        return
    step = -1.0 if here > 0 else 1.0
    last = middle
    reach = 1.0
    while reach <= FARTHEST:
        new = middle + step * reach
        if np.sign(excess(new)) != np.sign(here):
            brentq(excess, min(last, new), max(last, new), xtol=1e-13, rtol=1e-13, maxiter=100)
            return
        last = new
        reach *= 2.0


def _scanned(objective: Callable[[float], float], middle: float) -> None:
    """The lowest of many prices, then the best one near it."""
    points = middle + np.linspace(-0.5 * FARTHEST, 0.5 * FARTHEST, COARSE)
    values = np.array([objective(float(p)) for p in points])
    best = int(np.argmin(values))
    low = points[max(best - 1, 0)]
    high = points[min(best + 1, COARSE - 1)]
    minimize_scalar(objective, bounds=(float(low), float(high)), method="bounded", options={"xatol": 1e-9})


def _nothing_is_better(penalty: Penalty, problem: Problem, K: GramOperator, beta: Array, b: Array) -> bool:
    """Whether f = 0 is no worse: a penalty with a slope at 0 can be too dear for any f."""
    f = np.asarray(K @ beta)
    with_f = float(problem.value(f + b).sum()) + penalty.value(_norm(beta, f))
    without = float(problem.value(np.zeros_like(f) + b).sum()) + penalty.value(0.0)
    return without <= with_f


def certify_penalised(
    penalty: Penalty,
    problem: Problem,
    K: GramOperator,
    price: float,
    beta: Array,
    b: Array,
    *,
    intercept: bool,
    status: Status = Status.CONVERGED,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """Primal, dual and gap of Σ loss + αΩ(‖f‖) from the model alone."""
    f = np.asarray(K @ np.ascontiguousarray(beta), dtype=float)
    z = f + b
    r = _norm(beta, f)
    slopes = problem.slope(z)
    primal = float(problem.value(z).sum()) + penalty.value(r)
    out = Certificate(status, "recomputed", primal=primal, notes=notes)
    if not penalty.convex:
        word = (
            "the penalty is not convex: the best price of ‖f‖² of those tried, without a bound on what is "
            "lost"
        )
        return replace(out, notes=(*notes, word))
    duals = [_dual(penalty, problem, K, s, r) for s in _points(problem, price, beta, slopes, intercept)]
    dual = max(duals, default=-np.inf)
    if not np.isfinite(dual):
        word = "no point of the dual is known for this loss or penalty: no gap"
        return replace(out, notes=(*notes, word))
    return replace(out, dual=dual, gap=max(primal - dual, 0.0))


def _points(problem: Problem, price: float, beta: Array, slopes: Array, intercept: bool) -> list[Array]:
    """Slopes s to try as a point of the dual: -aβ, and those of the loss; with an intercept they sum to 0."""
    out = []
    for s in (-price * beta, slopes):
        if isinstance(problem, Objective):
            used = problem.w > 0
            low, high = problem.loss.slopes(problem.y[used])
            inside = s.copy()
            inside[used, 0] = problem.w[used] * np.clip(s[used, 0] / problem.w[used], low, high)
            # a rounding beyond the domain of the conjugate is taken back; more is another point
            if np.abs(inside - s).max() <= 1e-9 * max(float(np.abs(s).max()), 1e-300):
                s = inside
        unbalanced = float(np.abs(s.sum(axis=0)).max())
        if not intercept or unbalanced <= 1e-9 * max(float(np.abs(s).sum()), 1e-300):
            out.append(s)
    return out


def _dual(penalty: Penalty, problem: Problem, K: GramOperator, s: Array, r: float) -> float:
    """-Σ ℓ*(s) - (αΩ)*(‖s‖), for s and for a slightly shorter one.

    Where Ω grows like a line, (αΩ)* is finite up to a length only.
    """
    length = _norm(s, np.asarray(K @ np.ascontiguousarray(s)))
    shrink = 1.0
    if length > 0:
        shrink = (1 - 1e-9) * min(1.0, penalty.far_slope(r) / length)
    best = -np.inf
    for factor in (1.0, shrink):
        conjugate = problem.conjugate(factor * s)
        if conjugate is None:
            return -np.inf
        best = max(best, -float(conjugate.sum()) - penalty.conjugate(factor * length, r))
    return best
