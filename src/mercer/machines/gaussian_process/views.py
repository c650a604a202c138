"""What can be read off a fitted Gaussian process: bands, its terms one by one, samples, gradients in the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Rows, check_vectors, column_names
from mercer.errors import InputError, ParameterError
from mercer.gram import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process import features as gp_features
from mercer.machines.gaussian_process.posterior import Explained, InFeatures, nonnegative
from mercer.machines.shared.terms import latent_diag, latent_terms

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor

CHUNK = 64 << 20  # bytes of k(X_fit, X) at one time
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Terms:
    """The posterior of every term of a sum of kernels, f = f₁ + f₂ + …, at m rows.

    `mean` is terms × m; `covariance` is terms × terms × m: the posterior covariance of term i and term j at each row. Terms
    are correlated, because the data only speak of their sum: it is the sum over i and j that is the variance of f, and
    `offset` plus the sum over i of the means that is its mean. `full`, if asked for, is terms × terms × m × m. With
    several targets every array has a last axis for them.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    mean: np.ndarray
    covariance: np.ndarray
    offset: Any
    full: np.ndarray | None = None

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of every term."""
        return np.sqrt(np.einsum("ii...->i...", self.covariance))

    @property
    def total_mean(self) -> np.ndarray:
        return self.offset + self.mean.sum(axis=0)

    @property
    def total_std(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.covariance.sum(axis=(0, 1)), 0.0))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """(name, mean, standard deviation) of every term."""
        return iter(zip(self.names, self.mean, self.std, strict=True))


def latent_variance(model: GaussianProcessRegressor, rows: Rows) -> np.ndarray:
    """var f at new rows: the prior variance less what the data explain, never negative."""
    kernel = _kernel(model)
    prior, out = latent_diag(kernel, rows), np.empty(len(rows))
    if isinstance(model._inverse, InFeatures):
        for part in _chunks(len(rows), len(model._inverse.lower)):
            out[part] = gp_features.variance(model, model._inverse, _take(rows, part))
        return out
    for part in _chunks(len(rows), len(model.y_fit_)):
        explained = model._inverse.explained(_cross(model, kernel, rows, part))
        out[part] = prior[part] - _pointwise(explained)
    return nonnegative(out, prior, len(model.y_fit_))


def latent_covariance(model: GaussianProcessRegressor, rows: Rows) -> np.ndarray:
    """The covariance matrix of f at new rows, exactly symmetric, its diagonal never negative."""
    kernel = _kernel(model)
    if isinstance(model._inverse, InFeatures):
        return gp_features.covariance(model, model._inverse, rows)
    prior = Tiles(kernel, rows, _twin(rows), n_jobs=model.n_jobs).dense()
    out = prior - _whole(model._inverse.explained(_cross(model, kernel, rows, slice(None))))
    out = 0.5 * (out + out.T)
    out[np.diag_indices_from(out)] = nonnegative(out.diagonal(), prior.diagonal(), len(model.y_fit_))
    return out


def decompose(model: GaussianProcessRegressor, X: Any, names: Sequence[str] | None, full: bool) -> Terms:
    check_is_fitted(model, "alpha_")
    gp_features.refuse(model, "the terms of the kernel")
    rows = model._rows(model._check_rows(X, reset=False))
    kernels = latent_terms(_kernel(model))
    if not kernels:
        raise InputError(f"{model.kernel_} is noise alone: there is no function to take apart.")
    names = tuple(str(k) for k in kernels) if names is None else tuple(names)
    if len(names) != len(kernels):
        raise ParameterError(
            f"{len(kernels)} terms need as many names, in the order of the kernel; got {len(names)}: {names}."
        )
    t, m, n = len(kernels), len(rows), len(model.y_fit_)
    mean = np.array([Tiles(k, rows, model._fitted_rows, n_jobs=model.n_jobs) @ model._alpha for k in kernels])
    covariance = np.empty((t, t, m))
    prior = np.array([latent_diag(k, rows) for k in kernels])
    for part in _chunks(m, n * t):
        B = np.hstack([_cross(model, k, rows, part) for k in kernels])
        covariance[:, :, part] = -_between_terms(model._inverse.explained(B), t)
    for i in range(t):
        covariance[i, i] = nonnegative(covariance[i, i] + prior[i], prior[i], n)
    whole = _full(model, kernels, rows) if full else None
    offset = model.y_mean_[0] if model._single else model.y_mean_
    return Terms(
        names,
        kernels,
        model._in_units(mean),
        model._spread(covariance),
        offset,
        None if whole is None else model._spread(whole),
    )


def _full(model: GaussianProcessRegressor, kernels: Sequence[Kernel], rows: Rows) -> np.ndarray:
    t, m = len(kernels), len(rows)
    B = np.hstack([_cross(model, k, rows, slice(None)) for k in kernels])
    whole = -_whole(model._inverse.explained(B)).reshape(t, m, t, m).transpose(0, 2, 1, 3)
    for i, k in enumerate(kernels):
        whole[i, i] += Tiles(k, rows, _twin(rows), n_jobs=model.n_jobs).dense()
    return whole


def sample(
    model: GaussianProcessRegressor, X: Any, n_samples: int, random_state: Any, prior: bool, noise: Any
) -> np.ndarray:
    rng = check_random_state(random_state)
    fitted = hasattr(model, "alpha_")
    if fitted and not prior:
        mean, covariance = model.predict(X, return_cov=True, noise=noise)
        if model._single:
            return mean[:, None] + draw(covariance, n_samples, rng)
        parts = [mean[:, [j]] + draw(covariance[..., j], n_samples, rng) for j in range(mean.shape[1])]
        return np.stack(parts, axis=1)
    if fitted:
        rows = model._rows(model._check_rows(X, reset=False))
    else:  # nothing is learned from X, not even its columns
        rows = Rows(check_vectors(X).astype(np.float64, copy=False), "X", column_names(X))
    kernel = model._prior_kernel(rows.data)
    noisy = isinstance(noise, bool | np.bool_) and bool(noise)
    K = Tiles(kernel, rows, None if noisy else _twin(rows), n_jobs=model.n_jobs).dense()
    if not fitted:
        return draw(K, n_samples, rng)
    K = model._spread(K)
    if model._single:
        return model.y_mean_[0] + draw(K, n_samples, rng)
    return np.stack([m + draw(K[..., j], n_samples, rng) for j, m in enumerate(model.y_mean_)], axis=1)


def draw(covariance: np.ndarray, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Columns ~ N(0, covariance), by its eigenvalues; those that rounding made negative count as 0, others are refused."""
    values, vectors = linalg.eigh(covariance)
    floor = 100 * len(values) * EPS * max(float(np.abs(values).max()), float(np.finfo(float).tiny))
    if values[0] < -max(floor, 1e-8 * float(np.abs(values).max())):
        raise InputError(
            f"the covariance has an eigenvalue of {values[0]:.3g}, so no random function has it. Use a valid kernel."
        )
    return vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.standard_normal((len(values), count)))


