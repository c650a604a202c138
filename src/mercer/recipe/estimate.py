"""How good a model is on rows that it has not seen, and how that is known.

    Gaussian processes of numbers   closed-form leave-one-out: every row from all the others, without refits;
                                    with landmarks, the rows that are none
    Gaussian processes of classes   five folds, each predicted by the others
    machines on landmarks           rows kept out of a first fit

The kernel's numbers were found from the same rows in the first two, so that these flatter a little; `how`
says it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import clock, quantiles
from mercer.conformal.closed import what_breaks
from mercer.conformal.guarantee import OVER_ALL, TUNED, Guarantee, guarantee
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.progress import Talk
from mercer.recipe.given import Given
from mercer.recipe.ladder import Classifier, Regressor
from mercer.scales import IDENTITY, Scale, half_width
from mercer.typing import Array, Integers, Labels

LEVEL = 0.95
FOLDS = 5
# Rows kept out: this share, and at most so many.
SHARE_KEPT_OUT = 0.1
MOST_KEPT_OUT = 2000
# Fewer rows that are no landmarks say too little.
LEAST_JUDGED = 30
# With more rows a fit without those kept out is as good as one with them.
MOST_REFITTED = 20_000
# Rows of the trial that tells how many the seconds are enough for: a tenth of them, from so many to so many.
LEAST_TRIED = 500
TRIAL_ROWS = 10_000
# Of the seconds left, what the rows may be hoped to take.
SHARE_FOR_ROWS = 0.7
# Of the seconds of a trial, what is at least for its rows, and not the same for any number of them.
LEAST_OF_ROWS = 1 / 3
CHOSEN_ON_THE_SAME = "The kernel was chosen among several by the same rows, which flatters a little."
HELD_FIXED = (
    "The kernel and its numbers were found from the same rows and are held fixed where a row is left out: "
    "strictly the promise is one for a kernel that was given. ConformalRegressor around TableRegressor with "
    "method='cv+' finds them again in each fold."
)
TUNED_ON_THE_SAME = "The kernel's numbers were found from the same rows, which flatters a little."


@dataclass(frozen=True, eq=False)
class Predicted:
    """Numbers that are predicted as normal on a scale, with mean `centre` and deviation `width` there.

    On y as it is, these are its own mean and deviation; on the logarithm, y is log-normal.

    >>> said = Predicted(Scale(0.0), np.array([0.0]), np.array([1.0]))
    >>> said.mean.round(4), said.interval(0.5)[1].round(4)
    (array([1.6487]), array([1.963]))
    """

    scale: Scale
    centre: Array
    width: Array

    @property
    def mean(self) -> Array:
        """The mean of y, which has the smallest expected square of the error."""
        return self.scale.mean(self.centre, self.width)

    @property
    def std(self) -> Array:
        """The standard deviation of y."""
        return self.scale.std(self.centre, self.width)

    def interval(self, level: float) -> tuple[Array, Array]:
        """The ends between which y is with this probability, and beyond each as often."""
        reach = half_width(level) * self.width
        return self.scale.inverse(self.centre - reach), self.scale.inverse(self.centre + reach)

    def standardised(self, truth: Array) -> Array:
        """Errors in deviations, on the scale; -∞ of numbers that have no place on it."""
        held = self.scale.holds(truth)
        errors = np.full(len(truth), -np.inf)
        width = np.maximum(self.width, 1e-300)
        errors[held] = (self.scale.forward(truth[held]) - self.centre[held]) / width[held]
        return errors


@dataclass(frozen=True, eq=False)
class Estimate:
    """Measures of the error on rows that were not seen, how they were got, and what they were got from.

    `measures` of numbers: rmse, mae, r2 and coverage (the share inside the band of 95 %); of classes:
    accuracy, log_loss, and roc_auc of two. `nothing_learned` has what predicting the mean, or the most
    frequent class, would have reached. `rows` are the numbers of the rows judged, `truth` their targets,
    `predicted` what was said of them, `spread` the standard deviations or the probabilities. `said` has the
    normal distributions on another scale than y as it is, where the target has one. The model was `refitted`
    to all rows where what was judged had seen some of them.
    """

    how: str
    measures: dict[str, float]
    nothing_learned: dict[str, float]
    rows: Integers
    truth: Labels
    predicted: Labels
    spread: Array
    said: Predicted | None = None
    refitted: bool = False

    @property
    def numbers(self) -> Predicted:
        """What was said of numbers, on the scale of the target."""
        if self.said is None:
            return Predicted(IDENTITY, self.predicted, self.spread)
        return self.said

    def __str__(self) -> str:
        if not self.measures:
            return f"unknown. {self.how}"
        parts = [f"{name} {readable(value)}" for name, value in self.measures.items()]
        base = [f"{name} {readable(value)}" for name, value in self.nothing_learned.items()]
        return f"{', '.join(parts)} ({self.how} Nothing learned: {', '.join(base)}.)"


def readable(value: float) -> str:
    """A number with four digits, and without an exponent where people write none.

    >>> readable(56152.3), readable(0.76321), readable(2.5e12)
    ('56152', '0.7632', '2.5e+12')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


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


