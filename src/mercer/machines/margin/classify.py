"""What SVC and NuSVC share: classes, their duels on one Gram operator, votes, probabilities, label sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import clock
from mercer.errors import InputError, ParameterError, ShapeError, warn
from mercer.gram import GramOperator
from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.margin.calibrate import Calibration, calibrate, conformal_threshold, held_out
from mercer.machines.margin.problems import MarginMachine, Solved, by_row
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.targets import as_labels, check_labels, class_weights
from mercer.solve.anytime import Anytime
from mercer.solve.box import BoxProblem
from mercer.solve.solution import Note, NoteKind, Status, joined_certificate
from mercer.typing import Array, Flags, Integers, Labels, Seed, Table, Targets, Weights

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from mercer.theory.margins import Margins

ClassWeight: TypeAlias = Mapping[Any, float] | str | None
"""A factor for each class by its label, "balanced", or None where all count alike."""


def _has_probability(self: MarginClassifier) -> bool:
    if not self.probability:
        raise AttributeError(
            f"predict_proba is there when {type(self).__name__}(probability=True) was fitted; it costs 5 "
            "more solves on the same Gram matrix."
        )
    return True


class MarginClassifier(ClassifierMixin, MarginMachine):
    """A classifier on one Gram operator.

    Two classes give one problem; more give one for each pair ("ovo") or for each class ("ovr").
    """

    fit_intercept: bool
    multiclass: str
    class_weight: ClassWeight
    probability: bool
    random_state: Seed
    _order: Integers | None = None

    def _problem(self, rows: Integers, signs: Array, w: Array) -> BoxProblem:
        """One two-class problem on some rows."""
        raise NotImplementedError

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and labels y; a row of weight 2 counts twice, of weight 0 not at all."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        codes = self._check_labels(y, A.shape[0])
        w = self._weights(codes, check_weights(sample_weight, A.shape[0]))
        given = w if sample_weight is not None else np.ones(len(w))
        order = self._by_class(codes)
        if order is not None:
            A, codes, w, given = A[order], codes[order], w[order], given[order]
        self._order = order
        on, K = self._learn_from(A, given)
        problems = self._problems(codes, w)
        solved = self._solve_all(K, problems)
        self._meet_failure(K, problems, solved)
        self._keep(on, A, problems, solved, order=codes, K=K)
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_)).astype(np.int32)
        if self.probability:
            self.calibration_ = self._calibrate(K, codes, w)
        if order is not None:
            self._number_rows(order)
        del self._order
        return self

    def _row_number(self, i: int) -> int:
        return i if self._order is None else int(self._order[i])

    def _by_class(self, codes: Integers) -> Integers | None:
        """Rows sorted by class, so that the block of a pair of classes lies together in memory.

        None where all rows are in every problem, and where K is given.
        """
        given = isinstance(self.kernel, str) and self.kernel == PRECOMPUTED
        pairs = len(self.classes_) > 2 and self.multiclass == "ovo"
        return np.argsort(codes, kind="stable") if pairs and not given else None

    def _number_rows(self, order: Integers) -> None:
        """What was found on sorted rows, with the row numbers of X."""
        self.support_ = order[self.support_].astype(np.int32)
        self.certificates_ = [replace(c, worst_row=int(order[c.worst_row or 0])) for c in self.certificates_]
        self.certificate_ = joined_certificate(self.certificates_)
        if hasattr(self, "witness_"):
            self.witness_ = (order[self.witness_[0]], self.witness_[1])

    def _check_labels(self, y: Any, n: int) -> Integers:
        """The labels as 0, 1, 2, … in the order of `classes_`."""
        self.classes_, codes = check_labels(y, n, type(self).__name__)
        return codes

    def _weights(self, codes: Integers, w: Array) -> Array:
        """Sample weights times class weights; every class must keep some row."""
        self.class_weight_ = class_weights(self.class_weight, self.classes_, codes, w)
        w = w * self.class_weight_[codes]
        left = np.bincount(codes, w, minlength=len(self.classes_)) > 0
        if np.count_nonzero(left) < 2:
            raise InputError(
                "all rows with positive weights belong to the same class, and a classifier needs at least "
                "two. Give rows of another class a positive weight."
            )
        return w

    @property
    def _duels(self) -> list[tuple[int, int | None]]:
        """(positive, negative) class of each problem; None for all the rest."""
        k = len(self.classes_)
        if k == 2:
            return [(1, 0)]
        if self.multiclass == "ovr":
            return [(c, None) for c in range(k)]
        # The first of a pair is positive, as in scikit-learn.
        return list(combinations(range(k), 2))

    def _problems(self, codes: Integers, w: Array) -> list[BoxProblem]:
        live = (w > 0).nonzero()[0]
        # Two classes are all rows; of more, a pair is the rows of its classes.
        members: list[Integers] = []
        if len(self.classes_) > 2:
            members = [live[codes[live] == c] for c in range(len(self.classes_))]
        out = []
        for plus, minus in self._duels:
            rows = live
            if minus is not None and members:
                rows = np.sort(np.concatenate([members[plus], members[minus]]))
            out.append(self._problem(rows, np.where(codes[rows] == plus, 1.0, -1.0), w[rows]))
        return out

    def _many_problems(self) -> bool:
        return len(self.classes_) > 2 or self._reads_all()

    def _reads_all(self) -> bool:
        # The folds that calibrate probabilities solve every problem again and multiply with all of K;
        # projected gradients multiply with it at every step.
        steps = self.solver == "projected-gradient" and len(self.classes_) > 2
        return bool(self.probability) or steps

    def _meet_failure(self, K: GramOperator, problems: list[BoxProblem], solved: list[Solved]) -> None:
        """What to do when a problem has no solution; the hard margin overrides this."""

    def _targets_again(self, y: Targets, w: Array) -> tuple[Integers, Array]:
        y = as_labels(y, len(w), type(self).__name__)
        codes = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[codes], y):
            raise InputError(f"y has labels other than those of fit: {self.classes_.tolist()}.")
        return codes, w * self.class_weight_[codes]

    # ── decide ──────────────────────────────────────────────────────────────────────────────────────────────

    def decision_function(self, X: Table) -> Array:
        """Two classes: n values, positive for `classes_[1]`. More: n × classes, the largest one wins."""
        return self._scores(self._values(X))

    def _scores(self, values: Array) -> Array:
        k = len(self.classes_)
        if k == 2:
            return values[:, 0]
        if self.multiclass == "ovr":
            return values
        return votes_and_confidence(values, k)

    def predict(self, X: Table) -> Labels:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int)
        if scores.ndim == 2:
            winners = scores.argmax(axis=1)
        labels: Labels = self.classes_[winners]
        return labels

    # ── probabilities and sets ──────────────────────────────────────────────────────────────────────────────

    def _held_out_values(
        self, K: GramOperator, codes: Integers, w: Array, out: Integers
    ) -> tuple[Status, Array]:
        """The scores of some rows by a machine that has not seen them, and how that machine ended."""
        kept = w.copy()
        kept[out] = 0.0
        problems = self._problems(codes, kept)
        solved = self._solve_all(K, problems, warm=False)
        ended = Status.worst(s.certificate.status for s in solved)
        if ended.on_request:
            return ended, np.empty(0)
        scale = [self._scale(q, s.m) for q, s in zip(problems, solved, strict=True)]
        beta = by_row(problems, [q.signs * s.alpha for q, s in zip(problems, solved, strict=True)], len(w))
        f = np.asarray(K @ np.ascontiguousarray(beta.T))[out]
        values = (f + [self._bias(s.m) for s in solved]) / scale
        return ended, self._scores(values).reshape(len(out), -1)

    def _calibrate(self, K: GramOperator, codes: Integers, w: Array) -> Calibration:
        """Fit the map from decision values to probabilities on values of rows that were held out.

        Where seconds or Ctrl-C end it, the folds that were solved count, and the certificate says how many.
        """
        scores = np.empty((len(codes), 1 if len(self.classes_) == 2 else len(self.classes_)))
        # Rows of weight 0 are not there, so they cannot be held out.
        live = np.flatnonzero(w > 0)
        folds = list(held_out(codes[live], self.classes_, self.random_state))
        known: list[Integers] = []
        with Anytime(best=known) as run:
            for fold in folds:
                if self.certificate_.status.on_request or clock.late():
                    break
                out = live[fold]
                cut, values = self._held_out_values(K, codes, w, out)
                if cut.on_request or (cut == Status.LIMIT and clock.late()):
                    self.certificate_ = replace(self.certificate_, status=cut)
                    break
                scores[out] = values
                known.append(out)
        if run.interrupted:
            self.certificate_ = replace(self.certificate_, status=Status.INTERRUPTED)
        used = np.sort(np.concatenate(known)) if known else live[:0]
        if len(known) < len(folds):
            self._say_uncalibrated(len(known), len(folds))
        return calibrate(scores[used], codes[used], w[used])

    def cut_calibration(self) -> bool:
        return self.certificate_.says(NoteKind.FEW_FOLDS)

    def _say_uncalibrated(self, known: int, folds: int) -> None:
        before = self.certificate_
        status: Status = Status.LIMIT if before.status == Status.CONVERGED else before.status
        told = Note(f"probabilities are calibrated on {known} of {folds} folds only", NoteKind.FEW_FOLDS)
        self.certificate_ = replace(before, status=status, notes=(*before.notes, told))
        if before.status == Status.CONVERGED:
            warn(
                f"{told}: the seconds were used up. Raise max_seconds, or use probability=False.",
                ConvergenceWarning,
            )

    @available_if(_has_probability)
    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes, calibrated on held-out rows; the largest is always that of `predict`."""
        check_is_fitted(self, "calibration_")
        return self.calibration_(self.decision_function(X))

    @available_if(_has_probability)
    def predict_log_proba(self, X: Table) -> Array:
        return np.asarray(np.log(self.predict_proba(X)))

    def conformalize(self, X: Table, y: Targets) -> Self:
        """Remember how well the model does on rows it has not seen, for `predict_set`."""
        scores = self._two_sided(self.decision_function(X))
        codes, _ = self._targets_again(y, np.ones(len(scores)))
        self.conformal_scores_ = np.sort(strangeness(scores)[np.arange(len(codes)), codes])
        return self

    def predict_set(self, X: Table, coverage: float = 0.9) -> Flags:
        """Sets of labels that hold the true one with probability at least `coverage`: booleans, n × classes.

        Split conformal prediction: `conformalize(X, y)` first, with rows not used in `fit` that come from
        the same source. The promise is on average over such data, whatever the model; sets are larger where
        it is unsure.
        """
        if not hasattr(self, "conformal_scores_"):
            check_is_fitted(self, "dual_coef_")
            raise ParameterError(
                "predict_set needs rows that fit has not seen: call conformalize(X, y) first."
            )
        limit = conformal_threshold(self.conformal_scores_, coverage)
        return strangeness(self._two_sided(self.decision_function(X))) <= limit

    @staticmethod
    def _two_sided(scores: Array) -> Array:
        return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores

    def _function_facts(self) -> dict[str, object]:
        return {"classes": self.classes_, "duels": tuple(self._duels), "canonical": True}

    def bounded_support(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
        free = []
        bound = []
        for coef, full in zip(self.dual_coef_, self.at_bound_, strict=True):
            free.append(self.support_[(coef != 0) & ~full])
            bound.append(self.support_[(coef != 0) & full])
        return tuple(free), tuple(bound)

    def margins(self, X: Table, y: Targets) -> Margins:
        """Signed distances of labelled rows from the boundary; see `mercer.theory.margins`."""
        from mercer.theory.margins import margins

        return margins(self, X, y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def votes_and_confidence(values: Array, k: int) -> Array:
    """Votes of the duels, plus a share below one third of a vote for how clear they were."""
    votes = np.zeros((len(values), k))
    sure = np.zeros((len(values), k))
    for column, (a, b) in enumerate(combinations(range(k), 2)):
        v = values[:, column]
        sure[:, a] += v
        sure[:, b] -= v
        votes[v >= 0, a] += 1
        votes[v < 0, b] += 1
    share: Array = sure / (3 * (np.abs(sure) + 1))
    return votes + share


def strangeness(scores: Array) -> Array:
    """How far each label is behind the best other one: below 0 for the winner alone."""
    if scores.ndim != 2:
        raise ShapeError("scores must be n × classes.")
    ranked = np.sort(scores, axis=1)
    best = ranked[:, -1:]
    second = ranked[:, -2:-1]
    return np.where(scores == best, second, best) - scores
