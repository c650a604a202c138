"""The twins of `sklearn.gaussian_process`: `GaussianProcessRegressor` and `GaussianProcessClassifier`.

They take scikit-learn's kernel objects. Kernel values and the gradient of the evidence come from mercer's
engine (one contraction for all parameters, no n × n × p array) wherever the kernel can be translated, and
from the kernel's own `__call__` elsewhere.
"""

from __future__ import annotations

import time
from typing import Self

import numpy as np
import sklearn.gaussian_process as peer
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel
from sklearn.gaussian_process.kernels import Kernel as PeerKernel
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.errors import NotPositiveDefiniteError, warn
from mercer.gram import GramOperator
from mercer.machines.gaussian_process.evidence import evidence_at, factor_gram, log_evidence
from mercer.sklearn.careful import refuse_masks_and_dates
from mercer.sklearn.gp_kernels import Sample, cross, diagonal, operator
from mercer.sklearn.gp_process import (
    NEED_THETA,
    BinaryLaplace,
    Likelihood,
    Optimizer,
    Process,
    input_checks,
    takes_vectors,
)
from mercer.sklearn.twin import Twin
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Labels, Seed, Table, Targets

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]

# ── regression ──────────────────────────────────────────────────────────────────────────────────────────────


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, Process):
    """scikit-learn's `GaussianProcessRegressor` on mercer's engine.

    `certificate_` has the residual of the solve.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> model = GaussianProcessRegressor(RBF(1.0, "fixed")).fit([[0.0], [3.0]], [1.0, -1.0])
    >>> model.predict([[0.0], [1.5]]).round(6) + 0.0
    array([1., 0.])
    """

    _parameter_constraints = peer.GaussianProcessRegressor._parameter_constraints

    def __init__(
        self,
        kernel: PeerKernel | None = None,
        *,
        alpha: float | Array = 1e-10,
        optimizer: Optimizer = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state

    def fit(self, X: Table, y: Targets) -> Self:
        """Fit Gaussian process regression model."""
        begun = time.perf_counter()
        self._validate_params()
        refuse_masks_and_dates(X, y)
        self.kernel_ = ConstantKernel() * RBF() if self.kernel is None else clone(self.kernel)
        rows, targets = self._checked_pair(
            X, y, multi_output=True, y_numeric=True, **input_checks(self.kernel_)
        )
        seen = 1 if targets.ndim == 1 else targets.shape[1]
        if self.n_targets is not None and seen != self.n_targets:
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {seen} != {self.n_targets}."
            )
        targets = self._normalise(targets)
        self._check_alpha(len(targets))
        self.X_train_ = np.copy(rows) if self.copy_X_train else rows
        self.y_train_ = np.copy(targets) if self.copy_X_train else targets
        self._sample = Sample.of(self.X_train_, takes_vectors(self.kernel_))
        self._rng = check_random_state(self.random_state)
        self._solve(begun, self._search(self._rng))
        return self

    def _normalise(self, y: Array) -> Array:
        """y with mean 0 and deviation 1 for every target if asked; a constant target is only shifted."""
        if not self.normalize_y:
            shape = (y.shape[1],) if y.ndim == 2 else (1,)
            self._y_train_mean = np.zeros(shape)
            self._y_train_std = np.ones(shape)
            return y
        self._y_train_mean = np.mean(y, axis=0)
        spread = np.std(y, axis=0)
        level = 10 * np.finfo(float).eps * np.abs(y).max(axis=0)
        self._y_train_std = np.where(spread <= level, 1.0, spread)[()]
        normalised: Array = (y - self._y_train_mean) / self._y_train_std
        return normalised

    def _check_alpha(self, n: int) -> None:
        given = np.size(self.alpha)
        if given not in (1, n):
            raise ValueError(
                f"alpha must be a scalar or an array with same number of entries as y. ({given} != {n})"
            )

    @property
    def _noise(self) -> float | Array:
        return float(np.squeeze(self.alpha)) if np.size(self.alpha) == 1 else self.alpha

    @property
    def _columns(self) -> Array:
        return np.asarray(self.y_train_, dtype=float).reshape(len(self.y_train_), -1)

    def _evidence(self, K: GramOperator, gradient: bool) -> tuple[np.float64, Array]:
        found = log_evidence(K, self._columns, self._noise, gradient=gradient, diagnose=False)
        slope = np.empty(0) if found.gradient is None else found.gradient
        # a number of NumPy, as the peer's, so that arithmetic with it stays float64
        return np.float64(found.value), slope

    def _solve(self, begun: float, ended: Status | None) -> None:
        """`L_`, `alpha_` and the certificate, for the kernel found; the evidence if nothing was searched."""
        K = operator(self.kernel_, self._sample)
        try:
            factor = factor_gram(K, self._noise)
        except NotPositiveDefiniteError as error:
            advice = (
                f"The kernel, {self.kernel_}, is not returning a positive definite matrix. Try gradually "
                "increasing the 'alpha' parameter of your GaussianProcessRegressor estimator."
            )
            error.args = (advice, *error.args)
            raise
        Y = self._columns
        alpha = factor.solve(Y)
        if ended is None:
            self.log_marginal_likelihood_value_ = np.float64(evidence_at(factor, Y, alpha))
        self.L_ = np.tril(factor.lower)
        self.alpha_ = alpha.reshape(self.y_train_.shape)
        left = Y - K @ alpha - np.reshape(self._noise, (-1, 1)) * alpha
        size = np.linalg.norm(Y, axis=0)
        each = np.linalg.norm(left, axis=0) / np.where(size > 0, size, 1.0)
        self.certificate_ = Certificate(
            ended or Status.CONVERGED,
            "Cholesky (float64)",
            iterations=0,
            seconds=time.perf_counter() - begun,
            residual=float(each.max()),
            residuals=tuple(each.tolist()),
            added_diagonal=0.0,
            notes=K.notes,
        )

    def predict(
        self, X: Table, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Mean of the process at X, with its standard deviation or covariance if asked.

        Before `fit` it is the prior that answers.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        rows = self._checked_rows(X, **input_checks(self.kernel))
        if not hasattr(self, "X_train_"):
            return self._prior(rows, return_std, return_cov)
        new = Sample.of(rows, takes_vectors(self.kernel_))
        Ks = cross(self.kernel_, new, self._sample)
        mean: Array = self._y_train_std * (Ks @ self.alpha_) + self._y_train_mean
        if mean.ndim > 1 and mean.shape[1] == 1:
            mean = mean[:, 0]
        if not (return_std or return_cov):
            return mean
        half: Array = solve_triangular(self.L_, Ks.T, lower=True, check_finite=False)
        scale = np.atleast_1d(self._y_train_std) ** 2
        if return_cov:
            inside = operator(self.kernel_, new).dense() - half.T @ half
            out = inside[:, :, None] * scale
            return mean, out[:, :, 0] if out.shape[2] == 1 else out
        variance = diagonal(self.kernel_, new) - np.einsum("ij,ij->j", half, half)
        if np.any(variance < 0):
            warn("Predicted variances smaller than 0. Setting those variances to 0.")
            variance = np.maximum(variance, 0.0)
        deviation = np.sqrt(variance[:, None] * scale)
        return mean, deviation[:, 0] if deviation.shape[1] == 1 else deviation

    def _prior(self, X: Matrix, return_std: bool, return_cov: bool) -> Array | tuple[Array, Array]:
        kernel = self.kernel
        if kernel is None:
            kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
        targets = 1 if self.n_targets is None else self.n_targets
        new = Sample.of(X, takes_vectors(kernel))
        mean = np.zeros(len(X)) if targets == 1 else np.zeros((len(X), targets))
        if return_cov:
            K = np.array(operator(kernel, new).dense())
            return mean, np.repeat(K[:, :, None], targets, axis=2) if targets > 1 else K
        if return_std:
            deviation = np.sqrt(diagonal(kernel, new))
            return mean, np.repeat(deviation[:, None], targets, axis=1) if targets > 1 else deviation
        return mean

    def sample_y(self, X: Table, n_samples: int = 1, random_state: Seed = 0) -> Array:
        """Functions drawn from the process, at X: points × samples, or points × targets × samples."""
        rng: np.random.RandomState = check_random_state(random_state)
        mean, covariance = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            functions: Array = rng.multivariate_normal(mean, covariance, n_samples).T
            return functions
        targets = range(mean.shape[1])
        drawn = [rng.multivariate_normal(mean[:, t], covariance[..., t], n_samples).T for t in targets]
        return np.stack(drawn, axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


# ── classification ──────────────────────────────────────────────────────────────────────────────────────────


class GaussianProcessClassifier(ClassifierMixin, Twin):
    """scikit-learn's `GaussianProcessClassifier` on mercer's engine.

    Laplace's approximation, with one-vs-rest or one-vs-one for many classes.
    `mercer.GaussianProcessClassifier` has the softmax of many classes natively.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> model = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    >>> model = model.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [3.5]]).tolist(), model.base_estimator_.certificate_.status
    ([0, 1], 'converged')
    """

    _parameter_constraints = peer.GaussianProcessClassifier._parameter_constraints

    def __init__(
        self,
        kernel: PeerKernel | None = None,
        *,
        optimizer: Optimizer = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Seed = None,
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state
        self.multi_class = multi_class
        self.n_jobs = n_jobs

    def fit(self, X: Table, y: Targets) -> Self:
        """Fit Gaussian process classification model."""
        self._validate_params()
        if isinstance(self.kernel, CompoundKernel):
            raise ValueError("kernel cannot be a CompoundKernel")
        refuse_masks_and_dates(X, y)
        rows, labels = validate_data(self, X, y, multi_output=False, **input_checks(self.kernel))
        self.classes_ = np.unique(labels)
        self.n_classes_ = self.classes_.size
        if self.n_classes_ == 1:
            raise ValueError(
                "GaussianProcessClassifier requires 2 or more distinct classes; got 1 class "
                f"(only class {self.classes_[0]} is present)"
            )
        base = BinaryLaplace(
            self.kernel,
            optimizer=self.optimizer,
            n_restarts_optimizer=self.n_restarts_optimizer,
            max_iter_predict=self.max_iter_predict,
            warm_start=self.warm_start,
            copy_X_train=self.copy_X_train,
            random_state=self.random_state,
        )
        if self.n_classes_ > 2:
            many = OneVsRestClassifier if self.multi_class == "one_vs_rest" else OneVsOneClassifier
            self.base_estimator_: BaseEstimator = many(base, n_jobs=self.n_jobs)
        else:
            self.base_estimator_ = base
        self.base_estimator_.fit(rows, labels)
        values = [part.log_marginal_likelihood_value_ for part in self._parts]
        self.log_marginal_likelihood_value_ = np.float64(np.mean(values))
        return self

    @property
    def _parts(self) -> list[BinaryLaplace]:
        if self.n_classes_ == 2:
            return [self.base_estimator_]
        return list(self.base_estimator_.estimators_)

    @property
    def kernel_(self) -> PeerKernel:
        """The kernel found; a `CompoundKernel` of all of them for more than two classes."""
        if self.n_classes_ == 2:
            return self.base_estimator_.kernel_
        return CompoundKernel([part.kernel_ for part in self._parts])

    def _check(self, X: Table) -> Matrix:
        return validate_data(self, X, reset=False, **input_checks(self.kernel))

    def predict(self, X: Table) -> Labels:
        """Perform classification on an array of test vectors X."""
        check_is_fitted(self)
        predicted: Labels = self.base_estimator_.predict(self._check(X))
        return predicted

    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes."""
        check_is_fitted(self)
        if self.n_classes_ > 2 and self.multi_class == "one_vs_one":
            raise ValueError(
                "one_vs_one multi-class mode does not support predicting probability estimates. "
                "Use one_vs_rest mode instead."
            )
        probabilities: Array = self.base_estimator_.predict_proba(self._check(X))
        return probabilities

    def latent_mean_and_variance(self, X: Table) -> tuple[Array, Array]:
        """Mean and variance of the latent function; two classes only."""
        check_is_fitted(self)
        if self.n_classes_ > 2:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for binary "
                f"classification, received {self.n_classes_} classes."
            )
        mean, variance = self.base_estimator_.latent_mean_and_variance(self._check(X))
        return mean, variance

    def log_marginal_likelihood(
        self, theta: Array | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Likelihood:
        """Log marginal likelihood for the parameters `theta`; for more than two classes their mean."""
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError(NEED_THETA)
            return self.log_marginal_likelihood_value_
        at: Array = np.asarray(theta, dtype=np.float64)
        if self.n_classes_ == 2:
            return self._parts[0].log_marginal_likelihood(at, eval_gradient, clone_kernel=clone_kernel)
        if eval_gradient:
            raise NotImplementedError(
                "Gradient of log-marginal-likelihood not implemented for multi-class GPC."
            )
        parts = self._parts
        width = parts[0].kernel_.n_dims
        if len(at) == width:
            thetas = [at] * len(parts)
        elif len(at) == width * len(parts):
            thetas = np.split(at, len(parts))
        else:
            raise ValueError(
                f"Shape of theta must be either {width} or {width * len(parts)}. "
                f"Obtained theta with shape {len(at)}."
            )
        values = [
            part._likelihood_at(t, gradient=False, clone_kernel=clone_kernel)[0]
            for part, t in zip(parts, thetas, strict=True)
        ]
        return np.float64(np.mean(values))
