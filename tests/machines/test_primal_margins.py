"""Margin machines and losses in explicit features: the optimum of entries of K, and the same claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm

import mercer
from mercer import SVC, SVR, KernelMachine, Linear, Nystroem, Polynomial
from mercer.errors import ParameterError
from mercer.solve.plan import FEW_ROWS

LINEAR = ["Linear()", "0.3*Linear() + 2", "Linear().on(0, 2) + 0.5*Linear().on(1)", "Polynomial(2)"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 4))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=180) > 0.3, "yes", "no")
    return X, y


def zipf(n, d, m, seed=0):
    """Documents of m words, some of which are frequent, and two classes of them."""
    rng = np.random.default_rng(seed)
    share = 1 / (np.arange(d) + 10.0)
    words = rng.choice(d, size=n * m, p=share / share.sum())
    X = sparse.csr_array((np.ones(n * m), (np.repeat(np.arange(n), m), words)), shape=(n, d))
    X.sum_duplicates()
    X = sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    scores = X @ rng.normal(size=d)
    return X, np.where(scores > np.median(scores), 1, -1)


def same(one, other, X, *, rtol=1e-6):
    a, b = one.certificate_, other.certificate_
    np.testing.assert_allclose(a.dual, b.dual, rtol=rtol)
    reach = np.sqrt(2 * (a.gap + b.gap + 1e-12 * abs(a.dual)))
    longest = np.sqrt(np.abs(one.kernel_(X).diagonal()).max())
    near = max(3 * reach * longest, 1e-6)
    np.testing.assert_allclose(one._values(X), other._values(X), atol=near + 1e-3 * one.fit_intercept)


@pytest.mark.parametrize("kernel", LINEAR)
@pytest.mark.parametrize("bias", [False, True])
def test_the_two_ways_find_the_same_classifier(kernel, bias, rows):
    X, y = rows
    settings = {"C": 0.7, "fit_intercept": bias, "tol": 1e-6}
    one = SVC(kernel, solver="primal", **settings).fit(X, y)
    other = SVC(kernel, solver="working-set", **settings).fit(X, y)
    same(one, other, X)
    assert one.solver_ == "primal" and other.solver_ == "working-set"
    assert "features" in one.certificate_.method and one.certificate_.converged
    assert set(vars(other)) - {"coef_", "feature_map_"} == set(vars(one)) - {"coef_", "feature_map_"}
    assert mercer.verify(one, X, y)


@pytest.mark.parametrize("kernel", LINEAR)
@pytest.mark.parametrize("bias", [False, True])
def test_the_two_ways_find_the_same_regression(kernel, bias, rows):
    X, _ = rows
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * X[:, 0] ** 2 + 7.0 * bias
    settings = {"C": 2.0, "epsilon": 0.05, "fit_intercept": bias, "tol": 1e-6}
    one = SVR(kernel, solver="primal", **settings).fit(X, y)
    same(one, SVR(kernel, solver="working-set", **settings).fit(X, y), X)
    assert mercer.verify(one, X, y)


def test_predictions_are_one_product_with_the_weights(rows):
    X, y = rows
    model = SVC("0.3*Linear() + 2", solver="primal").fit(X, y)
    by_rows = mercer.SVC._products(model, X, model.support_vectors_, model.dual_coef_.T, model.support_)
    np.testing.assert_allclose(
        model.decision_function(X), by_rows[:, 0] + model.intercept_, rtol=1e-9, atol=1e-9
    )
    phi = model.feature_map_(X)
    np.testing.assert_allclose(model.coef_, model.dual_coef_ @ phi[model.support_], rtol=1e-9, atol=1e-9)


def test_weights_that_do_not_follow_from_the_coefficients_are_noticed(rows):
    X, y = rows
    model = SVC("Linear()", solver="primal").fit(X, y)
    model.coef_ = model.coef_ * 1.001
    found = mercer.verify(model, X, y)
    assert not found and any("coef_" in text for text in found.findings)


def test_a_refit_by_another_way_leaves_no_weights_behind(rows):
    X, y = rows
    model = SVC("Linear()", solver="primal").fit(X, y)
    model.set_params(kernel="RBF(1.0)", solver="auto").fit(X, y)
    assert not hasattr(model, "coef_") and model.solver_ == "working-set"


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_without_a_bias_it_is_liblinear(C, rows):
    X, y = rows
    peer = svm.LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=10**6).fit(X, y)
    model = SVC("Linear()", C=C, fit_intercept=False, solver="primal", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_with_a_bias_it_is_libsvm(C, rows):
    X, y = rows
    peer = svm.SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    model = SVC("Linear()", C=C, solver="primal", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)


def test_weights_of_rows_and_classes_count_as_they_do_elsewhere(rows):
    X, y = rows
    w = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    settings = {"tol": 1e-7, "class_weight": {"yes": 2.0, "no": 0.5}}
    one = SVC("Linear()", solver="primal", **settings).fit(X, y, sample_weight=w)
    same(one, SVC("Linear()", solver="working-set", **settings).fit(X, y, sample_weight=w), X)
    again = np.repeat(np.arange(len(y)), w.astype(int))
    twice = SVC("Linear()", solver="primal", **settings).fit(X[again], y[again])
    np.testing.assert_allclose(twice.certificate_.dual, one.certificate_.dual, rtol=1e-6)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_many_classes_go_the_same_way(multiclass, rows):
    X, _ = rows
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.7, 0.0, 0.8])
    settings = {"multiclass": multiclass, "tol": 1e-7}
    one = SVC("Linear()", solver="primal", **settings).fit(X, y)
    other = SVC("Linear()", solver="working-set", **settings).fit(X, y)
    for a, b in zip(one.certificates_, other.certificates_, strict=True):
        np.testing.assert_allclose(a.dual, b.dual, rtol=1e-6)
    assert one.coef_.shape == (len(one.certificates_), 4)
    assert mercer.verify(one, X, y)
    jobs = SVC("Linear()", solver="primal", n_jobs=2, **settings).fit(X, y)
    np.testing.assert_array_equal(jobs.dual_coef_, one.dual_coef_)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    "kernel", ["Linear()", "2*Linear() + 1", "Linear().normalized()", "Linear().on(slice(0, 300))"]
)
def test_sparse_rows_are_those_with_their_zeros(kernel, dtype):
    X, y = zipf(150, 600, 20)
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    one = SVC(kernel, solver="primal", tol=1e-7).fit(X, y)
    whole = SVC(kernel, solver="primal", tol=1e-7).fit(X.toarray(), y)
    np.testing.assert_allclose(one.certificate_.dual, whole.certificate_.dual, rtol=1e-9)
    np.testing.assert_allclose(one.decision_function(X), whole.decision_function(X.toarray()), atol=1e-5)
    assert mercer.verify(one, X, y)


def test_text_takes_the_features_by_itself_and_curved_kernels_do_not():
    X, y = zipf(FEW_ROWS + 200, 3000, 30)
    model = SVC("Linear()").fit(X, y)
    assert model.solver_ == "primal" and model.certificate_.converged
    other = SVC("Linear()", solver="working-set").fit(X, y)
    np.testing.assert_allclose(model.certificate_.dual, other.certificate_.dual, rtol=1e-4)
    assert SVC("RBF(1.0)").fit(X[:300], y[:300]).solver_ == "working-set"
    assert SVC("Linear()").fit(X[:300], y[:300]).solver_ == "working-set"
    assert SVC("Linear()", C=np.inf).fit([[0.0], [1.0]], [0, 1]).solver_ == "working-set"


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
def test_losses_take_the_features_by_themselves(loss):
    X, y = zipf(FEW_ROWS + 200, 2000, 20)
    model = KernelMachine("Linear()", loss).fit(X, y)
    assert "features" in model.certificate_.method and model.certificate_.converged
    assert mercer.verify(model, X, y)
    few = np.arange(FEW_ROWS)
    small = KernelMachine("Linear()", loss).fit(X[few], y[few])
    assert not hasattr(small, "coef_")
    w = np.zeros(len(y))
    w[few] = 1.0
    weighted = KernelMachine("Linear()", loss).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(weighted.certificate_.primal, small.certificate_.primal, rtol=1e-6)


def test_features_of_an_approximation_are_features(rows):
    X, y = rows
    settings = {"approximation": Nystroem(n_components=20, random_state=0), "tol": 1e-6}
    one = SVC("RBF(1.0)", solver="primal", **settings).fit(X, y)
    other = SVC("RBF(1.0)", solver="working-set", **settings).fit(X, y)
    np.testing.assert_allclose(one.certificate_.dual, other.certificate_.dual, rtol=1e-6)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=2e-3)
    assert mercer.verify(one, X, y)


def test_probabilities_are_calibrated_by_the_same_way(rows):
    X, y = rows
    settings = {"probability": True, "random_state": 0, "tol": 1e-7}
    one = SVC("Linear()", solver="primal", **settings).fit(X, y)
    other = SVC("Linear()", solver="working-set", **settings).fit(X, y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-3)


def test_what_has_no_finite_features_says_so(rows):
    X, y = rows
    with pytest.raises(ParameterError, match="finite feature map"):
        SVC("RBF(1.0)", solver="primal").fit(X, y)
    with pytest.raises(ParameterError, match="finite feature map"):
        SVC("precomputed", solver="primal").fit(X @ X.T, y)
    with pytest.raises(ParameterError, match="finite C"):
        SVC("Linear()", C=np.inf, solver="primal").fit(X, y)


def test_where_ascent_takes_too_long_working_sets_go_on(rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr("mercer.solve.plan.FEW_ROWS", 0)
    monkeypatch.setattr("mercer.solve.ascent.numbers_allowed", lambda numbers: 1)
    model = SVC("Linear()").fit(X, y)
    assert "then working sets" in model.certificate_.method and model.certificate_.converged
    assert mercer.verify(model, X, y)


def test_maps_of_sparse_rows_are_those_of_dense_ones():
    X, _ = zipf(20, 40, 10)
    for k in (Linear(), 3 * Linear() + 2, Linear().normalized(), Linear().on(3, 1) + Linear()):
        phi = k.features(40)
        assert phi.keeps_sparse(X)
        np.testing.assert_allclose(phi.sparse(X).toarray(), phi(X.toarray()), rtol=1e-14, atol=1e-300)
    assert not Polynomial(2).features(40).keeps_sparse(X)
    assert not Linear().features(40).keeps_sparse(X.toarray())
