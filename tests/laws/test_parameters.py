"""Parameters: refused at birth when bad, flat and free when tuned, in scikit-learn's hands when searched."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from kernels_under_test import every_kernel, expressions, registered_leaves
from mercer.errors import MercerError, ParameterError, ShapeError
from mercer.kernels import (
    RBF,
    ArcCosine,
    Bilinear,
    Constant,
    Custom,
    Dot,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Stationary,
    White,
)
from mercer.params import Domain

KERNELS = pytest.mark.parametrize("case", every_kernel(), ids=repr)


# ── the flat vector ──


@given(k=expressions())
def test_theta_and_back_is_the_same_kernel(k):
    theta = k.theta
    assert theta.shape == (sum(p.free for p in k.parameters),)
    assert np.all(np.isfinite(theta))
    back = k.with_theta(theta)
    assert [p.name for p in back.parameters] == [p.name for p in k.parameters]
    for old, new in zip(k.parameters, back.parameters, strict=True):
        assert math.isclose(new.value, old.value, rel_tol=1e-9, abs_tol=1e-9)
        assert (new.fixed, new.bounds) == (old.fixed, old.bounds)


@given(k=expressions(), step=st.floats(-5, 5))
def test_a_step_in_theta_moves_free_parameters_only_and_stays_in_their_domain(k, step):
    moved = k.with_theta(k.theta + step)
    for old, new in zip(k.parameters, moved.parameters, strict=True):
        if not old.free:
            assert new.value == old.value
        if old.bounds is not None:
            assert old.bounds[0] <= new.value <= old.bounds[1]
        assert math.copysign(1, new.value) == math.copysign(1, old.value) or not old.domain.logarithmic


@KERNELS
def test_theta_has_one_number_for_each_free_parameter(case):
    k = case.kernel
    np.testing.assert_allclose(k.with_theta(k.theta).theta, k.theta, rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match=f"theta must have {len(k.theta)} numbers"):
        k.with_theta(np.zeros(len(k.theta) + 1))
    if len(k.theta):
        with pytest.raises(ParameterError, match="finite"):
            k.with_theta(np.full(len(k.theta), np.nan))


@pytest.mark.parametrize("step", [-1e6, -800.0, 800.0, 1e6])
@pytest.mark.parametrize(
    "k",
    [RBF(1.0), RBF(1.0).bounded(lengthscale=(0.1, 2)), -2.0 * White(), Constant(3).bounded(value=(-1, 4))],
    ids=str,
)
def test_a_wild_step_in_theta_still_gives_a_kernel(k, step):
    moved = k.with_theta(np.full(len(k.theta), step))
    for old, new in zip(k.parameters, moved.parameters, strict=True):
        assert np.isfinite(new.value)
        assert new.value != 0 or not old.domain.logarithmic or old.bounds is not None


@given(k=expressions())
def test_derivative_of_a_parameter_is_that_of_its_transform(k):
    h = 1e-6
    for p in k.parameters:
        if not p.free or (p.bounds and not p.bounds[0] < p.value < p.bounds[1]):
            continue
        up = p.domain.from_real(p.theta + h, p.bounds, p.value)
        down = p.domain.from_real(p.theta - h, p.bounds, p.value)
        assert math.isclose(
            (up - down) / (2 * h), p.derivative, rel_tol=1e-5, abs_tol=1e-7 * max(1, abs(p.value))
        )


@pytest.mark.parametrize("bounds", [None, (0.5, 8.0), (-2.0, 8.0), (0.0, 8.0)])
@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("value", [0.6, 2.0, 7.9])
def test_every_transform_has_its_inverse_and_its_derivative(bounds, logarithmic, value):
    domain = Domain("a number", logarithmic=logarithmic)
    t = domain.to_real(value, bounds)
    assert math.isclose(domain.from_real(t, bounds, value), value, rel_tol=1e-12)
    slope = (domain.from_real(t + 1e-5, bounds, value) - domain.from_real(t - 1e-5, bounds, value)) / 2e-5
    assert math.isclose(domain.derivative(value, bounds), slope, rel_tol=1e-7)


# ── fixed and bounded ──


def test_a_bare_name_fixes_all_of_that_name_and_a_full_name_one():
    k = RBF(1.0) + 2.0 * RBF([1.0, 2.0]) * Periodic(3.0)
    assert sum(p.fixed for p in k.fix("lengthscale").parameters) == 4
    one = k.fix("k2__kernel__k1__lengthscale")
    assert [p.name for p in one.parameters if p.fixed] == [
        "k2__kernel__k1__lengthscale[0]",
        "k2__kernel__k1__lengthscale[1]",
    ]
    assert len(k.fix("lengthscale", "period").theta) == 1


def test_fixing_and_bounding_change_no_value():
    X = np.random.default_rng(0).normal(size=(5, 2))
    k = 2.0 * RBF(1.0) + Matern(2.0)
    marked = k.fix("scale").bounded(lengthscale=(0.5, 4))
    np.testing.assert_array_equal(k(X), marked(X))
    assert marked != k
    assert k.theta.shape == (3,)


def test_bounds_hold_for_lists_of_lists():
    k = SpectralMixture([1.0], [[0.1, 0.2]], [[1.0, 1.0]]).bounded(means=(0, 1))
    assert all(0 <= p.value <= 1 for p in k.with_theta(k.theta + 9).parameters if "means" in p.name)


def test_a_value_outside_its_bounds_is_refused_later_too():
    k = RBF(1.0).bounded(lengthscale=(0.5, 2))
    assert k.set_params(lengthscale=1.5).lengthscale == 1.5
    with pytest.raises(ParameterError, match="outside its bounds"):
        k.set_params(lengthscale=3.0)


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: RBF(1.0).fix(), "at least one"),
        (lambda: RBF(1.0).bounded(), "at least one"),
        (lambda: RBF(1.0).fix("nu"), "it has ['lengthscale']"),
        (lambda: RBF(1.0).fix(3), "named by text"),
        (lambda: Linear().fix("lengthscale"), "it has []"),
        (lambda: Polynomial(2).fix("degree"), "no tunable parameter 'degree'"),
        (lambda: RBF(1.0).bounded(lengthscale=(2, 3)), "outside its bounds (2, 3)"),
        (lambda: RBF(1.0).bounded(lengthscale=(-1, 3)), "a positive number"),
        (lambda: RBF(1.0).bounded(lengthscale=(0, 3)), "a positive number"),
        (lambda: RBF(1.0).bounded(lengthscale=(3, 1)), "low < high"),
        (lambda: RBF(1.0).bounded(lengthscale=(1, np.inf)), "finite"),
        (lambda: RBF(1.0).bounded(lengthscale=(False, 2)), "(low, high)"),
        (lambda: RBF(1.0).bounded(lengthscale="ab"), "(low, high)"),
        (lambda: RBF(1.0).bounded(lengthscale=(1, 2, 3)), "(low, high)"),
    ],
)
def test_a_mark_that_makes_no_sense_is_refused(act, words):
    with pytest.raises(ParameterError) as caught:
        act()
    assert words in str(caught.value)


# ── refused at birth ──

NOT_NUMBERS = [
    "1.0",
    None,
    True,
    1j,
    np.datetime64("2020-01-01"),
    np.timedelta64(1, "D"),
    {},
    object(),
    b"1",
    np.bool_(True),
    lambda: 1,
]
NOT_POSITIVE = [0, -1, -1e-300, np.float32(-2), 0.0, -np.inf]
NOT_FINITE = [np.nan, np.inf, float("nan"), np.float32("inf"), 10**400]
NO_VECTORS = [[], [[1.0, 2.0]], [1.0, "a"], [1.0, np.nan], [1.0, -1.0], np.ones((2, 2)), [None]]

BAD = [
    *((RBF, {"lengthscale": v}) for v in [*NOT_NUMBERS, *NOT_POSITIVE, *NOT_FINITE, *NO_VECTORS]),
    *((RBF, {"gamma": v}) for v in [*NOT_NUMBERS, *NOT_POSITIVE, *NOT_FINITE, *NO_VECTORS]),
    *((RBF, {"sigma": v}) for v in ["1", -1, 0, np.nan, []]),
    *((Matern, {"nu": v}) for v in ["1", -1, 0, np.nan, np.inf, 51, [1.5], True]),
    *((RationalQuadratic, {"alpha": v}) for v in ["1", -1, 0, np.nan, [1.0]]),
    *((Periodic, {"period": v}) for v in ["1", -1, 0, np.nan, []]),
    *((Polynomial, {"degree": v}) for v in ["3", 0, -1, 2.5, np.nan, np.inf, True, [2], 10**400]),
    *((Polynomial, {"offset": v}) for v in ["3", -1, np.nan, np.inf, True, [2]]),
    *((Sigmoid, {"offset": v}) for v in ["3", np.nan, np.inf, True, [2]]),
    *((Constant, {"value": v}) for v in ["3", np.nan, np.inf, True, [2], 10**400]),
    *((White, {"noise": v}) for v in ["3", 0, -1, np.nan, [2]]),
    *((ArcCosine, {"order": v}) for v in ["1", -1, 3, 0.5, True]),
    *(
        (Bilinear, {"A": v})
        for v in [
            3,
            "I",
            [],
            [1, 2],
            [[1, 2]],
            [[1, 2], [3]],
            [[1, np.nan], [0, 1]],
            [["a"]],
            np.ones((2, 2, 2)),
        ]
    ),
    *((Dot, {"taylor": v}) for v in ["1.5", 3, [], [1, "x"], [np.nan], [[1], [2]], True]),
]


@pytest.mark.parametrize("cls, arguments", BAD, ids=lambda v: v.__name__ if isinstance(v, type) else None)
def test_a_bad_value_is_refused_at_birth_with_owner_value_and_what_is_allowed(cls, arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ParameterError) as caught:
        cls(**arguments)
    message = str(caught.value)
    assert message.startswith(f"{cls.__name__}: {name}")
    assert "must be" in message
    assert "got" in message
    assert message.endswith(".")
    assert len(message) < 300
    if isinstance(value, (int, float, str)) and len(repr(value)) < 50:
        assert repr(value) in message


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: RBF(1.0, gamma=2.0), "one of lengthscale, gamma, sigma"),
        (lambda: RBF(sigma=1.0, gamma=2.0), "one of lengthscale, gamma, sigma"),
        (lambda: SpectralMixture([1.0], [0.1, 0.2], [1.0]), "one entry per component"),
        (lambda: SpectralMixture([1.0], [[0.1, 0.2]], [1.0]), "same number of columns"),
        (lambda: SpectralMixture([1.0], [[]], [[]]), "at least one number"),
        (lambda: SpectralMixture([-1.0], [0.1], [1.0]), "weights[0] must be"),
        (lambda: Dot(), "give a function"),
        (lambda: Dot(3), "function of the dot product"),
        (lambda: Dot(np.sinh, taylor=[0, 1]), "not the polynomial"),
        (lambda: Dot(lambda t: 1.0 + 0 * t, taylor=[2.0]), "not the polynomial"),
        (lambda: Stationary(3), "must be a function"),
        (lambda: Custom("f"), "function of two things"),
        (lambda: RBF(1.0).times(2.0), "write c * k"),
        (lambda: RBF(1.0).of("map"), "A must be a list of lists"),
        (lambda: RBF(1.0).on(), "at least one column"),
        (lambda: RBF(1.0).on(1.5), "a name, a number or a slice"),
        (lambda: RBF(1.0).on(True), "a name, a number or a slice"),
        (lambda: RBF(1.0).on(slice("a", "b")), "whole numbers"),
        (lambda: RBF(1.0).on(slice(0, 2, 0)), "whole numbers"),
        (lambda: RBF(1.0).polynomial([]), "at least one number"),
        (lambda: RBF(1.0).polynomial([1, np.nan]), "coefs[1]"),
        (lambda: RBF(1.0) ** -1, "a number >= 0"),
        (lambda: RBF(1.0) ** np.nan, "a number >= 0"),
        (lambda: RBF(1.0) * np.inf, "a finite number"),
        (lambda: RBF(1.0) / 0, "divided by zero"),
    ],
)
def test_what_makes_no_kernel_is_refused_at_birth(make, words):
    with pytest.raises(MercerError) as caught:
        make()
    assert words in str(caught.value)


def test_a_function_that_does_not_work_number_by_number_is_refused():
    with pytest.raises(ShapeError, match="number by number"):
        Dot(lambda t: 1.0)([[1.0], [2.0]])


@pytest.mark.parametrize(
    "value", [2, 2.0, np.int8(2), np.float32(2), np.float64(2), np.array(2.0), np.longdouble(2)]
)
def test_every_kind_of_number_is_the_same_number(value):
    k = RBF(value)
    assert k == RBF(2.0)
    assert type(k.lengthscale) is float
    assert RBF([value, 1]) == RBF(np.array([2.0, 1.0])) == RBF((2.0, 1.0))
    assert type(Polynomial(value).degree) is int


@pytest.mark.parametrize("name, cls", registered_leaves().items())
def test_a_leaf_holds_numbers_and_tuples_only_so_it_cannot_be_changed_from_outside(name, cls):
    cases = [c.kernel for c in every_kernel() if type(c.kernel) is cls]
    assert cases
    for k in cases:
        for value in k.get_params(deep=False).values():
            assert isinstance(value, (int, float, str, tuple, type(None))) or callable(value)


# ── scikit-learn ──


@given(k=expressions())
def test_get_params_and_set_params_agree(k):
    params = k.get_params()
    assert k.set_params(**k.get_params(deep=False)) == k
    assert all(name.split("__")[0] in k.get_params(deep=False) for name in params)
    assert clone(k) == k
    assert clone(k) is not k


@KERNELS
def test_a_parameter_set_by_name_is_the_parameter_got_by_name(case):
    k = case.kernel
    for p in k.parameters:
        if "[" in p.name:
            continue
        changed = k.set_params(**{p.name: p.value * 1.25})
        assert changed.get_params()[p.name] == p.value * 1.25
        assert k.get_params()[p.name] == p.value


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"Invalid parameter 'width'.*lengthscale"):
        RBF(1.0).set_params(width=2)
    with pytest.raises(ParameterError, match="Invalid parameter 'width' for kernel RBF"):
        (2 * RBF(1.0)).set_params(kernel__width=2)


def test_parts_can_be_replaced_by_kernels_or_their_text():
    k = RBF(1.0) + Linear()
    assert k.set_params(k2="Periodic(3.0)") == RBF(1.0) + Periodic(3.0)
    assert k.set_params(k1=White(), k1__noise=0.5) == White(0.5) + Linear()


def test_the_kernel_a_user_holds_is_never_changed():
    k = 2.0 * RBF(1.0)
    before = hash(k)
    k.set_params(kernel__lengthscale=9.0)
    copy = clone(k)
    copy.set_params(kernel__lengthscale=9.0)
    assert hash(k) == before
    assert k == 2.0 * RBF(1.0)
    assert copy == 2.0 * RBF(9.0)


class Ridge(RegressorMixin, BaseEstimator):
    """The smallest estimator with a kernel parameter: it only stores it."""

    def __init__(self, kernel=None, alpha=1e-3):
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X, y):
        self.X_ = X
        self.coef_ = np.linalg.solve(self.kernel(X) + self.alpha * np.eye(len(X)), y)
        return self

    def predict(self, X):
        return self.kernel(X, self.X_) @ self.coef_


def wave(n=60):
    X = np.linspace(-3, 3, n)[:, None]
    return X, np.sin(2 * X[:, 0])


def test_grid_search_tunes_a_lengthscale_inside_an_estimator():
    X, y = wave()
    kernel = RBF(1.0)
    grid = {"kernel__lengthscale": [1e-4, 0.7, 1e4], "alpha": [1e-6]}
    search = GridSearchCV(Ridge(kernel=kernel), grid, cv=3).fit(X[::-1], y[::-1])
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 3
    assert search.best_estimator_.kernel == RBF(search.best_params_["kernel__lengthscale"])
    assert kernel == RBF(1.0)
    for value, score in zip(grid["kernel__lengthscale"], scores, strict=True):
        direct = cross_val_score(Ridge(kernel=RBF(value), alpha=1e-6), X[::-1], y[::-1], cv=3).mean()
        assert math.isclose(score, direct, rel_tol=1e-9)


def test_grid_search_tunes_a_part_of_a_composite_kernel():
    X, y = wave()
    kernel = 1.0 * RBF(1.0) * Periodic(2.0) + 0.1 * White(1.0)
    grid = {"kernel__k1__kernel__k2__period": [0.3, np.pi], "kernel__k1": [1.0 * RBF(1.0) * Periodic(2.0)]}
    search = GridSearchCV(Ridge(kernel=kernel), grid, cv=3).fit(X, y)
    assert (
        search.best_estimator_.kernel.parts[0].kernel.parts[1].period
        == search.best_params_["kernel__k1__kernel__k2__period"]
    )


def test_grid_search_tunes_a_kernel_inside_the_support_vector_machine_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.2).astype(int)
    search = GridSearchCV(SVC(kernel=RBF(1.0)), {"kernel__lengthscale": [1e-3, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__lengthscale": 1.0}
    twin = GridSearchCV(SVC(kernel="rbf"), {"gamma": [0.5 / 1e-6, 0.5]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], twin.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(search.predict(X), twin.predict(X))
