"""The one context of all that goes round: seconds and Ctrl-C end it, and the best answer so far is kept.

    with Anytime(max_seconds) as run:
        while True:
            run.best = improved(run.best)
            if good_enough(run.best):
                run.status = Status.CONVERGED
                break
            if clock.late():
                break
    return run.best, run.status, run.seconds

Inside the block every question to `mercer.clock` is answered by this limit, or by one around it that ends
earlier: no solver below has to be told what is left. Ctrl-C leaves the block with the status "interrupted"
where there is something to keep, and goes on as what it is where there is nothing yet.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, Self, TypeVar

from mercer import clock
from mercer.solve.solution import Status

Best = TypeVar("Best")


class Anytime(Generic[Best]):
    """A run that can be ended at any time.

    `best` is what is kept: None where there is nothing yet. Who works in place on something that is usable
    from the beginning gives it at the beginning. `status` says how the run ended: "limit" unless the block
    says otherwise, "interrupted" after Ctrl-C. Seconds count from the moment that the run is made.

    >>> with Anytime[int]() as run:
    ...     run.best = 1
    ...     raise KeyboardInterrupt
    >>> run.best, run.status
    (1, 'interrupted')
    >>> with Anytime[int](max_seconds=0.0) as run:
    ...     late = clock.late()
    >>> late, run.status, clock.late()
    (True, 'limit', False)
    """

    def __init__(self, max_seconds: float | None = None, best: Best | None = None) -> None:
        self.began = clock.now()
        self.best = best
        self.status: Status = Status.LIMIT
        self._end: float | None = None
        self._limit: AbstractContextManager[None] | None = None
        if max_seconds is not None:
            self._end = clock.until(max_seconds)

    def __enter__(self) -> Self:
        if self._end is not None:
            self._limit = clock.ending(self._end)
            self._limit.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._limit is not None:
            self._limit.__exit__(None, None, None)
            self._limit = None
        if not isinstance(error, KeyboardInterrupt) or self.best is None:
            return False
        self.status = Status.INTERRUPTED
        return True

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it, here or in what ran inside."""
        return self.status == Status.INTERRUPTED

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return clock.now() - self.began
