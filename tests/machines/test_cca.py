"""KernelCCA: the generalised eigenproblem, scikit-learn's CCA in the linear limit, new pairs,
and bad input.
"""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.cross_decomposition import CCA
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RBF, KernelCCA, Linear, Polynomial
from mercer.errors import InputError, InvalidKernelWarning, ParameterError, ShapeError


@parametrize_with_checks([KernelCCA(n_components=1)])
@pytest.mark.filterwarnings("ignore")
def test_the_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(60, 1))
    X = np.hstack([shared, rng.normal(size=(60, 2))]) @ rng.normal(size=(3, 3))
    Y = np.hstack([shared + 0.3 * rng.normal(size=(60, 1)), rng.normal(size=(60, 1))]) @ rng.normal(
        size=(2, 2)
    )
    return X, Y


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize("kernels", [(RBF(2.0), RBF(1.0)), (Polynomial(2), Linear())], ids=str)
@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_it_solves_the_generalised_eigenproblem(views, kernels, ridge):
    X, Y = views
    K, L = centred(kernels[0](X)), centred(kernels[1](Y))
    n = len(K)
    P, Q = K + ridge * np.trace(K) * np.eye(n), L + ridge * np.trace(L) * np.eye(n)
    top = np.block([[np.zeros((n, n)), K @ L], [L @ K, np.zeros((n, n))]])
    both = np.block([[P @ P, np.zeros((n, n))], [np.zeros((n, n)), Q @ Q]])
    expected = eigh(top, both, eigvals_only=True)[::-1][:3]
    model = KernelCCA(kernels[0], 3, kernel_y=kernels[1], regularization=ridge).fit(X, Y)
    np.testing.assert_allclose(model.singular_values_, expected, atol=1e-7)
    a, b = model.alpha_[:, 0], model.beta_[:, 0]
    value = a @ K @ L @ b / np.linalg.norm(P @ a) / np.linalg.norm(Q @ b)
    assert value == pytest.approx(expected[0], abs=1e-7)
    assert model.certificate_.converged and len(model.certificate_.residuals) == 3


def test_with_linear_kernels_and_little_ridge_it_is_canonical_correlation(views):
    X, Y = views
    f, g = CCA(2, scale=False, tol=1e-12, max_iter=5000).fit(X, Y).transform(X, Y)
    expected = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(2)]
    model = KernelCCA("Linear()", 2, regularization=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.correlations_, expected, atol=1e-4)


def test_scores_of_the_sample_have_variance_one_and_the_stated_correlation(views):
    X, Y = views
    model = KernelCCA(RBF(2.0), 2, regularization=0.02).fit(X, Y)
    f, g = model.transform(X, Y)
    np.testing.assert_allclose(f, model.transform(X), atol=1e-12)
    for scores in (f, g):
        np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-8)
        np.testing.assert_allclose(scores.std(axis=0), 1, rtol=1e-8)
    found = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(2)]
    np.testing.assert_allclose(found, model.correlations_, atol=1e-8)
    assert model.score(X, Y) == pytest.approx(np.mean(found), abs=1e-8)


def test_a_curved_relation_is_found_on_new_pairs_and_noise_is_not():
    rng = np.random.default_rng(1)
    t = rng.uniform(-2, 2, size=(200, 1))
    view = np.hstack([t**2, rng.normal(size=(200, 1))]) + 0.05 * rng.normal(size=(200, 2))
    model = KernelCCA("RBF()", 1).fit(t[:100], view[:100])
    assert model.score(t[100:], view[100:]) > 0.9
    other = rng.normal(size=(200, 2))
    assert abs(KernelCCA("RBF()", 1).fit(t[:100], other[:100]).score(t[100:], other[100:])) < 0.4


def test_precomputed_is_on_the_fly(views):
    X, Y = views
    a = KernelCCA(RBF(2.0), 2, kernel_y=RBF(1.0)).fit(X, Y)
    b = KernelCCA("precomputed", 2).fit(RBF(2.0)(X), RBF(1.0)(Y))
    np.testing.assert_allclose(a.singular_values_, b.singular_values_, atol=1e-10)
    for mine, other in zip(
        a.transform(X[:5], Y[:5]), b.transform(RBF(2.0)(X[:5], X), RBF(1.0)(Y[:5], Y)), strict=True
    ):
        np.testing.assert_allclose(mine, other, atol=1e-8)


def test_bad_input_is_refused_and_invalid_kernels_are_announced(views):
    X, Y = views
    with pytest.raises(ShapeError, match="60 rows and y has 10"):
        KernelCCA().fit(X, Y[:10])
    with pytest.raises(InputError, match="None"):
        KernelCCA().fit(X, None)
    with pytest.raises(ShapeError, match="columns"):
        KernelCCA().fit(X, Y).transform(X, Y[:, :1])
    for changes in ({"n_components": 0}, {"regularization": 0.0}, {"regularization": "much"}):
        with pytest.raises(ParameterError, match=next(iter(changes))):
            KernelCCA(**changes).fit(X, Y)
    with pytest.warns(InvalidKernelWarning, match="negative eigenvalue"):
        KernelCCA("Sigmoid(2.0)", 1, kernel_y="RBF()", regularization=1.0).fit(X, Y)
