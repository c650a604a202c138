"""Many problems on one kernel: side by side, on rows computed or on K stored, with one result."""

import os
import sys
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from mercer import SVC
from mercer.gram import Tiles, gram
from mercer.kernels.base import as_kernel
from mercer.solve import core, qp
from mercer.solve.box import BoxProblem
from mercer.solve.qp import working_sets

pytestmark = pytest.mark.usefixtures("threads_for_all")


def pairs_of(labels, C=1.0):
    """One problem for each pair of classes, as one against one has them."""
    out = []
    for a, b in combinations(np.unique(labels).tolist(), 2):
        rows = np.flatnonzero((labels == a) | (labels == b))
        signs = np.where(labels[rows] == a, 1.0, -1.0)
        out.append(BoxProblem(rows, signs, np.full(len(rows), -1.0), np.full(len(rows), C)))
    return out


def several(n=4000, d=3, classes=3, seed=0):
    """Classes that overlap; pairs of them are too large for one working set."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(classes, size=n))
    return rng.normal(size=(n, d)) + 0.8 * rng.normal(size=(classes, d))[labels], labels


def tiles(text, X, dtype=None):
    return Tiles(as_kernel(text), X, dtype=dtype)


@pytest.fixture
def wholes(monkeypatch):
    """Of every call of the core, whether K was computed as a whole."""
    asked = []
    solve = core.solve_qps_tiles

    def watched(*args, whole=False, **options):
        asked.append(whole)
        return solve(*args, whole=whole, **options)

    monkeypatch.setattr(core, "solve_qps_tiles", watched)
    return asked


def same_bits(one, other):
    return all(
        np.array_equal(a.value.alpha, b.value.alpha)
        and np.array_equal(a.value.f, b.value.f)
        and a.certificate.iterations == b.certificate.iterations
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("d", [3, 200])
@pytest.mark.parametrize("cache", [2**22, 2**28])
def test_problems_side_by_side_have_the_bits_of_problems_in_turn(d, cache):
    X, labels = several(d=d)
    K, problems = tiles("RBF(2.0)", X), pairs_of(labels, C=5.0)
    in_turn = working_sets(K, problems, n_jobs=1, cache_bytes=cache, callback=lambda *_: False)
    for jobs in (1, 2, 3, 8):
        assert same_bits(in_turn, working_sets(K, problems, n_jobs=jobs, cache_bytes=cache))


@pytest.mark.parametrize("d", [3, 200])
def test_a_cache_that_forgets_and_one_that_keeps_all_give_the_same_bits(d):
    """Narrow kernels open their memory slowly, wide ones at once; what is kept changes the time alone."""
    X, labels = several(3600, d=d, classes=2)
    K, problems = tiles("RBF(2.0)", X), pairs_of(labels, C=20.0)
    # Just the working set, twice that, everything.
    found = [working_sets(K, problems, cache_bytes=b) for b in (1024 * 3600 * 4, 2048 * 3600 * 4, 2**28)]
    assert same_bits(found[0], found[2]) and same_bits(found[1], found[2])
    computed = [each[0].value.kernel_rows for each in found]
    assert computed[0] >= computed[1] >= computed[2]


def test_results_do_not_depend_on_the_order_of_the_problems():
    X, labels = several(classes=4)
    problems = pairs_of(labels)
    K = tiles("RBF(1.0)", X)
    there = working_sets(K, problems, n_jobs=2)
    back = working_sets(K, problems[::-1], n_jobs=2)[::-1]
    assert same_bits(there, back)


@pytest.fixture
def dear(monkeypatch):
    """Entries that are dear to compute and cheap to keep."""
    monkeypatch.setattr(qp, "COMPUTED", 1e6)
    monkeypatch.setattr(qp, "KEPT", 0.0)


def test_stored_and_computed_rows_lead_to_the_same_optimum(dear, wholes):
    X, labels = several(classes=4)
    problems = pairs_of(labels)
    K = tiles("RBF(0.3)", X)
    a = working_sets(K, problems, tol=1e-6)
    assert not any(wholes)
    b = working_sets(K, problems, tol=1e-6, stored_bytes=2**28)
    assert sum(wholes) == 1
    for one, other in zip(a, b, strict=True):
        assert one.certificate.status == other.certificate.status == "converged"
        assert one.value.objective == pytest.approx(other.value.objective, rel=1e-9)
        np.testing.assert_allclose(one.value.f, other.value.f, atol=1e-4)
    for jobs in (1, 3):
        assert same_bits(b, working_sets(K, problems, tol=1e-6, stored_bytes=2**28, n_jobs=jobs))


@pytest.mark.parametrize("text", ["RBF(1.0) + White(0.5)", "1e3 + RBF(1.0)", "Polynomial(degree=3)"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_what_is_claimed_of_a_stored_k_is_true_of_k_in_float64(dear, wholes, text, form):
    """K is kept in float32; f, the violation and the objective are those of the kernel itself."""
    X, labels = several(2400, classes=4)
    X += 20.0 * ("RBF" in text)
    problems = pairs_of(labels)
    K = tiles(text, X if form == "dense" else csr_array(X))
    found = working_sets(K, problems, tol=1e-5, stored_bytes=2**28, max_iter=200_000)
    assert sum(wholes) == 1
    exact = gram(text, X).dense()
    for q, each in zip(problems, found, strict=True):
        alpha, f = each.value.alpha, each.value.f
        beta = q.beta(alpha, len(X))
        true = (exact @ beta)[q.rows]
        size = np.abs(exact).max() * np.abs(beta).sum()
        np.testing.assert_allclose(f, true, atol=1e-13 * size)
        assert each.value.objective == pytest.approx(q.objective(alpha, true), abs=1e-13 * size * len(X))
        if each.certificate.converged:
            v = -(true + q.signs * q.p)
            x = q.signs * alpha
            rise = np.where(q.signs > 0, alpha < q.C, alpha > 0)
            fall = np.where(q.signs > 0, alpha > 0, alpha < q.C)
            assert x.sum() == pytest.approx(0.0, abs=1e-9 * alpha.sum())
            assert v[rise].max() - v[fall].min() <= 1e-5 + 1e-13 * size


def test_a_tolerance_that_float32_cannot_tell_is_met_with_a_stored_k(dear, wholes):
    X, labels = several(2400, classes=4)
    found = working_sets(tiles("RBF(1.0)", X), pairs_of(labels, C=100.0), tol=1e-9, stored_bytes=2**28)
    assert sum(wholes) == 1
    for each in found:
        assert each.certificate.status == "converged" and each.certificate.kkt <= 1e-9


def test_k_is_never_stored_beyond_the_bytes_allowed(dear, wholes):
    X, labels = several(2500, classes=4)
    K, problems = tiles("RBF(0.3)", X), pairs_of(labels)
    working_sets(K, problems, stored_bytes=2500**2 * 4 - 1)
    assert not any(wholes)
    working_sets(K, problems, stored_bytes=2500**2 * 4)
    assert sum(wholes) == 1


def test_k_is_not_stored_for_one_problem_or_without_the_time_for_it(dear, wholes):
    X, labels = several(2500, classes=4)
    K, problems = tiles("RBF(0.3)", X), pairs_of(labels)
    working_sets(K, problems[:1], stored_bytes=2**30)
    # By this price K would take an hour.
    working_sets(K, problems, stored_bytes=2**30, max_seconds=60.0)
    assert not any(wholes)


def test_storing_pays_with_wide_rows_many_problems_and_many_support_vectors():
    def stored(columns=784, classes=10, support=1.0, sets=4):
        m = 2000
        first = {"alpha": np.zeros(m), "outer_iterations": sets, "kernel_rows_computed": int(support * m)}
        first["alpha"][: int(support * m)] = 1.0
        others = [(np.arange(m),)] * (classes * (classes - 1) // 2 - 1)
        return qp._worth_storing(m // 2 * classes, columns, first, others)

    assert stored()
    assert not stored(columns=16) and not stored(support=0.05, sets=1)
    # Two problems of a sample never read enough of it.
    assert not stored(classes=2)


@pytest.mark.parametrize("after", [1, 30])
def test_a_callback_that_stops_the_first_problem_stops_all(dear, wholes, after):
    X, labels = several(classes=3)
    K = tiles("RBF(0.3)", X)
    calls = []

    def enough(*_):
        calls.append(1)
        return len(calls) >= after

    found = working_sets(
        K, pairs_of(labels, C=1e4), tol=1e-9, stored_bytes=2**30, callback=enough, max_seconds=20.0
    )
    assert {each.certificate.status for each in found} <= {"stopped", "converged", "limit", "stagnated"}
    if after == 1:
        assert found[0].certificate.status == "stopped" and not any(wholes)
        assert all(each.certificate.status == "stopped" for each in found)


def test_an_svc_of_many_classes_stores_k_within_its_memory_only():
    X, labels = several(3000, d=4, classes=6)
    small, large = (SVC("RBF(1.0)", memory=m, n_jobs=2).fit(X, labels) for m in ("20MiB", "2GiB"))
    assert small.certificate_.status == large.certificate_.status == "converged"
    np.testing.assert_allclose(small.decision_function(X), large.decision_function(X), atol=1e-2)
    for a, b in zip(small.certificates_, large.certificates_, strict=True):
        assert a.dual == pytest.approx(b.dual, rel=1e-5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the threads as Linux lists them")
def test_the_helpers_of_a_solve_leave_with_it():
    before = len(os.listdir("/proc/self/task"))
    X, labels = several(classes=3)
    for problems in (pairs_of(labels), pairs_of(labels)[:1]):
        working_sets(tiles("RBF(1.0)", X), problems, n_jobs=3)
    gram("RBF(1.0)", X, n_jobs=3).dense()
    assert len(os.listdir("/proc/self/task")) == before
