"""Nyström features: the Gram matrix from some of its columns, with what that leaves out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import lapack
from mercer.arrays import Rows, read_rows
from mercer.errors import (
    ClusterError,
    InvalidKernelError,
    MemoryBudgetError,
    ParameterError,
    ShapeError,
    warn,
)
from mercer.gram import Dense, GramOperator, Precomputed, Tiles, tiles
from mercer.gram.far_features import FarFeatures, far_from_here
from mercer.gram.on_rows import check_gram
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation, named
from mercer.machines.landmarks.selection import Basis, Choice, basis, choose, row_slices
from mercer.machines.shared.base import generator, resolve
from mercer.machines.shared.parameters import TABLE, Declarations, Number, Switch, Whole
from mercer.machines.shared.targets import check_target_block
from mercer.memory import memory_limit, say_bytes
from mercer.panels import panels
from mercer.params import is_real
from mercer.solve.solution import Certificate, Status
from mercer.sparse import dense, stored_alike
from mercer.typing import Array, Memory, Numbers, Seed, Table, Targets

DEFAULT_COMPONENTS = 100


@dataclass(frozen=True)
class PredictionBound:
    """How far predictions of kernel ridge regression can move.

    `training` bounds the length of the change of the fitted values, `anywhere` bounds the change at any
    point x when it is multiplied by √k(x, x).
    """

    training: float
    anywhere: float


class Nystroem(Approximation):
    """Features from landmarks: exact on their span, with the trace of what is left out.

        K̂ = K_nm K_mm⁺ K_mn = ΦΦᵀ,     Φ = K_nm L⁻ᵀ,   K_mm = L Lᵀ

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    landmarks_ : the landmarks kept; `landmark_indices_` their rows, None for points of one's own.
    residual_trace_, residual_share_ : tr(K - K̂) on the rows of fit, and as a share of tr(K). K - K̂ is
        positive semi-definite, so no entry, no eigenvalue and no sum of eigenvalues of it exceeds this.
    residual_rounding_ : what rounding can add: ‖K - ΦΦᵀ‖ ≤ residual_trace_ + residual_rounding_ for Φ as it
        is computed.
    n_dropped_, threshold_ : landmarks that add nothing but rounding, and the pivot below which that is so.
    kernel_, noise_ (of `White` terms, kept apart), certificate_

    >>> from mercer import Nystroem, RBF
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> phi = Nystroem(RBF(0.5), tolerance=1e-6, landmarks="pivoted").fit(X)
    >>> P = phi.transform(X)
    >>> P.shape[1] < 10, bool(np.isclose(np.trace(RBF(0.5)(X) - P @ P.T), phi.residual_trace_))
    (True, True)
    """

    from_below = True
    parameters: ClassVar[Declarations] = {
        "n_components": Whole(
            1,
            none=True,
            about="At most so many landmarks; None for 100, or for as many as `tolerance` needs.",
        ),
        "tolerance": TABLE["tolerance"].but(
            about="Stop at the fewest landmarks found to leave out at most this share of the trace: one by "
            'one with "pivoted", else by doubling from 32.',
        ),
        "alpha": Number(
            none=True,
            about="The ridge of the leverage scores; None for tr(K - K̂) / m of m uniform landmarks, as m "
            "other rows see it.",
        ),
        "strict": Switch(
            about="Refuse a kernel that is not positive semi-definite instead of warning. Where the "
            "landmarks show it, it is refused in any case: then there are no features."
        ),
        "memory": TABLE["memory"].but(
            about="For Φ of `operator`, and for the greedy choice, which beyond it looks at a random part of "
            "the rows."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_components: int | None = None,
        *,
        tolerance: float | None = None,
        landmarks: str | Numbers = "uniform",
        alpha: float | None = None,
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.tolerance = tolerance
        self.landmarks = landmarks
        self.alpha = alpha
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: object = None) -> Self:
        """Choose landmarks among the rows X and measure what they leave out; y is ignored."""
        self._fit(X, keep=False)
        return self

    def fit_transform(self, X: Table, y: object = None) -> Array:
        """Φ of the rows of fit, computed once."""
        phi = self._fit(X, keep=True)
        assert phi is not None
        return phi

    def _fit(self, X: Table, *, keep: bool) -> Array | None:
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        rows = self.as_rows(A)
        kernel = resolve(self.kernel, rows)
        return self._learn(kernel, rows, np.ones(A.shape[0]), keep=keep, strict=bool(self.strict))

    def _learn(
        self, kernel: Kernel | None, rows: Rows, weight: Array, *, keep: bool, strict: bool
    ) -> Array | None:
        self._check_parameters()
        start = time.perf_counter()
        smooth = self._keep_kernel(kernel)
        K: GramOperator
        if smooth is None:
            K = Precomputed(check_gram(rows.data))
        else:
            K = tiles(smooth, rows, n_jobs=self.n_jobs, memory=self.memory)
        self._smooth = smooth
        self.n_rows_fit_ = len(rows)
        total = float(np.asarray(K.diag(), dtype=np.float64).sum())
        rng = generator(self.random_state)
        most = self._most(int(np.count_nonzero(weight)))
        m = most
        step_by_step = self.tolerance is not None and self.landmarks in ("uniform", "kmeans", "leverage")
        if step_by_step:
            m = min(32, most)
        while True:
            notes = self._span(m, K, rows, weight, rng, total)
            phi = self._measure(K, rows, keep, total)
            if not step_by_step or self.residual_share_ <= float(self.tolerance or 0.0) or m >= most:
                break
            m = min(2 * m, most)
        self._judge(smooth, K, weight, strict=strict)
        self._certify(notes, time.perf_counter() - start)
        return phi

    def _require_cluster_support(self) -> None:
        super()._require_cluster_support()
        if isinstance(self.landmarks, str) and self.landmarks == "pivoted":
            raise ClusterError(
                "landmarks='pivoted' are chosen one after the other, each by a column of K that all rows "
                "share, so that n × m numbers and most of the work would be here. On a cluster choose "
                "landmarks='leverage', 'uniform' or 'kmeans', or pass landmarks of your own."
            )

    def _most(self, n: int) -> int:
        if self.n_components is not None:
            return min(int(self.n_components), n)
        return n if self.tolerance is not None else min(DEFAULT_COMPONENTS, n)

    def _span(
        self, m: int, K: GramOperator, rows: Rows, weight: Array, rng: np.random.Generator, total: float
    ) -> list[str]:
        """Choose m landmarks and factor their Gram matrix."""
        things = self._smooth is not None and not self._smooth.reads_numbers()
        A = rows.data if self._smooth is None or things else rows.vectors
        pool, notes = self._pool(m, weight, rng)
        enough = -1.0 if self.tolerance is None else self.tolerance * total
        if isinstance(self.landmarks, str) and self.landmarks == "kmeans" and self._smooth is None:
            raise ParameterError("landmarks='kmeans' needs points, and a precomputed Gram matrix has none.")
        found: Choice = choose(self.landmarks, m, K, A, weight=pool, rng=rng, alpha=self.alpha, enough=enough)
        if found.index is not None:
            Z = A[found.index]
        else:
            Z = read_rows(found.points, things, "landmarks")
        if self._smooth is None:
            if found.index is None:
                raise ParameterError("a precomputed Gram matrix has no points: name landmarks by their rows.")
            inner = np.asarray(K.block(found.index, found.index))
        else:
            Z = stored_alike(Z, A)
            inner = Tiles(self._smooth, self.as_rows(Z, "landmarks"), n_jobs=self.n_jobs).dense()
        whose = "the precomputed Gram matrix" if self._smooth is None else str(self._smooth)
        self.basis_: Basis = basis(inner, whose)
        kept = self.basis_.kept
        self.landmarks_ = np.empty((len(kept), 0)) if self._smooth is None else Z[kept]
        self.landmark_indices_ = None if found.index is None else found.index[kept]
        self.n_dropped_ = self.basis_.dropped
        self.threshold_ = self.basis_.threshold
        notes = [*notes, *found.notes]
        dropped = self.basis_.note()
        if dropped:
            notes.append(dropped)
        return notes

    def _pool(self, m: int, weight: Array, rng: np.random.Generator) -> tuple[Array, list[str]]:
        """The rows that the greedy choice looks at: all, or as many as fit in memory."""
        n = int(np.count_nonzero(weight))
        limit = memory_limit(self.memory)
        if not isinstance(self.landmarks, str) or self.landmarks != "pivoted" or 8 * m * n <= limit:
            return weight, []
        if self.n_components is None:
            raise MemoryBudgetError(
                f"tolerance without n_components may need {say_bytes(8 * n * n)} for the greedy choice; the "
                f"limit is {say_bytes(limit)}. Give n_components as well, or raise memory=."
            )
        size = max(limit // (8 * m), m)
        some = np.zeros(len(weight))
        chosen = rng.choice(np.flatnonzero(weight > 0), size=min(size, n), replace=False)
        some[chosen] = weight[chosen]
        return some, [f"landmarks chosen greedily among {len(chosen)} of {n} rows, as many as memory allows"]

    def _measure(self, K: GramOperator, rows: Rows, keep: bool, total: float) -> Array | None:
        """The trace left out, exactly; and Φ if it is wanted."""
        diag = np.asarray(K.diag(), dtype=np.float64)
        norms, products, phi = self._looked_at(rows, keep)
        left = diag - norms
        worst = int(np.argmin(left))
        if left[worst] < -1e-6 * float(np.abs(diag).max()):
            raise InvalidKernelError(
                f"{self.kernel_} is not positive semi-definite: row {worst} has k(x, x) = {diag[worst]:.6g}, "
                f"less by {-left[worst]:.3g} than the landmarks alone explain. Use a kernel whose "
                "validity() is proved."
            )
        self.residual_trace_ = max(float(left.sum()), 0.0)
        self.residual_share_ = self.residual_trace_ / total if total > 0 else 0.0
        self.residual_rounding_ = self.basis_.residual_rounding(products, diag)
        return phi

    def _looked_at(self, rows: Rows, keep: bool) -> tuple[Array, Array, Array | None]:
        """‖φ‖² of every row, ΦᵀΦ, and Φ if it is wanted: in one pass, by the workers where there are any."""
        n = len(rows)
        r = self.basis_.rank
        cluster = far_from_here(n)
        if cluster is not None and self._smooth is not None and r:
            far = FarFeatures(self.alone(), rows, cluster)
            found = far.sums(np.ones(n), np.empty((n, 0)))
            return found.norms, found.products, far.whole() if keep else None
        phi = np.empty((n, r)) if keep else None
        norms = np.empty(n)
        products = np.zeros((r, r))
        for part in row_slices(n, r):
            block = self.features(rows.rows(np.arange(part.start, part.stop)))
            norms[part] = np.einsum("ij,ij->i", block, block)
            if phi is not None:
                phi[part] = block
            more = lapack.matmul(block.T, block)
            for some in panels(len(products)):
                products[some] += more[some]
        return norms, products, phi

    def _certify(self, notes: list[str], seconds: float) -> None:
        way = self.landmarks if isinstance(self.landmarks, str) else "given"
        met = self.tolerance is None or self.residual_share_ <= self.tolerance
        self.certificate_ = Certificate(
            Status.CONVERGED if met else Status.LIMIT,
            f"Nyström, {way} landmarks",
            iterations=self.basis_.rank,
            seconds=seconds,
            residual=self.residual_share_,
            added_diagonal=0.0,
            notes=(self.describe(), *self.judged_, *notes),
        )
        if not met:
            warn(
                f"{self.basis_.rank} landmarks leave out {self.residual_share_:.3g} of the trace, more than "
                f"tolerance={self.tolerance:g}. Raise n_components.",
                ConvergenceWarning,
            )

    # ── use ─────────────────────────────────────────────────────────────────────────────────────────────────

    def features(self, rows: Rows) -> Array:
        if self._smooth is None:
            if rows.vectors.shape[1] != self.n_rows_fit_:
                raise ShapeError(f"a precomputed block needs {self.n_rows_fit_} columns, one per row of fit.")
            return self.basis_.whiten(np.array(dense(rows.vectors[:, self.landmark_indices_])))
        x = self.as_rows(stored_alike(rows.data, self.landmarks_))
        z = self.kept(self.landmarks_, "landmarks_")
        out = np.empty((len(x), self.basis_.rank))
        if not self.basis_.rank:
            return out
        for part in row_slices(len(x), self.basis_.rank):
            some = x if part == slice(0, len(x)) else x.rows(np.arange(part.start, part.stop))
            K = Dense(self._smooth, some, z, dtype=np.float64, n_jobs=self.n_jobs, out=out[part]).array
            phi = self.basis_.whiten(K)
            if not np.shares_memory(phi, out):
                # A kernel without a program has made an array of its own.
                out[part] = phi
        return out

    def describe(self) -> str:
        return (
            f"{named(self.kernel_)} replaced by {self.basis_.rank} Nyström features, which leave out "
            f"{self.residual_share_:.3g} of the trace (tr(K - K̂) = {self.residual_trace_:.4g})"
        )

    def prediction_bound(self, y: Targets, alpha: float) -> PredictionBound:
        """How far K̂ in place of K can move the predictions of kernel ridge regression, min ‖y - f‖² + α‖f‖².

            ‖f - f̂‖ ≤ ‖y‖ t / (t + α)    on the rows of fit,
            |f(x) - f̂(x)| ≤ √k(x, x) ‖y‖ √(t / (α (t + α)))

        with t = tr(K - K̂) ≥ ‖K - K̂‖, since K - K̂ ⪰ 0. With noise in the kernel, α counts it too. Both are
        bounds for the features as they are computed: t includes `residual_rounding_`, and the second one
        what rounding moves in φ(x).
        """
        check_is_fitted(self, "certificate_")
        if not is_real(alpha) or not 0 < alpha < np.inf:
            raise ParameterError(f"alpha must be a finite number > 0; got {alpha!r}.")
        a = float(alpha) + self.noise_
        size = float(np.linalg.norm(check_target_block(y, self.n_rows_fit_, "prediction_bound")[0][:, 0]))
        t = self.residual_trace_ + self.residual_rounding_
        # The coefficients of the features are at most ‖y‖ / 2√α long, and φ(x) moves by this share of its
        # length.
        own = self.basis_.feature_rounding / (2 * np.sqrt(a))
        anywhere = np.sqrt(t / (a * (t + a))) + own
        return PredictionBound(size * t / (t + a), size * float(anywhere))

    @property
    def _n_features_out(self) -> int:
        return self.basis_.rank
