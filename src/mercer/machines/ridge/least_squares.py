"""Kernel least squares by gradient descent (M8): the number of steps is the regularisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.errors import InputError, ParameterError, warn
from mercer.gram import GramOperator, Precomputed, Weighted
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Declarations, Number, Switch, Whole, steps_allowed
from mercer.machines.shared.targets import check_target_block
from mercer.progress import say
from mercer.solve.anytime import Anytime
from mercer.solve.eigen import top_eigenpairs
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Memory, Seed, Table, Targets, Weights

# how far the error may rise above its start before descent is called ascent
GROWTH = 1e3


@dataclass(frozen=True, eq=False)
class DescentPath:
    """The errors along the way: mean squares on the rows learned from and on those held out, step by step."""

    iterations: Integers
    train_errors: Array
    validation_errors: Array | None
    best: int


class KernelLeastSquares(MultiOutputMixin, RegressorMixin, Machine):
    """Least squares in feature space by gradient descent from 0, as it follows from w ← w - s ∇Σ(w·φ - y)².

        α ← α - 2 s (K α - y),      f = Σ_i α_i k(x_i, ·)

    After t steps α = (I - (I - 2sK)ᵗ) K⁻¹ y: directions of large eigenvalue are learned first, so that
    stopping early is a penalty. Descent needs 0 < s < 1/λ, with λ the largest eigenvalue of K; a larger step
    is refused.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    dual_coef_ : α, zero for rows held out. n_iter_ : the steps that α has taken. step_, largest_eigenvalue_.
    path_ : the errors of every step (`mercer.plot.path` draws them). validation_rows_ : which rows were held
        out.
    certificate_, kernel_, X_fit_, n_features_in_

    >>> from mercer import KernelLeastSquares
    >>> model = KernelLeastSquares("Linear()", step=0.1, max_iter=2, tol=0.0).fit([[1.0], [2.0]], [1.0, 2.0])
    >>> model.dual_coef_               # first 0.2·y; then 0.2·y - 0.2·(K(0.2·y) - y) with K(0.2·y) = y
    array([0.2, 0.4])
    """

    X_fit_: Matrix
    invalid: ClassVar[Invalid] = Invalid(
        "Along a negative eigenvalue the error grows instead of falling.",
        "the kernel is not positive semi-definite: some part of the error grows with every step",
    )
    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="Features in place of the kernel, of the rows learned from."
        ),
        "step": Number(
            also=("auto",),
            about='s; "auto" is 1 / (2λ), with which every step lowers every part of the error.',
        ),
        "max_iter": Whole(1, none=True, about="At most so many steps; None for no limit."),
        "tol": Number(closed_low=True, about="Stop when ‖Kα - y‖ ≤ tol ‖y‖; 0 for all steps."),
        "early_stopping": Switch(
            about="Hold out a part of the rows and keep the α with the least error on it."
        ),
        "validation_fraction": Number(0.0, 1.0, about="The share of rows held out."),
        "patience": Whole(1, about="How many steps may pass without a better α."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        step: float | str = "auto",
        max_iter: int | None = 1000,
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        patience: int = 20,
        max_seconds: float | None = None,
        memory: Memory = "2GiB",
        strict: bool = False,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_seconds = max_seconds
        self.memory = memory
        self.strict = strict
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.approximation = approximation

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Descend from 0; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        n = A.shape[0]
        Y, single = check_target_block(y, n, type(self).__name__)
        w = check_weights(sample_weight, n)
        train, held = self._split(np.flatnonzero(w > 0))
        learned = np.zeros(n)
        learned[train] = w[train]
        # Open lengthscales are closed by all rows, an approximation learns from those that are not held out.
        on = self._kernel_on(A, w, learned)
        A = on.matrix if isinstance(on, Given) else A
        among = on.part(train)
        K = among.gram()
        notes = self._judged(among, K)
        self._set_step(K, w[train])
        across: GramOperator | None = None
        if held is not None:
            across = _between(on, A, held, train)
        alpha, status, seconds = self._descend(K, across, Y, w, train, held)
        coef = np.zeros_like(Y)
        coef[train] = alpha
        self.dual_coef_ = coef[:, 0] if single else coef
        self.X_fit_ = A
        self._used = train
        self._keep_feature_coef(among, self.dual_coef_[train])
        self.validation_rows_ = np.empty(0, dtype=int) if held is None else held
        self._certify(K, alpha, Y[train], w[train], status, seconds, notes)
        return self

    def _split(self, rows: Integers) -> tuple[Integers, Integers | None]:
        """The rows to learn from, and those held out if there are any."""
        if not self.early_stopping:
            return rows, None
        count = max(1, round(self.validation_fraction * len(rows)))
        if count >= len(rows):
            raise InputError(
                f"early_stopping would hold out {count} of {len(rows)} rows and leave none to learn from. "
                "Pass more rows, or early_stopping=False."
            )
        order = np.random.default_rng(self.random_state).permutation(rows)
        return np.sort(order[count:]), np.sort(order[:count])

    def _set_step(self, K: GramOperator, w: Array) -> None:
        """The step, and a refusal of one with which descent cannot converge."""
        op = K if np.all(w == 1.0) else Weighted(K, np.sqrt(w))
        found = top_eigenpairs(op, 1, tol=1e-6, random_state=0)
        top = self.largest_eigenvalue_ = float(found.value.values[0])
        if isinstance(self.step, str):
            self.step_ = 0.5 / top if top > 0 else 0.5
            return
        self.step_ = float(self.step)
        if top > 0 and self.step_ >= 1.0 / top:
            raise ParameterError(
                f"step = {self.step_:g} is too large: the largest eigenvalue of the Gram matrix is "
                f"{top:.6g}, and descent needs a step below its inverse, {1.0 / top:.6g}. Take half of that, "
                "or step='auto'."
            )

    def _descend(
        self,
        K: GramOperator,
        across: GramOperator | None,
        Y: Array,
        w: Array,
        train: Integers,
        held: Integers | None,
    ) -> tuple[Array, Status, float]:
        """α, why it stopped, and the seconds; the path is kept on the way."""
        target = Y[train]
        weight = w[train, None]
        alpha = np.zeros_like(target)
        size = float(np.linalg.norm(np.sqrt(weight) * target)) or 1.0
        total = float(weight.sum())
        train_errors: list[float] = []
        held_errors: list[float] = []
        best = 0
        least = np.inf
        with Anytime[Array](best=alpha) as run:
            most = steps_allowed(self.max_iter)
            for t in range(most + 1):
                began = clock.now()
                rest = np.asarray(K @ alpha) - target
                error = float((weight * rest**2).sum())
                train_errors.append(error / total)
                if across is not None and held is not None:
                    held_errors.append(_mean_square(across, alpha, Y[held], w[held, None]))
                now = held_errors[-1] if held_errors else train_errors[-1]
                if now < least or not held_errors:
                    best = t
                    run.best = alpha
                    least = min(now, least)
                self._tell(t, train_errors, held_errors)
                if np.sqrt(error) <= self.tol * size or (held_errors and t - best >= self.patience):
                    run.status = Status.CONVERGED
                    break
                if not error <= GROWTH * size**2:
                    run.status = Status.FAILED
                    break
                if clock.short_of(clock.now() - began):
                    break
                if t < most:
                    alpha = alpha - 2.0 * self.step_ * weight * rest
        self.n_iter_ = best
        self.path_ = DescentPath(
            np.arange(len(train_errors)),
            np.array(train_errors),
            np.array(held_errors) if held_errors else None,
            best,
        )
        assert run.best is not None
        return run.best, run.status, run.seconds

    def _tell(self, t: int, train: list[float], held: list[float]) -> None:
        if self.verbose and t % 10 == 0:
            beside = f", held out {held[-1]:.6g}" if held else ""
            say(f"step {t}: mean squared error {train[-1]:.6g}{beside}")

    def _certify(
        self,
        K: GramOperator,
        alpha: Array,
        Y: Array,
        w: Array,
        status: Status,
        seconds: float,
        notes: tuple[str, ...],
    ) -> None:
        root = np.sqrt(w)[:, None]
        rest = root * (np.asarray(K @ alpha) - Y)
        residual = float(np.linalg.norm(rest)) / (float(np.linalg.norm(root * Y)) or 1.0)
        notes = (*notes, f"step {self.step_:.6g}, largest eigenvalue {self.largest_eigenvalue_:.6g}")
        if self.path_.validation_errors is not None:
            held = len(self.validation_rows_)
            said = f"stopped early: step {self.n_iter_} has the least error on {held} rows held out"
            notes = (*notes, said)
        self.certificate_ = Certificate(
            status,
            "gradient descent",
            iterations=self.n_iter_,
            seconds=seconds,
            primal=float((rest**2).sum()),
            residual=residual,
            worst_row=int(self._used[np.argmax(np.abs(rest).max(axis=1))]),
            added_diagonal=0.0,
            notes=notes,
        )
        if status == Status.FAILED or (status == Status.LIMIT and self.tol > 0):
            advice = (
                "Raise max_iter or tol, stop early on held-out rows (early_stopping=True), or set tol=0 if "
                "the steps are meant."
            )
            if status == Status.FAILED:
                advice = "The error grew: take a smaller step, or a kernel that is valid."
            warn(
                f"stopped before tol={self.tol:g} was met ({self.certificate_}). {advice}",
                ConvergenceWarning,
            )

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Table) -> Array:
        """Σ α_i k(x_i, x)."""
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        return self._products(A, self.X_fit_[self._used], self.dual_coef_[self._used], self._used)

    def _functions(self) -> Functions:
        check_is_fitted(self, "dual_coef_")
        coef = self.dual_coef_[self._used]
        return self._functions_on(self.X_fit_[self._used], coef, 0.0, self._used, observed=False)


def _mean_square(across: GramOperator, alpha: Array, Y: Array, w: Array) -> float:
    return float((w * (np.asarray(across @ alpha) - Y) ** 2).sum() / w.sum())


def _between(on: KernelOnRows, A: Matrix, held: Integers, train: Integers) -> GramOperator:
    """Products of the rows held out with those learned from."""
    if isinstance(on, Given):
        return Precomputed(A[np.ix_(held, train)])
    return on.part(train).between(A[held])
