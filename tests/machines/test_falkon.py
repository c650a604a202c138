"""Falkon: the same answers as dense linear algebra, from memory,
from memory-mapped files and from batches.
"""

import warnings

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import RBF, Batches, FalkonClassifier, FalkonRegressor, Interrupted, Linear, White
from mercer.errors import InputError, MercerError
from mercer.machines.landmarks import falkon_fit, streamed
from mercer.machines.landmarks import selection as landmarks
from mercer.machines.landmarks.falkon_newton import logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=150)
Z = X[:30]
NEW = RNG.normal(size=(40, 3))
K = RBF(1.5)


def ridge(A, y, w, alpha):
    """The normal equations, dense."""
    P = K(A, Z) @ np.linalg.inv(np.linalg.cholesky(K(Z))).T
    v = np.linalg.solve(P.T @ (w[:, None] * P) + alpha * np.eye(len(Z)), P.T @ (w * y))
    return lambda B: K(B, Z) @ np.linalg.solve(np.linalg.cholesky(K(Z)).T, v)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        FalkonRegressor(n_landmarks=20, landmarks="pivoted", alpha=0.1),
        FalkonClassifier(n_landmarks=20, landmarks="pivoted", alpha=0.1),
    ]
)
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_it_solves_the_normal_equations(solver, alpha):
    w = RNG.uniform(0.1, 3.0, size=150)
    model = FalkonRegressor(K, alpha=alpha, landmarks=Z, solver=solver, tol=1e-9).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(model.predict(NEW), ridge(X, Y, w, alpha)(NEW), atol=1e-6)
    c = model.certificate_
    assert c.converged and c.residual <= 1e-9 and c.added_diagonal == 0
    assert ("Cholesky, conjugate" in c.method) == (solver == "direct")


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_with_all_points_as_landmarks_it_is_kernel_ridge(solver):
    model = FalkonRegressor(RBF(0.8), 1000, alpha=0.1, solver=solver, random_state=0).fit(X, Y)
    peer = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5 / 0.64).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), peer.predict(NEW), atol=1e-5)


def test_a_very_smooth_kernel_takes_the_careful_way_and_says_so():
    model = FalkonRegressor(RBF(6.0), 150, alpha=1e-4).fit(X, Y)
    peer = KernelRidge(alpha=1e-4, kernel="rbf", gamma=0.5 / 36).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-4)
    assert "taken out of every tile" in str(model.certificate_) and "dropped" in str(model.certificate_)


def test_the_gap_bounds_what_is_left_to_gain():
    def objective(model):
        c = model.coef_[:, 0]
        return float(np.sum((Y - model.predict(X)) ** 2) + 0.01 * c @ K(model.landmarks_) @ c)

    best = objective(FalkonRegressor(K, alpha=0.01, landmarks=Z, tol=1e-12).fit(X, Y))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        rough = FalkonRegressor(K, alpha=0.01, landmarks=Z, solver="cg", max_iter=3).fit(X, Y)
    assert rough.certificate_.status == "limit"
    assert 0 < objective(rough) - best <= rough.certificate_.gap


@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("model", [FalkonRegressor, FalkonClassifier])
def test_weight_two_is_a_row_twice(model, solver):
    w = RNG.integers(0, 3, size=150)
    again = np.repeat(np.arange(150), w)
    y = Y if model is FalkonRegressor else Y > 0.2
    made = model(K, alpha=0.1, landmarks=Z, solver=solver, tol=1e-9)
    a = made.fit(X, y, sample_weight=w)._values(NEW)
    b = made.fit(X[again], y[again])._values(NEW)
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_the_logistic_answer_is_the_one_of_a_general_optimiser(solver):
    t = np.where(Y > 0.2, 1.0, -1.0)
    w = RNG.uniform(0.5, 2.0, size=150)
    model = FalkonClassifier(K, alpha=0.5, landmarks=Z, solver=solver, tol=1e-9).fit(X, t, sample_weight=w)
    P = K(X, Z) @ np.linalg.inv(np.linalg.cholesky(K(Z))).T

    def J(v):
        return w @ np.logaddexp(0, -t * (P @ v)) + 0.25 * v @ v

    found = optimize.minimize(J, np.zeros(30), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(model.decision_function(X), P @ found.x, atol=1e-4)
    assert model.certificate_.primal == pytest.approx(found.fun, rel=1e-9)
    assert model.certificate_.gap < 1e-9 and model.certificate_.converged
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))


