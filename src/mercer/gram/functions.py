"""What a fitted machine comes to: functions f = Σ c_j k(x_j, ·) + b, as one object for all machines.

    ByRows        coefficients c of rows x_j                 ‖f‖² = cᵀKc
    ByFeatures    weights w of an explicit map φ             ‖f‖² = w·w

Every machine that has such functions answers `_functions()` with one of the two; `mercer.theory` asks nothing
else of it. The norm is that of Σ c_j k(x_j, ·) alone: the offset b costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram.operators import Tiles
from mercer.kernels.base import Kernel
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Integers

Duels = tuple[tuple[int, int | None], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Functions(ABC):
    """Some functions of one machine: `offset` holds b, one number for each function.

    Of a classifier, `classes` are its labels and `duels` the pair (positive, negative) of places in them that
    each function tells apart, with None for all the rest. `canonical` says whether the smallest |f| on the
    margin is 1 by construction.
    """

    offset: Array
    what: str = "f"
    classes: Array | None = None
    duels: Duels = ()
    canonical: bool = False

    @property
    def count(self) -> int:
        """How many functions there are."""
        return len(self.offset)

    @abstractmethod
    def values(self, A: Matrix) -> Array:
        """Every function on checked rows A, n × count."""

    @abstractmethod
    def norms(self) -> Array:
        """‖f‖ of each function, without its offset."""

    @abstractmethod
    def lengths(self, A: Matrix) -> Array:
        """‖φ(x)‖² = k(x, x) of checked rows."""

    @abstractmethod
    def explicit(self) -> tuple[Callable[[Matrix], Array], Array]:
        """The map φ of checked rows, and w with f = w·φ + b, count × features; only where φ is finite."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ByRows(Functions):
    """f = Σ c_j k(x_j, ·) + b; `coefficients` is m × count and `index` the places of the x_j among the rows
    of fit (-1 where they were not kept).

    A precomputed kernel has neither `kernel` nor `rows`. `observed` says whether noise (`White`) counts in K
    of the rows.
    """

    kernel: Kernel | None
    rows: Rows | None
    coefficients: Array
    index: Integers
    observed: bool = True
    known_norms: Array | None = None

    def values(self, A: Matrix) -> Array:
        if self.kernel is None or self.rows is None:
            return np.asarray(dense(A[:, self.index]) @ self.coefficients) + self.offset
        if len(self.index) == 0:
            return np.tile(self.offset, (A.shape[0], 1))
        mine = self.rows.data
        if sparse.issparse(A) != sparse.issparse(mine):
            A = sparse.csr_array(A) if sparse.issparse(mine) else A.toarray()
        K = Tiles(self.kernel, Rows(A, "X", self.rows.names), self.rows)
        return np.asarray(K @ np.ascontiguousarray(self.coefficients)) + self.offset

    def norms(self) -> Array:
        if len(self.index) == 0:
            return np.zeros(self.count)
        if self.kernel is None or self.rows is None:
            if self.known_norms is None:
                raise ParameterError(
                    "the norm of f needs the kernel products of the training rows, and the model of a "
                    "precomputed Gram matrix "
                    "does not keep them. Fit with the kernel itself."
                )
            return self.known_norms
        other = None if self.observed else self.rows
        image = np.asarray(Tiles(self.kernel, self.rows, other) @ np.ascontiguousarray(self.coefficients))
        return np.asarray(np.sqrt(np.maximum((self.coefficients * image).sum(axis=0), 0.0)))

    def lengths(self, A: Matrix) -> Array:
        if self.kernel is None or self.rows is None:
            raise ParameterError(
                "k(x, x) of rows is not known for a precomputed Gram matrix. Fit with the kernel itself."
            )
        return np.asarray(self.kernel.diag(Rows(dense(A), "X", self.rows.names)), dtype=float)

    def explicit(self) -> tuple[Callable[[Matrix], Array], Array]:
        if self.kernel is None or self.rows is None:
            raise ParameterError("a precomputed Gram matrix has no feature map; give the kernel itself.")
        names = self.rows.names
        phi = self.kernel.features(self.rows.width if names is None else names)

        def mapped(A: Matrix) -> Array:
            return np.asarray(phi(Rows(dense(A), "X", names)), dtype=float)

        if len(self.index) == 0:
            return mapped, np.zeros((self.count, phi.dimension))
        return mapped, self.coefficients.T @ mapped(self.rows.data)


@dataclass(frozen=True, eq=False, kw_only=True)
class ByFeatures(Functions):
    """f = w·φ(x) + b, with `weights` count × features and `map` of checked rows."""

    map: Callable[[Matrix], Array]
    weights: Array

    def values(self, A: Matrix) -> Array:
        return self.map(A) @ self.weights.T + self.offset

    def norms(self) -> Array:
        return np.asarray(np.linalg.norm(self.weights, axis=1))

    def lengths(self, A: Matrix) -> Array:
        return np.asarray(np.square(self.map(A)).sum(axis=1))

    def explicit(self) -> tuple[Callable[[Matrix], Array], Array]:
        return self.map, self.weights
