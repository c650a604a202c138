"""The twin of `sklearn.kernel_ridge.KernelRidge`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn.kernel_ridge as peer
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mercer.arrays import check_vectors
from mercer.errors import MagnitudeError, NotPositiveDefiniteError, warn
from mercer.gram import Precomputed, Tiles
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import RBF, CosineSimilarity, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from mercer.machines.ridge.ridge import KernelRidge as _KernelRidge
from mercer.machines.shared.publish import Published, fit_inside
from mercer.sklearn.careful import refuse_masks_and_dates, warn_of_refuted
from mercer.theory.claims import Examination

__all__ = ["KernelRidge"]


class QuietRidge(_KernelRidge):
    """scikit-learn does not judge kernels, names or residuals; the certificate has it all."""

    def _judged(self, on: Any, K: Any = None, rows: Any = None) -> tuple[str, ...]:
        return ()

    def _report(self) -> None:
        """Said in the certificate."""

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        if reset:
            self.n_features_in_ = X.shape[1]
        return check_vectors(X).astype(np.float64, copy=False)


class KernelRidge(RegressorMixin, Published, BaseEstimator):
    """Kernel ridge regression with the signature of `sklearn.kernel_ridge.KernelRidge`.

    The machine inside is `machine_`, with its `certificate_`. Where K + αI is singular the answer is that of least squares,
    with a warning, as in the original.
    """

    _parameter_constraints = peer.KernelRidge._parameter_constraints

    def __init__(self, alpha=1, *, kernel="linear", gamma=None, degree=3, coef0=1, kernel_params=None):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit Kernel Ridge regression model."""
        X, y, sample_weight, products, machine = self._prepare(X, y, sample_weight)
        try:
            fit_inside(machine, products, y, sample_weight=sample_weight)
            coef = machine.dual_coef_
            self.machine_, self.certificate_ = machine, machine.certificate_
        except (NotPositiveDefiniteError, MagnitudeError) as error:
            if np.ndim(machine.alpha) or isinstance(error, MagnitudeError):
                raise
            coef = self._least_squares(X, y, sample_weight, float(machine.alpha))
        kind = np.result_type(X.dtype, y.dtype)
        self.dual_coef_ = coef.astype(kind if kind == np.float32 else np.float64, copy=False)
        self.X_fit_ = X
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, Any, Any, QuietRidge]:
        """Rows, targets, weights, what the machine is fitted on, and the machine, after scikit-learn's checks."""
        self._validate_params()
        refuse_masks_and_dates(X, y)
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True)
        if sample_weight is not None and not isinstance(sample_weight, float):
            sample_weight = _check_sample_weight(sample_weight, X)
        targets = 1 if y.ndim == 1 else y.shape[1]
        alpha = np.atleast_1d(np.asarray(self.alpha, dtype=float))
        if len(alpha) not in (1, targets):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {len(alpha)} != {targets}"
            )
        kernel = self._kernel_object(X.shape[1])
        warn_of_refuted(kernel, X.shape[1])
        products = X if kernel is not None else self._pairwise(X)
        machine = QuietRidge(kernel or PRECOMPUTED, alpha[0] if np.ptp(alpha) == 0 else alpha)
        return X, y, sample_weight, products, machine

    def _examine(self, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
        """Hand what was published, and the same numbers recomputed, to `mercer.verify`."""
        from mercer.sklearn.examine import examine_twin

        examine_twin(self, exam, X, y, sample_weight)

    def _least_squares(self, X: Any, y: np.ndarray, sample_weight: Any, alpha: float) -> np.ndarray:
        """The solution of least norm, where no factorisation exists."""
        warn("Singular matrix in solving dual problem. Using least-squares solution instead.")
        K = np.array(_dense(self._pairwise(X)), dtype=np.float64)
        root = np.sqrt(np.broadcast_to(1.0 if sample_weight is None else sample_weight, len(K)))
        K *= np.outer(root, root)
        K[np.diag_indices_from(K)] += alpha
        column = (-1,) + (1,) * (y.ndim - 1)
        scale = root.reshape(column)
        return linalg.lstsq(K, y * scale)[0] * scale

    def predict(self, X: Any) -> np.ndarray:
        """Predict using the kernel ridge model."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        kernel = self._kernel_object(self.X_fit_.shape[1])
        if kernel is None:
            return np.asarray(Precomputed(_dense(self._pairwise(X, self.X_fit_))) @ self.dual_coef_)
        other = self.X_fit_
        if sparse.issparse(X) != sparse.issparse(other):
            X, other = _dense(X), _dense(other)
        X, other = (check_vectors(A).astype(np.float64, copy=False) for A in (X, other))
        found = Tiles(kernel, X, other) @ np.ascontiguousarray(self.dual_coef_, dtype=np.float64)
        return np.asarray(found).astype(self.dual_coef_.dtype, copy=False)

    def _kernel_object(self, columns: int) -> Kernel | None:
        """The named kernel as one of mercer's; None for precomputed, callables and what has no object here."""
        gamma = 1.0 / columns if self.gamma is None else float(self.gamma)
        coef0, degree = float(self.coef0), self.degree
        if self.kernel == "linear":
            return Linear()
        if self.kernel == "cosine":
            return CosineSimilarity()
        if not gamma > 0 or not isinstance(self.kernel, str):
            return None
        if self.kernel == "rbf":
            return RBF(float(np.sqrt(0.5 / gamma)))
        if self.kernel == "laplacian":
            return Laplacian(1.0 / gamma)
        if self.kernel == "sigmoid":
            return Sigmoid(gamma, offset=coef0)
        if self.kernel in ("poly", "polynomial") and coef0 >= 0 and degree >= 1 and degree == int(degree):
            return Polynomial(int(degree), offset=coef0, scale=gamma)
        return None

    def _pairwise(self, X: Any, Y: Any = None) -> Any:
        if callable(self.kernel):
            parameters = self.kernel_params or {}
        else:
            parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.target_tags.multi_output = True
        return tags


def _dense(A: Any) -> Any:
    return A.toarray() if sparse.issparse(A) else A
