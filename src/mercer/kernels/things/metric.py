"""A learned or given metric inside a kernel: rows are turned and stretched before they are compared.

    Metric(M)            ψ(x) = x M^½ with M symmetric and positive semi-definite: squared distances are
                         (x - z)ᵀ M (x - z)
    Metric([a, b, …])    the same for M = diag(a, b, …)
    Metric(factor=F)     ψ(x) = x F, which has M = F Fᵀ and as many columns as F: a metric of low rank

A function of ψ(x) and ψ(z) is a kernel whenever it is one of x and z, whatever M is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer.arrays import Rows
from mercer.blas import matmul
from mercer.errors import ParameterError, ShapeError
from mercer.kernels.things.reading import Reading, reading
from mercer.params import given
from mercer.sparse import dense
from mercer.typing import Array

Numbers = tuple[float, ...]

# A negative eigenvalue of M, or a difference of M and Mᵀ, that may be rounding: of the largest entry.
ROUNDING = 1e-10


@reading
class Metric(Reading):
    """x → x M^½: distances (x - z)ᵀ M (x - z), for a symmetric positive semi-definite M.

    >>> from mercer import RBF
    >>> k = RBF(1.0).of(Metric([[4.0, 0.0], [0.0, 0.0]]))
    >>> round(float(k([[0, 0]], [[1, 5]])[0, 0]), 6)                         # s = 4, so e^(-4/2)
    0.135335
    >>> RBF(1.0).of(Metric([4.0, 0.0])), RBF(1.0).of(Metric(factor=[[2.0], [0.0]]))
    (RBF(1.0).of(Metric([4.0, 0.0])), RBF(1.0).of(Metric(factor=[[2.0], [0.0]])))
    """

    matrix: Numbers | tuple[Numbers, ...] | None = given(None)
    factor: tuple[Numbers, ...] | None = given(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.matrix is None) == (self.factor is None):
            raise ParameterError(
                "Metric takes either a matrix M, as in Metric([[2.0, 0.0], [0.0, 1.0]]), or a factor F of "
                "it, Metric(factor=[[1.0], [0.5]]), whose M is F Fᵀ."
            )
        name = "matrix" if self.factor is None else "factor"
        A = _numbers(getattr(self, name), name)
        if name == "matrix" and A.ndim == 2:
            _require_symmetric(A)
        if name == "factor" and A.ndim != 2:
            raise ParameterError(
                f"Metric: factor has a row for each column of the data; got {A.ndim} dimension."
            )
        object.__setattr__(self, name, _as_tuples(A))
        if name == "matrix":
            _require_semidefinite(A)

    @property
    def width(self) -> int:
        """How many columns it reads."""
        return len(self.matrix if self.factor is None else self.factor)  # type: ignore[arg-type]

    @cached_property
    def root(self) -> Array:
        """What rows are multiplied with: M^½, or F; of a diagonal M its square roots alone."""
        if self.factor is not None:
            return np.array(self.factor)
        M = np.array(self.matrix)
        if M.ndim == 1:
            return np.asarray(np.sqrt(M))
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    def read(self, x: Rows) -> Rows:
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        if X.shape[1] != self.width:
            raise ShapeError(f"Metric is one of {self.width} columns, but {x.name} has {X.shape[1]}.")
        if self.root.ndim == 1:
            return Rows(X * self.root, x.name)
        return Rows(matmul(X, self.root), x.name)


def _numbers(value: object, name: str) -> Array:
    try:
        A = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"Metric: {name} must be a matrix of numbers ({error}).") from error
    if A.ndim not in (1, 2) or 0 in A.shape or not np.isfinite(A).all():
        raise ParameterError(
            f"Metric: {name} must be a matrix of finite numbers, with at least one row and column; got shape "
            f"{A.shape}."
        )
    return A


def _as_tuples(A: Array) -> Numbers | tuple[Numbers, ...]:
    if A.ndim == 1:
        return tuple(float(v) for v in A)
    return tuple(tuple(float(v) for v in row) for row in A)


def _require_symmetric(M: Array) -> None:
    if M.shape[0] != M.shape[1]:
        raise ParameterError(
            f"Metric: a matrix M has as many rows as columns; got {M.shape[0]} × {M.shape[1]}. A factor F "
            "with M = F Fᵀ is given as Metric(factor=F)."
        )
    off = np.abs(M - M.T)
    if off.max() > ROUNDING * np.abs(M).max():
        i, j = (int(v) for v in np.unravel_index(np.argmax(off), off.shape))
        raise ParameterError(
            f"Metric: M must be symmetric; its entry ({i}, {j}) is {M[i, j]:g}, and ({j}, {i}) is "
            f"{M[j, i]:g}. (M + Mᵀ)/2 measures the same distances."
        )


def _require_semidefinite(M: Array) -> None:
    values = M if M.ndim == 1 else np.linalg.eigvalsh((M + M.T) / 2)
    # Rounding may push the eigenvalues of a matrix below 0, never a number that was given as one.
    allowed = 0.0 if M.ndim == 1 else ROUNDING * float(np.abs(M).max())
    if values.min() < -allowed:
        raise ParameterError(
            f"Metric: M must be positive semi-definite, so that no distance is negative; its least "
            f"eigenvalue is {float(values.min()):.6g}."
        )
