"""Linear algebra in a thread of its own: the same numbers as scipy, and Ctrl-C leaves at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import linalg

from mercer import blas, lapack


@pytest.fixture(params=["scipy's own", "in a thread"])
def either_way(request, monkeypatch):
    """Small matrices by both ways; the long way must not depend on the size."""
    bound = np.inf if request.param == "scipy's own" else 0.0
    monkeypatch.setattr(lapack, "LONG", bound)
    monkeypatch.setattr(blas, "LONG", bound)
    monkeypatch.setattr(blas, "WORTH_A_CALL", bound)


@pytest.fixture
def A():
    B = np.random.default_rng(0).normal(size=(40, 40))
    return B @ B.T + 40 * np.eye(40)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factors_and_what_they_solve(either_way, A, dtype):
    A = A.astype(dtype)
    near = {"rtol": 1e-11, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    given = A.copy()
    lower, info = lapack.potrf(A.T)
    np.testing.assert_array_equal(A, given)
    L = np.tril(lower)
    assert info == 0 and lower.dtype == dtype
    np.testing.assert_allclose(L @ L.T, A, **near)
    inverse, _ = lapack.potri(lower)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(A)), **near)
    np.testing.assert_allclose(np.tril(lapack.trtri(lower)), np.linalg.inv(L), **near)
    for b in (np.arange(40.0, dtype=dtype), np.random.default_rng(1).normal(size=(40, 3)).astype(dtype)):
        before = b.copy()
        np.testing.assert_allclose(lapack.potrs(lower, b), np.linalg.solve(A, b), **near)
        np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 7, 13, 20, 39])
def test_matrices_that_openblas_takes_in_parts_give_the_same(monkeypatch, A, rows, dtype):
    monkeypatch.setattr(lapack, "LONG", 0.0)
    monkeypatch.setattr(lapack, "FEW_ROWS", 0)
    monkeypatch.setattr(blas, "LONG", 0.0)
    monkeypatch.setattr(blas, "COLUMN_BYTES", rows * np.dtype(dtype).itemsize)
    near = {"rtol": 1e-11, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    A = A.astype(dtype)
    lower, info = lapack.potrf(A)
    assert info == 0
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A), **near)
    inverse, info = lapack.potri(lower)
    assert info == 0
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(A)), **near)
    for trans in (False, True):
        B = np.asfortranarray(A[:, :9].T if trans else A[:, :9])
        product = lapack.syrk(0.5, B, beta=2.0, C=np.asfortranarray(A), trans=trans)
        wanted = 2.0 * A + 0.5 * A[:, :9] @ A[:, :9].T
        np.testing.assert_allclose(np.tril(product), np.tril(wanted), **near)
        above = np.triu_indices(40, 1)
        np.testing.assert_array_equal(product[above], A[above])


@pytest.mark.parametrize("row", [1, 12, 13, 30, 40])
def test_a_factor_in_parts_says_in_which_row_it_failed(monkeypatch, A, row):
    monkeypatch.setattr(lapack, "LONG", 0.0)
    monkeypatch.setattr(lapack, "FEW_ROWS", 0)
    monkeypatch.setattr(blas, "COLUMN_BYTES", 12 * 8)
    A[row - 1, row - 1] = -1.0
    assert lapack.potrf(A)[1] == row
    singular = np.asfortranarray(np.eye(40))
    singular[row - 1, row - 1] = 0.0
    assert lapack.potri(singular)[1] == row


LARGE = """
import numpy as np
from mercer import lapack
n = 15_400
L = np.zeros((n, n), order="F")
np.einsum("ii->i", L)[:] = 4.0
L[1:, 0] = 0.01
lower, info = lapack.potrf(L, overwrite_a=True)
assert info == 0 and lower[0, 0] == 2.0 and lower[-1, 0] == 0.005 and lower[-1, 1] < 0
assert abs((lower[-1] ** 2).sum() - 4.0) < 1e-9
print("factored")
"""


def test_two_threads_factor_more_rows_than_their_buffer_has_room_for():
    # OpenBLAS itself writes past its buffer here on processors with AVX-512, and the process is gone
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", LARGE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "factored" in done.stdout, done.stderr[-1000:]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 5, 8, 40])
def test_lengths_of_the_columns_of_an_inverse(either_way, monkeypatch, A, n, dtype):
    monkeypatch.setattr(lapack, "TRIANGLE", 4)
    monkeypatch.setattr(lapack, "COLUMNS", 8)
    L = np.linalg.cholesky(A[:n, :n])
    lower = np.asfortranarray(L + np.triu(np.full((n, n), np.nan), 1), dtype=dtype)
    found = lapack.Triangle(lower).inverse_lengths()
    expected = [sum(x**2 for x in column) for column in np.linalg.inv(L).T]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)


def test_a_factor_in_place_takes_no_other_memory_and_a_failure_names_its_row(either_way, A):
    buffer = np.asfortranarray(A)
    lower, info = lapack.potrf(buffer, overwrite_a=True)
    assert np.shares_memory(lower, buffer) and info == 0
    A[7, 7] = -1.0
    assert lapack.potrf(A)[1] == 8
    with pytest.raises(linalg.LinAlgError, match="8-th"):
        lapack.cholesky(A)


@pytest.mark.parametrize("order", ["C", "F"])
def test_triangles_in_either_order(either_way, A, order):
    L = lapack.cholesky(A)
    np.testing.assert_array_equal(L, np.tril(L))
    L = np.array(L, order=order)
    for b in (np.arange(40.0), np.random.default_rng(1).normal(size=(40, 3))):
        np.testing.assert_allclose(L @ lapack.solve_triangular(L, b), b, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(L.T @ lapack.solve_triangular(L, b, trans="T"), b, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(A @ lapack.cho_solve(L, b), b, rtol=1e-10, atol=1e-11)


def test_products_of_a_matrix_with_itself(either_way):
    B = np.asfortranarray(np.random.default_rng(0).normal(size=(30, 7)))
    C = np.asfortranarray(np.eye(30))
    np.testing.assert_allclose(np.tril(lapack.syrk(2.0, B)), np.tril(2 * B @ B.T), rtol=1e-12)
    np.testing.assert_allclose(np.tril(lapack.syrk(1.0, B, trans=True)), np.tril(B.T @ B), rtol=1e-12)
    got = lapack.syrk(1.0, B, beta=-3.0, C=C)
    assert np.shares_memory(got, C)
    np.testing.assert_allclose(np.tril(got), np.tril(B @ B.T - 3 * np.eye(30)), rtol=1e-12, atol=1e-14)
    for left in (B.T, B, np.ascontiguousarray(B).T, np.ascontiguousarray(B)):
        got = blas.matmul(left, left.T)
        np.testing.assert_array_equal(got, got.T)
        near_the_product(got, left, left.T)


def near_the_product(got, A, B):
    """Higham's bound of any order of summation, entry by entry, around the sum of exact products."""
    wide = np.longdouble
    exact = A.astype(wide) @ B.astype(wide)
    terms = A.shape[1]
    bound = 2 * terms * np.finfo(A.dtype).eps * (np.abs(A).astype(wide) @ np.abs(B).astype(wide))
    assert got.shape == exact.shape and got.dtype == A.dtype
    assert np.all(np.abs(got - exact) <= bound)


