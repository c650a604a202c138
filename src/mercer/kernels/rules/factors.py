"""The rule f(x) k(x, z) f(z): with a function f of the points, and with f(x) = 1/√k(x, x)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.errors import MagnitudeError, ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.leaves.writing import latex_value, write_value
from mercer.kernels.logarithms import cosines, log_norms, refuse_vanished
from mercer.kernels.programs.program import Lowered, NotLowered, Place, RowVectors
from mercer.kernels.proofs.enclosure import ONE, ZERO, Enclosed, Sample
from mercer.kernels.proofs.intervals import Interval, NotEnclosed
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.rules.combined import Unary, remembered
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.sparse_map import SparseMap
from mercer.params import given
from mercer.samples import optional
from mercer.typing import Array
from mercer.vectors import real_numbers

MOST_NORMALIZATIONS = 6


def normalized(k: Kernel) -> Kernel:
    """The cosine in feature space; of a cosine it is the cosine itself."""
    if isinstance(k, Normalized):
        return k
    return Normalized(k)


@expression
class Times(Unary):
    """f(x) k(x, z) f(z) for any function f."""

    kernel: Kernel = given()
    f: Callable[[Array], Array] = given()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.f):
            raise ParameterError(
                f"times(f) needs a function of the points; got {self.f!r}. For a number write c * k."
            )

    def factor(self, x: Rows) -> Array:
        out = real_numbers(self.f(x.points), "times(f)")
        if out.shape == (len(x), 1):
            out = out[:, 0]
        if out.shape != (len(x),):
            raise ShapeError(
                f"times(f): f returned shape {out.shape} for {len(x)} points; it must return one number per "
                "point. "
                "A function of a single point becomes one of all points by lambda X: np.array([f(x) for x in "
                "X])."
            )
        return out

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self.factor(x)
        b = a if z is None else self.factor(z)
        # In this order it is symmetric to the last bit.
        return (a[:, None] * b[None, :]) * self.kernel.block(x, z)

    def diagonal(self, x: Rows) -> Array:
        return self.factor(x) ** 2 * self.kernel.diagonal(x)

    def program(self, at: Place) -> None:
        self.kernel.program(at.child("kernel"))
        v = optional(self.factor, at.z)
        at.step("ROWSCALE", at.row_vectors(RowVectors(self.factor(at.x), v)))

    def contract(self, W: Array, at: Sweep) -> None:
        weights = self.factor(at.x)[:, None] * W * self.factor(at.z)[None, :]
        self.kernel.contract(weights, at.child("kernel"))

    def enclosed(self, sample: Sample) -> Enclosed:
        """f is whatever it returns: any function will do, a rounded one too."""
        f = [Interval.exact(float(v)) for v in self.factor(sample.rows)]
        K = self.kernel.enclosed(sample)
        return [[a * b * v for b, v in zip(f, row, strict=True)] for a, row in zip(f, K, strict=True)]

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.times({write_value(self.f)})"

    def latex(self) -> str:
        name = latex_value(self.f)
        return rf"\mathrm{{{name}}}(x)\,{self.kernel.latex_inside(2)}\,\mathrm{{{name}}}(z)"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(
            Fact("rule f(x) k(x, z) f(z)", "qᵀKq is the form of k at the vector with entries q_i f(x_i)")
        )


@expression
class Normalized(Unary):
    """k(x, z) / √(k(x, x) k(z, z)); 0 where k(x, x) is 0."""

    kernel: Kernel = given()

    def __post_init__(self) -> None:
        super().__post_init__()
        inside = (part.normalizations for part in self.kernel.walk() if isinstance(part, Normalized))
        deep = 1 + max(inside, default=0)
        if deep > MOST_NORMALIZATIONS:
            raise ParameterError(
                f"normalized() is nested {deep} deep, and at most {MOST_NORMALIZATIONS} are allowed: each "
                "doubles the work "
                "of a gradient. Normalise once, on the outside; what is inside is divided out."
            )
        object.__setattr__(self, "normalizations", deep)

    def norms(self, x: Rows, dtype: npt.DTypeLike = np.float64) -> Array | None:
        """1/√k(x, x) for every row, 0 where k(x, x) is 0; None where one leaves the range of `dtype`."""
        with np.errstate(over="ignore"):
            s = self.kernel.diagonal(x)
        room = np.finfo(dtype)
        low = float(room.tiny) / float(room.eps)
        high = float(room.max) * float(room.eps)
        if not np.all((s == 0) | ((s > low) & (s < high))):
            return None
        refuse_vanished(self.kernel, x, s == 0)
        return 1 / np.sqrt(np.where(s == 0, np.inf, s))

    def inverse_norms(self, x: Rows) -> Array:
        """1/√k(x, x) for every row, or a sentence where that is no ordinary number."""
        norms = self.norms(x)
        if norms is None:
            raise MagnitudeError(
                f"{self}: k(x, x) leaves the range of float64, so its values are known by their logarithms, "
                "and its "
                "gradient is not. Rescale the columns, or take a smaller scale, degree or power."
            )
        return norms

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self.norms(x)
        b = a if z is None else self.norms(z)
        if a is None or b is None:
            K = cosines(self.kernel, x, z)
        else:
            # In this order it is symmetric to the last bit.
            K = (a[:, None] * b[None, :]) * self.kernel.block(x, z)
        if z is None:
            np.fill_diagonal(K, self._ones(x, a))
        return K

    def diagonal(self, x: Rows) -> Array:
        return self._ones(x, self.norms(x))

    def program(self, at: Place) -> None:
        inside = at.child("kernel")
        if self.kernel.cosine_program(inside):
            return
        u = self.norms(at.x, at.out.dtype)
        v = None if at.z is None else self.norms(at.z, at.out.dtype)
        if u is None or (at.z is not None and v is None):
            raise NotLowered("its norms leave the range of numbers, and their logarithms do not")
        self.kernel.program(inside)
        inner = self._diagonal_program(inside, at.x)
        inner_z = None if at.z is None else self._diagonal_program(inside, at.z)
        at.step("ROWSCALE", at.row_vectors(RowVectors(u, v, inner, inner_z)))
        at.out.unit_diagonal = True

    def _diagonal_program(self, inside: Place, rows: Rows) -> Lowered:
        """The program of the kernel inside, on one sample, for the gradient of its diagonal."""
        alone = inside.alone(rows)
        self.kernel.program(alone)
        return alone.out

    def contract(self, W: Array, at: Sweep) -> None:
        a = self.inverse_norms(at.x)
        b = self.inverse_norms(at.z)
        T = W * at.value(self.kernel)
        self.kernel.contract(a[:, None] * W * b[None, :], at.child("kernel"))
        at.contract_diagonal(self.kernel, -0.5 * a**3 * (T @ b), at.x, "kernel")
        at.contract_diagonal(self.kernel, -0.5 * b**3 * (a @ T), at.z, "kernel")

    def _ones(self, x: Rows, norms: Array | None) -> Array:
        """1 for every row whose norm is not 0."""
        if norms is None:
            return (log_norms(self.kernel, x) > -np.inf).astype(float)
        return (norms > 0).astype(float)

    def enclosed(self, sample: Sample) -> Enclosed:
        K = self.kernel.enclosed(sample)
        n = len(K)
        if any(K[i][i].includes_zero() and not K[i][i].is_zero() for i in range(n)):
            raise NotEnclosed("whether k(x, x) is 0 is not known")
        norm = [K[i][i].sqrt() for i in range(n)]
        out = [[ZERO] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                if not (norm[i].is_zero() or norm[j].is_zero()):
                    out[i][j] = ONE if i == j else K[i][j] / (norm[i] * norm[j])
        return out

    def sparse_map(self, x: Rows) -> SparseMap | None:
        inner = self.kernel.sparse_map(x)
        if inner is None:
            return None
        return inner.divided(self._norms, self._norms(x))

    def _norms(self, rows: Rows) -> Array:
        return np.sqrt(self.kernel.diagonal(rows))

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.normalized()"

    def latex(self) -> str:
        return rf"\overline{{{self.kernel.latex()}}}"

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(Fact("normalisation", "the rule f(x) k(x, z) f(z) with f(x) = 1/√k(x, x)"))

    def root_proof(self) -> Proof | None:
        return self._passed_on(
            Fact("infinitely divisible", "the power of a normalised kernel is the normalised power"),
            root=True,
        )
