"""Doors are moved to where the evidence is largest, and what is proposed where two patterns meet."""

from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import RBF, After, Before, GaussianProcessRegressor, Linear, Periodic, White
from mercer.arrays import Rows
from mercer.structure import grammar, places, proposals, scoring


def sample_of(x, y, splits=()):
    return scoring.Sample(Rows(np.reshape(x, (len(y), -1)), "X"), np.asarray(y), tuple(splits), 1)


def changing(place, width):
    return (
        1.0 * RBF(2.5) * Linear().of(Before(place, width))
        + 1.0 * Periodic(0.6) * Linear().of(After(place, width))
        + White(0.02)
    )


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6, 7])
def test_a_door_that_is_some_rows_off_and_too_wide_costs_nothing_in_the_end(seed):
    t = np.linspace(0.0, 10.0, 150)
    truth = changing(6.3, 0.04)
    y = GaussianProcessRegressor(truth).sample_y(t[:, None], random_state=seed, noise=True).ravel()
    sample = sample_of(t, (y - y.mean()) / y.std())
    # periods take short steps, as in the search
    inverse = scoring.guessed_curvature(truth, 10.0)
    begun = [scoring.Candidate(k, -np.inf, 150, inverse=inverse) for k in (truth, changing(6.0, 0.1))]
    best, off = (scoring.settled(candidate, sample) for candidate in begun)
    found = places.with_moved_doors(off, sample)
    assert found.log_evidence > best.log_evidence - 1.0
    assert found.log_evidence > off.log_evidence + 1.0


def test_both_doors_of_a_window_are_moved():
    t = np.linspace(0.0, 10.0, 200)
    y = np.where((t > 3.0) & (t < 7.0), 1.0, -1.0) + 0.05 * np.random.default_rng(0).normal(size=200)
    window = 4.0 * Linear().of(After(2.7, 0.1)) * Linear().of(Before(7.4, 0.1)) + 1.0 * Linear().of(
        After(-5.0, 0.1)
    )
    found = places.with_moved_doors(scoring.Candidate(window + White(0.1), -np.inf, 200), sample_of(t, y))
    inside = [place for place in grammar.gate_places(found.kernel) if place > 0]
    assert inside == pytest.approx([3.0, 7.0], abs=0.1)


def test_a_kernel_without_doors_is_left_alone():
    t = np.linspace(0.0, 10.0, 30)
    candidate = scoring.Candidate(1.0 * RBF(1.0) + White(0.1), -np.inf, 30)
    assert places.with_moved_doors(candidate, sample_of(t, np.sin(t))) is candidate


@pytest.mark.parametrize(("slow", "fast"), [(2.25, 2.25 / 6), (2.14, 2.14 / 5), (2.3, 0.47)])
def test_a_fast_pattern_on_the_harmonics_of_a_slow_one_is_proposed(slow, fast):
    t = np.linspace(0.0, 10.0, 200)
    truth = 1.0 * Periodic(slow, lengthscale=0.8) + 0.5 * Periodic(fast, lengthscale=2.0) + White(0.03)
    line = proposals.Line.of(t)
    hits = 0
    for seed in range(10):
        y = GaussianProcessRegressor(truth).sample_y(t[:, None], random_state=seed, noise=True).ravel()
        periods = proposals.two_periods_of(t, proposals.detrended(t, y), line)
        hits += all(any(abs(own / p - 1) < 0.05 for own in periods) for p in (slow, fast))
    assert hits >= 7


def test_two_patterns_whose_periods_divide_are_told_apart():
    t = np.linspace(0.0, 10.0, 200)
    y = np.sin(2 * np.pi * t / 2.25) + 0.6 * np.cos(4 * np.pi * t / 2.25 + 1)
    y += 0.35 * np.sin(2 * np.pi * t * 6 / 2.25) + 0.25 * np.random.default_rng(0).normal(size=200)
    found = mercer.choose.structure(t, y, rounds=2, verbose=0)
    periods = grammar.periods_in(mercer.parse(found.kernel))
    for period in (2.25, 0.375):
        assert any(abs(own / period - 1) < 0.05 for own in periods)


def test_a_column_that_never_varied_does_not_rule_a_row_where_it_does():
    # the deviation of equal numbers is not 0 but rounding, and in units of it every other number is far away
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1.0, 1.0, size=(60, 2)), np.full(60, 0.003)])
    assert 0 < X.std(axis=0)[2] < 1e-12
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    sample = sample_of(X, (y - y.mean()) / y.std())
    for kernel in proposals.first_of_table(sample, [0, 1, 2]):
        mean, variance = scoring.predicted(kernel + White(0.1), sample, sample_of([[0.0, 0.0, 0.004]], [0.0]))
        assert abs(mean[0]) < 10
        assert variance[0] < 10


def test_a_change_that_comes_after_an_origin_is_not_known_before_it():
    # a jump in the last tenth: whoever put a door there had seen the rows that are held out
    t = np.linspace(0.0, 10.0, 100)
    y = np.sin(t) + 2.0 * (t > 9.3) + 0.1 * np.random.default_rng(0).normal(size=100)
    sample = replace(sample_of(t, (y - y.mean()) / y.std(), scoring.rolling(np.arange(100))), ordered=True)
    plain = 1.0 * RBF(2.0) + White(0.02)
    jump = 1.0 * RBF(2.0) + 1.0 * Linear().of(After(9.3, 0.05)) + White(0.02)
    with_door, without = (scoring.judged(scoring.Candidate(k, -np.inf, 100), sample) for k in (jump, plain))
    assert with_door.blocks == pytest.approx(without.blocks, abs=1e-6)
    # while one before all origins is known to all
    early = 1.0 * RBF(2.0) + 1.0 * Linear().of(After(3.0, 0.05)) + White(0.02)
    assert grammar.foreseen(early, 7.0) is early
