"""Laws of explicit feature maps: the inner product of features is the kernel, and sizes are exact."""

import doctest
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from mercer import (
    RBF,
    AllSubsets,
    ArcCosine,
    Bilinear,
    Constant,
    Cosine,
    CosineSimilarity,
    Custom,
    Dot,
    Linear,
    Periodic,
    Polynomial,
    Sigmoid,
    White,
)
from mercer.errors import (
    InputError,
    InvalidKernelError,
    MemoryBudgetError,
    NoFiniteMapError,
    ParameterError,
    ShapeError,
)
from mercer.kernels.maps.monomials import Expansion
from mercer.memory import memory_limit

L, E = Linear(), AllSubsets()

FINITE = [
    L,
    Polynomial(2),
    Polynomial(3, offset=0.0),
    Polynomial(4, offset=0.3, scale=2.0),
    Bilinear([[2, 1, 0], [1, 2, 0], [0, 0, 0]]),
    E,
    Constant(2.0),
    Constant(0.0),
    Dot(taylor=[0, 1, 0, 2]),
    CosineSimilarity(),
    Cosine(2.0),
    Cosine([1.0, 2.0, 3.0]),
    (L + 1) ** 2,
    Polynomial(2, offset=0.5) - Constant(0.25),
    Polynomial(2, offset=0.1) - Constant(0.01),
    E - 1,
    E * Polynomial(2),
    E**2 - E,
    E**2 * L - E * L,
    L + Cosine(2.0),
    L * Cosine(2.0),
    Cosine(2.0) ** 3,
    2.0 * Cosine(1.0) - 1.5 * Cosine(1.0),
    CosineSimilarity().polynomial([1, 2, 3]),
    L.on(0) + L,
    L.on(0) * L.on(1) * Polynomial(2).on(0, 2),
    Polynomial(2).on(0) + Polynomial(3).on(1) - 2,
    Polynomial(2).on(slice(0, 2)) - 1,
    Polynomial(2).on(0, 0),
    Polynomial(2).of([[1, 2, 3], [0, 1, 0]]),
    Polynomial(2).of(lambda X: X[:, :2] ** 2),
    Polynomial(2).times(lambda X: X[:, 0]),
    Polynomial(2).normalized(),
    (L.on(0) + 1) ** 2,
    Constant(2.0).exp(),
    0 * RBF(1.0),
    RBF(1.0) ** 0 * L,
    (-Cosine(1.0)) ** 2,
    (2 * Cosine(1.0) * L) ** 2,
    ArcCosine(0).on(0),
    ArcCosine(1).on(1),
    ArcCosine(2).on(2),
]


def cloud(n, d, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[-1] = X[0]  # a duplicate
    X[n // 2] = 0.0  # and the origin
    return X


def agree(a, b, rtol=1e-13):
    np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1.0, np.abs(b).max(initial=0)))


def monomial_coefficients(coefs, d):
    """Σ a_j (Σ t_i)^j multiplied out one factor at a time, in fractions: the slow way."""
    total = {}
    for j, a in enumerate(coefs):
        for factors in itertools.product(range(d), repeat=j):
            alpha = tuple(factors.count(i) for i in range(d))
            total[alpha] = total.get(alpha, Fraction(0)) + Fraction(a)
    return {alpha: c for alpha, c in total.items() if c}


@pytest.mark.parametrize("k", FINITE, ids=str)
def test_the_inner_product_of_features_is_the_kernel(k):
    X, Z = cloud(7, 3), cloud(5, 3, seed=1)
    phi = k.features(3)
    agree(phi(X) @ phi(Z).T, k(X, Z))


@pytest.mark.parametrize("k", FINITE, ids=str)
def test_the_dimension_foretold_is_the_dimension_built(k):
    phi = k.features(3)
    size = k.feature_dimension(3)
    assert type(size) is int
    assert phi(cloud(4, 3)).shape == (4, size)
    assert phi.dimension == size == len(phi.names)


@pytest.mark.parametrize("k", FINITE, ids=str)
def test_lists_sparse_readonly_and_single_precision_rows_give_the_same_features(k):
    X = cloud(6, 3)
    phi = k.features(3)
    expected = phi(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    for other in (X.tolist(), frozen, np.asfortranarray(X), sparse.csr_array(X), X[::-1][::-1]):
        agree(phi(other), expected)
    single = phi(X.astype(np.float32))
    assert single.dtype == np.float32
    if "ArcCosine(0)" not in str(k):
        np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [L, Polynomial(3), E, E * L, Cosine(1.0), CosineSimilarity()], ids=str)
