"""What the feature machines of numbers and of classes share: a metric is learned, then the function."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.arrays import Rows
from mercer.errors import MemoryBudgetError, ParameterError, warn
from mercer.gram.cluster import active
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.families import Radial
from mercer.machines.ridge.feature_fits import Sample
from mercer.machines.ridge.feature_kernel import (
    LEAVES,
    Asked,
    Direction,
    Learned,
    given_bandwidth,
    metric_of,
)
from mercer.machines.ridge.feature_search import UNTOLD, FeaturePath, Search, search
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.parts import Options
from mercer.machines.shared.base import as_machine_kernel, generator
from mercer.machines.shared.machine import put_on_rows
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number, Whole
from mercer.memory import memory_limit, say_bytes
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Memory, Numbers, Seed

FORMS = ("full", "diagonal")
EXPONENTS = (1.0, 0.5)
# n×n arrays alive at one time in a search.
ARRAYS = 4
# What comes after a search, in Gram matrices of all rows: the system and its residual.
AT_END = 3.0
# A search on fewer rows than this tells nothing of many.
FEWEST = 50
# Of several kernels one is chosen by searches on so many rows, with so many updates at most.
RACED = 600
RACED_UPDATES = 3
# Landmarks of the function where not all rows fit in memory.
LANDMARKS = 3000


class FeatureMachine(RidgeMachine):
    """What both feature machines share: learn the metric, then fit the ridge with it on all rows."""

    on_cluster = True

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
            about="A radial kernel (`Exponential`, `RBF`, `Matern`, `RationalQuadratic` or your own), its "
            "text, or a list of several, of which leave-one-out errors choose. Columns are standardised, or "
            "read as it says: `RBF().of(Coded())` reads a mixed table. A lengthscale, in units of what is "
            "read under the metric, is found by leaving one out where it is open, and kept where given.",
            type="Kernel, str, or a list of them",
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
        kernel: Kernel | str | Sequence[Kernel | str] = LEAVES,
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
        kept = np.flatnonzero(w > 0)
        self.search_rows_ = self._drawn(kept)
        asked = self.asked.closed_on(rows, w)
        found, status = self._searched(asked, rows.rows(self.search_rows_), Y, w)
        best = found.best()
        self.path_ = found.path()
        self.alpha_ = found.rounds[best].alpha
        self.kernel_ = _kernel_of(asked, found, best)
        on = put_on_rows(self.kernel_, rows, w, memory=self.memory, n_jobs=self.n_jobs)
        self.X_fit_ = A
        self._weight = w
        self._targets = Y
        self.__dict__.pop("_left_out", None)
        problem = self._problem(self._options(), on)
        said = _said(self.path_, len(self.search_rows_), len(kept), found.sample.leaf, asked.leaves)
        self._notes = (*self._judged(on, rows=kept), said)
        self._solve(problem, Y[kept], np.full(Y.shape[1], self.alpha_), kept)
        self._ended(status)
        fit = found.fits[best]
        searched = Y[self.search_rows_]
        if fit is None:
            # No model is left without a row, so that it says nothing.
            return np.zeros_like(searched)
        return np.asarray(searched - fit.errors * deviations(searched, w[self.search_rows_]))

    def _searched(self, asked: Asked, rows: Rows, Y: Array, w: Array) -> tuple[Search, Status]:
        """The search with the kernel that was asked for, or with the best of several."""
        index = self.search_rows_
        X = asked.read(rows)
        T = in_units(Y[index], w[index])
        at_end = AT_END * (np.count_nonzero(w > 0) / len(index)) ** 2
        samples = [self._sample(leaf, X, T, w[index], at_end) for leaf in asked.leaves]
        if len(samples) == 1:
            return self._search(samples[0], self.n_updates)
        few = np.linspace(0, len(index) - 1, min(len(index), RACED)).astype(np.intp)
        trials = [self._search(sample.of_rows(few), RACED_UPDATES) for sample in samples]
        whole = len(few) == len(index) and self.n_updates <= RACED_UPDATES
        if not whole:
            told = [found.judged_error for found, _ in trials]
            # where some rows tell nothing, all of them choose
            left = samples if min(told) > UNTOLD else [samples[int(np.argmin(told))]]
            ended = [status for _, status in trials]
            trials = [self._search(sample, self.n_updates) for sample in left]
            return _best(trials), Status.worst([*ended, *(status for _, status in trials)])
        return _best(trials), Status.worst([status for _, status in trials])

    def _sample(self, leaf: Radial, X: Array, T: Array, w: Array, at_end: float) -> Sample:
        alpha = self.alpha if self.alpha is None else float(self.alpha)
        bandwidth = given_bandwidth(leaf)
        return Sample(X, T, w, leaf, bool(self.fit_intercept), bandwidth, alpha, self.n_jobs, at_end)

    def _search(self, sample: Sample, updates: int) -> tuple[Search, Status]:
        forms = FORMS if self.metric == "auto" else (self.metric,)
        exponents = EXPONENTS if isinstance(self.exponent, str) else (float(self.exponent),)
        updates = min(updates, self.n_updates)
        return search(sample, forms, exponents, updates=updates, rank=self.rank, verbose=self.verbose)

    @property
    def asked(self) -> Asked:
        """What `kernel` says: columns, how they are read, and radial kernels whose distances are learned."""
        return Asked.of(self.kernel, type(self).__name__)

    def _check_kernel(self) -> None:
        """Refuse a kernel whose distances cannot be learned, before any row is read."""
        assert self.asked is not None

    def _takes_things(self) -> bool:
        """Whether columns are read that may be no numbers; several kernels read the same ones."""
        several = isinstance(self.kernel, list | tuple) and len(self.kernel) > 0
        kernel = as_machine_kernel(self.kernel[0] if several else self.kernel)
        return kernel is not None and not kernel.reads_numbers()

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

    def _options(self) -> Options:
        exact = 8 * len(self._weight) ** 2 <= memory_limit(self.memory)
        # On a cluster products are the workers' work, and a factor is not: which is less, "auto" finds out.
        direct = "cholesky" if active() is None else "auto"
        return Options(
            solver=direct if exact else "nystrom",
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
        root = self._learned().metric.root
        return np.diag(root**2) if root.ndim == 1 else np.asarray(root @ root.T)

    @property
    def feature_importances_(self) -> Array:
        """The diagonal of the metric, as shares: how much the function changes along each column.

        What several numbers say of one column, such as the indicators of a category, is added up.
        """
        own = np.diagonal(self.metric_)
        names = getattr(self, "feature_names_in_", None)
        sources = self._learned().asked.sources(names, self.n_features_in_, len(own))
        found = np.zeros(self.n_features_in_)
        np.add.at(found, sources, own)
        total = float(found.sum())
        return np.asarray(found / total if total > 0 else np.full(len(found), 1.0 / len(found)))

    def directions(self, names: list[str] | None = None, n_directions: int = 5) -> list[Direction]:
        """The directions along which the function changes most, with their share of the trace of the metric.

        A direction is a vector of length 1 of the columns as they are read, the largest entries first, the
        sign such that the largest is positive. `names` are those of the columns, by default those of fit.
        """
        learned = self._learned()
        M = self.metric_
        known = getattr(self, "feature_names_in_", None)
        if names is not None and len(names) != self.n_features_in_:
            raise ParameterError(
                f"directions: {len(names)} names were given, and there are {self.n_features_in_} columns."
            )
        if names is None:
            names = [f"column {j}" for j in range(self.n_features_in_)] if known is None else list(known)
        called = learned.asked.names([str(name) for name in names])
        return Direction.all_of(M, called, n_directions)

    def _learned(self) -> Learned:
        self.require_fit("dual_coef_")
        found = Learned.of(self.kernel_)
        assert found is not None
        return found

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


def _kernel_of(asked: Asked, found: Search, best: int) -> Kernel:
    """k(‖(x - z) R‖ / ℓ) of a round, as one expression of the language."""
    done = found.rounds[best]
    return asked.kernel(found.sample.closed(done.bandwidth), metric_of(found.roots[best], done.form))


def _best(trials: list[tuple[Search, Status]]) -> Search:
    return min((found for found, _ in trials), key=lambda found: found.judged_error)


def _said(path: FeaturePath, searched: int, rows: int, leaf: Radial, leaves: tuple[Radial, ...]) -> str:
    """What the search found, as a note."""
    best = path.best
    form = "no metric" if path.iterations[best] == 0 else f"a {path.forms[best]} metric"
    where = "all rows" if searched == rows else f"{searched} of {rows} rows"
    kernel = "" if len(leaves) == 1 else f"{leaf}, of {len(leaves)} kernels, with "
    found = f"{kernel}{form} after {path.iterations[best]} updates, of {len(path.errors)} fits on {where}"
    error = np.sqrt(path.errors[best])
    if not np.isfinite(path.expected[best]):
        return (
            f"{found}: its leave-one-out error is {error:.4g} of the spread of y, the least of all, and "
            "flatters for that"
        )
    return (
        f"{found}: its leave-one-out error is {error:.4g} of the spread of y, and flatters, since the metric "
        f"has seen the row; {np.sqrt(path.expected[best]):.4g} is to be expected, by rows that their metrics "
        "had not seen"
    )
