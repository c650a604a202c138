"""Relevance vector machines (M11): sparse Bayesian regression and classification on kernel columns."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InputError, ShapeError, warn
from mercer.gram import GramOperator, Precomputed
from mercer.gram.functions import Functions
from mercer.gram.on_rows import PRECOMPUTED, Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.kernels.terms import has_noise
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.relevance.sparse_bayes import NOISE_FLOOR, Basis, Effort, SparsePosterior, regression
from mercer.machines.relevance.sparse_laplace import classification
from mercer.machines.shared.base import as_machine_kernel, check_weights, duels_of
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Declarations, Number, Switch, Whole, steps_allowed
from mercer.machines.shared.targets import check_labels, check_numbers
from mercer.memory import memory_limit
from mercer.progress import teller
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Memory, Table, Targets, Weights

# numbers in one block of new rows × relevance vectors
BLOCK = 2**21


class RelevanceMachine(Machine):
    """What the two relevance vector machines share: basis, effort, the model kept and its products."""

    fit_intercept: bool
    intercept_: Array | float
    relevance_: Integers
    tol: float
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    verbose: int
    memory: Memory
    n_jobs: int | None

    parameters: ClassVar[Declarations] = {
        "kernel": TABLE["kernel"].but(
            about='A kernel, its text, or "precomputed": then `fit` takes the n × n values of the basis '
            "functions, symmetric or not."
        ),
        "fit_intercept": Switch(about="Whether 1 is among the basis functions."),
        "tol": Number(
            about="Converged when no log α, nor log σ², would change by more than this and no addition is "
            "worth more than tol² nats."
        ),
        "max_iter": Whole(
            0, none=True, about="The steps of one start; None for no limit. The best model so far is kept."
        ),
        "strict": Switch(about="Refuse a kernel that is not positive semi-definite all the same."),
        "noise": Number(
            none=True,
            words="None or a variance > 0, finite",
            about="The variance σ² of the noise if it is known; None to estimate it.",
        ),
        "n_starts": Whole(
            1,
            9,
            about="How many values of σ² to begin from (0.1, 0.03, 0.01, … of the variance of y) when it is "
            "estimated; the fit with the largest evidence is kept.",
        ),
    }

    def _effort(self, who: str = "") -> Effort:
        tell = teller(self.verbose, lambda text: f"{who}{text}")
        return Effort(float(self.tol), steps_allowed(self.max_iter), tell)

    invalid: ClassVar[Invalid] = Invalid(
        "",
        "the kernel is not positive semi-definite; a relevance vector machine takes any basis, so nothing is "
        "lost",
        needed=False,
    )
    symmetric: ClassVar[bool] = False

    def _learn_from(self, A: Matrix, w: Array) -> tuple[KernelOnRows, GramOperator, list[str]]:
        """The kernel on these rows, the operator with the basis functions as columns, and the notes."""
        if as_machine_kernel(self.kernel) is None and A.shape[0] != A.shape[1]:
            raise ShapeError(
                "a precomputed Gram matrix must be square, with basis function j at row i in entry (i, j); "
                f"got shape {A.shape}. New points come later: rows = new, columns = training."
            )
        on = self._kernel_on(A, w)
        K = on.gram()
        notes = list(self._judged(on, K))
        if on.kernel is not None and has_noise(on.kernel):
            notes.append("the White part of the kernel is noise and no basis function: it was left out")
            K = on.between(A)
            if 8 * len(on) ** 2 <= memory_limit(self.memory):
                K = Precomputed(K.dense())
        return on, K, notes

    def _keep(
        self,
        on: KernelOnRows,
        A: Matrix,
        basis: Basis,
        kept: Integers,
        found: list[SparsePosterior],
        unit: float,
    ) -> None:
        """The model in units of the data: relevance vectors in the order of the rows, the intercept apart."""
        n = basis.size - int(self.fit_intercept)
        used = np.unique(np.concatenate([f.active for f in found]).astype(np.intp))
        used = used[used < n]
        # the intercept comes last
        place = np.full(basis.size, len(used))
        place[used] = np.arange(len(used))
        weights = np.zeros((len(found), len(used) + 1))
        alpha = np.full((len(found), len(used) + 1), np.inf)
        covariance = np.zeros((len(found), len(used) + 1, len(used) + 1))
        for k, f in enumerate(found):
            at = place[f.active]
            scale = basis.scale[f.active] * unit
            weights[k, at] = f.mu * scale
            alpha[k, at] = f.alpha / scale**2
            covariance[k][np.ix_(at, at)] = f.sigma * np.outer(scale, scale)
        self.relevance_ = kept[used].astype(np.int32)
        self.relevance_vectors_ = np.empty((len(used), 0)) if isinstance(on, Given) else A[used]
        self.weights_ = weights[:, :-1]
        self.alpha_ = alpha
        self.covariance_ = covariance
        self.intercept_ = weights[:, -1]
        self._keep_feature_coef(on.part(used), self.weights_.T)
        self.log_evidence_path_ = found[0].path

    def _certify(self, found: list[SparsePosterior], notes: list[str], what: str) -> None:
        status = Status.worst(f.status for f in found)
        for f in found:
            counts = ", ".join(
                f"{f.moves.count(move)} {said}"
                for move, said in (
                    ("add", "added"),
                    ("re-estimate", "re-estimated"),
                    ("delete", "deleted"),
                    ("joint", "re-estimations of all together"),
                )
                if f.moves.count(move)
            )
            fall = float(np.min(np.diff(f.path), initial=0.0))
            said = "it never fell" if fall >= -1e-9 * max(abs(f.evidence), 1.0) else f"it fell by {-fall:.2g}"
            notes.append(
                f"{what} from {f.path[0]:.6g} to {f.evidence:.6g} ({counts or 'no step'}); on the way {said}"
            )
        steps = sum(len(f.moves) - 1 for f in found)
        self.certificate_ = Certificate(
            status,
            "sequential sparse Bayes",
            iterations=steps,
            seconds=sum(f.seconds for f in found),
            added_diagonal=0.0,
            notes=tuple(notes),
        )
        self.n_iter_ = max(steps, 1)
        if status in (Status.LIMIT, Status.STAGNATED):
            warn(
                f"stopped before tol={self.tol:g} was met ({self.certificate_}). Raise max_iter or "
                "max_seconds, or tol; where it stagnated, a shorter lengthscale makes the basis functions "
                "less alike.",
                ConvergenceWarning,
            )

    def _moments(self, X: Table, variance: bool) -> tuple[Array, Array]:
        """Mean, and variance if asked for, of every latent function on new rows: n × problems."""
        check_is_fitted(self, "weights_")
        A = self.check_rows(X, reset=False)
        weights = np.atleast_2d(self.weights_)
        covariance = self.covariance_
        n = A.shape[0]
        problems = len(weights)
        mean = np.tile(self.intercept_, (n, 1))
        spread = np.zeros((n, problems)) if variance else np.zeros((0, problems))
        step = max(1, BLOCK // (len(self.relevance_) + 1))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            phi = self._basis(A[rows])
            mean[rows] += phi @ weights.T
            if variance:
                full = np.column_stack([phi, np.ones(len(phi))])
                for k, C in enumerate(covariance.reshape(problems, *covariance.shape[-2:])):
                    spread[rows, k] = np.maximum(np.einsum("ij,ij->i", full @ C, full), 0.0)
        return mean, spread

    def _functions(self) -> Functions:
        check_is_fitted(self, "weights_")
        return self._functions_on(
            self.relevance_vectors_,
            np.atleast_2d(self.weights_).T,
            self.intercept_,
            self.relevance_,
            observed=False,
            **self._function_facts(),
        )

    def named_rows(self) -> dict[str, Integers]:
        return {"relevance vectors": self.relevance_}

    def _function_facts(self) -> dict[str, object]:
        """Classes and duels of a classifier."""
        return {}

    def _basis(self, A: Matrix) -> Array:
        """The relevant basis functions at some rows."""
        on = self._fitted_on(self.relevance_vectors_, self.relevance_)
        if len(on) == 0:
            return np.zeros((A.shape[0], 0))
        return np.asarray(on.between(A).dense(), dtype=np.float64)


class RelevanceVectorRegressor(RegressorMixin, RelevanceMachine):
    """Regression by few kernel columns, each with a prior of its own, chosen by the evidence.

        y = Σ_m w_m k(x, x_m) + b + noise,    w_m ~ N(0, 1/α_m),    noise ~ N(0, σ²)

    α and σ² maximise log N(y | 0, σ²I + ΦA⁻¹Φᵀ) by the sequential steps of Tipping and Faul (2003); most α
    become infinite and their columns leave. The prior of the intercept has its centre at the mean of y. The
    kernel need not be valid: k(·, x_m) is a basis function and nothing more; of an indefinite one the
    certificate tells, without a warning.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    relevance_, relevance_vectors_ : rows of the training data whose columns are kept, and those rows.
    weights_, intercept_ : their weights, and b.
    covariance_, alpha_ : posterior covariance and prior precisions of weights and, in the last place,
        intercept.
    noise_ : σ².
    log_evidence_, log_evidence_path_ : the log marginal likelihood, and after each step; it never falls.
    certificate_, kernel_, n_features_in_, n_iter_

    >>> from mercer import RelevanceVectorRegressor
    >>> X = np.linspace(-10, 10, 100)[:, None]
    >>> y = np.sinc(X[:, 0] / np.pi) + np.random.default_rng(0).normal(0, 0.1, 100)
    >>> model = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    >>> len(model.relevance_) < 10, round(float(np.sqrt(model.noise_)), 1)
    (True, 0.1)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 2 * std[0])
    True
    """

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        noise: float | None = None,
        fit_intercept: bool = True,
        n_starts: int = 2,
        tol: float = 1e-3,
        max_iter: int | None = 10_000,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and numbers y; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        targets = check_numbers(y, A.shape[0], type(self).__name__)
        A, w, kept = _of_positive_weight(A, check_weights(sample_weight, A.shape[0]), self.kernel)
        targets = targets[kept]
        on, K, notes = self._learn_from(A, w)
        mass = float(w.sum())
        center = float(w @ targets) / mass if self.fit_intercept else 0.0
        unit = float(np.sqrt(w @ (targets - center) ** 2 / mass))
        if unit <= 1e-14 * abs(center):
            center += float(w @ (targets - center)) / mass
            unit = 0.0
        basis = Basis(K, intercept=bool(self.fit_intercept), root=np.sqrt(w))
        if unit == 0:
            notes.append("y is constant: nothing is left to explain, and the noise cannot be told from 0")
            evidence = np.inf
            if self.noise is not None:
                evidence = -0.5 * mass * float(np.log(2 * np.pi * self.noise))
            found = _nothing(evidence)
        else:
            noise = None if self.noise is None else float(self.noise) / unit**2
            scaled = np.sqrt(w) * (targets - center) / unit
            found = regression(basis, scaled, mass, noise, self._effort(), int(self.n_starts))
            found.evidence -= mass * np.log(unit)
            found.path -= mass * np.log(unit)
        if self.noise is None and 0 < found.noise <= 1.01 * NOISE_FLOOR:
            notes.append(f"the noise came to its floor, {NOISE_FLOOR:g} of the variance of y")
        self._keep(on, A, basis, kept, [found], unit)
        self.weights_ = self.weights_[0]
        self.alpha_ = self.alpha_[0]
        self.covariance_ = self.covariance_[0]
        self.intercept_ = float(np.ravel(self.intercept_)[0]) + center
        self.noise_: float = found.noise * unit**2 if self.noise is None else float(self.noise)
        self.log_evidence_ = float(found.evidence)
        self._certify([found], notes, "log evidence")
        return self

    def predict(self, X: Table, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The mean at new rows; with `return_std`, also the standard deviation of a new observation there.

        Its square is σ² + φ(x)ᵀΣφ(x): noise, and doubt about the weights. Far from all relevance vectors a
        local kernel has φ(x) = 0 and only σ² is left: unlike a Gaussian process, this model does not know
        what it has not seen.
        """
        mean, variance = self._moments(X, return_std)
        if return_std:
            return mean[:, 0], np.sqrt(self.noise_ + variance[:, 0])
        return mean[:, 0]


