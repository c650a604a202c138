"""Gram operators: a kernel on data, lazily, behind one protocol. A machine never asks which kind it got.

    must      _matmat(V), diag(), block(rows, cols)
    may       dense(), contract(…), contract_inputs(…), _transpose()
    given     @, shape, T, shifted(λ), +, and all of scipy.sparse.linalg.LinearOperator

The kinds: `Tiles` (K is never stored), `Dense` (K is stored), `Precomputed` (K came from elsewhere),
`LowRank` (FGᵀ), `Features` (Φ(X)Φ(Z)ᵀ, mapped block by block), and `Shifted` and `SumOf` of any of them.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from mercer import clock, lapack
from mercer.arrays import Rows, check_vectors, common_dtype
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.gram import blocks, core
from mercer.gram.blocks import Index
from mercer.gram.core import Arguments
from mercer.gram.lower import lower
from mercer.gram.program import Lowered, NotLowered
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.dot import Linear
from mercer.panels import panels
from mercer.sparse import dense
from mercer.threads import threads
from mercer.typing import Array, Numbers, Setting, Table

if TYPE_CHECKING:
    from mercer.kernels.maps.explicit import FeatureMap

# Of the seconds left: what may go into storing K, whose products are then cheaper.
STORING = 0.5
# Bytes of a matrix that is stored without asking for the seconds.
LARGE = 64 << 20
# Bytes of memory taken from the system at one time.
PART = 32 << 20
# Bytes that the system gives at once.
PAGE = 4096


class GramOperator(LinearOperator):
    """K as an operator.

    `K @ V`, `K.diag()`, `K.block(rows, cols)`, `K.dense()`, `K.shifted(λ)`, `K.contract(U, V)`.
    """

    kind: str = ""
    notes: tuple[str, ...] = ()

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


class OfKernel(GramOperator):
    """What `Tiles` and `Dense` share: a kernel, its rows, and the program of the two."""

    def __init__(
        self,
        kernel: Kernel,
        X: Table | Rows,
        Z: Table | Rows | None = None,
        *,
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.x = Rows.of(X, "X")
        self.z = None if Z is None else Rows.of(Z, "Z")
        if self.z is not None:
            kernel.check_same_columns(self.x, self.z)
        self.n_jobs = n_jobs
        dtype = np.dtype(common_dtype(self.x, self.z) if dtype is None else dtype)
        self.low, self.notes = lowered(kernel, self.x, self.z, dtype)
        super().__init__(dtype, (len(self.x), len(self.x if self.z is None else self.z)))

    @property
    def same(self) -> bool:
        """Whether both samples are the same observations."""
        return self.z is None

    def diag(self) -> Array:
        if self.z is not None:
            raise ShapeError("diag() needs one sample; this Gram is between two.")
        return self.kernel.diagonal(self.x).astype(self.dtype, copy=False)

    def contract(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> Array:
        U, V, W = self._weights(U, V, W)
        parameters = self.kernel.parameters
        if self.low is not None:
            values = core.contract(self._differentiable, threads(self.n_jobs), U=U, V=V, W=W)
        else:
            values = blocks.contract(self.kernel, self.x, self.z, U=U, V=V, W=W)
        return np.array([v * p.derivative for v, p in zip(values, parameters, strict=True) if p.free])

    def contract_inputs(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> tuple[Array, Array | None]:
        U, V, W = self._weights(U, V, W)
        if self.low is None:
            raise InputError(f"{self.kernel} has no input gradient: {self.notes[0]}.")
        return core.contract_inputs(self._differentiable, threads(self.n_jobs), U=U, V=V, W=W)

    @cached_property
    def _differentiable(self) -> Lowered:
        """The program for gradients, made at the first of them."""
        return lower(self.kernel, self.x, self.z, self.dtype, gradient=True)

    def __getstate__(self) -> dict[str, Setting]:
        """Without the programs: they hold functions and handles of the core.

        They follow from the kernel and its rows.
        """
        left = ("low", "_differentiable")
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Setting]) -> None:
        self.__dict__.update(state)
        self.low, _ = lowered(self.kernel, self.x, self.z, self.dtype)


class Tiles(OfKernel):
    """K is never stored: every product computes its tiles anew, in cache."""

    kind = "tiles"

    def _matmat(self, V: Array) -> Array:
        if self.low is not None:
            return core.apply(self.low, V, threads(self.n_jobs))
        return blocks.apply(self.kernel, self.x, self.z, V).astype(self.dtype, copy=False)

    def block(self, rows: Index, cols: Index) -> Array:
        return block_of(self.kernel, self.x, self.z, rows, cols, self.dtype, self.n_jobs)

    def dense(self) -> Array:
        return dense_block(self.kernel, self.x, self.z, self.dtype, self.n_jobs, self.low)

    def program(self) -> Arguments | None:
        return None if self.low is None else core.arguments(self.low)

    def _transpose(self) -> Tiles:
        if self.z is None:
            return self
        return Tiles(self.kernel, self.z, self.x, dtype=self.dtype, n_jobs=self.n_jobs)


class Dense(OfKernel):
    """K is computed once and stored."""

    kind = "dense"

    def __init__(
        self,
        kernel: Kernel,
        X: Table | Rows,
        Z: Table | Rows | None = None,
        *,
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
        out: Array | None = None,
    ) -> None:
        super().__init__(kernel, X, Z, dtype=dtype, n_jobs=n_jobs)
        self.array = dense_block(kernel, self.x, self.z, self.dtype, n_jobs, self.low, out)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(lapack.matmul(self.array, V.astype(self.dtype, copy=False)))

    def diag(self) -> Array:
        return self.array.diagonal().copy()

    def block(self, rows: Index, cols: Index) -> Array:
        return self.array[rows][:, cols]

    def dense(self) -> Array:
        return self.array

    def _transpose(self) -> GramOperator:
        return self if self.z is None else Precomputed(self.array.T)


class Precomputed(GramOperator):
    """A Gram matrix that came from elsewhere; it has no hyperparameters."""

    kind = "precomputed"

    def __init__(self, K: Table) -> None:
        self.array: Array = dense(check_vectors(K, "K"))
        super().__init__(self.array.dtype, self.array.shape)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(lapack.matmul(self.array, V.astype(self.dtype, copy=False)))

    def diag(self) -> Array:
        return self.array.diagonal().copy()

    def block(self, rows: Index, cols: Index) -> Array:
        return self.array[rows][:, cols]

    def dense(self) -> Array:
        return self.array

    def _transpose(self) -> Precomputed:
        return Precomputed(self.array.T)


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
        return self.F if self.G is self.F else None

    def program(self) -> Arguments | None:
        """That of the linear kernel on the rows of F."""
        return Tiles(Linear(), self.F).program() if self.G is self.F and self.F.shape[1] else None

    def _transpose(self) -> LowRank:
        return self if self.G is self.F else LowRank(self.G, self.F)


class Features(GramOperator):
    """Φ(X)Φ(Z)ᵀ for an explicit map; Φ is computed for a block of rows at a time and never stored whole."""

    kind = "features"

    def __init__(self, map: FeatureMap, X: Table | Rows, Z: Table | Rows | None = None) -> None:
        self.map = map
        self.x = Rows.of(X, "X")
        self.z = None if Z is None else Rows.of(Z, "Z")
        super().__init__(np.float64, (len(self.x), len(self.x if self.z is None else self.z)))

    def _phi(self, rows: Rows, index: Index) -> Array:
        return self.map(rows.rows(np.arange(len(rows))[index]).data)

    def _matmat(self, V: Array) -> Array:
        right = self.x if self.z is None else self.z
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
        return self._phi(self.x, rows) @ self._phi(self.x if self.z is None else self.z, cols).T

    def _transpose(self) -> Features:
        return self if self.z is None else Features(self.map, self.z, self.x)


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


# ── shared by the kinds ─────────────────────────────────────────────────────────────────────────────────────


def lowered(
    kernel: Kernel, x: Rows, z: Rows | None, dtype: npt.DTypeLike
) -> tuple[Lowered | None, tuple[str, ...]]:
    """The program, or None and the reason why NumPy does the work."""
    try:
        low = lower(kernel, x, z, dtype)
    except NotLowered as reason:
        return None, (f"evaluated by NumPy in blocks, because {reason}",)
    return low, tuple(dict.fromkeys(low.notes))


def stored_in_time(
    kernel: Kernel,
    X: Table | Rows,
    Z: Table | Rows | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    n_jobs: int | None = None,
    share: float = STORING,
) -> Dense | Tiles:
    """K stored; in tiles where storing it would take more than a share of the seconds left."""
    if not clock.limited():
        return Dense(kernel, X, Z, dtype=dtype, n_jobs=n_jobs)
    tiles = Tiles(kernel, X, Z, dtype=dtype, n_jobs=n_jobs)
    if tiles.low is None or np.prod(tiles.shape) * tiles.dtype.itemsize < LARGE:
        return Dense(kernel, X, Z, dtype=dtype, n_jobs=n_jobs)
    room = _room_in_time(tiles, share)
    if room is None:
        return tiles
    return Dense(kernel, tiles.x, tiles.z, dtype=dtype, n_jobs=n_jobs, out=room)


def _room_in_time(tiles: Tiles, share: float) -> Array | None:
    """Memory for K, taken from the system part by part; None where that and the entries take too long.

    Memory that is new to the process may cost more than the entries written to it.
    """
    began = clock.now()
    allowed = share * (clock.until() - began)
    some = panels(tiles.shape[0], tiles.dtype.itemsize, tiles.shape[1])[0]
    tiles.block(some, slice(None))
    entries = (clock.now() - began) * tiles.shape[0] / some.stop
    out = np.empty(tiles.shape, tiles.dtype)
    whole = out.reshape(-1).view(np.uint8)
    began = clock.now()
    for start in range(0, len(whole), PART):
        whole[start : start + PART : PAGE] = 0
        if entries + (clock.now() - began) * len(whole) / (start + PART) > allowed:
            return None
    return out


def dense_block(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    dtype: npt.DTypeLike,
    n_jobs: int | None,
    low: Lowered | None = None,
    out: Array | None = None,
) -> Array:
    """k(x, z) as an array, by the core where it can, and then in `out` if that is given."""
    if low is None:
        low, _ = lowered(kernel, x, z, dtype)
    if low is None:
        return kernel.block(x, z).astype(dtype, copy=False)
    K = core.gram(low, threads(n_jobs), out)
    if z is None and low.unit_diagonal:
        np.fill_diagonal(K, kernel.diagonal(x))
    return K


def block_of(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    rows: Index,
    cols: Index,
    dtype: npt.DTypeLike,
    n_jobs: int | None,
) -> Array:
    """Some rows against some columns; noise where both name the same observation."""
    i = np.arange(len(x))[rows]
    other = x if z is None else z
    j = np.arange(len(other))[cols]
    if not len(i) or not len(j):
        return np.empty((len(i), len(j)), dtype=dtype)
    out = dense_block(kernel, x.rows(i), other.rows(j), dtype, n_jobs)
    if z is None:
        a, b = blocks.same_observations(i, j)
        out[a, b] = kernel.diagonal(x.rows(i[a])) if len(a) else 0.0
    return out
