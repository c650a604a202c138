"""Multipliers and slacks of one problem, by their names in textbooks, measured from the model alone.

    min ½‖w‖² + Σ C_i ξ_i     y_i(w·φ(x_i) + b) ≥ 1 - ξ_i,   ξ_i ≥ 0

    α_i    of the first constraint          α_i (y_i f(x_i) - 1 + ξ_i) = 0
    β_i    of the second, β_i = C_i - α_i    β_i ξ_i = 0

The other machines have constraints of the same kind (`BoxProblem`), or a loss that is smooth: then every
slack is used, C is infinite, and what is left of the conditions is α_i = -ℓ'(y_i, f(x_i)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solve.box import BoxProblem
from mercer.solve.operator import Operator
from mercer.typing import Array, Integers


@dataclass(frozen=True, eq=False)
class Multipliers:
    """One entry for each constraint: `rows` says of which row, `signs` on which side (+1 above, -1 below).

    `xi` is the slack ξ, `excess` by how much a constraint is kept with room to spare, `off` how far α_i is
    from -ℓ' where the loss is smooth. `problem` and its Gram operator `K` are kept where there is a box. Both
    products of complementary slackness are 0 at the optimum, and their sum is the duality gap.
    """

    rows: Integers
    signs: Array
    alpha: Array
    xi: Array
    C: Array
    excess: Array
    off: Array
    norm: float
    problem: BoxProblem | None = None
    K: Operator | None = None

    @property
    def slack(self) -> Array:
        """ξ by its other name."""
        return self.xi

    @property
    def beta(self) -> Array:
        """C - α, the multiplier of ξ ≥ 0; infinite for a hard margin or a smooth loss."""
        return self.C - self.alpha

    @property
    def alpha_product(self) -> Array:
        """α times the room of its constraint: 0 at the optimum."""
        return self.alpha * self.excess

    @property
    def beta_product(self) -> Array:
        """β ξ: 0 at the optimum. Where β is infinite the constraint ξ = 0 is hard, and ξ itself is shown."""
        if self.problem is None:
            return np.zeros(len(self.xi))
        beta = np.where(np.isfinite(self.beta), self.beta, 1.0)
        return beta * self.xi

    @property
    def support(self) -> Integers:
        """Rows with α > 0."""
        return np.unique(self.rows[self.alpha != 0])

    @property
    def on_margin(self) -> Integers:
        """Rows with 0 < α < C: their constraint holds with equality."""
        return np.unique(self.rows[(self.alpha > 0) & (self.alpha < self.C)])

    @property
    def at_bound(self) -> Integers:
        """Rows with α = C: the only ones that may have ξ > 0."""
        return np.unique(self.rows[(self.alpha > 0) & (self.alpha >= self.C)])

    @property
    def worst(self) -> float:
        """The largest violation: of the two products, or of α = -ℓ'."""
        parts = (self.alpha_product, self.beta_product, self.off)
        return max(float(np.abs(part).max(initial=0.0)) for part in parts)


def of_box(problem: BoxProblem, alpha: Array, f: Array, m: tuple[float, float], K: Operator) -> Multipliers:
    """Multipliers of a box problem, from α, f = Kβ at its variables and the multipliers of its equalities."""
    # α a rounding away from its bound is at it, else a support vector at the bound would be called on the
    # margin.
    near = np.abs(alpha - problem.C) <= 1e-9 * max(float(np.abs(alpha).max(initial=0.0)), 1e-300)
    alpha = np.where(near, problem.C, alpha)
    g = problem.slack(f, m)
    norm2 = float((problem.signs * alpha) @ f)
    return Multipliers(
        problem.rows,
        problem.signs,
        alpha,
        np.maximum(-g, 0.0),
        problem.C,
        np.maximum(g, 0.0),
        np.zeros(len(alpha)),
        float(np.sqrt(max(norm2, 0.0))),
        problem,
        K,
    )


def of_smooth(rows: Integers, alpha: Array, xi: Array, slopes: Array, norm: float) -> Multipliers:
    """Multipliers of a smooth loss: α as fitted, ξ the residual or loss, and the slopes that α should be."""
    n = len(rows)
    free = np.full(n, np.inf)
    return Multipliers(rows, np.ones(n), alpha, xi, free, np.zeros(n), np.abs(alpha + slopes), norm)