def by_leaving_one_out(machine: GaussianProcessRegressor, y: Array, scale: Scale) -> Estimate:
    """Every row of a process, fitted to y on a scale, given all the others."""
    mean, std = machine.loo(return_std=True)
    rows = not_landmarks(machine, len(y))
    which = f"{len(y)} rows"
    if len(rows) < len(y):
        which = f"the {len(rows)} rows of {len(y)} that are no landmarks"
    how = f"Leave-one-out in closed form over {which}. {TUNED_ON_THE_SAME}"
    return of_numbers(how, rows, y[rows], Predicted(scale, mean[rows], std[rows]))


def not_landmarks(machine: GaussianProcessRegressor, n: int) -> Integers:
    """The rows of a fit that stand for new ones: all of them, or those that are no landmarks.

    A landmark whose target is left out is a landmark still: what the rows near it leave unexplained is put
    down to it, with more certainty than a new row would have. Where nearly all rows are landmarks the
    features are those of the kernel itself, and all rows count.
    """
    every = np.arange(n)
    index = None
    if isinstance(machine.approximation, Nystroem):
        index = machine.approximation_.landmark_indices_
    if index is None or n - len(index) < LEAST_JUDGED:
        return every
    return np.setdiff1d(every, index)


def of_numbers(how: str, rows: Integers, truth: Array, said: Predicted) -> Estimate:
    """The measures of predicted numbers, all of y itself."""
    mean = said.mean
    errors = truth - mean
    low, high = said.interval(LEVEL)
    inside = (low <= truth) & (truth <= high)
    measures = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mae": float(np.mean(np.abs(errors))),
        "r2": 1.0 - float(np.mean(errors**2)) / max(float(np.var(truth)), 1e-300),
        "coverage": float(np.mean(inside)),
    }
    nothing = {"rmse": float(np.std(truth)), "mae": float(np.mean(np.abs(truth - np.median(truth))))}
    kept = None if said.scale.is_identity else said
    return Estimate(how, measures, nothing, rows, truth, mean, said.std, kept)


def by_folds(machine: GaussianProcessClassifier, given: Given, y: Labels, seed: int, talk: Talk) -> Estimate:
    """Every row of a process of classes from the folds that it is not in, as many folds as there is time for.

    None of them is cut short by the seconds: a fit that they end says nothing of one that they do not.
    """
    # imported late: it is slow, and few need it
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(y, return_counts=True)
    folds = int(min(FOLDS, counts.min()))
    if folds < 2:
        return _too_few(y, classes)
    probabilities = np.zeros((len(y), len(classes)))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    judged: list[Integers] = []
    longest = 0.0
    for number, (learn, judge) in enumerate(split.split(np.zeros(len(y)), y)):
        if judged and clock.short_of(1.2 * longest):
            break
        talk(f"error estimate, fold {number + 1} of {folds}")
        began = clock.now()
        with clock.ending(math.inf):
            fold = clone(machine).fit(given.rows(learn), y[learn])
            probabilities[judge] = fold.predict_proba(given.rows(judge))
        longest = max(longest, clock.now() - began)
        judged.append(judge)
    rows = np.sort(np.concatenate(judged))
    how = f"Cross-validation in {folds} folds over {len(y)} rows."
    if len(judged) < folds:
        how = f"{len(rows)} rows, {len(judged)} of {folds} folds: the seconds were not enough for more."
    return of_classes(f"{how} {TUNED_ON_THE_SAME}", rows, y[rows], classes, probabilities[rows])


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
class Fitted:
    """A fitted machine, to how many rows, and mean and deviation by which its targets were standardised."""

    machine: Regressor | Classifier
    count: int
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def to(cls, machine: Regressor | Classifier, rows: Any, y: Labels) -> Fitted:
        """A machine of the same kind, fitted to these rows."""
        if isinstance(machine, Regressor):
            mean, scale = units_of(machine, y)
            return cls(clone(machine).fit(rows, (y - mean) / scale), len(y), mean, scale)
        return cls(clone(machine).fit(rows, y), len(y))

    def predict(self, rows: Any) -> Array:
        """What a machine of numbers says, in the units of its targets."""
        return self.mean + self.scale * np.asarray(self.machine.predict(rows))


