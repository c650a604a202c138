"""The claims of machines that solve nothing: means of kernel products, a lengthscale by leaving one out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np

from mercer.gram.blocks import row_blocks
from mercer.gram.on_rows import check_gram
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import check_weights, resolve
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    plain_gram,
    same_approximation,
    same_feature_coef,
    same_kernel,
    same_rows,
    same_width,
)
from mercer.machines.shared.targets import check_target_block
from mercer.machines.windows.bandwidth import OCTAVES, PER_OCTAVE
from mercer.machines.windows.mean_embedding import KernelMeanEmbedding, log_integral
from mercer.machines.windows.nadaraya_watson import NadarayaWatson
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, EXACT, SOLVED, Examination
from mercer.typing import Array, Flags, Integers, Table, Targets, Weights

# in octaves: the error must not be less so far beside the lengthscale that was found
BESIDE = 0.005
TINY = np.finfo(float).tiny
# weights below have no digits to compare
NEARLY_NOTHING = 1e-290

Smoother = KernelMeanEmbedding | NadarayaWatson
Error = Callable[[Kernel], float]


@examine.register
def _(model: KernelMeanEmbedding, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    same_width(exam, model, A)
    share = w / w.sum()
    exam.same("weights_", model.weights_, share)
    if model.X_fit_ is not None:
        same_rows(exam, "X_fit_", model.X_fit_, A)

    def error(k: Kernel) -> float:
        return _minus_log_density(_with_kernel(model, k), A, w)

    _width(exam, model, A, w, error)
    same_approximation(exam, model, A, w)
    same_feature_coef(exam, model, A, share)
    scores = _products(model, A if model.X_fit_ is not None else check_gram(A), share)
    squared = float(share @ scores)
    exam.same("norm_²", model.norm_**2, max(squared, 0.0), within=SOLVED, scale=float(share @ np.abs(scores)))
    exam.same("offset_", model.offset_, _offset(scores, share, float(model.contamination)), within=SOLVED)
    found = Certificate(model.certificate_.status, "recomputed", residual=0.0)
    exam.certificate(model.certificate_, found, reached=AS_DEFINED)


@examine.register
def _(model: NadarayaWatson, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    Y = check_target_block(y, A.shape[0], "NadarayaWatson")[0]
    same_width(exam, model, A)
    exam.same("weights_", model.weights_, w)
    exam.same("y_fit_", model.y_fit_, Y)
    if isinstance(model.kernel_, str):
        A = check_gram(A)
        exam.same("X_fit_", model.X_fit_, A)
    else:
        same_rows(exam, "X_fit_", model.X_fit_, A)

    def error(k: Kernel) -> float:
        left, alone, _ = _left_out(_with_kernel(model, k), A, Y, w)
        return np.inf if alone.any() else _squared(left, Y, w)

    _width(exam, model, A, w, error, float(model.loo_error_))
    left, alone, empty = _left_out(model, A, Y, w)
    sure = empty | ~alone
    predicted = np.reshape(model.loo_predictions_, Y.shape)
    exam.same("loo_predictions_", predicted[sure], left[sure])
    if not sure.all():
        exam.cannot(
            f"{int((~sure).sum())} of loo_predictions_: all weights there are next to the smallest number "
            "there is"
        )
    exam.same(
        "loo_error_",
        model.loo_error_,
        _squared(np.where(sure[:, None], left, predicted), Y, w),
        within=SOLVED,
    )
    found = Certificate(model.certificate_.status, "recomputed", residual=0.0)
    exam.certificate(model.certificate_, found, reached=AS_DEFINED)


# ── the definitions ─────────────────────────────────────────────────────────────────────────────────────────


def _with_kernel(model: Smoother, kernel: Kernel) -> Smoother:
    """The model with another kernel, as far as Gram matrices go."""
    other = copy.copy(model)
    other.kernel_ = kernel
    return other


def _products(model: KernelMeanEmbedding, A: Matrix, share: Array) -> Array:
    """Σ_j w_j k(x_i, x_j), with what a row has for itself."""
    if model.approximation is not None:
        return plain_gram(model, A) @ share
    if isinstance(model.kernel_, str):
        return np.asarray(A @ share)
    out = np.empty(A.shape[0])
    own = np.asarray(model.kernel_.diagonal(model.as_rows(A)), dtype=np.float64)
    for part in row_blocks(A.shape[0], A.shape[0]):
        K = plain_gram(model, A[part], A)
        rows = np.arange(A.shape[0])[part]
        K[np.arange(len(rows)), rows] = own[part]
        out[part] = K @ share
    return out


def _without_itself(model: Smoother, A: Matrix) -> Iterator[tuple[Integers, Array]]:
    """Blocks of k(x_i, x_j) with 0 for the row itself."""
    for part in row_blocks(A.shape[0], A.shape[0]):
        K = A[part].copy() if isinstance(model.kernel_, str) else plain_gram(model, A[part], A)
        rows = np.arange(A.shape[0])[part]
        K[np.arange(len(rows)), rows] = 0.0
        yield rows, K


def _left_out(model: Smoother, A: Matrix, Y: Array, w: Array) -> tuple[Array, Flags, Flags]:
    """Σ_(j≠i) w_j k_ij y_j / Σ_(j≠i) w_j k_ij; the mean of the others for a row that is alone.

    Which rows are alone, or nearly so that the last digits of an exponential decide; and which have weights
    of 0 alone.
    """
    out = np.empty_like(Y)
    alone = np.zeros(len(Y), dtype=bool)
    empty = np.zeros(len(Y), dtype=bool)
    for rows, K in _without_itself(model, A):
        for i, weights in zip(rows, K * w, strict=True):
            top = float(weights.max(initial=0.0))
            alone[i] = top < NEARLY_NOTHING
            empty[i] = top == 0
            if top == 0:
                weights = np.where(np.arange(len(w)) == i, 0.0, w)
                top = max(float(weights.max(initial=0.0)), TINY)
            weights = weights / top
            total = float(weights.sum())
            out[i] = weights @ Y / total if total > 0 else 0.0
    return out, alone, empty


def _squared(left: Array, Y: Array, w: Array) -> float:
    return float(w @ np.square(left - Y).mean(axis=1) / w.sum())


def _minus_log_density(model: Smoother, A: Matrix, w: Array) -> float:
    """Minus the mean logarithm of the density at each row, made of the others."""
    total = 0.0
    for rows, K in _without_itself(model, A):
        others = np.maximum(w.sum() - w[rows], TINY)
        total += float(w[rows] @ np.log(np.maximum(K @ w / others, TINY)))
    return log_integral(model.kernel_, model.n_features_in_) - total / float(w.sum())


def _offset(scores: Array, weights: Array, share: float) -> float:
    """Midway between the largest score with at most this share of weight below it, and the next one down."""
    live = weights > 0
    scores = scores[live]
    weights = weights[live]
    alike = 1e-11 * float(np.abs(scores).max())
    below = np.array([float(weights[scores < value - alike].sum()) for value in scores])
    value = float(scores[below <= share + 1e-12].max())
    lower = scores[scores < value - alike]
    if len(lower) == 0:
        return value - 1e-9 * float(np.abs(scores).max())
    return 0.5 * (value + float(lower.max()))


def _width(
    exam: Examination, model: Smoother, A: Matrix, w: Array, error: Error, here: float | None = None
) -> None:
    """The kernel is the one asked for; or that of the lengthscale with the least error of all searched."""
    if model.bandwidth == "kernel":
        same_kernel(exam, model, A, w)
        return
    asked = resolve(model.kernel, model.as_rows(A), w)
    assert isinstance(asked, Kernel)
    start = np.asarray(asked.get_params()["lengthscale"], dtype=float)
    kernel = model.kernel_
    assert isinstance(kernel, Kernel)
    found = np.asarray(kernel.get_params()["lengthscale"], dtype=float)
    exam.same("the form of kernel_", _wide(kernel, start), asked)
    times = found / start
    factor = float(times.flat[0])
    exam.same("the multiples of the lengthscales", times, np.full_like(times, factor))
    place = float(np.log2(factor))
    exam.true(
        abs(place) <= OCTAVES + 1e-9,
        f"the lengthscale is {factor:.4g} times that of {asked}, outside the search",
    )
    here = error(kernel) if here is None else here
    beside = [p for p in (place - BESIDE, place + BESIDE) if abs(p) <= OCTAVES]
    grid = np.linspace(-OCTAVES, OCTAVES, int(2 * OCTAVES * PER_OCTAVE) + 1)
    least = min(error(_wide(asked, start * 2.0**p)) for p in (*grid, *beside))
    slack = EXACT * max(abs(here), abs(least)) if np.isfinite(here) else 0.0
    exam.true(
        here <= least + slack,
        f"the error of leaving one out is {here:.9g}, and {least:.9g} at another lengthscale",
    )


def _wide(kernel: Kernel, lengthscale: Array) -> Kernel:
    value = float(lengthscale) if lengthscale.ndim == 0 else tuple(lengthscale.tolist())
    return kernel.with_params({"lengthscale": value})
