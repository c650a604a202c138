"""One kernel in three pictures: its profile, its Gram matrix, and the functions it makes likely.

profile   k(x₀, x) for a few x₀; over the plane for kernels of two columns
Gram      k on a grid, with colours centred at 0 where both signs occur
prior     sample functions f ~ GP(0, k); for what is not a kernel, the eigenvalues that forbid them
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels.base import Kernel, as_kernel
from mercer.plot.prior import Prior, Spectrum, sample_prior
from mercer.plot.space import Space, space_of
from mercer.plot.style import (
    BAD,
    COLOURS,
    DIVERGING,
    GOOD,
    MONO,
    UNSURE,
    canvas,
    colour_scale,
    legend_below,
    name_bar,
    tidy,
    whole,
)
from mercer.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from mercer.kernels.proofs.answers import Validity

VERDICTS = {
    "proved": ("proved: a kernel", GOOD),
    "declared": ("proved from what was declared", UNSURE),
    "refuted": ("refuted: not a kernel", BAD),
    "undecided": ("undecided: neither proved nor refuted", UNSURE),
}
MOST_SAMPLES = 50
# maps of two columns that can still be read beside one another
MOST_MAPS = 4


def kernel(
    k: Kernel | str,
    *,
    span: tuple[float, float] | None = None,
    samples: int = 5,
    seed: int = 0,
    validity: Validity | None = None,
    seconds: float = 5.0,
    ax: Axes | None = None,
) -> Figure:
    """The profile of `k`, its Gram matrix and its prior samples, side by side.

    An open lengthscale is drawn as 1. `span` is the interval shown of every column, chosen from the
    lengthscales if not given. Of two columns at most four samples are shown, as maps. `validity` spares
    judging a kernel twice; without it `seconds` limits that. `ax` are axes whose place the panels take;
    without them there is a new figure.

    >>> import mercer
    >>> mercer.plot.kernel("RBF(1.0)").savefig("rbf.png")                    # doctest: +SKIP
    """
    k = as_kernel(k).closed(1.0)
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MOST_SAMPLES:
        raise ParameterError(f"samples must be a whole number from 1 to {MOST_SAMPLES}; got {samples!r}.")
    lines = _wrapped(str(k))
    header = 0.5 + 0.22 * len(lines)
    figure = canvas(ax, 13.5, 4.4 + header)
    space = space_of(k, span)
    judged = k.validity(seconds=seconds) if validity is None else validity
    widths = (1, 1, 1) if space.plane else (1.3, 1, 1.3)
    grid = figure.add_gridspec(2, 3, height_ratios=(header, 4.4), width_ratios=widths)
    _title(figure.add_subplot(grid[0, :]), lines, judged)
    draw_profile = _plane if space.plane else _profile
    draw_profile(figure.add_subplot(grid[1, 0]), space)
    _gram(figure.add_subplot(grid[1, 1]), space)
    X = space.points(26 if space.plane else 300)
    K = space.block(X)
    refuted = judged.status == "refuted"
    found = Spectrum.of(K) if refuted else sample_prior(K, space.block(X, X), samples, seed)
    if isinstance(found, Spectrum):
        _spectrum(figure.add_subplot(grid[1, 2]), found)
    elif space.plane:
        _fields(figure.add_subplot(grid[1, 2]), space, found)
    else:
        _functions(figure.add_subplot(grid[1, 2]), space, found, np.sqrt(np.clip(np.diag(K), 0, None)))
    return whole(figure)


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(text, 120, break_on_hyphens=False) or [""]
    return lines if len(lines) <= 4 else [*lines[:3], lines[3][:117] + "..."]


def _title(axes: Axes, lines: list[str], judged: Validity) -> None:
    axes.set_axis_off()
    word, colour = VERDICTS[judged.status]
    place = axes.transAxes
    axes.text(
        0,
        1,
        "\n".join(lines),
        va="top",
        fontsize=12,
        family=MONO,
        color="#111111",
        linespacing=1.25,
        transform=place,
        parse_math=False,
    )
    axes.text(
        0,
        0.1,
        word,
        va="bottom",
        fontsize=11,
        weight="bold",
        color=colour,
        transform=place,
        parse_math=False,
    )


# ── profile ─────────────────────────────────────────────────────────────────────────────────────────────────


def _profile(axes: Axes, space: Space) -> None:
    """k(x₀, ·) for three x₀; a dot marks k(x₀, x₀), apart from the curve where the kernel has noise."""
    t = space.ticks(601)
    X = space.points(601)
    jumps = False
    for share, colour in zip((1 / 6, 1 / 2, 5 / 6), COLOURS, strict=False):
        place = space.low + share * (space.high - space.low)
        place = 0.0 if abs(place) < 1e-12 * (space.high - space.low) else place
        x0 = space.at(place)
        limit = float(space.block(x0, x0)[0, 0])
        value = float(space.block(x0)[0, 0])
        axes.plot(t, space.block(x0, X)[0], color=colour, lw=1.8, label=f"x₀ = {place:.3g}")
        if abs(value - limit) > 1e-12 * abs(value):
            jumps = True
            axes.plot([place, place], [limit, value], color=colour, lw=1.2, ls=":")
            axes.plot(place, limit, "o", ms=5, mfc="white", mec=colour, mew=1.2)
        axes.plot(place, value, "o", ms=5, color=colour)
    title = "Profile k(x₀, x)"
    if jumps:
        title += "; the noise jumps at x₀"
    tidy(axes, title, space.label, "k(x₀, x)")
    _flat_axis_gets_room(axes)
    axes.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    legend_below(axes)


def _flat_axis_gets_room(axes: Axes) -> None:
    """A constant curve is no noise: show it against 0, not magnified."""
    low, high = axes.get_ylim()
    size = max(abs(low), abs(high))
    if high - low < 0.2 * size:
        axes.set_ylim(min(low, 0.0) - 0.1 * size, max(high, 0.0) + 0.1 * size)


def _plane(axes: Axes, space: Space) -> None:
    """k(x₀, ·) over the plane, for one x₀ off the centre (at the centre a linear kernel would be 0)."""
    place = space.low + 2 / 3 * (space.high - space.low)
    K = space.block(space.at(place), space.points(121))[0].reshape(121, 121)
    extent = (space.low, space.high, space.low, space.high)
    image = axes.imshow(K, origin="lower", extent=extent, **colour_scale(K.min(), K.max()))
    if np.ptp(K) > 1e-12 * np.abs(K).max():
        axes.contour(K, levels=6, origin="lower", extent=extent, colors="white", linewidths=0.6, alpha=0.7)
    axes.plot(place, place, "+", ms=11, mew=2.2, color="white")
    axes.plot(place, place, "+", ms=9, mew=1.2, color="black")
    x, y = space.names or ("x₁", "x₂")
    tidy(axes, f"Profile k(x₀, x) at x₀ = ({place:.3g}, {place:.3g})", x, y)
    axes.set_anchor("N")
    _colour_bar(axes, image, "k(x₀, x)")


# ── Gram matrix ─────────────────────────────────────────────────────────────────────────────────────────────


def _gram(axes: Axes, space: Space) -> None:
    count = 10 if space.plane else 80
    K = space.block(space.points(count))
    if space.plane:
        extent = (0.5, len(K) + 0.5, len(K) + 0.5, 0.5)
        title = "Gram matrix"
        xlabel = f"point of a {count} by {count} grid, row by row"
        ylabel = "point"
    else:
        half = 0.5 * (space.high - space.low) / (count - 1)
        extent = (space.low - half, space.high + half, space.high + half, space.low - half)
        title = f"Gram matrix on {count} points"
        xlabel = "x" if space.columns == 1 else "t"
        ylabel = "x′"
    image = axes.imshow(K, extent=extent, interpolation="nearest", **colour_scale(K.min(), K.max()))
    tidy(axes, title, xlabel, ylabel)
    axes.set_anchor("N")
    _colour_bar(axes, image, "k(x, x′)")


def _colour_bar(axes: Axes, image: AxesImage, name: str) -> None:
    name_bar(axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03), name)


# ── prior ───────────────────────────────────────────────────────────────────────────────────────────────────


def _functions(axes: Axes, space: Space, prior: Prior, deviation: Array) -> None:
    """Sample functions as lines, over the band of two standard deviations; noisy observations as dots."""
    t = space.ticks(len(deviation))
    count = prior.functions.shape[1]
    axes.fill_between(
        t,
        -2 * deviation,
        2 * deviation,
        color="#DDDDDD",
        alpha=0.6,
        lw=0,
        zorder=0,
        label="±2 standard deviations",
    )
    rng = np.random.default_rng(count)
    for i in range(count):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(t, prior.functions[:, i], color=colour, lw=1.4 if count <= 10 else 0.8)
        if prior.noise.any():
            seen = slice(i % 8, None, 8)
            y = prior.functions[seen, i] + prior.noise[seen] * rng.standard_normal(len(t[seen]))
            label = None if i else "observed with noise"
            axes.plot(t[seen], y, "o", ms=3, color=colour, alpha=0.65, mew=0, label=label)
    tidy(axes, f"{count} prior sample{'s' * (count > 1)} f ~ GP(0, k)", space.label, "f(x)")
    _flat_axis_gets_room(axes)
    legend_below(axes)


def _fields(axes: Axes, space: Space, prior: Prior) -> None:
    """Sample functions of two columns, as maps side by side on one colour scale."""
    count = min(prior.functions.shape[1], MOST_MAPS)
    across = int(np.ceil(np.sqrt(count)))
    down = -(-count // across)
    side = int(np.sqrt(len(prior.functions)))
    gap = 2
    sheet = np.full((down * (side + gap) - gap, across * (side + gap) - gap), np.nan)
    for i in range(count):
        row, column = ((side + gap) * v for v in divmod(i, across))
        sheet[row : row + side, column : column + side] = prior.functions[:, i].reshape(side, side)[::-1]
    size = float(np.abs(prior.functions[:, :count]).max()) or 1.0
    image = axes.imshow(sheet, cmap=DIVERGING, vmin=-size, vmax=size, interpolation="bilinear")
    noted = ", noise left out" if prior.noise.any() else ""
    tidy(axes, f"{count} prior sample{'s' * (count > 1)} f ~ GP(0, k){noted}", "each over the same plane")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_anchor("N")
    for spine in axes.spines.values():
        spine.set_visible(False)
    _colour_bar(axes, image, "f(x)")


def _spectrum(axes: Axes, spectrum: Spectrum) -> None:
    """The eigenvalues of the Gram matrix, largest first, negative ones in another colour and shape."""
    values = spectrum.values[::-1]
    top = float(np.abs(spectrum.values).max())
    order = np.arange(1, len(values) + 1)
    floor = max(spectrum.threshold, np.finfo(float).tiny)
    for keep, marker, colour, label in (
        (values > floor, "o", COLOURS[0], "positive"),
        (values < -floor, "v", BAD, "negative"),
        (np.abs(values) <= floor, ".", "#AAAAAA", "zero to rounding"),
    ):
        if keep.any():
            axes.plot(order[keep], values[keep], marker, ms=4, color=colour, label=f"{keep.sum()} {label}")
    axes.set_yscale("symlog", linthresh=floor, linscale=0.4)
    axes.set_yticks([s * top_tick for s in (-1, 1) for top_tick in _decades(floor, top)] + [0.0])
    axes.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    tidy(axes, "Eigenvalues: there are no prior samples", "number", "eigenvalue")
    why = "No random function has this covariance:\n"
    if spectrum.negative:
        why += f"along one direction of the grid\nits variance would be {values[-1]:.3g}."
    else:
        why += "no eigenvalue is negative on this grid,\nbut on other points one is."
    axes.text(0.99, 0.97, why, transform=axes.transAxes, ha="right", va="top", fontsize=9, color="#333333")
    legend_below(axes, gap=0.2)


def _decades(low: float, high: float) -> list[float]:
    """At most four powers of ten between two numbers, evenly apart."""
    first = int(np.ceil(np.log10(low)))
    last = int(np.floor(np.log10(high)))
    step = max(1, -(-(last - first) // 3))
    return [10.0**e for e in range(last, first, -step)]
