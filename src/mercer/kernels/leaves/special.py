"""Leaves with a shape of their own: constants, noise, forms, angles, spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Column, Rows
from mercer.errors import InvalidKernelError, ParameterError, ShapeError
from mercer.kernels.formulas.formula import Values
from mercer.kernels.leaves.distances import dot_products, squared_distances, squared_norms
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.leaves.writing import write_value
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Halves, Infinite, Monomials, Node, Projection, Space, Unit
from mercer.kernels.maps.spectral import Components, Spectrum
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.enclosure import ONE, TWO, ZERO, Enclosed, Point, Sample, cosine_of, dot, norm
from mercer.kernels.proofs.expansion import Terms
from mercer.kernels.proofs.forms import judge_form
from mercer.kernels.proofs.intervals import Interval, pi
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.params import coefficients, positive, real, signed, whole
from mercer.sparse import Matrix, dense
from mercer.typing import Array


@leaf
class Constant(Leaf):
    """The same number everywhere; negative values can be written, and are no kernel.

        k(x, z) = value

    >>> float(Constant(2.5)([[1, 2]], [[3, 4]])[0, 0])
    2.5
    """

    value: float = signed(1.0)

    formula: ClassVar = "<value>"

    def block(self, x: Rows, z: Rows | None) -> Array:
        return np.full((len(x), len(x if z is None else z)), self.value)

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), self.value)

    def takes_things(self) -> bool:
        return True

    def columns_read(self) -> frozenset[Column] | None:
        return frozenset()

    def enclosed(self, sample: Sample) -> Enclosed:
        n = len(sample.rows)
        return [[Interval.exact(self.value)] * n for _ in range(n)]

    def in_columns(self) -> Expansion:
        return Expansion.constant(self.value)

    def expanded(self, *, split: bool) -> Terms:
        return expansion.number(self.value)

    def proof(self) -> Proof | None:
        if self.value < 0:
            return None
        fact = Fact("constant", "qᵀKq = c (Σ q_i)² ≥ 0")
        return Proof(self, fact, conditions=(f"c = {self.value!r} ≥ 0",))

    def root_proof(self) -> Proof | None:
        if self.value < 0:
            return None
        return Proof(self, Fact("infinitely divisible", "c^r is again a constant ≥ 0"))


@leaf
class White(Leaf):
    """Noise: it correlates an observation with itself and with nothing else, not even with an equal one.

        k(x_i, z_j) = noise if i and j are the same observation, else 0

    `k(X)` knows that both samples are the same observations; `k(X, Z)` is two samples, so it is zero.

    >>> White(0.5)([[1.0], [1.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    noise: float = positive(1.0)

    because: ClassVar = Fact("identity matrix", "its Gram matrix is noise · I, so qᵀKq = noise ‖q‖² ≥ 0")
    divisible: ClassVar = "k^r is noise^r · I"
    formula: ClassVar = r"<noise>\,\delta_{xz}"

    def block(self, x: Rows, z: Rows | None) -> Array:
        return self.noise * np.eye(len(x)) if z is None else np.zeros((len(x), len(z)))

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), self.noise)

    def enclosed(self, sample: Sample) -> Enclosed:
        n = len(sample.rows)
        noise = Interval.exact(self.noise)
        return [[noise if i == j else ZERO for j in range(n)] for i in range(n)]

    def takes_things(self) -> bool:
        return True

    def columns_read(self) -> frozenset[Column] | None:
        return frozenset()


@leaf
class Bilinear(Leaf):
    """A form xᵀAz; a kernel iff A is symmetric positive semi-definite.

        k(x, z) = xᵀ A z

    >>> round(float(Bilinear([[2, 1], [1, 2]])([[1, 0]], [[0, 3]])[0, 0]), 12)      # A₁₂ · 3
    3.0
    """

    A: tuple[tuple[float, ...], ...] = coefficients(ndim=2, words="a square matrix of finite numbers")

    formula: ClassVar = r"x^\top A z"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.A) != len(self.A[0]):
            raise ParameterError(f"Bilinear: A must be square; got {len(self.A)} by {len(self.A[0])}.")

    @property
    def matrix(self) -> Array:
        return np.array(self.A)

    def columns_needed(self) -> tuple[int | None, int]:
        return len(self.A), len(self.A)

    def times_matrix(self, x: Rows) -> Array:
        X = x.vectors
        if X.shape[1] != len(self.A):
            raise ShapeError(
                f"Bilinear: A is {len(self.A)} by {len(self.A)}, but {x.name} has {X.shape[1]} columns."
            )
        return np.asarray(X.astype(np.float64, copy=False) @ self.matrix)

    def block(self, x: Rows, z: Rows | None) -> Array:
        left = self.times_matrix(x)
        Z = (x if z is None else z).vectors
        if sparse.issparse(Z):
            K = np.asarray((Z.astype(np.float64, copy=False) @ left.T).T)
        else:
            K = np.asarray(left @ Z.T)
        return 0.5 * (K + K.T) if z is None and self._symmetric() else K

    def diagonal(self, x: Rows) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.times_matrix(x), dense(x.vectors)))

    def enclosed(self, sample: Sample) -> Enclosed:
        A = [[Interval.exact(v) for v in row] for row in self.A]
        points = sample.vectors()
        left = [[dot(x, list(column)) for column in zip(*A, strict=True)] for x in points]
        return [[dot(row, z) for z in points] for row in left]

    def feature_map(self, space: Space) -> Node:
        A = self.matrix
        if len(A) != space.d:
            raise ShapeError(f"Bilinear: A is {len(A)} by {len(A)}, but d is {space.d}.")
        if not self._symmetric():
            raise InvalidKernelError(
                f"{self} is not a kernel: A is not symmetric, so there is no feature map."
            )
        # Scaled to a unit diagonal, so that rounding is that of each entry and not that of the largest. A row
        # whose diagonal is not positive must be zero altogether.
        root = np.sqrt(np.maximum(np.diag(A), 0.0))
        unit = np.where(root > 0, root, 1.0)
        scaled = (A / unit[:, None]) / unit[None, :]
        values, vectors = np.linalg.eigh(scaled)
        rounding = len(A) * np.finfo(float).eps * max(1.0, float(np.abs(values).max()))
        hanging = bool(np.any(A[root == 0]))
        if hanging or values[0] < -rounding:
            worst = float(np.linalg.eigvalsh(A)[0])
            raise InvalidKernelError(
                f"{self} is not positive semi-definite: A has an eigenvalue below 0 (computed {worst:.6g}), "
                "so "
                "there is no "
                "feature map."
            )
        kept = np.flatnonzero(values > rounding)[::-1]
        return Projection(root[:, None] * vectors[:, kept] * np.sqrt(values[kept]))

    def _symmetric(self) -> bool:
        return bool(np.array_equal(self.matrix, self.matrix.T))

    def proof(self) -> Proof | None:
        if not self._symmetric():
            return None
        form = judge_form(self.A)
        if not form.semidefinite:
            return None
        fact = Fact("positive semi-definite form", "A = BᵀB, so xᵀAz is the inner product of Bx and Bz")
        return Proof(self, fact, conditions=(f"A is symmetric, and {form.reason}",))

    def negative_direction(self) -> tuple[float, ...] | None:
        """A point v with vᵀAv < 0, where the symmetric matrix has one."""
        return judge_form(self.A).direction if self._symmetric() else None


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
    return X.multiply(factors[:, None]).tocsr() if sparse.issparse(X) else X * factors[:, None]


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
        return s if self.order == 1 else 3 * s**2

    def feature_map(self, space: Space) -> Node:
        if space.d > 1:
            return Infinite(str(self))
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


