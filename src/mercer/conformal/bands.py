"""Intervals of numbers from scores and from the models that left rows out.

    split                μ(x) ± q                     q the quantile of |y - μ(x)| of rows kept out
    jackknife+ and CV+   from the lower quantile of μ₋ᵢ(x) - R_i to the upper one of μ₋ᵢ(x) + R_i

With deviations, R is counted in those of the model that made the prediction, at the row that it is made for.
"""

from __future__ import annotations

import numpy as np

from mercer import quantiles
from mercer.typing import Array


def split_interval(mean: Array, deviation: Array | float, scores: Array, level: float) -> tuple[Array, Array]:
    """The ends of an interval that is as wide to both sides as the quantile of the scores."""
    reach = float(quantiles.upper(scores, level))
    if np.isinf(reach):
        # 0 · ∞ would be unknown
        return np.full(len(mean), -np.inf), np.full(len(mean), np.inf)
    return mean - reach * deviation, mean + reach * deviation


def plus_interval(
    left_out: Array, deviations: Array | float, scores: Array, level: float
) -> tuple[Array, Array]:
    """The ends of jackknife+ and CV+: `left_out` has the predictions without row i, new rows × n."""
    reach = scores * deviations
    with np.errstate(invalid="ignore"):
        return quantiles.lower(left_out - reach, level), quantiles.upper(left_out + reach, level)
