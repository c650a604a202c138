"""Gaussian process regression against its formulas, scikit-learn, refits and finite differences."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as peers
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from kernels_under_test import every_kernel
from mercer import (
    RBF,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    Interrupted,
    Linear,
    Periodic,
    White,
    parse,
)
from mercer.errors import (
    InputError,
    InvalidKernelWarning,
    NotFiniteError,
    NotPositiveDefiniteError,
    ParameterError,
    PrecisionWarning,
    ShapeError,
)
from mercer.kernels import Radial, leaf
from mercer.kernels.terms import latent_diag
from mercer.machines.gaussian_process import conditioning as gp_conditioning
from mercer.machines.gaussian_process.evidence import log_evidence, log_loo

SUM = "1.5*RBF([0.8, 1.7]) + 0.3*Linear() + White(0.05)"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=40), rng.normal(size=(7, 2))


@pytest.fixture(scope="module")
def fixed(data):
    X, y, _ = data
    return GaussianProcessRegressor(SUM, optimizer=None).fit(X, y)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([GaussianProcessRegressor(max_iter=20)])
def test_the_contract(estimator, check):
    check(estimator)


# ── evidence ──


@pytest.mark.parametrize("objective", [log_evidence, log_loo])
@pytest.mark.parametrize("case", every_kernel(), ids=repr)
def test_the_gradient_is_that_of_finite_differences_for_every_kernel(case, objective):
    k, X = case.kernel, case.points(9)
    Y = np.random.default_rng(1).normal(size=(9, 2))
    K = k(X)
    if not np.allclose(K, K.T):
        pytest.skip("no symmetric function, so no covariance")
    noise = np.linspace(0.3, 0.6, 9) + max(0.0, -1.2 * np.linalg.eigvalsh(K)[0])
    if objective is log_evidence:
        expected = sum(multivariate_normal(np.zeros(9), K + np.diag(noise)).logpdf(y) for y in Y.T)
    else:
        expected = sum(loo_by_refits(K + np.diag(noise), y) for y in Y.T)
    found = objective(k.gram(X), Y, noise)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert objective(k.gram(X), Y, noise, gradient=False).value == pytest.approx(found.value, rel=1e-12)
    assert len(found.gradient) == len(k.theta)
    h = 1e-5
    for i, step in enumerate(h * np.eye(len(k.theta))):
        up, down = (
            objective(k.with_theta(k.theta + s * step).gram(X), Y, noise, gradient=False).value
            for s in (1, -1)
        )
        assert found.gradient[i] == pytest.approx((up - down) / (2 * h), rel=2e-5, abs=2e-5)


def loo_by_refits(A, y):
    total = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        w = np.linalg.solve(A[np.ix_(rest, rest)], A[rest, i])
        total += norm(w @ y[rest], np.sqrt(A[i, i] - w @ A[rest, i])).logpdf(y[i])
    return total


def test_value_gradient_and_predictions_are_those_of_scikit_learn(data):
    X, y, Z = data
    ours = GaussianProcessRegressor("2.0*RBF([0.8, 1.7]) + White(0.05)", optimizer=None).fit(X, y)
    theirs = peers.ConstantKernel(2.0) * peers.RBF([0.8, 1.7]) + peers.WhiteKernel(0.05)
    peer = Peer(theirs, alpha=0.0, optimizer=None).fit(X, y)
    value, gradient = peer.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    found, slope = ours.log_marginal_likelihood(ours.kernel_.theta, eval_gradient=True)
    assert found == pytest.approx(value, rel=1e-12) == ours.log_evidence_
    np.testing.assert_allclose(slope, gradient, rtol=1e-9)
    mean, std = ours.predict(Z, return_std=True, noise=True)
    np.testing.assert_allclose(np.array([mean, std]), np.array(peer.predict(Z, return_std=True)), rtol=1e-9)
    cov = ours.predict(Z, return_cov=True, noise=True)[1]
    np.testing.assert_allclose(cov, peer.predict(Z, return_cov=True)[1], atol=1e-12)


def test_the_search_ends_where_scikit_learns_does_or_higher(data):
    X, y, _ = data
    ours = GaussianProcessRegressor("2.0*RBF([0.8, 1.7]) + White(0.05)").fit(X, y)
    peer = Peer(peers.ConstantKernel(2.0) * peers.RBF([0.8, 1.7]) + peers.WhiteKernel(0.05), alpha=0.0).fit(
        X, y
    )
    assert ours.log_evidence_ >= peer.log_marginal_likelihood_value_ - 1e-6
    assert ours.certificate_.converged and ours.certificate_.residual < 1e-10
    assert np.abs(ours.log_marginal_likelihood(ours.kernel_.theta, eval_gradient=True)[1]).max() < 1e-2


def test_the_mean_is_ridge(data):
    X, y, Z = data
    k = RBF(0.7)
    for model in (
        GaussianProcessRegressor(k, noise=0.3, optimizer=None),
        GaussianProcessRegressor(k + White(0.3), optimizer=None),
        GaussianProcessRegressor(k + White(0.1), noise=0.2, optimizer=None),
    ):
        mean = model.fit(X, y).predict(Z)
        np.testing.assert_allclose(mean, k(Z, X) @ np.linalg.solve(k(X) + 0.3 * np.eye(40), y), rtol=1e-9)
        peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / 0.49).fit(X, y)
        np.testing.assert_allclose(mean, peer.predict(Z), rtol=1e-9)


def test_leave_one_out_is_n_refits(data):
    X, y, _ = data
    model = GaussianProcessRegressor(SUM, optimizer=None, noise=np.linspace(0.01, 0.2, 40)).fit(X, y)
    mean, std = model.loo(return_std=True)
    for i in (0, 13, 39):
        rest = np.arange(40) != i
        again = GaussianProcessRegressor(SUM, optimizer=None, noise=model.noise[rest]).fit(X[rest], y[rest])
        m, s = again.predict(X[[i]], return_std=True, noise=model.noise[[i]])
        assert (mean[i], std[i]) == (pytest.approx(m[0], rel=1e-9), pytest.approx(s[0], rel=1e-9))
    tuned = GaussianProcessRegressor(SUM, objective="loo").fit(X, y)
    Y = y[:, None]
    assert log_loo(tuned.kernel_.gram(X), Y).value >= log_loo(parse(SUM).gram(X), Y).value


@pytest.mark.parametrize("normalize_y", [False, "mean", True])
@pytest.mark.parametrize("noise", ["none", "one", "per row", "some rows"])
@pytest.mark.parametrize("targets", ["one", "two", "an outlier", "constant but one"])
def test_leave_one_out_leaves_its_row_out_of_mean_and_scale_too(normalize_y, noise, targets):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9, 2))
    Y = 3.0 + X[:, :2] * [1.0, 20.0] + 0.1 * rng.normal(size=(9, 2))
    if targets == "an outlier":
        Y[2, 0] += 1e8
    if targets == "constant but one":
        Y[:, 0] = 0.1
        Y[4, 0] = 7.0
    y = Y if targets == "two" else Y[:, 0]
    per_row = rng.uniform(0.1, 2.0, size=9)
    given = {"none": None, "one": 0.7, "per row": per_row, "some rows": per_row * (np.arange(9) > 3)}[noise]
    if given is not None and normalize_y is True and targets == "two":
        return  # refused: the noise would have a unit for each target

    def fit(rows):
        some = given[rows] if isinstance(given, np.ndarray) else given
        k = "2.0*RBF(1.0) + White(0.1)"
        return GaussianProcessRegressor(k, optimizer=None, noise=some, normalize_y=normalize_y).fit(
            X[rows], y[rows]
        )

    mean, std = fit(np.arange(9)).loo(return_std=True)
    for i in range(9):
        new = 0.0 if given is None else np.broadcast_to(given, 9)[[i]]
        m, s = fit(np.delete(np.arange(9), i)).predict(X[[i]], return_std=True, noise=new)
        np.testing.assert_allclose(mean[i], m[0], rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(std[i], s[0], rtol=1e-7)


def test_leave_one_out_in_features_leaves_its_row_out_of_mean_and_scale_too():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 2))
    y = 3.0 + 20.0 * X[:, 0]
    how = mercer.Nystroem("RBF(1.0)", landmarks=rng.normal(size=(5, 2)))
    for normalize_y in (False, "mean", True):

        def fit(rows, normalize_y=normalize_y):
            model = GaussianProcessRegressor(
                "RBF(1.0)", noise=2.0, optimizer=None, normalize_y=normalize_y, approximation=how
            )
            return model.fit(X[rows], y[rows])

        mean, std = fit(np.arange(12)).loo(return_std=True)
        for i in (0, 5):
            m = fit(np.delete(np.arange(12), i)).predict(X[[i]])
            assert mean[i] == pytest.approx(m[0], rel=1e-8)
            assert std[i] > np.sqrt(2.0)


# ── noise ──


def test_a_row_of_half_the_noise_is_a_row_twice(data):
    X, y, Z = data
    s = np.full(40, 0.1)
    twice = np.r_[np.arange(40), [3, 8]]
    half = s.copy()
    half[[3, 8]] /= 2
    a = GaussianProcessRegressor(RBF(1.0), noise=half, optimizer=None).fit(X, y)
    b = GaussianProcessRegressor(RBF(1.0), noise=s[twice], optimizer=None).fit(X[twice], y[twice])
    np.testing.assert_allclose(a.predict(Z, return_std=True), b.predict(Z, return_std=True), rtol=1e-8)


def test_the_function_and_an_observation_of_it_are_kept_apart(fixed, data):
    Z = data[2]
    latent = fixed.predict(Z, return_std=True)[1] ** 2
    seen = fixed.predict(Z, return_std=True, noise=True)[1] ** 2
    np.testing.assert_allclose(seen - latent, 0.05, rtol=1e-9)
    given = fixed.predict(Z, return_std=True, noise=np.arange(7.0))[1] ** 2
    np.testing.assert_allclose(given - latent, 0.05 + np.arange(7.0), rtol=1e-9)
    per_row = GaussianProcessRegressor(RBF(1.0), noise=np.full(40, 0.1), optimizer=None).fit(*data[:2])
    with pytest.raises(ParameterError, match="per row of the training data"):
        per_row.predict(Z, return_std=True, noise=True)


@pytest.mark.parametrize(
    "k",
    [
        "RBF(1.0)*White(0.5) + Linear()",
        "(RBF(1.0) + White(0.5))**2",
        "(2.0*RBF(1.0) + White(0.5)).normalized()",
    ],
)
def test_the_prior_variance_of_f_is_between_two_observations_of_one_place(k):
    X = np.random.default_rng(0).normal(size=(70, 2))
    k = parse(k)
    np.testing.assert_allclose(latent_diag(k, mercer.arrays.Rows.of(X)), np.diag(k(X, X.copy())), rtol=1e-12)


@pytest.mark.parametrize("kind", ["duplicates", "offset", "tiny noise", "one place", "large scale"])
def test_variances_are_never_negative_and_never_more_than_the_prior(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    noise, k = 1e-6, 1.0 * RBF(1.0)
    if kind == "duplicates":
        X = np.repeat(X[:12], 5, axis=0)
    elif kind == "offset":
        X = X + 1e7
    elif kind == "tiny noise":
        noise, k = 1e-10, 1.0 * RBF(3.0)
    elif kind == "one place":
        X = np.zeros((60, 2))
    else:
        k, noise = 1e8 * RBF(1.0), 1e-3
    model = GaussianProcessRegressor(k, noise=noise, optimizer=None)
    if kind == "tiny noise":
        with pytest.warns(PrecisionWarning, match="ill-conditioned"):
            model.fit(X, rng.normal(size=60))
    else:
        model.fit(X, rng.normal(size=60))
    for Z in (X, X + 1e-9, rng.normal(size=(30, 2)) + X[0], X + 1e3):
        std = model.predict(Z, return_std=True)[1]
        assert np.all(np.isfinite(std)) and np.all(std >= 0) and np.all(std**2 <= k.scale * (1 + 1e-12))
        assert np.all(np.diag(model.predict(Z, return_cov=True)[1]) >= 0)
        assert np.all(model.predict(Z, return_std=True, noise=True)[1] ** 2 >= noise * (1 - 1e-12))


def test_a_variance_negative_beyond_rounding_is_said():
    k = parse("1.5*RBF(1.0) - 1.2*RBF(0.5)")
    X = np.linspace(0, 2, 5)[:, None]
    low = np.linalg.eigvalsh(k(X))[0]
    with pytest.warns(InvalidKernelWarning, match="no Gaussian process behind it"):
        model = GaussianProcessRegressor(k, noise=1e-3 - min(low, 0.0), optimizer=None).fit(X, X[:, 0])
    assert "not positive semi-definite" in model.certificate_.notes[0]
    with pytest.warns(PrecisionWarning, match="negative beyond rounding"):
        std = model.predict(np.linspace(0, 2, 30)[:, None], return_std=True)[1]
    assert std.min() == 0


# ── singular ──


def test_a_singular_gram_matrix_is_refused_with_the_rows_and_the_term(data):
    X, y, _ = data
    twice = np.vstack([X, X[[4]]])
    with pytest.raises(
        NotPositiveDefiniteError, match=r"Rows 4 and 40 .*No term of RBF.* is noise"
    ) as caught:
        GaussianProcessRegressor(RBF(1.0)).fit(twice, np.append(y, 0.0))
    assert caught.value.duplicates == ((4, 40),)
    with pytest.raises(NotPositiveDefiniteError, match=r"White\(1e-30\)\) is too small"):
        GaussianProcessRegressor(RBF(1.0) + White(1e-30), optimizer=None).fit(twice, np.append(y, 0.0))
    with pytest.raises(NotPositiveDefiniteError, match="Pass noise"):
        GaussianProcessRegressor("precomputed").fit(np.ones((3, 3)), np.arange(3.0))


def test_what_is_added_on_request_is_stated_with_its_cost(data):
    X, y, _ = data
    twice, z = np.vstack([X, X[[4]]]), np.append(y, y[4] + 1.0)
    model = GaussianProcessRegressor(RBF(1.0), singular="add", optimizer=None)
    with pytest.warns(PrecisionWarning, match="was added to the diagonal"):
        model.fit(twice, z)
    added = model.certificate_.added_diagonal
    assert 1e-10 <= added < 1e-9
    assert model.noise_ == added
    assert "moves the mean at the training rows by at most 0.707" in model.certificate_.notes[-1]
    assert np.abs(model.predict(twice) - z).max() == pytest.approx(0.5, rel=1e-3)


# ── views ──


def test_terms_add_up(fixed, data):
    X, y, Z = data
    parts = fixed.decompose(Z, full=True)
    mean, std = fixed.predict(Z, return_std=True)
    cov = fixed.predict(Z, return_cov=True)[1]
    np.testing.assert_allclose(parts.mean.sum(axis=0), mean, rtol=1e-10)
    np.testing.assert_allclose(parts.covariance.sum(axis=(0, 1)), std**2, atol=1e-12)
    np.testing.assert_allclose(parts.full.sum(axis=(0, 1)), cov, atol=1e-12)
    np.testing.assert_allclose(np.einsum("ijmm->ijm", parts.full), parts.covariance, atol=1e-12)
    A = parse(SUM)(X)
    for i, k in enumerate((1.5 * RBF([0.8, 1.7]), 0.3 * Linear())):
        assert str(parts.kernels[i]) == str(k) == parts.names[i]
        np.testing.assert_allclose(parts.mean[i], k(Z, X) @ np.linalg.solve(A, y), rtol=1e-9)
        own = np.diag(k(Z, Z) - k(Z, X) @ np.linalg.solve(A, k(X, Z)))
        np.testing.assert_allclose(parts.std[i], np.sqrt(own), rtol=1e-8)
    np.testing.assert_allclose(parts.total_std, std, rtol=1e-9)
    assert [name for name, _, _ in fixed.decompose(Z, names=("a", "b"))] == ["a", "b"]
    with pytest.raises(ParameterError, match="2 terms need as many names"):
        fixed.decompose(Z, names=("a",))


def test_input_gradients_are_finite_differences(fixed, data):
    Z = data[2]
    mean, variance = fixed.input_gradient(Z, return_var=True)
    h = 1e-5
    for j, step in enumerate(h * np.eye(2)):
        up, down = (fixed.predict(Z + s * step, return_std=True) for s in (1, -1))
        np.testing.assert_allclose(mean[:, j], (up[0] - down[0]) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(variance[:, j], (up[1] ** 2 - down[1] ** 2) / (2 * h), atol=1e-8)
    np.testing.assert_array_equal(fixed.input_gradient(Z), mean)


def test_samples_have_the_mean_and_covariance_of_the_posterior_and_of_the_prior(fixed, data):
    Z = data[2]
    count = 20_000
    mean, cov = fixed.predict(Z, return_cov=True)
    drawn = fixed.sample_y(Z, count, random_state=0)
    assert drawn.shape == (7, count)
    scale = np.sqrt(np.diag(cov))
    assert np.abs((drawn.mean(axis=1) - mean) / scale).max() < 4 / np.sqrt(count) * 1.2
    assert np.abs((np.cov(drawn) - cov) / np.outer(scale, scale)).max() < 6 / np.sqrt(count)
    k = parse(SUM)
    for model, noise in ((fixed, False), (fixed, True), (GaussianProcessRegressor(SUM), False)):
        prior = k(Z, Z) + (0.05 if noise else 0.0) * np.eye(7)
        drawn = model.sample_y(Z, count, random_state=1, prior=True, noise=noise)
        size = np.sqrt(np.outer(np.diag(prior), np.diag(prior)))
        assert np.abs((np.cov(drawn) - prior) / size).max() < 6 / np.sqrt(count)
    assert not hasattr(model, "n_features_in_"), "a sample of the prior is no fit"
    np.testing.assert_array_equal(fixed.sample_y(Z, 3, random_state=5), fixed.sample_y(Z, 3, random_state=5))


# ── several targets, units ──


def test_several_targets_share_the_kernel(data):
    X, y, Z = data
    Y = np.column_stack([y, 3 * y[::-1] + 10])
    both = GaussianProcessRegressor(SUM, optimizer=None, normalize_y=True).fit(X, Y)
    mean, std = both.predict(Z, return_std=True)
    assert mean.shape == std.shape == (7, 2)
    for j in range(2):
        one = GaussianProcessRegressor(SUM, optimizer=None, normalize_y=True).fit(X, Y[:, j])
        np.testing.assert_allclose([mean[:, j], std[:, j]], one.predict(Z, return_std=True), rtol=1e-10)
        np.testing.assert_allclose(both.loo()[:, j], one.loo(), rtol=1e-10)
        np.testing.assert_allclose(both.input_gradient(Z)[..., j], one.input_gradient(Z), rtol=1e-8)
    assert both.sample_y(Z, 4).shape == (7, 2, 4)
    assert both.predict(Z, return_cov=True)[1].shape == (7, 7, 2)
    parts = both.decompose(Z)
    np.testing.assert_allclose(parts.total_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(parts.total_std, std, rtol=1e-8)
    tuned = GaussianProcessRegressor(SUM).fit(X, Y)
    assert tuned.log_evidence_ >= GaussianProcessRegressor(SUM, optimizer=None).fit(
        X, Y
    ).log_marginal_likelihood(parse(SUM).theta)


def test_normalising_is_modelling_other_units(data):
    X, y, Z = data
    shifted = 100 + 7 * y
    raw = GaussianProcessRegressor(SUM, optimizer=None, noise=0.02).fit(
        X, (shifted - shifted.mean()) / shifted.std()
    )
    scaled = GaussianProcessRegressor(SUM, optimizer=None, noise=0.02 * shifted.var(), normalize_y=True).fit(
        X, shifted
    )
    m, s = raw.predict(Z, return_std=True, noise=True)
    a, b = scaled.predict(Z, return_std=True, noise=True)
    np.testing.assert_allclose(a, shifted.mean() + shifted.std() * m, rtol=1e-10)
    np.testing.assert_allclose(b, shifted.std() * s, rtol=1e-10)
    centred = GaussianProcessRegressor(SUM, optimizer=None, normalize_y="mean").fit(X, shifted)
    plain = GaussianProcessRegressor(SUM, optimizer=None).fit(X, shifted - shifted.mean())
    np.testing.assert_allclose(centred.predict(Z), shifted.mean() + plain.predict(Z), rtol=1e-10)


# ── search ──


def test_fixed_and_bounded_parameters_are_respected(data):
    X, y, _ = data
    k = (1.0 * RBF(0.1)).fix("scale").bounded(lengthscale=(0.05, 0.2)) + White(0.1).fix("noise")
    with pytest.warns(ConvergenceWarning, match="went to the end of the search"):
        found = GaussianProcessRegressor(k).fit(X, y)
    assert found.kernel_.parts[0].scale == 1.0
    assert 0.05 <= found.kernel_.parts[0].kernel.lengthscale <= 0.2
    assert "k1__kernel__lengthscale = 0.2 (its upper end) went to the end" in found.certificate_.notes[0]
    nothing = GaussianProcessRegressor(RBF(1.0).fix("lengthscale"), noise=0.1).fit(X, y)
    assert nothing.kernel_ == RBF(1.0).fix("lengthscale") and nothing.n_iter_ == 0


def test_restarts_never_end_lower_and_are_the_same_in_parallel():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, size=(40, 1)), axis=0)
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=40)
    k = 1.0 * Periodic(3.0, 1.0) + White(0.1)
    one = GaussianProcessRegressor(k).fit(X, y)
    few = [GaussianProcessRegressor(k, n_restarts=4, random_state=0, n_jobs=j).fit(X, y) for j in (1, 2)]
    assert few[0].log_evidence_ > one.log_evidence_ + 1
    # BLAS threads round otherwise.
    np.testing.assert_allclose(few[0].kernel_.theta, few[1].kernel_.theta, rtol=1e-6)
    assert "of 5 searches ended at the best" in few[0].certificate_.notes[-1]


def test_seconds_iterations_and_ctrl_c_keep_the_best(data, monkeypatch):
    X, y, _ = data
    start = GaussianProcessRegressor(SUM, optimizer=None).fit(X, y).log_evidence_
    for limit in ({"max_iter": 2}, {"max_seconds": 1e-9}):
        with pytest.warns(ConvergenceWarning, match="stopped early"):
            model = GaussianProcessRegressor(SUM, **limit).fit(X, y)
        assert model.certificate_.status == "limit"
        assert model.log_evidence_ >= start
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return log_evidence(*args, **kwargs)

    monkeypatch.setitem(gp_conditioning.OBJECTIVES, "evidence", interrupted)
    model = GaussianProcessRegressor(SUM)
    with pytest.raises(Interrupted) as stop:
        model.fit(X, y)
    assert stop.value.model is model and model.certificate_.status == "interrupted"
    assert model.log_evidence_ > start
    assert np.isfinite(model.predict(X)).all()


def test_progress_is_printed(data, capsys):
    GaussianProcessRegressor(SUM, verbose=1).fit(*data[:2])
    assert "evaluation 2: log evidence" in capsys.readouterr().out


@leaf
class Kinked(Radial):
    """A leaf whose slope is no number beyond s = 4, as a careless square root would have it."""

    def value(self, s):
        return np.where(s < 0, 1.0, np.exp(-0.5 * s))  # no formula, so its own slope is asked

    def slope(self, s):
        with np.errstate(invalid="ignore"):
            return -0.5 * np.exp(-0.5 * s) + 0 * np.sqrt(4.0 - s)


@pytest.mark.parametrize("objective", ["evidence", "loo"])
def test_a_gradient_that_is_no_number_is_not_called_too_little_noise(objective):
    X = np.array([[0.0], [1.0], [1.5], [3.6], [0.5]])
    k = 2.0 * Kinked(1.0) + White(0.1)
    with pytest.raises(NotFiniteError, match=r"lengthscale = 1 is NaN.* at rows 0 and 3") as found:
        GaussianProcessRegressor(k, objective=objective).fit(X, X[:, 0])
    assert "Kinked(1.0)" in str(found.value) and "noise" not in str(found.value).replace("White", "")
    with pytest.raises(NotFiniteError, match="lengthscale = 1"):
        GaussianProcessClassifier(k).fit(X, [0, 0, 1, 1, 0])
    assert GaussianProcessRegressor(k, optimizer=None).fit(X, X[:, 0]).certificate_.converged


@pytest.mark.parametrize("noise", [1e-4, 1e-9, 1e-12, 1e-13])
def test_an_ill_conditioned_system_is_converged_for_both_or_for_neither(noise):
    X = np.linspace(0, 1, 60)[:, None]
    y = np.random.default_rng(0).normal(size=60)
    k = RBF(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        process = GaussianProcessRegressor(k, noise=noise, optimizer=None, tol=1e-10).fit(X, y)
        ridge = mercer.KernelRidge(k, alpha=noise, solver="cholesky", fit_intercept=False, tol=1e-10).fit(
            X, y
        )
    assert process.certificate_.status == ridge.certificate_.status
    claimed = (k(X) + noise * np.eye(60)) @ process.alpha_ - y
    size = np.linalg.norm(claimed) / np.linalg.norm(y)
    assert process.certificate_.converged == (size <= 1e-9)


# ── units ──


def with_units(seed, n, d=3):
    """Standard columns, a smooth function with noise of them, and the same in other units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    a = 10.0 ** rng.uniform(-6, 6, size=d)
    b = a * rng.uniform(-100, 100, size=d)
    c = 10.0 ** rng.uniform(-6, 6) * rng.choice([-1.0, 1.0])
    return X, y, X * a + b, c * y + c * rng.uniform(-50, 50)


