"""A recorded formula is the function: the same values, derivatives, program, bounds and text,
and only true proofs.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mercer import Dot, GaussianProcessRegressor, Proved, Refuted
from mercer.arrays import Rows
from mercer.gram import Tiles
from mercer.kernels import DotProduct, Radial, leaf
from mercer.kernels.formulas.certain import bounds
from mercer.kernels.formulas.formula import NotRecorded, polynomial, record
from mercer.kernels.formulas.monotone import (
    has_power_series_powers,
    is_completely_monotone,
    is_divisible,
    is_power_series,
)
from mercer.kernels.leaves.leaf import LEAVES
from mercer.kernels.proofs.intervals import Interval, NotEnclosed
from mercer.params import positive

POINTS = np.array([0.05, 0.3, 1.1, 2.6])
FUNCTIONS = {
    "exp": np.exp,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "absolute": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "negative": np.negative,
    "log": np.log,
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arctan": np.arctan,
}


@pytest.fixture(autouse=True)
def _forget():
    """Leaves of these tests are not known to the others."""
    before = dict(LEAVES)
    yield
    LEAVES.clear()
    LEAVES.update(before)


def make(cls, value, **fields):
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, float), "value": value, **fields}
    return leaf(type("Mine", (cls,), body))


# ── random formulas ─────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = st.sampled_from([-2.0, -0.5, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
START = st.one_of(st.just(("u",)), NUMBERS.map(lambda c: ("number", c)))


def grown(inner):
    return st.one_of(
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner),
        st.tuples(st.sampled_from(["+", "-", "*", "/", "max", "min"]), inner, inner),
        st.tuples(st.just("**"), inner, NUMBERS),
        st.tuples(st.just("poly"), inner, st.lists(NUMBERS, min_size=1, max_size=4)),
    )


TREES = st.recursive(START, grown, max_leaves=6)


def build(tree, u):
    """The function that a tree stands for, in whatever arithmetic u has."""
    head, *rest = tree
    if head == "u":
        return u
    if head == "number":
        return rest[0]
    if head == "**":
        return build(rest[0], u) ** rest[1]
    if head == "poly":
        return polynomial(build(rest[0], u), tuple(rest[1]))
    parts = [build(part, u) for part in rest]
    two = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    return two[head](*parts) if head in two else FUNCTIONS[head](*parts)


def function(tree):
    def f(u):
        with np.errstate(all="ignore"):
            return build(tree, u)

    return f


def tame(values):
    values = np.broadcast_to(values, POINTS.shape)
    return bool(np.all(np.isfinite(values)) and np.abs(values).max() < 1e6)


@settings(deadline=None)
@given(TREES)
def test_a_recording_has_the_values_the_derivative_and_the_text_of_the_function(tree):
    f = function(tree)
    g = record(f)
    assume(tame(f(POINTS)))
    np.testing.assert_allclose(g.at(POINTS), f(POINTS), rtol=1e-13)
    names = {op: getattr(np, op) for op in FUNCTIONS if hasattr(np, op)}
    names |= {"maximum": np.maximum, "minimum": np.minimum}
    names["polynomial"] = lambda u, *coefs: polynomial(u, coefs)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(eval(g.text("u"), {**names, "u": POINTS}), f(POINTS), rtol=1e-9)
    h = 1e-6
    up, down = f(POINTS + h), f(POINTS - h)
    second = f(POINTS + 2 * h) - 2 * f(POINTS + h) + 2 * f(POINTS - h) - f(POINTS - 2 * h)
    with np.errstate(all="ignore"):
        slope = np.broadcast_to(g.derivative().at(POINTS), POINTS.shape)
    smooth = (
        np.isfinite(slope) & (np.abs(np.broadcast_to(second, POINTS.shape)) < 1e-8) & (np.abs(slope) < 1e4)
    )
    central = np.broadcast_to((up - down) / (2 * h), POINTS.shape)
    np.testing.assert_allclose(slope[smooth], central[smooth], rtol=1e-4, atol=1e-3)


@settings(deadline=None)
@given(TREES)
def test_the_core_computes_what_numpy_does(tree):
    f = function(tree)
    X = np.array([[0.2, 0.1], [0.9, 0.5], [1.4, 1.1], [0.3, 0.8]])
    for family in (Radial, DotProduct):
        k = make(family, lambda self, u: f(u) + 0.0 * u)(*((0.9,) if family is Radial else ()))
        with np.errstate(all="ignore"):
            direct = k.block(Rows(X), None)
        if not np.all(np.isfinite(direct)) or np.abs(direct).max() > 1e6:
            continue
        for K in (k(X), k.gram(X) @ np.eye(4)):
            np.testing.assert_allclose(K, direct, rtol=1e-10, atol=1e-10 * (1 + np.abs(direct).max()))


@settings(deadline=None)
@given(TREES)
def test_bounds_hold_the_value(tree):
    f = function(tree)
    try:
        g = record(f)
        found = [bounds(g, Interval.exact(float(u)), {}) for u in POINTS]
    except (NotEnclosed, ArithmeticError, OverflowError):
        return
    values = np.broadcast_to(f(POINTS), POINTS.shape)
    for interval, value in zip(found, values, strict=True):
        if np.isfinite(value) and abs(value) < 1e100:
            slack = 1e-7 * (1 + abs(value))
            assert float(interval.low) - slack <= value <= float(interval.high) + slack


# ── parameters ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_users_leaf_is_native_and_its_gradient_is_the_difference():
    Mine = make(
        Radial,
        lambda self, s: np.exp(-((s / self.width) ** (self.bend / 2))) / (1 + self.bend * s),
        width=positive(1.3),
        bend=positive(1.4),
    )
    k = 0.7 * Mine(0.8, width=2.0, bend=1.2)
    X = np.random.default_rng(0).normal(size=(20, 3))
    W = np.random.default_rng(1).normal(size=(20, 20))
    K = Tiles(k, X)
    assert not K.notes
    gradient = K.contract(W=W)
    for j, step in enumerate(1e-6 * np.eye(len(k.theta))):
        up, down = (float((W * k.with_theta(k.theta + s * step)(X)).sum()) for s in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7)
    y = np.sin(X[:, 0])
    assert (
        GaussianProcessRegressor(k + 0.01 * make(DotProduct, lambda self, t: t)()).fit(X, y).score(X, y) > 0.5
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda self, s: 1.0 if s > 1 else 2.0, "looks at the value"),
        (lambda self, s: np.where(s < 1, s, 1.0), "looks at the value"),
        (lambda self, s: np.array([1.0]) * s, "combines its argument with ndarray"),
        (lambda self, s: np.cumsum(s), "np.cumsum"),
        (lambda self, s: math.exp(-s), "looks at the value"),
        (lambda self, s: s.sum(), "AttributeError"),
    ],
)
def test_what_is_no_formula_says_why(value, words):
    with pytest.raises(NotRecorded, match=words):
        make(Radial, value)().recorded()


def test_a_function_that_knows_a_symbol_from_an_array_is_not_believed():
    def sly(self, s):
        return np.exp(-s) if not isinstance(s, np.ndarray) else -np.exp(-s)

    k = make(Radial, sly)()
    with pytest.raises(NotRecorded, match="something else to numbers"):
        k.recorded()
    assert isinstance(k.validity(columns=1), Refuted)


def test_a_class_that_evaluates_rows_in_its_own_way_has_no_recording():
    class Own(Radial):
        def value(self, s):
            return np.exp(-s)

        def block(self, x, z):
            return -super().block(x, z)

    k = leaf(Own)(1.0)
    X = np.array([[0.0], [1.0]])
    assert not isinstance(k.validity(columns=1), Proved)
    np.testing.assert_array_equal(k(X, X.copy()), k.block(Rows(X), Rows(X)))


# ── proofs ──────────────────────────────────────────────────────────────────────────────────────────────────

FALLING = st.recursive(
    st.one_of(st.just(("u",)), NUMBERS.map(lambda c: ("number", c))),
    lambda inner: st.one_of(
        st.tuples(st.just("negative"), inner),
        st.tuples(st.sampled_from(["exp", "sqrt", "log1p", "reciprocal", "log"]), inner),
        st.tuples(st.sampled_from(["+", "-", "*", "/"]), inner, inner),
        st.tuples(st.just("**"), inner, NUMBERS),
    ),
    max_leaves=5,
)


def in_mpmath(g):
    """The formula as a function in high precision."""
    rules = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: mpmath.power(a, b),
        "negative": lambda a: -a,
        "exp": mpmath.exp,
        "expm1": mpmath.expm1,
        "sqrt": mpmath.sqrt,
        "log": mpmath.log,
        "log1p": lambda a: mpmath.log(1 + a),
        "expit": lambda a: 1 / (1 + mpmath.exp(-a)),
        "sinh": mpmath.sinh,
        "cosh": mpmath.cosh,
        "polynomial": lambda u, *c: sum(a * u**i for i, a in enumerate(c)),
    }
    return lambda u: g.fold({"·": u}, mpmath.mpf, rules)


@settings(deadline=None)
@given(FALLING)
def test_what_is_called_completely_monotone_alternates_in_sign(tree):
    g = record(function(tree))
    if not is_completely_monotone(g, {}):
        assert not is_divisible(g, {})
        return
    powers = [1.0] if not is_divisible(g, {}) else [1.0, 0.37, 2.6]
    with mpmath.workdps(60):
        for r in powers:
            f = in_mpmath(g)
            for point in ("0.3", "1.7"):
                taylor = mpmath.taylor(lambda u, f=f, r=r: mpmath.power(f(u), r), mpmath.mpf(point), 9)
                scale = max(abs(c) for c in taylor)
                assert all((-1) ** n * c >= -scale * mpmath.mpf("1e-20") for n, c in enumerate(taylor)), (
                    g.text("s")
                )


SERIES = st.recursive(
    st.one_of(st.just(("u",)), NUMBERS.map(lambda c: ("number", c))),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["negative", "exp", "sinh", "cosh", "expm1"]), inner),
        st.tuples(st.sampled_from(["+", "-", "*", "/"]), inner, inner),
        st.tuples(st.just("**"), inner, NUMBERS),
        st.tuples(st.just("poly"), inner, st.lists(NUMBERS, min_size=1, max_size=3)),
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(SERIES)
def test_what_is_called_a_power_series_has_no_negative_coefficient(tree):
    g = record(function(tree))
    if not is_power_series(g, {}):
        return
    with mpmath.workdps(60):
        f = in_mpmath(g)
        if abs(f(mpmath.mpf(0))) > mpmath.mpf("1e30"):
            return
        powers = [1.0] if not has_power_series_powers(g, {}) else [1.0, 0.37]
        for r in powers:
            taylor = mpmath.taylor(lambda u, f=f, r=r: mpmath.power(f(u), r), mpmath.mpf(0), 9)
            scale = max(abs(c) for c in taylor)
            assert all(c >= -scale * mpmath.mpf("1e-20") for c in taylor), g.text("t")


@pytest.mark.parametrize(
    "value",
    [
        lambda s: np.exp(-s),
        lambda s: np.exp(-(s**0.75)),
        lambda s: 1 / (1 + s),
        lambda s: (1 + np.sqrt(s)) ** -2.5,
        lambda s: 1 / (1 + s) ** 3,
        lambda s: np.exp(-np.log1p(s / 2) * 3),
        lambda s: np.exp(1 - np.sqrt(1 + s)),
        lambda s: 0.5 * np.exp(-s) + 2 / (3 + np.log1p(s)),
        lambda s: np.exp(-(1 - np.exp(-s))),
        lambda s: 1 / np.log(3 + s),
        lambda s: np.exp(-s) * (1 + s) ** -1,
    ],
)
def test_functions_known_to_be_mixtures_of_gaussians_are_proved(value):
    k = make(Radial, lambda self, s: value(s))()
    assert isinstance(k.validity(seconds=60), Proved)


@pytest.mark.parametrize(
    "value",
    [
        lambda s: np.exp(-(s**1.25)),
        lambda s: np.exp(-(s**2)),
        lambda s: 1 - s / 4,
        lambda s: np.exp(s),
        lambda s: np.cos(np.sqrt(s)),
        lambda s: 1 / (1 + s**2),
        lambda s: np.maximum(0.0, 1 - s),
        lambda s: np.exp(-s) - 0.1,
        lambda s: np.sqrt(s),
        lambda s: 1 / (s - 3),
        lambda s: np.exp(-s) * (s - 1),
        lambda s: (1 - np.exp(-s)) * 2,
        lambda s: 1 / np.log(1 + s),
        lambda s: 1 / np.sqrt(s),
        lambda s: np.log1p(-s),
        lambda s: 1 / np.log(0.5 + s),
        lambda s: 1 / np.log(0.5 + s) ** 0.5,
        lambda s: 1 / (0.1 + np.log(0.2 + s)),
        lambda s: np.exp(-((0.1 + np.log(0.5 + s)) ** 0.5)),
    ],
)
def test_functions_that_are_not_are_never_proved_by_the_rules(value):
    g = record(value)
    assert not is_completely_monotone(g, {})
    assert not is_divisible(g, {})


def test_a_dot_product_of_known_steps_is_proved_without_a_declared_series():
    for f in (np.exp, np.sinh, np.cosh, np.expm1, np.exp2, lambda t: np.exp(t) * np.cosh(2 * t) + t**3):
        assert isinstance(Dot(f).validity(), Proved)
    for f in (
        np.sin,
        np.cos,
        np.tanh,
        lambda t: t - t**2 / 10,
        lambda t: np.exp(-t),
        lambda t: 1 / (1 - t),
        lambda t: t**1.5,
    ):
        assert not isinstance(Dot(f).validity(columns=1, seconds=5), Proved)