def laid_out(M, way):
    """The same matrix, as rows, as columns, as a part of a larger one, or with every other entry skipped."""
    if way in ("C", "F"):
        return np.array(M, order=way)
    rows, columns = M.shape
    if way == "part":
        whole = np.full((rows + 3, columns + 2), np.nan, M.dtype)
        whole[2:-1, 1:-1] = M
        return whole[2:-1, 1:-1]
    whole = np.full((2 * rows, 2 * columns), np.nan, M.dtype)
    whole[::2, ::2] = M
    return whole[::2, ::2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("first", ["C", "F", "part", "skipping"])
@pytest.mark.parametrize("second", ["C", "F", "part", "skipping"])
def test_products_however_the_matrices_lie_in_memory(either_way, dtype, order, first, second):
    rng = np.random.default_rng(0)
    for m, k, n in ((5, 3, 4), (1, 6, 3), (6, 2, 1), (1, 1, 1), (4, 1, 5)):
        A = laid_out(rng.normal(size=(m, k)).astype(dtype), first)
        B = laid_out(rng.normal(size=(k, n)).astype(dtype), second)
        near_the_product(blas.matmul(A, B, order=order), A, B)
        v = B[:, 0]
        near_the_product(blas.matmul(A, v), A, v)


def test_products_that_are_not_of_two_matrices_are_numpys(either_way):
    rng = np.random.default_rng(0)
    v = rng.normal(size=5)
    M = rng.normal(size=(5, 5))
    stack = rng.normal(size=(2, 3, 5))
    np.testing.assert_array_equal(blas.matmul(v, v), v @ v)
    np.testing.assert_array_equal(blas.matmul(v, M), v @ M)
    np.testing.assert_array_equal(blas.matmul(stack, M), stack @ M)
    np.testing.assert_array_equal(blas.matmul(np.arange(4).reshape(2, 2), np.eye(2)), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(blas.matmul(np.zeros((3, 0)), np.zeros((0, 2))), np.zeros((3, 2)))
    np.testing.assert_array_equal(blas.matmul(np.zeros((0, 3)), np.zeros((3, 2))), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="mismatch"):
        blas.matmul(M, stack[0])


def test_eigenvalues_and_singular_values(either_way, A):
    values, vectors = lapack.eigh(A)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(lapack.eigvalsh(A), values, rtol=1e-12)
    for k in (1, 5, 40):
        some, Z = lapack.top_eigh(A, k)
        np.testing.assert_allclose(some, values[-k:], rtol=1e-12)
        np.testing.assert_allclose(A @ Z, Z * some, rtol=1e-10, atol=1e-9)
    U, s, Vt = lapack.svd(A[:, :9])
    np.testing.assert_allclose(U * s @ Vt, A[:, :9], rtol=1e-10, atol=1e-10)
    Q, R = lapack.qr(A[:, :9])
    np.testing.assert_allclose(Q @ R, A[:, :9], rtol=1e-10, atol=1e-10)
    assert U.shape == Q.shape == (40, 9)


@pytest.mark.parametrize("shape", [(40, 9), (9, 9), (5, 9)])
def test_pivots_of_a_triangle_show_how_many_columns_count(either_way, shape):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    given = B.copy()
    Q, size = lapack.pivoted_qr(B)
    np.testing.assert_array_equal(B, given)
    assert Q.shape == (shape[0], min(shape)) and np.all(np.diff(size) <= 1e-12)
    assert (size > 1e-12 * size[0]).sum() == 3
    np.testing.assert_allclose(Q[:, :3] @ (Q[:, :3].T @ B), B, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1.0), (np.float64, 1e-30), (np.float32, 1.0)])
