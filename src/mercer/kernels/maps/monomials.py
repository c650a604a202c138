"""Kernels that are polynomials in the products t_i = x_i z_i, expanded exactly.

    p = Σ t_i, the dot product            E = Π (1 + t_i), all subsets

Sums, products and powers of such kernels are again Σ a_jk p^j E^k, here with exact rational a_jk. The
monomial t^α then has a coefficient c(α) that depends only on the *kind* of α: how often each exponent occurs.
Since monomials are linearly independent functions, the polynomial is a kernel iff no c(α) is negative, and
then φ_α(x) = √c(α) x^α is its smallest map. A coefficient that cancels to within the rounding of the numbers
it came from counts as zero.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.errors import InvalidKernelError, MagnitudeError, MemoryBudgetError, NoFiniteMapError
from mercer.typing import Array, Flags, Integers

# (j, k) of p^j E^k
Term = tuple[int, int]
# how many exponents are 1, 2, 3, …
Kind = tuple[int, ...]
# a coefficient, and the same with every sign made positive
Pair = tuple[Fraction, Fraction]
# columns of monomials, and exponents of all columns
Places: TypeAlias = npt.NDArray[np.int32]
Powers: TypeAlias = npt.NDArray[np.int16]

ROUNDING = Fraction(1, 2**48)
# The highest degree that is multiplied out when there are more than two terms.
_LONGEST = 400
_MOST_KINDS = 200_000
_HIGHEST_POWER = 2000


def vanishes(net: Fraction, gross: Fraction) -> bool:
    """Whether a sum is zero to within the rounding of its terms."""
    return abs(net) <= ROUNDING * gross


@dataclass(frozen=True)
class Expansion:
    """Σ a_jk p^j E^k with exact coefficients."""

    terms: dict[Term, Pair]

    @classmethod
    def of(cls, coefs: dict[Term, float | Fraction]) -> Expansion:
        return cls({t: (Fraction(a), abs(Fraction(a))) for t, a in coefs.items() if a != 0})

    @classmethod
    def constant(cls, value: float | Fraction) -> Expansion:
        return cls.of({(0, 0): value})

    @classmethod
    def series(cls, coefs: tuple[float, ...]) -> Expansion:
        """c₀ + c₁p + c₂p² + …"""
        return cls.of({(j, 0): c for j, c in enumerate(coefs)})

    # ── algebra ─────────────────────────────────────────────────────────────────────────────────────────────

    def __add__(self, other: Expansion) -> Expansion:
        out = dict(self.terms)
        for t, (a, g) in other.terms.items():
            b, h = out.get(t, (Fraction(0), Fraction(0)))
            out[t] = (a + b, g + h)
        return Expansion(out)

    def __mul__(self, other: Expansion) -> Expansion:
        degrees = (max((sum(t) for t in e.terms), default=0) for e in (self, other))
        if min(len(self.terms), len(other.terms)) > 1 and sum(degrees) > _LONGEST:
            raise MemoryBudgetError(
                f"the polynomial has a degree above {_LONGEST}, too long to multiply out exactly. Use the "
                "kernel itself."
            )
        out: dict[Term, Pair] = {}
        for (j, k), (a, g) in self.terms.items():
            for (m, n), (b, h) in other.terms.items():
                c, i = out.get((j + m, k + n), (Fraction(0), Fraction(0)))
                out[j + m, k + n] = (c + a * b, i + g * h)
        return Expansion(out)

    def scaled(self, c: float | Fraction) -> Expansion:
        return self * Expansion.constant(c)

    def power(self, p: int) -> Expansion:
        if p == 0:
            return Expansion.constant(1)
        if p > _HIGHEST_POWER:
            raise MemoryBudgetError(
                f"a power of {p:,} is too high to be multiplied out exactly; at most {_HIGHEST_POWER:,} is. "
                "Use the kernel itself, which needs no map."
            )
        if len(self.terms) == 1:
            ((j, k), (a, g)) = next(iter(self.terms.items()))
            return Expansion({(j * p, k * p): (a**p, g**p)})
        if len(self.terms) == 2:
            return self._binomial(p)
        half = self.power(p // 2)
        if p % 2:
            return half * half * self
        return half * half

    def _binomial(self, p: int) -> Expansion:
        ((j, k), (a, g)), ((m, n), (b, h)) = self.terms.items()
        out: dict[Term, Pair] = {}
        for i in range(p + 1):
            c = math.comb(p, i)
            q = p - i
            out[i * j + q * m, i * k + q * n] = (c * a**i * b**q, c * g**i * h**q)
        return Expansion(out)

    def polynomial(self, coefs: tuple[float, ...]) -> Expansion:
        """c₀ + c₁e + c₂e² + … by Horner's rule."""
        out = Expansion.constant(coefs[-1])
        for c in reversed(coefs[:-1]):
            out = out * self + Expansion.constant(c)
        return out

    # ── coefficients ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def at_zero(self) -> Pair:
        """The coefficient of the empty monomial."""
        found = [pair for (j, _), pair in self.terms.items() if j == 0]
        return sum((a for a, _ in found), Fraction(0)), sum((g for _, g in found), Fraction(0))

    @property
    def is_constant(self) -> bool:
        return all(t == (0, 0) or vanishes(*pair) for t, pair in self.terms.items())

    def coefficient(self, kind: Kind) -> Fraction:
        """c(α) for the monomials of a kind; exactly 0 where it vanishes to rounding."""
        net = Fraction(0)
        gross = Fraction(0)
        for (j, k), (a, g) in self.terms.items():
            ways = _ways(j, k, kind)
            net = net + a * ways
            gross = gross + g * ways
        if vanishes(net, gross):
            return Fraction(0)
        return net

    def signed(self) -> tuple[dict[Term, Fraction], dict[Term, Fraction]]:
        """The terms with positive and with negative coefficients."""
        kept = {t: a for t, (a, g) in self.terms.items() if not vanishes(a, g)}
        return {t: a for t, a in kept.items() if a > 0}, {t: a for t, a in kept.items() if a < 0}

    @property
    def _in_dot_product_only(self) -> bool:
        """Whether no power of E is left, added or taken away: then degree j has the coefficients of p^j."""
        positive, negative = self.signed()
        return not any(k for _, k in (*positive, *negative))

    def cancelled(self, d: int) -> list[Kind]:
        """The kinds of monomial that negative terms take away; a negative coefficient is refused."""
        positive, negative = self.signed()
        if negative and self._in_dot_product_only:
            lowest = min(j for j, _ in negative)
            refuse_negative({0: "1", 1: "x1"}.get(lowest, f"x1^{lowest}"))
        seen: set[Kind] = set()
        for term in negative:
            for kind in _kinds(*term, d):
                seen.add(kind)
                if self.coefficient(kind) < 0:
                    refuse_negative(_write_kind(kind))
                if len(seen) > _MOST_KINDS:
                    raise MemoryBudgetError(
                        f"the difference touches more than {_MOST_KINDS:,} kinds of monomial, too many to "
                        "cancel exactly."
                    )
        return sorted(kind for kind in seen if self.coefficient(kind) == 0 and _supported(positive, kind))

    # ── counting ────────────────────────────────────────────────────────────────────────────────────────────

    def count(self, d: int) -> int:
        """How many monomials of d columns have a positive coefficient: exact, without listing them."""
        gone = self.cancelled(d)
        positive, _ = self.signed()
        if self._in_dot_product_only:
            return sum(math.comb(d + j - 1, j) for j, _ in positive)
        return _count_union(set(positive), d) - sum(_how_many(kind, d) for kind in gone)

    def degree(self, d: int) -> int:
        """The highest degree of a monomial, at most."""
        positive, _ = self.signed()
        return max((j + k * d for j, k in positive), default=0)

    def table_bytes(self, d: int) -> int:
        """What `table` takes for each monomial, with its scaffolding."""
        positive, _ = self.signed()
        exponents = 8 * d if any(k for _, k in positive) else 0
        return 4 * self.degree(d) + 8 + exponents

    # ── listing ─────────────────────────────────────────────────────────────────────────────────────────────

    def table(self, d: int) -> tuple[Places, Array]:
        """(index, weight): monomial i is Π x[index[i]], padded with d, and its feature weight[i] times that.

        Monomials come by degree, and within a degree as in a dictionary.
        """
        positive, _ = self.signed()
        if self._in_dot_product_only:
            self.cancelled(d)
            return _dot_table({j: a for (j, _), a in sorted(positive.items())}, d)
        gone = set(self.cancelled(d))
        exponents = _exponents(set(positive), d)
        highest = max(1, int(exponents.max(initial=0)))
        counts = np.stack([(exponents == v).sum(axis=1) for v in range(1, highest + 1)], axis=1)
        rows, place = np.unique(counts, axis=0, return_inverse=True)
        kinds = [_trimmed(row) for row in rows.tolist()]
        weights = np.array([_root(self.coefficient(kind)) for kind in kinds])[place.ravel()]
        keep = np.array([kind not in gone for kind in kinds])[place.ravel()]
        return _by_degree(exponents[keep], weights[keep], d)

    # ── the redundant list ──────────────────────────────────────────────────────────────────────────────────

    def _word_terms(self) -> dict[Term, Fraction]:
        """The terms a p^j E^k, by degree; refuses one that is taken away, which has no list of words."""
        positive, negative = self.signed()
        if negative:
            j, k = min(negative)
            shown = "*".join(f"{name}^{p}" for name, p in (("(x·z)", j), ("Π(1 + x_i z_i)", k)) if p) or "1"
            raise NoFiniteMapError(
                "there is no redundant map: it lists every product of the kernel multiplied out, and "
                f"{shown} has the "
                f"negative coefficient {float(negative[j, k]):g} there. Ask for the smallest map, "
                "features(d)."
            )
        return dict(sorted(positive.items(), key=lambda item: (sum(item[0]), item[0])))

    def count_words(self, d: int) -> int:
        """How many words of d values there are: d^j 2^(dk) for each p^j E^k."""
        return sum(d**j * 2 ** (d * k) for j, k in self._word_terms())

    def words(self, d: int) -> tuple[Places, Array]:
        """(index, weight) as of `table`, for every choice of factors in every order."""
        terms = self._word_terms()
        width = max((j + k * d for j, k in terms), default=0)
        found = [np.empty((0, width), np.int32)]
        weights = [np.empty(0)]
        for (j, k), a in terms.items():
            letters = [np.arange(d, dtype=np.int32)[:, None]] * j + [_subsets(d)] * k
            index = np.empty((1, 0), np.int32)
            for more in letters:
                index = np.column_stack([np.repeat(index, len(more), axis=0), np.tile(more, (len(index), 1))])
            padded = np.full((len(index), width), d, np.int32)
            padded[:, : index.shape[1]] = index
            found.append(padded)
            weights.append(np.full(len(index), _root(a)))
        return np.concatenate(found), np.concatenate(weights)


