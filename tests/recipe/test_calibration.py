"""Probabilities of table models: as sharp as rows not seen allow, and no sharper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import mercer
from mercer.errors import MercerError
from mercer.recipe import tournament
from mercer.recipe.calibration import LEAST, REACH, calibrated, sharpened, sharpness_of
from mercer.recipe.estimate import of_classes

CLASSES = np.array(["a", "b", "c"])


def drawn(rng, n, classes=CLASSES):
    """Probabilities that are true: the classes are drawn by them."""
    probabilities = rng.dirichlet(np.full(len(classes), 0.4), size=n)
    truth = np.array([rng.choice(classes, p=p) for p in probabilities])
    return probabilities, truth


def estimate_of(truth, probabilities, classes=CLASSES):
    return of_classes("Judged.", np.arange(len(truth)), truth, classes, probabilities)


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_powers_add_up_and_keep_the_order(sharpness):
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.full(4, 0.1), size=200)
    P[0] = [1.0, 0.0, 0.0, 0.0]
    found = sharpened(P, sharpness)
    assert np.allclose(found.sum(axis=1), 1.0) and (found >= 0).all()
    assert np.array_equal(found.argmax(axis=1), P.argmax(axis=1))
    naive = np.array([[p**sharpness / sum(q**sharpness for q in row) for p in row] for row in P])
    assert np.allclose(found, naive, atol=1e-12)


@pytest.mark.parametrize("true", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("classes", [CLASSES, CLASSES[:2]], ids=["three", "two"])
def test_what_made_probabilities_too_careful_or_too_sure_is_undone(true, classes):
    P, truth = drawn(np.random.default_rng(2), 4000, classes)
    distorted = estimate_of(truth, sharpened(P, 1 / true), classes)
    assert sharpness_of(distorted, classes) == pytest.approx(true, rel=0.12)


def test_the_sharpness_has_the_least_log_loss_of_a_grid():
    P, truth = drawn(np.random.default_rng(3), 300)
    found = estimate_of(truth, sharpened(P, 0.4))
    better, sharpness = calibrated(found, CLASSES)
    grid = [log_loss(truth, sharpened(found.spread, s), labels=CLASSES) for s in np.geomspace(*REACH, 300)]
    assert better.measures["log_loss"] <= min(grid) + 1e-3
    assert better.measures["log_loss"] == pytest.approx(
        log_loss(truth, sharpened(found.spread, sharpness), labels=CLASSES)
    )
    assert better.measures["accuracy"] == found.measures["accuracy"]
    assert f"{found.measures['log_loss']:.4g}" in better.how and f"{sharpness:.3g}" in better.how


def test_few_rows_leave_probabilities_as_they_are():
    P, truth = drawn(np.random.default_rng(4), LEAST - 1)
    found = estimate_of(truth, sharpened(P, 0.3))
    assert calibrated(found, CLASSES) == (found, 1.0)


def test_rows_that_were_all_right_do_not_make_certain():
    """Without Platt's correction the power would go to its bound, whatever the number of rows."""
    truth = np.array(["a", "b"] * 40)
    careful = np.where((truth == "a")[:, None], [0.7, 0.3], [0.3, 0.7])
    found = estimate_of(truth, careful, CLASSES[:2])
    _, sharpness = calibrated(found, CLASSES[:2])
    said = sharpened(careful, sharpness).max(axis=1)
    assert said == pytest.approx(1 - 1 / 82, abs=1e-3)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(tournament, "ROUNDS", (tournament.Round(60, 3, 1, 0.3),))
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=["x", "y", "z"])
    labels = CLASSES[np.digitize(table["x"] + table["y"] + 0.1 * rng.normal(size=120), [-0.6, 0.6])]
    return mercer.fit(table, labels, verbose=0), table


def test_a_model_says_probabilities_with_the_sharpness_of_its_estimate(model, tmp_path):
    fitted, table = model
    assert fitted.sharpness_ != 1.0
    raw = fitted.machine_.predict_proba(table)
    assert np.array_equal(fitted.predict_proba(table), sharpened(raw, fitted.sharpness_))
    assert np.array_equal(fitted.classes_[fitted.predict_proba(table).argmax(axis=1)], fitted.predict(table))
    again = mercer.load(fitted.save(tmp_path / "model.mercer").path)
    assert np.array_equal(again.predict_proba(table), fitted.predict_proba(table))


@pytest.mark.parametrize("power", [0.0, -1.0])
def test_a_file_with_an_impossible_power_is_refused(model, tmp_path, power):
    fitted, _ = model
    fitted.sharpness_ = power
    saved = fitted.save(tmp_path / "model.mercer")
    with pytest.raises(MercerError, match="power"):
        mercer.load(saved.path)
