"""Leaving rows out, and adding one, from one factorisation: against refits without, or with, the row."""

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import (
    ConformalRegressor,
    GaussianProcessRegressor,
    KernelRidge,
    KernelRidgeCV,
    RandomFeatures,
)
from mercer.conformal.union import union
from mercer.errors import InputError, ParameterError
from mercer.quantiles import rank
from mercer.solve.left_out import Lines

rng = np.random.default_rng(3)
N = 22
X = rng.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N) + 5.0
NEW = rng.normal(size=(5, 3))
W = rng.uniform(0.5, 2.0, N)
NOISY = "RBF(1.5) + White(0.1)"


def process(**options):
    return GaussianProcessRegressor(NOISY, optimizer=None, **options)


MODELS = {
    "ridge": (KernelRidge("RBF(1.5)", alpha=0.3), None),
    "ridge, intercept": (KernelRidge("RBF(1.5)", alpha=0.3, fit_intercept=True), None),
    "ridge, intercept, weights": (KernelRidge("RBF(1.5)", alpha=0.3, fit_intercept=True), W),
    "ridge, white noise, weights": (KernelRidge(NOISY, alpha=0.2, fit_intercept=True), W),
    "ridge, conjugate gradients": (KernelRidge("RBF(1.5)", alpha=0.3, solver="cg", random_state=0), None),
    "ridge, no penalty": (KernelRidge("RBF(0.7)", alpha=0.0), None),
    "linear": (KernelRidge("Linear()", alpha=0.3), None),
    "linear, intercept, weights": (KernelRidge("Linear()", alpha=0.3, fit_intercept=True), W),
    "least squares": (KernelRidge("Linear()", alpha=0.0, fit_intercept=True), None),
    "ridge of features": (
        KernelRidge(
            "RBF(1.5)",
            alpha=0.3,
            fit_intercept=True,
            approximation=RandomFeatures(n_components=9, random_state=0),
        ),
        W,
    ),
    "process": (process(normalize_y=False), None),
    "process about its mean": (process(normalize_y="mean"), None),
    "process in units of y": (process(normalize_y=True), None),
    "process with noise": (GaussianProcessRegressor("RBF(1.5)", noise=0.2, optimizer=None), None),
    "process of features": (
        process(normalize_y=True, approximation=RandomFeatures(n_components=9, random_state=0)),
        None,
    ),
}


def refitted(model, rows, y, weight):
    options = {} if weight is None else {"sample_weight": weight}
    return clone(model).fit(rows, y, **options)


@pytest.mark.parametrize("name", MODELS)
def test_predictions_without_each_row_are_those_of_refits(name):
    model, weight = MODELS[name]
    wrapped = ConformalRegressor(model, method="jackknife+", level=0.8).fit(X, Y, weight)
    assert wrapped.closed_form_
    centre, _ = wrapped._centres(wrapped._new(NEW), np.arange(len(NEW)))
    alone = np.empty(N)
    for i in range(N):
        rest = np.arange(N) != i
        other = refitted(model, X[rest], Y[rest], None if weight is None else weight[rest])
        np.testing.assert_allclose(centre[:, i], other.predict(NEW), atol=2e-9)
        alone[i] = other.predict(X[i : i + 1])[0]
    np.testing.assert_allclose(wrapped.left_out_, alone, atol=2e-9)
    np.testing.assert_allclose(wrapped.scores_, np.abs(Y - alone), atol=2e-9)


@pytest.mark.parametrize("name", ["process", "process about its mean", "process in units of y"])
def test_deviations_without_each_row_are_those_of_refits(name):
    model, _ = MODELS[name]
    wrapped = ConformalRegressor(model, method="jackknife+", normalize=True).fit(X, Y)
    _, spread = wrapped._centres(wrapped._new(NEW), np.arange(len(NEW)))
    for i in range(0, N, 5):
        rest = np.arange(N) != i
        other = refitted(model, X[rest], Y[rest], None)
        mean, own = other.predict(X[i : i + 1], return_std=True, noise=True)
        _, std = other.predict(NEW, return_std=True, noise=True)
        # the scale of the other targets is in both, and cancels
        reach = np.abs(Y[i] - mean) / own * std
        np.testing.assert_allclose(wrapped.scores_[i] * spread[:, i], reach, rtol=1e-9)


def errors_with(model, weight, row, target, kind):
    """All errors of the fit with one more row, by a refit."""
    rows, y = np.vstack([X, NEW[row]]), np.append(Y, target)
    other = refitted(model, rows, y, None if weight is None else np.append(weight, 1.0))
    if kind == "fit":
        return y - other.predict(rows)
    alone = other.loo() if isinstance(other, GaussianProcessRegressor) else other.loo_predictions_
    return y - alone


@pytest.mark.parametrize("kind", ["fit", "deleted"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "ridge, no penalty"])
def test_full_conformal_keeps_the_targets_that_refits_on_a_grid_keep(name, kind):
    model, weight = MODELS[name]
    wrapped = ConformalRegressor(model, method="full", residual=kind, level=0.7).fit(X, Y, weight)
    unions = wrapped.predict_union(NEW[:2])
    for row, found in enumerate(unions):
        for target in np.linspace(1.0, 9.0, 13):
            scores = np.abs(errors_with(model, weight, row, target, kind))
            kept = 1 + np.sum(scores[:-1] >= scores[-1]) > 0.3 * (N + 1) + 1e-9
            inside = bool(np.any((found[:, 0] <= target) & (target <= found[:, 1])))
            if np.abs(found - target).min() > 1e-6:
                assert inside == kept, (row, target)


