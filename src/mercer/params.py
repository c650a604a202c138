"""Hyperparameters: what a parameter may be, and how it travels to a flat vector and back.

A kernel declares each parameter with one of the functions below:

    lengthscale: Vector = positive(1.0, per_column=True)
    degree: int = whole(3, at_least=1)

The declaration checks the value when the kernel is born, and knows the transform between the value and an
unconstrained real number: the logarithm for positive numbers, a scaled logit for bounded ones.
Parameters declared with `whole`, `shape_number` or `coefficients` shape the kernel and are never tuned. A
parameter whose default is `OPEN` is left to the data where it is not given.
"""

from __future__ import annotations

import enum
import math
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeGuard

import numpy as np

from mercer.errors import ParameterError

Bounds: TypeAlias = tuple[float, float]
Vector: TypeAlias = float | tuple[float, ...]
# a number, or tuples of them, however deep
Nested: TypeAlias = "float | tuple[Nested, ...]"

# Where a bounded value sits on its bound the logit is infinite; this is as far as theta goes.
_LOGIT_LIMIT = 36.0


class Open(enum.Enum):
    """A number that is left to the data.

    `RBF()` has one lengthscale that is open, `RBF(ard=True)` one for each column.
    """

    ONE = "open"
    EACH = "open, one for each column"

    def __repr__(self) -> str:
        return f"<{self.value}>"

    __str__ = __repr__


OPEN = Open.ONE


