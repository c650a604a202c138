"""Maximise a function of θ by L-BFGS-B: restarts in parallel, limits of iterations and seconds, Ctrl-C keeps the best."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from mercer.errors import InputError, NotFiniteError, NotPositiveDefiniteError
from mercer.kernels.base import Kernel
from mercer.solve.solution import Status
from mercer.threads import threads

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

FACTOR = 1e5  # by how much a parameter without bounds may grow or shrink in one search
LOGIT = 15.0  # how far a bounded parameter's logit goes: within 3e-7 of its interval's ends
END = 5.0  # a logit beyond this is within one per cent of the end of its interval
FLAT = 1e-4  # a gradient below this share of the value counts as none when rounding ends the line search
SPREAD = 1.5  # standard deviation of a restart's logarithms


@dataclass(frozen=True)
class Tuned:
    """Where the search ended: the best θ, its value, why it stopped, and what is worth knowing."""

    theta: np.ndarray
    value: float
    status: Status
    iterations: int
    evaluations: int
    notes: tuple[str, ...] = ()


def search_box(kernel: Kernel) -> list[tuple[float | None, float | None]]:
    """Bounds on θ: a factor of 1e5 around each positive parameter, its own bounds where it has them.

    >>> from mercer import RBF
    >>> [(round(a, 1), round(b, 1)) for a, b in search_box(RBF(1.0))]
    [(-11.5, 11.5)]
    """
    box: list[tuple[float | None, float | None]] = []
    for p in kernel.parameters:
        if p.free:
            if p.bounds is not None:
                box.append((-LOGIT, LOGIT))
            elif p.domain.logarithmic:
                box.append((p.theta - float(np.log(FACTOR)), p.theta + float(np.log(FACTOR))))
            else:
                box.append((None, None))
    return box


def restart_points(kernel: Kernel, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random θ: logarithms spread around the start, bounded parameters anywhere between their bounds."""
    free = [p for p in kernel.parameters if p.free]
    out = []
    for _ in range(count):
        z, u = rng.standard_normal(len(free)), rng.uniform(0.02, 0.98, len(free))
        out.append(
            np.array(
                [
                    np.log(ui / (1 - ui))
                    if p.bounds is not None
                    else p.theta + SPREAD * zi * (1.0 if p.domain.logarithmic else max(1.0, abs(p.value)))
                    for p, zi, ui in zip(free, z, u, strict=True)
                ]
            )
        )
    return out


def maximise(
    objective: Objective,
    kernel: Kernel,
    *,
    restarts: int = 0,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    what: str = "log evidence",
) -> Tuned:
    """The best θ found from `kernel.theta` and from `restarts` random points.

    A θ at which the objective cannot be computed (a singular Gram matrix, an overflow) is a wall that the search turns
    away from; if the first θ is one, the error is raised.
    """
    search = _Search(objective, max_iter, max_seconds, verbose, what)
    box = search_box(kernel)
    start = np.clip(
        kernel.theta,
        [-np.inf if a is None else a for a, _ in box],
        [np.inf if b is None else b for _, b in box],
    )
    starts = [start, *restart_points(kernel, restarts, np.random.default_rng(random_state))]
    workers = min(threads(n_jobs), len(starts))
    status: Status | None = None
    try:
        if workers <= 1:
            for theta in starts:
                search.run(theta, box)
        else:
            search.run(starts[0], box)
            with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
                try:
                    list(pool.map(lambda theta: search.run(theta, box), starts[1:]))
                except KeyboardInterrupt:
                    search.halted.set()
                    raise
    except KeyboardInterrupt:
        if search.best is None:
            raise
        status = "interrupted"
    return search.result(kernel, box, status)


class _Halt(Exception):
    """The seconds are used up, or another thread was interrupted."""