def _subsets(d: int) -> Array:
    """Every subset of d columns as a row of indices, d where a column is left out."""
    chosen = np.indices((2,) * d, dtype=np.int32).reshape(d, -1).T if d else np.zeros((1, 0), np.int32)
    return np.where(chosen == 1, np.arange(d, dtype=np.int32), np.int32(d))


def refuse_negative(monomial: str) -> None:
    raise InvalidKernelError(f"expanded into monomials, it has a negative coefficient at {monomial}")


def write_monomial(factors: list[str]) -> str:
    """Factors as "x1^2*x3"; none at all as "1".

    >>> write_monomial(["x1", "x1", "x3"]), write_monomial(["x1/|x|", "x1/|x|"]), write_monomial([])
    ('x1^2*x3', '(x1/|x|)^2', '1')
    """
    powers = Counter(factors)
    if len(factors) > 1:
        powers = Counter({_in_brackets(name): p for name, p in powers.items()})
    return "*".join(name if p == 1 else f"{name}^{p}" for name, p in powers.items()) or "1"


def _in_brackets(name: str) -> str:
    if any(c in name for c in "*/·") and not name.endswith(")"):
        return f"({name})"
    return name


# ── kinds ───────────────────────────────────────────────────────────────────────────────────────────────────


def _trimmed(kind: list[int] | Kind) -> Kind:
    out = list(kind)
    while out and out[-1] == 0:
        out.pop()
    return tuple(out)


