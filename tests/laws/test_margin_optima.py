"""A margin machine that says "converged" is at the optimum: on grids, duplicates, columns in other units,
flat data, any C.

The referee is weak duality, written out from the model's coefficients alone: no function has an objective
below the dual.
"""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, SVR, KernelMachine, NuSVC, NuSVR, OneClassSVM
from mercer.errors import NotSeparableError, ParameterError, PrecisionWarning
from mercer.machines.margin.hard_margin import contradiction, widest_margin
from mercer.solve.box import BoxProblem
from mercer.solve.qp import working_set


def quietly(fit, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", PrecisionWarning)
        return fit(*data)


def bounds_of_svr(model, X, y):
    """Primal and dual of the ε-tube from β and b, by their formulas."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    K = model.kernel_(X)
    f = K @ beta
    norm2 = beta @ f
    loss = np.maximum(0, np.abs(y - f - model.intercept_[0]) - model.epsilon).sum()
    return 0.5 * norm2 + model.C * loss, beta @ y - model.epsilon * np.abs(beta).sum() - 0.5 * norm2


def bounds_of_svc(model, X, y):
    """Primal and dual of the soft margin from yα and b, by their formulas; y is -1 or 1."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    f = model.kernel_(X) @ beta
    loss = np.maximum(0, 1 - y * (f + model.intercept_[0])).sum()
    return 0.5 * beta @ f + model.C * loss, np.abs(beta).sum() - 0.5 * beta @ f


def shapes_and_speeds():
    rng = np.random.default_rng(0)
    X = np.array([np.r_[h, v] for h in rng.normal(size=(22, 5)) for v in np.linspace(-1.6, 1.6, 14)])
    y = np.exp(2.5 * X[:, 5]) * (1 + 0.1 * X[:, 0])
    return X, (y - y.mean()) / y.std()


def awkward(kind, rng, n=70):
    """Rows of a kind that makes the Gram matrix nearly singular, or of very different sizes."""
    X = rng.normal(size=(n, 3))
    if kind == "grid":
        X = np.round(2 * X) / 2
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    if kind == "units":
        X = X * [1e2, 1.0, 0.1] + [1e2, 0.0, 5.0]
    if kind == "flat":
        X = X[:, :1] @ rng.normal(size=(1, 3))
    return X


KINDS = ("grid", "duplicates", "units", "flat")


@pytest.mark.parametrize("tol", [3e-3, 1e-3, 3e-4])
@pytest.mark.parametrize("lengthscale", [0.4, 1.0])
def test_svr_on_a_grid_does_not_stagnate_far_from_the_optimum(lengthscale, tol):
    X, y = shapes_and_speeds()
    model = SVR(mercer.RBF(lengthscale), C=80.0, epsilon=0.001, tol=tol).fit(X, y)
    primal, dual = bounds_of_svr(model, X, y)
    assert model.certificate_.status == "converged"
    assert primal - dual <= 1e-6 * dual


def test_every_instruction_set_reaches_the_optimum_by_pairs_alone(isa):
    """Stretches in float32 and in float64, on float32 and on float64 rows, without Newton's steps."""
    X, y = shapes_and_speeds()
    K = mercer.RBF(1.0)(X)
    rows = np.tile(np.arange(len(y)), 2)
    signs = np.repeat([1.0, -1.0], len(y))
    for tol in (1e-2, 1e-3, 1e-4):
        found = working_set(K, rows=rows, signs=signs, p=0.001 - signs * y[rows], C=80.0, tol=tol)
        assert found.certificate.status == "converged"
        assert found.certificate.kkt <= tol and found.certificate.gap <= 0.01 * abs(found.value.objective)
        beta = np.bincount(rows, signs * found.value.alpha)
        np.testing.assert_allclose(found.value.f[: len(y)], K @ beta, atol=1e-9)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_svc_on_columns_in_different_units_does_not_stagnate(C):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :10]
    model = SVC("Linear()", C=C).fit(X, y)
    primal, dual = bounds_of_svc(model, X, 2 * y - 1)
    assert model.certificate_.status == "converged"
    assert primal - dual <= 1e-5 * dual


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["RBF(0.5)", "Linear()", "Polynomial(2)"])
def test_converged_is_optimal_whatever_the_rows_the_prices_and_the_tolerance(kind, kernel):
    rng = np.random.default_rng(KINDS.index(kind))
    X = awkward(kind, rng)
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))
    labels = np.where(y > np.median(y), 1, -1)
    for C in (1e-2, 1.0, 1e3):
        for tol in (1e-2, 1e-4):
            for epsilon in (0.0, 0.1):
                model = quietly(SVR(kernel, C=C, epsilon=epsilon, tol=tol, max_iter=3_000_000).fit, X, y)
                assert_optimal(model, X, *bounds_of_svr(model, X, y))
            model = quietly(SVC(kernel, C=C, tol=tol, max_iter=3_000_000).fit, X, labels)
            assert_optimal(model, X, *bounds_of_svc(model, X, labels))


