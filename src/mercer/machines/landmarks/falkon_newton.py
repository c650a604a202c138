"""Newton's method for kernel logistic regression on the span of landmarks.

        J(w) = Σ v_i log(1 + e^(-t_i f_i)) + α/2 ‖w‖²,     f = Φw

The gradient is Φᵀ(v (p - (t+1)/2)) + αw and the Hessian ΦᵀSΦ + αI with S = v p (1 - p), so each step is a weighted ridge
problem. J is α-strongly convex: J(w) - min J ≤ ‖gradient‖² / 2α.

Noise σ² in the kernel gives every row a part ε_i of its own that costs α ε_i² / 2σ². It is minimised away row by row, and
what is left is a smoother loss of f_i alone, with a slope and a curvature of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from mercer import clock
from mercer.machines.landmarks.batches import passes
from mercer.machines.landmarks.streamed import Streamed, landmark_factor, solve_normal
from mercer.solve.solution import Certificate, Status

INNER = 0.1  # relative residual of a step, at most; it follows the gradient down, so that convergence stays superlinear
HALVINGS = 40
_PROX_STEPS = 1000


def newton(
    of: Streamed, wanted: np.ndarray, alpha: float, *, noise: float, direct: bool, tol: float, limits: Any
) -> tuple[np.ndarray, Certificate]:
    """One column of w for each wanted class against the rest."""
    y, v = _remember(of)
    columns: list[np.ndarray] = []
    iterations, worst, gap, primal = 0, 0.0, 0.0, 0.0
    status: Status = Status.CONVERGED
    notes: list[str] = []
    for label in wanted:
        one = _One(of, np.where(y == label, 1.0, -1.0), v, alpha, noise)
        got: Status = status if status.on_request else Status.LIMIT
        if got == Status.LIMIT and not (columns and clock.late()):
            got = one.run(direct, tol, limits)
            direct = one.direct
        status = Status.worst((status, got))
        columns.append(one.w)
        iterations += one.steps
        worst, gap, primal = max(worst, one.relative), gap + one.gap, primal + one.value
        notes += [n for n in one.notes if n not in notes]
    method = "Newton's method, " + (
        "sums of products, Cholesky" if direct else "conjugate gradients (Falkon)"
    )
    return np.column_stack(columns), Certificate(
        status, method, iterations=iterations, residual=worst, primal=primal, gap=gap, notes=tuple(notes)
    )


def _remember(of: Streamed) -> tuple[np.ndarray, np.ndarray]:
    parts = [(y, w) for _, y, w in passes(of.source)]
    of.passes += 1
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def too_long(seconds: float) -> str:
    """What is said where the sums of products were given up for conjugate gradients."""
    return (
        f"the sums of products would take some {seconds:.1f} s, more than were left: conjugate gradients took "
        "their place"
    )


class _One:
    """One two-class problem: where it is, and how good that is."""

    def __init__(self, of: Streamed, t: np.ndarray, v: np.ndarray, alpha: float, noise: float) -> None:
        self.of, self.t, self.v, self.alpha, self.noise = of, t, v, alpha, noise
        self.w, self.f = np.zeros(of.basis.rank), np.zeros(len(t))
        self.steps, self.relative = 0, 1.0
        self.direct = False
        self.notes: list[str] = []
        self.value = self.objective(self.w, self.f)
        # The least is not below 0.
        self.gap = self.value

    def objective(self, w: np.ndarray, f: np.ndarray) -> float:
        loss, _, _ = logistic(self.t * f, self.noise / self.alpha)
        return float(self.v @ loss) + 0.5 * self.alpha * float(w @ w)

    def run(self, direct: bool, tol: float, limits: Any) -> Status:
        try:
            return self.loop(direct, tol, limits)
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def loop(self, direct: bool, tol: float, limits: Any) -> Status:
        first = None
        self.direct = direct
        most = limits()["max_iter"]
        while True:
            _, fall, bend = logistic(self.t * self.f, self.noise / self.alpha)
            pull, curvature = self.v * self.t * fall, self.v * bend
            began = clock.now()
            try:
                inverse, b = self.sums(pull, curvature, self.direct)
            except clock.OutOfTime as stop:
                self.direct = False
                self.notes.append(too_long(stop.found))
                began = clock.now()
                inverse, b = self.sums(pull, curvature, self.direct)
            taken = clock.now() - began
            gradient = self.alpha * self.w - b
            size = float(np.linalg.norm(gradient))
            first = max(float(np.linalg.norm(b)), np.finfo(float).tiny) if first is None else first
            self.relative, self.gap = size / first, size**2 / (2 * self.alpha)
            report = limits()["callback"]
            if report is not None and report(self.steps, self.relative):
                return Status.STOPPED
            if self.relative <= tol:
                return Status.CONVERGED
            # A step and the gradient after it: two passes, and one or more for conjugate gradients. The first may be late by one.
            ahead = (2 if self.direct else 3) * taken
            if self.steps == 0:
                ahead -= taken
            if (most is not None and self.steps >= most) or clock.short_of(ahead):
                self.notes.append(
                    f"stopped with a gradient of {self.relative:.1e} of the first; {tol:.1e} was asked"
                )
                return Status.LIMIT
            if not self.step(gradient, curvature, inverse):
                if clock.late():
                    return Status.LIMIT
                self.notes.append(
                    f"no descent beyond a gradient of {self.relative:.1e}: what is left is rounding"
                )
                return Status.STAGNATED
            self.steps += 1

    def sums(self, pull: np.ndarray, curvature: np.ndarray, direct: bool) -> tuple[Any, np.ndarray]:
        """The factor of ΦᵀSΦ + αI, if it is to be summed, and Φᵀpull, in one pass."""
        if not direct:
            return None, self.of.right_side(lambda y, rows: (pull[rows] / _nonzero(self.v[rows]))[:, None])[
                :, 0
            ]
        ratio = np.divide(pull, curvature, out=np.zeros_like(pull), where=curvature > 0)
        inverse, b = self.of.factored(
            self.alpha, lambda y, rows: ratio[rows][:, None], lambda w, rows: curvature[rows]
        )
        return inverse, b[:, 0]

    def step(self, gradient: np.ndarray, curvature: np.ndarray, inverse: Any) -> bool:
        if inverse is not None:
            move = -inverse.solve(gradient)
        else:
            share = float(curvature.sum()) / self.of.basis.rank
            found = solve_normal(
                self.of,
                -gradient,
                self.alpha,
                landmark_factor(self.of.basis, share, self.alpha),
                weights=lambda w, rows: curvature[rows],
                start=False,
                tol=min(INNER, np.sqrt(self.relative)),
                max_iter=200,
                keep=False,
                certified=True,
                after=2,
            )
            move = found.value
        along = self.of.values(move[:, None])[:, 0]
        slope, length = float(gradient @ move), 1.0
        for _ in range(HALVINGS):
            w, f = self.w + length * move, self.f + length * along
            value = self.objective(w, f)
            if value <= self.value + 1e-4 * length * slope + 1e-14 * abs(self.value):
                moved = value < self.value or float(np.linalg.norm(move)) > 1e-12 * float(np.linalg.norm(w))
                self.w, self.f, self.value = w, f, value
                return moved
            length *= 0.5
        return False


def logistic(u: np.ndarray, free: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """min over ε of log(1 + e^-(u + ε)) + ε² / 2·free: its value, minus its slope, and its curvature.

    >>> value, fall, bend = logistic(np.array([0.0]), 0.0)                # without noise: the logistic loss itself
    >>> value.round(4), fall, bend
    (array([0.6931]), array([0.5]), array([0.25]))
    """
    v = u if free == 0 else _own_part(u, free)
    p = expit(-v)
    bend = p * expit(v)
    value = np.logaddexp(0.0, -v) + 0.5 * free * p**2
    return value, p, bend / (1 + free * bend)


def _own_part(u: np.ndarray, free: float) -> np.ndarray:
    """v = u + ε with ε = free · σ(-v): the one root between u and u + free, by Newton's method inside a bracket.

    Every eighth step halves the bracket, so that the steps in between cannot run in circles.
    """
    low, high = u, u + free
    v = 0.5 * (low + high)
    for step in range(_PROX_STEPS):
        p = expit(-v)
        excess = v - u - free * p
        done = np.abs(excess) <= 2 * np.finfo(float).eps * (np.abs(v) + np.abs(u) + free * p)
        if np.all(done):
            break
        low = np.where(excess < 0, v, low)
        high = np.where(excess > 0, v, high)
        middle = 0.5 * (low + high)
        newton = v - excess / (1 + free * p * (1 - p))
        inside = (newton > low) & (newton < high) & (step % 8 != 7)
        v = np.where(done, v, np.where(inside, newton, middle))
    return v


def _nonzero(v: np.ndarray) -> np.ndarray:
    return np.where(v > 0, v, 1.0)
