"""A fitted ridge as a smoother: what leaving a row out of it, or adding one, needs, from one factorisation.

dual      G = W½ (W½KW½ + α)⁻¹ W½, bordered by the intercept;  v(x) = G-side solution for k(x)
primal    the same in units of α: c = W(y - f), G = W(1 - H), v(x) = WΦ(ΦᵀWΦ + α)⁻¹φ(x), s = 1/w + φᵀ(…)⁻¹φ
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import InputError
from mercer.gram.on_rows import Approximated, Evaluated, KernelOnRows, features_of
from mercer.kernels.terms import noise_of
from mercer.machines.ridge.parts import Penalty, inverse_diagonal, weighted
from mercer.machines.ridge.problem import RidgeProblem
from mercer.solve.direct import Cholesky, factor
from mercer.solve.left_out import NewRows, Smoother, variance_left
from mercer.solve.primal import FeatureRidge
from mercer.sparse import Matrix, dense
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.machines.ridge.machine import RidgeMachine


def ridge_smoother(
    model: RidgeMachine, known: Cholesky | None = None, diagonal: Array | None = None
) -> Smoother:
    """The fit of one target as a smoother; `known` is the factor of its fit, `diagonal` that of G."""
    Y = model.targets_of_fit()
    if Y.shape[1] != 1:
        raise InputError(
            f"the model was fitted to {Y.shape[1]} targets; leaving rows out is for one. Fit one model "
            "for each."
        )
    rows = np.flatnonzero(model.weights_of_fit() > 0)
    y = Y[rows, 0]
    alpha = float(np.ravel(np.asarray(model.fitted_alpha(), dtype=float))[0])
    problem = model.problem_of_fit()
    penalty = problem.penalty(alpha)
    if model.solver_ in ("primal", "nystrom"):
        primal = _Primal(model, problem, penalty, alpha)
        c, G, d = primal.rows(y)
        return Smoother(y, c, G, d, rows, primal.at)
    problem.require_factor()
    c = model.dual_coef_.reshape(Y.shape)[rows, 0]
    dual = _Dual(model, problem, penalty, alpha, known)
    G = dual.diagonal() if diagonal is None else diagonal
    return Smoother(y, c, G, penalty.alpha / penalty.weight, rows, dual.at)


def _mean(model: RidgeMachine, A: Matrix) -> Array:
    """What the model says of rows that are checked."""
    return np.asarray(model._function(A) + model.intercept_, dtype=np.float64).reshape(A.shape[0])


def _new_penalty(on: KernelOnRows, A: Matrix, alpha: float) -> Array:
    """d(x) of new rows of weight 1: α, and the noise of the kernel."""
    m = A.shape[0]
    if isinstance(on, Approximated):
        return np.full(m, alpha + on.approximation.noise_)
    if not isinstance(on, Evaluated):
        return np.full(m, alpha)
    noise = noise_of(on.kernel, on.new_rows(A))
    return np.full(m, alpha) if noise is None else alpha + noise


@dataclass(frozen=True, eq=False)
class _Dual:
    """v and s by the Cholesky factor of W½KW½ + α."""

    model: RidgeMachine
    problem: RidgeProblem
    penalty: Penalty
    alpha: float
    known: Cholesky | None

    @cached_property
    def factor(self) -> Cholesky:
        if self.known is not None:
            return self.known
        return factor(weighted(self.problem.operator(stored=False), self.scale), self.penalty.alpha)

    @property
    def scale(self) -> Array:
        return np.sqrt(self.penalty.weight)

    @cached_property
    def border(self) -> Array | None:
        """A⁻¹1, where there is an intercept."""
        if not self.problem.intercept:
            return None
        return self.scale * self.factor.solve(self.scale)

    def diagonal(self) -> Array:
        border = self.scale if self.problem.intercept else None
        return self.penalty.weight * inverse_diagonal(self.factor, border)

    def at(self, A: Matrix, spread: bool) -> NewRows:
        on = self.problem.on
        k = np.asarray(on.between(A).dense(), dtype=np.float64)
        v = (self.scale[:, None] * self.factor.solve((k * self.scale).T)).T
        b = np.zeros(len(k))
        if self.border is not None:
            b = (k @ self.border - 1.0) / float(self.border.sum())
            v -= np.outer(b, self.border)
        mean = _mean(self.model, A)
        if not spread:
            return NewRows(mean, v)
        own = on.diagonal(A) + self.alpha
        left = variance_left(own, np.einsum("ij,ij->i", k, v) + b)
        return NewRows(mean, v, left, _new_penalty(on, A, self.alpha))


@dataclass(frozen=True, eq=False)
class _Primal:
    """v and s by the normal equations in features, in units of α, which may then be 0."""

    model: RidgeMachine
    problem: RidgeProblem
    penalty: Penalty
    alpha: float

    @cached_property
    def _found(self) -> tuple[FeatureRidge, Array, Callable[[Matrix], Array]]:
        """The system, the features of all rows, and those of new rows."""
        problem = self.problem
        on = problem.on
        change: Array | None = None
        if self.model.solver_ == "primal":
            features = problem.explicit()
        else:
            change, features = problem.landmarks()
        system = problem.feature_ridge(features, self.penalty)
        phi = np.vstack([P for _, P in features.blocks()]) - system.mean

        def new(A: Matrix) -> Array:
            if isinstance(on, Approximated):
                return on.features(A)
            if change is not None:
                return on.part(problem.chosen_landmarks).between(A).dense() @ change
            assert isinstance(on, Evaluated)
            return np.asarray(dense(features_of(problem.map(), on.new_rows(A))), dtype=np.float64)

        return system, phi, new

    def rows(self, y: Array) -> tuple[Array, Array, Array]:
        """c, the diagonal of G, and d, in units of α."""
        system, _, _ = self._found
        w = self.penalty.weight
        errors = system.solve(y[:, None]).value[2][:, 0]
        return w * errors, w * (1.0 - system.leverages()), 1.0 / w

    def at(self, A: Matrix, spread: bool) -> NewRows:
        system, phi, new = self._found
        w = self.penalty.weight
        mine = new(A) - system.mean
        half = system.factor.solve(mine.T)
        share = 1.0 / float(w.sum()) if system.intercept else 0.0
        v = ((phi @ half).T + share) * w
        mean = _mean(self.model, A)
        if not spread:
            return NewRows(mean, v)
        # a new row of weight 1 has this weight where the noise of the kernel counts as penalty
        total = _new_penalty(self.problem.on, A, self.alpha)
        own = np.ones(len(total)) if self.penalty.alpha == 0 else total / self.penalty.alpha
        return NewRows(mean, v, own + np.einsum("ij,ji->i", mine, half) + share, own)
