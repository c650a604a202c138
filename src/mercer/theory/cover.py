"""Cover's theorem: how likely a hyperplane in m dimensions separates random labels of n points (T6)."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from mercer.errors import ParameterError

_EXACT_WORK = 500_000_000  # terms times bits that are summed as whole numbers


def cover_probability(n: int, m: int) -> float:
    """The share of the 2ⁿ labellings of n points in general position that a hyperplane separates.

        P(n, m) = 1 for n ≤ m + 1,  else  2^(1-n) Σ_{i=0}^{m} C(n-1, i)

    Summed in whole numbers and rounded once while that is quick, and else from the incomplete beta function,
    whose relative error, measured against 40 digits, is below 1e-11 for n up to 10⁷.

    >>> cover_probability(4, 2)                               # 1 - 2/16: XOR and its opposite fail
    0.875
    >>> cover_probability(2 * 1_000_001, 1_000_000)           # the capacity: n = 2 (m + 1)
    0.5
    """
    n = _whole(n, "n", 1, "points")
    m = _whole(m, "m", 0, "dimensions")
    if n <= m + 1:
        return 1.0
    if n == 2 * (m + 1):
        return 0.5
    if n > 2**53:
        raise ParameterError(f"n must be at most 2^53, above which numbers of points lose digits; got {n}.")
    # The sum from below, or what is missing from above.
    shorter = min(m + 1, n - 1 - m)
    if shorter * n <= _EXACT_WORK:
        everything = 1 << (n - 1)
        total = _partial_sum(n - 1, shorter)
        if shorter != m + 1:
            total = everything - total
        return total / everything
    from scipy.special import betainc

    return float(betainc(float(n - 1 - m), float(m + 1), 0.5))


def _partial_sum(n: int, terms: int) -> int:
    """C(n, 0) + … + C(n, terms - 1)."""
    total = 0
    c = 1
    for i in range(terms):
        total += c
        c = c * (n - i) // (i + 1)
    return total


def _whole(value: SupportsIndex, name: str, least: int, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(f"{name} must be a whole number of {what}, at least {least}; got {value!r}.")
    return number
