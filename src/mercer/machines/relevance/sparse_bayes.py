"""Sparse Bayesian learning: few basis functions out of many, by the evidence (Tipping and Faul 2003).

    y = Φw + noise,    w_m ~ N(0, 1/α_m),    noise ~ N(0, σ²)
    evidence  L(α, σ²) = log N(y | 0, σ²I + ΦA⁻¹Φᵀ)

As a function of one α_m the evidence has a closed form in the sparsity s_m and the quality q_m of φ_m: its
maximum is at α_m = s_m² / θ_m if θ_m = q_m² - s_m > 0, and at α_m = ∞ (φ_m left out) otherwise. Each step
adds, re-estimates or deletes the one basis function that raises the evidence most. Nothing here asks that the
basis come from a valid kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular, svd
from scipy.optimize import minimize, minimize_scalar

from mercer import clock
from mercer.gram import GramOperator
from mercer.panels import panels
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.typing import Array, Flags, Integers

Move = Literal["add", "re-estimate", "delete"]
# of the variance of y: below it the sums of squares are rounding
NOISE_FLOOR = 1e-10
# cosine from which a column adds nothing to one that is in the model
ALIGNED = 1 - 1e-10
# share of a column that must lie outside what the model spans, given its α
SPANNED = 1e-9
LOG_2PI = float(np.log(2 * np.pi))


class Basis:
    """All candidate basis functions on the data: the columns of a Gram operator, then 1 for the intercept.

    Columns are scaled to unit length, which changes nothing but the units of α and w, and rows by `root` =
    √weight.
    """

    def __init__(self, K: GramOperator, *, intercept: bool, root: Array | None = None) -> None:
        self.K = K
        self.KT = K.T
        self.intercept = intercept
        self.rows = K.shape[0]
        self.root = np.ones(self.rows) if root is None else root
        self.size = K.shape[1] + int(intercept)
        self.scale = np.ones(self.size)
        lengths = np.sqrt(self.squares(self.root**2))
        self.scale = np.divide(1.0, lengths, out=np.zeros(self.size), where=lengths > 0)

    @property
    def usable(self) -> Flags:
        """The columns that are not all zero."""
        return self.scale > 0

    def column(self, m: int) -> Array:
        """φ_m on every row."""
        if self.intercept and m == self.size - 1:
            return self.root * float(self.scale[m])
        column = np.asarray(self.K.block(slice(None), np.array([m])), dtype=np.float64)[:, 0]
        return self.root * float(self.scale[m]) * column

    def project(self, V: Array) -> Array:
        """ΦᵀV for all columns of Φ, by one product with the Gram operator."""
        V = (self.root * V.T).T
        out = np.asarray(self.KT @ V, dtype=np.float64)
        if self.intercept:
            out = np.concatenate([out, V.sum(axis=0)[None]])
        return (self.scale * out.T).T

    def squares(self, b: Array) -> Array:
        """Σ_i b_i φ_m(x_i)² for every m, before the weights of the rows."""
        out = np.zeros(self.size)
        for rows in panels(self.rows):
            block = np.asarray(self.K.block(rows, slice(None)), dtype=np.float64)
            out[: block.shape[1]] += np.einsum("ij,ij,i->j", block, block, b[rows])
        if self.intercept:
            out[-1] = b.sum()
        return self.scale**2 * out


@dataclass(eq=False)
class SparsePosterior:
    """The basis functions kept, precisions α, weights μ with covariance Σ, and how the evidence rose."""

    active: Integers
    alpha: Array
    mu: Array
    sigma: Array
    noise: float
    evidence: float
    path: Array
    moves: list[str]
    status: Status
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effort:
    """When the steps are good enough or too many, and whom to tell."""

    tol: float
    max_iter: int
    tell: Callable[[str], None] | None

    def say(self, steps: int, kept: int, evidence: float) -> None:
        """One line of progress."""
        if self.tell is not None:
            self.tell(f"{steps} steps, {kept} basis functions, log evidence {evidence:.9g}")

    def spent(self, steps: int) -> bool:
        return clock.late() or steps >= self.max_iter


@dataclass(frozen=True)
class Proposal:
    """One step: which basis function, what to do with it, its new α and the expected gain in evidence."""

    index: int
    move: Move
    alpha: float
    gain: float


def propose(
    S: Array,
    Q: Array,
    active: Integers,
    alpha: Array,
    mu: Array,
    variance: Array,
    *,
    tol: float,
    worth: float,
    closed: Iterable[int] = (),
) -> Proposal | None:
    """The step with the largest gain; None if no log α moves more than `tol` and no addition gains `worth`.

    For the columns outside the model s = S and q = Q. For those inside, S and Q follow from the weight μ and
    its variance Σ_mm without cancellation: s = 1/Σ_mm - α, q = μ/Σ_mm. The columns in `closed` are left as
    they are.
    """
    gains = np.full(len(S), -np.inf)
    goal = np.full(len(S), np.inf)
    outside = np.ones(len(S), dtype=bool)
    outside[active] = False
    good = outside & (S > 0) & (Q * Q > S)
    with np.errstate(over="ignore"):
        ratio = Q[good] ** 2 / S[good]
    gains[good] = 0.5 * (ratio - 1 - np.log(ratio))
    goal[good] = S[good] / (ratio - 1)
    gains[good & ((gains <= worth) | ~(goal > 0))] = -np.inf
    if len(active):
        s = np.maximum(1 / variance - alpha, 0.0)
        q = mu / variance
        theta = q * q - s
        stays = (theta > 0) & (s > 0)
        new = np.full(len(active), np.inf)
        new[stays] = s[stays] ** 2 / theta[stays]
        stays &= new > 0
        inside = np.zeros(len(active))
        step = 1 / new[stays] - 1 / alpha[stays]
        S_in = alpha - alpha**2 * variance
        Q_in = alpha * mu
        # 1 + S·step
        grown = (alpha * variance)[stays] + S_in[stays] / new[stays]
        inside[stays] = 0.5 * (Q_in[stays] ** 2 * step / grown - np.log(grown))
        moved = np.abs(np.log(new[stays] / alpha[stays])) > tol
        inside[np.flatnonzero(stays)[~moved]] = -np.inf
        gone = ~stays
        # 1 - S/α
        share = np.maximum(alpha[gone] * variance[gone], np.finfo(float).tiny)
        inside[gone] = np.maximum(0.5 * (-(mu[gone] ** 2) / variance[gone] - np.log(share)), 0.0)
        gains[active] = inside
        goal[active] = new
    gains[np.asarray(list(closed), dtype=np.intp)] = -np.inf
    best = int(np.argmax(gains))
    if not gains[best] > -np.inf:
        return None
    move: Move = "re-estimate"
    if outside[best]:
        move = "add"
    elif not np.isfinite(goal[best]):
        move = "delete"
    return Proposal(best, move, float(goal[best]), float(gains[best]))


def regression(
    basis: Basis, t: Array, mass: float, noise: float | None, effort: Effort, starts: int = 2
) -> SparsePosterior:
    """Maximise the evidence of real targets t (rows already scaled by √weight; the weights sum to `mass`).

    With the noise given, every step raises the evidence by its closed-form gain. Otherwise σ² begins at 0.1
    of the variance of t, at 0.03, 0.01, … (the best of `starts` is kept) and is re-estimated whenever the α
    have settled, by an exact search on a line, so that the evidence does not fall there either.
    """
    unit = float(t @ t) / mass
    given = [] if noise is None else [noise]
    if noise is None:
        given = [0.1 * unit / 10 ** (k / 2) for k in range(starts)]
    whole = Anytime[SparsePosterior]()
    for first in given:
        found = _ascend(_Regression(basis, t, mass, first), effort, noise is None)
        if whole.best is None or found.evidence > whole.best.evidence:
            whole.best = found
        if found.status in (Status.LIMIT, Status.INTERRUPTED):
            whole.best.status = found.status
            break
    assert whole.best is not None
    whole.best.seconds = whole.seconds
    return whole.best


def _ascend(model: _Regression, effort: Effort, free_noise: bool) -> SparsePosterior:
    """Steps until no α and no noise would move by more than `tol`; at first, σ² far off, less exactly."""
    run = Anytime[_Regression](best=model)
    path = [model.evidence]
    moves = ["start"]
    tol = max(effort.tol, 0.1) if free_noise else effort.tol
    # steps since the last one that was no re-estimation, and since Σ, μ, S and Q were computed anew
    alone = 0
    stale = 0
    with run:
        try:
            while not effort.spent(len(moves) - 1):
                step = model.proposal(tol)
                if step is not None:
                    model.take(step)
                    stale += 4
                    # O(M m²) every m/4 steps is O(M m) a step
                    if stale > len(model.active):
                        model.refresh()
                        stale = 0
                    moves.append(step.move)
                    path.append(model.evidence)
                    effort.say(len(moves) - 1, len(model.active), model.evidence)
                    alone = alone + 1 if step.move == "re-estimate" else 0
                    # one at a time they creep where columns are alike
                    if alone > 10 + len(model.active):
                        model.settle(free_noise)
                        model.refresh()
                        alone = 0
                        moves.append("joint")
                        path.append(model.evidence)
                    continue
                moved = model.settle(free_noise)
                alone = 0
                model.refresh()
                if moved > 0:
                    moves.append("joint")
                    path.append(model.evidence)
                if tol > effort.tol:
                    tol = max(effort.tol, min(0.3 * tol, moved))
                elif moved <= effort.tol and model.proposal(tol) is None:
                    run.status = Status.CONVERGED
                    break
        except np.linalg.LinAlgError:
            # columns so alike that float64 cannot tell them apart at this noise
            run.status = Status.STAGNATED
            model.restore()
            path.append(model.evidence)
    model.refresh()
    path[-1] = model.evidence
    return SparsePosterior(
        model.active,
        model.alpha,
        model.mu,
        model.sigma,
        model.noise,
        model.evidence,
        np.array(path),
        moves,
        run.status,
        run.seconds,
    )


class _Regression:
    """The model so far: the active columns Φ_A, the products G = ΦᵀΦ_A, Σ, μ, and S and Q of every column."""

    def __init__(self, basis: Basis, t: Array, mass: float, noise: float) -> None:
        self.basis = basis
        self.t = t
        self.mass = mass
        self.noise = noise
        self.active = np.zeros(0, dtype=np.intp)
        self.alpha = np.zeros(0)
        self.phi = np.zeros((len(t), 0), order="F")
        self.G = np.zeros((basis.size, 0), order="F")
        self.Pt = basis.project(t)
        # φ_m·φ_m
        self.own = basis.usable.astype(float)
        self.refresh()

    def proposal(self, tol: float) -> Proposal | None:
        """The best step from here."""
        variance = self.sigma.diagonal()
        inside = (np.abs(self.G) >= ALIGNED).any(axis=1) | (SPANNED * self.own / self.noise >= self.S)
        twins = np.flatnonzero(inside)
        outside = np.setdiff1d(twins, self.active, assume_unique=True)
        return propose(
            self.S,
            self.Q,
            self.active,
            self.alpha,
            self.mu,
            variance,
            tol=tol,
            worth=tol**2,
            closed=outside,
        )

    def refresh(self) -> None:
        """Σ, μ, S, Q and the evidence from their definitions, in O(M m²)."""
        beta = 1 / self.noise
        m = len(self.active)
        H = beta * self.G[self.active]
        H[np.diag_indices(m)] += self.alpha
        lower = H
        self.mu = np.zeros(0)
        self.sigma = np.zeros((0, 0))
        V = self.G.T
        if m:
            lower, _ = cho_factor(H, lower=True)
            self.mu = cho_solve((lower, True), beta * self.Pt[self.active])
            self.sigma = cho_solve((lower, True), np.eye(m))
            V = solve_triangular(lower, self.G.T, lower=True)
        self.S = beta * (self.own - beta * np.einsum("im,im->m", V, V))
        rest = self.t - self.phi @ self.mu
        self.Q = beta * (self.Pt - self.G @ self.mu)
        logdet = 2 * float(np.log(lower.diagonal()).sum()) - float(np.log(self.alpha).sum())
        fit = beta * float(rest @ rest) + float(self.alpha @ self.mu**2)
        self.evidence = -0.5 * (self.mass * (LOG_2PI + np.log(self.noise)) + logdet + fit)
        self.sound = self.active, self.alpha, self.noise, self.phi, self.G

    def restore(self) -> None:
        """Back to the last model that could be computed from its definition."""
        self.active, self.alpha, self.noise, self.phi, self.G = self.sound
        self.refresh()

    def take(self, step: Proposal) -> None:
        """One step, with Σ, μ, S and Q updated in O(M m); a new column costs one product with K."""
        beta = 1 / self.noise
        if step.move == "add":
            column = self.basis.column(step.index)
            g = self.basis.project(column)
            part = beta * (self.sigma @ g[self.active])
            own = 1 / (step.alpha + self.S[step.index])
            mu = own * self.Q[step.index]
            e = beta * (g - self.G @ part)
            sigma = np.empty((len(part) + 1, len(part) + 1))
            sigma[:-1, :-1] = self.sigma + own * np.outer(part, part)
            sigma[-1, :-1] = sigma[:-1, -1] = -own * part
            sigma[-1, -1] = own
            self.S = self.S - own * e**2
            self.Q = self.Q - mu * e
            self.mu = np.append(self.mu - mu * part, mu)
            self.sigma = sigma
            self.phi = np.column_stack([self.phi, column])
            self.G = np.column_stack([self.G, g])
            self.active = np.append(self.active, step.index)
            self.alpha = np.append(self.alpha, step.alpha)
        else:
            j = int(np.flatnonzero(self.active == step.index)[0])
            row = self.sigma[j].copy()
            own = float(self.sigma[j, j])
            deleted = step.move == "delete"
            kappa = 1 / own if deleted else 1 / (own + 1 / (step.alpha - self.alpha[j]))
            e = beta * (self.G @ row)
            self.S = self.S + kappa * e**2
            self.Q = self.Q + kappa * self.mu[j] * e
            self.sigma = self.sigma - kappa * np.outer(row, row)
            self.mu = self.mu - kappa * self.mu[j] * row
            if deleted:
                keep = np.arange(len(self.active)) != j
                self.sigma = self.sigma[np.ix_(keep, keep)]
                self.mu = self.mu[keep]
                self.phi = self.phi[:, keep]
                self.G = self.G[:, keep]
                self.active = self.active[keep]
                self.alpha = self.alpha[keep]
            else:
                self.alpha = np.where(np.arange(len(self.active)) == j, step.alpha, self.alpha)
        self.evidence += step.gain

    def settle(self, free_noise: bool) -> float:
        """All α of the model, and σ² if it is free, to a maximum together; the largest change of a logarithm.

        First σ² alone, then L-BFGS in the logarithms of all; neither lowers the evidence. `refresh` must
        follow.
        """
        before = np.append(np.log(self.alpha), np.log(self.noise))
        if free_noise:
            self.improve_noise()
        if len(self.active):
            self._settle_jointly(free_noise)
        return float(np.abs(np.append(np.log(self.alpha), np.log(self.noise)) - before).max())

    def _settle_jointly(self, free_noise: bool) -> None:
        m = len(self.active)
        G = self.G[self.active]
        b = self.Pt[self.active]
        start = np.append(np.log(self.alpha), np.log(self.noise))
        unit = float(self.t @ self.t) / self.mass
        values: list[float] = []
        best = start

        def cost(x: Array) -> tuple[float, Array]:
            nonlocal best
            if clock.late():
                raise clock.OutOfTime
            value, slope = measured(x)
            if value < min(values, default=np.inf):
                best = x.copy()
            values.append(value)
            return value, slope

        def measured(x: Array) -> tuple[float, Array]:
            alpha = np.exp(x[:m])
            tau = float(x[m])
            beta = np.exp(-tau)
            H = beta * G
            H[np.diag_indices(m)] += alpha
            lower = cholesky(H, lower=True, check_finite=False)
            mu = beta * cho_solve((lower, True), b, check_finite=False)
            inverse = solve_triangular(lower, np.eye(m), lower=True, check_finite=False)
            gamma = 1 - alpha * np.einsum("ij,ij->j", inverse, inverse)
            rest = self.t - self.phi @ mu
            miss = beta * float(rest @ rest)
            logdet = 2 * float(np.log(lower.diagonal()).sum()) - float(x[:m].sum())
            value = 0.5 * (self.mass * (LOG_2PI + tau) + logdet + miss + float(alpha @ mu**2))
            return value, 0.5 * np.append(alpha * mu**2 - gamma, self.mass - gamma.sum() - miss)

        ends = [(v - 10.0, v + 10.0) for v in start[:m]]
        line = np.log(NOISE_FLOOR * unit), np.log(2 * unit)
        ends.append(line if free_noise else (start[m], start[m]))
        how = {"maxiter": 200, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}
        try:
            found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=ends, options=how)
            x = found.x if found.fun < values[0] else start
        except clock.OutOfTime:
            x = best
        except np.linalg.LinAlgError:
            # A trial point beyond what float64 can factor: the model stays as it is.
            return
        if x is not start:
            self.alpha = np.exp(x[:m])
            self.noise = float(np.exp(x[m]))

    def improve_noise(self) -> None:
        """The σ² of largest evidence for these α, on a line: C = σ²I + UΛUᵀ has the same U for every σ²."""
        U, values, _ = svd(self.phi / np.sqrt(self.alpha), full_matrices=False)
        lam = values**2
        v = U.T @ self.t
        rest = self.t - U @ v
        left = float(rest @ rest)

        def cost(tau: float) -> float:
            noise = np.exp(tau)
            within = noise + lam
            rest = float((np.log(within) + v**2 / within).sum())
            return float((self.mass - len(lam)) * tau + left / noise) + rest

        unit = float(self.t @ self.t) / self.mass
        grid = np.linspace(np.log(NOISE_FLOOR * unit), np.log(2 * unit), 70)
        best = int(np.argmin([cost(float(tau)) for tau in grid]))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-7})
        tau = min((float(found.x), float(grid[best])), key=cost)
        if cost(tau) < cost(float(np.log(self.noise))):
            self.noise = float(np.exp(tau))
