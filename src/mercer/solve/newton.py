"""Newton's method for any smooth convex loss under the representer theorem.

    min  P(β, b) = Σ_i ℓ_i(z_i) + (α/2) tr βᵀKβ,      z = Kβ + 1bᵀ        β, z: n×k,  b: k

Every ℓ_i (with its weight) is a convex function of the k numbers z_i. With s_i its slope, β' = -s/α, and R_i
R_iᵀ its curvature, one step solves

    (αI + RᵀKR) v = Rᵀ(K(β - β') - 1δᵀ),      β ← β' + Rv,      b ← b + δ,      1ᵀβ = 0

by `solve_by`: Cholesky, or conjugate gradients where n is large. Rows without curvature drop out of the
system. A step that overshoots is halved. Where b is free it is made optimal first, so that Σ s_i = 0: then s
is a point of the dual and, because ℓ*(s) = s z - ℓ(z) at a slope,

    gap = P - D(s) = (α/2) tr (β - β')ᵀK(β - β')  ≥ 0

which is summed without cancellation. Where the conjugate is known, s = -αβ is tried as well, and the smaller
gap counts:

    gap = Σ ℓ_i(z_i) + ℓ_i*(s_i) - s_i z_i,      if Σ β_i = 0 and s is in the domain of ℓ*

Near the optimum both vanish; for tiny α the first suffers from rounding in s/α, the second does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.linalg import lstsq
from scipy.optimize import brentq

from mercer import clock, lapack
from mercer.memory import memory_limit
from mercer.panels import scaled_both_sides, whole_from_lower
from mercer.solve.anytime import Anytime
from mercer.solve.curved import Curved, block_of
from mercer.solve.operator import MatrixLike, Operator, as_operator
from mercer.solve.plan import DIRECT_ROWS
from mercer.solve.solution import Certificate, Solution, Status
from mercer.solve.system import SystemOptions, solve_by
from mercer.typing import Array, Memory, Seed

HALVINGS = 60
ROUNDING = 1e-13  # of P: differences below this are no differences
PATIENCE = 8  # iterations without a smaller gap
INTERCEPT_STEPS = 50
BALANCED = 1e-14  # of Σ|s|: where the slopes count as summing to zero


class SmoothProblem(Protocol):
    """The losses of all rows, weighted, as functions of z (n×k)."""

    def value(self, z: Array) -> Array:
        """ℓ_i(z_i), n numbers; infinite where z_i is outside the domain."""

    def slope(self, z: Array) -> Array:
        """n×k."""

    def root(self, z: Array) -> Array:
        """R, n×k×r, with R_i R_iᵀ the curvature."""

    def conjugate(self, s: Array) -> Array | None:
        """ℓ_i*(s_i), n numbers, infinite outside the domain; None where it is not known."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """s as coefficients β' = -s/α, its products f' = Kβ', and the gap to the primal."""

    beta: Array
    f: Array
    gap: float


def from_slopes(
    K: Operator, problem: SmoothProblem, alpha: float, beta: Array, f: Array, z: Array
) -> DualPoint:
    """The dual point s = ℓ'(z); feasible if the slopes sum to zero (`balanced`).

    A form that is negative beyond rounding is that of a matrix which is no kernel's: it bounds nothing.
    """
    dual = -problem.slope(z) / alpha
    f_dual = np.asarray(K @ np.ascontiguousarray(dual), dtype=np.float64)
    terms = (beta - dual) * (f - f_dual)
    rounding = 1e-9 * float(np.abs(beta - dual).max(initial=0.0) * np.abs(f - f_dual).sum())
    gap = 0.5 * alpha * float(terms.sum())
    if gap < -alpha * rounding:
        gap = np.inf
    return DualPoint(dual, f_dual, max(gap, 0.0))


def from_coefficients(
    problem: SmoothProblem, alpha: float, beta: Array, f: Array, z: Array, intercept: bool
) -> DualPoint:
    """The dual point s = -αβ; an infinite gap where it is not feasible or the conjugate not known."""
    unbalanced = intercept and np.abs(beta.sum(axis=0)).max() > 1e-9 * np.abs(beta).sum()
    conjugate = None if unbalanced else problem.conjugate(-alpha * beta)
    if conjugate is None:
        return DualPoint(beta, f, np.inf)
    terms = np.stack([problem.value(z), conjugate, alpha * (beta * z).sum(axis=1)])
    if not np.all(np.isfinite(terms)):
        return DualPoint(beta, f, np.inf)
    # The terms cancel: no gap below this can be claimed.
    rounding = float(np.finfo(float).eps * np.abs(terms).sum())
    return DualPoint(beta, f, max(float(terms.sum()), rounding))