def test_a_union_may_have_holes_and_its_hull_is_the_interval():
    # |t| ≥ 2 of one row and |t - 4| ≤ 1 of another: two of three must hold with the third everywhere
    lines = Lines(np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.0, 3.0]), 0.0, 1.0, 0.0)
    found = union(lines, 0.5)
    for t in np.linspace(-5, 5, 401):
        count = np.sum(np.abs(lines.a + lines.b * t) >= abs(t))
        assert bool(np.any((found[:, 0] <= t) & (t <= found[:, 1]))) == (count >= 2)
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(300):
        n = int(rng.integers(1, 7))
        lines = Lines(
            rng.integers(-2, 3, n) / 1.0, rng.integers(-2, 3, n) / 2.0, *rng.integers(-2, 3, 2) / 2.0, 0.0
        )
        level = float(rng.choice([0.2, 0.5, 0.8]))
        found = union(lines, level)
        several += len(found) > 1
        need = n + 1 - int(np.ceil(round((n + 1) * level, 9)))
        for t in np.linspace(-7, 7, 113):
            count = np.sum(np.abs(lines.a + lines.b * t) >= np.abs(lines.p + lines.q * t) - 1e-12)
            inside = bool(np.any((found[:, 0] - 1e-12 <= t) & (t <= found[:, 1] + 1e-12)))
            assert inside == (count >= need)
    assert several > 5


@pytest.mark.parametrize("name", ["ridge", "ridge, intercept", "linear, intercept, weights", "process"])
def test_normalised_jackknife_holds_the_normalised_full_set(name):
    model, weight = MODELS[name]
    options = {"level": 0.8, "normalize": True}
    jackknife = ConformalRegressor(model, method="jackknife+", **options).fit(X, Y, weight)
    full = ConformalRegressor(model, method="full", **options).fit(X, Y, weight)
    centre, spread = jackknife._centres(jackknife._new(NEW), np.arange(len(NEW)))
    low, high = jackknife.predict_interval(NEW)
    need = N + 1 - rank(N, 0.8)
    for row, found in enumerate(full.predict_union(NEW)):
        assert low[row] <= found[0, 0] + 1e-9 and found[-1, 1] <= high[row] + 1e-9
        for target in np.linspace(2.0, 8.0, 61):
            near = np.abs(target - centre[row]) <= jackknife.scores_ * spread[row]
            inside = bool(np.any((found[:, 0] <= target) & (target <= found[:, 1])))
            if np.abs(found - target).min() > 1e-6:
                assert inside == (near.sum() >= need)
    assert jackknife.guarantee_.at_least == 0.8 and full.guarantee_.at_least == 0.8


def test_ridge_cv_is_left_out_at_the_alpha_that_all_rows_chose():
    model = ConformalRegressor(KernelRidgeCV("RBF(1.5)", alphas=(0.01, 0.1, 1.0))).fit(X, Y)
    again = ConformalRegressor(KernelRidge("RBF(1.5)", alpha=model.estimator_.alpha_)).fit(X, Y)
    for mine, other in zip(model.predict_interval(NEW), again.predict_interval(NEW), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)
    assert not model.guarantee_.strict and "hyperparameters" in str(model.guarantee_)
    assert again.guarantee_.strict


def test_what_cannot_be_left_out_in_closed_form_is_refused_with_a_sentence():
    with pytest.raises(InputError, match="units of y"):
        ConformalRegressor(
            GaussianProcessRegressor("RBF(1.5)", noise=0.1, normalize_y=True, optimizer=None)
        ).fit(X, Y)
    with pytest.raises(InputError, match="cholesky"):
        ConformalRegressor(process(solver="cg")).fit(X, Y)
    with pytest.raises(InputError, match="one"):
        ConformalRegressor(KernelRidge()).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ParameterError, match="linear in the targets"):
        ConformalRegressor(mercer.SVR(), method="full").fit(X, Y)


def test_a_precomputed_kernel_has_jackknife_and_says_what_it_lacks():
    K = mercer.RBF(1.5)(X)
    block = mercer.RBF(1.5)(NEW, X)
    for precomputed, direct in (
        (KernelRidge("precomputed", alpha=0.3), KernelRidge("RBF(1.5)", alpha=0.3)),
        (
            GaussianProcessRegressor("precomputed", noise=0.3),
            GaussianProcessRegressor("RBF(1.5)", noise=0.3, optimizer=None),
        ),
    ):
        for method in ("jackknife+", "split", "cv+"):
            mine = (
                ConformalRegressor(precomputed, method=method, level=0.8, folds=4)
                .fit(K, Y)
                .predict_interval(block)
            )
            other = (
                ConformalRegressor(direct, method=method, level=0.8, folds=4).fit(X, Y).predict_interval(NEW)
            )
            np.testing.assert_allclose(mine, other, rtol=1e-9)
        model = ConformalRegressor(precomputed, method="full").fit(K, Y)
        with pytest.raises(InputError, match="does not hold k"):
            model.predict_interval(block)
