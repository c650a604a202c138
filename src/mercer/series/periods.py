"""Periods from the data: harmonic regressions of the changes from one value to the next.

A level that wanders looks like slow waves, so it is the changes that are asked, divided by the root of their
time: of a random walk they are independent. Candidates are the peaks of their Lomb-Scargle periodogram
between two cycles of the whole and one in two steps, irregular times or not, and the multiples of these
periods, as a peak may be a harmonic. Each is tried with a handful of harmonics; the one with the least
Bayesian information criterion is kept, and the search goes on in what it leaves, until nothing is worth its
coefficients.

A slow pattern does not show in changes from one value to the next among many; so the values are averaged over
a part of the cycle first, for periods of the calendar, and over blocks for those that nobody named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lombscargle

from mercer.typing import Array

# Harmonics that are tried.
HARMONICS = (1, 2, 4, 6)
# Peaks of the periodogram that are looked at, and multiples of their periods.
PEAKS = 5
MULTIPLES = (1, 2, 3, 4, 6)
# Gain of the information criterion, and share of the variance, that a period must bring.
GAIN = 10.0
SHARE = 0.02
# A part of a period is taken for it where it explains this share of what the whole does.
ENOUGH = 0.95
# A whole number of steps is taken where it explains this share of what the period beside it does.
AS_GOOD = 0.97
# Beside the harmonics of a period that changes its shape there are more waves: this near, in cycles of the
# whole.
BESIDE = 2.0
# Changes are cut beyond so many robust deviations.
JUMP = 5.0
# Parts of a cycle of the calendar over which values are averaged, and blocks of a long series.
PARTS = 24
BLOCKS = 600
# Cycles of a period that the data must hold.
CYCLES = 2.0


@dataclass(frozen=True)
class Period:
    """A period in steps, how far it may be off, and the share of the changes it explains."""

    period: float
    doubt: float
    share: float


def find_periods(t: Array, y: Array, calendar: Sequence[float] = (), most: int = 3) -> list[Period]:
    """The periods of a series with times in steps: of the calendar, and others by the spectrum."""
    found = [period for period in (_calendar(t, y, days) for days in calendar) if period is not None]
    span = float(t[-1] - t[0])
    last = t >= t[-1] - BLOCKS
    views = [(1.0, t[last], y[last])]
    if not last.all():
        views.append((span / BLOCKS, *averaged(t, y, span / BLOCKS)))
    for width, times, values in views:
        for each in _spectrum(times, values, most):
            new = each.period >= 2 * width and not _beside(each.period, found, float(times[-1] - times[0]))
            if new and not any(abs(each.period - other.period) <= other.doubt for other in found):
                found.append(each)
    return sorted(found[:most], key=lambda each: each.period)


def averaged(t: Array, y: Array, width: float) -> tuple[Array, Array]:
    """Means of times and values over blocks of this width, where it is more than a step."""
    if width <= 1.0:
        return t, y
    block = np.floor((t - t[0]) / width).astype(np.int64)
    _, of = np.unique(block, return_inverse=True)
    count = np.bincount(of)
    return np.bincount(of, t) / count, np.bincount(of, y) / count


def _calendar(t: Array, y: Array, period: float) -> Period | None:
    """A period of the calendar, if it explains the changes between the parts of its cycle."""
    span = float(t[-1] - t[0])
    times, values = averaged(t, y, period / PARTS)
    if len(times) < 8 or np.ptp(values) == 0:
        return None
    changes = _without_jumps(_changes(times, values))
    basis = _changes(times, np.column_stack([times, times**2 / span]))
    rest = changes - basis @ _solve(basis, changes)
    tried = _tried(times, changes, basis, period)
    if tried is None:
        return None
    before = float(rest @ rest)
    _, after, columns = tried
    gain = len(changes) * np.log(before / max(after, 1e-12 * before)) - columns * np.log(len(changes))
    if gain < GAIN or before - after < SHARE * before:
        return None
    return Period(period, 0.0, (before - after) / before)


def _tried(t: Array, changes: Array, basis: Array, period: float) -> tuple[float, float, int] | None:
    """The best number of harmonics of a period: (information criterion, squares left, columns)."""
    n = len(changes)
    best: tuple[float, float, int] | None = None
    for count in HARMONICS:
        if count > 1 and period / count < 2:
            break
        waves = _changes(t, _waves(t, period, count))
        if waves.shape[1] + basis.shape[1] >= n // 2:
            break
        whole = np.column_stack([basis, waves])
        left = changes - whole @ _solve(whole, changes)
        squares = max(float(left @ left), 1e-300)
        criterion = n * np.log(squares) + waves.shape[1] * np.log(n)
        if best is None or criterion < best[0]:
            best = (criterion, squares, waves.shape[1])
    return best


def _spectrum(t: Array, y: Array, most: int) -> list[Period]:
    """Periods that nobody named, the strongest first."""
    if len(t) < 8 or np.ptp(y) == 0:
        return []
    span = float(t[-1] - t[0])
    changes = _without_jumps(_changes(t, y))
    basis = _changes(t, np.column_stack([t, t**2 / span]))
    rest = changes - basis @ _solve(basis, changes)
    total = float(rest @ rest)
    n = len(changes)
    found: list[Period] = []
    while len(found) < most:
        before = float(rest @ rest)
        if before <= 1e-12 * total:
            break
        best = _best(t, changes, basis, rest, found)
        if best is None:
            break
        period, after, columns = best
        gain = n * np.log(before / max(after, 1e-12 * total)) - columns * np.log(n)
        share = (before - after) / total
        if gain < GAIN or share < SHARE:
            break
        found.append(Period(period, period**2 / (2 * span), share))
        basis = np.column_stack([basis, _changes(t, _waves(t, period, max(1, columns // 2)))])
        rest = changes - basis @ _solve(basis, changes)
    return found


def _changes(t: Array, values: Array) -> Array:
    """Changes from one value to the next, by the root of the time between them."""
    steps = np.sqrt(np.diff(t))
    if values.ndim == 2:
        steps = steps[:, None]
    return np.asarray(np.diff(values, axis=0) / steps)


def _without_jumps(changes: Array) -> Array:
    """The changes, cut where they are beyond anything usual: one jump would hide every wave."""
    middle = np.median(changes)
    usual = JUMP * 1.4826 * np.median(np.abs(changes - middle))
    if usual == 0:
        return changes
    return np.asarray(np.clip(changes, middle - usual, middle + usual))


def _best(
    t: Array, changes: Array, basis: Array, rest: Array, found: list[Period]
) -> tuple[float, float, int] | None:
    """The period with the least information criterion: (period, squares left, columns it takes).

    Where a period that goes several times into it does nearly as well, that one; and a whole number of steps
    where it is as good.
    """
    tried: list[tuple[float, float, float, int]] = []
    for period in _candidates(t, rest, found):
        one = _tried(t, changes, basis, period)
        if one is not None:
            tried.append((one[0], period, one[1], one[2]))
    if not tried:
        return None
    _, period, squares, columns = min(tried)
    before = float(rest @ rest)
    for _, part, left_by_part, fewer in sorted(tried, key=lambda each: each[1]):
        times = period / part
        divides = abs(times - round(times)) <= times * part / (2 * float(t[-1] - t[0]))
        if divides and before - left_by_part >= ENOUGH * (before - squares):
            period, squares, columns = part, left_by_part, fewer
            break
    for _, whole, left_by_whole, others in tried:
        same = whole == round(period)
        if same and before - left_by_whole >= AS_GOOD * (before - squares):
            return whole, left_by_whole, others
    return period, squares, columns


def _candidates(t: Array, rest: Array, known: list[Period]) -> list[float]:
    """Periods at the peaks of the periodogram, their neighbours, and their multiples."""
    span = float(t[-1] - t[0])
    slowest = CYCLES / span
    fastest = 0.5 / max(1.0, float(np.median(np.diff(t))))
    if slowest >= fastest:
        return []
    frequencies = np.linspace(slowest, fastest, max(64, int(8 * span * (fastest - slowest))))
    middles = 0.5 * (t[1:] + t[:-1])
    power = lombscargle(middles, rest, 2 * np.pi * frequencies)
    inner = (power[1:-1] >= power[:-2]) & (power[1:-1] >= power[2:])
    peaks = np.flatnonzero(np.concatenate([[True], inner, [True]]))
    peaks = peaks[np.argsort(-power[peaks], kind="stable")][:PEAKS]
    found: list[float] = []
    for peak in peaks:
        for multiple in MULTIPLES:
            period = multiple / _top(frequencies, power, int(peak))
            doubt = period**2 / (2 * span)
            whole = float(round(period))
            if period * CYCLES > span or period < 2 or _beside(period, known, span):
                continue
            found.append(float(period))
            if abs(whole - period) <= doubt and whole >= 2:
                found.append(whole)
    return list(dict.fromkeys(found))


def _top(frequencies: Array, power: Array, peak: int) -> float:
    """Where the parabola through a peak and its neighbours is highest."""
    if not 0 < peak < len(power) - 1:
        return float(frequencies[peak])
    left, middle, right = power[peak - 1 : peak + 2]
    bend = left - 2 * middle + right
    if bend >= 0:
        return float(frequencies[peak])
    return float(frequencies[peak] + 0.5 * (left - right) / bend * (frequencies[1] - frequencies[0]))


def _beside(period: float, known: list[Period], span: float) -> bool:
    """Whether a period lies at a harmonic of one that is known."""
    for other in known:
        harmonic = max(1, round(other.period / period))
        if abs(harmonic / other.period - 1 / period) <= BESIDE / span:
            return True
    return False


def _waves(t: Array, period: float, count: int) -> Array:
    """Sines and cosines of so many harmonics of a period."""
    angles = 2 * np.pi * np.outer(t, np.arange(1, count + 1)) / period
    waves = np.hstack([np.sin(angles), np.cos(angles)])
    # the sine of half a cycle a step is zero at every step
    return waves[:, np.abs(waves).max(axis=0) > 1e-6]


def _solve(A: Array, y: Array) -> Array:
    return np.asarray(np.linalg.lstsq(A, y, rcond=None)[0])
