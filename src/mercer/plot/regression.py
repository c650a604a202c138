"""A regression as a curve: observations, mean, bands of the function and of observations, samples, terms."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import ParameterError
from mercer.plot.naming import column_name, target_name
from mercer.plot.plane import like_rows_of_fit
from mercer.plot.style import COLOURS, GREY, PlotError, canvas, legend_below, panel, tidy, whole
from mercer.scales import half_width
from mercer.sparse import dense
from mercer.typing import Array, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

    from mercer.machines.gaussian_process.views import Terms

BAND = "#9CC4E4"
OUTER = "#DCE9F4"


def regression(
    model: BaseEstimator,
    X: Table,
    y: Targets,
    *,
    later: tuple[Table, Targets] | None = None,
    span: tuple[float, float] | None = None,
    column: int = 0,
    level: float = 0.95,
    samples: int = 0,
    terms: bool = False,
    names: Sequence[str] | None = None,
    resolution: int = 400,
    seed: int = 0,
    ax: Axes | None = None,
) -> Figure:
    """A picture of a fitted regression along one column, the others at their medians.

    Mean and data are always shown. A model with bands (`predict(return_std=True)`) shows that of the
    function, dark, and that of new observations, light, both at `level`. `samples` draws that many functions
    of the posterior, `terms=True` adds a panel for each term of a sum of kernels, named by `names`.
    `later=(X, y)` are observations that the model has not seen; the share of them inside the light band is
    in the legend. `span` is the interval shown. `ax` are axes to draw into, divided where there are terms;
    without them there is a new figure.
    """
    A = _table(X, column)
    t: Array = np.asarray(y, dtype=np.float64)
    if t.ndim != 1 or len(t) != len(A):
        raise PlotError(f"the picture shows one target for each of the {len(A)} rows; y has shape {t.shape}.")
    if not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1; got {level!r}.")
    behind = None
    if later is not None:
        behind = _table(later[0], column)
    ticks, grid = _grid(A, behind, column, span, resolution)
    rows = like_rows_of_fit(model, grid)
    parts: Terms | None = model.decompose(rows, names=names) if terms else None
    above, *below = _panels(ax, 0 if parts is None else len(parts))
    _bands(above, model, ticks, rows, level)
    if samples:
        _samples(above, ticks, model.sample_y(rows, samples, random_state=seed))
    _observations(above, A[:, column], t, "observations", "#222222")
    if later is not None:
        _later(above, model, later, column, level)
    tidy(above, _title(model), "", target_name(y))
    if parts is not None:
        _terms(below, ticks, parts, level)
    last = [above, *below][-1]
    last.set_xlabel(column_name(model, X, column, A.shape[1]), fontsize=10)
    above.set_xlim(ticks[0], ticks[-1])
    handles = above.get_legend_handles_labels()
    legend_below(last, handles=handles)
    return whole(above)


def _panels(ax: Axes | None, more: int) -> list[Axes]:
    """The axes of the curve, and those of so many terms under it, with the same horizontal axis."""
    if not more:
        return [panel(ax, 9.0, 4.6)]
    figure = canvas(ax, 9.0, 4.6 + 1.7 * more)
    ratios = [2.6] + [1.0] * more
    return list(figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios))


def _table(X: Table, column: int) -> Array:
    A: Array = dense(check_vectors(X))
    if not 0 <= column < A.shape[1]:
        raise PlotError(f"column {column} was asked for, but X has {A.shape[1]} columns.")
    return A


def _grid(
    A: Array, B: Array | None, column: int, span: tuple[float, float] | None, resolution: int
) -> tuple[Array, Array]:
    seen = A[:, column] if B is None else np.concatenate([A[:, column], B[:, column]])
    if span is None:
        pad = 0.05 * (float(np.ptp(seen)) or 1.0)
        span = (float(seen.min()) - pad, float(seen.max()) + pad)
    if not span[0] < span[1]:
        raise ParameterError(f"span must be two numbers, the smaller one first; got {span!r}.")
    ticks = np.linspace(span[0], span[1], resolution)
    grid = np.tile(np.median(A, axis=0), (resolution, 1))
    grid[:, column] = ticks
    return ticks, grid


def _deviation(model: BaseEstimator, grid: Table) -> tuple[Array, Array | None, Array | None]:
    """Mean, deviation of f and of an observation; None where the model does not know them."""
    known = inspect.signature(model.predict).parameters
    if "return_std" not in known:
        return np.asarray(model.predict(grid)), None, None
    mean, inner = model.predict(grid, return_std=True)
    if "noise" not in known:
        return mean, inner, None
    per_row = np.ndim(getattr(model, "noise_", 0.0)) > 0
    # noise that each row of fit has of its own says nothing of new rows
    noise = 0.0 if per_row else True
    outer = model.predict(grid, return_std=True, noise=noise)[1]
    if np.any(outer > inner * (1 + 1e-9)):
        return mean, inner, outer
    return mean, inner, None


def _bands(axes: Axes, model: BaseEstimator, ticks: Array, grid: Table, level: float) -> None:
    mean, inner, outer = _deviation(model, grid)
    wide = half_width(level)
    for deviation, colour, name in (
        (outer, OUTER, f"{level:.0%} of new observations"),
        (inner, BAND, f"{level:.0%} band of the function"),
    ):
        if deviation is not None:
            axes.fill_between(
                ticks,
                mean - wide * deviation,
                mean + wide * deviation,
                color=colour,
                lw=0,
                zorder=0,
                label=name,
            )
    axes.plot(ticks, mean, color=COLOURS[0], lw=1.6, zorder=3, label="mean")


def _samples(axes: Axes, ticks: Array, drawn: Array) -> None:
    """Functions drawn from the posterior, one per column."""
    count = drawn.shape[1]
    for i in range(count):
        colour = COLOURS[(i + 1) % len(COLOURS)]
        axes.plot(ticks, drawn[:, i], lw=0.9, color=colour, alpha=0.8, zorder=2)
    axes.plot([], [], lw=0.9, color=GREY, label=f"{count} sample{'s' * (count > 1)} of the posterior")


def _observations(axes: Axes, x: Array, y: Array, label: str, colour: str) -> None:
    size = 16 if len(x) <= 200 else 5
    axes.scatter(x, y, s=size, color=colour, edgecolors="none", zorder=4, label=label)


def _later(axes: Axes, model: BaseEstimator, later: tuple[Table, Targets], column: int, level: float) -> None:
    B = _table(later[0], column)
    t: Array = np.asarray(later[1], dtype=np.float64)
    mean, inner, outer = _deviation(model, like_rows_of_fit(model, B))
    band = inner if outer is None else outer
    inside = ""
    if band is not None:
        share = float((np.abs(t - mean) <= half_width(level) * band).mean())
        inside = f", {share:.0%} of them inside"
    _observations(axes, B[:, column], t, f"{len(t)} not seen by the model{inside}", COLOURS[1])


def _terms(panels: Sequence[Axes], ticks: Array, parts: Terms, level: float) -> None:
    wide = half_width(level)
    for axes, (name, mean, deviation), colour in zip(panels, parts, _cycle(len(parts)), strict=True):
        axes.fill_between(
            ticks, mean - wide * deviation, mean + wide * deviation, color=colour, alpha=0.22, lw=0
        )
        axes.plot(ticks, mean, color=colour, lw=1.3)
        axes.axhline(0, color="#BBBBBB", lw=0.7, zorder=0)
        tidy(axes, _shorten(name), "", "its part")


def _cycle(count: int) -> list[str]:
    return [COLOURS[i % (len(COLOURS) - 1)] for i in range(count)]


def _title(model: BaseEstimator) -> str:
    return _shorten(str(getattr(model, "kernel_", type(model).__name__)))


def _shorten(text: str) -> str:
    text = re.sub(r"\d+\.\d{3,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.3g}", text)
    if len(text) <= 100:
        return text
    return text[:99] + "…"
