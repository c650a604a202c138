"""Docstrings for numpydoc: they are written to be read in a terminal, and become reStructuredText here.

A formula that is indented stays as it is, `name` is code, no character is markup, and examples at the end get
the heading that numpydoc wants.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx.application import Sphinx

RULE = re.compile(r"^-{3,}$")
ENVIRONMENTS: dict[type, SandboxedEnvironment] = {}
# Parts of a line that are code, and the characters that would be markup elsewhere.
CODE = re.compile(r"(`+)(.+?)\1")
MARKUP = re.compile(r"([\\*|]|(?<=\w)_(?!\w))")


def setup(app: Sphinx) -> dict[str, Any]:
    # Before numpydoc, which listens with 500.
    app.connect("autodoc-process-docstring", _process, priority=100)
    # numpydoc compiles its one template anew for each docstring, a fifth of all the time that the site takes.
    docscrape_sphinx.SandboxedEnvironment = _environment
    return {"parallel_read_safe": True}


def _environment(loader: Any) -> SandboxedEnvironment:
    """The environment of numpydoc's template, made once: all its loaders read the same folders."""
    if type(loader) not in ENVIRONMENTS:
        ENVIRONMENTS[type(loader)] = SandboxedEnvironment(loader=loader)
    return ENVIRONMENTS[type(loader)]


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
    if any(line.lstrip().startswith("- ") for line in block):
        return _bullets(block)
    if any(line.startswith("  ") for line in block):
        # Columns that are set by hand.
        return ["::", "", *(f"    {line}" for line in block)]
    return [_escaped(line.strip()) for line in block]


def _bullets(block: list[str]) -> list[str]:
    """A list, with what stands before it as a paragraph of its own; lines of a point are joined."""
    out: list[str] = []
    for line in block:
        text = line.strip()
        if text.startswith("- "):
            if out and not out[-1].startswith("- "):
                out.append("")
            out.append("- " + _escaped(text[2:]))
        elif out and out[-1].startswith("- "):
            out[-1] += " " + _escaped(text)
        else:
            out.append(_escaped(text))
    return out


def _entries(block: list[str]) -> list[str]:
    """`name : type` and its indented description; numpydoc itself escapes the last letter of a name."""
    out: list[str] = []
    # A description with lines that are indented further is a list set by hand: a point for each at its edge.
    points = any(line.startswith("     ") for line in block)
    for line in block:
        name, colon, kind = line.partition(" : ")
        if line.startswith("     "):
            out[-1] += " " + _escaped(line.strip())
        elif line.startswith(" ") and points:
            out.append(f"    - {_escaped(line.strip())}")
        elif line.startswith(" "):
            out.append(_escaped(line))
        elif colon:
            out.append(f"{_name(name)} : {_escaped(kind)}")
        else:
            out.append(_name(line))
    return out


def _name(text: str) -> str:
    return _escaped(text[:-1] + "x")[:-1] + text[-1] if text.endswith("_") else _escaped(text)


def _escaped(line: str) -> str:
    parts: list[str] = []
    start = 0
    for code in CODE.finditer(line):
        parts.append(MARKUP.sub(r"\\\1", line[start : code.start()]))
        parts.append(f"``{code[2]}``")
        start = code.end()
    parts.append(MARKUP.sub(r"\\\1", line[start:]))
    return "".join(parts)
