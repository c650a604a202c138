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
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.formulas.formula import Formula, NotRecorded
from mercer.kernels.leaves.families import OfOneNumber, PerColumn, Radial, dot_products, squared_norms

Logarithm = tuple[np.ndarray, np.ndarray]  # log|k| and the sign of k


@dataclass(frozen=True)
class Pairs:
    """Which values are meant: those of every pair, or those of every row with itself."""

    x: Rows
    z: Rows | None = None
    diagonal: bool = False

    def values(self, k: Kernel) -> np.ndarray:
        return k.diagonal(self.x) if self.diagonal else k.block(self.x, self.z)

    def variable(self, k: OfOneNumber) -> np.ndarray:
        """What the formula of a leaf is one of: scaled squared distances, dot products, or what its columns add up to."""
        z = self.x if self.z is None else self.z
        if isinstance(k, PerColumn):
            X, Z = k.checked_rows(self.x), k.checked_rows(z)
            if self.diagonal:
                return k.reduced(X, X, (len(X),))
            return k.reduced(X[:, None, :], Z[None, :, :], (len(X), len(Z)))
        if isinstance(k, Radial):
            return np.zeros(len(self.x)) if self.diagonal else k.squares(self.x.vectors, z.vectors)
        return squared_norms(self.x.vectors) if self.diagonal else dot_products(self.x.vectors, z.vectors)

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
def _(k: OfOneNumber, at: Pairs) -> Logarithm:
    """By the recorded formula: exponentials lose theirs, products become sums, powers multiples."""
    try:
        f = k.recorded()
    except NotRecorded:
        return _of_numbers(at.values(k), k, at)
    if not f.operations() & {"exp", "power"}:
        return _of_numbers(at.values(k), k, at)
    with np.errstate(over="ignore", divide="ignore"):
        return _of_formula(f, at.variable(k), k, at)


def _of_formula(f: Formula, u: np.ndarray, k: OfOneNumber, at: Pairs) -> Logarithm:
    parts = f.parts
    if f.op == "exp":
        log = parts[0].at(u, k.numbers()) + np.zeros_like(u)
        return log, np.ones_like(u)
    if f.op == "negative":
        log, sign = _of_formula(parts[0], u, k, at)
        return log, -sign
    if f.op in ("multiply", "divide"):
        log, sign = _of_formula(parts[0], u, k, at)
        other, other_sign = _of_formula(parts[1], u, k, at)
        return (log + other if f.op == "multiply" else log - other), sign * other_sign
    if f.op == "power" and parts[1].op == "number" and parts[1].number == int(parts[1].number):
        log, sign = _of_formula(parts[0], u, k, at)
        return parts[1].number * log, sign ** int(abs(parts[1].number))
    return _of_numbers(f.at(u, k.numbers()) + np.zeros_like(u), k, at)


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
        k.applied(sign)  # refuses a negative number
    return k.exponent * log, sign**k.exponent


@logarithm.register
def _(k: algebra.On, at: Pairs) -> Logarithm:
    return logarithm(k.kernel, at.through(lambda rows: rows.take(k.columns)))


@logarithm.register(algebra.Of)
@logarithm.register(algebra.LinearMap)
def _(k: algebra.Of | algebra.LinearMap, at: Pairs) -> Logarithm:
    return logarithm(k.kernel, at.through(k.mapped))
