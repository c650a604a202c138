"""Leaves with a shape of their own: constants, noise, forms, spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Column, Rows
from mercer.errors import InvalidKernelError, ParameterError, ShapeError
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.leaves.writing import write_value
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Node, Projection, Space
from mercer.kernels.maps.spectral import Components, Spectrum
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.enclosure import TWO, ZERO, Enclosed, Point, Sample, dot
from mercer.kernels.proofs.expansion import Terms
from mercer.kernels.proofs.forms import judge_form
from mercer.kernels.proofs.intervals import Interval, pi
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import coefficients, positive, real, signed
from mercer.samples import second
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
    factor_name: ClassVar = "value"

    def block(self, x: Rows, z: Rows | None) -> Array:
        return np.full((len(x), len(second(x, z))), self.value)

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), self.value)

    def program(self, at: Place) -> None:
        at.step("CONST", at.param(self.value, "value"))

    def contract(self, W: Array, at: Sweep) -> None:
        at.add("value", float(W.sum()))

    def takes_things(self) -> bool:
        return True

    def columns_read(self) -> frozenset[Column] | None:
        return frozenset()

    def enclosed(self, sample: Sample) -> Enclosed:
        n = len(sample.rows)
        return [[Interval.exact(self.value)] * n for _ in range(n)]

    def in_columns(self) -> Expansion:
        return Expansion.constant(self.value)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        """One feature that all rows have."""
        if self.value < 0:
            return None
        return SparseMap(["1"], self._root(x), self._root)

    def _root(self, rows: Rows) -> Matrix:
        return sparse.csr_array(np.full((len(rows), 1), np.sqrt(self.value)))

    def expanded(self, *, split: bool) -> Terms:
        return expansion.number(self.value)

    def proof(self) -> Proof | None:
        if self.value < 0:
            return None
        fact = Fact("constant", "qᵀKq = c (Σ q_i)² ≥ 0")
        return Proof(self, fact, stated=(f"c = {self.value!r} ≥ 0",))

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
    factor_name: ClassVar = "noise"

    def block(self, x: Rows, z: Rows | None) -> Array:
        if z is None:
            return self.noise * np.eye(len(x))
        return np.zeros((len(x), len(z)))

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), self.noise)

    def program(self, at: Place) -> None:
        at.step("DELTA", at.param(self.noise, "noise"))

    def contract(self, W: Array, at: Sweep) -> None:
        if at.start is not None:
            at.add("noise", float(np.trace(W, offset=at.start)))

    def noise_variance(self) -> float:
        return self.noise

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

    def _check_width(self, x: Rows) -> None:
        width = x.vectors.shape[1]
        if width != len(self.A):
            raise ShapeError(
                f"Bilinear: A is {len(self.A)} by {len(self.A)}, but {x.name} has {width} columns."
            )

    def _times_matrix(self, x: Rows) -> Array:
        self._check_width(x)
        return np.asarray(x.vectors.astype(np.float64, copy=False) @ self.matrix)

    def block(self, x: Rows, z: Rows | None) -> Array:
        left = self._times_matrix(x)
        Z = second(x, z).vectors
        if sparse.issparse(Z):
            K = np.asarray((Z.astype(np.float64, copy=False) @ left.T).T)
        else:
            K = np.asarray(left @ Z.T)
        if z is None and self._symmetric():
            return np.asarray(0.5 * (K + K.T))
        return K

    def diagonal(self, x: Rows) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self._times_matrix(x), dense(x.vectors)))

    def program(self, at: Place) -> None:
        """The dot product after the map x -> Rᵀx, where A = R Rᵀ."""
        if self.proof() is None:
            raise NotLowered("Bilinear with a matrix that is not positive semi-definite")
        values, vectors = np.linalg.eigh(self.matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))

        def mapped(rows: Rows) -> Rows:
            self._check_width(rows)
            return Rows(np.asarray(rows.vectors.astype(np.float64, copy=False) @ root), rows.name)

        at.step("DOT", at.mapped(mapped, lambda adjoint: adjoint @ root.T).view())

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
        return Proof(self, fact, stated=(f"A is symmetric, and {form.reason}",))

    def negative_direction(self) -> tuple[float, ...] | None:
        """A point v with vᵀAv < 0, where the symmetric matrix has one."""
        if self._symmetric():
            return judge_form(self.A).direction
        return None


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
        self._check_columns(x)
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

    def program(self, at: Place) -> None:
        self._check_columns(at.x)
        for q, weight in enumerate(self.weights):
            mean = np.ravel(self.means[q]).astype(float)
            scale = np.ravel(self.scales[q]).astype(float)
            gauss = at.view(centred=True, scale=2 * np.pi * scale, dense_only=True)
            at.step("SQDIST", gauss)
            at.step("RBF")
            wave = at.view(centred=True, scale=2 * np.pi * mean, dense_only=True)
            at.step("COSPROD", wave)
            for j in range(len(mean)):
                tail = f"[{q}][{j}]" if isinstance(self.means[q], tuple) else f"[{q}]"
                at.link((gauss, 0, j), f"scales{tail}", 2 / scale[j])
                at.link((wave, 0, j), f"means{tail}", 1 / mean[j] if mean[j] else 0.0)
            at.step("MUL")
            at.affine(at.param(weight, f"weights[{q}]"))
            if q:
                at.step("ADD")

    def _check_columns(self, x: Rows) -> None:
        d, _ = self.columns_needed()
        if x.width != d:
            raise ShapeError(f"SpectralMixture: means are for {d} column(s), but {x.name} has {x.width}.")

    def diagonal(self, x: Rows) -> Array:
        return np.full(len(x), sum(self.weights))

    def latex(self) -> str:
        return r"\sum_q w_q \prod_d e^{-2\pi^2\delta_d^2\sigma_{qd}^2}\cos(2\pi\delta_d\mu_{qd})"
