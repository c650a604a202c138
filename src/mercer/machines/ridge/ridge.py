"""Kernel ridge regression (M9): primal where the feature map is smaller than the data, dual otherwise."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.errors import ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.parts import Options
from mercer.machines.ridge.problem import SOLVERS
from mercer.machines.shared.parameters import TABLE, CheckedBy, Choice, Declarations, Number, Whole
from mercer.progress import teller
from mercer.typing import Array, Memory, Numbers, Seed, Table, Targets, Weights


class KernelRidge(MultiOutputMixin, RegressorMixin, RidgeMachine):
    """Least squares in feature space with a penalty on the length of the function.

        min  Σ_i w_i (y_i - f(x_i) - b)² + α‖f‖²,      f = Σ_j c_j k(x_j, ·),      (K + αW⁻¹) c = y - b

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    dual_coef_, intercept_ : c and b. `coef_`, `feature_map_` : β and φ, if solved in the primal.
        `landmarks_`,
    `landmark_coef_` : if solved by Nyström.
    solver_, certificate_ : which solver, and how good its answer is (residual, primal, dual, gap), recomputed
        from it.
    loo_predictions_, loo_error_, dof_ : leave-one-out in closed form and effective degrees of freedom, when
        asked for.
    kernel_, X_fit_, n_features_in_

    >>> from mercer import KernelRidge
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    >>> model = KernelRidge("Linear()", alpha=1.0).fit(X, y)
    >>> model.predict([[3.0]]), model.solver_                    # slope 5 / (5 + 1)
    (array([2.5]), 'primal')
    >>> model.loo_predictions_.round(6).tolist()      # x times the xy-sum of the others / (their x²-sum + 1)
    [0.0, 0.8, 1.0]
    >>> round(model.dof_, 6)
    0.833333
    """

    on_cluster = True
    sums_features = True

    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="Features Φ with ΦΦᵀ ≈ K in place of the kernel: (ΦᵀWΦ + α) β = ΦᵀW y, where they are "
            "fewer than the rows."
        ),
        "alpha": CheckedBy(
            by=lambda value: _check_alpha(value),
            type="float, or one for each target",
            about="The penalty α ≥ 0. With 0 the system may be singular; it is then refused with the rows at "
            "fault, never changed.",
        ),
        "solver": Choice(
            SOLVERS,
            about='"auto": primal where the kernel has fewer features than there are rows; Cholesky up to '
            '4000 rows; beyond, conjugate gradients ("cg") where the spectrum of a few rows says that they '
            'cost less, or the factor does not fit in `memory`. "nystrom" is an approximation and only '
            "taken when asked for; `certificate_` states its error.",
        ),
        "max_iter": Whole(
            1,
            none=True,
            about="Steps of conjugate gradients; the best answer so far is kept, with a warning. None for no "
            "limit.",
        ),
        "n_landmarks": Whole(
            1, none=True, about="Rows that a Nyström approximation is built on; None for 5√n, at least 100."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        alpha: Numbers = 1.0,
        *,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-10,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_landmarks: int | None = None,
        strict: bool = False,
        memory: Memory = "2GiB",
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_landmarks = n_landmarks
        self.strict = strict
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and numbers y, n or n × targets.

        A row of weight 2 counts twice, of weight 0 not at all.
        """
        self._check_parameters()
        problem, Y, kept = self._start(X, y, sample_weight)
        alphas = np.asarray(self.alpha, dtype=float)
        if alphas.ndim and alphas.shape != (Y.shape[1],):
            raise ShapeError(
                f"alpha has shape {alphas.shape}; give one number, or one for each of the {Y.shape[1]} "
                "targets."
            )
        self._solve(problem, Y, np.broadcast_to(alphas, Y.shape[1]), kept)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver == "nystrom" and self.approximation is not None:
            raise ParameterError(
                "solver='nystrom' is an approximation of the kernel itself; leave it out where "
                "approximation= is given."
            )

    def _options(self) -> Options:
        return Options(
            solver=self.solver,
            tol=float(self.tol),
            max_iter=self.max_iter,
            memory=self.memory,
            n_landmarks=self.n_landmarks,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            callback=teller(self.verbose, _say),
            keep_factor=self.__dict__.get("_keep_factor"),
        )

    def _separable(self, noise: Array) -> bool:
        return bool(noise.min() >= 0 and noise.min() + np.min(self.alpha) > 0)

    def fitted_alpha(self) -> Numbers:
        return self.alpha


def _check_alpha(value: Numbers) -> None:
    many = np.ndim(value) == 1 and np.size(value) > 0
    each = np.asarray(value, dtype=object) if many else [value]
    if not all(Number(closed_low=True).accepts(v) for v in each):
        raise ParameterError(f"alpha must be a finite number >= 0, or one for each target; got {value!r}.")


def _say(iteration: int, residual: float) -> str:
    return f"{iteration} iterations, residual {residual:.3g}"
