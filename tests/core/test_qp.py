"""The working-set solver against a slow one written from the formula,
and against the optimality conditions.
"""

import os
import signal
import subprocess
import sys
import textwrap
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from mercer.errors import ParameterError, ShapeError
from mercer.gram import Tiles, gram
from mercer.kernels.base import as_kernel
from mercer.solve.box import BoxProblem
from mercer.solve.qp import tiled, working_set, working_sets
from mercer.solve.solution import NoteKind

pytestmark = pytest.mark.usefixtures("threads_for_all")


def problem(rng, n, N, rank=None):
    """A random program: K of some rank, several variables per row allowed, some C = 0."""
    A = rng.normal(size=(n, rank or n))
    K = A @ A.T / A.shape[1]
    rows = rng.integers(0, n, N)
    signs = rng.choice([-1, 1], N).astype(np.int8)
    C = rng.choice([0.0, 0.5, 1.0, 3.0], N)
    return {"K": K, "rows": rows, "signs": signs, "p": rng.normal(size=N), "C": C}


def full(q):
    s = np.asarray(q["signs"], float)
    return s[:, None] * s * q["K"][np.ix_(q["rows"], q["rows"])]


def violation(q, alpha, equality, slack=0.0):
    """m(α) - M(α) from K, by definition; equality 0: the largest projected gradient."""
    s, C = np.asarray(q["signs"], float), np.asarray(q["C"])
    v = -s * (full(q) @ alpha + q["p"])
    rise = np.where(s > 0, alpha < C - slack, alpha > slack)
    fall = np.where(s > 0, alpha > slack, alpha < C - slack)
    if equality == 0:
        return max(v[rise].max(initial=0.0), -v[fall].min(initial=0.0))
    groups = [np.ones(len(s), bool)] if equality == 1 else [s > 0, s < 0]
    worst = [v[g & rise].max(initial=-np.inf) - v[g & fall].min(initial=np.inf) for g in groups]
    return max(0.0, *worst)


def value(q, alpha):
    return 0.5 * alpha @ full(q) @ alpha + q["p"] @ alpha


def slow(q, alpha, equality):
    """The minimum by a general solver."""
    s = np.asarray(q["signs"], float)
    lines = {0: [], 1: [s], 2: [s > 0, s < 0]}[equality]
    A = np.array(lines, float).reshape(len(lines), len(s))
    constraints = [LinearConstraint(A, A @ alpha, A @ alpha)] if len(lines) else []
    found = minimize(
        lambda a: value(q, a),
        alpha,
        jac=lambda a: full(q) @ a + q["p"],
        bounds=[(0, c) for c in q["C"]],
        constraints=constraints,
        method="SLSQP" if constraints else "L-BFGS-B",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return value(q, np.clip(found.x, 0, q["C"]))


def solve(q, **options):
    return working_set(
        q["K"],
        rows=q["rows"],
        signs=q["signs"],
        p=q["p"],
        C=q["C"],
        n_jobs=options.pop("n_jobs", 1),
        **options,
    )


def feasible(q, found, start, equality):
    s = np.asarray(q["signs"], float)
    assert np.all(found.value.alpha >= 0) and np.all(found.value.alpha <= q["C"])
    scale = 1e-12 * (1 + np.abs(found.value.alpha).sum())
    if equality == 1:
        assert s @ found.value.alpha == pytest.approx(s @ start, abs=scale)
    if equality == 2:
        for sign in (-1, 1):
            assert found.value.alpha[s == sign].sum() == pytest.approx(start[s == sign].sum(), abs=scale)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    N=st.integers(1, 24),
    equality=st.integers(0, 2),
    low_rank=st.booleans(),
)
def test_the_minimum_is_found_and_certified(seed, n, N, equality, low_rank):
    rng = np.random.default_rng(seed)
    q = problem(rng, n, N, rank=2 if low_rank else None)
    start = rng.uniform(0, 1, N) * q["C"]
    found = solve(q, alpha=start, equality=equality, tol=1e-8)
    assert found.certificate.status in ("converged", "stagnated")
    feasible(q, found, start, equality)
    assert violation(q, found.value.alpha, equality) <= 1e-8 + 1e-12
    assert found.certificate.kkt == pytest.approx(violation(q, found.value.alpha, equality), abs=1e-11)
    assert found.value.objective == pytest.approx(value(q, found.value.alpha), abs=1e-11)
    beta = np.zeros(n)
    np.add.at(beta, q["rows"], q["signs"] * found.value.alpha)
    np.testing.assert_allclose(found.value.f, (q["K"] @ beta)[q["rows"]], atol=1e-11)
    assert found.value.objective <= slow(q, start, equality) + 1e-6


