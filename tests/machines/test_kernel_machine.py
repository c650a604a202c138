"""KernelMachine: every loss against a general convex solver, its siblings, its certificate,
and what it promises.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import SVC, SVR, KernelMachine, verify
from mercer.errors import (
    DomainError,
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    NotFiniteError,
    ParameterError,
)
from mercer.machines.loss.losses import LOSSES, Logistic, Softmax
from mercer.machines.loss.smooth import SmoothLoss

CLASSES = ("hinge", "squared_hinge", "logistic")
NUMBERS = ("squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "poisson")


def sample(n, seed=0):
    """Rows, numbers with a few outliers, counts, two labels and three."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    y = f + 0.3 * rng.normal(size=n)
    y[::7] += 3.0
    counts = rng.poisson(np.exp(0.7 * f)).astype(float)
    two = np.where(f + 0.5 * rng.normal(size=n) > 0, "up", "down")
    three = np.digitize(f + 0.5 * rng.normal(size=n), [-0.7, 0.7])
    return SimpleNamespace(
        X=X, numbers=y, counts=counts, two=two, three=three, w=rng.integers(0, 3, n).astype(float)
    )


def target(data, loss):
    return data.counts if loss == "poisson" else data.two if loss in CLASSES else data.numbers


def signs(data):
    return np.where(data.two == "up", 1.0, -1.0)


def objective(model, X, y, w, k):
    """Σ w ℓ(y, f + b) + (α/2)‖f‖² from predictions and coefficients alone."""
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    z = k(X) @ beta + model.intercept_[0]
    return float(w @ model.loss_.value(y, z) + 0.5 * model.alpha * beta @ k(X) @ beta)


def root_of(K):
    """L with K = LLᵀ."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def referee_smooth(loss, K, y, w, alpha, intercept):
    """The minimum by BFGS over c and b with f = Lc, K = LLᵀ, from the loss's value and slope only."""
    L = root_of(K)

    def both(p):
        z = L @ p[:-1] + intercept * p[-1]
        s = w * loss.slope(y, z)
        value = w @ loss.value(y, z) + 0.5 * alpha * p[:-1] @ p[:-1]
        return value, np.append(L.T @ s + alpha * p[:-1], intercept * s.sum())

    start = np.zeros(len(K) + 1)
    found = minimize(both, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return found.fun, L @ found.x[:-1] + intercept * found.x[-1]


def referee_pieces(pieces, K, w, alpha, levels=1, start=None):
    """The minimum with ξ_i ≥ every linear piece a z + c, by SLSQP;
    several levels are kept in order on every row.
    """
    n, L = len(K), root_of(K)
    size = n + 1

    def split(p):
        c = p[: levels * size].reshape(levels, size)
        return c, L @ c[:, :-1].T + c[:, -1], p[levels * size :].reshape(levels, n)

    def value(p):
        c, _, xi = split(p)
        return float((xi * w).sum() + 0.5 * alpha * (c[:, :-1] ** 2).sum())

    def slope(p):
        c, _, _ = split(p)
        g = np.zeros((levels, size))
        g[:, :-1] = alpha * c[:, :-1]
        return np.concatenate([g.ravel(), np.tile(w, levels)])

    def matrix():
        rows, offsets = [], []
        M = np.column_stack([L, np.ones(n)])
        for t in range(levels):
            for a, c in pieces[t]:  # ξ - a z - c ≥ 0
                block = np.zeros((n, levels * size + levels * n))
                block[:, t * size : (t + 1) * size] = -np.reshape(a, (-1, 1)) * M
                block[:, levels * size + t * n : levels * size + (t + 1) * n] = np.eye(n)
                rows.append(block)
                offsets.append(-np.broadcast_to(c, n))
        for t in range(levels - 1):
            block = np.zeros((n, levels * size + levels * n))
            block[:, t * size : (t + 1) * size] = -M
            block[:, (t + 1) * size : (t + 2) * size] = M
            rows.append(block)
            offsets.append(np.zeros(n))
        return np.vstack(rows), np.concatenate(offsets)

    A, off = matrix()
    start = np.zeros(levels * (size + n)) if start is None else start
    start[levels * size :] = 10.0
    found = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda p: A @ p + off, "jac": lambda p: A},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return found.fun, split(found.x)[1]


