"""Solve (A + shift·I) x = b by conjugate gradients: products with A only.

Several right-hand sides run side by side: one block product serves all of them, each has its own recurrence,
and each leaves when its own relative residual is below `tol`. The recurrence's residual is trusted only until
it claims convergence; then the true one is computed, and if the two disagree the recurrence starts again from
the true one. When that no longer helps, rounding has set a floor and the status is "stagnated".

Conjugate gradients lower the energy ½xᵀAx - bᵀx at every step, but their residual may rise a thousandfold on
the way. So an answer that ends early is not the last iterate: it is the mean of all iterates with the weights
that make the residual least (Weiss's residual smoothing; without a preconditioner these are the iterates of
MINRES). Its residual never rises, and its energy, as that of a mean, is at most that of the start. At the end
of a round the true residual decides once more, and a round that has not lowered it by more than rounding is
taken back.

A float32 operator runs the recurrence in float32 products and the true residual in float64, block by block,
so that its rounds refine the answer beyond float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mercer import clock
from mercer.errors import ParameterError
from mercer.solve.anytime import Anytime
from mercer.solve.direct import largest
from mercer.solve.operator import (
    MatrixLike,
    Operator,
    Products,
    as_operator,
    check_number,
    check_targets,
    multiply,
    multiply_exactly,
    relative,
)
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Flags, Integers

# Iterations in which a column must find a new smallest residual, or lower the energy by so much of all its
# gain.
PATIENCE = 250
ENERGY = 1e-12
# Rounds that start again from the true residual, as long as each one wins a digit.
RESTARTS = 20
GAIN = 0.1
# Times √n·eps·‖A‖: eigenvalues that are less negative are taken for 0.
ROUNDING = 16
# Of a residual: what rounding may change of one that is stated without being measured.
DRIFT = 1e-6
# Of a residual: what rounding may change of one that its caller measures, before it is measured here too.
DOUBT = 0.1
# Times eps·‖A‖ ‖x‖: what rounding makes of a residual that is measured in float64.
MEASURED = 4
# Seconds that a product may take if Ctrl-C is to wait for one more.
QUICK = 0.1
# What one round in float32 may hope to gain.
SINGLE_ROUND = 1e-4
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


class Preconditioner(Protocol):
    """Anything that multiplies a block by an approximate, positive definite (A + shift·I)⁻¹."""

    def __matmul__(self, R: Array) -> Array: ...


def cg(
    A: MatrixLike | Products,
    b: npt.ArrayLike,
    shift: float = 0.0,
    *,
    preconditioner: Preconditioner | None = None,
    tol: float = 1e-10,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    x0: npt.ArrayLike | None = None,
    callback: Callable[[int, float], object] | None = None,
    keep: bool = True,
    certified: bool = False,
    after: int = 0,
) -> Solution[Array]:
    """Solve (A + shift·I) x = b by preconditioned conjugate gradients; A positive semi-definite.

    `max_iter` defaults to 10 n, at most 10 000. `callback(iteration, residual)` sees the worst relative
    residual of the recurrence, and ends the run by returning something true. Ctrl-C keeps the iterate, with
    status "interrupted", or, with `keep=False`, leaves at once: for those who have no use for half an answer.
    The residual in the certificate is the true one, and never above that of the start.

    An iteration is not begun if it, the true residual and `after` more such products of the caller would end
    after the seconds. Where they are over nevertheless, the residual of the recurrence is stated if rounding
    cannot have changed it, or if the caller measures it again (`certified`).

    >>> found = cg(np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 12.0]))
    >>> found.value.round(8), found.certificate.status, found.certificate.iterations
    (array([1., 2.]), 'converged', 2)
    """
    op = as_operator(A, products_only=True)
    B, single = check_targets(op, b)
    X = np.zeros_like(B)
    if x0 is not None:
        X = _like(check_targets(op, x0, "x0")[0], B)
    shift = check_number(shift, "shift", 0.0)
    tol = check_number(tol, "tol", 0.0)
    most = min(10 * len(B), 10_000)
    if max_iter is not None:
        most = int(check_number(max_iter, "max_iter", 0))
    if max_seconds is not None:
        max_seconds = check_number(max_seconds, "max_seconds", 0.0)
    run = Anytime[_State](max_seconds)
    state = _State(
        op=op,
        shift=shift,
        B=B,
        X=X,
        tol=tol,
        inverse=preconditioner,
        max_iter=most,
        callback=callback,
        certified=certified,
        after=after,
    )
    if keep:
        run.best = state
    with run:
        state.run(warm=x0 is not None)
    if run.interrupted:
        # Where every column is settled the answer is whole, and Ctrl-C still ends what goes on after it.
        left = state.open if state.open.any() else np.ones_like(state.open)
        state.stop(np.flatnonzero(left), Status.INTERRUPTED)
        if state.measure_seconds <= QUICK:
            every = np.arange(B.shape[1])
            state.measure(every)
            state.take_back(every)
        else:
            state.true[:] = np.nan
            state.note("The residual was not measured: a product takes long, and Ctrl-C was pressed.")
    done = state.certificate(run.seconds)
    return Solution(state.X[:, 0] if single else state.X, done)


def _like(X: Array, B: Array) -> Array:
    if X.shape != B.shape:
        raise ParameterError(f"x0 has {X.shape[1]} columns; b has {B.shape[1]}. They must agree.")
    return X.copy()


@dataclass
class _State:
    """The columns of X: where they are, which still run, and why the others do not."""

    op: Operator
    shift: float
    B: Array
    X: Array
    tol: float
    inverse: Preconditioner | None
    max_iter: int
    callback: Callable[[int, float], object] | None
    certified: bool = False
    after: int = 0
    iterations: int = 0
    # Whether the seconds ended the round.
    ran_out: bool = False
    # What an iteration costs, as it was last measured.
    product_seconds: float = 0.0
    # What a true residual costs, a product in float64; none was made yet.
    measure_seconds: float = np.inf
    # ‖A + shift‖, from below.
    norm: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = np.linalg.norm(self.B, axis=0)
        self.scale = np.where(size > 0, size, 1.0)
        self.R = self.B.copy()
        # The true residuals, as last measured.
        self.true = relative(self.R, self.B)
        self.begin()
        # The longest iterate met, over ‖b‖: what rounding in the recurrence goes by.
        self.length = np.linalg.norm(self.X, axis=0) / self.scale
        self.status: list[Status] = [Status.CONVERGED] * self.B.shape[1]
        self.open = np.ones(self.B.shape[1], dtype=bool)

    def begin(self) -> None:
        """Remember the answer so far, with its true residual: a round that ends above it is taken back."""
        self.start = self.X.copy()
        self.before = self.true.copy()

    def take_back(self, columns: Integers) -> None:
        """The start of the round, where its end has a larger residual, or may have one but for rounding."""
        lost = columns[~(self.true[columns] + self.rounding_of_gain(columns) <= self.before[columns])]
        self.X[:, lost] = self.start[:, lost]
        self.measure(lost)

    def rounding_of_gain(self, columns: Integers) -> Array:
        """What rounding may make of the difference between a residual and that of the start of the round.

        Directions that a preconditioner has turned away from the large eigenvalues say little of ‖A‖, so
        products are made for it where a round has gained little and there is time.
        """
        way = np.linalg.norm(self.X[:, columns] - self.start[:, columns], axis=0) / self.scale[columns]
        gain = self.before[columns] - self.true[columns]
        slow = (self.true[columns] > GAIN * self.before[columns]) & (gain > 0) & (way > 0)
        if slow.any() and not self.ran_out:
            self.norm = max(self.norm, self.powered)
        out: Array = MEASURED * EPS * self.norm * way
        return out

    @cached_property
    def powered(self) -> float:
        """‖A + shift‖ from below, by two products for it alone."""
        return largest(self.op, 2) + self.shift

    def stop(self, columns: Integers, status: Status) -> None:
        self.open[columns] = False
        for j in columns:
            self.status[j] = status

    def measure(self, columns: Integers) -> Array:
        """The true relative residuals of some columns, computed afresh."""
        if len(columns):
            began = clock.now()
            image = multiply_exactly(self.op, self.X[:, columns], self.shift)
            self.R[:, columns] = self.B[:, columns] - image
            self.true[columns] = np.linalg.norm(self.R[:, columns], axis=0) / self.scale[columns]
            self.measure_seconds = clock.now() - began
        return self.true[columns]

    def settle(self, columns: Integers) -> Array:
        """The true relative residuals after a round; those of the recurrence where seconds ended it."""
        if not self.ran_out:
            return self.measure(columns)
        size: Array = np.linalg.norm(self.R[:, columns], axis=0) / self.scale[columns]
        if np.any(size <= self.tol):
            return self.measure(columns)
        trusted = DOUBT
        if not self.certified:
            trusted = DRIFT
            if not clock.short_of((1 + self.after) * self.known_measure):
                return self.measure(columns)
        if np.any(self.drift(columns) > trusted * size):
            return self.measure(columns)
        self.true[columns] = size
        return size

    def drift(self, columns: Integers) -> Array:
        """How far rounding may have taken the residuals of the recurrence from the true ones."""
        length: Array = self.length[columns]
        return self.iterations * self.grain * self.norm * length

    @property
    def grain(self) -> float:
        """What rounding makes of a product, as a part of ‖A‖ ‖p‖."""
        return ROUNDING * float(np.sqrt(len(self.B))) * float(np.finfo(self.op.dtype).eps)

    def short(self) -> bool:
        """Whether another iteration and the true residual after it would end too late."""
        if self.iterations == 0:
            # There is nothing to end with yet.
            return clock.late()
        more = self.after if self.certified else 1 + self.after
        return clock.short_of(self.product_seconds + more * self.known_measure)

    @property
    def known_measure(self) -> float:
        """What a true residual costs; before the first, what float64 takes by the products in float32."""
        return self.measure_seconds if np.isfinite(self.measure_seconds) else 2 * self.product_seconds

    def run(self, warm: bool) -> None:
        """Rounds of the recurrence, each from the true residual, until every column is settled."""
        zero = np.flatnonzero(~self.B.any(axis=0))
        self.X[:, zero] = 0.0
        self.R[:, zero] = 0.0
        self.true[zero] = 0.0
        self.stop(zero, Status.CONVERGED)
        if warm:
            self.measure(np.flatnonzero(self.open))
        self.stop(np.flatnonzero(self.open & (self.true <= self.tol)), Status.CONVERGED)
        for _ in range(RESTARTS):
            columns = np.flatnonzero(self.open)
            if not len(columns):
                return
            self.begin()
            steps = self.iterations
            self.recur(columns)
            if self.iterations == steps and not self.open[columns].any():
                # It was late before the first product: the residual is still the one that was measured.
                return
            after = self.settle(columns)
            self.stop(columns[after <= self.tol], Status.CONVERGED)
            slow = ~(after <= GAIN * self.before[columns])
            self.stop(columns[self.open[columns] & slow], Status.STAGNATED)
            self.take_back(columns)
        self.stop(np.flatnonzero(self.open), Status.STAGNATED)

    def recur(self, columns: Integers) -> None:
        """Preconditioned conjugate gradients on these columns, until all are done by their recurrence."""
        X = self.X[:, columns].copy()
        R = self.R[:, columns].copy()
        P = self.precondition(R).copy()
        rz = _dots(R, P)
        watch = _Watch(self.true[columns])
        goal = np.full(rz.shape, self.tol)
        if self.op.dtype != np.float64:
            goal = np.maximum(self.tol, SINGLE_ROUND * self.true[columns])
        # ‖A‖ from below.
        norm = 0.0
        while len(columns):
            self.ran_out = self.short()
            if self.iterations >= self.max_iter or self.ran_out:
                self.stop(columns, Status.LIMIT)
                return
            began = clock.now()
            AP = multiply(self.op, P, self.shift)
            if self.op.dtype == np.float64:
                self.measure_seconds = clock.now() - began
            curvature = _dots(P, AP)
            live = self.is_convex(columns, P, AP, curvature)
            step = np.where(live, rz / np.where(live, curvature, 1.0), 0.0)
            X += step * P
            R -= step * np.where(live, AP, 0.0)
            self.iterations += 1
            size = np.linalg.norm(R, axis=0) / self.scale[columns]
            self.smooth(columns, X, R, size <= goal)
            if self.report(columns, size):
                self.stop(columns, Status.STOPPED)
                return
            norm = max(norm, float((np.where(live, curvature, 0.0) / np.maximum(_dots(P, P), TINY)).max()))
            length = np.linalg.norm(X, axis=0) / self.scale[columns]
            self.length[columns] = np.maximum(self.length[columns], length)
            floor = EPS * (1.0 + norm * length)
            live &= (size > np.maximum(goal, floor)) & watch.moves(size, step * rz)
            columns = columns[live]
            goal = goal[live]
            X = X[:, live]
            R = R[:, live]
            P = P[:, live]
            rz = rz[live]
            watch.keep(live)
            if len(columns):
                Z = self.precondition(R)
                new = _dots(R, Z)
                P = Z + (new / rz) * P
                rz = new
            self.product_seconds = clock.now() - began

    def smooth(self, columns: Integers, X: Array, R: Array, arrived: Flags) -> None:
        """Move the answers towards the iterates X as far as makes the residual least; those arrived, wholly.

        A share in [0, 1] of the way, so that an answer remains a mean of iterates. One so far from the start
        that rounding in A x could be seen in its residual has no share.
        """
        S = self.R[:, columns]
        way = R - S
        share = np.clip(-_dots(S, way) / np.maximum(_dots(way, way), TINY), 0.0, 1.0)
        far = np.linalg.norm(X - self.start[:, columns], axis=0) / self.scale[columns]
        share = np.where(EPS * self.norm * far <= DRIFT * self.before[columns], share, 0.0)
        answer = self.X[:, columns]
        self.X[:, columns] = np.where(arrived, X, answer + share * (X - answer))
        self.R[:, columns] = np.where(arrived, R, S + share * way)

    def report(self, columns: Integers, size: Array) -> bool:
        """Tell the callback; whether it wants to stop."""
        if self.callback is None:
            return False
        now = self.true.copy()
        now[columns] = size
        return bool(self.callback(self.iterations, float(now.max())))

    def precondition(self, R: Array) -> Array:
        if self.inverse is None:
            return R
        return np.asarray(self.inverse @ R, dtype=np.float64)

    def is_convex(self, columns: Integers, P: Array, AP: Array, curvature: Array) -> Flags:
        """Which columns see pᵀAp > 0; the others are stopped, with the reason in a note."""
        length = np.linalg.norm(P, axis=0)
        rounding = self.rounding_of_products(length, np.linalg.norm(AP, axis=0), curvature)
        for j in np.flatnonzero(~np.isfinite(curvature)):
            self.stop(columns[[j]], Status.FAILED)
            self.note("A product with the matrix gave NaN or infinity. Look for missing values or overflow.")
        flat = (curvature <= 0) & (curvature >= -rounding)
        self.stop(columns[flat], Status.STAGNATED)
        negative = curvature < -rounding
        if negative.any():
            self.stop(columns[negative], Status.FAILED)
            lowest = (curvature[negative] / length[negative] ** 2).min()
            self.note(
                f"The matrix is not positive semi-definite: a direction with pᵀAp / pᵀp = {lowest:.3g} was "
                f"met. Use a valid kernel, or raise the shift by more than {-lowest:.3g}."
            )
        return np.isfinite(curvature) & (curvature > 0)

    def rounding_of_products(self, length: Array, image: Array, curvature: Array) -> Array:
        """What rounding may make of pᵀAp: a share of ‖A‖ ‖p‖, for ‖Ap‖ is rounding itself where Ap = 0.

        ‖A‖ is known from below: by all products so far, and by two more where it matters.
        """
        stretch = image / np.maximum(length, TINY)
        self.norm = max(self.norm, float(stretch[np.isfinite(stretch)].max(initial=0.0)))
        if not np.any(curvature <= 0):
            return np.zeros_like(length)
        return self.grain * max(self.norm, self.powered) * length**2

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def certificate(self, seconds: float) -> Certificate:
        status = Status.worst(self.status) if self.status else Status.CONVERGED
        worst = float(self.true.max(initial=0.0))
        late = sum(s != Status.CONVERGED for s in self.status)
        share = f" ({late} of {len(self.status)} right-hand sides)" if len(self.status) > 1 else ""
        if status == Status.STAGNATED:
            digits = f"{self.op.dtype} products"
            self.note(
                f"No progress beyond a residual of {worst:.1e}{share}; {self.tol:.1e} was asked. The matrix "
                f"is too ill-conditioned for {digits}, or singular with b outside its range. Raise the "
                "shift, use a preconditioner of higher rank, or Cholesky."
            )
        elif status == Status.LIMIT:
            self.note(
                f"Stopped at a residual of {worst:.1e}{share}; {self.tol:.1e} was asked. Allow more "
                "iterations or seconds, start again from this answer (x0), or use a preconditioner of higher "
                "rank."
            )
        name = "conjugate gradients"
        if self.inverse is not None:
            name += f" with {_name(self.inverse)}"
        return Certificate(
            status,
            name,
            iterations=self.iterations,
            seconds=seconds,
            residual=None if np.isnan(worst) else worst,
            residuals=None if np.isnan(worst) else tuple(self.true.tolist()),
            worst_row=int(np.argmax(np.abs(self.R / self.scale).max(axis=1))) if self.R.size else None,
            added_diagonal=0.0,
            notes=tuple(self.notes),
        )


class _Watch:
    """Which columns still move: a new smallest residual, or energy gained, in the last `PATIENCE` iterations.

    The residual of conjugate gradients may rise for long while the energy ½xᵀAx - bᵀx falls, so both are
    asked.
    """

    def __init__(self, size: Array) -> None:
        self.best = size.copy()
        self.since = np.zeros(len(size), dtype=int)
        self.gained = np.zeros(len(size))
        self.window = np.zeros(len(size))

    def moves(self, size: Array, gain: Array) -> Flags:
        self.gained += gain
        self.window += gain
        fresh = size < 0.999 * self.best
        self.best = np.minimum(self.best, size)
        self.since = np.where(fresh, 0, self.since + 1)
        late = self.since >= PATIENCE
        stuck = late & (self.window <= ENERGY * self.gained)
        self.since = np.where(late, 0, self.since)
        self.window = np.where(fresh | late, 0.0, self.window)
        return ~stuck

    def keep(self, live: Flags) -> None:
        self.best = self.best[live]
        self.since = self.since[live]
        self.gained = self.gained[live]
        self.window = self.window[live]


def _name(inverse: Preconditioner) -> str:
    text = str(inverse)
    return text if len(text) < 60 else f"a {type(inverse).__name__} preconditioner"


def _dots(U: Array, V: Array) -> Array:
    out: Array = np.einsum("ij,ij->j", U, V)
    return out
