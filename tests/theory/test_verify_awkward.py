"""`verify` accuses no honest ridge on data that are hard on rounding, and is not fooled there either."""

from __future__ import annotations

import os

import mpmath
import numpy as np
import pytest
from sklearn.model_selection import KFold

from mercer import KernelRidge, KernelRidgeCV, Nystroem, verify
from mercer.errors import MercerError
from tampering import missed

pytestmark = pytest.mark.filterwarnings("ignore")
KERNELS = ["Linear()", "Polynomial(2)", "Polynomial(3)", "Linear() + White(0.1)", "2.0*RBF(0.5) + Linear()"]
COUNT = int(os.environ.get("MERCER_AWKWARD", "150"))


def awkward(rng):
    """A ridge, rows in any units and far from the origin, targets of any size, weights or none."""
    n = int(rng.integers(3, 50))
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 2)] = X[rng.integers(n, size=n // 2)]
    X = X + rng.choice([0.0, 10.0 ** rng.uniform(0, 6)])
    y = (np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)) * 10.0 ** rng.uniform(-4, 4)
    y = y + rng.choice([0.0, 10.0 ** rng.uniform(0, 5)])
    if rng.random() < 0.3:
        y = np.c_[y, rng.normal(size=n)]
    weights = rng.integers(0, 4, size=n).astype(float)
    if rng.random() < 0.5 or (weights > 0).sum() < 3:
        weights = None
    return machine(rng), X, y, weights


def machine(rng):
    kernel = str(rng.choice(KERNELS))
    intercept = bool(rng.random() < 0.5)
    features = Nystroem(n_components=int(rng.integers(2, 20)), random_state=0) if rng.random() < 0.2 else None
    if rng.random() < 0.5:
        return KernelRidgeCV(
            kernel,
            None if rng.random() < 0.5 else (1e-3, 0.1, 3.0),
            fit_intercept=intercept,
            cv=None if rng.random() < 0.6 else 3,
            criterion=str(rng.choice(["loo", "gcv"])),
            alpha_per_target=bool(rng.random() < 0.5),
            approximation=features,
        )
    solver = (
        "auto" if features is not None else str(rng.choice(["auto", "auto", "cholesky", "cg", "nystrom"]))
    )
    alpha = 10.0 ** rng.uniform(-6, 3) if rng.random() < 0.9 else 0.0
    return KernelRidge(kernel, alpha, fit_intercept=intercept, solver=solver, approximation=features)


@pytest.mark.parametrize("part", range(5))
def test_honest_fits_on_awkward_data_are_believed(part):
    believed = 0
    for seed in range(part, COUNT, 5):
        model, X, y, weights = awkward(np.random.default_rng(seed))
        try:
            model.fit(X, y, weights)
        except MercerError:
            # a penalty below the rounding of the features is refused
            continue
        found = verify(model, X, y, weights)
        assert found, f"seed {seed}: {model}\n{found}"
        believed += 1
    assert believed > 0.8 * COUNT / 5


rng = np.random.default_rng(1)
SPREAD = rng.normal(size=(24, 2))
TARGETS = np.sin(SPREAD[:, 0]) + 0.1 * rng.normal(size=24)
WEIGHTS = rng.integers(0, 3, size=24).astype(float)
CHANGED = {
    "linear": (KernelRidge("Linear()", 0.1), 1e6, None),
    "linear, bias": (KernelRidge("Linear()", 0.1, fit_intercept=True), 1e6, WEIGHTS),
    "linear, a small penalty": (KernelRidge("Linear()", 1e-6), 1e3, WEIGHTS),
    "quadratic": (KernelRidge("Polynomial(2)", 0.1, fit_intercept=True), 1e3, None),
    "cubic": (KernelRidge("Polynomial(3)", 1.0), 1e2, WEIGHTS),
    "landmarks": (
        KernelRidge("Polynomial(2)", 0.1, approximation=Nystroem(n_components=5, random_state=0)),
        1e3,
        None,
    ),
    "path": (KernelRidgeCV("Linear()", (1e-3, 0.1, 3.0)), 1e6, None),
    "path, bias": (KernelRidgeCV("Linear()", fit_intercept=True), 1e6, WEIGHTS),
    "folds": (KernelRidgeCV("Polynomial(2)", (0.1, 3.0), cv=3, fit_intercept=True), 1e3, None),
    "least squares": (KernelRidge("Linear()", 0.0, fit_intercept=True), 1e3, None),
}


@pytest.mark.parametrize("name", CHANGED)
def test_one_per_cent_is_noticed_far_from_the_origin(name):
    model, offset, weights = CHANGED[name]
    X = SPREAD + offset
    model.fit(X, TARGETS, weights)
    assert model.solver_ == "primal"
    found = verify(model, X, TARGETS, weights)
    assert found, str(found)
    # an approximation is examined by itself, and what its landmarks leave out of the trace is rounding here
    own = [number for number in missed(model, X, TARGETS, weights) if not number.startswith("approximation_")]
    assert own == []


# ── what the fits themselves say there, against other arithmetic ────────────────────────────────────────────


def ridge_in_digits(X, y, alpha):
    """Objective, coefficients of rows and slacks of linear ridge with a bias, in fifty digits."""
    with mpmath.workdps(50):
        A = mpmath.matrix(X.tolist())
        n, d = X.shape
        mean = [mpmath.fsum(A[i, j] for i in range(n)) / n for j in range(d)]
        centre = mpmath.fsum(map(mpmath.mpf, y.tolist())) / n
        B = mpmath.matrix([[A[i, j] - mean[j] for j in range(d)] for i in range(n)])
        t = mpmath.matrix([mpmath.mpf(v) - centre for v in y.tolist()])
        beta = mpmath.lu_solve(B.T * B + alpha * mpmath.eye(d), B.T * t)
        errors = t - B * beta
        value = mpmath.fsum(e * e for e in errors) + alpha * mpmath.fsum(b * b for b in beta)
        slacks = np.array([float(e) for e in errors])
        return float(value), slacks / alpha, slacks


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_primal_dual_and_multipliers_do_not_depend_on_the_offset(offset):
    """The Gram matrix has entries of 10¹² there, and its rounding is larger than the penalty."""
    X = SPREAD + offset
    model = KernelRidge("Linear()", 1e-3, fit_intercept=True).fit(X, TARGETS)
    value, c, slacks = ridge_in_digits(X, TARGETS, 1e-3)
    done = model.certificate_
    assert done.converged
    assert done.primal == pytest.approx(value, rel=1e-8)
    assert done.dual == pytest.approx(value, rel=1e-8)
    assert 0 <= done.gap <= 1e-8 * value
    assert done.dual <= value * (1 + 1e-12) and done.primal >= value * (1 - 1e-12)
    np.testing.assert_allclose(model.dual_coef_, c, rtol=0, atol=1e-7 * np.abs(c).max())
    (named,) = model.named_multipliers(X, TARGETS, None)
    np.testing.assert_allclose(named.xi, slacks, rtol=0, atol=1e-7 * np.abs(slacks).max())


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_without_a_penalty_the_rows_give_the_function_that_the_features_give(offset):
    X = 0.1 * SPREAD + offset
    model = KernelRidge("Linear()", 0.0).fit(X, TARGETS)
    np.testing.assert_allclose(
        X.T @ model.dual_coef_, model.coef_, rtol=0, atol=1e-7 * np.abs(model.coef_).max()
    )
    found = verify(model, X, TARGETS)
    assert found, str(found)


@pytest.mark.parametrize("kernel, offset", [("Linear()", 0.0), ("Linear()", 1e6), ("Polynomial(2)", 1e3)])
@pytest.mark.parametrize("bias", [False, True])
def test_errors_on_folds_are_those_of_fits_without_the_fold(kernel, offset, bias):
    X = SPREAD + offset
    alphas = (1e-2, 0.1, 3.0)
    model = KernelRidgeCV(kernel, alphas, cv=3, fit_intercept=bias).fit(X, TARGETS)
    wanted = []
    for alpha in alphas:
        errors = np.empty(len(X))
        for train, test in KFold(3).split(X):
            other = KernelRidge(kernel, alpha, fit_intercept=bias).fit(X[train], TARGETS[train])
            errors[test] = TARGETS[test] - other.predict(X[test])
        wanted.append(np.mean(errors**2))
    np.testing.assert_allclose(model.cv_errors_, wanted, rtol=1e-4)
