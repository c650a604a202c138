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
    R.bit_generator.state = np.random.default_rng(7).bit_generator.state
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
    assert again.explain(TABLE.iloc[[3]]).said == model.explain(TABLE.iloc[[3]]).said


def test_a_process_on_landmarks_is_saved_without_a_row_of_its_fit(tmp_path):
    """Landmarks, weights and a factor say all of new rows; what needs the rows is refused, not guessed."""
    numbers = TABLE.assign(more=R.normal(size=N))[["size", "more", "kind"]]
    model = mercer.fit(numbers, HEIGHT, machine="landmarks", verbose=0)
    model.machine_.approximation.n_components = 12
    model.machine_ = model.machine_.fit(numbers, HEIGHT)
    whole = model.save(tmp_path / "whole.mercer", compact=False)
    saved = model.save(tmp_path / "compact.mercer", compact=True)
    assert set(whole.rows) == {"machine_.X_fit_", "machine_.approximation_.landmarks_"}
    assert set(saved.rows) == {"machine_.approximation_.landmarks_"}
    assert saved.bytes < whole.bytes
    again = mercer.load(saved.path)
    assert len(again.machine_.X_fit_) == 0
    assert np.array_equal(again.predict_interval(numbers), model.predict_interval(numbers))
    row = numbers.iloc[[3]]
    assert again.explain(row).said == model.explain(row).said
    with pytest.raises(mercer.errors.InputError, match="saved without them"):
        again.machine_.loo()
    checked = mercer.verify(again.machine_, numbers, HEIGHT)
    assert checked.ok and any("saved without them" in text for text in checked.unchecked)
    assert not mercer.verify(again.machine_, numbers, HEIGHT + 1.0 * R.normal(size=N)).ok
