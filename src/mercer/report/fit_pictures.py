"""The pictures of the report of a fit, each narrow enough for a phone.

Points that are many are drawn as an image, so that the file stays small; everything else as lines and text.
Names of columns and classes are shown as they are: a dollar does not begin a formula, and long ones are cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from mercer.plot.style import COLOURS, GREY, SEQUENTIAL, label_powers, new_figure, tidy
from mercer.recipe.estimate import LEVEL, Estimate
from mercer.report import judged
from mercer.report.columns import LeftOut
from mercer.report.page import svg
from mercer.typing import Array, Integers, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.6
HEIGHT = 3.7
BAND = "#A9CCE8"
OUTSIDE = COLOURS[1]
# Points that are drawn one by one, and rows whose bands are.
MOST_LINES = 400
MOST_BANDS = 150
MOST_POINTS = 5000
# Columns in the picture of importance, characters of a label.
MOST_BARS = 25
LABEL = 28
DASHES = (0, (4, 3))
# What a logarithmic axis spans to have labels at powers of ten alone.
SPANNED = 100


def label(text: object, most: int = LABEL) -> str:
    """A text as matplotlib shows it: without formulas or line breaks, cut where it is long.

    >>> label("price in $ or $$")
    'price in \\\\$ or \\\\$\\\\$'
    """
    shown = " ".join(str(text).split())
    shown = "".join(c for c in shown if c.isprintable())
    if len(shown) > most:
        shown = f"{shown[: most - 1]}…"
    return shown.replace("$", r"\$")


def drawn(figure: Figure) -> str:
    """The figure as an <svg> element; letters that matplotlib has no glyph for are the browser's matter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        return svg(figure)


def _panel() -> tuple[Figure, Axes]:
    figure = new_figure(WIDTH, HEIGHT)
    return figure, figure.add_subplot()


