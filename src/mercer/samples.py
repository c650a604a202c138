"""One sample or two: the rows x and z of a kernel, where z is None for the same observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from mercer.arrays import Rows
from mercer.typing import Table

S = TypeVar("S")
T = TypeVar("T")


def samples_of(X: Table | Rows, Z: Table | Rows | None) -> tuple[Rows, Rows | None]:
    """The checked rows of one sample or two."""
    if Z is None:
        return Rows.of(X, "X"), None
    return Rows.of(X, "X"), Rows.of(Z, "Z")


def second(x: T, z: T | None) -> T:
    """The second sample, which is the first where there is only one."""
    return x if z is None else z


def optional(function: Callable[[S], T], z: S | None) -> T | None:
    """What a function makes of the second sample; None where there is only one."""
    return None if z is None else function(z)


def common_dtype(x: Rows, z: Rows | None) -> type[np.float64] | type[np.float32]:
    """float32 when every sample is float32, else float64."""

    def single(r: Rows) -> bool:
        return getattr(r.data, "dtype", None) == np.float32

    if single(x) and (z is None or single(z)):
        return np.float32
    return np.float64
