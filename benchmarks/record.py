"""What a run of the benchmarks leaves behind: one JSON with every row, and one page made of it.

A run is measured on one kind of processor with one way of giving memory to results:

    kind     the instruction set of our core, with the kernel of OpenBLAS and the loops of NumPy that a CPU
             of that kind gets: what the machine has, or less, so that one machine shows several kinds
    memory   "fresh": large results lie in pages that the system hands out anew, as Python does by default;
             "reused": the allocator keeps pages and hands them out again
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PEERS = (
    "numpy",
    "scipy",
    "scikit-learn",
    "scikit-learn-intelex",
    "torch",
    "gpytorch",
    "tinygp",
    "jax",
    "pykeops",
    "tslearn",
)
BLAS_KERNELS = {"baseline": "Prescott", "avx2": "Haswell", "avx512": "SkylakeX"}
REUSED = {"MALLOC_MMAP_THRESHOLD_": str(2**34), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""Settings of glibc under which freed pages stay with the process."""


@dataclass(frozen=True)
class Row:
    """One side of one cell. `ratio` is the strongest peer's time over mercer's, on mercer's rows."""

    suite: str
    cell: str
    threads: int
    side: str
    best: float
    median: float
    ratio: float | None
    roof: float | None
    peak_mb: float
    certificate: str


@dataclass
class Run:
    """The rows of one suite, on one kind of processor, with one way of giving memory, on so many threads."""

    suite: str
    kind: str
    memory: str
    threads: int
    repeat: int
    quick: bool
    rows: list[Row]


def environment(kind: str, memory: str) -> dict[str, str]:
    """The variables under which a process measures this kind of processor and memory."""
    out = {"MERCER_BENCHMARK_ISA": kind, "OPENBLAS_CORETYPE": BLAS_KERNELS[kind]}
    beyond = _numpy_features_beyond(kind)
    if beyond:
        out["NPY_DISABLE_CPU_FEATURES"] = " ".join(beyond)
    if memory == "reused":
        out |= REUSED
    return out


def _numpy_features_beyond(kind: str) -> list[str]:
    """Groups of instructions for which this NumPy has loops, and which a CPU of that kind lacks."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    avx512 = [name for name in __cpu_dispatch__ if "512" in name or name == "X86_V4"]
    rest = [name for name in __cpu_dispatch__ if name not in avx512]
    lacking = {"avx512": [], "avx2": avx512, "baseline": avx512 + rest}[kind]
    return [name for name in lacking if __cpu_features__.get(name)]


def kinds_here() -> list[str]:
    """The instruction sets of the core that this machine has, the one it would choose first."""
    from mercer import _core

    chosen = _core.instruction_set()
    here = [isa for isa in BLAS_KERNELS if _core.force_isa(isa)]
    _core.force_isa(chosen)
    return [chosen, *(isa for isa in reversed(here) if isa != chosen)]


def force_kind() -> None:
    """Take the instruction set that the environment names; without a name, the machine's best stays."""
    kind = os.environ.get("MERCER_BENCHMARK_ISA")
    if kind is None:
        return
    from mercer import _core

    if not _core.force_isa(kind):
        raise SystemExit(f"this machine has no {kind}; it has {', '.join(kinds_here())}.")


def machine(note: str = "") -> dict[str, Any]:
    """What was measured on: processor, cores, memory, versions, day; and what else was going on there."""
    versions = {}
    for name in ("mercer", *PEERS):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "python": platform.python_version(),
        "versions": versions,
        "note": note,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def save(path: Path, machine: dict[str, Any], runs: Iterable[Run]) -> None:
    """Write the JSON whole, or not at all."""
    text = json.dumps({"machine": machine, "runs": [asdict(run) for run in runs]}, indent=1)
    half = path.with_suffix(".part")
    half.write_text(text + "\n")
    half.replace(path)


def load(path: Path) -> tuple[dict[str, Any], list[Run]]:
    """The machine and the runs of a JSON that `save` wrote."""
    stored = json.loads(path.read_text())
    runs = [Run(**{**run, "rows": [Row(**row) for row in run["rows"]]}) for run in stored["runs"]]
    return stored["machine"], runs


def known(path: Path) -> list[Row]:
    """The rows of a JSON that were measured on the kind of processor that this process shows."""
    kind = os.environ.get("MERCER_BENCHMARK_ISA")
    _, runs = load(path)
    return [row for run in runs if run.kind == kind for row in run.rows]
