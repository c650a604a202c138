"""How mercer's pictures look, and the one place that imports matplotlib."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypedDict

from mercer.errors import MercerError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours: told apart with every common kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GOOD = "#00704F"
BAD = "#B34700"
UNSURE = "#6B5B00"
GREY = "#555555"
SEQUENTIAL = "cividis"
DIVERGING = "PuOr_r"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MONO = ("DejaVu Sans Mono", "monospace")


class PlotError(MercerError):
    """A picture that cannot be drawn."""


def new_figure(width: float, height: float) -> Figure:
    """An empty Figure with its own canvas, outside pyplot's list of figures."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise PlotError(
            f"pictures need matplotlib, which is not installed ({error}). "
            "Install it with: pip install 'mercer[plot]'"
        ) from error
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.03, hspace=0.0)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def panel(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes of a picture with one panel: those given, or those of a new figure."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    return ax


def canvas(ax: Axes | None, width: float, height: float) -> Figure | SubFigure:
    """Room for several panels: a new figure, or a part of a figure in the place of the axes given."""
    if ax is None:
        return new_figure(width, height)
    place = ax.get_subplotspec()
    if place is None:
        raise PlotError(
            "a picture with several panels divides the cell of a grid, and these axes are in no grid. "
            "Make them by figure.subplots() or figure.add_subplot()."
        )
    ax.set_axis_off()
    return ax.figure.add_subfigure(place)


def whole(part: Axes | Figure | SubFigure) -> Figure:
    """The figure that the axes, or a part of a figure, belong to."""
    # the axes of a part belong to the part, and a part knows its figure; a figure is its own
    return part.figure.figure


class ColourScale(TypedDict):
    """What matplotlib needs to turn numbers into colours."""

    cmap: str
    vmin: float
    vmax: float


def colour_scale(low: float, high: float) -> ColourScale:
    """Sequential for values of one sign; diverging and centred at 0 where both signs occur."""
    size = max(abs(low), abs(high)) or 1.0
    if low < -1e-9 * size and high > 1e-9 * size:
        return {"cmap": DIVERGING, "vmin": -size, "vmax": size}
    if high <= 0:
        return {"cmap": SEQUENTIAL, "vmin": low if low < 0 else -1.0, "vmax": 0.0}
    # far from 0: show the differences; the bar says where they lie
    narrow = 0.3 * high < low < (1 - 1e-9) * high
    return {"cmap": SEQUENTIAL, "vmin": low if narrow else min(low, 0.0), "vmax": high}


def power_of_ten(value: float) -> str:
    """A power of ten as it stands beside a logarithmic axis; other numbers have no label there.

    In plain letters: matplotlib's own labels are formulas, whose grammar takes a second to build.

    >>> power_of_ten(1000.0), power_of_ten(1e-12), power_of_ten(20.0)
    ('10³', '10⁻¹²', '')
    """
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent):
        return ""
    return "10" + str(exponent).translate(RAISED)


def label_powers(axis: Axis) -> None:
    """Let a logarithmic axis that spans several powers of ten have plain labels."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_formatter(NullFormatter())


def with_few_digits(text: str) -> str:
    """The text with every long number rounded to four digits.

    >>> with_few_digits("RBF(0.123456)")
    'RBF(0.1235)'
    """
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", text)


def shortened(kernel: object) -> str:
    """The kernel's text with four digits, cut where it is long."""
    text = with_few_digits(str(kernel))
    return text if len(text) < 46 else text[:43] + "…"


def tidy(axes: Axes, title: str, xlabel: str, ylabel: str = "") -> None:
    """The same quiet frame for every panel."""
    axes.set_title(title, fontsize=11, loc="left", pad=8)
    axes.set_xlabel(xlabel, fontsize=10)
    axes.set_ylabel(ylabel, fontsize=10)
    axes.tick_params(labelsize=9, color=GREY, labelcolor="#333333")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#999999")


def legend_below(
    axes: Axes, *, columns: int = 3, gap: float = 0.8, handles: tuple[list[Artist], list[str]] | None = None
) -> None:
    """A legend under the panel, below the name of its axis, where it covers nothing.

    It is of other `handles` than the panel's own, if they are given.
    """
    from matplotlib.transforms import ScaledTranslation

    # In points, as the tick labels and the name are: the same at every height of a panel.
    below = ScaledTranslation(0, -36 / 72, axes.figure.dpi_scale_trans)
    axes.legend(
        *(handles or axes.get_legend_handles_labels()),
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=axes.transAxes + below,
        borderaxespad=0.0,
        borderpad=0.0,
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=1.6,
        columnspacing=1.4,
        handletextpad=gap,
    )


def name_bar(bar: Colorbar, name: str) -> None:
    """The quiet look of a bar of colours, and what its numbers are."""
    bar.set_label(name, fontsize=10)
    bar.ax.tick_params(labelsize=9, color=GREY, labelcolor="#333333")
    bar.outline.set_visible(False)
