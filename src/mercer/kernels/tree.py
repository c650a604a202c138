"""An expression as a tree: the one way to walk it, and the one way to change it everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, cast

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


class Tree:
    """A kernel and its parts, which have names: `kernel`, or `k1`, `k2`, …"""

    is_family: ClassVar[bool] = True

    def children(self) -> list[tuple[str, Kernel]]:
        """The parts by name."""
        return []

    def with_children(self, children: list[Kernel]) -> Kernel:
        """The same construction of other parts."""
        return cast("Kernel", self)

    def walk(self) -> Iterator[Kernel]:
        """The kernel and all its parts, each before the parts of its own, from left to right.

        >>> from mercer import RBF, White
        >>> [str(k) for k in (2.0 * RBF(1.0) + White(0.1)).walk()]
        ['2.0*RBF(1.0) + White(0.1)', '2.0*RBF(1.0)', 'RBF(1.0)', 'White(0.1)']
        """
        return (kernel for _, kernel in self.walk_named())

    def walk_named(self, into: Callable[[Kernel], bool] | None = None) -> Iterator[tuple[str, Kernel]]:
        """The same walk, with what the names of a part's parameters begin with; `into` says where it goes on.

        >>> from mercer import RBF, White
        >>> [name for name, _ in (2.0 * RBF(1.0) + White(0.1)).walk_named()]
        ['', 'k1__', 'k1__kernel__', 'k2__']
        """
        waiting = [("", cast("Kernel", self))]
        while waiting:
            prefix, kernel = waiting.pop()
            yield prefix, kernel
            if into is None or into(kernel):
                waiting += [(f"{prefix}{name}__", child) for name, child in reversed(kernel.children())]

    def changed_everywhere(self, change: Callable[[str, Kernel], Kernel], prefix: str = "") -> Kernel:
        """The expression with every part changed, each before the parts of its own, from left to right."""
        out = change(prefix, cast("Kernel", self))
        parts = out.children()
        kids = [child.changed_everywhere(change, f"{prefix}{name}__") for name, child in parts]
        if all(new is old for new, (_, old) in zip(kids, parts, strict=True)):
            return out
        return out.with_children(kids)
