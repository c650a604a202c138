"""Very many rows: as many are taken as the seconds are enough for, and the model is never worse for it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars
import pytest

import mercer
from mercer import clock
from mercer.progress import Talk
from mercer.recipe import estimate, tournament
from mercer.recipe.given import Given
from mercer.tables.propose import roles_of


def many_rows(n=3000):
    rng = np.random.default_rng(5)
    table = polars.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n)})
    y = np.sin(3 * table["a"].to_numpy()) + 0.05 * rng.normal(size=n)
    return Given.of(table), y


def judged(machine, given, y, seconds):
    with warnings.catch_warnings(), clock.within(seconds):
        warnings.simplefilter("ignore")
        return estimate.by_rows_kept_out(machine, given, y, 0, Talk(0))


FALKON = mercer.FalkonRegressor('RBF(1.0).on("a")', 40, 1e-2, random_state=0)


@pytest.mark.parametrize(
    ("share", "rows", "words"),
    [(1e-12, 200, "of the others. The seconds were not enough"), (1e9, None, "the other")],
)
def test_as_many_rows_are_taken_as_the_seconds_are_enough_for(monkeypatch, share, rows, words):
    monkeypatch.setattr(estimate, "TRIAL_ROWS", 200)
    monkeypatch.setattr(estimate, "SHARE_FOR_ROWS", share)
    given, y = many_rows()
    found, told = judged(FALKON, given, y, 600.0)
    expected = rows or len(y) - len(told.rows)
    assert f"{expected} of the others" in told.how or f"the other {expected}" in told.how
    assert words in told.how and told.measures["r2"] > 0.98
    assert found.machine.n_rows_fit_ == expected
    assert found.count == expected
    # what the machine is said to be for is not what it was fitted to, and that is said too
    said = estimate.said_of_rows(found, told, len(y))
    assert said == ([f"The seconds were enough to fit it to {rows} of these rows."] if rows else [])


def test_the_steps_say_how_many_rows_the_seconds_were_enough_for(monkeypatch):
    monkeypatch.setattr(estimate, "TRIAL_ROWS", 200)
    monkeypatch.setattr(estimate, "SHARE_FOR_ROWS", 1e-12)
    given, y = many_rows()
    model = mercer.TableRegressor(
        'RBF(1.0).on("a")', "landmarks", max_seconds=600.0, memory="1MiB", verbose=0
    )
    model.fit(given.table, y)
    assert model.machine_.n_rows_fit_ < 1000 and model.n_rows_fit_ == len(y)
    said = f"The seconds were enough to fit it to {model.machine_.n_rows_fit_} of these rows."
    assert said in model.steps_ and said in model.summary()


def test_a_fit_that_the_seconds_cut_short_is_not_the_model(monkeypatch):
    """It was: 500 000 rows ended before the first step, and the model predicted the mean."""
    monkeypatch.setattr(estimate, "TRIAL_ROWS", 200)
    fit = estimate.Fitted.to

    def cut_short(machine, rows, y):
        if len(y) > 1000:
            y = np.concatenate([np.full(len(y) - 1, y.mean()), [y.mean() + 1e-3]])
        return fit(machine, rows, y)

    monkeypatch.setattr(estimate.Fitted, "to", staticmethod(cut_short))
    monkeypatch.setattr(estimate, "SHARE_FOR_ROWS", 1e9)
    given, y = many_rows()
    found, told = judged(FALKON, given, y, 600.0)
    assert found.machine.n_rows_fit_ == 200
    assert told.measures["r2"] > 0.98 and "the seconds ended too early" in told.how


def test_some_rows_have_every_class(monkeypatch):
    labels = np.array(["rare"] + ["often"] * 500 + ["seldom"] * 3)
    for seed in range(20):
        chosen = estimate.some_of(np.arange(len(labels)), 10, seed, labels)
        assert len(chosen) == 10 and set(labels[chosen]) == set(labels)
        assert np.all(np.diff(chosen) > 0)
    monkeypatch.setattr(estimate, "TRIAL_ROWS", 200)
    given, y = many_rows()
    words = np.where(y > 0, "above", "below")
    machine = mercer.FalkonClassifier('RBF(1.0).on("a")', 40, 1.0, random_state=0)
    _, told = judged(machine, given, words, 600.0)
    assert told.measures["accuracy"] > 0.9


def test_kernels_of_very_many_rows_learn_from_some_of_them(monkeypatch):
    """Two million rows took minutes before the first kernel was tried, whatever the seconds were."""
    given, _ = many_rows()
    roles = roles_of(given.table)
    of_all = tournament.field_of(given, roles, Talk(0)).contenders
    monkeypatch.setattr(tournament, "MOST_READ", 1000)
    of_some = tournament.field_of(given, roles, Talk(0)).contenders
    assert [found.words for found in of_some] == [found.words for found in of_all]
    drawn = np.sort(np.random.default_rng(0).permutation(len(given))[:1000])
    again = tournament.field_of(Given(given.rows(drawn), given.names), roles, Talk(0)).contenders
    assert [str(found.kernel) for found in of_some] == [str(found.kernel) for found in again]
    assert [str(found.kernel) for found in of_some] != [str(found.kernel) for found in of_all]


def test_reading_the_columns_is_no_silence(capsys, monkeypatch):
    """Columns of text took twenty seconds to be read, and nothing was said."""
    monkeypatch.setattr(Talk, "SILENCE", 0.0)
    given, _ = many_rows(50)
    found = tournament.field_of(given, roles_of(given.table), Talk(1)).contenders
    said = capsys.readouterr().err
    for number in range(len(found)):
        assert f"reading the columns for kernel {number + 1} of {len(found)}" in said


def test_reading_the_columns_ends_with_its_share_of_the_seconds(monkeypatch):
    """Of twenty seconds fifteen went to reading texts for twelve kernels, and one kernel was tried."""
    given, _ = many_rows(50)
    roles = roles_of(given.table)
    all_read = tournament.field_of(given, roles, Talk(0))
    assert len(all_read.contenders) == all_read.wanted > 1
    hands = iter(range(0, 10_000, 3))
    monkeypatch.setattr(tournament.clock, "now", lambda: float(next(hands)))
    # reading has a tenth of the seconds; each look at the clock moves it by three
    few = tournament.field_of(given, roles, Talk(0), 0, 50.0)
    assert 1 <= len(few.contenders) < all_read.wanted == few.wanted
    assert few.contenders == all_read.contenders[: len(few.contenders)]
    assert len(tournament.field_of(given, roles, Talk(0), 0, 0.0).contenders) == 1


def test_kernels_that_there_was_no_time_for_are_counted():
    given, y = many_rows(50)
    field = tournament.field_of(given, roles_of(given.table), Talk(0)).contenders
    one = tournament.compete(
        field[:1], given, y, task="numbers", max_seconds=None, seed=0, talk=lambda text: None
    )
    assert "no time" not in one.words("y")[0]
    assert replace(one, wanted=12).words("y")[0].endswith(" For 11 more there was no time.")


@pytest.mark.parametrize(("ended", "rounds"), [(3, 1), (13, 1), (23, 2)])
def test_ctrl_c_keeps_the_best_kernel_of_a_round_that_was_not_ended(monkeypatch, ended, rounds):
    """The kernels tried so far were forgotten, and the first one was fitted where its search starts."""
    monkeypatch.setattr(
        tournament, "ROUNDS", (tournament.Round(40, 2, 3, 0.3), tournament.Round(50, 2, 1, 0.3))
    )
    given, y = many_rows(60)
    y = np.exp(y)
    field = tournament.field_of(given, roles_of(given.table), Talk(0)).contenders
    search = tournament._Judge.search
    found = []

    def interrupted(self, *args):
        if len(found) == ended:
            raise KeyboardInterrupt
        found.append(search(self, *args))
        return found[-1]

    monkeypatch.setattr(tournament._Judge, "search", interrupted)
    outcome = tournament.compete(
        field, given, y, task="numbers", max_seconds=None, seed=0, talk=lambda text: None
    )
    assert outcome.interrupted and len(outcome.rounds) == rounds
    assert sum(map(len, outcome.rounds)) == len(found) == ended
    of_last_round = [each for each in found if each.rows == found[-1].rows]
    assert outcome.winner == max(of_last_round, key=lambda each: each.evidence).contender
    assert "Ctrl-C ended the search for a kernel." in outcome.words("y")
