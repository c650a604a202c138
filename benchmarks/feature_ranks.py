"""Mean ranks of the feature machine and of tuned peers over folds: `python -m benchmarks features --ranks`.

Every peer is tuned by random trials on a fifth of its training rows, kept out, and then fitted to all of
them; no trial begins after as many CPU seconds as the feature machine took on these rows. The feature machine
has no trials, since it chooses by leave-one-out. Peers that are not installed are
left out, with a word. With `--store FILE` every cell is written as soon as it is done, and a second run does
the cells that are missing. Errors are RMSE over the deviation of the training target, or the share of wrong
labels.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data

NUMBERS = ("elevators", "bike", "pumadyn32nm", "kin8nm", "california", "abalone")
CLASSES = ("a9a", "ijcnn1", "usps")
FEATURES = "FeatureMachine"
Trial = dict[str, Any]
Rng = np.random.Generator


def run(options: argparse.Namespace) -> None:
    """Every cell that is missing, then the table of mean ranks."""
    rows = 120 if options.quick else options.rows
    trials = 2 if options.quick else options.trials
    cells: dict[str, dict[str, float]] = {}
    if options.store is not None and options.store.exists():
        cells = json.loads(options.store.read_text())
    for name in (*NUMBERS, *CLASSES):
        found = data.real(options.data, name)
        if options.only not in name or found is None:
            continue
        for fold in options.folds:
            parts = split(found, rows, fold)
            if parts is None:
                continue
            at = f"{name}/{fold}/{rows}/{trials}"
            for side, fit in sides(name in CLASSES, trials, options.quick).items():
                key = f"{at}/{side}"
                if key not in cells:
                    seconds = np.inf if side == FEATURES else cells[f"{at}/{FEATURES}"]["cpu"]
                    cells[key] = judged(lambda X, y, fit=fit, s=seconds: fit(X, y, s), parts, name in CLASSES)
                    print(f"{key:<60}{cells[key]['error']:>9.4f}{cells[key]['cpu']:>9.1f} s", flush=True)
                    if options.store is not None:
                        options.store.write_text(json.dumps(cells, indent=1))
    print_ranks(cells)


def split(found: dict[str, Any], rows: int, fold: int) -> tuple[np.ndarray, ...] | None:
    """Some training rows of a fold, drawn by its number, and its test rows; None without such a fold.

    A set with test rows of its own has these in every fold, and one without folds has ten of a fixed order.
    """
    rng = np.random.default_rng(fold)
    if "X_train" in found:
        y = np.ravel(found["y_train"])
        learned = rng.permutation(len(y))[:rows]
        return (
            _dense(found["X_train"][learned]),
            y[learned],
            _dense(found["X_test"]),
            np.ravel(found["y_test"]),
        )
    X = _dense(found["X"])
    y = np.ravel(found["y"]).astype(float)
    if "test_mask" in found:
        masks = np.asarray(found["test_mask"], dtype=bool)
    else:
        masks = np.random.default_rng(0).permutation(len(y)) % 10 == np.arange(10)[:, None]
    if fold >= len(masks):
        return None
    learned = rng.permutation(np.flatnonzero(~masks[fold]))[:rows]
    return X[learned], y[learned], X[masks[fold]], y[masks[fold]]


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def judged(fit: Callable[..., Any], parts: tuple[np.ndarray, ...], labels: bool) -> dict[str, float]:
    """The error of one side on the test rows of a fold, and its CPU seconds."""
    X, y, new, truth = parts
    began = time.process_time()
    model = fit(X, y)
    spent = time.process_time() - began
    said = np.ravel(model.predict(new))
    error = (
        float(np.mean(said != truth)) if labels else float(np.sqrt(np.mean((said - truth) ** 2)) / y.std())
    )
    return {"error": error, "cpu": spent}


def sides(labels: bool, trials: int, quick: bool) -> dict[str, Callable[..., Any]]:
    """What is compared: by name, a function of rows, targets and seconds that gives a fitted model."""
    from mercer import FeatureMachineClassifier, FeatureMachineRegressor

    mine = FeatureMachineClassifier if labels else FeatureMachineRegressor
    updates = 1 if quick else 8
    found: dict[str, Callable[..., Any]] = {
        FEATURES: lambda X, y, _: mine(n_updates=updates, random_state=0).fit(X, y)
    }
    for side, (make, draw) in peers(labels).items():
        found[side] = lambda X, y, seconds, make=make, draw=draw: tuned(
            make, draw, X, y, trials, seconds, labels
        )
    return found


def peers(labels: bool) -> dict[str, tuple[Callable[[Trial], Any], Callable[[Rng], Trial]]]:
    """Of each peer that is installed: how it is made with some settings, and how settings are drawn."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    trees = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
    found: dict[str, Any] = {trees.__name__: (lambda how: trees(random_state=0, **how), _of_trees)}
    try:
        import catboost
    except ImportError:
        print("CatBoost is not installed, and left out")
    else:
        kind = catboost.CatBoostClassifier if labels else catboost.CatBoostRegressor
        quiet = {"random_seed": 0, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
        found["CatBoost"] = (lambda how: kind(**quiet, **how), _of_catboost)
    if labels:
        # its labels are coded in a way of its own; numbers are compared
        return found
    try:
        import xrfm
    except ImportError:
        print("xrfm is not installed, and left out")
    else:
        found["xrfm"] = (lambda how: Xrfm(xrfm.xRFM, how), _of_xrfm)
    return found


class Xrfm:
    """xrfm on standardised columns; a fifth of its rows is the validation set that its fit needs."""

    def __init__(self, kind: Any, how: Trial) -> None:
        self.kind = kind
        self.how = how

    def fit(self, X: np.ndarray, y: np.ndarray) -> Xrfm:
        import torch

        spread = X.std(axis=0)
        self.units = X.mean(axis=0), np.where(spread > 0, spread, 1.0), y.mean(), y.std()
        order = np.random.default_rng(1).permutation(len(y))
        target = torch.tensor((y - self.units[2]) / self.units[3], dtype=torch.float32)[:, None]
        judge, learn = order[: len(y) // 5], order[len(y) // 5 :]
        shape = {"kernel": "l2", "exponent": 1.0, "diag": False, "bandwidth_mode": "constant"}
        shape["bandwidth"] = self.how.get("bandwidth", 10.0)
        steps = {"reg": self.how.get("reg", 1e-3), "iters": 5, "verbose": False, "early_stop_rfm": True}
        given = {"model": shape, "fit": steps}
        cpu = torch.device("cpu")
        self.model = self.kind(given, device=cpu, tuning_metric="mse", verbose=False, random_state=0)
        rows = self._rows(X)
        self.model.fit(rows[learn], target[learn], rows[judge], target[judge])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        said = np.ravel(np.asarray(self.model.predict(self._rows(X))))
        return np.asarray(self.units[2] + self.units[3] * said)

    def _rows(self, X: np.ndarray) -> Any:
        import torch

        return torch.tensor((X - self.units[0]) / self.units[1], dtype=torch.float32)


def _of_xrfm(rng: Rng) -> Trial:
    return {"bandwidth": float(10 ** rng.uniform(0.0, 2.3)), "reg": float(10 ** rng.uniform(-6.0, 0.0))}


def _of_trees(rng: Rng) -> Trial:
    return {
        "learning_rate": float(10 ** rng.uniform(-2.0, -0.5)),
        "max_iter": int(rng.integers(50, 600)),
        "max_leaf_nodes": int(rng.integers(4, 64)),
        "min_samples_leaf": int(rng.integers(2, 40)),
        "l2_regularization": float(10 ** rng.uniform(-6.0, 1.0)),
    }


def _of_catboost(rng: Rng) -> Trial:
    return {
        "learning_rate": float(10 ** rng.uniform(-2.0, -0.5)),
        "iterations": int(rng.integers(100, 1000)),
        "depth": int(rng.integers(3, 9)),
        "l2_leaf_reg": float(10 ** rng.uniform(-1.0, 1.5)),
    }


def tuned(
    make: Callable[[Trial], Any],
    draw: Callable[[Rng], Trial],
    X: np.ndarray,
    y: np.ndarray,
    trials: int,
    seconds: float,
    labels: bool,
) -> Any:
    """The settings with the least error on a fifth of the rows, fitted to all; the first are defaults."""
    until = time.process_time() + seconds
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    judge, learn = order[: len(y) // 5], order[len(y) // 5 :]
    best: Trial = {}
    least = np.inf
    for how in ({}, *(draw(rng) for _ in range(trials - 1))):
        error = judged(make(how).fit, (X[learn], y[learn], X[judge], y[judge]), labels)["error"]
        if error < least:
            best = how
            least = error
        if time.process_time() > until:
            break
    return make(best).fit(X, y)


def print_ranks(cells: dict[str, dict[str, float]]) -> None:
    """The mean rank of each side over the cells that all sides have, 1 for the best; ties share."""
    from scipy.stats import rankdata

    table: dict[str, dict[str, float]] = {}
    for key, cell in cells.items():
        where, _, side = key.rpartition("/")
        # both kinds of boosted trees are one side
        table.setdefault(where, {})[side.removesuffix("Regressor").removesuffix("Classifier")] = cell["error"]
    names = sorted({side for row in table.values() for side in row})
    full = [[row[side] for side in names] for row in table.values() if set(row) == set(names)]
    if not full:
        print("no cell has all sides")
        return
    ranks = rankdata(full, axis=1).mean(axis=0)
    print(f"mean rank over {len(full)} cells of {len(table)}")
    for side, rank in sorted(zip(names, ranks.tolist(), strict=True), key=lambda each: each[1]):
        print(f"  {side:<32}{rank:>6.2f}")
