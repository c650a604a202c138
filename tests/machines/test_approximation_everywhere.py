"""`approximation=` of every machine that has it: at full rank the machine itself,
below it the machine in the features.
"""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import mercer
from mercer import (
    RBF,
    SVDD,
    SVR,
    Adatron,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLeastSquares,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    RandomFeatures,
)
from mercer.errors import InputError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.5, 1.5, size=(40, 2))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=40)
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
NEW = X[:15] + 0.02
SOME = Nystroem(landmarks=X[::4] + 0.01)

# name: a machine with a kernel, what it learns, how it answers
MACHINES = {
    "ridge": (KernelRidge("RBF(0.7)", 0.1), NUMBERS, "predict"),
    "ridge with intercept": (KernelRidge("RBF(0.7)", 0.1, fit_intercept=True), NUMBERS, "predict"),
    "ridge, two targets": (KernelRidge("RBF(0.7)", [0.1, 1.0]), np.c_[NUMBERS, X[:, 0]], "predict"),
    "ridge by conjugate gradients": (KernelRidge("RBF(0.7)", 0.1, solver="cg"), NUMBERS, "predict"),
    "ridge path": (KernelRidgeCV("RBF(0.7)", [0.01, 0.1, 1.0]), NUMBERS, "predict"),
    "ridge path on folds": (KernelRidgeCV("RBF(0.7)", [0.01, 0.1, 1.0], cv=3), NUMBERS, "predict"),
    "logistic": (KernelMachine("RBF(0.7)", "logistic", 0.1), LABELS, "decision_function"),
    "softmax": (KernelMachine("RBF(0.7)", "logistic", 0.1), np.arange(40) % 3, "decision_function"),
    "hinge": (KernelMachine("RBF(0.7)", "hinge", 0.1), LABELS, "decision_function"),
    "huber": (KernelMachine("RBF(0.7)", "huber", 0.1), NUMBERS, "predict"),
    "descent": (KernelLeastSquares("RBF(0.7)", max_iter=30, tol=0.0), NUMBERS, "predict"),
    "early stopping": (
        KernelLeastSquares("RBF(0.7)", max_iter=30, tol=0.0, early_stopping=True, random_state=0),
        NUMBERS,
        "predict",
    ),
    "ball": (SVDD("RBF(0.7)", 0.3, tol=1e-8), None, "decision_function"),
    "perceptron": (KernelPerceptron("RBF(0.7)", max_iter=10), LABELS, "decision_function"),
    "averaged": (
        KernelPerceptron("RBF(0.7)", max_iter=10, average="averaged"),
        LABELS,
        "decision_function",
    ),
    "voted": (KernelPerceptron("RBF(0.7)", max_iter=10, average="voted"), LABELS, "decision_function"),
    "adatron": (Adatron("RBF(0.7)", 5.0, tol=1e-6), LABELS, "decision_function"),
    "k-means": (KernelKMeans("RBF(0.7)", 3, random_state=0), None, "transform"),
    "spectral k-means": (KernelKMeans("RBF(0.7)", 3, init="spectral", random_state=0), None, "transform"),
    "components": (KernelPCA("RBF(0.7)", 4), None, "transform"),
    "process": (
        GaussianProcessRegressor("RBF(0.7)", noise=0.05, optimizer=None, normalize_y=True),
        NUMBERS,
        "predict",
    ),
}
# which rows are held out, or where a search begins, depends on their number
BY_NUMBER = ("early stopping", "k-means", "spectral k-means", "ridge path on folds")
WEIGHTED = [
    name
    for name, (machine, _, _) in MACHINES.items()
    if has_fit_parameter(machine, "sample_weight") and name not in BY_NUMBER
]


def fitted(name, rows=X, y=None, weight=None, **params):
    machine, targets, _ = MACHINES[name]
    machine = clone(machine).set_params(**params)
    targets = targets if y is None else y
    given = () if targets is None else (targets,)
    keywords = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(rows, *given, **keywords)


def answers(name, model, rows=NEW):
    return getattr(model, MACHINES[name][2])(rows)


