"""Multiple kernel learning: the certificate, the laws of the weights, general solvers as referees,
and the contract.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    SVC,
    MultipleKernelClassifier,
    MultipleKernelOneClass,
    MultipleKernelRegressor,
    OneClassSVM,
    verify,
)
from mercer.arrays import Rows
from mercer.errors import (
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    ParameterError,
    ShapeError,
)
from mercer.machines.kernel_sets.weights import combine, gram_set, weights_of
from mercer.solve.mixture import dual_norm, holder_slack

KERNELS = ["RBF(1.0).on(0)", "RBF(1.0).on(1)", "RBF(1.0).on(2)", "Linear()", "RBF(3.0)"]
P = [1.0, 1.1, 2.0, 10.0, np.inf]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3))
    t = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=70)
    return X, t, t > 0.4


def machines(p, **more):
    return [
        MultipleKernelClassifier(KERNELS, 2.0, p=p, **more),
        MultipleKernelRegressor(KERNELS, 0.3, p=p, **more),
        MultipleKernelRegressor(KERNELS, 0.3, p=p, fit_intercept=True, **more),
        MultipleKernelOneClass(KERNELS, 0.3, p=p, **more),
    ]


def fit(model, data):
    X, t, y = data
    return model.fit(X, y if isinstance(model, MultipleKernelClassifier) else t)


def grams(X, kernels=KERNELS):
    """Each Gram matrix with mean diagonal 1, from the kernels alone."""
    full = [mercer.parse(k)(X) for k in kernels]
    return [K / np.diag(K).mean() for K in full]


def values_by_the_formulas(model, data):
    """Primal and dual of the whole problem, slowly, from the coefficients."""
    X, t, y = data
    Ks, d = grams(X), model.weights_
    K = sum(v * G for v, G in zip(d, Ks, strict=True))
    beta = np.zeros(len(X))
    if isinstance(model, MultipleKernelRegressor):
        beta[:] = model.dual_coef_
    else:
        beta[model.support_] = model.dual_coef_[0]
    q = np.array([beta @ G @ beta for G in Ks])
    norm2 = beta @ K @ beta
    if isinstance(model, MultipleKernelClassifier):
        s = np.where(y, 1.0, -1.0)
        f = K @ beta + model.intercept_[0]
        return 0.5 * norm2 + 2.0 * np.maximum(0, 1 - s * f).sum(), s @ beta - 0.5 * dual_norm(q, model.p)
    if isinstance(model, MultipleKernelOneClass):
        rho = model.offset_[0]
        return (
            0.5 * norm2 - rho * 0.3 * len(X) + np.maximum(0, rho - K @ beta).sum(),
            -0.5 * dual_norm(q, model.p),
        )
    lam, f = 0.3, K @ beta + model.intercept_
    primal = 0.5 * lam * norm2 + 0.5 * ((t - f) ** 2).sum()
    return primal, lam * (t @ beta - 0.5 * lam * beta @ beta - 0.5 * dual_norm(q, model.p))


@pytest.mark.parametrize("p", P)
def test_the_certificate_is_that_of_the_formulas_and_its_gap_is_small(data, p):
    for model in machines(p):
        fit(model, data)
        c = model.certificate_
        primal, dual = values_by_the_formulas(model, data)
        assert c.status == "converged"
        assert c.primal == pytest.approx(primal, rel=1e-9)
        assert c.dual == pytest.approx(dual, rel=1e-7, abs=1e-9 * abs(primal))
        assert 0 <= c.gap <= 1e-4 * abs(c.primal)
        assert np.all(model.weights_ >= 0)
        norm = model.weights_.max() if np.isinf(p) else (model.weights_**p).sum() ** (1 / p)
        assert norm == pytest.approx(1.0)


@pytest.mark.parametrize("p", [1.0, 1.5, 4.0])
def test_a_step_in_any_direction_pays_more(data, p):
    for model in machines(p, tol=1e-9):
        fit(model, data)
        rng = np.random.default_rng(1)
        for _ in range(3):
            other = np.maximum(model.weights_ + 0.05 * rng.normal(size=len(KERNELS)), 0)
            other /= (other**p).sum() ** (1 / p)
            moved = fit(type(model)(**{**model.get_params(), "weights": other}), data)
            assert moved.certificate_.primal >= model.certificate_.dual


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_ridge_weights_are_those_of_a_general_solver(data, p):
    X, t, _ = data
    Ks = np.array(grams(X))

    def cost(d):
        A = np.tensordot(d, Ks, 1) + 0.3 * np.eye(len(X))
        beta = np.linalg.solve(A, t)
        return 0.5 * 0.3 * t @ beta, -0.5 * 0.3 * np.einsum("i,mij,j->m", beta, Ks, beta)

    limit = {"type": "ineq", "fun": lambda d: 1 - (d**p).sum(), "jac": lambda d: -p * d ** (p - 1)}
    start = np.full(len(Ks), len(Ks) ** (-1 / p))
    found = minimize(
        cost, start, jac=True, bounds=[(0, 1)] * len(Ks), constraints=limit, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    model = MultipleKernelRegressor(KERNELS, 0.3, p=p, tol=1e-10).fit(X, t)
    assert model.certificate_.primal == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(model.weights_, found.x, atol=2e-4)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_classifier_weights_are_those_of_a_general_solver_of_the_dual(data, p):
    X, _, y = (part[:16] for part in data)
    s, Ks, C = np.where(y, 1.0, -1.0), grams(X[:16]), 2.0
    other = np.inf if p == 1 else p / (p - 1)

    def q(a):
        return np.array([(s * a) @ K @ (s * a) for K in Ks])

    if p == 1:  # max Σα - t/2 with αᵀQα ≤ t for every kernel
        cost = lambda z: (0.5 * z[-1] - z[:-1].sum(), np.append(-np.ones(16), 0.5))
        limits = [
            {"type": "ineq", "fun": lambda z: z[-1] - q(z[:-1])},
            {"type": "eq", "fun": lambda z: s @ z[:-1]},
        ]
        start, bounds = np.append(np.full(16, 0.1), 10.0), [(0, C)] * 16 + [(0, None)]
        found = minimize(cost, start, jac=True, bounds=bounds, constraints=limits, method="SLSQP",
                         options={"ftol": 1e-13, "maxiter": 1000})  # fmt: skip
    else:
        found = minimize(
            lambda a: 0.5 * (q(a) ** other).sum() ** (1 / other) - a.sum(), np.full(16, 0.1),
            bounds=[(0, C)] * 16, constraints={"type": "eq", "fun": lambda a: s @ a}, method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 1000},
        )  # fmt: skip
    model = MultipleKernelClassifier(KERNELS, C, p=p, tol=1e-9).fit(X, y)
    assert model.certificate_.dual == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("p", P)
def test_one_kernel_is_the_machine_itself(data, p):
    X, t, y = data
    a = MultipleKernelClassifier(["RBF()"], 2.0, p=p).fit(X, y)
    b = SVC("RBF()", 2.0, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-9)
    assert a.weights_.tolist() == [1.0]
    a = MultipleKernelOneClass(["RBF()"], 0.3, p=p).fit(X)
    np.testing.assert_allclose(
        a.decision_function(X), OneClassSVM("RBF()", 0.3).fit(X).decision_function(X), atol=1e-9
    )
    a = MultipleKernelRegressor(["Linear()"], 0.5, p=p, normalize=None).fit(X, t)
    for itself in (KernelRidge(kernel="linear", alpha=0.5), mercer.KernelRidge("Linear()", alpha=0.5)):
        np.testing.assert_allclose(a.predict(X), itself.fit(X, t).predict(X), atol=1e-9)
    a = MultipleKernelRegressor(["RBF()"], 0.5, p=p, fit_intercept=True).fit(X, t)
    itself = mercer.KernelRidge("RBF()", alpha=0.5, fit_intercept=True).fit(X, t)
    np.testing.assert_allclose(a.predict(X), itself.predict(X), atol=1e-9)


def test_p_of_one_drops_the_kernels_of_noise():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 10))
    y = X[:, 0] + X[:, 1] > 0
    kernels = [f"Linear().on({j})" for j in range(10)]
    sparse = MultipleKernelClassifier(kernels, 0.03).fit(X, y)
    spread = MultipleKernelClassifier(kernels, 0.03, p=2.0).fit(X, y)
    assert (sparse.weights_ == 0).sum() >= 6 and sparse.weights_[:2].sum() > 0.9
    assert np.all(spread.weights_ > 0)
    ridge = MultipleKernelRegressor(kernels, 5.0).fit(X, X[:, 0] + X[:, 1])
    assert set(np.flatnonzero(ridge.weights_)) == {0, 1}


def test_a_large_p_is_nearly_the_plain_sum(data):
    for large, endless in zip(machines(1e4), machines(np.inf), strict=True):
        fit(large, data), fit(endless, data)
        np.testing.assert_allclose(large.weights_, 1.0, atol=2e-3)
        assert endless.weights_.tolist() == [1.0] * len(KERNELS)
        assert large.certificate_.primal == pytest.approx(endless.certificate_.primal, rel=1e-2)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_kernels_in_another_order_have_their_weights_in_that_order(data, p):
    order = np.array([3, 0, 4, 2, 1])
    for model in machines(p, tol=1e-8):
        fit(model, data)
        other = type(model)(**{**model.get_params(), "kernels": [KERNELS[i] for i in order]})
        np.testing.assert_allclose(fit(other, data).weights_, model.weights_[order], atol=1e-5)


def test_the_kernel_kept_is_the_weighted_sum_and_the_machine_is_verified(data):
    X, _t, y = data
    model = MultipleKernelClassifier(KERNELS, 2.0).fit(X, y)
    K = sum(w * G for w, G in zip(model.weights_, grams(X), strict=True))
    np.testing.assert_allclose(model.kernel_(X), K, atol=1e-12)
    assert verify(model, X, y), str(verify(model, X, y))
    model.dual_coef_[0, 3] *= 1.01
    assert not verify(model, X, y)
    assert verify(MultipleKernelOneClass(KERNELS, 0.3).fit(X), X)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_gram_matrices_give_what_their_kernels_give(data, p):
    X, t, y = data
    new = X[:7] + 0.1
    full, block = [mercer.parse(k)(X) for k in KERNELS], [mercer.parse(k)(new, X) for k in KERNELS]
    for model in machines(p, tol=1e-8):
        fit(model, data)
        other = type(model)(**{**model.get_params(), "kernels": "precomputed"})
        fit(other, (full, t, y))
        np.testing.assert_allclose(other.weights_, model.weights_, atol=1e-6)
        values = "predict" if isinstance(model, MultipleKernelRegressor) else "decision_function"
        np.testing.assert_allclose(
            getattr(other, values)(np.array(block)), getattr(model, values)(new), atol=1e-5
        )
        with pytest.raises(ShapeError, match="Gram matrices"):
            other.predict(block[:2])


def test_tiles_give_what_arrays_give(data):
    for stored, tiles in zip(machines(1.5), machines(1.5, memory="1KiB"), strict=True):
        fit(stored, data), fit(tiles, data)
        np.testing.assert_allclose(tiles.weights_, stored.weights_, atol=1e-3)
        assert tiles.certificate_.gap <= 1e-4 * abs(tiles.certificate_.primal)


def test_several_classes_and_several_outputs_share_the_weights(data):
    X, t, _ = data
    y = np.digitize(t, [0.0, 0.8])
    model = MultipleKernelClassifier(KERNELS, 2.0, probability=True, random_state=0).fit(X, y)
    assert model.dual_coef_.shape[0] == 3 and model.weights_.shape == (5,)
    assert model.score(X, y) > 0.8 and model.predict_proba(X).shape == (70, 3)
    assert model.certificate_.primal == pytest.approx(sum(c.primal for c in model.certificates_))
    two = MultipleKernelRegressor(KERNELS, 0.3).fit(X, np.column_stack([t, t]))
    one = MultipleKernelRegressor(KERNELS, 0.3).fit(X, t)
    np.testing.assert_allclose(two.weights_, one.weights_, atol=1e-3)
    assert two.predict(X).shape == (70, 2)
    assert two.certificate_.primal == pytest.approx(2 * one.certificate_.primal, rel=1e-3)


def test_the_report_names_every_kernel_and_its_shares_sum_to_one(data):
    model = fit(machines(1.0)[0], data)
    lines = model.report().splitlines()
    assert len(lines) == len(KERNELS) + 2
    for line, name, weight in zip(lines[1:], KERNELS, model.weights_, strict=False):
        assert line.startswith(name) and f"{weight:.4g}" in line
    assert model.norm_shares_.sum() == pytest.approx(1) and model.trace_shares_.sum() == pytest.approx(1)


def test_fixed_weights_say_what_learning_might_gain(data):
    X, _t, y = data
    best = MultipleKernelClassifier(KERNELS, 2.0).fit(X, y).certificate_
    for weights in ("uniform", "alignment", [0.2, 0.2, 0.2, 0.2, 0.2]):
        model = MultipleKernelClassifier(KERNELS, 2.0, weights=weights).fit(X, y)
        note = next(n for n in model.certificate_.notes if "could lower" in n)
        promised = float(note.split("at most ")[1])
        assert model.certificate_.primal - best.dual <= promised * 1.01
        assert model.certificate_.primal >= best.dual
        assert (model.weights_).sum() == pytest.approx(1)


def test_alignment_weights_have_the_best_centred_alignment(data):
    X, t, _ = data
    Ks, ideal = grams(X), np.outer(t, t)

    def alignment(d):
        return mercer.theory.alignment(sum(v * G for v, G in zip(d, Ks, strict=True)), ideal)

    model = MultipleKernelRegressor(KERNELS, weights="alignment").fit(X, t)
    rng = np.random.default_rng(2)
    assert all(alignment(model.weights_) >= alignment(d) for d in rng.dirichlet(np.ones(5) * 0.3, 200))
    assert alignment(model.weights_) >= max(alignment(d) for d in np.eye(5))


def test_combine_and_weights_of_are_inverse():
    k = combine(["RBF(1.0)", "2.0*Linear()"], [0.5, 0.25])
    assert str(k) == "0.5*RBF(1.0) + 0.5*Linear()" and weights_of(k).tolist() == [0.5, 0.5]
    assert weights_of(mercer.RBF(1.0) + 3.0 * mercer.Linear()).tolist() == [1.0, 3.0]
    assert str(combine(["RBF(1.0)", "Linear()"], [0.0, 2.0])) == "2.0*Linear()"
    for bad in ([1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(ParameterError, match="numbers >= 0"):
            combine(["RBF(1.0)", "Linear()"], bad)


def test_a_gaussian_process_learns_the_weights_by_its_evidence(data):
    X, t, _ = data
    kernel = combine(["RBF(1.0).on(0)", "RBF(1.0).on(1)", "RBF(1.0).on(2)"]).fix("lengthscale")
    model = mercer.GaussianProcessRegressor(kernel, noise=0.05, normalize_y="mean").fit(X, t)
    found = weights_of(model.kernel_)
    assert found.shape == (3,) and found[2] < 0.05 * found[:2].min()  # the third column has no part in t
    K = [mercer.parse(f"RBF(1.0).on({j})")(X) for j in range(3)]

    def evidence(d):
        A = sum(v * G for v, G in zip(d, K, strict=True)) + 0.05 * np.eye(70)
        y = t - t.mean()
        return -0.5 * y @ np.linalg.solve(A, y) - 0.5 * np.linalg.slogdet(A)[1]

    for factor in (0.8, 1.25):
        for m in range(2):
            assert evidence(found * np.where(np.arange(3) == m, factor, 1.0)) < evidence(found)


def test_holder_slack_is_never_negative():
    rng = np.random.default_rng(3)
    for p in P:
        for _ in range(50):
            q, d = rng.exponential(size=6), rng.exponential(size=6) ** 3
            d /= d.max() if np.isinf(p) else (d**p).sum() ** (1 / p)
            slow = (
                q.max() if p == 1 else q.sum() if np.isinf(p) else (q ** (p / (p - 1))).sum() ** (1 - 1 / p)
            )
            assert dual_norm(q, p) == pytest.approx(slow)
            assert slow - d @ q >= -1e-12 and holder_slack(q, d, p) == pytest.approx(0.5 * (slow - d @ q))


def test_the_same_kernel_twice_changes_nothing_but_the_weights(data):
    X, _t, y = data
    once = MultipleKernelClassifier(["RBF(1.0)", "Linear()"], 2.0, tol=1e-8).fit(X, y)
    twice = MultipleKernelClassifier(["RBF(1.0)", "RBF(1.0)", "Linear()"], 2.0, tol=1e-8).fit(X, y)
    assert twice.weights_[:2].sum() == pytest.approx(once.weights_[0], abs=1e-6)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-5)


def test_normalisation_makes_units_not_matter(data):
    X, _t, y = data
    for how in ("trace", "variance"):
        a = MultipleKernelClassifier(["Linear()", "RBF(1.0)"], normalize=how, tol=1e-8).fit(X, y)
        b = MultipleKernelClassifier(["1e6*Linear()", "0.01*RBF(1.0)"], normalize=how, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-6)
    with pytest.raises(InputError, match=r"Constant\(1.0\) cannot be normalised"):
        MultipleKernelClassifier(["Constant(1.0)", "RBF(1.0)"], normalize="variance").fit(X, y)


def test_what_is_not_converged_says_so(data):
    with pytest.warns(ConvergenceWarning, match="before tol=1e-12"):
        model = fit(MultipleKernelClassifier(KERNELS, 2.0, tol=1e-12, max_iter=1), data)
    assert model.certificate_.status == "limit" and model.certificate_.gap > 0 and model.n_iter_ == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_invalid_kernel_is_announced_or_refused(data):
    X, _t, y = data
    with pytest.warns(InvalidKernelWarning, match="Sigmoid"):
        model = MultipleKernelClassifier(["Sigmoid(1.0)", "RBF(1.0)"], p=2.0).fit(X, y)
    assert any("not positive semi-definite" in note for note in model.certificate_.notes)
    with pytest.raises(InvalidKernelError):
        MultipleKernelClassifier(["Sigmoid(1.0)", "RBF(1.0)"], strict=True).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": 0.5}, "p must be"),
        ({"p": "two"}, "p must be"),
        ({"kernels": "RBF()"}, "kernels must be a list"),
        ({"kernels": []}, "empty"),
        ({"kernels": ["RBF()", "precomputed"]}, "one of several"),
        ({"kernels": ["RBF()", 3]}, "each of kernels must be a kernel"),
        ({"weights": "best"}, "weights must be"),
        ({"weights": [1.0, 2.0]}, "weights must be 5 numbers"),
        ({"normalize": "max"}, "normalize must be"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"max_seconds": -1}, "max_seconds must be"),
    ],
)
def test_bad_parameters_are_refused(data, change, words):
    for model in machines(1.0):
        with pytest.raises(ParameterError, match=words):
            fit(model.set_params(**change), data)
    with pytest.raises(ParameterError, match="alpha"):
        MultipleKernelRegressor(alpha=0).fit(data[0], data[1])
    with pytest.raises(ParameterError, match="compares kernels with targets"):
        MultipleKernelOneClass(weights="alignment").fit(data[0])


MACHINES = [
    MultipleKernelClassifier(),
    MultipleKernelRegressor(p=1.5),
    MultipleKernelOneClass(),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(MACHINES)
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(6))
def test_the_weights_of_a_set_are_those_of_the_matrices(seed):
    """K_d, its products, its traces and its kernel say the same weights, scales included,
    stored or in tiles.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 2))
    w = rng.integers(1, 4, size=9).astype(float)
    kernels = [mercer.RBF(0.7), 3.0 * mercer.Linear(), mercer.Polynomial(2, offset=0.5)]
    d = rng.uniform(0.0, 2.0, size=3) * np.array([1.0, seed % 2, 1.0])
    plain = [k(X) for k in kernels]
    share = w / w.sum()
    for normalize in (None, "trace", "variance"):
        scales = []
        for K in plain:
            trace = share @ np.diag(K)
            spread = trace - share @ K @ share
            scales.append({None: 1.0, "trace": trace, "variance": spread}[normalize])
        expected = sum(v * K / s for v, K, s in zip(d, plain, scales, strict=True))
        B = rng.normal(size=(9, 2))
        for memory in ("1GiB", 0):
            found = gram_set(kernels, None, Rows(X), w, normalize=normalize, memory=memory, n_jobs=None)
            np.testing.assert_allclose(found.scales, scales, rtol=1e-12)
            np.testing.assert_allclose(found.at(d) @ np.eye(9), expected, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(found.kernel(d)(X), expected, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(
                np.tensordot(d, found.products(B), axes=1), expected @ B, rtol=1e-10, atol=1e-12
            )
            np.testing.assert_allclose(d @ found.traces(w), share @ np.diag(expected), rtol=1e-12)
            used = d[d > 0] / np.array(scales)[d > 0]
            factors = np.array([1.0, 3.0, 1.0])[d > 0]
            np.testing.assert_allclose(weights_of(found.kernel(d)), used * factors, rtol=1e-12)
