"""Newton's steps on the free variables of a box problem: to polish a solution, or where pairs take long.

Working sets move two variables at a time. That is fast until the matrix is nearly singular beside the prices
(a large C, columns in different units, rows on a grid); then pairs take millions of steps for what one linear
system says. Here all free variables move at once, as far as the first bound; a variable that reaches one
rests there, and the resting variable that violates its condition most is freed. Every step lowers the
objective, so nothing that pairs have found is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np

from mercer import clock
from mercer.solve.box import BoxPoint, BoxProblem
from mercer.solve.operator import ArrayOperator, Operator
from mercer.solve.qp import WorkingSetOptions, newton_rounds, tiled, working_sets
from mercer.solve.solution import NoteKind, Solution
from mercer.typing import Array, Flags, Integers

POLISHED = 1000  # rows up to which a solution is polished to rounding
MOST_ROWS = 1000  # rows up to which it pays
MOST_FREE = 400  # free variables up to which it pays
# Pairs for each variable, and a few more, before the first try; then four times as many.
PATIENCE = 50
AT_LEAST = 10_000
# Pairs after which a hard margin is not looked for any longer: there may be none.
HOPELESS = 1_000_000
AT_A_TIME = 100  # rounds of the core between two looks at the clock and at Ctrl-C
SLIGHT = 1e-12  # curvature for directions that have none, as a part of the largest entry


def in_memory(K: Operator, cache_bytes: int) -> Operator:
    """K with its entries laid out, where they are few and working sets would ask for all of them."""
    if K.shape[0] > MOST_ROWS or tiled(K, cache_bytes):
        return K
    return ArrayOperator(np.ascontiguousarray(K.dense()))


def finished_sets(
    K: Operator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array],
    *,
    max_iter: int = -1,
    max_seconds: float | None = None,
    **options: Unpack[WorkingSetOptions],
) -> list[Solution[BoxPoint]]:
    """`working_sets`, with Newton's steps where pairs take long; the limits hold for both together."""
    if K.shape[0] > MOST_ROWS:
        return working_sets(K, problems, starts, max_iter=max_iter, max_seconds=max_seconds, **options)
    with clock.within(max_seconds):
        return _with_newton_steps(K, problems, starts, max_iter, options)


def _with_newton_steps(
    K: Operator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array],
    max_iter: int,
    options: WorkingSetOptions,
) -> list[Solution[BoxPoint]]:
    patience = AT_LEAST + PATIENCE * max([len(q.rows) for q in problems])
    steps = patience if max_iter < 0 else min(patience, max_iter)
    found = working_sets(K, problems, starts, max_iter=steps, **options)
    left = list(range(len(problems)))
    while True:
        left = [k for k in left if _wants_more(found[k], max_iter)]
        if patience > HOPELESS:
            left = [k for k in left if np.isfinite(problems[k].C).all()]
        if not left:
            return found
        patience *= 4
        spent = max(_pairs(found[k]) for k in left)
        steps = patience if max_iter < 0 else min(patience, max_iter - spent)
        some = [problems[k] for k in left]
        here = [found[k].value for k in left]
        at = [descend(K, q, point.alpha, point.f)[0] for q, point in zip(some, here, strict=True)]
        new = working_sets(K, some, at, max_iter=steps, **options)
        for k, each in zip(left, new, strict=True):
            found[k] = _added(found[k], each)


def _wants_more(found: Solution[BoxPoint], max_iter: int) -> bool:
    """Whether it ended at our limit of pairs and not at the caller's."""
    return found.certificate.says(NoteKind.ITERATIONS) and not 0 <= max_iter <= _pairs(found)


def _pairs(found: Solution[BoxPoint]) -> int:
    """How many pairs were moved."""
    return found.certificate.iterations or 0


def _added(before: Solution[BoxPoint], now: Solution[BoxPoint]) -> Solution[BoxPoint]:
    """The later result, with what both took."""
    certificate = replace(
        now.certificate,
        iterations=_pairs(before) + _pairs(now),
        seconds=(before.certificate.seconds or 0.0) + (now.certificate.seconds or 0.0),
    )
    rows = before.value.kernel_rows + now.value.kernel_rows
    return Solution(replace(now.value, kernel_rows=rows), certificate)


