"""Falkon: ridge and logistic regression on the span of landmarks, for more rows than fit in memory."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import clock
from mercer.arrays import check_vectors, read_rows
from mercer.errors import InputError, ParameterError, warn
from mercer.gram import GramOperator, Tiles
from mercer.gram.functions import ByRows, Functions
from mercer.gram.on_rows import Evaluated
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import without_noise
from mercer.machines.landmarks.batches import BATCH, Batch, Batches, is_source
from mercer.machines.landmarks.falkon_newton import newton, too_long
from mercer.machines.landmarks.selection import EPS, basis, choose
from mercer.machines.landmarks.streamed import (
    Scan,
    Streamed,
    Targeting,
    landmark_factor,
    scan,
    solve_normal,
    written_out,
)
from mercer.machines.shared.base import KernelEstimator, check_weights, duels_of, generator, resolve
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Switch
from mercer.machines.shared.targets import as_labels, check_finite_targets, check_numbers
from mercer.progress import Tell, teller
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.judge import judge_on_rows
from mercer.typing import Array, Labels, Numbers, Seed, Table, Targets, Weights

# Up to here one pass that sums m × m products costs less than conjugate gradients.
DIRECT_LANDMARKS = 2048
# Rows that k-means, leverage and the greedy choice look at, at least.
POOL = 10_000
# Arrays beyond this are read in slices and never copied whole.
LAZY_BYTES = 64 << 20


class Falkon(KernelEstimator):
    """What both share: landmarks from a sample, then sums over all rows in tiles."""

    n_landmarks: int
    alpha: float
    landmarks: str | Numbers
    solver: str
    tol: float
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    dtype: str
    verbose: int
    n_jobs: int | None
    random_state: Seed
    coef_: Array
    landmarks_: Matrix

    parameters: ClassVar[Declarations] = {
        "landmarks": TABLE["landmarks"].but(
            about="As in `Nystroem`; all but rows by weight and one's own points look at a sample of "
            "max(10 000, 4 n_landmarks) rows."
        ),
        "kernel": TABLE["kernel"].but(
            about="A kernel or its text. An open lengthscale is closed column by column from the spread of "
            "the rows; `kernel_` says what was used."
        ),
        "alpha": Number(about="The penalty α."),
        "max_iter": TABLE["max_iter"].but(
            about="Passes of conjugate gradients over the rows; None for no limit."
        ),
        "solver": Choice(
            ("auto", "direct", "cg"),
            about='"direct" sums k(Z, x) k(x, Z) over all rows in one pass, n m² multiply-adds, and takes '
            "Cholesky's answer as the start of conjugate gradients, which mostly find nothing left to do. "
            '"cg" (Falkon) is preconditioned by the landmarks alone and makes one pass in an iteration. '
            '"auto": direct up to 2048 landmarks.',
        ),
        "tol": Number(about="Relative residual of the normal equations, recomputed from the answer."),
        "strict": Switch(
            about="Refuse a kernel that is not positive semi-definite instead of warning. Where the "
            "landmarks show it, it is refused in any case."
        ),
        "dtype": Choice(
            ("float64", "float32"),
            about="Of the tiles k(x, Z). float32 halves time and memory, and drops landmarks beyond its own "
            "rounding; the certificate says so.",
        ),
    }

    @abstractmethod
    def _check_targets(self, y: Targets | None, n: int) -> Labels: ...

    def _say_noise(self) -> str:
        penalty = float(self.alpha) + self.noise_
        return f"White noise in the kernel counts as penalty: alpha acts as {penalty:.6g}"

    @abstractmethod
    def _look(self, y: Labels) -> None:
        """See a batch of targets on the first pass."""

    @abstractmethod
    def _solve(self, system: Streamed, found: Scan) -> tuple[Array, Certificate]: ...

    def fit(
        self, X: Table | Iterable[Batch], y: Targets | None = None, sample_weight: Weights = None
    ) -> Self:
        """Learn from rows X and targets y, or from `Batches`; a row of weight 2 counts twice."""
        self._check_parameters()
        start = time.perf_counter()
        source = self._source(X, y, sample_weight)
        rng = generator(self.random_state)
        found = scan(source, max(POOL, 4 * int(self.n_landmarks)), rng, self._look)
        if is_source(X, y):
            self.n_features_in_ = found.width
            self.__dict__.pop("feature_names_in_", None)
        kernel = resolve(self.kernel, self._rows(found.rows), found.weights)
        if kernel is None:
            raise ParameterError(
                "Falkon computes kernels of rows; it has no use for a precomputed Gram matrix."
            )
        self.kernel_ = kernel
        self.smooth_, self.noise_ = without_noise(kernel)
        notes = []
        if self.noise_:
            notes.append(self._say_noise())
        self._choose(found, rng, notes)
        notes += self._judge(found)
        names = getattr(self, "feature_names_in_", None)
        system = Streamed(
            self.smooth_,
            self.landmarks_,
            self.basis_,
            source,
            None if names is None else [str(v) for v in names],
            self.dtype,
            self.n_jobs,
            found.n,
        )
        self.n_rows_fit_ = found.n
        w, c = self._solve(system, found)
        self.coef_ = self.basis_.coefficients(w)
        self._keep_certificate(c, notes, system, time.perf_counter() - start)
        return self

    def _source(
        self, X: Table | Iterable[Batch], y: Targets | None, sample_weight: Weights
    ) -> Iterable[Batch]:
        """The batches that were passed, or the slices of the arrays."""
        if is_source(X, y):
            if sample_weight is not None:
                raise ParameterError("a source of batches brings its weights itself, as (X, y, weight).")
            return X
        large = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and X.nbytes > LAZY_BYTES
        if large:
            validate_data(self, X, reset=True, skip_check_array=True)
        A: Matrix = X if large else self._check_rows(cast(Table, X), reset=True)
        targets = self._check_targets(y, A.shape[0])
        w = None if sample_weight is None else check_weights(sample_weight, A.shape[0])
        return slices(A, targets, w)

    def _choose(self, found: Scan, rng: np.random.Generator, notes: list[str]) -> None:
        K: GramOperator = Tiles(self.smooth_, self._rows(found.rows), n_jobs=self.n_jobs)
        m = min(int(self.n_landmarks), len(found.rows))
        choice = choose(self.landmarks, m, K, found.rows, weight=found.weights, rng=rng)
        if choice.index is not None and not isinstance(self.landmarks, str) and found.n > len(found.rows):
            raise ParameterError("landmarks that name rows need all rows in memory; give points.")
        if choice.index is not None:
            Z = found.rows[choice.index]
        else:
            Z = written_out(read_rows(choice.points, found.rows.dtype.kind == "O", "landmarks"))
        inner = Tiles(self.smooth_, self._rows(Z, "landmarks"), n_jobs=self.n_jobs).dense()
        eps = EPS if self.dtype == "float64" else float(np.finfo(np.float32).eps)
        full = basis(inner, str(self.smooth_), eps)
        if not full.rank:
            raise InputError(f"{self.smooth_} is zero on all landmarks, so nothing can be learned from it.")
        self.basis_ = full
        self.landmarks_ = Z[full.kept]
        notes += choice.notes
        dropped = full.note()
        if dropped:
            notes.append(dropped)

    def _judge(self, found: Scan) -> tuple[str, ...]:
        """Announce a kernel that is not positive semi-definite on the rows in memory, or refuse it."""
        return judge_on_rows(
            self.smooth_,
            Tiles(self.smooth_, self._rows(found.rows), n_jobs=self.n_jobs),
            np.flatnonzero(found.weights > 0),
            found.width or None,
            strict=self.strict,
            lost="The penalty is then no norm, and there may be no minimum.",
            note="the kernel is not positive semi-definite: a stationary point, not a proven optimum",
            out_of=found.n,
        ).notes

    @property
    def _direct(self) -> bool:
        return self.solver == "direct" or (self.solver == "auto" and self.basis_.rank <= DIRECT_LANDMARKS)

    def _teller(self) -> Tell | None:
        return teller(self.verbose, _say)

    def _ridge(self, system: Streamed, found: Scan, targets: Targeting) -> tuple[Array, Certificate]:
        """Weighted least squares with ridge α, and the noise of the kernel in it, for every target."""
        alpha = float(self.alpha) + self.noise_
        direct = self._direct
        said: list[str] = []
        if direct:
            try:
                inverse, b = system.factored(alpha, targets)
            except clock.OutOfTime as stop:
                direct = False
                said.append(too_long(stop.found))
        if not direct:
            b = system.right_side(targets)
            inverse = landmark_factor(self.basis_, found.weight / self.basis_.rank, alpha)
        got = solve_normal(
            system,
            b,
            alpha,
            inverse,
            start=direct,
            tol=float(self.tol),
            max_iter=self.max_iter,
            callback=self._teller(),
        )
        c = replace(got.certificate, notes=(*said, *got.certificate.notes))
        gap = float(max(np.square(np.array(c.residuals or (0.0,)) * np.linalg.norm(b, axis=0)))) / alpha
        method = "sums of products, Cholesky" if direct else "Falkon"
        return got.value, replace(c, method=f"{method}, {c.method}", gap=gap)

    def _keep_certificate(self, c: Certificate, notes: list[str], system: Streamed, seconds: float) -> None:
        r = self.basis_.rank
        passes = system.passes + 1
        said = f"{self.kernel_} on the span of {r} landmarks, {self.n_rows_fit_} rows, {passes} passes"
        if self.dtype == "float32":
            said += "; k(x, Z) rounded to float32"
        if system.careful:
            notes.append(
                "the plain sums were not positive definite to rounding, so L was taken out of every tile "
                "first"
            )
        self.certificate_ = replace(c, seconds=seconds, added_diagonal=0.0, notes=(said, *notes, *c.notes))
        self.n_iter_ = passes
        if not c.status.as_asked:
            warn(
                f"stopped before tol={self.tol:g} was met ({self.certificate_}). Raise max_iter, max_seconds "
                "or alpha.",
                ConvergenceWarning,
            )

    def _functions(self) -> Functions:
        check_is_fitted(self, "coef_")
        index = np.full(len(self.coef_), -1)
        on = Evaluated(self.smooth_, self._rows(self.landmarks_), index, n_jobs=self.n_jobs)
        offset = np.zeros(self.coef_.shape[1])
        facts = self._function_facts()
        return ByRows(on=on, coefficients=self.coef_, offset=offset, observed=False, **facts)

    def _function_facts(self) -> dict[str, Any]:
        """Classes and duels of a classifier."""
        return {}

    def _values(self, X: Table) -> Array:
        """k(x, Z) c, n × columns, in slices."""
        check_is_fitted(self, "coef_")
        large = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind != "O" and X.nbytes > LAZY_BYTES
        if large:
            validate_data(self, X, reset=False, skip_check_array=True)
        A: Matrix = X if large else self._check_rows(X, reset=False)
        z = self._rows(self.landmarks_, "landmarks_")
        out = np.empty((A.shape[0], self.coef_.shape[1]))
        for start in range(0, A.shape[0], BATCH):
            part = slice(start, start + BATCH)
            x = check_vectors(A[part]) if large else A[part]
            x = written_out(x)
            out[part] = Tiles(self.smooth_, self._rows(x), z, n_jobs=self.n_jobs) @ self.coef_
        return out


def slices(A: Matrix, y: Labels, w: Array | None) -> Batches:
    """Checked rows and targets, a slice at a time."""
    source = Batches.of(A, y, w)
    source.things = A.dtype.kind == "O"
    return source


class FalkonRegressor(RegressorMixin, Falkon):
    """Kernel ridge regression on the span of landmarks, in memory that does not grow with the rows.

        min Σ w_i (y_i - f(x_i))² + α‖f‖²   over   f = Σ_j c_j k(·, z_j)

    With all rows as landmarks it is kernel ridge regression. White noise σ² in the kernel counts as penalty,
    α + σ².

    Parameters
    ----------
    {shared parameters}

    `fit` takes arrays (memory-mapped ones are read in slices), or `Batches` and other re-iterable sources of
    (X, y) or (X, y, weight), whose rows are numbers.

    Attributes
    ----------
    landmarks_, coef_ : f(x) = k(x, landmarks_) @ coef_.
    certificate_ : residual; `gap` bounds by how much the objective could still fall; landmarks dropped.
    n_iter_ : passes over the rows. basis_, kernel_, noise_ (of `White` terms), n_rows_fit_

    >>> from mercer import FalkonRegressor
    >>> X = np.linspace(0.0, 3.0, 400)[:, None]
    >>> model = FalkonRegressor("RBF(0.5)", 20, alpha=1e-3, landmarks="pivoted").fit(X, np.sin(3 * X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(3 * X[:, 0])).max() < 0.01)
    True
    """

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_landmarks: int = 1000,
        alpha: float = 1.0,
        *,
        landmarks: str | Numbers = "uniform",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 500,
        max_seconds: float | None = None,
        strict: bool = False,
        dtype: str = "float64",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.landmarks = landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.dtype = dtype
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_targets(self, y: Targets | None, n: int) -> Labels:
        return check_numbers(y, n, type(self).__name__)

    def _look(self, y: Labels) -> None:
        if y.dtype.kind not in "fiub":
            raise InputError(f"y must hold numbers; a batch has type {y.dtype}.")
        check_finite_targets(y)

    def _solve(self, system: Streamed, found: Scan) -> tuple[Array, Certificate]:
        return self._ridge(system, found, lambda y, rows: np.asarray(y, dtype=np.float64)[:, None])

    def predict(self, X: Table) -> Array:
        """k(x, landmarks_) @ coef_."""
        return self._values(X)[:, 0]


def _say(iteration: int, residual: float) -> str:
    return f"{iteration} iterations, residual {residual:.3g}"


def _is_logistic(self: FalkonClassifier) -> bool:
    if self.loss != "logistic":
        raise AttributeError(f"predict_proba is there with loss='logistic'; this one has loss={self.loss!r}.")
    return True


class FalkonClassifier(ClassifierMixin, Falkon):
    """Kernel logistic (or least-squares) classification on the span of landmarks, in bounded memory.

        min Σ w_i log(1 + e^(-t_i f(x_i))) + α/2 ‖f‖²,   t_i = ±1,   over   f = Σ_j c_j k(·, z_j)

    by Newton's method; each step is a weighted ridge problem, solved as in `FalkonRegressor`.
    `loss="squared"` is one ridge problem Σ w_i (t_i - f(x_i))² + α‖f‖². More than two classes: one against
    the rest, each with its own f. Newton's method keeps four numbers for each row in memory, beside the
    tiles. White noise in the kernel is a part of every row's own, as in `KernelMachine`: with all rows as
    landmarks both are the same.

    Attributes are those of `FalkonRegressor`. `gap` in the certificate is ‖gradient‖² / 2α, the most by which
    the objective could still fall.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import FalkonClassifier
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> y = np.where(np.sin(4 * X[:, 0]) > 0, "up", "down")
    >>> model = FalkonClassifier("RBF(0.3)", 20, alpha=0.01, landmarks="pivoted").fit(X, y)
    >>> bool(model.score(X, y) > 0.98), model.predict_proba(X).shape
    (True, (200, 2))
    """

    parameters: ClassVar[Declarations] = {
        "loss": Choice(
            ("logistic", "squared"), about="Logistic loss by Newton's method, or one ridge problem."
        ),
        "tol": Number(
            about="The length of the gradient, relative to that at f = 0; of the squared loss, the relative "
            "residual of the normal equations."
        ),
        "max_iter": TABLE["max_iter"].but(
            about="Newton steps, or passes of conjugate gradients for the squared loss; None for no limit."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_landmarks: int = 1000,
        alpha: float = 1.0,
        *,
        loss: str = "logistic",
        landmarks: str | Numbers = "uniform",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 100,
        max_seconds: float | None = None,
        strict: bool = False,
        dtype: str = "float64",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.loss = loss
        self.landmarks = landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.dtype = dtype
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Table | Iterable[Batch], y: Targets | None = None, sample_weight: Weights = None
    ) -> Self:
        """Learn from rows X and labels y, or from `Batches`; a row of weight 2 counts twice."""
        self._labels: Labels | None = None
        return super().fit(X, y, sample_weight)

    def _check_targets(self, y: Targets | None, n: int) -> Labels:
        return as_labels(y, n, type(self).__name__)

    def _function_facts(self) -> dict[str, Any]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_)}

    def _look(self, y: Labels) -> None:
        check_finite_targets(y)
        fresh = np.unique(y)
        if self._labels is not None:
            fresh = np.unique(np.concatenate([self._labels, fresh]))
        self._labels = fresh

    def _say_noise(self) -> str:
        if self.loss == "squared":
            return super()._say_noise()
        return (
            f"White noise of {self.noise_:.6g} in the kernel: every row has a part of its own, minimised "
            "away in the loss"
        )

    def _solve(self, system: Streamed, found: Scan) -> tuple[Array, Certificate]:
        assert self._labels is not None
        self.classes_: Labels = self._labels
        del self._labels
        k = len(self.classes_)
        if k < 2:
            raise InputError(
                f"y has one class only, {self.classes_[0]!r}, and a classifier needs at least two (the "
                "number of classes has to be greater than one; got 1 class)."
            )
        wanted = self.classes_[1:] if k == 2 else self.classes_
        if self.loss == "squared":
            return self._ridge(
                system, found, lambda y, rows: np.where(y[:, None] == wanted[None, :], 1.0, -1.0)
            )
        return newton(
            system,
            wanted,
            float(self.alpha),
            noise=self.noise_,
            direct=self._direct,
            tol=float(self.tol),
            max_iter=self.max_iter,
            tell=self._teller(),
        )

    def decision_function(self, X: Table) -> Array:
        """Two classes: n values, positive for `classes_[1]`. More: n × classes, the largest one wins."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Table) -> Labels:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Labels = self.classes_[winners]
        return labels

    @available_if(_is_logistic)
    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes: the logistic function of the decision values, normalised."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        shares: Array = np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
        return shares
