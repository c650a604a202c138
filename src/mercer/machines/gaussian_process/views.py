"""What can be read off a fitted Gaussian process: bands, each term, samples, gradients in the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.gram import Tiles
from mercer.kernels.base import Kernel
from mercer.kernels.terms import latent_diag, latent_terms
from mercer.machines.gaussian_process import features as gp_features
from mercer.machines.gaussian_process.inverses import Explained, InFeatures, nonnegative
from mercer.machines.gaussian_process.posterior import Posterior, Units
from mercer.typing import Array

CHUNK = 64 << 20  # bytes of k(X_fit, X) at one time
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Terms:
    """The posterior of every term of a sum of kernels, f = f₁ + f₂ + …, at m rows.

    `mean` is terms × m; `covariance` is terms × terms × m: the posterior covariance of term i and term j at
    each row. Terms are correlated, because the data only speak of their sum: it is the sum over i and j
    that is the variance of f, and `offset` plus the sum over i of the means that is its mean. `full`, if
    asked for, is terms × terms × m × m. With several targets every array has a last axis for them.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    mean: Array
    covariance: Array
    offset: Array | float
    full: Array | None = None

    @property
    def std(self) -> Array:
        """The standard deviation of every term."""
        return np.asarray(np.sqrt(np.einsum("ii...->i...", self.covariance)))

    @property
    def total_mean(self) -> Array:
        return np.asarray(self.offset + self.mean.sum(axis=0))

    @property
    def total_std(self) -> Array:
        return np.asarray(np.sqrt(np.maximum(self.covariance.sum(axis=(0, 1)), 0.0)))

    def shares(self, y: Array) -> Array:
        """The share of each term in the variance of targets y at the same rows; last, what is left.

        The variance of a term is that of its mean over the rows, the variance of what is left that of y less
        the mean of f; the whole is the sum of them, so that shares add up to 1. Equal rows without any
        variance have no shares but that of what is left.
        """
        left = np.asarray(y, dtype=np.float64) - self.total_mean
        variances = np.array([*np.var(self.mean, axis=1), np.var(left, axis=0)])
        total = variances.sum(axis=0)
        nothing = np.zeros_like(variances)
        nothing[-1] = 1.0
        return np.where(total > 0, variances / np.where(total > 0, total, 1.0), nothing)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, Array, Array]]:
        """(name, mean, standard deviation) of every term."""
        return iter(zip(self.names, self.mean, self.std, strict=True))


def latent_variance(posterior: Posterior, rows: Rows) -> Array:
    """var f at new rows: the prior variance less what the data explain, never negative."""
    out = np.empty(len(rows))
    if isinstance(posterior.inverse, InFeatures):
        for part in _chunks(len(rows), len(posterior.inverse.lower)):
            out[part] = gp_features.variance(posterior, posterior.inverse, _take(rows, part))
        return out
    prior = latent_diag(posterior.kernel, rows)
    for part in _chunks(len(rows), posterior.n):
        across = posterior.cross(posterior.kernel, _take(rows, part))
        out[part] = prior[part] - _pointwise(posterior.inverse.explained(across))
    return nonnegative(out, prior, posterior.n)


def latent_covariance(posterior: Posterior, rows: Rows) -> Array:
    """The covariance matrix of f at new rows, exactly symmetric, its diagonal never negative."""
    if isinstance(posterior.inverse, InFeatures):
        return gp_features.covariance(posterior, posterior.inverse, rows)
    kernel = posterior.kernel
    prior = Tiles(kernel, rows, _twin(rows), n_jobs=posterior.n_jobs).dense()
    out = prior - _whole(posterior.inverse.explained(posterior.cross(kernel, rows)))
    out = 0.5 * (out + out.T)
    out[np.diag_indices_from(out)] = nonnegative(out.diagonal(), prior.diagonal(), posterior.n)
    return out


def decompose(posterior: Posterior, rows: Rows, names: Sequence[str] | None, full: bool) -> Terms:
    """Mean and band of every term of a sum of kernels at new rows."""
    gp_features.refuse(posterior, "the terms of the kernel")
    kernels = latent_terms(posterior.kernel)
    if not kernels:
        raise InputError(f"{posterior.kernel} is noise alone: there is no function to take apart.")
    names = tuple(str(k) for k in kernels) if names is None else tuple(names)
    if len(names) != len(kernels):
        raise ParameterError(
            f"{len(kernels)} terms need as many names, in the order of the kernel; got {len(names)}: {names}."
        )
    t = len(kernels)
    m = len(rows)
    mean = np.array([posterior.times_alpha(k, rows) for k in kernels])
    covariance = np.empty((t, t, m))
    prior = np.array([latent_diag(k, rows) for k in kernels])
    for part in _chunks(m, posterior.n * t):
        B = np.hstack([posterior.cross(k, _take(rows, part)) for k in kernels])
        covariance[:, :, part] = -_between_terms(posterior.inverse.explained(B), t)
    for i in range(t):
        covariance[i, i] = nonnegative(covariance[i, i] + prior[i], prior[i], posterior.n)
    units = posterior.units
    whole = units.squares(_full(posterior, kernels, rows)) if full else None
    return Terms(names, kernels, units.values(mean), units.squares(covariance), units.offset, whole)


