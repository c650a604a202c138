"""Several quantile levels at once, that do not cross: τ₁ < … < τ_q fitted jointly.

    min  Σ_t Σ_i w_i ρ_t(y_i - z_it) + (α/2) Σ_t ‖f_t‖²      where  z_i1 ≤ … ≤ z_iq  on every training row

It is solved by barriers: for μ > 0 both the kink of ρ and the constraint become smooth,

    ρ_μ(r) = min_{u-v=r} τu + (1 - τ)v - μ log u - μ log v,        -μ log(z_{t+1} - z_t)

`newton` minimises that, and μ falls until the duality gap is small. A dual point is any β with Σ_i β_it = 0
and

    αβ_it = w_i g_it + λ_{i,t-1} - λ_it,      τ_t - 1 ≤ g_it ≤ τ_t,   λ ≥ 0
    D = α Σ β_it y_i - (α/2) Σ_t β_tᵀKβ_t

Constraints hold on training rows only. Elsewhere `predict` sorts the levels, which makes crossing impossible
and brings no level further from the true one (Chernozhukov, Fernández-Val and Galichon 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer import clock
from mercer.errors import ParameterError
from mercer.gram import GramOperator
from mercer.progress import Tell
from mercer.solve.newton import NewtonPoint, newton
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array, Flags, Memory, Numbers

# rows × levels up to which levels are fitted jointly
JOINT_SIZE = 6000
BARRIERS = 40
# of the gap that a barrier leaves, to which its minimum is found
CENTRED = 0.02


def check_levels(given: Numbers) -> tuple[float, ...]:
    """Levels in increasing order, each strictly between 0 and 1.

    >>> check_levels(0.5), check_levels([0.1, 0.9])
    ((0.5,), (0.1, 0.9))
    """
    levels = np.atleast_1d(np.asarray(given))
    good = levels.ndim == 1 and levels.size > 0 and levels.dtype.kind in "fiu"
    if not good or not np.all((levels > 0) & (levels < 1)) or np.any(np.diff(levels) <= 0):
        raise ParameterError(
            "quantiles must be a level between 0 and 1, or an increasing list of them such as [0.1, 0.5, "
            f"0.9]; got {given!r}."
        )
    return tuple(float(t) for t in levels)


def crossing_rows(z: Array) -> Flags:
    """Rows on which a higher level lies below a lower one, beyond rounding.

    >>> crossing_rows(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([False,  True])
    """
    if z.shape[1] < 2:
        return np.zeros(len(z), dtype=bool)
    rounding = 1e-9 * max(float(np.ptp(z)), np.finfo(float).tiny)
    least: Array = np.diff(z, axis=1).min(axis=1)
    return least < -rounding


@dataclass(frozen=True, eq=False)
class JointQuantiles:
    """The problem above; with `mu` > 0, its smooth stand-in as `newton` takes it."""

    y: Array
    w: Array
    levels: tuple[float, ...]
    alpha: float
    mu: float = 0.0

    @property
    def outputs(self) -> int:
        return len(self.levels)

    @property
    def tau(self) -> Array:
        return np.array(self.levels)

    def value(self, z: Array) -> Array:
        mu = self.mu
        u, v, _ = _split(self.y[:, None] - z, mu)
        gaps = np.diff(z, axis=1)
        inside = np.all(gaps > 0, axis=1)
        each = self.tau * u + (1 - self.tau) * v - mu * (np.log(u) + np.log(v))
        barrier = -mu * np.log(np.where(gaps > 0, gaps, 1.0)).sum(axis=1)
        out = np.where(inside, each.sum(axis=1) + barrier, np.inf)
        return np.where(self.w > 0, self.w * out, 0.0)

    def slope(self, z: Array) -> Array:
        u, _, _ = _split(self.y[:, None] - z, self.mu)
        out = self.mu / u - self.tau
        push = self._push(z)
        out[:, :-1] += push
        out[:, 1:] -= push
        return self.w[:, None] * out

    def root(self, z: Array) -> Array:
        """The factor of each row's tridiagonal curvature, by an elimination that never subtracts."""
        u, _, rise = _split(self.y[:, None] - z, self.mu)
        own = self.mu / u**2 * rise
        c = self._push(z) ** 2 / self.mu
        n, q = z.shape
        R = np.zeros((n, q, q))
        left = own[:, 0]
        for t in range(q - 1):
            pivot = left + c[:, t]
            R[:, t, t] = np.sqrt(pivot)
            R[:, t + 1, t] = -c[:, t] / R[:, t, t]
            left = own[:, t + 1] + c[:, t] * (left / pivot)
        R[:, q - 1, q - 1] = np.sqrt(left)
        return np.sqrt(self.w)[:, None, None] * R

    def conjugate(self, s: Array) -> None:
        """Not used: `certify` knows the dual of the problem without barriers."""

    def _push(self, z: Array) -> Array:
        """μ / (z_{t+1} - z_t); rows without weight may cross."""
        gaps = np.diff(z, axis=1)
        return self.mu / np.where(self.w[:, None] > 0, gaps, 1.0)

    def loss(self, z: Array) -> float:
        """Σ w ρ, without any barrier."""
        r = self.y[:, None] - z
        return float(self.w @ np.maximum(self.tau * r, (self.tau - 1) * r).sum(axis=1))

    def infeasible(self, beta: Array) -> float:
        """How far αβ is from any w g + λ_{t-1} - λ_t with g and λ in bounds, relative to the largest weight.

        With B_t = α Σ_{t' ≤ t} β, there are such g and λ exactly if the largest sums of g that end at B_q are
        at least B_t.
        """
        B = self.alpha * np.cumsum(beta, axis=1)
        w = self.w[:, None]
        tau = self.tau
        high = w * np.cumsum(tau)
        low_after = w * (np.sum(tau - 1) - np.cumsum(tau - 1))
        reach = np.minimum(high, B[:, -1:] - low_after)
        ends = np.maximum(B[:, -1] - high[:, -1], w[:, 0] * np.sum(tau - 1) - B[:, -1])
        worst = max(float((B - reach)[:, :-1].max(initial=0.0)), float(ends.max(initial=0.0)), 0.0)
        return worst / float(self.w.max())

    def certify(
        self,
        K: GramOperator,
        beta: Array,
        b: Array,
        *,
        intercept: bool = True,
        status: Status = Status.CONVERGED,
        method: str = "recomputed",
        notes: tuple[str, ...] = (),
    ) -> Certificate:
        """Primal, dual and gap of the joint problem from the model; `kkt` is the worst infeasibility."""
        f = np.asarray(K @ np.ascontiguousarray(beta), dtype=np.float64)
        z = f + b
        norm2 = float((beta * f).sum())
        primal = self.loss(z) + 0.5 * self.alpha * norm2
        dual = self.alpha * float(self.y @ beta.sum(axis=1)) - 0.5 * self.alpha * norm2
        used = self.w > 0
        crossed = max(-float(np.diff(z[used], axis=1).min()), 0.0)
        unbalanced = float(np.abs(beta.sum(axis=0)).max()) * self.alpha / float(self.w.max())
        off = max(self.infeasible(beta), unbalanced)
        out = Certificate(status, method, primal=primal, kkt=max(off, crossed), notes=notes)
        if off > 1e-7:
            word = f"β is no point of the dual (off by {off:.3g}), so there is no gap"
            return replace(out, notes=(*notes, word))
        return replace(out, dual=dual, gap=max(primal - dual, 0.0))


def _split(r: Array, mu: float) -> tuple[Array, Array, Array]:
    """u and v of ρ_μ, with u - v = r and μ/u + μ/v = 1, and ∂u/∂r; each without cancellation."""
    root = np.sqrt(mu**2 + 0.25 * r**2)
    large = 2 * root + np.abs(r)
    small = 4 * mu**2 / large
    up = np.where(r > 0, large, small)
    down = np.where(r > 0, small, large)
    return mu + 0.5 * up, mu + 0.5 * down, up / (4 * root)


def fit_jointly(
    K: GramOperator,
    problem: JointQuantiles,
    *,
    intercept: bool,
    tol: float,
    memory: Memory = "2GiB",
    callback: Tell | None = None,
) -> Solution[NewtonPoint]:
    """Minimise the joint problem to a relative gap of `tol`; an intercept gives it a point to start from."""
    if not intercept:
        raise ParameterError("levels are fitted jointly only with fit_intercept=True.")
    began = clock.now()
    used = problem.w > 0
    y = problem.y[used]
    scale = float(np.ptp(y)) or max(abs(float(y[0])), 1.0)
    b = np.maximum.accumulate(np.quantile(y, problem.tau)) + 0.01 * scale * np.arange(problem.outputs)
    at = (np.zeros((len(problem.y), problem.outputs)), b)
    mu = 0.1 * scale
    steps = 0
    stale = 0
    weight = float(problem.w.sum()) * problem.outputs
    primal = problem.loss(np.broadcast_to(b, at[0].shape))
    best: Solution[NewtonPoint] | None = None
    least = np.inf
    status: Status = Status.STAGNATED
    for _ in range(BARRIERS):
        if best is not None and clock.late():
            status = Status.LIMIT
            break
        smooth = replace(problem, mu=mu)
        found = newton(
            K,
            smooth,
            problem.alpha,
            outputs=problem.outputs,
            start=at,
            rough=True,
            tol=CENTRED * mu * weight / max(primal, mu * weight),
            max_iter=50,
            memory=memory,
            callback=callback,
        )
        steps += found.certificate.iterations or 0
        c = problem.certify(K, found.value.beta, found.value.b)
        gap = np.inf if c.gap is None else c.gap
        primal = abs(c.primal or 0.0)
        stale += 1
        if best is None or gap < least:
            best = found
            least = gap
            stale = 0
        at = (found.value.beta, found.value.b)
        if found.certificate.status.on_request:
            status = found.certificate.status
            break
        if gap <= tol * primal:
            status = Status.CONVERGED
            break
        if stale >= 3:
            break
        mu *= 0.1
    assert best is not None
    certificate = replace(
        best.certificate,
        status=status,
        iterations=steps,
        seconds=clock.now() - began,
        gap=least if np.isfinite(least) else None,
        method=f"barriers of non-crossing levels, {best.certificate.method}",
    )
    return Solution(best.value, certificate)
