"""Threads: the same bits for any number, limits respected, safe beside other threads,
processes and signals.
"""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from mercer import RBF, Periodic, White
from mercer.errors import ParameterError
from mercer.gram import Dense, Tiles
from mercer.threads import FEW, available, side_by_side, threads, threads_for

pytestmark = pytest.mark.usefixtures("threads_for_all")

KERNEL = 2.0 * RBF([1.0, 0.5, 2.0]) * Periodic(3.0) + White(0.1)
X = np.random.default_rng(0).normal(size=(900, 3))
V = np.random.default_rng(1).normal(size=(900, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_have_the_same_bits_for_any_number_of_threads(dtype):
    answers = []
    for n_jobs in (1, 2, 3, 7):
        K = Tiles(KERNEL, X.astype(dtype), n_jobs=n_jobs)
        answers.append((K.dense(), K @ V, K.contract(V), K.contract(W=np.outer(V[:, 0], V[:, 1]))))
    for other in answers[1:]:
        for first, second in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


def test_threadpoolctl_reaches_the_core():
    Dense(RBF(1.0), X[:5])
    with threadpool_limits(1):
        assert available() == 1
        assert threads(None) == 1
    apis = {entry["user_api"] for entry in threadpool_info()}
    assert "mercer" in apis


def test_the_environment_limits_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "not a number")
    assert threads(None) >= 1


@pytest.mark.parametrize(
    ("cpus", "told", "limit", "left"),
    [(8, "", None, 8), (8, "3", None, 3), (8, "3", 2, 2), (8, "3,2", 5, 3), (2, "7", 5, 2), (8, "1", 4, 1)],
)
def test_the_smallest_limit_counts(monkeypatch, cpus, told, limit, left):
    monkeypatch.setattr("mercer.threads._cpus", lambda: cpus)
    monkeypatch.setattr("mercer.threads._limit", [limit])
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert available() == left


def test_n_jobs_means_what_it_means_in_scikit_learn():
    assert threads(3) == 3
    assert threads(-1) == available()
    for bad in (0, 1.5, "2", True):
        with pytest.raises(ParameterError, match="n_jobs"):
            threads(bad)


def test_few_numbers_get_one_thread_unless_more_are_asked_for(monkeypatch):
    monkeypatch.setattr("mercer.threads.available", lambda: 5)
    assert [threads_for(None, FEW), threads_for(None, FEW + 1)] == [1, 5]
    assert [threads_for(3, 1), threads_for(-1, 1)] == [3, 5]
    with pytest.raises(ParameterError, match="n_jobs"):
        threads_for(0, 1)


def product():
    return Tiles(KERNEL, X, n_jobs=2) @ V


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_it_works_inside_joblib(backend):
    if backend == "threading":
        answers = Parallel(n_jobs=2, backend=backend)(delayed(product)() for _ in range(4))
    else:
        answers = Parallel(n_jobs=2, backend=backend)(delayed(_of_arrays)(X, V) for _ in range(3))
    for answer in answers:
        np.testing.assert_array_equal(answer, product())


def _of_arrays(X, V):
    return Tiles(2.0 * RBF([1.0, 0.5, 2.0]) * Periodic(3.0) + White(0.1), X, n_jobs=2) @ V


def _child(queue):
    queue.put(product())


@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_can_go_on():
    expected = product()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    child.join(timeout=60)
    assert child.exitcode == 0


def test_python_goes_on_while_the_core_computes():
    """The GIL is released: a counting thread makes progress during one long product."""
    big = np.random.default_rng(0).normal(size=(6000, 20))
    K = Tiles(RBF(4.0), big, n_jobs=1)
    count, stop = [0], threading.Event()

    def tick():
        while not stop.wait(0.002):
            count[0] += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    before = count[0]
    K @ np.ones((6000, 4))
    during = count[0] - before
    stop.set()
    ticker.join()
    assert during >= 2


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_side_by_side_keeps_the_order_and_the_settings_of_the_caller(count, n_jobs):
    def work(part):
        assert np.geterr()["under"] == "raise"
        return part**2

    with np.errstate(under="raise"):
        assert side_by_side(work, range(count), n_jobs) == [part**2 for part in range(count)]


def test_side_by_side_says_what_a_part_fails_by_and_begins_no_other():
    seen = []

    def work(part):
        seen.append(part)
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part 0"):
        side_by_side(work, range(1000), 2)
    assert len(seen) < 1000


def test_blas_has_its_threads_again_after_work_side_by_side():
    before = [library.num_threads for library in ThreadpoolController().lib_controllers]
    side_by_side(lambda part: part, range(3), 2)
    assert [library.num_threads for library in ThreadpoolController().lib_controllers] == before
