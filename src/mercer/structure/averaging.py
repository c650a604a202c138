"""Several kernels at once: who predicts, with what weight, and by which rule.

    mixture    p = Σ w_k p_k       predicted by its mean and variance
    product    p ∝ ∏ p_k^w_k       of normal laws a normal law: the precisions are added, and so are the means
                                   times the precisions

By both rules log p ≥ Σ w_k log p_k where the weights sum to 1: an average is no worse than its parts in the
mean. But what is told of a mixture is a normal law as wide as its parts lie apart: a kernel that is off
widens it however little is thought of it, which is safe, and dear where one kernel knows y much better than
the others. In a product those count by what they know. Its weights need not sum to 1, so that deviations are
those which the held-out rows show; that is less safe on a row unlike all of them. So a table is predicted by
the mixture unless the held-out rows say clearly, by two standard errors, that the product is better, or the
best kernel alone. The best was chosen since these rows like it, so that they flatter it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from mercer.structure.scoring import Candidate, normal_density
from mercer.typing import Array

# What one more kernel must bring to a mixture, in nats per row.
WORTH = 1e-3
# Standard errors by which another rule must be better than the mixture.
CLEARLY = 2.0
MIXTURE = "mixture"
PRODUCT = "product"


@dataclass(frozen=True)
class Average:
    """Kernels with weights that sum to 1, and the rule; the powers of a product are `sharpness` × weight."""

    team: tuple[tuple[Candidate, float], ...]
    rule: str = MIXTURE
    sharpness: float = 1.0


def averaged(candidates: list[Candidate]) -> Average:
    """The rule and the weights for some candidates, the best first, by the rows held out.

    What a rule brings is measured where the weights were not chosen: those for each split come from the
    others. Rows that follow one another are wrong together and tell no standard error: a series is predicted
    by the mixture where that is better at all, and by the best kernel if not.
    """
    best = candidates[0]
    alone = Average(((best, 1.0),))
    if len(candidates) < 2 or len(best.densities) < 2:
        return alone
    moments = [_moments_held_out(candidates, split) for split in range(len(best.densities))]
    whole = _joined(moments)
    mixture = _held_out_density(moments, MIXTURE)
    average = Average(tuple(zip(candidates, _weights(whole, MIXTURE).tolist(), strict=True)))
    single = np.concatenate(best.densities)
    if best.blocks:
        return average if mixture.mean() > single.mean() else alone
    product = _held_out_density(moments, PRODUCT)
    if _is_clearly_better(single, mixture) and single.mean() > product.mean():
        return alone
    if _is_clearly_better(product, mixture):
        weights = _weights(whole, PRODUCT)
        sharpness = float(weights.sum())
        shares = (weights / sharpness).tolist()
        return Average(tuple(zip(candidates, shares, strict=True)), PRODUCT, sharpness)
    return average


def _is_clearly_better(one: Array, other: Array) -> bool:
    """Whether some densities are larger by more than `CLEARLY` standard errors of the mean difference."""
    gain = one - other
    return bool(gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)))


Moments = tuple[Array, Array, Array]
"""Means and variances of each kernel, kernels × rows, and what was observed."""


def _moments_held_out(candidates: list[Candidate], split: int) -> Moments:
    means = np.array([candidate.forecasts[split][0] for candidate in candidates])
    variances = np.array([candidate.forecasts[split][1] for candidate in candidates])
    return means, variances, candidates[0].forecasts[split][2]


def _joined(parts: list[Moments]) -> Moments:
    means, variances, observed = zip(*parts, strict=True)
    return np.concatenate(means, axis=1), np.concatenate(variances, axis=1), np.concatenate(observed)


def _held_out_density(moments: list[Moments], rule: str) -> Array:
    """The density of each held-out row by a rule, with weights from the other splits."""
    found = []
    for split, (means, variances, y) in enumerate(moments):
        weights = _weights(_joined(moments[:split] + moments[split + 1 :]), rule)
        combine = mixed if rule == MIXTURE else multiplied
        found.append(normal_density(*combine(means, variances, weights), y))
    return np.concatenate(found)


def _weights(moments: Moments, rule: str) -> Array:
    means, variances, y = moments
    if rule == PRODUCT:
        return product_weights(means, variances, y)
    return mixture_weights(normal_density(means, variances, y))


# ── mixtures ────────────────────────────────────────────────────────────────────────────────────────────────


def mixture_weights(densities: Array, rounds: int = 200) -> Array:
    """The weights that make Σ_i log Σ_k w_k p_ki + Σ_k log w_k largest, by expectation-maximisation.

    `densities` are log p_k of each row, kernels × rows. The second sum counts one more row for each kernel,
    as if it had explained that one alone: no kernel is ruled out by few rows, and one that is sure of itself
    and wrong on a new row is caught by the others.
    """
    shifted = np.exp(densities - densities.max(axis=0))
    weights = np.full(len(densities), 1.0 / len(densities))
    for _ in range(rounds):
        joint = weights[:, None] * shifted
        counts = (joint / joint.sum(axis=0)).sum(axis=1) + 1.0
        weights = counts / counts.sum()
    return weights


def mixture_density(densities: Array, weights: Array) -> Array:
    """log Σ w_k p_k of each row."""
    top = densities.max(axis=0)
    return np.asarray(top + np.log(weights @ np.exp(densities - top)))


def mixed(means: Array, variances: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and variance of a mixture, from those of its parts, kernels × rows."""
    mean = weights @ means
    return np.asarray(mean), np.asarray(weights @ (variances + (means - mean) ** 2))


