"""A short search by trials: one number after the other, up and down, as long as it gets better.

It begins where the evidence has led, and moves the few numbers that no evidence knows: the machine's own, by
factors of 4 and at last of 2, and all lengthscales together by 2 and at last √2, with C or 1/alpha by the
square of that: a valley of equally smooth functions lies there. Where there was no evidence the first half of
the trials is spread over all numbers, the kernel's too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mercer import clock
from mercer.choose.ascent import SPREAD, Guess, box, cube
from mercer.choose.ledger import Ledger, Trial
from mercer.choose.machines import TUNED
from mercer.choose.sample import Sample
from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.sparse import Matrix
from mercer.typing import Array

# the step of a number
STEP = float(np.log(4.0))

Judge = Callable[[Kernel, dict[str, float]], float]


class Enough(Exception):
    """No more trials."""


class GivenUp(Exception):
    """A trial was so much worse than the best that its last folds were left out; `found` is its score."""

    def __init__(self, found: float, note: str) -> None:
        super().__init__(note)
        self.found = found


@dataclass
class Trials:
    """Trials of a kernel and the machine's numbers, as a function of one vector: theta and logarithms."""

    judge: Judge
    kernel: Kernel
    names: tuple[str, ...]
    rows: int
    most: int
    ledger: Ledger
    seen: dict[tuple[float, ...], float] = field(default_factory=dict)

    def numbers_at(self, v: Array) -> dict[str, float]:
        values = np.exp(v[len(self.kernel.theta) :]).tolist()
        return {name: min(value, TUNED[name]) for name, value in zip(self.names, values, strict=True)}

    def __call__(self, v: Array) -> float:
        """The score at this point; each point is tried once."""
        theta = v[: len(self.kernel.theta)]
        numbers = self.numbers_at(v)
        key = (*theta.round(9).tolist(), *np.round(list(numbers.values()), 12).tolist())
        if key not in self.seen:
            if len(self.seen) >= self.most or self.ledger.over:
                raise Enough
            self.seen[key] = self.tried(self.kernel.with_theta(theta), numbers)
        return self.seen[key]

    def tried(self, kernel: Kernel, numbers: dict[str, float]) -> float:
        began = clock.now()
        note = ""
        score = -np.inf
        try:
            score = self.judge(kernel, numbers)
        except clock.OutOfTime as stop:
            if stop.found is None:
                raise Enough from None
            score = stop.found
            note = "cut short"
            self.ledger.cut = True
        except GivenUp as end:
            score = end.found
            note = str(end)
        except MercerError as error:
            note = str(error)[:80]
        if np.isnan(score):
            score = -np.inf
            note = "no score"
        self.ledger.evaluations += 1
        seconds = clock.now() - began
        self.ledger.add(Trial(kernel, numbers, score, seconds, note, self.ledger.by, self.rows))
        return score


def by_trials(
    judge: Judge,
    trifle: Callable[[], float],
    guess: Guess,
    numbers: dict[str, float],
    sample: Sample,
    trials: int,
    ledger: Ledger,
    seed: int,
    *,
    spread: bool,
    common: bool,
) -> None:
    """Maximise any score over the machine's numbers and the kernel, in so many trials at most.

    `spread`: nothing is known, and the first half of the trials is spread. `common`: of the kernel only its
    lengthscales move, all together. A gain of a `trifle` ends a walk.
    """
    kernel = guess.kernel
    value = Trials(judge, kernel, tuple(numbers), len(sample), trials, ledger)
    best = np.append(kernel.theta, np.log([*numbers.values()]))
    moves = _moves(guess, tuple(numbers), common=common)
    try:
        if spread:
            others = _spread(guess, len(numbers), sample.numbers, (trials + 1) // 2, seed)
            best = max([best, *(best + moves.T @ u for u in others)], key=value)
        climb(value, best, moves, trifle)
    except Enough:
        return


def climb(
    value: Callable[[Array], float], v: Array, moves: Array, trifle: Callable[[], float] = lambda: 0.0
) -> Array:
    """Up along each of the moves in turn as long as it gets better; last by half a step, to the better side.

    Better by a `trifle` is not better: one could walk on for long where the score is flat.

    >>> climb(lambda v: -abs(v[0] - 3.0) - abs(v[1] + 2.0), np.zeros(2), np.eye(2)).round(2).tolist()
    [2.77, -2.08]
    """
    best = value(v)
    moved = bool(len(moves))
    while moved:
        moved = False
        for step in STEP * moves:
            for there in (step, -step):
                before = best
                while (found := value(v + there)) > best + trifle():
                    best = found
                    v = v + there
                if best > before:
                    moved = True
                    break
    for step in STEP * moves:
        side = max((step, -step), key=lambda there: value(v + there))
        there = v + 0.5 * side
        if value(there) > best + trifle():
            best = value(there)
            v = there
    return v


def _moves(guess: Guess, names: tuple[str, ...], *, common: bool) -> Array:
    """The directions of the search, one a row: the machine's numbers first, then the kernel's.

    Each points to where fits cost less, which is tried first: to a smaller C, and to more of the others.
    """
    free = [p for p in guess.kernel.parameters if p.free]
    numbers = len(names)
    cheaper = [-1.0 if name == "C" else 1.0 for name in names]
    own = np.hstack([np.zeros((numbers, len(free))), np.diag(cheaper)])
    if not common:
        moved = guess.path.T.T
        return np.vstack([own, np.hstack([moved, np.zeros((len(moved), numbers))])])
    length = [p.bounds is None and _is_lengthscale(p.name) for p in free]
    if not any(length):
        return own
    # a smooth f costs 1/ℓ² as much of ‖f‖², so that the penalty goes with it
    along = [{"C": 1.0, "alpha": -1.0}.get(name, 0.0) for name in names]
    return np.vstack([own, [*(0.5 * np.array(length)), *along]])


def _is_lengthscale(name: str) -> bool:
    return name.split("__")[-1].split("[")[0] == "lengthscale"


def _spread(guess: Guess, numbers: int, rows: Matrix | None, count: int, seed: int) -> list[Array]:
    """Steps along the moves to points that are spread over the box, and twice SPREAD around each number."""
    low, high = box(Guess(guess.kernel, None, guess.shared), rows)
    wide = np.full(numbers, 2 * SPREAD)
    low = np.append(-wide, low)
    high = np.append(wide, high)
    if not len(low):
        return []
    return [*(low + cube(len(low), count - 1, seed) * (high - low))]
