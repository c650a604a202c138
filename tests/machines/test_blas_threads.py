"""While a machine is fitted one copy of BLAS has threads; afterwards all limits are what they were before."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import OpenBLASController, ThreadpoolController

from estimators_under_test import SUBJECTS, TWINS, X
from mercer import KernelRidge
from mercer import threads as policy

CONTROLLER = ThreadpoolController()


def limits() -> dict[str, int]:
    """By threadpoolctl, which is not how the policy asks."""
    return {entry["filepath"]: entry["num_threads"] for entry in CONTROLLER.select(user_api="blas").info()}


def limit_of(package: str) -> int:
    found = [count for path, count in limits().items() if f"{package}.libs" in path]
    if len(found) != 1:
        pytest.skip(f"no OpenBLAS of {package}'s own here")
    return found[0]


@pytest.fixture(autouse=True)
def two_copies_with_two_threads():
    """Whatever the environment says: OMP_NUM_THREADS=1 would make every law here hold for no reason."""
    with CONTROLLER.limit(limits=2, user_api="blas"):
        if limit_of("numpy") != 2 or limit_of("scipy") != 2 or not policy._copies().beside_scipy:
            pytest.skip("NumPy and SciPy have no threads of their own here")
        yield
        assert set(limits().values()) == {2}


@pytest.fixture
def told(monkeypatch):
    """The limits that NumPy's copy was given, one after the other."""
    pool = policy._copies().beside_scipy[0]
    given = []
    plain = pool.limit

    def limit(count):
        given.append(count)
        plain(count)

    monkeypatch.setattr(pool, "limit", limit)
    return given


@pytest.mark.parametrize("subject", [*SUBJECTS, *TWINS], ids=lambda s: s.name)
@pytest.mark.filterwarnings("ignore")
def test_after_a_fit_all_limits_are_what_they_were(subject, told):
    before = limits()
    subject.fit()
    assert limits() == before
    assert told[:1] == [1] and told[-1:] == [2], "a fit that was not held to one copy"


@pytest.mark.parametrize("subject", [*SUBJECTS, *TWINS], ids=lambda s: s.name)
@pytest.mark.filterwarnings("ignore")
def test_after_a_fit_that_raises_all_limits_are_what_they_were(subject, told):
    before = limits()
    missing = np.array(X)
    missing[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"(?i)nan"):
        subject.fit(missing)
    assert limits() == before
    assert told[:1] == [1] and told[-1:] == [2], "a fit that was not held to one copy"


@pytest.mark.parametrize(("few", "expected"), [(23, (1, 2)), (24, (1, 1))])
def test_during_a_fit_scipys_copy_alone_has_threads_if_the_rows_are_worth_them(monkeypatch, few, expected):
    seen = []
    plain = KernelRidge.check_rows

    def looking(self, *args, **options):
        seen.append((limit_of("numpy"), limit_of("scipy")))
        return plain(self, *args, **options)

    monkeypatch.setattr(KernelRidge, "check_rows", looking)
    monkeypatch.setattr(policy, "FEW_ROWS", few)
    KernelRidge("RBF(1.0)").fit(X, X[:, 0])
    KernelRidge("RBF(1.0)").fit(X.tolist(), y=X[:, 0])
    KernelRidge("RBF(1.0)").fit(X=X, y=X[:, 0])
    assert seen == [expected] * 3


def test_a_limit_of_the_user_is_never_raised():
    with CONTROLLER.limit(limits=1, user_api="blas"):
        with policy.one_blas():
            assert (limit_of("numpy"), limit_of("scipy")) == (1, 1)
        with policy.no_blas_threads():
            assert (limit_of("numpy"), limit_of("scipy")) == (1, 1)
        assert (limit_of("numpy"), limit_of("scipy")) == (1, 1)


def test_work_with_threads_of_its_own_leaves_none_to_blas():
    with policy.no_blas_threads():
        assert (limit_of("numpy"), limit_of("scipy")) == (1, 1)


def test_holding_may_be_nested_and_the_last_one_out_restores():
    with policy.one_blas():
        with policy.no_blas_threads(), policy.one_blas():
            assert (limit_of("numpy"), limit_of("scipy")) == (1, 1)
        assert (limit_of("numpy"), limit_of("scipy")) == (1, 2)


def test_a_limit_set_by_someone_else_meanwhile_stays():
    with policy.one_blas():
        pool = policy._copies().beside_scipy[0]
        pool.limit(3)
    assert limit_of("numpy") == 3
    pool.limit(2)


def test_two_fits_in_two_threads_that_overlap():
    """The first to come is the first to go: the other one still needs the limit."""
    entered = [threading.Event(), threading.Event()]
    leave = [threading.Event(), threading.Event()]

    def hold(i):
        with policy.one_blas():
            entered[i].set()
            leave[i].wait(60)

    workers = [threading.Thread(target=hold, args=(i,)) for i in range(2)]
    for i in range(2):
        workers[i].start()
        assert entered[i].wait(60)
        assert limit_of("numpy") == 1
    leave[0].set()
    workers[0].join()
    assert limit_of("numpy") == 1
    leave[1].set()
    workers[1].join()
    assert limit_of("numpy") == 2


def test_many_threads_that_hold_and_let_go():
    def often():
        for _ in range(300):
            with policy.one_blas(), policy.no_blas_threads():
                assert policy._copies().beside_scipy[0].count() == 1

    failed = []

    def watched():
        try:
            often()
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=watched) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
    assert set(limits().values()) == {2}


def test_a_thread_of_the_user_can_still_set_limits_after_a_fit():
    """threadpoolctl lets only the first thread that asked set a limit: that must not be us."""
    KernelRidge("RBF(1.0)").fit(X, X[:, 0])
    seen = []

    def other():
        with CONTROLLER.limit(limits=1, user_api="blas"):
            seen.append(policy._copies().every[0].count())

    # The fixture has asked first.
    OpenBLASController.clear_controlling_thread(force=True)
    worker = threading.Thread(target=other)
    worker.start()
    worker.join()
    assert seen == [1]


def test_a_limit_that_ctrl_c_left_behind_is_lifted_by_the_next_fit(monkeypatch):
    """A trace stands for the keyboard: it interrupts at the first line, at the second, and so on.

    It also interrupts where no signal can: between the end of a `with` and the release of its lock. So every
    round has a lock of its own.
    """
    policy._copies()
    source = policy.__file__
    place = 0
    while True:
        place += 1
        left = [place]
        monkeypatch.setattr(policy, "_lock", threading.RLock())

        def press(frame, event, argument, left=left):
            if frame.f_code.co_filename != source:
                return None
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return press

        old = sys.gettrace()
        sys.settrace(press)
        try:
            with policy.one_blas():
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(old)
        gc.collect()
        monkeypatch.setattr(policy, "_lock", threading.RLock())
        with policy.one_blas():
            pass
        assert set(limits().values()) == {2}, f"interrupted at line {place}"
        if left[0] > 0:
            break
    assert place > 10
