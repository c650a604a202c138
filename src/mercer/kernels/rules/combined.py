"""Kernels made of others: what all construction rules share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TypeVar

from mercer.errors import ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.proofs.proof import Fact, Proof

K = TypeVar("K", bound=Kernel)

# Nested rules; every method follows the nesting by calling itself.
DEEPEST = 100


class Combined(Kernel):
    """A kernel made of others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        depth = 1 + max(child.nesting for _, child in self.children())
        if depth > DEEPEST:
            raise ParameterError(
                f"this kernel would be nested {depth} deep; at most {DEEPEST} are allowed. Sums of many "
                "terms are not "
                "nested: build them as k1 + k2 + …, and write repeated products as powers."
            )
        object.__setattr__(self, "nesting", depth)


def remembered(prove: Callable[[K], Proof | None]) -> Callable[[K], Proof | None]:
    """A proof that is looked for once: proofs of parts are asked for again and again on the way up."""

    @functools.wraps(prove)
    def proof(self: K) -> Proof | None:
        if "_remembered_proof" not in self.__dict__:
            object.__setattr__(self, "_remembered_proof", prove(self))
        found: Proof | None = self.__dict__["_remembered_proof"]
        return found

    return proof


class Unary(Combined):
    """A kernel made of one kernel."""

    kernel: Kernel

    def children(self) -> list[tuple[str, Kernel]]:
        return [("kernel", self.kernel)]

    def with_children(self, children: list[Kernel]) -> Kernel:
        return self.changed(kernel=children[0])

    def _passed_on(self, fact: Fact, conditions: tuple[str, ...] = (), *, root: bool = False) -> Proof | None:
        """The proof by one rule whose only premise is the part's own proof."""
        inner = self.kernel.root_proof() if root else self.kernel.proof()
        return None if inner is None else Proof(self, fact, (inner,), conditions)


class Nary(Combined):
    """A kernel made of several."""

    parts: tuple[Kernel, ...]

    def children(self) -> list[tuple[str, Kernel]]:
        return [(f"k{i}", part) for i, part in enumerate(self.parts, 1)]

    def _premises(self) -> tuple[Proof, ...] | None:
        return all_of(part.proof() for part in self.parts)


def all_of(proofs: Iterable[Proof | None]) -> tuple[Proof, ...] | None:
    """The proofs, or None where one is missing."""
    every = tuple(proofs)
    found = tuple(p for p in every if p is not None)
    return found if len(found) == len(every) else None
