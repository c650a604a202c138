"""The documents: examples run as they are printed, links lead somewhere, and no public name is left out."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[1]
SOURCE = Path(mercer.__file__).parent
DOCS = ROOT / "docs"
# What the site's builder writes beside the pages is not ours.
MADE = ("generated", "gallery", "_pictures")
GUIDES = sorted(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in MADE)
PAGES = [ROOT / "README.md", *GUIDES]
ALL = sorted([*ROOT.glob("*.md"), *GUIDES])
ROOMS = ("choose", "conformal", "gram", "plot", "sklearn", "solve", "theory")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_example_of_the_page_runs(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_guide_is_in_one_tree_of_the_site():
    named = []
    for page in GUIDES:
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            for entry in entries:
                place = page.parent / re.sub(r".*<(.*)>", r"\1", entry)
                # a pattern stands for the pages that are there
                found = [at.with_suffix("") for at in place.parent.glob(f"{place.name}.md")]
                named += found if "*" in entry else [place]
    names = sorted(str(place.relative_to(DOCS)) for place in named)
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in GUIDES]
    assert names == sorted([*(page for page in pages if page != "index"), "gallery/index"])


def test_the_readme_is_short_and_shows_a_picture_that_is_there():
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert all(
        (ROOT / place).stat().st_size < 200_000 for place in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    )


def test_the_reference_lists_every_public_name():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    listed: dict[str, list[str]] = {}
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n.*?:toctree: generated\n\n(.*?)\n```", text, re.DOTALL
    ):
        listed[module] = [*listed.get(module, []), *names.split()]
    assert sorted(listed["mercer"]) == sorted(set(mercer.__all__) - set(mercer._MODULES) - {"__version__"})
    for room in ROOMS:
        there = set(getattr(mercer, room).__all__)
        assert there <= {*listed[f"mercer.{room}"], *listed["mercer"]}, room


@pytest.mark.parametrize("about", ["kernel", "machine", "solver"])
def test_the_tables_of_the_page_are_those_of_the_library(about):
    assert mercer.choose.guide(about).markdown() in (DOCS / "which.md").read_text(encoding="utf-8")


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
