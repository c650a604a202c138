"""Leaves that look at the angle between two vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.kernels.formulas.formula import Values
from mercer.kernels.leaves.distances import dot_products, squared_distances, squared_norms
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Halves, Infinite, Monomials, Node, Space, Unit
from mercer.kernels.programs.program import NotLowered, Place, Pull, RowVectors, prepare
from mercer.kernels.proofs.enclosure import ONE, TWO, ZERO, Enclosed, Point, Sample, cosine_of, norm
from mercer.kernels.proofs.intervals import Interval, pi
from mercer.kernels.proofs.proof import Fact
from mercer.params import whole
from mercer.sparse import Matrix, dense
from mercer.typing import Array


@leaf
class CosineSimilarity(Leaf):
    """The cosine of the angle between two vectors, such as bags of words; with a zero vector it is 0.

        k(x, z) = x·z / (‖x‖ ‖z‖)

    >>> float(CosineSimilarity()([[3, 4]], [[4, 3]])[0, 0])   # 24 / 25
    0.96...
    """

    because: ClassVar = Fact(
        "rule f(x) k(x, z) f(z)",
        "the inner product x·z with f(x) = 1/‖x‖ (0 at the origin): qᵀKq = ‖Σ q_i f(x_i) x_i‖² ≥ 0",
    )
    formula: ClassVar = r"\frac{x^\top z}{\lVert x\rVert\,\lVert z\rVert}"

    def text(self) -> str:
        return "CosineSimilarity()"

    def block(self, x: Rows, z: Rows | None) -> Array:
        K = dot_products(unit_rows(x.vectors), None if z is None else unit_rows(z.vectors))
        if z is None:
            np.fill_diagonal(K, self.diagonal(x))
        return K

    def diagonal(self, x: Rows) -> Array:
        return (_largest(x.vectors) > 0).astype(float)

    def program(self, at: Place) -> None:
        def prepared(rows: Rows) -> tuple[Matrix, Pull | None]:
            U = unit_rows(rows.vectors)
            return prepare(U, at.out.dtype), _unit_pull(at.pull, rows, U)

        x, pull = prepared(at.x)
        if at.z is None:
            view = at.add_view(x, None, pull, pull)
        else:
            z, pull_z = prepared(at.z)
            view = at.add_view(x, z, pull, pull_z)
        at.step("DOT", view)
        at.out.unit_diagonal = True

    def feature_map(self, space: Space) -> Node:
        return Unit(Monomials(Expansion.series((0, 1)), space), "|x|")

    def enclosed(self, sample: Sample) -> Enclosed:
        return sample.pairs(lambda x, z: cosine_of(x, z) or ZERO)


def _largest(X: Matrix) -> Array:
    """The largest size of an entry in each row."""
    top = abs(X).max(axis=1)
    return np.asarray(top.toarray() if sparse.issparse(top) else top, dtype=np.float64).ravel()


def unit_rows(X: Matrix) -> Matrix:
    """Each row divided by its length (a zero row stays zero).

    The row is first scaled by a power of two near its largest entry, which rounds nothing, so that the
    squares of very small numbers do not vanish.
    """
    near_one = np.exp2(np.minimum(-np.frexp(_largest(X))[1], 1000).astype(float))
    Y = _scale_rows(X.astype(np.float64, copy=False), near_one)
    norm = np.sqrt(squared_norms(Y))
    return _scale_rows(Y, 1 / np.where(norm == 0, np.inf, norm))


def _scale_rows(X: Matrix, factors: Array) -> Matrix:
    if sparse.issparse(X):
        return X.multiply(factors[:, None]).tocsr()
    return X * factors[:, None]


def _unit_pull(pull: Pull | None, rows: Rows, U: Matrix) -> Pull | None:
    """Adjoint of x/‖x‖ -> adjoint of x: the part across x, divided by its length."""
    if pull is None:
        return None
    inverse = 1 / _norms_or_infinity(rows)

    def back(adjoint: Array) -> Array:
        unit = dense(U)
        across = adjoint - unit * np.einsum("ij,ij->i", unit, adjoint)[:, None]
        return pull(across * inverse[:, None])

    return back


def _norms_or_infinity(rows: Rows) -> Array:
    """‖x‖ of every row, infinity where it is 0."""
    norm = np.sqrt(squared_norms(rows.vectors))
    return np.where(norm == 0, np.inf, norm)


def _norms(at: Place) -> RowVectors:
    """‖x‖ per row, with its derivative for the inputs."""

    def values(rows: Rows) -> Array:
        return np.sqrt(squared_norms(rows.vectors))

    def back(rows: Rows) -> Pull | None:
        pull = at.pull
        if pull is None:
            return None
        inverse = 1 / _norms_or_infinity(rows)
        return lambda adjoint: pull((adjoint * inverse)[:, None] * dense(rows.vectors))

    if at.z is None:
        return RowVectors(values(at.x), None, back_x=back(at.x), back_z=back(at.x))
    return RowVectors(values(at.x), values(at.z), back_x=back(at.x), back_z=back(at.z))


def unit(u: Array, order: int) -> Array:
    """The step, ramp or squared ramp."""
    if order == 0:
        return np.heaviside(u, 0.5)
    return np.maximum(u, 0.0) ** order


@leaf
class ArcCosine(Leaf):
    """Cho and Saul's kernel: an infinitely wide layer of Heaviside, ReLU or squared-ReLU units.

        k(x, z) = ‖x‖ⁿ ‖z‖ⁿ J_n(θ) / π,    θ the angle between x and z, n the order
        J₀ = π - θ,   J₁ = sin θ + (π - θ) cos θ,   J₂ = 3 sin θ cos θ + (π - θ)(1 + 2 cos² θ)

    >>> float(ArcCosine(1)([[1, 0]], [[0, 2]])[0, 0])         # θ = π/2: 2 · 1 / π
    0.63661977236758...
    """

    order: int = whole(1, at_least=0, at_most=2)

    because: ClassVar = Fact(
        "inner product of functions",
        "k(x, z) = 2 E[h(w·x) h(w·z)] over Gaussian w, with h the step, ramp or squared ramp: an inner "
        "product of h(w·x) and h(w·z)",
    )
    formula: ClassVar = r"\tfrac{1}{\pi}\lVert x\rVert^{<order>}\lVert z\rVert^{<order>} J_{<order>}(\theta)"

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = np.sqrt(squared_norms(x.vectors))
        b = a if z is None else np.sqrt(squared_norms(z.vectors))
        theta = _angles(x.vectors, None if z is None else z.vectors)
        out: Array = (a[:, None] * b[None, :]) ** self.order * self.value(theta)
        return out

    def value(self, theta: Values) -> Values:
        """J_n(θ) / π."""
        if self.order == 0:
            return (np.pi - theta) / np.pi
        sine = np.sin(theta)
        cosine = np.cos(theta)
        if self.order == 1:
            return (sine + (np.pi - theta) * cosine) / np.pi
        return (3 * sine * cosine + (np.pi - theta) * (1 + 2 * cosine**2)) / np.pi

    def diagonal(self, x: Rows) -> Array:
        s = squared_norms(x.vectors)
        if self.order == 0:
            return np.where(s == 0, 0.5, 1.0)
        if self.order == 1:
            return s
        return 3 * s**2

    def program(self, at: Place) -> None:
        if self.order == 0:
            raise NotLowered("ArcCosine of order 0 would lose half its digits near the angles 0 and π")
        at.step("DOT", at.view())
        at.step("ARCCOS", at.row_vectors(_norms(at)), self.order)

    def activation(self) -> Callable[[Array], Array]:
        return partial(unit, order=self.order)

    def feature_map(self, space: Space) -> Node:
        if space.d > 1:
            return Infinite(self)
        return Halves(self.order, float(self.value(0.0)), space)

    def enclosed(self, sample: Sample) -> Enclosed:
        """J falls with the angle for every order, so its bounds are those at the ends."""

        def entry(x: Point, z: Point) -> Interval:
            cosine = cosine_of(x, z) or ZERO
            high = self._enclosed_value(Interval(cosine.high, cosine.high))
            low = self._enclosed_value(Interval(cosine.low, cosine.low))
            size = (norm(x) * norm(z)).whole_power(self.order)
            return size * Interval(low.low, high.high)

        return sample.pairs(entry)

    def _enclosed_value(self, cosine: Interval) -> Interval:
        theta = cosine.arccos()
        rest = pi() - theta
        c = theta.cos()
        sine = (ONE - c.square()).sqrt()
        if self.order == 0:
            return rest / pi()
        if self.order == 1:
            return (sine + rest * c) / pi()
        return (Interval.exact(3) * sine * c + rest * (ONE + TWO * c.square())) / pi()


def _angles(X: Matrix, Z: Matrix | None) -> Array:
    """The angle between every two rows, π/2 where one is zero.

    By tan(θ/2) = ‖u - v‖ / ‖u + v‖ for unit vectors, which is right to rounding at every angle; the arc
    cosine of u·v loses half of the digits near 0 and π.
    """
    U = unit_rows(X)
    V = U if Z is None else unit_rows(Z)
    apart = np.sqrt(squared_distances(U, None if Z is None else V, 1.0))
    across = np.sqrt(squared_distances(U, -V, 1.0))
    return np.where((apart == 0) & (across == 0), np.pi / 2, 2 * np.arctan2(apart, across))
