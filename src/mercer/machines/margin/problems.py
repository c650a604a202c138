"""What all support vector machines share: check, build the operator, solve, certify, keep; predict by support vectors.

A machine states its problems (`_problems`: one `BoxProblem` for each decision function) and how a solution becomes a
decision function (`_scale`, `_bias`). `fit` and `mercer.verify` both use these statements, and nothing of the solver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.errors import NotFiniteError, ShapeError, warn
from mercer.gram import GramOperator, Precomputed, Tiles
from mercer.gram.functions import Functions
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximable
from mercer.machines.shared.base import PRECOMPUTED, check_gram, check_weights
from mercer.machines.shared.defaults import resolve
from mercer.machines.shared.parameters import Choice, Declarations, Function, Number, Whole
from mercer.memory import memory_limit
from mercer.solve.active import finished_sets, polish
from mercer.solve.box import BoxPoint, BoxProblem, certify_all
from mercer.solve.multipliers import Multipliers, of_box
from mercer.solve.projected import projected_gradients
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status, has_note, joined_certificate
from mercer.theory.judge import judge_on_rows

ONE_PROBLEM = 2**25  # bytes of K up to which a single problem has it computed as a whole
POLISHED = 1000  # rows up to which a solution is polished to rounding

ONLY_WORKING_SETS = Choice(
    ("working-set",),
    words="'working-set': this machine has an equality constraint, which projected gradients do not keep",
    about="Working sets; the equality constraint of this machine leaves no other.",
)


@dataclass(frozen=True, eq=False)
class Solved:
    """One problem's α, f = Kβ at each of its variables, multipliers and certificate."""

    alpha: np.ndarray
    f: np.ndarray
    m: tuple[float, float]
    certificate: Certificate