def _full(posterior: Posterior, kernels: Sequence[Kernel], rows: Rows) -> Array:
    t = len(kernels)
    m = len(rows)
    B = np.hstack([posterior.cross(k, rows) for k in kernels])
    whole = -_whole(posterior.inverse.explained(B)).reshape(t, m, t, m).transpose(0, 2, 1, 3)
    for i, k in enumerate(kernels):
        whole[i, i] += Tiles(k, rows, _twin(rows), n_jobs=posterior.n_jobs).dense()
    return whole


def sample_posterior(
    mean: Array, covariance: Array, n_samples: int, rng: np.random.RandomState, single: bool
) -> Array:
    """Random functions about the mean, one per column; rows × targets × samples for several targets."""
    if single:
        return mean[:, None] + draw(covariance, n_samples, rng)
    parts = [mean[:, [j]] + draw(covariance[..., j], n_samples, rng) for j in range(mean.shape[1])]
    return np.stack(parts, axis=1)


def sample_prior(
    kernel: Kernel,
    rows: Rows,
    n_samples: int,
    rng: np.random.RandomState,
    *,
    noisy: bool,
    units: Units | None,
    n_jobs: int | None,
) -> Array:
    """Random functions of the prior; in units of y where these are known."""
    K = Tiles(kernel, rows, None if noisy else _twin(rows), n_jobs=n_jobs).dense()
    if units is None:
        return draw(K, n_samples, rng)
    K = units.squares(K)
    if units.single:
        return units.offset + draw(K, n_samples, rng)
    return np.stack([m + draw(K[..., j], n_samples, rng) for j, m in enumerate(units.mean)], axis=1)


def draw(covariance: Array, count: int, rng: np.random.RandomState) -> Array:
    """Columns ~ N(0, covariance), by its eigenvalues.

    Those that rounding made negative count as 0, others are refused.
    """
    values, vectors = linalg.eigh(covariance)
    floor = 100 * len(values) * EPS * max(float(np.abs(values).max()), float(np.finfo(float).tiny))
    if values[0] < -max(floor, 1e-8 * float(np.abs(values).max())):
        raise InputError(
            f"the covariance has an eigenvalue of {values[0]:.3g}, so no random function has it. Use a "
            "valid kernel."
        )
    return np.asarray(
        vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * rng.standard_normal((len(values), count)))
    )


def input_gradient(posterior: Posterior, rows: Rows, return_var: bool) -> Array | tuple[Array, Array]:
    """∂mean/∂x at new rows; with `return_var` also that of the variance of f."""
    gp_features.refuse(posterior, "gradients in the input")
    kernel = posterior.kernel
    n_jobs = posterior.n_jobs
    between = Tiles(kernel, rows, posterior.rows, n_jobs=n_jobs)
    ones = np.ones((len(rows), 1))
    alpha = posterior.alpha
    columns = [between.contract_inputs(ones, alpha[:, [j]])[0] for j in range(alpha.shape[1])]
    mean = posterior.units.values(np.stack(columns, axis=-1))
    if not return_var:
        return mean
    variance = np.empty((len(rows), np.shape(mean)[1]))
    for part in _chunks(len(rows), posterior.n):
        some = _take(rows, part)
        W = posterior.inverse.solve(posterior.cross(kernel, some)).T
        explained, _ = Tiles(kernel, some, posterior.rows, n_jobs=n_jobs).contract_inputs(W=-2.0 * W)
        own = Tiles(kernel, some, _twin(some), n_jobs=n_jobs)
        x_part, z_part = own.contract_inputs(W=np.eye(len(some)))
        variance[part] = explained + x_part + (0.0 if z_part is None else z_part)
    return mean, posterior.units.squares(variance)


# ── shared ──────────────────────────────────────────────────────────────────────────────────────────────────


def _twin(rows: Rows) -> Rows:
    """The same places as a second sample: observations of their own."""
    return Rows(rows.data, "Z", rows.names)


def _take(rows: Rows, part: slice) -> Rows:
    if part == slice(0, len(rows)):
        # these very rows, which may have been read before
        return rows
    return rows.rows(np.arange(len(rows))[part])


def _chunks(m: int, n: int) -> Iterator[slice]:
    step = max(1, CHUNK // (8 * max(1, n)))
    step = min(step, 2048)
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def _pointwise(explained: Explained) -> Array:
    return sum((s * np.einsum("nm,nm->m", P, Q) for P, Q, s in explained), start=np.zeros(1))


def _whole(explained: Explained) -> Array:
    return sum((s * (P.T @ Q) for P, Q, s in explained), start=np.zeros(1))


def _between_terms(explained: Explained, terms: int) -> Array:
    parts = [
        s * np.einsum("nim,njm->ijm", P.reshape(len(P), terms, -1), Q.reshape(len(Q), terms, -1))
        for P, Q, s in explained
    ]
    return np.asarray(np.sum(parts, axis=0))
