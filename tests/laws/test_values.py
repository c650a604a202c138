"""What k(X, Z) is: the value of the formula, whatever form the data come in."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import sparse

from kernels_under_test import every_kernel, every_leaf, every_rule, points, registered_leaves
from mercer.kernels import RBF, Custom, Kernel, Laplacian, Linear, White
from reference import kernels as ref

KERNELS = pytest.mark.parametrize("case", every_kernel(), ids=repr)


def floats(rows):
    return np.array([[float(v) for v in row] for row in rows])


def contains_white(k: Kernel) -> bool:
    return isinstance(k, White) or any(contains_white(child) for _, child in k.children())


def contains_custom(k: Kernel) -> bool:
    return isinstance(k, Custom) or any(contains_custom(child) for _, child in k.children())


def test_every_registered_leaf_is_under_test():
    assert {type(case.kernel).__name__ for case in every_leaf()} == set(registered_leaves())


def test_every_rule_of_the_algebra_is_under_test():
    from mercer.kernels import algebra

    rules = {
        v
        for v in vars(algebra).values()
        if isinstance(v, type) and issubclass(v, Kernel) and v.__module__.startswith("mercer.kernels.rules")
    }
    # InSpace takes differences of values, and Bags takes bags: both have laws of their own in tests/things
    concrete = {r.__name__ for r in rules} - {"Combined", "Unary", "Nary", "InSpace", "Bags"}
    seen = set()

    def walk(k):
        seen.add(type(k).__name__)
        for _, child in k.children():
            walk(child)

    for case in every_rule():
        walk(case.kernel)
    assert concrete <= seen


# ── values ──


@KERNELS
def test_value_is_that_of_the_formula(case):
    X, Z = case.points(7, seed=1), case.points(5, seed=2)
    Z[0] = X[0]
    X[1] = 0.0
    np.testing.assert_allclose(case.kernel(X), floats(ref.block(case.reference, X)), rtol=2e-12, atol=1e-13)
    np.testing.assert_allclose(
        case.kernel(X, Z), floats(ref.block(case.reference, X, Z)), rtol=2e-12, atol=1e-13
    )


@KERNELS
def test_value_is_that_of_the_formula_on_large_and_small_numbers(case):
    for scale in (1e-4, 6.0):
        X = case.points(5, seed=3) * scale
        expected = floats(ref.block(case.reference, X))
        np.testing.assert_allclose(case.kernel(X), expected, rtol=1e-10, atol=1e-13)


@KERNELS
@given(X=points(d=3))
def test_gram_matrix_is_exactly_symmetric(case, X):
    X = case.admit(X)
    K = case.kernel(X)
    assert np.array_equal(K, K.T)


@KERNELS
@given(X=points(d=3))
def test_diag_is_the_diagonal(case, X):
    X = case.admit(X)
    diag = case.kernel.diag(X)
    assert diag.shape == (len(X),)
    np.testing.assert_allclose(diag, np.diag(case.kernel(X)), rtol=1e-9, atol=1e-12)


@KERNELS
def test_diag_is_that_of_the_formula(case):
    X = case.points(6, seed=4)
    expected = [float(v) for v in ref.diagonal(case.reference, X)]
    np.testing.assert_allclose(case.kernel.diag(X), expected, rtol=2e-12, atol=1e-13)


@KERNELS
@given(X=points(d=3))
def test_one_sample_twice_is_the_gram_matrix_unless_there_is_noise(case, X):
    X = case.admit(X)
    if contains_white(case.kernel):
        return
    K = case.kernel(X)
    np.testing.assert_allclose(case.kernel(X, X.copy()), K, rtol=1e-9, atol=1e-12 * max(1.0, np.abs(K).max()))


def test_noise_is_on_the_same_observation_only():
    X = np.array([[1.0], [1.0], [2.0]])
    np.testing.assert_array_equal(White(0.5)(X), 0.5 * np.eye(3))
    np.testing.assert_array_equal(White(0.5)(X, X), np.zeros((3, 3)))
    np.testing.assert_array_equal(White(0.5).diag(X), [0.5] * 3)


@KERNELS
def test_rows_do_not_influence_one_another(case):
    X, Z = case.points(9, seed=5), case.points(6, seed=6)
    K = case.kernel(X, Z)
    np.testing.assert_allclose(case.kernel(X[3:5], Z[[4, 1]]), K[3:5][:, [4, 1]], rtol=1e-12, atol=1e-14)


# ── the form of the data ──


def as_read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def as_strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def as_csr(index):
    def make(X):
        A = sparse.csr_array(X)
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
        return A

    return make


def as_unsorted_csr(X):
    A = sparse.csr_array(X)
    for start, stop in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        A.indices[start:stop] = A.indices[start:stop][::-1].copy()
        A.data[start:stop] = A.data[start:stop][::-1].copy()
    A.has_sorted_indices = False
    return A


FORMS = {
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(map(tuple, X.tolist())),
    "rows": lambda X: [*X],
    "fortran": np.asfortranarray,
    "read-only": as_read_only,
    "strided": as_strided,
    "negative-stride": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "object": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "unmasked": lambda X: np.ma.masked_array(X, mask=False),
    "csr-int32": as_csr(np.int32),
    "csr-int64": as_csr(np.int64),
    "csr-matrix": sparse.csr_matrix,
    "csr-unsorted": as_unsorted_csr,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
}


def copy_of(data):
    return data.copy() if hasattr(data, "copy") else [list(row) for row in data]


def dense_of(data):
    return data.toarray() if sparse.issparse(data) else np.asarray(data, dtype=float)


@pytest.mark.parametrize("form", FORMS)
@KERNELS
def test_the_form_of_the_data_does_not_change_the_answer_nor_the_data(case, form):
    X, Z = np.round(case.points(6, seed=7), 2), np.round(case.points(4, seed=8), 2)
    X[0], X[1], X[2, 0] = 0.0, Z[1], 0.0
    A, B = FORMS[form](X), FORMS[form](Z)
    before = dense_of(A).copy(), dense_of(B).copy()
    K = case.kernel(A)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, case.kernel(X), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(case.kernel(A, B), case.kernel(X, Z), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(case.kernel.diag(A), case.kernel.diag(X), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(dense_of(A), before[0])
    np.testing.assert_array_equal(dense_of(B), before[1])


@KERNELS
def test_a_sparse_sample_meets_a_dense_one(case):
    X, Z = case.points(5, seed=9), case.points(4, seed=10)
    X[X < 0.2] = 0.0
    K = case.kernel(X, Z)
    np.testing.assert_allclose(case.kernel(sparse.csr_array(X), Z), K, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(
        case.kernel(Z, sparse.csr_array(X)),
        K.T if _symmetric(case) else case.kernel(Z, X),
        rtol=1e-11,
        atol=1e-13,
    )


def _symmetric(case):
    X = case.points(4, seed=11)
    Z = case.points(3, seed=12)
    return np.allclose(case.kernel(X, Z), case.kernel(Z, X).T)


@KERNELS
def test_float32_in_is_float32_out(case):
    X, Z = case.points(6, seed=13).astype(np.float32), case.points(4, seed=14).astype(np.float32)
    K, C, diag = case.kernel(X), case.kernel(X, Z), case.kernel.diag(X)
    assert K.dtype == C.dtype == diag.dtype == np.float32
    exact = X.astype(np.float64), Z.astype(np.float64)
    for single, double in (
        (K, case.kernel(exact[0])),
        (C, case.kernel(*exact)),
        (diag, case.kernel.diag(exact[0])),
    ):
        np.testing.assert_allclose(single, double, rtol=2e-5, atol=3e-6 * max(1.0, np.abs(double).max()))
    assert case.kernel(X, exact[1]).dtype == np.float64
    if not contains_custom(case.kernel):
        assert case.kernel(sparse.csr_array(X)).dtype == np.float32


@KERNELS
def test_whole_numbers_and_booleans_are_numbers(case):
    X = np.abs(np.round(case.points(5, seed=15) * 2)).astype(int)
    np.testing.assert_array_equal(case.kernel(X), case.kernel(X.astype(float)))
    np.testing.assert_array_equal(case.kernel(X.tolist()), case.kernel(X.astype(float)))
    np.testing.assert_array_equal(case.kernel(X > 1), case.kernel((X > 1).astype(float)))


def test_columns_can_be_chosen_by_name():
    table = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": ["a", "b", "a"], "height": [3.0, 5.0, 8.0]})
    k = RBF(2.0).on("height") * Linear().on("age")
    expected = RBF(2.0)(table[["height"]].to_numpy()) * Linear()(table[["age"]].to_numpy())
    np.testing.assert_array_equal(k(table), expected)
    np.testing.assert_array_equal(k(table, table[["city", "height", "age"]]), expected)
    same_city = Custom(lambda a, b: float(a == b)).on("city")
    np.testing.assert_array_equal(same_city(table), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_custom_kernels_take_things_that_are_not_numbers():
    shared = Custom(lambda a, b: len(set(a) & set(b)))
    np.testing.assert_array_equal(shared(["kernel", "nerve"], ["e"]), [[1], [1]])
    np.testing.assert_array_equal((2.0 * shared + 1.0).diag(["kernel", "nerve"]), [11, 9])
    lengths = Laplacian(1.0).of(lambda words: np.array([[len(w)] for w in words], dtype=float))
    np.testing.assert_allclose(lengths(["ab", "abc"]), [[1, np.exp(-1)], [np.exp(-1), 1]])


def test_graphs_of_different_sizes_can_be_weighted():
    graphs = [np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((2, 4))]
    k = Custom(lambda a, b: float(min(len(a), len(b)))).times(lambda gs: np.array([g.size for g in gs]))
    assert k(graphs)[0, 2] == 4 * 2 * 8
