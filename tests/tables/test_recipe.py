"""From a raw table to a fitted machine, with the story in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mercer import (
    SVC,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    fit_table,
    parse,
    table_kernel,
    verify,
)
from mercer.errors import InputError, ParameterError
from mercer.tables import recipe

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


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(recipe, "STEPS", 4)


def test_numbers_are_fitted_by_a_process_on_all_rows(monkeypatch):
    monkeypatch.setattr(recipe, "ROWS_FOR_NUMBERS", 40)
    found = fit_table(TABLE, HEIGHT)
    assert found.task == "numbers"
    assert isinstance(found.model, GaussianProcessRegressor)
    assert len(found.model.alpha_) == N
    assert "40 of 60 rows, at most 4 steps" in found.steps[1]
    assert found.model.certificate_.status == "converged"
    spread = HEIGHT.var()
    assert np.mean((found.predict(TABLE) - HEIGHT) ** 2) < 0.2 * spread
    assert verify(found.model, TABLE, HEIGHT).ok


def test_the_kernel_found_is_the_proposed_one_with_other_numbers():
    found = fit_table(TABLE, HEIGHT)
    proposed = table_kernel(TABLE).resolved(TABLE)
    assert [p.name for p in found.kernel.parameters if p.name != "k6__noise"][:3] == [
        p.name for p in proposed.parameters
    ][:3]
    assert parse(str(found.kernel)) == found.kernel
    assert "bounded" not in str(found.kernel)


@pytest.mark.parametrize("make", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_classes_are_fitted_from_every_make_of_table_and_columns_in_any_order(make):
    found = fit_table(make(TABLE), MOSS)
    assert found.task == "classes"
    assert isinstance(found.model, GaussianProcessClassifier)
    backwards = TABLE[TABLE.columns[::-1]]
    assert np.mean(found.predict(make(backwards)) == MOSS) > 0.9


def test_many_rows_of_classes_are_left_to_a_margin(monkeypatch):
    monkeypatch.setattr(recipe, "LARGEST_PROCESS", 100)
    found = fit_table(TABLE, MOSS)
    assert isinstance(found.model, SVC)
    assert "margin" in found.steps[-1]
    assert np.mean(found.predict(TABLE) == MOSS) > 0.9


def test_every_class_is_among_the_rows_of_the_search():
    labels = np.repeat(["often", "rare"], [990, 10])
    some = recipe._some(1000, 50, labels)
    assert np.sum(labels[some] == "rare") >= 5
    assert np.all(np.diff(some) > 0)


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
    assert recipe._task(target, None)[0] == task
    assert recipe._task(target, "numbers") == ("numbers", "The target is numbers, as you said.")


def test_bad_targets_and_tasks_are_said():
    with pytest.raises(InputError, match="one value for each of 60 rows"):
        fit_table(TABLE, HEIGHT[:5])
    with pytest.raises(ParameterError, match="'numbers', 'classes' or None"):
        fit_table(TABLE, HEIGHT, task="regression")
    with pytest.raises(InputError, match="leave_out names the columns"):
        fit_table(TABLE, HEIGHT, leave_out=["price"])


def test_the_story_has_a_line_for_every_column_and_step():
    found = fit_table(TABLE, MOSS, leave_out=["size"])
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["kind", "seen", "note"]
    assert lines[4] == "The target has 2 different values: classes."
    assert "hyperparameters by the evidence of all 60 rows" in lines[5]
    assert "6 missing: filled with the median, and marked" in str(found)
