"""Support vector regression: a tube of width ε, or one whose width is found from ν (M5)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.problems import ONLY_WORKING_SETS, MarginMachine
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.parameters import TABLE, Declarations, Number, Switch
from mercer.machines.shared.targets import check_length, check_numbers
from mercer.progress import Tell
from mercer.solve.box import BoxProblem
from mercer.typing import Array, Integers, Memory, Table, Targets, Weights


class MarginRegressor(RegressorMixin, MarginMachine):
    """What SVR and NuSVR share: α for rows above the tube and α* for rows below, on n rows of K."""

    _edge = "on the tube"
    parameters: ClassVar[Declarations] = {
        "tol": Number(
            about="Largest violation of the optimality conditions, in units of the mean distance of y from "
            "its median, so that it means the same for targets in metres and in millimetres."
        ),
        "C": TABLE["C"].but(
            about="The price of each unit of error beyond the tube, times the weight of the row."
        ),
        "nu": TABLE["nu"].but(
            about="0 < ν ≤ 1: at most this share of the rows lie outside the tube, at least this share are "
            "support vectors."
        ),
    }

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and numbers y; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        y = check_numbers(y, A.shape[0], type(self).__name__)
        w = check_weights(sample_weight, A.shape[0])
        on, K = self._learn_from(A, w)
        problems = self._problems(y, w)
        solved = self._solve_all(K, problems)
        self._keep(on, A, problems, solved, K=K)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self._keep_tube(solved[0].m)
        return self

    def _keep_tube(self, m: tuple[float, float]) -> None:
        """Only ν-regression finds its tube."""

    def _unit(self, K: GramOperator, problems: list[BoxProblem]) -> float:
        """The mean distance of the targets from their median; `tol` is a part of it."""
        q = problems[0]
        # ε - y
        shifted = np.sort(q.p[q.signs > 0])
        n = len(shifted)
        median = 0.5 * (shifted[(n - 1) // 2] + shifted[n // 2])
        return float(np.abs(shifted - median).sum() / n) or 1.0

    def predict(self, X: Table) -> Array:
        """Σ β_i k(x_i, x) + b over the support vectors."""
        return self._values(X)[:, 0]

    def _targets_again(self, y: Targets, w: Array) -> tuple[Array, Array]:
        y = check_numbers(y, len(w), type(self).__name__)
        check_length(y, len(w))
        return y, w

    def _twice(self, y: Array, w: Array) -> tuple[Integers, Array, Array, Array]:
        """Rows, signs, targets and weights of the 2n variables."""
        rows = (w > 0).nonzero()[0]
        signs = np.ones(2 * len(rows))
        signs[len(rows) :] = -1.0
        rows = np.concatenate([rows, rows])
        return rows, signs, y[rows], w[rows]


class SVR(MarginRegressor):
    """Regression that forgives errors up to ε and pays C for each unit beyond.

        min ½‖w‖² + Σ C_i max(0, |y_i - w·φ(x_i) - b| - ε)

    Attributes are those of `SVC`; `dual_coef_` holds β_i = α_i - α_i*, positive for rows above the tube.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import SVR
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    >>> model = SVR("Linear()", C=10.0, epsilon=0.1).fit(X, y)
    >>> # the slope is 0.9: the tube is used
    >>> model.predict([[1.0]]).round(6).tolist(), round(model.certificate_.primal, 6)
    ([1.0], 0.405)
    """

    parameters: ClassVar[Declarations] = {
        "fit_intercept": Switch(about="Learn b. Without it the dual has no equality constraint.")
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        strict: bool = False,
        solver: str = "auto",
        warm_start: bool = False,
        verbose: int = 0,
        callback: Tell | None = None,
        approximation: Approximation | None = None,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.approximation = approximation
        self.memory = memory
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require_box_only(self.fit_intercept)

    def _problems(self, y: Array, w: Array) -> list[BoxProblem]:
        rows, signs, t, w = self._twice(y, w)
        return [
            BoxProblem(rows, signs, self.epsilon - signs * t, self.C * w, equality=int(self.fit_intercept))
        ]


class NuSVR(MarginRegressor):
    """Regression whose tube is as wide as the data ask: at most a share ν of the rows lie outside it.

        min ½‖w‖² + C (ν n ε + Σ max(0, |y_i - w·φ(x_i) - b| - ε))      over w, b and ε

    `epsilon_` is the width found. At most ν·n rows are outside the tube and at least ν·n are support vectors.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import NuSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> model = NuSVR("Linear()", nu=0.5, C=10.0).fit(X, y)
    >>> bool(abs(model.predict([[1.5]])[0] - 1.5) < 1e-6), bool(model.epsilon_ < 1e-6)
    (True, True)
    """

    parameters: ClassVar[Declarations] = {"solver": ONLY_WORKING_SETS}

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        nu: float = 0.5,
        *,
        C: float = 1.0,
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        strict: bool = False,
        solver: str = "working-set",
        warm_start: bool = False,
        verbose: int = 0,
        callback: Tell | None = None,
        approximation: Approximation | None = None,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.C = C
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.solver = solver
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.approximation = approximation
        self.memory = memory
        self.n_jobs = n_jobs

    def _problems(self, y: Array, w: Array) -> list[BoxProblem]:
        rows, signs, t, w = self._twice(y, w)
        n = len(rows) // 2
        half = filled(self.C * w[:n], 0.5 * self.C * self.nu * float(w[:n].sum()))
        return [BoxProblem(rows, signs, -signs * t, self.C * w, equality=2, start=np.tile(half, 2))]

    def _bias(self, m: tuple[float, float]) -> float:
        return 0.5 * (m[0] - m[1])

    def _keep_tube(self, m: tuple[float, float]) -> None:
        self.epsilon_ = max(0.5 * (m[0] + m[1]), 0.0)

    def _multipliers(self, k: int, scale: float, K: GramOperator) -> tuple[float, float]:
        b = float(self.intercept_[k])
        return b + self.epsilon_, self.epsilon_ - b


def filled(C: Array, total: float) -> Array:
    """A feasible start: the first variables at their bound, until the sum is reached."""
    before = np.concatenate([[0.0], np.cumsum(C)[:-1]])
    return np.clip(total - before, 0.0, C)
