"""A Gram operator by explicit features that are kept: K = ΦΦᵀ, where Φ takes less than K."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mercer.gram.blocks import Index
from mercer.gram.core import Arguments
from mercer.gram.of_kernel import Tiles
from mercer.gram.operators import GramOperator
from mercer.kernels.leaves.dot import Linear
from mercer.lapack import matmul
from mercer.sparse import Matrix, dense
from mercer.typing import Array


class FeatureGram(GramOperator):
    """Φ Φᵀ for features Φ of one sample, an array or a CSR array.

    >>> K = FeatureGram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> K.dense()
    array([[5., 2.],
           [2., 1.]])
    """

    kind = "explicit features"

    def __init__(self, phi: Matrix) -> None:
        self.phi = phi
        super().__init__(np.float64, (phi.shape[0], phi.shape[0]))

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return int(self.phi.shape[1])

    @property
    def numbers(self) -> int:
        """How many numbers of Φ are stored."""
        return stored_numbers(self.phi)

    def weights(self, coef: Array) -> Array:
        """Φᵀ coef: one column of weights for each column of coefficients."""
        if sparse.issparse(self.phi):
            return np.asarray(self.phi.T @ coef)
        return np.asarray(matmul(self.phi.T, coef))

    def _matmat(self, V: Array) -> Array:
        w = self.weights(V)
        if sparse.issparse(self.phi):
            return np.asarray(self.phi @ w)
        return np.asarray(matmul(self.phi, w))

    def diag(self) -> Array:
        if sparse.issparse(self.phi):
            return np.asarray(self.phi.multiply(self.phi).sum(axis=1)).ravel()
        return np.asarray(np.einsum("ij,ij->i", self.phi, self.phi))

    def block(self, rows: Index, cols: Index) -> Array:
        return np.asarray(dense(self.phi[rows] @ self.phi[cols].T))

    def low_rank_factor(self) -> Array | None:
        """Φ itself, where it is an array."""
        return None if sparse.issparse(self.phi) else self.phi

    def program(self) -> Arguments | None:
        """That of the linear kernel on the rows of Φ."""
        return Tiles(Linear(), self.phi).program() if self.dimension else None

    def _transpose(self) -> FeatureGram:
        return self


def stored_numbers(phi: Matrix) -> int:
    """How many numbers a matrix stores."""
    return int(phi.nnz) if sparse.issparse(phi) else int(phi.size)
