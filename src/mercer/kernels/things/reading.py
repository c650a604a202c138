"""Named maps from columns or things to numbers, as in `RBF().of(Date("years"))`.

A reading is a value like a kernel: frozen, checked at birth, written and read as text. Where it has to see
data first (means, a vocabulary), it is open until `resolved_on` closes it, as open lengthscales are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.kernels.leaves.writing import latex_value, write_value
from mercer.kernels.tuning import fields_of, hashable
from mercer.typing import Array, Setting

READINGS: dict[str, type[Reading]] = {}

R = TypeVar("R", bound="type[Reading]")

# Where a reading keeps what equality compares, and its hash: both are asked often, of many numbers.
KEY = "_remembered_key"
HASH = "_remembered_hash"


@dataclass_transform(frozen_default=True, eq_default=False)
def reading(cls: R) -> R:
    """A map with a name: frozen, checked at birth, readable by `mercer.parse`."""
    made = dataclass(frozen=True, eq=False, repr=False)(cls)
    for f in fields_of(made):
        if not f.metadata.keys() & {"domain", "given"}:
            raise ParameterError(
                f"{cls.__name__}: the field {f.name!r} is not declared. Write for example "
                f"{f.name}: float = positive(1.0), or given(...) for what is no number (mercer.params)."
            )
    READINGS[made.__name__] = made
    return made  # type: ignore[return-value]


class Reading(ABC):
    """What turns rows into rows of numbers, dense or sparse."""

    def __post_init__(self) -> None:
        for f in fields_of(self):
            if "domain" in f.metadata:
                checked = f.metadata["domain"].check(getattr(self, f.name), type(self).__name__, f.name)
                object.__setattr__(self, f.name, checked)

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def read(self, x: Rows) -> Rows:
        """The rows as numbers; the same map for every sample."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_open(self) -> bool:
        """Whether it has to see data before it can read."""
        return False

    def resolved_on(self, x: Rows, weight: Array | None) -> Reading:
        """The reading closed by these rows."""
        return self

    def pull(self, x: Rows, adjoint: Array) -> Array | None:
        """Adjoints of what was read as adjoints of the rows; None where the rows are no numbers."""
        return None

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def text(self) -> str:
        """The reading as `mercer.parse` reads it inside `.of(…)`."""
        parts: list[str] = []
        for position, f in enumerate(fields_of(self)):
            value = getattr(self, f.name)
            if value == f.default:
                continue
            shown = write_value(value)
            parts.append(shown if position == len(parts) else f"{f.name}={shown}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def latex(self) -> str:
        inside = ", ".join(latex_value(getattr(self, f.name)) for f in fields_of(self))
        return (
            rf"\mathrm{{{type(self).__name__}}}_{{{inside}}}"
            if inside
            else rf"\mathrm{{{type(self).__name__}}}"
        )

    def changed(self, **values: Setting) -> Reading:
        """A copy with other values."""
        now = {f.name: getattr(self, f.name) for f in fields_of(self)}
        return type(self)(**{**now, **values})

    def key(self) -> tuple[Hashable, ...]:
        """What equality compares: class and fields; put together once."""
        known: tuple[Hashable, ...] | None = self.__dict__.get(KEY)
        if known is None:
            known = (type(self), *(hashable(getattr(self, f.name)) for f in fields_of(self)))
            object.__setattr__(self, KEY, known)
        return known

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Reading) and self.key() == other.key())

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get(HASH)
        if known is None:
            known = hash(self.key())
            object.__setattr__(self, HASH, known)
        return known

    def __getstate__(self) -> dict[str, Setting]:
        """Without what follows from it; a hash is another one in another process."""
        return {name: value for name, value in self.__dict__.items() if name not in (KEY, HASH)}

    def __repr__(self) -> str:
        return self.text()


def find_reading(name: str) -> Callable[..., Reading] | None:
    """The reading of that name, if there is one."""
    return READINGS.get(name)
