"""The grammar of kernels that a search walks: sums of products of leaves, and what one step may do to them.

    add         a term                      k + c·leaf,  k + c·leaf·leaf
    multiply    a term by a leaf            c·leaf → c·leaf·leaf
    replace     a leaf by one of its kin    RBF → RationalQuadratic, a door → a door elsewhere
                a curve of a column         RBF.on(2) → Linear.on(2)
    narrow      a joint leaf                RBF([1, 90, 2]) → RBF([1, 2]).on(0, 2)
    cut         at a place                  k → k·before + k·after, one term or all
    drop        a term, or all terms of a table that hardly matter

Every kernel of the grammar is made of leaves and rules that are proved, so every one of them is a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Column
from mercer.kernels import (
    RBF,
    After,
    Before,
    Constant,
    Exponential,
    Kernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    White,
)
from mercer.kernels.algebra import On, Product, Read, Scaled
from mercer.kernels.leaves.families import Radial
from mercer.kernels.terms import is_noise, latent_terms, terms_of
from mercer.kernels.things.gates import Gate
from mercer.structure.factors import Factor, Kind, factors_of

# Factors that a term may have at most, and terms of a sum.
MOST_FACTORS = 4
MOST_TERMS = 6
# A column is left out of a joint leaf where its lengthscale is so many times the data.
NARROWED = (5.0, 1.0)
# Terms of a table are dropped together that vary by less than this, of targets with variance 1.
PRUNED = (1e-3, 1e-2)
# The variance that a new term begins with, of targets with variance 1.
HEIGHT = 0.3


@dataclass(frozen=True)
class Menu:
    """What the data propose, the likeliest first: new terms, new factors, places to cut, doors to move."""

    terms: tuple[Kernel, ...] = ()
    factors: tuple[Kernel, ...] = ()
    places: tuple[float, ...] = ()
    width: float = 1.0
    step: float = 0.0
    # the columns of a table, how far each reaches, and a line in each
    columns: tuple[Column, ...] = ()
    spans: tuple[float, ...] = ()
    lines: tuple[Kernel, ...] = ()

    @property
    def most_terms(self) -> int:
        """Terms of a sum at most: a sum over all columns of a table can grow by two."""
        return max(MOST_TERMS, len(self.columns) + 2)


def total(terms: list[Kernel], noise: float) -> Kernel:
    """A sum of terms, each with a number in front, and noise."""
    kernel: Kernel = White(noise)
    for term in reversed(terms):
        scaled = term if isinstance(term, Scaled) else 1.0 * term
        kernel = scaled + kernel
    return kernel


def parts_of(kernel: Kernel) -> tuple[list[Kernel], float]:
    """The latent terms, and the variance of the noise."""
    noise = sum(term.noise_variance() or 0.0 for term in terms_of(kernel) if is_noise(term))
    return list(latent_terms(kernel)), noise


def split(term: Kernel) -> tuple[float, list[Kernel]]:
    """The number in front of a term, and its factors as they are written.

    >>> split(2.0 * RBF(1.0) * Linear())
    (2.0, [RBF(1.0), Linear()])
    """
    height = 1.0
    if isinstance(term, Scaled):
        height = term.scale
        term = term.kernel
    if isinstance(term, Product):
        return height, list(term.parts)
    return height, [term]


def joined(height: float, factors: list[Kernel]) -> Kernel:
    """The term of these factors."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return height * product


def expansions(kernel: Kernel, menu: Menu) -> Iterator[Kernel]:
    """Every kernel that is one step away."""
    terms, noise = parts_of(kernel)
    if len(terms) < menu.most_terms:
        yield from (total([*terms, new], noise) for new in menu.terms if not _is_there(new, terms))
    yield from (total(kept, noise) for kept in pruned(terms, menu))
    for i, term in enumerate(terms):
        others = terms[:i], terms[i + 1 :]
        for changed in _changed(term, menu):
            yield total([*others[0], changed, *others[1]], noise)
        if len(terms) > 1:
            yield total([*others[0], *others[1]], noise)
        for place in menu.places:
            if len(terms) < MOST_TERMS and not _has_gate(term):
                yield total([*others[0], *_cut([term], place, menu.width), *others[1]], noise)
    for place in menu.places:
        if 1 < len(terms) <= MOST_TERMS // 2 and not any(_has_gate(term) for term in terms):
            yield total(_cut(terms, place, menu.width), noise)
    yield from _with_moved_gates(kernel, menu)


