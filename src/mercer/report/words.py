"""Numbers and names as words of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence

# A name between these is kept together whatever the direction of its letters, and turns nothing around it.
_ISOLATE = "\u2068"
_POP = "\u2069"
_THIN = "\u202f"
LONGEST = 80


def shown(value: float) -> str:
    """A number with four digits, without powers of ten where people would not write them.

    >>> shown(0.0123456), shown(1234567.8), shown(12.0), shown(3e-9)
    ('0.01235', '1\u202f234\u202f568', '12', '3e-09')
    """
    if not math.isfinite(value):
        return str(value)
    if 1e4 <= abs(value) < 1e12:
        return f"{value:,.0f}".replace(",", _THIN)
    return f"{value:.4g}"


def quoted(name: object) -> str:
    """A name in quotes, cut where it is very long.

    >>> quoted("size")
    '“\u2068size\u2069”'
    """
    text = str(name)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    return f"“{_ISOLATE}{text}{_POP}”"


def some_of(names: Sequence[object], most: int = 12) -> str:
    """Names in quotes, the first so many.

    >>> some_of(["a", "b", "c"], 2)
    '“\u2068a\u2069”, “\u2068b\u2069” and 1 more'
    """
    listed = ", ".join(quoted(name) for name in names[:most])
    if len(names) > most:
        return f"{listed} and {len(names) - most} more"
    return listed