@pytest.mark.parametrize("n", [1, 2])
def test_one_column_and_one_row_are_enough(k, n):
    X = cloud(n, 1) + 0.5
    agree(k.features(1)(X) @ k.features(1)(X).T, k(X))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 4))
def test_a_series_in_the_dot_product_has_exactly_its_monomials(coefs, d):
    expected = monomial_coefficients(coefs, d)
    phi = Dot(taylor=[float(c) for c in coefs]).features(d)
    index, weight = phi.node.table
    found = {
        tuple(int((row == i).sum()) for i in range(d)): w**2 for row, w in zip(index, weight, strict=True)
    }
    assert found.keys() == expected.keys()
    for alpha, c in expected.items():
        assert found[alpha] == pytest.approx(float(c), rel=1e-13)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(-2, 3), max_size=4),
    st.integers(1, 3),
)
def test_powers_of_all_subsets_times_powers_of_the_dot_product_are_counted_exactly(terms, d):
    expected = brute_force(terms, d)
    expansion = Expansion.of(terms)
    if any(c < 0 for c in expected.values()):
        with pytest.raises(InvalidKernelError, match="negative coefficient"):
            expansion.count(d)
        return
    assert expansion.count(d) == len(expected)
    index, weight = expansion.table(d)
    found = {
        tuple(int((row == i).sum()) for i in range(d)): w**2 for row, w in zip(index, weight, strict=True)
    }
    assert found == pytest.approx({alpha: float(c) for alpha, c in expected.items()}, rel=1e-12)


def brute_force(terms, d):
    """Σ a_jk p^j E^k multiplied out as dictionaries of exponents."""

    def times(a, b):
        out = {}
        for (s, x), (t, y) in itertools.product(a.items(), b.items()):
            alpha = tuple(u + v for u, v in zip(s, t, strict=True))
            out[alpha] = out.get(alpha, 0) + x * y
        return out

    dot = {tuple(int(i == j) for i in range(d)): 1 for j in range(d)}
    subsets = dict.fromkeys(itertools.product((0, 1), repeat=d), 1)
    total = {}
    for (j, k), a in terms.items():
        part = {(0,) * d: a}
        for factor in [dot] * j + [subsets] * k:
            part = times(part, factor)
        for alpha, c in part.items():
            total[alpha] = total.get(alpha, 0) + c
    return {alpha: c for alpha, c in total.items() if c}


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_polynomial_features_are_those_of_scikit_learn_up_to_their_weights(degree, d):
    peer = PolynomialFeatures(degree).fit(np.ones((1, d)))
    phi = Polynomial(degree).features(d)
    assert phi.dimension == peer.n_output_features_ == math.comb(d + degree, degree)
    renamed = [name.replace(" ", "*") for name in peer.get_feature_names_out([f"x{i + 1}" for i in range(d)])]
    assert list(phi.names) == renamed
    X = cloud(4, d)
    agree(phi(X), phi(np.ones((1, d))) * peer.transform(X))


def test_the_table_of_the_digits_is_exact():
    sizes = [Polynomial(p, offset=0.0).feature_dimension(256) for p in range(1, 8)]
    assert sizes == [math.comb(255 + p, p) for p in range(1, 8)]
    assert sizes[:3] == [256, 32_896, 2_829_056]
    assert Polynomial(7).feature_dimension(256) == math.comb(263, 7) == 15_932_831_090_241


def test_astronomic_dimensions_are_exact_integers():
    assert AllSubsets().feature_dimension(1000) == 2**1000
    assert (E**3 - 1).feature_dimension(1000) == 4**1000 - 1
    assert (E - L - 1).feature_dimension(1000) == 2**1000 - 1001
    assert (E**2 - E).feature_dimension(300) == 3**300 - 1  # only the constant cancels
    assert Cosine(1.0).feature_dimension(500) == 2**500
    assert Polynomial(500).feature_dimension(1000) == math.comb(1500, 500)


def test_expressions_of_one_polynomial_share_its_smallest_map():
    size = math.comb(7, 2)
    for k in [
        (L + 1) ** 2,
        (L + 1) * (L + 1),
        L.polynomial([1, 2, 1]),
        L**2 + 2 * L + 1,
        Dot(taylor=[1, 2, 1]),
    ]:
        assert k.feature_dimension(5) == size
        assert k.features(5).names == Polynomial(2).features(5).names


