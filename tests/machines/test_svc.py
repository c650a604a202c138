"""Support vector classification: optimality, weights, shared kernel work, hard margins, refusals."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, NuSVC, verify
from mercer.errors import (
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    NotFiniteError,
    NotSeparableError,
    ParameterError,
    PrecisionWarning,
    ShapeError,
)
from reference.smo import smo


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    "kernel", ["RBF(0.5)", "Polynomial(2)", "RBF(1.0)*Linear() + 0.5*Matern(1.0, nu=2.5)"]
)
def test_the_certificate_closes_and_the_conditions_hold(moons, kernel, C):
    X, y = moons
    model = SVC(kernel, C).fit(X, y)
    c = model.certificate_
    assert c.status == "converged"
    assert 0 <= c.gap <= 1e-8 * abs(c.primal)
    assert c.kkt <= 1e-6
    f, sign = model.decision_function(X), np.where(y == 1, 1.0, -1.0)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert np.all(sign[alpha == 0] * f[alpha == 0] >= 1 - 1e-5)
    assert np.all(sign[alpha >= C] * f[alpha >= C] <= 1 + 1e-5)
    free = (alpha > 0) & (alpha < C)
    np.testing.assert_allclose(sign[free] * f[free], 1.0, atol=1e-5)
    assert abs(model.dual_coef_.sum()) <= 1e-9 * C


def test_the_dual_is_that_of_a_plain_smo(moons):
    X, y = moons
    sign = np.where(y == 1, 1.0, -1.0)
    K = mercer.RBF(0.5)(X)
    found = smo(K, rows=np.arange(len(y)), signs=sign, p=-np.ones(len(y)), C=3.0, tol=1e-9)
    model = SVC("RBF(0.5)", 3.0).fit(X, y)
    assert model.certificate_.dual == pytest.approx(-found.objective, rel=1e-9)


def test_decisions_are_those_of_libsvm_solved_tightly(iris):
    X, y = iris
    ours, peer = SVC("RBF(gamma=0.5)", 2.0).fit(X, y), svm.SVC(gamma=0.5, C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.n_support_, peer.n_support_)
    nu, nu_peer = NuSVC("RBF(gamma=0.5)", 0.3).fit(X, y), svm.NuSVC(gamma=0.5, nu=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), nu_peer.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    "machine", [SVC(C=2.0), SVC(C=2.0, fit_intercept=False), NuSVC(nu=0.2), SVC(multiclass="ovr")]
)
def test_weight_two_is_a_row_twice_and_weight_zero_no_row(iris, machine):
    X, y = iris
    w = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = machine.fit(X, y, sample_weight=w).decision_function(X)
    repeated = machine.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_class_weights_are_sample_weights_and_balanced_counts_rows(moons):
    X, y = moons
    by_class = SVC(class_weight={0: 3.0, 1: 0.5}, kernel="RBF(0.5)").fit(X, y)
    by_row = SVC("RBF(0.5)").fit(X, y, sample_weight=np.where(y == 0, 3.0, 0.5))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-8)
    few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10]]
    balanced = SVC("RBF(0.5)", class_weight="balanced").fit(X[few], y[few])
    np.testing.assert_allclose(balanced.class_weight_, [70 / 120, 70 / 20])


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_precomputed_sparse_tiles_and_direct_agree(iris, multiclass):
    X, y = iris
    kernel = mercer.RBF(1.5)
    direct = SVC(kernel, multiclass=multiclass).fit(X, y)
    values = direct.decision_function(X)
    stored = SVC("precomputed", multiclass=multiclass).fit(kernel(X), y)
    np.testing.assert_allclose(stored.decision_function(kernel(X)), values, atol=1e-7)
    thin = SVC(kernel, multiclass=multiclass).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), values, atol=1e-7)
    tiles = SVC(kernel, multiclass=multiclass, memory=1000).fit(X, y)
    np.testing.assert_allclose(tiles.decision_function(X), values, atol=1e-5)


def test_order_of_rows_and_threads_do_not_matter(iris):
    X, y = iris
    order = np.random.default_rng(1).permutation(len(y))
    a, b = SVC(n_jobs=1).fit(X, y), SVC(n_jobs=2).fit(X[order], y[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-7)


def test_along_a_path_of_C_the_dual_rises_and_warm_starts_agree(moons):
    X, y = moons
    warm, last = SVC("RBF(0.5)", warm_start=True), -np.inf
    for C in (0.1, 1.0, 10.0, 3.0):
        warm.set_params(C=C).fit(X, y)
        cold = SVC("RBF(0.5)", C).fit(X, y)
        assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-7)
        assert C == 3.0 or cold.certificate_.dual > last
        last = cold.certificate_.dual


def test_a_limit_is_reported_and_a_warm_start_resumes(moons):
    X, y = moons
    model = SVC("RBF(0.5)", 1000.0, max_iter=1, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="warm_start"):
        model.fit(X, y)
    first = model.certificate_
    assert first.status == "limit" and first.gap > 0
    model.set_params(max_iter=None).fit(X, y)
    assert model.certificate_.status == "converged" and model.certificate_.dual > first.dual


def test_a_callback_that_says_stop_keeps_the_model(moons):
    X, y = moons
    model = SVC(
        "RBF(0.5)", fit_intercept=False, solver="projected-gradient", callback=lambda *state: True, tol=1e-12
    )
    model.fit(X, y)
    assert model.certificate_.status == "stopped"
    assert model.predict(X).shape == y.shape


def test_hard_margin_in_the_plane_by_hand():
    model = SVC("Linear()", np.inf).fit([[0, 0], [1, 1], [2, 3], [3, 3]], [0, 0, 1, 1])
    w = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(w, [[0.4, 0.8]], atol=1e-9)  # through the middle between (1, 1) and (2, 3)
    found = model.margins([[0, 0], [1, 1], [2, 3], [3, 3]], [0, 0, 1, 1])
    assert found.delta[0] == pytest.approx(np.sqrt(5) / 2)
    assert found.smallest[0] == pytest.approx(np.sqrt(5) / 2)
    assert set(found.on_margin[0]) == {1, 2} and len(found.at_bound[0]) == 0
    assert "δ" in str(found)


def test_a_hard_margin_that_does_not_exist_is_an_error_with_the_violation(moons):
    with pytest.raises(NotSeparableError, match=r"cannot be separated.*row \d+"):
        SVC("Linear()", np.inf).fit(*moons)
    with pytest.raises(NotSeparableError):
        SVC(mercer.RBF(1.0), np.inf).fit([[0.0], [0.0], [1.0]], [0, 1, 1])


@pytest.mark.parametrize("kernel", ["Linear()", "RBF(3.0)", "Polynomial(2)"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_smallest_violation_of_a_hard_margin(kernel, bias, monkeypatch):
    """The least Σ max(0, 1 - y f) there is: not above that of any soft margin,
    and that of the best one in the limit.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=40) > 0, 1.0, -1.0)
    X[5], y[5] = X[6], -y[6]  # one row with two labels: no kernel separates them

    def said():
        with pytest.raises(NotSeparableError, match="smallest violation") as caught:
            SVC(kernel, np.inf, fit_intercept=bias).fit(X, y)
        found = re.search(r"violation (is|is at most) ([\d.e+]+) in all", str(caught.value))
        return found.group(1), float(found.group(2))

    how, least = said()
    assert how == "is" and least >= 2.0 - 1e-3  # the two labels of one row alone cost 2
    sums = []
    for C in (1.0, 1e2, 1e4):
        f = SVC(kernel, C, fit_intercept=bias, tol=1e-6).fit(X, y).decision_function(X)
        sums.append(np.maximum(0, 1 - y * f).sum())
    assert least <= sums[-1] * (1 + 1e-3) and sums[-1] <= sums[0]
    if kernel == "Linear()":  # three numbers decide, so a large C is enough
        assert least == pytest.approx(sums[-1], rel=1e-3)
    monkeypatch.setattr("mercer.machines.margin.hard_margin.SMALL_PROGRAM", 0)
    how, found = said()
    assert how == "is at most" and found >= least * (1 - 1e-3)


