"""Working sets on a matrix that is far away: its rows are computed by other machines.

    until the worst violation of all variables is small:
        W      the variables that violate their conditions most, and some of the last W
        α_W    the best, the others held: a small problem, solved by the core
        f      f + K[:, W] Δβ_W, computed where the rows are: |W| numbers go there, n come back

The conditions are those of the whole problem, so the certificate is the same as that of any other solver: it
is computed from α and f alone, and f is computed afresh at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mercer import clock
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxPoint, BoxProblem
from mercer.solve.operator import FarOperator
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status
from mercer.typing import Array, Flags, Integers

# Variables of a working set: their K is solved in cache, and their rows are worth a message.
WORKING_SET = 1024
# Of the violation: what the small problems are solved to.
INNER = 0.05
# Of the objective: the gap of a problem that counts as solved, as in the core.
GAP = 0.01
# Rounds after which a problem is given up that no longer moves.
ROUNDS = 10_000

FLOOR = Note("what is left is rounding: float64 cannot tell a better α", NoteKind.ROUNDING)
STEPS = Note("the iterations allowed were used up", NoteKind.ITERATIONS)
SECONDS = Note("the seconds allowed were used up", NoteKind.SECONDS)


class SmallSolver(Protocol):
    """What solves a small problem on entries that are here: the core's working sets."""

    def __call__(
        self, K: Array, problem: BoxProblem, /, *, tol: float, max_iter: int
    ) -> Solution[BoxPoint]: ...


@dataclass(eq=False)
class State:
    """Where a problem is: α, f = Kβ at each variable, and what it took."""

    problem: BoxProblem
    alpha: Array
    f: Array
    iterations: int = 0
    rows: int = 0

    @property
    def objective(self) -> float:
        return self.problem.objective(self.alpha, self.f)

    def gap(self) -> float:
        q = self.problem
        if not np.isfinite(q.C).all():
            return 0.0
        return q.gap(self.alpha, q.slack(self.f, q.multipliers(self.alpha, self.f)))


def decomposed(
    K: FarOperator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array],
    small: SmallSolver,
    *,
    tol: float,
    gap_tol: float | None,
    max_iter: int,
    callback: Callable[[int, float, float], object] | None,
) -> list[Solution[BoxPoint]]:
    """Every problem, one after the other; what ends one on request ends all."""
    out: list[Solution[BoxPoint]] = []
    ended: Status = Status.CONVERGED
    for problem, start in zip(problems, starts, strict=True):
        most = 0 if ended.on_request else max_iter
        run = _Run(K, problem, small, tol, gap_tol, most, callback)
        found = run.solve(start)
        if ended.on_request:
            found = Solution(found.value, replace(found.certificate, status=ended))
        ended = found.certificate.status
        out.append(found)
    return out