@pytest.mark.parametrize("equality", [0, 1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_slopes_of_whole_numbers_are_like_any_others(seed, equality):
    """What may not move is told by bits beside its slope; here the slopes are few bits, of either sign."""
    rng = np.random.default_rng(seed)
    N = 60
    A = rng.choice([-1.0, 0.0, 1.0], size=(N, 8))
    signs = rng.choice([-1, 1], N).astype(np.int8)
    p = rng.choice([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0], N)
    C = rng.choice([0.0, 1.0, 2.0], N)
    q = {"K": A @ A.T + 8 * np.eye(N), "rows": np.arange(N), "signs": signs, "p": p, "C": C}
    start = C if seed % 3 == 2 else np.where(rng.uniform(size=N) < 0.5, 0.0, C)
    found = solve(q, alpha=start, equality=equality, tol=1e-9)
    assert found.certificate.status == "converged"
    feasible(q, found, start, equality)
    assert violation(q, found.value.alpha, equality) <= 1e-9 + 1e-12
    assert found.value.objective <= slow(q, start, equality) + 1e-6


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    equality=st.integers(0, 2),
    low_rank=st.booleans(),
    cache=st.sampled_from([10**5, 2**28]),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_many_variables_take_working_sets_and_end_at_the_same_conditions(
    seed, equality, low_rank, cache, share
):
    """Beyond 1536 variables: working sets, shrinking, a small cache;
    the conditions are checked from K itself.
    """
    rng = np.random.default_rng(seed)
    n, N = int(rng.integers(700, 1200)), int(rng.integers(1540, 2100))
    q = problem(rng, n, N, rank=5 if low_rank else None)
    start = share * rng.uniform(0, 1, N) * q["C"]
    found = solve(q, alpha=start, equality=equality, tol=1e-4, cache_bytes=cache)
    assert found.certificate.status in ("converged", "stagnated")
    feasible(q, found, start, equality)
    assert violation(q, found.value.alpha, equality) <= 1e-4 + 1e-9
    assert found.certificate.kkt == pytest.approx(violation(q, found.value.alpha, equality), abs=1e-9)
    assert found.value.objective == pytest.approx(value(q, found.value.alpha), rel=1e-10, abs=1e-8)
    better = solve(q, alpha=start, equality=equality, tol=1e-7)
    assert (
        better.value.objective
        <= found.value.objective + 1e-9
        <= better.value.objective + 1e-4 * (1 + q["C"].sum())
    )


def blobs(n, d=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n).astype(np.int8)
    X = rng.normal(size=(n, d)) * noise
    X[:, 0] += 0.7 * y
    return X, y


def svc(K, y, C=1.0, **options):
    n = len(y)
    return working_set(K, rows=np.arange(n), signs=y, p=-1.0, C=C, n_jobs=options.pop("n_jobs", 1), **options)


def tiles(kernel, X):
    return Tiles(as_kernel(kernel), X)


@pytest.mark.parametrize("kernel", ["RBF(1.5)", "RBF(1.0)*Linear() + 0.3*White(1.0)", "Polynomial(degree=2)"])
@pytest.mark.parametrize("equality", [0, 1])
def test_rows_from_the_engine_give_the_answer_of_the_array(kernel, equality):
    X, y = blobs(2500)
    K = gram(kernel, X).dense()
    a = svc(K, y, tol=1e-5, equality=equality)
    op = tiles(kernel, X)
    assert tiled(op, 2**28)
    b = svc(op, y, tol=1e-5, equality=equality)
    assert a.certificate.status == b.certificate.status == "converged"
    assert a.value.objective == pytest.approx(b.value.objective, rel=1e-7)
    np.testing.assert_allclose(
        b.value.f, K @ (y * b.value.alpha), atol=1e-9 * np.abs(K).max() * b.value.alpha.sum()
    )
    assert b.certificate.kkt <= 1e-5


@pytest.mark.parametrize("cache", [0, 10**5, 2**28])
def test_the_cache_budget_changes_the_time_only(cache):
    X, y = blobs(2200)
    found = svc(tiles("RBF(1.0)", X), y, cache_bytes=cache, tol=1e-4)
    want = svc(gram("RBF(1.0)", X).dense(), y, tol=1e-6)
    assert found.certificate.status == "converged"
    assert found.value.objective == pytest.approx(want.value.objective, rel=1e-6)


def test_sparse_rows_are_the_same_problem():
    from scipy import sparse

    X, y = blobs(2200, d=40)
    X[np.random.default_rng(1).random(X.shape) < 0.8] = 0
    a = svc(tiles("RBF(3.0)", X), y, tol=1e-5)
    b = svc(tiles("RBF(3.0)", sparse.csr_array(X)), y, tol=1e-5)
    assert a.value.objective == pytest.approx(b.value.objective, rel=1e-7)


def test_sparse_rows_that_matter_may_be_full_where_most_are_not():
    """Rows that stay in focus are worth writing out, all of them together are not: both are the same K."""
    from scipy import sparse

    X, y = blobs(12_000, d=40)
    easy = np.arange(len(X)) >= 1800
    X[easy] = 0.0
    X[easy, 1] = np.random.default_rng(0).uniform(3, 9, int(easy.sum())) * y[easy]
    X[~easy, 1] *= 0.3
    assert 5 * np.count_nonzero(X) < X.size
    a = svc(tiles("RBF(3.0)", X), y, C=100.0, tol=1e-5)
    b = svc(tiles("RBF(3.0)", sparse.csr_array(X)), y, C=100.0, tol=1e-5)
    assert b.value.kernel_rows < len(X) / 2
    assert a.value.objective == pytest.approx(b.value.objective, rel=1e-7)


@pytest.mark.parametrize("kind", ["tiles", "dense"])
def test_the_number_of_threads_does_not_show(kind):
    X, y = blobs(3000, d=5)
    K = tiles("RBF(2.0)", X) if kind == "tiles" else gram("RBF(2.0)", X).dense()
    one, three = (svc(K, y, C=10.0, n_jobs=j) for j in (1, 3))
    assert one.certificate.iterations == three.certificate.iterations
    assert np.array_equal(one.value.alpha, three.value.alpha) and np.array_equal(one.value.f, three.value.f)


def test_libsvm_agrees():
    from sklearn.svm import SVC

    X, y = blobs(1500)
    K = gram("RBF(1.0)", X).dense()
    for C in (0.1, 100.0):
        a = np.zeros(len(y))
        model = SVC(kernel="precomputed", C=C, tol=1e-6).fit(K, y)
        a[model.support_] = np.abs(model.dual_coef_[0])
        found = svc(K, y, C=C, tol=1e-6)
        theirs = 0.5 * (a * y) @ K @ (a * y) - a.sum()
        assert found.value.objective <= theirs + 1e-10 * abs(theirs)
        assert found.value.objective == pytest.approx(theirs, rel=1e-8)


def test_regression_has_two_variables_per_row():
    from sklearn.svm import SVR

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    t = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    n, eps = len(X), 0.05
    rows, signs = np.tile(np.arange(n), 2), np.repeat([1, -1], n)
    p = np.concatenate([eps - t, eps + t])
    for K in (gram("RBF(1.0)", X).dense(), tiles("RBF(1.0)", X)):
        found = working_set(K, rows=rows, signs=signs, p=p, C=2.0, tol=1e-6, cache_bytes=2**22)
        assert found.certificate.status == "converged"
        model = SVR(gamma=0.5, C=2.0, epsilon=eps, tol=1e-7).fit(X, t)
        b = -0.5 * (
            np.max(-(found.value.f[:n] + eps - t)[found.value.alpha[:n] < 2.0])
            + np.min(-(found.value.f[:n] + eps - t)[found.value.alpha[:n] > 0])
        )
        np.testing.assert_allclose(found.value.f[:n] - b, model.predict(X), atol=1e-4)


@pytest.mark.parametrize("cache", [2**21, 2**28])
def test_wide_observations_with_large_and_small_caches(cache):
    X, y = blobs(2600, d=120)
    K = gram("RBF(12.0)", X).dense()
    for C in (0.5, 50.0):
        stored = svc(K, y, C=C, tol=1e-5)
        found = svc(tiles("RBF(12.0)", X), y, C=C, tol=1e-5, cache_bytes=cache)
        assert found.certificate.status == "converged"
        assert found.value.objective == pytest.approx(stored.value.objective, rel=1e-7)
        np.testing.assert_allclose(
            found.value.f, K @ (y * found.value.alpha), atol=1e-10 * found.value.alpha.sum()
        )


def test_a_warm_start_needs_few_steps():
    X, y = blobs(2500)
    op = tiles("RBF(1.0)", X)
    cold = svc(op, y, C=10.0)
    warm = svc(op, y, C=10.0, alpha=cold.value.alpha)
    assert warm.certificate.status == "converged" and warm.certificate.iterations == 0
    np.testing.assert_array_equal(warm.value.alpha, cold.value.alpha)


def test_duplicates_of_both_classes_are_fine():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 4, axis=0)
    y = np.tile([1, -1, 1, 1], 20)
    found = svc(gram("RBF(1.0)", X).dense(), y, tol=1e-6)
    assert found.certificate.status == "converged"


def test_hard_margin():
    X, y = blobs(60, noise=0.1)
    found = svc(gram("Linear()", X).dense(), y, C=np.inf, tol=1e-6)
    assert found.certificate.status == "converged" and np.isfinite(found.value.alpha).all()
    assert np.min(
        y * (found.value.f - 0.5 * (found.value.f[y > 0].min() + found.value.f[y < 0].max()))
    ) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("n", [80, 2300])
def test_hard_margin_on_inseparable_data_is_unbounded(n):
    X, y = blobs(n, d=2, noise=2.0)
    K = gram("Linear()", X).dense()
    assert svc(K, y, C=np.inf, max_seconds=60).certificate.says(NoteKind.UNBOUNDED)
    X = np.vstack([X, X[:1]])  # one point with both labels
    y = np.append(y, -y[0])
    assert svc(gram("RBF(1.0)", X).dense(), y, C=np.inf, max_seconds=60).certificate.says(NoteKind.UNBOUNDED)


@pytest.mark.parametrize("n", [1, 50, 1500])
@pytest.mark.parametrize("equality", [0, 1, 2])
def test_an_indefinite_matrix_ends(n, equality):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(n, n))
    K = K + K.T
    y = np.where(rng.random(n) < 0.5, 1, -1)
    found = svc(K, y, equality=equality, alpha=np.full(n, 0.5), max_seconds=60)
    assert found.certificate.status == "converged"
    assert (
        violation(
            {"K": K, "rows": np.arange(n), "signs": y, "p": -1.0, "C": np.ones(n)},
            found.value.alpha,
            equality,
        )
        <= 1e-3
    )


