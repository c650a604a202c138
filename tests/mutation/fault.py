"""What a deliberate small bug is: where it is put, and which tests should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """In `file`, `old` becomes `new`; the pytest arguments `tests` should then fail."""

    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def in_core(self) -> bool:
        return self.file.startswith("core/")
