"""How the dual system of kernel ridge regression is solved: by which method, at which rank, in which precision.

The eigenvalues of a few hundred rows decide (`solve.plan`). Conjugate gradients multiply in float32, by an operator
that computes its entries or stores them, and take every residual from the float64 operator.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer.errors import MercerError, NotPositiveDefiniteError
from mercer.gram import Dense, GramOperator, Tiles
from mercer.machines.ridge.parts import Penalty, singular_gram, weighted
from mercer.memory import memory_limit, say_bytes
from mercer.solve.cg import Preconditioner, cg
from mercer.solve.direct import direct
from mercer.solve.operator import Operator, Paired
from mercer.solve.plan import Plan, cholesky_cost, entry_cost, plan, spectrum
from mercer.solve.precondition import column_inverse, nystrom, rank_cap
from mercer.solve.solution import Certificate, Solution, Status

if TYPE_CHECKING:
    from mercer.machines.ridge.problem import RidgeProblem

STORED_ROWS = 2000  # up to here K is stored also for Cholesky, which asks for each entry only twice
MIXED_CONDITION = 5e5  # largest eigenvalue / α up to which a float32 factor, refined, pays
LEAST_SHIFT = 1e-9  # of the largest eigenvalue: below it, a preconditioner needs orthonormal vectors
PRECONDITIONER_ARRAYS = 6  # n×r arrays alive at one time while those are made
PRECONDITIONER_SHARE = 0.75  # of the memory, else
SINGLE_ROWS = 1000  # from here on products are worth a float32 operator of their own
SINGLE_ERROR = 1e-5  # of the largest entry: what float32 may change
SINGULAR = 1e-6  # a relative residual that a matrix without penalty leaves only if it is singular to rounding
SAMPLE = 64  # rows on which that is looked at


class Outlook(NamedTuple):
    """What a look at the spectrum told: the plan of conjugate gradients, if any, and the condition of K + α."""

    plan: Plan | None
    condition: float


def solve_dual(
    problem: RidgeProblem, name: str, B: np.ndarray, penalty: Penalty, scale: np.ndarray
) -> tuple[str, Solution[np.ndarray], GramOperator]:
    """(W½ K W½ + α) u = B by "cholesky" or "cg", or, told "dual", by the one that promises to be cheaper."""
    alpha = penalty.alpha
    notes: list[str] = []
    K = problem.operator(stored=False)
    op = weighted(K, scale)
    outlook = Outlook(None, np.inf)
    if name != "cholesky" or problem.n > STORED_ROWS:
        try:
            outlook = look(problem, op, alpha)
        except NotPositiveDefiniteError:  # indefinite, yet K + α may be positive: Cholesky will tell
            if name == "cg" or not problem.fits:
                raise
            if name == "dual":
                name = "cholesky"
                notes.append("K is indefinite, so conjugate gradients were not tried.")
    allowed = None
    if name == "dual" and problem.fits and alpha > 0:
        single = outlook.condition <= MIXED_CONDITION
        limit = cholesky_cost(problem.n, _entry(problem), single=single)
        if outlook.plan is None or outlook.plan.cost > limit:
            name = "cholesky"
            need = "too many" if outlook.plan is None else f"some {outlook.plan.iterations}"
            notes.append(f"Conjugate gradients would need {need} iterations; Cholesky is cheaper.")
        else:  # twice what was promised at that price, then Cholesky
            allowed = int(2 * outlook.plan.iterations * limit / outlook.plan.cost)
    if name != "cholesky":
        found = _iterate(problem, op, B, alpha, scale, outlook.plan, allowed)
        tried = found.certificate
        if name == "dual" and problem.fits and _gave_up(problem, tried, allowed):
            notes.append(
                f"Conjugate gradients came to a residual of {tried.residual:.1e} in {tried.iterations} iterations; "
                "Cholesky took over."
            )
            name = "cholesky"
        elif not problem.fits:
            notes.append(
                f"The n×n factor ({say_bytes(8 * problem.n**2)}) does not fit in the memory allowed."
            )
    if name == "cholesky":
        problem.require_factor()
        mixed = problem.n > STORED_ROWS and outlook.condition <= MIXED_CONDITION
        precision: Any = "mixed" if mixed else "float64"
        found = direct(op, B, alpha, tol=problem.options.tol, precision=precision)
        if alpha == 0 and (found.certificate.residual or 0.0) > SINGULAR:
            raise singular_gram(op, found.certificate)
    if notes:
        done = dataclasses.replace(found.certificate, notes=(*notes, *found.certificate.notes))
        found = Solution(found.value, done)
    return ("cholesky" if name == "cholesky" else "cg"), found, K


def look(problem: RidgeProblem, op: GramOperator, alpha: float) -> Outlook:
    """The plan of conjugate gradients and the condition, from a few hundred rows."""
    known = spectrum(op, problem.options.random_state)
    if alpha <= LEAST_SHIFT * known.largest:
        return Outlook(None, np.inf)
    n, limit = problem.n, memory_limit(problem.options.memory)
    most = max(int(PRECONDITIONER_SHARE * limit) // (8 * n), 16)
    made = plan(
        known,
        alpha,
        problem.options.tol,
        entry=_entry(problem),
        most=most,
        storable=0 if problem.gram is not None else max(limit - 4 * n * n, 0) // (8 * n),
    )
    return Outlook(made, known.largest / alpha + 1.0)


def _entry(problem: RidgeProblem) -> float:
    return entry_cost(None if problem.rows is None else problem.rows.vectors.shape[1])


def _gave_up(problem: RidgeProblem, tried: Certificate, allowed: int | None) -> bool:
    """Whether Cholesky should take over: stuck, or at the limit that is ours and not the user's."""
    if tried.status in (Status.STAGNATED, Status.FAILED):
        return True
    most = problem.options.max_iter
    ours = allowed is not None and (most is None or allowed < most)
    return tried.status == Status.LIMIT and ours and tried.iterations == allowed


