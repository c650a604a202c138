"""The Gaussian process twins against the originals, and the translation of their kernels there and back."""

import inspect

import numpy as np
import pytest
import sklearn.gaussian_process as peer
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.gaussian_process.tests._mini_sequence_kernel import MiniSeqKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
import mercer.sklearn as twin
from mercer.errors import ParameterError
from mercer.sklearn.gp_kernels import Sample, cross, diagonal, operator, to_mercer, to_peer, translate

NAMES = ("GaussianProcessClassifier", "GaussianProcessRegressor")


class Louder(RBF):
    """A user's subclass: its own values, which no table of names can know."""

    def __call__(self, X, Y=None, eval_gradient=False):
        out = super().__call__(X, Y, eval_gradient)
        return (2 * out[0], 2 * out[1]) if eval_gradient else 2 * out

    def diag(self, X):
        return 2 * super().diag(X)


def exact(d):
    """Kernels whose gradient scikit-learn has in closed form."""
    return [
        ConstantKernel(2.3),
        WhiteKernel(0.3),
        RBF(0.7),
        RBF([0.7]),
        RBF(0.7 + np.arange(d)),
        RBF(0.7, "fixed"),
        Matern(1.2, nu=1.5),
        Matern(0.5 + np.arange(d), nu=0.5),
        Matern(1.1, nu=2.5),
        Matern(1.1, nu=np.inf),
        RationalQuadratic(0.8, 1.7),
        RationalQuadratic(0.8, 1.7, length_scale_bounds="fixed"),
        ExpSineSquared(0.9, 1.4),
        ExpSineSquared(0.9, 1.4, periodicity_bounds="fixed"),
        DotProduct(0.6),
        DotProduct(0.0, "fixed"),
        RBF(1.0) ** 0.5,
        Exponentiation(RBF(1.0) + ConstantKernel(0.5), 3),
        RBF(2.0) * ConstantKernel(1.5) * ExpSineSquared(0.9, 1.4) + WhiteKernel(0.1, "fixed"),
        ConstantKernel(2.0) * RBF(1.0)
        + WhiteKernel(0.1) * DotProduct(0.4)
        + RationalQuadratic(1.0, 2.0) ** 2,
        Louder(0.9),
        3.0 * Louder(0.9) + WhiteKernel(0.2),
    ]


def differences():
    """Kernels whose gradient scikit-learn takes by differences."""
    metrics = ("linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2", "additive_chi2")
    return [
        Matern(1.1, nu=1.2),
        *(PairwiseKernel(gamma=0.4, metric=m) for m in metrics),
        PairwiseKernel(gamma=0.4, metric="polynomial", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.5}),
        PairwiseKernel(gamma=0.4, gamma_bounds="fixed", metric="rbf"),
    ]


@pytest.mark.parametrize("d", [1, 3])
def test_values_diagonal_and_gradient_are_those_of_the_peer(d):
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(0.1, 2, size=(12, d)), rng.uniform(0.1, 2, size=(5, d))
    W = rng.normal(size=(12, 12))
    W += W.T
    new, old = Sample.of(Z, True), Sample.of(X, True)
    for kernels, rtol in ((exact(d), 1e-11), (differences(), 1e-4)):
        for k in kernels:
            K, slopes = k(X, eval_gradient=True)
            op = operator(k, old)
            np.testing.assert_allclose(op.dense(), K, rtol=1e-13, atol=1e-14, err_msg=repr(k))
            np.testing.assert_allclose(cross(k, new, old), k(Z, X), rtol=1e-13, atol=1e-14, err_msg=repr(k))
            np.testing.assert_allclose(diagonal(k, new), k.diag(Z), rtol=1e-13, err_msg=repr(k))
            slow = np.einsum("ij,ijk->k", W, slopes)
            found = op.contract(W=W)
            assert found.shape == k.theta.shape
            np.testing.assert_allclose(found, slow, rtol=rtol, atol=10 * rtol, err_msg=repr(k))


def test_what_has_no_counterpart_is_evaluated_by_itself():
    for k in (Louder(1.0), PairwiseKernel(metric="additive_chi2"), RBF([1.0, 2.0]), WhiteKernel(0.0)):
        assert translate(k, 3) is None
    assert (
        translate(ExpSineSquared(1.0, 1.0), 2) is None and translate(ExpSineSquared(1.0, 1.0), 1) is not None
    )
    assert translate(CompoundKernel([RBF(1.0)]), 1) is None
    with pytest.raises(ParameterError, match="Louder has no counterpart"):
        to_mercer(Louder(1.0))


