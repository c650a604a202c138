"""How many clusters the rows have: the prediction strength of Tibshirani and Walther (2005).

The rows are cut into two random halves, and each half is clustered by itself. Every row of the second half is
also given to the nearest centre of the first. Of the pairs of rows that one cluster of the second half holds,
the share that the centres of the first half keep together is the strength of that cluster. The strength of k
clusters is that of the weakest one, as a mean over several cuts:

    1    the clusters of one half are found again in the other; one cluster always has it
    0    they are an accident of the rows

The number of clusters is the largest k whose strength, with its standard error, reaches 0.8. Unlike a
silhouette or a gap in the spectrum it can answer 1: there are no clusters that another sample would show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.gram import Precomputed
from mercer.machines.structure.lloyd import Clustering, lloyd, nearest_seed, plus_plus
from mercer.solve.solution import Status
from mercer.typing import Array, Integers

# The authors' threshold: clusters below it are seldom found again.
STRONG = 0.8
MOST_CLUSTERS = 8
# Random cuts into halves, and runs of k-means in each half, of which the best is kept.
CUTS = 5
RUNS = 5
MOST_STEPS = 100


@dataclass(frozen=True)
class Strength:
    """How well a number of clusters is found again: the mean over the cuts, and its standard error."""

    clusters: int
    mean: float
    error: float

    @property
    def is_strong(self) -> bool:
        """Whether so many clusters are found again."""
        return self.mean + self.error >= STRONG


def strengths(
    K: Array, most: int = MOST_CLUSTERS, *, seed: int = 0, tell: Callable[[str], None] | None = None
) -> list[Strength]:
    """The prediction strength of 1, 2, … `most` clusters of rows with the Gram matrix K."""
    rng = np.random.RandomState(seed)
    n = len(K)
    cuts = [rng.permutation(n) for _ in range(CUTS)]
    out = [Strength(1, 1.0, 0.0)]
    for k in range(2, most_clusters(n, most) + 1):
        if tell is not None:
            tell(f"clusters of two halves: {k} of at most {most}")
        values = [_of_a_cut(K, order[: n // 2], order[n // 2 :], k, rng) for order in cuts]
        error = float(np.std(values, ddof=1)) / np.sqrt(CUTS)
        out.append(Strength(k, float(np.mean(values)), error))
    return out


def most_clusters(n: int, wanted: int = MOST_CLUSTERS) -> int:
    """At most so many that two halves of n rows have five rows for each."""
    return max(1, min(wanted, n // 10))


def strongest(found: list[Strength]) -> int:
    """The largest number of clusters that are found again."""
    return max(strength.clusters for strength in found if strength.is_strong)


def strength_of(second: Integers, by_first: Integers) -> float:
    """The share of pairs of the weakest cluster that stay together; a cluster of one row has none.

    >>> strength_of(np.array([0, 0, 0, 1, 1]), np.array([2, 2, 0, 1, 1]))    # one pair of three
    0.3333333333333333
    """
    weakest = 1.0
    for label in np.unique(second):
        inside = by_first[second == label]
        pairs = len(inside) * (len(inside) - 1)
        if not pairs:
            return 0.0
        counts = np.bincount(inside)
        weakest = min(weakest, float((counts * (counts - 1)).sum()) / pairs)
    return weakest


def _of_a_cut(K: Array, first: Integers, second: Integers, k: int, rng: np.random.RandomState) -> float:
    one = _clustered(K[np.ix_(first, first)], k, rng)
    other = _clustered(K[np.ix_(second, second)], k, rng)
    centres = np.zeros((len(first), k))
    centres[np.arange(len(first)), one.members] = 1 / np.maximum(one.masses[one.members], 1.0)
    distances = one.norms - 2 * K[np.ix_(second, first)] @ centres
    return strength_of(other.labels, np.argmin(distances, axis=1))


def _clustered(K: Array, k: int, rng: np.random.RandomState) -> Clustering:
    """The best of several runs of kernel k-means."""
    operator = Precomputed(K)
    w = np.ones(len(K))
    diagonal = np.diag(K).copy()
    runs = []
    for _ in range(RUNS):
        start = nearest_seed(operator, diagonal, plus_plus(operator, w, diagonal, k, rng))
        run = lloyd(operator, w, diagonal, start, k, max_iter=MOST_STEPS, tol=0.0, tell=None)
        if run.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        runs.append(run)
    return min(runs, key=lambda run: run.inertia)
