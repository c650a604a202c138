"""The picture and the one-page report of the CO₂ study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.applications.co2 import LEVEL, Study, YearForecast
from mercer.report.page import Page
from mercer.series import page as pages
from mercer.series.pictures import forecast_picture as picture_of_forecast

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def forecast_picture(study: Study) -> Figure:
    """The whole series with the forecast, and below it the forecast with the months that followed."""
    figure = picture_of_forecast(study.found, later=(study.later.months, study.later.ppm))
    top, low = figure.axes[:2]
    top.set_title("Carbon dioxide at Mauna Loa: monthly means and the forecast", loc="left")
    low.set_title(_headline(study), loc="left")
    return figure


def _headline(study: Study) -> str:
    if study.coverage is None:
        return f"Forecast after {study.train_to}"
    return (
        f"Fitted to {study.train_to}: {int(study.inside.sum())} of the {len(study.later)} months that "
        f"followed ({study.coverage:.0%}) lie in the {LEVEL:.0%} band"
    )


def report(study: Study, forecast: str, terms: str) -> str:
    """The page: what was forecast, how right it was, and how it was computed."""
    page = Page("Carbon dioxide at Mauna Loa: a forecast with a band")
    page.paragraph("Periods, trend and noise are found from the monthly means alone.")
    _say_coverage(page, study)
    page.figure(
        forecast,
        f"The dashed line is the end of the months fitted. The band is where {LEVEL:.0%} of new monthly "
        "means are expected; it widens as the data recede.",
        fits=True,
    )
    pages.say_found(page, study.found, terms)
    pages.say_backtest(page, study.found)
    page.heading("Year by year, in ppm")
    page.table(
        ("year", "forecast", "band of a month", "measured", "difference"), [_year(r) for r in study.by_year()]
    )
    pages.say_computed(page, study.found)
    page.footer(
        "Data: monthly means by the NOAA Global Monitoring Laboratory (P. Tans) and the Scripps Institution "
        "of Oceanography (R. Keeling), March 1958 to August 2013. Made by mercer co2 in "
        f"{study.found.seconds:.1f} s, report and pictures apart."
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
            (f"{study.found.coverage:.0%}", "in forecasts from earlier times"),
        ]
    )


def _year(row: YearForecast) -> tuple[str, ...]:
    """One year as text; what was not measured is left empty."""
    measured = row["measured"]
    shown = (f"{row['year']}", f"{row['forecast']:.2f}", f"± {row['band']:.2f}")
    if measured is None:
        return (*shown, "", "")
    return (*shown, f"{measured:.2f}", f"{measured - row['forecast']:+.2f}")
