"""Class probabilities: the link function averaged over a Gaussian latent value."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr, ndtri, softmax
from scipy.stats import qmc

from mercer.typing import Array, Seed

WIDE = 16.0  # variance above which Φ is averaged over the logistic density, and not σ over the normal one
_Z = np.linspace(-10.0, 10.0, 121)
_NORMAL = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
_L = np.linspace(-40.0, 40.0, 161)
_LOGISTIC = expit(_L) * expit(-_L) / (expit(_L) * expit(-_L)).sum()


def average_logistic(mean: Array, variance: Array) -> Array:
    """E σ(f) for f ~ N(mean, variance), to about 1e-12, by the trapezoidal rule.

    The rule is geometric for such functions. A wide Gaussian makes σ look like a step: then the same number
    is the average of Φ((mean + l)/√variance) over logistic l, which is smooth. It is above ½ where the mean
    is above 0, and below ½ (by 1e-16 at least) everywhere else.

    >>> average_logistic(np.array([0.0, 1.0, 1.0]), np.array([4.0, 0.0, 1e6])).round(6).tolist()
    [0.5, 0.731059, 0.500399]
    """
    size, spread = -np.abs(mean), np.sqrt(variance)
    wide = variance > WIDE
    low = np.empty(len(mean))  # the probability of the less probable class
    low[~wide] = expit(size[~wide, None] + spread[~wide, None] * _Z) @ _NORMAL
    low[wide] = ndtr((size[wide, None] + _L) / spread[wide, None]) @ _LOGISTIC
    low = np.minimum(low, 0.5 - 2.0**-53)  # no ties: 1 - low is then above ½ in float64 too
    return np.where(mean > 0, 1.0 - low, low)


def draws(classes: int, count: int, seed: Seed) -> Array:
    """`count` standard normal vectors, one number for each class.

    They are scrambled Sobol points, so that averages settle fast.
    """
    sobol = qmc.Sobol(classes, scramble=True, rng=np.random.default_rng(seed))
    points = sobol.random_base2(max(0, int(count - 1).bit_length()))[:count]
    return np.asarray(ndtri(np.clip(points, 1e-12, 1 - 1e-12)))


def average_softmax(mean: Array, covariance: Array, normal: Array) -> Array:
    """E softmax(f) for f ~ N(mean, covariance), over the given standard normal draws.

    A row of the answer sums to 1.

    >>> p = average_softmax(np.zeros((1, 2)), np.eye(2)[None], draws(2, 1024, 0))
    >>> bool(abs(p[0, 0] - 0.5) < 1e-3)
    True
    """
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    f = mean[:, None, :] + np.einsum("mcd,sd->msc", roots, normal, optimize=True)
    p = softmax(f, axis=2).mean(axis=1)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
