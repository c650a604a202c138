"""Tables of more named columns than kernels are proposed for one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mercer
from mercer.recipe.given import MOST_COLUMNS, Given


def wide_table(task):
    rng = np.random.default_rng(3)
    X = (rng.random((90, MOST_COLUMNS + 3)) < 0.2).astype(float)
    table = pd.DataFrame(X, columns=[f"word {j}" for j in range(X.shape[1])])
    score = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.05 * rng.normal(size=len(X))
    table["goal"] = np.where(score > 0, "in", "out") if task == "classes" else score
    return table, X


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_a_saved_model_of_many_named_columns_loads_and_says_the_same_of_frames_and_arrays(task, tmp_path):
    table, X = wide_table(task)
    model = mercer.fit(table, "goal", max_seconds=5, random_state=0, verbose=0)
    model.save(tmp_path / "wide.mercer")
    again = mercer.load(tmp_path / "wide.mercer")
    said = model.predict(table.drop(columns="goal"))
    for rows in (table.drop(columns="goal"), X, sparse.csr_array(X)):
        assert np.array_equal(model.predict(rows), said)
        assert np.array_equal(again.predict(rows), said)


def test_rows_without_names_are_called_by_those_of_the_fit():
    X = np.arange(2.0 * (MOST_COLUMNS + 1)).reshape(2, -1)
    names = [f"c{j}" for j in range(X.shape[1])]
    for rows in (X, sparse.csr_array(X)):
        called = Given.of(rows).called(names)
        assert called.names == tuple(names)
        assert np.array_equal(called.table.to_numpy(), X)
