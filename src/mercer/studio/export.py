"""What is taken away from a page: Python with the same numbers, a command, model, report and data."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from mercer import Graph, save
from mercer.errors import OutputError
from mercer.report.page import Page, svg
from mercer.studio.fitted import Fitted
from mercer.studio.machines import CLASSES, NUMBERS
from mercer.studio.points import GRAPHS, STRINGS, VECTORS, Points

# Numbers in one line of the text.
LINE = 8


def python(fitted: Fitted) -> str:
    """A program that fits the same machine to the same numbers.

    >>> from mercer.studio.state import State
    >>> state = State.read({"data": {"preset": "xor"}, "first": {"kernel": "Polynomial(2)"}})
    >>> print(python(Fitted.of(state.points, state.first)).splitlines()[-3])
    model = mercer.SVC("Polynomial(2)", C=1.0)
    """
    points = fitted.points
    lines = ["import numpy as np", "", "import mercer", "", *_data(points), ""]
    lines.append(f"model = {fitted.choice.python()}")
    lines.append("model.fit(X)" if fitted.choice.offer.unlabelled else "model.fit(X, y)")
    lines.append(f"print({_asks(fitted)})")
    return "\n".join(lines) + "\n"


def _asks(fitted: Fitted) -> str:
    if fitted.points.task == NUMBERS:
        return "model.predict(X)"
    if fitted.choice.machine == "GaussianProcessClassifier":
        return "model.latent(X)[0]"
    return "model.decision_function(X)"


def _data(points: Points) -> list[str]:
    if points.kind == VECTORS:
        rows = [", ".join(repr(float(v)) for v in row) for row in points.X]
        lines = ["X = np.array([", *(f"    [{row}]," for row in rows), "])"]
    elif points.kind == STRINGS:
        lines = ["X = [", *(f"    {row!r}," for row in points.X), "]"]
    else:
        lines = ["X = [", *(f"    {_graph(graph)}," for graph in points.X), "]"]
    if points.task == CLASSES:
        names = [repr(str(label)) for label in points.targets()]
    else:
        names = [repr(float(value)) for value in points.y]
    wrapped = [", ".join(names[i : i + LINE]) for i in range(0, len(names), LINE)]
    return [*lines, "y = np.array([", *(f"    {line}," for line in wrapped), "])"]


def _graph(graph: Graph) -> str:
    more = "" if graph.labels is None else f", labels={[str(label) for label in graph.labels]!r}"
    return f"mercer.Graph({graph.nodes}, {graph.edges.tolist()}{more})"


def table(points: Points) -> str:
    """The data as CSV, with every digit."""
    if points.kind == GRAPHS:
        raise OutputError("Graphs are no table. Copy the Python instead: it holds them.")
    names = list(points.columns) if points.kind == VECTORS else ["text"]
    lines = [",".join(_field(name) for name in [*names, points.target])]
    targets = points.targets()
    for row, target in zip(points.X, targets, strict=True):
        cells = [repr(float(v)) for v in row] if points.kind == VECTORS else [_field(row)]
        last = repr(float(target)) if points.task == NUMBERS else _field(str(target))
        lines.append(",".join([*cells, last]))
    return "\n".join(lines) + "\n"


def _field(text: str) -> str:
    if any(sign in text for sign in ',"\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def command(fitted: Fitted) -> str:
    """A command on the downloaded table with the same kernel, which `mercer fit` then tunes."""
    kernel = shlex.quote(str(fitted.choice.kernel))
    target = shlex.quote(fitted.points.target)
    return f"mercer fit points.csv --target {target} --task {fitted.points.task} --kernel {kernel}"


def model_file(fitted: Fitted) -> bytes:
    """The fitted machine, as `mercer.save` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.mercer"
        save(fitted.model, place)
        return place.read_bytes()


def report(fitted: Fitted) -> str:
    """One page of HTML: the machine, its certificate, the kernel with its proof, and the picture."""
    model = fitted.model
    page = Page(f"{fitted.choice.machine} on {len(fitted.points)} points")
    page.paragraph(f"Kernel: {fitted.choice.kernel}.")
    page.heading("Certificate")
    page.code(str(model.certificate_))
    page.heading("Kernel")
    page.code(str(fitted.choice.kernel.validity(columns=fitted.points.width or None, seconds=2.0)))
    for said in fitted.said:
        page.paragraph(said, strong="Warning:")
    _picture(page, fitted)
    page.heading("The same in Python")
    page.code(python(fitted))
    return page.html()


def _picture(page: Page, fitted: Fitted) -> None:
    points = fitted.points
    if points.kind != VECTORS or points.width > 2:
        return
    try:
        from mercer import plot

        labels = None if fitted.choice.offer.unlabelled else points.targets()
        if points.task == CLASSES and points.width == 2:
            page.figure(svg(plot.decision(fitted.model, points.X, labels, resolution=150)), "The plane")
        elif points.width == 1 and points.task == NUMBERS:
            page.figure(svg(plot.regression(fitted.model, points.X, points.y)), "The curve")
    except ModuleNotFoundError:
        page.paragraph("The picture needs matplotlib: pip install 'mercer[plot]'.")
