"""What a cluster of two workers on this machine costs: seconds and bytes of a product, memory, a lost worker.

    python -m benchmarks cluster [--quick] [--repeat 3]

Two workers with one thread each, as "local:2" starts them, in processes of their own, beside two threads of
this process on the same cores: what is lost is what sharing out costs. Both sides take turns, and the best of
the runs counts. Bytes are those that pass the sockets of the workers. Speed-ups by more machines are not
measured here.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import numpy as np

import mercer
from mercer import RBF, KernelRidge
from mercer.gram import Tiles, tiles
from mercer.gram.cluster import local_workers
from mercer.gram.lines import DIFFERENCES, Lines

COLUMNS = 10


def run(options: argparse.Namespace) -> None:
    sizes = (1000,) if options.quick else (50_000, 100_000)
    with local_workers(2) as local, distributed.Client(local) as client:
        client.run(count_bytes)
        idle = memory_of(client)
        for n in sizes:
            products(client, n, options.repeat)
            moved(client, n)
        held = max(sizes) * COLUMNS * 8 / 2**20
        most = memory_of(client)
        print(f"memory of a worker: {idle:.0f} MiB before, at most {most:.0f} MiB; X has {held:.0f} MiB")
    lost(1000 if options.quick else 50_000)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, COLUMNS))
    return X, np.sin(X).sum(axis=1)


def best_of(repeat: int, used: Callable[[], float], *sides: Callable[[], Any]) -> list[tuple[float, float]]:
    """The least seconds of each side, by the wall and of all processors; the sides take turns."""
    best = [(np.inf, np.inf)] * len(sides)
    for _ in range(repeat):
        for k, side in enumerate(sides):
            before = used()
            began = time.perf_counter()
            side()
            wall = time.perf_counter() - began
            best[k] = (min(best[k][0], wall), min(best[k][1], used() - before))
    return best


def products(client: distributed.Client, n: int, repeat: int) -> None:
    """Seconds of K V by two threads here and by the two workers."""
    X, _ = data(n)
    kernel = RBF(3.0)

    def used() -> float:
        """Seconds of processors so far, of this process, which has the scheduler too, and of the workers."""
        return time.process_time() + sum(client.run(time.process_time).values())

    with mercer.cluster(client):
        for dtype in (np.float32, np.float64):
            for columns in (1, 8):
                V = np.random.default_rng(1).standard_normal((n, columns)).astype(dtype)
                there = tiles(kernel, X, dtype=dtype)
                here = Tiles(kernel, X, dtype=dtype, n_jobs=2)
                there @ V
                sides = (lambda A=here, V=V: A @ V, lambda A=there, V=V: A @ V)
                (wall, work), (far_wall, far_work) = best_of(repeat, used, *sides)
                print(
                    f"n = {n}, {np.dtype(dtype).name}, {columns} columns: here {wall:.2f} s ({work:.2f} s of "
                    f"processors), there {far_wall:.2f} s ({far_work:.2f} s): {wall / far_wall:.2f} of the "
                    f"speed, {work / far_work:.2f} by processors",
                    flush=True,
                )


def moved(client: distributed.Client, n: int) -> None:
    """Bytes into and out of the workers for one product, beside what the scheme says."""
    X, _ = data(n)
    V = np.ones((n, 1))
    with mercer.cluster(client):
        K = tiles(RBF(3.0), X)
        K @ V
        before = client.run(bytes_so_far)
        K @ V
        after = client.run(bytes_so_far)
    received, sent = (sum(after[w][k] - before[w][k] for w in after) / 2**20 for k in (0, 1))
    count = len(after)
    lines = Lines.of(n)
    out = 8 * n * len(DIFFERENCES[lines.order]) / 2**20
    if lines.order:
        # Blocks that several lines of a task have in common are sent once.
        out = sum(8 * lines.rows_read(task) for task in lines.tasks) / 2**20
    print(
        f"n = {n}, a product: {received:.1f} MiB into {count} workers (scheme: {count * 8 * n / 2**20:.1f}), "
        f"{sent:.1f} MiB out of them (scheme: {out:.1f})",
        flush=True,
    )


def lost(n: int) -> None:
    """A fit during which a worker is killed, and one without."""
    (undisturbed, first, _), (killed, second, asked) = fitted(n, kill=0), fitted(n, kill=5)
    print(
        f"ridge on {n} rows: {first:.1f} s; with a worker killed at the fifth of {asked} questions "
        f"{second:.1f} s, equal bits: {np.array_equal(undisturbed, killed)}"
    )


def fitted(n: int, *, kill: int) -> tuple[np.ndarray, float, int]:
    """Coefficients, seconds and how often the workers were asked; at question `kill` one is killed."""
    X, y = data(n)
    model = KernelRidge("RBF(3.0)", alpha=1.0, solver="cg", tol=1e-4, random_state=0)
    with local_workers(2) as local, distributed.Client(local) as client:
        told = []
        gather = client.gather

        def gather_or_kill(futures: Any, **options: Any) -> Any:
            told.append(len(futures))
            if len(told) == kill:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return gather(futures, **options)

        client.gather = gather_or_kill
        began = time.perf_counter()
        with mercer.cluster(client):
            model.fit(X, y)
        return model.dual_coef_, time.perf_counter() - began, len(told)


# ── run by the workers ──────────────────────────────────────────────────────────────────────────────────────


def count_bytes() -> None:
    """Have the sockets of this process count what passes them."""
    from tornado.iostream import IOStream

    read = IOStream.read_from_fd
    write = IOStream.write_to_fd
    IOStream.passed = [0, 0]

    def reading(self: Any, buf: Any) -> Any:
        count = read(self, buf)
        IOStream.passed[0] += count or 0
        return count

    def writing(self: Any, data: Any) -> int:
        count = write(self, data)
        IOStream.passed[1] += count
        return count

    IOStream.read_from_fd = reading
    IOStream.write_to_fd = writing


def bytes_so_far() -> tuple[int, int]:
    from tornado.iostream import IOStream

    return tuple(IOStream.passed)


def peak_memory() -> int:
    """The most memory that this process has held, in KiB (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def memory_of(client: distributed.Client) -> float:
    return max(client.run(peak_memory).values()) / 1024
