"""Which letters of a string, or which nodes of a graph, made a machine say what it says: by their colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import pdist

from mercer.kernels import Graph
from mercer.plot.style import DIVERGING, GREY, MONO, PlotError, canvas, shortened, whole
from mercer.theory.contributions import Contributions
from mercer.theory.contributions import contributions as contributions_of
from mercer.typing import Array, Integers, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure, SubFigure

# What fits on one picture that can still be read.
MOST_GRAPHS = 24
MOST_LINES = 60

# Strings: characters of a line; inches of a line and of a character.
LINE = 50
LINE_HEIGHT = 0.3
CHARACTER = 0.12

# Graphs: panels beside one another, and inches of one.
ACROSS = 4
PANEL = 2.5

# Points of the largest node, and characters of a label that fit on it.
LARGEST_NODE = 17.0
LONGEST_LABEL = 3

# Nodes for which the slower and better layout is taken, and the room between parts that do not hang together.
MOST_NODES = 150
BETWEEN = 1.5


def contributions(model: object, X: Table, *, function: int = 0, ax: Axes | None = None) -> Figure:
    """What each letter or node of some things contributes to f(x), as its colour: purple against, orange for.

    `model` is a fitted machine or its `theory.FeatureWeights`, and X a list of strings or of graphs, as in
    `predict`. Strings are written under one another, and long ones go on in the next line. Graphs are drawn
    by networkx's layouts where it is installed, else on circles. `function` is the number of the
    function, where a machine has several. `ax` are axes whose place the picture takes; without them there is
    a new figure.

    >>> import mercer
    >>> model = mercer.SVC(mercer.Spectrum(2)).fit(["TATA", "GCGC", "TTAT"], [1, 0, 1])
    >>> mercer.plot.contributions(model, ["GGTATAGG"]).savefig("letters.png")      # doctest: +SKIP
    """
    found = contributions_of(model, X)
    if not 0 <= function < len(found[0].titles):
        raise PlotError(f"function must be a number from 0 to {len(found[0].titles) - 1}; got {function}.")
    if isinstance(found[0].thing, Graph):
        return _graphs(found, function, ax)
    return _strings(found, function, ax)


def _colours(found: Sequence[Contributions], function: int) -> ScalarMappable:
    """One scale for all things, with 0 in its middle."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    sizes = [np.abs(each.values[:, function]).max(initial=0.0) for each in found]
    largest = float(max(sizes)) or 1.0
    return ScalarMappable(Normalize(-largest, largest), DIVERGING)


def _ink(colour: Array) -> str:
    """Black or white, whichever can be read on this colour."""
    red, green, blue, _ = colour
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.45 else "black"


def _headed(
    figure: Figure | SubFigure,
    axes: Sequence[Axes],
    colours: ScalarMappable,
    each: Contributions,
    function: int,
    what: str,
) -> None:
    """The title of a picture, which says what a colour means, and the bar of colours."""
    title = (
        f"{each.titles[function]} by {shortened(each.kernel)}\n"
        f"colour is what each {what} contributes, and the intercept is {_signed(each.offset[function])}"
    )
    figure.suptitle(title, fontsize=11, x=0.02, ha="left", linespacing=1.4)
    bar = figure.colorbar(colours, ax=axes, orientation="horizontal", shrink=0.5, aspect=40, pad=0.04)
    bar.set_label(f"contribution to {each.titles[function]}", fontsize=10)
    bar.ax.tick_params(labelsize=9, color=GREY, labelcolor="#333333")


def _signed(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:+.3g}".replace("-", "−")


# ── strings ─────────────────────────────────────────────────────────────────────────────────────────────────


