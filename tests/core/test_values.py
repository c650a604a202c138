"""gram, apply and diag against loops written from the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import referee
from core.programs import PRIMITIVES, UNARIES, Problem, encode
from mercer import _core

pytestmark = pytest.mark.usefixtures("threads_for_all")

TOLERANCE = {np.float64: 1e-13, np.float32: 2e-5}


def data(rng, n, m, d):
    X = rng.uniform(0.05, 0.6, (n, d))
    Z = None if m is None else rng.uniform(0.05, 0.6, (m, d))
    norm = lambda A: None if A is None else np.sqrt((A * A).sum(1))
    return [(X, Z)], [(norm(X), norm(Z))], [rng.uniform(0.5, 2.0, d)]


def check(code, params, views, rows, columns, dtype):
    """gram, apply and diag agree with the referee; same mode is exactly symmetric."""
    prob = Problem(code, params, views, rows, columns, dtype)
    want = referee.gram(code, params, prob.views, prob.rows, columns)
    K = prob.gram()
    tol = TOLERANCE[dtype]
    big = max(1.0, float(np.max(np.abs(want), initial=0)))
    np.testing.assert_allclose(K, want, rtol=20 * tol, atol=tol * big)
    for r in (1, 3):
        V = np.cos(np.arange(prob.shape[1] * r)).reshape(-1, r).astype(dtype)
        bound = 10 * tol * (np.abs(want) @ np.abs(V) + 1e-300)
        assert np.all(np.abs(prob.apply(V) - want @ V) <= bound + 10 * tol * big)
    if prob.views[0][1] is None:
        assert np.array_equal(K, K.T)
        np.testing.assert_allclose(prob.diag(), np.diag(K), rtol=20 * tol, atol=tol * big)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shape", [(1, None, 1), (7, 5, 0), (9, None, 3), (5, 101, 40), (101, None, 70)], ids=str
)
def test_every_opcode_equals_its_formula(isa, shape, dtype):
    rng = np.random.default_rng(1)
    views, rows, columns = data(rng, *shape)
    params = [1.3, 0.5, 0.7]
    for name in PRIMITIVES:
        check(encode((name, 0, 0)), params, views, rows, columns, dtype)
    for name in UNARIES:
        if not (name == "LOG" and shape[2] == 0):
            check(encode("MINSUM", ("AFFINE", 2, 1), (name, 0, 2)), params, views, rows, columns, dtype)
    if shape[2] > 0:
        for order in range(3):
            check(encode("DOT", ("ARCCOS", 0, order)), params, views, rows, columns, dtype)
    check(
        encode("DOT", ("ROWSCALE", 0), ("DELTA", 1), "ADD", ("CONST", 2), "MUL"),
        params,
        views,
        rows,
        columns,
        dtype,
    )


@st.composite
def programs(draw):
    """Random valid programs whose values stay moderate: every product is squashed by tanh."""
    steps, depth = [], 0
    for _ in range(draw(st.integers(1, 14))):
        kinds = ["push"] + ["unary"] * (depth > 0) + ["binary"] * (depth > 1)
        match draw(st.sampled_from(kinds)):
            case "push":
                steps.append((draw(st.sampled_from([*PRIMITIVES, "CONST", "DELTA"])), 0, 0))
                depth += 1
            case "unary":
                safe = ["AFFINE", "ABS", "SIN", "COS", "TANH", "LOGISTIC", "POWI", "HORNER", "ROWSCALE"]
                name = draw(st.sampled_from(safe))
                steps.append((name, 0, draw(st.integers(0 if name == "POWI" else 1, 2))))
                steps.append(("TANH", 0, 0))
            case "binary":
                steps.append((draw(st.sampled_from(["ADD", "MUL", "MAX", "MIN"])), 0, 0))
                depth -= 1
    steps += [("ADD", 0, 0)] * (depth - 1)
    return encode(*steps)


@settings(max_examples=150, deadline=None)
@given(
    code=programs(),
    n=st.integers(1, 12),
    m=st.none() | st.integers(1, 20),
    d=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_random_programs_equal_the_referee(code, n, m, d, seed):
    views, rows, columns = data(np.random.default_rng(seed), n, m, d)
    check(code, [0.9, -0.4, 0.3], views, rows, columns, np.float64)


@pytest.mark.parametrize("d", [1, 3, 16, 17, 60, 300])
@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-10), (np.float32, 1e-5)])
def test_distances_keep_their_digits_between_near_duplicates(isa, d, dtype, tol):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(40, d))
    Z = np.concatenate(
        [X + 10.0 ** -rng.uniform(0, 12, (40, 1)) * rng.normal(size=X.shape), rng.normal(size=(30, d))]
    )
    X, Z = X.astype(dtype), Z.astype(dtype)
    got = Problem(encode("SQDIST"), [], [(X, Z)], dtype=dtype).gram()
    exact = ((X[:, None].astype(np.longdouble) - Z[None].astype(np.longdouble)) ** 2).sum(-1)
    np.testing.assert_allclose(got, exact.astype(float), rtol=tol, atol=0)


@pytest.mark.parametrize("d", [2, 33])
def test_the_diagonal_is_exact(isa, d):
    X = np.random.default_rng(0).normal(size=(150, d)) * 1e3 + 1e6
    for name, value in [("SQDIST", 0), ("L1", 0), ("PERIODIC", 0), ("CHI2", 0), ("COSPROD", 1)]:
        K = Problem(encode((name, 0, 0)), [], [(X, None)], columns=[np.ones(d)]).gram()
        assert np.all(np.diag(K) == value), name


@pytest.mark.parametrize("d", [2, 33])
def test_nan_and_infinity_reach_exactly_the_pairs_that_hold_them(isa, d):
    X = np.random.default_rng(0).normal(size=(20, d))
    X[3, 1], X[7, 0] = np.nan, np.inf
    K = Problem(encode("SQDIST", "RBF"), [], [(X, None)]).gram()
    assert np.array_equal(
        np.isnan(K), (np.arange(20)[:, None] == 3) | (np.arange(20) == 3) | np.diag(np.arange(20) == 7)
    )
    assert np.all(np.delete(K[7], [3, 7]) == 0)


def csr(A, dtype, index):
    rows, cols = np.nonzero(A)
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(A)))]
    return A[rows, cols].astype(dtype), cols.astype(index), indptr.astype(index), A.shape[1]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("same", [False, True])
def test_sparse_rows_equal_dense_ones(isa, same, index):
    rng = np.random.default_rng(2)
    A = rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.2)
    A[5] = A[6]
    B = rng.normal(size=(99, 30)) * (rng.random((99, 30)) < 0.2)
    B[0] = A[1]
    code = encode("SQDIST", "MATERN32", "DOT", "TANH", "ADD")
    program = _core.Program(code, np.zeros(0))
    K = np.empty((120, 120 if same else 99))
    _core.gram(program, [(csr(A, float, index), None if same else csr(B, float, index))], [], [], K, 1)
    np.testing.assert_allclose(
        K, Problem(code, [], [(A, None if same else B)]).gram(), rtol=1e-12, atol=1e-13
    )
    if same:
        out = np.empty(120)
        _core.diag(program, [(csr(A, float, index), None)], [], [], out, 1)
        np.testing.assert_allclose(out, np.diag(K), rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [1, 95, 97, 500, 5000])
def test_the_diagonal_of_sparse_rows_is_that_of_each_row_in_every_tile(isa, n, threads):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, 12)) * (rng.random((n, 12)) < 0.3)
    program = _core.Program(encode("SQDIST", "RBF", "DOT", "ADD"), np.zeros(0))
    out = np.full(n, np.nan)
    _core.diag(program, [(csr(A, float, np.int32), None)], [], [], out, threads)
    np.testing.assert_allclose(out, 1.0 + (A * A).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [3, 40, 10**8])  # the last ones are too many to be written out in panels
@pytest.mark.parametrize("n, m", [(1, 1), (1, 17), (7, 96), (97, 33), (100, 193)])
def test_sparse_products_of_every_shape(isa, dtype, columns, n, m):
    rng = np.random.default_rng(3)
    width = min(columns, 40)
    A = np.round(rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.3), 3)
    B = np.round(rng.normal(size=(m, width)) * (rng.random((m, width)) < 0.3), 3)
    A[0], B[-1] = 0, 0
    B[: min(n, m) // 2] = A[: min(n, m) // 2]  # pairs at distance 0
    spread = (columns - width) // 2

    def thin(X):
        data, indices, indptr, _ = csr(X, dtype, np.int64)
        return data, indices + spread, indptr, columns

    K = np.empty((n, m), dtype)
    for code, want in (
        (encode("DOT"), A @ B.T),
        (encode("SQDIST"), np.sum((A[:, None] - B[None]) ** 2, axis=2)),
    ):
        _core.gram(_core.Program(code, np.zeros(0)), [(thin(A), thin(B))], [], [], K, 1)
        limit = 1e-12 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(K, want, rtol=limit, atol=limit)
    twins = np.arange(min(n, m) // 2)
    assert np.all(K[twins, twins] == 0)


@pytest.mark.parametrize("n, m", [(0, None), (0, 3), (3, 0), (0, 0)])
def test_empty_data_gives_empty_answers(n, m):
    prob = Problem(encode("SQDIST", "RBF"), [], [(np.zeros((n, 2)), None if m is None else np.zeros((m, 2)))])
    assert prob.gram().shape == prob.shape
    assert np.array_equal(prob.apply(np.ones((prob.shape[1], 2))), np.zeros((n, 2)))
    assert np.all(prob.contract(W=np.ones(prob.shape))["views"][0] == 0)
    assert np.all(prob.contract(U=np.ones((n, 2)), V=np.ones((prob.shape[1], 2)))["views"][0] == 0)


def test_apply_with_no_columns_gives_no_columns():
    assert Problem(encode("DOT"), [], [(np.ones((4, 2)), None)]).apply(np.ones((4, 0))).shape == (4, 0)
