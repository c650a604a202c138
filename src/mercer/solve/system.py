"""The front door: (A + shift·I) x = b by whichever method suits the size, the memory and the spectrum."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mercer import clock
from mercer.memory import memory_limit
from mercer.solve.cg import cg
from mercer.solve.direct import direct
from mercer.solve.operator import as_operator, check_number, check_targets
from mercer.solve.precondition import exact_low_rank, nystrom
from mercer.solve.solution import Certificate, Solution, Status

DIRECT_ROWS = 4000  # up to here Cholesky takes a second or so
ROWS_PER_ITERATION = 100  # Cholesky of n rows costs about as much as n / 100 products with A


def solve(
    A: Any,
    b: Any,
    shift: float = 0.0,
    *,
    tol: float = 1e-10,
    memory: int | str = "2GiB",
    max_seconds: float | None = None,
    random_state: Any = 0,
    keep: bool = True,
) -> Solution[np.ndarray]:
    """Solve (A + shift·I) x = b to a relative residual of `tol`; A positive semi-definite.

    - A is known to be F Fᵀ with at most n / 4 columns, and shift > 0: in closed form, checked and refined by conjugate gradients.
    - n <= 4000 and the n×n factor fits in `memory`: Cholesky.
    - Otherwise conjugate gradients with a Nyström preconditioner from random columns. If the factor does fit, they get n / 100
      iterations, about what Cholesky costs, and Cholesky takes over if that was not enough, or is not going to be.

    The choice depends on sizes and on the matrix, never on a clock; the certificate says what was chosen and why.
    `max_seconds` stops conjugate gradients with the best answer so far; a factorisation is not cut short.
    Ctrl-C keeps what conjugate gradients have, or leaves at once with `keep=False`.

    >>> found = solve(np.array([[4.0, 2.0], [2.0, 5.0]]), [8.0, 12.0])
    >>> print(found.value, found.certificate.method)
    [1. 2.] Cholesky (float64)
    """
    start, end = clock.now(), clock.until(max_seconds)
    op = as_operator(A)
    n = op.shape[0]
    check_targets(op, b)
    check_number(tol, "tol", 0.0)
    shift = check_number(shift, "shift", 0.0)
    F = op.low_rank_factor()
    if F is not None and shift > 0 and 4 * F.shape[1] <= n:
        P = exact_low_rank(F, shift)
        return cg(
            op,
            b,
            shift,
            preconditioner=P,
            x0=P @ np.asarray(b, dtype=np.float64),
            tol=tol,
            max_seconds=max_seconds,
            keep=keep,
        )
    fits = 8 * n * n <= memory_limit(memory)
    if fits and n <= DIRECT_ROWS:
        return direct(op, b, shift, tol=tol)
    inverse = nystrom(op, shift, sketch="columns", random_state=random_state)
    allowed = n // ROWS_PER_ITERATION if fits else None
    notes = (
        [] if fits else [f"The n×n factor ({8 * n * n / 2**30:.1f} GiB) does not fit in the memory allowed."]
    )
    if allowed is not None:
        need = _expected_iterations(inverse.tail, shift, tol)
        if need > allowed:
            notes.append(f"Conjugate gradients would need some {need} iterations; Cholesky is cheaper.")
            return _noted(direct(op, b, shift, tol=tol), notes, start)
    left = None if end == np.inf else max(end - clock.now(), 0.0)
    found = cg(op, b, shift, preconditioner=inverse, tol=tol, max_iter=allowed, max_seconds=left, keep=keep)
    out_of_time = clock.now() >= end
    if (
        not fits
        or out_of_time
        or found.certificate.status in (Status.CONVERGED, Status.STOPPED, Status.INTERRUPTED, Status.FAILED)
    ):
        return _noted(found, notes, start)
    tried = found.certificate
    notes.append(
        f"{tried.method.capitalize()} came to a residual of {tried.residual:.1e} in {tried.iterations} iterations; "
        "Cholesky took over."
    )
    return _noted(direct(op, b, shift, tol=tol), notes, start)


def _expected_iterations(tail: float, shift: float, tol: float) -> int:
    """√κ ln(2 / tol) with κ = (tail + shift) / shift; 0, that is unknown, without a shift."""
    if shift == 0 or tol == 0:
        return 0
    return int(np.sqrt((tail + shift) / shift) * np.log(2 / tol))


def _noted(found: Solution[np.ndarray], notes: list[str], start: float) -> Solution[np.ndarray]:
    done: Certificate = dataclasses.replace(
        found.certificate,
        notes=(*notes, *found.certificate.notes),
        seconds=clock.now() - start,
    )
    return Solution(found.value, done)
