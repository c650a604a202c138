"""The table of bounds beside the measured error: every number again, from its formula."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons

from estimators_under_test import SUBJECTS, X
from mercer import SVC, KernelPerceptron, KernelRidge, Perceptron
from mercer.errors import MercerError, ParameterError
from mercer.theory import report


def test_every_number_of_the_table_is_its_formula():
    X, y = make_moons(160, noise=0.05, random_state=0)
    A, B, u, v = X[:80], X[80:], y[:80], y[80:]
    model = SVC("RBF(0.5)", np.inf, tol=1e-8).fit(A, u)
    found = report(model, A, u, B, v)
    sides = np.where(u == 1, 1, -1) * model.decision_function(A)
    delta = sides.min() / model.norms_[0]
    assert found["examples P"] == (80,) and found["dimensions N"] == (np.inf,)
    assert found["smallest signed distance δ"][0] == pytest.approx(delta)
    assert found["margin bound X²/(Pδ²)"][0] == pytest.approx(1.0 / (80 * delta**2))
    assert found["support vectors / P"][0] == len(model.support_) / 80
    whole = np.sqrt(model.norms_[0] ** 2 + model.intercept_[0] ** 2)
    assert found["Novikoff (X/δ)²"][0] == np.floor(2.0 / (sides.min() / whole) ** 2)
    assert found.test_error == np.mean(model.predict(B) != v) and found.train_error == 0.0
    assert found.test_error <= found["support vectors / P"][0]
    assert found["random labels: δ"] == (None,)
    text = str(found)
    assert "∞" in text and "—" in text and "measured error rate" in text


@pytest.mark.parametrize("kind", [KernelPerceptron, Perceptron])
@pytest.mark.parametrize("seed", range(4))
def test_a_perceptron_makes_no_more_mistakes_than_novikoff_allows(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 4))
    y = (X @ rng.normal(size=4) > 0.1).astype(int)
    model = kind("Linear()", max_iter=5000).fit(X, y)
    found = report(model, X, y)
    assert model.converged_
    assert found["mistakes made"][0] <= found["Novikoff (X/δ)²"][0]
    assert found["random labels: P²N"] == (15**2 * 4,)


def test_a_plane_that_does_not_separate_has_no_margin_bound():
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 0]
    found = report(SVC("Linear()").fit(X, y), X, y)
    assert found["margin bound X²/(Pδ²)"] == (None,) and found["Novikoff (X/δ)²"] == (None,)
    assert found.train_error > 0


def test_numbers_have_a_norm_and_an_error():
    X, y = np.arange(8.0)[:, None], np.sin(np.arange(8.0))
    model = KernelRidge("RBF(1.0)", alpha=0.1).fit(X, y)
    found = report(model, X, y)
    assert found.train_error == pytest.approx(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    assert "root mean squared error" in str(found) and found.test_error is None


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_every_machine_has_a_table_or_a_sentence(subject):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = subject.fit()
    try:
        assert len(str(report(model, X, subject.y)).splitlines()) >= 3
    except MercerError:
        assert subject.target in ("", "view") or "voted" in subject.name or "Nadaraya" in subject.name


def test_half_of_the_test_rows_is_refused():
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    with pytest.raises(ParameterError, match="come together"):
        report(SVC("Linear()").fit(X, y), X, y, X)
