"""A fit that is linear in its targets, without one of its rows or with one more, from one factorisation.

A ridge or the mean of a Gaussian process solves a symmetric system whose inverse has the leading block G
(where there is an intercept, of the system that it borders):

    c = G y,     μ(x) = v(x)·y,     v(x) = A⁻¹k(x)            s(x) = k(x, x) + d(x) - k(x)·v(x)

Without row i.  Were y_i what the others say of it, the fit to all rows would have c_i = 0 and be the fit to
the others. So y_i moves by e_i = c_i / G_ii, and every prediction moves with it:

    y_i - μ₋ᵢ(x_i) = e_i,     μ₋ᵢ(x) = μ(x) - v_i(x) e_i,     s₋ᵢ(x) = s(x) + v_i(x)² / G_ii

With one more row (x, y).  The inverse of the system with one more row and column is known from v and s alone:

    c_i(y) = c_i - v_i (y - μ(x)) / s,     c_new(y) = (y - μ(x)) / s,     G_ii + v_i² / s,     G_new = 1 / s

so that all residuals are affine in y. The residual of row i within the fit is d_i c_i, with d_i what its
diagonal has beyond the kernel.

Where targets are taken about their mean m before the fit, c = G(y - m), and each row, left out or new, took
part in m: `constant` is G 1, by which that is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mercer.solve.path import divide_rows
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

Score = Literal["residual", "deleted", "normalised"]
# Of k(x, x): a variance below it is rounding, and a row of this kind is one that the fit has already.
NOTHING = 1e-13


@dataclass(frozen=True, eq=False)
class NewRows:
    """What a fit says of new rows: μ(x), v(x) as rows × n, and where they are asked for s(x) and d(x)."""

    mean: Array
    weights: Array
    spread: Array | None = None
    penalty: Array | None = None


@dataclass(frozen=True, eq=False)
class Lines:
    """Scores of the rows, one line for each, a + b·t, and of a new row p + q·t, at targets y = centre + t."""

    a: Array
    b: Array
    p: float
    q: float
    centre: float


@dataclass(frozen=True, eq=False)
class Smoother:
    """A fit that is linear in its targets: y, c, the diagonal of G, d, and v(x) and s(x) by `at`.

    `rows` are the places of its rows among those that were given to the fit (rows of weight 0 take no part).
    """

    y: Array
    coef: Array
    diagonal: Array
    penalty: Array
    rows: Integers
    at: Callable[[Matrix, bool], NewRows]
    constant: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    def deleted(self) -> Array:
        """e_i = y_i - μ₋ᵢ(x_i); NaN where no model is left without row i."""
        return _over(self.coef + self._recentred(), self.diagonal)

    def _recentred(self) -> Array:
        """(m - m₋ᵢ) (G1)_i: what leaving row i out of the mean of the targets changes in c_i."""
        if self.constant is None:
            return np.zeros(len(self))
        return np.asarray((self.y.mean() - _means_without_each(self.y)) * self.constant)

    def left_out_at(self, new: NewRows) -> Array:
        """μ₋ᵢ(x) for all new rows and all i, rows × n; NaN where no model is left without row i."""
        out = new.weights * -self.deleted()
        out += new.mean[:, None]
        if self.constant is not None:
            moved = _means_without_each(self.y) - self.y.mean()
            out += np.outer(1.0 - new.weights.sum(axis=1), moved)
        return out

    def deviations(self) -> Array:
        """√s₋ᵢ(x_i): the deviation that the fit without row i expects there."""
        return np.sqrt(_over(np.ones(len(self)), self.diagonal))

    def deviations_at(self, new: NewRows) -> Array:
        """√s₋ᵢ(x) for all new rows and all i, rows × n."""
        assert new.spread is not None
        return np.sqrt(new.spread[:, None] + _over((new.weights**2).T, self.diagonal).T)

    def lines(self, new: NewRows, row: int, score: Score) -> Lines | None:
        """The scores of all rows with one more, as functions of its target; None where it is one of them.

        Without noise a row that the fit has already makes the system singular.
        """
        assert new.spread is not None and new.penalty is not None
        v = new.weights[row]
        s = float(new.spread[row])
        mean = float(new.mean[row])
        if s == 0:
            return None
        # c of the rows and of the new one, as lines in t = y - mean
        a = np.append(self.coef, 0.0)
        b = np.append(-v / s, 1.0 / s)
        diagonal = np.append(self.diagonal + v**2 / s, 1.0 / s)
        if self.constant is not None:
            a, b = self._with_mean(a, b, v, s, mean, deleted=score != "residual")
        if score == "residual":
            factor = np.append(self.penalty, float(new.penalty[row]))
        elif score == "deleted":
            factor = 1.0 / diagonal
        else:
            factor = 1.0 / np.sqrt(diagonal)
        a, b = a * factor, b * factor
        return Lines(a[:-1], b[:-1], float(a[-1]), float(b[-1]), mean)

    def _with_mean(
        self, a: Array, b: Array, v: Array, s: float, mean: float, *, deleted: bool
    ) -> tuple[Array, Array]:
        """The same lines where the new target moves the mean of all, and each row is left out of it."""
        assert self.constant is not None
        n = len(self)
        m = float(self.y.mean())
        missing = (1.0 - float(v.sum())) / s
        ones = np.append(self.constant - v * missing, missing)
        # the mean of all n + 1 is m + (mean + t - m) / (n + 1)
        moved = (mean - m) / (n + 1)
        slope = 1.0 / (n + 1)
        a = a - moved * ones
        b = b - slope * ones
        if not deleted:
            return a, b
        # and that mean less the one without row i is (y_i - it) / n
        own = np.append(self.y, mean)
        own_slope = np.append(np.zeros(n), 1.0)
        return a + (own - m - moved) / n * ones, b + (own_slope - slope) / n * ones


def variance_left(own: Array, explained: Array) -> Array:
    """own - explained, 0 where that is rounding: the row is then one that the fit has without noise."""
    left = own - explained
    return np.where(left <= NOTHING * np.abs(own), 0.0, left)


def _over(errors: Array, diagonal: Array) -> Array:
    """Errors divided by rows; NaN where nothing is left."""
    many = errors.reshape(len(errors), -1)
    return divide_rows(many, diagonal).reshape(errors.shape)


def _means_without_each(y: Array) -> Array:
    """The mean of all others; NaN of a single one, which has no others."""
    if len(y) == 1:
        return np.full(1, np.nan)
    mean = float(y.mean())
    return mean - (y - mean) / (len(y) - 1)
