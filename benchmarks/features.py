"""Kernels that learn their features: test errors beside boosted trees and the kernel without a metric.

1500 rows of the first given fold (`default_rng(1)` shuffles its training rows), inputs as they are; errors
are divided by the deviation of the training target. Seconds are CPU seconds. "turned" is made here: 50 000
rows of 20 columns whose target depends on three directions that are no columns (`--only turned`).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks import data, feature_ranks
from benchmarks.measure import watched_memory

SETS = ("bike", "elevators", "pumadyn32nm", "kin8nm")
ROWS = 1500
QUICK_ROWS = 150
TURNED_ROWS = 50_000


def run(options: argparse.Namespace) -> None:
    """The table of every set, or mean ranks over folds."""
    if options.ranks:
        feature_ranks.run(options)
        return
    from sklearn.ensemble import HistGradientBoostingRegressor

    from mercer import FeatureMachineRegressor

    rows = QUICK_ROWS if options.quick else ROWS
    updates = 1 if options.quick else 8
    sides = {
        "FeatureMachineRegressor": lambda: FeatureMachineRegressor(n_updates=updates, random_state=0),
        "the same without a metric": lambda: FeatureMachineRegressor(n_updates=0, random_state=0),
        "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(random_state=0),
    }
    print(f"{'data':<14}{'machine':<32}{'test error':>12}{'leave one out':>15}{'CPU s':>9}{'MB':>8}")
    for name in SETS:
        if options.only and options.only not in name:
            continue
        found = data.real(options.data, name)
        if found is None:
            print(f"{name}: the folder {options.data} has no such data")
            continue
        _compare(name, sides, split(found, rows))
    if options.only in "turned":
        _compare("turned", sides, turned(QUICK_ROWS if options.quick else TURNED_ROWS))


def _compare(name: str, sides: dict[str, Any], parts: tuple[np.ndarray, ...]) -> None:
    X, y, new, truth = parts
    for side, make in sides.items():
        began = time.process_time()
        with watched_memory() as peak:
            model = make().fit(X, y)
        spent = time.process_time() - began
        error = np.sqrt(np.mean((model.predict(new) - truth) ** 2)) / y.std()
        left = getattr(model, "path_", None)
        searched = "" if left is None else f"{np.sqrt(left.errors[left.best]):.4f}"
        print(
            f"{name:<14}{side:<32}{error:>12.4f}{searched:>15}{spent:>9.1f}{peak.megabytes:>8.0f}", flush=True
        )


def turned(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, and a tenth as many to judge by: sin(2a) b + |c| of three directions, and noise of 0.1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + rows // 10, 20))
    a, b, c = (X @ rng.normal(size=(20, 3)) / np.sqrt(20)).T
    y = np.sin(2 * a) * b + np.abs(c) + 0.1 * rng.normal(size=len(X))
    return X[:rows], y[:rows], X[rows:], y[rows:]


def split(found: dict[str, Any], rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Some training rows of the first fold, and its test rows."""
    X = np.asarray(found["X"], dtype=float)
    y = np.ravel(found["y"]).astype(float)
    judged = np.asarray(found["test_mask"][0], dtype=bool)
    learned = np.flatnonzero(~judged)
    np.random.default_rng(1).shuffle(learned)
    learned = learned[:rows]
    return X[learned], y[learned], X[judged], y[judged]
