"""The kernels that compete for a series: a trend, seasons, steps, what one value remembers of the last,
noise.

Values are counted in deviations about their mean, lengths of time in the span of the data or in steps, so
that one table of starts and bounds serves every series. A trend is one of

    level     a level that wanders:                     Exponential, nearly a random walk
    drift     a level that wanders about a line:        the same and Linear
    slope     a level and a slope that wander:          the same and Matern 3/2, nearly its integral
    smooth    a slope that wanders, and nothing else:   Matern 3/2 alone
    damped    a slope that wanders and is forgotten:    Matern 3/2 with a lengthscale of its own

The wandering ones have a fixed lengthscale, ten times the span of the data: within it they are the random
walks of exponential smoothing and of structural models, whose bands widen with the horizon as they should. A
season is a pattern that repeats with the period, has the mean 0 over it, so that it cannot take the place of
the trend, and changes its shape over a lengthscale of its own, smoothly (RBF) or from one cycle to the next
(Exponential).
"""

from __future__ import annotations

from dataclasses import dataclass

from mercer.kernels import RBF, After, Exponential, Kernel, Linear, Matern, White, ZeroMeanPeriodic

TRENDS = ("level", "drift", "slope", "smooth", "damped")
DECAYS = ("smooth", "rough")
TERMS_OF_TREND = {
    "level": ("level",),
    "drift": ("level", "line"),
    "slope": ("slope", "level"),
    "smooth": ("slope",),
    "damped": ("damped", "level"),
}
# Lengthscale of the trends that wander, in spans of the data.
FAR = 10.0
# Steps over which a break happens: far below one, so that it is one.
SUDDEN = 0.05
HEIGHT_OF_BREAK = 0.3
# The noise at the start, in variances.
NOISE = 0.02


@dataclass(frozen=True)
class Season:
    """A period, and how far from it the search may go (0: it is known)."""

    period: float
    give: float = 0.0


@dataclass(frozen=True)
class Shape:
    """What a series is made of."""

    trend: str
    seasons: tuple[Season, ...] = ()
    decay: str = "smooth"
    breaks: tuple[float, ...] = ()

    def kernel(self, span: float, step: float) -> Kernel:
        """The kernel where its search starts, each number between its bounds."""
        parts = _Parts(span)
        _ADD_TREND[self.trend](parts, self._longest(span))
        for place in self.breaks:
            parts.add(HEIGHT_OF_BREAK, (1e-4, 1e2), step_at(place, step))
        longest = max((season.period for season in self.seasons), default=0.0)
        for season in self.seasons:
            parts.add(0.3, (1e-4, 1e2), *_season(season, self.decay, span, longest))
        parts.add(0.03, (1e-6, 1.0), Exponential(3 * step), (0.3 * step, max(10 * step, longest / 2)))
        return parts.bounded()

    def roles(self) -> tuple[str, ...]:
        """What each term of the kernel is, in their order."""
        seasons = ["season"] * len(self.seasons)
        return (*TERMS_OF_TREND[self.trend], *["break"] * len(self.breaks), *seasons, "memory", "noise")

    def _longest(self, span: float) -> float:
        return max((season.period for season in self.seasons), default=span / 20)


def step_at(place: float, step: float) -> Kernel:
    """A level that is another one after a place."""
    return Linear().of(After(place, SUDDEN * step))


class _Parts:
    """A sum of terms that grows, and the bounds of its free numbers in their order."""

    def __init__(self, span: float) -> None:
        self.span = span
        self.terms: list[Kernel] = []
        self.boxes: list[tuple[float, float]] = []

    def add(
        self, scale: float, box: tuple[float, float], kernel: Kernel, *boxes: tuple[float, float]
    ) -> None:
        self.terms.append(scale * kernel)
        self.boxes += [box, *boxes]

    def bounded(self) -> Kernel:
        total = self.terms[0]
        for term in self.terms[1:]:
            total = total + term
        total = total + White(NOISE)
        boxes = [*self.boxes, (1e-6, 1.0)]
        names = dict.fromkeys(p.name.split("[")[0] for p in total.parameters if p.free)
        return total.bounded(**dict(zip(names, boxes, strict=True)))


def _season(
    season: Season, decay: str, span: float, longest: float
) -> tuple[Kernel, *tuple[tuple[float, float], ...]]:
    """A pattern and its bounds: it keeps its shape over two cycles of the longest."""
    changing: Kernel = RBF(span) if decay == "smooth" else Exponential(span)
    period = season.period
    pattern: Kernel = ZeroMeanPeriodic(period, 1.0)
    bounds = [(2 * longest, 100 * span), (0.1, 10.0)]
    if season.give:
        bounds.insert(1, (period - season.give, period + season.give))
    else:
        pattern = pattern.fix("period")
    return changing * pattern, *bounds


def _wandering_level(parts: _Parts, height: float) -> None:
    far = Exponential(FAR * parts.span).fix("lengthscale")
    parts.add(height, (1e-5, 1e4), far)


def _wandering_slope(parts: _Parts) -> None:
    far = Matern(FAR * parts.span, nu=1.5).fix("lengthscale")
    parts.add(50.0, (1e-4, 1e7), far)


def _line(parts: _Parts, height: float) -> None:
    unit = 1 / parts.span**2
    parts.add(height * unit, (1e-5 * unit, 1e3 * unit), Linear())


def _level(parts: _Parts, longest: float) -> None:
    _wandering_level(parts, 5.0)


def _drift(parts: _Parts, longest: float) -> None:
    _wandering_level(parts, 5.0)
    _line(parts, 3.0)


def _slope(parts: _Parts, longest: float) -> None:
    _wandering_slope(parts)
    _wandering_level(parts, 1.0)


def _smooth(parts: _Parts, longest: float) -> None:
    _wandering_slope(parts)


def _damped(parts: _Parts, longest: float) -> None:
    shortest = min(2 * longest, parts.span / 2)
    parts.add(1.0, (1e-3, 1e3), Matern(parts.span / 2, nu=1.5), (shortest, 2 * parts.span))
    _wandering_level(parts, 1.0)


_ADD_TREND = {
    "level": _level,
    "drift": _drift,
    "slope": _slope,
    "smooth": _smooth,
    "damped": _damped,
}
