"""Falkon with several classes at once, and the penalty that the data ask for."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import RBF, FalkonClassifier, FalkonRegressor
from mercer.errors import Interrupted
from mercer.machines.landmarks import falkon, falkon_blocks, falkon_fit, streamed
from mercer.machines.landmarks.penalty import NEAR, cross_validated

RNG = np.random.default_rng(0)
CENTRES = 2.5 * RNG.normal(size=(5, 3))
LABELS = RNG.integers(0, 5, size=240)
X = CENTRES[LABELS] + RNG.normal(size=(240, 3))
W = RNG.integers(1, 4, size=240).astype(float)
Z = X[:40]
K = RBF(1.5)


def fitted(solver="auto", **settings):
    made = FalkonClassifier(K, alpha=0.1, landmarks=Z, solver=solver, tol=1e-8).set_params(**settings)
    return made.fit(X, LABELS, sample_weight=W)


@pytest.mark.parametrize("kernel", [K, "RBF(1.5) + White(0.3)"])
@pytest.mark.parametrize("solver", ["auto", "cg"])
def test_all_classes_at_once_are_one_class_after_the_other(solver, kernel):
    """The referee solves two-class problems one by one, with a factor of each Hessian."""
    together = fitted(solver, kernel=kernel)
    apart = fitted("direct", kernel=kernel)
    assert "all classes at once" in together.certificate_.method
    assert "Cholesky" in apart.certificate_.method
    np.testing.assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-6)
    assert together.certificate_.primal == pytest.approx(apart.certificate_.primal, rel=1e-10)
    assert together.certificate_.converged and together.certificate_.gap < 1e-9
    assert mercer.verify(together, X, LABELS, sample_weight=W)
    for label in range(5):
        one = FalkonClassifier(K, alpha=0.1, landmarks=Z, tol=1e-8)
        if isinstance(kernel, str):
            one.set_params(kernel=kernel)
        one.fit(X, label == LABELS, sample_weight=W)
        np.testing.assert_allclose(
            together.decision_function(X)[:, label], one.decision_function(X), atol=1e-6
        )


@pytest.mark.parametrize("memory", [1, 4 * 240 * 40, 12 * 240 * 40, "2GiB"])
def test_what_is_kept_in_memory_changes_no_answer(memory):
    """Nothing; directions in float32; those and k(x, Z)."""
    given = fitted(memory=memory)
    np.testing.assert_allclose(given.decision_function(X), fitted("direct").decision_function(X), atol=1e-6)
    assert given.certificate_.converged


@pytest.mark.parametrize("memory", [1, "2GiB"])
@pytest.mark.parametrize("kernel", [K, "RBF(1.5) + White(0.3)"])
def test_two_classes_of_many_rows_are_those_of_few(monkeypatch, kernel, memory):
    """By features that serve all steps, or, below `SUMMED_ENTRIES`, by sums for every step."""
    t = LABELS < 2
    given = {"alpha": 0.1, "landmarks": Z, "tol": 1e-8, "memory": memory}
    summed = FalkonClassifier(kernel, **given).fit(X, t, sample_weight=W)
    monkeypatch.setattr(falkon, "SUMMED_ENTRIES", 240 * 40 - 1)
    shared = FalkonClassifier(kernel, **given).fit(X, t, sample_weight=W)
    assert "sums of products" in summed.certificate_.method
    assert "at once" in shared.certificate_.method
    np.testing.assert_allclose(shared.decision_function(X), summed.decision_function(X), atol=1e-6)
    assert shared.certificate_.primal == pytest.approx(summed.certificate_.primal, rel=1e-10)
    assert mercer.verify(shared, X, t, sample_weight=W)


def test_groups_of_classes_give_the_same(monkeypatch):
    whole = fitted()
    monkeypatch.setattr(falkon_blocks, "GROUP_BYTES", 8 * falkon_blocks.ARRAYS * 240 * 2)
    parts = fitted()
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-7)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-10)


def test_kernels_are_evaluated_once_where_they_fit_in_memory(monkeypatch):
    rows = []
    dense = mercer.gram.Tiles.dense

    def counted(self):
        rows.append(self.shape)
        return dense(self)

    monkeypatch.setattr(mercer.gram.Tiles, "dense", counted)
    fitted()
    assert sum(shape == (240, 40) for shape in rows) == 1
    rows.clear()
    fitted(memory=1)
    assert sum(shape == (240, 40) for shape in rows) > 10


def test_a_pass_serves_all_classes():
    model = fitted()
    one = FalkonClassifier(K, alpha=0.1, landmarks=Z, tol=1e-8, solver="cg")
    alone = [one.fit(X, label == LABELS, sample_weight=W).n_iter_ for label in range(5)]
    assert model.n_iter_ < sum(alone) / 2


def test_limits_and_the_keyboard_keep_what_was_reached(monkeypatch):
    with pytest.warns(Warning, match="max_iter"):
        early = fitted(max_iter=2)
    assert early.certificate_.status == "limit" and early.certificate_.residual > 1e-8
    assert mercer.verify(early, X, LABELS, sample_weight=W)
    calls = []
    original = streamed.Rounded.product

    def stop(self, P, S):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(self, P, S)

    monkeypatch.setattr(streamed.Rounded, "product", stop)
    model = FalkonClassifier(K, alpha=0.1, landmarks=Z, tol=1e-8)
    with pytest.raises(Interrupted):
        model.fit(X, LABELS)
    assert model.certificate_.status == "interrupted" and model.score(X, LABELS) > 0.8


# ── the penalty ─────────────────────────────────────────────────────────────────────────────────────────────


def naive_error(phi, Y, w, alpha):
    """n rss / (n - df)² from the hat matrix."""
    n = w.sum()
    hat = phi @ np.linalg.solve(phi.T @ (w[:, None] * phi) + alpha * np.eye(phi.shape[1]), phi.T * w)
    rss = (w[:, None] * (Y - hat @ Y) ** 2).sum()
    return rss / (n * Y.shape[1]) / (1 - np.trace(hat) / n) ** 2


def features(Z, X):
    return np.linalg.solve(np.linalg.cholesky(K(Z)), K(Z, X)).T


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_penalty_is_the_one_of_the_hat_matrix(noise):
    phi = features(Z, X)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + RNG.normal(size=240)])
    values, Q = np.linalg.eigh(phi.T @ (W[:, None] * phi))
    b = Q.T @ (phi.T @ (W[:, None] * Y))
    found = cross_validated(values, b, float((W[:, None] * Y**2).sum()), float(W.sum()), noise)
    grid = values[-1] * 10.0 ** (-np.arange(41) / 4)
    errors = np.array([naive_error(phi, Y, W, alpha + noise) for alpha in grid])
    assert found.alpha == pytest.approx(grid[np.argmax(errors <= (1 + NEAR) * errors.min())])
    assert found.error == pytest.approx(naive_error(phi, Y, W, found.alpha + noise), rel=1e-8)


def test_the_error_is_about_that_of_leaving_each_row_out():
    """The generalised one is the one of every row, where leverages are equal: rows on a circle."""
    angle = 2 * np.pi * np.arange(60) / 60
    phi = np.column_stack([np.cos(k * angle) for k in range(1, 4)] + [np.sin(k * angle) for k in range(1, 4)])
    y = np.cos(angle) + 0.3 * np.random.default_rng(1).normal(size=60)
    values, Q = np.linalg.eigh(phi.T @ phi)
    found = cross_validated(values, Q.T @ (phi.T @ y)[:, None], float(y @ y), 60.0)
    left = []
    for i in range(60):
        others = np.arange(60) != i
        P = phi[others]
        w = np.linalg.solve(P.T @ P + found.alpha * np.eye(6), P.T @ y[others])
        left.append((y[i] - phi[i] @ w) ** 2)
    assert found.error == pytest.approx(np.mean(left), rel=1e-3)


def test_much_noise_asks_for_a_larger_penalty():
    clean = np.sin(X[:, 0])
    little = FalkonRegressor(K, landmarks=Z).fit(X, clean + 0.01 * RNG.normal(size=240))
    much = FalkonRegressor(K, landmarks=Z).fit(X, clean + 1.0 * RNG.normal(size=240))
    assert much.alpha_ > 10 * little.alpha_
    assert "generalised cross-validation" in str(much.certificate_)


@pytest.mark.parametrize("solver", ["auto", "cg"])
@pytest.mark.parametrize(
    "model, y",
    [
        (FalkonRegressor(K, 60, random_state=0), np.sin(X[:, 0]) + 0.1 * RNG.normal(size=240)),
        (FalkonRegressor("RBF(1.5) + White(0.1)", 60, random_state=0), np.sin(X[:, 0])),
        (FalkonClassifier(K, 60, random_state=0), LABELS),
        (FalkonClassifier(K, 60, random_state=0), LABELS == 0),
        (FalkonClassifier(K, 60, loss="squared", random_state=0), LABELS),
    ],
)
def test_a_chosen_penalty_is_verified_and_is_that_of_a_fit_with_it(model, y, solver):
    chosen = model.set_params(alpha=None, solver=solver).fit(X, y, sample_weight=W)
    values = chosen._values(X)
    assert mercer.verify(chosen, X, y, sample_weight=W)
    alpha = chosen.alpha_
    given = model.set_params(alpha=alpha).fit(X, y, sample_weight=W)
    assert given.alpha_ == alpha
    np.testing.assert_allclose(given._values(X), values, atol=2e-3 * np.abs(values).max())


def test_a_wrong_penalty_is_not_verified():
    model = FalkonClassifier(K, 60, random_state=0).fit(X, LABELS)
    other = FalkonClassifier(K, 60, 2 * model.alpha_, random_state=0).fit(X, LABELS).set_params(alpha=None)
    assert not mercer.verify(other, X, LABELS)


def test_a_row_of_weight_two_is_two_rows():
    y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=240)
    again = np.repeat(np.arange(240), W.astype(int))
    weighted = FalkonRegressor(K, landmarks=Z).fit(X, y, sample_weight=W)
    repeated = FalkonRegressor(K, landmarks=Z).fit(X[again], y[again])
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-9)


def test_many_landmarks_choose_by_the_first_of_them(monkeypatch):
    monkeypatch.setattr(falkon_fit, "DIRECT_LANDMARKS", 50)
    monkeypatch.setattr(falkon_fit, "FEWER_LANDMARKS", 30)
    for name in ("DIRECT_LANDMARKS", "FEWER_LANDMARKS"):
        monkeypatch.setattr(f"mercer.machines.landmarks.examine.{name}", getattr(falkon_fit, name))
    y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=240)
    model = FalkonRegressor(K, 60, random_state=0).fit(X, y)
    first = FalkonRegressor(K, landmarks=model.landmarks_[:30]).fit(X, y)
    assert model.alpha_ == pytest.approx(first.alpha_, rel=1e-6)
    assert "on 30 of the landmarks" in str(model.certificate_) and mercer.verify(model, X, y)


def test_targets_that_are_zero_or_rows_that_are_all_landmarks_have_a_penalty():
    assert FalkonRegressor(K, landmarks=Z).fit(X, np.zeros(240)).alpha_ > 0
    every = FalkonRegressor(K, 240, random_state=0).fit(X, np.sin(X[:, 0]))
    assert every.alpha_ > 0 and every.certificate_.converged


@pytest.mark.parametrize("memory", ["0MiB", "1GiB"])
@pytest.mark.parametrize("rows", [100, 5000])
def test_stripes_of_rows_in_threads_change_no_bit(rows, memory, monkeypatch):
    monkeypatch.setattr(streamed, "STRIPE", 64)
    rng = np.random.default_rng(rows)
    labels = rng.integers(0, 5, size=rows)
    A = CENTRES[labels] + rng.normal(size=(rows, 3))
    models = [
        FalkonClassifier(K, alpha=0.1, landmarks=Z, memory=memory, n_jobs=jobs).fit(A, labels)
        for jobs in (1, 2, 3)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.decision_function(A), models[0].decision_function(A))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 5000])
def test_stripes_are_all_rows_once_and_no_more_than_there_are_sums(n, monkeypatch):
    monkeypatch.setattr(streamed, "STRIPE", 64)
    parts = streamed.stripes(n)
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    assert len(parts) <= streamed.STRIPES
