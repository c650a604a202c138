"""The pictures of the course: `make course` writes all of them to docs/course/pictures.

Each page is run first, and its pictures are drawn from the names that it leaves: they show the page's own
numbers.
"""

from __future__ import annotations

import doctest
import io
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mercer import KernelRidge, plot, theory
from mercer.plot.style import BAD, COLOURS, GREY, SEQUENTIAL, new_figure, tidy

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
DOTS = 110  # for each inch
LARGEST = 60_000  # bytes of a picture
BLUE, RED = COLOURS[:2]
INK = "#222222"


def run(page: Path) -> tuple[int, dict[str, Any]]:
    """How many examples of the page fail, and the names that it leaves."""
    text = page.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, clear_globs=False)
    return runner.failures, test.globs


def dots(axes: Any, X: Any, y: Any, size: float = 26.0) -> None:
    """Two classes: blue discs for +1, orange squares for -1."""
    for label, marker, colour in ((1, "o", BLUE), (-1, "s", RED)):
        rows = np.asarray(X)[np.asarray(y) == label]
        look = {"marker": marker, "color": colour, "edgecolors": "white", "linewidths": 0.5}
        axes.scatter(*rows.T, s=size, zorder=3, **look)


def grid(low: float, high: float, count: int = 160) -> tuple[Any, Any, Any]:
    """The two coordinates of a square grid, and its points as rows."""
    across, up = np.meshgrid(np.linspace(low, high, count), np.linspace(low, high, count))
    return across, up, np.column_stack([across.ravel(), up.ravel()])


def square(axes: Any, title: str, size: float) -> None:
    """A panel without ticks, the same in both directions."""
    tidy(axes, title, "")
    axes.set(xlim=(-size, size), ylim=(-size, size), xticks=[], yticks=[], aspect="equal")


def lifting(names: dict[str, Any]) -> Any:
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 60), np.repeat([0.5, 1.5], 30) + 0.1 * rng.normal(size=60)
    rows = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return plot.lifting(rows, np.repeat([0, 1], 30))


def eigenvalues(names: dict[str, Any]) -> Any:
    figure = new_figure(7.2, 3.2)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key, title in zip(panels, ("good", "poor"), ("RBF(1.0)", "tanh(1 + x·z)"), strict=True):
        values = names[key][::-1]
        order = np.concatenate([np.arange(6), np.arange(len(values) - 6, len(values))])
        colours = [BAD if value < -1e-9 else BLUE for value in values[order]]
        axes.axhline(0, color="#999999", lw=0.8)
        axes.bar(range(12), values[order], color=colours, width=0.75)
        axes.set_xticks(range(12), [str(i + 1) for i in order])
        lowest = float(values.min())
        said = f"smallest {lowest:.2f}" if lowest < -1e-9 else "none negative"
        tidy(axes, f"{title}: {said}", "the six largest and the six smallest of 60")
    panels[0].set_ylabel("eigenvalue", fontsize=10)
    return figure


def perceptron(names: dict[str, Any]) -> Any:
    X, y, mistakes = names["X"], names["y"], names["mistakes"]
    rows = np.hstack([names["ones"], X])
    across, up, points = grid(-2.6, 2.6, 60)
    figure = new_figure(10.0, 5.6)
    w = np.zeros(3)
    for step, (axes, n) in enumerate(zip(figure.subplots(2, 4).flat, mistakes, strict=True), 1):
        w = w + y[n] * rows[n]
        values = (w[0] + points @ w[1:]).reshape(across.shape)
        axes.contourf(across, up, values, levels=[-1e9, 0, 1e9], colors=[RED, BLUE], alpha=0.14)
        axes.contour(across, up, values, levels=[0], colors=INK, linewidths=1.6)
        dots(axes, X, y, 34)
        axes.scatter(*X[n], s=150, facecolors="none", edgecolors=INK, linewidths=1.6, zorder=4)
        wrong = int(np.sum(y * (rows @ w) <= 0))
        square(axes, f"mistake {step}: {wrong} still wrong", 2.3)
    return figure


