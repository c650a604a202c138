"""The claims of machines on sets of kernels: those at their weights, and how good the weights are."""

from __future__ import annotations

import copy
import warnings

import numpy as np

from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.kernel_sets.margin import MarginSet
from mercer.machines.kernel_sets.multiple import KernelSet, as_shares
from mercer.machines.kernel_sets.ridge import MultipleKernelRegressor
from mercer.machines.kernel_sets.weights import GramSet, check_blocks, check_kernels
from mercer.machines.margin.classify import MarginClassifier
from mercer.machines.margin.examine import by_problem
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import same_rows
from mercer.machines.shared.targets import check_target_block
from mercer.solve.mixture import holder_slack
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import EXACT, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Table, Targets, Weights


def _rows(model: KernelSet, X: Table) -> tuple[Matrix | list[Array], int]:
    """The data as `fit` saw them: rows, or the list of Gram matrices."""
    if check_kernels(model.kernels) is None:
        blocks = check_blocks(X, len(model.weights_))
        return blocks, blocks[0].shape[0]
    A: Matrix = model.check_rows(X, reset=False)
    return A, A.shape[0]


def _grams(model: KernelSet, A: Matrix | list[Array], w: Array) -> GramSet:
    quiet = copy.copy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelSet._grams(quiet, A, w)


def _weighed(
    exam: Examination, model: KernelSet, grams: GramSet, w: Array, target: Array | None, q: Array
) -> None:
    """Weights, scales and shares; the combined kernel follows from them."""
    d = np.asarray(model.weights_)
    exam.same("scales_", model.scales_, grams.scales)
    exam.same("kernels_", model.kernels_, grams.names)
    exam.same("kernel_", model.kernel_, PRECOMPUTED if grams.kernels is None else grams.kernel(d))
    exam.true(np.all(d >= 0), "a kernel has a negative weight")
    fixed = model._fixed_weights(grams, w, target)
    if fixed is not None:
        exam.same("weights_", d, fixed, within=SOLVED)
    else:
        p = float(model.p)
        size = float(d.max()) if np.isinf(p) else float((d**p).sum()) ** (1 / p)
        exam.same("the p-norm of weights_", size, 1.0)
    exam.same("norm_shares_", model.norm_shares_, as_shares(d * np.maximum(q, 0.0)), within=SOLVED)
    exam.same("trace_shares_", model.trace_shares_, as_shares(d * grams.traces(w)))


def _whole(model: KernelSet, primal: float, gap: float, q: Array, fixed: bool) -> Certificate:
    """Primal, dual and gap of machine and weights together."""
    if not fixed:
        gap += holder_slack(q, np.asarray(model.weights_), float(model.p))
    status = model.certificate_.status
    return Certificate(status, "recomputed", primal=primal, dual=primal - gap, gap=gap)


def _small_gap(model: KernelSet, found: Certificate, size: float) -> Reached:
    """A gap of weights and machine together of at most `tol` times the objective."""
    goal = float(model.tol) * abs(found.primal or 0.0)
    return at_most("the gap", found.gap, 1.001 * goal + SOLVED * EXACT * size)


