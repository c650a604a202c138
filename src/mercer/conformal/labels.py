"""How strange each label is to a model, and the sets of labels that are not too strange.

lac      1 - p(label)                                    the smallest sets on average
aps      the probability of all labels that are at least as probable, itself included: sets that adapt
margin   how far the label is behind the best other one, for models without probabilities
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import ParameterError
from mercer.machines.margin.classify import strangeness
from mercer.quantiles import rank
from mercer.typing import Array, Flags, Integers, Labels

SCORES = ("auto", "lac", "aps", "margin")


def chosen_score(asked: str, estimator: Any) -> str:
    """The score, for models with probabilities or without."""
    probable = hasattr(estimator, "predict_proba")
    decided = hasattr(estimator, "decision_function")
    who = type(estimator).__name__
    if asked == "auto":
        if not (probable or decided):
            raise ParameterError(
                f"{who} has neither predict_proba nor decision_function: labels have no scores."
            )
        return "lac" if probable else "margin"
    if asked in ("lac", "aps") and not probable:
        raise ParameterError(
            f"conformity={asked!r} needs probabilities, and {who} has no predict_proba. Use "
            "conformity='margin', or a model with probabilities."
        )
    if asked == "margin" and not decided:
        raise ParameterError(
            f"conformity='margin' needs decision_function, which {who} has not. Use 'lac' or 'aps'."
        )
    return asked


def label_scores(estimator: Any, rows: Any, classes: Labels, score: str) -> Array:
    """The score of every label for every row, rows × classes; a class that the model never saw is worst."""
    if score == "margin":
        decided = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        if decided.ndim == 1:
            decided = np.column_stack([-decided, decided])
        values, absent = strangeness(decided), np.inf
    else:
        p = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
        values, absent = (1.0 - p if score == "lac" else cumulated(p)), 1.0
    out = np.full((len(values), len(classes)), absent)
    out[:, np.searchsorted(classes, estimator.classes_)] = values
    return out


def cumulated(p: Array) -> Array:
    """For each label the probability of all that are at least as probable; equal ones count together.

    >>> cumulated(np.array([[0.25, 0.5, 0.25]]))
    array([[1. , 0.5, 1. ]])
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    total = np.cumsum(ranked, axis=1)
    # of equal ones each has the sum of all of them
    for j in range(p.shape[1] - 2, -1, -1):
        same = ranked[:, j] == ranked[:, j + 1]
        total[:, j] = np.where(same, total[:, j + 1], total[:, j])
    out = np.empty_like(p)
    np.put_along_axis(out, order, total, axis=1)
    return out


def as_strange(new: Array, scores: Array) -> Integers:
    """How many scores of rows are at least the score of each label: new rows × classes, one sort for all."""
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), new, side="left"))


def as_strange_by_fold(new: Array, scores: Array, fold: Integers) -> Integers:
    """The same where each row is compared by the model that left it out: `new` is folds × rows × classes."""
    counts = [as_strange(new[k], scores[fold == k]) for k in range(len(new))]
    return np.asarray(sum(counts))


def kept(counts: Integers, n: int, level: float) -> Flags:
    """Labels that enough of n rows are as strange as."""
    return counts >= n + 1 - rank(n, level)
