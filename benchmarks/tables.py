"""Tables as they are found, from the raw file to predictions, by one command: `mercer fit FILE --target …`.

Each table is cut once: the rows whose number modulo 5 is 0 (or the test rows that are given) judge, the
others are written to a file, and the command gets a minute for everything. Beside it two searches of
scikit-learn's get the same wall time on the same rows:

    boosted trees      HistGradientBoosting on ordinal codes
    kernel pipeline    StandardScaler and SVR or SVC, categories of at most 30 values by one-hot codes

Both try random settings, each judged by a held-out fifth, until the time is up; the best is fitted to all.
What is told of a table is its file, its target, and the columns that give the answer away or name the row;
nothing is tuned for one of them. Wall seconds and memory of the command include reading and writing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks import data

FOLDS = 5
SECONDS = 60.0
# Rows of the training part, and seconds, of a quick run.
QUICK_ROWS = 80
QUICK_SECONDS = 3.0
FEW_VALUES = 30


@dataclass(frozen=True)
class Source:
    """A table: its target, and the columns left out."""

    name: str
    target: str
    leave_out: tuple[str, ...] = ()
    task: str = "numbers"


TABLES = (
    Source("titanic", "survived", ("boat", "body"), "classes"),
    Source("midwest", "Location (Census Region)", ("RespondentID",), "classes"),
    Source("salaries", "current_annual_salary"),
    Source("penguins", "Species", ("studyName", "Sample Number", "Individual ID", "Comments"), "classes"),
    Source("california", "y"),
    Source("abalone", "y"),
    Source("kin8nm", "y"),
    Source("elevators", "y"),
    Source("energy", "y"),
    Source("a9a", "y", task="classes"),
)
HEAD = f"{'table':11}{'rows':>7}{'measure':>9}  {'side':16}{'score':>8}{'wall s':>8}{'peak MB':>9}  how"


def run(options: argparse.Namespace) -> None:
    print(HEAD)
    for source in TABLES:
        if options.only not in source.name:
            continue
        found = data.real(options.data, source.name)
        if found is None:
            print(f"{source.name} left out: no such data in {options.data}")
            continue
        _table(source, _frame(source, found), _judges(found), options.quick)


def _frame(source: Source, found: dict[str, Any]) -> pd.DataFrame:
    """The table with its target, as people have it in a file."""
    if "path" in found:
        return pd.read_csv(found["path"])
    if "X_train" in found:
        X = np.vstack([found["X_train"].toarray(), found["X_test"].toarray()])
        y = np.concatenate([found["y_train"], found["y_test"]])
    else:
        X, y = found["X"], np.ravel(found["y"])
    names = found.get("columns")
    if names is None:
        names = [f"c{j + 1}" for j in range(X.shape[1])]
    return pd.DataFrame(X, columns=[str(name) for name in names]).assign(**{source.target: y})


def _judges(found: dict[str, Any]) -> np.ndarray | None:
    """The rows that judge, where the data say which; None for those whose number modulo 5 is 0."""
    if "X_train" in found:
        return np.arange(found["X_train"].shape[0] + found["X_test"].shape[0]) >= found["X_train"].shape[0]
    if "test_mask" in found:
        return np.asarray(found["test_mask"][0], dtype=bool)
    return None


def _table(source: Source, table: pd.DataFrame, judges: np.ndarray | None, quick: bool) -> None:
    if judges is None:
        judges = np.arange(len(table)) % FOLDS == 0
    learn, judge = table[~judges], table[judges]
    seconds = SECONDS
    if quick:
        learn = learn[:: max(1, len(learn) // QUICK_ROWS)]
        seconds = QUICK_SECONDS
    measure, score = ("accuracy", accuracy_score) if source.task == "classes" else ("R2", r2_score)
    truth = judge[source.target].to_numpy()
    sides = {"mercer fit": _by_command, "boosted trees": _by_trees, "kernel pipeline": _by_kernels}
    for name, side in sides.items():
        start = time.perf_counter()
        said, peak, how = side(source, learn, judge, seconds)
        wall = time.perf_counter() - start
        memory = "" if peak is None else f"{peak:.0f}"
        print(
            f"{source.name:11}{len(learn):>7}{measure:>9}  {name:16}{score(truth, said):>8.4f}{wall:>8.1f}"
            f"{memory:>9}  {how}",
            flush=True,
        )


Side = tuple[np.ndarray, float | None, str]


def _by_command(source: Source, learn: pd.DataFrame, judge: pd.DataFrame, seconds: float) -> Side:
    """The commands as a person types them, in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        learn.to_csv(place / "learn.csv", index=False)
        judge.drop(columns=source.target).to_csv(place / "judge.csv", index=False)
        fit = ["fit", "learn.csv", "--target", source.target, "--task", source.task, "--no-report", "--json"]
        fit += ["--quiet", "--time", f"{seconds}s"]
        for name in source.leave_out:
            fit += ["--leave-out", name]
        found, peak = _ran(fit, place)
        _ran(["predict", "learn.mercer", "judge.csv", "--only", "-o", "said.parquet", "--quiet"], place)
        said = pd.read_parquet(place / "said.parquet")["prediction"].to_numpy()
    told = json.loads(found)
    estimate = ", ".join(f"{name} {value:.4g}" for name, value in told["estimate"]["measures"].items())
    return said, peak, f"{told['machine']}; it estimates {estimate}"