class MarginMachine(Approximable):
    """The common part of SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD and KernelMachine."""

    tol: float
    gap_tol: float | None = None
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    solver: str
    warm_start: bool
    verbose: int
    callback: Any
    memory: int | str
    n_jobs: int | None
    _notes: tuple[str, ...]
    _edge = "on the margin"

    parameters: ClassVar[Declarations] = {
        "tol": Number(
            about="Largest violation of the optimality conditions, in units of the margin. With up to 1000 rows, problems with up to 300 "
            "free support vectors are then polished to rounding."
        ),
        "max_iter": Whole(
            0,
            none=True,
            about="Steps allowed; None for no limit. What was reached is kept, and its certificate says so.",
        ),
        "gap_tol": Number(
            none=True,
            about="A relative duality gap, (primal - dual) / |dual|, that also suffices: the answer is then within this share of the "
            "best there is. With a tiny `tol` it decides alone.",
        ),
        "solver": Choice(
            ("working-set", "projected-gradient"),
            about="Working sets, or the textbook's projected gradients, which keep a box and no equality.",
        ),
        "callback": Function(
            none=True, about="Called with (iterations, violation, objective) now and then; true ends the fit."
        ),
    }

    # ── a machine says ──────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _problems(self, y: Any, w: np.ndarray) -> list[BoxProblem]:
        """The problems of this machine for checked targets and weights."""

    def _scale(self, problem: BoxProblem, m: tuple[float, float]) -> float:
        """By what the coefficients of the solution are divided (ν-classification: the margin ρ)."""
        return 1.0

    def _bias(self, m: tuple[float, float]) -> float:
        """The intercept, before scaling, from the multipliers."""
        return m[0]

    def _multipliers(self, k: int, scale: float) -> tuple[float, float]:
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
        """Whether several problems share K, so that computing it once pays."""
        return False

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _operator(self, A: Any, w: np.ndarray) -> tuple[Kernel | None, GramOperator]:
        """The kernel of these rows and their Gram operator; an invalid kernel is announced or refused."""
        kernel = resolve(self.kernel, self._rows(A), w)
        self.__dict__.pop("witness_", None)
        K = self._approximate(kernel, A, w)
        if K is None:
            K = Precomputed(check_gram(A, None)) if kernel is None else self._exact_operator(kernel, A)
        self._judge(kernel, K, np.flatnonzero(w > 0))
        self._notes = (*self._approximation_notes(), *self._notes)
        return kernel, K

    def _exact_operator(self, kernel: Kernel, A: Any) -> GramOperator:
        limit = memory_limit(self.memory)
        if (
            not self._many_problems()
        ):  # one problem needs few rows of a large K, which are computed when asked for
            limit = min(limit, ONE_PROBLEM)
        K = kernel.gram(self._rows(A), memory=limit, n_jobs=self.n_jobs)
        if K.kind == "dense" and kernel.proof() is None:
            check_gram(K.dense(), kernel)
        return K

    def _judge(self, kernel: Kernel | None, K: GramOperator, rows: np.ndarray) -> None:
        """Announce a kernel that is not positive semi-definite, with the witness; refuse it if `strict`."""
        verdict = judge_on_rows(
            kernel,
            K,
            rows,
            self.n_features_in_,
            strict=self.strict,
            lost="The dual is then not convex: the solution is a stationary point, not unique, and the gap is not a bound.",
            note=Note(
                "the kernel is not positive semi-definite: a stationary point, not a proven optimum",
                NoteKind.STATIONARY_POINT,
            ),
            keeps=True,
        )
        self._notes = verdict.notes
        if verdict.witness is not None:
            self.witness_ = verdict.witness

    def _solve_all(self, K: GramOperator, problems: list[BoxProblem], *, warm: bool = True) -> list[Solved]:
        """Every problem on the same operator, within one budget of seconds."""
        starts = self._starts(problems) if warm else [q.start for q in problems]
        return self._solve_boxes(K, problems, starts)

    def _solve_boxes(
        self, K: GramOperator, problems: list[BoxProblem], starts: list[np.ndarray]
    ) -> list[Solved]:
        solve: Any = projected_gradients if self.solver == "projected-gradient" else finished_sets
        found = solve(
            K,
            problems,
            starts,
            tol=float(self.tol) * self._unit(K, problems),
            gap_tol=None if self.gap_tol is None else float(self.gap_tol),
            max_iter=-1 if self.max_iter is None else int(self.max_iter),
            cache_bytes=min(memory_limit(self.memory), 2**30),
            n_jobs=self.n_jobs,
            callback=_progress(self.callback, self.verbose),
        )
        for q, each in zip(problems, found, strict=True):
            if each.certificate.says(NoteKind.NOT_FINITE):
                self._blame_pair(K, q.rows[~(np.isfinite(each.value.f) & np.isfinite(K.diag()[q.rows]))])
        return self._certified(K, problems, found)

    def _certified(
        self, K: GramOperator, problems: list[BoxProblem], found: list[Solution[BoxPoint]]
    ) -> list[Solved]:
        """What a solver found, polished where that is cheap, and certified from α and f alone."""
        alphas = [r.value.alpha for r in found]
        fs = [r.value.f for r in found]
        small = K.shape[0] <= POLISHED  # by size alone: the answer must not depend on the kind of operator
        if small and not has_note(self._notes, NoteKind.STATIONARY_POINT):
            for k, q in enumerate(problems):
                if found[k].certificate.converged:
                    alphas[k], fs[k] = polish(K, q, alphas[k], fs[k])
        ms = [q.multipliers(*each) for q, *each in zip(problems, alphas, fs, strict=True)]
        facts = [
            {
                "status": r.certificate.status,
                "method": self.solver.replace("-", " ") + "s",
                "iterations": r.certificate.iterations,
                "seconds": r.certificate.seconds,
                "notes": self._notes,
            }
            for r in found
        ]
        certificates = certify_all(problems, alphas, fs, ms, facts)
        return [Solved(*each) for each in zip(alphas, fs, ms, certificates, strict=True)]

    def _blame_pair(self, K: GramOperator, rows: np.ndarray) -> None:
        """Name the pair of rows whose kernel value spoiled a solution."""
        for i in rows.tolist():
            values = K.block([i], slice(None))[0]
            for j in np.flatnonzero(~np.isfinite(values)).tolist():
                raise NotFiniteError(
                    f"{self.kernel} gives {values[j]} for rows {self._row_number(i)} and {self._row_number(j)}. Look at "
                    "that pair, or at parameters that make it overflow."
                )

    def _row_number(self, i: int) -> int:
        """The row of X that row i of K stands for."""
        return i

    def _starts(self, problems: list[BoxProblem]) -> list[np.ndarray]:
        """Where to begin: at the last solution if `warm_start` and it still fits, else at the feasible start."""
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
        self, A: Any, kernel: Kernel | None, problems: list[BoxProblem], solved: list[Solved], order: Any
    ) -> None:
        """The model: support vectors in `order`, one row of coefficients and one intercept for each problem."""
        n = A.shape[0]
        scales = [self._scale(q, s.m) for q, s in zip(problems, solved, strict=True)]
        each = zip(problems, solved, scales, strict=True)
        beta = by_row(problems, [q.signs * s.alpha / c for q, s, c in each], n)
        used = np.flatnonzero(beta.any(axis=0))
        used = used[np.argsort(order[used], kind="stable")]
        self.kernel_ = PRECOMPUTED if kernel is None else kernel
        self.support_ = used.astype(np.int32)
        self.support_vectors_ = A[used] if kernel is not None else np.empty((len(used), 0))
        self.dual_coef_ = beta[:, used]
        self.intercept_ = np.array([self._bias(s.m) / c for s, c in zip(solved, scales, strict=True)])
        self.n_rows_fit_ = n
        self._keep_feature_coef(A[used], self.dual_coef_.T)
        full = by_row(problems, [s.alpha >= q.C for q, s in zip(problems, solved, strict=True)], n)
        self.at_bound_ = full[:, used] > 0
        self.certificates_ = [s.certificate for s in solved]
        self.certificate_ = joined_certificate(self.certificates_)
        self.n_iter_ = int(self.certificate_.iterations or 0)
        self.norms_ = np.array(
            [
                np.sqrt(max(float(q.signs * s.alpha @ s.f), 0.0)) / c
                for q, s, c in zip(problems, solved, scales, strict=True)
            ]
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

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def _values(self, X: Any) -> np.ndarray:
        """Every decision function on new rows, n × problems; only kernel products with support vectors."""
        check_is_fitted(self, "dual_coef_")
        A = self._check_rows(X, reset=False)
        if self._approximated:
            return self._in_features(A) + self.intercept_
        if isinstance(self.kernel_, str):
            products = dense_columns(A, self.support_)
        elif len(self.support_) == 0:
            return np.tile(self.intercept_, (A.shape[0], 1))
        else:
            if sparse.issparse(A) != sparse.issparse(self.support_vectors_):
                A = sparse.csr_array(A) if sparse.issparse(self.support_vectors_) else A.toarray()
            rows, support = self._rows(A), self._rows(self.support_vectors_, "support_vectors_")
            products = Tiles(self.kernel_, rows, support, n_jobs=self.n_jobs)
        return np.asarray(products @ np.ascontiguousarray(self.dual_coef_.T)) + self.intercept_

    # ── theory ──────────────────────────────────────────────────────────────────────────────────────────────

    def _functions(self) -> Functions:
        """Every decision function, by its support vectors."""
        check_is_fitted(self, "dual_coef_")
        facts = self._function_facts()
        if self._approximated:
            return self._by_features(self.intercept_, **facts)
        return self._by_rows(
            self.support_vectors_,
            self.dual_coef_.T,
            self.intercept_,
            self.support_,
            known_norms=getattr(self, "norms_", None),
            **facts,
        )

    def _named_multipliers(self, X: Any, y: Any, sample_weight: Any) -> list[Multipliers]:
        A, targets, w = self._check_again(X, y, sample_weight)
        K = self._fresh_operator(A)
        return [
            of_box(problem, alpha, np.asarray(K @ beta)[problem.rows], m, K)
            for problem, alpha, m, beta in self._restate(A, targets, w)
        ]

    def _named_rows(self) -> dict[str, np.ndarray]:
        full = np.any(self.at_bound_, axis=0)
        return {
            f"support vectors {self._edge}": self.support_[~full],
            "support vectors at the bound": self.support_[full],
        }

    def _function_facts(self) -> dict[str, Any]:
        """What is special about the functions of this machine: classes, duels, a name."""
        return {}

    def _restate(
        self, A: Any, y: Any, w: np.ndarray
    ) -> Iterator[tuple[BoxProblem, np.ndarray, tuple[float, float], np.ndarray]]:
        """Each problem again, with the α, multipliers and coefficients that the fitted model stands for."""
        for k, q in enumerate(self._problems(y, w)):
            scale = self._scale_of(k, q)
            beta = np.zeros(A.shape[0])
            beta[self.support_] = self.dual_coef_[k] * scale
            yield q, q.alpha(beta), self._multipliers(k, scale), beta

    def _check_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, np.ndarray]:
        """Data and targets checked against the fitted model, for `mercer.verify` and `margins`."""
        check_is_fitted(self, "dual_coef_")
        A = self._check_rows(X, reset=False)
        if A.shape[0] != self.n_rows_fit_:
            raise ShapeError(
                f"X has {A.shape[0]} rows; the model was fitted on {self.n_rows_fit_}. Pass the training data."
            )
        return A, *self._targets_again(y, check_weights(sample_weight, A.shape[0]))

    @abstractmethod
    def _targets_again(self, y: Any, w: np.ndarray) -> tuple[Any, np.ndarray]:
        """Targets and weights as `_problems` takes them, for a fitted model."""

    def _fresh_operator(self, A: Any) -> GramOperator:
        if self._approximated:
            return self._approximate_again(A)
        if isinstance(self.kernel_, str):
            return Precomputed(check_gram(A, None))
        return self.kernel_.gram(self._rows(A), memory=self.memory, n_jobs=self.n_jobs)


