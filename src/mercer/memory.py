"""Memory: amounts, read from text and written for people; room for arrays, placed where cache lines start."""

from __future__ import annotations

import math
import operator
import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mercer.errors import ParameterError
from mercer.typing import Array, Memory

_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{p}b": 1000**i for i, p in enumerate("kmgtp", 1)}
_UNITS |= {f"{p}ib": 1024**i for i, p in enumerate("kmgtp", 1)}

# Bytes of a cache line, and of an array from which its place matters.
LINE = 64
PLACED = 1 << 20


def room(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
    """An array that holds anything yet. A large one starts where a cache line does.

    NumPy places large arrays 16 bytes behind such a start. Then every row of a matrix begins and ends inside
    a line, and registers as wide as a line straddle two of them.

    >>> A = room((600, 300))
    >>> A.shape, A.dtype, A.__array_interface__["data"][0] % 64
    ((600, 300), dtype('float64'), 0)
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < PLACED:
        return np.empty(shape, kind)
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.__array_interface__["data"][0] % LINE
    return raw[start : start + size].view(kind).reshape(shape)


def memory_limit(value: Memory) -> int:
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
        f"memory must be a number of bytes, or text such as '1GiB', '500MB' or '64KiB'; got {value!r}."
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
