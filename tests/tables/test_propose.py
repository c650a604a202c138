"""What a table's columns are taken for, and the kernel that is proposed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import mercer
from mercer import Date, GaussianProcessRegressor, KernelRidge, White, describe_table, parse, table_kernel
from mercer.arrays import Rows
from mercer.cli.main import app
from mercer.errors import InputError
from mercer.frames import gaps, is_missing, without_gaps
from mercer.tables.roles import role_of

N = 60
R = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "row": np.arange(N),
        "customer ID": R.permutation(10 * N)[:N],
        "age": R.normal(40, 10, N).round(1),
        "children": R.integers(0, 4, N),
        "member": R.random(N) < 0.5,
        "region": R.choice(["north", "south", None], N),
        "score": np.where(R.random(N) < 0.3, np.nan, R.normal(size=N)),
        "since": [
            f"{m:02}/{d:02}/2019" for m, d in zip(R.integers(1, 13, N), R.integers(13, 29, N), strict=True)
        ],
        "born": pd.to_datetime("1980-01-01") + pd.to_timedelta(R.integers(0, 9000, N), "D"),
        "remark": [f"remark {i} about {'tea' if i % 3 else 'coffee'}" for i in range(N)],
        "planet": "Earth",
        "nothing": None,
    }
)
KINDS = {
    "row": "left out",
    "customer ID": "left out",
    "age": "number",
    "children": "number",
    "member": "category",
    "region": "category",
    "score": "number",
    "since": "date",
    "born": "date",
    "remark": "text",
    "planet": "left out",
    "nothing": "left out",
}


@pytest.mark.parametrize("make", [lambda t: t, pl.from_pandas], ids=["pandas", "polars"])
def test_every_column_is_taken_for_what_it_is(make):
    found = describe_table(make(TABLE))
    assert {role.column: role.kind for role in found.roles} == KINDS
    assert next(role.format for role in found.roles if role.column == "since") == "%m/%d/%Y"
    assert found.kernel == table_kernel(TABLE)


def test_the_reasons_name_every_column_and_what_becomes_of_its_gaps():
    said = str(describe_table(TABLE)).splitlines()
    assert len(said) == len(KINDS) + 1
    gaps = int(TABLE["score"].isna().sum())
    assert any(
        line.startswith("score") and f"{gaps} missing: filled with the median" in line for line in said
    )
    missing = int(TABLE["region"].isna().sum())
    assert any(line.startswith("region") and f"{missing} missing: a category" in line for line in said)


def test_the_kernel_is_ordinary_text_and_proved():
    k = table_kernel(TABLE)
    assert parse(str(k)) == k
    assert k.is_open
    assert k.validity().status == "proved"


def test_machines_fit_it_and_predict_from_the_raw_table():
    noise = np.random.default_rng(1).normal(size=N)
    y = TABLE["age"].to_numpy() / 10 + np.nan_to_num(TABLE["score"].to_numpy()) + noise
    model = KernelRidge(table_kernel(TABLE), 0.1).fit(TABLE, y)
    assert model.score(TABLE, y) > 0.5
    few = table_kernel(TABLE[["age", "score", "region"]]) + White(0.1)
    process = GaussianProcessRegressor(few, optimizer=None).fit(TABLE, y)
    assert np.all(np.isfinite(process.predict(TABLE[::-1], return_std=True)))


def test_columns_can_be_left_out_by_name():
    k = table_kernel(TABLE, leave_out=["remark", "born"])
    assert "remark" not in str(k)
    with pytest.raises(InputError, match="the table has no column 'price'"):
        table_kernel(TABLE, leave_out=["price"])


def test_what_has_no_names_or_nothing_to_learn_from_is_said():
    with pytest.raises(InputError, match="names of columns"):
        table_kernel(np.zeros((3, 2)))
    with pytest.raises(InputError, match="anything to learn from"):
        table_kernel(TABLE[["planet", "row"]])


def test_missing_dates_are_marked_as_missing_numbers_are():
    table = TABLE.assign(born=TABLE["born"].where(TABLE.index % 7 != 3))
    found = describe_table(table)
    gaps = int(table["born"].isna().sum())
    assert any(
        line.startswith("born") and f"{gaps} missing: filled with the median, and marked" in line
        for line in str(found).splitlines()
    )
    k = found.kernel.resolved(table)
    assert parse(str(k)) == k
    one = table_kernel(table[["born"]]).resolved(table)
    years = Date("years").read(Rows(list(TABLE["born"].where(table["born"].notna(), None).dropna())))
    middle = np.median(years.vectors)
    assert f"Filled([{middle:.12g}])" in str(one)


@pytest.mark.parametrize("gaps", [0, 1, 4, 5, 9])
def test_only_gaps_that_teach_something_are_marked(gaps):
    table = pd.DataFrame({"size": np.sqrt(np.arange(40.0)), "weight": np.cos(np.arange(40.0))})
    table.loc[table.index < gaps, "size"] = np.nan
    found = describe_table(table)
    assert ("Known" in str(found.kernel)) == (gaps >= 5)
    assert ("and marked" in str(found)) == (gaps >= 5)
    assert ("too few to be marked" in str(found)) == (0 < gaps < 5)
    k = found.kernel.resolved(table)
    assert np.isfinite(k(table)).all()


def test_the_order_of_the_columns_leaves_every_value_unchanged():
    backwards = TABLE[TABLE.columns[::-1]]
    ours = table_kernel(TABLE).resolved(TABLE)
    np.testing.assert_array_equal(ours(backwards), ours(TABLE))
    theirs = table_kernel(backwards).resolved(backwards)
    np.testing.assert_allclose(theirs(TABLE), ours(TABLE), rtol=1e-13, atol=1e-13)


def test_new_rows_may_have_gaps_and_categories_that_fit_did_not_see():
    y = TABLE["age"].to_numpy()
    model = KernelRidge(table_kernel(TABLE), 0.1).fit(TABLE, y)
    new = TABLE[:4].assign(age=[None, 30.0, None, 50.0], region=["west", None, "north", "south"])
    new = new.assign(since=["01/13/2020", None, None, "12/24/2018"], remark=[None, "of tea", "", "?"])
    new = new.assign(born=[pd.NaT, *TABLE["born"][1:4]], member=[True, None, False, None])
    found = model.predict(new)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(model.predict(pl.from_pandas(new)), found, rtol=1e-12)
    with pytest.raises(InputError, match="'yesterday' in row 2"):
        model.predict(new.assign(since=["01/13/2020", "01/14/2020", "yesterday", None]))
    with pytest.raises(InputError, match="row 1, column 'age'"):
        model.predict(new.assign(age=[30.0, "old", 1.0, 2.0]))


QUESTIONS = ["How old, if at all, are you?", "Do you say \"pop\" or 'soda'?", "Größe (µm), \\ or /", "年齢"]


def test_columns_that_are_questions_are_read_back_from_the_text():
    r = np.random.default_rng(2)
    table = pd.DataFrame({q: r.normal(size=30) for q in QUESTIONS[:2]})
    table[QUESTIONS[2]] = r.choice(["a", "b"], 30)
    table[QUESTIONS[3]] = [f"text {i}, {i % 3}" for i in range(40, 70)]
    k = table_kernel(table)
    assert parse(str(k)) == k
    closed = k.resolved(table)
    np.testing.assert_array_equal(parse(str(closed))(table), closed(table))


def test_types_of_columns_that_mean_the_same_give_the_same_kernel():
    r = np.random.default_rng(3)
    colours = r.choice(["red", "blue", "green"], 50)
    counts = [None if i % 9 == 0 else int(v) for i, v in enumerate(r.integers(0, 9, 50))]
    flags = [None if i % 8 == 0 else bool(v) for i, v in enumerate(r.random(50) < 0.5)]
    plain = pd.DataFrame(
        {
            "colour": colours,
            "count": pd.array(counts, dtype="Int64"),
            "flag": pd.array(flags, dtype="boolean"),
        }
    )
    typed = plain.assign(colour=pd.Categorical(colours), count=pd.array(counts, dtype="Float64"))
    expected = table_kernel(plain)
    assert str(expected) == (
        '1.0*Categorical().on("colour") '
        '+ 1.0*RBF().of(Ranked()).of(Filled()).on("count")*Categorical().of(Known()).on("count") '
        '+ 1.0*Categorical().on("flag") '
        '+ 1.0*RBF().of(Ranked()).of(Filled()).on("count")*Categorical().of(Known()).on("count")'
        '*Categorical(ard=True).on("colour", "flag")'
    )
    values = expected.resolved(plain)(plain)
    for table in (typed, pl.from_pandas(plain), pa.Table.from_pandas(plain)):
        assert table_kernel(table) == expected
        np.testing.assert_array_equal(expected.resolved(table)(table), values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 1.5, 1.5], "left out"),
        ([True, False, True], "category"),
        ([0, 1, 0, 1], "category"),
        ([3, 1, 2, 9], "number"),
        (["1.5", "2.5", "9"], "category"),
        (["2020-01-01", "2020-02-30"], "category"),
        (["20200101", "20200102"], "date"),
        ([None, "only"], "category"),
        ([None, None], "left out"),
    ],
)
def test_a_column_is_judged_by_its_values(values, kind):
    assert role_of("x", values).kind == kind


def test_ranks_may_be_left_aside_and_nothing_else_changes():
    table = pd.DataFrame({"a": [1.5, 2.5, 9.0, 4.0], "b": ["x", "y", "x", "y"], "c": [0.1, 0.4, 0.3, 7.0]})
    plain = str(table_kernel(table, ranks=False))
    assert plain == str(table_kernel(table)).replace(".of(Ranked())", "")
    assert "Ranked" not in plain


def test_a_name_that_no_column_has_gets_the_same_sentence_everywhere(tmp_path):
    """In Python and at the command line, as the target or to be left out: with the name that was meant."""
    table = pl.DataFrame({"size": [1.0, 2.0, 4.0] * 5, "rent": [1.0, 3.0, 2.0] * 5})
    table.write_csv(tmp_path / "flats.csv")
    file = str(tmp_path / "flats.csv")
    told = "has no column 'rant'. Did you mean 'rent'? It has 'size', 'rent'."
    for act in (
        lambda: mercer.fit(table, "rant"),
        lambda: mercer.fit(file, "rant"),
        lambda: mercer.compare(table, "rant"),
        lambda: mercer.compare(table, "size", leave_out=["rant"]),
        lambda: table_kernel(table, leave_out=["rant"]),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            act()
    for arguments in (
        ["fit", file, "-t", "rant"],
        ["compare", file, "--target", "rant"],
        ["cluster", file, "--leave-out", "rant"],
        ["embed", file, "--picture", "p.png", "--colour", "rant"],
        ["inspect", file, "--leave-out", "rant"],
        ["test", "two-sample", file, "--by", "rant"],
        ["test", "independence", file, "--left", "rant", "--right", "size"],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 1 and told in result.stderr, arguments


@pytest.mark.parametrize(
    ("texts", "format"),
    [
        (["1949-01", "1949-02", "1950-11"], "%Y-%m"),
        (["01/1949", "12/1950"], "%m/%Y"),
        (["Jan 1949", "Dec 1950"], "%b %Y"),
    ],
)
def test_months_are_dates(texts, format):
    role = role_of("month", texts * 5)
    assert (role.kind, role.format) == ("date", format)
    assert role_of("size", ["10-12", "12-15"] * 5).kind == "category"


@pytest.mark.parametrize("seed", range(30))
def test_gaps_are_what_is_missing_of_each_value(seed):
    rng = np.random.default_rng(seed)
    pool = [
        None,
        float("nan"),
        1.5,
        2,
        True,
        "",
        "a",
        np.nan,
        np.float32("nan"),
        pd.NA,
        pd.NaT,
        np.int64(3),
        1 + 2j,
    ]
    kinds = [pool[:3], [None, "a", ""], [None, 2, True], [1.5, float("nan")], pool]
    values = [kinds[seed % 5][i] for i in rng.integers(0, len(kinds[seed % 5]), 40)]
    assert gaps(values).tolist() == [is_missing(value) for value in values]
    found = without_gaps(values)
    assert all((a is None) if is_missing(b) else (a is b) for a, b in zip(found, values, strict=True))


def test_a_column_of_numbers_among_texts_is_taken_for_what_it_is_alone():
    rng = np.random.default_rng(5)
    for values in (
        rng.normal(size=50),
        np.where(rng.random(50) < 0.2, np.nan, 1.0),
        rng.integers(0, 2, 50) * 1.0,
    ):
        mixed = pl.DataFrame({"x": values, "words": [f"word {i % 40}" for i in range(50)]})
        alone = describe_table(mixed).roles[0]
        assert alone == role_of("x", [None if value != value else value for value in values.tolist()])
