"""Maximise a function of θ by L-BFGS-B, in scaled units: parallel starts, limits, Ctrl-C keeps the best.

The value is divided by the number of observations and θ is counted from its start, so that a step of 1 is a
factor of e and a slope of 1 is large whatever the units of the data. "converged" is said only where the
slope that is left is small in these units.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
from scipy.optimize import minimize

from mercer import clock
from mercer.errors import InputError, NotFiniteError, NotPositiveDefiniteError
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.moves import FACTOR, Path, listed_as, restart_points, search_path
from mercer.machines.gaussian_process.refine import EXACT, FLAT, Enough, descend
from mercer.progress import say
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Note, NoteKind, Status
from mercer.threads import no_blas_threads, threads
from mercer.typing import Array, Seed

Objective = Callable[[Array], tuple[Any, ...]]
"""θ → the value, its gradient and, if anything is worth keeping of the best θ, that."""

SLOPE = 1e-6  # per observation: where L-BFGS-B stops
ROUNDING = 1e-9  # of the value: a slope below this cannot be told from none
GAIN = 1e-11  # per observation: a step that gains less is the last


@dataclass(frozen=True, eq=False)
class Start:
    """Where a search begins, and what it is called in the certificate."""

    theta: Array
    name: str


@dataclass(frozen=True)
class Tuned:
    """Where the search ended: the best θ, its value, why it stopped, and what is worth knowing.

    `ends` says which parameters ended at a bound, with their values; empty if none did. `kept` is what the
    objective gave to be kept with the best θ, `seconds` what one evaluation takes at least, `inverse` the
    inverse Hessian at the end, as far as it was seen: of minus the value per observation.
    """

    theta: Array
    value: float
    status: Status
    iterations: int
    evaluations: int
    notes: tuple[str, ...] = ()
    ends: str = ""
    kept: Any = None
    seconds: float = 0.0
    inverse: Array | None = None


def is_searched(kernel: Kernel | None, optimizer: str | None) -> TypeGuard[Kernel]:
    """Whether there is a search: of a kernel with something to choose, and by an optimizer."""
    return kernel is not None and optimizer is not None and len(kernel.theta) > 0


# ── the search ──────────────────────────────────────────────────────────────────────────────────────────────


def maximise(
    objective: Objective,
    kernel: Kernel,
    *,
    size: float = 1.0,
    starts: Sequence[Start] = (),
    shared: bool = False,
    restarts: int = 0,
    inverse: Array | None = None,
    enough: Enough = EXACT,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    what: str = "log evidence",
) -> Tuned:
    """The best θ found from `starts` (by default `kernel.theta`) and from `restarts` random points.

    `size` is the number of observations that the objective is a sum over. A θ at which the objective cannot
    be computed (a singular Gram matrix, an overflow) is a wall that the search turns away from; if the
    first start is one, its error is raised. With the `inverse` of a search on fewer rows few evaluations are
    made, and none that is not worth it (`enough`).
    """
    size = max(float(size), 1.0)
    search = _Search(objective, kernel, size, shared, max_iter, verbose, what, inverse, enough)
    random = restart_points(kernel, restarts, np.random.default_rng(random_state))
    begins = [*(starts or [Start(kernel.theta, "the kernel as given")])]
    begins += [Start(theta, f"random start {i}") for i, theta in enumerate(random, 1)]
    workers = min(threads(n_jobs), len(begins))
    with search.run_so_far:
        if workers <= 1 or not restarts:
            for start in begins:
                search.run(start)
        else:
            search.run(begins[0])
            search.run_side_by_side(begins[1:], workers)
    return search.result()


@dataclass(eq=False)
class _Point:
    """One evaluation: its value, where, and the gradient in θ."""

    value: float
    u: Array
    gradient: Array


@dataclass(eq=False)
class _Ascent:
    """One search from one start: its path, the best point on it, and why it ended."""

    start: Start
    path: Path
    best: _Point | None = None
    status: Status = Status.LIMIT
    inverse: Array | None = None


@dataclass
class _Search:
    objective: Objective
    kernel: Kernel
    size: float
    shared: bool
    max_iter: int
    verbose: int
    what: str
    inverse: Array | None = None
    enough: Enough = EXACT
    kept: Any = None
    runs: list[_Ascent] = field(default_factory=list)
    iterations: int = 0
    evaluations: int = 0
    walls: int = 0
    seconds: float = np.inf  # of the shortest evaluation
    cut: bool = False  # whether the seconds ended a search before its own end
    # why a θ could not be judged, other than a singular matrix
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.halted = threading.Event()
        self.until = clock.until()
        self.run_so_far = Anytime[_Ascent]()

    @property
    def best(self) -> _Ascent | None:
        """The search that has come highest."""
        return self.run_so_far.best

    def value(self, u: Array, run: _Ascent) -> tuple[float, Array]:
        """Minus the objective per observation, for the minimiser; remembers the best."""
        begun = clock.now()
        if self.evaluations and (self.halted.is_set() or begun + self.least >= self.until):
            raise clock.OutOfTime
        theta = run.path.theta(u)
        try:
            with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
                found, gradient, *kept = self.objective(theta)
            if not (np.isfinite(found) and np.isfinite(gradient).all()):
                raise NotFiniteError(
                    f"the {self.what} is {found} at theta = {theta}, its gradient {gradient}."
                )
        except clock.OutOfTime as stop:
            if self.best is None and stop.found is not None:
                # Half an evaluation is what there is: its gradient is not known.
                value, *kept = stop.found
                # The whole of it would have ended after the seconds.
                self.seconds = self.until - begun
                self._remember(run, _Point(value, u.copy(), np.zeros(len(theta))), kept)
            raise
        except (NotPositiveDefiniteError, InputError) as error:
            self._meet_wall(error)
            if run.best is None:
                raise
            high = -run.best.value / self.size
            return high + 1e3 * (1.0 + abs(high)), np.zeros_like(u)
        with self.lock:
            self.seconds = min(self.seconds, clock.now() - begun)
            self._remember(run, _Point(found, u.copy(), gradient), kept)
        return -found / self.size, -run.path.slope(u, gradient) / self.size

    @property
    def least(self) -> float:
        """What another evaluation takes at least; 0 where none was made yet."""
        return self.seconds if np.isfinite(self.seconds) else 0.0

    def _meet_wall(self, error: Exception) -> None:
        with self.lock:
            self.evaluations += 1
            if isinstance(error, NotPositiveDefiniteError):
                self.walls += 1
            else:
                self.refused.append(str(error))

    def _remember(self, run: _Ascent, point: _Point, kept: list[Any]) -> None:
        self.evaluations += 1
        if run.best is None or point.value > run.best.value:
            run.best = point
        if self.best is None or self.best.best is None or run.best.value > self.best.best.value:
            self.run_so_far.best = run
        top = self.run_so_far.best
        assert top is not None and top.best is not None
        if top.best is point:
            self.kept = kept[0] if kept else None
        if self.verbose:
            best = top.best.value
            say(f"evaluation {self.evaluations}: {self.what} {point.value:.6f}, best {best:.6f}")

    def run_side_by_side(self, starts: Sequence[Start], workers: int) -> None:
        """Searches in threads; who presses Ctrl-C does not wait for the evaluations they are at."""
        pool = ThreadPoolExecutor(workers)
        try:
            with no_blas_threads():
                contexts = [copy_context() for _ in starts]
                list(pool.map(lambda context, start: context.run(self.run, start), contexts, starts))
        except KeyboardInterrupt:
            self.halted.set()
            raise
        finally:
            pool.shutdown(wait=not self.halted.is_set(), cancel_futures=True)

    def run(self, start: Start) -> None:
        path = search_path(self.kernel, start.theta, shared=self.shared)
        run = _Ascent(start, path)
        try:
            steps = self._climb(run)
            with self.lock:
                self.iterations += steps
        except clock.OutOfTime:
            self.cut = True
        except (NotPositiveDefiniteError, InputError):
            if self.best is None:
                raise
        with self.lock:
            self.runs.append(run)

    def _climb(self, run: _Ascent) -> int:
        """The steps made from a start, until the search ends by itself."""
        path = run.path
        if self.inverse is not None:
            near = descend(
                lambda u: self.value(u, run),
                self.inverse,
                path.low,
                path.high,
                size=self.size,
                max_iter=self.max_iter,
                enough=self.enough,
            )
            run.status = near.status
            run.inverse = near.inverse
            return near.steps
        done = minimize(
            lambda u: self.value(u, run),
            np.zeros(len(path.names)),
            jac=True,
            method="L-BFGS-B",
            bounds=path.limits(),
            options={
                "maxiter": self.max_iter,
                "maxfun": 20 * self.max_iter,
                "maxcor": 20,
                "gtol": SLOPE,
                "ftol": GAIN,
            },
        )
        run.status = {0: Status.CONVERGED, 1: Status.LIMIT}.get(done.status, Status.STAGNATED)
        run.inverse = np.asarray(done.hess_inv.todense())
        return int(done.nit)

    # ── what it found ───────────────────────────────────────────────────────────────────────────────────────

    def result(self) -> Tuned:
        run = self.best
        assert run is not None and run.best is not None
        status = run.status
        if self.run_so_far.interrupted:
            status = Status.INTERRUPTED
        notes: list[str] = []
        slope = self._slope(run)
        small = slope <= FLAT * self.size + ROUNDING * abs(run.best.value)
        if status == Status.STAGNATED and small:
            status = Status.CONVERGED
            notes.append(f"The line search ended at rounding, with a gradient of {slope:.2g} left.")
        if self.inverse is not None:
            small = small or slope <= self.enough.slope * self.size
        if status == Status.CONVERGED and not small:
            status = Status.STAGNATED
            notes.append(
                f"The search ended with a gradient of {slope:.3g} left, {slope / self.size:.2g} for each "
                "observation."
            )
        if status == Status.CONVERGED and self.cut:
            status = Status.LIMIT
            notes.append("The seconds ended searches from other starts.")
        ends, faded = self._ends(run)
        notes += [text for text in (ends, faded) if text]
        if self.walls:
            notes.append(f"At {self.walls} of {self.evaluations} trial points the Gram matrix was singular.")
        if self.refused:
            notes.append(f"At {len(self.refused)} of {self.evaluations} trial points: {self.refused[0]}")
        notes += self._say_starts(run)
        theta = run.path.theta(run.best.u)
        return Tuned(
            theta,
            run.best.value,
            status,
            self.iterations,
            self.evaluations,
            tuple(notes),
            ends,
            self.kept,
            self.least,
            run.inverse,
        )

    def _slope(self, run: _Ascent) -> float:
        """The largest slope that is left, but for limits that are pressed upon."""
        assert run.best is not None
        return run.path.slope_left(run.best.u, run.best.gradient)

    def _ends(self, run: _Ascent) -> tuple[str, str]:
        """What ended at its limit and matters, in words; and what went there since nothing changes any more.

        A bound that was asked for, a limit that the value still presses on, and a lengthscale that became
        so short that its term is noise in disguise matter. A shape that became its own limit, a term or a
        column that faded away do not.
        """
        assert run.best is not None
        path = run.path
        at = path.ended(run.best.u)
        slope = np.abs(path.slope(run.best.u, run.best.gradient))
        found = [p for p in self.kernel.with_theta(path.theta(run.best.u)).parameters if p.free]
        ended, faded = [], []
        for i in np.flatnonzero(at):
            value = found[int(np.argmax(path.T[:, i]))].value
            text = f"{path.names[i]} = {value:.4g} (its {'lower' if at[i] < 0 else 'upper'} end)"
            pressed = slope[i] > FLAT * self.size
            noise = at[i] < 0 and listed_as(path.names[i]).endswith("lengthscale")
            if pressed or noise or path.parameters[i].bounds is not None:
                ended.append(text)
            else:
                faded.append(text)
        return self._say_ended(ended), self._say_faded(faded)

    def _say_ended(self, names: list[str]) -> str:
        if not names:
            return ""
        return (
            f"{', '.join(names)} went to the end of the search ({'its' if len(names) == 1 else 'their'} "
            f"bounds, or {FACTOR:g} times the start): the {self.what} has no maximum before it. Fix it, "
            "bound it, start nearer, or drop that part."
        )

    def _say_faded(self, names: list[str]) -> str:
        if not names:
            return ""
        return (
            f"{', '.join(names)} went to the end of the search, where the {self.what} is flat: that part has "
            "no influence, or is its own limit."
        )

    def _say_starts(self, run: _Ascent) -> list[str]:
        tops = [(r.start.name, r.best.value) for r in self.runs if r.best is not None]
        if len(tops) < 2:
            return []
        assert run.best is not None
        value = run.best.value
        near = sum(top >= value - 1e-3 * (1 + abs(value)) for _, top in tops)
        others = ", ".join(f"{name} {top:.6g}" for name, top in tops if name != run.start.name)
        best = (
            f"The best of {len(tops)} starts is {run.start.name}: {self.what} {value:.6g}; from the others: "
            f"{others}."
        )
        return [
            Note(best, NoteKind.BEST_START),
            f"{near} of {len(tops)} searches ended at the best {self.what}, {value:.6g}.",
        ]
