"""The certificate of a ridge solved in features, again in features, and how far rounding may move it.

The Gram matrix of columns far from the origin has entries of the size of their squares, and rounds away what
a solution in features still sees. So the conditions are asked where the fit met them:

        e = y - Φβ - b,      ΦᵀWe = αβ,      b = mean of y - Φβ,      c = We / α

Every recomputed number comes with a bound of its rounding, from the sizes of the terms that are added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer.machines.ridge.parts import Penalty
from mercer.machines.ridge.verify import Recomputed, rounding_unit
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix, dense
from mercer.theory.claims import EXACT, Examination
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.machines.ridge.machine import RidgeMachine
    from mercer.machines.ridge.problem import RidgeProblem

# of coefficients without a penalty, which two triangular solves of ΦᵀΦ give
UNDETERMINED = 1e-5


class Within(NamedTuple):
    """A number or array, and how far another order of the same sums may be from it."""

    value: Any
    rounding: Any


class Part(NamedTuple):
    """What follows from β for the targets that share one α."""

    intercept: Within
    errors: Within
    residuals: Within
    primal: Within
    gap: Within


Parts = list[tuple[Integers, Penalty, Part]]


def features_again(model: RidgeMachine, A: Matrix) -> Array:
    """Φ of these rows, n×D."""
    rows = model.as_rows(A)
    phi = model.approximation_.features(rows) if model.is_approximated else model.feature_map_(rows)
    return np.asarray(dense(phi), dtype=np.float64)


def recertify_in_features(
    model: RidgeMachine, problem: RidgeProblem, phi: Array, Y: Array
) -> tuple[Recomputed, Parts]:
    """All numbers of the certificate from `coef_` alone; rows and targets are those of positive weight."""
    beta = np.asarray(model.coef_).reshape(phi.shape[1], Y.shape[1])
    alphas = np.broadcast_to(np.asarray(model.fitted_alpha(), dtype=float), Y.shape[1])
    residuals = np.empty(Y.shape[1])
    shaken = np.empty(Y.shape[1])
    parts = []
    for alpha in np.unique(alphas):
        j = np.flatnonzero(alphas == alpha)
        penalty = problem.penalty(float(alpha))
        part = _part(phi, beta[:, j], Y[:, j], penalty, bool(model.fit_intercept))
        residuals[j] = part.residuals.value
        shaken[j] = part.residuals.rounding
        parts.append((j, penalty, part))
    primal = gap = None
    primal_moved = 0.0
    gap_moved = 0.0
    if all(penalty.alpha > 0 for _, penalty, _ in parts):
        primal = sum(part.primal.value for *_, part in parts)
        gap = sum(part.gap.value for *_, part in parts)
        primal_moved = sum(part.primal.rounding for *_, part in parts)
        gap_moved = sum(part.gap.rounding for *_, part in parts)
    done = Certificate(
        model.certificate_.status,
        "recomputed in features",
        primal=primal,
        dual=None if primal is None or gap is None else primal - gap,
        gap=gap,
        residual=float(residuals.max(initial=0.0)),
        residuals=tuple(residuals.tolist()),
    )
    return Recomputed(done, float(shaken.max(initial=0.0)), primal_moved, gap_moved), parts


def _part(phi: Array, beta: Array, Y: Array, penalty: Penalty, intercept: bool) -> Part:
    """Errors, gradient and objective at β, each with the worst that the rounding of its sums can do."""
    n, count = phi.shape
    unit = rounding_unit(n + count)
    w = penalty.weight[:, None]
    mean = np.zeros(count)
    centre = np.zeros(Y.shape[1])
    if intercept:
        mean = penalty.weight @ phi / penalty.weight.sum()
        centre = penalty.weight @ Y / penalty.weight.sum()
    inner = phi - mean
    size = np.abs(inner)
    terms = np.abs(Y) + np.abs(centre) + (np.abs(phi) + np.abs(mean)) @ np.abs(beta)

    errors = Within(Y - centre - inner @ beta, unit * terms)
    goal = Within(inner.T @ (w * (Y - centre)), unit * size.T @ (w * (np.abs(Y) + np.abs(centre))))
    slope = Within(
        inner.T @ (w * errors.value) - penalty.alpha * beta,
        size.T @ (w * (errors.rounding + unit * np.abs(errors.value))) + unit * penalty.alpha * np.abs(beta),
    )
    return Part(
        Within(centre - mean @ beta, unit * (np.abs(centre) + np.abs(mean) @ np.abs(beta))),
        errors,
        _ratio(slope, goal),
        _objective(beta, errors, penalty, unit),
        _gap(slope, penalty),
    )


def _ratio(slope: Within, goal: Within) -> Within:
    """‖gradient‖ relative to that of no function at all; without bounds where this is rounding alone."""
    found = relative(slope.value, goal.value)
    known = np.linalg.norm(goal.value, axis=0) - np.linalg.norm(goal.rounding, axis=0)
    off = np.linalg.norm(slope.rounding, axis=0) + found * np.linalg.norm(goal.rounding, axis=0)
    return Within(found, np.where(known > 0, off / np.where(known > 0, known, 1.0), np.inf))


def _objective(beta: Array, errors: Within, penalty: Penalty, unit: float) -> Within:
    """Σ w e² + α‖β‖²."""
    w = penalty.weight
    value = float(w @ (errors.value**2).sum(axis=1)) + penalty.alpha * float((beta**2).sum())
    moved = (2 * np.abs(errors.value) + errors.rounding) * errors.rounding
    return Within(value, float(w @ moved.sum(axis=1)) + unit * value)


def _gap(slope: Within, penalty: Penalty) -> Within:
    """‖gradient‖² / α: what the objective at β is above the dual at c = We / α."""
    if penalty.alpha <= 0:
        return Within(None, 0.0)
    moved = (2 * np.abs(slope.value) + slope.rounding) * slope.rounding
    return Within(float((slope.value**2).sum()) / penalty.alpha, float(moved.sum()) / penalty.alpha)


def examine_coefficients(
    exam: Examination, model: RidgeMachine, kept: Integers, phi: Array, parts: Parts
) -> None:
    """`intercept_` and `dual_coef_` are what β says they are, to the rounding of the sums that give them.

    So is the dual value: that of the primal less the gap, which may be known to fewer digits than either is
    stated.
    """
    done = model.certificate_
    if done.primal is not None and done.dual is not None:
        between = done.primal - done.dual
        exam.same("the gap between primal and dual", done.gap, between, scale=abs(done.primal))
    intercepts = np.atleast_1d(model.intercept_)
    coef = np.asarray(model.dual_coef_).reshape(len(model._weight), len(intercepts))
    beta = np.asarray(model.coef_).reshape(phi.shape[1], len(intercepts))
    outside = np.setdiff1d(np.arange(len(coef)), kept)
    exam.same("dual_coef_ of rows without weight", coef[outside], np.zeros_like(coef[outside]))
    for j, penalty, part in parts:
        b = part.intercept
        exam.same("intercept_", intercepts[j], b.value, within=1.0, scale=b.rounding)
        c = coef[np.ix_(kept, j)]
        if penalty.alpha > 0:
            factor = penalty.weight[:, None] / penalty.alpha
            wanted = factor * part.errors.value
            exam.same("dual_coef_", c, wanted, within=1.0, scale=factor * part.errors.rounding)
        else:
            size = UNDETERMINED * np.abs(beta[:, j]).max(initial=0.0)
            size = size + rounding_unit(len(phi)) * (np.abs(phi).T @ np.abs(c))
            exam.same("coef_", beta[:, j], phi.T @ c, within=1.0, scale=size)


def examine_map(exam: Examination, model: RidgeMachine, problem: RidgeProblem, phi: Array) -> None:
    """φ(x)·φ(z) is k(x, z): both matrices times one random vector."""
    if model.is_approximated:
        return
    v = np.random.default_rng(0).normal(size=(len(phi), 1))
    products = np.asarray(problem.operator(stored=False) @ v)
    size = np.abs(phi) @ (np.abs(phi).T @ np.abs(v))
    exam.same("K v by features", phi @ (phi.T @ v), products, within=EXACT, scale=size)
