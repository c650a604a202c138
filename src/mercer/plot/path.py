"""The path of a regression: errors along the penalties of a ridge, or along the steps of a descent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.style import COLOURS, GREY, PlotError, legend_below, panel, tidy, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

CRITERIA = {"loo": "leaving one out", "gcv": "generalised cross-validation"}


def path(model: BaseEstimator, *, ax: Axes | None = None) -> Figure:
    """What a fitted `KernelLeastSquares` met on its way, or a `KernelRidgeCV` on its grid of penalties.

    The first shows the mean squared error of every step, on the rows learned from and on those held out;
    the second the error on unseen rows and the degrees of freedom for every α. The model kept is marked.
    `ax` are axes to draw into; without them there is a new figure.
    """
    if hasattr(model, "path_"):
        return _descent(model, panel(ax, 7.2, 4.4))
    if hasattr(model, "alphas_") and hasattr(model, "loo_errors_"):
        return _penalties(model, panel(ax, 7.2, 4.4))
    raise PlotError(
        f"a path belongs to a fitted KernelLeastSquares or KernelRidgeCV; got {type(model).__name__}."
    )


def _descent(model: BaseEstimator, axes: Axes) -> Figure:
    found = model.path_
    # so that step 0 has a place on a logarithmic axis
    steps = found.iterations + 1
    axes.plot(steps, found.train_errors, color=COLOURS[0], linewidth=2, label="rows learned from")
    kept = found.train_errors
    if found.validation_errors is not None:
        axes.plot(steps, found.validation_errors, color=COLOURS[1], linewidth=2, label="rows held out")
        kept = found.validation_errors
    _mark(axes, steps[found.best], kept[found.best], f"kept: step {found.best}")
    axes.set_xscale("log")
    axes.set_yscale("log" if min(kept.min(), found.train_errors.min()) > 0 else "linear")
    _plain_ticks(axes)
    tidy(
        axes,
        f"Error along gradient descent, with steps of {model.step_:.3g}",
        "step + 1",
        "mean squared error",
    )
    legend_below(axes)
    return whole(axes)


def _penalties(model: BaseEstimator, axes: Axes) -> Figure:
    alphas = model.alphas_
    order = np.argsort(alphas)
    if hasattr(model, "cv_errors_"):
        by = "folds"
        errors = model.cv_errors_
    else:
        by = CRITERIA[model.criterion]
        errors = getattr(model, f"{model.criterion}_errors_")
    errors = errors.reshape(len(alphas), -1)
    for j in range(errors.shape[1]):
        name = f"error by {by}" + (f", target {j}" if errors.shape[1] > 1 else "")
        colour = COLOURS[j % len(COLOURS)]
        axes.plot(alphas[order], errors[order, j], "o-", color=colour, markersize=4, linewidth=2, label=name)
        chosen = float(np.broadcast_to(model.alpha_, errors.shape[1])[j])
        at = int(np.argmin(np.abs(alphas - chosen)))
        _mark(axes, alphas[at], errors[at, j], f"kept: α = {chosen:.3g}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_ticks(axes)
    tidy(axes, "Error and freedom along the penalty", "penalty α", "mean squared error")
    right = axes.twinx()
    right.plot(
        alphas[order],
        model.dof_path_[order],
        color=GREY,
        linewidth=1.5,
        linestyle="dashed",
    )
    right.set_ylim(bottom=0)
    right.set_ylabel("effective degrees of freedom", fontsize=10, color=GREY)
    right.tick_params(labelsize=9, colors=GREY)
    for side in ("top", "left", "bottom"):
        right.spines[side].set_visible(False)
    right.spines["right"].set_color("#999999")
    # the legend of the panel names the curve of the other axis too
    axes.plot([], [], color=GREY, linewidth=1.5, linestyle="dashed", label="degrees of freedom, on the right")
    legend_below(axes)
    return whole(axes)


def _mark(axes: Axes, x: float, y: float, text: str) -> None:
    axes.plot(
        [x],
        [y],
        "o",
        color="#111111",
        markersize=9,
        fillstyle="none",
        markeredgewidth=1.8,
        label=text,
        zorder=5,
    )


def _plain_ticks(axes: Axes) -> None:
    """Errors as 0.06 and 2, not as powers of ten, at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axes.get_yscale() == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