@pytest.mark.parametrize("n", [25, 90])  # lengthscales with fixed ratios, and one by one
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "kernel", ["1.0*RBF() + White(0.1)", "RBF() + White(0.1)", "1.0*Matern() + White(0.1)"]
)
def test_the_units_of_columns_and_targets_do_not_matter_to_a_kernel_left_open(n, seed, kernel):
    X, y, X_units, y_units = with_units(seed, n + 20)
    plain = GaussianProcessRegressor(kernel).fit(X[:n], y[:n])
    other = GaussianProcessRegressor(kernel).fit(X_units[:n], y_units[:n])
    size = np.std(y_units[:n]) / np.std(y[:n])
    sign = np.sign(np.corrcoef(y, y_units)[0, 1])
    assert other.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-4)
    mean, std = plain.predict(X[n:], return_std=True)
    m, s = other.predict(X_units[n:], return_std=True)
    origin = np.mean(y_units[:n]) - sign * size * np.mean(y[:n])
    np.testing.assert_allclose((m - origin) / (sign * size), mean, atol=2e-3)
    np.testing.assert_allclose(s / size, std, atol=2e-3)
    assert plain.certificate_.converged and other.certificate_.converged


def test_dollars_and_degrees_are_learned_as_well_as_standardised_columns():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)) * [1, 1e3, 1e-2, 50] + [5, 2e4, 0, 300]
    y = 2e5 + 5e4 * np.sin((X[:, 0] - 5) * 2) + 20 * (X[:, 1] - 2e4) + 5e3 * rng.normal(size=300)
    model = GaussianProcessRegressor().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.95
    mean, std = model.predict(X[200:], return_std=True, noise=True)
    assert 0.85 < np.mean(np.abs(y[200:] - mean) < 1.96 * std) <= 1.0


