"""Structure without labels: spectra, embeddings, Gram matrices in order, and clusters with their boundaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import check_vectors, dense
from mercer.kernels.base import as_kernel
from mercer.plot.style import BAD, COLOURS, GREY, PlotError, colour_scale, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MOST_ROWS = 1200  # rows of a Gram matrix that a picture can show
MOST_NAMED = 12  # labels that a legend can name


def spectrum(model: Any, *, count: int = 40) -> Figure:
    """The largest eigenvalues, and the share of the variance that the first so many explain.

    `model` is a fitted `KernelPCA` or `MercerMap`, or an array of eigenvalues; negative ones get another colour and sign.

    >>> import mercer
    >>> mercer.plot.spectrum(mercer.KernelPCA(n_components=5).fit([[0.0], [1.0], [3.0]])).savefig("s.png")     # doctest: +SKIP
    """
    values, total, name = _eigenvalues(model)
    shown = values[np.argsort(-values, kind="stable")]
    order = np.arange(1, len(shown) + 1)
    keep = np.ones(len(shown), dtype=bool)
    if len(shown) > count:  # the largest, and the lowest if they are negative
        keep = (order <= count) | ((shown < 0) & (order > len(shown) - count // 2))
    figure = new_figure(9.6, 4.2)
    left, right = figure.subplots(1, 2)
    for mine, marker, colour, label in (
        (keep & (shown >= 0), "o", COLOURS[0], "eigenvalue λ"),
        (keep & (shown < 0), "v", BAD, "negative, shown as -λ"),
    ):
        if mine.any():
            left.plot(order[mine], np.abs(shown[mine]), marker, ms=5, color=colour, label=label)
    if np.any(shown > 0):
        left.set_yscale("log")
        for axis in (left.yaxis.set_major_formatter, left.yaxis.set_minor_formatter):
            axis(_plain(np.abs(shown[keep & (shown != 0)])))
    tidy(left, f"eigenvalues{name}", "number")
    if np.any(keep & (shown < 0)):
        left.legend(frameon=False, fontsize=9)
    share = np.cumsum(np.maximum(shown[order <= count], 0.0)) / total if total > 0 else np.zeros(0)
    right.bar(order[: len(share)], share, color=COLOURS[5], width=0.8)
    right.set_ylim(0, 1.03)
    right.set_yticks(np.linspace(0, 1, 6), [f"{v:.0%}" for v in np.linspace(0, 1, 6)])
    if len(share):
        right.axhline(share[-1], color=GREY, lw=0.8, ls="--", zorder=0)
    of = " of the positive part" if np.any(shown < 0) else ""
    word = "component" if len(share) == 1 else "components"
    title = f"variance explained{of}: {share[-1] if len(share) else 0:.1%} by {len(share)} {word}"
    tidy(right, title, "components")
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _eigenvalues(model: Any) -> tuple[np.ndarray, float, str]:
    """Eigenvalues, the sum that is all of the variance, and whose they are."""
    if hasattr(model, "eigenvalues_"):
        values = np.asarray(model.eigenvalues_, dtype=float)
        ratio = getattr(model, "explained_variance_ratio_", None)
        total = float(values.sum())
        if ratio is not None and len(values) and ratio[0] > 0:
            total = float(values[0] / ratio[0])
        elif hasattr(model, "residual_trace_"):
            total += model.residual_trace_
        return values, total, f" of {_short(getattr(model, 'kernel_', type(model).__name__))}"
    values = np.asarray(model, dtype=float)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise PlotError(
            f"a spectrum is a fitted KernelPCA or MercerMap, or an array of finite eigenvalues; got {type(model).__name__}."
        )
    return values, float(np.maximum(values, 0).sum()), ""


def embedding(model: Any, X: Any, labels: Any = None, *, components: tuple[int, int] = (0, 1)) -> Figure:
    """The rows of X on two components of a fitted model, coloured by label (or by value, where there are many)."""
    Y = np.asarray(model.transform(X))
    i, j = components
    if Y.ndim != 2 or not (0 <= i < Y.shape[1] and 0 <= j < Y.shape[1]) or i == j:
        raise PlotError(
            f"components must be two different numbers below {Y.shape[1] if Y.ndim == 2 else 0}; got {components}."
        )
    figure = new_figure(6.8, 5.4)
    axes = figure.add_subplot()
    axes.axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
    axes.axvline(0, color="#DDDDDD", lw=0.8, zorder=0)
    _points(figure, axes, Y[:, [i, j]], labels)
    ratio = getattr(model, "explained_variance_ratio_", None)
    names = [
        f"component {c + 1}" + ("" if ratio is None else f" ({ratio[c]:.1%} of the variance)") for c in (i, j)
    ]
    tidy(axes, f"{type(model).__name__}, {_short(getattr(model, 'kernel_', ''))}", *names)
    return figure


def gram_matrix(kernel: Any, X: Any, labels: Any = None) -> Figure:
    """The Gram matrix of X with its rows in the order of their labels, the most typical of each first, and lines between.

    `kernel` is a kernel or its text, or "precomputed" when X is the Gram matrix itself. Of very many rows only some are
    shown, evenly taken from each cluster's run; the title says how many.
    """
    n = np.shape(X)[0]
    given = np.zeros(n, dtype=int) if labels is None else np.asarray(labels)
    if given.shape != (n,):
        raise PlotError(f"labels must hold one for each of the {n} rows; got shape {given.shape}.")
    names, codes = np.unique(given, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    order = order[np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int)]
    if isinstance(kernel, str) and kernel == "precomputed":
        K, title = dense(check_vectors(X, "K"))[np.ix_(order, order)], "Gram matrix"
    else:
        rows = dense(check_vectors(X))
        k = as_kernel(kernel).resolved(rows)
        K, title = k(rows[order]), f"Gram matrix of {_short(k)}"
    inside = np.arange(len(order)) if labels is None else _within(K, codes[order])
    K, order = K[np.ix_(inside, inside)], order[inside]
    figure = new_figure(6.6, 5.6)
    axes = figure.add_subplot()
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
    tidy(axes, title + part, "row" if labels is None else "cluster", "row" if labels is None else "cluster")
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.ax.tick_params(labelsize=9, color=GREY)
    bar.outline.set_visible(False)
    return figure


def clusters(model: Any, X: Any, *, resolution: int = 240) -> Figure:
    """A fitted clustering of two columns: the region of each centre, the boundaries, and the rows."""
    from matplotlib.colors import ListedColormap

    A = dense(check_vectors(X))
    if A.shape[1] != 2:
        raise PlotError(f"the picture needs two columns; X has {A.shape[1]}. Choose two, or project X first.")
    low, high = A.min(axis=0), A.max(axis=0)
    pad = 0.08 * np.where(high > low, high - low, 1.0)
    ticks = [np.linspace(a, b, resolution) for a, b in zip(low - pad, high + pad, strict=True)]
    grid = np.column_stack([m.ravel() for m in np.meshgrid(*ticks)])
    names = getattr(model, "feature_names_in_", None)
    points = grid if names is None else _frame(grid, names)
    region = np.asarray(model.predict(points)).reshape(resolution, resolution)
    field = np.asarray(model.transform(points)) if hasattr(model, "transform") else None
    labels = np.asarray(model.predict(X))
    k = int(max(region.max(), labels.max())) + 1
    figure = new_figure(7.0, 5.6)
    axes = figure.add_subplot()
    colours = ListedColormap([COLOURS[c % len(COLOURS)] for c in range(k)])
    axes.pcolormesh(*ticks, region, cmap=colours, vmin=-0.5, vmax=k - 0.5, alpha=0.2, rasterized=True)
    _boundaries(axes, ticks, field, region, k)
    _points(figure, axes, A, labels, word="cluster")
    columns = ("column 0", "column 1") if names is None else (str(names[0]), str(names[1]))
    inertia = f", inertia {model.inertia_:.4g}" if hasattr(model, "inertia_") else ""
    tidy(axes, f"{type(model).__name__}, {_short(getattr(model, 'kernel_', ''))}{inertia}", *columns)
    axes.set_xlim(ticks[0][0], ticks[0][-1])
    axes.set_ylim(ticks[1][0], ticks[1][-1])
    return figure


def _boundaries(
    axes: Any, ticks: list[np.ndarray], field: np.ndarray | None, region: np.ndarray, k: int
) -> None:
    """Where two centres are equally near: level lines of a distance minus the least of the others, where these are known."""
    shape = region.shape
    for c in range(k):
        if not 0 < (region == c).mean() < 1:
            continue
        edge, level = (region == c) * 1.0, 0.5
        if field is not None:
            edge, level = (np.delete(field, c, axis=1).min(axis=1) - field[:, c]).reshape(shape), 0.0
        axes.contour(*ticks, edge, levels=[level], colors="#111111", linewidths=1.0)


def _within(K: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Rows by cluster, and within a cluster the most typical first."""
    own = np.array([K[i, codes == codes[i]].mean() for i in range(len(K))])
    return np.lexsort((-own, codes))


