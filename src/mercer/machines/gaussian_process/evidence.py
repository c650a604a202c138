"""How probable the targets are under a Gaussian process, and the gradient in every hyperparameter.

    evidence        log p(y | X, θ) = -½ yᵀα - ½ log det A - ½ n log 2π          A = K + noise,  α = A⁻¹y
    gradient        ½ Σ_ij W_ij ∂K_ij/∂θ                                           W = ααᵀ - A⁻¹
    leave-one-out   Σ_i log p(y_i | the other rows)        mean y_i - α_i / A⁻¹_ii,  variance 1 / A⁻¹_ii

One n×n buffer is the Gram matrix, then its factor, then its inverse, then W: LAPACK's dpotrf and dpotri,
BLAS's dsyrk in place, and a single contraction by the engine, whatever the number of hyperparameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mercer import clock, lapack
from mercer.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.gram import GramOperator
from mercer.gram.of_kernel import Dense, OfKernel, Tiles
from mercer.gram.operators import Precomputed
from mercer.panels import whole_from_lower
from mercer.solve.diagnosis import not_positive_definite
from mercer.solve.direct import Cholesky
from mercer.typing import Array, Flags

BLOCK = 64  # rows zeroed at a time
INVERTED = 2.5  # factors that the inverse and a contraction cost
SEARCHED = 1000  # rows looked at for a derivative that is no number
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Evidence:
    """A log-likelihood of the targets, its gradient in θ (None if not asked) and the weights α.

    α has one column for each target. `noise` is the derivative in a noise common to all rows; only
    `log_evidence` with a gradient has it. `height` is the factor of the covariance, where it was asked for.
    """

    value: float
    gradient: Array | None
    alpha: Array
    noise: float | None = None
    height: float = 1.0


def factor_gram(K: GramOperator, noise: Array | float = 0.0, *, diagnose: bool = True) -> Cholesky:
    """A = K + noise = L Lᵀ, in place of a Gram matrix made for it; nothing but `noise` is added.

    Where A is not positive definite the error says at which row, which rows look alike and what diagonal
    would do; with `diagnose=False` it says the row only, which costs nothing.
    """
    A = np.require(K.dense(), np.float64, ["C", "W"])
    if isinstance(K, Dense | Precomputed) and A is K.array:
        A = A.copy()
    diagonal = np.einsum("ii->i", A)
    diagonal += noise
    lower, info = lapack.potrf(A.T, overwrite_a=True)  # the upper triangle in C order is Fortran's lower
    if info == 0 and np.isfinite(lower.diagonal()).all():
        return Cholesky(lower, 0.0)
    if not np.isfinite(lower[info - 1, :info] if info else lower.diagonal()).all():
        raise NotFiniteError(
            "The Gram matrix contains NaN or infinity, found while it was factored. "
            "Look for a kernel that overflows on this data, or parameters that make it do so."
        )
    if diagnose:
        raise not_positive_definite(K.shifted(noise), 0.0, info - 1, A.dtype)
    raise NotPositiveDefiniteError(f"Not positive definite at row {info - 1}.", pivot=info - 1)


def log_evidence(
    K: GramOperator,
    Y: Array,
    noise: Array | float = 0.0,
    *,
    gradient: bool = True,
    diagnose: bool = True,
    best_height: bool = False,
) -> Evidence:
    """The log marginal likelihood of the columns of Y, summed, all with covariance K + noise.

    With `best_height` the covariance is s (K + noise), where s = yᵀ(K + noise)⁻¹y / n makes it largest.

    >>> from mercer import RBF, White
    >>> K = (RBF(1.0) + White(1.0)).gram([[0.0], [5.0]])      # nearly 2·I
    >>> round(log_evidence(K, np.zeros((2, 1))).value, 4), round(float(-np.log(2 * np.pi * 2)), 4)
    (-2.531, -2.531)

    Where the seconds left are too few for it there is no gradient.
    """
    began = clock.now()
    factor = factor_gram(K, noise, diagnose=diagnose)
    alpha = factor.solve(Y)
    targets = Y.shape[1]
    height = 1.0
    if best_height:
        height = float(np.vdot(Y, alpha)) / Y.size or 1.0
    value = evidence_at(factor, Y, alpha / height) - 0.5 * Y.size * float(np.log(height))
    if not gradient or clock.short_of(INVERTED * (clock.now() - began)):
        return Evidence(value, None, alpha, height=height)
    inverse = _inverse(factor)
    W = lapack.syrk(1.0 / height, np.asfortranarray(alpha), beta=-float(targets), C=inverse)
    noise_slope = 0.5 * float(W.diagonal().sum())
    return Evidence(value, gradient_of(K, W=_half(W)), alpha, noise_slope, height)


def evidence_at(factor: Cholesky, Y: Array, alpha: Array) -> float:
    """The log marginal likelihood of the columns of Y, summed, from a factor of A and α = A⁻¹Y."""
    n, targets = Y.shape
    logdet = float(factor.logdet())
    fitted = float(np.vdot(Y, alpha))
    return -0.5 * (fitted + int(targets) * (logdet + float(n * LOG_2PI)))


def loo_moments(inverse_diag: Array, Y: Array, alpha: Array) -> tuple[Array, Array]:
    """Mean (n × targets) and variance (n) of each observation, given all the others."""
    return Y - alpha / inverse_diag[:, None], 1.0 / inverse_diag


def log_loo(
    K: GramOperator, Y: Array, noise: Array | float = 0.0, *, gradient: bool = True, diagnose: bool = True
) -> Evidence:
    """The leave-one-out log predictive likelihood of the columns of Y, summed; no refit is needed.

    Its gradient has W = ½(cαᵀ + αcᵀ) - A⁻¹ diag(b) A⁻¹ with c = A⁻¹(α / A⁻¹_ii) and b_i = ½(1 + α_i² /
    A⁻¹_ii) / A⁻¹_ii: one more n×n array, because the inverse is needed beside W.

    >>> from mercer import White
    >>> round(log_loo(White(1.0).gram([[0.0], [5.0]]), np.zeros((2, 1))).value, 4)
    -1.8379

    Where the seconds left are too few for it there is no gradient.
    """
    began = clock.now()
    factor = factor_gram(K, noise, diagnose=diagnose)
    alpha = factor.solve(Y)
    diag = factor.inverse_diag() if not gradient else None
    inverse = whole_from_lower(_inverse(factor)) if gradient else None
    if inverse is not None:
        diag = inverse.diagonal().copy()
    assert diag is not None
    targets = Y.shape[1]
    value = 0.5 * float(targets * np.log(diag).sum() - (alpha**2 / diag[:, None]).sum() - Y.size * LOG_2PI)
    if inverse is None or clock.short_of(clock.now() - began):
        return Evidence(value, None, alpha)
    b = 0.5 * (targets + (alpha**2).sum(axis=1) / diag) / diag
    c = inverse @ (alpha / diag[:, None])
    W = lapack.syrk(-1.0, np.asfortranarray(inverse * np.sqrt(b)))
    for column in range(targets):
        W += 0.5 * (np.outer(c[:, column], alpha[:, column]) + np.outer(alpha[:, column], c[:, column]))
    return Evidence(value, 2.0 * gradient_of(K, W=_half(W)), alpha)


def gradient_of(
    K: GramOperator, U: Array | None = None, V: Array | None = None, *, W: Array | None = None
) -> Array:
    """`K.contract(U, V, W=W)`; a derivative that is no number is an error of its own.

    The error names the parameter and the row. The matrix and its factor are finite then: it is the derivative
    that fails, so no noise would help.
    """
    gradient = K.contract(U, V, W=W)
    if np.isfinite(gradient).all():
        return gradient
    weights = [w for w in (U, V, W) if w is not None]
    if not all(np.isfinite(w).all() for w in weights):
        raise NotFiniteError(
            "The inverse of the Gram matrix overflows: the kernel is too large or too small for float64."
        )
    if not isinstance(K, OfKernel):
        raise NotFiniteError("The derivative of the Gram matrix in a hyperparameter is NaN or infinite.")
    free = [p for p in K.kernel.parameters if p.free]
    bad = [f"{p.name} = {p.value:g}" for p, g in zip(free, gradient, strict=True) if not np.isfinite(g)]
    raise NotFiniteError(
        f"The derivative of the Gram matrix of {K.kernel} in {', '.join(bad)} is NaN or infinite"
        f"{_first_pair(K)}, although its values are finite. Fix that parameter with kernel.fix(…), pass "
        "optimizer=None, or correct the kernel's derivative there."
    )


def _first_pair(K: OfKernel) -> str:
    """The first pair of rows whose own derivative is not finite, in words; nothing if only sums are not."""
    n = len(K.x)
    for i in range(min(n, SEARCHED)):
        one = K.x.rows(np.array([i]))
        if np.isfinite(Tiles(K.kernel, one, K.x).contract(np.ones((1, 1)), np.ones((n, 1)))).all():
            continue
        for j in range(n):
            pair = Tiles(K.kernel, one, K.x.rows(np.array([j])))
            if not np.isfinite(pair.contract(np.ones((1, 1)), np.ones((1, 1)))).all():
                return f" at rows {i} and {j}"
    return ""


def _inverse(factor: Cholesky) -> Array:
    """A⁻¹ in place of L, in the lower triangle of a Fortran array; above it is rubbish."""
    inverse, _ = lapack.potri(factor.lower, overwrite_c=True)
    return inverse


@lru_cache(maxsize=BLOCK)
def _below_diagonal(n: int) -> Flags:
    return np.tri(n, k=-1, dtype=bool)


def _half(W: Array) -> Array:
    """Half of a symmetric W given by its Fortran lower triangle.

    It is that triangle in C order, its diagonal halved, else 0. ∂K is symmetric, so contracting with it is
    contracting with ½W, and the mirror image need not be written.
    """
    half = W.T
    for start in range(0, len(half), BLOCK):
        rows = slice(start, start + BLOCK)
        half[rows, :start] = 0.0
        square = half[rows, rows]
        np.copyto(square, 0.0, where=_below_diagonal(len(square)))
    diagonal = np.einsum("ii->i", half)
    diagonal *= 0.5
    return half