def test_steep_targets_on_a_grid_are_not_predicted_as_zero():
    rng = np.random.default_rng(0)
    shapes, speeds = rng.normal(size=(11, 3)), np.linspace(0.125, 0.45, 14)
    X = np.array([np.r_[h, v] for h in shapes for v in speeds])
    y = 60 * (X[:, 3] / 0.45) ** 6 * (1 + 0.1 * X[:, 0])
    order = rng.permutation(len(y))
    few, rest = order[:110], order[110:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # noiseless: the noise ends at its lower limit
        model = GaussianProcessRegressor().fit(X[few], y[few])
    assert np.sqrt(np.mean((model.predict(X[rest]) - y[rest]) ** 2)) < 0.5


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_a_kernel_given_for_other_units_finds_the_optimum_of_its_own(factor):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, size=(60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    k = 1.0 * RBF(1.0) + White(0.1)
    own = GaussianProcessRegressor(k).fit(X, y)
    far = GaussianProcessRegressor(k).fit(X * factor, y * factor)
    expected = own.log_evidence_ - 60 * np.log(factor)
    assert far.log_evidence_ == pytest.approx(expected, abs=1e-3)
    assert "The best of" in " ".join(far.certificate_.notes) and "the scales of the data" in " ".join(
        far.certificate_.notes
    )


def test_an_optimum_at_a_limit_that_it_presses_on_is_warned_of_with_name_and_number():
    X = np.linspace(0, 1, 40)[:, None]
    k = (1.0 * RBF(1.0)).fix("scale") + White(1e-6).fix("noise")
    with pytest.warns(
        ConvergenceWarning, match=r"k1__kernel__lengthscale = .* \(its lower end\) went to the end"
    ):
        GaussianProcessRegressor(k, max_iter=100).fit(X, 30 * np.random.default_rng(0).normal(size=40))


def test_an_optimum_that_calls_everything_noise_is_warned_of_with_its_share():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    y = rng.normal(size=100)
    y -= y.mean() + (X[:, 0] - X.mean()) * np.polyfit(X[:, 0], y, 1)[0]  # no line in it
    k = 1.0 * RBF(50.0).fix("lengthscale") + White(1.0)
    with pytest.warns(PrecisionWarning, match=r"explains .* % of the variation of y"):
        model = GaussianProcessRegressor(k).fit(X, y)
    assert any("the rest it calls noise" in note for note in model.certificate_.notes)


def test_converged_is_only_said_where_the_gradient_is_small(data):
    X, y, _ = data
    for kernel in ("1.0*RBF() + White(0.1)", SUM, "1e-3*RBF(30.0) + White(1e-3)"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GaussianProcessRegressor(kernel).fit(X, y)
        if model.certificate_.converged:
            k = model.kernel_
            gradient = model.log_marginal_likelihood(k.theta, eval_gradient=True)[1]
            ended = [p.name in " ".join(model.certificate_.notes) for p in k.parameters if p.free]
            assert np.abs(gradient[~np.array(ended)]).max(initial=0.0) <= 1e-4 * len(y)


# ── large ──


def test_conjugate_gradients_are_cholesky_and_state_their_error(data):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 2))
    y, Z = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=150), rng.normal(size=(5, 2))
    noise = np.linspace(0.0, 0.05, 150)
    options = {"noise": noise, "optimizer": None, "random_state": 0}
    exact = GaussianProcessRegressor(SUM, solver="cholesky", **options).fit(X, y)
    large = GaussianProcessRegressor(SUM, solver="cg", tol=1e-11, **options).fit(X, y)
    np.testing.assert_allclose(large.alpha_, exact.alpha_, atol=1e-8)
    for ask in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(large.predict(Z, **ask), exact.predict(Z, **ask), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-8)
    np.testing.assert_allclose(large.decompose(Z).covariance, exact.decompose(Z).covariance, atol=1e-8)
    note = next(n for n in large.certificate_.notes if "is an estimate" in n)
    half = float(note.split("±")[1].split()[0])
    truth = exact.log_evidence_
    assert 0 < abs(large.log_evidence_ - truth) <= 2 * half
    assert "conjugate gradients" in large.certificate_.method
    loose = GaussianProcessRegressor(SUM, solver="cg", tol=1e-2, **options).fit(X, y)
    assert np.all(loose.predict(Z, return_std=True)[1] >= exact.predict(Z, return_std=True)[1] * (1 - 1e-12))
    with pytest.raises(InputError, match="inverse itself"):
        large.loo()


