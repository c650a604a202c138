"""Sparse Bayesian classification: the steps of `sparse_bayes` around a Gaussian at the mode (Laplace).

    p(t = 1 | x) = 1 / (1 + e^-f),   f = Φw,   w_m ~ N(0, 1/α_m)
    evidence  L(α) ≈ log p(t | μ) - ½ μᵀAμ + ½ log|A| - ½ log|ΦᵀBΦ + A|,   B = weight · p(1 - p) at the mode μ

The closed forms for one α_m hold for B held fast, but B moves with μ. So an addition or deletion is a
proposal: it is taken if Laplace's evidence, computed anew at the new mode, rises, and left otherwise. In
between all α of the model are re-estimated together along the exact gradient of that evidence. Hence it never
falls, by construction, and at the end no α of the model and no addition or deletion that the closed forms
propose raises it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize, root
from scipy.special import expit

from mercer import clock
from mercer.machines.relevance.sparse_bayes import Basis, Effort, Proposal, SparsePosterior, propose
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.typing import Array, Integers

# steps to the mode; it is usually there after five
NEWTON = 100
# joint steps between two proposals, and before the end
QUICK = 6
THOROUGH = 200
# α of a model whose gradient is brought to zero at the end
POLISHED = 30


@dataclass(frozen=True, eq=False)
class LaplaceMode:
    """The model at one α: the mode μ, the factor of its Hessian, B, weight·(t - p), 1 - 2p, the evidence."""

    active: Integers
    alpha: Array
    phi: Array
    mu: Array
    lower: Array
    b: Array
    slope: Array
    bend: Array
    evidence: float

    @property
    def sigma(self) -> Array:
        m = len(self.active)
        if m == 0:
            return np.zeros((0, 0))
        return np.asarray(cho_solve((self.lower, True), np.eye(m), check_finite=False))


def mode(active: Integers, alpha: Array, phi: Array, t: Array, w: Array, start: Array) -> LaplaceMode:
    """Newton's method (iteratively re-weighted least squares) with halved steps, from `start`."""

    def posterior(mu: Array) -> tuple[float, Array]:
        f = phi @ mu
        return float(w @ (t * f - np.logaddexp(0.0, f))) - 0.5 * float(alpha @ mu**2), f

    mu = start
    height, f = posterior(mu)
    for _ in range(NEWTON):
        p = expit(f)
        slope = w * (t - p)
        b = w * p * (1 - p)
        H = (phi.T * b) @ phi
        H[np.diag_indices(len(alpha))] += alpha
        lower = H
        up = phi.T @ slope - alpha * mu
        step = up
        if len(alpha):
            lower = cholesky(H, lower=True, check_finite=False)
            step = cho_solve((lower, True), up, check_finite=False)
        # twice what the step should gain; near the end rounding hides it
        rise = float(up @ step)
        if rise <= 1e-14 * max(abs(height), 1.0):
            break
        share = 1.0
        new, f_new = posterior(mu + step)
        while new < height and rise > 1e-9 and share > 1e-9:
            share /= 2
            new, f_new = posterior(mu + share * step)
        mu = mu + share * step
        height = new
        f = f_new
    logdet = 2 * float(np.log(lower.diagonal()).sum()) - float(np.log(alpha).sum())
    return LaplaceMode(active, alpha, phi, mu, lower, b, slope, 1 - 2 * p, height - 0.5 * logdet)


def classification(basis: Basis, t: Array, w: Array, effort: Effort) -> SparsePosterior:
    """Maximise Laplace's evidence of labels t in {0, 1} with weights w, from the empty model."""
    none = np.zeros(0)
    now = mode(none.astype(np.intp), none, np.zeros((len(t), 0)), t, w, none)
    path = [now.evidence]
    moves = ["start"]
    refused: set[int] = set()
    settled = True
    factors: tuple[Array, Array] | None = None
    with Anytime(best=now) as run:
        while not effort.spent(len(moves) - 1):
            factors = factors or _factors(basis, now)
            step = propose(
                *factors,
                now.active,
                now.alpha,
                now.mu,
                now.sigma.diagonal(),
                tol=np.inf,
                worth=effort.tol**2,
                closed=refused,
            )
            if step is not None:
                then = _attempt(basis, now, step, t, w, effort.tol)
                if then is None:
                    refused.add(step.index)
                    continue
                now = settle(then, t, w, QUICK)
                settled = False
                moves.append(step.move)
            elif not settled:
                now = settle(now, t, w, THOROUGH)
                settled = True
                moves.append("joint")
            else:
                run.status = Status.CONVERGED
                break
            refused.clear()
            factors = None
            path.append(now.evidence)
            effort.say(len(moves) - 1, len(now.active), now.evidence)
    return SparsePosterior(
        now.active,
        now.alpha,
        now.mu,
        now.sigma,
        0.0,
        now.evidence,
        np.array(path),
        moves,
        run.status,
        run.seconds,
    )


