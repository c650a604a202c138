"""Newton's method for kernel logistic regression on the span of landmarks.

        J(w) = Σ v_i log(1 + e^(-t_i f_i)) + α/2 ‖w‖²,     f = Φw

The gradient is Φᵀ(v (p - (t+1)/2)) + αw and the Hessian ΦᵀSΦ + αI with S = v p (1 - p), so each step is a
weighted ridge problem. J is α-strongly convex: J(w) - min J ≤ ‖gradient‖² / 2α.

Noise σ² in the kernel gives every row a part ε_i of its own that costs α ε_i² / 2σ². It is minimised away row
by row, and what is left is a smoother loss of f_i alone, with a slope and a curvature of its own.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from mercer import clock
from mercer.machines.landmarks.streamed import Streamed, landmark_factor, solve_normal
from mercer.progress import Tell
from mercer.solve import Cholesky
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Labels

# Relative residual of a step, at most; it follows the gradient down, so that convergence stays superlinear.
INNER = 0.1
HALVINGS = 40
_PROX_STEPS = 1000


def newton(
    of: Streamed,
    y: Labels,
    v: Array,
    wanted: Labels,
    alpha: float,
    *,
    noise: float,
    direct: bool,
    tol: float,
    max_iter: int | None,
    tell: Tell | None,
) -> tuple[Array, Certificate]:
    """One column of w for each wanted class against the rest."""
    columns: list[Array] = []
    iterations = 0
    worst = 0.0
    gap = 0.0
    primal = 0.0
    status: Status = Status.CONVERGED
    notes: list[str] = []
    for label in wanted:
        one = _TwoClasses(of, np.where(y == label, 1.0, -1.0), v, alpha, noise)
        got: Status = status if status.on_request else Status.LIMIT
        if got == Status.LIMIT and not (columns and clock.late()):
            got = one.run(direct, tol, max_iter, tell)
            direct = one.direct
        status = Status.worst((status, got))
        columns.append(one.w)
        iterations += one.steps
        worst = max(worst, one.relative)
        gap += one.gap
        primal += one.value
        notes += [n for n in one.notes if n not in notes]
    steps_by = "sums of products, Cholesky" if direct else "conjugate gradients (Falkon)"
    certificate = Certificate(
        status,
        f"Newton's method, {steps_by}",
        iterations=iterations,
        residual=worst,
        primal=primal,
        gap=gap,
        notes=tuple(notes),
    )
    return np.column_stack(columns), certificate


def remember(of: Streamed) -> tuple[Labels, Array]:
    """Targets and weights of all rows."""
    return of.labels_and_weights()


def too_long(seconds: object) -> str:
    """What is said where the sums of products were given up for conjugate gradients."""
    return (
        f"the sums of products would take some {seconds:.1f} s, more than were left: conjugate gradients "
        "took their place"
    )


class _TwoClasses:
    """One two-class problem: where it is, and how good that is."""

    def __init__(self, of: Streamed, t: Array, v: Array, alpha: float, noise: float) -> None:
        self.of = of
        self.t = t
        self.v = v
        self.alpha = alpha
        self.noise = noise
        self.w = np.zeros(of.basis.rank)
        self.f = np.zeros(len(t))
        self.steps = 0
        self.relative = 1.0
        self.direct = False
        self.notes: list[str] = []
        self.value = self.objective(self.w, self.f)
        # The least is not below 0.
        self.gap = self.value

    def objective(self, w: Array, f: Array) -> float:
        loss, _, _ = logistic(self.t * f, self.noise / self.alpha)
        return float(self.v @ loss) + 0.5 * self.alpha * float(w @ w)

    def run(self, direct: bool, tol: float, max_iter: int | None, tell: Tell | None) -> Status:
        with Anytime(best=self) as run:
            run.status = self.loop(direct, tol, max_iter, tell)
        return run.status

    def loop(self, direct: bool, tol: float, max_iter: int | None, tell: Tell | None) -> Status:
        first = None
        self.direct = direct
        while True:
            _, fall, bend = logistic(self.t * self.f, self.noise / self.alpha)
            pull = self.v * self.t * fall
            curvature = self.v * bend
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
            if first is None:
                first = max(float(np.linalg.norm(b)), np.finfo(float).tiny)
            self.relative = size / first
            self.gap = size**2 / (2 * self.alpha)
            if tell is not None and tell(self.steps, self.relative):
                return Status.STOPPED
            if self.relative <= tol:
                return Status.CONVERGED
            # A step and the gradient after it: two passes, and one or more for conjugate gradients. The
            # first may be late by one.
            ahead = (2 if self.direct else 3) * taken
            if self.steps == 0:
                ahead -= taken
            if (max_iter is not None and self.steps >= max_iter) or clock.short_of(ahead):
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

    def sums(self, pull: Array, curvature: Array, direct: bool) -> tuple[Cholesky | None, Array]:
        """The factor of ΦᵀSΦ + αI, if it is to be summed, and Φᵀpull, in one pass."""
        if not direct:
            shares = pull / _nonzero(self.v)
            return None, self.of.right_side(lambda y, rows: shares[rows][:, None])[:, 0]
        ratio = np.divide(pull, curvature, out=np.zeros_like(pull), where=curvature > 0)
        inverse, b = self.of.factored(
            self.alpha, lambda y, rows: ratio[rows][:, None], lambda w, rows: curvature[rows]
        )
        return inverse, b[:, 0]

    def step(self, gradient: Array, curvature: Array, inverse: Cholesky | None) -> bool:
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
        slope = float(gradient @ move)
        length = 1.0
        for _ in range(HALVINGS):
            w = self.w + length * move
            f = self.f + length * along
            value = self.objective(w, f)
            if value <= self.value + 1e-4 * length * slope + 1e-14 * abs(self.value):
                moved = value < self.value or float(np.linalg.norm(move)) > 1e-12 * float(np.linalg.norm(w))
                self.w = w
                self.f = f
                self.value = value
                return moved
            length *= 0.5
        return False


def logistic(u: Array, free: float) -> tuple[Array, Array, Array]:
    """min over ε of log(1 + e^-(u + ε)) + ε² / 2·free: its value, minus its slope, and its curvature.

    Without noise it is the logistic loss itself:

    >>> value, fall, bend = logistic(np.array([0.0]), 0.0)
    >>> value.round(4), fall, bend
    (array([0.6931]), array([0.5]), array([0.25]))
    """
    v = u if free == 0 else _own_part(u, free)
    p = expit(-v)
    bend = p * expit(v)
    value = np.logaddexp(0.0, -v) + 0.5 * free * p**2
    return value, p, bend / (1 + free * bend)


def _own_part(u: Array, free: float) -> Array:
    """v = u + ε, ε = free · σ(-v): the one root between u and u + free, by Newton inside a bracket.

    Every eighth step halves the bracket, so that the steps in between cannot run in circles.
    """
    low = u
    high = u + free
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


def _nonzero(v: Array) -> Array:
    return np.where(v > 0, v, 1.0)
