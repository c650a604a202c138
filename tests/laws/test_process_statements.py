"""What a Gaussian process states of its own fit is true: its residual, what it added to the diagonal,
and what that moves.

The referees are residuals in extended precision, LAPACK's factorisation of the matrix that is stated, and the
process on rows without their doubles.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.linalg import lapack

from mercer import RBF, GaussianProcessRegressor, Matern, Polynomial, White
from mercer.errors import NotPositiveDefiniteError, PrecisionWarning

EPS = np.finfo(float).eps
FLOOR = 1e-10  # of the prior variance, as the documentation says


def factorises(A):
    return lapack.dpotrf(A, lower=1)[1] == 0


def quietly(act):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act()


# ── the residual ────────────────────────────────────────────────────────────────────────────────────────────


def true_residuals(K, noise, alpha, Y):
    """‖Y - (K + N)α‖ / ‖Y‖ of each target in extended precision, and what float64 may lose of it."""
    A = K + np.diag(np.broadcast_to(noise, len(K)))
    wide = np.longdouble
    R = Y.astype(wide) - A.astype(wide) @ alpha.astype(wide)
    size = np.linalg.norm(Y, axis=0)
    rounding = EPS * (np.linalg.norm(np.abs(A) @ np.abs(alpha) + np.abs(Y), axis=0) / size)
    return np.linalg.norm(R.astype(float), axis=0) / size, (len(K) + 4) * rounding


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_residual_that_is_stated_is_the_true_one(seed, normalize_y, solver):
    rng = np.random.default_rng(seed)
    n, targets = int(rng.integers(8, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, 2))
    Y = 3.0 + rng.normal(size=(n, targets))
    white = float(10 ** rng.uniform(-8, 0))
    noise = rng.uniform(0, 0.2, size=n) if seed % 2 and not normalize_y else None
    kernel = [RBF(2.0), Matern(1.0, nu=1.5), Polynomial(2)][seed % 3] + White(white)
    tol = float(10 ** rng.uniform(-12, -3))
    model = GaussianProcessRegressor(
        kernel, noise=noise, solver=solver, normalize_y=normalize_y, tol=tol, optimizer=None, random_state=0
    )
    quietly(lambda: model.fit(X, Y))
    alpha, T = model.alpha_.reshape(n, -1), model.y_fit_.reshape(n, -1)
    np.testing.assert_allclose(T * model.y_scale_ + model.y_mean_, Y, rtol=1e-12)
    true, rounding = true_residuals(model.kernel_(X), model.noise_, alpha, T)
    said = model.certificate_
    assert np.all(np.abs(np.array(said.residuals) - true) <= rounding)
    assert said.residual == max(said.residuals)
    assert said.added_diagonal == 0.0
    if said.converged:
        assert true.max() <= 10 * tol + rounding.max()
    else:
        assert true.max() > tol - rounding.max()


# ── what is added ───────────────────────────────────────────────────────────────────────────────────────────


def with_doubles(seed):
    """Rows of which some come twice, with targets that may differ,
    and which row of the distinct ones each is.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    distinct = np.arange(n)[:, None] + rng.uniform(-0.2, 0.2, size=(n, 1))
    which = np.concatenate([np.arange(n), rng.integers(0, n, size=int(rng.integers(1, 4)))])
    return distinct, which, rng.normal(size=len(which)) * 10 ** rng.uniform(-3, 3)


def added_to(model, X, y):
    """What is stated to be added, and by how much at most that moves the mean, as read from the warning."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PrecisionWarning)
        model.fit(X, y)
    (text,) = [str(w.message) for w in said if "was added to the diagonal" in str(w.message)]
    assert text in model.certificate_.notes
    amount, moved = re.search(r"([\d.e+-]+) was added.* by at most ([\d.e+-]+)\.$", text).groups()
    added = model.certificate_.added_diagonal
    assert float(amount) == pytest.approx(added, rel=5e-3)
    return added, float(moved)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_added_is_stated_and_moves_the_mean_by_no_more_than_said(seed, normalize_y):
    distinct, which, y = with_doubles(seed)
    X = distinct[which]
    height = 10.0 ** ((seed % 4) - 2)
    k = height * RBF(0.5)
    model = GaussianProcessRegressor(k, singular="add", normalize_y=normalize_y, optimizer=None)
    added, moved = added_to(model, X, y)
    assert not factorises(k(X))
    assert factorises(k(X) + added * np.eye(len(X)))
    assert added == pytest.approx(FLOOR * height) and model.noise_ == added

    means = np.array([y[which == i].mean() for i in range(len(distinct))])
    without = means[which]  # the mean at the rows when nothing is added: targets of equal rows are averaged
    assert np.abs(model.predict(X) - without).max() <= moved * 1.005 + 1e-9 * np.abs(y).max()

    by_hand = GaussianProcessRegressor(
        k, noise=added * model.y_scale_[0] ** 2, normalize_y=normalize_y, optimizer=None
    )
    quietly(lambda: by_hand.fit(X, y))
    for a, b in zip(model.predict(X, return_std=True), by_hand.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7 * np.abs(y).max())


@pytest.mark.parametrize("seed", range(8))
def test_no_more_is_added_to_an_indefinite_matrix_than_four_times_what_it_needs(seed):
    """Far above rounding the least that does is the most negative eigenvalue:
    a quarter of what is added is below it.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 20))
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = 10 ** rng.uniform(-2, 1, size=n)
    values[0] = -(10 ** rng.uniform(-6, 0))
    K = (Q * values) @ Q.T
    K = 0.5 * (K + K.T)
    y = rng.normal(size=n)
    noise = np.abs(values[0]) * rng.uniform(0, 0.5)
    model = GaussianProcessRegressor("precomputed", noise=noise, singular="add")
    added = quietly(lambda: model.fit(K, y)).certificate_.added_diagonal
    assert model.noise_ == pytest.approx(noise + added, rel=1e-12)
    assert factorises(K + (noise + added) * np.eye(n))
    assert not factorises(K + (noise + 0.25 * added) * np.eye(n))
    np.testing.assert_allclose((K + (noise + added) * np.eye(n)) @ model.alpha_, y, atol=1e-8)
    with pytest.raises(NotPositiveDefiniteError):
        quietly(lambda: GaussianProcessRegressor("precomputed", noise=noise).fit(K, y))


def test_what_was_too_little_is_added_again_until_it_is_enough(monkeypatch):
    """The diagnosis of a large matrix is an estimate; one that is far too low must not end in a refusal."""
    from mercer.solve import diagnosis

    monkeypatch.setattr(diagnosis, "_sufficient_diagonal", lambda *matrix: 1e-7)
    K = np.diag([1.0, -1e-3, 2.0])
    model = GaussianProcessRegressor("precomputed", singular="add")
    added = quietly(lambda: model.fit(K, [1.0, 1.0, 1.0])).certificate_.added_diagonal
    assert model.noise_ == added and 1e-3 < added < 4e-3
    np.testing.assert_allclose(model.alpha_, 1.0 / (K.diagonal() + added))
