"""The mode of a latent Gaussian process in coordinates in which the prior is round.

This is for priors so high that K loses its digits.

    K = FFᵀ,   f = Fz,   ψ(z) = -½ ‖z‖² + Σ w_i log p(y_i | f_i),   ∇ψ = Fᵀg - z,   H = I + FᵀWF

F has one column for each eigenvalue of K that rounding leaves. Every eigenvalue of H is at least 1 and
nothing is subtracted from it, so its factor always exists; ½‖z‖² is a sum of squares where ½ aᵀKa cancels;
and a step is judged by differences of single terms, not of sums. The log-determinant of I + KW is that of
H. What it costs: one eigendecomposition, and one factor of (rank · classes)² for each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer import lapack
from mercer.typing import Array

EPS = float(np.finfo(float).eps)
LARGEST = 6000  # unknowns: rank × classes; above it H takes too much memory
HALVINGS = 40
GAIN = 1e-4  # of what the slope promises: a step that gains less is halved
SETTLED = 3  # steps in a row that do not halve the gradient, near the end: rounding


class Curved(Protocol):
    """log p(y | f), row by row, its gradient, and its curvature seen through F."""

    def each(self, f: Array) -> Array: ...

    def gradient(self, f: Array) -> Array: ...

    def seen(self, F: Array, f: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class WhitenedMode:
    """z, f = Fz, the value ψ, ½ log |H| there, and how many steps it took."""

    z: Array
    f: Array
    value: float
    half_logdet: float
    iterations: int


def square_root(K: Array) -> Array | None:
    """F with K = FFᵀ to rounding; None where K has a negative eigenvalue beyond it.

    >>> F = square_root(np.ones((3, 3)))
    >>> F.shape, bool(np.allclose(F @ F.T, 1.0))
    ((3, 1), True)
    """
    values, vectors = lapack.eigh(K)
    floor = len(K) * EPS * max(float(values[-1]), 0.0)
    if values[0] < -10 * floor or values[-1] <= 0:
        return None
    kept = values > floor
    return vectors[:, kept] * np.sqrt(values[kept])


def whitened_mode(K: Array, likelihood: Curved, shape: tuple[int, ...], max_iter: int) -> WhitenedMode | None:
    """The mode by damped Newton steps from z = 0; None where K is no kernel, or the system too large."""
    F = square_root(K)
    if F is None:
        return None
    z = np.zeros((F.shape[1], *shape[1:]))
    if z.size > LARGEST:
        return None
    f = F @ z
    each = likelihood.each(f)
    least, idle, steps = np.inf, 0, 0
    while True:
        lower = lapack.cholesky(likelihood.seen(F, f), overwrite_a=True)
        slope = F.T @ likelihood.gradient(f) - z
        size = float(np.linalg.norm(slope))
        idle = idle + 1 if size > 0.5 * least else 0
        least = min(least, size)
        step = lapack.cho_solve(lower, slope.reshape(-1, 1)).reshape(z.shape)
        promised = float(np.vdot(slope, step))
        rounding = EPS * (float(np.vdot(z, z)) + float(np.abs(each).sum()) + 1.0)
        near = promised <= 100 * rounding
        if size == 0 or (near and idle >= SETTLED) or steps >= max_iter:
            break
        moved = _walk(F, likelihood, z, f, each, step, promised, rounding)
        if moved is None:
            break
        z, f, each = moved
        steps += 1
    half = float(np.log(lower.diagonal()).sum())
    value = float(each.sum()) - 0.5 * float(np.vdot(z, z))
    return WhitenedMode(z, f, value, half, steps)


def _walk(
    F: Array,
    likelihood: Curved,
    z: Array,
    f: Array,
    each: Array,
    step: Array,
    promised: float,
    rounding: float,
) -> tuple[Array, Array, Array] | None:
    """As much of the step as gains what its slope promises; None if none of it does."""
    across = F @ step
    share = 1.0
    for _ in range(HALVINGS):
        new_z = z + share * step
        new_f = F @ new_z if share == 1.0 else f + share * across
        new_each = likelihood.each(new_f)
        gained = float((new_each - each).sum()) - 0.5 * share * float(np.vdot(step, new_z + z))
        if gained >= GAIN * share * promised - rounding:
            return new_z, new_f, new_each
        share *= 0.5
    return None
