"""The largest eigenpairs of a symmetric operator, each with its residual ‖A v - λ v‖.

- *dense*: LAPACK on the whole matrix, for small n; where A is known to be F Fᵀ with fewer columns than rows,
  on F.
- *lanczos*: one vector at a time. On a matrix in memory all vectors are kept (`solve.lanczos`), which takes
  the least arithmetic: the default there. Where eigenvalues are multiple or hard to tell apart, *krylov* goes
  on. Elsewhere it is ARPACK's implicitly restarted method, which takes the least memory.
- *krylov*: a block Krylov space from a random block, with full reorthogonalisation, and Rayleigh–Ritz when
  the pairs may be good enough, started again from its best vectors when it grows large. Where entries are
  computed anew a block product is hardly dearer than a single one, so this is the default there.

Signs are fixed: the entry of largest modulus in each vector is positive.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from mercer import lapack
from mercer.errors import ParameterError
from mercer.solve.anytime import Anytime
from mercer.solve.lanczos import can_read, leading_pairs
from mercer.solve.operator import MatrixLike, Operator, as_operator, check_number, multiply
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Seed

Method = Literal["auto", "dense", "krylov", "lanczos"]
DENSE_ROWS = 300
# The same for a matrix in memory, and rows for each pair that is wanted.
DENSE_IN_MEMORY = 100
DENSE_PAIRS = 8
# Extra columns in the block. With fewer columns than wanted pairs, copies of a multiple eigenvalue would be
# missed.
SPARE = 2
# The block has a multiple of so many columns, which matrix products are quick at.
LANES = 4
BASIS = 12  # blocks in the basis before it starts again
PATIENCE = 3 * BASIS  # block products in which the worst residual must fall by a tenth
FIRST_CHECK = 5  # block products before the first Rayleigh–Ritz
# A product takes ten times as long as Rayleigh–Ritz in a space of m columns if it takes so many times m³
# floating point operations.
CHECK = 250.0
# Cholesky's pivot of columns of length 1, above which they count as independent.
INDEPENDENT = 1e-6
# Times that columns are made orthogonal to others, and the squared length that shows that once was enough.
PASSES = 3
LITTLE = 0.9


class Eigenpairs(NamedTuple):
    """Eigenvalues in falling order, and their vectors as columns."""

    values: Array
    vectors: Array


def top_eigenpairs(
    A: MatrixLike,
    k: int,
    *,
    method: Method = "auto",
    tol: float = 1e-8,
    max_iter: int = 300,
    random_state: Seed = 0,
) -> Solution[Eigenpairs]:
    """The k largest eigenvalues and their vectors, to residuals ‖A v - λ v‖ <= tol · max |λ|.

    `max_iter` counts products of A with a block of about k vectors or, in ARPACK, restarts.

    >>> found = top_eigenpairs(np.diag([1.0, 5.0, 3.0]), 2)
    >>> found.value.values, found.certificate.status
    (array([5., 3.]), 'converged')
    """
    start = time.perf_counter()
    op = as_operator(A)
    n = op.shape[0]
    k = int(k)
    tol = check_number(tol, "tol", 0.0)
    if not 1 <= k <= n:
        raise ParameterError(f"k must be between 1 and the number of rows, {n}; got {k}.")
    rng = np.random.default_rng(random_state)
    F = op.low_rank_factor() if method in ("auto", "dense") else None
    if method == "auto":
        method = _suitable(op, k)
    if F is not None and k <= F.shape[1] < n:
        found = _singular(F, k)
    elif method == "dense":
        found = _dense(op, k)
    elif method == "krylov":
        found = _krylov(op, k, tol, max_iter, rng)
    elif method == "lanczos":
        found = _lanczos(op, k, tol, max_iter, rng)
    else:
        raise ParameterError(f"method must be 'auto', 'dense', 'krylov' or 'lanczos'; got {method!r}.")
    return _certified(op, found, k, tol, start)


def _suitable(op: Operator, k: int) -> Method:
    """LAPACK for few rows or many pairs, single vectors on a matrix in memory, blocks elsewhere."""
    n = op.shape[0]
    if can_read(op.in_memory()):
        return "dense" if n <= max(DENSE_IN_MEMORY, DENSE_PAIRS * k) else "lanczos"
    return "dense" if n <= DENSE_ROWS or 3 * (k + SPARE) >= n else "krylov"


@dataclass(frozen=True)
class _UncertifiedPairs:
    """What a method found, before it is checked."""

    values: Array
    vectors: Array
    method: str
    iterations: int
    status: Status = Status.CONVERGED
    # From the products that were made, where there was no time for more.
    residuals: Array | None = None


def _dense(op: Operator, k: int) -> _UncertifiedPairs:
    values, vectors = lapack.top_eigh(np.asarray(op.dense(), dtype=np.float64), k)
    return _UncertifiedPairs(values[::-1], vectors[:, ::-1], "LAPACK", 0)


def _singular(F: Array, k: int) -> _UncertifiedPairs:
    """F = U S Vᵀ, so F Fᵀ = U S² Uᵀ."""
    U, S, _ = lapack.svd(np.asarray(F, dtype=np.float64))
    return _UncertifiedPairs(S[:k] ** 2, U[:, :k], "LAPACK, singular values of a factor", 0)


def _krylov(op: Operator, k: int, tol: float, max_iter: int, rng: np.random.Generator) -> _UncertifiedPairs:
    """Rayleigh–Ritz on [X, A X, A² X, …], whenever it may be good enough."""
    space = _KrylovSpace(op, k, rng)
    best: _RitzPairs | None = None
    count = 0
    checks = _Checks(tol)
    status: Status = Status.LIMIT
    with Anytime[_KrylovSpace]() as run:
        while status == Status.LIMIT and count < max_iter:
            space.multiply()
            count += 1
            if space.m >= k:
                run.best = space
            if checks.due(count, space.checking_is_cheap) or space.is_full or count == max_iter:
                best = space.ritz()
                status = checks.judge(count, best)
            if status == Status.LIMIT and not space.grow(best):
                # The space is whole: no product can improve it.
                status = Status.STAGNATED
    if run.interrupted:
        status = Status.INTERRUPTED
        if space.m >= k:
            best = space.ritz()
    assert best is not None
    return _UncertifiedPairs(
        best.values[:k], best.vectors[:, :k], "block Krylov", count, status, best.residuals[:k]
    )


class _RitzPairs(NamedTuple):
    """Ritz values, falling, their vectors V, A V, and the norms of A V - V λ; `worst` of those wanted."""

    values: Array
    vectors: Array
    products: Array
    residuals: Array
    worst: float


class _Checks:
    """When to look whether the pairs are good enough, and what was seen.

    Residuals hardly fall at first, and then by the same factor with every product. So the last two of them
    tell how many products are still needed.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.next = FIRST_CHECK
        self.last: tuple[int, float] | None = None
        self.lowest = np.inf
        self.since = 0

    def due(self, count: int, cheap: bool) -> bool:
        return count >= self.next or (cheap and count >= FIRST_CHECK)

    def judge(self, count: int, found: _RitzPairs) -> Status:
        largest = float(np.abs(found.values).max())
        if found.worst < 0.9 * self.lowest:
            self.lowest = found.worst
            self.since = count
        if found.worst <= self.tol * largest:
            return Status.CONVERGED
        if count - self.since >= PATIENCE:
            return Status.STAGNATED
        self.next = count + self._products_needed(count, found.worst / largest)
        return Status.LIMIT

    def _products_needed(self, count: int, residual: float) -> int:
        before = self.last
        self.last = (count, residual)
        if before is None or self.tol <= 0:
            return 2
        fall = np.log(before[1] / residual) / (count - before[0])
        if fall <= 0:
            return 2
        return int(np.clip(np.log(residual / self.tol) / fall + 0.9, 1, BASIS))


