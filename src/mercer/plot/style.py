"""How mercer's pictures look, and the one place that imports matplotlib."""

from __future__ import annotations

from typing import Any

from mercer.errors import MercerError

# Okabe and Ito's colours: told apart with every common kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GOOD, BAD, UNSURE, GREY = "#00704F", "#B34700", "#6B5B00", "#555555"
SEQUENTIAL, DIVERGING = "cividis", "PuOr_r"
MONO = ("DejaVu Sans Mono", "monospace")


class PlotError(MercerError):
    """A picture that cannot be drawn."""


def new_figure(width: float, height: float) -> Any:
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


def colour_scale(low: float, high: float) -> dict[str, Any]:
    """Sequential for values of one sign; diverging and centred at 0 where both signs occur."""
    size = max(abs(low), abs(high)) or 1.0
    if low < -1e-9 * size and high > 1e-9 * size:
        return {"cmap": DIVERGING, "vmin": -size, "vmax": size}
    if high <= 0:
        return {"cmap": SEQUENTIAL, "vmin": low if low < 0 else -1.0, "vmax": 0.0}
    narrow = (
        0.3 * high < low < (1 - 1e-9) * high
    )  # far from 0: show the differences; the bar says where they lie
    return {"cmap": SEQUENTIAL, "vmin": low if narrow else min(low, 0.0), "vmax": high}


def tidy(axes: Any, title: str, xlabel: str, ylabel: str = "") -> None:
    """The same quiet frame for every panel."""
    axes.set_title(title, fontsize=11, loc="left", pad=8)
    axes.set_xlabel(xlabel, fontsize=10)
    axes.set_ylabel(ylabel, fontsize=10)
    axes.tick_params(labelsize=9, color=GREY, labelcolor="#333333")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#999999")
