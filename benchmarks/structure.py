"""Structure: are kernels found again from what they drew, and does the search beat one Gaussian on tables?

*Recovered* means that the set of term kinds of the answer is that of the kernel which drew the data. The kind
of a term is the set of its factors, as smooth (any radial leaf), periodic, linear or gate (a change), each
with its column in a table; noise is not counted, and two terms of one kind count once.

On tables the rival is a Gaussian process with one RBF that has a lengthscale for each column. Both are judged
by the mean log density of new rows, in units of the standardised target; a split draws 500 rows to learn from
and up to 500 others to judge by.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mercer
from benchmarks import data
from mercer import RBF, After, Before, GaussianProcessRegressor, Kernel, Linear, Periodic, Standardized, White
from mercer.structure.grammar import kinds_of

ROWS = 200
LINE = Linear().of(Standardized((5.0,), (2.9,)))
SERIES: dict[str, Kernel] = {
    "smooth": 1.0 * RBF(1.5) + White(0.05),
    "linear": 1.0 * LINE + White(0.1),
    "periodic": 1.0 * Periodic(1.1) + White(0.1),
    "linear + periodic": 1.0 * LINE + 0.5 * Periodic(1.0) + White(0.05),
    "smooth + periodic": 1.0 * RBF(3.0) + 0.5 * Periodic(0.7) + White(0.05),
    "changing pattern": 1.0 * RBF(4.0) * Periodic(1.0) + White(0.05),
    "smooth + changing pattern": 1.0 * RBF(5.0) + 0.7 * RBF(6.0) * Periodic(0.8) + White(0.03),
    "growing pattern": 1.0 * LINE * Periodic(1.0) + White(0.03),
    "two patterns": 1.0 * Periodic(2.3) + 0.5 * Periodic(0.45, lengthscale=2.0) + White(0.03),
    "change point": (
        1.0 * RBF(2.5) * Linear().of(Before(5.2, 0.05))
        + 1.0 * Periodic(0.6) * Linear().of(After(5.2, 0.05))
        + White(0.02)
    ),
}
TABLES: dict[str, Kernel] = {
    "two of four columns": 1.0 * RBF(0.7).on(0) + 1.0 * RBF(1.0).on(2) + White(0.05),
    "a curve and a line": 1.0 * RBF(0.7).on(1) + 1.0 * Linear().on(3) + White(0.05),
}
SETS = ("energy", "abalone", "kin8nm", "california")
LEARNED = 500
JUDGED = 500


def run(options: argparse.Namespace) -> None:
    with threadpool_limits(1):
        _recovered(options)
        _real(options)


def _recovered(options: argparse.Namespace) -> None:
    print(f"{'drawn from':28}{'recovered':>10}{'CPU s':>8}  found")
    rows = 60 if options.quick else ROWS
    rounds = 1 if options.quick else 6
    draws = range(1 if options.quick else options.repeat)
    for (cases, table), draw in product(((SERIES, False), (TABLES, True)), draws):
        hits = shown = 0
        for name, kernel in cases.items():
            if options.only not in name:
                continue
            shown += 1
            X = _points(rows, table)
            process = GaussianProcessRegressor(kernel)
            y = process.sample_y(X, random_state=draw, noise=True).ravel()
            start = time.process_time()
            found = mercer.choose.structure(X, y, rounds=rounds, n_jobs=1, verbose=0)
            seconds = time.process_time() - start
            kinds = kinds_of(mercer.parse(found.kernel))
            same = kinds == kinds_of(kernel)
            hits += same
            said = "yes" if same else "no"
            print(f"{name:28}{said:>10}{seconds:8.1f}  {'; '.join(sorted(kinds))}", flush=True)
        if shown:
            print(f"draw {draw}: {hits} of {shown} {'tables' if table else 'series'} recovered\n")


def _points(rows: int, table: bool) -> np.ndarray:
    if table:
        return np.random.default_rng(1).uniform(-2.0, 2.0, size=(rows, 4))
    return np.linspace(0.0, 10.0, rows)[:, None]


def _real(options: argparse.Namespace) -> None:
    print(f"{'set':12}{'split':>6}{'structure':>11}{'ARD GP':>9}{'better':>8}{'CPU s':>8}{'CPU s':>8}  found")
    wins = runs = 0
    splits = 1 if options.quick else options.repeat
    for name in SETS:
        if options.only not in name:
            continue
        found = data.real(options.data, name)
        if found is None:
            print(f"{name} left out: no such data in {options.data}")
            continue
        for split in range(splits):
            won = _one(name, split, found, options.quick)
            wins += won
            runs += 1
    if runs:
        print(f"better on {wins} of {runs} splits")


def _one(name: str, split: int, found: dict[str, Any], quick: bool) -> bool:
    X, y = _whole(found)
    learned = 80 if quick else LEARNED
    order = np.random.default_rng(split).permutation(len(y))
    known, new = order[:learned], order[learned : learned + JUDGED]
    scale = float(y[known].std())
    start = time.process_time()
    answer = mercer.choose.structure(
        X[known], y[known], rounds=1 if quick else 6, n_jobs=1, random_state=split, verbose=0
    )
    middle = time.process_time()
    rival = GaussianProcessRegressor("1.0*RBF(ard=True) + White(0.1)", n_jobs=1).fit(X[known], y[known])
    end = time.process_time()
    ours = _density(answer.predict(X[new], return_std=True, noise=True), y[new], scale)
    theirs = _density(rival.predict(X[new], return_std=True, noise=True), y[new], scale)
    kinds = "; ".join(sorted(kinds_of(mercer.parse(answer.kernel))))
    print(
        f"{name:12}{split:6}{ours:11.4f}{theirs:9.4f}{ours - theirs:8.4f}"
        f"{middle - start:8.1f}{end - middle:8.1f}  {kinds}{' (average)' if answer.others else ''}",
        flush=True,
    )
    return ours > theirs


def _whole(found: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, and its first target."""
    parts = ["train", "test"] if "X_train" in found else [""]
    X = np.vstack([found[f"X_{part}" if part else "X"] for part in parts])
    y = np.concatenate([np.reshape(found[f"y_{part}" if part else "y"], (-1,)) for part in parts])
    return np.asarray(X, dtype=float), np.asarray(y, dtype=float)


def _density(predicted: tuple[np.ndarray, np.ndarray], y: np.ndarray, scale: float) -> float:
    mean, std = predicted
    density = -0.5 * ((y - mean) / std) ** 2 - np.log(std / scale) - 0.5 * np.log(2 * np.pi)
    return float(np.mean(density))
