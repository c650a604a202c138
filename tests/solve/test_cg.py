"""Conjugate gradients: right answers, honest endings, and what a preconditioner is worth in iterations."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import clock
from mercer.errors import ParameterError
from mercer.solve import cg, factor, nystrom, pivoted_cholesky
from solve.laboratory import CountingOperator, rbf, relative_residual, with_spectrum


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), r=st.integers(1, 4), shift=st.floats(1e-2, 10), seed=st.integers(0, 99))
def test_the_answer_is_that_of_numpy(n, r, shift, seed):
    K = rbf(n, 2, seed=seed)
    B = np.random.default_rng(seed).normal(size=(n, r))
    found = cg(K, B, shift)
    np.testing.assert_allclose(found.value, np.linalg.solve(K + shift * np.eye(n), B), rtol=1e-6, atol=1e-6)
    assert found.certificate.status == "converged"
    for j in range(r):
        assert relative_residual(K, found.value[:, j], B[:, j], shift) <= 1.01e-10


def test_as_many_iterations_as_distinct_eigenvalues():
    A = with_spectrum(np.repeat([1.0, 4.0, 9.0], 20))
    found = cg(A, np.arange(60.0))
    assert found.certificate.iterations == 3


def test_each_right_hand_side_stops_on_its_own():
    A = with_spectrum(np.geomspace(1, 1e4, 100))
    eigenvector = np.linalg.eigh(A)[1][:, 0]
    op = CountingOperator(A)
    hard = np.random.default_rng(0).normal(size=100)
    found = cg(op, np.column_stack([eigenvector, np.zeros(100), hard]), tol=1e-8)
    assert found.certificate.status == "converged"
    assert op.columns < op.products + 10  # the first leaves after a step or two, the second at once


def test_zero_targets_cost_no_product():
    op = CountingOperator(rbf(10))
    found = cg(op, np.zeros(10), x0=np.ones(10))
    assert not found.value.any() and op.products == 0 and found.certificate.residual == 0.0


def test_a_warm_start_at_the_answer_takes_no_iteration():
    K, y = rbf(80), np.random.default_rng(0).normal(size=80)
    first = cg(K, y, 0.1)
    again = cg(K, y, 0.1, x0=first.value)
    assert again.certificate.iterations == 0 and again.certificate.converged
    np.testing.assert_array_equal(again.value, first.value)


@pytest.mark.parametrize("make", [nystrom, pivoted_cholesky], ids=lambda f: f.__name__)
def test_a_preconditioner_saves_nine_iterations_in_ten(make):
    K, y = rbf(600, 3, 1.5), np.random.default_rng(0).normal(size=600)
    plain = cg(K, y, 1e-3, tol=1e-8).certificate
    helped = cg(K, y, 1e-3, tol=1e-8, preconditioner=make(K, 1e-3)).certificate
    assert plain.converged and plain.iterations >= 400
    assert helped.converged and helped.iterations <= 40


def test_an_exact_preconditioner_needs_one_or_two_iterations():
    K, y = rbf(100), np.random.default_rng(0).normal(size=100)
    found = cg(K, y, 1e-3, preconditioner=factor(K, 1e-3))
    assert found.certificate.iterations <= 2 and found.certificate.converged


def test_the_iteration_limit_is_reported_with_the_true_residual():
    K, y = rbf(200), np.random.default_rng(0).normal(size=200)
    found = cg(K, y, 1e-4, max_iter=5)
    assert found.certificate.status == "limit" and found.certificate.iterations == 5
    assert found.certificate.residual == pytest.approx(relative_residual(K, found.value, y, 1e-4), rel=1e-6)
    assert "x0" in found.certificate.notes[0]


def test_no_seconds_means_no_iterations():
    found = cg(rbf(50), np.ones(50), 0.1, max_seconds=0.0)
    assert found.certificate.status == "limit" and found.certificate.iterations == 0


def test_an_unreachable_tolerance_is_reported_as_stagnation_not_looped_on():
    A = with_spectrum(np.geomspace(1e-7, 1, 100))
    found = cg(A, np.random.default_rng(0).normal(size=100), tol=1e-14, max_iter=10_000)
    assert found.certificate.status == "stagnated" and found.certificate.iterations < 5000
    assert "ill-conditioned" in found.certificate.notes[0]


def test_a_singular_system_without_solution_ends_and_says_so():
    y = np.arange(50.0)
    found = cg(np.ones((50, 50)), y)
    assert found.certificate.status == "stagnated" and found.certificate.iterations < 500
    assert np.isfinite(found.value).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(12))
def test_a_singular_matrix_is_never_called_indefinite(seed, dtype):
    """Where a direction has no image, pᵀAp is rounding of either sign, and so is Ap:
    no witness of anything.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 70))
    rank = int(rng.integers(1, n))
    F = rng.normal(size=(n, rank)) * 10 ** rng.uniform(-4, 4, size=rank)
    outside = np.linalg.svd(F)[0][:, -1]
    for A in (F @ F.T, np.ones((n, n)), np.outer(F[:, 0], F[:, 0])):
        for b in (rng.normal(size=n), np.arange(float(n)), outside):
            found = cg(A.astype(dtype), b).certificate
            assert found.status in ("stagnated", "limit", "converged"), found.notes
            assert not any("positive" in note for note in found.notes)


