"""The page of the benchmarks, made of the JSON that `python -m benchmarks all` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.record import Row, Run, load

HEAD = """# Performance

This page is made by `python -m benchmarks all --report` from `{source}`, and says nothing that is not in it.
Every cell ran mercer and its peers in turn, in one process, on the same data; a ratio is the time of the
strongest peer divided by mercer's, so more than 1 means that mercer was faster. One thread is measured in CPU
seconds, two by the wall; the best of up to {repeat} runs counts ({cells} cells). What had taken ten seconds
was not run again; a peer that took three times the seconds of the strongest ran once, and not again with more
threads. Memory is the peak above what the process held before, in MB. Shared machines are noisy: treat a
difference of less than 25 % as a tie.

Measured on {date}: {processor}, {cores} cores, {memory} GiB, Python {python}; {versions}.

"""

KIND = {
    "avx512": "AVX-512",
    "avx2": "AVX2 (our core, OpenBLAS and NumPy kept from AVX-512; peers with code of their own may use it)",
    "baseline": "x86-64 baseline (our core, OpenBLAS and NumPy kept to SSE; peers may use more)",
}


def write(source: Path, page: Path) -> None:
    """Write the page of a JSON."""
    page.write_text(text(source))


def text(source: Path) -> str:
    machine, runs = load(source)
    parts = [_head(source, machine, runs)]
    for kind in dict.fromkeys(run.kind for run in runs):
        parts.append(f"## {KIND[kind]}\n")
        for suite in dict.fromkeys(run.suite for run in runs if run.kind == kind):
            parts.append(_suite(suite, [run for run in runs if (run.kind, run.suite) == (kind, suite)]))
    return "\n".join(parts)


def _head(source: Path, machine: dict[str, Any], runs: list[Run]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return HEAD.format(
        source=f"benchmarks/results/{source.name}",
        repeat=max(run.repeat for run in runs),
        cells=len({(row.cell, row.threads, run.kind) for run in runs for row in run.rows}),
        date=machine["date"],
        processor=machine["processor"],
        cores=machine["cores"],
        memory=machine["memory GiB"],
        python=machine["python"],
        versions=versions,
    )


def _suite(suite: str, runs: list[Run]) -> str:
    lines = [f"### {suite}\n"]
    memories = dict.fromkeys(run.memory for run in runs)
    for memory in memories:
        if len(memories) > 1 or memory != "fresh":
            lines.append(f"Memory: {memory}.\n")
        lines.append(
            "| cell | threads | strongest peer | s | mercer s | ratio | MB mercer / peer | certificate |"
        )
        lines.append("|---|---|---|---|---|---|---|---|")
        for run in runs:
            if run.memory == memory:
                lines += [_line(run, row) for row in run.rows if row.side.startswith("mercer")]
        lines.append("")
    return "\n".join(lines)


def _line(run: Run, ours: Row) -> str:
    rows = [row for row in run.rows if (row.cell, row.threads) == (ours.cell, ours.threads)]
    peers = [row for row in rows if not row.side.startswith("mercer")]
    cell = ours.cell
    if ours.side != "mercer":
        cell = f"{cell} ({ours.side.removeprefix('mercer ')})"
    if not peers:
        return _cells(
            cell, ours.threads, "", "", f"{ours.best:.3g}", "", f"{ours.peak_mb:.0f}", ours.certificate
        )
    best = min(peers, key=lambda row: row.best)
    ratio = f"{best.best / ours.best:.2f}"
    memory = f"{ours.peak_mb:.0f} / {best.peak_mb:.0f}"
    certificate = f"{ours.certificate}; {best.side}: {best.certificate}"
    return _cells(
        cell, ours.threads, best.side, f"{best.best:.3g}", f"{ours.best:.3g}", ratio, memory, certificate
    )


def _cells(*values: object) -> str:
    return "| " + " | ".join(str(value).replace("|", "\\|") for value in values) + " |"
