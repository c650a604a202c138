"""The claims of the margin machines: feasible, complementary, and predicting by what was certified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mercer.gram import GramOperator
from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.margin.classify import MarginClassifier
from mercer.machines.margin.nu import NuSVC
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.problems import MarginMachine
from mercer.machines.margin.svdd import SVDD
from mercer.machines.margin.svr import NuSVR
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    same_approximation,
    same_coef,
    same_feature_coef,
    same_kernel,
    same_rows,
    same_width,
)
from mercer.machines.shared.targets import class_weights
from mercer.solve.box import BoxProblem
from mercer.solve.solution import Certificate, Status, joined_certificate
from mercer.sparse import Matrix
from mercer.theory.claims import EXACT, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights

NEARLY = 1e-3
"""What tolerances give where a solver and this room sum in another order."""
ROUNDING = 1e-13
"""Of the largest value that a sum could have."""
NEAR = 0.01
"""Of the objective: a larger gap is no optimum, however small the violation."""


@examine.register
def _(model: MarginMachine, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A, targets, w = model.check_again(X, y, sample_weight)
    given = check_weights(sample_weight, A.shape[0])
    if isinstance(model, MarginClassifier) and sample_weight is not None:
        given = w
    same_kernel(exam, model, A, given)
    by_problem(exam, model, A, targets, w, model.again_on(A).gram(), y)
    order = model._by_class(targets) if isinstance(model, MarginClassifier) else None
    if order is None:
        order = np.arange(A.shape[0])
    same_approximation(exam, model, A[order], given[order])
    if isinstance(model, MarginClassifier):
        same_calibration(exam, model, A, targets, w)
    whole = joined_certificate(list(model.certificates_))
    if isinstance(model, MarginClassifier) and model.cut_calibration() and whole.converged:
        whole = replace(whole, status=Status.LIMIT)
    exam.copies("certificate_", model.certificate_, whole)


def by_problem(
    exam: Examination, model: MarginMachine, A: Matrix, targets: Labels, w: Array, K: GramOperator, y: Targets
) -> Array:
    """All that follows from coefficients and intercepts, problem by problem; the coefficients of all rows."""
    same_shape(exam, model, A)
    betas = []
    many = len(model.certificates_) > 1
    restated = list(restate(model, A, targets, w, K))
    exam.true(
        len(restated) == len(model.certificates_),
        f"the data pose {len(restated)} problems, and the model has {len(model.certificates_)} certificates",
    )
    tol = (1 + NEARLY) * float(model.tol) * model._unit(K, [q for q, *_ in restated])
    for k, (problem, alpha, m, beta) in enumerate(restated):
        of = f"problem {k}: " if many else ""
        scale = model._scale_of(k, problem)
        f = np.asarray(K @ beta)[problem.rows]
        infeasible(exam, of, problem, alpha, beta)
        exact = alpha
        alpha = snapped(problem, alpha, beta)
        claimed = model.certificates_[k]
        found = problem.certify(alpha, f, m, status=claimed.status, method="recomputed")
        energy = float(beta @ np.asarray(K @ beta))
        unit = float(np.abs(f).max(initial=0.0) + np.abs(problem.p).max(initial=0.0)) + max(map(abs, m))
        lost = _lost_margin(problem, m, found)
        unit = max(unit, (_rounding_of_f(K, beta) + lost) / SOLVED)
        exam.certificate(
            claimed,
            found,
            reached=_optimal(model, K, problem, alpha, beta, found, tol + SOLVED * unit),
            of=of,
            scale=max(abs(energy), _rounding_of_objective(K, problem, alpha, beta, lost) / SOLVED),
            unit=max(unit, 1e-300),
        )
        if problem.equality == 0:
            exam.same(f"{of}intercept_ without a bias", float(model.intercept_[k]), 0.0)
        exam.same(
            f"{of}norms_²",
            (model.norms_[k] * scale) ** 2,
            max(energy, 0.0),
            scale=_energy_size(K, beta, energy),
        )
        if not isinstance(model, NuSVR):
            same_bounds(exam, of, model, k, problem, exact, exactly=scale == 1)
        betas.append(beta / scale)
    exam.same("the number of norms_", len(model.norms_), len(restated))
    B = np.array(betas)
    same_feature_coef(exam, model, A, B.T)
    same_coef(exam, model)
    derived(exam, model, K, targets, w, y)
    return B


def _energy_size(K: GramOperator, beta: Array, energy: float) -> float:
    """In units of which βᵀKβ is known to `EXACT`: its own, or the rounding of its terms where they cancel."""
    return max(abs(energy), ROUNDING * _reach(K, beta) ** 2 / EXACT)


def _rounding_of_f(K: GramOperator, beta: Array) -> float:
    """How far K β may be off by rounding, where its terms cancel as those of a constant kernel do."""
    own = np.abs(np.asarray(K.diag(), dtype=float))
    return ROUNDING * float(np.sqrt(own.max(initial=0.0))) * _reach(K, beta)


def _lost_margin(q: BoxProblem, m: tuple[float, float], found: Certificate) -> float:
    """How large a margin may be that was not positive and was published as 0: as large as the violation."""
    if q.equality == 2 and m[0] + m[1] == 0:
        return float(found.kkt or 0.0)
    return 0.0


def _rounding_of_objective(
    K: GramOperator, q: BoxProblem, alpha: Array, beta: Array, lost: float = 0.0
) -> float:
    """How far the objectives may be off by rounding of their terms.

    Without a linear term (a share ν in place of a price) the optimum may be 0 itself, and the slacks are
    then nothing but the rounding of f, and a margin that was `lost`, each of them counted C times.
    """
    found = ROUNDING * (_reach(K, beta) ** 2 + float(np.abs(q.p) @ alpha))
    if not np.any(q.p):
        found += float(q.C[np.isfinite(q.C)].sum()) * (_rounding_of_f(K, beta) + lost)
    return found


def _reach(K: GramOperator, beta: Array) -> float:
    """Σ |β_i| √k(x_i, x_i), the largest norm that these coefficients can give."""
    return float(np.sqrt(np.abs(np.asarray(K.diag(), dtype=float))) @ np.abs(beta))


def same_bounds(
    exam: Examination, of: str, model: MarginMachine, k: int, q: BoxProblem, alpha: Array, *, exactly: bool
) -> None:
    """`at_bound_` names what is at C; what is below by no more than rounding may be called either."""
    n = int(model.n_rows_fit_)
    sure = np.zeros(n, dtype=bool)
    perhaps = np.zeros(n, dtype=bool)
    lost = 0.0 if exactly else 4 * np.finfo(float).eps
    sure[q.rows[alpha >= q.C * (1 - lost)]] = True
    perhaps[q.rows[alpha >= q.C - EXACT * alpha.max(initial=0.0)]] = True
    claimed = np.asarray(model.at_bound_[k])
    wrong = (sure[model.support_] & ~claimed) | (claimed & ~perhaps[model.support_])
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else 0
    exam.true(not wrong.any(), f"{of}at_bound_[{k}, {first}] is not what its α says")


def _optimal(
    model: MarginMachine,
    K: GramOperator,
    q: BoxProblem,
    alpha: Array,
    beta: Array,
    found: Certificate,
    tol: float,
) -> Reached:
    """A violation within `tol` and a gap of a hundredth of the objective, or a gap within `gap_tol`.

    Where the optimum is w = 0, all of the objective is gap: it is then 0 to `SOLVED` of what it would be if
    the terms of w did not cancel.
    """
    size = max(abs(found.primal or 0.0), abs(found.dual or 0.0))
    gap = float(found.gap or 0.0)
    kkt = float(found.kkt or 0.0)
    rounding = _rounding_of_objective(K, q, alpha, beta)
    if model.gap_tol is not None and gap <= (1 + NEARLY) * float(model.gap_tol) * size + rounding:
        return Reached(True)
    small = at_most("the worst violation", kkt, tol)
    if not small.met or not np.all(np.isfinite(q.C)) or model.solver == "projected-gradient":
        return small
    nothing = 0.0 if np.any(q.p) else SOLVED * _reach(K, beta) ** 2
    return at_most("the gap", gap, max((NEAR + NEARLY) * size + rounding, nothing))


def same_shape(exam: Examination, model: MarginMachine, A: Matrix) -> None:
    """Support vectors are rows of X, named once; the model knows how many rows and columns it saw."""
    n = A.shape[0]
    exam.same("n_rows_fit_", model.n_rows_fit_, n)
    same_width(exam, model, A)
    support = np.asarray(model.support_)
    exam.true(len(np.unique(support)) == len(support), "support_ names a row twice")
    used = np.any(model.dual_coef_ != 0, axis=0)
    exam.true(used.all(), "support_ names a row whose coefficients are all 0")
    if model.kernel_ != PRECOMPUTED:
        same_rows(exam, "support_vectors_", model.support_vectors_, A, support)


def restate(
    model: MarginMachine, A: Matrix, y: Labels, w: Array, K: GramOperator
) -> Iterator[tuple[BoxProblem, Array, tuple[float, float], Array]]:
    """Each problem with the α, multipliers and coefficients that the fitted model stands for."""
    for problem, alpha, m, beta in model._restate(A, y, w, K):
        if isinstance(model, NuSVR):
            alpha = completed(problem, alpha)
        yield problem, alpha, m, beta


def completed(q: BoxProblem, alpha: Array) -> Array:
    """α and α* of ν-regression from their difference.

    Both grow by the same, where there is room, until Σα is what ν says.
    """
    n = len(alpha) // 2
    total = q.sums(q.start)[0]
    missing = total - q.sums(alpha)[0]
    if missing <= EXACT * total:
        return alpha
    room = np.maximum(q.C[:n] - np.maximum(alpha[:n], alpha[n:]), 0.0)
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    more = np.clip(missing - before, 0.0, room)
    return alpha + np.tile(more, 2)


def infeasible(exam: Examination, of: str, q: BoxProblem, alpha: Array, beta: Array) -> None:
    """Signs, bounds and sums of the coefficients are what the problem allows."""
    scale = max(float(np.abs(beta).max(initial=0.0)), 1e-300)
    stray = np.abs(q.beta(alpha, len(beta)) - beta)
    exam.true(
        stray.max(initial=0.0) <= EXACT * scale,
        f"{of}the coefficient of row {int(np.argmax(stray))} has the wrong sign, or the row has no weight",
    )
    over = alpha - q.C
    i = int(np.argmax(over)) if len(over) else 0
    exam.true(
        over.max(initial=-1.0) <= EXACT * scale,
        f"{of}α of row {int(q.rows[i])} exceeds its bound C = {q.C[i]:.9g} by {over.max(initial=0.0):.3g}",
    )
    unkept = q.unkept(alpha)
    exam.true(
        unkept <= EXACT * max(float(alpha.sum()), 1e-300),
        f"{of}the coefficients do not keep their sum: it is off by {unkept:.3g}",
    )


def snapped(q: BoxProblem, alpha: Array, beta: Array) -> Array:
    """α at its bound where rounding alone keeps it from there."""
    return np.where(np.abs(alpha - q.C) <= EXACT * np.abs(beta).max(initial=0.0), q.C, alpha)


def derived(
    exam: Examination, model: MarginMachine, K: GramOperator, targets: Labels, w: Array, y: Targets
) -> None:
    """What single machines publish besides."""
    support = model.support_
    if isinstance(model, MarginClassifier):
        labels = np.asarray(y)
        exam.same("classes_", model.classes_, np.unique(labels))
        exam.same(
            "n_support_", model.n_support_, np.bincount(targets[support], minlength=len(model.classes_))
        )
        given = np.divide(w, model.class_weight_[targets], where=model.class_weight_[targets] > 0, out=0 * w)
        exam.same(
            "class_weight_",
            model.class_weight_,
            class_weights(model.class_weight, model.classes_, targets, given),
        )
    else:
        exam.same("n_support_", model.n_support_, np.array([len(support)]))
    if isinstance(model, OneClassSVM | SVDD):
        exam.same("offset_", model.offset_, -model.intercept_)
    if isinstance(model, SVDD):
        own = np.asarray(K.diag(), dtype=float)
        exam.same("k(x, x)", model._own, float(own[w > 0][0]))
        exam.same("center_norm_", model.center_norm_, 0.5 * float(model.norms_[0]))
        inside = max(float(model.intercept_[0]) + model.center_norm_**2, 0.0)
        exam.same("radius_", model.radius_, float(np.sqrt(inside)))
    if isinstance(model, NuSVC):
        for k, problem in enumerate(model._problems(targets, w)):
            total = float(np.abs(model.dual_coef_[k]).sum())
            exam.true(total > 0 or problem.start.sum() == 0, f"problem {k}: no coefficient is left")


def same_calibration(
    exam: Examination, model: MarginClassifier, A: Matrix, codes: Integers, w: Array
) -> None:
    """Slopes of probabilities, by holding out the same rows again."""
    if not model.probability:
        return
    if not isinstance(model.random_state, int | np.integer):
        exam.cannot("calibration_: the rows held out were drawn without a seed (give random_state a number)")
        return
    if model.cut_calibration():
        exam.cannot("calibration_: it was cut short, and where the seconds end is not repeatable")
        return
    order = model._by_class(codes)
    if order is not None:
        A, codes, w = A[order], codes[order], w[order]
    found = model._calibrate(model.again_on(A).gram(), codes, w)
    exam.same("calibration_.slopes", model.calibration_.slopes, found.slopes, within=1e-3)
