"""The twin of `sklearn.kernel_ridge.KernelRidge`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import sklearn.kernel_ridge as peer
from scipy import linalg, sparse
from sklearn.base import RegressorMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight

from mercer.errors import MagnitudeError, NotPositiveDefiniteError, warn
from mercer.gram import Precomputed, Tiles
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import Kernel
from mercer.machines.ridge.ridge import KernelRidge as _KernelRidge
from mercer.machines.shared.publish import fit_inside
from mercer.sklearn.careful import refuse_masks_and_dates, warn_of_refuted
from mercer.sklearn.names import KernelName, kernel_named
from mercer.sklearn.twin import Quiet, Twin
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Floats, Table, Targets, Weights
from mercer.vectors import check_vectors

__all__ = ["KernelRidge"]


class QuietRidge(Quiet, _KernelRidge): ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """What scikit-learn's checks let through, what the machine is fitted on, and the machine."""

    rows: Matrix
    targets: Floats
    weights: float | Array | None
    products: Matrix
    machine: QuietRidge


class KernelRidge(RegressorMixin, Twin):
    """Kernel ridge regression with the signature of `sklearn.kernel_ridge.KernelRidge`.

    The machine inside is `machine_`, with its `certificate_`. Where K + αI is singular the answer is that of
    least squares, with a warning, as in the original.
    """

    _parameter_constraints = peer.KernelRidge._parameter_constraints

    def __init__(
        self,
        alpha: float | npt.ArrayLike = 1,
        *,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit Kernel Ridge regression model."""
        prepared = self._prepare(X, y, sample_weight)
        machine = prepared.machine
        coef: Array
        try:
            fit_inside(machine, prepared.products, prepared.targets, sample_weight=prepared.weights)
            coef = machine.dual_coef_
            self.machine_ = machine
            self.certificate_ = machine.certificate_
        except (NotPositiveDefiniteError, MagnitudeError) as error:
            if np.ndim(machine.alpha) or isinstance(error, MagnitudeError):
                raise
            coef = self._least_squares(prepared)
        kind = np.result_type(prepared.rows.dtype, prepared.targets.dtype)
        if kind != np.float32:
            kind = np.dtype(np.float64)
        self.dual_coef_: Floats = coef.astype(kind, copy=False)
        self.X_fit_ = prepared.rows
        return self

    def _prepare(self, X: Table, y: Targets, sample_weight: Weights) -> Prepared:
        """Check as scikit-learn does, and translate the kernel and the penalty."""
        self._validate_params()
        refuse_masks_and_dates(X, y)
        rows, t = self._checked_pair(X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True)
        weights: float | Array | None
        if sample_weight is None or isinstance(sample_weight, float):
            weights = sample_weight
        else:
            weights = _check_sample_weight(sample_weight, rows)
        targets = 1 if t.ndim == 1 else t.shape[1]
        alpha: Array = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if len(alpha) not in (1, targets):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {len(alpha)} != {targets}"
            )
        kernel = self._kernel_object(rows.shape[1])
        warn_of_refuted(kernel, rows.shape[1])
        products = rows if kernel is not None else self._pairwise(rows)
        penalty = alpha
        if np.ptp(alpha) == 0:
            penalty = alpha[0]
        machine = QuietRidge(kernel or PRECOMPUTED, penalty)
        return Prepared(rows, t, weights, products, machine)

    def _least_squares(self, prepared: Prepared) -> Array:
        """The solution of least norm, where no factorisation exists."""
        warn("Singular matrix in solving dual problem. Using least-squares solution instead.")
        K: Array = np.array(dense(self._pairwise(prepared.rows)), dtype=np.float64)
        weights = 1.0 if prepared.weights is None else prepared.weights
        root = np.sqrt(np.broadcast_to(weights, len(K)))
        K *= np.outer(root, root)
        K[np.diag_indices_from(K)] += float(np.ravel(self.alpha)[0])
        column = (-1,) + (1,) * (prepared.targets.ndim - 1)
        scale = root.reshape(column)
        coef: Array = linalg.lstsq(K, prepared.targets * scale)[0] * scale
        return coef

    def predict(self, X: Table) -> Floats:
        """Predict using the kernel ridge model."""
        self._check_fitted()
        rows = self._checked_rows(X, accept_sparse=("csr", "csc"))
        kernel = self._kernel_object(self.X_fit_.shape[1])
        if kernel is None:
            return np.asarray(Precomputed(dense(self._pairwise(rows, self.X_fit_))) @ self.dual_coef_)
        other = self.X_fit_
        if sparse.issparse(rows) != sparse.issparse(other):
            rows = dense(rows)
            other = dense(other)
        found = Tiles(kernel, _double(rows), _double(other)) @ np.ascontiguousarray(
            self.dual_coef_, dtype=np.float64
        )
        return np.asarray(found).astype(self.dual_coef_.dtype, copy=False)

    def _kernel_object(self, columns: int) -> Kernel | None:
        gamma = 1.0 / columns if self.gamma is None else float(self.gamma)
        return kernel_named(self.kernel, gamma=gamma, coef0=self.coef0, degree=self.degree)

    def _pairwise(self, X: Matrix, Y: Matrix | None = None) -> Matrix:
        parameters: dict[str, object]
        if callable(self.kernel):
            parameters = self.kernel_params or {}
        else:
            parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.target_tags.multi_output = True
        return tags


def _double(X: Matrix) -> Matrix:
    return check_vectors(X).astype(np.float64, copy=False)