class ProductsOnly:
    """An operator that knows nothing but how to multiply."""

    def __init__(self, A):
        self.A, self.shape, self.dtype = A, A.shape, A.dtype

    def __matmul__(self, V):
        return self.A @ V


def test_products_are_all_that_is_asked_of_a_singular_operator():
    found = cg(ProductsOnly(np.ones((50, 50))), np.arange(50.0))
    assert found.certificate.status == "stagnated"


@pytest.mark.parametrize("lowest", [-1e-3, -1e-8, -1e-11])
def test_an_eigenvalue_below_rounding_is_still_met(lowest):
    A = with_spectrum([lowest, 1.0, 2.0, 3.0])
    found = cg(A, np.linalg.eigh(A)[1][:, 0] + 1e-3)
    assert found.certificate.status == "failed" and "not positive semi-definite" in found.certificate.notes[0]


def test_a_singular_system_with_a_solution_is_solved():
    A = with_spectrum([0.0, 0.0, 1.0, 2.0, 3.0])
    found = cg(A, A @ np.ones(5), tol=1e-9)
    assert found.certificate.converged


def test_an_indefinite_matrix_fails_with_a_direction_as_witness():
    found = cg(with_spectrum([-1.0, 1.0, 2.0]), np.ones(3))
    assert found.certificate.status == "failed" and "not positive semi-definite" in found.certificate.notes[0]


def test_nan_from_the_operator_fails_with_a_sentence():
    found = cg(CountingOperator(np.full((3, 3), np.nan)), np.ones(3))
    assert found.certificate.status == "failed" and "NaN" in found.certificate.notes[0]


def test_ctrl_c_keeps_the_iterate_and_its_true_residual():
    K, y = rbf(300), np.random.default_rng(0).normal(size=300)
    found = cg(CountingOperator(K, interrupt_after=20), y, 0.1)
    assert found.certificate.status == "interrupted" and found.certificate.iterations == 19
    assert found.certificate.residual == pytest.approx(relative_residual(K, found.value, y, 0.1), rel=1e-6)
    np.testing.assert_array_equal(found.value, cg(K, y, 0.1, max_iter=19).value)


def test_the_callback_sees_every_iteration_with_its_residual():
    seen = []
    found = cg(rbf(60), np.arange(60.0), 0.1, callback=lambda i, r: seen.append((i, r)))
    assert [i for i, _ in seen] == list(range(1, found.certificate.iterations + 1))
    assert seen[-1][1] <= 1e-10 < seen[-2][1]


def test_a_float32_operator_is_refined_beyond_float32():
    K = rbf(400).astype(np.float32)
    y = np.random.default_rng(0).normal(size=(400, 2))
    op = CountingOperator(K)
    found = cg(op, y, 1e-2, preconditioner=nystrom(op, 1e-2), tol=1e-9)
    assert found.certificate.converged
    assert relative_residual(K, found.value, y, 1e-2) <= 1.01e-9


def test_the_same_call_gives_the_same_bits():
    K, y = rbf(200), np.random.default_rng(0).normal(size=(200, 3))
    one, two = (cg(K, y, 1e-2, preconditioner=nystrom(K, 1e-2, random_state=7)).value for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_start_of_another_width_is_refused():
    with pytest.raises(ParameterError, match="columns"):
        cg(np.eye(3), np.ones((3, 2)), x0=np.ones(3))


# ── a round that makes things worse is taken back ──


class Spoiled(CountingOperator):
    """Single precision whose entries are right and whose products become wrong after `good` of them.

    Conjugate gradients multiply in single precision and measure by the entries, so that what the recurrence
    believes and what is true part. Wrong are the rows `where`, too small by `factor`: the steps are too long
    by it.
    """

    def __init__(self, A, good, factor=1e-4, where=slice(None)):
        super().__init__(np.asarray(A, dtype=np.float32))
        self.good, self.factor, self.where = good, np.float32(factor), where
        self.first_round = None

    def __matmul__(self, V):
        out = super().__matmul__(V)
        if self.products > self.good:
            out[self.where] *= self.factor
        return out

    def block(self, rows, cols):
        if self.first_round is None:
            self.first_round = self.products
        return super().block(rows, cols)


def is_the_true_residual(op, found, B, shift):
    for j, said in enumerate(found.certificate.residuals):
        true = relative_residual(op.A, found.value[:, j], B[:, j], shift)
        assert said == pytest.approx(true, rel=1e-6, abs=1e-14)
    assert found.certificate.residual == max(found.certificate.residuals)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [None, 3], ids=["to the end", "cut short"])
