"""Doors: what a kernel asks of the modules that are built on top of kernels.

A kernel can be added to another, read from a text, judged, mapped and evaluated. All of that is built on
kernels, so a kernel cannot import it. The module above opens its door when it is imported, by handing over
its functions:

    combining     kernels/algebra            k + k, 2*k, k**2, k.exp(), k.on(…)
    reading       kernels/text.py            "RBF(1.0)" and 2.0 as kernels
    judging       kernels/proofs/validity.py k.validity()
    mapping       kernels/maps/explicit.py   k.features(d), k.feature_dimension(d)
    evaluating    gram/                      k(X), k.gram(X)

A door that is still closed imports the module that opens it: `Door.__call__` is the one place where a lower
module reaches an upper one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy.typing as npt

    from mercer.arrays import Column, Rows
    from mercer.gram import GramOperator
    from mercer.kernels.base import Kernel
    from mercer.kernels.maps.explicit import FeatureMap
    from mercer.kernels.proofs.answers import Validity
    from mercer.kernels.things.reading import Reading
    from mercer.typing import Array, Memory, Table

T = TypeVar("T")


class Door(Generic[T]):
    """The functions of one upper module, and which module that is."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._functions: T | None = None

    def open(self, functions: T) -> None:
        """Hand over the functions; the module that the door names does so when it is imported."""
        self._functions = functions

    def __call__(self) -> T:
        if self._functions is None:
            import_module(self.module)
        assert self._functions is not None, f"{self.module} did not open its door"
        return self._functions


@dataclass(frozen=True)
class Combining:
    """The construction rules."""

    add: Callable[[Kernel | float, Kernel | float], Kernel]
    multiply: Callable[[Kernel, Kernel | float], Kernel]
    power: Callable[[Kernel, float], Kernel]
    exponential: Callable[[Kernel], Kernel]
    polynomial: Callable[[Kernel, tuple[float, ...]], Kernel]
    times: Callable[[Kernel, Callable[[Array], Array]], Kernel]
    of: Callable[[Kernel, Callable[[Table], Table] | Reading | Kernel | Table], Kernel]
    on: Callable[[Kernel, tuple[Column, ...], str | None], Kernel]
    normalized: Callable[[Kernel], Kernel]
    bags: Callable[[Kernel], Kernel]


class Judge(Protocol):
    def __call__(
        self,
        kernel: Kernel,
        samples: Table | None,
        *,
        columns: int | None,
        seconds: float,
        random_state: int,
    ) -> Validity: ...


class MapBuilder(Protocol):
    def __call__(
        self, kernel: Kernel, d: int | Sequence[str] | None, *, redundant: bool, memory: Memory
    ) -> FeatureMap: ...


class MapSize(Protocol):
    def __call__(self, kernel: Kernel, d: int | Sequence[str], *, redundant: bool) -> int | float: ...


@dataclass(frozen=True)
class Mapping:
    """Explicit feature maps: the map itself, and its size."""

    build: MapBuilder
    dimension: MapSize


class GramMaker(Protocol):
    def __call__(
        self,
        kernel: Kernel,
        X: Table | Rows,
        Z: Table | Rows | None,
        *,
        memory: Memory,
        dtype: npt.DTypeLike | None,
        n_jobs: int | None,
    ) -> GramOperator: ...


@dataclass(frozen=True)
class Evaluating:
    """A kernel on rows: the dense block of checked rows, and the operator."""

    block: Callable[[Kernel, Rows, Rows | None], Array]
    gram: GramMaker


combining: Door[Combining] = Door("mercer.kernels.algebra")
reading: Door[Callable[[object], Kernel]] = Door("mercer.kernels.text")
judging: Door[Judge] = Door("mercer.kernels.proofs.validity")
mapping: Door[Mapping] = Door("mercer.kernels.maps.explicit")
evaluating: Door[Evaluating] = Door("mercer.gram")
