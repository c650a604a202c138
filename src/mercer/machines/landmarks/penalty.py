"""The penalty α that the data ask for, in closed form: generalised cross-validation of ridge regression.

With ΦᵀWΦ = Q diag(λ) Qᵀ and b = QᵀΦᵀWY the squared error at the rows of fit and the degrees of freedom are

        rss(α) = Σ w y² - Σ_j b_j² (λ_j + 2α) / (λ_j + α)²,        df(α) = Σ_j λ_j / (λ_j + α)

and the error on rows not seen is about n rss / (n - df)²: that of leaving one row out, with every leverage
replaced by their mean (Golub, Heath and Wahba 1979). The α of logistic loss follows from that of least
squares: a label that is predicted with the squared error e = 4 p(1 - p) has curvature p(1 - p) = e / 4 in the
logistic loss, where it has 1 in ½ Σ (t - f)² + α/2 ‖f‖². So e/4 times the α of least squares leaves f the
same degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.typing import Array

# Candidates: so many for each power of ten, over so many powers of ten below the largest eigenvalue.
PER_DECADE = 4
DECADES = 10
# Of the rows: more degrees of freedom leave no rows to judge by.
MOST_FREE = 0.9
# Of the least error: the largest α within it is taken, for the error is not known better.
NEAR = 0.005


@dataclass(frozen=True)
class Penalty:
    """α, the error by which it was chosen (a mean square over rows and targets), its degrees of freedom."""

    alpha: float
    error: float
    freedom: float

    @property
    def logistic(self) -> float:
        """The α of logistic loss with as many degrees of freedom, of targets ±1."""
        return self.alpha * min(max(self.error, np.finfo(float).eps), 1.0) / 4


def cross_validated(values: Array, b: Array, size: float, rows: float, noise: float = 0.0) -> Penalty:
    """The largest α whose error is within half a per cent of the least one.

    `values` are λ, `b` is QᵀΦᵀWY with a column for each target, `size` the sum of w y² over all targets, and
    `rows` the total weight. `noise` is added to every α, for it is a penalty of its own.

    >>> lam, b = np.full(3, 100.0), np.array([[50.0], [40.0], [30.0]])
    >>> found = cross_validated(lam, b, size=60.0, rows=100.0)         # the fit leaves 10 of 60
    >>> round(found.alpha, 2), round(found.error, 3), round(found.freedom, 2)
    (3.16, 0.107, 2.91)
    """
    lam = np.maximum(values, 0.0)
    largest = float(lam.max(initial=0.0))
    if largest == 0.0:
        return Penalty(1.0, size / (rows * b.shape[1]), 0.0)
    grid = largest * 10.0 ** (-np.arange(PER_DECADE * DECADES + 1) / PER_DECADE)
    squares = (b**2).sum(axis=1)
    tried = [_judged(alpha, alpha + noise, lam, squares, size, rows, b.shape[1]) for alpha in grid]
    honest = [p for p in tried if p.freedom <= MOST_FREE * rows] or tried[:1]
    least = min(p.error for p in honest)
    return next(p for p in honest if p.error <= (1 + NEAR) * least)


def _judged(
    alpha: float, acting: float, lam: Array, squares: Array, size: float, rows: float, targets: int
) -> Penalty:
    shrunk = lam + acting
    rss = max(size - float((squares * (lam + 2 * acting) / shrunk**2).sum()), np.finfo(float).eps * size)
    freedom = float((lam / shrunk).sum())
    left = max(1.0 - freedom / rows, np.finfo(float).eps)
    return Penalty(float(alpha), rss / (rows * targets) / left**2, freedom)
