"""What the theory promises of a large margin, as numbers to put beside the measured error (T5, T7)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import ParameterError
from mercer.params import is_real, is_whole
from mercer.typing import Table

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


def margin_bound(radius: float, delta: float, n: int) -> float:
    """X²/(P δ²): the expected error of a separating hyperplane of margin δ on P examples of norm at most X.

    It is a bound on an expectation over samples, and says something where it is below 1.

    >>> margin_bound(radius=1.0, delta=0.5, n=100)
    0.04
    """
    _positive(radius, "radius", zero=True)
    _positive(delta, "delta")
    _count(n)
    return (radius / delta) ** 2 / n


def support_vector_bound(n_support: int, n: int) -> float:
    """K/P: the expected error after P - 1 examples is at most the share of support vectors among P.

    >>> support_vector_bound(12, 200)
    0.06
    """
    _count(n)
    if not is_whole(n_support) or not 0 <= n_support <= n:
        raise ParameterError(f"n_support must be a whole number from 0 to n = {n}; got {n_support!r}.")
    return int(n_support) / int(n)


def novikoff_bound(radius: float, delta: float) -> int:
    """⌊(X/δ)²⌋: the most mistakes a perceptron can make on separable data of norm at most X and margin δ.

    With a bias the norm is that of (φ(x), 1), and the margin that of (w, b) together.

    >>> novikoff_bound(radius=2.0, delta=0.5)
    16
    """
    _positive(radius, "radius", zero=True)
    _positive(delta, "delta")
    return math.floor((radius / delta) ** 2 * (1 + 1e-12))


def perceptron_estimate(n: int, columns: int) -> float:
    """P²N: about how many mistakes a perceptron makes on P random examples in N dimensions.

    >>> perceptron_estimate(100, 20)
    200000.0
    """
    _count(n)
    _count(columns)
    return float(n) ** 2 * columns


def margin_estimate(n: int, columns: int) -> float:
    """1/(P√N): about the margin of P random examples of norm 1 with random labels in N dimensions.

    >>> margin_estimate(10, 4)
    0.05
    """
    _count(n)
    _count(columns)
    return 1.0 / (n * math.sqrt(columns))


def radius_of(kernel: Kernel | str, X: Table, *, bias: bool = False) -> float:
    """The largest ‖φ(x)‖ = √k(x, x) of a sample; with `bias`, of (φ(x), 1).

    >>> radius_of("Linear()", [[3.0, 4.0], [0.0, 1.0]])
    5.0
    """
    from mercer.kernels.base import as_kernel

    return float(np.sqrt(as_kernel(kernel).diag(X).max() + (1.0 if bias else 0.0)))


def _positive(value: object, name: str, *, zero: bool = False) -> None:
    if is_real(value) and math.isfinite(value):
        number = float(value)
        if number > 0 or (zero and number == 0):
            return
    raise ParameterError(f"{name} must be a finite number {'>= 0' if zero else '> 0'}; got {value!r}.")


def _count(n: object) -> None:
    if not is_whole(n) or int(n) < 1:
        raise ParameterError(f"n must be a whole number >= 1; got {n!r}.")