def assert_optimal(model, X, primal, dual):
    """Converged is within a hundredth of the optimum; stagnated is as near as rounding allows;
    nothing else happens.
    """
    c = model.certificate_
    assert c.status in ("converged", "stagnated")
    size = np.abs(model.dual_coef_).sum()
    top = model.kernel_(X).diagonal().max()
    rounding = 1e-12 * abs(dual) + 1e-14 * size * top * (size + model.C * len(X))  # of f, paid by every row
    assert primal - dual <= 0.011 * abs(dual) + rounding
    assert c.primal == pytest.approx(primal, rel=1e-6, abs=rounding)
    if c.status == "stagnated":
        assert primal - dual <= 1e-3 * abs(dual) + rounding


@pytest.mark.parametrize("C", [1e3, 1e6, 1e12, 1e100])
def test_a_huge_price_is_not_called_converged_unless_the_gap_is_small(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    for y in (np.where(X[:, 0] > 0, 1, -1), rng.choice([-1, 1], 60)):
        for kernel in ("RBF(0.5)", "Linear()"):
            c = quietly(SVC(kernel, C=C).fit, X, y).certificate_
            assert c.status == "stagnated" or c.gap <= 0.01 * abs(c.dual)


def test_a_price_whose_square_overflows_is_refused():
    for machine in (SVC(C=1e300), SVR(C=1e300), NuSVR(C=1e200)):
        with pytest.raises(ParameterError, match="hard margin"):
            machine.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("factor", [1e-8, 1e-4, 2.0**-30, 1e4, 1e8])
@pytest.mark.parametrize("n", [60, 700])
def test_svr_and_nu_svr_scale_with_their_targets(factor, n):
    """y, ε and C times s give f times s: metres and millimetres are the same problem."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    for make in (
        lambda s: SVR("RBF(1.0)", C=3.0 * s, epsilon=0.05 * s),
        lambda s: NuSVR("RBF(1.0)", 0.3, C=3.0 * s),
    ):
        one = make(1.0).fit(X, y)
        other = make(factor).fit(X, factor * y)
        assert other.certificate_.status == one.certificate_.status == "converged"
        np.testing.assert_allclose(other.predict(X) / factor, one.predict(X), atol=3e-3 if n > 300 else 1e-6)


def test_svr_on_small_targets_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = 1e-4 * np.sin(X[:, 0])
    assert SVR("RBF(1.0)", epsilon=5e-6).fit(X, y).score(X, y) > 0.99


@pytest.mark.parametrize("nu", [1e-6, 1e-4, 1e-2])
def test_a_tiny_nu_is_converged_only_with_a_small_gap(nu):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    for c in (
        NuSVC("RBF(1.0)", nu).fit(X, y).certificate_,
        OneClassSVM("RBF(1.0)", nu).fit(X).certificate_,
    ):
        assert c.status == "converged" and c.gap <= 0.01 * abs(c.dual)


def test_nu_svc_says_that_its_margin_is_zero():
    X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    with pytest.warns(ConvergenceWarning, match="margin between classes 1 and 0 is 0 at nu=1"):
        NuSVC("Linear()", nu=1.0).fit(X, [0, 0, 1, 1])
    NuSVC("RBF(0.5)", nu=1.0).fit(X, [0, 0, 1, 1])  # a richer kernel has one: no warning


@pytest.mark.parametrize("offset", [1.0, 1e2, 1e3])
def test_a_quantile_of_a_linear_machine_does_not_mind_where_the_columns_begin(offset):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=120)
    there = KernelMachine("Linear()", "quantile", 1.0, quantiles=0.3).fit(X + offset, y)
    here = KernelMachine("Linear()", "quantile", 1.0, quantiles=0.3).fit(X, y)
    assert there.certificate_.status == "converged"
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-6)
    assert there.certificate_.iterations < 50_000


def test_the_advice_of_a_stagnated_fit_does_not_ask_for_more_iterations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    with pytest.warns(ConvergenceWarning, match="more iterations will not"):
        SVC("RBF(0.5)", C=1e100).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        SVC("RBF(0.5)", max_iter=3).fit(X, y)


# ── hard margins ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 2.0**-52])
@pytest.mark.parametrize("kernel", ["Linear()", "RBF(1.0)", "Polynomial(2)"])
def test_a_hard_margin_separates_or_says_what_it_cannot_tell(apart, kernel):
    X = np.array([[0.0], [1.0], [1.0 + apart], [2.0]])
    y = np.array([-1, -1, 1, 1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = SVC(kernel, C=np.inf).fit(X, y)
        except NotSeparableError as refused:
            model, words = None, str(refused)
    if model is None:
        assert "with a margin above" in words and "violation is 0 " not in words
        assert apart < 1e-6
        return
    if model.certificate_.status == "converged":
        assert np.all(y * model.decision_function(X) > 0.99)
    else:
        assert any(issubclass(w.category, PrecisionWarning) for w in said)
        assert apart < 1e-3
    if apart >= 1e-3:
        assert model.certificate_.status == "converged"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", ["Linear()", "RBF(1.0)", "Polynomial(3)"])
def test_rows_that_contradict_each_other_are_named(kernel, bias):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = rng.choice([0, 1], 40)
    X[11], y[11] = X[29], 1 - y[29]
    with pytest.raises(NotSeparableError, match="rows 11 and 29 are the same to the kernel"):
        SVC(kernel, C=np.inf, fit_intercept=bias).fit(X, y)


def test_contradictions_are_found_as_a_loop_finds_them():
    rng = np.random.default_rng(5)
    for _ in range(60):
        X = rng.integers(0, 4, size=(9, 2)).astype(float)
        s = rng.choice([-1.0, 1.0], 9)
        K = mercer.RBF(1.0).gram(X)
        there = any((X[i] == X[j]).all() and s[i] != s[j] for i in range(9) for j in range(9))
        found = contradiction(K, BoxProblem(np.arange(9), s, -np.ones(9), np.full(9, np.inf)))
        assert (found is not None) == there
        if found is not None:
            i, j = found
            assert (X[i] == X[j]).all() and s[i] != s[j]


def test_no_margin_is_wider_than_the_bound_says():
    rng = np.random.default_rng(6)
    for _ in range(20):
        X = rng.normal(size=(20, 3))
        s = np.where(X[:, 0] > 0, 1.0, -1.0)
        K = mercer.Linear().gram(X)
        q = BoxProblem(np.arange(20), s, -np.ones(20), np.full(20, np.inf))
        true = 1 / SVC("Linear()", C=np.inf).fit(X, s).norms_[0]
        balanced = np.where(s > 0, 1 / (s > 0).sum(), 1 / (s < 0).sum())
        assert widest_margin(K, q, []) >= true * (1 - 1e-6)
        assert widest_margin(K, q, [balanced]) >= true * (1 - 1e-6)
