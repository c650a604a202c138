"""Small deliberate bugs, a file for each room: what each one breaks, where, and which tests should notice.

They are of the kind that a tired person writes: a sign, an off-by-one, a branch that forgets to roll back, a
number that is stated but not the right one, a claim that nobody compares. `run.py` puts them in one at a
time; `test_faults.py` sees that each still fits the code.
"""

from __future__ import annotations

from mutation.fault import Fault
from mutation.faults import choose, core, files, gram, kernels, machines, outside, solve, theory, verify

ROOMS = (kernels, gram, solve, machines, verify, theory, choose, files, outside, core)
FAULTS: tuple[Fault, ...] = tuple(fault for room in ROOMS for fault in room.FAULTS)
ROOM_OF: dict[Fault, str] = {fault: room.__name__.split(".")[-1] for room in ROOMS for fault in room.FAULTS}
