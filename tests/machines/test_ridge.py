"""Kernel ridge: its laws, its solvers against one another, and what it refuses."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import kernel_ridge, linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import RBF, Interrupted, KernelRidge, KernelRidgeCV, Polynomial, White
from mercer.errors import (
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    MemoryBudgetError,
    NotFiniteError,
    NotPositiveDefiniteError,
    ParameterError,
    PrecisionWarning,
    ShapeError,
)
from mercer.gram import Precomputed, Tiles, Weighted


def data(n=40, d=3, seed=0, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack(
        [np.sin((j + 1) * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n) for j in range(targets)]
    )
    return X, Y[:, 0] if targets == 1 else Y


def naive(K, y, alpha, w, intercept):
    """min Σ w (y - Kc - b)² + α cᵀKc by the bordered system, written out."""
    n = len(y)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = K + alpha * np.diag(1 / w)
    M[:n, n] = M[n, :n] = 1.0
    if not intercept:
        return np.linalg.solve(M[:n, :n], y), 0.0
    found = np.linalg.solve(M, np.append(y, 0.0))
    return found[:n], found[n]


SETTINGS = [
    ("RBF(1.0)", "cholesky"),
    ("RBF(1.0)", "cg"),
    ("RBF(1.0)", "nystrom"),
    ("Polynomial(2)", "primal"),
    ("Polynomial(2)", "cholesky"),
    ("RBF(1.0) + White(0.3)", "cholesky"),
    ("RBF(1.0) + White(0.3)", "nystrom"),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("kernel", "solver"), SETTINGS)
def test_every_solver_solves_the_system_of_the_formula(kernel, solver, intercept):
    X, y = data()
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    model = KernelRidge(kernel, 0.1, solver=solver, fit_intercept=intercept, n_landmarks=len(y))
    model.fit(X, y, sample_weight=w)
    k = mercer.parse(kernel)
    noise = np.diag(k(X)) - np.diag(k(X, X))
    c, b = naive(k(X, X) + np.diag(noise / w), y, 0.1, w, intercept)
    np.testing.assert_allclose(model.predict(X), k(X, X) @ c + b, atol=1e-8)
    np.testing.assert_allclose(model.dual_coef_, c, atol=1e-7)
    assert model.intercept_ == pytest.approx(b, abs=1e-8)
    assert model.solver_ == solver
    done = model.certificate_
    assert done.status == "converged" and done.residual < 1e-9 and done.added_diagonal == 0.0
    assert done.gap <= 1e-8 * done.primal


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("kernel", "solver"), SETTINGS)
def test_leave_one_out_is_n_refits_and_weight_two_is_a_row_twice(kernel, solver, intercept):
    X, y = data(24)
    w = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    machine = KernelRidge(kernel, 0.1, solver=solver, fit_intercept=intercept, n_landmarks=1000)
    model = clone(machine).fit(X, y, sample_weight=w)
    for i in range(len(y)):
        without = w.copy()
        without[i] = 0.0
        alone = clone(machine).fit(X, y, sample_weight=without).predict(X[i : i + 1])[0]
        assert model.loo_predictions_[i] == pytest.approx(alone, abs=1e-7)
    error = w @ (y - model.loo_predictions_) ** 2 / w.sum()
    assert model.loo_error_ == pytest.approx(error, rel=1e-9)
    twice = w.astype(int)
    repeated = clone(machine).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=1e-8)
    assert model.dof_ == pytest.approx(repeated.dof_, abs=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(intercept):
    X, _ = data(15)
    w = np.random.default_rng(3).uniform(0.5, 2.0, 15)
    hat = KernelRidge("RBF(1.0)", 0.3, fit_intercept=intercept).fit(X, np.eye(15), sample_weight=w).predict(X)
    for kernel, solver in (("RBF(1.0)", "cholesky"), ("RBF(1.0)", "nystrom")):
        model = KernelRidge(kernel, 0.3, fit_intercept=intercept, solver=solver, n_landmarks=15)
        assert model.fit(X, X[:, 0], sample_weight=w).dof_ == pytest.approx(np.trace(hat), abs=1e-9)


@given(
    n=st.integers(2, 25),
    degree=st.integers(1, 3),
    alpha=st.sampled_from([1e-3, 1.0, 50.0]),
    intercept=st.booleans(),
    seed=st.integers(0, 99),
)
def test_primal_is_dual(n, degree, alpha, intercept, seed):
    X, Y = data(n, 2, seed, targets=2)
    k = Polynomial(degree)
    a = KernelRidge(k, alpha, solver="primal", fit_intercept=intercept).fit(X, Y)
    b = KernelRidge(k, alpha, solver="cholesky", fit_intercept=intercept).fit(X, Y)
    Z = np.random.default_rng(seed).normal(size=(5, 2))
    np.testing.assert_allclose(a.predict(Z), b.predict(Z), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(a.loo_predictions_, b.loo_predictions_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.dof_, b.dof_, atol=1e-6)
    np.testing.assert_allclose(k.features(2)(X).T @ a.dual_coef_, a.coef_, atol=1e-6)


def test_the_solver_is_chosen_by_size_and_stated():
    X, y = data(60)
    assert "3 features" in str(KernelRidge("Linear()").fit(X, y).certificate_)
    assert KernelRidge("Linear()").fit(X[:2], y[:2]).solver_ == "cholesky"
    assert KernelRidge("RBF(1.0)").fit(X, y).solver_ == "cholesky"
    tight = KernelRidge("RBF(1.0)", memory=20_000).fit(X, y)
    assert tight.solver_ == "cg" and "does not fit" in str(tight.certificate_)
    with pytest.raises(MemoryBudgetError, match="Cholesky of 60 rows"):
        KernelRidge("RBF(1.0)", memory=20_000, solver="cholesky").fit(X, y)
    with pytest.raises(MemoryBudgetError):
        _ = tight.loo_error_
    with pytest.raises(mercer.errors.NoFiniteMapError):
        KernelRidge("RBF(1.0)", solver="primal").fit(X, y)


def test_large_problems_take_conjugate_gradients_or_cholesky_as_the_spectrum_says(monkeypatch):
    from mercer.machines.ridge import dual as ridge_dual
    from mercer.machines.ridge import problem as ridge_problem
    from mercer.solve import plan

    monkeypatch.setattr(plan, "DIRECT_ROWS", 100)
    monkeypatch.setattr(plan, "MIXED_ROWS", 100)
    monkeypatch.setattr(ridge_problem, "STORED_ROWS", 100)
    monkeypatch.setattr(ridge_dual, "STORED_ROWS", 100)
    monkeypatch.setattr(ridge_dual, "SINGLE_ROWS", 100)
    monkeypatch.setattr(plan, "cholesky_cost", lambda n, entry, single: 1.2e6)  # between the two
    X, y = data(400)
    reference = {a: KernelRidge("RBF(1.0)", a, solver="cholesky", tol=1e-12).fit(X, y) for a in (1.0, 1e-4)}
    easy, hard = (KernelRidge("RBF(1.0)", a).fit(X, y) for a in (1.0, 1e-4))
    assert (easy.solver_, hard.solver_) == ("cg", "cholesky")
    assert "cheaper" in str(hard.certificate_)
    shifted = RBF(1.0)(X) - 0.2 * np.eye(400)
    with pytest.warns(InvalidKernelWarning):
        indefinite = KernelRidge("precomputed", 1.0).fit(shifted, y)
    assert indefinite.solver_ in ("cg", "cholesky") and indefinite.certificate_.residual < 1e-9
    for model, a in ((easy, 1.0), (hard, 1e-4)):
        np.testing.assert_allclose(model.predict(X), reference[a].predict(X), atol=1e-7)
        assert model.certificate_.residual < 1e-9


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("case", ["plain", "weights, intercept and noise", "huge offset"])
def test_float32_products_do_not_change_the_answer(monkeypatch, case, store):
    """Conjugate gradients multiply in float32, yet the residual is that of the float64 system."""
    from mercer.machines.ridge import dual as ridge_dual

    seen = []
    monkeypatch.setattr(ridge_dual, "SINGLE_ROWS", 50)
    made = ridge_dual.single_precision

    def spy(problem, op, scale, _):
        seen.append(made(problem, op, scale, store))
        return seen[-1]

    monkeypatch.setattr(ridge_dual, "single_precision", spy)
    X, y = data(300)
    kernel, options, w = RBF(1.0), {}, None
    if case == "weights, intercept and noise":
        kernel, options = RBF(1.0) + mercer.White(0.3), {"fit_intercept": True}
        w = np.random.default_rng(1).uniform(0.5, 2.0, size=300)
    elif case == "huge offset":
        X = X + 1e7
    a = KernelRidge(kernel, 0.5, solver="cg", **options).fit(X, y, w)
    b = KernelRidge(kernel, 0.5, solver="cholesky", **options).fit(X, y, w)
    assert a.certificate_.status == "converged" and a.certificate_.residual <= 1e-9
    np.testing.assert_allclose(a.dual_coef_, b.dual_coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-7)
    if seen[0] is not None:
        assert seen[0].dtype == np.float32
    assert case == "huge offset" or seen[0] is not None


@pytest.mark.parametrize("max_iter", [None, 4, 20])
@pytest.mark.parametrize("alpha", [1e-2, 0.1])
def test_iterations_of_both_precisions_are_counted(monkeypatch, alpha, max_iter):
    from mercer.machines.ridge import dual as ridge_dual
    from mercer.solve import system

    runs = []

    def spy(*args, **options):
        runs.append(cg(*args, **options))
        return runs[-1]

    # a product so rough that it stagnates, after which float64 goes on
    def rough(problem, op, scale, store):
        return Tiles(RBF(1.05), problem.on.rows, dtype=np.float32)

    cg = system.cg
    monkeypatch.setattr(system, "cg", spy)
    monkeypatch.setattr(ridge_dual, "single_precision", rough)
    X, y = data(300)
    model = KernelRidge(RBF(1.0), alpha, solver="cg", max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    taken = [run.certificate.iterations for run in runs]
    assert model.certificate_.iterations == sum(taken)
    assert max_iter is None or sum(taken) <= max_iter
    assert len(taken) == 2 or max_iter is not None


def test_cholesky_takes_over_where_the_promise_was_wrong(monkeypatch):
    from mercer.solve import plan

    monkeypatch.setattr(plan, "DIRECT_ROWS", 100)
    monkeypatch.setattr(plan, "cholesky_cost", lambda n, entry, single: 1.5)
    wrong = plan.Outlook(plan.Plan(rank=1, iterations=2, store=False, cost=1.0), 10.0)
    monkeypatch.setattr(plan, "look", lambda *_, **__: wrong)
    X, y = data(300)
    model = KernelRidge("RBF(1.0)", 1e-3).fit(X, y)
    assert model.solver_ == "cholesky" and "in 6 iterations; Cholesky took over" in str(model.certificate_)
    assert model.certificate_.residual < 1e-10
    with pytest.warns(ConvergenceWarning):  # the limit of the user is the user's
        assert KernelRidge("RBF(1.0)", 1e-3, max_iter=3).fit(X, y).solver_ == "cg"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kernel", "name", "parameters"),
    [
        ("RBF(gamma=0.3)", "rbf", {"gamma": 0.3}),
        ("Polynomial(3, offset=2.0, scale=0.5)", "poly", {"gamma": 0.5, "coef0": 2.0, "degree": 3}),
        ("Laplacian(2.0)", "laplacian", {"gamma": 0.5}),
    ],
)
def test_the_peer_agrees(kernel, name, parameters, weighted):
    X, Y = data(50, targets=2)
    w = np.random.default_rng(0).uniform(0.1, 2.0, 50) if weighted else None
    ours = KernelRidge(kernel, [0.5, 2.0]).fit(X, Y, sample_weight=w)
    peer = kernel_ridge.KernelRidge(alpha=np.array([0.5, 2.0]), kernel=name, **parameters).fit(X, Y, w)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-8)
    if ours.solver_ != "primal":
        np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-8)


def test_linear_ridge_with_intercept_is_that_of_the_peer_also_far_from_the_origin():
    X, y = data()
    for shift in (0.0, 1e6):
        ours = KernelRidge("Linear()", 2.0, fit_intercept=True).fit(X + shift, y + shift)
        peer = linear_model.Ridge(2.0).fit(X, y)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.predict(X + shift) - shift, peer.predict(X), atol=1e-7)
        np.testing.assert_allclose(
            ours.loo_predictions_ - shift,
            KernelRidge("Linear()", 2.0, fit_intercept=True).fit(X, y).loo_predictions_,
            atol=1e-7,
        )


def test_white_noise_in_the_kernel_is_a_penalty():
    X, y = data()
    a, b = KernelRidge(RBF(1.0) + White(0.2), 0.0).fit(X, y), KernelRidge(RBF(1.0), 0.2).fit(X, y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-12)
    assert a.dof_ == pytest.approx(b.dof_)
    assert "alpha acts as 0.2" in str(a.certificate_)
    uneven = RBF(1.0) + White(0.2).times(lambda A: 1 + A[:, 0] ** 2)
    model = KernelRidge(uneven, 0.1).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(uneven(X) + 0.1 * np.eye(40), y), atol=1e-9)
    w = 1.0 + np.arange(40) % 3
    path = KernelRidgeCV(uneven, [0.1]).fit(X, y, sample_weight=w)
    assert path.loo_error_ == pytest.approx(path.best_error_)


@pytest.mark.parametrize("solver", ["cholesky", "cg", "nystrom"])
def test_precomputed_is_on_the_fly_also_with_weights(solver):
    X, Y = data(targets=2)
    k, w = RBF(1.3), np.arange(40) % 3
    options = {"alpha": 0.2, "solver": solver, "fit_intercept": True, "n_landmarks": 15, "random_state": 0}
    a = KernelRidge(k, **options).fit(X, Y, sample_weight=w)
    b = KernelRidge("precomputed", **options).fit(k(X), Y, sample_weight=w)
    Z = np.random.default_rng(5).normal(size=(7, 3))
    np.testing.assert_allclose(a.predict(Z), b.predict(k(Z, X)), atol=1e-9)
    np.testing.assert_allclose(a.loo_predictions_, b.loo_predictions_, atol=1e-8)


def test_landmarks_without_a_seed_are_drawn_once():
    X, Y = data(60, targets=2)
    options = {"solver": "nystrom", "n_landmarks": 12}
    model = KernelRidge("RBF(1.0)", [0.1, 0.2], **options).fit(X, Y)
    K = RBF(1.0)(X)
    fitted = K[:, model.landmarks_] @ model.landmark_coef_
    np.testing.assert_allclose(model.predict(X), fitted, atol=1e-10)
    np.testing.assert_allclose(Y - fitted, np.array([0.1, 0.2]) * model.dual_coef_, atol=1e-8)
    assert np.all(np.abs(Y - model.loo_predictions_) >= np.abs(Y - fitted) - 1e-9)
    done = mercer.verify(model, X, Y)
    assert done.ok and any("without a seed" in said for said in done.unchecked)


def test_nystrom_states_the_error_it_makes():
    X, y = data(200)
    model = KernelRidge("RBF(1.0)", 0.1, solver="nystrom", n_landmarks=20, random_state=0).fit(X, y)
    exact = KernelRidge("RBF(1.0)", 0.1).fit(X, y)
    done = model.certificate_
    c = model.dual_coef_
    K = RBF(1.0)(X)
    residual = np.linalg.norm(y - K @ c - 0.1 * c) / np.linalg.norm(y)
    assert done.residual == pytest.approx(residual, rel=1e-6)
    assert done.dual <= exact.certificate_.primal * (1 + 1e-9) <= done.primal * (1 + 2e-9)
    F = K[:, model.landmarks_]
    left = 1 - np.trace(F @ np.linalg.solve(K[np.ix_(model.landmarks_, model.landmarks_)], F.T)) / 200
    assert f"{left:.2e} of the trace" in str(done)
    np.testing.assert_allclose(model.predict(X), F @ model.landmark_coef_, atol=1e-10)
    again = KernelRidge("RBF(1.0)", 0.1, solver="nystrom", n_landmarks=20, random_state=0).fit(X, y)
    assert np.array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match="alpha > 0"):
        KernelRidge("RBF(1.0)", 0.0, solver="nystrom").fit(X, y)


# ── the path ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["RBF(1.0)", "Polynomial(2)", "RBF(1.0) + White(0.1)"])
def test_the_path_is_separate_fits(kernel, intercept):
    X, Y = data(30, targets=2)
    w = np.random.default_rng(0).integers(0, 3, 30)
    alphas = [1e-2, 0.3, 10.0]
    path = KernelRidgeCV(kernel, alphas, fit_intercept=intercept).fit(X, Y, sample_weight=w)
    separate = [KernelRidge(kernel, a, fit_intercept=intercept).fit(X, Y, sample_weight=w) for a in alphas]
    np.testing.assert_allclose(path.loo_errors_, [m.loo_error_ for m in separate], rtol=1e-7)
    np.testing.assert_allclose(path.dof_path_, [m.dof_ for m in separate], atol=1e-7)
    best = int(np.argmin(path.loo_errors_.sum(axis=1)))
    assert path.alpha_ == alphas[best]
    np.testing.assert_allclose(path.predict(X), separate[best].predict(X), atol=1e-9)
    assert path.certificate_.residual < 1e-9
    np.testing.assert_allclose(path.loo_error_, path.best_error_, rtol=1e-7)


def test_folds_are_those_of_a_grid_search():
    X, y = data(40)
    alphas, folds = [1e-3, 1e-1, 1.0, 30.0], KFold(4, shuffle=True, random_state=0)
    for kernel in ("RBF(1.0)", "Polynomial(2)"):
        path = KernelRidgeCV(kernel, alphas, cv=folds).fit(X, y)
        search = GridSearchCV(
            KernelRidge(kernel), {"alpha": alphas}, cv=folds, scoring="neg_mean_squared_error"
        )
        search.fit(X, y)
        np.testing.assert_allclose(path.cv_errors_, -search.cv_results_["mean_test_score"], rtol=1e-7)
        assert path.alpha_ == search.best_params_["alpha"]


def test_each_target_may_have_its_own_alpha():
    X, Y = data(60, targets=2)
    Y[:, 1] = np.random.default_rng(1).normal(size=60)  # nothing to learn
    path = KernelRidgeCV("RBF(1.0)", alpha_per_target=True).fit(X, Y)
    assert path.alpha_.shape == (2,) and path.alpha_[0] < path.alpha_[1]
    for j in range(2):
        alone = KernelRidge("RBF(1.0)", path.alpha_[j]).fit(X, Y[:, j])
        np.testing.assert_allclose(path.predict(X)[:, j], alone.predict(X), atol=1e-8)
        assert path.loo_error_[j] == pytest.approx(alone.loo_error_)


def test_generalised_cross_validation_is_its_formula():
    X, y = data(30)
    path = KernelRidgeCV("RBF(1.0)", [0.1, 1.0], criterion="gcv").fit(X, y)
    K = RBF(1.0)(X)
    for alpha, found in zip([0.1, 1.0], path.gcv_errors_, strict=True):
        H = K @ np.linalg.inv(K + alpha * np.eye(30))
        assert found == pytest.approx(np.mean((y - H @ y) ** 2) / (1 - np.trace(H) / 30) ** 2)


# ── singular, invalid, interrupted ──────────────────────────────────────────────────────────────────────────


def test_a_singular_gram_is_refused_with_its_rows_and_nothing_is_added():
    X, y = data(12)
    X[7] = X[3]
    with pytest.raises(NotPositiveDefiniteError, match="3 and 7") as caught:
        KernelRidge("RBF(1.0)", 0.0).fit(X, y)
    assert caught.value.duplicates == ((3, 7),)
    w = np.ones(12)
    w[0] = 0.0
    with pytest.raises(NotPositiveDefiniteError, match="in X they are 3 and 7") as caught:
        KernelRidge("RBF(1.0)", 0.0).fit(X, y, sample_weight=w)
    assert caught.value.duplicates == ((3, 7),)
    with pytest.raises(NotPositiveDefiniteError, match="linearly dependent"):
        KernelRidge("Linear()", 0.0).fit(np.column_stack([X, X[:, 0] + X[:, 1]]), y)


def test_without_penalty_the_primal_is_least_squares():
    X, y = data(20)
    model = KernelRidge("Linear()", 0.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-12)
    np.testing.assert_allclose(model.dual_coef_, np.linalg.lstsq(X @ X.T, y, rcond=None)[0], atol=1e-12)
    assert "least norm" in str(model.certificate_)
    with_b = KernelRidge("Linear()", 0.0, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(with_b.predict(X), linear_model.LinearRegression().fit(X, y).predict(X))


def test_an_ill_conditioned_system_says_how_far_it_came():
    X = np.linspace(0, 1, 60).reshape(-1, 1)
    with pytest.warns(PrecisionWarning, match="ill-conditioned"):
        model = KernelRidge("RBF(1.0)", 1e-12).fit(X, np.sign(X[:, 0] - 0.5))
    assert model.certificate_.status == "stagnated" and model.certificate_.residual > 1e-6


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("alpha", [1e-6, 1e-10, 1e-13, 1e-15, 1e-16])
def test_conjugate_gradients_are_never_worse_than_no_answer_at_all(alpha, targets):
    X = np.linspace(0, 1, 60).reshape(-1, 1)
    for seed in range(25):
        noise = np.random.default_rng(seed).normal(size=(60, targets))
        Y = np.sign(X - 0.5) + 0.1 * noise
        model = KernelRidge("RBF(1.0)", alpha, solver="cg", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", PrecisionWarning)
            model.fit(X, Y)
        A = RBF(1.0)(X) + alpha * np.eye(60)
        left = np.linalg.norm(Y - A @ model.dual_coef_, axis=0) / np.linalg.norm(Y, axis=0)
        assert left.max() <= 1.0 + 1e-9
        assert model.certificate_.residual <= 1.0 + 1e-14


def test_an_invalid_kernel_is_announced_and_strict_refuses():
    X, y = data(20)
    with pytest.warns(InvalidKernelWarning, match="positive semi-definite"):
        model = KernelRidge("Sigmoid(0.05)", 10.0).fit(X, y)
    np.testing.assert_allclose(
        model.dual_coef_, np.linalg.solve(mercer.Sigmoid(0.05)(X) + 10 * np.eye(20), y), atol=1e-9
    )
    with pytest.raises(InvalidKernelError):
        KernelRidge("Sigmoid(0.05)", strict=True).fit(X, y)
    K = RBF(1.0)(X) - 0.5 * np.eye(20)
    with pytest.warns(InvalidKernelWarning, match="witness_"), pytest.raises(NotPositiveDefiniteError):
        KernelRidge("precomputed", 1e-3).fit(K, y)


def test_limits_keep_the_model_and_say_so(capsys):
    X, y = data(300, 8)
    with pytest.warns(ConvergenceWarning, match="stopped before"):
        model = KernelRidge("RBF(0.5)", 1e-3, solver="cg", max_iter=2, verbose=1).fit(X, y)
    assert model.certificate_.status == "limit" and model.certificate_.iterations == 2
    assert model.certificate_.residual > 1e-10
    assert "[mercer] 2 iterations" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning):
        KernelRidge("RBF(0.5)", 1e-3, solver="cg", max_seconds=1e-9).fit(X, y)


def test_ctrl_c_keeps_the_iterate(monkeypatch):
    from mercer.machines.ridge import ridge

    def interrupt(iteration, residual):
        if iteration == 3:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(ridge, "_say", interrupt)
    X, y = data(300, 8)
    model = KernelRidge("RBF(0.5)", 1e-3, solver="cg", verbose=1)
    with pytest.raises(Interrupted):
        model.fit(X, y)
    assert model.certificate_.status == "interrupted" and np.isfinite(model.predict(X)).all()


# ── inputs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_sparse_rows_and_other_layouts_give_the_same():
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    for kernel in ("RBF(1.0)", "Polynomial(2)"):
        expected = KernelRidge(kernel).fit(X, y).predict(X)
        for other in (sparse.csr_array(X), sparse.csc_matrix(X), np.asfortranarray(X)):
            model = KernelRidge(kernel).fit(other, y)
            np.testing.assert_allclose(model.predict(other), expected, atol=1e-10)
            np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)
        assert KernelRidge(kernel).fit(X.astype(np.float32), y).predict(X).dtype == np.float64
    frozen, before = X.copy(), X.copy()
    frozen.flags.writeable = False
    KernelRidge("precomputed").fit(RBF(1.0)(frozen), y)
    KernelRidge().fit(frozen, y, sample_weight=np.arange(40))
    assert np.array_equal(frozen, before)


def test_data_frames_keep_their_columns():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["age", "dose", "size"])
    model = KernelRidge('RBF(1.0).on("age") + Linear().on("dose")').fit(frame, y)
    k = RBF(1.0).on(0) + mercer.Linear().on(1)
    np.testing.assert_allclose(model.predict(frame), KernelRidge(k).fit(X, y).predict(X), atol=1e-12)
    linear = KernelRidge('Linear().on("dose")').fit(frame, y)
    assert linear.solver_ == "primal" and linear.coef_.shape == (1,)
    # columns that are read by name may stand in any order
    np.testing.assert_array_equal(model.predict(frame[["dose", "age", "size"]]), model.predict(frame))
    everything = KernelRidge("RBF(1.0)").fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        everything.predict(frame[["dose", "age", "size"]])


def test_small_and_degenerate_samples_fit():
    assert KernelRidge("RBF(1.0)", 1.0).fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]]) == pytest.approx([1.5])
    one = KernelRidge("RBF(1.0)", 1.0, fit_intercept=True).fit([[1.0]], [3.0])
    assert one.predict([[5.0]]) == pytest.approx([3.0])
    assert np.isnan(one.loo_predictions_).all()
    assert KernelRidge("RBF(1.0)", 1.0).fit([[1.0]], [3.0]).loo_predictions_ == pytest.approx([0.0])
    with pytest.warns(PrecisionWarning, match="constant"):
        model = KernelRidge(fit_intercept=True).fit(np.ones((5, 2)), np.arange(5.0))
    assert model.predict(np.ones((1, 2))) == pytest.approx([2.0])
    X, _ = data()
    assert KernelRidge(fit_intercept=True).fit(X, np.full(40, 7.0)).predict(X) == pytest.approx([7.0] * 40)
    assert not KernelRidge().fit(X, np.zeros(40)).dual_coef_.any()
    np.testing.assert_allclose(
        KernelRidge("RBF(1.0)").fit(X + 1e8, X[:, 0]).predict(X + 1e8),
        KernelRidge("RBF(1.0)").fit((X + 1e8) - 1e8, X[:, 0]).predict((X + 1e8) - 1e8),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"alpha": "much"}, "alpha must be"),
        ({"alpha": [[1.0]]}, "one for each target"),
        ({"solver": "magic"}, "solver must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"fit_intercept": "no"}, "fit_intercept"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_landmarks": 1.5}, "n_landmarks"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"memory": "lots"}, "memory"),
        ({"kernel": 3}, "kernel must be"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X, y = data()
    with pytest.raises(ParameterError, match=words):
        KernelRidge(**parameters).fit(X, y)


def test_bad_data_are_refused():
    X, y = data()
    with pytest.raises(ShapeError, match="alpha has shape"):
        KernelRidge(alpha=[1.0, 2.0]).fit(X, y)
    with pytest.raises(ShapeError, match="40 rows and y has 39"):
        KernelRidge().fit(X, y[:-1])
    with pytest.raises(NotFiniteError, match="row 2"):
        KernelRidge().fit(X, np.where(np.arange(40) == 2, np.nan, y))
    with pytest.raises(InputError, match="numbers"):
        KernelRidge().fit(X, ["a"] * 40)
    with pytest.raises(InputError, match="Complex"):
        KernelRidge().fit(X, y + 1j)
    with pytest.raises(InputError, match="masked"):
        KernelRidge().fit(X, np.ma.masked_less(y, 0))
    with pytest.raises(NotFiniteError, match="negative weight at index 0"):
        KernelRidge().fit(X, y, sample_weight=-np.ones(40))
    with pytest.raises(ShapeError, match="square"):
        KernelRidge("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="features"):
        KernelRidge().fit(X, y).predict(X[:, :2])
    for alphas in ([], [0.0], [1.0, -2.0], 3.0):
        with pytest.raises(ParameterError, match="alphas"):
            KernelRidgeCV(alphas=alphas).fit(X, y)
    with pytest.raises(ParameterError, match="criterion"):
        KernelRidgeCV(criterion="aic").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="eigendecomposition"):
        KernelRidgeCV(memory=1000).fit(X, y)


def test_models_are_copied_tuned_and_refitted():
    X, y = data()
    model = KernelRidge("2.0*RBF(1.0)", 0.1).fit(X, y)
    first = model.loo_error_
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.loo_error_ == first
    model.set_params(kernel__kernel__lengthscale=2.0, alpha=1.0).fit(X, y)
    assert model.loo_error_ != first
    assert str(model.kernel_) == "2.0*RBF(2.0)"
    primal = model.set_params(kernel="Linear()").fit(X, y)
    assert hasattr(primal, "coef_") and not hasattr(primal.set_params(kernel="RBF(1.0)").fit(X, y), "coef_")


def test_a_weighted_operator_is_the_weighted_matrix():
    X, _ = data(9)
    s, k = np.linspace(0.5, 2.0, 9), RBF(1.2)
    W = Weighted(Tiles(k, X), s)
    K = s[:, None] * k(X) * s
    V = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_allclose(W @ V, K @ V, atol=1e-13)
    np.testing.assert_allclose(W.T @ V, K @ V, atol=1e-13)
    np.testing.assert_allclose(W.dense(), K, atol=1e-14)
    np.testing.assert_allclose(W.block([1, 3], slice(2, 5)), K[[1, 3], 2:5], atol=1e-14)
    np.testing.assert_allclose(W.diag(), np.diag(K), atol=1e-14)
    expected = k.gram(X).contract(W=s[:, None] * (V @ V.T) * s)
    np.testing.assert_allclose(W.contract(V), expected, rtol=1e-10)
    np.testing.assert_allclose(W.contract(W=V @ V.T), expected, rtol=1e-10)
    for bad in (np.zeros(9), np.ones(8)):
        with pytest.raises((ParameterError, ShapeError)):
            Weighted(Precomputed(np.eye(9)), bad)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge("Linear()", fit_intercept=True),
        KernelRidge(solver="cg", n_landmarks=1000),
        KernelRidgeCV(),
    ]
)
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["cholesky", "cg", "nystrom"])
def test_noise_is_read_from_the_kernel_however_large_its_values_are(solver):
    rng = np.random.default_rng(0)
    X = 2e5 + 1e3 * rng.normal(size=(40, 3))
    y = rng.normal(size=40)
    settings = {"fit_intercept": False, "random_state": 0, "n_landmarks": 40} if solver == "nystrom" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noisy = mercer.KernelRidge("Linear() + White(0.1)", alpha=0.2, solver=solver, **settings).fit(X, y)
        plain = mercer.KernelRidge("Linear()", alpha=0.3, solver=solver, **settings).fit(X, y)
    np.testing.assert_allclose(noisy.predict(X), plain.predict(X), atol=5e-3)
    assert any("acts as 0.3" in str(note) for note in noisy.certificate_.notes)
