"""Laws of `mercer fit`, `predict`, `score`, `verify` and `explain`: they say what the library says."""

import json

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

import mercer
from mercer import clock
from mercer.cli.fit import seconds_for_fit, seconds_of
from mercer.cli.main import app
from mercer.errors import Interrupted, ParameterError
from mercer.recipe import tournament
from mercer.report.fit import command

runner = CliRunner()
R = np.random.default_rng(4)
N = 60
SIZE = R.uniform(20, 90, N).round(1)
KIND = R.choice(["old", "new"], N)
RENT = (8 * SIZE + 150 * (KIND == "new") + R.normal(0, 10, N)).round(2)


def lines(rent):
    rows = [f"{s},{k},{r}" for s, k, r in zip(SIZE, KIND, rent, strict=True)]
    return "size,kind,rent\n" + "\n".join(rows) + "\n"


@pytest.fixture(autouse=True)
def one_short_round(monkeypatch, tmp_path):
    R.bit_generator.state = np.random.default_rng(7).bit_generator.state
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(40, 3, 1, 0.3),))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flats.csv").write_text(lines(RENT))
    (tmp_path / "dear.csv").write_text(lines(np.where(RENT > 500, "dear", "cheap")))


def run(*arguments, **more):
    return runner.invoke(app, [*map(str, arguments)], **more)


def fitted(name="flats"):
    result = run("fit", f"{name}.csv", "--target", "rent", "--no-report", "--quiet")
    assert result.exit_code == 0, result.stderr
    return result


def test_fit_with_a_target_and_nothing_else_writes_a_model_that_the_library_reads(tmp_path):
    result = fitted()
    model = mercer.load(tmp_path / "flats.mercer")
    assert result.stdout.startswith(model.summary())
    assert "model: flats.mercer" in result.stdout
    expected = mercer.fit(tmp_path / "flats.csv", "rent", verbose=0)
    assert model.kernel_ == expected.kernel_ and model.target_ == "rent"


def test_the_model_remembers_the_time_that_was_asked_for(tmp_path):
    """Not the share of it that the fit had: the command in its report would ask for less each time."""
    result = run("fit", "flats.csv", "-t", "rent", "--time", "2m", "--no-report", "--quiet")
    assert result.exit_code == 0, result.stderr
    model = mercer.load(tmp_path / "flats.mercer")
    assert model.max_seconds == 120.0
    assert "--time 120s" in command(model)


def test_fit_as_json_has_the_facts_of_the_model(tmp_path):
    result = run("fit", "flats.csv", "-t", "rent", "-o", "m.mercer", "--no-report", "--json")
    found = json.loads(result.stdout)
    model = mercer.load(tmp_path / "m.mercer")
    assert found["schema"] == "mercer.fit/1"
    assert (found["task"], found["target"], found["rows"]) == ("numbers", "rent", N)
    assert found["kernel"] == str(model.kernel_) and found["steps"] == list(model.steps_)
    assert found["estimate"]["measures"] == model.estimate_.measures
    assert found["by_ctrl_c"] is False and found["report"] is None
    assert "flats.csv: 60 rows" in result.stderr


def test_predict_adds_columns_to_the_table_and_keeps_its_rows(tmp_path):
    fitted()
    result = run("predict", "flats.mercer", "flats.csv", "-o", "out.parquet", "--interval", "0.8")
    assert (result.exit_code, result.stdout) == (0, "")
    found = polars.read_parquet(tmp_path / "out.parquet")
    model = mercer.load(tmp_path / "flats.mercer")
    table = polars.read_csv(tmp_path / "flats.csv")
    assert found.columns == ["size", "kind", "rent", "prediction", "low", "high"]
    low, high = model.predict_interval(table, 0.8)
    np.testing.assert_allclose(found["low"], low)
    np.testing.assert_allclose(found["high"], high)
    np.testing.assert_allclose(found["prediction"], model.predict(table))


