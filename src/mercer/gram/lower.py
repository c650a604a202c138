"""From a kernel expression and its data to a short postfix program over tiles.

Each kernel class has one rule below: which primitive it reads (squared distance, dot product, a reduction over
columns), which steps follow, and how each hyperparameter enters, so that the gradient finds its way back. A leaf
without a rule is evaluated by NumPy in blocks instead (`blocks.py`); `NotLowered` says which one it was.

    RBF(2.0)*Linear() + White(0.1)   ->   SQDIST AFFINE RBF  DOT MUL  DELTA ADD
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse

from mercer.arrays import Rows, dense, require_nonnegative
from mercer.kernels import algebra, columns, dot, radial, special
from mercer.kernels.base import Kernel
from mercer.kernels.families import Leaf, squared_norms
from mercer.panels import column_ends

Pull = Callable[[np.ndarray], np.ndarray]

MOST_STEPS = 1000  # of a program in the core


class NotLowered(Exception):
    """The expression has no program; the message says which part and why."""


@dataclass(frozen=True)
class Link:
    """One path from a number the core differentiates to a hyperparameter.

    `index` is a parameter of the program, or a (view, row, column) of the view gradients; column None sums them.
    """

    index: int | tuple[int, int, int | None]
    slot: int
    factor: float


@dataclass
class View:
    """A matrix the primitives read, and the way its adjoint returns to the columns of X and of Z."""

    x: Any
    z: Any
    pull: Pull | None
    pull_z: Pull | None


@dataclass
class RowVectors:
    """Numbers per row (norms, factors): values, and what their adjoints mean."""

    u: np.ndarray
    v: np.ndarray | None
    inner: Lowered | None = None  # of `normalized`: the kernel whose diagonal made them
    inner_z: Lowered | None = None
    back_x: Pull | None = None  # of norms: adjoint of u -> adjoint of the rows of X
    back_z: Pull | None = None


@dataclass
class Lowered:
    """A kernel on data as the core takes it: program, data, and the paths of the gradient."""

    kernel: Kernel
    n: int
    m: int
    same: bool
    dtype: Any
    code: list[tuple[str, int, int]] = field(default_factory=list)
    params: list[float] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    rows: list[RowVectors] = field(default_factory=list)
    columns: list[np.ndarray] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gradient: bool = False
    unit_diagonal: bool = (
        False  # a part is divided by its own norm: 1 on the diagonal, where rounding gives 1 - ulp
    )


def lower(
    kernel: Kernel, x: Rows, z: Rows | None, dtype: Any = np.float64, *, gradient: bool = False
) -> Lowered:
    """The program of `kernel` on these rows; raises `NotLowered` where there is none.

    With `gradient` the program may be differentiated; without, phases are first reduced by whole periods, which keeps
    their digits but forgets how many periods lay between two points.
    """
    slots = {p.name: i for i, p in enumerate(kernel.parameters)}
    out = Lowered(kernel, len(x), len(x if z is None else z), z is None, dtype, gradient=gradient)
    builder = Builder(out, slots, {})
    emit(kernel, builder, Place(x, z, "", lambda adjoint: adjoint))
    if len(out.code) > MOST_STEPS:
        raise NotLowered(f"its program has {len(out.code)} steps, and {MOST_STEPS} are the most")
    return out


@dataclass(frozen=True)
class Place:
    """Where in the expression we are: its rows, its name, and the way adjoints of those rows go back to X."""

    x: Rows
    z: Rows | None
    path: str
    pull: Pull | None

    def child(self, name: str) -> Place:
        return Place(self.x, self.z, f"{self.path}{name}__", self.pull)

    def moved(self, x: Rows, z: Rows | None, pull: Pull | None) -> Place:
        return Place(x, z, f"{self.path}kernel__", pull)

    @property
    def width(self) -> int:
        return self.x.vectors.shape[1]


@dataclass
class Builder:
    """Collects the program and the data it reads."""

    out: Lowered
    slots: dict[str, int]
    cache: dict[Any, int]

    def step(self, op: str, a: int = 0, b: int = 0) -> None:
        self.out.code.append((op, a, b))

    def param(self, value: float, place: Place | None = None, name: str = "", factor: float = 1.0) -> int:
        """A number of the program; with a name, d(number)/d(parameter) is `factor`."""
        self.out.params.append(float(value))
        index = len(self.out.params) - 1
        if place is not None:
            self.link(index, place, name, factor)
        return index

    def link(self, index: Any, place: Place, name: str, factor: float) -> None:
        slot = self.slots.get(place.path + name)
        if slot is not None and factor != 0:
            self.out.links.append(Link(index, slot, factor))

    def affine(self, scale: int, offset: int | None = None) -> None:
        self.step("AFFINE", scale, self.param(0.0) if offset is None else offset)

    def view(
        self,
        place: Place,
        *,
        centred: bool = False,
        scale: np.ndarray | None = None,
        period: np.ndarray | None = None,
        dense_only: bool = False,
    ) -> int:
        """The rows as a matrix, shifted by a common origin if `centred`, then scaled column by column.

        With `period`, whole periods are taken off first (fmod is exact) unless a gradient is wanted.
        Unscaled views are shared by all who read them; a scaled one belongs to its kernel, whose gradient it carries.
        """
        X, Z = place.x.vectors, None if place.z is None else place.z.vectors
        if (dense_only or (centred and _mostly_full(X, Z))) and (sparse.issparse(X) or sparse.issparse(Z)):
            why = "a kernel that looks at single columns" if dense_only else "speed: they are a quarter full"
            self.out.notes.append(f"sparse rows are written out densely for {why}")
            X, Z = dense(X), None if Z is None else dense(Z)
        if sparse.issparse(X) != sparse.issparse(Z) and Z is not None:
            X, Z = sparse.csr_array(X), sparse.csr_array(Z)
        # The rows themselves are the key: they are equal only to themselves, and the cache keeps them alive.
        key = (place.x, place.z, centred, dense_only)
        if scale is not None or key not in self.cache:
            shift = origin(X, Z) if centred and not sparse.issparse(X) else None
            fold = None if self.out.gradient else period
            one = _prepare(X, shift, fold, scale, self.out.dtype)
            two = None if Z is None else _prepare(Z, shift, fold, scale, self.out.dtype)
            pull = _scaled_pull(place.pull, scale)
            self.out.views.append(View(one, two, pull, pull))
            if scale is not None:
                return len(self.out.views) - 1
            self.cache[key] = len(self.out.views) - 1
        return self.cache[key]

    def weights(self, w: np.ndarray) -> int:
        self.out.columns.append(np.ascontiguousarray(w, dtype=np.float64))
        return len(self.out.columns) - 1

    def row_vectors(self, vectors: RowVectors) -> int:
        def cast(a: np.ndarray | None) -> Any:
            return None if a is None else np.ascontiguousarray(a, dtype=self.out.dtype)

        vectors.u, vectors.v = cast(vectors.u), cast(vectors.v)
        self.out.rows.append(vectors)
        return len(self.out.rows) - 1


def origin(X: np.ndarray, Z: np.ndarray | None) -> np.ndarray | None:
    """A shift that makes far-away data small *without any rounding*, or None where no column is far from 0.

    A column far from 0 (its middle beyond eight times its range) lives on a grid of spacing ulp(x); the shift is a
    multiple of a power of two not below that spacing, so every x - shift is exact and differences are unchanged.
    """
    ends = [column_ends(A) for A in (X, Z) if A is not None]
    low = np.min([a.astype(float) for a, _ in ends], axis=0)
    high = np.max([b.astype(float) for _, b in ends], axis=0)
    middle, spread = 0.5 * (low + high), high - low
    far = np.abs(middle) > 8 * spread
    if not far.any():
        return None
    step = np.exp2(
        np.ceil(np.log2(np.maximum(spread, np.spacing(np.abs(middle).astype(X.dtype)).astype(float))))
    )
    return np.where(far, np.round(middle / step) * step, 0.0)


def _mostly_full(*matrices: Any) -> bool:
    """Whether every sparse matrix is at least a quarter full, so that dense rows are no larger and much faster."""
    return all(A is None or not sparse.issparse(A) or A.nnz >= 0.25 * np.prod(A.shape) for A in matrices)


def _prepare(
    X: Any, shift: np.ndarray | None, period: np.ndarray | None, scale: np.ndarray | None, dtype: Any
) -> Any:
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


def _scaled_pull(pull: Pull | None, scale: np.ndarray | None) -> Pull | None:
    if pull is None or scale is None:
        return pull
    return lambda adjoint: pull(adjoint * scale)


# ── one rule per kernel ─────────────────────────────────────────────────────────────────────────────────────


@singledispatch
def emit(k: Kernel, b: Builder, at: Place) -> None:
    raise NotLowered(f"{type(k).__name__} has no program")


def _squared_distance(k: Leaf, b: Builder, at: Place) -> None:
    """s = Σ ((x - z)/ℓ)²: one ℓ multiplies the sum, so that differences stay exact; several scale the columns."""
    value = k.lengthscale  # type: ignore[attr-defined]
    for length in value if isinstance(value, tuple) else (value,):
        _require_usual(length, k)
    if isinstance(value, tuple):
        scale = 1 / k._per_column("lengthscale", at.width)
        v = b.view(at, centred=True, scale=scale)
        b.step("SQDIST", v)
        for j, length in enumerate(value):
            b.link((v, 0, j), at, f"lengthscale[{j}]", -2 / length)
        return
    b.step("SQDIST", b.view(at, centred=True))
    b.affine(b.param(value**-2.0, at, "lengthscale", -2 * value**-3.0))


def _require_usual(value: float, k: Leaf) -> None:
    if not 1e-90 < value < 1e90:
        raise NotLowered(
            f"{type(k).__name__} with a lengthscale of {value:g} needs the care of the NumPy spelling"
        )


@emit.register(radial.RBF)
def _(k: radial.RBF, b: Builder, at: Place) -> None:
    _squared_distance(k, b, at)
    b.step("RBF")


@emit.register(radial.Exponential)
def _(k: radial.Exponential, b: Builder, at: Place) -> None:
    _squared_distance(k, b, at)
    b.step("EXPNEG")


@emit.register(radial.Matern)
def _(k: radial.Matern, b: Builder, at: Place) -> None:
    steps = {0.5: "EXPNEG", 1.5: "MATERN32", 2.5: "MATERN52"}
    if k.nu not in steps:
        raise NotLowered(
            f"Matern with nu = {k.nu:g} needs Bessel functions; nu = 1/2, 3/2 and 5/2 have a program"
        )
    _squared_distance(k, b, at)
    b.step(steps[k.nu])


@emit.register(radial.RationalQuadratic)
def _(k: radial.RationalQuadratic, b: Builder, at: Place) -> None:
    _squared_distance(k, b, at)
    b.step("RQ", b.param(k.alpha, at, "alpha"))


@emit.register(dot.Linear)
def _(k: dot.Linear, b: Builder, at: Place) -> None:
    b.step("DOT", b.view(at))


@emit.register(dot.Polynomial)
def _(k: dot.Polynomial, b: Builder, at: Place) -> None:
    b.step("DOT", b.view(at))
    b.affine(b.param(k.scale, at, "scale"), b.param(k.offset, at, "offset"))
    b.step("POWI", 0, k.degree)


@emit.register(dot.ExpDot)
def _(k: dot.ExpDot, b: Builder, at: Place) -> None:
    b.step("DOT", b.view(at))
    b.affine(b.param(k.scale, at, "scale"))
    b.step("EXP")


@emit.register(dot.Sigmoid)
@emit.register(dot.Logistic)
def _(k: dot.Sigmoid | dot.Logistic, b: Builder, at: Place) -> None:
    b.step("DOT", b.view(at))
    b.affine(b.param(k.scale, at, "scale"), b.param(k.offset, at, "offset"))
    b.step("TANH" if isinstance(k, dot.Sigmoid) else "LOGISTIC")


@emit.register(dot.Dot)
def _(k: dot.Dot, b: Builder, at: Place) -> None:
    if not isinstance(k.taylor, tuple):
        raise NotLowered("Dot with a Python function")
    b.step("DOT", b.view(at))
    _horner(k.taylor, b)


def _horner(coefs: tuple[float, ...], b: Builder) -> None:
    first = len(b.out.params)
    for c in coefs:
        b.param(c)
    b.step("HORNER", first, len(coefs))


@emit.register(columns.Laplacian)
def _(k: columns.Laplacian, b: Builder, at: Place) -> None:
    value = k.lengthscale
    for length in value if isinstance(value, tuple) else (value,):
        _require_usual(length, k)
    if isinstance(value, tuple):
        v = b.view(at, centred=True, scale=1 / k._per_column("lengthscale", at.width), dense_only=True)
        b.step("L1", v)
        b.affine(b.param(-1.0))
        for j, length in enumerate(value):
            b.link((v, 0, j), at, f"lengthscale[{j}]", -1 / length)
    else:
        b.step("L1", b.view(at, centred=True, dense_only=True))
        b.affine(b.param(-1 / value, at, "lengthscale", value**-2.0))
    b.step("EXP")


@emit.register(columns.Periodic)
def _(k: columns.Periodic, b: Builder, at: Place) -> None:
    period, length = k._per_column("period", at.width), k._per_column("lengthscale", at.width)
    v = b.view(at, centred=True, scale=np.pi / period, period=period, dense_only=True)
    b.step("PERIODIC", v, b.weights(length**-2.0))
    for name, row, values, power in (("lengthscale", 0, length, -2.0), ("period", 1, period, -1.0)):
        for j, value in enumerate(values):
            several = isinstance(getattr(k, name), tuple)
            b.link((v, row, j), at, f"{name}[{j}]" if several else name, power / value)
    b.affine(b.param(-2.0))
    b.step("EXP")


@emit.register(columns.Cosine)
def _(k: columns.Cosine, b: Builder, at: Place) -> None:
    period = k._per_column("period", at.width)
    v = b.view(at, centred=True, scale=2 * np.pi / period, period=period, dense_only=True)
    b.step("COSPROD", v)
    for j, value in enumerate(period):
        b.link((v, 0, j), at, f"period[{j}]" if isinstance(k.period, tuple) else "period", -1 / value)


@emit.register(columns.AllSubsets)
def _(k: columns.AllSubsets, b: Builder, at: Place) -> None:
    b.step("ALLSUBSETS", b.view(at, dense_only=True))


@emit.register(columns.Brownian)
def _(k: columns.Brownian, b: Builder, at: Place) -> None:
    b.step("MINPROD", b.view(at, dense_only=True))


def _histograms(k: Leaf, at: Place) -> None:
    for rows in (at.x, at.z):
        if rows is not None:
            require_nonnegative(rows.vectors, type(k).__name__, rows.name)


@emit.register(columns.Intersection)
def _(k: columns.Intersection, b: Builder, at: Place) -> None:
    _histograms(k, at)
    b.step("MINSUM", b.view(at, dense_only=True))


@emit.register(columns.Chi2)
def _(k: columns.Chi2, b: Builder, at: Place) -> None:
    _histograms(k, at)
    b.step("CHI2", b.view(at, dense_only=True))
    b.affine(b.param(-k.gamma, at, "gamma", -1.0))
    b.step("EXP")


@emit.register(special.Constant)
def _(k: special.Constant, b: Builder, at: Place) -> None:
    b.step("CONST", b.param(k.value, at, "value"))


@emit.register(special.White)
def _(k: special.White, b: Builder, at: Place) -> None:
    b.step("DELTA", b.param(k.noise, at, "noise"))


@emit.register(special.Bilinear)
def _(k: special.Bilinear, b: Builder, at: Place) -> None:
    if k._proof() is None:
        raise NotLowered("Bilinear with a matrix that is not positive semi-definite")
    values, vectors = np.linalg.eigh(k.matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def mapped(rows: Rows) -> Rows:
        k._times_matrix(rows)
        return Rows(np.asarray(rows.vectors.astype(np.float64, copy=False) @ root), rows.name)

    pull = at.pull
    back = None if pull is None else lambda adjoint: pull(adjoint @ root.T)
    b.step("DOT", b.view(Place(mapped(at.x), None if at.z is None else mapped(at.z), at.path, back)))


def _norms(at: Place) -> RowVectors:
    """‖x‖ per row, with its derivative for the inputs."""

    def values(rows: Rows) -> np.ndarray:
        return np.sqrt(squared_norms(rows.vectors))

    def back(rows: Rows) -> Pull | None:
        pull = at.pull
        if pull is None:
            return None
        norm = values(rows)
        inverse = 1 / np.where(norm == 0, np.inf, norm)
        return lambda adjoint: pull((adjoint * inverse)[:, None] * dense(rows.vectors))

    other = at.x if at.z is None else at.z
    v = None if at.z is None else values(at.z)
    return RowVectors(values(at.x), v, back_x=back(at.x), back_z=back(other))


@emit.register(special.CosineSimilarity)
def _(k: special.CosineSimilarity, b: Builder, at: Place) -> None:
    def prepared(rows: Rows) -> tuple[Any, Pull | None]:
        U = special.unit_rows(rows.vectors)
        return _prepare(U, None, None, None, b.out.dtype), _unit_pull(at.pull, rows, U)

    (x, pull), (z, pull_z) = prepared(at.x), prepared(at.x if at.z is None else at.z)
    if at.z is not None and sparse.issparse(x) != sparse.issparse(z):
        x, z = sparse.csr_array(x), sparse.csr_array(z)
    b.out.views.append(View(x, None if at.z is None else z, pull, pull_z))
    b.step("DOT", len(b.out.views) - 1)
    b.out.unit_diagonal = True


def _unit_pull(pull: Pull | None, rows: Rows, U: Any) -> Pull | None:
    """Adjoint of x/‖x‖ -> adjoint of x: the part across x, divided by its length."""
    if pull is None:
        return None
    norm = np.sqrt(squared_norms(rows.vectors))
    inverse = 1 / np.where(norm == 0, np.inf, norm)

    def back(adjoint: np.ndarray) -> np.ndarray:
        unit = dense(U)
        across = adjoint - unit * np.einsum("ij,ij->i", unit, adjoint)[:, None]
        return pull(across * inverse[:, None])

    return back


@emit.register(special.ArcCosine)
def _(k: special.ArcCosine, b: Builder, at: Place) -> None:
    if k.order == 0:
        raise NotLowered("ArcCosine of order 0 would lose half its digits near the angles 0 and π")
    b.step("DOT", b.view(at))
    b.step("ARCCOS", b.row_vectors(_norms(at)), k.order)


@emit.register(special.SpectralMixture)
def _(k: special.SpectralMixture, b: Builder, at: Place) -> None:
    k._check_columns(at.x)
    for q, weight in enumerate(k.weights):
        mean, scale = np.ravel(k.means[q]).astype(float), np.ravel(k.scales[q]).astype(float)
        wide = isinstance(k.means[q], tuple)
        gauss = b.view(at, centred=True, scale=2 * np.pi * scale, dense_only=True)
        b.step("SQDIST", gauss)
        b.step("RBF")
        wave = b.view(at, centred=True, scale=2 * np.pi * mean, dense_only=True)
        b.step("COSPROD", wave)
        for j in range(len(mean)):
            tail = f"[{q}][{j}]" if wide else f"[{q}]"
            b.link((gauss, 0, j), at, f"scales{tail}", 2 / scale[j])
            b.link((wave, 0, j), at, f"means{tail}", 1 / mean[j] if mean[j] else 0.0)
        b.step("MUL")
        b.affine(b.param(weight, at, f"weights[{q}]"))
        if q:
            b.step("ADD")


# ── combinations ────────────────────────────────────────────────────────────────────────────────────────────


@emit.register(algebra.Scaled)
def _(k: algebra.Scaled, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.child("kernel"))
    b.affine(b.param(k.scale, at, "scale"))


@emit.register(algebra.Sum)
@emit.register(algebra.Product)
def _(k: algebra.Sum | algebra.Product, b: Builder, at: Place) -> None:
    for i, (name, part) in enumerate(k._children()):
        emit(part, b, at.child(name))
        if i:
            b.step("ADD" if isinstance(k, algebra.Sum) else "MUL")


@emit.register(algebra.Power)
def _(k: algebra.Power, b: Builder, at: Place) -> None:
    p = k.exponent
    if p != int(p) and k.kernel._root_proof() is None:
        raise NotLowered("a fractional power of a kernel that may be negative")
    if k._revives:
        raise NotLowered("a power so small that it is taken of logarithms, where values vanish")
    emit(k.kernel, b, at.child("kernel"))
    if p == int(p):
        b.step("POWI", 0, int(p))
    else:
        b.step("POW", b.param(p))


@emit.register(algebra.Exp)
def _(k: algebra.Exp, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.child("kernel"))
    b.step("EXP")


@emit.register(algebra.PolynomialOf)
def _(k: algebra.PolynomialOf, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.child("kernel"))
    _horner(k.coefs, b)


@emit.register(algebra.Times)
def _(k: algebra.Times, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.child("kernel"))
    v = None if at.z is None else k._factor(at.z)
    b.step("ROWSCALE", b.row_vectors(RowVectors(k._factor(at.x), v)))


@emit.register(algebra.Of)
def _(k: algebra.Of, b: Builder, at: Place) -> None:
    x, z = k._mapped(at.x), None if at.z is None else k._mapped(at.z)
    if z is not None:
        k.kernel._check_same_columns(x, z)
    emit(k.kernel, b, at.moved(x, z, None))


@emit.register(algebra.LinearMap)
def _(k: algebra.LinearMap, b: Builder, at: Place) -> None:
    x, z = k._mapped(at.x), None if at.z is None else k._mapped(at.z)
    A, pull = np.array(k.A), at.pull
    emit(k.kernel, b, at.moved(x, z, None if pull is None else lambda adjoint: pull(adjoint @ A)))


@emit.register(algebra.On)
def _(k: algebra.On, b: Builder, at: Place) -> None:
    x, z = at.x.take(k.columns), None if at.z is None else at.z.take(k.columns)
    pull = at.pull
    if pull is not None:
        index = [i for c in k.columns for i in at.x._positions(c)]
        width = at.x.width

        def scatter(adjoint: np.ndarray) -> np.ndarray:
            out = np.zeros((len(adjoint), width))
            for j, column in enumerate(index):
                out[:, column] += adjoint[:, j]
            return pull(out)

        emit(k.kernel, b, at.moved(x, z, scatter))
        return
    emit(k.kernel, b, at.moved(x, z, None))


@emit.register(algebra.Normalized)
def _(k: algebra.Normalized, b: Builder, at: Place) -> None:
    if isinstance(k.kernel, dot.ExpDot):
        # e^(c x·z) over its norms is a Gaussian, e^(-c‖x - z‖²/2), and never overflows.
        b.step("SQDIST", b.view(at, centred=True))
        b.affine(b.param(k.kernel.scale, at.child("kernel"), "scale"))
        b.step("RBF")
        return
    u = k._norms(at.x, b.out.dtype)
    v = None if at.z is None else k._norms(at.z, b.out.dtype)
    if u is None or (at.z is not None and v is None):
        raise NotLowered("its norms leave the range of numbers, and their logarithms do not")
    emit(k.kernel, b, at.child("kernel"))
    inner = _diagonal_program(k, b, at, at.x)
    inner_z = None if at.z is None else _diagonal_program(k, b, at, at.z)
    b.step("ROWSCALE", b.row_vectors(RowVectors(u, v, inner, inner_z)))
    b.out.unit_diagonal = True


def _diagonal_program(k: algebra.Normalized, b: Builder, at: Place, rows: Rows) -> Lowered:
    """The program of the kernel inside, on one sample, for the gradient of its diagonal."""
    out = Lowered(b.out.kernel, len(rows), len(rows), True, b.out.dtype, gradient=True)
    inside = Place(rows, None, f"{at.path}kernel__", at.pull)
    emit(k.kernel, Builder(out, b.slots, {}), inside)
    return out
