"""Amounts of memory: read from text, written for people, and refused when too large."""

from __future__ import annotations

import math
import operator
import re
from functools import lru_cache

from mercer.errors import ParameterError
from mercer.typing import Memory

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{p}b": 1000**i for i, p in enumerate("kmgtp", 1)}
_UNITS |= {f"{p}ib": 1024**i for i, p in enumerate("kmgtp", 1)}


def memory_limit(value: Memory, name: str = "memory") -> int:
    """An amount of memory in bytes, from a number or from text.

    >>> memory_limit("1GiB"), memory_limit("500 MB"), memory_limit(4096)
    (1073741824, 500000000, 4096)
    """
    if isinstance(value, str):
        number = _bytes(value)
        if number is not None:
            return number
    elif not isinstance(value, bool):
        try:
            size = operator.index(value)
        except TypeError:
            size = -1
        if size >= 0:
            return size
    raise ParameterError(
        f"{name} must be a number of bytes, or text such as '1GiB', '500MB' or '64KiB'; got {value!r}."
    )


@lru_cache(maxsize=64)
def _bytes(text: str) -> int | None:
    """The amount that a text names; None where it names none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if found is None or found[2].lower() not in _UNITS:
        return None
    return int(float(found[1]) * _UNITS[found[2].lower()])


def say_bytes(size: int) -> str:
    """A number of bytes for people.

    >>> say_bytes(3 * 2**30), say_bytes(2**1000)
    ('3 GiB', 'about 10^301 bytes')
    """
    if size >= 2**70:
        return f"about 10^{math.floor(math.log10(size))} bytes"
    amount = float(size)
    unit = "bytes"
    for bigger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if amount < 1024:
            break
        amount /= 1024
        unit = bigger
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"


def say_count(count: int) -> str:
    """A whole number for people, however large.

    >>> say_count(33_670), say_count(2**1000)
    ('33,670', 'about 10^301')
    """
    if count < 10**15:
        return f"{count:,}"
    return f"about 10^{math.floor(math.log10(count))}"
