"""How we time: one process, peer and mercer in turn, threads pinned on both sides, allocation included.

On one thread the clock is the CPU time of the process, which other work on the machine disturbs least; on
more it is the wall. The best of the runs decides the ratio; the median is printed beside it. Peak memory is
the high-water mark of the process during the call, above what it held before, as Linux counts it.

Seconds go where they decide something. A side that has had `PATIENCE` seconds is not run again; a peer that
took `BEHIND` times the seconds of the strongest one cannot set the ratio, so it runs once, and not again with
more threads.

On a virtual machine the first touch of a page can cost the host thirty times what any later one costs. Before
each timed call 2 GiB are therefore touched and given back, so that no side pays for that by chance. A short
call on several threads waits instead until those of BLAS that the side before it woke have gone to sleep.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import Row

suite = ""
rows: list[Row] = []
"""What `report` printed so far."""
known: list[Row] = []
"""What an earlier process measured on the same kind of processor and memory."""


@dataclass
class Timing:
    best: float
    median: float
    peak_mb: float
    value: Any


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return float("nan")


def peak() -> float:
    """The most memory that the process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _reset_peak() -> None:
    # Other systems have no such file, and the peak is then that of the process.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@dataclass
class Peak:
    """The high-water mark of a block of code, above what the process held before."""

    megabytes: float = 0.0


@contextlib.contextmanager
def watched_memory() -> Iterator[Peak]:
    """Memory of the block, known when it ends."""
    found = Peak()
    _reset_peak()
    held = _status("VmRSS")
    yield found
    found.megabytes = _status("VmHWM") - held


warm_bytes = 2**31  # touched before each timed call; `--quick` sets 0
# Seconds: calls below it need little memory, and would rather find their caches as they left them.
SHORT = 0.05
# Seconds for which threads of OpenBLAS run in circles after a call, beside those of the next side.
CIRCLES = 0.15
# Seconds after which a side is not run again.
PATIENCE = 10.0
# A peer so many times slower than the strongest cannot set the ratio.
BEHIND = 3.0


def _touch_memory() -> None:
    if warm_bytes:
        page = 512  # float64 numbers
        np.empty(warm_bytes // 8)[::page] = 1.0


def _rest(threads: int, before: list[float]) -> None:
    """No side begins beside what another has left: memory that it gave back, threads that run in circles."""
    if not before or before[-1] > SHORT:
        _touch_memory()
    elif threads > 1:
        time.sleep(CIRCLES)


def race(cell: str, sides: dict[str, Callable[[], Any]], threads: int, repeat: int) -> dict[str, Timing]:
    """Run the sides in turn, up to `repeat` times; one that raises is left out with its reason printed."""
    sides = {name: call for name, call in sides.items() if not _was_behind(cell, name, threads)}
    times: dict[str, list[float]] = {name: [] for name in sides}
    peaks: dict[str, float] = {}
    values: dict[str, Any] = {}
    clock = time.process_time if threads == 1 else time.perf_counter
    with threadpool_limits(threads):
        set_torch_threads(threads)
        for _ in range(repeat):
            for name, call in list(sides.items()):
                if not _worth_running(name, times):
                    continue
                try:
                    _rest(threads, times[name])
                    _reset_peak()
                    held = _status("VmRSS")
                    start = clock()
                    values[name] = call()
                    times[name].append(clock() - start)
                    peaks[name] = max(peaks.get(name, 0.0), _status("VmHWM") - held)
                except Exception as error:  # a peer that cannot do a cell must not end the suite
                    print(f"    ({name} left out: {type(error).__name__}: {str(error)[:90]})")
                    del sides[name]
    return {
        name: Timing(min(t), statistics.median(t), peaks[name], values[name])
        for name, t in times.items()
        if name in sides
    }


def _worth_running(name: str, times: dict[str, list[float]]) -> bool:
    """Whether one more run of this side may change what the table says."""
    if not times[name]:
        return True
    if sum(times[name]) > PATIENCE:
        return False
    return _is_ours(name) or times[name][0] <= BEHIND * _strongest(times)


def _strongest(times: dict[str, list[float]]) -> float:
    """The first run of the strongest peer."""
    return min(t[0] for name, t in times.items() if t and not _is_ours(name))


def _was_behind(cell: str, name: str, threads: int) -> bool:
    """Whether this peer was far behind the strongest one on fewer threads."""
    before = [
        row
        for row in (*known, *rows)
        if (row.suite, row.cell) == (suite, cell) and row.threads < threads and not _is_ours(row.side)
    ]
    own = [row.best for row in before if row.side == name]
    return bool(own) and min(own) > BEHIND * min(row.best for row in before)


def _is_ours(side: str) -> bool:
    return side.startswith("mercer")


def set_torch_threads(threads: int) -> None:
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)