# ── against general solvers ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.05, 2.0])
@pytest.mark.parametrize("loss", [name for name in (*NUMBERS, *CLASSES) if LOSSES[name].smooth])
def test_a_smooth_loss_has_the_minimum_of_a_general_solver(loss, alpha, intercept):
    data, k = sample(25), mercer.RBF(1.0)
    y = target(data, loss)
    model = KernelMachine(k, loss, alpha, fit_intercept=intercept, delta=0.4).fit(data.X, y, data.w)
    t = signs(data) if loss in CLASSES else y
    value, z = referee_smooth(model.loss_, k(data.X), t, data.w, alpha, intercept)
    c = model.certificate_
    assert c.primal == pytest.approx(objective(model, data.X, t, data.w, k), rel=1e-12)
    assert c.primal <= value * (1 + 1e-12) and c.dual <= value * (1 + 1e-12)
    assert c.primal == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(model._values(data.X)[:, 0], z, atol=2e-4)
    assert c.status == "converged" and 0 <= c.gap <= 1e-10 * c.primal and verify(model, data.X, y, data.w)


@pytest.mark.parametrize("alpha", [0.05, 2.0])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "quantile"])
def test_a_piecewise_linear_loss_has_the_minimum_of_a_general_solver(loss, alpha):
    data, k = sample(15), mercer.RBF(1.0)
    y, t = target(data, loss), signs(data)
    pieces = {
        "hinge": [(-t, 1.0), (0.0 * t, 0.0)],
        "epsilon_insensitive": [
            (-1.0 + 0 * t, data.numbers - 0.1),
            (1.0 + 0 * t, -data.numbers - 0.1),
            (0 * t, 0.0),
        ],
        "quantile": [(-0.3 + 0 * t, 0.3 * data.numbers), (0.7 + 0 * t, -0.7 * data.numbers)],
    }[loss]
    w = data.w + 0.5
    model = KernelMachine(k, loss, alpha, quantiles=0.3).fit(data.X, y, w)
    value, z = referee_pieces([pieces], k(data.X), w, alpha)
    c = model.certificate_
    t = t if loss == "hinge" else y
    assert c.primal == pytest.approx(objective(model, data.X, t, w, k), rel=1e-9)
    assert c.primal == pytest.approx(value, rel=1e-6) and c.primal <= value * (1 + 1e-8)
    np.testing.assert_allclose(model._values(data.X), z, atol=5e-3)
    assert c.status == "converged" and 0 <= c.gap <= 1e-8 * c.primal and verify(model, data.X, y, w)


