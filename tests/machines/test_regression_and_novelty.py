"""SVR, NuSVR and OneClassSVM: optimality, weights, agreement with LIBSVM, and what ν promises."""

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_diabetes, load_iris

import mercer
from mercer import SVR, NuSVR, OneClassSVM, verify
from mercer.errors import NotFiniteError, ParameterError


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:150], y[:150] / 100


@pytest.fixture(scope="module")
def flowers():
    return load_iris().data


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        (SVR("RBF(gamma=2.0)", 3.0, epsilon=0.2), svm.SVR(gamma=2.0, C=3.0, epsilon=0.2, tol=1e-9)),
        (NuSVR("RBF(gamma=2.0)", 0.4, C=3.0), svm.NuSVR(gamma=2.0, nu=0.4, C=3.0, tol=1e-9)),
    ],
)
def test_predictions_are_those_of_libsvm_solved_tightly(diabetes, ours, peer):
    X, y = diabetes
    np.testing.assert_allclose(ours.fit(X, y).predict(X), peer.fit(X, y).predict(X), atol=1e-5)
    assert ours.certificate_.gap <= 1e-8 * abs(ours.certificate_.primal)
    assert verify(ours, X, y), str(verify(ours, X, y))


def test_novelty_is_that_of_libsvm_solved_tightly(flowers):
    ours = OneClassSVM("RBF(gamma=0.5)", 0.2).fit(flowers)
    peer = svm.OneClassSVM(gamma=0.5, nu=0.2, tol=1e-9).fit(flowers)
    np.testing.assert_allclose(ours.decision_function(flowers), peer.decision_function(flowers), atol=1e-6)
    np.testing.assert_allclose(
        ours.score_samples(flowers), ours.decision_function(flowers) + ours.offset_, atol=1e-12
    )
    assert verify(ours, flowers), str(verify(ours, flowers))


def test_the_loss_of_a_regression_is_its_primal(diabetes):
    X, y = diabetes
    model = SVR("RBF(gamma=2.0)", 3.0, epsilon=0.2).fit(X, y)
    loss = np.maximum(np.abs(y - model.predict(X)) - 0.2, 0).sum()
    assert model.certificate_.primal == pytest.approx(0.5 * model.norms_[0] ** 2 + 3.0 * loss, rel=1e-9)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
def test_nu_bounds_the_rows_outside_and_the_support_vectors(diabetes, flowers, nu):
    X, y = diabetes
    model = NuSVR("RBF(gamma=2.0)", nu).fit(X, y)
    outside = np.abs(y - model.predict(X)) > model.epsilon_ + 1e-6
    assert outside.mean() <= nu + 1e-9 and len(model.support_) / len(y) >= nu - 1e-9
    one = OneClassSVM("RBF(gamma=0.5)", nu).fit(flowers)
    assert (one.decision_function(flowers) < -1e-9).mean() <= nu + 1e-9
    assert len(one.support_) / len(flowers) >= nu - 1e-9


@pytest.mark.parametrize("machine", [SVR(C=2.0), NuSVR(nu=0.3), OneClassSVM(nu=0.3)])
def test_weight_two_is_a_row_twice(diabetes, machine):
    X, y = diabetes
    w = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = machine.fit(X, y, sample_weight=w)._values(X)
    repeated = machine.fit(np.repeat(X, w, axis=0), np.repeat(y, w))._values(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_one_changed_coefficient_is_seen(diabetes):
    X, y = diabetes
    for model in (SVR().fit(X, y), NuSVR().fit(X, y), OneClassSVM().fit(X)):
        model.dual_coef_[0, 3] *= 1.001
        assert not verify(model, X, y)


def test_precomputed_and_without_bias(diabetes):
    X, y = diabetes
    k = mercer.RBF(0.5)
    a, b = SVR(k, fit_intercept=False).fit(X, y), SVR("precomputed", fit_intercept=False).fit(k(X), y)
    np.testing.assert_allclose(a.predict(X), b.predict(k(X)), atol=1e-8)
    assert a.intercept_ == 0


def test_a_single_row_and_constant_targets_fit():
    assert SVR("RBF(1.0)").fit([[1.0, 2.0]], [3.0]).predict([[0.0, 0.0]]) == pytest.approx([3.0])
    assert SVR("RBF(1.0)").fit(np.eye(4), np.full(4, 7.0)).predict(np.eye(4)) == pytest.approx([7.0] * 4)
    assert OneClassSVM("RBF(1.0)").fit([[1.0]]).predict([[1.0]]) == [1]


def test_bad_parameters_and_targets_are_refused(diabetes):
    X, y = diabetes
    for machine, words in (
        (SVR(C=np.inf), "finite"),
        (SVR(epsilon=-1), "epsilon"),
        (NuSVR(nu=0), "nu must be"),
        (OneClassSVM(nu=1.5), "nu must be"),
        (NuSVR(solver="projected-gradient"), "working-set"),
    ):
        with pytest.raises(ParameterError, match=words):
            machine.fit(X, y)
    with pytest.raises(NotFiniteError, match="row 2"):
        SVR().fit(X, np.where(np.arange(len(y)) == 2, np.nan, y))
