"""Lloyd's steps on a Gram operator: a product with an n×k matrix for each, or with moved rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mercer import clock
from mercer.gram import GramOperator
from mercer.panels import panels
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.typing import Array, Integers

FEW = 0.25  # share of rows below which only what moved is multiplied anew
AFRESH = 20  # steps by differences after which the sums are computed anew


@dataclass(frozen=True, eq=False)
class Clustering:
    """A clustering: `labels` are nearest to the centres that `members` define (the same, once converged)."""

    labels: Integers
    members: Integers
    masses: Array
    norms: Array
    inertia: float
    objective: list[float]
    steps: int
    status: Status


class Sums:
    """G = K W H for the one-hot H of a clustering, kept up to date as rows move."""

    def __init__(self, K: GramOperator, w: Array, k: int) -> None:
        self.K = K
        self.w = w
        self.k = k
        self.labels: Integers | None = None
        self.patched = 0

    def at(self, labels: Integers) -> Array:
        n = len(labels)
        moved = None if self.labels is None else np.flatnonzero((labels != self.labels) & (self.w > 0))
        if moved is None or len(moved) > FEW * n or self.patched >= AFRESH:
            H = np.zeros((n, self.k), dtype=self.K.dtype)
            H[np.arange(n), labels] = self.w
            self.G = np.asarray(self.K @ H, dtype=np.float64)
            self.patched = 0
        elif len(moved):
            assert self.labels is not None
            step = np.zeros((len(moved), self.k))
            step[np.arange(len(moved)), labels[moved]] = self.w[moved]
            step[np.arange(len(moved)), self.labels[moved]] -= self.w[moved]
            width = max(1, panels(n)[0].stop)
            for i in range(0, len(moved), width):
                part = slice(i, i + width)
                self.G += (step[part].T @ self.K.block(moved[part], slice(None))).T
            self.patched += 1
        self.labels = labels.copy()
        return self.G


def lloyd(
    K: GramOperator,
    w: Array,
    diagonal: Array,
    labels: Integers,
    k: int,
    *,
    max_iter: int,
    tol: float,
    tell: Callable[[int, float, int], None] | None,
) -> Clustering:
    """Steps from a clustering until no row moves.

    A row moves only to a centre nearer by more than rounding.
    """
    sums = Sums(K, w, k)
    total = float(w @ diagonal)
    slack = 16 * np.finfo(float).eps * float(np.abs(diagonal).max())
    rows = np.arange(len(w))
    objective: list[float] = []
    with Anytime[Clustering]() as run:
        for step in range(1, max_iter + 1):
            began = clock.now()
            G = sums.at(labels)
            masses = np.asarray(np.bincount(labels, w, minlength=k), dtype=np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                inner = np.bincount(labels, w * G[rows, labels], minlength=k)
                norms = np.where(masses > 0, inner / masses**2, np.inf)
                D = norms - 2 * G / np.where(masses > 0, masses, 1.0)
            objective.append(total - float(inner[masses > 0] @ (1 / masses[masses > 0])))
            own = D[rows, labels]
            new = np.argmin(D, axis=1)
            new = np.where(D[rows, new] < own - slack, new, labels)
            left = np.maximum(D[rows, new] + diagonal, 0.0)
            inertia = float(w @ left)
            new = filled(new, w, w * left, k, slack)
            moved = int((new != labels).sum())
            if tell is not None:
                tell(step, objective[-1], moved)
            slow = step > 1 and objective[-2] - objective[-1] <= tol * objective[-2] and tol > 0
            status: Status = Status.CONVERGED if moved == 0 or slow else Status.LIMIT
            run.best = Clustering(new, labels, masses, norms, inertia, objective, step, status)
            if moved == 0 or slow or clock.short_of(clock.now() - began):
                break
            labels = new
    assert run.best is not None
    if run.interrupted:
        return replace(run.best, status=Status.INTERRUPTED)
    return run.best


def filled(labels: Integers, w: Array, far: Array, k: int, floor: float) -> Integers:
    """Every cluster without weight gets the row with the largest `far`, from a cluster that can spare it.

    `far` is 0 for rows without weight, so none of them is taken.
    """
    count = np.bincount(labels[w > 0], minlength=k)
    if count.all():
        return labels
    labels = labels.copy()
    candidates = iter(np.argsort(-far, kind="stable"))
    for j in np.flatnonzero(count == 0):
        for i in candidates:
            if far[i] <= floor:
                return labels
            if count[labels[i]] > 1:
                count[labels[i]] -= 1
                count[j], labels[i] = 1, j
                break
    return labels


# ── where to start ──────────────────────────────────────────────────────────────────────────────────────────


def nearest_seed(K: GramOperator, diagonal: Array, seeds: Integers) -> Integers:
    """Each row with the nearest of some rows."""
    return np.asarray(np.argmin(diagonal[seeds] - 2 * np.asarray(K.block(seeds, slice(None))).T, axis=1))


def plus_plus(K: GramOperator, w: Array, diagonal: Array, k: int, rng: np.random.RandomState) -> Integers:
    """Rows drawn with probability w·‖φ(x) - nearest seed‖².

    Of a few candidates each time the one that helps most.
    """
    trials = 2 + int(np.log(k))
    seeds = [int(rng.choice(len(w), p=w / w.sum()))]
    D = _distances(K, diagonal, np.array(seeds))[0]
    while len(seeds) < k:
        chance = np.cumsum(w * D)
        if chance[-1] <= 0:  # fewer distinct rows than clusters
            spare = np.setdiff1d(np.flatnonzero(w > 0), seeds)
            seeds.extend(spare[: k - len(seeds)].tolist())
            break
        drawn = np.searchsorted(chance, rng.random_sample(trials) * chance[-1], side="right")
        drawn = np.minimum(drawn, len(w) - 1)
        after = np.minimum(_distances(K, diagonal, drawn), D)
        best = int(np.argmin(after @ w))
        D = after[best]
        seeds.append(int(drawn[best]))
    return np.array(seeds)


def _distances(K: GramOperator, diagonal: Array, seeds: Integers) -> Array:
    """‖φ(x) - φ(seed)‖², a row for each seed."""
    D = diagonal - 2 * np.asarray(K.block(seeds, slice(None))) + diagonal[seeds][:, None]
    D[np.arange(len(seeds)), seeds] = 0.0
    return np.maximum(D, 0.0)
