"""The gradient of an expression by NumPy: weights on its values, handed down to the numbers that moved them.

A `Sweep` is where in the expression the weights W have come. Every kernel takes them (`Kernel.contract`): it
adds Σ W_ij ∂k_ij/∂p for each parameter p of its own, and hands W times its derivative to its parts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.typing import Array, Setting

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# A kernel with another value of one parameter.
Rebuild: TypeAlias = Callable[[Setting], "Kernel"]

# Of the complex step: the derivative of an analytic formula, exact to rounding.
STEP = 1e-30


@dataclass(frozen=True, eq=False)
class Sweep:
    """Rows of one sample against all of another, and the gradient `total` that is collected.

    Row i and column i + `start` are the same observation; `start` is None between two samples. `slots` are
    the places of the parameters by name.
    """

    x: Rows
    z: Rows
    start: int | None
    slots: dict[str, int]
    total: Array
    path: str = ""

    def child(self, name: str) -> Sweep:
        """The sweep at a part that sees the same rows."""
        return replace(self, path=f"{self.path}{name}__")

    def mapped(self, map: Callable[[Rows], Rows]) -> Sweep:
        """The sweep at a part that sees mapped rows."""
        return replace(self, x=map(self.x), z=map(self.z), path=f"{self.path}kernel__")

    def add(self, name: str, value: float) -> None:
        """Count `value` for a parameter of the kernel here."""
        slot = self.slots.get(self.path + name)
        if slot is not None:
            self.total[slot] += value

    def contract_diagonal(self, k: Kernel, weights: Array, rows: Rows, name: str) -> None:
        """Add the gradients of Σ weights_i k(x_i, x_i) for a part of that name."""
        part = self.child(name)
        if not any(slot.startswith(part.path) for slot in self.slots):
            return
        for i in np.flatnonzero(weights):
            row = rows.rows(np.array([i]))
            alone = replace(part, x=row, z=row, start=0, total=np.zeros_like(self.total))
            k.contract(np.array([[weights[i]]]), alone)
            np.add(self.total, alone.total, out=self.total)

    def value(self, k: Kernel) -> Array:
        """The block of a part, with noise where the observation is the same."""
        out = k.block(self.x, self.z)
        if self.start is not None:
            i = np.arange(len(self.x))
            out = np.array(out)
            out[i, i + self.start] = k.diagonal(self.x)
        return out


def by_differences(k: Kernel, W: Array, at: Sweep) -> None:
    """The own parameters of a kernel of which nothing more is known, by central differences."""
    for name, _ in k.own_domains():
        for tail, value, moved in perturbed(k, name):
            h = 1e-6 * max(1.0, abs(value))
            up = at.value(moved(value + h))
            down = at.value(moved(value - h))
            at.add(name + tail, float((W * (up - down)).sum() / (2 * h)))


def perturbed(k: Kernel, name: str) -> Iterator[tuple[str, float, Rebuild]]:
    """Each number inside a parameter, with a way to make the kernel that has another number there.

    Nothing is checked: the other number may be complex.
    """

    def walk(value: Setting, rebuild: Rebuild, tail: str) -> Iterator[tuple[str, float, Rebuild]]:
        if isinstance(value, tuple):
            for i, v in enumerate(value):
                yield from walk(v, partial(_with_entry, rebuild, value, i), f"{tail}[{i}]")
        else:
            yield tail, value, rebuild

    def rebuild(value: Setting) -> Kernel:
        out = copy.copy(k)
        object.__setattr__(out, name, value)
        return out

    yield from walk(getattr(k, name), rebuild, "")


def _with_entry(rebuild: Rebuild, value: tuple[Setting, ...], i: int, new: Setting) -> Kernel:
    return rebuild((*value[:i], new, *value[i + 1 :]))
