"""Sparse Bayesian learning: few basis functions out of many, by the evidence (Tipping 2001; Tipping & Faul 2003).

    y = Φw + noise,    w_m ~ N(0, 1/α_m),    noise ~ N(0, σ²)
    evidence  L(α, σ²) = log N(y | 0, σ²I + ΦA⁻¹Φᵀ)

As a function of one α_m the evidence has a closed form in the sparsity s_m and the quality q_m of φ_m: its maximum is at
α_m = s_m² / θ_m if θ_m = q_m² - s_m > 0, and at α_m = ∞ (φ_m left out) otherwise. Each step adds, re-estimates or deletes
the one basis function that raises the evidence most. Nothing here asks that the basis come from a valid kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular, svd
from scipy.optimize import minimize, minimize_scalar

from mercer import clock
from mercer.panels import panels
from mercer.solve.solution import Status

Move = Literal["add", "re-estimate", "delete"]
NOISE_FLOOR = 1e-10  # of the variance of y: below it the sums of squares are rounding
ALIGNED = 1 - 1e-10  # cosine from which a column adds nothing to one that is in the model
SPANNED = 1e-9  # share of a column that must lie outside what the model spans, given its α
LOG_2PI = float(np.log(2 * np.pi))


class Basis:
    """All candidate basis functions on the data: the columns of a Gram operator, then 1 for the intercept.

    Columns are scaled to unit length, which changes nothing but the units of α and w, and rows by `root` = √weight.
    """

    def __init__(self, K: Any, *, intercept: bool, root: np.ndarray | None = None) -> None:
        self.K, self.KT, self.intercept = K, K.T, intercept
        self.rows = K.shape[0]
        self.root = np.ones(self.rows) if root is None else root
        self.size = K.shape[1] + int(intercept)
        self.scale = np.ones(self.size)
        lengths = np.sqrt(self.squares(self.root**2))
        self.scale = np.divide(1.0, lengths, out=np.zeros(self.size), where=lengths > 0)

    @property
    def usable(self) -> np.ndarray:
        """The columns that are not all zero."""
        return self.scale > 0

    def column(self, m: int) -> np.ndarray:
        """φ_m on every row."""
        if self.intercept and m == self.size - 1:
            return self.root * self.scale[m]
        return self.root * self.scale[m] * np.asarray(self.K.block(slice(None), [m]), dtype=np.float64)[:, 0]

    def project(self, V: np.ndarray) -> np.ndarray:
        """ΦᵀV for all columns of Φ, by one product with the Gram operator."""
        V = (self.root * V.T).T
        out = np.asarray(self.KT @ V, dtype=np.float64)
        if self.intercept:
            out = np.concatenate([out, V.sum(axis=0)[None]])
        return (self.scale * out.T).T

    def squares(self, b: np.ndarray) -> np.ndarray:
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
    """The basis functions kept, their precisions α, weights μ with covariance Σ, and how the evidence rose."""

    active: np.ndarray
    alpha: np.ndarray
    mu: np.ndarray
    sigma: np.ndarray
    noise: float
    evidence: float
    path: np.ndarray
    moves: list[str]
    status: Status
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass
class Budget:
    """When to stop, and whom to tell."""

    tol: float
    max_iter: int
    tell: Callable[[str], None] | None

    def __post_init__(self) -> None:
        self.start = clock.now()

    @property
    def seconds(self) -> float:
        return clock.now() - self.start

    def say(self, steps: int, kept: int, evidence: float) -> None:
        """One line of progress."""
        if self.tell is not None:
            self.tell(f"{steps} steps, {kept} basis functions, log evidence {evidence:.9g}")

    def spent(self, steps: int) -> bool:
        return clock.late() or steps >= self.max_iter


@dataclass(frozen=True)
class Proposal:
    """One step: which basis function, what to do with it, its new α and the gain in evidence that is expected."""

    index: int
    move: Move
    alpha: float
    gain: float


def propose(
    S: np.ndarray,
    Q: np.ndarray,
    active: np.ndarray,
    alpha: np.ndarray,
    mu: np.ndarray,
    variance: np.ndarray,
    *,
    tol: float,
    worth: float,
    closed: Iterable[int] = (),
) -> Proposal | None:
    """The step with the largest gain; None when no log α would move by more than `tol`, nor an addition gain `worth`.

    For the columns outside the model s = S and q = Q. For those inside, S and Q follow from the weight μ and its
    variance Σ_mm without cancellation: s = 1/Σ_mm - α, q = μ/Σ_mm. The columns in `closed` are left as they are.
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
        s, q = np.maximum(1 / variance - alpha, 0.0), mu / variance
        theta = q * q - s
        stays = (theta > 0) & (s > 0)
        new = np.full(len(active), np.inf)
        new[stays] = s[stays] ** 2 / theta[stays]
        stays &= new > 0
        inside = np.zeros(len(active))
        step = 1 / new[stays] - 1 / alpha[stays]
        S_in, Q_in = alpha - alpha**2 * variance, alpha * mu
        grown = (alpha * variance)[stays] + S_in[stays] / new[stays]  # 1 + S·step
        inside[stays] = 0.5 * (Q_in[stays] ** 2 * step / grown - np.log(grown))
        moved = np.abs(np.log(new[stays] / alpha[stays])) > tol
        inside[np.flatnonzero(stays)[~moved]] = -np.inf
        gone = ~stays
        share = np.maximum(alpha[gone] * variance[gone], np.finfo(float).tiny)  # 1 - S/α
        inside[gone] = np.maximum(0.5 * (-(mu[gone] ** 2) / variance[gone] - np.log(share)), 0.0)
        gains[active], goal[active] = inside, new
    gains[np.asarray(list(closed), dtype=np.intp)] = -np.inf
    best = int(np.argmax(gains))
    if not gains[best] > -np.inf:
        return None
    move: Move = "add" if outside[best] else ("delete" if not np.isfinite(goal[best]) else "re-estimate")
    return Proposal(best, move, float(goal[best]), float(gains[best]))


