"""Kernels as scikit-learn names them: `kernel="rbf"` with `gamma`, `coef0` and `degree`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from mercer.kernels import RBF, CosineSimilarity, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from mercer.typing import Array

KernelFunction: TypeAlias = Callable[..., Array]
KernelName: TypeAlias = str | KernelFunction


def kernel_named(name: KernelName, *, gamma: float, coef0: float, degree: float) -> Kernel | None:
    """The named kernel as one of mercer's; None for "precomputed", functions and degenerate parameters.

    >>> print(kernel_named("poly", gamma=1.0, coef0=2.0, degree=3))
    Polynomial(3, offset=2.0)
    >>> kernel_named("rbf", gamma=0.0, coef0=0.0, degree=3) is None
    True
    """
    if not isinstance(name, str):
        return None
    return _made(name, gamma, coef0, degree)


@lru_cache(maxsize=64, typed=True)
def _made(name: str, gamma: float, coef0: float, degree: float) -> Kernel | None:
    """One object for equal parameters: a kernel is a value, and what was proved of it is remembered."""
    if name == "linear":
        return Linear()
    if name == "cosine":
        return CosineSimilarity()
    if not gamma > 0:
        return None
    if name == "rbf":
        return RBF(float(np.sqrt(0.5 / gamma)))
    if name == "laplacian":
        return Laplacian(1.0 / gamma)
    if name == "sigmoid":
        return Sigmoid(gamma, offset=float(coef0))
    whole = degree >= 1 and degree == int(degree)
    if name in ("poly", "polynomial") and coef0 >= 0 and whole:
        return Polynomial(int(degree), offset=float(coef0), scale=gamma)
    return None
