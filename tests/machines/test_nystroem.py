"""Nyström features: exact traces, exactness at full rank, bounds that hold, and machines that use them."""

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import RBF, SVC, SVR, Linear, Matern, NuSVC, NuSVR, Nystroem, OneClassSVM, White, verify
from mercer.arrays import Rows
from mercer.errors import InvalidKernelError, MercerError, ParameterError
from mercer.gram import Features, LowRank
from mercer.machines.landmarks.approximation import approximate, without_noise
from mercer.machines.landmarks.selection import basis, leverage_scores
from mercer.solve.precondition import greedy_columns, pivoted_cholesky

WAYS = ["uniform", "kmeans", "leverage", "pivoted"]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(120, 3))


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([Nystroem(random_state=0), Nystroem(n_components=5, landmarks="pivoted")])
def test_the_contract(estimator, check):
    check(estimator)


# ── the approximation ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", [*WAYS, "points", "rows"])
def test_the_trace_left_out_is_that_of_the_dense_computation(X, way):
    landmarks = {"points": X[:20] + 0.1, "rows": np.arange(0, 60, 3)}.get(way, way)
    model = Nystroem(RBF(1.5), 20, landmarks=landmarks, random_state=0)
    P = model.fit_transform(X)
    K, Z = RBF(1.5)(X), model.landmarks_
    dense = RBF(1.5)(X, Z) @ np.linalg.pinv(RBF(1.5)(Z), rcond=1e-13, hermitian=True) @ RBF(1.5)(Z, X)
    np.testing.assert_allclose(P @ P.T, dense, atol=1e-9)
    np.testing.assert_array_equal(P, model.transform(X))
    assert model.residual_trace_ == pytest.approx(np.trace(K - dense), rel=1e-8)
    assert model.residual_share_ == pytest.approx(model.residual_trace_ / np.trace(K))
    assert np.linalg.eigvalsh(K - P @ P.T)[0] > -1e-10  # from below
    assert model.certificate_.residual == model.residual_share_
    if model.landmark_indices_ is not None:
        np.testing.assert_array_equal(X[model.landmark_indices_], Z)


@pytest.mark.parametrize("way", ["uniform", "leverage", "pivoted", "all"])
@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(1.0), Linear(), 2.0 * RBF(1.0) + Linear().on(0)])
def test_with_all_points_as_landmarks_it_is_exact(X, way, kernel):
    landmarks = X if way == "all" else way
    model = Nystroem(kernel, len(X), landmarks=landmarks, random_state=0).fit(X)
    P = model.transform(X)
    np.testing.assert_allclose(P @ P.T, kernel(X), atol=1e-10 * kernel(X).max())
    new = X[:7] + 0.05
    np.testing.assert_allclose(model.transform(new) @ P.T, kernel(new, X), atol=1e-6)
    assert model.residual_share_ < 1e-12


def test_duplicates_and_dependent_landmarks_are_dropped_and_counted(X):
    twice = np.vstack([X[:30], X[:30]])
    model = Nystroem(RBF(1.0), 60, landmarks=twice).fit(twice)
    assert model.n_dropped_ == 30 and model.basis_.rank == 30 and model.threshold_ > 0
    assert "30 of 60 landmarks dropped" in str(model.certificate_) and model.certificate_.added_diagonal == 0
    flat = Nystroem(Linear(), 50, landmarks="uniform", random_state=0).fit(X)
    assert flat.basis_.rank == 3 and flat.n_dropped_ == 47


@pytest.mark.parametrize("way", WAYS)
def test_a_tolerance_is_met_or_the_shortfall_is_said(X, way):
    model = Nystroem(RBF(1.5), tolerance=0.05, landmarks=way, random_state=0).fit(X)
    assert model.residual_share_ <= 0.05 and model.basis_.rank < len(X)
    with pytest.warns(ConvergenceWarning, match="more than tolerance"):
        short = Nystroem(RBF(0.1), 5, tolerance=0.01, landmarks=way, random_state=0).fit(X)
    assert short.certificate_.status == "limit" and short.residual_share_ > 0.01


def test_the_greedy_choice_stops_at_the_first_rank_that_suffices(X):
    model = Nystroem(RBF(1.5), tolerance=0.05, landmarks="pivoted").fit(X)
    rank = model.basis_.rank
    fewer = Nystroem(RBF(1.5), rank - 1, landmarks="pivoted").fit(X)
    assert fewer.residual_share_ > 0.05
    K = RBF(1.5)(X)
    found = greedy_columns(K, rank)
    assert set(found.pivots) == set(model.landmark_indices_)
    assert found.left_out == pytest.approx(model.residual_trace_, rel=1e-6)
    assert pivoted_cholesky(K, rank=rank).left_out == pytest.approx(found.left_out)


