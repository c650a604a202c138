"""One fault at a time in a copy of the project: put in, compiled where it must be, tested,
taken out again.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mutation.fault import Fault

HERE = Path(__file__).resolve().parents[2]
LONGEST = 600
CAUGHT = "caught"
SURVIVED = "SURVIVED"
INVALID = "invalid"

# The copy must win over an installed mercer, also in the processes that a test starts.
SITE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
sys.path.insert(0, {source!r})
"""

# Writes down which test is running, and which have failed: with -x, the last one that began is the one that
# failed, crashed or took too long.
NOTES = """
from pathlib import Path

def pytest_runtest_logstart(nodeid):
    Path({begun!r}).write_text(nodeid)

def pytest_runtest_logreport(report):
    if report.failed:
        with Path({failed!r}).open("a") as file:
            file.write(report.nodeid + "\\n")
"""


@dataclass(frozen=True)
class Verdict:
    """`caught` and the test that noticed, `SURVIVED`, or `invalid` when the tests say nothing of the fault.

    It is `sure` once the test that noticed has passed without the fault.
    """

    result: str
    by: str = ""
    sure: bool = False


class Trial:
    """A copy of the project in `folder`, in which faults are tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun = folder / "site" / "begun"
        self.failed = folder / "site" / "failed"
        skip = shutil.ignore_patterns(
            ".git", ".venv", "build", "out", "__pycache__", ".*_cache", ".hypothesis"
        )
        shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=skip)
        import mercer._core as compiled

        self.sound = Path(compiled.__file__)
        self._put_core(self.sound)
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE.format(source=str(folder / "src")))
        notes = NOTES.format(begun=str(self.begun), failed=str(self.failed))
        (folder / "site" / "notes_of_tests.py").write_text(notes)

    def judge(self, fault: Fault, likely: str = "") -> Verdict:
        """`likely` is a test that noticed this fault before; it is asked first."""
        target = self.folder / fault.file
        original = target.read_text()
        if original.count(fault.old) != 1:
            return Verdict(INVALID, "the fault does not fit the file")
        target.write_text(original.replace(fault.old, fault.new))
        try:
            if fault.in_core:
                self._compile()
            code, test = self._first_to_fail(fault, likely)
        except subprocess.CalledProcessError:
            return Verdict(INVALID, "the core does not compile")
        finally:
            target.write_text(original)
            self._put_core(self.sound)
        if code == 0:
            return Verdict(SURVIVED)
        if not test:
            return Verdict(INVALID, "no test could be run")
        return Verdict(CAUGHT, test)

    def failing(self, tests: set[str]) -> set[str]:
        """Those of the tests that fail without any fault, and so notice nothing."""
        if not tests:
            return set()
        code, test = self._pytest(sorted(tests), first=False)
        if code not in (0, 1):
            raise RuntimeError(
                f"pytest ended with {code} without any fault; the last test that began is {test!r}"
            )
        return set(self.failed.read_text().splitlines())

    def _first_to_fail(self, fault: Fault, likely: str) -> tuple[int | None, str]:
        if likely:
            code, test = self._pytest([likely])
            if code != 0 and test:
                return code, test
        return self._pytest(shlex.split(fault.tests))

    def _pytest(self, tests: list[str], *, first: bool = True) -> tuple[int | None, str]:
        """The exit code, None when it took too long, and the last test that began;
        no test when none could be read.

        It ends at the `first` that fails, or goes on to the last.
        """
        self.begun.write_text("")
        self.failed.write_text("")
        path = os.pathsep.join([str(self.folder / "site"), os.environ.get("PYTHONPATH", "")])
        environment = dict(
            os.environ,
            PYTHONPATH=path,
            PYTHONDONTWRITEBYTECODE="1",
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
        )
        options = ["-q", "--no-header", "-p", "no:randomly", "-p", "no:xdist", "-p", "notes_of_tests"]
        command = [sys.executable, "-m", "pytest", *(["-x"] if first else []), *options, *tests]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return None, self.begun.read_text()
        return done.returncode, self.begun.read_text()

    def _compile(self) -> None:
        build = self.folder / "build"
        if not build.exists():
            setup = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
            subprocess.run(["cmake", "-S", self.folder, "-B", build, *setup], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
        for extension in build.glob("_core*.so"):
            self._put_core(extension)

    def _put_core(self, extension: Path) -> None:
        shutil.copy2(extension, self.folder / "src" / "mercer" / extension.name)