@pytest.mark.parametrize("k", [k for k in exact(1) if "Louder" not in repr(k)], ids=repr)
def test_translation_keeps_the_function_the_bounds_and_what_is_fixed(k):
    X = np.linspace(0.2, 2.0, 7)[:, None]
    there = to_mercer(k, columns=1)
    np.testing.assert_allclose(there(X), k(X), rtol=1e-13, atol=1e-14)
    assert len(there.theta) == k.n_dims
    if k.n_dims:
        values = np.exp(k.theta)
        ours = sorted(p.value for p in there.parameters if p.free)
        square = isinstance(k, DotProduct)
        if "DotProduct" not in repr(k) or square:
            np.testing.assert_allclose(ours, sorted(values**2 if square else values))
    assert mercer.parse(str(there)) == there


@pytest.mark.parametrize(
    "text",
    [
        "2.0*RBF([1.0, 2.0]).bounded(lengthscale=(0.1, 10.0)) + White(0.5).fix('noise')",
        "Constant(2.0)*Matern(1.5, nu=2.5) + Exponential(2.0) + Linear()",
        "RationalQuadratic(1.0, alpha=2.0).fix('alpha')**2 + 0.5*Linear()",
    ],
)
def test_there_and_back(text):
    k = mercer.parse(text)
    X = np.random.default_rng(0).normal(size=(6, 2))
    there = to_peer(k)
    np.testing.assert_allclose(there(X), k(X), rtol=1e-13, atol=1e-14)
    back = to_mercer(there, columns=2)
    np.testing.assert_allclose(back(X), k(X), rtol=1e-13, atol=1e-14)
    assert len(back.theta) == len(k.theta) == there.n_dims


def test_the_way_back_refuses_what_the_peer_cannot_say():
    with pytest.raises(ParameterError, match="no kernel for ArcCosine"):
        to_peer(mercer.ArcCosine(1))
    k = mercer.Periodic(1.5, lengthscale=0.7)
    X = np.linspace(0, 2, 5)[:, None]
    np.testing.assert_allclose(to_peer(k)(X), k(X), rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_defaults_are_the_same(name):
    ours, theirs = getattr(twin, name), getattr(peer, name)
    assert ours().get_params() == theirs().get_params()
    for method in ("__init__", "fit", "predict", "log_marginal_likelihood"):
        a, b = (list(inspect.signature(getattr(c, method)).parameters) for c in (ours, theirs))
        assert a == b
    public = {n for n in dir(theirs) if not n.startswith("_")}
    assert public <= set(dir(ours))


def waves(n=40):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 4, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n), rng.uniform(0, 4, size=(9, 2))


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_regression_has_the_numbers_of_the_peer(normalize_y, targets):
    X, y, Z = waves()
    y = y if targets == 1 else np.column_stack([y, 0.5 * np.cos(2 * X[:, 0])])
    make = {"kernel": 1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.1), "normalize_y": normalize_y, "alpha": 1e-6}
    ours, theirs = (m.GaussianProcessRegressor(**make).fit(X, y) for m in (twin, peer))
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, abs=1e-4
    )
    theta = theirs.kernel_.theta
    for a, b in zip(
        ours.log_marginal_likelihood(theta, True), theirs.log_marginal_likelihood(theta, True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    ours.kernel_.theta = theta
    same = twin.GaussianProcessRegressor(**(make | {"kernel": theirs.kernel_, "optimizer": None})).fit(X, y)
    for name in ("L_", "alpha_", "y_train_", "X_train_"):
        np.testing.assert_allclose(getattr(same, name), getattr(theirs, name), rtol=1e-7, atol=1e-7)
    for extra in ({}, {"return_std": True}, {"return_cov": True}):
        a, b = same.predict(Z, **extra), theirs.predict(Z, **extra)
        for one, other in zip(a, b, strict=True) if extra else [(a, b)]:
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)
    assert same.sample_y(Z, 3).shape == theirs.sample_y(Z, 3).shape
    assert same.certificate_.residual < 1e-8


def test_one_noise_for_each_row_is_that_of_the_peer():
    X, y, Z = waves()
    make = {"kernel": RBF(1.0), "alpha": np.linspace(0.01, 0.3, len(y)), "optimizer": None}
    ours, theirs = (m.GaussianProcessRegressor(**make).fit(X, y).predict(Z, True) for m in (twin, peer))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        1.0 * RBF(1.0),
        ConstantKernel(2.0) * Matern([1.0, 2.0], nu=1.5),
        DotProduct(1.0) + WhiteKernel(0.1),
        3.0 * Louder(1.0),
    ],
    ids=repr,
)
def test_two_classes_have_the_numbers_of_the_peer(kernel):
    X, y, Z = waves()
    labels = np.where(y > 1.5, "high", "low")
    ours, theirs = (m.GaussianProcessClassifier(kernel, optimizer=None).fit(X, labels) for m in (twin, peer))
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, abs=1e-6
    )
    mine, its = ours.base_estimator_, theirs.base_estimator_
    for name in ("pi_", "W_sr_", "L_", "f_cached", "y_train_"):
        np.testing.assert_allclose(getattr(mine, name), getattr(its, name), atol=1e-4)
    for a, b in zip(ours.latent_mean_and_variance(Z), theirs.latent_mean_and_variance(Z), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert np.array_equal(ours.predict(Z), theirs.predict(Z))
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=5e-4)
    assert mine.certificate_.residual <= 1e-9


