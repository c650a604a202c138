"""The way up along gradients: several starts on few rows, those that meet ended, the best one on more rows.

A start is ended as soon as it comes to where an earlier one has ended, no lower: within SAME in every number
of theta, some twenty per cent of a positive parameter, and within SAME_NOISE in log λ. It would end there
too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from mercer import clock
from mercer.arrays import Rows
from mercer.choose.criteria import CRITERIA, Criterion, Score, unit
from mercer.choose.ledger import Ledger, Trial
from mercer.choose.lengthscales import scales
from mercer.choose.sample import Sample
from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.moves import Path, search_path
from mercer.sparse import Matrix
from mercer.typing import Array

# how far log λ may go from its start: a factor of 1e5
REACH = 11.5
# how far the starts lie from the first guess at least, in units of theta: a factor of 12
SPREAD = 2.5
# two starts are the same where no number of theta differs by more, and log λ by no more than a factor of e
SAME = 0.2
SAME_NOISE = 1.0
# and where the later one is not higher by more, in units of the criterion
TRIFLE = 1e-4
# rows on which a search costs little: several starts
FEW = 400
# the gain, in units of the criterion, below which a step is the last: on the way, and at the end
ON_THE_WAY = 1e-5
AT_THE_END = 1e-9
# the same at the end of a search on more rows than FEW
AT_THE_END_OF_MANY = 1e-6
# the cost of a point where K + λI cannot be factored
NO_SCORE = 1e12

Numbers = Callable[[float, float], dict[str, float]]
"""The machine's numbers for a height and a noise λ of the kernel."""


@dataclass(frozen=True, eq=False)
class Guess:
    """Where a search along gradients begins.

    `noise` is the first guess of λ, None where λ is not tuned. With `shared` the lengthscales of the columns
    move together and keep their ratios.
    """

    kernel: Kernel
    noise: float | None = None
    shared: bool = False

    @cached_property
    def path(self) -> Path:
        return search_path(self.kernel, self.kernel.theta, shared=self.shared)

    @property
    def moves(self) -> int:
        """How many numbers of the kernel move."""
        return len(self.path.names)

    @property
    def point(self) -> Array:
        """Where the search begins: no move of the kernel, and log λ where it is tuned."""
        still = np.zeros(self.moves)
        return still if self.noise is None else np.append(still, np.log(self.noise))

    def limits(self) -> list[tuple[float | None, float | None]]:
        limits = self.path.limits()
        if self.noise is not None:
            first = float(np.log(self.noise))
            limits.append((first - REACH, first + REACH))
        return limits

    def kernel_at(self, point: Array) -> Kernel:
        return self.kernel.with_theta(self.path.theta(point[: self.moves]))

    def noise_at(self, point: Array) -> float:
        return 0.0 if self.noise is None else float(np.exp(point[-1]))

    def coordinates(self, point: Array) -> Array:
        """Theta, and log λ where it is tuned: the same whatever moves together."""
        theta = self.path.theta(point[: self.moves])
        return np.append(theta, point[self.moves :])

    def slope(self, point: Array, found: Score) -> Array:
        moved = self.path.slope(point[: self.moves], found.theta)
        return moved if self.noise is None else np.append(moved, found.noise)

    def moved_to(self, point: Array) -> Guess:
        noise = None if self.noise is None else self.noise_at(point)
        return Guess(self.kernel_at(point), noise, self.shared)


@dataclass(frozen=True)
class Stage:
    """So many rows, with the lengthscales of columns together or each for itself."""

    rows: int
    shared: bool
    gain: float


class _Met(Exception):
    """A search has come to where an earlier one ended."""


@dataclass(eq=False)
class _Ascent:
    """The way of L-BFGS from one start: every step is entered in the ledger, and the best point is kept."""

    criterion: Criterion
    guess: Guess
    rows: Rows
    Y: Array
    unit: float
    ledger: Ledger
    point: Array
    earlier: list[_Ascent]
    relative: bool = False
    note: str = ""
    score: float = -np.inf
    height: float = 1.0

    def run(self, gain: float) -> None:
        """Climb, and note what went wrong, if anything did."""
        start = self.point
        try:
            if len(start):
                options = {"maxiter": 100, "ftol": gain, "gtol": 1e-6}
                minimize(
                    self.cost, start, jac=True, method="L-BFGS-B", bounds=self.guess.limits(), options=options
                )
            else:
                self.cost(start)
        except clock.OutOfTime:
            self.note = "cut short"
            self.ledger.cut = True
        except _Met as met:
            self.note = str(met)
        if not self.note and not np.isfinite(self.score):
            self.note = "K + λI could not be factored"

    def cost(self, point: Array) -> tuple[float, Array]:
        """Minus the score, and minus its gradient."""
        if self.ledger.spent and np.isfinite(self.score):
            raise clock.OutOfTime
        self.ledger.evaluations += 1
        self.ledger.tell()
        began = self.ledger.seconds
        try:
            found = self.criterion(self.guess.kernel_at(point), self.guess.noise_at(point), self.rows, self.Y)
        except clock.OutOfTime as stop:
            self.ledger.expect(self.ledger.seconds - began, len(self.Y))
            if stop.found is not None and stop.found.value > self.score:
                self.keep(point, stop.found)
            raise
        except (MercerError, np.linalg.LinAlgError):
            return NO_SCORE, np.zeros(len(point))
        self.ledger.expect(self.ledger.seconds - began, len(self.Y))
        if not np.isfinite(found.value):
            return NO_SCORE, np.zeros(len(point))
        if found.value > self.score:
            self.keep(point, found)
        self.meet(point, found.value)
        if found.value < 0 and self.relative:
            # the logarithm of an error, so that a gain is a share of it
            return float(np.log(-found.value)), self.guess.slope(point, found) / found.value
        return -found.value / self.unit, -self.guess.slope(point, found) / self.unit

    def keep(self, point: Array, found: Score) -> None:
        self.score = found.value
        self.point = point.copy()
        self.height = found.height

    def meet(self, point: Array, score: float) -> None:
        """End here if an earlier search has ended near by, and no lower."""
        free = len(self.guess.kernel.theta)
        for number, other in enumerate(self.earlier, 1):
            if other.note or score > other.score + TRIFLE * self.unit:
                continue
            way = np.abs(self.guess.coordinates(point) - self.guess.coordinates(other.point))
            if (way[:free] <= SAME).all() and (way[free:] <= SAME_NOISE).all():
                raise _Met(f"met start {number}")

    def trial(self, by: str, numbers: Numbers, seconds: float) -> Trial:
        kernel = self.guess.kernel_at(self.point)
        found: dict[str, float] = {}
        if np.isfinite(self.score):
            found = numbers(self.height, self.guess.noise_at(self.point))
        return Trial(kernel, found, float(self.score), seconds, self.note, by, len(self.Y))