@dataclass(frozen=True)
class Domain:
    """Numbers a parameter may take: an interval, its transform, and its shape."""

    words: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = True
    tuned: bool = True
    logarithmic: bool = False
    per_column: bool = False
    ndim: int = 0
    whole: bool = False
    may_be_open: bool = False

    def check(self, value: object, owner: str, name: str) -> Nested | Open:
        """`value` in canonical form (float, tuple of floats, tuple of tuples), or a ParameterError."""
        if isinstance(value, Open) and self.may_be_open:
            return value
        if self.ndim == 0 and self.per_column and _is_sequence(value):
            return self._check_sequence(value, owner, name, depth=1)
        if self.ndim > 0:
            return self._check_sequence(value, owner, name, depth=self.ndim)
        return self._check_number(value, owner, name)

    def _check_sequence(self, value: object, owner: str, name: str, depth: int) -> tuple[Nested, ...]:
        if not _is_sequence(value):
            kind = "a list" if depth == 1 else "a list of lists"
            self._refuse(value, owner, name, f"{kind} of numbers")
        if len(value) == 0:
            self._refuse(value, owner, name, "at least one number")
        if depth == 1:
            if isinstance(value, tuple) and self._holds(value):
                return value
            out = tuple(self._check_entry(v, owner, f"{name}[{i}]") for i, v in enumerate(value))
            if isinstance(value, tuple) and all(a is b for a, b in zip(out, value, strict=True)):
                return value
            return out
        rows = tuple(self._check_sequence(v, owner, f"{name}[{i}]", depth - 1) for i, v in enumerate(value))
        if len({len(r) for r in rows}) != 1:
            self._refuse(value, owner, name, "rows of equal length")
        return rows

    def _holds(self, values: tuple[object, ...]) -> TypeGuard[tuple[float, ...]]:
        """Whether these are floats inside the domain, as most are, so that none is asked longer questions."""
        if self.whole or not self.open_low:
            return False
        high = min(self.high, sys.float_info.max)
        return all(type(v) is float and self.low < v <= high for v in values)

    def _check_entry(self, value: object, owner: str, name: str) -> Vector:
        """One entry of a list; with `ndim` 1 and `per_column` it may be a list, a number per column."""
        if self.ndim == 1 and self.per_column and _is_sequence(value):
            if len(value) == 0:
                self._refuse(value, owner, name, "at least one number")
            return tuple(self._check_number(v, owner, f"{name}[{i}]") for i, v in enumerate(value))
        return self._check_number(value, owner, name)

    def _check_number(self, value: object, owner: str, name: str) -> float:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if not is_real(value):
            self._refuse(value, owner, name, self.words)
        number: float
        try:
            number = value if type(value) is float else float(value)
        except OverflowError:
            self._refuse(value, owner, name, self.words)
        if self.whole:
            if not math.isfinite(number) or number != int(value):
                self._refuse(value, owner, name, self.words)
            number = int(value)
        above = self.low < number if self.open_low else self.low <= number
        if not (above and number <= self.high and math.isfinite(number)):
            self._refuse(value, owner, name, self.words)
        return number

    def _refuse(self, value: object, owner: str, name: str, needed: str) -> NoReturn:
        shown = repr(value)
        if len(shown) > 60:
            shown = shown[:57] + "..."
        raise ParameterError(f"{owner}: {name} must be {needed}; got {shown}. {self._advice(value)}")

    def _advice(self, value: object) -> str:
        if isinstance(value, str):
            return "Pass a number, not text."
        if self.whole:
            least = int(self.low) if math.isfinite(self.low) else 1
            return f"Pass a whole number, such as {max(least, 1)}."
        if isinstance(value, numbers.Real) and value != value:
            return "NaN is no number: check where it came from."
        if self.low >= 0 and isinstance(value, numbers.Real) and value <= 0:
            return "Pass a positive number." if self.open_low else "Pass a positive number, or zero."
        return "Pass a finite number in that range."

    def is_free(self, value: float | Open) -> bool:
        """Whether one number is tuned: not open, and not 0 where tuning goes by its logarithm."""
        if not self.tuned or isinstance(value, Open):
            return False
        return not (self.logarithmic and value == 0)

    def to_real(self, value: float, bounds: Bounds | None) -> float:
        """Value -> unconstrained real."""
        if bounds is not None:
            t = _place(value, bounds, self.logarithmic and bounds[0] > 0)
            if t <= 0:
                return -_LOGIT_LIMIT
            if t >= 1:
                return _LOGIT_LIMIT
            return math.log(t / (1 - t))
        return math.log(abs(value)) if self.logarithmic else value

    def from_real(self, t: float, bounds: Bounds | None, sign: float) -> float:
        """Unconstrained real -> value (`sign` is that of the value it replaces)."""
        if bounds is not None:
            low, high = bounds
            share = 1 / (1 + math.exp(-t)) if t > -700 else 0.0
            if self.logarithmic and low > 0:
                value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            else:
                value = low + share * (high - low)
            return min(max(value, low), high)
        if not self.logarithmic:
            return t
        return math.copysign(math.exp(min(max(t, -700.0), 700.0)), sign)

    def derivative(self, value: float, bounds: Bounds | None) -> float:
        """d value / d theta at `value`."""
        if bounds is not None:
            log = self.logarithmic and bounds[0] > 0
            share = _place(value, bounds, log)
            width = math.log(bounds[1] / bounds[0]) * value if log else bounds[1] - bounds[0]
            return share * (1 - share) * width
        return value if self.logarithmic else 1.0


