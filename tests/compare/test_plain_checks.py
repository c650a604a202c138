"""The checks of the twins for plain arrays and known parameters come to what scikit-learn's own say."""

import numpy as np
import pytest
from sklearn import gaussian_process, kernel_ridge, svm
from sklearn.base import clone
from sklearn.gaussian_process import kernels as peer
from sklearn.utils._param_validation import validate_parameter_constraints

import mercer.sklearn as twins
from mercer.machines.shared.parameters import constructor
from mercer.sklearn.gp_kernels import Path, Sample, operator

PAIRS = [
    (twins.SVC(), svm.SVC()),
    (twins.NuSVC(), svm.NuSVC()),
    (twins.SVR(), svm.SVR()),
    (twins.NuSVR(), svm.NuSVR()),
    (twins.OneClassSVM(), svm.OneClassSVM()),
    (twins.KernelRidge(kernel="rbf"), kernel_ridge.KernelRidge(kernel="rbf")),
    (
        twins.GaussianProcessRegressor(optimizer=None, alpha=0.1),
        gaussian_process.GaussianProcessRegressor(optimizer=None, alpha=0.1),
    ),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.repeat([0, 1], 10)


def spoiled(i, j, value):
    A = X.copy()
    A[i, j] = value
    return A


def name_of(pair):
    return type(pair[0]).__name__


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_defaults_pass_the_checks_that_they_are_not_held_against(pair):
    kind = type(pair[0])
    defaults = {name: p.default for name, p in constructor(kind).items()}
    validate_parameter_constraints(kind._parameter_constraints, defaults, caller_name=kind.__name__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        (spoiled(3, 1, np.nan), Y),
        (spoiled(3, 1, np.inf), Y),
        (X[:0], Y[:0]),
        (X[:, :0], Y),
        (X, Y[:7]),
        (X[0], Y),
        (X, np.where(Y, np.nan, 0.5)),
        (X + 1j, Y),
    ],
    ids=["nan", "inf", "no rows", "no columns", "few targets", "one row", "nan targets", "complex"],
)
def test_bad_data_is_refused_in_the_words_of_scikit_learn(pair, rows, targets):
    if isinstance(pair[0], twins.OneClassSVM) and rows is X:
        pytest.skip("no targets are read")
    said = []
    for model in pair:
        with pytest.raises(ValueError) as error:
            clone(model).fit(rows, targets)
        said.append(str(error.value).splitlines()[0])
    assert said[0].replace(type(pair[0]).__name__, "") == said[1].replace(type(pair[1]).__name__, "")


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_a_bad_parameter_is_refused_each_time_in_the_words_of_scikit_learn(pair):
    for name, value in (("kernel", "nonsense"), ("kernel", 3.5)):
        for _ in range(2):
            said = []
            for model in pair:
                with pytest.raises(ValueError) as error:
                    clone(model).set_params(**{name: value}).fit(X, Y)
                said.append(str(error.value))
            assert said[0] == said[1]


@pytest.mark.parametrize("value", [2, 2.0, 0, -1.0, np.float64(2.0), "2"])
@pytest.mark.parametrize("name", ["C", "degree", "cache_size"])
def test_equal_numbers_of_other_types_are_judged_by_themselves(name, value):
    outcomes = []
    for kind in (twins.SVC, svm.SVC):
        try:
            kind(**{name: value}).fit(X, Y)
            outcomes.append("")
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_the_plain_way_fits_what_the_long_way_fits(monkeypatch, pair):
    plain = clone(pair[0]).fit(X, Y)
    # lists and Fortran's order go through scikit-learn
    long = clone(pair[0]).fit(np.asfortranarray(X), Y.tolist())
    assert np.array_equal(plain.predict(X), long.predict(X.tolist()))
    assert plain.n_features_in_ == long.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features"):
        plain.predict(np.ascontiguousarray(X[:, :2]))


def test_names_of_columns_are_forgotten_by_the_next_fit_and_missed_by_predict():
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = twins.SVC().fit(named, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)


@pytest.mark.parametrize(
    "kernel",
    [
        peer.ConstantKernel(2.0) * peer.RBF([1.0, 0.5, 3.0]) + peer.WhiteKernel(0.2),
        peer.DotProduct(1.5) ** 2 + peer.WhiteKernel(0.3),
        peer.PairwiseKernel(gamma=0.4, metric="rbf") + peer.ConstantKernel(0.5, "fixed"),
        peer.PairwiseKernel(gamma=0.4, metric="laplacian") * peer.RationalQuadratic(1.3, 0.7),
        peer.PairwiseKernel(gamma=0.4, metric="linear") + peer.Matern(0.8, nu=1.5),
        peer.ConstantKernel(0.0, "fixed") + peer.RBF(1.0),
    ],
    ids=str,
)
def test_a_kernel_that_is_moved_is_the_kernel_that_is_translated_anew(kernel):
    sample = Sample.of(X, True)
    path = Path(clone(kernel), sample)
    W = RNG.normal(size=(20, 20))
    for _ in range(3):
        theta = kernel.theta + RNG.normal(size=len(kernel.theta))
        moved = path.at(theta)
        anew = operator(kernel.clone_with_theta(theta), sample)
        np.testing.assert_allclose(moved.dense(), anew.dense(), rtol=1e-12)
        np.testing.assert_allclose(moved.contract(W=W), anew.contract(W=W), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(moved.dense(), kernel.clone_with_theta(theta)(X), rtol=1e-10)


@pytest.mark.parametrize("kind", ["GaussianProcessRegressor", "GaussianProcessClassifier"])
def test_the_evidence_without_a_search_is_that_of_scikit_learn(kind):
    kernel = 1.5 * peer.RBF(1.2) + peer.WhiteKernel(0.4)
    mine, theirs = (
        getattr(library, kind)(kernel, optimizer=None).fit(X, Y) for library in (twins, gaussian_process)
    )
    assert mine.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-8
    )
    assert mine.log_marginal_likelihood(kernel.theta) == pytest.approx(
        mine.log_marginal_likelihood_value_, rel=1e-12
    )
