"""What a solver hands back: the value it found, and a certificate that says how, and how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from mercer.notebook import items, table

Value = TypeVar("Value")


class Status(StrEnum):
    """How a solver ended, from the best to what matters most; each compares and prints as its word.

    >>> Status.LIMIT == "limit", Status("limit").meaning
    (True, 'the iterations or seconds allowed were used up')
    >>> Status.worst(["converged", "failed", "stopped"])
    'failed'
    """

    CONVERGED = "converged", "the tolerance was met"
    STAGNATED = "stagnated", "no further progress was possible before the tolerance was met"
    LIMIT = "limit", "the iterations or seconds allowed were used up"
    STOPPED = "stopped", "a callback asked for it; the best value so far was kept"
    FAILED = "failed", "the problem is not one that the method can solve"
    INTERRUPTED = "interrupted", "stopped from the keyboard; the best value so far was kept"

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Status:
        status = str.__new__(cls, word)
        status._value_ = word
        status.meaning = meaning
        return status

    def __repr__(self) -> str:
        return repr(str(self))

    @property
    def on_request(self) -> bool:
        """Whether a callback or Ctrl-C ended it."""
        return self is Status.STOPPED or self is Status.INTERRUPTED

    @property
    def as_asked(self) -> bool:
        """Whether it needs no warning: the answer is as good as asked, or whoever asked for less knows it."""
        return self is Status.CONVERGED or self.on_request

    @staticmethod
    def worst(statuses: Iterable[str]) -> Status:
        """The one that matters most, in the order above."""
        return max(map(Status, statuses), key=_SEVERITY.index)


_SEVERITY = list(Status)


class NoteKind(StrEnum):
    """What a note is about, where code asks for it."""

    ROUNDING = "rounding"
    ITERATIONS = "iterations"
    SECONDS = "seconds"
    WORK = "work"
    UNBOUNDED = "unbounded"
    NOT_FINITE = "not finite"
    STATIONARY_POINT = "stationary point"
    BEST_START = "best start"
    FEW_FOLDS = "few folds"


class Note(str):
    """A sentence of a certificate, with the kind by which code finds it: nobody has to search for its words.

    >>> note = Note("the seconds allowed were used up", NoteKind.SECONDS)
    >>> note, has_note([note, "another"], NoteKind.SECONDS), has_note(["another"], NoteKind.SECONDS)
    ('the seconds allowed were used up', True, False)
    """

    kind: NoteKind | None

    def __new__(cls, text: str, kind: NoteKind | None = None) -> Note:
        note = super().__new__(cls, text)
        note.kind = kind
        return note


def has_note(notes: Iterable[str], kind: NoteKind) -> bool:
    """Whether one of the notes is of that kind."""
    return any(isinstance(note, Note) and note.kind is kind for note in notes)


_NUMBERS = (
    "iterations",
    "seconds",
    "primal",
    "dual",
    "gap",
    "kkt",
    "worst_row",
    "residual",
    "added_diagonal",
)


@dataclass(frozen=True)
class Certificate:
    """How an answer was got and how good it is; what does not apply is None.

    `residual` is the worst relative residual, recomputed from the answer and never taken from a recurrence;
    `residuals` has one for each right-hand side or eigenpair; `worst_row` is the row where it is largest.
    `added_diagonal` is what the solver added to the matrix on its own account: 0 unless a note says
    otherwise.

    >>> print(Certificate("converged", "conjugate gradients", iterations=12, seconds=0.5, residual=2.5e-11))
    converged: conjugate gradients, 12 iterations, 0.5 s, residual 2.5e-11
    """

    status: Status
    method: str
    iterations: int | None = None
    seconds: float | None = None
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None
    kkt: float | None = None
    worst_row: int | None = None
    residual: float | None = None
    residuals: tuple[float, ...] | None = None
    added_diagonal: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.status) is not Status:
            object.__setattr__(self, "status", Status(self.status))

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    def says(self, kind: NoteKind) -> bool:
        """Whether a note of that kind is among the notes."""
        return has_note(self.notes, kind)

    def to_dict(self) -> dict[str, object]:
        """Plain numbers, text, lists and None: ready for JSON.

        >>> Certificate("limit", "Lanczos").to_dict()["status"]
        'limit'
        """
        out = asdict(self)
        out["status"] = str(self.status)
        out["notes"] = [str(note) for note in self.notes]
        out["residuals"] = None if self.residuals is None else list(self.residuals)
        return out

    def html(self) -> str:
        """For notebooks: the numbers that there are, and every note."""
        rows = [("method", self.method), ("status", f"{self.status}: {self.status.meaning}")]
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None:
                rows.append((name.replace("_", " "), f"{value:.6g}"))
        return table(("certificate", ""), rows) + items(self.notes)

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        parts = [self.method]
        if self.iterations is not None:
            parts.append(f"{self.iterations} iteration{'' if self.iterations == 1 else 's'}")
        if self.seconds is not None:
            parts.append(f"{self.seconds:.3g} s")
        for name in ("primal", "dual", "gap", "kkt", "residual"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} {value:.3g}")
        if self.worst_row is not None and not self.converged:
            parts.append(f"worst row {self.worst_row}")
        if self.added_diagonal:
            parts.append(f"added diagonal {self.added_diagonal:.3g}")
        return "\n".join([f"{self.status}: {', '.join(parts)}", *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True)
class Solution(Generic[Value]):
    """What was found, and its certificate."""

    value: Value
    certificate: Certificate

    def __str__(self) -> str:
        return str(self.certificate)


def joined_certificate(parts: list[Certificate]) -> Certificate:
    """One certificate for several problems: sums, the worst violation, and the worst status."""
    if len(parts) == 1:
        return parts[0]

    iterations = [c.iterations for c in parts]
    said = dict.fromkeys(note for c in parts for note in c.notes)
    return replace(
        max(parts, key=lambda c: c.kkt or 0.0),
        status=Status.worst(c.status for c in parts),
        iterations=None if None in iterations else sum(n or 0 for n in iterations),
        seconds=_total([c.seconds for c in parts]),
        primal=_total([c.primal for c in parts]),
        dual=_total([c.dual for c in parts]),
        gap=_total([c.gap for c in parts]),
        notes=tuple(said),
    )


def _total(each: Sequence[float | None]) -> float | None:
    """The sum, or None where a part is not known."""
    known = [value for value in each if value is not None]
    return sum(known) if len(known) == len(each) else None
