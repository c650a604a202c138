"""Projected gradient for the box problem without equality: the textbook's way, one matrix product a step.

    α ← clip(α - η (Qα + p), 0, C)

It lowers the objective at every step while η < 2/λ_max(Q); η = 1/λ with λ ≥ λ_max found by power steps, and
halved should the objective ever rise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mercer import clock
from mercer.errors import ParameterError
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxPoint, BoxProblem
from mercer.solve.operator import Operator
from mercer.solve.qp import Progress
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array


def projected_gradients(
    K: Operator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array],
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    max_seconds: float | None = None,
    callback: Progress | None = None,
    **unused: object,
) -> list[Solution[BoxPoint]]:
    """Several problems, one after the other, with the options of `working_sets`, of which it uses some."""
    out: list[Solution[BoxPoint]] = []
    ended: Status = Status.CONVERGED
    with clock.within(max_seconds):
        for q, start in zip(problems, starts, strict=True):
            most = 0 if ended.on_request else max_iter
            found = projected_gradient(
                K, q, start, tol=tol, gap_tol=gap_tol, max_iter=most, callback=callback
            )
            if ended.on_request:
                found = Solution(found.value, replace(found.certificate, status=ended))
            ended = found.certificate.status
            out.append(found)
    return out


def projected_gradient(
    K: Operator,
    problem: BoxProblem,
    start: Array,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    max_seconds: float | None = None,
    callback: Progress | None = None,
) -> Solution[BoxPoint]:
    """min ½αᵀQα + pᵀα in the box; the answer has the form of every solver of this problem."""
    if problem.equality != 0:
        raise ParameterError(
            "projected gradient keeps the box only, and an intercept adds an equality constraint. "
            "Use fit_intercept=False, or solver='working-set'."
        )
    run = Anytime[tuple[Array, Array, float]](max_seconds)
    a = np.array(start, dtype=float)

    def product(v: Array) -> Array:
        image: Array = np.asarray(K @ problem.beta(v, K.shape[0]))
        return image[problem.rows]

    f = product(a)
    step = 1.0 / _largest(lambda v: problem.signs * product(v), len(a))
    limit = 100_000 if max_iter < 0 else max_iter
    done = 0
    bad = np.zeros(len(a))
    value = problem.objective(a, f)
    run.best = (a, f, value)
    with run:
        for done in range(limit + 1):
            g = problem.gradient(f)
            bad = problem.violation(a, g)
            close = gap_tol is not None and problem.gap(a, g) <= gap_tol * abs(value)
            if close or bad.max(initial=0.0) <= tol:
                run.status = Status.CONVERGED
                break
            if done == limit or clock.late():
                break
            # The projection onto the box.
            new = np.clip(a - step * g, 0.0, problem.C)
            new_f = product(new)
            new_value = problem.objective(new, new_f)
            if new_value > value + 1e-12 * (1 + abs(value)):
                step *= 0.5
                if step * float(np.abs(g).max()) < 1e-15 * (1 + float(np.abs(a).max())):
                    run.status = Status.STAGNATED
                    break
                continue
            a = new
            f = new_f
            value = new_value
            run.best = (a, f, value)
            if callback is not None and done % 100 == 0 and callback(done, float(bad.max()), value):
                run.status = Status.STOPPED
                break
    a, f, value = run.best
    certificate = Certificate(
        run.status,
        "projected gradients",
        iterations=done,
        seconds=run.seconds,
        kkt=float(bad.max(initial=0.0)),
        worst_row=int(problem.rows[np.argmax(bad)]) if len(bad) else None,
    )
    return Solution(BoxPoint(a, f, value), certificate)


def _largest(product: Callable[[Array], Array], n: int) -> float:
    """λ_max, a little from above: the power method, plus its residual."""
    v = np.random.default_rng(0).standard_normal(n)
    value = 1.0
    for _ in range(30):
        v /= np.linalg.norm(v) or 1.0
        u = product(v)
        value = float(np.linalg.norm(u))
        residual = float(np.linalg.norm(u - (v @ u) * v))
        v = u
        if clock.late():
            break
    return max(value + residual, 1e-300)
