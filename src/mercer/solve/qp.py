"""The quadratic programs of large margins, solved by the core.

    min ½ αᵀQα + pᵀα,   0 ≤ αᵢ ≤ Cᵢ,   Qᵢⱼ = sᵢ sⱼ K[rᵢ, rⱼ],   sᵢ = ±1

`equality` adds nothing (0), keeps Σ sᵢαᵢ at its initial value (1: SVC, SVR, one-class), or keeps Σ αᵢ over s
= +1 and over s = -1 (2: the ν forms). With β = Σ sᵢαᵢ e(rᵢ) and fᵢ = (Kβ)[rᵢ], variable i has the gradient
sᵢfᵢ + pᵢ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer import clock
from mercer.errors import ParameterError, ShapeError
from mercer.solve import core
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxPoint, BoxProblem
from mercer.solve.decomposed import decomposed
from mercer.solve.operator import ArrayOperator, FarOperator, Operator
from mercer.solve.solution import Certificate, Note, NoteKind, Solution, Status
from mercer.sparse import Matrix
from mercer.threads import threads, threads_for
from mercer.typing import Array, Flags, Integers

__all__ = ["ascents", "working_set", "working_sets"]

# Bytes of a Gram matrix that is computed once and kept, whatever the kind of operator.
SMALL = 2**25

# What an entry of K costs, in nanoseconds of a core with AVX-512 (elsewhere all of them grow together): to
# compute it for one problem (float32 is faster, but prepared anew for each), and to write it into fresh
# memory and read it from there.
COMPUTED = 1.0
EACH_COLUMN = 1 / 38
KEPT = 6.0
# A product of sparse rows takes as long as so many of dense ones.
SPARSE = 8
# Variables of a working set, as the core has them.
WORKING_SET = 1024

_FLOOR = Note("what is left is rounding: float64 cannot tell a better α", NoteKind.ROUNDING)
_STEPS = Note("the iterations allowed were used up", NoteKind.ITERATIONS)
_SECONDS = Note("the seconds allowed were used up", NoteKind.SECONDS)
_UNBOUNDED = Note(
    "some C is infinite and the objective has no minimum: the data cannot be separated", NoteKind.UNBOUNDED
)
_SLOW = Note("the numbers allowed were read", NoteKind.WORK)
_NOT_FINITE = Note("K holds NaN or infinity", NoteKind.NOT_FINITE)

# What the core calls its endings.
ENDINGS: dict[str, tuple[Status, tuple[Note, ...]]] = {
    "converged": (Status.CONVERGED, ()),
    "floor": (Status.STAGNATED, (_FLOOR,)),
    "max_iter": (Status.LIMIT, (_STEPS,)),
    "max_seconds": (Status.LIMIT, (_SECONDS,)),
    "stopped": (Status.STOPPED, ()),
    "interrupted": (Status.INTERRUPTED, ()),
    "unbounded": (Status.FAILED, (_UNBOUNDED,)),
    "nonfinite": (Status.FAILED, (_NOT_FINITE,)),
    "slow": (Status.LIMIT, (_SLOW,)),
}

# Problems and their solutions as the core takes and gives them.
_Stated: TypeAlias = tuple[Integers, npt.NDArray[np.int8], Array, Array, Array, int]
_Found: TypeAlias = dict[str, Any]

# Told the iterations, the violation and the objective, it ends the run by returning something true.
Progress: TypeAlias = Callable[[int, float, float], object]


class WorkingSetOptions(TypedDict, total=False):
    """The options of `working_sets`, but for its limits."""

    tol: float
    gap_tol: float | None
    cache_bytes: int
    stored_bytes: int
    n_jobs: int | None
    callback: Progress | None


class LimitedOptions(WorkingSetOptions, total=False):
    """All options of `working_sets`."""

    max_iter: int
    max_seconds: float | None


def working_set(
    K: Operator | Array,
    *,
    rows: npt.ArrayLike,
    signs: npt.ArrayLike,
    p: npt.ArrayLike,
    C: npt.ArrayLike,
    alpha: npt.ArrayLike | None = None,
    equality: int = 1,
    **options: Unpack[LimitedOptions],
) -> Solution[BoxPoint]:
    """Solves the program above from `alpha` (a feasible start, zeros if None), which is not changed.

    K is a symmetric array or a Gram operator. If its `program()` is not None and K is not small, the core
    computes the rows it needs, in float32, within `cache_bytes`, and the final f in float64; any other is
    asked for its `dense()`. `callback(iterations, kkt, objective)` is called about five times a second and
    ends the run by returning something true. The options are those of `working_sets`, and so are the
    certificates.

    >>> K = np.array([[2.0, 0.0], [0.0, 2.0]])                       # one point of each class
    >>> found = working_set(K, rows=[0, 1], signs=[1, -1], p=[-1, -1], C=10.0)
    >>> found.value.alpha, found.value.objective, found.certificate.status
    (array([0.5, 0.5]), -0.5, 'converged')
    """
    used = np.ascontiguousarray(rows, dtype=np.intp)
    if used.ndim != 1:
        raise ShapeError(f"rows must have one dimension; got {used.ndim}.")
    sides = _full(signs, used, "signs")
    if not np.all(np.abs(sides) == 1):
        raise ParameterError("signs must be -1 or 1.")
    problem = BoxProblem(
        used,
        sides,
        _full(p, used, "p"),
        _full(C, used, "C"),
        equality,
        _full(0.0 if alpha is None else alpha, used, "alpha"),
    )
    return working_sets(K, [problem], **options)[0]


def working_sets(
    K: Operator | Array,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array] | None = None,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    max_seconds: float | None = None,
    cache_bytes: int = 2**28,
    stored_bytes: int = 0,
    n_jobs: int | None = None,
    callback: Progress | None = None,
) -> list[Solution[BoxPoint]]:
    """Several programs on one K, each from its start; seconds and interrupts count for all of them together.

    Without a callback the threads solve different problems. A K that is not stored is computed as a whole,
    in float32, where `stored_bytes` suffice and the first problem shows that all of them together would
    compute its entries so often that this costs more. In each certificate `kkt` is the largest violation of
    the optimality conditions (LIBSVM's m(α) - M(α)), recomputed in float64 from f at the end, and `worst_row`
    the row of a variable that takes part in it. Converged means kkt ≤ tol, or a relative gap ≤ gap_tol; of
    any other end that nobody asked for, a note says why.
    """
    if len(K.shape) != 2 or K.shape[0] != K.shape[1]:
        raise ShapeError(f"K must be square; got {K.shape}.")
    # asked last, because whether a class follows a protocol takes long to find out
    if not isinstance(K, np.ndarray | ArrayOperator) and isinstance(K, FarOperator) and K.is_far:
        with clock.within(max_seconds):
            return _far_away(K, problems, starts, tol, gap_tol, max_iter, n_jobs, callback)
    options: dict[str, Any] = {
        "tol": tol,
        "gap_tol": gap_tol,
        "max_iter": max_iter,
        "cache_bytes": int(cache_bytes),
        "threads": threads_for(n_jobs, K.shape[0] ** 2 * len(problems)),
    }

    def solve(stated: list[_Stated], callback: Progress | None) -> list[_Found]:
        return _by_entries(K, stated, cache_bytes, stored_bytes, {**options, "callback": callback})

    return _solved(solve, problems, starts, max_seconds, callback, "working sets")


def _far_away(
    K: FarOperator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array] | None,
    tol: float,
    gap_tol: float | None,
    max_iter: int,
    n_jobs: int | None,
    callback: Progress | None,
) -> list[Solution[BoxPoint]]:
    """On a K whose rows come from elsewhere: small problems here, their columns there."""

    def small(entries: Array, problem: BoxProblem, *, tol: float, max_iter: int) -> Solution[BoxPoint]:
        return working_sets(entries, [problem], tol=tol, max_iter=max_iter, n_jobs=n_jobs)[0]

    begun = starts or [q.start for q in problems]
    return decomposed(
        K, problems, begun, small, tol=tol, gap_tol=gap_tol, max_iter=max_iter, callback=callback
    )


def ascents(
    features: Matrix,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array] | None = None,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    max_seconds: float | None = None,
    max_numbers: int = -1,
    n_jobs: int | None = None,
    callback: Progress | None = None,
) -> list[Solution[BoxPoint]]:
    """Several programs on K = ΦΦᵀ for explicit features Φ, dense or CSR, without a single entry of K.

    Coordinate ascent: w = Φᵀβ is kept, and a variable is moved for the price of reading its row. Where that
    takes long, Newton's steps in w and the multipliers go on, with as many equations as Φ has columns. The
    options and certificates are those of `working_sets`; a step is a move of one variable, and every C is
    finite. `max_numbers` limits the numbers of Φ that are read. The threads solve different problems.

    >>> problem = BoxProblem(np.arange(2), np.array([1.0, -1.0]), -np.ones(2), np.full(2, 10.0))
    >>> (found,) = ascents(np.array([[1.0], [-1.0]]), [problem], tol=1e-12)
    >>> found.value.alpha.round(9), found.certificate.status
    (array([0.5, 0.5]), 'converged')
    """

    def solve(stated: list[_Stated], callback: Progress | None) -> list[_Found]:
        return core.ascend(
            _feature_rows(features),
            stated,
            tol=tol,
            gap_tol=gap_tol,
            max_iter=max_iter,
            max_numbers=max_numbers,
            threads=threads(n_jobs),
            max_seconds=clock.left(),
            callback=callback,
        )

    return _solved(solve, problems, starts, max_seconds, callback, "coordinate ascent")


def _solved(
    solve: Callable[..., list[_Found]],
    problems: Sequence[BoxProblem],
    starts: Sequence[Array] | None,
    max_seconds: float | None,
    callback: Progress | None,
    method: str,
) -> list[Solution[BoxPoint]]:
    """What the core finds for all problems, from their starts and within the seconds."""
    if max_seconds is not None and not max_seconds >= 0:
        raise ParameterError(f"max_seconds must be None or a number >= 0; got {max_seconds!r}.")
    if not starts:
        starts = [q.start for q in problems]
    stated = [
        (q.rows, q.sides, q.p, q.C, np.array(start), q.equality)
        for q, start in zip(problems, starts, strict=True)
    ]
    # Ctrl-C inside the callback is written down, for the core hears only that it wants to stop.
    run = Anytime(best=True)
    heard = None if callback is None else _heard(callback, run)
    try:
        with clock.within(max_seconds):
            found = solve(stated, callback=heard)
    except ValueError as error:
        raise ParameterError(str(error)) from None
    if any(each["status"] == "stopped" for each in found):
        # Problems that were not begun share the reason of the one that was stopped.
        reason = "interrupted" if run.interrupted else "stopped"
        for each in found:
            if each["status"] in ("stopped", "interrupted"):
                each["status"] = reason
    return [_solution(q, each, method) for q, each in zip(problems, found, strict=True)]


def newton_rounds(
    K: Array, problem: BoxProblem, alpha: Array, f: Array, free: Flags, *, limit: int, rounds: int
) -> tuple[str, int]:
    """Newton's steps on the `free` variables, by the core; α, f and `free` are written to.

    Returns how it ended and the rounds left: "done", "rounds" (used up), or "hard" (the system there is
    singular, nearly so, or large, and nothing of it was done).
    """
    stated = (problem.rows, problem.sides, problem.p, problem.C, alpha, problem.equality)
    return core.newton_descent(K, stated, f, free, limit, rounds)


def _by_entries(
    K: Operator | Array, stated: list[_Stated], cache_bytes: int, stored_bytes: int, options: dict[str, Any]
) -> list[_Found]:
    """What the core found, on rows that it computes or on K as a whole, whichever will cost less."""
    program = _tiles(K, cache_bytes)
    if program is None:
        return core.solve_qps(_array(K), stated, max_seconds=clock.left(), **options)
    if len(stated) < 2 or K.shape[0] ** 2 * 4 > stored_bytes:
        return core.solve_qps_tiles(*program, stated, max_seconds=clock.left(), **options)
    # The largest problem shows what the others will ask for.
    largest = max(range(len(stated)), key=lambda k: len(stated[k][0]))
    others = stated[:largest] + stated[largest + 1 :]
    first: _Found
    (first,) = core.solve_qps_tiles(*program, [stated[largest]], max_seconds=clock.left(), **options)
    if first["status"] in ("stopped", "interrupted"):
        rest = core.solve_qps_tiles(*program, others, **options | {"max_iter": 0, "callback": None})
        for each in rest:
            each["status"] = first["status"]
    else:
        # In float32, as the solver reads it; what it claims in the end is computed in float64.
        whole = _worth_storing(K.shape[0], _columns(program, K.shape[0]), first, others)
        rest = core.solve_qps_tiles(*program, others, max_seconds=clock.left(), whole=whole, **options)
    return [*rest[:largest], first, *rest[largest:]]


def _worth_storing(n: int, columns: float, first: _Found, others: list[_Stated]) -> bool:
    """Whether K as a whole costs less than the entries that problems like the first compute, and is in time.

    A problem on m rows computes the rows that it moved and a block for each working set, or half of its K;
    and the exact products of its support vectors, of which those with each other are computed once. K counts
    as if it were kept in float64: float32 takes half of that, and the exact products come on top.
    """
    entry = COMPUTED + EACH_COLUMN * columns
    m = len(first["alpha"])
    support = np.count_nonzero(first["alpha"])
    blocks = first["outer_iterations"] * WORKING_SET**2 / 2 or m**2 / 2
    computed = first["kernel_rows_computed"] * m + blocks + support * (m - support / 2)
    by_rows = entry * computed / m**2 * sum(len(q[0]) ** 2 for q in others)
    stored = n**2 * (entry / 2 + KEPT)
    # A prediction may be wrong by several times.
    return bool(stored < by_rows) and not clock.short_of(10 * stored * 1e-9)


def _columns(program: tuple[Any, ...], n: int) -> float:
    """How many numbers of a row an entry of K reads, sparse ones counted as so many dense ones."""
    total = 0.0
    for view, _ in program[1]:
        if isinstance(view, tuple):
            total += SPARSE * len(view[0]) / n
        else:
            total += view.shape[1]
    return total


def _solution(problem: BoxProblem, found: _Found, method: str) -> Solution[BoxPoint]:
    """What the core found for one problem, in the form of every solver."""
    status, notes = ENDINGS[found["status"]]
    gap: float = found["gap"]
    worst: int = found["worst"]
    certificate = Certificate(
        status,
        method,
        iterations=found["iterations"],
        seconds=found["seconds"],
        gap=None if isnan(gap) else gap,
        kkt=found["kkt"],
        worst_row=int(problem.rows[worst]) if 0 <= worst < len(problem.rows) else None,
        notes=notes,
    )
    point = BoxPoint(found["alpha"], found["f"], found["objective"], found["kernel_rows_computed"])
    return Solution(point, certificate)


def _heard(callback: Progress, run: Anytime[bool]) -> Progress:
    """The callback, which asks to stop where Ctrl-C came while it ran."""

    def heard(iterations: int, kkt: float, objective: float) -> object:
        with run:
            return callback(iterations, kkt, objective)
        return True

    return heard


def tiled(K: Operator | Array, cache_bytes: int) -> bool:
    """Whether the core computes rows as it needs them: K is not stored, has a program, and is not tiny."""
    return _tiles(K, cache_bytes) is not None


def _tiles(K: Operator | Array, cache_bytes: int) -> tuple[Any, ...] | None:
    """The program by which the core computes rows as it needs them, or None where it is given all of them."""
    large = K.shape[0] ** 2 * 8 > min(SMALL, cache_bytes)
    if not large or isinstance(K, np.ndarray):
        return None
    return K.program()


def _array(K: Operator | Array) -> Array:
    array = K if isinstance(K, np.ndarray) else K.dense()
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array, dtype=np.float64)


def _feature_rows(features: Matrix) -> Array | tuple[Array, Integers, Integers, int]:
    """Features as the core takes them; sparse rows with every column once, in order."""
    if not sparse.issparse(features):
        return _array(features)
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    end = features.indptr[-1]
    numbers = _array(features.data[:end])
    return numbers, np.ascontiguousarray(features.indices[:end]), features.indptr, features.shape[1]


def _full(value: npt.ArrayLike, rows: Integers, name: str) -> Array:
    given = np.asarray(value)
    if given.shape not in ((), rows.shape):
        raise ShapeError(
            f"{name} must be a number or one per variable ({len(rows)}); got shape {given.shape}."
        )
    return np.ascontiguousarray(np.broadcast_to(given, rows.shape), dtype=np.float64)