@pytest.mark.parametrize("name", MACHINES)
def test_with_all_points_as_landmarks_it_is_the_machine_itself(name):
    exact = fitted(name)
    model = fitted(name, approximation=Nystroem(landmarks=X))
    # on the rows of fit: elsewhere k(x, x) is not all in the span of the landmarks
    np.testing.assert_allclose(answers(name, model, X), answers(name, exact, X), atol=1e-5)
    assert model.kernel_ == exact.kernel_ == RBF(0.7)
    note = next(n for n in model.certificate_.notes if "replaced by" in n)
    assert "40 Nyström features" in note and f"{model.approximation_.residual_trace_:.4g}" in note
    if name not in ("ball", "k-means", "spectral k-means"):
        np.testing.assert_allclose(answers(name, model), answers(name, exact), atol=1e-5)
    assert not hasattr(exact, "approximation_") and not any("replaced" in n for n in exact.certificate_.notes)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", ["landmarks", "random"])
def test_below_full_rank_it_is_the_machine_of_the_features(name, kind):
    how = SOME if kind == "landmarks" else RandomFeatures(n_components=10, random_state=0)
    model = fitted(name, approximation=how)
    P, Q = model.approximation_.transform(X), model.approximation_.transform(NEW)
    peer = fitted(name, rows=P, kernel="Linear()")
    a, b = answers(name, model), answers(name, peer, Q)
    if name == "components":  # up to signs
        a, b = np.abs(a), np.abs(b)
    np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answers(name, again), answers(name, model))


@pytest.mark.parametrize("name", WEIGHTED)
def test_weight_two_is_a_row_twice(name):
    w = np.random.default_rng(1).integers(0, 3, size=40)
    twice = np.repeat(np.arange(40), w)
    y = MACHINES[name][1]
    a = fitted(name, weight=w, approximation=SOME)
    b = fitted(name, rows=X[twice], y=None if y is None else y[twice], approximation=SOME)
    np.testing.assert_allclose(answers(name, a), answers(name, b), atol=1e-5)


@pytest.mark.parametrize("name", MACHINES)
def test_sparse_rows_and_precomputed_grams(name):
    dense = fitted(name, approximation=Nystroem(landmarks=np.arange(0, 40, 3)))
    thin = fitted(name, rows=sparse.csr_array(X), approximation=Nystroem(landmarks=np.arange(0, 40, 3)))
    np.testing.assert_allclose(answers(name, thin, sparse.csr_array(NEW)), answers(name, dense), atol=1e-7)
    np.testing.assert_allclose(answers(name, thin, NEW), answers(name, dense), atol=1e-7)
    k = RBF(0.7)
    given = fitted(
        name, rows=k(X), kernel="precomputed", approximation=Nystroem(landmarks=np.arange(0, 40, 3))
    )
    np.testing.assert_allclose(answers(name, given, k(NEW, X)), answers(name, dense), atol=1e-7)


@pytest.mark.parametrize(
    "name", ["ridge", "descent", "logistic", "perceptron", "k-means", "components", "process"]
)
def test_noise_stands_on_the_diagonal(name):
    kernel = "RBF(0.7) + White(0.2)"
    exact, model = (
        fitted(name, kernel=kernel),
        fitted(name, kernel=kernel, approximation=Nystroem(landmarks=X)),
    )
    a, b = answers(name, model, X), answers(name, exact, X)
    np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["ridge", "ridge path", "logistic", "descent", "perceptron", "k-means", "components", "process"]
)
def test_no_square_array_is_made(name):
    n = 2500
    rows = np.random.default_rng(0).uniform(-1.5, 1.5, size=(n, 2))
    y = {"logistic": rows[:, 0] > 0, "perceptron": rows[:, 0] > 0}.get(name, np.sin(rows[:, 0]))
    params = {"max_iter": 3} if name in ("logistic", "descent", "perceptron") else {}
    params["approximation"] = Nystroem(n_components=15, random_state=0)
    fitted(name, rows=rows[:50], y=None if MACHINES[name][1] is None else y[:50], **params)  # imports
    tracemalloc.start()
    fitted(name, rows=rows, y=None if MACHINES[name][1] is None else y, **params)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 3


def test_partial_fit_learns_the_features_from_the_first_rows():
    first = Nystroem(landmarks=X[::4])
    a = KernelPerceptron("RBF(0.7)", approximation=first).partial_fit(X[:20], LABELS[:20], classes=[0, 1])
    a.partial_fit(X[20:], LABELS[20:])
    P = a.approximation_.transform(X)
    b = KernelPerceptron("Linear()").partial_fit(P[:20], LABELS[:20], classes=[0, 1])
    b.partial_fit(P[20:], LABELS[20:])
    np.testing.assert_array_equal(a.mistakes_, b.mistakes_)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(P), atol=1e-10)


