"""Solve (A + shift·I) x = b by Cholesky's factorisation A + shift·I = L Lᵀ, in LAPACK.

Cost n³/3 multiply-adds, memory one n×n array. Only one triangle of A is asked for, panel by panel, so a Gram
operator does half of the work and no second copy appears. Nothing is ever added to the diagonal but `shift`.

Mixed precision factors in float32, in half the time and memory, and refines the answer with float64
residuals. Each step gains about -log10(cond · 6e-8) digits, so it is for well-conditioned matrices; where it
does not get to the tolerance, float64 takes over and the certificate says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mercer import clock, lapack
from mercer.errors import NotFiniteError, ParameterError
from mercer.panels import panels
from mercer.solve.diagnosis import not_positive_definite
from mercer.solve.operator import (
    MatrixLike,
    Operator,
    as_operator,
    check_number,
    check_targets,
    multiply,
    multiply_exactly,
    relative,
)
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array

Precision = Literal["auto", "float64", "mixed"]
MIXED_ROWS = 2000  # below this, float32 saves milliseconds
MIXED_CONDITION = 1e5  # above this, refinement takes more steps than the float32 factor saves
REFINEMENTS = 12
TIMED_ROWS = 2000  # from here on a factor is asked for its seconds
PROBE_ROWS = 1000  # of the small factor that tells them
TOLD = 0.05  # of the entries, that tell what all of them take
SOON = 0.5  # seconds after the end that a factor may take: it is the better answer


@dataclass(frozen=True, eq=False)
class Cholesky:
    """A + shift·I = L Lᵀ. `lower` holds L in its lower triangle, in Fortran order; above it is rubbish.

    >>> F = factor(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> F.solve(np.array([8.0, 12.0])), round(np.exp(F.logdet()))
    (array([1., 2.]), 16)
    >>> F.inverse_diag()                        # the inverse is [[5, -2], [-2, 4]] / 16
    array([0.3125, 0.25  ])
    """

    lower: Array
    shift: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.lower.shape[0], self.lower.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.lower.dtype

    def solve(self, B: Array) -> Array:
        """(A + shift·I)⁻¹ B, for a vector or a block; as float64, to the precision of the factor."""
        return np.asarray(lapack.potrs(self.lower, np.asarray(B, dtype=self.dtype)), dtype=np.float64)

    __matmul__ = solve  # so that a factor can precondition conjugate gradients

    def logdet(self) -> float:
        """log det(A + shift·I) = 2 Σ log Lᵢᵢ."""
        return 2.0 * float(np.log(self.lower.diagonal().astype(np.float64)).sum())

    def inverse_diag(self) -> Array:
        """The diagonal of (A + shift·I)⁻¹: the squared lengths of the columns of L⁻¹, never stored whole."""
        return lapack.Triangle(self.lower).inverse_lengths()


def factor(
    A: MatrixLike,
    shift: float = 0.0,
    *,
    dtype: npt.DTypeLike = np.float64,
    overwrite: bool = False,
    until: float = np.inf,
) -> Cholesky:
    """The Cholesky factor of A + shift·I, for an operator or a symmetric array.

    With `overwrite=True` an array in the factor's dtype is given up: it is destroyed, and no n×n memory is
    taken. A large factor that would not be ready soon after `until` is given up by `clock.OutOfTime`, with
    the seconds it would take. Raises `NotPositiveDefiniteError` with the pivot, the rows that look alike, the
    smallest eigenvalue and the smallest diagonal that would do.

    >>> factor(np.array([[1.0, 1.0], [1.0, 1.0]]))
    Traceback (most recent call last):
        ...
    mercer.errors.NotPositiveDefiniteError: The matrix is not positive definite in float64: its factorisation
    stopped at row 1 of 2. ...
    """
    op = as_operator(A)
    shift = check_number(shift, "shift", 0.0)
    dtype = np.dtype(dtype)
    given_up = False
    if overwrite and isinstance(A, np.ndarray) and A.dtype == dtype and A.flags.writeable:
        given_up = True
        upper = _contiguous(A)
    else:
        upper = _upper_triangle(op, dtype, until)
    diagonal = upper.diagonal().copy()
    lower, pivot = _potrf(upper, shift)
    if pivot is not None:
        matrix = _restored(upper, diagonal) if given_up else op
        raise not_positive_definite(matrix, shift, pivot, dtype)
    return Cholesky(lower, shift)


def _potrf(upper: Array, shift: float) -> tuple[Array, int | None]:
    """The lower factor in place of a C-order upper triangle, and the row at which it failed, or None."""
    diagonal = np.einsum("ii->i", upper)
    diagonal += upper.dtype.type(shift)
    # C's upper triangle is Fortran's lower.
    lower, info = lapack.potrf(upper.T, overwrite_a=True)
    row = lower[info - 1, :info] if info else lower.diagonal()
    if not np.isfinite(row).all():
        raise NotFiniteError(
            "The matrix contains NaN or infinity, found while it was factored. "
            "Look for missing values in the data, or for a kernel that overflows."
        )
    return lower, info - 1 if info else None


def _contiguous(A: Array) -> Array:
    """The array as C order without a copy: a symmetric array is its own transpose."""
    if A.flags.f_contiguous and not A.flags.c_contiguous:
        return A.T
    return np.ascontiguousarray(A)


def _upper_triangle(op: Operator, dtype: np.dtype, until: float) -> Array:
    n = op.shape[0]
    timed = until < np.inf and n >= TIMED_ROWS
    ahead = seconds_of_factor(n, dtype) if timed else 0.0
    began = clock.now()
    upper = np.empty((n, n), dtype)
    for rows in panels(n, dtype.itemsize):
        upper[rows, rows.start :] = op.block(rows, slice(rows.start, n))
        if timed:
            done = 1 - (1 - rows.stop / n) ** 2
            needed = (clock.now() - began) / done + ahead
            late = clock.now() >= until
            if (late or done >= TOLD) and began + needed > until + SOON:
                raise clock.OutOfTime(needed)
    return upper


def seconds_of_factor(n: int, dtype: npt.DTypeLike) -> float:
    """What LAPACK should take for a factor of n rows, by what a small one takes: n³ / 3 multiplications."""
    taken: list[float] = []
    for _ in range(2):
        small = np.eye(PROBE_ROWS, dtype=dtype, order="F")
        began = clock.now()
        lapack.potrf(small, overwrite_a=True)
        taken.append(clock.now() - began)
    return min(taken) * (n / PROBE_ROWS) ** 3


def _restored(upper: Array, diagonal: Array) -> Operator:
    """The matrix again, from the triangle that LAPACK did not write to."""
    A = np.tril(upper, -1)
    A += A.T
    A[np.diag_indices_from(A)] = diagonal
    return as_operator(A)


def direct(
    A: MatrixLike,
    b: npt.ArrayLike,
    shift: float = 0.0,
    *,
    tol: float = 1e-10,
    precision: Precision = "auto",
    overwrite: bool = False,
    until: float = np.inf,
    keep_factor: Callable[[Cholesky], object] | None = None,
) -> Solution[Array]:
    """Solve (A + shift·I) x = b by Cholesky, with the true residual in the certificate.

    `precision="mixed"` factors in float32 and refines; "auto" does so where it pays: at least 2000 rows,
    float64 entries and a condition number, estimated by a few products, below 1e5. `overwrite=True` gives up
    the memory of an array `A` in float64; its residual can then not be measured and is None. A large factor
    that would not be ready soon after `until` is given up: `clock.OutOfTime` leaves, with the seconds that it
    would take. `keep_factor` gets the factor, where it is one in float64.

    >>> found = direct(np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 12.0]))
    >>> found.value, found.certificate.status
    (array([1., 2.]), 'converged')
    """
    start = time.perf_counter()
    op = as_operator(A)
    shift = check_number(shift, "shift", 0.0)
    tol = check_number(tol, "tol", 0.0)
    B, single = check_targets(op, b)
    notes: list[str] = []
    if precision not in ("auto", "float64", "mixed"):
        raise ParameterError(f"precision must be 'auto', 'float64' or 'mixed'; got {precision!r}.")
    if overwrite and isinstance(A, np.ndarray) and A.dtype == np.float64 and A.flags.writeable:
        X = factor(A, shift, overwrite=True).solve(B)
        seconds = time.perf_counter() - start
        note = "The matrix was given up to the factor, so the residual was not measured."
        done = Certificate(
            Status.CONVERGED, "Cholesky (float64)", 0, seconds, added_diagonal=0.0, notes=(note,)
        )
        return Solution(X[:, 0] if single else X, done)
    found = None
    if precision == "mixed" or (precision == "auto" and _mixed_pays(op, shift)):
        found = _mixed(op, B, shift, tol, notes, until)
    method = "Cholesky (float64)" if found is None else "Cholesky (float32, refined in float64)"
    if found is None:
        made = factor(op, shift, until=until)
        if keep_factor is not None:
            keep_factor(made)
        found = _refine(op, made, B, shift, tol)
    X, R, steps = found
    done = _certificate(op, X, R, B, shift, tol, method, steps, notes, time.perf_counter() - start)
    return Solution(X[:, 0] if single else X, done)


def _mixed(
    op: Operator, B: Array, shift: float, tol: float, notes: list[str], until: float
) -> tuple[Array, Array, int] | None:
    """The refined answer of a float32 factor, or None and a note saying why not."""
    lower, pivot = _potrf(_upper_triangle(op, np.dtype(np.float32), until), shift)
    if pivot is not None:
        notes.append("float32 could not factor the matrix (too ill-conditioned); float64 was used.")
        return None
    X, R, steps = _refine(op, Cholesky(lower, shift), B, shift, tol)
    worst = float(relative(R, B).max(initial=0.0))
    if worst <= tol:
        return X, R, steps
    notes.append(
        f"float32 with refinement came to a residual of {worst:.1e} after {steps} steps (too "
        "ill-conditioned); float64 was used."
    )
    return None


def _refine(op: Operator, F: Cholesky, B: Array, shift: float, tol: float) -> tuple[Array, Array, int]:
    """X and its true residual R, improved by X += F⁻¹ R while that at least halves the worst column."""
    X = F.solve(B)
    R = B - multiply_exactly(op, X, shift)
    for step in range(REFINEMENTS):
        worst = relative(R, B).max(initial=0.0)
        if worst <= tol:
            return X, R, step
        better = X + F.solve(R)
        rest = B - multiply_exactly(op, better, shift)
        if not relative(rest, B).max(initial=0.0) <= 0.5 * worst:
            return X, R, step
        X = better
        R = rest
    return X, R, REFINEMENTS


def _mixed_pays(op: Operator, shift: float) -> bool:
    n = op.shape[0]
    return bool(
        n >= MIXED_ROWS and op.dtype == np.float64 and shift > 0 and largest(op) <= MIXED_CONDITION * shift
    )


def largest(op: Operator, steps: int = 6) -> float:
    """The largest eigenvalue, from below, by a few power steps from a fixed start; within some ten per cent.

    >>> round(largest(as_operator(np.diag([1.0, 2.0, 9.0]))), 2)
    9.0
    """
    v = 1.0 + 0.5 * np.sin(np.arange(1.0, op.shape[0] + 1))
    value = 0.0
    for _ in range(steps):
        v /= np.linalg.norm(v)
        v = multiply(op, v)
        value = float(np.linalg.norm(v))
        if value == 0 or not np.isfinite(value):
            break
    return value


def _certificate(
    op: Operator,
    X: Array,
    R: Array,
    B: Array,
    shift: float,
    tol: float,
    method: str,
    steps: int,
    notes: list[str],
    seconds: float,
) -> Certificate:
    each = relative(R, B)
    worst = float(each.max(initial=0.0))
    if worst > tol:
        size = (largest(op) + shift) * np.linalg.norm(X, axis=0) + np.linalg.norm(B, axis=0)
        backward = float((np.linalg.norm(R, axis=0) / np.where(size > 0, size, 1.0)).max())
        notes.append(
            f"The residual {worst:.1e} is above the tolerance {tol:.1e}: rounding allows no less, because "
            f"the matrix is ill-conditioned (backward error {backward:.1e}). Raise the shift, or accept the "
            "answer as exact for a matrix that differs in its last digits."
        )
    return Certificate(
        Status.CONVERGED if worst <= tol else Status.STAGNATED,
        method,
        iterations=steps,
        seconds=seconds,
        residual=worst,
        residuals=tuple(each.tolist()),
        worst_row=int(np.argmax(np.abs(R).max(axis=1))) if R.size else None,
        added_diagonal=0.0,
        notes=tuple(notes),
    )
