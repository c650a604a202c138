"""Landmarks: which rows stand for all of them, and the basis that they span.

        k̂(x, z) = k(x, Z) K_ZZ⁺ k(Z, z) = φ(x)·φ(z),     φ(x) = L⁻¹ k(Z, x),   K_ZZ = L Lᵀ

The ways to choose: uniformly, by k-means, by ridge leverage scores, greedily (pivoted Cholesky), or the
user's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh

from mercer import lapack
from mercer.arrays import Rows
from mercer.errors import InvalidKernelError, NotFiniteError, NotPositiveDefiniteError, ParameterError
from mercer.gram import Distributed, GramOperator, Tiles
from mercer.gram.far_features import FarFeatures
from mercer.kernels.base import Kernel
from mercer.kernels.terms import has_noise
from mercer.panels import clear_above, fortran, largest_entry
from mercer.solve.operator import Operator
from mercer.solve.precondition import greedy_columns
from mercer.sparse import Matrix
from mercer.typing import Array, Index, Integers, Numbers

# Of k(x, Z) at one time.
BLOCK_BYTES = 64 << 20
EPS = float(np.finfo(np.float64).eps)
# Rows for each landmark from which it pays to make the triangle ready.
MANY = 2


@dataclass(frozen=True, eq=False)
class Basis:
    """The span of some landmarks: L with K_ZZ = L Lᵀ on those `kept`.

    A landmark is dropped where the others leave no more than `threshold` of its k(z, z), which is rounding:
    it adds nothing that float64 can tell. Nothing is added to the diagonal.
    """

    lower: Array
    kept: Integers
    dropped: int
    threshold: float

    @property
    def rank(self) -> int:
        return len(self.kept)

    def whiten(self, K: Array) -> Array:
        """φ of every row from its k(x, Z), n × rank. K is overwritten."""
        T = np.ascontiguousarray(K, dtype=np.float64).T
        if T.shape[1] < MANY * self.rank:
            lapack.trsm(self.lower, T)
        else:
            self.triangle.solve(T)
        return T.T

    @cached_property
    def triangle(self) -> lapack.Triangle:
        """L, made ready for many rows."""
        return lapack.Triangle(self.lower)

    def __getstate__(self) -> dict[str, object]:
        """Without what is quickly made again."""
        return {name: value for name, value in vars(self).items() if name != "triangle"}

    def coefficients(self, w: Array) -> Array:
        """c with k(x, Z) c = φ(x)·w."""
        return lapack.solve_triangular(self.lower, w, trans="T")

    @cached_property
    def feature_rounding(self) -> float:
        """By what share of its length rounding can move φ(x) = L⁻¹k(Z, x): γ‖|L⁻¹||L|‖, and its growth."""
        if not self.rank:
            return 0.0
        inverse = lapack.solve_triangular(self.lower, np.eye(self.rank))
        size = float(np.linalg.norm(lapack.matmul(np.abs(inverse), np.abs(self.lower))))
        return (self.rank + 16) * EPS * size * self.triangle.growth

    def residual_rounding(self, products: Array, diag: Array) -> float:
        """How much larger ‖K - ΦΦᵀ‖ can be than its trace, an upper bound where it is semi-definite.

        On the landmarks and across from them ΦΦᵀ is K to γ√(k_ii k_jj), whatever the condition. Row i is
        u_i = L⁻ᵀφ(x_i) of the landmarks and a rest, so (K - ΦΦᵀ) + n γ diag(b²) is positive semi-definite
        with b_i = √k_ii + Σ_j |u_ij| √k_jj. `products` is ΦᵀΦ and `diag` the k_ii.
        """
        own = np.einsum("ij,ij->i", self.lower, self.lower)
        left = lapack.solve_triangular(self.lower, products, trans="T")
        both = lapack.solve_triangular(self.lower, left.T, trans="T")
        spread = float(np.abs(np.diag(both)) @ own) * self.rank
        n = len(diag)
        return n * (self.rank + 16) * EPS * 2 * (float(np.abs(diag).sum()) + spread) * self.triangle.growth

    def note(self) -> str | None:
        if not self.dropped:
            return None
        return (
            f"{self.dropped} of {self.dropped + self.rank} landmarks dropped: the others leave at most "
            f"{self.threshold:.2g} of their k(z, z), which is rounding"
        )


@dataclass(frozen=True, eq=False)
class Whitened:
    """φ(x) = L⁻¹ k(Z, x), as it is sent to the workers of a cluster."""

    kernel: Kernel
    z: Rows
    basis: Basis

    @property
    def dimension(self) -> int:
        return self.basis.rank

    def features(self, rows: Rows) -> Array:
        return self.basis.whiten(Tiles(self.kernel, rows, self.z, n_jobs=1).dense())


def basis(K: Array, whose: str = "the kernel", eps: float = EPS) -> Basis:
    """The basis of landmarks with Gram matrix K, by Cholesky with pivots; `eps` is the rounding of k(x, Z).

    The first two of three landmarks are one point:

    >>> found = basis(np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]))
    >>> found.rank, found.dropped
    (2, 1)
    """
    if not np.isfinite(largest_entry(K) if K.size else 0.0):
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise NotFiniteError(f"{whose} gives {K[i, j]} for landmarks {i} and {j}. Look at that pair.")
    m = len(K)
    top = float(K.diagonal().max(initial=0.0))
    threshold = m * eps * top
    factor, order, rank = lapack.pstrf(np.asarray(K, dtype=np.float64), threshold)
    if top <= 0:
        rank = 0
    order = order.astype(np.intp) - 1
    lower = clear_above(factor[:rank, :rank])
    kept = order[:rank]
    rest = order[rank:]
    if len(rest):
        across = np.zeros((0, len(rest)))
        if rank:
            across = lapack.solve_triangular(lower, K[np.ix_(kept, rest)])
        left = K[np.ix_(rest, rest)] - across.T @ across
        if np.abs(left).max() > threshold + 1e3 * m * EPS * top + np.finfo(float).tiny:
            low = float(eigvalsh(K, subset_by_index=[0, 0])[0])
            raise InvalidKernelError(
                f"{whose} is not positive semi-definite: on these {m} landmarks its lowest eigenvalue is "
                f"{low:.6g}, so no features reproduce it. Use a kernel whose validity() is proved."
            )
    return Basis(fortran(lower), kept, m - rank, threshold)


def row_slices(n: int, width: int, itemsize: int = 8) -> Iterator[slice]:
    """Runs of rows of an n × width array, about 64 MiB each."""
    step = max(256, BLOCK_BYTES // (itemsize * max(width, 1)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# ── choosing ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Choice:
    """Rows of the sample (`index`), or points that need not be rows (`points`)."""

    index: Integers | None = None
    points: Matrix | None = None
    notes: list[str] = field(default_factory=list)


def choose(
    way: str | Numbers,
    m: int,
    K: GramOperator,
    A: Matrix,
    *,
    weight: Array,
    rng: np.random.Generator,
    alpha: float | None = None,
    enough: float = -1.0,
) -> Choice:
    """m landmarks of the rows A with Gram operator K; rows without weight are never chosen."""
    live = np.flatnonzero(weight > 0)
    m = min(m, len(live))
    if not isinstance(way, str):
        return given_landmarks(way, K.shape[0], A.shape[1] if A.ndim == 2 else 0)
    if way == "uniform":
        return Choice(np.sort(draw(weight, m, rng)))
    if way == "pivoted":
        return _greedy(K, live, m, enough)
    if way == "leverage":
        return _by_leverage(K, live, m, weight, rng, alpha)
    if A.dtype.kind == "O":
        raise ParameterError("landmarks='kmeans' needs columns of numbers, and these rows have none.")
    return Choice(points=k_means(A[live], m, weight[live], rng))


def draw(p: Array, m: int, rng: np.random.Generator) -> Integers:
    """m different rows, each next one with probability proportional to p."""
    live = np.flatnonzero(p > 0)
    m = min(m, len(live))
    if np.all(p[live] == p[live[0]]):
        return live[rng.permutation(len(live))[:m]]
    return rng.choice(len(p), size=m, replace=False, p=p / p.sum())


def given_landmarks(given: Numbers, n: int, d: int) -> Choice:
    """The user's landmarks: whole numbers are rows, two dimensions are points."""
    A: Matrix = given if sparse.issparse(given) else np.asarray(given)
    if A.ndim == 1 and A.dtype.kind in "iu" and len(A):
        if A.min() < -n or A.max() >= n:
            raise ParameterError(f"landmarks name rows {A.min()} to {A.max()}; X has rows 0 to {n - 1}.")
        return Choice(A % n)
    if A.ndim != 2 or A.shape[1] != d or not A.shape[0]:
        raise ParameterError(
            f"landmarks must be points with the {d} columns of X, or whole numbers that name rows; got shape "
            f"{A.shape} and type {A.dtype}."
        )
    return Choice(points=A)


