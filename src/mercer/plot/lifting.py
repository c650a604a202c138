"""Lifting: data that no line separates, and the map after which one does (A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.naming import column_name
from mercer.plot.style import COLOURS, GREY, PlotError, canvas, legend_below, tidy, whole
from mercer.sparse import dense
from mercer.typing import Array, Integers, Labels, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from mpl_toolkits.mplot3d import Axes3D

# How the space is looked at: the sides of its box, degrees above the ground, and the angle to the plane.
BOX = (1.0, 1.0, 0.85)
ELEVATION = 12.0
GRAZING = np.radians(9.0)
CLASSES = (("o", COLOURS[0]), ("s", COLOURS[1]))


def lifting(X: Table | None = None, y: Targets | None = None, *, ax: Axes | None = None) -> Figure:
    """Two classes before and after a map that separates them, with the line or plane in both spaces.

        one column     x → (x, x²)
        two columns    (x₁, x₂) → (x₁², √2 x₁x₂, x₂²), the map of (x·z)²

    Without data, an example of each is drawn. The line or plane is that of a linear support vector machine
    in the lifted space; in the input space it is two points, or a conic section. The titles say what was
    counted: how many rows the drawn line or plane has on their sides, and whether a point or a line
    separates the classes before the map. `ax` are axes whose place the panels take; without them there is a
    new figure.

    >>> import mercer
    >>> figure = mercer.plot.lifting([[-2.0], [-1.0], [1.0], [2.0]], [1, 0, 0, 1])      # doctest: +SKIP
    """
    if X is None:
        figure = canvas(ax, 10.5, 9.0)
        halves = figure.subfigures(2, 1, squeeze=False)[:, 0]
        for half, (rows, labels) in zip(halves, (_on_a_line(), _on_circles()), strict=True):
            _draw(half, rows, labels, np.arange(2), _called(rows, rows))
        return whole(figure)
    A: Array = dense(check_vectors(X))
    if y is None:
        raise PlotError("lifting separates two classes: give y, a label for each row.")
    names, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(codes) != len(A) or len(names) != 2 or A.shape[1] not in (1, 2):
        raise PlotError(
            f"lifting takes one or two columns and two classes; X has {A.shape[1]} columns "
            f"and {len(A)} rows, y has {len(names)} classes and {len(codes)} labels."
        )
    figure = canvas(ax, 10.5, 4.5)
    _draw(figure, A, codes, names, _called(X, A))
    return whole(figure)


def lift(A: Array) -> Array:
    """(x, x²), or (x₁², √2 x₁x₂, x₂²).

    >>> lift(np.array([[3.0]])), lift(np.array([[1.0, 2.0]])).round(3)
    (array([[3., 9.]]), array([[1.   , 2.828, 4.   ]]))
    """
    if A.shape[1] == 1:
        return np.column_stack([A[:, 0], A[:, 0] ** 2])
    return np.column_stack([A[:, 0] ** 2, np.sqrt(2) * A[:, 0] * A[:, 1], A[:, 1] ** 2])


def _called(X: Table, A: Array) -> tuple[str, ...]:
    """The names of the one or two columns of A, which X may know."""
    width = A.shape[1]
    return tuple(column_name(None, X, j, width) for j in range(width))


def _draw(
    figure: Figure | SubFigure, A: Array, codes: Integers, names: Labels, called: tuple[str, ...]
) -> None:
    from mercer import SVC

    F = lift(A)
    # a line that separates has the widest margin; where none does, a smaller C gives one soon
    price = 1e4 if separable(F, codes) else 10.0
    model = SVC("Linear()", C=price / max(float(F.var()), 1e-300)).fit(F, codes)
    w: Array = model.dual_coef_[0] @ F[model.support_]
    b = float(model.intercept_[0])
    one_column = A.shape[1] == 1
    what = "line" if one_column else "plane"
    if w.any():
        right = int(((F @ w + b > 0) == (codes == 1)).sum())
        verdict = _verdict(what, right, len(A))
    else:
        verdict = f"no {what} does better than one class for all"
    flat = _before(A, codes)
    if one_column:
        below, above = figure.subplots(1, 2)
        _line(below, A, codes, w, b, flat, names)
        _parabola(above, A, F, codes, w, b, verdict, names)
        for axes in (below, above):
            axes.set_xlabel(called[0])
        above.set_ylabel(f"{called[0]}²")
        return
    below = figure.add_subplot(1, 2, 1)
    above = figure.add_subplot(1, 2, 2, projection="3d")
    _plane(below, A, codes, w, b, flat, names)
    below.set_xlabel(called[0])
    below.set_ylabel(called[1])
    _space(above, F, codes, w, b, verdict)
    _name_lifted(above, *called)


def _verdict(what: str, right: int, n: int) -> str:
    """What the drawn line or plane does to the rows, counted."""
    if right == n:
        return f"this {what} separates all {n}"
    return f"this {what} has {right} of {n} on their side"


def _before(A: Array, codes: Integers) -> str:
    """Whether a point, or a line, separates the classes before the map, decided by a linear program."""
    what = "point" if A.shape[1] == 1 else "line"
    if separable(A, codes):
        return f"a {what} separates them too"
    return f"no {what} separates the classes"


def separable(A: Array, codes: Integers) -> bool:
    """Whether some hyperplane has the two classes strictly on its two sides.

    >>> A = np.array([[0.0], [1.0], [2.0]])
    >>> separable(A, np.array([0, 1, 1])), separable(A, np.array([0, 1, 0]))
    (True, False)
    """
    from scipy.optimize import linprog

    size = np.abs(A).max(axis=0)
    scaled = A / np.where(size > 0, size, 1.0)
    signs = np.where(codes == 1, 1.0, -1.0)
    rows = signs[:, None] * np.column_stack([scaled, np.ones(len(A))])
    found = linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(A)), bounds=(None, None))
    return bool(found.status == 0)


def _line(axes: Axes, A: Array, codes: Integers, w: Array, b: float, flat: str, names: Labels) -> None:
    _dots(axes, np.column_stack([A[:, 0], np.zeros(len(A))]), codes, names)
    axes.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    roots = np.roots([w[1] if abs(w[1]) > 1e-12 * np.abs(w).max() else 0.0, w[0], b])
    for root in roots[np.isreal(roots)].real:
        axes.axvline(root, color="#111111", lw=1.4)
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    tidy(axes, f"Before: {flat}", "x")
    axes.spines["left"].set_visible(False)
    legend_below(axes, gap=0.2)


def _parabola(
    axes: Axes,
    A: Array,
    F: Array,
    codes: Integers,
    w: Array,
    b: float,
    verdict: str,
    names: Labels,
) -> None:
    t = np.linspace(A.min() - 0.1 * np.ptp(A), A.max() + 0.1 * np.ptp(A), 200)
    axes.plot(t, t**2, color="#BBBBBB", lw=1.0, zorder=0)
    _dots(axes, F, codes, names)
    if abs(w[1]) > 1e-12 * np.abs(w).max():
        axes.plot(t, -(w[0] * t + b) / w[1], color="#111111", lw=1.6)
    elif w.any():
        axes.axvline(-b / w[0], color="#111111", lw=1.6)
    top = float(F[:, 1].max())
    axes.set_ylim(-0.08 * top, 1.12 * top)
    tidy(axes, f"After x → (x, x²): {verdict}", "x", "x²")


def _plane(axes: Axes, A: Array, codes: Integers, w: Array, b: float, flat: str, names: Labels) -> None:
    _dots(axes, A, codes, names)
    reach = 1.15 * float(np.abs(A).max())
    t = np.linspace(-reach, reach, 240)
    P = np.column_stack([m.ravel() for m in np.meshgrid(t, t)])
    f = (lift(P) @ w + b).reshape(240, 240)
    if f.min() < 0 < f.max():
        axes.contour(t, t, f, levels=[0.0], colors="#111111", linewidths=1.6)
    axes.set_aspect("equal")
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    tidy(axes, f"Before: {flat}", "x₁", "x₂")
    legend_below(axes, gap=0.2)


def _space(axes: Axes3D, F: Array, codes: Integers, w: Array, b: float, verdict: str) -> None:
    """The lifted rows, the cone on which all of them lie, and the plane between the classes."""
    # what is drawn later lies above: cone, plane, rows
    axes.computed_zorder = False
    _cone(axes, F)
    if w.any():
        _surface(axes, F, w, b)
    for c, (marker, colour) in enumerate(CLASSES):
        mine = F[codes == c]
        axes.scatter(
            *mine.T,
            s=22,
            marker=marker,
            color=colour,
            depthshade=False,
            edgecolors="white",
            linewidths=0.4,
            zorder=3,
        )
    axes.set_title(f"After (x₁, x₂) → (x₁², √2 x₁x₂, x₂²):\n{verdict}", fontsize=11, loc="left")
    axes.tick_params(labelsize=8, pad=0)
    axes.locator_params(nbins=4)
    axes.locator_params(axis="y", nbins=2)
    axes.view_init(elev=ELEVATION, azim=_along(w * np.ptp(F, axis=0) / BOX))
    axes.set_box_aspect(BOX, zoom=1.3)


def _along(normal: Array) -> float:
    """The azimuth from which a plane is seen nearly edge on, so that the classes lie on its two sides.

    >>> eye = np.radians(_along(np.array([1.0, 0.0, 0.0])))
    >>> bool(np.isclose(np.cos(eye) * np.cos(np.radians(ELEVATION)), np.sin(GRAZING)))
    True
    """
    height = np.radians(ELEVATION)
    level = float(np.hypot(normal[0], normal[1]))
    # the direction of the eye has this part along the normal
    wanted = np.sin(GRAZING) * np.linalg.norm(normal) - normal[2] * np.sin(height)
    share = wanted / (np.cos(height) * level) if level > 0 else 0.0
    turned = np.arctan2(normal[1], normal[0]) - np.arccos(np.clip(share, -1.0, 1.0))
    return float(np.degrees(turned))


def _name_lifted(axes: Axes3D, first: str, second: str) -> None:
    between = "" if (first, second) == ("x₁", "x₂") else " · "
    axes.set_xlabel(f"{first}²", fontsize=10, labelpad=2)
    axes.set_ylabel(f"√2 {first}{between}{second}", fontsize=10, labelpad=8)
    axes.set_zlabel(f"{second}²", fontsize=10, labelpad=2)


def _cone(axes: Axes3D, F: Array) -> None:
    """The image of the whole plane: rings x₁² + x₂² = r², and rays from the origin."""
    reach = float(np.sqrt((F[:, 0] + F[:, 2]).max())) or 1.0
    # (x₁, x₂) and its opposite have one image, so half a turn is all
    turn = np.linspace(0, np.pi, 61)
    for r in np.linspace(0.25, 1.0, 4) * reach:
        ring = lift(r * np.column_stack([np.cos(turn), np.sin(turn)]))
        axes.plot(*ring.T, color="#BBBBBB", lw=0.7, zorder=1)
    for angle in turn[:-1:6]:
        ray = lift(np.linspace(0, reach, 2)[:, None] * np.array([[np.cos(angle), np.sin(angle)]]))
        axes.plot(*ray.T, color="#BBBBBB", lw=0.5, zorder=1)


def _surface(axes: Axes3D, F: Array, w: Array, b: float) -> None:
    """The part of the plane that lies in the box of the rows, by its corners."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    corners = _crossing(F.min(axis=0), F.max(axis=0), w, b)
    if len(corners) < 3:
        return
    axes.add_collection3d(
        Poly3DCollection([corners], facecolor=GREY, edgecolor="#111111", linewidth=1.2, alpha=0.25, zorder=2)
    )


