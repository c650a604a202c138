"""From a kernel expression and its data to a short postfix program over tiles.

Every kernel writes its own steps (`Kernel.program`). A leaf of a family reads its primitive (squared
distance, dot product, a reduction over columns), and the steps of its formula follow; a combination writes
its parts and then its own step. Every hyperparameter leaves a link, so that the gradient finds its way back.
What has no program is evaluated by NumPy in blocks instead (`blocks.py`); `NotLowered` says what it was.

    RBF(2.0)*Linear() + White(0.1)   ->   SQDIST AFFINE RBF  DOT MUL  DELTA ADD
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.kernels.base import Kernel
from mercer.kernels.programs.program import MOST_STEPS, Lowered, NotLowered, Place
from mercer.samples import second


def lower(
    kernel: Kernel, x: Rows, z: Rows | None, dtype: npt.DTypeLike = np.float64, *, gradient: bool = False
) -> Lowered:
    """The program of `kernel` on these rows; raises `NotLowered` where there is none.

    With `gradient` the program may be differentiated; without, phases are first reduced by whole periods,
    which keeps their digits but forgets how many periods lay between two points.
    """
    out = Lowered(kernel, len(x), len(second(x, z)), z is None, dtype, gradient=gradient)
    kernel.program(Place(out, x, z, lambda adjoint: adjoint))
    if len(out.code) > MOST_STEPS:
        raise NotLowered(f"its program has {len(out.code)} steps, and {MOST_STEPS} are the most")
    return out


def lowered(
    kernel: Kernel, x: Rows, z: Rows | None, dtype: npt.DTypeLike
) -> tuple[Lowered | None, tuple[str, ...]]:
    """The program, or None and the reason why NumPy does the work."""
    try:
        low = lower(kernel, x, z, dtype)
    except NotLowered as reason:
        return None, (f"evaluated by NumPy in blocks, because {reason}",)
    return low, tuple(dict.fromkeys(low.notes))