@pytest.mark.parametrize("n", [300, 2300])
def test_an_impossible_tolerance_ends_at_the_floor(n):
    X, y = blobs(n)
    found = svc(gram("RBF(1.0)", X).dense(), y, C=10.0, tol=1e-300, max_seconds=100)
    assert found.certificate.status == "stagnated" and found.certificate.says(NoteKind.ROUNDING)
    assert found.certificate.kkt < 1e-10


def test_limits_are_kept_and_named():
    X, y = blobs(2500)
    op = tiles("RBF(0.5)", X)
    few = svc(op, y, C=100.0, max_iter=50)
    assert (
        few.certificate.status == "limit"
        and few.certificate.says(NoteKind.ITERATIONS)
        and few.certificate.iterations == 50
    )
    assert few.certificate.kkt == pytest.approx(
        violation(
            {
                "K": gram("RBF(0.5)", X).dense(),
                "rows": np.arange(2500),
                "signs": y,
                "p": -1.0,
                "C": np.full(2500, 100.0),
            },
            few.value.alpha,
            1,
        ),
        abs=1e-9,
    )
    assert svc(op, y, max_seconds=0.0).certificate.says(NoteKind.SECONDS)
    calls = []
    svc(op, y, C=1e4, tol=1e-6, callback=lambda *seen: calls.append(seen) and None)
    assert svc(op, y, C=1e4, tol=1e-9, callback=lambda *seen: True).certificate.status in (
        "stopped",
        "converged",
    )
    with pytest.raises(ZeroDivisionError):
        svc(
            tiles("RBF(0.5)", np.tile(X, (3, 1))),
            np.tile(y, 3),
            C=1e6,
            tol=1e-9,
            callback=lambda *seen: 1 / 0,
        )


