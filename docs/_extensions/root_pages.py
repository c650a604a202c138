"""Pages of the site that are files at the top of the project; their links lead to pages of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGES = {"internals": "ARCHITECTURE.md", "contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if page not in PAGES:
        return
    file = Path(app.srcdir).parent / PAGES[page]
    app.env.note_dependency(str(file))
    text = file.read_text(encoding="utf-8").replace("](docs/", "](")
    for name, root in PAGES.items():
        text = text.replace(f"]({root}", f"]({name}.md")
    source[0] = text
