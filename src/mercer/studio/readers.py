"""Values of JSON, checked one by one: what is not as it should be is refused with a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mercer.errors import InputError

Json = dict[str, Any]


def record(value: object, name: str, known: Sequence[str]) -> Json:
    """An object of JSON with no other keys than these."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be an object; got {_shown(value)}.")
    strange = [key for key in value if key not in known]
    if strange:
        raise InputError(f"{name} has the unknown entry {_shown(strange[0])}. Known are {', '.join(known)}.")
    return dict(value)


def number(value: object, name: str, low: float = -1e12, high: float = 1e12) -> float:
    """A finite number between two others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} must be a number; got {_shown(value)}.")
    if not low <= value <= high:
        raise InputError(f"{name} must be between {low:g} and {high:g}; got {value:g}.")
    return float(value)


def whole(value: object, name: str, low: int, high: int) -> int:
    """A whole number between two others, both included."""
    found = number(value, name, low, high)
    if found != int(found):
        raise InputError(f"{name} must be a whole number; got {found:g}.")
    return int(found)


def text(value: object, name: str, most: int) -> str:
    """Text that is not too long."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text; got {_shown(value)}.")
    if len(value) > most:
        raise InputError(f"{name} has {len(value)} characters, and at most {most} are read.")
    return value


def one_of(value: object, name: str, known: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}; got {_shown(value)}.")
    return value


def items(value: object, name: str, most: int) -> list[Any]:
    """A list that is not too long."""
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list; got {_shown(value)}.")
    if len(value) > most:
        raise InputError(f"{name} has {len(value)} entries, and the studio takes at most {most}.")
    return value


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    return f"{value!r:.40}"
