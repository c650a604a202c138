"""The one line of progress: what a machine with `verbose` prints while it works, and asks its callback."""

from __future__ import annotations

from collections.abc import Callable
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