@dataclass(eq=False)
class _Run:
    """One problem, solved round by round."""

    K: FarOperator
    problem: BoxProblem
    small: SmallSolver
    tol: float
    gap_tol: float | None
    max_iter: int
    callback: Callable[[int, float, float], object] | None

    def solve(self, start: Array) -> Solution[BoxPoint]:
        alpha = np.array(start, dtype=np.float64)
        state = State(self.problem, alpha, self._products(alpha, np.arange(len(alpha))))
        notes: tuple[Note, ...] = ()
        status: Status = Status.LIMIT
        with Anytime[State](best=state) as run:
            status, notes = self._rounds(state)
        if run.interrupted:
            status, notes = Status.INTERRUPTED, ()
        else:
            # What was added to f round by round has rounded as often.
            state.f = self._products(state.alpha, np.arange(len(alpha)))
        kkt, _ = worst_of(self.problem, state.alpha, state.f)
        violated = self.problem.violation(
            state.alpha, self.problem.slack(state.f, self.problem.multipliers(state.alpha, state.f))
        )
        certificate = Certificate(
            status,
            "working sets",
            iterations=state.iterations,
            seconds=run.seconds,
            kkt=kkt,
            worst_row=int(self.problem.rows[np.argmax(violated)]) if len(violated) else None,
            notes=notes,
        )
        return Solution(BoxPoint(state.alpha, state.f, state.objective, state.rows), certificate)

    def _products(self, alpha: Array, changed: Integers) -> Array:
        """K β at each variable, of the coefficients of those variables that are not 0."""
        used = changed[alpha[changed] != 0]
        if not len(used):
            return np.zeros(len(self.problem.rows))
        beta = self.problem.signs[used] * alpha[used]
        image: Array = self.K.columns_times(self.problem.rows[used], beta[:, None])[:, 0]
        return image[self.problem.rows]

    def _rounds(self, state: State) -> tuple[Status, tuple[Note, ...]]:
        tol = self.tol
        last: Integers = np.zeros(0, dtype=np.intp)
        for _ in range(ROUNDS):
            kkt, chosen = worst_of(self.problem, state.alpha, state.f, WORKING_SET)
            if self._is_solved(state, kkt):
                return Status.CONVERGED, ()
            if self.callback is not None and self.callback(state.iterations, kkt, state.objective):
                return Status.STOPPED, ()
            if clock.late():
                return Status.LIMIT, (SECONDS,)
            left = -1 if self.max_iter < 0 else self.max_iter - state.iterations
            if left == 0:
                return Status.LIMIT, (STEPS,)
            if kkt <= tol:
                # The violation is as small as asked, but the gap is not: it follows the violation.
                tol = 0.5 * kkt
            W = _with_last(chosen, last, state.alpha, self.problem.C)
            before = state.objective
            status = self._improve(state, W, max(INNER * kkt, 1e-14), left)
            last = W
            if status == Status.FAILED:
                return Status.FAILED, ()
            if not state.objective < before:
                return Status.STAGNATED, (FLOOR,)
        return Status.LIMIT, (STEPS,)

    def _is_solved(self, state: State, kkt: float) -> bool:
        size = abs(state.objective)
        gap = state.gap()
        if self.gap_tol is not None and gap <= self.gap_tol * size:
            return True
        return kkt <= self.tol and gap <= GAP * size

    def _improve(self, state: State, W: Integers, tol: float, left: int) -> Status:
        """The best α_W, the others held; f of all variables follows."""
        q = self.problem
        rows = q.rows[W]
        entries = np.ascontiguousarray(self.K.block(rows, rows), dtype=np.float64)
        others = state.f[W] - entries @ (q.signs[W] * state.alpha[W])
        part = BoxProblem(
            np.arange(len(W)),
            q.signs[W],
            q.p[W] + q.signs[W] * others,
            q.C[W],
            q.equality,
            state.alpha[W],
        )
        found = self.small(entries, part, tol=tol, max_iter=left)
        step = np.zeros(len(state.alpha))
        step[W] = found.value.alpha - state.alpha[W]
        change = self._products(step, W)
        # In one step, so that Ctrl-C leaves both or neither.
        alpha = state.alpha.copy()
        alpha[W] = found.value.alpha
        state.alpha, state.f = alpha, state.f + change
        state.iterations += found.certificate.iterations or 0
        state.rows += len(W)
        return found.certificate.status


def worst_of(problem: BoxProblem, alpha: Array, f: Array, most: int = 2) -> tuple[float, Integers]:
    """The largest violation m(α) - M(α), and the variables that take part in the largest ones."""
    G = problem.gradient(f)
    below = alpha < problem.C
    above = alpha > 0
    if problem.equality == 0:
        bad = problem.violation(alpha, G)
        return float(bad.max(initial=0.0)), _largest(bad, bad > 0, most)
    up = problem.signs > 0
    if problem.equality == 1:
        # What may grow lifts β where s = 1, and lowers it where s = -1.
        return _pairs(-problem.signs * G, np.where(up, below, above), np.where(up, above, below), most)
    plus, some = _pairs(-G, below & up, above & up, most // 2)
    minus, others = _pairs(-G, below & ~up, above & ~up, most // 2)
    return max(plus, minus), np.concatenate([some, others])


def _pairs(values: Array, may_rise: Flags, may_fall: Flags, most: int) -> tuple[float, Integers]:
    """max over those that may rise less min over those that may fall, and the outermost of both."""
    if not may_rise.any() or not may_fall.any():
        return 0.0, np.zeros(0, dtype=np.intp)
    high = float(values[may_rise].max())
    low = float(values[may_fall].min())
    top = _largest(values, may_rise & (values > low), most // 2)
    bottom = _largest(-values, may_fall & (values < high), most // 2)
    return max(high - low, 0.0), np.unique(np.concatenate([top, bottom]))


def _largest(values: Array, among: Flags, most: int) -> Integers:
    """The places of the largest values among some, ties by place."""
    places = np.flatnonzero(among)
    return places[np.argsort(-values[places], kind="stable")[:most]]


def _with_last(chosen: Integers, last: Integers, alpha: Array, C: Array) -> Integers:
    """Those chosen, and what is free of the last set, so that one set does not undo another."""
    free = last[(alpha[last] > 0) & (alpha[last] < C[last])]
    return np.union1d(chosen, free[: WORKING_SET // 2])