def perceptron_rings(names: dict[str, Any]) -> Any:
    rings, side, ended = names["rings"], names["side"], names["ended"]
    across, up, points = grid(-2.6, 2.6)
    shown = sorted({1, 3, 6, len(ended)})
    figure = new_figure(10.0, 2.9)
    for axes, count in zip(figure.subplots(1, len(shown)), shown, strict=True):
        alpha = np.bincount(ended[:count], minlength=len(side)) * side
        values = ((1 + points @ rings.T) ** 2 @ alpha).reshape(across.shape)
        wrong = int(np.sum(side * ((1 + rings @ rings.T) ** 2 @ alpha) <= 0))
        axes.contourf(across, up, values, levels=[-1e9, 0, 1e9], colors=[RED, BLUE], alpha=0.14)
        axes.contour(across, up, values, levels=[0], colors=INK, linewidths=1.6)
        dots(axes, rings, side, 16)
        plural = "mistake" if count == 1 else "mistakes"
        square(axes, f"{count} {plural}: {wrong} wrong", 2.5)
    return figure


def k_means(names: dict[str, Any]) -> Any:
    X, K = names["X"], names["K"]
    across, up, points = grid(-1.4, 1.4)
    figure = new_figure(7.6, 3.8)
    parts = (("straight", lambda A, B: A @ B.T, X @ X.T, "x·z"), ("labels", names["RBF"](0.5), K, "RBF(0.5)"))
    for axes, (key, kernel, own, title) in zip(figure.subplots(1, 2), parts, strict=True):
        found = names[key]
        weights = np.array([(found == j) / np.sum(found == j) for j in (0, 1)]).T
        far = np.einsum("nj,nm,mj->j", weights, own, weights) - 2 * np.asarray(kernel(points, X)) @ weights
        nearer = (far[:, 0] - far[:, 1]).reshape(across.shape)
        axes.contour(across, up, nearer, levels=[0], colors=INK, linewidths=1.6)
        dots(axes, X, np.where(found == 0, 1, -1), 18)
        square(axes, f"{title}: {names['agreement'](found):.0%} agree with the rings", 1.3)
    return figure


def margins(names: dict[str, Any]) -> Any:
    figure = new_figure(8.6, 4.3)
    both = (("hard", "X", "y", "hard margin"), ("soft", "Z", "t", "soft margin, C = 1"))
    for axes, (machine, rows, labels, title) in zip(figure.subplots(1, 2), both, strict=True):
        model, X, y = names[machine], names[rows], names[labels]
        across, up, points = grid(-3.4, 3.4)
        values = model.decision_function(points).reshape(across.shape)
        axes.contour(across, up, values, levels=[-1, 0, 1], colors=INK, linestyles=["--", "-", "--"])
        dots(axes, X, y)
        alpha = np.abs(model.dual_coef_[0])
        areas = 40 + 220 * alpha / alpha.max()
        ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.1}
        axes.scatter(*X[model.support_].T, s=areas, zorder=4, **ring)
        delta = 1 / np.sqrt(np.sum((model.dual_coef_ @ model.support_vectors_) ** 2))
        square(axes, f"{title}: {len(alpha)} support vectors, δ = {delta:.2f}", 3.3)
    return figure


