"""Judging a kernel: first the rules, then an honest search for points at which it fails.

The search looks at many small and large sets of points: corners, lines, fans, grids and clouds in one to five
dimensions, at the kernel's own scales; then it moves points to make the smallest eigenvalue smaller. A set
that fails is cut down to as few points as it can, and the points and the vector are rounded to numbers one can check
by hand. Finding nothing proves nothing, and the answer is then `Undecided`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.kernels.algebra import On
from mercer.kernels.base import Kernel
from mercer.kernels.proof import Proved, Refuted, Undecided, Validity, is_negative, relative_form

_FOUND = -1e-9  # relative qᵀKq at which the search is sure; a hundred times the bound of Refuted.check


def judge(
    kernel: Kernel, samples: Any = None, *, columns: int | None, seconds: float, random_state: int
) -> Validity:
    """`Proved`, `Refuted` or `Undecided`; see `Kernel.validity`."""
    proof = kernel._proof()
    if proof is not None:
        return Proved(kernel, proof)
    search = _Search(
        kernel, time.monotonic() + seconds, np.random.default_rng(random_state), names=_names(kernel)
    )
    found = search.among(samples) if samples is not None else search.everywhere(columns)
    return found if found is not None else search.undecided()


def _names(kernel: Kernel) -> tuple[str, ...] | None:
    """Column names that `on(…)` asks for somewhere in the expression."""
    found: list[str] = []
    stack = [kernel]
    while stack:
        k = stack.pop()
        if isinstance(k, On):
            found += [c for c in k.columns if isinstance(c, str)]
        stack += [child for _, child in k._children()]
    return tuple(dict.fromkeys(found)) or None


@dataclass
class _Search:
    kernel: Kernel
    deadline: float
    rng: np.random.Generator
    names: tuple[str, ...] | None
    tried: list[str] = field(default_factory=list)
    lowest: float = np.inf
    missing: str = ""
    failures: dict[str, int] = field(default_factory=dict)
    evaluated: int = 0

    # ── where to look ──

    def among(self, samples: Any) -> Refuted | None:
        """Search in the things the user gave: all of them, or many random subsets when they are many."""
        things = samples if isinstance(samples, np.ndarray) else list(samples)
        n = len(things)
        chunk = min(n, 150)
        for trial in range(1 if n == chunk else 20):
            index = np.arange(n) if n == chunk else self.rng.choice(n, chunk, replace=False)
            subset = things[index] if isinstance(things, np.ndarray) else [things[i] for i in index]
            found = self.look(subset)
            if found is not None:
                return found
            if self.late():
                break
            self.note(f"{trial + 1} set(s) of {chunk} of the {n} samples given")
        return None

    def everywhere(self, columns: int | None) -> Refuted | None:
        exact, least = self.kernel._columns_needed()
        least = max(least, len(self.names or ()))
        if columns is not None:
            dimensions = [columns]
        else:
            dimensions = [exact] if exact is not None else sorted({max(least, d) for d in (1, 2, 3, 5)})
        for d in dimensions:
            before = self.evaluated
            for X in self.sets(d):
                found = self.look(X)
                if found is not None:
                    return found
                if self.late():
                    self.note(
                        f"{self.evaluated - before} sets of points in {d} dimension(s), until time ran out"
                    )
                    return None
            self.note(
                f"{self.evaluated - before} sets of points in {d} dimension(s): grids, corners, fans, clouds"
            )
        if self.missing and 1 in dimensions:
            found = self.among_numbers()
            if found is not None or not self.missing:
                return found
        return self.descend(dimensions)

    def among_numbers(self) -> Refuted | None:
        """A user's function may take plain numbers rather than vectors of one."""
        self.missing, before = "", self.evaluated
        for X in self.sets(1):
            found = self.look(X[:, 0].tolist())
            if found is not None or self.missing or self.late():
                break
        self.note(f"{self.evaluated - before} sets of plain numbers")
        return found

    def sets(self, d: int) -> Iterator[np.ndarray]:
        """Sets of points in d dimensions, small ones first, at the kernel's own scales."""
        signed = not self.kernel._needs_nonnegative()
        scales = self.scales()
        for scale in scales:
            for base in _corners(d, signed):
                yield scale * base
        for scale in scales:
            for base in (_grid(d), _cloud(self.rng, d, 100)):
                yield scale * (base if signed else np.abs(base))
            yield scale * np.abs(_cloud(self.rng, d, 60))
            yield scale * (1 + 0.1 * self.rng.random((30, d)))

    def scales(self) -> list[float]:
        own = [
            p.value
            for p in self.kernel.parameters
            if p.name.split("[")[0].endswith(("lengthscale", "period"))
        ]
        wide = [1.0, 0.5, 2.0, 0.1, 5.0, 0.02, 20.0]
        near = [s * v for v in dict.fromkeys(own) for s in (1.0, 0.3, 0.1, 3.0)]
        return list(dict.fromkeys(near[:12] + wide))

    def descend(self, dimensions: list[int]) -> Refuted | None:
        """Move a few points so that the smallest eigenvalue falls."""
        starts = 0
        for d, m in itertools.product(dimensions[:3], (2, 3, 4, 6)):
            for _ in range(4):
                if self.late():
                    break
                starts += 1
                start = self.rng.normal(size=(m, d)) * self.rng.choice(self.scales()[:4])
                if self.kernel._needs_nonnegative():
                    start = np.abs(start)
                options = {"maxfev": 150, "xatol": 1e-3, "fatol": 1e-6}
                best = minimize(
                    lambda v, d=d: self.depth(v.reshape(-1, d)),
                    start.ravel(),
                    method="Nelder-Mead",
                    options=options,
                )
                found = self.look(best.x.reshape(-1, d))
                if found is not None:
                    return found
        self.note(f"{starts} descents of the smallest eigenvalue from random points")
        return None

    # ── looking ──

    def gram(self, X: Any) -> np.ndarray | None:
        """K at these points, or None where the kernel is not defined (counted, by the kind of trouble)."""
        self.evaluated += 1
        try:
            with np.errstate(all="ignore"):
                K = np.asarray(self.kernel(Rows(X, names=self.pad(X))), dtype=float)
        except MercerError as error:
            self.failures[str(error)] = self.failures.get(str(error), 0) + 1
            return None
        except Exception as error:  # a user's function may raise anything on points it was not made for
            self.failures[f"{type(error).__name__}: {error}"] = 1
            self.missing = (
                f"The function raises {type(error).__name__} on vectors; pass samples= of what it takes."
            )
            return None
        return K if np.all(np.isfinite(K)) else None

    def pad(self, X: Any) -> list[str] | None:
        if self.names is None:
            return None
        return [*self.names, *(f"x{j}" for j in range(len(self.names), np.shape(X)[1]))]

    def depth(self, X: np.ndarray) -> float:
        K = self.gram(X)
        return 1.0 if K is None else _lowest(K)[0]

    def look(self, X: Any) -> Refuted | None:
        K = self.gram(X)
        if K is None:
            return None
        gap = np.abs(K - K.T)
        if gap.max() > 1e-9 * max(np.abs(K).max(), 1e-300):
            i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
            pair = _take(X, [int(i), int(j)])
            return Refuted(
                self.kernel, pair, np.array([1.0, -1.0]), float(gap.max()), True, tuple(self.tried)
            )
        K = 0.5 * (K + K.T)
        few = _few(K)
        if few is None:
            lowest, q = _lowest(K)
            self.lowest = min(self.lowest, lowest)
            if lowest > _FOUND:
                return None
            few = _shrink(K, q)
        return self.polish(_take(X, few))

    def polish(self, X: Any) -> Refuted:
        """The same witness in rounder numbers, if they still do."""
        if isinstance(X, np.ndarray) or all(isinstance(v, float) for v in X):
            for digits in range(5):
                rounded = np.round(X, digits) + 0.0
                if len(np.unique(rounded, axis=0)) == len(X):
                    rounded = rounded if isinstance(X, np.ndarray) else rounded.tolist()
                    K = self.gram(rounded)
                    if K is not None and _lowest(K)[0] < _FOUND:
                        X = rounded
                        break
        K = self.gram(X)
        assert K is not None
        q = _round_vector(K, _lowest(K)[1])
        return Refuted(self.kernel, X, q, float(q @ K @ q), False, tuple(self.tried), self.pad(X))

    # ── book-keeping ──

    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def note(self, what: str) -> None:
        self.tried.append(what)

    def undecided(self) -> Undecided:
        if self.failures:
            worst = max(self.failures, key=lambda f: self.failures[f])
            self.note(f"at {sum(self.failures.values())} sets it is not defined, for example: {worst}")
        return Undecided(self.kernel, tuple(self.tried), float(self.lowest), self.missing)