@pytest.mark.parametrize(
    "kernel", [2.0 * RBF([1.0, 0.7]), 2.0 * RBF(1.0) + DotProduct(0.5), 1.5 * Louder(0.8)]
)
def test_the_gradient_of_the_evidence_is_that_of_finite_differences(kernel):
    X, y, _ = waves(25)
    model = twin.GaussianProcessClassifier(kernel, optimizer=None).fit(X, y > 1.5)
    _, gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    slow = approx_fprime(kernel.theta, model.log_marginal_likelihood, 1e-6)
    np.testing.assert_allclose(gradient, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_three_classes_have_the_predictions_of_the_peer(multi_class):
    X, y, Z = waves(30)
    labels = np.digitize(y, [0.8, 1.8])
    make = {"kernel": 2.0 * RBF(1.0), "multi_class": multi_class, "optimizer": None}
    ours, theirs = (m.GaussianProcessClassifier(**make).fit(X, labels) for m in (twin, peer))
    assert np.array_equal(ours.predict(Z), theirs.predict(Z))
    assert ours.kernel_ == theirs.kernel_ and ours.n_classes_ == 3
    assert ours.log_marginal_likelihood(ours.kernel_.theta) == pytest.approx(
        theirs.log_marginal_likelihood(theirs.kernel_.theta), abs=1e-5
    )
    if multi_class == "one_vs_rest":
        np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=5e-4)
    else:
        with pytest.raises(ValueError, match="does not support predicting probability"):
            ours.predict_proba(Z)


def test_a_warm_start_and_things_that_are_not_vectors_work():
    X, y, _ = waves(25)
    warm = twin.GaussianProcessClassifier(1.0 * RBF(1.0), warm_start=True).fit(X, y > 1.5)
    cold = twin.GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y > 1.5)
    assert warm.log_marginal_likelihood_value_ == pytest.approx(cold.log_marginal_likelihood_value_, abs=1e-6)
    words, k = ["AB", "BBA", "C", "CAC"], MiniSeqKernel()
    a, b = (
        m.GaussianProcessRegressor(k, optimizer=None).fit(words, [1.0, 2.0, 3.0, 4.0]) for m in (twin, peer)
    )
    np.testing.assert_allclose(a.predict(["AC", "B"]), b.predict(["AC", "B"]))


def test_a_singular_gram_matrix_says_which_rows_are_alike():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.raises(np.linalg.LinAlgError, match="Try gradually increasing the 'alpha'") as caught:
        twin.GaussianProcessRegressor(RBF(1.0), alpha=0.0, optimizer=None).fit(X, [1.0, 2.0, 3.0, 4.0])
    assert "not positive definite" in " ".join(map(str, caught.value.args))


def test_patching_covers_the_processes_and_clones_are_twins():
    try:
        twin.patch()
        assert peer.GaussianProcessRegressor is twin.GaussianProcessRegressor
        assert peer.GaussianProcessClassifier is twin.GaussianProcessClassifier
    finally:
        twin.unpatch()
    assert peer.GaussianProcessRegressor is not twin.GaussianProcessRegressor
    assert clone(twin.GaussianProcessRegressor(alpha=0.5)).alpha == 0.5


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([twin.GaussianProcessRegressor(), twin.GaussianProcessClassifier()])
def test_the_contract(estimator, check):
    check(estimator)
