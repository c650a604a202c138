"""What a table's columns are taken for, and the kernel that is proposed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mercer import GaussianProcessRegressor, KernelRidge, White, describe_table, parse, table_kernel
from mercer.errors import InputError
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
    with pytest.raises(InputError, match=r"leave_out names the columns \['price'\]"):
        table_kernel(TABLE, leave_out=["price"])


def test_what_has_no_names_or_nothing_to_learn_from_is_said():
    with pytest.raises(InputError, match="names of columns"):
        table_kernel(np.zeros((3, 2)))
    with pytest.raises(InputError, match="anything to learn from"):
        table_kernel(TABLE[["planet", "row"]])
    with pytest.raises(InputError, match="'born' holds dates, of which 1 are missing"):
        table_kernel(TABLE.assign(born=TABLE["born"].where(TABLE.index != 3)))


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