@pytest.mark.parametrize("intercept", [True, False])
def test_softmax_has_the_minimum_of_a_general_solver(intercept):
    data, k, alpha = sample(20), mercer.RBF(1.0), 0.3
    K, soft = k(data.X), Softmax()
    L = root_of(K)

    def both(p):
        c = p.reshape(21, 3)
        z = L @ c[:-1] + intercept * c[-1]
        s = data.w[:, None] * soft.slope(data.three, z)
        g = np.vstack([L.T @ s + alpha * c[:-1], intercept * s.sum(axis=0)])
        return data.w @ soft.value(data.three, z) + 0.5 * alpha * (c[:-1] ** 2).sum(), g.ravel()

    found = minimize(both, np.zeros(63), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    model = KernelMachine(k, "logistic", alpha, fit_intercept=intercept).fit(data.X, data.three, data.w)
    c = model.certificate_
    assert c.primal == pytest.approx(found.fun, rel=1e-8) and c.primal <= found.fun * (1 + 1e-12)
    assert 0 <= c.gap <= 1e-12 * c.primal and verify(model, data.X, data.three, data.w)
    p = found.x.reshape(21, 3)
    z = L @ p[:-1] + intercept * p[-1]
    np.testing.assert_allclose(model.predict_proba(data.X), softmax(z, axis=1), atol=1e-5)


# ── against its siblings ────────────────────────────────────────────────────────────────────────────────────


def test_squared_loss_is_kernel_ridge():
    data, k, n = sample(40), mercer.RBF(0.7), 40
    model = KernelMachine(k, "squared", 0.3, fit_intercept=False).fit(data.X, data.numbers)
    beta = np.linalg.solve(k(data.X) + 0.3 * np.eye(n), data.numbers)
    np.testing.assert_allclose(model.predict(data.X), k(data.X) @ beta, atol=1e-11)
    model = KernelMachine(k, "squared", 0.3).fit(data.X, data.numbers, data.w)
    used = data.w > 0
    M = np.block(
        [
            [k(data.X[used]) + np.diag(0.3 / data.w[used]), np.ones((used.sum(), 1))],
            [np.ones(used.sum()), 0.0],
        ]
    )
    bordered = np.linalg.solve(M, np.append(data.numbers[used], 0.0))
    np.testing.assert_allclose(
        model.predict(data.X), k(data.X, data.X[used]) @ bordered[:-1] + bordered[-1], atol=1e-10
    )


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_hinge_is_the_support_vector_machine(alpha):
    data = sample(80)
    ours = KernelMachine("RBF(1.0)", "hinge", alpha).fit(data.X, data.two, data.w)
    peer = SVC("RBF(1.0)", C=1 / alpha, tol=1e-9).fit(data.X, data.two, data.w)
    np.testing.assert_allclose(ours.decision_function(data.X), peer.decision_function(data.X), atol=1e-6)
    assert ours.certificate_.primal == pytest.approx(alpha * peer.certificate_.primal, rel=1e-9)
    assert np.array_equal(ours.predict(data.X), peer.predict(data.X))


def test_epsilon_insensitive_is_support_vector_regression():
    data = sample(80)
    ours = KernelMachine("RBF(1.0)", "epsilon_insensitive", 0.5, epsilon=0.2).fit(data.X, data.numbers)
    peer = SVR("RBF(1.0)", C=2.0, epsilon=0.2, tol=1e-9).fit(data.X, data.numbers)
    np.testing.assert_allclose(ours.predict(data.X), peer.predict(data.X), atol=1e-6)
    assert len(ours.support_) < 80


@pytest.mark.parametrize("several", [False, True])
def test_logistic_loss_of_a_linear_kernel_is_logistic_regression(several):
    data = sample(80)
    y = data.three if several else data.two
    ours = KernelMachine("Linear()", "logistic", 0.5).fit(data.X, y)
    peer = LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000).fit(data.X, y)
    np.testing.assert_allclose(ours.predict_proba(data.X), peer.predict_proba(data.X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_log_proba(data.X), np.log(ours.predict_proba(data.X)), atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(data.X).sum(axis=1), 1.0, rtol=1e-12)


def test_squared_hinge_of_a_linear_kernel_is_that_of_liblinear():
    data = sample(60)
    ones = np.column_stack([data.X, np.ones(60)])
    ours = KernelMachine("Linear()", "squared_hinge", 0.5, fit_intercept=False).fit(ones, data.two)
    peer = LinearSVC(C=2.0, fit_intercept=False, dual=True, tol=1e-10, max_iter=200_000, random_state=0).fit(
        ones, data.two
    )
    np.testing.assert_allclose(ours.decision_function(ones), peer.decision_function(ones), atol=1e-5)


def test_several_classes_of_a_margin_loss_are_one_against_the_rest():
    data = sample(60)
    for loss in ("hinge", "squared_hinge"):
        model = KernelMachine("RBF(1.0)", loss, 0.5).fit(data.X, data.three)
        for c in range(3):
            alone = KernelMachine("RBF(1.0)", loss, 0.5).fit(data.X, data.three == c)
            np.testing.assert_allclose(
                model.decision_function(data.X)[:, c], alone.decision_function(data.X), atol=1e-7
            )
        assert len(model.certificates_) == 3 and verify(model, data.X, data.three)


# ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("loss", [*NUMBERS, *CLASSES, "softmax", "levels"])
def test_weight_two_is_a_row_twice(loss):
    data = sample(40, seed=3)
    name = {"softmax": "logistic", "levels": "quantile"}.get(loss, loss)
    y = data.three if loss == "softmax" else target(data, name)
    model = KernelMachine("RBF()", name, 0.2, quantiles=[0.2, 0.3, 0.7] if loss == "levels" else 0.4)
    count = data.w.astype(int)
    a = clone(model).fit(data.X, y, data.w)
    b = clone(model).fit(np.repeat(data.X, count, axis=0), np.repeat(y, count))
    tight = 1e-3 if loss == "levels" else 1e-6
    np.testing.assert_allclose(a._values(data.X), b._values(data.X), atol=tight)
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic", "quantile"])
def test_precomputed_sparse_and_tiles_are_the_same(loss):
    data, k = sample(40), mercer.RBF(1.0)
    y = target(data, loss)
    plain = KernelMachine(k, loss, 0.5).fit(data.X, y)
    z = plain._values(data.X)
    given = KernelMachine("precomputed", loss, 0.5).fit(k(data.X), y)
    np.testing.assert_allclose(given._values(k(data.X)), z, atol=1e-7)
    thin = KernelMachine(k, loss, 0.5).fit(sparse.csr_array(data.X), y)
    np.testing.assert_allclose(thin._values(sparse.csr_array(data.X)), z, atol=1e-7)
    tiles = KernelMachine(k, loss, 0.5, memory=1000).fit(data.X, y)
    np.testing.assert_allclose(tiles._values(data.X), z, atol=1e-5)
    assert verify(given, k(data.X), y) and verify(thin, data.X, y) and verify(tiles, data.X, y)


def test_conjugate_gradients_reach_what_cholesky_reaches():
    data = sample(150)
    y = data.three
    exact = KernelMachine("RBF(1.0)", "logistic", 0.1).fit(data.X, y)
    large = KernelMachine("RBF(1.0)", "logistic", 0.1, memory="100KiB").fit(data.X, y)
    assert "conjugate gradients" in large.certificate_.method and "Cholesky" in exact.certificate_.method
    np.testing.assert_allclose(large.predict_proba(data.X), exact.predict_proba(data.X), atol=1e-4)
    assert large.certificate_.gap <= 1e-8 * large.certificate_.primal


@pytest.mark.parametrize("loss", [*NUMBERS, *CLASSES])
def test_one_changed_coefficient_is_seen(loss):
    data = sample(30)
    y = target(data, loss)
    model = KernelMachine("RBF(1.0)", loss, 0.5).fit(data.X, y)
    assert verify(model, data.X, y), str(verify(model, data.X, y))
    model.dual_coef_[0, 3] *= 1.01
    assert not verify(model, data.X, y)


def test_class_weights_are_weights_of_rows():
    data = sample(50)
    factors = {"up": 3.0, "down": 0.5}
    a = KernelMachine("RBF(1.0)", "logistic", 0.5, class_weight=factors).fit(data.X, data.two)
    b = KernelMachine("RBF(1.0)", "logistic", 0.5).fit(data.X, data.two, np.vectorize(factors.get)(data.two))
    np.testing.assert_allclose(a.predict_proba(data.X), b.predict_proba(data.X), atol=1e-10)
    assert verify(a, data.X, data.two)


def test_the_gap_bounds_the_distance_from_the_minimum_at_every_stop():
    data = sample(40)
    best = KernelMachine("RBF(0.5)", "poisson", 0.01).fit(data.X, data.counts).certificate_.primal
    for steps in range(1, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            c = (
                KernelMachine("RBF(0.5)", "poisson", 0.01, max_iter=steps)
                .fit(data.X, data.counts)
                .certificate_
            )
        assert c.dual <= best * (1 + 1e-9) <= c.primal * (1 + 2e-9)
        assert c.primal - best <= c.gap * (1 + 1e-9) + 1e-9 and c.gap == pytest.approx(
            c.primal - c.dual, abs=1e-9
        )


def test_a_limit_is_reported_and_what_was_found_is_kept():
    data = sample(40)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = KernelMachine("RBF(0.5)", "logistic", 0.001, max_iter=1).fit(data.X, data.two)
    assert model.certificate_.status == "limit" and model.certificate_.gap > 0
    seen = []
    model = KernelMachine("RBF(0.5)", "logistic", 0.001, callback=lambda i, p, g: seen.append(i) or i == 2)
    assert model.fit(data.X, data.two).certificate_.status == "stopped" and seen == [0, 1, 2]
    assert model.predict(data.X).shape == (40,)


# ── quantiles ───────────────────────────────────────────────────────────────────────────────────────────────

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def test_levels_have_about_the_right_coverage():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 1))
    y = X[:, 0] + (0.2 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=300)
    for level in (0.1, 0.5, 0.9):
        model = KernelMachine("RBF(0.5)", "quantile", 0.5, quantiles=level).fit(X, y)
        z = model.predict(X)
        assert (y < z - 1e-7).mean() <= level + 1e-9 and (y <= z + 1e-7).mean() >= level - 1e-9


