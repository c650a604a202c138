"""What scikit-learn lets pass in silence, and a twin does not: masks, dates, asymmetric Grams, kernels that are none."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import unmasked
from mercer.errors import InputTypeError, InvalidKernelWarning, warn
from mercer.kernels.base import Kernel
from mercer.theory.judge import refutation


def refuse_masks_and_dates(X: Any, y: Any = None) -> None:
    """A mask would be dropped, and a date read as nanoseconds since 1970."""
    for values, name in ((X, "X"), (y, "y")):
        unmasked(values, name)
        kinds = _kinds(values)
        dated = [str(kind) for kind in kinds if getattr(kind, "kind", "") in ("m", "M")]
        if dated:
            raise InputTypeError(
                f"{name} holds dates or times ({dated[0]}), which would be read as counts of a unit nobody chose. Convert "
                f"them first, for example to days: ({name} - {name}.min()) / np.timedelta64(1, 'D')."
            )


def _kinds(values: Any) -> list[Any]:
    """The types of the columns of a frame, or that of an array; none for lists and other things."""
    columns = getattr(values, "dtypes", None)
    if columns is None:
        own = getattr(values, "dtype", None)
        return [] if own is None else [own]
    return list(columns) if np.iterable(columns) else [columns]


def symmetric(K: np.ndarray) -> np.ndarray:
    """(K + Kᵀ)/2, with a warning where that is another matrix than K by more than rounding."""
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    if gap[i, j] > 1e-8 * float(np.abs(K).max()):
        warn(
            f"the Gram matrix is not symmetric: {K[i, j]:.9g} at ({i}, {j}) but {K[j, i]:.9g} at ({j}, {i}). A kernel has "
            "k(x, z) = k(z, x); (K + K.T) / 2 is used.",
            InvalidKernelWarning,
        )
    return 0.5 * (K + K.T)


def warn_of_refuted(kernel: Kernel | None, columns: int) -> None:
    """A kernel that is refuted, such as the sigmoid, is used all the same; the witness is told."""
    if kernel is None or kernel.proof() is not None:
        return
    found = refutation(kernel, columns)
    if found is not None:
        warn(f"{found} The answer is that of scikit-learn, and no optimum.", InvalidKernelWarning)
