"""Threads: how many the core may use, and which copy of BLAS may have any.

The core takes the caller's word, else what the process and threadpoolctl allow.

NumPy and SciPy each bring a copy of OpenBLAS with threads of its own. After a call these wait for the next
one by running in circles, some hundredths of a second long, on the cores that the other copy now wants:
`A @ B` and `scipy.linalg` in turn take ten times as long as either alone. So while a machine is fitted,
SciPy's copy alone has threads (`one_blas`), large products go through it
(`mercer.blas.matmul`), and NumPy's does the small ones on one thread. Work that has threads of its own leaves
none to either copy (`no_blas_threads`), and so does a fit on few rows, whose factors take milliseconds: less
than two threads lose by waiting for each other on a busy machine.

A limit of OpenBLAS belongs to the process. Whoever comes first sets it, and the last one out restores what
was there before; what someone else set meanwhile stays. Limits are only lowered, never raised above the
user's.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeVar

from threadpoolctl import LibController, ThreadpoolController, register

from mercer.errors import ParameterError

MOST_THREADS = 4096
# A fit on so many rows is not worth a second thread of BLAS: its Cholesky factor takes some 5 ms.
FEW_ROWS = 1024

# Set by threadpoolctl.threadpool_limits, and only there.
_limit: list[int | None] = [None]

Part = TypeVar("Part")
Answer = TypeVar("Answer")

# Entries of a matrix that are no work for two threads.
FEW = 128 * 128


class _MercerController(LibController):
    """Makes `threadpool_limits` reach the core, as it reaches BLAS and OpenMP."""

    user_api = "mercer"
    internal_api = "mercer"
    filename_prefixes = ("_core",)
    check_symbols = ("PyInit__core",)

    def get_num_threads(self) -> int:
        return available()

    def set_num_threads(self, num_threads: int | None) -> None:
        _limit[0] = num_threads

    def get_version(self) -> None:
        return None

    def set_additional_attributes(self) -> None:
        """Nothing to add."""


register(_MercerController)


def _cpus() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available() -> int:
    """Threads the core may use when nobody asked: CPUs of this process, OMP_NUM_THREADS, threadpoolctl."""
    limits = []
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if told.isdigit() and int(told) > 0:
        limits.append(int(told))
    if _limit[0] is not None:
        limits.append(max(1, _limit[0]))
    if 1 in limits:
        # The system need not be asked, which takes longer than a small product.
        return 1
    return min([_cpus(), *limits])


def threads(n_jobs: int | None) -> int:
    """The number of threads for scikit-learn's `n_jobs`: None for what is available, -1 for all of it."""
    if n_jobs is None:
        return available()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    if n_jobs > MOST_THREADS:
        raise ParameterError(
            f"n_jobs must be at most {MOST_THREADS}; got {n_jobs}. More threads than cores help nobody: "
            f"{available()} can work here, which is what n_jobs=None takes."
        )
    return n_jobs if n_jobs > 0 else max(1, available() + 1 + n_jobs)


def threads_for(n_jobs: int | None, entries: int) -> int:
    """The number of threads for so many numbers: of few, one does them before the system has been asked."""
    if n_jobs is None and entries <= FEW:
        return 1
    return threads(n_jobs)


# ── copies of BLAS ──────────────────────────────────────────────────────────────────────────────────────────

# Reentrant: memory that is asked for inside may end a `with` that was forgotten elsewhere in this thread.
_lock = threading.RLock()


class _Pool:
    """The threads of one copy of OpenBLAS: one thread as long as anybody holds it, else what it was before.

    Ctrl-C may come between any two lines. Each of them leaves a state from which the next `settle` goes on:
    a holder that Ctrl-C met at the beginning of its `with`, or at the beginning of its end, drops out when it
    is forgotten, and whoever comes next restores the threads. (A `__del__` would do so at once, but a Ctrl-C
    that comes while it runs is lost.)
    """

    def __init__(self, count: Callable[[], int], limit: Callable[[int], None]) -> None:
        self.count = count
        self.limit = limit
        self.holders: set[weakref.ref[_Holding]] = set()
        self.before: int | None = None

    def hold(self, who: _Holding) -> None:
        with _lock:
            # what is forgotten is discarded by the set itself, without a line of Python
            self.holders.add(weakref.ref(who, self.holders.discard))
            self.settle()

    def let_go(self, who: _Holding) -> None:
        with _lock:
            self.holders.difference_update([held for held in self.holders.copy() if held() is who])
            self.settle()

    def settle(self) -> None:
        if self.holders and self.before is None:
            now = self.count()
            if now > 1:
                self.before = now
                self.limit(1)
        elif not self.holders and self.before is not None:
            # Another limit than ours was set by someone else, and is his.
            if self.count() == 1:
                self.limit(self.before)
            self.before = None