def test_levels_do_not_cross_anywhere():
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-2, 2, size=(40, 1)), axis=0)
    y = np.where(rng.random(40) < 0.5, 3.0, -3.0) * np.abs(X[:, 0]) + 0.1 * rng.normal(size=40)
    model = KernelMachine("RBF(0.3)", "quantile", 0.01, quantiles=[0.2, 0.4, 0.5, 0.6]).fit(X, y)
    assert model.crossings_ > 0 and any("jointly" in note for note in model.certificate_.notes)
    far = np.linspace(-8, 8, 500)[:, None]
    assert np.diff(model.predict(far), axis=1).min() >= 0
    assert not model.rearranged(X).any() and np.diff(model._values(X), axis=1).min() > 0
    assert model.certificate_.status == "converged" and verify(model, X, y), str(verify(model, X, y))
    assert model.certificate_.gap <= 1e-8 * model.certificate_.primal
    model.dual_coef_[0, 3] += 0.1
    assert not verify(model, X, y)


def test_without_an_intercept_levels_are_only_sorted_and_the_certificate_says_so():
    data = sample(30)
    levels = [0.4, 0.5, 0.6]
    model = KernelMachine("RBF(0.5)", "quantile", 0.05, quantiles=levels, fit_intercept=False)
    model.fit(data.X, data.numbers)
    assert model.crossings_ > 0 and model.rearranged(data.X).sum() == model.crossings_
    assert any("predict sorts" in note for note in model.certificate_.notes)
    assert np.diff(model.predict(data.X), axis=1).min() >= 0 and verify(model, data.X, data.numbers)