def test_the_greedy_choice_within_a_memory_limit_says_what_it_looked_at(X):
    model = Nystroem(RBF(1.5), 10, landmarks="pivoted", memory=10 * 40 * 8, random_state=0).fit(X)
    assert "among 40 of 120 rows" in str(model.certificate_)
    K = model.operator(X)
    assert isinstance(K, Features)
    P = model.transform(X)
    np.testing.assert_allclose(K @ np.eye(120), P @ P.T, atol=1e-12)


def test_leverage_scores_are_exact_from_all_rows_and_close_from_some(X):
    K = RBF(1.0).gram(X)
    exact = np.diag(K.dense() @ np.linalg.inv(K.dense() + 0.3 * np.eye(len(X))))
    np.testing.assert_allclose(leverage_scores(K, 0.3), exact, rtol=1e-9)
    # An effective dimension far below the 60 rows of the pilot: a constant factor holds.
    wide = RBF(3.0).gram(X)
    exact = np.diag(wide.dense() @ np.linalg.inv(wide.dense() + 3.0 * np.eye(len(X))))
    ratio = leverage_scores(wide, 3.0, pilot=np.arange(0, 120, 2)) / exact
    assert exact.sum() < 10 and ratio.min() > 0.5 and ratio.max() < 2.0
    w = np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)
    again = np.repeat(np.arange(len(X)), w.astype(int))
    repeated = leverage_scores(RBF(1.0).gram(X[again]), 0.3)
    np.testing.assert_allclose(leverage_scores(K, 0.3, weight=w), np.bincount(again, repeated), rtol=1e-8)


def test_leverage_finds_the_few_rows_that_differ():
    rng = np.random.default_rng(0)
    X = np.vstack([1e-3 * rng.normal(size=(395, 2)), rng.normal(size=(5, 2)) * 20])
    lev = [
        Nystroem(RBF(1.0), 12, landmarks="leverage", random_state=i).fit(X).residual_trace_ for i in range(10)
    ]
    uni = [Nystroem(RBF(1.0), 12, random_state=i).fit(X).residual_trace_ for i in range(10)]
    assert np.mean(lev) < 0.5 * np.mean(uni)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("way", ["uniform", "pivoted"])
def test_the_bound_on_predictions_holds_and_is_not_idle(X, way, alpha):
    y = np.sin(X[:, 0]) + X[:, 1]
    model = Nystroem(RBF(1.5), 40, landmarks=way, random_state=0).fit(X)
    bound = model.prediction_bound(y, alpha)
    K, P = RBF(1.5)(X), model.transform(X)
    c = np.linalg.solve(K + alpha * np.eye(len(X)), y)
    w = np.linalg.solve(P.T @ P + alpha * np.eye(P.shape[1]), P.T @ y)
    assert np.linalg.norm(K @ c - P @ w) <= bound.training <= np.linalg.norm(y)
    new = np.random.default_rng(1).normal(size=(200, 3))
    moved = np.abs(RBF(1.5)(new, X) @ c - model.transform(new) @ w)
    assert np.all(moved <= bound.anywhere)  # k(x, x) = 1
    assert model.prediction_bound(y, 1e9).training < 1e-6 * np.linalg.norm(y)


def test_noise_is_kept_apart(X):
    model = Nystroem(RBF(1.5) + White(0.1) + 2.0 * White(0.2), 30, random_state=0).fit(X)
    plain = Nystroem(RBF(1.5), 30, random_state=0).fit(X)
    assert model.noise_ == pytest.approx(0.5)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    np.testing.assert_allclose(model.operator(X).dense(), plain.operator(X).dense() + 0.5 * np.eye(len(X)))
    with pytest.raises(ParameterError, match="noise and nothing else"):
        Nystroem(White(1.0)).fit(X)
    with pytest.raises(ParameterError, match="inside another"):
        without_noise(RBF(1.0) * White(1.0))


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("noise", [1e-2, 0.5, 10.0])
def test_noise_tightens_the_bound_on_predictions_as_a_larger_alpha_does(X, alpha, noise):
    y = np.random.default_rng(0).normal(size=len(X))
    noisy = Nystroem(RBF(0.5) + White(noise), 8, landmarks="pivoted").fit(X).prediction_bound(y, alpha)
    plain = Nystroem(RBF(0.5), 8, landmarks="pivoted").fit(X).prediction_bound(y, alpha + noise)
    assert noisy.training == pytest.approx(plain.training, rel=1e-12)
    assert noisy.anywhere == pytest.approx(plain.anywhere, rel=1e-12)


