"""Conformal intervals: what jackknife+ costs beside the fit, whether it is MAPIE's, coverage and width.

speed      CPU seconds on one thread, sides in turn: a fit; the same fit with jackknife+ from its factor; the
           bands of the test rows; all training rows of the first given split of kin8nm
MAPIE      the largest difference of ends on 200 rows, where it is installed
coverage   the share of test rows inside, and the mean width, over all given splits (abalone: ten random
           tenths); a process is tuned on 300 rows that take no other part, fitted to 500 rows of
           each split, and asked about 500 new ones
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import data
from mercer import ConformalRegressor, GaussianProcessRegressor, KernelRidge

LEVEL = 0.9
SETS = ("kin8nm", "elevators", "abalone", "energy", "california", "pumadyn32nm", "bike")
# Rows: to tune by, to fit to and to calibrate by, and new ones of each split.
TUNED, TRAINED, TESTED = 300, 500, 500
METHODS = {
    "jackknife+": {"method": "jackknife+"},
    "jackknife+, normalised": {"method": "jackknife+", "normalize": True},
    "full": {"method": "full"},
    "cv+": {"method": "cv+"},
    "split": {"method": "split"},
}


def run(options: argparse.Namespace) -> None:
    found = {name: data.real(options.data, name) for name in SETS}
    sets = {name: rows for name, rows in found.items() if rows is not None}
    if "kin8nm" not in sets:
        print(f"left out: no data in {options.data}")
        return
    with threadpool_limits(1):
        if options.only in "speed":
            speed(sets["kin8nm"], 300 if options.quick else None, options.repeat)
        if options.only in "MAPIE":
            same_as_mapie(sets["kin8nm"], 30 if options.quick else 200)
        for name, rows in sets.items():
            if options.only in f"coverage {name}":
                coverage(name, rows, options)


def standardised(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, (y - y[train].mean()) / y[train].std()


def cpu(work: Any) -> tuple[Any, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def speed(given: dict[str, np.ndarray], most: int | None, repeat: int) -> None:
    test = given["test_mask"][0]
    train = np.flatnonzero(~test)[:most]
    X, y = standardised(given["X"], given["y"], train)
    new = X[test][:most]
    sides = {
        "KernelRidge, Cholesky": lambda: KernelRidge("RBF(3.0)", alpha=0.01, solver="cholesky"),
        "KernelRidge, auto": lambda: KernelRidge("RBF(3.0)", alpha=0.01),
        "GaussianProcessRegressor": lambda: GaussianProcessRegressor(
            "RBF(3.0) + White(0.01)", optimizer=None
        ),
    }
    rows = f"{len(train)} rows, {len(new)} new ones"
    print(f"speed on kin8nm: {rows}; CPU seconds on one thread, best of {repeat}")
    for name, make in sides.items():
        plain, fit, bands = [], [], []
        for _ in range(repeat):
            plain.append(cpu(lambda make=make: make().fit(X[train], y[train]))[1])
            model, seconds = cpu(lambda make=make: ConformalRegressor(make()).fit(X[train], y[train]))
            fit.append(seconds)
            (low, high), seconds = cpu(lambda model=model: model.predict_interval(new))
            bands.append(seconds)
        inside = np.mean((low <= y[test][:most]) & (y[test][:most] <= high))
        print(
            f"  mercer {name:25s} fit {min(plain):7.2f}  with jackknife+ {min(fit):7.2f} = "
            f"{min(fit) / min(plain):.2f} fits  bands {min(bands):6.2f}  inside {inside:.3f}"
        )


def same_as_mapie(given: dict[str, np.ndarray], n: int) -> None:
    try:
        regression = importlib.import_module("mapie.regression")
    except ImportError:
        print("MAPIE: left out, not installed")
        return
    from sklearn.model_selection import KFold

    X, y = standardised(given["X"], given["y"], np.arange(n))
    for model in (
        KernelRidge("RBF(3.0)", alpha=0.01),
        GaussianProcessRegressor("RBF(3.0) + White(0.01)", optimizer=None),
    ):
        wrapped = regression.CrossConformalRegressor(
            model, confidence_level=LEVEL, method="plus", cv=KFold(n)
        )
        theirs, slow = cpu(
            lambda w=wrapped: w.fit_conformalize(X[:n], y[:n]).predict_interval(X[n : 2 * n])[1]
        )
        mine, quick = cpu(
            lambda m=model: (
                ConformalRegressor(m, level=LEVEL).fit(X[:n], y[:n]).predict_interval(X[n : 2 * n])
            )
        )
        apart = np.abs(np.array(mine) - theirs[:, :, 0].T).max()
        name = type(model).__name__
        print(
            f"MAPIE, {n} rows: mercer {name:25s} differs by {apart:.1e}; "
            f"{quick:.2f} s and {slow:.2f} s of CPU"
        )


def splits(given: dict[str, np.ndarray]) -> Iterator[np.ndarray]:
    """The given test rows; of abalone, which has none, ten random tenths."""
    if "test_mask" in given:
        yield from given["test_mask"]
        return
    n = len(given["y"])
    part = np.random.default_rng(0).permutation(n) % 10
    for k in range(10):
        yield part == k


def coverage(name: str, given: dict[str, np.ndarray], options: argparse.Namespace) -> None:
    tuned, trained, tested = (40, 60, 60) if options.quick else (TUNED, TRAINED, TESTED)
    X, y = np.asarray(given["X"], dtype=float), np.asarray(given["y"], dtype=float)
    order = np.random.default_rng(0).permutation(len(y))
    some, free = order[:tuned], order[tuned:]
    X, y = standardised(X, y, some)
    search = GaussianProcessRegressor("1.0*RBF() + White(0.1)", random_state=0).fit(X[some], y[some])
    model = GaussianProcessRegressor(search.kernel_, optimizer=None)
    found: dict[str, list[tuple[float, float, float]]] = {side: [] for side in METHODS}
    for k, test in enumerate(splits(given)):
        if options.quick and k > 1:
            break
        drawn = np.random.default_rng(k).permutation(free)
        train, new = drawn[~test[drawn]][:trained], drawn[test[drawn]][:tested]
        for side, method in METHODS.items():
            wrapped = ConformalRegressor(model, level=LEVEL, **method)
            (low, high), seconds = cpu(
                lambda w=wrapped, i=train, j=new: w.fit(X[i], y[i]).predict_interval(X[j])
            )
            inside = np.mean((low <= y[new]) & (y[new] <= high))
            found[side].append((float(inside), float(np.mean(high - low)), seconds))
    split = np.mean([row[1] for row in found["split"]])
    for side, rows in found.items():
        inside, width, seconds = np.mean(rows, axis=0)
        error = np.std([row[0] for row in rows], ddof=1) / np.sqrt(len(rows))
        print(
            f"{name:11s} {len(rows)} splits  mercer {side:23s} "
            f"inside {100 * inside:5.1f} ± {100 * error:.1f} %  "
            f"width {width:.4f} = {width / split:.3f} of split's  {seconds:6.2f} s of CPU",
            flush=True,
        )
