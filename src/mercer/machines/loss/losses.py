"""Losses of `KernelMachine`: what each costs, its slope, curvature, conjugate and what `predict` makes of it.

A loss ℓ(y, z) is convex in z = f(x) + b. Its conjugate ℓ*(y, s) = sup_z s z - ℓ(y, z) makes the duality gap:

    ℓ(y, z) + ℓ*(y, s) ≥ s z,      with equality where s is a slope at z        (Fenchel-Young)

`slopes(y)` is the interval of s on which ℓ* is finite. Losses on classes take y = -1 or 1; softmax takes
codes 0, 1, ….
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, log_softmax, logsumexp, softmax, xlogy

from mercer.errors import DomainError
from mercer.typing import Array, Integers

Kind = Literal["regression", "classification"]
Bound = Array | float


class Loss(ABC):
    """A convex loss of one number; arrays are taken entry by entry.

    `smooth` losses go to Newton's method; the others are piecewise linear and become box problems.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "regression"
    smooth: ClassVar[bool] = True
    has_conjugate: ClassVar[bool] = True

    @abstractmethod
    def value(self, y: Array, z: Array) -> Array:
        """ℓ(y, z) ≥ 0."""

    @abstractmethod
    def slope(self, y: Array, z: Array) -> Array:
        """∂ℓ/∂z; at a kink one of its subgradients."""

    def curvature(self, y: Array, z: Array) -> Array:
        """∂²ℓ/∂z² (of a side, where it jumps); 0 for piecewise linear losses."""
        return np.zeros(np.broadcast(y, z).shape)

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        """The smallest and the largest slope: where the conjugate is finite."""
        return -np.inf, np.inf

    def conjugate(self, y: Array, s: Array) -> Array:
        """ℓ*(y, s) = sup_z s z - ℓ(y, z); infinite outside `slopes(y)`."""
        low, high = self.slopes(y)
        s = np.asarray(s, dtype=float)
        inside = np.clip(s, low, high)
        return np.where(inside == s, self._conjugate(y, inside), np.inf)

    @abstractmethod
    def _conjugate(self, y: Array, s: Array) -> Array:
        """ℓ*(y, s) for a slope s."""

    def check_targets(self, y: Array, w: Array, fit_intercept: bool) -> None:
        """Refuse targets outside the domain of the loss; here every finite number is in it."""
        return None

    def predict(self, z: Array) -> Array:
        """What a value of f + b means, in units of y."""
        return z


# ── regression ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Squared(Loss):
    """½(y - z)²: the conditional mean; kernel ridge regression.

    >>> float(Squared().value(3.0, 1.0)), float(Squared().slope(3.0, 1.0))
    (2.0, -2.0)
    >>> float(Squared().conjugate(3.0, -2.0))
    -4.0
    """

    name = "squared"

    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * np.square(np.subtract(y, z))

    def slope(self, y: Array, z: Array) -> Array:
        return np.subtract(z, y)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.ones(np.broadcast(y, z).shape)

    def _conjugate(self, y: Array, s: Array) -> Array:
        return s * y + 0.5 * s**2


