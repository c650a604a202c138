"""`mercer forecast` as it is typed."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from mercer.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, ["forecast", *map(str, arguments)])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    place = tmp_path_factory.mktemp("series") / "sales.csv"
    rng = np.random.default_rng(0)
    k = np.arange(60)
    sales = 20 + 2 * np.sin(2 * np.pi * k / 12) + 0.2 * rng.normal(size=60)
    months = (np.datetime64("2015-01") + k).astype(str)
    pl.DataFrame({"shop": ["a"] * 60, "month": months, "sales": sales}).write_csv(place)
    return place


def test_a_table_a_page_and_words(table, tmp_path):
    out, page = tmp_path / "next.csv", tmp_path / "next.html"
    done = run(table, "--horizon", 6, "-o", out, "--report", page, "--unit", "t")
    assert done.exit_code == 0, done.output
    assert "60 values from 2015-01 to 2019-12" in done.stdout
    assert "yearly pattern" in done.stdout
    frame = pl.read_csv(out, try_parse_dates=True)
    assert str(frame["time"][0]) == "2020-01-01"
    assert frame.height == 6
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = run(table, "--horizon", 6, "-o", out)
    assert again.exit_code == 1
    assert "exists" in again.stderr


def test_json_has_a_schema_and_the_numbers(table):
    done = run(table, "--horizon", 3, "--json", "--quiet")
    told = json.loads(done.stdout)
    assert told["schema"] == "mercer.forecast/1"
    assert [row["time"] for row in told["forecast"]] == ["2020-01", "2020-02", "2020-03"]
    assert done.stderr == ""


def test_standard_output_is_the_table_alone(table):
    done = run(table, "--horizon", 2, "-o", "-", "--quiet")
    assert done.stdout.splitlines()[0] == "time,mean,lower,upper"
    assert len(done.stdout.splitlines()) == 3


def test_digits_are_dates_in_any_order(tmp_path):
    """20240131 is followed by 20240201: as numbers they would be 70 apart, and the next one 20240230."""
    days = np.datetime64("2024-01-01") + np.arange(60)
    rows = [f"{str(day).replace('-', '')},{k % 7}.5" for k, day in enumerate(days)]
    place = tmp_path / "digits.csv"
    place.write_text("\n".join(["day,sales", *rows[::-1]]))
    done = run(place, "--horizon", 1, "-o", "-", "--quiet", "--max-seconds", 0.01)
    assert done.stdout.splitlines()[1].startswith("2024-03-01,")


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a,b\n1,x\n2,y\n", [], "holds numbers"),
        ("month,sales\n" + "2015-01,3\n" * 10, [], "more than once"),
        ("month,sales\n" + "".join(f"20{y}-01,3\n" for y in range(10, 30)), [], "nothing to learn"),
        ("month,sales,visits\n2015-01,3,4\n2015-02,3,5\n", [], "several columns of numbers"),
        ("month,sales\n2015-01,3\n2015-02,5\n", [], "at least 8 values"),
        ("month,sales\n2015-01,3\n2015-02,much\n2015-03,4\n", ["--value", "sales"], "'much'"),
        ("month,sales\n2015-01,3\n", ["--value", "sale"], "Did you mean 'sales'"),
        ("name,sales\nx,3\ny,2\nz,5\n", ["--time", "name"], "neither"),
        ("sales\n3\n2\n5\n", [], "has one column only, 'sales'"),
        ("month,sales\n2015-01,\n2015-02,\n", [], "no row of column 'sales' has a value"),
        ("month,sales\n2015-01-01,3\n02/01/2015,4\n", ["--time", "month"], "several forms"),
    ],
)
def test_bad_files_get_a_sentence_with_the_file(tmp_path, content, options, words):
    place = tmp_path / "bad.csv"
    place.write_text(content)
    done = run(place, *options)
    assert done.exit_code in (1, 64)
    assert words in done.stderr
    assert "Traceback" not in done.output
