"""Logarithms of kernel values, for kernels whose values leave the range of float64 while what is made of them does not.

e^(½ x·x) at ‖x‖ = 40 is 10³⁴⁷; the cosine k(x, z) / √(k(x, x) k(z, z)) made of such numbers is an ordinary one. A rule here says
what a construction does to logarithm and sign; every other kernel is evaluated, and refused where that overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from scipy.special import logsumexp

from mercer.arrays import Rows
from mercer.errors import DomainError, MagnitudeError
from mercer.kernels import algebra, columns, dot, radial
from mercer.kernels.base import Kernel
from mercer.kernels.families import Radial, dot_products, squared_norms

Logarithm = tuple[np.ndarray, np.ndarray]  # log|k| and the sign of k


@dataclass(frozen=True)
class Pairs:
    """Which values are meant: those of every pair, or those of every row with itself."""

    x: Rows
    z: Rows | None = None
    diagonal: bool = False

    def values(self, k: Kernel) -> np.ndarray:
        return k._diag(self.x) if self.diagonal else k._block(self.x, self.z)

    def products(self) -> np.ndarray:
        if self.diagonal:
            return squared_norms(self.x.vectors)
        return dot_products(self.x.vectors, None if self.z is None else self.z.vectors)

    def distances(self, k: Radial) -> np.ndarray:
        """Scaled squared distances."""
        if self.diagonal:
            return np.zeros(len(self.x))
        return k._squares(self.x.vectors, None if self.z is None else self.z.vectors)

    def through(self, view: Callable[[Rows], Rows]) -> Pairs:
        return Pairs(view(self.x), None if self.z is None else view(self.z), self.diagonal)


def cosines(k: Kernel, x: Rows, z: Rows | None) -> np.ndarray:
    """k(x, z) / √(k(x, x) k(z, z)) by differences of logarithms; 0 where a norm is 0."""
    a = log_norms(k, x)
    b = a if z is None else log_norms(k, z)
    with np.errstate(invalid="ignore"):
        log, sign = logarithm(k, Pairs(x, z))
        K = sign * np.exp(log - (a[:, None] + b[None, :]))
    K[np.isneginf(a), :] = 0.0
    K[:, np.isneginf(b)] = 0.0
    return K


def log_norms(k: Kernel, x: Rows) -> np.ndarray:
    """½ log k(x, x) for every row; -∞ where k(x, x) = 0."""
    log, sign = logarithm(k, Pairs(x, diagonal=True))
    if np.any(sign < 0):
        i = int(np.argmin(sign))
        raise DomainError(
            f"{k}: k(x, x) is negative at row {i} of {x.name}, so it has no norm there (and is no kernel)."
        )
    algebra.refuse_vanished(k, x, np.isneginf(log))
    beyond = ~(log < np.inf)
    if beyond.any():
        raise MagnitudeError(
            f"{k}: k(x, x) overflows float64 at row {int(np.argmax(beyond))} of {x.name}, so its norm is not known. "
            "Rescale the columns, or take a smaller scale, degree or power."
        )
    return 0.5 * log


def power(k: algebra.Power, at: Pairs) -> np.ndarray:
    """k^p as e^(p log k): also where k is below the range of float64 and its power is not."""
    log, sign = logarithm(k, at)
    with np.errstate(over="ignore"):
        return sign * np.exp(log)


@singledispatch
def logarithm(k: Kernel, at: Pairs) -> Logarithm:
    """log|k| and the sign of k, from the value itself."""
    return _of_numbers(at.values(k), k, at)


def _of_numbers(values: np.ndarray, k: Kernel, at: Pairs) -> Logarithm:
    """Logarithm and sign; numbers of the diagonal that have lost digits are refused."""
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(values))
    if at.diagonal:
        lost = (values != 0) & (np.abs(values) < SMALLEST)
        if lost.any():
            raise MagnitudeError(
                f"{k}: row {int(np.argmax(lost))} of {at.x.name} is so small that its norm has lost its digits. "
                "Rescale the columns."
            )
    return log, np.sign(values)


SMALLEST = 1e-290  # below it, numbers near the end of the range of float64 lose digits


@logarithm.register
def _(k: dot.ExpDot, at: Pairs) -> Logarithm:
    log = k.scale * at.products()
    return log, np.ones_like(log)


@logarithm.register
def _(k: radial.RBF, at: Pairs) -> Logarithm:
    s = at.distances(k)
    return -0.5 * s, np.ones_like(s)


@logarithm.register
def _(k: radial.Exponential, at: Pairs) -> Logarithm:
    s = at.distances(k)
    return -np.sqrt(s), np.ones_like(s)


@logarithm.register
def _(k: radial.Matern, at: Pairs) -> Logarithm:
    polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}
    if k.nu not in polynomials:
        return _of_numbers(at.values(k), k, at)
    a = np.sqrt(2 * k.nu * at.distances(k))
    return np.log(np.polynomial.polynomial.polyval(a, polynomials[k.nu])) - a, np.ones_like(a)


@logarithm.register
def _(k: columns.Laplacian, at: Pairs) -> Logarithm:
    X = k._numbers(at.x)
    Z = X if at.z is None else k._numbers(at.z)
    distance = np.zeros(len(X)) if at.diagonal else k._reduce(X[:, None, :], Z[None, :, :], (len(X), len(Z)))
    return -distance, np.ones_like(distance)


@logarithm.register
def _(k: dot.Polynomial, at: Pairs) -> Logarithm:
    base = k.offset + k.scale * at.products()
    log, sign = _of_numbers(base, k, at)
    return k.degree * log, sign**k.degree


@logarithm.register
def _(k: algebra.Exp, at: Pairs) -> Logarithm:
    log = at.values(k.kernel)
    return log, np.ones_like(log)


@logarithm.register
def _(k: algebra.Scaled, at: Pairs) -> Logarithm:
    log, sign = logarithm(k.kernel, at)
    with np.errstate(divide="ignore"):
        return log + np.log(abs(k.scale)), sign * np.sign(k.scale)


@logarithm.register
def _(k: algebra.Product, at: Pairs) -> Logarithm:
    parts = [logarithm(part, at) for part in k.parts]
    log = np.sum([part[0] for part in parts], axis=0)
    return log, np.prod([part[1] for part in parts], axis=0)


@logarithm.register
def _(k: algebra.Sum, at: Pairs) -> Logarithm:
    parts = [logarithm(part, at) for part in k.parts]
    with np.errstate(divide="ignore", invalid="ignore"):
        return logsumexp([p[0] for p in parts], b=[p[1] for p in parts], axis=0, return_sign=True)


@logarithm.register
def _(k: algebra.Power, at: Pairs) -> Logarithm:
    if k.exponent == 0:
        log = np.zeros_like(at.values(k))
        return log, np.ones_like(log)
    log, sign = logarithm(k.kernel, at)
    if k.exponent != int(k.exponent):
        k._of(sign)  # refuses a negative number
    return k.exponent * log, sign**k.exponent


@logarithm.register
def _(k: algebra.On, at: Pairs) -> Logarithm:
    return logarithm(k.kernel, at.through(lambda rows: rows.take(k.columns)))


@logarithm.register(algebra.Of)
@logarithm.register(algebra.LinearMap)
def _(k: algebra.Of | algebra.LinearMap, at: Pairs) -> Logarithm:
    return logarithm(k.kernel, at.through(k._mapped))
