"""Many problems on one kernel: side by side, on rows computed or on K stored, with one result."""

import os
import sys
from itertools import combinations

import numpy as np
import pytest

from mercer import SVC
from mercer.gram import Tiles, gram
from mercer.kernels.base import as_kernel
from mercer.solve import qp
from mercer.solve.box import BoxProblem
from mercer.solve.qp import working_sets


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


class Watched(Tiles):
    """Counts how often K is computed as a whole."""

    wholes = 0

    def dense(self):
        self.wholes += 1
        return super().dense()


def watched(text, X):
    return Watched(as_kernel(text), X)


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
    K, problems = watched("RBF(2.0)", X), pairs_of(labels, C=5.0)
    in_turn = working_sets(K, problems, n_jobs=1, cache_bytes=cache, callback=lambda *_: False)
    for jobs in (1, 2, 3, 8):
        assert same_bits(in_turn, working_sets(K, problems, n_jobs=jobs, cache_bytes=cache))
    assert K.wholes == 0


@pytest.mark.parametrize("d", [3, 200])
def test_a_cache_that_forgets_and_one_that_keeps_all_give_the_same_bits(d):
    """Narrow kernels open their memory slowly, wide ones at once; what is kept changes the time alone."""
    X, labels = several(3600, d=d, classes=2)
    K, problems = watched("RBF(2.0)", X), pairs_of(labels, C=20.0)
    # Just the working set, twice that, everything.
    found = [working_sets(K, problems, cache_bytes=b) for b in (1024 * 3600 * 4, 2048 * 3600 * 4, 2**28)]
    assert same_bits(found[0], found[2]) and same_bits(found[1], found[2])
    computed = [each[0].value.kernel_rows for each in found]
    assert computed[0] >= computed[1] >= computed[2]


def test_results_do_not_depend_on_the_order_of_the_problems():
    X, labels = several(classes=4)
    problems = pairs_of(labels)
    K = watched("RBF(1.0)", X)
    there = working_sets(K, problems, n_jobs=2)
    back = working_sets(K, problems[::-1], n_jobs=2)[::-1]
    assert same_bits(there, back)


@pytest.fixture
def dear(monkeypatch):
    """Entries that are dear to compute and cheap to keep."""
    monkeypatch.setattr(qp, "COMPUTED", 1e6)
    monkeypatch.setattr(qp, "KEPT", 0.0)


def test_stored_and_computed_rows_lead_to_the_same_optimum(dear):
    X, labels = several(classes=4)
    problems = pairs_of(labels)
    rows, whole = watched("RBF(0.3)", X), watched("RBF(0.3)", X)
    a = working_sets(rows, problems, tol=1e-6)
    b = working_sets(whole, problems, tol=1e-6, stored_bytes=2**28)
    assert (rows.wholes, whole.wholes) == (0, 1)
    for one, other in zip(a, b, strict=True):
        assert one.certificate.status == other.certificate.status == "converged"
        assert one.value.objective == pytest.approx(other.value.objective, rel=1e-9)
        np.testing.assert_allclose(one.value.f, other.value.f, atol=1e-4)
    for jobs in (1, 3):
        assert same_bits(b, working_sets(whole, problems, tol=1e-6, stored_bytes=2**28, n_jobs=jobs))


def test_k_is_never_stored_beyond_the_bytes_allowed(dear):
    X, labels = several(2500, classes=4)
    K, problems = watched("RBF(0.3)", X), pairs_of(labels)
    working_sets(K, problems, stored_bytes=2500**2 * 8 - 1)
    assert K.wholes == 0
    working_sets(K, problems, stored_bytes=2500**2 * 8)
    assert K.wholes == 1


def test_k_is_not_stored_for_one_problem_or_without_the_time_for_it(dear):
    X, labels = several(2500, classes=4)
    K, problems = watched("RBF(0.3)", X), pairs_of(labels)
    working_sets(K, problems[:1], stored_bytes=2**30)
    # By this price K would take an hour.
    working_sets(K, problems, stored_bytes=2**30, max_seconds=60.0)
    assert K.wholes == 0


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
def test_a_callback_that_stops_the_first_problem_stops_all(dear, after):
    X, labels = several(classes=3)
    K = watched("RBF(0.3)", X)
    calls = []

    def enough(*_):
        calls.append(1)
        return len(calls) >= after

    found = working_sets(
        K, pairs_of(labels, C=1e4), tol=1e-9, stored_bytes=2**30, callback=enough, max_seconds=20.0
    )
    assert {each.certificate.status for each in found} <= {"stopped", "converged", "limit", "stagnated"}
    if after == 1:
        assert found[0].certificate.status == "stopped" and K.wholes == 0
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
        working_sets(watched("RBF(1.0)", X), problems, n_jobs=3)
    gram("RBF(1.0)", X, n_jobs=3).dense()
    assert len(os.listdir("/proc/self/task")) == before