class RelevanceVectorClassifier(ClassifierMixin, RelevanceMachine):
    """Classification by few kernel columns, each with a prior of its own, chosen by Laplace's evidence.

        p(class | x) = 1 / (1 + e^-f(x)),    f(x) = Σ_m w_m k(x, x_m) + b,    w_m ~ N(0, 1/α_m)

    Two classes give one such model, more give one for each class against the rest, on one Gram operator, and
    their probabilities are divided by their sum. Probabilities are averaged over the posterior of f (MacKay's
    approximation), so they are less sure where f is. The kernel need not be valid, as in
    `RelevanceVectorRegressor`.

    Attributes are those of `RelevanceVectorRegressor`, with one row (or one matrix,
    for `covariance_`) for each model; `log_evidence_` is an array; `log_evidence_path_` that of the first
    model.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import RelevanceVectorClassifier
    >>> X = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]])
    >>> model = RelevanceVectorClassifier("RBF(1.0)").fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[-1.5], [1.5]]).tolist(), bool(model.predict_proba([[1.5]])[0, 1] > 0.7)
    (['a', 'b'], True)
    """

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int | None = 10_000,
        max_seconds: float | None = None,
        strict: bool = False,
        verbose: int = 0,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and labels y; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        codes = self._codes(y, A.shape[0])
        A, w, kept = _of_positive_weight(A, check_weights(sample_weight, A.shape[0]), self.kernel)
        codes = codes[kept]
        if len(np.unique(codes)) < 2:
            raise InputError(
                "all rows with positive weights belong to the same class, and a classifier needs at least "
                "two. Give rows of another class a positive weight."
            )
        on, K, notes = self._learn_from(A, w)
        basis = Basis(K, intercept=bool(self.fit_intercept))
        found: list[SparsePosterior] = []
        for c in [1] if len(self.classes_) == 2 else range(len(self.classes_)):
            effort = self._effort(f"class {self.classes_[c]}: ")
            if found and found[-1].status == Status.INTERRUPTED:
                effort = replace(effort, max_iter=0)
            found.append(classification(basis, (codes == c).astype(float), w, effort))
        self._keep(on, A, basis, kept, found, 1.0)
        self.log_evidence_ = np.array([f.evidence for f in found])
        self._certify(found, notes, "Laplace's log evidence")
        return self

    def _function_facts(self) -> dict[str, object]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_), "what": "the latent mean"}

    def _codes(self, y: Targets, n: int) -> Integers:
        self.classes_, codes = check_labels(y, n, type(self).__name__)
        return codes

    def decision_function(self, X: Table) -> Array:
        """Log-odds averaged over the posterior, f / √(1 + π Var f / 8); n × classes if these are over two."""
        mean, variance = self._moments(X, True)
        odds = mean / np.sqrt(1 + np.pi * variance / 8)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict_proba(self, X: Table) -> Array:
        """Probabilities, n × classes."""
        odds = self.decision_function(X)
        if odds.ndim == 1:
            return np.column_stack([expit(-odds), expit(odds)])
        # the logarithm of the probability of each class against the rest
        log = -np.logaddexp(0.0, -odds)
        return np.asarray(softmax(log, axis=1))

    def predict(self, X: Table) -> Labels:
        """The class of largest probability."""
        odds = self.decision_function(X)
        places = (odds > 0).astype(np.intp) if odds.ndim == 1 else odds.argmax(axis=1)
        return np.asarray(self.classes_[places])


def _of_positive_weight(A: Matrix, w: Array, kernel: Kernel | str) -> tuple[Matrix, Array, Integers]:
    """The rows of positive weight, their weights, and which they are."""
    kept = np.flatnonzero(w > 0)
    if len(kept) == len(w):
        return A, w, kept
    A = A[kept]
    if isinstance(kernel, str) and kernel == PRECOMPUTED:
        A = A[:, kept]
    return A, w[kept], kept


def _nothing(evidence: float) -> SparsePosterior:
    """The model without basis functions."""
    none = np.zeros(0)
    return SparsePosterior(
        none.astype(np.intp),
        none,
        none,
        np.zeros((0, 0)),
        0.0,
        evidence,
        np.array([evidence]),
        ["start"],
        Status.CONVERGED,
        0.0,
    )
