"""The claims of Gaussian processes and relevance vector machines: posteriors and evidence at the hyperparameters found."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import expit

from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.evidence import gradient_of
from mercer.machines.gaussian_process.posterior import Exact, InFeatures, Later
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.targets import normalization
from mercer.machines.gaussian_process.tune import FLAT, ROUNDING, search_path
from mercer.machines.relevance.relevance import RelevanceMachine, RelevanceVectorRegressor
from mercer.machines.shared.base import PRECOMPUTED, check_weights
from mercer.machines.shared.defaults import is_open, resolve
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    HISTORY,
    again,
    features_of,
    plain_gram,
    same_approximation,
    same_kernel,
    same_published,
    same_rows,
)
from mercer.machines.shared.targets import check_numbers
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate, Status
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most

ALL_EIGENVALUES = 2000  # rows up to which K + N is made and factored once more in NumPy
FAR = 5.0  # in log θ: what went further than a factor of 150 may have met the end of its search


def _same_form(exam: Examination, model: Any, A: Any, w: np.ndarray | None = None) -> None:
    """A search moves the free hyperparameters of the kernel asked for, and nothing else."""
    asked = resolve(model.kernel, model._rows(A), w)
    if asked is None or model.optimizer is None or len(asked.theta) == 0:
        exam.same("kernel_", model.kernel_, PRECOMPUTED if asked is None else asked)
        return
    alike = isinstance(model.kernel_, Kernel) and len(model.kernel_.theta) == len(asked.theta)
    exam.true(alike, f"kernel_ is {model.kernel_}, which is no form of {asked}")
    if alike:
        exam.same("the form of kernel_", model.kernel_.with_theta(asked.theta), asked, within=SOLVED)


@examine.register
def _(model: GaussianProcessRegressor, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    A = model._check_rows(X, reset=False)
    _same_form(exam, model, A)
    same_approximation(exam, model, A, np.ones(A.shape[0]))
    if model._fitted_rows is not None:
        same_rows(exam, "the rows of fit", model._fitted_rows.vectors, A)
    added = float(model.certificate_.added_diagonal or 0.0)
    changes: dict[str, Any] = {"optimizer": None, "singular": "refuse", "max_seconds": None}
    if isinstance(model.kernel_, Kernel):
        changes["kernel"] = model.kernel_
    # What "auto" means depends on the kernel that was asked for, not on the one found.
    centred, scaled = normalization(model, 1 if np.ndim(y) == 1 else np.shape(y)[1])
    changes["normalize_y"] = scaled or ("mean" if centred else False)
    if added:
        given = 0.0 if model.noise is None else np.asarray(model.noise, dtype=float) / model.y_scale_[0] ** 2
        exam.same("noise_ with what was added", model.noise_, given + added, within=SOLVED)
        changes["noise"] = np.asarray(model.noise_) * float(model.y_scale_[0]) ** 2
    seeded = isinstance(model.random_state, int | np.integer)
    skip = set(HISTORY)
    if not seeded:
        skip.add("_seed")
    if not (model._exact or model._approximated or seeded):
        exam.cannot("the log evidence: an estimate from probes drawn without a seed")
        skip |= {"log_evidence_", "_inverse"}
    skip |= _cut_short(exam, model)
    twin = again(model, X, y, None, **changes)
    loose = 10 * float(model.tol) if not (model._exact or model._approximated) else SOLVED
    inverse = model._inverse
    if isinstance(inverse, Exact) and isinstance(inverse.factor, Later):
        # a fit that was cut short leaves its factor to whoever asks first
        skip.add("_inverse")
        exam.same("_inverse", Exact(inverse.factor.found), twin._inverse, within=max(loose, SOLVED))
    same_published(exam, model, twin, skip=frozenset(skip), within=max(loose, SOLVED))
    if A.shape[0] <= ALL_EIGENVALUES:
        _by_formula(exam, model, A)
    _residual(exam, model, twin, added)


def _cut_short(exam: Examination, model: GaussianProcessRegressor) -> set[str]:
    """What iterations that seconds or a key ended leave cannot be computed again: its residual can."""
    done = model.certificate_
    unfinished = (done.residual or 0.0) > 10 * float(model.tol)
    if model._exact or model._approximated or done.converged or not unfinished:
        return set()
    exam.cannot("the log evidence: its iterations were cut short, and where they end is not repeatable")
    exam.same("alpha_", np.asarray(model.alpha_).reshape(model._alpha.shape), model._alpha)
    return {"_alpha", "alpha_", "log_evidence_", "_inverse"}


def _by_formula(exam: Examination, model: GaussianProcessRegressor, A: Any) -> None:
    """The factor, α and the evidence from K + N in NumPy, without the code that made them."""
    n = A.shape[0]
    noise = np.broadcast_to(np.asarray(model.noise_, dtype=float), n)
    inverse = model._inverse
    if isinstance(inverse, InFeatures):
        phi = features_of(model.approximation_, model, A)
        noise = noise + model.approximation_.noise_
        scaled = phi / np.sqrt(noise)[:, None]
        factored, lower = np.eye(phi.shape[1]) + scaled.T @ scaled, inverse.lower
        S = phi @ phi.T + np.diag(noise)
    elif isinstance(inverse, Exact):
        factored = S = plain_gram(model, A) + np.diag(noise)
        lower = inverse.factor.lower
    else:
        return
    L = np.tril(lower)
    exam.same("the factor", L @ L.T, factored, within=SOLVED)
    Y = np.asarray(model.y_fit_).reshape(n, -1)
    alpha = np.asarray(model.alpha_).reshape(Y.shape)
    allowed = max(1e-6, 10 * float(model.certificate_.residual or 0.0))
    exam.same("(K + N) alpha_", S @ alpha, Y, within=allowed)
    volume = n * np.log(2 * np.pi) + float(np.linalg.slogdet(factored)[1])
    if isinstance(inverse, InFeatures):
        # det(ΦΦᵀ + N) = det(I + ΦᵀN⁻¹Φ) det N
        volume += float(np.log(noise).sum())
    evidence = -0.5 * (float((Y * alpha).sum()) + Y.shape[1] * volume)
    size = max(abs(evidence), float(Y.size))
    pivots = np.abs(np.diagonal(L))
    digits = 100 * np.finfo(float).eps * float((pivots.max() / pivots.min()) ** 2)
    exam.same(
        "the log evidence",
        model.log_evidence_,
        evidence,
        within=max(1e-6, digits),
        scale=size,
    )


def _residual(exam: Examination, model: GaussianProcessRegressor, twin: Any, added: float) -> None:
    """(K + N)α = y, by fresh products."""
    Y = np.asarray(twin.y_fit_).reshape(len(twin.y_fit_), -1)
    alpha = np.asarray(model.alpha_).reshape(Y.shape)
    R = Y - twin._gram(twin._own_kernel) @ alpha - np.reshape(model.noise_, (-1, 1)) * alpha
    each = relative(R, Y)
    found = Certificate(
        model.certificate_.status,
        "recomputed",
        residual=float(each.max(initial=0.0)),
        residuals=tuple(each.tolist()),
        worst_row=int(np.argmax(np.abs(R).max(axis=1))),
        added_diagonal=added,
    )
    reached = at_most("the residual", found.residual, 10 * float(model.tol) + SOLVED)
    if reached.met:
        reached = _tuned(model, twin)
    exam.certificate(model.certificate_, found, reached=reached)


def _tuned(model: GaussianProcessRegressor, twin: Any) -> Reached:
    """The slope of what was maximised, at the hyperparameters found."""
    kernel = model.kernel_
    if not isinstance(kernel, Kernel) or model.optimizer is None or not len(kernel.theta) or twin._constant:
        return AS_DEFINED
    if not model._exact:
        return Reached(None, "the slope of the log evidence is an estimate")
    Y = np.asarray(twin.y_fit_).reshape(len(twin.y_fit_), -1)
    value, gradient, *_ = twin._objective(kernel, Y, None, model.n_jobs)(kernel.theta)
    asked = resolve(model.kernel, model._rows(model.X_fit_))
    return flat(kernel, asked, value, gradient, float(Y.size), is_open(model.kernel))


def flat(
    kernel: Kernel, asked: Kernel | None, value: float, gradient: np.ndarray, size: float, shared: bool
) -> Reached:
    """No slope is left but towards limits; where a limit of the search lay is not known of what went far."""
    slopes = [np.abs(gradient)]
    if shared:
        slopes.append(np.abs(search_path(kernel, kernel.theta, shared=True).T.T @ gradient))
    bound = 1.01 * FLAT * size + ROUNDING * abs(value)
    worst = min(float(slope.max(initial=0.0)) for slope in slopes)
    moved = np.inf if asked is None else np.abs(kernel.theta - asked.theta)
    if worst > bound and np.any((np.abs(gradient) > bound) & (moved > FAR)):
        return Reached(None, "a hyperparameter went far, and where its search had a limit is not known")
    return at_most("the slope of the log evidence", worst, bound)


@examine.register
def _(model: GaussianProcessClassifier, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    A = model._check_rows(X, reset=False)
    _same_form(exam, model, A, check_weights(sample_weight, A.shape[0]))
    changes: dict[str, Any] = {"optimizer": None, "max_seconds": None}
    if isinstance(model.kernel_, Kernel):
        changes["kernel"] = model.kernel_
    if model.posterior_.status == Status.LIMIT:
        # seconds do not end twice at the same place, but so many steps do
        changes["max_iter_newton"] = model.posterior_.iterations
    twin = again(model, X, y, sample_weight, **changes)
    seeded = isinstance(model.random_state, int | np.integer)
    same_published(exam, model, twin, skip=HISTORY if seeded else HISTORY | {"_seed"}, within=SOLVED)
    g = model.posterior_.g
    f = twin._operator(model.kernel_).dense() @ g
    off = float(np.abs(g - twin._likelihood.gradient(f)).max(initial=0.0))
    top = max(float(np.abs(g).max(initial=0.0)), np.finfo(float).tiny)
    claimed = model.certificate_
    slack = (claimed.residual or 0.0) * (1 + float(np.abs(f).max(initial=0.0))) + SOLVED
    exam.true(
        off <= slack * top * max(1.0, float(np.abs(np.diag(twin.posterior_.K)).max())),
        f"the mode is no mode: f = Kg, but g differs from the slope of the likelihood there by {off:.3g}",
    )
    found = Certificate(claimed.status, "recomputed", residual=twin.certificate_.residual, added_diagonal=0.0)
    exam.certificate(claimed, found, reached=_mode_and_slope(model, twin))


def _mode_and_slope(model: GaussianProcessClassifier, twin: Any) -> Reached:
    """The mode solves its equation, and the evidence has no slope left."""
    K = twin.posterior_.K
    grain = np.finfo(float).eps * float(K.diagonal().max()) * float(np.abs(twin.posterior_.a).sum())
    reached = at_most(
        "the residual of the mode", twin.posterior_.residual, 1.01 * max(float(model.tol), 4 * grain)
    )
    kernel = model.kernel_
    searched = isinstance(kernel, Kernel) and model.optimizer is not None and len(kernel.theta) > 0
    if not reached.met or not searched:
        return reached
    assert isinstance(kernel, Kernel)
    gradient = gradient_of(twin._operator(kernel), W=twin.posterior_.weights())
    asked = resolve(model.kernel, model._rows(model.X_fit_))
    size = float(twin._likelihood.w.sum())
    return flat(kernel, asked, twin.posterior_.evidence, gradient, size, is_open(model.kernel))


# ── relevance vectors ───────────────────────────────────────────────────────────────────────────────────────


@examine.register
def _(model: RelevanceMachine, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    A = model._check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    exam.same("n_features_in_", model.n_features_in_, A.shape[1])
    same_kernel(exam, model, A[w > 0] if model.kernel_ != PRECOMPUTED else A, w[w > 0])
    if model.kernel_ != PRECOMPUTED:
        same_rows(exam, "relevance_vectors_", model.relevance_vectors_, A, model.relevance_)
    distinct = len(np.unique(model.relevance_)) == len(model.relevance_)
    exam.true(
        distinct and np.all(w[model.relevance_] > 0), "relevance_ names a row twice, or one without weight"
    )
    phi = np.column_stack([model._products(A), np.ones(A.shape[0])])[w > 0]
    if isinstance(model, RelevanceVectorRegressor):
        _regression(exam, model, phi, check_numbers(y, A.shape[0], "y")[w > 0], w[w > 0])
    else:
        _classification(exam, model, phi, np.asarray(y)[w > 0], w[w > 0], np.asarray(y))
    last = np.ravel(vars(model)["log_evidence_"])[0]
    exam.same("the last of log_evidence_path_", model.log_evidence_path_[-1], last)
    reached = Reached(None, "that no step would raise the evidence of labels is not looked at")
    if isinstance(model, RelevanceVectorRegressor):
        reached = _settled(model, A, check_numbers(y, A.shape[0], "y"), w)
    found = Certificate(model.certificate_.status, "recomputed", added_diagonal=0.0)
    exam.certificate(model.certificate_, found, reached=reached)


def _regression(
    exam: Examination, model: RelevanceVectorRegressor, phi: np.ndarray, y: np.ndarray, w: np.ndarray
) -> None:
    """The posterior of the weights, and the evidence, from precisions and noise alone."""
    if model.noise is not None:
        exam.same("noise_", model.noise_, float(model.noise))
    center = float(w @ y) / float(w.sum()) if model.fit_intercept else 0.0
    live = np.isfinite(model.alpha_)
    exam.true(model.fit_intercept or not live[-1], "there is a prior of an intercept that was not asked for")
    if not live.any() and model.noise_ == 0:
        exam.same("intercept_", model.intercept_, center)
        return
    t, P, prior, noise = y - center, phi[:, live], model.alpha_[live], float(model.noise_)
    precision = np.diag(prior) + P.T @ (w[:, None] * P) / noise
    sigma = np.linalg.inv(precision)
    mu = sigma @ (P.T @ (w * t)) / noise
    means = np.zeros(len(live))
    means[live] = mu
    covariance = np.zeros((len(live), len(live)))
    covariance[np.ix_(live, live)] = sigma
    exam.same("weights_", model.weights_, means[:-1], within=1e-6)
    size = max(float(np.abs(y).max(initial=0.0)), 1e-300)
    exam.same("intercept_", model.intercept_, means[-1] + center, within=1e-6, scale=size)
    _same_spread(exam, "covariance_", model.covariance_, covariance)
    mass = float(w.sum())
    fit = float(w @ t**2) / noise - float(mu @ precision @ mu)
    volume = np.linalg.slogdet(precision)[1] - float(np.log(prior).sum())
    evidence = -0.5 * (mass * np.log(2 * np.pi * noise) + volume + fit)
    size = max(abs(evidence), mass)
    exam.same("log_evidence_", vars(model)["log_evidence_"], evidence, within=1e-6, scale=size)


def _settled(model: RelevanceVectorRegressor, A: Any, y: np.ndarray, w: np.ndarray) -> Reached:
    """No log α would change by more than `tol`, and no row would be worth adding: Tipping and Faul's conditions, anew."""
    rows = np.flatnonzero(w > 0)
    live, noise = np.isfinite(model.alpha_), float(model.noise_)
    if noise == 0:
        return AS_DEFINED
    every = copy.copy(model)
    every.relevance_ = rows
    every.relevance_vectors_ = A[rows]
    weight = w[rows]
    center = float(weight @ y[rows]) / float(weight.sum()) if model.fit_intercept else 0.0
    root = np.sqrt(weight / noise)
    phi = root[:, None] * np.column_stack([every._products(A)[rows], np.ones(len(rows))])
    t = root * (y[rows] - center)
    inside = np.append(np.searchsorted(rows, model.relevance_), len(rows))[live]
    P, prior = phi[:, inside], model.alpha_[live]
    sigma = np.linalg.inv(np.diag(prior) + P.T @ P)
    mu, variance = sigma @ (P.T @ t), np.diagonal(sigma)
    s, q = 1 / variance - prior, mu / variance
    new = np.where(q**2 > s, s**2 / np.where(q**2 > s, q**2 - s, 1.0), np.inf)
    moved = float(np.abs(np.log(new / prior)).max(initial=0.0))
    reached = at_most("the change of some log α that is due", moved, 2 * float(model.tol) + 1e-6)
    outside = np.setdiff1d(np.arange(len(rows) + int(model.fit_intercept)), inside)
    left = phi[:, outside]
    S = np.einsum("ij,ij->j", left, left) - np.einsum("ij,jk,ik->i", left.T @ P, sigma, left.T @ P)
    Q = left.T @ (t - P @ mu)
    beyond_rounding = SOLVED * np.einsum("ij,ij->j", left, left) < S
    good = beyond_rounding & (Q**2 > S)
    ratio = Q[good] ** 2 / S[good]
    gain = float((0.5 * (ratio - 1 - np.log(ratio))).max(initial=0.0))
    return reached if not reached.met else at_most("the gain of one more row", gain, 10 * float(model.tol))


