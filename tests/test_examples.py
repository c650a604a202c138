"""The gallery: every example runs, says what it found, and draws; the page lists them all."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(p for p in (ROOT / "examples").glob("*.py") if p.stem != "gallery")


@pytest.fixture
def _as_a_script(monkeypatch):
    """What `python examples/NAME.py` gives a script: its own directory first on the path."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield
    sys.modules.pop("gallery", None)


@pytest.mark.usefixtures("_as_a_script")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_the_example_prints_and_draws(script, tmp_path, monkeypatch, capsys):
    place = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(script), "-o", str(place)])
    runpy.run_path(str(script), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert len(said) >= 3
    assert said[-1] == str(place)
    assert place.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("_as_a_script")
def test_a_picture_that_cannot_be_written_is_a_sentence(tmp_path, monkeypatch, capsys):
    import gallery

    from mercer.plot.style import new_figure

    for name, words in (("nowhere/p.png", "No such file"), ("p.xyz", "xyz")):
        monkeypatch.setattr(sys, "argv", ["e.py", "-o", str(tmp_path / name)])
        with pytest.raises(SystemExit) as left:
            gallery.save(new_figure(1, 1), "e.py")
        assert left.value.code == 2
        assert words in capsys.readouterr().err


def test_every_example_is_short_and_asserts_what_it_shows():
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 80, script.name
        assert re.search(r"^ +assert ", text, re.MULTILINE), script.name


def test_the_gallery_page_lists_every_example():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[`(\w+)`\]\(\.\./examples/\1\.py\)", page, re.MULTILINE)) == [
        p.stem for p in SCRIPTS
    ]
