"""Kernels are values: never changed, equal when written the same, and combined by the rules of arithmetic."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given

from kernels_under_test import cloud, every_kernel, expressions
from mercer.kernels import RBF, Constant, Custom, Kernel, Linear, Matern, Periodic, White
from mercer.kernels.algebra import Product, Scaled, Sum

KERNELS = pytest.mark.parametrize("case", every_kernel(), ids=repr)
A, B, C = RBF(1.0), Linear(), Periodic(2.0)
X = cloud(6, 2, seed=0)


# ── values ──


@KERNELS
def test_a_kernel_cannot_be_changed(case):
    k = case.kernel
    before = str(k), hash(k)
    for name in [*k.get_params(deep=False), "something_new", "fixed_names", "stated_bounds"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(k, name, 1.0)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(k, name)
    assert (str(k), hash(k)) == before


def test_a_kernel_does_not_follow_the_list_it_was_made_from():
    scales, matrix = np.array([1.0, 2.0]), [[1.0, 0.0], [0.0, 1.0]]
    k, m = RBF(scales), Linear().of(matrix)
    scales[0], matrix[0][0] = 9.0, 9.0
    assert k == RBF([1.0, 2.0])
    assert m == Linear().of([[1.0, 0.0], [0.0, 1.0]])


@given(k=expressions())
def test_equal_kernels_have_equal_hashes_and_copies_are_equal(k):
    for other in (copy.copy(k), copy.deepcopy(k), pickle.loads(pickle.dumps(k))):
        assert other == k
        assert hash(other) == hash(k)
        assert str(other) == str(k)
        assert [p.name for p in other.parameters] == [p.name for p in k.parameters]


@KERNELS
def test_a_pickled_kernel_gives_the_same_values(case):
    points = case.points(4)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(case.kernel))(points), case.kernel(points))
    np.testing.assert_array_equal(copy.deepcopy(case.kernel)(points), case.kernel(points))


def test_kernels_that_differ_are_not_equal():
    kernels = [case.kernel for case in every_kernel()]
    for i, a in enumerate(kernels):
        for j, b in enumerate(kernels):
            assert (a == b) == (i == j), f"{a} and {b}"
    assert len(set(kernels)) == len(kernels)


def test_a_kernel_is_equal_to_nothing_but_a_kernel():
    assert RBF(1.0) != "RBF(1.0)"
    assert Constant(1.0) != 1.0
    assert RBF(1.0) != None  # noqa: E711
    assert RBF(1.0).fix("lengthscale") != RBF(1.0)
    assert RBF(1.0).bounded(lengthscale=(0.5, 2)) != RBF(1.0)


def test_functions_are_compared_by_identity():
    f = lambda a, b: 1.0
    assert Custom(f) == Custom(f)
    assert Custom(f) != Custom(lambda a, b: 1.0)


# ── arithmetic ──


def test_sums_and_products_flatten_and_do_not_mix():
    assert A + B + C == A + (B + C)
    assert (A * B) * C == A * (B * C)
    assert (A + B + C).parts == (A, B, C)
    assert (A * B * C).parts == (A, B, C)
    assert A * B + C != A * (B + C)
    mixed = A * B + C
    assert isinstance(mixed, Sum)
    assert isinstance(mixed.parts[0], Product)
    assert mixed.parts[0].parts == (A, B)
    nested = (A + B) * C
    assert isinstance(nested, Product)
    assert nested.parts == (A + B, C)


def test_numbers_are_gathered_in_front():
    assert 2 * A * 3 == 6.0 * A
    assert (2 * A) * (3 * B) == 6.0 * (A * B)
    assert -1.0 * (-A) == 1.0 * A
    assert A / 4 == 0.25 * A
    assert A - B == A + (-B)
    assert isinstance(2 * A, Scaled)


def test_a_held_number_is_not_gathered():
    held = (2.0 * A).fix("scale")
    product = held * (3.0 * B)
    assert [p.value for p in product.parameters if p.fixed] == [2.0]
    assert (5.0 * held).kernel == held


@pytest.mark.parametrize(
    "number",
    [
        2,
        2.0,
        np.float64(2),
        np.float32(2),
        np.int32(2),
        np.uint8(2),
        np.array(2.0),
        np.longdouble(2),
        True + 1,
    ],
    ids=lambda v: type(v).__name__,
)
def test_scalars_of_every_kind_work_on_either_side(number):
    assert number * A == A * number == 2.0 * A
    assert number + A == Constant(2.0) + A
    assert A + number == A + Constant(2.0)
    assert A - number == A + Constant(-2.0)
    assert number - A == Constant(2.0) + (-A)
    assert A / number == 0.5 * A
    assert A**number == A**2
    for k in (number * A, number + A, number - A, A / number):
        assert isinstance(k, Kernel)


@pytest.mark.parametrize(
    "act",
    [
        lambda: A + "RBF(1.0)",
        lambda: "RBF(1.0)" + A,
        lambda: A * None,
        lambda: None * A,
        lambda: A - "x",
        lambda: "x" - A,
        lambda: A / B,
        lambda: 1 / A,
        lambda: A**B,
        lambda: 2**A,
        lambda: A + True,
        lambda: A * True,
        lambda: A**True,
        lambda: A * [1.0],
        lambda: A * np.array([1.0, 2.0]),
        lambda: np.array([1.0, 2.0]) * A,
        lambda: A + 1j,
        lambda: np.complex128(1) * A,
        lambda: A @ B,
        lambda: A < B,
        lambda: np.exp(A),
        lambda: np.float64(2) ** A,
        lambda: np.float64(2) / A,
        lambda: len(A),
        lambda: list(A),
        lambda: A % 2,
    ],
)
def test_operators_that_mean_nothing_are_type_errors(act):
    with pytest.raises(TypeError):
        act()


def test_the_sum_of_a_list_of_kernels_is_their_sum():
    assert sum([A, B, C]) == A + B + C
    assert sum([A]) == A
    assert math.prod([A, B]) == 1.0 * (A * B)


@pytest.mark.parametrize(
    "left, right",
    [
        (A + B, B + A),
        (A * B, B * A),
        ((A + B) * C, A * C + B * C),
        (A**3, A * A * A),
        (A**0, Constant(1.0) * B**0),
        (2 * (A + B), 2 * A + 2 * B),
        (A - A, 0.0 * B),
        ((A + B).exp(), A.exp() * B.exp()),
        (A.polynomial([1, 2, 3]), 1 + 2 * A + 3 * A**2),
        (B.times(lambda X: X[:, 0]).times(lambda X: X[:, 1]), B.times(lambda X: X[:, 0] * X[:, 1])),
        (A.of(lambda X: 2 * X), A.of([[2, 0], [0, 2]])),
        (A.of([[2, 0], [0, 2]]), RBF(0.5)),
        (A.on(0) * A.on(1), A),
        (B.on(0) + B.on(1), B),
        (A.normalized(), A),
        (B.exp().normalized(), A),
        ((A**0.5), RBF(np.sqrt(2.0))),
        (Matern(2.0, nu=0.5).on(1), Matern(2.0, nu=0.5).of(lambda X: X[:, 1:])),
        ((White(0.5) + A).normalized(), (A + White(0.5)) / 1.5),
    ],
    ids=str,
)
def test_kernels_that_are_the_same_function_have_the_same_values(left, right):
    np.testing.assert_allclose(left(X), right(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(left.diag(X), right.diag(X), rtol=1e-12, atol=1e-14)


@given(k=expressions())
def test_every_expression_can_be_combined_again(k):
    for made in (
        k + k,
        k * k,
        2 * k,
        k - 1,
        k**2,
        k.exp(),
        k.normalized(),
        k.polynomial([1, 2]),
        k.on(0),
        k.of([[1.0, 2.0]]),
    ):
        assert isinstance(made, Kernel)
        assert made == copy.deepcopy(made)
        assert len(made.parameters) >= len(k.parameters)