def test_the_estimated_gradient_is_the_exact_one_within_its_error():
    from mercer.machines.gaussian_process.inverses import estimate_evidence, iterative

    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(120, 2)), rng.normal(size=(120, 1))
    k = parse(SUM)
    K = k.gram(X)
    exact = log_evidence(K, Y)
    inverse = iterative(k, mercer.arrays.Rows.of(X), 0.0, tol=1e-10, n_jobs=1, random_state=0)
    found = estimate_evidence(inverse, K, Y, probes=64, random_state=1)
    assert abs(found.evidence.value - exact.value) <= 2 * found.half_width
    assert np.all(np.abs(found.evidence.gradient - exact.gradient) <= 5 * found.gradient_error)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hyperparameters_by_estimates_come_near_the_exact_ones():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=120)
    exact = GaussianProcessRegressor("1.0*RBF(1.0) + White(0.1)").fit(X, y)
    large = GaussianProcessRegressor(
        "1.0*RBF(1.0) + White(0.1)", solver="cg", random_state=0, max_iter=30
    ).fit(X, y)
    at_large = exact.log_marginal_likelihood(large.kernel_.theta)
    assert at_large > exact.log_evidence_ - 0.5
    assert at_large <= exact.log_evidence_ + 1e-6


# ── inputs ──


