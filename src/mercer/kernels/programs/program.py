"""Programs in the making: the steps, the matrices they read, and the way back of every gradient.

`Lowered` is what the core is given. Every kernel writes its own steps (`Kernel.program`) at a `Place`, which
says what rows are seen there and how adjoints of those rows return to X, and collects what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer.arrays import Rows
from mercer.panels import column_ends
from mercer.samples import optional
from mercer.sparse import Matrix, dense
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

Pull = Callable[[Array], Array]

# The most steps of a program in the core.
MOST_STEPS = 1000


class NotLowered(Exception):
    """The expression has no program; the message says which part and why."""


class Link(NamedTuple):
    """One path from a number the core differentiates to a hyperparameter.

    `number` is a parameter of the program, or a (view, row, column) of the view gradients; column None sums
    them.
    """

    number: int | tuple[int, int, int | None]
    slot: int
    factor: float


class NamedLink(NamedTuple):
    """A link to the parameter of this full name, or to nothing where no parameter is called so."""

    number: int | tuple[int, int, int | None]
    name: str
    factor: float


class NamedColumns(NamedTuple):
    """Links from all columns of a view to a parameter with one number for each of them."""

    view: int
    name: str
    factors: Array


@dataclass
class View:
    """A matrix the primitives read, and the way its adjoint returns to the columns of X and of Z."""

    x: Matrix
    z: Matrix | None
    pull: Pull | None
    pull_z: Pull | None


@dataclass
class RowVectors:
    """Numbers per row (norms, factors): values, and what their adjoints mean."""

    u: Array
    v: Array | None
    # of `normalized`: the kernel whose diagonal made them
    inner: Lowered | None = None
    inner_z: Lowered | None = None
    # of norms: adjoint of u -> adjoint of the rows of X
    back_x: Pull | None = None
    back_z: Pull | None = None


@dataclass
class Lowered:
    """A kernel on data as the core takes it: program, data, and the paths of the gradient."""

    kernel: Kernel
    n: int
    m: int
    same: bool
    dtype: npt.DTypeLike
    code: list[tuple[str, int, int]] = field(default_factory=list)
    params: list[float] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    rows: list[RowVectors] = field(default_factory=list)
    columns: list[Array] = field(default_factory=list)
    named: list[NamedLink] = field(default_factory=list)
    named_columns: list[NamedColumns] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gradient: bool = False
    # Whole periods were taken off, so that the program must not be differentiated.
    folded: bool = False
    # A part is divided by its own norm: 1 on the diagonal, where rounding gives 1 - ulp.
    unit_diagonal: bool = False

    @cached_property
    def slots(self) -> dict[str, int]:
        """The places of the kernel's parameters by name."""
        return {p.name: i for i, p in enumerate(self.kernel.parameters)}

    @cached_property
    def links(self) -> list[Link]:
        """The paths of the gradient, with the places of its parameters: looked up once it is asked for."""
        named = list(self.named)
        for view, name, factors in self.named_columns:
            for j, factor in enumerate(factors.tolist()):
                named.append(NamedLink((view, 0, j), f"{name}[{j}]", factor))
        slots = self.slots
        return [Link(k, slots[name], factor) for k, name, factor in named if name in slots and factor != 0]


