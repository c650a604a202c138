"""How the best hyperparameters are sought: along gradients from several starts, or by trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from mercer import clock
from mercer.arrays import Rows
from mercer.choose.criteria import Criterion
from mercer.choose.lengthscales import scales
from mercer.choose.sample import Sample
from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.solve.anytime import Anytime
from mercer.sparse import Matrix
from mercer.typing import Array

# how far L-BFGS may go from its start, in units of theta: a factor of 3000 for a positive parameter
REACH = 8.0
# how far the starts and the trials lie from the first guess at least: a factor of 12
SPREAD = 2.5
# seconds that a fit gets when the budget is used up
LEAST = 1e-3
# the cost of a point where K + λI cannot be factored
NO_SCORE = 1e12


@dataclass(frozen=True)
class Trial:
    """One kernel that was tried (or tuned from one start): its parameters, its score and the time it took."""

    kernel: Kernel
    parameters: dict[str, float]
    score: float
    seconds: float
    note: str = ""

    def __str__(self) -> str:
        text = f"{self.score:.6g}  {self.kernel}"
        for name, value in self.parameters.items():
            text += f", {name} {value:.4g}"
        return f"{text}  ({self.note})" if self.note else text


@dataclass
class Ledger:
    """The trials so far, and the budget they are paid from.

    The fit at the end is paid from it too: `cost` is what the trials so far let one expect of it, at most
    half of all. `growth` is how many rows the last fit has for each row of a trial.
    """

    max_seconds: float | None
    verbose: int
    growth: float = 1.0
    cost: float = 0.0
    # Whether the seconds ended a trial before its own end.
    cut: bool = False
    trials: list[Trial] = field(default_factory=list)
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.run = Anytime[Trial](self.max_seconds)

    @property
    def seconds(self) -> float:
        return self.run.seconds

    @property
    def spent(self) -> bool:
        if self.max_seconds is None:
            return False
        return self.seconds + min(self.cost, 0.5 * self.max_seconds) >= self.max_seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left; None if there is no limit."""
        if self.max_seconds is None:
            return None
        return max(self.max_seconds - self.seconds, LEAST)

    @property
    def best(self) -> Trial | None:
        return self.run.best

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if np.isfinite(trial.score) and (self.best is None or trial.score > self.best.score):
            self.run.best = trial
        if self.verbose:
            print(f"[mercer] trial {len(self.trials)}: {trial}", flush=True)


@dataclass(frozen=True)
class FirstGuess:
    """Where a search along gradients begins.

    `noise` is the first guess of λ, None where λ is not tuned; `parameter` is what the machine calls λ, empty
    where it has no such parameter; `note` is what the user must be told.
    """

    kernel: Kernel
    noise: float | None = None
    parameter: str = ""
    note: str = ""

    @property
    def point(self) -> Array:
        """Theta, and log λ where it is tuned."""
        theta = self.kernel.theta
        return theta if self.noise is None else np.append(theta, np.log(self.noise))

    def kernel_at(self, point: Array) -> Kernel:
        return self.kernel.with_theta(point[: len(self.kernel.theta)])

    def noise_at(self, point: Array) -> float:
        return 0.0 if self.noise is None else float(np.exp(point[-1]))

    def others_at(self, point: Array) -> dict[str, float]:
        """The machine's parameter at this point, where it has one."""
        if self.noise is None or not self.parameter:
            return {}
        return {self.parameter: self.noise_at(point)}


class _Ascent:
    """The way of L-BFGS from one start: every step is entered in the ledger, and the best point is kept."""

    def __init__(
        self, criterion: Criterion, guess: FirstGuess, rows: Rows, Y: Array, ledger: Ledger, start: Array
    ) -> None:
        self.criterion = criterion
        self.guess = guess
        self.rows = rows
        self.Y = Y
        self.ledger = ledger
        self.start = start
        self.best_score = -np.inf
        self.best_point = start

    def run(self) -> str:
        """Climb, and say what went wrong, if anything did."""
        note = ""
        try:
            if len(self.start):
                ends = [(a - REACH, a + REACH) for a in self.start]
                options = {"maxiter": 100}
                minimize(self.cost, self.start, jac=True, method="L-BFGS-B", bounds=ends, options=options)
            else:
                self.cost(self.start)
        except clock.OutOfTime:
            note = "cut short"
            self.ledger.cut = True
        if not note and not np.isfinite(self.best_score):
            note = "K + λI could not be factored"
        return note

    def cost(self, point: Array) -> tuple[float, Array]:
        """Minus the score, and minus its gradient."""
        if self.ledger.spent and np.isfinite(self.best_score):
            raise clock.OutOfTime
        self.ledger.evaluations += 1
        began = self.ledger.seconds
        guess = self.guess
        try:
            found = self.criterion(guess.kernel_at(point), guess.noise_at(point), self.rows, self.Y)
            # A factorisation costs n³, a fit by other means at least n².
            self.ledger.cost = (self.ledger.seconds - began) * self.ledger.growth**2
        except clock.OutOfTime as stop:
            self.ledger.cost = (self.ledger.seconds - began) * self.ledger.growth**2
            if stop.found is not None and stop.found > self.best_score:
                self.best_score = float(stop.found)
                self.best_point = point.copy()
            raise
        except (MercerError, np.linalg.LinAlgError):
            return NO_SCORE, np.zeros(len(point))
        if not np.isfinite(found.value):
            return NO_SCORE, np.zeros(len(point))
        if found.value > self.best_score:
            self.best_score = found.value
            self.best_point = point.copy()
        slope = found.theta if guess.noise is None else np.append(found.theta, found.noise)
        return -found.value, -slope