def test_predict_goes_from_standard_input_to_standard_output(tmp_path):
    fitted("dear")
    text = "kind,size\nnew,80\nold,25\n"
    result = run("predict", "dear.mercer", "-", "--only", "--quiet", input=text)
    head, *rows = result.stdout.splitlines()
    assert head == "prediction,probability_cheap,probability_dear"
    with_sets = run("predict", "dear.mercer", "-", "--only", "-q", "--sets", "0.9", input=text)
    assert with_sets.stdout.splitlines()[1].split(",")[-1] in ("dear", "cheap|dear")
    assert [row.split(",")[0] for row in rows] == ["dear", "cheap"]
    assert all(np.isclose(sum(map(float, row.split(",")[1:])), 1.0) for row in rows)


@pytest.mark.parametrize("name", ["flats", "dear"])
def test_score_is_what_the_predictions_come_to(tmp_path, name):
    fitted(name)
    found = json.loads(run("score", f"{name}.mercer", f"{name}.csv", "--json").stdout)
    model = mercer.load(tmp_path / f"{name}.mercer")
    table = polars.read_csv(tmp_path / f"{name}.csv")
    truth = table["rent"].to_numpy()
    said = model.predict(table)
    if name == "flats":
        assert np.isclose(found["measures"]["rmse"], np.sqrt(np.mean((said - truth) ** 2)))
        assert np.isclose(found["nothing_learned"]["rmse"], np.std(truth))
    else:
        assert np.isclose(found["measures"]["accuracy"], np.mean(said == truth))
    assert found["rows"] == N
    words = run("score", f"{name}.mercer", f"{name}.csv").stdout
    assert words.startswith(f"60 rows of {name}.csv")


def test_verify_holds_for_its_own_table_and_not_for_another(tmp_path):
    fitted()
    result = run("verify", "flats.mercer", "flats.csv")
    assert result.exit_code == 0 and result.stdout.startswith("claims hold")
    (tmp_path / "other.csv").write_text(lines(RENT + 100 * R.normal(size=N)))
    result = run("verify", "flats.mercer", "other.csv", "--json")
    assert result.exit_code == 1 and json.loads(result.stdout)["ok"] is False


def test_explain_says_what_the_library_says(tmp_path):
    fitted()
    model = mercer.load(tmp_path / "flats.mercer")
    table = polars.read_csv(tmp_path / "flats.csv")
    result = run("explain", "flats.mercer", "flats.csv", "--row", "7")
    assert result.stdout.strip() == str(model.explain(table[6:7]))
    found = json.loads(run("explain", "flats.mercer", "--json").stdout)
    assert found["validity"] == "proved" and found["kernel"] == str(model.kernel_)
    assert np.isclose(sum(term["share"] for term in found["terms"]), 1.0)
    whole = run("explain", "flats.mercer").stdout
    assert model.summary() in whole and "∎" in whole


def test_nothing_is_replaced_without_force(tmp_path):
    fitted()
    before = (tmp_path / "flats.mercer").read_bytes()
    again = run("fit", "flats.csv", "-t", "rent", "--no-report")
    assert again.exit_code == 1 and "exists" in again.stderr
    assert (tmp_path / "flats.mercer").read_bytes() == before
    assert run("fit", "flats.csv", "-t", "rent", "--no-report", "--force").exit_code == 0
    refused = run("predict", "flats.mercer", "flats.csv", "-o", "flats.csv")
    assert refused.exit_code == 1 and (tmp_path / "flats.csv").read_text() == lines(RENT)


def test_ctrl_c_writes_the_best_model_so_far_and_leaves_with_130(tmp_path, monkeypatch):
    fit = mercer.recipe.door.fit

    def interrupted(*arguments, **options):
        raise Interrupted(fit(*arguments, **options))

    monkeypatch.setattr("mercer.cli.fit.fit_table", interrupted)
    result = run("fit", "flats.csv", "-t", "rent", "--no-report")
    assert result.exit_code == 130 and "the best model so far is written" in result.stderr
    assert mercer.load(tmp_path / "flats.mercer").target_ == "rent"


