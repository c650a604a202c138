"""The largest eigenpairs of a symmetric operator, each with its residual ‖A v - λ v‖.

- *dense*: LAPACK on the whole matrix, for small n; where A is known to be F Fᵀ with fewer columns than rows,
  on F. - *krylov*: a block Krylov space from a random block, with Rayleigh–Ritz and full reorthogonalisation,
  started
  again from its best vectors when it grows large. A block product is hardly dearer than a single one when
  kernel values have to be computed, so this takes the fewest passes over the data: the default.
- *lanczos*: ARPACK's implicitly restarted Lanczos, one vector at a time, in less memory.

Signs are fixed: the entry of largest modulus in each vector is positive.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from mercer import lapack
from mercer.errors import ParameterError
from mercer.solve.anytime import Anytime
from mercer.solve.operator import MatrixLike, Operator, as_operator, check_number, multiply
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Seed

Method = Literal["auto", "dense", "krylov", "lanczos"]
DENSE_ROWS = 500
# At least so many extra columns in the block: the last wanted pair then converges about as fast as the first.
SPARE = 4
# The block has a multiple of so many columns, which matrix products are quick at.
LANES = 8
BASIS = 12  # blocks in the basis before it starts again
PATIENCE = 3 * BASIS  # block products in which the worst residual must fall by a tenth


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

    `max_iter` counts products with A (a block product is one) or, for Lanczos, restarts.

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
    if F is not None and k <= F.shape[1] < n:
        found = _singular(F, k)
    elif method == "dense" or (method == "auto" and (n <= DENSE_ROWS or 3 * (k + SPARE) >= n)):
        found = _dense(op, k)
    elif method in ("auto", "krylov"):
        found = _krylov(op, k, tol, max_iter, rng)
    elif method == "lanczos":
        found = _lanczos(op, k, tol, max_iter, rng)
    else:
        raise ParameterError(f"method must be 'auto', 'dense', 'krylov' or 'lanczos'; got {method!r}.")
    return _certified(op, found, k, tol, start)


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
    """Rayleigh–Ritz on [X, A X, A² X, …]; A times the basis is kept, so that residuals cost no product."""
    count = 0
    since = 0
    lowest = np.inf
    with Anytime[_UncertifiedPairs]() as run:
        for count, (values, vectors, residuals) in enumerate(_ritz_pairs(op, k, rng), 1):
            worst = float(residuals[:k].max())
            if worst < 0.9 * lowest:
                lowest = worst
                since = count
            status: Status = Status.LIMIT
            if worst <= tol * np.abs(values).max():
                status = Status.CONVERGED
            elif count - since >= PATIENCE:
                status = Status.STAGNATED
            run.best = _UncertifiedPairs(
                values[:k], vectors[:, :k], "block Krylov", count, status, residuals[:k]
            )
            if status != Status.LIMIT or count >= max_iter:
                break
    best = run.best
    assert best is not None
    if run.interrupted:
        return replace(best, iterations=count, status=Status.INTERRUPTED)
    if best.status == Status.LIMIT and count < max_iter:
        # The space is whole: no product can improve it.
        best = replace(best, status=Status.STAGNATED)
    return best


def _ritz_pairs(op: Operator, k: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array, Array]]:
    """After each block product: Ritz values, vectors and residual norms; ends when the space is whole."""
    n = op.shape[0]
    width = min(-(-(k + SPARE) // LANES) * LANES, n)
    most = min(BASIS * width, n)
    Q = np.empty((n, most), order="F")
    AQ = np.empty((n, most), order="F")
    # QᵀAQ, of which each product adds a border.
    T = np.empty((most, most))
    m = 0
    fresh = _orthonormal(rng.standard_normal((n, width)))
    while True:
        old = m
        m += fresh.shape[1]
        Q[:, old:m] = fresh
        AQ[:, old:m] = multiply(op, fresh)
        T[:m, old:m] = lapack.matmul(Q[:, :m].T, AQ[:, old:m])
        T[old:m, :old] = T[:old, old:m].T
        values, S = lapack.top_eigh((T[:m, :m] + T[:m, :m].T) / 2, min(width, m))
        values = values[::-1]
        S = S[:, ::-1]
        V = lapack.matmul(Q[:, :m], S)
        AV = lapack.matmul(AQ[:, :m], S)
        yield values, V, np.linalg.norm(AV - V * values, axis=0)
        fresh = AQ[:, old:m]
        if m + width > most:
            # Start again; the residuals are the next directions.
            fresh = AV - V * values
            m = V.shape[1]
            Q[:, :m] = V
            AQ[:, :m] = AV
            T[:m, :m] = np.diag(values)
        if m == n:
            return
        known = Q[:, :m]
        fresh = _orthonormal(_outside(known, fresh))
        fresh = _orthonormal(_outside(known, fresh))[:, : most - m]
        if not fresh.shape[1]:
            # An invariant subspace: look elsewhere.
            fresh = rng.standard_normal((n, min(width, max(most - m, 1))))
            fresh = _orthonormal(_outside(known, fresh))


def _outside(known: Array, V: Array) -> Array:
    """V without what lies in the span of orthonormal columns."""
    return V - lapack.matmul(known, lapack.matmul(known.T, V))


def _orthonormal(V: Array) -> Array:
    """An orthonormal basis of the columns; columns that depend on the others are left out."""
    Q, size = lapack.pivoted_qr(V)
    return Q[:, size > 1e-14 * max(float(size[0]), 1e-300)]


def _lanczos(op: Operator, k: int, tol: float, max_iter: int, rng: np.random.Generator) -> _UncertifiedPairs:
    n = op.shape[0]
    calls = [0]
    if k >= n:
        return _dense(op, k)

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
    return _UncertifiedPairs(values[order], vectors[:, order], "Lanczos", calls[0], status)


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
