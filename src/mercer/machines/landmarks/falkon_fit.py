"""What the two Falkons share: landmarks from a sample, then sums over all rows in passes, tile by tile."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import clock, lapack
from mercer.arrays import read_rows
from mercer.errors import ClusterError, InputError, ParameterError, warn
from mercer.gram import GramOperator, Tiles
from mercer.gram.cluster import active
from mercer.gram.elsewhere import is_collection, names_of, on_workers, shape_of
from mercer.gram.functions import ByRows, Functions
from mercer.gram.on_rows import Evaluated
from mercer.machines.landmarks.approximation import named, without_noise
from mercer.machines.landmarks.batches import BATCH, Batch, Batches, is_source
from mercer.machines.landmarks.falkon_newton import too_long
from mercer.machines.landmarks.penalty import cross_validated
from mercer.machines.landmarks.scattered import FarRows, Scattered
from mercer.machines.landmarks.selection import EPS, basis, choose
from mercer.machines.landmarks.streamed import (
    Scan,
    Streamed,
    Sums,
    Targeting,
    landmark_factor,
    scan,
    solve_normal,
    written_out,
)
from mercer.machines.shared.base import KernelEstimator, check_weights, generator, resolve
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Switch
from mercer.memory import memory_limit
from mercer.progress import Tell, teller
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.judge import judge_on_rows
from mercer.typing import Array, Labels, Memory, Numbers, Seed, Table, Targets, Weights
from mercer.vectors import check_vectors

# Up to here one pass that sums m × m products costs less than conjugate gradients.
DIRECT_LANDMARKS = 2048
# Of more landmarks than that, as many choose α.
FEWER_LANDMARKS = 1024
# Rows that k-means, leverage and the greedy choice look at, at least.
POOL = 10_000
# Arrays beyond this are read in slices and never copied whole.
LAZY_BYTES = 64 << 20


class Falkon(KernelEstimator):
    """What both share: landmarks from a sample, then sums over all rows in tiles."""

    on_cluster = True

    n_landmarks: int
    alpha: float | None
    landmarks: str | Numbers
    solver: str
    tol: float
    max_iter: int | None
    max_seconds: float | None
    strict: bool
    dtype: str
    memory: Memory
    verbose: int
    n_jobs: int | None
    random_state: Seed
    coef_: Array
    alpha_: float
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
        "alpha": TABLE["alpha"].but(
            none=True,
            about="The penalty α. None takes it from the data: the largest one whose error by generalised "
            "cross validation of least squares on the landmarks (the first 1024 of more than 2048) is within "
            "half a per cent of the least, e; for logistic loss e/4 times that, which leaves f as many "
            "degrees of freedom. `alpha_` says what was used.",
        ),
        "memory": TABLE["memory"].but(
            about="Bytes that k(x, Z) may take where there are many passes over the rows, as for logistic "
            'loss, or text such as "2GiB"; beyond it, tiles are computed anew in every pass.'
        ),
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
        penalty = self.alpha_ + self.noise_
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
        far = self._far(X, y, sample_weight)
        source = () if far is not None else self._source(X, y, sample_weight)
        rng = generator(self.random_state)
        size = max(POOL, 4 * int(self.n_landmarks))
        if far is None:
            found = scan(source, size, rng, self._look)
        else:
            found = far.scan(size, rng, self._look)
        if is_source(X, y):
            self.n_features_in_ = found.width
            self.__dict__.pop("feature_names_in_", None)
        kernel = resolve(self.kernel, self.as_rows(found.rows), found.weights)
        if kernel is None:
            raise ParameterError(
                "Falkon computes kernels of rows; it has no use for a precomputed Gram matrix."
            )
        self.kernel_ = kernel
        self.smooth_, self.noise_ = without_noise(kernel)
        notes: list[str] = []
        self._choose(found, rng, notes)
        notes += self._judge(found)
        system = self._system(source, far, found.n)
        self.n_rows_fit_ = found.n
        w, c = self._solve(system, found)
        if self.noise_:
            notes.insert(0, self._say_noise())
        self.coef_ = self.basis_.coefficients(w)
        self._keep_certificate(c, notes, system, time.perf_counter() - start)
        return self

    def _system(self, source: Iterable[Batch], far: FarRows | None, n: int) -> Streamed:
        """The sums over all rows: here, or by the workers that have them."""
        known = getattr(self, "feature_names_in_", None)
        names = None if known is None else [str(v) for v in known]
        start = (self.smooth_, self.landmarks_, self.basis_)
        if far is not None:
            return Scattered(*start, far, names=names, dtype=self.dtype, n_jobs=self.n_jobs)
        return Streamed(*start, source, names, self.dtype, self.n_jobs, n, memory_limit(self.memory))

    def _far(self, X: Table | Iterable[Batch], y: Targets | None, sample_weight: Weights) -> FarRows | None:
        """The rows on the workers of the cluster; None where there is none."""
        cluster = active()
        if cluster is None:
            return None
        if isinstance(X, Batches) and X.file is not None:
            y = X.file_targets()
            spread = X.file.on_workers(cluster, X)
            width = len(X.file.columns)
        elif is_source(X, y):
            raise ClusterError(
                "a cluster reads no batches from this process. Pass an array, a Dask array or frame, or "
                "Batches.parquet(path, target), whose file the workers read themselves."
            )
        elif is_collection(X):
            width = shape_of(X)[1]
            spread = on_workers(cluster, X, X)
            self._remember_columns(width, names_of(X))
        else:
            A = self.check_rows(cast(Table, X), reset=True)
            width = A.shape[1] if A.ndim == 2 else 0
            spread = cluster.spread(self.as_rows(A))
        n = spread.lines.n
        targets = self._check_targets(y, n)
        return FarRows(cluster, spread, targets, check_weights(sample_weight, n), width)

    def _remember_columns(self, width: int, names: list[str] | None) -> None:
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

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
        A: Matrix = X if large else self.check_rows(cast(Table, X), reset=True)
        targets = self._check_targets(y, A.shape[0])
        w = None if sample_weight is None else check_weights(sample_weight, A.shape[0])
        return slices(A, targets, w)

    def _choose(self, found: Scan, rng: np.random.Generator, notes: list[str]) -> None:
        K: GramOperator = Tiles(self.smooth_, self.as_rows(found.rows), n_jobs=self.n_jobs)
        m = min(int(self.n_landmarks), len(found.rows))
        choice = choose(self.landmarks, m, K, found.rows, weight=found.weights, rng=rng)
        if choice.index is not None and not isinstance(self.landmarks, str) and found.n > len(found.rows):
            raise ParameterError("landmarks that name rows need all rows in memory; give points.")
        if choice.index is not None:
            Z = found.rows[choice.index]
        else:
            Z = written_out(read_rows(choice.points, found.rows.dtype.kind == "O", "landmarks"))
        inner = Tiles(self.smooth_, self.as_rows(Z, "landmarks"), n_jobs=self.n_jobs).dense()
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
            Tiles(self.smooth_, self.as_rows(found.rows), n_jobs=self.n_jobs),
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

    def _penalty(self, system: Streamed, found: Scan, targets: Targeting, *, logistic: bool) -> _Chosen:
        """α as given, or what the data ask for; then the sums by which it was found, and what is said of it.

        The seconds may be too few for them.
        """
        if self.alpha is not None:
            self.alpha_ = float(self.alpha)
            return _Chosen()
        r = self.basis_.rank
        part = system
        if r > DIRECT_LANDMARKS:
            part = system.part(FEWER_LANDMARKS)
        try:
            sums = part.sums(targets)
        except clock.OutOfTime as stop:
            self.alpha_ = 1.0
            return _Chosen(
                said=(too_long(stop.found), "alpha = 1: no seconds were left to choose it"), late=True
            )
        values, Q = lapack.eigh(sums.M)
        b = Q.T @ sums.b
        best = cross_validated(values, b, sums.size, found.weight, 0.0 if logistic else self.noise_)
        self.alpha_ = best.logistic if logistic else best.alpha
        said = (
            f"alpha = {self.alpha_:.3g} by generalised cross-validation: least squares with {best.alpha:.3g} "
            f"has {best.freedom:.4g} degrees of freedom and an error of {best.error:.3g}"
        )
        if part is not system:
            system.passes += part.passes
            return _Chosen(said=(f"{said}, on {FEWER_LANDMARKS} of the landmarks",))
        return _Chosen(sums, values, Q, (said,))

    def _ridge(self, system: Streamed, found: Scan, targets: Targeting) -> tuple[Array, Certificate]:
        """Weighted least squares with ridge α, and the noise of the kernel in it, for every target."""
        known = self._penalty(system, found, targets, logistic=False)
        alpha = self.alpha_ + self.noise_
        direct = self._direct and not known.late
        said = list(known.said)
        if direct:
            try:
                inverse, b = system.factored(alpha, targets, known=known.sums)
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
        said = f"{named(self.kernel_)} on the span of {r} landmarks, {self.n_rows_fit_} rows, {passes} passes"
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
        on = Evaluated(self.smooth_, self.as_rows(self.landmarks_), index, n_jobs=self.n_jobs)
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
        A: Matrix = X if large else self.check_rows(X, reset=False)
        z = self.kept(self.landmarks_, "landmarks_")
        out = np.empty((A.shape[0], self.coef_.shape[1]))
        for start in range(0, A.shape[0], BATCH):
            part = slice(start, start + BATCH)
            x = check_vectors(A[part]) if large else A[part]
            x = written_out(x)
            out[part] = Tiles(self.smooth_, self.as_rows(x), z, n_jobs=self.n_jobs) @ self.coef_
        return out


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What choosing α left: sums over all rows with their eigenvalues and vectors, if any, and what to say.

    `late` says that the seconds were too few for sums.
    """

    sums: Sums | None = None
    values: Array | None = None
    vectors: Array | None = None
    said: tuple[str, ...] = ()
    late: bool = False


def slices(A: Matrix, y: Labels, w: Array | None) -> Batches:
    """Checked rows and targets, a slice at a time."""
    source = Batches.of(A, y, w)
    source.things = A.dtype.kind == "O"
    return source


def _say(iteration: int, residual: float) -> str:
    return f"{iteration} iterations, residual {residual:.3g}"
