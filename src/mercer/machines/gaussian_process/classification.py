"""Gaussian process classification by Laplace's approximation: two classes, or any number natively (M10)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.errors import (
    InputError,
    MemoryBudgetError,
    ParameterError,
    ShapeError,
    warn,
)
from mercer.gram import GramOperator, Precomputed
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Approximated, Evaluated, Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.averages import average_logistic, average_softmax, draws
from mercer.machines.gaussian_process.evidence import gradient_of
from mercer.machines.gaussian_process.features import refuse_search
from mercer.machines.gaussian_process.laplace import Likelihood, Logistic, Posterior, Softmax
from mercer.machines.gaussian_process.tune import Tuned, is_searched, maximise
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import check_weights, duels_of, is_open, wants_each
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Whole, steps_allowed
from mercer.machines.shared.targets import as_labels
from mercer.memory import memory_limit, say_bytes
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Memory, Numbers, Seed, Table, Targets, Weights

SOON = 1000  # rows whose mode is found quickly enough after Ctrl-C
PANEL = 2**22  # numbers in one block of kernel values with new points


class GaussianProcessClassifier(ClassifierMixin, Machine):
    """Probabilities of classes from latent Gaussian processes, with the kernel chosen by the evidence.

        two classes    f ~ GP(0, k),                p(y = 1 | x) = E σ(f(x))
        more           f_c ~ GP(0, k) for each,     p(y = c | x) = E softmax(f(x))_c

    The posterior is the Gaussian at its mode (Laplace). It needs no inverse of K, so K may be singular.

    Parameters
    ----------
    kernel : Kernel, str
        A kernel, its text, or "precomputed". An open lengthscale, as of the default "RBF()", is closed
        column by column from the spread of X, and all are tuned by one common factor, so that units do not
        matter (with `RBF(ard=True)` each by its own); what was found is in `kernel_`. "1.0*RBF()" also
        learns the height of the latent function.
    {shared parameters}

    Attributes
    ----------
    classes_, kernel_, X_fit_, n_features_in_, n_iter_
    log_evidence_ : of `kernel_`.
    certificate_ : Newton's residual, iterations and status, and how the search went.
    posterior_ : f, a, ∇ log p and the factors at the mode; see `mercer.machines.gaussian_process.laplace`.

    >>> from mercer import GaussianProcessClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "a", "b", "b", "b"]
    >>> model = GaussianProcessClassifier("4.0*RBF(2.0)", optimizer=None).fit(X, y)
    >>> model.predict([[0.5], [4.5]]).tolist(), model.predict_proba([[2.5]]).round(6).tolist()
    (['a', 'b'], [[0.5, 0.5]])
    """

    invalid: ClassVar[Invalid] = Invalid(
        "There is then no Gaussian process behind it: the mode need not be a maximum, and the fit may fail.",
        "the kernel is not positive semi-definite: a stationary point, not a posterior mode",
    )
    parameters: ClassVar[Declarations] = {
        "optimizer": Choice(
            ("L-BFGS-B",),
            none=True,
            about="Maximise the log evidence over the free parameters of the kernel, within a factor of 1e5 "
            "of the start or its bounds; None leaves the kernel as it is.",
        ),
        "max_iter": Whole(1, none=True, about="Steps of a search; None for no limit."),
        "max_iter_newton": Whole(
            1, none=True, about="Steps of Newton's method for one mode; None for no limit."
        ),
        "tol": Number(
            about="Largest |a - ∇ log p(y | f)| at the mode f = Ka, relative to the largest weight; or what "
            "the rounding of Ka allows, where that is more (a very high prior)."
        ),
        "n_draws": Whole(
            1,
            about="More than two classes: the probabilities are averages over so many quasi-random draws "
            "(the same for every row, fixed by `random_state`). Two classes are integrated to rounding "
            "instead.",
        ),
        "memory": TABLE["memory"].but(about="What the n × n arrays may take; more is refused."),
    }

    X_fit_: Matrix

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        optimizer: str | None = "L-BFGS-B",
        n_restarts: int = 0,
        max_iter: int | None = 200,
        max_seconds: float | None = None,
        max_iter_newton: int | None = 100,
        tol: float = 1e-9,
        n_draws: int = 1024,
        strict: bool = False,
        memory: Memory = "4GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.max_iter_newton = max_iter_newton
        self.tol = tol
        self.n_draws = n_draws
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.approximation = approximation

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and labels y.

        A row of weight 2 counts like two equal rows, of weight 0 not at all.
        """
        begun = time.perf_counter()
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        y = self._check_labels(y, A.shape[0])
        w = check_weights(sample_weight, A.shape[0])
        rows = np.flatnonzero(w > 0)
        self.classes_, codes = np.unique(y[rows], return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class only, {self.classes_[0]!r}, among rows of positive weight, and a "
                "classifier needs at least two classes. To describe a single class use OneClassSVM."
            )
        self._check_memory(len(rows))
        on = self._kernel_on(A, w)
        if len(rows) < A.shape[0]:
            on = on.part(rows)
            A = A[rows]
        kernel = on.kernel
        self.X_fit_ = on.matrix if isinstance(on, Given) else A
        self.rows_fit_ = rows
        self._likelihood = self._make_likelihood(codes, w[rows])
        notes = list(self._judged(on))
        tuned = self._tune(on)
        if tuned is not None and kernel is not None:
            self.kernel_ = kernel.with_theta(tuned.theta)
        self.posterior_ = self._final_mode(tuned)
        self._keep_feature_coef(on, self.posterior_.g)
        self.log_evidence_ = self.posterior_.evidence
        self.n_iter_ = max(self.posterior_.iterations, 1)
        self._seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._certify(tuned, notes, time.perf_counter() - begun)
        return self

    def _check_labels(self, y: Targets, n: int) -> Labels:
        return as_labels(y, n, type(self).__name__)

    def _final_mode(self, tuned: Tuned | None) -> Posterior:
        """The mode at the hyperparameters found.

        It is the one that the search kept if there is no time for more.
        """
        interrupted = tuned is not None and tuned.status == Status.INTERRUPTED
        if tuned is not None and tuned.kept is not None and (interrupted or clock.short_of(tuned.seconds)):
            assert isinstance(tuned.kept, Posterior)
            return tuned.kept
        if interrupted and len(self.rows_fit_) > SOON:
            raise KeyboardInterrupt
        return self._mode(self._operator(self.kernel_))

    def _needed(self, n: int) -> int:
        """Bytes of the n × n arrays of one mode and its gradient."""
        classes = len(self.classes_)
        return 8 * n * n * (5 if classes == 2 else classes + 8)

    def _room_for_one_more(self) -> bool:
        """Whether the best mode so far may be kept beside the one at work."""
        return 2 * self._needed(len(self.rows_fit_)) <= memory_limit(self.memory)

    def _check_memory(self, n: int) -> None:
        classes = len(self.classes_)
        needed = self._needed(n)
        if needed > memory_limit(self.memory):
            raise MemoryBudgetError(
                f"{n} rows and {classes} classes need about {say_bytes(needed)} of n × n arrays; "
                f"memory={self.memory!r} allows less. Raise memory, take fewer rows, or use "
                "SVC(probability=True), which stores no such array."
            )

    def _make_likelihood(self, codes: Integers, w: Array) -> Likelihood:
        if len(self.classes_) == 2:
            return Logistic(2.0 * codes - 1.0, w)
        return Softmax(codes, len(self.classes_), w)

    def _operator(self, kernel: Kernel | str | None = None) -> GramOperator:
        """K of the rows of fit, by the kernel found or by another one."""
        return self._operator_on(self._fitted_on(self.X_fit_, self.rows_fit_), kernel)

    def _operator_on(self, on: KernelOnRows, kernel: Kernel | str | None) -> GramOperator:
        """The same on rows that remember what was read of them: words are not counted once more."""
        if isinstance(on, Given):
            return Precomputed(self.X_fit_)
        if isinstance(on, Evaluated) and isinstance(kernel, Kernel):
            on = replace(on, kernel=kernel)
        return on.gram(finite=False)

    def _mode(self, K: GramOperator, start: Array | None = None) -> Posterior:
        return self._likelihood.mode(
            K.dense(), start, tol=float(self.tol), max_iter=steps_allowed(self.max_iter_newton)
        )

    def _tune(self, on: KernelOnRows) -> Tuned | None:
        kernel = on.kernel
        if not is_searched(kernel, self.optimizer):
            return None
        if isinstance(on, Approximated):
            refuse_search(kernel)
        # The mode of one θ is a good start for the next; parallel searches do not share.
        last: list[Array] = []

        def objective(theta: Array) -> tuple[Any, ...]:
            K = self._operator_on(on, kernel.with_theta(theta))
            found = self._mode(K, last[0] if last else None)
            if not self.n_restarts:
                last[:] = [found.a]
            gradient = gradient_of(K, W=found.weights())
            return found.evidence, gradient, found if self._room_for_one_more() else None

        return maximise(
            objective,
            kernel,
            size=float(self._likelihood.w.sum()),
            shared=is_open(self.kernel) and not wants_each(self.kernel),
            restarts=int(self.n_restarts),
            max_iter=steps_allowed(self.max_iter),
            n_jobs=self.n_jobs,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
            verbose=self.verbose,
        )

    def _certify(self, tuned: Tuned | None, notes: list[str], seconds: float) -> None:
        found, status = self.posterior_, self.posterior_.status
        if tuned is not None:
            notes.append(
                f"Log evidence {found.evidence:.6g} after {tuned.iterations} steps of L-BFGS-B "
                f"({tuned.status}), {tuned.evaluations} evaluations."
            )
            notes += tuned.notes
            if tuned.ends:
                warn(tuned.ends, ConvergenceWarning)
            if tuned.status == Status.INTERRUPTED or (
                status == Status.CONVERGED and tuned.status != Status.CONVERGED
            ):
                status = tuned.status
        who = "logistic" if len(self.classes_) == 2 else f"softmax of {len(self.classes_)} classes"
        worst = np.abs(found.a - found.g).reshape(len(found.a), -1).max(axis=1)
        self.certificate_ = Certificate(
            status,
            f"Laplace approximation ({who}), Newton",
            iterations=found.iterations,
            seconds=seconds,
            residual=found.residual,
            worst_row=int(self.rows_fit_[int(np.argmax(worst))]),
            added_diagonal=0.0,
            notes=tuple(notes),
        )
        if not status.as_asked:
            warn(
                f"not all of it converged ({self.certificate_}). Raise max_iter_newton, max_iter or "
                "max_seconds, or scale the columns of X.",
                ConvergenceWarning,
            )

    # ── evidence ────────────────────────────────────────────────────────────────────────────────────────────

    def log_evidence(
        self, theta: Numbers | None = None, *, gradient: bool = False
    ) -> float | tuple[float, Array]:
        """Log evidence of the training labels for the free parameters `theta` (default: those of `kernel_`).

        With `gradient=True` also its derivatives, in the order of `kernel_.theta`.
        """
        check_is_fitted(self, "posterior_")
        kernel = self.kernel_
        if theta is not None:
            if not isinstance(kernel, Kernel):
                raise ParameterError("a precomputed kernel has no theta.")
            kernel = kernel.with_theta(theta)
        K = self._operator(kernel)
        found = self.posterior_ if theta is None else self._mode(K)
        return (found.evidence, gradient_of(K, W=found.weights())) if gradient else found.evidence

    # ── predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def latent(self, X: Table, *, diag: Numbers | None = None) -> tuple[Array, Array]:
        """Mean and variance of the latent function: n and n for two classes, n × c and n × c × c for more.

        A precomputed kernel also needs `diag`, the values k(x, x) of the new rows.
        """
        parts = list(self._latent(X, diag))
        return np.concatenate([m for m, _ in parts]), np.concatenate([v for _, v in parts])

    def _latent(self, X: Table, diag: Numbers | None) -> Iterator[tuple[Array, Array]]:
        for Ks, own in self._with_rows_of_fit(X, diag):
            assert own is not None
            yield self.posterior_.latent(Ks, own)

    def _with_rows_of_fit(
        self, X: Table, diag: Numbers | None, *, mean_only: bool = False
    ) -> Iterator[tuple[Array, Array | None]]:
        """k(new, training) and k(new, new), some rows at a time."""
        check_is_fitted(self, "posterior_")
        A = self.check_rows(X, reset=False)
        on = self._fitted_on(self.X_fit_, self.rows_fit_)
        m = A.shape[0]
        given = self._given_diag(diag, m) if isinstance(on, Given) and not mean_only else None
        problems = 1 if len(self.classes_) == 2 else len(self.classes_)
        step = max(1, PANEL // (len(on) * problems))
        for start in range(0, m, step):
            part = slice(start, start + step)
            some = on.new_rows(A[part])
            K = np.asarray(on.between(some).dense(), dtype=np.float64)
            if mean_only:
                yield K, None
            elif given is not None:
                yield K, given[part]
            else:
                yield K, on.diagonal(some)

    def _functions(self) -> Functions:
        """The mean of the latent function of each class."""
        check_is_fitted(self, "posterior_")
        return self._functions_on(
            self.X_fit_,
            self.posterior_.g,
            0.0,
            self.rows_fit_,
            observed=False,
            what="the latent mean",
            classes=self.classes_,
            duels=duels_of(self.classes_),
        )

    def _given_diag(self, diag: Numbers | None, m: int) -> Array:
        if diag is None:
            raise InputError(
                "a precomputed kernel does not tell k(x, x) of new rows, and the variance needs it: pass "
                "diag=…."
            )
        own = np.asarray(diag, dtype=float)
        if own.shape != (m,) or not np.all(np.isfinite(own)):
            raise ShapeError(f"diag must hold {m} finite numbers, one for each row; got shape {own.shape}.")
        return own

    def predict_proba(self, X: Table, *, diag: Numbers | None = None) -> Array:
        """Probabilities n × classes; each row sums to 1."""
        check_is_fitted(self, "posterior_")
        if len(self.classes_) == 2:
            p = np.concatenate([average_logistic(m, v) for m, v in self._latent(X, diag)])
            return np.column_stack([1.0 - p, p])
        normal = draws(len(self.classes_), int(self.n_draws), self._seed)
        few = max(1, PANEL // normal.size)
        out = []
        for mean, covariance in self._latent(X, diag):
            for start in range(0, len(mean), few):
                part = slice(start, start + few)
                out.append(average_softmax(mean[part], covariance[part], normal))
        return np.concatenate(out)

    def predict_log_proba(self, X: Table, *, diag: Numbers | None = None) -> Array:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X, diag=diag))

    def predict(self, X: Table, *, diag: Numbers | None = None) -> Labels:
        """The most probable class; two classes need the mean of the latent function only."""
        check_is_fitted(self, "posterior_")
        if len(self.classes_) == 2:
            mean = [Ks @ self.posterior_.g for Ks, _ in self._with_rows_of_fit(X, diag, mean_only=True)]
            return np.asarray(self.classes_[(np.concatenate(mean) > 0).astype(int)])
        return np.asarray(self.classes_[self.predict_proba(X, diag=diag).argmax(axis=1)])
