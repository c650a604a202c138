"""Pages of reports: text stays text, nothing is fetched, no phone has to scroll sideways."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import ParameterError
from mercer.plot.style import new_figure
from mercer.report.page import STYLE, Page, svg

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
VOID = {"meta", "link", "br", "img", "hr"}


class Reader(HTMLParser):
    """The text of a page, and whether every element is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page.html())
    reader.close()
    assert reader.open == []
    return reader


def full_page(word="word"):
    page = Page(f"title {word}")
    page.heading(f"heading {word}")
    page.paragraph(f"paragraph {word}", strong=f"strong {word}")
    page.tiles([(f"tile {word}", f"meaning {word}")])
    page.table([f"name {word}", "b"], [[f"cell {word}", "1"], ["x", "2"]], title=f"caption {word}")
    page.code(f"code {word}")
    page.points([f"point {word}", "another"])
    page.figure("<svg></svg>", f"figure {word}")
    page.footer(f"footer {word}")
    return page


PLACES = ("title", "heading", "paragraph", "strong", "tile", "meaning", "name", "cell", "caption", "code")
PLACES += ("figure", "footer", "point")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=["Cs"]))


@settings(deadline=None)
@given(
    TEXT | st.sampled_from(["</style><script>alert(1)</script>", "'><img src=x onerror=y>", "&amp;", "{x}"])
)
def test_whatever_a_text_contains_it_is_shown_and_nothing_else(word):
    found = read(full_page(word))
    text = "".join(found.text)
    for place in PLACES:
        assert f"{place} {word}" in text
    assert not found.tags & {"script", "img", "link", "iframe"}


def test_nothing_is_fetched():
    text = full_page().html()
    assert not re.search(r"<script|<link|<img|@import|src=|url\(|https?:", text)


@pytest.mark.parametrize(
    "picture",
    [
        "<p>no picture</p>",
        "<svg><script>x</script></svg>",
        "<svg onload=x></svg>",
        "<svg><image/></svg>",
        "<svg><image href='https://example.org/x.png'/></svg>",
        "<svg><image href='data:image/svg+xml;base64,AAAA'/></svg>",
        "<svg><a href='javascript:x'>y</a></svg>",
        "<svg><use xlink:href='other.svg#x'/></svg>",
        "<svg><g clip-path='url(https://example.org)'/></svg>",
        "<svg><style>@import 'x.css';</style></svg>",
        "<svg><foreignObject/></svg>",
    ],
)
def test_a_picture_that_could_run_something_is_refused(picture):
    with pytest.raises(ParameterError, match="svg"):
        Page("t").figure(picture, "")


def test_what_is_only_shown_in_a_picture_is_not_refused():
    page = Page("t")
    shown = "<text>onset=3, javascript:x and url(x)</text>"
    own = "<image xlink:href='data:image/png;base64,AAAA'/>"
    picture = f"<svg><g clip-path='url(#a)'>{shown}{own}<use xlink:href='#b'/></g></svg>"
    page.figures([(picture, "first"), (picture, "second")])
    assert page.html().count(picture) == 2


def test_a_figure_is_drawn_to_the_same_bytes():
    def drawn():
        figure = new_figure(3.0, 2.0)
        figure.subplots().plot([0, 1], [1, 0])
        return svg(figure)

    assert drawn() == drawn()
    assert drawn().startswith("<svg") and "<script" not in drawn()


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium")
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_it_without_scrolling_sideways(tmp_path, width):
    page = full_page("a-word-that-is-so-long-that-it-does-not-fit-into-one-line-of-any-phone" * 2)
    figure = new_figure(10.0, 4.0)
    figure.subplots().plot([0, 1], [1, 0])
    page.figure(svg(figure), "a wide picture")
    page.table([f"column {j}" for j in range(20)], [[str(10**j) for j in range(20)]])
    told = "'width ' + document.documentElement.scrollWidth"
    found = re.search(r"width (\d+)", told_by_browser(tmp_path, page, width, told))
    assert found is not None
    assert int(found[1]) <= width


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium")
def test_tables_of_reports_are_whole_on_a_phone(tmp_path):
    """The last columns of those about columns and kernels were cut, and had to be scrolled to."""
    page = Page("tables")
    name = "In your own words, what would you call the part of the country you live in now?"
    long = ["home_destination_of_the_passenger_as_told", "category", "numbers from 0.1667 to 512.329"]
    page.table(
        ["column", "taken for", "because", "missing", "different"],
        [
            [name, "text", "1307 different texts", "1014", "1307"],
            [*long, "0", "98"],
            ["employee_position_title", *long[1:], "0", "98"],
        ],
        left=(0, 1, 2),
    )
    words = "once differentiable functions, numbers standardised, with a linear term, all columns together"
    page.table(
        ["round", "kernel", "log evidence", "rows", "search"],
        [["1", words, "-86443.12", "2000", "converged"]],
        left=(1, 4),
    )
    page.table(["measure", "this model", "nothing learned"], [[words, "12345678", "0.6183"]])
    classes = ["Adelie Penguin (Pygoscelis adeliae)", "Chinstrap penguin (Pygoscelis antarctica)"]
    page.table(["true", *classes, "rows", "found"], [[each, "30", "1", "31", "96.8%"] for each in classes])
    told = (
        "'tables ' + [...document.querySelectorAll('.wide')]"
        ".map(each => each.scrollWidth - each.clientWidth).join(' ')"
    )
    found = re.search(r"tables ([-\d ]+)", told_by_browser(tmp_path, page, 390, told))
    assert found is not None
    over = [int(each) for each in found[1].split()]
    assert len(over) == 4 and max(over) <= 0


def test_a_page_has_rules_for_print():
    """Headings stood alone at the end of a page, tables left half of one empty, wide ones were cut."""
    print_rules = STYLE[STYLE.index("@media print") :]
    for rule in (
        "h1, h2, .caption, p:has(+ pre) { break-after: avoid; }",
        "figure, .tiles, tr { break-inside: avoid; }",
        "thead { display: table-header-group; }",
        "th, td { white-space: normal; }",
        ".many th, .many td { overflow-wrap: anywhere; min-width: 0; padding-right: .3rem; }",
        "color-scheme: light;",
    ):
        assert rule in print_rules
    assert "table { break-inside" not in print_rules


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium")
def test_wide_tables_are_not_cut_in_print(tmp_path):
    """Twenty columns of numbers ran over the edge of the paper."""
    page = Page("wide")
    page.table([f"column {j}" for j in range(20)], [[str(10**j) for j in range(20)]])
    # as wide as the paper is between its margins, with the rules for print
    text = page.html().replace("@media print", "@media all")
    told = "'width ' + document.documentElement.scrollWidth"
    found = re.search(r"width (\d+)", told_by_browser(tmp_path, text, 688, told))
    assert found is not None
    assert int(found[1]) <= 688


def told_by_browser(tmp_path, page, width, told):
    """What an expression of JavaScript says of a page in a frame of this width."""
    text = page if isinstance(page, str) else page.html()
    script = f"<script>console.log({told})</script></body>"
    (tmp_path / "page.html").write_text(text.replace("</body>", script), encoding="utf-8")
    frame = f"<iframe src=page.html style='width:{width}px;height:800px;border:0'></iframe>"
    (tmp_path / "frame.html").write_text(f"<body style='margin:0'>{frame}</body>")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900", "--dump-dom"]
    done = subprocess.run(
        [*command, (tmp_path / "frame.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    return done.stderr