def regression(
    basis: Basis, t: np.ndarray, mass: float, noise: float | None, budget: Budget, starts: int = 2
) -> SparsePosterior:
    """Maximise the evidence of real targets t (rows already scaled by √weight; the weights sum to `mass`).

    With the noise given, every step raises the evidence by its closed-form gain. Otherwise σ² begins at 0.1 of the
    variance of t, at 0.03, 0.01, … (the best of `starts` is kept) and is re-estimated whenever the α have settled, by an
    exact search on a line, so that the evidence does not fall there either.
    """
    unit = float(t @ t) / mass
    given = [0.1 * unit / 10 ** (k / 2) for k in range(starts)] if noise is None else [noise]
    best: SparsePosterior | None = None
    for first in given:
        found = _from(_Regression(basis, t, mass, first), budget, noise is None)
        if best is None or found.evidence > best.evidence:
            best = found
        if found.status in (Status.LIMIT, Status.INTERRUPTED):
            best.status = found.status
            break
    assert best is not None
    best.seconds = budget.seconds
    return best


def _from(run: _Regression, budget: Budget, free_noise: bool) -> SparsePosterior:
    """Steps until no α and no noise would move by more than `tol`; at first, while σ² is far off, less exactly."""
    path, moves = [run.evidence], ["start"]
    status: Status = Status.LIMIT
    tol, alone, stale = (max(budget.tol, 0.1) if free_noise else budget.tol), 0, 0
    try:
        while not budget.spent(len(moves) - 1):
            step = run.proposal(tol)
            if step is not None:
                run.take(step)
                stale += 4
                if stale > len(run.active):  # O(M m²) every m/4 steps is O(M m) a step
                    run.refresh()
                    stale = 0
                moves.append(step.move)
                path.append(run.evidence)
                budget.say(len(moves) - 1, len(run.active), run.evidence)
                alone = alone + 1 if step.move == "re-estimate" else 0
                if alone > 10 + len(run.active):  # one at a time they creep where columns are alike
                    run.settle(free_noise)
                    run.refresh()
                    alone = 0
                    moves.append("joint")
                    path.append(run.evidence)
                continue
            moved = run.settle(free_noise)
            alone = 0
            run.refresh()
            if moved > 0:
                moves.append("joint")
                path.append(run.evidence)
            if tol > budget.tol:
                tol = max(budget.tol, min(0.3 * tol, moved))
            elif moved <= budget.tol and run.proposal(tol) is None:
                status = Status.CONVERGED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except np.linalg.LinAlgError:  # columns so alike that float64 cannot tell them apart at this noise
        status = Status.STAGNATED
        run.restore()
        path.append(run.evidence)
    run.refresh()
    path[-1] = run.evidence
    return SparsePosterior(
        run.active,
        run.alpha,
        run.mu,
        run.sigma,
        run.noise,
        run.evidence,
        np.array(path),
        moves,
        status,
        budget.seconds,
    )


