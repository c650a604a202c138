"""Rows with gaps in files: a table with gaps comes back, a gap in plain rows of numbers is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from mercer.errors import ModelFileError

R = np.random.default_rng(4)
TABLE = pd.DataFrame({"a": R.normal(size=40), "b": R.normal(size=40)})
Y = TABLE["a"] + 0.1 * R.normal(size=40)
TABLE.loc[R.random(40) < 0.3, "b"] = np.nan
READS = 'RBF(1.0).on("a") + RBF(1.0).of(Filled()).on("b")'


@pytest.mark.parametrize(
    "model",
    [
        mercer.KernelRidge(READS, alpha=0.1),
        mercer.GaussianProcessRegressor(f"{READS} + White(0.1)", optimizer=None),
        mercer.SVR(READS),
        mercer.FalkonRegressor(READS, 10, 0.1),
        mercer.KernelRidge('RBF(1.0).on("a")', alpha=0.1),
    ],
    ids=lambda model: f"{type(model).__name__}, {model.kernel}",
)
def test_a_table_of_numbers_with_gaps_comes_back(tmp_path, model):
    model.fit(TABLE, Y)
    saved = mercer.save(model, tmp_path / "gaps.mercer")
    again = mercer.load(saved.path)
    assert np.array_equal(again.predict(TABLE), model.predict(TABLE))


@pytest.mark.parametrize("name", ["X_fit_", "support_vectors_", "landmarks_"])
def test_a_gap_in_rows_of_numbers_is_refused(tmp_path, name):
    kinds = {
        "X_fit_": mercer.GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None),
        "support_vectors_": mercer.SVR("RBF(1.0)"),
        "landmarks_": mercer.FalkonRegressor("RBF(1.0)", 10, 0.1),
    }
    whole = TABLE.fillna(0.0).to_numpy()
    model = kinds[name].fit(whole, Y)
    rows = getattr(model, name).copy()
    rows[3, 1] = np.nan
    setattr(model, name, rows)
    saved = mercer.save(model, tmp_path / "hole.mercer")
    with pytest.raises(ModelFileError, match=f"{name} is .* with NaN or infinity"):
        mercer.load(saved.path)


# ── cells of tables ─────────────────────────────────────────────────────────────────────────────────────────

CELLS = pd.DataFrame(
    {"a": R.normal(size=20), "kind": R.choice(["oak", "ash"], 20), "other": R.normal(size=20)}
)
MIXED = 'RBF(1.0).on("a") + Categorical().on("kind")'
KEEP = {
    "X_fit_": mercer.KernelRidge(MIXED, alpha=0.1, solver="cholesky"),
    "support_vectors_": mercer.SVR(MIXED, epsilon=0.01),
    "landmarks_": mercer.FalkonRegressor(MIXED, 10, 0.1),
}


def with_cell(model, name, column, cell):
    """A model in whose kept rows one cell is another."""
    rows = getattr(model, name).copy()
    rows[2, column] = cell
    setattr(model, name, rows)
    return model


@pytest.mark.parametrize("cell", [np.inf, -np.inf, float("nan"), "oak", 1e300])
@pytest.mark.parametrize("name", KEEP)
def test_a_cell_that_the_kernel_cannot_read_is_refused(tmp_path, name, cell):
    model = with_cell(clone(KEEP[name]).fit(CELLS, CELLS["a"]), name, 0, cell)
    saved = mercer.save(model, tmp_path / "cell.mercer")
    with pytest.raises(ModelFileError, match=f"{name} has cells that the kernel cannot read"):
        mercer.load(saved.path)


@pytest.mark.parametrize("name", KEEP)
def test_a_cell_that_the_kernel_does_not_look_at_may_be_anything(tmp_path, name):
    table = CELLS.assign(other=CELLS["other"].where(CELLS.index != 2, np.inf))
    model = clone(KEEP[name]).fit(table, CELLS["a"])
    saved = mercer.save(model, tmp_path / "cell.mercer")
    assert np.array_equal(mercer.load(saved.path).predict(table), model.predict(table))


def test_a_cell_of_the_table_of_a_fit_is_checked_too(tmp_path):
    model = mercer.fit(CELLS, CELLS["a"].to_numpy(), kernel=MIXED, machine="gp", verbose=0)
    with_cell(model.machine_, "X_fit_", 0, np.inf)
    saved = mercer.save(model, tmp_path / "cell.mercer")
    with pytest.raises(ModelFileError, match="cannot read"):
        mercer.load(saved.path)