def _greedy(K: GramOperator, live: Integers, m: int, enough: float) -> Choice:
    part = K if len(live) == K.shape[0] else _Part(K, live)
    try:
        found = greedy_columns(part, m, enough=enough)
    except NotPositiveDefiniteError as error:
        raise InvalidKernelError(str(error)) from None
    return Choice(live[found.pivots])


class _Part(Operator):
    """Some rows and columns of a Gram operator."""

    def __init__(self, K: GramOperator, rows: Integers) -> None:
        self.K = K
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows)

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = self.K.dtype
        return kind

    def __matmul__(self, V: Array) -> Array:
        whole = np.zeros((self.K.shape[0], *V.shape[1:]), dtype=V.dtype)
        whole[self.rows] = V
        some: Array = (self.K @ whole)[self.rows]
        return some

    def dense(self) -> Array:
        return self.K.block(self.rows, self.rows)

    def shifted(self, lam: float) -> Operator:
        return _Part(self.K.shifted(lam), self.rows)

    def diag(self) -> Array:
        some: Array = self.K.diag()[self.rows]
        return some

    def block(self, rows: Index, cols: Index) -> Array:
        return self.K.block(self.rows[rows], self.rows[cols])


def k_means(A: Matrix, m: int, weight: Array, rng: np.random.Generator) -> Matrix:
    """The centres of m clusters of the rows, by scikit-learn; fewer where there are fewer different rows."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    many = A.shape[0] > 10_000
    m = min(m, A.shape[0])
    if not many and not sparse.issparse(A):
        m = min(m, len(np.unique(A, axis=0)))
    seed = int(rng.integers(2**31 - 1))
    if many:
        model = MiniBatchKMeans(m, random_state=seed, n_init=1, batch_size=4096, max_iter=20)
    else:
        model = KMeans(m, random_state=seed, n_init=1, max_iter=50)
    centres = model.fit(A, sample_weight=weight).cluster_centers_
    return sparse.csr_array(centres) if sparse.issparse(A) else centres


def _by_leverage(
    K: GramOperator,
    live: Integers,
    m: int,
    weight: Array,
    rng: np.random.Generator,
    alpha: float | None,
) -> Choice:
    pilot = draw(weight, min(2 * m, len(live)), rng)
    if alpha is None:
        alpha = _rest(K, pilot, m, float(weight.sum()))
    scores = leverage_scores(K, alpha, pilot=pilot, weight=weight) * (weight > 0)
    note = f"leverage scores at alpha = {alpha:.3g} from {len(pilot)} rows; they sum to {scores.sum():.4g}"
    return Choice(np.sort(draw(scores, m, rng)), notes=[note])


def _rest(K: GramOperator, pilot: Integers, m: int, n: float) -> float:
    """tr(K - K̂) / m for m uniform landmarks, as the other rows of the pilot see it, or rounding if more."""
    inner = np.asarray(K.block(pilot, pilot), dtype=np.float64)
    found = basis(inner[:m, :m])
    probes = inner.diagonal()[m:]
    across = found.whiten(inner[m:, found.kept].copy())
    left = np.maximum(probes - np.einsum("ij,ij->i", across, across), 0.0)
    low = n * float(np.finfo(float).eps) * max(float(inner.diagonal().max()), np.finfo(float).tiny)
    return max(float(left.mean()) * n / m, low) if len(probes) else low


def leverage_scores(
    K: GramOperator, alpha: float, *, pilot: Integers | None = None, weight: Array | None = None
) -> Array:
    """Ridge leverage scores l_i = (K (K + αI)⁻¹)_ii, from the rows `pilot` only; exact if those are all rows.

        l̂_i = (k_ii - k_iJ (K_JJ + (|J|/n) α I)⁻¹ k_Ji) / α

    They lie between 0 and 1; their sum is the effective dimension of ridge regression at α. With weights,
    l_i is per unit of weight times w_i.

    >>> from mercer import RBF
    >>> K = RBF(1.0).gram(np.arange(4.0)[:, None])
    >>> exact = np.diag(K.dense() @ np.linalg.inv(K.dense() + 0.1 * np.eye(4)))
    >>> bool(np.allclose(leverage_scores(K, 0.1), exact))
    True
    """
    if not np.isfinite(alpha) or alpha <= 0:
        raise ParameterError(f"alpha must be a finite number > 0; got {alpha!r}.")
    n = K.shape[0]
    w = np.ones(n) if weight is None else weight
    J = np.flatnonzero(w > 0) if pilot is None else np.asarray(pilot)
    # All rows stand for themselves; rows drawn by weight stand for equal shares of it.
    share = w[J]
    if pilot is not None and len(J) < np.count_nonzero(w):
        share = np.full(len(J), w.sum() / len(J))
    inner = np.asarray(K.block(J, J), dtype=np.float64) + np.diag(alpha / share)
    lower, info = lapack.potrf(inner)
    if info:
        raise InvalidKernelError(
            f"K + {alpha:.3g} I is not positive definite on {len(J)} rows, so there are no leverage scores. "
            "Use a kernel whose validity() is proved, or a larger alpha."
        )
    out = np.asarray(K.diag(), dtype=np.float64).copy()
    if isinstance(K, Distributed) and K.is_far and not has_noise(K.kernel):
        # every worker its own rows; one number of each row comes back
        all_of_them = Basis(lower, J, 0, 0.0)
        out -= FarFeatures(Whitened(K.kernel, K.x.rows(J), all_of_them), K.x, K.cluster).squares()
        return np.clip(w * out / alpha, 0.0, 1.0)
    for part in row_slices(n, len(J)):
        block = np.asarray(K.block(np.arange(part.start, part.stop), J), dtype=np.float64)
        T = lapack.solve_triangular(lower, block.T)
        out[part] -= np.einsum("ij,ij->j", T, T)
    return np.clip(w * out / alpha, 0.0, 1.0)
