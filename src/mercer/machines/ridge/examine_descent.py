"""The claims of gradient descent, by its closed form: no step is taken again.

a_t = V (I - (I - 2sΛ)ᵗ) Λ⁻¹ Vᵀ W½y,    W½KW½ = VΛVᵀ,    α_t = W½a_t
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.gram.on_rows import check_gram
from mercer.machines.ridge.least_squares import GROWTH, KernelLeastSquares
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    HISTORY,
    again,
    features_of,
    plain_gram,
    same_approximation,
    same_feature_coef,
    same_kernel,
    same_published,
    same_rows,
    same_width,
)
from mercer.machines.shared.targets import check_target_block
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import SOLVED, Examination, Reached
from mercer.typing import Array, Integers, Table, Targets, Weights

# rows up to which the closed form is affordable; beyond, the steps are taken again
ALL_EIGENVALUES = 2000
# powers of eigenvalues lose some digits
CLOSE = 1e-6


@examine.register
def _(model: KernelLeastSquares, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    Y = check_target_block(y, A.shape[0], type(model).__name__)[0]
    same_width(exam, model, A)
    same_kernel(exam, model, A, w)
    train, held = _split(exam, model, np.flatnonzero(w > 0))
    learned = np.zeros(len(w))
    learned[train] = w[train]
    same_approximation(exam, model, A, learned)
    if isinstance(model.kernel_, str):
        A = check_gram(A)
        exam.same("X_fit_", model.X_fit_, A)
    else:
        same_rows(exam, "X_fit_", model.X_fit_, A)
    if len(train) > ALL_EIGENVALUES:
        _steps_again(exam, model, X, y, sample_weight)
        return
    coef = np.reshape(model.dual_coef_, Y.shape)
    K, across = _grams(model, A, train, held)
    descent = _Descent.of(K, Y[train], w[train])
    _step(exam, model, descent)
    exam.same("α", coef[train], descent.alpha(model.n_iter_, model.step_), within=CLOSE)
    exam.true(not np.any(np.delete(coef, train, axis=0)), "a row that was not learned from has a coefficient")
    same_feature_coef(exam, model, A, np.asarray(model.dual_coef_))
    _path(exam, model, descent, across, Y[held], w[held])
    _certificate(exam, model, K, coef[train], Y[train], w[train])


def _split(exam: Examination, model: KernelLeastSquares, rows: Integers) -> tuple[Integers, Integers]:
    """The rows learned from and the rows held out: together all rows with weight, and as the seed says."""
    train = np.asarray(model._used)
    held = np.asarray(model.validation_rows_)
    count = max(1, round(model.validation_fraction * len(rows))) if model.early_stopping else 0
    exam.same("how many rows were held out", len(held), count)
    exam.same("the rows learned from and held out", np.sort(np.concatenate([train, held])), rows)
    if count == 0:
        return train, held
    if _seeded(model):
        order = np.random.default_rng(model.random_state).permutation(rows)
        exam.same("validation_rows_", held, np.sort(order[:count]))
    else:
        exam.cannot("which rows were held out: they were drawn without a seed")
    return train, held


def _seeded(model: KernelLeastSquares) -> bool:
    """Whether the same rows would be held out again."""
    return isinstance(model.random_state, int | np.integer)


def _grams(model: KernelLeastSquares, A: Matrix, train: Integers, held: Integers) -> tuple[Array, Array]:
    """K of the rows learned from, and between the rows held out and those."""
    if model.is_approximated:
        phi = features_of(model.approximation_, model, A)
        K = phi[train] @ phi[train].T + model.approximation_.noise_ * np.eye(len(train))
        return K, phi[held] @ phi[train].T
    if isinstance(model.kernel_, str):
        return A[np.ix_(train, train)], A[np.ix_(held, train)]
    K = plain_gram(model, A[train])
    if len(held) == 0:
        return K, np.zeros((0, len(train)))
    return K, plain_gram(model, A[held], A[train])


class _Descent(NamedTuple):
    """The eigenvalues Λ of W½KW½, W½V, the targets VᵀW½y in these coordinates, and the sum of the weights."""

    values: Array
    vectors: Array
    targets: Array
    mass: float

    @classmethod
    def of(cls, K: Array, Y: Array, w: Array) -> _Descent:
        root = np.sqrt(w)[:, None]
        values, V = np.linalg.eigh(root * K * root.T)
        return cls(values, root * V, V.T @ (root * Y), float(w.sum()))

    def left(self, t: int, step: float) -> Array:
        """(1 - 2sλ)ᵗ: what is left of each part of the error after t steps."""
        return (1.0 - 2.0 * step * self.values) ** t

    def alpha(self, t: int, step: float) -> Array:
        moved = 2.0 * step * self.values
        slow = np.abs(moved) < 0.5
        grown = np.where(slow, -np.expm1(t * np.log1p(np.where(slow, -moved, 0.0))), 1.0 - self.left(t, step))
        none = self.values == 0
        gain = np.where(none, 2.0 * step * t, grown / np.where(none, 1.0, self.values))
        return self.vectors @ (gain[:, None] * self.targets)


def _step(exam: Examination, model: KernelLeastSquares, descent: _Descent) -> None:
    top = float(descent.values[-1])
    size = float(np.abs(descent.values).max(initial=0.0))
    exam.same("largest_eigenvalue_", model.largest_eigenvalue_, top, within=1e-4, scale=size)
    asked = model.step
    if isinstance(asked, str):
        asked = 0.5 / model.largest_eigenvalue_ if model.largest_eigenvalue_ > 0 else 0.5
    exam.same("step_", model.step_, float(asked))


def _path(
    exam: Examination,
    model: KernelLeastSquares,
    descent: _Descent,
    across: Array,
    Y: Array,
    w: Array,
) -> None:
    """The errors of every step, and that the best of them was kept."""
    path = model.path_
    s = model.step_
    count = len(path.train_errors)
    exam.same("the steps of path_", path.iterations, np.arange(count))
    errors = [float(np.square(descent.left(t, s)[:, None] * descent.targets).sum()) for t in range(count)]
    exam.same("path_.train_errors", path.train_errors, np.array(errors) / descent.mass, within=CLOSE)
    best = count - 1
    if len(Y):
        found = [w @ np.square(across @ descent.alpha(t, s) - Y).sum(axis=1) / w.sum() for t in range(count)]
        exam.same("path_.validation_errors", path.validation_errors, np.array(found), within=CLOSE)
        best = int(np.argmin(np.asarray(path.validation_errors)))
    exam.same("the step that was kept", (path.best, model.n_iter_), (best, best))


def _certificate(
    exam: Examination,
    model: KernelLeastSquares,
    K: Array,
    alpha: Array,
    Y: Array,
    w: Array,
) -> None:
    root = np.sqrt(w)[:, None]
    rest = float(np.linalg.norm(root * (K @ alpha - Y)))
    size = float(np.linalg.norm(root * Y)) or 1.0
    found = Certificate(
        model.certificate_.status, "recomputed", primal=rest**2, residual=rest / size, added_diagonal=0.0
    )
    last = float(np.sqrt(model.path_.train_errors[-1] * w.sum()))
    waited = len(model.path_.train_errors) - 1 - model.n_iter_
    patient = model.path_.validation_errors is not None and waited >= model.patience
    met = last <= model.tol * size * (1 + SOLVED) or patient
    grew = not last**2 <= GROWTH * size**2
    exam.true(
        grew == (model.certificate_.status == Status.FAILED),
        "whether the error grew is not what the status says",
    )
    reached = Reached(met, "the error is above the tolerance")
    exam.certificate(model.certificate_, found, reached=reached, scale=size**2 * 1e-9)


def _steps_again(
    exam: Examination, model: KernelLeastSquares, X: Table, y: Targets, sample_weight: Weights
) -> None:
    """Where eigenvalues are too many: the steps are the definition of the answer, and are taken again."""
    if len(model.validation_rows_) and not _seeded(model):
        _steps_without_held_rows(exam, model, X, y, sample_weight)
        return
    taken = len(model.path_.train_errors) - 1
    twin = again(model, X, y, sample_weight, max_iter=max(taken, 1), max_seconds=None)
    same_published(exam, model, twin, skip=HISTORY - {"n_iter_"}, within=SOLVED)
    reached = Reached(
        twin.certificate_.status == Status.CONVERGED, "the same steps end before the tolerance is met"
    )
    _same_certificate(exam, model, twin, reached)


def _steps_without_held_rows(
    exam: Examination, model: KernelLeastSquares, X: Table, y: Targets, sample_weight: Weights
) -> None:
    """Rows held out without a seed are given no weight, and as many steps are taken on the others."""
    exam.cannot("the errors on rows held out without a seed: the steps are taken on the other rows alone")
    w = check_weights(sample_weight, len(model.dual_coef_))
    w[model.validation_rows_] = 0.0
    steps = {"max_iter": max(model.n_iter_, 1), "max_seconds": None, "tol": 0.0, "early_stopping": False}
    twin = again(model, X, y, w, kernel=model.kernel_, **steps)
    count = min(len(twin.path_.train_errors), len(model.path_.train_errors))
    errors = model.path_.train_errors[:count]
    exam.same("path_.train_errors", errors, twin.path_.train_errors[:count], within=SOLVED)
    for name in ("step_", "largest_eigenvalue_"):
        exam.same(name, getattr(model, name), getattr(twin, name), within=SOLVED)
    if model.n_iter_ == 0:
        exam.true(not np.any(model.dual_coef_), "no step was taken, and there are coefficients")
        return
    exam.same("dual_coef_", model.dual_coef_, twin.dual_coef_, within=SOLVED)
    _same_certificate(exam, model, twin, Reached(None, "when to stop was decided by rows held out"))


def _same_certificate(
    exam: Examination, model: KernelLeastSquares, twin: KernelLeastSquares, reached: Reached
) -> None:
    c = twin.certificate_
    found = Certificate(
        model.certificate_.status, "recomputed", primal=c.primal, residual=c.residual, added_diagonal=0.0
    )
    exam.certificate(model.certificate_, found, reached=reached)
