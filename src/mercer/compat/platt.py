"""Probabilities as LIBSVM has them.

two classes     p = 1 / (1 + e^(a f + b)),  a and b of greatest likelihood on held-out f (Platt, with the
                targets (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2))
more            p minimises Σ_i Σ_{j≠i} (r_ji p_i - r_ij p_j)² over Σ p = 1, where r_ij is that of pair i, j
                (Wu, Lin and Weng): one linear system for each row
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from mercer.typing import Array

# LIBSVM keeps the probabilities of pairs away from 0 and 1.
SMALLEST = 1e-7


def sigmoid_of(decisions: Array, positive: Array) -> tuple[float, float]:
    """a and b of p = 1/(1 + e^(a f + b)), fitted to held-out decision values."""
    above = int(positive.sum())
    below = len(positive) - above
    target = np.where(positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))

    def loss(ab: Array) -> tuple[float, Array]:
        z = ab[0] * decisions + ab[1]
        # -[t log p + (1 - t) log(1 - p)] with p = 1/(1 + e^z)
        value = float(np.sum(np.logaddexp(0, z) - (1 - target) * z))
        slope = expit(z) - (1 - target)
        return value, np.array([slope @ decisions, slope.sum()])

    start = np.array([0.0, np.log((below + 1.0) / (above + 1.0))])
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8})
    return float(found.x[0]), float(found.x[1])


def coupled(decisions: Array, prob_a: Array, prob_b: Array, classes: int) -> Array:
    """The probabilities of all classes, from the decision values of all pairs."""
    pairs = np.clip(expit(-(decisions * prob_a + prob_b)), SMALLEST, 1 - SMALLEST)
    n = len(decisions)
    if classes == 2:
        return np.column_stack([pairs[:, 0], 1 - pairs[:, 0]])
    r = np.zeros((n, classes, classes))
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        r[:, i, j] = pairs[:, p]
        r[:, j, i] = 1 - pairs[:, p]
    # Q_ii = Σ_{j≠i} r_ji², Q_ij = -r_ji r_ij, with a row and a column for Σ p = 1
    system = np.zeros((n, classes + 1, classes + 1))
    system[:, :classes, :classes] = -r.transpose(0, 2, 1) * r
    diagonal = np.arange(classes)
    system[:, diagonal, diagonal] = np.sum(r**2, axis=1)
    system[:, :classes, classes] = 1.0
    system[:, classes, :classes] = 1.0
    right = np.zeros((n, classes + 1, 1))
    right[:, classes] = 1.0
    return np.asarray(np.linalg.solve(system, right)[:, :classes, 0])


def laplace_scale(residuals: Array) -> float:
    """σ of the double exponential noise that LIBSVM states for regression: the mean of |residuals|,
    without those beyond five deviations.
    """
    size = np.abs(residuals)
    limit = 5 * np.sqrt(2 * size.mean() ** 2)
    return float(size[size <= limit].mean())
