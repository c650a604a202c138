"""What the Gaussian process twins share: the search for a kernel's parameters, and two classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.gaussian_process.kernels import Kernel as PeerKernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.errors import NotPositiveDefiniteError, warn
from mercer.gram import GramOperator
from mercer.machines.gaussian_process.averages import average_logistic
from mercer.machines.gaussian_process.laplace import Logistic, TwoClasses
from mercer.sklearn.gp_kernels import Path, Sample, cross, diagonal, operator
from mercer.sklearn.twin import Twin
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Labels, Seed, Table

# rows that are conditioned on quickly enough after Ctrl-C
SOON = 1000
NEED_THETA = "Gradient can only be evaluated for theta!=None"

Optimizer: TypeAlias = str | Callable[..., tuple[Array, float]] | None
# a log marginal likelihood, with its gradient where that was asked for
Likelihood: TypeAlias = np.float64 | float | tuple[np.float64 | float, Array]


class Process(Twin):
    """What the two share: the kernel, its inputs, and the search for its parameters."""

    kernel: PeerKernel | None
    kernel_: PeerKernel
    optimizer: Optimizer
    n_restarts_optimizer: int
    log_marginal_likelihood_value_: float
    y_train_: Labels
    _sample: Sample

    def log_marginal_likelihood(
        self, theta: Array | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Likelihood:
        """Log marginal likelihood of the data for the kernel parameters `theta`, by default those found."""
        if theta is None:
            if eval_gradient:
                raise ValueError(NEED_THETA)
            return self.log_marginal_likelihood_value_
        value, slope = self._likelihood_at(theta, gradient=eval_gradient, clone_kernel=clone_kernel)
        return (value, slope) if eval_gradient else value

    def _likelihood_at(
        self, theta: Array, *, gradient: bool, clone_kernel: bool
    ) -> tuple[np.float64 | float, Array]:
        """The evidence and its gradient (empty if not asked for); -∞ where K is not positive definite."""
        theta = np.asarray(theta, dtype=np.float64)
        kernel = self.kernel_
        if clone_kernel:
            kernel = kernel.clone_with_theta(theta)
        else:
            kernel.theta = theta
        return self._likelihood_of(operator(kernel, self._sample), theta, gradient=gradient)

    def _likelihood_of(
        self, K: GramOperator, theta: Array, *, gradient: bool
    ) -> tuple[np.float64 | float, Array]:
        try:
            return self._evidence(K, gradient)
        except NotPositiveDefiniteError:
            return -np.inf, np.zeros_like(theta)

    def _evidence(self, K: GramOperator, gradient: bool) -> tuple[np.float64, Array]:
        raise NotImplementedError

    def _search(self, rng: np.random.RandomState) -> Status | None:
        """Give `kernel_` the parameters of the largest evidence, and say how the search ended.

        It starts from the kernel's own parameters and from random ones between the bounds. Ctrl-C keeps the
        best so far, where conditioning on the rows takes no time. None where there is nothing to search; the
        evidence is then what conditioning finds.
        """
        if self.optimizer is None or self.kernel_.n_dims == 0:
            return None
        bounds = self.kernel_.bounds
        starts = [self.kernel_.theta]
        if self.n_restarts_optimizer > 0:
            if not np.isfinite(bounds).all():
                raise ValueError(
                    "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
                    "finite."
                )
            starts += [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(self.n_restarts_optimizer)]
        run = Anytime[tuple[Array, float]]()
        with run:
            found = [self._optimize(start, bounds, run) for start in starts]
            run.best = min(found, key=lambda pair: pair[1])
            run.status = Status.CONVERGED
        assert run.best is not None
        theta, cost = run.best
        self.kernel_.theta = theta
        self.log_marginal_likelihood_value_ = -cost
        if not run.interrupted:
            self.kernel_._check_bounds_params()
        return run.status

    def _optimize(
        self, start: Array, bounds: Array, run: Anytime[tuple[Array, float]]
    ) -> tuple[Array, float]:
        """The best θ from one start, and minus its evidence; the best on the way is kept for Ctrl-C."""
        soon = len(self.y_train_) <= SOON

        path = Path(self.kernel_, self._sample)

        def objective(theta: Array, eval_gradient: bool = True) -> Likelihood:
            value, gradient = self._likelihood_of(path.at(theta), theta, gradient=eval_gradient)
            if soon and np.isfinite(value) and (run.best is None or -value < run.best[1]):
                run.best = (np.array(theta), -float(value))
            return (-value, -gradient) if eval_gradient else -value

        if callable(self.optimizer):
            theta, value = self.optimizer(objective, start, bounds=bounds)
            return theta, value
        done = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds)
        if done.status != 0:
            warn(
                f"lbfgs failed to converge after {done.nit} iteration(s) (status={done.status}): "
                f"{done.message}. Scale the data, change the bounds of the kernel's parameters, or pass an "
                "optimizer with more iterations.",
                ConvergenceWarning,
            )
        return done.x, done.fun


def takes_vectors(kernel: PeerKernel | None) -> bool:
    return kernel is None or bool(kernel.requires_vector_input)


def input_checks(kernel: PeerKernel | None) -> dict[str, Any]:
    vectors = takes_vectors(kernel)
    return {"ensure_2d": vectors, "dtype": "numeric" if vectors else None}


class BinaryLaplace(Process):
    """Two classes, as the base of `GaussianProcessClassifier`, with the attributes that scikit-learn's has.

    `f_cached` is the latent mode, `pi_` the probabilities of the training rows at the mode, `W_sr_` and `L_`
    the factors.
    """

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
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.max_iter_predict = max_iter_predict
        self.warm_start = warm_start
        self.copy_X_train = copy_X_train
        self.random_state = random_state

    def fit(self, X: Matrix, y: Labels) -> Self:
        """Find the kernel's parameters and the mode."""
        begun = time.perf_counter()
        if self.kernel is None:
            self.kernel_ = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
        else:
            self.kernel_ = clone(self.kernel)
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
            self._last: Array | None = None
        ended = self._search(self.rng)
        mode = self._mode(operator(self.kernel_, self._sample).dense())
        if ended is None:
            self.log_marginal_likelihood_value_ = np.float64(mode.evidence)
        self.f_cached = mode.f
        self.W_sr_ = mode.root
        self.L_ = np.tril(mode.lower)
        self.pi_ = self.y_train_ - mode.g
        self._laplace_mode = mode
        self.certificate_ = Certificate(
            Status.worst((ended or Status.CONVERGED, mode.status)),
            "Laplace approximation (logistic), Newton",
            iterations=mode.iterations,
            seconds=time.perf_counter() - begun,
            residual=mode.residual,
            added_diagonal=0.0,
        )
        return self

    def _mode(self, K: Array) -> TwoClasses:
        found = self._likelihood.mode(K, self._last, max_iter=self.max_iter_predict)
        if self.warm_start:
            self._last = found.a
        assert isinstance(found, TwoClasses)
        return found

    def _evidence(self, K: GramOperator, gradient: bool) -> tuple[np.float64, Array]:
        mode = self._mode(K.dense())
        slope = K.contract(W=mode.weights()) if gradient else np.empty(0)
        return np.float64(mode.evidence), slope

    def _cross(self, X: Table) -> tuple[Sample, Array]:
        new = Sample.of(X, takes_vectors(self.kernel_))
        return new, cross(self.kernel_, new, self._sample)

    def predict(self, X: Table) -> Labels:
        """The more probable class."""
        check_is_fitted(self)
        _, Ks = self._cross(X)
        codes = (Ks @ self._laplace_mode.g > 0).astype(int)
        predicted: Labels = self.classes_[codes]
        return predicted

    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × 2: the logistic function averaged over the latent Gaussian, to rounding."""
        p = average_logistic(*self.latent_mean_and_variance(X))
        return np.column_stack([1.0 - p, p])

    def latent_mean_and_variance(self, X: Table) -> tuple[Array, Array]:
        """Mean and variance of the latent function at X."""
        check_is_fitted(self)
        new, Ks = self._cross(X)
        return self._laplace_mode.latent(Ks, diagonal(self.kernel_, new))
