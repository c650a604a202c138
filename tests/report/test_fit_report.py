"""The report of a fit: whatever columns are called it is one sound page, and every number on it is right."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import clock
from mercer.cli.report import Request, run_report
from mercer.errors import OutputError
from mercer.plot.style import PlotError
from mercer.recipe import tournament
from mercer.report.fit import command, python_call, report_of
from mercer.report.fit_pictures import label

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
R = np.random.default_rng(3)
N = 60
# Names that break pages, pictures, formulas, lines or the direction of text.
NASTY = (
    "<script>alert(1)</script>",
    "onload=\"x\" & 'y' javascript:z",
    "cost in $ and $$ \\frac{",
    "عمود \u202e abc",
    "😀 " + "a name without an end " * 14,
)
LABELS = ("</td><img src=x onerror=y>", "$1_{", "onset=3")
TABLE = pd.DataFrame({name: R.normal(size=N) for name in NASTY[:4]})
TABLE[NASTY[4]] = R.choice(["oak", "ash", None], N)
HEIGHT = TABLE[NASTY[0]] + (TABLE[NASTY[4]] == "oak") + 0.1 * R.normal(size=N)
KIND = np.where(HEIGHT > 0.5, LABELS[0], np.where(HEIGHT < -0.5, LABELS[1], LABELS[2]))


@pytest.fixture(autouse=True)
def one_short_round(monkeypatch):
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(40, 2, 1, 0.3),))


def fitted(table, target, **options):
    return mercer.fit(table, target, verbose=0, **options)


class Reader(HTMLParser):
    """The text of a page outside of pictures and style, its elements, and its tables as rows of cells."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags, self.rows = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        assert not any(name.startswith("on") for name, _ in attrs)
        for name, value in attrs:
            if name in ("href", "xlink:href", "src"):
                assert value.startswith(("#", "data:image/png;base64,"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("target", [HEIGHT, KIND], ids=["numbers", "classes"])
def test_names_of_columns_and_classes_are_text_and_nothing_else(target):
    table = TABLE.assign(**{"the <b>target</b>": target})
    text = report_of(fitted(table, "the <b>target</b>", leave_out=[NASTY[1]]))
    page = read(text)
    words = "".join(page.text)
    for name in NASTY:
        assert name[:20] in words
    assert "the <b>target</b>" in words
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    # the names of XML's languages look like addresses, and are none
    assert not re.search(r"https?:", re.sub(r"xmlns(:\w+)?=\"[^\"]*\"", "", text))
    assert len(text) < 2_000_000
    if target is KIND:
        assert all(name in words for name in LABELS)


def cells_of(page, first):
    """The row of a table that begins with this cell."""
    return next(row for row in page.rows if row and row[0] == first)


def test_the_page_of_numbers_has_the_numbers_of_the_model():
    model = fitted(TABLE, HEIGHT)
    estimate = model.estimate_
    page = read(report_of(model))
    words = "".join(page.text)
    assert estimate.how in words
    rmse = f"{np.sqrt(np.mean((HEIGHT - estimate.predicted) ** 2)):.4g}"
    assert cells_of(page, "root mean square error")[1:] == [rmse, f"{np.std(HEIGHT):.4g}"]
    # 1.645 deviations either way hold 90 % of a normal distribution
    low = estimate.predicted - 1.6448536 * estimate.spread
    high = estimate.predicted + 1.6448536 * estimate.spread
    share = np.mean((low <= HEIGHT) & (high >= HEIGHT))
    assert cells_of(page, "90%") == ["90%", f"{share:.1%}"]
    worst = int(np.argmax(np.abs(HEIGHT - estimate.predicted) / estimate.spread))
    head = page.rows.index(["row", "true", "predicted, 95%", "error in deviations"])
    assert page.rows[head + 1][0] == str(worst + 1)
    for role in model.roles_:
        expected = [role.column, role.kind, role.why, str(role.gaps), str(role.distinct)]
        assert expected in page.rows
    for place in model.rounds_:
        assert [str(place.round), place.words, f"{place.evidence:.2f}", "40", place.status] in page.rows
    assert all(step in words for step in model.steps_)
    assert "It is a kernel, proved." in words and str(model.certificate_) in words


def test_the_page_of_classes_counts_confusions():
    model = fitted(TABLE, KIND)
    page = read(report_of(model))
    estimate = model.estimate_
    for true in LABELS:
        counts = [str(np.sum((true == KIND) & (estimate.predicted == said))) for said in model.classes_]
        rows = np.sum(true == KIND)
        found = f"{np.mean(estimate.predicted[true == KIND] == true):.1%}"
        assert [true, *counts, str(rows), found] in page.rows
    share = np.mean(estimate.predicted == KIND)
    assert cells_of(page, "share of rows whose class is right")[1] == f"{share:.4g}"


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("classes", [False, True])
def test_one_or_two_columns_of_numbers_are_drawn(columns, classes):
    X = R.normal(size=(50, columns))
    target = (
        np.where(X[:, 0] + R.normal(size=50) > 0, "yes", "no")
        if classes
        else X[:, 0] + 0.1 * R.normal(size=50)
    )
    words = "".join(read(report_of(fitted(X, target))).text)
    drawn = "The most probable class" if classes else "The fit"
    assert (drawn in words) == (columns == 2 or not classes)
    assert ("ROC" in words) == classes


def test_landmarks_need_a_table_for_the_error_without_a_column():
    table = TABLE.iloc[:, :2].assign(height=HEIGHT)
    model = fitted(table, "height", machine="landmarks", memory="4KiB")
    assert isinstance(model.machine_, mercer.FalkonRegressor)
    alone = "".join(read(report_of(model)).text)
    assert "landmarks, which is what the machine keeps" in alone and "--table FILE" in alone
    assert "Other levels are a test" in alone
    with_rows = "".join(read(report_of(model, table=table)).text)
    assert "60 rows of the table given" in with_rows and "--table FILE" not in with_rows


def test_wide_rows_without_names_have_a_report():
    X = R.normal(size=(70, 70))
    words = "".join(read(report_of(fitted(X, X[:, 0] > 0))).text)
    assert "The 70 columns are numbers that are compared as a whole." in words
    assert "Which columns matter" not in words


def test_the_call_and_the_command_say_everything_that_was_asked_for():
    table = TABLE.assign(**{"it's": HEIGHT})
    kernel = "1.0*RBF(1.0)"
    asked = {"leave_out": [NASTY[1], NASTY[2]], "max_seconds": 60.0, "random_state": 4}
    model = fitted(table, "it's", machine="gp", **asked)
    call = ast.parse(python_call(model)).body[1].value
    assert ast.literal_eval(call.args[1]) == "it's"
    options = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    assert options == {"task": "numbers", "machine": "gp", **asked}
    again = mercer.fit(table, "it's", verbose=0, **options)
    assert str(again.kernel_) == str(model.kernel_)
    parts = shlex.split(command(model))
    assert parts[:5] == ["mercer", "fit", "table.csv", "--target", "it's"]
    assert parts[5:] == [
        *("--task", "numbers", "--machine", "gp", "--leave-out", NASTY[1], "--leave-out", NASTY[2]),
        *("--time", "60s", "--seed", "4", "-o", "model.mercer"),
    ]
    simple = fitted(TABLE.iloc[:, :1].rename(columns={NASTY[0]: "x"}), HEIGHT, kernel=f'{kernel}.on("x")')
    assert "RBF(1.0)" in python_call(simple) and "--kernel" in command(simple)


def test_it_is_written_whole_and_never_over_another_file(tmp_path, monkeypatch):
    model = fitted(TABLE.iloc[:, :1], HEIGHT)
    place = tmp_path / "report.html"
    assert model.report(place) == place
    assert place.read_text(encoding="utf-8").startswith("<!doctype html>")
    place.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        model.report(place)
    assert place.read_text() == "mine"
    model.report(place, force=True)
    assert place.read_text(encoding="utf-8") != "mine"
    with pytest.raises(OutputError, match="directory"):
        model.report(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PlotError, match=re.escape("pip install 'mercer[plot]'")):
        model.report(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


def test_the_command_writes_the_report_of_a_model_file(tmp_path, capsys):
    table = TABLE.iloc[:, :1].assign(height=HEIGHT)
    model = fitted(table, "height")
    model.save(tmp_path / "m.mercer")
    table.to_csv(tmp_path / "t.csv", index=False)
    page = tmp_path / "r.html"
    assert run_report(Request(tmp_path / "m.mercer", page, str(tmp_path / "t.csv"), False, False)) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert "60 rows of the table given" in "".join(read(page.read_text(encoding="utf-8")).text)
    assert run_report(Request(tmp_path / "m.mercer", page, None, False, False)) == 1
    assert "--force" in capsys.readouterr().err
    mercer.KernelRidge("RBF(1.0)").fit([[0.0], [1.0]], [0.0, 1.0]).predict([[0.0]])
    ridge = mercer.KernelRidge("RBF(1.0)").fit([[0.0], [1.0]], [0.0, 1.0])
    mercer.save(ridge, tmp_path / "ridge.mercer")
    assert run_report(Request(tmp_path / "ridge.mercer", tmp_path / "n.html", None, False, True)) == 1
    assert "KernelRidge" in capsys.readouterr().err


def test_labels_of_pictures_are_no_formulas_and_end():
    assert label("a $x$\n b") == r"a \$x\$ b"
    assert len(label("x" * 300)) < 40


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium")
def test_a_phone_does_not_scroll_sideways(tmp_path):
    text = report_of(fitted(TABLE, KIND))
    told = "<script>console.log('width ' + document.documentElement.scrollWidth)</script></body>"
    (tmp_path / "page.html").write_text(text.replace("</body>", told), encoding="utf-8")
    frame = "<iframe src=page.html style='width:390px;height:800px;border:0'></iframe>"
    (tmp_path / "frame.html").write_text(f"<body style='margin:0'>{frame}</body>")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900", "--dump-dom"]
    done = subprocess.run(
        [*command, (tmp_path / "frame.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    found = re.search(r"width (\d+)", done.stderr)
    assert found is not None, done.stderr[-500:]
    assert int(found[1]) <= 390


def test_a_page_without_seconds_has_no_table_of_names_alone():
    model = fitted(TABLE, HEIGHT)
    with clock.within(0.0):
        page = read(report_of(model))
    words = "".join(page.text)
    assert "was not computed: the seconds for it had passed" in words
    assert ["column", "likeness"] not in page.rows
    # with time there is one
    assert "likeness" in next(row for row in read(report_of(model)).rows if row[:2] == ["column", "likeness"])