def _plain(values: np.ndarray) -> Any:
    """Numbers without powers of ten, unless there are many powers; then only the powers."""
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation

    if values.max() < 100 * values.min() and 1e-3 < values.max() < 1e5:
        return FuncFormatter(lambda v, _: f"{v:g}" if f"{v:e}"[0] in "1235" else "")
    return LogFormatterSciNotation(labelOnlyBase=True)


# ── shared ──────────────────────────────────────────────────────────────────────────────────────────────────


def _points(figure: Any, axes: Any, P: np.ndarray, labels: Any, word: str = "") -> None:
    """Dots by label, with a legend beside the panel; by colour of a number where there are many of them."""
    if labels is None:
        axes.scatter(*P.T, s=20, color=COLOURS[0], edgecolors="white", linewidths=0.4, zorder=3)
        return
    labels = np.asarray(labels)
    if labels.shape != (len(P),):
        raise PlotError(f"labels must hold one for each of the {len(P)} rows; got shape {labels.shape}.")
    names = np.unique(labels)
    if len(names) > MOST_NAMED and labels.dtype.kind in "fiu":
        shown = axes.scatter(
            *P.T, s=20, c=labels, cmap="cividis", edgecolors="white", linewidths=0.3, zorder=3
        )
        figure.colorbar(shown, ax=axes, shrink=0.85).ax.tick_params(labelsize=9)
        return
    for c, name in enumerate(names):
        axes.scatter(
            *P[labels == name].T,
            s=24,
            marker=MARKERS[(c // len(COLOURS) + c) % len(MARKERS)],
            color=COLOURS[c % len(COLOURS)],
            edgecolors="white",
            linewidths=0.5,
            zorder=3,
            label=f"{word} {name}".strip(),
        )
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.2)


def _frame(grid: np.ndarray, names: Any) -> Any:
    import pandas

    return pandas.DataFrame(grid, columns=list(names))


def _short(kernel: Any) -> str:
    """The kernel's text with four digits, cut where it is long."""
    text = re.sub(r"\d+\.\d{4,}", lambda m: f"{float(m[0]):.4g}", str(kernel))
    return text if len(text) < 46 else text[:43] + "…"
