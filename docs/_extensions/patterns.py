"""A tree of pages may name a page by a pattern, `performance*`: it is in the tree if it is there.

Sphinx warns of a pattern that matches nothing, and a warning is an error here; so such a line is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PATTERN = re.compile(r"^[\w/-]*\*\n", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    folder = (Path(app.srcdir) / page).parent
    source[0] = PATTERN.sub(
        lambda line: line[0] if any(folder.glob(f"{line[0].strip()}.md")) else "", source[0]
    )
