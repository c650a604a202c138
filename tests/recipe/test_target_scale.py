"""The scale of a target is chosen by evidence, and all that is said is of the target itself."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from typer.testing import CliRunner

import mercer
from mercer import FalkonRegressor, GaussianProcessRegressor, TableRegressor, White, parse
from mercer.cli.main import app
from mercer.recipe import estimate, tournament
from mercer.recipe.estimate import Predicted, of_numbers
from mercer.recipe.given import Given
from mercer.report import judged
from mercer.report.fit import report_of
from mercer.report.words import quoted
from mercer.scales import IDENTITY, Scale

N = 80
R = np.random.default_rng(3)
TABLE = pd.DataFrame({"size": R.uniform(0, 4, N), "age": R.uniform(-1, 1, N)})
LEVEL = TABLE["size"].to_numpy() + 0.7 * TABLE["age"].to_numpy() ** 2
PRICE = np.exp(LEVEL + 0.3 * R.normal(size=N))
LOG = Scale(0.0)
NEW = pd.DataFrame({"size": [0.5, 2.0, 3.5], "age": [0.1, -0.4, 0.9]})


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(N, 8, 2, 0.3),))


@pytest.fixture
def model():
    return mercer.fit(TABLE.assign(price=PRICE), "price", verbose=0)


def silent(text):
    pass


def outcome_of(y):
    field = [tournament.Contender.starting("smooth", parse('1.0*RBF([1.0, 1.0]).on("size", "age")'))]
    return tournament.compete(
        field, Given.of(TABLE), y, task="numbers", max_seconds=None, seed=0, talk=silent
    )


def test_evidence_on_the_logarithm_is_the_density_of_a_log_normal():
    """Of y itself, written out: the normal density of log y, and one factor 1/y for each row."""
    outcome = outcome_of(PRICE)
    assert {each.contender.scale.power for each in outcome.rounds[0]} == {0.0, 1 / 3, 0.5, 1.0}
    for standing in outcome.rounds[0]:
        found = standing.contender
        t = found.scale.forward(PRICE)
        K = found.kernel(TABLE) + found.noise * np.eye(N)
        density = stats.multivariate_normal(np.full(N, t.mean()), t.var() * K).logpdf(t)
        for y in PRICE:
            density += (found.scale.power - 1) * np.log(y)
        assert standing.evidence == pytest.approx(density, rel=1e-8)


def test_the_evidence_finds_the_scale_on_which_the_noise_was_added():
    noise = 0.1 * R.normal(size=N)
    assert outcome_of(np.exp(LEVEL + noise)).winner.scale == LOG
    # square and cube are too much alike for so few rows
    assert outcome_of((LEVEL + 2.0 + noise) ** 2).winner.scale.power in (1 / 3, 0.5)
    assert outcome_of(LEVEL + 0.5 + noise).winner.scale == IDENTITY


def test_units_of_the_target_do_not_change_the_scale():
    here = outcome_of(PRICE)
    there = outcome_of(1e6 * PRICE)
    assert there.winner.scale == here.winner.scale
    # densities of other units: a factor 1e-6 for each row
    shift = here.rounds[0][0].evidence - there.rounds[0][0].evidence
    assert shift == pytest.approx(N * np.log(1e6), rel=1e-6)


def test_targets_that_may_be_negative_are_taken_as_they_are():
    outcome = outcome_of(LEVEL - 2.0)
    assert outcome.winner.scale == IDENTITY and len(outcome.rounds[0]) == 1
    assert not any("scale" in line for line in outcome.words("y"))


def test_what_is_predicted_is_the_target_itself(model):
    assert model.scale_ == LOG
    assert "The process is fitted to the logarithm of price" in "".join(model.steps_)
    m, s = model.machine_.predict(NEW, return_std=True, noise=True)
    draws = np.exp(m + s * np.random.default_rng(0).normal(size=(200_000, 3)))
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(std, draws.std(axis=0), rtol=0.05)
    np.testing.assert_array_equal(model.predict(NEW), mean)
    low, high = model.predict_interval(NEW, 0.8)
    np.testing.assert_allclose([low, high], np.quantile(draws, [0.1, 0.9], axis=0), rtol=0.02)


def test_the_estimate_is_that_of_refits_in_units_of_the_target(model):
    said = model.estimate_
    for row in (0, 30, 79):
        others = np.delete(np.arange(N), row)
        again = GaussianProcessRegressor(model.kernel_, normalize_y=True, optimizer=None)
        again.fit(TABLE.iloc[others], np.log(PRICE[others]))
        m, s = again.predict(TABLE.iloc[[row]], return_std=True, noise=True)
        assert said.predicted[row] == pytest.approx(np.exp(m[0] + s[0] ** 2 / 2), rel=1e-6)
        assert said.spread[row] == pytest.approx(stats.lognorm(s[0], scale=np.exp(m[0])).std(), rel=1e-6)
    errors = PRICE - said.predicted
    assert said.measures["r2"] == pytest.approx(1 - np.mean(errors**2) / PRICE.var())
    low, high = said.numbers.interval(0.95)
    assert said.measures["coverage"] == np.mean((low <= PRICE) & (high >= PRICE))


@pytest.mark.parametrize("level", judged.LEVELS)
def test_coverage_of_the_report_counts_rows_between_the_ends(model, level):
    low, high = model.estimate_.numbers.interval(level)
    assert judged.coverage(model.estimate_, level) == np.mean((low <= PRICE) & (high >= PRICE))


def test_targets_that_a_scale_has_no_place_for_are_outside_of_every_band():
    said = Predicted(LOG, np.zeros(2), np.ones(2))
    found = of_numbers("", np.arange(2), np.array([-1.0, 1.0]), said)
    assert found.measures["coverage"] == 0.5
    assert judged.standardised(found).tolist() == [-np.inf, 0.0]


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("options", [{}, {"machine": "landmarks", "memory": "4KiB"}], ids=["gp", "falkon"])
def test_the_scale_is_kept_in_the_file(tmp_path, compact, options):
    model = mercer.fit(TABLE, PRICE, verbose=0, **options)
    assert model.scale_ == LOG
    again = mercer.load(model.save(tmp_path / "a.mercer", compact=compact).path)
    assert again.scale_ == LOG
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    assert again.summary() == model.summary()
    np.testing.assert_array_equal(again.estimate_.numbers.width, model.estimate_.numbers.width)


def test_falkon_has_the_mean_of_a_log_normal_with_the_errors_of_rows_kept_out():
    model = mercer.fit(TABLE, PRICE, verbose=0, machine="landmarks", memory="4KiB")
    assert isinstance(model.machine_, FalkonRegressor)
    learn, judge = estimate.kept_out_rows(N, 0)
    log = np.log(PRICE)
    first = clone(model.machine_)
    mean, scale = log[learn].mean(), log[learn].std()
    first.fit(TABLE.iloc[learn], (log[learn] - mean) / scale)
    width = estimate.conformal_spread(log[judge] - mean - scale * first.predict(TABLE.iloc[judge]))
    m = model.y_mean_ + model.y_scale_ * model.machine_.predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), np.exp(m + width**2 / 2), rtol=1e-6)


def test_pages_and_explanations_say_the_scale(model):
    page = report_of(model)
    assert f"The machine was fitted to the logarithm of {quoted('price')}" in page
    assert "The variance is that of the logarithm of price" in page
    assert "model.scale_.forward(y)" in page
    said = model.explain(NEW.iloc[[1]])
    assert "fitted to the logarithm of price; effects are of price itself" in said.said
    typical = NEW.iloc[[1]].assign(size=float(TABLE["size"].median()))
    effect = next(each.effect for each in said.effects if each.column == "size")
    assert effect == pytest.approx(model.predict(NEW.iloc[[1]])[0] - model.predict(typical)[0])


def run(*arguments):
    """What a command writes to standard output."""
    found = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_commands_speak_of_the_target_itself(tmp_path, model):
    path = str(tmp_path / "a.mercer")
    table = str(tmp_path / "t.csv")
    TABLE.assign(price=PRICE).to_csv(table, index=False)
    model.save(path)
    out = str(tmp_path / "p.csv")
    run("predict", path, table, "-o", out)
    written = pd.read_csv(out)
    np.testing.assert_allclose(written["prediction"], model.predict(TABLE), rtol=1e-8)
    np.testing.assert_allclose(written["high"], model.predict_interval(TABLE)[1], rtol=1e-8)
    measures = json.loads(run("score", path, table, "--json"))["measures"]
    assert measures["rmse"] == pytest.approx(np.sqrt(np.mean((PRICE - model.predict(TABLE)) ** 2)))
    run("verify", path, table)
    assert "prior variance, of the logarithm of price" in run("explain", path)
    assert json.loads(run("inspect", path, "--json"))["scale"] == {"power": 0.0, "shift": 0.0}


# ── leave-one-out with landmarks ────────────────────────────────────────────────────────────────────────────


def test_rows_that_are_landmarks_do_not_judge():
    """Left out of the targets, such a row is a landmark still; the others are as good as new ones."""
    x = np.sort(R.uniform(0, 10, 200))
    y = np.sin(3 * x) + 0.3 * R.normal(size=200)
    table = pd.DataFrame({"x": x})
    kernel = parse('1.0*Exponential(1.0).on("x")') + White(0.1)
    landmarks = mercer.Nystroem(n_components=40, random_state=0)
    process = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None, approximation=landmarks)
    process.fit(table, y)
    found = estimate.by_leaving_one_out(process, y, IDENTITY)
    index = process.approximation_.landmark_indices_
    assert len(found.rows) == 160 and not set(found.rows) & set(index)
    assert "160 rows of 200 that are no landmarks" in found.how
    for place in (0, 70, 159):
        row = found.rows[place]
        others = np.delete(np.arange(200), row)
        same = np.array([i - (i > row) for i in index])
        again = GaussianProcessRegressor(
            kernel,
            normalize_y=True,
            optimizer=None,
            approximation=mercer.Nystroem(n_components=40, landmarks=same),
        ).fit(table.iloc[others], y[others])
        mean, std = again.predict(table.iloc[[row]], return_std=True, noise=True)
        assert found.predicted[place] == pytest.approx(mean[0], rel=1e-6)
        assert found.spread[place] == pytest.approx(std[0], rel=1e-6)


def test_models_on_landmarks_know_the_targets_of_their_rows():
    model = mercer.fit(TABLE, PRICE, verbose=0, machine="landmarks")
    assert isinstance(model, TableRegressor) and model.scale_ == LOG
    model.estimate_ = estimate.of_numbers(
        "", np.arange(3), PRICE[:3], Predicted(LOG, np.zeros(3), np.ones(3))
    )
    nearest = model.explain(TABLE.iloc[[5]]).alike[0]
    assert nearest.row == 5 and nearest.target == pytest.approx(PRICE[5])
