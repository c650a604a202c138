"""Proofs from the formula alone: functions that are kernels because of the steps they are built of.

    completely monotone   f ≥ 0, f' ≤ 0, f'' ≥ 0, … for s ≥ 0     f(‖x - z‖²) is a kernel (Schoenberg)
    Bernstein             b ≥ 0, and b' is completely monotone      e^(-b) is completely monotone
    power series          Σ aₙtⁿ with all aₙ ≥ 0, for all t         f(x·z) is a kernel in every dimension

Each class is closed under a few steps, and a formula belongs to it if every step is one of them. Nothing is
sampled. Numbers are compared in interval arithmetic, so that rounding decides nothing. Where the rules do not
reach, the answer is False.

    >>> import numpy as np
    >>> from mercer.kernels.formulas.formula import record
    >>> is_completely_monotone(record(lambda s: np.exp(-np.log1p(np.sqrt(s))) / (2 + s)), {})
    True
"""

from __future__ import annotations

from collections.abc import Mapping

from mercer.kernels.formulas.certain import bounds
from mercer.kernels.formulas.formula import VARIABLE, Formula
from mercer.kernels.proofs.intervals import Interval, NotEnclosed

Names = Mapping[str, float]

_LARGEST = 200  # steps of a formula that is looked at
_NOWHERE = Interval.exact(0)


def is_completely_monotone(f: Formula, names: Names) -> bool:
    """Whether the rules show f completely monotone for s ≥ 0, and finite at 0."""
    rules = _Rules(names)
    return f.size() <= _LARGEST and rules.falls(f) and rules.at_zero(f) is not None


def is_divisible(f: Formula, names: Names) -> bool:
    """Whether the rules show every power f^r, r > 0, completely monotone, and f finite at 0."""
    rules = _Rules(names)
    return f.size() <= _LARGEST and rules.powers_fall(f) and rules.at_zero(f) is not None


def is_power_series(f: Formula, names: Names) -> bool:
    """Whether the rules show f a power series that converges everywhere and has no negative coefficient."""
    return f.size() <= _LARGEST and _Rules(names).series(f)


def has_power_series_powers(f: Formula, names: Names) -> bool:
    """Whether the rules show every f^r, r > 0, to be such a series: f is c·e^g with c > 0 and g one."""
    return f.size() <= _LARGEST and _Rules(names).exponential(f)


