"""Multipliers, slacks, C - α and essential support vectors,
each against a referee written from the formula.
"""

import numpy as np
import pytest
from scipy.optimize import linprog

from mercer import SVC, SVR, Adatron, KernelMachine, KernelPerceptron, KernelRidge, NuSVC
from mercer.errors import ParameterError
from mercer.theory import duality, essential


def cloud(seed, n=24, d=2, noise=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)
    y[:2] = [0, 1]
    return X, y


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_slacks_are_hinge_losses_and_multipliers_keep_their_laws(seed, C):
    X, y = cloud(seed)
    model = SVC("RBF(1.0)", C, tol=1e-8).fit(X, y)
    found = duality(model, X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    hinge = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    np.testing.assert_allclose(found.xi, hinge, atol=1e-7)
    np.testing.assert_array_equal(found.slack, found.xi)
    np.testing.assert_allclose(found.alpha + found.beta, C, rtol=1e-12)
    assert (found.alpha >= 0).all() and (found.beta >= 0).all()
    assert abs(signs @ found.alpha) < 1e-8 * C * len(y)
    assert found.worst < 1e-6 * max(1.0, C)
    first = found.problems[0]
    assert set(first.on_margin) | set(first.at_bound) == set(first.support) == set(model.support_)
    # a row on the margin has y f = 1; only rows at the bound have a slack
    assert np.abs(signs * model.decision_function(X) - 1)[first.on_margin].max(initial=0.0) < 1e-6
    assert set(np.flatnonzero(hinge > 1e-6)) <= set(first.at_bound)
    assert first.norm == pytest.approx(model.norms_[0], rel=1e-8)


def test_the_gap_is_the_sum_of_the_products():
    X, y = cloud(3)
    model = SVC("RBF(1.0)", 5.0, max_iter=4)
    with pytest.warns(UserWarning, match="stopped before"):
        model.fit(X, y)
    each = duality(model, X, y).problems[0]
    assert each.alpha_product.sum() + each.beta_product.sum() == pytest.approx(
        model.certificate_.gap, rel=1e-9
    )
    assert each.worst > 1e-3  # a fit that stopped early shows it


@pytest.mark.parametrize(
    "model",
    [
        SVR("RBF(1.0)", C=2.0, tol=1e-8),
        NuSVC("RBF(1.0)", 0.4, tol=1e-8),
        Adatron("RBF(1.0)", C=1.0, tol=1e-7),
    ],
)
def test_other_margin_machines_have_them_too(model):
    X, y = cloud(1)
    model.fit(X, y)
    found = duality(model, X, y)
    assert found.worst < 1e-5 and (found.beta >= 0).all()
    assert set(found.problems[0].support) == set(model.support_)


def test_slacks_of_support_vector_regression_are_what_sticks_out_of_the_tube():
    X, y = cloud(4)
    model = SVR("RBF(1.0)", C=0.5, epsilon=0.2, tol=1e-8).fit(X, y)
    each = duality(model, X, y).problems[0]
    residual = y[each.rows] - model.predict(X)[each.rows]
    np.testing.assert_allclose(each.xi, np.maximum(0, each.signs * residual - 0.2), atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_smooth_losses_have_alpha_as_minus_their_slope(loss):
    X, y = cloud(2)
    found = duality(KernelMachine("RBF(1.0)", loss, 0.5).fit(X, y), X, y)
    assert found.worst < 1e-6


def test_the_multiplier_of_a_ridge_is_its_residual():
    X, y = cloud(2)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = KernelRidge("RBF(1.0)", alpha=0.3).fit(X, y, sample_weight=w)
    found = duality(model, X, y, sample_weight=w)
    np.testing.assert_allclose(found.xi, y - model.predict(X), atol=1e-10)
    np.testing.assert_allclose(found.alpha, w * found.xi, atol=1e-10)


def test_a_perceptron_has_no_multipliers_and_says_so():
    X, y = cloud(0)
    with pytest.raises(ParameterError, match="count mistakes"):
        duality(KernelPerceptron("RBF(1.0)").fit(X, y), X, y)
    with pytest.raises(ParameterError, match="smooth loss"):
        essential(KernelRidge("RBF(1.0)").fit(X, y), X, y)


# ── essential support vectors ───────────────────────────────────────────────────────────────────────────────


def every_solution(X, y, C, model):
    """The least and the largest α of each row over {α : Φᵀ(yα) = w, Σ yα = 0, 0 ≤ α ≤ C,
    Σα = the optimum}.
    """
    signs = np.where(y == 1, 1.0, -1.0)
    w = model.dual_coef_[0] @ X[model.support_]
    total = np.abs(model.dual_coef_[0]).sum()
    A = np.vstack([(signs[:, None] * X).T, signs, np.ones(len(y))])
    b = np.concatenate([w, [0.0, total]])
    ends = []
    for i in range(len(y)):
        cost = np.eye(len(y))[i]
        low, high = (
            linprog(s * cost, A_eq=A, b_eq=b, bounds=(0, None if np.isinf(C) else C)) for s in (1.0, -1.0)
        )
        assert low.status == high.status == 0
        ends.append((low.fun, -high.fun))
    return np.array(ends)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [np.inf, 0.7])
def test_essential_support_vectors_are_those_of_every_solution(seed, C):
    rng = np.random.default_rng(seed)
    # a grid: many rows on the margin, several times each, so the multipliers are far from unique
    X = np.repeat(rng.integers(-1, 2, size=(6, 2)).astype(float), 2, axis=0)
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.3).astype(int)
    if len(np.unique(y)) < 2:
        return
    model = SVC("Linear()", C, tol=1e-10).fit(X, y)
    found = essential(model, X, y)[0]
    ends = every_solution(X, y, C, model)
    np.testing.assert_allclose(found.lowest, ends[:, 0], atol=1e-6)
    np.testing.assert_allclose(found.highest, ends[:, 1], atol=1e-6)
    assert found.essential.tolist() == np.flatnonzero(ends[:, 0] > 1e-6).tolist()
    assert found.unique == bool(np.allclose(ends[:, 0], ends[:, 1], atol=1e-7))


def test_without_degeneracy_every_support_vector_is_essential():
    X, y = cloud(7)
    model = SVC("RBF(0.5)", 2.0, tol=1e-8).fit(X, y)
    found = essential(model, X, y)[0]
    assert found.unique and found.essential.tolist() == sorted(model.support_.tolist())
    assert "unique" in str(found)
