"""Periods that are there are found, and those that are not are not."""

import numpy as np
import pytest

from mercer.series.periods import averaged, find_periods


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("period", [4.0, 7.0, 12.0, 24.0])
def test_a_pattern_is_found_on_a_level_that_wanders(seed, period):
    rng = np.random.default_rng(seed)
    t = np.arange(20 * period)
    y = np.cumsum(0.3 * rng.normal(size=len(t))) + 2 * np.sin(2 * np.pi * t / period)
    y += 0.8 * np.cos(4 * np.pi * t / period) + 0.2 * rng.normal(size=len(t))
    found = find_periods(t, y)
    assert found
    assert min(abs(each.period - period) for each in found) < 0.02 * period


def test_a_level_that_wanders_has_hardly_ever_a_period():
    count = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        t = np.arange(200.0)
        count += bool(find_periods(t, np.cumsum(rng.normal(size=200))))
    assert count <= 4


def test_two_patterns_are_found_in_irregular_times():
    rng = np.random.default_rng(1)
    t = np.sort(rng.choice(1000, 700, replace=False)).astype(float)
    y = np.sin(2 * np.pi * t / 7) + 2 * np.sin(2 * np.pi * t / 30.5) + 0.1 * rng.normal(size=700)
    periods = sorted(each.period for each in find_periods(t, y))
    assert len(periods) >= 2
    assert any(abs(p - 7) < 0.05 for p in periods)
    assert any(abs(p - 30.5) < 0.5 for p in periods)


def test_a_slow_pattern_of_the_calendar_shows_among_many_values():
    rng = np.random.default_rng(2)
    t = np.arange(1500.0)
    y = np.sin(2 * np.pi * t / 365.25) + rng.normal(size=1500)
    assert [each.period for each in find_periods(t, y, [7.0, 365.25])] == [365.25]


def test_nothing_is_found_in_nothing():
    assert find_periods(np.arange(50.0), np.zeros(50)) == []
    assert find_periods(np.arange(5.0), np.arange(5.0)) == []


def test_averages_over_blocks_are_those_of_a_loop():
    rng = np.random.default_rng(3)
    t = np.sort(rng.uniform(0, 30, 80))
    y = rng.normal(size=80)
    times, values = averaged(t, y, 3.0)
    blocks = [np.flatnonzero((t - t[0]) // 3.0 == b) for b in range(10)]
    np.testing.assert_allclose(times, [t[b].mean() for b in blocks if len(b)])
    np.testing.assert_allclose(values, [y[b].mean() for b in blocks if len(b)])
