"""How much one request may ask for, and how many are in hand at once; and the refusal of what is too much."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


def _workers() -> int:
    return min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    rows, bytes : of one request. characters : of one text.
    workers : predictions that are computed at the same time. waiting : requests that are in hand at the same
    time; what comes on top is asked to come again. seconds : for a body to arrive.
    """

    rows: int = 10_000
    bytes: int = 10_000_000
    characters: int = 100_000
    workers: int = field(default_factory=_workers)
    waiting: int = 64
    seconds: float = 30.0


class Refusal(Exception):
    """What was asked cannot be answered: the status of HTTP, a sentence, and the row and column at fault."""

    def __init__(self, status: int, sentence: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.row = row
        self.column = column

    def as_json(self) -> dict[str, object]:
        """The body of the answer; rows are counted from 1."""
        told: dict[str, object] = {"detail": self.sentence}
        if self.row is not None:
            told["row"] = self.row
        if self.column is not None:
            told["column"] = self.column
        return told
