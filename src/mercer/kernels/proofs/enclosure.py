"""Gram matrices in interval arithmetic: every entry with certain bounds, for the few points of a witness.

`Kernel.enclosed` says how a kernel is bounded: families by their recorded formulas, the others by a method
beside their values. A sample is known twice: as the rows that functions of a user are given, and as intervals
that hold the exact coordinates. A function that a user wrote returns rounded numbers, and nobody knows how
well; its values are taken to be right to 1e-10 of the largest of them. The same is said of Matérn kernels
whose Bessel function has no closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.proofs.intervals import Interval, NotEnclosed
from mercer.params import Vector
from mercer.sparse import dense
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

Point = list[Interval]
Enclosed = list[list[Interval]]

# How well the values of a user's function are taken to be known, relative to the largest.
MEASURED = 1e-10

ZERO = Interval.exact(0)
ONE = Interval.exact(1)
TWO = Interval.exact(2)


def quadratic_form(kernel: Kernel, rows: Rows, q: Array) -> Interval:
    """qᵀKq with certain bounds; `NotEnclosed` where there are none."""
    try:
        K = kernel.enclosed(Sample.of(rows))
        total = ZERO
        for a, row in zip(q.tolist(), K, strict=True):
            for b, entry in zip(q.tolist(), row, strict=True):
                total = total + Interval.exact(a) * Interval.exact(b) * entry
    except ArithmeticError as error:
        raise NotEnclosed(str(error)) from error
    if not (total.low.is_finite() and total.high.is_finite()):
        raise NotEnclosed("an infinite value")
    return total


def difference(kernel: Kernel, rows: Rows) -> Interval:
    """k(x₁, x₂) - k(x₂, x₁) with certain bounds."""
    try:
        K = kernel.enclosed(Sample.of(rows))
        return K[0][1] - K[1][0]
    except ArithmeticError as error:
        raise NotEnclosed(str(error)) from error


@dataclass(frozen=True)
class Sample:
    """The same points as rows and as intervals; things that are no vectors have no intervals."""

    rows: Rows
    points: list[list[Interval]] | None

    @classmethod
    def of(cls, rows: Rows) -> Sample:
        return cls(rows, _exact(rows))

    def vectors(self) -> list[Point]:
        """The points; `NotEnclosed` where they are other things."""
        if self.points is None:
            raise NotEnclosed("these are no vectors")
        return self.points

    def pairs(self, entry: Callable[[list[Interval], list[Interval]], Interval]) -> Enclosed:
        """A symmetric function of two points at every pair."""
        points = self.vectors()
        n = len(points)
        out = [[ZERO] * n for _ in range(n)]
        for i, x in enumerate(points):
            for j in range(i, n):
                out[i][j] = entry(x, points[j])
                out[j][i] = out[i][j]
        return out


def _exact(rows: Rows) -> list[list[Interval]] | None:
    try:
        X = dense(rows.vectors)
    except Exception:  # strings, graphs, plain numbers: only a function that takes them can see them
        return None
    return [[Interval.exact(float(v)) for v in x] for x in X]


def measured(k: Kernel, sample: Sample) -> Enclosed:
    """The values that a function of a user returns, with the error they are taken to have."""
    K = np.asarray(k.block(sample.rows, None), dtype=float)
    if not np.all(np.isfinite(K)):
        raise NotEnclosed("an infinite value")
    error = MEASURED * float(np.abs(K).max(initial=0.0))
    return [[Interval.around(float(v), error) for v in row] for row in K]


# ── primitives ──────────────────────────────────────────────────────────────────────────────────────────────


def dot(x: list[Interval], z: list[Interval]) -> Interval:
    total = ZERO
    for a, b in zip(x, z, strict=True):
        total = total + a * b
    return total


def norm(x: list[Interval]) -> Interval:
    total = ZERO
    for a in x:
        total = total + a.square()
    return total.sqrt()


def exact_numbers(value: Vector, d: int) -> list[Interval]:
    """A parameter as one number per column."""
    return [Interval.exact(v) for v in (value if isinstance(value, tuple) else (value,) * d)]


def entries(K: Enclosed, f: Callable[[Interval], Interval]) -> Enclosed:
    return [[f(v) for v in row] for row in K]


def entrywise(parts: list[Enclosed], combine: Callable[[Interval, Interval], Interval]) -> Enclosed:
    """Matrices combined entry by entry."""
    out = parts[0]
    for other in parts[1:]:
        out = [[combine(a, b) for a, b in zip(r, s, strict=True)] for r, s in zip(out, other, strict=True)]
    return out


def cosine_of(x: Point, z: Point) -> Interval | None:
    """The cosine of the angle between two vectors; None if one of them is zero."""
    if all(v.is_zero() for v in x) or all(v.is_zero() for v in z):
        return None
    if x is z:
        return ONE
    return dot(x, z) / (norm(x) * norm(z))
