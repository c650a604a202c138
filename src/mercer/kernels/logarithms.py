"""Logarithms of kernel values that leave the range of float64 while what is made of them does not.

e^(½ x·x) at ‖x‖ = 40 is 10³⁴⁷; the cosine k(x, z) / √(k(x, x) k(z, z)) made of such numbers is an ordinary
one. `Kernel.logarithm` says what a construction does to logarithm and sign; every other kernel is evaluated,
and refused where that overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mercer.arrays import Rows
from mercer.errors import DomainError, MagnitudeError
from mercer.kernels.formulas.formula import Formula
from mercer.samples import optional
from mercer.typing import Array, Flags

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# log|k| and the sign of k
Logarithm = tuple[Array, Array]

# Below it, numbers near the end of the range of float64 lose digits.
SMALLEST = 1e-290


@dataclass(frozen=True)
class Pairs:
    """Which values are meant: those of every pair, or those of every row with itself."""

    x: Rows
    z: Rows | None = None
    diagonal: bool = False

    def values(self, k: Kernel) -> Array:
        """The values themselves."""
        if self.diagonal:
            return k.diagonal(self.x)
        return k.block(self.x, self.z)

    def through(self, view: Callable[[Rows], Rows]) -> Pairs:
        """The same pairs of other rows."""
        return Pairs(view(self.x), optional(view, self.z), self.diagonal)


def cosines(k: Kernel, x: Rows, z: Rows | None) -> Array:
    """k(x, z) / √(k(x, x) k(z, z)) by differences of logarithms; 0 where a norm is 0."""
    a = log_norms(k, x)
    b = a if z is None else log_norms(k, z)
    with np.errstate(invalid="ignore"):
        log, sign = k.logarithm(Pairs(x, z))
        K = sign * np.exp(log - (a[:, None] + b[None, :]))
    K[np.isneginf(a), :] = 0.0
    K[:, np.isneginf(b)] = 0.0
    return K


def log_norms(k: Kernel, x: Rows) -> Array:
    """½ log k(x, x) for every row; -∞ where k(x, x) = 0."""
    log, sign = k.logarithm(Pairs(x, diagonal=True))
    if np.any(sign < 0):
        i = int(np.argmin(sign))
        raise DomainError(
            f"{k}: k(x, x) is negative at row {i} of {x.name}, so it has no norm there (and is no kernel)."
        )
    refuse_vanished(k, x, np.isneginf(log))
    beyond = ~(log < np.inf)
    if beyond.any():
        raise MagnitudeError(
            f"{k}: k(x, x) overflows float64 at row {int(np.argmax(beyond))} of {x.name}, so its norm is not "
            "known. "
            "Rescale the columns, or take a smaller scale, degree or power."
        )
    return 0.5 * log


def from_logarithm(k: Kernel, at: Pairs) -> Array:
    """k as ± e^(log |k|): also where what it is made of is below the range of float64."""
    log, sign = k.logarithm(at)
    with np.errstate(over="ignore"):
        return sign * np.exp(log)


def refuse_vanished(k: Kernel, x: Rows, zero: Flags) -> None:
    """Refuse a row with k(x, x) = 0 that is not zero itself, but so small that its squares are."""
    vanished = np.intersect1d(np.flatnonzero(zero), x.vanishing())
    if len(vanished):
        raise MagnitudeError(
            f"{k}: row {vanished[0]} of {x.name} is so small that its squares vanish, and its norm with "
            "them. "
            "Rescale the columns."
        )


def of_numbers(values: Array, k: Kernel, at: Pairs) -> Logarithm:
    """Logarithm and sign of values; numbers of the diagonal that have lost digits are refused."""
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(values))
    if at.diagonal:
        lost = (values != 0) & (np.abs(values) < SMALLEST)
        if lost.any():
            raise MagnitudeError(
                f"{k}: row {int(np.argmax(lost))} of {at.x.name} is so small that its norm has lost its "
                "digits. "
                "Rescale the columns."
            )
    return log, np.sign(values)


def of_formula(f: Formula, u: Array, numbers: Mapping[str, float], k: Kernel, at: Pairs) -> Logarithm:
    """By the steps of a formula of u: exponentials lose theirs, products become sums, powers multiples."""
    parts = f.parts
    if f.op == "exp":
        log = parts[0].at(u, numbers) + np.zeros_like(u)
        return log, np.ones_like(u)
    if f.op == "negative":
        log, sign = of_formula(parts[0], u, numbers, k, at)
        return log, -sign
    if f.op in ("multiply", "divide"):
        log, sign = of_formula(parts[0], u, numbers, k, at)
        other, other_sign = of_formula(parts[1], u, numbers, k, at)
        both = log + other if f.op == "multiply" else log - other
        return both, sign * other_sign
    if f.op == "power" and parts[1].op == "number" and parts[1].number == int(parts[1].number):
        log, sign = of_formula(parts[0], u, numbers, k, at)
        return parts[1].number * log, sign ** int(abs(parts[1].number))
    return of_numbers(f.at(u, numbers) + np.zeros_like(u), k, at)
