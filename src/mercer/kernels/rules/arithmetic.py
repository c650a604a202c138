"""Multiples, sums and products of kernels. Sums of sums and products of products flatten; they never mix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, cast

import numpy as np
from scipy.special import logsumexp

from mercer.arrays import Rows
from mercer.kernels.base import Kernel
from mercer.kernels.combining import is_number
from mercer.kernels.latex import join_signs, times
from mercer.kernels.leaves.leaf import expression
from mercer.kernels.leaves.special import Constant
from mercer.kernels.leaves.writing import latex_value
from mercer.kernels.logarithms import Logarithm, Pairs
from mercer.kernels.maps.spectral import Mapped, NoSpectrum, Spectrum, SumOfFrequencies
from mercer.kernels.programs.program import Place
from mercer.kernels.proofs import expansion
from mercer.kernels.proofs.enclosure import Enclosed, Sample, entries, entrywise
from mercer.kernels.proofs.expansion import Terms, proof_by_expansion
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.rules.combined import Nary, Unary, all_of, remembered
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.sparse_map import SparseMap, side_by_side
from mercer.params import children as several_kernels
from mercer.params import given, signed
from mercer.typing import Array

# ── building ────────────────────────────────────────────────────────────────────────────────────────────────


def add(a: Kernel | float, b: Kernel | float) -> Kernel:
    """a + b, flattened; a number is a constant."""
    parts: list[Kernel] = []
    for v in (a, b):
        if isinstance(v, Sum):
            parts += v.parts
        elif isinstance(v, Kernel):
            parts.append(v)
        elif is_number(v):
            parts.append(Constant(v))
        else:
            return cast(Kernel, NotImplemented)
    return Sum(tuple(parts))


def multiply(a: Kernel, b: Kernel | float) -> Kernel:
    """a · b, flattened; numbers are gathered in front."""
    if is_number(b):
        if isinstance(a, Scaled) and _plain(a):
            return Scaled(a.kernel, a.scale * float(b))
        return Scaled(a, b)
    if not isinstance(b, Kernel):
        return cast(Kernel, NotImplemented)
    scale = 1.0
    parts: list[Kernel] = []
    scaled = False
    for v in (a, b):
        if isinstance(v, Scaled) and _plain(v):
            scale *= v.scale
            v = v.kernel
            scaled = True
        parts += v.parts if isinstance(v, Product) else (v,)
    product = Product(tuple(parts))
    if scaled:
        return Scaled(product, scale)
    return product


def _plain(k: Kernel) -> bool:
    return not (k.fixed_names or k.stated_bounds)


# ── the rules ───────────────────────────────────────────────────────────────────────────────────────────────


@expression
class Scaled(Unary):
    """c · k."""

    kernel: Kernel = given()
    scale: float = signed()

    precedence = 2
    factor_name: ClassVar = "scale"

    def with_children(self, children: list[Kernel]) -> Kernel:
        """Numbers stay gathered in front, as `multiply` puts them: 3·(2·k) is 6·k."""
        inner = children[0]
        if isinstance(inner, Scaled) and _plain(inner):
            return self.changed(kernel=inner.kernel, scale=self.scale * inner.scale)
        return self.changed(kernel=inner)

    def block(self, x: Rows, z: Rows | None) -> Array:
        return self.scale * self.kernel.block(x, z)

    def diagonal(self, x: Rows) -> Array:
        return self.scale * self.kernel.diagonal(x)

    def program(self, at: Place) -> None:
        self.kernel.program(at.child("kernel"))
        at.affine(at.param(self.scale, "scale"))

    def contract(self, W: Array, at: Sweep) -> None:
        at.add("scale", float((W * at.value(self.kernel)).sum()))
        self.kernel.contract(self.scale * W, at.child("kernel"))

    def noise_variance(self) -> float | None:
        inner = self.kernel.noise_variance()
        if inner is None:
            return None
        return self.scale * inner

    def logarithm(self, at: Pairs) -> Logarithm:
        log, sign = self.kernel.logarithm(at)
        with np.errstate(divide="ignore"):
            return log + np.log(abs(self.scale)), sign * np.sign(self.scale)

    def expanded(self, *, split: bool) -> Terms:
        return {t: Fraction(self.scale) * c for t, c in self.kernel.expanded(split=split).items()}

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        if self.scale < 0:
            raise NoSpectrum(f"{self} has a negative factor")
        inner = self.kernel.spectrum(d, names)
        return Mapped(d, self.scale * inner.amplitude, inner, np.eye(d))

    def enclosed(self, sample: Sample) -> Enclosed:
        scale = Interval.exact(self.scale)
        return entries(self.kernel.enclosed(sample), lambda v: scale * v)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        inner = self.kernel.sparse_map(x) if self.scale >= 0 else None
        return None if inner is None else inner.scaled(float(np.sqrt(self.scale)))

    def text(self) -> str:
        inside = self.kernel.text_inside(2)
        if self.scale == -1:
            return f"-{inside}"
        return f"{self.scale!r}*{inside}"

    def latex(self) -> str:
        inside = self.kernel.latex_inside(2)
        if self.scale == -1:
            return f"-{inside}"
        return times(latex_value(self.scale), inside)

    @remembered
    def proof(self) -> Proof | None:
        if self.scale >= 0:
            fact = Fact("positive multiple", "qᵀ(cK)q = c · qᵀKq ≥ 0 for c ≥ 0")
            found = self._passed_on(fact, (f"c = {self.scale!r} ≥ 0",))
            if found is not None:
                return found
        return proof_by_expansion(self)

    def root_proof(self) -> Proof | None:
        if self.scale < 0:
            return None
        return self._passed_on(Fact("infinitely divisible", "(ck)^r = c^r k^r with c ≥ 0"), root=True)


@expression
class Sum(Nary):
    """k₁ + k₂ + …"""

    parts: tuple[Kernel, ...] = several_kernels()

    precedence = 1

    def with_children(self, children: list[Kernel]) -> Kernel:
        out = children[0]
        for child in children[1:]:
            out = out + child
        return out

    def block(self, x: Rows, z: Rows | None) -> Array:
        out = self.parts[0].block(x, z).copy()
        for part in self.parts[1:]:
            out += part.block(x, z)
        return out

    def diagonal(self, x: Rows) -> Array:
        return sum((part.diagonal(x) for part in self.parts[1:]), self.parts[0].diagonal(x))

    def program(self, at: Place) -> None:
        self._write_parts(at, "ADD")

    def contract(self, W: Array, at: Sweep) -> None:
        for name, part in self.children():
            part.contract(W, at.child(name))

    def logarithm(self, at: Pairs) -> Logarithm:
        parts = [part.logarithm(at) for part in self.parts]
        logs = [log for log, _ in parts]
        signs = [sign for _, sign in parts]
        with np.errstate(divide="ignore", invalid="ignore"):
            log, sign = logsumexp(logs, b=signs, axis=0, return_sign=True)
        return log, sign

    def expanded(self, *, split: bool) -> Terms:
        out: Terms = {}
        for part in self.parts:
            out = expansion.plus(out, part.expanded(split=split))
        return out

    def enclosed(self, sample: Sample) -> Enclosed:
        return entrywise([part.enclosed(sample) for part in self.parts], lambda a, b: a + b)

    def sparse_map(self, x: Rows) -> SparseMap | None:
        maps = []
        for part in self.parts:
            inner = part.sparse_map(x)
            if inner is None:
                return None
            maps.append(inner)
        return side_by_side(maps)

    def text(self) -> str:
        return join_signs([part.text_inside(2) for part in self.parts])

    def latex(self) -> str:
        return join_signs([part.latex_inside(1) for part in self.parts])

    @remembered
    def proof(self) -> Proof | None:
        premises = self._premises()
        if premises is None:
            return proof_by_expansion(self)
        return Proof(self, Fact("sum of kernels", "qᵀ(K₁ + K₂)q = qᵀK₁q + qᵀK₂q ≥ 0"), premises)


@expression
class Product(Nary):
    """k₁ · k₂ · …, over the same columns or, with `on`, over different ones (the tensor product)."""

    parts: tuple[Kernel, ...] = several_kernels()

    precedence = 2

    def with_children(self, children: list[Kernel]) -> Kernel:
        out = children[0]
        for child in children[1:]:
            out = out * child
        return out

    def block(self, x: Rows, z: Rows | None) -> Array:
        out = self.parts[0].block(x, z).copy()
        for part in self.parts[1:]:
            out *= part.block(x, z)
        return out

    def diagonal(self, x: Rows) -> Array:
        out = self.parts[0].diagonal(x).copy()
        for part in self.parts[1:]:
            out *= part.diagonal(x)
        return out

    def program(self, at: Place) -> None:
        self._write_parts(at, "MUL")

    def contract(self, W: Array, at: Sweep) -> None:
        values = [at.value(part) for part in self.parts]
        for i, (name, part) in enumerate(self.children()):
            others = np.prod([v for j, v in enumerate(values) if j != i], axis=0)
            part.contract(W * others, at.child(name))

    def logarithm(self, at: Pairs) -> Logarithm:
        parts = [part.logarithm(at) for part in self.parts]
        log = np.sum([log for log, _ in parts], axis=0)
        return log, np.prod([sign for _, sign in parts], axis=0)

    def expanded(self, *, split: bool) -> Terms:
        out = expansion.number(1)
        for part in self.parts:
            out = expansion.multiply(out, part.expanded(split=split))
        return out

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        parts = tuple(part.spectrum(d, names) for part in self.parts)
        return SumOfFrequencies(d, float(np.prod([p.amplitude for p in parts])), parts)

    def enclosed(self, sample: Sample) -> Enclosed:
        return entrywise([part.enclosed(sample) for part in self.parts], lambda a, b: a * b)

    def text(self) -> str:
        return "*".join(part.text_inside(3) for part in self.parts)

    def latex(self) -> str:
        return r"\cdot ".join(part.latex_inside(2) for part in self.parts)

    @remembered
    def proof(self) -> Proof | None:
        premises = self._premises()
        if premises is None:
            return proof_by_expansion(self)
        reason = (
            "Schur: the entrywise product of the Gram matrices "
            "is a principal block of their Kronecker product"
        )
        return Proof(self, Fact("product of kernels", reason), premises)

    def root_proof(self) -> Proof | None:
        premises = all_of(part.root_proof() for part in self.parts)
        if premises is None:
            return None
        reason = "(k₁k₂)^r = k₁^r k₂^r, a product of kernels"
        return Proof(self, Fact("infinitely divisible", reason), premises)