def test_joint_levels_have_the_minimum_of_a_general_solver():
    rng = np.random.default_rng(4)
    X, k, levels = rng.normal(size=(10, 1)), mercer.RBF(0.4), [0.3, 0.5, 0.6]
    y, w = rng.normal(size=10), np.where(np.arange(10) % 3, 1.0, 2.0)
    model = KernelMachine(k, "quantile", 0.02, quantiles=levels).fit(X, y, w)
    assert model.crossings_ > 0
    pieces = [[(-t + 0 * y, t * y), (1 - t + 0 * y, -(1 - t) * y)] for t in levels]
    value, _ = referee_pieces(pieces, k(X), w, 0.02, levels=3)
    c = model.certificate_
    assert c.primal == pytest.approx(value, rel=1e-5) and c.dual <= value * (1 + 1e-7)


def test_levels_that_do_not_cross_are_those_fitted_alone():
    data = sample(40)
    model = KernelMachine("Linear()", "quantile", 5.0, quantiles=[0.1, 0.9]).fit(data.X, data.numbers)
    assert model.crossings_ == 0
    for i, level in enumerate((0.1, 0.9)):
        alone = KernelMachine("Linear()", "quantile", 5.0, quantiles=level).fit(data.X, data.numbers)
        np.testing.assert_allclose(model.predict(data.X)[:, i], alone.predict(data.X), atol=1e-9)


