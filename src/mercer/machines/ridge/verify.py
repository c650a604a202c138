"""The certificate of a kernel ridge model again, from its coefficients and its data: for `mercer.verify`."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.errors import ParameterError
from mercer.machines.ridge.parts import objective
from mercer.solve.multipliers import Multipliers, of_smooth
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate

if TYPE_CHECKING:
    from mercer.machines.ridge.ridge import RidgeMachine


def problem_again(model: RidgeMachine, A: Any, w: np.ndarray) -> Any:
    """The problem of the model, of these rows and weights."""
    given = copy.copy(model)
    given.X_fit_, given._weight = A, w
    return given._problem(dataclasses.replace(model._options(), solver=model.solver_))


def recertify(model: RidgeMachine, A: Any, Y: np.ndarray, w: np.ndarray) -> Certificate:
    """Residual of (K + αW⁻¹)c = y - b, primal, dual and gap, with kernel products computed anew.

    Where predictions are made by other coordinates (β of features), what these give on the rows must be Kc as well: the
    difference counts in the residual.
    """
    problem = problem_again(model, A, w)
    kept = np.flatnonzero(w > 0)
    coef, b = model.dual_coef_.reshape(Y.shape), np.atleast_1d(model.intercept_)
    c, Y = coef[kept], Y[kept]
    products = np.asarray(problem.operator(stored=False) @ np.ascontiguousarray(c))
    elsewhere = np.zeros_like(products)
    if model._approximated or hasattr(model, "coef_"):
        elsewhere = model._function(A[kept]).reshape(Y.shape) - products
    primal: Any = 0.0
    dual: Any = 0.0
    rest = np.empty_like(Y)
    each = np.empty(Y.shape[1])
    alphas = np.broadcast_to(np.asarray(model._fitted_alpha(), dtype=float), Y.shape[1])
    for alpha in np.unique(alphas):
        j = np.flatnonzero(alphas == alpha)
        penalty = problem.penalty(float(alpha))
        scale, spread = np.sqrt(penalty.weight)[:, None], penalty.alpha / penalty.weight[:, None]
        off = Y[:, j] - b[j] - products[:, j] - spread * c[:, j]
        rest[:, j] = scale * np.maximum(np.abs(off), np.abs(elsewhere[:, j]))
        each[j] = relative(rest[:, j], scale * Y[:, j])
        if alpha == 0 and model.solver_ == "primal":
            stray_function = np.abs(elsewhere[:, j]).max(axis=0)
            each[j] = _slope_in_features(model, A[kept], Y[:, j], off, penalty.weight) + stray_function
        energy = float(np.einsum("ij,ij->", c[:, j], products[:, j]))
        parts = objective(Y[:, j] - b[j], products[:, j], c[:, j], energy, penalty)
        if model.solver_ == "nystrom":
            parts = (_on_landmarks(model, problem, kept, Y - b, penalty, j), parts[1])
        primal, dual = (
            None if total is None or part is None else total + part
            for total, part in zip((primal, dual), parts, strict=True)
        )
    stray = float(np.abs(coef[w == 0]).max(initial=0.0))
    # without a penalty the coefficients of least norm need not sum to 0
    balanced = model.fit_intercept and bool(np.all(alphas > 0))
    unbalanced = float(np.abs(c.sum(axis=0)).max()) if balanced else 0.0
    size = max(float(np.abs(coef).sum()), 1e-300)
    return Certificate(
        model.certificate_.status,
        "recomputed",
        primal=primal,
        dual=dual,
        gap=None if primal is None or dual is None else max(primal - dual, 0.0),
        residual=max(float(each.max(initial=0.0)), stray / size, unbalanced / size),
        residuals=tuple(each.tolist()),
        worst_row=int(kept[np.argmax(rest.max(axis=1))]),
    )


def _slope_in_features(
    model: RidgeMachine, A: Any, Y: np.ndarray, errors: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Least squares without a penalty: ΦᵀW(y - f) of each target, relative to that of no function at all."""
    rows = model._rows(A)
    phi = model.approximation_.features(rows) if model._approximated else model.feature_map_(rows)
    phi = np.asarray(phi, dtype=np.float64)
    start = Y
    mean = np.zeros(Y.shape[1])
    if model.fit_intercept:
        mean = np.abs(weight @ errors) / np.maximum(weight @ np.abs(Y), np.finfo(float).tiny)
        phi = phi - weight @ phi / weight.sum()
        start = Y - weight @ Y / weight.sum()
    return relative(phi.T @ (weight[:, None] * errors), phi.T @ (weight[:, None] * start)) + mean


def name_multipliers(model: RidgeMachine, A: Any, Y: np.ndarray, w: np.ndarray) -> list[Multipliers]:
    """Of each target: ξ_i = y_i - b - f(x_i), and its multiplier α_i = αc_i, which is w_i ξ_i at the optimum."""
    problem = _stated(model, A, w)
    kept = np.flatnonzero(w > 0)
    c = model.dual_coef_.reshape(Y.shape)[kept]
    products = np.asarray(problem.operator(stored=False) @ np.ascontiguousarray(c))
    xi = Y[kept] - np.atleast_1d(model.intercept_) - products
    alphas = np.broadcast_to(np.asarray(model._fitted_alpha(), dtype=float), Y.shape[1])
    norms = np.sqrt(np.maximum((c * products).sum(axis=0), 0.0))
    out = []
    for j, alpha in enumerate(alphas):
        penalty = problem.penalty(float(alpha))
        slopes = -penalty.weight * xi[:, j]
        out.append(of_smooth(kept, penalty.alpha * c[:, j], xi[:, j], slopes, float(norms[j])))
    return out


def _stated(model: RidgeMachine, A: Any, w: np.ndarray) -> Any:
    """The problem that the model solved, on data that are given again."""
    if model.solver_ == "nystrom":
        raise ParameterError(
            "a model with solver='nystrom' solves another problem than it states; pass approximation=Nystroem(...) instead, "
            "whose multipliers are those of its problem."
        )
    return problem_again(model, A, w)


def landmark_products(model: RidgeMachine, problem: Any, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k(x, L) for all rows of weight and k(L, L), of a model on landmarks L."""
    at = np.searchsorted(kept, model.landmarks_)
    across = np.asarray(problem.operator(stored=False).block(slice(None), at), dtype=np.float64)
    return across, across[at]


def _on_landmarks(
    model: RidgeMachine, problem: Any, kept: np.ndarray, rest: np.ndarray, penalty: Any, j: np.ndarray
) -> float:
    """Σ w (y - f)² + α‖f‖² of f = Σ a_l k(x_l, ·), which is the function that predicts."""
    across, inner = landmark_products(model, problem, kept)
    a = model.landmark_coef_.reshape(len(inner), -1)[:, j]
    errors = rest[:, j] - across @ a
    return float(penalty.weight @ (errors**2).sum(axis=1)) + penalty.alpha * float((a * (inner @ a)).sum())