# ── Gaussian processes ──────────────────────────────────────────────────────────────────────────────────────


def process(**params):
    return GaussianProcessRegressor("RBF(0.7) + White(0.05)", optimizer=None, **params).fit(X, NUMBERS)


def test_a_process_with_full_rank_has_the_bands_of_the_process():
    exact, model = process(), process(approximation=Nystroem(landmarks=X))
    for a, b in zip(model.predict(NEW, return_cov=True), exact.predict(NEW, return_cov=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)
    for a, b in zip(model.loo(True), exact.loo(True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    assert model.log_marginal_likelihood() == pytest.approx(exact.log_marginal_likelihood())
    assert model.certificate_.residual < 1e-10


def test_a_process_is_the_posterior_of_its_features_and_what_they_leave_out():
    model = process(approximation=SOME)
    P, Q = model.approximation_.transform(X), model.approximation_.transform(NEW)
    A = P @ P.T + 0.05 * np.eye(40)
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, Q @ P.T @ np.linalg.solve(A, NUMBERS), atol=1e-9)
    inside = np.diag(Q @ Q.T - Q @ P.T @ np.linalg.solve(A, P @ Q.T))
    np.testing.assert_allclose(std**2, inside + 1.0 - (Q**2).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(model.predict(NEW, return_cov=True)[1].diagonal(), std**2, atol=1e-12)
    value = -0.5 * (NUMBERS @ np.linalg.solve(A, NUMBERS) + np.linalg.slogdet(2 * np.pi * A)[1])
    assert model.log_marginal_likelihood() == pytest.approx(value)
    far = model.predict([[50.0, 50.0]], return_std=True)[1]
    assert far == pytest.approx(1.0)  # as wide as the prior
    left = np.trace(RBF(0.7)(X) - P @ P.T) / 40
    assert any(f"{left:.3g} of the prior variance" in note for note in model.certificate_.notes)
    assert np.linalg.eigvalsh(model.predict(NEW, return_cov=True)[1])[0] > -1e-12


def test_a_process_with_random_features_and_uneven_noise():
    noise = np.linspace(0.01, 0.2, 40)
    how = RandomFeatures(n_components=30, random_state=0)
    model = GaussianProcessRegressor("RBF(0.7)", noise=noise, optimizer=None, approximation=how).fit(
        X, NUMBERS
    )
    P, Q = model.approximation_.transform(X), model.approximation_.transform(NEW)
    A = P @ P.T + np.diag(noise)
    np.testing.assert_allclose(model.predict(NEW), Q @ P.T @ np.linalg.solve(A, NUMBERS), atol=1e-8)
    B = np.linalg.inv(A)
    np.testing.assert_allclose(model.loo(), NUMBERS - B @ NUMBERS / B.diagonal(), atol=1e-7)


def test_what_a_process_cannot_do_through_an_approximation_is_refused():
    with pytest.raises(ParameterError, match="subset of the rows"):
        GaussianProcessRegressor("RBF(0.7) + White(0.1)", approximation=SOME).fit(X, NUMBERS)
    with pytest.raises(ParameterError, match="has no noise"):
        GaussianProcessRegressor("RBF(0.7)", optimizer=None, approximation=SOME).fit(X, NUMBERS)
    model = process(approximation=SOME)
    for ask in (
        lambda: model.decompose(NEW),
        lambda: model.input_gradient(NEW),
        lambda: model.log_marginal_likelihood(model.kernel_.theta),
    ):
        with pytest.raises(InputError, match="approximation="):
            ask()
    back = model.set_params(approximation=None).fit(X, NUMBERS)
    assert len(back.decompose(NEW)) == 1 and not hasattr(back, "feature_coef_")


def test_other_refusals():
    with pytest.raises(ParameterError, match="approximation of the kernel itself"):
        KernelRidge("RBF(0.7)", solver="nystrom", approximation=SOME).fit(X, NUMBERS)
    with pytest.raises(ParameterError, match="approximation must be"):
        KernelPCA("RBF(0.7)", 2, approximation=10).fit(X)
    assert clone(KernelRidge(approximation=SOME)).get_params()["approximation__n_components"] is None


def test_leave_one_out_and_certificates_are_those_of_the_features():
    model = fitted("ridge", approximation=SOME)
    P = model.approximation_.transform(X)
    H = P @ np.linalg.solve(P.T @ P + 0.1 * np.eye(P.shape[1]), P.T)
    np.testing.assert_allclose(
        NUMBERS - model.loo_predictions_, (NUMBERS - H @ NUMBERS) / (1 - H.diagonal()), atol=1e-9
    )
    assert model.dof_ == pytest.approx(np.trace(H)) and model.solver_ == "primal"
    assert model.certificate_.gap <= 1e-10 * model.certificate_.primal
    margin = SVR("RBF(0.7)", approximation=SOME).fit(X, NUMBERS)
    assert mercer.verify(margin, X, NUMBERS)
    ball = fitted("ball", approximation=SOME)
    assert mercer.verify(ball, X)
    loss = fitted("logistic", approximation=SOME)
    assert mercer.verify(loss, X, LABELS)
    loss.dual_coef_[0, 0] *= 1.01
    assert not mercer.verify(loss, X, LABELS)


# ── mercer.verify for ridge ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("approximation", [None, SOME])
@pytest.mark.parametrize(
    "machine",
    [
        KernelRidge("RBF(0.7)", 0.1),
        KernelRidge("RBF(0.7) + White(0.2)", [0.1, 1.0], fit_intercept=True),
        KernelRidge("Polynomial(2)", 0.1),
        KernelRidge("RBF(0.7)", 0.1, solver="cg"),
        KernelRidgeCV("RBF(0.7)", [0.1, 1.0], alpha_per_target=True, fit_intercept=True),
    ],
    ids=str,
)
def test_verify_finds_one_changed_number_of_a_ridge_model(machine, approximation):
    Y = np.c_[NUMBERS, X[:, 0] ** 3]
    w = np.random.default_rng(2).integers(0, 3, size=40)
    model = clone(machine).set_params(approximation=approximation).fit(X, Y, sample_weight=w)
    found = mercer.verify(model, X, Y, sample_weight=w)
    assert found, str(found)
    assert found.certificates[0].primal == pytest.approx(model.certificate_.primal)
    assert found.certificates[0].dual == pytest.approx(model.certificate_.dual)
    assert "residual" in str(found)
    assert not mercer.verify(model, X, Y)  # other weights
    assert not mercer.verify(model, X + 1e-3, Y, sample_weight=w)
    places = [name for name in ("dual_coef_", "intercept_", "coef_", "feature_coef_") if hasattr(model, name)]
    for name in places:
        if name == "intercept_" and not machine.fit_intercept:
            continue
        if name == "coef_" and approximation is not None:  # predictions use feature_coef_
            continue
        changed = pickle.loads(pickle.dumps(model))
        array = getattr(changed, name)
        at = np.unravel_index(np.argmax(np.abs(array)), array.shape)
        array[at] *= 1.01
        assert not mercer.verify(changed, X, Y, sample_weight=w), name


def test_verify_of_a_ridge_model_on_a_given_matrix():
    k = RBF(0.7)
    model = KernelRidge("precomputed", 0.1).fit(k(X), NUMBERS)
    assert mercer.verify(model, k(X), NUMBERS)
    model.dual_coef_[3] *= 1.01
    assert not mercer.verify(model, k(X), NUMBERS)


def test_leaving_one_out_with_landmarks_is_a_refit_without_the_row_mean_and_band():
    """The band of a row left out has what the landmarks leave out of the prior, as that of any new row."""
    kernel = "1.0*RBF(0.3) + White(0.05)"
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    options = {"optimizer": None, "normalize_y": False, "approximation": Nystroem(landmarks=X[:8])}
    mean, std = GaussianProcessRegressor(kernel, **options).fit(X, y).loo(return_std=True)
    for row in (0, 12, 29):
        others = np.delete(np.arange(30), row)
        again = GaussianProcessRegressor(kernel, **options).fit(X[others], y[others])
        said, band = again.predict(X[[row]], return_std=True, noise=True)
        np.testing.assert_allclose([mean[row], std[row]], [said[0], band[0]], rtol=1e-8)
