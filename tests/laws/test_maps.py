"""The law of explicit maps: whatever offers φ, φ(X)·φ(Z) is k(X, Z), and φ is as wide as foretold."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import (
    AllSubsets,
    ArcCosine,
    Bilinear,
    Constant,
    Cosine,
    CosineSimilarity,
    Dot,
    Linear,
    Polynomial,
)
from mercer.errors import DomainError, InvalidKernelError, MemoryBudgetError, NoFiniteMapError, ParameterError

D = 2
SMALL = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])
SIGNED = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0])


def leaves():
    return st.one_of(
        st.just(Linear()),
        st.just(AllSubsets()),
        st.just(CosineSimilarity()),
        st.just(Cosine(3.0)),
        st.just(ArcCosine(1).on(0)),
        st.builds(Constant, SIGNED),
        st.builds(Polynomial, st.integers(1, 3), offset=SMALL, scale=SMALL),
        st.lists(SIGNED, min_size=1, max_size=4).map(lambda c: Dot(taylor=c)),
        st.sampled_from([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [[1e8, 1.0], [1.0, 1e-8]]]).map(
            Bilinear
        ),
    )


def grown(kernels):
    """Every operation of the algebra, with signs of both kinds."""
    return st.one_of(
        st.tuples(kernels, kernels).map(lambda p: p[0] + p[1]),
        st.tuples(kernels, kernels, SMALL).map(lambda p: p[0] - p[2] * p[1]),
        st.tuples(kernels, kernels).map(lambda p: p[0] * p[1]),
        st.tuples(SIGNED, kernels).map(lambda p: p[0] * p[1]),
        st.tuples(kernels, st.integers(0, 2)).map(lambda p: p[0] ** p[1]),
        st.tuples(kernels, st.lists(SIGNED, min_size=1, max_size=3)).map(lambda p: p[0].polynomial(p[1])),
        kernels.map(lambda k: k.of(np.tanh)),
        kernels.map(lambda k: k.of([[1.0, 2.0], [0.5, -1.0]])),
        kernels.map(lambda k: k.times(lambda X: 1 + X[:, 0] ** 2)),
        kernels.map(lambda k: k.on(1, 0)),
        kernels.map(lambda k: k.normalized()),
    )


EXPRESSIONS = st.recursive(leaves(), grown, max_leaves=5)


def sample(n, seed):
    X = 0.7 * np.random.default_rng(seed).normal(size=(n, D))
    X[0] = 0.0
    return X


@settings(max_examples=max(150, settings.default.max_examples))
@given(EXPRESSIONS)
def test_whatever_offers_a_map_is_its_inner_product(k):
    try:
        phi = k.features(D)
    except (InvalidKernelError, NoFiniteMapError, MemoryBudgetError):
        return
    X, Z = sample(6, 0), sample(5, 1)
    F, G = phi(X), phi(Z)
    assert F.shape[1] == G.shape[1] == phi.dimension == len(phi.names) == k.feature_dimension(D)
    try:
        K = k(X, Z)
    except DomainError:
        # such as 0 * (-Linear()).normalized(), which has the map of 0 and refuses to be evaluated
        return
    scale = max(1.0, float(np.abs(k(X, X)).max()), float(np.abs(k(Z, Z)).max()))
    np.testing.assert_allclose(F @ G.T, K, rtol=0, atol=1e-10 * scale)
    try:
        psi = k.features(D, redundant=True)
    except NoFiniteMapError:
        # a part that is taken away leaves no list of words
        return
    assert psi(X).shape[1] == psi.dimension == len(psi.names) == k.feature_dimension(D, redundant=True)
    np.testing.assert_allclose(psi(X) @ psi(Z).T, K, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize(
    "k",
    [
        Polynomial(2) - 0.5 * AllSubsets(),
        Polynomial(3) - AllSubsets(),
        Polynomial(2, offset=2.0) - 0.25 * AllSubsets() - Linear(),
        0.5 * Polynomial(4) - AllSubsets() * 0.25 - AllSubsets() * Linear() * 0.125,
    ],
    ids=str,
)
@pytest.mark.parametrize("d", [1, 2])
def test_a_subtracted_part_with_other_monomials_is_in_the_map(k, d):
    X = 0.9 * np.random.default_rng(3).normal(size=(7, d))
    phi = k.features(d)
    np.testing.assert_allclose(phi(X) @ phi(X).T, k(X), rtol=1e-12, atol=1e-12 * np.abs(k(X)).max())
    assert phi.dimension == k.feature_dimension(d) == phi(X).shape[1]


def words(coefs, d):
    """√c x_i x_j … over all tuples of columns, by loops."""
    return lambda x: np.array(
        [
            np.sqrt(c) * np.prod([x[i] for i in word])
            for j, c in enumerate(coefs)
            if c
            for word in itertools.product(range(d), repeat=j)
        ]
    )


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("coefs", [(1.0, 2.0, 1.0), (0.0, 1.0, 1.0), (0.5, 0.0, 2.0, 3.0)])
def test_the_redundant_map_lists_every_product_in_every_order(coefs, d):
    phi = Dot(taylor=coefs).features(d, redundant=True)
    X = sample(4, 2)[:, :1] * np.arange(1.0, d + 1)
    np.testing.assert_allclose(phi(X), [words(coefs, d)(x) for x in X], rtol=1e-14)
    assert phi.dimension == sum(d**j for j, c in enumerate(coefs) if c)


def test_the_redundant_map_of_all_subsets_and_its_powers():
    k = AllSubsets() ** 2 * Linear()
    assert k.feature_dimension(3, redundant=True) == 3 * 2**6
    assert AllSubsets().features(3, redundant=True).dimension == AllSubsets().features(3).dimension == 8
    assert k.feature_dimension(100, redundant=True) == 100 * 2**200
    with pytest.raises(NoFiniteMapError, match="redundant map"):
        (AllSubsets() - 1).features(2, redundant=True)
    with pytest.raises(ParameterError, match="redundant"):
        Linear().features(2, redundant="yes")
    with pytest.raises(MemoryBudgetError, match="features"):
        Polynomial(6).features(256, redundant=True)


def test_a_graded_matrix_keeps_its_small_directions():
    k = Bilinear([[1e20, 0.0], [0.0, 1.0]])
    phi = k.features(2)
    X = np.array([[0.0, 1.0], [1e-10, 1.0]])
    np.testing.assert_allclose(phi(X) @ phi(X).T, k(X), rtol=1e-14)
    for A in ([[1e20, 0.0], [0.0, -1.0]], [[1.0, 1.0], [1.0, 0.0]], [[1e20, 2e10], [2e10, 1.0]]):
        with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
            Bilinear(A).features(2)