def _crossing(low: Array, high: Array, w: Array, b: float) -> Array:
    """Where the plane w·u + b = 0 meets the edges of a box, in order around their middle.

    >>> _crossing(np.zeros(3), np.ones(3), np.array([1.0, 0.0, 0.0]), -0.5)[:, 0]
    array([0.5, 0.5, 0.5, 0.5])
    """
    found = []
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        for first in (low, high):
            for second in (low, high):
                point = np.zeros(3)
                point[others] = first[others[0]], second[others[1]]
                if w[axis] == 0:
                    continue
                point[axis] = -(w[others] @ point[others] + b) / w[axis]
                if low[axis] <= point[axis] <= high[axis]:
                    found.append(point)
    if len(found) < 3:
        return np.zeros((0, 3))
    points = np.array(found)
    centred = points - points.mean(axis=0)
    # two directions within the plane
    across = np.linalg.svd(centred)[2][:2]
    flat = centred @ across.T
    return np.asarray(points[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))])


def _dots(axes: Axes, P: Array, codes: Integers, names: Labels) -> None:
    for c, (marker, colour) in enumerate(CLASSES):
        axes.scatter(
            P[codes == c, 0],
            P[codes == c, 1],
            s=30,
            marker=marker,
            color=colour,
            edgecolors="white",
            linewidths=0.5,
            zorder=3,
            label=f"class {names[c]}",
        )


def _on_a_line() -> tuple[Array, Integers]:
    x = np.concatenate([np.linspace(-0.9, 0.9, 12), np.linspace(-2.6, -1.5, 7), np.linspace(1.5, 2.6, 7)])
    return x[:, None], (np.abs(x) > 1.2).astype(np.intp)


def _on_circles() -> tuple[Array, Integers]:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 120)
    far = np.arange(120) % 2
    radius = np.where(far == 1, rng.uniform(1.7, 2.3, 120), rng.uniform(0.1, 1.1, 120))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), far
