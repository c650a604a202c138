"""Panels of regression curves: one data set of one column, and what each kernel makes of it (A3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.naming import column_name, target_name
from mercer.plot.style import COLOURS, GREY, PlotError, canvas, tidy, whole
from mercer.sparse import dense
from mercer.typing import Array, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

Curve = Callable[[Array], Array]


def panels(
    models: Mapping[str, BaseEstimator],
    X: Table,
    y: Targets,
    *,
    truth: Curve | None = None,
    columns: int = 3,
    resolution: int = 400,
    ax: Axes | None = None,
) -> Figure:
    """One panel for each fitted model of a single column: data, curve, and `truth(x)` where it is known.

    All panels share their axes, which the data set: a curve that runs away leaves the picture instead of
    flattening it. Where a model knows them, the panel says its leave-one-out error (root mean square) and
    degrees of freedom. `ax` are axes whose place the panels take; without them there is a new figure.
    """
    A: Array = dense(check_vectors(X))
    targets: Array = np.asarray(y, dtype=np.float64)
    if A.shape[1] != 1:
        raise PlotError(f"the picture needs one column; X has {A.shape[1]}. Choose one.")
    if not models:
        raise PlotError("there is no model to draw: pass at least one, by its title.")
    x = A[:, 0]
    pad = 0.05 * (float(np.ptp(x)) or 1.0)
    grid = np.linspace(x.min() - pad, x.max() + pad, resolution)
    high = float(np.ptp(targets)) or 1.0
    across = min(columns, len(models))
    down = -(-len(models) // across)
    figure = canvas(ax, 3.4 * across, 2.7 * down + 0.4)
    grids = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for place, (title, model) in zip(grids.flat, models.items(), strict=False):
        place.scatter(x, targets, s=16, color=GREY, alpha=0.75, linewidths=0, zorder=2, label="data")
        if truth is not None:
            place.plot(
                grid, truth(grid), color=GREY, linewidth=1.2, linestyle="dashed", label="truth", zorder=1
            )
        curve = np.asarray(model.predict(grid.reshape(-1, 1))).reshape(resolution, -1)[:, 0]
        place.plot(grid, curve, color=COLOURS[0], linewidth=2, label="fitted", zorder=3)
        tidy(place, title, "", "")
        _say(place, model)
    for place in grids.flat[len(models) :]:
        place.set_visible(False)
    for place in grids[:, 0]:
        place.set_ylabel(target_name(y), fontsize=10)
    for j in range(across):
        last = max(i for i in range(down) if i * across + j < len(models))
        grids[last, j].set_xlabel(column_name(None, X, 0, 1), fontsize=10)
        grids[last, j].tick_params(labelbottom=True)
    grids[0, 0].set_ylim(targets.min() - 0.3 * high, targets.max() + 0.45 * high)
    grids[0, 0].set_xlim(grid[0], grid[-1])
    handles = grids[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return whole(figure)


def ridge_panels(
    X: Table,
    y: Targets,
    *,
    degrees: Sequence[int] = (1, 3, 9),
    widths: Sequence[float] = (0.1, 0.5, 3.0),
    alpha: float = 1e-3,
    truth: Curve | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Ridge regression with the degree of a polynomial varied above, and the width of an RBF below.

    Too stiff, about right, too loose: the same penalty, another kernel. `ax` are axes whose place the
    panels take; without them there is a new figure.
    """
    from mercer import RBF, KernelRidge, Polynomial

    models = {f"polynomial, degree {m}": KernelRidge(Polynomial(m), alpha).fit(X, y) for m in degrees}
    models |= {f"RBF, width {w:g}": KernelRidge(RBF(w), alpha).fit(X, y) for w in widths}
    return panels(models, X, y, truth=truth, columns=max(len(degrees), 1), ax=ax)


def _say(axes: Axes, model: BaseEstimator) -> None:
    if not hasattr(model, "certificate_") or not isinstance(getattr(type(model), "dof_", None), property):
        return
    text = f"leave-one-out {np.sqrt(np.mean(model.loo_error_)):#.2g}, freedom {np.mean(model.dof_):.1f}"
    back = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    words = axes.text(
        0.02, 0.98, text, transform=axes.transAxes, fontsize=8, va="top", color="#333333", bbox=back, zorder=4
    )
    words.set_in_layout(False)
