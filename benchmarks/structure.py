"""Structure: are kernels found again from what they drew, and does the search beat one Gaussian on tables?

**Series.** Ten structures; a set of ten draws the numbers of each kernel (every length, period and height by
a factor between 0.8 and 1.25) and then 200 values of it, from seeds of its own. `--repeat` sets are made,
from the set `--first` on.

*The same* means that the terms of the answer, as sets of factors, are those of the kernel that drew the data.
A factor is smooth (any radial leaf: they differ in roughness), periodic, linear or a gate, with its column in
a table; noise is not counted, and two terms of one kind count once. But every period that drew the data has
to be there, within 5 %: two patterns are not one. *Recovered* means the same, but for two things that no data
can tell apart, or not these:

- `Periodic` has a mean, c = I₀(1/ℓ²) e^(-1/ℓ²) > 0, and is c plus a pattern around zero. So k·Periodic is c·k
  plus the pattern of k: it holds the term k, and k·Periodic + k is k·Periodic with other numbers. Beside a
  term with a periodic factor, the term without that factor counts as there, on both sides.
- A smooth factor whose lengthscale is so long that the term changes by it by less than 2 % of the variance
  of the data, from one end to the other, is constant, and not counted; alone, it is a constant.

*Ahead* is by how many nats the answer is ahead of the kernel that drew the data, tuned from the numbers that
drew them: in evidence, and in the score of the search, both for all rows together. A miss that is ahead is
what the data say; one that is behind was not found.

**Tables.** The rival is a Gaussian process with one RBF that has a lengthscale for each column, tuned to the
end by evidence from three starts, its targets standardised as those of the search are. Both are judged by the
mean log density of new rows, in units of the standardised target, on the same rows: a split draws 600 rows to
learn from and up to 500 others to judge by.
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
from mercer.arrays import Rows
from mercer.kernels.terms import latent_terms
from mercer.structure.answer import Structure
from mercer.structure.factors import Factor, Kind, factors_of
from mercer.structure.grammar import kind_name, kinds_of, periods_in
from mercer.structure.scoring import Candidate, Sample, folds, guessed_curvature, judged, rolling, settled
from mercer.structure.vocabulary import Axis

ROWS = 200
SPAN = 10.0
# The first seed of the draws, and how far apart those of two sets are.
SEED = 70_000
APART = 100
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
# A factor by which a number of a kernel is moved, at most.
MOVED = 1.25
# How far a period that was found may be from the one that drew the data.
NEAR = 0.05
SETS = ("energy", "abalone", "california", "kin8nm", "elevators", "bike", "pumadyn32nm")
LEARNED = 600
JUDGED = 500
STARTS = 2


def run(options: argparse.Namespace) -> None:
    with threadpool_limits(1):
        _recovered(options)
        _real(options)


# ── drawn from known kernels ────────────────────────────────────────────────────────────────────────────────


def _recovered(options: argparse.Namespace) -> None:
    print(f"{'drawn from':28}{'recovered':>10}{'CPU s':>8}{'ahead':>8}{'score':>8}  found")
    draws = _numbers(options)
    for (cases, table), draw in product(((SERIES, False), (TABLES, True)), draws):
        shown = [(i, name) for i, name in enumerate(cases) if options.only in name]
        if not shown:
            continue
        seeds = [SEED + APART * draw + i + 50 * table for i, _ in shown]
        answers = [
            _recover(name, cases[name], seed, table, options.quick)
            for (_, name), seed in zip(shown, seeds, strict=True)
        ]
        hits = sum(answer != "no" for answer in answers)
        same = answers.count("the same")
        things = "tables" if table else "series"
        print(f"set {draw}: {hits} of {len(shown)} {things} recovered, {same} of them the same\n", flush=True)


def _recover(name: str, structure: Kernel, seed: int, table: bool, quick: bool) -> str:
    """Draw from a structure, search, and say whether the answer is it."""
    kernel = _moved(structure, seed)
    X = _points(60 if quick else ROWS, table)
    y = GaussianProcessRegressor(kernel).sample_y(X, random_state=seed, noise=True).ravel()
    start = time.process_time()
    found = mercer.choose.structure(X, y, rounds=1 if quick else 6, n_jobs=1, verbose=0)
    seconds = time.process_time() - start
    answer = mercer.parse(found.kernel)
    span = float(np.ptp(X[:, 0]))
    said = "no"
    seen = _has_periods(answer, kernel)
    if seen and kinds_of(answer) == kinds_of(kernel):
        said = "the same"
    elif seen and _closed(answer, span) == _closed(kernel, span):
        said = "yes"
    kinds = "; ".join(sorted(kinds_of(answer)))
    nats, score = _ahead(found, kernel, X, y)
    print(f"{name:28}{said:>10}{seconds:8.1f}{nats:8.1f}{score:8.1f}  {kinds}", flush=True)
    return said


def _numbers(options: argparse.Namespace) -> range:
    """The numbers of the sets and of the splits."""
    return range(options.first, options.first + (1 if options.quick else options.repeat))


def _ahead(found: Structure, drawn: Kernel, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """By how much the answer is ahead of the kernel that drew the data: evidence and score, in nats."""
    rows = len(y)
    if X.shape[1] == 1:
        splits = rolling(np.arange(rows))
    else:
        # the folds of the search, which draws them first
        splits = folds(rows, np.random.default_rng(0))
    sample = Sample(Rows(X, "X"), (y - y.mean()) / y.std(), splits, 1, ordered=X.shape[1] == 1)
    # periods take short steps, as in the search
    inverse = guessed_curvature(drawn, float(np.ptp(X[:, 0])))
    truth = settled(Candidate(drawn, -np.inf, rows, inverse=inverse), sample)
    if truth is None:
        return np.nan, np.nan
    truth = judged(truth, sample)
    held = sum(len(new) for _, new in splits)
    return rows * (found.evidence - truth.evidence), (rows + held) * (found.score - truth.score)


def _moved(kernel: Kernel, seed: int) -> Kernel:
    """The kernel with each of its numbers moved by a factor of its own; doors stay."""
    rng = np.random.default_rng(seed)
    reach = np.log(MOVED)
    return kernel.with_theta(kernel.theta + rng.uniform(-reach, reach, size=len(kernel.theta)))


def _closed(kernel: Kernel, span: float) -> frozenset[frozenset[str]]:
    """Its terms as sets of factors, constant factors left out, with all terms that periodic factors hold."""
    found: set[frozenset[str]] = set()
    for term in latent_terms(kernel):
        height, factors = factors_of(term)
        kept = [factor for factor in factors if not _constant(factor, height, span)]
        kinds = frozenset(kind_name(factor) for factor in kept)
        found.add(kinds)
        found.add(frozenset(kind for kind in kinds if not kind.startswith("periodic")))
    return frozenset(found - {frozenset()})


def _has_periods(answer: Kernel, drawn: Kernel) -> bool:
    """Whether every period that drew the data is one of the answer, nearly."""
    found = periods_in(answer)
    return all(any(abs(own / period - 1) <= NEAR for own in found) for period in periods_in(drawn))


def _constant(factor: Factor, height: float, span: float) -> bool:
    lengths = factor.numbers("lengthscale")
    if factor.kind is not Kind.SHAPE or not lengths:
        return False
    return Axis(low=0.0, high=span).is_flat(min(lengths), height)


def _points(rows: int, table: bool) -> np.ndarray:
    if table:
        return np.random.default_rng(1).uniform(-2.0, 2.0, size=(rows, 4))
    return np.linspace(0.0, SPAN, rows)[:, None]


# ── real tables ─────────────────────────────────────────────────────────────────────────────────────────────


def _real(options: argparse.Namespace) -> None:
    print(f"{'set':12}{'split':>6}{'structure':>11}{'ARD GP':>9}{'better':>8}{'CPU s':>8}{'CPU s':>8}  found")
    wins = runs = 0
    for name in SETS:
        if options.only not in name:
            continue
        found = data.real(options.data, name)
        if found is None:
            print(f"{name} left out: no such data in {options.data}")
            continue
        for split in _numbers(options):
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
    rival = GaussianProcessRegressor(
        "1.0*RBF(ard=True) + White(0.1)", n_restarts=STARTS, normalize_y=True, random_state=split, n_jobs=1
    ).fit(X[known], y[known])
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