def test_a_precomputed_gram_matrix_gives_the_mean_and_no_band(data):
    X, y, Z = data
    k = RBF(1.0)
    ours = GaussianProcessRegressor("precomputed", noise=0.1).fit(k(X), y)
    other = GaussianProcessRegressor(k, noise=0.1, optimizer=None).fit(X, y)
    np.testing.assert_allclose(ours.predict(k(Z, X)), other.predict(Z), rtol=1e-10)
    np.testing.assert_allclose(ours.loo(), other.loo(), rtol=1e-10)
    assert ours.log_evidence_ == pytest.approx(other.log_evidence_)
    for ask in (
        lambda: ours.predict(k(Z, X), return_std=True),
        lambda: ours.decompose(k(Z, X)),
        lambda: ours.sample_y(k(Z, X), prior=True),
    ):
        with pytest.raises(InputError, match="precomputed"):
            ask()


def test_constant_targets_and_single_rows_fit_quietly():
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = GaussianProcessRegressor(normalize_y=True).fit(X, np.full(10, 7.0))
    assert model.predict(X) == pytest.approx(np.full(10, 7.0))
    assert "constant" in model.certificate_.notes[0]
    one = GaussianProcessRegressor("RBF(1.0) + White(0.1)").fit([[1.0, 2.0]], [3.0])
    assert one.predict([[1.0, 2.0]]) == pytest.approx([3.0 / 1.1])


