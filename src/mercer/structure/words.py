"""A sum of products of kernels in plain words: one sentence for each term.

    2.0*RBF(40.0)*Periodic(1.0)       a yearly pattern that changes shape over about 40 years
    RBF(67.0)                         a smooth trend over about 67 years
    RationalQuadratic(1.2)            ups and downs over about 1.2 years, of many lengths
    White(0.036)                      noise with a deviation of 0.19

One factor of a product gives the noun (noise before patterns, patterns before curves, curves before lines),
the others say how it is changed. Factors on other columns make it an interaction. Each number that a sentence
states is kept beside it, with what it is, so that it can be recomputed from the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer.arrays import Column
from mercer.kernels import (
    RBF,
    After,
    Cosine,
    Exponential,
    Kernel,
    Known,
    Laplacian,
    Matern,
    Polynomial,
    Ranked,
    RationalQuadratic,
    SpectralMixture,
    as_kernel,
)
from mercer.kernels.terms import terms_of
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.params import Open
from mercer.scales import half_width
from mercer.structure.factors import Factor, Kind, factors_of
from mercer.structure.vocabulary import Axis, Vocabulary
from mercer.typing import Array, Table

# Columns of one leaf that are named with their lengths; of more, so many are named at all.
WITH_LENGTHS = 3
NAMED = 5
# From this shape on the lengths that a rational quadratic mixes differ so little (their inverse squares have
# a deviation of a third) that it is said as the Gaussian which it nearly is.
ONE_LENGTH = 10.0
# Normal deviations on either side of a band of 95 %.
BAND = half_width(0.95)
_DEGREES = {1: "linear", 2: "quadratic", 3: "cubic"}
_GROWTH = {1: "linearly", 2: "quadratically", 3: "cubically"}


@dataclass(frozen=True)
class Number:
    """A number that a sentence states: what it is, its value, and how it was written.

    `of` is "lengthscale", "period", "place", "degree", "columns", "deviation", "share" or "band".
    """

    of: str
    value: float
    shown: str


@dataclass(frozen=True)
class Said:
    """A term in words.

    `text` is the whole sentence, `phrase` the part of it that needs the kernel alone, `numbers` all that it
    states, in their order. `share` is the term's share of the variance of the targets, `band` the half width
    of the 95 % band around its mean, as a root mean square over the rows; both are None without a fit.
    """

    term: Kernel
    text: str
    phrase: str
    numbers: tuple[Number, ...]
    share: float | None = None
    band: float | None = None

    def __str__(self) -> str:
        return self.text


def say(kernel: Kernel, vocabulary: Vocabulary | None = None, *, scale: float = 1.0) -> tuple[Said, ...]:
    """One sentence for each term of a kernel, in the order of the kernel, without shares.

    `scale` is what 1 in units of the kernel's target is in units of y.

    >>> from mercer import RBF, Linear, Periodic, White
    >>> years = Vocabulary((Axis(unit="years", low=1958.0, high=2003.0),))
    >>> k = 9.0 * RBF(67.0) + 2.0 * RBF(40.0) * Periodic(1.0) + White(0.0361)
    >>> for said in say(k, years):
    ...     print(said)
    a smooth trend over about 67 years
    a yearly pattern that changes shape over about 40 years
    noise with a deviation of 0.19
    """
    words = Vocabulary() if vocabulary is None else vocabulary
    found = []
    for term in terms_of(kernel):
        speech = _Speech(words)
        phrase = speech.term(term, scale)
        found.append(Said(term, phrase, phrase, tuple(speech.numbers)))
    return tuple(found)


def say_fit(
    model: GaussianProcessRegressor, X: Table, y: Array, vocabulary: Vocabulary | None = None
) -> tuple[Said, ...]:
    """The terms of a fitted Gaussian process with their shares and bands at rows X, the largest first.

    Noise comes last, with what is left of the targets as its share.
    """
    words = Vocabulary() if vocabulary is None else vocabulary
    scale = float(np.ravel(model.y_scale_)[0])
    sentences = say(as_kernel(model.kernel_), words, scale=scale)
    latent = [said for said in sentences if said.term.noise_variance() is None]
    noises = [said for said in sentences if said.term.noise_variance() is not None]
    if not latent:
        return tuple(_with_share(said, 1.0 / len(noises), None, words) for said in noises)
    terms = model.decompose(X)
    shares = terms.shares(y)
    bands = BAND * np.sqrt(np.mean(terms.std**2, axis=1))
    told = [_with_share(said, float(shares[i]), float(bands[i]), words) for i, said in enumerate(latent)]
    told.sort(key=lambda said: -(said.share or 0.0))
    variances = [said.term.noise_variance() or 0.0 for said in noises]
    for said, variance in zip(noises, variances, strict=True):
        own = variance / (sum(variances) or 1.0)
        told.append(_with_share(said, float(shares[-1]) * own, None, words))
    return tuple(told)


def _with_share(said: Said, share: float, band: float | None, words: Vocabulary) -> Said:
    percent = round(100 * share)
    shown = f"{percent} %" if percent >= 1 else "less than 1 %"
    text = f"{said.phrase}; {shown} of the variance"
    numbers = [*said.numbers, Number("share", share, shown)]
    if band is not None:
        amount = words.amount(band)
        text += f", known to ± {amount}"
        numbers.append(Number("band", band, amount))
    return replace(said, text=text, numbers=tuple(numbers), share=share, band=band)


# ── one term ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Speech:
    """Builds one sentence and keeps the numbers that it states."""

    words: Vocabulary
    numbers: list[Number] = field(default_factory=list)
    # the number in front of the term
    height: float = 1.0

    def stated(self, of: str, value: float, shown: str) -> str:
        self.numbers.append(Number(of, value, shown))
        return shown

    def term(self, term: Kernel, scale: float) -> str:
        """The phrase of a whole term."""
        height, factors = factors_of(term)
        self.height = height
        groups: dict[tuple[Column, ...] | None, list[Factor]] = {}
        for factor in factors:
            if factor.kind is not Kind.LEVEL:
                groups.setdefault(_key(factor), []).append(factor)
        if not groups:
            return "a constant level"
        noise = [factor for factor in factors if factor.kind is Kind.NOISE]
        if noise:
            return self.noise(noise, groups, height, scale)
        if len(groups) == 1:
            return self.group(next(iter(groups.values())))
        names = [name for columns in groups for name in self.names(columns)]
        phrases = [self.group(group) for group in groups.values()]
        together = _listed(list(dict.fromkeys(names)))
        return f"an interaction of {together}: {', times '.join(phrases)}"

    def noise(
        self,
        noise: list[Factor],
        groups: dict[tuple[Column, ...] | None, list[Factor]],
        height: float,
        scale: float,
    ) -> str:
        """Noise: its deviation where it is the same everywhere, else what changes it."""
        others = [f for group in groups.values() for f in group if f.kind is not Kind.NOISE]
        if not others:
            variance = height * math.prod(f.leaf.noise_variance() or 1.0 for f in noise)
            deviation = math.sqrt(max(variance, 0.0)) * scale
            shown = self.stated("deviation", deviation, self.words.amount(deviation))
            return f"noise with a deviation of {shown}"
        places = [f for f in others if f.kind is Kind.GATE]
        lines = [f for f in others if f.kind is Kind.LINE]
        said = "noise"
        if lines:
            said += self.growth(lines, self.axis(lines[0]), "deviation")
        elif len(places) < len(others):
            said += " of a size that is not the same everywhere"
        if places:
            said += self.gates(places, self.axis(places[0]))
        return said

    def group(self, factors: list[Factor]) -> str:
        """The factors on the same columns: a noun, and what changes it."""
        order = sorted(factors, key=lambda f: (f.kind.value, min(f.numbers("lengthscale"), default=0.0)))
        noun = order[0]
        if len(self.names(noun.columns, spoken=True)) > 1:
            return self.several(order)
        axis = self.axis(noun)
        lines = [f for f in order if f.kind is Kind.LINE]
        gates = [f for f in order if f.kind is Kind.GATE]
        rest = [f for f in order[1:] if f.kind not in (Kind.LINE, Kind.GATE)]
        if noun.kind is Kind.GATE:
            return self.only_gates(gates, axis)
        if noun.kind is Kind.LINE:
            said = self.line(lines, axis)
        else:
            said = self.noun(noun, axis)
            said += self.changes(noun, rest, axis, " that repeats " in said)
            if lines:
                said += self.growth(lines, axis, "size")
        if gates:
            said += self.gates(gates, axis)
        return said

    # ── nouns ───────────────────────────────────────────────────────────────────────────────────────────────

    def noun(self, factor: Factor, axis: Axis) -> str:
        place = f" in {axis.name}" if axis.name else ""
        leaf = factor.leaf
        if factor.kind is Kind.PERIODIC:
            return self.pattern(factor, axis, place)
        if isinstance(leaf, SpectralMixture):
            return f"a mixture of waves{place}"
        if factor.kind is Kind.SHAPE:
            lengths = factor.numbers("lengthscale")
            long = bool(lengths) and axis.is_long(lengths[0])
            said = f"{_curve(leaf, long)}{place}{self.over(lengths, axis)}"
            many = isinstance(leaf, RationalQuadratic) and not _is_gaussian(leaf)
            return f"{said}, of many lengths" if many else said
        if factor.kind is Kind.WALK:
            return f"a random walk{place}"
        if factor.kind is Kind.CATEGORY:
            known = any(isinstance(r, Known) for r in factor.readings)
            if known:
                return f"a level for whether {axis.name or 'a value'} is known"
            return f"a level for each {axis.name or 'category'}"
        return f"a part{place} of the form {leaf}"

    def pattern(self, factor: Factor, axis: Axis, place: str) -> str:
        word = "wave" if isinstance(factor.leaf, Cosine) else "pattern"
        periods = factor.numbers("period")
        if not periods:
            return f"a {word}{place} that repeats"
        name = axis.cycle(periods[0])
        if name is not None:
            return f"a{'n' if name == 'hourly' else ''} {name} {word}{place}"
        shown = self.stated("period", periods[0], axis.length(periods[0]))
        return f"a {word}{place} that repeats every {shown}"

    def line(self, lines: list[Factor], axis: Axis) -> str:
        place = f" in {axis.name}" if axis.name else ""
        degree = _degree(lines)
        if degree in _DEGREES:
            return f"a {_DEGREES[degree]} trend{place}"
        return f"a polynomial trend{place} of degree {self.stated('degree', degree, str(degree))}"

    def several(self, factors: list[Factor]) -> str:
        """Leaves that look at several columns at once."""
        first = factors[0]
        said = f"{_joint(first)} of {self.looked_at(first)}"
        for other in factors[1:]:
            said += f", times {_joint(other)} of them"
        return said

    def looked_at(self, factor: Factor) -> str:
        """The columns of a factor, with the lengths of those that it follows most closely."""
        names = self.names(factor.columns, spoken=True)
        lengths = factor.numbers("lengthscale")
        if factor.kind is not Kind.SHAPE or len(lengths) != len(names):
            return self.some(names, everything=factor.columns is None)
        axes = self.axes(factor)
        if len(names) <= WITH_LENGTHS:
            return _listed([self.with_length(*pair) for pair in zip(axes, lengths, strict=True)])
        spans = [axis.span for axis in axes]
        if not all(spans):
            return self.some(names, everything=factor.columns is None)
        order = sorted(range(len(names)), key=lambda j: lengths[j] / (spans[j] or 1.0))
        matter = [j for j in order if not axes[j].is_flat(lengths[j], self.height)]
        idle = len(names) - len(matter)
        said = self.stated("columns", len(names), str(len(names))) + " columns"
        if matter:
            leading = matter[:WITH_LENGTHS]
            shown = [self.with_length(axes[j], lengths[j]) for j in leading]
            said += f", most of all of {_listed(shown)}"
        if idle:
            many = self.stated("columns", idle, str(idle))
            said += f"; {many} of the columns {'matters' if idle == 1 else 'matter'} next to nothing"
        return said

    def with_length(self, axis: Axis, length: float) -> str:
        return f"{axis.name} (over about {self.stated('lengthscale', length, axis.length(length))})"

    def some(self, names: Sequence[str], everything: bool) -> str:
        if len(names) <= NAMED:
            return _listed(list(names))
        if everything:
            return f"all {self.stated('columns', len(names), str(len(names)))} columns"
        more = len(names) - NAMED
        shown = self.stated("columns", more, str(more))
        return f"{', '.join(names[:NAMED])} and {shown} more columns"

    # ── what changes them ───────────────────────────────────────────────────────────────────────────────────

    def changes(self, noun: Factor, rest: list[Factor], axis: Axis, joined: bool) -> str:
        """Other factors that make a noun change."""
        said = ""
        for factor in rest:
            if factor.kind is Kind.SHAPE and noun.kind is Kind.PERIODIC:
                over = self.over(factor.numbers("lengthscale"), axis)
                said += f"{' and' if joined else ' that'} changes shape{over}"
                joined = True
            elif factor.kind is Kind.SHAPE:
                said += f", changing{self.over(factor.numbers('lengthscale'), axis)}"
            elif factor.kind is Kind.PERIODIC:
                said += f", times {self.pattern(factor, axis, '')}"
            else:
                said += f", times {self.noun(factor, axis)}"
        return said

    def growth(self, lines: list[Factor], axis: Axis, what: str) -> str:
        """A size that is proportional to the distance from a place, or to a power of it."""
        degree = _degree(lines)
        how = _GROWTH.get(degree, "")
        if not how:
            how = f"with power {self.stated('degree', degree, str(degree))}"
        origin = lines[0].origin
        if axis.low is not None and origin <= axis.low:
            return f" whose {what} grows {how}"
        if axis.high is not None and origin >= axis.high:
            return f" whose {what} shrinks {how}"
        place = self.stated("place", origin, axis.point(origin))
        return f" whose {what} grows {how} away from {place}"

    def gates(self, gates: list[Factor], axis: Axis) -> str:
        """After a place, before a place, or between two."""
        after, before = _places(gates)
        if after is not None and before is not None:
            first = self.stated("place", after, axis.point(after))
            return f" between about {first} and {self.stated('place', before, axis.point(before))}"
        if after is not None:
            return f" after about {self.stated('place', after, axis.point(after))}"
        assert before is not None
        return f" before about {self.stated('place', before, axis.point(before))}"

    def only_gates(self, gates: list[Factor], axis: Axis) -> str:
        place = f" in {axis.name}" if axis.name else ""
        after, before = _places(gates)
        if after is not None and before is not None:
            return f"a level{place}{self.gates(gates, axis)}"
        one = after if after is not None else before
        assert one is not None
        return f"a step{place} at about {self.stated('place', one, axis.point(one))}"

    def over(self, lengths: tuple[float, ...], axis: Axis) -> str:
        if not lengths:
            return " over a length left to the data"
        return f" over about {self.stated('lengthscale', lengths[0], axis.length(lengths[0]))}"

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────

    def axes(self, factor: Factor) -> list[Axis]:
        if factor.columns is None:
            return list(self.words.axes)
        return [self.words.axis(column) for column in factor.columns]

    def axis(self, factor: Factor) -> Axis:
        """The axis of a factor on one column; what reads it may change its unit."""
        axis = self.axes(factor)[0]
        if any(isinstance(r, Ranked) for r in factor.readings):
            return Axis(f"the rank of {axis.name or 'x'}", "deviations", -2.0, 2.0)
        date = factor.date
        if date is None:
            return axis
        if date.part == "years":
            return replace(axis, unit="years", low=None, high=None)
        return replace(axis, unit=f"{date.part}s", low=0.0, high=1.0)

    def names(self, columns: tuple[Column, ...] | None, *, spoken: bool = False) -> list[str]:
        """What columns are called; one that has no name is called x where it must be."""
        axes = self.words.axes if columns is None else [self.words.axis(c) for c in columns]
        return [axis.name or ("" if spoken else "x") for axis in axes]


def _key(factor: Factor) -> tuple[Column, ...] | None:
    """Columns as a key: slices can be no key before Python 3.12."""
    if factor.columns is None:
        return None
    return tuple(str(c) if isinstance(c, slice) else c for c in factor.columns)


def _is_gaussian(leaf: Kernel) -> bool:
    """Whether a leaf is a Gaussian, or so near one that nobody would see the difference."""
    if isinstance(leaf, RationalQuadratic):
        return not isinstance(leaf.alpha, Open) and leaf.alpha >= ONE_LENGTH
    return isinstance(leaf, RBF)


def _curve(leaf: Kernel, long: bool) -> str:
    noun = "trend" if long else "ups and downs"
    article = "a " if long else ""
    if _is_gaussian(leaf):
        return f"{article}smooth {noun}"
    rough = isinstance(leaf, Exponential | Laplacian) or (isinstance(leaf, Matern) and leaf.nu < 1)
    if rough:
        return f"{article}rough {noun}"
    return f"{article}{noun}"


def _joint(factor: Factor) -> str:
    if factor.kind is Kind.SHAPE:
        smooth = "smooth " if _is_gaussian(factor.leaf) else ""
        return f"a {smooth}joint function"
    if factor.kind is Kind.LINE:
        degree = _degree([factor])
        return f"a {_DEGREES.get(degree, 'polynomial')} function"
    if factor.kind is Kind.CATEGORY:
        return "a level for each combination"
    return f"a part of the form {factor.leaf}"


def _degree(lines: list[Factor]) -> int:
    return sum(f.leaf.degree if isinstance(f.leaf, Polynomial) else 1 for f in lines)


def _places(gates: list[Factor]) -> tuple[float | None, float | None]:
    """Where the last door opens and where the first one shuts, on the axis itself."""
    opens = [f for f in gates if isinstance(f.gate, After)]
    shuts = [f for f in gates if not isinstance(f.gate, After)]
    after = max((_place(f) for f in opens), default=None)
    before = min((_place(f) for f in shuts), default=None)
    return after, before


def _place(factor: Factor) -> float:
    assert factor.gate is not None
    return factor.origin + factor.unit * factor.gate.place


def _listed(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