class _Regression:
    """The model so far: the active columns Φ_A, the products G = ΦᵀΦ_A, Σ, μ, and S and Q of every column."""

    def __init__(self, basis: Basis, t: np.ndarray, mass: float, noise: float) -> None:
        self.basis, self.t, self.mass, self.noise = basis, t, mass, noise
        self.active = np.zeros(0, dtype=np.intp)
        self.alpha = np.zeros(0)
        self.phi = np.zeros((len(t), 0), order="F")
        self.G = np.zeros((basis.size, 0), order="F")
        self.Pt = basis.project(t)
        self.own = basis.usable.astype(float)  # φ_m·φ_m
        self.refresh()

    def proposal(self, tol: float) -> Proposal | None:
        """The best step from here."""
        variance = self.sigma.diagonal()
        inside = (np.abs(self.G) >= ALIGNED).any(axis=1) | (SPANNED * self.own / self.noise >= self.S)
        twins = np.flatnonzero(inside)
        outside = np.setdiff1d(twins, self.active, assume_unique=True)
        here = self.S, self.Q, self.active, self.alpha, self.mu, variance
        return propose(*here, tol=tol, worth=tol**2, closed=outside)

    def refresh(self) -> None:
        """Σ, μ, S, Q and the evidence from their definitions, in O(M m²)."""
        beta, m = 1 / self.noise, len(self.active)
        H = beta * self.G[self.active]
        H[np.diag_indices(m)] += self.alpha
        lower, _ = cho_factor(H, lower=True) if m else (H, True)
        self.mu = cho_solve((lower, True), beta * self.Pt[self.active]) if m else np.zeros(0)
        self.sigma = cho_solve((lower, True), np.eye(m)) if m else np.zeros((0, 0))
        V = solve_triangular(lower, self.G.T, lower=True) if m else self.G.T
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
        """One step, with Σ, μ, S and Q updated in O(M m); a new column costs one product with the Gram operator."""
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
            self.S, self.Q = self.S - own * e**2, self.Q - mu * e
            self.mu, self.sigma = np.append(self.mu - mu * part, mu), sigma
            self.phi = np.column_stack([self.phi, column])
            self.G = np.column_stack([self.G, g])
            self.active = np.append(self.active, step.index)
            self.alpha = np.append(self.alpha, step.alpha)
        else:
            j = int(np.flatnonzero(self.active == step.index)[0])
            row, own = self.sigma[j].copy(), float(self.sigma[j, j])
            deleted = step.move == "delete"
            kappa = 1 / own if deleted else 1 / (own + 1 / (step.alpha - self.alpha[j]))
            e = beta * (self.G @ row)
            self.S, self.Q = self.S + kappa * e**2, self.Q + kappa * self.mu[j] * e
            self.sigma = self.sigma - kappa * np.outer(row, row)
            self.mu = self.mu - kappa * self.mu[j] * row
            if deleted:
                keep = np.arange(len(self.active)) != j
                self.sigma, self.mu = self.sigma[np.ix_(keep, keep)], self.mu[keep]
                self.phi, self.G = self.phi[:, keep], self.G[:, keep]
                self.active, self.alpha = self.active[keep], self.alpha[keep]
            else:
                self.alpha = np.where(np.arange(len(self.active)) == j, step.alpha, self.alpha)
        self.evidence += step.gain

    def settle(self, free_noise: bool) -> float:
        """All α of the model, and σ² if it is free, to a maximum together; the largest change of a logarithm.

        First σ² alone, then L-BFGS in the logarithms of all; neither lowers the evidence. `refresh` must follow.
        """
        before = np.append(np.log(self.alpha), np.log(self.noise))
        if free_noise:
            self.improve_noise()
        if len(self.active):
            self._settle_jointly(free_noise)
        return float(np.abs(np.append(np.log(self.alpha), np.log(self.noise)) - before).max())

    def _settle_jointly(self, free_noise: bool) -> None:
        m, G, b = len(self.active), self.G[self.active], self.Pt[self.active]
        start = np.append(np.log(self.alpha), np.log(self.noise))
        unit = float(self.t @ self.t) / self.mass
        best: list[Any] = [np.inf, start]
        first: list[float] = []

        def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
            if clock.late():
                raise clock.OutOfTime
            value, slope = measured(x)
            if value < best[0]:
                best[:] = value, x.copy()
            first.append(value)
            return value, slope

        def measured(x: np.ndarray) -> tuple[float, np.ndarray]:
            alpha, tau = np.exp(x[:m]), float(x[m])
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
            x = found.x if found.fun < first[0] else start
        except clock.OutOfTime:
            x = best[1]
        except np.linalg.LinAlgError:
            # A trial point beyond what float64 can factor: the model stays as it is.
            return
        if x is not start:
            self.alpha, self.noise = np.exp(x[:m]), float(np.exp(x[m]))

    def improve_noise(self) -> None:
        """The σ² of largest evidence for these α, found on a line: C = σ²I + UΛUᵀ has the same U for every σ²."""
        U, values, _ = svd(self.phi / np.sqrt(self.alpha), full_matrices=False)
        lam, v = values**2, U.T @ self.t
        rest = self.t - U @ v
        left = float(rest @ rest)

        def cost(tau: Any) -> Any:
            noise = np.exp(tau)
            within = noise[..., None] + lam if np.ndim(noise) else noise + lam
            return (self.mass - len(lam)) * tau + left / noise + (np.log(within) + v**2 / within).sum(axis=-1)

        unit = float(self.t @ self.t) / self.mass
        grid = np.linspace(np.log(NOISE_FLOOR * unit), np.log(2 * unit), 70)
        best = int(np.argmin(cost(grid)))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-7})
        tau = min((float(found.x), float(grid[best])), key=cost)
        if cost(tau) < cost(float(np.log(self.noise))):
            self.noise = float(np.exp(tau))