class _Rules:
    """The rules, for given values of the parameters."""

    def __init__(self, names: Names) -> None:
        self.names = names

    # ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────

    def at_zero(self, f: Formula) -> Interval | None:
        """The value at 0, if it is known to be a number."""
        try:
            found = bounds(f, _NOWHERE, self.names)
        except (NotEnclosed, ArithmeticError):
            return None
        if found.low.is_finite() and found.high.is_finite():
            return found
        return None

    def number(self, f: Formula) -> Interval | None:
        """The value of a formula without variable."""
        if VARIABLE in f.names():
            return None
        return self.at_zero(f)

    def not_negative(self, f: Formula) -> bool:
        found = self.number(f)
        return found is not None and found.low >= 0

    def positive(self, f: Formula) -> bool:
        found = self.number(f)
        return found is not None and found.low > 0

    def between(self, f: Formula, low: int, high: int) -> bool:
        found = self.number(f)
        return found is not None and low <= found.low and found.high <= high

    def opposite(self, f: Formula) -> Formula | None:
        """b where f is written as -b, -c·b or -b/c."""
        if f.op == "negative":
            return f.parts[0]
        if f.op == "multiply":
            for one, other in (f.parts, f.parts[::-1]):
                opposite = self.opposite(one)
                if opposite is not None:
                    return opposite * other
                if self.number(one) is not None and self.not_negative(-one):
                    return -one * other
        if f.op == "divide":
            opposite = self.opposite(f.parts[0])
            if opposite is None:
                return None
            return opposite / f.parts[1]
        return None

    # ── functions of a squared distance ─────────────────────────────────────────────────────────────────────

    def falls(self, f: Formula) -> bool:
        """Completely monotone: numbers ≥ 0, sums, products, whole powers, and whatever has such powers."""
        if self.not_negative(f) or self.powers_fall(f):
            return True
        if f.op in ("add", "multiply"):
            return all(self.falls(part) for part in f.parts)
        if f.op == "divide":
            return self.falls(f.parts[0]) and self.inverse_falls(f.parts[1])
        if f.op == "power":
            return self.is_whole(f.parts[1]) and self.falls(f.parts[0])
        return False

    def powers_fall(self, f: Formula) -> bool:
        """Every power is completely monotone: e^(-b), b^(-p), 1/b (b Bernstein), products and powers."""
        if self.positive(f):
            return True
        if f.op == "exp":
            return self.exponent_falls(f.parts[0])
        if f.op == "multiply":
            return all(self.powers_fall(part) for part in f.parts)
        if f.op == "divide":
            return self.powers_fall(f.parts[0]) and self.inverse_falls(f.parts[1])
        if f.op == "power":
            base, exponent = f.parts
            if self.positive(exponent):
                return self.powers_fall(base)
            return self.positive(-exponent) and self.inverse_falls(base)
        return False

    def exponent_falls(self, f: Formula) -> bool:
        """f = c - b for a number c and a Bernstein function b."""
        if self.number(f) is not None:
            return True
        if f.op == "add":
            return all(self.exponent_falls(part) for part in f.parts)
        if f.op == "subtract":
            return self.exponent_falls(f.parts[0]) and self.rises(f.parts[1])
        b = self.opposite(f)
        return b is not None and self.rises(b)

    def inverse_falls(self, f: Formula) -> bool:
        """Every power of 1/f is completely monotone: Bernstein functions, e^b, products and powers."""
        if self.positive(f):
            return True
        if f.op == "exp":
            return self.rises(f.parts[0])
        if f.op == "multiply":
            return all(self.inverse_falls(part) for part in f.parts)
        if f.op == "power":
            return self.positive(f.parts[1]) and self.inverse_falls(f.parts[0])
        return self.rises(f)

    def rises(self, f: Formula) -> bool:
        """Bernstein: s, numbers ≥ 0, sums, roots, powers up to 1, logs above 1, c - f for falling f ≤ c."""
        if f.op == "name" and f.name == VARIABLE:
            return True
        if self.not_negative(f):
            return True
        if f.op in ("sqrt", "log1p"):
            return self.rises(f.parts[0])
        if f.op == "add":
            return all(self.rises(part) for part in f.parts)
        if f.op == "multiply":
            one, other = f.parts
            return (self.not_negative(one) and self.rises(other)) or (
                self.not_negative(other) and self.rises(one)
            )
        if f.op == "divide":
            return self.positive(f.parts[1]) and self.rises(f.parts[0])
        if f.op == "power":
            return self.between(f.parts[1], 0, 1) and self.rises(f.parts[0])
        if f.op == "log":
            begins = self.at_zero(f.parts[0])
            return begins is not None and begins.low >= 1 and self.rises(f.parts[0])
        if f.op == "subtract":
            return self._is_what_is_missing(*f.parts)
        return False

    def _is_what_is_missing(self, whole: Formula, part: Formula) -> bool:
        """c - f with f completely monotone and f(0) ≤ c."""
        above = self.number(whole)
        begins = self.at_zero(part)
        if above is None or begins is None:
            return False
        return begins.high <= above.low and self.falls(part)

    def is_whole(self, f: Formula) -> bool:
        return f.op == "number" and f.number >= 0 and f.number == int(f.number)

    # ── functions of a dot product ──────────────────────────────────────────────────────────────────────────

    def series(self, f: Formula) -> bool:
        """Σ aₙtⁿ with aₙ ≥ 0 everywhere.

        Known are t, numbers ≥ 0, sums, products, whole powers, e^f, sinh f, cosh f and e^f - 1.
        """
        if f.op == "name" and f.name == VARIABLE:
            return True
        if self.not_negative(f):
            return True
        if f.op in ("exp", "sinh", "cosh", "expm1"):
            return self.series(f.parts[0])
        if f.op in ("add", "multiply", "polynomial"):
            return all(self.series(part) for part in f.parts)
        if f.op == "divide":
            return self.positive(f.parts[1]) and self.series(f.parts[0])
        if f.op == "power":
            base, exponent = f.parts
            if self.is_whole(exponent):
                return self.series(base)
            begins = self.number(base)
            return begins is not None and begins.low >= 1 and self.series(exponent)
        return False

    def exponential(self, f: Formula) -> bool:
        """c·e^g with c > 0 and g such a series."""
        if self.positive(f):
            return True
        if f.op == "exp":
            return self.series(f.parts[0])
        if f.op == "multiply":
            return all(self.exponential(part) for part in f.parts)
        if f.op == "divide":
            return self.exponential(f.parts[0]) and self.positive(f.parts[1])
        if f.op == "power":
            return self.positive(f.parts[1]) and self.exponential(f.parts[0])
        return False
