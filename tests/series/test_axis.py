"""Dates and numbers as numbers, steps, and the times that follow."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.series.axis import axis_of, column_of, dates_of_texts, in_utc, read_times


def months(first: str, count: int) -> np.ndarray:
    return (np.datetime64(first, "M") + np.arange(count)).astype("datetime64[us]")


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-01-31", "2024-02-29"], "2024-01-31"),
        (["01/31/2024", "02/29/2024"], "2024-01-31"),
        (["31.01.2024", "29.02.2024"], "2024-01-31"),
        (["2024-01-31 06:30:00", "2024-02-01 06:30:00"], "2024-01-31T06:30"),
        (["1991-07", "1991-08"], "1991-07-01"),
        (["1991 Jul", "1991 Aug"], "1991-07-01"),
        ([date(2024, 1, 31), date(2024, 2, 29)], "2024-01-31"),
        ([datetime(2024, 1, 31, 6), datetime(2024, 2, 29)], "2024-01-31T06"),
        (np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[D]"), "2024-01-31"),
        ([20240131, 20240229], "2024-01-31"),
        ([202401.0, 202402.0], "2024-01-01"),
        (["2024-01-31T06:30:00Z", "2024-02-29T06:30:00Z"], "2024-01-31T06:30"),
    ],
)
def test_dates_are_read_in_the_forms_that_people_write(cells, first):
    read = read_times(cells)
    assert read.dtype == np.dtype("datetime64[us]")
    assert read[0] == np.datetime64(first)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2024-01-31", "soon"], "'soon' is neither"),
        (["2024-01-31", None], "entry 2 is None"),
        ([1.0, np.nan], "must be finite"),
        (np.array(["2024-01-31", "NaT"], dtype="datetime64[D]"), "entry 2 is no date"),
        ([[1.0], [2.0]], "one column"),
        (["2024-01-31", "02/29/2024"], "several forms: '2024-01-31' and '02/29/2024'"),
        (["2024-01-31T00:00+01:00", "2024-02-01T00:00"], "2024-02-01 00:00:00 has none"),
        ([datetime(2024, 1, 31, tzinfo=UTC), datetime(2024, 2, 1)], "2024-02-01 00:00:00 has none"),
    ],
)
def test_what_is_no_time_is_refused_with_its_place(cells, words):
    with pytest.raises(InputError, match=words):
        read_times(cells)


@pytest.mark.parametrize("cells", [[20240131, 20240132], [202412, 202413], [20240131.5], [14920101], [7, 8]])
def test_digits_that_are_no_dates_are_numbers(cells):
    assert read_times(cells).tolist() == cells


def test_clocks_that_change_are_read_in_utc_and_a_clock_that_does_not_as_it_shows():
    """The hour from 2 to 3 comes twice in the autumn: as texts without their offsets it would be one time."""
    texts = ["2024-10-27T02:00:00+02:00", "2024-10-27T02:00:00+01:00"]
    zones = [timezone(timedelta(hours=hours)) for hours in (2, 1)]
    moments = [datetime(2024, 10, 27, 2, tzinfo=zone) for zone in zones]
    for cells in (texts, moments):
        assert np.diff(read_times(cells)).tolist() == [timedelta(hours=1)]
        assert read_times(cells)[0] == np.datetime64("2024-10-27T00:00")
        assert in_utc(cells)
        assert not in_utc(cells[:1])
        assert read_times(cells[:1])[0] == np.datetime64("2024-10-27T02:00")
    assert not in_utc(["2024-10-27", "2024-10-28"])
    assert not in_utc(["2024-10-27T02:00:00Z", "2024-10-27T03:00+00:00", "2024-10-27T04:00:00.5+00"])
    assert not in_utc(np.arange(3.0))


@pytest.mark.parametrize("cell", [None, 3, "2024-01-31"])
def test_one_thing_is_no_column(cell):
    with pytest.raises(InputError, match="must be a column"):
        column_of(cell)


@pytest.mark.parametrize(
    ("times", "unit", "step", "words", "ahead"),
    [
        (months("1949-01", 30), "years", 1 / 12, "month", "1951-07"),
        (months("1949-01", 30)[::3], "years", 1 / 4, "quarter", "1951-07"),
        (months("1949-01", 60)[::12], "years", 1.0, "year", "1954"),
        (
            np.datetime64("2024-01-01", "us") + np.arange(20) * np.timedelta64(1, "D"),
            "days",
            1.0,
            "day",
            "2024-01-21",
        ),
        (
            np.datetime64("2024-01-01", "us") + np.arange(20) * np.timedelta64(7, "D"),
            "days",
            7.0,
            "7 days",
            "2024-05-20",
        ),
        (
            np.datetime64("2024-01-01", "us") + np.arange(20) * np.timedelta64(5, "m"),
            "minutes",
            5.0,
            "5 minutes",
            "2024-01-01 01:40:00",
        ),
        (
            np.datetime64("2024-01-01", "us") + np.arange(20) * np.timedelta64(1, "h"),
            "hours",
            1.0,
            "hour",
            "2024-01-01 20:00:00",
        ),
    ],
)
def test_steps_of_the_calendar(times, unit, step, words, ahead):
    axis = axis_of(times)
    assert (axis.unit, axis.step_words) == (unit, words)
    assert axis.step == pytest.approx(step)
    assert axis.written(axis.ahead(times[-1], 1)[0]) == ahead
    counted = axis.count(times)
    assert counted[-1] == 0
    np.testing.assert_allclose(np.diff(counted), step, rtol=1e-9)
    assert np.abs(axis.back(counted) - times).max() <= np.timedelta64(1, "s")


def test_the_last_day_of_a_month_stays_the_last():
    ends = months("2023-02", 13).astype("datetime64[D]") - 1
    ahead = axis_of(ends.astype("datetime64[us]")).ahead(ends[-1].astype("datetime64[us]"), 3)
    assert ahead.astype("datetime64[D]").astype(str).tolist() == ["2024-02-29", "2024-03-31", "2024-04-30"]


def test_missing_dates_are_counted_and_change_no_step():
    days = np.datetime64("2024-01-01", "us") + np.arange(100) * np.timedelta64(1, "D")
    axis = axis_of(np.delete(days, [3, 4, 50]))
    assert (axis.missing, axis.step) == (3, 1.0)
    some_months = np.delete(months("1960-01", 60), [7, 8, 9])
    axis = axis_of(some_months)
    assert (axis.missing, axis.months) == (3, 1)


def test_months_of_28_to_31_days_are_one_step_of_a_year_in_numbers_too():
    days = np.cumsum([0, *([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] * 4)]) / 365
    axis = axis_of(1960 + days, "years")
    assert axis.step_words == "month"
    assert axis.missing == 0


def test_periods_of_the_calendar_are_held_twice_and_have_two_steps():
    days = np.datetime64("2024-01-01", "us") + np.arange(900) * np.timedelta64(1, "D")
    assert axis_of(days).calendar_periods(899.0) == (7.0, 365.25)
    assert axis_of(days).calendar_periods(300.0) == (7.0,)
    assert axis_of(np.arange(50.0)).calendar_periods(49.0) == ()


def test_steps_of_many_units_are_written_out():
    assert axis_of(1_700_000_000 + 86_400.0 * np.arange(9)).step_words == "86400"
    assert axis_of(0.125 * np.arange(9)).step_words == "0.125"


def test_texts_that_are_no_dates_are_none():
    assert dates_of_texts(["a", "b"]) is None
