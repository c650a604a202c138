"""The claims of the feature machines: every round of the search once more, by the formulas alone.

Lengthscales and penalties are taken from the path; metrics, errors and the choice are computed again, by
inverses and by differences of rows, and not by the code of the fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.kernels.leaves.families import Radial
from mercer.machines.margin.calibrate import calibrate
from mercer.machines.ridge.feature_base import EXPONENTS, FORMS, FeatureMachine, deviations, in_units
from mercer.machines.ridge.feature_fits import FOLDS, folds_of
from mercer.machines.ridge.feature_kernel import Learned, given_bandwidth
from mercer.machines.ridge.feature_machine import FeatureMachineClassifier
from mercer.machines.ridge.feature_metric import SAME_POINT
from mercer.machines.ridge.feature_search import FeaturePath
from mercer.sparse import Matrix
from mercer.theory.claims import Examination
from mercer.typing import Array

# Of slopes that a search without derivatives finds.
CALIBRATED = 1e-3
# Of errors that are computed by inverses.
CLOSE = 1e-6
# Multiplications for the rounds of a path; beyond, the chosen kernel is looked at alone.
WORK = 2e11


def examine_learning(exam: Examination, model: FeatureMachine, A: Matrix, Y: Array, w: Array) -> None:
    """The rows of the search, every round, and the choice; of a classifier its calibration too."""
    _rows(exam, model, w)
    path = model.path_
    _settings(exam, model, path)
    rows = model.search_rows_
    every = model.as_rows(A)
    asked = model.asked.closed_on(every, w)
    X = asked.read(every.rows(rows))
    best = int(np.argmin(path.judged))
    exam.same("path_.best", path.best, best)
    exam.same("alpha_", model.alpha_, path.alphas[best])
    learned = Learned.of(model.kernel_)
    exam.true(learned is not None, "kernel_ is no radial kernel of a metric of what is read")
    if learned is None:
        return
    exam.same("what kernel_ reads", (learned.asked.columns, learned.asked.reading), asked[:2])
    leaf = asked.like(learned.leaf)
    exam.true(leaf is not None, "the kernel inside kernel_ is none of those asked for")
    if leaf is None:
        return
    exam.same("the lengthscale in kernel_", learned.leaf.lengthscale, float(path.bandwidths[best]))
    bandwidth = given_bandwidth(leaf)
    if bandwidth is not None:
        exam.same("path_.bandwidths", path.bandwidths, np.full(len(path.errors), bandwidth))
    if len(path.errors) * len(rows) ** 3 > WORK:
        exam.cannot("the rounds of the search: there are too many rows")
    else:
        errors = _rounds(exam, model, learned, X, in_units(Y[rows], w[rows]), w[rows])
        if isinstance(model, FeatureMachineClassifier):
            _calibration(exam, model, Y[rows], w[rows], errors)


def _rows(exam: Examination, model: FeatureMachine, w: Array) -> None:
    rows = model.search_rows_
    kept = np.flatnonzero(w > 0)
    if len(kept) and (rows.min(initial=0) < 0 or rows.max(initial=0) >= len(w)):
        raise InputError("search_rows_ names rows that are not there.")
    proper = len(np.unique(rows)) == len(rows) and bool(np.all(w[rows] > 0))
    exam.true(proper, "search_rows_ names a row twice, or one without weight")
    if len(kept) <= model.search_rows and len(rows) == len(kept):
        exam.same("search_rows_", rows, kept)
    elif isinstance(model.random_state, int | np.integer):
        drawn = np.random.default_rng(model.random_state).permutation(kept)[: len(rows)]
        exam.same("search_rows_", rows, np.sort(drawn))
    else:
        exam.cannot("which rows were searched: they were drawn without a seed")


def _settings(exam: Examination, model: FeatureMachine, path: FeaturePath) -> None:
    """The path has the rounds that were asked for, in their order."""
    forms = FORMS if model.metric == "auto" else (model.metric,)
    exponents = EXPONENTS if isinstance(model.exponent, str) else (float(model.exponent),)
    numbers = (path.iterations, path.after, path.exponents, path.bandwidths, path.alphas, path.expected)
    if {len(path.forms), *map(len, numbers)} != {len(path.errors)}:
        raise InputError("path_ has columns of different lengths.")
    plain = path.iterations == 0
    exam.true(bool(plain[0]), "path_ does not begin without a metric")
    exam.true(
        all(
            (path.forms[k], path.exponents[k], path.after[k]) == ("none", 1.0, k)
            for k in np.flatnonzero(plain)
        ),
        "a round of path_ has a metric before one was learned",
    )
    seen: set[tuple[int, str, float]] = set()
    for k in np.flatnonzero(~plain):
        before = int(path.after[k])
        own = (path.forms[k], float(path.exponents[k]))
        asked = own[0] in forms and own[1] in exponents and path.iterations[k] <= model.n_updates
        exam.true(asked, "path_ has rounds that were not asked for")
        follows = 0 <= before < k and path.iterations[before] == path.iterations[k] - 1
        same = follows and (plain[before] or own == (path.forms[before], float(path.exponents[before])))
        exam.true(same, f"path_ has a round {path.iterations[k]} without the one before it")
        exam.true((before, *own) not in seen, "path_ has a round twice")
        seen.add((before, *own))
    if model.alpha is not None:
        exam.same("path_.alphas", path.alphas, np.full(len(path.errors), float(model.alpha)))


def _rounds(
    exam: Examination, model: FeatureMachine, learned: Learned, X: Array, Y: Array, w: Array
) -> Array | None:
    """Every round; the leave-one-out errors of the chosen one, where it could be computed."""
    chosen: Array | None = None
    path = model.path_
    centred = X - w @ X / w.sum()
    spread = (centred.T * w / w.sum()) @ centred
    found: dict[int, list[_Function]] = {}
    coarse: list[int] = []
    for k in range(len(path.errors)):
        # of all rows, and of those of each fold
        among = [np.arange(len(X)), *(fold.learned for fold in folds_of(len(X)))]
        roots = [np.eye(X.shape[1])] * len(among)
        before = int(path.after[k])
        if before < k:
            if before not in found:
                coarse.append(k)
                continue
            last = zip(found[before], among, strict=False)
            shape = (path.forms[k], float(path.exponents[k]))
            roots = [_metric(each, X[i], w[i], *shape, model.rank, spread) for each, i in last]
        leaf = learned.leaf.with_params({"lengthscale": float(path.bandwidths[k])})
        assert isinstance(leaf, Radial)
        alpha = float(path.alphas[k])
        digits = 1e3 * np.finfo(float).eps * (len(X) + alpha) / alpha
        if not np.isfinite(path.errors[k]):
            exam.cannot("a round without a leave-one-out error")
            return chosen
        if digits > 1e-4:
            coarse.append(k)
            continue
        fits = [
            _left_out(root, leaf, X[i], Y[i], w[i], alpha, bool(model.fit_intercept))
            for root, i in zip(roots, among, strict=False)
        ]
        errors = fits[0].errors
        error = _mean_square(errors, w)
        near = max(CLOSE, digits)
        exam.same(f"path_.errors[{k}]", float(path.errors[k]), error, within=near)
        if np.isfinite(path.expected[k]) and len(fits) == len(among):
            expected = error * _flattery(fits[1:], X, Y, w)
            exam.same(f"path_.expected[{k}]", float(path.expected[k]), expected, within=near)
        else:
            # too few rows, no time, or no metric: later rounds of the folds are not there either
            fits = fits[:1]
        found[k] = fits
        if k == path.best:
            _same_metric(exam, learned, roots[0] @ roots[0].T, near)
            chosen = errors
    if coarse:
        exam.cannot(
            f"{len(coarse)} of {len(path.errors)} rounds, from {coarse[0]} on: in them, or in one that their "
            "metric comes from, rounding is more than the penalty"
        )
    return chosen


class _Function(NamedTuple):
    """A ridge in the coordinates of a metric, and its leave-one-out errors."""

    root: Array
    leaf: Radial
    coef: Array
    intercept: Array
    errors: Array


def _mean_square(errors: Array, w: Array) -> float:
    return float((w @ errors**2).mean() / w.sum())


def _flattery(fits: list[_Function], X: Array, Y: Array, w: Array) -> float:
    """The error of rows that a metric has not seen, over that of leaving one out of those that it has."""
    unseen = seen = 0.0
    for fit, fold in zip(fits, folds_of(len(X)), strict=True):
        K = fit.leaf.block(Rows(X[fold.judged] @ fit.root), Rows(X[fold.learned] @ fit.root))
        own = w[fold.judged]
        unseen += own.sum() * _mean_square(Y[fold.judged] - K @ fit.coef - fit.intercept, own)
        others = w[fold.learned]
        seen += others.sum() / (FOLDS - 1) * _mean_square(fit.errors, others)
    return float(max(unseen / seen, 1.0))


def _same_metric(exam: Examination, learned: Learned, M: Array, within: float) -> None:
    """What the kernel reads is the metric of the chosen round."""
    reading = learned.metric
    if reading.factor is not None:
        mine = np.array(reading.factor) @ np.array(reading.factor).T
    else:
        mine = np.array(reading.matrix)
    exam.same("the metric in kernel_", np.diag(mine) if mine.ndim == 1 else mine, M, within=within)


def _left_out(
    root: Array, leaf: Radial, X: Array, Y: Array, w: Array, alpha: float, intercept: bool
) -> _Function:
    """The function and its leave-one-out errors, by an inverse."""
    K = leaf.block(Rows(X @ root), None)
    n = len(K)
    system = K + np.diag(alpha / w)
    if intercept:
        ones = np.ones((n, 1))
        system = np.block([[system, ones], [ones.T, np.zeros((1, 1))]])
    inverse = np.linalg.inv(system)
    solved = inverse[:, :n] @ Y
    b = solved[n] if intercept else np.zeros(Y.shape[1])
    coef = solved[:n]
    return _Function(root, leaf, coef, b, coef / np.diagonal(inverse)[:n, None])


def _metric(
    last: _Function, X: Array, w: Array, form: str, exponent: float, rank: int | None, spread: Array
) -> Array:
    """R of the next round, from the gradients of the last function by differences of rows."""
    root, leaf, coef, *_ = last
    U = X @ root
    length = float(leaf.lengthscale)  # type: ignore[arg-type]
    s = leaf.squares(U, None)
    near = (SAME_POINT / length) ** 2 * float((U**2).sum(axis=1).max())
    with np.errstate(all="ignore"):
        slopes = np.where(s <= near, 0.0, leaf.slope(s))
    total = np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        towards = (U[i] - U) * slopes[i][:, None] * 2.0 / length**2
        G = root @ (towards.T @ coef)
        total += w[i] / w.sum() * (G @ G.T)
    if form == "diagonal":
        total = np.diag(np.diagonal(total))
    values, vectors = np.linalg.eigh((total + total.T) / 2)
    values = np.maximum(values, 0.0)
    if rank is not None:
        values[: max(len(values) - rank, 0)] = 0.0
    M = (vectors * values**exponent) @ vectors.T
    M = M * np.trace(spread) / np.trace(M @ spread)
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _calibration(
    exam: Examination, model: FeatureMachineClassifier, Y: Array, w: Array, errors: Array | None
) -> None:
    """The slopes are those of the leave-one-out decision values of the chosen round."""
    if errors is None:
        exam.cannot("calibration_: the leave-one-out decision values it follows from")
        return
    codes = (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)
    found = np.array(calibrate(Y - errors * deviations(Y, w), codes, w).slopes)
    mine = np.array(model.calibration_.slopes)
    exam.same("the slopes of calibration_", mine, found, within=CALIBRATED, scale=np.abs(found))