# ── sets of points ──────────────────────────────────────────────────────────────────────────────────────────


def _corners(d: int, signed: bool) -> Iterator[np.ndarray]:
    """Small sets with a shape: corners of simplex, cube and cross, a line, a fan."""
    basis, zero = np.eye(d), np.zeros((1, d))
    yield np.vstack([zero, basis, basis.sum(axis=0, keepdims=True), 2 * basis])
    if d <= 4:
        low = -1 if signed else 0
        yield np.array(list(itertools.product(range(low, 2), repeat=d)), dtype=float)
    if signed:
        yield np.vstack([zero, basis, -basis])
    line = np.arange(1.0, 13.0)[:, None] * np.ones((1, d)) / np.sqrt(d)
    yield line
    fan = np.ones((7, d))
    fan[:, -1] = np.linspace(0.0, 3.0, 7)
    yield fan


def _grid(d: int) -> np.ndarray:
    """About a hundred points on a regular grid around 0."""
    m = {1: 81, 2: 10, 3: 5, 4: 3}.get(d, 2)
    axis = np.arange(m) - (m - 1) / 2
    if d > 6:
        return np.vstack([np.zeros((1, d)), np.eye(d)[:100], -np.eye(d)[:100]])
    return np.array(list(itertools.product(axis, repeat=d)), dtype=float)


