"""How good a model is on rows that it has not seen, and how that is known.

    Gaussian processes of numbers   closed-form leave-one-out: every row from all the others, without refits
    Gaussian processes of classes   five folds, each predicted by the others
    machines on landmarks           rows kept out of a first fit

The kernel's numbers were found from the same rows in the first two, so that these flatter a little; `how`
says it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from mercer import clock
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.progress import Talk
from mercer.recipe.given import Given
from mercer.recipe.ladder import Classifier, Regressor
from mercer.typing import Array, Integers, Labels

LEVEL = 0.95
FOLDS = 5
# Rows kept out: this share, and at most so many.
SHARE_KEPT_OUT = 0.1
MOST_KEPT_OUT = 2000
# With more rows a fit without those kept out is as good as one with them.
MOST_REFITTED = 20_000
TUNED_ON_THE_SAME = "The kernel's numbers were found from the same rows, which flatters a little."


@dataclass(frozen=True, eq=False)
class Estimate:
    """Measures of the error on rows that were not seen, how they were got, and what they were got from.

    `measures` of numbers: rmse, mae, r2 and coverage (the share inside the band of 95 %); of classes:
    accuracy, log_loss, and roc_auc of two. `nothing_learned` has what predicting the mean, or the most
    frequent class, would have reached. `rows` are the numbers of the rows judged, `truth` their targets,
    `predicted` what was said of them, `spread` the standard deviations or the probabilities.
    """

    how: str
    measures: dict[str, float]
    nothing_learned: dict[str, float]
    rows: Integers
    truth: Labels
    predicted: Labels
    spread: Array

    def __str__(self) -> str:
        parts = [f"{name} {value:.4g}" for name, value in self.measures.items()]
        base = [f"{name} {value:.4g}" for name, value in self.nothing_learned.items()]
        return f"{', '.join(parts)} ({self.how} Nothing learned: {', '.join(base)}.)"


def kept_out_rows(n: int, seed: int, labels: Labels | None = None) -> tuple[Integers, Integers]:
    """Rows to learn from and rows to judge by; with labels, of each class its share."""
    count = int(min(MOST_KEPT_OUT, max(1, round(SHARE_KEPT_OUT * n))))
    rng = np.random.default_rng(seed)
    if labels is None:
        order = rng.permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])
    judged = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        # of a class with a single row none is kept out
        judged.append(members[: min(len(members) - 1, max(1, round(count * len(members) / n)))])
    kept = np.sort(np.concatenate(judged))
    return np.setdiff1d(np.arange(n), kept), kept


def by_leaving_one_out(machine: GaussianProcessRegressor, y: Array) -> Estimate:
    """Every row of a fitted process given all the others."""
    mean, std = machine.loo(return_std=True)
    how = f"Leave-one-out in closed form over {len(y)} rows. {TUNED_ON_THE_SAME}"
    return of_numbers(how, np.arange(len(y)), y, mean, std)


def of_numbers(how: str, rows: Integers, truth: Array, mean: Array, std: Array) -> Estimate:
    """The measures of predicted numbers and their deviations."""
    errors = truth - mean
    inside = np.abs(errors) <= half_width(LEVEL) * std
    measures = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mae": float(np.mean(np.abs(errors))),
        "r2": 1.0 - float(np.mean(errors**2)) / max(float(np.var(truth)), 1e-300),
        "coverage": float(np.mean(inside)),
    }
    nothing = {"rmse": float(np.std(truth)), "mae": float(np.mean(np.abs(truth - np.median(truth))))}
    return Estimate(how, measures, nothing, rows, truth, mean, std)


def half_width(level: float) -> float:
    """The band of this level in standard deviations of a normal distribution."""
    return float(stats.norm.ppf(0.5 + level / 2))


def by_folds(machine: GaussianProcessClassifier, given: Given, y: Labels, seed: int, talk: Talk) -> Estimate:
    """Every row of a process of classes from the folds that it is not in."""
    # imported late: it is slow, and few need it
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(y, return_counts=True)
    folds = int(min(FOLDS, counts.min()))
    if folds < 2:
        return _too_few(y, classes)
    probabilities = np.zeros((len(y), len(classes)))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for number, (learn, judge) in enumerate(split.split(np.zeros(len(y)), y)):
        talk(f"error estimate, fold {number + 1} of {folds}")
        fold = clone(machine).fit(given.rows(learn), y[learn])
        probabilities[judge] = fold.predict_proba(given.rows(judge))
    how = f"Cross-validation in {folds} folds over {len(y)} rows. {TUNED_ON_THE_SAME}"
    return of_classes(how, np.arange(len(y)), y, classes, probabilities)


def _too_few(y: Labels, classes: Labels) -> Estimate:
    """A class of one row leaves nothing to judge by."""
    empty = np.zeros(0, dtype=np.intp)
    how = "There is no estimate: a class has a single row."
    return Estimate(how, {}, {}, empty, y[:0], y[:0], np.zeros((0, len(classes))))


def of_classes(how: str, rows: Integers, truth: Labels, classes: Labels, probabilities: Array) -> Estimate:
    """The measures of predicted probabilities."""
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    said = classes[np.argmax(probabilities, axis=1)]
    measures = {
        "accuracy": float(accuracy_score(truth, said)),
        "log_loss": float(log_loss(truth, probabilities, labels=classes)),
    }
    if len(classes) == 2 and len(np.unique(truth)) == 2:
        measures["roc_auc"] = float(roc_auc_score(truth, probabilities[:, 1]))
    _, counts = np.unique(truth, return_counts=True)
    share = counts / counts.sum()
    nothing = {"accuracy": float(share.max()), "log_loss": float(-(share * np.log(share)).sum())}
    return Estimate(how, measures, nothing, rows, truth, said, probabilities)


@dataclass(frozen=True)
class Judged:
    """A fitted machine with its estimate; `rows` of the table that it learned from, and mean and deviation
    by which its targets were standardised.
    """

    machine: Regressor | Classifier
    estimate: Estimate
    rows: int
    mean: float = 0.0
    scale: float = 1.0


def by_rows_kept_out(
    machine: Regressor | Classifier, given: Given, y: Labels, seed: int, talk: Talk
) -> Judged:
    """A machine fitted without some rows, judged by these; with few rows it is then fitted to all of them.

    With many rows the others lose nothing that could be measured, and the estimate is that of the very
    model. So it is where the seconds do not suffice for a second fit.
    """
    numbers = isinstance(machine, Regressor)
    learn, judge = kept_out_rows(len(y), seed, None if numbers else y)
    talk(f"a first fit without {len(judge)} rows, to judge it by them")
    began = clock.now()
    first = _fitted(machine, given.rows(learn), y[learn])
    estimate = _judged(first, given, y, judge, len(learn))
    took = clock.now() - began
    if len(y) > MOST_REFITTED or clock.short_of(1.2 * took):
        return replace(first, estimate=estimate)
    talk(f"the machine on all {len(y)} rows")
    whole = _fitted(machine, given.table, y)
    how = f"{estimate.how} The model itself was then fitted to all rows."
    return replace(whole, estimate=replace(estimate, how=how))


def _fitted(machine: Regressor | Classifier, rows: Any, y: Labels) -> Judged:
    nothing = Estimate("", {}, {}, np.zeros(0, dtype=np.intp), y[:0], y[:0], np.zeros(0))
    if isinstance(machine, Regressor):
        mean, scale = units_of(machine, y)
        return Judged(clone(machine).fit(rows, (y - mean) / scale), nothing, len(y), mean, scale)
    return Judged(clone(machine).fit(rows, y), nothing, len(y))


def _judged(found: Judged, given: Given, y: Labels, judge: Integers, learned: int) -> Estimate:
    how = f"{len(judge)} rows kept out of a fit on the other {learned}."
    machine = found.machine
    rows = given.rows(judge)
    if isinstance(machine, Regressor):
        said = found.mean + found.scale * np.asarray(machine.predict(rows))
        spread = conformal_spread(y[judge] - said)
        return of_numbers(how, judge, y[judge], said, np.full(len(judge), spread))
    return of_classes(how, judge, y[judge], np.asarray(machine.classes_), machine.predict_proba(rows))


def units_of(machine: Regressor, y: Array) -> tuple[float, float]:
    """Mean and deviation by which targets are standardised before the machine sees them.

    A Gaussian process does it itself.
    """
    if isinstance(machine, GaussianProcessRegressor):
        return 0.0, 1.0
    return float(np.mean(y)), float(np.std(y)) or 1.0


def conformal_spread(errors: Array, level: float = LEVEL) -> float:
    """The deviation whose normal band of this level holds that share of the errors, and one to spare.

    >>> errors = np.array([0.1, -0.2, 0.3, 0.4] * 10)
    >>> bool(np.mean(np.abs(errors) <= half_width(0.95) * conformal_spread(errors)) >= 0.95)
    True
    """
    n = len(errors)
    rank = int(min(np.ceil((n + 1) * level), n))
    return float(np.sort(np.abs(errors))[rank - 1] / half_width(level))


def least_probability(found: Estimate, classes: Labels, level: float) -> float:
    """The probability that the true class had at least, in this share of the rows not seen and one to spare.

    0, which every class has, where there are too few rows to say.
    """
    n = len(found.truth)
    rank = int(np.ceil((n + 1) * level))
    if rank > n:
        return 0.0
    of_true = found.spread[np.arange(n), np.searchsorted(classes, found.truth)]
    return float(np.sort(of_true)[::-1][rank - 1])