@dataclass
class Machine:
    """What one core of this machine reaches, measured now; the roofline of the tables."""

    gemm: float  # flop/s, float64
    gemm32: float
    exp: float  # elements/s in cache
    exp32: float
    write: float  # bytes/s into fresh memory
    rewrite: float  # bytes/s into memory that the process has

    @classmethod
    def measure(cls) -> Machine:
        from mercer import _core

        rng = np.random.default_rng(0)

        def best(call: Callable[[], Any], n: int = 5) -> float:
            out = []
            for _ in range(n):
                start = time.process_time()
                call()
                out.append(time.process_time() - start)
            return min(out)

        with threadpool_limits(1):
            rates = {}
            for dtype in (np.float64, np.float32):
                A = rng.normal(size=(1500, 1500)).astype(dtype)
                rates[dtype] = 2 * 1500**3 / best(lambda A=A: A @ A)
                x = rng.uniform(-20, 0, size=16_000).astype(dtype)
                y = np.empty_like(x)
                rates[dtype, "exp"] = (
                    16_000 * 100 / best(lambda x=x, y=y: [_core.vexp(x, y) for _ in range(100)])
                )
            write = 2**27 / best(lambda: np.ones(2**24))
            held = np.ones(2**24)
            rewrite = 2**27 / best(lambda: held.fill(1.0))
        return cls(
            rates[np.float64],
            rates[np.float32],
            rates[np.float64, "exp"],
            rates[np.float32, "exp"],
            write,
            rewrite,
        )

    def limit(
        self,
        *,
        flops: float,
        exps: float,
        written: float,
        threads: int,
        single: bool = False,
        fresh: bool = True,
    ) -> float:
        """Seconds below which the work cannot go: arithmetic spread over the threads,
        memory shared by them.
        """
        gemm, exp = (self.gemm32, self.exp32) if single else (self.gemm, self.exp)
        write = self.write if fresh else self.rewrite
        return max((flops / gemm + exps / exp) / threads, written / write)

    def __str__(self) -> str:
        return (
            f"one core reaches {self.gemm / 1e9:.0f} / {self.gemm32 / 1e9:.0f} GFLOP/s (float64 / 32), exp "
            f"{1e9 / self.exp:.2f} / {1e9 / self.exp32:.2f} ns, writes {self.write / 1e9:.1f} GB/s of fresh "
            f"memory and {self.rewrite / 1e9:.1f} GB/s of its own"
        )


HEAD = (
    f"{'cell':34}{'thr':>4}  {'side':12}{'best s':>9}{'median':>9}"
    f"{'ratio':>8}{'roof':>7}{'peak MB':>9}  certificate"
)


def report(
    cell: str,
    threads: int,
    found: dict[str, Timing],
    limit: float | None,
    certificate: Callable[[str, Any], str],
) -> None:
    """One block of the table: mercer's row last, ratio = strongest peer / mercer."""
    peers = {name: t for name, t in found.items() if not _is_ours(name)}
    strongest = min((t.best for t in peers.values()), default=float("nan"))
    for name in [*peers, *(n for n in found if _is_ours(n))]:
        t = found[name]
        ratio = strongest / t.best if _is_ours(name) and peers else None
        roof = limit / t.best if limit is not None and name == "mercer" else None
        row = Row(
            suite, cell, threads, name, t.best, t.median, ratio, roof, t.peak_mb, certificate(name, t.value)
        )
        rows.append(row)
        print(_line(row), flush=True)


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    roof = "" if row.roof is None else f"{row.roof:.0%}"
    return (
        f"{row.cell:34}{row.threads:>4}  {row.side:12}{_seconds(row.best):>9}{_seconds(row.median):>9}"
        f"{ratio:>8}{roof:>7}{row.peak_mb:>9.0f}  {row.certificate}"
    )


def _seconds(time: float) -> str:
    """Four decimals, or six where there are only milliseconds."""
    return f"{time:.4f}" if time >= 0.01 else f"{time:.6f}"
