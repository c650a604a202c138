"""Relevance vector machines: the evidence rises, agrees with its definition,
and the few vectors kept are enough.
"""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RBF, Interrupted, RelevanceVectorClassifier, RelevanceVectorRegressor
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.machines.relevance.sparse_bayes import Effort
from reference.relevance import full_iterations, laplace_evidence, log_evidence


def sinc(seed, n=60):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-10, 10, n))[:, None]
    return X, np.sinc(X[:, 0] / np.pi) + rng.normal(0, 0.1, n)


def basis_and_alpha(model, X, k=None):
    """Φ with the intercept last, and one α for each column, infinite for those left out."""
    Phi = np.column_stack([model.kernel_(X), np.ones(len(X))])
    alpha, kept = np.full(Phi.shape[1], np.inf), model.alpha_ if k is None else model.alpha_[k]
    alpha[model.relevance_], alpha[-1] = kept[:-1], kept[-1]
    return Phi, alpha


# A wide kernel: where rows can be separated the evidence grows as all α fall,
# and its flat top is found to 1e-7 at best.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([RelevanceVectorRegressor(n_starts=1), RelevanceVectorClassifier("RBF(3.0)")])
def test_the_contract(estimator, check):
    check(estimator)


# ── regression ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("noise", [None, 0.02])
def test_evidence_weights_and_covariance_are_those_of_the_definition(noise):
    X, y = sinc(0)
    model = RelevanceVectorRegressor("RBF(2.0)", noise=noise).fit(X, 100 + 5 * y)
    Phi, alpha = basis_and_alpha(model, X)
    t = 5 * (y - y.mean())
    assert model.log_evidence_ == pytest.approx(log_evidence(Phi, alpha, model.noise_, t), abs=1e-6)
    kept = np.isfinite(alpha)
    sigma = np.linalg.inv(Phi[:, kept].T @ Phi[:, kept] / model.noise_ + np.diag(alpha[kept]))
    mu = sigma @ Phi[:, kept].T @ t / model.noise_
    order = kept[np.append(model.relevance_, len(X))]
    np.testing.assert_allclose(model.covariance_[np.ix_(order, order)], sigma, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(model.weights_, mu[: len(model.weights_)], rtol=1e-6, atol=1e-8)
    mean, std = model.predict(X, return_std=True)
    offset = (100 + 5 * y).mean()
    np.testing.assert_allclose(mean, Phi[:, kept] @ mu + offset, rtol=1e-9)
    variance = np.einsum("ij,jk,ik->i", Phi[:, kept], sigma, Phi[:, kept])
    np.testing.assert_allclose(std**2, model.noise_ + variance, rtol=1e-6)


@pytest.mark.parametrize("noise", [None, 0.01])
@pytest.mark.parametrize("kernel", ["RBF(2.0)", "RBF(6.0)", "Laplacian(1.0)", "Polynomial(5)"])
def test_the_evidence_never_falls(kernel, noise):
    for seed in range(3):
        model = RelevanceVectorRegressor(kernel, noise=noise).fit(*sinc(seed))
        assert model.certificate_.converged
        assert np.diff(model.log_evidence_path_).min() >= -1e-9 * abs(model.log_evidence_)
        assert model.log_evidence_path_[-1] == model.log_evidence_
        assert "never fell" in str(model.certificate_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_value_on_the_path_is_the_evidence_of_the_model_there():
    X, y = sinc(1)
    path = RelevanceVectorRegressor("RBF(2.0)", noise=0.01).fit(X, y).log_evidence_path_
    for steps in (0, 1, 2, 5, 11, len(path) - 1):
        model = RelevanceVectorRegressor("RBF(2.0)", noise=0.01, max_iter=steps).fit(X, y)
        Phi, alpha = basis_and_alpha(model, X)
        assert path[steps] == pytest.approx(log_evidence(Phi, alpha, 0.01, y - y.mean()), abs=1e-7)


def test_at_the_end_no_single_precision_and_no_noise_can_be_improved():
    X, y = sinc(2, 30)
    model = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    Phi, alpha = basis_and_alpha(model, X)
    t = y - y.mean()
    for m in range(Phi.shape[1]):
        at = np.log(alpha[m]) if np.isfinite(alpha[m]) else 0.0
        for new in [np.inf, *np.exp(at + np.linspace(-6, 6, 13))]:
            trial = np.where(np.arange(len(alpha)) == m, new, alpha)
            assert log_evidence(Phi, trial, model.noise_, t) <= model.log_evidence_ + 1e-5
    for factor in np.exp(np.linspace(-3, 3, 13)):
        assert log_evidence(Phi, alpha, factor * model.noise_, t) <= model.log_evidence_ + 1e-5


def test_the_evidence_is_at_least_that_of_the_full_iterations_in_most_samples():
    wins = []
    for seed in range(8):
        X, y = sinc(seed)
        model = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
        Phi, _ = basis_and_alpha(model, X)
        slow = log_evidence(Phi, *full_iterations(Phi, y - y.mean(), 300), y - y.mean())
        wins.append(model.log_evidence_ >= slow - 0.05)
        # Both are local maxima: neither method is promised the better one.
        assert model.log_evidence_ >= slow - 4.0
    assert np.mean(wins) >= 0.75


def test_sinc_is_learned_by_few_vectors_with_an_honest_band():
    X, y = sinc(3, 100)
    model = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    grid = np.linspace(-9, 9, 200)[:, None]
    mean, std = model.predict(grid, return_std=True)
    truth = np.sinc(grid[:, 0] / np.pi)
    assert len(model.relevance_) <= 10
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.05
    assert 0.08 < np.sqrt(model.noise_) < 0.12
    fresh = truth + np.random.default_rng(9).normal(0, 0.1, 200)
    assert 0.9 <= np.mean(np.abs(fresh - mean) < 1.96 * std) <= 1.0


def test_units_of_y_change_nothing_but_units():
    X, y = sinc(4)
    a = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    b = RelevanceVectorRegressor("RBF(2.0)").fit(X, 1e6 * y - 1e8)
    np.testing.assert_array_equal(a.relevance_, b.relevance_)
    np.testing.assert_allclose(1e6 * a.predict(X) - 1e8, b.predict(X), rtol=1e-7)
    assert b.noise_ == pytest.approx(1e12 * a.noise_, rel=1e-4)
    assert b.log_evidence_ == pytest.approx(a.log_evidence_ - len(y) * np.log(1e6), rel=1e-6)


def test_weight_two_is_a_row_twice_and_weight_zero_is_no_row():
    X, y = sinc(5, 40)
    w = np.random.default_rng(0).integers(0, 3, len(y))
    a = RelevanceVectorRegressor("RBF(2.0)").fit(X, y, sample_weight=w)
    b = RelevanceVectorRegressor("RBF(2.0)").fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    for one, other in zip(a.predict(X, return_std=True), b.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert np.all(w[a.relevance_] > 0)
    np.testing.assert_array_equal(X[a.relevance_], a.relevance_vectors_)
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-8)


def test_identical_columns_are_not_kept_twice():
    X, y = sinc(6, 30)
    model = RelevanceVectorRegressor("RBF(2.0)").fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert len(np.unique(model.relevance_vectors_)) == len(model.relevance_)
    assert model.certificate_.converged


def test_precomputed_tiles_and_stored_give_the_same():
    X, y = sinc(7)
    k = RBF(2.0)
    a = RelevanceVectorRegressor(k).fit(X, y)
    b = RelevanceVectorRegressor("precomputed").fit(k(X), y)
    c = RelevanceVectorRegressor(k, memory=100).fit(X, y)
    new = np.linspace(-8, 8, 11)[:, None]
    np.testing.assert_allclose(a.predict(new), b.predict(k(new, X)), rtol=1e-6)
    np.testing.assert_allclose(a.predict(new), c.predict(new), rtol=1e-6)


def test_a_basis_that_is_no_kernel_is_welcome():
    X, y = sinc(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RelevanceVectorRegressor("Sigmoid(0.5)").fit(X, y)
        assert any("any basis" in note for note in model.certificate_.notes)
        B = np.maximum(X - X.T, 0.0)  # hinges: not even symmetric
        hinges = RelevanceVectorRegressor("precomputed").fit(B, y)
    assert np.std(y - hinges.predict(B)) < 0.15


def test_white_noise_is_no_basis_function():
    X, y = sinc(9)
    a = RelevanceVectorRegressor("RBF(2.0)").fit(X, y)
    b = RelevanceVectorRegressor("RBF(2.0) + White(0.3)").fit(X, y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-6)
    assert any("White" in note for note in b.certificate_.notes)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_row_and_constant_targets_fit(fit_intercept):
    machine = RelevanceVectorRegressor("RBF(1.0)", fit_intercept=fit_intercept)
    one = machine.fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]])[0]
    assert one == 3.0 if fit_intercept else 0 < one < 3  # a single number is part signal, part noise
    X = np.arange(5.0)[:, None]
    mean, std = machine.fit(X, np.full(5, 0.1)).predict(X, return_std=True)
    assert mean == pytest.approx(np.full(5, 0.1), rel=1e-2)
    assert np.all(std < 1e-2)
    assert machine.fit(X, np.zeros(5)).predict(X) == pytest.approx(np.zeros(5))


