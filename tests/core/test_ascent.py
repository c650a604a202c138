"""Coordinate ascent in explicit features against working sets, and against the conditions of optimality."""

from __future__ import annotations

import threading
import time
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from mercer import _core
from mercer.errors import ParameterError
from mercer.solve.box import BoxProblem
from mercer.solve.qp import ascents, working_sets

ISAS = [name for name in ("baseline", "avx2", "avx512") if _core.force_isa(name)]
_core.force_isa(ISAS[-1])


def classes(rng, n, d, *, scale=1.0, noise=1.0):
    X = rng.normal(size=(n, d)) * scale
    y = np.where(
        X @ rng.normal(size=d) / np.sqrt(d) + noise * rng.normal(size=n) * np.abs(X).mean() > 0, 1.0, -1.0
    )
    y[:2] = [1.0, -1.0]
    return X, y


def problem(y, C=1.0, equality=1):
    n = len(y)
    return BoxProblem(np.arange(n), y, np.full(n, -1.0), np.broadcast_to(C, n).astype(float), equality)


def pairs_of(labels, C):
    """One problem for each pair of labels."""
    out = []
    for a, b in combinations(np.unique(labels), 2):
        rows = np.flatnonzero((labels == a) | (labels == b))
        signs = np.where(labels[rows] == a, 1.0, -1.0)
        out.append(BoxProblem(rows, signs, np.full(len(rows), -1.0), np.full(len(rows), C)))
    return out


def tube(y, C=1.0, epsilon=0.1, equality=1):
    n = len(y)
    signs = np.repeat([1.0, -1.0], n)
    rows = np.tile(np.arange(n), 2)
    return BoxProblem(rows, signs, epsilon - signs * y[rows], np.full(2 * n, float(C)), equality)


def certified(X, q, found):
    """Primal, dual, gap and violation from α and the Gram matrix alone."""
    alpha = found.value.alpha
    f = np.asarray((X @ X.T) @ q.beta(alpha, X.shape[0]))[q.rows]
    return q.certify(alpha, f, q.multipliers(alpha, f))


def agree(X, q, *, tol=1e-7, rtol=1e-6):
    """Both solvers, the same optimum; what ascent says of itself is what α says."""
    (found,) = ascents(X, [q], tol=tol, n_jobs=1)
    dense = X.toarray() if sparse.issparse(X) else X
    (other,) = working_sets(dense @ dense.T, [q], tol=tol, n_jobs=1)
    assert found.certificate.converged and other.certificate.converged
    np.testing.assert_allclose(found.value.objective, other.value.objective, rtol=rtol)
    c = certified(dense, q, found)
    assert q.unkept(found.value.alpha) <= 1e-12 * max(found.value.alpha.sum(), 1.0)
    assert np.all(found.value.alpha >= 0) and np.all(found.value.alpha <= q.C)
    size = 1.0 + np.abs(found.value.f).max()
    assert c.kkt <= found.certificate.kkt + 1e-9 * size
    assert c.gap <= max(1e-2 * abs(c.dual), 1e-9)
    np.testing.assert_allclose(-c.dual, found.value.objective, rtol=1e-9)
    reach = (
        np.sqrt(2 * (c.gap + other.certificate.gap + 1e-9 * abs(c.dual)))
        * np.linalg.norm(dense, axis=1).max()
    )
    np.testing.assert_allclose(found.value.f, other.value.f, atol=2 * reach + 1e-9 * size)
    return found


@pytest.mark.parametrize("equality", [0, 1])
@pytest.mark.parametrize("C", [1e-3, 1.0, 10.0])
@pytest.mark.parametrize("shape", [(200, 5), (60, 60), (40, 200), (300, 40)])
def test_the_optimum_is_that_of_the_working_sets(shape, C, equality):
    X, y = classes(np.random.default_rng(0), *shape)
    agree(X, problem(y, C, equality))


@pytest.mark.parametrize("equality", [0, 1])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_regression_has_the_optimum_of_the_working_sets(C, equality):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 6))
    y = X @ rng.normal(size=6) + 0.3 * rng.normal(size=150) + 100.0 * equality
    agree(X, tube(y, C, equality=equality))


@pytest.mark.parametrize("equality", [0, 1])
def test_duplicates_zero_rows_weights_and_unscaled_columns(equality):
    rng = np.random.default_rng(2)
    X, y = classes(rng, 160, 8, scale=10.0 ** np.arange(-2.0, 2.0, 0.5))
    X[:40] = X[40:80]
    X[80:90] = 0.0
    agree(X, problem(y, rng.integers(1, 4, size=160) * 0.5, equality))


