"""Kernel ridge regression that chooses its own penalty, the whole path from one eigendecomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.errors import InputError, MemoryBudgetError, ParameterError
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.parts import Options
from mercer.machines.ridge.problem import RidgeProblem
from mercer.machines.shared.parameters import TABLE, CheckedBy, Choice, Declarations, Number, Special, Switch
from mercer.memory import memory_limit, say_bytes
from mercer.solve.path import PathPoint, RidgePath
from mercer.typing import Array, Index, Integers, Memory, Numbers, Seed, Setting, Table, Targets, Weights

CRITERIA = ("loo", "gcv")
GRID = np.logspace(-6, 3, 19)
# n×n arrays alive at one time during the eigendecomposition
EIGEN_ARRAYS = 4


def _check_alphas(values: Sequence[float]) -> None:
    if np.ndim(values) != 1 or len(values) == 0 or not all(Number().accepts(v) for v in values):
        raise ParameterError(f"alphas must be a list of finite numbers > 0, at least one; got {values!r}.")


class KernelRidgeCV(MultiOutputMixin, RegressorMixin, RidgeMachine):
    """Kernel ridge with α chosen among `alphas` by the error on rows that the model has not seen.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    alpha_, best_error_ : the choice and its mean squared error.
    alphas_, loo_errors_, gcv_errors_, dof_path_ : the path: alphas × targets (× nothing, for one target).
    cv_errors_ : the same on folds, where `cv` was given.
    All attributes of `KernelRidge`, from a final fit with its own certificate.

    >>> from mercer import KernelRidgeCV
    >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
    >>> model = KernelRidgeCV("RBF(1.0)", alphas=[1e-4, 1.0, 100.0]).fit(X, np.sin(X[:, 0]))
    >>> model.alpha_, model.dof_path_.round(2).tolist()
    (0.0001, [11.75, 4.55, 0.28])
    """

    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="Features in place of the kernel, learned once, from all rows."
        ),
        "alphas": CheckedBy(
            by=_check_alphas,
            none=True,
            type="numbers > 0, or None",
            about="The penalties to choose from; None for 19 values from 10⁻⁶ to 10³ times the mean of k(x, "
            "x).",
        ),
        "criterion": Choice(
            CRITERIA,
            about="Leave-one-out in closed form, or generalised cross-validation, which puts the mean "
            "leverage in place of each.",
        ),
        "cv": Special(
            type="int, splitter, iterable of splits or None",
            about="Where given, the error on folds decides instead; one eigendecomposition for each fold.",
            reason="scikit-learn checks it, with y",
        ),
        "alpha_per_target": Switch(about="A best α for each target, or one for all (their errors summed)."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        alphas: Sequence[float] | None = None,
        *,
        fit_intercept: bool = False,
        criterion: str = "loo",
        cv: Setting = None,
        alpha_per_target: bool = False,
        tol: float = 1e-10,
        strict: bool = False,
        memory: Memory = "2GiB",
        random_state: Seed = None,
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.criterion = criterion
        self.cv = cv
        self.alpha_per_target = alpha_per_target
        self.tol = tol
        self.strict = strict
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """The path, the best α on it, and the model for that α."""
        self._check_parameters()
        problem, Y, kept = self._start(X, y, sample_weight)
        level = 0.0 if problem.noise is None else float(problem.noise[0])
        source = self._source(problem)
        path = source.path(problem, Y)
        self.alphas_ = self._grid(problem)
        points = (path.at(alpha + level) for alpha in self.alphas_)
        loo, gcv, dof = zip(*(_judged(point, problem.weight) for point in points), strict=True)
        errors = {"loo": np.array(loo), "gcv": np.array(gcv)}
        self.dof_path_ = np.array(dof)
        decisive = errors[self.criterion]
        self.__dict__.pop("cv_errors_", None)
        if self.cv is not None:
            decisive = self._on_folds(problem, Y, source, level, kept)
            self.cv_errors_ = self._shaped(decisive)
        self.loo_errors_ = self._shaped(errors["loo"])
        self.gcv_errors_ = self._shaped(errors["gcv"])
        best = self._choose(decisive)
        if np.isin(best, [0, len(self.alphas_) - 1]).any() and len(self.alphas_) > 2:
            self._notes = (*self._notes, "The best alpha is at the end of the grid: widen it.")
        chosen = self.alphas_[best]
        self.alpha_: Array | float = float(chosen.flat[0])
        if self.alpha_per_target and not self._single:
            self.alpha_ = chosen
        self._solve(problem, Y, np.broadcast_to(chosen, Y.shape[1]), kept)
        return self

    # ── the path ────────────────────────────────────────────────────────────────────────────────────────────

    def _source(self, problem: RidgeProblem) -> _Features | _Matrix:
        """What all paths are decomposed from: features where they are few, else the dense K."""
        count = problem.dimension()
        if count < problem.n and 4 * 8 * problem.n * count <= memory_limit(self.memory):
            return _Features(np.vstack([P for _, P in problem.explicit().blocks()]))
        needed = EIGEN_ARRAYS * 8 * problem.n**2
        if needed > memory_limit(self.memory):
            raise MemoryBudgetError(
                f"the eigendecomposition of {problem.n} rows needs {say_bytes(needed)}; the limit is "
                f"{say_bytes(memory_limit(self.memory))}. Raise memory=, or choose alpha by GridSearchCV "
                "over KernelRidge."
            )
        return _Matrix(problem.operator(stored=True).dense())

    def _grid(self, problem: RidgeProblem) -> Array:
        if self.alphas is not None:
            return np.array(self.alphas, dtype=float)
        size = float(problem.operator(stored=False).diag().mean())
        return GRID * (size if size > 0 else 1.0)

    def _on_folds(
        self,
        problem: RidgeProblem,
        Y: Array,
        source: _Features | _Matrix,
        level: float,
        kept: Integers,
    ) -> Array:
        """The squared error on rows held out in turn, alphas × targets, rows counted by weight."""
        w = problem.weight
        total = np.zeros((len(self.alphas_), Y.shape[1]))
        seen = 0.0
        place = np.full(len(self._weight), -1)
        place[kept] = np.arange(len(kept))
        for fold in self._folds():
            train, test = (part[part >= 0] for part in (place[rows] for rows in fold))
            # nothing but rows of weight 0
            if not len(train) or not len(test):
                continue
            path = source.path(problem, Y, train)
            for i, alpha in enumerate(self.alphas_):
                predicted = source.predict(path.at(alpha + level), train, test)
                total[i] += w[test] @ (Y[test] - predicted) ** 2
            seen += float(w[test].sum())
        if seen == 0:
            raise InputError("no fold of cv has rows of positive weight on both sides. Choose other folds.")
        return total / seen

    def _folds(self) -> list[tuple[Integers, Integers]]:
        """The rows to learn from and to judge by, in turn."""
        # Here, because it brings all of scikit-learn's metrics, which few fits need.
        from sklearn.model_selection import check_cv

        try:
            return list(check_cv(self.cv).split(self.X_fit_, self._targets))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"cv={self.cv!r} gives no folds of these rows: {error}") from error

    def _choose(self, errors: Array) -> Integers:
        """Where the error is least: one place, or one for each target."""
        finite = np.where(np.isfinite(errors), errors, np.inf)
        total = finite if self.alpha_per_target else finite.sum(axis=1, keepdims=True)
        best: Integers = np.argmin(total, axis=0)
        self.best_error_: Array | float = self._shaped(errors[best, np.arange(errors.shape[1])][None])[0]
        return best

    def _shaped(self, errors: Array) -> Array:
        return errors[:, 0] if self._single else errors

    # ── parameters ──────────────────────────────────────────────────────────────────────────────────────────

    def _options(self) -> Options:
        return Options(
            tol=float(self.tol),
            memory=self.memory,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            keep_factor=self.__dict__.get("_keep_factor"),
        )

    def _separable(self, noise: Array) -> bool:
        """Uneven noise leaves no common eigenvectors."""
        return bool(noise.min() >= 0 and np.ptp(noise) == 0)

    def fitted_alpha(self) -> Numbers:
        return self.alpha_


class _Features(NamedTuple):
    """Features of all rows: paths and predictions never leave them, so a large offset costs no digits."""

    Phi: Array

    def path(self, problem: RidgeProblem, Y: Array, rows: Index = slice(None)) -> RidgePath:
        return RidgePath.of_features(
            self.Phi[rows], problem.weight[rows], Y[rows], intercept=problem.intercept
        )

    def predict(self, point: PathPoint, train: Integers, test: Integers) -> Array:
        assert point.coef is not None
        return self.Phi[test] @ point.coef + point.b


class _Matrix(NamedTuple):
    """The Gram matrix of all rows."""

    K: Array

    def path(self, problem: RidgeProblem, Y: Array, rows: Integers | None = None) -> RidgePath:
        if rows is None:
            return RidgePath.of_matrix(self.K, problem.weight, Y, intercept=problem.intercept)
        K = self.K[np.ix_(rows, rows)]
        return RidgePath.of_matrix(K, problem.weight[rows], Y[rows], intercept=problem.intercept)

    def predict(self, point: PathPoint, train: Integers, test: Integers) -> Array:
        return self.K[np.ix_(test, train)] @ point.c + point.b


def _judged(point: PathPoint, w: Array) -> tuple[Array, Array, float]:
    """Mean squared leave-one-out error, generalised cross-validation and degrees of freedom at one α."""
    rows = float(w.sum())
    share = 1.0 - point.dof / rows
    fit = (w @ point.errors**2) / rows
    gcv = fit / share**2 if share > 1e-13 else np.full_like(fit, np.nan)
    return (w @ point.loo_errors**2) / rows, gcv, point.dof