def test_projected_gradient_and_working_sets_find_the_same(moons):
    X, y = moons
    a = SVC("RBF(0.5)", fit_intercept=False, solver="projected-gradient").fit(X, y)
    b = SVC("RBF(0.5)", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)
    assert b.intercept_ == 0
    with pytest.raises(ParameterError, match="fit_intercept=False"):
        SVC(solver="projected-gradient").fit(X, y)


def test_probabilities_agree_with_predictions_and_are_calibrated():
    X, y = make_moons(600, noise=0.4, random_state=0)
    model = SVC("RBF(0.7)", probability=True, random_state=0).fit(X[:300], y[:300])
    P = model.predict_proba(X[300:])
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[300:]))
    sure = P.max(axis=1)
    right = model.predict(X[300:]) == y[300:]
    assert abs(sure.mean() - right.mean()) < 0.08
    B, t = make_blobs(200, centers=4, cluster_std=2.0, random_state=1)
    many = SVC(probability=True, random_state=0).fit(B, t)
    P = many.predict_proba(B)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(P.argmax(axis=1), many.predict(B))
    assert not hasattr(SVC(), "predict_proba")


def test_label_sets_cover_what_they_promise():
    X, y = make_moons(2000, noise=0.4, random_state=3)
    model = SVC("RBF(0.7)").fit(X[:300], y[:300]).conformalize(X[300:1000], y[300:1000])
    for coverage in (0.8, 0.95):
        sets = model.predict_set(X[1000:], coverage)
        assert sets[np.arange(1000), y[1000:]].mean() > coverage - 0.03
    assert model.predict_set(X, 0.99).sum() > model.predict_set(X, 0.8).sum()
    with pytest.raises(InputError, match="cannot promise"):
        SVC("RBF(0.7)").fit(X, y).conformalize(X[:5], y[:5]).predict_set(X, 0.9)
    with pytest.raises(ParameterError, match="conformalize"):
        SVC("RBF(0.7)").fit(X[:50], y[:50]).predict_set(X)