@pytest.mark.parametrize("equality", [0, 1])
def test_a_row_with_twice_the_bound_is_the_row_twice(equality):
    X, y = classes(np.random.default_rng(3), 90, 7)
    C = np.ones(90)
    C[:30] = 2.0
    (heavy,) = ascents(X, [problem(y, C, equality)], tol=1e-9)
    (twice,) = ascents(
        np.vstack([X, X[:30]]), [problem(np.concatenate([y, y[:30]]), 1.0, equality)], tol=1e-9
    )
    np.testing.assert_allclose(heavy.value.objective, twice.value.objective, rtol=1e-9)


def test_every_row_in_one_place():
    """Nothing to tell apart: all products are 0, or all are the same."""
    y = np.array([1.0, 1.0, -1.0])
    for X in (np.zeros((3, 2)), np.ones((3, 2))):
        for equality in (0, 1):
            agree(X, problem(y, 2.0, equality))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_rows_give_what_dense_ones_give(dtype):
    rng = np.random.default_rng(4)
    X = sparse.random_array((300, 400), density=0.05, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=400) > 0, 1.0, -1.0)
    X.indices = X.indices.astype(dtype)
    X.indptr = X.indptr.astype(dtype)
    for equality in (0, 1):
        one = agree(X, problem(y, 5.0, equality))
        (other,) = ascents(X.toarray(), [problem(y, 5.0, equality)], tol=1e-7)
        np.testing.assert_allclose(one.value.objective, other.value.objective, rtol=1e-9)


def test_sparse_rows_may_name_a_column_twice_and_out_of_order():
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 5.0]), np.array([1, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 2)
    )
    q = problem(np.array([1.0, -1.0]), 10.0)
    (found,) = ascents(X, [q], tol=1e-9)
    (other,) = ascents(np.array([[2.0, 4.0], [0.0, 5.0]]), [q], tol=1e-9)
    np.testing.assert_allclose(found.value.alpha, other.value.alpha, rtol=1e-12)


def test_columns_may_be_counted_in_32_or_64_bits():
    rng = np.random.default_rng(5)
    X = sparse.random_array((300, 400), density=0.05, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=400) > 0, 1.0, -1.0)
    found = []
    for kind in (np.int32, np.int64):
        X.indices = X.indices.astype(kind)
        X.indptr = X.indptr.astype(kind)
        found += ascents(X, [problem(y)], tol=1e-6)
    assert np.array_equal(found[0].value.alpha, found[1].value.alpha)
    assert np.array_equal(found[0].value.f, found[1].value.f)


def test_rows_with_infinity_are_not_solved_even_where_nothing_has_to_move():
    """At α = 0 no row is read for f; infinity must be noticed all the same."""
    X = np.array([[1.0], [np.inf]])
    free_of_charge = BoxProblem(np.arange(2), np.array([1.0, -1.0]), np.ones(2), np.ones(2))
    (found,) = ascents(X, [free_of_charge])
    assert found.certificate.status == "failed"


def test_float32_features_are_read_as_they_are():
    X, y = classes(np.random.default_rng(5), 120, 9)
    single = X.astype(np.float32)
    (found,) = ascents(single, [problem(y)], tol=1e-8)
    (other,) = ascents(single.astype(np.float64), [problem(y)], tol=1e-8)
    np.testing.assert_allclose(found.value.objective, other.value.objective, rtol=1e-12)


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set_finds_the_optimum(isa):
    X, y = classes(np.random.default_rng(6), 150, 21)
    wide = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    try:
        assert _core.force_isa(isa)
        agree(X, problem(y))
        agree(wide, problem(y))
    finally:
        _core.force_isa(ISAS[-1])


def test_bits_do_not_depend_on_the_threads_and_repeat():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(240, 30))
    problems = pairs_of(rng.integers(0, 5, size=240), C=3.0)
    one = ascents(X, problems, n_jobs=1)
    for jobs in (1, 2, 3):
        for a, b in zip(one, ascents(X, problems, n_jobs=jobs), strict=True):
            np.testing.assert_array_equal(a.value.alpha, b.value.alpha)
            np.testing.assert_array_equal(a.value.f, b.value.f)
            assert a.certificate.iterations == b.certificate.iterations


