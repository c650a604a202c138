"""The posterior mean as a smoother: what leaving a row out of it, or adding one, needs; no other factor.

c = (K + N)⁻¹(y - m) in units of y; G, v and s are those of the model, where scales of y cancel. The
hyperparameters are those of all rows.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.gram.on_rows import Approximated, Evaluated, Given
from mercer.kernels.terms import latent_diag, noise_of
from mercer.machines.gaussian_process.inverses import InFeatures
from mercer.machines.gaussian_process.loo import inverse_itself
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.machines.gaussian_process.targets import new_noise
from mercer.solve.left_out import NewRows, Smoother, variance_left
from mercer.sparse import Matrix
from mercer.typing import Array


def process_smoother(posterior: Posterior, diagonal: Array | None = None) -> Smoother:
    """The mean of a posterior of one target as a smoother; `diagonal` is that of (K + N)⁻¹, if known."""
    inverse = inverse_itself(posterior, "leaving rows out")
    if posterior.Y.shape[1] != 1:
        raise InputError(
            f"the model was fitted to {posterior.Y.shape[1]} targets; leaving rows out is for one. "
            "Fit one model for each."
        )
    if posterior.noise_in_y is not None and posterior.units.scaled:
        raise InputError(
            "noise= is in units of y and normalize_y=True scales y by its own deviation, so that each row "
            "left out changes the whole system. Use normalize_y='mean' or False, or put the noise into the "
            "kernel."
        )
    scale = float(posterior.units.scale[0])
    mean = float(posterior.units.mean[0])
    G = inverse.inverse_diag() if diagonal is None else diagonal
    constant = None
    if posterior.units.centred:
        constant = inverse.solve(np.ones((posterior.n, 1)))[:, 0]

    def at(A: Matrix, spread: bool) -> NewRows:
        return _at(posterior, A, spread)

    return Smoother(
        posterior.Y[:, 0] * scale + mean,
        posterior.alpha[:, 0] * scale,
        np.asarray(G),
        _noise_of_fit(posterior),
        np.arange(posterior.n),
        at,
        constant,
    )


def _noise_of_fit(posterior: Posterior) -> Array:
    """N of every row of the fit, in units of the model."""
    given = np.broadcast_to(np.asarray(posterior.noise, dtype=np.float64), posterior.n).copy()
    on = posterior.on
    if isinstance(on, Approximated):
        return given + on.approximation.noise_
    if isinstance(on, Given):
        return given
    white = noise_of(posterior.kernel, posterior.rows)
    return given if white is None else given + white


def _at(posterior: Posterior, A: Matrix, spread: bool) -> NewRows:
    """Mean, weights, and if asked the variance of a new observation, at new rows."""
    on = posterior.on
    k = np.asarray(on.between(A).dense(), dtype=np.float64)
    v = np.asarray(posterior.inverse.solve(k.T)).T
    units = posterior.units
    mean = (k @ posterior.alpha)[:, 0] * units.scale[0] + units.mean[0]
    if not spread:
        return NewRows(mean, v)
    if isinstance(on, Given):
        raise InputError("a precomputed block does not hold k(x, x) of the new rows. Pass the kernel itself.")
    if isinstance(on, Approximated):
        # that of the features alone, which are all that the smoother is made of
        assert isinstance(posterior.inverse, InFeatures)
        noise = new_noise(posterior, True, Rows(A, "X", on.rows.names))
        half = posterior.inverse.spread(on.features(A))
        return NewRows(mean, v, np.einsum("rn,rn->n", half, half) + noise, noise)
    assert isinstance(on, Evaluated)
    rows = on.new_rows(A)
    noise = new_noise(posterior, True, rows)
    own = latent_diag(posterior.kernel, rows) + noise
    return NewRows(mean, v, variance_left(own, np.einsum("ij,ij->i", k, v)), noise)
