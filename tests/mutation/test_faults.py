"""The list of deliberate faults keeps up with the code: each one still fits, in one place,
and names tests that exist.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from mutation.fault import Fault
from mutation.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.file}: {f.what}")
def test_the_fault_can_be_put_in(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text()
    assert source.count(fault.old) == 1
    assert fault.old != fault.new
    for word in shlex.split(fault.tests):
        if word.startswith(("tests/", "src/")):
            assert (ROOT / word.split("::")[0]).exists()


def test_every_room_has_faults() -> None:
    rooms = {Path(f.file).parts[2] for f in FAULTS if f.file.startswith("src/")}
    assert {"kernels", "gram", "solve", "machines", "theory", "choose", "files", "cli", "sklearn"} <= rooms
    assert any(f.in_core for f in FAULTS)


def test_no_two_faults_have_the_same_description() -> None:
    assert len({f.what for f in FAULTS}) == len(FAULTS)
