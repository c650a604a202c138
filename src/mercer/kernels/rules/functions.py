"""Functions of one kernel: powers, the exponential, polynomials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.arrays import Rows
from mercer.errors import DomainError, MagnitudeError
from mercer.kernels.base import Kernel
from mercer.kernels.latex import join_signs, times
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.leaves.special import Constant
from mercer.kernels.leaves.writing import latex_value, write_value
from mercer.kernels.logarithms import Logarithm, Pairs, from_logarithm
from mercer.kernels.maps.spectral import NoSpectrum, Spectrum, SumOfFrequencies
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.enclosure import ZERO, Enclosed, Sample, entries
from mercer.kernels.proofs.expansion import Terms, proof_by_expansion
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.rules.arithmetic import Sum
from mercer.kernels.rules.combined import Unary, remembered
from mercer.kernels.sweep import Sweep
from mercer.params import coefficients, given, shape_number
from mercer.typing import Array

# Above it, what float64 takes for 0 stays below 10⁻²¹.
SMALL_POWER = 0.07
# Factors of a whole power whose frequencies are added.
MOST_COPIES = 64


@expression
class Power(Unary):
    """k^p: a kernel for whole p ≥ 0, and for every p > 0 when k is infinitely divisible."""

    kernel: Kernel = given()
    exponent: float = shape_number(words="a number >= 0", low=0, open_low=False)

    precedence = 3

    def applied(self, K: Array) -> Array:
        p = self.exponent
        if p != int(p) and K.size and K.min() < 0:
            where = tuple(int(i) for i in np.unravel_index(int(np.argmin(K)), K.shape))
            raise DomainError(
                f"{self}: the kernel inside is {K.min():.3g} at {where}, and a negative number has no real "
                f"power {p:g}."
            )
        return K**p

    @property
    def revives(self) -> bool:
        """Whether the power is so small that numbers below the range of float64 become ordinary ones."""
        return 0 < self.exponent < SMALL_POWER

    def block(self, x: Rows, z: Rows | None) -> Array:
        return self._careful(self.kernel.block(x, z), x, z, diagonal=False)

    def diagonal(self, x: Rows) -> Array:
        return self._careful(self.kernel.diagonal(x), x, None, diagonal=True)

    def _careful(self, K: Array, x: Rows, z: Rows | None, *, diagonal: bool) -> Array:
        """The power of K, by logarithms where a small power revives what has vanished."""
        out = self.applied(K)
        if not self.revives or np.all(K > 1e-290):
            return out
        return from_logarithm(self, Pairs(x, z, diagonal))

    def program(self, at: Place) -> None:
        p = self.exponent
        if p != int(p) and self.kernel.root_proof() is None:
            raise NotLowered("a fractional power of a kernel that may be negative")
        if self.revives:
            raise NotLowered("a power so small that it is taken of logarithms, where values vanish")
        self.kernel.program(at.child("kernel"))
        if p == int(p):
            at.step("POWI", 0, int(p))
        else:
            at.step("POW", at.param(p))

    def contract(self, W: Array, at: Sweep) -> None:
        inside = at.value(self.kernel)
        slope = _slope_of_power(inside, self.exponent)
        if self.revives and np.any(self.block(at.x, at.z)[inside == 0]):
            raise MagnitudeError(
                f"{self}: the kernel inside is so small that float64 takes it for 0, and its power is not, "
                "so its gradient is not known. Take a longer lengthscale, which says the same as a small "
                "power."
            )
        self.kernel.contract(W * slope, at.child("kernel"))

    def logarithm(self, at: Pairs) -> Logarithm:
        if self.exponent == 0:
            log = np.zeros_like(at.values(self))
            return log, np.ones_like(log)
        log, sign = self.kernel.logarithm(at)
        if self.exponent != int(self.exponent):
            # refuses a negative number
            self.applied(sign)
        return self.exponent * log, sign**self.exponent

    def expanded(self, *, split: bool) -> Terms:
        if self.exponent != int(self.exponent) or self.exponent > expansion.HIGHEST_POWER:
            return expansion.one_atom(self)
        return expansion.power(self.kernel.expanded(split=split), int(self.exponent))

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        r = int(self.exponent)
        if r != self.exponent or not 1 <= r <= MOST_COPIES:
            raise NoSpectrum(
                f"{self} is not a product of copies: its exponent is not a whole number from 1 to "
                f"{MOST_COPIES}"
            )
        inner = self.kernel.spectrum(d, names)
        return SumOfFrequencies(d, inner.amplitude**r, (inner,) * r)

    def enclosed(self, sample: Sample) -> Enclosed:
        inside = self.kernel.enclosed(sample)
        if self.exponent == int(self.exponent):
            return entries(inside, lambda v: v.whole_power(int(self.exponent)))
        return entries(inside, lambda v: v.power(self.exponent))

    def text(self) -> str:
        whole = self.exponent == int(self.exponent)
        p = int(self.exponent) if whole else self.exponent
        return f"{self.kernel.text_inside(4)}**{p!r}"

    def latex(self) -> str:
        return rf"{{{self.kernel.latex_inside(4)}}}^{{{self.exponent:g}}}"

    @remembered
    def proof(self) -> Proof | None:
        p = self.exponent
        if p == int(p):
            if p == 0:
                return Proof(self, Fact("constant", "k⁰ = 1"))
            found = self._passed_on(
                Fact("whole power", "a product of p copies of the kernel"), (f"p = {int(p)} ∈ ℕ",)
            )
            if found is not None:
                return found
            return proof_by_expansion(self)
        fact = Fact(
            "infinite divisibility", "every power k^r, r > 0, of an infinitely divisible kernel is a kernel"
        )
        return self._passed_on(fact, (f"p = {p:g} > 0",), root=True)

    def root_proof(self) -> Proof | None:
        if self.exponent == 0:
            return Proof(self, Fact("infinitely divisible", "1^r = 1"))
        return self._passed_on(Fact("infinitely divisible", "(k^p)^r = k^(pr)"), root=True)


def _slope_of_power(t: Array, p: float) -> Array:
    """p t^(p-1), and 0 where it is infinite: at t = 0 for p < 1, as in the core."""
    if p == 0:
        return np.zeros_like(t)
    with np.errstate(divide="ignore", over="ignore"):
        slope = p * t ** (p - 1)
    if p < 1:
        return np.where(np.isinf(slope), 0.0, slope)
    return slope


@expression
class Exp(Unary):
    """e^k."""

    kernel: Kernel = given()

    def block(self, x: Rows, z: Rows | None) -> Array:
        return np.exp(self.kernel.block(x, z))

    def diagonal(self, x: Rows) -> Array:
        return np.exp(self.kernel.diagonal(x))

    def program(self, at: Place) -> None:
        self.kernel.program(at.child("kernel"))
        at.step("EXP")

    def contract(self, W: Array, at: Sweep) -> None:
        self.kernel.contract(W * np.exp(at.value(self.kernel)), at.child("kernel"))

    def logarithm(self, at: Pairs) -> Logarithm:
        log = at.values(self.kernel)
        return log, np.ones_like(log)

    def expanded(self, *, split: bool) -> Terms:
        return expansion.exponential(self, self.kernel, split=split)

    def enclosed(self, sample: Sample) -> Enclosed:
        return entries(self.kernel.enclosed(sample), Interval.exp)

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.exp()"

    def latex(self) -> str:
        return rf"\exp\left({self.kernel.latex()}\right)"

    @remembered
    def proof(self) -> Proof | None:
        fact = Fact("exponential", "e^k = Σ k^n / n!, a limit of positive sums of powers of the kernel")
        found = self._passed_on(fact) or self._shifted()
        if found is not None:
            return found
        return proof_by_expansion(self)

    def root_proof(self) -> Proof | None:
        inner = self.kernel.proof()
        if inner is not None:
            return Proof(self, Fact("infinitely divisible", "(e^k)^r = e^(rk) and rk is a kernel"), (inner,))
        shifted = self._shifted()
        if shifted is None:
            return None
        reason = "(e^(k + c))^r = e^(rc) · e^(rk), where e^(rc) > 0 and rk is a kernel"
        return Proof(self, Fact("infinitely divisible", reason), shifted.premises)

    def _shifted(self) -> Proof | None:
        """e^(k + c) = e^c e^k: a negative constant inside an exponential does no harm."""
        parts = self.kernel.parts if isinstance(self.kernel, Sum) else (self.kernel,)
        rest = [part for part in parts if type(part) is not Constant]
        if len(rest) == len(parts):
            return None
        if not rest:
            return Proof(self, Fact("constant", "e^c is a constant > 0, and qᵀKq = e^c (Σ q_i)² ≥ 0"))
        core = rest[0] if len(rest) == 1 else Sum(tuple(rest))
        premise = core.proof()
        if premise is None:
            return None
        fact = Fact("exponential", "e^(k + c) = e^c · e^k with e^c > 0, and e^k is a kernel")
        return Proof(self, fact, (premise,))


@expression
class PolynomialOf(Unary):
    """c₀ + c₁k + c₂k² + …"""

    kernel: Kernel = given()
    coefs: tuple[float, ...] = coefficients(words="a list of finite numbers, the constant first")

    def applied(self, K: Array) -> Array:
        return np.asarray(np.polynomial.polynomial.polyval(K, self.coefs), dtype=np.float64)

    def block(self, x: Rows, z: Rows | None) -> Array:
        return self.applied(self.kernel.block(x, z))

    def diagonal(self, x: Rows) -> Array:
        return self.applied(self.kernel.diagonal(x))

    def program(self, at: Place) -> None:
        self.kernel.program(at.child("kernel"))
        first = len(at.out.params)
        for c in self.coefs:
            at.param(c)
        at.step("HORNER", first, len(self.coefs))

    def contract(self, W: Array, at: Sweep) -> None:
        derivative = np.polynomial.polynomial.polyder(self.coefs)
        slope = np.polynomial.polynomial.polyval(at.value(self.kernel), derivative)
        self.kernel.contract(W * np.asarray(slope, dtype=float), at.child("kernel"))

    def expanded(self, *, split: bool) -> Terms:
        if len(self.coefs) > expansion.HIGHEST_POWER:
            return expansion.one_atom(self)
        return expansion.horner(self.kernel.expanded(split=split), self.coefs)

    def enclosed(self, sample: Sample) -> Enclosed:
        def value(t: Interval) -> Interval:
            out = ZERO
            for c in reversed(self.coefs):
                out = out * t + Interval.exact(c)
            return out

        return entries(self.kernel.enclosed(sample), value)

    def text(self) -> str:
        return f"{self.kernel.text_inside(4)}.polynomial({write_value(self.coefs)})"

    def latex(self) -> str:
        inside = self.kernel.latex_inside(4)
        product = self.kernel.latex_inside(2)
        terms = []
        for n, c in enumerate(self.coefs):
            power = product if n == 1 else f"{{{inside}}}^{{{n}}}"
            if c:
                terms.append(times(latex_value(c), power) if n else latex_value(c))
        if terms:
            return join_signs(terms)
        return "0"

    @remembered
    def proof(self) -> Proof | None:
        if min(self.coefs) >= 0:
            fact = Fact(
                "polynomial",
                "a polynomial with non-negative coefficients: positive sums of powers of the kernel",
            )
            found = self._passed_on(fact, (f"coefficients {write_value(self.coefs)} are all ≥ 0",))
            if found is not None:
                return found
        return proof_by_expansion(self)