@dataclass
class _Search:
    objective: Objective
    max_iter: int
    max_seconds: float | None
    verbose: int
    what: str
    best: tuple[float, np.ndarray, np.ndarray] | None = None  # value, theta, gradient
    best_status: Status = "converged"
    iterations: int = 0
    evaluations: int = 0
    walls: int = 0
    refused: list[str] = field(
        default_factory=list
    )  # why a θ could not be judged, other than a singular matrix
    ends: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lock, self.halted = threading.Lock(), threading.Event()
        self.until = np.inf if self.max_seconds is None else time.monotonic() + self.max_seconds

    def value(self, theta: np.ndarray, mine: list[tuple[float, np.ndarray]]) -> tuple[float, np.ndarray]:
        """Minus the objective, for the minimiser; remembers the best."""
        if self.evaluations and (self.halted.is_set() or time.monotonic() >= self.until):
            raise _Halt
        try:
            with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
                found, gradient = self.objective(theta)
            if not (np.isfinite(found) and np.isfinite(gradient).all()):
                raise NotFiniteError(
                    f"the {self.what} is {found} at theta = {theta}, its gradient {gradient}."
                )
        except (NotPositiveDefiniteError, InputError) as error:
            with self.lock:
                self.evaluations += 1
                self.walls += isinstance(error, NotPositiveDefiniteError)
                self.refused += [] if isinstance(error, NotPositiveDefiniteError) else [str(error)]
            if self.best is None:
                raise
            high = -min(v for v, _ in mine) if mine else -self.best[0]
            return high + 1e3 * (1.0 + abs(high)), np.zeros_like(theta)
        with self.lock:
            self.evaluations += 1
            mine.append((found, theta.copy()))
            if self.best is None or found > self.best[0]:
                self.best = (found, theta.copy(), gradient)
            if self.verbose:
                print(
                    f"[mercer] evaluation {self.evaluations}: {self.what} {found:.6f}, best {self.best[0]:.6f}",
                    flush=True,
                )
        return -found, -gradient

    def run(self, theta: np.ndarray, box: list[Any]) -> None:
        mine: list[tuple[float, np.ndarray]] = []
        status: Status = "limit"
        try:
            done = minimize(
                lambda t: self.value(t, mine),
                theta,
                jac=True,
                method="L-BFGS-B",
                bounds=box,
                options={"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "maxcor": 20},
            )
            status = {0: "converged", 1: "limit"}.get(done.status, "stagnated")  # type: ignore[assignment]
            with self.lock:
                self.iterations += int(done.nit)
        except _Halt:
            pass
        with self.lock:
            top = max((v for v, _ in mine), default=-np.inf)
            self.ends.append(top)
            if self.best is not None and top >= self.best[0]:
                self.best_status = status

    def result(self, kernel: Kernel, box: list[Any], status: Status | None) -> Tuned:
        assert self.best is not None
        value, theta, gradient = self.best
        free = [p for p in kernel.parameters if p.free]
        at_edge = [
            p.name
            for p, t, (a, b) in zip(free, theta, box, strict=True)
            if (abs(t) >= END if p.bounds is not None else a is not None and not a + 1e-6 < t < b - 1e-6)
        ]
        notes = []
        inside = [g for p, g in zip(free, gradient, strict=True) if p.name not in at_edge]
        slope = float(np.abs(inside).max(initial=0.0))
        status = status or self.best_status
        if status == "stagnated" and slope <= FLAT * (1.0 + abs(value)):
            status = "converged"
            notes.append(f"The line search ended at rounding, with a gradient of {slope:.2g} left.")
        if at_edge:
            notes.append(
                f"{', '.join(at_edge)} went to the end of the search ({'its' if len(at_edge) == 1 else 'their'} bounds, or "
                f"{FACTOR:g} times the start): the {self.what} is flat or unbounded there. Fix it, bound it, or drop that part."
            )
        if self.walls:
            notes.append(f"At {self.walls} of {self.evaluations} trial points the Gram matrix was singular.")
        if self.refused:
            notes.append(f"At {len(self.refused)} of {self.evaluations} trial points: {self.refused[0]}")
        if len(self.ends) > 1:
            near = sum(e >= value - 1e-3 * (1 + abs(value)) for e in self.ends)
            notes.append(f"{near} of {len(self.ends)} searches ended at the best {self.what}, {value:.6g}.")
        return Tuned(theta, value, status, self.iterations, self.evaluations, tuple(notes))
