"""Cross-validation of one trial, within the seconds that are left, and no longer than it can be the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import BaseCrossValidator, check_cv, cross_val_score

from mercer import clock
from mercer.choose.compass import GivenUp
from mercer.choose.ledger import Ledger
from mercer.choose.machines import Subject
from mercer.choose.sample import Sample
from mercer.kernels.base import Kernel
from mercer.typing import Integers

Split: TypeAlias = tuple[Integers, Integers]
Folds: TypeAlias = int | BaseCrossValidator | Iterable[Split]
Scoring: TypeAlias = str | Callable[..., float] | None

# standard errors by which a trial must be behind the best, fold by fold, to be given up
BEHIND = 2.0
# standard errors of the mean score that make no difference
TRIFLE = 0.1


@dataclass(eq=False)
class CrossValidation:
    """The mean score of a trial on held-out folds; with a limit, each fit has its share of what is left.

    A trial that is worse than the best on each of its first folds, two at least, by two standard errors of
    the differences, is given up.
    """

    subject: Subject
    sample: Sample
    splits: list[Split]
    scoring: Scoring
    n_jobs: int | None
    ledger: Ledger
    best: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls, subject: Subject, sample: Sample, cv: Folds, scoring: Scoring, n_jobs: int | None, ledger: Ledger
    ) -> CrossValidation:
        folds = check_cv(cv, sample.y, classifier=is_classifier(subject.machine))
        return cls(subject, sample, list(folds.split(sample.X, sample.y)), scoring, n_jobs, ledger)

    def score(self, kernel: Kernel, numbers: dict[str, float]) -> float:
        """The mean over the folds of the machine with this kernel and these numbers."""
        ledger = self.ledger
        began = ledger.seconds
        folds = len(self.splits)
        machine = self.subject.with_kernel(kernel, numbers)
        if ledger.left is not None:
            machine.set_params(**self.subject.within_seconds(ledger.left / (folds + 1)))
        found: list[float] = []
        for splits in self._rounds():
            found += self._scores(machine, splits)
            trained = len(self.sample) * (1 - 1 / max(folds, 2))
            ledger.expect((ledger.seconds - began) / len(found), trained)
            ledger.tell()
            if len(found) == folds:
                break
            if ledger.spent:
                # Where nothing else is known, the folds so far are the score.
                raise clock.OutOfTime(None if ledger.best else float(np.mean(found)))
            if self._is_behind(found):
                note = f"given up after {len(found)} of {folds} folds"
                raise GivenUp(float(np.mean(found)), note)
        if not self.best or np.mean(found) > np.mean(self.best):
            self.best = found
        return float(np.mean(found))

    def trifle(self) -> float:
        """A difference of means that says nothing: a tenth of the standard error of the best one."""
        if len(self.best) < 2:
            return 0.0
        return TRIFLE * float(np.std(self.best, ddof=1)) / float(np.sqrt(len(self.best)))

    def _is_behind(self, found: list[float]) -> bool:
        """Whether the folds so far leave no hope that this trial is the best."""
        if len(found) < 2 or not self.best:
            return False
        lost = np.array(self.best[: len(found)]) - found
        error = float(lost.std(ddof=1)) / np.sqrt(len(found))
        return bool(lost.min() > 0 and lost.mean() > BEHIND * error)

    def _rounds(self) -> list[list[Split]]:
        """One fold at a time; all at once where they are fitted side by side."""
        if self.n_jobs not in (None, 1):
            return [self.splits]
        return [[split] for split in self.splits]

    def _scores(self, machine: BaseEstimator, splits: list[Split]) -> list[float]:
        found = cross_val_score(
            machine,
            self.sample.X,
            self.sample.y,
            cv=splits,
            scoring=self.scoring,
            n_jobs=self.n_jobs,
            error_score="raise",
        )
        return [float(score) for score in found]
