"""The twins of `sklearn.svm`: `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM`."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Self, TypeAlias, Unpack

import numpy as np
import sklearn.svm as peer
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer.errors import warn
from mercer.machines.margin.classify import MarginClassifier, votes_and_confidence
from mercer.machines.margin.problems import MarginMachine
from mercer.machines.shared.targets import plain_labels
from mercer.sklearn.margin import (
    Common,
    MarginTwin,
    Prepared,
    QuietNuSVC,
    QuietNuSVR,
    QuietOneClassSVM,
    QuietSVC,
    QuietSVR,
    required,
)
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Labels, Seed, Table, Targets, Weights

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]

ClassWeight: TypeAlias = dict[Any, float] | str | None


# ── classifiers ─────────────────────────────────────────────────────────────────────────────────────────────


def _check_proba(twin: _Classifier) -> bool:
    if twin.probability == "deprecated" or not twin.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class _Classifier(ClassifierMixin, MarginTwin):
    probability: bool | str = "deprecated"
    class_weight: ClassWeight = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    random_state: Seed = None
    machine_: MarginClassifier = field(init=False)

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit the SVM model according to the given training data."""
        return self._fit(X, required(self, y), sample_weight)

    def _wants_probability(self) -> bool:
        if self.probability == "deprecated":
            return False
        name = type(self).__name__
        warn(
            "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. "
            f"Use `CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
            FutureWarning,
        )
        return bool(self.probability)

    def _check_targets(self, y: Targets) -> Integers:
        labels: Labels
        if plain_labels(y):
            labels = np.asarray(y)
        else:
            labels = column_or_1d(y, warn=True)
            check_classification_targets(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.class_weight is None:
            self.class_weight_: Array = np.ones(len(self.classes_))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        return codes

    def _check_weights(
        self, sample_weight: Weights, y: Labels, n: int, shape: tuple[int, ...]
    ) -> Array | None:
        w = super()._check_weights(sample_weight, y, n, shape)
        if w is not None:
            alive = np.bincount(y, w, minlength=len(self.classes_)) > 0
            if alive.sum() < 2:
                raise ValueError(self._one_class_left)
            if isinstance(self.class_weight, str):
                # "balanced" counts rows by weight: weight 2 is a row twice
                mass = np.bincount(y, w, minlength=len(alive))
                self.class_weight_ = np.where(alive, w.sum() / (len(alive) * np.where(alive, mass, 1.0)), 0.0)
        return w

    _one_class_left = "Invalid input - all samples with positive weights belong to the same class"

    def _by_code(self) -> dict[int, float]:
        return dict(enumerate(self.class_weight_.tolist()))

    def _dual_layout(self, machine: MarginMachine) -> Array:
        """LIBSVM's: a support vector of class c has one coefficient for each of the other classes."""
        k = len(self.classes_)
        duals: Array = machine.dual_coef_
        if k == 2:
            return duals
        owner = np.repeat(np.arange(k), machine.n_support_)
        out = np.zeros((k - 1, len(owner)))
        for row, (i, j) in zip(duals, combinations(range(k), 2), strict=True):
            out[j - 1, owner == i] = row[owner == i]
            out[i, owner == j] = row[owner == j]
        return out

    def _take_iterations(self, machine: MarginMachine) -> None:
        counts = [max(int(c.iterations or 0), 1) for c in machine.certificates_]
        self.n_iter_ = np.array(counts, dtype=np.int32)

    def decision_function(self, X: Table) -> Array:
        """Evaluate the decision function for the samples in X."""
        values = self._raw(X)
        k = len(self.classes_)
        if k == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return votes_and_confidence(values, k)

    def predict(self, X: Table) -> Labels:
        """Perform classification on samples in X."""
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        values = self._raw(X)
        k = len(self.classes_)
        winner: Integers
        if k == 2:
            winner = (values[:, 0] > 0).astype(np.intp)
        elif self.break_ties:
            winner = votes_and_confidence(values, k).argmax(axis=1)
        else:
            votes = np.zeros((len(values), k), dtype=int)
            for column, (i, j) in enumerate(combinations(range(k), 2)):
                votes[np.arange(len(values)), np.where(values[:, column] > 0, i, j)] += 1
            winner = votes.argmax(axis=1)
        predicted: Labels = self.classes_[winner]
        return predicted

    @available_if(_check_proba)
    def predict_proba(self, X: Table) -> Array:
        """Probabilities calibrated on held-out rows."""
        if not hasattr(self.machine_, "calibration_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        probabilities: Array = self.machine_.calibration_(self.machine_._scores(self._raw(X)))
        return probabilities

    @available_if(_check_proba)
    def predict_log_proba(self, X: Table) -> Array:
        """The logarithm of `predict_proba`."""
        probabilities: Array = self.predict_proba(X)
        return np.log(probabilities)


@dataclass(kw_only=True, eq=False, repr=False)
class SVC(_Classifier):
    """C-support vector classification with the signature of `sklearn.svm.SVC`."""

    _parameter_constraints = peer.SVC._parameter_constraints

    C: float = 1.0

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        return QuietSVC(
            C=self.C,
            class_weight=self._by_code(),
            probability=self._wants_probability(),
            random_state=self.random_state,
            **common,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(_Classifier):
    """ν-support vector classification with the signature of `sklearn.svm.NuSVC`."""

    _parameter_constraints = peer.NuSVC._parameter_constraints
    _one_class_left = "specified nu is infeasible"

    nu: float = 0.5

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        return QuietNuSVC(
            nu=self.nu,
            class_weight=self._by_code(),
            probability=self._wants_probability(),
            random_state=self.random_state,
            **common,
        )


# ── regression and novelty ──────────────────────────────────────────────────────────────────────────────────


class _Regressor(RegressorMixin, MarginTwin):
    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit the SVM model according to the given training data."""
        return self._fit(X, required(self, y), sample_weight)

    def predict(self, X: Table) -> Array:
        """Perform regression on samples in X."""
        return self._raw(X)[:, 0]


@dataclass(kw_only=True, eq=False, repr=False)
class SVR(_Regressor):
    """ε-support vector regression with the signature of `sklearn.svm.SVR`."""

    _parameter_constraints = peer.SVR._parameter_constraints

    C: float = 1.0
    epsilon: float = 0.1

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        return QuietSVR(C=min(self.C, 1e10), epsilon=self.epsilon, **common)


@dataclass(kw_only=True, eq=False, repr=False)
class NuSVR(_Regressor):
    """ν-support vector regression with the signature of `sklearn.svm.NuSVR`."""

    _parameter_constraints = peer.NuSVR._parameter_constraints

    nu: float = 0.5
    C: float = 1.0

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        return QuietNuSVR(C=min(self.C, 1e10), nu=self.nu, **common)


@dataclass(kw_only=True, eq=False, repr=False)
class OneClassSVM(OutlierMixin, MarginTwin):
    """Novelty detection with the signature of `sklearn.svm.OneClassSVM`."""

    _parameter_constraints = peer.OneClassSVM._parameter_constraints

    nu: float = 0.5

    def _machine(self, **common: Unpack[Common]) -> MarginMachine:
        return QuietOneClassSVM(nu=self.nu, **common)

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Detect the soft boundary of the set of samples X; y is ignored."""
        return self._fit(X, None, sample_weight)

    def _prepare(self, X: Table, y: Targets | None, sample_weight: Weights) -> Prepared:
        return super()._prepare(X, None, sample_weight)

    def _take(self, machine: MarginMachine, X: Matrix, n: int) -> None:
        super()._take(machine, X, n)
        self.offset_ = -self.intercept_

    def decision_function(self, X: Table) -> Array:
        """Signed distance to the separating hyperplane, positive for an inlier."""
        return self._raw(X)[:, 0]

    def score_samples(self, X: Table) -> Array:
        """Raw scoring function of the samples."""
        scores: Array = self.decision_function(X) + self.offset_
        return scores

    def predict(self, X: Table) -> Integers:
        """+1 for inliers, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