@pytest.mark.parametrize("levels", [0.0, 1.0, [0.5, 0.2], [0.5, 0.5], [], "half", [[0.1]], np.nan])
def test_bad_levels_are_refused(levels):
    with pytest.raises(ParameterError, match="quantiles"):
        KernelMachine(loss="quantile", quantiles=levels).fit([[0.0], [1.0]], [0.0, 1.0])


# ── a loss of one's own ─────────────────────────────────────────────────────────────────────────────────────


class LogCosh:
    """log cosh(z - y): quadratic near 0, linear far away."""

    def value(self, y, z):
        return np.logaddexp(z - y, y - z) - np.log(2)

    def slope(self, y, z):
        return np.tanh(z - y)


def test_a_loss_without_conjugate_reaches_the_minimum_and_says_that_there_is_no_gap():
    data, k = sample(25), mercer.RBF(1.0)
    model = KernelMachine(k, LogCosh(), 0.3).fit(data.X, data.numbers, data.w)
    value, z = referee_smooth(LogCosh(), k(data.X), data.numbers, data.w, 0.3, True)
    c = model.certificate_
    assert c.primal == pytest.approx(value, rel=1e-9) and c.gap is None and c.dual is None
    assert c.residual < 1e-6 and any("no duality gap" in note for note in c.notes)
    np.testing.assert_allclose(model.predict(data.X), z, atol=1e-4)
    assert verify(model, data.X, data.numbers, data.w)


def test_a_loss_with_conjugate_has_the_gap_of_its_twin():
    data, inner = sample(40), Logistic()
    own = SmoothLoss(inner.value, inner.slope, inner.curvature, inner.conjugate, kind="classification")
    a = KernelMachine("RBF(1.0)", own, 0.2).fit(data.X, data.two)
    b = KernelMachine("RBF(1.0)", "logistic", 0.2).fit(data.X, data.two)
    np.testing.assert_allclose(a.decision_function(data.X), b.decision_function(data.X), atol=1e-9)
    assert a.certificate_.dual == pytest.approx(b.certificate_.dual, rel=1e-12)
    assert is_classifier(a) and not hasattr(a, "predict_proba")


def test_a_loss_that_is_not_convex_is_refused():
    data = sample(10)
    cauchy = SimpleNamespace(
        value=lambda y, z: np.log1p((z - y) ** 2), slope=lambda y, z: 2 * (z - y) / (1 + (z - y) ** 2)
    )
    with pytest.raises(ParameterError, match="not convex"):
        KernelMachine(loss=cauchy).fit(data.X, data.numbers)


# ── what it refuses, and hard inputs ────────────────────────────────────────────────────────────────────────


def test_a_penalty_outside_the_theorem_is_refused_with_the_reason():
    for penalty in ("l1", "elasticnet"):
        with pytest.raises(ParameterError, match=r"representer theorem.*MercerMap"):
            KernelMachine(penalty=penalty).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ParameterError, match="penalty must be"):
        KernelMachine(penalty=None).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": np.inf}, "alpha"),
        ({"alpha": "1"}, "alpha"),
        ({"loss": "lasso"}, "loss must be"),
        ({"loss": 3}, "loss must be"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"max_seconds": -1}, "max_seconds"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelMachine(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])


