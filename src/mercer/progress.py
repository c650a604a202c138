"""The one line of progress: what a machine with `verbose` prints while it works, and asks its callback."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[..., Any]


def say(text: str) -> None:
    """Print one line of progress at once.

    >>> say("3 iterations, gap 0.1")
    [mercer] 3 iterations, gap 0.1
    """
    print(f"[mercer] {text}", flush=True)


def teller(verbose: int, words: Callable[..., str], callback: Tell | None = None) -> Tell | None:
    """What a solver calls now and then with its numbers; None where nobody listens.

    It prints what `words` makes of the numbers, if `verbose`. Then the callback is asked; true ends the fit.

    >>> tell = teller(1, lambda steps, gap: f"{steps} steps, gap {gap:.2g}", lambda steps, gap: gap < 0.5)
    >>> tell(7, 0.25)
    [mercer] 7 steps, gap 0.25
    True
    """
    if callback is None and not verbose:
        return None

    def tell(*numbers: object) -> object:
        if verbose:
            say(words(*numbers))
        return None if callback is None else callback(*numbers)

    return tell


class Talk:
    """Lines of progress on standard error for work of unknown length: silent for the first second.

    Of lines that follow each other within a second the first is said, and the others are left out.

    >>> talk = Talk(0)
    >>> talk("nobody hears this")
    """

    SILENCE = 1.0

    def __init__(self, verbose: int = 1) -> None:
        self.verbose = verbose
        self.began = time.monotonic()
        self._last = self.began

    def __call__(self, text: str) -> None:
        """Say a line, if there is something to be waited for."""
        now = time.monotonic()
        if not self.verbose or now - self._last < self.SILENCE:
            return
        self._last = now
        print(f"[mercer] {now - self.began:.0f} s: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def during(self, words: Callable[[], str]) -> Iterator[None]:
        """Say it again and again, from a thread, while something runs in the block that says nothing."""
        done = threading.Event()

        def say() -> None:
            while not done.wait(self.SILENCE):
                self(words())

        thread = threading.Thread(target=say, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
