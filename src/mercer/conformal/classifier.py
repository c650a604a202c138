"""Sets of labels around any classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from mercer.conformal import labels as sets
from mercer.conformal.sample import Sample
from mercer.conformal.wrapper import Given, Wrapper
from mercer.errors import InputError, ParameterError
from mercer.machines.shared.targets import check_labels
from mercer.typing import Array, Flags, Integers, Labels, Seed, Table, Targets, Weights

BY_CLASS = "class"


def _has(name: str) -> Any:
    def ask(self: ConformalClassifier) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), name)

    return ask


class ConformalClassifier(ClassifierMixin, Wrapper):
    """Sets of labels that hold the true one as often as they say, around any classifier.

        { label : #{ i : S_i ≥ S(x, label) } ≥ n + 1 - ⌈(n + 1)·level⌉ },   S_i = S(x_i, y_i) of rows left out

    Parameters
    ----------
    estimator : classifier
        Any classifier with probabilities or a decision function; it is cloned and fitted, unless `method` is
        "prefit".
    method : str
        "split" keeps rows out of the fit and calibrates by them. "cv+" leaves out each of some folds (cross-
        conformal), "jackknife+" each row. "prefit" takes the estimator as it is fitted, and calibrates by the
        rows given, which it must not have seen. "auto" is "cv+".
    level : float
        The share of sets that are to hold the true label.
    conformity : str
        "lac": 1 - p(label), the smallest sets on average. "aps": the probability of all labels that are at
        least as probable, for sets that grow where the model is unsure. "margin": how far the label is behind
        the best other one, for models without probabilities. "auto": "lac", or "margin" where there are none.
    by : "class", int, str or None
        Groups that keep the level each by itself (Mondrian prediction): the classes, or the values of a
        column; groups may also be given to `fit`.
    empty : bool
        Whether sets may be empty, where every label is too strange. False adds the least strange label, which
        can only raise the share of sets that hold the truth.
    folds, calibration_size, random_state
        As in `ConformalRegressor`. Each class has its share of every fold.

    Attributes
    ----------
    estimator_ : the model fitted to all rows; of "split" to those that were not kept out.
    classes_, conformity_, scores_, rows_, codes_ : the labels; the score, and its values for rows left out;
        which rows these are, and the places of their labels.
    estimators_, fold_ : the models of the folds, and the fold of each row.
    guarantee_ : what is promised, of which kind, and under which condition.

    >>> import numpy as np
    >>> from mercer import SVC, ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "right", "left")
    >>> model = ConformalClassifier(SVC("RBF(1.0)"), level=0.9).fit(X, y)
    >>> model.predict_set([[2.0, 0.0], [0.0, 0.0]])                # classes_ are left and right
    array([[False,  True],
           [ True,  True]])
    """

    methods: ClassVar[tuple[str, ...]] = ("auto", "split", "jackknife+", "cv+", "prefit")
    classes_: Labels
    conformity_: str
    codes_: Integers

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "auto",
        level: float = 0.9,
        conformity: str = "auto",
        by: int | str | None = None,
        empty: bool = True,
        folds: int = 10,
        calibration_size: float = 0.25,
        random_state: Seed = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.level = level
        self.conformity = conformity
        self.by = by
        self.empty = empty
        self.folds = folds
        self.calibration_size = calibration_size
        self.random_state = random_state

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def check_parameters(self) -> None:
        """Refuse parameters outside their domains."""
        super().check_parameters()
        if self.conformity not in sets.SCORES:
            known = ", ".join(sets.SCORES)
            raise ParameterError(f"conformity must be one of {known}; got {self.conformity!r}.")
        if not isinstance(self.empty, bool | np.bool_):
            raise ParameterError(f"empty must be True or False; got {self.empty!r}.")

    @property
    def _column(self) -> int | str | None:
        return None if self.by == BY_CLASS else self.by

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None, groups: object = None) -> Self:
        """Fit the estimator, and find how strange the true labels of rows are that it has not seen.

        `groups` has a label for each row: each group keeps the level by itself. Weights are those of the
        estimator; among scores every row of positive weight counts once.
        """
        self.check_parameters()
        if self.by == BY_CLASS and groups is not None:
            raise ParameterError("groups= and by='class' are two kinds of groups; choose one.")
        given = self._given(X, y, sample_weight, groups)
        self._forget()
        self.classes_ = np.unique(given.y[given.kept])
        self.method_ = "cv+" if self.method == "auto" else self.method
        if self.method_ in ("split", "prefit"):
            self._fit_split(given, self._score)
        else:
            folds = len(given.kept) if self.method_ == "jackknife+" else int(self.folds)
            self._fit_folds(given, folds, self._score)
        self.codes_ = np.searchsorted(self.classes_, given.y[self.rows_])
        self._finish(given)
        return self

    def _read_y(self, y: Targets, n: int) -> Labels:
        classes, codes = check_labels(y, n, type(self).__name__)
        found: Labels = classes[codes]
        return found

    def _strata(self, given: Given) -> Labels:
        return given.y[given.kept]

    def _fit_to(self, given: Given, index: Integers, model: Any = None) -> Any:
        found = np.unique(given.y[index])
        if len(found) < 2:
            raise InputError(
                f"only the class {found.tolist()} is left where rows are left out: another has too few "
                "(one class). Give it more rows."
            )
        return super()._fit_to(given, index, model)

    def _score(self, model: Any, rows: Any, y: Labels) -> Array:
        """The score of the true label of rows that the model has not seen."""
        self.conformity_ = sets.chosen_score(self.conformity, model)
        every = np.unique(np.concatenate([self.classes_, np.asarray(model.classes_)]))
        self.classes_ = every
        scores = sets.label_scores(model, rows, every, self.conformity_)
        return scores[np.arange(len(y)), np.searchsorted(every, y)]

    # ── sets ────────────────────────────────────────────────────────────────────────────────────────────────

    def predict_set(self, X: Table, level: float | None = None, *, groups: object = None) -> Flags:
        """Which labels are in the set of each new row: booleans, rows × classes, ordered as `classes_`."""
        sample = self._new(X)
        level = self._level(level)
        counts, sizes = self._counts(sample, X, groups)
        labels = self._groups_of_new(X, groups, len(sample))
        for n in np.unique(sizes):
            self._say_if_too_few(int(n), level, *self._names_of(sizes == n, labels))
        out = np.zeros(counts.shape, dtype=bool)
        for n in np.unique(sizes):
            mine = sizes == n
            out[mine] = sets.kept(counts[mine], int(n), level)
        if not self.empty:
            p = (counts + 1) / (sizes + 1)
            none = ~out.any(axis=1)
            out[none] = p[none] == p[none].max(axis=1, keepdims=True)
        return out

    def _names_of(self, mine: Flags, labels: Labels | None) -> tuple[str, Labels | None]:
        """The classes, or the groups, that some of rows × classes belong to."""
        if self.by == BY_CLASS:
            return "class", self.classes_[mine.any(axis=0)]
        return "group", None if labels is None else np.unique(labels[mine.any(axis=1)])

    def p_values(self, X: Table, *, groups: object = None) -> Array:
        """The share of rows, the new one with them, whose true label is as strange as each label here.

        Rows × classes; a set of level 1 - α has the labels whose share is above α.
        """
        counts, sizes = self._counts(self._new(X), X, groups)
        return (counts + 1) / (sizes + 1)

    def _counts(self, sample: Sample, X: Table, groups: object) -> tuple[Integers, Integers]:
        """How many rows are as strange as each label, and among how many; both rows × classes."""
        n = len(sample)
        labels = self._groups_of_new(X, groups, n)
        counts = np.zeros((n, len(self.classes_)), dtype=np.intp)
        sizes = np.zeros_like(counts)
        scores = self._new_scores(sample)
        for new, old in self._members(labels, n):
            for j in range(len(self.classes_)):
                mine = old & (self.codes_ == j) if self.by == BY_CLASS else old
                counts[new, j] = self._as_strange(scores[:, new, j], mine)
                sizes[new, j] = int(mine.sum())
        return counts, sizes

    def _new_scores(self, sample: Sample) -> Array:
        """Scores of all labels by every model that left rows out: models × new rows × classes."""
        every = np.arange(len(sample))
        if self.method_ in ("split", "prefit"):
            rows = self._asked(sample, every)
            return sets.label_scores(self.estimator_, rows, self.classes_, self.conformity_)[None]
        return np.array(
            [
                sets.label_scores(model, self._asked_of(sample, every, k), self.classes_, self.conformity_)
                for k, model in enumerate(self.estimators_)
            ]
        )

    def _as_strange(self, new: Array, mine: Flags) -> Integers:
        if self.method_ in ("split", "prefit"):
            return sets.as_strange(new[0], self.scores_[mine])
        return sets.as_strange_by_fold(new, self.scores_[mine], self.fold_[mine])

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Table) -> Array:
        """The probabilities of the estimator."""
        sample = self._new(X)
        return np.asarray(self.estimator_.predict_proba(self._asked(sample, np.arange(len(sample)))))

    @available_if(_has("decision_function"))
    def decision_function(self, X: Table) -> Array:
        """The decision function of the estimator."""
        sample = self._new(X)
        return np.asarray(self.estimator_.decision_function(self._asked(sample, np.arange(len(sample)))))

    # ── what is promised ────────────────────────────────────────────────────────────────────────────────────

    def _counted(self) -> tuple[int, str]:
        if self.by != BY_CLASS:
            return super()._counted()
        return int(np.bincount(self.codes_, minlength=len(self.classes_)).min()), "within each class"
