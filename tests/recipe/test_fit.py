"""`mercer.fit`: from a raw table to a tuned, judged model, with the story in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import StratifiedKFold

import mercer
from mercer import (
    FalkonClassifier,
    FalkonRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    Nystroem,
    TableClassifier,
    TableRegressor,
    parse,
    verify,
)
from mercer.errors import InputError, ParameterError
from mercer.progress import Talk
from mercer.recipe import ladder, tournament
from mercer.recipe.calibration import sharpened
from mercer.recipe.given import Given, as_target, find_task

N = 60
R = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "size": R.lognormal(3, 2, N),
        "kind": R.choice(["oak", "ash", None], N),
        "seen": [f"{1 + i % 12:02}/{1 + i % 28:02}/2019" if i % 10 else None for i in range(N)],
        "note": [f"tree {i} {'with moss' if i % 2 else 'bare'}" for i in range(N)],
    }
)
HEIGHT = np.log(TABLE["size"].to_numpy()) + 2.0 * (TABLE["kind"] == "oak") + 0.1 * R.normal(size=N)
MOSS = np.where(np.arange(N) % 2, "mossy", "bare")
SMALL = TABLE[["size", "kind"]]


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    # every test has its own numbers, whichever ran before
    R.bit_generator.state = np.random.default_rng(7).bit_generator.state
    short = [tournament.Round(40, 4, 2, 0.3), tournament.Round(60, 4, 1, 0.2)]
    monkeypatch.setattr(tournament, "ROUNDS", tuple(short))


def quick(table, target, **options):
    return mercer.fit(table, target, verbose=0, **options)


def test_numbers_are_fitted_by_a_process_on_all_rows_with_the_target_named():
    table = TABLE.assign(height=HEIGHT)
    model = quick(table, "height")
    assert isinstance(model, TableRegressor) and is_regressor(model)
    assert isinstance(model.machine_, GaussianProcessRegressor)
    assert len(model.machine_.alpha_) == N
    assert model.target_ == "height" and "height" not in model.feature_names_in_
    assert model.certificate_.status == "converged"
    assert verify(model.machine_, TABLE, HEIGHT).ok
    assert model.score(TABLE, HEIGHT) > 0.8
    assert parse(str(model.kernel_)) == model.kernel_
    assert "bounded" not in str(model.kernel_)


@pytest.mark.parametrize("make", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_classes_are_fitted_from_every_make_of_table_and_columns_in_any_order(make):
    model = quick(make(TABLE), MOSS)
    assert isinstance(model, TableClassifier) and is_classifier(model)
    assert isinstance(model.machine_, GaussianProcessClassifier)
    backwards = TABLE[TABLE.columns[::-1]]
    assert np.mean(model.predict(make(backwards)) == MOSS) > 0.9
    assert model.predict_proba(make(backwards)).shape == (N, 2)


def test_leave_one_out_is_that_of_refits():
    """The estimate, row by row, against fits of the same kernel without the row."""
    model = quick(SMALL, HEIGHT)
    for row in (0, 17, 59):
        others = np.delete(np.arange(N), row)
        again = GaussianProcessRegressor(model.kernel_, normalize_y=True, optimizer=None)
        again.fit(SMALL.iloc[others], HEIGHT[others])
        mean, std = again.predict(SMALL.iloc[[row]], return_std=True, noise=True)
        assert np.isclose(model.estimate_.predicted[row], mean[0], rtol=1e-6)
        assert np.isclose(model.estimate_.spread[row], std[0], rtol=1e-6)
    errors = HEIGHT - model.estimate_.predicted
    assert np.isclose(model.estimate_.measures["rmse"], np.sqrt(np.mean(errors**2)))
    unexplained = np.sum(errors**2) / np.sum((HEIGHT - HEIGHT.mean()) ** 2)
    assert np.isclose(model.estimate_.measures["r2"], 1 - unexplained)


def test_folds_of_classes_are_those_of_fits_without_them():
    model = quick(SMALL, np.where(HEIGHT > 3, "high", "low"))
    truth = np.where(HEIGHT > 3, "high", "low")
    assert "5 folds" in model.estimate_.how
    assert np.isclose(model.estimate_.measures["accuracy"], np.mean(model.estimate_.predicted == truth))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    learn, judge = next(iter(folds.split(np.zeros(N), truth)))
    again = GaussianProcessClassifier(model.kernel_, optimizer=None, tol=1e-6)
    again.fit(SMALL.iloc[learn], truth[learn])
    without = sharpened(again.predict_proba(SMALL.iloc[judge]), model.sharpness_)
    assert np.allclose(without, model.estimate_.spread[judge], atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*alone tells")
def test_a_straight_line_is_found_and_carried_on():
    """Ranks bend straight lines; the evidence must prefer the reading that does not."""
    x = np.linspace(0.0, 10.0, 60)
    table = pd.DataFrame({"x": x, "z": np.cos(7 * x)})
    model = quick(table, 3.0 * x - 1.0)
    far = pd.DataFrame({"x": [12.0, -2.0], "z": [0.0, 0.0]})
    assert np.allclose(model.predict(far), [35.0, -7.0], atol=0.5)


def test_the_winner_has_the_highest_evidence_of_its_round():
    given = Given.of(SMALL)
    model = TableRegressor(verbose=0)
    field = model._field(given, mercer.tables.propose.roles_of(SMALL), Talk(0), None).contenders
    assert len({contender.words for contender in field}) == len(field) == 12
    outcome = tournament.compete(
        field, given, HEIGHT, task="numbers", max_seconds=None, seed=0, talk=lambda text: None
    )
    for standings in outcome.rounds:
        evidences = [standing.evidence for standing in standings]
        assert evidences == sorted(evidences, reverse=True)
    last = outcome.rounds[-1][0]
    assert outcome.winner == last.contender
    white = mercer.White(last.contender.noise)
    index = tournament._some(np.random.default_rng(0).permutation(N), last.rows, None)
    again = GaussianProcessRegressor(last.contender.kernel + white, normalize_y=True, optimizer=None)
    scale = last.contender.scale
    targets = scale.forward(HEIGHT[index])
    again.fit(SMALL.iloc[index], targets)
    # a density of y itself, not of its standardised values on a scale
    units = scale.log_jacobian(HEIGHT[index]) - len(index) * np.log(targets.std())
    assert np.isclose(again.log_evidence_ + units, last.evidence, rtol=1e-8)


def test_large_tables_get_landmarks_and_then_falkon():
    means = ladder.Means(memory=2**20, seconds=None, seed=0)
    found = tournament.Contender.starting("", parse("1.0*RBF(1.0)"))
    exact = ladder.rung_for_numbers(found, 100, ladder.Means(2**31, None, 0), "auto")
    assert exact.machine.approximation is None
    landmarks = ladder.rung_for_numbers(found, 200, means, "landmarks")
    assert isinstance(landmarks.machine.approximation, Nystroem)
    streamed = ladder.rung_for_numbers(found, 10**5, means, "auto")
    assert isinstance(streamed.machine, FalkonRegressor)
    classes = ladder.rung_for_classes(found, 10**5, 3, means, "auto")
    assert isinstance(classes.machine, FalkonClassifier)


@pytest.mark.parametrize("memory", ["2GiB", "64KiB"])
def test_landmarks_predict_numbers_with_a_band_that_covers(memory):
    X = R.normal(size=(900, 2))
    y = 50.0 + np.sin(2 * X[:, 0]) + 0.2 * R.normal(size=900)
    model = quick(X[:800], y[:800], machine="landmarks", memory=memory)
    expected = FalkonRegressor if memory == "64KiB" else GaussianProcessRegressor
    assert isinstance(model.machine_, expected)
    low, high = model.predict_interval(X[800:])
    inside = np.mean((low <= y[800:]) & (y[800:] <= high))
    assert inside > 0.85
    assert model.estimate_.measures["coverage"] > 0.85
    narrow, wide = model.predict_interval(X[800:], 0.5)
    assert np.all(narrow > low) and np.all(wide < high)


def test_sets_of_classes_hold_the_true_one_as_often_as_they_say():
    X = R.normal(size=(900, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.7 * R.normal(size=900), [-0.5, 0.5])]
    model = quick(X[:300], y[:300])
    sizes = []
    for level in (0.6, 0.8, 0.95):
        sets = model.predict_set(X[300:], level)
        held = np.mean([truth in some for truth, some in zip(y[300:], sets, strict=True)])
        assert level - 0.06 < held
        sizes.append(np.mean([len(some) for some in sets]))
    assert sizes == sorted(sizes) and sizes[0] < 2
    assert all(said in some for said, some in zip(model.predict(X[300:]), sets, strict=True))
    true = model.estimate_.spread[np.arange(300), np.searchsorted(model.classes_, y[:300])]
    least = np.sort(true)[::-1][int(np.ceil(301 * 0.95)) - 1]
    assert sets[0] == model.classes_[model.predict_proba(X[300:301])[0] >= least].tolist()


def test_landmarks_predict_classes(monkeypatch):
    monkeypatch.setattr(ladder, "LARGEST_PROCESS", 100)
    X = R.normal(size=(400, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    model = quick(X[:300], y[:300])
    assert isinstance(model.machine_, FalkonClassifier)
    assert model.score(X[300:], y[300:]) > 0.85
    assert "rows kept out" in model.estimate_.how
    assert np.allclose(model.predict_proba(X[300:]).sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:.*alone tells")
def test_wide_and_sparse_numbers_are_compared_as_a_whole():
    X = sparse.random_array((120, 90), density=0.1, rng=1, format="csr")
    y = np.asarray(X[:, [0]].todense()).ravel() > 0
    model = quick(X, y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 90
    assert model.predict(X[:5]).shape == (5,)
    narrow = quick(X[:, :20], y)
    assert list(narrow.feature_names_in_[:2]) == ["x1", "x2"]


@pytest.mark.filterwarnings("ignore:.*alone tells")
def test_columns_called_by_numbers_are_columns():
    table = pd.DataFrame(R.normal(size=(N, 3)))
    model = quick(table, 2.0 * table[0] + 0.1 * R.normal(size=N))
    assert list(model.feature_names_in_) == ["0", "1", "2"]
    assert model.score(table, 2.0 * table[0]) > 0.9
    named = quick(table.assign(y=table[1]), "y", leave_out=["2"])
    assert list(named.feature_names_in_) == ["0", "1", "2"]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_very_few_rows_are_fitted_with_bands_that_say_so(n):
    x = R.normal(size=n)
    model = quick(pd.DataFrame({"x": x}), x + R.normal(size=n))
    low, high = model.predict_interval(pd.DataFrame({"x": [0.0]}))
    assert np.isfinite(low[0]) and low[0] < high[0]


def test_texts_alone_are_a_table():
    texts = [f"{'cheap prize now' if i % 2 else 'see you at home'} {i}" for i in range(40)]
    model = quick(texts, ["spam" if i % 2 else "ham" for i in range(40)])
    assert model.predict(["a prize for you now", "at home"]).tolist() == ["spam", "ham"]


def test_a_file_is_read_and_rows_without_a_target_are_left_out(tmp_path):
    path = tmp_path / "trees.csv"
    table = TABLE.assign(height=HEIGHT)
    table.loc[:4, "height"] = None
    table.to_csv(path, index=False)
    model = quick(path, "height", leave_out=["note"])
    assert model.n_rows_fit_ == N - 5
    assert "5 rows have no target and were left out." in model.steps_
    assert "note" not in str(model.kernel_)
    np.testing.assert_array_equal(model.predict(path), model.predict(TABLE))
    np.testing.assert_array_equal(model.predict_interval(str(path)), model.predict_interval(TABLE))


def test_the_kernel_given_is_the_kernel_used():
    model = quick(TABLE[["size"]], HEIGHT, kernel='1.0*RBF().on("size")')
    assert str(model.kernel_).count("RBF") == 1
    assert any("the kernel you gave" in step for step in model.steps_)


@pytest.mark.parametrize(
    ("target", "task"),
    [
        (np.arange(N) % 3, "classes"),
        (np.arange(N) % 30, "numbers"),
        (np.arange(N) / 7, "numbers"),
        (np.arange(N) % 2 == 0, "classes"),
        (MOSS, "classes"),
    ],
)
def test_the_task_is_told_by_the_values_of_the_target(target, task):
    assert find_task(target, None)[0] == task
    assert find_task(target, "classes") == ("classes", "The target is classes, as you said.")


@pytest.mark.parametrize(
    ("table", "target", "options", "words"),
    [
        (TABLE, HEIGHT[:5], {}, "one value for each of 60 rows"),
        (TABLE, HEIGHT, {"task": "regression"}, "'numbers', 'classes' or None"),
        (TABLE, MOSS, {"task": "numbers"}, "no number"),
        (TABLE, HEIGHT, {"leave_out": ["price"]}, "the table has no column 'price'"),
        (TABLE, HEIGHT, {"machine": "forest"}, "machine must be one of 'auto', 'gp', 'landmarks'"),
        (TABLE, HEIGHT, {"max_seconds": 0}, "max_seconds must be a positive number"),
        (TABLE, "hight", {}, "no column 'hight'"),
        (TABLE.assign(height=HEIGHT), "heigt", {}, "Did you mean 'height'"),
        (TABLE[["size"]], "size", {}, "no other column"),
        (TABLE, None, {}, "name the column to predict"),
        (np.zeros((3, 2)), "size", {}, "array without names"),
        (TABLE, ["one"] * N, {}, "in every row"),
        (TABLE, [None] * N, {}, "no value at all"),
        (TABLE, [f"u{i}" for i in range(N)], {}, "another value in each of its 60 rows, such as 'u0'"),
        (TABLE, ["1.5", "high", *map(str, HEIGHT[2:])], {}, "in 59 of 60 rows and 'high' in row 2"),
        (np.zeros(3), [1.0, 2.0, 3.5], {}, "rows and columns"),
        (pd.DataFrame({"a": [[1, 2]] * N, "b": range(N)}), HEIGHT, {}, "column 'a' holds a list"),
        (pd.DataFrame({"a": R.normal(size=N) * 1e200}), HEIGHT, {}, "overflow"),
    ],
)
def test_what_cannot_be_fitted_is_said(table, target, options, words):
    with pytest.raises((InputError, ParameterError), match=words):
        quick(table, target, **options)


def test_new_tables_must_have_the_columns_that_are_used():
    model = quick(SMALL, HEIGHT)
    with pytest.raises(InputError, match="no column 'kind'"):
        model.predict(SMALL[["size"]])
    extra = SMALL.assign(more=1.0)
    assert np.array_equal(model.predict(extra), model.predict(SMALL))


def test_every_class_is_among_the_rows_of_the_search():
    labels = np.repeat(["often", "rare"], [990, 10])
    some = tournament._some(np.random.default_rng(0).permutation(1000), 50, labels)
    assert np.sum(labels[some] == "rare") >= 5
    assert np.all(np.diff(some) > 0)


def test_seconds_are_kept_to():
    X = R.normal(size=(1500, 6))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * R.normal(size=1500)
    model = quick(X, y, max_seconds=3.0)
    assert len(model.steps_) >= 3


def test_gaps_of_targets_are_found():
    values, known = as_target(pd.Series([1.0, np.nan, 3.0]), 3)
    assert values.tolist() == [1.0, 3.0] and known.tolist() == [0, 2]
