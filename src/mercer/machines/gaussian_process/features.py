"""A Gaussian process with the features of an approximation in place of its kernel: f(x) = φ(x)·β, β ~ N(0, I).

    M = I + ΦᵀN⁻¹Φ,     mean(x) = φ(x)·M⁻¹ΦᵀN⁻¹y,     var(x) = φ(x)ᵀM⁻¹φ(x) + k(x, x) - ‖φ(x)‖²

The last two terms are what the features leave out of the prior: without them a band would be narrow where no landmark is
near. Nyström features leave out a kernel, so that covariances have all of it; random features may have ‖φ(x)‖² > k(x, x),
then nothing is added, and what is left out counts as independent from row to row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.gram import GramOperator, Tiles
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.posterior import InFeatures
from mercer.machines.landmarks.approximation import factor_of
from mercer.machines.shared.terms import latent_diag

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor


def approximate_prior(
    model: GaussianProcessRegressor, kernel: Kernel | None, A: Any
) -> tuple[GramOperator, InFeatures] | None:
    """K̂ of the rows and the posterior of the weights; None without an approximation."""
    searched = model.optimizer is not None and kernel is not None and len(kernel.theta) > 0
    if model.approximation is not None and searched:
        raise ParameterError(
            f"the hyperparameters of {kernel} are not searched through an approximation: its features change with them. "
            "Fit a subset of the rows without approximation=, then pass kernel=model.kernel_ and optimizer=None here."
        )
    K = model._approximate(kernel, A)
    if K is None:
        return None
    noise = np.broadcast_to(model.noise_ + model.approximation_.noise_, A.shape[0]).astype(np.float64)
    if noise.min() <= 0:
        raise ParameterError(
            f"row {int(np.argmin(noise))} has no noise, and a Gram matrix of {model.approximation_._n_features_out} features "
            "cannot be inverted without. Add + White(0.01) to the kernel, or pass noise=variance."
        )
    return K, InFeatures.of(factor_of(K), noise)


def variance(model: GaussianProcessRegressor, inverse: InFeatures, rows: Rows) -> np.ndarray:
    """var f at new rows."""
    phi = model.approximation_.features(rows)
    V = inverse.spread(phi)
    return np.einsum("rn,rn->n", V, V) + _left_out(model, rows, phi)


def covariance(model: GaussianProcessRegressor, inverse: InFeatures, rows: Rows) -> np.ndarray:
    """The covariance matrix of f at new rows."""
    phi = model.approximation_.features(rows)
    V = inverse.spread(phi)
    out = V.T @ V
    left = _left_out(model, rows, phi)
    if model.approximation_.from_below:
        assert isinstance(model.kernel_, Kernel)
        rest = (
            Tiles(model.kernel_, rows, Rows(rows.data, "Z", rows.names), n_jobs=model.n_jobs).dense()
            - phi @ phi.T
        )
        rest[np.diag_indices_from(rest)] = left
        return out + 0.5 * (rest + rest.T)
    out[np.diag_indices_from(out)] += left
    return out


def _left_out(model: GaussianProcessRegressor, rows: Rows, phi: np.ndarray) -> np.ndarray:
    assert isinstance(model.kernel_, Kernel)
    return np.maximum(latent_diag(model.kernel_, rows) - np.einsum("ij,ij->i", phi, phi), 0.0)


def left_share(model: GaussianProcessRegressor, K: GramOperator) -> float:
    """Σ max(k(x, x) - ‖φ(x)‖², 0) / Σ k(x, x) over the rows of fit, without noise."""
    held = K.diag() - model.approximation_.noise_
    kernel, rows = model._own_kernel, model._fitted_rows
    own = model.X_fit_.diagonal() if kernel is None or rows is None else latent_diag(kernel, rows)
    total = float(np.sum(own))
    return float(np.maximum(own - held, 0.0).sum()) / total if total > 0 else 0.0


def refuse(model: GaussianProcessRegressor, what: str) -> None:
    """What is not to be had from features of the whole kernel at given hyperparameters."""
    if model._approximated:
        raise InputError(
            f"{what} cannot be read off a model with approximation=, whose features are those of the whole kernel at given "
            "hyperparameters. Fit a subset of the rows without it."
        )
