"""Random features: unbiased, with an error that falls as stated, measured as stated;
refused where there is no rule.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    RBF,
    SVC,
    ArcCosine,
    Constant,
    Cosine,
    CosineSimilarity,
    Dot,
    ExpDot,
    Exponential,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RandomFeatures,
    RationalQuadratic,
    SpectralMixture,
    White,
)
from mercer.arrays import Rows
from mercer.errors import MercerError, ParameterError
from mercer.kernels.maps.spectral import draw
from mercer.machines.landmarks.sketches import Plan, build

X = np.random.default_rng(0).normal(size=(25, 3))
MIXTURE = SpectralMixture(
    weights=[1.0, 0.5],
    means=[[0.1, 0.2, 0.3], [0.5, 0.0, 0.1]],
    scales=[[0.1, 0.1, 0.1], [0.2, 0.1, 0.3]],
)
FREQUENCIES = ("gaussian", "quasi")
RADIAL = ("gaussian", "orthogonal", "quasi")
CASES = [
    *((RBF(1.5), kind) for kind in RADIAL),
    *((RBF([1.0, 2.0, 0.5]), kind) for kind in RADIAL),
    *((Matern(1.0, nu=2.5), kind) for kind in RADIAL),
    *((Exponential(2.0), kind) for kind in RADIAL),
    *((RationalQuadratic(1.0, alpha=0.7), kind) for kind in RADIAL),
    *((Laplacian([2.0, 1.0, 3.0]), kind) for kind in FREQUENCIES),
    *((Periodic(2.0, lengthscale=0.8), kind) for kind in FREQUENCIES),
    *((MIXTURE, kind) for kind in FREQUENCIES),
    *((RBF(1.0) * Laplacian(2.0), kind) for kind in FREQUENCIES),
    (RBF(1.0).of([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]), "orthogonal"),
    (RBF(1.0).on(0, 2), "orthogonal"),
    (Matern(1.0).on(0) * Periodic(2.0).on(1) * 3.0, "auto"),
    (RBF(1.0) ** 2, "auto"),
    (Cosine(3.0) * RBF(2.0), "auto"),
    (Polynomial(7, offset=0.5, scale=0.2), "tensor-sketch"),
    (Polynomial(6, offset=0.0, scale=0.3), "tensor-sketch"),
    (Polynomial(5, scale=0.3), "maclaurin"),
    (ExpDot(0.3), "auto"),
    (ExpDot(0.2), "maclaurin"),
    (Dot(taylor=[1.0, 0.0, 0.1, 0.0, 0.01, 0.001]), "auto"),
    *((ArcCosine(n), "auto") for n in (0, 1, 2)),
    (2.0 * RBF(1.0) + Linear() + Constant(0.5), "auto"),
    (RBF(1.0) * Linear(), "auto"),
    ((RBF(1.0) + 0.5 * Linear()) * ExpDot(0.2), "auto"),
    (ExpDot(0.2) ** 2, "auto"),
    (Polynomial(8, scale=0.3).normalized(), "auto"),
    (RBF(1.0).times(lambda A: 1 + A[:, 0] ** 2), "auto"),
    (RBF(1.0).of(np.sinh), "auto"),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([RandomFeatures(n_components=10, random_state=0)])
def test_the_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("kernel", "kind"), CASES, ids=lambda v: str(v)[:40])
def test_the_features_are_unbiased_and_their_error_falls(kernel, kind):
    """The mean over many draws is the kernel to within its own standard error; more features, less error."""
    A = X[:12]
    K, draws, size = kernel(A), 100, 24
    upper = np.triu_indices(len(A), 1)

    def errors(size: int, seeds: range) -> np.ndarray:
        out = []
        for seed in seeds:
            sketch = build(kernel, size, Plan(Rows(A), kind, np.random.default_rng(seed)))
            P = sketch(Rows(A))
            assert P.shape[1] == sketch.dimension <= size
            out.append((P @ P.T - K)[upper])
        return np.array(out)

    e = errors(size, range(draws))
    z = e.mean(axis=0) / (e.std(axis=0) / np.sqrt(draws))
    assert np.sqrt(np.mean(z**2)) < 2.0  # 1 is expected; the pairs of one draw depend on one another
    more = errors(16 * size, range(6))
    assert np.sqrt(np.mean(more**2)) < 0.5 * np.sqrt(np.mean(e**2))  # 1/4 is expected of 16 times as many


def test_a_single_feature_is_unbiased_too():
    got = [RandomFeatures(RBF(1.0), 1, random_state=s).fit([[0.0], [0.8]]) for s in range(400)]
    values = np.array([np.prod(phi.transform([[0.0], [0.8]])) for phi in got])
    assert abs(values.mean() - np.exp(-0.32)) < 4 * values.std() / 20


def test_the_error_of_independent_frequencies_is_the_one_of_theory():
    """Var = (1 + k(2δ) - 2 k(δ)²) / (2m) with m pairs of cosine and sine."""
    k, m, draws = RBF(1.0), 8, 4000
    delta = np.array([[0.0], [0.9]])
    s = k.spectrum(1)
    got = np.array(
        [np.cos(draw(s, m, "gaussian", np.random.default_rng(i)) * 0.9).mean() for i in range(draws)]
    )
    exact = float(k(delta)[0, 1])
    variance = (1 + float(k([[0.0]], [[1.8]])[0, 0]) - 2 * exact**2) / (2 * m)
    assert got.mean() == pytest.approx(exact, abs=4 * np.sqrt(variance / draws))
    assert got.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / draws))


@pytest.mark.parametrize("d", [3, 12])
def test_orthogonal_and_quasi_random_frequencies_are_better_than_independent_ones(d):
    A = np.random.default_rng(1).normal(size=(60, d))
    rms = {
        kind: np.mean(
            [
                RandomFeatures(RBF(np.sqrt(d)), 384, kind=kind, random_state=s).fit(A).error_.rms
                for s in range(5)
            ]
        )
        for kind in RADIAL
    }
    assert rms["orthogonal"] < 0.9 * rms["gaussian"] and rms["quasi"] < 0.9 * rms["gaussian"]


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3),
        Cosine([3.0, 2.0, 5.0]),
        Cosine(3.0).on(1),
        Periodic(2.0).on(0),
        3.0 * Periodic(1.5, lengthscale=2.0).on(0),
        CosineSimilarity(),
        2.0 * Linear() + Polynomial(2) + Periodic(2.0).on(1),
        Constant(2.0),
        Linear() * Periodic(2.0, lengthscale=2.0).on(1),
    ],
    ids=str,
)
def test_what_is_finite_is_exact(kernel):
    phi = RandomFeatures(kernel, 200, random_state=0).fit(X)
    P = phi.transform(X)
    np.testing.assert_allclose(P @ P.T, kernel(X), atol=1e-11)
    assert phi.sketch_.exact and phi.error_.max < 1e-11 and "exact" in phi.certificate_.method
    assert phi.n_components_ <= 200


def test_the_diagonal_of_frequencies_is_exact():
    P = RandomFeatures(2.5 * Matern(0.3), 10, random_state=0).fit_transform(X)
    np.testing.assert_allclose((P**2).sum(axis=1), 2.5)


def test_the_measured_error_is_the_one_of_a_plain_loop(monkeypatch):
    phi = RandomFeatures(RBF(1.0), 40, random_state=3).fit(X)
    P, K = phi.transform(X), RBF(1.0)(X)
    e = np.abs(P @ P.T - K)[np.triu_indices(len(X), 1)]
    assert phi.error_.pairs == 2000 and phi.error_.max == pytest.approx(e.max())
    true = np.sqrt(np.mean(e**2))
    assert abs(phi.error_.rms - true) < 5 * phi.error_.standard_error
    assert 0 < phi.error_.standard_error < 0.1 * phi.error_.rms
    assert "on 2000 pairs" in str(phi.certificate_)


def test_noise_is_kept_apart():
    phi = RandomFeatures(RBF(1.0) + White(0.2), 40, random_state=0).fit(X)
    P = phi.transform(X)
    np.testing.assert_allclose(phi.operator(X).dense(), P @ P.T + 0.2 * np.eye(len(X)))
    np.testing.assert_allclose(phi.operator(X, X[:4]).dense(), P @ P[:4].T)


def test_in_blocks_it_is_the_same(monkeypatch):
    from mercer.machines.landmarks import selection as landmarks

    A = np.random.default_rng(0).normal(size=(700, 3))
    phi = RandomFeatures(RBF(1.0) + Linear(), 40, memory=1000, random_state=0).fit(A)
    whole = phi.transform(A)
    monkeypatch.setattr(landmarks, "BLOCK_BYTES", 1)
    np.testing.assert_allclose(phi.transform(A), whole, atol=1e-13)
    K = phi.operator(A)
    assert K.kind == "features"
    np.testing.assert_allclose(K @ A, whole @ (whole.T @ A), atol=1e-9)
    np.testing.assert_allclose(K.diag(), (whole**2).sum(axis=1))


def test_sparse_rows_names_and_pickles():
    import pandas as pd

    S = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    for k in (
        RBF(1.0),
        Polynomial(6),
        ExpDot(0.1),
        ArcCosine(1),
        RBF(1.0).on(0) * Linear(),
        Polynomial(9, offset=0.0),
    ):
        phi = RandomFeatures(k, 30, random_state=0).fit(S)
        np.testing.assert_allclose(phi.transform(S), phi.transform(S.toarray()), atol=1e-12)
        again = pickle.loads(pickle.dumps(phi))
        np.testing.assert_array_equal(again.transform(X), phi.transform(X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = RandomFeatures(RBF(1.0).on("a") + ExpDot(0.2).on("b", "c"), 30, random_state=0).fit(frame)
    plain = RandomFeatures(RBF(1.0).on(0) + ExpDot(0.2).on(1, 2), 30, random_state=0).fit(X)
    np.testing.assert_allclose(named.transform(frame), plain.transform(X))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (mercer.Brownian(), "no rule for Brownian"),
        (mercer.Custom(lambda a, b: 1.0), "no rule for Custom"),
        (mercer.Stationary(lambda d: np.exp(-np.abs(d).sum(-1))), "no known spectrum"),
        (mercer.Sigmoid(1.0), "no rule for Sigmoid"),
        (Dot(np.sinh), "no finite list of Taylor"),
        (Dot(taylor=[1.0, -1.0]), "negative Taylor"),
        (RBF(1.0) - Linear(), "negative factor"),
        (RBF(1.0) ** 0.5, "no rule for"),
        (Periodic(1.0, lengthscale=1e-3), "terms of its Fourier series"),
        ("precomputed", "Use Nystroem"),
    ],
    ids=str,
)
def test_what_has_no_rule_is_refused_with_the_reason(kernel, words):
    A = np.abs(X) if kernel != "precomputed" else RBF(1.0)(X)
    with pytest.raises(ParameterError, match=words):
        RandomFeatures(kernel, 20).fit(A)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_components": 0},
        {"n_components": 2.5},
        {"kind": "best"},
        {"kernel": Laplacian(1.0), "kind": "orthogonal"},
        {"kernel": RBF([1.0, 2.0])},
        {"kernel": RBF(1.0) + Matern(1.0) + Laplacian(1.0), "n_components": 5},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(MercerError):
        RandomFeatures(**bad).fit(X)


def test_one_row_and_constant_rows():
    one = RandomFeatures(RBF(1.0), 10, random_state=0).fit([[1.0, 2.0]])
    assert one.transform([[1.0, 2.0]]).shape == (1, 10) and one.error_.max < 1e-12
    with pytest.warns(mercer.errors.PrecisionWarning):
        RandomFeatures("RBF()", 10, random_state=0).fit(np.ones((5, 2)))


def test_a_machine_on_random_features_says_so():
    from sklearn.datasets import make_moons

    A, y = make_moons(120, noise=0.15, random_state=0)
    model = SVC("RBF(0.7)", C=3.0, approximation=RandomFeatures(n_components=300, random_state=0)).fit(A, y)
    assert model.score(A, y) > 0.95 and mercer.verify(model, A, y)
    assert "quasi-random frequencies" in str(model.certificate_) and "on 2000 pairs" in str(
        model.certificate_
    )
    exact = SVC("Polynomial(2)").fit(A, y)
    same = SVC("Polynomial(2)", approximation=RandomFeatures(n_components=6)).fit(A, y)
    np.testing.assert_allclose(same.decision_function(A), exact.decision_function(A), atol=1e-7)
