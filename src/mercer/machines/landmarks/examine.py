"""The claims of landmarks and random features, and of the machines that stand on landmarks alone (Falkon)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import cast

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from mercer.gram import Tiles
from mercer.gram.on_rows import PRECOMPUTED, check_gram
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation, without_noise
from mercer.machines.landmarks.batches import Batch, is_source, passes
from mercer.machines.landmarks.falkon import FalkonClassifier
from mercer.machines.landmarks.falkon_fit import DIRECT_LANDMARKS, FEWER_LANDMARKS, POOL, Falkon, slices
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.landmarks.penalty import cross_validated
from mercer.machines.landmarks.random_features import RandomFeatures
from mercer.machines.landmarks.selection import EPS, Basis
from mercer.machines.landmarks.streamed import written_out
from mercer.machines.shared.base import check_weights, resolve
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import same_rows, same_width
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, EXACT, SOLVED, Examination, at_most
from mercer.typing import Array, Labels, Table, Targets, Weights

# How well the spread of a sample of ten thousand rows is that of all.
SAMPLED = 0.1


@examine.register
def _(model: Approximation, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    found = resolve(model.kernel, model.as_rows(A))
    exam.same("kernel_", model.kernel_, PRECOMPUTED if found is None else found)
    residual = examine_features(model, exam, A, np.ones(A.shape[0]))
    status = model.certificate_.status
    again = Certificate(status, "recomputed", residual=residual, added_diagonal=0.0)
    reached = AS_DEFINED
    if isinstance(model, Nystroem) and model.tolerance is not None:
        reached = at_most("the share of the trace left out", residual, float(model.tolerance) + SOLVED)
    exam.certificate(model.certificate_, again, reached=reached)


def examine_features(model: Approximation, exam: Examination, A: Matrix, weight: Array) -> float | None:
    """An approximation fitted to these rows, alone or inside a machine; its residual, recomputed."""
    kernel = None if isinstance(model.kernel_, str) else model.kernel_
    smooth, noise = (None, 0.0) if kernel is None else without_noise(kernel)
    exam.same("noise_", model.noise_, noise)
    same_width(exam, model, A)
    if isinstance(model, Nystroem):
        exam.same("the smooth part of kernel_", model._smooth, smooth)
        residual: float | None = _landmarks(model, exam, A, smooth, weight)
    else:
        assert isinstance(model, RandomFeatures)
        residual = _drawn(model, exam, A, weight)
    exam.same("the residual of the features", model.certificate_.residual, residual, within=SOLVED, scale=1.0)
    return residual


def _landmarks(model: Nystroem, exam: Examination, A: Matrix, smooth: Kernel | None, weight: Array) -> float:
    n = A.shape[0]
    exam.same("n_rows_fit_", model.n_rows_fit_, n)
    index = model.landmark_indices_
    if index is not None and smooth is not None:
        same_rows(exam, "landmarks_", model.landmarks_, A, index)
    if smooth is None:
        assert index is not None
        whole = check_gram(A)
        inner = whole[np.ix_(index, index)]
        own = whole.diagonal()
    else:
        inner = np.zeros((0, 0))
        if model.landmarks_.shape[0]:
            # a kernel that is 0 on all rows keeps none
            inner = Tiles(smooth, model.as_rows(model.landmarks_, "landmarks_")).dense()
        own = np.asarray(Tiles(smooth, model.as_rows(A)).diag(), dtype=np.float64)
    same_basis(exam, model.basis_, inner, EPS)
    exam.same("n_dropped_", model.n_dropped_, model.basis_.dropped)
    exam.same("threshold_", model.threshold_, model.basis_.threshold)
    if model.tolerance is None and isinstance(model.landmarks, str):
        live = int(np.count_nonzero(weight))
        most = model._most(live)
        chosen = model.basis_.rank + model.n_dropped_
        exam.true(chosen <= most, f"{chosen} landmarks were chosen, more than the {most} asked for")
        exam.true(
            chosen == most or model.landmarks == "pivoted" or index is None or live > most,
            f"{chosen} landmarks were chosen, not the {most} asked for",
        )
        if model.n_components is not None and live >= model.n_components and model.landmarks == "uniform":
            exam.same("the number of landmarks", chosen, int(model.n_components))
    phi = model.features(model.as_rows(A))
    left = max(float((own - np.einsum("ij,ij->i", phi, phi)).sum()), 0.0)
    total = float(own.sum())
    rounding = model.basis_.residual_rounding(phi.T @ phi, own)
    exam.same("residual_rounding_", model.residual_rounding_, rounding, within=SOLVED)
    exam.same("residual_trace_", model.residual_trace_, left, within=SOLVED, scale=abs(total))
    share = left / total if total > 0 else 0.0
    exam.same("residual_share_", model.residual_share_, share, within=SOLVED, scale=1.0)
    return share


def same_basis(exam: Examination, basis: Basis, inner: Array, eps: float) -> None:
    """L Lᵀ is the Gram matrix of the landmarks that were kept."""
    rank = len(inner)
    exam.same("the rank of basis_", basis.rank, rank)
    exam.same("basis_.lower", basis.lower @ basis.lower.T, inner)
    exam.true(np.array_equal(np.tril(basis.lower), basis.lower), "basis_.lower is not triangular")
    every = rank + basis.dropped
    proper = len(np.unique(basis.kept)) == rank and np.all((basis.kept >= 0) & (basis.kept < every))
    exam.true(proper, "basis_.kept does not name different landmarks")
    top = float(inner.diagonal().max(initial=0.0))
    exam.same("basis_.threshold", basis.threshold, every * eps * top)


def _drawn(model: RandomFeatures, exam: Examination, A: Matrix, weight: Array) -> float | None:
    exam.same("n_components_", model.n_components_, model.sketch_.dimension)
    error = model.error_
    residual = error.rms / error.kernel_rms if error.kernel_rms else None
    if not isinstance(model.random_state, int | np.integer):
        exam.cannot(
            "the random features: they were drawn without a seed, and so were the pairs on which their error "
            "was measured (give random_state a number)"
        )
        return residual
    kernel = None if isinstance(model.kernel_, str) else model.kernel_
    fresh: RandomFeatures = clone(model)
    if A.ndim == 2:
        fresh.n_features_in_ = A.shape[1]
    with warnings.catch_warnings():
        # What was said of the kernel was said when the model was fitted
        warnings.simplefilter("ignore")
        fresh._learn(kernel, model.as_rows(A), weight, keep=False, strict=False)
    exam.same("sketch_", model.sketch_, fresh.sketch_)
    exam.same("error_", model.error_, fresh.error_, within=SOLVED)
    return fresh.certificate_.residual


# ── Falkon ──────────────────────────────────────────────────────────────────────────────────────────────────


@examine.register
def _(model: Falkon, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    source = _source(model, X, y, sample_weight)
    A, targets, w = _gathered(source)
    exam.same("n_rows_fit_", model.n_rows_fit_, len(A))
    same_width(exam, model, A)
    # Of many rows a fit has seen a sample when it closes open lengthscales
    every = len(A) <= max(POOL, 4 * int(model.n_landmarks))
    asked = resolve(model.kernel, model.as_rows(A), w)
    exam.same("kernel_", model.kernel_, asked, within=SOLVED if every else SAMPLED)
    assert isinstance(model.kernel_, Kernel)
    smooth, noise = without_noise(model.kernel_)
    exam.same("smooth_", model.smooth_, smooth)
    exam.same("noise_", model.noise_, noise)
    eps = EPS if model.dtype == "float64" else float(np.finfo(np.float32).eps)
    z = model.as_rows(model.landmarks_, "landmarks_")
    same_basis(exam, model.basis_, Tiles(smooth, z).dense(), eps)
    if isinstance(model.landmarks, str) and model.landmarks != "kmeans" and not is_source(X, y):
        known = {_content(row) for row in A}
        strangers = sum(_content(row) not in known for row in model.landmarks_)
        exam.true(strangers == 0, f"{strangers} of landmarks_ are no rows of X")
    values = np.asarray(Tiles(smooth, model.as_rows(A), z).dense())
    phi = model.basis_.whiten(values.copy())
    coordinates = model.basis_.lower.T @ model.coef_
    loose = 1e-4 if model.dtype == "float32" else SOLVED
    _solved(exam, model, phi, coordinates, targets, w, noise, loose)


def _solved(
    exam: Examination,
    model: Falkon,
    phi: Array,
    W: Array,
    y: Labels,
    w: Array,
    noise: float,
    within: float,
) -> None:
    """The gradient of the objective at the coefficients, relative to that at 0."""
    alpha = float(model.alpha_)
    claimed = model.certificate_
    if isinstance(model, FalkonClassifier):
        exam.same("classes_", model.classes_, np.unique(y))
        wanted = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        T = np.where(y[:, None] == wanted[None, :], 1.0, -1.0)
    else:
        T = y.astype(float)[:, None]
    _penalty(exam, model, phi, T, w, noise, within)
    f = phi @ W
    primal = None
    if isinstance(model, FalkonClassifier) and model.loss == "logistic":
        loss, fall = _logistic(T * f, noise / alpha)
        gradient = alpha * W - phi.T @ (w[:, None] * T * fall)
        start = _logistic(np.zeros_like(f), noise / alpha)[1]
        first = np.linalg.norm(phi.T @ (w[:, None] * T * start), axis=0)
        primal = float(w @ loss.sum(axis=1)) + 0.5 * alpha * float((W**2).sum())
        gap = float((gradient**2).sum()) / (2 * alpha)
    else:
        alpha += noise
        right = phi.T @ (w[:, None] * T)
        gradient = phi.T @ (w[:, None] * f) + alpha * W - right
        first = np.linalg.norm(right, axis=0)
        gap = float((gradient**2).sum(axis=0).max()) / alpha
    residuals = np.linalg.norm(gradient, axis=0) / np.maximum(first, np.finfo(float).tiny)
    found = Certificate(
        claimed.status,
        "recomputed",
        primal=primal,
        gap=gap,
        residual=float(residuals.max()),
        residuals=None if claimed.residuals is None else tuple(residuals.tolist()),
        added_diagonal=0.0,
    )
    scale = float((first**2).max()) / alpha
    rounding = within if model.dtype == "float32" else EXACT
    reached = at_most("the gradient, as a share of the first,", found.residual, float(model.tol) + rounding)
    exam.certificate(claimed, found, reached=reached, scale=scale, unit=within / SOLVED)
    exam.true(
        found.residual is not None and found.residual <= (claimed.residual or 0.0) + within,
        f"the gradient is {found.residual:.3g} of the first, not {claimed.residual:.3g} as claimed",
    )


def _penalty(
    exam: Examination, model: Falkon, phi: Array, T: Array, w: Array, noise: float, within: float
) -> None:
    """α as it was given, or the one of generalised cross-validation, from the singular values of √W Φ."""
    if model.alpha is not None:
        exam.same("alpha_", model.alpha_, float(model.alpha))
        return
    if model.certificate_.status == Status.LIMIT:
        exam.cannot("alpha_: the seconds may have been too few to choose it")
        return
    count = phi.shape[1]
    if count > DIRECT_LANDMARKS:
        count = FEWER_LANDMARKS
    root = np.sqrt(w)[:, None]
    left, sigma, _ = np.linalg.svd(root * phi[:, :count], full_matrices=False)
    b = sigma[:, None] * (left.T @ (root * T))
    logistic = isinstance(model, FalkonClassifier) and model.loss == "logistic"
    size = float((w[:, None] * T**2).sum())
    best = cross_validated(sigma**2, b, size, float(w.sum()), 0.0 if logistic else noise)
    exam.same("alpha_", model.alpha_, best.logistic if logistic else best.alpha, within=max(within, 1e-6))


def _logistic(z: Array, s: float) -> tuple[Array, Array]:
    """log(1 + e^-z) and minus its slope, where every row may add a part r of its own at the price r²/2s."""
    r = np.zeros_like(z)
    for _ in range(60):
        p = expit(-(z + r))
        r = r - (r - s * p) / (1 + s * p * (1 - p))
    loss = np.logaddexp(0.0, -(z + r)) + (r**2 / (2 * s) if s else 0.0)
    return loss, expit(-(z + r))


def _source(
    model: Falkon, X: Table | Iterable[Batch], y: Targets | None, sample_weight: Weights
) -> Iterable[Batch]:
    if is_source(X, y):
        return X
    A = model.check_rows(cast(Table, X), reset=False)
    targets = model._check_targets(y, A.shape[0])
    w = None if sample_weight is None else check_weights(sample_weight, A.shape[0])
    return slices(A, targets, w)


def _gathered(source: Iterable[Batch]) -> tuple[Matrix, Labels, Array]:
    rows, targets, weights = zip(*((written_out(A), y, w) for A, y, w in passes(source)), strict=True)
    return np.concatenate(rows), np.concatenate(targets), np.concatenate(weights)


def _content(row: Matrix) -> bytes | str:
    """What a row holds, to look it up by: the bits of numbers, the words for things."""
    if isinstance(row, np.ndarray):
        return row.tobytes() if row.dtype.kind != "O" else repr(row.tolist())
    return repr(row)
