"""The search: what it finds, one answer for one seed, limits, bad inputs, and its parts by slow loops."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import (
    RBF,
    After,
    Before,
    GaussianProcessRegressor,
    Linear,
    Matern,
    Periodic,
    Standardized,
    White,
    _core,
)
from mercer.arrays import Rows
from mercer.errors import InputError, MercerError, ParameterError
from mercer.kernels.terms import latent_terms
from mercer.progress import Talk
from mercer.solve.anytime import Anytime
from mercer.structure import grammar, plain, proposals, scoring
from mercer.structure.answer import Structure
from mercer.structure.search import Search

T = np.arange(72.0)
Y = 0.05 * T + np.sin(2 * np.pi * T / 12) + 0.1 * np.random.default_rng(0).normal(size=72)


@pytest.fixture(scope="module")
def found() -> Structure:
    return mercer.choose.structure(T, Y, units="months", rounds=2, verbose=0)


def sample_of(x, y, splits=()):
    return scoring.Sample(Rows(np.reshape(x, (len(y), -1)), "X"), np.asarray(y), tuple(splits), 1)


# ── the answer ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_season_on_a_line_is_found_and_said(found):
    assert any("yearly pattern" in text for text in found.words)
    assert found.proof.status == "proved"
    assert mercer.parse(found.kernel) == found.model.kernel_
    assert found.words[-1].startswith("noise with a deviation of 0.")
    assert sum(said.share for said in found.said) == pytest.approx(1.0)
    for text in found.words:
        assert text in str(found)


def test_the_terms_add_up_to_the_prediction(found):
    assert len(found.terms) == len(latent_terms(found.model.kernel_))
    np.testing.assert_allclose(found.terms.total_mean, found.model.predict(T[:, None]), atol=1e-8)


def test_it_forecasts_what_comes_next(found):
    new = np.arange(72.0, 84.0)
    mean, std = found.predict(new, return_std=True, noise=True)
    truth = 0.05 * new + np.sin(2 * np.pi * new / 12)
    assert np.abs(mean - truth).max() < 0.5
    assert np.all(np.abs(mean - truth) < 4 * std)


def test_alternatives_say_how_far_behind_they_are(found):
    assert found.alternatives
    slack = 1.0 / found.rows
    for other in found.alternatives:
        assert mercer.parse(other.kernel).validity().status == "proved"
        assert other.score > -4 * slack
    scores = [other.score for other in found.alternatives]
    assert scores == sorted(scores)


def log_normal(kernel, t, y):
    """log N(y; 0, K), from the definition."""
    K = kernel(t)
    sign, logdet = np.linalg.slogdet(K)
    assert sign > 0
    return -0.5 * (y @ np.linalg.solve(K, y) + logdet + len(y) * np.log(2 * np.pi))


def test_how_far_behind_alternatives_are_is_recomputed(found):
    t, y = T[:, None], (Y - Y.mean()) / Y.std()

    def evidence(text):
        kernel = mercer.parse(text)
        numbers = len(kernel.theta) + 2 * len(grammar.gate_places(kernel))
        leaves = sum(len(grammar.split(term)[1]) for term in latent_terms(kernel))
        return log_normal(kernel, t, y) - 0.5 * numbers * np.log(72) - leaves * np.log(8)

    best = evidence(found.kernel)
    assert found.evidence == pytest.approx(best / 72, abs=1e-6)
    for other in found.alternatives:
        assert other.nats == pytest.approx(best - evidence(other.kernel), abs=1e-4)


def test_shares_and_bands_of_the_answer_are_recomputed(found):
    t, scale = T[:, None], Y.std()
    kernel = mercer.parse(found.kernel)
    terms = latent_terms(kernel)
    A = kernel(t)
    alpha = np.linalg.solve(A, (Y - Y.mean()) / scale)
    means = [scale * term(t, t) @ alpha for term in terms]
    left = Y - Y.mean() - sum(means)
    whole = sum(mean.var() for mean in means) + left.var()
    told = {str(said.term): said for said in found.said}
    for term, mean in zip(terms, means, strict=True):
        C = term(t, t)
        variances = [C[i, i] - C[i] @ np.linalg.solve(A, C[i]) for i in range(len(t))]
        said = told[str(term)]
        assert said.share == pytest.approx(mean.var() / whole, abs=1e-6)
        assert said.band == pytest.approx(1.959964 * scale * np.sqrt(np.mean(variances)), rel=1e-4)
        assert f"{round(100 * said.share)} % of the variance" in said.text or said.share < 0.005
    assert found.said[-1].share == pytest.approx(left.var() / whole, abs=1e-6)


def test_every_pattern_can_be_seen_in_the_rows(found):
    for text in (found.kernel, *(other.kernel for other in found.alternatives)):
        for period in grammar.periods_in(mercer.parse(text)):
            assert 2.0 <= period <= 71 / 2


def test_a_bump_that_was_seen_once_is_no_pattern():
    t = np.linspace(0.0, 10.0, 60)
    y = t * np.cos(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=60)
    sample = sample_of(t, (y - y.mean()) / y.std(), scoring.rolling(np.arange(60)))
    search = Search(sample, lambda c: grammar.Menu(), 1, Talk(0), Anytime(None), (0.4, 5.0))
    line = Linear().of(Standardized((0.0,), (5.0,)))
    search.begin([1.0 * line * Periodic(4.5) + White(0.1), 1.0 * RBF(2.0) + White(0.1)])
    assert [grammar.periods_in(candidate.kernel) for candidate in search.judged] == [[]]
    # without a limit it is judged, with a period that the rows do not show
    search = Search(sample, lambda c: grammar.Menu(), 1, Talk(0), Anytime(None))
    search.begin([1.0 * line * Periodic(4.5) + White(0.1)])
    assert search.best.log_evidence > -np.inf
    assert grammar.periods_in(search.best.kernel)[0] > 5.0


def test_the_answer_is_plain_data(found):
    told = json.loads(json.dumps(found.to_dict()))
    assert told["words"] == found.words
    assert told["kernel"] == found.kernel


def test_a_seed_has_one_answer_at_any_number_of_threads(found):
    again = mercer.choose.structure(T, Y, units="months", rounds=2, verbose=0, n_jobs=2)
    assert again.kernel == found.kernel
    assert again.alternatives == found.alternatives
    assert again.words == found.words


ALIKE = """
import numpy as np
import mercer
t = np.linspace(0.0, 9.0, 310)
y = np.sin(4 * t) + 0.3 * t + 0.2 * np.random.default_rng(0).normal(size=310)
found = mercer.choose.structure(t, y, rounds=0, beam=1, verbose=0)
print(found.kernel, *(other.kernel for other in found.alternatives), sep="\\n")
"""


def test_processes_with_one_and_two_threads_give_the_same_text():
    answers = []
    for threads in ("1", "2"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", ALIKE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) > 1


def test_every_instruction_set_finds_the_same_structure():
    before = _core.instruction_set()
    answers = []
    try:
        for isa in ("baseline", "avx2", "avx512"):
            if _core.force_isa(isa):
                answers.append(mercer.choose.structure(T[:40], Y[:40], rounds=0, verbose=0))
    finally:
        _core.force_isa(before)
    for other in answers[1:]:
        # each rounds in its own way, so the last digits differ
        first, same = mercer.parse(answers[0].kernel), mercer.parse(other.kernel)
        assert grammar.key_of(first) == grammar.key_of(same)
        np.testing.assert_allclose(first.theta, same.theta, atol=1e-3)


def test_progress_is_said_after_a_second_and_only_if_asked(monkeypatch, capsys):
    monkeypatch.setattr(Talk, "SILENCE", 0.0)
    mercer.choose.structure(T[:16], Y[:16], rounds=0, beam=1, verbose=0)
    assert capsys.readouterr().err == ""
    mercer.choose.structure(T[:16], Y[:16], rounds=1, beam=1)
    said = capsys.readouterr().err
    assert "round 1: " in said
    assert "simplifying " in said


def test_a_table_is_searched_by_columns_and_named():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-2, 2, size=(90, 3)), columns=["age", "dose", "noise"])
    y = np.sin(2 * table["age"]) + table["dose"] + 0.05 * rng.normal(size=90)
    found = mercer.choose.structure(table, y, rounds=1, verbose=0)
    mean = found.predict(table)
    assert np.mean((mean - y) ** 2) < 0.05 * np.var(y)
    assert any("age" in text for text in found.words)
    # columns by name: their order does not matter where the kernel names them
    assert found.predict(table.iloc[:5]).shape == (5,)


def test_more_rows_than_the_search_takes_are_fitted_all():
    t = np.linspace(0.0, 6.0, 300)
    found = mercer.choose.structure(t, np.sin(t), max_rows=60, rounds=0, verbose=0)
    assert found.rows == 60
    assert len(found.model.X_fit_) == 300


def test_of_very_many_rows_some_are_fitted(monkeypatch):
    monkeypatch.setattr("mercer.structure.door.FITTED", 150)
    table = pd.DataFrame({"t": np.linspace(0.0, 6.0, 20_000), "u": np.tile([0.0, 1.0], 10_000)})
    found = mercer.choose.structure(table, np.sin(table["t"]), max_rows=40, rounds=0, verbose=0)
    assert len(found.model.X_fit_) == 150
    assert found.predict(table.iloc[:3]).shape == (3,)


@pytest.mark.parametrize(
    "X",
    [
        np.column_stack([T[:24], np.full(24, 3.0)]),
        np.repeat(np.column_stack([T[:8], T[:8] ** 2]), 3, axis=0),
        np.repeat(T[:8], 3),
        np.random.default_rng(0).normal(size=(24, 50)),
    ],
    ids=["a constant column", "duplicate rows", "duplicate points", "fifty columns"],
)
def test_odd_rows_get_an_answer(X):
    y = Y[:24]
    found = mercer.choose.structure(X, y, rounds=0, beam=1, verbose=0)
    assert np.isfinite(found.predict(X)).all()
    assert found.words


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_seconds_end_the_search_with_the_best_so_far():
    found = mercer.choose.structure(T, Y, max_seconds=1.5, verbose=0)
    assert found.status == "limit"
    assert found.model.predict([[3.0]]).shape == (1,)


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    judged = scoring.judged
    count = []

    def interrupted(candidate, sample):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        return judged(candidate, sample)

    monkeypatch.setattr("mercer.structure.search.judged", interrupted)
    found = mercer.choose.structure(T, Y, verbose=0)
    assert found.status == "interrupted"
    assert len(found.alternatives) == 1


def test_a_signal_in_the_middle_of_a_tuning_ends_the_search():
    timer = threading.Timer(2.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    begun = time.perf_counter()
    try:
        found = mercer.choose.structure(T, Y, beam=4, rounds=50, verbose=0)
    finally:
        timer.cancel()
    # a search that ended before the signal came has nothing to show here
    if time.perf_counter() - begun > 2.5:
        assert found.status == "interrupted"


def test_ctrl_c_before_anything_was_judged_goes_on_as_what_it_is(monkeypatch):
    def interrupted(candidate, sample):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.structure.search.judged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mercer.choose.structure(T, Y, verbose=0)


# ── bad inputs ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (T, np.full(72, 3.0), "y is 3 in every row"),
        ([0.0, 1.0], [1.0, 2.0], "there are 2 rows"),
        (np.zeros((20, 2)), np.arange(20.0), "no column of X varies"),
        (T, np.r_[np.nan, Y[1:]], "NaN"),
        (np.r_[np.nan, T[1:]], Y, "NaN"),
        (T, Y[1:], "71"),
        (T, ["a"] * 72, "y"),
        ([["a"]] * 72, Y, "X"),
    ],
)
def test_what_cannot_be_searched_gets_a_sentence(X, y, words):
    with pytest.raises((MercerError, ValueError, TypeError), match=words):
        mercer.choose.structure(X, y, verbose=0)


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="validation must be one of"):
        mercer.choose.structure(T, Y, validation="random")
    with pytest.raises(ParameterError, match="beam must be a whole number >= 1; got 0"):
        mercer.choose.structure(T, Y, beam=0)
    with pytest.raises(ParameterError, match="one ordered column"):
        mercer.choose.structure(np.column_stack([T, T**2]), Y, validation="rolling")
    with pytest.raises(InputError, match="seconds ended"):
        mercer.choose.structure(T, Y, max_seconds=0.0, verbose=0)


# ── scores ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_densities_are_those_of_the_formula():
    k = 1.0 * RBF(5.0) + 0.5 * Periodic(12.0) + White(0.2)
    y = (Y - Y.mean()) / Y.std()
    known, new = sample_of(T[:50], y[:50]), sample_of(T[50:60], y[50:60])
    found = scoring.log_densities(k, known, new)
    latent = 1.0 * RBF(5.0) + 0.5 * Periodic(12.0)
    A = latent(T[:50, None], T[:50, None]) + 0.2 * np.eye(50)
    for i in range(10):
        c = latent(T[:50, None], T[50 + i : 51 + i, None])[:, 0]
        mean = c @ np.linalg.solve(A, y[:50])
        variance = 1.5 - c @ np.linalg.solve(A, c) + 0.2
        expected = -0.5 * ((y[50 + i] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        assert found[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("length", [5.0, 0.01])
def test_rows_that_follow_one_another_count_as_a_whole(length):
    k = 1.0 * RBF(length) + White(0.2)
    y = (Y - Y.mean()) / Y.std()
    past, whole = sample_of(T[:50], y[:50]), sample_of(T[:60], y[:60])
    found = scoring.block_density(k, past, whole)
    # log N(y; mean, covariance) of the ten new rows, from the definition
    A = k(T[:60, None])
    across = A[:50, 50:]
    mean = across.T @ np.linalg.solve(A[:50, :50], y[:50])
    cover = A[50:, 50:] - across.T @ np.linalg.solve(A[:50, :50], across)
    error = y[50:60] - mean
    expected = -0.5 * (
        error @ np.linalg.solve(cover, error) + np.linalg.slogdet(cover)[1] + 10 * np.log(2 * np.pi)
    )
    assert found == pytest.approx(expected, rel=1e-9)
    # rows that have nothing to do with one another are the sum of each alone, and only these
    alone = scoring.log_densities(k, past, sample_of(T[50:60], y[50:60])).sum()
    assert (found == pytest.approx(alone)) == (length < 1)


def test_a_series_is_held_out_in_blocks_and_a_table_row_by_row():
    y = (Y - Y.mean()) / Y.std()
    k = 1.0 * RBF(5.0) + White(0.2)
    splits = scoring.rolling(np.arange(72))
    ordered = replace(sample_of(T, y, splits), ordered=True)
    blocks = scoring.judged(scoring.Candidate(k, 0.0, 72), ordered)
    rows = scoring.judged(scoring.Candidate(k, 0.0, 72), sample_of(T, y, splits))
    held = sum(len(new) for _, new in splits)
    assert blocks.held_out == pytest.approx(sum(blocks.blocks) / held)
    assert rows.held_out == pytest.approx(np.concatenate(rows.densities).mean())
    assert rows.blocks == ()
    assert blocks.score == pytest.approx((72 * blocks.evidence + sum(blocks.blocks)) / (72 + held))


def test_a_look_at_few_rows_promises_what_many_show_in_the_mean():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 20.0, size=(8, 200))
    kernel = 1.0 * RBF(1.0) + White(0.1)
    promised, shown = [], []
    for i, row in enumerate(x):
        y = GaussianProcessRegressor(kernel).sample_y(row[:, None], random_state=i, noise=True).ravel()
        whole = sample_of(row, y)
        promised.append(scoring.tuned(kernel, whole.part(np.arange(150)), 20).promise(200))
        shown.append(scoring.tuned(kernel, whole, 20).evidence)
    assert scoring.Candidate(kernel, -50.0, 100).promise(100) == pytest.approx(
        scoring.Candidate(kernel, -50.0, 100).evidence
    )
    # fewer rows lie farther apart and tell less each, so the promise is a little low
    assert np.mean(promised) == pytest.approx(np.mean(shown), abs=0.1)


def test_residuals_are_what_the_mean_leaves():
    k = 1.0 * RBF(5.0) + White(0.2)
    model = GaussianProcessRegressor(k, optimizer=None).fit(T[:, None], Y)
    np.testing.assert_allclose(
        scoring.residuals(k, sample_of(T, Y)), Y - model.predict(T[:, None]), atol=1e-10
    )


def test_the_score_weighs_each_row_alike():
    k = 1.0 * RBF(5.0) * Linear().of(After(30.0, 1.0)) + White(0.2)
    one = scoring.Candidate(k, -50.0, 100, (np.full(10, -1.0), np.full(20, -2.0)))
    # two numbers of the kernel besides its height, two of the door; two leaves
    numbers = 3 + 2
    assert one.evidence == pytest.approx((-50.0 - 0.5 * numbers * np.log(100) - 2 * np.log(8)) / 100)
    assert one.held_out == pytest.approx(-50 / 30)
    assert one.score == pytest.approx((100 * one.evidence - 50) / 130)


def test_rolling_origins_never_look_ahead():
    for past, new in scoring.rolling(np.arange(50)):
        assert past.max() < new.min()
        assert len(new) == 5


def test_folds_hold_every_row_out_once():
    parts = scoring.folds(23, np.random.default_rng(0))
    assert sorted(np.concatenate([new for _, new in parts]).tolist()) == list(range(23))
    for known, new in parts:
        assert not set(known) & set(new)


# ── proposals and grammar ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("period", [3.7, 12.0, 25.0])
def test_periods_come_from_the_spectrum(period):
    x = np.sort(np.random.default_rng(0).uniform(0, 120, size=150))
    y = np.sin(2 * np.pi * x / period) + 0.3 * np.random.default_rng(1).normal(size=150)
    found = proposals.periods_of(x, y, proposals.Line.of(np.arange(120.0)))
    assert any(abs(p / period - 1) < 0.03 for p in found)


def test_a_change_of_level_or_of_spread_is_a_place_by_the_slow_formula():
    rng = np.random.default_rng(0)
    y = np.r_[rng.normal(size=40), 3 * rng.normal(size=40)]
    x = np.arange(80.0)
    gains = {}
    for cut in range(8, 72):
        left, right = y[:cut], y[cut:]
        gains[0.5 * (x[cut - 1] + x[cut])] = -len(left) * np.log(left.var()) - len(right) * np.log(
            right.var()
        )
    assert proposals.places_of(x, y)[0] == max(gains, key=gains.get)
    assert abs(proposals.places_of(x, y)[0] - 39.5) < 8


def test_a_curve_that_becomes_a_pattern_is_proposed_as_such():
    t = np.linspace(0.0, 10.0, 160)
    early = np.sin(0.5 * t)
    late = np.sin(2 * np.pi * t / 0.7)
    y = np.where(t < 6.0, early, late) + 0.1 * np.random.default_rng(0).normal(size=160)
    sample = sample_of(t, (y - y.mean()) / y.std())
    # the mean and the spread are alike on both sides; the steps from point to point are not
    place, *_ = proposals.places_of(*proposals.roughness(t, sample.y))
    assert place == pytest.approx(6.0, abs=0.2)
    first, *others = proposals.cuts_at(place, sample, proposals.Line.of(t))
    assert grammar.kinds_of(first) == {"gate × smooth", "gate × periodic"}
    assert grammar.periods_in(first) == [pytest.approx(0.7, rel=0.05)]
    assert grammar.gate_places(first) == [place]
    assert len(others) == 2
    for cut in (first, *others):
        assert cut.validity().status == "proved"
    # a side with too few rows proposes nothing
    assert proposals.cuts_at(0.3, sample, proposals.Line.of(t)) == []


def test_every_step_of_the_grammar_is_a_kernel_that_is_proved():
    line = proposals.Line.of(T)
    sample = sample_of(T, (Y - Y.mean()) / Y.std())
    kernel = 1.0 * RBF(10.0) * Periodic(12.0) + 1.0 * Matern(30.0) + White(0.1)
    menu = proposals.menu_of_line(scoring.Candidate(kernel, 0.0, 72), sample, line)
    steps = list(grammar.expansions(kernel, menu))
    assert len(steps) > 20
    for step in steps:
        assert step.validity().status == "proved"
        assert mercer.parse(str(step)) == step
        assert np.linalg.eigvalsh(step(T[:20, None])).min() > 0


def test_structures_are_told_apart_by_leaves_and_not_by_numbers():
    key = grammar.key_of
    assert key(1.0 * RBF(3.0) + White(0.1)) == key(2.0 * RBF(7.0) + White(0.3))
    assert key(1.0 * RBF(3.0) * Periodic(1.0)) == key(1.0 * Periodic(1.0) * RBF(3.0))
    assert key(1.0 * RBF(3.0)) != key(1.0 * Matern(3.0))
    assert key(1.0 * RBF(3.0).on(0)) != key(1.0 * RBF(3.0).on(1))
    assert key(1.0 * Periodic(1.0)) != key(1.0 * Periodic(2.0))


def test_kinds_forget_which_curve_it_is():
    cut = RBF(1.0) * Linear().of(Before(0.0, 1.0)) + Matern(1.0) * Linear().of(After(0.0, 1.0))
    assert grammar.kinds_of(cut) == {"gate × smooth"}
    line = Linear().of(Standardized((0.0,), (1.0,))).on("age")
    assert grammar.kinds_of(line + White(0.1)) == {"linear in age"}


def test_the_plain_kernel_of_a_table_is_judged_in_any_case():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 2))
    y = X[:, 0] + 0.01 * rng.normal(size=40)
    sample = sample_of(X, (y - y.mean()) / y.std(), scoring.folds(40, rng))
    line = 1.0 * Linear() + White(0.1)
    search = Search(sample, lambda c: grammar.Menu(), 1, Talk(0), Anytime(None))
    # of four looked at, three go on, and the plain one is none of the four
    search.begin([line, line * Linear(), line + 1.0 * Linear() ** 3, line + 1.0 * Linear() ** 2])
    search.add(plain.tuned_plain(sample))
    keys = [grammar.key_of(candidate.kernel) for candidate in search.judged]
    assert len(keys) == 4
    assert grammar.key_of(plain.plain_of_table(sample)) in keys
    # and a step that leads to it is not looked at again
    assert search.look([search.first(plain.plain_of_table(sample))]) == []


def test_a_structure_takes_one_place_in_the_beam():
    sample = sample_of(T, Y)
    search = Search(sample, lambda c: grammar.Menu(), 2, Talk(0), Anytime(None))
    kernels = [1.0 * RBF(3.0), 1.0 * RBF(9.0), 1.0 * Periodic(12.0), 1.0 * Linear()]
    search.judged = [scoring.Candidate(k + White(0.1), -float(i), 72) for i, k in enumerate(kernels)]
    assert [search.judged.index(candidate) for candidate in search.fresh()] == [0, 2]
    assert [search.judged.index(candidate) for candidate in search.fresh()] == [3]


@pytest.mark.parametrize("seed", range(3))
def test_a_narrowed_leaf_is_nearly_the_joint_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(30, 4))
    spans = tuple(np.ptp(X, axis=0).tolist())
    lengths = rng.uniform(0.5, 3.0, size=4)
    lengths[seed] = 5.0 * spans[seed] * rng.uniform(1.0, 3.0)
    menu = grammar.Menu(columns=(0, 1, 2, 3), spans=spans)
    (new, *_) = grammar.narrowed(RBF(lengths.tolist()), menu)
    assert new.columns == tuple(j for j in range(4) if j != seed)
    np.testing.assert_allclose(new(X), RBF(lengths.tolist())(X), rtol=0.021)


def test_terms_that_hardly_matter_are_dropped_together_by_a_step():
    menu = grammar.Menu(columns=(0, 1, 2), spans=(1.0, 1.0, 1.0))
    kernel = 1.0 * RBF(1.0).on(0) + 1e-4 * RBF(1.0).on(1) + 1.0 * RBF(100.0).on(2) + White(0.1)
    wanted = grammar.key_of(1.0 * RBF(1.0).on(0))
    assert wanted in [grammar.key_of(step) for step in grammar.expansions(kernel, menu)]
    # what is left out changes by less than the measure says
    X = np.random.default_rng(0).uniform(0.0, 1.0, size=(50, 3))
    left_out = (1e-4 * RBF(1.0).on(1) + 1.0 * RBF(100.0).on(2))(X)
    assert np.ptp(left_out) < 2 * grammar.PRUNED[0]


def test_a_sum_over_many_columns_can_grow():
    columns = tuple(range(9))
    menu = grammar.Menu(terms=(RBF([1.0, 1.0]).on(0, 1),), columns=columns, spans=(1.0,) * 9)
    kernel = sum((1.0 * RBF(1.0).on(j) for j in range(1, 9)), 1.0 * RBF(1.0).on(0)) + White(0.1)
    assert 10 in [len(latent_terms(step)) for step in grammar.expansions(kernel, menu)]


def test_pairs_are_those_of_a_slow_loop():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    left = X[:, 0] * X[:, 2] + 0.5 * rng.normal(size=200)
    shares = {}
    for i in range(4):
        for j in range(i + 1, 4):
            cells = {}
            for row, value in zip(X, left - left.mean(), strict=True):
                place = tuple(int((X[:, c] < row[c]).mean() * 4) for c in (i, j))
                cells.setdefault(place, []).append(value)
            between = sum(len(values) * np.mean(values) ** 2 for values in cells.values())
            shares[i, j] = between / ((left - left.mean()) ** 2).sum()
    slow = sorted(shares, key=lambda pair: -shares[pair])
    assert proposals.pairs_of(X, left) == slow[:3]
    assert slow[0] == (0, 2)


def test_a_curve_in_one_column_may_become_a_line():
    line = Linear().of(Standardized([0.0], [1.0])).on(1)
    menu = grammar.Menu(columns=(0, 1), spans=(1.0, 1.0), lines=(line,))
    steps = list(grammar.expansions(1.0 * RBF(1.0).on(1) + 1.0 * RBF(1.0).on(0) + White(0.1), menu))
    wanted = grammar.key_of(1.0 * line + 1.0 * RBF(1.0).on(0))
    assert wanted in [grammar.key_of(step) for step in steps]


def test_a_tuning_that_knows_the_curvature_ends_where_one_without_does():
    y = (Y - Y.mean()) / Y.std()
    sample = sample_of(T, y)
    kernel = 1.0 * RBF(20.0) + 1.0 * Periodic(12.0) + White(0.1)
    first = scoring.tuned(kernel, sample, 200)
    again = scoring.settled(scoring.Candidate(kernel, -np.inf, 72), sample)
    assert again.log_evidence == pytest.approx(first.log_evidence, abs=0.3)
    # and from the curvature of other rows
    fewer = scoring.tuned(kernel, sample.part(np.arange(50)), 5)
    warm = scoring.settled(fewer, sample)
    assert warm.log_evidence == pytest.approx(first.log_evidence, abs=0.3)


def test_a_period_stays_near_the_peak_that_proposed_it():
    # a pattern of period 1.15 that changes over 3: the peak of the spectrum is at 1.2
    t = np.linspace(0.0, 10.0, 100)
    truth = 1.0 * RBF(3.3) * Periodic(1.15) + White(0.06)
    y = GaussianProcessRegressor(truth).sample_y(t[:, None], random_state=0, noise=True).ravel()
    sample = sample_of(t, (y - y.mean()) / y.std())
    begin = 0.3 * RBF(10.0) * Periodic(1.2) + White(0.1)
    search = Search(sample, lambda c: grammar.Menu(), 1, Talk(0), Anytime(None))
    (found,) = search.look([search.first(begin)])
    (period,) = grammar.periods_in(found.kernel)
    assert period == pytest.approx(1.15, rel=0.1)


def test_the_first_step_of_a_period_turns_the_last_row_by_one():
    k = 2.0 * RBF(1.0) * Periodic(3.0) + White(0.1)
    steps = np.sqrt(np.diag(scoring.guessed_curvature(k, 10.0)))
    names = [parameter.name for parameter in k.parameters if parameter.free]
    for name, step in zip(names, steps, strict=True):
        if name.endswith("period"):
            # the angle of a row at the end, with the period and with one that is a step longer
            turned = 2 * np.pi * 10.0 / 3.0 * step
            assert turned == pytest.approx(1.0)
        else:
            assert step == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_plain_kernel_of_a_wide_table_is_tuned_as_a_process_alone_tunes_it(seed):
    # two of sixteen columns matter, and one of these by the other only: all together look like noise
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(120, 16))
    y = np.tanh(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=120)
    sample = sample_of(X, (y - y.mean()) / y.std())
    rival = GaussianProcessRegressor("1.0*RBF(ard=True) + White(0.1)", normalize_y=True).fit(X, y)
    found = plain.tuned_plain(sample)
    assert found.log_evidence > log_normal(rival.kernel_, X, sample.y) - 0.01
    assert found.log_evidence == pytest.approx(log_normal(found.kernel, X, sample.y))
    # the curvature is that of a peak: a tuning that knows it stays there
    again = scoring.settled(found, sample)
    assert again.log_evidence == pytest.approx(found.log_evidence, abs=0.1)
