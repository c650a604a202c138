"""The pictures and the one-page report of the CO₂ study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.applications.co2 import LEVEL, TERMS, WIDE, Study, YearForecast
from mercer.plot.style import COLOURS, GREY, new_figure, tidy, with_few_digits
from mercer.report.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = "#A9CCE8"
LATER = COLOURS[1]
YEARS_OF_SEASON = (1960, 1980, 2000, 2020)


def forecast_picture(study: Study) -> Figure:
    """The whole series with the forecast, and below it the forecast alone with the months that followed."""
    figure = new_figure(10.0, 7.4)
    top, low = figure.subplots(2, 1, height_ratios=[1.0, 1.45])
    train = study.train
    later = study.later
    first = study.train_to - 4
    for axes, begin, size in ((top, study.grid[0], 3.0), (low, first, 13.0)):
        shown = study.grid >= begin
        t = study.grid[shown]
        mean = study.mean[shown]
        half = WIDE * study.std[shown]
        axes.fill_between(
            t, mean - half, mean + half, color=BAND, lw=0, label=f"{LEVEL:.0%} band of a month", zorder=0
        )
        axes.plot(t, mean, color=COLOURS[0], lw=1.0 if axes is top else 1.5, label="mean", zorder=2)
        seen = train.time >= begin
        axes.scatter(
            train.time[seen],
            train.ppm[seen],
            s=size,
            color="#222222",
            edgecolors="none",
            zorder=3,
            label="months fitted",
        )
        axes.scatter(
            later.time,
            later.ppm,
            s=size,
            color=LATER,
            edgecolors="none",
            zorder=4,
            label="months that followed",
        )
        axes.axvline(study.train_to + 1, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
        axes.set_xlim(t[0], t[-1] + 0.04)
    tidy(top, "Carbon dioxide at Mauna Loa: monthly means and the forecast", "", "ppm")
    tidy(low, _headline(study), "year", "ppm")
    low.legend(fontsize=9, frameon=False, loc="lower right")
    return figure


def _headline(study: Study) -> str:
    if study.coverage is None:
        return f"Forecast after {study.train_to}"
    return (
        f"Fitted to {study.train_to}: {int(study.inside.sum())} of the {len(study.later)} months that "
        f"followed ({study.coverage:.0%}) lie in the {LEVEL:.0%} band"
    )


def terms_picture(study: Study) -> Figure:
    """Mean and band of every term; the season as the course of single years."""
    figure = new_figure(10.0, 6.6)
    panels = figure.subplots(2, 2).ravel()
    titles = ("long rise, about the mean", "season, about the mean of its year", "medium term", "weather")
    for i, (axes, (name, mean, std)) in enumerate(zip(panels, study.parts, strict=True)):
        if name == "season":
            _season(axes, study)
        else:
            axes.fill_between(
                study.grid, mean - WIDE * std, mean + WIDE * std, color=COLOURS[i], alpha=0.22, lw=0
            )
            axes.plot(study.grid, mean, color=COLOURS[i], lw=1.1)
            axes.axvline(study.train_to + 1, color=GREY, lw=0.8, ls=(0, (4, 3)))
            axes.axhline(0, color="#BBBBBB", lw=0.7, zorder=0)
            axes.set_xlim(study.grid[0], study.grid[-1])
        tidy(axes, titles[i], "month" if name == "season" else "year", "ppm")
    return figure


def _season(axes: Axes, study: Study) -> None:
    """Single years, each less its own mean.

    The level is shared with the long rise, the course of the year is not.
    """
    months = np.arange(1, 13)
    less_mean = np.eye(12) - 1 / 12
    years = [y for y in YEARS_OF_SEASON if y < study.grid[-1]]
    for year, colour in zip(years, ("#56B4E9", "#0072B2", "#D55E00", "#8C3B00"), strict=False):
        parts = study.model.decompose((year + (months - 0.5) / 12)[:, None], names=TERMS, full=True)
        assert parts.full is not None
        i = TERMS.index("season")
        mean = less_mean @ parts.mean[i]
        half = WIDE * np.sqrt(np.maximum(np.diag(less_mean @ parts.full[i, i] @ less_mean), 0.0))
        axes.plot(months, mean, color=colour, lw=1.4, marker="o", ms=3, label=str(year))
        axes.fill_between(months, mean - half, mean + half, color=colour, alpha=0.25, lw=0)
    axes.axhline(0, color="#BBBBBB", lw=0.7, zorder=0)
    axes.set_xticks(range(1, 13), list("JFMAMJJASOND"))
    axes.legend(fontsize=8.5, frameon=False, loc="upper right")


def report(study: Study, forecast: str, terms: str) -> str:
    """The page: what was forecast, how right it was, and how it was computed."""
    page = Page("Carbon dioxide at Mauna Loa: a forecast with a band")
    page.paragraph(
        "A Gaussian process whose kernel is a sum of a long rise, a season, a medium term, weather and noise."
    )
    _say_coverage(page, study)
    page.figure(
        forecast,
        f"The dashed line is the end of the months fitted. The band is where {LEVEL:.0%} of new monthly "
        "means are expected; it widens as the data recede.",
    )
    page.heading("The forecast, term by term")
    page.figure(
        terms,
        f"Posterior mean and {LEVEL:.0%} band of each term. The means add up to the mean above. The bands of "
        "single terms are wider than that of their sum: the data tell the sum, and what one term has another "
        "has not. After the months fitted each term returns to its prior at its own pace.",
    )
    page.heading("Year by year, in ppm")
    page.table(
        ("year", "forecast", "band of a month", "measured", "difference"), [_year(r) for r in study.by_year()]
    )
    page.heading("What the data chose")
    page.table(("term", "meaning", "value", "unit"), _chosen(study), left=(0, 1, 3))
    page.heading("How it was computed")
    page.code(with_few_digits(str(study.model.kernel_)))
    page.code(str(study.model.certificate_))
    page.footer(
        "Data: monthly means by the NOAA Global Monitoring Laboratory (P. Tans) and the Scripps Institution "
        "of Oceanography (R. Keeling), March 1958 to August 2013. Model after Rasmussen and Williams, "
        f"Gaussian Processes for Machine Learning, section 5.4.3. Made by mercer co2 in "
        f"{study.seconds:.1f} s, report and pictures apart."
    )
    return page.html()


def _say_coverage(page: Page, study: Study) -> None:
    share = "–"
    if study.coverage is None:
        page.paragraph("There are no later months to compare with.")
    else:
        share = f"{study.coverage:.1%}"
        page.paragraph(
            f"The forecast was off by {study.error:.2f} ppm (root mean square).",
            strong=f"{int(study.inside.sum())} of the {len(study.later)} months that followed ({share}) lie "
            f"inside the {LEVEL:.0%} band.",
        )
    page.tiles(
        [
            (f"{len(study.train)}", f"months fitted, to the end of {study.train_to}"),
            (f"{study.years}", "years of forecast"),
            (share, f"of later months in the {LEVEL:.0%} band"),
            (f"{study.model.log_evidence_:.2f}", "log marginal likelihood"),
        ]
    )


def _year(row: YearForecast) -> tuple[str, ...]:
    """One year as text; what was not measured is left empty."""
    measured = row["measured"]
    shown = (f"{row['year']}", f"{row['forecast']:.2f}", f"± {row['band']:.2f}")
    if measured is None:
        return (*shown, "", "")
    return (*shown, f"{measured:.2f}", f"{measured - row['forecast']:+.2f}")


def _chosen(study: Study) -> list[tuple[str, ...]]:
    """The hyperparameters; the name of a term stands beside its first."""
    rows: list[tuple[str, ...]] = []
    before = ""
    for term, meaning, value, unit in study.hyperparameters():
        rows.append((term if term != before else "", meaning, f"{value:.3g}", unit))
        before = term
    return rows