def settle(now: LaplaceMode, t: Array, w: Array, steps: int) -> LaplaceMode:
    """All α of the model together towards the maximum of Laplace's evidence, by L-BFGS in logarithms."""
    if not len(now.active):
        return now
    last = best = now

    def cost(x: Array) -> tuple[float, Array]:
        nonlocal last, best
        if clock.late():
            raise clock.OutOfTime
        last = mode(now.active, np.exp(x), now.phi, t, w, last.mu)
        if last.evidence > best.evidence:
            best = last
        return -last.evidence, -gradient(last)

    start = np.log(now.alpha)
    ends = [(v - 10.0, v + 10.0) for v in start]
    how = {"maxiter": steps, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}
    with suppress(clock.OutOfTime):
        minimize(cost, start, jac=True, method="L-BFGS-B", bounds=ends, options=how)
        if steps == THOROUGH:
            best = _flattest(best, t, w)
    return best


def _flattest(now: LaplaceMode, t: Array, w: Array) -> LaplaceMode:
    """The zero of the gradient nearby, which values of the evidence tell to half their digits only."""
    if not 0 < len(now.active) <= POLISHED or clock.late():
        return now
    last = now

    def slopes(x: Array) -> Array:
        nonlocal last
        last = mode(now.active, np.exp(x), now.phi, t, w, last.mu)
        return gradient(last)

    found = root(slopes, np.log(now.alpha), method="hybr", options={"maxfev": 10 * len(now.active) + 20})
    then = mode(now.active, np.exp(found.x), now.phi, t, w, last.mu)
    flatter = np.abs(gradient(then)).max() < np.abs(gradient(now)).max()
    near = np.abs(found.x - np.log(now.alpha)).max() < 1e-3
    return then if flatter and near else now


def gradient(now: LaplaceMode) -> Array:
    """dL/d log α: ½(γ_j - α_j μ_j²), and what the mode's move does to |H| (its third derivatives)."""
    inverse = solve_triangular(now.lower, now.phi.T, lower=True, check_finite=False)
    sigma = now.sigma
    share = np.einsum("mi,mi->i", inverse, inverse) * now.b * now.bend
    pull: Array = sigma @ (now.phi.T @ share)
    return 0.5 * (1 - now.alpha * sigma.diagonal() - now.alpha * now.mu**2 + now.alpha * now.mu * pull)


def _factors(basis: Basis, now: LaplaceMode) -> tuple[Array, Array]:
    """S_m = φᵀBφ - φᵀBΦ Σ ΦᵀBφ and Q_m = φᵀ(weight·(t - p)) of every column, by products with K."""
    S = basis.squares(now.b)
    Q = basis.project(now.slope)
    if len(now.active):
        V = solve_triangular(now.lower, basis.project((now.phi.T * now.b).T).T, lower=True)
        S = S - np.einsum("im,im->m", V, V)
    return S, Q


def _attempt(
    basis: Basis, now: LaplaceMode, step: Proposal, t: Array, w: Array, tol: float
) -> LaplaceMode | None:
    """The model after the step, or after a shorter one; None if none of them raises the evidence."""
    if step.move == "delete":
        keep = now.active != step.index
        then = mode(now.active[keep], now.alpha[keep], now.phi[:, keep], t, w, now.mu[keep])
        return then if then.evidence >= now.evidence else None
    active = np.append(now.active, step.index)
    phi = np.column_stack([now.phi, basis.column(step.index)])
    for slower in (1.0, 10.0, 100.0):
        alpha = np.append(now.alpha, step.alpha * slower)
        then = mode(active, alpha, phi, t, w, np.append(now.mu, 0.0))
        if then.evidence > now.evidence + tol**2:
            return then
    return None