def test_an_invalid_kernel_is_announced_with_a_witness_or_refused(moons):
    X, y = moons
    with pytest.warns(InvalidKernelWarning, match="lowest eigenvalue"):
        model = SVC("Sigmoid(1.0)").fit(X, y)
    rows, q = model.witness_
    assert q @ mercer.Sigmoid(1.0)(X[rows]) @ q < 0
    assert any("stationary" in note for note in model.certificate_.notes)
    with pytest.raises(InvalidKernelError, match="strict=False"):
        SVC("Sigmoid(1.0)", strict=True).fit(X, y)
    K = np.random.default_rng(0).standard_normal((60, 60))
    with pytest.raises(InputError, match="not symmetric"):
        SVC("precomputed").fit(K, y[:60])
    with pytest.warns(InvalidKernelWarning):
        SVC("precomputed", max_iter=10_000).fit(K + K.T, y[:60])


def test_the_default_lengthscale_follows_the_data(moons):
    X, y = moons
    model = SVC().fit(X, y)
    np.testing.assert_allclose(model.kernel_.lengthscale, X.std(axis=0), rtol=1e-11)
    noisy = SVC("RBF() + 0.1*White(1.0)").fit(X, y).kernel_
    assert model.kernel_.lengthscale in noisy.get_params().values()
    assert SVC(mercer.RBF(1.0)).fit(X, y).kernel_ == mercer.RBF(1.0)