def balanced(problem: SmoothProblem, s: Array, z: Array) -> bool:
    """Whether slopes sum to zero, to rounding: of their own sum, or of z times the curvature."""
    off = float(np.abs(s.sum(axis=0)).max())
    if off <= 1e-10 * float(np.abs(s).sum()):
        return True
    size = np.square(problem.root(z)).sum(axis=(1, 2)) * (1.0 + np.abs(z).max(axis=1))
    return bool(off <= 16 * np.finfo(float).eps * float(size.sum()))


@dataclass(frozen=True, eq=False)
class NewtonPoint:
    """The coefficients β (n×k), the intercepts b (k), and z = Kβ + b."""

    beta: Array
    b: Array
    z: Array


# Told the iteration, P and the gap, it ends the run by returning something true.
Progress: TypeAlias = Callable[[int, float, float], object]


def newton(
    K: MatrixLike,
    problem: SmoothProblem,
    alpha: float,
    *,
    outputs: int = 1,
    intercept: bool = True,
    start: tuple[Array, Array] | None = None,
    rough: bool = False,
    shares: Callable[[Array], Array] | None = None,
    tol: float = 1e-10,
    max_iter: int = 100,
    max_seconds: float | None = None,
    memory: Memory = "2GiB",
    random_state: Seed = 0,
    callback: Progress | None = None,
) -> Solution[NewtonPoint]:
    """Minimise P until gap ≤ tol·P, then take one more step if the systems are solved directly.

    `shares(z)` may say that the curvature of row i is diag(d_i) - d_i d_iᵀ / Σd_i, d_i > 0 (softmax): then
    n×n systems, one for each output and one for their sum, take the place of one of nk rows. `start` is (β,
    b), zeros if None. With `rough` b is only moved by the steps and no further step is taken: for a problem
    that is itself one of a sequence, whose gap is measured by someone else. `callback(iteration, P, gap)`
    ends the run by returning something true; so does Ctrl-C. What was found is kept.

    >>> class Half:               # ½(z - 3)² on one row, K = 1, α = 1, no intercept: f = 3/2
    ...     def value(self, z): return 0.5 * (z[:, 0] - 3) ** 2
    ...     def slope(self, z): return z - 3
    ...     def root(self, z): return np.ones((1, 1, 1))
    ...     def conjugate(self, s): return None
    >>> float(newton(np.eye(1), Half(), 1.0, intercept=False).value.z[0, 0])
    1.5
    """
    op = as_operator(K)
    run = _Iteration(op, problem, float(alpha), outputs, intercept, rough, shares, tol, memory, random_state)
    with Anytime(max_seconds, best=run) as whole:
        run.begin(start)
        whole.status = run.iterate(max_iter, callback)
    return run.result(whole.status)


class _Iterate(NamedTuple):
    """One point on the way: its gap, β, f = Kβ and b."""

    gap: float
    beta: Array
    f: Array
    b: Array