def test_a_precomputed_gram_gives_the_same(X):
    a = Nystroem("precomputed", 25, landmarks="pivoted").fit(RBF(1.5)(X))
    b = Nystroem(RBF(1.5), 25, landmarks="pivoted").fit(X)
    new = X[:9] + 0.1
    np.testing.assert_allclose(a.transform(RBF(1.5)(new, X)), b.transform(new), atol=1e-8)
    with pytest.raises(ParameterError, match="has none"):
        Nystroem("precomputed", 5, landmarks="kmeans").fit(RBF(1.5)(X))


def test_sparse_rows_and_column_names_give_the_same(X):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    k = RBF(1.0).on("a", "c") + Linear().on("b")
    named = Nystroem(k, 10, landmarks="pivoted").fit(frame)
    plain = Nystroem(RBF(1.0).on(0, 2) + Linear().on(1), 10, landmarks="pivoted").fit(X)
    np.testing.assert_allclose(named.transform(frame), plain.transform(X), atol=1e-12)
    S = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    for way in WAYS:
        a = Nystroem(RBF(1.0), 10, landmarks=way, random_state=0).fit(S)
        b = Nystroem(RBF(1.0), 10, landmarks=way, random_state=0).fit(S.toarray())
        assert a.residual_trace_ == pytest.approx(b.residual_trace_, rel=1e-6)
        np.testing.assert_allclose(a.transform(X), a.transform(sparse.csr_array(X)), atol=1e-10)


def test_rows_without_weight_are_never_landmarks(X):
    w = np.ones(len(X))
    w[::2] = 0
    for way in ("uniform", "leverage", "pivoted"):
        model, phi = approximate(
            Nystroem(n_components=30, landmarks=way, random_state=0), RBF(1.0), Rows(X), weight=w
        )
        assert phi.shape[0] == 120
        assert np.all(w[model.landmark_indices_] > 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_components": 0},
        {"n_components": True},
        {"tolerance": 1.0},
        {"tolerance": -0.1},
        {"landmarks": "best"},
        {"landmarks": np.ones((3, 2))},
        {"landmarks": [200]},
        {"alpha": 0.0, "landmarks": "leverage"},
        {"kernel": 3},
        {"memory": "lots", "landmarks": "pivoted"},
    ],
)
def test_bad_parameters_are_refused(X, bad):
    with pytest.raises(MercerError):
        Nystroem(**bad).fit(X)


