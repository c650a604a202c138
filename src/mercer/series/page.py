"""The page about a forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.style import with_few_digits
from mercer.report.page import Page, svg
from mercer.series.mixture import LESS_LIKELY, LEVEL, MOST, WORSE
from mercer.structure.vocabulary import rounded
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.series.answer import Forecast

# Rows of the table of the forecast; of more, as many are shown evenly.
ROWS = 60


def page_of(found: Forecast) -> str:
    """The page: what is expected, how earlier forecasts fared, what the series is made of, how it was got."""
    series = found.series
    page = Page(f"{series.name}: a forecast with a band")
    _say_first(page, found)
    page.figure(
        svg(found.plot()),
        f"The dashed line is the last value. The band is where {found.level:.0%} of the values to come are "
        "expected.",
        fits=True,
    )
    say_found(page, found, svg(found.plot_terms()))
    say_backtest(page, found)
    _say_forecast(page, found)
    say_computed(page, found)
    page.footer(f"Made by mercer forecast in {found.seconds:.1f} s, pictures apart.")
    return page.html()


def say_found(page: Page, found: Forecast, terms: str) -> None:
    """What the series is made of, in words and in the picture of its terms."""
    page.heading("What was found")
    for line in found.about_series():
        page.paragraph(line)
    heading, *sentences = found.about_terms()
    page.paragraph(heading)
    page.points([line.strip() for line in sentences])
    page.figure(
        terms,
        "Posterior mean and 95 % band of each term of the leading model, over the times seen and to come. "
        "Bands of single terms are wider than that of their sum: the data tell the sum.",
        fits=True,
    )


def say_computed(page: Page, found: Forecast) -> None:
    """The models, the kernel with its proof, and the certificate."""
    page.heading("How it was computed")
    _say_models(page, found)
    page.folded("The kernel of the leading model", with_few_digits(str(found.kernel)))
    page.folded("Why it is a kernel", str(found.kernel.proof()))
    page.folded("Certificate of its fit", str(found.certificate))


def _say_first(page: Page, found: Forecast) -> None:
    lower, upper = found.interval(found.level)
    axis = found.series.axis
    last = axis.written(found.times[-1])
    page.paragraph(
        f"Between {rounded(float(lower[-1]), 4)} and {rounded(float(upper[-1]), 4)} with {found.level:.0%} "
        "probability, if the future is like the past.",
        strong=f"For {last} the forecast is {rounded(float(found.mean[-1]), 4)} {found.series.unit}".strip()
        + ".",
    )
    page.tiles(
        [
            (f"{len(found.series)}", "values"),
            (f"{len(found)}", f"{axis.steps(2).split(maxsplit=1)[1]} ahead"),
            (f"{found.coverage:.0%}", f"of values inside the {LEVEL:.0%} band in the back-test"),
            (f"{len(found.origins)}", "forecasts from earlier times"),
        ]
    )


def say_backtest(page: Page, found: Forecast) -> None:
    """How forecasts from earlier times fared, one row for each."""
    page.heading("How earlier forecasts fared")
    for line in found.about_backtest():
        page.paragraph(line)
    rows = [
        (
            origin.after,
            f"{origin.values}",
            f"{origin.inside}",
            f"{origin.coverage:.0%}",
            rounded(origin.rmse, 3),
        )
        for origin in found.origins
    ]
    page.table(("made after", "values that followed", "in the band", "share", "root mean square error"), rows)
    page.paragraph(
        "The numbers of every kernel came from the values before the first of these times; the choice of the "
        "periods, of the scale and of the models that are averaged saw all values. The values after a step "
        "that nobody could foresee are not counted."
    )


def _say_forecast(page: Page, found: Forecast) -> None:
    lower, upper = found.interval(found.level)
    every = max(1, -(-len(found) // ROWS))
    page.heading("The forecast")
    if every > 1:
        page.paragraph(f"One step in {every} is shown; the command writes all of them.")
    digits = _decimals(upper - lower)
    rows = [
        (
            found.series.axis.written(found.times[i]),
            *(f"{numbers[i]:.{digits}f}" for numbers in (found.mean, lower, upper)),
        )
        for i in range(0, len(found), every)
    ]
    page.table(("time", "mean", "lower", "upper"), rows)


def _decimals(widths: Array) -> int:
    """Decimals for numbers of a table: a hundredth of the narrowest band is seen."""
    narrowest = float(np.min(widths))
    if not 0 < narrowest < np.inf:
        return 2
    return int(np.clip(2 - np.floor(np.log10(narrowest)), 0, 12))


def _say_models(page: Page, found: Forecast) -> None:
    best = found.fitted[0].member.score
    rows = []
    for each in found.fitted:
        member = each.member
        decay = member.shape.decay if member.shape.seasons else "–"
        behind = f"{member.score / best - 1:.1%}"
        rows.append((member.shape.trend, decay, member.values.scale.words_of(found.series.name), behind))
    if found.tried == 1:
        page.paragraph("One model was tried.")
    else:
        page.paragraph(_how_averaged(found.tried))
    page.table(("trend", "season changes", "modelled", "score behind the best"), rows, left=(0, 1, 2))


def _how_averaged(tried: int) -> str:
    return (
        f"{tried} models were tried; these are averaged, each with the same weight. They differ in how the "
        "trend wanders and how the season changes; a model is judged by the mean continuous ranked "
        f"probability score of its forecasts from earlier times. At most {MOST} are averaged, and none whose "
        f"score is more than {WORSE - 1:.0%} behind the best. Where the search on all values came to an end, "
        f"none is averaged whose evidence is more than {LESS_LIKELY:g} nats a value behind."
    )
