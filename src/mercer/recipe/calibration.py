"""Probabilities that are neither too careful nor too sure, by one number found on rows not seen.

    p_c  →  p_c^s / Σ p_k^s

The sharpness s is 1 for probabilities that are what they say. Laplace's approximation is too careful where
classes are told apart well: its evidence asks for a large scale of the latent functions, under which the
average over all of them is pulled towards the middle. There s is above 1; where a model is too sure it is
below. The order of the classes, and so what is predicted, stays as it is.

s has the least log loss on the rows that the estimate judged, none of which the judging fit has seen. Truth
counts as (n + 1) / (n + 2), as Platt has it, since n rows that were all predicted right do not prove that
every row will be.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.recipe.estimate import Estimate, of_classes
from mercer.typing import Array, Labels

# Fewer rows say too little about probabilities.
LEAST = 30
# How much sharper or softer probabilities may become.
REACH = (0.2, 10.0)
# A probability that is 0 has no logarithm.
TINY = 1e-300


def sharpened(probabilities: Array, sharpness: float) -> Array:
    """Probabilities to a power, adding up to 1 again.

    >>> sharpened(np.array([[0.8, 0.2]]), 2.0).round(4)      # 0.64 and 0.04
    array([[0.9412, 0.0588]])
    """
    if sharpness == 1.0:
        return probabilities
    logs = sharpness * np.log(np.maximum(probabilities, TINY))
    logs -= logs.max(axis=1, keepdims=True)
    powers = np.exp(logs)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def sharpness_of(found: Estimate, classes: Labels) -> float:
    """The sharpness with the least log loss on the rows judged; 1 where they are too few."""
    n = len(found.truth)
    if n < LEAST:
        return 1.0
    place = np.searchsorted(classes, found.truth)
    logs = np.log(np.maximum(found.spread, TINY))
    wrong = 1.0 / (n + 2)
    wanted = np.full(logs.shape, wrong / (len(classes) - 1))
    wanted[np.arange(n), place] = 1.0 - wrong

    def loss(log_sharpness: float) -> float:
        powers = np.exp(log_sharpness) * logs
        return float(np.mean(np.logaddexp.reduce(powers, axis=1) - (wanted * powers).sum(axis=1)))

    low, high = np.log(REACH)
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(best.x)) if best.fun < loss(0.0) else 1.0


def calibrated(found: Estimate, classes: Labels) -> tuple[Estimate, float]:
    """The estimate with sharpened probabilities, and their sharpness."""
    sharpness = sharpness_of(found, classes)
    if sharpness == 1.0:
        return found, sharpness
    sharp = sharpened(found.spread, sharpness)
    better = of_classes(found.how, found.rows, found.truth, classes, sharp)
    how = (
        f"{found.how} Probabilities are to the power {sharpness:.3g}, found by these rows: "
        f"without it the log loss was {found.measures['log_loss']:.4g}."
    )
    return replace(found, how=how, measures=better.measures, spread=sharp), sharpness
