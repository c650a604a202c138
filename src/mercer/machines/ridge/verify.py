"""The certificate of a kernel ridge model again, from its coefficients and its data: for `mercer.verify`."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer.errors import ParameterError
from mercer.machines.ridge.parts import Penalty, objective
from mercer.solve.multipliers import Multipliers, of_smooth
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.machines.ridge.machine import RidgeMachine
    from mercer.machines.ridge.problem import RidgeProblem


class Recomputed(NamedTuple):
    """A certificate, and how far the rounding of its sums may move its numbers."""

    certificate: Certificate
    residual_rounding: float
    primal_rounding: float
    gap_rounding: float


def rounding_unit(terms: int) -> float:
    """A sum of so many products is off by at most this, relative to the sum of their sizes."""
    return (terms + 10) * float(np.finfo(float).eps)


def problem_again(model: RidgeMachine, A: Matrix, w: Array) -> RidgeProblem:
    """The problem of the model, of these rows and weights."""
    given = copy.copy(model)
    given.X_fit_ = A
    given._weight = w
    return given._problem(dataclasses.replace(model._options(), solver=model.solver_))


def recertify(model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> Recomputed:
    """Residual of (K + αW⁻¹)c = y - b, primal, dual and gap, with kernel products computed anew.

    Where predictions are made by other coordinates (β of features), what these give on the rows must be Kc as
    well: the difference counts in the residual.
    """
    problem = problem_again(model, A, w)
    kept = np.flatnonzero(w > 0)
    coef = model.dual_coef_.reshape(Y.shape)
    b = np.atleast_1d(model.intercept_)
    state = _State.of(model, problem, A[kept], coef[kept], Y[kept] - b)
    alphas = np.broadcast_to(np.asarray(model.fitted_alpha(), dtype=float), Y.shape[1])
    rest = np.empty_like(state.goal)
    each = np.empty(Y.shape[1])
    shaken = np.empty(Y.shape[1])
    primal: float | None = 0.0
    dual: float | None = 0.0
    moved = 0.0
    for alpha in np.unique(alphas):
        j = np.flatnonzero(alphas == alpha)
        part = state.targets(j)
        penalty = problem.penalty(float(alpha))
        rest[:, j] = part.rest(penalty)
        size = np.sqrt(penalty.weight)[:, None] * Y[kept][:, j]
        each[j] = relative(rest[:, j], size)
        shaken[j] = relative(part.rest_rounding(penalty, b[j]), size)
        energy = float(np.einsum("ij,ij->", part.c, part.products))
        parts = objective(part.goal, part.products, part.c, energy, penalty)
        moved += part.objective_rounding(penalty)
        if model.solver_ == "nystrom":
            value, rounding = _on_landmarks(model, problem, kept, part.goal, penalty, j)
            parts = (value, parts[1])
            moved += rounding
        primal = None if parts[0] is None or primal is None else primal + parts[0]
        dual = None if parts[1] is None or dual is None else dual + parts[1]
    done = Certificate(
        model.certificate_.status,
        "recomputed",
        primal=primal,
        dual=dual,
        gap=None if primal is None or dual is None else max(primal - dual, 0.0),
        residual=max(float(each.max(initial=0.0)), _astray(model, coef, alphas, w)),
        residuals=tuple(each.tolist()),
        worst_row=int(kept[np.argmax(rest.max(axis=1))]),
    )
    return Recomputed(done, float(shaken.max(initial=0.0)), moved, moved)


def _astray(model: RidgeMachine, coef: Array, alphas: Array, w: Array) -> float:
    """Coefficients of rows without weight, and their sum where an intercept makes it 0; relative to all."""
    stray = float(np.abs(coef[w == 0]).max(initial=0.0))
    # without a penalty the coefficients of least norm need not sum to 0
    balanced = model.fit_intercept and bool(np.all(alphas > 0))
    unbalanced = float(np.abs(coef[w > 0].sum(axis=0)).max()) if balanced else 0.0
    return max(stray, unbalanced) / max(float(np.abs(coef).sum()), 1e-300)


class _State(NamedTuple):
    """Coefficients, kernel products and targets less their intercepts, of rows with weight."""

    c: Array
    products: Array
    goal: Array
    elsewhere: Array
    rounding: Array

    @classmethod
    def of(cls, model: RidgeMachine, problem: RidgeProblem, A: Matrix, c: Array, goal: Array) -> _State:
        K = problem.operator(stored=False)
        products = np.asarray(K @ np.ascontiguousarray(c))
        elsewhere = np.zeros_like(products)
        if model.is_approximated:
            elsewhere = model._function(A).reshape(goal.shape) - products
        # |k(x, z)|² ≤ k(x, x) k(z, z): the sizes of what a product adds up
        root = np.sqrt(np.abs(K.diag()))
        rounding = rounding_unit(len(c)) * root[:, None] * (root @ np.abs(c))
        return cls(c, products, goal, elsewhere, rounding)

    def targets(self, j: Integers) -> _State:
        return _State(*(part[:, j] for part in self))

    def rest(self, penalty: Penalty) -> Array:
        """W½ times what is left of the system, or of what predicts."""
        off = self.goal - self.products - penalty.alpha / penalty.weight[:, None] * self.c
        largest: Array = np.maximum(np.abs(off), np.abs(self.elsewhere))
        return np.sqrt(penalty.weight)[:, None] * largest

    def rest_rounding(self, penalty: Penalty, b: Array) -> Array:
        sizes = np.abs(self.goal) + 2 * np.abs(b) + penalty.alpha / penalty.weight[:, None] * np.abs(self.c)
        return np.asarray(np.sqrt(penalty.weight)[:, None] * (self.rounding + rounding_unit(1) * sizes))

    def objective_rounding(self, penalty: Penalty) -> float:
        """Of the primal and the dual value together."""
        w = penalty.weight[:, None]
        errors = np.abs(self.goal - self.products)
        fit = w * (2 * errors + self.rounding) * self.rounding
        return float((fit + 3 * penalty.alpha * np.abs(self.c) * self.rounding).sum())


def name_multipliers(model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> list[Multipliers]:
    """Of each target: ξ_i = y_i - b - f(x_i), and its multiplier α_i = αc_i, at the optimum w_i ξ_i."""
    problem = _stated(model, A, w)
    kept = np.flatnonzero(w > 0)
    c = model.dual_coef_.reshape(Y.shape)[kept]
    if model.solver_ == "primal":
        products = model._function(A[kept]).reshape(c.shape)
    else:
        products = np.asarray(problem.operator(stored=False) @ np.ascontiguousarray(c))
    xi = Y[kept] - np.atleast_1d(model.intercept_) - products
    alphas = np.broadcast_to(np.asarray(model.fitted_alpha(), dtype=float), Y.shape[1])
    norms = np.sqrt(np.maximum((c * products).sum(axis=0), 0.0))
    out = []
    for j, alpha in enumerate(alphas):
        penalty = problem.penalty(float(alpha))
        slopes = -penalty.weight * xi[:, j]
        out.append(of_smooth(kept, penalty.alpha * c[:, j], xi[:, j], slopes, float(norms[j])))
    return out


def _stated(model: RidgeMachine, A: Matrix, w: Array) -> RidgeProblem:
    """The problem that the model solved, on data that are given again."""
    if model.solver_ == "nystrom":
        raise ParameterError(
            "a model with solver='nystrom' solves another problem than it states; pass "
            "approximation=Nystroem(...) instead, whose multipliers are those of its problem."
        )
    return problem_again(model, A, w)


def landmark_products(model: RidgeMachine, problem: RidgeProblem, kept: Integers) -> tuple[Array, Array]:
    """k(x, L) for all rows of weight and k(L, L), of a model on landmarks L."""
    at = np.searchsorted(kept, model.landmarks_)
    across = np.asarray(problem.operator(stored=False).block(slice(None), at), dtype=np.float64)
    return across, across[at]


def _on_landmarks(
    model: RidgeMachine, problem: RidgeProblem, kept: Integers, goal: Array, penalty: Penalty, j: Integers
) -> tuple[float, float]:
    """Σ w (y - f)² + α‖f‖² of f = Σ a_l k(x_l, ·), which is the function that predicts; and its rounding."""
    across, inner = landmark_products(model, problem, kept)
    a = model.landmark_coef_.reshape(len(inner), -1)[:, j]
    errors = goal - across @ a
    value = float(penalty.weight @ (errors**2).sum(axis=1)) + penalty.alpha * float((a * (inner @ a)).sum())
    unit = rounding_unit(len(a))
    off = unit * (np.abs(goal) + np.abs(across) @ np.abs(a))
    moved = float(penalty.weight @ ((2 * np.abs(errors) + off) * off).sum(axis=1))
    norm = float((np.abs(a) * (np.abs(inner) @ np.abs(a))).sum())
    return value, moved + penalty.alpha * unit * norm
