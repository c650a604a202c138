"""Members together: an average of their distributions, and bands as wide as the back-test says.

The distribution of a value is the mixture of the members', each with the same weight; its quantiles are found
by bisection. From the back-test comes one factor for all deviations: that which would have put 95 % of the
values that followed the origins inside the 95 % band, and never less than 1.2, since a few quiet years
promise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.series.members import Member, Normals
from mercer.typing import Array, Integers

LEVEL = 0.95
# The band is never narrower than this: the numbers of a kernel are estimates, whose doubt is in no band.
LEAST = 1.2
WIDEST = 10.0
# Members that are averaged at most, how much worse than the best one may be in the back-test, and by how many
# nats for each value in its evidence on all values.
MOST = 5
WORSE = 1.5
LESS_LIKELY = 0.05
# Probabilities at which a forecast is judged.
JUDGED = np.linspace(0.05, 0.95, 19)
HALVINGS = 60


@dataclass(frozen=True)
class Mixture:
    """Distributions of the members at the same times, with equal weights."""

    parts: tuple[Normals, ...]

    def wider(self, factor: float) -> Mixture:
        return Mixture(tuple(part.wider(factor) for part in self.parts))

    def mean(self) -> Array:
        """The mean of y at each time."""
        return np.asarray(np.mean([part.mean_of_y() for part in self.parts], axis=0))

    def cdf(self, y: Array) -> Array:
        return np.asarray(np.mean([part.cdf(y) for part in self.parts], axis=0))

    def quantile(self, p: float) -> Array:
        """The value below which y is with probability p, at each time."""
        each = np.array([part.quantile(p) for part in self.parts])
        low = each.min(axis=0)
        high = each.max(axis=0)
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2
            below = self.cdf(middle) < p
            low = np.where(below, middle, low)
            high = np.where(below, high, middle)
        return np.asarray(low + (high - low) / 2)

    def interval(self, level: float) -> tuple[Array, Array]:
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def score(tests: Sequence[Normals], followed: Sequence[Array]) -> float:
    """The mean continuous ranked probability score, by the pinball loss of nineteen quantiles."""
    losses = []
    for normals, y in zip(tests, followed, strict=True):
        for p in JUDGED.tolist():
            off = y - normals.quantile(p)
            losses.append(2 * np.mean(np.maximum(p * off, (p - 1) * off)))
    return float(np.mean(losses))


def best(members: Sequence[Member]) -> tuple[Member, ...]:
    """The members that are averaged: the few with the least score that are not much worse than the best."""
    ranked = sorted(members, key=lambda member: member.score)[:MOST]
    return tuple(member for member in ranked if member.score <= WORSE * ranked[0].score)


def likely(evidences: Array, values: int) -> Integers:
    """Which members explain all values nearly as well as the best of them.

    A model may have fared well with the numbers that the first values gave it, and find none that suit all of
    them. Where the evidence of one is not known, all are kept.
    """
    if np.isnan(evidences).any():
        return np.arange(len(evidences))
    return np.flatnonzero(evidences >= evidences.max() - LESS_LIKELY * values)


def backtest(members: Sequence[Member]) -> list[Mixture]:
    """The mixtures from each origin."""
    return [Mixture(tests) for tests in zip(*(member.tests for member in members), strict=True)]


def widening(mixtures: Sequence[Mixture], followed: Sequence[Array], level: float = LEVEL) -> float:
    """The factor for all deviations with which the band of this level would have held its share."""

    def share(factor: float) -> float:
        inside = [covered(m.wider(factor), y, level) for m, y in zip(mixtures, followed, strict=True)]
        return float(np.concatenate(inside).mean())

    if share(LEAST) >= level:
        return LEAST
    low, high = LEAST, WIDEST
    if share(high) < level:
        return high
    for _ in range(20):
        middle = 0.5 * (low + high)
        if share(middle) < level:
            low = middle
        else:
            high = middle
    return high


def covered(mixture: Mixture, y: Array, level: float) -> Array:
    """Which values lie in the band of this level."""
    p = mixture.cdf(y)
    return np.asarray((p >= (1 - level) / 2) & (p <= (1 + level) / 2))
