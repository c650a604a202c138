"""KernelPCA: the formula, scikit-learn's PCA and KernelPCA, residuals, pre-images, memory, and bad input."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import RBF, KernelPCA, Linear, Matern, Polynomial, RationalQuadratic, White
from mercer.errors import InvalidKernelError, InvalidKernelWarning, ParameterError, ShapeError
from mercer.gram import Precomputed
from mercer.machines.structure.centred import Centred


@parametrize_with_checks([KernelPCA(), KernelPCA("Linear()", None), KernelPCA(n_components=0.8)])
@pytest.mark.filterwarnings("ignore")
def test_the_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)) @ np.diag([3.0, 1.0, 0.3]) + [1.0, -2.0, 0.5], rng.normal(size=(9, 3))


def slow_components(kernel, X, Z, m):
    """Centred products, eigenvectors and projections, written out."""
    n = len(X)
    K = kernel(X)
    H = np.eye(n) - np.ones((n, n)) / n
    values, U = np.linalg.eigh(H @ K @ H)
    values, U = values[::-1][:m], U[:, ::-1][:, :m]
    out = np.zeros((len(Z), m))
    for i, z in enumerate(Z):
        k = kernel(z[None, :], X)[0]
        for j in range(n):
            centred = k[j] - k.mean() - K[j].mean() + K.mean()
            out[i] += centred * U[j] / np.sqrt(values)
    return values, out


@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(3), Linear(), 3.0 * Matern(1.0, nu=2.5)], ids=str)
def test_every_number_is_that_of_the_slow_loop(cloud, kernel):
    X, Z = cloud
    m = 3
    values, projections = slow_components(kernel, X, Z, m)
    pca = KernelPCA(kernel, m).fit(X)
    np.testing.assert_allclose(pca.eigenvalues_, values, rtol=1e-9)
    found = pca.transform(Z)
    signs = np.sign(np.sum(found * projections, axis=0))
    np.testing.assert_allclose(found * signs, projections, atol=1e-8 * np.abs(projections).max())
    H = np.eye(len(X)) - 1 / len(X)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(values.sum() / np.trace(H @ kernel(X) @ H))


@pytest.mark.parametrize("solver", ["dense", "krylov", "lanczos"])
def test_with_the_linear_kernel_it_is_scikit_learns_pca(solver):
    X = load_digits().data[:200] / 16
    ours, peer = KernelPCA("Linear()", 6, solver=solver).fit(X), PCA(6).fit(X)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(peer.transform(X)), atol=1e-6)
    np.testing.assert_allclose(ours.explained_variance_, peer.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-9)
    back = peer.inverse_transform(peer.transform(X))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), back, atol=1e-6)
    assert ours.n_components_ == 6 and ours.certificate_.converged


def test_it_is_scikit_learns_kernel_pca():
    X = load_digits().data[:150] / 16
    ours, peer = KernelPCA(RBF(gamma=0.1), 5).fit(X), Peer(5, kernel="rbf", gamma=0.1).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, peer.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(ours.transform(X[:20])), np.abs(peer.transform(X[:20])), atol=1e-8)


@pytest.mark.parametrize(("n", "solver"), [(60, "auto"), (700, "auto"), (300, "lanczos")])
def test_every_eigenpair_has_its_residual_in_the_certificate(n, solver):
    X = np.random.default_rng(1).normal(size=(n, 4))
    pca = KernelPCA(RBF(1.5), 7, solver=solver).fit(X)
    K, U, values = Centred(RBF(1.5).gram(X)).dense(), pca.eigenvectors_, pca.eigenvalues_
    actual = np.linalg.norm(K @ U - U * values, axis=0)
    said = np.array(pca.certificate_.residuals)
    np.testing.assert_allclose(said * values[0], actual, atol=1e-9 * values[0])
    assert pca.certificate_.residual == pytest.approx(said.max(), rel=1e-12)
    assert actual.max() <= 1e-7 * values[0]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:7], rtol=1e-10)
    np.testing.assert_allclose(U.T @ U, np.eye(7), atol=1e-9)


def test_signs_are_fixed():
    X = np.random.default_rng(1).normal(size=(600, 3))
    found = [KernelPCA(RBF(1.0), 4, random_state=seed).fit_transform(X) for seed in (0, 1)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    U = KernelPCA(RBF(1.0), 4).fit(X).eigenvectors_
    assert np.all(U[np.abs(U).argmax(axis=0), range(4)] > 0)


def test_precomputed_is_on_the_fly_and_tiles_are_the_stored_matrix(cloud):
    X, Z = cloud
    kernel = RBF(2.0) + White(0.1)
    stored = KernelPCA(kernel, 4).fit(X)
    for other, points in (
        (KernelPCA(kernel, 4, memory=100).fit(X), Z),
        (KernelPCA("precomputed", 4).fit(kernel(X)), kernel(Z, X)),
    ):
        np.testing.assert_allclose(other.eigenvalues_, stored.eigenvalues_, rtol=1e-10)
        np.testing.assert_allclose(other.transform(points), stored.transform(Z), atol=1e-9)
        np.testing.assert_allclose(other.explained_variance_ratio_, stored.explained_variance_ratio_)


def test_all_components_keep_all_distances(cloud):
    X, _ = cloud
    pca = KernelPCA(RBF(1.0), None).fit(X)
    assert pca.n_components_ == len(X) - 1 and pca.explained_variance_ratio_.sum() == pytest.approx(1)
    Y, K = pca.fit_transform(X), Centred(Precomputed(RBF(1.0)(X))).dense()
    np.testing.assert_allclose(Y @ Y.T, K, atol=1e-10)
    np.testing.assert_allclose(pca.transform(X), Y, atol=1e-8)
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-10)


def test_a_share_of_the_variance_takes_the_fewest_components(cloud):
    X, _ = cloud
    pca = KernelPCA(RBF(1.0), 0.7).fit(X)
    assert pca.explained_variance_ratio_.sum() >= 0.7 > pca.explained_variance_ratio_[:-1].sum()


def test_components_without_variance_are_left_out_and_said():
    X = np.outer(np.arange(6.0), [1.0, 2.0])
    pca = KernelPCA("Linear()", 3).fit(X)
    assert pca.n_components_ == 1 and "1 of 3 components" in str(pca.certificate_)
    assert pca.transform(X).shape == (6, 1)
    alone = KernelPCA(RBF(1.0), 2).fit([[1.0, 2.0]])
    assert alone.n_components_ == 0 and alone.transform([[3.0, 4.0]]).shape == (1, 0)
    same = KernelPCA(RBF(1.0), 2).fit(np.ones((5, 2)))
    assert same.n_components_ == 0 and same.total_variance_ == pytest.approx(0.0, abs=1e-12)


def test_circles_come_apart_along_one_component():
    X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    Y = KernelPCA(Polynomial(2), 5).fit_transform(X)
    outer, inner = Y[y == 0], Y[y == 1]
    apart = (outer.max(axis=0) < inner.min(axis=0)) | (inner.max(axis=0) < outer.min(axis=0))
    assert apart.sum() == 1  # the one that holds x1² + x2²


# ── pre-images ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kernel", [RBF(1.0), 2.0 * RBF([1.0, 2.0, 0.5]), Matern(1.5, nu=2.5), RationalQuadratic(1.0)], ids=str
)
def test_a_fixed_point_is_a_maximum_that_no_step_improves(cloud, kernel):
    X, Z = cloud
    pca = KernelPCA(kernel, 5, inverse="fixed-point").fit(X)
    Y = pca.transform(Z)
    found = pca.inverse_transform(Y)
    gamma = Y @ pca._coef.T + 1 / len(X)

    def height(P):
        return np.einsum("ij,ij->i", gamma, kernel(P, X))

    best = height(found)
    assert np.all(best >= np.array([height(np.tile(x, (len(Z), 1))) for x in X]).max(axis=0) - 1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2):
        for _ in range(20):
            assert np.all(height(found + size * rng.normal(size=found.shape)) <= best + 1e-7)


def test_with_all_components_pre_images_are_the_points_themselves(cloud):
    X, _ = cloud
    np.testing.assert_allclose(KernelPCA(RBF(1.0), None).fit(X).denoise(X), X, atol=1e-6)
    ridge = KernelPCA(Polynomial(2), None, ridge=1e-8).fit(X)
    np.testing.assert_allclose(ridge.denoise(X), X, atol=1e-3)


def test_noise_is_taken_away():
    X = load_digits().data[:250] / 16
    noisy = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    for inverse in ("fixed-point", "ridge"):
        clean = KernelPCA(RBF(4.0), 15, inverse=inverse).fit(noisy).denoise(noisy)
        assert np.mean((clean - X) ** 2) < 0.7 * np.mean((noisy - X) ** 2)


def test_a_way_back_that_the_kernel_has_not_is_refused(cloud):
    X, _ = cloud
    for kernel, inverse in ((Polynomial(2), "fixed-point"), (RBF(1.0), "linear")):
        pca = KernelPCA(kernel, 2, inverse=inverse).fit(X)
        with pytest.raises(ParameterError, match="inverse='auto'"):
            pca.inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ParameterError, match="no input space"):
        KernelPCA("precomputed", 2).fit(RBF(1.0)(X)).inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="2 columns"):
        KernelPCA(RBF(1.0), 2).fit(X).inverse_transform(np.zeros((1, 3)))


# ── said, not silent ────────────────────────────────────────────────────────────────────────────────────────


def test_an_indefinite_kernel_is_announced_with_its_lowest_eigenvalue():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(InvalidKernelWarning, match=r"all 60 rows after centring .* lowest eigenvalue is -"):
        pca = KernelPCA("Sigmoid(3.0)", 3).fit(X)
    said = float(re.search(r"lowest eigenvalue is (-[\d.e+-]*\d)", str(pca.certificate_))[1])
    values = np.linalg.eigvalsh(Centred(Precomputed(pca.kernel_(X))).dense())
    assert said == pytest.approx(values[0], rel=1e-5)
    assert np.all(pca.eigenvalues_ > 0)
    with pytest.raises(InvalidKernelError):
        KernelPCA("Sigmoid(3.0)", 3, strict=True).fit(X)


def test_a_kernel_that_is_valid_only_after_centring_is_welcome(recwarn):
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = -0.5 * ((X[:, None] - X) ** 2).sum(axis=2)
    found = KernelPCA("precomputed", 2).fit_transform(K)
    np.testing.assert_allclose(np.abs(found), np.abs(PCA(2).fit_transform(X)), atol=1e-10)
    assert not [w for w in recwarn if issubclass(w.category, InvalidKernelWarning)]


def test_too_few_products_are_said():
    X = np.random.default_rng(0).normal(size=(600, 8))
    with pytest.warns(ConvergenceWarning, match="residual"):
        pca = KernelPCA(RBF(1.0), 5, max_iter=1).fit(X)
    assert pca.certificate_.status == "limit"


def test_inputs_of_every_kind_give_the_same_components():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32).astype(float)
    frozen = X.copy()
    frozen.flags.writeable = False
    expected = KernelPCA(RBF(1.0), 3).fit(X)
    for other in (np.asfortranarray(X), X.astype(np.float32), sparse.csr_array(X), frozen, X.tolist()):
        pca = KernelPCA(RBF(1.0), 3).fit(other)
        np.testing.assert_allclose(pca.transform(other), expected.transform(X), atol=1e-9)
        np.testing.assert_allclose(pca.denoise(other), expected.denoise(X), atol=1e-5)


def test_a_huge_offset_does_not_hurt_a_radial_kernel():
    X = np.random.default_rng(0).normal(size=(50, 3))
    a, b = KernelPCA(RBF(1.0), 3).fit(X), KernelPCA(RBF(1.0), 3).fit(X + 1e6)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"solver": "magic"}, "solver"),
        ({"inverse": "magic"}, "inverse"),
        ({"ridge": -1.0}, "ridge"),
        ({"tol": np.nan}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused_with_their_names(changes, words):
    with pytest.raises(ParameterError, match=words):
        KernelPCA(**changes).fit(np.eye(4))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("solver", ["auto", "lanczos", "dense"])
def test_residuals_are_verified_whatever_the_size_of_the_kernel(size, solver):
    """Seen with large eigenvalues: the certificate had residuals as they are, `verify` relative ones."""
    X = np.random.default_rng(2).normal(size=(500, 6))
    pca = KernelPCA(size * RBF(2.0), 5, solver=solver, tol=1e-6).fit(X)
    found = mercer.verify(pca, X)
    assert found.ok, str(found)
    claimed = pca.certificate_
    larger = tuple(r + 1e-5 for r in claimed.residuals)
    pca.certificate_ = dataclasses.replace(claimed, residuals=larger)
    assert not mercer.verify(pca, X).ok
