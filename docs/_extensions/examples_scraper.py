"""The picture of an example is what `python examples/NAME.py -o FILE` writes; sphinx-gallery asks here."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def arguments(_conf: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """The command line that an example sees; and its `__file__`, which sphinx-gallery leaves out."""
    script["example_globals"]["__file__"] = script["src_file"]
    return ["-o", str(_place(script))]


def scrape(_block: Any, script: dict[str, Any], conf: dict[str, Any]) -> str:
    """Move the picture that a block has written to where the gallery wants it."""
    place = _place(script)
    if not place.exists():
        return ""
    target = next(script["image_path_iterator"])
    shutil.move(place, target)
    return str(figure_rst([target], conf["src_dir"]))


def _place(script: dict[str, Any]) -> Path:
    return Path(gettempdir()) / f"mercer-example-{Path(script['src_file']).stem}.png"
