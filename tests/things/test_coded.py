"""A mixed table as numbers: scikit-learn's encoders as referees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mercer import RBF, Coded, parse
from mercer.arrays import Rows
from mercer.errors import InputError, OpenParameterError, ParameterError, ShapeError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(40.0, 12.0, size=30),
        "job": RNG.choice(["cook", "clerk", "smith"], size=30),
        "income": np.where(np.arange(30) % 5 == 0, np.nan, RNG.lognormal(size=30)),
        "flag": RNG.choice([True, False], size=30),
    }
)
KINDS = ("number", "category", "number", "category")


def closed(table, kinds=KINDS, weight=None):
    return Coded(kinds).resolved_on(Rows.of(table), weight)


def read(reading, table):
    return np.asarray(reading.read(Rows.of(table)).vectors)


def test_it_is_what_the_encoders_of_scikit_learn_make():
    new = pd.DataFrame(
        {"age": [30.0, np.nan], "job": ["smith", "judge"], "income": [np.nan, 2.0], "flag": [False, True]}
    )
    numbers = TABLE[["age", "income"]]
    imputer = SimpleImputer(strategy="median").fit(numbers)
    scaler = StandardScaler().fit(imputer.transform(numbers))
    wanted = scaler.transform(imputer.transform(new[["age", "income"]]))
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(TABLE[["job", "flag"]])
    hot = encoder.transform(new[["job", "flag"]])
    # six incomes are missing, so that one more number says which are known
    known = np.array([[0.0], [1.0]])
    wanted = np.column_stack([wanted[:, :1], hot[:, :3], wanted[:, 1:], known, hot[:, 3:]])
    reading = closed(TABLE)
    np.testing.assert_allclose(read(reading, new), wanted, rtol=1e-9, atol=1e-9)
    names = [each.called(list(TABLE.columns)) for each in reading.coded_columns()]
    assert names == [
        "age",
        "job = clerk",
        "job = cook",
        "job = smith",
        "income",
        "income = (known)",
        "flag = 0",
        "flag = 1",
    ]


def test_without_kinds_they_are_seen_from_the_cells():
    assert Coded().resolved_on(Rows.of(TABLE), None).kinds == ("number", "category", "number", "number")
    assert Coded().resolved_on(Rows(np.zeros((4, 2))), None).kinds == ("number", "number")


def test_a_date_is_its_years_and_a_missing_category_one_of_its_own():
    rows = Rows([["2020-01-01", "a"], ["2021-01-01", None], [None, "a"]])
    reading = Coded(("date", "category")).resolved_on(rows, None)
    found = reading.read(rows).vectors
    assert reading.values == (("(missing)", "a"),)
    np.testing.assert_allclose(found[:, 0] * np.std([0.0, 1.0, 0.5]), [-0.5, 0.5, 0.0], atol=1e-9)
    np.testing.assert_array_equal(found[:, 1:], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    written = Coded(("date %d.%m.%Y",)).resolved_on(Rows([["01.01.2020"], ["02.07.2020"]]), None)
    assert written.numbers == ((2020.25, 2020.25, 0.25, 0.0),)


def test_weight_two_is_a_row_twice_and_weight_zero_none():
    whole = TABLE[["age", "job", "flag"]]
    kinds = ("number", "category", "category")
    weight = np.ones(30)
    weight[:4] = 2.0
    weight[-3:] = 0.0
    twice = pd.concat([whole[:4], whole[:-3]], ignore_index=True)
    mine, other = closed(whole, kinds, weight), closed(twice, kinds)
    np.testing.assert_allclose(read(mine, whole), read(other, whole), rtol=1e-9)
    assert mine.values == other.values


def test_of_very_many_values_the_most_frequent_are_told_apart():
    cells = [[f"v{i:03d}"] for i in range(150)] + [["v149"], ["v148"]]
    reading = Coded(("category",)).resolved_on(Rows(cells), None)
    assert len(reading.values[0]) == 100 and {"v148", "v149"} <= set(reading.values[0])
    assert read(reading, cells)[120].sum() == 0.0


def test_its_text_is_read_back_and_a_function_of_it_is_a_proved_kernel():
    kernel = RBF(1.0).of(Coded(KINDS)).on("age", "job", "income", "flag").resolved(TABLE)
    assert parse(str(kernel)) == kernel
    assert kernel.validity().status == "proved"
    numbers = read(closed(TABLE), TABLE)
    np.testing.assert_allclose(kernel(TABLE), RBF(1.0)(numbers), rtol=1e-12)


def test_what_cannot_be_coded_is_refused():
    with pytest.raises(ParameterError, match="a kind is 'number', 'category', 'date'"):
        Coded(("colour",))
    with pytest.raises(ParameterError, match="a deviation above 0"):
        Coded(("number",), ((0.0, 0.0, 0.0, 0.0),), ())
    with pytest.raises(ShapeError, match="Coded has the kinds of 4 columns, but X has 2"):
        closed(TABLE).read(Rows(np.zeros((3, 2))))
    with pytest.raises(OpenParameterError):
        RBF(1.0).of(Coded())(TABLE)
    with pytest.raises(InputError, match="no value at all"):
        Coded(("number",)).resolved_on(Rows([[None], [None]]), None)
