"""Kernel ridge regression that weighs its kernels (M14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.gram.functions import Functions
from mercer.machines.kernel_sets.multiple import KernelSet
from mercer.machines.kernel_sets.weights import GramSet, Kernels, KernelWeights
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Invalid
from mercer.machines.shared.parameters import Declarations, Number
from mercer.machines.shared.targets import check_target_block
from mercer.memory import memory_limit
from mercer.solve.direct import factor
from mercer.solve.mixture import Answer
from mercer.solve.solution import Status
from mercer.solve.system import solve
from mercer.sparse import Matrix
from mercer.typing import Array, Memory, Table, Targets, Weights


class MultipleKernelRegressor(MultiOutputMixin, RegressorMixin, KernelSet):
    """Ridge regression with several kernels and their weights.

        min ½ λ Σ_m ‖w_m‖²/d_m + ½ Σ_i (y_i - Σ_m w_m·φ_m(x_i) - b)²      over w, b and d ≥ 0, ‖d‖_p ≤ 1
        dual     λ (yᵀβ - ½ λ βᵀβ - ½ ‖(βᵀK_mβ)_m‖_p*),   (K_d + λI) β = y - b,   Σβ = 0

    Without `fit_intercept` there is no b and no Σβ = 0. With one kernel this is `KernelRidge`. Several
    columns of y share the weights. The gap is ½‖y - b - K_dβ - λβ‖² + ½ λ (‖q‖_p* - dᵀq), q_m = βᵀK_mβ.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    weights_, scales_, kernel_, trace_shares_, norm_shares_, certificate_ : as there.
    dual_coef_ (β), X_fit_, intercept_ : predictions are kernel_(X, X_fit_) @ dual_coef_ + intercept_.

    >>> from mercer import MultipleKernelRegressor
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = MultipleKernelRegressor(["Linear()", "RBF(0.1)"], alpha=0.01).fit(X, X[:, 0])
    >>> model.weights_.round(3).tolist(), bool(model.certificate_.gap < 1e-4 * model.certificate_.primal)
    ([1.0, 0.0], True)
    """

    invalid: ClassVar[Invalid] = Invalid(
        "The penalty is then no norm: the solution is a stationary point, and the gap is not a bound.",
        "the kernel is not positive semi-definite: a stationary point, not a proven optimum",
    )
    parameters: ClassVar[Declarations] = {
        "alpha": Number(about="The λ above."),
    }

    dual_coef_: Array
    intercept_: Array | float
    X_fit_: Matrix | None

    def __init__(
        self,
        kernels: Kernels = ("Linear()", "RBF()"),
        alpha: float = 1.0,
        *,
        p: float = 1.0,
        weights: KernelWeights = "learn",
        normalize: str | None = "trace",
        fit_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = 100,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.alpha = alpha
        self.p = p
        self.weights = weights
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn weights and coefficients from rows X and numbers y (n, or n × outputs)."""
        A, n = self._start(X)
        Y, flat = check_target_block(y, n, type(self).__name__)
        w = check_weights(sample_weight, n)
        used = np.flatnonzero(w > 0)
        if len(used) < n:  # rows of weight 0 are not there
            Y = Y[used]
            w = w[used]
            A = [K[np.ix_(used, used)] for K in A] if isinstance(A, list) else A[used]
        grams = self._grams(A, w)
        target = Y - (w @ Y) / w.sum() if self.fit_intercept else Y
        best = self._learn(grams, self._answers(grams, Y, w), w, target)
        beta = np.zeros((n, Y.shape[1])) if isinstance(A, list) else best.kept[0]
        if isinstance(A, list):
            beta[used] = best.kept[0]
        self.dual_coef_ = beta[:, 0] if flat else beta
        self.X_fit_ = None if isinstance(A, list) else A
        self.intercept_ = best.kept[1][0] if flat else best.kept[1]
        return self

    def _answers(self, grams: GramSet, Y: Array, w: Array) -> Callable[[Array], Answer]:
        """β and b for given weights, by one factorisation or, beyond the memory, conjugate gradients."""
        n = grams.n
        lam = float(self.alpha)
        ones = np.ones((n, 1))
        fits = grams.stored and 8 * n * n <= memory_limit(self.memory)

        def answer(d: Array) -> Answer:
            A = grams.at(d).shifted(lam / w)
            ended: list[Status] = [Status.CONVERGED]
            if fits:
                inverse: Callable[[Array], Array] = factor(A).solve
            else:

                def inverse(V: Array) -> Array:
                    got = solve(A, V, tol=1e-3 * min(self.tol, 1e-3), memory=self.memory, keep=False)
                    ended.append(got.certificate.status)
                    return got.value

            if self.fit_intercept:
                both = inverse(np.hstack([Y, ones]))
                each = both[:, -1:] / both[:, -1].sum()  # A⁻¹1 / 1ᵀA⁻¹1
                b = both[:, :-1].sum(axis=0) / both[:, -1].sum()
                beta = both[:, :-1] - both[:, -1:] * b
                beta -= each * beta.sum(axis=0)  # what rounding left of Σβ
            else:
                b = np.zeros(Y.shape[1])
                beta = inverse(Y)
                each = None
            F = grams.products(beta)
            f = np.einsum("m,mnc->nc", d, F)
            q = lam * np.einsum("mnc,nc->m", F, beta)
            rest = Y - b - f
            primal = 0.5 * float(d @ q) + 0.5 * float(w @ (rest**2).sum(axis=1))
            gap = 0.5 * float(w @ ((rest - lam * beta / w[:, None]) ** 2).sum(axis=1))

            def curvature() -> Array:
                H = np.zeros((len(grams), len(grams)))
                for c in range(Y.shape[1]):
                    G = F[:, :, c].T
                    S = inverse(G)
                    if each is not None:
                        S = S - each * S.sum(axis=0)
                    H += lam * (G.T @ S)
                return 0.5 * (H + H.T)

            cut: Status = Status.LIMIT if Status.LIMIT in ended else Status.CONVERGED
            return Answer(primal, gap, q, curvature, cut, kept=(beta, b))

        return answer

    def predict(self, X: Table) -> Array:
        """Σ β_i k(x_i, x) + b."""
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        return self._products(A, self.X_fit_, self.dual_coef_) + self.intercept_

    def _functions(self) -> Functions:
        check_is_fitted(self, "dual_coef_")
        return self._functions_on(self.X_fit_, self.dual_coef_, self.intercept_, observed=False)
