"""The trials of a search, the seconds they are paid from, and the line that tells of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from mercer.kernels.base import Kernel
from mercer.progress import Talk, say
from mercer.solve.anytime import Anytime

# seconds that a fit gets when the budget is used up
LEAST = 1e-3


@dataclass(frozen=True)
class Trial:
    """One kernel that was tried (or tuned from one start): its parameters, its score and the time it took.

    `by` is the criterion of the score, and `rows` on how many rows it was computed: only scores of one
    criterion on the same rows can be compared.
    """

    kernel: Kernel
    parameters: dict[str, float]
    score: float
    seconds: float
    note: str = ""
    by: str = ""
    rows: int = 0

    def __str__(self) -> str:
        text = f"{self.by} {self.score:.6g}  {self.kernel}".lstrip()
        for name, value in self.parameters.items():
            text += f", {name} {value:.4g}"
        return f"{text}  ({self.note})" if self.note else text


@dataclass
class Ledger:
    """The trials so far, and the budget they are paid from.

    `by` is the criterion that decides: a trial by another one, with which a search begins, is the best only
    as long as there is nothing else. The fit at the end, of so many `rows`, is paid from the seconds too:
    `cost` is what the trials so far let one expect of it, at most half of all. `most` is how many trials
    there will be at most, where that is known.
    """

    by: str
    rows: int
    max_seconds: float | None = None
    verbose: int = 0
    most: int | None = None
    cost: float = 0.0
    # Whether the seconds ended a trial before its own end.
    cut: bool = False
    trials: list[Trial] = field(default_factory=list)
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.run = Anytime[Trial](self.max_seconds)
        self.talk = Talk(int(self.verbose >= 0))

    @property
    def seconds(self) -> float:
        return self.run.seconds

    @property
    def spent(self) -> bool:
        if self.max_seconds is None:
            return False
        return self.seconds + min(self.cost, 0.5 * self.max_seconds) >= self.max_seconds

    @property
    def over(self) -> bool:
        """Whether the search must end: the seconds are spent, and there is something to end with."""
        return self.spent and self.best is not None

    @property
    def left(self) -> float | None:
        """Seconds that are left; None if there is no limit."""
        if self.max_seconds is None:
            return None
        return max(self.max_seconds - self.seconds, LEAST)

    @property
    def best(self) -> Trial | None:
        return self.run.best

    def expect(self, seconds: float, rows: float) -> None:
        """A fit of so many rows took so long; one costs n² at least, and a factor n³."""
        self.cost = seconds * (self.rows / rows) ** 2

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if np.isfinite(trial.score) and (self.best is None or self.rank(trial) > self.rank(self.best)):
            self.run.best = trial
        if self.verbose > 0:
            say(f"trial {len(self.trials)}: {trial}")
        self.tell()

    def rank(self, trial: Trial) -> tuple[bool, int, float]:
        """Trials by the criterion that decides come first, of those with the most rows, by their scores."""
        return trial.by == self.by, trial.rows, trial.score

    def ranked(self) -> tuple[Trial, ...]:
        """All trials, the best first."""
        return tuple(sorted(self.trials, key=self.rank, reverse=True))

    # ── lines of progress ───────────────────────────────────────────────────────────────────────────────────

    def tell(self) -> None:
        """Show how far the search is, after its first second."""
        self.talk(self._words())

    def telling(self) -> AbstractContextManager[None]:
        """Show it again and again while something runs that does not tell by itself."""
        return self.talk.during(self._words)

    def _words(self) -> str:
        begun = "no score yet"
        if self.best is not None:
            begun = f"best {self.best.by} {self.best.score:.5g}"
        deciding = [trial for trial in self.trials if trial.by == self.by]
        done = f"{len(deciding)} trials"
        if self.most is not None:
            done = f"{len(deciding)} of at most {self.most} trials"
        text = f"choose by {self.by}: {done}, {begun}"
        left = self._seconds_left(deciding)
        return text if left is None else f"{text}, at most {left:.0f} s left"

    def _seconds_left(self, deciding: list[Trial]) -> float | None:
        """What is left of the limit, or what the trials to come will take if they are like those so far."""
        if self.max_seconds is not None:
            return self.left
        if self.most is None or not deciding:
            return None
        each = float(np.mean([trial.seconds for trial in deciding]))
        return max(self.most - len(deciding), 0) * each + self.cost
