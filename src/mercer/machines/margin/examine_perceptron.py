"""The claims of the perceptrons, whose answer is the run itself, and of the certified Adatron."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.margin.adatron import Adatron
from mercer.machines.margin.perceptron import KernelPerceptron, Perceptron
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    HISTORY,
    again,
    same_approximation,
    same_feature_coef,
    same_kernel,
    same_published,
    same_rows,
    same_width,
)
from mercer.solve.box import BoxProblem
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import SOLVED, Examination, Reached, at_most
from mercer.typing import Table, Targets, Weights


@examine.register
def _(model: KernelPerceptron, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    if model.shuffle and not isinstance(model.random_state, int | np.integer):
        exam.cannot("the order of the rows: it was drawn without a seed (give random_state a number)")
        still: bool | None = _follows_from_mistakes(exam, model, A, y)
    else:
        still = _runs_again(exam, model, X, y, A.shape[0])
    same_approximation(exam, model, A, np.ones(A.shape[0]))
    _says(exam, model, still)


@examine.register
def _(model: Perceptron, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    _says(exam, model, _runs_again(exam, model, X, y, A.shape[0]))


def _runs_again(
    exam: Examination, model: KernelPerceptron | Perceptron, X: Table, y: Targets, n: int
) -> bool | None:
    """The same rows in the same order make the same mistakes; whether the last pass made none, if known."""
    one_pass = model._steps == n and model.n_iter_ > 1
    skip = set(HISTORY - {"n_iter_"})
    changes: dict[str, object] = {}
    if one_pass:
        # the rows came piece by piece, each seen once
        changes = {"max_iter": 1}
        if isinstance(model, KernelPerceptron):
            changes["shuffle"] = False
        skip |= {"n_iter_", "converged_"}
        if isinstance(model, Perceptron):
            skip |= {"mistakes_", "_made"}
    twin = again(model, X, y, None, **changes)
    same_published(exam, model, twin, skip=frozenset(skip), within=SOLVED)
    return None if one_pass else bool(twin.converged_)


def _follows_from_mistakes(exam: Examination, model: KernelPerceptron, A: Matrix, y: Targets) -> bool:
    """An order that nobody knows: the record has the rows with mistakes and how long each version lived."""
    n = A.shape[0]
    exam.same("classes_", model.classes_, np.unique(np.asarray(y)))
    same_width(exam, model, A)
    same_kernel(exam, model, A)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    made = np.asarray(model.mistakes_)
    lives = np.asarray(model.lives_)
    exam.true(len(lives) == len(made) + 1, "there is not one version more than there are mistakes")
    exam.same("the steps of all versions", int(lives.sum()), int(model.n_iter_ * n))
    twin = clone(model)
    twin.classes_ = model.classes_
    twin.n_features_in_ = A.shape[1]
    if model.is_approximated:
        twin.approximation_ = model.approximation_
    twin.kernel_ = model.kernel_
    twin._begin(A)
    twin._y = signs
    twin.n_iter_ = model.n_iter_
    twin.converged_ = bool(lives[-1] > n)
    K = np.asarray(model.again_on(A).gram().block(slice(None), slice(None)))
    twin._norms = np.sqrt(np.abs(K.diagonal()))
    when = np.cumsum(lives)[: len(made)]
    for row, step in zip(made, when, strict=True):
        margin = signs[row] * (twin._f[row] + twin.b_)
        exam.true(margin <= SOLVED * (1 + np.abs(twin._f).max()), f"row {row} was no mistake at step {step}")
        twin.alpha_[row] += signs[row]
        twin._f += signs[row] * K[row]
        twin._sum[row] += signs[row] * step
        twin._reach += twin._norms[row]
        if model.fit_intercept:
            twin.b_ += signs[row]
            twin._sum_b += signs[row] * step
    twin._made = made.tolist()
    twin._lives = lives.tolist()
    twin._steps = int(lives.sum())
    twin._finish()
    same_published(exam, model, twin, skip=HISTORY | {"converged_"}, within=SOLVED)
    return bool(lives[-1] >= n)


def _says(exam: Examination, model: KernelPerceptron | Perceptron, still: bool | None) -> None:
    """A pass without a mistake is what "converged" means here."""
    status = Status.CONVERGED if model.converged_ else Status.LIMIT
    if model.certificate_.status != Status.INTERRUPTED:
        exam.same("the status", model.certificate_.status, status)
    reached = Reached(still, "a mistake was made in the last pass")
    if still is None:
        reached = Reached(
            None, "the rows came piece by piece, and only the last piece is known to have been right"
        )
    exam.certificate(
        model.certificate_, Certificate(model.certificate_.status, "recomputed"), reached=reached
    )


@examine.register
def _(model: Adatron, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    n = A.shape[0]
    same_width(exam, model, A)
    exam.same("n_rows_fit_", model.n_rows_fit_, n)
    exam.same("classes_", model.classes_, np.unique(np.asarray(y)))
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    same_kernel(exam, model, A)
    same_approximation(exam, model, A, np.ones(n))
    K = model.again_on(A).gram()
    exam.same("step_", model.step_, model._checked_step(K))
    problem = BoxProblem(np.arange(n), signs, np.full(n, -1.0), np.full(n, float(model.C)), equality=0)
    alpha = np.asarray(model.alpha_)
    inside = np.all(alpha >= 0) and np.all(alpha <= float(model.C))
    exam.true(inside, f"some α is not between 0 and C = {model.C:g}")
    f = np.asarray(K @ (signs * alpha))
    found = problem.certify(alpha, f, (0.0, 0.0), status=model.certificate_.status, method="recomputed")
    unit = 1.0 + float(np.abs(f).max(initial=0.0))
    reached = at_most("the worst violation", found.kkt, float(model.tol) + SOLVED * unit)
    exam.certificate(model.certificate_, found, reached=reached, scale=float(np.abs(alpha).sum()), unit=unit)
    exam.same("the last of dual_", float(model.dual_[-1]), float(found.dual or 0.0), within=SOLVED)
    exam.same("converged_", model.converged_, model.certificate_.status == Status.CONVERGED)
    exam.same("support_", model.support_, np.flatnonzero(alpha))
    exam.same("dual_coef_", model.dual_coef_, (signs * alpha)[model.support_].reshape(1, -1))
    exam.same("intercept_", model.intercept_, np.zeros(1))
    exam.same("b_", model.b_, 0.0)
    if model.kernel_ != PRECOMPUTED:
        same_rows(exam, "support_vectors_", model.support_vectors_, A, model.support_)
    same_feature_coef(exam, model, A, (signs * alpha)[:, None])
