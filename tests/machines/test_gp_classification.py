"""Gaussian process classification: the mode, the evidence, its gradient, probabilities, and odd data."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as peer_kernels
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RBF, Custom, GaussianProcessClassifier, Linear, Sigmoid, Text, parse
from mercer.errors import (
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    MemoryBudgetError,
    ParameterError,
    ShapeError,
)
from mercer.machines.gaussian_process.averages import average_logistic, average_softmax, draws
from mercer.machines.gaussian_process.laplace import Logistic, Softmax
from mercer.machines.gaussian_process.whitened import whitened_mode

KERNELS = [
    "3.0*RBF([0.8, 1.2])",
    "2.0*Matern(1.0, nu=2.5) + 0.3*Linear() + White(0.2)",
    "1.5*RationalQuadratic(0.7, alpha=0.8)",
    "2.0*RBF(1.0).on(0)*Periodic(1.7, lengthscale=0.9).on(1) + Constant(0.5)",
]


def sample(n=22, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    two = (np.sin(3 * X[:, 0]) + 0.5 * rng.normal(size=n) > 0).astype(int)
    three = rng.integers(0, 3, n)
    three[X[:, 0] > 0.5] = 2
    return X, two, three, rng.uniform(0.5, 2.0, n)


def likelihoods(n=22):
    _, two, three, w = sample(n)
    return [Logistic(2 * two - 1, w), Softmax(three, 3, w)]


@pytest.mark.parametrize("which", [0, 1], ids=["two classes", "three classes"])
@pytest.mark.parametrize("text", KERNELS)
def test_the_gradient_of_the_evidence_is_that_of_finite_differences(text, which):
    X, likelihood, k = sample()[0], likelihoods()[which], parse(text)

    def evidence(theta):
        return likelihood.mode(k.with_theta(theta)(X), tol=1e-13).evidence

    K = k.gram(X)
    found = likelihood.mode(K.dense(), tol=1e-13)
    eye = 1e-5 * np.eye(len(k.theta))
    slow = [(evidence(k.theta + e) - evidence(k.theta - e)) / 2e-5 for e in eye]
    np.testing.assert_allclose(K.contract(W=found.weights()), slow, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("which", [0, 1], ids=["two classes", "three classes"])
def test_the_mode_and_the_evidence_are_those_of_a_general_optimiser(which):
    X, two, three, w = sample(12)
    K = (2.0 * RBF(0.7))(X) + 1e-3 * np.eye(12)
    inverse = np.linalg.inv(K)
    Y = np.eye(3)[three]
    likelihood = likelihoods(12)[which]

    def minus_psi(flat):
        if which == 0:
            return 0.5 * flat @ inverse @ flat - w @ log_expit((2 * two - 1) * flat)
        f = flat.reshape(12, 3)
        fit = w @ ((Y * f).sum(axis=1) - logsumexp(f, axis=1))
        return 0.5 * np.einsum("ic,ij,jc", f, inverse, f) - fit

    def minus_gradient(flat):
        if which == 0:
            return inverse @ flat - w * (two - expit(flat))
        f = flat.reshape(12, 3)
        return (inverse @ f - w[:, None] * (Y - np.exp(f - logsumexp(f, axis=1, keepdims=True)))).ravel()

    size = 12 if which == 0 else 36
    best = minimize(minus_psi, np.zeros(size), jac=minus_gradient, method="BFGS", options={"gtol": 1e-9})
    found = likelihood.mode(K)
    np.testing.assert_allclose(found.f.ravel(), best.x, atol=1e-5)
    # Laplace's formula, by the Hessian of ψ and nothing else
    hessian = approx_fprime(best.x, minus_gradient, 1e-7)
    blocks = K if which == 0 else np.kron(K, np.eye(3))
    plain = -best.fun - 0.5 * np.linalg.slogdet(blocks)[1] - 0.5 * np.linalg.slogdet(hessian)[1]
    assert found.evidence == pytest.approx(plain, abs=1e-4)


def test_the_softmax_of_two_classes_is_the_logistic_of_their_difference():
    X, two, _, w = sample()
    K = (2.0 * RBF(1.0))(X)
    soft, hard = Softmax(two, 2, w).mode(K), Logistic(2 * two - 1, w).mode(2 * K)
    assert soft.evidence == pytest.approx(hard.evidence, abs=1e-9)
    mean, covariance = soft.latent(K[:5], K.diagonal()[:5])
    wanted = hard.latent(2 * K[:5], 2 * K.diagonal()[:5])
    np.testing.assert_allclose(mean[:, 1] - mean[:, 0], wanted[0], atol=1e-9)
    spread = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    np.testing.assert_allclose(spread, wanted[1], atol=1e-9)


def test_the_latent_covariance_is_that_of_the_posterior():
    X, _, three, w = sample()
    K = (2.0 * RBF(1.0))(X)
    found = Softmax(three, 3, w).mode(K)
    n, pi = len(K), found.blocks.pi
    W = np.zeros((3 * n, 3 * n))
    for i in range(n):
        at = i + n * np.arange(3)
        W[np.ix_(at, at)] = w[i] * (np.diag(pi[i]) - np.outer(pi[i], pi[i]))
    whole = np.kron(np.eye(3), K)
    slow = whole - whole @ W @ np.linalg.solve(np.eye(3 * n) + whole @ W, whole)
    _, covariance = found.latent(K, K.diagonal())
    for i in (0, 7):
        at = i + n * np.arange(3)
        np.testing.assert_allclose(covariance[i], slow[np.ix_(at, at)], atol=1e-9)


@pytest.mark.parametrize("text", ["1.0*RBF()", "1.0*Matern(1.0, nu=1.5)"])
def test_two_classes_agree_with_scikit_learn(text):
    X, two, _, _ = sample(40)
    ours = GaussianProcessClassifier(text).fit(X, two)
    shape = peer_kernels.RBF(1.0) if "RBF" in text else peer_kernels.Matern(1.0, nu=1.5)
    unit = X.std(axis=0) if "RBF" in text else 1.0  # a lengthscale left open is one for standardised columns
    theirs = Peer(1.0 * shape).fit(X / unit, two)
    assert ours.log_evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    Z = np.random.default_rng(1).normal(size=(30, 2))
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z / unit), atol=2e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_units_of_the_columns_do_not_matter_to_a_kernel_left_open(classes):
    X, two, three, _ = sample(30)
    y = two if classes == 2 else three
    a, b = np.array([1e-6, 1e6]), np.array([1e-6, -3e6])
    plain = GaussianProcessClassifier("1.0*RBF()", random_state=0).fit(X, y)
    other = GaussianProcessClassifier("1.0*RBF()", random_state=0).fit(X * a + b, y)
    Z = np.random.default_rng(1).normal(size=(20, 2))
    assert other.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-5)
    np.testing.assert_allclose(other.predict_proba(Z * a + b), plain.predict_proba(Z), atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_weight_two_is_a_row_twice_and_weight_zero_none(classes):
    X, two, three, _ = sample()
    y = two if classes == 2 else three
    w = np.ones(len(y))
    w[:4], w[4:7] = 2.0, 0.0
    rows = np.r_[0:4, 0:4, 7 : len(y)]
    a = GaussianProcessClassifier("2.0*RBF(1.0)", random_state=0).fit(X, y, sample_weight=w)
    b = GaussianProcessClassifier("2.0*RBF(1.0)", random_state=0).fit(X[rows], y[rows])
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, abs=1e-8)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_sum_to_one_and_never_contradict_predictions(classes):
    X, two, three, _ = sample()
    names = np.array(["no", "yes", "perhaps"])
    model = GaussianProcessClassifier("4.0*RBF(0.5)", random_state=3)
    model.fit(X, names[two if classes == 2 else three])
    Z = np.random.default_rng(5).normal(size=(200, 2)) * 3
    p = model.predict_proba(Z)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert p.min() >= 0 and set(model.predict(Z)) <= set(names)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(Z))
    assert np.array_equal(model.predict_proba(Z[:3]), model.predict_proba(Z[:3]))
    np.testing.assert_allclose(model.predict_proba(Z[:3]), p[:3], atol=1e-12)


@pytest.mark.parametrize("variance", [0.0, 1e-4, 1.0, 15.0, 17.0, 400.0, 1e8])
def test_the_average_of_the_logistic_function_is_its_integral(variance):
    mean, s = np.array([-30.0, -2.0, 0.0, 0.3, 5.0]), np.sqrt(variance)
    for m, found in zip(mean, average_logistic(mean, np.full(5, variance)), strict=True):
        edge = [] if s == 0 else [z for z in (-m / s,) if -9 < z < 9]
        slow, _ = quad(
            lambda z, m=m: expit(m + s * z) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi),
            -9,
            9,
            points=edge or None,
            epsabs=1e-12,
            limit=500,
        )
        assert found == pytest.approx(slow, abs=1e-8)


def test_the_average_of_the_softmax_of_two_is_that_of_the_logistic_function():
    mean, covariance = np.array([[0.2, 1.0], [3.0, -1.0]]), np.array([[[2.0, 0.5], [0.5, 1.0]]] * 2)
    found = average_softmax(mean, covariance, draws(2, 4096, 0))
    np.testing.assert_allclose(found[:, 1], average_logistic(mean @ [-1, 1], np.full(2, 2.0)), atol=1e-3)


def test_the_search_raises_the_evidence_and_ends_where_it_is_flat():
    X, two, three, _ = sample(30)
    for y in (two, three):
        start = GaussianProcessClassifier("1.0*RBF(3.0)", optimizer=None).fit(X, y)
        found = GaussianProcessClassifier("1.0*RBF(3.0)").fit(X, y)
        assert found.log_evidence_ > start.log_evidence_
        value, gradient = found.log_evidence(gradient=True)
        assert value == found.log_evidence_ == pytest.approx(found.log_evidence(found.kernel_.theta))
        assert np.abs(gradient).max() < 1e-2
        more = GaussianProcessClassifier("1.0*RBF(3.0)", n_restarts=2, random_state=0).fit(X, y)
        assert more.log_evidence_ >= found.log_evidence_ - 1e-6


def test_fixed_and_bounded_parameters_are_respected():
    X, two, _, _ = sample()
    k = (2.0 * RBF(1.0)).fix("scale").bounded(lengthscale=(0.9, 1.1))
    with pytest.warns(ConvergenceWarning, match=r"lengthscale = 0\.9 \(its lower end\)"):
        found = GaussianProcessClassifier(k).fit(X, two).kernel_
    assert found.scale == 2.0 and 0.9 <= found.kernel.lengthscale <= 1.1


@pytest.mark.parametrize("classes", [2, 3])
def test_a_precomputed_gram_matrix_gives_the_same(classes):
    X, two, three, _ = sample()
    y, k = (two if classes == 2 else three), 2.0 * RBF(1.0)
    Z = X[:6] + 0.1
    flight = GaussianProcessClassifier(k, optimizer=None, random_state=0).fit(X, y)
    given = GaussianProcessClassifier("precomputed", random_state=0).fit(k(X), y)
    assert given.log_evidence_ == pytest.approx(flight.log_evidence_, abs=1e-12)
    p = given.predict_proba(k(Z, X), diag=k.diag(Z))
    np.testing.assert_allclose(p, flight.predict_proba(Z), atol=1e-10)
    with pytest.raises(InputError, match="diag"):
        given.predict_proba(k(Z, X))
    with pytest.raises(ShapeError, match="diag must hold 6"):
        given.predict_proba(k(Z, X), diag=[1.0])


def test_sparse_rows_and_pandas_columns_give_the_same():
    pandas = pytest.importorskip("pandas")
    X, two, _, _ = sample()
    plain = GaussianProcessClassifier("2.0*RBF(1.0)", optimizer=None).fit(X, two)
    thin = GaussianProcessClassifier("2.0*RBF(1.0)", optimizer=None).fit(sparse.csr_array(X), two)
    np.testing.assert_allclose(thin.predict_proba(X), plain.predict_proba(X), atol=1e-10)
    table = pandas.DataFrame(X, columns=["a", "b"])
    named = GaussianProcessClassifier("2.0*RBF(1.0).on('a')", optimizer=None).fit(table, two)
    assert named.predict(table).shape == (22,)


# ── odd data ────────────────────────────────────────────────────────────────────────────────────────────────


def test_separable_data_give_a_finite_model():
    X = np.r_[np.linspace(-2, -1, 8), np.linspace(1, 2, 8)][:, None]
    y = np.repeat([0, 1], 8)
    model = GaussianProcessClassifier("1.0*Linear()").fit(X, y)
    assert np.isfinite(model.log_evidence_) and np.array_equal(model.predict(X), y)
    p = model.predict_proba([[-1.5], [0.0], [1.5]])[:, 1]
    assert p[0] < 0.3 and p[1] == pytest.approx(0.5) and p[2] > 0.7


def test_equal_rows_with_different_labels_are_undecided():
    X = np.zeros((6, 1))
    for y in ([0, 1, 0, 1, 0, 1], [0, 1, 2, 0, 1, 2]):
        model = GaussianProcessClassifier(RBF(1.0), optimizer=None, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), 1 / len(set(y)), atol=2e-3)
        assert model.certificate_.residual < 1e-9


def test_two_rows_are_enough():
    model = GaussianProcessClassifier("RBF(1.0)", optimizer=None).fit([[0.0], [3.0]], [False, True])
    assert model.predict([[-1.0], [4.0]]).tolist() == [False, True]


@pytest.mark.parametrize("scale", [1e-8, 1e4, 1e10])
@pytest.mark.parametrize("classes", [2, 3])
def test_weak_and_strong_priors_still_have_a_mode(scale, classes):
    X, two, three, _ = sample()
    y = two if classes == 2 else three
    model = GaussianProcessClassifier(scale * RBF(1.0), optimizer=None).fit(X, y)
    assert model.certificate_.residual < 1e-6
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("scale", [1e4, 1e7])
def test_separated_classes_and_a_high_prior_converge(scale):
    X = np.random.default_rng(0).normal(size=(150, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.7])
    for likelihood in (Softmax(y, 3), Logistic(np.where(y > 0, 1.0, -1.0))):
        found = likelihood.mode((scale * RBF(1.4))(X))
        assert found.status == "converged" and found.residual < 1e-8


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_high_prior_has_its_mode_whatever_the_rounding_of_the_machine(seed, scale):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.7])
    K = (scale * RBF(1.4))(X)
    for likelihood in (Softmax(y, 3), Logistic(np.where(y > 0, 1.0, -1.0))):
        found = likelihood.mode(K)
        assert found.status == "converged", found.residual
        wide = (K.astype(np.longdouble) @ found.a.astype(np.longdouble)).astype(float)
        rounding = np.finfo(float).eps * scale * np.abs(found.a).sum()
        assert np.abs(found.a - likelihood.gradient(wide)).max() <= max(1e-8, 10 * rounding)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_whitened_mode_is_the_mode(scale):
    X, two, three, _ = sample(20)
    K = (scale * RBF(1.0))(X)
    for likelihood in (
        Softmax(np.unique(three, return_inverse=True)[1], 3),
        Logistic(np.where(two == two[0], 1.0, -1.0)),
    ):
        found = likelihood.mode(K)
        white = whitened_mode(K, likelihood, likelihood.start().shape, 100)
        np.testing.assert_allclose(white.f, found.f, atol=1e-7)
        assert white.value - white.half_logdet == pytest.approx(found.evidence, abs=1e-8)
    assert whitened_mode(-K, likelihood, likelihood.start().shape, 100) is None


def test_one_class_is_refused():
    with pytest.raises(InputError, match="one class only"):
        GaussianProcessClassifier().fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(InputError, match="one class only"):
        GaussianProcessClassifier().fit([[0.0], [1.0]], ["a", "b"], sample_weight=[1.0, 0.0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_invalid_kernel_is_announced_or_refused():
    X, two, _, _ = sample()
    k = Sigmoid(0.05, offset=-0.1)
    with pytest.warns(InvalidKernelWarning, match="lowest eigenvalue"):
        GaussianProcessClassifier(k, optimizer=None).fit(X, two)
    with pytest.raises(InvalidKernelError, match="validity"):
        GaussianProcessClassifier(k, optimizer=None, strict=True).fit(X, two)


def test_a_function_of_two_points_can_be_the_kernel():
    X, two, _, _ = sample()
    k = Custom(lambda a, b: float(np.exp(-np.sum((a - b) ** 2) / 2)))
    a = GaussianProcessClassifier(k).fit(X, two)
    b = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, two)
    assert a.log_evidence_ == pytest.approx(b.log_evidence_)
    assert any("not proved" in note for note in a.certificate_.notes)


def test_too_few_iterations_are_said():
    X, two, _, _ = sample()
    with pytest.warns(ConvergenceWarning, match="max_iter_newton"):
        model = GaussianProcessClassifier("9.0*RBF(1.0)", optimizer=None, max_iter_newton=1).fit(X, two)
    assert model.certificate_.status == "limit" and model.certificate_.residual > 1e-9


@pytest.mark.parametrize(
    "bad",
    [
        {"optimizer": "Adam"},
        {"n_restarts": -1},
        {"max_iter": 0},
        {"max_iter_newton": 1.5},
        {"tol": 0.0},
        {"tol": True},
        {"max_seconds": -1},
        {"n_draws": 0},
        {"kernel": 3},
    ],
)
def test_bad_parameters_are_refused_with_their_value(bad):
    with pytest.raises(ParameterError):
        GaussianProcessClassifier(**bad).fit([[0.0], [1.0]], [0, 1])


def test_more_memory_than_allowed_is_refused():
    with pytest.raises(MemoryBudgetError, match="memory='1KiB'"):
        GaussianProcessClassifier(memory="1KiB").fit(np.arange(10.0)[:, None], np.arange(10) % 2)


def test_a_limit_of_seconds_keeps_the_best():
    X, two, _, _ = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessClassifier("1.0*RBF(3.0)", max_seconds=1e-6).fit(X, two)
    assert model.certificate_.status == "limit" and np.isfinite(model.log_evidence_)


def test_the_linear_kernel_gives_a_linear_boundary():
    X, _, _, _ = sample(30)
    y = (X @ [1.0, -2.0] > 0).astype(int)
    model = GaussianProcessClassifier(10.0 * Linear(), optimizer=None).fit(X, y)
    mean, _ = model.latent([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert mean[0] + mean[1] == pytest.approx(mean[2])


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GaussianProcessClassifier(n_draws=256, max_iter=5)])
def test_the_contract(estimator, check):
    check(estimator)


def test_words_are_counted_once_for_a_whole_search(monkeypatch):
    calls = []
    original = Text._tokens

    def counted(self, *args):
        calls.append(self)
        return original(self, *args)

    texts = [f"{'red' if i % 2 else 'blue'} thing {i % 5}" for i in range(20)]
    monkeypatch.setattr(Text, "_tokens", counted)
    with pytest.warns(ConvergenceWarning, match="after 5 steps"):
        GaussianProcessClassifier(1.0 * Text(), max_iter=5).fit(texts, np.arange(20) % 2)
    # once for the search and once for the mode that is kept
    assert len(calls) <= 3


def test_a_factor_holds_no_bits_of_other_memory(monkeypatch):
    """Above its diagonal it is rubbish, but that of its own matrix: no accident is compared or saved."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 2))
    y = (A[:, 0] > 0).astype(int)
    taken = np.empty

    def dirty(*args, **options):
        out = taken(*args, **options)
        if out.dtype.kind == "f":
            out.fill(np.nan)
        return out

    clean = GaussianProcessClassifier("RBF(1.0)", optimizer=None).fit(A, y)
    monkeypatch.setattr(np, "empty", dirty)
    model = GaussianProcessClassifier("RBF(1.0)", optimizer=None).fit(A, y)
    assert model.posterior_.lower.tobytes() == clean.posterior_.lower.tobytes()
