"""Why a matrix is not positive definite: rows that look alike, how negative it is, what diagonal would do."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh, get_lapack_funcs
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from mercer.errors import NotPositiveDefiniteError
from mercer.panels import panels
from mercer.solve.operator import Operator, multiply

DENSE_ROWS = 1000  # up to here the whole spectrum is computed and the diagonal is tried out
MOST_PAIRS = 100
SHOWN = 5


def not_positive_definite(
    op: Operator, shift: float, pivot: int, dtype: np.dtype
) -> NotPositiveDefiniteError:
    """The error to raise when a factorisation of A + shift·I in `dtype` stopped at row `pivot`.

    >>> from mercer.solve.operator import as_operator
    >>> A = as_operator(np.array([[2.0, 2.0], [2.0, 2.0]]))
    >>> not_positive_definite(A, 0.0, 1, np.dtype(np.float64)).duplicates
    ((0, 1),)
    """
    twins = look_alike(op)
    low, high = _extremes(op)
    low += shift
    high += shift
    enough = _sufficient_diagonal(op, shift, low, high, dtype)
    n = op.shape[0]
    rounding = 10 * n * float(np.finfo(dtype).eps) * max(high, -low)
    finding = "it is indefinite, so this is no Gram matrix of a valid kernel."
    if low > -rounding:
        finding = "zero, up to rounding."
    text = [
        f"The matrix is not positive definite in {dtype}: its factorisation stopped at row {pivot} of {n}.",
        f"Its smallest eigenvalue is about {low:.3g} (the largest {high:.3g}): {finding}",
    ]
    if twins:
        pairs = ", ".join(f"{i} and {j}" for i, j in twins[:SHOWN])
        more = f" (and {len(twins) - SHOWN} more pairs)" if len(twins) > SHOWN else ""
        text.append(f"Rows {pairs}{more} look like duplicates.")
    other = "remove the duplicates" if twins else "use a kernel that separates the rows"
    text.append(f"A diagonal (shift, alpha, noise) of {shift + enough:.2g} in all would do, or {other}.")
    return NotPositiveDefiniteError(" ".join(text), pivot, tuple(twins), low, shift + enough)


def look_alike(op: Operator) -> list[tuple[int, int]]:
    """Pairs i < j whose squared feature distance Aᵢᵢ + Aⱼⱼ - 2Aᵢⱼ is zero up to rounding.

    At most `MOST_PAIRS` of them. Each row is paired with its first double only, so a row repeated m times
    gives m - 1 pairs.
    """
    n = op.shape[0]
    d = np.asarray(op.diag(), dtype=np.float64)
    eps = float(np.finfo(op.dtype).eps)
    found: list[tuple[int, int]] = []
    taken = np.zeros(n, dtype=bool)
    for rows in panels(n):
        cols = slice(rows.start, n)
        apart = d[rows, None] + d[None, cols] - 2.0 * op.block(rows, cols)
        close = np.triu(np.abs(apart) <= 8 * eps * (d[rows, None] + d[None, cols]), 1)
        for i, j in np.argwhere(close) + rows.start:
            if not taken[j]:
                taken[j] = True
                found.append((int(i), int(j)))
                if len(found) == MOST_PAIRS:
                    return found
    return found


def _extremes(op: Operator) -> tuple[float, float]:
    """The smallest and largest eigenvalue: all of them when n is small, else by Lanczos to a few digits."""
    n = op.shape[0]
    if n <= DENSE_ROWS:
        values = eigvalsh(np.asarray(op.dense(), dtype=np.float64))
        return float(values[0]), float(values[-1])
    linear = LinearOperator((n, n), matvec=lambda v: multiply(op, np.ravel(v)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    out = []
    for end in ("SA", "LA"):
        try:
            value = eigsh(
                linear, 1, which=end, v0=start, tol=1e-3, maxiter=300, ncv=40, return_eigenvectors=False
            )
        except ArpackNoConvergence as partial:
            value = partial.eigenvalues
            if not len(value):
                value = np.zeros(1)
        except ArpackError:
            value = np.zeros(1)
        out.append(float(value[0]))
    return out[0], out[1]


def _sufficient_diagonal(op: Operator, shift: float, low: float, high: float, dtype: np.dtype) -> float:
    """A diagonal on top of `shift` with which the factorisation goes through: tried out when n is small."""
    n = op.shape[0]
    eps = float(np.finfo(dtype).eps)
    size = max(abs(high), abs(low), float(np.finfo(dtype).tiny))
    if n > DENSE_ROWS:
        return 2.0 * max(-low, 0.0) + 4 * n * eps * size
    A = np.asarray(op.dense(), dtype=dtype)
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    extra = max(-low * (1 + 1e-6), 0.0) + eps * size
    step = eps * size
    while potrf(A + (shift + extra) * np.eye(n, dtype=dtype), lower=1)[1]:
        step *= 2
        extra += step
    return float(f"{extra * 1.05:.2g}") if extra * 1.05 > 0 else extra
