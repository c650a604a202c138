"""The claims of relevance vector machines: posterior of the weights and evidence at the precisions found."""

from __future__ import annotations

import copy

import numpy as np
from scipy.special import expit

from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.relevance.relevance import (
    RelevanceMachine,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
)
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    same_approximation,
    same_feature_coef,
    same_kernel,
    same_rows,
    same_width,
)
from mercer.machines.shared.targets import check_numbers
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Table, Targets, Weights


@examine.register
def _(model: RelevanceMachine, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    same_width(exam, model, A)
    live = A[w > 0]
    if model.kernel_ == PRECOMPUTED:
        live = live[:, w > 0]
    same_kernel(exam, model, live, w[w > 0])
    same_approximation(exam, model, live, w[w > 0])
    weights = np.atleast_2d(model.weights_).T
    same_feature_coef(exam, model, A[model.relevance_], weights)
    if model.kernel_ != PRECOMPUTED:
        same_rows(exam, "relevance_vectors_", model.relevance_vectors_, A, model.relevance_)
    distinct = len(np.unique(model.relevance_)) == len(model.relevance_)
    exam.true(
        distinct and np.all(w[model.relevance_] > 0), "relevance_ names a row twice, or one without weight"
    )
    phi = np.column_stack([model._basis(A), np.ones(A.shape[0])])[w > 0]
    if isinstance(model, RelevanceVectorRegressor):
        _regression(exam, model, phi, check_numbers(y, A.shape[0], "y")[w > 0], w[w > 0])
    elif isinstance(model, RelevanceVectorClassifier):
        _classification(exam, model, phi, np.asarray(y)[w > 0], w[w > 0], np.asarray(y))
    last = np.ravel(vars(model)["log_evidence_"])[0]
    exam.same("the last of log_evidence_path_", model.log_evidence_path_[-1], last)
    reached = Reached(None, "that no step would raise the evidence of labels is not looked at")
    if isinstance(model, RelevanceVectorRegressor):
        reached = _settled(model, A, check_numbers(y, A.shape[0], "y"), w)
    found = Certificate(model.certificate_.status, "recomputed", added_diagonal=0.0)
    exam.certificate(model.certificate_, found, reached=reached)


def _regression(exam: Examination, model: RelevanceVectorRegressor, phi: Array, y: Array, w: Array) -> None:
    """The posterior of the weights, and the evidence, from precisions and noise alone."""
    if model.noise is not None:
        exam.same("noise_", model.noise_, float(model.noise))
    center = float(w @ y) / float(w.sum()) if model.fit_intercept else 0.0
    live = np.isfinite(model.alpha_)
    exam.true(model.fit_intercept or not live[-1], "there is a prior of an intercept that was not asked for")
    if not live.any() and model.noise_ == 0:
        exam.same("intercept_", model.intercept_, center)
        return
    t = y - center
    P = phi[:, live]
    prior = model.alpha_[live]
    noise = float(model.noise_)
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


def _settled(model: RelevanceVectorRegressor, A: Matrix, y: Array, w: Array) -> Reached:
    """Tipping and Faul's conditions anew: no log α changes by more than `tol`, no row is worth adding."""
    rows = np.flatnonzero(w > 0)
    live = np.isfinite(model.alpha_)
    noise = float(model.noise_)
    if noise == 0:
        return AS_DEFINED
    every = copy.copy(model)
    every.relevance_ = rows
    every.relevance_vectors_ = A[rows]
    weight = w[rows]
    center = float(weight @ y[rows]) / float(weight.sum()) if model.fit_intercept else 0.0
    root = np.sqrt(weight / noise)
    phi = root[:, None] * np.column_stack([every._basis(A)[rows], np.ones(len(rows))])
    t = root * (y[rows] - center)
    inside = np.append(np.searchsorted(rows, model.relevance_), len(rows))[live]
    P = phi[:, inside]
    prior = model.alpha_[live]
    sigma = np.linalg.inv(np.diag(prior) + P.T @ P)
    mu = sigma @ (P.T @ t)
    variance = np.diagonal(sigma)
    s = 1 / variance - prior
    q = mu / variance
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
    if not reached.met:
        return reached
    return at_most("the gain of one more row", gain, 10 * float(model.tol))


def _same_spread(exam: Examination, what: str, claimed: Array, found: Array) -> None:
    """Covariances compared as correlations: each weight has a size of its own."""
    size = np.sqrt(np.where(np.diagonal(found) > 0, np.diagonal(found), 1.0))
    exam.same(what, claimed / np.outer(size, size), found / np.outer(size, size), within=1e-5)


def _classification(
    exam: Examination, model: RelevanceVectorClassifier, phi: Array, y: Array, w: Array, every: Array
) -> None:
    """The mode, the curvature there and Laplace's evidence, problem by problem."""
    exam.same("classes_", model.classes_, np.unique(every))
    classes = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    for k, c in enumerate(classes):
        of = "" if len(model.classes_) == 2 else f" of class {model.classes_[c]!r}"
        t = (y == model.classes_[c]).astype(float)
        live = np.isfinite(model.alpha_[k])
        exam.true(model.fit_intercept or not live[-1], f"an intercept{of} that was not asked for")
        full = np.append(model.weights_[k], np.atleast_1d(model.intercept_)[k])
        exam.true(not np.any(full[~live]), f"a weight{of} without a prior is not 0")
        P = phi[:, live]
        prior = model.alpha_[k][live]
        mu = full[live]
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