@pytest.mark.parametrize("kernel", ["RBF(2.0)", "Polynomial(9)", "0.0*RBF(1.0)", "RBF(500.0)", "RBF(0.01)"])
def test_hostile_bases_give_finite_answers(kernel):
    X, y = sinc(0)
    model = RelevanceVectorRegressor(kernel).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(std > 0)
    assert np.diff(model.log_evidence_path_).min(initial=0.0) >= -1e-6 * abs(model.log_evidence_)


def test_limits_are_announced_and_the_model_so_far_is_kept(capsys):
    X, y = sinc(1)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RelevanceVectorRegressor("RBF(2.0)", max_iter=2, verbose=1).fit(X, y)
    assert model.certificate_.status == "limit" and len(model.relevance_) <= 2
    assert "basis functions, log evidence" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning):
        assert np.isfinite(RelevanceVectorRegressor("RBF(2.0)", max_seconds=1e-9).fit(X, y).predict(X)).all()


@pytest.mark.parametrize(
    "machine", [RelevanceVectorRegressor("RBF(2.0)"), RelevanceVectorClassifier("RBF(2.0)")]
)
def test_a_keyboard_interrupt_keeps_the_model_so_far(machine, monkeypatch):
    def stop(self, steps, kept, evidence):
        if steps == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Effort, "say", stop)
    X, y = sinc(1)
    with pytest.raises(Interrupted):
        machine.fit(X, y if isinstance(machine, RelevanceVectorRegressor) else np.digitize(y, [0.0, 0.4]))
    assert machine.certificate_.status == "interrupted"
    assert len(machine.relevance_) >= 1 and np.isfinite(machine.predict(X)).all()


