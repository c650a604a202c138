"""What the twins of the support vector machines share: check as scikit-learn does, translate, fit, translate back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from mercer.arrays import check_vectors
from mercer.errors import MagnitudeError, NotFiniteError, warn
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid
from mercer.kernels.leaves.closing import variance
from mercer.machines.margin.calibrate import Calibration
from mercer.machines.margin.nu import NuSVC as _NuSVC
from mercer.machines.margin.one_class import OneClassSVM as _OneClassSVM
from mercer.machines.margin.problems import MarginMachine
from mercer.machines.margin.svc import SVC as _SVC
from mercer.machines.margin.svr import SVR as _SVR
from mercer.machines.margin.svr import NuSVR as _NuSVR
from mercer.machines.shared.publish import Published, fit_inside
from mercer.sklearn.careful import refuse_masks_and_dates, symmetric, warn_of_refuted
from mercer.theory.claims import Examination

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. "
    "The input data may contain large values and need to be preprocessed."
)
WRITTEN_OUT = 2**17  # entries up to which sparse rows are computed with as dense ones: the same bits then


# ── the machines without their announcements ────────────────────────────────────────────────────────────────


class Quiet:
    """scikit-learn does not judge kernels, and words its own convergence warning."""

    _notes: tuple[str, ...]

    def _judged(self, on: Any, K: Any = None, rows: Any = None) -> tuple[str, ...]:
        return ()

    def _report(self) -> None:
        """Said by the twin."""

    def _check_rows(self: Any, X: Any, *, reset: bool) -> Any:
        """Names and width are the twin's affair."""
        if reset:
            self.n_features_in_ = X.shape[1]
        return check_vectors(X)

    def _calibrate(self: Any, K: Any, codes: np.ndarray, w: np.ndarray) -> Calibration:
        """With a single row of some class nothing can be held out; the original answers all the same."""
        if np.bincount(codes).min() < 2:
            return Calibration((1.0, 1.0))
        return super()._calibrate(K, codes, w)  # type: ignore[misc]


class QuietClassifier(Quiet):
    def _check_labels(self: Any, y: np.ndarray, n: int) -> np.ndarray:
        """The twin has made codes of the labels."""
        self.classes_ = np.arange(int(y.max()) + 1)
        return y


class QuietSVC(QuietClassifier, _SVC): ...


class QuietNuSVC(QuietClassifier, _NuSVC): ...


class QuietSVR(Quiet, _SVR): ...


class QuietNuSVR(Quiet, _NuSVR): ...


class QuietOneClassSVM(Quiet, _OneClassSVM): ...


# ── what all twins share ────────────────────────────────────────────────────────────────────────────────────


