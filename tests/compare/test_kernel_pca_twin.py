"""The twin of scikit-learn's KernelPCA against the original, its own checks and its own tests."""

import numpy as np
import pytest
import sklearn.decomposition as peer
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer.sklearn as twin


@parametrize_with_checks([twin.KernelPCA(), twin.KernelPCA(2, kernel="rbf")])
@pytest.mark.filterwarnings("ignore")
def test_the_contract(estimator, check):
    check(estimator)


def test_the_signature_is_the_same():
    assert twin.KernelPCA().get_params() == peer.KernelPCA().get_params()
    assert clone(twin.KernelPCA(3, gamma=0.5)).get_params() == peer.KernelPCA(3, gamma=0.5).get_params()


def laplacian(x, z):
    return float(np.exp(-np.abs(x - z).sum()))


CASES = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "coef0": 0.5},
    {"kernel": "poly", "degree": 2.5},
    {"kernel": "sigmoid", "gamma": 0.01},
    {"kernel": "cosine"},
    {"kernel": laplacian},
]


@pytest.mark.parametrize(
    "options", CASES, ids=lambda o: "-".join(str(getattr(v, "__name__", v)) for v in o.values())
)
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "randomized"])
def test_values_and_attributes_are_the_same(options, solver):
    X = load_iris().data[::3]
    Z = load_iris().data[1::10]
    options = {"n_components": 3, "eigen_solver": solver, "random_state": 0, **options}
    # The modulus of a negative eigenvalue is among the largest.
    if options["kernel"] == "sigmoid" and solver == "randomized":
        for model in (twin.KernelPCA, peer.KernelPCA):
            with pytest.raises(ValueError, match="significant negative"):
                model(**options).fit(X)
        return
    ours, theirs = twin.KernelPCA(**options).fit(X), peer.KernelPCA(**options).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-7, atol=1e-9)
    scale = np.abs(theirs.transform(Z)).max()
    np.testing.assert_allclose(ours.transform(Z), theirs.transform(Z), atol=1e-6 * scale)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), atol=1e-6 * scale)
    for name in ("gamma_", "X_fit_", "n_features_in_", "eigenvectors_"):
        np.testing.assert_allclose(np.abs(getattr(ours, name)), np.abs(getattr(theirs, name)), atol=1e-6)
    assert ours.certificate_.converged and len(ours.certificate_.residuals) == 3


@pytest.mark.parametrize("options", CASES[:4], ids=str)
def test_the_way_back_is_the_same(options):
    X = load_iris().data[::3]
    options = {"n_components": 2, "fit_inverse_transform": True, "alpha": 0.1, **options}
    ours, theirs = twin.KernelPCA(**options), peer.KernelPCA(**options)
    Y, T = ours.fit_transform(X), theirs.fit_transform(X)
    np.testing.assert_allclose(ours.inverse_transform(Y), theirs.inverse_transform(T), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.X_transformed_fit_, theirs.X_transformed_fit_, atol=1e-6)


def test_all_components_and_zero_eigenvalues_are_the_same():
    X = load_iris().data[::5]
    for options in ({}, {"n_components": 10}, {"n_components": 10, "remove_zero_eig": True}):
        ours, theirs = twin.KernelPCA(**options).fit(X), peer.KernelPCA(**options).fit(X)
        assert ours.eigenvectors_.shape == theirs.eigenvectors_.shape
        np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9)


def test_single_precision_and_sparse_rows_stay_so():
    X = load_iris().data[::3]
    small = twin.KernelPCA(2, kernel="rbf").fit(X.astype(np.float32))
    assert small.transform(X.astype(np.float32)).dtype == np.float32 == small.eigenvectors_.dtype
    for kind in (sparse.csr_array, sparse.csr_matrix):
        found = twin.KernelPCA(2, kernel="rbf").fit(kind(X))
        assert sparse.issparse(found.X_fit_)
        np.testing.assert_allclose(
            found.transform(kind(X)), twin.KernelPCA(2, kernel="rbf").fit_transform(X), atol=1e-8
        )


def test_a_matrix_with_large_negative_eigenvalues_is_refused_as_by_the_original():
    K = np.diag([3.0, 1.0, -5.0, 0.5, 0.1])
    for model in (twin.KernelPCA, peer.KernelPCA):
        with pytest.raises(ValueError, match="significant negative eigenvalues"):
            model(kernel="precomputed").fit(K)
        with pytest.raises(ValueError, match="significant negative eigenvalues"):
            model(2, kernel="precomputed", eigen_solver="randomized").fit(K)


def test_patching_swaps_the_name_and_back():
    original = peer.KernelPCA
    try:
        twin.patch()
        assert peer.KernelPCA is twin.KernelPCA
    finally:
        twin.unpatch()
    assert peer.KernelPCA is original