def test_on_the_linear_kernel_it_is_logistic_regression():
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=150) > 0
    model = FalkonClassifier(Linear(), 50, alpha=2.0, tol=1e-9, random_state=0).fit(X, y)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.decision_function(NEW), peer.decision_function(NEW), atol=1e-5)
    assert model.basis_.rank == 3 and "47 of 50 landmarks dropped" in str(model.certificate_)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_several_classes_and_labels_of_any_kind(loss):
    y = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.6])]
    model = FalkonClassifier(K, 60, alpha=0.01, loss=loss, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and model.decision_function(X).shape == (150, 3)
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    else:
        one = ridge(X, np.where(y == "low", 1.0, -1.0), np.ones(150), 0.01)
        again = FalkonClassifier(K, alpha=0.01, loss=loss, landmarks=Z, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(again.decision_function(NEW)[:, 1], one(NEW), atol=1e-5)
        assert not hasattr(model, "predict_proba")


# ── where the rows come from ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "model", [FalkonRegressor(K, 30, 0.1, random_state=0), FalkonClassifier(K, 30, 0.1, random_state=0)]
)
def test_files_and_batches_are_as_good_as_memory(tmp_path, monkeypatch, model):
    y = Y if isinstance(model, FalkonRegressor) else (Y > 0).astype(int)
    inside = model.fit(X, y)._values(NEW)
    path = tmp_path / "X.dat"
    np.memmap(path, dtype=np.float64, mode="w+", shape=X.shape)[:] = X
    monkeypatch.setattr(falkon_fit, "LAZY_BYTES", 100)
    mapped = np.memmap(path, dtype=np.float64, mode="r", shape=X.shape)
    np.testing.assert_array_equal(model.fit(mapped, y)._values(NEW), inside)
    np.testing.assert_array_equal(model._values(np.asarray(NEW)), inside)

    def make():
        for start in range(0, 150, 40):
            yield X[start : start + 40], y[start : start + 40]

    for source in (Batches(make), Batches.of(X, y, size=7), Batches.of(X, y, np.ones(150), size=150)):
        got = model.fit(source)
        assert got.n_features_in_ == 3 and got.n_rows_fit_ == 150
        np.testing.assert_allclose(got._values(NEW), inside, atol=1e-7)


def test_text_without_a_lengthscale_takes_it_from_all_rows():
    A = X * [1.0, 5.0, 0.2] + 3.0
    w = RNG.uniform(size=150)
    a = FalkonRegressor(n_landmarks=5, random_state=0).fit(Batches.of(A, Y, w, size=11))
    b = mercer.SVR().fit(A, Y, sample_weight=w)
    assert a.kernel_.lengthscale == pytest.approx(b.kernel_.lengthscale, rel=1e-12)


def test_tiles_of_any_size_give_the_same(monkeypatch):
    model = FalkonRegressor(K, alpha=0.1, landmarks=Z)
    long = np.vstack([X] * 5)
    whole = model.fit(long, np.tile(Y, 5)).predict(NEW)
    monkeypatch.setattr(landmarks, "BLOCK_BYTES", 1)
    np.testing.assert_allclose(model.fit(long, np.tile(Y, 5)).predict(NEW), whole, atol=1e-9)


def test_a_large_sample_is_drawn_by_weight():
    A = np.repeat([[0.0], [1.0]], 500, axis=0)
    w = np.repeat([1.0, 9.0], 500)
    found = streamed.scan(Batches.of(A, A[:, 0], w, size=100), 200, np.random.default_rng(0), lambda y: None)
    assert found.n == 1000 and len(found.rows) == 200 and np.all(found.weights == 1.0)
    assert 0.75 < found.rows.mean() < 0.95
    assert found.weight == pytest.approx(5000)


def test_float32_tiles_are_close_and_said():
    a = FalkonRegressor(K, 60, 0.1, random_state=0).fit(X, Y)
    b = FalkonRegressor(K, 60, 0.1, random_state=0, dtype="float32").fit(X.astype(np.float32), Y)
    assert np.abs(a.predict(NEW) - b.predict(NEW)).max() < 0.02
    assert "rounded to float32" in str(b.certificate_) and "float32" not in str(a.certificate_)
    assert b.certificate_.converged


def test_parquet_batches(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})
    parquet.write_table(table, tmp_path / "rows.parquet")
    source = Batches.parquet(tmp_path / "rows.parquet", "y", size=64)
    got = FalkonRegressor(K, 30, 0.1, landmarks=Z).fit(source)
    np.testing.assert_allclose(
        got.predict(NEW), FalkonRegressor(K, 30, 0.1, landmarks=Z).fit(X, Y).predict(NEW), atol=1e-7
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda: [], "gave no rows"),
        (lambda: [(X, Y), (X[:, :2], Y)], "has 2 columns"),
        (lambda: [(X, Y[:3])], "150 rows of X and y of shape"),
        (lambda: [X], "must be \\(X, y\\)"),
        (lambda: [(np.full((2, 3), np.nan), Y[:2])], "NaN"),
        (lambda: [(X, np.full(150, np.nan))], "NaN"),
        (lambda: [(X, Y.astype(str))], "must hold numbers"),
        (lambda: [(X, Y, -np.ones(150))], "weights"),
        (lambda: [(X, Y, np.zeros(150))], "all weights are zero"),
        (lambda: [(X, None)], "target y is None"),
    ],
)
def test_bad_batches_are_refused(source, words):
    with pytest.raises(MercerError, match=words):
        FalkonRegressor().fit(Batches(source))