def test_what_is_below_the_rounding_of_a_factor_is_no_work_and_no_change(
    either_way, dtype, scale, monkeypatch
):
    """Entries of all sizes down to the smallest: products of tiny ones are subnormal,
    and cost a hundred times the time.
    """
    monkeypatch.setattr(lapack, "FEW_ROWS", 0)
    n, eps = 60, float(np.finfo(dtype).eps)
    X = np.random.default_rng(0).normal(size=(n, 2))
    s = ((X[:, None] - X) ** 2).sum(axis=2)
    d = np.random.default_rng(1).uniform(0.5, 2.0, n)
    A = (scale * np.outer(d, d) * np.exp(-150 * s) + 0.5 * scale * np.diag(d**2)).astype(dtype)
    given = A.copy()
    lower, info = lapack.potrf(A)
    np.testing.assert_array_equal(A, given)
    L = np.tril(lower).astype(float)
    size = np.sqrt(A.diagonal().astype(float))
    bound = np.outer(size, size)
    assert info == 0
    # Higham's bound on the error of any Cholesky factor, entry by entry.
    assert np.all(np.abs(L @ L.T - A) <= 2 * (n + 1) * eps * bound)
    plain = np.tril(linalg.cholesky(A, lower=True))
    assert subnormal(L, dtype) <= 0.1 * subnormal(plain, dtype), "tiny numbers in the factor"
    assert np.any((np.abs(A) > 0) & (np.abs(A) < eps**2 * bound)), (
        "nothing was negligible: the example is too easy"
    )


def subnormal(L, dtype):
    return int(((np.abs(L) > 0) & (np.abs(L) < float(np.finfo(dtype).tiny))).sum())


def test_eigenvalues_that_are_all_alike_are_found(either_way):
    """LAPACK's search for some of them finds none in a matrix of this kind, and says nothing."""
    X = np.random.default_rng(0).normal(size=(400, 10))
    A = np.exp(-50 * ((X[:, None] - X) ** 2).sum(axis=2))
    values, vectors = lapack.top_eigh(A, 7)
    np.testing.assert_allclose(values, 1.0, atol=1e-10)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_by_panels_is_the_matrix(order, monkeypatch):
    monkeypatch.setattr("mercer.panels.PANEL_BYTES", 100)
    for shape in ((7, 7), (5, 3), (3, 5), (4,)):
        A = np.array(np.random.default_rng(0).normal(size=shape), order=order)
        B = blas.in_fortran_order(A, False)
        np.testing.assert_array_equal(A, B)
        assert B.flags.f_contiguous and not np.shares_memory(A, B)


def test_an_error_of_the_thread_is_raised_where_it_was_asked_for():
    with pytest.raises(ZeroDivisionError):
        blas.waiting(lambda: 1 / 0)


def test_ctrl_c_leaves_a_call_that_goes_on_without_us():
    finish, finished = threading.Event(), threading.Event()

    def never_ending():
        signal.raise_signal(signal.SIGINT)
        finish.wait()
        finished.set()

    with pytest.raises(KeyboardInterrupt):
        blas.waiting(never_ending)
    assert not finished.is_set()
    finish.set()
    assert finished.wait(60)


