"""The documents: examples run as they are printed, links lead somewhere, and no public name is left out."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[1]
SOURCE = Path(mercer.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_example_of_the_page_runs(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_guide_is_linked_from_the_readme():
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", PAGES[0].read_text(encoding="utf-8")))
    assert linked == {page.name for page in PAGES[1:]}


def test_every_public_name_is_explained_in_a_guide():
    words = {word for page in PAGES[1:] for word in re.findall(r"\w+", page.read_text(encoding="utf-8"))}
    missing = [name for name in mercer.__all__ if name not in words and name != "__version__"]
    assert not missing, missing


def test_the_architecture_names_every_room_and_every_file_of_the_solvers():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [p.name for p in SOURCE.iterdir() if (p / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}/`" not in text] == []
    section = text.split("| in `solve/` |", 1)[1].split("\n\n", 1)[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {p.stem for p in (SOURCE / "solve").glob("*.py")} - {"__init__"} <= named


@pytest.mark.parametrize(
    "package",
    sorted(p.parent for room in ("machines", "kernels") for p in SOURCE.glob(f"{room}/*/__init__.py")),
    ids=lambda p: p.name,
)
def test_a_package_says_at_its_door_what_is_inside(package):
    door = (package / "__init__.py").read_text(encoding="utf-8")
    inside = {p.stem for p in package.glob("*.py") if not p.stem.startswith(("__init__", "examine"))}
    assert inside <= set(re.findall(r"\w+", door)), inside - set(re.findall(r"\w+", door))
