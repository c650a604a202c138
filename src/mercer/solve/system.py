"""The front door: (A + shift·I) x = b by whichever method suits the size, the memory and the spectrum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer import clock
from mercer.errors import MemoryBudgetError, NotPositiveDefiniteError
from mercer.memory import memory_limit, say_bytes
from mercer.solve.cg import Preconditioner, cg
from mercer.solve.direct import Cholesky, Precision, direct
from mercer.solve.operator import (
    MatrixLike,
    Operator,
    TwoPrecisions,
    as_operator,
    check_number,
    check_targets,
)
from mercer.solve.plan import Choice, Costs, Method, Plan, choose, cost_of_entries
from mercer.solve.precondition import column_inverse, exact_low_rank, nystrom, rank_cap
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Memory, Seed

PRECONDITIONER_ARRAYS = 6  # n×r arrays alive at one time while orthonormal vectors are made


@dataclass(frozen=True)
class SystemOptions:
    """How to solve a system, and what a caller who knows more of the matrix has to offer.

    `single(store)` makes the same matrix in float32 for products, computed anew or stored, None where that
    does not pay; `stored()` makes it in float64 with its entries kept, for products where there is no
    `single`. Who has `certified` measures the residual of the answer by a product of their own. `keep_factor`
    gets the factor in float64, if there is one.
    """

    method: Method | None = None
    tol: float = 1e-10
    memory: Memory = "2GiB"
    max_iter: int | None = None
    max_seconds: float | None = None
    random_state: Seed = 0
    callback: Callable[[int, float], object] | None = None
    keep: bool = True
    keep_factor: Callable[[Cholesky], object] | None = None
    certified: bool = False
    costs: Costs | None = None
    single: Callable[[bool], Operator | None] | None = None
    stored: Callable[[], Operator] | None = None


def solve(
    A: MatrixLike,
    b: npt.ArrayLike,
    shift: float = 0.0,
    *,
    tol: float = 1e-10,
    memory: Memory = "2GiB",
    max_seconds: float | None = None,
    random_state: Seed = 0,
    keep: bool = True,
) -> Solution[Array]:
    """Solve (A + shift·I) x = b to a relative residual of `tol`; A positive semi-definite.

    - A is known to be F Fᵀ with at most n / 4 columns, and shift > 0: in closed form, checked and refined by
      conjugate gradients. - n <= 4000 and the n×n factor fits in `memory`: Cholesky. - Otherwise whichever
      promises to be cheaper by the eigenvalues of a few hundred rows (`solve.plan`): Cholesky, or conjugate
      gradients with a preconditioner from random columns. If the factor does fit, Cholesky takes over where
      they break their promise.

    The choice depends on sizes and on the matrix, never on a clock; the certificate says what was chosen and
    why. `max_seconds` stops conjugate gradients with the best answer so far; a factorisation that would take
    longer is not begun, and conjugate gradients take its place. Ctrl-C keeps what conjugate gradients have,
    or leaves at once with `keep=False`.

    >>> found = solve(np.array([[4.0, 2.0], [2.0, 5.0]]), [8.0, 12.0])
    >>> print(found.value, found.certificate.method)
    [1. 2.] Cholesky (float64)
    """
    op = as_operator(A)
    check_targets(op, b)
    check_number(tol, "tol", 0.0)
    shift = check_number(shift, "shift", 0.0)
    options = SystemOptions(
        tol=tol, memory=memory, max_seconds=max_seconds, random_state=random_state, keep=keep
    )
    return solve_by(op, b, shift, options)[1]


def solve_by(
    op: Operator, b: npt.ArrayLike, shift: float, options: SystemOptions
) -> tuple[Method, Solution[Array]]:
    """The method that was chosen and what it found."""
    start = clock.now()
    with clock.within(options.max_seconds):
        method, found = _solve_in_time(op, b, shift, options)
    return method, Solution(found.value, dataclasses.replace(found.certificate, seconds=clock.now() - start))


def _solve_in_time(
    op: Operator, b: npt.ArrayLike, shift: float, options: SystemOptions
) -> tuple[Method, Solution[Array]]:
    n = op.shape[0]
    F = op.low_rank_factor() if options.method is None else None
    if F is not None and shift > 0 and 4 * F.shape[1] <= n:
        return "cg", _closed_form(op, F, b, shift, options)
    memory = memory_limit(options.memory)
    if options.method == "cholesky" and 8 * n * n > memory:
        raise MemoryBudgetError(
            f"Cholesky of {n} rows needs {say_bytes(8 * n * n)}; the limit is {say_bytes(memory)}. "
            "Raise memory=, or use conjugate gradients."
        )
    costs = options.costs or Costs(cost_of_entries(op))
    chosen = choose(
        op,
        shift,
        options.tol,
        asked=options.method,
        memory=memory,
        costs=costs,
        random_state=options.random_state,
    )
    notes = [chosen.note] if chosen.note else []
    method = chosen.method
    if method == "cg":
        found = _iterate(op, b, shift, chosen, options)
        tried = found.certificate
        if not clock.late() and _gave_up(tried, chosen.allowed, options.max_iter):
            with suppress(clock.OutOfTime):
                found = _factored(op, b, shift, chosen, options, clock.until())
                method = "cholesky"
                notes.append(
                    f"Conjugate gradients came to a residual of {tried.residual:.1e} in {tried.iterations} "
                    "iterations; Cholesky took over."
                )
    else:
        try:
            found = _factored(op, b, shift, chosen, options, clock.until())
        except clock.OutOfTime as stop:
            method, found, said = _without_factor(op, b, shift, chosen, options, float(stop.found))
            notes.append(said)
    done = dataclasses.replace(found.certificate, notes=(*notes, *found.certificate.notes))
    return method, Solution(found.value, done)


def _factored(
    op: Operator, b: npt.ArrayLike, shift: float, chosen: Choice, options: SystemOptions, end: float
) -> Solution[Array]:
    # a factor that is to be kept is one in float64
    precision: Precision = "mixed" if chosen.mixed and options.keep_factor is None else "float64"
    return direct(
        op, b, shift, tol=options.tol, precision=precision, until=end, keep_factor=options.keep_factor
    )


def _without_factor(
    op: Operator,
    b: npt.ArrayLike,
    shift: float,
    chosen: Choice,
    options: SystemOptions,
    needed: float,
) -> tuple[Method, Solution[Array], str]:
    """By conjugate gradients, which can be ended at any time; by the factor where they cannot be used."""
    n = op.shape[0]
    left = clock.left() or 0.0
    said = f"Cholesky of {n} rows would take some {needed:.1f} s and {left:.1f} s are left"
    costs = options.costs or Costs(cost_of_entries(op))
    memory = memory_limit(options.memory)
    try:
        other = choose(
            op, shift, options.tol, asked="cg", memory=memory, costs=costs, random_state=options.random_state
        )
    except NotPositiveDefiniteError:
        found = _factored(op, b, shift, chosen, options, np.inf)
        return "cholesky", found, f"{said}, but K is indefinite: nothing else could solve the system."
    found = _iterate(op, b, shift, other, options)
    return "cg", found, f"{said}: conjugate gradients took its place."


def _closed_form(
    op: Operator, F: Array, b: npt.ArrayLike, shift: float, options: SystemOptions
) -> Solution[Array]:
    """x by the inverse of F Fᵀ + shift, checked and refined by conjugate gradients."""
    P = exact_low_rank(F, shift)
    return cg(
        op,
        b,
        shift,
        preconditioner=P,
        x0=P @ np.asarray(b, dtype=np.float64),
        tol=options.tol,
        max_iter=options.max_iter,
        callback=options.callback,
        keep=options.keep,
        certified=options.certified,
        after=int(options.certified),
    )


def _gave_up(tried: Certificate, allowed: int | None, most: int | None) -> bool:
    """Whether Cholesky should take over: stuck, or at the limit that is ours and not the user's."""
    if allowed is None:
        return False
    if tried.status in (Status.STAGNATED, Status.FAILED):
        return True
    ours = most is None or allowed < most
    return tried.status == Status.LIMIT and ours and tried.iterations == allowed