@pytest.mark.parametrize(
    "bad",
    [
        {"n_landmarks": 0},
        {"alpha": 0.0},
        {"tol": -1.0},
        {"solver": "newton"},
        {"dtype": "float16"},
        {"landmarks": "first"},
        {"kernel": "precomputed"},
        {"kernel": White(1.0)},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(MercerError):
        FalkonRegressor(**bad).fit(X, Y)


def test_other_bad_inputs():
    with pytest.raises(MercerError, match="loss"):
        FalkonClassifier(loss="hinge").fit(X, Y > 0)
    with pytest.raises(InputError, match="one class only"):
        FalkonClassifier().fit(X, np.ones(150, dtype=int))
    with pytest.raises(MercerError, match="brings its weights"):
        FalkonRegressor().fit(Batches.of(X, Y), sample_weight=np.ones(150))
    with pytest.raises(InputError, match="zero on all landmarks"):
        FalkonRegressor(Linear()).fit(np.zeros((4, 2)), np.ones(4))
    with pytest.raises(MercerError, match="fresh pass"):
        Batches([1, 2])


def test_a_limit_in_time_and_the_keyboard_keep_the_model(monkeypatch):
    with pytest.warns(ConvergenceWarning):
        late = FalkonClassifier(K, 30, 1e-3, max_iter=1, random_state=0).fit(X, Y > 0)
    assert late.certificate_.status == "limit" and late.predict(X).shape == (150,)
    calls = []

    def stop(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *args)

    original = streamed.Streamed.values
    monkeypatch.setattr(streamed.Streamed, "values", stop)
    stopped = FalkonClassifier(K, 30, 1e-3, random_state=0)
    with pytest.raises(Interrupted):
        stopped.fit(X, Y > 0)
    assert stopped.certificate_.status == "interrupted" and stopped.score(X, Y > 0) > 0.8


# ── noise in the kernel ─────────────────────────────────────────────────────────────────────────────────────

NOISY = ["RBF(1.0) + White(5.0)", "2.0 * (RBF(1.0) + White(0.5))", "RBF(1.0) + White(0.1) + 0.5*White(1.0)"]


@pytest.mark.parametrize("kernel", NOISY)
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_noise_in_the_kernel_is_that_of_kernel_ridge(kernel, solver):
    X, y, w = noisy_rows()
    ridge = mercer.KernelRidge(kernel, alpha=1e-2).fit(X, y, sample_weight=w)
    model = FalkonRegressor(kernel, alpha=1e-2, landmarks=X, solver=solver, tol=1e-9).fit(
        X, y, sample_weight=w
    )
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-7)
    np.testing.assert_allclose(model.predict(X[:7] + 0.3), ridge.predict(X[:7] + 0.3), atol=1e-7)
    assert "penalty" in str(model.certificate_.notes)


@pytest.mark.parametrize("kernel", NOISY)
def test_noise_in_a_squared_loss_classifier_is_that_of_kernel_ridge(kernel):
    X, y, _ = noisy_rows()
    labels = y > 0
    ridge = mercer.KernelRidge(kernel, alpha=1e-2).fit(X, np.where(labels, 1.0, -1.0))
    model = FalkonClassifier(kernel, alpha=1e-2, loss="squared", landmarks=X, tol=1e-9).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(X), ridge.predict(X), atol=1e-7)


