"""Sparse Bayesian classification: the steps of `sparse_bayes` around a Gaussian at the mode (Laplace's method).

    p(t = 1 | x) = 1 / (1 + e^-f),   f = Φw,   w_m ~ N(0, 1/α_m)
    evidence  L(α) ≈ log p(t | μ) - ½ μᵀAμ + ½ log|A| - ½ log|ΦᵀBΦ + A|,    B = weight · p(1 - p) at the mode μ

The closed forms for one α_m hold for B held fast, but B moves with μ. So a step is a proposal: it is taken if Laplace's
evidence, computed anew at the new mode, rises; else it is shortened, and at last left. Hence the evidence never falls here
by construction, and the end is a point where no single step that the closed forms propose raises it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from mercer.machines.sparse_bayes import Basis, Budget, Found, Proposal, propose
from mercer.solve.solution import Status

NEWTON = 100  # steps to the mode; it is usually there after five
HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Mode:
    """The model at one choice of α: the mode μ, the factor of its Hessian, B, the slopes weight·(t - p), the evidence."""

    active: np.ndarray
    alpha: np.ndarray
    phi: np.ndarray
    mu: np.ndarray
    lower: np.ndarray
    b: np.ndarray
    slope: np.ndarray
    evidence: float

    @property
    def sigma(self) -> np.ndarray:
        m = len(self.active)
        return cho_solve((self.lower, True), np.eye(m)) if m else np.zeros((0, 0))


def mode(
    active: np.ndarray, alpha: np.ndarray, phi: np.ndarray, t: np.ndarray, w: np.ndarray, start: np.ndarray
) -> Mode:
    """Newton's method (iteratively re-weighted least squares) with halved steps, from `start`."""

    def posterior(mu: np.ndarray) -> tuple[float, np.ndarray]:
        f = phi @ mu
        return float(w @ (t * f - np.logaddexp(0.0, f))) - 0.5 * float(alpha @ mu**2), f

    mu = start
    height, f = posterior(mu)
    for _ in range(NEWTON):
        p = expit(f)
        slope, b = w * (t - p), w * p * (1 - p)
        H = (phi.T * b) @ phi
        H[np.diag_indices(len(alpha))] += alpha
        lower = cho_factor(H, lower=True)[0] if len(alpha) else H
        up = phi.T @ slope - alpha * mu
        step = cho_solve((lower, True), up) if len(alpha) else up
        if float(up @ step) <= 1e-18 * max(abs(height), 1.0):
            break
        share = 1.0
        for _ in range(HALVINGS):
            new, f_new = posterior(mu + share * step)
            if new >= height:
                break
            share /= 2
        else:
            break
        mu, height, f = mu + share * step, new, f_new
    logdet = 2 * float(np.log(lower.diagonal()).sum()) - float(np.log(alpha).sum())
    return Mode(active, alpha, phi, mu, lower, b, slope, height - 0.5 * logdet)


def classification(basis: Basis, t: np.ndarray, w: np.ndarray, budget: Budget) -> Found:
    """Maximise Laplace's evidence of labels t in {0, 1} with weights w, from the empty model."""
    none = np.zeros(0)
    now = mode(none.astype(np.intp), none, np.zeros((len(t), 0)), t, w, none)
    S, Q = _factors(basis, now)
    fresh = True
    path, moves = [now.evidence], ["start"]
    status: Status = "limit"
    refused: set[int] = set()
    try:
        while not budget.spent(len(moves) - 1):
            step = propose(
                S, Q, now.active, now.alpha, now.mu, now.sigma.diagonal(), tol=budget.tol, closed=refused
            )
            if step is None:
                if fresh:
                    status = "converged"
                    break
                S, Q = _factors(basis, now)
                fresh = True
                continue
            then = _attempt(basis, now, step, t, w, budget.tol)
            if then is None:
                refused.add(step.index)
                continue
            now = then
            refused.clear()
            moves.append(step.move)
            path.append(now.evidence)
            budget.say(len(moves) - 1, len(now.active), now.evidence)
            # between two passes over all columns the cheap steps, inside the model, are used up
            S, Q = np.zeros(basis.size), np.zeros(basis.size)
            fresh = False
    except KeyboardInterrupt:
        status = "interrupted"
    return Found(
        now.active,
        now.alpha,
        now.mu,
        now.sigma,
        0.0,
        now.evidence,
        np.array(path),
        moves,
        status,
        budget.seconds,
    )


def _factors(basis: Basis, now: Mode) -> tuple[np.ndarray, np.ndarray]:
    """S_m = φᵀBφ - φᵀBΦ Σ ΦᵀBφ and Q_m = φᵀ(weight·(t - p)) of every column, by products with the Gram operator."""
    S, Q = basis.squares(now.b), basis.project(now.slope)
    if len(now.active):
        V = solve_triangular(now.lower, basis.project((now.phi.T * now.b).T).T, lower=True)
        S = S - np.einsum("im,im->m", V, V)
    return S, Q


def _attempt(
    basis: Basis, now: Mode, step: Proposal, t: np.ndarray, w: np.ndarray, tol: float
) -> Mode | None:
    """The model after the step, or after a shorter one; None if none of them raises the evidence."""
    if step.move == "delete":
        keep = now.active != step.index
        then = mode(now.active[keep], now.alpha[keep], now.phi[:, keep], t, w, now.mu[keep])
        return then if then.evidence >= now.evidence else None
    if step.move == "add":
        active, phi = (
            np.append(now.active, step.index),
            np.column_stack([now.phi, basis.column(step.index)]),
        )
        tries = [np.append(now.alpha, step.alpha * 10.0**k) for k in range(3)]
        start = np.append(now.mu, 0.0)
    else:
        active, phi, start = now.active, now.phi, now.mu
        mine = active == step.index
        old = float(now.alpha[mine][0])
        tries = [np.where(mine, old * (step.alpha / old) ** share, now.alpha) for share in (1.0, 0.5, 0.1)]
    for alpha in tries:
        then = mode(active, alpha, phi, t, w, start)
        if then.evidence > now.evidence + tol**2:
            return then
    return None
