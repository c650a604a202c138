"""Dates as numbers, columns standardised and filled: named maps of the language."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata
from sklearn.preprocessing import StandardScaler

from mercer import (
    RBF,
    Categorical,
    Date,
    Filled,
    KernelRidge,
    Known,
    Linear,
    Periodic,
    Ranked,
    Standardized,
    parse,
)
from mercer.arrays import Rows
from mercer.errors import InputError, InputTypeError, OpenParameterError, ParameterError, ShapeError

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 100.0, 1e-3] + [0.0, 5000.0, 1.0]


def numbers(reading, things):
    return reading.read(Rows(things)).vectors.ravel()


def test_a_year_has_as_many_parts_as_days():
    for year, days in ((2019, 365), (2020, 366), (1900, 365), (2000, 366)):
        every = [date(year, 1, 1) + timedelta(days=i) for i in range(days)]
        np.testing.assert_allclose(numbers(Date("year"), every), np.arange(days) / days, rtol=0, atol=1e-15)
        np.testing.assert_allclose(numbers(Date("years"), every) - year, np.arange(days) / days, atol=1e-12)


def test_a_week_begins_on_monday_and_a_day_at_midnight():
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 7, 12), datetime(2024, 1, 8, 6, 30)]
    np.testing.assert_allclose(numbers(Date("week"), moments), [0.0, 6.5 / 7, (6.5 / 24) / 7], atol=1e-15)
    np.testing.assert_allclose(numbers(Date("day"), moments), [0.0, 0.5, 6.5 / 24], atol=1e-15)


def test_every_make_of_date_is_the_same_date():
    same = [
        datetime(2021, 3, 4, 15, 0),
        np.datetime64("2021-03-04T15:00"),
        pd.Timestamp("2021-03-04 15:00"),
        "2021-03-04T15:00",
        " 2021-03-04 15:00:00 ",
        datetime(2021, 3, 4, 15, 0, tzinfo=UTC),
        datetime(2021, 3, 4, 15, 0, tzinfo=timezone(timedelta(hours=-8))),
    ]
    for part in ("years", "day", "week", "year"):
        assert len(set(numbers(Date(part), same))) == 1, part
    assert numbers(Date("years"), [date(2021, 3, 4)]) == numbers(Date("years"), ["2021-03-04"])
    american = Date("years", format="%m/%d/%Y")
    assert numbers(american, ["03/04/2021"]) == numbers(Date("years"), ["2021-03-04"])


@pytest.mark.parametrize(
    ("bad", "words", "kind"),
    [
        (None, "row 1 of X is missing", InputTypeError),
        (float("nan"), "row 1 of X is missing", InputTypeError),
        (pd.NaT, "row 1 of X is missing", InputTypeError),
        (2021, "is a int", InputTypeError),
        ("03/04/2021", 'format="%m/%d/%Y"', InputError),
        ("2021-13-01", "row 1", InputError),
    ],
)
def test_what_is_no_date_is_named_by_its_row(bad, words, kind):
    with pytest.raises(kind, match=None) as refused:
        RBF(1.0).of(Date("years"))([datetime(2021, 3, 4), bad])
    assert words in str(refused.value)


def test_a_date_has_four_parts():
    with pytest.raises(ParameterError, match="'years', 'day', 'week', 'year'"):
        Date("month")


def test_standardized_is_what_scikit_learn_calls_so():
    k = Linear().of(Standardized()).resolved(X)
    Z = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(k(X), Z @ Z.T, rtol=1e-9, atol=1e-9)
    with_weights = Linear().of(Standardized()).resolved(X, sample_weight=np.arange(30.0))
    Z = StandardScaler().fit(X, sample_weight=np.arange(30.0)).transform(X)
    np.testing.assert_allclose(with_weights(X), Z @ Z.T, rtol=1e-9, atol=1e-9)


def test_a_constant_column_becomes_zero():
    A = np.column_stack([np.full(5, 7.0), np.arange(5.0)])
    assert np.all(Standardized().resolved_on(Rows(A), None).read(Rows(A)).vectors[:, 0] == 0)


def test_medians_take_the_place_of_what_is_missing():
    table = pd.DataFrame({"a": [1.0, None, 3.0, 10.0], "b": [None, 2.0, 4.0, None]})
    reading = Filled().resolved_on(Rows(table), None)
    assert reading == Filled([3.0, 3.0])
    np.testing.assert_array_equal(reading.read(Rows(table)).vectors, [[1, 3], [3, 2], [3, 4], [10, 3]])
    np.testing.assert_array_equal(Known().read(Rows(table)).vectors, [[1, 0], [0, 1], [1, 1], [1, 0]])


def test_a_column_without_any_value_cannot_be_filled():
    with pytest.raises(InputError, match="column 1 of X has no value"):
        RBF(1.0).of(Filled()).resolved([[1.0, None], [2.0, None]])


def test_text_in_a_column_of_numbers_is_named_although_gaps_are_allowed():
    with pytest.raises(InputError, match="row 1, column 0"):
        RBF(1.0).of(Filled()).resolved([[1.0], ["two"], [None]])


KERNELS = [
    RBF(2.0).of(Date("years", format="%d.%m.%Y")),
    Periodic(1.0).of(Date("week")).on("when"),
    Linear().of(Standardized()),
    Linear().of(Standardized([1.0, 2.0], [3.0, 0.5])),
    RBF().of(Filled()).on("age") * Categorical().of(Known()).on("age"),
    RBF(1.0).of(Filled([2.5])),
]


@pytest.mark.parametrize("k", KERNELS, ids=str)
def test_the_text_is_read_back(k):
    assert parse(str(k)) == k
    assert k.validity().status == "proved"
    assert k.latex()


def test_an_open_reading_says_how_to_close_it():
    with pytest.raises(OpenParameterError, match="resolved"):
        Linear().of(Standardized())(X)


def test_another_number_of_columns_is_refused():
    k = Linear().of(Standardized()).resolved(X)
    with pytest.raises(ShapeError, match="fitted on 3 columns, but X has 2"):
        k(X[:, :2])


def test_a_machine_learns_the_scales_and_predicts_from_the_raw_table():
    y = X[:, 1] / 100
    raw = KernelRidge(Linear().of(Standardized()) + 1.0, 1e-6).fit(X[:20], y[:20])
    scaler = StandardScaler().fit(X[:20])
    by_hand = KernelRidge(Linear() + 1.0, 1e-6).fit(scaler.transform(X[:20]), y[:20])
    np.testing.assert_allclose(raw.predict(X[20:]), by_hand.predict(scaler.transform(X[20:])), rtol=1e-7)


# ── ranks ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_ranks_are_the_normal_scores_of_scipy():
    A = np.column_stack([X[:, 0], np.round(X[:, 0]), np.arange(30.0) // 29])
    k = Linear().of(Ranked()).resolved(A)
    by_scipy = norm.ppf((rankdata(A, axis=0) - 0.5) / len(A))
    np.testing.assert_allclose(k.reading.read(Rows(A)).vectors, by_scipy, rtol=1e-10, atol=1e-11)


def test_ranks_do_not_mind_what_stretches_a_column():
    k = RBF().of(Ranked())
    stretched = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] ** 3, 1e6 * X[:, 2]])
    np.testing.assert_allclose(k.resolved(stretched)(stretched), k.resolved(X)(X), rtol=1e-9)


def test_of_many_values_two_hundred_are_kept_and_ranks_stay_in_order():
    many = np.random.default_rng(1).exponential(size=(5000, 1)) ** 2
    reading = Ranked().resolved_on(Rows(many), None)
    assert 150 < len(reading.values[0]) <= 200
    found = reading.read(Rows(np.sort(many, axis=0))).vectors.ravel()
    assert np.all(np.diff(found) >= 0)
    exact = norm.ppf((np.arange(5000) + 0.5) / 5000)
    # two neighbours that are kept are a 199th of the scores apart, or there is no value between them
    assert np.abs(found - exact).max() < 2 * exact[-1] / 199
    beyond = reading.read(Rows([[-5.0], [1e9]])).vectors.ravel()
    np.testing.assert_array_equal(beyond, found[[0, -1]])


def test_a_row_of_weight_two_has_the_rank_of_two_rows():
    twice = Ranked().resolved_on(Rows(np.vstack([X, X[:10]])), None)
    weighted = Ranked().resolved_on(Rows(X), np.r_[np.full(10, 2.0), np.ones(20)])
    assert twice == weighted


def test_ranks_that_do_not_rise_are_refused():
    with pytest.raises(ParameterError, match="rising"):
        Ranked([[1.0, 1.0]], [[0.0, 1.0]])
    with pytest.raises(ParameterError, match="as long as"):
        Ranked([[1.0, 2.0]], [[0.0]])


# ── gaps as a level of their own ────────────────────────────────────────────────────────────────────────────


def test_missing_values_can_be_a_level_of_their_own():
    table = pd.DataFrame({"income": [1.0, None, 4.0, 2.0, None]})
    k = RBF(1.0).on("income", missing="own level").resolved(table)
    filled = np.array([1.0, 2.0, 4.0, 2.0, 2.0])
    gap = np.array([False, True, False, False, True])
    by_hand = np.exp(-0.5 * (filled[:, None] - filled) ** 2 - (gap[:, None] != gap))
    np.testing.assert_allclose(k(table), by_hand, rtol=1e-14)
    assert k == parse(str(k))
    assert k.validity().status == "proved"


def test_missing_dates_too():
    table = pd.DataFrame({"hired": ["01/01/2020", None, "01/01/2022", "01/01/2021"]})
    k = RBF(1.0).of(Date("years", "%m/%d/%Y")).on("hired", missing="own level").resolved(table)
    filled = np.array([2020.0, 2021.0, 2022.0, 2021.0])
    gap = np.array([False, True, False, False])
    by_hand = np.exp(-0.5 * (filled[:, None] - filled) ** 2 - (gap[:, None] != gap))
    np.testing.assert_allclose(k(table), by_hand, rtol=1e-14)
    assert k == parse(str(k))


def test_other_rules_for_missing_values_are_refused_with_what_there_is():
    with pytest.raises(ParameterError, match="missing must be 'own level', or None"):
        RBF().on("income", missing="mean")
    with pytest.raises(ParameterError, match="gaps must be 'refuse' or 'keep'"):
        Date("years", gaps="drop")


def test_an_open_kernel_of_categories_counts_rows_that_differ_in_every_column_as_one_e():
    rows = [["a", "x", "p"], ["b", "y", "q"]]
    for k in (Categorical(), Categorical(ard=True)):
        np.testing.assert_allclose(k.resolved(rows)(rows)[0, 1], np.exp(-1), rtol=1e-15)