def pruned(terms: list[Kernel], menu: Menu) -> list[list[Kernel]]:
    """The terms of a table without all that hardly vary over the rows: by a strict and by a mild measure.

    One term alone is dropped by the step that drops any.

    >>> menu = Menu(columns=(0, 1, 2, 3), spans=(1.0,) * 4)
    >>> terms = [RBF(1.0).on(0), 0.01 * RBF(1.0).on(1), RBF(90.0).on(2), RBF(80.0).on(3)]
    >>> pruned(terms, menu)
    [[RBF(1.0).on(0), 0.01*RBF(1.0).on(1)], [RBF(1.0).on(0)]]
    """
    if not menu.columns:
        return []
    sizes = [_variation(term, menu) for term in terms]
    found: list[list[Kernel]] = []
    for least in PRUNED:
        kept = [term for term, size in zip(terms, sizes, strict=True) if size >= least]
        if 0 < len(kept) < len(terms) - 1 and kept not in found:
            found.append(kept)
    return found


def _variation(term: Kernel, menu: Menu) -> float:
    """The variance of a term, and for a curve of one column the part of it that shows over the rows."""
    height, factors = factors_of(term)
    reach = dict(zip(menu.columns, menu.spans, strict=True))
    if len(factors) == 1 and factors[0].columns is not None and len(factors[0].columns) == 1:
        for length in factors[0].numbers("lengthscale"):
            height *= -np.expm1(-0.5 * (reach[factors[0].columns[0]] / length) ** 2)
    return float(height)


def _is_there(new: Kernel, terms: list[Kernel]) -> bool:
    """Whether a term without numbers of its own, such as a line, is in the sum already."""
    _, factors = factors_of(new)
    if any(factor.leaf.parameters for factor in factors):
        return False
    return key_of(new) in [key_of(term) for term in terms]


def _changed(term: Kernel, menu: Menu) -> Iterator[Kernel]:
    """A term times a leaf, and with a leaf replaced."""
    height, factors = split(term)
    for new in menu.factors:
        if len(factors) < MOST_FACTORS and _goes_with(new, factors):
            yield joined(height, [*factors, new])
    for j, factor in enumerate(factors):
        for kin in (*kin_of(factor), *_lines_for(factor, menu), *narrowed(factor, menu)):
            yield joined(height, [*factors[:j], kin, *factors[j + 1 :]])
        if len(factors) > 1:
            yield joined(height, [*factors[:j], *factors[j + 1 :]])


def _goes_with(new: Kernel, factors: list[Kernel]) -> bool:
    """Whether a product with these factors says something new: one of each kind on the same columns."""
    _, (fresh,) = factors_of(new)
    for factor in factors:
        _, inside = factors_of(factor)
        if any(old.kind is fresh.kind and old.columns == fresh.columns for old in inside):
            return False
        joint = any(old.columns is None or (old.columns and len(old.columns) > 1) for old in inside)
        if joint and fresh.columns is not None:
            return False
    return True


def _lines_for(factor: Kernel, menu: Menu) -> list[Kernel]:
    """The line in the one column of a curve, which may stand for it."""
    if not isinstance(factor, On) or not isinstance(factor.kernel, Radial):
        return []
    return [line for line in menu.lines if isinstance(line, On) and line.columns == factor.columns]


