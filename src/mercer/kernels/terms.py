"""A kernel as a sum: which terms are functions of x, which are noise of the single observation."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.algebra import Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.typing import Array

# Rows of the small blocks whose diagonals give k(x, z) at z = x for two observations.
BLOCK = 64


def terms_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The terms of a sum, a number in front of the bracket multiplied in; any other kernel is its only term.

    >>> from mercer import RBF, Linear, White
    >>> terms_of(2.0 * (RBF(1.0) + Linear()) + White(0.1))
    (2.0*RBF(1.0), 2.0*Linear(), White(0.1))
    """
    if isinstance(kernel, Sum):
        return tuple(term for part in kernel.parts for term in terms_of(part))
    if isinstance(kernel, Scaled) and isinstance(kernel.kernel, Sum | Scaled):
        return tuple(term * kernel.scale for term in terms_of(kernel.kernel))
    return (kernel,)


def is_noise(term: Kernel) -> bool:
    """Whether a term is white noise and nothing else: White, or a multiple of it."""
    return term.noise_variance() is not None


def has_noise(kernel: Kernel) -> bool:
    """Whether white noise occurs anywhere in the expression."""
    return any(is_noise(part) for part in kernel.walk())


def latent_terms(kernel: Kernel) -> tuple[Kernel, ...]:
    """The terms that are functions of x."""
    return tuple(term for term in terms_of(kernel) if not is_noise(term))


def split_noise(kernel: Kernel) -> tuple[Kernel | None, float]:
    """The sum of the latent terms (None if there are none), and the variance of the noise terms together.

    >>> from mercer import RBF, White
    >>> split_noise(RBF(1.0) + 0.5 * White(0.1) + White(0.2))
    (RBF(1.0), 0.25)
    """
    latent = latent_terms(kernel)
    noise = sum(term.noise_variance() or 0.0 for term in terms_of(kernel))
    if not latent:
        return None, noise
    total = latent[0]
    for term in latent[1:]:
        total = total + term
    return total, noise


def noise_of(kernel: Kernel, rows: Rows) -> Array | None:
    """What k(x, x) of each row has beyond k(x, z) at z = x for two observations; None without `White`."""
    if not has_noise(kernel):
        return None
    rest, level = split_noise(kernel)
    if rest is None or not has_noise(rest):
        return np.full(len(rows), level)
    # Inside a product the noise is another one for every row.
    whole = np.asarray(kernel.diagonal(rows), dtype=np.float64)
    noise = whole - latent_diag(kernel, rows)
    return np.where(np.abs(noise) <= 1e-12 * np.abs(whole), 0.0, noise)


def latent_diag(kernel: Kernel, rows: Rows) -> Array:
    """k(x, z) at z = x for two observations: the prior variance of f(x), without the noise of observing it.

    >>> from mercer import RBF, White
    >>> latent_diag(2.0 * RBF(1.0) + White(0.5), Rows.of([[0.0], [1.0]]))
    array([2., 2.])
    """
    if not has_noise(kernel):
        return np.asarray(kernel.diagonal(rows), dtype=np.float64)
    if is_noise(kernel):
        return np.zeros(len(rows))
    terms = terms_of(kernel)
    if len(terms) > 1:
        total: Array = np.sum([latent_diag(term, rows) for term in terms], axis=0)
        return total
    out = np.empty(len(rows))
    # Noise inside a product or power: small blocks of two samples.
    for start in range(0, len(rows), BLOCK):
        some = rows.rows(np.arange(start, min(start + BLOCK, len(rows))))
        out[start : start + len(some)] = np.diagonal(kernel.block(some, Rows(some.data, "Z", some.names)))
    return out
