"""The plane as a classifier sees it: regions, boundary, margins, examples and support vectors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mercer import theory
from mercer.arrays import check_vectors, dense
from mercer.errors import MercerError
from mercer.plot.style import COLOURS, DIVERGING, GREY, PlotError, new_figure, tidy

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def decision(model: Any, X: Any, y: Any = None, *, resolution: int = 300) -> Any:
    """A picture of a fitted machine on two columns: f(x) as a colour and f = 0 drawn full. Two classes or one class show f,
    more classes their regions.

    A machine with a margin has f = ±1 dashed and its support vectors ringed, with a thick ring for those at the bound; of a
    perceptron the rows of its mistakes are ringed, of other machines the rows that f is made of, if not all are.
    """
    A = dense(check_vectors(X))
    if A.shape[1] != 2:
        raise PlotError(f"the picture needs two columns; X has {A.shape[1]}. Choose two, or project X first.")
    figure = new_figure(7.2, 5.6)
    axes = figure.add_subplot()
    low, high = A.min(axis=0), A.max(axis=0)
    pad = 0.12 * np.where(high > low, high - low, 1.0)
    ticks = [np.linspace(a, b, resolution) for a, b in zip(low - pad, high + pad, strict=True)]
    grid = np.column_stack([m.ravel() for m in np.meshgrid(*ticks)])
    values = np.asarray(model.decision_function(_like(model, grid)))
    if values.ndim == 1:
        margin = y is not None and _has_margin(model)
        _field(figure, axes, ticks, values.reshape(resolution, resolution), margin=margin)
    else:
        _regions(axes, ticks, values.argmax(axis=1).reshape(resolution, resolution), values.shape[1])
    _examples(axes, model, A, y)
    ringed = _named_rows(model, len(A))
    for name, rows in ringed.items():
        _ring(axes, A[rows], name)
    tidy(axes, _title(model, ringed), *_names(model))
    axes.set_xlim(ticks[0][0], ticks[0][-1])
    axes.set_ylim(ticks[1][0], ticks[1][-1])
    axes.legend(
        fontsize=9, framealpha=0.92, loc="upper left", bbox_to_anchor=(0.0, -0.12), ncols=3, frameon=False
    )
    return figure


def _like(model: Any, grid: np.ndarray) -> Any:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return grid
    import pandas

    return pandas.DataFrame(grid, columns=list(names))


def _has_margin(model: Any) -> bool:
    """Whether f = ±1 means something: the machine puts its margin there."""
    try:
        return theory.function_of(model).canonical
    except MercerError:
        return False


def _field(figure: Any, axes: Any, ticks: list[np.ndarray], F: np.ndarray, *, margin: bool) -> None:
    size = float(np.quantile(np.abs(F), 0.98)) or 1.0
    shown = axes.contourf(
        *ticks,
        np.clip(F, -size, size),
        levels=np.linspace(-size, size, 25),
        cmap=DIVERGING,
        alpha=0.55,
    )
    bar = figure.colorbar(shown, ax=axes, shrink=0.85, ticks=np.linspace(-size, size, 5), format="%.3g")
    bar.set_label("f(x)", fontsize=10)
    bar.ax.tick_params(labelsize=9)
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
        name = "margins f = ±1" if len(sides) == 2 else f"margin f = {sides[0]:+.0f}".replace("-", "\u2212")
        axes.plot([], [], color="#111111", linewidth=1.2, linestyle="dashed", label=name)


def _regions(axes: Any, ticks: list[np.ndarray], winner: np.ndarray, k: int) -> None:
    from matplotlib.colors import ListedColormap

    colours = [COLOURS[c % len(COLOURS)] for c in range(k)]
    axes.pcolormesh(
        *ticks, winner, cmap=ListedColormap(colours), vmin=-0.5, vmax=k - 0.5, alpha=0.22, rasterized=True
    )
    for c in range(k):
        if 0 < (winner == c).mean() < 1:
            axes.contour(*ticks, (winner == c) * 1.0, levels=[0.5], colors="#111111", linewidths=1.2)
    axes.plot([], [], color="#111111", linewidth=1.2, label="boundaries")


def _examples(axes: Any, model: Any, A: np.ndarray, y: Any) -> None:
    labels = np.zeros(len(A), dtype=int) if y is None else np.asarray(y)
    classes = np.unique(labels) if y is None else model.classes_
    two = len(classes) == 2
    for c, label in enumerate(classes):
        mine = labels == label
        colour = ("#5E3C99", "#B35806")[c] if two else COLOURS[c % len(COLOURS)]
        axes.scatter(
            *A[mine].T,
            s=26,
            marker=MARKERS[c % len(MARKERS)],
            color=GREY if y is None else colour,
            edgecolors="white",
            linewidths=0.5,
            zorder=3,
            label="examples" if y is None else f"class {label}",
        )


def _named_rows(model: Any, n: int) -> dict[str, np.ndarray]:
    """The rows to ring, by the name that the machine gives them; none where the picture shows other rows than those of fit."""
    try:
        found = theory.named_rows(model)
    except MercerError:  # a vote of many planes has no function, but its mistakes are shown all the same
        found = {"rows with a mistake": np.unique(model.mistakes_)}
    return {name: rows for name, rows in found.items() if len(rows) and int(np.max(rows)) < n}


def _ring(axes: Any, points: np.ndarray, name: str) -> None:
    width = 2.0 if name.endswith("at the bound") else 1.0
    axes.scatter(
        *points.T, s=85, facecolors="none", edgecolors="#111111", linewidths=width, zorder=4, label=name
    )


def _title(model: Any, ringed: dict[str, np.ndarray]) -> str:
    """The machine, its kernel, and how many rows are ringed as what."""
    kernel = str(getattr(model, "kernel_", getattr(model, "kernel", "")))
    kernel = re.sub(r"\d+\.\d{4,}", lambda m: f"{float(m[0]):.4g}", kernel)
    shown = kernel if len(kernel) < 46 else kernel[:43] + "…"
    counts = [f"{len(rows)} {name if len(rows) > 1 else _one(name)}" for name, rows in ringed.items()]
    return f"{type(model).__name__}, {shown}" + (f"\n{', '.join(counts)}" if counts else "")


def _one(name: str) -> str:
    return name.replace("vectors", "vector").replace("rows", "row")


def _names(model: Any) -> tuple[str, str]:
    names = getattr(model, "feature_names_in_", ("column 0", "column 1"))
    return str(names[0]), str(names[1])
