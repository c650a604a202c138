"""What families see of two samples: squared distances, dot products, norms; of dense and of sparse rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.samples import optional
from mercer.sparse import Matrix, dense, stored_columns
from mercer.typing import Array

# A larger s is cut to this: every radial kernel is at its limit there, and inf would give 0·inf.
_FARTHEST = 1e300


def squared_distances(X: Matrix, Z: Matrix | None, weights: Array | np.float64 | float) -> Array:
    """Σ_d w_d (x_d - z_d)² by differences, never by expanding the square: large offsets do not cancel.

    `weights` is one number for all columns, or an array with one for each.
    """
    same = bool(np.all(weights == np.ravel(weights)[0]))
    with np.errstate(over="ignore"):
        if sparse.issparse(X) or sparse.issparse(Z):
            s = _sparse_squared_distances(sparse.csr_array(X), optional(sparse.csr_array, Z), weights)
        else:
            A = X.astype(np.float64, copy=False)
            B = A if Z is None else Z.astype(np.float64, copy=False)
            if same:
                s = cdist(A, B, "sqeuclidean") * np.ravel(weights)[0]
            else:
                s = cdist(A, B, "sqeuclidean", w=weights)
    return np.minimum(s, _FARTHEST, out=s)


def distances_in_units(X: Matrix, Z: Matrix | None, length: Array) -> Array:
    """Σ ((x_d - z_d) / ℓ_d)² for an ℓ whose square is no number: differences divided column by column."""
    X, Z, columns = stored_columns(X, Z)
    A = dense(X).astype(np.float64, copy=False)
    B = A if Z is None else dense(Z).astype(np.float64, copy=False)
    s = np.zeros((len(A), len(B)))
    with np.errstate(over="ignore"):
        for j, unit in enumerate(length if columns is None else length[columns]):
            s += ((A[:, None, j] - B[None, :, j]) / unit) ** 2
    return np.minimum(s, _FARTHEST, out=s)


def _sparse_squared_distances(X: Matrix, Z: Matrix | None, weights: Array | np.float64 | float) -> Array:
    """‖x‖² + ‖z‖² - 2 x·z on sparse rows, with every pair that cancels done again by differences."""
    X, Z, columns = stored_columns(X, Z)
    if columns is not None and isinstance(weights, np.ndarray):
        weights = weights[columns]
    weights = np.broadcast_to(weights, X.shape[1])
    A = X.astype(np.float64)
    B = A if Z is None else Z.astype(np.float64)
    a = A.multiply(A) @ weights
    b = B.multiply(B) @ weights
    total = a[:, None] + b[None, :]
    with np.errstate(invalid="ignore"):
        s = total - 2 * (A.multiply(weights[None, :]).tocsr() @ B.T).toarray()
    # Written so that NaN from inf - inf is done again too.
    rows, columns = np.nonzero(~(s > 1e-4 * total))
    for start in range(0, len(rows), 4096):
        i = rows[start : start + 4096]
        j = columns[start : start + 4096]
        difference = A[i] - B[j]
        s[i, j] = difference.multiply(difference) @ weights
    if Z is None:
        s = np.triu(s, 1)
        s += s.T
    return np.asarray(s)


def dot_products(X: Matrix, Z: Matrix | None) -> Array:
    """x · z for every pair of rows."""
    X, Z, _ = stored_columns(X, Z)
    A = X.astype(np.float64, copy=False)
    B = A if Z is None else Z.astype(np.float64, copy=False)
    out = A @ B.T
    return np.asarray(out.toarray() if sparse.issparse(out) else out)


def squared_norms(X: Matrix) -> Array:
    """‖x‖² for every row."""
    A = X.astype(np.float64, copy=False)
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", A, A))
