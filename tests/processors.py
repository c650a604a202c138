"""Run tests under every BLAS kernel and every instruction set of the core that this machine has.

    python -m tests.processors tests/solve tests/machines/test_gp_classification.py

OpenBLAS chooses its kernel from OPENBLAS_CORETYPE when it is loaded, so every choice is a process of its own.
Exit code 1 if any fails.
"""

import os
import subprocess
import sys

from mercer import _core

BLAS = {"Prescott": "baseline", "Haswell": "avx2", "SkylakeX": "avx512"}  # what each kernel needs of the CPU


def choices() -> list[dict[str, str]]:
    """The environments to run in: BLAS kernels with one and two threads,
    then instruction sets of the core.
    """
    before = _core.instruction_set()
    here = [isa for isa in ("baseline", "avx2", "avx512") if _core.force_isa(isa)]
    _core.force_isa(before)
    out = []
    for kernel, needed in BLAS.items():
        if needed in here:
            out += [{"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": n} for n in ("1", "2")]
        else:
            print(f"left out: OPENBLAS_CORETYPE={kernel}, this CPU has no {needed}", flush=True)
    return out + [{"MERCER_TEST_ISA": isa, "OPENBLAS_NUM_THREADS": "1"} for isa in here if isa != before]


def main() -> None:
    failed = []
    for choice in choices():
        name = " ".join(f"{key}={value}" for key, value in choice.items())
        print(f"── {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *sys.argv[1:]]
        if subprocess.run(command, env={**os.environ, **choice}).returncode:
            failed.append(name)
    print(f"{len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
