"""Whether a symmetric matrix of floats is positive semi-definite: decided exactly, never by a tolerance.

A clearly definite matrix has a Cholesky factor even after its diagonal is lowered by more than all rounding
of the factorisation can amount to; that is a proof in floating point. Every other one is eliminated with
whole numbers: floats are whole multiples of a power of two, and Bareiss' elimination divides without a
remainder.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mercer.typing import Array

Entries = tuple[tuple[float, ...], ...]

_LARGEST = 64  # rows of a matrix that is still eliminated exactly


class Form(NamedTuple):
    """`semidefinite` is None where it was not decided; `direction` is a vector v with vᵀAv < 0."""

    semidefinite: bool | None
    reason: str
    direction: tuple[float, ...] | None = None


@lru_cache(maxsize=64)
def judge_form(A: Entries) -> Form:
    """The verdict on a symmetric matrix."""
    M = np.array(A)
    if _surely_definite(M):
        return Form(True, "its Cholesky factorisation leaves a margin above rounding")
    v = np.linalg.eigh(M)[1][:, 0]
    if exact_form(A, v) < 0:
        return Form(False, "vᵀAv < 0", tuple(v.tolist()))
    if len(M) > _LARGEST:
        return Form(None, f"it is too large to be eliminated exactly ({len(M)} rows, at most {_LARGEST})")
    rows = _whole(A)
    pivots, failed = _eliminate(rows)
    if not failed:
        rank = "definite" if len(pivots) == len(A) else f"semi-definite of rank {len(pivots)}"
        return Form(
            True, f"eliminated with whole numbers it has {len(pivots)} positive pivots and no other: {rank}"
        )
    return Form(False, "a pivot of its exact elimination is negative", _direction(A, rows, pivots, failed))


def exact_form(A: Entries, v: Array) -> Fraction:
    """vᵀAv without rounding."""
    x = [Fraction(float(c)) for c in v]
    return sum(
        (Fraction(a) * x[i] * x[j] for i, row in enumerate(A) for j, a in enumerate(row) if a), Fraction(0)
    )


def _surely_definite(M: Array) -> bool:
    """Whether M less a multiple of the identity, beyond all rounding of the factorisation, has a factor.

    Where the floating-point factorisation of B succeeds, B + E is positive definite for an |E| of at most
    (n + 1) ε trace(B), about (Higham, Theorem 10.3). Four times as much is taken away.
    """
    n = len(M)
    trace = float(np.trace(M))
    if not (0 < trace < np.inf) or np.diag(M).min() <= 0:
        return False
    margin = 4 * (n + 2) * np.finfo(float).eps * trace + 1e-300
    try:
        np.linalg.cholesky(M - margin * np.eye(n))
    except np.linalg.LinAlgError:
        return False
    return True


def _whole(A: Entries) -> list[list[int]]:
    """The matrix times a power of two that makes every entry a whole number."""
    fractions = [[Fraction(a) for a in row] for row in A]
    scale = max(f.denominator for row in fractions for f in row)
    return [[int(f * scale) for f in row] for row in fractions]


def _eliminate(rows: list[list[int]]) -> tuple[list[int], tuple[int, ...]]:
    """The pivots that were positive, and the one or two rows that then fail (none if semi-definite)."""
    M = [list(row) for row in rows]
    left = list(range(len(M)))
    pivots: list[int] = []
    previous = 1
    while left:
        negative = [i for i in left if M[i][i] < 0]
        if negative:
            return pivots, (negative[0],)
        p = max(left, key=lambda i: M[i][i])
        if M[p][p] == 0:
            bad = next(((i, j) for i, j in combinations(left, 2) if M[i][j]), ())
            return pivots, bad
        left.remove(p)
        for a, i in enumerate(left):
            for j in left[a:]:
                M[i][j] = (M[p][p] * M[i][j] - M[i][p] * M[p][j]) // previous
                M[j][i] = M[i][j]
        pivots.append(p)
        previous = M[p][p]
    return pivots, ()


def _direction(
    A: Entries, rows: list[list[int]], pivots: list[int], failed: tuple[int, ...]
) -> tuple[float, ...] | None:
    """A vector v with vᵀAv < 0: unit vectors of failing rows, made A-orthogonal to those of the pivots."""
    for sign in (1, -1):
        target = [Fraction(0)] * len(rows)
        target[failed[0]] = Fraction(1)
        if len(failed) == 2:
            target[failed[1]] = Fraction(sign)
        exact = _complete(rows, pivots, target)
        largest = max(abs(c) for c in exact)
        v = np.array([float(c / largest) for c in exact])
        if exact_form(A, v) < 0:
            return tuple(v.tolist())
    return None


def _complete(rows: list[list[int]], pivots: list[int], target: list[Fraction]) -> list[Fraction]:
    """`target` less the combination of pivot unit vectors that makes A v vanish in the rows of the pivots."""
    system: list[list[Fraction]] = []
    for i in pivots:
        known = sum((rows[i][j] * c for j, c in enumerate(target) if c), Fraction(0))
        system.append([*(Fraction(rows[i][j]) for j in pivots), -known])
    m = len(pivots)
    for p in range(m):
        for i in range(m):
            if i != p and system[i][p]:
                factor = system[i][p] / system[p][p]
                system[i] = [a - factor * b for a, b in zip(system[i], system[p], strict=True)]
    out = list(target)
    for p, j in enumerate(pivots):
        out[j] += system[p][m] / system[p][p]
    return out