class _Iteration:
    """Where the method is: β, b, f = Kβ, and z = f + b."""

    def __init__(
        self,
        K: Operator,
        problem: SmoothProblem,
        alpha: float,
        k: int,
        intercept: bool,
        rough: bool,
        shares: Callable[[Array], Array] | None,
        tol: float,
        memory: Memory,
        random_state: Seed,
    ) -> None:
        self.began = clock.now()
        self.K = K
        self.problem = problem
        self.alpha = alpha
        self.intercept = intercept
        self.rough = rough
        self.tol = tol
        self.memory = memory
        self.random_state = random_state
        n = K.shape[0]
        fits = n <= DIRECT_ROWS and 8 * (k + 3) * n * n <= memory_limit(memory)
        F = K.low_rank_factor()
        # With a narrow factor, systems of few columns are the quicker way.
        narrow = F is not None and 4 * k * F.shape[1] <= n
        self.shares = shares if fits and not narrow else None
        self.beta = np.zeros((n, k))
        self.f = np.zeros((n, k))
        self.b = np.zeros(k)
        self.gap = np.inf
        self.iterations = 0
        self.methods: set[str] = set()
        # The iterate of the smallest gap, and that of the lowest P.
        self.best: _Iterate | None = None
        self.lowest: _Iterate | None = None

    def begin(self, start: tuple[Array, Array] | None) -> None:
        # The loss of no fit at all.
        without = abs(_sum(self.problem, np.zeros_like(self.f)))
        self.scale = without if np.isfinite(without) else 0.0
        if start is not None:
            self.beta = start[0].copy()
            self.b = start[1].copy()
            self.f = self._times(self.beta)
        if self.intercept and not self.rough:
            self.b = best_intercept(self.problem, self.f, self.b)

    def iterate(self, max_iter: int, callback: Progress | None) -> Status:
        last = False
        stale = 0
        lowest = np.inf
        taken = 0.0
        while True:
            began = clock.now()
            z = self.f + self.b
            value = self.primal(self.beta, self.f, self.b)
            dual = from_slopes(self.K, self.problem, self.alpha, self.beta, self.f, z)
            other = from_coefficients(self.problem, self.alpha, self.beta, self.f, z, self.intercept)
            self.gap = min(dual.gap, other.gap)
            measured = clock.now() - began
            here = _Iterate(self.gap, self.beta, self.f, self.b)
            better = self.best is None or self.gap < self.best.gap
            stale = 0 if better or value < lowest - 1e-9 * abs(value) else stale + 1
            if value < lowest:
                self.lowest = here
            lowest = min(lowest, value)
            if better:
                self.best = here
            done = self.gap <= self.tol * max(abs(value), 1e-12 * self.scale)
            if callback is not None and callback(self.iterations, value, self.gap):
                return Status.STOPPED
            if (done and (last or self.rough or not self._direct())) or self.gap == 0:
                return Status.CONVERGED
            if stale > PATIENCE:
                return Status.STAGNATED
            # Another step as long as the last one, its gap, and the certificate of the caller.
            ahead = taken + 3 * measured if self.iterations else 0.0
            if self.iterations >= max_iter or clock.short_of(ahead):
                return Status.CONVERGED if done else Status.LIMIT
            last = done
            began = clock.now()
            if not self.step(dual, z, value):
                return Status.CONVERGED if done else Status.STAGNATED
            taken = clock.now() - began
            self.iterations += 1

    def step(self, dual: DualPoint, z: Array, value: float) -> bool:
        """One damped Newton step; False if no length of it lowers P."""
        if self.shares is not None:
            v, v0 = self._solve_shares(self.shares(z), self.f - dual.f)
        else:
            v, v0 = self._solve(self.problem.root(z), self.f - dual.f)
        beta = dual.beta + v
        d_b = np.zeros_like(self.b)
        if self.intercept:
            d_b = lstsq(v0.sum(axis=0), beta.sum(axis=0), cond=1e-12)[0]
            beta = beta - v0 @ d_b
        f = self._times(beta)
        d_beta = beta - self.beta
        d_f = f - self.f
        slope = self.alpha * float((self.beta * d_f - dual.beta * (d_f + d_b)).sum())
        t = 1.0
        for _ in range(HALVINGS):
            new = self.primal(self.beta + t * d_beta, self.f + t * d_f, self.b + t * d_b)
            if new <= value + 1e-4 * t * min(slope, 0.0) + ROUNDING * abs(value):
                break
            t *= 0.5
        else:
            return False
        if t == 1.0:
            self.beta = beta
            self.f = f
        else:
            self.beta = self.beta + t * d_beta
            self.f = self.f + t * d_f
        self.b = self.b + t * d_b
        if self.intercept and not self.rough:
            self.b = best_intercept(self.problem, self.f, self.b)
        return True

    def _solve(self, R: Array, right: Array) -> tuple[Array, Array]:
        """R(αI + RᵀKR)⁻¹Rᵀ times the right-hand side (n×k) and, for b, times 1 in each output (n×k×k)."""
        n, k = right.shape
        columns = [right]
        if self.intercept:
            columns += [np.tile(row, (n, 1)) for row in np.eye(k)]
        A = Curved(self.K, R)
        out = np.zeros((n, k, len(columns)))
        if A.shape[0]:
            B = np.column_stack([A.down(c) for c in columns])
            tol = 1e-10
            if not self._direct():
                # Systems far from the optimum need few digits.
                tol = 1e-2 * min(1.0, max(1e-7, float(np.sqrt(self.gap))))
            options = SystemOptions(
                tol=tol,
                memory=self.memory,
                random_state=self.random_state,
                keep=False,
            )
            method, found = solve_by(A, B, self.alpha, options)
            self.methods.add("conjugate gradients" if method == "cg" else found.certificate.method)
            out = np.stack([A.up(column) for column in found.value.T], axis=-1)
        return out[:, :, 0], out[:, :, 1:]

    def _solve_shares(self, D: Array, right: Array) -> tuple[Array, Array]:
        """The same, for curvatures diag(d) - d dᵀ / Σd (Rasmussen and Williams, section 3.5):

        (K/α + W⁺)⁻¹ = E - E 1 (Σ_c E_c)⁻¹ 1ᵀ E,      E_c = (K/α + D_c⁻¹)⁻¹
        """
        n, k = right.shape
        used = np.flatnonzero(D.sum(axis=1) > 0)
        K = np.asarray(block_of(self.K, used, used)) / self.alpha
        # The part of each right-hand side in output c.
        columns = np.zeros((k, len(used), 1 + k * self.intercept))
        columns[:, :, 0] = right[used].T
        if self.intercept:
            columns[np.arange(k), :, 1 + np.arange(k)] = 1.0
        E = []
        total = np.zeros_like(K)
        image = np.empty_like(columns)
        for c in range(k):
            d = np.sqrt(D[used, c])
            B = scaled_both_sides(d, K)
            B[np.diag_indices_from(B)] += 1.0
            inverse, _ = lapack.potri(lapack.cholesky(B.T, overwrite_a=True), overwrite_c=True)
            inverse = whole_from_lower(inverse)
            E.append(scaled_both_sides(d, inverse))
            total += E[c]
            image[c] = E[c] @ columns[c]
        spread = lapack.cho_solve(lapack.cholesky(total), image.sum(axis=0))
        out = np.zeros((n, k, columns.shape[2]))
        for c in range(k):
            out[used, c] = (image[c] - E[c] @ spread) / self.alpha
        self.methods.add("Cholesky by outputs")
        return out[:, :, 0], out[:, :, 1:]

    def primal(self, beta: Array, f: Array, b: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float(self.problem.value(f + b).sum())
        total = loss + 0.5 * self.alpha * float((beta * f).sum())
        return total if np.isfinite(total) else np.inf

    def _direct(self) -> bool:
        return self.shares is not None or self.beta.size <= DIRECT_ROWS

    def _times(self, beta: Array) -> Array:
        return np.asarray(self.K @ np.ascontiguousarray(beta), dtype=np.float64)

    def result(self, status: Status) -> Solution[NewtonPoint]:
        kept = self.best
        if status in (Status.LIMIT, Status.STOPPED, Status.INTERRUPTED) and not self.rough:
            # Far from the end the gap says little yet, and the lowest P is the best of what there is.
            kept = self.lowest
        gap, beta, f, b = kept or _Iterate(np.inf, self.beta, self.f, self.b)
        method = "Newton's method"
        if self.methods:
            method += f", {' and '.join(sorted(self.methods))}"
        certificate = Certificate(
            status,
            method,
            iterations=self.iterations,
            seconds=clock.now() - self.began,
            gap=float(gap) if np.isfinite(gap) else None,
        )
        return Solution(NewtonPoint(beta, b, f + b), certificate)


# ── the intercept ───────────────────────────────────────────────────────────────────────────────────────────


def best_intercept(problem: SmoothProblem, f: Array, b: Array) -> Array:
    """b that minimises Σ ℓ_i(f_i + b): damped Newton's method; for one number, a bracket if that fails.

    A step is good if it lowers the sum, or halves the gradient: near the minimum only the gradient is above
    rounding.
    """
    slopes = problem.slope(f + b)
    g = slopes.sum(axis=0)
    value = _sum(problem, f + b)
    for _ in range(INTERCEPT_STEPS):
        if np.abs(g).max() <= BALANCED * np.abs(slopes).sum():
            return b
        R = problem.root(f + b)
        step = _downhill(R, g)
        if 0 < np.abs(step).max() <= 2 * np.finfo(float).eps * np.abs(b).max():
            return b
        down = float(g @ step)
        t = 1.0
        while down < 0 and t > 1e-10:
            new = _sum(problem, f + (b + t * step))
            finite = np.isfinite(new)
            if finite:
                slopes = problem.slope(f + (b + t * step))
            lower = new <= value + 1e-4 * t * down
            if lower or (t == 1.0 and finite and np.abs(slopes.sum(axis=0)).max() <= 0.5 * np.abs(g).max()):
                break
            t *= 0.5
        else:
            break
        b = b + t * step
        value = new
        g = slopes.sum(axis=0)
    return _bracketed(problem, f, b) if len(b) == 1 else b


def _downhill(R: Array, g: Array) -> Array:
    """Newton's step of the intercepts; 0 where there is no curvature."""
    if len(g) == 1:
        h = float(np.square(R).sum())
        return -g / h if h > 0 else np.zeros(1)
    step: Array = -lstsq(np.einsum("ikr,ijr->kj", R, R), g, cond=1e-13, check_finite=False)[0]
    return step


def _sum(problem: SmoothProblem, z: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(problem.value(z).sum())
    return total if np.isfinite(total) else np.inf


def _bracketed(problem: SmoothProblem, f: Array, b: Array) -> Array:
    """The root of Σ ℓ'(f + b) between two signs; b itself where there is none."""

    def g(t: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.nan_to_num(problem.slope(f + t).sum(), posinf=1e300, neginf=-1e300))

    here = g(float(b[0]))
    if here == 0:
        return b
    middle = float(b[0])
    low = high = middle
    width = 1.0
    for _ in range(60):
        if here > 0:
            low = middle - width
        else:
            high = middle + width
        if g(low) <= 0 <= g(high):
            return np.array([brentq(g, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=300)])
        width *= 2
    return b
