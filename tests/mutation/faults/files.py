"""Faults in model files."""

from __future__ import annotations

from mutation.fault import Fault

FILES = "src/mercer/files/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "an index one too large passes",
        FILES + "facts.py",
        "value.size and value.max() >= limit:",
        "value.size and value.max() > limit:",
        "tests/files/test_checks.py",
    ),
    Fault(
        "negative indices pass",
        FILES + "facts.py",
        "    return (not value.size or value.min() >= 0) and sizes.agree(fact.sizes, value.shape)\n",
        "    return sizes.agree(fact.sizes, value.shape)\n",
        "tests/files/test_checks.py",
    ),
    Fault(
        "the columns of kept rows are not compared",
        FILES + "facts.py",
        "    sizes.later.append(ask)\n    return True\n",
        "    return True\n",
        "tests/files/test_checks.py",
    ),
    Fault(
        "tensors that nothing names are let in",
        FILES + "load.py",
        "    if unused:\n",
        "    if len(unused) > 1:\n",
        "tests/files/test_checks.py",
    ),
    Fault(
        "the checksum of the numbers leaves out the last tensor",
        FILES + "container.py",
        "    for name in sorted(tensors):\n",
        "    for name in sorted(tensors)[:-1]:\n",
        "tests/files/test_damaged_files.py",
    ),
    Fault(
        "an array in Fortran's order comes back transposed",
        FILES + "read.py",
        'turned = node.get("order", "C") == "F"',
        "turned = False",
        "tests/files/test_round_trip.py",
    ),
    Fault(
        "a file is written in place",
        "src/mercer/places.py",
        'draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")',
        "draft = path",
        "tests/files/test_saving.py",
    ),
)
