"""Lifting: data that no line separates, and the map after which one does (A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.style import COLOURS, GREY, PlotError, new_figure, tidy
from mercer.sparse import dense
from mercer.typing import Array, Integers, Labels, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from mpl_toolkits.mplot3d import Axes3D

CLASSES = (("o", COLOURS[0]), ("s", COLOURS[1]))


def lifting(X: Table | None = None, y: Targets | None = None) -> Figure:
    """Two classes before and after a map that separates them, with the line or plane in both spaces.

        one column     x → (x, x²)
        two columns    (x₁, x₂) → (x₁², √2 x₁x₂, x₂²), the map of (x·z)²

    Without data, an example of each is drawn. The line or plane is that of a linear support vector machine
    in the lifted space; in the input space it is two points, or a conic section. The titles say what was
    counted: how many rows the drawn line or plane has on their sides, and whether a point or a line
    separates the classes before the map.

    >>> import mercer
    >>> figure = mercer.plot.lifting([[-2.0], [-1.0], [1.0], [2.0]], [1, 0, 0, 1])      # doctest: +SKIP
    """
    if X is None:
        figure = new_figure(10.5, 8.4)
        halves = figure.subfigures(2, 1, squeeze=False)[:, 0]
        for half, (rows, labels) in zip(halves, (_on_a_line(), _on_circles()), strict=True):
            _draw(half, rows, labels, np.arange(2))
        return figure
    A: Array = dense(check_vectors(X))
    if y is None:
        raise PlotError("lifting separates two classes: give y, a label for each row.")
    names, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(codes) != len(A) or len(names) != 2 or A.shape[1] not in (1, 2):
        raise PlotError(
            f"lifting takes one or two columns and two classes; X has {A.shape[1]} columns "
            f"and {len(A)} rows, y has {len(names)} classes and {len(codes)} labels."
        )
    figure = new_figure(10.5, 4.3)
    _draw(figure, A, codes, names)
    return figure


def lift(A: Array) -> Array:
    """(x, x²), or (x₁², √2 x₁x₂, x₂²).

    >>> lift(np.array([[3.0]])), lift(np.array([[1.0, 2.0]])).round(3)
    (array([[3., 9.]]), array([[1.   , 2.828, 4.   ]]))
    """
    if A.shape[1] == 1:
        return np.column_stack([A[:, 0], A[:, 0] ** 2])
    return np.column_stack([A[:, 0] ** 2, np.sqrt(2) * A[:, 0] * A[:, 1], A[:, 1] ** 2])


def _draw(figure: Figure | SubFigure, A: Array, codes: Integers, names: Labels) -> None:
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
        return
    below = figure.add_subplot(1, 2, 1)
    above = figure.add_subplot(1, 2, 2, projection="3d")
    _plane(below, A, codes, w, b, flat, names)
    _space(above, F, codes, w, b, verdict)


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
    tidy(axes, f"x: {flat}", "x")
    axes.spines["left"].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower center", handletextpad=0.2)


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
    tidy(axes, f"x → (x, x²): {verdict}", "x", "x²")


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
    tidy(axes, f"(x₁, x₂): {flat}", "x₁", "x₂")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _space(axes: Axes3D, F: Array, codes: Integers, w: Array, b: float, verdict: str) -> None:
    for c, (marker, colour) in enumerate(CLASSES):
        mine = F[codes == c]
        axes.scatter(
            *mine.T, s=18, marker=marker, color=colour, depthshade=False, edgecolors="white", linewidths=0.3
        )
    if w.any():
        _surface(axes, F, w, b)
    axes.set_title(f"(x₁², √2 x₁x₂, x₂²):\n{verdict}", fontsize=11, loc="left")
    axes.set_xlabel("x₁²", fontsize=10, labelpad=4)
    axes.set_ylabel("√2 x₁x₂", fontsize=10, labelpad=4)
    axes.set_zlabel("x₂²", fontsize=10, labelpad=4)
    axes.tick_params(labelsize=8)
    axes.locator_params(nbins=4)
    axes.view_init(elev=14, azim=-58)
    axes.set_box_aspect((1, 1, 0.9), zoom=1.12)


def _surface(axes: Axes3D, F: Array, w: Array, b: float) -> None:
    low = F.min(axis=0)
    high = F.max(axis=0)
    # solve the plane for the coordinate it depends on most
    steep = int(np.argmax(np.abs(w)))
    others = [i for i in range(3) if i != steep]
    u, v = np.meshgrid(*(np.linspace(low[i], high[i], 30) for i in others))
    height = -(w[others[0]] * u + w[others[1]] * v + b) / w[steep]
    height[(height < low[steep]) | (height > high[steep])] = np.nan
    sides = {others[0]: u, others[1]: v, steep: height}
    axes.plot_surface(sides[0], sides[1], sides[2], color=GREY, alpha=0.25, linewidth=0, shade=False)


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
