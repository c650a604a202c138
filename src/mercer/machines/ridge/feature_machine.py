"""Ridge regression and classification with a kernel that learns its features (recursive feature machines).

A function is fitted, its gradients at all rows say along which directions it changes, and the kernel measures
distances by them in the next round. Bandwidth, penalty, the form of the metric and how many rounds are chosen
by leave-one-out in closed form, so that no rows are held back.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from mercer.arrays import Rows
from mercer.errors import InputError, MemoryBudgetError, ParameterError, warn
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.families import Radial
from mercer.kernels.rules.readings import Read
from mercer.kernels.things.metric import Metric
from mercer.kernels.things.scaling import Standardized
from mercer.machines.margin.calibrate import Calibration, calibrate
from mercer.machines.ridge.feature_search import FeaturePath, Sample, Search, search
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.parts import Options
from mercer.machines.shared.base import as_machine_kernel, check_weights, duels_of, generator
from mercer.machines.shared.machine import put_on_rows
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Whole
from mercer.machines.shared.targets import check_labels, check_target_block
from mercer.memory import memory_limit, say_bytes
from mercer.params import Open
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Memory, Numbers, Seed, Table, Targets, Weights

FORMS = ("full", "diagonal")
EXPONENTS = (1.0, 0.5)
# n×n arrays alive at one time in a search.
ARRAYS = 4
# What comes after a search, in Gram matrices of all rows: the system and its residual.
AT_END = 3.0
# A search on fewer rows than this tells nothing of many.
FEWEST = 50
# Landmarks of the function where not all rows fit in memory.
LANDMARKS = 3000


class Direction(NamedTuple):
    """A direction along which the function changes: its share of the metric, and its columns by weight."""

    share: float
    weights: dict[str, float]

    def __str__(self) -> str:
        shown = [(name, v) for name, v in self.weights.items() if abs(v) >= 0.1][:6]
        words = "".join(f" {'+' if v >= 0 else '-'} {abs(v):.2f} {name}" for name, v in shown)
        return f"{100 * self.share:.1f} %: {words.strip().removeprefix('+ ')}"


class FeatureMachine(RidgeMachine):
    """What both feature machines share: learn the metric, then fit the ridge with it on all rows."""

    alpha: float | None
    metric: str
    exponent: float | str
    rank: int | None
    n_updates: int
    search_rows: int
    n_landmarks: int | None
    max_seconds: float | None
    verbose: int

    parameters: ClassVar[Declarations] = {
        "kernel": TABLE["kernel"].but(
            about="A radial kernel of all columns (`Exponential`, `RBF`, `Matern`, `RationalQuadratic` or "
            "your own), or its text. Its lengthscale, in units of the standardised columns under the metric, "
            "is found by leaving one out where it is open, and kept where it is given.",
        ),
        "alpha": Number(none=True, about="The price of ‖f‖²; None to find it by leaving one out."),
        "metric": Choice(
            ("auto", *FORMS),
            about='A full matrix, which turns the columns, or a diagonal one, which weighs them; "auto" '
            "tries both.",
        ),
        "exponent": Number(
            high=2.0,
            closed_high=True,
            also=("auto",),
            about='The metric is this power of the average outer product of gradients; "auto" tries 1 and ½.',
        ),
        "rank": Whole(
            1, none=True, about="So many directions are kept, those of the largest share; None for all."
        ),
        "n_updates": Whole(
            0, about="How often the metric is learned anew, at most; the best round is kept. 0 for none."
        ),
        "search_rows": Whole(
            2,
            about="The metric, the lengthscale and alpha are found on so many rows at most, drawn at random; "
            "the function is fitted on all.",
        ),
        "n_landmarks": Whole(
            1,
            none=True,
            about="Rows that the function is built on where the Gram matrix of all rows does not fit in "
            f"`memory`; None for {LANDMARKS}.",
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "Exponential()",
        alpha: float | None = None,
        *,
        metric: str = "auto",
        exponent: float | str = "auto",
        rank: int | None = None,
        n_updates: int = 8,
        search_rows: int = 2000,
        n_landmarks: int | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        max_seconds: float | None = None,
        strict: bool = False,
        memory: Memory = "2GiB",
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.metric = metric
        self.exponent = exponent
        self.rank = rank
        self.n_updates = n_updates
        self.search_rows = search_rows
        self.n_landmarks = n_landmarks
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_seconds = max_seconds
        self.strict = strict
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _learn_from(self, A: Matrix, Y: Array, w: Array) -> Array:
        """The search on some rows, then the ridge on all; the leave-one-out predictions of the search."""
        rows = self.as_rows(A).checked()
        leaf = self.radial
        kept = np.flatnonzero(w > 0)
        self.search_rows_ = self._drawn(kept)
        standardized = Standardized().resolved_on(rows, w)
        found, status = self._searched(standardized, leaf, A[self.search_rows_], Y, w)
        best = found.best()
        self.path_ = found.path()
        self.alpha_ = found.rounds[best].alpha
        self.kernel_ = self._kernel_of(found, best, standardized)
        on = put_on_rows(self.kernel_, rows, w, memory=self.memory, n_jobs=self.n_jobs)
        self.X_fit_ = A
        self._weight = w
        self._targets = Y
        self.__dict__.pop("_left_out", None)
        problem = self._problem(self._options(), on)
        self._notes = (*self._judged(on, rows=kept), _said(self.path_, len(self.search_rows_), len(kept)))
        self._solve(problem, Y[kept], np.full(Y.shape[1], self.alpha_), kept)
        self._ended(status)
        fit = found.fits[best]
        searched = Y[self.search_rows_]
        if fit is None:
            # No model is left without a row, so that it says nothing.
            return np.zeros_like(searched)
        return np.asarray(searched - fit.errors * deviations(searched, w[self.search_rows_]))

    def _searched(
        self, standardized: Any, leaf: Radial, A: Matrix, Y: Array, w: Array
    ) -> tuple[Search, Status]:
        rows = self.search_rows_
        X = np.asarray(standardized.read(Rows(A)).vectors, dtype=np.float64)
        sample = Sample(
            X,
            in_units(Y[rows], w[rows]),
            w[rows],
            leaf,
            bool(self.fit_intercept),
            self.given_bandwidth,
            self.alpha if self.alpha is None else float(self.alpha),
            self.n_jobs,
            AT_END * (np.count_nonzero(w > 0) / len(rows)) ** 2,
        )
        forms = FORMS if self.metric == "auto" else (self.metric,)
        exponents = EXPONENTS if isinstance(self.exponent, str) else (float(self.exponent),)
        return search(sample, forms, exponents, updates=self.n_updates, rank=self.rank, verbose=self.verbose)

    @property
    def radial(self) -> Radial:
        """The radial kernel whose distances are learned."""
        kernel = as_machine_kernel(self.kernel)
        if not isinstance(kernel, Radial) or isinstance(kernel.lengthscale, tuple):
            raise ParameterError(
                f"{type(self).__name__}: kernel must be one radial kernel with one lengthscale, such as "
                f"'Exponential()', 'RBF()' or 'Matern(nu=1.5)', since the metric of its distances is "
                f"learned; got {self.kernel!r}."
            )
        return kernel

    def _check_kernel(self) -> None:
        """Refuse a kernel whose distances cannot be learned, before any row is read."""
        assert self.radial is not None

    @property
    def given_bandwidth(self) -> float | None:
        """The lengthscale that was given; None to find it."""
        value = self.radial.lengthscale
        return None if isinstance(value, Open) else float(value)  # type: ignore[arg-type]

    def _drawn(self, kept: Integers) -> Integers:
        """The rows of the search: all, or as many as are asked for and fit in memory."""
        limit = memory_limit(self.memory)
        most = int(np.sqrt(limit / (8 * ARRAYS)))
        count = min(len(kept), int(self.search_rows), most)
        if count < min(FEWEST, len(kept), int(self.search_rows)):
            needed = 8 * ARRAYS * min(FEWEST, len(kept)) ** 2
            raise MemoryBudgetError(
                f"memory={self.memory!r} is enough for a search on {most} rows, and {min(FEWEST, len(kept))} "
                f"are needed, which take {say_bytes(needed)}. Raise memory=."
            )
        if count == len(kept):
            return kept
        return np.sort(generator(self.random_state).permutation(kept)[:count])

    def _kernel_of(self, found: Search, best: int, standardized: Any) -> Kernel:
        """k(‖(x - z) R‖ / ℓ) of the standardised columns, as one expression of the language."""
        done = found.rounds[best]
        root = found.roots[best]
        return Read(Read(found.sample.closed(done.bandwidth), metric_of(root, done.form)), standardized)

    def _options(self) -> Options:
        exact = 8 * len(self._weight) ** 2 <= memory_limit(self.memory)
        return Options(
            solver="cholesky" if exact else "nystrom",
            tol=float(self.tol),
            memory=self.memory,
            n_landmarks=LANDMARKS if self.n_landmarks is None else self.n_landmarks,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _ended(self, status: Status) -> None:
        """What the end of the search means for the certificate."""
        if status == Status.CONVERGED:
            return
        whole = Status.worst([self.certificate_.status, status])
        self.certificate_ = dataclasses.replace(self.certificate_, status=whole)
        if status == Status.LIMIT:
            warn(
                f"the search for the metric ended after {len(self.path_.errors)} rounds, when max_seconds="
                f"{self.max_seconds!r} were used up; the best of them is kept. Raise max_seconds, or lower "
                "search_rows.",
                ConvergenceWarning,
            )

    def _separable(self, noise: Array) -> bool:
        return True

    def fitted_alpha(self) -> Numbers:
        return self.alpha_

    # ── what was learned ────────────────────────────────────────────────────────────────────────────────────

    @property
    def metric_(self) -> Array:
        """M of the standardised columns: distances are (x - z)ᵀ M (x - z)."""
        root = self._root()
        return np.diag(root**2) if root.ndim == 1 else np.asarray(root @ root.T)

    @property
    def feature_importances_(self) -> Array:
        """The diagonal of the metric, as shares: how much the function changes along each column."""
        own = np.diagonal(self.metric_)
        total = float(own.sum())
        return np.asarray(own / total if total > 0 else np.full(len(own), 1.0 / len(own)))

    def directions(self, names: list[str] | None = None, n_directions: int = 5) -> list[Direction]:
        """The directions along which the function changes most, with their share of the trace of the metric.

        A direction is a vector of length 1 of the standardised columns, the largest entries first, the sign
        such that the largest is positive. `names` are those of the columns, by default those of fit.
        """
        M = self.metric_
        if names is None:
            known = getattr(self, "feature_names_in_", None)
            names = [f"column {j}" for j in range(len(M))] if known is None else [str(name) for name in known]
        if len(names) != len(M):
            raise ParameterError(
                f"directions: {len(names)} names were given, and there are {len(M)} columns."
            )
        values, vectors = np.linalg.eigh(M)
        total = float(values.sum()) or 1.0
        out: list[Direction] = []
        for j in np.argsort(-values, kind="stable")[:n_directions]:
            v = vectors[:, j] * np.sign(vectors[np.argmax(np.abs(vectors[:, j])), j])
            order = np.argsort(-np.abs(v), kind="stable")
            out.append(Direction(float(values[j]) / total, {names[i]: float(v[i]) for i in order}))
        return out

    def _root(self) -> Array:
        self.require_fit("dual_coef_")
        assert isinstance(self.kernel_, Read) and isinstance(self.kernel_.kernel, Read)
        reading = self.kernel_.kernel.reading
        assert isinstance(reading, Metric)
        return reading.root

    def honest_error(self, random_state: Seed = 0) -> Array | float:
        """The mean squared error of rows that neither the search nor the fit has seen, from the rows of fit.

        The least leave-one-out error of a search flatters: it was chosen for being the least. Here the search
        is made on one half of the rows, and the function with that metric is then left out row by row on the
        other half, all others being kept; both halves in turn. It is an estimate for a search on half as many
        rows, so it errs on the side of too much. Takes about two searches on n/2 rows and two fits.
        """
        self.require_fit("dual_coef_")
        kept = np.flatnonzero(self._weight > 0)
        order = generator(random_state).permutation(kept)
        halves = (order[: len(order) // 2], order[len(order) // 2 :])
        total = np.zeros(self._targets.shape[1])
        for learned, judged in (halves, halves[::-1]):
            errors = self._left_out_of(learned)[judged]
            total += self._weight[judged] @ errors**2
        found = total / self._weight[kept].sum()
        return float(found[0]) if self._single else np.asarray(found)

    def _left_out_of(self, learned: Integers) -> Array:
        """Errors of leaving each row out of a fit on all rows, with what was found on some of them."""
        twin: Any = type(self)(**{**self.get_params(deep=False), "max_seconds": None, "verbose": 0})
        twin._single = self._single
        for name in ("n_features_in_", "feature_names_in_"):
            if name in self.__dict__:
                setattr(twin, name, getattr(self, name))
        w = np.zeros_like(self._weight)
        w[learned] = self._weight[learned]
        twin._learn_from(self.X_fit_, self._targets, w)
        alpha = float(twin.alpha_)
        rows = self.as_rows(self.X_fit_)
        on = put_on_rows(twin.kernel_, rows, self._weight, memory=self.memory, n_jobs=self.n_jobs)
        twin._weight = self._weight
        problem = twin._problem(twin._options(), on)
        kept = np.flatnonzero(self._weight > 0)
        twin._solve(problem, self._targets[kept], np.full(self._targets.shape[1], alpha), kept)
        return np.asarray(self._targets - twin._left_out.predictions)


class FeatureMachineRegressor(MultiOutputMixin, RegressorMixin, FeatureMachine):
    """Kernel ridge regression whose kernel learns along which directions the function changes.

        f = Σ_j c_j k(‖(x - x_j) M^½‖ / ℓ) + b,      M ← (average of ∇f(x_i) ∇f(x_i)ᵀ)^p,      and again

    The columns are standardised first, so that units do not matter. ℓ, α, the form of M, p and the number of
    rounds are those of the least leave-one-out error, in closed form. That error flatters, since it was
    searched for; `honest_error()` does not.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    kernel_ : the learned kernel, an expression of the language. metric_ : M of the standardised columns.
    feature_importances_ : its diagonal as shares. directions(names) : its directions in words.
    path_ : every round: iteration, form, exponent, bandwidth, alpha, leave-one-out error, and the best.
    alpha_, search_rows_ : the penalty, and the rows of the search.
    dual_coef_, intercept_, solver_, certificate_, loo_predictions_, loo_error_, dof_ : as of `KernelRidge`.

    >>> from mercer import FeatureMachineRegressor
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> model = FeatureMachineRegressor("RBF()").fit(X, np.sin(2 * (X[:, 0] - X[:, 1])))
    >>> print(model.directions(list("abcde"), 1)[0])
    100.0 %: 0.77 b - 0.64 a
    """

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and numbers y, n or n × targets; a row of weight 0 counts not at all."""
        self._check_parameters()
        self._check_kernel()
        A = self.check_rows(X, reset=True)
        Y, self._single = check_target_block(y, A.shape[0], type(self).__name__)
        self._learn_from(A, Y, check_weights(sample_weight, A.shape[0]))
        return self