def digits(names: dict[str, Any]) -> Any:
    """The table of the page itself."""
    text = (HERE / "digits.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([1-7]) \| [\d ]+ \| (.+) \|$", text, re.MULTILINE)
    degrees = [int(degree) for degree, _ in rows]
    columns = np.array([[float(cell) for cell in cells.split(" | ")] for _, cells in rows]).T
    figure = new_figure(9.2, 3.7)
    looks = (("notes", GREY, "o", ":"), ("(x·z/256)^d", RED, "s", "--"), ("(1 + x·z/256)^d", BLUE, "^", "-"))
    panels = figure.subplots(1, 2)
    for j, (label, colour, marker, style) in enumerate(looks):
        for axes, values in zip(panels, (columns[2 * j], columns[2 * j + 1]), strict=True):
            axes.plot(degrees, values, style, marker=marker, ms=6, color=colour, lw=1.8, label=label)
    for axes, title in zip(panels, ("Support vectors of a machine", "Error on the test set, %"), strict=True):
        tidy(axes, title, "degree")
        axes.set(xticks=degrees, ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def cover(names: dict[str, Any]) -> Any:
    figure = new_figure(7.4, 3.9)
    axes = figure.add_subplot()
    for m, colour, style in ((5, BLUE, "-"), (20, RED, "--"), (80, COLOURS[2], "-.")):
        counts = np.arange(1, 4 * (m + 1) + 1)
        chances = [theory.cover_probability(int(n), m) for n in counts]
        axes.plot(counts / (m + 1), chances, style, color=colour, lw=2, label=f"{m} dimensions")
    counted = names["counted"]
    shares = [n / 6 for n in counted]
    axes.plot(shares, list(counted.values()), "o", color=INK, ms=6, label="counted, 5 dimensions")
    axes.axvline(2, color=GREY, lw=0.8, ls=":")
    tidy(axes, "How likely random labels can be separated", "points / (dimensions + 1)", "probability")
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return figure


def representer(names: dict[str, Any]) -> Any:
    steps, losses, penalties = (np.array(names[name]) for name in ("steps", "losses", "penalties"))
    figure = new_figure(6.6, 3.4)
    axes = figure.add_subplot()
    parts = (
        (losses + penalties, INK, "-", "loss + penalty"),
        (penalties, RED, "--", "penalty λ‖w‖²"),
        (losses, BLUE, "-.", "loss"),
    )
    for values, colour, style, label in parts:
        axes.plot(steps, values, style, color=colour, lw=2)
        place = (1.02, values[-1])
        axes.annotate(label, place, color=colour, fontsize=10, va="center", annotation_clip=False)
    axes.plot([0], [losses[20] + penalties[20]], "o", color=INK, ms=7)
    axes.set(xlim=(-1, 1.45), xticks=[-1, -0.5, 0, 0.5, 1], ylim=(0, None))
    tidy(axes, "A walk out of the span of the data", "step along w⊥", "value")
    return figure


def gap(names: dict[str, Any]) -> Any:
    primal, dual = names["primal"], names["dual"]
    lowest = np.minimum.accumulate(primal)
    passes = np.arange(len(primal))
    figure = new_figure(9.2, 3.7)
    values, rest = figure.subplots(1, 2)
    values.fill_between(passes, dual, lowest, color="#BBBBBB", alpha=0.4, lw=0)
    values.plot(passes, primal, "o-", color=RED, ms=4, lw=1.6)
    values.plot(passes, dual, "s-", color=BLUE, ms=4, lw=1.6)
    values.annotate("primal: no worse than this", (4.4, 58), color=RED, fontsize=10)
    values.annotate("dual: no better than this", (4.4, 18), color=BLUE, fontsize=10)
    values.set(xlim=(-0.3, 15), ylim=(0, None))
    tidy(values, "The optimum lies in the grey", "passes", "value")
    left = lowest - dual
    shown = left > 1e-9
    rest.plot(passes[shown], left[shown], "o-", color=INK, ms=3, lw=1.4)
    rest.set_yscale("log")
    tidy(rest, "The gap", "passes", "primal − dual")
    return figure


def ridge(names: dict[str, Any]) -> Any:
    X, y, g, line = (names[name] for name in ("X", "y", "g", "line"))
    figure = new_figure(9.4, 3.9)
    curves, tradeoff = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    curves.scatter(X[:, 0], y, s=22, color=GREY, zorder=3)
    looks = {0.001: (BLUE, "-"), 0.1: (INK, "--"), 10.0: (RED, "-.")}
    path = []
    for price in np.logspace(-4, 2, 25):
        fit = KernelRidge(g, price).fit(X, y)
        path.append((theory.function_of(fit).norms()[0], np.mean((fit.predict(X) - y) ** 2)))
    tradeoff.plot(*np.array(path).T, color="#BBBBBB", lw=2, zorder=1)
    for price, (colour, style) in looks.items():
        fit = KernelRidge(g, price).fit(X, y)
        norm, error = theory.function_of(fit).norms()[0], np.mean((fit.predict(X) - y) ** 2)
        curves.plot(line, fit.predict(line), style, color=colour, lw=2, label=f"λ = {price:g}")
        tradeoff.plot([norm], [error], "o", color=colour, ms=8)
        tradeoff.annotate(f"λ = {price:g}", (norm, error), (6, 8), textcoords="offset points", color=colour)
    tidy(curves, "Three prices of the norm", "x", "y")
    curves.set_ylim(-1.7, 2.3)
    curves.legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
    tidy(tradeoff, "The norm against the error", "‖f‖", "mean squared error")
    tradeoff.set_ylim(0, None)
    return figure


def windows(names: dict[str, Any]) -> Any:
    x, line, X, y = (names[name] for name in ("x", "line", "X", "y"))
    figure = new_figure(9.6, 3.9)
    hills, curves = figure.subplots(1, 2)
    for h, colour, style, width in ((0.05, "#AAAAAA", "-", 1.2), (0.4, BLUE, "-", 2), (3.0, RED, "--", 2)):
        hills.plot(line, names["density"](h), style, color=colour, lw=width, label=f"h = {h:g}")
    hills.plot(x[:, 0], np.full(len(x), -0.012), "|", color=INK, ms=6, alpha=0.6)
    tidy(hills, "A density for three bandwidths h", "x", "density")
    hills.legend(frameon=False, fontsize=9, loc="upper right")
    at = np.linspace(-1, 8, 200)[:, None]
    mean, std = names["process"].predict(at, return_std=True)
    band = {"color": BLUE, "alpha": 0.18, "lw": 0}
    curves.fill_between(at[:, 0], mean - 2 * std, mean + 2 * std, label="its band, ± 2 deviations", **band)
    curves.plot(at, mean, color=BLUE, lw=2, label="Gaussian process")
    curves.plot(at, names["window"].predict(at), "--", color=RED, lw=2, label="Nadaraya–Watson")
    curves.scatter(X[:, 0], y, s=14, color=INK, linewidths=0, zorder=3)
    curves.set_ylim(-2.2, 3.1)
    tidy(curves, "A mean in a window, and a process", "x", "y")
    curves.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    return figure


def carbon_dioxide(names: dict[str, Any]) -> Any:
    """The picture of examples/co2_grown.py, which fits the same three sums."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return runpy.run_path(str(EXAMPLES / "co2_grown.py"))["main"]()
    finally:
        sys.path.remove(str(EXAMPLES))


def documents(names: dict[str, Any]) -> Any:
    figure = new_figure(8.4, 4.1)
    panels = figure.subplots(1, 2)
    ticks = [f"{topic} {i % 3 + 1}" for i, topic in enumerate(names["topic"])]
    for axes, key, title in zip(panels, "KL", ("counts", "rare words count more"), strict=True):
        axes.imshow(names[key], cmap=SEQUENTIAL, vmin=0, vmax=1)
        for (i, j), value in np.ndenumerate(names[key]):
            ink = "black" if value > 0.5 else "white"
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
        axes.set_yticks(range(6), ticks)
        axes.set_xticks(range(6), ticks, rotation=40, ha="right")
        times = names["contrast"](names[key])
        tidy(axes, f"{title}:\none topic {times:.2f} times as alike as two", "")
    return figure


PICTURES = {
    "what-a-kernel-is": {"lifting": lifting},
    "when-it-is-a-kernel": {"eigenvalues": eigenvalues},
    "perceptron": {"perceptron": perceptron, "perceptron-rings": perceptron_rings},
    "k-means": {"k-means": k_means},
    "large-margins": {"margins": margins},
    "digits": {"digits": digits},
    "cover-and-representer": {"cover": cover, "representer": representer},
    "duality": {"gap": gap},
    "ridge-and-rkhs": {"ridge": ridge},
    "other-kernels": {"windows": windows},
    "carbon-dioxide": {"carbon-dioxide": carbon_dioxide},
    "bag-of-words": {"documents": documents},
}


def save(figure: Any, name: str) -> Path:
    """Write the figure in 64 colours, small enough for a page that is read on a phone."""
    place = HERE / "pictures" / f"{name}.png"
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DOTS)
    Image.open(drawn).convert("RGB").quantize(64).save(place, optimize=True)
    return place


def main(pages: list[str]) -> None:
    """Draw the pictures of these pages, or of all."""
    for page in pages or PICTURES:
        failed, names = run(HERE / f"{page}.md")
        if failed:
            raise SystemExit(f"{page}.md: {failed} examples fail; no picture is drawn from them")
        for name, draw in PICTURES[page].items():
            place = save(draw(names), name)
            print(f"{place}: {place.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
