"""Two views of the same things: the functions of each that agree best (kernel canonical correlation)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mercer import lapack
from mercer.arrays import Rows
from mercer.errors import InputError, NotPositiveDefiniteError, ShapeError, warn
from mercer.gram import GramOperator
from mercer.gram.blocks import Index
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Approximated, Evaluated, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import resolve
from mercer.machines.shared.machine import Invalid, Machine, put_on_rows
from mercer.machines.shared.parameters import Declarations, Number, Special, Whole
from mercer.machines.structure.centred import Centred, invalid_after_centring
from mercer.machines.structure.mercer_map import with_signs
from mercer.solve.eigen import top_eigenpairs
from mercer.sparse import dense
from mercer.typing import Array, Memory, Seed, Table, Targets
from mercer.vectors import check_vectors


class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine):
    """Pairs of functions f and g that are most correlated over the pairs (x_i, y_i).

        f(x) = Σ α_i k̃(x, x_i),     g(y) = Σ β_i k̃'(y, y_i)
        max  αᵀK̃L̃β / (‖(K̃ + cI)α‖ ‖(L̃ + c'I)β‖),     c = κ·tr K̃,  c' = κ·tr L̃

    K̃ and L̃ are centred in feature space. Without the ridge κ a rich kernel correlates anything with
    anything. The values of the maximum are the singular values of RS, R = K̃(K̃ + cI)⁻¹ and S = L̃(L̃ +
    c'I)⁻¹: two Cholesky factors, and the leading eigenvectors of RS²R.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    singular_values_ : the maxima, falling, each between 0 and 1; what the ridge leaves of the correlation.
    correlations_ : the correlation of f(x_i) and g(y_i) on the sample, higher than on new pairs.
    alpha_, beta_ : coefficients, scaled so that f and g have variance 1 on the sample.
    certificate_ : with the residual of every eigenpair.

    >>> from mercer import KernelCCA
    >>> t = np.linspace(-1, 1, 40)[:, None]
    >>> model = KernelCCA("RBF()", 1, regularization=1e-3).fit(t, t**2)
    >>> bool(model.correlations_[0] > 0.99)
    True
    """

    invalid: ClassVar[Invalid] = invalid_after_centring("correlations are then bounded by nothing")
    parameters: ClassVar[Declarations] = {
        "n_components": Whole(1, about="How many pairs of functions."),
        "kernel_y": Special(
            type="Kernel, str or None",
            about="The kernel of the second view; None for the same.",
            reason="it is read together with the second view, by `resolve`",
        ),
        "regularization": Number(
            words="a finite number > 0 (without it every correlation can be 1)",
            about="κ, relative to the trace.",
        ),
        "tol": Number(about="Residual of the eigenpairs, relative to the largest."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_components: int = 2,
        *,
        kernel_y: Kernel | str | None = None,
        regularization: float = 0.01,
        tol: float = 1e-8,
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.kernel_y = kernel_y
        self.regularization = regularization
        self.tol = tol
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.approximation = approximation

    def fit(self, X: Table, y: Targets) -> Self:
        """Find the functions of X and of the second view `y` (one column may come as a vector)."""
        start = time.perf_counter()
        self._check_parameters()
        if y is None:
            raise InputError(
                "KernelCCA requires y to be passed, but the target y is None: it is the second view."
            )
        A = self.check_rows(X, reset=True)
        B = second_view(y, A.shape[0])
        if len(B) == 1:
            raise InputError("n_samples=1: a correlation needs at least two rows.")
        on = self._kernel_on(A)
        on_y = self._kernel_on_y(B)
        K = on.gram()
        L = on_y.gram()
        notes = (*self._judged(on, K), *self._judged(on_y, L))
        first = Ridged(Centred(K), self.regularization)
        second = Ridged(Centred(L), self.regularization)
        k = min(int(self.n_components), A.shape[0] - 1)
        found = top_eigenpairs(
            Agreement(first, second), k, tol=float(self.tol), random_state=self.random_state
        )
        values = np.sqrt(np.clip(found.value.values, 0.0, 1.0))
        U = with_signs(found.value.vectors)
        V = second.apply(first.apply(U))
        self.X_fit_ = A
        self.Y_fit_ = B
        self.singular_values_ = values
        self.alpha_, self._offset, f = _scaled(first, U)
        self.beta_, self._offset_y, g = _scaled(second, V)
        self._keep_feature_coef(on, self.alpha_)
        if isinstance(on_y, Approximated):
            self.feature_coef_y_ = on_y.weights(self.beta_)
        self.correlations_ = np.einsum("ij,ij->j", f, g) / A.shape[0]
        self.n_components_ = self._n_features_out = k
        self.certificate_ = replace(
            found.certificate, seconds=time.perf_counter() - start, notes=(*notes, *found.certificate.notes)
        )
        if not found.certificate.status.as_asked:
            warn(f"not as exact as asked ({self.certificate_}).", ConvergenceWarning)
        return self

    def _kernel_on_y(self, B: Array) -> KernelOnRows:
        """The kernel of the second view on its rows."""
        for name in ("approximation_y_", "feature_coef_y_"):
            self.__dict__.pop(name, None)
        rows = Rows(B, "y")
        kernel = resolve(self.kernel if self.kernel_y is None else self.kernel_y, rows, name="kernel_y")
        on = put_on_rows(
            kernel,
            rows,
            approximation=self.approximation,
            strict=bool(self.strict),
            memory=self.memory,
            n_jobs=self.n_jobs,
        )
        self.kernel_y_ = on.published
        if isinstance(on, Approximated):
            assert isinstance(on.approximation, Approximation)
            self.approximation_y_ = on.approximation
        return on

    def transform(self, X: Table, y: Targets | None = None) -> Array | tuple[Array, Array]:
        """f of new rows, n × n_components; with a second view, the pair (f(X), g(y))."""
        check_is_fitted(self, "alpha_")
        A = self.check_rows(X, reset=False)
        f = self._products(A, self.X_fit_, self.alpha_) - self._offset
        if y is None:
            return f
        B = second_view(y, A.shape[0])
        if B.shape[1] != self.Y_fit_.shape[1]:
            raise ShapeError(f"y has {B.shape[1]} columns; it had {self.Y_fit_.shape[1]} in fit.")
        return f, self._products_of_y(B) - self._offset_y

    def _functions(self) -> Functions:
        """f of the first view, one for each component."""
        check_is_fitted(self, "alpha_")
        return self._functions_on(self.X_fit_, self.alpha_, -self._offset, what="f of the first view")

    def _products_of_y(self, B: Array) -> Array:
        """Σ_j β_j k(y_j, ·) of new rows of the second view."""
        if "approximation_y_" in vars(self):
            return np.asarray(self.approximation_y_.features(Rows(B, "y")) @ self.feature_coef_y_)
        if isinstance(self.kernel_y_, str):
            return np.asarray(B @ self.beta_)
        on = Evaluated.of(self.kernel_y_, Rows(self.Y_fit_, "Y_fit_"), n_jobs=self.n_jobs)
        return on.products(B, self.beta_)

    def score(self, X: Table, y: Targets) -> float:
        """The mean correlation of f(x) and g(y) over the components, on these pairs."""
        f, g = (v - v.mean(axis=0) for v in self.transform(X, y))
        size = np.linalg.norm(f, axis=0) * np.linalg.norm(g, axis=0)
        return float(np.mean(np.einsum("ij,ij->j", f, g) / np.where(size > 0, size, 1.0)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class Ridged:
    """R = K̃(K̃ + cI)⁻¹ = I - c(K̃ + cI)⁻¹ by one Cholesky factor."""

    def __init__(self, K: Centred, regularization: float) -> None:
        self.K = K
        spread = float(K.diag().sum())
        if spread == 0:
            raise InputError(
                "the kernel of one view is the same for all rows, so that its functions are constant and "
                "have no correlation. Use another kernel, or columns that vary."
            )
        self.c = float(regularization) * max(spread, np.finfo(float).tiny)
        A = np.asarray(K.dense(), dtype=np.float64)
        A[np.diag_indices_from(A)] += self.c
        try:
            self.factor = lapack.cholesky(A.T, overwrite_a=True)
        except LinAlgError as error:
            raise NotPositiveDefiniteError(
                f"K + {self.c:.3g} I is not positive definite: the kernel is far from valid. Raise "
                "regularization."
            ) from error

    def solve(self, V: Array) -> Array:
        return lapack.cho_solve(self.factor, V)

    def apply(self, V: Array) -> Array:
        return V - self.c * self.solve(V)


class Agreement(GramOperator):
    """RS²R."""

    kind = "agreement"

    def __init__(self, first: Ridged, second: Ridged) -> None:
        self.first = first
        self.second = second
        super().__init__(np.float64, first.K.shape)

    def _matmat(self, V: Array) -> Array:
        W = self.second.apply(self.first.apply(V))
        return self.first.apply(self.second.apply(W))

    def block(self, rows: Index, cols: Index) -> Array:
        return self._matmat(np.eye(self.shape[0])[:, cols])[rows]

    def diag(self) -> Array:
        half = self.second.apply(self.first.apply(np.eye(self.shape[0])))
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def _transpose(self) -> Agreement:
        return self


def _scaled(ridged: Ridged, U: Array) -> tuple[Array, Array, Array]:
    """Coefficients whose function has variance 1 on the sample, its offset, and its values there."""
    coef = ridged.solve(U)
    coef -= coef.mean(axis=0)
    values = ridged.K @ coef
    size = np.sqrt((values**2).mean(axis=0))
    coef, values = (v / np.where(size > 0, size, 1.0) for v in (coef, values))
    return coef, ridged.K.means @ coef, values


def second_view(y: Targets, n: int) -> Array:
    B = np.asarray(y) if not hasattr(y, "columns") else y
    if getattr(B, "ndim", 2) == 1:
        B = np.asarray(B).reshape(-1, 1)
    B = np.asarray(dense(check_vectors(B, "y")), dtype=np.float64)
    if len(B) != n:
        raise ShapeError(f"X has {n} rows and y has {len(B)}. Pass two views of the same rows.")
    return B