def test_bad_parameters_and_data_are_refused():
    X, y = sinc(0)
    for parameters, words in (
        ({"noise": 0}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"n_starts": 0}, "n_starts"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"memory": "much"}, "memory"),
    ):
        with pytest.raises(ParameterError, match=words):
            RelevanceVectorRegressor(**parameters).fit(X, y)
    with pytest.raises(NotFiniteError, match="row 2"):
        RelevanceVectorRegressor().fit(X, np.where(np.arange(len(y)) == 2, np.nan, y))
    with pytest.raises(ShapeError, match="square"):
        RelevanceVectorRegressor("precomputed").fit(X, y)
    with pytest.raises(InputError, match="one class"):
        RelevanceVectorClassifier().fit(X, np.ones(len(y)))
    with pytest.raises(InputError, match="same class"):
        RelevanceVectorClassifier().fit(X, y > 0, sample_weight=(y > 0).astype(float))


# ── classification ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def moons():
    return make_moons(80, noise=0.25, random_state=0)


def test_laplace_evidence_mode_and_covariance_are_those_of_the_definition(moons):
    X, y = moons
    model = RelevanceVectorClassifier("RBF(0.7)").fit(X, y)
    Phi, alpha = basis_and_alpha(model, X, 0)
    value, mu, sigma = laplace_evidence(Phi, alpha, y, np.ones(len(y)))
    assert model.log_evidence_[0] == pytest.approx(value, abs=1e-6)
    kept = np.isfinite(model.alpha_[0])
    np.testing.assert_allclose(
        np.append(model.weights_[0], model.intercept_[0])[kept], mu, rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(model.covariance_[0][np.ix_(kept, kept)], sigma, rtol=1e-3, atol=1e-6)


def test_laplace_evidence_never_falls_and_ends_near_a_stationary_point(moons):
    X, y = moons
    for kernel in ("RBF(0.7)", "RBF(0.2)", "Polynomial(3)"):
        model = RelevanceVectorClassifier(kernel).fit(X, y)
        assert model.certificate_.converged and np.diff(model.log_evidence_path_).min() >= 0
    model = RelevanceVectorClassifier("RBF(0.7)").fit(X, y)
    Phi, alpha = basis_and_alpha(model, X, 0)
    for m in np.flatnonzero(np.isfinite(alpha)):
        for factor in (0.1, 0.5, 2.0, 10.0, np.inf):
            trial = np.where(np.arange(len(alpha)) == m, factor * alpha, alpha)
            assert laplace_evidence(Phi, trial, y, np.ones(len(y)))[0] <= model.log_evidence_[0] + 0.05


def test_moons_are_told_apart_by_few_vectors(moons):
    X, y = moons
    model = RelevanceVectorClassifier("RBF(0.7)").fit(X, y)
    X2, y2 = make_moons(300, noise=0.25, random_state=1)
    assert len(model.relevance_) <= 12
    assert model.score(X2, y2) > 0.88


def test_probabilities_are_averages_over_the_posterior(moons):
    X, y = moons
    model = RelevanceVectorClassifier("RBF(0.7)").fit(X, y)
    new = np.array([[0.5, 0.25], [0.0, 0.5], [2.0, 0.5], [30.0, 30.0]])
    mean, variance = model._moments(new, True)
    for p, m, v in zip(model.predict_proba(new)[:, 1], mean[:, 0], variance[:, 0], strict=True):
        sd = np.sqrt(v) + 1e-12
        exact = quad(lambda f, m=m, sd=sd: norm.pdf(f, m, sd) / (1 + np.exp(-f)), m - 9 * sd, m + 9 * sd)[0]
        assert p == pytest.approx(exact, abs=0.02)


def test_three_classes_share_one_gram_and_probabilities_sum_to_one():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RelevanceVectorClassifier("RBF(2.0)").fit(X[::2], names[::2])
    p = model.predict_proba(X[1::2])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[1::2]))
    assert model.score(X[1::2], names[1::2]) > 0.93
    assert model.weights_.shape == (3, len(model.relevance_)) and len(model.relevance_) < 25
    far = model.predict_proba([[1e3] * 4, [-1e3] * 4])
    assert np.all(np.isfinite(far))


