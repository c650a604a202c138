"""The whole regularisation path of ridge regression from one eigendecomposition.

        A = W½ K W½ = U Λ Uᵀ,      (A + α)⁻¹ = U (Λ + α)⁻¹ Uᵀ + (I - U Uᵀ) / α

Each α then costs n·r: coefficients, leave-one-out errors and degrees of freedom in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer import lapack
from mercer.panels import scaled_both_sides
from mercer.typing import Array


class PathPoint(NamedTuple):
    """One α: coefficients c (n×t) and intercepts b, errors of the fit and of leaving each row out, and tr H.

    `coef` are the weights β of features (D×t), on a path that began with features.
    """

    c: Array
    b: Array
    errors: Array
    loo_errors: Array
    dof: float
    coef: Array | None = None


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Targets Y with weights w > 0 on the eigenpairs of W½ K W½; eigenvalues that are not there are zero.

    `features` are the right singular vectors of W½Φ (r×D) and `mean` is what was taken from every row of Φ.

    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> path = RidgePath.of_features(x, np.ones(3), x, intercept=False)
    >>> point = path.at(1.0)
    >>> (x[:, 0] - point.loo_errors[:, 0]).round(6).tolist(), round(point.dof, 6)
    ([0.0, 0.8, 1.0], 0.833333)
    """

    values: Array
    vectors: Array
    weight: Array
    Y: Array
    intercept: bool
    features: Array | None = None
    mean: Array | float = 0.0

    @classmethod
    def of_matrix(cls, K: Array, weight: Array, Y: Array, *, intercept: bool) -> RidgePath:
        """From an n×n Gram matrix, which is left as it is."""
        # A symmetric matrix in C order is its own transpose in Fortran's, which LAPACK takes without a copy.
        values, vectors = lapack.eigh(scaled_both_sides(np.sqrt(weight), K).T, overwrite_a=True)
        return cls(values, vectors, weight, Y, intercept)

    @classmethod
    def of_features(cls, Phi: Array, weight: Array, Y: Array, *, intercept: bool) -> RidgePath:
        """From n×D features with ΦΦᵀ = K; with an intercept centred, so that an offset cancels nothing."""
        mean = weight @ Phi / weight.sum() if intercept else np.zeros(Phi.shape[1])
        U, sigma, right = lapack.svd(np.sqrt(weight)[:, None] * (Phi - mean))
        return cls(sigma**2, U, weight, Y, intercept, right, mean)

    @cached_property
    def scale(self) -> Array:
        return np.sqrt(self.weight)

    @cached_property
    def centre(self) -> Array:
        """What an intercept takes from the targets before anything is added up; zero without one."""
        if not self.intercept:
            return np.zeros(self.Y.shape[1])
        mean: Array = self.weight @ self.Y / self.weight.sum()
        return mean

    @cached_property
    def rhs(self) -> Array:
        """W½ [Y - centre, 1]."""
        if not self.intercept:
            return self.scale[:, None] * self.Y
        ones = np.ones((len(self.Y), 1))
        return self.scale[:, None] * np.hstack([self.Y - self.centre, ones])

    @cached_property
    def rotated(self) -> Array:
        return self.vectors.T @ self.rhs

    @cached_property
    def squares(self) -> Array:
        return self.vectors**2

    def at(self, alpha: float) -> PathPoint:
        """The solution for one α > 0."""
        n, t = self.Y.shape
        whole = self.vectors.shape[1] == n
        outside = 0.0 if whole else 1.0 / alpha
        inner = 1.0 / (self.values + alpha) - outside
        U = self.vectors @ (inner[:, None] * self.rotated)
        diagonal = self.squares @ inner
        if not whole:
            U += outside * self.rhs
            diagonal += outside
        b = np.zeros(t)
        if self.intercept:
            ones = U[:, t]
            total = float(self.scale @ ones)
            b = (self.scale @ U[:, :t]) / total
            U = U[:, :t] - ones[:, None] * b
            diagonal = diagonal - ones**2 / total
        coef = self._weights(alpha, b)
        offset = b + self.centre
        if coef is not None:
            offset = offset - self.mean @ coef
        s = self.scale[:, None]
        return PathPoint(
            s * U,
            offset,
            alpha * U / s,
            divide_rows(U / s, diagonal),
            n - alpha * float(diagonal.sum()),
            coef,
        )

    def _weights(self, alpha: float, b: Array) -> Array | None:
        """β from the singular values: c, of which it is a sum, lost the digits that α is smaller than K."""
        if self.features is None:
            return None
        rotated = self.rotated[:, : len(b)]
        if self.intercept:
            rotated = rotated - self.rotated[:, len(b) :] * b
        shrunk = np.sqrt(self.values) / (self.values + alpha)
        return self.features.T @ (shrunk[:, None] * rotated)


def divide_rows(errors: Array, rest: Array) -> Array:
    """errors / rest by rows; NaN where nothing is left without the row, so that no model predicts it.

    >>> divide_rows(np.array([[1.0], [1.0]]), np.array([2.0, 0.0]))
    array([[0.5],
           [nan]])
    """
    empty = rest <= 1e-13 * np.abs(rest).max(initial=1e-300)
    return np.where(empty[:, None], np.nan, errors / np.where(empty, 1.0, rest)[:, None])
