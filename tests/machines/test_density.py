"""SVDD and the kernel mean embedding: their twins, densities that integrate to one, and the contract."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import SVDD, KernelMeanEmbedding, OneClassSVM, verify
from mercer.errors import ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(60, 2)), rng.uniform(-6, 6, size=(8, 2))])


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("text", ["RBF(1.5)", "Laplacian(2.0)", "3.0*Matern(2.0)"])
def test_with_a_constant_diagonal_the_ball_is_the_one_class_machine(rows, text, nu):
    ball, plane = SVDD(text, nu).fit(rows), OneClassSVM(text, nu).fit(rows)
    new = rows[::3] + 0.3
    half = 0.5 * nu * len(rows)
    np.testing.assert_allclose(ball.decision_function(new) * half, plane.decision_function(new), atol=1e-8)
    np.testing.assert_array_equal(ball.predict(rows), plane.predict(rows))
    assert verify(ball, rows), str(verify(ball, rows))


@pytest.mark.parametrize("text", ["Linear()", "Polynomial(2)", "RBF(1.0)"])
def test_the_ball_is_the_smallest_of_a_general_solver(text):
    X = np.random.default_rng(3).normal(size=(12, 2))
    K, nu, n = mercer.parse(text)(X), 0.4, 12
    N = nu * n
    found = minimize(
        lambda a: (a @ K @ a - a @ np.diag(K), 2 * K @ a - np.diag(K)), np.full(n, 1 / n), jac=True,
        bounds=[(0, 1 / N)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    model = SVDD(text, nu).fit(X)
    distances = np.diag(K) - 2 * K @ found.x + found.x @ K @ found.x
    ours = model.radius_**2 - model.decision_function(X)
    np.testing.assert_allclose(ours, distances, atol=1e-4 * np.abs(distances).max())
    paid = N * model.radius_**2 + np.maximum(distances - model.radius_**2, 0).sum()
    assert paid == pytest.approx(-N * found.fun, rel=1e-6)
    assert verify(model, X), str(verify(model, X))


def test_the_linear_ball_is_a_circle_and_does_not_care_where_the_origin_is(rows):
    ball = SVDD("Linear()", 0.2).fit(rows)
    center = 0.5 * ball.dual_coef_[0] @ ball.support_vectors_
    assert np.linalg.norm(center) == pytest.approx(ball.center_norm_)
    want = ball.radius_**2 - ((rows - center) ** 2).sum(axis=1)
    np.testing.assert_allclose(ball.decision_function(rows), want, atol=1e-9)
    moved = SVDD("Linear()", 0.2).fit(rows + 50.0)
    assert moved.radius_ == pytest.approx(ball.radius_, rel=1e-6)
    np.testing.assert_allclose(
        moved.decision_function(rows + 50.0), ball.decision_function(rows), atol=1e-6 * 50**2
    )


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_nu_bounds_the_rows_outside(rows, nu):
    for text in ("RBF(1.0)", "Polynomial(2)"):
        model = SVDD(text, nu).fit(rows)
        assert (model.decision_function(rows) < -1e-9).mean() <= nu + 1e-9
        assert len(model.support_) / len(rows) >= nu - 1e-9
        assert model.certificate_.gap <= 1e-6 * abs(model.certificate_.primal)
        np.testing.assert_allclose(
            model.score_samples(rows), model.decision_function(rows) + model.offset_, atol=1e-12
        )


def test_weight_two_is_a_row_twice_and_one_changed_coefficient_is_seen(rows):
    w = np.random.default_rng(1).integers(0, 3, len(rows))
    a = SVDD("Polynomial(2)", 0.3).fit(rows, sample_weight=w)
    b = SVDD("Polynomial(2)", 0.3).fit(np.repeat(rows, w, axis=0))
    scale = np.abs(b.decision_function(rows)).max()
    np.testing.assert_allclose(a.decision_function(rows), b.decision_function(rows), atol=1e-6 * scale)
    a.dual_coef_[0, 0] *= 1.01
    assert not verify(a, rows, sample_weight=w)


def test_a_precomputed_ball_needs_a_constant_diagonal(rows):
    K = mercer.RBF(1.5)(rows)
    a, b = SVDD("precomputed", 0.3).fit(K), SVDD("RBF(1.5)", 0.3).fit(rows)
    np.testing.assert_allclose(a.decision_function(K), b.decision_function(rows), atol=1e-9)
    with pytest.raises(ParameterError, match="diagonal"):
        SVDD("precomputed").fit(mercer.Linear()(rows))


# ── the mean embedding ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("length", [0.3, 1.0, 4.0])
def test_the_density_is_that_of_scikit_learn(rows, length):
    ours = KernelMeanEmbedding(f"RBF({length})").fit(rows)
    theirs = KernelDensity(bandwidth=length, rtol=0, atol=0).fit(rows)
    np.testing.assert_allclose(ours.log_density(rows), theirs.score_samples(rows), rtol=1e-9, atol=1e-9)
    w = np.random.default_rng(2).integers(0, 4, len(rows)).astype(float)
    ours.fit(rows, sample_weight=w)
    theirs.fit(rows[w > 0], sample_weight=w[w > 0])
    np.testing.assert_allclose(ours.log_density(rows[:9]), theirs.score_samples(rows[:9]), rtol=1e-9)


@pytest.mark.parametrize("text", ["RBF(0.7)", "Laplacian(0.5)", "RBF([0.5, 1.5])", "Laplacian([0.4, 0.8])"])
def test_the_density_integrates_to_one(text):
    X = np.random.default_rng(0).normal(size=(5, 2))
    model = KernelMeanEmbedding(text).fit(X)
    axis = np.linspace(-12, 12, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.log_density(grid)).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1, abs=2e-3)


def test_the_score_is_the_mean_of_kernel_values(rows):
    w = np.arange(len(rows), dtype=float)
    model = KernelMeanEmbedding("Polynomial(2)").fit(rows, sample_weight=w)
    K = mercer.Polynomial(2)(rows)
    np.testing.assert_allclose(model.score_samples(rows), K @ w / w.sum(), rtol=1e-12)
    assert model.norm_**2 == pytest.approx(w @ K @ w / w.sum() ** 2)
    again = KernelMeanEmbedding("precomputed").fit(K, sample_weight=w)
    np.testing.assert_allclose(again.score_samples(K), model.score_samples(rows), rtol=1e-12)
    thin = KernelMeanEmbedding("Polynomial(2)").fit(sparse.csr_array(rows), sample_weight=w)
    np.testing.assert_allclose(thin.score_samples(rows), model.score_samples(rows), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5])
def test_contamination_is_the_share_of_outliers(rows, share):
    model = KernelMeanEmbedding("RBF(1.0)", contamination=share).fit(rows)
    outside = model.predict(rows) == -1
    assert outside.sum() == int(share * len(rows) + 1e-9)
    if share == 0.1:
        assert outside[60:].mean() > 0.5  # those that were scattered


def test_bad_parameters_are_refused(rows):
    for share in (-0.1, 0.6, "auto", True):
        with pytest.raises(ParameterError, match="contamination"):
            KernelMeanEmbedding(contamination=share).fit(rows)
    with pytest.raises(ParameterError, match="up to a constant"):
        KernelMeanEmbedding("Linear()").fit(rows).log_density(rows)
    with pytest.raises(ParameterError, match="nu must be"):
        SVDD(nu=0).fit(rows)
    with pytest.raises(ParameterError, match="working-set"):
        SVDD(solver="projected-gradient").fit(rows)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SVDD(), SVDD("Linear()"), KernelMeanEmbedding()])
def test_the_contract(estimator, check):
    check(estimator)