class _KrylovSpace:
    """An orthonormal basis Q, grown block by block, with A Q and Qᵀ A Q: residuals cost no product."""

    def __init__(self, op: Operator, k: int, rng: np.random.Generator) -> None:
        n = op.shape[0]
        self.op = op
        self.k = k
        self.rng = rng
        self.n = n
        self.width = min(-(-(k + SPARE) // LANES) * LANES, n)
        self.most = min(BASIS * self.width, n)
        self.Q = np.empty((n, self.most), order="F")
        self.AQ = np.empty((n, self.most), order="F")
        # QᵀAQ, of which each product adds a border.
        self.T = np.empty((self.most, self.most))
        # Columns that are multiplied, and columns of the last block.
        self.m = 0
        self.added = 0
        self.fresh = _orthonormal(self.Q[:, :0], rng.standard_normal((n, self.width)))

    @property
    def is_full(self) -> bool:
        return self.m + self.width > self.most

    @property
    def checking_is_cheap(self) -> bool:
        """Beside a product with a matrix that is stored; others cost more."""
        return 2.0 * self.n**2 * self.width > CHECK * float(self.m) ** 3

    def multiply(self) -> None:
        old = self.m
        m = old + self.fresh.shape[1]
        self.Q[:, old:m] = self.fresh
        self.AQ[:, old:m] = multiply(self.op, self.fresh)
        self.T[:m, old:m] = lapack.matmul(self.Q[:, :m].T, self.AQ[:, old:m])
        self.T[old:m, :old] = self.T[:old, old:m].T
        self.added = m - old
        self.m = m

    def ritz(self) -> _RitzPairs:
        m = self.m
        T = self.T[:m, :m]
        values, S = lapack.top_eigh((T + T.T) / 2, min(self.width, m))
        values = values[::-1]
        S = np.asfortranarray(S[:, ::-1])
        V = lapack.matmul(self.Q[:, :m], S, order="F")
        AV = lapack.matmul(self.AQ[:, :m], S, order="F")
        residuals = np.linalg.norm(AV - V * values, axis=0)
        return _RitzPairs(values, V, AV, residuals, float(residuals[: self.k].max()))

    def grow(self, found: _RitzPairs | None) -> bool:
        """The next block to multiply; False if there is none. A full basis starts again from its best."""
        m = self.m
        last = slice(m - self.added, m)
        if self.is_full:
            assert found is not None
            self._start_again(found)
            m = self.m
            # The residuals are the next directions.
            fresh = found.products - found.vectors * found.values
        else:
            fresh = self.AQ[:, last] - lapack.matmul(self.Q[:, :m], self.T[:m, last], order="F")
        if m == self.n:
            return False
        known = self.Q[:, :m]
        fresh = _orthonormal(known, fresh)[:, : self.most - m]
        if not fresh.shape[1]:
            # An invariant subspace: look elsewhere.
            elsewhere = self.rng.standard_normal((self.n, min(self.width, max(self.most - m, 1))))
            fresh = _orthonormal(known, elsewhere)
        self.fresh = fresh
        return True

    def _start_again(self, found: _RitzPairs) -> None:
        m = found.vectors.shape[1]
        # Ctrl-C meanwhile finds no basis, rather than a mixture of two.
        self.m = 0
        self.Q[:, :m] = found.vectors
        self.AQ[:, :m] = found.products
        self.T[:m, :m] = np.diag(found.values)
        self.m = m


def _orthonormal(known: Array, V: Array) -> Array:
    """An orthonormal basis of the columns without what lies in the span of orthonormal columns.

    Columns that depend on the others are left out. What is shortened much by this has lost digits, and is
    done again.
    """
    V = _normalised(np.asfortranarray(V))
    if not known.shape[1]:
        return _normalised(V)
    for _ in range(PASSES):
        V = V - lapack.matmul(known, lapack.matmul(known.T, V), order="F")
        kept = float(np.einsum("ij,ij->j", V, V).min(initial=1.0))
        V = _normalised(V)
        if kept > LITTLE:
            break
    return V


def _normalised(V: Array) -> Array:
    """An orthonormal basis of the columns, to the last digit if they are nearly orthonormal already."""
    if not V.shape[1]:
        return V
    inner = lapack.matmul(V.T, V)
    length = np.sqrt(inner.diagonal())
    if np.all(length > 0):
        L, info = lapack.potrf(inner / np.outer(length, length))
        if info == 0 and L.diagonal().min() > INDEPENDENT:
            inverse = np.tril(lapack.trtri(L)) / length
            return lapack.matmul(V, inverse.T, order="F")
    Q, size = lapack.pivoted_qr(V)
    return np.asfortranarray(Q[:, size > 1e-14 * max(float(size[0]), 1e-300)])


def _lanczos(op: Operator, k: int, tol: float, max_iter: int, rng: np.random.Generator) -> _UncertifiedPairs:
    n = op.shape[0]
    if k >= n:
        return _dense(op, k)
    entries = op.in_memory()
    if entries is None or not can_read(entries):
        return _arpack(op, k, tol, max_iter, rng)
    found = leading_pairs(entries, k, tol, max_iter * (k + SPARE), rng)
    if found is None:
        return _krylov(op, k, tol, max_iter, rng)
    return _UncertifiedPairs(
        found.values, found.vectors, "Lanczos", found.steps, found.status, found.residuals
    )


def _arpack(op: Operator, k: int, tol: float, max_iter: int, rng: np.random.Generator) -> _UncertifiedPairs:
    n = op.shape[0]
    calls = [0]

    def product(v: Array) -> Array:
        calls[0] += 1
        return multiply(op, np.ravel(v))

    linear = LinearOperator((n, n), matvec=product, dtype=np.float64)
    status: Status = Status.CONVERGED
    try:
        values, vectors = eigsh(
            linear, k, which="LA", v0=rng.standard_normal(n), tol=tol / 10, maxiter=max_iter
        )
    except ArpackNoConvergence as partial:
        values = partial.eigenvalues
        vectors = partial.eigenvectors
        status = Status.LIMIT
    except ArpackError:
        # It gives up on the zero matrix.
        return _krylov(op, k, tol, max_iter, rng)
    order = np.argsort(values)[::-1]
    return _UncertifiedPairs(values[order], vectors[:, order], "restarted Lanczos", calls[0], status)


def _certified(
    op: Operator, found: _UncertifiedPairs, k: int, tol: float, start: float
) -> Solution[Eigenpairs]:
    """Signs fixed, residuals computed afresh, and what is missing said."""
    vectors = np.ascontiguousarray(found.vectors)
    top = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    vectors = vectors * np.where(top < 0, -1.0, 1.0)
    if found.status == Status.INTERRUPTED and found.residuals is not None:
        # Who pressed Ctrl-C does not wait for another product.
        residuals = found.residuals
    else:
        residuals = np.linalg.norm(multiply(op, vectors) - vectors * found.values, axis=0)
    scale = float(np.abs(found.values).max(initial=0.0))
    worst = float(residuals.max(initial=0.0))
    bound = tol * scale + 32 * float(np.finfo(op.dtype).eps) * np.sqrt(op.shape[0]) * scale
    status = found.status
    notes = []
    if len(found.values) < k:
        notes.append(f"Only {len(found.values)} of {k} eigenpairs were found. Allow more iterations.")
    if status == Status.CONVERGED and worst > bound:
        status = Status.STAGNATED
    if status != Status.CONVERGED:
        notes.append(
            f"The worst residual is {worst:.1e}; {tol * scale:.1e} was asked. Each λ is within its residual "
            "of an eigenvalue. Allow more iterations, raise tol, or use method='dense'."
        )
    done = Certificate(
        status,
        found.method,
        iterations=found.iterations,
        seconds=time.perf_counter() - start,
        residual=worst / scale if scale else worst,
        residuals=tuple(residuals.tolist()),
        notes=tuple(notes),
    )
    return Solution(Eigenpairs(found.values, vectors), done)
