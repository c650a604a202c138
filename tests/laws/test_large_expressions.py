"""Expressions of hundreds of terms have an answer; those too deep for the stack are refused at birth,
never by a crash.
"""

import copy
import pickle

import numpy as np
import pytest

import mercer
from mercer import (
    RBF,
    SVC,
    Custom,
    Dot,
    Exponential,
    KernelRidge,
    Linear,
    Matern,
    RationalQuadratic,
    Stationary,
)
from mercer.arrays import Rows
from mercer.errors import InputError, MercerError, ParameterError
from mercer.gram import Tiles
from mercer.kernels.algebra import DEEPEST

X = np.random.default_rng(0).normal(size=(12, 3))
u = np.random.default_rng(1).normal(size=12)


def many_terms(n):
    return sum(RBF(0.5 + 0.01 * i) for i in range(n))


def many_factors(n):
    k = RBF(50.0)
    for i in range(n):
        k = k * Matern(30.0 + i)
    return k


def nested(levels):
    """As many expressions inside one another."""
    k = RBF(1.0)
    for i in range(levels - 1):
        k = 0.9 * k + Linear() if i % 2 == 0 else k**2
    return k


def cosines_of_cosines(levels):
    k = Linear()
    for _ in range(levels):
        k = (0.5 * k + 1).normalized()
    return k


WALKS = {
    "exponentials": lambda k: (0.01 * k).exp(),
    "powers": lambda k: k**1.5,
    "maps": lambda k: k.of(np.sin),
    "columns": lambda k: k.on(slice(None)),
    "sums in products": lambda k: (k + Linear()) * RBF(2.0),
    "factors": lambda k: k.times(first_of),
}


def first_of(points):
    return np.cos(points[:, 0])


@pytest.mark.parametrize("n", [300, 400])
@pytest.mark.parametrize("make", [many_terms, many_factors], ids=lambda f: f.__name__)
def test_hundreds_of_parts_are_evaluated_differentiated_and_read_back(make, n):
    k = make(n)
    np.testing.assert_allclose(k(X), k.block(Rows(X), None), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(Tiles(k, X) @ u, k(X) @ u, rtol=1e-9, atol=1e-9)
    slopes = Tiles(k, X).contract(u)
    assert len(slopes) == len(k.theta)
    for i in (0, n // 2, n - 1):
        step = 1e-5 * np.eye(len(k.theta))[i]
        up, down = (float(u @ k.with_theta(k.theta + s * step)(X) @ u) for s in (1, -1))
        assert slopes[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)
    assert mercer.parse(str(k)) == k


def test_a_long_program_says_that_numpy_does_the_work():
    assert "steps" in Tiles(many_terms(300), X).notes[0]
    assert not Tiles(many_terms(200), X).notes


def deepest(grow):
    """As deep a kernel as is accepted."""
    k = RBF(1.0)
    while k.nesting < DEEPEST - 3:
        k = grow(k)
    return k


def below(frames, function):
    """function() with so many more calls on the stack, as inside a large program."""
    return below(frames - 1, function) if frames else function()


@pytest.mark.parametrize("name", WALKS)
def test_the_deepest_expression_allowed_can_be_used_below_a_hundred_calls(name):
    k = deepest(WALKS[name])

    def use():
        text = str(k)
        assert hash(k) == hash(copy.copy(k))
        assert pickle.loads(pickle.dumps(k)) == k
        k.latex()
        K = k(X)
        np.testing.assert_allclose(K, K.T)
        assert np.all(np.isfinite(Tiles(k, X).contract(u)))
        assert k.with_theta(k.theta)(X).shape == (12, 12)
        KernelRidge(k, alpha=1.0).fit(X, u).predict(X)
        try:
            mercer.parse(text)
        except MercerError as error:
            return str(error)
        return ""

    below(100, use)


def test_deeper_expressions_are_refused_at_birth():
    with pytest.raises(ParameterError, match="nested"):
        nested(10 * DEEPEST)
    with pytest.raises(ParameterError, match="normalized"):
        cosines_of_cosines(50)


def test_text_nested_too_deep_is_a_sentence():
    for text in ("(" * 5000 + "RBF(1.0)" + ")" * 5000, "-" * 5000 + "RBF(1.0)", "RBF(1.0)" + ".exp()" * 5000):
        with pytest.raises(MercerError):
            mercer.parse(text)


@pytest.mark.parametrize(
    "k",
    [
        Custom(lambda a, b: 1j),
        Custom(lambda a, b: np.complex128(1.0)),
        Custom(lambda A, B: np.ones((len(A), len(B))) * 1j, blocks=True),
        Stationary(lambda delta: np.exp(1j * delta.sum(-1))),
        Dot(lambda t: t + 1j),
        RBF(1.0).times(lambda P: P[:, 0] * 1j),
        0.5 * Custom(lambda a, b: 1j) + RBF(1.0),
    ],
    ids=str,
)
def test_complex_values_of_a_users_function_are_refused(k):
    for ask in (lambda: k(X), lambda: k.diag(X), lambda: k.gram(X) @ u, lambda: SVC(k).fit(X, u > 0)):
        with pytest.raises(InputError, match="complex"):
            ask()


@pytest.mark.parametrize("n_jobs", [2**40, 2**31, 10**6, 2**100])
def test_absurd_numbers_of_threads_are_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs"):
        RBF(1.0).gram(X, n_jobs=n_jobs)
    with pytest.raises(ParameterError, match="n_jobs"):
        SVC("RBF(1.0)", n_jobs=n_jobs).fit(X, u > 0)


@pytest.mark.parametrize("n_jobs", [-(2**40), -(2**100), 64])
def test_unusual_numbers_of_threads_have_an_answer(n_jobs):
    np.testing.assert_array_equal(RBF(1.0).gram(X, n_jobs=n_jobs).dense(), RBF(1.0)(X))


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-200, 1e120])
@pytest.mark.parametrize(
    "make", [RBF, Matern, Exponential, RationalQuadratic], ids=lambda leaf: leaf.__name__
)
def test_the_unit_of_the_data_does_not_matter(make, size):
    k, same = make(1.3 * size), make(1.3)
    Y = X * size
    np.testing.assert_allclose(k(Y), same(X), atol=1e-9)
    np.testing.assert_allclose(k(Y, Y[:4].copy()), same(X, X[:4].copy()), atol=1e-9)
    if size > 1e-308:
        np.testing.assert_allclose(Tiles(k, Y).contract(u), Tiles(same, X).contract(u), rtol=1e-8)
    ones = make(1.0)
    assert np.all(np.isfinite(ones(Y))) and np.all(np.isfinite(Tiles(ones, Y).contract(u)))
