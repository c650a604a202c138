"""What surrounds the commands: pipes that close, disks that are full, `python -m mercer`,
scripts run on the twins.
"""

import os
import signal
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from mercer.cli.main import app
from mercer.sklearn.__main__ import main as run_script

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes and disks as POSIX has them")


def command(*arguments, **options):
    options.setdefault("capture_output", True)
    return subprocess.run([sys.executable, "-m", *arguments], check=False, text=True, **options)


def test_the_package_is_the_command():
    told = command("mercer", "check", "RBF(2.0)")
    assert told.returncode == 0
    assert "proved" in told.stdout
    assert command("mercer", "check", "Sigmoid(1.0)").returncode == 1


def test_every_room_is_reached_by_its_name():
    rooms = ["machines", "applications", "cli", "arrays", "memory", "params", "threads", "theory"]
    code = f"import mercer; print(*[getattr(mercer, room).__name__ for room in {rooms}])"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.split() == [f"mercer.{room}" for room in rooms]


@POSIX
@pytest.mark.parametrize("arguments", [["check", "Sigmoid(1.0)"], ["--help"]])
def test_a_closed_pipe_is_neither_refuted_nor_a_traceback(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        told = command("mercer", *arguments, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    # a shell calls this 141
    assert told.returncode == -signal.SIGPIPE
    assert told.stderr == ""


@POSIX
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_answer_that_cannot_be_written_is_a_sentence_with_its_own_code(options):
    with open("/dev/full", "w") as full:
        told = command(
            "mercer", "check", "RBF(2.0)", *options, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert told.returncode == 74
    assert told.stderr.count("\n") == 1
    assert "cannot be written: No space left" in told.stderr


def _little_room():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@POSIX
def test_a_picture_that_does_not_fit_is_a_sentence_with_its_own_code(tmp_path):
    told = command(
        "mercer", "draw", "RBF(2.0)", "-o", "k.png", "--samples", "1", cwd=tmp_path, preexec_fn=_little_room
    )
    assert told.returncode == 74
    assert "cannot be written" in told.stderr
    assert list(tmp_path.iterdir()) == []


@POSIX
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_the_name_of_a_picture_on_a_full_output(tmp_path):
    with open("/dev/full", "w") as full:
        told = command(
            "mercer",
            "draw",
            "RBF(2.0)",
            "-o",
            "k.png",
            "--samples",
            "1",
            cwd=tmp_path,
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert told.returncode == 74
    assert (tmp_path / "k.png").exists()


def test_a_report_that_does_not_fit_has_the_code_of_a_full_disk(tmp_path, monkeypatch):
    import errno

    from mercer.applications import co2 as study
    from mercer.cli.co2 import Request, run_co2

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(study, "study", full)
    assert run_co2(Request(tmp_path, 2003, 1, False, 50, False, False)) == 74

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(study, "study", forbidden)
    assert run_co2(Request(tmp_path, 2003, 1, False, 50, False, False)) == 1


# ── scripts on the twins ────────────────────────────────────────────────────────────────────────────────────

SCRIPT = """
import sys, os
import beside
from sklearn.svm import SVC
here = os.path.dirname(os.path.realpath(__file__))
print(SVC.__module__, sys.argv, sys.path[0] == here, __name__, beside.VALUE)
"""


def test_a_script_sees_what_python_lets_it_see(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "beside.py").write_text("VALUE = 7")
    (home / "script.py").write_text(SCRIPT)
    (elsewhere / "beside.py").write_text("VALUE = 8")
    told = command("mercer.sklearn", "../home/script.py", "a", "-b", cwd=elsewhere)
    assert told.returncode == 0, told.stderr
    assert told.stdout.split("\n")[0] == "mercer.sklearn.svm ['../home/script.py', 'a', '-b'] True __main__ 7"
    assert told.stderr.count("\n") == 1
    assert "SVC" in told.stderr
    assert "KernelRidge" in told.stderr


def test_a_script_that_is_not_there_is_a_sentence(capsys):
    with pytest.raises(SystemExit) as left:
        run_script(["nowhere.py"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "mercer.sklearn: there is no script 'nowhere.py'.\n"


EARLIER = """
import copy, pickle
import numpy as np
from sklearn import decomposition, gaussian_process, kernel_ridge, svm
from sklearn.base import clone
from sklearn.datasets import make_moons
import mercer.sklearn

X, y = make_moons(30, noise=0.1, random_state=0)
CASES = [(svm, "SVC"), (svm, "OneClassSVM"), (kernel_ridge, "KernelRidge"), (decomposition, "KernelPCA"),
         (gaussian_process, "GaussianProcessRegressor")]
ORIGINALS = [getattr(room, name) for room, name in CASES]
EARLY = [kind().fit(X, y) for kind in ORIGINALS]

mercer.sklearn.patch()
STORED = []
for (room, name), kind, early in zip(CASES, ORIGINALS, EARLY):
    twin = getattr(room, name)
    assert twin is not kind and twin.__module__.startswith("mercer.")
    for model in (early, kind().fit(X, y), twin().fit(X, y)):
        ask = "predict" if hasattr(model, "predict") else "transform"
        wanted = getattr(model, ask)(X)
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
            assert type(again) is type(model) and isinstance(again, type(model))
            assert np.allclose(getattr(again, ask)(X), wanted, rtol=1e-12, atol=1e-12)
        assert type(clone(model)) is type(model)
    STORED.append(pickle.dumps(early))

mercer.sklearn.unpatch()
for (room, name), kind, early, stored in zip(CASES, ORIGINALS, EARLY, STORED):
    assert getattr(room, name) is kind
    assert type(pickle.loads(stored)) is kind and type(pickle.loads(pickle.dumps(early))) is kind
print("sound")
"""


def test_models_of_classes_imported_before_the_patch_can_be_pickled_and_cloned():
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EARLIER], capture_output=True, text=True, check=False
    )
    assert told.stdout == "sound\n", told.stderr


READ_TABLES = [
    ["fit", "t.csv", "--target", "y"],
    ["predict", "m.mercer", "t.csv"],
    ["score", "m.mercer", "t.csv"],
    ["verify", "m.mercer", "t.csv"],
    ["explain", "m.mercer", "t.csv"],
    ["inspect", "t.csv"],
    ["cluster", "t.csv"],
    ["embed", "t.csv"],
    ["compare", "t.csv", "--target", "y"],
    ["test", "two-sample", "t.csv", "u.csv"],
    ["test", "independence", "t.csv", "--left", "a", "--right", "b"],
]


@pytest.mark.parametrize("command", READ_TABLES, ids=lambda command: "-".join(command[:2]))
def test_every_command_that_reads_tables_takes_and_checks_how_they_are_written(command):
    """A wrong option is a sentence and the code of usage, whatever the command; none fails unexpectedly."""
    found = CliRunner().invoke(app, [*command, "--decimal", "x", "--no-header", "--missing", "?"])
    assert found.exit_code == 64, found.output
    assert "must be '.' or ','" in found.stderr


# ── help ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["test", "--help"]])
def test_help_imports_neither_rich_nor_numpy(arguments):
    """Both take longer than the page itself."""
    heavy = ("numpy", "polars", "rich.console", "rich.markdown", "pygments")
    script = f"""
import sys
from mercer.cli.main import app
try:
    app({arguments!r}, prog_name="mercer")
except SystemExit:
    pass
print([name for name in {heavy!r} if name in sys.modules])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("Usage: mercer") and told.stdout.splitlines()[-1] == "[]"


def test_help_lists_every_command_once_in_its_group():
    page = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    groups = [line for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == ["Options:", "Models of tables:", "Tables:", "Kernels:", "Others:"]
    listed = [line.split()[0] for line in page.split("Models of tables:")[1].splitlines() if line[:2] == "  "]
    assert sorted(listed[:-1]) == sorted(typer.main.get_command(app).commands)
    # behind them, what the codes mean
    assert listed[-1] == "Exit"
    assert max(map(len, page.splitlines())) <= 80