@examine.register
def _margins(model: MarginSet, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A, n = _rows(model, X)
    given = check_weights(sample_weight, n)
    targets, w = model._targets_again(y, given)
    grams = _grams(model, A, given)
    rows = np.empty((n, model.n_features_in_)) if isinstance(A, list) else A
    if isinstance(A, list):
        exam.same("n_features_in_", model.n_features_in_, A[0].shape[1])
    K = grams.at(np.asarray(model.weights_, dtype=float))
    outer = Examination()
    B = by_problem(outer, model, rows, targets, w, K, y)
    exam.asked += outer.asked
    exam.findings += outer.findings
    exam.unchecked += outer.unchecked
    each = outer.certificates
    coef = np.ascontiguousarray(B.T)
    q = np.einsum("mnc,nc->m", grams.products(coef), coef)
    target = np.eye(len(model.classes_))[targets] if isinstance(model, MarginClassifier) else None
    _weighed(exam, model, grams, given, target, q)
    primal = float(sum(c.primal or 0.0 for c in each))
    gap = float(sum(c.gap or 0.0 for c in each))
    fixed = model._fixed_weights(grams, given, target) is not None
    found = _whole(model, primal, gap, q, fixed)
    open_end = [c.status for c in each if c.status != Status.CONVERGED]
    reached = Reached(not open_end, f"the machine at these weights is not: {', '.join(open_end)}")
    if not (fixed or open_end):
        reached = _small_gap(model, found, float(np.abs(q).sum()))
    exam.certificate(model.certificate_, found, reached=reached, scale=float(np.abs(q).sum()))
    if isinstance(model, MarginClassifier) and model.probability:
        if model.cut_calibration():
            exam.cannot("calibration_: it was cut short, and where the seconds end is not repeatable")
        elif isinstance(model.random_state, int | np.integer):
            slopes = model._calibrate(K, targets, w).slopes
            exam.same("calibration_.slopes", model.calibration_.slopes, slopes, within=1e-3)
        else:
            exam.cannot(
                "calibration_: the rows held out were drawn without a seed (give random_state a number)"
            )


@examine.register
def _(
    model: MultipleKernelRegressor, exam: Examination, X: Table, y: Targets, sample_weight: Weights
) -> None:
    A, n = _rows(model, X)
    Y = check_target_block(y, n, type(model).__name__)[0]
    every = check_weights(sample_weight, n)
    used = np.flatnonzero(every > 0)
    Y = Y[used]
    w = every[used]
    width = A[0].shape[1] if isinstance(A, list) else A.shape[1]
    exam.same("n_features_in_", model.n_features_in_, width)
    kept = [K[np.ix_(used, used)] for K in A] if isinstance(A, list) else A[used]
    if not isinstance(A, list):
        same_rows(exam, "X_fit_", model.X_fit_, kept)
    grams = _grams(model, kept, w)
    d = np.asarray(model.weights_, dtype=float)
    lam = float(model.alpha)
    coef = np.asarray(model.dual_coef_).reshape(-1, Y.shape[1])
    if isinstance(A, list):
        exam.true(not np.any(coef[every == 0]), "a row without weight has a coefficient")
        coef = coef[used]
    b = np.atleast_1d(model.intercept_)
    F = grams.products(np.ascontiguousarray(coef))
    f = np.einsum("m,mnc->nc", d, F)
    q = lam * np.einsum("mnc,nc->m", F, coef)
    target = Y - (w @ Y) / w.sum() if model.fit_intercept else Y
    _weighed(exam, model, grams, w, target, q)
    rest = Y - b - f
    primal = 0.5 * float(d @ q) + 0.5 * float(w @ (rest**2).sum(axis=1))
    off = rest - lam * coef / w[:, None]
    gap = 0.5 * float(w @ (off**2).sum(axis=1))
    fixed = model._fixed_weights(grams, w, target) is not None
    size = float(w @ (Y**2).sum(axis=1))
    found = _whole(model, primal, gap, q, fixed)
    exam.certificate(model.certificate_, found, reached=_small_gap(model, found, size), scale=size)
    # the gap is of second order: what is off in the system itself is of first
    slack = np.sqrt(2 * max(model.certificate_.gap or 0.0, 0.0)) + SOLVED * np.sqrt(size)
    exam.true(
        float(np.sqrt(w) @ np.abs(off).max(axis=1)) <= np.sqrt(len(w)) * slack,
        "the coefficients do not solve their system: y - b - f and αβ/w differ",
    )
    if model.fit_intercept:
        total = float(np.abs(coef.sum(axis=0)).max())
        exam.true(total <= SOLVED * float(np.abs(coef).sum()), "the coefficients do not sum to 0")
    else:
        exam.same("intercept_ without a bias", float(np.abs(b).max()), 0.0)
