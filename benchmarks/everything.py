"""`python -m benchmarks all`: every suite on every kind of processor that is here; one JSON, one page.

Each suite is a process of its own, because OpenBLAS and the allocator read their settings when they start.
The JSON is written after each of them, and a run that it holds already is not made again: after an
interruption the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import page, record

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def run(options: argparse.Namespace, suites: tuple[str, ...]) -> None:
    path = options.json or RESULTS / "latest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    runs: list[record.Run] = []
    if path.exists():
        _, runs = record.load(path)
    for kind in options.kinds or record.kinds_here():
        for memory in options.memory:
            for suite in suites:
                if any((r.suite, r.kind, r.memory) == (suite, kind, memory) for r in runs):
                    print(f"{suite} on {kind}, {memory} memory: in {path} already", flush=True)
                    continue
                runs.append(_one(suite, kind, memory, options))
                record.save(path, record.machine(), runs)
    if options.report:
        page.write(path, PAGE)
        print(f"{PAGE} written from {path}")


def _one(suite: str, kind: str, memory: str, options: argparse.Namespace) -> record.Run:
    """One suite in a process of its own; its rows come back through a file."""
    print(f"── {suite} on {kind}, {memory} memory", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks", suite, "--json", str(rows)]
        command += ["--repeat", str(options.repeat), "--only", options.only, "--data", options.data]
        command += ["--threads", *map(str, options.threads)]
        if options.quick:
            command.append("--quick")
        environment = {**os.environ, **record.environment(kind, memory)}
        done = subprocess.run(command, env=environment)
        if done.returncode:
            raise SystemExit(f"{suite} ended with {done.returncode}; what was measured before it is kept.")
        _, (found,) = record.load(rows)
    return record.Run(suite, kind, memory, options.repeat, options.quick, found.rows)
