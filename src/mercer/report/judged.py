"""What an estimate of the error says beyond its measures: bands, probabilities and confusions, as numbers.

coverage       the share of rows inside the bands of each level: equal to the level if bands are right
reliability    the share of rows for which something came true, by the probability that was said
confusion      how many rows of each class were taken for which
roc            the share of rows found against the share of false alarms, for every threshold
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.recipe.estimate import Estimate
from mercer.scales import half_width
from mercer.typing import Array, Flags, Integers, Labels

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
BINS = 10


def standardised(estimate: Estimate) -> Array:
    """The errors of numbers in standard deviations of their bands, on the scale of the target."""
    return estimate.numbers.standardised(np.asarray(estimate.truth, dtype=np.float64))


def coverage(estimate: Estimate, level: float) -> float:
    """The share of rows whose true value is inside the band of this level."""
    return float(np.mean(np.abs(standardised(estimate)) <= half_width(level)))


def inside(estimate: Estimate, level: float) -> Flags:
    """Which rows have their true value inside the band of this level."""
    return np.asarray(np.abs(standardised(estimate)) <= half_width(level))


def confusion(truth: Labels, predicted: Labels, classes: Labels) -> Integers:
    """How many rows of each class (rows) were taken for which (columns).

    >>> confusion(np.array(["a", "a", "b"]), np.array(["a", "b", "b"]), np.array(["a", "b"]))
    array([[1, 1],
           [0, 1]])
    """
    table = np.zeros((len(classes), len(classes)), dtype=np.intp)
    places = {label: i for i, label in enumerate(classes.tolist())}
    for true, said in zip(truth.tolist(), predicted.tolist(), strict=True):
        table[places[true], places[said]] += 1
    return table


@dataclass(frozen=True)
class Bin:
    """Rows whose probability was said to be between `low` and `high`: their mean, and what came true."""

    low: float
    high: float
    rows: int
    said: float
    came_true: float

    @property
    def uncertainty(self) -> float:
        """The standard error of the share that came true."""
        return float(np.sqrt(self.came_true * (1.0 - self.came_true) / self.rows))


def reliability(probability: Array, came_true: Flags, bins: int = BINS) -> list[Bin]:
    """Bins of equal width from 0 to 1; those without rows are left out.

    >>> found = reliability(np.array([0.1, 0.1, 0.9]), np.array([False, True, True]), 2)
    >>> [(each.rows, round(each.said, 1), each.came_true) for each in found]
    [(2, 0.1, 0.5), (1, 0.9, 1.0)]
    """
    number = np.minimum((probability * bins).astype(np.intp), bins - 1)
    found = []
    for b in range(bins):
        mine = number == b
        if mine.any():
            said = float(probability[mine].mean())
            found.append(Bin(b / bins, (b + 1) / bins, int(mine.sum()), said, float(came_true[mine].mean())))
    return found


def calibration_error(bins: list[Bin]) -> float:
    """The mean distance between what was said and what came true, weighted by rows."""
    rows = sum(each.rows for each in bins)
    return sum(each.rows * abs(each.said - each.came_true) for each in bins) / rows


def asked(estimate: Estimate, classes: Labels) -> tuple[Array, Flags, str]:
    """The probabilities whose reliability is judged, what came true, and in words what was asked.

    Of two classes it is the probability of the second, of more that of the class that was predicted.
    """
    if len(classes) == 2:
        return estimate.spread[:, 1], estimate.truth == classes[1], f"probability of “{classes[1]}”"
    said = estimate.spread.max(axis=1)
    return said, estimate.truth == estimate.predicted, "probability of the class predicted"


def roc(probability: Array, positive: Flags) -> tuple[Array, Array]:
    """False alarms and rows found, as shares, for every threshold from the highest down."""
    order = np.argsort(-probability, kind="stable")
    sorted_probability = probability[order]
    found = np.cumsum(positive[order])
    alarms = np.cumsum(~positive[order])
    # one point for each different probability
    last = np.append(np.flatnonzero(np.diff(sorted_probability)), len(order) - 1)
    across = np.concatenate([[0.0], alarms[last] / max(int((~positive).sum()), 1)])
    up = np.concatenate([[0.0], found[last] / max(int(positive.sum()), 1)])
    return across, up
