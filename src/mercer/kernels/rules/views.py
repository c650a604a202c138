"""A kernel on what a map makes of the rows: a function, a matrix, a choice of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from mercer.arrays import Column, Rows
from mercer.errors import ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.leaves.writing import latex_value, write_text, write_value
from mercer.kernels.maps.spectral import Mapped, Spectrum
from mercer.kernels.programs.program import Place, Pull, scattered
from mercer.kernels.proofs.enclosure import Enclosed, Sample, dot
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.rules.combined import View, ViewOfAnything
from mercer.kernels.rules.readings import Read
from mercer.kernels.rules.spaces import InSpace
from mercer.kernels.things.reading import Reading
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import coefficients, given
from mercer.sparse import dense
from mercer.typing import Array, Table


def after(kernel: Kernel, map: Callable[[Table], Table] | Reading | Kernel | Table) -> Kernel:
    """k(ψ(x), ψ(z)) for a function ψ, a matrix, a named reading, or the feature space of a kernel."""
    if isinstance(map, Reading):
        return Read(kernel, map)
    if isinstance(map, Kernel):
        return InSpace(kernel, map)
    if callable(map):
        return Of(kernel, map)
    return LinearMap(kernel, map)  # type: ignore[arg-type]


@expression
class Of(ViewOfAnything):
    """k(ψ(x), ψ(z)) for any map ψ."""

    kernel: Kernel = given()
    map: Callable[[Table], Table] = given()

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self.mapped(x)
        if z is None:
            return self.kernel.block(a, None)
        b = self.mapped(z)
        self.kernel.compare_columns(a, b)
        return self.kernel.block(a, b)

    def program(self, at: Place) -> None:
        inside = at.mapped(self.mapped, None)
        self.kernel.check_same_columns(inside.x, inside.z)
        self.kernel.program(inside)

    @property
    def keeps_zeros(self) -> bool:
        """Nobody knows what the map makes of sparse rows."""
        return False

    def mapped(self, x: Rows) -> Rows:
        return x.mapped(self.map, write_value(self.map))

    def compare_columns(self, x: Rows, z: Rows) -> None:
        """The map decides what it takes; its results are compared in `block`."""

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({write_value(self.map)})"

    def latex(self) -> str:
        name = rf"\mathrm{{{latex_value(self.map)}}}"
        return rf"\left[{self.kernel.latex()}\right]_{{x\to{name}(x),\,z\to{name}(z)}}"


@expression
class LinearMap(View):
    """k(Ax, Az) for a matrix A."""

    kernel: Kernel = given()
    A: tuple[tuple[float, ...], ...] = coefficients(
        ndim=2, words="a matrix of finite numbers, one row per new column"
    )

    why: ClassVar = "the Gram matrix is that of k at the points Ax_i"

    def compare_columns(self, x: Rows, z: Rows) -> None:
        """The matrix takes all columns; what is inside sees those that it makes of them."""
        z.require_columns_of(x)

    @property
    def keeps_zeros(self) -> bool:
        """A product with a matrix is dense."""
        return False

    def mapped(self, x: Rows) -> Rows:
        X = x.vectors
        d = len(self.A[0])
        if X.shape[1] != d:
            raise ShapeError(f"of(A): A has {d} columns, but {x.name} has {X.shape[1]}.")
        return Rows(np.asarray(X.astype(np.float64, copy=False) @ np.array(self.A).T), f"A{x.name}")

    def _way_back(self, at: Place) -> Pull:
        A = np.array(self.A)
        return lambda adjoint: adjoint @ A

    def columns_needed(self) -> tuple[int | None, int]:
        return len(self.A[0]), len(self.A[0])

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        A = np.array(self.A)
        if A.shape[1] != d:
            raise ShapeError(f"of(A): A has {A.shape[1]} columns, but there are {d}.")
        inner = self.kernel.spectrum(len(A))
        return Mapped(d, inner.amplitude, inner, A)

    def enclosed(self, sample: Sample) -> Enclosed:
        A = [[Interval.exact(v) for v in row] for row in self.A]
        points = [[dot(row, x) for row in A] for x in sample.vectors()]
        return self.kernel.enclosed(Sample(self.mapped(sample.rows), points))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.of({write_value(self.A)})"

    def latex(self) -> str:
        return rf"\left[{self.kernel.latex()}\right]_{{x\to Ax,\,z\to Az}}"


@expression
class On(View):
    """k on some of the columns."""

    kernel: Kernel = given()
    columns: tuple[Column, ...] = given()

    why: ClassVar = "choosing columns is a map ψ"

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = self.columns if isinstance(self.columns, tuple) else (self.columns,)
        if not columns:
            raise ParameterError(
                'on() needs at least one column: a name, a number or a slice, as in k.on("age", 3).'
            )
        for c in columns:
            if isinstance(c, bool) or not isinstance(c, str | int | slice | np.integer):
                raise ParameterError(f"on(): a column is a name, a number or a slice; got {c!r}.")
            if isinstance(c, slice):
                _check_slice(c)
        made = tuple(int(c) if isinstance(c, np.integer) else c for c in columns)
        object.__setattr__(self, "columns", made)

    def reads_numbers(self) -> bool:
        """Only the columns that were chosen are read."""
        return False

    def columns_read(self) -> frozenset[Column] | None:
        """Slices depend on the order of all columns."""
        if any(isinstance(c, slice) for c in self.columns):
            return None
        return frozenset(self.columns)

    def compare_columns(self, x: Rows, z: Rows) -> None:
        self.kernel.compare_columns(self.mapped(x), self.mapped(z))

    def columns_needed(self) -> tuple[int | None, int]:
        ends = [1]
        for c in self.columns:
            if isinstance(c, slice):
                stop = c.stop if c.stop is not None else (c.start or 0) + 1
                ends.append(abs(stop))
            elif isinstance(c, int):
                ends.append(c + 1 if c >= 0 else -c)
        return None, max(ends)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        columns = self.mapped(Rows(np.eye(d), "X", names))
        A = np.asarray(columns.vectors).T
        inner = self.kernel.spectrum(len(A), columns.names)
        return Mapped(d, inner.amplitude, inner, A)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        inner = self.kernel.sparse_map(self.mapped(x))
        if inner is None:
            return None
        column = ", ".join(str(c) for c in self.columns)
        return inner.seen_through(self.mapped, f"{column}: ")

    @property
    def keeps_zeros(self) -> bool:
        """Some of the columns of sparse rows are sparse."""
        return True

    def mapped(self, x: Rows) -> Rows:
        return x.take(self.columns)

    def _way_back(self, at: Place) -> Pull | None:
        if at.pull is None:
            return None
        return scattered(at.x.positions(self.columns), at.x.width)

    def enclosed(self, sample: Sample) -> Enclosed:
        points = sample.vectors()
        numbers = self.mapped(Rows(np.arange(float(len(points[0])))[None, :], names=sample.rows.names))
        index = [int(j) for j in dense(numbers.vectors)[0]]
        return self.kernel.enclosed(Sample(self.mapped(sample.rows), [[x[j] for j in index] for x in points]))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.on({', '.join(_write_column(c) for c in self.columns)})"

    def latex(self) -> str:
        shown = ", ".join(latex_value(c).replace("_", r"\_") for c in self.columns)
        return rf"\left[{self.kernel.latex()}\right]_{{\mathrm{{{shown}}}}}"


def named_columns(kernel: Kernel) -> tuple[str, ...]:
    """The names of the columns that `on(…)` asks for somewhere in the expression."""
    chosen = (c for part in kernel.walk() if isinstance(part, On) for c in part.columns)
    return tuple(dict.fromkeys(c for c in chosen if isinstance(c, str)))


def _check_slice(c: slice) -> None:
    try:
        c.indices(1)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"on(): a slice of columns is made of whole numbers; got {c}. ({error})"
        ) from error


def _write_column(c: Column) -> str:
    if isinstance(c, slice):
        parts = [c.start, c.stop]
        if c.step is not None:
            parts.append(c.step)
        return f"slice({', '.join(map(repr, parts))})"
    if isinstance(c, str):
        return write_text(c)
    return repr(c)
