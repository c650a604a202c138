"""Tables of any make go into machines as they are: columns by name, in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mercer import (
    RBF,
    SVC,
    Categorical,
    Date,
    Filled,
    GaussianProcessRegressor,
    Hamming,
    KernelRidge,
    Known,
    Spectrum,
    White,
    verify,
)
from mercer.errors import InputError, NotFiniteError

N = 40
R = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": R.normal(40, 10, N),
        "region": R.choice(["north", "south", "east"], N),
        "review": R.choice(["good value", "bad", "not good", "fine"], N),
        "hired": pd.to_datetime("2020-01-01") + pd.to_timedelta(R.integers(0, 1000, N), "D"),
        "income": np.where(R.random(N) < 0.2, np.nan, R.normal(5e4, 1e4, N)),
        "id": [f"person {i}" for i in range(N)],
    }
)
Y = TABLE["age"].to_numpy() / 10 + (TABLE["region"] == "north") + 0.1 * R.normal(size=N)
KERNEL = (
    RBF().on("age") * Categorical().on("region")
    + Spectrum(3).normalized().on("review")
    + RBF().of(Date("years")).on("hired")
    + RBF().of(Filled()).on("income") * Categorical().of(Known()).on("income")
)
MAKES = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("make", MAKES)
def test_every_make_of_table_gives_the_same_model(make):
    plain = KernelRidge(KERNEL, 0.1).fit(TABLE, Y)
    other = KernelRidge(KERNEL, 0.1).fit(MAKES[make](TABLE), Y)
    assert plain.kernel_ == other.kernel_
    np.testing.assert_allclose(
        other.predict(MAKES[make](TABLE[:5])), plain.predict(TABLE[:5]), rtol=1e-12, atol=1e-12
    )


def test_the_matrix_is_the_sum_of_its_parts_computed_by_hand():
    k = KERNEL.resolved(TABLE)
    age = RBF().resolved(TABLE[["age"]].to_numpy())(TABLE[["age"]].to_numpy())
    region = TABLE["region"].to_numpy()
    same = region[:, None] == region[None, :]
    days = TABLE["hired"].dt.day_of_year.to_numpy()
    length = np.where(TABLE["hired"].dt.is_leap_year, 366, 365)
    years = (TABLE["hired"].dt.year + (days - 1) / length).to_numpy()[:, None]
    income = TABLE["income"].fillna(TABLE["income"].median()).to_numpy()[:, None]
    known = TABLE["income"].notna().to_numpy()
    by_hand = (
        age * np.where(same, 1.0, np.exp(-1.0))
        + Spectrum(3).normalized()(list(TABLE["review"]))
        + RBF().resolved(years)(years)
        + RBF().resolved(income)(income) * np.where(known[:, None] == known[None, :], 1.0, np.exp(-1.0))
    )
    np.testing.assert_allclose(k(TABLE), by_hand, rtol=1e-8, atol=1e-8)


def test_columns_may_stand_in_any_order_and_what_is_not_read_may_be_missing():
    model = KernelRidge(KERNEL, 0.1).fit(TABLE, Y)
    expected = model.predict(TABLE)
    np.testing.assert_array_equal(model.predict(TABLE[TABLE.columns[::-1]]), expected)
    np.testing.assert_array_equal(model.predict(TABLE.drop(columns="id")), expected)
    np.testing.assert_array_equal(model.predict(TABLE.assign(extra=1)), expected)


def test_a_column_that_is_read_must_be_there():
    model = KernelRidge(KERNEL, 0.1).fit(TABLE, Y)
    with pytest.raises(InputError, match=r"lacks the columns \['region'\]"):
        model.predict(TABLE.drop(columns="region"))


def test_a_kernel_of_all_columns_keeps_their_order():
    numbers = TABLE[["age"]].assign(two=1.0 + R.normal(size=N))
    model = KernelRidge(RBF(), 0.1).fit(numbers, Y)
    with pytest.raises(ValueError, match="order"):
        model.predict(numbers[["two", "age"]])


def test_missing_numbers_are_refused_with_row_and_column_unless_a_rule_is_chosen():
    row = int(np.flatnonzero(TABLE["income"].isna())[0])
    with pytest.raises(NotFiniteError, match=f"row {row}, column 'income'"):
        KernelRidge(RBF().on("income"), 0.1).fit(TABLE, Y)
    KernelRidge(RBF().of(Filled()).on("income"), 0.1).fit(TABLE, Y)


def test_a_table_of_numbers_alone_may_have_gaps_where_nobody_reads_or_a_rule_is_chosen():
    numbers = TABLE[["age", "income"]]
    KernelRidge(RBF().on("age"), 0.1).fit(numbers, Y)
    k = RBF().on("income", missing="own level")
    assert np.all(np.isfinite(k.resolved(numbers)(numbers)))
    row = int(np.flatnonzero(TABLE["income"].isna())[0])
    with pytest.raises(NotFiniteError, match=f"row {row}, column 'income'"):
        RBF().on("income").resolved(numbers)


def test_processes_and_margins_take_the_table_and_are_verified():
    labels = np.median(Y) < Y
    model = SVC(KERNEL, C=10.0).fit(TABLE, labels)
    assert verify(model, TABLE, labels).ok
    process = GaussianProcessRegressor(KERNEL + White(0.1)).fit(TABLE, Y)
    assert verify(process, TABLE, Y).ok
    mean, std = process.predict(TABLE, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_the_gradient_of_a_table_kernel_is_that_of_differences():
    k = (
        Categorical([0.7, 1.5]).on("region", "review") * RBF(10.0).on("age") + 0.3 * Hamming().on("region")
    ).resolved(TABLE)
    W = np.random.default_rng(1).normal(size=(N, N))
    G = k.gram(TABLE)
    assert G.notes == ()
    found = G.contract(W=W)
    for i in range(len(k.theta)):
        step = 1e-6 * np.eye(len(k.theta))[i]
        up, down = (float((W * k.with_theta(k.theta + s * step)(TABLE)).sum()) for s in (1, -1))
        assert abs(found[i] - (up - down) / 2e-6) < 1e-6 * (1 + abs(found[i]))


@pytest.mark.parametrize("seed", range(20))
def test_numbers_read_at_once_are_those_read_cell_by_cell(seed):
    """Tables of plain numbers take a short cut; it must say what the cells say, and leave the rest alone."""
    from mercer.vectors import plain_numbers

    rng = np.random.default_rng(seed)
    pool = [1, -3, 2.5, None, float("nan"), True, 2**60, np.float32(0.1), np.int64(7), "5", b"x", np.nan]
    cells = np.empty((6, 3), dtype=object)
    for place in np.ndindex(cells.shape):
        cells[place] = pool[rng.integers(len(pool) if seed % 2 else 9)]
    found = plain_numbers(cells)
    simple = all(c is None or isinstance(c, int | float | np.number | np.bool_) for c in cells.flat)
    huge = any(isinstance(c, int) and abs(c) > 2**53 for c in cells.flat)
    assert (found is not None) == (simple and not huge)
    if found is not None:
        slow = [[float("nan") if cell is None else float(cell) for cell in row] for row in cells]
        np.testing.assert_array_equal(found, slow)
