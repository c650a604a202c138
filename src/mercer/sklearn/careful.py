"""What a twin does not let pass in silence: masks, dates, asymmetric Gram matrices, kernels that are none."""

from __future__ import annotations

import numpy as np

from mercer.errors import InputTypeError, InvalidKernelWarning, warn
from mercer.kernels.base import Kernel
from mercer.theory.judge import refutation
from mercer.typing import Array, Table, Targets
from mercer.vectors import unmasked


def refuse_masks_and_dates(X: Table, y: Targets | None = None) -> None:
    """A mask would be dropped, and a date read as nanoseconds since 1970."""
    for values, name in ((X, "X"), (y, "y")):
        unmasked(values, name)
        dated = [str(kind) for kind in _types(values) if getattr(kind, "kind", "") in ("m", "M")]
        if dated:
            raise InputTypeError(
                f"{name} holds dates or times ({dated[0]}), which would be read as counts of a unit nobody "
                f"chose. Convert them first, for example to days: ({name} - {name}.min()) / "
                "np.timedelta64(1, 'D')."
            )


def _types(values: object) -> list[object]:
    """The types of the columns of a frame, or that of an array; none for lists and other things."""
    columns = getattr(values, "dtypes", None)
    if columns is not None:
        return list(columns) if np.iterable(columns) else [columns]
    kind = getattr(values, "dtype", None)
    return [] if kind is None else [kind]


def symmetric(K: Array) -> Array:
    """(K + Kᵀ)/2, with a warning where that is another matrix than K by more than rounding."""
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    if gap[i, j] > 1e-8 * float(np.abs(K).max()):
        warn(
            f"the Gram matrix is not symmetric: {K[i, j]:.9g} at ({i}, {j}) but {K[j, i]:.9g} at ({j}, {i}). "
            "A kernel has k(x, z) = k(z, x); (K + K.T) / 2 is used.",
            InvalidKernelWarning,
        )
    mean: Array = 0.5 * (K + K.T)
    return mean


def warn_of_refuted(kernel: Kernel | None, columns: int) -> None:
    """A kernel that is refuted, such as the sigmoid, is used all the same; the witness is told."""
    if kernel is None or kernel.known_proof() is not None:
        return
    found = refutation(kernel, columns)
    if found is not None:
        warn(f"{found} The answer is that of scikit-learn, and no optimum.", InvalidKernelWarning)