def test_a_constant_that_cancels_leaves_the_map_without_it():
    phi = (Polynomial(2, offset=0.5) - Constant(0.25)).features(2)
    assert phi.names == ("x1", "x2", "x1^2", "x1*x2", "x2^2")
    assert (Polynomial(3, offset=0.1) - 0.1**3).features(1).names == ("x1", "x1^2", "x1^3")


def test_features_are_named_after_their_columns():
    assert (L.on(0) * L).features(2).names == ("x1^2", "x1*x2")
    assert (L.on("age") * L.on(1)).features(3).names == ("age*x2",)
    assert Polynomial(2).features(["age", "dose"]).names == (
        "1",
        "age",
        "dose",
        "age^2",
        "age*dose",
        "dose^2",
    )
    assert Polynomial(1).features(["0", "1"]).names == ("1", "0", "1")  # a column called "1" is not lost
    assert (CosineSimilarity() ** 2).features(1).names == ("(x1/|x|)^2",)


def test_named_columns_are_found_in_a_frame():
    frame = pd.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 5.0]})
    k = L.on("age") * Polynomial(2).on("dose")
    phi = k.features(frame)
    agree(phi(frame) @ phi(frame).T, k(frame))
    with pytest.raises(InputError, match="columns"):
        phi(frame[["dose", "age"]])
    with pytest.raises(InputError, match="height"):
        L.on("height").features(frame)


@pytest.mark.parametrize(
    "k", [RBF(1.0), White(1.0), Periodic(1.0), L.exp(), ArcCosine(1), RBF(1.0) ** 0.5], ids=str
)
def test_an_infinite_part_makes_the_whole_infinite_and_is_named(k):
    for whole in (k, k + L, 2 * k, k * (L + 1), k**2, k.normalized(), k.on(0, 1)):
        assert whole.feature_dimension(2) == math.inf
        with pytest.raises(NoFiniteMapError, match="infinite"):
            whole.features(2)
    with pytest.raises(NoFiniteMapError, match=r"because of RBF\(3.0\)"):
        (L + 2 * RBF(3.0)).features(2)


@pytest.mark.parametrize(
    "k", [-L, L - 1, (L - 1) ** 2, E - 2 * L, Sigmoid(), Bilinear([[1, 2], [2, 1]])], ids=str
)
def test_what_is_no_kernel_has_no_map_and_is_told_so(k):
    for question in (k.features, k.feature_dimension):
        with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
            question(2)


@pytest.mark.parametrize(
    "k", [RBF(1.0) - L, Cosine(1.0) - 1, Custom(lambda a, b: 1.0), L**0.5, (-L).exp()], ids=str
)
def test_what_is_not_known_is_not_guessed(k):
    for question in (k.features, k.feature_dimension):
        with pytest.raises(NoFiniteMapError, match="known"):
            question(2)


def test_a_map_that_does_not_fit_is_refused_with_its_size():
    with pytest.raises(MemoryBudgetError, match=r"15,932,831,090,241 features.*116 TiB.*1 GiB"):
        Polynomial(7).features(256)
    with pytest.raises(MemoryBudgetError, match=r"10\^301"):
        AllSubsets().features(1000)
    phi = Polynomial(2).features(10, memory="8KiB")
    assert phi([[1.0] * 10]).shape == (1, 66)
    with pytest.raises(MemoryBudgetError, match="100 rows"):
        phi(np.ones((100, 10)))


def test_wrong_questions_get_clear_answers():
    for d in (0, -1, 2.5, True, "ab", None, ["a", "a"]):
        with pytest.raises(ParameterError):
            L.features(d)
    with pytest.raises(ShapeError, match="3"):
        L.features(3)([[1.0, 2.0]])
    with pytest.raises(ShapeError):
        L.on(5).features(3)
    with pytest.raises(ShapeError):
        Bilinear([[1.0]]).features(2)
    assert Bilinear([[1.0, 0.0], [0.0, 0.0]]).features().dimension == 1  # the matrix knows d


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GiB", 2**30), ("500MB", 500 * 10**6), ("1.5 KiB", 1536), (7, 7), (np.int64(9), 9), ("12", 12)],
)
def test_memory_is_read_from_text_and_numbers(text, size):
    assert memory_limit(text) == size


@pytest.mark.parametrize("bad", ["", "1 parsec", "-1GB", -1, 2.5, True, None, "GiB"])
def test_memory_that_makes_no_sense_is_refused(bad):
    with pytest.raises(ParameterError, match="memory"):
        memory_limit(bad)


def test_the_page_on_feature_maps_is_true():
    page = Path(__file__).parents[1] / "docs" / "features.md"
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed == 0
