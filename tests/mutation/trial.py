"""One fault at a time in a copy of the project: put in, compiled where it must be, tested, taken out again."""

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

# Names the test that is running: with -x, the last one that began is the one that failed, crashed or took too long.
BEGUN = """
from pathlib import Path

def pytest_runtest_logstart(nodeid):
    Path({file!r}).write_text(nodeid)
"""


@dataclass(frozen=True)
class Verdict:
    """`caught` and the test that noticed, `SURVIVED`, or `invalid` when the tests say nothing of the fault."""

    result: str
    by: str = ""


class Trial:
    """A copy of the project in `folder`, in which faults are tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun = folder / "site" / "begun"
        skip = shutil.ignore_patterns(
            ".git", ".venv", "build", "out", "__pycache__", ".*_cache", ".hypothesis"
        )
        shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=skip)
        import mercer._core as compiled

        self.sound = Path(compiled.__file__)
        self._put_core(self.sound)
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE.format(source=str(folder / "src")))
        (folder / "site" / "begun_test.py").write_text(BEGUN.format(file=str(self.begun)))

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
        # a test that also fails without the fault has not noticed it
        if self._pytest([test])[0] != 0:
            return Verdict(INVALID, f"{test} fails without the fault")
        return Verdict(CAUGHT, test)

    def _first_to_fail(self, fault: Fault, likely: str) -> tuple[int | None, str]:
        if likely:
            code, test = self._pytest([likely])
            if code != 0 and test:
                return code, test
        return self._pytest(shlex.split(fault.tests))

    def _pytest(self, tests: list[str]) -> tuple[int | None, str]:
        """The exit code, None when it took too long, and the last test that began; no test when none could be read."""
        self.begun.write_text("")
        path = os.pathsep.join([str(self.folder / "site"), os.environ.get("PYTHONPATH", "")])
        environment = dict(
            os.environ,
            PYTHONPATH=path,
            PYTHONDONTWRITEBYTECODE="1",
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
        )
        options = ["-x", "-q", "--no-header", "-p", "no:randomly", "-p", "no:xdist", "-p", "begun_test"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
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