def _preconditioner(op: Operator, shift: float, made: Plan | None, options: SystemOptions) -> Preconditioner:
    """Of the rank that was planned; else of as many vectors as the spectrum needs and memory holds."""
    if made is not None:
        return column_inverse(op, shift, made.rank, random_state=options.random_state)
    n = op.shape[0]
    most = max(memory_limit(options.memory) // (8 * n * PRECONDITIONER_ARRAYS), 16)
    inverse = nystrom(
        op,
        shift / 10,
        max_rank=min(most, rank_cap(n)),
        sketch="columns",
        random_state=options.random_state,
    )
    return dataclasses.replace(inverse, shift=shift)


def _iterate(
    op: Operator, b: npt.ArrayLike, shift: float, chosen: Choice, options: SystemOptions
) -> Solution[Array]:
    """Conjugate gradients: in float32 with float64 residuals where that holds, in float64 else."""
    inverse = _preconditioner(op, shift, chosen.plan, options)
    most = min((m for m in (options.max_iter, chosen.allowed) if m is not None), default=None)
    single = None
    if chosen.plan is not None and options.single is not None:
        single = options.single(chosen.plan.store)

    def run(A: Operator, x0: Array | None, done: int) -> Solution[Array]:
        return cg(
            A,
            b,
            shift,
            preconditioner=inverse,
            tol=options.tol,
            max_iter=None if most is None else max(most - done, 0),
            x0=x0,
            callback=options.callback,
            keep=options.keep,
            certified=options.certified,
            after=int(options.certified),
        )

    if single is None:
        return run(op if options.stored is None else options.stored(), None, 0)
    found = run(TwoPrecisions(single, op), None, 0)
    first = found.certificate
    if first.status not in (Status.STAGNATED, Status.FAILED):
        return found
    more = run(op, found.value, first.iterations or 0)
    said = f"float32 products came to a residual of {first.residual:.1e}; float64 went on from there."
    done = dataclasses.replace(
        more.certificate,
        iterations=(first.iterations or 0) + (more.certificate.iterations or 0),
        notes=(said, *more.certificate.notes),
    )
    return Solution(more.value, done)
