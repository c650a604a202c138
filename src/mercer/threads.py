"""How many threads the core may use: the caller's word, else what the process and threadpoolctl allow."""

from __future__ import annotations

import os

from threadpoolctl import LibController, register

from mercer.errors import ParameterError

MOST_THREADS = 4096

# Set by threadpoolctl.threadpool_limits, and only there.
_limit: list[int | None] = [None]


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
    allowed = _cpus()
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if told.isdigit() and int(told) > 0:
        allowed = min(allowed, int(told))
    if _limit[0] is not None:
        allowed = min(allowed, max(1, _limit[0]))
    return max(1, allowed)


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
