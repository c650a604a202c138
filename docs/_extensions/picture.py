"""A block of code with its picture: `{picture}` in a page of Markdown.

    ```{picture} The boundary, and the rows that carry it
    >>> figure = mercer.plot.decision(model, X, y)
    ```

The examples of the page run from its top, in one namespace, as the tests run them. The Figure that is called
`figure` after the block is drawn below it; what stands after the name of the directive is its caption.
`:hide-code:` shows the picture alone, `:width: 60%` makes it smaller.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.animation import Animation, PillowWriter
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{picture\}[^\n]*\n(?P<body>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("pictures_run", True, "env", types=(bool,))
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}


class Picture(SphinxDirective):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"hide-code": directives.flag, "width": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        caption = (self.arguments or [""])[0]
        shown: list[nodes.Node] = []
        if "hide-code" not in self.options:
            block = nodes.literal_block(code, code)
            block["language"] = "pycon"
            shown.append(block)
        if self.config.pictures_run:
            shown.append(self._figure(_pictures(self.env, self.env.docname)[_key(code)], caption))
        return shown

    def _figure(self, place: Path, caption: str) -> nodes.figure:
        # An image's address is relative to the page.
        up = "../" * self.env.docname.count("/")
        name = place.relative_to(self.env.srcdir)
        image = nodes.image(uri=f"{up}{name}", alt=caption)
        if "width" in self.options:
            image["width"] = self.options["width"]
        figure = nodes.figure("", image, classes=["picture"])
        self.set_source_info(figure)
        if caption:
            parsed, _ = self.state.inline_text(caption, self.lineno)
            figure += nodes.caption("", "", *parsed)
        return figure


def _key(code: str) -> str:
    return "".join(code.split())


def _pictures(env: Any, page: str) -> dict[str, Path]:
    """The picture of every block of a page; the page's examples are run once."""
    drawn: dict[str, dict[str, Path]] = env.temp_data.setdefault("pictures", {})
    if page not in drawn:
        source = Path(env.doc2path(page))
        drawn[page] = draw(source, Path(env.srcdir) / "_pictures" / page.replace("/", "-"))
    return drawn[page]


def draw(source: Path, folder: Path) -> dict[str, Path]:
    """Run the examples of a page and save each picture to the folder, by the code of its block."""
    text = source.read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [(text[: m.end()].count("\n"), m["body"]) for m in FENCE.finditer(text)]
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn: dict[str, Path] = {}
    start = 0
    for number, (last, body) in enumerate(blocks):
        lines = text.splitlines()[start:last]
        _run("\n".join(lines) + "\n", names, f"{source.name}, above line {last + 1}")
        start = last
        if "figure" not in names:
            raise ExtensionError(f"{source.name}, line {last + 1}: this block leaves nothing called figure.")
        code = "\n".join(line for line in body.splitlines() if not line.startswith(":"))
        drawn[_key(code)] = _saved(names["figure"], folder / str(number + 1))
    return drawn


def _saved(figure: Any, place: Path) -> Path:
    """A Figure as PNG, an Animation as GIF."""
    if isinstance(figure, Animation):
        figure.save(place.with_suffix(".gif"), writer=PillowWriter(fps=2), dpi=100)
        return place.with_suffix(".gif")
    figure.savefig(place.with_suffix(".png"), dpi=130)
    return place.with_suffix(".png")


def _run(text: str, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, where, where, 0)
    said: list[str] = []
    # clear_globs=False: the names of a block are those of the next one.
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False).failed
    names.update(test.globs)
    if failed:
        raise ExtensionError("".join(said))