def test_what_is_no_kernel_is_refused(X):
    with pytest.raises(InvalidKernelError, match="lowest eigenvalue"):
        Nystroem(mercer.Sigmoid(1.0, offset=-1.0), 30, random_state=0).fit(X)
    with pytest.raises(InvalidKernelError):
        basis(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert basis(np.zeros((3, 3))).rank == 0


def test_one_row_and_constant_rows():
    one = Nystroem(RBF(1.0)).fit([[1.0, 2.0]])
    assert one.transform([[1.0, 2.0]]).tolist() == [[1.0]]
    same = Nystroem(RBF(1.0), landmarks="kmeans").fit(np.ones((20, 2)))
    assert same.basis_.rank == 1 and same.residual_trace_ < 1e-12
    far = np.array([[1e8], [1e8 + 1], [1e8 + 2]])
    np.testing.assert_allclose(
        Nystroem(RBF(1.0)).fit(far).operator(far).dense(), RBF(1.0)([[0.0], [1.0], [2.0]]), atol=1e-12
    )


# ── machines ────────────────────────────────────────────────────────────────────────────────────────────────

FULL = Nystroem(n_components=10_000, landmarks="pivoted")


@pytest.fixture(scope="module")
def moons():
    return make_moons(80, noise=0.2, random_state=0)


@pytest.mark.parametrize("machine", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_machine_with_full_rank_is_the_machine_itself(moons, machine):
    X, y = moons
    exact = machine("RBF(0.7)").fit(X, y)
    model = machine("RBF(0.7)", approximation=FULL).fit(X, y)
    name = "predict" if machine in (SVR, NuSVR) else "decision_function"
    new = X + 0.03
    np.testing.assert_allclose(getattr(model, name)(new), getattr(exact, name)(new), atol=1e-7)
    assert "Nyström features, which leave out" in str(model.certificate_)
    found = verify(model, X, y)
    assert found, str(found)
    assert isinstance(model.again_on(X).gram(), LowRank)


def test_a_machine_solves_the_approximate_problem(moons):
    X, y = moons
    model = SVC("RBF(0.7)", C=3.0, approximation=Nystroem(n_components=8, landmarks="pivoted")).fit(X, y)
    P = model.approximation_.transform(X)
    peer = SVC("Linear()", C=3.0).fit(P, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(P), atol=1e-7)
    assert model.certificate_.primal == pytest.approx(peer.certificate_.primal)
    assert verify(model, X, y)
    model.dual_coef_[0, 0] *= 1.01
    assert not verify(model, X, y)


def test_weight_two_is_a_row_twice_with_an_approximation(moons):
    X, y = moons
    w = np.random.default_rng(0).integers(0, 3, size=len(y))
    again = np.repeat(np.arange(len(y)), w)
    some = Nystroem(landmarks=X[:20])
    a = SVC("RBF(0.7)", approximation=some).fit(X, y, sample_weight=w)
    b = SVC("RBF(0.7)", approximation=some).fit(X[again], y[again])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


def test_the_approximation_is_a_parameter_like_others(moons):
    X, y = moons
    model = SVC("RBF(0.7)", approximation=Nystroem(n_components=5, random_state=0))
    assert clone(model).get_params()["approximation__n_components"] == 5
    search = GridSearchCV(model, {"approximation__n_components": [2, 20]}, cv=2).fit(X, y)
    assert search.best_params_["approximation__n_components"] == 20
    assert model.approximation.n_components == 5 and not hasattr(model.approximation, "basis_")
    probable = SVC("RBF(0.7)", probability=True, approximation=FULL).fit(X, y)
    assert probable.predict_proba(X).shape == (80, 2)
    back = model.set_params(approximation=None).fit(X, y)
    assert not hasattr(back, "approximation_")


def test_a_machine_with_an_approximation_takes_a_precomputed_gram(moons):
    X, y = moons
    k = RBF(0.7)
    a = SVC("precomputed", approximation=FULL).fit(k(X), y)
    b = SVC(k).fit(X, y)
    np.testing.assert_allclose(a.decision_function(k(X[:9], X)), b.decision_function(X[:9]), atol=1e-7)


def test_a_machine_with_noise_in_its_kernel(moons):
    X, y = moons
    a = SVC("RBF(0.7) + White(0.5)", approximation=FULL).fit(X, y)
    b = SVC("RBF(0.7) + White(0.5)").fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-7)
    assert verify(a, X, y)


def test_more_rows_than_are_stored_are_solved_from_the_features(monkeypatch, moons):
    from mercer.solve import qp

    X, y = moons
    exact = SVC("RBF(0.7)", approximation=FULL, tol=1e-6).fit(X, y)
    monkeypatch.setattr(qp, "SMALL", 100)
    tiled = SVC("RBF(0.7)", approximation=FULL, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(tiled.decision_function(X), exact.decision_function(X), atol=1e-5)


def test_an_approximation_of_another_kernel_or_kind_is_refused(moons):
    X, y = moons
    with pytest.raises(ParameterError, match="takes that of the machine"):
        SVC("RBF(0.7)", approximation=Nystroem(RBF(2.0))).fit(X, y)
    SVC("RBF(0.7)", approximation=Nystroem(RBF(0.7))).fit(X, y)
    with pytest.raises(ParameterError, match="approximation must be"):
        SVC("RBF(0.7)", approximation=100).fit(X, y)


@pytest.mark.parametrize("shift", [1e-5, 1e-2, 10.0])
def test_a_low_rank_gram_is_solved_in_closed_form(X, shift):
    K = Nystroem(RBF(1.5), 20, random_state=0).fit(X).operator(X)
    B = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    found = mercer.solve.solve(K, B, shift, tol=1e-8)
    assert found.certificate.converged and "closed-form low-rank" in found.certificate.method
    assert found.certificate.iterations <= 3
    dense = np.linalg.solve(K.dense() + shift * np.eye(len(X)), B)
    np.testing.assert_allclose(found.value, dense, rtol=1e-5, atol=1e-7 * np.abs(dense).max())


# ── in forty digits ─────────────────────────────────────────────────────────────────────────────────────────


def precise(A):
    return mpmath.matrix(np.asarray(A).tolist())


def shorten(A):
    return np.array([[float(A[i, j]) for j in range(A.cols)] for i in range(A.rows)])


def nearly_exact(seed):
    """Rows, landmarks and a kernel whose Nyström features leave out little or nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 1 + seed % 2))
    if seed % 3 == 0:
        # all rows are landmarks; a duplicate among them
        X[-1] = X[0]
        return RBF(2.0), X, np.arange(12)
    if seed % 3 == 1:
        return mercer.Polynomial(2), X, np.arange(9)
    return RBF(1.0), X, rng.choice(12, size=6, replace=False)


@pytest.mark.parametrize("seed", range(9))
def test_the_trace_and_the_norm_left_out_are_those_of_forty_digits(seed):
    kernel, X, rows = nearly_exact(seed)
    model = Nystroem(kernel, landmarks=rows).fit(X)
    with mpmath.workdps(50):
        P = precise(model.transform(X))
        left = precise(kernel(X)) - P * P.T
        trace = float(sum(left[i, i] for i in range(left.rows)))
        norm = float(max(abs(v) for v in mpmath.eigsy((left + left.T) / 2, eigvals_only=True)))
    assert abs(model.residual_trace_ - max(trace, 0.0)) <= 1e-14 * np.trace(kernel(X))
    assert norm <= model.residual_trace_ + model.residual_rounding_
    assert model.residual_rounding_ < 1e-6 * np.trace(kernel(X))


@pytest.mark.parametrize("alpha", [1e-10, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(9))
def test_the_bound_on_predictions_is_above_the_truth_of_forty_digits(seed, alpha):
    kernel, X, rows = nearly_exact(seed)
    model = Nystroem(kernel, landmarks=rows).fit(X)
    y = np.random.default_rng(100 + seed).normal(size=len(X))
    new = np.linspace(-2.0, 2.0, 5)[:, None] * np.ones(X.shape[1])
    phi, at = model.transform(X), model.transform(new)
    with mpmath.workdps(60):
        K, P, ys = precise(kernel(X)), precise(phi), precise(y[:, None])
        ridge = alpha * mpmath.eye(len(X))
        c = mpmath.lu_solve(K + ridge, ys)
        w = P.T * mpmath.lu_solve(P * P.T + ridge, ys)
        moved = float(mpmath.norm(K * c - P * w))
        elsewhere = shorten(precise(kernel(new, X)) * c - precise(at) * w)[:, 0]
    bound = model.prediction_bound(y, alpha)
    assert 0 < moved <= bound.training <= np.linalg.norm(y)
    assert np.all(np.abs(elsewhere) <= bound.anywhere * np.sqrt(np.diag(kernel(new))))


@pytest.mark.parametrize("alpha", [1e-8, 1e-4])
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_for_the_worst_targets_where_every_row_is_a_landmark(seed, alpha):
    # nothing is left out then but rounding, whose trace is as often negative as positive
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 1 + seed % 3))
    kernel = [Matern(1.0), mercer.Polynomial(2), RBF(0.5), Linear()][seed % 4]
    model = Nystroem(kernel, landmarks=np.arange(8)).fit(X)
    with mpmath.workdps(50):
        K, P = precise(kernel(X)), precise(model.transform(X))
        ridge = alpha * mpmath.eye(8)
        change = K * mpmath.inverse(K + ridge) - P * P.T * mpmath.inverse(P * P.T + ridge)
        values, vectors = mpmath.eigsy((change + change.T) / 2)
        worst = max(range(8), key=lambda i: abs(values[i]))
        moved = float(abs(values[worst]))
        y = shorten(vectors)[:, worst]
    assert 0 < moved <= model.prediction_bound(y, alpha).training


def test_a_part_of_an_operator_is_one():
    from mercer.machines.landmarks.selection import _Part

    rng = np.random.default_rng(0)
    K = mercer.RBF(1.0).gram(rng.normal(size=(9, 2)))
    rows = np.array([7, 1, 4])
    part, want = _Part(K, rows), K.dense()[np.ix_(rows, rows)]
    V = rng.normal(size=(3, 2))
    np.testing.assert_allclose(part @ V, want @ V, atol=1e-14)
    np.testing.assert_allclose(part.shifted(0.5) @ V[:, 0], (want + 0.5 * np.eye(3)) @ V[:, 0], atol=1e-14)
    np.testing.assert_array_equal(part.dense(), want)
    np.testing.assert_array_equal(part.diag(), want.diagonal())
    np.testing.assert_array_equal(part.block([0, 2], [1]), want[[0, 2]][:, [1]])