def _same_spread(exam: Examination, what: str, claimed: np.ndarray, found: np.ndarray) -> None:
    """Covariances compared as correlations: each weight has a size of its own."""
    size = np.sqrt(np.where(np.diagonal(found) > 0, np.diagonal(found), 1.0))
    exam.same(what, claimed / np.outer(size, size), found / np.outer(size, size), within=1e-5)


def _classification(
    exam: Examination, model: Any, phi: np.ndarray, y: np.ndarray, w: np.ndarray, every: np.ndarray
) -> None:
    """The mode, the curvature there and Laplace's evidence, problem by problem."""
    exam.same("classes_", model.classes_, np.unique(every))
    classes = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    for k, c in enumerate(classes):
        of = "" if len(model.classes_) == 2 else f" of class {model.classes_[c]!r}"
        t = (y == model.classes_[c]).astype(float)
        live = np.isfinite(model.alpha_[k])
        exam.true(model.fit_intercept or not live[-1], f"an intercept{of} that was not asked for")
        full = np.append(model.weights_[k], model.intercept_[k])
        exam.true(not np.any(full[~live]), f"a weight{of} without a prior is not 0")
        P, prior, mu = phi[:, live], model.alpha_[k][live], full[live]
        p = expit(P @ mu)
        precision = np.diag(prior) + P.T @ ((w * p * (1 - p))[:, None] * P)
        step = np.linalg.solve(precision, P.T @ (w * (t - p)) - prior * mu)
        spread = np.sqrt(np.diagonal(np.linalg.inv(precision)))
        exam.same(
            f"the Newton step{of} in deviations", step / spread, np.zeros(len(mu)), within=1e-5, scale=1.0
        )
        covariance = np.zeros((len(live), len(live)))
        covariance[np.ix_(live, live)] = np.linalg.inv(precision)
        _same_spread(exam, f"covariance_{of}", model.covariance_[k], covariance)
        z = P @ mu
        value = float(w @ (t * z - np.logaddexp(0.0, z))) - 0.5 * float(prior @ mu**2)
        volume = np.linalg.slogdet(precision)[1] - float(np.log(prior).sum())
        evidence = value - 0.5 * volume
        exam.same(
            f"log_evidence_{of}",
            model.log_evidence_[k],
            evidence,
            within=1e-6,
            scale=max(abs(evidence), float(w.sum())),
        )
