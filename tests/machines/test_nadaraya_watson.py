"""Windows of weights: Nadaraya–Watson and Parzen densities against slow loops,
scipy and scikit-learn's checks.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import KernelMeanEmbedding, NadarayaWatson
from mercer.errors import ParameterError, PrecisionWarning
from mercer.theory import function_of

rng = np.random.default_rng(0)
X = rng.normal(size=(25, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
W = rng.uniform(0.2, 2.0, 25)
NEW = rng.normal(size=(6, 2))


def slow(kernel, X, y, w, Z):
    k = mercer.parse(kernel)
    out = []
    for z in Z:
        weights = [w[i] * float(k([X[i]], [z])[0, 0]) for i in range(len(X))]
        out.append(sum(a * b for a, b in zip(weights, y, strict=True)) / sum(weights))
    return np.array(out)


@pytest.mark.parametrize("kernel", ["RBF(0.7)", "Laplacian(0.5)", "Matern(1.0, nu=1.5)"])
def test_it_is_the_weighted_mean_of_the_formula(kernel):
    model = NadarayaWatson(kernel).fit(X, Y[:, 0], sample_weight=W)
    np.testing.assert_allclose(model.predict(NEW), slow(kernel, X, Y[:, 0], W, NEW), rtol=1e-12)
    two = NadarayaWatson(kernel).fit(X, Y, sample_weight=W)
    np.testing.assert_allclose(two.predict(NEW), slow(kernel, X, Y, W, NEW), rtol=1e-12)


def test_leaving_one_out_is_fitting_without_it():
    model = NadarayaWatson("RBF(0.6)").fit(X, Y[:, 0], sample_weight=W)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        again = NadarayaWatson("RBF(0.6)").fit(X[rest], Y[rest, 0], sample_weight=W[rest])
        assert model.loo_predictions_[i] == pytest.approx(again.predict(X[i : i + 1])[0], rel=1e-11)
    error = np.average((model.loo_predictions_ - Y[:, 0]) ** 2, weights=W)
    assert model.loo_error_ == pytest.approx(error, rel=1e-12)


def test_no_other_lengthscale_has_a_smaller_error():
    model = NadarayaWatson("RBF(1.0)", bandwidth="loo").fit(X, Y[:, 0])
    for length in np.geomspace(0.02, 50, 60):
        assert model.loo_error_ <= NadarayaWatson(f"RBF({length})").fit(X, Y[:, 0]).loo_error_ * (1 + 1e-9)
    assert any("leaving one out" in note for note in model.certificate_.notes)
    each = NadarayaWatson(mercer.RBF((1.0, 3.0)), bandwidth="loo").fit(X, Y[:, 0]).kernel_.lengthscale
    assert each[1] == pytest.approx(3 * each[0])


def test_it_never_leaves_the_range_of_the_targets_and_has_its_limits():
    y = Y[:, 0]
    for length in (1e-2, 0.3, 1e3):
        with np.errstate(all="ignore"):
            found = NadarayaWatson(f"Laplacian({length})").fit(X, y).predict(NEW)
        assert y.min() - 1e-12 <= found.min() and found.max() <= y.max() + 1e-12
    np.testing.assert_allclose(NadarayaWatson("RBF(1e6)").fit(X, y).predict(NEW), y.mean(), rtol=1e-9)
    # A sum of columns is what Laplacian sees.
    nearest = np.argmin(np.abs(NEW[:, None] - X).sum(axis=2), axis=1)
    np.testing.assert_allclose(
        NadarayaWatson("Laplacian(0.003)").fit(X, y).predict(NEW), y[nearest], rtol=1e-6
    )


def test_a_row_that_is_alone_is_predicted_by_the_others():
    model = NadarayaWatson("RBF(0.01)").fit([[0.0], [10.0], [20.0]], [1.0, 2.0, 6.0])
    assert model.loo_predictions_.tolist() == [4.0, 3.5, 1.5]


@pytest.mark.parametrize("seed", range(5))
def test_no_window_is_chosen_in_which_some_row_is_alone(seed):
    # far from all others, and their mean: a window that holds nothing would predict it best of all
    draw = np.random.default_rng(seed)
    near = np.sort(draw.uniform(0.0, 10.0, 30))
    rows = np.append(near, 10.0 + 10.0 ** draw.uniform(1.0, 3.0))[:, None]
    y = np.sin(3.0 * near)
    y = np.append(y, y.mean())
    chosen = NadarayaWatson("RBF(1.0)", bandwidth="loo").fit(rows, y).kernel_
    K = chosen(rows)
    for i in range(len(rows)):
        assert max(K[i, j] for j in range(len(rows)) if j != i) > 0


def test_an_empty_window_is_announced():
    model = NadarayaWatson("RBF(0.01)").fit(X, Y[:, 0])
    with pytest.warns(PrecisionWarning, match="1 of 1 rows"):
        assert model.predict([[1e3, 1e3]])[0] == pytest.approx(Y[:, 0].mean())


def test_precomputed_and_sparse_rows_are_the_same():
    k = mercer.RBF(0.8)
    want = NadarayaWatson(k).fit(X, Y[:, 0], sample_weight=W)
    given = NadarayaWatson("precomputed").fit(k(X), Y[:, 0], sample_weight=W)
    np.testing.assert_allclose(given.predict(k(NEW, X)), want.predict(NEW), rtol=1e-12)
    thin = NadarayaWatson(k).fit(sparse.csr_array(X), Y[:, 0], sample_weight=W)
    np.testing.assert_allclose(thin.predict(NEW), want.predict(NEW), rtol=1e-12)


def test_what_is_no_window_is_refused():
    with pytest.raises(ParameterError, match="cannot be negative"):
        NadarayaWatson("Linear()").fit(X, Y[:, 0])
    with pytest.raises(ParameterError, match="has none of its own"):
        NadarayaWatson("Polynomial(2)", bandwidth="loo").fit(X, Y[:, 0])
    with pytest.raises(ParameterError, match="has none of its own"):
        NadarayaWatson("precomputed", bandwidth="loo").fit(np.eye(3), [1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="bandwidth must be"):
        NadarayaWatson(bandwidth=0.3).fit(X, Y[:, 0])
    with pytest.raises(ParameterError, match="ratio of two sums"):
        function_of(NadarayaWatson("RBF(1.0)").fit(X, Y[:, 0]))


def test_the_density_with_the_best_lengthscale():
    x = np.concatenate([rng.normal(size=40), 4 + 0.5 * rng.normal(size=40)])[:, None]
    model = KernelMeanEmbedding("RBF(1.0)", bandwidth="loo").fit(x)
    for length in np.geomspace(0.02, 20, 40):
        assert model.loo_log_density_ >= KernelMeanEmbedding(f"RBF({length})").fit(x).loo_log_density_ - 1e-9
    total, _ = quad(lambda t: float(np.exp(model.log_density([[t]])[0])), -20, 20, limit=200, points=[0, 4])
    assert total == pytest.approx(1.0, abs=1e-6)
    # the referee: the density of each row from a fit without it
    slow_mean = np.mean(
        [
            KernelMeanEmbedding(model.kernel_).fit(np.delete(x, i, axis=0)).log_density(x[i : i + 1])[0]
            for i in range(len(x))
        ]
    )
    assert model.loo_log_density_ == pytest.approx(slow_mean, rel=1e-10)
    with pytest.raises(ParameterError, match="integral"):
        KernelMeanEmbedding("Matern(1.0, nu=1.5)", bandwidth="loo").fit(x)


def _by_nature(estimator):
    why = "a row that comes twice is still there when one of the two is left out"
    names = ("dense", "sparse")
    return {
        f"check_sample_weight_equivalence_on_{n}_data": why for n in names if estimator.bandwidth == "loo"
    }


@parametrize_with_checks(
    [NadarayaWatson(), NadarayaWatson(bandwidth="loo")], expected_failed_checks=_by_nature
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
