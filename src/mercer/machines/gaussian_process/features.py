"""A Gaussian process with the features of an approximation in place of its kernel.

    f(x) = φ(x)·β,      β ~ N(0, I)
    M = I + ΦᵀN⁻¹Φ,     mean(x) = φ(x)·M⁻¹ΦᵀN⁻¹y,     var(x) = φ(x)ᵀM⁻¹φ(x) + k(x, x) - ‖φ(x)‖²

The last two terms are what the features leave out of the prior: without them a band would be narrow where
no landmark is near. Nyström features leave out a kernel, so that covariances have all of it; random
features may have ‖φ(x)‖² > k(x, x), then nothing is added, and what is left out counts as independent from
row to row.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.gram import Tiles
from mercer.gram.on_rows import Approximated, FeatureApproximation
from mercer.kernels.base import Kernel
from mercer.kernels.terms import latent_diag
from mercer.machines.gaussian_process.inverses import InFeatures
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.typing import Array


def refuse_search(kernel: Kernel) -> NoReturn:
    """Features are those of one kernel: hyperparameters are not searched through them."""
    raise ParameterError(
        f"the hyperparameters of {kernel} are not searched through an approximation: its features change "
        "with them. Fit a subset of the rows without approximation=, then pass kernel=model.kernel_ and "
        "optimizer=None here."
    )


def in_features(on: Approximated, noise: Array | float) -> InFeatures:
    """The posterior of the weights of the features."""
    total = np.broadcast_to(noise + on.approximation.noise_, len(on)).astype(np.float64)
    if total.min() <= 0:
        raise ParameterError(
            f"row {int(np.argmin(total))} has no noise, and a Gram matrix of {on.approximation.dimension} "
            "features cannot be inverted without. Add + White(0.01) to the kernel, or pass noise=variance."
        )
    return InFeatures.of(on.phi, total)


def variance(posterior: Posterior, inverse: InFeatures, rows: Rows) -> Array:
    """var f at new rows."""
    phi = _approximation(posterior).features(rows)
    V = inverse.spread(phi)
    return np.asarray(np.einsum("rn,rn->n", V, V) + _left_out(posterior, rows, phi))


def covariance(posterior: Posterior, inverse: InFeatures, rows: Rows) -> Array:
    """The covariance matrix of f at new rows."""
    approximation = _approximation(posterior)
    phi = approximation.features(rows)
    V = inverse.spread(phi)
    out = V.T @ V
    left = _left_out(posterior, rows, phi)
    if approximation.from_below:
        twin = Rows(rows.data, "Z", rows.names)
        rest = Tiles(posterior.kernel, rows, twin, n_jobs=posterior.n_jobs).dense() - phi @ phi.T
        rest[np.diag_indices_from(rest)] = left
        return out + 0.5 * (rest + rest.T)
    out[np.diag_indices_from(out)] += left
    return out


def _approximation(posterior: Posterior) -> FeatureApproximation:
    assert isinstance(posterior.on, Approximated)
    return posterior.on.approximation


def _left_out(posterior: Posterior, rows: Rows, phi: Array) -> Array:
    return np.asarray(np.maximum(latent_diag(posterior.kernel, rows) - np.einsum("ij,ij->i", phi, phi), 0.0))


def left_out_of_fit(on: Approximated) -> Array:
    """max(k(x, x) - ‖φ(x)‖², 0) of the rows of fit, without noise."""
    return np.asarray(np.maximum(_own(on) - np.einsum("ij,ij->i", on.phi, on.phi), 0.0))


def left_share(on: Approximated) -> float:
    """Σ max(k(x, x) - ‖φ(x)‖², 0) / Σ k(x, x) over the rows of fit, without noise."""
    total = float(np.sum(_own(on)))
    return float(left_out_of_fit(on).sum()) / total if total > 0 else 0.0


def _own(on: Approximated) -> Array:
    """k(x, x) of the rows of fit, without noise."""
    if on.kernel is None:
        # The rows are those of a given Gram matrix.
        return np.asarray(on.rows.data.diagonal())
    return np.asarray(latent_diag(on.kernel, on.rows))


def refuse(posterior: Posterior, what: str) -> None:
    """What is not to be had from features of the whole kernel at given hyperparameters."""
    if posterior.approximated:
        raise InputError(
            f"{what} cannot be read off a model with approximation=, whose features are those of the whole "
            "kernel at given hyperparameters. Fit a subset of the rows without it."
        )
