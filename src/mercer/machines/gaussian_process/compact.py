"""Gaussian processes without their n × n factors, which can be computed again from the rows: for model files.

A regressor makes its factor when a band is first asked for. One on landmarks needs neither rows nor targets
of the fit: landmarks, weights and a factor of their size say everything of new rows. A classifier needs its
factors for everything, so `with_factors` makes them at once, by the same steps as in the fit.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.inverses import Exact, InFeatures, Later
from mercer.machines.gaussian_process.laplace import Posterior, PosteriorMode
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.shared.base import KernelEstimator
from mercer.solve.direct import Cholesky
from mercer.threads import blas_for


def without_factors(model: KernelEstimator) -> KernelEstimator:
    """The model without its n × n factors, or the model itself where it has none that can be left out."""
    if isinstance(model, GaussianProcessRegressor) and _has_factor(model):
        return _with(model, _inverse=Exact(Later(model._fitted_system().gram(), model.noise_)))
    if isinstance(model, GaussianProcessRegressor) and isinstance(model._inverse, InFeatures):
        return _without_rows(model, model._inverse)
    if isinstance(model, GaussianProcessClassifier):
        return _with(model, posterior_=PosteriorMode(**_mode_of(model.posterior_)))
    return model


def _mode_of(posterior: PosteriorMode) -> dict[str, Any]:
    return {field.name: getattr(posterior, field.name) for field in fields(PosteriorMode)}


def _without_rows(model: GaussianProcessRegressor, inverse: InFeatures) -> KernelEstimator:
    """A process on landmarks without the rows of its fit; with noise given for each row it stays as it is."""
    if np.ndim(model.noise_):
        return model
    r = len(inverse.lower)
    nothing = InFeatures(np.zeros((0, r)), np.zeros(0), inverse.lower)
    return _with(
        model,
        _inverse=nothing,
        X_fit_=model.X_fit_[:0],
        y_fit_=model.y_fit_[:0],
        _alpha=model._alpha[:0],
        alpha_=model.alpha_[:0],
    )


def _has_factor(model: GaussianProcessRegressor) -> bool:
    return isinstance(model._inverse, Exact) and isinstance(model._inverse.factor, Cholesky)


def _with(model: KernelEstimator, **changes: object) -> KernelEstimator:
    """The same model with other attributes."""
    other: KernelEstimator = object.__new__(type(model))
    other.__dict__.update(vars(model))
    other.__dict__.update(changes)
    return other


def with_factors(model: Any) -> None:
    """Compute what was left out of a classifier."""
    if not isinstance(model, GaussianProcessClassifier) or isinstance(model.posterior_, Posterior):
        return
    mode = model.posterior_
    model._check_memory(len(mode.f))
    K = model._operator(model.kernel_).dense()
    likelihood = model._likelihood
    kept = _mode_of(mode)
    del kept["evidence"]
    # with the threads that the fit had, for the same bits
    with blas_for(len(K)):
        curve = likelihood.curve(K, mode.f)
        found = likelihood.close(curve, K=K, value=0.0, **kept)
    # The evidence is that of the fit, and not what closing adds up anew.
    object.__setattr__(found, "evidence", mode.evidence)
    model.posterior_ = found


def factor_bytes(model: Any) -> int:
    """The bytes of the n × n arrays that `without_factors` leaves out."""
    if isinstance(model, GaussianProcessRegressor) and isinstance(model._inverse, InFeatures):
        return int(model._inverse.phi.nbytes)
    if isinstance(model, GaussianProcessRegressor) and isinstance(model._inverse, Exact):
        factor = model._inverse.factor
        return int(factor.lower.nbytes) if isinstance(factor, Cholesky) else 0
    if isinstance(model, GaussianProcessClassifier) and isinstance(model.posterior_, Posterior):
        found = model.posterior_
        parts = [*vars(found).values(), *vars(getattr(found, "blocks", found)).values()]
        arrays = {id(part): part for part in parts if isinstance(part, np.ndarray)}
        m = len(found.K)
        return int(sum(part.nbytes for part in arrays.values() if part.size >= m * m))
    return 0