def along_gradients(
    by: str,
    guess: Guess,
    sample: Sample,
    Y: Array,
    stages: list[Stage],
    starts: int,
    numbers: Numbers,
    ledger: Ledger,
    seed: int,
) -> Trial | None:
    """Maximise a criterion over theta, and over log λ where it is tuned, by L-BFGS.

    Several starts in the first stage; the best of them goes on in the others. What the last stage found, None
    where no start has a score.
    """
    best: Trial | None = None
    for number, stage in enumerate(stages):
        guess = replace(guess, shared=stage.shared)
        rows, T = sample.part(stage.rows, Y, seed)
        points = [guess.point]
        if number == 0:
            points = start_points(guess, sample.numbers, starts, seed)
        done: list[_Ascent] = []
        for point in points:
            if ledger.over:
                return best
            began = clock.now()
            ascent = _Ascent(CRITERIA[by], guess, rows, T, unit(by, T), ledger, point, done, by == "loo")
            ascent.run(stage.gain)
            ledger.add(ascent.trial(by, numbers, clock.now() - began))
            done = [*done, ascent]
        top = max(done, key=lambda ascent: ascent.score)
        if not np.isfinite(top.score):
            return best
        best = top.trial(by, numbers, 0.0)
        guess = guess.moved_to(top.point)
    return best


def stages(most: int, *, lists: bool, each: bool, at_the_end: bool) -> list[Stage]:
    """The rows of a search, one after the other: few, then as many as are given.

    Lengthscales of columns (`lists`) move together first, and then, if `each`, for themselves. `at_the_end`:
    whether this is the end of the search, or a beginning that need not be exact.
    """
    few = min(most, FEW)
    found = [Stage(few, lists, ON_THE_WAY)]
    if lists and each:
        found.append(Stage(few, False, ON_THE_WAY))
    if most > few:
        found.append(Stage(most, lists and not each, ON_THE_WAY))
    if not at_the_end:
        return found
    gain = AT_THE_END if most <= FEW else AT_THE_END_OF_MANY
    return [*found[:-1], replace(found[-1], gain=gain)]


def box(guess: Guess, numbers: Matrix | None) -> tuple[Array, Array]:
    """Where to begin: SPREAD around the first guess, twice that for log λ.

    A lengthscale is sought among all that these rows can tell apart, from half the distance of neighbours to
    twice the largest one; of rows that are no numbers no distance is known.
    """
    theta = guess.kernel.theta
    low = np.full(len(theta), -SPREAD)
    high = np.full(len(theta), SPREAD)
    if numbers is not None:
        known = scales(numbers)
        for j, p in enumerate([p for p in guess.kernel.parameters if p.free]):
            if p.bounds is None and p.name.split("__")[-1].split("[")[0] == "lengthscale":
                low[j] = min(low[j], np.log(known.nearest / 2) - theta[j])
                high[j] = max(high[j], np.log(2 * known.widest) - theta[j])
    # What moves together has the mean of its ends.
    share = guess.path.T / np.maximum(guess.path.T.sum(axis=0), 1.0)
    low = share.T @ low
    high = share.T @ high
    if guess.noise is None:
        return low, high
    middle = np.log(guess.noise)
    return np.append(low, middle - 2 * SPREAD), np.append(high, middle + 2 * SPREAD)


def start_points(guess: Guess, numbers: Matrix | None, count: int, seed: int) -> list[Array]:
    """The first guess, and points of a scrambled Sobol sequence in the box."""
    first = guess.point
    if count <= 1 or not len(first):
        return [first]
    low, high = box(guess, numbers)
    return [first, *(low + cube(len(first), count - 1, seed) * (high - low))]


def cube(dimension: int, count: int, seed: int) -> Array:
    """Points spread evenly over the unit cube."""
    if count < 1:
        return np.zeros((0, dimension))
    sobol = qmc.Sobol(dimension, scramble=True, seed=seed)
    found: Array = sobol.random_base2(int(np.ceil(np.log2(count))))[:count]
    return found
