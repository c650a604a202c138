"""Rows with gaps in files: a table with gaps comes back, a gap in plain rows of numbers is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
