"""`--json` of every command: one object on standard output, and a schema that says what it holds.

The commands are asked of the app itself, so that a new one without `--json`, or without a line here, fails.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest
import typer
from typer.testing import CliRunner

import mercer
from mercer.cli.main import app
from mercer.recipe import tournament

R = np.random.default_rng(4)
SIZE = R.uniform(20, 90, 60).round(1)
TABLE = polars.DataFrame(
    {
        "size": SIZE,
        "kind": R.choice(["old", "new"], 60),
        "rent": (8 * SIZE + R.normal(0, 60, 60)).round(2),
        "dear": np.where(SIZE + R.normal(0, 15, 60) > 50, "yes", "no"),
    }
)
LIBSVM = Path(__file__).parent.parent / "compat" / "libsvm"

# Every command that ends by itself: what it is asked, and its schema.
ASKED = {
    "check": ("RBF(1.0)", "mercer.check/1"),
    "draw": ("RBF(1.0) -o k.png --samples 1 --dpi 20", "mercer.draw/1"),
    "co2": ("--output out --dpi 20 --years 1 --train-to 1975", "mercer.co2/2"),
    "inspect": ("flats.csv", "mercer.inspect/1"),
    "doctor": ("", "mercer.doctor/1"),
    "report": ("flats.mercer -o page.html", "mercer.report/1"),
    "fit": ("flats.csv -t rent -o new.mercer --no-report", "mercer.fit/1"),
    "predict": ("flats.mercer flats.csv", "mercer.predict/1"),
    "score": ("flats.mercer flats.csv", "mercer.score/1"),
    "verify": ("flats.mercer flats.csv", "mercer.verify/1"),
    "explain": ("flats.mercer flats.csv --row 2", "mercer.explain/1"),
    "cluster": ("flats.csv -k 2", "mercer.cluster/1"),
    "embed": ("flats.csv", "mercer.embed/1"),
    "compare": ("flats.csv --target rent --folds 2 --repeats 1", "mercer.compare/1"),
    "test two-sample": ("flats.csv --by kind --permutations 9", "mercer.test.two-sample/1"),
    "test independence": (
        "flats.csv --left size --right rent --permutations 9",
        "mercer.test.independence/1",
    ),
    "forecast": ("visits.csv --horizon 2", "mercer.forecast/1"),
    "compat": (f"svm-train {LIBSVM / 'train.svm'} m", "mercer.compat/1"),
}


def commands(group, before=()):
    """The names of all commands of the app, those in groups as "test two-sample"."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


EVERY = dict(commands(typer.main.get_command(app)))


