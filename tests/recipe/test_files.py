"""Models of tables in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.recipe import tournament

R = np.random.default_rng(5)
N = 50
TABLE = pd.DataFrame(
    {
        "size": R.normal(size=N),
        "kind": R.choice(["oak", "ash", None], N),
        "note": [f"tree {i} {'with moss' if i % 2 else 'bare'}" for i in range(N)],
    }
)
HEIGHT = TABLE["size"] + (TABLE["kind"] == "oak") + 0.1 * R.normal(size=N)
MOSS = np.where(np.arange(N) % 2, "mossy", "bare")


@pytest.fixture(autouse=True)
def one_short_round(monkeypatch):
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(40, 3, 1, 0.3),))


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("target", [HEIGHT, MOSS], ids=["numbers", "classes"])
@pytest.mark.parametrize("machine", ["gp", "landmarks"])
def test_a_model_of_a_table_comes_back(tmp_path, target, machine, compact):
    model = mercer.fit(TABLE, target, machine=machine, verbose=0)
    saved = model.save(tmp_path / "trees.mercer", compact=compact)
    again = mercer.load(saved.path)
    assert type(again) is type(model)
    assert np.array_equal(again.predict(TABLE), model.predict(TABLE))
    assert again.steps_ == model.steps_ and again.roles_ == model.roles_
    assert again.rounds_ == model.rounds_ and len(model.rounds_) == 12
    assert str(again.estimate_) == str(model.estimate_)
    assert again.summary() == model.summary()
    if model.task == "numbers":
        assert np.allclose(again.predict_interval(TABLE), model.predict_interval(TABLE))
    assert str(again.explain(TABLE.iloc[[3]])) == str(model.explain(TABLE.iloc[[3]]))