class MarginTwin(Published, BaseEstimator):
    """Check as scikit-learn does, translate, fit the machine, translate back."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    tol: float
    max_iter: int
    cache_size: float
    verbose: Any
    C: float = 1.0

    def _machine(self, **common: Any) -> MarginMachine:
        raise NotImplementedError

    def _check_targets(self, y: Any) -> np.ndarray:
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _examine(self, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
        """Hand what was published, and the same numbers recomputed, to `mercer.verify`."""
        from mercer.sklearn.examine import examine_twin

        examine_twin(self, exam, X, y, sample_weight)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None, Any]:
        """Rows, targets, weights and what the machine is fitted on, after scikit-learn's checks."""
        self._validate_params()
        refuse_masks_and_dates(X, y)
        if sparse.issparse(X) and self.kernel == PRECOMPUTED:
            raise TypeError("Sparse precomputed kernels are not supported.")
        self._sparse = sparse.issparse(X) and not callable(self.kernel)
        if callable(self.kernel):
            check_consistent_length(X, y)
        elif y is None:
            X = validate_data(self, X, dtype=np.float64, order="C", accept_sparse="csr")
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        n = _num_samples(X)
        y = np.ones(n) if y is None else self._check_targets(y)
        w = self._check_weights(sample_weight, y, n, np.shape(X))
        self._set_gamma(X, w)
        return X, y, w, self._training_products(X, n)

    def _asked(self) -> MarginMachine:
        """The machine that the parameters describe."""
        return self._machine(
            kernel=self._kernel_object() or PRECOMPUTED,
            tol=self.tol,
            max_iter=None if self.max_iter < 0 else self.max_iter,
            memory=max(int(self.cache_size * 2**20), 2**28),
        )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        X, y, w, products = self._prepare(X, y, sample_weight)
        if products is None:  # scikit-learn finds out in predict
            self.shape_fit_ = np.shape(X)
            return self
        machine = self._asked()
        try:
            fit_inside(machine, products, y, sample_weight=w)
        except (MagnitudeError, NotFiniteError) as error:
            raise ValueError(f"{NOT_FINITE} ({error})") from error
        self._take(machine, X, len(y))
        return self

    def _check_weights(self, sample_weight: Any, y: np.ndarray, n: int, shape: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        w = np.asarray(sample_weight, dtype=np.float64)
        if w.ndim == 0:
            w = np.full(n, float(w))
        if w.shape != (n,):
            raise ValueError(f"sample_weight and X have incompatible shapes: {w.shape} vs {shape}")
        if not np.isfinite(w).all():
            raise ValueError("sample_weight must not contain NaN, infs")
        if not np.any(w > 0):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return np.maximum(w, 0.0)

    def _set_gamma(self, X: Any, w: np.ndarray | None) -> None:
        if self.kernel == PRECOMPUTED or callable(self.kernel):
            self._gamma = 0.0
        elif self.gamma == "scale":
            spread = variance(X, w)
            self._gamma = 1.0 / (X.shape[1] * spread) if spread != 0 else 1.0
        else:
            self._gamma = 1.0 / X.shape[1] if self.gamma == "auto" else float(self.gamma)

    def _kernel_object(self) -> Kernel | None:
        """The named kernel as one of mercer's; None for precomputed, callables and degenerate parameters."""
        gamma, coef0 = self._gamma, float(self.coef0)
        if self.kernel == "linear":
            return Linear()
        if self.kernel == "rbf" and gamma > 0:
            return RBF(float(np.sqrt(0.5 / gamma)))
        if self.kernel == "poly" and gamma > 0 and coef0 >= 0 and self.degree >= 1:
            return Polynomial(self.degree, offset=coef0, scale=gamma)
        if self.kernel == "sigmoid" and gamma > 0:
            return Sigmoid(gamma, offset=coef0)
        return None

    def _function(self) -> Callable[[Any, Any], Any] | None:
        """The kernel as a function of two samples, where mercer has no object for it."""
        if callable(self.kernel):
            return self.kernel
        if self.kernel == PRECOMPUTED or self._kernel_object() is not None:
            return None
        gamma, coef0, degree = self._gamma, self.coef0, self.degree
        formulas: dict[str, Callable[[Any], Any]] = {
            "rbf": lambda t: np.ones_like(t),
            "poly": lambda t: (gamma * t + coef0) ** degree,
            "sigmoid": lambda t: np.tanh(gamma * t + coef0),
        }
        formula = formulas[self.kernel]
        return lambda A, B: formula(safe_sparse_dot(A, B.T, dense_output=True))

    def _training_products(self, X: Any, n: int) -> Any:
        function = self._function()
        if function is None:
            if self.kernel == PRECOMPUTED and X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix."
                )
            if self.kernel == PRECOMPUTED:
                return symmetric(X)
            warn_of_refuted(self._kernel_object(), X.shape[1])
            return X.toarray() if sparse.issparse(X) and X.shape[0] * X.shape[1] <= WRITTEN_OUT else X
        self._X_fit = X
        K = _as_matrix(function(X, X))
        if K.shape[0] != K.shape[1]:
            raise ValueError("X.shape[0] should be equal to X.shape[1]")
        if K.shape[0] != n:
            warn(
                f"the kernel returned {K.shape[0]} x {K.shape[1]} products for {n} rows; this model cannot predict.",
                UserWarning,
            )
            return None
        if not np.isfinite(K).all():
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The kernel returned NaN or infinity."
            )
        return symmetric(K)

    def _take(self, machine: MarginMachine, X: Any, n: int) -> None:
        """scikit-learn's attributes from the fitted machine."""
        self.machine_ = machine
        self.certificate_ = machine.certificate_
        self.shape_fit_ = np.shape(X) if hasattr(X, "shape") else (n,)
        self.support_ = machine.support_
        keeps = self.kernel != PRECOMPUTED and not callable(self.kernel)
        self.support_vectors_ = X[machine.support_] if keeps else np.empty((0, 0))
        coef = self._dual_layout(machine)
        self.dual_coef_ = sparse.csr_array(coef) if self._sparse else coef
        if self._sparse and not isinstance(X, sparse.sparray):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.intercept_ = machine.intercept_
        self._n_support = np.asarray(machine.n_support_, dtype=np.int32)
        # as in LIBSVM, a solver that used all its iterations ended early, even where the last one was enough
        used_up = any(0 <= self.max_iter <= (c.iterations or 0) for c in machine.certificates_)
        self.fit_status_ = int(used_up or not machine.certificate_.status.as_asked)
        self._take_iterations(machine)
        if not (np.isfinite(coef).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(NOT_FINITE)
        if self.fit_status_:
            warn(
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
                "StandardScaler or MinMaxScaler.",
                ConvergenceWarning,
            )

    def _take_iterations(self, machine: MarginMachine) -> None:
        self.n_iter_: Any = max(int(machine.n_iter_), 1)

    def _dual_layout(self, machine: MarginMachine) -> np.ndarray:
        return machine.dual_coef_

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors for each class."""
        try:
            check_is_fitted(self)
        except NotFittedError:
            raise AttributeError("n_support_ is there after fit") from None
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Weights of the features when `kernel="linear"`."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        duals = self.machine_.dual_coef_
        coef = safe_sparse_dot(sparse.csr_array(duals) if self._sparse else duals, self.support_vectors_)
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    def _raw(self, X: Any) -> np.ndarray:
        """The machine's decision values, after scikit-learn's checks."""
        check_is_fitted(self)
        function = None
        if callable(self.kernel):
            function = self.kernel
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
            if sparse.issparse(X) and not self._sparse:
                raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
            if self._sparse and not sparse.issparse(X):
                X = sparse.csr_array(X)
            function = self._function()
        if function is not None:
            X = _as_matrix(function(X, self._X_fit))
        if self.kernel == PRECOMPUTED or function is not None:
            if X.shape[1] != self.shape_fit_[0]:
                raise ValueError(
                    f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of samples at "
                    "training time"
                )
        elif self.n_support_.sum() != self.support_vectors_.shape[0]:
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return self.machine_._values(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.input_tags.sparse = self.kernel != PRECOMPUTED
        return tags


def required(estimator: Any, y: Any) -> Any:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    return y


def _as_matrix(K: Any) -> np.ndarray:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64, order="C")
