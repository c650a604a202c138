"""The claims of the ridge machines: the system is solved, and predictions are made by what solves it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.machines.base import PRECOMPUTED
from mercer.machines.examine import examine
from mercer.machines.examine.common import (
    HISTORY,
    again,
    same_approximation,
    same_kernel,
    same_published,
    same_rows,
)
from mercer.machines.least_squares import KernelLeastSquares
from mercer.machines.ridge import RidgeMachine
from mercer.machines.ridge_cv import KernelRidgeCV
from mercer.machines.ridge_verify import landmark_products, problem_again, recertify
from mercer.solve.solution import Certificate
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most


@examine.register
def _(model: RidgeMachine, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    A, Y, w = model._check_again(X, y, sample_weight)
    exam.same("n_features_in_", model.n_features_in_, A.shape[1])
    same_kernel(exam, model, A, w)
    same_approximation(exam, model, A, w)
    exam.same("the weights", model._weight, w)
    exam.same("the targets", model._targets, Y)
    if model.kernel_ == PRECOMPUTED:
        exam.same("X_fit_", model.X_fit_, A)
    else:
        same_rows(exam, "X_fit_", model.X_fit_, A)
    if isinstance(model, KernelRidgeCV):
        _path(exam, model, X, y, sample_weight)
    found = recertify(model, A, Y, w)
    size = float(np.sqrt(w) @ np.abs(Y).sum(axis=1))
    exam.certificate(model.certificate_, found, reached=_solved(model, found), scale=size**2 * 1e-9)
    if not model.fit_intercept:
        exam.same("intercept_ without a bias", np.max(np.abs(model.intercept_)), 0.0)
    _other_coordinates(exam, model, A, Y, w)


def _solved(model: RidgeMachine, found: Certificate) -> Reached:
    """The residual of the whole system; on landmarks that is no aim, and their own conditions are looked at instead."""
    if model.solver_ == "nystrom":
        return AS_DEFINED
    return at_most("the residual", found.residual, 10 * float(model.tol) + SOLVED)


def _other_coordinates(exam: Examination, model: RidgeMachine, A: Any, Y: np.ndarray, w: np.ndarray) -> None:
    """Weights of features, by which `predict` goes, give the function that the coefficients of the rows give."""
    if model._approximated:
        phi = model.approximation_.features(model._rows(A))
        coef = model.dual_coef_.reshape(Y.shape)
        size = float(np.abs(model.feature_coef_).max(initial=0.0))
        found = (phi.T @ coef).reshape(model.feature_coef_.shape)
        error = (model.certificate_.residual or 0.0) * float(np.linalg.norm(Y)) / max(size, 1e-300)
        exam.same("feature_coef_", model.feature_coef_, found, within=max(1e-5, 10 * error))
    if model.solver_ == "nystrom":
        _from_landmarks(exam, model, A, Y, w)
    if model.solver_ == "primal" and model._approximated:
        exam.same("coef_", model.coef_, model.feature_coef_)
    elif model.solver_ == "primal":
        phi = model.feature_map_(model._rows(A))
        coef = model.dual_coef_.reshape(Y.shape)
        found = (phi.T @ coef).reshape(model.coef_.shape)
        exam.same("coef_", model.coef_, found, within=1e-5)


def _from_landmarks(exam: Examination, model: RidgeMachine, A: Any, Y: np.ndarray, w: np.ndarray) -> None:
    """The best function on landmarks: its errors are the coefficients of the rows, and no landmark would change it."""
    kept = np.flatnonzero(w > 0)
    problem = problem_again(model, A, w)
    proper = len(np.unique(model.landmarks_)) == len(model.landmarks_) and np.all(w[model.landmarks_] > 0)
    exam.true(proper, "landmarks_ names a row twice, or one without weight")
    across, inner = landmark_products(model, problem, kept)
    a = model.landmark_coef_.reshape(len(inner), -1)
    c = model.dual_coef_.reshape(Y.shape)[kept]
    errors = Y[kept] - np.atleast_1d(model.intercept_) - across @ a
    alphas = np.broadcast_to(np.asarray(model._fitted_alpha(), dtype=float), Y.shape[1])
    for j, alpha in enumerate(alphas):
        penalty = problem.penalty(float(alpha))
        found = penalty.weight * errors[:, j] / penalty.alpha
        exam.same("dual_coef_ of the rows", c[:, j], found, within=SOLVED)
        exam.same("k(L, L) a and k(L, X) c", inner @ a[:, j], across.T @ c[:, j], within=1e-6)


def _path(exam: Examination, model: KernelRidgeCV, X: Any, y: Any, sample_weight: Any) -> None:
    """The errors of every penalty, and the choice among them."""
    twin = again(model, X, y, sample_weight)
    for name in ("alphas_", "loo_errors_", "gcv_errors_", "dof_path_", "alpha_", "best_error_"):
        exam.same(name, getattr(model, name), getattr(twin, name), within=SOLVED)
    if model.cv is not None and not callable(getattr(model.cv, "split", None)):
        exam.same("cv_errors_", model.cv_errors_, twin.cv_errors_, within=SOLVED)


@examine.register
def _(model: KernelLeastSquares, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    """The steps are the definition of the answer: they are taken again."""
    A = model._check_rows(X, reset=False)
    taken = len(model.path_.train_errors) - 1
    twin = again(model, X, y, sample_weight, max_iter=max(taken, 1), max_seconds=None)
    same_approximation(exam, model, A, _learned(model, A, sample_weight))
    same_published(exam, model, twin, skip=HISTORY - {"n_iter_"}, within=SOLVED)
    c = twin.certificate_
    found = type(c)(
        model.certificate_.status, "recomputed", primal=c.primal, residual=c.residual, added_diagonal=0.0
    )
    reached = Reached(c.status == "converged", "the same steps end before the tolerance is met")
    exam.certificate(model.certificate_, found, reached=reached)


def _learned(model: KernelLeastSquares, A: Any, sample_weight: Any) -> np.ndarray:
    from mercer.machines.base import check_weights

    w = check_weights(sample_weight, A.shape[0])
    out = np.zeros(len(w))
    out[model._used] = w[model._used]
    return out