def _place(value: float, bounds: Bounds, log: bool) -> float:
    low, high = bounds
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def is_real(value: object) -> TypeGuard[float]:
    """A real number of Python or numpy; truth values, text and durations are not."""
    if type(value) is float:
        # What most numbers are, before the longer questions.
        return True
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return False
    return isinstance(value, numbers.Real | np.integer | np.floating)


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number of Python or numpy; truth values, durations and 2.0 are not.

    >>> is_whole(2), is_whole(np.int8(2)), is_whole(True), is_whole(2.0)
    (True, True, False, False)
    """
    if isinstance(value, bool | np.timedelta64):
        return False
    return isinstance(value, numbers.Integral)


def _numbers(value: Nested) -> list[float]:
    """All numbers of a value, however deep its tuples are."""
    if not isinstance(value, tuple):
        return [value]
    return [number for part in value for number in _numbers(part)]


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    if isinstance(value, tuple | list):
        # What most sequences are, before the longer questions.
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


# ── declarations ────────────────────────────────────────────────────────────────────────────────────────────


# A field of a dataclass stands for a value of any type, so these return `Any` as `dataclasses.field` does.


def _declare(domain: Domain, default: object) -> Any:
    return _field({"domain": domain}, default)


def _field(metadata: dict[str, object], default: object) -> Any:
    if default is ...:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def positive(default: object = ..., *, per_column: bool = False, ndim: int = 0) -> Any:
    """A number > 0, tuned on a logarithmic scale; `per_column` also allows one number per column.

    With the default `OPEN` it may be left to the data.
    """
    words = "a positive number"
    if per_column:
        words += ", or a list with one per column"
    open_too = isinstance(default, Open)
    domain = Domain(words, low=0.0, logarithmic=True, per_column=per_column, ndim=ndim, may_be_open=open_too)
    return _declare(domain, default)


def nonnegative(default: object = ...) -> Any:
    """A number >= 0, tuned on a logarithmic scale; exactly 0 is left alone by tuning."""
    return _declare(Domain("a number >= 0", low=0.0, open_low=False, logarithmic=True), default)


def real(default: object = ..., *, per_column: bool = False, ndim: int = 0) -> Any:
    """Any finite number."""
    return _declare(Domain("a finite number", per_column=per_column, ndim=ndim), default)


def signed(default: object = ...) -> Any:
    """Any finite number; tuning changes its size, never its sign."""
    return _declare(Domain("a finite number", logarithmic=True), default)


def whole(default: object = ..., *, at_least: int, at_most: float = math.inf) -> Any:
    """A whole number that shapes the kernel; never tuned."""
    words = f"a whole number >= {at_least}"
    if math.isfinite(at_most):
        words += f" and <= {at_most:g}"
    domain = Domain(words, low=at_least, high=at_most, open_low=False, tuned=False, whole=True)
    return _declare(domain, default)


def shape_number(
    default: object = ...,
    *,
    words: str,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = True,
) -> Any:
    """A number that shapes the kernel (Matérn's ν, an exponent); never tuned."""
    return _declare(Domain(words, low=low, high=high, open_low=open_low, tuned=False), default)


def coefficients(default: object = ..., *, ndim: int = 1, words: str = "finite numbers") -> Any:
    """A list or matrix of numbers that shapes the kernel; never tuned."""
    return _declare(Domain(words, ndim=ndim, tuned=False), default)


def given(default: object = ...) -> Any:
    """Something that is not a number (a function, a choice of columns): kept as it came."""
    return _field({"given": True}, default)


def children() -> Any:
    """The parts of a sum or product."""
    return field(metadata={"children": True})


class Parameter(NamedTuple):
    """One tunable number of a kernel: where it is, what it is, and how it may move."""

    name: str
    value: float
    domain: Domain
    fixed: bool
    bounds: Bounds | None

    @property
    def free(self) -> bool:
        return not self.fixed and self.domain.is_free(self.value)

    @property
    def theta(self) -> float:
        return self.domain.to_real(self.value, self.bounds)

    @property
    def derivative(self) -> float:
        """d value / d theta."""
        return self.domain.derivative(self.value, self.bounds)


def check_bounds(bounds: object, value: Vector, domain: Domain, name: str) -> Bounds:
    """A pair (low, high) that contains every number of `value` and lies in the domain."""
    if not _is_interval(bounds):
        raise ParameterError(
            f"bounds of {name} must be (low, high) with low < high, both finite; got {bounds!r}."
        )
    low = float(bounds[0])
    high = float(bounds[1])
    if low < domain.low or high > domain.high or (domain.open_low and low == domain.low):
        raise ParameterError(f"bounds of {name} must lie in its domain ({domain.words}); got {bounds!r}.")
    for v in _numbers(value):
        if not isinstance(v, Open) and not low <= v <= high:
            raise ParameterError(
                f"{name} = {v:g} lies outside its bounds ({low:g}, {high:g}). "
                "Widen them or change the value first."
            )
    return low, high


def _is_interval(bounds: object) -> TypeGuard[Sequence[float]]:
    if not _is_sequence(bounds) or len(bounds) != 2:
        return False
    low, high = bounds
    if not is_real(low) or not is_real(high):
        return False
    return math.isfinite(low) and math.isfinite(high) and low < high
