"""What the columns of a table are, by their type and their values.

number      numbers that vary
category    few different values
date        dates, or text that is always one
text        many different texts
left out    one value only, or the name of the row: nothing can be learned from it
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np

from mercer.errors import InputError
from mercer.frames import without_gaps
from mercer.kernels.things.dates import Date
from mercer.typing import Array

# Text with at most so many different values is a category, or with at most this share of the rows.
FEW_VALUES = 30
FEW_SHARE = 0.02
# Ways to write a date that are tried, the first that reads every value is taken.
FORMATS = (
    None,
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%b %d, %Y",
    "%d %b %Y",
    "%m/%d/%y",
    # months: their first day
    "%Y-%m",
    "%m/%Y",
    "%b %Y",
    "%Y %b",
    "%B %Y",
)
# The signs of a format of dates, in words.
DATE_WORDS = {
    "%Y": "year",
    "%y": "year of two digits",
    "%m": "month",
    "%b": "month",
    "%B": "month",
    "%d": "day",
    "%H": "hour",
    "%M": "minute",
}
_IDENTIFIER = re.compile(r"(^|[\s_])(id|no|nr|index|uuid|key|rownames?)$|[a-z]I[Dd]$", re.IGNORECASE)


@dataclass(frozen=True)
class Role:
    """What one column is, and why; `gaps` of its values are missing."""

    column: str
    kind: str
    why: str
    gaps: int = 0
    distinct: int = 0
    format: str | None = None


def role_of(column: str, values: Sequence[object] | Array) -> Role:
    """What a column is.

    >>> role_of("colour", ["red", "blue", "red", None]).why
    '2 different values'
    >>> role_of("when", ["02/21/2006", "07/19/2004"]).format
    '%m/%d/%Y'
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return _role_of_floats(column, values)
    known = [cell for cell in without_gaps(list(values)) if cell is not None]
    gaps = len(values) - len(known)
    # asked of each type once: a column has few of them
    strange = {kind for kind in set(map(type, known)) if not issubclass(kind, Hashable)}
    odd = [cell for cell in known if type(cell) in strange] if strange else []
    if odd:
        raise InputError(
            f"column {column!r} holds a {type(odd[0]).__name__}, {odd[0]!r:.60}: a table has numbers, text, "
            "dates and truth values in its cells. Leave the column out, or turn it into such columns."
        )
    distinct = len(set(known))
    if distinct <= 1 and (gaps == 0 or not known):
        why = "no value at all" if not known else "one value only"
        return Role(column, "left out", why, gaps, distinct)
    numbers = _as_numbers(known)
    if numbers is not None:
        return _role_of_numbers(column, numbers, gaps, distinct)
    if all(isinstance(cell, date | np.datetime64) for cell in known):
        return Role(column, "date", "dates", gaps, distinct)
    return _role_of_text(column, [str(cell) for cell in known], gaps, distinct)


def in_words(format: str) -> str:
    """A format of dates as people say it.

    >>> in_words("%m/%d/%Y"), in_words("%d.%m.%y %H:%M")
    ('month/day/year', 'day.month.year of two digits hour:minute')
    """
    for sign, word in DATE_WORDS.items():
        format = format.replace(sign, word)
    return format


def _role_of_floats(column: str, values: np.ndarray) -> Role:
    """The role of a column of numbers, NaN where one is missing, all values at once."""
    known = values[~np.isnan(values)]
    gaps = len(values) - len(known)
    distinct = len(np.unique(known))
    if distinct <= 1 and (gaps == 0 or not distinct):
        why = "one value only" if distinct else "no value at all"
        return Role(column, "left out", why, gaps, distinct)
    return _role_of_numbers(column, known, gaps, distinct)


def _role_of_numbers(column: str, numbers: np.ndarray, gaps: int, distinct: int) -> Role:
    if distinct <= 2:
        return Role(column, "category", _values(distinct), gaps, distinct)
    whole = bool(np.all(numbers == np.round(numbers)))
    if whole and distinct == len(numbers) and gaps == 0:
        rising = bool(np.all(np.diff(numbers) > 0) or np.all(np.diff(numbers) < 0))
        if rising or _IDENTIFIER.search(column):
            return Role(
                column, "left out", "a different whole number in each row, as in a key", gaps, distinct
            )
    return Role(column, "number", f"numbers from {numbers.min():g} to {numbers.max():g}", gaps, distinct)


def _role_of_text(column: str, texts: list[str], gaps: int, distinct: int) -> Role:
    found, format = date_format(texts)
    if found:
        written = "year-month-day" if format is None else in_words(format)
        return Role(column, "date", f"text that is always a date ({written})", gaps, distinct, format)
    if distinct == len(texts) and gaps == 0 and _IDENTIFIER.search(column):
        return Role(column, "left out", "a different text in each row, as in a key", gaps, distinct)
    if distinct <= max(FEW_VALUES, FEW_SHARE * len(texts)):
        return Role(column, "category", _values(distinct), gaps, distinct)
    return Role(column, "text", f"{distinct} different texts", gaps, distinct)


def _values(distinct: int) -> str:
    return "1 value, or missing" if distinct == 1 else f"{distinct} different values"


def _as_numbers(known: Sequence[object]) -> np.ndarray | None:
    """The values as numbers, if all are; text that looks like a number is not one."""
    if all(isinstance(v, int | float | np.integer | np.floating | np.bool_) for v in known):
        return np.array(known, dtype=float)
    return None


def date_format(texts: Sequence[str]) -> tuple[bool, str | None]:
    """Whether every text is a date, and in which form."""
    if not all(any(c.isdigit() for c in text) and len(text.strip()) >= 6 for text in texts[:50]):
        return False, None
    for format in FORMATS:
        if all(_is_date(text, format) for text in texts):
            return True, format
    return False, None


def _is_date(text: str, format: str | None) -> bool:
    try:
        if format is None:
            datetime.fromisoformat(text.strip())
        else:
            datetime.strptime(text.strip(), format)
    except ValueError:
        return False
    return True


def date_reading(role: Role) -> Date:
    """How the dates of a column are read as years; what is missing stays so."""
    return Date("years", role.format, gaps="keep")