def polish(K: Operator, problem: BoxProblem, alpha: Array, f: Array) -> tuple[Array, Array]:
    """A nearly optimal α made optimal to rounding, where that takes few steps."""
    return descend(K, problem, alpha, f, limit=300, rounds=30)


def descend(
    K: Operator,
    problem: BoxProblem,
    alpha: Array,
    f: Array,
    *,
    limit: int = MOST_FREE,
    rounds: int = 3000,
) -> tuple[Array, Array]:
    """α and f after Newton's steps on the free variables, bounds respected.

    Where the step leaves the box it stops at the bound; where a bounded variable wants to move it is freed.
    Problems with more than `limit` free variables, and steps that do not lower the objective, are left as
    they are. Of a matrix in memory the core does the rounds, until it meets a system that is singular or
    large.
    """
    free = (alpha > 0) & (alpha < problem.C)
    if isinstance(K, ArrayOperator) and K.shift == 0 and K.dtype == np.float64:
        alpha = alpha.copy()
        f = f.copy()
        easy = True
        while easy and rounds > 0 and not clock.late():
            some = min(rounds, AT_A_TIME)
            ended, left = newton_rounds(K.array, problem, alpha, f, free, limit=limit, rounds=some)
            if ended == "done":
                return alpha, f
            rounds -= some - left
            easy = ended != "hard"
    return newton_steps(K, problem, alpha, f, free, limit=limit, rounds=rounds)


def newton_steps(
    K: Operator,
    problem: BoxProblem,
    alpha: Array,
    f: Array,
    free: Flags,
    *,
    limit: int = MOST_FREE,
    rounds: int = 3000,
) -> tuple[Array, Array]:
    """`descend` for any operator and any system, from α, f and the variables that are `free` to move."""
    here = _Place(alpha, f, problem.objective(alpha, f))
    free = free.copy()
    scale = float(np.abs(f).max(initial=0.0) + np.abs(problem.p).max(initial=0.0)) or 1.0
    for _ in range(rounds):
        if not 0 < free.sum() <= limit or clock.late():
            break
        step = _newton(K, problem, here.f, np.flatnonzero(free))
        if step is None:
            break
        room = _room(problem, here.alpha, step)
        nearest = float(room.min())
        t = min(_length(K, problem, here.f, step), nearest)
        if not np.isfinite(t):
            break
        new = (here.alpha + t * step).clip(0.0, problem.C)
        reached = nearest <= t
        if reached:
            hit = free & (room <= t)
            new[hit] = np.where(step[hit] > 0, problem.C[hit], 0.0)
        moved = bool((new != here.alpha).any())
        before = here
        new_f = here.f + _product(K, problem, new - here.alpha)
        here = _Place(new, new_f, problem.objective(new, new_f))
        if moved and _rises(problem, before, here):
            return before.alpha, before.f
        if reached:
            free &= ~hit
            continue
        bad = problem.violation(new, problem.slack(new_f, problem.multipliers(new, new_f)))
        inside = float(bad[free].max(initial=0.0))
        bad[free] = 0.0
        worst = float(bad.max())
        if inside > max(worst, 1e-11 * scale) and _rises(problem, here, before):
            # A long step came to no bound: there is more to go.
            continue
        if worst <= 1e-11 * scale or not moved:
            break
        free[int(np.argmax(bad))] = True
    return here.alpha, here.f


class _Place(NamedTuple):
    """α, f and the objective there."""

    alpha: Array
    f: Array
    objective: float


def _room(problem: BoxProblem, alpha: Array, step: Array) -> Array:
    """How far each variable may go along the step until it reaches a bound; infinity for those that rest."""
    moving = np.flatnonzero(step)
    ahead = step[moving]
    here = alpha[moving]
    room = np.full(len(step), np.inf)
    room[moving] = np.where(ahead > 0, problem.C[moving] - here, here) / np.abs(ahead)
    return room


def _rises(problem: BoxProblem, old: _Place, new: _Place) -> bool:
    """Whether the objective rises beyond its rounding."""
    rise = new.objective - old.objective
    if rise <= 0:
        return False
    terms = float(new.alpha @ (np.abs(problem.p) + np.abs(new.f)))
    return rise > 1e-12 * terms


