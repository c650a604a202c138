"""Leaves that are functions of the dot product t = x · z."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mercer.errors import DomainError, InvalidKernelError, ParameterError, ShapeError
from mercer.kernels.formulas.formula import Formula, NotRecorded, Values, polynomial
from mercer.kernels.leaves.families import DotProduct
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.leaves.writing import latex_value, write_value
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import Infinite, Node, Space, unknown_map
from mercer.kernels.programs.program import Place
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.expansion import Terms
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.proofs.series import DECLARED_TERMS, doubt
from mercer.params import Domain, given, is_real, nonnegative, positive, real, whole
from mercer.vectors import real_numbers

_TAYLOR = Domain("a finite number", ndim=1)


@leaf
class Linear(DotProduct):
    """The dot product itself: no map at all.

        k(x, z) = x · z

    >>> float(Linear()([[1, 2]], [[3, 4]])[0, 0])             # 1·3 + 2·4
    11.0
    """

    because: ClassVar = Fact("inner product", "qᵀKq = ‖Σ q_i x_i‖² ≥ 0")

    def text(self) -> str:
        return "Linear()"

    def value(self, t: Values) -> Values:
        return t

    def in_columns(self) -> Expansion:
        return Expansion.series((0, 1))

    def taylor_coefficients(self) -> tuple[float, ...]:
        return (0.0, 1.0)

    def power_form(self) -> tuple[float, float, int]:
        return 1.0, 0.0, 1


@leaf
class Polynomial(DotProduct):
    """All monomials up to `degree`; offset 0 keeps those of exactly that degree.

        k(x, z) = (offset + scale x·z)^degree

    >>> float(Polynomial(2)([[1, 2]], [[3, 4]])[0, 0])        # (1 + 11)²
    144.0
    """

    degree: int = whole(3, at_least=1)
    offset: float = nonnegative(1.0)
    scale: float = positive(1.0)

    because: ClassVar = Fact(
        "non-negative Taylor series",
        "by the binomial theorem it is a polynomial in x·z with non-negative coefficients, and powers and "
        "positive "
        "sums of the kernel x·z are kernels",
    )

    def value(self, t: Values) -> Values:
        return (self.offset + self.scale * t) ** self.degree

    def in_columns(self) -> Expansion:
        return Expansion.series((self.offset, self.scale)).power(self.degree)

    def map_dimension(self, d: int) -> int:
        """The monomials of d columns up to the degree, or of exactly that degree where the offset is 0."""
        if self.offset > 0:
            return math.comb(d + self.degree, d)
        return math.comb(d + self.degree - 1, self.degree)

    def taylor_coefficients(self) -> tuple[float, ...]:
        p = self.degree
        return tuple(math.comb(p, j) * self.offset ** (p - j) * self.scale**j for j in range(p + 1))

    def power_form(self) -> tuple[float, float, int]:
        return self.scale, self.offset, self.degree

    def expanded(self, *, split: bool) -> Terms:
        if self.degree > expansion.HIGHEST_POWER:
            return expansion.one_atom(self)
        linear = {t: Fraction(self.scale) * c for t, c in expansion.one_atom(Linear()).items()}
        inside = expansion.plus(expansion.number(self.offset), linear)
        return expansion.power(inside, self.degree)


@leaf
class ExpDot(DotProduct):
    """The exponential of the dot product: monomials of every degree.

        k(x, z) = e^(scale x·z)

    >>> float(ExpDot()([[1, 2]], [[3, -1]])[0, 0])            # x·z = 1, so e
    2.71828182845904...
    """

    scale: float = positive(1.0)

    because: ClassVar = Fact(
        "non-negative Taylor series",
        "e^(c t) = Σ c^n t^n / n! has positive coefficients, and each (x·z)^n is a kernel",
    )
    divisible: ClassVar = "k^r is the same kernel with scale r·c"

    def value(self, t: Values) -> Values:
        return np.exp(self.scale * t)

    def rate(self) -> float:
        return self.scale

    def cosine_program(self, at: Place) -> bool:
        """A Gaussian, e^(-c‖x - z‖²/2), which never overflows."""
        at.step("SQDIST", at.view(centred=True))
        at.affine(at.param(self.scale, "scale"))
        at.step("RBF")
        return True

    def expanded(self, *, split: bool) -> Terms:
        return expansion.exponential(self, self.scale * Linear(), split=split)


@leaf
class Sigmoid(DotProduct):
    """The hyperbolic tangent of neural networks. Popular, and **not** positive semi-definite.

        k(x, z) = tanh(scale x·z + offset)

    >>> float(Sigmoid(1.0, offset=0.0)([[1, 2]], [[3, -1]])[0, 0])      # tanh(1)
    0.761594155955764...
    """

    scale: float = positive(1.0)
    offset: float = real(0.0)

    def value(self, t: Values) -> Values:
        return np.tanh(self.scale * t + self.offset)

    def feature_map(self, space: Space) -> Node:
        raise _no_kernel(self)


@leaf
class Logistic(DotProduct):
    """The logistic function of the dot product. **Not** positive semi-definite.

        k(x, z) = 1 / (1 + e^-(scale x·z + offset))

    >>> float(Logistic(1.0, offset=0.0)([[1, 2]], [[2, -1]])[0, 0])     # x·z = 0, so 1/2
    0.5
    """

    scale: float = positive(1.0)
    offset: float = real(0.0)

    def value(self, t: Values) -> Values:
        with np.errstate(over="ignore"):
            return 1 / (1 + np.exp(-(self.scale * t + self.offset)))

    def feature_map(self, space: Space) -> Node:
        raise _no_kernel(self)


def _no_kernel(k: DotProduct) -> InvalidKernelError:
    return InvalidKernelError(
        f"{k} is not positive semi-definite (its Taylor series has negative coefficients), so there is no "
        "feature map. k.validity() gives the witness."
    )


@leaf
class Dot(DotProduct):
    """Any function of the dot product: k(x, z) = f(x·z).

    It is a kernel in every dimension iff the Taylor series of f at 0 has no negative coefficient. Declare the
    series with `taylor`: a list makes the kernel *be* that polynomial (f, if given, is checked against it); a
    function n ↦ aₙ declares an infinite series, which is compared with f where it converges and then taken on
    your word. A series that converges only for |t| < R needs `radius` = R: rows whose dot products leave it
    are refused.

    >>> k = Dot(lambda t: t + t**2, taylor=[0, 1, 1])
    >>> float(k([[1, 2]], [[3, 4]])[0, 0])                    # 11 + 11²
    132.0
    """

    f: Callable[[Values], Values] | None = given(None)
    taylor: Sequence[float] | Callable[[int], float] | None = given(None)
    radius: float | None = given(None)

    def __post_init__(self) -> None:
        if self.f is not None and not callable(self.f):
            raise ParameterError(
                f"Dot: f must be a function of the dot product; got {self.f!r}. Try Dot(np.sinh)."
            )
        if self.radius is not None:
            self._check_radius()
        if self.taylor is None or callable(self.taylor):
            if self.f is None:
                raise ParameterError("Dot: give a function f, or its Taylor coefficients as a list.")
            return
        object.__setattr__(self, "taylor", _TAYLOR.check(self.taylor, "Dot", "taylor"))
        self._compare_with_polynomial()

    def _check_radius(self) -> None:
        if not callable(self.taylor):
            raise ParameterError(
                "Dot: radius belongs to an infinite series; give taylor as a function n -> a_n with it, or "
                "leave it out."
            )
        if not is_real(self.radius) or not self.radius > 0:
            raise ParameterError(
                f"Dot: radius must be a number > 0, or math.inf; got {self.radius!r}. It is where the series "
                "stops converging."
            )
        object.__setattr__(self, "radius", float(self.radius))

    def _compare_with_polynomial(self) -> None:
        if self.f is None:
            return
        t = np.array([-1.5, -0.3, 0.2, 0.9, 2.0])
        declared = np.polynomial.polynomial.polyval(t, np.asarray(self.taylor))
        found = self._f(t)
        worst = int(np.argmax(np.abs(found - declared)))
        if not np.allclose(found, declared, rtol=1e-9, atol=1e-12):
            raise ParameterError(
                f"Dot: f is not the polynomial that taylor declares; at t = {t[worst]:g}, f gives "
                f"{found[worst]:.9g} "
                f"and the series {declared[worst]:.9g}. Pass all coefficients, or a function n -> a_n for an "
                "infinite series."
            )

    def text(self) -> str:
        if isinstance(self.taylor, tuple):
            return f"Dot(taylor={write_value(self.taylor)})"
        if self.radius is not None and math.isfinite(self.radius):
            return f"Dot({write_value(self.f)}, radius={self.radius!r})"
        return f"Dot({write_value(self.f)})"

    def key(self) -> tuple[Hashable, ...]:
        series = self.taylor if isinstance(self.taylor, tuple) else (self.f, self.taylor, self.radius)
        return (type(self), series)

    def value(self, t: Values) -> Values:
        if isinstance(self.taylor, tuple):
            return polynomial(t, self.taylor)
        if self.radius is not None:
            size = np.abs(t)
            if size.size and size.max() >= self.radius:
                raise DomainError(
                    f"{self}: the dot product of two rows is {np.ravel(t)[int(np.argmax(size))]:.6g}, and "
                    "the declared "
                    f"series only converges for |x·z| < {self.radius:g}. Scale the rows down."
                )
        return self._f(t)

    def in_columns(self) -> Expansion | None:
        if isinstance(self.taylor, tuple):
            return Expansion.series(self.taylor)
        return None

    def feature_map(self, space: Space) -> Node:
        if callable(self.taylor):
            return Infinite(self)
        raise unknown_map(self, "its Taylor series is not declared. Pass taylor=[…] if it is a polynomial.")

    def is_series(self) -> bool:
        return True

    def taylor_coefficients(self) -> tuple[float, ...] | None:
        if isinstance(self.taylor, tuple):
            return self.taylor
        return None

    def expanded(self, *, split: bool) -> Terms:
        if not isinstance(self.taylor, tuple) or len(self.taylor) > expansion.HIGHEST_POWER:
            return expansion.one_atom(self)
        return expansion.horner(expansion.one_atom(Linear()), self.taylor)

    def slope(self, t: Values) -> Values:
        """The derivative of the formula; of a function that is none, a central difference."""
        try:
            self.recorded()
        except NotRecorded:
            t = np.asarray(t, dtype=float)
            h = 1e-6 * np.maximum(1.0, np.abs(t))
            return (self._f(t + h) - self._f(t - h)) / (2 * h)
        return super().slope(t)

    def _f(self, t: Values) -> Values:
        assert self.f is not None
        if isinstance(t, Formula):
            return self.f(t)
        out = np.asarray(self.f(t))
        if np.isrealobj(t):
            out = real_numbers(out, "Dot")
        if out.shape != np.shape(t):
            raise ShapeError(
                f"Dot: f returned shape {out.shape} for dot products of shape {np.shape(t)}; it must work "
                "number by "
                "number. A constant is Constant(c); np.vectorize makes any function work so."
            )
        return out

    def proof(self) -> Proof | None:
        if isinstance(self.taylor, tuple):
            if min(self.taylor) < 0:
                return None
            return Proof(
                self, Fact("non-negative Taylor series", "a polynomial in x·z with non-negative coefficients")
            )
        known = super().proof()
        if not callable(self.taylor):
            return known
        if self.wanting():
            # a declared series that is not the function's is a mistake, whatever the function is
            return None
        if known is not None:
            return known
        reach = "for all t" if self._reach() == math.inf else f"for |t| < {self._reach():g}"
        claim = (
            f"f(t) = Σ aₙtⁿ {reach} with all aₙ ≥ 0 ({DECLARED_TERMS} declared coefficients were looked at)"
        )
        fact = Fact(
            "non-negative Taylor series", "a power series in x·z with non-negative coefficients is a kernel"
        )
        conditions = (
            () if self._reach() == math.inf else (f"it is defined for |x·z| < {self._reach():g} only",)
        )
        return Proof(self, fact, (), conditions, (claim,))

    def _reach(self) -> float:
        if self.radius is None:
            return math.inf
        return self.radius

    def wanting(self) -> str:
        if isinstance(self.taylor, tuple):
            return ""
        if not callable(self.taylor):
            if super().proof() is not None:
                return ""
            return (
                f"For a proof of {self}, declare its Taylor series: taylor= a list, or a function n -> a_n."
            )
        assert self.f is not None
        return doubt(self.f, self.taylor, self.radius)

    def latex(self) -> str:
        try:
            self.recorded()
        except NotRecorded:
            return rf"\mathrm{{{latex_value(self.f)}}}\left(x^\top z\right)"
        return super().latex()
