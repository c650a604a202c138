"""From a series to its members: periods, scale, breaks, outliers, shapes, and how each fared on the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer import clock
from mercer.errors import MercerError
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.progress import Talk
from mercer.scales import IDENTITY, Scale, candidates
from mercer.series.axis import TimeAxis
from mercer.series.members import SEARCHED, Member, Values, backtested, searched
from mercer.series.mixture import best, score
from mercer.series.periods import Period, find_periods
from mercer.series.shapes import DECAYS, TRENDS, Season, Shape
from mercer.solve.anytime import Anytime
from mercer.typing import Array, Integers

# By so many nats a season of the calendar must raise the evidence, one that was searched for, and a break.
WORTH = 5.0
WORTH_SEARCHED = 10.0
BREAK_WORTH = 10.0
MOST_BREAKS = 3
# Nats for each value within which two scales are both tried, and not more than so many.
NEAR = 0.03
MOST_SCALES = 2
# Beyond so many deviations from what the others say a value is an outlier.
OUTLIER = 6.0
MOST_OUTLIERS = 0.02
BESIDE_BREAK = 2.0
# Values that a break needs on either side.
BESIDE_END = 5
# Origins of the back-test, and the largest share of the values that follow the first.
ORIGINS = 5
TESTED = 0.4
QUICK = 30


@dataclass(frozen=True)
class StudiedSeries:
    """What the study found: the members, best first, and what led to them."""

    members: tuple[Member, ...]
    every: tuple[Member, ...]
    tests: tuple[slice, ...]
    outliers: Integers
    interrupted: bool
    # the seconds were over before all models were tried
    late: bool = False


def study(t: Array, y: Array, axis: TimeAxis, horizon: int, talk: Talk) -> StudiedSeries:
    """Search what a series is made of, and test it on the past."""
    step = axis.step
    first = _first_look(t, y, axis, talk)
    leading = first[0]
    outliers = leading.outliers
    if len(outliers):
        t, y = np.delete(t, outliers), np.delete(y, outliers)
    tests = rolling_origins(t, horizon, leading.shape.breaks)
    followed = [y[part] for part in tests]
    scales = _tried_scales(first, NEAR * min(len(t), SEARCHED))
    members: tuple[Member, ...] = ()
    failed: MercerError | None = None
    late = False
    run: Anytime[tuple[Member, ...]] = Anytime()
    with run:
        for look in scales:
            values = Values.of(t, y, step, look.scale)
            for each in _shapes(look.shape):
                late = bool(members) and clock.late()
                if late:
                    break
                talk(f"{_spoken(each)} on {look.scale.words}")
                try:
                    member = backtested(each, values, tests)
                except MercerError as error:
                    failed = error
                    continue
                members = (*members, replace(member, score=score(member.tests, followed)))
                run.best = members
    if not members:
        assert failed is not None
        raise failed
    return StudiedSeries(best(members), members, tests, outliers, run.interrupted, late)


@dataclass(frozen=True)
class _Look:
    """The first look at one scale: breaks and seasons with the plainest trend, by evidence, and outliers."""

    scale: Scale
    shape: Shape
    evidence: float
    outliers: Integers


def _first_look(t: Array, y: Array, axis: TimeAxis, talk: Talk) -> list[_Look]:
    """Scales, breaks and seasons by evidence, the best scale first."""
    looks = [_look(Values.of(t, y, axis.step, scale), axis, talk) for scale in possible_scales(y)]
    return sorted(looks, key=lambda look: -look.evidence)


def _look(values: Values, axis: TimeAxis, talk: Talk) -> _Look:
    talk(f"periods of {values.scale.words}")
    calendar = [period / axis.step for period in axis.calendar_periods(values.span)]
    steps = (values.t - values.t[0]) / axis.step
    periods = find_periods(steps, values.z, calendar)
    trial = _Trial(values, Shape("slope"))
    seasons = [Season(each.period * axis.step, each.doubt * axis.step) for each in _by_share(periods)]
    trial.take_seasons(seasons, talk)
    if trial.take_breaks(_jumps(values), axis, talk):
        # what a break hid may show now
        trial.take_seasons(seasons, talk)
    return _Look(values.scale, trial.shape, trial.evidence, trial.outliers())


class _Trial:
    """A shape that grows while its evidence does."""

    def __init__(self, values: Values, shape: Shape) -> None:
        self.values = values
        self.shape = shape
        self.model, self.evidence = self._searched(shape)

    def _searched(self, shape: Shape) -> tuple[GaussianProcessRegressor, float]:
        values = self.values
        return searched(shape.kernel(values.span, values.step), values, len(values), QUICK)

    def take(self, shape: Shape, worth: float) -> None:
        """Take a richer shape if it is worth it."""
        model, evidence = self._searched(shape)
        if evidence > self.evidence + worth:
            self.shape, self.model, self.evidence = shape, model, evidence

    def take_seasons(self, seasons: Sequence[Season], talk: Talk) -> None:
        """Take the seasons that are worth it, the strongest first."""
        for season in seasons:
            if season in self.shape.seasons:
                continue
            talk(f"a period of {season.period:.4g}")
            worth = WORTH_SEARCHED if season.give else WORTH
            self.take(replace(self.shape, seasons=(*self.shape.seasons, season)), worth)

    def take_breaks(self, places: Sequence[float], axis: TimeAxis, talk: Talk) -> bool:
        """Take the breaks that are worth it; whether there is one."""
        for place in places:
            talk(f"a break at {axis.label(place)}")
            self.take(replace(self.shape, breaks=(*self.shape.breaks, place)), BREAK_WORTH)
        return bool(self.shape.breaks)

    def outliers(self) -> Integers:
        """Single values far from what all others say, if they are few, and not beside a break."""
        mean, std = self.model.loo(return_std=True)
        off = np.abs((np.asarray(self.model.y_fit_) - mean) / std)
        times = np.asarray(self.model.X_fit_)[off > OUTLIER, 0]
        for place in self.shape.breaks:
            times = times[np.abs(times - place) > BESIDE_BREAK * self.values.step]
        if len(times) > max(1, MOST_OUTLIERS * len(off)):
            return np.array([], dtype=np.int64)
        return np.asarray(np.flatnonzero(np.isin(self.values.t, times)))


def _by_share(periods: Sequence[Period]) -> list[Period]:
    return sorted(periods, key=lambda each: -each.share)


def possible_scales(y: Array) -> tuple[Scale, ...]:
    """As it is, and the logarithm where the values are positive and differ by a factor that matters.

    Where some are 0, their roots and logarithm after a shift. Roots of positive values are not tried: chosen
    by evidence, that of a long past, they forecast the last tenths of seven series worse than the logarithm.
    """
    if np.any(y < 0) or y.max() < 1.3 * y.min():
        return (IDENTITY,)
    if np.any(y == 0):
        return candidates(y)
    return (IDENTITY, Scale(0.0))


def _tried_scales(looks: Sequence[_Look], near: float) -> list[_Look]:
    """The best scale, and the logarithm or the values as they are if they are nearly as good.

    A root that is second says nearly the same as the first.
    """
    leading, *others = looks
    rivals = [each for each in others if each.scale.power in (0.0, 1.0)]
    near_ones = [each for each in rivals if each.evidence >= leading.evidence - near]
    return [leading, *near_ones][:MOST_SCALES]


def _shapes(shape: Shape) -> list[Shape]:
    decays = DECAYS if shape.seasons else DECAYS[:1]
    return [replace(shape, trend=trend, decay=decay) for trend in TRENDS for decay in decays]


def _spoken(shape: Shape) -> str:
    return f"trend: {shape.trend}" + (f", seasons {shape.decay}" if shape.seasons else "")


def _jumps(values: Values) -> list[float]:
    """Times between two values whose difference is beyond anything usual, the largest first."""
    changes = np.diff(values.z)
    usual = 1.4826 * np.median(np.abs(changes - np.median(changes)))
    if usual == 0:
        return []
    far = np.flatnonzero(np.abs(changes) > OUTLIER * usual)
    far = far[[_stays(values.z, i, usual) for i in far.tolist()]] if len(far) else far
    far = far[(far >= BESIDE_END) & (far < len(changes) - BESIDE_END)]
    far = far[np.argsort(-np.abs(changes[far]), kind="stable")][:MOST_BREAKS]
    return [float(0.5 * (values.t[i] + values.t[i + 1])) for i in far]


def _stays(z: Array, i: int, usual: float) -> bool:
    """Whether the level after a jump is another one, as it is not after an outlier."""
    before = np.median(z[max(i + 1 - BESIDE_END, 0) : i + 1])
    after = np.median(z[i + 1 : i + 1 + BESIDE_END])
    return bool(abs(after - before) > 0.5 * OUTLIER * usual)


def rolling_origins(t: Array, horizon: int, breaks: Sequence[float]) -> tuple[slice, ...]:
    """Which values are forecast from those before them: the same horizon, or a quarter of the values.

    What comes after a break is not asked of those before it, who could not know.
    """
    n = len(t)
    ahead = max(1, min(horizon, n // 4))
    first = n - min(int(TESTED * n), max(4 * ahead, ORIGINS))
    origins = np.unique(np.linspace(max(first, 2), n - ahead, ORIGINS).round().astype(np.int64))
    tests = []
    for origin in origins.tolist():
        later = [int(np.searchsorted(t, place)) for place in breaks if place >= t[origin - 1]]
        end = min([origin + ahead, *later])
        if end > origin:
            tests.append(slice(origin, end))
    return tuple(tests) or (slice(n - ahead, n),)
