"""The gap that a dual point states is never less than what is left to gain, wherever the primal stands."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from mercer.solve.newton import balanced, from_coefficients, from_slopes
from solve.laboratory import rbf


class Squared:
    """½ (z - y)²."""

    def __init__(self, y):
        self.y = y[:, None]

    def value(self, z):
        return 0.5 * ((z - self.y) ** 2).sum(axis=1)

    def slope(self, z):
        return z - self.y

    def root(self, z):
        return np.ones((*z.shape, 1))

    def conjugate(self, s):
        return (0.5 * s**2 + s * self.y).sum(axis=1)


class LogLoss:
    """log(1 + e^(-yz))."""

    def __init__(self, y):
        self.y = np.where(y > 0, 1.0, -1.0)[:, None]

    def value(self, z):
        return np.logaddexp(0.0, -self.y * z).sum(axis=1)

    def slope(self, z):
        return -self.y * expit(-self.y * z)

    def root(self, z):
        return np.sqrt(expit(z) * expit(-z))[:, :, None]

    def conjugate(self, s):
        u = (-s * self.y)[:, 0]
        inside = (u >= 0) & (u <= 1)
        v = np.clip(u, 0.0, 1.0)
        return np.where(inside, xlogy(v, v) + xlogy(1 - v, 1 - v), np.inf)


def objective(K, loss, alpha, beta, b):
    z = K @ beta + b
    return float(loss.value(z).sum() + 0.5 * alpha * np.sum(beta * (K @ beta)))


def least(K, loss, alpha, intercept):
    """The minimum over β, and over b where there is one, by a general optimiser."""
    n = len(K)

    def both(x):
        beta, b = x[:n, None], x[n] * intercept
        s = loss.slope(K @ beta + b)
        return objective(K, loss, alpha, beta, b), np.append(
            (K @ (s + alpha * beta))[:, 0], intercept * s.sum()
        )

    found = minimize(both, np.zeros(n + 1), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    return found.fun


def best_beta(K, loss, alpha, b):
    """β of the problem whose intercept is held at b."""
    n = len(K)

    def both(x):
        s = loss.slope(K @ x[:, None] + b)
        return objective(K, loss, alpha, x[:, None], b), (K @ (s + alpha * x[:, None]))[:, 0]

    start = minimize(both, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000}).x
    return -loss.slope(K @ start[:, None] + b) / alpha


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Squared, LogLoss])
@pytest.mark.parametrize("seed", range(5))
def test_no_gap_is_below_what_is_left_to_gain(seed, loss, intercept):
    rng = np.random.default_rng(seed)
    n, alpha = 10, float(rng.choice([0.1, 1.0, 5.0]))
    K = rbf(n, seed=seed)
    of = loss(rng.normal(size=n) + 0.5)
    lowest = least(K, of, alpha, intercept)
    for b in rng.choice([0.0, 0.3, -2.0, 5.0], 3) * intercept:
        # at the best β for a wrong b nothing but the sum of β shows that b is wrong
        for off in (0.0, 1e-3, 0.3):
            beta = best_beta(K, of, alpha, b) * (1.0 - off * rng.random((n, 1)))
            f = K @ beta
            z = f + b
            left = objective(K, of, alpha, beta, b) - lowest
            gaps = [from_coefficients(of, alpha, beta, f, z, intercept).gap]
            if not intercept or balanced(of, of.slope(z), z):
                gaps.append(from_slopes(K, of, alpha, beta, f, z).gap)
            assert min(gaps) >= left - 1e-7 * (1.0 + abs(lowest))
            if not intercept:
                # and it is not idle
                assert np.isfinite(gaps[0]) and (off or gaps[0] < 1e-6 * (1.0 + abs(lowest)))