def _iterate(
    problem: RidgeProblem,
    op: GramOperator,
    B: np.ndarray,
    alpha: float,
    scale: np.ndarray,
    made: Plan | None,
    allowed: int | None,
) -> Solution[np.ndarray]:
    """Conjugate gradients: in float32 with float64 residuals where that holds, in float64 else."""
    o = problem.options
    inverse: Preconditioner
    if made is None:
        most = max(memory_limit(o.memory) // (8 * problem.n * PRECONDITIONER_ARRAYS), 16)
        cap = min(most, rank_cap(problem.n))
        inverse = nystrom(op, alpha / 10, max_rank=cap, sketch="columns", random_state=o.random_state)
        inverse = dataclasses.replace(inverse, shift=alpha)
    else:
        inverse = column_inverse(op, alpha, made.rank, random_state=o.random_state)
    single = None if made is None else single_precision(problem, op, scale, made.store)
    most_iterations = min((m for m in (o.max_iter, allowed) if m is not None), default=None)

    def run(A: Operator, x0: np.ndarray | None, done: int) -> Solution[np.ndarray]:
        return cg(
            A,
            B,
            alpha,
            preconditioner=inverse,
            tol=o.tol,
            max_iter=None if most_iterations is None else max(most_iterations - done, 0),
            x0=x0,
            callback=o.callback,
        )

    if single is None:
        if problem.gram is None and problem.n > STORED_ROWS:  # stored, where it fits
            op = weighted(problem.operator(stored=True), scale)
        return run(op, None, 0)
    found = run(Paired(single, op), None, 0)
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


def single_precision(
    problem: RidgeProblem, op: GramOperator, scale: np.ndarray, store: bool
) -> GramOperator | None:
    """K in float32, or None where it does not pay or where rounding the rows would change its entries."""
    if problem.kernel is None or problem.rows is None or problem.n < SINGLE_ROWS or op.dtype != np.float64:
        return None
    n_jobs = problem.options.n_jobs
    try:
        tiles = Tiles(problem.kernel, problem.rows, dtype=np.float32, n_jobs=n_jobs)
    except MercerError:
        return None
    if tiles.low is None:
        return None
    sample = np.linspace(0, problem.n - 1, SAMPLE).astype(np.intp)
    each = scale[sample]
    apart = each[:, None] * tiles.block(sample, sample).astype(np.float64) * each - op.block(sample, sample)
    np.fill_diagonal(apart, 0.0)
    if not np.abs(apart).max() <= SINGLE_ERROR * float(np.abs(op.diag()).max()):
        return None
    K: GramOperator = Dense(problem.kernel, problem.rows, dtype=np.float32, n_jobs=n_jobs) if store else tiles
    return weighted(K if problem.noise is None else K.shifted(-problem.noise), scale)
