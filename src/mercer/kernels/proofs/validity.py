"""Judging a kernel: first the rules, then an honest search for points at which it fails.

The search looks at many small and large sets of points: corners, lines, fans, grids and clouds in one to five
dimensions, at the kernel's own scales; then it moves points to make the smallest eigenvalue smaller. A set
that fails is cut down to as few points as it can, and the points and the vector are rounded to numbers one
can check by hand. What is found counts only if qᵀKq < 0 holds in interval arithmetic. Finding nothing proves
nothing, and the answer is then `Undecided`.

The search is limited by its work, not by the clock, so it gives the same answer everywhere, and the answer is
kept. `seconds` is a safety net: an answer that it cut short says so, and is not kept.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.kernels import doors
from mercer.kernels.base import Kernel
from mercer.kernels.proofs.answers import Proved, ProvedAsDeclared, Refuted, Undecided, Validity
from mercer.kernels.proofs.enclosure import difference, quadratic_form
from mercer.kernels.proofs.intervals import NotEnclosed
from mercer.kernels.proofs.witness import (
    FOUND,
    Points,
    cloud,
    corners,
    few_rows,
    grid,
    lowest_form,
    round_vector,
    shrink,
    take,
    unit_scale,
    waves,
)
from mercer.kernels.rules.views import named_columns
from mercer.typing import Array, Table

# How many values of the kernel one search may ask for; a function called pair by pair in Python is a thousand
# times slower.
_WORK = 3_000_000
_WORK_PAIR_BY_PAIR = 150_000
# Values that one in interval arithmetic is worth.
_ENCLOSURE = 300

# Answers of searches that came to their end, the latest used last.
_MOST_KEPT = 256
_kept: OrderedDict[tuple[Kernel, int | None, int], Validity] = OrderedDict()
_lock = threading.Lock()


def judge(
    kernel: Kernel, samples: Table | None = None, *, columns: int | None, seconds: float, random_state: int
) -> Validity:
    """`Proved`, `ProvedAsDeclared`, `Refuted` or `Undecided`; see `Kernel.validity`."""
    proof = kernel.proof()
    if proof is not None:
        if proof.declared():
            return ProvedAsDeclared(kernel, proof)
        return Proved(kernel, proof)
    kernel = kernel.closed(1.0)
    key = (kernel, columns, random_state)
    if samples is None:
        with _lock:
            if key in _kept:
                _kept.move_to_end(key)
                return _kept[key]
    search = _Search(kernel, time.monotonic() + seconds, np.random.default_rng(random_state))
    found = search.everywhere(columns) if samples is None else search.among(samples)
    answer = search.undecided() if found is None else found
    if samples is None and not search.cut:
        if isinstance(answer, Refuted) and isinstance(answer.X, np.ndarray):
            answer.X.setflags(write=False)
        with _lock:
            _kept[key] = answer
            if len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return answer


def _work(kernel: Kernel) -> int:
    slow = any(k.is_slow for k in kernel.walk())
    if slow:
        return _WORK_PAIR_BY_PAIR
    return _WORK


@dataclass
class _Search:
    kernel: Kernel
    deadline: float
    rng: np.random.Generator
    names: tuple[str, ...] | None = None
    tried: list[str] = field(default_factory=list)
    lowest: float = np.inf
    missing: str = ""
    failures: dict[str, int] = field(default_factory=dict)
    evaluated: int = 0
    work: int = 0
    # by the clock
    cut: bool = False

    def __post_init__(self) -> None:
        self.names = named_columns(self.kernel) or None
        self.work = _work(self.kernel)

    # ── where to look ──

    def among(self, samples: Table) -> Refuted | None:
        """Search in the things the user gave: all of them, or many random subsets when they are many."""
        if isinstance(samples, np.ndarray):
            things: Points = samples
        else:
            things = list(samples)  # type: ignore[arg-type]
        n = len(things)
        chunk = min(n, 150)
        for trial in range(1 if n == chunk else 20):
            index = np.arange(n) if n == chunk else self.rng.choice(n, chunk, replace=False)
            subset = things[index] if isinstance(things, np.ndarray) else [things[i] for i in index]
            found = self.look(subset)
            if found is not None:
                return found
            self.note(f"{trial + 1} set(s) of {chunk} of the {n} samples given")
            if self.spent():
                break
        return None

    def everywhere(self, columns: int | None) -> Refuted | None:
        exact, least = self.kernel.columns_needed()
        least = max(least, len(self.names or ()))
        if columns is not None:
            dimensions = [columns]
        else:
            dimensions = [exact] if exact is not None else sorted({max(least, d) for d in (1, 2, 3, 5)})
        found = self.directions() or self.frequencies(dimensions)
        if found is not None:
            return found
        for d in dimensions:
            before = self.evaluated
            for X in self.sets(d):
                found = self.look(X)
                if found is not None:
                    return found
                if self.spent():
                    break
            self.note(
                f"{self.evaluated - before} sets of points in {d} dimension(s): grids, corners, fans, clouds"
            )
            if self.spent():
                return None
        if self.missing and 1 in dimensions:
            found = self.among_numbers()
            if found is not None or not self.missing:
                return found
        return self.descend(dimensions)

    def directions(self) -> Refuted | None:
        """A single point at which a form xᵀAz in the expression is negative."""
        for k in self.kernel.walk():
            v = k.negative_direction()
            if v is not None:
                X = np.array([v])
                for digits in range(5):
                    rounded = np.round(X / np.abs(X).max(), digits) + 0.0
                    found = self.certified(rounded, np.ones(1))
                    if found is not None:
                        return found
                found = self.certified(X, np.ones(1))
                if found is not None:
                    return found
        return None

    def frequencies(self, dimensions: list[int]) -> Refuted | None:
        """Grids that tell frequencies at which a declared density is negative from their neighbours."""
        for k in self.kernel.walk():
            band = k.negative_band()
            if band is None:
                continue
            for d, parts in itertools.product(dimensions, (2, 1.3, 4, 8)):
                for X in waves(band, d, parts):
                    found = self.look(X)
                    if found is not None or self.spent():
                        return found
        return None

    def among_numbers(self) -> Refuted | None:
        """A user's function may take plain numbers rather than vectors of one."""
        self.missing = ""
        before = self.evaluated
        found = None
        for X in self.sets(1):
            found = self.look(X[:, 0].tolist())
            if found is not None or self.missing or self.spent():
                break
        self.note(f"{self.evaluated - before} sets of plain numbers")
        return found

    def sets(self, d: int) -> Iterator[Array]:
        """Sets of points in d dimensions, small ones first, at the kernel's own scales."""
        signed = not self.kernel.needs_nonnegative()
        scales = self.scales()
        for scale in scales:
            for base in corners(d, signed):
                yield scale * base
        for scale in scales:
            for base in (grid(d), cloud(self.rng, d, 100)):
                yield scale * (base if signed else np.abs(base))
            yield scale * np.abs(cloud(self.rng, d, 60))
            yield scale * (1 + 0.1 * self.rng.random((30, d)))

    def scales(self) -> list[float]:
        lengths = [
            p.value
            for p in self.kernel.parameters
            if p.name.split("[")[0].endswith(("lengthscale", "period"))
        ]
        wide = [1.0, 0.5, 2.0, 0.1, 5.0, 0.02, 20.0]
        near = [s * v for v in dict.fromkeys(lengths) for s in (1.0, 0.3, 0.1, 3.0)]
        return list(dict.fromkeys(near[:12] + wide))

    def descend(self, dimensions: list[int]) -> Refuted | None:
        """Move a few points so that the smallest eigenvalue falls."""
        starts = 0
        for d, m in itertools.product(dimensions[:3], (2, 3, 4, 6)):
            for _ in range(4):
                if self.spent():
                    break
                starts += 1
                start = self.rng.normal(size=(m, d)) * self.rng.choice(self.scales()[:4])
                if self.kernel.needs_nonnegative():
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

    def gram(self, X: Points) -> Array | None:
        """K at these points, up to a factor; None where k is undefined (counted, by the kind of trouble)."""
        self.evaluated += 1
        self.work -= len(X) ** 2
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
        if np.all(np.isfinite(K)):
            return unit_scale(K)
        return None

    def pad(self, X: Points) -> list[str] | None:
        if self.names is None:
            return None
        return [*self.names, *(f"x{j}" for j in range(len(self.names), np.shape(X)[1]))]

    def depth(self, X: Array) -> float:
        K = self.gram(X)
        if K is None:
            return 1.0
        return lowest_form(K)[0]

    def look(self, X: Points) -> Refuted | None:
        K = self.gram(X)
        if K is None:
            return None
        gap = np.abs(K - K.T)
        if gap.max() > 1e-9 * max(np.abs(K).max(), 1e-300):
            i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
            return self.asymmetric(take(X, [int(i), int(j)]))
        K = 0.5 * (K + K.T)
        few = few_rows(K)
        if few is not None:
            found = self.polish(take(X, few))
            if found is not None:
                return found
        lowest, q = lowest_form(K)
        self.lowest = min(self.lowest, lowest)
        if lowest > FOUND:
            return None
        return self.polish(take(X, shrink(K, q)))

    def asymmetric(self, pair: Points) -> Refuted | None:
        names = self.pad(pair)
        try:
            gap = difference(self.kernel, Rows(pair, names=names))
        except (NotEnclosed, MercerError):
            return None
        if gap.includes_zero():
            return None
        size = abs(gap.middle())
        return Refuted(self.kernel, pair, np.array([1.0, -1.0]), size, True, tuple(self.tried), names)

    def polish(self, X: Points) -> Refuted | None:
        """The same witness in rounder numbers, if they still do; None if rounding alone made it."""
        for candidate in _rounder(X):
            K = self.gram(candidate)
            if K is None:
                continue
            lowest, q = lowest_form(K)
            if lowest < FOUND:
                found = self.certified(candidate, round_vector(K, q)) or self.certified(candidate, q)
                if found is not None:
                    return found
        return None

    def certified(self, X: Points, q: Array) -> Refuted | None:
        """A witness, if qᵀKq < 0 whatever way everything was rounded."""
        names = self.pad(X)
        self.work -= _ENCLOSURE * len(X) ** 2
        try:
            form = quadratic_form(self.kernel, Rows(X, names=names), q)
        except (NotEnclosed, MercerError):
            return None
        if form.high >= 0:
            return None
        remark = self.kernel.wanting() if _is_against(self.kernel) else ""
        return Refuted(self.kernel, X, q, form.middle(), False, tuple(self.tried), names, remark)

    # ── book-keeping ──

    def spent(self) -> bool:
        """Whether the work allowed is done, or the time is up."""
        if not self.cut and time.monotonic() > self.deadline:
            self.cut = True
            self.note("and then time ran out: more seconds= would have looked further")
        return self.cut or self.work <= 0

    def note(self, what: str) -> None:
        self.tried.append(what)

    def undecided(self) -> Undecided:
        if self.failures:
            worst = max(self.failures, key=lambda f: self.failures[f])
            self.note(f"at {sum(self.failures.values())} sets it is not defined, for example: {worst}")
        missing = self.missing or " ".join(_advice(self.kernel))
        return Undecided(self.kernel, tuple(self.tried), float(self.lowest), missing)


def _is_against(kernel: Kernel) -> bool:
    """Whether what was declared of the kernel speaks against it already."""
    return kernel.negative_band() is not None


def _advice(kernel: Kernel) -> Iterator[str]:
    """What a part of the kernel would need to be proved, in its own words."""
    yield from dict.fromkeys(k.wanting() for k in kernel.walk() if k.wanting())


def _rounder(X: Points) -> Iterator[Points]:
    """The points with few digits first, then as they are."""
    if isinstance(X, np.ndarray) or all(isinstance(v, float) for v in X):
        for digits in range(5):
            rounded = np.round(X, digits) + 0.0
            if len(np.unique(rounded, axis=0)) == len(X):
                yield rounded if isinstance(X, np.ndarray) else rounded.tolist()
    yield X


doors.judging.open(judge)
