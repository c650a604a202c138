"""What the twins of the support vector machines share: scikit-learn's checks, and the way to a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from mercer.errors import MagnitudeError, NotFiniteError, warn
from mercer.gram import GramOperator
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import Kernel
from mercer.kernels.leaves.closing import variance
from mercer.machines.margin.calibrate import Calibration
from mercer.machines.margin.classify import MarginClassifier
from mercer.machines.margin.nu import NuSVC as _NuSVC
from mercer.machines.margin.one_class import OneClassSVM as _OneClassSVM
from mercer.machines.margin.problems import MarginMachine
from mercer.machines.margin.svc import SVC as _SVC
from mercer.machines.margin.svr import SVR as _SVR
from mercer.machines.margin.svr import NuSVR as _NuSVR
from mercer.machines.shared.publish import fit_inside
from mercer.sklearn.careful import refuse_masks_and_dates, symmetric, warn_of_refuted
from mercer.sklearn.names import KernelFunction, KernelName, kernel_named
from mercer.sklearn.twin import Quiet, Twin
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. "
    "The input data may contain large values and need to be preprocessed."
)
# entries up to which sparse rows are computed with as dense ones: the same bits then
WRITTEN_OUT = 2**17


# ── the machines without their announcements ────────────────────────────────────────────────────────────────


class QuietClassifier(Quiet, MarginClassifier):
    def _check_labels(self, y: Targets, n: int) -> Integers:
        """The twin has made codes of the labels."""
        codes = np.asarray(y)
        self.classes_ = np.arange(int(codes.max()) + 1)
        return codes

    def _calibrate(self, K: GramOperator, codes: Integers, w: Array) -> Calibration:
        """With a single row of some class nothing can be held out; the original answers all the same."""
        if np.bincount(codes).min() < 2:
            return Calibration((1.0, 1.0))
        return super()._calibrate(K, codes, w)


class QuietSVC(QuietClassifier, _SVC): ...


class QuietNuSVC(QuietClassifier, _NuSVC): ...


class QuietSVR(Quiet, _SVR): ...


class QuietNuSVR(Quiet, _NuSVR): ...


class QuietOneClassSVM(Quiet, _OneClassSVM): ...


# ── what all twins share ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Prepared:
    """What scikit-learn's checks let through: rows, targets, weights, and what the machine is fitted on.

    `products` is None for a kernel function that returned products of other rows.
    """

    rows: Matrix
    targets: Labels
    weights: Array | None
    products: Matrix | None


class Common(TypedDict):
    """What every machine inside is asked for."""

    kernel: Kernel | str
    tol: float
    max_iter: int | None
    memory: int


@dataclass(kw_only=True, eq=False, repr=False)
class MarginTwin(Twin):
    """Check as scikit-learn does, translate, fit the machine, translate back."""

    kernel: KernelName = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    shrinking: bool = True
    tol: float = 1e-3
    cache_size: float = 200
    verbose: bool = False
    max_iter: int = -1

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        raise NotImplementedError

    def _check_targets(self, y: Targets) -> Labels:
        if type(y) is np.ndarray and y.ndim == 1:
            return y.astype(np.float64, copy=False)
        values: Array = column_or_1d(y, warn=True)
        return values.astype(np.float64, copy=False)

    def _prepare(self, X: Table, y: Targets | None, sample_weight: Weights) -> Prepared:
        """Check as scikit-learn does, and resolve gamma."""
        self._validate_params()
        refuse_masks_and_dates(X, y)
        if sparse.issparse(X) and self.kernel == PRECOMPUTED:
            raise TypeError("Sparse precomputed kernels are not supported.")
        self._sparse = sparse.issparse(X) and not callable(self.kernel)
        rows: Matrix = X
        if callable(self.kernel):
            check_consistent_length(X, y)
        elif y is None:
            rows = self._checked_rows(X, reset=True, dtype=np.float64, order="C", accept_sparse="csr")
        else:
            rows, y = self._checked_pair(X, y, dtype=np.float64, order="C", accept_sparse="csr")
        n: int = _num_samples(rows)
        targets: Labels = np.ones(n) if y is None else self._check_targets(y)
        w = self._check_weights(sample_weight, targets, n, np.shape(rows))
        self._set_gamma(rows, w)
        return Prepared(rows, targets, w, self._training_products(rows, n))

    def _asked(self) -> MarginMachine:
        """The machine that the parameters describe."""
        return self._machine(
            kernel=self._kernel_object() or PRECOMPUTED,
            tol=self.tol,
            max_iter=None if self.max_iter < 0 else self.max_iter,
            memory=max(int(self.cache_size * 2**20), 2**28),
        )

    def _fit(self, X: Table, y: Targets | None, sample_weight: Weights) -> Self:
        prepared = self._prepare(X, y, sample_weight)
        if prepared.products is None:
            # scikit-learn finds out in predict
            self.shape_fit_ = np.shape(prepared.rows)
            return self
        machine = self._asked()
        try:
            fit_inside(machine, prepared.products, prepared.targets, sample_weight=prepared.weights)
        except (MagnitudeError, NotFiniteError) as error:
            raise ValueError(f"{NOT_FINITE} ({error})") from error
        self._take(machine, prepared.rows, len(prepared.targets))
        return self

    def _check_weights(
        self, sample_weight: Weights, y: Labels, n: int, shape: tuple[int, ...]
    ) -> Array | None:
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

    def _set_gamma(self, X: Matrix, w: Array | None) -> None:
        if self.kernel == PRECOMPUTED or callable(self.kernel):
            self._gamma = 0.0
        elif self.gamma == "scale":
            spread = variance(X, w)
            self._gamma = 1.0 / (X.shape[1] * spread) if spread != 0 else 1.0
        elif self.gamma == "auto":
            self._gamma = 1.0 / X.shape[1]
        else:
            self._gamma = float(self.gamma)

    def _kernel_object(self) -> Kernel | None:
        return kernel_named(self.kernel, gamma=self._gamma, coef0=self.coef0, degree=self.degree)

    def _function(self) -> KernelFunction | None:
        """The kernel as a function of two samples, where mercer has no object for it."""
        if not isinstance(self.kernel, str):
            return self.kernel
        if self.kernel == PRECOMPUTED or self._kernel_object() is not None:
            return None
        gamma = self._gamma
        coef0 = self.coef0
        degree = self.degree
        formulas: dict[str, Callable[[Array], Array]] = {
            "rbf": lambda t: np.ones_like(t),
            "poly": lambda t: (gamma * t + coef0) ** degree,
            "sigmoid": lambda t: np.tanh(gamma * t + coef0),
        }
        formula = formulas[self.kernel]
        return lambda A, B: formula(safe_sparse_dot(A, B.T, dense_output=True))

    def _training_products(self, X: Matrix, n: int) -> Matrix | None:
        function = self._function()
        if function is None:
            if self.kernel == PRECOMPUTED and X.shape[0] != X.shape[1]:
                raise ValueError(
                    "Precomputed matrix must be a square matrix. "
                    f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
                )
            if self.kernel == PRECOMPUTED:
                return symmetric(X)
            warn_of_refuted(self._kernel_object(), X.shape[1])
            if sparse.issparse(X) and X.shape[0] * X.shape[1] <= WRITTEN_OUT:
                return X.toarray()
            return X
        self._X_fit = X
        K = _as_matrix(function(X, X))
        if K.shape[0] != K.shape[1]:
            raise ValueError("X.shape[0] should be equal to X.shape[1]")
        if K.shape[0] != n:
            warn(
                f"the kernel returned {K.shape[0]} x {K.shape[1]} products for {n} rows; "
                "this model cannot predict.",
                UserWarning,
            )
            return None
        if not np.isfinite(K).all():
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The kernel returned NaN or infinity."
            )
        return symmetric(K)

    def _take(self, machine: MarginMachine, X: Matrix, n: int) -> None:
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
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data "
                "with StandardScaler or MinMaxScaler.",
                ConvergenceWarning,
            )

    def _take_iterations(self, machine: MarginMachine) -> None:
        self.n_iter_: int | NDArray[np.int32] = max(int(machine.n_iter_), 1)

    def _dual_layout(self, machine: MarginMachine) -> Array:
        duals: Array = machine.dual_coef_
        return duals

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors for each class."""
        try:
            check_is_fitted(self)
        except NotFittedError:
            raise AttributeError("n_support_ is there after fit") from None
        return self._n_support

    @property
    def coef_(self) -> Matrix:
        """Weights of the features when `kernel="linear"`."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        duals: Matrix = self.machine_.dual_coef_
        if self._sparse:
            duals = sparse.csr_array(duals)
        coef = safe_sparse_dot(duals, self.support_vectors_)
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    def _raw(self, X: Table) -> Array:
        """The machine's decision values, after scikit-learn's checks."""
        self._check_fitted()
        rows: Matrix = X
        if not callable(self.kernel):
            rows = self._checked_rows(X, accept_sparse="csr", dtype=np.float64, order="C")
            if sparse.issparse(rows) and not self._sparse:
                raise ValueError(f"cannot use sparse input in {type(self).__name__!r} trained on dense data")
            if self._sparse and not sparse.issparse(rows):
                rows = sparse.csr_array(rows)
        function = self._function()
        if function is not None:
            rows = _as_matrix(function(rows, self._X_fit))
        if self.kernel == PRECOMPUTED or function is not None:
            if rows.shape[1] != self.shape_fit_[0]:
                raise ValueError(
                    f"X.shape[1] = {rows.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                    "samples at training time"
                )
        elif self._n_support.sum() != self.support_vectors_.shape[0]:
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        values: Array = self.machine_._values(rows)
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.input_tags.sparse = self.kernel != PRECOMPUTED
        return tags


def required(estimator: BaseEstimator, y: Targets | None) -> Targets:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    return y


def _as_matrix(K: Matrix) -> Array:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64, order="C")
