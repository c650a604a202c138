"""The page of the benchmarks, made of the JSON that `python -m benchmarks all` writes.

`python -m benchmarks.page benchmarks/results/latest.json` writes it, and its picture, and measures nothing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import ratios
from benchmarks.record import Row, Run, load

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = "performance.svg"

HEAD = """# Performance

Measured on {date}: {processor}, {cores}, {memory} GiB, Python {python}; {versions}.{note}

Every cell ran mercer and its peers in turn, in one process, on the same data. A **ratio** is the time of the
strongest peer divided by mercer's: 2 means that mercer took half the time, 0.5 that it took twice as long.
Shared machines are noisy, so less than 25 % either way counts as a tie.

Repeat it with `python -m benchmarks all --report`, which writes this page from `{source}`
and says nothing that is not in it. `python -m benchmarks engine --only RBF` runs the cells of one suite whose
names contain a text. The words about speed are on the page [how fast](speed.md).

"""

METHOD = """## How it was measured

One thread is measured in CPU seconds, two by the wall; the best of up to {repeat} runs counts; there are
{cells} cells. What had taken ten seconds was not run again; a peer that took three times the seconds of the
strongest ran once, and not again with more threads. Memory is the peak above what the process held before,
in MB. Every table has the answer's certificate beside the time: a fast answer that is not the answer would
be seen there.
A cell with the word *baseline* has our core kept to the instructions that every x86-64 processor has, beside
peers that use all; the summary leaves it out.

"""

MORE_THREADS = """mercer's seconds on one thread (of a processor) over those on several (by the wall), of
the cells that were measured with both, in different runs.
"""

KIND = {
    "avx512": "AVX-512",
    "avx2": "AVX2 (our core, OpenBLAS and NumPy kept from AVX-512; peers with code of their own may use it)",
    "baseline": "x86-64 baseline (our core, OpenBLAS and NumPy kept to SSE; peers may use more)",
}
# Less than this either way is a tie.
TIE = 1.25


@dataclass(frozen=True)
class Compared:
    """One row of mercer's, and the strongest peer of its cell."""

    run: Run
    ours: Row
    peer: Row | None

    @property
    def name(self) -> str:
        variant = self.ours.side.removeprefix("mercer").strip()
        return f"{self.ours.cell} ({variant})" if variant else self.ours.cell

    @property
    def ratio(self) -> float:
        """The peer's seconds over ours; where there is no peer, 1."""
        return 1.0 if self.peer is None else self.peer.best / self.ours.best


def write(source: Path, page: Path) -> None:
    """Write the page of a JSON, and its picture beside it."""
    page.write_text(text(source), encoding="utf-8")
    picture = page.parent / "pictures" / PICTURE
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(ratios.svg(_by_suite(_own(compared(load(source)[1])))), encoding="utf-8")


def text(source: Path) -> str:
    machine, runs = load(source)
    found = compared(runs)
    own = _own(found)
    parts = [_head(source, machine), _summary(own), _behind(found), *_second_core(own), _method(runs)]
    for kind in dict.fromkeys(run.kind for run in runs):
        parts.append(f"## All cells: {KIND[kind]}\n")
        for suite in dict.fromkeys(run.suite for run in runs if run.kind == kind):
            parts.append(_suite(suite, [c for c in found if (c.run.kind, c.run.suite) == (kind, suite)]))
    return "\n".join(parts)


def compared(runs: list[Run]) -> list[Compared]:
    """Every row of mercer's with the strongest peer of its cell, in the order of the JSON."""
    found = []
    for run in runs:
        for ours in run.rows:
            if not ours.side.startswith("mercer"):
                continue
            peers = [
                row
                for row in run.rows
                if (row.cell, row.threads) == (ours.cell, ours.threads) and not row.side.startswith("mercer")
            ]
            found.append(Compared(run, ours, min(peers, key=lambda row: row.best, default=None)))
    return found


def _own(found: list[Compared]) -> list[Compared]:
    """The cells with a peer, on the machine's own kind of processor, with memory as Python has it."""
    kind = found[0].run.kind if found else ""
    kept = [c for c in found if c.peer is not None and c.run.kind == kind and "baseline" not in c.ours.side]
    return [c for c in kept if c.run.memory == "fresh"] or kept


def _by_suite(found: list[Compared]) -> dict[str, list[tuple[str, float]]]:
    out: dict[str, list[tuple[str, float]]] = {}
    for c in found:
        out.setdefault(c.run.suite, []).append((f"{c.name}, {_counted(c.ours.threads)}", c.ratio))
    return out


