"""The page of the benchmarks, made of the JSONs that `python -m benchmarks all` writes, one for each machine.

`python -m benchmarks.page benchmarks/results/*.json` writes it, and its pictures, and measures nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import ratios
from benchmarks.record import Row, Run, load

DOCS = Path(__file__).parents[1] / "docs"

MACHINE = "{date}: {processor}, {cores}, {memory} GiB, Python {python}; {versions}.{note}"

HEAD = """# Performance

{machines}

Every cell ran mercer and its peers in turn, in one process, on the same data. A **ratio** is the time of the
strongest peer divided by mercer's: 2 means that mercer took half the time, 0.5 that it took twice as long.
Shared machines are noisy, so less than 25 % either way counts as a tie.

Repeat it with `python -m benchmarks all --report`, which writes this page from what is stored in
`benchmarks/results` and says nothing that is not there. `python -m benchmarks engine --only RBF` runs the
cells of one suite whose names contain a text. The words about speed are on the page [how fast](speed.md).

"""

METHOD = """## How it was measured

One thread is measured in CPU seconds, two by the wall; the best of up to {repeat} runs counts; there are
{cells} cells. What had taken ten seconds was not run again; a peer that took three times the seconds of the
strongest ran once, and not again with more threads. Memory is the peak above what the process held before,
in MB. Every table has the answer's certificate beside the time: a fast answer that is not the answer would
be seen there.
A cell with the word *baseline* has our core kept to the instructions of every x86-64 processor, one with
*avx2* to those of AVX2, beside peers that use all; the summary leaves both out.

"""

MORE_THREADS = """mercer's seconds on one thread (of a processor) over those on several (by the wall), of
the cells that were measured with both, in different runs.
"""

KIND = {"avx512": "AVX-512", "avx2": "AVX2", "baseline": "x86-64 baseline"}
# What a machine that has more was kept from.
LESS = {
    "avx512": "",
    "avx2": " (our core, OpenBLAS and NumPy kept from AVX-512; peers with code of their own may use it)",
    "baseline": " (our core, OpenBLAS and NumPy kept to SSE; peers may use more)",
}
# Sides that show our core with fewer instructions than the machine has.
NARROWER = (" baseline", " avx2")
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


@dataclass(frozen=True)
class Measured:
    """A machine, and what was measured on it."""

    machine: dict[str, Any]
    runs: list[Run]

    @property
    def kind(self) -> str:
        """The machine's own kind of processor, which is measured first."""
        return self.runs[0].kind

    @property
    def title(self) -> str:
        """The kind of processor, and which one where several machines have that kind."""
        called = self.machine.get("called")
        return f"{KIND[self.kind]}, {called}" if called else KIND[self.kind]

    @property
    def picture(self) -> str:
        called = str(self.machine.get("called", "")).lower().replace(" ", "-")
        return f"performance-{self.kind}{'-' if called else ''}{called}.svg"

    @cached_property
    def found(self) -> list[Compared]:
        return compared(self.runs)

    @cached_property
    def own(self) -> list[Compared]:
        """The cells with a peer, on the machine's own kind of processor, with memory as Python has it."""
        kept = [c for c in self.found if c.peer is not None and c.run.kind == self.kind]
        kept = [c for c in kept if not c.ours.side.endswith(NARROWER)]
        return [c for c in kept if c.run.memory == "fresh"] or kept


def write(sources: Sequence[Path], page: Path) -> None:
    """Write the page of some JSONs, and their pictures beside it."""
    page.write_text(text(sources), encoding="utf-8")
    for each in _read(sources):
        picture = page.parent / "pictures" / each.picture
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(ratios.svg(_by_suite(each.own)), encoding="utf-8")


def text(sources: Sequence[Path]) -> str:
    """The page: what it comes to on each machine, where a peer is faster on any, then all cells."""
    measured = _read(sources)
    parts = [_head(measured), *(_summary(each) for each in measured)]
    parts.append(_behind(measured))
    for each in measured:
        parts += _second_core(each)
    parts.append(_method([run for each in measured for run in each.runs]))
    for each in measured:
        for kind in dict.fromkeys(run.kind for run in each.runs):
            shown_as = each.title if kind == each.kind else f"{KIND[kind]}{LESS[kind]}"
            parts.append(f"## All cells: {shown_as}\n")
            for suite in dict.fromkeys(run.suite for run in each.runs if run.kind == kind):
                shown = [c for c in each.found if (c.run.kind, c.run.suite) == (kind, suite)]
                parts.append(_suite(suite, shown))
    return "\n".join(parts)


def _read(sources: Sequence[Path]) -> list[Measured]:
    return [Measured(*load(source)) for source in sources]


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


def _by_suite(found: list[Compared]) -> dict[str, list[tuple[str, float]]]:
    out: dict[str, list[tuple[str, float]]] = {}
    for c in found:
        out.setdefault(c.run.suite, []).append((f"{c.name}, {_counted(c.ours.threads)}", c.ratio))
    return out


def _head(measured: list[Measured]) -> str:
    machines = [f"- **{each.title}**, {_machine(each.machine)}" for each in measured]
    return HEAD.format(machines="\n".join(["Measured on", "", *machines]))


def _machine(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return MACHINE.format(
        date=machine["date"],
        processor=machine["processor"],
        cores="1 core" if machine["cores"] == 1 else f"{machine['cores']} cores",
        memory=machine["memory GiB"],
        python=machine["python"],
        versions=versions,
        note=f" {machine['note']}" if machine.get("note") else "",
    )


def _summary(measured: Measured) -> str:
    """One line for each suite: how many cells are ahead, level and behind, and the middle and worst ratio."""
    own = measured.own
    lines = [f"## In short: {measured.title}\n"]
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
    lines += ["", f"![{shown}](pictures/{measured.picture})", ""]
    return "\n".join(lines)


def _titled(suite: str, count: int, threads: list[int]) -> str:
    """The suite, with its threads where the page has more than one number of them."""
    if len(threads) == 1:
        return suite
    return f"{suite}, {_counted(count)}"


def _counted(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _second_core(measured: Measured) -> list[str]:
    """How many times as fast mercer is with more threads, by suite; nothing where that was not asked."""
    own = measured.own
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
        f"## What more threads give: {measured.title}\n",
        MORE_THREADS,
        "| suite | threads | cells | median | least | most |",
    ]
    return ["\n".join([*head, "|---|---|---|---|---|---|", *lines, ""])]


def _tally(suite: str, values: list[float]) -> str:
    faster = sum(value >= TIE for value in values)
    slower = sum(value <= 1 / TIE for value in values)
    tie = len(values) - faster - slower
    return _cells(suite, len(values), faster, tie, slower, f"{median(values):.2f}", f"{min(values):.2f}")


def _behind(measured: list[Measured]) -> str:
    """The cells in which a peer is faster by more than a tie, the worst first."""
    found = [(each, c) for each in measured for c in each.found if c.ratio <= 1 / TIE]
    behind = sorted(found, key=lambda pair: pair[1].ratio)
    if not behind:
        return "## Where a peer is faster\n\nIn no cell by 25 % or more.\n"
    lines = ["## Where a peer is faster\n"]
    lines.append("| suite | cell | threads | processor, memory | peer | s | mercer s | ratio |")
    lines.append("|---|---|---|---|---|---|---|---|")
    for each, c in behind:
        assert c.peer is not None
        machine = each.title if c.run.kind == each.kind else KIND[c.run.kind]
        where = f"{machine}, {c.run.memory}"
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
    write([Path(source) for source in sys.argv[1:]], DOCS / "performance.md")