def test_a_first_round_that_blows_up_leaves_the_start(seed, limit):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    op = Spoiled(rbf(n, seed=seed), good=0, factor=1e-5)
    B = rng.normal(size=(n, 3))
    shift = 1e-7
    A = op.A + shift * np.eye(n)
    start = np.linalg.solve(A + 0.1 * np.eye(n), B)
    found = cg(op, B, shift, x0=start, tol=1e-12, max_iter=limit)
    np.testing.assert_array_equal(found.value, start)
    assert found.certificate.status == ("stagnated" if limit is None else "limit")
    is_the_true_residual(op, found, B, shift)


@pytest.mark.parametrize("seed", range(6))
def test_a_later_round_that_gets_worse_leaves_the_round_before(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 40))
    K, B, shift = rbf(n, seed=seed), rng.normal(size=(n, 2)), 0.1
    sound = Spoiled(K, good=10**9)
    whole = cg(sound, B, shift, tol=1e-12)
    assert whole.certificate.converged and whole.certificate.iterations > sound.first_round
    kept = cg(Spoiled(K, good=10**9), B, shift, tol=1e-12, max_iter=sound.first_round)

    spoiled = Spoiled(K, good=sound.first_round)
    found = cg(spoiled, B, shift, tol=1e-12)
    np.testing.assert_array_equal(found.value, kept.value)
    assert found.certificate.status == "stagnated"
    assert found.certificate.residual <= 1e-3
    is_the_true_residual(spoiled, found, B, shift)


def test_only_the_columns_that_got_worse_are_taken_back():
    half = 12
    A = np.zeros((2 * half, 2 * half))
    A[:half, :half], A[half:, half:] = rbf(half, seed=1), rbf(half, seed=2)
    B = np.zeros((2 * half, 2))
    B[:half, 0] = np.arange(1.0, half + 1)
    B[half:, 1] = np.arange(1.0, half + 1)
    op = Spoiled(A, good=0, where=slice(half, None))
    found = cg(op, B, 1e-6, tol=1e-8)
    sound, spoiled = found.certificate.residuals
    assert sound <= 1e-8
    assert spoiled == 1.0 and not found.value[:, 1].any()
    assert found.certificate.status == "stagnated" and "1 of 2" in found.certificate.notes[-1]
    is_the_true_residual(op, found, B, 1e-6)


@pytest.mark.parametrize("worse", [0.5, 0.7])
def test_a_round_that_only_gets_a_little_worse_is_taken_back_too(worse):
    """The recurrence solves with `worse`·A: the true residual is (1/worse - 1) of the one before,
    above or below it.
    """
    K, b = rbf(20, seed=3) + np.eye(20), np.arange(1.0, 21.0)
    op = Spoiled(K, good=0, factor=0.9 * worse)
    found = cg(op, b, tol=1e-12)
    grown = 1 / (0.9 * worse) - 1
    if grown >= 1:
        assert not found.value.any() and found.certificate.residual == 1.0
    else:
        assert found.certificate.residual == pytest.approx(grown, rel=1e-2)
    is_the_true_residual(op, cg(op, b[:, None], tol=1e-12), b[:, None], 0.0)


# ── an answer that ended early ──────────────────────────────────────────────────────────────────────────────


def energy(A, X, B):
    """½xᵀAx - bᵀx of each column, in extended precision."""
    A, X, B = (np.asarray(v, dtype=np.longdouble) for v in (A, X, B))
    return (0.5 * np.einsum("ij,ij->j", X, A @ X) - np.einsum("ij,ij->j", B, X)).astype(float)