def _head(source: Path, machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return HEAD.format(
        source=f"benchmarks/results/{source.name}",
        date=machine["date"],
        processor=machine["processor"],
        cores="1 core" if machine["cores"] == 1 else f"{machine['cores']} cores",
        memory=machine["memory GiB"],
        python=machine["python"],
        versions=versions,
        note=f" {machine['note']}" if machine.get("note") else "",
    )


def _summary(own: list[Compared]) -> str:
    """One line for each suite: how many cells are ahead, level and behind, and the middle and worst ratio."""
    lines = ["## In short\n"]
    lines.append("| suite | cells | faster | tie | slower | median ratio | least ratio |")
    lines.append("|---|---|---|---|---|---|---|")
    threads = sorted({c.ours.threads for c in own})
    for suite in _by_suite(own):
        for count in threads:
            ratios_there = [c.ratio for c in own if (c.run.suite, c.ours.threads) == (suite, count)]
            if ratios_there:
                lines.append(_tally(_titled(suite, count, threads), ratios_there))
    for count in threads:
        everything = [c.ratio for c in own if c.ours.threads == count]
        lines.append(_tally(f"**{_titled('all', count, threads)}**", everything))
    shown = "Ratios of all cells, one line for each suite; right of 1 mercer is faster"
    lines += ["", f"![{shown}](pictures/{PICTURE})", ""]
    return "\n".join(lines)


def _titled(suite: str, count: int, threads: list[int]) -> str:
    """The suite, with its threads where the page has more than one number of them."""
    if len(threads) == 1:
        return suite
    return f"{suite}, {_counted(count)}"


def _counted(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _second_core(own: list[Compared]) -> list[str]:
    """How many times as fast mercer is with more threads, by suite; nothing where that was not asked."""
    alone = {(c.run.suite, c.name): c.ours.best for c in own if c.ours.threads == 1}
    lines = []
    for suite in dict.fromkeys(c.run.suite for c in own):
        gains: dict[int, list[tuple[float, str]]] = {}
        for c in own:
            if c.run.suite == suite and c.ours.threads > 1 and (suite, c.name) in alone:
                gain = alone[suite, c.name] / c.ours.best
                gains.setdefault(c.ours.threads, []).append((gain, c.name))
        for threads, found in gains.items():
            least, most = min(found), max(found)
            ends = (f"{least[0]:.2f} ({least[1]})", f"{most[0]:.2f} ({most[1]})")
            lines.append(_cells(suite, threads, len(found), f"{median(g for g, _ in found):.2f}", *ends))
    if not lines:
        return []
    head = [
        "## What more threads give\n",
        MORE_THREADS,
        "| suite | threads | cells | median | least | most |",
    ]
    return ["\n".join([*head, "|---|---|---|---|---|---|", *lines, ""])]


def _tally(suite: str, values: list[float]) -> str:
    faster = sum(value >= TIE for value in values)
    slower = sum(value <= 1 / TIE for value in values)
    tie = len(values) - faster - slower
    return _cells(suite, len(values), faster, tie, slower, f"{median(values):.2f}", f"{min(values):.2f}")


def _behind(found: list[Compared]) -> str:
    """The cells in which a peer is faster by more than a tie, the worst first."""
    behind = sorted((c for c in found if c.ratio <= 1 / TIE), key=lambda c: c.ratio)
    if not behind:
        return "## Where a peer is faster\n\nIn no cell by 25 % or more.\n"
    lines = ["## Where a peer is faster\n"]
    lines.append("| suite | cell | threads | processor, memory | peer | s | mercer s | ratio |")
    lines.append("|---|---|---|---|---|---|---|---|")
    for c in behind:
        assert c.peer is not None
        where = f"{c.run.kind}, {c.run.memory}"
        seconds = (f"{c.peer.best:.3g}", f"{c.ours.best:.3g}", f"{c.ratio:.2f}")
        lines.append(_cells(c.run.suite, c.name, c.ours.threads, where, c.peer.side, *seconds))
    return "\n".join([*lines, ""])


def _method(runs: list[Run]) -> str:
    cells = {(row.suite, row.cell, row.threads, run.kind) for run in runs for row in run.rows}
    return METHOD.format(repeat=max(run.repeat for run in runs), cells=len(cells))


def _suite(suite: str, found: list[Compared]) -> str:
    lines = [f"### {suite}\n"]
    memories = dict.fromkeys(c.run.memory for c in found)
    for memory in memories:
        if len(memories) > 1 or memory != "fresh":
            lines.append(f"Memory: {memory}.\n")
        lines.append(
            "| cell | threads | strongest peer | s | mercer s | ratio | MB mercer / peer | certificate |"
        )
        lines.append("|---|---|---|---|---|---|---|---|")
        lines += [_line(c) for c in found if c.run.memory == memory]
        lines.append("")
    return "\n".join(lines)


def _line(c: Compared) -> str:
    ours = c.ours
    mine = f"{ours.best:.3g}"
    if c.peer is None:
        return _cells(c.name, ours.threads, "", "", mine, "", f"{ours.peak_mb:.0f}", ours.certificate)
    memory = f"{ours.peak_mb:.0f} / {c.peer.peak_mb:.0f}"
    certificate = f"{ours.certificate}; {c.peer.side}: {c.peer.certificate}"
    theirs = f"{c.peer.best:.3g}"
    return _cells(c.name, ours.threads, c.peer.side, theirs, mine, f"{c.ratio:.2f}", memory, certificate)


def _cells(*values: object) -> str:
    return "| " + " | ".join(str(value).replace("|", "\\|") for value in values) + " |"


if __name__ == "__main__":
    write(Path(sys.argv[1]), DOCS / "performance.md")
