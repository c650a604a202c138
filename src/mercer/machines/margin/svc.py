"""The support vector classifier: soft margin, hard margin, with and without bias (M4, M5, M6)."""

from __future__ import annotations

from math import isfinite, isinf
from typing import ClassVar

import numpy as np

from mercer.errors import NotSeparableError, PrecisionWarning, warn
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.classify import ClassWeight, MarginClassifier
from mercer.machines.margin.hard_margin import (
    NOTHING,
    contradiction,
    least_violation,
    softened,
    widest_margin,
)
from mercer.machines.margin.problems import Solved
from mercer.machines.shared.parameters import HARD_OR_SOFT, Declarations, Switch
from mercer.progress import Tell
from mercer.solve.box import BoxProblem
from mercer.solve.solution import Status
from mercer.typing import Array, Integers, Memory, Seed


class SVC(MarginClassifier):
    """The large-margin classifier, by its dual, with a certificate.

        min ½‖w‖² + Σ C_i max(0, 1 - y_i(w·φ(x_i) + b)),      w = Σ y_i α_i φ(x_i),  0 ≤ α_i ≤ C_i

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_ : the model; `dual_coef_` has one row y_i
        α_i for each problem, so that values = K(X, support_vectors_) @ dual_coef_.T + intercept_.
    classes_, kernel_, norms_ (‖w‖ of each problem), n_iter_, class_weight_
    solver_ : "primal", "working-set" or "projected-gradient". After the first, `coef_` has a row of weights
        for each problem and `feature_map_` is φ: values = φ(X) @ coef_.T + intercept_.
    certificate_ : primal, dual, gap, worst violation and its row, iterations, seconds, status;
        `certificates_` by problem.

    >>> from mercer import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], ["same", "same", "other", "other"]
    >>> model = SVC("Polynomial(2)", C=100.0).fit(X, y)
    >>> model.predict(X).tolist(), bool(model.certificate_.gap < 1e-9)
    (['same', 'same', 'other', 'other'], True)
    """

    parameters: ClassVar[Declarations] = {
        "C": HARD_OR_SOFT,
        "fit_intercept": Switch(about="Learn b. Without it the dual has no equality constraint."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        multiclass: str = "ovo",
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        class_weight: ClassWeight = None,
        probability: bool = False,
        strict: bool = False,
        solver: str = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        callback: Tell | None = None,
        approximation: Approximation | None = None,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.probability = probability
        self.strict = strict
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.approximation = approximation
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require_box_only(self.fit_intercept)

    def _problem(self, rows: Integers, signs: Array, w: Array) -> BoxProblem:
        return BoxProblem(rows, signs, np.full(len(rows), -1.0), self.C * w, equality=int(self.fit_intercept))

    def _solve_all(self, K: GramOperator, problems: list[BoxProblem], *, warm: bool = True) -> list[Solved]:
        if isinf(self.C):
            for k, q in enumerate(problems):
                pair = contradiction(K, q)
                if pair is not None:
                    i, j = (self._row_number(r) for r in pair)
                    why = f"rows {i} and {j} are the same to the kernel and have different labels"
                    self._refuse(K, k, q, self._softly(K, q)[1], f", since {why}")
        return super()._solve_all(K, problems, warm=warm)

    def _meet_failure(self, K: GramOperator, problems: list[BoxProblem], solved: list[Solved]) -> None:
        """A hard margin that was not found: refuse, with the least that would have to be forgiven.

        Where that is nothing, say that the margin is too small for float64, and keep what a large C finds.
        """
        if isfinite(self.C):
            return
        for k, (q, s) in enumerate(zip(problems, solved, strict=True)):
            c = s.certificate
            if c.status.as_asked and c.primal is not None and np.isfinite(c.primal):
                continue
            alpha, slack = self._softly(K, q)
            widest = widest_margin(K, q, [s.alpha, alpha])
            self._refuse(K, k, q, slack, f" with a margin above {widest:.2g}")
            f = np.asarray(K @ q.beta(alpha, K.shape[0]))[q.rows]
            m = q.multipliers(alpha, f)
            note = (
                f"if the classes can be separated, then by a margin below {widest:.2g}, "
                "which float64 cannot tell"
            )
            self._notes = (*self._notes, note)
            warn(
                f"{note}: rows of different classes lie too close together for {self.kernel}. What is kept "
                "is the solution of a soft margin with a large C. Use a finite C, or scale the columns of X.",
                PrecisionWarning,
            )
            c = q.certify(alpha, f, m, status=Status.STAGNATED, iterations=c.iterations, notes=self._notes)
            solved[k] = Solved(alpha, f, m, c)

    def _refuse(self, K: GramOperator, k: int, q: BoxProblem, slack: Array, how: str) -> None:
        """Raise, unless nothing would have to be forgiven.

        `slack` is what a soft margin forgives, which is never less.
        """
        least = least_violation(K, q)
        settled = least is not None
        if least is not None:
            slack = least
        if slack.max() <= NOTHING:
            return
        plus, minus = (self.classes_[d].item() if d is not None else "the rest" for d in self._duels[k])
        worst = int(np.argmax(slack))
        raise NotSeparableError(
            f"classes {plus!r} and {minus!r} cannot be separated by {self.kernel}{how}: the smallest "
            f"violation {'is' if settled else 'is at most'} {slack.sum():.4g} in all, Σ max(0, 1 - y f), in "
            f"{int((slack > 1e-6).sum())} of {len(q.rows)} rows; the worst is row "
            f"{self._row_number(int(q.rows[worst]))}, by {slack[worst]:.3g}. Use a finite C, or a richer "
            "kernel."
        )

    def _softly(self, K: GramOperator, q: BoxProblem) -> tuple[Array, Array]:
        """α and the violations of the same problem with a large C."""
        soft = softened(K, q)
        found = self._solve_boxes(K, [soft], [soft.start])[0]
        return found.alpha, np.maximum(-soft.slack(found.f, found.m), 0.0)
