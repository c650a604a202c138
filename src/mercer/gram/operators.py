"""Gram operators: a kernel on data, lazily, behind one protocol. A machine never asks which kind it got.

    must      _matmat(V), diag(), block(rows, cols)
    may       dense(), contract(…), contract_inputs(…), _transpose()
    given     @, shape, T, shifted(λ), +, and all of scipy.sparse.linalg.LinearOperator

The kinds: `Precomputed` (K came from elsewhere), `Shifted` and `SumOf` of any of them; `Tiles` and `Dense` of
a kernel (`of_kernel`); `LowRank` and `Features` (`low_rank`); `Weighted` (`weighted`).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from mercer import lapack
from mercer.errors import InputError, ParameterError, ShapeError
from mercer.gram import blocks
from mercer.gram.blocks import Index
from mercer.gram.core import Arguments
from mercer.panels import Entries
from mercer.sparse import dense
from mercer.typing import Array, Numbers, Table
from mercer.vectors import check_vectors


class GramOperator(LinearOperator):
    """K as an operator.

    `K @ V`, `K.diag()`, `K.block(rows, cols)`, `K.dense()`, `K.shifted(λ)`, `K.contract(U, V)`.
    """

    kind: str = ""
    notes: tuple[str, ...] = ()

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, int]) -> None:
        # What the base class does after looking whether two whole numbers are two whole numbers.
        self.dtype = np.dtype(dtype)
        self.shape = shape

    def __matmul__(self, V: Numbers) -> Array:
        """K V; an array that fits goes straight to the product."""
        if type(V) is np.ndarray and V.ndim in (1, 2) and V.shape[0] == self.shape[1]:
            return self._matvec(V) if V.ndim == 1 else self._matmat(V)
        out: Array = super().__matmul__(V)
        return out

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _matmat(self, V: Array) -> Array: ...

    @abstractmethod
    def diag(self) -> Array:
        """The diagonal of a square operator."""

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Array:
        """K[rows][:, cols] as an array."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    def dense(self) -> Array:
        """K as an array."""
        return self.block(slice(None), slice(None))

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        """Σ W_ij ∂K_ij/∂θ for every free hyperparameter θ (as in `kernel.theta`), with W = UVᵀ or given."""
        self._weights(U, V, W)
        return np.zeros(0)

    def contract_inputs(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> tuple[Array, Array | None]:
        """∂(Σ W_ij K_ij)/∂X and /∂Z; on one sample the gradient with respect to X, and None."""
        raise InputError(f"a Gram of kind '{self.kind}' does not depend on inputs.")

    def program(self) -> Arguments | None:
        """What the core needs to compute rows of K by itself; None where K is stored or has no program."""
        return None

    def low_rank_factor(self) -> Array | None:
        """F with K = F Fᵀ where K is known to be that, with few columns; else None."""
        return None

    def in_memory(self) -> Entries | None:
        """Where a symmetric K is in memory; None where it is not."""
        return None

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def _matvec(self, v: Array) -> Array:
        return self._matmat(np.reshape(v, (-1, 1)))[:, 0]

    def _rmatmat(self, V: Array) -> Array:
        return self._transpose()._matmat(V)

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(np.reshape(v, (-1, 1)))[:, 0]

    def _adjoint(self) -> GramOperator:
        return self._transpose()

    @abstractmethod
    def _transpose(self) -> GramOperator: ...

    def shifted(self, shift: Numbers) -> Shifted:
        """K + shift·I (a number, or one per row)."""
        return Shifted(self, shift)

    def __add__(self, other: GramOperator) -> GramOperator:
        if not isinstance(other, GramOperator):
            return NotImplemented
        return SumOf(self, other)

    @property
    def is_square(self) -> bool:
        return bool(self.shape[0] == self.shape[1])

    def _weights(
        self, U: Numbers | None, V: Numbers | None, W: Numbers | None
    ) -> tuple[Array | None, Array | None, Array | None]:
        n, m = self.shape
        if W is not None:
            W = np.asarray(W)
            if U is not None or V is not None:
                raise ParameterError("contract takes U and V, or W; not both.")
            if W.shape != (n, m):
                raise ShapeError(f"W must be {n} by {m}, like the Gram; got {W.shape}.")
            return None, None, W
        if U is None:
            raise ParameterError("contract needs U (and V), or W.")
        U = np.asarray(U)
        V = U if V is None else np.asarray(V)
        U = U.reshape(len(U), -1)
        V = V.reshape(len(V), -1)
        if U.shape != (n, U.shape[1]) or V.shape != (m, U.shape[1]):
            raise ShapeError(f"U must be {n} by r and V {m} by r; got {U.shape} and {V.shape}.")
        return U, V, None


class Stored(GramOperator):
    """What matrices in memory share."""

    array: Array

    def _matmat(self, V: Array) -> Array:
        return lapack.matmul(self.array, V.astype(self.dtype, copy=False))

    def diag(self) -> Array:
        return self.array.diagonal().copy()

    def block(self, rows: Index, cols: Index) -> Array:
        return self.array[rows][:, cols]

    def dense(self) -> Array:
        return self.array

    def in_memory(self) -> Entries | None:
        return Entries(self.array) if self.is_square else None


class Precomputed(Stored):
    """A Gram matrix that came from elsewhere; it has no hyperparameters."""

    kind = "precomputed"

    def __init__(self, K: Table) -> None:
        self.array = dense(check_vectors(K, "K"))
        super().__init__(self.array.dtype, self.array.shape)

    def _transpose(self) -> Precomputed:
        return Precomputed(self.array.T)


class Shifted(GramOperator):
    """K + shift on the diagonal."""

    kind = "shifted"

    def __init__(self, inner: GramOperator, shift: Numbers) -> None:
        if not inner.is_square:
            raise ShapeError(f"only a square Gram can be shifted; this one is {inner.shape}.")
        self.inner = inner
        self.shift = np.asarray(shift, dtype=inner.dtype)
        if self.shift.shape not in ((), (inner.shape[0],)) or not np.all(np.isfinite(self.shift)):
            raise ParameterError(
                f"shift must be a finite number, or one per row; got shape {self.shift.shape}."
            )
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: Array) -> Array:
        return self.inner._matmat(V) + np.reshape(self.shift, (-1, 1)) * V

    def diag(self) -> Array:
        return np.asarray(self.inner.diag() + self.shift)

    def block(self, rows: Index, cols: Index) -> Array:
        out = np.array(self.inner.block(rows, cols))
        n = self.shape[0]
        i = np.arange(n)[rows]
        j = np.arange(n)[cols]
        a, b = blocks.same_observations(i, j)
        out[a, b] += np.broadcast_to(self.shift, n)[i[a]]
        return out

    def dense(self) -> Array:
        out = np.array(self.inner.dense())
        out[np.diag_indices_from(out)] += self.shift
        return out

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        return self.inner.contract(U, V, W=W)

    def contract_inputs(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> tuple[Array, Array | None]:
        return self.inner.contract_inputs(U, V, W=W)

    def _transpose(self) -> Shifted:
        return Shifted(self.inner._transpose(), self.shift)


class SumOf(GramOperator):
    """K₁ + K₂ + … of any kinds; hyperparameters follow one another."""

    kind = "sum"

    def __init__(self, *parts: GramOperator) -> None:
        flat: list[GramOperator] = []
        for part in parts:
            flat += part.parts if isinstance(part, SumOf) else (part,)
        if len({p.shape for p in flat}) != 1:
            raise ShapeError(f"Grams of different shapes cannot be added: {[p.shape for p in flat]}.")
        self.parts: tuple[GramOperator, ...] = tuple(flat)
        super().__init__(np.result_type(*(p.dtype for p in flat)), flat[0].shape)

    def _matmat(self, V: Array) -> Array:
        return sum((p._matmat(V) for p in self.parts[1:]), self.parts[0]._matmat(V))

    def diag(self) -> Array:
        return sum((p.diag() for p in self.parts[1:]), self.parts[0].diag())

    def block(self, rows: Index, cols: Index) -> Array:
        return sum((p.block(rows, cols) for p in self.parts[1:]), self.parts[0].block(rows, cols))

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        return np.concatenate([p.contract(U, V, W=W) for p in self.parts])

    def _transpose(self) -> SumOf:
        return SumOf(*(p._transpose() for p in self.parts))
