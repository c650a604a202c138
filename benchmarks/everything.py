"""`python -m benchmarks all`: every suite, on the kinds of processor that are here; one JSON for this kind of
machine, and one page of the JSONs of all kinds.

Each suite is a process of its own for each number of threads, because OpenBLAS and the allocator read their
settings when they start. The JSON is written after each of them, and a run that it holds already is not made
again: after an interruption the same command goes on.

Every suite runs on the machine's own kind of processor with fresh memory. Where large results are written,
reused memory is measured too; narrower instruction sets are shown where our own loops decide, on one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import page, record

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
# Suites whose cells write results of many megabytes.
LARGE = ("engine", "gp", "ridge", "unsupervised")
# Suites in which the loops of our core take most of the time.
LOOPS = ("engine", "small", "svm")
# Suites that have one thread whatever is asked.
ALONE = ("graphs",)


def run(options: argparse.Namespace, suites: tuple[str, ...]) -> None:
    path = options.json or RESULTS / f"{record.kinds_here()[0]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    runs: list[record.Run] = []
    if path.exists():
        _, runs = record.load(path)
    for suite, kind, memory, threads in _planned(options, suites):
        if any((r.suite, r.kind, r.memory, r.threads) == (suite, kind, memory, threads) for r in runs):
            print(f"{suite} on {kind}, {memory} memory, {threads} threads: in {path} already", flush=True)
            continue
        runs.append(_one(suite, kind, memory, threads, path, options))
        record.save(path, record.machine(options.note), runs)
    if options.report:
        stored = sorted({path, *RESULTS.glob("*.json")})
        page.write(stored, PAGE)
        print(f"{PAGE} written from {', '.join(map(str, stored))}")


def _planned(options: argparse.Namespace, suites: tuple[str, ...]) -> Iterator[tuple[str, str, str, int]]:
    """What is measured, in this order: suite, kind of processor, memory, threads."""
    own = record.kinds_here()[0]
    for kind in options.kinds or record.kinds_here():
        for memory in options.memory:
            for threads in options.threads:
                for suite in suites:
                    if options.kinds or _told(suite, kind == own, memory, threads):
                        yield suite, kind, memory, threads


def _told(suite: str, own: bool, memory: str, threads: int) -> bool:
    """Whether this run says what another does not."""
    if suite in ALONE and threads > 1:
        return False
    if memory == "fresh":
        return own or (suite in LOOPS and threads == 1)
    return own and suite in LARGE


def _one(
    suite: str, kind: str, memory: str, threads: int, path: Path, options: argparse.Namespace
) -> record.Run:
    """One suite in a process of its own; its rows come back through a file."""
    print(f"── {suite} on {kind}, {memory} memory, {threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks", suite, "--json", str(rows)]
        command += ["--repeat", str(options.repeat), "--only", options.only, "--data", options.data]
        command += ["--threads", str(threads)]
        if path.exists():
            command += ["--known", str(path)]
        if options.quick:
            command.append("--quick")
        environment = {**os.environ, **record.environment(kind, memory)}
        done = subprocess.run(command, env=environment)
        if done.returncode:
            raise SystemExit(f"{suite} ended with {done.returncode}; what was measured before it is kept.")
        _, (found,) = record.load(rows)
    return record.Run(suite, kind, memory, threads, options.repeat, options.quick, found.rows)