class FeatureMachineClassifier(ClassifierMixin, FeatureMachine):
    """Least-squares classification whose kernel learns along which directions the classes change.

    Two classes are the codes ±1 of one function; more have a function each, +1 for the class and -1 for the
    rest, which share one metric, ℓ and α. All is found as in `FeatureMachineRegressor`, by leave-one-out of
    the codes. Probabilities are those of greatest likelihood for the leave-one-out decision values of the
    search.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    classes_ : the labels. calibration_ : from decision values to probabilities.
    The others are those of `FeatureMachineRegressor`.

    >>> from mercer import FeatureMachineClassifier
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> y = np.where(X[:, 0] > X[:, 1], "more", "less")
    >>> model = FeatureMachineClassifier("RBF()").fit(X, y)
    >>> model.predict([[1.0, -1.0, 0.0, 0.0, 0.0]]), model.predict_proba(X).shape
    (array(['more'], dtype='<U4'), (80, 2))
    """

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and labels y; a row of weight 0 counts not at all."""
        self._check_parameters()
        self._check_kernel()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        self.classes_, codes = check_labels(y, A.shape[0], type(self).__name__)
        self._single = len(self.classes_) == 2
        scores = self._learn_from(A, codes_of(codes, len(self.classes_)), w)
        self.calibration_: Calibration = calibrate(scores, codes[self.search_rows_], w[self.search_rows_])
        return self

    def decision_function(self, X: Table) -> Array:
        """Two classes: n values, positive for `classes_[1]`. More: n × classes, the largest one wins."""
        return RidgeMachine.predict(self, X)

    def predict(self, X: Table) -> Labels:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Labels = self.classes_[winners]
        return labels

    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes; the likeliest class is the one predicted."""
        self.require_fit("calibration_")
        return self.calibration_(self.decision_function(X))

    def _read_targets(self, y: Targets, n: int) -> Array:
        classes, codes = check_labels(y, n, type(self).__name__)
        if not np.array_equal(classes, self.classes_):
            raise InputError(f"y has the classes {classes}, and the model was fitted on {self.classes_}.")
        return codes_of(codes, len(classes))

    def _function_facts(self) -> dict[str, Any]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_)}