def by_rows_kept_out(
    machine: Regressor | Classifier,
    given: Given,
    y: Labels,
    seed: int,
    talk: Talk,
    scale: Scale = IDENTITY,
) -> tuple[Fitted, Estimate]:
    """A machine fitted without some rows, judged by these; with few rows it is then fitted to all of them.

    With many rows the others lose nothing that could be measured, and the estimate is that of the very
    model. So it is where the seconds do not suffice for a second fit. Where there are seconds to keep, some
    rows are tried first: they tell how many the seconds are enough for, and are there to end with. Numbers
    are learned on their scale.
    """
    numbers = isinstance(machine, Regressor)
    learn, judge = kept_out_rows(len(y), seed, None if numbers else y)
    if clock.limited() and len(learn) >= 2 * LEAST_TRIED:
        return _as_many_as_time_allows(machine, given, y, scale, learn, judge, seed, talk)
    targets = scale.forward(y) if numbers else y
    talk(f"a first fit without {len(judge)} rows, to judge it by them")
    began = clock.now()
    first = Fitted.to(machine, given.rows(learn), targets[learn])
    estimate = _judged(first, given, y, scale, judge, len(learn))
    took = clock.now() - began
    if len(y) > MOST_REFITTED or clock.short_of(1.2 * took):
        return first, estimate
    talk(f"the machine on all {len(y)} rows")
    how = f"{estimate.how} The model itself was then fitted to all rows."
    return Fitted.to(machine, given.table, targets), replace(estimate, how=how, refitted=True)


