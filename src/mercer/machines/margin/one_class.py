"""One class: the smallest region that holds most of the data."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.problems import NU_OF_OUTLIERS, ONLY_WORKING_SETS, MarginMachine, fixed_unit
from mercer.machines.margin.svr import filled
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.parameters import Declarations
from mercer.progress import Tell
from mercer.solve.box import BoxProblem
from mercer.typing import Array, Memory, Table, Targets, Weights


class OneClassSVM(OutlierMixin, MarginMachine):
    """Novelty detection: the plane that leaves the origin furthest behind, a share ν of the rows forgiven.

        min ½‖w‖² - ρ ν n + Σ max(0, ρ - w·φ(x_i))

    At most ν·n rows are outliers (`predict` -1) and at least ν·n are support vectors. `offset_` is ρ, so that
    `decision_function` = `score_samples` - `offset_`.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import OneClassSVM
    >>> model = OneClassSVM("RBF(1.0)", nu=0.5).fit([[0.0], [0.1], [0.2], [0.3]])
    >>> model.predict([[0.15], [5.0]]).tolist()
    [1, -1]
    """

    parameters: ClassVar[Declarations] = {
        "nu": NU_OF_OUTLIERS,
        "solver": ONLY_WORKING_SETS,
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        nu: float = 0.5,
        *,
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

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Learn the region of the rows X; y is ignored."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        on, K = self._learn_from(A, w)
        problems = self._problems(None, w)
        solved = self._solve_all(K, problems)
        self._keep(on, A, problems, solved)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.offset_ = -self.intercept_
        return self

    _edge = "on the boundary"

    def _problems(self, y: None, w: Array) -> list[BoxProblem]:
        rows = np.flatnonzero(w > 0)
        w = w[rows]
        ones = np.ones(len(rows))
        start = filled(w, self.nu * float(w.sum()))
        return [BoxProblem(rows, ones, np.zeros(len(rows)), w, equality=1, start=start)]

    def _unit(self, K: GramOperator, problems: list[BoxProblem]) -> float:
        return fixed_unit(K, problems[0])

    def _targets_again(self, y: Targets, w: Array) -> tuple[None, Array]:
        return None, w

    def _values(self, X: Table) -> Array:
        """Rows on the boundary are there to rounding only; what is no more than that is 0, hence inside."""
        values = super()._values(X)
        return np.where(np.abs(values) <= 1e-11 * np.abs(self.intercept_), 0.0, values)

    def decision_function(self, X: Table) -> Array:
        """Positive inside the region, negative outside."""
        return self._values(X)[:, 0]

    def score_samples(self, X: Table) -> Array:
        """w·φ(x), without the offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Table) -> Array:
        """+1 inside, -1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
