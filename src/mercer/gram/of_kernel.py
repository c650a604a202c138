"""The Gram operators of a kernel on rows: `Tiles` (K is never stored) and `Dense` (K is stored)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.errors import InputError, ShapeError
from mercer.gram import blocks, core
from mercer.gram.blocks import Index
from mercer.gram.core import Arguments
from mercer.gram.lower import lower, lowered
from mercer.gram.met_features import MetFeatures, met_features
from mercer.gram.operators import GramOperator, Precomputed, Stored
from mercer.kernels.base import Kernel
from mercer.kernels.programs.program import Lowered
from mercer.memory import room
from mercer.panels import Entries, panels
from mercer.samples import common_dtype, samples_of, second
from mercer.threads import threads, threads_for
from mercer.typing import Array, Numbers, Setting, Table

# Of the seconds left: what may go into storing K, whose products are then cheaper.
STORING = 0.5
# Bytes of a matrix that is stored without asking for the seconds.
LARGE = 64 << 20
# Bytes of memory taken from the system at one time.
PART = 32 << 20
# Bytes that the system gives at once.
PAGE = 4096


class OfKernel(GramOperator):
    """What `Tiles` and `Dense` share: a kernel, its rows, and the program of the two."""

    parts: core.Parts | None = None
    """Of pairs of rows that products and gradients by the program leave out; see `gram.distributed`."""

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
        self.x, self.z = samples_of(X, Z)
        kernel.check_same_columns(self.x, self.z)
        self.n_jobs = n_jobs
        dtype = np.dtype(common_dtype(self.x, self.z) if dtype is None else dtype)
        self.low, self.notes = lowered(kernel, self.x, self.z, dtype)
        super().__init__(dtype, (len(self.x), len(second(self.x, self.z))))

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
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.low is not None:
                low = self._differentiable
                values = core.contract(low, threads(self.n_jobs), U=U, V=V, W=W, parts=self.parts)
            else:
                values = blocks.contract(self.kernel, self.x, self.z, U=U, V=V, W=W)
            found = [v * p.derivative for v, p in zip(values, parameters, strict=True) if p.free]
        if not np.isfinite(found).all():
            self._require_finite_values()
        return np.array(found)

    def contract_inputs(
        self, U: Numbers | None = None, V: Numbers | None = None, *, W: Numbers | None = None
    ) -> tuple[Array, Array | None]:
        U, V, W = self._weights(U, V, W)
        if self.low is None:
            raise InputError(f"{self.kernel} has no input gradient: {self.notes[0]}.")
        found = core.contract_inputs(self._differentiable, threads(self.n_jobs), U=U, V=V, W=W)
        if not all(np.isfinite(part).all() for part in found if part is not None):
            self._require_finite_values()
        return found

    def _require_finite_values(self) -> None:
        """Refuse a kernel that overflows on these rows, as `kernel(X)` does.

        It is asked only where a sum is not finite; else no entry is looked at twice. Where all values are
        finite, it is their derivative or the weights that are not, and whoever contracts can say more.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for rows in panels(self.shape[0], self.dtype.itemsize, self.shape[1]):
                self.kernel.require_finite(self.block(rows, slice(None)), first=rows.start)

    @cached_property
    def _differentiable(self) -> Lowered:
        """The program for gradients: the same one, unless it has forgotten whole periods."""
        if self.low is not None and not self.low.folded:
            return self.low
        return lower(self.kernel, self.x, self.z, self.dtype, gradient=True)

    def __getstate__(self) -> dict[str, Setting]:
        """Without the programs: they hold functions and handles of the core.

        They follow from the kernel and its rows.
        """
        left = ("low", "_differentiable", "met")
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Setting]) -> None:
        self.__dict__.update(state)
        self.low, _ = lowered(self.kernel, self.x, self.z, self.dtype)


