"""The support vector classifier: soft margin, hard margin, with and without bias (M4, M5, M6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import NotSeparableError, ParameterError
from mercer.kernels.base import Kernel
from mercer.machines.classify import MarginClassifier
from mercer.machines.margin import check_C
from mercer.solve.box import BoxProblem
from mercer.solve.solution import AS_ASKED

SMALL_PROGRAM = 300  # rows up to which the smallest violation of a hard margin is computed exactly


class SVC(MarginClassifier):
    """The large-margin classifier, by its dual, with a certificate.

        min ½‖w‖² + Σ C_i max(0, 1 - y_i(w·φ(x_i) + b)),      w = Σ y_i α_i φ(x_i),  0 ≤ α_i ≤ C_i

    Parameters
    ----------
    kernel : Kernel, str
        A kernel, its text, or "precomputed". Text without a lengthscale, such as the default "RBF()", takes
        ℓ = √(d·Var(X)/2) from the data; what was used is in `kernel_`.
    C : float
        The price of a row inside the margin, times its weight. `inf` is the hard margin: `NotSeparableError` where
        no hyperplane separates the classes.
    bias : bool
        Learn b. Without it the dual has no equality constraint.
    multiclass : "ovo" or "ovr"
        One problem for each pair of classes or for each class; all share one Gram operator.
    tol : float
        Largest violation of the optimality conditions; with up to 1000 rows, problems with up to 300 free support
        vectors are then polished to rounding.
    gap_tol : float or None
        A relative duality gap, (primal - dual) / |dual|, that also suffices: the answer is then within this share of
        the best there is. With a tiny `tol` it decides alone.
    max_iter, max_seconds : limits; -1 and None for none. What was reached is kept and its certificate says so.
    class_weight : dict or "balanced", factors of C by class.
    probability : bool
        Also calibrate `predict_proba`, on decision values of held-out rows.
    strict : bool
        Refuse a kernel that is not positive semi-definite instead of warning.
    solver : "working-set" or "projected-gradient" (the textbook's; bias=False only).
    approximation : Nystroem(...) or RandomFeatures(...), without a kernel of its own
        Solve the machine of the approximate kernel; the certificate says what that leaves out.
    warm_start : go on from the last solution. verbose, callback : progress. memory : for the Gram matrix; beyond it, tiles.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_ : the model; `dual_coef_` has one row y_i α_i for
        each problem, so that values = K(X, support_vectors_) @ dual_coef_.T + intercept_.
    classes_, kernel_, norms_ (‖w‖ of each problem), n_iter_, class_weight_
    certificate_ : primal, dual, gap, worst violation and its row, iterations, seconds, status; `certificates_` by problem.

    >>> from mercer import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]], ["same", "same", "other", "other"]
    >>> model = SVC("Polynomial(2)", C=100.0).fit(X, y)
    >>> model.predict(X).tolist(), bool(model.certificate_.gap < 1e-9)
    (['same', 'same', 'other', 'other'], True)
    """

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        C: float = 1.0,
        *,
        bias: bool = True,
        multiclass: str = "ovo",
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int = -1,
        max_seconds: float | None = None,
        class_weight: Any = None,
        probability: bool = False,
        strict: bool = False,
        solver: str = "working-set",
        warm_start: bool = False,
        verbose: int = 0,
        callback: Any = None,
        approximation: Any = None,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.bias = bias
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
        check_C(self.C, hard=True)
        if self.solver == "projected-gradient" and self.bias:
            raise ParameterError(
                "solver='projected-gradient' keeps the box only, and a bias adds an equality constraint. "
                "Use bias=False, or solver='working-set'."
            )

    def _problem(self, rows: np.ndarray, signs: np.ndarray, w: np.ndarray) -> BoxProblem:
        return BoxProblem(rows, signs, np.full(len(rows), -1.0), self.C * w, equality=int(self.bias))

    def _meet_failure(self, K: Any, problems: list[BoxProblem], solved: list[Any]) -> None:
        """A hard margin that does not exist: say so, with the least that would have to be forgiven."""
        if np.isfinite(self.C):
            return
        for duel, q, s in zip(self._duels, problems, solved, strict=True):
            c = s.certificate
            if c.status in AS_ASKED and np.isfinite(c.primal):
                continue
            plus, minus = (self.classes_[d].item() if d is not None else "the rest" for d in duel)
            slack, settled = self._least_violation(K, q)
            worst = int(np.argmax(slack))
            raise NotSeparableError(
                f"classes {plus!r} and {minus!r} cannot be separated by {self.kernel}: the smallest violation "
                f"{'is' if settled else 'is at most'} {slack.sum():.4g} in all, Σ max(0, 1 - y f), in {int((slack > 1e-6).sum())} of "
                f"{len(q.rows)} rows; the worst is row {self._row_number(int(q.rows[worst]))}, by {slack[worst]:.3g}. "
                "Use a finite C, or a richer kernel."
            )

    def _least_violation(self, K: Any, q: BoxProblem) -> tuple[np.ndarray, bool]:
        """Violations of smallest sum and whether they are known to be: for few rows from the linear program that they
        solve, else those of a soft margin with a large C, which can only be larger."""
        n = len(q.rows)
        if n <= SMALL_PROGRAM:
            from scipy.optimize import linprog

            rows = np.hstack(
                [q.signs[:, None] * K.block(q.rows, q.rows), q.signs[:, None] * (q.equality > 0), np.eye(n)]
            )
            free, cost = [(None, None)] * (n + 1), np.repeat([0.0, 1.0], [n + 1, n])
            found = linprog(cost, A_ub=-rows, b_ub=-np.ones(n), bounds=free + [(0, None)] * n)
            if found.status == 0:
                return found.x[n + 1 :], True
        C = 1e4 / max(float(np.median(np.abs(K.diag()[q.rows]))), 1e-300)
        soft = BoxProblem(q.rows, q.signs, q.p, np.full(n, C), q.equality)
        again = self._solve_boxes(K, [soft], [soft.start], self.max_seconds)[0]
        return np.maximum(-soft.slack(again.f, again.m), 0.0), False
