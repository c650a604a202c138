"""RᵀKR: a Gram operator seen through the curvature of a loss, as the systems of Newton's method have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.solve.operator import ArrayOperator, Operator


class Curved(Operator):
    """RᵀKR as an operator, with R_i (k×r) for each row; rows whose R is zero are left out."""

    def __init__(self, K: Operator, R: np.ndarray) -> None:
        n, k, r = R.shape
        self.K, self.k, self.r, self.n = K, k, r, n
        self.rows = np.flatnonzero(R.any(axis=(1, 2)))
        self.R = R[self.rows]

    @property
    def shape(self) -> tuple[int, int]:
        size = len(self.rows) * self.r
        return size, size

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def up(self, v: np.ndarray) -> np.ndarray:
        """Rv as n×k."""
        out = np.zeros((self.n, self.k))
        out[self.rows] = np.einsum("ikr,ir->ik", self.R, v.reshape(-1, self.r))
        return out

    def down(self, z: np.ndarray) -> np.ndarray:
        """Rᵀz as a vector."""
        return np.einsum("ikr,ik->ir", self.R, z[self.rows]).ravel()

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        flat = V.reshape(len(V), -1)
        m = flat.shape[1]
        up = np.zeros((self.n, self.k * m))
        up[self.rows] = np.einsum("ikr,irm->ikm", self.R, flat.reshape(-1, self.r, m)).reshape(-1, self.k * m)
        image = np.asarray(self.K @ up)[self.rows].reshape(-1, self.k, m)
        return np.einsum("ikr,ikm->irm", self.R, image).reshape(V.shape)

    def diag(self) -> np.ndarray:
        return (np.square(self.R).sum(axis=1) * np.asarray(self.K.diag())[self.rows, None]).ravel()

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        i, j = np.arange(self.shape[0])[rows], np.arange(self.shape[0])[cols]
        if self.r == 1 and self.k == 1:
            part = block_of(self.K, self.rows[i], self.rows[j])
            return self.R[i, 0, 0][:, None] * part * self.R[j, 0, 0]
        (a, at_a), (b, at_b) = (np.unique(x // self.r, return_inverse=True) for x in (i, j))
        part = block_of(self.K, self.rows[a], self.rows[b])
        part = part.repeat(self.r, axis=0) if len(i) == self.r * len(a) else part[at_a]
        part = part.repeat(self.r, axis=1) if len(j) == self.r * len(b) else part[:, at_b]
        left, right = self.R[i // self.r, :, i % self.r], self.R[j // self.r, :, j % self.r]
        return part * (left @ right.T)

    def low_rank_factor(self) -> np.ndarray | None:
        """Rᵀ(F ⊗ I) where K = F Fᵀ with so few columns that this is narrow; else None."""
        F = self.K.low_rank_factor()
        if F is None or 4 * self.k * F.shape[1] > self.shape[0]:
            return None
        return np.einsum("ikr,if->irkf", self.R, F[self.rows]).reshape(self.shape[0], -1)

    def dense(self) -> np.ndarray:
        return self.block(slice(None), slice(None))

    def shifted(self, lam: float) -> Operator:
        return ArrayOperator(self.dense(), lam)


def block_of(K: Operator, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """K[rows][:, cols], by slices where they are runs: a stored K then gives a view."""
    return K.block(_run(rows), _run(cols))


def _run(index: np.ndarray) -> Any:
    if len(index) and index[-1] - index[0] == len(index) - 1 and np.all(np.diff(index) == 1):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index
