"""Cross-validation of one trial, within the seconds that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import BaseCrossValidator, check_cv, cross_val_score

from mercer import clock
from mercer.choose.machines import with_kernel, within_seconds
from mercer.choose.sample import Sample
from mercer.choose.search import Ledger
from mercer.kernels.base import Kernel
from mercer.typing import Integers

Split: TypeAlias = tuple[Integers, Integers]
Folds: TypeAlias = int | BaseCrossValidator | Iterable[Split]
Scoring: TypeAlias = str | Callable[..., float] | None


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The mean score of a trial on held-out folds; with a limit, each fit has its share of what is left."""

    machine: BaseEstimator
    sample: Sample
    splits: list[Split]
    scoring: Scoring
    n_jobs: int | None
    ledger: Ledger

    @classmethod
    def of(
        cls,
        machine: BaseEstimator,
        sample: Sample,
        cv: Folds,
        scoring: Scoring,
        n_jobs: int | None,
        ledger: Ledger,
    ) -> CrossValidation:
        folds = check_cv(cv, sample.y, classifier=is_classifier(machine))
        return cls(machine, sample, list(folds.split(sample.X, sample.y)), scoring, n_jobs, ledger)

    def score(self, kernel: Kernel, others: dict[str, float]) -> float:
        """The mean over the folds of the machine with this kernel and these parameters."""
        ledger = self.ledger
        began = ledger.seconds
        folds = len(self.splits)
        machine = with_kernel(self.machine, kernel, others)
        if ledger.left is not None:
            machine.set_params(**within_seconds(machine, ledger.left / (folds + 1)))
        # how many rows the last fit has for each row that a fold is fitted on
        growth = ledger.growth / (1 - 1 / max(folds, 2))
        found: list[float] = []
        for splits in self._rounds():
            found += self._scores(machine, splits)
            # A fit costs n² at least; the last one is of all rows.
            ledger.cost = (ledger.seconds - began) / len(found) * growth**2
            if ledger.spent and len(found) < folds:
                # Where nothing else is known, the folds so far are the score.
                raise clock.OutOfTime(None if ledger.best else float(np.mean(found)))
        return float(np.mean(found))

    def _rounds(self) -> list[list[Split]]:
        """All folds at once; one at a time where the clock must be looked at in between."""
        if self.ledger.left is None or self.n_jobs not in (None, 1):
            return [self.splits]
        return [[split] for split in self.splits]

    def _scores(self, machine: BaseEstimator, splits: list[Split]) -> list[float]:
        found = cross_val_score(
            machine, self.sample.X, self.sample.y, cv=splits, scoring=self.scoring, n_jobs=self.n_jobs
        )
        return [float(score) for score in found]
