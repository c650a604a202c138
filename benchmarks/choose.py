"""Choosing: `mercer.choose` beside scikit-learn's grid search, by what it costs and by rows it has not seen.

Columns are standardised, and so are targets that are numbers, by the rows of the training part. `mercer` is a
support vector machine of "RBF()" as `choose` tunes it; `grid` is scikit-learn's of the same kind, by five
folds over five values of C (0.1 to 1000) and five of gamma (from a hundredth of "scale" to a hundred times).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

import mercer
from benchmarks import data

C = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMA = (0.01, 0.1, 1.0, 10.0, 100.0)
# rows to learn from, of which a quick run keeps a few, and rows to judge by at most
ROWS = {"energy": 614, "abalone": 3700, "kin8nm": 3000, "elevators": 3000, "usps": 2000, "ijcnn1": 3000}
QUICK = 120
JUDGED = 4000
HEAD = f"{'set':12}{'rows':>6}  {'side':8}{'measure':>9}{'error':>9}{'CPU s':>9}  found"


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to judge by, with labels or with numbers."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    truth: np.ndarray
    labels: bool

    def error(self, predicted: np.ndarray) -> float:
        if self.labels:
            return float(np.mean(predicted != self.truth))
        return float(np.sqrt(np.mean((predicted - self.truth) ** 2)))


def run(options: argparse.Namespace) -> None:
    print(HEAD)
    for name, rows in ROWS.items():
        if options.only not in name:
            continue
        found = data.real(options.data, name)
        if found is None:
            print(f"{name} left out: no such data in {options.data}")
            continue
        task = _task(found, min(rows, QUICK) if options.quick else rows)
        for side, search in SIDES.items():
            start = time.process_time()
            with threadpool_limits(1):
                predict, words = search(task)
            seconds = time.process_time() - start
            what = "errors" if task.labels else "RMSE"
            error = task.error(predict(task.new))
            print(
                f"{name:12}{len(task.y):>6}  {side:8}{what:>9}{error:>9.4f}{seconds:>9.1f}  {words}",
                flush=True,
            )


def _task(found: dict, rows: int) -> Task:
    rng = np.random.default_rng(0)
    labels = "y_train" in found
    if labels:
        learn = rng.permutation(len(found["y_train"]))[:rows]
        judge = rng.permutation(len(found["y_test"]))[:JUDGED]
        X, y = found["X_train"][learn], found["y_train"][learn]
        new, truth = found["X_test"][judge], found["y_test"][judge]
    else:
        order = rng.permutation(len(found["y"]))
        learn, judge = order[:rows], order[rows : rows + JUDGED]
        X, y = found["X"][learn], found["y"][learn]
        new, truth = found["X"][judge], found["y"][judge]
        truth = (truth - y.mean()) / y.std()
        y = (y - y.mean()) / y.std()
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    return Task((X - mean) / spread, y, (new - mean) / spread, truth, labels)


Found = tuple[Callable[[np.ndarray], np.ndarray], str]


def _chosen(task: Task) -> Found:
    machine = mercer.SVC("RBF()") if task.labels else mercer.SVR("RBF()")
    found = mercer.choose(machine, task.X, task.y, verbose=-1)
    trials = sum(trial.by == found.by for trial in found.trials)
    numbers = ", ".join(f"{name} {value:.3g}" for name, value in found.parameters.items())
    return found.machine.predict, f"{found.by} {found.score:.4f} in {trials} trials: {numbers}"


def _grid(task: Task) -> Found:
    gamma = np.array(GAMMA) / (task.X.shape[1] * task.X.var())
    machine = SVC() if task.labels else SVR()
    found = GridSearchCV(machine, {"C": C, "gamma": gamma}, cv=5).fit(task.X, task.y)
    best = found.best_params_
    return (
        found.predict,
        f"cv {found.best_score_:.4f} in 25 trials: C {best['C']:.3g}, gamma {best['gamma']:.3g}",
    )


SIDES: dict[str, Callable[[Task], Found]] = {"mercer": _chosen, "grid": _grid}
