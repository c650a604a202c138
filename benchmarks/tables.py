"""Tables as they are found: numbers, categories, dates, text and gaps, from the raw file to predictions.

Each table is fitted five times, on the rows whose number modulo 5 is not the fold, by `mercer.fit`, and
beside it by scikit-learn's boosted trees on a simple coding: numbers as they are, all else by its place among
the values of the training part. What is told of a table is its file, its target, and the columns that give
the answer away or name the row; nothing is tuned for one of them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits

import mercer
from benchmarks import data, measure

FOLDS = 5
# Rows of the training part that a quick run keeps.
QUICK = 80


@dataclass(frozen=True)
class Source:
    """A table: its target, the columns left out, and what boosted trees by skrub 0.11.0 reached there.

    Of penguins, where these were not measured, it is a linear machine. The figures are those of the README
    of the data.
    """

    name: str
    target: str
    leave_out: tuple[str, ...]
    stated: float
    task: str = "classes"


TABLES = (
    Source("titanic", "survived", ("boat", "body"), 0.821),
    Source("midwest", "Location (Census Region)", ("RespondentID",), 0.662),
    Source("salaries", "current_annual_salary", (), 0.910, "numbers"),
    Source("penguins", "Species", ("studyName", "Sample Number", "Individual ID", "Comments"), 0.997),
)
HEAD = (
    f"{'table':10}{'measure':>9}  {'side':14}{'mean':>7}{'stated':>8}{'CPU s':>9}{'peak MB':>9}  "
    f"{'folds':34}  how"
)


def run(options: argparse.Namespace) -> None:
    print(HEAD)
    for source in TABLES:
        if options.only not in source.name:
            continue
        found = data.real(options.data, source.name)
        if found is None:
            print(f"{source.name} left out: no such data in {options.data}")
            continue
        with threadpool_limits(1):
            _table(source, pd.read_csv(found["path"]), options.quick)


@dataclass
class Side:
    """What one side did: a score for each fold, seconds and memory of all, and how."""

    scores: list[float]
    seconds: float = 0.0
    peak: float = 0.0
    how: str = ""


def _table(source: Source, table: pd.DataFrame, quick: bool) -> None:
    y = table[source.target].to_numpy()
    X = table.drop(columns=[source.target, *source.leave_out])
    sides = {"boosted trees": Side([]), "mercer": Side([])}
    fold = np.arange(len(X)) % FOLDS
    for k in range(1 if quick else FOLDS):
        learn = np.flatnonzero(fold != k)
        judge = np.flatnonzero(fold == k)
        if quick:
            learn = learn[:: max(1, len(learn) // QUICK)]
        for name, side in sides.items():
            start = time.process_time()
            with measure.watched_memory() as peak:
                predicted, side.how = _predicted(name, source, X.iloc[learn], y[learn], X.iloc[judge])
            side.seconds += time.process_time() - start
            side.peak = max(side.peak, peak.megabytes)
            score = accuracy_score if source.task == "classes" else r2_score
            side.scores.append(float(score(y[judge], predicted)))
    what = "accuracy" if source.task == "classes" else "R2"
    for name, side in sides.items():
        folds = " ".join(f"{score:.3f}" for score in side.scores)
        print(
            f"{source.name:10}{what:>9}  {name:14}{np.mean(side.scores):>7.4f}{source.stated:>8.3f}"
            f"{side.seconds:>9.1f}{side.peak:>9.0f}  {folds:34}  {side.how}",
            flush=True,
        )


def _predicted(
    name: str, source: Source, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame
) -> tuple[np.ndarray, str]:
    """What a side says of new rows, and how it was found."""
    if name == "mercer":
        found = mercer.fit(X, y, verbose=0)
        machine = type(found.machine_).__name__
        return found.predict(new), f"{machine}, {found.certificate_.status}; {found.steps_[-2]}"
    trees = HistGradientBoostingRegressor if source.task == "numbers" else HistGradientBoostingClassifier
    coded = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), _not_numbers),
        remainder="passthrough",
    )
    model = make_pipeline(coded, trees(random_state=0)).fit(X, y)
    return model.predict(new), "scikit-learn's HistGradientBoosting, as it comes, on ordinal codes"


_not_numbers = make_column_selector(dtype_exclude="number")
