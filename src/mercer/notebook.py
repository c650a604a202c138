"""How answers look in a notebook: small pieces of HTML. Every word is escaped; there is no script.

>>> paragraph("1 < 2")
'<p>1 &lt; 2</p>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def as_printed(text: str) -> str:
    """Text whose lines and columns stay as they are."""
    return f"<pre>{escape(text)}</pre>"


def items(texts: Iterable[str]) -> str:
    """A list; nothing where there is nothing to list."""
    lines = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{lines}</ul>" if lines else ""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def folded(summary: str, inside: str, *, unfolded: bool = False) -> str:
    """HTML that opens at a click on its summary, which is HTML too."""
    start = "<details open>" if unfolded else "<details>"
    return f"{start}<summary>{summary}</summary>{inside}</details>"
