"""Tables of more named columns than kernels are proposed for one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import mercer
from mercer.cli.main import app
from mercer.errors import InputError
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


def written_as_text(path, X, y):
    """LIBSVM's text, which leaves out what is 0."""
    lines = (
        " ".join([f"{label:g}", *(f"{j + 1}:{row[j]!r}" for j in np.flatnonzero(row))])
        for row, label in zip(X.tolist(), y, strict=True)
    )
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("columns", [4, MOST_COLUMNS + 3])
def test_rows_of_a_text_whose_last_columns_are_all_zero_are_those_of_the_model(columns, tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, columns)), 3) * (rng.random((60, columns)) < 0.7)
    X[0, -1] = 1.0
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    written_as_text(tmp_path / "all.svm", X, y)
    model = mercer.fit(tmp_path / "all.svm", kernel="RBF()", max_seconds=5, verbose=0)
    X[:, -2:] = 0.0
    written_as_text(tmp_path / "fewer.svm", X, y)
    assert mercer.read_table(tmp_path / "fewer.svm").shape[1] == columns - 2
    np.testing.assert_array_equal(model.predict(tmp_path / "fewer.svm"), model.predict(X))
    model.save(tmp_path / "m.mercer")
    told = CliRunner().invoke(app, ["score", str(tmp_path / "m.mercer"), str(tmp_path / "fewer.svm")])
    assert told.exit_code == 0 and "last 2 columns of the model" in told.stderr
    out = ["predict", str(tmp_path / "m.mercer"), str(tmp_path / "fewer.svm"), "-o", str(tmp_path / "p.csv")]
    assert CliRunner().invoke(app, out).exit_code == 0
    # an array that is too narrow is a mistake, and so is a text with columns that the model never saw
    with pytest.raises(InputError):
        model.predict(X[:, :-2])
    written_as_text(tmp_path / "more.svm", np.column_stack([X, np.ones(60)]), y)
    if columns > MOST_COLUMNS:
        with pytest.raises(InputError, match=f"fitted to {columns} columns; got {columns + 1}"):
            model.predict(tmp_path / "more.svm")
