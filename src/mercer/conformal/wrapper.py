"""What both conformal estimators share: checked rows, weights and groups, and the estimator inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from mercer.conformal.folds import fold_of_each, kept_out
from mercer.conformal.guarantee import OVER_ALL, Guarantee, guarantee, too_few
from mercer.conformal.sample import Sample, groups_of
from mercer.errors import InputError, ParameterError, ShapeError, warn
from mercer.machines.shared.base import check_weights
from mercer.params import is_whole
from mercer.quantiles import check_level, least_rows
from mercer.typing import Array, Flags, Integers, Labels, Seed, Setting, Table, Targets, Weights

if TYPE_CHECKING:
    from mercer.theory.claims import Examination


class Given(NamedTuple):
    """What a fit was given, on its rows of positive weight: `kept` are their places."""

    sample: Sample
    y: Labels
    weight: Array | None
    groups: Labels | None
    kept: Integers


class Wrapper(MetaEstimatorMixin, BaseEstimator):
    """An estimator whose answers are widened until they hold as often as `level` says."""

    estimator: Any
    method: str
    level: float
    by: int | str | None
    folds: int
    calibration_size: float
    random_state: Seed
    methods: ClassVar[tuple[str, ...]]

    estimator_: Any
    estimators_: list[Any]
    method_: str
    fold_: Integers
    rows_: Integers
    learned_: Integers
    scores_: Array
    groups_: Labels
    n_rows_fit_: int
    n_features_in_: int
    feature_names_in_: Labels

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def check_parameters(self) -> None:
        """Refuse parameters outside their domains."""
        if self.method not in self.methods:
            raise ParameterError(f"method must be one of {', '.join(self.methods)}; got {self.method!r}.")
        check_level(self.level)
        if not is_whole(self.folds) or self.folds < 2:
            raise ParameterError(f"folds must be a whole number of at least 2; got {self.folds!r}.")
        check_level(self.calibration_size, "calibration_size")
        if isinstance(self.by, bool) or not (self.by is None or isinstance(self.by, int | str)):
            raise ParameterError(f"by must be the number or the name of a column, or None; got {self.by!r}.")

    def _read_y(self, y: Targets, n: int) -> Labels:
        raise NotImplementedError

    @property
    def _column(self) -> int | str | None:
        """The column that holds the groups."""
        return self.by

    def _given(self, X: Table, y: Targets, sample_weight: Weights, groups: object) -> Given:
        """All rows of positive weight, their targets, weights and groups."""
        sample = Sample.of(X, bool(get_tags(self.estimator).input_tags.pairwise))
        n = len(sample)
        if n == 0:
            raise InputError("Found array with 0 sample(s) (X has no rows) while a minimum of 1 is required.")
        values = self._read_y(y, n)
        labels = groups_of(self._column, X, groups, n)
        if sample_weight is None:
            return Given(sample, values, None, labels, np.arange(n))
        w = check_weights(sample_weight, n)
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ParameterError(f"{type(self.estimator).__name__} takes no sample_weight.")
        kept = np.flatnonzero(w > 0)
        return Given(sample, values, w, labels, kept)

    def _fit_to(self, given: Given, index: Integers, model: Any = None) -> Any:
        """A clone of the estimator, or this model, fitted to some rows."""
        model = clone(self.estimator) if model is None else model
        options = {} if given.weight is None else {"sample_weight": given.weight[index]}
        return model.fit(given.sample.learned(index), given.y[index], **options)

    def _fit_split(self, given: Given, score: Callable[[Any, Any, Labels], Array]) -> None:
        """Some rows kept out of the fit, and their scores; or all of them, of a model that is fitted."""
        kept = given.kept
        if self.method == "prefit":
            check_is_fitted(self.estimator)
            if given.sample.pairwise:
                raise ParameterError("prefit takes no precomputed kernel; use 'split' on the whole matrix.")
            self.estimator_ = self.estimator
            out, learned = kept, kept[:0]
        else:
            chosen = kept_out(len(kept), float(self.calibration_size), self.random_state, self._strata(given))
            out, learned = kept[chosen], np.delete(kept, chosen)
            self.estimator_ = self._fit_to(given, learned)
        self.rows_, self.learned_ = out, learned
        rows = given.sample.compared(out, learned if given.sample.pairwise else None)
        self.scores_ = score(self.estimator_, rows, given.y[out])

    def _fit_folds(self, given: Given, folds: int, score: Callable[[Any, Any, Labels], Array]) -> None:
        """Every row left out once, alone or with its fold, and the scores by the models without it."""
        kept = given.kept
        self.rows_ = self.learned_ = kept
        self.fold_ = fold_of_each(len(kept), folds, self.random_state, self._strata(given))
        self.estimators_ = []
        scores = np.empty(len(kept))
        for k in range(int(self.fold_.max()) + 1):
            out, learned = kept[self.fold_ == k], kept[self.fold_ != k]
            model = self._fit_to(given, learned)
            rows = given.sample.compared(out, learned if given.sample.pairwise else None)
            scores[self.fold_ == k] = score(model, rows, given.y[out])
            self.estimators_.append(model)
        self.scores_ = scores
        self.estimator_ = self._fit_to(given, kept)

    def _strata(self, given: Given) -> Labels | None:
        """The classes that are to be in all parts, of the rows of positive weight."""
        return None

    def _finish(self, given: Given) -> None:
        """What both kinds of fit publish of the rows."""
        self.n_rows_fit_ = len(given.sample)
        if given.groups is not None:
            self.groups_ = given.groups[self.rows_]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if given.sample.pairwise:
            self.n_features_in_ = len(given.sample)

    def _forget(self) -> None:
        """Nothing of an earlier fit is left."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    # ── new rows ────────────────────────────────────────────────────────────────────────────────────────────

    def _new(self, X: Table) -> Sample:
        check_is_fitted(self, "scores_")
        sample = Sample.of(X, bool(get_tags(self.estimator).input_tags.pairwise))
        width = getattr(sample.X, "shape", (0, 0))
        if sample.pairwise and (len(width) < 2 or width[1] != self.n_rows_fit_):
            raise ShapeError(
                f"X must have a column for each of the {self.n_rows_fit_} rows of fit (precomputed products)."
            )
        return sample

    def _asked(self, sample: Sample, index: Integers) -> Any:
        """Rows as `estimator_` reads them."""
        return sample.compared(index, self.learned_ if sample.pairwise else None)

    def _asked_of(self, sample: Sample, index: Integers, k: int) -> Any:
        """Rows as the model without fold k reads them."""
        return sample.compared(index, self.rows_[self.fold_ != k] if sample.pairwise else None)

    def _level(self, level: float | None) -> float:
        return check_level(self.level if level is None else level)

    def _groups_of_new(self, X: Table, groups: object, n: int) -> Labels | None:
        """The groups of new rows, where the fit had groups."""
        if not hasattr(self, "groups_"):
            if groups is not None:
                raise ParameterError("groups= was not given to fit, so that new rows have none.")
            return None
        found = groups_of(self._column, X, groups, n)
        if found is None:
            raise ParameterError("the fit had groups=: pass the groups of the new rows too.")
        return found

    def _members(self, groups: Labels | None, n: int) -> Iterator[tuple[Flags, Flags]]:
        """For each group of new rows: which of them it has, and which rows of the fit."""
        if groups is None:
            yield np.ones(n, dtype=bool), np.ones(len(self.rows_), dtype=bool)
            return
        for label in np.unique(groups):
            yield groups == label, self.groups_ == label

    def _say_if_too_few(self, n: int, level: float, kind: str = "", names: Labels | None = None) -> None:
        """Warn where n rows cannot promise the level; `names` are those of the groups or classes."""
        if n >= least_rows(level):
            return
        who = "" if names is None else f"{kind} {', '.join(map(repr, names.tolist()))}: "
        warn(too_few(n, level, who))

    def predict(self, X: Table) -> Labels:
        """What the estimator says, without an interval or a set."""
        sample = self._new(X)
        return np.asarray(self.estimator_.predict(self._asked(sample, np.arange(len(sample)))))

    # ── what is promised ────────────────────────────────────────────────────────────────────────────────────

    def guarantee(self, level: float | None = None) -> Guarantee:
        """What intervals or sets of this level promise, and under which condition."""
        check_is_fitted(self, "scores_")
        rows, kind = self._counted()
        strict, notes = self._breaks()
        folds = len(getattr(self, "estimators_", self.rows_))
        return guarantee(
            self.method_,
            self._level(level),
            rows,
            folds,
            kind=kind,
            notes=notes,
            strict=strict,
            holds_full=self._holds_full(),
        )

    def _holds_full(self) -> bool:
        """Whether intervals hold those of full conformal prediction, and promise as much."""
        return False

    def _counted(self) -> tuple[int, str]:
        """How many rows the smallest group has, and over what the promise is taken."""
        if not hasattr(self, "groups_"):
            return len(self.rows_), OVER_ALL
        return int(np.unique(self.groups_, return_counts=True)[1].min()), "within each group"

    def _breaks(self) -> tuple[bool, tuple[str, ...]]:
        """Whether the promise is strict, and what is to be said of it."""
        return True, ()

    @property
    def guarantee_(self) -> Guarantee:
        """What intervals or sets of the level of the constructor promise."""
        return self.guarantee()

    # ── the outside ─────────────────────────────────────────────────────────────────────────────────────────

    def _examine(self, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
        from mercer.conformal.examine import examine

        examine(self, exam, X, y, sample_weight)

    def __sklearn_tags__(self) -> Setting:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.estimator_type = inner.estimator_type
        return tags
