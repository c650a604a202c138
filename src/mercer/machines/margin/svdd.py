"""Support vector data description: the smallest ball that holds most of the data (Tax and Duin)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Given
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.problems import NU_OF_OUTLIERS, ONLY_WORKING_SETS, MarginMachine
from mercer.machines.margin.svr import filled
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.parameters import Declarations
from mercer.progress import Tell
from mercer.solve.box import BoxProblem
from mercer.sparse import Matrix
from mercer.typing import Array, Memory, Table, Targets, Weights


class SVDD(OutlierMixin, MarginMachine):
    """Novelty detection by the smallest ball, a share ν of the rows left outside.

        min N R² + Σ max(0, ‖φ(x_i) - a‖² - R²)   over a and R,      N = ν n
        a = Σ α_i φ(x_i) / N,      0 ≤ α ≤ 1,  Σα = N

    `decision_function` is R² - ‖φ(x) - a‖², positive inside. For a kernel with k(x, x) constant the rows
    inside are those of `OneClassSVM`, and N/2 times the decision is its decision; for others, such as
    Linear(), the ball stays a ball. The dual is solved times N/2, as ½ αᵀKα - (N/2) Σ α_i k(x_i, x_i), and
    the certificate is that of this problem.

    With kernel="precomputed", k(x, x) of new points is not known: only a Gram matrix of constant diagonal
    can be used (or an approximation, whose features have a length).

    Attributes are those of `OneClassSVM`, and `radius_` (R), `center_norm_` (‖a‖). `dual_coef_` has 2 α_i /
    N, so that the decision is K(X, support_vectors_) @ dual_coef_.T + intercept_ - k(x, x).

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import SVDD
    >>> model = SVDD("Linear()", nu=0.2).fit([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])
    >>> # the circle through the corners
    >>> round(model.radius_**2, 6), model.predict([[1.0, 2.0], [4.0, 4.0]]).tolist()
    (2.0, [1, -1])
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
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
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
        self.memory = memory
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Learn the ball of the rows X; y is ignored."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        on, K = self._learn_from(A, w)
        own = np.asarray(K.diag(), dtype=float)
        if isinstance(on, Given) and np.ptp(own[w > 0]) > 1e-9 * np.abs(own).max():
            raise ParameterError(
                f"the diagonal of the precomputed Gram matrix runs from {own.min():.6g} to {own.max():.6g}, "
                "so k(x, x) of new points cannot be known. Pass the kernel itself, or normalise the matrix "
                "to a diagonal of 1."
            )
        problems = self._problems(own, w)
        solved = self._solve_all(K, problems)
        self._own = float(own[w > 0][0])
        self._keep(on, A, problems, solved)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.center_norm_ = 0.5 * float(self.norms_[0])
        self.radius_ = float(np.sqrt(max(self.intercept_[0] + self.center_norm_**2, 0.0)))
        self.offset_ = -self.intercept_
        return self

    _edge = "on the boundary"

    def _problems(self, y: Array, w: Array) -> list[BoxProblem]:
        """y holds k(x_i, x_i)."""
        rows = np.flatnonzero(w > 0)
        w = w[rows]
        total = self.nu * float(w.sum())
        return [
            BoxProblem(
                rows, np.ones(len(rows)), -0.5 * total * y[rows], w, equality=1, start=filled(w, total)
            )
        ]

    def _scale(self, problem: BoxProblem, m: tuple[float, float]) -> float:
        return 0.5 * float(problem.start.sum())

    def _scale_of(self, k: int, problem: BoxProblem) -> float:
        return 0.5 * float(problem.start.sum())

    def check_again(self, X: Table, y: Targets, sample_weight: Weights) -> tuple[Matrix, Array, Array]:
        A, _, w = super().check_again(X, y, sample_weight)
        return A, np.asarray(self.again_on(A).gram().diag(), dtype=float), w

    def _targets_again(self, y: Targets, w: Array) -> tuple[None, Array]:
        return None, w

    def _functions(self) -> Functions:
        """⟨a, ·⟩: the centre of the ball."""
        check_is_fitted(self, "dual_coef_")
        return self._functions_on(
            self.support_vectors_,
            self.dual_coef_.T,
            0.0,
            self.support_,
            scale=0.5,
            known_norms=0.5 * self.norms_,
            what="⟨a, ·⟩, the centre of the ball",
        )

    def _own_products(self, X: Table) -> Array | float:
        """k(x, x) of new points, as points that are not among those of fit."""
        on = self._fitted_on(self.support_vectors_, self.support_)
        if isinstance(on, Given):
            return self._own
        return on.diagonal(self.check_rows(X, reset=False))

    def decision_function(self, X: Table) -> Array:
        """R² - ‖φ(x) - a‖²: positive inside, negative outside; what is no more than rounding is 0."""
        check_is_fitted(self, "dual_coef_")
        own = self._own_products(X)
        values = self._values(X)[:, 0] - own
        return np.where(np.abs(values) <= 1e-11 * (np.abs(own) + np.abs(self.intercept_[0])), 0.0, values)

    def score_samples(self, X: Table) -> Array:
        """The decision without R²: -‖φ(x) - a‖² up to the constant ‖a‖²."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Table) -> Array:
        """+1 inside, -1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
