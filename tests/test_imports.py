"""Arrows point down: which room of the library may import which. Imports inside functions count too."""

import ast
from pathlib import Path

import pytest

import mercer

ROOT = Path(mercer.__file__).parent

BASE = {"errors", "arrays", "params", "clock", "lapack", "memory", "panels", "sparse", "threads", "typing"}
# room -> the rooms it may import; a room not listed here fails the test,
# so that a new one takes its place on purpose
MAY_IMPORT = {
    "errors": set(),
    "typing": set(),
    "clock": set(),
    "lapack": {"panels", "typing"},
    "panels": {"typing"},
    "params": {"errors", "typing"},
    "arrays": {"errors", "panels", "sparse", "typing"},
    "sparse": {"errors", "memory", "typing"},
    "memory": {"errors", "typing"},
    "threads": {"errors", "typing"},
    "kernels": BASE,
    "gram": BASE | {"kernels", "_core"},
    "solve": BASE - {"params"} | {"_core"},
    "theory": BASE | {"kernels", "gram", "solve"},
    "machines": BASE | {"kernels", "gram", "solve", "theory"},
    "choose": BASE | {"kernels", "gram", "solve", "theory", "machines"},
    "sklearn": BASE | {"kernels", "gram", "solve", "theory", "machines"},
    "__init__": {"kernels", "machines", "theory", "gram", "plot"},
}
# They use public names only, and one another.
OUTSIDE = {
    "__main__",
    "files",
    "tables",
    "plot",
    "report",
    "cli",
    "studio",
    "applications",
}
PUBLIC = set(MAY_IMPORT) - {"__init__"} | OUTSIDE | {""}

# The one door up: a kernel asks the room above to evaluate it.
DOORS = {("kernels/base.py", "gram")}


def files():
    return sorted(p for p in ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms of mercer that a file imports anywhere, but for those it needs only to name types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    rooms = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            rooms |= {_room(alias.name) for alias in node.names if alias.name.split(".")[0] == "mercer"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "mercer":
                rooms |= {_member(alias.name) for alias in node.names}
            elif (node.module or "").startswith("mercer."):
                rooms.add(_room(node.module))
    return rooms


def _room(module: str) -> str:
    return [*module.split("."), ""][1]


def _member(name: str) -> str:
    """`from mercer import gram` is the room gram; `from mercer import RBF` is the public face."""
    is_room = (ROOT / name).is_dir() or (ROOT / f"{name}.py").exists() or name == "_core"
    return name if is_room else ""


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down(path):
    room, place = room_of(path), path.relative_to(ROOT).as_posix()
    wanted = imported_rooms(path) - {room}
    if room in OUTSIDE:
        assert wanted <= PUBLIC, f"{place} imports {wanted - PUBLIC}"
        assert "_core" not in wanted
        return
    assert room in MAY_IMPORT, f"{room} is a new room: give it its row in this table and in ARCHITECTURE.md"
    forbidden = {r for r in wanted - MAY_IMPORT[room] if (place, r) not in DOORS}
    assert not forbidden, f"{place} imports {sorted(forbidden)}"


@pytest.mark.parametrize("room", ["gram", "solve"])
def test_the_compiled_core_has_one_door_in_each_room(room):
    users = [p for p in files() if room_of(p) == room and "_core" in imported_rooms(p)]
    assert len(users) <= 1, users


def test_only_the_rooms_of_the_table_touch_the_compiled_core():
    users = {room_of(p) for p in files() if "_core" in imported_rooms(p)}
    assert users <= {"gram", "solve"}


def test_nothing_is_evaluated_or_unpickled():
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, f"{path}:{node.lineno}"
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "marshal", "dill"}, (
                    f"{path}:{node.lineno}"
                )