@pytest.mark.parametrize("kernel", NOISY)
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_noise_in_a_logistic_classifier_is_that_of_the_kernel_machine(kernel, solver):
    X, y, _ = noisy_rows()
    labels = y > 0
    machine = mercer.KernelMachine(kernel, "logistic", alpha=0.1, fit_intercept=False, tol=1e-10).fit(
        X, labels
    )
    model = FalkonClassifier(kernel, alpha=0.1, landmarks=X, solver=solver, tol=1e-8).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(X), machine.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 20.0])
@pytest.mark.parametrize("kernel", NOISY)
@pytest.mark.parametrize("max_iter", [1, None])
def test_the_stated_objective_of_a_noisy_logistic_classifier_is_the_least_over_every_rows_own_part(
    kernel, alpha, max_iter
):
    X, y, w = noisy_rows()
    labels = y > 0
    model = FalkonClassifier(kernel, alpha=alpha, landmarks=X[:25], max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, labels, sample_weight=w)
    margins = np.where(labels, 1.0, -1.0) * model.decision_function(X)
    whole, noise = apart(kernel)
    losses = [least_loss(u, noise / alpha) for u in margins]
    c = model.coef_[:, 0]
    stated = w @ losses + 0.5 * alpha * c @ whole(model.landmarks_, model.landmarks_) @ c
    assert model.certificate_.primal == pytest.approx(stated, rel=1e-7)


def apart(kernel):
    """The kernel, which between two samples has no noise, and its noise."""
    whole = mercer.parse(kernel)
    at = np.array([[0.0, 0.0], [1.0, 2.0]])
    noise = whole(at)[0, 0] - whole(at, at)[0, 0]
    return whole, noise


@pytest.mark.parametrize("free", [0.0, 1e-6, 0.3, 5.0, 1e4])
def test_the_smoothed_loss_is_the_minimum_over_its_own_part(free):
    u = np.linspace(-30.0, 30.0, 13)
    value, fall, bend = logistic(u, free)
    for at, v in zip(u, value, strict=True):
        assert v == pytest.approx(least_loss(at, free), rel=1e-9)
    h = 1e-5
    slope = (logistic(u + h, free)[0] - logistic(u - h, free)[0]) / (2 * h)
    np.testing.assert_allclose(-fall, slope, atol=1e-7)
    second = (logistic(u + h, free)[1] - logistic(u - h, free)[1]) / (2 * h)
    np.testing.assert_allclose(-bend, second, atol=1e-7)


def least_loss(u, free):
    if not free:
        return np.logaddexp(0.0, -u)
    # a search over log ε, since the best ε may be far below `free`
    found = optimize.minimize_scalar(
        lambda e: np.logaddexp(0.0, -(u + np.exp(e))) + np.exp(e) ** 2 / (2 * free),
        bounds=(-40.0, np.log(free)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return found.fun


def noisy_rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60)
    return X, y, rng.integers(1, 4, size=60).astype(float)
