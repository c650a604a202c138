"""The plane as a classifier sees it: regions, boundary, margins, examples and support vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer import theory
from mercer.errors import MercerError
from mercer.plot.naming import names_of_two
from mercer.plot.plane import Plane, like_rows_of_fit
from mercer.plot.style import COLOURS, DIVERGING, GREY, legend_below, name_bar, panel, shortened, tidy, whole
from mercer.typing import Array, Integers, Labels, Table, Targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def decision(
    model: BaseEstimator,
    X: Table,
    y: Targets | None = None,
    *,
    resolution: int = 300,
    ax: Axes | None = None,
) -> Figure:
    """A picture of a fitted machine on two columns: f(x) as a colour and f = 0 drawn full.

    Two classes or one class show f, more classes their regions. A machine with a margin has f = ±1 dashed
    and its support vectors ringed, with a thick ring for those at the bound. A perceptron has the rows of
    its mistakes ringed, other machines the rows that f is made of, unless that is all of them.
    `ax` are axes to draw into; without them there is a new figure.
    """
    plane = Plane.of(X, resolution, pad=0.12)
    axes = panel(ax, 7.2, 5.6)
    values: Array = np.asarray(model.decision_function(like_rows_of_fit(model, plane.points)))
    if values.ndim == 1:
        margin = y is not None and _has_margin(model)
        _field(axes, plane.ticks, values.reshape(plane.shape), margin=margin)
    else:
        _regions(axes, plane.ticks, values.argmax(axis=1).reshape(plane.shape), values.shape[1])
    _examples(axes, model, plane.rows, y)
    ringed = _named_rows(model, len(plane.rows))
    for name, rows in ringed.items():
        _ring(axes, plane.rows[rows], name)
    tidy(axes, _title(model, ringed), *names_of_two(model, X))
    plane.frame(axes)
    legend_below(axes)
    return whole(axes)


def _has_margin(model: BaseEstimator) -> bool:
    """Whether f = ±1 means something: the machine puts its margin there."""
    try:
        return theory.function_of(model).canonical
    except MercerError:
        return False


def _field(axes: Axes, ticks: tuple[Array, Array], F: Array, *, margin: bool) -> None:
    size = float(np.quantile(np.abs(F), 0.98)) or 1.0
    shown = axes.contourf(
        *ticks,
        np.clip(F, -size, size),
        levels=np.linspace(-size, size, 25),
        cmap=DIVERGING,
        alpha=0.55,
    )
    ticks_of_bar = np.linspace(-size, size, 5)
    name_bar(axes.figure.colorbar(shown, ax=axes, shrink=0.85, ticks=ticks_of_bar, format="%.3g"), "f(x)")
    lines = [(0.0, "solid", 2.0)]
    if margin:
        lines += [(-1.0, "dashed", 1.2), (1.0, "dashed", 1.2)]
    drawn = []
    for level, style, width in lines:
        if F.min() < level < F.max():
            axes.contour(*ticks, F, levels=[level], colors="#111111", linestyles=style, linewidths=width)
            drawn.append(level)
    if 0.0 in drawn:
        axes.plot([], [], color="#111111", linewidth=2.0, label="boundary f = 0")
    sides = [level for level in drawn if level != 0.0]
    if sides:
        name = "margins f = ±1"
        if len(sides) == 1:
            name = f"margin f = {sides[0]:+.0f}".replace("-", "\u2212")
        axes.plot([], [], color="#111111", linewidth=1.2, linestyle="dashed", label=name)


def _regions(axes: Axes, ticks: tuple[Array, Array], winner: Integers, k: int) -> None:
    from matplotlib.colors import ListedColormap

    colours = [COLOURS[c % len(COLOURS)] for c in range(k)]
    axes.pcolormesh(
        *ticks, winner, cmap=ListedColormap(colours), vmin=-0.5, vmax=k - 0.5, alpha=0.22, rasterized=True
    )
    for c in range(k):
        if 0 < (winner == c).mean() < 1:
            axes.contour(*ticks, (winner == c) * 1.0, levels=[0.5], colors="#111111", linewidths=1.2)
    axes.plot([], [], color="#111111", linewidth=1.2, label="boundaries")


def _examples(axes: Axes, model: BaseEstimator, A: Array, y: Targets | None) -> None:
    if y is None:
        _dots(axes, A, MARKERS[0], GREY, "examples")
        return
    labels: Labels = np.asarray(y)
    two = len(model.classes_) == 2
    for c, label in enumerate(model.classes_):
        colour = ("#5E3C99", "#B35806")[c] if two else COLOURS[c % len(COLOURS)]
        _dots(axes, A[labels == label], MARKERS[c % len(MARKERS)], colour, f"class {label}")


def _dots(axes: Axes, points: Array, marker: str, colour: str, label: str) -> None:
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=26,
        marker=marker,
        color=colour,
        edgecolors="white",
        linewidths=0.5,
        zorder=3,
        label=label,
    )


def _named_rows(model: BaseEstimator, n: int) -> dict[str, Integers]:
    """The rows to ring, by the name that the machine gives them.

    There are none where the picture shows other rows than those of fit.
    """
    try:
        found = theory.named_rows(model)
    except MercerError:
        # a vote of many planes has no function, but its mistakes are shown all the same
        found = {"rows with a mistake": np.unique(model.mistakes_)}
    return {name: rows for name, rows in found.items() if len(rows) and int(np.max(rows)) < n}


def _ring(axes: Axes, points: Array, name: str) -> None:
    width = 2.0 if name.endswith("at the bound") else 1.0
    axes.scatter(
        points[:, 0],
        points[:, 1],
        s=85,
        facecolors="none",
        edgecolors="#111111",
        linewidths=width,
        zorder=4,
        label=name,
    )


def _title(model: BaseEstimator, ringed: dict[str, Integers]) -> str:
    """The machine, its kernel, and how many rows are ringed as what."""
    kernel = getattr(model, "kernel_", getattr(model, "kernel", ""))
    title = f"{type(model).__name__}, {shortened(kernel)}"
    counts = [f"{len(rows)} {name if len(rows) > 1 else _one(name)}" for name, rows in ringed.items()]
    if counts:
        title += f"\n{', '.join(counts)}"
    return title


def _one(name: str) -> str:
    return name.replace("vectors", "vector").replace("rows", "row")
