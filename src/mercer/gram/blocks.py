"""The NumPy spelling: any kernel expression in blocks of rows, forwards and backwards.

It serves expressions with a part that the core does not know (a user's function, a Matérn of odd smoothness,
a leaf without a program), in bounded memory. It is also the second spelling that the core is tested against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.base import Kernel
from mercer.kernels.sweep import Sweep
from mercer.samples import second
from mercer.typing import Array, Flags, Integers

# An integer array, a list of integers, a boolean mask or a slice.
Index: TypeAlias = Integers | Flags | list[int] | slice

# Entries of one block: 32 MiB in float64.
_BLOCK = 2**22


def row_blocks(n: int, m: int) -> Iterator[slice]:
    """Slices of rows such that a block with m columns stays small."""
    step = max(1, _BLOCK // max(1, m))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def block(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    rows: Index,
    cols: Index,
    evaluate: Callable[[Rows, Rows], Array] | None = None,
) -> Array:
    """k between some rows of x and some of z; noise is added where both name the same observation.

    `evaluate` gives the values of two samples; without it they are those of NumPy.
    """
    other = second(x, z)
    i = np.arange(len(x))[rows]
    j = np.arange(len(other))[cols]
    if not len(i) or not len(j):
        return np.empty((len(i), len(j)))
    out = (evaluate or kernel.block)(x.rows(i), other.rows(j))
    if z is None:
        a, b = same_observations(i, j)
        if len(a):
            out[a, b] = kernel.diagonal(x.rows(i[a]))
    return out


def same_observations(i: Integers, j: Integers) -> tuple[Integers, Integers]:
    """The places (a, b) of a block at which row i[a] and column j[b] are the same observation."""
    order = np.argsort(j, kind="stable")
    first = np.searchsorted(j[order], i, side="left")
    count = np.searchsorted(j[order], i, side="right") - first
    a = np.repeat(np.arange(len(i)), count)
    within = np.arange(len(a)) - np.repeat(np.cumsum(count) - count, count)
    return a, order[np.repeat(first, count) + within]


def apply(kernel: Kernel, x: Rows, z: Rows | None, V: Array) -> Array:
    """K @ V, a block of rows at a time."""
    out = np.empty((len(x), V.shape[1]))
    for rows in row_blocks(len(x), len(second(x, z))):
        out[rows] = block(kernel, x, z, rows, slice(None)) @ V
    return out


def contract(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    *,
    U: Array | None = None,
    V: Array | None = None,
    W: Array | None = None,
) -> Array:
    """Σ W_ij ∂K_ij/∂p for every parameter p, W = UVᵀ or given, a block of rows at a time."""
    other = second(x, z)
    m = len(other)
    slots = {p.name: i for i, p in enumerate(kernel.parameters)}
    total = np.zeros(len(slots))
    for rows in row_blocks(len(x), m):
        if W is not None:
            weights = W[rows]
        else:
            assert U is not None and V is not None
            weights = U[rows].reshape(rows.stop - rows.start, -1) @ np.reshape(V, (m, -1)).T
        start = rows.start if z is None else None
        sweep = Sweep(x.rows(np.arange(len(x))[rows]), other, start, slots, np.zeros(len(slots)))
        kernel.contract(np.asarray(weights, dtype=float), sweep)
        total += sweep.total
    return total