def test_weight_two_is_a_label_twice(moons):
    X, y = moons
    w = np.random.default_rng(0).integers(0, 3, len(y))
    a = RelevanceVectorClassifier("RBF(0.7)").fit(X, y, sample_weight=w)
    b = RelevanceVectorClassifier("RBF(0.7)").fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


def test_separable_classes_stay_finite():
    X = np.array([[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0]])
    model = RelevanceVectorClassifier("Linear()").fit(X, [0, 0, 0, 1, 1, 1])
    assert model.score(X, [0, 0, 0, 1, 1, 1]) == 1 and np.isfinite(model.log_evidence_).all()


def test_a_step_that_cannot_be_computed_is_taken_back(monkeypatch):
    """Columns so alike that their Gram matrix cannot be factored end the search at
    the last model that could be.
    """
    from mercer.gram import Precomputed
    from mercer.machines.relevance.sparse_bayes import Basis, Effort, _Regression, regression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    basis = Basis(Precomputed(RBF(0.5)(X)), intercept=False)
    take = _Regression.take
    taken = []

    def spoiled(self, step):
        take(self, step)
        taken.append(step)
        if len(taken) == 6:
            self.G = -self.G
            self.refresh()

    monkeypatch.setattr(_Regression, "take", spoiled)
    found = regression(basis, t, 40.0, 0.01, Effort(1e-3, 2**31, None))
    assert found.status == "stagnated"
    phi = np.column_stack([basis.column(int(m)) for m in found.active])
    C = 0.01 * np.eye(40) + (phi / found.alpha) @ phi.T
    sign, logdet = np.linalg.slogdet(C)
    evidence = -0.5 * (40 * np.log(2 * np.pi) + logdet + t @ np.linalg.solve(C, t))
    assert sign == 1
    assert found.evidence == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(found.mu, np.linalg.solve(C, phi).T @ t / found.alpha, rtol=1e-6)
