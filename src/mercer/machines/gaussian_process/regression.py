"""Gaussian process regression: mean, bands, hyperparameters from the evidence, and the part of every term (M10)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.arrays import Rows, column_names, read_rows
from mercer.errors import InputError, NotPositiveDefiniteError, ParameterError
from mercer.gram import GramOperator, Precomputed, Tiles
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Approximated, Given, check_gram
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process import features as gp_features
from mercer.machines.gaussian_process import views as gp_views
from mercer.machines.gaussian_process.certificate import certify, why_singular
from mercer.machines.gaussian_process.evidence import LOG_2PI, Evidence, factor_gram, log_evidence, log_loo
from mercer.machines.gaussian_process.inverses import (
    EstimatedEvidence,
    Exact,
    InFeatures,
    Inverse,
    Iterative,
    Later,
    estimate_evidence,
    iterative,
)
from mercer.machines.gaussian_process.loo import leave_one_out
from mercer.machines.gaussian_process.posterior import Posterior, Units
from mercer.machines.gaussian_process.search import search
from mercer.machines.gaussian_process.targets import new_noise, take_noise, take_targets
from mercer.machines.gaussian_process.tune import Objective, Tuned
from mercer.machines.shared.base import resolve
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Special, Whole
from mercer.memory import memory_limit
from mercer.solve.operator import relative
from mercer.solve.solution import Status
from mercer.sparse import Matrix

SOON = 2000  # rows that are conditioned on quickly enough after Ctrl-C
EXACT_ROWS = 10_000  # up to here a factorisation takes seconds; above it, conjugate gradients
REFINEMENTS = 3  # of α, where one solve leaves more than `tol`
ADDED = (
    1e-10  # of the largest variance: the least that leaves some digits of α when a diagonal has to be added
)
T = TypeVar("T")
OBJECTIVES = {"evidence": log_evidence, "loo": log_loo}


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, Machine):
    """y = f(x) + noise with f ~ GP(0, k): a mean and a band at every x, hyperparameters chosen by the data.

        α = (K + N)⁻¹ y,     mean(x) = Σ α_i k(x_i, x),     var(x) = k(x, x) - ‖L⁻¹ k(X, x)‖²,     K + N = L Lᵀ

    The noise N is every `White` term of the kernel and `noise`. Variances are what the prior has less a sum of squares; only
    what rounding makes negative, at most (n + 10)·2⁻⁵² of the prior variance each, is set to 0, and more than that is warned of.

    Parameters
    ----------
    kernel : Kernel, str
        A kernel, its text, or "precomputed". A kernel that leaves a lengthscale open, "RBF()", is one for standardised data: a
        lengthscale for each column, in proportion to its deviation, heights and noise in units of
        the variance of y. The lengthscales are searched together first, from several starts, and then one by one where there are 10
        rows or more for each column, or where `RBF(ard=True)` asks for it. A kernel with its numbers starts there, and also at the scales of the data if far from them.
    {shared parameters}

    Attributes
    ----------
    kernel_ : the kernel with the hyperparameters found.
    log_evidence_ : its log evidence (an estimate under "cg").
    alpha_ : α, n or n × targets, of the targets as modelled.
    certificate_ : residual, status of the search, added diagonal, and what else is worth knowing.
    X_fit_, y_fit_, noise_, y_mean_, y_scale_, n_iter_, n_features_in_

    >>> from mercer import GaussianProcessRegressor
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    >>> model = GaussianProcessRegressor("RBF(1.0) + White(0.01)", optimizer=None).fit(X, y)
    >>> mean, std = model.predict([[1.0], [4.0]], return_std=True)
    >>> mean.round(2), std.round(2)
    (array([ 0.97, -0.17]), array([0.1 , 0.99]))
    """

    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="The posterior of k̂(x, z) = φ(x)·φ(z), at given hyperparameters (optimizer=None), in n × features²; bands "
            "are widened by what the features leave out of k(x, x). Noise must be positive."
        ),
        "noise": Special(
            type="float, array of n or None",
            about="Variance of the noise of each row, in units of y², besides the kernel's `White` terms. It is not tuned.",
            reason="an array is checked with the rows, by `targets.take_noise`",
        ),
        "objective": Choice(
            tuple(OBJECTIVES),
            about="What the hyperparameters maximise: the log marginal likelihood, or the leave-one-out log predictive likelihood. Both "
            "are of the targets as modelled: under `normalize_y` with mean and scale of all rows, while `loo()` leaves the row out "
            "of these too.",
        ),
        "optimizer": Choice(
            ("L-BFGS-B",),
            none=True,
            about="None keeps the hyperparameters as given. Fixed ones are kept, bounded ones stay between their bounds, others within a "
            "factor of 1e5 of where they start.",
        ),
        "n_restarts": Whole(0, about="So many further searches from random starts, in parallel."),
        "normalize_y": Choice(
            ("auto", True, False, "mean"),
            about='True models (y - mean) / standard deviation of each target instead of y, "mean" models y - mean; predictions are in '
            'units of y all the same. "auto" is True where the kernel leaves a lengthscale open, else False.',
        ),
        "solver": Choice(
            ("auto", "cholesky", "cg"),
            about='"cholesky" is exact; "cg" never stores K and estimates log-determinant and traces, with the error stated in '
            '`certificate_`; "auto" is "cholesky" to 10 000 rows, if the n×n factor fits in `memory`.',
        ),
        "singular": Choice(
            ("refuse", "add"),
            about="What to do if K + N cannot be factored: raise an error that names the rows and the terms, or add a diagonal that does "
            "(twice the smallest found to do, and at least 1e-10 of the prior variance), and say how much and what it costs.",
        ),
        "max_iter": Whole(
            1, none=True, about="Steps of a search, None for no limit; the best found so far is kept."
        ),
        "probes": Whole(
            4, about='Random vectors of the estimates of "cg"; their error falls with its square root.'
        ),
        "tol": Number(
            0.0,
            1.0,
            about="Relative residual asked of α, by conjugate gradients or by the factor; a fit with more than ten times it has not "
            "converged.",
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "1.0*RBF() + White(0.1)",
        *,
        noise: Any = None,
        objective: str = "evidence",
        optimizer: str | None = "L-BFGS-B",
        n_restarts: int = 0,
        normalize_y: bool | str = "auto",
        solver: str = "auto",
        singular: str = "refuse",
        max_iter: int | None = 1000,
        max_seconds: float | None = None,
        probes: int = 16,
        tol: float = 1e-8,
        memory: int | str = "2GiB",
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        approximation: Any = None,
        strict: bool = False,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.objective = objective
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.normalize_y = normalize_y
        self.solver = solver
        self.singular = singular
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.probes = probes
        self.tol = tol
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.approximation = approximation
        self.strict = strict

    _inverse: Inverse
    X_fit_: Matrix

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the hyperparameters and condition on rows X with targets y: n numbers, or n × targets."""
        start = time.perf_counter()
        self._check_parameters()
        A = self._check_rows(X, reset=True)
        Y = take_targets(self, y, A.shape[0])
        if self.approximation is not None:
            gp_features.refuse_search(self, resolve(self.kernel, self._rows(A)))
        on = self._kernel_on(A)
        kernel = on.kernel
        self.X_fit_ = on.matrix if isinstance(on, Given) else A
        self.noise_ = take_noise(self, A.shape[0])
        self._fitted_rows = None if kernel is None else self._rows(A, "X_fit_")
        self._in_place = None
        if isinstance(on, Approximated):
            self._in_place = gp_features.in_features(on, self.noise_)
        self._exact = not self._approximated and self._choose_solver(A.shape[0], kernel)
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        notes = list(self._judged(on, self._looked_at(kernel)))
        tuned, added = self._with_enough_noise(lambda: self._tune(kernel, Y, notes), kernel, 0.0)
        self.n_iter_ = 0 if tuned is None else tuned.iterations
        if tuned is not None:
            assert isinstance(self.kernel_, Kernel)
            self.kernel_ = self.kernel_.with_theta(tuned.theta)
            notes += tuned.notes
        try:
            estimated, added = self._with_enough_noise(lambda: self._condition(Y, tuned), kernel, added)
        except KeyboardInterrupt:
            if tuned is None or tuned.kept is None:
                raise
            # The search is done: what it kept of its best θ is what there is.
            tuned = replace(tuned, status=Status.INTERRUPTED)
            estimated, added = self._with_enough_noise(lambda: self._condition(Y, tuned), kernel, added)
        self.certificate_ = certify(self, tuned, estimated, added, notes, start)
        return self

    def _choose_solver(self, n: int, kernel: Kernel | None) -> bool:
        """Whether to factor."""
        if self.solver == "cg" and kernel is not None:
            if self.objective == "loo":
                raise ParameterError(
                    "objective='loo' needs the inverse itself; use solver='cholesky', or the evidence."
                )
            return False
        if self.solver != "auto" or kernel is None:
            return True
        return n <= EXACT_ROWS and 8 * n * n <= memory_limit(self.memory)

    invalid: ClassVar[Invalid] = Invalid(
        "There is then no Gaussian process behind it, and a variance may come out negative.",
        "the kernel is not positive semi-definite: there is no Gaussian process behind it, and no meaning to variances",
    )

    def _looked_at(self, kernel: Kernel | None) -> GramOperator:
        """K as it is judged: one that will be factored, and that nothing proves, is looked at for symmetry first."""
        K = self._gram(kernel)
        if self._exact and kernel is not None and kernel.proof() is None:
            check_gram(K.dense(), str(kernel))
        return K

    def _gram(self, kernel: Kernel | None, n_jobs: int | None = None) -> GramOperator:
        if self._approximated:
            return self._fitted_on(self.X_fit_).gram()
        if kernel is None or self._fitted_rows is None:
            return Precomputed(self.X_fit_)
        return Tiles(kernel, self._fitted_rows, n_jobs=self.n_jobs if n_jobs is None else n_jobs)

    def _tune(self, kernel: Kernel | None, Y: np.ndarray, notes: list[str]) -> Tuned | None:
        """The search for θ; None where there is nothing to search."""
        if kernel is None or self.optimizer is None or len(kernel.theta) == 0:
            return None
        if self._constant:
            notes.append(
                "y is constant, so its likelihood has no maximum (the noise goes to 0): hyperparameters are as given."
            )
            return None
        return search(self, kernel, Y)

    def _objective(
        self, kernel: Kernel, Y: np.ndarray, rows: np.ndarray | None, n_jobs: int | None
    ) -> Objective:
        """The log likelihood that is maximised, as a function of θ: of all rows, or of some of them."""
        sample, noise, targets = self._fitted_rows, self.noise_, Y
        if rows is not None and sample is not None:
            sample, targets = sample.rows(rows), Y[rows]
            noise = noise if np.ndim(noise) == 0 else noise[rows]

        def exact(theta: np.ndarray) -> tuple[Any, ...]:
            assert sample is not None
            K = Tiles(kernel.with_theta(theta), sample, n_jobs=n_jobs)
            found = OBJECTIVES[self.objective](K, targets, noise, diagnose=False)
            whole = rows is None and self.objective == "evidence"
            kept = replace(found, gradient=None) if whole else None
            if found.gradient is None:
                raise clock.OutOfTime((found.value, kept))
            return found.value, found.gradient, kept

        def estimated(theta: np.ndarray) -> tuple[Any, ...]:
            kept = self._estimate(kernel.with_theta(theta), Y, gradient=True)
            found = kept[1].evidence
            if found.gradient is None:
                raise clock.OutOfTime((found.value, kept))
            return found.value, found.gradient, kept

        return exact if self._exact or rows is not None else estimated

    def _estimate(
        self, kernel: Kernel, Y: np.ndarray, *, gradient: bool
    ) -> tuple[Iterative, EstimatedEvidence]:
        inverse = iterative(
            kernel,
            self._fitted_rows,
            self.noise_,
            tol=float(self.tol),
            n_jobs=self.n_jobs,
            random_state=self._seed,
        )
        K = self._gram(kernel)
        found = estimate_evidence(
            inverse, K, Y, probes=self.probes, gradient=gradient, random_state=self._seed
        )
        return inverse, found

    def _condition(self, Y: np.ndarray, tuned: Tuned | None = None) -> EstimatedEvidence | None:
        """α and A⁻¹ at the hyperparameters of `kernel_`; by what the search kept if there is no time for more."""
        estimated = None
        interrupted = tuned is not None and tuned.status == Status.INTERRUPTED
        if interrupted and tuned is not None and tuned.kept is None and len(Y) > SOON:
            raise KeyboardInterrupt
        if tuned is not None and tuned.kept is not None and (interrupted or clock.short_of(tuned.seconds)):
            estimated, alpha, value = self._take_kept(tuned.kept)
        elif self._in_place is not None:
            self._inverse = inverse = self._in_place
            self.feature_coef_ = inverse.weights(Y)
            alpha = inverse.solve(Y)
            value = -0.5 * (float(np.vdot(Y, alpha)) + Y.shape[1] * (inverse.logdet() + len(Y) * LOG_2PI))
        elif self._exact:
            factor = factor_gram(self._gram(self._fitted_kernel), self.noise_)
            alpha = factor.solve(Y)
            self._inverse = Exact(factor)
            alpha = self._refine(alpha, Y)
            value = -0.5 * (float(np.vdot(Y, alpha)) + Y.shape[1] * (factor.logdet() + len(Y) * LOG_2PI))
        else:
            assert isinstance(self.kernel_, Kernel)
            self._inverse, estimated = self._estimate(self.kernel_, Y, gradient=self.optimizer is not None)
            alpha, value = estimated.evidence.alpha, estimated.evidence.value
        self._alpha = alpha
        self.alpha_ = alpha[:, 0] if self._single else alpha
        self.log_evidence_ = value
        return estimated

    def _take_kept(self, kept: Any) -> tuple[EstimatedEvidence | None, np.ndarray, float]:
        """α and the evidence of the best θ, as the search had them; a factor is made when it is first asked for."""
        if isinstance(kept, Evidence):
            self._inverse = Exact(Later(self._gram(self._fitted_kernel), self.noise_))
            return None, kept.alpha, kept.value
        self._inverse, estimated = kept
        return estimated, estimated.evidence.alpha, estimated.evidence.value

    def _refine(self, alpha: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """α with what its residual says added, as long as that halves the residual: rounding of one solve, taken back."""
        R = self._residual(alpha, Y)
        worst = float(relative(R, Y).max(initial=0.0))
        for _ in range(REFINEMENTS):
            if worst <= self.tol:
                break
            better = alpha + self._inverse.solve(R)
            R = self._residual(better, Y)
            now = float(relative(R, Y).max(initial=0.0))
            if not now < 0.5 * worst:
                break
            alpha, worst = better, now
        return alpha

    def _residual(self, alpha: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Y - (K + N)α."""
        return Y - self._gram(self._fitted_kernel) @ alpha - np.reshape(self.noise_, (-1, 1)) * alpha

    @property
    def posterior_(self) -> Posterior:
        """The posterior as a value: kernel, rows and noise, (K + N)⁻¹ and α."""
        check_is_fitted(self, "alpha_")
        return Posterior(
            self._fitted_on(self.X_fit_), self.noise_, self._inverse, self._alpha, self._units, self.n_jobs
        )

    @property
    def _units(self) -> Units:
        return Units(self.y_mean_, self.y_scale_, self._single)

    def _with_enough_noise(
        self, act: Callable[[], T], kernel: Kernel | None, added: float
    ) -> tuple[T, float]:
        """What `act` gives, and all that had to be added to the diagonal before it did."""
        while True:
            try:
                return act(), added
            except NotPositiveDefiniteError as error:
                more = max(self._missing_noise(error, kernel), added)
                self.noise_ = self.noise_ + more
                added += more

    def _missing_noise(self, error: NotPositiveDefiniteError, kernel: Kernel | None) -> float:
        """Refuse a Gram matrix that cannot be factored, with the whole diagnosis; or what to add that is enough."""
        if error.sufficient_diagonal is None and self._exact:
            try:
                factor_gram(self._gram(self._fitted_kernel), self.noise_)
            except NotPositiveDefiniteError as whole:
                error = whole
        if self.singular == "refuse" or error.sufficient_diagonal is None:
            raise NotPositiveDefiniteError(
                f"{error} {why_singular(kernel, self.noise_)}",
                error.pivot,
                error.duplicates,
                error.smallest_eigenvalue,
                error.sufficient_diagonal,
            ) from error
        prior = float(np.max(self._gram(self._fitted_kernel).diag()))
        return max(2.0 * error.sufficient_diagonal, ADDED * prior)

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, noise: Any = False
    ) -> Any:
        """The mean at rows X, with the standard deviations or the covariance matrix if asked.

        They are those of the function f; `noise=True` gives those of a new observation f + noise, with the kernel's
        `White` terms and the `noise` of the model, and `noise=variances` adds these to the White terms instead.
        """
        check_is_fitted(self, "alpha_")
        if return_std and return_cov:
            raise ParameterError("Not returning standard deviation and full covariance: ask for one of them.")
        A = self._check_rows(X, reset=False)
        mean = self._units.values(self._products(A, self.X_fit_, self._alpha)) + self._units.offset
        if not (return_std or return_cov):
            return mean
        if self._fitted_kernel is None:
            raise InputError(
                "a precomputed Gram matrix has no k(x, x) of new rows, so there is no band; pass the kernel itself."
            )
        posterior = self.posterior_
        rows = self._rows(A)
        extra = new_noise(posterior, noise, rows)
        if return_std:
            variance = gp_views.latent_variance(posterior, rows) + extra
            return mean, np.sqrt(self._units.squares(variance))
        covariance = gp_views.latent_covariance(posterior, rows)
        covariance[np.diag_indices_from(covariance)] += extra
        return mean, self._units.squares(covariance)

    def _functions(self) -> Functions:
        """The posterior mean, in units of y."""
        check_is_fitted(self, "alpha_")
        return self._functions_on(
            self.X_fit_,
            self._alpha,
            self.y_mean_,
            scale=self.y_scale_,
            observed=False,
            what="the posterior mean",
        )

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log evidence at `theta` (by default that of the fit), with its gradient if asked."""
        check_is_fitted(self, "alpha_")
        if theta is None and not eval_gradient:
            return self.log_evidence_
        gp_features.refuse(self.posterior_, "the evidence at other hyperparameters")
        kernel = self._fitted_kernel
        kernel = kernel if theta is None or kernel is None else kernel.with_theta(theta)
        Y = self.y_fit_.reshape(len(self.y_fit_), -1)
        if self._exact or kernel is None:
            found = log_evidence(self._gram(kernel), Y, self.noise_, gradient=eval_gradient)
        else:
            found = self._estimate(kernel, Y, gradient=eval_gradient)[1].evidence
        return (found.value, found.gradient) if eval_gradient else found.value

    def loo(self, return_std: bool = False) -> Any:
        """For every training row the mean (and standard deviation) of its observation given all the others; no refits.

        The hyperparameters are those of all rows; mean and scale of the targets (`normalize_y`) are those of the others.
        """
        check_is_fitted(self, "alpha_")
        if not isinstance(self._inverse, Exact | InFeatures):
            raise InputError("leave-one-out needs the inverse itself; fit with solver='cholesky'.")
        Y = self.y_fit_.reshape(len(self.y_fit_), -1)
        mean, std = leave_one_out(
            self.posterior_, Y, centred=self._centred, scaled=self._scaled, given=self.noise
        )
        if self._single:
            mean, std = mean[:, 0], std[:, 0]
        return (mean, std) if return_std else mean

    def decompose(self, X: Any, *, names: Any = None, full: bool = False) -> gp_views.Terms:
        """Mean and band of every term of a sum of kernels at rows X; see `Terms`."""
        posterior = self.posterior_
        return gp_views.decompose(posterior, self._rows(self._check_rows(X, reset=False)), names, full)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = None, *, prior: bool = False, noise: Any = False
    ) -> np.ndarray:
        """Random functions at rows X, one per column (rows × targets × samples for several targets).

        From the posterior, or from the prior if the model is not fitted or `prior=True`; with `noise=True`, observations.
        """
        rng = check_random_state(random_state)
        fitted = hasattr(self, "alpha_")
        if fitted and not prior:
            mean, covariance = self.predict(X, return_cov=True, noise=noise)
            return gp_views.sample_posterior(mean, covariance, n_samples, rng, self._single)
        if fitted:
            rows = self._rows(self._check_rows(X, reset=False))
        else:
            # Nothing is learned from X, not even its columns.
            rows = Rows(read_rows(X, self._takes_things()), "X", column_names(X))
        return gp_views.sample_prior(
            self._prior_kernel(rows),
            rows,
            n_samples,
            rng,
            noisy=isinstance(noise, bool | np.bool_) and bool(noise),
            units=self._units if fitted else None,
            n_jobs=self.n_jobs,
        )

    def input_gradient(self, X: Any, return_var: bool = False) -> Any:
        """∂mean/∂x at rows X, rows × columns (rows × columns × targets); with `return_var` also that of the variance of f."""
        posterior = self.posterior_
        return gp_views.input_gradient(posterior, self._rows(self._check_rows(X, reset=False)), return_var)

    def _prior_kernel(self, rows: Rows) -> Kernel:
        """The kernel of the fit, or before it the one that these rows make of `kernel=`."""
        kernel = self._fitted_kernel if hasattr(self, "kernel_") else resolve(self.kernel, rows)
        if kernel is None:
            raise InputError("a precomputed Gram matrix says nothing of other rows; pass the kernel itself.")
        return kernel
