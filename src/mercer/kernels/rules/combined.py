"""Kernels made of others: what all construction rules share."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.logarithms import Logarithm, Pairs
from mercer.kernels.programs.program import Place, Pull
from mercer.kernels.proofs.enclosure import Enclosed, Sample
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.sweep import Sweep
from mercer.samples import optional
from mercer.typing import Array

K = TypeVar("K", bound=Kernel)

# Nested rules; every method follows the nesting by calling itself.
DEEPEST = 100


class Combined(Kernel):
    """A kernel made of others."""

    # How many normalized() lie inside one another at a kernel that is one.
    normalizations: int = 0

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
        if inner is None:
            return None
        return Proof(self, fact, (inner,), conditions)


class View(Unary):
    """A kernel on what a map makes of the rows."""

    # Why the Gram matrix is one of the kernel inside.
    why: ClassVar[str]

    @abstractmethod
    def mapped(self, x: Rows) -> Rows:
        """The rows that the kernel inside sees."""

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        return self.with_children([self.kernel.resolved_on(self.mapped(rows), weight)])

    def block(self, x: Rows, z: Rows | None) -> Array:
        return self.kernel.block(self.mapped(x), optional(self.mapped, z))

    def diagonal(self, x: Rows) -> Array:
        return self.kernel.diagonal(self.mapped(x))

    def program(self, at: Place) -> None:
        self.kernel.program(at.mapped(self.mapped, self._way_back(at)))

    def _way_back(self, at: Place) -> Pull | None:
        """How adjoints of mapped rows return to the rows; None where the map has no known derivative."""
        return None

    def contract(self, W: Array, at: Sweep) -> None:
        self.kernel.contract(W, at.mapped(self.mapped))

    def logarithm(self, at: Pairs) -> Logarithm:
        return self.kernel.logarithm(at.through(self.mapped))

    @remembered
    def proof(self) -> Proof | None:
        return self._passed_on(Fact("composition with a map", self.why))

    def root_proof(self) -> Proof | None:
        return self._passed_on(Fact("infinitely divisible", self.why), root=True)


class ViewOfAnything(View):
    """A kernel after a map ψ that decides by itself what it takes."""

    why: ClassVar = "the Gram matrix is that of k at the points ψ(x_i)"

    def columns_needed(self) -> tuple[int | None, int]:
        return None, 1

    def takes_things(self) -> bool:
        return True

    def reads_numbers(self) -> bool:
        """The map decides what it takes."""
        return False

    def needs_nonnegative(self) -> bool:
        return False

    def enclosed(self, sample: Sample) -> Enclosed:
        """ψ is whatever it returns: any map will do, a rounded one too."""
        return self.kernel.enclosed(Sample.of(self.mapped(sample.rows)))


class Nary(Combined):
    """A kernel made of several."""

    parts: tuple[Kernel, ...]

    def children(self) -> list[tuple[str, Kernel]]:
        return [(f"k{i}", part) for i, part in enumerate(self.parts, 1)]

    def _write_parts(self, at: Place, step: str) -> None:
        """The programs of all parts, put together two by two."""
        for i, (name, part) in enumerate(self.children()):
            part.program(at.child(name))
            if i:
                at.step(step)

    def _premises(self) -> tuple[Proof, ...] | None:
        return all_of(part.proof() for part in self.parts)


def all_of(proofs: Iterable[Proof | None]) -> tuple[Proof, ...] | None:
    """The proofs, or None where one is missing."""
    every = tuple(proofs)
    found = tuple(p for p in every if p is not None)
    if len(found) == len(every):
        return found
    return None