@dataclass(frozen=True, eq=False)
class Place:
    """Where in the expression a kernel writes: its rows, its name, the way adjoints of those rows go to X.

    What is written there goes into the one program `out`; `cache` holds the views that several kernels read.
    """

    out: Lowered
    x: Rows
    z: Rows | None
    pull: Pull | None
    path: str = ""
    cache: dict[Hashable, int] = field(default_factory=dict)

    def child(self, name: str) -> Place:
        """The place of a part that sees the same rows."""
        path = f"{self.path}{name}__"
        return Place(self.out, self.x, self.z, self.pull, path, self.cache)

    def mapped(self, map: Callable[[Rows], Rows], back: Pull | None) -> Place:
        """The place of a part that sees mapped rows; `back` takes their adjoints to the rows here."""
        x = map(self.x)
        z = optional(map, self.z)
        pull = _composed(self.pull, back)
        return Place(self.out, x, z, pull, f"{self.path}kernel__", self.cache)

    def showing(self, x: Matrix, z: Matrix | None) -> Place:
        """The same place with other matrices in place of the rows, which have no known way back."""
        rows_z = None if z is None or self.z is None else Rows(z, self.z.name)
        return Place(self.out, Rows(x, self.x.name), rows_z, None, self.path, self.cache)

    def alone(self, rows: Rows) -> Place:
        """A place on one sample with a program of its own, for the gradient of a diagonal."""
        out = Lowered(self.out.kernel, len(rows), len(rows), True, self.out.dtype, gradient=True)
        return Place(out, rows, None, self.pull, self.path)

    @property
    def width(self) -> int:
        return int(self.x.vectors.shape[1])

    def origin(self, X: Array, Z: Array | None) -> Array | None:
        """The common shift of these rows; that of one sample is looked for once."""
        if Z is not None:
            return origin(X, Z)
        if X is not self.x.vectors:
            return self.x.remembered("origin", lambda: origin(X, None))
        return self.x.remembered("origin", lambda: exact_shift(*self.x.ends(), X.dtype))

    def step(self, op: str, a: int = 0, b: int = 0) -> None:
        self.out.code.append((op, a, b))

    def param(self, value: float, name: str | None = None, factor: float = 1.0) -> int:
        """A number of the program; with a name, d(number)/d(parameter) is `factor`."""
        self.out.params.append(float(value))
        index = len(self.out.params) - 1
        if name is not None:
            self.link(index, name, factor)
        return index

    def link(self, index: int | tuple[int, int, int | None], name: str, factor: float) -> None:
        """Say that a number, or a column of a view, moves by `factor` with a parameter of the kernel here."""
        self.out.named.append(NamedLink(index, self.path + name, factor))

    def link_columns(self, view: int, name: str, factors: Array) -> None:
        """Say that every column of a view moves by its factor with its own number of a parameter."""
        self.out.named_columns.append(NamedColumns(view, self.path + name, factors))

    def linked(self, index: int) -> bool:
        """Whether a number of the program belongs to a parameter."""
        slots = self.out.slots
        return any(
            link.number == index and link.factor != 0 and link.name in slots for link in self.out.named
        )

    def rescale(self, index: int, factor: float) -> None:
        """Multiply a number of the program by a plain one, and its derivatives with it."""
        self.out.params[index] *= factor
        self.out.named[:] = [
            link._replace(factor=factor * link.factor) if link.number == index else link
            for link in self.out.named
        ]

    def affine(self, scale: int, offset: int | None = None) -> None:
        """scale · top + offset."""
        if offset is None:
            offset = self.param(0.0)
        self.step("AFFINE", scale, offset)

    def view(
        self,
        *,
        centred: bool = False,
        scale: Array | None = None,
        period: Array | None = None,
        dense_only: bool = False,
    ) -> int:
        """The rows as a matrix, shifted by a common origin if `centred`, then scaled column by column.

        With `period`, whole periods are taken off first (fmod is exact) unless a gradient is wanted. Unscaled
        views are shared by all who read them; a scaled one belongs to its kernel, whose gradient it carries.
        """
        X = self.x.vectors
        Z = None if self.z is None else self.z.vectors
        if sparse.issparse(X) or sparse.issparse(Z):
            X, Z = self._sparse_view(X, Z, centred, dense_only)
        # The rows themselves are the key: they are equal only to themselves, and the cache keeps them alive.
        key = (self.x, self.z, centred, dense_only)
        if scale is not None or key not in self.cache:
            shift = self.origin(X, Z) if centred and not sparse.issparse(X) else None
            fold = None if self.out.gradient else period
            self.out.folded |= fold is not None
            one = prepare(X, self.out.dtype, shift, fold, scale)
            two = None if Z is None else prepare(Z, self.out.dtype, shift, fold, scale)
            pull = _scaled_pull(self.pull, scale)
            index = self._keep_view(View(one, two, pull, pull))
            if scale is not None:
                return index
            self.cache[key] = index
        return self.cache[key]

    def _sparse_view(
        self, X: Matrix, Z: Matrix | None, centred: bool, dense_only: bool
    ) -> tuple[Matrix, Matrix | None]:
        """Rows of which some are sparse: all of them so, or none where that is needed or faster."""
        if dense_only or (centred and _mostly_full(X, Z)):
            why = "a kernel that looks at single columns" if dense_only else "speed: they are a quarter full"
            self.out.notes.append(f"sparse rows are written out densely for {why}")
            return dense(X), optional(dense, Z)
        return _stored_alike(X, Z)

    def add_view(self, x: Matrix, z: Matrix | None, pull: Pull | None, pull_z: Pull | None) -> int:
        """A matrix that was made elsewhere, and the ways back of its adjoints."""
        x, z = _stored_alike(x, z)
        return self._keep_view(View(x, z, pull, pull_z))

    def _keep_view(self, view: View) -> int:
        self.out.views.append(view)
        return len(self.out.views) - 1

    def weights(self, w: Array) -> int:
        self.out.columns.append(np.ascontiguousarray(w, dtype=np.float64))
        return len(self.out.columns) - 1

    def row_vectors(self, vectors: RowVectors) -> int:
        def cast(a: Array) -> Array:
            return np.ascontiguousarray(a, dtype=self.out.dtype)

        vectors.u = cast(vectors.u)
        vectors.v = None if vectors.v is None else cast(vectors.v)
        self.out.rows.append(vectors)
        return len(self.out.rows) - 1