def test_a_relative_gap_is_enough():
    X, y = blobs(2500)
    op = tiles("RBF(0.5)", X)
    loose = svc(op, y, C=100.0, tol=0.0, gap_tol=1e-2)
    assert loose.certificate.status == "converged"
    assert loose.certificate.gap <= 1e-2 * abs(loose.value.objective)
    tight = svc(op, y, C=100.0, tol=1e-6)
    assert loose.value.objective - tight.value.objective <= loose.certificate.gap + 1e-9 * abs(
        tight.value.objective
    )


def test_not_a_number_is_reported():
    K = np.eye(5)
    K[2, 2] = np.nan
    found = svc(K, np.array([1, -1, 1, -1, 1]), alpha=np.full(5, 0.2)).certificate
    assert found.status == "failed" and found.says(NoteKind.NOT_FINITE)


@pytest.mark.parametrize("n", [5, 1200])
def test_values_beyond_float32_are_handled(n):
    X, y = blobs(n)
    K = gram("RBF(1.0)", X).dense()
    big = working_set(K * 1e60, rows=np.arange(n), signs=y, p=-1.0, C=1e-60, tol=1e-6, n_jobs=1)
    small = svc(K, y, tol=1e-6)
    assert big.certificate.status == "converged"
    assert big.value.objective * 1e60 == pytest.approx(small.value.objective, rel=1e-6)


