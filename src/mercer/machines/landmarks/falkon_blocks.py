"""Newton's method for several two-class problems at once: one pass over k(x, Z) serves all classes.

Every class has its own objective, as in `falkon_newton`, its own steps and its own end. What they share are
the passes: the gradients of all classes are one product with Φᵀ, and an iteration of conjugate gradients on
(ΦᵀS_cΦ + αI) d_c = -g_c is one product with Φ and one with Φᵀ for all c. They also share the preconditioner:
with M = Q diag(λ) Qᵀ in place of ΦᵀΦ, each class has (s_c λ + α)⁻¹ in the same basis, s_c its mean curvature.
Steps are computed in that basis, where it is a diagonal, from features in float32 if these can be kept;
gradients and values are those of Φ itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mercer import clock
from mercer.machines.landmarks.falkon_newton import HALVINGS, INNER, logistic
from mercer.machines.landmarks.selection import Basis
from mercer.machines.landmarks.streamed import Curved, Streamed
from mercer.progress import Tell
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Flags, Integers, Labels

# Iterations of conjugate gradients in one step.
INNER_STEPS = 200
# Bytes that the values of a group of classes at all rows may take; more classes are solved in groups.
GROUP_BYTES = 256 << 20
# Arrays of rows × classes that are alive at a time.
ARRAYS = 8


@dataclass(frozen=True, eq=False)
class Shared:
    """M = Q diag(λ) Qᵀ: ΦᵀWΦ, or what the landmarks alone say of it, for every class the same.

    `coefficients` is L⁻ᵀQ, so that k(x, Z) L⁻ᵀQ u = φ(x)·Qu; `rows` the total weight that M stands for.
    """

    values: Array
    vectors: Array
    coefficients: Array
    rows: float

    @classmethod
    def of(cls, basis: Basis, values: Array, vectors: Array, rows: float) -> Shared:
        return cls(np.maximum(values, 0.0), vectors, basis.coefficients(vectors), rows)

    def diagonal(self, curvature: Array, alpha: float) -> Array:
        """s_c λ + α with a column for each class, of its total curvature."""
        found: Array = self.values[:, None] * (curvature / self.rows) + alpha
        return found


def newton_in_blocks(
    of: Streamed,
    y: Labels,
    v: Array,
    wanted: Labels,
    alpha: float,
    shared: Shared,
    *,
    noise: float,
    tol: float,
    max_iter: int | None,
    tell: Tell | None,
) -> tuple[Array, Certificate]:
    """One column of w for each wanted class against the rest."""
    done: list[_Group] = []
    curved = of.curvatures(shared.coefficients)
    for labels in _groups(wanted, len(y)):
        T = np.where(y[:, None] == labels[None, :], 1.0, -1.0)
        group = _Group(of, T, v, alpha, noise, shared, curved, tol, max_iter)
        if not done or not (done[-1].ended_all or clock.late()):
            group.run(tell)
        done.append(group)
    certificate = Certificate(
        Status.worst([status for group in done for status in group.status]),
        "Newton's method on all classes at once, conjugate gradients",
        iterations=max(group.steps for group in done),
        residual=float(max(group.relative.max() for group in done)),
        primal=float(sum(group.value.sum() for group in done)),
        gap=float(sum(group.gap.sum() for group in done)),
        notes=tuple(note for group in done for note in group.notes()),
    )
    return np.hstack([group.W for group in done]), certificate


def _groups(wanted: Labels, n: int) -> Iterator[Labels]:
    """Classes, as many at a time as memory allows."""
    most = max(1, GROUP_BYTES // (8 * ARRAYS * max(n, 1)))
    count = -(-len(wanted) // most)
    for part in np.array_split(np.arange(len(wanted)), count):
        yield wanted[part]


@dataclass(eq=False)
class _Group:
    """Several classes: where each of them is, and how good that is."""

    of: Streamed
    T: Array
    v: Array
    alpha: float
    noise: float
    shared: Shared
    curved: Curved
    tol: float
    max_iter: int | None
    steps: int = 0
    # What a pass over the rows takes, as it was last measured.
    taken: float = 0.0
    first: Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        k = self.T.shape[1]
        self.W = np.zeros((self.of.basis.rank, k))
        self.F = np.zeros(self.T.shape)
        self.relative = np.ones(k)
        self.before = np.ones(k)
        self.status: list[Status] = [Status.LIMIT] * k
        self.open = np.ones(k, dtype=bool)
        self.value = self.objective(np.arange(k), self.W, self.F)
        # The least is not below 0.
        self.gap = self.value.copy()

    @property
    def ended_all(self) -> bool:
        """Whether something ended this group that ends the others too."""
        return any(status.on_request for status in self.status)

    def objective(self, columns: Integers, W: Array, F: Array) -> Array:
        loss, _, _ = logistic(self.T[:, columns] * F, self.noise / self.alpha)
        total: Array = self.v @ loss + 0.5 * self.alpha * (W**2).sum(axis=0)
        return total

    def stop(self, columns: Integers, status: Status) -> None:
        self.open[columns] = False
        for c in columns:
            self.status[c] = status

    def notes(self) -> list[str]:
        worst = float(self.relative.max())
        if Status.LIMIT in self.status:
            return [f"stopped with a gradient of {worst:.1e} of the first; {self.tol:.1e} was asked"]
        if Status.STAGNATED in self.status:
            return [f"no descent beyond a gradient of {worst:.1e}: what is left is rounding"]
        return []

    def run(self, tell: Tell | None) -> None:
        with Anytime(best=self) as run:
            self.loop(tell)
        if run.interrupted:
            self.stop(np.flatnonzero(self.open), Status.INTERRUPTED)

    def loop(self, tell: Tell | None) -> None:
        while True:
            columns = np.flatnonzero(self.open)
            T = self.T[:, columns]
            _, fall, bend = logistic(T * self.F[:, columns], self.noise / self.alpha)
            gradient = self.slopes(columns, self.v[:, None] * T * fall)
            if tell is not None and tell(self.steps, float(self.relative.max())):
                self.stop(columns, Status.STOPPED)
                return
            met = self.relative[columns] <= self.tol
            self.stop(columns[met], Status.CONVERGED)
            if met.all():
                return
            # An iteration of conjugate gradients, the values along the step and the gradient after it.
            if (self.max_iter is not None and self.steps >= self.max_iter) or clock.short_of(2 * self.taken):
                return
            going = columns[~met]
            self.step(going, gradient[:, ~met], self.v[:, None] * bend[:, ~met])
            if not self.open.any():
                return
            self.steps += 1

    def slopes(self, columns: Integers, pull: Array) -> Array:
        """The gradients of some classes, and what they say of their ends."""
        began = clock.now()
        b = self.of.right_side_of(pull)
        # A product with Φᵀ alone is half of a pass.
        self.taken = max(self.taken, 2 * (clock.now() - began))
        if not len(self.first):
            self.first = np.maximum(np.linalg.norm(b, axis=0), np.finfo(float).tiny)
        gradient: Array = self.alpha * self.W[:, columns] - b
        size = np.linalg.norm(gradient, axis=0)
        self.relative[columns] = size / self.first[columns]
        self.gap[columns] = size**2 / (2 * self.alpha)
        return gradient

    def step(self, columns: Integers, gradient: Array, curvature: Array) -> None:
        """One Newton step of each class, as far along it as its objective falls."""
        move = self.solve(gradient, curvature, self.forcing(columns))
        self.before[columns] = self.relative[columns]
        along = self.of.values(move)
        slope = (gradient * move).sum(axis=0)
        length = np.ones(len(columns))
        left = np.ones(len(columns), dtype=bool)
        for _ in range(HALVINGS):
            some = columns[left]
            W = self.W[:, some] + length[left] * move[:, left]
            F = self.F[:, some] + length[left] * along[:, left]
            value = self.objective(some, W, F)
            before = self.value[some]
            lower = value <= before + 1e-4 * length[left] * slope[left] + 1e-14 * np.abs(before)
            self.take(some, lower, W, F, value)
            left[np.flatnonzero(left)[lower]] = False
            if not left.any():
                return
            length[left] *= 0.5
        self.stop(columns[left], Status.LIMIT if clock.late() else Status.STAGNATED)

    def forcing(self, columns: Integers) -> Array:
        """The residual that a step is worth, relative to its gradient (Eisenstat and Walker).

        The square of what the last step gained, so that convergence is quadratic once Newton's steps are;
        never less than the tolerance needs.
        """
        gained = (self.relative[columns] / self.before[columns]) ** 2
        found: Array = np.minimum(INNER, np.maximum(gained, 0.5 * self.tol / self.relative[columns]))
        return found

    def take(self, some: Integers, lower: Flags, W: Array, F: Array, value: Array) -> None:
        """Go where it is lower; where nothing moves any more, that is the end."""
        at = some[lower]
        change = np.linalg.norm(W[:, lower] - self.W[:, at], axis=0)
        still = (value[lower] >= self.value[at]) & (change <= 1e-12 * np.linalg.norm(W[:, lower], axis=0))
        self.W[:, at] = W[:, lower]
        self.F[:, at] = F[:, lower]
        self.value[at] = value[lower]
        self.stop(at[still], Status.STAGNATED)

    def solve(self, gradient: Array, curvature: Array, goal: Array) -> Array:
        """(ΦᵀS_cΦ + αI) d_c = -g_c of every class, roughly, by conjugate gradients side by side."""
        Q = self.shared.vectors
        scale = self.shared.diagonal(curvature.sum(axis=0), self.alpha)
        U = np.zeros_like(gradient)
        R = -(Q.T @ gradient)
        goal = goal * np.linalg.norm(R, axis=0)
        P = R / scale
        rz = (R * P).sum(axis=0)
        live = np.arange(gradient.shape[1])
        for _ in range(INNER_STEPS):
            began = clock.now()
            image = self.curved.product(P, curvature) + self.alpha * P
            self.taken = clock.now() - began
            length = rz / (P * image).sum(axis=0)
            U[:, live] += length * P
            R -= length * image
            go = np.linalg.norm(R, axis=0) > goal[live]
            # Another iteration, the values along the step and the gradient after it.
            if not go.any() or clock.short_of(2 * self.taken):
                break
            if not go.all():
                live = live[go]
                curvature = curvature[:, go]
                scale = scale[:, go]
                R = R[:, go]
                P = P[:, go]
                rz = rz[go]
            Z = R / scale
            new = (R * Z).sum(axis=0)
            P = Z + (new / rz) * P
            rz = new
        return np.asarray(Q @ U)