@dataclass(frozen=True)
class Huber(Loss):
    """½r² for |r| ≤ δ, δ|r| - ½δ² beyond, r = y - z: the mean, with outliers held to a slope of δ.

    >>> Huber(1.0).value(0.0, np.array([0.5, 3.0])).tolist()
    [0.125, 2.5]
    """

    delta: float = 1.0
    name = "huber"

    def value(self, y: Array, z: Array) -> Array:
        r = np.abs(np.subtract(y, z))
        return np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta))

    def slope(self, y: Array, z: Array) -> Array:
        return np.clip(np.subtract(z, y), -self.delta, self.delta)

    def curvature(self, y: Array, z: Array) -> Array:
        return (np.abs(np.subtract(y, z)) < self.delta).astype(float)

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return -self.delta, self.delta

    def _conjugate(self, y: Array, s: Array) -> Array:
        return s * y + 0.5 * s**2


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |y - z| - ε): nothing for small errors, then linear; support vector regression.

    >>> EpsilonInsensitive(0.5).value(0.0, np.array([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    epsilon: float = 0.1
    name = "epsilon_insensitive"
    smooth = False

    def value(self, y: Array, z: Array) -> Array:
        return np.maximum(np.abs(np.subtract(y, z)) - self.epsilon, 0.0)

    def slope(self, y: Array, z: Array) -> Array:
        r = np.subtract(z, y)
        return np.sign(r) * (np.abs(r) > self.epsilon)

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return -1.0, 1.0

    def _conjugate(self, y: Array, s: Array) -> Array:
        return s * y + self.epsilon * np.abs(s)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """max(0, |y - z| - ε)².

    >>> SquaredEpsilonInsensitive(0.5).value(0.0, np.array([0.25, 2.0])).tolist()
    [0.0, 2.25]
    """

    epsilon: float = 0.1
    name = "squared_epsilon_insensitive"

    def value(self, y: Array, z: Array) -> Array:
        return np.square(np.maximum(np.abs(np.subtract(y, z)) - self.epsilon, 0.0))

    def slope(self, y: Array, z: Array) -> Array:
        r = np.subtract(z, y)
        return 2.0 * np.sign(r) * np.maximum(np.abs(r) - self.epsilon, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(np.abs(np.subtract(y, z)) > self.epsilon, 2.0, 0.0)

    def _conjugate(self, y: Array, s: Array) -> Array:
        return s * y + self.epsilon * np.abs(s) + 0.25 * s**2


@dataclass(frozen=True)
class Quantile(Loss):
    """max(τr, (τ - 1)r), r = y - z: the conditional quantile of level τ (the pinball loss).

    >>> Quantile(0.9).value(np.array([1.0, -1.0]), 0.0).round(9).tolist()
    [0.9, 0.1]
    """

    level: float = 0.5
    name = "quantile"
    smooth = False

    def value(self, y: Array, z: Array) -> Array:
        r = np.subtract(y, z)
        return np.maximum(self.level * r, (self.level - 1.0) * r)

    def slope(self, y: Array, z: Array) -> Array:
        r = np.subtract(y, z)
        return np.where(r > 0, -self.level, (1.0 - self.level) * (r < 0))

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return -self.level, 1.0 - self.level

    def _conjugate(self, y: Array, s: Array) -> Array:
        return s * y


@dataclass(frozen=True)
class Poisson(Loss):
    """e^z - y - y(z - log y): half the deviance of counts y ≥ 0 with the rate e^z.

    >>> float(Poisson().value(1.0, 0.0)), float(Poisson().slope(3.0, 0.0))
    (0.0, -2.0)
    """

    name = "poisson"

    def value(self, y: Array, z: Array) -> Array:
        constant: Array = xlogy(y, y) - y
        return np.asarray(np.exp(z) - y * np.asarray(z, dtype=float) + constant)

    def slope(self, y: Array, z: Array) -> Array:
        return np.exp(z) - y

    def curvature(self, y: Array, z: Array) -> Array:
        return np.exp(z) + np.zeros(np.shape(y))

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return -np.asarray(y, dtype=float), np.inf

    def _conjugate(self, y: Array, s: Array) -> Array:
        rate = np.maximum(s + y, 0.0)
        return np.asarray(xlogy(rate, rate) - rate - (xlogy(y, y) - y))

    def check_targets(self, y: Array, w: Array, fit_intercept: bool) -> None:
        if np.any(y < 0):
            i = int(np.argmax(y < 0))
            raise DomainError(
                f"loss='poisson' takes counts or rates y >= 0; row {i} has {y[i]:g}. "
                "Use loss='squared' for such targets."
            )
        if fit_intercept and not np.any(y[w > 0] > 0):
            raise DomainError(
                "every target with a positive weight is 0, so the best log-rate is minus infinity and there "
                "is no minimum. Pass fit_intercept=False, which keeps it finite, or data with some counts."
            )

    def predict(self, z: Array) -> Array:
        return np.exp(z)


# ── classification ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - yz), y = ±1: the largest margin; the support vector machine.

    >>> Hinge().value(1.0, np.array([-1.0, 0.5, 2.0])).tolist()
    [2.0, 0.5, 0.0]
    """

    name = "hinge"
    kind = "classification"
    smooth = False

    def value(self, y: Array, z: Array) -> Array:
        return np.maximum(1.0 - np.multiply(y, z), 0.0)

    def slope(self, y: Array, z: Array) -> Array:
        return -np.asarray(y, dtype=float) * (np.multiply(y, z) < 1.0)

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return _between_zero_and(-np.asarray(y, dtype=float))

    def _conjugate(self, y: Array, s: Array) -> Array:
        return y * s


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - yz)², y = ±1.

    >>> SquaredHinge().value(1.0, np.array([-1.0, 0.5, 2.0])).tolist()
    [4.0, 0.25, 0.0]
    """

    name = "squared_hinge"
    kind = "classification"

    def value(self, y: Array, z: Array) -> Array:
        return np.square(np.maximum(1.0 - np.multiply(y, z), 0.0))

    def slope(self, y: Array, z: Array) -> Array:
        return -2.0 * np.asarray(y, dtype=float) * np.maximum(1.0 - np.multiply(y, z), 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        return np.where(np.multiply(y, z) < 1.0, 2.0, 0.0)

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        up = np.asarray(y, dtype=float) > 0
        return np.where(up, -np.inf, 0.0), np.where(up, 0.0, np.inf)

    def _conjugate(self, y: Array, s: Array) -> Array:
        return y * s + 0.25 * s**2


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^(-yz)), y = ±1: kernel logistic regression; P(y = 1) = 1 / (1 + e^(-z)).

    >>> round(float(Logistic().value(1.0, 0.0)), 6), float(Logistic().slope(1.0, 0.0))
    (0.693147, -0.5)
    """

    name = "logistic"
    kind = "classification"

    def value(self, y: Array, z: Array) -> Array:
        return np.logaddexp(0.0, -np.multiply(y, z))

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(-np.asarray(y, dtype=float) * expit(-np.multiply(y, z)))

    def curvature(self, y: Array, z: Array) -> Array:
        margin = np.multiply(y, z)
        return np.asarray(expit(margin) * expit(-margin))

    def slopes(self, y: Array) -> tuple[Bound, Bound]:
        return _between_zero_and(-np.asarray(y, dtype=float))

    def _conjugate(self, y: Array, s: Array) -> Array:
        a = np.clip(-y * s, 0.0, 1.0)
        return np.asarray(xlogy(a, a) + xlogy(1.0 - a, 1.0 - a))


class Softmax:
    """log Σ_c e^(z_c) - z_y: logistic regression of several classes at once; P(c) = e^(z_c) / Σ e^z.

    z and slopes are n × k, curvatures n × k × k, codes y = 0, …, k - 1.

    >>> Softmax().value(np.array([0]), np.zeros((1, 4))).round(6).tolist()       # log 4
    [1.386294]
    """

    name = "logistic"
    kind: Kind = "classification"
    has_conjugate = True

    def value(self, y: Integers, z: Array) -> Array:
        total: Array = logsumexp(z, axis=1)
        return total - z[np.arange(len(z)), y]

    def slope(self, y: Integers, z: Array) -> Array:
        mine = (np.arange(len(z)), y)
        log = np.asarray(log_softmax(z, axis=1))
        p: Array = np.exp(log)
        # p - 1 without cancellation
        p[mine] = np.expm1(log[mine])
        return p

    def curvature(self, y: Integers, z: Array) -> Array:
        p: Array = softmax(z, axis=1)
        return p[:, :, None] * np.eye(z.shape[1]) - p[:, :, None] * p[:, None, :]

    def root(self, y: Integers, z: Array) -> Array:
        """R with R Rᵀ = curvature: diag(√p) - p √pᵀ."""
        p: Array = softmax(z, axis=1)
        r = np.sqrt(p)
        return r[:, :, None] * np.eye(z.shape[1]) - p[:, :, None] * r[:, None, :]

    def conjugate(self, y: Integers, s: Array) -> Array:
        """Σ p log p with p = s + e_y, if that is a probability; else infinite."""
        p = np.array(s, dtype=float)
        p[np.arange(len(p)), y] += 1.0
        inside = (p.min(axis=1) >= -1e-12) & (np.abs(p.sum(axis=1) - 1.0) <= 1e-9)
        p = np.maximum(p, 0.0)
        return np.where(inside, xlogy(p, p).sum(axis=1), np.inf)


def _between_zero_and(slope: Array) -> tuple[Array, Array]:
    """The interval from 0 to a slope, whichever of the two is smaller."""
    return np.minimum(slope, 0.0), np.maximum(slope, 0.0)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        Squared,
        Huber,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Quantile,
        Poisson,
        Hinge,
        SquaredHinge,
        Logistic,
    )
}