def _product(K: Operator, problem: BoxProblem, d: Array) -> Array:
    """What a step d adds to f."""
    change = problem.beta(d, K.shape[0])
    columns = np.flatnonzero(change)
    if len(columns) == 0:
        return np.zeros(len(d))
    image: Array = change[columns] @ K.block(columns, slice(None))
    return image[problem.rows]


def _length(K: Operator, problem: BoxProblem, f: Array, step: Array) -> float:
    """How far along the step the objective falls: 1 for Newton's, more where there is hardly curvature."""
    gradient = problem.gradient(f)
    if np.abs(step).max(initial=0.0) < 1e6 * np.abs(gradient).max(initial=0.0):
        return 1.0
    slope = -float(gradient @ step)
    curve = float((problem.signs * step) @ _product(K, problem, step))
    if curve <= 0:
        return np.inf
    return max(1.0, slope / curve)


def _newton(K: Operator, problem: BoxProblem, f: Array, free: Integers) -> Array | None:
    """d with Q_FF d + Aᵀm = -G_F and A d = 0, as a step of all variables.

    Where Q_FF has directions without curvature it is the step of least length if they do not matter, and else
    a long one along them, which a bound will end; None where not even that can be computed.
    """
    s = problem.signs[free]
    r = problem.rows[free]
    A = _kept_sums(problem.equality, s)
    k = len(free)
    c = len(A)
    M = np.zeros((k + c, k + c))
    products = K.block(r, r)
    if c:
        # Seen from one of the points: d is the same, since Σ s d = 0, and less is lost to rounding.
        shift = products[0] - 0.5 * products[0, 0]
        products = products - shift[:, None] - shift
    np.multiply(s[:, None] * products, s, out=M[:k, :k])
    M[:k, k:] = A.T
    M[k:, :k] = A
    right = np.zeros(k + c)
    right[:k] = -(s * f[free] + problem.p[free])
    x = _solution(M, right)
    if x is None and k <= 120:
        shortest = np.asarray(np.linalg.lstsq(M, right, rcond=1e-13)[0], dtype=np.float64)
        if _solves(M, shortest, right):
            x = shortest
    d = _long_step(M, A, right) if x is None else x[:k]
    if d is None:
        return None
    step = np.zeros(len(problem.rows))
    step[free] = d
    return step


def _kept_sums(equality: int, s: Array) -> Array:
    """The rows of A, with A d = 0 for every step d that keeps the sums of the problem."""
    if equality == 1:
        return s[None, :]
    sides = [] if equality == 0 else [s > 0, s < 0]
    rows = [side.astype(np.float64) for side in sides if side.any()]
    return np.array(rows).reshape(-1, len(s))


def _long_step(M: Array, A: Array, right: Array) -> Array | None:
    """The step with a slight curvature added to every direction; None where it does not lead down."""
    k = A.shape[1]
    M[np.arange(k), np.arange(k)] += SLIGHT * max(float(np.abs(M[:k, :k]).max()), 1e-300)
    try:
        d = np.asarray(np.linalg.solve(M, right), dtype=np.float64)[:k]
    except np.linalg.LinAlgError:
        return None
    for a in A:
        # The sums are kept, whatever rounding did.
        d = d - a * (a @ d) / (a @ a)
    return d if np.all(np.isfinite(d)) and d @ right[:k] > 0 else None


def _solution(M: Array, right: Array) -> Array | None:
    """M⁻¹ right, or None where M is singular or nearly so."""
    try:
        x: Array = np.asarray(np.linalg.solve(M, right))
    except np.linalg.LinAlgError:
        return None
    longest = 1e12 * float(np.abs(right).max(initial=0.0)) / max(float(np.abs(M).max(initial=0.0)), 1e-300)
    if not _solves(M, x, right) or np.abs(x).max(initial=0.0) > longest:
        return None
    return x


def _solves(M: Array, x: Array, right: Array) -> bool:
    return bool(np.abs(M @ x - right).max(initial=0.0) <= 1e-9 * np.abs(right).max(initial=0.0))
