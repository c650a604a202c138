"""Gram operators of features: F Gᵀ in memory, and Φ(X)Φ(Z)ᵀ mapped block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer import lapack
from mercer.arrays import Rows
from mercer.errors import NotFiniteError, ShapeError
from mercer.gram import blocks
from mercer.gram.blocks import Index
from mercer.gram.core import Arguments
from mercer.gram.of_kernel import Tiles
from mercer.gram.operators import GramOperator
from mercer.kernels.leaves.dot import Linear
from mercer.samples import samples_of, second
from mercer.typing import Array, Numbers, Table

if TYPE_CHECKING:
    from mercer.kernels.maps.explicit import FeatureMap


class LowRank(GramOperator):
    """F Gᵀ with few columns: a Nyström or random-feature approximation."""

    kind = "low rank"

    def __init__(self, F: Numbers, G: Numbers | None = None) -> None:
        self.F = np.asarray(F)
        self.G = self.F if G is None else np.asarray(G)
        for name, A in (("F", self.F), ("G", self.G)):
            if A.ndim != 2 or A.shape[1] != self.F.shape[1]:
                raise ShapeError(f"{name} must have two dimensions and as many columns as F; got {A.shape}.")
            if not np.all(np.isfinite(A)):
                raise NotFiniteError(f"{name} contains NaN or infinity.")
        super().__init__(self.F.dtype, (len(self.F), len(self.G)))

    def _matmat(self, V: Array) -> Array:
        return np.asarray(lapack.matmul(self.F, lapack.matmul(self.G.T, V)))

    def diag(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.F, self.G))

    def block(self, rows: Index, cols: Index) -> Array:
        return np.asarray(self.F[rows] @ self.G[cols].T)

    def low_rank_factor(self) -> Array | None:
        if self.G is self.F:
            return self.F
        return None

    def program(self) -> Arguments | None:
        """That of the linear kernel on the rows of F."""
        if self.G is self.F and self.F.shape[1]:
            return Tiles(Linear(), self.F).program()
        return None

    def _transpose(self) -> LowRank:
        if self.G is self.F:
            return self
        return LowRank(self.G, self.F)


class Features(GramOperator):
    """Φ(X)Φ(Z)ᵀ for an explicit map; Φ is computed for a block of rows at a time and never stored whole."""

    kind = "features"

    def __init__(self, map: FeatureMap, X: Table | Rows, Z: Table | Rows | None = None) -> None:
        self.map = map
        self.x, self.z = samples_of(X, Z)
        super().__init__(np.float64, (len(self.x), len(second(self.x, self.z))))

    def _phi(self, rows: Rows, index: Index) -> Array:
        return self.map(rows.rows(np.arange(len(rows))[index]).data)

    def _matmat(self, V: Array) -> Array:
        right = second(self.x, self.z)
        inner: Array | float = 0.0
        for part in blocks.row_blocks(len(right), self.map.dimension):
            inner = inner + self._phi(right, part).T @ V[part]
        return np.vstack(
            [self._phi(self.x, part) @ inner for part in blocks.row_blocks(len(self.x), self.map.dimension)]
        )

    def diag(self) -> Array:
        parts = [self._phi(self.x, part) for part in blocks.row_blocks(len(self.x), self.map.dimension)]
        return np.concatenate([np.einsum("ij,ij->i", P, P) for P in parts])

    def block(self, rows: Index, cols: Index) -> Array:
        return self._phi(self.x, rows) @ self._phi(second(self.x, self.z), cols).T

    def _transpose(self) -> Features:
        if self.z is None:
            return self
        return Features(self.map, self.z, self.x)
