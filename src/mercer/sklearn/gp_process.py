"""What the Gaussian process twins share: the search for a kernel's parameters, and the classifier of two classes."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.errors import NotPositiveDefiniteError, warn
from mercer.machines.gaussian_process.averages import average_logistic
from mercer.machines.gaussian_process.laplace import Logistic, TwoClasses
from mercer.machines.shared.publish import Published
from mercer.sklearn.gp_kernels import Sample, cross, diagonal, operator
from mercer.solve.solution import Certificate, Status
from mercer.theory.claims import Examination

SOON = 1000  # rows that are conditioned on quickly enough after Ctrl-C
NEED_THETA = "Gradient can only be evaluated for theta!=None"


class Process(Published, BaseEstimator):
    """What the two share: the kernel, its inputs, and the search for its parameters."""

    kernel: Any
    optimizer: Any
    n_restarts_optimizer: int
    log_marginal_likelihood_value_: float
    y_train_: Any

    def _examine(self, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
        """Hand what was published, and the same numbers recomputed, to `mercer.verify`."""
        from mercer.sklearn.examine import examine_twin

        examine_twin(self, exam, X, y, sample_weight)

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Log marginal likelihood of the training data for the kernel parameters `theta`, by default those found."""
        if theta is None:
            if eval_gradient:
                raise ValueError(NEED_THETA)
            return self.log_marginal_likelihood_value_
        theta = np.asarray(theta, dtype=float)
        kernel = self.kernel_.clone_with_theta(theta) if clone_kernel else self.kernel_
        if not clone_kernel:
            kernel.theta = theta
        try:
            return self._evidence(kernel, eval_gradient)
        except NotPositiveDefiniteError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf

    def _evidence(self, kernel: Any, eval_gradient: bool) -> Any:
        raise NotImplementedError

    def _search(self, rng: Any) -> Status:
        """`kernel_` with the parameters of the largest evidence, from its own and from random ones between the bounds.

        Ctrl-C keeps the best so far, where conditioning on the rows takes no time: how the search ended is the answer.
        """
        if self.optimizer is None or self.kernel_.n_dims == 0:
            theta = self.kernel_.theta
            self.log_marginal_likelihood_value_ = self.log_marginal_likelihood(theta, clone_kernel=False)
            return Status.CONVERGED
        bounds = self.kernel_.bounds
        starts = [self.kernel_.theta]
        if self.n_restarts_optimizer > 0:
            if not np.isfinite(bounds).all():
                raise ValueError(
                    "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are finite."
                )
            starts += [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(self.n_restarts_optimizer)]
        status: Status = Status.CONVERGED
        tried: list[tuple[np.ndarray, float]] = []
        try:
            found = [self._optimize(start, bounds, tried) for start in starts]
        except KeyboardInterrupt:
            if not tried or len(self.y_train_) > SOON:
                raise
            found, status = tried, Status.INTERRUPTED
        best = min(found, key=lambda pair: pair[1])
        self.kernel_.theta = best[0]
        self.log_marginal_likelihood_value_ = -best[1]
        if status == Status.CONVERGED:
            self.kernel_._check_bounds_params()
        return status

    def _optimize(
        self, start: np.ndarray, bounds: np.ndarray, tried: list[tuple[np.ndarray, float]]
    ) -> tuple[np.ndarray, float]:
        """The best θ from one start, and minus its evidence; every θ on the way is added to `tried`."""

        def objective(theta: np.ndarray, eval_gradient: bool = True) -> Any:
            found = self.log_marginal_likelihood(theta, eval_gradient, clone_kernel=False)
            value = float(found[0] if eval_gradient else found)
            if np.isfinite(value):
                tried.append((np.array(theta), -value))
            return (-found[0], -found[1]) if eval_gradient else -found

        if callable(self.optimizer):
            theta, value = self.optimizer(objective, start, bounds=bounds)
            return theta, value
        done = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds)
        if done.status != 0:
            warn(
                f"lbfgs failed to converge after {done.nit} iteration(s) (status={done.status}): {done.message}. Scale the "
                "data, change the bounds of the kernel's parameters, or pass an optimizer with more iterations.",
                ConvergenceWarning,
            )
        return done.x, done.fun


def takes_vectors(kernel: Any) -> bool:
    return kernel is None or bool(kernel.requires_vector_input)


def input_checks(kernel: Any) -> dict[str, Any]:
    vectors = takes_vectors(kernel)
    return {"ensure_2d": vectors, "dtype": "numeric" if vectors else None}


class BinaryLaplace(Process):
    """Two classes, as the base of `GaussianProcessClassifier`, with the attributes that scikit-learn's has.

    `f_cached` is the latent mode, `pi_` the probabilities of the training rows at the mode, `W_sr_` and `L_` the factors.
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the kernel's parameters and the mode."""
        begun = time.perf_counter()
        default = self.kernel is None
        self.kernel_ = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed") if default else clone(self.kernel)
        self.rng = check_random_state(self.random_state)
        self.X_train_ = np.copy(X) if self.copy_X_train else X
        self.classes_, self.y_train_ = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"{type(self).__name__} requires 2 classes; got {len(self.classes_)}: {self.classes_}."
            )
        self._sample = Sample.of(self.X_train_, takes_vectors(self.kernel_))
        self._likelihood = Logistic(2.0 * self.y_train_ - 1.0)
        if not (self.warm_start and len(getattr(self, "_last", ())) == len(self.y_train_)):
            self._last: np.ndarray | None = None
        ended = self._search(self.rng)
        found = self._mode(operator(self.kernel_, self._sample).dense())
        self.f_cached, self.W_sr_, self.L_ = found.f, found.root, np.tril(found.lower)
        self.pi_ = self.y_train_ - found.g
        self._found = found
        self.certificate_ = Certificate(
            Status.worst((ended, found.status)),
            "Laplace approximation (logistic), Newton",
            iterations=found.iterations,
            seconds=time.perf_counter() - begun,
            residual=found.residual,
            added_diagonal=0.0,
        )
        return self

    def _mode(self, K: np.ndarray) -> TwoClasses:
        found = self._likelihood.mode(K, self._last, max_iter=self.max_iter_predict)
        if self.warm_start:
            self._last = found.a
        assert isinstance(found, TwoClasses)
        return found

    def _evidence(self, kernel: Any, eval_gradient: bool) -> Any:
        K = operator(kernel, self._sample)
        found = self._mode(K.dense())
        value = np.float64(found.evidence)
        return (value, K.contract(W=found.weights())) if eval_gradient else value

    def _cross(self, X: Any) -> tuple[Sample, np.ndarray]:
        new = Sample.of(X, takes_vectors(self.kernel_))
        return new, cross(self.kernel_, new, self._sample)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class."""
        check_is_fitted(self)
        _, Ks = self._cross(X)
        return self.classes_[(Ks @ self._found.g > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities n × 2: the logistic function averaged over the latent Gaussian, to rounding."""
        p = average_logistic(*self.latent_mean_and_variance(X))
        return np.column_stack([1.0 - p, p])

    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function at X."""
        check_is_fitted(self)
        new, Ks = self._cross(X)
        return self._found.latent(Ks, diagonal(self.kernel_, new))