class _Copies(NamedTuple):
    """The pools that `one_blas` holds, and those that `no_blas_threads` holds."""

    beside_scipy: tuple[_Pool, ...]
    every: tuple[_Pool, ...]


@cache
def _copies() -> _Copies:
    """The copies of OpenBLAS in this process; looked for once, in some milliseconds.

    Other libraries, and builds where NumPy and SciPy share one copy, have nothing to be settled between them.
    """
    if _cpus() == 1:
        return _Copies((), ())
    # Its copy must be there to be found.
    import scipy.linalg  # noqa: F401

    every = []
    numpys = []
    scipys = []
    for library in ThreadpoolController().select(internal_api="openblas").lib_controllers:
        pool = _pool(library)
        if pool is None:
            continue
        every.append(pool)
        if _belongs(library, "numpy"):
            numpys.append(pool)
        elif _belongs(library, "scipy"):
            scipys.append(pool)
    return _Copies(tuple(numpys) if scipys else (), tuple(every))


def _belongs(library: LibController, package: str) -> bool:
    """Whether a wheel brought the library: it lies in numpy.libs, or in numpy/.dylibs."""
    folders = Path(library.filepath).parts[:-1]
    return f"{package}.libs" in folders or (package in folders and ".dylibs" in folders)


def _pool(library: LibController) -> _Pool | None:
    """By the library's own functions: threadpoolctl's let only one Python thread of a process set limits."""
    if getattr(library, "threading_layer", None) != "pthreads":
        return None
    for before, after in product(("", "scipy_"), ("", "64_", "_64")):
        count = getattr(library.dynlib, f"{before}openblas_get_num_threads{after}", None)
        limit = getattr(library.dynlib, f"{before}openblas_set_num_threads{after}", None)
        if count is not None and limit is not None:
            count.restype = ctypes.c_int
            limit.argtypes = [ctypes.c_int]
            limit.restype = None
            return _Pool(count, limit)
    return None


class _Holding:
    """Holds pools from `with` to its end; it may be nested, and in several Python threads at once."""

    pools: tuple[_Pool, ...] = ()

    def __init__(self, pools: tuple[_Pool, ...]) -> None:
        self.pools = pools

    def __enter__(self) -> None:
        for pool in self.pools:
            pool.hold(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self.pools:
            pool.let_go(self)


def one_blas() -> _Holding:
    """Lets SciPy's copy of BLAS alone have threads, for as long as a `with` lasts.

    >>> with one_blas():
    ...     pass
    """
    return _Holding(_copies().beside_scipy)


def no_blas_threads() -> _Holding:
    """Lets no copy of BLAS have threads: for work that has its own."""
    return _Holding(_copies().every)


def blas_for(rows: int | None) -> _Holding:
    """What a fit on so many rows leaves to BLAS: the threads of one copy, or none if the rows are few."""
    if rows is not None and rows <= FEW_ROWS:
        return no_blas_threads()
    return one_blas()


def side_by_side(work: Callable[[Part], Answer], parts: Sequence[Part], n_jobs: int | None) -> list[Answer]:
    """What `work` makes of each part, in their order: the parts in threads, and every copy of BLAS without.

    For products of long and narrow matrices, which NumPy computes without the interpreter, and of which
    OpenBLAS makes little with threads of its own. The number of threads decides who does a part and nothing
    else. What `work` takes must be short: Ctrl-C waits for the parts that have begun.

    >>> side_by_side(lambda part: part**2, [1, 2, 3], n_jobs=2)
    [1, 4, 9]
    """
    workers = min(threads(n_jobs), len(parts))
    with no_blas_threads():
        if workers <= 1:
            return [work(part) for part in parts]
        pool = ThreadPoolExecutor(workers)
        try:
            # A context belongs to one thread at a time.
            begun = [pool.submit(copy_context().run, work, part) for part in parts]
            return [answer.result() for answer in begun]
        finally:
            pool.shutdown(cancel_futures=True)