def test_hard_problems_end_by_newton_steps():
    """Unscaled columns and a large C: single variables would take millions of sweeps."""
    rng = np.random.default_rng(8)
    X, y = classes(rng, 3000, 12, scale=10.0 ** rng.uniform(-2, 2, size=12), noise=2.0)
    q = problem(y, 100.0)
    (found,) = ascents(X, [q], tol=1e-4, max_iter=3_000_000)
    assert found.certificate.converged
    c = certified(X, q, found)
    assert c.gap <= 1e-6 * abs(c.dual) and c.kkt <= 2e-4


@pytest.mark.parametrize("size", [1, 50, 3000])
def test_steps_are_limited_and_what_was_reached_is_feasible(size):
    X, y = classes(np.random.default_rng(9), 500, 10)
    q = problem(y, 10.0)
    (found,) = ascents(X, [q], tol=1e-9, max_iter=size)
    assert found.certificate.status == "limit" and "iterations" in found.certificate.notes[0]
    assert q.unkept(found.value.alpha) <= 1e-12 * max(found.value.alpha.sum(), 1.0)
    assert found.value.objective <= 0.0


def test_numbers_seconds_and_callbacks_end_it():
    X, y = classes(np.random.default_rng(10), 2000, 300)
    q = problem(y, 10.0)
    (few,) = ascents(X, [q], tol=1e-9, max_numbers=1)
    assert few.certificate.status == "limit" and "numbers" in few.certificate.notes[0]
    (late,) = ascents(X, [q], tol=1e-12, max_seconds=0.0)
    assert late.certificate.status == "limit" and "seconds" in late.certificate.notes[0]
    seen = []
    (stopped,) = ascents(X, [q], tol=1e-13, callback=lambda *what: seen.append(what) or True)
    assert stopped.certificate.status == "stopped" or stopped.certificate.status in ("converged", "stagnated")
    for found in (few, late, stopped):
        assert q.unkept(found.value.alpha) <= 1e-12 * max(found.value.alpha.sum(), 1.0)


def test_a_gap_suffices_where_it_is_asked_for():
    X, y = classes(np.random.default_rng(11), 800, 20)
    q = problem(y, 5.0)
    (rough,) = ascents(X, [q], tol=1e-12, gap_tol=1e-2)
    assert rough.certificate.converged and rough.certificate.gap <= 1e-2 * abs(rough.value.objective)
    (fine,) = ascents(X, [q], tol=1e-9)
    assert rough.value.objective - fine.value.objective <= 1e-2 * abs(rough.value.objective)


def test_a_warm_start_is_where_it_begins():
    X, y = classes(np.random.default_rng(12), 400, 8)
    q = problem(y)
    (cold,) = ascents(X, [q], tol=1e-6)
    (warm,) = ascents(X, [q], [cold.value.alpha], tol=1e-6)
    assert warm.certificate.iterations == 0
    np.testing.assert_array_equal(warm.value.alpha, cold.value.alpha)


def test_the_interpreter_goes_on_meanwhile():
    X, y = classes(np.random.default_rng(13), 4000, 300)
    ticks = []

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    done = threading.Event()
    other = threading.Thread(target=count)
    other.start()
    ascents(X, [problem(y, 100.0)], tol=1e-12, max_iter=200_000)
    done.set()
    other.join()
    assert len(ticks) > 3


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ((np.ones(2), np.array([0, 7]), np.array([0, 1, 2]), 2), "must increase"),
        ((np.ones(2), np.array([0, 1]), np.array([0, 3, 2]), 2), "indptr"),
        ((np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), -1), "ncols"),
        ((np.ones(2), np.array([1, 0]), np.array([0, 2, 2]), 2), "must increase"),
        ((np.ones(2), np.array([0, 7], dtype=np.int32), np.array([0, 1, 2]), 2), "must increase"),
        ((np.ones(2), np.array([-1, 0], dtype=np.int32), np.array([0, 2, 2]), 2), "must increase"),
        ((np.ones(2), np.array([1, 1], dtype=np.int32), np.array([0, 2, 2]), 2), "must increase"),
        ((np.ones(2), np.array([0], dtype=np.int32), np.array([0, 1, 2]), 2), "fit together"),
        (np.ones((2, 2), dtype=int), "float64"),
    ],
)
def test_malformed_features_are_refused_before_they_are_read(features, words):
    stated = [(np.arange(2), np.array([1, -1], dtype=np.int8), -np.ones(2), np.ones(2), np.zeros(2), 1)]
    with pytest.raises(ValueError, match=words):
        _core.ascend(features, stated)


def test_a_hard_margin_is_refused():
    with pytest.raises(ParameterError, match="finite C"):
        ascents(np.eye(2), [problem(np.array([1.0, -1.0]), np.inf)])
