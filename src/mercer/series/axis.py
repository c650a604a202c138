"""The axis of time: dates or numbers as they are given, and as numbers in a unit that people speak of.

    steps of seconds, minutes, hours, days, weeks     counted in that unit, from the last date
    steps of months, quarters, years                  counted in years, every month a twelfth of one

Zero is the last time of the series, so that the future is positive. Dates that are missing are just not
there: nothing asks for equal steps but the times that are forecast, which go on in the step of the series.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from mercer.errors import InputError
from mercer.tables.roles import date_format
from mercer.typing import Array

Dates = np.ndarray
# Microseconds of each unit, the largest first.
MICROSECONDS = {
    "days": 86_400_000_000,
    "hours": 3_600_000_000,
    "minutes": 60_000_000,
    "seconds": 1_000_000,
}
# Periods of the calendar in each unit.
CALENDAR = {
    "years": (1.0,),
    "days": (7.0, 365.25),
    "hours": (24.0, 168.0, 8766.0),
    "minutes": (60.0, 1440.0, 10080.0, 525_960.0),
    "seconds": (60.0, 3600.0, 86400.0, 604_800.0),
}
# Years that eight or six digits may begin with, to be dates.
YEARS = (1500, 2500)
# An offset from UTC after a time of day.
_OFFSET = re.compile(r":\d\d(?:\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)$")


@dataclass(frozen=True)
class TimeAxis:
    """How times are counted: in which unit, in what steps, and from where.

    `months` is the step in months where the calendar counts in them, else None. `dated` says whether times
    are dates; `zero` is the last time, a number or microseconds since 1970, and `pace` the unit in these.
    """

    unit: str
    step: float
    months: int | None
    dated: bool
    zero: float
    pace: float
    missing: int

    def count(self, times: np.ndarray) -> Array:
        """Times in units from the last time of the series."""
        if not self.dated:
            return np.asarray(times, dtype=np.float64) - self.zero
        if self.months is not None:
            return (_months(times) - self.zero) / 12.0
        micros = times.astype("datetime64[us]").astype(np.int64)
        return np.asarray((micros - self.zero) / self.pace)

    def ahead(self, last: np.datetime64 | np.floating, horizon: int) -> np.ndarray:
        """The times that follow, in the step of the series."""
        numbers = np.arange(1, horizon + 1)
        if not isinstance(last, np.datetime64):
            return np.asarray(float(last) + numbers * self.step)
        start = last.astype("datetime64[us]")
        if self.months is not None:
            return _add_months(start, numbers * self.months)
        micros = np.round(numbers * self.step * self.pace).astype(np.int64)
        return np.asarray(start + micros.astype("timedelta64[us]"))

    def back(self, values: Array) -> np.ndarray:
        """Times from their numbers: dates where times are dates."""
        if not self.dated:
            return np.asarray(values + self.zero)
        if self.months is not None:
            return _from_months(self.zero + 12.0 * np.asarray(values))
        micros = np.round(self.zero + np.asarray(values) * self.pace).astype(np.int64)
        return np.asarray(micros.astype("datetime64[us]"))

    def label(self, value: float) -> str:
        """A point of the axis as people write it."""
        time = self.back(np.array([value]))[0]
        return self.written(time)

    def written(self, time: np.datetime64 | np.floating) -> str:
        """A time as people write it: as much of a date as the steps need."""
        if not isinstance(time, np.datetime64):
            digits = max(0, 1 - math.floor(math.log10(self.step)))
            return f"{float(time):.{digits}f}".rstrip("0").rstrip(".") if digits else f"{float(time):.0f}"
        if self.months is not None:
            return str(time.astype("datetime64[Y]" if self.months % 12 == 0 else "datetime64[M]"))
        if self.unit == "days":
            return str(time.astype("datetime64[D]"))
        return str(time.astype("datetime64[s]")).replace("T", " ")

    @property
    def step_words(self) -> str:
        """The step in words: "month", "7 days", "0.5"."""
        if self.months is not None:
            for months, name in ((12, "year"), (3, "quarter"), (1, "month")):
                if self.months % months == 0:
                    count = self.months // months
                    return name if count == 1 else f"{count} {name}s"
        if self.unit == "years":
            for part, name in ((1.0, "year"), (0.25, "quarter"), (1 / 12, "month"), (7 / 365.25, "week")):
                if abs(self.step / part - 1) < 0.01:
                    return name
        if not self.unit:
            return _short(self.step)
        if math.isclose(self.step, 1.0):
            return self.unit[:-1]
        return f"{_short(self.step)} {self.unit}"

    def steps(self, count: int) -> str:
        """So many steps in words: "24 months", "10 steps of 7 days"."""
        words = self.step_words
        if words[0].isdigit():
            return f"{count} steps of {words}" if count > 1 else f"1 step of {words}"
        return f"{count} {words}s" if count > 1 else f"1 {words}"

    @property
    def whole_days(self) -> bool:
        """Whether times are dates without an hour."""
        return self.dated and (self.months is not None or (self.unit == "days" and self.step.is_integer()))

    @property
    def each_step(self) -> str:
        """Between one time and the next, in words."""
        words = self.step_words
        if words[0].isdigit():
            return f"in {words}"
        return f"from one {words} to the next"

    def calendar_periods(self, span: float) -> tuple[float, ...]:
        """Periods of the calendar that the data hold twice, and that have two steps or more."""
        known = CALENDAR.get(self.unit, ()) if self.dated else ()
        return tuple(period for period in known if 2 * period <= span and period >= 2 * self.step)


def _short(number: float) -> str:
    """Four digits, and a whole number as it is."""
    if number.is_integer() and number < 1e9:
        return f"{number:.0f}"
    return f"{number:.4g}"


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


def column_of(times: object) -> Sequence[object] | np.ndarray:
    """A column of any library as an array or a list."""
    for method in ("to_numpy", "to_list"):
        found = getattr(times, method, None)
        if found is not None:
            column: Sequence[object] | np.ndarray = found()
            return column
    if isinstance(times, str) or not hasattr(times, "__len__"):
        raise InputError(f"times must be a column of dates or numbers; got {times!r:.60}.")
    return times  # type: ignore[return-value]


def read_times(times: Sequence[object] | np.ndarray, name: str = "times") -> np.ndarray:
    """Times as an array of dates (to the microsecond) or of numbers; anything else is refused."""
    array = np.asarray(times)
    if array.ndim != 1:
        raise InputError(f"{name} must be one column; got an array of {array.ndim} dimensions.")
    if array.dtype.kind == "M":
        return _known(array.astype("datetime64[us]"), name)
    if array.dtype.kind in "iuf":
        numbers = array.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if len(bad):
            raise InputError(f"{name} must be finite; entry {bad[0] + 1} is {numbers[bad[0]]}.")
        dates = dates_of_digits(numbers)
        return numbers if dates is None else dates
    return _from_objects(array.tolist(), name)


def dates_of_digits(numbers: Array) -> np.ndarray | None:
    """Whole numbers such as 20240131 or 202401 as dates, if all are dates of one form; else None."""
    if not len(numbers) or np.any(numbers != np.round(numbers)):
        return None
    for parts in (10_000, 100):
        years, rest = np.divmod(numbers.astype(np.int64), parts)
        month, day = np.divmod(rest, 100) if parts == 10_000 else (rest, np.ones_like(rest))
        if np.any((years < YEARS[0]) | (years > YEARS[1]) | (month < 1) | (month > 12) | (day < 1)):
            continue
        months = (12 * (years - 1970) + month - 1).astype("datetime64[M]")
        days = months.astype("datetime64[D]") + (day - 1)
        if np.array_equal(days.astype("datetime64[M]"), months):
            return np.asarray(days.astype("datetime64[us]"))
    return None


def in_utc(times: Sequence[object] | np.ndarray) -> bool:
    """Whether times have several offsets from UTC, as on both sides of a change of clocks."""
    cells = np.asarray(times).tolist() if np.asarray(times).dtype.kind in "OU" else []
    ends = [_OFFSET.search(cell.strip()) for cell in cells if isinstance(cell, str)]
    written = [end.group(1).replace("Z", "+00").replace(":", "") for end in ends if end is not None]
    offsets: set[object] = {offset.ljust(5, "0") for offset in written}
    return len(offsets | {cell.utcoffset() for cell in cells if isinstance(cell, datetime)}) > 1


def _from_objects(cells: list[object], name: str) -> np.ndarray:
    if all(isinstance(cell, datetime) for cell in cells):
        return _known(_in_microseconds(cells), name)  # type: ignore[arg-type]
    dates = [_date_of(cell) for cell in cells]
    if all(cell is not None for cell in dates):
        return _known(np.array(dates, dtype="datetime64[us]"), name)
    texts = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
    for i, text in enumerate(texts):
        if not text:
            raise InputError(
                f"{name}: entry {i + 1} is {cells[i]!r}, which is no date and no number. Leave the row out."
            )
    parsed = dates_of_texts(texts)
    if parsed is None:
        strange = next((text for text in texts if dates_of_texts([text]) is None), None)
        if strange is None:
            other = next(text for text in texts if dates_of_texts([texts[0], text]) is None)
            raise InputError(
                f"{name} are dates in several forms: {texts[0]!r} and {other!r}. Write all in one form."
            )
        raise InputError(
            f"{name} must be dates or numbers; {strange!r} is neither. Write dates as year-month-day, "
            "and all in one form."
        )
    return parsed


def dates_of_texts(texts: Sequence[str]) -> np.ndarray | None:
    """Texts as dates, if all are dates of one form; else None."""
    found, format = date_format(texts)
    if found and format is None:
        moments = [datetime.fromisoformat(text.strip()) for text in texts]
        return _in_microseconds(moments)
    if format is None:
        return None
    return _in_microseconds([datetime.strptime(text.strip(), format) for text in texts])


def _in_microseconds(moments: list[datetime]) -> np.ndarray:
    """Moments as their clocks show them, or in UTC where these differ."""
    # what is no time at all, as that of pandas, is not itself
    offsets = {moment.utcoffset() for moment in moments if moment == moment}
    if len(offsets) > 1 and None in offsets:
        bare = next(moment for moment in moments if moment.tzinfo is None)
        raise InputError(f"some times have a zone, and {bare} has none. Give all of them one, or none.")
    if len(offsets) > 1:
        moments = [moment.astimezone(UTC) for moment in moments]
    return np.array([moment.replace(tzinfo=None) for moment in moments], dtype="datetime64[us]")


def _date_of(cell: object) -> np.datetime64 | None:
    if isinstance(cell, np.datetime64):
        return cell
    if isinstance(cell, datetime):
        return np.datetime64(cell.replace(tzinfo=None), "us")
    if isinstance(cell, date):
        return np.datetime64(cell, "us")
    return None


def _known(dates: np.ndarray, name: str) -> np.ndarray:
    bad = np.flatnonzero(np.isnat(dates))
    if len(bad):
        raise InputError(f"{name}: entry {bad[0] + 1} is no date. Leave the row out.")
    return dates


def axis_of(times: np.ndarray, unit: str = "") -> TimeAxis:
    """The axis of times that rise: in which unit and steps they are counted."""
    if times.dtype.kind != "M":
        step = _usual_step(np.diff(times))
        missing = _missing(np.diff(times), step)
        return TimeAxis(unit, step, None, False, float(times[-1]), 1.0, missing)
    months = _months_apart(times)
    if months is not None:
        steps = np.diff(_months(times)) / 12.0
        missing = _missing(steps, months / 12.0)
        return TimeAxis("years", months / 12.0, months, True, float(_months(times)[-1]), 1.0, missing)
    micros = times.astype(np.int64)
    steps = np.diff(micros).astype(np.float64)
    usual = _usual_step(steps)
    unit, pace = next(
        ((name, size) for name, size in MICROSECONDS.items() if usual >= 0.999 * size), ("seconds", 1_000_000)
    )
    missing = _missing(steps, usual)
    return TimeAxis(unit, usual / pace, None, True, float(micros[-1]), float(pace), missing)


def _usual_step(steps: Array) -> float:
    """The mean of steps that are nearly equal, else the most common one, else the median."""
    if steps.max() <= 1.5 * steps.min():
        return float(steps.mean())
    values, counts = np.unique(np.round(steps, 9), return_counts=True)
    if counts.max() >= 0.5 * len(steps):
        return float(values[np.argmax(counts)])
    near = np.median(steps)
    return float(steps[np.abs(steps - near) <= 0.2 * near].mean())


def _missing(steps: Array, step: float) -> int:
    """How many times are missing between the others, where most steps are equal."""
    return int(np.maximum(np.round(steps / step) - 1, 0).sum())


def _months(dates: np.ndarray) -> Array:
    """Months since 1970, with the part of the month that has passed."""
    whole = dates.astype("datetime64[M]")
    length = (whole + 1).astype("datetime64[us]") - whole.astype("datetime64[us]")
    passed = (dates - whole.astype("datetime64[us]")) / length
    return np.asarray(whole.astype(np.int64) + passed)


def _from_months(months: Array) -> np.ndarray:
    whole = np.floor(months + 1e-9).astype(np.int64).astype("datetime64[M]")
    first = whole.astype("datetime64[us]")
    length = ((whole + 1).astype("datetime64[us]") - first).astype(np.int64)
    passed = np.maximum(months - np.floor(months + 1e-9), 0.0)
    return np.asarray(first + np.round(passed * length).astype(np.int64).astype("timedelta64[us]"))


def _months_apart(dates: np.ndarray) -> int | None:
    """How many months lie between the dates, where the calendar counts in months; else None."""
    days = dates.astype("datetime64[D]")
    in_month = (days - days.astype("datetime64[M]")).astype(np.int64)
    last = ((days.astype("datetime64[M]") + 1).astype("datetime64[D]") - days).astype(np.int64)
    same_day = np.all(in_month == in_month[0])
    month_ends = np.all(last == 1)
    same_hour = np.all(dates - days == (dates - days)[0])
    if not same_hour or not (same_day or month_ends):
        return None
    apart = np.diff(days.astype("datetime64[M]").astype(np.int64))
    if apart.min() < 1:
        return None
    return int(np.gcd.reduce(apart))


def _add_months(start: np.datetime64, months: np.ndarray) -> np.ndarray:
    """Dates so many months on; the last day of a month stays the last."""
    day = start.astype("datetime64[D]")
    first = start.astype("datetime64[M]")
    was_end = (day + 1).astype("datetime64[M]") != first
    offset = start - first.astype("datetime64[us]")
    out = []
    for count in months.tolist():
        month = first + count
        end = (month + 1).astype("datetime64[D]") - 1
        moment = month.astype("datetime64[us]") + offset
        if was_end or moment.astype("datetime64[M]") != month:
            moment = end.astype("datetime64[us]") + (start - day.astype("datetime64[us]"))
        out.append(moment)
    return np.array(out)
