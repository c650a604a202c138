"""What `kernel=` means on given data: a kernel, its text, or "precomputed"; open lengthscales are closed by the spread of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import as_machine_kernel
from mercer.params import Open


def resolve(
    kernel: Any, rows: Rows | np.ndarray, weight: np.ndarray | None = None, *, name: str = "kernel"
) -> Kernel | None:
    """The kernel for these rows; None for "precomputed". Errors call the parameter `name`.

    >>> resolve("RBF()", np.array([[0.5, 0.0], [2.5, 2000.0]]))
    RBF([1.0, 1000.0])
    """
    found = as_machine_kernel(kernel, name)
    if found is None or not found.is_open:
        return found
    return found.resolved(rows if isinstance(rows, Rows) else Rows(rows), sample_weight=weight)


def is_open(kernel: Any) -> bool:
    """Whether a kernel or its text leaves a lengthscale to the data."""
    found = as_machine_kernel(kernel)
    return found is not None and found.is_open


def wants_each(kernel: Any) -> bool:
    """Whether a lengthscale is left open for each column of its own, as by `RBF(ard=True)`."""
    found = as_machine_kernel(kernel)
    return found is not None and any(p.value is Open.EACH for p in found.parameters)
