"""Intervals of numbers around any regressor; exact, from one factorisation, around ridges and processes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin, clone

from mercer.conformal.bands import plus_interval, split_interval
from mercer.conformal.closed import (
    Closed,
    deviation,
    forget,
    is_centred,
    is_closed,
    remember,
    smoother_of,
    what_breaks,
)
from mercer.conformal.sample import Sample
from mercer.conformal.union import union
from mercer.conformal.wrapper import Given, Wrapper
from mercer.errors import InputError, ParameterError
from mercer.machines.shared.targets import check_numbers
from mercer.solve.left_out import NewRows, Score, Smoother
from mercer.typing import Array, Flags, Integers, Labels, Seed, Table, Targets, Weights

RESIDUALS = ("fit", "deleted")


class ConformalRegressor(RegressorMixin, Wrapper):
    """Intervals that hold the truth as often as they say, around any regressor.

        [ lower quantile of μ₋ᵢ(x) - R_i,  upper quantile of μ₋ᵢ(x) + R_i ],    R_i = |y_i - μ₋ᵢ(x_i)|

    Parameters
    ----------
    estimator : regressor
        Any regressor; it is cloned and fitted, unless `method` is "prefit".
    method : str
        "split" keeps rows out of the fit and calibrates by them. "jackknife+" leaves out each row, "cv+" each
        of some folds. "full" tries every target of the new row. "prefit" takes the estimator as it is fitted,
        and calibrates by the rows given, which it must not have seen. "auto" is "jackknife+" where that needs
        no refits, else "cv+". For `KernelRidge`, `KernelRidgeCV` and `GaussianProcessRegressor` jackknife+
        and full are exact and in closed form, with hyperparameters held as all rows gave them; others are
        refitted for jackknife+, and have no full.
    level : float
        The share of intervals that are to hold the truth.
    normalize : bool
        Count errors in the deviations that the model itself expects (Gaussian processes, ridges, and whatever
        predicts with `return_std`), so that intervals are wider where the model is less sure.
    residual : str
        Of "full": "fit" is the error within the fit to all rows and the new one, "deleted" that of the
        fit without the row. With `normalize` it is the deleted one in its deviations.
    by : int, str or None
        A column whose values are groups that keep the level each by itself (Mondrian prediction); groups
        may also be given to `fit`.
    folds : int
        Of "cv+".
    calibration_size : float
        The share of rows that "split" keeps out.
    random_state : int or None
        Of the rows that are kept out, and of the folds.

    Attributes
    ----------
    estimator_ : the model fitted to all rows; of "split" to those that were not kept out.
    method_, closed_form_ : how rows were left out, and whether without refits.
    scores_, left_out_ : |y - μ| of the rows of calibration (in deviations with `normalize`), and μ.
    rows_ : which rows these are. `estimators_`, `fold_` : the models of the folds, and the fold of each row.
    diagonal_ : of the inverse, in closed form.
    guarantee_ : what is promised, of which kind, and under which condition.

    >>> import numpy as np
    >>> from mercer import ConformalRegressor, KernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = ConformalRegressor(KernelRidge("RBF(1.0)", alpha=0.1), level=0.9).fit(X, y)
    >>> low, high = model.predict_interval([[0.5]])
    >>> bool(low[0] < np.sin(0.5) < high[0]), model.method_, model.closed_form_
    (True, 'jackknife+', True)
    >>> model.guarantee_.at_least, model.guarantee_.strict
    (0.8, True)
    """

    methods: ClassVar[tuple[str, ...]] = ("auto", "split", "jackknife+", "cv+", "full", "prefit")
    closed_form_: bool
    left_out_: Array
    diagonal_: Array

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "auto",
        level: float = 0.9,
        normalize: bool = False,
        residual: str = "fit",
        by: int | str | None = None,
        folds: int = 10,
        calibration_size: float = 0.25,
        random_state: Seed = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.level = level
        self.normalize = normalize
        self.residual = residual
        self.by = by
        self.folds = folds
        self.calibration_size = calibration_size
        self.random_state = random_state

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def check_parameters(self) -> None:
        """Refuse parameters outside their domains."""
        super().check_parameters()
        if self.residual not in RESIDUALS:
            raise ParameterError(f"residual must be one of {', '.join(RESIDUALS)}; got {self.residual!r}.")
        if self.residual != "fit" and self.method != "full":
            raise ParameterError("residual='deleted' is for method='full'; the others leave rows out anyway.")
        if not isinstance(self.normalize, bool | np.bool_):
            raise ParameterError(f"normalize must be True or False; got {self.normalize!r}.")

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None, groups: object = None) -> Self:
        """Fit the estimator, and find how far it is off on rows that it has not seen.

        `groups` has a label for each row: each group keeps the level by itself. Weights are those of the
        estimator; in quantiles every row of positive weight counts once.
        """
        self.check_parameters()
        given = self._given(X, y, sample_weight, groups)
        self._forget()
        forget(self)
        closed = is_closed(self.estimator)
        self.method_ = self.method
        if self.method == "auto":
            self.method_ = "jackknife+" if closed else "cv+"
        if self.method_ == "full" and not closed:
            raise ParameterError(
                f"method='full' needs residuals that are linear in the targets, as those of KernelRidge, "
                f"KernelRidgeCV and GaussianProcessRegressor; got {type(self.estimator).__name__}. Use "
                "'jackknife+', 'cv+' or 'split'."
            )
        self.closed_form_ = closed and self.method_ in ("jackknife+", "full")
        if self.closed_form_:
            self._fit_closed(given)
        elif self.method_ in ("split", "prefit"):
            self._fit_split(given, self._score)
        else:
            folds = len(given.kept) if self.method_ == "jackknife+" else int(self.folds)
            self._fit_folds(given, folds, self._score)
        self._finish(given)
        return self

    @classmethod
    def around(cls, model: Closed, *, level: float = 0.9, normalize: bool = False) -> ConformalRegressor:
        """Jackknife+ in closed form around a ridge or a process as it is fitted, without fitting it again."""
        out = cls(model, method="jackknife+", level=level, normalize=normalize)
        out.check_parameters()
        smoother = model.smoother()
        out.method_ = "jackknife+"
        out.closed_form_ = True
        out.n_rows_fit_ = int(smoother.rows.max(initial=-1)) + 1
        out._keep(model, smoother, smoother.rows)
        return out

    def _read_y(self, y: Targets, n: int) -> Labels:
        shape: tuple[int, ...] = np.shape(np.asarray(y))
        if len(shape) == 2 and shape[1] > 1:
            raise InputError(
                f"y has {shape[1]} targets, and an interval is of one. Fit one model for each target."
            )
        return check_numbers(y, n, type(self).__name__)

    def _fit_closed(self, given: Given) -> None:
        """One fit and what its factor says of leaving rows out."""
        kept = given.kept
        model = clone(self.estimator)
        options = {} if given.weight is None else {"sample_weight": given.weight[kept]}
        smoother: Smoother = model.fit_smoother(given.sample.learned(kept), given.y[kept], **options)
        self._keep(model, smoother, kept)

    def _keep(self, model: Closed, smoother: Smoother, kept: Integers) -> None:
        """Publish what the smoother of a fit says of its rows."""
        self.estimator_ = model
        self.rows_ = self.learned_ = kept
        self.diagonal_ = smoother.diagonal
        errors = smoother.deleted()
        self.left_out_ = smoother.y - errors
        scale = smoother.deviations() if self.normalize else 1.0
        self.scores_ = _in_deviations(np.abs(errors), scale)
        remember(self, smoother)

    def _score(self, model: Any, rows: Any, y: Labels) -> Array:
        """|y - μ| of rows that the model has not seen, in its deviations if that is asked for."""
        mean = _numbers(model, rows, len(y))
        scale = deviation(model, rows) if self.normalize else 1.0
        return _in_deviations(np.abs(y - mean), scale)

    # ── intervals ───────────────────────────────────────────────────────────────────────────────────────────

    def predict_interval(
        self, X: Table, level: float | None = None, *, groups: object = None
    ) -> tuple[Array, Array]:
        """Lower and upper ends for new rows; of "full" the ends of the whole union.

        They are infinite where there are too few rows for the level, and where no model is left.
        """
        sample, level, labels = self._asked_for(X, level, groups)
        low, high = np.empty(len(sample)), np.empty(len(sample))
        for index in sample.chunks(len(self.rows_)):
            ends = self._ends(sample, index, level, None if labels is None else labels[index])
            low[index], high[index] = ends
        return low, high

    def predict_union(self, X: Table, level: float | None = None, *, groups: object = None) -> list[Array]:
        """For each new row the intervals that are kept, one row (low, high) each.

        They are several only with "full", whose set of targets may have holes.
        """
        sample, level, labels = self._asked_for(X, level, groups)
        out: list[Array] = []
        for index in sample.chunks(len(self.rows_)):
            mine = None if labels is None else labels[index]
            if self.method_ == "full":
                out += self._unions(sample, index, level, mine)
            else:
                out += [
                    np.array([ends]) for ends in zip(*self._ends(sample, index, level, mine), strict=True)
                ]
        return out

    def _asked_for(
        self, X: Table, level: float | None, groups: object
    ) -> tuple[Sample, float, Labels | None]:
        sample = self._new(X)
        level = self._level(level)
        labels = self._groups_of_new(X, groups, len(sample))
        for new, mine in self._members(labels, len(sample)):
            names = None if labels is None else labels[new][:1]
            self._say_if_too_few(int(mine.sum()), level, "group", names)
        return sample, level, labels

    def _ends(
        self, sample: Sample, index: Integers, level: float, labels: Labels | None
    ) -> tuple[Array, Array]:
        """The ends for some of the new rows."""
        if self.method_ == "full":
            hulls = [(each[0, 0], each[-1, 1]) for each in self._unions(sample, index, level, labels)]
            return np.array([a for a, _ in hulls]), np.array([b for _, b in hulls])
        low, high = np.empty(len(index)), np.empty(len(index))
        centre, scale = self._centres(sample, index)
        for new, old in self._members(labels, len(index)):
            if self.method_ in ("split", "prefit"):
                width = scale[new] if self.normalize else 1.0
                low[new], high[new] = split_interval(centre[new], width, self.scores_[old], level)
            else:
                width = scale[np.ix_(new, old)] if self.normalize else 1.0
                low[new], high[new] = plus_interval(centre[np.ix_(new, old)], width, self.scores_[old], level)
        return low, high

    def _centres(self, sample: Sample, index: Integers) -> tuple[Array, Array]:
        """μ(x), or μ₋ᵢ(x) for every i, and the deviations of the same models there, if they are asked for."""
        none = np.zeros(0)
        if self.closed_form_:
            smoother, new = self._smoothed(sample, index, spread=bool(self.normalize))
            centre = smoother.left_out_at(new)
            return centre, smoother.deviations_at(new) if self.normalize else none
        if self.method_ in ("split", "prefit"):
            rows = self._asked(sample, index)
            mean = _numbers(self.estimator_, rows, len(index))
            return mean, deviation(self.estimator_, rows) if self.normalize else none
        means, scales = [], []
        for k, model in enumerate(self.estimators_):
            rows = self._asked_of(sample, index, k)
            means.append(_numbers(model, rows, len(index)))
            if self.normalize:
                scales.append(deviation(model, rows))
        each = np.array(means).T[:, self.fold_]
        return each, np.array(scales).T[:, self.fold_] if self.normalize else none

    def _smoothed(self, sample: Sample, index: Integers, *, spread: bool) -> tuple[Smoother, NewRows]:
        smoother = smoother_of(self, self.estimator_, self.diagonal_)
        A = self.estimator_.check_rows(self._asked(sample, index), reset=False)
        return smoother, smoother.at(A, spread)

    def _unions(self, sample: Sample, index: Integers, level: float, labels: Labels | None) -> list[Array]:
        """The intervals of full conformal prediction for some of the new rows."""
        smoother, new = self._smoothed(sample, index, spread=True)
        score: Score = "residual" if self.residual == "fit" else "deleted"
        if self.normalize:
            score = "normalised"
        out: list[Array] = [np.empty((0, 2))] * len(index)
        for mine, old in self._members(labels, len(index)):
            for row in np.flatnonzero(mine):
                out[row] = union(smoother.lines(new, int(row), score), level, _some(old))
        return out

    # ── what is promised ────────────────────────────────────────────────────────────────────────────────────

    def _breaks(self) -> tuple[bool, tuple[str, ...]]:
        if not self.closed_form_:
            return True, ()
        notes = what_breaks(self.estimator_)
        return not notes, notes

    def _holds_full(self) -> bool:
        return self.closed_form_ and bool(self.normalize) and not is_centred(self.estimator_)


def _some(old: Flags) -> Flags | None:
    return None if old.all() else old


def _numbers(model: Any, rows: Any, n: int) -> Array:
    """What a regressor says, as n numbers."""
    said = np.asarray(model.predict(rows), dtype=np.float64)
    if said.shape not in ((n,), (n, 1)):
        raise InputError(f"{type(model).__name__} predicts an array of shape {said.shape} for {n} rows.")
    return said.reshape(n)


def _in_deviations(errors: Array, scale: Array | float) -> Array:
    """Errors in deviations; one that is 0 is 0 of any, also of none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors == 0, 0.0, errors / scale)