def along_gradients(
    criterion: Criterion,
    guess: FirstGuess,
    sample: Sample,
    Y: Array,
    starts: int,
    ledger: Ledger,
    seed: int,
) -> None:
    """Maximise a criterion over theta, and over log λ where it is tuned, by L-BFGS from several starts."""
    first = guess.point
    others = len(first) - len(guess.kernel.theta)
    ends = box(guess.kernel, others, first, sample.numbers)
    for start in _starts(first, ends, starts, seed):
        if ledger.spent and ledger.best is not None:
            return
        began = clock.now()
        ascent = _Ascent(criterion, guess, sample.rows, Y, ledger, start)
        note = ascent.run()
        best = ascent.best_point
        seconds = clock.now() - began
        ledger.add(
            Trial(guess.kernel_at(best), guess.others_at(best), float(ascent.best_score), seconds, note)
        )


def by_trials(
    score: Callable[[Kernel, dict[str, float]], float],
    kernel: Kernel,
    others: dict[str, float],
    numbers: Matrix | None,
    trials: int,
    ledger: Ledger,
    seed: int,
) -> None:
    """Maximise any score: half of the trials spread evenly around the first guess, half near the best."""
    first = np.append(kernel.theta, [np.log(v) for v in others.values()])
    free = len(kernel.theta)
    rng = np.random.default_rng(seed)
    best_score = -np.inf
    best_point = first
    spread = _starts(first, box(kernel, len(others), first, numbers), (trials + 1) // 2, seed)
    for i in range(trials if len(first) else 1):
        if ledger.spent and ledger.best is not None:
            return
        if i < len(spread):
            v = spread[i]
        else:
            width = SPREAD * 0.5 ** (1 + 4 * (i - len(spread)) / max(trials - len(spread), 1))
            v = best_point + width * rng.uniform(-1, 1, len(first))
        began = clock.now()
        candidate = kernel.with_theta(v[:free])
        values = dict(zip(others, np.exp(v[free:]).tolist(), strict=True))
        note = ""
        try:
            found = score(candidate, values)
        except clock.OutOfTime as stop:
            if stop.found is None:
                return
            found = stop.found
            note = "cut short"
            ledger.cut = True
        except MercerError as error:
            found = -np.inf
            note = str(error)[:80]
        if np.isnan(found):
            found = -np.inf
            note = "no score"
        ledger.evaluations += 1
        ledger.add(Trial(candidate, values, found, clock.now() - began, note))
        if found > best_score:
            best_score = found
            best_point = v


def box(kernel: Kernel, others: int, first: Array, numbers: Matrix | None) -> tuple[Array, Array]:
    """Where to look: SPREAD around the first guess, twice that for alpha and C.

    A lengthscale is sought among all that these rows can tell apart, from half the distance of neighbours to
    twice the largest one; of rows that are no numbers no distance is known.
    """
    width = np.full(len(first), SPREAD)
    if others:
        width[-others:] = 2 * SPREAD
    low = first - width
    high = first + width
    if numbers is None:
        return low, high
    known = scales(numbers)
    for j, p in enumerate([p for p in kernel.parameters if p.free]):
        if p.bounds is None and p.name.split("__")[-1].split("[")[0] == "lengthscale":
            low[j] = min(low[j], np.log(known.nearest / 2))
            high[j] = max(high[j], np.log(2 * known.widest))
    return low, high


def _starts(first: Array, ends: tuple[Array, Array], count: int, seed: int) -> list[Array]:
    """The first guess, and points of a scrambled Sobol sequence in the box."""
    if count <= 1 or not len(first):
        return [first]
    low, high = ends
    sobol = qmc.Sobol(len(first), scramble=True, seed=seed)
    cube: Array = sobol.random_base2(int(np.ceil(np.log2(count))))[: count - 1]
    return [first, *(low + cube * (high - low))]
