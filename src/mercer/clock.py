"""One clock for every limit of seconds: `max_seconds` opens it, and whatever runs inside asks what is left.

The end is kept with the running code (a context variable), so that it reaches every solver below a fit
without being passed along, and a limit inside another can only be shorter. Threads see it if they are started
in a copy of the context.

One rule keeps the end: a step whose cost is known and does not fit in what is left is not begun, if there is
something to end with, and who has to certify what was found leaves the seconds for it (`short_of`, with the
cost as it was measured before).
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

_end: ContextVar[float] = ContextVar("end of the seconds allowed", default=math.inf)


class OutOfTime(Exception):
    """The seconds are used up in the middle of something; `found` is what there is of it, if anything."""

    def __init__(self, found: object = None) -> None:
        super().__init__("the seconds are used up")
        self.found: Any = found


def now() -> float:
    """Seconds of a clock that only goes forward; every limit reads this one."""
    return time.perf_counter()


def within(seconds: object) -> ending:
    """Let what runs inside end after so many seconds, or earlier where an outer limit is shorter.

    None, and what is not a number, sets no limit.

    >>> with within(60.0), within(3600.0):
    ...     59 < left() <= 60, late()
    (True, False)
    >>> left() is None
    True
    """
    return ending(until(seconds))


class ending:
    """Let what runs inside end then, a moment that `until` named."""

    def __init__(self, end: float) -> None:
        self.end = end

    def __enter__(self) -> None:
        self.before = _end.set(self.end)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _end.reset(self.before)


def until(seconds: object = None) -> float:
    """When the seconds end: those given or those of the limit around them; infinity for no limit.

    The earlier end counts. What is not a number sets no limit here: whoever owns the parameter refuses it.
    """
    if seconds is None or isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        return _end.get()
    return min(_end.get(), now() + max(float(seconds), 0.0))


def left(seconds: object = None, least: float = 0.0) -> float | None:
    """What is left of the seconds, `least` if nothing is; None for no limit."""
    end = until(seconds)
    if end == math.inf:
        return None
    return max(end - now(), least)


def limited() -> bool:
    """Whether there is a limit at all: only then is it worth while to measure what a step costs."""
    return _end.get() < math.inf


def late() -> bool:
    """Whether the seconds are used up."""
    return now() >= _end.get()


def in_time(things: Iterable[T]) -> Iterator[T]:
    """The things one by one, as long as there are seconds left.

    >>> with within(0.0):
    ...     list(in_time([1, 2]))
    []
    """
    for thing in things:
        if late():
            return
        yield thing


def short_of(seconds: float) -> bool:
    """Whether what takes so many seconds would end too late, and had better not be begun.

    >>> with within(60.0):
    ...     short_of(59.0), short_of(61.0)
    (False, True)
    """
    return now() + seconds >= _end.get()
