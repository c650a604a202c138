"""What support vector machines share: build the operator, solve, certify, keep; predict by support vectors.

A machine states its problems (`_problems`: one `BoxProblem` for each decision function) and how a solution
becomes a decision function (`_scale`, `_bias`). `fit` and `mercer.verify` both use these statements, and
nothing of the solver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, sqrt
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import NotFiniteError, ParameterError, warn
from mercer.gram import GramOperator
from mercer.gram.explicit import FeatureGram
from mercer.gram.on_rows import KernelOnRows
from mercer.machines.shared.machine import Invalid
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Function, Number, Whole
from mercer.machines.shared.support import SupportMachine, in_words
from mercer.memory import memory_limit
from mercer.progress import Tell, teller
from mercer.solve.active import POLISHED, finished_sets, in_memory, polish
from mercer.solve.ascent import finished_ascents
from mercer.solve.box import BoxPoint, BoxProblem, certify_all
from mercer.solve.multipliers import Multipliers, of_box
from mercer.solve.operator import Operator
from mercer.solve.projected import projected_gradients
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status, has_note, joined_certificate
from mercer.sparse import Matrix
from mercer.typing import Array, Flags, Integers, Memory, Table, Targets, Weights

ONE_PROBLEM = 2**25
"""Bytes of K up to which it is computed as a whole without asking what the problems need of it."""

AT_BOUND = 1 - 16 * float(np.finfo(float).eps)
"""Of C: an α of more is at its bound, from which rounding alone keeps it."""

ONLY_WORKING_SETS = Choice(
    ("working-set",),
    words="'working-set': this machine has an equality constraint, which projected gradients do not keep",
    about="Working sets; the equality constraint of this machine leaves no other.",
)
NU_OF_OUTLIERS = TABLE["nu"].but(
    about="0 < ν ≤ 1: at most this share of the rows are outliers, at least this share are support vectors."
)


@dataclass(frozen=True, eq=False)
class Solved:
    """One problem's α, f = Kβ at each of its variables, multipliers and certificate."""

    alpha: Array
    f: Array
    m: tuple[float, float]
    certificate: Certificate