def _cloud(rng: np.random.Generator, d: int, n: int) -> np.ndarray:
    return 2 * rng.normal(size=(n, d))


# ── linear algebra of witnesses ─────────────────────────────────────────────────────────────────────────────


def _lowest(K: np.ndarray) -> tuple[float, np.ndarray]:
    """The vector of the smallest eigenvalue of K scaled to unit diagonal, and its relative form qᵀKq."""
    s = np.diag(K)
    i = int(np.argmin(s))
    if s[i] < 0:
        return -1.0, np.eye(len(K))[i]
    scale = 1 / np.sqrt(np.where(s > 0, s, max(s.max(), 1e-300)))
    _, vectors = np.linalg.eigh(K * scale[:, None] * scale[None, :])
    q = vectors[:, 0] * scale
    return relative_form(K, q), q


def _few(K: np.ndarray) -> list[int] | None:
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
    return triples[best].tolist() if lows[best] < -1e-6 and s[triples[best]].min() > 0 else None


def _shrink(K: np.ndarray, q: np.ndarray) -> list[int]:
    """As few rows of K as can still fail: drop the lightest in bulk, then one at a time."""
    keep = np.arange(len(K))
    while len(keep) > 12:
        weight = np.abs(q) * np.sqrt(np.abs(np.diag(K)[keep]))
        fewer = np.sort(keep[np.argsort(-weight)[: max(12, int(0.7 * len(keep)))]])
        lowest, other = _lowest(K[np.ix_(fewer, fewer)])
        if lowest > _FOUND:
            break
        keep, q = fewer, other
    while len(keep) > 1:
        options = [np.delete(keep, i) for i in range(len(keep))]
        depths = [_lowest(K[np.ix_(o, o)])[0] for o in options]
        best = int(np.argmin(depths))
        if depths[best] > _FOUND:
            break
        keep = options[best]
    return keep.tolist()


def _round_vector(K: np.ndarray, q: np.ndarray) -> np.ndarray:
    """q with its largest entry 1 and as few digits as still make qᵀKq clearly negative."""
    q = q / q[int(np.argmax(np.abs(q)))]
    target = relative_form(K, q)
    for digits in range(7):
        rounded = np.round(q, digits) + 0.0
        if is_negative(K, rounded) and relative_form(K, rounded) < 0.3 * target:
            return rounded
    return q


def _take(X: Any, index: list[int]) -> Any:
    return X[index] if isinstance(X, np.ndarray) else [X[i] for i in index]
