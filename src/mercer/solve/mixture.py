"""The weights of a sum of operators, learned with the machine that uses it (multiple kernel learning).

    min over d ≥ 0, ‖d‖_p ≤ 1 of J(d),      J(d) = what the machine pays at best with K_d = Σ d_m K_m

J is convex and its slope is -½ q, where q_m = βᵀK_mβ for the machine's coefficients β (times λ for ridge). A
machine's dual value is something in β less ½ dᵀq; its minimum over d is that something less ½ ‖q‖_p*, with
1/p + 1/p* = 1. So

    gap      the machine's own gap + ½ (‖q‖_p* - dᵀq)     ≥ 0 by Hölder's inequality

bounds how far the pair (d, β) is from the best one, whatever led to it. Steps are Newton's with the curvature
of J: on the simplex for p = 1, where weights become exactly 0, and in log d for p > 1. Where such a step does
not lower J, the closed form of Kloft, Brefeld, Sonnenburg and Zien (2011) does: d_m ∝ (d_m² q_m)^(1/(p+1)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import clock
from mercer.solve.active import polish
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxProblem
from mercer.solve.operator import as_operator
from mercer.solve.qp import working_set
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array

ROUNDING = 1e-13  # of J, relative: smaller differences mean nothing
HALVINGS = 12
PATIENCE = 5  # steps that gain nothing, before it is given up


@dataclass(frozen=True, eq=False)
class Answer:
    """A machine at given weights: its primal value and gap, q, the curvature of J, and what is kept."""

    primal: float
    gap: float
    q: Array
    curvature: Callable[[], Array]
    status: Status = Status.CONVERGED
    kept: Any = None


def learn_weights(
    answer: Callable[[Array], Answer],
    start: Array,
    *,
    p: float = 1.0,
    tol: float = 1e-4,
    max_iter: int = 100,
    max_seconds: float | None = None,
    tell: Callable[[int, float, float, Array], object] | None = None,
) -> Solution[tuple[Array, Answer]]:
    """The best weights and the machine's answer at them, to a relative duality gap of `tol`.

    >>> # K₁ = e₁e₁ᵀ, K₂ = e₂e₂ᵀ and λ = 1: J(d) = ½ Σ y² / (d + 1)
    >>> def ridge(d, y=np.array([1.0, 2.0])):
    ...     J = 0.5 * y**2 @ (1 / (d + 1))
    ...     return Answer(J, 0.0, (y / (d + 1)) ** 2, lambda: np.diag(y**2 / (d + 1) ** 3))
    >>> found = learn_weights(ridge, np.array([0.5, 0.5]), tol=1e-12)
    >>> found.value[0].round(9).tolist(), found.certificate.status       # y₁/(d₁ + 1) = y₂/(d₂ + 1)
    ([0.0, 1.0], 'converged')
    """
    run = Anytime[tuple[Array, Answer]](max_seconds)
    d = np.asarray(start, dtype=float)
    best = answer(d)
    # The last answer is whole: what was begun since is dropped after Ctrl-C.
    run.best = (d, best)
    cost = run.seconds
    steps = 0
    still = 0

    def late() -> bool:
        return clock.short_of(cost)

    with run:
        while True:
            gap = best.gap + holder_slack(best.q, d, p)
            if tell is not None:
                tell(steps, gap, best.primal, d)
            done = gap <= tol * max(abs(best.primal), np.finfo(float).tiny)
            if done or best.status.on_request:
                run.status = best.status
                break
            if steps >= max_iter >= 0 or late():
                break
            found = _better(answer, d, best, gap, p, late)
            if found is None:
                if not late():
                    run.status = Status.STAGNATED
                break
            gained = best.primal - found[1].primal
            run.best = found
            d, best = found
            steps += 1
            small = gained <= 1e-9 * abs(best.primal) and best.gap + holder_slack(best.q, d, p) > 0.99 * gap
            still = still + 1 if small else 0
            if still == PATIENCE:
                run.status = Status.STAGNATED
                break
    d, best = run.best
    gap = best.gap + holder_slack(best.q, d, p)
    certificate = Certificate(
        run.status,
        f"kernel weights, p = {p:g}",
        iterations=steps,
        seconds=run.seconds,
        primal=best.primal,
        dual=best.primal - gap,
        gap=gap,
    )
    return Solution((d, best), certificate)


def dual_norm(q: Array, p: float) -> float:
    """‖q‖_p* with 1/p + 1/p* = 1: the largest dᵀq over d ≥ 0, ‖d‖_p ≤ 1, for q ≥ 0.

    >>> q = np.array([3.0, 4.0])
    >>> dual_norm(q, 1.0), dual_norm(q, 2.0), dual_norm(q, np.inf)
    (4.0, 5.0, 7.0)
    """
    q = np.maximum(q, 0.0)
    top = float(q.max(initial=0.0))
    if top == 0 or p == 1:
        return top
    if np.isinf(p):
        return float(q.sum())
    other = p / (p - 1)
    total = float(((q / top) ** other).sum())
    norm: float = top * total ** (1 / other)
    return norm


def holder_slack(q: Array, d: Array, p: float) -> float:
    """½ (‖q‖_p* - dᵀq), at least 0 where ‖d‖_p ≤ 1: what better weights might gain."""
    return max(0.5 * (dual_norm(q, p) - float(d @ q)), 0.0)


def unit(d: Array, p: float) -> Array:
    """d / ‖d‖_p."""
    top = float(d.max(initial=0.0))
    if top == 0:
        return np.full(len(d), len(d) ** (-1 / p))
    if np.isinf(p):
        return d / top
    norm: float = top * float(((d / top) ** p).sum()) ** (1 / p)
    return d / norm


def _better(
    answer: Callable[[Array], Answer],
    d: Array,
    best: Answer,
    gap: float,
    p: float,
    late: Callable[[], bool],
) -> tuple[Array, Answer] | None:
    """Weights that lower J, or that lower the gap where J is flat to rounding; None where none are found."""
    slightly = ROUNDING * max(abs(best.primal), np.finfo(float).tiny)
    for trial in _trials(d, best, p):
        if np.array_equal(trial, d):
            continue
        if late():
            return None
        found = answer(trial)
        # What J loses by its lower bounds, as β has them.
        lower = best.primal - best.gap - (found.primal - found.gap)
        # What the tangent loses; J itself falls less, since it is convex.
        promised = 0.5 * float(best.q @ (trial - d))
        if found.status.on_request:
            # What was known is better than half an answer.
            return d, replace(best, status=found.status)
        if found.status == Status.LIMIT and late() and best.status == Status.CONVERGED:
            return None
        if lower > max(1e-3 * promised, slightly):
            return trial, found
        if lower >= -slightly and found.gap + holder_slack(found.q, trial, p) < 0.9 * gap:
            return trial, found
    return None


def _trials(d: Array, best: Answer, p: float) -> Iterator[Array]:
    """Newton's step and its halves, then the closed form."""
    if p == 1:
        step = _simplex_newton(d, best)
        for halving in range(HALVINGS):
            yield unit(np.maximum(d + 0.5**halving * step, 0.0), 1.0)
    else:
        step = _log_newton(d, best, p)
        for halving in range(3):
            yield _from_logs(d, 0.5**halving * step, p)
    yield unit((d**2 * np.maximum(best.q, 0.0)) ** (1 / (p + 1)), p)