def narrowed(factor: Kernel, menu: Menu) -> list[Kernel]:
    """A joint leaf without the columns along which it hardly changes: by a strict and by a mild measure.

    Where the data tell neither way a lengthscale ends anywhere. So the nearer half of the columns is tried
    too, and all but the farthest.

    >>> menu = Menu(columns=(0, 1, 2), spans=(1.0, 1.0, 1.0))
    >>> narrowed(RBF([0.5, 20.0, 2.0]), menu)
    [RBF([0.5, 2.0]).on(0, 2), RBF(0.5).on(0)]
    >>> narrowed(RBF([0.5, 0.9, 0.7, 0.4]), Menu(columns=(0, 1, 2, 3), spans=(1.0,) * 4))
    [RBF([0.5, 0.7, 0.4]).on(0, 2, 3), RBF([0.5, 0.4]).on(0, 3)]
    """
    leaf, columns = factor, menu.columns
    if isinstance(factor, On):
        leaf, columns = factor.kernel, factor.columns
    if not isinstance(leaf, Radial) or not isinstance(leaf.lengthscale, tuple):
        return []
    reach = dict(zip(menu.columns, menu.spans, strict=True))
    pairs = list(zip(columns, leaf.lengthscale, strict=True))
    ratios = sorted(length / reach[column] for column, length in pairs if reach[column] > 0)
    limits = list(NARROWED)
    if len(ratios) > 1:
        limits += [ratios[-1], ratios[len(ratios) // 2]]
    found: list[Kernel] = []
    for spans in limits:
        kept = {column: length for column, length in pairs if length < spans * reach[column]}
        if not 0 < len(kept) < len(columns):
            continue
        lengths = tuple(kept.values())
        new = leaf.changed(lengthscale=lengths if len(lengths) > 1 else lengths[0]).on(*kept)
        if new not in found:
            found.append(new)
    return found


def kin_of(factor: Kernel) -> list[Kernel]:
    """Leaves that may stand for this one, with the same lengthscale on the same columns."""
    if isinstance(factor, On):
        return [On(kin, factor.columns) for kin in kin_of(factor.kernel)]
    if isinstance(factor, Read):
        return [Read(kin, factor.reading) for kin in kin_of(factor.kernel)]
    if not isinstance(factor, Radial):
        return []
    length = factor.lengthscale
    family: list[Kernel] = [
        RBF(length),
        RationalQuadratic(length, alpha=1.0),
        Matern(length, nu=1.5),
        Matern(length, nu=2.5),
        Exponential(length),
    ]
    return [kin for kin in family if leaf_name(kin) != leaf_name(factor)]


def leaf_name(leaf: Kernel) -> str:
    """The name of a leaf, with what shapes it and is not tuned."""
    if isinstance(leaf, Matern):
        return f"Matern{leaf.nu:g}"
    return type(leaf).__name__


# ── doors ───────────────────────────────────────────────────────────────────────────────────────────────────


def after(place: float, width: float) -> Kernel:
    return Linear().of(After(place, width))


def before(place: float, width: float) -> Kernel:
    return Linear().of(Before(place, width))


def _cut(terms: list[Kernel], place: float, width: float) -> list[Kernel]:
    """Each term before the place, and once more, with numbers of its own, after it."""
    early = [term * before(place, width) for term in terms]
    late = [term * after(place, width) for term in terms]
    return [*early, *late]


def gate_places(kernel: Kernel) -> list[float]:
    """The places of all doors."""
    readings = [part.reading for part in kernel.walk() if isinstance(part, Read)]
    return sorted({reading.place for reading in readings if isinstance(reading, Gate)})


def chosen_numbers(kernel: Kernel) -> int:
    """How many numbers were chosen by the data: those that were tuned, and place and width of each door."""
    return len(kernel.theta) + 2 * len(gate_places(kernel))


def leaves_in(kernel: Kernel) -> int:
    """How many leaves its terms have, noise not counted."""
    return sum(len(factors_of(term)[1]) for term in latent_terms(kernel))


def periods_in(kernel: Kernel) -> list[float]:
    """The periods of its patterns.

    >>> periods_in(RBF(1.0) * Periodic(12.0) + Periodic(3.0)), periods_in(RBF(1.0))
    ([12.0, 3.0], [])
    """
    factors = [factor for term in latent_terms(kernel) for factor in factors_of(term)[1]]
    return [period for factor in factors for period in factor.numbers("period")]


def _has_gate(term: Kernel) -> bool:
    return any(isinstance(part, Read) and isinstance(part.reading, Gate) for part in term.walk())


def _with_moved_gates(kernel: Kernel, menu: Menu) -> Iterator[Kernel]:
    """The kernel with all doors of one place moved together, or made wider or narrower."""
    for place in gate_places(kernel):
        for shift in (-menu.step, menu.step, -menu.step / 4, menu.step / 4):
            yield regated(kernel, place, place + shift, 1.0)
        for factor in (1 / 3, 3.0):
            yield regated(kernel, place, place, factor)


def regated(kernel: Kernel, old: float, new: float, stretch: float) -> Kernel:
    def change(_: str, part: Kernel) -> Kernel:
        if not (isinstance(part, Read) and isinstance(part.reading, Gate)):
            return part
        gate = part.reading
        if gate.place != old:
            return part
        return Read(part.kernel, gate.changed(place=new, width=stretch * gate.width))

    return kernel.changed_everywhere(change)


def foreseen(kernel: Kernel, end: float) -> Kernel:
    """The kernel as it is known at the `end` of some rows: without the changes that come later.

    Nobody knows of a change before it comes; a door beyond the end was put there by the rows that followed.

    >>> from mercer import RBF, After, Before, Linear, Periodic, White
    >>> k = RBF(1.0)*Linear().of(Before(8.0, 0.1)) + Periodic(1.0)*Linear().of(After(8.0, 0.1)) + White(0.1)
    >>> foreseen(k, 7.0)
    1.0*RBF(1.0) + White(0.1)
    >>> foreseen(k, 9.0) is k
    True
    """
    if all(place <= end for place in gate_places(kernel)):
        return kernel
    terms, noise = parts_of(kernel)
    known: list[Kernel] = []
    for term in terms:
        height, factors = split(term)
        later = [gate for gate in map(_gate, factors) if gate is not None and gate.place > end]
        if any(isinstance(gate, After) for gate in later):
            continue
        kept = [factor for factor in factors if _gate(factor) not in later]
        known.append(joined(height, kept or [Constant(1.0)]))
    return total(known, noise)


def _gate(factor: Kernel) -> Gate | None:
    """The door that a factor is, if it is one."""
    if isinstance(factor, Read) and isinstance(factor.reading, Gate):
        return factor.reading
    return None


# ── what kernels have in common ─────────────────────────────────────────────────────────────────────────────


def key_of(kernel: Kernel) -> tuple[object, ...]:
    """What two kernels of the same structure share: leaves and columns, periods and places nearly."""
    terms = [factors_of(term)[1] for term in latent_terms(kernel)]
    return tuple(sorted(tuple(sorted(_factor_key(factor) for factor in factors)) for factors in terms))


def _factor_key(factor: Factor) -> tuple[str, str, str]:
    columns = "" if factor.columns is None else ",".join(map(str, factor.columns))
    detail = ""
    if factor.gate is not None:
        detail = f"{type(factor.gate).__name__} {factor.gate.place:.6g} {factor.gate.width:.3g}"
    elif isinstance(factor.leaf, Periodic):
        detail = ",".join(f"{np.log(p):.1f}" for p in factor.numbers("period"))
    elif factor.leaf.parameters and not factor.numbers("lengthscale"):
        detail = str(factor.leaf)
    lengths = factor.numbers("lengthscale")
    if len(lengths) > 1:
        detail += f" {len(lengths)} lengthscales"
    return leaf_name(factor.leaf), columns, detail


_NAMES = {Kind.SHAPE: "smooth", Kind.PERIODIC: "periodic", Kind.LINE: "linear", Kind.GATE: "gate"}


def kinds_of(kernel: Kernel) -> frozenset[str]:
    """The set of term kinds: "smooth", "periodic × smooth", "linear", …, each with its columns, if any.

    >>> sorted(kinds_of(2.0 * RBF(1.0) + Matern(2.0) + Periodic(1.0) * RBF(5.0) + White(0.1)))
    ['periodic × smooth', 'smooth']
    """
    found = set()
    for term in latent_terms(kernel):
        names = {kind_name(f) for f in factors_of(term)[1] if f.kind is not Kind.LEVEL}
        if names:
            found.add(" × ".join(sorted(names)))
    return frozenset(found)


def kind_name(factor: Factor) -> str:
    name = _NAMES.get(factor.kind, leaf_name(factor.leaf))
    if factor.columns is None:
        return name
    return f"{name} in {', '.join(map(str, factor.columns))}"