def _strings(found: Sequence[Contributions], function: int, ax: Axes | None) -> Figure:
    widest = max((len(name) for each in found for name in each.names), default=1)
    across = max(1, LINE // widest)
    lines = [max(1, math.ceil(len(each.names) / across)) for each in found]
    if sum(lines) > MOST_LINES:
        raise PlotError(
            f"these strings take {sum(lines)} lines of {across} symbols, and {MOST_LINES} can be read on one "
            "picture. Draw fewer of them at a time."
        )
    used = min(across, max(1, max(len(each.names) for each in found)))
    inches = max(used * _cell(widest), 4.0)
    figure = canvas(ax, inches + 2.0, 1.8 + LINE_HEIGHT * (sum(lines) + 0.4 * len(lines)))
    axes = figure.subplots()
    colours = _colours(found, function)
    y = 0.0
    for i, (each, height) in enumerate(zip(found, lines, strict=True)):
        axes.text(-0.08 / _cell(widest), y, f"{i}", ha="right", va="center", fontsize=9, color=GREY)
        _letters(axes, each, function, colours, across, y)
        axes.text(
            used + 0.08 / _cell(widest),
            y,
            f"f = {_signed(each.total[function])}",
            va="center",
            fontsize=9,
            color="#333333",
        )
        y += height + 0.4
    axes.set_xlim(-0.4 / _cell(widest), max(used, 4.0 / _cell(widest)) + 1.2 / _cell(widest))
    axes.set_ylim(y - 0.8, -0.7)
    axes.set_axis_off()
    _headed(figure, [axes], colours, found[0], function, "letter")
    return whole(figure)


def _cell(widest: int) -> float:
    """Inches that a symbol takes."""
    return CHARACTER * (widest + 0.6)


def _letters(
    axes: Axes, each: Contributions, function: int, colours: ScalarMappable, across: int, top: float
) -> None:
    """One string, a coloured cell for each symbol, with so many in a line."""
    from matplotlib.patches import Rectangle

    for place, (name, value) in enumerate(zip(each.names, each.values[:, function], strict=True)):
        x = place % across
        y = top + place // across
        colour = np.asarray(colours.to_rgba(value))
        axes.add_patch(Rectangle((x, y - 0.45), 1.0, 0.9, facecolor=colour, edgecolor="white", lw=0.6))
        axes.text(x + 0.5, y, name, ha="center", va="center", fontsize=10, family=MONO, color=_ink(colour))


# ── graphs ──────────────────────────────────────────────────────────────────────────────────────────────────


def _graphs(found: Sequence[Contributions], function: int, ax: Axes | None) -> Figure:
    if len(found) > MOST_GRAPHS:
        raise PlotError(f"at most {MOST_GRAPHS} graphs fit on one picture; got {len(found)}. Draw fewer.")
    across = min(ACROSS, len(found))
    down = math.ceil(len(found) / across)
    figure = canvas(ax, max(PANEL * across, 6.4), 1.7 + PANEL * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    colours = _colours(found, function)
    for axes in panels:
        axes.set_axis_off()
    for i, (each, axes) in enumerate(zip(found, panels, strict=False)):
        _graph(axes, each, function, colours)
        axes.set_title(f"{i}: f = {_signed(each.total[function])}", fontsize=9, color="#333333")
    _headed(figure, list(panels), colours, found[0], function, "node")
    return whole(figure)


def _graph(axes: Axes, each: Contributions, function: int, colours: ScalarMappable) -> None:
    graph = each.thing
    assert isinstance(graph, Graph)
    if graph.nodes == 0:
        axes.text(0.5, 0.5, "no nodes", ha="center", va="center", fontsize=9, color=GREY)
        return
    at = layout(graph)
    for a, b in graph.edges.tolist():
        axes.plot(at[[a, b], 0], at[[a, b], 1], color="#999999", lw=1.2, zorder=1)
    half = max(float(np.ptp(at, axis=0).max()) / 2, 1.0)
    size = _points(at, half)
    shades = np.asarray(colours.to_rgba(each.values[:, function]))
    axes.scatter(
        at[:, 0], at[:, 1], s=size**2, c=shades, edgecolors=GREY, linewidths=0.8, zorder=2, clip_on=False
    )
    if graph.labels is not None:
        for name, (x, y), shade in zip(each.names, at, shades, strict=True):
            text = name[:LONGEST_LABEL]
            ink = _ink(shade)
            axes.text(x, y, text, ha="center", va="center", fontsize=size / 2, color=ink, zorder=3)
    # a square with all nodes inside
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    axes.set_xlim(middle[0] - 1.1 * half, middle[0] + 1.1 * half)
    axes.set_ylim(middle[1] - 1.1 * half, middle[1] + 1.1 * half)
    axes.set_aspect("equal")


def _points(at: Array, half: float) -> float:
    """The diameter of the nodes, so small that no two of them overlap."""
    if len(at) < 2:
        return LARGEST_NODE
    nearest = float(pdist(at).min())
    room = 72 * 0.8 * PANEL * nearest / (2.2 * half)
    return float(np.clip(0.9 * room, 2.0, LARGEST_NODE))


def layout(graph: Graph) -> Array:
    """A place in the plane for each node; parts that do not hang together fill shelves, the largest first."""
    out = np.zeros((graph.nodes, 2))
    _, part = connected_components(graph.adjacency(), directed=False)
    widest = 4 * math.sqrt(graph.nodes)
    x = 0.0
    y = 0.0
    lowest = 0.0
    for p in np.argsort(-np.bincount(part), kind="stable").tolist():
        nodes = np.flatnonzero(part == p)
        # the room that a part takes grows with its nodes
        places = _connected(graph, nodes) * math.sqrt(len(nodes))
        places -= [places[:, 0].min(), places[:, 1].max()]
        width = float(places[:, 0].max())
        if x > 0 and x + width > widest:
            x = 0.0
            y = lowest - BETWEEN
        out[nodes] = places + np.array([x, y])
        x += width + BETWEEN
        lowest = min(lowest, y + float(places[:, 1].min()))
    return out


def _connected(graph: Graph, nodes: Integers) -> Array:
    """The nodes of one part within the circle of radius 1."""
    if len(nodes) == 1:
        return np.zeros((1, 2))
    try:
        import networkx
    except ImportError:
        angle = 2 * np.pi * np.arange(len(nodes)) / len(nodes)
        return np.column_stack([np.cos(angle), np.sin(angle)])
    part = networkx.Graph(graph.edges.tolist()).subgraph(nodes.tolist())
    if len(nodes) <= MOST_NODES:
        start = dict(zip(nodes.tolist(), _by_distances(graph, nodes), strict=True))
        places = networkx.kamada_kawai_layout(part, pos=start)
    else:
        places = networkx.spring_layout(part, seed=0)
    return np.array([places[node] for node in nodes.tolist()])


def _by_distances(graph: Graph, nodes: Integers) -> Array:
    """The nodes by their distances along edges (classical scaling): a start that twists no ring."""
    steps = shortest_path(graph.adjacency(), directed=False, unweighted=True, indices=nodes)[:, nodes]
    squares = steps**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    # nodes with the same distances to all others must not lie on one another
    return np.asarray(places + np.random.default_rng(0).normal(scale=0.01, size=places.shape))