def origin(X: Array, Z: Array | None) -> Array | None:
    """A shift that makes far-away data small *without any rounding*, or None where no column is far from 0.

    A column far from 0 (its middle beyond eight times its range) lives on a grid of spacing ulp(x); the shift
    is a multiple of a power of two not below that spacing, so every x - shift is exact and differences are
    unchanged.
    """
    low, high = column_ends(X)
    if Z is not None:
        lower, higher = column_ends(Z)
        low = np.minimum(low, lower)
        high = np.maximum(high, higher)
    return exact_shift(low, high, X.dtype)


def exact_shift(low: Array, high: Array, dtype: np.dtype) -> Array | None:
    """`origin` of rows whose columns have these ends."""
    low = low.astype(float, copy=False)
    high = high.astype(float, copy=False)
    ends = low + high
    spread = high - low
    far = np.abs(ends) > 16 * spread
    if not np.count_nonzero(far):
        return None
    middle = 0.5 * ends
    step = np.exp2(
        np.ceil(np.log2(np.maximum(spread, np.spacing(np.abs(middle).astype(dtype)).astype(float))))
    )
    return np.where(far, np.round(middle / step) * step, 0.0)


def _mostly_full(*matrices: Matrix | None) -> bool:
    """Whether all sparse matrices are at least a quarter full: dense rows are no larger and much faster."""
    return all(A is None or not sparse.issparse(A) or A.nnz >= 0.25 * np.prod(A.shape) for A in matrices)


def _stored_alike(X: Matrix, Z: Matrix | None) -> tuple[Matrix, Matrix | None]:
    """Both matrices sparse where one of them is."""
    if Z is None or sparse.issparse(X) == sparse.issparse(Z):
        return X, Z
    return sparse.csr_array(X), sparse.csr_array(Z)


def prepare(
    X: Matrix,
    dtype: npt.DTypeLike,
    shift: Array | None = None,
    period: Array | None = None,
    scale: Array | None = None,
) -> Matrix:
    """A matrix as the core reads it: shifted, whole periods taken off, and scaled, in this order."""
    if sparse.issparse(X):
        A = X if scale is None else X.multiply(scale[None, :]).tocsr()
        return sparse.csr_array(A).astype(dtype, copy=False)
    A = X
    if shift is not None:
        A = A.astype(np.float64, copy=False) - shift
    if period is not None:
        A = np.fmod(A.astype(np.float64, copy=False), period)
    if scale is not None:
        A = A.astype(np.float64, copy=False) * scale
    return np.ascontiguousarray(A, dtype=dtype)


def _scaled_pull(pull: Pull | None, scale: Array | None) -> Pull | None:
    if pull is None or scale is None:
        return pull
    return lambda adjoint: pull(adjoint * scale)


def _composed(pull: Pull | None, back: Pull | None) -> Pull | None:
    if pull is None or back is None:
        return None
    return lambda adjoint: pull(back(adjoint))


def scattered(index: Sequence[int], width: int) -> Pull:
    """The way back from chosen columns to all of them."""

    def back(adjoint: Array) -> Array:
        out = np.zeros((len(adjoint), width))
        for j, column in enumerate(index):
            out[:, column] += adjoint[:, j]
        return out

    return back