def advice(status: str) -> str:
    """What helps against a tolerance that was not met."""
    if status == Status.LIMIT:
        return (
            "Raise max_iter or max_seconds, scale the columns of X, or set warm_start=True and fit again to go on "
            "from here."
        )
    if status == Status.FAILED:
        return "The problem has no solution that this method can find: the notes of certificate_ say why."
    return (
        "What is left is rounding: float64 cannot tell a better solution of this problem, and more iterations will not "
        "find one. Scale the columns of X, lower C, or raise tol."
    )


def fixed_unit(K: GramOperator, problem: BoxProblem) -> float:
    """The size of f where Σα is fixed, but no more than 1: a share ν of few rows leaves f far below it."""
    rows = problem.rows
    size = float(problem.start.sum()) * float(np.abs(K.diag()[rows]).mean())
    return min(1.0, size) or 1.0


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def by_row(problems: list[BoxProblem], values: list[np.ndarray], n: int) -> np.ndarray:
    """Values of variables summed by problem and row: problems × n."""
    at = np.concatenate([q.rows + k * n for k, q in enumerate(problems)])
    return np.bincount(at, np.concatenate(values), minlength=len(problems) * n).reshape(len(problems), n)


def dense_columns(A: Any, columns: np.ndarray) -> np.ndarray:
    """Some columns as an ordinary array: the kernel products with support vectors in a precomputed block."""
    part = A[:, columns]
    return part.toarray() if sparse.issparse(part) else part


def _progress(callback: Any, verbose: int) -> Any:
    if callback is None and not verbose:
        return None

    def tell(iterations: int, kkt: float, objective: float) -> Any:
        if verbose:
            print(f"[mercer] {iterations} iterations, violation {kkt:.3g}, dual {-objective:.9g}", flush=True)
        return callback(iterations, kkt, objective) if callback is not None else None

    return tell
