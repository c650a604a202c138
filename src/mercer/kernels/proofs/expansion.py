"""Proofs by multiplying out: a kernel as a power series in other kernels, with exact coefficients.

(x·z + ½)² - ¼ contains a negative term and is a kernel all the same: multiplied out it is (x·z)² + x·z. Here
an expression is expanded over its atoms (kernels that are not sums, products, powers, polynomials or
exponentials themselves) into terms c · a₁^p₁ a₂^p₂ … · e^P, where P is again a polynomial in the atoms. Read
as a power series in the atoms, it is a kernel if no coefficient is negative, because every product of kernels
is a kernel. Three things are looked at, all with fractions, so that ½·½ - ¼ is exactly 0:

    exponentials    b e^P pays for c e^Q where |Q| ≤ P coefficient by coefficient and b ≥ |c|: cosh and sinh
    monomials       each one that is taken away is compared with what the whole series brings of it: e^k - 1
    atoms           each one must be proved by itself
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mercer.kernels.proofs.proof import Fact, Proof

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# Atoms with their powers. A set, because two different kernels may be written the same.
Monomial: TypeAlias = "frozenset[tuple[Kernel, int]]"
Polynomial: TypeAlias = dict[Monomial, Fraction]

ONE: Monomial = frozenset()

_MOST_TERMS = 500
HIGHEST_POWER = 64
_LARGEST_EXPONENT = 1000


class Term(NamedTuple):
    """A monomial times e^P; P without entries is e⁰ = 1."""

    monomial: Monomial
    exponent: frozenset[tuple[Monomial, Fraction]] = frozenset()


Terms: TypeAlias = dict[Term, Fraction]


class TooLarge(Exception):
    """The expansion has more terms than anyone would read."""


def proof_by_expansion(kernel: Kernel) -> Proof | None:
    """The proof that `kernel` is a positive combination of products of kernels, or None."""
    try:
        terms = expand(kernel)
        found = _proof_from_terms(kernel, terms)
        if found is not None:
            return found
        divided = expand(kernel, split=True)
        if divided == terms:
            return None
        return _proof_from_terms(kernel, divided)
    except TooLarge:
        return None


def _proof_from_terms(kernel: Kernel, terms: Terms) -> Proof | None:
    if not _exponentials_are_covered(terms):
        return None
    negative = [t for t, c in terms.items() if c < 0 and _is_pure(t)]
    if any(_degree(t.monomial) > HIGHEST_POWER for t in negative):
        return None
    if any(_least_coefficient(terms, t.monomial) < 0 for t in negative):
        return None
    premises = _premises(kernel, terms)
    if premises is None:
        return None
    return Proof(kernel, _fact(terms, negative), premises)


def _fact(terms: Terms, negative: list[Term]) -> Fact:
    if not negative and min(terms.values(), default=Fraction(0)) >= 0 and not any(t.exponent for t in terms):
        shown = " + ".join(_write(t.monomial, c) for t, c in terms.items()) or "0"
        return Fact(
            "expansion",
            f"multiplied out it is {shown}, a combination of products of kernels without a negative "
            "coefficient",
        )
    series = f"x·z{'' if _only_linear(terms) else ' and the kernels below'}"
    reason = f"multiplied out and written as a power series in {series}, no coefficient is negative"
    if negative:
        taken = ", ".join(_write(t.monomial, Fraction(1)) for t in negative)
        reason += f": what is taken away of {taken} is no more than what the exponentials bring"
    elif any(c < 0 for c in terms.values()):
        reason += ": what one exponential takes away, a larger one brings"
    return Fact("non-negative Taylor series", reason)


def _premises(kernel: Kernel, terms: Terms) -> tuple[Proof, ...] | None:
    out = []
    for atom in _atoms(terms):
        proof = None if atom == kernel else atom.proof()
        if proof is None:
            return None
        out.append(proof)
    return tuple(out)


# ── when no coefficient of the series is negative ───────────────────────────────────────────────────────────


def _exponentials_are_covered(terms: Terms) -> bool:
    """Whether every term c·m·e^Q whose series may go below zero is paid for by others b·m·e^P with |Q| ≤ P.

    The series of e^Q is at most that of e^|Q| ≤ e^P in size, coefficient by coefficient. So what is left of b
    after paying |c| has no negative coefficient; a debt may be split among several payers.
    """
    exponentials = {t: c for t, c in terms.items() if not _is_pure(t)}
    purses = {t: c * _exp_bounds(t)[0] for t, c in exponentials.items() if _is_positive(t, c)}
    for debtor, c in exponentials.items():
        if debtor in purses:
            continue
        debt = abs(c) * _exp_bounds(debtor)[1]
        for payer in purses:
            if payer.monomial == debtor.monomial and _dominates(payer, debtor):
                paid = min(debt, purses[payer])
                purses[payer] -= paid
                debt -= paid
        if debt > 0:
            return False
    return True


def _is_pure(t: Term) -> bool:
    """Whether the term is a number times a monomial; the number may be e^c."""
    return not any(m for m, _ in t.exponent)


def _is_positive(t: Term, c: Fraction) -> bool:
    return c > 0 and all(r >= 0 for m, r in t.exponent if m)


def _dominates(a: Term, b: Term) -> bool:
    rates = dict(a.exponent)
    return all(rates.get(m, 0) >= abs(r) for m, r in b.exponent if m)


def _least_coefficient(terms: Terms, target: Monomial) -> Fraction:
    """The coefficient of `target` in the whole series, rounded down (only e^c, c constant, is rounded)."""
    total = Fraction(0)
    for term, c in terms.items():
        rest = _divide(target, term.monomial)
        if rest is None:
            continue
        share = c * _coefficient_of_exp(term, rest)
        low, high = _exp_bounds(term)
        total += share * (low if share > 0 else high)
    return total


def _coefficient_of_exp(term: Term, target: Monomial) -> Fraction:
    """The coefficient of `target` in e^P, P without its constant: Σ Pⁿ/n!, cut to what divides `target`."""
    P = {m: r for m, r in term.exponent if m}
    if not P:
        return Fraction(target == ONE)
    power: Polynomial = {ONE: Fraction(1)}
    total = Fraction(target == ONE)
    for n in range(1, _degree(target) + 1):
        step: Polynomial = {}
        for m, c in power.items():
            for a, r in P.items():
                made = _times(m, a)
                if _divide(target, made) is not None:
                    step[made] = step.get(made, Fraction(0)) + c * r / n
        if len(step) > 20 * _MOST_TERMS:
            raise TooLarge
        power = step
        total += power.get(target, Fraction(0))
    return total


def _exp_bounds(term: Term) -> tuple[Fraction, Fraction]:
    """e^c for the constant c of the exponent, from below and from above."""
    c = dict(term.exponent).get(ONE, Fraction(0))
    if c == 0:
        return Fraction(1), Fraction(1)
    down = Context(prec=40, rounding=ROUND_FLOOR)
    up = Context(prec=40, rounding=ROUND_CEILING)
    low = down.divide(Decimal(c.numerator), Decimal(c.denominator))
    high = up.divide(Decimal(c.numerator), Decimal(c.denominator))
    return Fraction(down.exp(low).next_minus(down)), Fraction(up.exp(high).next_plus(up))


# ── multiplying out ─────────────────────────────────────────────────────────────────────────────────────────


def expand(kernel: Kernel, *, split: bool = False) -> Terms:
    """The kernel as terms over its atoms, without those that cancel.

    `split` divides atoms that are sums, as `AllSubsets` is.
    """
    return {t: c for t, c in kernel.expanded(split=split).items() if c != 0}


def number(c: float) -> Terms:
    """A constant."""
    return {Term(ONE): Fraction(c)}


def one_atom(k: Kernel) -> Terms:
    """A kernel that is not taken apart."""
    return {atom(k): Fraction(1)}


def exponential(k: Kernel, inside: Kernel, *, split: bool) -> Terms:
    """e^P where the kernel `inside` multiplies out to a polynomial P; else k is one atom."""
    try:
        P = expand(inside, split=split)
    except TooLarge:
        return one_atom(k)
    constant = abs(P.get(Term(ONE), Fraction(0)))
    if any(t.exponent for t in P) or constant > _LARGEST_EXPONENT:
        return one_atom(k)
    return {Term(ONE, frozenset((t.monomial, c) for t, c in P.items())): Fraction(1)}


def atom(k: Kernel) -> Term:
    """An atom without its tuning state: a fixed RBF(1.0) is the same function as a free one."""
    bare = k.with_tuning(frozenset(), ()) if k.fixed_names or k.stated_bounds else k
    return Term(frozenset({(bare, 1)}))


def plus(a: Terms, b: Terms) -> Terms:
    out = dict(a)
    for t, c in b.items():
        out[t] = out.get(t, Fraction(0)) + c
    return out


def multiply(a: Terms, b: Terms) -> Terms:
    if len(a) * len(b) > 50 * _MOST_TERMS:
        raise TooLarge
    out: Terms = {}
    for s, c in a.items():
        for t, d in b.items():
            made = Term(_times(s.monomial, t.monomial), _add_exponents(s, t))
            out[made] = out.get(made, Fraction(0)) + c * d
    if len(out) > _MOST_TERMS:
        raise TooLarge
    return out


def _add_exponents(s: Term, t: Term) -> frozenset[tuple[Monomial, Fraction]]:
    if not s.exponent or not t.exponent:
        return s.exponent or t.exponent
    rates = dict(s.exponent)
    for m, r in t.exponent:
        rates[m] = rates.get(m, Fraction(0)) + r
    return frozenset((m, r) for m, r in rates.items() if r != 0)


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, p in b:
        powers[atom] = powers.get(atom, 0) + p
    return frozenset(powers.items())


def _divide(a: Monomial, b: Monomial) -> Monomial | None:
    """a / b, or None if b does not divide a."""
    powers = dict(a)
    for atom, p in b:
        left = powers.get(atom, 0) - p
        if left < 0:
            return None
        powers[atom] = left
    return frozenset((atom, p) for atom, p in powers.items() if p)


def power(a: Terms, p: int) -> Terms:
    out: Terms = {Term(ONE): Fraction(1)}
    for _ in range(p):
        out = multiply(out, a)
    return out


def horner(a: Terms, coefs: tuple[float, ...]) -> Terms:
    out: Terms = {}
    for c in reversed(coefs):
        out = plus(multiply(out, a), {Term(ONE): Fraction(c)})
    return out


# ── reading and writing ─────────────────────────────────────────────────────────────────────────────────────


def _atoms(terms: Terms) -> list[Kernel]:
    """Every atom once, in the order of the terms."""
    return list(dict.fromkeys(atom for t in terms for m in _monomials(t) for atom, _ in _ordered(m)))


def _monomials(t: Term) -> Iterator[Monomial]:
    yield t.monomial
    yield from sorted((m for m, _ in t.exponent), key=_text)


def _ordered(m: Monomial) -> list[tuple[Kernel, int]]:
    return sorted(m, key=lambda item: str(item[0]))


def _text(m: Monomial) -> str:
    return "*".join(f"{a}**{p}" if p > 1 else f"{a}" for a, p in _ordered(m))


def _degree(m: Monomial) -> int:
    return sum(p for _, p in m)


def _only_linear(terms: Terms) -> bool:
    return all(str(a) == "Linear()" for a in _atoms(terms))


def _write(m: Monomial, c: Fraction) -> str:
    if not m:
        return _number(c)
    if c == 1:
        return _text(m)
    return f"{_number(c)}*{_text(m)}"


def _number(c: Fraction) -> str:
    """Six digits of a fraction that may be too large or too small for a float."""
    return f"{Context(prec=20).divide(Decimal(c.numerator), Decimal(c.denominator)):.6g}"