def _some(n: int, most: int) -> Integers:
    """Rows to draw, if there are too many."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _diagonal(axes: Axes, low: float, high: float) -> None:
    """Where what is found is what was expected."""
    axes.plot([low, high], [low, high], color=GREY, lw=0.9, ls=DASHES, zorder=1)


def _dots(axes: Axes, x: Array, y: Array, colour: str, name: str = "") -> None:
    size = 9 if len(x) <= MOST_LINES else 4
    axes.scatter(
        x,
        y,
        s=size,
        color=colour,
        edgecolors="none",
        alpha=0.75,
        rasterized=len(x) > MOST_LINES,
        zorder=3,
        label=name,
    )


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


def predicted_and_true(estimate: Estimate) -> str:
    """True values against predicted ones, with the bands of some rows."""
    figure, axes = _panel()
    shown = _some(len(estimate.truth), MOST_POINTS)
    said = np.asarray(estimate.predicted)[shown]
    truth = np.asarray(estimate.truth)[shown]
    within = judged.inside(estimate, LEVEL)[shown]
    banded = _some(len(shown), MOST_BANDS)
    low, high = (ends[shown][banded] for ends in estimate.numbers.interval(LEVEL))
    axes.vlines(said[banded], low, high, color=BAND, lw=1.0, zorder=2)
    _dots(axes, said[within], truth[within], COLOURS[0], f"inside the {LEVEL:.0%} band")
    _dots(axes, said[~within], truth[~within], OUTSIDE, "outside")
    _diagonal(axes, min(said.min(), truth.min()), max(said.max(), truth.max()))
    tidy(axes, "True and predicted", "predicted without the row", "true")
    axes.legend(fontsize=8, frameon=False, loc="upper left", handletextpad=0.2)
    _few_ticks(axes)
    return drawn(figure)


def residuals(estimate: Estimate) -> str:
    """Errors against what was predicted."""
    figure, axes = _panel()
    shown = _some(len(estimate.truth), MOST_POINTS)
    said = np.asarray(estimate.predicted)[shown]
    errors = np.asarray(estimate.truth)[shown] - said
    within = judged.inside(estimate, LEVEL)[shown]
    axes.axhline(0.0, color=GREY, lw=0.9, ls=DASHES, zorder=1)
    _dots(axes, said[within], errors[within], COLOURS[0])
    _dots(axes, said[~within], errors[~within], OUTSIDE)
    tidy(axes, "Errors", "predicted without the row", "true less predicted")
    _few_ticks(axes)
    return drawn(figure)


def normal_quantiles(estimate: Estimate) -> str:
    """Standardised errors in order, against those that a normal distribution would have."""
    figure, axes = _panel()
    errors = np.sort(judged.standardised(estimate))
    expected = stats.norm.ppf((np.arange(len(errors)) + 0.5) / len(errors))
    shown = _some(len(errors), MOST_POINTS)
    _diagonal(axes, expected[0], expected[-1])
    _dots(axes, expected[shown], errors[shown], COLOURS[0])
    tidy(axes, "Errors in deviations of the band", "of a normal distribution", "found")
    return drawn(figure)


def coverage_curve(estimate: Estimate) -> str:
    """The share of rows inside the band, for bands of every level."""
    figure, axes = _panel()
    levels = np.concatenate([np.linspace(0.02, 0.98, 49), [0.99]])
    found = [judged.coverage(estimate, float(level)) for level in levels]
    _diagonal(axes, 0.0, 1.0)
    axes.plot(levels, found, color=COLOURS[0], lw=1.8, zorder=3)
    marked = list(judged.LEVELS)
    axes.scatter(
        marked, [judged.coverage(estimate, level) for level in marked], s=22, color=COLOURS[0], zorder=4
    )
    tidy(axes, "What bands hold", "level of the band", "share of rows inside")
    _shares(axes)
    return drawn(figure)


def curve(
    x: Array, y: Array, grid: Array, mean: Array, ends: tuple[Array, Array], names: tuple[str, str]
) -> str:
    """Numbers along one column: mean, band and rows."""
    figure, axes = _panel()
    shown = _some(len(x), MOST_POINTS)
    axes.fill_between(grid, *ends, color=BAND, lw=0, zorder=0, label=f"{LEVEL:.0%} of new rows")
    axes.plot(grid, mean, color=COLOURS[0], lw=1.6, zorder=4, label="mean")
    _dots(axes, x[shown], y[shown], "#222222", "rows")
    tidy(axes, "The fit", label(names[0]), label(names[1]))
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return drawn(figure)


def surface(points: Array, y: Array, ticks: tuple[Array, Array], mean: Array, names: Sequence[str]) -> str:
    """The predicted mean over two columns, and the rows in the colours of their targets."""
    figure, axes = _panel()
    low = float(min(mean.min(), np.min(y)))
    high = float(max(mean.max(), np.max(y)))
    shown = _some(len(points), MOST_LINES)
    image = axes.pcolormesh(*ticks, mean, cmap=SEQUENTIAL, vmin=low, vmax=high, rasterized=True)
    axes.scatter(
        points[shown, 0],
        points[shown, 1],
        c=y[shown],
        cmap=SEQUENTIAL,
        vmin=low,
        vmax=high,
        s=12,
        edgecolors="white",
        linewidths=0.4,
        zorder=3,
    )
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    tidy(axes, f"The fit: mean of {label(names[2])}", label(names[0]), label(names[1]))
    return drawn(figure)


# ── classes ─────────────────────────────────────────────────────────────────────────────────────────────────


def reliability(bins: Sequence[judged.Bin], asked: str) -> str:
    """What came true, by the probability that was said, with the number of rows of each bin."""
    figure, axes = _panel()
    _diagonal(axes, 0.0, 1.0)
    said = np.array([each.said for each in bins])
    true = np.array([each.came_true for each in bins])
    rows = np.array([each.rows for each in bins])
    error = [each.uncertainty for each in bins]
    axes.errorbar(
        said, true, yerr=error, fmt="o-", ms=4.5, lw=1.4, color=COLOURS[0], elinewidth=1.0, zorder=3
    )
    axes.bar(
        [(each.low + each.high) / 2 for each in bins],
        0.18 * rows / rows.max(),
        width=0.09,
        color="#DDE6EE",
        zorder=0,
    )
    for each in bins:
        middle = (each.low + each.high) / 2
        axes.text(middle, 0.18 * each.rows / rows.max() + 0.01, str(each.rows), fontsize=7, ha="center")
    tidy(axes, "What probabilities are worth", label(asked, 40), "share that came true")
    _shares(axes)
    return drawn(figure)


def roc(probability: Array, positive: np.ndarray, area: float, name: object) -> str:
    """Rows found against false alarms."""
    figure, axes = _panel()
    across, up = judged.roc(probability, positive)
    _diagonal(axes, 0.0, 1.0)
    axes.plot(across, up, color=COLOURS[0], lw=1.8, zorder=3)
    tidy(
        axes,
        f"Found and false alarms, area {area:.3f}",
        "share of the others",
        f"share of “{label(name)}” found",
    )
    _shares(axes)
    return drawn(figure)


def regions(
    points: Array,
    y: Labels,
    ticks: tuple[Array, Array],
    best: Integers,
    classes: Labels,
    names: tuple[str, str],
) -> str:
    """The most probable class over two columns, and the rows."""
    from matplotlib.colors import ListedColormap

    figure, axes = _panel()
    count = len(classes)
    colours = [COLOURS[c % len(COLOURS)] for c in range(count)]
    axes.pcolormesh(
        *ticks,
        best,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=count - 0.5,
        alpha=0.22,
        rasterized=True,
    )
    shown = _some(len(points), MOST_POINTS)
    for c, name in enumerate(classes.tolist()):
        mine = shown[y[shown] == name]
        _dots(axes, points[mine, 0], points[mine, 1], colours[c], label(name) if c < 8 else "")
    tidy(axes, "The most probable class", label(names[0]), label(names[1]))
    axes.legend(fontsize=7.5, loc="upper right", framealpha=0.8, edgecolor="none", markerscale=1.6)
    return drawn(figure)


# ── columns and rows ────────────────────────────────────────────────────────────────────────────────────────


def importance(found: LeftOut) -> str:
    """How much the loss rises without each column."""
    shown = found.columns[:MOST_BARS][::-1]
    figure = new_figure(WIDTH, 0.9 + 0.24 * len(shown))
    axes = figure.add_subplot()
    rises = [100 * each.rise for each in shown]
    axes.barh(
        range(len(shown)),
        rises,
        xerr=[100 * each.uncertainty for each in shown],
        color=COLOURS[5],
        ecolor=GREY,
        error_kw={"lw": 1.0},
        height=0.7,
    )
    axes.axvline(0.0, color=GREY, lw=0.8)
    tidy(axes, "Rise of the loss without a column", "%")
    axes.set_yticks(range(len(shown)), [label(each.column, 24) for each in shown], fontsize=8)
    return drawn(figure)


def gram(K: Array, targets: np.ndarray | None, classes: Labels | None) -> str:
    """Likeness of rows in the order given, with their targets beside it."""
    from matplotlib.colors import ListedColormap

    figure = new_figure(WIDTH, 4.1)
    if targets is None:
        axes = figure.add_subplot()
    else:
        axes, side = figure.subplots(1, 2, width_ratios=[20, 1], sharey=True)
        if classes is None:
            side.imshow(targets[:, None], aspect="auto", cmap=SEQUENTIAL, interpolation="nearest")
        else:
            codes = np.searchsorted(classes, targets)
            colours = ListedColormap([COLOURS[c % len(COLOURS)] for c in range(len(classes))])
            side.imshow(
                codes[:, None],
                aspect="auto",
                cmap=colours,
                vmin=-0.5,
                vmax=len(classes) - 0.5,
                interpolation="nearest",
            )
        side.set_xticks([])
        side.set_xlabel("target", fontsize=8)
        side.tick_params(left=False, labelleft=False)
    low = min(0.0, float(K.min()))
    image = axes.imshow(K, aspect="auto", interpolation="nearest", cmap=SEQUENTIAL, vmin=low, vmax=1.0)
    bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.05, pad=0.03)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    tidy(axes, f"Likeness of {len(K)} rows, in clusters", "")
    axes.set_xticks([])
    axes.set_yticks([])
    return drawn(figure)


def spectrum(values: Array, noise: float | None) -> str:
    """The eigenvalues of a Gram matrix, largest first, and the noise."""
    figure, axes = _panel()
    shown = np.maximum(values, values[0] * 1e-12)
    axes.plot(np.arange(1, len(shown) + 1), shown, color=COLOURS[0], lw=1.6)
    axes.set_yscale("log")
    axes.set_xscale("log")
    for axis, span in ((axes.xaxis, len(shown)), (axes.yaxis, shown[0] / shown[-1])):
        # fewer have labels between the powers, which matplotlib makes
        if span >= SPANNED:
            label_powers(axis)
    if noise:
        axes.axhline(noise, color=GREY, lw=0.9, ls=DASHES, zorder=1)
        axes.text(1, noise * 1.2, "noise", fontsize=8, color=GREY)
    tidy(axes, "Spectrum of the Gram matrix", "number", "eigenvalue")
    return drawn(figure)


def _shares(axes: Axes) -> None:
    ticks = np.linspace(0, 1, 6)
    axes.set_xticks(ticks, [f"{v:.0%}" for v in ticks])
    axes.set_yticks(ticks, [f"{v:.0%}" for v in ticks])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)


def _few_ticks(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