def test_constant_rows_warn_once_and_fit():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        SVC().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    assert [w.category for w in seen] == [PrecisionWarning]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"C": 0}, ParameterError, "C must be"),
        ({"C": np.nan}, ParameterError, "C must be"),
        ({"tol": 0}, ParameterError, "tol must be"),
        ({"max_iter": 1.5}, ParameterError, "max_iter"),
        ({"multiclass": "all"}, ParameterError, "one of 'ovo', 'ovr'"),
        ({"solver": "magic"}, ParameterError, "working-set"),
        ({"class_weight": {7: 1.0}}, ParameterError, r"\[0, 1\]"),
        ({"class_weight": "heavy"}, ParameterError, "balanced"),
        ({"kernel": 3}, ParameterError, "kernel must be"),
        ({"max_seconds": -1}, ParameterError, "max_seconds"),
    ],
)
def test_parameters_outside_their_range_are_refused(moons, change, error, words):
    with pytest.raises(error, match=words):
        SVC(**change).fit(*moons)


def test_targets_and_weights_that_cannot_be_used_are_refused(moons):
    X, y = moons
    with pytest.raises(InputError, match="OneClassSVM"):
        SVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ShapeError, match="120 rows and y has 119"):
        SVC().fit(X, y[1:])
    w = np.ones(len(y))
    for value, word in ((np.nan, "NaN at index 4"), (-1.0, "negative weight at index 4")):
        w[4] = value
        with pytest.raises(NotFiniteError, match=word):
            SVC().fit(X, y, sample_weight=w)
    with pytest.raises(ParameterError, match="at most nu="):
        NuSVC(nu=0.9).fit(X[:70], np.r_[np.zeros(60), np.ones(10)])


def test_verify_accepts_the_model_and_sees_one_changed_coefficient(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    for model in (SVC(), SVC(fit_intercept=False), NuSVC(nu=0.3), SVC(multiclass="ovr")):
        model.fit(X, y)
        found = verify(model, X, y)
        assert found, str(found)
        assert "claims hold" in str(found)
        for k in range(len(model.dual_coef_)):
            i = rng.choice(np.flatnonzero(model.dual_coef_[k]))
            kept = model.dual_coef_[k, i]
            model.dual_coef_[k, i] = kept * 1.001
            assert not verify(model, X, y)
            model.dual_coef_[k, i] = kept
        model.intercept_[0] += 0.01
        assert not verify(model, X, y)


def test_verify_sees_other_data_and_other_support_vectors(moons):
    X, y = moons
    model = SVC().fit(X, y)
    model.support_vectors_[0, 0] += 1e-3
    assert any("support_vectors_[0, 0]" in text for text in verify(model, X, y).findings)
    with pytest.raises(ShapeError, match="training data"):
        verify(SVC().fit(X, y), X[1:], y[1:])


def test_a_kernel_value_that_is_not_finite_is_named_by_its_rows_in_X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[[7, 40]] = 1e60, 1e60
    X[40, 0] = -1e60
    for y in (np.arange(60) % 2, np.arange(60) % 3):
        with pytest.raises(NotFiniteError, match=r"rows (7|40) and \d+. Look at that pair"):
            SVC("Polynomial(3)").fit(X, y)


@pytest.mark.parametrize("n", [200, 1500])
def test_a_relative_gap_can_decide_alone(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    machines = [
        SVC("RBF(1.0)", C=100.0, tol=1e-12, gap_tol=1e-2),
        SVC("RBF(1.0)", C=1.0, fit_intercept=False, solver="projected-gradient", tol=1e-12, gap_tol=1e-2),
        mercer.SVR("RBF(1.0)", C=100.0, tol=1e-12, gap_tol=1e-2),
        mercer.OneClassSVM("RBF(1.0)", nu=0.2, tol=1e-12, gap_tol=1e-2),
    ]
    for model in machines:
        target = X[:, 1] if isinstance(model, mercer.SVR) else y
        c = model.fit(X, target).certificate_
        assert c.status == "converged" and 0 <= c.gap <= 1e-2 * abs(c.dual), model
        if n > 1000:  # small problems are polished afterwards
            assert c.kkt > 1e-9
    with pytest.raises(ParameterError, match="gap_tol must be"):
        SVC(gap_tol=0.0).fit(X, y)
