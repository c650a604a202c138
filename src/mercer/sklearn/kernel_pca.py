"""The twin of `sklearn.decomposition.KernelPCA`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn.decomposition as peer
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import Tags, check_random_state
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import _check_psd_eigenvalues, check_is_fitted, validate_data

from mercer.errors import warn
from mercer.gram import GramOperator, Precomputed, Tiles
from mercer.gram.blocks import Index
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import Kernel
from mercer.machines.structure.centred import Centred
from mercer.sklearn.careful import refuse_masks_and_dates
from mercer.sklearn.names import KernelName, kernel_named
from mercer.sklearn.twin import Twin
from mercer.solve.eigen import top_eigenpairs
from mercer.solve.system import solve
from mercer.sparse import Matrix
from mercer.typing import Array, Floats, Seed, Table, Targets

__all__ = ["KernelPCA"]

# the relative residual that tol=0 stands for
TIGHTEST = 1e-10


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Twin):
    """Kernel principal component analysis, with scikit-learn's signature, attributes and semantics.

    Every `eigen_solver` but "dense" is a Krylov method that stops at residuals of tol (or 1e-10, if tol=0)
    times the largest eigenvalue; `certificate_` holds the residual of every eigenpair.
    `iterated_power` is not needed.

    >>> from mercer.sklearn import KernelPCA
    >>> KernelPCA(1, kernel="linear").fit_transform([[0.0], [2.0]])
    array([[ 1.],
           [-1.]])
    """

    eigenvalues_: Array
    eigenvectors_: Array

    _parameter_constraints = peer.KernelPCA._parameter_constraints

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Seed = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.copy_X = copy_X

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets | None = None) -> Self:
        """Fit the model from data in X."""
        rows = self._check(X)
        K = self._centred(self._products(rows))
        self._decompose(K)
        self.X_fit_ = rows
        self._keep_coefficients()
        if rows.dtype == np.float32:
            self.eigenvalues_ = self.eigenvalues_.astype(np.float32)
            self.eigenvectors_ = self.eigenvectors_.astype(np.float32)
        if self.fit_inverse_transform:
            self._fit_inverse(self.eigenvectors_ * np.sqrt(self.eigenvalues_), rows)
        return self

    def _check(self, X: Table) -> Matrix:
        """The rows, after scikit-learn's checks; `gamma_` for their number of columns."""
        self._validate_params()
        refuse_masks_and_dates(X)
        if self.fit_inverse_transform and self.kernel == PRECOMPUTED:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        rows: Matrix = validate_data(self, X, accept_sparse="csr", copy=self.copy_X)
        if self.fit_inverse_transform and sparse.issparse(rows):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        self.gamma_ = 1 / rows.shape[1] if self.gamma is None else self.gamma
        return rows

    def _keep_coefficients(self) -> None:
        """What `transform` multiplies kernel products with."""
        scaled = np.zeros_like(self.eigenvectors_, dtype=np.float64)
        alive = self.eigenvalues_ > 0
        scaled[:, alive] = self.eigenvectors_[:, alive] / np.sqrt(self.eigenvalues_[alive])
        self._coef = np.ascontiguousarray(scaled - scaled.mean(axis=0))
        self._offset = self._column_means @ self._coef

    def _kernel_object(self) -> Kernel | None:
        return kernel_named(self.kernel, gamma=float(self.gamma_), coef0=self.coef0, degree=self.degree)

    def _by_pairs(self, X: Matrix, Y: Matrix | None = None) -> Array:
        """Kernels that mercer has no object for, and matrices that are given."""
        params: dict[str, object] = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        if callable(self.kernel):
            params = self.kernel_params or {}
        K = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, n_jobs=self.n_jobs, **params)
        return np.asarray(K, dtype=np.float64)

    def _products(self, X: Matrix) -> GramOperator:
        kernel = self._kernel_object()
        if kernel is None:
            return Precomputed(self._by_pairs(X))
        return kernel.gram(_double(X), n_jobs=self.n_jobs)

    def _centred(self, K: GramOperator) -> Centred:
        """HKH; a given matrix that is not symmetric is centred as it is, like scikit-learn does."""
        centred = Centred(K)
        self._column_means = centred.means
        if isinstance(K, Precomputed) and not np.array_equal(K.array, K.array.T):
            self._column_means = K.array.mean(axis=0)
            return Centred(Precomputed(KernelCenterer().fit_transform(K.array)))
        return centred

    def _decompose(self, K: Centred) -> None:
        n = K.shape[0]
        k = n if self.n_components is None else min(n, self.n_components)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        found = top_eigenpairs(
            K,
            k,
            method="dense" if self.eigen_solver == "dense" else "auto",
            tol=max(float(self.tol), TIGHTEST),
            max_iter=self.max_iter or 300,
            random_state=seed,
        )
        self.certificate_ = found.certificate
        values, vectors = found.value
        values = np.where(np.abs(values) <= np.array(found.certificate.residuals), 0.0, values)
        if self.eigen_solver == "randomized":
            self._refuse_large_negative(K, values, seed)
        values = _check_psd_eigenvalues(values, enable_warnings=False)
        vectors, _ = svd_flip(u=vectors, v=None)
        if self.remove_zero_eig or self.n_components is None:
            vectors = vectors[:, values > 0]
            values = values[values > 0]
        self.eigenvalues_ = values
        self.eigenvectors_ = vectors
        if not found.certificate.converged:
            warn(f"The eigenpairs did not converge: {found.certificate}", ConvergenceWarning)

    def _refuse_large_negative(self, K: Centred, values: Array, seed: int) -> None:
        """ "randomized" means the eigenvalues of largest modulus: a negative one among them is an error."""
        kernel = self._kernel_object()
        if kernel is not None and kernel.known_proof() is not None:
            return
        lowest = -top_eigenpairs(_Negative(K), 1, tol=1e-6, random_state=seed).value.values[0]
        if -lowest > values[-1]:
            _check_psd_eigenvalues(np.append(values, lowest), enable_warnings=False)

    def _fit_inverse(self, Y: Array, X: Matrix) -> None:
        found = solve(self._products(Y), X, float(self.alpha), tol=1e-8, keep=False)
        kind = np.dtype(np.float64)
        if X.dtype.kind == "f":
            kind = X.dtype
        self.dual_coef_ = found.value.astype(kind, copy=False)
        self.X_transformed_fit_ = Y

    # ── there and back ──────────────────────────────────────────────────────────────────────────────────────

    def fit_transform(self, X: Table, y: Targets | None = None, **params: Any) -> Array:
        """Fit the model from data in X and transform X."""
        self.fit(X, **params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def transform(self, X: Table) -> Floats:
        """Project X on the components."""
        check_is_fitted(self)
        rows: Matrix = validate_data(self, X, accept_sparse="csr", reset=False)
        Y: Array = self._against(rows, self.X_fit_, self._coef) - self._offset
        single = rows.dtype == np.float32
        return Y.astype(np.float32) if single else Y

    def inverse_transform(self, X: Table) -> Floats:
        """Transform components back to the input space, by the ridge regression of `fit`."""
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and hence the "
                "inverse transform is not available."
            )
        coef = np.asarray(self.dual_coef_, dtype=np.float64)
        found = self._against(np.asarray(X), self.X_transformed_fit_, coef)
        return found.astype(self.dual_coef_.dtype, copy=False)

    def _against(self, X: Matrix, sample: Matrix, coef: Array) -> Array:
        """k(X, sample) @ coef."""
        kernel = self._kernel_object()
        if kernel is None:
            found: Array = self._by_pairs(X, sample) @ coef
            return found
        if coef.shape[1] == 0:
            return np.empty((X.shape[0], 0))
        return np.asarray(
            Tiles(kernel, _double(X), _double(sample), n_jobs=self.n_jobs) @ np.ascontiguousarray(coef)
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        return tags

    @property
    def _n_features_out(self) -> int:
        """Number of transformed output features."""
        return len(self.eigenvalues_)


class _Negative(GramOperator):
    """-K."""

    kind = "negative"

    def __init__(self, inner: GramOperator) -> None:
        self.inner = inner
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: Array) -> Array:
        return -self.inner._matmat(V)

    def diag(self) -> Array:
        return -self.inner.diag()

    def block(self, rows: Index, cols: Index) -> Array:
        return -self.inner.block(rows, cols)

    def _transpose(self) -> _Negative:
        return self


def _double(X: Matrix) -> Matrix:
    return X.astype(np.float64, copy=False)
