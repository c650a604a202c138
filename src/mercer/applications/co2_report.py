"""The pictures and the one-page report of the CO₂ study."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from mercer.applications.co2 import LEVEL, TERMS, WIDE, Study
from mercer.plot.style import COLOURS, GREY, new_figure, tidy, with_few_digits

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


def svg(figure: Figure) -> str:
    """The figure as an <svg> element to put inside a page; the same bytes every time."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context(
        {"svg.hashsalt": "mercer", "svg.fonttype": "none", "font.family": "sans-serif"}
    ):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def report(study: Study, forecast: str, terms: str) -> str:
    """One self-contained page: no script, nothing fetched."""
    model = study.model
    certificate = escape(str(model.certificate_))
    if study.coverage is None:
        share = "–"
        covered = "There are no later months to compare with."
    else:
        share = f"{study.coverage:.1%}"
        covered = (
            f"<b>{int(study.inside.sum())} of the {len(study.later)} months that followed ({share}) lie "
            f"inside the {LEVEL:.0%} band</b>; the forecast was off by {study.error:.2f} ppm "
            "(root mean square)."
        )
    figures = [
        (f"{len(study.train)}", f"months fitted, to the end of {study.train_to}"),
        (f"{study.years}", "years of forecast"),
        (share, f"of later months in the {LEVEL:.0%} band"),
        (f"{model.log_evidence_:.2f}", "log marginal likelihood"),
    ]
    tiles = "".join(f"<div class=tile><b>{v}</b><span>{escape(w)}</span></div>" for v, w in figures)
    return _PAGE.format(
        tiles=tiles,
        covered=covered,
        forecast=forecast,
        terms=terms,
        years=_years_table(study),
        numbers=_numbers_table(study),
        kernel=escape(with_few_digits(str(model.kernel_))),
        certificate=certificate,
        seconds=f"{study.seconds:.1f}",
    )


def _years_table(study: Study) -> str:
    rows = []
    for r in study.by_year():
        measured = ""
        off = ""
        if r["measured"] is not None:
            measured = f"{r['measured']:.2f}"
            off = f"{r['measured'] - r['forecast']:+.2f}"
        rows.append(
            f"<tr><td>{r['year']}</td><td>{r['forecast']:.2f}</td><td>± {r['band']:.2f}</td>"
            f"<td>{measured}</td><td>{off}</td></tr>"
        )
    head = (
        "<tr><th>year</th><th>forecast</th><th>band of a month</th><th>measured</th><th>difference</th></tr>"
    )
    return f"<table>{head}{''.join(rows)}</table>"


def _numbers_table(study: Study) -> str:
    rows = []
    before = ""
    for term, meaning, value, unit in study.hyperparameters():
        shown = term if term != before else ""
        before = term
        rows.append(
            f"<tr><td>{shown}</td><td class=l>{escape(meaning)}</td><td>{value:.3g}</td>"
            f"<td class=l>{unit}</td></tr>"
        )
    head = "<tr><th>term</th><th class=l>meaning</th><th>value</th><th class=l>unit</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Carbon dioxide at Mauna Loa: a forecast with a band</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1b1b1b; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1.25rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; margin: 0 0 .4rem; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .5rem; }}
.tiles {{ display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.2rem 0; }}
.tile {{ flex: 1 1 10rem; background: #f2f6fa; border-radius: .5rem; padding: .7rem .9rem; }}
.tile b {{ display: block; font-size: 1.45rem; }}
.tile span {{ color: #555; font-size: .85rem; }}
svg {{ width: 100%; height: auto; }}
figure {{ margin: 1rem 0; }}
figcaption {{ color: #555; font-size: .9rem; }}
table {{ border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .16rem .8rem .16rem 0; text-align: right; border-bottom: 1px solid #e6e6e6;
  white-space: nowrap; }}
th:first-child, td:first-child, .l {{ text-align: left; }} th {{ font-weight: 600; }}
.two {{ display: flex; flex-wrap: wrap; gap: 1rem 3rem; }}
pre {{ background: #f6f6f6; padding: .7rem .9rem; border-radius: .4rem; white-space: pre-wrap;
  font-size: .82rem; }}
footer {{ margin-top: 2.5rem; color: #555; font-size: .85rem; }}
</style></head><body>
<h1>Carbon dioxide at Mauna Loa: a forecast with a band</h1>
<p>A Gaussian process whose kernel is a sum of a long rise, a season, a medium term, weather and noise.
{covered}</p>
<div class=tiles>{tiles}</div>
<figure>{forecast}<figcaption>The dashed line is the end of the months fitted. The band is where 95 % of new
monthly means are expected; it widens as the data recede.</figcaption></figure>
<h2>The forecast, term by term</h2>
<figure>{terms}<figcaption>Posterior mean and 95 % band of each term. The means add up to the mean above. The
bands of single terms are wider than that of their sum: the data tell the sum, and what one term has another
has not. After the months fitted each term returns to its prior at its own pace.</figcaption></figure>
<div class=two><div><h2>Year by year, in ppm</h2>{years}</div>
<div><h2>What the data chose</h2>{numbers}</div></div>
<h2>How it was computed</h2>
<pre>{kernel}</pre>
<pre>{certificate}</pre>
<footer>Data: monthly means by the NOAA Global Monitoring Laboratory (P. Tans) and the Scripps Institution of
Oceanography (R. Keeling), March 1958 to August 2013. Model after Rasmussen and Williams,
<i>Gaussian Processes for Machine Learning</i>, section 5.4.3.
Made by <code>mercer co2</code> in {seconds} s, report and pictures apart.</footer>
</body></html>
"""
