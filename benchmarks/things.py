"""Things that are not vectors: how well kernels on them do on real data, and how fast they count.

Hyperparameters are chosen inside: for each row that is left out, or on the training part alone, by
cross-validation over the same list of kernels and penalties. Nothing knows the name of a data set.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold

import mercer
from benchmarks import data, measure
from mercer.arrays import Rows

# The split of Almeida et al.
SMS_TRAINING = 1674
PENALTIES = (1.0, 10.0)
# The variance of the process before it has seen a label.
PRIOR = 10.0
STRINGS = (
    mercer.Spectrum(3),
    mercer.Spectrum(4),
    mercer.Spectrum(5),
    mercer.Mismatch(4, 1),
    mercer.Mismatch(5, 1),
    mercer.WeightedDegree(3, shift=1),
    mercer.WeightedDegree(5, shift=3),
)
TEXTS = (
    mercer.Text(counting="presence"),
    mercer.Text(counting="logarithms", weighting="idf"),
    mercer.Text("words", 1, 2, counting="presence"),
    mercer.Text("characters", 2, 5, counting="logarithms", weighting="idf"),
)


def run(options: argparse.Namespace) -> None:
    for cell in (promoters, sms_spam, counting_words, counting_substrings):
        if options.only in cell.__name__:
            cell(options)


# ── accuracy ────────────────────────────────────────────────────────────────────────────────────────────────


def promoters(options: argparse.Namespace) -> None:
    """Leave one out of 106 strings of DNA."""
    found = data.real(options.data, "promoters")
    if found is None:
        print(f"promoters left out: no such data in {options.data}")
        return
    X = [str(s) for s in found["sequences"]]
    y = np.asarray(found["y"])
    rows = range(0, len(y), 20) if options.quick else range(len(y))
    kernels = STRINGS[:2] if options.quick else STRINGS
    start = time.process_time()
    grams = _grams(kernels, X)
    wrong = np.zeros(2, dtype=int)
    for i in rows:
        others = np.delete(np.arange(len(y)), i)
        best, C = _chosen(grams, y, others, folds=5)
        kernel = kernels[best].normalized()
        rest = [X[j] for j in others]
        machines = (
            mercer.SVC(kernel, C=C),
            mercer.GaussianProcessClassifier(PRIOR * kernel, optimizer=None),
        )
        for m, machine in enumerate(machines):
            wrong[m] += int(machine.fit(rest, y[others]).predict([X[i]])[0] != y[i])
    seconds = time.process_time() - start
    print(
        f"promoters, leave one out: SVC {wrong[0]} errors of {len(rows)}, a Gaussian process "
        f"of the same kernel {wrong[1]}; {seconds:.1f} s"
    )


def sms_spam(options: argparse.Namespace) -> None:
    """The first 1674 messages against the last 3900."""
    found = data.real(options.data, "sms_spam")
    if found is None:
        print(f"sms_spam left out: no such data in {options.data}")
        return
    first = 200 if options.quick else SMS_TRAINING
    texts = list(found["text"])
    train, test = texts[:first], texts[SMS_TRAINING:]
    y = np.asarray(found["y"])[:first]
    kernels = TEXTS[:2] if options.quick else TEXTS
    start = time.process_time()
    closed = [k.resolved(train) for k in kernels]
    best, C = _chosen(_grams(closed, train), y, np.arange(len(y)), folds=5)
    model = mercer.SVC(kernels[best], C=C).fit(train, y)
    score = model.score(test, found["y"][SMS_TRAINING:])
    seconds = time.process_time() - start
    print(f"sms_spam, {kernels[best]}, C = {C:g}: {100 * score:.2f} % of {len(test)}{seconds:>9.1f} s")


def _grams(kernels: Sequence[mercer.Kernel], X: Sequence[str]) -> list[np.ndarray]:
    return [k.resolved(X).normalized()(X) for k in kernels]


def _chosen(grams: list[np.ndarray], y: np.ndarray, rows: np.ndarray, folds: int) -> tuple[int, float]:
    """The kernel and the penalty with the fewest errors in cross-validation; the first of the best."""
    errors = np.zeros((len(grams), len(PENALTIES)))
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    for learn, judge in split.split(rows, y[rows]):
        a, b = rows[learn], rows[judge]
        for g, K in enumerate(grams):
            for c, C in enumerate(PENALTIES):
                model = mercer.SVC("precomputed", C=C).fit(K[np.ix_(a, a)], y[a])
                errors[g, c] += np.sum(model.predict(K[np.ix_(b, a)]) != y[b])
    g, c = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(g), PENALTIES[c]


# ── speed ───────────────────────────────────────────────────────────────────────────────────────────────────


def counting_words(options: argparse.Namespace) -> None:
    """Short documents as bags of words."""
    n = 2_000 if options.quick else 100_000
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(30_000)])
    share = 1 / (np.arange(len(words)) + 10.0)
    drawn = rng.choice(len(words), size=(n, 12), p=share / share.sum())
    X = [" ".join(row) for row in words[drawn]]
    sides = {
        "sklearn": lambda: CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(X),
        "mercer": lambda: mercer.Text().sparse_map(Rows(X)).matrix,
    }
    _race(f"words of {n} documents", sides, options)


def counting_substrings(options: argparse.Namespace) -> None:
    """Substrings of strings."""
    n = 200 if options.quick else 5_000
    rng = np.random.default_rng(0)
    X = ["".join(row) for row in rng.choice(list("ACGT"), size=(n, 100))]
    peer = {"analyzer": "char", "ngram_range": (5, 5), "lowercase": False}
    sides = {
        "sklearn": lambda: CountVectorizer(**peer).fit_transform(X),
        "mercer": lambda: mercer.Spectrum(5).sparse_map(Rows(X)).matrix,
    }
    _race(f"substrings of {n} strings", sides, options)


def _race(cell: str, sides: dict, options: argparse.Namespace) -> None:
    print(measure.HEAD)
    found = measure.race(sides, 1, options.repeat)
    measure.report(cell, 1, found, None, lambda _, A: f"{A.shape[1]} features, {A.nnz} entries")
