"""The targets and the noise of a Gaussian process regression, between units of y and units of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.arrays import Rows
from mercer.errors import ParameterError, ShapeError
from mercer.kernels.terms import noise_of
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.machines.shared.base import is_open
from mercer.machines.shared.targets import check_target_block
from mercer.typing import Array, Numbers, Targets

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor


def deviation(Y: Array) -> Array:
    """The standard deviation of each column; exactly 0 for equal numbers, whatever their mean rounds to.

    >>> float(deviation(np.full(3, 0.1))), bool(np.full(3, 0.1).std() == 0)
    (0.0, False)
    """
    return np.where(Y.max(axis=0) > Y.min(axis=0), Y.std(axis=0), 0.0)


def take_targets(model: GaussianProcessRegressor, y: Targets, n: int) -> Array:
    """The targets as n × targets in the units of the model; remembers their mean and scale."""
    Y, model._single = check_target_block(y, n, type(model).__name__)
    model._constant = bool(np.all(Y[0] == Y))
    spread = deviation(Y)
    model._centred, model._scaled = normalization(model, Y.shape[1])
    model.y_mean_ = Y.mean(axis=0) if model._centred else np.zeros(Y.shape[1])
    model.y_scale_ = np.where(spread > 0, spread, 1.0) if model._scaled else np.ones(Y.shape[1])
    if model._scaled and model.noise is not None and Y.shape[1] > 1:
        raise ParameterError(
            "noise with several targets needs normalize_y=False or 'mean': its unit would differ from "
            "target to target."
        )
    Y = (Y - model.y_mean_) / model.y_scale_
    model.y_fit_ = Y[:, 0] if model._single else Y
    return Y


def normalization(model: GaussianProcessRegressor, targets: int) -> tuple[bool, bool]:
    """Whether the targets are taken about their mean, and in units of their deviation."""
    if model.normalize_y == "auto":
        centred = is_open(model.kernel)
        return centred, centred and (model.noise is None or targets == 1)
    return bool(model.normalize_y), bool(model.normalize_y) and model.normalize_y != "mean"


def take_noise(model: GaussianProcessRegressor, n: int) -> Array | float:
    """The variance of the noise given, a number or one for each row, in units of the model."""
    if model.noise is None:
        return 0.0
    try:
        noise = np.asarray(model.noise, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"noise must be a variance, or one for each row; got {model.noise!r}."
        ) from error
    if noise.shape not in ((), (n,)):
        raise ShapeError(
            f"noise must be a number or one variance for each of the {n} rows; got shape {noise.shape}."
        )
    if not np.all(np.isfinite(noise)) or np.any(noise < 0):
        raise ParameterError("noise holds variances: finite numbers >= 0; got one that is not.")
    noise = noise / float(model.y_scale_[0]) ** 2
    return float(noise) if noise.ndim == 0 else noise


def new_noise(posterior: Posterior, noise: Numbers | bool, rows: Rows) -> Array:
    """The variance of the noise of observations at new rows, in units of the model."""
    if isinstance(noise, bool | np.bool_) and not noise:
        return np.zeros(len(rows))
    kernel = posterior.kernel
    white = noise_of(kernel, rows)
    white = np.zeros(len(rows)) if white is None else white
    if isinstance(noise, bool | np.bool_):
        if np.ndim(posterior.noise):
            raise ParameterError(
                "the noise of this model is per row of the training data, so that of new rows is not known; "
                "pass noise=variances, one for each row of X, or noise=0.0 for the White terms alone."
            )
        return np.asarray(np.maximum(white, 0.0) + posterior.noise)
    given = np.asarray(noise, dtype=np.float64)
    if given.shape not in ((), (len(rows),)) or not np.all(np.isfinite(given)) or np.any(given < 0):
        raise ParameterError(
            f"noise must be True, False, or variances >= 0, a number or {len(rows)} of them."
        )
    return np.asarray(np.maximum(white, 0.0) + given / float(posterior.units.scale[0]) ** 2)
