"""Docstrings for numpydoc: they are written to be read in a terminal, and become reStructuredText here.

A formula that is indented stays as it is, `name` is code, no character is markup, and examples at the end get the
heading that numpydoc wants.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

RULE = re.compile(r"^-{3,}$")
# Parts of a line that are code, and the characters that would be markup elsewhere.
CODE = re.compile(r"(`+)(.+?)\1")
MARKUP = re.compile(r"([\\*|]|(?<=\w)_(?!\w))")


def setup(app: Sphinx) -> dict[str, Any]:
    # Before numpydoc, which listens with 500.
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}


def _process(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = rewritten(lines)


def rewritten(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText with numpydoc's headings."""
    out: list[str] = []
    section = ""
    for block in _blocks(lines):
        first = block[0]
        if first.startswith(">>>"):
            if section != "Examples":
                out += ["Examples", "--------"]
                section = "Examples"
            out += [*block, ""]
        elif len(block) > 1 and RULE.match(block[1]):
            section = first
            out += [first, block[1], *_entries(block[2:]), ""]
        elif section in ("", "Examples", "Notes"):
            out += [*_prose(block), ""]
        else:
            out += [*_entries(block), ""]
    return out


def _blocks(lines: list[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line.rstrip())
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _prose(block: list[str]) -> list[str]:
    """A paragraph; or, where it is indented, a formula that stays as it is."""
    if all(line.startswith("    ") for line in block):
        return ["::", "", *block]
    return [_escaped(line.strip()) for line in block]


def _entries(block: list[str]) -> list[str]:
    """`name : type` and its indented description; the name itself is not markup."""
    return [line if not line.startswith(" ") else _escaped(line) for line in block]


def _escaped(line: str) -> str:
    parts: list[str] = []
    start = 0
    for code in CODE.finditer(line):
        parts.append(MARKUP.sub(r"\\\1", line[start : code.start()]))
        parts.append(f"``{code[2]}``")
        start = code.end()
    parts.append(MARKUP.sub(r"\\\1", line[start:]))
    return "".join(parts)
