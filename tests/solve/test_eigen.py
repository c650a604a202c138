"""Top eigenpairs: three methods, one answer; residuals that are true; signs that do not move."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import ParameterError
from mercer.solve import core, eigen, top_eigenpairs
from solve.laboratory import CountingOperator, rbf, with_spectrum

EPS = np.finfo(float).eps
METHODS = pytest.mark.parametrize("method", ["dense", "krylov", "lanczos"])


@METHODS
@pytest.mark.parametrize("n", [40, 400])
def test_values_are_those_of_numpy_and_vectors_are_orthonormal(method, n):
    K = rbf(n)
    found = top_eigenpairs(K, 6, method=method)
    values, V = found.value
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:6], rtol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(6), atol=1e-8)
    assert found.certificate.converged and found.certificate.residual <= 1e-8


@METHODS
def test_the_residuals_are_the_true_ones(method):
    K = rbf(200)
    found = top_eigenpairs(K, 4, method=method, tol=1e-4)
    values, V = found.value
    np.testing.assert_allclose(
        found.certificate.residuals, np.linalg.norm(K @ V - V * values, axis=0), atol=1e-12
    )


@METHODS
def test_the_largest_entry_of_each_vector_is_positive_and_methods_agree(method):
    K = rbf(300)
    V = top_eigenpairs(K, 5, method=method, tol=1e-11).value.vectors
    assert (V[np.argmax(np.abs(V), axis=0), range(5)] > 0).all()
    np.testing.assert_allclose(V, top_eigenpairs(K, 5, method="dense").value.vectors, atol=1e-7)


@METHODS
def test_repeated_eigenvalues_are_found_as_often_as_they_occur(method):
    A = with_spectrum([5.0, 5.0, 5.0, *np.linspace(0, 2, 57)])
    values = top_eigenpairs(A, 4, method=method).value.values
    np.testing.assert_allclose(values, [5, 5, 5, 2], atol=1e-6)


@METHODS
@pytest.mark.parametrize(
    "A", [np.zeros((30, 30)), np.eye(30), np.ones((30, 30))], ids=["zero", "one", "ones"]
)
def test_degenerate_matrices_do_not_break_it(method, A):
    found = top_eigenpairs(A, 3, method=method)
    np.testing.assert_allclose(found.value.values, np.linalg.eigvalsh(A)[::-1][:3], atol=1e-10)


@METHODS
def test_all_pairs_of_a_single_row(method):
    values, V = top_eigenpairs(np.array([[7.0]]), 1, method=method).value
    assert values.tolist() == [7.0] and V.tolist() == [[1.0]]


@METHODS
def test_the_largest_means_largest_not_largest_in_modulus(method):
    A = with_spectrum([-9.0, *np.linspace(0, 1, 39)])
    assert top_eigenpairs(A, 1, method=method).value.values[0] == pytest.approx(1.0, abs=1e-7)


def test_krylov_needs_few_passes_over_the_matrix():
    op = CountingOperator(rbf(1000))
    found = top_eigenpairs(op, 10)
    assert found.certificate.method == "block Krylov" and found.certificate.converged and op.products <= 15


def test_too_few_iterations_are_reported():
    found = top_eigenpairs(with_spectrum(np.linspace(1, 2, 300)), 3, method="krylov", max_iter=2)
    assert found.certificate.status == "limit" and "residual" in found.certificate.notes[0]
    found = top_eigenpairs(with_spectrum(np.linspace(1, 2, 300)), 3, method="lanczos", max_iter=1)
    assert found.certificate.status == "limit"


def test_a_float32_operator_stops_at_its_own_precision_and_says_so():
    found = top_eigenpairs(rbf(150).astype(np.float32), 3, tol=1e-12, method="krylov")
    assert found.certificate.status == "stagnated" and found.certificate.residual < 1e-5
    np.testing.assert_allclose(found.value.values, np.linalg.eigvalsh(rbf(150))[::-1][:3], rtol=1e-5)


@METHODS
@pytest.mark.parametrize("digits", [4, 7, 16])
@pytest.mark.parametrize("tol", [1e-3, 1e-8, 1e-12])
def test_pairs_are_converged_only_where_a_product_of_their_own_confirms_it(method, digits, tol):
    op = RoughOperator(rbf(60), 10.0**-digits)
    found = top_eigenpairs(op, 3, method=method, tol=tol, max_iter=40)
    values, V = found.value
    # the last product of all is the one that confirms
    off = np.linalg.norm(op.last - V * values, axis=0).max()
    scale = np.abs(values).max()
    assert found.certificate.residual == pytest.approx(off / scale)
    if found.certificate.status == "converged":
        assert off <= (tol + 64 * EPS * np.sqrt(60)) * scale
    if digits < 16 and tol < 1e-8:
        assert not found.certificate.converged


class RoughOperator(CountingOperator):
    """Each product is off by another part of itself, as where rows are read or drawn anew."""

    def __init__(self, A, size):
        super().__init__(A)
        self.size = size
        self.rng = np.random.default_rng(0)

    def __matmul__(self, V):
        exact = super().__matmul__(V)
        self.last = exact * (1.0 + self.size * self.rng.standard_normal(exact.shape))
        return self.last


def test_ctrl_c_keeps_the_pairs_so_far():
    op = CountingOperator(with_spectrum(np.linspace(1, 2, 200)), interrupt_after=5)
    found = top_eigenpairs(op, 3, method="krylov")
    assert found.certificate.status == "interrupted" and found.value.vectors.shape == (200, 3)


def test_the_same_seed_gives_the_same_bits():
    K = rbf(600)
    one, two = (top_eigenpairs(K, 5, random_state=1).value.vectors for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("k", [0, 4])
def test_an_impossible_number_of_pairs_is_refused(k):
    with pytest.raises(ParameterError, match="between 1 and"):
        top_eigenpairs(np.eye(3), k)


@pytest.mark.parametrize("n", [400, 900])
@pytest.mark.parametrize("copies", [5, 9, 10, 14])
def test_every_copy_of_a_multiple_eigenvalue_is_found(n, copies):
    """A residual cannot tell that a copy is missing: the pairs next in line are as exact."""
    rng = np.random.default_rng(copies)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.concatenate([np.full(copies, 3.0), np.linspace(2.0, 0.0, n - copies)])
    A = Q * values @ Q.T
    found = top_eigenpairs((A + A.T) / 2, 10, method="krylov")
    np.testing.assert_allclose(found.value.values, values[:10], rtol=1e-12)
    U = found.value.vectors
    np.testing.assert_allclose(U.T @ U, np.eye(10), atol=1e-13)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_columns_of_all_lengths_become_orthonormal(scale):
    """Also nearly dependent ones, and those that lie in the span of what is known already."""
    rng = np.random.default_rng(0)
    known = np.linalg.qr(rng.normal(size=(60, 5)))[0]
    V = rng.normal(size=(60, 6))
    V[:, 3] = V[:, 2] + 1e-9 * rng.normal(size=60)
    V[:, 4] = known @ rng.normal(size=5) + 1e-7 * rng.normal(size=60)
    V[:, 5] = V[:, 0] + V[:, 1]
    V *= scale * 10.0 ** np.arange(0, -6, -1)
    W = eigen._orthonormal(known, V)
    assert W.shape[1] >= 5
    both = np.column_stack([known, W])
    np.testing.assert_allclose(both.T @ both, np.eye(both.shape[1]), atol=1e-14)
    spanned = both @ (both.T @ (V[:, :5] / scale))
    np.testing.assert_allclose(spanned, V[:, :5] / scale, atol=1e-13)


# ── one vector at a time, on a matrix in memory ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [130, 700, 1500])
@pytest.mark.parametrize("k", [1, 7])
def test_single_vectors_find_what_lapack_finds(n, k):
    K = rbf(n, d=4)
    found = top_eigenpairs(K, k)
    assert found.certificate.method == "Lanczos" and found.certificate.converged
    np.testing.assert_allclose(found.value.values, np.linalg.eigvalsh(K)[::-1][:k], rtol=1e-12)
    U = found.value.vectors
    np.testing.assert_allclose(U.T @ U, np.eye(k), atol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
def test_either_order_of_memory_is_read(order):
    K = np.array(rbf(300), order=order)
    np.testing.assert_allclose(top_eigenpairs(K, 3).value.values, np.linalg.eigvalsh(K)[::-1][:3], rtol=1e-12)


@pytest.mark.parametrize("copies", [2, 5, 12])
@pytest.mark.parametrize("place", [0, 4])
def test_single_vectors_notice_that_copies_are_missing(copies, place):
    """One vector sees one copy of a multiple eigenvalue, and its residual is as small as any."""
    above = np.linspace(5.0, 4.0, place)
    values = np.concatenate([above, np.full(copies, 3.0), np.linspace(2.0, 0.0, 300 - place - copies)])
    found = top_eigenpairs(with_spectrum(values), 8)
    np.testing.assert_allclose(found.value.values, values[:8], rtol=1e-11)


@pytest.mark.parametrize("rank", [1, 4, 6])
def test_single_vectors_at_a_matrix_of_low_rank(rank):
    F = np.random.default_rng(rank).normal(size=(200, rank))
    found = top_eigenpairs(F @ F.T, 5)
    np.testing.assert_allclose(
        found.value.values, np.linalg.eigvalsh(F @ F.T)[::-1][:5], rtol=1e-10, atol=1e-9
    )


def test_a_circle_of_points_has_pairs_of_equal_eigenvalues_and_all_are_found():
    """The Gram matrix of points at equal angles is circulant: its eigenvalues are a discrete cosine sum."""
    angle = 2 * np.pi * np.arange(400) / 400
    first = np.exp(-2 * (1 - np.cos(angle)))
    K = first[(np.arange(400)[:, None] - np.arange(400)) % 400]
    exact = np.sort(np.fft.fft(first).real)[::-1]
    np.testing.assert_allclose(top_eigenpairs(K, 9).value.values, exact[:9], rtol=1e-12)


def test_a_spectrum_without_gaps_is_left_to_blocks():
    found = top_eigenpairs(with_spectrum(np.linspace(1, 2, 400)), 3, tol=1e-6)
    assert found.certificate.method == "block Krylov" and found.certificate.converged
    np.testing.assert_allclose(found.value.values, np.linspace(1, 2, 400)[::-1][:3], rtol=1e-9)


def test_lanczos_basis_of_a_centred_matrix_is_that_of_a_loop():
    """Q A Qᵀ = T and Q Qᵀ = I for A = HKH, on any number of threads with the same bits."""
    n = 1100
    K = rbf(n)
    H = np.eye(n) - 1 / n
    bases = []
    for threads in (1, 2, 3):
        Q = np.zeros((12, n))
        T = np.zeros((12, 12))
        rest = np.zeros(12)
        Q[0] = np.ones(n) / np.sqrt(n) * np.sign(np.arange(n) % 3 - 0.5)
        assert core.lanczos(K, True, Q, T, rest, 0, 5, threads=threads) == 5
        assert core.lanczos(K, True, Q, T, rest, 5, 12, threads=threads) == 12
        bases.append((Q, T, rest))
    Q, T, rest = bases[0]
    A = H @ K @ H
    np.testing.assert_allclose(Q @ Q.T, np.eye(12), atol=1e-13)
    np.testing.assert_allclose(Q @ A @ Q.T, T, atol=1e-10)
    left = A @ Q.T - Q.T @ T
    np.testing.assert_allclose(np.linalg.norm(left[:, -1]), rest[-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(left[:, :-1], 0.0, atol=1e-9)
    for other in bases[1:]:
        for one, two in zip(bases[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