class MarginMachine(SupportMachine):
    """The common part of SVC, NuSVC, SVR, NuSVR, OneClassSVM and SVDD."""

    on_cluster = True

    tol: float
    gap_tol: float | None = None
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    solver: str
    solver_: str
    C: float = 1.0
    warm_start: bool
    verbose: int
    callback: Tell | None
    memory: Memory
    n_jobs: int | None
    _notes: tuple[str, ...]
    _edge = "on the margin"

    parameters: ClassVar[Declarations] = {
        "tol": Number(
            about="Largest violation of the optimality conditions, in units of the margin. With up to 1000 "
            "rows, problems with up to 300 free support vectors are then polished to rounding."
        ),
        "max_iter": Whole(
            0,
            none=True,
            about="Steps allowed; None for no limit. What was reached is kept, and its certificate says so.",
        ),
        "gap_tol": Number(
            none=True,
            about="A relative duality gap, (primal - dual) / |dual|, that also suffices: the answer is then "
            "within this share of the best there is. With a tiny `tol` it decides alone.",
        ),
        "solver": Choice(
            ("auto", "primal", "working-set", "projected-gradient"),
            about='"primal" finds w in explicit features of the kernel and computes no entry of K; '
            '"working-set" computes those that it needs; "auto" takes what promises to cost less, the first '
            "for linear kernels, and others of few features, on more than 1000 rows. "
            '"projected-gradient" is the way of the textbook, which keeps a box and no equality.',
        ),
        "callback": Function(
            none=True, about="Called with (iterations, violation, objective) now and then; true ends the fit."
        ),
    }

    # ── a machine says ──────────────────────────────────────────────────────────────────────────────────────

    def _require_box_only(self, fit_intercept: bool) -> None:
        """Refuse projected gradients for a problem with an intercept."""
        if self.solver == "projected-gradient" and fit_intercept:
            raise ParameterError(
                "solver='projected-gradient' keeps the box only, and an intercept adds an equality "
                "constraint. Use fit_intercept=False, or solver='working-set'."
            )

    @abstractmethod
    def _problems(self, y: Any, w: Array) -> list[BoxProblem]:
        """The problems of this machine for checked targets and weights."""

    def _scale(self, problem: BoxProblem, m: tuple[float, float]) -> float:
        """By what the coefficients of the solution are divided (ν-classification: the margin ρ)."""
        return 1.0

    def _bias(self, m: tuple[float, float]) -> float:
        """The intercept, before scaling, from the multipliers."""
        return m[0]

    def _multipliers(self, k: int, scale: float, K: GramOperator) -> tuple[float, float]:
        """The multipliers that the fitted intercept stands for: the inverse of `_bias`."""
        b = float(self.intercept_[k]) * scale
        return b, -b

    def _scale_of(self, k: int, problem: BoxProblem) -> float:
        """The scale of the fitted coefficients, from themselves."""
        return 1.0

    def _unit(self, K: GramOperator, problems: list[BoxProblem]) -> float:
        """What `tol` is measured in: 1 where the margin is 1."""
        return 1.0

    def _many_problems(self) -> bool:
        """Whether several problems share K, so that computing it once may pay."""
        return False

    def _reads_all(self) -> bool:
        """Whether K is read as a whole several times, so that it is stored if it fits."""
        return False

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    invalid: ClassVar[Invalid] = Invalid(
        "The dual is then not convex: the solution is a stationary point, not unique, and the gap is not a "
        "bound.",
        Note(
            "the kernel is not positive semi-definite: a stationary point, not a proven optimum",
            NoteKind.STATIONARY_POINT,
        ),
    )

    def _learn_from(self, A: Matrix, w: Array) -> tuple[KernelOnRows, GramOperator]:
        """The kernel on these rows and its Gram operator; an invalid kernel is announced or refused."""
        on = self._kernel_on(A, w)
        K = self._operator(on)
        self._notes = self._judged(on, K, (w > 0).nonzero()[0])
        return on, K

    def _operator(self, on: KernelOnRows) -> GramOperator:
        """K by explicit features or by its entries, as `solver` says; `solver_` is what was taken."""
        explicit: FeatureGram | None = None
        if self.solver == "primal":
            explicit = self._asked_for_features(on)
        elif self.solver == "auto" and isfinite(self.C):
            explicit = self._in_features(on)
        if explicit is not None:
            self.solver_ = "primal"
            return explicit
        self.solver_ = "working-set" if self.solver == "auto" else self.solver
        limit = memory_limit(self.memory)
        if not self._reads_all():
            # A problem needs few rows of a large K, which are computed when asked for.
            limit = min(limit, ONE_PROBLEM)
        K = on.gram(limit, finite=False)
        if self._many_problems() and K.kind == "tiles" and K.program() is None:
            # Rows that only Python can compute are not computed once for each problem.
            K = on.gram(memory_limit(self.memory), finite=False)
        return K

    def _asked_for_features(self, on: KernelOnRows) -> FeatureGram:
        if not isfinite(self.C):
            raise ParameterError(
                "solver='primal' needs a finite C. Give C a number, or use solver='working-set' for a hard "
                "margin."
            )
        if on.feature_size() is None:
            raise ParameterError(
                f"solver='primal' needs a kernel with a finite feature map, on columns of numbers or by what "
                f"it counts in things, and {on.published} has none that is known. Use solver='auto'."
            )
        return on.explicit()

    def _solve_all(self, K: GramOperator, problems: list[BoxProblem], *, warm: bool = True) -> list[Solved]:
        """Every problem on the same operator, within one budget of seconds."""
        starts = self._starts(problems) if warm else [q.start for q in problems]
        return self._solve_boxes(K, problems, starts)

    def _solve_boxes(self, K: GramOperator, problems: list[BoxProblem], starts: list[Array]) -> list[Solved]:
        cache_bytes = min(memory_limit(self.memory), 2**30)
        solve: Callable[..., list[Solution[BoxPoint]]] = finished_sets
        entries: Operator = K
        if isinstance(K, FeatureGram):
            # Where that takes too long and nobody asked for it, working sets go on.
            solve = partial(finished_ascents, features=K.phi, asked=self.solver == "primal")
        elif self.solver == "projected-gradient":
            solve = projected_gradients
        else:
            entries = in_memory(K, cache_bytes)
        found = solve(
            entries,
            problems,
            starts,
            tol=float(self.tol) * self._unit(K, problems),
            gap_tol=None if self.gap_tol is None else float(self.gap_tol),
            max_iter=-1 if self.max_iter is None else int(self.max_iter),
            cache_bytes=cache_bytes,
            stored_bytes=memory_limit(self.memory),
            n_jobs=self.n_jobs,
            callback=teller(self.verbose, _say, self.callback),
        )
        for q, each in zip(problems, found, strict=True):
            if each.certificate.says(NoteKind.NOT_FINITE):
                self._blame_pair(K, q.rows[~(np.isfinite(each.value.f) & np.isfinite(K.diag()[q.rows]))])
        return self._certified(entries, problems, found)

    def _certified(
        self, K: Operator, problems: list[BoxProblem], found: list[Solution[BoxPoint]]
    ) -> list[Solved]:
        """What a solver found, polished where that is cheap, and certified from α and f alone."""
        alphas = [r.value.alpha for r in found]
        fs = [r.value.f for r in found]
        # By size alone: the answer must not depend on the kind of operator.
        small = K.shape[0] <= POLISHED
        if small and not has_note(self._notes, NoteKind.STATIONARY_POINT):
            for k, q in enumerate(problems):
                if found[k].certificate.converged:
                    alphas[k], fs[k] = polish(K, q, alphas[k], fs[k])
        ms = [q.multipliers(*each) for q, *each in zip(problems, alphas, fs, strict=True)]
        facts = [
            {
                "status": r.certificate.status,
                "method": in_words(K, r.certificate.method),
                "iterations": r.certificate.iterations,
                "seconds": r.certificate.seconds,
                "notes": self._notes,
            }
            for r in found
        ]
        certificates = certify_all(problems, alphas, fs, ms, facts)
        return [Solved(*each) for each in zip(alphas, fs, ms, certificates, strict=True)]

    def _blame_pair(self, K: GramOperator, rows: Integers) -> None:
        """Name the pair of rows whose kernel value spoiled a solution."""
        for i in rows.tolist():
            values = K.block([i], slice(None))[0]
            for j in np.flatnonzero(~np.isfinite(values)).tolist():
                raise NotFiniteError(
                    f"{self.kernel} gives {values[j]} for rows {self._row_number(i)} and "
                    f"{self._row_number(j)}. Look at that pair, or at parameters that make it overflow."
                )

    def _row_number(self, i: int) -> int:
        """The row of X that row i of K stands for."""
        return i

    def _starts(self, problems: list[BoxProblem]) -> list[Array]:
        """Where to begin: at the last solution if `warm_start` and it fits, else at the feasible start."""
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None or len(last) != len(problems):
            return [q.start for q in problems]
        out = []
        for (rows, alpha), q in zip(last, problems, strict=True):
            if len(rows) != len(q.rows) or not np.array_equal(rows, q.rows):
                out.append(q.start)
                continue
            over = alpha > 0
            shrink = min(1.0, float((q.C[over] / alpha[over]).min(initial=1.0)))
            scaled = np.minimum(alpha * shrink, q.C)
            out.append(scaled if q.unkept(scaled) <= 1e-12 * max(1.0, float(scaled.sum())) else q.start)
        return out

    def _keep(
        self,
        on: KernelOnRows,
        A: Matrix,
        problems: list[BoxProblem],
        solved: list[Solved],
        order: Array | Integers | None = None,
        K: GramOperator | None = None,
    ) -> None:
        """The model: support vectors in `order`, one row of coefficients and one intercept by problem.

        Without an order they stay in that of the rows.
        """
        n = A.shape[0]
        scales = [self._scale(q, s.m) for q, s in zip(problems, solved, strict=True)]
        signed = [q.signs * s.alpha for q, s in zip(problems, solved, strict=True)]
        beta = by_row(problems, [a / c for a, c in zip(signed, scales, strict=True)], n)
        used = np.logical_or.reduce(beta, axis=0).nonzero()[0]
        if order is not None:
            used = used[order[used].argsort(kind="stable")]
        self._keep_support(on, A, used, beta[:, used])
        self._keep_coef(on, K, beta)
        self.intercept_ = np.array([self._bias(s.m) / c for s, c in zip(solved, scales, strict=True)])
        full = by_row(problems, [s.alpha >= q.C * AT_BOUND for q, s in zip(problems, solved, strict=True)], n)
        self.at_bound_ = full[:, used] > 0
        self.certificates_ = [s.certificate for s in solved]
        self.certificate_ = joined_certificate(self.certificates_)
        self.n_iter_ = int(self.certificate_.iterations or 0)
        self.norms_ = np.array(
            [sqrt(max(float(a @ s.f), 0.0)) / c for a, s, c in zip(signed, solved, scales, strict=True)]
        )
        if self.warm_start:
            self._last = [(q.rows, s.alpha) for q, s in zip(problems, solved, strict=True)]
        self._report()

    def _report(self) -> None:
        """Say it when the tolerance was not met."""
        c = self.certificate_
        if not c.status.as_asked:
            warn(
                f"stopped before tol={self.tol:g} was met ({c}). {advice(c.status)}",
                ConvergenceWarning,
            )

    # ── theory ──────────────────────────────────────────────────────────────────────────────────────────────

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        A, targets, w = self.check_again(X, y, sample_weight)
        K = self.again_on(A).gram()
        return [
            of_box(problem, alpha, np.asarray(K @ beta)[problem.rows], m, K)
            for problem, alpha, m, beta in self._restate(A, targets, w, K)
        ]

    def named_rows(self) -> dict[str, Integers]:
        full = np.any(self.at_bound_, axis=0)
        return {
            f"support vectors {self._edge}": self.support_[~full],
            "support vectors at the bound": self.support_[full],
        }

    def _restate(
        self, A: Matrix, y: Any, w: Array, K: GramOperator
    ) -> Iterator[tuple[BoxProblem, Array, tuple[float, float], Array]]:
        """Each problem again, with the α, multipliers and coefficients that the fitted model stands for."""
        for k, q in enumerate(self._problems(y, w)):
            scale = self._scale_of(k, q)
            beta = np.zeros(A.shape[0])
            beta[self.support_] = self.dual_coef_[k] * scale
            yield q, q.alpha(beta), self._multipliers(k, scale, K), beta


