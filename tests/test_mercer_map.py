"""Laws of the eigen-features of a sample."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RBF, Bilinear, Linear, Matern, MercerMap, Polynomial, Sigmoid, White
from mercer.errors import InputError, InvalidKernelError, InvalidKernelWarning, ParameterError, ShapeError

CONTRACT = [MercerMap(), MercerMap("Linear() + 1", n_components=2), MercerMap("RBF(2.0)", tolerance=0.01)]


@parametrize_with_checks(CONTRACT)
def test_the_scikit_learn_contract_is_kept(estimator, check):
    check(estimator)


def cloud(n=30, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


KERNELS = [
    RBF(1.0),
    Matern(0.5, nu=1.5),
    Polynomial(3),
    Linear(),
    RBF(100.0) + 2 * Linear(),
    "RBF(2.0)*Linear()",
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_all_components_reproduce_the_gram_matrix_of_the_sample(kernel):
    X = cloud()
    phi = MercerMap(kernel).fit(X)
    K = phi.kernel_(X)
    for F in (phi.transform(X), MercerMap(kernel).fit_transform(X)):
        np.testing.assert_allclose(F @ F.T, K, rtol=0, atol=1e-11 * np.abs(K).max())
    assert phi.residual_share_ < 1e-12


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 10**6))
def test_duplicates_and_tiny_samples_are_no_trouble(n, d, seed):
    X = np.random.default_rng(seed).integers(-1, 2, size=(n, d)).astype(float)
    F = MercerMap("RBF(1.0)").fit_transform(X)
    np.testing.assert_allclose(F @ F.T, RBF(1.0)(X), atol=1e-12)
    assert F.shape[1] <= len(np.unique(X, axis=0))


def test_features_are_orthogonal_and_their_squares_are_the_eigenvalues():
    phi = MercerMap("RBF(1.0)", n_components=5)
    F = phi.fit_transform(cloud())
    np.testing.assert_allclose(F.T @ F, np.diag(phi.eigenvalues_), atol=1e-12)
    assert np.all(np.diff(phi.eigenvalues_) <= 0)
    assert np.all(phi.eigenvectors_[np.abs(phi.eigenvectors_).argmax(axis=0), range(5)] > 0)


def test_new_points_follow_the_nystrom_formula_written_as_loops():
    X, Z = cloud(12), cloud(4, seed=1)
    phi = MercerMap("RBF(1.0)", n_components=3).fit(X)
    for a, z in enumerate(Z):
        for l in range(3):
            slow = sum(np.exp(-0.5 * np.sum((z - x) ** 2)) * phi.eigenvectors_[i, l] for i, x in enumerate(X))
            assert phi.transform(Z)[a, l] == pytest.approx(slow / np.sqrt(phi.eigenvalues_[l]), rel=1e-11)


def test_features_of_a_finite_kernel_hold_off_the_sample_too():
    X, Z = cloud(), cloud(9, seed=1)
    phi = MercerMap("Polynomial(2)").fit(X)
    assert len(phi.eigenvalues_) == Polynomial(2).feature_dimension(3)
    np.testing.assert_allclose(phi.transform(Z) @ phi.transform(Z).T, Polynomial(2)(Z), rtol=1e-9, atol=1e-9)


def test_the_trace_left_out_is_what_it_says():
    X = cloud()
    phi = MercerMap("RBF(1.0)", n_components=4)
    F = phi.fit_transform(X)
    assert phi.residual_trace_ == pytest.approx(np.trace(RBF(1.0)(X)) - np.trace(F @ F.T), rel=1e-12)
    assert phi.residual_share_ == pytest.approx(phi.residual_trace_ / 30, rel=1e-12)


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.1, 0.5, 0.99])
def test_tolerance_keeps_the_fewest_features_that_suffice(tolerance):
    phi = MercerMap("RBF(1.0)", tolerance=tolerance).fit(cloud())
    m = len(phi.eigenvalues_)
    assert phi.residual_share_ <= tolerance + 1e-14
    if m > 1:
        assert MercerMap("RBF(1.0)", n_components=m - 1).fit(cloud()).residual_share_ > tolerance


def test_an_indefinite_kernel_warns_with_the_number_and_strict_refuses():
    X = cloud()
    K = Sigmoid(1.0, offset=-1.0)(X)
    below = np.linalg.eigvalsh(K)[np.linalg.eigvalsh(K) < -1e-10]
    with pytest.warns(InvalidKernelWarning, match=f"its lowest eigenvalue is {below[0]:.6g}"):
        phi = MercerMap(Sigmoid(1.0, offset=-1.0)).fit(X)
    assert f"negative eigenvalues dropped: {len(below)}" in phi.certificate_.notes
    np.testing.assert_allclose(np.sort(phi.negative_eigenvalues_), below, atol=1e-12)
    assert phi.residual_trace_ == pytest.approx(-below.sum(), rel=1e-9)
    with pytest.raises(InvalidKernelError, match="negative eigenvalue"):
        MercerMap("Sigmoid(1.0, offset=-1.0)", strict=True).fit(X)


def test_a_precomputed_gram_matrix_gives_the_same_features():
    X, Z, k = cloud(), cloud(5, seed=1), RBF(1.0)
    own = MercerMap(k, n_components=6).fit(X)
    given = MercerMap("precomputed", n_components=6).fit(k(X))
    np.testing.assert_allclose(given.transform(k(Z, X)), own.transform(Z), atol=1e-11)
    assert given.__sklearn_tags__().input_tags.pairwise
    assert not own.__sklearn_tags__().input_tags.pairwise


def test_a_bad_gram_matrix_is_refused_with_the_place():
    with pytest.raises(ShapeError, match="square"):
        MercerMap("precomputed").fit(np.ones((3, 2)))
    with pytest.raises(InputError, match=r"\(0, 1\)"):
        MercerMap("precomputed").fit([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(InputError, match="not symmetric"):
        MercerMap(Bilinear([[1.0, 1.0], [0.0, 1.0]])).fit(cloud(d=2))


def test_noise_belongs_to_the_sample():
    X, k = cloud(8), RBF(1.0) + 0.5 * White(1.0)
    F = MercerMap(k).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, k(X), atol=1e-12)


def test_sparse_single_precision_readonly_lists_and_frames_are_taken():
    X = cloud().astype(np.float32).astype(np.float64)
    frozen = X.copy()
    frozen.setflags(write=False)
    expected = MercerMap(n_components=4).fit_transform(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for other in (X.tolist(), sparse.csr_array(X), frozen, X.astype(np.float32), np.asfortranarray(X), frame):
        np.testing.assert_allclose(MercerMap(n_components=4).fit_transform(other), expected, atol=1e-10)
    phi = MercerMap(RBF(1.0).on("b"), n_components=2).fit(frame)
    np.testing.assert_allclose(
        phi.transform(frame), MercerMap(RBF(1.0).on(1), n_components=2).fit_transform(X), atol=1e-10
    )


def test_the_kernel_is_tuned_by_name_also_when_it_is_text():
    for kernel in ("2.0*RBF(1.0)", 2.0 * RBF(1.0)):
        phi = MercerMap(kernel)
        assert phi.get_params()["kernel__kernel__lengthscale"] == 1.0
        changed = clone(phi).set_params(kernel__kernel__lengthscale=3.0, n_components=2)
        assert changed.kernel == 2.0 * RBF(3.0)
        assert changed.n_components == 2
        assert phi.kernel == kernel
        assert phi.get_params()["kernel__kernel__lengthscale"] == 1.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        MercerMap("RBF()").set_params(kernel__nonsense=1)
    with pytest.raises(ValueError, match="precomputed"):
        MercerMap("precomputed").set_params(kernel__lengthscale=1)
    both = MercerMap().set_params(kernel__nu=2.5, kernel="Matern(1.0)")  # the kernel goes first
    assert both.kernel == Matern(1.0, nu=2.5)


def test_grid_search_tunes_the_kernel():
    X = cloud(60, 1)
    y = np.sin(2 * X[:, 0])
    search = GridSearchCV(
        make_pipeline(MercerMap("RBF(1.0)", n_components=8), Ridge(1e-6)),
        {"mercermap__kernel__lengthscale": [1e-3, 1.0]},
    ).fit(X, y)
    assert search.best_estimator_[0].kernel_ == RBF(1.0)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("n_components", 0),
        ("n_components", 1.5),
        ("n_components", True),
        ("tolerance", 1.0),
        ("tolerance", -0.1),
        ("kernel", 3.0),
        ("kernel", None),
        ("kernel", "RBF("),
        ("kernel", np.dot),
    ],
)
def test_bad_parameters_are_refused_in_fit_and_not_before(name, bad):
    phi = MercerMap(**{name: bad})
    repr(phi)
    with pytest.raises(ValueError):
        phi.fit(cloud())


def test_what_is_not_fitted_says_so_and_names_are_numbered():
    with pytest.raises(NotFittedError):
        MercerMap().transform(cloud())
    phi = MercerMap(n_components=2).fit(cloud())
    assert list(phi.get_feature_names_out()) == ["mercer0", "mercer1"]
    assert isinstance(phi.set_output(transform="pandas").transform(cloud()), pd.DataFrame)


def test_a_zero_kernel_has_no_features():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F = MercerMap("precomputed").fit_transform(np.zeros((3, 3)))
    assert F.shape == (3, 0)
    with pytest.raises(ParameterError):
        MercerMap(kernel=object()).fit(cloud())
