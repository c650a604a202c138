"""What all ridge machines share: check, build the problem, solve, keep, predict, leave one out."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InputError, NotPositiveDefiniteError, PrecisionWarning, warn
from mercer.gram.functions import ByFeatures, Functions
from mercer.gram.on_rows import Evaluated, Given, KernelOnRows, feature_products
from mercer.kernels.base import Kernel
from mercer.kernels.things.sparse_map import SparseMap
from mercer.machines.ridge.parts import Options, RidgeFit, renumbered
from mercer.machines.ridge.problem import RidgeProblem
from mercer.machines.shared.base import check_weights, require_rows_of_fit
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import Declarations, Number, Switch
from mercer.machines.shared.targets import check_target_block
from mercer.solve.direct import Cholesky
from mercer.solve.left_out import Smoother
from mercer.solve.multipliers import Multipliers
from mercer.solve.solution import Certificate, Status, joined_certificate
from mercer.sparse import Matrix, dense
from mercer.threads import blas_for
from mercer.typing import Array, Index, Integers, Memory, Numbers, Seed, Table, Targets, Weights

# a relative residual above which rounding is warned of, and not only noted
WORTH_A_WORD = 1e-6


class LeaveOneOut(NamedTuple):
    """Predictions of each row by the model without it, the mean squared error of each target, and tr H."""

    predictions: Array
    error: Array
    dof: Array


class RidgeMachine(Machine):
    """What all ridge machines share: check, build the problem, solve, keep, predict."""

    fit_intercept: bool
    tol: float
    memory: Memory
    strict: bool
    n_jobs: int | None
    random_state: Seed
    _single: bool
    X_fit_: Matrix

    parameters: ClassVar[Declarations] = {
        "tol": Number(about="The relative residual of the linear system."),
        "fit_intercept": Switch(about="Add a constant b that is not penalised."),
    }

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _options(self) -> Options:
        raise NotImplementedError

    def _start(self, X: Table, y: Targets, sample_weight: Weights) -> tuple[RidgeProblem, Array, Integers]:
        """The problem on the rows of positive weight, their targets, and which rows they are."""
        A = self.check_rows(X, reset=True)
        n = A.shape[0]
        Y, self._single = check_target_block(y, n, type(self).__name__)
        w = check_weights(sample_weight, n)
        on = self._kernel_on(A, w)
        self.X_fit_ = on.matrix if isinstance(on, Given) else A
        self._weight = w
        self._targets = Y
        self.__dict__.pop("_left_out", None)
        problem = self._problem(self._options(), on)
        kept = np.flatnonzero(w > 0)
        self._notes = self._judged(on, rows=kept)
        return problem, Y[kept], kept

    def _problem(self, options: Options, on: KernelOnRows | None = None) -> RidgeProblem:
        """The problem on the rows of positive weight."""
        kept = np.flatnonzero(self._weight > 0)
        if on is None:
            on = self.again_on(self.X_fit_)
        if len(kept) < len(on):
            on = on.part(kept)
        problem = RidgeProblem(on, self._weight[kept], bool(self.fit_intercept), options)
        noise = problem.noise
        if noise is not None and isinstance(on, Evaluated) and not self._separable(noise):
            problem = dataclasses.replace(problem, separable=False)
        return problem

    invalid: ClassVar[Invalid] = Invalid(
        "The penalty is then no norm: the solution is a stationary point, and the gap is not a bound.",
        "the kernel is not positive semi-definite: a stationary point, not a proven optimum",
    )

    def _separable(self, noise: Array) -> bool:
        """Whether the noise of the kernel can stand where α stands; else it stays in the kernel."""
        raise NotImplementedError

    def _solve(self, problem: RidgeProblem, Y: Array, alphas: Array, kept: Integers) -> None:
        """Every group of targets that shares an α, then the model."""
        n = len(self._weight)
        t = Y.shape[1]
        c = np.zeros((n, t))
        b = np.zeros(t)
        coef: Array | None = None
        certificates = []
        shared = t == 1 or bool(np.all(alphas == alphas[0]))
        for alpha in alphas[:1] if shared else np.unique(alphas):
            mine: Index = slice(None) if shared else np.flatnonzero(alphas == alpha)
            try:
                self.solver_, fit = problem.solve(Y[:, mine], float(alpha))
            except NotPositiveDefiniteError as error:
                raise renumbered(error, kept, n) from error
            certificates.append(fit.certificate)
            if isinstance(mine, slice):
                c[kept] = fit.c
            else:
                c[np.ix_(kept, mine)] = fit.c
            b[mine] = fit.b
            if fit.coef is not None:
                coef = np.zeros((len(fit.coef), t)) if coef is None else coef
                coef[:, mine] = fit.coef
        self.dual_coef_ = c[:, 0] if self._single else c
        self.intercept_: Array | float = float(b[0]) if self._single else b
        self._keep_coordinates(problem, coef, kept)
        self.certificate_ = _joined(certificates, self._notes)
        self.n_iter_ = max(int(self.certificate_.iterations or 0), 1)
        self._report()

    def _keep_coordinates(self, problem: RidgeProblem, coef: Array | None, kept: Integers) -> None:
        """Primal: the weights of the features. Nyström: landmark rows and their coefficients."""
        for name in ("coef_", "feature_map_", "landmarks_", "landmark_coef_"):
            self.__dict__.pop(name, None)
        if self.is_approximated:
            self.feature_coef_ = self._beta(problem, coef, kept)
        if coef is None:
            return
        coef = coef[:, 0] if self._single else coef
        if self.solver_ == "primal":
            self.coef_ = coef
            if self.is_approximated:
                return
            assert isinstance(self.kernel_, Kernel)
            phi = problem.map()
            self.feature_map_ = phi.without_rows() if isinstance(phi, SparseMap) else phi
        else:
            self.landmarks_ = kept[problem.chosen_landmarks]
            self.landmark_coef_ = coef

    def map_again(self) -> None:
        """Make `feature_map_` anew from the rows of fit: for a model from a file, which leaves it out."""
        phi = self._problem(self._options()).map()
        if not isinstance(phi, SparseMap) or phi.dimension != len(self.coef_):
            raise InputError(f"{len(self.coef_)} weights are not those of the features of these rows.")
        self.feature_map_ = phi.without_rows()

    def _beta(self, problem: RidgeProblem, coef: Array | None, kept: Integers) -> Array:
        """The weights of the features that stand for the kernel: those of the primal, or Φᵀc."""
        assert problem.approximated is not None
        if coef is None:
            return problem.approximated.weights(self.dual_coef_[kept])
        return coef[:, 0] if self._single else coef

    def _report(self) -> None:
        """Say it when the tolerance was not met."""
        c = self.certificate_
        if c.status in (Status.LIMIT, Status.FAILED):
            warn(
                f"stopped before tol={self.tol:g} was met ({c}). Raise max_iter, max_seconds or alpha, or "
                "use solver='cholesky'.",
                ConvergenceWarning,
            )
        elif c.status == Status.STAGNATED and (c.residual or 0.0) > WORTH_A_WORD:
            warn(
                f"the system is ill-conditioned: the residual is {c.residual:.1e} of the targets and "
                f"rounding allows no less ({c}). Raise alpha, or remove rows that are nearly equal.",
                PrecisionWarning,
            )

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Table) -> Array:
        """f(x) + b for new rows: Σ c_j k(x_j, x) by a Gram operator in blocks, or φ(x)·β."""
        self.require_fit("dual_coef_")
        A = self.check_rows(X, reset=False)
        return np.asarray(self._function(A) + self.intercept_)

    def _function(self, A: Matrix) -> Array:
        if self.solver_ == "primal" and not self.is_approximated:
            return feature_products(self.feature_map_, self.as_rows(A), self.coef_)
        chosen, coef = self._expansion()
        return self._products(A, self._rows_of_fit(chosen), coef, chosen)

    def _expansion(self) -> tuple[Integers, Array]:
        """Places among the rows of fit, and their coefficients: all of them, or the landmarks."""
        if self.solver_ == "nystrom":
            return self.landmarks_, self.landmark_coef_
        return np.arange(len(self._weight)), self.dual_coef_

    def _rows_of_fit(self, chosen: Integers) -> Matrix:
        return self.X_fit_ if len(chosen) == len(self._weight) else self.X_fit_[chosen]

    def _functions(self) -> Functions:
        check_is_fitted(self, "dual_coef_")
        if self.solver_ == "primal" and not self.is_approximated:
            assert isinstance(self.kernel_, Kernel)
            phi = self.feature_map_
            weights = np.atleast_2d(self.coef_.T)
            offset = np.broadcast_to(np.asarray(self.intercept_, dtype=float), len(weights)).copy()
            return ByFeatures(
                map=lambda A: dense(phi(self.as_rows(A))),
                weights=weights,
                offset=offset,
                named=phi if isinstance(phi, SparseMap) else None,
                kernel=self.kernel_,
            )
        chosen, coef = self._expansion()
        facts = {"observed": False, **self._function_facts()}
        return self._functions_on(self._rows_of_fit(chosen), coef, self.intercept_, chosen, **facts)

    # ── leave one out ───────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _left_out(self) -> LeaveOneOut:
        """Computed when it is first asked for: one factorisation for each α."""
        check_is_fitted(self, "dual_coef_")
        kept = np.flatnonzero(self._weight > 0)
        Y = self._targets
        problem = self.problem_of_fit()
        c = self.dual_coef_.reshape(Y.shape)
        errors = np.empty((problem.n, Y.shape[1]))
        dof = np.empty(Y.shape[1])
        alphas = np.broadcast_to(np.asarray(self.fitted_alpha(), dtype=float), Y.shape[1])
        for alpha in np.unique(alphas):
            mine = np.flatnonzero(alphas == alpha)
            fit = RidgeFit(c[np.ix_(kept, mine)], np.zeros(len(mine)), self.certificate_)
            errors[:, mine], dof[mine] = problem.leave_one_out(
                self.solver_, fit, Y[np.ix_(kept, mine)], float(alpha)
            )
        predictions = np.empty_like(Y)
        predictions[kept] = Y[kept] - errors
        absent = np.flatnonzero(self._weight == 0)
        # the model never saw them
        if len(absent):
            rows = self.X_fit_[absent]
            predictions[absent] = (self._function(rows) + self.intercept_).reshape(len(absent), -1)
        w = self._weight[kept]
        return LeaveOneOut(predictions, (w @ errors**2) / w.sum(), dof)

    def fitted_alpha(self) -> Numbers:
        raise NotImplementedError

    def problem_of_fit(self) -> RidgeProblem:
        """The problem that was solved, on the rows of positive weight, with the landmarks that were drawn."""
        problem = self._problem(dataclasses.replace(self._options(), solver=self.solver_))
        if self.solver_ != "nystrom":
            return problem
        kept = np.flatnonzero(self._weight > 0)
        return dataclasses.replace(problem, known_landmarks=np.searchsorted(kept, self.landmarks_))

    def targets_of_fit(self) -> Array:
        """The targets of the fit, n × targets."""
        return self._targets

    def weights_of_fit(self) -> Array:
        """The weights of the rows of the fit."""
        return self._weight

    def smoother(self, diagonal: Array | None = None) -> Smoother:
        """The fit as a smoother: its predictions without each row, and with one more (`solve.left_out`).

        `diagonal` is that of its inverse, where it is known.
        """
        from mercer.machines.ridge.smoother import ridge_smoother

        check_is_fitted(self, "dual_coef_")
        return ridge_smoother(self, diagonal=diagonal)

    def fit_smoother(self, X: Table, y: Targets, sample_weight: Weights = None) -> Smoother:
        """Fit, and the fit as a smoother: one factorisation serves both where the fit has made one."""
        from mercer.machines.ridge.smoother import ridge_smoother

        kept: list[Cholesky] = []
        self.__dict__["_keep_factor"] = kept.append
        try:
            self.fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_keep_factor")
        with blas_for(len(self._weight)):
            return ridge_smoother(self, kept[-1] if kept else None)

    # ── theory ──────────────────────────────────────────────────────────────────────────────────────────────

    def check_again(self, X: Table, y: Targets, sample_weight: Weights) -> tuple[Matrix, Array, Array]:
        """Data and targets checked against the fitted model, for `mercer.verify`."""
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        require_rows_of_fit(A.shape[0], len(self._weight))
        Y = self._read_targets(y, A.shape[0])
        return A, Y, check_weights(sample_weight, A.shape[0])

    def _read_targets(self, y: Targets, n: int) -> Array:
        """Targets that were passed once more, as the fit took them."""
        return check_target_block(y, n, type(self).__name__)[0]

    def _function_facts(self) -> dict[str, Any]:
        """What else is to be said of the functions: the classes that they tell apart."""
        return {}

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        from mercer.machines.ridge.verify import name_multipliers

        return name_multipliers(self, *self.check_again(X, y, sample_weight))

    @property
    def loo_predictions_(self) -> Array:
        """For each row the prediction of the model fitted without it, in closed form.

        y_i - c_i / (A⁻¹)_ii with A = K + αW⁻¹, bordered by ones where there is an intercept; NaN where no
        model is left.
        """
        found = self._left_out.predictions
        return found[:, 0] if self._single else found

    @property
    def loo_error_(self) -> Array | float:
        """The mean squared error of `loo_predictions_`, rows counted by weight; one for each target."""
        found = self._left_out.error
        return float(found[0]) if self._single else found

    @property
    def dof_(self) -> Array | float:
        """Effective degrees of freedom tr H, with H the matrix that makes fitted values of targets."""
        found = self._left_out.dof
        return float(found[0]) if self._single or np.ptp(found) == 0 else found

    def __getstate__(self) -> dict[str, object]:
        state = dict(super().__getstate__())
        state.pop("_left_out", None)
        return state


def _joined(parts: list[Certificate], notes: tuple[str, ...]) -> Certificate:
    """One certificate for all targets: the worst status and residual, the sum of the rest."""
    if len(parts) == 1:
        only = parts[0]
        return dataclasses.replace(only, notes=(*notes, *only.notes)) if notes else only
    whole = joined_certificate(parts)
    worst = max((c for c in parts if c.status == whole.status), key=lambda c: c.residual or 0.0)
    return dataclasses.replace(
        whole,
        method=worst.method,
        worst_row=worst.worst_row,
        residual=max((part.residual or 0.0) for part in parts),
        residuals=tuple(r for part in parts for r in part.residuals or ()),
        notes=(*notes, *whole.notes),
    )
