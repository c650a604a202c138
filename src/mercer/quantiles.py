"""Finite-sample quantiles: the order statistics by which conformal prediction keeps its promise.

Of n scores and one more that is exchangeable with them, the last one is at most the ⌈(n + 1)·level⌉-th
smallest of the n with probability `level` at least. Where that rank is n + 1, nothing finite can be promised,
and the quantile is infinite.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mercer.errors import ParameterError
from mercer.params import is_real
from mercer.typing import Array


def check_level(level: object, name: str = "level") -> float:
    """A level between 0 and 1, both excluded."""
    if not is_real(level) or not 0 < float(level) < 1:
        raise ParameterError(f"{name} must be a number with 0 < {name} < 1; got {level!r}.")
    return float(level)


def decimal(level: float) -> Fraction:
    """The level as its decimals say: 0.9 is nine tenths, and not the float next to it.

    >>> decimal(0.9)
    Fraction(9, 10)
    """
    return Fraction(repr(float(level)))


def rank(n: int, level: float) -> int:
    """⌈(n + 1)·level⌉, exactly; n + 1 where n scores are too few for the level.

    >>> rank(9, 0.9), rank(8, 0.9), rank(19, 0.95)
    (9, 9, 19)
    """
    return math.ceil((n + 1) * decimal(level))


def least_rows(level: float) -> int:
    """The smallest n whose quantile of this level is finite.

    >>> least_rows(0.9), least_rows(0.95), least_rows(0.5)
    (9, 19, 1)
    """
    exact = decimal(level)
    return math.ceil(exact / (1 - exact))


def upper(values: Array, level: float) -> Array:
    """The ⌈(n + 1)·level⌉-th smallest of the n numbers on the last axis; ∞ where there are too few.

    A number that is NaN is unknown, and counts as ∞.

    >>> upper(np.array([4.0, 1.0, 3.0, 2.0]), 0.5), upper(np.array([1.0, 2.0]), 0.9)
    (array(3.), array(inf))
    """
    n = values.shape[-1]
    place = rank(n, level)
    if place > n:
        return np.full(values.shape[:-1], np.inf)
    known = np.where(np.isnan(values), np.inf, values)
    return np.asarray(np.partition(known, place - 1, axis=-1)[..., place - 1])


def lower(values: Array, level: float) -> Array:
    """What `upper` is from the other side: the ⌊(n + 1)·(1 - level)⌋-th smallest, or -∞.

    >>> lower(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
    array(2.)
    """
    return np.asarray(-upper(-values, level))