def _simplex_newton(d: Array, best: Answer) -> Array:
    """x - d for the x on the simplex that minimises the quadratic model of J: a box problem with Σ x kept."""
    H = best.curvature()
    size = max(float(np.abs(best.q).max()), np.finfo(float).tiny)
    if not np.all(np.isfinite(H)):
        return np.zeros(len(d))
    B = H / size + 1e-9 * (1.0 + float(np.trace(H)) / size / len(d)) * np.eye(len(d))
    rows = np.arange(len(d))
    ones = np.ones(len(d))
    linear = -0.5 * best.q / size - B @ d
    found = working_set(B, rows=rows, signs=ones, p=linear, C=1.0, alpha=d, equality=1, tol=1e-10)
    model = BoxProblem(rows, ones, linear, ones, equality=1, start=d)
    x, _ = polish(as_operator(B), model, found.value.alpha, found.value.f)
    return x - d


def _log_newton(d: Array, best: Answer, p: float) -> Array:
    """The Newton step in s = log d towards s = log q / (p - 1) + c: what the optimum satisfies."""
    top = float(best.q.max())
    if not 0 < top < np.inf:
        # Only an invalid kernel, or a machine that uses none, comes here.
        return np.zeros(len(d))
    q = np.maximum(best.q, 1e-14 * top)
    s = np.log(np.maximum(d, np.finfo(float).tiny))
    count = len(d)
    power = 1.0 / (p - 1.0)
    M = np.zeros((count + 1, count + 1))
    M[:count, :count] = np.eye(count) + 2.0 * power * (best.curvature() / q[:, None]) * d
    M[:count, count] = -1.0
    M[count, :count] = d**p
    right = np.append(power * np.log(q) - s, 0.0)
    if not np.all(np.isfinite(M)):
        return np.zeros(count)
    step: Array = np.linalg.lstsq(M, right, rcond=None)[0][:count]
    return step.clip(-50.0, 50.0)


def _from_logs(d: Array, step: Array, p: float) -> Array:
    s = np.log(np.maximum(d, np.finfo(float).tiny)) + step
    return unit(np.where(d > 0, np.exp(s - s.max()), 0.0), p)
