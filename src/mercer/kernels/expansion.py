"""Proofs by multiplying out: a kernel as a polynomial in other kernels, with exact coefficients.

(x·z + ½)² - ¼ contains a negative term and is a kernel all the same: multiplied out it is (x·z)² + x·z. Here an
expression is expanded over its atoms (kernels that are not sums, products, powers or polynomials themselves); if no
negative coefficient is left it is a positive combination of products of kernels. Coefficients are fractions, so
that ½·½ - ¼ is exactly 0. Negative powers of x·z that remain may still be covered by the Taylor series of e^(c x·z).
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from mercer.kernels.algebra import Exp, PolynomialOf, Power, Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.dot import Dot, ExpDot, Linear, Polynomial
from mercer.kernels.proof import Fact, Proof
from mercer.kernels.special import Constant

Monomial = tuple[tuple[Kernel, int], ...]  # atoms with their powers, ordered by text
Terms = dict[Monomial, Fraction]

_MOST_TERMS = 500
_HIGHEST_POWER = 64


class _TooLarge(Exception):
    """The expansion has more terms than anyone would read."""


def proof_by_expansion(kernel: Kernel) -> Proof | None:
    """The proof that `kernel` is a positive combination of products of kernels, or None."""
    try:
        terms = expand(kernel)
    except _TooLarge:
        return None
    negative = {m: c for m, c in terms.items() if c < 0}
    covered = {m: c for m, c in negative.items() if _linear_power(m) is not None and _series(terms, m) >= 0}
    if len(covered) < len(negative):
        return None
    premises = []
    for atom in dict.fromkeys(atom for m in terms for atom, _ in m):
        if atom == kernel:
            return None
        proof = atom._proof()
        if proof is None:
            return None
        premises.append(proof)
    shown = " + ".join(_write(m, c) for m, c in terms.items() if c > 0) or "0"
    if not covered:
        reason = f"multiplied out it is {shown}, a combination of products of kernels without a negative coefficient"
        return Proof(kernel, Fact("expansion", reason), tuple(premises))
    taken = ", ".join(f"(x·z)^{_linear_power(m)}" for m in covered)
    reason = (
        f"multiplied out and written as a power series in x·z, no coefficient is negative: those of {taken} that are "
        f"taken away are smaller than what the exponential brings"
    )
    return Proof(kernel, Fact("non-negative Taylor series", reason), tuple(premises))


def expand(kernel: Kernel) -> Terms:
    """The kernel as a polynomial in its atoms; zero coefficients are dropped."""
    return {m: c for m, c in _expand(kernel).items() if c != 0}


def _expand(k: Kernel) -> Terms:
    if isinstance(k, Constant):
        return {(): Fraction(k.value)}
    if isinstance(k, Scaled):
        return {m: Fraction(k.scale) * c for m, c in _expand(k.kernel).items()}
    if isinstance(k, Sum):
        out: Terms = {}
        for part in k.parts:
            out = _plus(out, _expand(part))
        return out
    if isinstance(k, Product):
        out = {(): Fraction(1)}
        for part in k.parts:
            out = _multiply(out, _expand(part))
        return out
    if isinstance(k, Power) and k.exponent == int(k.exponent):
        return _power(_expand(k.kernel), int(k.exponent))
    if isinstance(k, PolynomialOf):
        return _horner(_expand(k.kernel), k.coefs)
    if isinstance(k, Polynomial):
        inside: Terms = {(): Fraction(k.offset), ((Linear(), 1),): Fraction(k.scale)}
        return _power(inside, k.degree)
    if isinstance(k, Dot) and isinstance(k.taylor, tuple):
        return _horner({((Linear(), 1),): Fraction(1)}, k.taylor)
    if isinstance(k, Exp):
        rate = _exponent_rate(k.kernel)
        if rate is not None:
            return {((ExpDot(rate), 1),): Fraction(1)}
    return {((_bare(k), 1),): Fraction(1)}


def _bare(k: Kernel) -> Kernel:
    """An atom without its tuning state: a fixed RBF(1.0) is the same function as a free one."""
    return k._stated(frozenset(), ()) if k._fixed or k._bounds else k


def _exponent_rate(k: Kernel) -> float | None:
    if isinstance(k, Linear):
        return 1.0
    return k.scale if isinstance(k, Scaled) and isinstance(k.kernel, Linear) and k.scale > 0 else None


def _plus(a: Terms, b: Terms) -> Terms:
    out = dict(a)
    for m, c in b.items():
        out[m] = out.get(m, Fraction(0)) + c
    return out


def _multiply(a: Terms, b: Terms) -> Terms:
    if len(a) * len(b) > 50 * _MOST_TERMS:
        raise _TooLarge
    out: Terms = {}
    for m, c in a.items():
        for n, d in b.items():
            powers = dict(m)
            for atom, p in n:
                powers[atom] = powers.get(atom, 0) + p
            key = tuple(sorted(powers.items(), key=lambda item: str(item[0])))
            out[key] = out.get(key, Fraction(0)) + c * d
    if len(out) > _MOST_TERMS:
        raise _TooLarge
    return out


def _power(a: Terms, p: int) -> Terms:
    if p > _HIGHEST_POWER:
        raise _TooLarge
    out: Terms = {(): Fraction(1)}
    for _ in range(p):
        out = _multiply(out, a)
    return out


def _horner(a: Terms, coefs: tuple[float, ...]) -> Terms:
    if len(coefs) > _HIGHEST_POWER:
        raise _TooLarge
    out: Terms = {}
    for c in reversed(coefs):
        out = _plus(_multiply(out, a), {(): Fraction(c)})
    return out


def _linear_power(m: Monomial) -> int | None:
    """n if the monomial is (x·z)^n, else None."""
    if not m:
        return 0
    return m[0][1] if len(m) == 1 and isinstance(m[0][0], Linear) else None


def _series(terms: Terms, target: Monomial) -> Fraction:
    """The coefficient of (x·z)^n in the power series of all terms b (x·z)^i e^(c x·z) with b > 0, and of `target`."""
    n = _linear_power(target)
    assert n is not None
    total = terms[target]
    for m, b in terms.items():
        shift, rate = 0, Fraction(0)
        for atom, p in m:
            if isinstance(atom, Linear):
                shift += p
            elif isinstance(atom, ExpDot):
                rate += p * Fraction(atom.scale)
            else:
                break
        else:
            if rate > 0 and shift <= n:
                total += b * rate ** (n - shift) / factorial(n - shift)
    return total


def _write(m: Monomial, c: Fraction) -> str:
    factors = [f"{a}**{p}" if p > 1 else f"{a}" for a, p in m]
    if c != 1 or not factors:
        factors.insert(0, f"{float(c):.6g}")
    return "*".join(factors)