class Tiles(OfKernel):
    """K is never stored: every product computes its tiles anew, in cache.

    Of things that a kernel counts the features of, it goes by those: no pair of things is looked at.
    """

    kind = "tiles"

    @cached_property
    def met(self) -> MetFeatures | None:
        """The features that the things have, where the kernel is their inner product."""
        return met_features(self.kernel, self.x, self.z)

    def _matmat(self, V: Array) -> Array:
        if self.met is not None:
            return self.met.times(V).astype(self.dtype, copy=False)
        if self.low is not None:
            return core.apply(self.low, V, threads_for(self.n_jobs, self.low.n * self.low.m), self.parts)
        return blocks.apply(self.kernel, self.x, self.z, V).astype(self.dtype, copy=False)

    def block(self, rows: Index, cols: Index) -> Array:
        if self.met is not None:
            return self.met.block(rows, cols).astype(self.dtype, copy=False)

        def evaluate(x: Rows, z: Rows) -> Array:
            return computed(self.kernel, x, z, self.dtype, self.n_jobs)[0]

        out = blocks.block(self.kernel, self.x, self.z, rows, cols, evaluate)
        return out.astype(self.dtype, copy=False)

    def dense(self) -> Array:
        return computed(self.kernel, self.x, self.z, self.dtype, self.n_jobs, self.low)[0]

    def program(self) -> Arguments | None:
        if self.low is None:
            return None
        return core.arguments(self.low)

    def _transpose(self) -> Tiles:
        if self.z is None:
            return self
        return Tiles(self.kernel, self.z, self.x, dtype=self.dtype, n_jobs=self.n_jobs)


class Dense(Stored, OfKernel):
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
        # `finite`: the core saw every entry, and all of them are; False also where it was not asked.
        self.array, self.finite = computed(kernel, self.x, self.z, self.dtype, n_jobs, self.low, out)

    def _matmat(self, V: Array) -> Array:
        if self.z is not None:
            return super()._matmat(V)
        # Of a symmetric matrix Fortran may read the columns, which is quicker.
        return lapack.matmul(self.array.T, V.astype(self.dtype, copy=False), order="F")

    def in_memory(self) -> Entries | None:
        if self.z is not None:
            return None
        return Entries(self.array, n_jobs=self.n_jobs)

    def _transpose(self) -> GramOperator:
        if self.z is None:
            return self
        return Precomputed(self.array.T)


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
    taken = _room_in_time(tiles, share)
    if taken is None:
        return tiles
    return Dense(kernel, tiles.x, tiles.z, dtype=dtype, n_jobs=n_jobs, out=taken)


def _room_in_time(tiles: Tiles, share: float) -> Array | None:
    """Memory for K, taken from the system part by part; None where that and the entries take too long.

    Memory that is new to the process may cost more than the entries written to it.
    """
    began = clock.now()
    allowed = share * (clock.until() - began)
    some = panels(tiles.shape[0], tiles.dtype.itemsize, tiles.shape[1])[0]
    tiles.block(some, slice(None))
    entries = (clock.now() - began) * tiles.shape[0] / some.stop
    out = room(tiles.shape, tiles.dtype)
    whole = out.reshape(-1).view(np.uint8)
    began = clock.now()
    for start in range(0, len(whole), PART):
        whole[start : start + PART : PAGE] = 0
        if entries + (clock.now() - began) * len(whole) / (start + PART) > allowed:
            return None
    return out


def computed(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    dtype: npt.DTypeLike,
    n_jobs: int | None,
    low: Lowered | None = None,
    out: Array | None = None,
) -> tuple[Array, bool]:
    """k(x, z) as an array, by the core where it can, and then in `out` if that is given.

    The second value is true if all entries are known to be finite.
    """
    if low is None:
        low, _ = lowered(kernel, x, z, dtype)
    if low is None:
        return kernel.block(x, z).astype(dtype, copy=False), False
    K, finite = core.gram(low, threads_for(n_jobs, low.n * low.m), out)
    if z is None and low.unit_diagonal:
        diagonal = kernel.diagonal(x)
        np.fill_diagonal(K, diagonal)
        finite = finite and bool(np.isfinite(diagonal).all())
    return K, finite