def test_eigenvalues_of_nearly_separate_blocks_converge():
    """Divide and conquer gives up on this one with some builds of LAPACK."""
    rng = np.random.default_rng(1056)
    x = np.sort(rng.normal(size=41) * 40)
    weight = np.sqrt(rng.integers(1, 4, size=41))
    A = weight[:, None] * np.exp(-np.abs(x[:, None] - x) / 2) * weight
    values, vectors = lapack.eigh(A)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-13)


def test_where_divide_and_conquer_fails_qr_answers(monkeypatch):
    plain = linalg.eigh

    def failing(A, **options):
        if options.get("driver") == "evd":
            raise linalg.LinAlgError("not converged")
        return plain(A, **options)

    monkeypatch.setattr(lapack.linalg, "eigh", failing)
    A = np.cov(np.random.default_rng(0).normal(size=(12, 30)))
    values, vectors = lapack.eigh(A.copy(), overwrite_a=True)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
def test_where_divide_and_conquer_fails_in_place_qr_answers(monkeypatch, order):
    """A large matrix is worked on where it lies: what the first way has destroyed
    the second one must not need.
    """
    plain = lapack._lapack
    asked = []

    def failing(name, dtype, *arguments):
        asked.append(name)
        if name != "stedc":
            return plain(name, dtype, *arguments)
        for value in arguments:
            if isinstance(value, np.ndarray) and value.dtype == np.float64:
                value[...] = np.nan
        return 1

    monkeypatch.setattr(lapack, "LONG", 0.0)
    monkeypatch.setattr(blas, "LONG", 0.0)
    monkeypatch.setattr(lapack, "_lapack", failing)
    A = np.cov(np.random.default_rng(0).normal(size=(30, 60)))
    values, vectors = lapack.eigh(np.array(A, order=order), overwrite_a=True)
    assert "steqr" in asked
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-13)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), atol=1e-13)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_eigenpairs_of_any_size(either_way, A, size):
    values, vectors = lapack.eigh(size * A)
    np.testing.assert_allclose(vectors * (values / size) @ vectors.T, A, rtol=1e-10, atol=1e-10)


def test_singular_values_by_qr_where_divide_and_conquer_fails(either_way, monkeypatch):
    plain = linalg.svd

    def failing(A, **options):
        if options.get("lapack_driver") != "gesvd":
            raise linalg.LinAlgError("not converged")
        return plain(A, **options)

    monkeypatch.setattr(lapack.linalg, "svd", failing)
    monkeypatch.setattr(lapack.np.linalg, "svd", failing)
    B = np.random.default_rng(0).normal(size=(20, 6))
    U, sigma, right = lapack.svd(B)
    np.testing.assert_allclose(U * sigma @ right, B, atol=1e-13)


@pytest.mark.parametrize("rows", [1, 5, 64, 200])
@pytest.mark.parametrize("columns", [1, 7, 300])
@pytest.mark.parametrize("growth", [0.0, 200.0])
def test_a_triangle_made_ready_solves_to_the_bound_that_it_states(
    monkeypatch, either_way, rows, columns, growth
):
    """|B - LX| ≤ γ growth |L||X| entry by entry, in long double; also where no block may be inverted."""
    monkeypatch.setattr(lapack, "TRIANGLE", 64)
    monkeypatch.setattr(lapack, "GROWTH", growth)
    rng = np.random.default_rng(rows)
    x = np.sort(rng.uniform(0, 10, rows))
    K = np.exp(-np.abs(x[:, None] - x)) + 1e-3 * np.eye(rows)
    L = np.asfortranarray(linalg.cholesky(K, lower=True))
    triangle = lapack.Triangle(L)
    assert triangle.growth <= max(growth, 1.0)
    assert all((inverse is None) == (growth == 0.0) for inverse in triangle.inverses)
    B = np.asfortranarray(rng.normal(size=(rows, columns)))
    X = B.copy(order="F")
    triangle.solve(X)
    wide = np.longdouble
    left = np.abs(B - L.astype(wide) @ X.astype(wide))
    gamma = (rows + 16) * np.finfo(float).eps
    assert np.all(left <= gamma * triangle.growth * (np.abs(L) @ np.abs(X)).max(axis=0))


def test_a_triangle_of_which_a_block_is_nearly_singular_is_solved_by_substitution():
    L = np.asfortranarray(np.tril(np.full((300, 300), -1.0)) + 1.5 * np.eye(300))
    triangle = lapack.Triangle(L)
    assert triangle.inverses[0] is None
    B = np.asfortranarray(L @ np.ones((300, 2)))
    triangle.solve(B)
    assert np.isfinite(B).all()