def test_float32_fortran_read_only_sparse_and_data_frames_are_the_same_rows(data):
    import pandas
    from scipy import sparse

    X, y, Z = data
    X = X.astype(np.float32).astype(float)
    model = GaussianProcessRegressor(SUM, optimizer=None)
    expected = model.fit(X, y).predict(Z, return_std=True)
    frozen = X.copy()
    frozen.flags.writeable = False
    for A in (np.asfortranarray(X), frozen, X.astype(np.float32), sparse.csr_array(X)):
        np.testing.assert_allclose(model.fit(A, y).predict(Z, return_std=True), expected, rtol=1e-6)
    table = pandas.DataFrame(X, columns=["a", "b"])
    named = GaussianProcessRegressor("1.5*RBF(0.8).on('a') + White(0.05)", optimizer=None).fit(table, y)
    assert named.predict(pandas.DataFrame(Z, columns=["a", "b"]), return_std=True)[1].shape == (7,)


def test_bad_parameters_and_inputs_are_refused(data):
    X, y, Z = data
    for options, words in (
        ({"objective": "likelihood"}, "objective must be one of"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"n_restarts": -1}, "n_restarts"),
        ({"noise": -1.0}, "variances"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"tol": 2.0}, "tol"),
        ({"solver": "cg", "objective": "loo"}, "needs the inverse itself"),
        ({"singular": "jitter"}, "singular"),
        ({"normalize_y": "std"}, "normalize_y"),
    ):
        with pytest.raises(ParameterError, match=words):
            GaussianProcessRegressor(SUM, **options).fit(X, y)
    with pytest.raises(ShapeError, match="one variance for each of the 40 rows"):
        GaussianProcessRegressor(SUM, noise=np.ones(3)).fit(X, y)
    with pytest.raises(ShapeError, match="40 rows and y has 5"):
        GaussianProcessRegressor(SUM).fit(X, y[:5])
    with pytest.raises(ParameterError, match="ask for one of them"):
        GaussianProcessRegressor(SUM, optimizer=None).fit(X, y).predict(Z, True, True)
    with pytest.raises(InputError, match="noise alone"):
        GaussianProcessRegressor(White(1.0)).fit(X, y).decompose(Z)
