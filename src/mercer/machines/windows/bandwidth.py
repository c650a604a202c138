"""A lengthscale by leaving one out: what the smoothers share, where the word kernel means a window (M15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.errors import ParameterError
from mercer.gram.blocks import row_blocks
from mercer.gram.on_rows import KernelOnRows
from mercer.kernels.base import Kernel
from mercer.sparse import Matrix
from mercer.typing import Array, Setting

# how far the lengthscale is looked for: 2⁸ times smaller and larger than where it starts
OCTAVES = 8.0
PER_OCTAVE = 2


def by_leave_one_out(kernel: Kernel | None, error: Callable[[Kernel], float]) -> tuple[Kernel, str]:
    """The kernel with the lengthscale of smallest `error`, a multiple of its own; and a note that says so."""
    start = None if kernel is None else kernel.get_params().get("lengthscale")
    if kernel is None or start is None:
        whose = "a precomputed Gram matrix" if kernel is None else str(kernel)
        raise ParameterError(
            f"bandwidth='loo' chooses a lengthscale, and {whose} has none of its own. Use a kernel such as "
            "RBF or Laplacian, or bandwidth='kernel'."
        )

    def scaled(octaves: float) -> Kernel:
        return kernel.with_params({"lengthscale": _times(start, 2.0**octaves)})

    points = np.linspace(-OCTAVES, OCTAVES, int(2 * OCTAVES * PER_OCTAVE) + 1)
    values = np.array([error(scaled(float(p))) for p in points])
    best = int(np.argmin(values))
    low = points[max(best - 1, 0)]
    high = points[min(best + 1, len(points) - 1)]
    found = minimize_scalar(
        lambda v: error(scaled(float(v))), bounds=(low, high), method="bounded", options={"xatol": 1e-6}
    )
    chosen = float(found.x) if found.fun < values[best] else float(points[best])
    note = f"lengthscale {2.0**chosen:.4g} times that of {kernel}, by leaving one out"
    if best in (0, len(points) - 1):
        note += "; that is the end of the range that was searched"
    return scaled(chosen), note


def _times(lengthscale: Setting, factor: float) -> Setting:
    if isinstance(lengthscale, tuple | list):
        return tuple(factor * float(v) for v in lengthscale)
    return factor * float(lengthscale)


def windows(on: KernelOnRows, A: Matrix) -> Iterator[tuple[slice, Array]]:
    """k(x, x_j) of some rows at a time; refused where it is negative, since a window is a weight."""
    for part in row_blocks(A.shape[0], max(len(on), 1)):
        K = np.asarray(on.between(A[part]).dense(), dtype=np.float64)
        if K.size and float(K.min()) < 0:
            whose = "the precomputed block" if on.kernel is None else str(on.kernel)
            raise ParameterError(
                f"{whose} gives {K.min():.3g}, and a window of weights cannot be negative. Use a kernel that "
                "is nowhere below 0, such as RBF, Laplacian or Matern."
            )
        yield part, K
