"""Preconditioners: inverse of what they say, stable when A is singular, and chosen ranks that help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import NotPositiveDefiniteError, ParameterError
from mercer.solve import cg, nystrom, pivoted_cholesky
from solve.laboratory import CountingOperator, rbf, with_spectrum


def nystrom_of_columns(A, *args, **kwargs):
    return nystrom(A, *args, sketch="columns", **kwargs)


BOTH = pytest.mark.parametrize(
    "make", [nystrom, nystrom_of_columns, pivoted_cholesky], ids=lambda f: f.__name__
)


def written_out(P):
    n = P.shape[0]
    U = P.vectors
    return U @ np.diag(P.values) @ U.T + P.tail * (np.eye(n) - U @ U.T) + P.shift * np.eye(n)


@BOTH
@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 60), rank=st.integers(1, 60), shift=st.floats(1e-6, 1), seed=st.integers(0, 99))
def test_apply_is_the_inverse_of_the_written_out_matrix(make, n, rank, shift, seed):
    P = make(rbf(n, 2, seed=seed), shift, rank=rank)
    V = np.random.default_rng(seed).normal(size=(n, 2))
    np.testing.assert_allclose(written_out(P) @ (P @ V), V, atol=1e-8)
    np.testing.assert_allclose(P.apply(V[:, 0]), (P @ V)[:, 0], rtol=1e-9, atol=1e-9 * np.abs(P @ V).max())
    assert P.logdet() == pytest.approx(np.linalg.slogdet(written_out(P))[1], rel=1e-6, abs=1e-6)
    assert P.rank <= min(n, rank)


@BOTH
def test_the_low_rank_part_lies_below_the_matrix(make):
    K = rbf(150, 3)
    P = make(K, 1e-3, rank=40)
    rest = K - P.vectors @ np.diag(P.values) @ P.vectors.T
    assert np.linalg.eigvalsh(rest)[0] > -1e-9
    np.testing.assert_allclose(P.vectors.T @ P.vectors, np.eye(P.rank), atol=1e-12)


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_of_low_rank_is_found_whole(make, dtype):
    F = np.random.default_rng(0).normal(size=(200, 5))
    P = make((F @ F.T).astype(dtype), 1e-2)
    assert 5 <= P.rank <= 20
    found = cg(F @ F.T, np.arange(200.0), 1e-2, preconditioner=P, tol=1e-6)
    assert found.certificate.converged and found.certificate.iterations <= 8


@BOTH
@pytest.mark.parametrize("A", [np.zeros((4, 4)), np.eye(4), np.ones((4, 4)), np.array([[2.0]])], ids=repr)
def test_degenerate_matrices_give_a_finite_preconditioner(make, A):
    for shift in (0.0, 1.0):
        assert np.isfinite(make(A, shift) @ np.ones(len(A))).all()


@BOTH
def test_a_shift_hidden_in_the_operator_does_no_harm(make):
    K, y = rbf(500, 3), np.random.default_rng(0).normal(size=500)
    hidden = cg(K + 0.1 * np.eye(500), y, preconditioner=make(K + 0.1 * np.eye(500)), tol=1e-8)
    plain = cg(K, y, 0.1, tol=1e-8)
    assert hidden.certificate.converged and hidden.certificate.iterations <= plain.certificate.iterations / 2


@BOTH
def test_an_indefinite_matrix_is_refused(make):
    with pytest.raises(NotPositiveDefiniteError, match="not positive semi-definite"):
        make(with_spectrum(np.linspace(-1, 1, 30)))


def test_nystrom_of_full_rank_is_the_matrix():
    A = with_spectrum(np.geomspace(1e-3, 1, 30))
    np.testing.assert_allclose(written_out(nystrom(A, 0.1, rank=30)), A + 0.1 * np.eye(30), atol=1e-10)


@BOTH
def test_at_full_rank_without_a_shift_it_is_the_inverse(make):
    """The tail, which then stands for nothing, must not cancel digits."""
    A = with_spectrum(np.linspace(1.0, 5.0, 24))
    P = make(A, rank=24)
    assert P.rank == 24
    np.testing.assert_allclose(P @ A, np.eye(24), atol=1e-10)
    assert cg(A, np.ones(24), preconditioner=P, tol=1e-10).certificate.iterations <= 2


def test_an_unknown_sketch_is_refused():
    with pytest.raises(ParameterError, match="sketch must be"):
        nystrom(rbf(10), 0.1, sketch="rows")


def test_columns_cost_no_product_and_depend_on_the_seed_only():
    op = CountingOperator(rbf(400))
    P = nystrom_of_columns(op, 1e-2, rank=50, random_state=3)
    assert op.products == 0 and op.entries == 400 * 50
    np.testing.assert_array_equal(
        P.vectors, nystrom_of_columns(rbf(400), 1e-2, rank=50, random_state=3).vectors
    )


def test_nystrom_takes_one_pass_per_doubling_and_depends_on_the_seed_only():
    op = CountingOperator(rbf(400))
    P = nystrom(op, 1e-2, random_state=3)
    assert op.products <= 4 and op.columns <= 100 and op.entries == 0
    np.testing.assert_array_equal(P.vectors, nystrom(rbf(400), 1e-2, random_state=3).vectors)
    assert not np.array_equal(P.values, nystrom(rbf(400), 1e-2, random_state=4).values)


def test_pivoted_cholesky_says_what_trace_it_leaves_out():
    K = rbf(200)
    op = CountingOperator(K)
    P = pivoted_cholesky(op, 1e-3, rank=30)
    kept = P.vectors @ np.diag(P.values) @ P.vectors.T
    assert P.left_out == pytest.approx(np.trace(K - kept), abs=1e-10)
    assert op.entries == 30 * 200 and op.products == 0


def test_the_automatic_rank_stops_when_the_rest_is_below_the_shift():
    assert pivoted_cholesky(rbf(300), 1e-2).left_out <= 300 * 1e-2
    assert nystrom(rbf(300), 1e-1).tail <= 10 * 1e-1
