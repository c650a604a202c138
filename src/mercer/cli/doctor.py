"""`mercer doctor`: what this machine gives to mercer, and what stands in its way.

The object that --json prints, schema "mercer.doctor/1": `versions`, `processor`, `instruction_set`, `cores`,
`threads`, `blas`, `memory`, `extras`, and `advice`, a list of sentences, empty if nothing is wrong.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from mercer.cli.talk import json_text

LIBRARIES = ("mercer", "numpy", "scipy", "scikit-learn", "polars", "narwhals", "threadpoolctl")
# What optional packages bring.
EXTRAS = {"matplotlib": "pictures: pip install 'mercer[plot]'"}
# Bytes below which many machines have to work in tiles.
LITTLE_MEMORY = 2**31


def run_doctor(as_json: bool) -> int:
    """Look, print; return the exit code, which is 0 whatever is found."""
    found = examined()
    if as_json:
        print(json_text({"schema": "mercer.doctor/1", **found}))
    else:
        print(_text(found))
    return 0


def examined() -> dict[str, object]:
    """What was found out, by name."""
    # SciPy brings a copy of BLAS of its own
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from mercer.gram.core import instruction_set
    from mercer.threads import available

    blas = [
        {
            "library": os.path.basename(str(entry.get("filepath", ""))),
            "api": entry.get("internal_api"),
            "threads": entry.get("num_threads"),
            "kernel": entry.get("architecture"),
        }
        for entry in threadpool_info()
        if entry.get("user_api") == "blas"
    ]
    total, free = _memory()
    return {
        "versions": {name: _version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "instruction_set": instruction_set(),
        "cores": _cores(),
        "threads": available(),
        "blas": blas,
        "memory": {"total": total, "free": free},
        "extras": {name: find_spec(name) is not None for name in EXTRAS},
        "advice": _advice(available(), free),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> tuple[int | None, int | None]:
    """Bytes of memory, all and free; None where the system does not say."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    except (AttributeError, ValueError, OSError):
        return None, None


def _advice(threads: int, free: int | None) -> list[str]:
    out: list[str] = []
    if threads < _cores():
        out.append(
            f"{threads} of {_cores()} cores are used, because OMP_NUM_THREADS or threadpoolctl says so. "
            "Unset OMP_NUM_THREADS to use them all."
        )
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1.5 * _cores():
        out.append(
            f"the machine is busy: {busy:.1f} processes for {_cores()} cores. Timings mean little now."
        )
    if free is not None and free < LITTLE_MEMORY:
        out.append(f"only {free / 2**30:.1f} GiB of memory are free: pass memory='1GiB' to machines.")
    for name, what in EXTRAS.items():
        if find_spec(name) is None:
            out.append(f"{name} is not installed, so there are no {what}")
    return out


def _text(found: dict[str, object]) -> str:
    versions, memory, blas = found["versions"], found["memory"], found["blas"]
    assert isinstance(versions, dict) and isinstance(memory, dict) and isinstance(blas, list)
    lines = [
        f"mercer {versions['mercer']}, Python {found['python']}, {found['system']}",
        "libraries        "
        + ", ".join(f"{name} {number}" for name, number in versions.items() if name != "mercer"),
        f"processor        {found['processor']}",
        f"instruction set  {found['instruction_set']}",
        f"cores            {found['cores']}, threads used: {found['threads']}",
    ]
    lines += [
        f"BLAS             {entry['api']} for {entry['kernel']}, {entry['threads']} threads" for entry in blas
    ]
    if memory["total"] is not None:
        lines.append(f"memory           {memory['total'] / 2**30:.1f} GiB, free {memory['free'] / 2**30:.1f}")
    advice = found["advice"]
    assert isinstance(advice, list)
    return "\n".join([*lines, *(f"! {sentence}" for sentence in advice)])
