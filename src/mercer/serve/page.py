"""The page at /: what is served, its columns, and how to ask."""

from __future__ import annotations

import json
import shlex
from html import escape

from mercer.serve.served import Served

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; }
pre { overflow-x: auto; padding: .8rem; background: #8882; } :root { color-scheme: light dark; }
div { overflow-x: auto; }
"""


def page(served: Served) -> str:
    """One HTML page without scripts; every name in it is escaped."""
    about = served.described()
    target = about["target"]
    title = served.name if target is None else f"{served.name} of {target}"
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        _columns(served),
        "<h2>To ask</h2>",
        f"<pre>{escape(_command(served))}</pre>",
        '<p><a href="model">What the model is</a> · <a href="docs">try it</a> · ',
        '<a href="openapi.json">OpenAPI</a> · <a href="health">health</a></p></html>',
    ]
    return "\n".join(parts)


def _columns(served: Served) -> str:
    if served.columns is None:
        return f"<p>Rows are lists of {served.width} numbers.</p>"
    lines = ["<div><table><tr><th>column</th><th>is</th><th>needed</th></tr>"]
    for column in served.columns:
        needed = column.needed if column.used else "not read"
        cells = (column.name, column.role, needed)
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table></div>"])


def _command(served: Served) -> str:
    """A request that can be copied."""
    row: object = served.sample
    if served.columns is not None:
        row = {column.name: column.example for column in served.columns if column.used}
    body = json.dumps({"rows": [row]}, ensure_ascii=False)
    return f"curl -H 'Content-Type: application/json' -d {shlex.quote(body)} http://localhost:8000/predict"
