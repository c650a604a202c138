"""What a conformal wrapper published, computed again from its models and the data, for `mercer.verify`.

In closed form the inverse is taken whole and without the factor; else every model that left rows out is asked
about them again. The models inside are examined by what they claim themselves.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.conformal.classifier import ConformalClassifier
from mercer.conformal.folds import fold_of_each, kept_out
from mercer.conformal.labels import label_scores
from mercer.conformal.regressor import ConformalRegressor
from mercer.conformal.sample import Sample, groups_of
from mercer.errors import InputError
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.shared.base import check_weights, require_rows_of_fit
from mercer.machines.shared.targets import as_labels, check_numbers
from mercer.theory.claims import SOLVED, Examination
from mercer.theory.verify import examine_inside
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights

if TYPE_CHECKING:
    from mercer.conformal.wrapper import Wrapper


def examine(model: Wrapper, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    """Hold what the wrapper published against its data."""
    sample = Sample.of(X, hasattr(model, "n_features_in_") and _pairwise(model))
    n = len(sample)
    require_rows_of_fit(n, model.n_rows_fit_)
    if y is None:
        raise InputError("verify needs the targets of the fit: pass y.")
    numeric = isinstance(model, ConformalRegressor)
    values: Labels = check_numbers(y, n, "verify") if numeric else as_labels(y, n, "verify")
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    kept = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    _rows(model, exam, values, kept)
    if exam.findings:
        # the models were fitted to other rows than it says
        return
    _groups(model, exam, X)
    _inside(model, exam, sample, values, weight)
    if isinstance(model, ConformalClassifier):
        exam.same("codes_", model.codes_, np.searchsorted(model.classes_, values[model.rows_]))
        exam.same("classes_", model.classes_, np.unique(values[kept]))
    if isinstance(model, ConformalRegressor) and model.closed_form_:
        _closed(model, exam, values)
    else:
        exam.same("scores_", model.scores_, _scores(model, sample, values), within=SOLVED)


def _pairwise(model: Wrapper) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(model.estimator).input_tags.pairwise)


def _rows(model: Wrapper, exam: Examination, y: Labels, kept: Integers) -> None:
    """Which rows were left out, where the seed is a number."""
    seeded = isinstance(model.random_state, numbers.Integral)
    strata = y[kept] if isinstance(model, ConformalClassifier) else None
    if model.method_ == "split":
        exam.true(
            np.array_equal(np.sort(np.concatenate([model.rows_, model.learned_])), kept),
            "rows_ and learned_ are not all rows of the fit",
        )
        if seeded:
            chosen = kept_out(len(kept), float(model.calibration_size), model.random_state, strata)
            exam.same("rows_", model.rows_, kept[chosen])
    else:
        exam.same("rows_", model.rows_, kept)
    if not hasattr(model, "fold_"):
        return
    if seeded:
        folds = len(kept) if model.method_ == "jackknife+" else int(model.folds)
        exam.same("fold_", model.fold_, fold_of_each(len(kept), folds, model.random_state, strata))
    else:
        exam.cannot("which rows are left out together: the seed is no number")


def _groups(model: Wrapper, exam: Examination, X: Table) -> None:
    if not hasattr(model, "groups_"):
        return
    if model.by is None:
        exam.cannot("the groups that were given to fit")
        return
    found = groups_of(model.by, X, None, model.n_rows_fit_)
    assert found is not None
    exam.same("groups_", model.groups_, found[model.rows_])


def _inside(model: Wrapper, exam: Examination, sample: Sample, y: Labels, weight: Array | None) -> None:
    """The models, each on the rows that it was fitted to."""
    parts = [(model.estimator_, model.learned_)]
    for k, other in enumerate(getattr(model, "estimators_", ())):
        parts.append((other, model.rows_[model.fold_ != k]))
    for inner, index in parts:
        if not len(index):
            exam.cannot("the model inside, which was fitted to other rows")
            continue
        w = None if weight is None else weight[index]
        if not examine_inside(exam, inner, sample.learned(index), y[index], w):
            exam.cannot(f"the {type(inner).__name__} inside, which is none of mercer's machines")


def _scores(model: Wrapper, sample: Sample, y: Labels) -> Array:
    """The scores by the models that left the rows out."""
    if model.method_ in ("split", "prefit"):
        rows = sample.compared(model.rows_, model.learned_ if sample.pairwise else None)
        return _score(model, model.estimator_, rows, y[model.rows_])
    out = np.empty(len(model.rows_))
    for k, inner in enumerate(model.estimators_):
        mine = model.fold_ == k
        rows = sample.compared(model.rows_[mine], model.rows_[~mine] if sample.pairwise else None)
        out[mine] = _score(model, inner, rows, y[model.rows_[mine]])
    return out


def _score(model: Wrapper, inner: Any, rows: Any, y: Labels) -> Array:
    if isinstance(model, ConformalClassifier):
        every = label_scores(inner, rows, model.classes_, model.conformity_)
        return np.array(
            [every[i, model.classes_.tolist().index(label)] for i, label in enumerate(y.tolist())]
        )
    assert isinstance(model, ConformalRegressor)
    return model._score(inner, rows, y)


def _closed(model: ConformalRegressor, exam: Examination, y: Array) -> None:
    """Predictions without each row, and the diagonal, from the whole inverse."""
    inner = model.estimator_
    mine = y[model.rows_]
    G, left_out = _by_ridge(inner, mine) if isinstance(inner, RidgeMachine) else _by_process(inner, mine)
    exam.same("diagonal_", model.diagonal_, G, within=SOLVED)
    exam.same("left_out_", model.left_out_, left_out, within=SOLVED, scale=float(np.abs(mine).max()))
    errors = np.abs(mine - left_out)
    scale = 1.0 / np.sqrt(G) if model.normalize else 1.0
    found = np.where(errors == 0, 0.0, errors / scale)
    exam.same("scores_", model.scores_, found, within=SOLVED, scale=float(np.nanmax(found, initial=1e-300)))


def _by_ridge(inner: RidgeMachine, y: Array) -> tuple[Array, Array]:
    """The diagonal of G and y - Gy / G_ii; in features in units of α, as they are published."""
    problem = inner.problem_of_fit()
    alpha = float(np.ravel(np.asarray(inner.fitted_alpha(), dtype=float))[0])
    penalty = problem.penalty(alpha)
    n = len(y)
    w = penalty.weight
    if inner.solver_ in ("primal", "nystrom"):
        features = problem.explicit() if inner.solver_ == "primal" else problem.landmarks()[1]
        phi = np.vstack([P for _, P in features.blocks()])
        own = np.column_stack([phi, np.ones(n)]) if problem.intercept else phi
        ridge = np.sqrt(penalty.alpha) * np.eye(own.shape[1])
        if problem.intercept:
            ridge[-1, -1] = 0.0
        Q, _ = np.linalg.qr(np.vstack([np.sqrt(w)[:, None] * own, ridge]))
        H = Q[:n] @ Q[:n].T
        root = np.sqrt(w)
        G = w * (1.0 - np.diag(H))
        c = root * (root * y - H @ (root * y))
        return G, y - c / G
    A = problem.operator(stored=False).dense() + np.diag(penalty.alpha / w)
    if problem.intercept:
        A = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(A)[:n, :n]
    G = np.diag(inverse)
    return G, y - inverse @ y / G


def _by_process(inner: GaussianProcessRegressor, y: Array) -> tuple[Array, Array]:
    posterior = inner.posterior_
    noise = np.broadcast_to(np.asarray(posterior.noise, dtype=np.float64), len(y))
    inverse = np.linalg.inv(posterior.gram().dense() + np.diag(noise))
    G = np.diag(inverse)
    n = len(y)
    out = np.empty(n)
    for i in range(n):
        m = (y.sum() - y[i]) / (n - 1) if posterior.units.centred else float(posterior.units.mean[0])
        out[i] = y[i] - inverse[i] @ (y - m) / G[i]
    return G, out
