"""What the data propose to a search.

Periods come from the spectrum of what a kernel leaves of the targets, places to cut from where that changes,
and columns from how much of it they explain.

`series/periods` looks for periods too, and answers another question. There a period is decided upon, once,
from the changes of the series: it must be worth its coefficients. Here it is a guess about what one kernel
leaves, which the evidence judges afterwards: the highest peaks will do, false ones cost one look, and a
criterion that leaves weak ones out would keep them from ever being judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import lombscargle

from mercer.arrays import Column
from mercer.kernels import RBF, Kernel, Linear, Matern, Periodic, RationalQuadratic, Standardized, White
from mercer.kernels.terms import latent_terms
from mercer.structure.grammar import HEIGHT, Menu, after, before
from mercer.structure.scoring import GLANCE, NEARLY, Candidate, Sample, guessed_curvature, residuals, tuned
from mercer.typing import Array, Integers

# Frequencies for each independent one, and the most that are looked at.
FINE = 6
MOST_FREQUENCIES = 20_000
# A period is looked for where the data have it so many times.
CYCLES = 2.5
PERIODS = 3
# Harmonics, the first included, that are taken out to see the next pattern.
REMOVED = 3
LOOKS = 3
# Two periods are one within this share.
ALIKE = 0.05
PLACES = 2
COLUMNS = 3
# The share of the rows on either side of a change, at least.
SIDE = 0.1
# Rows that one side of a cut is looked at by itself with, at least, and the noise that it begins with.
FEWEST_OF_SIDE = 12
SIDE_NOISE = 0.1
BINS = 10
# Parts that each of two columns is cut into, and pairs of columns that are proposed.
SIDES = 4
PAIRS = 3


@dataclass(frozen=True)
class Line:
    """One ordered column: where it begins, how long it is, how far its points lie apart."""

    low: float
    high: float
    spacing: float

    @classmethod
    def of(cls, x: Array) -> Line:
        points = np.unique(x)
        spacing = float(np.median(np.diff(points))) if len(points) > 1 else 1.0
        return cls(float(points[0]), float(points[-1]), spacing)

    @property
    def span(self) -> float:
        return max(self.high - self.low, np.finfo(float).tiny)

    def linear(self) -> Kernel:
        """A line through the middle of the axis, with variance 1 over it."""
        middle = 0.5 * (self.low + self.high)
        return Linear().of(Standardized((middle,), (self.span / math.sqrt(12.0),)))


def first_of_line(sample: Sample, line: Line) -> list[Kernel]:
    """Where the search of one ordered column begins: a term, two patterns, one on each side of a place."""
    menu = menu_of_line(None, sample, line)
    x = sample.X[:, 0]
    two = two_periods_of(x, detrended(x, sample.y), line)
    pair = [HEIGHT * Periodic(two[0]) + HEIGHT * Periodic(two[1])] if len(two) > 1 else []
    return [*menu.terms, *pair, *(cut for place in menu.places for cut in cuts_at(place, sample, line))]


def menu_of_line(candidate: Candidate | None, sample: Sample, line: Line) -> Menu:
    """Proposals for one ordered column, from what a candidate leaves of the targets."""
    x = sample.X[:, 0]
    flat = detrended(x, sample.y)
    left = flat if candidate is None else residuals(candidate.kernel, sample)
    periods = periods_of(x, left, line)
    if candidate is not None:
        periods = _merged(periods, [*two_periods_of(x, flat, line), *periods_of(x, flat, line)])
    lengths = [line.span / 2, line.span / 8, line.span / 30]
    curves: list[Kernel] = [RBF(length) for length in lengths]
    curves.append(RationalQuadratic(line.span / 8, alpha=0.5))
    waves: list[Kernel] = [Periodic(period) for period in periods]
    terms = [line.linear(), *curves, *waves, *(RBF(line.span) * wave for wave in waves)]
    rough = roughness(x, sample.y)
    places = _merged_places([*places_of(x, left), *places_of(*rough)], places_of(x, flat), line)
    terms += [after(place, 0.01 * line.span) for place in places]
    if len(places) > 1:
        first, last = sorted(places)[:2]
        window = after(first, 0.01 * line.span) * before(last, 0.01 * line.span)
        terms.append(RBF(line.span / 8) * window)
    return Menu(
        terms=tuple(HEIGHT * term for term in terms),
        factors=(line.linear(), RBF(line.span / 2), *waves),
        places=tuple(places),
        width=0.01 * line.span,
        step=0.04 * line.span,
    )


def detrended(x: Array, y: Array) -> Array:
    """y less its straight line."""
    A = np.column_stack([np.ones(len(x)), x - x.mean()])
    return np.asarray(y - A @ np.linalg.lstsq(A, y, rcond=None)[0])


def periods_of(x: Array, y: Array, line: Line) -> list[float]:
    """The periods with the highest peaks of the spectrum, alone and together with their harmonics.

    >>> x = np.arange(120.0)
    >>> [round(p) for p in periods_of(x, np.sin(2 * np.pi * x / 12), Line.of(x))[:1]]
    [12]
    """
    highest = 0.5 / line.spacing
    lowest = CYCLES / line.span
    if highest <= lowest or len(x) < 8 or not np.ptp(y) > 0:
        return []
    count = min(int(FINE * line.span * (highest - lowest)) + 2, MOST_FREQUENCIES)
    frequencies = np.linspace(lowest, highest, count)
    power = lombscargle(x - x.mean(), y - y.mean(), 2 * np.pi * frequencies)
    comb = power.copy()
    for harmonic in (2, 3):
        comb += np.interp(harmonic * frequencies, frequencies, power, right=0.0)
    found: list[float] = []
    for spectrum in (power, comb):
        found = _merged(found, [1 / f for f in _peaks(frequencies, spectrum)])
    return found[:PERIODS]


def two_periods_of(x: Array, y: Array, line: Line) -> list[float]:
    """The period of the highest peak, and that of what is left of y without it and its first harmonics.

    A pattern with sharp corners has high harmonics: beside them the period of a second pattern is no peak of
    its own, the more so where it divides the first. A harmonic of a slower pattern that comes later is part
    of that one, and no pattern.

    >>> x = np.linspace(0.0, 40.0, 400)
    >>> y = np.sin(2 * np.pi * x / 6) + 1.2 * np.cos(2 * np.pi * x / 3) + 0.5 * np.sin(2 * np.pi * x)
    >>> [round(p, 1) for p in two_periods_of(x, y, Line.of(x))]
    [6.0, 1.0]
    """
    found: list[float] = []
    left = y
    for _ in range(LOOKS):
        slower = periods_of(x, left, line)[:1]
        if not slower:
            break
        found = [period for period in found if not _is_harmonic(period, slower[0])] + slower
        angles = [2 * np.pi * np.outer(x, np.arange(1, REMOVED + 1)) / period for period in found]
        waves = np.column_stack([np.ones(len(x)), *map(np.cos, angles), *map(np.sin, angles)])
        left = y - waves @ np.linalg.lstsq(waves, y, rcond=None)[0]
        if len(found) == 2:
            break
    return found


def _is_harmonic(period: float, slower: float) -> bool:
    """Whether a period is one of the harmonics of a slower one that are taken out with it."""
    times = round(slower / period)
    return 1 <= times <= REMOVED and abs(slower / period / times - 1) < ALIKE


def _peaks(frequencies: Array, power: Array) -> list[float]:
    inner = np.flatnonzero((power[1:-1] >= power[:-2]) & (power[1:-1] > power[2:])) + 1
    if power[0] > power[1]:
        inner = np.append(inner, 0)
    order = inner[np.argsort(-power[inner], kind="stable")]
    return [float(frequencies[i]) for i in order[:2]]


def _merged(first: list[float], second: list[float]) -> list[float]:
    """Both lists, without what is within `ALIKE` of one before it."""
    out: list[float] = []
    for period in (*first, *second):
        if all(abs(period / known - 1) > ALIKE for known in out):
            out.append(period)
    return out[: PERIODS + 2]


def places_of(x: Array, y: Array) -> list[float]:
    """Where mean or spread of y change most: by the likelihood of two normal laws instead of one."""
    order = np.argsort(x, kind="stable")
    x = x[order]
    y = y[order]
    n = len(y)
    side = max(int(SIDE * n), 5)
    if n < 2 * side + 2:
        return []
    cuts = np.arange(side, n - side)
    sums = np.cumsum(y)
    squares = np.cumsum(y**2)
    left = squares[cuts - 1] / cuts - (sums[cuts - 1] / cuts) ** 2
    rest = n - cuts
    right = (squares[-1] - squares[cuts - 1]) / rest - ((sums[-1] - sums[cuts - 1]) / rest) ** 2
    floor = 1e-12 * max(float(y.var()), np.finfo(float).tiny)
    gain = -cuts * np.log(np.maximum(left, floor)) - rest * np.log(np.maximum(right, floor))
    found: list[float] = []
    for i in np.argsort(-gain, kind="stable"):
        place = 0.5 * float(x[cuts[i] - 1] + x[cuts[i]])
        if all(abs(place - known) > SIDE * np.ptp(x) for known in found):
            found.append(place)
        if len(found) == PLACES:
            break
    return found


def _merged_places(first: list[float], second: list[float], line: Line) -> list[float]:
    out: list[float] = []
    for place in (*first, *second):
        if all(abs(place - known) > 0.05 * line.span for known in out):
            out.append(place)
    return out[: PLACES + 2]


def roughness(x: Array, y: Array) -> tuple[Array, Array]:
    """The changes from each point to the next, and where they are: a curve that gets rougher shows there."""
    order = np.argsort(x, kind="stable")
    return 0.5 * (x[order][1:] + x[order][:-1]), np.diff(y[order])


def cuts_at(place: float, sample: Sample, line: Line) -> list[Kernel]:
    """What explains the rows before a place, before it, and what explains those after it, after it.

    A cut of a kernel gives both sides the same one, from which it is a long way to a curve on one side and a
    pattern on the other. So each side is looked at alone: the best leaf of both, and with the second best of
    either.
    """
    early, late = (
        _leaves_of_side(sample.part(np.flatnonzero(side)))
        for side in (sample.X[:, 0] < place, sample.X[:, 0] >= place)
    )
    pairs = [(early[:1], late[:1]), (early[1:2], late[:1]), (early[:1], late[1:2])]
    width = 0.01 * line.span
    return [
        one * before(place, width) + other * after(place, width)
        for ones, others in pairs
        for one in ones
        for other in others
    ]


def _leaves_of_side(side: Sample) -> list[Kernel]:
    """The leaves that explain some rows by themselves best, with their numbers, one of each kind."""
    if len(side) < FEWEST_OF_SIDE:
        return []
    x = side.X[:, 0]
    line = Line.of(x)
    kinds: list[list[Kernel]] = [
        [line.linear()],
        [RBF(line.span / 2), RBF(line.span / 8), RBF(line.span / 30)],
        [Periodic(period) for period in periods_of(x, detrended(x, side.y), line)],
    ]
    best: list[Candidate] = []
    for leaves in kinds:
        looked = [_looked(leaf, side, line) for leaf in leaves]
        found = [candidate for candidate in looked if candidate is not None]
        if found:
            best.append(max(found, key=lambda candidate: candidate.evidence))
    best.sort(key=lambda candidate: -candidate.evidence)
    return [latent_terms(candidate.kernel)[0] for candidate in best]


def _looked(leaf: Kernel, side: Sample, line: Line) -> Candidate | None:
    kernel = HEIGHT * leaf + White(SIDE_NOISE)
    return tuned(kernel, side, GLANCE, guessed_curvature(kernel, line.span), NEARLY)


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────


def first_of_table(sample: Sample, columns: list[Column]) -> list[Kernel]:
    """Where the search of a table begins: joint functions of all columns, sums over columns, lines.

    The Gaussian of all columns is not among them: it is tuned with more care (`plain`).
    """
    X = sample.X
    lengths = _spreads(X)
    ard = tuple((lengths * np.sqrt(0.5 * len(lengths))).tolist())
    wide = tuple((2.0 * lengths * np.sqrt(0.5 * len(lengths))).tolist())
    line = _lines(X)
    additive = [
        (1.0 / len(columns)) * RBF(float(length)).on(column)
        for column, length in zip(columns, lengths, strict=True)
    ]
    alone: Kernel = additive[0]
    for part in additive[1:]:
        alone = alone + part
    joint = [Matern(wide, nu=1.5), Matern(wide, nu=2.5), RationalQuadratic(wide)]
    return [
        HEIGHT * line,
        *(1.0 * leaf for leaf in joint),
        alone,
        HEIGHT * line + 1.0 * Matern(wide, nu=2.5),
        alone + HEIGHT * RBF(ard),
    ]


def menu_of_table(candidate: Candidate, sample: Sample, columns: list[Column]) -> Menu:
    """Proposals for a table: columns that still explain what is left, joint functions, lines."""
    X = sample.X
    lengths = _spreads(X)
    left = residuals(candidate.kernel, sample)
    order = np.argsort([-explained(X[:, j], left) for j in range(X.shape[1])], kind="stable")[:COLUMNS]
    single: list[Kernel] = [RBF(float(lengths[j])).on(columns[j]) for j in order]
    lines = [_line(X[:, j]).on(columns[j]) for j in range(X.shape[1])]
    straight = [lines[j] for j in order]
    terms = [*single, *straight, _lines(X)]
    for i, j in pairs_of(X, left):
        terms.append(RBF((float(lengths[i]), float(lengths[j]))).on(columns[i], columns[j]))
    whole = np.sqrt(0.5 * len(lengths)) * lengths
    terms.append(RBF(tuple((0.5 * whole).tolist())))
    terms.append(Matern(tuple((2.0 * whole).tolist()), nu=1.5))
    means, spreads = X.mean(axis=0), lengths
    even = Standardized(tuple(means.tolist()), tuple(spreads.tolist()))
    terms.append(Matern(float(np.sqrt(len(lengths))), nu=1.5).of(even))
    return Menu(
        terms=tuple(HEIGHT * term for term in terms),
        factors=(_lines(X), *straight, *single),
        columns=tuple(columns),
        spans=tuple(np.ptp(X, axis=0).tolist()),
        lines=tuple(lines),
    )


def explained(x: Array, left: Array) -> float:
    """The share of what is left that the means of ten bins of a column explain.

    >>> x = np.linspace(-1.0, 1.0, 100)
    >>> round(explained(x, x**2), 1), round(explained(x, np.tile([1.0, -1.0], 50)), 1)
    (1.0, 0.0)
    """
    edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)[1:-1]))
    return explained_by_cells(np.searchsorted(edges, x), left)


def explained_by_cells(which: Integers, left: Array) -> float:
    """The share of what is left that the means of cells explain; `which` says the cell of each row."""
    counts = np.bincount(which)
    sums = np.bincount(which, weights=left - left.mean())
    between = float((sums**2 / np.maximum(counts, 1)).sum())
    whole = float(((left - left.mean()) ** 2).sum())
    return between / whole if whole > 0 else 0.0


def pairs_of(X: Array, left: Array) -> list[tuple[int, int]]:
    """The pairs of columns whose cells, four parts of one by four of the other, explain most of what is left.

    A column may matter by another one only: then it explains nothing alone.

    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 4))
    >>> pairs_of(X, X[:, 1] * X[:, 3])[0]
    (1, 3)
    """
    inner = np.linspace(0, 1, SIDES + 1)[1:-1]
    parts = [np.searchsorted(np.unique(np.quantile(x, inner)), x) for x in X.T]
    shares = {
        (i, j): explained_by_cells(SIDES * parts[i] + parts[j], left)
        for j in range(len(parts))
        for i in range(j)
    }
    return sorted(shares, key=lambda pair: -shares[pair])[:PAIRS]


def _spreads(X: Array) -> Array:
    # the deviation of a column that is the same in all rows may be rounding, not 0
    return np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)


def _line(x: Array) -> Kernel:
    """A line in one column, about its mean, with variance 1 over the rows."""
    return _lines(x[:, None])


def _lines(X: Array) -> Kernel:
    """All columns as lines, each about its mean in units of its deviation, with variance 1 over the rows."""
    width = np.sqrt(X.shape[1])
    reading = Standardized(tuple(X.mean(axis=0).tolist()), tuple((width * _spreads(X)).tolist()))
    return Linear().of(reading)
