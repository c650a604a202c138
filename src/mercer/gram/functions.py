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

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram.of_kernel import Tiles
from mercer.gram.on_rows import Evaluated, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.kernels.things.sparse_map import SparseMap
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Integers, Labels

Duels = tuple[tuple[int, int | None], ...]
Map = Callable[[Matrix], Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class Functions(ABC):
    """Some functions of one machine: `offset` holds b, one number for each function.

    Of a classifier, `classes` are its labels and `duels` the pair (positive, negative) of places in them that
    each function tells apart, with None for all the rest. `canonical` says whether the smallest |f| on the
    margin is 1 by construction.
    """

    offset: Array
    what: str = "f"
    classes: Labels | None = None
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
    def explicit(self) -> tuple[Map, Array]:
        """The map φ of checked rows, and w with f = w·φ + b, count × features; only where φ is finite."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ByRows(Functions):
    """f = Σ c_j k(x_j, ·) + b for the rows x_j of `on`; `coefficients` is m × count.

    `observed` says whether noise (`White`) counts in K of the rows.
    """

    on: KernelOnRows
    coefficients: Array
    observed: bool = True
    known_norms: Array | None = None

    @property
    def kernel(self) -> Kernel | None:
        """The kernel; None where a Gram matrix was given."""
        return self.on.kernel

    @property
    def index(self) -> Integers:
        """The places of the x_j among the rows of fit, -1 where they were not kept."""
        return self.on.index

    def values(self, A: Matrix) -> Array:
        return self.on.products(A, self.coefficients) + self.offset

    def norms(self) -> Array:
        if len(self.on) == 0:
            return np.zeros(self.count)
        if not isinstance(self.on, Evaluated):
            if self.known_norms is None:
                raise ParameterError(
                    "the norm of f needs the kernel products of the training rows, and the model of a "
                    "precomputed Gram matrix "
                    "does not keep them. Fit with the kernel itself."
                )
            return self.known_norms
        other = None if self.observed else self.on.rows
        K = Tiles(self.on.kernel, self.on.rows, other, n_jobs=self.on.n_jobs)
        image = np.asarray(K @ np.ascontiguousarray(self.coefficients))
        return np.asarray(np.sqrt(np.maximum((self.coefficients * image).sum(axis=0), 0.0)))

    def lengths(self, A: Matrix) -> Array:
        return self._evaluated("k(x, x) of rows is not known for").diagonal(A)

    def explicit(self) -> tuple[Map, Array]:
        on = self._evaluated("there is no feature map of")
        names = on.rows.names
        columns = on.rows.columns
        if columns is None:
            raise ParameterError(f"{on.kernel} has no feature map on things that have no columns.")
        phi = on.kernel.features(columns)

        def mapped(A: Matrix) -> Array:
            return np.asarray(phi(Rows(dense(A), "X", names)), dtype=float)

        if len(on) == 0:
            return mapped, np.zeros((self.count, phi.dimension))
        return mapped, self.coefficients.T @ mapped(on.rows.data)

    def _evaluated(self, what: str) -> Evaluated:
        if not isinstance(self.on, Evaluated):
            raise ParameterError(f"{what} a precomputed Gram matrix. Fit with the kernel itself.")
        return self.on


@dataclass(frozen=True, eq=False, kw_only=True)
class ByFeatures(Functions):
    """f = w·φ(x) + b, with `weights` count × features and `map` of checked rows.

    Where φ are the named features of a kernel of things, `named` is that map and `kernel` the kernel.
    """

    map: Map
    weights: Array
    named: SparseMap | None = None
    kernel: Kernel | None = None

    def values(self, A: Matrix) -> Array:
        return self.map(A) @ self.weights.T + self.offset

    def norms(self) -> Array:
        return np.asarray(np.linalg.norm(self.weights, axis=1))

    def lengths(self, A: Matrix) -> Array:
        return np.asarray(np.square(self.map(A)).sum(axis=1))

    def explicit(self) -> tuple[Map, Array]:
        return self.map, self.weights
