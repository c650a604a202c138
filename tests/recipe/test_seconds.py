"""The seconds of a fit: who gets how many, by clocks that are turned by hand."""

from __future__ import annotations

import types

import numpy as np
import polars
import pytest

import mercer
from mercer import clock
from mercer.cli import fit as command
from mercer.progress import Talk
from mercer.recipe import estimate, estimators, ladder, tournament
from mercer.recipe.given import Given
from mercer.recipe.kept import sample_of
from mercer.report import columns


class Hand:
    """A clock that only moves when it is moved."""

    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time


@pytest.fixture
def hand(monkeypatch):
    moved = Hand()
    monkeypatch.setattr(clock, "now", moved)
    return moved


# ── the machine ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_pace_is_what_a_row_and_a_pair_take(hand):
    def kernel(rows, others):
        a, b = len(rows), len(others)
        hand.time += 0.7 + (a + b) * 2e-4 + a * b * 3e-6

    given = Given.of(polars.DataFrame({"a": np.arange(5000.0)}))
    found = ladder.pace_of(kernel, given, 0)
    assert found.row == pytest.approx(2e-4) and found.pair == pytest.approx(3e-6)
    assert ladder.pace_of(kernel, Given.of(np.zeros((5, 1))), 0) == ladder.Pace()


@pytest.mark.parametrize("pace", [ladder.Pace(), ladder.Pace(2e-4, 5e-7), ladder.Pace(0.0, 1e-5)])
@pytest.mark.parametrize("n", [4000, 30_000])
@pytest.mark.parametrize("seconds", [3.0, 20.0, 200.0])
def test_landmarks_are_as_many_as_the_seconds_are_enough_for(monkeypatch, pace, n, seconds):
    factor = 0.2
    monkeypatch.setattr(ladder, "seconds_of_factor", lambda m, dtype: factor * (m / 2000) ** 3)
    means = ladder.Means(2**40, seconds, 0, pace)

    def cost(m):
        return 2 * n * (pace.row + m * pace.pair) + 6 * n * m**2 * factor / 2000**3

    m = ladder._landmarks(n, means)
    assert ladder.LEAST_LANDMARKS <= m <= ladder.MOST_LANDMARKS
    if m > ladder.LEAST_LANDMARKS:
        assert cost(m) <= means.for_machine * (1 + 1e-9)
    if m < ladder.MOST_LANDMARKS:
        assert cost(m + 1) > means.for_machine * (1 - 1e-9)


def test_kernels_compete_for_the_seconds_that_are_left(monkeypatch):
    """They had shares of all seconds, however many had gone to reading the columns."""
    moved = Hand()
    monkeypatch.setattr(estimators, "time", types.SimpleNamespace(monotonic=moved))
    asked = []
    compete = tournament.compete
    field = tournament.field_of

    def slow_field(*args):
        moved.time += 30.0
        return field(*args)

    def noted(*args, **kwargs):
        asked.append(kwargs["max_seconds"])
        return compete(*args, **kwargs)

    monkeypatch.setattr(tournament, "field_of", slow_field)
    monkeypatch.setattr(tournament, "compete", noted)
    rng = np.random.default_rng(0)
    table = polars.DataFrame({"a": rng.normal(size=40)})
    mercer.TableRegressor(max_seconds=100.0, verbose=0).fit(table, rng.normal(size=40))
    assert asked == [70.0]


# ── the estimate ────────────────────────────────────────────────────────────────────────────────────────────


def test_folds_are_as_many_as_there_is_time_for():
    rng = np.random.default_rng(1)
    table = polars.DataFrame({"a": rng.normal(size=60)})
    y = np.where(table["a"].to_numpy() > 0, "above", "below")
    machine = mercer.GaussianProcessClassifier('RBF(1.0).on("a")', optimizer=None)
    given = Given.of(table)
    whole = estimate.by_folds(machine, given, y, 0, Talk(0))
    with clock.within(0.0):
        one = estimate.by_folds(machine, given, y, 0, Talk(0))
    assert len(whole.rows) == 60 and "5 folds over 60 rows" in whole.how
    assert len(one.rows) == 12 and "1 of 5 folds" in one.how
    # the fold was not cut short: what it says of its rows is what it says with all the time there is
    np.testing.assert_array_equal(one.spread, whole.spread[one.rows])
    np.testing.assert_array_equal(one.truth, y[one.rows])


# ── the command and its report ──────────────────────────────────────────────────────────────────────────────


def test_the_fit_leaves_seconds_for_what_comes_after_it(hand):
    assert command.seconds_for_fit(None, None, report=True) is None
    assert command.seconds_for_fit(60.0, 160.0, report=False) == 60.0
    assert command.seconds_for_fit(100.0, 200.0, report=True) == 100.0 - command.SHARE_OF_REPORT * 100.0
    assert command.seconds_for_fit(20.0, 120.0, report=True) == 20.0 - command.LEAST_OF_REPORT
    hand.time += 59.0
    assert command.seconds_for_fit(60.0, 160.0, report=True) == command.LEAST_OF_FIT * 60.0


def test_columns_are_left_out_on_as_many_rows_as_there_is_time_for(monkeypatch):
    rng = np.random.default_rng(2)
    table = polars.DataFrame({"a": rng.normal(size=900), "b": rng.normal(size=900)})
    y = table["a"].to_numpy() + 0.1 * rng.normal(size=900)
    model = mercer.fit(table, y, verbose=0, kernel='RBF(1.0).on("a", "b")')
    sample = sample_of(model)
    kernel = model.kernel_

    def left_out():
        return columns.leave_out_columns(kernel, sample, ["a", "b"], task="numbers")

    assert "900 rows" in left_out().how and len(left_out().columns) == 2
    with clock.within(3600.0):
        assert "900 rows" in left_out().how
    monkeypatch.setattr(columns, "SHARE_FOR_COLUMNS", 1e-9)
    with clock.within(3600.0):
        few = left_out()
    assert few.how.split("on ")[-1].startswith(f"{columns.TRIED_ROWS} rows drawn") and len(few.columns) == 2
    with clock.within(0.0):
        none = left_out()
    assert none.columns == () and none.late == ("a", "b")


# ── what a note quotes ──────────────────────────────────────────────────────────────────────────────────────


def test_a_note_quotes_no_kernel_that_is_longer_than_the_note():
    """The certificate of a table with texts printed its whole vocabulary, 240 000 letters."""
    words = [f"word{k} and{k % 7} more{k % 11}" for k in range(60)]
    long = mercer.Nystroem(mercer.Text("words", weighting="idf"), n_components=20, random_state=0).fit(words)
    assert len(str(long.kernel_)) > 500
    assert long.describe().startswith("the kernel replaced by 20 Nyström features")
    short = mercer.Nystroem("RBF(1.0)", n_components=2, random_state=0).fit(np.arange(6.0)[:, None])
    assert short.describe().startswith("RBF(1.0) replaced by 2 Nyström features")