def hard_system(seed, shift, columns):
    """A smooth kernel on a line: residuals of conjugate gradients rise far above those of the start."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, 60)
    K = np.exp(-0.5 * np.subtract.outer(x, x) ** 2)
    B = np.sign(x - 0.5)[:, None] + 0.3 * rng.normal(size=(60, columns))
    return K, K + shift * np.eye(60), B


@pytest.mark.parametrize("limit", [1, 7, 40])
@pytest.mark.parametrize("shift", [1e-4, 1e-8, 1e-12, 1e-15])
@pytest.mark.parametrize("columns", [1, 3])
def test_no_answer_is_worse_than_its_start(columns, shift, limit):
    """By its residual and by its energy, in every column, from nothing and from somewhere."""
    for seed in range(25):
        K, A, B = hard_system(seed, shift, columns)
        somewhere = np.linalg.solve(A + 1e-3 * np.eye(60), B)
        inverse = nystrom(K, shift, max_rank=8, random_state=seed)
        for start in (np.zeros_like(B), somewhere):
            for preconditioner in (None, inverse):
                found = cg(K, B, shift, preconditioner=preconditioner, x0=start, max_iter=limit)
                # What rounding makes of A x in float64.
                length = np.linalg.norm(found.value, axis=0)
                rounding = 1e-15 * np.linalg.norm(A, 2) * length
                for j, said in enumerate(found.certificate.residuals):
                    slack = rounding[j] / np.linalg.norm(B[:, j])
                    true = relative_residual(K, found.value[:, j], B[:, j], shift)
                    assert said == pytest.approx(true, rel=1e-4, abs=slack)
                    first = relative_residual(K, start[:, j], B[:, j], shift)
                    assert said <= (1 + 1e-14) * first + slack
                gain = energy(A, start, B) - energy(A, found.value, B)
                assert np.all(gain >= -rounding * length)


@pytest.mark.parametrize("shift", [1e-2, 1e-5, 1e-8])
def test_more_iterations_never_raise_the_residual(shift):
    """Though that of plain conjugate gradients does rise on these systems."""
    rises = 0
    for seed in range(5):
        K, _, B = hard_system(seed, shift, 2)
        last = np.ones(2)
        for limit in range(1, 12):
            found = cg(K, B, shift, max_iter=limit).certificate
            assert np.all(np.array(found.residuals) <= last * (1 + 1e-6))
            last = np.array(found.residuals)
        plain: list[float] = []
        cg(K, B, shift, max_iter=11, callback=lambda _, r, seen=plain: seen.append(r))
        rises += bool(np.any(np.diff(plain) > 0))
    assert rises or shift == 1e-2


@pytest.mark.parametrize("seed", range(5))
def test_without_a_preconditioner_the_residual_is_the_least_of_the_krylov_space(seed):
    """As MINRES finds it."""
    A = with_spectrum(np.geomspace(1e-3, 1, 40), seed=seed)
    b = np.random.default_rng(seed).normal(size=40)
    for limit in (1, 3, 6):
        powers = [b]
        for _ in range(limit - 1):
            powers.append(A @ powers[-1])
        V = np.column_stack(powers)
        best = np.linalg.lstsq(A @ V, b, rcond=None)[1]
        found = cg(A, b, max_iter=limit).certificate
        np.testing.assert_allclose(found.residual, np.sqrt(best[0]) / np.linalg.norm(b), rtol=1e-6)


def test_ctrl_c_leaves_nothing_worse_than_the_start():
    for seed in range(25):
        K, _, B = hard_system(seed, 1e-12, 2)
        for products in (2, 5, 12, 30):
            found = cg(CountingOperator(K, interrupt_after=products), B, 1e-12).certificate
            assert found.status == "interrupted" and max(found.residuals) <= 1.0 + 1e-14


# ── seconds ─────────────────────────────────────────────────────────────────────────────────────────────────


def on_a_clock_of_products(monkeypatch, condition=1e8):
    """A matrix whose products take a second each, by a clock that else stands still."""
    op = CountingOperator(with_spectrum(np.geomspace(1.0, condition, 60)))
    monkeypatch.setattr(clock, "now", lambda: float(op.products))
    return op


@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("seconds", [0.5, 3.5, 9.0])
def test_the_seconds_hold_the_residual_and_the_products_that_follow(seconds, after, certified, monkeypatch):
    op, b = on_a_clock_of_products(monkeypatch), np.arange(60.0)
    found = cg(op, b, max_seconds=seconds, after=after, certified=certified)
    assert found.certificate.status == "limit"
    # One product is made in any case: there must be something to end with.
    assert op.products <= max(1, seconds - after)
    residual = np.linalg.norm(b - op.A @ found.value) / np.linalg.norm(b)
    np.testing.assert_allclose(found.certificate.residual, residual, rtol=1e-6)


def test_a_residual_that_rounding_may_have_changed_is_measured_though_it_is_late(monkeypatch):
    monkeypatch.setattr(sys.modules["mercer.solve.cg"], "DRIFT", 0.0)
    op = on_a_clock_of_products(monkeypatch)
    cg(op, np.arange(60.0), max_seconds=0.5)
    assert op.products == 2
