"""How many requests `mercer serve` holds, how long they take, and that bad bodies do not harm it.

    python -m benchmarks.serving [--seconds 5] [--clients 1 8] [--rows-fit 500]

Fits a model of 500 rows with numbers and a category, saves it, starts the server as a process of its own, and
asks it from threads by `http.client`, over connections that are kept. Times are of the wall, as clients see
them, so that they are only worth something on a quiet machine; clients and server share its cores. Memory is
the resident set of the server (Linux).
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars

import mercer
from mercer.cli.doctor import examined

HEADERS = {"Content-Type": "application/json"}
KINDS = ("oak", "ash", "elm", "fir")


@dataclass
class Load:
    """What the clients saw: seconds of each request, and how many had which status."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wall: float = 0.0


def table(n: int, seed: int) -> polars.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"x{j}": rng.normal(size=n).tolist() for j in range(5)}
    return polars.DataFrame({**numbers, "kind": rng.choice(KINDS, n).tolist()})


def saved_model(folder: Path, n: int) -> Path:
    """A Gaussian process of a table, in a file."""
    frame = table(n, 0)
    target = frame["x0"].to_numpy() * frame["x1"].to_numpy() + (frame["kind"] == "oak").to_numpy()
    model = mercer.fit(frame, target, verbose=0)
    return model.save(folder / "model.mercer").path


def started(path: Path) -> tuple[subprocess.Popen[str], int]:
    """The server, and the port that it found."""
    command = [sys.executable, "-m", "mercer", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r":(\d+) until Ctrl-C", line)
        if found:
            return process, int(found[1])
    raise RuntimeError(f"the server did not start, code {process.wait()}")


def memory(process: subprocess.Popen[str]) -> str:
    """The resident set of the server, in MiB."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    (found,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return f"{int(found) / 1024:.0f} MiB"


def ask(port: int, body: bytes, until: float, load: Load) -> None:
    """One client that asks again and again over one connection."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < until:
        began = time.perf_counter()
        line.request("POST", "/predict", body, HEADERS)
        answer = line.getresponse()
        answer.read()
        load.seconds.append(time.perf_counter() - began)
        load.statuses[answer.status] += 1
    line.close()


def pressed(port: int, body: bytes, clients: int, seconds: float) -> Load:
    """Several clients at once for some seconds."""
    loads = [Load() for _ in range(clients)]
    began = time.monotonic()
    until = began + seconds
    threads = [threading.Thread(target=ask, args=(port, body, until, load)) for load in loads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Load(wall=time.monotonic() - began)
    for load in loads:
        total.seconds += load.seconds
        total.statuses += load.statuses
    return total


def row_of_table(rows: int, clients: int, load: Load) -> str:
    p50, p95, p99 = 1e3 * np.percentile(load.seconds, [50, 95, 99])
    rate = len(load.seconds) / load.wall
    statuses = ", ".join(f"{count} × {status}" for status, count in sorted(load.statuses.items()))
    return f"{rows:5d} {clients:8d} {rate:11.0f} {p50:9.1f} {p95:8.1f} {p99:8.1f}   {statuses}"


def bad_bodies(port: int) -> Counter[int]:
    """Every body of the corpus of the tests, each over a connection of its own."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from serve.bad_bodies import BODIES

    statuses: Counter[int] = Counter()
    for body in BODIES.values():
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        line.request("POST", "/predict", body, HEADERS)
        statuses[line.getresponse().status] += 1
        line.close()
    return statuses


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each line")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rows-fit", type=int, default=500)
    options = parser.parse_args()
    machine = examined()
    print(f"{machine['processor']}, {machine['cores']} cores, {options.rows_fit} rows of fit")
    with tempfile.TemporaryDirectory() as folder:
        process, port = started(saved_model(Path(folder), options.rows_fit))
        try:
            measured(process, port, options.clients, options.seconds)
            process.send_signal(signal.SIGINT)
            print(f"Ctrl-C: exit code {process.wait(60)}")
        finally:
            process.kill()


def measured(process: subprocess.Popen[str], port: int, clients: list[int], seconds: float) -> None:
    """Print the table of requests, memory, and what became of bad bodies."""
    print(f"memory before: {memory(process)}")
    print(" rows  clients  requests/s  p50 (ms)      p95      p99   statuses")
    for rows in (1, 100):
        body = json.dumps({"rows": table(rows, 1).to_dicts()}).encode()
        pressed(port, body, 1, min(seconds, 1.0))
        for count in clients:
            print(row_of_table(rows, count, pressed(port, body, count, seconds)))
    print(f"memory after: {memory(process)}")
    statuses = bad_bodies(port)
    print("bad bodies: " + ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items())))
    assert set(statuses) == {422}, "a bad body was answered otherwise"
    again = pressed(port, json.dumps({"rows": table(1, 1).to_dicts()}).encode(), 1, 0.2)
    assert set(again.statuses) == {200}, "the server does not answer any more"
    print(f"memory after bad bodies: {memory(process)}")


if __name__ == "__main__":
    main()
