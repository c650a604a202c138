"""Cholesky: against numpy, in two precisions, and what it says when the matrix is not positive definite."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import MercerError, NotFiniteError, NotPositiveDefiniteError, ParameterError, ShapeError
from mercer.solve import direct, factor
from solve.laboratory import CountingOperator, rbf, relative_residual, with_spectrum


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), r=st.integers(1, 4), shift=st.floats(1e-3, 10), seed=st.integers(0, 99))
def test_the_answer_is_that_of_numpy(n, r, shift, seed):
    K = rbf(n, 2, seed=seed)
    B = np.random.default_rng(seed).normal(size=(n, r))
    found = direct(K, B, shift)
    np.testing.assert_allclose(found.value, np.linalg.solve(K + shift * np.eye(n), B), rtol=1e-8, atol=1e-8)
    assert found.certificate.status == "converged" and found.certificate.added_diagonal == 0.0
    assert found.certificate.residual <= 1e-10 and len(found.certificate.residuals) == r


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factor_knows_the_determinant_and_the_diagonal_of_the_inverse(dtype):
    A = with_spectrum(np.geomspace(1, 100, 60)).astype(dtype)
    F = factor(A, 0.5)
    full = A.astype(float) + 0.5 * np.eye(60)
    assert F.logdet() == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-12)
    np.testing.assert_allclose(F.inverse_diag(), np.diag(np.linalg.inv(full)), rtol=1e-10)


def test_factor_of_one_row():
    F = factor(np.array([[4.0]]), 5.0)
    assert F.solve(np.array([18.0])).tolist() == [2.0] and F.inverse_diag().tolist() == [1 / 9]


def test_input_is_not_written_to_unless_given_up():
    K = rbf(50)
    before = K.copy()
    factor(K, 1.0)
    direct(CountingOperator(K), np.ones(50), 1.0)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_given_up_is_the_memory_of_the_factor(order):
    K = np.array(rbf(50), order=order)
    keep, y = K.copy(), np.arange(50.0)
    F = factor(K, 0.1, overwrite=True)
    assert np.shares_memory(F.lower, K)
    np.testing.assert_allclose(F.solve(y), np.linalg.solve(keep + 0.1 * np.eye(50), y), rtol=1e-9)


def test_only_one_triangle_of_an_operator_is_asked_for(monkeypatch):
    monkeypatch.setattr("mercer.panels.PANEL_BYTES", 20 * 300 * 8)
    op = CountingOperator(rbf(300))
    F = factor(op, 0.1)
    assert op.entries < 0.55 * 300**2 and op.products == 0
    np.testing.assert_allclose(np.tril(F.lower), np.linalg.cholesky(op.A + 0.1 * np.eye(300)), atol=1e-12)


def test_a_float32_operator_is_solved_to_float64_residuals():
    K = rbf(200).astype(np.float32)
    y = np.random.default_rng(0).normal(size=200)
    found = direct(CountingOperator(K), y, 1e-2)
    assert relative_residual(K, found.value, y, 1e-2) <= 1e-10 and found.certificate.status == "converged"


def test_mixed_precision_reaches_the_float64_residual_when_well_conditioned():
    K, y = rbf(300), np.random.default_rng(0).normal(size=(300, 2))
    found = direct(K, y, 0.1, precision="mixed")
    assert "float32" in found.certificate.method and found.certificate.iterations >= 1
    assert relative_residual(K, found.value, y, 0.1) <= 1e-10


@pytest.mark.parametrize("shift", [1e-5, 1e-8])
def test_mixed_precision_falls_back_to_float64_and_says_so(shift):
    K, y = rbf(300, 2), np.random.default_rng(0).normal(size=300)
    found = direct(K, y, shift, precision="mixed", tol=1e-12)
    assert found.certificate.method == "Cholesky (float64)"
    assert "float32" in found.certificate.notes[0] and "float64 was used" in found.certificate.notes[0]


def test_mixed_precision_is_chosen_where_it_pays():
    A = with_spectrum(np.ones(8))
    big = np.kron(np.eye(250), A)
    y = np.ones(2000)
    assert "float32" in direct(CountingOperator(big), y, 1.0).certificate.method
    assert "float64)" in direct(CountingOperator(big), y, 1e-6).certificate.method.replace("in float64", "")
    assert (
        direct(CountingOperator(big), y, 1.0, precision="float64").certificate.method == "Cholesky (float64)"
    )


def test_a_residual_above_the_tolerance_is_stated_with_its_cause():
    K, y = rbf(300), np.random.default_rng(0).normal(size=300)
    found = direct(K, y, 1e-12)
    assert found.certificate.status == "stagnated" and "ill-conditioned" in str(found.certificate)
    assert found.certificate.residual == pytest.approx(relative_residual(K, found.value, y, 1e-12), rel=0.5)


def test_zero_targets_give_zero():
    found = direct(rbf(20), np.zeros((20, 2)), 0.1)
    assert not found.value.any() and found.certificate.residual == 0.0


def test_duplicates_are_named_and_the_diagonal_that_would_do_does():
    K = rbf(60)
    K[7], K[:, 7] = K[3], K[:, 3]
    K[7, 7] = K[3, 3]
    with pytest.raises(NotPositiveDefiniteError, match="look like duplicates") as caught:
        factor(K)
    error = caught.value
    assert (3, 7) in error.duplicates and error.pivot == 7
    assert 0 < error.sufficient_diagonal < 1e-11
    factor(K, error.sufficient_diagonal)
    assert abs(error.smallest_eigenvalue) < 1e-13


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_indefinite_matrix_is_called_so(overwrite):
    A = with_spectrum([-0.3, 1.0, 2.0, 5.0])
    with pytest.raises(NotPositiveDefiniteError, match="indefinite") as caught:
        factor(A.copy(), 0.1, overwrite=overwrite)
    assert caught.value.smallest_eigenvalue == pytest.approx(-0.2, abs=1e-12)
    assert 0.3 < caught.value.sufficient_diagonal < 0.35
    factor(A, caught.value.sufficient_diagonal)


def test_a_large_singular_matrix_gets_a_diagonal_that_does():
    A = np.ones((1200, 1200))
    with pytest.raises(NotPositiveDefiniteError) as caught:
        factor(A)
    factor(A, caught.value.sufficient_diagonal)
    assert caught.value.sufficient_diagonal < 1e-7


def test_the_error_is_a_linalg_error_and_survives_pickling():
    with pytest.raises(np.linalg.LinAlgError) as caught:
        factor(-np.eye(2))
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, MercerError) and str(again) == str(caught.value)
    assert again.pivot == 0 and again.sufficient_diagonal == caught.value.sufficient_diagonal


def test_bad_input_is_refused_by_name():
    with pytest.raises(ShapeError, match="not symmetric"):
        factor(np.array([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ShapeError, match="square"):
        factor(np.ones((2, 3)))
    with pytest.raises(NotFiniteError):
        factor(np.array([[1.0, np.nan], [np.nan, 1.0]]))
    with pytest.raises(NotFiniteError):
        factor(CountingOperator(np.array([[1.0, np.nan], [np.nan, 1.0]])))
    with pytest.raises(ShapeError, match="shape"):
        direct(np.eye(3), np.ones(2))
    with pytest.raises(NotFiniteError, match="row 1"):
        direct(np.eye(2), [0.0, np.inf])
    with pytest.raises(ParameterError, match="shift"):
        factor(np.eye(2), -1.0)
    with pytest.raises(ParameterError, match="precision"):
        direct(np.eye(2), [0.0, 1.0], precision="half")
