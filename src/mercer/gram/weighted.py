"""A Gram operator with weights on its rows and columns: diag(s) K diag(s)."""

from __future__ import annotations

import numpy as np

from mercer.errors import ParameterError, ShapeError
from mercer.gram.blocks import Index
from mercer.gram.operators import GramOperator
from mercer.typing import Array, Numbers


class Weighted(GramOperator):
    """s_i K_ij s_j for one positive s_i per row: the rule f(x) k(x, z) f(z) with a weight in place of f.

    >>> from mercer.gram import Precomputed
    >>> Weighted(Precomputed([[2.0, 1.0], [1.0, 2.0]]), [1.0, 3.0]).dense()
    array([[ 2.,  3.],
           [ 3., 18.]])
    """

    kind = "weighted"

    def __init__(self, inner: GramOperator, scale: Numbers) -> None:
        self.inner = inner
        self.scale = np.asarray(scale, dtype=inner.dtype)
        if not inner.is_square or self.scale.shape != (inner.shape[0],):
            raise ShapeError(
                f"weights need a square Gram and one number per row; got {inner.shape} and "
                f"{self.scale.shape}."
            )
        if not np.all(np.isfinite(self.scale)) or self.scale.min() <= 0:
            raise ParameterError("the weights of a Gram must be finite and positive.")
        self.notes = inner.notes
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: Array) -> Array:
        s = self.scale[:, None]
        return s * self.inner._matmat(np.ascontiguousarray(s * V))

    def diag(self) -> Array:
        return self.scale**2 * self.inner.diag()

    def block(self, rows: Index, cols: Index) -> Array:
        out = self.scale[rows][:, None] * self.inner.block(rows, cols)
        out *= self.scale[cols]
        return out

    def low_rank_factor(self) -> Array | None:
        F = self.inner.low_rank_factor()
        if F is None:
            return None
        return self.scale[:, None] * F

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        U, V, W = self._weights(U, V, W)
        s = self.scale[:, None]
        if W is not None:
            return self.inner.contract(W=s * W * self.scale)
        return self.inner.contract(s * U, s * V)

    def _transpose(self) -> Weighted:
        return Weighted(self.inner._transpose(), self.scale)
