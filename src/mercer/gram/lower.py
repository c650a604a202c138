"""From a kernel expression and its data to a short postfix program over tiles.

A leaf of a family reads its primitive (squared distance, dot product, a reduction over columns), and the
steps of its formula follow (`steps`); combinations and leaves of no family have one rule each. Every
hyperparameter leaves a link, so that the gradient finds its way back. What has no program is evaluated by
NumPy in blocks instead (`blocks.py`); `NotLowered` says what it was.

    RBF(2.0)*Linear() + White(0.1)   ->   SQDIST AFFINE RBF  DOT MUL  DELTA ADD
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mercer.arrays import Rows, require_nonnegative
from mercer.gram.program import (
    MOST_STEPS,
    Builder,
    Lowered,
    NotLowered,
    Place,
    Pull,
    RowVectors,
    View,
    prepare,
)
from mercer.gram.steps import emit_value
from mercer.gram.terms import write_columns
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.formulas.formula import Values
from mercer.kernels.leaves import columns, dot, special
from mercer.kernels.leaves.distances import squared_norms
from mercer.kernels.leaves.families import DotProduct, PerColumn, Radial
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.things.categories import Categorical
from mercer.kernels.things.counted import Counted
from mercer.sparse import Matrix, dense
from mercer.typing import Array


def lower(
    kernel: Kernel, x: Rows, z: Rows | None, dtype: npt.DTypeLike = np.float64, *, gradient: bool = False
) -> Lowered:
    """The program of `kernel` on these rows; raises `NotLowered` where there is none.

    With `gradient` the program may be differentiated; without, phases are first reduced by whole periods,
    which keeps their digits but forgets how many periods lay between two points.
    """
    slots = {p.name: i for i, p in enumerate(kernel.parameters)}
    out = Lowered(kernel, len(x), len(x if z is None else z), z is None, dtype, gradient=gradient)
    builder = Builder(out, slots, {})
    emit(kernel, builder, Place(x, z, "", lambda adjoint: adjoint))
    if len(out.code) > MOST_STEPS:
        raise NotLowered(f"its program has {len(out.code)} steps, and {MOST_STEPS} are the most")
    return out


# ── one rule per kernel ─────────────────────────────────────────────────────────────────────────────────────


@singledispatch
def emit(k: Kernel, b: Builder, at: Place) -> None:
    raise NotLowered(f"{type(k).__name__} has no program")


def _squared_distance(k: Leaf, b: Builder, at: Place) -> None:
    """s = Σ ((x - z)/ℓ)²: one ℓ multiplies the sum, so differences stay exact; several scale the columns."""
    value = k.closed_value("lengthscale")
    for length in value if isinstance(value, tuple) else (value,):
        _require_usual(length, k)
    if isinstance(value, tuple):
        scale = 1 / k.column_values("lengthscale", at.width)
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


@emit.register(Radial)
def _(k: Radial, b: Builder, at: Place) -> None:
    emit_value(k, b, at, lambda: _squared_distance(k, b, at))


@emit.register(DotProduct)
def _(k: DotProduct, b: Builder, at: Place) -> None:
    emit_value(k, b, at, lambda: b.step("DOT", b.view(at)))


@emit.register(PerColumn)
def _(k: PerColumn, b: Builder, at: Place) -> None:
    reduction = _REDUCTIONS.get((type(k).term, k.reduction), write_columns)
    if k.histogram:
        for rows in (at.x, at.z):
            if rows is not None:
                require_nonnegative(rows.vectors, type(k).__name__, rows.name)
    emit_value(k, b, at, lambda: reduction(k, b, at))


@emit.register(Counted)
def _(k: Counted, b: Builder, at: Place) -> None:
    if any(p.free for p in k.parameters):
        raise NotLowered(f"{type(k).__name__} has numbers of its own to tune")
    A, B = k.counted(at.x, at.z)
    x = Rows(A, at.x.name)
    z = None if B is None or at.z is None else Rows(B, at.z.name)
    b.step("DOT", b.view(Place(x, z, at.path, None)))


@emit.register(Categorical)
def _(k: Categorical, b: Builder, at: Place) -> None:
    """e^(Σ_j ([x_j = z_j] - 1)/ℓ_j): agreement is the inner product of indicators."""
    parts = k.indicators(at.x, at.z)
    lengths = k.column_values("lengthscale", len(parts))
    for j, ((A, B), length) in enumerate(zip(parts, lengths, strict=True)):
        z = None if B is None or at.z is None else Rows(B, at.z.name)
        b.step("DOT", b.view(Place(Rows(A, at.x.name), z, at.path, None)))
        name = _entry(k, "lengthscale", j)
        inverse = b.param(1 / length, at, name, -(length**-2.0))
        b.affine(inverse, b.param(-1 / length, at, name, length**-2.0))
        if j:
            b.step("ADD")
    b.step("EXP")


# ── reductions over columns, by the term that they add or multiply ──────────────────────────────────────────


Reduction: TypeAlias = Callable[[PerColumn, Builder, Place], None]


def _absolute(k: PerColumn, b: Builder, at: Place) -> None:
    """Σ |x - z|/ℓ."""
    value = k.closed_value("lengthscale")
    for length in value if isinstance(value, tuple) else (value,):
        _require_usual(length, k)
    if not isinstance(value, tuple):
        b.step("L1", b.view(at, centred=True, dense_only=True))
        b.affine(b.param(1 / value, at, "lengthscale", -(value**-2.0)))
        return
    v = b.view(at, centred=True, scale=1 / k.column_values("lengthscale", at.width), dense_only=True)
    b.step("L1", v)
    for j, length in enumerate(value):
        b.link((v, 0, j), at, f"lengthscale[{j}]", -1 / length)


def _periodic(k: PerColumn, b: Builder, at: Place) -> None:
    """Σ sin²(π(x - z)/p)/ℓ²."""
    period = k.column_values("period", at.width)
    length = k.column_values("lengthscale", at.width)
    v = b.view(at, centred=True, scale=np.pi / period, period=period, dense_only=True)
    b.step("PERIODIC", v, b.weights(length**-2.0))
    for name, row, values, power in (("lengthscale", 0, length, -2.0), ("period", 1, period, -1.0)):
        for j, value in enumerate(values):
            b.link((v, row, j), at, _entry(k, name, j), power / value)


def _cosines(k: PerColumn, b: Builder, at: Place) -> None:
    """Π cos(2π(x - z)/p)."""
    period = k.column_values("period", at.width)
    v = b.view(at, centred=True, scale=2 * np.pi / period, period=period, dense_only=True)
    b.step("COSPROD", v)
    for j, value in enumerate(period):
        b.link((v, 0, j), at, _entry(k, "period", j), -1 / value)


def _entry(k: Leaf, name: str, j: int) -> str:
    """The name of a parameter at column j: one number of several, or the one for all."""
    return f"{name}[{j}]" if isinstance(getattr(k, name), tuple) else name


def _plain(op: str) -> Reduction:
    return lambda k, b, at: b.step(op, b.view(at, dense_only=True))


_REDUCTIONS: dict[tuple[Callable[..., Values], str], Reduction] = {
    (columns.Laplacian.term, "sum"): _absolute,
    (columns.Periodic.term, "sum"): _periodic,
    (columns.Cosine.term, "product"): _cosines,
    (columns.AllSubsets.term, "product"): _plain("ALLSUBSETS"),
    (columns.Brownian.term, "product"): _plain("MINPROD"),
    (columns.Intersection.term, "sum"): _plain("MINSUM"),
    (columns.Chi2.term, "sum"): _plain("CHI2"),
}


@emit.register(special.Constant)
def _(k: special.Constant, b: Builder, at: Place) -> None:
    b.step("CONST", b.param(k.value, at, "value"))


@emit.register(special.White)
def _(k: special.White, b: Builder, at: Place) -> None:
    b.step("DELTA", b.param(k.noise, at, "noise"))


@emit.register(special.Bilinear)
def _(k: special.Bilinear, b: Builder, at: Place) -> None:
    if k.proof() is None:
        raise NotLowered("Bilinear with a matrix that is not positive semi-definite")
    values, vectors = np.linalg.eigh(k.matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def mapped(rows: Rows) -> Rows:
        k.times_matrix(rows)
        return Rows(np.asarray(rows.vectors.astype(np.float64, copy=False) @ root), rows.name)

    pull = at.pull
    back = None if pull is None else lambda adjoint: pull(adjoint @ root.T)
    b.step("DOT", b.view(Place(mapped(at.x), None if at.z is None else mapped(at.z), at.path, back)))


def _norms(at: Place) -> RowVectors:
    """‖x‖ per row, with its derivative for the inputs."""

    def values(rows: Rows) -> Array:
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
    def prepared(rows: Rows) -> tuple[Matrix, Pull | None]:
        U = special.unit_rows(rows.vectors)
        return prepare(U, None, None, None, b.out.dtype), _unit_pull(at.pull, rows, U)

    x, pull = prepared(at.x)
    z, pull_z = prepared(at.x if at.z is None else at.z)
    if at.z is not None and sparse.issparse(x) != sparse.issparse(z):
        x = sparse.csr_array(x)
        z = sparse.csr_array(z)
    b.out.views.append(View(x, None if at.z is None else z, pull, pull_z))
    b.step("DOT", len(b.out.views) - 1)
    b.out.unit_diagonal = True


def _unit_pull(pull: Pull | None, rows: Rows, U: Matrix) -> Pull | None:
    """Adjoint of x/‖x‖ -> adjoint of x: the part across x, divided by its length."""
    if pull is None:
        return None
    norm = np.sqrt(squared_norms(rows.vectors))
    inverse = 1 / np.where(norm == 0, np.inf, norm)

    def back(adjoint: Array) -> Array:
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
    k.check_columns(at.x)
    for q, weight in enumerate(k.weights):
        mean = np.ravel(k.means[q]).astype(float)
        scale = np.ravel(k.scales[q]).astype(float)
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
    for i, (name, part) in enumerate(k.children()):
        emit(part, b, at.child(name))
        if i:
            b.step("ADD" if isinstance(k, algebra.Sum) else "MUL")


@emit.register(algebra.Power)
def _(k: algebra.Power, b: Builder, at: Place) -> None:
    p = k.exponent
    if p != int(p) and k.kernel.root_proof() is None:
        raise NotLowered("a fractional power of a kernel that may be negative")
    if k.revives:
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
    first = len(b.out.params)
    for c in k.coefs:
        b.param(c)
    b.step("HORNER", first, len(k.coefs))


@emit.register(algebra.Times)
def _(k: algebra.Times, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.child("kernel"))
    v = None if at.z is None else k.factor(at.z)
    b.step("ROWSCALE", b.row_vectors(RowVectors(k.factor(at.x), v)))


@emit.register(algebra.Of)
def _(k: algebra.Of, b: Builder, at: Place) -> None:
    x = k.mapped(at.x)
    z = None if at.z is None else k.mapped(at.z)
    if z is not None:
        k.kernel.check_same_columns(x, z)
    emit(k.kernel, b, at.moved(x, z, None))


@emit.register(algebra.Read)
def _(k: algebra.Read, b: Builder, at: Place) -> None:
    emit(k.kernel, b, at.moved(k.mapped(at.x), None if at.z is None else k.mapped(at.z), None))


@emit.register(algebra.InSpace)
def _(k: algebra.InSpace, b: Builder, at: Place) -> None:
    """Distances of sparse features; what only the second sample has is one more column of it."""
    if any(p.free for p in k.space.parameters):
        raise NotLowered("the space of a kernel has numbers to tune")
    phi = k.space.sparse_map(at.x)
    if phi is None:
        raise NotLowered(f"{k.space} has no sparse features, so its distances are not those of rows")
    if at.z is None:
        emit(k.kernel, b, at.moved(Rows(phi.matrix, at.x.name), None, None))
        return
    B = phi(at.z)
    unseen = np.maximum(k.space.diagonal(at.z) - squared_norms(B), 0.0)
    x = sparse.hstack([phi.matrix, sparse.csr_array((len(at.x), 1))])
    z = sparse.hstack([B, sparse.csr_array(np.sqrt(unseen)[:, None])])
    emit(
        k.kernel,
        b,
        at.moved(Rows(sparse.csr_array(x), at.x.name), Rows(sparse.csr_array(z), at.z.name), None),
    )


@emit.register(algebra.LinearMap)
def _(k: algebra.LinearMap, b: Builder, at: Place) -> None:
    x = k.mapped(at.x)
    z = None if at.z is None else k.mapped(at.z)
    A = np.array(k.A)
    pull = at.pull
    emit(k.kernel, b, at.moved(x, z, None if pull is None else lambda adjoint: pull(adjoint @ A)))


@emit.register(algebra.On)
def _(k: algebra.On, b: Builder, at: Place) -> None:
    x = k.mapped(at.x)
    z = None if at.z is None else k.mapped(at.z)
    pull = at.pull
    if pull is not None:
        index = [i for c in k.columns for i in at.x._positions(c)]
        width = at.x.width

        def scatter(adjoint: Array) -> Array:
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
    u = k.norms(at.x, b.out.dtype)
    v = None if at.z is None else k.norms(at.z, b.out.dtype)
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
