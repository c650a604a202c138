"""K-means in feature space: clusters with curved borders, from kernel products alone (M3)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.errors import InputError, ParameterError, PrecisionWarning, ShapeError, warn
from mercer.gram import GramOperator
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Approximated, Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, ChoiceOrArray, Declarations, Number, Whole, steps_allowed
from mercer.machines.structure.centred import invalid_after_centring
from mercer.machines.structure.lloyd import Clustering, lloyd, nearest_seed, plus_plus
from mercer.machines.structure.spectral import spectral_start
from mercer.progress import Tell, teller
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Memory, Numbers, Seed, Table, Targets, Weights

INITS = ("k-means++", "spectral", "random")


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Machine):
    """Clusters whose rows are nearest to their own centre in feature space, seen only by kernel products.

        c_j = Σ_n α_nj φ(x_n),   α_nj = w_n / Σ_{m in j} w_m for the rows of cluster j, else 0
        ‖φ(x) - c_j‖² = k(x, x) - 2 Σ_n α_nj k(x, x_n) + Σ_n Σ_m α_nj α_mj k(x_n, x_m)
        inertia = Σ_n w_n min_j ‖φ(x_n) - c_j‖²

    Lloyd's steps: assign each row to the nearest centre, move the centres, until no row moves. The inertia
    never rises. A cluster that loses all its rows gets the row that is farthest from its centre (largest
    w·‖φ(x) - c‖²), which lowers the inertia; if every row is at its centre, fewer distinct points than
    clusters exist: the cluster stays empty, its distances are infinite, and a warning says so. K is stored
    if it fits in `memory`; else its tiles are computed anew in every pass, and only for the rows that moved
    once these are few.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    labels_, inertia_, n_iter_, cluster_weights_ : Σ w of each cluster.
    objective_ : the inertia after every step of the run that was kept; it never rises.
    certificate_ : `primal` is the inertia; after init="spectral" `dual` is below that of any clustering.
    kernel_, X_fit_

    >>> from mercer import KernelKMeans
    >>> X = [[0.0], [0.2], [5.0], [5.1]]
    >>> model = KernelKMeans("RBF(1.0)", 2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3])
    True
    >>> print(model.certificate_.status, round(model.inertia_, 4))
    converged 0.0248
    """

    on_cluster = True

    invalid: ClassVar[Invalid] = invalid_after_centring("distances may be negative and the inertia may rise")
    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="Features in place of the kernel; the centres are then points of that space, the columns "
            "of `feature_coef_`."
        ),
        "n_clusters": Whole(1, about="How many clusters."),
        "init": ChoiceOrArray(
            INITS,
            array="a label for each row",
            about="Greedy in feature space; by the relaxed problem, whose leading eigenvectors also bound "
            "the inertia from below (further "
            'runs start as "k-means++"); rows as centres; or a label 0 … n_clusters - 1 for each row.',
        ),
        "n_init": Whole(
            1,
            also=("auto",),
            about='Runs from different starts, of which the best is kept; "auto" is 10 for "random" and 1 '
            "for the others.",
        ),
        "max_iter": Whole(1, none=True, about="Steps in a run; None for no limit."),
        "tol": Number(
            closed_low=True,
            about="A run also ends when a step lowers the inertia by less than tol times itself.",
        ),
        "max_seconds": Number(
            none=True, about="For all runs together; the best model so far is kept, as it is after Ctrl-C."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_clusters: int = 8,
        *,
        init: str | Numbers = "k-means++",
        n_init: int | str = "auto",
        max_iter: int | None = 300,
        tol: float = 0.0,
        max_seconds: float | None = None,
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.approximation = approximation

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Cluster the rows of X; `y` is ignored. Weight 2 is a row twice.

        Rows of weight 0 do not move the centres.
        """
        whole = Anytime[Clustering]()
        self._check_parameters()
        runs = self._runs()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        if int((w > 0).sum()) < self.n_clusters:
            raise InputError(
                f"n_samples={int((w > 0).sum())} (rows of positive weight) should be >= "
                f"n_clusters={self.n_clusters}."
            )
        on = self._kernel_on(A, w)
        K = on.gram()
        notes = self._judged(on, K)
        bound, more = self._run_all(whole, K, w, runs)
        assert whole.best is not None
        best = whole.best
        status: Status = best.status
        if whole.interrupted:
            status = Status.INTERRUPTED
        self._keep(on, A, w, best)
        self.certificate_ = Certificate(
            status,
            f"Lloyd's steps from {'given labels' if not isinstance(self.init, str) else self.init}",
            iterations=best.steps,
            seconds=whole.seconds,
            primal=self.inertia_,
            dual=bound,
            gap=None if bound is None else self.inertia_ - bound,
            notes=(*notes, *more, *self._doubts(K, w)),
        )
        self.n_iter_ = best.steps
        if status == Status.LIMIT:
            warn(
                f"stopped before every row was with its nearest centre ({self.certificate_}). Raise "
                "max_iter, max_seconds or tol.",
                ConvergenceWarning,
            )
        return self

    def _runs(self) -> int:
        """From how many starts: one where they are given."""
        if not isinstance(self.init, str):
            return 1
        if self.n_init == "auto":
            return 10 if self.init == "random" else 1
        return int(self.n_init)

    def _run_all(
        self, whole: Anytime[Clustering], K: GramOperator, w: Array, runs: int
    ) -> tuple[float | None, list[str]]:
        """All runs, of which `whole` keeps the best: the spectral bound if any, and what has to be said."""
        rng = check_random_state(self.random_state)
        diagonal = np.asarray(K.diag(), dtype=np.float64)
        bound: float | None = None
        notes: list[str] = []
        done = 0
        with whole:
            for done in range(1, runs + 1):
                began = clock.now()
                labels, low, more = self._start(K, w, diagonal, rng, done)
                bound = low if bound is None else bound
                notes += more
                run = lloyd(
                    K, w, diagonal, labels, int(self.n_clusters),
                    max_iter=steps_allowed(self.max_iter), tol=float(self.tol), tell=self._teller(done),
                )  # fmt: skip
                if whole.best is None or run.inertia < whole.best.inertia:
                    whole.best = run
                # Whichever run was the best, Ctrl-C in this one ended the fit.
                whole.status = run.status
                step = (clock.now() - began) / run.steps
                if whole.interrupted or clock.short_of(step):
                    break
        if runs > 1:
            notes = [*notes, f"the best of {done} runs" + ("" if done == runs else f" ({runs} were asked)")]
        return bound, notes

    def _start(
        self, K: GramOperator, w: Array, diagonal: Array, rng: np.random.RandomState, run: int
    ) -> tuple[Integers, float | None, list[str]]:
        k = int(self.n_clusters)
        n = len(w)
        if not isinstance(self.init, str):
            return _given_labels(self.init, n, k), None, []
        if self.init == "spectral" and run == 1:
            return spectral_start(K, w, diagonal, k, rng)
        if self.init == "random":
            seeds = rng.choice(n, k, replace=False, p=w / w.sum())
        else:
            seeds = plus_plus(K, w, diagonal, k, rng)
        return nearest_seed(K, diagonal, seeds), None, []

    def _teller(self, run: int) -> Tell | None:
        def words(step: int, inertia: float, moved: int) -> str:
            return f"run {run}, step {step}: inertia {inertia:.9g}, {moved} rows moved"

        return teller(self.verbose, words)

    def _keep(self, on: KernelOnRows, A: Matrix, w: Array, run: Clustering) -> None:
        self.X_fit_ = A
        self.labels_ = run.labels.astype(np.int32)
        self.inertia_ = run.inertia
        self.objective_ = np.array(run.objective)
        self.cluster_weights_ = run.masses
        self._members = np.flatnonzero(w > 0)
        self._codes = run.members[self._members]
        self._alpha = w[self._members] / run.masses[self._codes]
        self._norms = run.norms
        self._keep_feature_coef(on.part(self._members), self._memberships())
        self._n_features_out = int(self.n_clusters)

    def _memberships(self) -> Array:
        """α_nj, members × clusters."""
        coef = np.zeros((len(self._members), int(self.n_clusters)))
        coef[np.arange(len(self._members)), self._codes] = self._alpha
        return coef

    def _doubts(self, K: GramOperator, w: Array) -> list[str]:
        """Empty clusters, and distances that are hardly more than the rounding of K."""
        notes = []
        empty = int((self.cluster_weights_ == 0).sum())
        if empty:
            k = int(self.n_clusters)
            text = (
                f"Number of distinct clusters ({k - empty}) found smaller than n_clusters ({k}): no row is "
                "left at a distance from its centre. Possibly due to duplicate points in X"
            )
            warn(f"{text}. Ask for fewer clusters.", ConvergenceWarning)
            notes.append(text)
        rounding = 8 * np.finfo(float).eps * float(np.abs(K.diag()).max())
        if 0 < self.inertia_ / w.sum() < 1e6 * rounding and self.inertia_ > rounding * w.sum():
            text = (
                f"k(x, x) is up to {np.abs(K.diag()).max():.3g} and the mean squared distance "
                f"{self.inertia_ / w.sum():.3g}: fewer than six digits of the distances are right"
            )
            warn(f"{text}. Centre the columns of X.", PrecisionWarning)
            notes.append(text)
        return notes

    # ── new points ──────────────────────────────────────────────────────────────────────────────────────────

    def _partial(self, X: Table) -> tuple[Array, Array | None]:
        """-2 Σ α k + ΣΣ αα k for every cluster, and k(x, x) where it is known."""
        check_is_fitted(self, "labels_")
        A = self.check_rows(X, reset=False)
        on = self._fitted_on(self.X_fit_)
        if len(self._members) < len(on):
            on = on.part(self._members)
        if isinstance(on, Approximated):
            return self._norms - 2 * on.times(A, self.feature_coef_), on.diagonal(A)
        partial = self._norms - 2 * on.products(A, self._memberships())
        return partial, None if isinstance(on, Given) else on.diagonal(A)

    def _functions(self) -> Functions:
        """⟨c_j, ·⟩: the centres."""
        check_is_fitted(self, "labels_")
        return self._functions_on(
            self.X_fit_[self._members],
            self._memberships(),
            0.0,
            self._members,
            known_norms=np.sqrt(np.maximum(self._norms, 0.0)),
            what="⟨c_j, ·⟩, the centres",
        )

    def predict(self, X: Table) -> Integers:
        """The cluster of the nearest centre."""
        return np.asarray(np.argmin(self._partial(X)[0], axis=1).astype(np.int32))

    def transform(self, X: Table, diagonal: Numbers | None = None) -> Array:
        """The distances ‖φ(x) - c_j‖.

        A precomputed block needs the `diagonal` k(x, x) of its rows besides.
        """
        partial, known = self._partial(X)
        if known is None:
            if diagonal is None:
                raise InputError(
                    "distances need k(x, x) of the new rows, which a precomputed block does not hold. Pass "
                    "it as transform(K, diagonal=…); predict needs none."
                )
            known = np.asarray(diagonal, dtype=np.float64)
            if known.shape != (len(partial),):
                raise ShapeError(
                    f"diagonal must hold one number for each of the {len(partial)} rows; got {known.shape}."
                )
        return np.sqrt(np.maximum(partial + known[:, None], 0.0))

    def score(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> float:
        """Minus the inertia of X with the fitted centres."""
        D = self.transform(X)
        return -float(check_weights(sample_weight, len(D)) @ D.min(axis=1) ** 2)


def _given_labels(labels: Numbers, n: int, k: int) -> Integers:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ShapeError(f"init must have one label for each of the {n} rows; got shape {given.shape}.")
    whole = given.dtype.kind in "biu" or (given.dtype.kind == "f" and np.array_equal(given, np.round(given)))
    if not whole or given.min() < 0 or given.max() >= k:
        raise ParameterError(f"init must hold whole numbers from 0 to n_clusters - 1 = {k - 1}.")
    return given.astype(np.intp)
