"""Do the tests notice a small bug? Puts one deliberate fault at a time into a copy of the project and runs the tests beside it.

    make mutation                                          every fault in Python
    PYTHONPATH=tests python -m mutation.run --core                    those in the C++ core too (each is compiled)
    PYTHONPATH=tests python -m mutation.run shift perceptron          only faults whose file or description has one of the words

A fault is *caught* when a test fails, or when the tests take more than ten minutes; it *survives* when all of them pass. The tests
of a fault are those of its room, named beside it in `faults/`, so the score is a lower bound of what the whole suite would
catch. Exit code 1 if fewer than 90 of 100 are caught.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mutation.fault import Fault
from mutation.faults import FAULTS

HERE = Path(__file__).resolve().parents[2]
WANTED = 0.9
LONGEST = 600
UNREAD = 2  # pytest's own code for tests that could not be collected

# The copy must win over an installed mercer, also in the processes that a test starts.
SITE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
sys.path.insert(0, {source!r})
"""


def copy_of_the_project(folder: Path) -> None:
    """Sources, tests and documents, with the compiled core beside the Python files."""
    skip = shutil.ignore_patterns(".git", ".venv", "build", "out", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=skip)
    import mercer._core as compiled

    shutil.copy2(compiled.__file__, folder / "src" / "mercer")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE.format(source=str(folder / "src")))


def compile_core(folder: Path) -> None:
    build = folder / "build"
    if not build.exists():
        setup = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
        subprocess.run(["cmake", "-S", folder, "-B", build, *setup], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    for extension in build.glob("_core*.so"):
        shutil.copy2(extension, folder / "src" / "mercer")


def run_tests(folder: Path, tests: str) -> int | None:
    """The exit code of pytest, `UNREAD` for tests that could not be collected; None when it took too long."""
    path = os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:randomly",
        *shlex.split(tests),
    ]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return None
    # with -x a test file that cannot be read ends like a test that fails, and no test has noticed anything then
    return UNREAD if b"ERROR collecting" in done.stdout else done.returncode


def try_fault(folder: Path, fault: Fault) -> str:
    """`caught`, `SURVIVED`, or `invalid` when the tests could not be run at all."""
    target = folder / fault.file
    original = target.read_text()
    if original.count(fault.old) != 1:
        return "invalid"
    target.write_text(original.replace(fault.old, fault.new))
    try:
        if fault.in_core:
            compile_core(folder)
        code = run_tests(folder, fault.tests)
    except subprocess.CalledProcessError:
        return "invalid"
    finally:
        target.write_text(original)
    return {0: "SURVIVED", 1: "caught", None: "caught"}.get(code, "invalid")


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("words", nargs="*", help="only faults whose file or description has one of these")
    ask.add_argument("--core", action="store_true", help="also faults in the C++ core")
    given = ask.parse_args()
    chosen = [f for f in FAULTS if given.core or not f.in_core]
    if given.words:
        chosen = [f for f in chosen if any(w in f.file or w in f.what for w in given.words)]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mercer-mutation-") as name:
        folder = Path(name)
        copy_of_the_project(folder)
        if any(f.in_core for f in chosen):
            compile_core(folder)
        for fault in chosen:
            start = time.monotonic()
            result = try_fault(folder, fault)
            counts[result] += 1
            print(f"{result:8} {time.monotonic() - start:5.0f} s  {fault.file}: {fault.what}", flush=True)
    total = sum(counts.values())
    print(
        f"{counts['caught']} of {total} faults caught, {counts['SURVIVED']} survived, {counts['invalid']} invalid"
    )
    return int(counts["caught"] < WANTED * total)


if __name__ == "__main__":
    raise SystemExit(main())
