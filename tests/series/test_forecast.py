"""`mercer.forecast`: series made by hand, words that can be computed again, bad series."""

import importlib
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer
from mercer.errors import InputError, ParameterError
from mercer.scales import Scale
from mercer.series.mixture import LEAST
from mercer.series.pictures import apart
from mercer.series.study import possible_scales
from mercer.structure.vocabulary import rounded


def monthly(n: int = 96, seed: int = 0, *, grows: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    months = (np.datetime64("2010-01", "M") + np.arange(n)).astype("datetime64[D]")
    k = np.arange(n)
    y = 50 + 0.1 * k + 3 * np.sin(2 * np.pi * k / 12) + 0.4 * rng.normal(size=n)
    if grows:
        y = np.exp(0.03 * k + 0.25 * np.sin(2 * np.pi * k / 12) + 0.03 * rng.normal(size=n))
    return months, y


@pytest.fixture(scope="module")
def found():
    months, y = monthly()
    return mercer.forecast(months[:-12], y[:-12], horizon=12, verbose=0, name="sales", unit="t")


def test_a_line_with_a_season_goes_on(found):
    months, y = monthly()
    assert np.array_equal(found.times.astype("datetime64[D]"), months[-12:])
    assert np.sqrt(np.mean((found.mean - y[-12:]) ** 2)) < 1.0
    lower, upper = found.interval()
    assert np.mean((y[-12:] >= lower) & (y[-12:] <= upper)) >= 0.75
    assert np.all(lower < found.mean)
    assert np.all(found.mean < upper)


def test_wider_levels_are_wider_and_the_median_lies_between(found):
    ends = [found.interval(level) for level in (0.5, 0.8, 0.95, 0.99)]
    for (low, high), (lower, higher) in pairwise(ends):
        assert np.all(lower < low)
        assert np.all(high < higher)
    assert np.all((found.median > ends[0][0]) & (found.median < ends[0][1]))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        found.interval(95)


def test_the_terms_add_up_to_the_leading_model(found):
    terms = found.terms
    fitted = found.leading
    values = fitted.member.values
    t = np.concatenate([found.series.t, found.series.axis.count(found.times)])
    mean = values.centre + values.spread * fitted.model.predict(t[:, None])
    np.testing.assert_allclose(terms.total_mean, mean, rtol=1e-8, atol=1e-8)


def test_every_number_of_the_words_is_computed_again(found):
    fitted = found.leading
    values = fitted.member.values
    terms = fitted.model.decompose(values.t[:, None])
    left = values.z - terms.mean.sum(axis=0) - terms.offset
    variances = np.array([*(np.var(each) for each in terms.mean), np.var(left)])
    shares = sorted(variances[:-1] / variances.sum(), reverse=True)
    spoken = found.term_words()
    for said, share in zip(spoken[:-1], shares, strict=True):
        assert said.share == pytest.approx(share, abs=1e-9)
        assert said.numbers[-1].shown in said.text
    by_role = {said.role: said for said in spoken}
    at = {p.name: p.value for p in fitted.kernel.parameters}
    noise = next(value for name, value in at.items() if name.endswith("noise"))
    assert by_role["noise"].numbers[0].value == pytest.approx(values.spread * np.sqrt(noise))
    for said in spoken:
        for number in said.numbers:
            assert number.shown in said.text
            if number.of not in ("share", "place"):
                assert rounded(number.value) in number.shown
    assert any(said.role == "season" and "yearly pattern" in said.text for said in spoken)


def test_a_season_has_no_level_of_its_own(found):
    """Its mean over the period around any time is next to nothing beside its height."""
    fitted = found.leading
    t = fitted.member.values.t
    season = fitted.member.shape.roles().index("season")
    phases = (np.arange(64) + 0.5) / 64 - 0.5
    over_a_year = np.array([fitted.model.decompose(t[:, None] + p).mean[season] for p in phases])
    assert np.abs(over_a_year.mean(axis=0)).max() < 0.02 * over_a_year.std()


def test_the_words_of_the_back_test_are_its_numbers(found):
    total = sum(origin.values for origin in found.origins)
    inside = sum(origin.inside for origin in found.origins)
    assert found.coverage == inside / total
    assert f"held {inside} of the {total} values" in " ".join(found.words)
    assert found.widening >= LEAST
    assert f"the average of {len(found.fitted)} of {found.tried} models" in " ".join(found.words)


def test_the_same_series_gives_the_same_forecast(found):
    months, y = monthly()
    again = mercer.forecast(months[:-12], y[:-12], horizon=12, verbose=0)
    assert np.array_equal(again.mean, found.mean)
    assert str(again.kernel) == str(found.kernel)


def test_other_times_are_answered_by_the_same_models(found):
    later = found.at(["2018-06-01", "2018-01-01"])
    assert np.array_equal(later.mean[1], found.at(["2018-01-01"]).mean[0])
    with pytest.raises(InputError, match="dates for dates"):
        found.at([1.0, 2.0])


def test_columns_of_pandas_and_polars_and_a_series_with_an_index_are_the_same():
    months, y = monthly(48)
    plain = mercer.forecast(months, y, horizon=3, verbose=0)
    indexed = mercer.forecast(
        pd.Series(y, index=pd.DatetimeIndex(months), name="sales"), horizon=3, verbose=0
    )
    polar = mercer.forecast(pl.Series(months), pl.Series("sales", y), horizon=3, verbose=0)
    texts = mercer.forecast([str(month) for month in months], y.tolist(), horizon=3, verbose=0)
    for other in (indexed, polar, texts):
        assert np.array_equal(other.mean, plain.mean)
    assert indexed.series.name == polar.series.name == "sales"


def test_rows_in_any_order_and_without_values_are_the_same_series():
    months, y = monthly(48)
    order = np.random.default_rng(0).permutation(48)
    holes = y.copy()
    holes[[5, 20]] = np.nan
    mixed = mercer.forecast(months[order], holes[order], horizon=3, verbose=0)
    without = mercer.forecast(np.delete(months, [5, 20]), np.delete(y, [5, 20]), horizon=3, verbose=0)
    assert np.array_equal(mixed.mean, without.mean)
    assert mixed.series.without_value == 2
    assert "2 times have no value" in " ".join(mixed.words)
    assert "2 of the times between them are missing" in " ".join(mixed.words)


def test_growth_in_percent_is_seen_on_the_logarithm():
    months, y = monthly(grows=True)
    found = mercer.forecast(months[:-12], y[:-12], horizon=12, verbose=0)
    assert found.scale.power == 0
    assert np.sqrt(np.mean((np.log(found.mean) - np.log(y[-12:])) ** 2)) < 0.1
    assert np.all(found.interval(0.999)[0] > 0)


def test_counts_have_no_band_below_zero_and_roots_are_spoken_at_the_median(monkeypatch):
    monkeypatch.setattr("mercer.series.study.candidates", lambda y: (Scale(0.5, 1.0),))
    rng = np.random.default_rng(2)
    y = rng.poisson(4 + 3.5 * np.sin(2 * np.pi * np.arange(84) / 12))
    found = mercer.forecast(np.arange(84.0), y, horizon=12, verbose=0, name="visits")
    lower, upper = found.interval(0.99)
    assert lower.min() == 0
    assert np.all(upper > 0)
    assert "The values are counts" in " ".join(found.words)
    scale = found.scale
    assert scale == Scale(0.5, 1.0)
    assert "(sizes are those at the median)" in " ".join(found.words)
    values = found.leading.member.values
    noise = next(p.value for p in found.kernel.parameters if p.name.endswith("noise"))
    # how far y moves at its median where the scale moves by one deviation of the noise
    slope = 1 / ((np.median(y) + scale.shift) ** (scale.power - 1))
    said = found.term_words()[-1]
    assert said.numbers[0].value == pytest.approx(values.spread * np.sqrt(noise) * slope)
    assert said.numbers[0].shown in said.text


def test_zeros_have_scales_after_a_shift_and_positive_values_the_logarithm():
    zeros = np.arange(20.0)
    assert [(s.power, s.shift) for s in possible_scales(zeros)] == [
        (1.0, 0.0),
        (0.0, 1.0),
        (1 / 3, 1.0),
        (0.5, 1.0),
    ]
    assert possible_scales(zeros + 1) == (Scale(), Scale(0.0))
    assert possible_scales(zeros - 1) == possible_scales(zeros + 1000) == (Scale(),)


def test_a_step_and_an_outlier_are_stated():
    rng = np.random.default_rng(4)
    days = np.datetime64("2024-01-01") + np.arange(150)
    y = 20 + rng.normal(size=150)
    y[100:] -= 30
    y[40] += 40
    found = mercer.forecast(days, y, horizon=10, verbose=0)
    assert "a step down at 2024-04-1" in " ".join(found.words)
    assert [str(time)[:10] for time in found.outliers] == ["2024-02-10"]
    assert np.abs(found.mean + 10).max() < 3


@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize("place", ["mercer.series.study.backtested", "mercer.series.door.refined"])
def test_ctrl_c_keeps_what_there_is(monkeypatch, place, call):
    module, name = place.rsplit(".", 1)
    own = getattr(importlib.import_module(module), name)
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return own(*arguments)

    monkeypatch.setattr(place, interrupted)
    months, y = monthly(48)
    nothing_yet = name == "backtested" and call == 1
    with pytest.raises(KeyboardInterrupt) as stop:
        mercer.forecast(months, y, horizon=3, verbose=0)
    assert isinstance(stop.value, mercer.Interrupted) is not nothing_yet
    if not nothing_yet:
        kept = stop.value.model
        assert np.isfinite(kept.mean).all()
        assert "interrupted" in " ".join(kept.words)


def test_the_seconds_end_the_search():
    months, y = monthly()
    found = mercer.forecast(months, y, horizon=6, max_seconds=1e-3, verbose=0)
    assert len(found.fitted) == 1
    assert np.isfinite(found.mean).all()
    assert "The seconds were over when 1 model was tried" in " ".join(found.words)


def test_all_models_are_tried_where_no_seconds_are_given(found):
    assert not found.late
    assert found.tried == 10
    assert "seconds were over" not in " ".join(found.words)


@pytest.mark.parametrize(
    ("times", "values", "words"),
    [
        (np.arange(20.0), np.ones(20), "nothing to learn"),
        ([1.0, 2.0], [1.0, 2.0], "at least 8 values"),
        (np.repeat(np.arange(10.0), 2), np.arange(20.0), "10 times occur more than once, first 0.0"),
        (["2024-01-01"] + [f"2024-01-{d:02d}" for d in range(1, 20)], range(20), "1 time .* 2024-01-01. K"),
        (np.arange(20.0), np.full(20, np.nan), "no time has a value"),
        (np.arange(20.0), 1e200 * np.arange(20.0), "another unit"),
        (np.arange(20.0), 1e-200 * np.arange(20.0), "another unit"),
        (np.arange(20.0), ["a"] * 20, "which is no number"),
        (np.arange(20.0), [np.inf] * 20, "value 1 is inf"),
        (np.arange(19.0), np.arange(20.0), "19 times and 20 values"),
        (["soon"] * 20, np.arange(20.0), "neither"),
        (np.arange(20.0), np.ones((20, 2)), "one column"),
        ("2024", None, "times and values"),
    ],
)
def test_bad_series_get_a_sentence(times, values, words):
    with pytest.raises(InputError, match=words):
        mercer.forecast(times, values, verbose=0)


@pytest.mark.parametrize(
    "options", [{"horizon": 0}, {"horizon": 2.5}, {"horizon": 3, "at": [30.0]}, {"level": 95}]
)
def test_bad_wishes_get_a_sentence(options):
    with pytest.raises(ParameterError):
        mercer.forecast(np.arange(20.0), np.random.default_rng(0).normal(size=20), verbose=0, **options)


def test_a_gap_of_ten_years_and_eight_values_are_answered():
    rng = np.random.default_rng(1)
    years = np.concatenate([np.arange(1950.0, 1980), np.arange(1990.0, 2010)])
    gap = mercer.forecast(years, np.cumsum(rng.normal(size=50)), horizon=5, verbose=0, unit_of_time="years")
    assert gap.series.axis.missing == 10
    few = mercer.forecast(np.arange(8.0), rng.normal(size=8), horizon=2, verbose=0)
    assert np.isfinite([*few.mean, *few.interval()[0]]).all()


def test_very_many_values_are_answered():
    t = np.arange(100_000.0)
    y = np.sin(2 * np.pi * t / 50) + 0.1 * np.random.default_rng(0).normal(size=len(t))
    found = mercer.forecast(t, y, horizon=50, max_seconds=5, verbose=0)
    ahead = np.sin(2 * np.pi * np.arange(100_000, 100_050) / 50)
    assert np.sqrt(np.mean((found.mean - ahead) ** 2)) < 0.3
    held = np.sort(found.leading.model.X_fit_[:, 0])
    assert len(held) == 3000
    # the last ones follow each other without a gap
    assert np.array_equal(held[-1800:], found.series.t[-1800:])
    assert "rests on 3000 of them: the last 1800, and" in " ".join(found.words)


def test_the_page_holds_what_the_forecast_says_and_escapes_names(tmp_path):
    months, y = monthly(48)
    found = mercer.forecast(months, y, horizon=6, verbose=0, name="<b>sales</b>")
    page = found.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "<b>sales</b>" not in page
    assert "&lt;b&gt;sales" in page
    assert f"{found.coverage:.0%}" in page
    with pytest.raises(mercer.errors.OutputError, match="exists"):
        found.report(tmp_path / "page.html")


def test_no_line_is_drawn_across_missing_times():
    days = np.datetime64("2024-01-01", "us") + np.array([0, 1, 2, 6, 7]) * np.timedelta64(1, "D")
    times, values = apart(days, np.arange(5.0))
    assert np.array_equal(values, [0, 1, 2, np.nan, 3, 4], equal_nan=True)
    assert times[3] == np.datetime64("2024-01-05")
    months, y = monthly(24)
    assert all(np.array_equal(a, b) for a, b in zip(apart(months, y), (months, y), strict=True))


def test_the_dates_below_a_picture_do_not_run_into_each_other(found):
    figure = found.plot()
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert len(boxes) >= 2
        for left, right in pairwise(sorted(boxes, key=lambda box: box.x0)):
            assert left.x1 < right.x0


def test_one_model_is_no_average_and_steps_are_left_out_in_words():
    found = mercer.forecast(
        np.arange(200.0), np.sin(np.arange(200)), horizon=100, max_seconds=1e-3, verbose=0
    )
    page = found.report()
    assert "One model was tried." in page
    assert "these are averaged" not in page
    assert "One step in 2 is shown" in page


def test_everything_as_plain_numbers_agrees(found):
    told = found.to_dict()
    assert told["schema"] == "mercer.forecast/1"
    assert [row["mean"] for row in told["forecast"]] == found.mean.tolist()
    assert told["backtest"]["coverage"] == found.coverage
    frame = found.to_frame()
    assert frame.columns == ["time", "mean", "lower", "upper"]
    assert frame["mean"].to_list() == found.mean.tolist()
    assert str(frame["time"][0]) == "2017-01-01"
