"""A page of a report: headings, tiles, figures, tables and code, put together as one HTML file.

Every piece of text is escaped here, whatever it contains; only figures are taken as they are, and they must
be <svg> elements that hold no script and point nowhere but into the page. The page needs no script and
fetches nothing. On a narrow screen tables and pictures scroll inside their own frame, so that the page itself
never does; it follows the reader's choice of light or dark. In print it is black on white: tables become as
narrow as the paper, and no picture, row of a table or heading is parted from what it belongs to.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from mercer.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What a picture may be made of, since it is not escaped; an image in it must be its own data.
_ELEMENTS = {
    "svg",
    "g",
    "defs",
    "path",
    "use",
    "text",
    "tspan",
    "rect",
    "circle",
    "line",
    "polyline",
    "polygon",
    "clippath",
    "style",
    "title",
    "desc",
    "image",
    "lineargradient",
    "radialgradient",
    "stop",
    "pattern",
    "mask",
    "marker",
}
_POINTERS = ("href", "xlink:href", "src")
_OWN_DATA = "data:image/png;base64,"
# Dots per inch of what is not drawn as lines: many points, matrices.
PICTURE_DPI = 160
# Cells with more characters than these are wrapped, and words with more may be parted on narrow paper.
LONG = 40
LONG_WORD = 12
# Tables with more columns are made as narrow as the paper in print, whatever is parted.
MANY = 8


class Page:
    """A report that grows from top to bottom; `html()` is the file.

    >>> page = Page("Rents & sizes")
    >>> page.paragraph("Columns: <size>.")
    >>> "Rents &amp; sizes" in page.html(), "&lt;size&gt;" in page.html()
    (True, True)
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._pieces: list[str] = [f"<h1>{escape(title)}</h1>"]
        self._footer = ""

    def heading(self, text: str) -> None:
        """A heading, which is also a place to link to."""
        self._pieces.append(f"<h2 id='{_anchor(text)}'>{escape(text)}</h2>")

    def paragraph(self, text: str, *, strong: str = "") -> None:
        """A paragraph; `strong` stands before it in bold."""
        first = f"<b>{escape(strong)}</b> " if strong else ""
        self._pieces.append(f"<p>{first}{escape(text)}</p>")

    def tiles(self, figures: Iterable[tuple[str, str]]) -> None:
        """The few numbers that matter most, each with what it means."""
        tiles = (f"<div class=tile><b>{escape(v)}</b><span>{escape(w)}</span></div>" for v, w in figures)
        self._pieces.append(f"<div class=tiles>{''.join(tiles)}</div>")

    def figure(self, picture: str, caption: str, *, fits: bool = False) -> None:
        """A picture, an <svg> element, with a caption; on a phone one that `fits` is as wide as the page, and
        any other can be moved sideways."""
        shown = _figure(picture, caption)
        self._pieces.append(f"<div class=fits>{shown}</div>" if fits else shown)

    def figures(self, pictures: Iterable[tuple[str, str]]) -> None:
        """Small pictures with their captions: side by side where there is room, else one below the other."""
        shown = "".join(_figure(picture, caption) for picture, caption in pictures)
        self._pieces.append(f"<div class=grid>{shown}</div>")

    def points(self, texts: Iterable[str]) -> None:
        """A list."""
        self._pieces.append(f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>")

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        left: Sequence[int] = (0,),
        title: str = "",
    ) -> None:
        """A table; the columns in `left` begin at the left, all others end at the right."""

        def cells(values: Sequence[str], tag: str) -> str:
            shown = (f"<{tag}{_looks(v, j in left)}>{escape(v)}</{tag}>" for j, v in enumerate(values))
            return f"<tr>{''.join(shown)}</tr>"

        body = "".join(cells(row, "td") for row in rows)
        # not a <caption>, which would be as narrow as the table
        above = f"<p class=caption>{escape(title)}</p>" if title else ""
        many = " class=many" if len(head) > MANY else ""
        self._pieces.append(
            f"{above}<div class=wide tabindex=0 role=region aria-label='table'>"
            f"<table{many}><thead>{cells(head, 'th')}</thead><tbody>{body}</tbody></table></div>"
        )

    def code(self, text: str) -> None:
        """Text as it is, with its lines."""
        self._pieces.append(f"<pre>{escape(text)}</pre>")

    def folded(self, title: str, text: str) -> None:
        """Text as it is, of which only a title is seen until it is opened."""
        self._pieces.append(f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>")

    def footer(self, text: str) -> None:
        """What stands at the end, in small print."""
        self._footer = f"<footer>{escape(text)}</footer>"

    def html(self) -> str:
        """The whole file."""
        return (
            "<!doctype html>\n"
            '<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style></head><body><main>\n"
            + "\n".join(self._pieces)
            + f"\n{self._footer}\n</main></body></html>\n"
        )


def _figure(picture: str, caption: str) -> str:
    """A picture in its frame; one that could run or fetch something is refused."""
    if not picture.lstrip().startswith("<svg") or not _is_harmless(picture):
        raise ParameterError("a figure of a page must be an <svg> element that holds no script.")
    return (
        f"<figure><div class=wide tabindex=0 role=region aria-label='picture'>{picture}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


class _Elements(HTMLParser):
    """Whether the elements and attributes of a picture can neither run nor fetch anything."""

    def __init__(self) -> None:
        super().__init__()
        self.harmless = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _ELEMENTS:
            self.harmless = False
        pointers = [value or "" for name, value in attrs if name in _POINTERS]
        if tag == "image" and not (pointers and all(value.startswith(_OWN_DATA) for value in pointers)):
            self.harmless = False
        if tag != "image" and not all(value.startswith("#") for value in pointers):
            self.harmless = False
        if any(name.startswith("on") for name, _ in attrs):
            self.harmless = False
        if any(_fetches(value or "") for _, value in attrs):
            self.harmless = False

    def handle_data(self, data: str) -> None:
        # inside of <style> it would be a command, elsewhere it is only shown
        if self.cdata_elem is not None and (_fetches(data) or "@import" in data):
            self.harmless = False


def _fetches(style: str) -> bool:
    """Whether a style points out of the page; a clip path of the picture itself is url(#name)."""
    return re.search(r"url\((?!#)", style) is not None


def _is_harmless(picture: str) -> bool:
    reader = _Elements()
    reader.feed(picture)
    reader.close()
    return reader.harmless


def _looks(text: str, left: bool) -> str:
    """The class of a cell: where it begins, whether it is wrapped, and whether a word may be parted."""
    longest = max(map(len, text.split()), default=0)
    names = ["l"] * left + ["long"] * (len(text) > LONG) + ["word"] * (longest > LONG_WORD)
    if not names:
        return ""
    return f" class='{' '.join(names)}'"


def _anchor(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def svg(figure: Figure) -> str:
    """A figure of matplotlib as an <svg> element to put inside a page; the same bytes every time."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context(
        {"svg.hashsalt": "mercer", "svg.fonttype": "none", "font.family": "sans-serif"}
    ):
        figure.savefig(out, format="svg", dpi=PICTURE_DPI, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    # who made it by which standard is of no use inside of a page
    return re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)


STYLE = """
:root { color-scheme: light dark;
  --text: #1b1b1b; --back: #fff; --soft: #f2f6fa; --quiet: #555; --line: #e3e3e3; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --back: #16181b; --soft: #22272d; --quiet: #a8b0b8; --line: #383d43; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--text);
  background: var(--back); margin: 0; }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.2rem 0; }
.tile { flex: 1 1 9rem; background: var(--soft); border-radius: .5rem; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.45rem; }
.tile span { color: var(--quiet); font-size: .85rem; }
.wide { overflow-x: auto; max-width: 100%; }
figure { margin: 1rem 0; }
figure .wide { background: #fff; border-radius: .4rem; }
figure svg { display: block; width: 100%; height: auto; min-width: 36rem; }
.fits figure svg { min-width: 0; max-width: 50rem; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); }
.grid figure { margin: .4rem 0; min-width: 0; }
.grid figure svg { min-width: 0; }
ul { padding-left: 1.2rem; }
figcaption { color: var(--quiet); font-size: .9rem; margin-top: .3rem; }
table { border-collapse: collapse; overflow-wrap: normal; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
.caption { color: var(--quiet); font-size: .9rem; margin: 1rem 0 .2rem; }
th, td { padding: .16rem .8rem .16rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; }
td { unicode-bidi: plaintext; }
.l { text-align: left; }
.long { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; max-width: 34rem; }
pre { background: var(--soft); padding: .7rem .9rem; border-radius: .4rem; white-space: pre-wrap;
  font-size: .82rem; }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .85rem; }
@media (max-width: 30rem) {
  main { padding: 0 1rem; }
  table { font-size: .8rem; }
  th { white-space: normal; vertical-align: bottom; font-size: .72rem; }
  th, td { padding-right: .3rem; }
  td.l, .word { white-space: normal; }
  .word { overflow-wrap: anywhere; min-width: 4.5rem; }
  td.long { min-width: 6.5rem; }
  th.long { min-width: 4.5rem; }
}
@page { margin: 16mm 14mm; }
@media print {
  :root { color-scheme: light;
    --text: #000; --back: #fff; --soft: #f4f4f4; --quiet: #333; --line: #bbb; }
  :root, body { font-size: 10pt; }
  main { max-width: none; margin: 0; padding: 0; }
  h1, h2, .caption, p:has(+ pre) { break-after: avoid; }
  figure, .tiles, tr { break-inside: avoid; }
  thead { display: table-header-group; }
  p, li { orphans: 3; widows: 3; }
  figure svg { min-width: 0; }
  .fits figure svg { max-width: 100%; }
  .wide { overflow: visible; }
  th, td { white-space: normal; }
  .long, .word { overflow-wrap: anywhere; min-width: 6rem; }
  .many { font-size: 7pt; }
  .many th, .many td { overflow-wrap: anywhere; min-width: 0; padding-right: .3rem; }
  details:not([open]) { display: none; }
}
"""
