"""How lengths, places and periods of an axis are spoken: "about 40 years", "after about 1975", "weekly"."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mercer.arrays import Column

# Days in one of each unit of time.
DAYS = {
    "seconds": 1 / 86400,
    "minutes": 1 / 1440,
    "hours": 1 / 24,
    "days": 1.0,
    "weeks": 7.0,
    "months": 365.25 / 12,
    "quarters": 365.25 / 4,
    "years": 365.25,
}
# What a pattern is called that comes back after so many days.
CYCLES = {
    "hourly": 1 / 24,
    "daily": 1.0,
    "weekly": 7.0,
    "monthly": 365.25 / 12,
    "quarterly": 365.25 / 4,
    "half-yearly": 365.25 / 2,
    "yearly": 365.25,
}
# How far from a cycle a period may be and still have its name.
NEAR = 0.02
# What changes by less from one end of the data to the other is flat.
FLAT = 0.02


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many digits, without an exponent where it can be read without.

    >>> [rounded(v) for v in (66.73, 1.234, 0.0456, 1234.5, 40.0)]
    ['67', '1.2', '0.046', '1200', '40']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    near = round(value, digits - 1 - size)
    if 1e-4 <= abs(near) < 1e9:
        text = f"{near:.{max(digits - 1 - size, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{near:.{digits}g}"


@dataclass(frozen=True)
class Axis:
    """One column as it is spoken: its name, the unit of its numbers, and where it begins and ends.

    `unit` is a plural such as "years" or "kg", or nothing. `low` and `high` are the ends of the data, by
    which a long lengthscale is told from a short one. `place` says how a point of the axis is spoken, for
    numbers that stand for dates.

    >>> years = Axis(unit="years")
    >>> years.length(66.7), years.cycle(1.0), years.cycle(11.1), years.point(1974.6)
    ('67 years', 'yearly', None, '1975')
    >>> Axis(unit="days").cycle(7.02), Axis().length(0.123), Axis("age").length(12.0)
    ('weekly', '0.12', '12')
    """

    name: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    place: Callable[[float], str] | None = None

    def length(self, value: float) -> str:
        """A length along the axis, with its unit."""
        unit = self.unit
        shown = rounded(value)
        if shown == "1" and unit.endswith("s") and unit in DAYS:
            unit = unit[:-1]
        return f"{shown} {unit}".strip()

    def cycle(self, period: float) -> str | None:
        """The name of a period that is close to one of the calendar."""
        day = DAYS.get(self.unit)
        if day is None:
            return None
        for name, days in CYCLES.items():
            if abs(period * day / days - 1) < NEAR:
                return name
        return None

    def point(self, value: float) -> str:
        """A point of the axis."""
        if self.place is not None:
            return self.place(value)
        step = 0.01 * self.span if self.span else abs(value) / 100
        digits = 3
        if value and step:
            digits = max(1, math.ceil(math.log10(abs(value) / step)))
        if self.unit == "years":
            digits = max(digits, 4)
        return rounded(value, digits)

    @property
    def span(self) -> float | None:
        """The length of the data along the axis, where it is known."""
        if self.low is None or self.high is None:
            return None
        return self.high - self.low

    def is_long(self, length: float) -> bool:
        """Whether a lengthscale is long beside the data: a quarter of them or more."""
        return self.span is not None and length >= 0.25 * self.span

    def is_flat(self, length: float, height: float = 1.0) -> bool:
        """Whether a Gaussian of this lengthscale and variance changes by next to nothing over the data.

        That is at most two per cent of its variance, and of 1: a term of standardised targets that is many
        times larger than they are bends enough even where it is nearly constant.

        >>> axis = Axis(low=0.0, high=10.0)
        >>> axis.is_flat(50.0), axis.is_flat(50.0, height=600.0), axis.is_flat(40.0)
        (True, False, False)
        """
        if self.span is None:
            return False
        change = -math.expm1(-0.5 * (self.span / length) ** 2)
        return max(height, 1.0) * change <= FLAT


@dataclass(frozen=True)
class Vocabulary:
    """How the columns and the target are spoken.

    `axes` holds the columns in their order; a column that a kernel calls by its name is found by it.
    `target_unit` is the unit of the target, such as "ppm".

    >>> words = Vocabulary.of(["age", "weight"], units={"weight": "kg"})
    >>> words.axis("weight").length(3.0), words.axis(0).name, words.axis(5).name
    ('3 kg', 'age', 'column 5')
    """

    axes: tuple[Axis, ...] = (Axis(),)
    target_unit: str = ""

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None = None,
        *,
        units: Mapping[str, str] | str | None = None,
        ends: Sequence[tuple[float, float]] | None = None,
        target_unit: str = "",
    ) -> Vocabulary:
        """From the names of the columns, their units (one text for all), and where each begins and ends.

        A single column without a name is spoken of without one.
        """
        count = len(names or ends or [""])
        axes = []
        for j in range(count):
            name = _name_of(names, j, count)
            low, high = ends[j] if ends is not None else (None, None)
            axes.append(Axis(name, _unit_of(units, name), low, high))
        return cls(tuple(axes), target_unit)

    def axis(self, column: Column | None) -> Axis:
        """How a column is spoken that a kernel names, or counts; None is the only one."""
        if column is None:
            return self.axes[0]
        if isinstance(column, str):
            named = (axis for axis in self.axes if axis.name == column)
            return next(named, Axis(column))
        if isinstance(column, int) and -len(self.axes) <= column < len(self.axes):
            return self.axes[column]
        return Axis(f"column {column}")

    def amount(self, value: float) -> str:
        """An amount of the target, with its unit."""
        return f"{rounded(value)} {self.target_unit}".strip()


def _name_of(names: Sequence[str] | None, j: int, count: int) -> str:
    if names is not None:
        return str(names[j])
    return "" if count == 1 else f"column {j}"


def _unit_of(units: Mapping[str, str] | str | None, name: str) -> str:
    if units is None:
        return ""
    if isinstance(units, str):
        return units
    return units.get(name, "")
