"""Ridge regression and classification with a kernel that learns its features (recursive feature machines).

A function is fitted, its gradients at all rows say along which directions it changes, and the kernel measures
distances by them in the next round. Bandwidth, penalty, the form of the metric and how many rounds are chosen
by leave-one-out in closed form, so that no rows are held back.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from mercer.errors import InputError
from mercer.machines.margin.calibrate import Calibration, calibrate
from mercer.machines.ridge.feature_base import FeatureMachine
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.shared.base import check_weights, duels_of
from mercer.machines.shared.targets import check_labels, check_target_block
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights


class FeatureMachineRegressor(MultiOutputMixin, RegressorMixin, FeatureMachine):
    """Kernel ridge regression whose kernel learns along which directions the function changes.

        f = Σ_j c_j k(‖(x - x_j) M^½‖ / ℓ) + b,      M ← (average of ∇f(x_i) ∇f(x_i)ᵀ)^p,      and again

    The columns are standardised first, so that units do not matter; the two values of a column that has no
    more lie 2 apart. ℓ and α are those of the least leave-one-out error, in closed form. That error flatters,
    since M has seen the row: by how much is found on folds of the rows, and the form of M, p and the number
    of rounds are those of the least error that is then to be expected. `honest_error()` does not flatter.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    kernel_ : the learned kernel, an expression of the language. metric_ : M of the standardised columns.
    feature_importances_ : its diagonal as shares. directions(names) : its directions in words.
    path_ : every round: iteration, form, exponent, bandwidth, alpha, leave-one-out error, what is to be
        expected of new rows, and the best.
    alpha_, search_rows_ : the penalty, and the rows of the search.
    dual_coef_, intercept_, solver_, certificate_, loo_predictions_, loo_error_, dof_ : as of `KernelRidge`.

    >>> from mercer import FeatureMachineRegressor
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> model = FeatureMachineRegressor("RBF()").fit(X, np.sin(2 * (X[:, 0] - X[:, 1])))
    >>> print(model.directions(list("abcde"), 1)[0])
    100.0 %: 0.77 b - 0.64 a
    """

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and numbers y, n or n × targets; a row of weight 0 counts not at all."""
        self._check_parameters()
        self._check_kernel()
        A = self.check_rows(X, reset=True)
        Y, self._single = check_target_block(y, A.shape[0], type(self).__name__)
        self._learn_from(A, Y, check_weights(sample_weight, A.shape[0]))
        return self


class FeatureMachineClassifier(ClassifierMixin, FeatureMachine):
    """Least-squares classification whose kernel learns along which directions the classes change.

    Two classes are the codes ±1 of one function; more have a function each, +1 for the class and -1 for the
    rest, which share one metric, ℓ and α. All is found as in `FeatureMachineRegressor`, by leave-one-out of
    the codes. Probabilities are those of greatest likelihood for the leave-one-out decision values of the
    search.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    classes_ : the labels. calibration_ : from decision values to probabilities.
    The others are those of `FeatureMachineRegressor`.

    >>> from mercer import FeatureMachineClassifier
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> y = np.where(X[:, 0] > X[:, 1], "more", "less")
    >>> model = FeatureMachineClassifier("RBF()").fit(X, y)
    >>> model.predict([[1.0, -1.0, 0.0, 0.0, 0.0]]), model.predict_proba(X).shape
    (array(['more'], dtype='<U4'), (80, 2))
    """

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from rows X and labels y; a row of weight 0 counts not at all."""
        self._check_parameters()
        self._check_kernel()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        self.classes_, codes = check_labels(y, A.shape[0], type(self).__name__)
        self._single = len(self.classes_) == 2
        scores = self._learn_from(A, codes_of(codes, len(self.classes_)), w)
        self.calibration_: Calibration = calibrate(scores, codes[self.search_rows_], w[self.search_rows_])
        return self

    def decision_function(self, X: Table) -> Array:
        """Two classes: n values, positive for `classes_[1]`. More: n × classes, the largest one wins."""
        return RidgeMachine.predict(self, X)

    def predict(self, X: Table) -> Labels:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Labels = self.classes_[winners]
        return labels

    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes; the likeliest class is the one predicted."""
        self.require_fit("calibration_")
        return self.calibration_(self.decision_function(X))

    def _read_targets(self, y: Targets, n: int) -> Array:
        classes, codes = check_labels(y, n, type(self).__name__)
        if not np.array_equal(classes, self.classes_):
            raise InputError(f"y has the classes {classes}, and the model was fitted on {self.classes_}.")
        return codes_of(codes, len(classes))

    def _function_facts(self) -> dict[str, Any]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_)}


def codes_of(codes: Integers, classes: int) -> Array:
    """±1: one column for two classes, one for each of more."""
    if classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
