"""The Adatron: stepwise ascent of the dual of the optimal hyperplane (S1, section 5.1)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError, warn
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.one_by_one import Expansion, Row, row_of
from mercer.machines.shared.base import require_rows_of_fit
from mercer.machines.shared.parameters import HARD_OR_SOFT, Declarations, Number, Special, steps_allowed
from mercer.params import is_real
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxProblem
from mercer.solve.multipliers import Multipliers, of_box
from mercer.solve.solution import Status
from mercer.typing import Array, Integers, Table, Targets, Weights


class Adatron(Expansion):
    """The adaptive perceptron: one example at a time, towards the plane of largest margin through the origin.

        α_n ← α_n + max(-α_n, η(1 - h_n)),      h_n = y_n Σ_m y_m α_m k(x_m, x_n)

    Every step raises the dual Q(α) = Σα - ½ΣΣ y y α α k while η < 2 / max k(x, x), so a larger `step` is
    refused (the theorem of the source forgets the square of the norm: k(x, x) = ‖φ(x)‖²). C < inf bounds α,
    the soft margin.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    dual_ : Q after each pass, never falling (but for rounding). certificate_, alpha_ (≥ 0), dual_coef_ (y
        α), support_, step_.

    >>> from mercer import Adatron
    >>> model = Adatron("Linear()", tol=1e-9).fit([[-1.0], [1.0], [3.0]], [0, 1, 1])
    >>> (model.dual_coef_ @ model.support_vectors_).round(6).item()
    1.0
    >>> bool(np.all(np.diff(model.dual_) > -1e-12))
    True
    """

    average = "last"
    fit_intercept = False
    parameters: ClassVar[Declarations] = {
        "C": HARD_OR_SOFT,
        "tol": Number(about="Stop when no α would move h by more than this from its condition."),
        "step": Special(
            type='float or "auto"',
            about='η; "auto" is 1 / max k(x, x), the best one for each coordinate of a normalised kernel.',
            reason="its largest value depends on the Gram matrix",
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        C: float = np.inf,
        *,
        step: float | str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = 10_000,
        approximation: Approximation | None = None,
        strict: bool = False,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.approximation = approximation
        self.strict = strict

    def fit(self, X: Table, y: Targets) -> Self:
        """Present the examples one by one, in order, until a whole pass changes nothing."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        y = self._signs(y, A.shape[0])
        on, K = self._learn_from(A)
        row = row_of(K)
        eta = self.step_ = self._checked_step(K)
        problem = self._problem(y)
        alpha = np.zeros(len(y))
        # Σ y α k of each row
        f = np.zeros(len(y))
        dual: tuple[float, ...] = (0.0,)
        most = steps_allowed(self.max_iter)
        # α, f and the dual after each pass that is whole
        with Anytime[tuple[Array, Array, tuple[float, ...]]]() as run:
            while len(dual) <= most and run.status == Status.LIMIT:
                self._pass(row, y, alpha, f, eta)
                dual = (*dual, -problem.objective(alpha, f))
                worst = problem.violation(alpha, problem.slack(f, (0.0, 0.0))).max()
                run.best = (alpha.copy(), f.copy(), dual)
                if worst <= self.tol:
                    run.status = Status.CONVERGED
        if run.best is not None:
            alpha, f, dual = run.best
        status: Status = run.status
        self.n_iter_ = len(dual) - 1
        self.alpha_ = alpha
        self.b_ = 0.0
        self.dual_ = np.array(dual)
        self.converged_ = status == Status.CONVERGED
        self.certificate_ = problem.certify(
            alpha,
            f,
            (0.0, 0.0),
            status=status,
            method="Adatron",
            iterations=self.n_iter_,
            notes=self._notes,
        )
        self.intercept_ = np.zeros(1)
        used = np.flatnonzero(alpha)
        self._keep_support(on, A, used, (y * alpha)[used].reshape(1, -1))
        if not status.as_asked:
            warn(
                f"the Adatron stopped after {self.n_iter_} passes ({self.certificate_}). Raise max_iter; if "
                "the dual keeps rising the classes may not be separable: give a finite C.",
                ConvergenceWarning,
            )
        return self

    def _pass(self, row: Row, y: Array, alpha: Array, f: Array, eta: float) -> None:
        for n in range(len(y)):
            h = y[n] * f[n]
            change = min(max(-alpha[n], eta * (1 - h)), self.C - alpha[n])
            if change:
                alpha[n] += change
                f += change * y[n] * row(n)

    def _function_facts(self) -> dict[str, object]:
        return {**super()._function_facts(), "canonical": True}

    def named_multipliers(self, X: Table, y: Targets, sample_weight: Weights) -> list[Multipliers]:
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        require_rows_of_fit(A.shape[0], len(self.alpha_))
        if sample_weight is not None:
            raise ParameterError("the Adatron takes no sample_weight; leave it out.")
        signs = self._signs_again(y, A.shape[0])
        K = self.again_on(A).gram()
        problem = self._problem(signs)
        beta = np.zeros(A.shape[0])
        beta[self.support_] = self.dual_coef_[0]
        return [of_box(problem, problem.alpha(beta), np.asarray(K @ beta), (0.0, 0.0), K)]

    def named_rows(self) -> dict[str, Integers]:
        (free,), (full,) = self.bounded_support()
        return {"support vectors on the margin": free, "support vectors at the bound": full}

    def bounded_support(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        full = self.alpha_[self.support_] >= self.C
        return (self.support_[~full],), (self.support_[full],)

    def _problem(self, signs: Array) -> BoxProblem:
        """The dual that the Adatron climbs: a box, no equality."""
        n = len(signs)
        return BoxProblem(np.arange(n), signs, np.full(n, -1.0), np.full(n, float(self.C)), equality=0)

    def _checked_step(self, K: GramOperator) -> float:
        top = float(K.diag().max())
        limit = 2.0 / top if top > 0 else np.inf
        step = self.step
        if isinstance(step, str) and step == "auto":
            return 0.5 * limit if np.isfinite(limit) else 1.0
        if not is_real(step) or not 0 < step < limit:
            raise ParameterError(
                f"step must be a number with 0 < step < 2 / max k(x, x) = {limit:.6g} on this data, else the "
                f"dual need not rise; got {self.step!r}."
            )
        return float(step)