@leaf
class SpectralMixture(Leaf):
    """Any stationary kernel, as a mixture of Gaussians in its spectrum (Wilson and Adams).

        k(x, z) = Σ_q w_q Π_d exp(-2π² δ_d² σ_qd²) cos(2π δ_d μ_qd),    δ = x - z

    `means` are frequencies and `scales` their standard deviations: one number per component for one column,
    or one list per component with a number per column.

    >>> k = SpectralMixture(weights=[2.0], means=[0.25], scales=[1e-9])
    >>> round(float(k([[0.0]], [[2.0]])[0, 0]), 6)            # 2 cos(π)
    -2.0
    """

    weights: tuple[float, ...] = positive(ndim=1)
    means: tuple[float | tuple[float, ...], ...] = real(ndim=1, per_column=True)
    scales: tuple[float | tuple[float, ...], ...] = positive(ndim=1, per_column=True)

    because: ClassVar = Fact(
        "Bochner's theorem",
        "its Fourier transform is a positive mixture of Gaussian densities, mirrored about 0",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        q = len(self.weights)
        if len(self.means) != q or len(self.scales) != q:
            raise ParameterError(
                f"SpectralMixture: weights, means and scales need one entry per component; got {q}, "
                f"{len(self.means)} and "
                f"{len(self.scales)}."
            )
        widths = {len(v) if isinstance(v, tuple) else 1 for v in (*self.means, *self.scales)}
        if len(widths) != 1:
            raise ParameterError("SpectralMixture: every mean and scale needs the same number of columns.")

    def text(self) -> str:
        parts = (f"{n}={write_value(getattr(self, n))}" for n in ("weights", "means", "scales"))
        return f"SpectralMixture({', '.join(parts)})"

    def columns_needed(self) -> tuple[int | None, int]:
        d = len(self.means[0]) if isinstance(self.means[0], tuple) else 1
        return d, d

    def block(self, x: Rows, z: Rows | None) -> Array:
        self.check_columns(x)
        X = dense(x.vectors).astype(np.float64, copy=False)
        Z = X if z is None else dense(z.vectors).astype(np.float64, copy=False)
        out = np.zeros((len(X), len(Z)))
        for w, mean, scale in zip(self.weights, self.means, self.scales, strict=True):
            part = np.full(out.shape, w)
            for j, (m, s) in enumerate(zip(np.ravel(mean), np.ravel(scale), strict=True)):
                delta = X[:, None, j] - Z[None, :, j]
                part *= np.exp(-2 * (np.pi * s * delta) ** 2) * np.cos(2 * np.pi * m * delta)
            out += part
        return out

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        if self.columns_needed()[0] != d:
            raise ShapeError(f"SpectralMixture: means are for {self.columns_needed()[0]} column(s), not {d}.")
        w = np.array(self.weights)
        means = np.array(self.means, dtype=float).reshape(len(w), -1)
        scales = np.array(self.scales, dtype=float).reshape(len(w), -1)
        return Components(d, float(w.sum()), w / w.sum(), means, scales)

    def enclosed(self, sample: Sample) -> Enclosed:
        def entry(x: Point, z: Point) -> Interval:
            total = ZERO
            for weight, mean, scale in zip(self.weights, self.means, self.scales, strict=True):
                part = Interval.exact(weight)
                for a, b, m, s in zip(x, z, np.ravel(mean).tolist(), np.ravel(scale).tolist(), strict=True):
                    turn = pi() * (a - b)
                    part = part * (-(TWO * (turn * Interval.exact(s)).square())).exp()
                    part = part * (TWO * turn * Interval.exact(m)).cos()
                total = total + part
            return total

        return sample.pairs(entry)

    def check_columns(self, x: Rows) -> None:
        d, _ = self.columns_needed()
        if x.width != d:
            raise ShapeError(f"SpectralMixture: means are for {d} column(s), but {x.name} has {x.width}.")

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), sum(self.weights))

    def latex(self) -> str:
        return r"\sum_q w_q \prod_d e^{-2\pi^2\delta_d^2\sigma_{qd}^2}\cos(2\pi\delta_d\mu_{qd})"
