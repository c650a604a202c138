"""How the problems of a `KernelMachine` are solved, and certified from what was found.

Smooth losses by Newton's method, piecewise linear ones by working sets or, in explicit features, by
coordinate ascent; another penalty than ‖f‖²/2 by a search for the price at which both have the same f;
levels of quantiles that cross by a joint fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer import clock
from mercer.errors import InvalidKernelError, InvalidKernelWarning, NotPositiveDefiniteError, warn
from mercer.gram import GramOperator
from mercer.gram.explicit import FeatureGram
from mercer.machines.loss.objective import Objective, Problem, ProblemSolution, SoftmaxObjective, certify
from mercer.machines.loss.penalty import Penalty, certify_penalised, search
from mercer.machines.loss.quantiles import JOINT_SIZE, JointQuantiles, fit_jointly
from mercer.machines.shared.support import in_words
from mercer.memory import memory_limit
from mercer.progress import Tell
from mercer.solve.active import POLISHED, finished_sets, polish
from mercer.solve.ascent import finished_ascents
from mercer.solve.box import BoxPoint
from mercer.solve.newton import NewtonPoint, newton
from mercer.solve.solution import Certificate, NoteKind, Solution, Status, has_note
from mercer.typing import Array, Flags, Memory, Seed

# what max_iter=None means for smooth losses
NEWTON_STEPS = 200


@dataclass(frozen=True)
class Minimiser:
    """What one fit asks of its problems: the price of ‖f‖, the limits, and what was said of the kernel.

    `penalty` is None for (alpha/2)‖f‖². `notes` are those of the kernel, which every certificate repeats.
    """

    alpha: float
    penalty: Penalty | None
    intercept: bool
    tol: float
    max_iter: int | None
    memory: Memory
    n_jobs: int | None
    random_state: Seed
    progress: Tell | None
    notes: tuple[str, ...]

    def solve(self, K: GramOperator, problem: Problem) -> tuple[ProblemSolution, float]:
        """One problem solved, and the price of ½‖f‖² at which it is the solution."""
        if self.penalty is None:
            return self._solve_at(K, problem, self.alpha), self.alpha
        solved, price = search(
            self.penalty, problem, K, lambda alpha: self._solve_at(K, problem, alpha), self.intercept
        )
        c = solved.certificate
        if c.gap is None or c.status not in (Status.CONVERGED, Status.STAGNATED, Status.LIMIT):
            return solved, price
        status = c.status
        if self._is_small(c):
            status = Status.CONVERGED
        elif status == Status.CONVERGED:
            status = Status.STAGNATED
        return solved._replace(certificate=replace(c, status=status)), price

    def _solve_at(self, K: GramOperator, problem: Problem, alpha: float) -> ProblemSolution:
        """The same with (alpha/2)‖f‖² as the penalty."""
        if isinstance(problem, Objective) and not problem.loss.smooth:
            return self._solve_box(K, problem, alpha)
        steps = NEWTON_STEPS
        if self.max_iter is not None:
            steps = self.max_iter
        shares = None
        if isinstance(problem, SoftmaxObjective):
            shares = problem.shares
        try:
            found = newton(
                K,
                problem,
                alpha,
                outputs=problem.outputs,
                intercept=self.intercept,
                shares=shares,
                tol=self.tol,
                max_iter=steps,
                memory=self.memory,
                random_state=self.random_state,
                callback=self.progress,
            )
        except NotPositiveDefiniteError as error:
            if self._stationary():
                return self._without_minimum(K, problem, alpha, error)
            raise InvalidKernelError(
                f"alpha={alpha:g} does not make up for the negative eigenvalues of the kernel, so the "
                f"problem has no minimum. Raise alpha, or use a kernel whose validity() is proved. ({error})"
            ) from error
        return self._recertified(problem, K, alpha, found)

    def _without_minimum(
        self, K: GramOperator, problem: Problem, alpha: float, error: Exception
    ) -> ProblemSolution:
        """Negative eigenvalues outweigh alpha, so nothing can be found: the best constant, called failed."""
        said = (
            f"alpha={alpha:g} does not make up for the negative eigenvalues of the kernel, so the problem "
            "has no minimum; what is left is the best constant. Raise alpha, or use a kernel whose "
            f"validity() is proved. ({error})"
        )
        warn(said, InvalidKernelWarning)
        start = newton(K, problem, alpha, outputs=problem.outputs, intercept=self.intercept, max_iter=0)
        constant = Solution(
            start.value,
            replace(start.certificate, status=Status.FAILED, method="the best constant", iterations=0),
        )
        return self._recertified(problem, K, alpha, constant, notes=(said,))

    def _solve_box(self, K: GramOperator, problem: Objective, alpha: float) -> ProblemSolution:
        """A piecewise linear loss, by working sets or, in explicit features, by coordinate ascent."""
        q = problem.box(alpha, self.intercept)
        tell = self.progress
        solve: Callable[..., list[Solution[BoxPoint]]] = finished_sets
        if isinstance(K, FeatureGram):
            solve = partial(finished_ascents, features=K.phi)
        (found,) = solve(
            K,
            [q],
            [q.start],
            tol=1e-9 * max(float(np.abs(q.p).max(initial=0.0)), 1e-300),
            gap_tol=self.tol,
            max_iter=-1 if self.max_iter is None else self.max_iter,
            cache_bytes=min(memory_limit(self.memory), 2**30),
            n_jobs=self.n_jobs,
            callback=None if tell is None else lambda i, kkt, objective: tell(i, -alpha * objective, kkt),
        )
        a = found.value.alpha
        f = found.value.f
        got = found.certificate
        near = got.status in (Status.CONVERGED, Status.STAGNATED)
        if K.shape[0] <= POLISHED and near and not self._stationary():
            a, f = polish(K, q, a, f)
        b = np.array([q.multipliers(a, f)[0]])
        beta = q.beta(a, K.shape[0])[:, None]
        known = None
        if got.status.on_request:
            # Whoever pressed Ctrl-C does not wait for a product that the solver has made.
            known = np.zeros((K.shape[0], 1))
            known[q.rows, 0] = f
        c = self._certify(
            problem, K, alpha, beta, b, status=got.status, method=in_words(K, got.method), products=known
        )
        if c.status == Status.STAGNATED and self._is_small(c):
            c = replace(c, status=Status.CONVERGED)
        return ProblemSolution(beta, b, replace(c, iterations=got.iterations, seconds=got.seconds))

    def _is_small(self, c: Certificate) -> bool:
        """Whether the gap is as small as it was asked to be."""
        return c.gap is not None and c.gap <= self.tol * abs(c.primal or 0.0)

    def _stationary(self) -> bool:
        return has_note(self.notes, NoteKind.STATIONARY_POINT)

    # ── certificates ────────────────────────────────────────────────────────────────────────────────────────

    def _recertified(
        self,
        problem: Problem | JointQuantiles,
        K: GramOperator,
        alpha: float,
        found: Solution[NewtonPoint],
        notes: tuple[str, ...] = (),
    ) -> ProblemSolution:
        """What Newton's method found, with a certificate computed from it; how it was got the solver says."""
        beta = found.value.beta
        b = found.value.b
        got = found.certificate
        method = in_words(K, got.method)
        c = self._certify(problem, K, alpha, beta, b, status=got.status, method=method, notes=notes)
        return ProblemSolution(beta, b, replace(c, iterations=got.iterations, seconds=got.seconds))

    def _certify(
        self,
        problem: Problem | JointQuantiles,
        K: GramOperator,
        alpha: float,
        beta: Array,
        b: Array,
        *,
        status: Status,
        method: str,
        notes: tuple[str, ...] = (),
        products: Array | None = None,
    ) -> Certificate:
        """The certificate of (β, b) from the model alone, with what was said of the kernel and `notes`."""
        notes = (*self.notes, *notes)
        if isinstance(problem, JointQuantiles):
            return problem.certify(
                K, beta, b, intercept=self.intercept, status=status, method=method, notes=notes
            )
        return certify(
            problem,
            K,
            alpha,
            beta,
            b,
            intercept=self.intercept,
            status=status,
            method=method,
            notes=notes,
            products=products,
        )

    def recertify(
        self,
        K: GramOperator,
        problems: Sequence[Problem | JointQuantiles],
        prices: Sequence[float],
        claimed: Sequence[Certificate],
        beta: Array,
        intercept: Array,
    ) -> Iterator[Certificate]:
        """Each certificate again, from the coefficients and fresh kernel products."""
        at = 0
        for problem, price, claim in zip(problems, prices, claimed, strict=True):
            here = slice(at, at + problem.outputs)
            at += problem.outputs
            mine = beta[:, here]
            b = intercept[here]
            if self.penalty is None or isinstance(problem, JointQuantiles):
                yield self._certify(problem, K, price, mine, b, status=claim.status, method="recomputed")
                continue
            yield certify_penalised(
                self.penalty,
                problem,
                K,
                price,
                mine,
                b,
                intercept=self.intercept,
                status=claim.status,
                notes=self.notes,
            )

    # ── several levels ──────────────────────────────────────────────────────────────────────────────────────

    def uncross(
        self, K: GramOperator, joint: JointQuantiles, crossing: Flags, solved: list[ProblemSolution]
    ) -> list[ProblemSolution]:
        """Levels that cross on a training row are fitted again, jointly, so that they do not."""
        if not crossing.any() or any(each.certificate.status.on_request for each in solved):
            return solved
        apart = f"levels fitted one by one cross on {int(crossing.sum())} training rows"
        size = K.shape[0] * len(solved)
        late = clock.late()
        if late or size > JOINT_SIZE or not self.intercept:
            why = f"rows × levels = {size} is beyond the {JOINT_SIZE} of the joint fit"
            if not self.intercept:
                why = "a joint fit needs an intercept"
            elif late:
                why = "no seconds are left for a joint fit"
                solved = [_cut_short(each) for each in solved]
            return [_with_note(each, f"{apart}; {why}, so predict sorts them") for each in solved]
        found = fit_jointly(
            K, joint, intercept=self.intercept, tol=self.tol, memory=self.memory, callback=self.progress
        )
        notes = (f"{apart}; fitted jointly they do not",)
        return [self._recertified(joint, K, self.alpha, found, notes)]


def _cut_short(solved: ProblemSolution) -> ProblemSolution:
    """A solution for which no time was left to go on."""
    c = solved.certificate
    return solved._replace(certificate=replace(c, status=Status.worst((c.status, Status.LIMIT))))


def _with_note(solved: ProblemSolution, note: str) -> ProblemSolution:
    c = solved.certificate
    return solved._replace(certificate=replace(c, notes=(*c.notes, note)))
