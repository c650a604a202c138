"""RᵀKR: a Gram operator seen through the curvature of a loss, as the systems of Newton's method have it."""

from __future__ import annotations

import numpy as np

from mercer.solve.operator import ArrayOperator, Operator
from mercer.typing import Array, Index, Integers


class Curved(Operator):
    """RᵀKR as an operator, with R_i (k×r) for each row; rows whose R is zero are left out."""

    def __init__(self, K: Operator, R: Array) -> None:
        n, k, r = R.shape
        self.K = K
        self.n = n
        self.k = k
        self.r = r
        self.rows = np.flatnonzero(R.any(axis=(1, 2)))
        self.R = R[self.rows]

    @property
    def shape(self) -> tuple[int, int]:
        size = len(self.rows) * self.r
        return size, size

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def up(self, v: Array) -> Array:
        """Rv as n×k."""
        out = np.zeros((self.n, self.k))
        out[self.rows] = np.einsum("ikr,ir->ik", self.R, v.reshape(-1, self.r))
        return out

    def down(self, z: Array) -> Array:
        """Rᵀz as a vector."""
        out: Array = np.einsum("ikr,ik->ir", self.R, z[self.rows])
        return out.ravel()

    def __matmul__(self, V: Array) -> Array:
        flat = V.reshape(len(V), -1)
        m = flat.shape[1]
        up = np.zeros((self.n, self.k * m))
        up[self.rows] = np.einsum("ikr,irm->ikm", self.R, flat.reshape(-1, self.r, m)).reshape(-1, self.k * m)
        image = np.asarray(self.K @ up)[self.rows].reshape(-1, self.k, m)
        out: Array = np.einsum("ikr,ikm->irm", self.R, image)
        return out.reshape(V.shape)

    def diag(self) -> Array:
        out: Array = np.square(self.R).sum(axis=1) * np.asarray(self.K.diag())[self.rows, None]
        return out.ravel()

    def block(self, rows: Index, cols: Index) -> Array:
        every = np.arange(self.shape[0])
        i = every[rows]
        j = every[cols]
        out: Array
        if self.r == 1 and self.k == 1:
            part = block_of(self.K, self.rows[i], self.rows[j])
            out = self.R[i, 0, 0][:, None] * part * self.R[j, 0, 0]
            return out
        a, at_a = np.unique(i // self.r, return_inverse=True)
        b, at_b = np.unique(j // self.r, return_inverse=True)
        part = block_of(self.K, self.rows[a], self.rows[b])
        part = part.repeat(self.r, axis=0) if len(i) == self.r * len(a) else part[at_a]
        part = part.repeat(self.r, axis=1) if len(j) == self.r * len(b) else part[:, at_b]
        left = self.R[i // self.r, :, i % self.r]
        right = self.R[j // self.r, :, j % self.r]
        out = part * (left @ right.T)
        return out

    def low_rank_factor(self) -> Array | None:
        """Rᵀ(F ⊗ I) where K = F Fᵀ with so few columns that this is narrow; else None."""
        F = self.K.low_rank_factor()
        if F is None or 4 * self.k * F.shape[1] > self.shape[0]:
            return None
        out: Array = np.einsum("ikr,if->irkf", self.R, F[self.rows])
        return out.reshape(self.shape[0], -1)

    def dense(self) -> Array:
        return self.block(slice(None), slice(None))

    def shifted(self, lam: float) -> Operator:
        return ArrayOperator(self.dense(), lam)


def block_of(K: Operator, rows: Integers, cols: Integers) -> Array:
    """K[rows][:, cols], by slices where they are runs: a stored K then gives a view."""
    return K.block(_run(rows), _run(cols))


def _run(index: Integers) -> Index:
    if len(index) and index[-1] - index[0] == len(index) - 1 and np.all(np.diff(index) == 1):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index
