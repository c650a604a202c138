"""Every kernel of the language in onnxruntime has the values it has here, or is refused with a sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels_under_test import every_kernel, fitting
from mercer import (
    RBF,
    After,
    Before,
    Constant,
    Custom,
    ExpDot,
    Exponential,
    Laplacian,
    Linear,
    Matern,
    Metric,
    PerColumn,
    Periodic,
    Radial,
    Ranked,
    Spectrum,
    Standardized,
    Stationary,
    White,
    leaf,
)
from mercer.arrays import Rows
from mercer.errors import MercerError, ModelFileError
from mercer.kernels.terms import latent_diag
from onnx_runtime import apart, kernel_values

# What onnxruntime and mercer may differ by, as a share of the largest value.
CLOSE = 1e-10


def check(kernel, new: np.ndarray, known: np.ndarray, close: float = CLOSE) -> None:
    found = kernel_values(kernel, new, known)
    with np.errstate(all="ignore"):
        assert apart(found["pairs"], kernel(new, known)) <= close
        assert apart(found["own"][:, 0], kernel.diag(new)) <= close
        assert apart(found["latent"][:, 0], latent_diag(kernel, Rows(new))) <= close


REFUSED = {
    "matern-0.3": "kve",
    "matern-1.0": "kve",
    "matern-2.0": "kve",
    "matern-7.25": "kve",
    "matern-20.0": "kve",
    "custom": "Python function",
    "custom-blocks": "Python function",
    "times": "looks at the values",
    "of-function": "looks at the values",
}


@pytest.mark.parametrize("case", every_kernel(), ids=repr)
def test_a_kernel_has_its_values_in_the_graph_or_is_refused_by_name(case):
    new = np.vstack([case.points(6, seed=5), case.points(9)[:2]])
    if case.name not in REFUSED:
        check(case.kernel, new, case.points(9))
        return
    with pytest.raises(ModelFileError, match=REFUSED[case.name]) as refusal:
        kernel_values(case.kernel, new, case.points(9))
    assert str(refusal.value).startswith("ONNX cannot express ")


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data(), d=st.integers(1, 5))
def test_random_kernels_have_their_values_in_the_graph(data, d):
    kernel = data.draw(fitting(d))
    rng = np.random.default_rng(0)
    known = rng.normal(size=(7, d))
    new = np.vstack([rng.normal(size=(5, d)), known[:2]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kernel(new, known), kernel.diag(new), latent_diag(kernel, Rows(new))
        except MercerError:
            # a fractional power of what is negative here, say
            return
        try:
            kernel_values(kernel, new, known)
        except ModelFileError as refusal:
            said = str(refusal)
        else:
            check(kernel, new, known, 1e-8)
            return
    assert said.startswith("ONNX cannot express ")


FAR = [
    RBF(1.0),
    RBF(1e-3),
    Exponential(0.5),
    Exponential(1e-4),
    Matern(2.0, nu=1.5),
    Laplacian(0.1),
    RBF(100.0),
]


@pytest.mark.parametrize("d", [1, 3, 4, 30])
@pytest.mark.parametrize("kernel", FAR, ids=repr)
def test_rows_far_from_the_origin_and_near_each_other_keep_their_digits(kernel, d):
    rng = np.random.default_rng(d)
    known = 1e4 + rng.normal(size=(12, d))
    new = np.vstack([known[:4], known[:4] + 1e-5 * rng.normal(size=(4, d)), 1e4 + rng.normal(size=(4, d))])
    found = kernel_values(kernel, new, known)["pairs"]
    assert np.abs(found - kernel(new, known)).max() <= 1e-9
    assert np.all(np.diagonal(found)[:4] == 1.0)


def test_lengthscales_of_every_column_and_extreme_ones_are_those_of_the_kernel():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(9, 6))
    new = rng.normal(size=(5, 6))
    check(RBF([0.1, 1.0, 10.0, 1e3, 0.5, 2.0]), new, known)
    check(Exponential([1e-95, 1.0, 1.0, 1.0, 1.0, 1e95]), new, known)
    check(Exponential(1e100), new, known)


def test_noise_is_none_between_new_rows_and_known_ones_even_where_they_are_equal():
    X = np.arange(4.0)[:, None]
    found = kernel_values(White(0.5) + Constant(1.0), X, X)
    assert np.all(found["pairs"] == 1.0) and np.all(found["own"] == 1.5) and np.all(found["latent"] == 1.0)


def test_a_kernel_of_ones_own_is_exported_from_its_five_lines():
    @leaf
    class OnnxOwnRadial(Radial):
        def value(self, s):
            return np.exp(-(s**0.75)) / (1 + np.log1p(s)) + np.expm1(-s) * 0.1

    @leaf
    class OnnxOwnColumns(PerColumn):
        def term(self, x, z):
            return np.where(np.abs(x - z) < 0.7, np.cosh(0.3 * (x - z)), np.arctan(x * z) ** 2)

    rng = np.random.default_rng(0)
    for d in (2, 6):
        new, known = rng.normal(size=(5, d)), rng.normal(size=(8, d))
        check(OnnxOwnRadial(0.8) * OnnxOwnColumns() + 0.3 * OnnxOwnRadial([0.5] * d), new, known)


def test_a_leaf_that_evaluates_rows_in_its_own_way_is_refused():
    @leaf
    class OnnxOwnBlock(Radial):
        def value(self, s):
            return np.exp(-s)

        def block(self, x, z):
            return 2.0 * super().block(x, z)

    with pytest.raises(ModelFileError, match="in its own way"):
        kernel_values(OnnxOwnBlock(1.0), np.zeros((1, 1)), np.zeros((1, 1)))


def column_pairs(X):
    return np.column_stack([X[:, 0] * X[:, 1], np.sqrt(X[:, 2] ** 2 + 1.0), X[:, :2].sum(axis=1)])


def test_python_functions_that_are_arithmetic_are_written_down():
    rng = np.random.default_rng(1)
    new, known = rng.normal(size=(5, 3)), rng.normal(size=(8, 3))
    check(RBF(1.0).of(np.tanh), new, known)
    check(RBF(1.0).of(column_pairs), new, known)
    check(Linear().times(lambda X: 1.0 + X[:, 0] ** 2), new, known)
    check(Stationary(lambda delta: np.exp(-np.linalg.norm(delta, axis=-1))), new, known)
    check(RBF(0.7).of(Linear() + 1.0), new, known)


def test_readings_of_numbers_are_written_down():
    rng = np.random.default_rng(2)
    known = rng.normal(size=(40, 2)) ** 3
    known[5] = known[6]
    new = np.vstack([3 * rng.normal(size=(9, 2)), known[:3]])
    check(RBF(1.0).of(Standardized()).resolved(known), new, known)
    check(RBF(1.0).of(Ranked()).resolved(known), new, known)
    M = np.array([[2.0, -0.5], [-0.5, 0.25]])
    check(RBF(1.0).of(Metric(M)).of(Standardized()).resolved(known), new, known)
    check(Matern(1.0).of(Metric([2.0, 0.5])) + RBF(0.7).of(Metric(factor=[[1.0], [-0.5]])), new, known)
    check(RBF(1.0) * Linear().of(After(0.3, 0.5)) + Linear().of(Before(0.3, 0.5)), new, known)


def test_a_normalised_exponential_does_not_overflow():
    known = 40.0 * np.arange(1.0, 5.0)[:, None]
    check(ExpDot(1.0).normalized(), known + 0.1, known)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (RBF(1.0) + Custom(np.dot), "Custom(<dot>): it is a Python function"),
        (RBF(1.0) * Matern(1.0, nu=1.2), "Matern(1.0, nu=1.2): it calls kve"),
        (RBF(1.0).of(np.sort), "RBF(1.0).of(<sort>): it calls np.sort"),
        (RBF(1.0).of(lambda X: X - X.mean(axis=0)), "brings all rows together"),
        (RBF(1.0).of(lambda X: X[::-1]), "picks single rows"),
        ((2.0 * Periodic(1.0)) ** 0.01, "**0.01: a power so small"),
        (Spectrum(2), "Spectrum(2): it compares things"),
    ],
    ids=str,
)
def test_what_cannot_be_expressed_is_named(kernel, why):
    with pytest.raises(ModelFileError) as refusal:
        kernel_values(kernel, np.ones((2, 2)), np.ones((3, 2)))
    assert why in str(refusal.value)


def test_a_histogram_below_zero_is_nan_as_the_machine_refuses_it():
    from mercer import Intersection

    found = kernel_values(Intersection(), np.array([[-1.0], [1.0]]), np.ones((2, 1)))["pairs"]
    assert np.isnan(found[0]).all() and np.all(found[1] == 1.0)
