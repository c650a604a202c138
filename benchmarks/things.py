"""Things that are not vectors: how well kernels on them do on real data, and how fast they count.

Hyperparameters are chosen inside: for each row that is left out, or on the training part alone, by
cross-validation over the same list of kernels and penalties. Nothing knows the name of a data set.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import mercer
from benchmarks import data, measure, pictures

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
    for cell in (promoters, sms_spam, counting_words, counting_substrings, many_documents):
        if options.only in cell.__name__:
            cell(options)
    print("graphs: python -m benchmarks graphs; whole tables: python -m benchmarks tables")


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
    chosen = kernels[_chosen(grams, y, np.arange(len(y)), folds=5)[0]].normalized()
    pictures.embedding(options, "promoters", chosen, X, y)
    print(
        f"promoters, leave one out: SVC {wrong[0]} errors of {len(rows)}, a Gaussian process "
        f"of the same kernel {wrong[1]}; {seconds:.1f} s, {measure.peak():.0f} MB at most"
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
    judged = found["y"][SMS_TRAINING:]
    score = model.score(test, judged)
    process = mercer.GaussianProcessClassifier(PRIOR * kernels[best], optimizer=None).fit(train, y)
    by_process = process.score(test, judged)
    seconds = time.process_time() - start
    pictures.embedding(options, "sms_spam", kernels[best], train, y)
    pictures.weights(options, "sms_spam", model)
    print(
        f"sms_spam, {kernels[best]}, C = {C:g}: SVC {100 * score:.2f} % of {len(test)}, a Gaussian process "
        f"of the same kernel {100 * by_process:.2f} %; {seconds:.1f} s, {measure.peak():.0f} MB at most"
    )


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
    X, _ = _documents(n)
    sides = {
        "sklearn": lambda: CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(X),
        "mercer": lambda: mercer.Text().features_of(X).matrix,
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
        "mercer": lambda: mercer.Spectrum(5).features_of(X).matrix,
    }
    _race(f"substrings of {n} strings", sides, options)


def many_documents(options: argparse.Namespace) -> None:
    """Fit on many documents and predict others, by margins and by squares, beside the same problem elsewhere.

    Both sides weigh words by idf and have no intercept, so that they minimise the same function, which is
    printed; a fifth as many documents again are predicted.
    """
    n = 2_000 if options.quick else 100_000
    X, f = _documents(n + n // 5)
    signs = np.where(f > 0, 1.0, -1.0)
    kernel = mercer.Text(weighting="idf")
    margins = {
        "sklearn": _by_words(LinearSVC(loss="hinge", fit_intercept=False, tol=1e-3, max_iter=10_000)),
        "mercer": mercer.SVC(kernel, fit_intercept=False),
    }
    squares = {
        "sklearn": _by_words(Ridge(fit_intercept=False, solver="sparse_cg", tol=1e-10)),
        "mercer": mercer.KernelRidge(kernel, 1.0),
    }
    phi = kernel.features_of(X[:n]).matrix
    print(measure.HEAD)
    for name, machines, y, objective in (("SVC", margins, signs, _hinge), ("ridge", squares, f, _squared)):
        sides = {side: partial(_fit_and_predict, m, X[:n], y[:n], X[n:]) for side, m in machines.items()}
        cell = f"{name} on {n} documents"
        found = measure.race(cell, sides, 1, options.repeat)

        def certificate(side: str, value: tuple, y=y, objective=objective) -> str:
            model, new = value
            right = np.mean(np.sign(new) == signs[n:])
            return f"objective {objective(phi, _weights(model, phi), y[:n]):.7g}, signs {100 * right:.2f} %"

        measure.report(cell, 1, found, None, certificate)


def _by_words(machine: object) -> Pipeline:
    return make_pipeline(TfidfVectorizer(token_pattern=r"(?u)\b\w+\b"), machine)


def _fit_and_predict(machine, train: list[str], y: np.ndarray, test: list[str]) -> tuple:
    model = clone(machine).fit(train, y)
    return model, np.asarray(model.predict(test))


def _weights(model, phi) -> np.ndarray:
    """w of the features of fit, which both sides have in the order of the alphabet."""
    if isinstance(model, Pipeline):
        return np.asarray(model[-1].coef_).ravel()
    if isinstance(model, mercer.SVC):
        return phi[model.support_].T @ model.dual_coef_[0]
    return phi.T @ model.dual_coef_


def _hinge(phi, w: np.ndarray, y: np.ndarray) -> float:
    return float(0.5 * w @ w + np.maximum(1 - y * (phi @ w), 0).sum())


def _squared(phi, w: np.ndarray, y: np.ndarray) -> float:
    return float(np.square(y - phi @ w).sum() + w @ w)


def _documents(n: int) -> tuple[list[str], np.ndarray]:
    """Documents of twelve words, of which some are frequent, and a number that depends on their words."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(30_000)])
    share = 1 / (np.arange(len(words)) + 10.0)
    drawn = rng.choice(len(words), size=(n, 12), p=share / share.sum())
    meaning = rng.normal(size=len(words))
    f = meaning[drawn].sum(axis=1) + 0.5 * rng.normal(size=n)
    return [" ".join(row) for row in words[drawn]], f


def _race(cell: str, sides: dict, options: argparse.Namespace) -> None:
    print(measure.HEAD)
    found = measure.race(cell, sides, 1, options.repeat)
    measure.report(cell, 1, found, None, lambda _, A: f"{A.shape[1]} features, {A.nnz} entries")