def codes_of(codes: Integers, classes: int) -> Array:
    """±1: one column for two classes, one for each of more."""
    if classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)


def in_units(Y: Array, weight: Array) -> Array:
    """Targets with mean 0 and deviation 1; a constant one becomes 0."""
    centred = Y - weight @ Y / weight.sum()
    size = deviations(Y, weight)
    return np.asarray(np.divide(centred, size, out=np.zeros_like(centred), where=size > 0))


def deviations(Y: Array, weight: Array) -> Array:
    """The deviation of each target; 0 for a constant one, of which rounding may leave something."""
    share = weight / weight.sum()
    size = np.sqrt(share @ (Y - share @ Y) ** 2)
    return np.where(size > 1e-12 * np.abs(Y).max(axis=0, initial=0.0), size, 0.0)


def metric_of(root: Array, form: str) -> Metric:
    """The metric as the language writes it: diagonal, by a factor of low rank, or as a matrix."""
    if root.shape[0] == root.shape[1]:
        if form != "full":
            return Metric(tuple((np.diagonal(root) ** 2).tolist()))
        M = root @ root.T
        return Metric(((M + M.T) / 2).tolist())
    return Metric(factor=root.tolist())


def _said(path: FeaturePath, searched: int, rows: int) -> str:
    """What the search found, as a note."""
    best = path.best
    form = "no metric" if path.iterations[best] == 0 else f"a {path.forms[best]} metric"
    where = "all rows" if searched == rows else f"{searched} of {rows} rows"
    return (
        f"{form} after {path.iterations[best]} updates, of {len(path.errors)} fits on {where}: its "
        f"leave-one-out error is {np.sqrt(path.errors[best]):.4g} of the spread of y, the least of all, and "
        "flatters for that"
    )
