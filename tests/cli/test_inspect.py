"""Laws of `mercer inspect` and `mercer doctor`."""

import json

import pytest
from typer.testing import CliRunner

from mercer import describe_table, parse, read_table
from mercer.cli.main import app
from mercer.gram.core import instruction_set

runner = CliRunner()
FLATS = "size;district;rent\n54,5;north;820\n71,0;south;?\n33,2;north;590\n41,0;west;610\n"


@pytest.fixture
def flats(tmp_path):
    path = tmp_path / "flats.csv"
    path.write_text(FLATS)
    return path


def run(*arguments, **more):
    return runner.invoke(app, [*map(str, arguments)], **more)


def test_inspect_says_what_reading_and_proposing_say(flats):
    result = run("inspect", flats)
    read = read_table(flats)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{read}\n\n{describe_table(read.frame)}\n"
    assert "numbers with a decimal comma: size" in result.stdout


def test_inspect_as_json_has_the_same_facts(flats):
    found = json.loads(run("inspect", flats, "--leave-out", "rent", "--json").stdout)
    assert found["schema"] == "mercer.inspect/1"
    assert (found["rows"], found["columns"]) == (4, 3)
    assert [role["column"] for role in found["roles"]] == ["size", "district"]
    assert parse(found["kernel"]) == describe_table(read_table(flats).frame, leave_out=["rent"]).kernel


def test_inspect_reads_standard_input_and_sparse_rows(tmp_path):
    assert "standard" not in run("inspect", "-", input=FLATS).stderr
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:0.5 4:2\n-1 2:1\n")
    result = run("inspect", rows)
    assert "37.50% of the entries" in result.stdout and "target: 2 different values" in result.stdout
    assert json.loads(run("inspect", rows, "--json").stdout)["kernel"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.csv"], 1, "there is no file nowhere.csv"),
        (["."], 1, "is a directory"),
        (["flats.csv", "--leave-out", "price"], 1, "no column 'price'"),
        (["flats.csv", "--decimal", "x"], 64, "must be '.' or ','"),
        (["flats.csv", "--encoding", "klingon"], 64, "no encoding that is known"),
        ([], 64, "Missing argument"),
    ],
)
def test_what_cannot_be_inspected_gets_a_sentence_and_a_code(flats, monkeypatch, arguments, code, words):
    monkeypatch.chdir(flats.parent)
    result = run("inspect", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_doctor_tells_the_truth_about_the_core(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = json.loads(run("doctor", "--json").stdout)
    assert found["instruction_set"] == instruction_set()
    assert found["threads"] == 1
    if found["cores"] > 1:
        assert any("OMP_NUM_THREADS" in sentence for sentence in found["advice"])
    text = run("doctor").stdout
    assert f"instruction set  {instruction_set()}" in text
    assert found["versions"]["mercer"] in text
