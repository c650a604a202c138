"""The twin of scikit-learn's KernelRidge against the original."""

import numpy as np
import pytest
import sklearn.kernel_ridge as peer
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer.sklearn as twin

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(40, 4)))  # histogram kernels want no negative numbers
Y = np.column_stack([X @ [1.0, 2.0, -1.0, 0.0], np.sin(X[:, 0])])


def scaled_dot(x, z, scale=1.0):
    return scale * float(x @ z)


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf", "gamma": 0},
    {"kernel": "laplacian", "gamma": 2.0},
    {"kernel": "poly", "degree": 2, "coef0": 0.5},
    {"kernel": "polynomial", "degree": 2.5},
    {"kernel": "poly", "degree": 0},
    {"kernel": "sigmoid", "gamma": 0.1},
    {"kernel": "cosine"},
    {"kernel": "chi2", "gamma": 0.5},
    {"kernel": "additive_chi2"},
    {"kernel": scaled_dot, "kernel_params": {"scale": 2.0}},
]


@pytest.mark.filterwarnings("ignore::mercer.errors.InvalidKernelWarning")  # of the sigmoid
@pytest.mark.parametrize(
    "parameters", KERNELS, ids=lambda p: getattr(p["kernel"], "__name__", str(p["kernel"]))
)
@pytest.mark.parametrize("weights", [None, 2.5, np.arange(40) % 3], ids=["none", "one", "rows"])
def test_values_and_attributes_are_the_same(parameters, weights):
    alpha = 1e3 if parameters["kernel"] in ("additive_chi2", "sigmoid") else 0.7  # these are not positive
    for y in (Y[:, 0], Y):
        ours, theirs = (
            m.KernelRidge(alpha=alpha, **parameters).fit(X, y, sample_weight=weights) for m in (twin, peer)
        )
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6, atol=1e-6)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape
        np.testing.assert_array_equal(ours.X_fit_, theirs.X_fit_)
    assert clone(ours).get_params() == ours.get_params()
    assert ours.certificate_.converged


def test_signature_precomputed_sparse_single_precision_and_penalties_by_target():
    assert twin.KernelRidge().get_params() == peer.KernelRidge().get_params()
    K = X @ X.T
    for make, data in (
        ({"kernel": "precomputed"}, K),
        ({"kernel": "rbf"}, sparse.csr_array(X)),
        ({"kernel": "rbf"}, sparse.csc_matrix(X)),
        ({"alpha": [0.1, 10.0]}, X),
        ({"kernel": "rbf"}, (10 * X).astype(int)),
    ):
        ours, theirs = (m.KernelRidge(**make).fit(data, Y).predict(data) for m in (twin, peer))
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    single = X.astype(np.float32)
    ours, theirs = (m.KernelRidge(kernel="rbf").fit(single, Y.astype(np.float32)) for m in (twin, peer))
    assert ours.predict(single).dtype == theirs.predict(single).dtype == np.float32
    np.testing.assert_allclose(ours.predict(single), theirs.predict(single), atol=1e-4)
    with pytest.raises(ValueError, match="penalties"):
        twin.KernelRidge(alpha=[1.0, 2.0, 3.0]).fit(X, Y)


def test_a_singular_system_warns_and_takes_least_squares():
    twice = np.vstack([X, X])
    y = np.tile(Y[:, 0], 2)
    for machine in (twin, peer):
        with pytest.warns(UserWarning, match="Singular matrix in solving dual problem"):
            found = machine.KernelRidge(alpha=0, kernel="rbf").fit(twice, y)
        np.testing.assert_allclose(found.predict(twice), y, atol=1e-6)


def test_patching_reaches_it():
    original = peer.KernelRidge
    try:
        twin.patch()
        assert peer.KernelRidge is twin.KernelRidge
    finally:
        twin.unpatch()
    assert peer.KernelRidge is original


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([twin.KernelRidge()])
def test_the_contract(estimator, check):
    check(estimator)
