"""From decision values to probabilities that agree with the decision, and to label sets of a coverage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from mercer.errors import InputError
from mercer.quantiles import check_level, least_rows, upper
from mercer.typing import Array, Integers, Labels, Seed

FOLDS = 5


@dataclass(frozen=True)
class Calibration:
    """The fitted map from decision values to probabilities.

    Two classes: p = 1/(1 + e^(-a f)) with one a for each side of the boundary, so that p = ½ exactly where
    f = 0. More: p = softmax(a · scores). Either way the likeliest class is the one predicted.
    """

    slopes: tuple[float, ...]

    def __call__(self, scores: Array) -> Array:
        if scores.ndim == 1:
            below, above = self.slopes
            z = np.where(scores < 0, below, above) * scores
            return np.asarray(softmax(np.column_stack([np.zeros(len(z)), z]), axis=1))
        return np.asarray(softmax(self.slopes[0] * scores, axis=1))


def held_out(codes: Integers, classes: Labels, random_state: Seed) -> Iterator[Integers]:
    """The rows of each fold; classes are spread evenly over the folds."""
    fewest = int(np.bincount(codes).min())
    if fewest < 2:
        rare = classes[int(np.argmin(np.bincount(codes)))]
        raise InputError(
            f"probability=True holds out rows of every class, but class {rare!r} has one row only. "
            "Add rows of it, or use probability=False."
        )
    # Here, because it brings all of scikit-learn's metrics, which few fits need.
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=random_state)
    for _, out in folds.split(np.zeros(len(codes)), codes):
        yield out


def calibrate(scores: Array, codes: Integers, w: Array) -> Calibration:
    """The slopes of greatest likelihood on held-out scores; Platt's targets keep them finite."""
    if scores.shape[1] == 1:
        f = scores[:, 0]
        plus = float(w[codes == 1].sum())
        minus = float(w[codes == 0].sum())
        target = np.where(codes == 1, (plus + 1) / (plus + 2), 1 / (minus + 2))

        def loss(log_slopes: Array) -> float:
            z = np.where(f < 0, *np.exp(log_slopes)) * f
            return float(w @ (np.logaddexp(0, z) - target * z)) + 1e-3 * float(log_slopes @ log_slopes)

        found = minimize(loss, np.zeros(2), method="Nelder-Mead")
        return Calibration(tuple(float(v) for v in np.exp(found.x)))
    k = scores.shape[1]
    # A row of weight 2 is two rows.
    rows = float(w.sum())
    share = np.full((len(codes), k), 1.0 / (rows + k))
    share[np.arange(len(codes)), codes] = 1 - (k - 1) / (rows + k)

    def spread(log_slope: Array) -> float:
        logs = log_softmax(np.exp(log_slope[0]) * scores, axis=1)
        return -float(w @ (share * logs).sum(axis=1)) + 1e-3 * float(log_slope @ log_slope)

    found = minimize(spread, np.zeros(1), method="Nelder-Mead")
    return Calibration((float(np.exp(found.x[0])),))


def conformal_threshold(scores: Array, coverage: float) -> float:
    """The ⌈(n + 1)·coverage⌉-th smallest of n held-out scores: exchangeability gives the coverage."""
    level = check_level(coverage, "coverage")
    if len(scores) < least_rows(level):
        raise InputError(
            f"{len(scores)} held-out rows cannot promise a coverage of {coverage:g}: at least "
            f"{least_rows(level)} are needed. Pass more rows to conformalize, or ask for less."
        )
    return float(upper(scores, level))