def can_listen():
    try:
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError:
        return False
    return True


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def asked(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table and models of it."""
    folder = tmp_path_factory.mktemp("home")
    TABLE.write_csv(folder / "flats.csv")
    polars.DataFrame({"week": range(30), "visits": R.normal(size=30)}).write_csv(folder / "visits.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tournament, "ROUNDS", (tournament.Round(40, 3, 1, 0.3),))
        for name, target, other in (("flats", "rent", "dear"), ("dear", "dear", "rent")):
            model = mercer.fit(TABLE, target, leave_out=[other], verbose=0)
            model.save(folder / f"{name}.mercer")
    return folder


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(home, tmp_path, monkeypatch):
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(40, 3, 1, 0.3),))
    for file in home.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)


def test_every_command_is_asked_here():
    # both answer until they are stopped: their objects are read in tests of their own
    assert {*ASKED, "serve", "studio"} == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_the_option(name):
    assert "--json" in [option for parameter in EVERY[name].params for option in parameter.opts]


@pytest.mark.parametrize("name", ASKED)
def test_every_command_prints_one_object_with_its_schema(name):
    options, schema = ASKED[name]
    assert asked(*name.split(), *options.split())["schema"] == schema


@pytest.mark.skipif(not can_listen(), reason="no port of this machine can be listened on")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_serve_prints_its_object_in_one_line_as_soon_as_it_listens(tmp_path):
    command = [sys.executable, "-m", "mercer", "serve", "flats.mercer", "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        found = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert found["schema"] == "mercer.serve/1" and found["machine"] == "TableRegressor"
    assert found["url"] == f"http://127.0.0.1:{found['port']}" and found["max_bytes"] == 10_000_000
    assert rest == "" and f"serving flats.mercer at {found['url']}" in said


# ── what the new objects hold ───────────────────────────────────────────────────────────────────────────────


def test_predictions_of_numbers_are_those_of_the_model(home):
    found = asked("predict", "flats.mercer", "flats.csv", "--interval", "0.8")
    low, high = mercer.load(home / "flats.mercer").predict_interval(TABLE, 0.8)
    assert (found["task"], found["target"], found["rows"], found["file"]) == ("numbers", "rent", 60, None)
    assert found["columns"] == ["prediction", "low", "high"] == list(found["predictions"])
    assert (found["interval"], found["sets"]) == (0.8, None)
    np.testing.assert_allclose(found["predictions"]["low"], low)
    np.testing.assert_allclose(found["predictions"]["high"], high)


def test_conformal_bands_are_those_of_the_model_with_what_they_promise(home):
    found = asked("predict", "flats.mercer", "flats.csv", "--interval", "0.8", "--conformal")
    model = mercer.load(home / "flats.mercer")
    low, high = model.predict_interval(TABLE, 0.8, conformal=True)
    np.testing.assert_allclose(found["predictions"]["low"], low)
    np.testing.assert_allclose(found["predictions"]["high"], high)
    assert found["guarantee"] == str(model.guarantee(0.8)) and "exchangeable" in found["guarantee"]
    assert asked("predict", "flats.mercer", "flats.csv")["guarantee"] is None


def test_predictions_of_classes_are_those_of_the_model(home):
    found = asked("predict", "dear.mercer", "flats.csv", "--sets", "0.9")
    model = mercer.load(home / "dear.mercer")
    assert found["columns"] == ["prediction", "probability_no", "probability_yes", "set"]
    assert (found["interval"], found["sets"]) == (None, 0.9)
    assert found["predictions"]["prediction"] == model.predict(TABLE).tolist()
    np.testing.assert_allclose(found["predictions"]["probability_yes"], model.predict_proba(TABLE)[:, 1])


def test_predictions_in_a_file_are_named_and_not_repeated(tmp_path):
    TABLE.with_columns(low=1.0).write_csv("low.csv")
    found = asked("predict", "flats.mercer", "low.csv", "-o", "out.csv", "--interval", "0.9")
    assert (found["file"], found["predictions"]) == ("out.csv", None)
    # the names are those that were written
    assert found["columns"] == ["prediction", "low_2", "high"]
    assert polars.read_csv("out.csv").columns == [*TABLE.columns, "low", *found["columns"]]
    alone = asked("predict", "flats.mercer", "flats.csv", "--interval", "0")
    assert (alone["columns"], alone["interval"]) == (["prediction"], None)


@pytest.mark.parametrize("kind", [0, 3])
def test_libsvm_programs_have_as_facts_what_they_say(kind):
    train, test = LIBSVM / "train.svm", LIBSVM / "test.svm"
    flags = ["compat", "svm-train", "-s", kind, train]
    said = run(*flags, "m").stdout
    found = asked(*flags, "m")
    assert found["rows"] == len(train.read_text().splitlines())
    assert (found["model"], found["status"]) == ("m", "converged")
    assert f"obj = {found['objective']:.6f}, duality gap = {found['gap']:.3g}\n" in said
    assert f"Total nSV = {found['vectors']}\n" in said
    assert f"rho = {' '.join(f'{v:.6f}' for v in found['rho'])}\n" in said
    for order in (["svm-predict", test, "m", "out"], ["svm-train", "-s", kind, "-v", 3, train]):
        words = run("compat", *order).stdout
        found = asked("compat", *order)
        if kind == 0:
            assert f"Accuracy = {100 * found['accuracy']:g}%" in words
        else:
            assert f"ean squared error = {found['mean_squared_error']:g}" in words
            assert f"quared correlation coefficient = {found['squared_correlation']:g}" in words
    scaled = run("compat", "svm-scale", "-s", "ranges", test).stdout
    found = asked("compat", "svm-scale", "-s", "ranges", test)
    assert (found["lines"], found["ranges"]) == (scaled.splitlines(), "ranges")
