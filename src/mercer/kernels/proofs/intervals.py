"""Interval arithmetic in sixty digits: every operation rounds outwards, so the true number is never lost.

A witness against a kernel is a strict inequality, qᵀKq < 0, and rounding must not decide it. Decimal numbers
of the standard library round in a direction of one's choice and have exponents without practical limits;
`exp`, `ln` and `sqrt` of theirs are right to the last digit, so one more step outwards encloses them.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

_LIMITS = {"Emax": 10**9, "Emin": -(10**9), "traps": []}
_DOWN = Context(prec=60, rounding=ROUND_FLOOR, **_LIMITS)  # type: ignore[arg-type]
_UP = Context(prec=60, rounding=ROUND_CEILING, **_LIMITS)  # type: ignore[arg-type]

# For the functions that are summed here: so many digits more that their own rounding is far below the last of
# sixty.
_FINE = Context(prec=100, **_LIMITS)  # type: ignore[arg-type]
_FINE_ERROR = Decimal("1e-75")
_LARGEST_ANGLE = Decimal("1e20")

_ZERO = Decimal(0)
_ONE = Decimal(1)


class Interval:
    """All numbers from `low` to `high`; an operation encloses what it may give for any of them."""

    __slots__ = ("high", "low")

    def __init__(self, low: Decimal, high: Decimal) -> None:
        self.low = low
        self.high = high

    @classmethod
    def exact(cls, number: float | int) -> Interval:
        value = Decimal(number)
        return cls(value, value)

    @classmethod
    def around(cls, number: float, error: float) -> Interval:
        """number ± error."""
        middle = Decimal(number)
        return cls(_DOWN.subtract(middle, Decimal(error)), _UP.add(middle, Decimal(error)))

    def __add__(self, other: Interval) -> Interval:
        return Interval(_DOWN.add(self.low, other.low), _UP.add(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(_DOWN.subtract(self.low, other.high), _UP.subtract(self.high, other.low))

    def __neg__(self) -> Interval:
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def __mul__(self, other: Interval) -> Interval:
        pairs = (
            (self.low, other.low),
            (self.low, other.high),
            (self.high, other.low),
            (self.high, other.high),
        )
        return Interval(min(_DOWN.multiply(*p) for p in pairs), max(_UP.multiply(*p) for p in pairs))

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0 <= other.high:
            raise NotEnclosed("division by an interval around 0")
        inverse = Interval(_DOWN.divide(_ONE, other.high), _UP.divide(_ONE, other.low))
        return self * inverse

    def square(self) -> Interval:
        if self.low <= 0 <= self.high:
            far = max(self.low.copy_abs(), self.high)
            return Interval(_ZERO, _UP.multiply(far, far))
        near, far = sorted((self.low.copy_abs(), self.high.copy_abs()))
        return Interval(_DOWN.multiply(near, near), _UP.multiply(far, far))

    def whole_power(self, p: int) -> Interval:
        """The product of p copies, by squaring."""
        out = Interval(_ONE, _ONE)
        base = self
        while p:
            if p & 1:
                out = out * base
            p >>= 1
            if p:
                base = base.square()
        return out

    def power(self, p: float) -> Interval:
        """x^p for x ≥ 0 and any p > 0; what lies below 0 by rounding is cut off."""
        if self.high < 0:
            raise NotEnclosed("a fractional power of a negative number")
        exponent = Interval.exact(p)
        low = _ZERO if self.low <= 0 else (Interval(self.low, self.low).log() * exponent).exp().low
        high = _ZERO if self.high == 0 else (Interval(self.high, self.high).log() * exponent).exp().high
        return Interval(low, high)

    def absolute(self) -> Interval:
        if self.low >= 0:
            return self
        if self.high <= 0:
            return -self
        return Interval(_ZERO, max(self.low.copy_negate(), self.high))

    def smaller(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), min(self.high, other.high))

    def exp(self) -> Interval:
        if self.is_zero():
            return Interval(_ONE, _ONE)
        low = _DOWN.exp(self.low).next_minus(_DOWN)
        return Interval(max(low, _ZERO), _UP.exp(self.high).next_plus(_UP))

    def log(self) -> Interval:
        if self.low <= 0:
            raise NotEnclosed("the logarithm of a number that may be 0")
        return Interval(_DOWN.ln(self.low).next_minus(_DOWN), _UP.ln(self.high).next_plus(_UP))

    def sqrt(self) -> Interval:
        """√x; what lies below 0 by rounding is cut off."""
        low = _DOWN.sqrt(max(self.low, _ZERO)).next_minus(_DOWN)
        high = _ZERO if self.high <= 0 else _UP.sqrt(self.high).next_plus(_UP)
        return Interval(max(low, _ZERO), high)

    def cos(self) -> Interval:
        """cos x by its value in the middle: it moves no faster than x."""
        width = _UP.subtract(self.high, self.low)
        if width > 2 or self.absolute().high > _LARGEST_ANGLE:
            return Interval(Decimal(-1), _ONE)
        value = _cosine(self.low)
        spread = _UP.add(width, _FINE_ERROR)
        low = max(_DOWN.subtract(value, spread), Decimal(-1))
        return Interval(low, min(_UP.add(value, spread), _ONE))

    def arccos(self) -> Interval:
        """The angle in [0, π] of a cosine; what lies beyond ±1 by rounding is cut off."""
        low = _arc_cosine(min(max(self.high, Decimal(-1)), _ONE))
        high = _arc_cosine(min(max(self.low, Decimal(-1)), _ONE))
        return Interval(max(_DOWN.subtract(low, _FINE_ERROR), _ZERO), _UP.add(high, _FINE_ERROR))

    def includes_zero(self) -> bool:
        return self.low <= 0 <= self.high

    def is_zero(self) -> bool:
        return self.low == 0 and self.high == 0

    def middle(self) -> float:
        return float(_FINE.divide(_FINE.add(self.low, self.high), Decimal(2)))

    def outward(self) -> tuple[float, float]:
        """The ends as floats, rounded outwards."""
        low = float(self.low)
        high = float(self.high)
        if Decimal(low) > self.low:
            low = math.nextafter(low, -math.inf)
        if Decimal(high) < self.high:
            high = math.nextafter(high, math.inf)
        return low, high

    def __repr__(self) -> str:
        return f"[{self.low:.6g}, {self.high:.6g}]"


class NotEnclosed(Exception):
    """No finite interval can be given."""


# ── functions summed here ───────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1)
def pi() -> Interval:
    value = _pi()
    return Interval(_DOWN.subtract(value, _FINE_ERROR), _UP.add(value, _FINE_ERROR))


@lru_cache(maxsize=1)
def _pi() -> Decimal:
    """Machin: π = 16 atan(1/5) - 4 atan(1/239)."""
    fifth = _arc_tangent_series(_FINE.divide(_ONE, Decimal(5)))
    small = _arc_tangent_series(_FINE.divide(_ONE, Decimal(239)))
    return _FINE.subtract(_FINE.multiply(Decimal(16), fifth), _FINE.multiply(Decimal(4), small))


def _cosine(x: Decimal) -> Decimal:
    """The Taylor series after whole turns are taken away; |x| ≤ 1e20, so 75 digits are left of 100."""
    turn = _FINE.multiply(Decimal(2), _pi())
    r = _FINE.remainder_near(x, turn)
    square = _FINE.multiply(r, r)
    term = _ONE
    total = _ONE
    n = 0
    while term.copy_abs() > Decimal("1e-95"):
        n += 2
        term = _FINE.divide(_FINE.multiply(term, square), Decimal(-n * (n - 1)))
        total = _FINE.add(total, term)
    return total


def _arc_cosine(c: Decimal) -> Decimal:
    """2 atan(√(1 - c) / √(1 + c)), the angle halved until its tangent is small."""
    above = _FINE.sqrt(_FINE.subtract(_ONE, c))
    below = _FINE.sqrt(_FINE.add(_ONE, c))
    if below == 0:
        return _pi()
    y = _FINE.divide(above, below)
    turned = y > 1
    if turned:
        y = _FINE.divide(_ONE, y)
    for _ in range(4):
        root = _FINE.sqrt(_FINE.add(_ONE, _FINE.multiply(y, y)))
        y = _FINE.divide(y, _FINE.add(_ONE, root))
    angle = _FINE.multiply(Decimal(32), _arc_tangent_series(y))
    if turned:
        return _FINE.subtract(_pi(), angle)
    return angle


def _arc_tangent_series(y: Decimal) -> Decimal:
    square = _FINE.multiply(y, y)
    term = y
    total = y
    n = 1
    while term.copy_abs() > Decimal("1e-98"):
        n += 2
        term = _FINE.multiply(term, square).copy_negate()
        total = _FINE.add(total, _FINE.divide(term, Decimal(n)))
    return total
