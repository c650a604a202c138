"""The claims of the ridge machines: the system is solved, and predictions are made by what solves it."""

from __future__ import annotations

import numpy as np

from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.ridge.examine_features import examine_learning
from mercer.machines.ridge.feature_base import FeatureMachine
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.ridge_cv import GRID, KernelRidgeCV
from mercer.machines.ridge.verify import (
    Recomputed,
    landmark_products,
    problem_again,
    recertify,
    rounding_unit,
)
from mercer.machines.ridge.verify_features import (
    examine_coefficients,
    examine_map,
    features_again,
    recertify_in_features,
)
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    again,
    features_of,
    plain_gram,
    same_approximation,
    same_kernel,
    same_rows,
    same_width,
)
from mercer.solve.path import divide_rows
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Integers, Table, Targets, Weights

# of a path by inverses, where the smallest penalties leave fewer digits
CLOSE = 1e-6
# multiplications for the inverses of a path; beyond, its ends and the chosen point are looked at
PATH_WORK = 2e11


@examine.register
def _(model: RidgeMachine, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A, Y, w = model.check_again(X, y, sample_weight)
    same_width(exam, model, A)
    if isinstance(model, FeatureMachine):
        examine_learning(exam, model, A, Y, w)
    else:
        same_kernel(exam, model, A, w)
    same_approximation(exam, model, A, w)
    exam.same("the weights", model._weight, w)
    exam.same("the targets", model._targets, Y)
    if model.kernel_ == PRECOMPUTED:
        exam.same("X_fit_", model.X_fit_, A)
    else:
        same_rows(exam, "X_fit_", model.X_fit_, A)
    if isinstance(model, KernelRidgeCV):
        _path(exam, model, A, Y, w)
    if not model.fit_intercept:
        exam.same("intercept_ without a bias", np.max(np.abs(model.intercept_)), 0.0)
    if model.solver_ == "primal":
        _solved_in_features(exam, model, A, Y, w)
    else:
        _solved_in_rows(exam, model, A, Y, w)


def _solved_in_features(exam: Examination, model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> None:
    """A fit in features: the certificate from β, and everything else that is published from β too."""
    kept = np.flatnonzero(w > 0)
    problem = problem_again(model, A, w)
    phi = features_again(model, A[kept])
    found, parts = recertify_in_features(model, problem, phi, Y[kept])
    bound = 10 * float(model.tol) + max(SOLVED, found.residual_rounding)
    _certificate(exam, model, found, at_most("the residual", found.certificate.residual, bound), Y, w)
    examine_coefficients(exam, model, kept, phi, parts)
    examine_map(exam, model, problem, phi)
    if model.is_approximated:
        exam.same("feature_coef_", model.feature_coef_, model.coef_)


def _solved_in_rows(exam: Examination, model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> None:
    """A fit of (K + αW⁻¹)c = y - b: its residual and its objective from c."""
    found = recertify(model, A, Y, w)
    # on landmarks the whole system is no aim: their own conditions are looked at instead
    reached = AS_DEFINED
    if model.solver_ != "nystrom":
        reached = at_most("the residual", found.certificate.residual, 10 * float(model.tol) + SOLVED)
    _certificate(exam, model, found, reached, Y, w)
    _other_coordinates(exam, model, A, Y, w)


def _certificate(
    exam: Examination, model: RidgeMachine, found: Recomputed, reached: Reached, Y: Array, w: Array
) -> None:
    """The numbers of the certificate, as far as rounding lets them be known."""
    claimed = model.certificate_
    if reached.met and model.solver_ != "nystrom":
        reached = at_most("the residual that it states", claimed.residual, 10 * float(model.tol))
    targets = float(np.sqrt(w) @ np.abs(Y).sum(axis=1))
    least = targets**2 * 1e-9
    moved = found.primal_rounding + found.gap_rounding
    scale = {
        "primal": max(least, found.primal_rounding / SOLVED),
        "dual": max(least, moved / SOLVED),
        "gap": max(least, moved / SOLVED),
    }
    unit = max(1.0, found.residual_rounding / SOLVED)
    exam.certificate(claimed, found.certificate, reached=reached, scale=scale, unit=unit)


def _other_coordinates(exam: Examination, model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> None:
    """Weights of features, by which `predict` goes, give the function that the coefficients of rows give."""
    if model.is_approximated:
        phi = model.approximation_.features(model.as_rows(A))
        coef = model.dual_coef_.reshape(Y.shape)
        shape = model.feature_coef_.shape
        size = (np.abs(phi).T @ np.abs(coef)).reshape(shape)
        unit = rounding_unit(len(phi))
        exam.same(
            "feature_coef_", model.feature_coef_, (phi.T @ coef).reshape(shape), within=unit, scale=size
        )
    if model.solver_ == "nystrom":
        _from_landmarks(exam, model, A, Y, w)


def _from_landmarks(exam: Examination, model: RidgeMachine, A: Matrix, Y: Array, w: Array) -> None:
    """The best function on landmarks: its errors are the coefficients of rows, no landmark changes it."""
    kept = np.flatnonzero(w > 0)
    problem = problem_again(model, A, w)
    proper = len(np.unique(model.landmarks_)) == len(model.landmarks_) and np.all(w[model.landmarks_] > 0)
    exam.true(proper, "landmarks_ names a row twice, or one without weight")
    if isinstance(model.random_state, int | np.integer):
        drawn = np.random.default_rng(model.random_state).permutation(len(kept))[: len(model.landmarks_)]
        exam.same("landmarks_", model.landmarks_, kept[np.sort(drawn)])
    else:
        exam.cannot("which rows are landmarks: they were drawn without a seed")
    across, inner = landmark_products(model, problem, kept)
    a = model.landmark_coef_.reshape(len(inner), -1)
    c = model.dual_coef_.reshape(Y.shape)[kept]
    b = np.atleast_1d(model.intercept_)
    errors = Y[kept] - b - across @ a
    off = rounding_unit(len(a)) * (np.abs(Y[kept]) + np.abs(b) + _landmark_sizes(across, inner, a))
    alphas = np.broadcast_to(np.asarray(model.fitted_alpha(), dtype=float), Y.shape[1])
    for j, alpha in enumerate(alphas):
        penalty = problem.penalty(float(alpha))
        factor = penalty.weight / penalty.alpha
        exam.same(
            "dual_coef_ of the rows", c[:, j], factor * errors[:, j], within=1.0, scale=factor * off[:, j]
        )
        # directions of k(L, L) that rounding hides are left out of a, by the square root of what is added up
        size = 1e-6 * float((np.abs(across).T @ np.abs(c[:, j])).max())
        size = size + np.abs(across).T @ (factor * off[:, j])
        exam.same("k(L, L) a and k(L, X) c", inner @ a[:, j], across.T @ c[:, j], within=1.0, scale=size)


def _landmark_sizes(across: Array, inner: Array, a: Array) -> Array:
    """The size of what is added up for f(x): ‖k(x, L)‖ ‖f‖ / √λ, λ the least eigenvalue beyond rounding."""
    values = np.linalg.eigvalsh(inner)
    cut = len(a) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    # one near the cut may have been on its other side in the fit
    seen = values[values > 0.1 * cut]
    if not len(seen):
        return np.zeros((len(across), a.shape[1]))
    norms = np.sqrt(np.maximum((a * (inner @ a)).sum(axis=0), 0.0))
    whole: Array = np.linalg.norm(across, axis=1)[:, None] * norms / np.sqrt(max(seen[0], cut))
    sizes: Array = np.abs(across) @ np.abs(a)
    return np.maximum(whole, sizes)


def _path(exam: Examination, model: KernelRidgeCV, A: Matrix, Y: Array, w: Array) -> None:
    """The errors of every penalty by inverses, not by the eigenpairs of the fit; and the choice."""
    kept = np.flatnonzero(w > 0)
    K, level = _smooth_gram(model, A, w)
    Y = Y[kept]
    w = w[kept]
    size = float(np.diagonal(K).mean())
    grid = GRID * (size if size > 0 else 1.0)
    if model.alphas is not None:
        grid = np.array(model.alphas, dtype=float)
    exam.same("alphas_", model.alphas_, grid)
    decisive = model.loo_errors_ if model.criterion == "loo" else model.gcv_errors_
    if model.cv is not None:
        decisive = model.cv_errors_
    errors = np.reshape(decisive, (len(grid), Y.shape[1]))
    best = _chosen(exam, model, errors)
    some = _affordable(exam, best, len(grid), len(K))
    clear = _along(exam, model, K, Y, w, level, some)
    if not clear:
        # rounding of K is more than the penalty: only the features or the eigenpairs of the fit can tell
        _path_again(exam, model, A, model._targets, model._weight)
        return
    if model.cv is not None and not callable(getattr(model.cv, "split", None)):
        found = _on_folds(model, K, Y, w, level, kept, some)
        exam.same("cv_errors_", errors[some], found, within=1e-4)


def _affordable(exam: Examination, best: Integers, count: int, n: int) -> Integers:
    """The points of the path that are looked at: all, or its ends and the chosen ones."""
    if count * n**3 <= PATH_WORK:
        return np.arange(count)
    some = np.unique([0, *best, count - 1])
    exam.cannot(f"{count - len(some)} of {count} points of the path: there are too many rows")
    return some


def _along(
    exam: Examination,
    model: KernelRidgeCV,
    K: Array,
    Y: Array,
    w: Array,
    level: float,
    some: Integers,
) -> bool:
    """Every point to the digits that its inverse has; False where one of them has too few."""
    top = float(np.linalg.norm(np.sqrt(w)[:, None] * K * np.sqrt(w), 2))
    for i in some:
        alpha = float(model.alphas_[i]) + level
        digits = 100 * np.finfo(float).eps * (top + alpha) / alpha
        if digits > 1e-4:
            return False
        loo, gcv, dof = _at(K, Y, w, alpha, bool(model.fit_intercept))
        share = abs(1.0 - dof / float(w.sum()))
        if digits > 1e-4 * share:
            return False
        within = max(CLOSE, digits) / max(share, 1e-3)
        exam.same(
            f"loo_errors_ at alpha={alpha:g}", np.reshape(model.loo_errors_[i], loo.shape), loo, within=within
        )
        exam.same(
            f"gcv_errors_ at alpha={alpha:g}", np.reshape(model.gcv_errors_[i], gcv.shape), gcv, within=within
        )
        exam.same(
            f"dof_path_ at alpha={alpha:g}", model.dof_path_[i], dof, within=max(CLOSE, digits), scale=len(K)
        )
    return True


def _path_again(exam: Examination, model: KernelRidgeCV, A: Matrix, Y: Array, w: Array) -> None:
    twin = again(model, A, Y[:, 0] if model._single else Y, w)
    for name in ("loo_errors_", "gcv_errors_", "dof_path_"):
        exam.same(name, getattr(model, name), getattr(twin, name), within=SOLVED)
    if model.cv is not None and not callable(getattr(model.cv, "split", None)):
        exam.same("cv_errors_", model.cv_errors_, twin.cv_errors_, within=SOLVED)


def _chosen(exam: Examination, model: KernelRidgeCV, errors: Array) -> Integers:
    """The penalty is that of the least error: one for all targets, or one for each."""
    finite = np.where(np.isfinite(errors), errors, np.inf)
    total = finite if model.alpha_per_target else finite.sum(axis=1, keepdims=True)
    best = np.broadcast_to(np.argmin(total, axis=0), errors.shape[1])
    wanted = np.asarray(model.alphas_)[best]
    exam.same("alpha_", np.broadcast_to(np.asarray(model.alpha_), wanted.shape), wanted)
    least = errors[best, np.arange(errors.shape[1])]
    exam.same("best_error_", np.reshape(model.best_error_, least.shape), least)
    return best


def _smooth_gram(model: KernelRidgeCV, A: Matrix, w: Array) -> tuple[Array, float]:
    """K of the rows with weight without its noise, by the formula in NumPy, and that noise."""
    kept = np.flatnonzero(w > 0)
    if model.is_approximated:
        phi = features_of(model.approximation_, model, A[kept])
        return phi @ phi.T, float(model.approximation_.noise_)
    if isinstance(model.kernel_, str):
        return np.asarray(A, dtype=np.float64)[np.ix_(kept, kept)], 0.0
    K = plain_gram(model, A[kept])
    noise = problem_again(model, A, w).noise
    if noise is None:
        return K, 0.0
    return K - np.diag(noise), float(noise[0])


def _inverse(K: Array, w: Array, alpha: float, intercept: bool) -> Array:
    """(K + αW⁻¹)⁻¹, bordered by ones where there is an intercept."""
    system = K + np.diag(alpha / w)
    if not intercept:
        return np.asarray(np.linalg.inv(system), dtype=np.float64)
    ones = np.ones((len(K), 1))
    return np.asarray(np.linalg.inv(np.block([[system, ones], [ones.T, np.zeros((1, 1))]])), dtype=np.float64)


def _centre(Y: Array, w: Array, intercept: bool) -> Array:
    """The mean of the targets, which an intercept follows: without it less cancels, the rest is the same."""
    if not intercept:
        return np.zeros(Y.shape[1])
    return np.asarray(w @ Y / w.sum())


def _at(K: Array, Y: Array, w: Array, alpha: float, intercept: bool) -> tuple[Array, Array, float]:
    """Mean squared error of leaving one out, generalised cross-validation and degrees of freedom at one α."""
    n = len(K)
    rows = float(w.sum())
    inverse = _inverse(K, w, alpha, intercept)[:n, :n]
    own = np.diagonal(inverse)
    c = inverse @ (Y - _centre(Y, w, intercept))
    left_out = divide_rows(c, own)
    dof = n - alpha * float((own / w).sum())
    share = 1.0 - dof / rows
    fit = w @ np.square(alpha * c / w[:, None]) / rows
    gcv = fit / share**2 if share > 1e-13 else np.full_like(fit, np.nan)
    return w @ np.square(left_out) / rows, gcv, dof


def _on_folds(
    model: KernelRidgeCV,
    K: Array,
    Y: Array,
    w: Array,
    level: float,
    kept: Integers,
    some: Integers,
) -> Array:
    """The mean squared error on rows held out in turn."""
    place = np.full(len(model._weight), -1)
    place[kept] = np.arange(len(kept))
    total = np.zeros((len(some), Y.shape[1]))
    seen = 0.0
    for fold in model._folds():
        train, test = (place[rows][place[rows] >= 0] for rows in fold)
        if not len(train) or not len(test):
            continue
        for i, k in enumerate(some):
            inverse = _inverse(
                K[np.ix_(train, train)], w[train], model.alphas_[k] + level, model.fit_intercept
            )
            centre = _centre(Y[train], w[train], model.fit_intercept)
            solved = inverse[:, : len(train)] @ (Y[train] - centre)
            offset = centre + solved[len(train) :].sum(axis=0)
            total[i] += w[test] @ (Y[test] - K[np.ix_(test, train)] @ solved[: len(train)] - offset) ** 2
        seen += float(w[test].sum())
    return total / seen
