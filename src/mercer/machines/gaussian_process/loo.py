"""Leave-one-out of a Gaussian process without refits, also where each row took part in standardising y.

    P_i(v) = v_i - (A⁻¹v)_i / A⁻¹_ii           what the other rows say of v_i: it does not depend on v_i
    mean   = m + P_i(y - m) + (m_i - m) (A⁻¹1)_i / A⁻¹_ii        m_i the mean without row i
    std    = s_i / √A⁻¹_ii                                     s_i the scale without row i

A noise given in units of y is N/s_i² in units of the model, so that A changes with the row: A(τ) = A(τ₀) +
(τ - τ₀)N. With A(τ₀) = LLᵀ and L⁻¹NL⁻ᵀ = QMQᵀ one decomposition serves all rows: A(τ)⁻¹ = G (1 + (τ -
τ₀)M)⁻¹ Gᵀ, G = L⁻ᵀQ.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, solve_triangular

from mercer.errors import InputError
from mercer.gram.on_rows import Approximated
from mercer.machines.gaussian_process.evidence import loo_moments
from mercer.machines.gaussian_process.features import left_out_of_fit
from mercer.machines.gaussian_process.inverses import Exact, InFeatures
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.machines.gaussian_process.targets import deviation
from mercer.typing import Array

CANCELLED = 1e-4  # of a sum of squares: where one row leaves less, the others are summed again


def inverse_itself(posterior: Posterior, what: str) -> Exact | InFeatures:
    """(K + N)⁻¹ of a fit that has it, and the rows it belongs to; `what` says who needs it."""
    inverse = posterior.inverse
    if not isinstance(inverse, Exact | InFeatures):
        raise InputError(f"{what} needs the inverse itself; fit with solver='cholesky'.")
    if not posterior.n:
        raise InputError(
            f"{what} needs the rows of the fit, and this model was saved without them (compact=True). "
            "Save it with compact=False, or fit it again."
        )
    return inverse


def leave_one_out(posterior: Posterior) -> tuple[Array, Array]:
    """Mean and standard deviation of every observation given all others, n × targets, in units of y.

    Whether the targets were centred and scaled by their own mean and deviation decides what each row took
    part in.
    """
    inverse = inverse_itself(posterior, "leave-one-out")
    Y = posterior.Y
    scale = posterior.units.scale
    shift, ratio = _with_all(Y)
    if posterior.units.centred:
        shift, ratio = _without_each(Y, posterior.units.scaled)
        ratio = np.where(ratio > 0, ratio, 1.0 / scale)
    if posterior.noise_in_y is not None and posterior.units.scaled:
        noise = np.broadcast_to(np.asarray(posterior.noise_in_y, dtype=np.float64), len(Y))
        part, constant, variance = _moments_by_row(noise, inverse, Y, ratio[:, 0])
    else:
        diagonal = inverse.inverse_diag()
        part, variance = loo_moments(diagonal, Y, posterior.alpha)
        constant = inverse.solve(np.ones((len(Y), 1))) / diagonal[:, None]
    if isinstance(posterior.on, Approximated):
        # what the features leave out of the prior is unknown of every row, as in predict
        variance = variance + left_out_of_fit(posterior.on)
    mean = posterior.units.mean + (part + shift * constant) * scale
    return mean, ratio * scale * np.sqrt(variance)[:, None]


def _with_all(Y: Array) -> tuple[Array, Array]:
    """Mean and scale that no row takes part in: no shift, ratio 1."""
    return np.zeros_like(Y), np.ones_like(Y)


def _without_each(Y: Array, scaled: bool) -> tuple[Array, Array]:
    """The mean of the targets without each row, and their standard deviation (1 if not `scaled`).

    Y is in units of the model: its own mean is 0 and its own scale 1.

    >>> _without_each(np.array([[-1.0], [0.0], [1.0]]), True)[0][:, 0]
    array([ 0.5,  0. , -0.5])
    """
    n = len(Y)
    if n == 1:
        return _with_all(Y)
    mean = (Y.sum(axis=0) - Y) / (n - 1)
    if not scaled:
        return mean, np.ones_like(Y)
    centre = Y.mean(axis=0)
    total = ((Y - centre) ** 2).sum(axis=0)
    left = total - (Y - centre) ** 2 * n / (n - 1)
    ratio = np.sqrt(np.maximum(left, 0.0) / (n - 1))
    for row, column in np.argwhere(left <= CANCELLED * total):
        others = np.delete(Y[:, column], row)
        mean[row, column] = others.mean()
        ratio[row, column] = deviation(others)
    return mean, ratio


def _moments_by_row(
    given: Array, inverse: Exact | InFeatures, Y: Array, ratio: Array
) -> tuple[Array, Array, Array]:
    """P_i(y), (A⁻¹1)_i / A⁻¹_ii and 1 / A⁻¹_ii, the noise in the units of the targets without row i."""
    B = np.column_stack([Y, np.ones(len(Y))])
    grown = 1.0 / ratio**2 - 1.0
    if isinstance(inverse, InFeatures):
        solved, diagonal = _rows_in_features(inverse, given, grown, B)
    else:
        solved, diagonal = _rows_of_inverses(inverse, given, grown, B)
    share = solved / diagonal[:, None]
    return Y - share[:, :-1], share[:, -1:], 1.0 / diagonal


def _rows_of_inverses(inverse: Exact, given: Array, grown: Array, B: Array) -> tuple[Array, Array]:
    """Row i of (A + grown_i·N)⁻¹B, and entry (i, i) of that inverse, for every i."""
    lower = inverse.factor.lower
    half = solve_triangular(lower, np.diag(np.sqrt(given)), lower=True, check_finite=False)
    M, Q = eigh(half @ half.T)
    G = solve_triangular(lower, Q, lower=True, trans="T", check_finite=False)
    weights = G / (1.0 + grown[:, None] * np.maximum(M, 0.0))
    return weights @ (G.T @ B), np.einsum("ik,ik->i", weights, G)


def _rows_in_features(inverse: InFeatures, given: Array, grown: Array, B: Array) -> tuple[Array, Array]:
    """The same with features; one small system for each row, n² × features² in all."""
    solved, diagonal = np.empty_like(B), np.empty(len(B))
    for i, more in enumerate(grown):
        other = InFeatures.of(inverse.phi, inverse.noise + more * given)
        solved[i] = other.solve(B)[i]
        inside = float(np.square(other.spread(inverse.phi[i : i + 1])).sum())
        diagonal[i] = (1.0 - inside / other.noise[i]) / other.noise[i]
    return solved, diagonal
