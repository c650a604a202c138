"""`RBF().of(k)`: a radial kernel on the distances of another kernel's features."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import RBF, Exponential, Linear, Matern, Polynomial, RationalQuadratic, Spectrum, White, parse
from mercer.errors import ParameterError
from mercer.gram import Dense

X = np.random.default_rng(0).normal(size=(9, 3))
WORDS = ["abab", "bc", "abc", "aab", "bcc", "", "abab"]


@pytest.mark.parametrize(
    "outer", [RBF(1.3), Exponential(0.7), Matern(2.0, nu=2.5), RationalQuadratic(0.5, alpha=2.0)]
)
def test_in_the_space_of_the_linear_kernel_it_is_the_kernel_itself(outer):
    np.testing.assert_allclose(outer.of(Linear())(X), outer(X), atol=1e-7)
    np.testing.assert_allclose(outer.of(Linear())(X, X[:4] + 1.0), outer(X, X[:4] + 1.0), rtol=1e-10)


def test_in_the_space_of_an_explicit_map_it_is_the_kernel_of_the_features():
    phi = Polynomial(2).features(3)
    np.testing.assert_allclose(RBF(2.0).of(Polynomial(2))(X), RBF(2.0)(phi(X)), atol=1e-7)


def test_equal_things_have_distance_zero():
    K = RBF(0.1).of(Spectrum(2))(WORDS)
    assert K[0, 6] == 1.0
    assert np.all(np.diag(K) == 1.0)


@pytest.mark.parametrize("space", [Spectrum(2), 2.0 * Spectrum(2).normalized() + 0.3 * Spectrum(1)], ids=str)
def test_the_gradient_is_that_of_differences(space):
    k = 1.5 * RationalQuadratic(0.8, alpha=1.7).of(space) + White(0.1)
    W = np.random.default_rng(1).normal(size=(len(WORDS), len(WORDS)))
    found = Dense(k, WORDS).contract(W=W)
    theta = k.theta
    assert len(found) == len(theta)
    for i in range(len(theta)):
        step = 1e-6 * np.eye(len(theta))[i]
        up, down = (float((W * k.with_theta(theta + s * step)(WORDS)).sum()) for s in (1, -1))
        assert abs(found[i] - (up - down) / 2e-6) < 1e-6 * (1 + abs(found[i]))


def test_an_open_length_is_closed_as_for_vectors():
    wide = np.random.default_rng(2).normal(size=(400, 3))
    closed = RBF().of(Linear()).resolved(wide)
    plain = RBF().resolved((wide - wide.mean(axis=0)) / wide.std(axis=0))
    assert closed.kernel.lengthscale == pytest.approx(np.mean(plain.lengthscale), rel=0.1)
    k = RBF().of(Spectrum(2))
    assert parse(str(k)) == k
    assert not k.resolved(WORDS).is_open


def test_what_has_columns_or_no_distances_is_refused():
    with pytest.raises(ParameterError, match="one lengthscale"):
        RBF([1.0, 2.0]).of(Linear())
    with pytest.raises(ParameterError, match="function of distances"):
        Linear().of(Spectrum(2))
