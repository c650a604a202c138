"""Kernel principal components of the points, and what a machine's function is on the plane they span.

A point of that plane is p = φ̄ + Σ z_c v_c in feature space, and f = w·p + b is linear there:

    f(p) = f̄ + Σ z_c ⟨w, v_c⟩,    ⟨w, v_c⟩ = Σ_i β_i Σ_j a_jc (k(x_i, x_j) - mean_l k(x_i, x_l))

So the straight line f = 0 that is drawn is the machine's own hyperplane, cut by the plane of the picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.errors import InputError
from mercer.studio.fitted import Fitted
from mercer.typing import Array

# Below this share of the largest eigenvalue a component is rounding.
LEAST = 1e-10


@dataclass(frozen=True)
class Components:
    """`places` of the rows on the components, their `shares` of the variance, and f as `slopes` and `level`.

    `slopes` has a row for each function of the machine; None where the machine is no such sum.
    """

    places: Array
    shares: Array
    slopes: Array | None
    level: Array | None


def components(fitted: Fitted, count: int) -> Components:
    """The leading components of the points of a page."""
    K = np.asarray(fitted.choice.kernel(fitted.points.X, fitted.points.X), dtype=float)
    mean = K.mean(axis=0)
    centred = K - mean - mean[:, None] + mean.mean()
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    order = np.argsort(values)[::-1][:count]
    values, vectors = values[order], vectors[:, order]
    if not len(values) or values[0] <= 0:
        raise InputError("All points are the same to this kernel, so there is no plane to show them in.")
    good = values > LEAST * values[0]
    root = np.sqrt(np.where(good, values, 1.0))
    # the sign that makes the largest entry positive, so that pictures do not flip
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(len(values))])
    vectors = vectors * np.where(signs == 0, 1.0, signs)
    places = np.where(good, vectors * root, 0.0)
    total = max(float(np.trace(centred)), float(values[0]))
    slopes, level = _function(fitted, K, mean, np.where(good, vectors / root, 0.0))
    missing = count - places.shape[1]
    if missing > 0:
        places = np.pad(places, ((0, 0), (0, missing)))
        values = np.pad(values, (0, missing))
        slopes = None if slopes is None else np.pad(slopes, ((0, 0), (0, missing)))
    return Components(places, np.maximum(values, 0.0) / total, slopes, level)


def _function(fitted: Fitted, K: Array, mean: Array, axes: Array) -> tuple[Array | None, Array | None]:
    beta = fitted.coefficients
    functions = fitted.functions
    if not beta.shape[1] or functions is None:
        return None, None
    slopes = beta.T @ (K - mean[:, None]) @ axes
    level = beta.T @ mean + functions.offset
    return np.asarray(slopes), np.asarray(level)
