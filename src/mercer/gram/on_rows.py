"""A kernel on the rows of fit: the one thing that a machine learns from and predicts by.

    Evaluated      a kernel, and rows that are kept
    Given          a Gram matrix from elsewhere: new rows come as their products with the rows of fit
    Approximated   features φ of an approximation: φ(x)·φ(z) in place of k(x, z)

All three answer the same questions, so that a machine seldom asks which it has:

    gram()              K of the rows, as an operator that is stored where memory allows
    between(A)          k(new rows, rows), as an operator
    products(A, C)      k(new rows, rows) C
    own(A)              k(x, x) of new rows
    part(index)         the same kernel on some of the rows

New rows `A` are checked already. They may be sparse where the rows of fit are dense, or the other way round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, MercerError, NotFiniteError, ShapeError
from mercer.gram import blocks
from mercer.gram.distributed import tiles
from mercer.gram.explicit import FeatureGram
from mercer.gram.far_features import FarFeatures, far_from_here
from mercer.gram.low_rank import LowRank
from mercer.gram.met_features import latent_map_on, map_on
from mercer.gram.of_kernel import Dense, Tiles
from mercer.gram.operators import GramOperator, Precomputed
from mercer.kernels.base import Kernel
from mercer.kernels.proofs.proof import Proof
from mercer.kernels.things.sparse_map import SparseMap
from mercer.memory import memory_limit
from mercer.panels import even, largest_entry, least_symmetric, panels
from mercer.sparse import Matrix, dense, stored_alike
from mercer.typing import Array, Integers, Memory

if TYPE_CHECKING:
    from mercer.kernels.maps.explicit import FeatureMap

PRECOMPUTED = "precomputed"
ASYMMETRY = 1e-8
"""Of the largest entry: what is less is rounding of whoever computed a Gram matrix."""


class FeatureSize(NamedTuple):
    """How many explicit features there are, and how many numbers those of all rows store."""

    features: int
    numbers: int


class KernelOnRows(ABC):
    """A kernel on the rows of fit, or on some of them; `index` holds their places among the rows of fit."""

    kernel: Kernel | None
    index: Integers

    def __len__(self) -> int:
        return len(self.index)

    @property
    def published(self) -> Kernel | str:
        """What a machine calls `kernel_`: the kernel, or the word for a matrix that was given."""
        if self.kernel is None:
            return PRECOMPUTED
        return self.kernel

    @cached_property
    def proof(self) -> Proof | None:
        """Why the kernel is one, asked once; None where nothing proves it, and for a given matrix."""
        if self.kernel is None:
            return None
        return self.kernel.known_proof()

    @abstractmethod
    def gram(self, memory: Memory | None = None, *, finite: bool = True) -> GramOperator:
        """K of the rows; `finite` has a stored matrix looked through even if the kernel is proved."""

    def feature_size(self) -> FeatureSize | None:
        """How large explicit features of the rows would be; None where there are no finite ones."""
        return None

    def explicit(self) -> FeatureGram:
        """K by the explicit features of the rows, which are kept."""
        raise NotImplementedError

    @abstractmethod
    def between(self, A: Matrix) -> GramOperator:
        """k(new rows, rows)."""

    def new_rows(self, A: Matrix) -> Any:
        """Checked new rows about which several questions are asked, so that they are read once."""
        return A

    def products(self, A: Any, coef: Array) -> Array:
        """k(new rows, rows) @ coef."""
        if len(self) == 0:
            return np.zeros((A.shape[0], *coef.shape[1:]))
        return np.asarray(self.between(A) @ np.ascontiguousarray(coef))

    @abstractmethod
    def diagonal(self, A: Matrix) -> Array:
        """k(x, x) of new rows."""

    @abstractmethod
    def part(self, index: Integers) -> KernelOnRows:
        """The kernel on the rows with these places in this object."""


@dataclass(frozen=True, eq=False)
class Evaluated(KernelOnRows):
    """A kernel that is computed, on rows that are kept.

    >>> from mercer import RBF
    >>> on = Evaluated.of(RBF(1.0), Rows(np.zeros((2, 1))))
    >>> on.products(np.zeros((1, 1)), np.array([[1.0], [2.0]]))
    array([[3.]])
    """

    kernel: Kernel
    rows: Rows
    index: Integers
    memory: Memory = "2GiB"
    n_jobs: int | None = None

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, memory: Memory = "2GiB", n_jobs: int | None = None) -> Evaluated:
        return cls(kernel, rows, np.arange(len(rows)), memory, n_jobs)

    def gram(self, memory: Memory | None = None, *, finite: bool = True) -> GramOperator:
        limit = memory_limit(self.memory if memory is None else memory)
        K = self.kernel.gram(self.rows, memory=limit, n_jobs=self.n_jobs)
        if isinstance(K, Dense):
            self._look_through(K, finite)
        return K

    @cached_property
    def feature_map(self) -> FeatureMap | SparseMap | None:
        """The explicit map of the kernel, of columns or of things; None where it has no finite one."""
        met = map_on(self.kernel, self.rows)
        if met is not None:
            return met
        columns = self.rows.columns
        if columns is None:
            return None
        try:
            return self.kernel.features(columns, memory=self.memory)
        except MercerError:
            return None

    def feature_size(self) -> FeatureSize | None:
        phi = self.feature_map
        if phi is None:
            return None
        if isinstance(phi, SparseMap):
            return FeatureSize(phi.dimension, int(phi.matrix.nnz))
        if phi.keeps_sparse(self.rows):
            stored = int(self.rows.vectors.nnz) + len(self)
            return FeatureSize(phi.dimension, stored)
        return FeatureSize(phi.dimension, len(self) * phi.dimension)

    def explicit(self) -> FeatureGram:
        assert self.feature_map is not None
        if isinstance(self.feature_map, SparseMap):
            return FeatureGram(self.feature_map.matrix)
        return FeatureGram(features_of(self.feature_map, self.rows))

    def _look_through(self, K: Dense, finite: bool) -> None:
        """A stored matrix is finite, and symmetric if nothing proves that it must be."""
        if self.proof is None:
            check_gram(K.array, str(self.kernel))
        elif finite and not K.finite:
            check_finite(K.array, str(self.kernel))

    @cached_property
    def tiles(self) -> Tiles:
        """K of the rows without storing it; its program is made once."""
        return tiles(self.kernel, self.rows, n_jobs=self.n_jobs, memory=self.memory)

    def between(self, A: Matrix | Rows) -> Tiles:
        """k(new rows, rows); asked again about the same `new_rows`, it is the same operator."""
        new = self.new_rows(A)
        last: Tiles | None = self.__dict__.get("_last")
        if last is None or last.x is not new:
            last = Tiles(self.kernel, new, self.rows, n_jobs=self.n_jobs)
            self.__dict__["_last"] = last
        return last

    def products(self, A: Matrix | Rows, coef: Array) -> Array:
        new = self.new_rows(A)
        if len(self) == 0:
            return np.zeros((len(new), *coef.shape[1:]))
        phi = latent_map_on(self.kernel, self.rows)
        if phi is None:
            return np.asarray(self.between(new) @ np.ascontiguousarray(coef))
        self.kernel.check_same_columns(new, self.rows)
        return np.asarray(phi(new) @ np.asarray(phi.matrix.T @ coef))

    def new_rows(self, A: Matrix | Rows) -> Rows:
        """Checked new rows, stored as those of fit are, with their column names."""
        if isinstance(A, Rows):
            return A
        return Rows(stored_alike(A, self.rows.data), "X", self.rows.names).checked()

    def diagonal(self, A: Matrix | Rows) -> Array:
        return np.asarray(self.kernel.diag(self.new_rows(A)), dtype=np.float64)

    def part(self, index: Integers) -> Evaluated:
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        rows = Rows(self.rows.data[index], self.rows.name, self.rows.names)
        return replace(self, rows=rows, index=self.index[index])


@dataclass(frozen=True, eq=False)
class Given(KernelOnRows):
    """A Gram matrix that came from elsewhere; after the fit nothing of it is kept but its number of columns.

    >>> Given.of(np.eye(3)).products(np.array([[1.0, 2.0, 3.0]]), np.ones(3))
    array([6.])
    """

    matrix: Array | None
    index: Integers
    columns: int
    kernel: None = None

    @classmethod
    def of(cls, K: Matrix, *, symmetric: bool = True) -> Given:
        """A given matrix; products of points are symmetric, values of basis functions need not be."""
        matrix = check_gram(K) if symmetric else np.asarray(dense(K), dtype=np.float64)
        return cls(matrix, np.arange(len(matrix)), matrix.shape[1])

    def gram(self, memory: Memory | None = None, *, finite: bool = True) -> GramOperator:
        if self.matrix is None:
            raise InputError("a fitted model does not keep the Gram matrix that it was given. Pass it again.")
        return Precomputed(self.matrix)

    def between(self, A: Matrix) -> GramOperator:
        if A.shape[1] != self.columns:
            raise ShapeError(
                f"X has {A.shape[1]} columns; a precomputed block needs {self.columns}: "
                "rows = new, columns = training."
            )
        return Precomputed(dense(A[:, self.index]))

    def diagonal(self, A: Matrix) -> Array:
        raise InputError("a precomputed block does not hold k(x, x) of the new rows. Pass the kernel itself.")

    def part(self, index: Integers) -> Given:
        matrix = None if self.matrix is None else self.matrix[np.ix_(index, index)]
        return replace(self, matrix=matrix, index=self.index[index])


class FeatureApproximation(Protocol):
    """What is asked of an approximation: features of rows, and the noise that no feature holds."""

    noise_: float
    from_below: bool

    @property
    def dimension(self) -> int: ...

    def features(self, rows: Rows) -> Array: ...

    def alone(self) -> FeatureApproximation: ...

    def describe(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Approximated(KernelOnRows):
    """Features in place of the kernel: K̂ = ΦΦᵀ, and the noise of the kernel on its diagonal."""

    kernel: Kernel | None
    rows: Rows
    index: Integers
    approximation: FeatureApproximation

    @classmethod
    def of(
        cls, kernel: Kernel | None, rows: Rows, approximation: FeatureApproximation, phi: Array | None = None
    ) -> Approximated:
        on = cls(kernel, rows, np.arange(len(rows)), approximation)
        if phi is not None:
            on.__dict__["phi"] = phi
        return on

    @cached_property
    def phi(self) -> Array:
        """Φ of the rows."""
        return self.approximation.features(self.rows)

    @property
    def far(self) -> FarFeatures | None:
        """The features by the workers of the cluster that computes now; None where Φ is here, or will be."""
        cluster = far_from_here(len(self))
        if cluster is None or self.kernel is None or "phi" in vars(self):
            return None
        known: FarFeatures | None = vars(self).get("_far")
        if known is None or known.cluster is not cluster:
            known = FarFeatures(self.approximation.alone(), self.rows, cluster)
            self.__dict__["_far"] = known
        return known

    def without_noise(self) -> GramOperator:
        """ΦΦᵀ."""
        far = self.far
        return LowRank(self.phi) if far is None else far

    def gram(self, memory: Memory | None = None, *, finite: bool = True) -> GramOperator:
        K = self.without_noise()
        if self.approximation.noise_:
            return K.shifted(self.approximation.noise_)
        return K

    def feature_size(self) -> FeatureSize | None:
        """Only without noise, which no feature holds."""
        if self.approximation.noise_:
            return None
        count = self.approximation.dimension
        return FeatureSize(count, count * len(self))

    def explicit(self) -> FeatureGram:
        return FeatureGram(self.phi)

    def between(self, A: Matrix) -> GramOperator:
        return LowRank(self.features(A), self.phi)

    def features(self, A: Matrix) -> Array:
        """φ of new rows."""
        return self.approximation.features(Rows(A, "X", self.rows.names))

    def weights(self, coef: Array) -> Array:
        """β = Φᵀ coef: what predictions are made of, so that no row of fit is needed for them."""
        far = self.far
        return self.phi.T @ coef if far is None else far.pull(coef)

    def times(self, A: Matrix, beta: Array) -> Array:
        """φ(x)·β of new rows, in blocks."""
        out = np.empty((A.shape[0], *beta.shape[1:]))
        for part in blocks.row_blocks(A.shape[0], max(len(beta), 1)):
            out[part] = self.features(A[part]) @ beta
        return out

    def products(self, A: Matrix, coef: Array) -> Array:
        return self.times(A, self.weights(coef))

    def diagonal(self, A: Matrix) -> Array:
        out = np.empty(A.shape[0])
        for part in blocks.row_blocks(A.shape[0], max(self.approximation.dimension, 1)):
            phi = self.features(A[part])
            out[part] = np.einsum("ij,ij->i", phi, phi)
        return out + self.approximation.noise_

    def part(self, index: Integers) -> Approximated:
        rows = Rows(self.rows.data[index], self.rows.name, self.rows.names)
        some = replace(self, rows=rows, index=self.index[index])
        if "phi" in vars(self):
            some.__dict__["phi"] = self.phi[index]
        return some


def features_of(phi: FeatureMap | SparseMap, rows: Rows) -> Matrix:
    """Explicit features of rows, sparse where the rows and the map are."""
    if isinstance(phi, SparseMap):
        return phi(rows)
    if phi.keeps_sparse(rows):
        return phi.sparse(rows)
    return np.asarray(phi(rows), dtype=np.float64)


def feature_products(phi: FeatureMap | SparseMap, rows: Rows, weights: Array) -> Array:
    """φ(x)·w of every row and every column of weights, in blocks."""
    if isinstance(phi, SparseMap):
        return np.asarray(phi(rows) @ weights)
    if phi.keeps_sparse(rows):
        return np.asarray(phi.sparse(rows) @ weights)
    out = np.empty((len(rows), *weights.shape[1:]))
    every = np.arange(len(rows))
    for part in blocks.row_blocks(len(rows), max(phi.dimension, 1)):
        out[part] = features_of(phi, rows.rows(every[part])) @ weights
    return out


def check_gram(K: Any, whose: str = "the precomputed Gram matrix") -> Array:
    """A square Gram matrix, finite and symmetric to rounding, made exactly symmetric."""
    K = np.asarray(dense(K), dtype=np.float64)
    if K.shape[0] != K.shape[1]:
        raise ShapeError(
            "a precomputed Gram matrix must be square, with k(x_i, x_j) in row i and column j; got shape "
            f"{K.shape}. New points come later: rows = new, columns = training."
        )
    check_finite(K, whose)
    i, j = least_symmetric(K)
    if abs(K[i, j] - K[j, i]) > ASYMMETRY * max(largest_entry(K), np.finfo(float).tiny):
        raise InputError(
            f"{whose} is not symmetric: {K[i, j]:.9g} at ({i}, {j}) but {K[j, i]:.9g} at ({j}, {i}). "
            "A kernel has k(x, z) = k(z, x); (K + K.T) / 2 is the nearest symmetric matrix."
        )
    return even(K)


def check_finite(K: Array, whose: str) -> None:
    """Refuse a Gram matrix with NaN or infinity, with the first pair that has it."""
    for rows in panels(len(K), K.itemsize, K.shape[1]):
        fine = np.isfinite(K[rows])
        if not fine.all():
            i, j = np.argwhere(~fine)[0]
            i += rows.start
            raise NotFiniteError(f"{whose} gives {K[i, j]} for rows {i} and {j}. Look at that pair.")
