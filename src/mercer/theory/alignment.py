"""Kernel-target alignment: how well a kernel agrees with another, or with labels, before training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.gram import GramOperator, gram
from mercer.kernels.base import Kernel, as_kernel
from mercer.theory.permutation import judged
from mercer.typing import Array, Labels, Memory, Table, Targets


def alignment(
    first: Kernel | npt.ArrayLike,
    second: Table,
    y: Targets | None = None,
    *,
    strict: bool = False,
    memory: Memory = "2GiB",
) -> float:
    """The centred alignment of two Gram matrices, or of a kernel with targets (Cortes et al., 2012).

        A = ⟨K₁ᶜ, K₂ᶜ⟩ / (‖K₁ᶜ‖ ‖K₂ᶜ‖),    Kᶜ = HKH,    H = I - 11ᵀ/n

    It is 1 for matrices that agree up to a factor and a shift of the origin in feature space, between 0 and 1
    for positive semi-definite ones, and 0 by convention where a matrix is constant. Called as `alignment(K1,
    K2)` with arrays, or as `alignment(kernel, X, y)`: then K₂ is yyᵀ for numbers and "same class or not" for
    labels (text, truth values, or whole numbers of few values). A kernel that is not positive semi-definite
    after centring is told, or refused if `strict`.

    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> round(alignment(K, 3 * K + 5), 12)
    1.0
    >>> round(alignment("Linear()", [[0.0], [1.0], [2.0]], [5.0, 7.0, 9.0]), 12)
    1.0
    """
    if y is None:
        A = _matrix(first, "the first matrix")
        B = _matrix(second, "the second matrix")
        if A.shape != B.shape:
            raise ShapeError(f"the two Gram matrices must have one shape; got {A.shape} and {B.shape}.")
        return _cosine(_centred(A), _centred(B))
    x = Rows.of(second, "X")
    if not isinstance(first, Kernel | str):
        raise ParameterError(f"a kernel or its text was expected before X and y; got {type(first).__name__}.")
    k = as_kernel(first).resolved(x)
    judged(k, x, strict=strict, lost="The alignment is then not bounded by 0 from below.")
    K = gram(k, x, memory=memory)
    return align(K, targets(y, len(x)), gradient=False).value


@dataclass(frozen=True, eq=False)
class Aligned:
    """The alignment of a kernel with targets, and its gradient with respect to the kernel's `theta`."""

    value: float
    gradient: Array


def align(K: GramOperator, Y: Array, *, gradient: bool = True) -> Aligned:
    """The centred alignment of a Gram operator with YYᵀ, and its gradient by one contraction.

    dA = ⟨dK, Y_cY_cᵀ / (‖Kᶜ‖ ‖Y_cY_cᵀ‖) - A Kᶜ / ‖Kᶜ‖²⟩
    """
    Y = Y - Y.mean(axis=0)
    Kc = _centred(np.asarray(K.dense(), dtype=np.float64))
    length = float(np.linalg.norm(Kc))
    target = float(np.linalg.norm(Y.T @ Y))
    if not length > 0 or not target > 0:
        return Aligned(0.0, np.zeros(_free(K)))
    value = float(np.einsum("ij,ij->", Y, Kc @ Y)) / (length * target)
    if not gradient:
        return Aligned(value, np.zeros(0))
    W = (Y @ Y.T) / (length * target) - (value / length**2) * Kc
    return Aligned(value, K.contract(W=W))


def targets(y: Targets, n: int) -> Array:
    """y as n × r numbers: labels as one column for each class, numbers as they are.

    >>> targets(["a", "b", "a"], 3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    values = np.asarray(y)
    if values.shape[:1] != (n,) or values.ndim > 2:
        raise ShapeError(f"X has {n} rows and y has shape {values.shape}. Pass one target for each row.")
    if are_labels(values):
        classes, codes = np.unique(values.ravel(), return_inverse=True)
        return np.eye(len(classes))[codes]
    try:
        out = values.astype(np.float64).reshape(n, -1)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers or labels: {error}.") from error
    if not np.isfinite(out).all():
        row = int(np.argwhere(~np.isfinite(out))[0][0])
        raise NotFiniteError(f"y contains NaN or infinity (first at row {row}).")
    return out


def are_labels(values: Labels) -> bool:
    """Text, truth values, or whole numbers of at most 20 values that each occur twice on average."""
    if values.ndim == 2 and values.shape[1] != 1:
        return False
    if values.dtype.kind in "OUSb":
        return True
    if values.dtype.kind not in "iu":
        return False
    distinct = len(np.unique(values))
    return distinct <= 20 and 2 * distinct <= values.size


def _free(K: GramOperator) -> int:
    kernel = getattr(K, "kernel", None)
    return len(kernel.theta) if isinstance(kernel, Kernel) else 0


def _matrix(K: object, name: str) -> Array:
    A = np.asarray(K, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ShapeError(f"{name} must be square, with at least one row; got shape {A.shape}.")
    if not np.isfinite(A).all():
        raise NotFiniteError(f"{name} contains NaN or infinity.")
    return A


def _centred(K: Array) -> Array:
    row = K.mean(axis=0)
    out: Array = K - row - K.mean(axis=1)[:, None] + row.mean()
    return out


def _cosine(A: Array, B: Array) -> float:
    length = float(np.linalg.norm(A)) * float(np.linalg.norm(B))
    if not length > 0:
        return 0.0
    return float(np.einsum("ij,ij->", A, B)) / length
