"""The course: its pages run, their pictures are drawn from what they computed, and the words are found."""

import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from benchmarks import data
from PIL import Image

from mercer import SVC, Polynomial
from mercer.plot.style import new_figure

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "docs" / "course"
PAGES = sorted(page for page in COURSE.glob("*.md") if page.stem != "index")
WORDS = (
    "kernel trick",
    "RKHS",
    "reproducing property",
    "Lagrange multiplier",
    "slack",
    "Mercer's theorem",
    "weak duality",
    "strong duality",
    "bandwidth",
    "bag of words",
)


@pytest.fixture(scope="module")
def course():
    """The script that runs the pages and draws from them."""
    return runpy.run_path(str(COURSE / "pictures.py"))


def alike(first, second):
    """Whether two PNGs show the same, to the eye: of one size, and equal but for a few of 60 by 40 fields.

    Fields are grey values, and 20 of 255 are allowed: letters are drawn otherwise by other versions.
    """
    pictures = [Image.open(io.BytesIO(data)).convert("L") for data in (first, second)]
    if not np.allclose(pictures[0].size, pictures[1].size, atol=1):
        return False
    a, b = (np.asarray(p.resize((60, 40), Image.Resampling.BOX), dtype=float) for p in pictures)
    return bool(np.mean(np.abs(a - b) > 20) < 0.005)


def test_a_curve_that_moved_is_another_picture():
    drawn = []
    for up in (0.0, 0.0, 0.05):
        figure = new_figure(6, 4)
        axes = figure.subplots()
        t = np.linspace(0, 6, 100)
        axes.plot(t, np.sin(t) + 2 * up, lw=2)
        axes.set_ylim(-1.2, 1.2)
        data = io.BytesIO()
        figure.savefig(data, dpi=100)
        drawn.append(data.getvalue())
    assert alike(drawn[0], drawn[1])
    assert not alike(drawn[0], drawn[2])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_page_runs_and_its_pictures_are_those_that_are_stored(page, course):
    failed, names = course["run"](page)
    assert failed == 0
    drawn = course["PICTURES"].get(page.stem, {})
    shown = re.findall(r"\]\(pictures/([\w-]+)\.png\)", page.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(drawn)
    for name, draw in drawn.items():
        figure = draw(names)
        stored = (COURSE / "pictures" / f"{name}.png").read_bytes()
        assert len(stored) < course["LARGEST"], name
        now = io.BytesIO()
        figure.savefig(now, dpi=course["DOTS"])
        assert alike(now.getvalue(), stored), f"{name}: make course draws it again"


DATA = ROOT.parent / "shared" / "data"


@pytest.mark.skipif(not (DATA / "load.py").exists(), reason="the digits are not here")
def test_a_row_of_the_table_of_digits_is_what_is_measured():
    """The cheapest row, degree 2 with its offset: support vectors and error as the page prints them."""
    found = data.real(str(DATA), "usps")
    kernel = Polynomial(2, offset=1.0, scale=1 / 256)
    model = SVC(kernel, C=10.0, multiclass="ovr").fit(found["X_train"], found["y_train"])
    vectors = np.mean([(row != 0).sum() for row in model.dual_coef_])
    error = 100 * (1 - model.score(found["X_test"], found["y_test"]))
    text = (COURSE / "digits.md").read_text(encoding="utf-8")
    row = re.search(r"^\| 2 \|.*\| (\d+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert vectors == pytest.approx(float(row[1]), abs=1)
    # one digit of 2007 is 0.05 %
    assert error == pytest.approx(float(row[2]), abs=0.06)


def test_the_index_lists_every_page_in_an_order(course):
    text = (COURSE / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([\w-]+)$", text.split("```{toctree}", 1)[1].split("```", 1)[0], re.MULTILINE)
    assert sorted(listed) == [page.stem for page in PAGES]
    assert re.findall(r"\]\(([\w-]+)\.md\)", text) == listed
    assert set(course["PICTURES"]) <= set(listed)


def test_every_stored_picture_is_drawn_by_the_script(course):
    drawn = {name for pictures in course["PICTURES"].values() for name in pictures}
    assert {path.stem for path in (COURSE / "pictures").iterdir()} == drawn


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_field_is_found_in_the_course(word):
    assert any(word.lower() in page.read_text(encoding="utf-8").lower() for page in PAGES)
