"""Arrows point down: which room of the library may import which. Imports inside functions count too."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mercer
from mercer.kernels import doors

ROOT = Path(mercer.__file__).parent

BASE = {
    "errors",
    "arrays",
    "vectors",
    "frames",
    "params",
    "clock",
    "blas",
    "lapack",
    "memory",
    "panels",
    "sparse",
    "threads",
    "typing",
    "progress",
    "samples",
    "places",
    "quantiles",
    "scales",
    "names",
    "notebook",
    "hosts",
}
# room -> the rooms it may import; a room not listed here fails the test,
# so that a new one takes its place on purpose
MAY_IMPORT = {
    "errors": set(),
    "typing": set(),
    "progress": set(),
    "clock": set(),
    "places": {"errors"},
    "names": set(),
    "notebook": set(),
    "hosts": set(),
    "quantiles": {"errors", "params", "typing"},
    "scales": {"errors", "typing"},
    "blas": {"panels", "typing"},
    "lapack": {"blas", "panels", "threads", "typing"},
    "panels": {"typing"},
    "params": {"errors", "typing"},
    "frames": {"typing"},
    "arrays": {"errors", "frames", "panels", "sparse", "typing", "vectors"},
    "vectors": {"errors", "frames", "panels", "sparse", "typing"},
    "samples": {"arrays", "typing"},
    "sparse": {"errors", "memory", "typing"},
    "memory": {"errors", "typing"},
    "threads": {"errors", "typing"},
    "kernels": BASE,
    "gram": BASE | {"kernels", "_core"},
    "solve": BASE - {"params"} | {"_core"},
    "theory": BASE | {"kernels", "gram", "solve"},
    "machines": BASE | {"kernels", "gram", "solve", "theory"},
    "structure": BASE | {"kernels", "gram", "solve", "theory", "machines"},
    "choose": BASE | {"kernels", "gram", "solve", "theory", "machines", "structure"},
    "sklearn": BASE | {"kernels", "gram", "solve", "theory", "machines"},
    "conformal": BASE | {"kernels", "gram", "solve", "theory", "machines"},
    "files": BASE | {"kernels", "gram", "solve", "theory", "machines", "sklearn", "conformal"},
    "onnx": BASE | {"kernels", "gram", "solve", "theory", "machines", "sklearn"},
    "__init__": {"conformal", "files", "recipe", "series", "kernels", "machines", "onnx", "tables", "theory"}
    | {"gram", "names", "plot"},
}
# They use public names only, and one another.
OUTSIDE = {
    "__main__",
    "tables",
    "plot",
    "report",
    "serve",
    "cli",
    "recipe",
    "series",
    "studio",
    "applications",
    "compat",
}
PUBLIC = set(MAY_IMPORT) - {"__init__"} | OUTSIDE | {""}

# Rooms whose modules form layers too: no import leads back to where it started, be it inside a function.
LAYERED = ("kernels", "gram")


# Private names of other libraries, which have no public one for it.
FOREIGN = {
    "_asdict": "of named tuples",
    "_replace": "of named tuples",
    "_getframe": "sys, for the place of a warning",
    "_exit": "os, where nothing may run any more",
    "_check_bounds_params": "scikit-learn's kernels of Gaussian processes",
    "_check_feature_names_in": "scikit-learn's checks of feature names",
    "_check_psd_eigenvalues": "scikit-learn's check of eigenvalues",
    "_check_sample_weight": "scikit-learn's check of weights",
    "_num_samples": "scikit-learn's count of rows",
}
# Reads of a name that is private to another folder: the twins and the sets of kernels are built on the margin
# machines, and use what those would rather not show.
BORROWED = {
    ("machines/kernel_sets/examine.py", "_calibrate"),
    ("machines/kernel_sets/examine.py", "_targets_again"),
    ("sklearn/margin.py", "_values"),
    ("sklearn/svm.py", "_scores"),
}


def files():
    return sorted(p for p in ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Every import of a file, inside functions too, but for those that are needed only to name types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in skipped
    ]


def module_of(path: Path) -> str:
    parts = ("mercer", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layered_modules() -> dict[str, Path]:
    return {module_of(p): p for p in files() if room_of(p) in LAYERED}


def imported_modules(path: Path, known: dict[str, Path]) -> set[str]:
    """The known modules that a file imports; `from package import module` is the module."""
    found = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            for alias in node.names:
                member = f"{node.module}.{alias.name}"
                found.add(member if member in known else node.module)
    return found & known.keys() - {module_of(path)}


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a ring, the first again at the end; empty where there is none."""
    done: set[str] = set()
    for start in graph:
        way = [start]
        left = [iter(sorted(graph[start]))]
        while way:
            step = next(left[-1], None)
            if step is None:
                done.add(way.pop())
                left.pop()
            elif step in way:
                return [*way[way.index(step) :], step]
            elif step not in done:
                way.append(step)
                left.append(iter(sorted(graph[step])))
    return []


def imported_rooms(path: Path) -> set[str]:
    """The rooms of mercer that a file imports anywhere, but for those it needs only to name types."""
    rooms = set()
    for node in imports(path):
        if isinstance(node, ast.Import):
            rooms |= {_room(alias.name) for alias in node.names if alias.name.split(".")[0] == "mercer"}
        else:
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
    forbidden = wanted - MAY_IMPORT[room]
    assert not forbidden, f"{place} imports {sorted(forbidden)}"


def test_no_import_between_kernels_and_gram_leads_back_to_where_it_started():
    known = layered_modules()
    cycle = cycle_in({module: imported_modules(path, known) for module, path in known.items()})
    assert not cycle, " imports ".join(cycle)


def test_a_cycle_is_found_and_named():
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_doors_are_the_only_way_up_and_each_is_opened_by_the_module_it_names():
    for path in layered_modules().values():
        text = path.read_text(encoding="utf-8")
        assert ("import_module" in text or "__import__" in text) == (path.name == "doors.py"), path
    for name, door in vars(doors).items():
        if isinstance(door, doors.Door):
            source = Path(import_module(door.module).__file__).read_text(encoding="utf-8")
            assert f"doors.{name}.open(" in source, door.module


@pytest.mark.parametrize(
    "use", ["k([[0.0], [1.0]])", "k + k", "k.set_params(lengthscale=2.0)", "k.validity()", "k.features"]
)
def test_a_leaf_that_is_imported_alone_can_do_everything(use):
    program = f"from mercer.kernels.leaves.radial import RBF; k = RBF(1.0); {use}"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=120)


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


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in FOREIGN | {"_core": ""}


def given_names(tree: ast.Module) -> set[str]:
    """Every name that a file defines or sets, as a function, a class, a variable or an attribute."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def private_reads(tree: ast.Module) -> set[str]:
    """Private names that a file imports, or reads of an object other than self, cls and super()."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls", "super()"):
            found.add(node.attr)
    return {name for name in found if is_private(name)}


def test_a_private_name_is_private_to_its_folder():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files()}
    given: dict[Path, set[str]] = {}
    for path, tree in trees.items():
        given.setdefault(path.parent, set()).update(given_names(tree))
    borrowed = {
        (path.relative_to(ROOT).as_posix(), name)
        for path, tree in trees.items()
        for name in private_reads(tree) - given[path.parent]
    }
    assert borrowed == BORROWED, "give the name a public one, or use a public one"


def test_reads_of_private_names_are_found():
    text = "from a import _b\nself._c\nsuper()._d\nx._e\nx.__len__\nx.y._f\nx.g"
    assert private_reads(ast.parse(text)) == {"_b", "_e", "_f"}
