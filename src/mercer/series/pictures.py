"""The pictures of a forecast: the series with its band, and each term of the leading model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.style import COLOURS, GREY, new_figure, tidy
from mercer.scales import half_width
from mercer.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mercer.series.answer import Forecast

BAND = "#A9CCE8"
# Half the width of a band of 95 %, in deviations.
WIDE = half_width(0.95)
# Inches: letters are read on a phone, too.
WIDTH = 7.4
# Values before the forecast that the second picture shows, in horizons.
BEFORE = 3.0
# Dates that are written below a picture, at most.
DATES = 8
# Times further apart than so many usual steps are not joined by a line.
GAP = 1.5
# Points beyond which a series is drawn as a line.
MANY = 1500


def forecast_picture(found: Forecast, later: tuple[np.ndarray, Array] | None = None) -> Figure:
    """The whole series with the forecast, and below it the forecast with what came just before.

    `later` are times and values that the forecast did not know, where there are some.
    """
    figure = new_figure(WIDTH, 6.4)
    top, low = figure.subplots(2, 1, height_ratios=[1.0, 1.4])
    series = found.series
    steps = max(int(BEFORE * len(found)), 12)
    for axes, seen in ((top, slice(None)), (low, slice(-steps, None))):
        _draw(axes, found, seen)
        if later is not None and len(later[0]):
            axes.scatter(
                *later, s=8.0, color=COLOURS[1], edgecolors="none", label="values that followed", zorder=4
            )
    name = series.name if not series.unit else f"{series.name}, {series.unit}"
    tidy(top, f"{series.name}: {len(series)} values and the forecast", "", name)
    tidy(low, f"The next {series.axis.steps(len(found))}, and what came before", "", name)
    low.legend(fontsize=9, loc="upper left", framealpha=0.8, edgecolor="none")
    return figure


def _draw(axes: Axes, found: Forecast, seen: slice) -> None:
    series = found.series
    times = series.times[seen]
    values = series.values[seen]
    lower, upper = found.interval(found.level)
    label = f"{found.level:.0%} band"
    axes.fill_between(found.times, lower, upper, color=BAND, lw=0, label=label, zorder=0)
    axes.plot(found.times, found.mean, color=COLOURS[0], lw=1.6, label="mean", zorder=2)
    if len(times) > MANY:
        axes.plot(*apart(times, values), color="#222222", lw=0.5, label="values", zorder=3)
    else:
        size = 10.0 if len(times) < 200 else 4.0
        axes.scatter(times, values, s=size, color="#222222", edgecolors="none", label="values", zorder=3)
        axes.plot(*apart(times, values), color="#BBBBBB", lw=0.6, zorder=1)
    axes.axvline(series.times[-1], color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
    axes.set_xlim(times[0], found.times[-1])
    _short_dates(axes, found)


def apart(times: np.ndarray, values: Array) -> tuple[np.ndarray, Array]:
    """Times and values of a line that has a gap where times are missing: an empty value in each gap."""
    steps = np.diff(times)
    gaps = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    between = times[gaps - 1] + steps[gaps - 1] / 2
    return np.insert(times, gaps, between), np.insert(values, gaps, np.nan)


def _short_dates(axes: Axes, found: Forecast) -> None:
    """Few dates, none written beyond what tells it from the last, so that they fit on a phone."""
    if not found.series.axis.dated:
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(minticks=3, maxticks=DATES)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(places)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]


def terms_picture(found: Forecast) -> Figure:
    """Mean and 95 % band of every term of the leading model, at all times seen and to come."""
    terms = found.terms
    times = np.concatenate([found.series.times, found.times])
    figure = new_figure(WIDTH, 0.8 + 1.6 * len(terms))
    panels = np.atleast_1d(figure.subplots(len(terms), 1, sharex=True))
    scale = found.scale
    unit = found.series.unit
    if not scale.is_identity:
        unit = scale.words_of(found.series.name).removeprefix("the ")
    for i, (axes, (name, mean, std)) in enumerate(zip(panels, terms, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        axes.fill_between(times, mean - WIDE * std, mean + WIDE * std, color=colour, alpha=0.22, lw=0)
        axes.plot(times, mean, color=colour, lw=1.1)
        axes.axhline(0, color="#BBBBBB", lw=0.7, zorder=0)
        axes.axvline(found.series.times[-1], color=GREY, lw=0.8, ls=(0, (4, 3)))
        axes.set_xlim(times[0], times[-1])
        _short_dates(axes, found)
        tidy(axes, name, "", unit)
    return figure