def _as_many_as_time_allows(
    machine: Regressor | Classifier,
    given: Given,
    y: Labels,
    scale: Scale,
    learn: Integers,
    judge: Integers,
    seed: int,
    talk: Talk,
) -> tuple[Fitted, Estimate]:
    """The machine on some rows, and then on as many as what these took lets hope for; the better of the two.

    A machine that passes over more rows than it has seconds for ends before its first step, and predicts the
    mean; so the trial is not cut short.
    """
    tried = min(TRIAL_ROWS, max(LEAST_TRIED, len(learn) // 10))
    talk(f"a trial on {tried} rows, to see how many the seconds are enough for")
    numbers = isinstance(machine, Regressor)
    labels = None if numbers else y
    targets = scale.forward(y) if numbers else y
    some = some_of(learn, tried, seed, labels)

    def seconds_of(rows: Integers) -> tuple[Fitted, float]:
        began = clock.now()
        with clock.ending(math.inf):
            fitted = Fitted.to(machine, given.rows(rows), targets[rows])
        return fitted, clock.now() - began

    small, took = seconds_of(some)
    of_small = _judged(small, given, y, scale, judge, len(some))
    count = affordable_rows(len(some), took, len(learn))
    if count < len(learn):
        # half of the rows tell what would be the same for any number of them
        _, of_half = seconds_of(some[::2])
        count = affordable_rows(len(some), took, len(learn), of_half)
    if count < 2 * len(some):
        return small, replace(of_small, how=f"{of_small.how} The seconds were not enough for more.")
    most = some_of(learn, count, seed, labels)
    talk(f"the machine on {len(most)} rows")
    large = Fitted.to(machine, given.rows(most), targets[most])
    of_large = _judged(large, given, y, scale, judge, len(most))
    if _loss(of_large) > _loss(of_small):
        how = f"{of_small.how} On {len(most)} rows the seconds ended too early."
        return small, replace(of_small, how=how)
    if len(most) < len(learn):
        of_large = replace(of_large, how=f"{of_large.how} The seconds were not enough for more.")
    return large, of_large


def said_of_rows(found: Fitted, judged: Estimate, n: int) -> list[str]:
    """A sentence where the seconds were not enough for all of n rows but those that judge."""
    if found.count >= n - len(judged.rows):
        return []
    return [f"The seconds were enough to fit it to {found.count} of these rows."]


def affordable_rows(tried: int, took: float, most: int, of_half: float | None = None) -> int:
    """How many rows fit in the seconds left, if so many took so long, and half of them `of_half` seconds.

    What the other half took, each row costs; at least a third of what the rows cost in the mean, for seconds
    scatter. Without `of_half` all that was taken was for rows.

    >>> with clock.within(1000.0):
    ...     affordable_rows(100, 1.0, 10**9) // 1000, affordable_rows(100, 1.0, 5000)
    (69, 5000)
    >>> with clock.within(1000.0):
    ...     affordable_rows(100, 1.0, 10**9, of_half=0.75) // 1000
    139
    """
    left = clock.left()
    if left is None:
        return most
    took = max(took, 1e-9)
    of_rows = took if of_half is None else min(max(2 * (took - of_half), LEAST_OF_ROWS * took), took)
    more = (SHARE_FOR_ROWS * left - (took - of_rows)) / of_rows
    return int(min(max(more, 0.0) * tried, most))


def some_of(rows: Integers, count: int, seed: int, labels: Labels | None = None) -> Integers:
    """So many of these rows, drawn at random; with labels at least one of each class that they have."""
    if count >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(rows)
    if labels is None:
        return np.sort(order[:count])
    _, first = np.unique(labels[order], return_index=True)
    others = np.delete(order, first)
    return np.sort(np.concatenate([order[first], others[: max(count - len(first), 0)]]))


def _loss(found: Estimate) -> float:
    """What is the smaller the better the model is."""
    return found.measures["rmse"] if "rmse" in found.measures else found.measures["log_loss"]


def _judged(found: Fitted, given: Given, y: Labels, scale: Scale, judge: Integers, learned: int) -> Estimate:
    """What rows kept out say of a machine that was fitted to so many others."""
    others = f"the other {learned}"
    if learned + len(judge) < len(y):
        others = f"{learned} of the others"
    how = f"{len(judge)} rows kept out of a fit on {others}."
    if isinstance(found.machine, Regressor):
        return _judged_numbers(how, found, given, y, judge, scale)
    return _judged_classes(how, found, given, y, judge)


def _judged_numbers(
    how: str, found: Fitted, given: Given, y: Array, judge: Integers, scale: Scale
) -> Estimate:
    """Errors on rows kept out, and bands as wide as these errors are on the scale of the target."""
    centre = found.predict(given.rows(judge))
    spread = conformal_spread(scale.forward(y[judge]) - centre)
    return of_numbers(how, judge, y[judge], Predicted(scale, centre, np.full(len(judge), spread)))


def _judged_classes(how: str, found: Fitted, given: Given, y: Labels, judge: Integers) -> Estimate:
    machine = found.machine
    assert isinstance(machine, Classifier)
    probabilities = machine.predict_proba(given.rows(judge))
    return of_classes(how, judge, y[judge], np.asarray(machine.classes_), probabilities)


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
    sizes = np.abs(errors)
    reach = float(quantiles.upper(sizes, level))
    # of too few rows the largest error, where nothing is promised
    return min(reach, float(sizes.max())) / half_width(level)


def least_probability(found: Estimate, classes: Labels, level: float) -> float:
    """The probability that the true class had at least, in this share of the rows not seen and one to spare.

    0, which every class has, where there are too few rows to say.
    """
    of_true = found.spread[np.arange(len(found.truth)), np.searchsorted(classes, found.truth)]
    return max(float(quantiles.lower(of_true, level)), 0.0)


def promise_of_numbers(machine: Regressor, found: Estimate, level: float) -> Guarantee:
    """What conformal intervals of a model of numbers promise."""
    kind = OVER_ALL
    if isinstance(machine, GaussianProcessRegressor):
        n = len(machine.alpha_)
        others = tuple(note for note in what_breaks(machine) if note != TUNED)
        notes = (HELD_FIXED, *others, CHOSEN_ON_THE_SAME)
        return guarantee("jackknife+", level, n, n, kind=kind, notes=notes, strict=False)
    notes = _after_calibration(found)
    return guarantee("split", level, len(found.rows), 0, kind=kind, notes=notes, strict=False)


def promise_of_classes(machine: Classifier, found: Estimate, level: float) -> Guarantee:
    """What sets of classes promise: those of folds are compared with probabilities of the whole model."""
    kind = OVER_ALL
    if not isinstance(machine, GaussianProcessClassifier):
        notes = _after_calibration(found)
        return guarantee("split", level, len(found.rows), 0, kind=kind, notes=notes, strict=False)
    condition = "the model of all rows is as sure of new rows as those of the folds are of theirs"
    notes = ("Nothing is proved of it; ConformalClassifier with method='cv+' has a proof.",)
    return Guarantee("folds", level, 0.0, kind, condition, len(found.rows), False, notes)


def _after_calibration(found: Estimate) -> tuple[str, ...]:
    """What was done with rows kept out beside calibrating by them."""
    if not found.refitted:
        return (CHOSEN_ON_THE_SAME,)
    refitted = "The model was then fitted to all rows: strictly the promise is one for the fit before that."
    return (CHOSEN_ON_THE_SAME, refitted)
