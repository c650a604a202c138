"""How the best hyperparameters are sought: along gradients from several starts, or by trial and refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from mercer import clock
from mercer.choose.criteria import Criterion
from mercer.choose.lengthscales import scales
from mercer.errors import MercerError
from mercer.kernels.base import Kernel

REACH = (
    8.0  # how far L-BFGS may go from its start, in units of theta (a factor of 3000 for a positive parameter)
)
SPREAD = 2.5  # how far the starts and the trials lie from the first guess at least (a factor of 12)
LEAST = 1e-3  # seconds that a fit gets when the budget is used up
NO_SCORE = 1e12  # the cost of a point where K + λI cannot be factored


@dataclass(frozen=True)
class Trial:
    """One kernel that was tried (or tuned from one start): its parameters, its score and the time it took."""

    kernel: Kernel
    parameters: dict[str, float]
    score: float
    seconds: float
    note: str = ""

    def __str__(self) -> str:
        with_ = "".join(f", {name} {value:.4g}" for name, value in self.parameters.items())
        return f"{self.score:.6g}  {self.kernel}{with_}{'  (' + self.note + ')' if self.note else ''}"


@dataclass
class Ledger:
    """The trials so far, and the budget they are paid from.

    The fit at the end is paid from it too: `cost` is what the trials so far let one expect of it, at most half of all.
    """

    max_seconds: float | None
    verbose: int
    grown: float = 1.0  # rows of the last fit for each row of a trial
    cost: float = 0.0
    cut: bool = False  # whether the seconds ended a trial before its own end
    trials: list[Trial] = field(default_factory=list)
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.start = clock.now()

    @property
    def seconds(self) -> float:
        return clock.now() - self.start

    @property
    def spent(self) -> bool:
        if self.max_seconds is None:
            return False
        return self.seconds + min(self.cost, 0.5 * self.max_seconds) >= self.max_seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left; None if there is no limit."""
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds, LEAST)

    @property
    def best(self) -> Trial | None:
        good = [t for t in self.trials if np.isfinite(t.score)]
        return max(good, key=lambda t: t.score) if good else None

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if self.verbose:
            print(f"[mercer] trial {len(self.trials)}: {trial}", flush=True)


def along_gradients(
    criterion: Criterion,
    kernel: Kernel,
    noise: float | None,
    name: str,
    x: Any,
    Y: np.ndarray,
    A: Any,
    starts: int,
    ledger: Ledger,
    seed: int,
) -> None:
    """Maximise a criterion over theta, and over log λ where `noise` is its first guess, by L-BFGS from several starts.

    `x` are the rows as the kernel takes them, `A` their numbers.
    """
    first = kernel.theta if noise is None else np.append(kernel.theta, np.log(noise))
    free = len(kernel.theta)
    for start in _within(first, box(kernel, len(first) - free, first, A), starts, seed):
        if ledger.spent and ledger.best is not None:
            return
        began = clock.now()
        best: list[Any] = [-np.inf, start]

        def cost(v: np.ndarray, best: list[Any] = best) -> tuple[float, np.ndarray]:
            if ledger.spent and np.isfinite(best[0]):
                raise clock.OutOfTime
            ledger.evaluations += 1
            began = ledger.seconds
            try:
                found = criterion(
                    kernel.with_theta(v[:free]), 0.0 if noise is None else float(np.exp(v[free])), x, Y
                )
                # A factorisation costs n³, a fit by other means at least n².
                ledger.cost = (ledger.seconds - began) * ledger.grown**2
            except clock.OutOfTime as stop:
                ledger.cost = (ledger.seconds - began) * ledger.grown**2
                if stop.found is not None and stop.found > best[0]:
                    best[:] = stop.found, v.copy()
                raise
            except (MercerError, np.linalg.LinAlgError):
                return NO_SCORE, np.zeros(len(v))
            if not np.isfinite(found.value):
                return NO_SCORE, np.zeros(len(v))
            if found.value > best[0]:
                best[:] = found.value, v.copy()
            slope = found.theta if noise is None else np.append(found.theta, found.noise)
            return -found.value, -slope

        note = ""
        try:
            if len(first):
                ends = [(a - REACH, a + REACH) for a in start]
                minimize(cost, start, jac=True, method="L-BFGS-B", bounds=ends, options={"maxiter": 100})
            else:
                cost(start)
        except clock.OutOfTime:
            note, ledger.cut = "cut short", True
        value, v = best
        note = note or ("" if np.isfinite(value) else "K + λI could not be factored")
        others = {} if noise is None or not name else {name: float(np.exp(v[free]))}
        ledger.add(Trial(kernel.with_theta(v[:free]), others, float(value), clock.now() - began, note))


def by_trials(
    score: Callable[[Kernel, dict[str, float]], float],
    kernel: Kernel,
    others: dict[str, float],
    x: Any,
    trials: int,
    ledger: Ledger,
    seed: int,
) -> None:
    """Maximise any score: half of the trials spread evenly around the first guess, half ever closer to the best."""
    first = np.append(kernel.theta, [np.log(v) for v in others.values()])
    free, rng = len(kernel.theta), np.random.default_rng(seed)
    here: tuple[float, np.ndarray] = (-np.inf, first)
    spread = _within(first, box(kernel, len(others), first, x), (trials + 1) // 2, seed)
    for i in range(trials if len(first) else 1):
        if ledger.spent and ledger.best is not None:
            return
        if i < len(spread):
            v = spread[i]
        else:
            width = SPREAD * 0.5 ** (1 + 4 * (i - len(spread)) / max(trials - len(spread), 1))
            v = here[1] + width * rng.uniform(-1, 1, len(first))
        began = clock.now()
        candidate = kernel.with_theta(v[:free])
        values = dict(zip(others, np.exp(v[free:]).tolist(), strict=True))
        note = ""
        try:
            found = score(candidate, values)
        except clock.OutOfTime as stop:
            if stop.found is None:
                return
            found, note = stop.found, "cut short"
        except MercerError as error:
            found, note = -np.inf, str(error)[:80]
        if np.isnan(found):
            found, note = -np.inf, "no score"
        ledger.evaluations += 1
        ledger.add(Trial(candidate, values, found, clock.now() - began, note))
        if found > here[0]:
            here = found, v


def box(kernel: Kernel, others: int, first: np.ndarray, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where to look: SPREAD around the first guess, twice that for alpha and C, and for a lengthscale all that these rows
    can tell apart, from half the distance of neighbours to twice the largest one."""
    low, high = first - SPREAD, first + SPREAD
    if others:
        low[-others:], high[-others:] = first[-others:] - 2 * SPREAD, first[-others:] + 2 * SPREAD
    known = scales(x)
    for j, p in enumerate([p for p in kernel.parameters if p.free]):
        if p.bounds is None and p.name.split("__")[-1].split("[")[0] == "lengthscale":
            low[j] = min(low[j], np.log(known.nearest / 2))
            high[j] = max(high[j], np.log(2 * known.widest))
    return low, high


def _within(
    first: np.ndarray, ends: tuple[np.ndarray, np.ndarray], count: int, seed: int
) -> list[np.ndarray]:
    """The first guess, and points of a scrambled Sobol sequence in the box."""
    if count <= 1 or not len(first):
        return [first]
    sobol = qmc.Sobol(len(first), scramble=True, seed=seed)
    cube = sobol.random_base2(int(np.ceil(np.log2(count))))[: count - 1]
    return [first, *(ends[0] + cube * (ends[1] - ends[0]))]