def _write_kind(kind: Kind) -> str:
    exponents = [v for v, m in enumerate(kind, 1) for _ in range(m)][::-1]
    return write_monomial([f"x{i}" for i, v in enumerate(exponents, 1) for _ in range(v)])


@lru_cache(maxsize=100_000)
def _ways(j: int, k: int, kind: Kind) -> int:
    """The coefficient of t^α in p^j E^k: j! [u^j] Π_i Σ_b u^b/b! C(k, α_i - b)."""
    size = sum(v * m for v, m in enumerate(kind, 1))
    if not sum(max(0, v - k) * m for v, m in enumerate(kind, 1)) <= j <= size:
        return 0
    if k == 0:
        whole: int = math.prod(math.factorial(v) ** m for v, m in enumerate(kind, 1))
        return math.factorial(j) // whole
    out = [Fraction(1)] + [Fraction(0)] * j
    for v, m in enumerate(kind, 1):
        one = [
            Fraction(math.comb(k, v - b), math.factorial(b)) if b <= v else Fraction(0) for b in range(j + 1)
        ]
        out = _truncated(out, _truncated_power(one, m))
    return int(out[j] * math.factorial(j))


def _truncated(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [sum((a[i] * b[n - i] for i in range(n + 1)), Fraction(0)) for n in range(len(a))]


def _truncated_power(a: list[Fraction], m: int) -> list[Fraction]:
    out = [Fraction(1)] + [Fraction(0)] * (len(a) - 1)
    while m:
        if m % 2:
            out = _truncated(out, a)
        a = _truncated(a, a)
        m //= 2
    return out


def _kinds(j: int, k: int, d: int) -> Iterator[Kind]:
    """The kinds of monomial of p^j E^k in d columns: Σ max(0, α_i - k) ≤ j ≤ Σ α_i."""

    def choose(v: int, parts: int, excess: int, size: int, tail: Kind) -> Iterator[Kind]:
        if v == 0:
            if size >= j:
                yield _trimmed(tail)
            return
        most = min(parts, excess // (v - k)) if v > k else parts
        for m in range(most, -1, -1):
            yield from choose(v - 1, parts - m, excess - max(0, v - k) * m, size + v * m, (m, *tail))

    yield from choose(j + k, d, j, 0, ())


def _supported(terms: dict[Term, Fraction], kind: Kind) -> bool:
    return any(_ways(j, k, kind) > 0 for j, k in terms)


def _how_many(kind: Kind, d: int) -> int:
    """How many exponent vectors of d columns are of a kind."""
    out = 1
    free = d
    for m in kind:
        out = out * math.comb(free, m)
        free = free - m
    return out


def _count_union(terms: set[Term], d: int) -> int:
    """How many α are in the support of some p^j E^k, that is Σ max(0, α_i - k) ≤ j ≤ Σ α_i.

    The sums saturate above the largest j, so few states matter, and d columns are a power by repeated
    squaring.
    """
    top = max(j for j, _ in terms)
    ks = sorted({0} | {k for _, k in terms})
    State = tuple[int, ...]

    def capped(state: Iterator[int]) -> State:
        return tuple(min(s, top + 1) for s in state)

    def joined_certificate(a: dict[State, int], b: dict[State, int]) -> dict[State, int]:
        out: dict[State, int] = {}
        for s, m in a.items():
            for t, n in b.items():
                state = capped(u + v for u, v in zip(s, t, strict=True))
                if state[-1] <= top:
                    out[state] = out.get(state, 0) + m * n
        return out

    one: dict[State, int] = {}
    for a in range(top + ks[-1] + 1):
        state = capped(max(0, a - k) for k in ks)
        one[state] = one.get(state, 0) + 1
    total: dict[State, int] = {(0,) * len(ks): 1}
    while d:
        if d % 2:
            total = joined_certificate(total, one)
        one = joined_certificate(one, one) if d > 1 else one
        d = d // 2
    return sum(n for s, n in total.items() if any(s[ks.index(k)] <= j <= s[0] for j, k in terms))


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────


def _root(c: Fraction) -> float:
    try:
        if c > 0:
            return math.sqrt(c)
        return 0.0
    except OverflowError as error:
        raise MagnitudeError(
            "a coefficient of the feature map overflows float64; scale the kernel down."
        ) from error


def _dot_table(coefs: dict[int, Fraction], d: int) -> tuple[Places, Array]:
    """The table of Σ a_j p^j, where the monomial α of degree j has coefficient a_j j! / Πα_i!.

    Degree j is, for each first column i, x_i times the monomials of degree j - 1 in columns i and later,
    which are the last of them. `lead` is the exponent of the first column.
    """
    top = max(coefs, default=0)
    index = np.empty((1, 0), np.int32)
    root = np.ones(1)
    lead = np.zeros(1, np.int64)
    start = np.zeros(d + 1, np.int64)
    found: list[tuple[Places, Array]] = []
    for j in range(top + 1):
        if j > 0:
            sizes = len(index) - start[:-1]
            first = np.repeat(np.arange(d, dtype=np.int32), sizes)
            rest = np.concatenate([np.arange(s, len(index)) for s in start[:-1]])
            lead = np.where(index[rest, 0] == first, lead[rest] + 1, 1) if j > 1 else np.ones(d, np.int64)
            root = root[rest] * np.sqrt(j / lead)
            index = np.column_stack([first, index[rest]])
            start = np.concatenate([[0], np.cumsum(sizes)])
        if j in coefs:
            padded = np.full((len(index), top), d, np.int32)
            padded[:, :j] = index
            found.append((padded, root * _root(coefs[j])))
    if not found:
        return np.empty((0, 0), np.int32), np.empty(0)
    return np.concatenate([i for i, _ in found]), np.concatenate([w for _, w in found])


def _exponents(terms: set[Term], d: int) -> Powers:
    """Every α in the support of some p^j E^k, one row each, column by column."""
    highest = max(j + k for j, k in terms)
    out = np.zeros((1, 0), np.int16)
    for _ in range(d):
        grown = []
        for a in range(highest + 1):
            more = np.column_stack([out, np.full(len(out), a, np.int16)])
            grown.append(more[_reachable(more, terms)])
        out = np.concatenate(grown)
    size = out.sum(axis=1)
    full = [(_excess(out, k) <= j) & (j <= size) for j, k in terms]
    return out[np.any(full, axis=0)]


def _reachable(exponents: Powers, terms: set[Term]) -> Flags:
    return np.asarray(np.any([_excess(exponents, k) <= j for j, k in terms], axis=0))


def _excess(exponents: Powers, k: int) -> Integers:
    return np.asarray(np.maximum(exponents - k, 0).sum(axis=1))


def _by_degree(exponents: Powers, weights: Array, d: int) -> tuple[Places, Array]:
    """Exponents as an index table, by degree and then as in a dictionary."""
    degree = exponents.sum(axis=1)
    width = int(degree.max(initial=0))
    index = np.full((len(exponents), width), d, np.int32)
    columns = np.repeat(np.tile(np.arange(d, dtype=np.int32), len(exponents)), exponents.ravel())
    index[np.arange(width)[None, :] < degree[:, None]] = columns
    order = np.lexsort([*index.T[::-1], degree])
    return index[order], weights[order]
