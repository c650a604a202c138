"""A leaf whose rows are things: what it says of a row that it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, NoReturn, TypeVar

from mercer.errors import InputTypeError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import Leaf

T = TypeVar("T")


class OnThings(Leaf):
    """A kernel of things, each read by itself."""

    is_family: ClassVar = True
    things_are: ClassVar[str] = "things"
    """What one row must be, in words: for errors."""

    def takes_things(self) -> bool:
        return True

    def refuse(self, thing: Thing, i: int, name: str, why: str = "") -> NoReturn:
        """The error of a row that this kernel cannot read."""
        raise unreadable(type(self).__name__, self.things_are, thing, i, name, why)

    def each(self, read: Callable[[Thing], T], things: Sequence[Thing], name: str) -> Iterator[T]:
        """What `read` makes of every thing; one that it cannot read is refused by its row."""
        for i, thing in enumerate(things):
            try:
                yield read(thing)
            except (TypeError, AttributeError) as error:
                try:
                    self.refuse(thing, i, name, str(error))
                except InputTypeError as refusal:
                    raise refusal from error


def unreadable(owner: str, things_are: str, thing: Thing, i: int, name: str, why: str) -> InputTypeError:
    """The error of a row that a kernel cannot read."""
    got = "None" if thing is None else f"a {type(thing).__name__}"
    because = f" ({why})" if why else ""
    return InputTypeError(f"{owner} reads {things_are}, but row {i} of {name} is {got}{because}.")
