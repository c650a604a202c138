"""Full conformal prediction where scores are lines: the targets that are not too strange, exactly.

With the candidate y = centre + t as one more row, row i has the score |a_i + b_i t| and the new row
|p + q t|. A candidate is kept if at least `need` of the others are as strange as the new row:

    #{i : |a_i + b_i t| ≥ |p + q t|} ≥ need,        need = n + 1 - ⌈(n + 1)·level⌉

Each of these sets of t is an interval, a half-line, or all but an interval, with ends where the lines cross.
So the answer is found by sorting 2n ends (the ridge regression confidence machine of Nouretdinov, Melluish
and Vovk, 2001). It may be several intervals; none is left out, and all are closed.
"""

from __future__ import annotations

import numpy as np

from mercer.quantiles import rank
from mercer.solve.left_out import Lines
from mercer.typing import Array, Flags

WHOLE_LINE = np.array([[-np.inf, np.inf]])


def union(lines: Lines | None, level: float, among: Flags | None = None) -> Array:
    """The intervals of targets that are kept, one row (low, high) each, in order; `among` is the group.

    >>> one = Lines(np.array([1.0, 2.0, 3.0]), np.zeros(3), 0.0, 1.0, 10.0)
    >>> union(one, 0.5)                      # at least 2 of |t| ≤ 1, |t| ≤ 2, |t| ≤ 3
    array([[ 8., 12.]])
    """
    if lines is None:
        return WHOLE_LINE.copy()
    a, b = (lines.a, lines.b) if among is None else (lines.a[among], lines.b[among])
    n = len(a)
    need = n + 1 - rank(n, level)
    if need <= 0 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return WHOLE_LINE.copy()
    starts, ends = _ends(a, b, lines.p, lines.q)
    found = _where_at_least(need, starts, ends)
    return found + lines.centre


def _ends(a: Array, b: Array, p: float, q: float) -> tuple[Array, Array]:
    """Where each set {t : |a + bt| ≥ |p + qt|} begins and ends, from -∞ to ∞.

    The difference of the squares is (a - p + (b - q)t)·(a + p + (b + q)t).
    """
    c1, m1, c2, m2 = a - p, b - q, a + p, b + q
    with np.errstate(divide="ignore", invalid="ignore"):
        r1, r2 = -c1 / m1, -c2 / m2
    two = (m1 != 0) & (m2 != 0)
    low, high = np.minimum(r1, r2), np.maximum(r1, r2)
    inside = two & (m1 * m2 < 0)
    outside = two & (m1 * m2 > 0)
    starts = [low[inside], np.full(outside.sum(), -np.inf), high[outside]]
    ends = [high[inside], low[outside], np.full(outside.sum(), np.inf)]
    for i in np.flatnonzero(~two):
        begin, end = _half(c1[i], m1[i], c2[i], m2[i])
        starts.append(begin)
        ends.append(end)
    return np.concatenate(starts), np.concatenate(ends)


def _half(c1: float, m1: float, c2: float, m2: float) -> tuple[Array, Array]:
    """The same for a product with a constant factor: everything, nothing, or a half-line."""
    if m1 == 0 and m2 == 0:
        constant, line, slope = c1 * c2, 1.0, 0.0
    else:
        constant, line, slope = (c1, c2, m2) if m1 == 0 else (c2, c1, m1)
    if constant == 0 or slope == 0:
        kept = constant == 0 or constant * line > 0
        every = np.array([np.inf])
        return (-every, every) if kept else (every[:0], every[:0])
    root = -line / slope
    if constant * slope > 0:
        return np.array([root]), np.array([np.inf])
    return np.array([-np.inf]), np.array([root])


def _where_at_least(need: int, starts: Array, ends: Array) -> Array:
    """The closed intervals that lie in at least `need` of the sets."""
    places = np.concatenate([starts, ends])
    steps = np.concatenate([np.ones(len(starts), dtype=np.intp), -np.ones(len(ends), dtype=np.intp)])
    # a set that begins where another ends touches it
    order = np.lexsort((-steps, places))
    count = np.cumsum(steps[order])
    before = np.concatenate([[0], count[:-1]])
    low = places[order][(before < need) & (count >= need)]
    high = places[order][(before >= need) & (count < need)]
    return np.column_stack([low, high])
