"""Coordinate ascent in explicit features, and working sets where that takes too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mercer import clock
from mercer.solve.active import finished_sets
from mercer.solve.box import BoxPoint, BoxProblem
from mercer.solve.operator import Operator
from mercer.solve.plan import numbers_allowed
from mercer.solve.qp import Progress, WorkingSetOptions, ascents
from mercer.solve.solution import NoteKind, Solution
from mercer.sparse import Matrix
from mercer.typing import Array


def finished_ascents(
    K: Operator,
    problems: Sequence[BoxProblem],
    starts: Sequence[Array],
    *,
    features: Matrix,
    asked: bool = False,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    max_seconds: float | None = None,
    cache_bytes: int = 2**28,
    stored_bytes: int = 0,
    n_jobs: int | None = None,
    callback: Progress | None = None,
) -> list[Solution[BoxPoint]]:
    """`ascents` on K = ΦΦᵀ; unless asked for, what takes far longer than was promised goes on in pairs.

    The limits hold for both together.
    """
    end = clock.until(max_seconds)
    allowed = -1 if asked else numbers_allowed(stored(features))
    common: WorkingSetOptions = {
        "tol": tol,
        "gap_tol": gap_tol,
        "cache_bytes": cache_bytes,
        "stored_bytes": stored_bytes,
        "n_jobs": n_jobs,
        "callback": callback,
    }
    found = ascents(
        features,
        problems,
        starts,
        tol=tol,
        gap_tol=gap_tol,
        max_iter=max_iter,
        max_seconds=_left(end),
        max_numbers=allowed,
        n_jobs=n_jobs,
        callback=callback,
    )
    for k, each in enumerate(found):
        if not each.certificate.says(NoteKind.WORK):
            continue
        steps = each.certificate.iterations or 0
        (more,) = finished_sets(
            K,
            [problems[k]],
            [each.value.alpha],
            max_iter=-1 if max_iter < 0 else max(max_iter - steps, 0),
            max_seconds=_left(end),
            **common,
        )
        told = replace(
            more.certificate,
            method=f"{each.certificate.method}, then {more.certificate.method}",
            iterations=steps + (more.certificate.iterations or 0),
            seconds=(each.certificate.seconds or 0.0) + (more.certificate.seconds or 0.0),
        )
        found[k] = Solution(more.value, told)
    return found


def stored(features: Matrix) -> int:
    """How many numbers the features store."""
    return int(getattr(features, "nnz", features.size))


def _left(end: float) -> float | None:
    """What is left of the seconds; None for no limit."""
    return None if end == float("inf") else max(end - clock.now(), 0.0)