def input_gradient(model: GaussianProcessRegressor, X: Any, return_var: bool) -> Any:
    check_is_fitted(model, "alpha_")
    gp_features.refuse(model, "gradients in the input")
    rows = model._rows(model._check_rows(X, reset=False))
    kernel = _kernel(model)
    between = Tiles(kernel, rows, model._fitted_rows, n_jobs=model.n_jobs)
    ones = np.ones((len(rows), 1))
    columns = [between.contract_inputs(ones, model._alpha[:, [j]])[0] for j in range(model._alpha.shape[1])]
    mean = model._in_units(np.stack(columns, axis=-1))
    if not return_var:
        return mean
    variance = np.empty((len(rows), np.shape(mean)[1]))
    for part in _chunks(len(rows), len(model.y_fit_)):
        some = _take(rows, part)
        W = model._inverse.solve(_cross(model, kernel, rows, part)).T
        explained, _ = Tiles(kernel, some, model._fitted_rows, n_jobs=model.n_jobs).contract_inputs(
            W=-2.0 * W
        )
        x_part, z_part = Tiles(kernel, some, _twin(some), n_jobs=model.n_jobs).contract_inputs(
            W=np.eye(len(some))
        )
        variance[part] = explained + x_part + (0.0 if z_part is None else z_part)
    return mean, model._spread(variance)


# ── shared ──────────────────────────────────────────────────────────────────────────────────────────────────


def _kernel(model: GaussianProcessRegressor) -> Kernel:
    if not isinstance(model.kernel_, Kernel):
        raise InputError("this needs the kernel at new rows, which a precomputed Gram matrix does not have.")
    return model.kernel_


def _twin(rows: Rows) -> Rows:
    """The same places as a second sample: observations of their own."""
    return Rows(rows.data, "Z", rows.names)


def _take(rows: Rows, part: slice) -> Rows:
    return rows.rows(np.arange(len(rows))[part])


def _cross(model: GaussianProcessRegressor, kernel: Kernel, rows: Rows, part: slice) -> np.ndarray:
    """k(X_fit, X) at some of the new rows, one column each."""
    some = rows if part == slice(None) else _take(rows, part)
    return Tiles(kernel, some, model._fitted_rows, n_jobs=model.n_jobs).dense().T


def _chunks(m: int, n: int) -> Iterator[slice]:
    step = max(1, CHUNK // (8 * max(1, n)))
    step = min(step, 2048)
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def _pointwise(explained: Explained) -> np.ndarray:
    return sum((s * np.einsum("nm,nm->m", P, Q) for P, Q, s in explained), start=np.zeros(1))


def _whole(explained: Explained) -> np.ndarray:
    return sum((s * (P.T @ Q) for P, Q, s in explained), start=np.zeros(1))


def _between_terms(explained: Explained, terms: int) -> np.ndarray:
    parts = [
        s * np.einsum("nim,njm->ijm", P.reshape(len(P), terms, -1), Q.reshape(len(Q), terms, -1))
        for P, Q, s in explained
    ]
    return np.sum(parts, axis=0)
