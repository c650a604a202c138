"""The claims of Gaussian processes: posteriors and evidence at the hyperparameters found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.evidence import gradient_of
from mercer.machines.gaussian_process.inverses import Exact, InFeatures, Later
from mercer.machines.gaussian_process.moves import search_path
from mercer.machines.gaussian_process.refine import FLAT
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.targets import normalization
from mercer.machines.gaussian_process.tune import ROUNDING, is_searched
from mercer.machines.shared.base import check_weights, is_open, resolve
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    HISTORY,
    again,
    features_of,
    plain_gram,
    same_approximation,
    same_published,
    same_rows,
)
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Setting, Table, Targets, Weights

ALL_EIGENVALUES = 2000  # rows up to which K + N is made and factored once more in NumPy
FAR = 5.0  # in log θ: what went further than a factor of 150 may have met the end of its search


def _same_form(
    exam: Examination,
    model: GaussianProcessRegressor | GaussianProcessClassifier,
    A: Matrix,
    w: Array | None = None,
) -> None:
    """A search moves the free hyperparameters of the kernel asked for, and nothing else."""
    asked = resolve(model.kernel, model.as_rows(A), w)
    if asked is None or model.optimizer is None or len(asked.theta) == 0:
        exam.same("kernel_", model.kernel_, PRECOMPUTED if asked is None else asked)
        return
    kernel = model.kernel_
    if not isinstance(kernel, Kernel) or len(kernel.theta) != len(asked.theta):
        exam.true(False, f"kernel_ is {kernel}, which is no form of {asked}")
        return
    exam.same("the form of kernel_", kernel.with_theta(asked.theta), asked, within=SOLVED)


@examine.register
def _(
    model: GaussianProcessRegressor, exam: Examination, X: Table, y: Targets, sample_weight: Weights
) -> None:
    A = model.check_rows(X, reset=False)
    _same_form(exam, model, A)
    same_approximation(exam, model, A, np.ones(A.shape[0]))
    with_rows = len(model._alpha) > 0
    if isinstance(model.kernel_, Kernel) and with_rows:
        same_rows(exam, "the rows of fit", model.X_fit_, A)
    added = float(model.certificate_.added_diagonal or 0.0)
    changes: dict[str, Setting] = {"optimizer": None, "singular": "refuse", "max_seconds": None}
    if isinstance(model.kernel_, Kernel):
        changes["kernel"] = model.kernel_
    # What "auto" means depends on the kernel that was asked for, not on the one found.
    targets = np.asarray(y)
    centred, scaled = normalization(model, 1 if targets.ndim == 1 else targets.shape[1])
    changes["normalize_y"] = scaled or ("mean" if centred else False)
    if added:
        given = 0.0 if model.noise is None else np.asarray(model.noise, dtype=float) / model.y_scale_[0] ** 2
        exam.same("noise_ with what was added", model.noise_, given + added, within=SOLVED)
        changes["noise"] = np.asarray(model.noise_) * float(model.y_scale_[0]) ** 2
    seeded = isinstance(model.random_state, int | np.integer)
    skip = set(HISTORY)
    if not seeded:
        skip.add("_seed")
    if not (model._exact or model.is_approximated or seeded):
        exam.cannot("the log evidence: an estimate from probes drawn without a seed")
        skip |= {"log_evidence_", "_inverse"}
    skip |= _cut_short(exam, model)
    twin = again(model, X, y, None, **changes)
    loose = 10 * float(model.tol) if not (model._exact or model.is_approximated) else SOLVED
    inverse = model._inverse
    if isinstance(inverse, Exact) and isinstance(inverse.factor, Later):
        # a fit that was cut short leaves its factor to whoever asks first
        skip.add("_inverse")
        exam.same("_inverse", Exact(inverse.factor.found), twin._inverse, within=max(loose, SOLVED))
    if not with_rows and isinstance(inverse, InFeatures) and isinstance(twin._inverse, InFeatures):
        skip |= {"X_fit_", "y_fit_", "_alpha", "alpha_", "_inverse"}
        exam.cannot("the rows, targets and alpha_ of the fit: the model was saved without them")
        exam.same("the factor", inverse.lower, twin._inverse.lower, within=max(loose, SOLVED))
    same_published(exam, model, twin, skip=frozenset(skip), within=max(loose, SOLVED))
    if not with_rows:
        return
    if A.shape[0] <= ALL_EIGENVALUES:
        _by_formula(exam, model, A)
    _residual(exam, model, twin, added)


def _cut_short(exam: Examination, model: GaussianProcessRegressor) -> set[str]:
    """What iterations that seconds or a key ended leave cannot be computed again: its residual can."""
    done = model.certificate_
    unfinished = (done.residual or 0.0) > 10 * float(model.tol)
    if model._exact or model.is_approximated or done.converged or not unfinished:
        return set()
    exam.cannot("the log evidence: its iterations were cut short, and where they end is not repeatable")
    exam.same("alpha_", np.asarray(model.alpha_).reshape(model._alpha.shape), model._alpha)
    return {"_alpha", "alpha_", "log_evidence_", "_inverse"}


def _by_formula(exam: Examination, model: GaussianProcessRegressor, A: Matrix) -> None:
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


def _residual(
    exam: Examination, model: GaussianProcessRegressor, twin: GaussianProcessRegressor, added: float
) -> None:
    """(K + N)α = y, by fresh products."""
    system = replace(twin._fitted_system(), noise=model.noise_)
    Y = system.Y
    R = system.residual(np.asarray(model.alpha_).reshape(Y.shape))
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


def _tuned(model: GaussianProcessRegressor, twin: GaussianProcessRegressor) -> Reached:
    """The slope of what was maximised, at the hyperparameters found."""
    kernel = model.kernel_
    searched = isinstance(kernel, Kernel) and is_searched(kernel, model.optimizer)
    if not searched or not isinstance(kernel, Kernel) or twin._constant:
        return AS_DEFINED
    if not model._exact:
        return Reached(None, "the slope of the log evidence is an estimate")
    system = twin._fitted_system()
    value, gradient, *_ = system.likelihood(kernel, None, model.n_jobs)(kernel.theta)
    asked = resolve(model.kernel, model.as_rows(model.X_fit_))
    return flat(kernel, asked, value, gradient, float(system.Y.size), is_open(model.kernel))


def flat(
    kernel: Kernel, asked: Kernel | None, value: float, gradient: Array, size: float, shared: bool
) -> Reached:
    """No slope is left but towards limits; where a limit of the search lay is not known of what went far."""
    ways = [search_path(kernel, kernel.theta)]
    if shared:
        ways.append(search_path(kernel, kernel.theta, shared=True))
    bound = 1.01 * FLAT * size + ROUNDING * abs(value)
    worst = min(way.slope_left(np.zeros(len(way.names)), gradient) for way in ways)
    moved = np.inf if asked is None else np.abs(kernel.theta - asked.theta)
    if worst > bound and np.any((np.abs(gradient) > bound) & (moved > FAR)):
        return Reached(None, "a hyperparameter went far, and where its search had a limit is not known")
    return at_most("the slope of the log evidence", worst, bound)


@examine.register
def _(
    model: GaussianProcessClassifier, exam: Examination, X: Table, y: Targets, sample_weight: Weights
) -> None:
    A = model.check_rows(X, reset=False)
    _same_form(exam, model, A, check_weights(sample_weight, A.shape[0]))
    changes: dict[str, Setting] = {"optimizer": None, "max_seconds": None}
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


def _mode_and_slope(model: GaussianProcessClassifier, twin: GaussianProcessClassifier) -> Reached:
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
    asked = resolve(model.kernel, model.as_rows(model.X_fit_))
    size = float(twin._likelihood.w.sum())
    return flat(kernel, asked, twin.posterior_.evidence, gradient, size, is_open(model.kernel))