# ── products ────────────────────────────────────────────────────────────────────────────────────────────────


def multiplied(means: Array, variances: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and variance of the normal law ∝ ∏ p_k^w_k, from those of its parts, kernels × rows.

    >>> mean, variance = multiplied(np.array([[0.0], [3.0]]), np.array([[1.0], [0.5]]), np.array([1.0, 1.0]))
    >>> mean.tolist(), variance.round(3).tolist()
    ([2.0], [0.333])
    """
    precisions = weights[:, None] / variances
    variance = 1.0 / precisions.sum(axis=0)
    return np.asarray(variance * (precisions * means).sum(axis=0)), np.asarray(variance)


def product_weights(means: Array, variances: Array, y: Array) -> Array:
    """The weights of K kernels that make Σ_i log p(y_i) + Σ_k (log w_k - K w_k) largest, p their product.

    The second sum alone would make each weight 1/K, and counts as one row for each kernel. The whole is
    concave in the weights: precision and precision times mean are linear in them.
    """
    count = len(means)

    def fall(logarithms: Array) -> tuple[float, Array]:
        weights = np.exp(logarithms)
        mean, variance = multiplied(means, variances, weights)
        value = normal_density(mean, variance, y, floor=-np.inf).sum() + np.sum(logarithms - count * weights)
        # of log p: half of 1/S - (y - m)², plus (y - m)(m_k - m), all times the precision of the kernel
        error = y - mean
        slopes = (0.5 * (variance - error**2) + error * (means - mean)) / variances
        slope = weights * (slopes.sum(axis=1) - count) + 1.0
        return -float(value) / len(y), -slope / len(y)

    found = minimize(fall, np.full(count, -np.log(count)), jac=True, method="L-BFGS-B")
    return np.asarray(np.exp(found.x))


# ── who takes part ──────────────────────────────────────────────────────────────────────────────────────────


def complements(best: Candidate, others: list[Candidate], most: int) -> list[Candidate]:
    """Of the others, those that explain best what the first ones do not, one after the other, `most` at most.

    The next best are often alike, and wrong together; a mixture gains by what is different.
    """
    team = [best]
    reached = float(np.mean(np.concatenate(best.densities)))
    while len(team) <= most:
        found = [(_mixture_value([*team, other]), i) for i, other in enumerate(others) if other not in team]
        value, i = max(found, default=(-np.inf, 0))
        if value < reached + WORTH:
            break
        reached = value
        team.append(others[i])
    return team[1:]


def _mixture_value(team: list[Candidate]) -> float:
    densities = np.array([np.concatenate(c.densities) for c in team])
    return float(np.mean(mixture_density(densities, mixture_weights(densities, rounds=30))))