BAD = {
    "no-target.csv": "a,b\n1,2\n3,4\n",
    "one-class.csv": "a,rent\n1,x\n2,x\n3,x\n",
    "empty.csv": "",
    "twice.csv": "a,a,rent\n1,2,3.5\n",
    "gaps.csv": "a,rent\n1,\n2,\n",
    "constant.csv": "a,rent\n1,2.5\n1,3.5\n1,4.5\n",
}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["no-target.csv", "-t", "rent"], 1, "no column 'rent'"),
        (["no-target.csv"], 64, "name the column to predict"),
        (["one-class.csv", "-t", "rent"], 1, "in every row"),
        (["empty.csv", "-t", "rent"], 1, "is empty"),
        (["twice.csv", "-t", "rent"], 1, "'a'"),
        (["gaps.csv", "-t", "rent"], 1, "no value at all"),
        (["constant.csv", "-t", "rent"], 1, "anything to learn from"),
        (["nowhere.csv", "-t", "rent"], 1, "there is no file"),
        ([".", "-t", "rent"], 1, "is a directory"),
        (["flats.csv", "-t", "rent", "--time", "soon"], 64, "--time takes"),
        (["flats.csv", "-t", "rent", "--kernel", "RBF("], 64, "column"),
        (["flats.csv", "-t", "rent", "--machine", "forest"], 64, "machine must be one of"),
        (["flats.csv", "-t", "rent", "--task", "guess"], 64, "task must be"),
        (["flats.csv", "-t", "kind", "--task", "numbers"], 1, "no number"),
        (["flats.csv", "-t", "rent", "--leave-out", "price"], 1, "no column 'price'"),
        (["flats.csv", "-t", "rent", "-o", "nowhere/m.mercer"], 1, "no directory"),
    ],
)
def test_what_cannot_be_fitted_is_said_and_nothing_is_written(tmp_path, arguments, code, words):
    for name, text in BAD.items():
        (tmp_path / name).write_text(text)
    result = run("fit", *arguments, "--no-report")
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert not list(tmp_path.glob("*.mercer")) and not list(tmp_path.glob("*.html"))


def test_models_of_other_machines_and_other_files_are_refused(tmp_path):
    machine = mercer.KernelRidge("RBF(1.0)").fit([[0.0], [1.0]], [0.0, 1.0])
    mercer.save(machine, tmp_path / "ridge.mercer")
    result = run("predict", "ridge.mercer", "flats.csv")
    assert result.exit_code == 1 and "KernelRidge" in result.stderr
    assert run("predict", "flats.csv", "flats.csv").exit_code == 1
    fitted("dear")
    other = run("score", "dear.mercer", "flats.csv")
    assert other.exit_code == 1 and "never shown" in other.stderr
    far = run("explain", "dear.mercer", "dear.csv", "--row", "99")
    assert far.exit_code == 1 and "has 60 rows" in far.stderr


@pytest.mark.parametrize("text", ["", "0", "-3s", "5 days", "1.2.3", "nan"])
def test_times_that_are_none_are_refused(text):
    with pytest.raises(ParameterError, match="--time takes"):
        seconds_of(text)


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", ["predict", "score", "explain", "report", "inspect"])
def test_a_file_that_is_no_model_is_named(tmp_path, command):
    (tmp_path / "words.mercer").write_text("these are no numbers")
    table = [] if command in ("report", "inspect") else ["flats.csv"]
    result = run(command, "words.mercer", *table)
    assert result.exit_code == 1 and result.stderr.startswith("mercer: words.mercer: This is no model file")


def test_one_row_is_no_rows_and_a_table_without_anything_to_learn_is_named(tmp_path):
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    assert "one.csv: 1 row, 2 columns" in run("fit", "one.csv", "-t", "b").stderr
    assert "mercer: one.csv: no column of the table has anything" in run("inspect", "one.csv").stderr


def test_an_error_that_is_not_known_is_said_to_be_so(tmp_path):
    (tmp_path / "three.csv").write_text("a,b\nx,1\ny,2\nz,4\n")
    assert (
        "On rows not seen: unknown. There is no estimate: a class has a single row."
        in run("fit", "three.csv", "-t", "b", "--no-report").stdout
    )


@pytest.mark.parametrize(
    ("time", "report", "read", "left"),
    [(40.0, True, 7.0, 27.0), (40.0, False, 7.0, 33.0), (40.0, True, 60.0, 12.0), (None, True, 7.0, None)],
)
def test_reading_the_table_counts_among_the_seconds(monkeypatch, time, report, read, left):
    monkeypatch.setattr(clock, "now", lambda: read)
    assert seconds_for_fit(time, time, report=report) == left
