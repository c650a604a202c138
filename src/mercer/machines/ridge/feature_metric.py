"""The metric of a function: which directions of the rows it changes along, by its gradients at all of them.

For f(x) = Σ_j c_j k(s_j) with s_j = ‖u - u_j‖² / ℓ² in the coordinates u = x·R, R Rᵀ = M:

    ∇_u f(x_i) = 2/ℓ² Σ_j c_j k'(s_ij) (u_i - u_j) = 2/ℓ² [u_i (W1)_i - (WU)_i],      W_ij = c_j k'(s_ij)
    ∇_x f = R ∇_u f

so that all gradients are one product of an n×n matrix with n×(d + 1). Their average outer product is the
metric of the next round.
"""

from __future__ import annotations

import numpy as np

from mercer.blas import matmul
from mercer.kernels.leaves.families import Radial
from mercer.typing import Array

# Pairs nearer than this share of the longest row are the same point: the direction between them is rounding.
SAME_POINT = 1e-7
# Numbers in one panel of W.
PANEL = 4_000_000


def gradients(leaf: Radial, U: Array, coef: Array) -> Array:
    """∇_u f_t(x_i) for every row and every column t of the coefficients: n × t × columns of U.

    A pair at distance 0, where the slope of a kernel may be infinite, has no direction and adds nothing.
    """
    n, width = U.shape
    targets = coef.shape[1]
    length = float(leaf.lengthscale)  # type: ignore[arg-type]
    near = (SAME_POINT / length) ** 2 * float((U**2).sum(axis=1).max(initial=0.0))
    # [c_t u, c_t] side by side for all targets
    factors = (coef[:, :, None] * np.column_stack([U, np.ones(n)])[:, None, :]).reshape(n, -1)
    out = np.empty((n, targets, width))
    step = max(1, PANEL // n)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        s = leaf.squares(U[rows], U)
        with np.errstate(all="ignore"):
            W = np.where(s <= near, 0.0, leaf.slope(s))
        sums = matmul(W, factors).reshape(-1, targets, width + 1)
        out[rows] = U[rows, None, :] * sums[:, :, width:] - sums[:, :, :width]
    return np.asarray(2.0 / length**2 * out)


def average_outer_product(leaf: Radial, U: Array, root: Array, coef: Array, weight: Array) -> Array:
    """Σ_i w_i Σ_t ∇f_t(x_i) ∇f_t(x_i)ᵀ / Σ_i w_i by x, for rows U = X·root."""
    G = gradients(leaf, U, coef)
    flat = (np.sqrt(weight / weight.sum())[:, None, None] * G).reshape(-1, U.shape[1])
    inner = matmul(flat.T, flat)
    found = root @ inner @ root.T
    return np.asarray((found + found.T) / 2)


def shaped(M: Array, form: str, exponent: float, rank: int | None, spread: Array) -> Array | None:
    """R with R Rᵀ the metric of an average outer product: M to a power, full or its diagonal, of some rank.

    It is scaled so that rows are as far from one another as without a metric, Σ_ij M_ij C_ij = tr C for the
    covariance C of the rows: what is left for the lengthscale is the same in every round. None where no
    direction is left.
    """
    if form == "diagonal":
        values = np.maximum(np.diagonal(M), 0.0)
        vectors = np.eye(len(M))
    else:
        values, vectors = np.linalg.eigh(M)
        values = np.maximum(values, 0.0)
    if rank is not None and rank < len(M):
        kept = np.sort(np.argsort(values, kind="stable")[-rank:])
        values = values[kept]
        vectors = vectors[:, kept]
    top = float(values.max(initial=0.0))
    if not top > 0:
        return None
    stretched = (values / top) ** (exponent / 2)
    root = vectors * stretched
    if rank is None or rank >= len(M):
        root = root @ vectors.T
    size = float(np.einsum("ir,ij,jr->", root, spread, root))
    if not size > 0:
        return None
    return np.asarray(root * np.sqrt(float(np.trace(spread)) / size))