def _ran(arguments: list[str], place: Path) -> tuple[str, float]:
    """What a command prints, and the most memory that it held, in MB."""
    with open(place / "out.txt", "w+") as out:
        process = subprocess.Popen([sys.executable, "-m", "mercer", *arguments], cwd=place, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"mercer {' '.join(arguments)} ended with {process.returncode}")
        out.seek(0)
        return out.read(), usage.ru_maxrss / 1024


def _by_trees(source: Source, learn: pd.DataFrame, judge: pd.DataFrame, seconds: float) -> Side:
    def make(rng: np.random.Generator, first: bool) -> Any:
        kind = HistGradientBoostingRegressor
        if source.task == "classes":
            kind = HistGradientBoostingClassifier
        if first:
            return kind(random_state=0)
        return kind(
            learning_rate=float(10 ** rng.uniform(-2, -0.5)),
            max_iter=int(rng.integers(50, 1000)),
            max_leaf_nodes=int(rng.integers(8, 128)),
            min_samples_leaf=int(rng.integers(2, 60)),
            l2_regularization=float(10 ** rng.uniform(-3, 2)),
            random_state=0,
        )

    coded = _coded(source, learn, lambda few, many: (OrdinalEncoder(**UNKNOWN), few + many))
    return _searched(source, learn, judge, seconds, coded, make)


UNKNOWN: dict[str, Any] = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}


def _by_kernels(source: Source, learn: pd.DataFrame, judge: pd.DataFrame, seconds: float) -> Side:
    def make(rng: np.random.Generator, first: bool) -> Any:
        if first:
            return SVC() if source.task == "classes" else SVR()
        C, gamma = float(10 ** rng.uniform(-1, 3)), float(10 ** rng.uniform(-3, 0.5))
        if source.task == "classes":
            return SVC(C=C, gamma=gamma)
        return SVR(C=C, gamma=gamma, epsilon=float(10 ** rng.uniform(-3, 0)))

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    coded = _coded(source, learn, lambda few, many: (encoder, few))
    filled = make_pipeline(coded, SimpleImputer(), StandardScaler())
    return _searched(source, learn, judge, seconds, filled, make)


def _coded(source: Source, learn: pd.DataFrame, choose: Callable[[list[str], list[str]], Any]) -> Any:
    """Numbers as they are; all else by an encoder, of columns with few values and with many."""
    used = [name for name in learn.columns if name not in (source.target, *source.leave_out)]
    numbers = [name for name in used if pd.api.types.is_numeric_dtype(learn[name])]
    others = [name for name in used if name not in numbers]
    few = [name for name in others if learn[name].nunique() <= FEW_VALUES]
    encoder, columns = choose(few, [name for name in others if name not in few])
    return make_column_transformer((encoder, columns), ("passthrough", numbers))


def _searched(
    source: Source,
    learn: pd.DataFrame,
    judge: pd.DataFrame,
    seconds: float,
    coded: Any,
    make: Callable[[np.random.Generator, bool], Any],
) -> Side:
    """Random settings, each by a held-out fifth, until the time is up; the best on all rows."""
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    y = learn[source.target].to_numpy()
    mean, scale = (0.0, 1.0) if source.task == "classes" else (y.mean(), y.std())
    targets = y if source.task == "classes" else (y - mean) / scale
    X, new = coded.fit_transform(learn), coded.transform(judge)
    held = rng.permutation(len(X)) % FOLDS == 0
    best, chosen, tried, longest = -np.inf, make(rng, True), 0, 0.0
    while time.perf_counter() - began + 1.3 * longest < seconds or not tried:
        candidate = chosen if not tried else make(rng, False)
        start = time.perf_counter()
        found = candidate.fit(X[~held], targets[~held]).score(X[held], targets[held])
        longest = max(longest, time.perf_counter() - start)
        tried += 1
        if found > best:
            best, chosen = found, candidate
    said = chosen.fit(X, targets).predict(new)
    if source.task == "numbers":
        said = mean + scale * said
    return said, None, f"best of {tried} settings"