def test_targets_outside_the_domain_are_refused():
    X = np.eye(3)
    with pytest.raises(DomainError, match="row 1 has -1"):
        KernelMachine("RBF(1.0)", "poisson").fit(X, [1, -1, 2])
    with pytest.raises(DomainError, match="fit_intercept=False"):
        KernelMachine("RBF(1.0)", "poisson").fit(X, [0, 0, 0])
    rates = KernelMachine("RBF(1.0)", "poisson", fit_intercept=False).fit(X, [0, 0, 0]).predict(X)
    assert np.all((rates > 0) & (rates < 1))
    with pytest.raises(InputError, match="one class"):
        KernelMachine("RBF(1.0)", "logistic").fit(X, [1, 1, 1])
    with pytest.raises(NotFiniteError, match="row 1"):
        KernelMachine("RBF(1.0)").fit(X, [0.0, np.nan, 1.0])


@pytest.mark.parametrize("loss", NUMBERS)
def test_one_row_constant_targets_and_duplicates_fit(loss):
    one = KernelMachine("RBF(1.0)", loss).fit([[1.0, 2.0]], [3.0])
    assert one.predict([[0.0, 0.0]]) == pytest.approx([3.0], abs=0.11)
    flat = KernelMachine("RBF(1.0)", loss).fit(np.eye(4), np.full(4, 7.0))
    assert flat.predict(np.eye(4)) == pytest.approx([7.0] * 4, abs=0.11)
    X = np.repeat([[0.0], [1e8]], 5, axis=0)
    twins = KernelMachine("RBF(1.0)", loss).fit(X, np.arange(10.0))
    assert twins.certificate_.status == "converged" and np.isfinite(twins.predict(X)).all()


@pytest.mark.parametrize("loss", ["huber", "logistic", "squared_hinge", "poisson"])
@pytest.mark.parametrize("alpha", [1e-8, 1e8])
def test_extreme_penalties_converge(loss, alpha):
    data = sample(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = KernelMachine("RBF(1.0)", loss, alpha, delta=0.1).fit(data.X, target(data, loss))
    assert (
        np.isfinite(model._values(data.X)).all()
        and model.certificate_.gap <= 1e-8 * model.certificate_.primal
    )


def test_a_kernel_that_is_none_is_announced_or_refused():
    data = sample(30)
    with pytest.warns(InvalidKernelWarning, match="not positive"):
        KernelMachine("Sigmoid(1.0)", "logistic", 100.0).fit(data.X, data.two)
    with pytest.raises(InvalidKernelError, match="strict"):
        KernelMachine("Sigmoid(1.0)", "logistic", 1.0, strict=True).fit(data.X, data.two)
    with (
        pytest.warns(InvalidKernelWarning, match="its lowest eigenvalue is -1"),
        pytest.warns(InvalidKernelWarning, match="Raise alpha"),
        pytest.warns(ConvergenceWarning, match="failed"),
    ):
        model = KernelMachine("precomputed", "squared", 0.1).fit(np.diag([1.0, -1.0, 1.0]), [0.0, 1.0, 2.0])
    assert model.certificate_.status == "failed"
    assert model.predict(np.eye(3)) == pytest.approx(np.ones(3))


def test_the_loss_says_what_it_is():
    assert is_regressor(KernelMachine()) and is_classifier(KernelMachine(loss="hinge"))
    assert not hasattr(KernelMachine(), "decision_function") and not hasattr(
        KernelMachine(loss="hinge"), "predict_proba"
    )
    data = sample(60)
    poisson = KernelMachine("RBF(1.0)", "poisson", 0.5).fit(data.X, data.counts)
    assert poisson.predict(data.X).min() > 0 and poisson.score(data.X, data.counts) > 0.3
    levels = KernelMachine("RBF(1.0)", "quantile", 0.5, quantiles=LEVELS).fit(data.X, data.numbers)
    assert levels.predict(data.X).shape == (60, 5) and 0.2 < levels.score(data.X, data.numbers) < 1


MACHINES = [
    KernelMachine(),
    KernelMachine(loss="huber"),
    KernelMachine(loss="quantile"),
    KernelMachine(loss="poisson"),
    KernelMachine(loss="logistic"),
    KernelMachine(loss="hinge"),
    KernelMachine(loss="squared_hinge"),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(MACHINES)
def test_the_contract(estimator, check):
    check(estimator)
