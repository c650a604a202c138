"""Preconditioners for A + shift·I: a low-rank part of A in closed form, and one number for the rest.

        P = U S Uᵀ + tail·(I - U Uᵀ) + shift·I        U orthonormal, n×r

`nystrom` gets U and S from one block product with random vectors or from r columns drawn at random,
`pivoted_cholesky` from r columns chosen greedily.
`tail` stands for what the low rank leaves out, so a diagonal already inside A does no harm. Both approximate
A from below, so the eigenvalues of P⁻¹(A + shift·I) are at least shift / (tail + shift).

The rank, when none is given, is doubled from 32 until the part left out matters no more (tail <= 10 shift),
until doubling gains nothing (the tail falls by less than half), or until 5 √n (at least 100; at most n): then
the n×r block, the r products and the n r² of linear algebra cost about as much as a few products with A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, eigvalsh

from mercer import lapack
from mercer.errors import NotPositiveDefiniteError, ParameterError
from mercer.panels import panels
from mercer.solve.operator import MatrixLike, Operator, as_operator, check_number, multiply
from mercer.typing import Array, Integers, Seed

FIRST_RANK = 32
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class LowRank:
    """P = U S Uᵀ + tail·(I - U Uᵀ) + shift·I, with what can be done with it in O(n r).

    `@` solves against P. `left_out` is the trace of A that the low rank does not hold, None if unknown.
    """

    vectors: Array
    values: Array
    shift: float
    tail: float
    method: str
    left_out: float | None = None

    @property
    def rank(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        return self.vectors.shape[0], self.vectors.shape[0]

    def power(self, V: Array, exponent: float) -> Array:
        """P^exponent V.

        >>> P = pivoted_cholesky(np.diag([4.0, 1.0]), rank=2)
        >>> P.power(np.array([1.0, 1.0]), 0.5)
        array([2., 1.])
        """
        rest = (self.tail + self.shift) ** exponent
        small = self.vectors.T @ V
        weights = (self.values + self.shift) ** exponent - rest
        if V.ndim > 1:
            weights = weights[:, None]
        out: Array = rest * V + self.vectors @ (small * weights)
        return out

    def __matmul__(self, V: Array) -> Array:
        return self.power(V, -1.0)

    apply = __matmul__

    def logdet(self) -> float:
        """log det P, exactly."""
        outside = self.shape[0] - self.rank
        rest = outside * np.log(self.tail + self.shift) if outside else 0.0
        return float(np.log(self.values + self.shift).sum() + rest)

    def __str__(self) -> str:
        return f"a {self.method} preconditioner of rank {self.rank}"


def rank_cap(n: int) -> int:
    """The largest rank that the automatic rule will choose for n rows.

    >>> rank_cap(10), rank_cap(10_000), rank_cap(50_000)
    (10, 500, 1118)
    """
    return min(n, max(100, int(5 * np.sqrt(n))))


def nystrom(
    A: MatrixLike,
    shift: float = 0.0,
    *,
    rank: int | None = None,
    max_rank: int | None = None,
    gain: float = 0.5,
    sketch: Literal["gaussian", "columns"] = "gaussian",
    random_state: Seed = 0,
) -> LowRank:
    """The randomised Nyström preconditioner of Frangella, Tropp and Udell.

        Â = (A Ω) (Ωᵀ A Ω)⁺ (A Ω)ᵀ        n×r

    computed for A + ν I with a ν at the level of rounding that is subtracted again, so that it is stable. Ω
    is Gaussian, which costs r products with A, or picks r columns of A at random, which costs nothing but
    those columns: a little less exact for the same rank, and much cheaper when A is never stored. `max_rank`
    keeps the automatic rank, and with it some six n×r arrays, within the memory at hand; it takes the place
    of 5 √n. Doubling goes on while it leaves at most `gain` of the tail.

    >>> K = np.exp(-np.subtract.outer(np.arange(50.0), np.arange(50.0)) ** 2 / 200)
    >>> P = nystrom(K, shift=1e-3)
    >>> P.rank, bool(np.linalg.cond(np.linalg.solve(K + 1e-3 * np.eye(50), P.power(np.eye(50), 1.0))) < 1.01)
    (19, True)
    """
    op = as_operator(A)
    shift = check_number(shift, "shift", 0.0)
    rng = np.random.default_rng(random_state)
    n = op.shape[0]
    if rank is not None:
        target = cap = min(int(check_number(rank, "rank", 1)), n)
    else:
        cap = rank_cap(n)
        if max_rank is not None:
            cap = min(n, int(check_number(max_rank, "max_rank", 1)))
        target = min(FIRST_RANK, n, cap)
    if sketch not in ("gaussian", "columns"):
        raise ParameterError(f"sketch must be 'gaussian' or 'columns'; got {sketch!r}.")
    omega: _Gaussian | _Columns = _Gaussian(op, rng) if sketch == "gaussian" else _Columns(op, rng)
    before = np.inf
    while True:
        omega.grow(target)
        vectors, values = _nystrom_core(op, omega)
        tail = float(values[-1]) if len(values) and len(values) == target < n else 0.0
        if target >= cap or tail <= 10 * shift or tail > gain * before:
            return _low_rank(op, vectors, values, shift, tail, "Nyström")
        before = tail
        target = min(2 * target, cap)


@dataclass(frozen=True, eq=False)
class ColumnInverse:
    """(B Bᵀ + shift·I)⁻¹ = (I - B (BᵀB + shift·I)⁻¹ Bᵀ) / shift, with `lower` the Cholesky factor inside."""

    B: Array
    lower: Array
    shift: float

    @property
    def rank(self) -> int:
        columns: int = self.B.shape[1]
        return columns

    def __matmul__(self, V: Array) -> Array:
        small = lapack.cho_solve(self.lower, self.B.T @ V)
        return (V - self.B @ small) / self.shift

    def __str__(self) -> str:
        return f"a Nyström preconditioner of rank {self.rank}"


def column_inverse(A: MatrixLike, shift: float, rank: int, *, random_state: Seed = 0) -> ColumnInverse:
    """The Nyström preconditioner from `rank` random columns of A by Cholesky factors only; shift > 0.

    It costs 2 n r² operations, where `nystrom` takes some ten times as many for eigenvectors, and memory for
    one n×r array. Its digits go down with shift / ‖A‖: below 1e-9 or so `nystrom` is the one to take.

    >>> K = np.exp(-np.subtract.outer(np.arange(50.0), np.arange(50.0)) ** 2 / 200)
    >>> P = column_inverse(K, 0.1, 25)
    >>> bool(np.linalg.cond((K + 0.1 * np.eye(50)) @ (P @ np.eye(50))) < 1.01)
    True
    """
    op = as_operator(A)
    shift = check_number(shift, "shift", 0.0, strict=True)
    n = op.shape[0]
    r = min(int(check_number(rank, "rank", 1)), n)
    chosen = np.random.default_rng(random_state).permutation(n)[:r]
    core = np.asarray(op.block(chosen, chosen), dtype=np.float64)
    if not np.isfinite(core).all():
        raise NotPositiveDefiniteError("The matrix contains NaN or infinity, so it cannot be sketched.")
    nu = float(np.finfo(op.dtype).eps) * np.sqrt(n) * max(float(np.linalg.norm(core)), TINY)
    lower, _ = _factored((core + core.T) / 2, np.eye(r), nu, r)
    B = np.empty((n, r))
    inner = np.zeros((r, r), order="F")
    for rows in panels(n, columns=r):
        part = B[rows]
        part[:] = op.block(rows, chosen)
        lapack.trsm(lower, part.T)
        inner = lapack.syrk(1.0, part.T, beta=1.0, C=inner)
    inner[np.diag_indices(r)] += shift
    return ColumnInverse(B, lapack.cholesky(inner, overwrite_a=True), shift)


class _Gaussian:
    """Ω with independent normal entries, and A Ω; grown a block at a time."""

    def __init__(self, op: Operator, rng: np.random.Generator) -> None:
        self.op = op
        self.rng = rng
        self.omega = self.image = np.empty((op.shape[0], 0))

    def grow(self, rank: int) -> None:
        fresh = self.rng.standard_normal((len(self.omega), rank - self.omega.shape[1]))
        self.omega = np.hstack([self.omega, fresh])
        self.image = np.hstack([self.image, multiply(self.op, fresh)])

    def core(self) -> Array:
        """Ωᵀ A Ω."""
        return self.omega.T @ self.image

    def gram(self) -> Array:
        """Ωᵀ Ω."""
        return self.omega.T @ self.omega

    def shifted(self, nu: float) -> Array:
        """(A + ν I) Ω."""
        return self.image + nu * self.omega

    def size(self) -> float:
        """About ‖A‖ in the mean over the sketch, per √n."""
        return float(np.linalg.norm(self.image) / np.sqrt(len(self.omega)))


class _Columns:
    """Ω that picks columns of A in a random order; Ω itself is never written out."""

    def __init__(self, op: Operator, rng: np.random.Generator) -> None:
        self.op = op
        self.order = rng.permutation(op.shape[0])
        self.image = np.empty((op.shape[0], 0))

    def grow(self, rank: int) -> None:
        fresh = self.order[self.image.shape[1] : rank]
        self.image = np.hstack([self.image, self.op.block(slice(None), fresh)])

    def core(self) -> Array:
        return self.image[self.order[: self.image.shape[1]]]

    def gram(self) -> Array:
        return np.eye(self.image.shape[1])

    def shifted(self, nu: float) -> Array:
        out = self.image.copy()
        r = out.shape[1]
        out[self.order[:r], np.arange(r)] += nu
        return out

    def size(self) -> float:
        return float(np.linalg.norm(self.image) / np.sqrt(max(1, self.image.shape[1])))


def _nystrom_core(op: Operator, omega: _Gaussian | _Columns) -> tuple[Array, Array]:
    """Orthonormal U and S >= 0 with Â = U S Uᵀ, from Ω and A Ω."""
    n = op.shape[0]
    eps = float(np.finfo(op.dtype).eps)
    size = omega.size()
    if not np.isfinite(size):
        raise NotPositiveDefiniteError("The matrix contains NaN or infinity, so it cannot be sketched.")
    if size == 0:
        return np.empty((n, 0)), np.empty(0)
    nu = eps * np.sqrt(n) * size
    core = omega.core()
    lower, nu = _factored((core + core.T) / 2, omega.gram(), nu, n)
    B = lapack.solve_triangular(lower, omega.shifted(nu).T).T
    return _orthonormal(B, nu)


def _factored(core: Array, gram: Array, nu: float, n: int) -> tuple[Array, float]:
    """The Cholesky factor of core + ν gram, with ν raised where rounding asks for it."""
    for _ in range(4):
        try:
            return lapack.cholesky(core + nu * gram), nu
        except LinAlgError:
            low = float(eigvalsh(core, subset_by_index=[0, 0])[0]) / n
            if low < -1e4 * nu:
                raise NotPositiveDefiniteError(
                    "The matrix is not positive semi-definite: a random sketch of it has an eigenvalue of "
                    f"about {low:.3g}. Use a valid kernel, or add a diagonal.",
                    smallest_eigenvalue=low,
                ) from None
            nu = max(10 * nu, -2 * low)
    raise NotPositiveDefiniteError("The matrix is not positive semi-definite to rounding: no sketch factors.")


def _orthonormal(B: Array, nu: float = 0.0) -> tuple[Array, Array]:
    """U, S with U S Uᵀ = B Bᵀ - ν U Uᵀ; directions at the level of ν or of rounding are dropped."""
    Q, R = lapack.qr(B)
    left, sigma, _ = lapack.svd(R)
    values = sigma**2 - nu
    if not len(values):
        return Q @ left, values
    keep = values > max(2 * nu, np.finfo(np.float64).eps * float(values[0]))
    return Q @ left[:, keep], values[keep]


def _low_rank(
    op: Operator,
    U: Array,
    S: Array,
    shift: float,
    tail: float,
    method: str,
    left_out: float | None = None,
) -> LowRank:
    """The preconditioner, with a tail that keeps P invertible when neither shift nor tail does."""
    if tail + shift <= 0:
        if not len(S):
            tail = 1.0
        elif len(S) == op.shape[0]:
            # Nothing is outside U, and a tail far from S would only cancel digits.
            tail = float(S[-1])
        else:
            tail = float(np.finfo(op.dtype).eps) * float(S[0])
    return LowRank(U, S, shift, tail, method, left_out)


def pivoted_cholesky(A: MatrixLike, shift: float = 0.0, *, rank: int | None = None) -> LowRank:
    """The greedy partial Cholesky factor as a preconditioner: the next column is where most diagonal is left.

    Looks at the diagonal and r columns of A only, and knows exactly what trace it leaves out (`left_out`);
    `tail` is that per row. The automatic rank stops when that falls below the shift, or at 5 √n.

    >>> P = pivoted_cholesky(np.diag([4.0, 3.0, 0.25]), rank=2)
    >>> P.rank, P.left_out
    (2, 0.25)
    """
    op = as_operator(A)
    shift = check_number(shift, "shift", 0.0)
    n = op.shape[0]
    cap = rank_cap(n) if rank is None else min(int(check_number(rank, "rank", 1)), n)
    found = greedy_columns(op, cap, enough=n * shift if rank is None else -1.0)
    U, S = _orthonormal(found.rows.T)
    return _low_rank(op, U, S, shift, found.left_out / n, "pivoted Cholesky", found.left_out)


def exact_low_rank(F: Array, shift: float) -> LowRank:
    """F Fᵀ + shift·I itself, so that `@` solves against it in O(n r); shift > 0.

    >>> P = exact_low_rank(np.array([[1.0], [1.0]]), shift=1.0)
    >>> P @ np.array([3.0, 0.0])               # the inverse of [[2, 1], [1, 2]] is [[2, -1], [-1, 2]] / 3
    array([ 2., -1.])
    """
    U, S = _orthonormal(np.asarray(F, dtype=np.float64))
    return LowRank(U, S, check_number(shift, "shift", 0.0, strict=True), 0.0, "closed-form low-rank")


@dataclass(frozen=True, eq=False)
class PartialCholesky:
    """A ≈ rowsᵀ rows, from the columns `pivots` in that order; `left` is what remains of the diagonal."""

    rows: Array
    pivots: Integers
    left: Array

    @property
    def left_out(self) -> float:
        """The trace of A that is left out, exactly."""
        return float(np.maximum(self.left, 0.0).sum())


def greedy_columns(A: MatrixLike, rank: int, *, enough: float = -1.0) -> PartialCholesky:
    """Pivoted Cholesky: the next column is where most diagonal is left, until at most `enough` trace is left.

    It also stops, before `rank` columns, where only rounding is left: 4 n eps times the largest diagonal
    entry.

    >>> greedy_columns(np.diag([3.0, 4.0, 0.25]), 2).pivots
    array([1, 0])
    """
    op = as_operator(A)
    n = op.shape[0]
    left = np.asarray(op.diag(), dtype=np.float64).copy()
    eps = float(np.finfo(op.dtype).eps)
    floor = 4 * n * eps * float(left.max(initial=0.0))
    rows = np.empty((rank, n))
    pivots = np.empty(rank, dtype=np.intp)
    for k in range(rank + 1):
        _require_nonnegative(left, floor)
        i = int(np.argmax(left))
        if k == rank or left[i] <= floor or float(left.sum()) <= enough:
            break
        column = np.asarray(op.block(slice(None), np.array([i])), dtype=np.float64)[:, 0]
        rows[k] = (column - rows[:k, i] @ rows[:k]) / np.sqrt(left[i])
        pivots[k] = i
        left -= rows[k] ** 2
        left[i] = 0.0
    return PartialCholesky(rows[:k], pivots[:k], left)


def _require_nonnegative(left: Array, floor: float) -> None:
    i = int(np.argmin(left))
    if left[i] < -max(floor, np.finfo(np.float64).tiny) * 10:
        raise NotPositiveDefiniteError(
            f"The matrix is not positive semi-definite: row {i} has {left[i]:.3g} left on the diagonal after "
            "the rows before it. Use a valid kernel, or add a diagonal.",
            pivot=i,
        )