def advice(status: str) -> str:
    """What helps against a tolerance that was not met."""
    if status == Status.LIMIT:
        return (
            "Raise max_iter or max_seconds, scale the columns of X, or set warm_start=True and fit again to "
            "go on from here."
        )
    if status == Status.FAILED:
        return "The problem has no solution that this method can find: the notes of certificate_ say why."
    return (
        "What is left is rounding: float64 cannot tell a better solution of this problem, and more "
        "iterations will not find one. Scale the columns of X, lower C, or raise tol."
    )


def fixed_unit(K: GramOperator, problem: BoxProblem) -> float:
    """The size of f where Σα is fixed, but no more than 1: a share ν of few rows leaves f far below it."""
    rows = problem.rows
    size = float(problem.start.sum()) * float(np.abs(K.diag()[rows]).mean())
    return min(1.0, size) or 1.0


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def by_row(problems: list[BoxProblem], values: Sequence[Array | Flags], n: int) -> Array:
    """Values of variables summed by problem and row: problems × n."""
    if len(problems) == 1:
        return problems[0].summed(values[0], n)[None, :]
    at = np.concatenate([q.rows + k * n for k, q in enumerate(problems)])
    sums = np.bincount(at, np.concatenate(values), minlength=len(problems) * n)
    return cast("Array", sums.reshape(len(problems), n))


def _say(iterations: int, kkt: float, objective: float) -> str:
    return f"{iterations} iterations, violation {kkt:.3g}, dual {-objective:.9g}"