SCRIPT = """
    import numpy as np, time
    from mercer.gram import gram
    from mercer.solve.qp import working_set
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20000, 20)), rng.choice([-1, 1], 20000)
    op = gram("RBF(3.0)", X, memory=1000)
    print("ready", flush=True)
    found = working_set(op, rows=np.arange(len(y)), signs=y, p=-1.0, C=1e5, tol=1e-9, max_seconds=100)
    feasible = bool(np.all(found.value.alpha >= 0))
    print(found.certificate.status, found.certificate.iterations > 0, feasible, flush=True)
"""


MANY = """
    import numpy as np
    from mercer.solve.box import BoxProblem
    from mercer.solve.qp import working_sets
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5000, 300))
    K = A @ A.T
    labels = rng.integers(0, 4, 5000)
    problems = []
    for a in range(4):
        for b in range(a):
            rows = np.flatnonzero((labels == a) | (labels == b))
            ones = np.ones(len(rows))
            problems.append(BoxProblem(rows, np.where(labels[rows] == a, ones, -ones), -ones, 1e6 * ones))
    print("ready", flush=True)
    found = working_sets(K, problems, tol=1e-13, max_seconds=100, n_jobs=2)
    worst = max(abs(q.signs @ r.value.alpha) / max(1, r.value.alpha.sum()) for q, r in zip(problems, found))
    stopped = [r.certificate.status for r in found]
    print(stopped[-1], found[0].certificate.iterations > 0, worst < 1e-9, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
@pytest.mark.parametrize("script", [SCRIPT, MANY], ids=["one", "many"])
def test_an_interrupt_keeps_the_iterate(script):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline().strip() == "ready"
    import time

    time.sleep(2.0)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.split() == ["interrupted", "True", "True"]


def pairs_of(labels, C=1.0, rng=None):
    """One problem for each pair of labels, rows in any order."""
    out = []
    for a, b in combinations(np.unique(labels), 2):
        rows = np.flatnonzero((labels == a) | (labels == b))
        if rng is not None:
            rows = rng.permutation(rows)
        signs = np.where(labels[rows] == a, 1.0, -1.0)
        out.append(BoxProblem(rows, signs, np.full(len(rows), -1.0), np.full(len(rows), C)))
    return out


@pytest.mark.parametrize("kind", ["dense", "float32", "tiles"])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_many_problems_at_once_are_each_as_if_alone(kind, order, monkeypatch):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(400, 3)), np.sort(rng.integers(0, 4, 400))
    monkeypatch.setattr("mercer.solve.qp.SMALL", 0)  # tiles even for few rows
    full = gram("RBF(1.0)", X).dense()
    K = {"dense": full, "float32": full.astype(np.float32), "tiles": tiles("RBF(1.0)", X)}[kind]
    problems = pairs_of(labels, rng=rng if order == "shuffled" else None)
    together = working_sets(K, problems, tol=1e-6, n_jobs=1)
    again = working_sets(K, problems, tol=1e-6, n_jobs=3)
    for q, one, other in zip(problems, together, again, strict=True):
        assert one.certificate.status == "converged"
        assert np.array_equal(one.value.alpha, other.value.alpha) and np.array_equal(
            one.value.f, other.value.f
        )
        alone = working_set(
            K[np.ix_(q.rows, q.rows)] if kind != "tiles" else tiles("RBF(1.0)", X[q.rows]),
            rows=np.arange(len(q.rows)),
            signs=q.signs,
            p=q.p,
            C=q.C,
            tol=1e-6,
            n_jobs=1,
        )
        assert one.value.objective == pytest.approx(alone.value.objective, rel=1e-6)
        beta = np.zeros(len(X))
        beta[q.rows] = q.signs * one.value.alpha
        limit = 1e-5 if kind == "float32" else 1e-11
        np.testing.assert_allclose(one.value.f, (full @ beta)[q.rows], atol=limit)


def test_a_small_cache_shared_by_threads_changes_nothing():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(2700, 3)), rng.integers(0, 2, 2700)
    problems = pairs_of(labels, C=10.0) + pairs_of(1 - labels, C=1.0) + pairs_of(labels, C=0.1)
    K = gram("RBF(0.7)", X).dense()
    one = working_sets(K, problems, n_jobs=1, cache_bytes=2**21)
    for other in (working_sets(K, problems, n_jobs=k, cache_bytes=2**21) for k in (2, 3)):
        for a, b in zip(one, other, strict=True):
            assert a.certificate.iterations == b.certificate.iterations and np.array_equal(
                a.value.alpha, b.value.alpha
            )


def test_rows_that_no_problem_names_are_not_looked_at():
    rng = np.random.default_rng(0)
    X, y = blobs(300)
    K = gram("RBF(1.0)", X).dense()
    rows = np.sort(rng.choice(300, 200, replace=False))
    others = np.setdiff1d(np.arange(300), rows)
    spoiled = K.copy()
    spoiled[others] = spoiled[:, others] = np.nan
    q = BoxProblem(rows, y[rows].astype(float), np.full(200, -1.0), np.ones(200))
    a, b = working_sets(K, [q])[0], working_sets(spoiled, [q])[0]
    assert (
        b.certificate.status == "converged"
        and np.array_equal(a.value.alpha, b.value.alpha)
        and np.array_equal(a.value.f, b.value.f)
    )


def test_limits_and_stops_count_for_all_problems_together():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(3000, 2)), rng.integers(0, 3, 3000)
    K = gram("RBF(0.3)", X).dense()
    problems = pairs_of(labels, C=1e6)
    late = working_sets(K, problems, tol=1e-10, max_seconds=0.2, n_jobs=2)
    assert {q.certificate.status for q in late} == {"limit"}
    assert all(q.certificate.says(NoteKind.SECONDS) for q in late)
    assert sum(q.certificate.seconds for q in late) < 20
    stopped = working_sets(K, problems, tol=1e-10, callback=lambda *seen: True)
    assert [q.certificate.status for q in stopped] == ["stopped", "stopped", "stopped"]
    for q, found in zip(problems[1:], stopped[1:], strict=True):
        assert not found.value.alpha.any() and not found.value.f.any() and len(found.value.f) == len(q.rows)


def test_ctrl_c_inside_a_callback_is_an_interrupt_of_all_problems():
    def pressed(*seen):
        raise KeyboardInterrupt

    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(1500, 2)), rng.integers(0, 3, 1500)
    K = gram("RBF(0.3)", X).dense()
    found = working_sets(K, pairs_of(labels, C=1e6), tol=1e-10, callback=pressed)
    assert [q.certificate.status for q in found] == ["interrupted", "interrupted", "interrupted"]


def test_bad_arguments_are_refused():
    K, y = np.eye(3), np.array([1, -1, 1])
    good = {"rows": np.arange(3), "signs": y, "p": -1.0, "C": 1.0}
    assert working_set(K, **good).certificate.converged
    for wrong in (
        {"rows": [0, 1, 3]},
        {"rows": [0, 1, -1]},
        {"signs": [1, 0, 1]},
        {"signs": [1, -1]},
        {"p": np.nan},
        {"p": [1.0, 2.0]},
        {"C": -1.0},
        {"C": np.nan},
        {"alpha": [0.0, 0.0, 2.0]},
        {"alpha": [0.0, np.nan, 0.0]},
        {"equality": 3},
        {"tol": -1.0},
        {"tol": np.nan},
        {"gap_tol": -1.0},
        {"max_seconds": -1.0},
        {"cache_bytes": -1},
        {"n_jobs": 0},
        {"rows": []},
    ):
        with pytest.raises((ParameterError, ShapeError)):
            working_set(K, **{**good, **wrong})
    with pytest.raises(ShapeError):
        working_set(np.ones((3, 4)), **good)


# ── what a run that was cut short says of itself ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("equality", [0, 1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_gap_is_never_below_what_is_left_to_gain(seed, equality):
    rng = np.random.default_rng(seed)
    n = 30
    X = rng.normal(size=(n, 2))
    K = gram("RBF(0.7)", X).dense()
    signs, C = rng.choice([-1.0, 1.0], n), rng.choice([0.5, 2.0, 50.0], n)
    start = np.zeros(n)
    if equality == 2:
        start = 0.3 * C
    q = BoxProblem(np.arange(n), signs, -rng.uniform(0.5, 1.5, n), C, equality, start)
    (best,) = working_sets(K, [q], tol=1e-12)
    for steps in (0, 1, 2, 5, 20, 100):
        (found,) = working_sets(K, [q], tol=1e-12, max_iter=steps)
        left = found.value.objective - best.value.objective
        assert found.certificate.gap >= left - 1e-9 * (1.0 + abs(best.value.objective))
        assert found.certificate.iterations <= max(steps, 0)
        assert found.value.objective == pytest.approx(
            q.objective(found.value.alpha, K @ q.beta(found.value.alpha, n))
        )


@pytest.mark.parametrize("kernel, C", [("Polynomial(3)", 1.0), ("Polynomial(3)", 10.0), ("RBF(1.0)", 1e3)])
def test_a_limit_of_iterations_counts_those_in_both_precisions(kernel, C):
    # far from the origin rows in float32 are too coarse, and float64 goes on from where they ended
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 30.0
    y = np.sign(X[:, 0] - 30.0 + 0.3 * rng.normal(size=200))
    q = BoxProblem(np.arange(200), y, np.full(200, -1.0), np.full(200, C))
    for limit in (100, 10_000, 100_000, 150_000, 200_000, 400_000):
        (found,) = working_sets(tiles(kernel, X), [q], tol=1e-6, max_iter=limit, cache_bytes=2**16)
        assert found.certificate.iterations <= limit
        assert not found.certificate.says(NoteKind.ITERATIONS) or found.certificate.iterations == limit
