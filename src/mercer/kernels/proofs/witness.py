"""Where a witness is sought, and how it is made small: sets of points, and linear algebra of quadratic forms.

Nothing here decides anything. Eigenvalues in floating point only suggest points and a vector; whether qᵀKq is
really negative there is asked in interval arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from mercer.kernels.proofs.densities import Band
from mercer.typing import Array

# Rows of numbers, or things in a list.
Points: TypeAlias = Array | list[Any]

# qᵀKq relative to |q|ᵀ|K||q| at which a set of points is worth a closer look.
FOUND = -1e-9
# The most points of one wave.
_LONGEST = 200
# The most rows of which each is tried to be left out.
_ONE_BY_ONE = 40


# ── sets of points ──────────────────────────────────────────────────────────────────────────────────────────


def corners(d: int, signed: bool) -> Iterator[Array]:
    """Small sets with a shape: corners of simplex, cube and cross, a line, a fan."""
    basis = np.eye(d)
    zero = np.zeros((1, d))
    yield np.vstack([zero, basis, basis.sum(axis=0, keepdims=True), 2 * basis])
    if d <= 4:
        low = -1 if signed else 0
        yield np.array(list(itertools.product(range(low, 2), repeat=d)), dtype=float)
    if signed:
        yield np.vstack([zero, basis, -basis])
    line: Array = np.arange(1.0, 13.0)[:, None] * np.ones((1, d)) / np.sqrt(d)
    yield line
    fan = np.ones((7, d))
    fan[:, -1] = np.linspace(0.0, 3.0, 7)
    yield fan


def grid(d: int) -> Array:
    """About a hundred points on a regular grid around 0."""
    m = {1: 81, 2: 10, 3: 5, 4: 3}.get(d, 2)
    axis = np.arange(m) - (m - 1) / 2
    if d > 6:
        return np.vstack([np.zeros((1, d)), np.eye(d)[:100], -np.eye(d)[:100]])
    return np.array(list(itertools.product(axis, repeat=d)), dtype=float)


def waves(band: Band, d: int, parts: float) -> Iterator[Array]:
    """Grids of `parts` points per half wave at mid-band, long enough to tell a band from its neighbours."""
    spacing = 2 * np.pi / (parts * (band.low + band.high))
    yield spacing * grid(d)
    if d > 1:
        return
    length = 8 * np.pi / (band.high - band.low)
    n = int(min(length / spacing, _LONGEST))
    if n > len(grid(1)):
        yield spacing * np.arange(float(n))[:, None]


def cloud(rng: np.random.Generator, d: int, n: int) -> Array:
    return 2 * rng.normal(size=(n, d))


# ── linear algebra of witnesses ─────────────────────────────────────────────────────────────────────────────


def lowest_form(K: Array) -> tuple[float, Array]:
    """The vector of the smallest eigenvalue of K scaled to unit diagonal, and its relative form qᵀKq."""
    s = np.diag(K)
    i = int(np.argmin(s))
    if s[i] < 0:
        return -1.0, np.eye(len(K))[i]
    scale = 1 / np.sqrt(np.where(s > 0, s, max(s.max(), 1e-300)))
    _, vectors = np.linalg.eigh(K * scale[:, None] * scale[None, :])
    q = vectors[:, 0] * scale
    return relative_form(K, q), q


def unit_scale(K: Array) -> Array:
    """K over a power of two near its largest entry: no square overflows, and nothing is rounded."""
    largest = float(np.abs(K).max(initial=0.0))
    if largest == 0:
        return K
    return np.ldexp(K, -int(np.frexp(largest)[1]))


def few_rows(K: Array) -> list[int] | None:
    """One, two or three rows of K that already fail, if there are any."""
    s = np.diag(K)
    if s.min() < 0:
        return [int(np.argmin(s))]
    size = np.sqrt(np.outer(s, s))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(size > 0, K / np.where(size > 0, size, 1.0), np.where(K == 0, 0.0, np.inf))
    np.fill_diagonal(cosine, 0.0)
    if np.abs(cosine).max() > 1 + 1e-7:
        i, j = np.unravel_index(int(np.argmax(np.minimum(np.abs(cosine), 1e6))), cosine.shape)
        return sorted((int(i), int(j)))
    n = min(len(K), 24)
    triples = np.array(list(itertools.combinations(range(n), 3)), dtype=int).reshape(-1, 3)
    if len(triples) == 0:
        return None
    blocks = cosine[triples[:, :, None], triples[:, None, :]]
    blocks[:, range(3), range(3)] = 1.0
    lows = np.linalg.eigvalsh(blocks)[:, 0]
    best = int(np.argmin(lows))
    if lows[best] < -1e-6 and s[triples[best]].min() > 0:
        return [int(i) for i in triples[best]]
    return None


def shrink(K: Array, q: Array) -> list[int]:
    """As few rows of K as can still fail: drop the lightest in bulk, then one at a time."""
    keep = np.arange(len(K))
    for share in (0.7, 0.9):
        while len(keep) > 12:
            weight = np.abs(q) * np.sqrt(np.abs(np.diag(K)[keep]))
            fewer = np.sort(keep[np.argsort(-weight)[: max(12, int(share * len(keep)))]])
            lowest, other = lowest_form(K[np.ix_(fewer, fewer)])
            if lowest > FOUND:
                break
            keep = fewer
            q = other
    while 1 < len(keep) <= _ONE_BY_ONE:
        options = [np.delete(keep, i) for i in range(len(keep))]
        depths = [lowest_form(K[np.ix_(o, o)])[0] for o in options]
        best = int(np.argmin(depths))
        if depths[best] > FOUND:
            break
        keep = options[best]
    return keep.tolist()


def round_vector(K: Array, q: Array) -> Array:
    """q with its largest entry 1 and as few digits as still make qᵀKq clearly negative."""
    q = q / q[int(np.argmax(np.abs(q)))]
    target = relative_form(K, q)
    for digits in range(7):
        rounded = np.round(q, digits) + 0.0
        if relative_form(K, rounded) < 0.3 * target:
            return rounded
    return q


def take(X: Points, index: list[int]) -> Points:
    """Some of the points."""
    if isinstance(X, np.ndarray):
        return X[index]
    return [X[i] for i in index]


def relative_form(K: Array, q: Array) -> float:
    """qᵀKq / |q|ᵀ|K||q|: the quadratic form on a scale where rounding is about 1e-16."""
    size = float(np.abs(q) @ np.abs(K) @ np.abs(q))
    if size > 0:
        return float(q @ K @ q) / size
    return 0.0
