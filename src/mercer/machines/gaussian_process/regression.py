"""Gaussian process regression: mean, bands, hyperparameters from the evidence, each term's part (M10)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Rows, column_names, read_rows
from mercer.errors import InputError, ParameterError
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Evaluated, Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process import features as gp_features
from mercer.machines.gaussian_process import views as gp_views
from mercer.machines.gaussian_process.certificate import certify
from mercer.machines.gaussian_process.conditioning import (
    OBJECTIVES,
    Conditioned,
    System,
    gram_to_judge,
    is_factored,
    with_enough_noise,
)
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.machines.gaussian_process.inverses import InFeatures, Inverse
from mercer.machines.gaussian_process.loo import leave_one_out
from mercer.machines.gaussian_process.posterior import Posterior, Units
from mercer.machines.gaussian_process.search import search
from mercer.machines.gaussian_process.smoother import process_smoother
from mercer.machines.gaussian_process.targets import new_noise, take_noise, take_targets
from mercer.machines.gaussian_process.tune import Tuned, is_searched
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import resolve
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Special, Whole
from mercer.memory import memory_limit
from mercer.progress import say
from mercer.solve.anytime import Anytime
from mercer.solve.direct import TIMED_ROWS, seconds_of_factor
from mercer.solve.left_out import Smoother
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.threads import blas_for
from mercer.typing import Array, Memory, Numbers, Seed, Table, Targets


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, Machine):
    """y = f(x) + noise with f ~ GP(0, k): a mean and a band at every x, hyperparameters chosen by the data.

        K + N = L Lᵀ,    α = (K + N)⁻¹ y,    mean(x) = Σ α_i k(x_i, x),     var(x) = k(x, x) - ‖L⁻¹ k(X, x)‖²

    The noise N is every `White` term of the kernel and `noise`. Variances are what the prior has less a sum
    of squares; only what rounding makes negative, at most (n + 10)·2⁻⁵² of the prior variance each, is set
    to 0, and more than that is warned of.

    Parameters
    ----------
    kernel : Kernel, str
        A kernel, its text, or "precomputed". A kernel that leaves a lengthscale open, "RBF()", is one for
        standardised data: a lengthscale for each column, in proportion to its deviation, heights and noise
        in units of the variance of y. The lengthscales are searched together first, from several starts,
        and then one by one where there are 10 rows or more for each column, or where `RBF(ard=True)` asks
        for it. A kernel with its numbers starts there, and also at the scales of the data if far from them.
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

    on_cluster = True

    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="The posterior of k̂(x, z) = φ(x)·φ(z), at given hyperparameters (optimizer=None), in n × "
            "features²; bands are widened by what the features leave out of k(x, x). Noise must be positive."
        ),
        "noise": Special(
            type="float, array of n or None",
            about="Variance of the noise of each row, in units of y², besides the kernel's `White` terms. "
            "It is not tuned.",
            reason="an array is checked with the rows, by `targets.take_noise`",
        ),
        "objective": Choice(
            tuple(OBJECTIVES),
            about="What the hyperparameters maximise: the log marginal likelihood, or the leave-one-out log "
            "predictive likelihood. Both are of the targets as modelled: under `normalize_y` with mean and "
            "scale of all rows, while `loo()` leaves the row out of these too.",
        ),
        "optimizer": Choice(
            ("L-BFGS-B",),
            none=True,
            about="None keeps the hyperparameters as given. Fixed ones are kept, bounded ones stay between "
            "their bounds, others within a factor of 1e5 of where they start.",
        ),
        "normalize_y": Choice(
            ("auto", True, False, "mean"),
            about='True models (y - mean) / standard deviation of each target instead of y, "mean" models y '
            '- mean; predictions are in units of y all the same. "auto" is True where the kernel leaves a '
            "lengthscale open, else False.",
        ),
        "solver": Choice(
            ("auto", "cholesky", "cg"),
            about='"cholesky" is exact; "cg" never stores K and estimates log-determinant and traces, with '
            'the error stated in `certificate_`; "auto" is "cholesky" if the n×n factor fits in `memory` '
            "and is predicted to cost at most three times as much as an estimate.",
        ),
        "singular": Choice(
            ("refuse", "add"),
            about="What to do if K + N cannot be factored: raise an error that names the rows and the "
            "terms, or add a diagonal that does (twice the smallest found to do, and at least 1e-10 of the "
            "prior variance), and say how much and what it costs.",
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
            about="Relative residual asked of α, by conjugate gradients or by the factor; a fit with more "
            "than ten times it has not converged.",
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "1.0*RBF() + White(0.1)",
        *,
        noise: Numbers | None = None,
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
        memory: Memory = "2GiB",
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
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

    X_fit_: Matrix
    y_fit_: Array
    noise_: Array | float
    y_mean_: Array
    y_scale_: Array
    alpha_: Array
    log_evidence_: float
    _inverse: Inverse
    _alpha: Array
    _exact: bool
    _seed: int
    _single: bool
    _centred: bool
    _scaled: bool
    _constant: bool

    invalid: ClassVar[Invalid] = Invalid(
        "There is then no Gaussian process behind it, and a variance may come out negative.",
        "the kernel is not positive semi-definite: there is no Gaussian process behind it, and no meaning to "
        "variances",
    )

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets) -> Self:
        """Choose the hyperparameters and condition on rows X with targets y: n numbers, or n × targets."""
        start = time.perf_counter()
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        Y = take_targets(self, y, A.shape[0])
        if self.approximation is not None:
            resolved = resolve(self.kernel, self.as_rows(A))
            if is_searched(resolved, self.optimizer):
                gp_features.refuse_search(resolved)
        on = self._kernel_on(A)
        kernel = on.kernel
        self.X_fit_ = on.matrix if isinstance(on, Given) else A
        self.noise_ = take_noise(self, A.shape[0])
        notes: list[str] = []
        self._exact = not self.is_approximated and is_factored(self, A, kernel, Y.shape[1], notes)
        if self._exact and self.verbose and A.shape[0] >= TIMED_ROWS:
            seconds = seconds_of_factor(A.shape[0], np.float64)
            say(f"{A.shape[0]} rows: each factor of their Gram matrix will take some {seconds:.2g} s")
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        system = self._system(on, Y)
        notes += self._judged(on, gram_to_judge(system))
        refuse = self.singular == "refuse"
        tuned, system = with_enough_noise(system, lambda s: self._tune(s, notes), kernel, refuse=refuse)
        self.n_iter_ = 0
        if tuned is not None and kernel is not None:
            self.n_iter_ = tuned.iterations
            self.kernel_ = kernel.with_theta(tuned.theta)
            system = system.at(self.kernel_)
            notes += tuned.notes
        gradient = self.optimizer is not None
        # After Ctrl-C what the search kept of its best θ is what there is.
        with Anytime(best=None if tuned is None else tuned.kept) as run:
            found, system = with_enough_noise(
                system, lambda s: s.condition(tuned, gradient=gradient), kernel, refuse=refuse
            )
        if run.interrupted and tuned is not None:
            cut = tuned = replace(tuned, status=Status.INTERRUPTED)
            found, system = with_enough_noise(
                system, lambda s: s.condition(cut, gradient=gradient), kernel, refuse=refuse
            )
        self._keep(system, found)
        self.certificate_ = certify(
            self._posterior(system.on),
            tuned,
            found.estimated,
            added=system.added,
            tol=float(self.tol),
            objective=self.objective,
            notes=notes,
            start=start,
        )
        return self

    def _system(self, on: KernelOnRows, Y: Array) -> System:
        """(K + N) α = Y for a kernel on the rows of fit."""
        return System(
            on,
            self.noise_,
            Y,
            self.n_jobs,
            exact=self._exact,
            tol=float(self.tol),
            objective=self.objective,
            probes=self.probes,
            seed=self._seed,
            memory=memory_limit(self.memory),
        )

    def _fitted_system(self) -> System:
        """The system of the fit, with the kernel and the noise found."""
        return self._system(self._on(), self._Y)

    def _tune(self, system: System, notes: list[str]) -> Tuned | None:
        """The search for θ; None where there is nothing to search."""
        kernel = system.on.kernel
        if not is_searched(kernel, self.optimizer):
            return None
        if self._constant:
            notes.append(
                "y is constant, so its likelihood has no maximum (the noise goes to 0): hyperparameters are "
                "as given."
            )
            return None
        return search(self, kernel, system)

    def _keep(self, system: System, found: Conditioned) -> None:
        self.noise_ = system.noise
        self._inverse = found.inverse
        self._alpha = found.alpha
        self.alpha_ = found.alpha[:, 0] if self._single else found.alpha
        self.log_evidence_ = found.value
        if isinstance(found.inverse, InFeatures):
            self.feature_coef_ = found.inverse.weights(system.Y)

    # ── the posterior ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def posterior_(self) -> Posterior:
        """The posterior as a value: kernel, rows and noise, targets, (K + N)⁻¹ and α."""
        check_is_fitted(self, "alpha_")
        return self._posterior(self._on())

    def _posterior(self, on: KernelOnRows) -> Posterior:
        given = None
        if self.noise is not None:
            given = take_noise(self, len(self._alpha))
        return Posterior(
            on,
            self.noise_,
            self._Y,
            self.n_jobs,
            inverse=self._inverse,
            alpha=self._alpha,
            units=self._units,
            noise_in_y=given,
        )

    def _on(self) -> KernelOnRows:
        """The kernel of the fit on all rows of it; a Gram matrix that was given is kept whole."""
        on = self._fitted_on(self.X_fit_)
        return replace(on, matrix=self.X_fit_) if isinstance(on, Given) else on

    @property
    def _Y(self) -> Array:
        """The targets in units of the model, n × targets."""
        return self.y_fit_[:, None] if self.y_fit_.ndim == 1 else self.y_fit_

    @property
    def _units(self) -> Units:
        return Units(self.y_mean_, self.y_scale_, self._single, self._centred, self._scaled)

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def predict(
        self, X: Table, return_std: bool = False, return_cov: bool = False, *, noise: Numbers | bool = False
    ) -> Array | tuple[Array, Array]:
        """The mean at rows X, with the standard deviations or the covariance matrix if asked.

        They are those of the function f; `noise=True` gives those of a new observation f + noise, with the
        kernel's `White` terms and the `noise` of the model, and `noise=variances` adds these to the White
        terms instead.
        """
        self.require_fit("alpha_")
        if return_std and return_cov:
            raise ParameterError("Not returning standard deviation and full covariance: ask for one of them.")
        A = self.check_rows(X, reset=False)
        if not (return_std or return_cov):
            return self._units.values(self._products(A, self.X_fit_, self._alpha)) + self._units.offset
        if self._fitted_kernel is None:
            raise InputError(
                "a precomputed Gram matrix has no k(x, x) of new rows, so there is no band; pass the kernel "
                "itself."
            )
        on = self._on()
        posterior = self._posterior(on)
        rows = on.new_rows(A) if isinstance(on, Evaluated) else self.as_rows(A)
        mean = self._units.values(self._mean_on(on, A, rows)) + self._units.offset
        extra = new_noise(posterior, noise, rows)
        if return_std:
            variance = gp_views.latent_variance(posterior, rows) + extra
            return mean, np.sqrt(self._units.squares(variance))
        covariance = gp_views.latent_covariance(posterior, rows)
        covariance[np.diag_indices_from(covariance)] += extra
        return mean, self._units.squares(covariance)

    def _mean_on(self, on: KernelOnRows, A: Matrix, rows: Rows) -> Array:
        """The mean at new rows in units of the model; with a kernel, on rows read for the band too."""
        if isinstance(on, Evaluated):
            return on.products(rows, self._alpha)
        return self._products(A, self.X_fit_, self._alpha)

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

    def log_marginal_likelihood(
        self, theta: Numbers | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, Array | None]:
        """The log evidence at `theta` (by default that of the fit), with its gradient if asked."""
        check_is_fitted(self, "alpha_")
        if theta is None and not eval_gradient:
            return self.log_evidence_
        gp_features.refuse(self.posterior_, "the evidence at other hyperparameters")
        system = self._fitted_system()
        kernel = system.on.kernel
        if theta is not None and kernel is not None:
            system = system.at(kernel.with_theta(theta))
        if self._exact or kernel is None:
            found = log_evidence(system.gram(), system.Y, system.noise, gradient=eval_gradient)
        else:
            found = system.estimate(gradient=eval_gradient)[1].evidence
        return (found.value, found.gradient) if eval_gradient else found.value

    def loo(self, return_std: bool = False) -> Array | tuple[Array, Array]:
        """For every training row the mean (and standard deviation) of its observation given all the others.

        There are no refits. The hyperparameters are those of all rows; mean and scale of the targets
        (`normalize_y`) are those of the others. With landmarks, a row that is one stays one without its
        target, and is said with more certainty than a new row would be.
        """
        mean, std = leave_one_out(self.posterior_)
        if self._single:
            mean = mean[:, 0]
            std = std[:, 0]
        return (mean, std) if return_std else mean

    def smoother(self, diagonal: Array | None = None) -> Smoother:
        """The posterior mean as a smoother: its predictions without each row, and with one more.

        See `solve.left_out`; `diagonal` is that of (K + N)⁻¹, where it is known.
        """
        with blas_for(len(self._alpha)):
            return process_smoother(self.posterior_, diagonal)

    def fit_smoother(self, X: Table, y: Targets) -> Smoother:
        """Fit, and the fit as a smoother."""
        return self.fit(X, y).smoother()

    def decompose(
        self, X: Table, *, names: Sequence[str] | None = None, full: bool = False
    ) -> gp_views.Terms:
        """Mean and band of every term of a sum of kernels at rows X; see `Terms`."""
        posterior = self.posterior_
        return gp_views.decompose(posterior, self.as_rows(self.check_rows(X, reset=False)), names, full)

    def sample_y(
        self,
        X: Table,
        n_samples: int = 1,
        random_state: Seed = None,
        *,
        prior: bool = False,
        noise: Numbers | bool = False,
    ) -> Array:
        """Random functions at rows X, one per column (rows × targets × samples for several targets).

        From the posterior, or from the prior if the model is not fitted or `prior=True`; with `noise=True`,
        observations.
        """
        rng = check_random_state(random_state)
        fitted = hasattr(self, "alpha_")
        if fitted and not prior:
            mean, covariance = self.predict(X, return_cov=True, noise=noise)
            return gp_views.sample_posterior(mean, covariance, n_samples, rng, self._single)
        if fitted:
            rows = self.as_rows(self.check_rows(X, reset=False))
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

    def input_gradient(self, X: Table, return_var: bool = False) -> Array | tuple[Array, Array]:
        """∂mean/∂x at rows X, rows × columns (rows × columns × targets).

        With `return_var` also that of the variance of f.
        """
        posterior = self.posterior_
        return gp_views.input_gradient(posterior, self.as_rows(self.check_rows(X, reset=False)), return_var)

    def _prior_kernel(self, rows: Rows) -> Kernel:
        """The kernel of the fit, or before it the one that these rows make of `kernel=`."""
        kernel = self._fitted_kernel if hasattr(self, "kernel_") else resolve(self.kernel, rows)
        if kernel is None:
            raise InputError("a precomputed Gram matrix says nothing of other rows; pass the kernel itself.")
        return kernel
