"""The relaxed clustering problem: its eigenvectors as a start, its eigenvalues as a bound."""

from __future__ import annotations

import numpy as np
from scipy.linalg import polar, qr

from mercer.gram import GramOperator
from mercer.gram.blocks import Index
from mercer.solve.eigen import top_eigenpairs
from mercer.typing import Array, Integers


class Weighted(GramOperator):
    """W^½ K W^½."""

    kind = "weighted"

    def __init__(self, inner: GramOperator, w: Array) -> None:
        self.inner = inner
        self.root = np.sqrt(w).astype(inner.dtype)
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: Array) -> Array:
        return self.root[:, None] * self.inner._matmat(np.ascontiguousarray(self.root[:, None] * V))

    def diag(self) -> Array:
        return self.root**2 * self.inner.diag()

    def block(self, rows: Index, cols: Index) -> Array:
        root = self.root
        return np.asarray(root[rows][:, None] * self.inner.block(rows, cols) * root[cols])

    def low_rank_factor(self) -> Array | None:
        F = self.inner.low_rank_factor()
        return None if F is None else self.root[:, None] * F

    def _transpose(self) -> Weighted:
        return self


def spectral_start(
    K: GramOperator, w: Array, diagonal: Array, k: int, rng: np.random.RandomState
) -> tuple[Integers, float, list[str]]:
    """Labels from the k leading eigenvectors of W^½KW^½, and a lower bound on every clustering's inertia.

    inertia = tr(W^½KW^½) - tr(YᵀW^½KW^½Y) for an orthonormal Y, so at least tr - λ₁ - … - λ_k; each λ
    counts with its residual, so that the bound does not rest on convergence to the last digit.
    """
    found = top_eigenpairs(Weighted(K, w), k, tol=1e-6, random_state=int(rng.randint(2**31 - 1)))
    values, vectors = found.value
    Y = vectors / np.sqrt(np.where(w > 0, w, 1.0))[:, None]
    labels = _by_pivots(Y)
    residuals = np.array(found.certificate.residuals or ())
    bound = max(float(w @ diagonal) - float((values + residuals).sum()), 0.0)
    notes = [] if found.certificate.converged else [f"the spectral start: {found.certificate}"]
    return labels, bound, notes


def _by_pivots(Y: Array) -> Integers:
    """Labels from rows that lie near k orthogonal rays: pivoted QR finds one row of each ray, and the
    rotation nearest to these rows turns the rays into axes (Damle, Minden and Ying). Nothing in it is
    random.
    """
    k = Y.shape[1]
    pivots = qr(Y.T, mode="r", pivoting=True)[1][:k]
    rotation = polar(Y[pivots])[0]
    return np.asarray(np.argmax(np.abs(Y @ rotation.T), axis=1))
