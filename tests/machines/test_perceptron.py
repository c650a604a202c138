"""The textbook machines: the same mistakes in both spaces, Novikoff's bound, and a dual that never falls."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, Adatron, KernelPerceptron, Perceptron, Polynomial
from mercer.errors import InputError, ParameterError
from mercer.theory import novikoff_bound, radius_of


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("kernel", ["Linear()", "Polynomial(2)", "Polynomial(3, offset=0.5)"])
@pytest.mark.parametrize("average", ["last", "averaged"])
def test_dual_and_primal_make_the_same_mistakes_in_the_same_order(points, kernel, average):
    X, y = points
    dual = KernelPerceptron(kernel, max_iter=20, average=average).fit(X, y)
    primal = Perceptron(kernel, max_iter=20, average=average).fit(X, y)
    np.testing.assert_array_equal(dual.mistakes_, primal.mistakes_)
    np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(X), atol=1e-8)


def test_mistakes_stay_within_novikoffs_bound(points):
    X, y = points
    kernel = Polynomial(2)
    X, y = X[np.abs(X[:, 0] * X[:, 1]) > 0.3], y[np.abs(X[:, 0] * X[:, 1]) > 0.3]
    model = KernelPerceptron(kernel, max_iter=10_000).fit(X, y)
    assert model.converged_ and model.score(X, y) == 1
    # The intercept of the perceptron is one more feature.
    wide = SVC(kernel + 1.0, np.inf, fit_intercept=False).fit(X, y)
    assert model.n_mistakes_ <= novikoff_bound(radius_of(kernel, X, bias=True), 1 / wide.norms_[0])


def test_voted_and_averaged_perceptrons_beat_the_last_one_on_noise():
    X, y = make_moons(400, noise=0.35, random_state=0)
    scores = {
        a: KernelPerceptron("RBF(0.5)", max_iter=3, average=a).fit(X[:200], y[:200]).score(X[200:], y[200:])
        for a in ("last", "averaged", "voted")
    }
    assert scores["averaged"] >= scores["last"] and scores["voted"] >= scores["last"]


@pytest.mark.parametrize("machine", [KernelPerceptron("Polynomial(2)"), Perceptron("Polynomial(2)")])
def test_rows_may_come_in_parts(points, machine):
    X, y = points
    machine.max_iter = 1
    whole = machine.fit(X, y).decision_function(X)
    parts = type(machine)("Polynomial(2)")
    for start in range(0, 80, 16):
        parts.partial_fit(X[start : start + 16], y[start : start + 16], classes=[0, 1])
    np.testing.assert_allclose(parts.decision_function(X), whole, atol=1e-9)


def test_the_adatron_climbs_to_the_machine_without_bias(points):
    X, y = points
    slow = Adatron("RBF(0.7)", C=5.0, tol=1e-6).fit(X, y)
    assert np.all(np.diff(slow.dual_) >= -1e-12 * slow.dual_[-1])
    quick = SVC("RBF(0.7)", 5.0, fit_intercept=False).fit(X, y)
    assert slow.certificate_.dual == pytest.approx(quick.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(slow.decision_function(X), quick.decision_function(X), atol=1e-4)


def test_a_step_at_the_limit_is_refused_and_one_below_rises(points):
    X, y = points
    limit = 2 / Polynomial(2).diag(X).max()
    with pytest.raises(ParameterError, match=r"2 / max k\(x, x\)"):
        Adatron("Polynomial(2)", step=limit).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = Adatron("Polynomial(2)", C=1.0, step=0.99 * limit, max_iter=20).fit(X, y)
    assert np.all(np.diff(model.dual_) >= 0)


def test_other_than_two_classes_are_refused(points):
    X, _ = points
    for machine in (KernelPerceptron(), Perceptron(), Adatron()):
        with pytest.raises(InputError, match="OneVsOneClassifier"):
            machine.fit(X, np.arange(80) % 3)
    with pytest.raises(ParameterError, match="KernelPerceptron"):
        Perceptron(average="voted").fit(X, np.arange(80) % 2)
