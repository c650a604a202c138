"""Structure without labels: spectra, embeddings, Gram matrices in order, clusters with their boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.kernels.base import Kernel, as_kernel
from mercer.plot.naming import names_of_two, target_name
from mercer.plot.plane import Plane, like_rows_of_fit
from mercer.plot.style import (
    BAD,
    COLOURS,
    GREY,
    PlotError,
    canvas,
    colour_scale,
    name_bar,
    panel,
    shortened,
    tidy,
    whole,
)
from mercer.sparse import dense
from mercer.typing import Array, Flags, Integers, Labels, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter
    from sklearn.base import BaseEstimator

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PRECOMPUTED = "precomputed"
# rows of a Gram matrix that a picture can show
MOST_ROWS = 1200
# labels that a legend can name
MOST_NAMED = 12


def spectrum(model: BaseEstimator | Array, *, count: int = 40, ax: Axes | None = None) -> Figure:
    """The largest eigenvalues, and the share of the variance that the first so many explain.

    `model` is a fitted `KernelPCA` or `MercerMap`, or an array of eigenvalues; negative ones get another
    colour and sign. `ax` are axes whose place the two panels take; without them there is a new figure.

    >>> import mercer
    >>> model = mercer.KernelPCA(n_components=5).fit([[0.0], [1.0], [3.0]])
    >>> mercer.plot.spectrum(model).savefig("spectrum.png")                      # doctest: +SKIP
    """
    values, total, name = _eigenvalues(model)
    shown = values[np.argsort(-values, kind="stable")]
    order = np.arange(1, len(shown) + 1)
    keep = np.ones(len(shown), dtype=bool)
    if len(shown) > count:
        # the largest, and the lowest if they are negative
        keep = (order <= count) | ((shown < 0) & (order > len(shown) - count // 2))
    figure = canvas(ax, 9.6, 4.2)
    left, right = figure.subplots(1, 2)
    _draw_eigenvalues(left, shown, keep)
    tidy(left, f"Eigenvalues{name}", "number, the largest first", "eigenvalue λ")
    _draw_shares(right, shown[order <= count], total, bool(np.any(shown < 0)))
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
    return whole(figure)


def _draw_eigenvalues(axes: Axes, shown: Array, keep: Flags) -> None:
    """The eigenvalues to keep, by their size; a negative one as a triangle."""
    order = np.arange(1, len(shown) + 1)
    for mine, marker, colour, label in (
        (keep & (shown >= 0), "o", COLOURS[0], "eigenvalue λ"),
        (keep & (shown < 0), "v", BAD, "negative, shown as -λ"),
    ):
        if mine.any():
            axes.plot(order[mine], np.abs(shown[mine]), marker, ms=5, color=colour, label=label)
    if np.any(shown > 0):
        axes.set_yscale("log")
        sizes = np.abs(shown[keep & (shown != 0)])
        axes.yaxis.set_major_formatter(_plain(sizes))
        axes.yaxis.set_minor_formatter(_plain(sizes))
    if np.any(keep & (shown < 0)):
        axes.legend(frameon=False, fontsize=9)


def _draw_shares(axes: Axes, largest: Array, total: float, negative: bool) -> None:
    """The share of the variance that the first so many components explain."""
    share = np.cumsum(np.maximum(largest, 0.0)) / total if total > 0 else np.zeros(0)
    axes.bar(np.arange(1, len(share) + 1), share, color=COLOURS[5], width=0.8)
    axes.set_ylim(0, 1.03)
    axes.set_yticks(np.linspace(0, 1, 6), [f"{v:.0%}" for v in np.linspace(0, 1, 6)])
    if len(share):
        axes.axhline(share[-1], color=GREY, lw=0.8, ls="--", zorder=0)
    of = " of the positive part" if negative else ""
    word = "component" if len(share) == 1 else "components"
    all_of_them = share[-1] if len(share) else 0
    tidy(axes, f"Variance explained{of}: {all_of_them:.1%} by {len(share)} {word}", "components", "share")


def _eigenvalues(model: BaseEstimator | Array) -> tuple[Array, float, str]:
    """Eigenvalues, the sum that is all of the variance, and whose they are."""
    if hasattr(model, "eigenvalues_"):
        values = np.asarray(model.eigenvalues_, dtype=float)
        ratio = getattr(model, "explained_variance_ratio_", None)
        total = float(values.sum())
        if ratio is not None and len(values) and ratio[0] > 0:
            total = float(values[0] / ratio[0])
        elif hasattr(model, "residual_trace_"):
            total += model.residual_trace_
        return values, total, f" of {shortened(getattr(model, 'kernel_', type(model).__name__))}"
    values = np.asarray(model, dtype=float)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise PlotError(
            "a spectrum is a fitted KernelPCA or MercerMap, or an array of finite eigenvalues; "
            f"got {type(model).__name__}."
        )
    return values, float(np.maximum(values, 0).sum()), ""


def embedding(
    model: BaseEstimator,
    X: Table,
    labels: Targets | None = None,
    *,
    components: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Figure:
    """The rows of X on two components of a fitted model, coloured by label, or by value if many.

    `ax` are axes to draw into; without them there is a new figure.
    """
    Y: Array = np.asarray(model.transform(X))
    i, j = components
    width = Y.shape[1] if Y.ndim == 2 else 0
    if not (0 <= i < width and 0 <= j < width) or i == j:
        raise PlotError(f"components must be two different numbers below {width}; got {components}.")
    axes = panel(ax, 6.8, 5.4)
    axes.axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
    axes.axvline(0, color="#DDDDDD", lw=0.8, zorder=0)
    _points(axes, Y[:, [i, j]], labels)
    ratio = getattr(model, "explained_variance_ratio_", None)
    first = f"component {i + 1}"
    second = f"component {j + 1}"
    if ratio is not None:
        first += f" ({ratio[i]:.1%} of the variance)"
        second += f" ({ratio[j]:.1%} of the variance)"
    tidy(axes, f"{type(model).__name__}, {shortened(getattr(model, 'kernel_', ''))}", first, second)
    return whole(axes)


def gram_matrix(
    kernel: Kernel | str, X: Table, labels: Targets | None = None, *, ax: Axes | None = None
) -> Figure:
    """The Gram matrix of X with its rows in the order of their labels, and lines between the labels.

    Within a label the most typical rows come first. `kernel` is a kernel or its text, or "precomputed" when
    X is the Gram matrix itself. Of very many rows only some are shown, evenly taken from each cluster's run;
    the title says how many. `ax` are axes to draw into; without them there is a new figure.
    """
    table: Array = dense(check_vectors(X, "K" if kernel == PRECOMPUTED else "X"))
    n = len(table)
    given: Labels = np.zeros(n, dtype=int) if labels is None else np.asarray(labels)
    if given.shape != (n,):
        raise PlotError(f"labels must hold one for each of the {n} rows; got shape {given.shape}.")
    names, codes = np.unique(given, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    order = order[np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int)]
    if kernel == PRECOMPUTED:
        K = table[np.ix_(order, order)]
        title = "Gram matrix"
    else:
        k = as_kernel(kernel).resolved(table)
        K = k(table[order])
        title = f"Gram matrix of {shortened(k)}"
    if labels is not None:
        inside = _most_typical_first(K, codes[order])
        K = K[np.ix_(inside, inside)]
        order = order[inside]
    axes = panel(ax, 6.6, 5.6)
    image = axes.imshow(K, interpolation="nearest", **colour_scale(float(K.min()), float(K.max())))
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for at in starts[1:-1]:
        axes.axhline(at - 0.5, color="white", lw=1.4)
        axes.axvline(at - 0.5, color="white", lw=1.4)
    if labels is not None and len(names) <= MOST_NAMED:
        middle = (starts[:-1] + starts[1:] - 1) / 2
        axes.set_xticks(middle, [str(v) for v in names])
        axes.set_yticks(middle, [str(v) for v in names])
    part = f" ({len(order)} of {n} rows)" if len(order) < n else ""
    what = "row" if labels is None else "label of the row"
    tidy(axes, title + part, what, what)
    name_bar(axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03), "k(x, x′)")
    return whole(axes)


def clusters(model: BaseEstimator, X: Table, *, resolution: int = 240, ax: Axes | None = None) -> Figure:
    """A fitted clustering of two columns: the region of each centre, the boundaries, and the rows.

    `ax` are axes to draw into; without them there is a new figure.
    """
    from matplotlib.colors import ListedColormap

    plane = Plane.of(X, resolution, pad=0.08)
    points = like_rows_of_fit(model, plane.points)
    region: Integers = np.asarray(model.predict(points)).reshape(plane.shape)
    distances = np.asarray(model.transform(points)) if hasattr(model, "transform") else None
    labels: Integers = np.asarray(model.predict(X))
    k = int(max(region.max(), labels.max())) + 1
    axes = panel(ax, 7.0, 5.6)
    colours = ListedColormap([COLOURS[c % len(COLOURS)] for c in range(k)])
    axes.pcolormesh(*plane.ticks, region, cmap=colours, vmin=-0.5, vmax=k - 0.5, alpha=0.2, rasterized=True)
    _boundaries(axes, plane.ticks, distances, region, k)
    _points(axes, plane.rows, labels, word="cluster")
    title = f"{type(model).__name__}, {shortened(getattr(model, 'kernel_', ''))}"
    if hasattr(model, "inertia_"):
        title += f", inertia {model.inertia_:.4g}"
    tidy(axes, title, *names_of_two(model, X))
    plane.frame(axes)
    return whole(axes)


def _boundaries(
    axes: Axes, ticks: tuple[Array, Array], distances: Array | None, region: Integers, k: int
) -> None:
    """Where two centres are equally near.

    Drawn as level lines of a distance minus the least of the others, where the distances are known.
    """
    shape = region.shape
    for c in range(k):
        if not 0 < (region == c).mean() < 1:
            continue
        if distances is None:
            edge = (region == c) * 1.0
            level = 0.5
        else:
            nearest_other = np.delete(distances, c, axis=1).min(axis=1)
            edge = (nearest_other - distances[:, c]).reshape(shape)
            level = 0.0
        axes.contour(*ticks, edge, levels=[level], colors="#111111", linewidths=1.0)


def _most_typical_first(K: Array, codes: Integers) -> Integers:
    """Rows by cluster, and within a cluster the most typical first."""
    typical = np.array([K[i, codes == codes[i]].mean() for i in range(len(K))])
    return np.lexsort((-typical, codes))


def _plain(values: Array) -> Formatter:
    """Numbers without powers of ten, unless there are many powers; then only the powers."""
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation

    if values.max() < 100 * values.min() and 1e-3 < values.max() < 1e5:
        return FuncFormatter(lambda v, _: f"{v:g}" if f"{v:e}"[0] in "1235" else "")
    return LogFormatterSciNotation(labelOnlyBase=True)


# ── shared ──────────────────────────────────────────────────────────────────────────────────────────────────


def _points(axes: Axes, P: Array, labels: Targets | None, word: str = "") -> None:
    """Dots by label, with a legend beside the panel; by colour of a number where there are many of them."""
    if labels is None:
        axes.scatter(P[:, 0], P[:, 1], s=20, color=COLOURS[0], edgecolors="white", linewidths=0.4, zorder=3)
        return
    given: Labels = np.asarray(labels)
    if given.shape != (len(P),):
        raise PlotError(f"labels must hold one for each of the {len(P)} rows; got shape {given.shape}.")
    names = np.unique(given)
    if len(names) > MOST_NAMED and given.dtype.kind in "fiu":
        shown = axes.scatter(
            P[:, 0], P[:, 1], s=20, c=given, cmap="cividis", edgecolors="white", linewidths=0.3, zorder=3
        )
        name_bar(axes.figure.colorbar(shown, ax=axes, shrink=0.85), target_name(labels))
        return
    for c, name in enumerate(names):
        axes.scatter(
            P[given == name, 0],
            P[given == name, 1],
            s=24,
            marker=MARKERS[(c // len(COLOURS) + c) % len(MARKERS)],
            color=COLOURS[c % len(COLOURS)],
            edgecolors="white",
            linewidths=0.5,
            zorder=3,
            label=f"{word} {name}".strip(),
        )
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.2)
