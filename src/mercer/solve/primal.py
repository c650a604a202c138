"""Ridge regression in explicit features, by the normal equations: cost n D², memory D² and one block of rows.

        min  Σ_i w_i (y_i - φ_i·β - b)² + α‖β‖²        over β, and over b where there is an intercept

The features come in blocks of rows, as often as they are asked for. With an intercept they are centred by
their weighted mean, so that a large offset cancels nothing. The gradient is always computed from the
features, never from their Gram matrix, and steps of refinement bring it down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import get_lapack_funcs

from mercer import lapack
from mercer.errors import NotPositiveDefiniteError
from mercer.solve.direct import Cholesky, factor
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate, Solution, Status
from mercer.typing import Array

Blocks = Callable[[], Iterator[tuple[slice, Array]]]
REFINEMENTS = 4


@dataclass(frozen=True, eq=False)
class FeatureRidge:
    """The problem above for given features, weights w > 0, penalty α ≥ 0 and intercept or not.

    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> problem = FeatureRidge(lambda: iter([(slice(0, 3), x)]), 1, np.ones(3), alpha=2.0)
    >>> beta, b, _ = problem.solve(np.array([[0.0], [1.0], [2.0]])).value
    >>> round(7 * beta.item(), 12), b.item()                  # Σxy / (Σx² + α) = 5 / 7, and no intercept
    (5.0, 0.0)
    """

    blocks: Blocks
    dimension: int
    weight: Array
    alpha: float
    intercept: bool = False

    @cached_property
    def mean(self) -> Array:
        """The weighted mean of the features; zero without an intercept."""
        if not self.intercept:
            return np.zeros(self.dimension)
        return np.asarray(self._weighted_sum() / self.weight.sum())

    def _centred(self) -> Iterator[tuple[slice, Array]]:
        for rows, P in self.blocks():
            yield rows, P - self.mean if self.intercept else P

    @cached_property
    def factor(self) -> Cholesky:
        """The Cholesky factor of Σ w φφᵀ + αI (φ centred); refused where it is singular."""
        if self.dimension == 0:
            # the map of a kernel that is 0 has no features, and there is nothing to factor
            return Cholesky(np.zeros((0, 0), order="F"), self.alpha)
        G = self._products()
        size = float(np.abs(G).sum(axis=0).max()) + self.alpha
        try:
            out = factor(G, self.alpha, overwrite=True)
        except NotPositiveDefiniteError as error:
            raise self._singular() from error
        (pocon,) = get_lapack_funcs(("pocon",), (out.lower,))
        if self.alpha == 0 and pocon(out.lower, size, uplo="L")[0] < self.dimension * np.finfo(float).eps:
            raise self._singular()
        return out

    def _singular(self) -> NotPositiveDefiniteError:
        n = len(self.weight)
        beside = " (beside the intercept)" if self.intercept else ""
        return NotPositiveDefiniteError(
            f"with alpha = {self.alpha:g} the {self.dimension} features of the kernel are linearly "
            f"dependent{beside} on these {n} rows, so the coefficients are not determined. Give alpha a "
            "positive value, or drop columns that are constant, copies or sums of others."
        )

    def solve(self, Y: Array, tol: float = 1e-10) -> Solution[tuple[Array, Array, Array]]:
        """β (D×t), b (t) and the errors y - φ·β - b (n×t), refined until the gradient is below `tol`."""
        start = time.perf_counter()
        centre = np.zeros(Y.shape[1])
        if self.intercept:
            centre = (self.weight @ Y) / self.weight.sum()
        Y = Y - centre
        goal = self._goal(Y)
        beta = self.factor.solve(goal)
        R, gradient = self._gradient(Y, beta)
        steps = 0
        for _ in range(REFINEMENTS):
            worst = float(relative(gradient, goal).max(initial=0.0))
            if worst <= tol:
                break
            better = beta + self.factor.solve(gradient)
            rest, slope = self._gradient(Y, better)
            if not relative(slope, goal).max(initial=0.0) <= 0.5 * worst:
                break
            beta = better
            R = rest
            gradient = slope
            steps += 1
        each = relative(gradient, goal)
        worst = float(each.max(initial=0.0))
        notes: tuple[str, ...] = ()
        if worst > tol:
            notes = (f"The gradient is {worst:.1e} of its start; rounding allows no less.",)
        primal = gap = dual = None
        if self.alpha > 0:
            primal = float(self.weight @ (R**2).sum(axis=1)) + self.alpha * float((beta**2).sum())
            # Of the dual at c = W R / α: Φᵀc - β is the gradient over α.
            gap = float((gradient**2).sum()) / self.alpha
            dual = primal - gap
        done = Certificate(
            Status.CONVERGED if worst <= tol else Status.STAGNATED,
            f"normal equations in {self.dimension} features",
            iterations=steps,
            seconds=time.perf_counter() - start,
            primal=primal,
            dual=dual,
            gap=gap,
            residual=worst,
            residuals=tuple(each.tolist()),
            added_diagonal=0.0,
            notes=notes,
        )
        return Solution((beta, centre - self.mean @ beta, R), done)

    # ── sums over the rows ──────────────────────────────────────────────────────────────────────────────────

    def _weighted_sum(self) -> Array:
        """Σ w φ."""
        out = np.zeros(self.dimension)
        for rows, P in self.blocks():
            out += self.weight[rows] @ P
        return out

    def _products(self) -> Array:
        """Σ w φφᵀ, φ centred."""
        G = np.zeros((self.dimension, self.dimension))
        root = np.sqrt(self.weight)
        for rows, P in self._centred():
            S = root[rows, None] * P
            G += S.T @ S
        return G

    def _goal(self, Y: Array) -> Array:
        """Σ w φy, φ centred."""
        out = np.zeros((self.dimension, Y.shape[1]))
        for rows, P in self._centred():
            out += P.T @ (self.weight[rows, None] * Y[rows])
        return out

    def _gradient(self, Y: Array, beta: Array) -> tuple[Array, Array]:
        """The errors, and Φᵀ W errors - α β."""
        R = np.empty_like(Y)
        gradient = -self.alpha * beta
        for rows, P in self._centred():
            R[rows] = Y[rows] - P @ beta
            gradient += P.T @ (self.weight[rows, None] * R[rows])
        return R, gradient

    def leverages(self) -> Array:
        """How much each fitted value follows its own target: the diagonal of the hat matrix."""
        out = self.weight * self._squares()
        return out + self.weight / self.weight.sum() if self.intercept else out

    def _squares(self) -> Array:
        """‖L⁻¹φ‖², φ centred, for the factor L."""
        out = np.zeros(len(self.weight))
        for rows, P in self._centred():
            half = lapack.solve_triangular(self.factor.lower, P.T)
            out[rows] = np.einsum("ij,ij->j", half, half)
        return out

    def image(self, V: Array) -> Array:
        """Φ V for the features as they come."""
        return np.vstack([P @ V for _, P in self.blocks()])

    def pull(self, R: Array) -> Array:
        """Φᵀ R for the features as they come."""
        out = np.zeros((self.dimension, *R.shape[1:]))
        for rows, P in self.blocks():
            out += P.T @ R[rows]
        return out

    def held(self) -> float:
        """Σ ‖φ‖² of the features as they come: the trace of ΦΦᵀ."""
        return sum(float(np.einsum("ij,ij->", P, P)) for _, P in self.blocks())

    def plain(self) -> FeatureRidge:
        """The same features with weights 1, without penalty and intercept."""
        return FeatureRidge(self.blocks, self.dimension, np.ones(len(self.weight)), 0.0)
