"""What `kernel=` means on given data: a kernel, its text, "precomputed", or text without a lengthscale."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import PrecisionWarning, warn
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import as_machine_kernel

_OPEN = re.compile(r"\b(RBF|Exponential|Matern|RationalQuadratic|Laplacian)\(\s*\)")
_CHOSEN = re.compile(r"\.(on|of)\(")


def resolve(kernel: Any, A: Any, weight: np.ndarray | None = None, *, name: str = "kernel") -> Kernel | None:
    """The kernel for these rows; None for "precomputed". Errors call the parameter `name`.

    A lengthscale that the *text* leaves open, as in "RBF()" or "RBF() + White(0.1)", is ℓ = √(d·Var(X)/2), the variance
    being over all entries: the rule that scikit-learn calls gamma="scale". Rows count by their weight. A kernel
    *object* such as RBF() has the lengthscale it prints, here 1.

    >>> resolve("RBF()", np.array([[0.0, 2.0], [2.0, 0.0]]))
    RBF(1.0)
    """
    if is_open(kernel):
        # In units of the largest entry: the variance of very small or very large numbers is no number.
        unit = _unit(A)
        return with_spread(kernel, variance(A if unit == 1.0 else A / unit, weight), A.shape[1], unit)
    return as_machine_kernel(kernel, name)


def resolve_by_column(
    kernel: Any, A: Any, weight: np.ndarray | None = None, *, name: str = "kernel"
) -> Kernel | None:
    """`resolve`, with a lengthscale for each column where the text leaves it open: ℓ_j = s_j √(d/2), s_j its deviation.

    Columns in other units then weigh alike: the kernel is that of the standardised columns. Sparse rows, and text that chooses
    or maps columns itself (`.on`, `.of`), take the one lengthscale of `resolve`.

    >>> resolve_by_column("RBF()", np.array([[0.0, 0.0], [2.0, 2000.0]]))
    RBF([1.0, 1000.0])
    """
    if not is_open(kernel) or sparse.issparse(A) or A.shape[1] < 2 or _CHOSEN.search(kernel) is not None:
        return resolve(kernel, A, weight, name=name)
    spread = column_deviations(A, weight)
    if not spread.any():
        return resolve(kernel, A, weight, name=name)
    lengths = np.where(spread > 0, spread, 1.0) * np.sqrt(0.5 * A.shape[1])
    return as_machine_kernel(_OPEN.sub(lambda found: f"{found[1]}({lengths.tolist()!r})", kernel), name)


def column_deviations(A: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """The standard deviation of each column, each row counted by its weight; exactly 0 where a column has one value.

    >>> column_deviations(np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 5.0]]), np.array([1.0, 0.0, 1.0]))
    array([0., 2.])
    """
    w = np.ones(A.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    kept = A[w > 0]
    w = w[w > 0] / w.sum()
    middle = kept[0] + w @ (kept - kept[0])
    return np.where(kept.max(axis=0) > kept.min(axis=0), np.sqrt(w @ (kept - middle) ** 2), 0.0)


def is_open(kernel: Any) -> bool:
    """Whether the text leaves a lengthscale to the data."""
    return isinstance(kernel, str) and _OPEN.search(kernel) is not None


def with_spread(kernel: Any, spread: float, columns: int, unit: float = 1.0) -> Kernel | None:
    """The kernel for rows of so many columns whose entries, in this unit, have this variance.

    >>> with_spread("RBF()", 2.0, 4)
    RBF(2.0)
    """
    if is_open(kernel):
        if spread == 0:
            warn(
                "X is constant, so every kernel value is the same and nothing can be learned from it; the "
                "lengthscale is taken as 1. Look for a column that varies.",
                PrecisionWarning,
            )
        length = unit * float(np.sqrt(0.5 * columns * spread)) if spread > 0 else 1.0
        kernel = _OPEN.sub(rf"\1({length!r})", kernel)
    return as_machine_kernel(kernel)


def _unit(A: Any) -> float:
    """A power of two near the largest entry of A where that is far from 1, else 1; to divide by it rounds nothing."""
    top = float(abs(A).max())
    if top == 0 or 1e-70 < top < 1e70:
        return 1.0
    return float(np.exp2(max(np.floor(np.log2(top)), -1022.0)))


def variance(A: Any, weight: np.ndarray | None = None) -> float:
    """The variance of all entries of A together, each row counted by its weight."""
    w = np.ones(A.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    count = w.sum() * A.shape[1]
    if sparse.issparse(A):
        data = A.data
        row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        mean = float(w[row] @ data) / count
        filled = float(w[row] @ (data - mean) ** 2)
        spread = (filled + (count - float(w[row].sum())) * mean**2) / count
    else:
        mean = float(w @ A.sum(axis=1)) / count
        spread = float(w @ ((A - mean) ** 2).sum(axis=1)) / count
    return spread if spread > (1e-14 * mean) ** 2 else 0.0
