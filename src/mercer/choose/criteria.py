"""What a kernel can be chosen by, as a number and its gradient: evidence, leave-one-out, alignment.

Each takes a kernel, a noise (or ridge) λ, rows and targets, and gives a score to be maximised with its
derivative with respect to `kernel.theta` and log λ: one factorisation of K + λI and one contraction by the
engine. Where the seconds left are too few for the derivative, `clock.OutOfTime` leaves it with the score
that it has `found`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.gram import gram
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.panels import panels, scaled_columns, whole_from_lower
from mercer.solve.direct import factor
from mercer.theory.alignment import align
from mercer.typing import Array, Table

# factors that the inverse and its product with itself cost
INVERTED = 9

Criterion = Callable[[Kernel, float, Rows | Table, Array], "Score"]


@dataclass(frozen=True, eq=False)
class Score:
    """A score to be maximised, its gradient with respect to theta, and with respect to log λ.

    `height` is the factor of the kernel that suits the targets best, where the criterion has one.
    """

    value: float
    theta: Array
    noise: float
    height: float = 1.0


def evidence(kernel: Kernel, noise: float, x: Rows | Table, Y: Array) -> Score:
    """The log evidence of a Gaussian process at its best height s, summed over the columns of Y.

        L = max over s of log N(y | 0, s(K + λI)),    s = yᵀC⁻¹y / n,    C = K + λI
        dL = ½⟨dK, aaᵀ/s - C⁻¹⟩,    a = C⁻¹y

    The height of f and of its noise is no parameter of a machine that has a penalty, so it is left out of the
    search: λ is the penalty of ridge regression, and s λ the variance of the noise.

    >>> from mercer import Constant
    >>> found = evidence(Constant(1.0), 1.0, [[0.0]], np.array([[2.0]]))
    >>> round(found.height, 6), round(found.value, 6)                                # log N(2 | 0, 2·2)
    (2.0, -2.112086)
    """
    began = clock.now()
    K = gram(kernel, x)
    # A contraction takes as long as the matrix.
    short = clock.short_of(clock.now() - began)
    found = log_evidence(K, Y, noise, gradient=not short, best_height=True)
    if found.gradient is None or found.noise is None:
        raise clock.OutOfTime(Score(found.value, np.zeros(0), 0.0, found.height))
    return Score(found.value, found.gradient, noise * found.noise, found.height)


def leave_one_out(kernel: Kernel, noise: float, x: Rows | Table, Y: Array) -> Score:
    """Minus the mean squared error of ridge regression with each row left out in turn, in closed form.

        e_i = a_i / κ_i,    a = C⁻¹y,    κ_i = [C⁻¹]_ii
        d Σe² = ⟨dK, C⁻¹ diag(2e²/κ) C⁻¹ - u aᵀ⟩,    u = C⁻¹(2e/κ)

    >>> from mercer import Linear
    >>> x, y = [[1.0], [2.0]], np.array([[1.0], [3.0]])
    >>> left = [1.0 - 1 * (2 * 3) / (2 * 2 + 0.5), 3.0 - 2 * (1 * 1) / (1 * 1 + 0.5)]   # w = Σxy / (Σx² + λ)
    >>> bool(np.isclose(-leave_one_out(Linear(), 0.5, x, y).value, np.mean(np.square(left))))
    True
    """
    began = clock.now()
    K = gram(kernel, x)
    made = clock.now()
    C = factor(K, noise)
    # A contraction takes as long as the matrix.
    if clock.short_of(INVERTED * (clock.now() - made) + made - began):
        # The score alone: a triangle is inverted, and nothing multiplied.
        kappa = C.inverse_diag()[:, None]
        raise clock.OutOfTime(Score(-float(np.mean((C.solve(Y) / kappa) ** 2)), np.zeros(0), 0.0))
    inverse = whole_from_lower(lapack.potri(C.lower, overwrite_c=True)[0])
    a = inverse @ Y
    kappa = inverse.diagonal()[:, None]
    e = a / kappa
    u = inverse @ (2 * e / kappa)
    W = lapack.matmul(scaled_columns(inverse, np.sum(2 * e**2 / kappa, axis=1)), inverse)
    for rows in panels(len(W)):
        W[rows] -= 0.5 * (u[rows] @ a.T + a[rows] @ u.T)
    size = e.size
    return Score(-float(np.sum(e**2)) / size, -K.contract(W=W) / size, -noise * float(np.trace(W)) / size)


def alignment(kernel: Kernel, noise: float, x: Rows | Table, Y: Array) -> Score:
    """The centred alignment of K with YYᵀ; λ plays no part."""
    found = align(gram(kernel, x), Y)
    return Score(found.value, found.gradient, 0.0)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "loo": leave_one_out, "alignment": alignment}


def unit(by: str, Y: Array) -> float:
    """What a criterion is counted in, so that a gain means the same for all data: rows, or y²."""
    if by == "evidence":
        return float(Y.size)
    if by == "loo":
        return float(np.mean(Y**2)) or 1.0
    return 1.0
