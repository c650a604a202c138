"""Sparse Bayesian learning from the formulas: slow, obvious, and without any sequential step."""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multivariate_normal


def log_evidence(Phi, alpha, noise, y):
    """log N(y | 0, σ²I + ΦA⁻¹Φᵀ); an infinite α leaves its column out."""
    kept = np.isfinite(alpha)
    C = noise * np.eye(len(y)) + (Phi[:, kept] / alpha[kept]) @ Phi[:, kept].T
    return multivariate_normal(np.zeros(len(y)), C, allow_singular=False).logpdf(y)


def full_iterations(Phi, y, steps=500):
    """Tipping (2001): all α = γ/μ² and σ² = ‖y - Φμ‖²/(n - Σγ) at once, again and again;
    large α are pruned.
    """
    n, M = Phi.shape
    alpha, noise, kept = np.ones(M), 0.1 * np.var(y), np.arange(M)
    for _ in range(steps):
        P = Phi[:, kept]
        sigma = np.linalg.inv(P.T @ P / noise + np.diag(alpha[kept]))
        mu = sigma @ P.T @ y / noise
        gamma = 1 - alpha[kept] * np.diag(sigma)
        alpha[kept] = np.clip(gamma / np.maximum(mu**2, 1e-300), 1e-12, 1e14)
        noise = np.sum((y - P @ mu) ** 2) / (n - gamma.sum())
        kept = kept[alpha[kept] < 1e9]
    out = np.full(M, np.inf)
    out[kept] = alpha[kept]
    return out, noise


def laplace_evidence(Phi, alpha, t, w):
    """log p(t | μ) + log N(μ | 0, A⁻¹) + ½ log |2πH⁻¹| at the mode μ, found by a general optimiser."""
    kept = np.isfinite(alpha)
    P, a = Phi[:, kept], alpha[kept]

    def cost(mu):
        f = P @ mu
        p = 1 / (1 + np.exp(-f))
        value = -np.sum(w * (t * f - np.logaddexp(0, f))) + 0.5 * np.sum(a * mu**2)
        return value, -P.T @ (w * (t - p)) + a * mu

    found = minimize(cost, np.zeros(len(a)), jac=True, method="BFGS", options={"gtol": 1e-9})
    p = 1 / (1 + np.exp(-(P @ found.x)))
    H = (P.T * (w * p * (1 - p))) @ P + np.diag(a)
    value = -found.fun + 0.5 * np.log(a).sum() - 0.5 * np.linalg.slogdet(H)[1]
    return value, found.x, np.linalg.inv(H)
