"""Smaller Grams: Nyström and ridge beside scikit-learn, at equal error on held-out rows; random features.

The certificate column holds the root mean square error on rows not used in fit; for mercer also the residual
it proves. Uniform landmarks on all sides; scikit-learn's are its own draw. `Falkon` here is the direct solver
in float64 ("mercer") and float32 tiles ("mercer f32"); "mercer map" is `Nystroem` followed by scikit-learn's
Ridge.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.measure import HEAD, Machine, race, report


def run(options: argparse.Namespace) -> None:
    machine = Machine.measure()
    print(machine)
    print("ratio = strongest peer / mercer; limit = n m² multiply-adds and n m exponentials")
    print(HEAD)
    for threads in options.threads:
        for n, d, m in ((1500, 5, 50), (1500, 10, 50)) if options.quick else ((200_000, 20, 1000),):
            ridge(n, d, m, threads, options, machine)
        for n, d, m in ((1000, 5, 50), (1000, 10, 50)) if options.quick else ((100_000, 20, 500),):
            logistic(n, d, m, threads, options)
        for n, d, m in ((1000, 5, 50), (1000, 10, 50)) if options.quick else ((100_000, 20, 1000),):
            transform(n, d, m, threads, options, machine)
        for n, d, m in ((1000, 5, 50),) if options.quick else ((100_000, 20, 1000),):
            random_features(n, d, m, threads, options)
        many = ((600, 8, 5, 50),) if options.quick else ((16_000, 16, 26, 1000), (10_000, 784, 10, 1000))
        for n, d, k, m in many:
            several(n, d, k, m, threads, options)


def ridge(n: int, d: int, m: int, threads: int, options: argparse.Namespace, machine: Machine) -> None:
    cell = f"ridge n={n} d={d} m={m}"
    if options.only not in cell:
        return
    X, y = data.waves(n + n // 10, d)
    X_test, y_test = X[n:], y[n:]
    X, y = X[:n], y[:n]
    length, alpha = float(np.sqrt(d)), 1.0
    kernel = mercer.RBF(length)
    sides: dict[str, Callable[[], Any]] = {
        "sklearn": lambda: _peer(length, m, alpha).fit(X, y),
        "mercer map": lambda: _pipeline(mercer.Nystroem(kernel, m, random_state=0), alpha).fit(X, y),
        "mercer f32": lambda: mercer.FalkonRegressor(kernel, m, alpha, dtype="float32", random_state=0).fit(
            X, y
        ),
        "mercer": lambda: mercer.FalkonRegressor(kernel, m, alpha, random_state=0).fit(X, y),
    }
    found = race(cell, sides, threads, options.repeat)
    limit = machine.limit(flops=float(n) * m * m, exps=float(n) * m, written=0.0, threads=threads)

    def describe(name: str, model: Any) -> str:
        rmse = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        c = getattr(model, "certificate_", None)
        proof = "" if c is None else f", residual {c.residual:.1e}, {c.status}"
        return f"rmse {rmse:.5f}{proof}"

    report(cell, threads, found, limit, describe)


def transform(n: int, d: int, m: int, threads: int, options: argparse.Namespace, machine: Machine) -> None:
    """Features of new rows; the certificate is how far ΦΦᵀ is from K on landmarks, where it should be K."""
    cell = f"transform n={n} d={d} m={m}"
    if options.only not in cell:
        return
    from sklearn.kernel_approximation import Nystroem

    X, _ = data.waves(n, d)
    length = float(np.sqrt(d))
    kernel = mercer.RBF(length)
    fitted = min(n, 5 * m)
    peer = Nystroem(gamma=0.5 / length**2, n_components=m, random_state=0).fit(X[:fitted])
    mine = mercer.Nystroem(kernel, m, random_state=0, n_jobs=threads).fit(X[:fitted])
    sides = {"sklearn": lambda: peer.transform(X), "mercer": lambda: mine.transform(X)}
    found = race(cell, sides, threads, options.repeat)
    limit = machine.limit(flops=float(n) * m * m, exps=float(n) * m, written=8.0 * n * m, threads=threads)

    def describe(name: str, _: Any) -> str:
        model, landmarks = (mine, mine.landmarks_) if name == "mercer" else (peer, peer.components_)
        phi = model.transform(landmarks)
        return f"on landmarks |K - ΦΦᵀ| <= {np.abs(phi @ phi.T - kernel(landmarks)).max():.1e}"

    report(cell, threads, found, limit, describe)


def random_features(n: int, d: int, m: int, threads: int, options: argparse.Namespace) -> None:
    """The transform alone; the certificate is the error of φ(x)·φ(z) on a thousand pairs of rows."""
    cell = f"random features n={n} d={d} m={m}"
    if options.only not in cell:
        return
    from sklearn.kernel_approximation import RBFSampler

    X = np.random.default_rng(0).normal(size=(n, d))
    length = float(np.sqrt(d))
    theirs = RBFSampler(gamma=0.5 / length**2, n_components=m, random_state=0).fit(X)
    ours = mercer.RandomFeatures(mercer.RBF(length), m, random_state=0).fit(X)
    i, j = np.random.default_rng(1).integers(n, size=(2, 1000))
    exact = np.exp(-0.5 / length**2 * ((X[i] - X[j]) ** 2).sum(axis=1))

    def products(phi: Any) -> np.ndarray:
        return np.einsum("ij,ij->i", phi[i], phi[j])

    sides: dict[str, Callable[[], Any]] = {
        "sklearn": lambda: products(theirs.transform(X)),
        "mercer": lambda: products(ours.transform(X)),
    }
    found = race(cell, sides, threads, options.repeat)
    report(cell, threads, found, None, lambda _, v: f"rms error {np.sqrt(np.mean((v - exact) ** 2)):.1e}")


def _peer(length: float, m: int, alpha: float) -> Any:
    from sklearn.kernel_approximation import Nystroem

    return _pipeline(Nystroem(gamma=0.5 / length**2, n_components=m, random_state=0), alpha)


def _pipeline(features: Any, alpha: float) -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    return make_pipeline(features, Ridge(alpha=alpha, fit_intercept=False, solver="cholesky", copy_X=False))


def logistic(n: int, d: int, m: int, threads: int, options: argparse.Namespace) -> None:
    cell = f"logistic n={n} d={d} m={m}"
    if options.only not in cell:
        return
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    X, y = data.classes(n + n // 10, d)
    X_test, y_test = X[n:], y[n:]
    X, y = X[:n], y[:n]
    length = float(np.sqrt(d))
    sides: dict[str, Callable[[], Any]] = {
        "sklearn": lambda: make_pipeline(
            Nystroem(gamma=0.5 / length**2, n_components=m, random_state=0),
            LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000),
        ).fit(X, y),
        "mercer": lambda: mercer.FalkonClassifier(mercer.RBF(length), m, 1.0, random_state=0).fit(X, y),
    }
    found = race(cell, sides, threads, options.repeat)

    def describe(name: str, model: Any) -> str:
        c = getattr(model, "certificate_", None)
        proof = "" if c is None else f", gap {c.gap:.1e}, {c.status}"
        return f"accuracy {model.score(X_test, y_test):.4%}{proof}"

    report(cell, threads, found, None, describe)


def several(n: int, d: int, k: int, m: int, threads: int, options: argparse.Namespace) -> None:
    """Many classes, at the same penalty α = 1 / C, and with a penalty that each side chooses by the data."""
    cell = f"logistic n={n} d={d} m={m} classes={k}"
    chosen = f"{cell} penalty chosen"
    X, y = data.mixture(n + n // 4, d, k)
    X_test, y_test = X[n:], y[n:]
    X, y = X[:n], y[:n]
    length = float(np.sqrt(X.var(axis=0).sum()))
    kernel = mercer.RBF(length)

    def describe(name: str, model: Any) -> str:
        c = getattr(model, "certificate_", None)
        proof = "" if c is None else f", alpha {model.alpha_:.2g}, gradient {c.residual:.1e}, {c.status}"
        return f"accuracy {model.score(X_test, y_test):.4%}{proof}"

    for name, alpha in ((cell, 1.0), (chosen, None)):
        if options.only not in name:
            continue
        sides: dict[str, Callable[[], Any]] = {
            "sklearn": lambda alpha=alpha: _logistic_peer(length, m, alpha).fit(X, y),
            "mercer": lambda alpha=alpha: mercer.FalkonClassifier(kernel, m, alpha, random_state=0).fit(X, y),
        }
        with warnings.catch_warnings():
            # scikit-learn stops after 100 steps.
            warnings.simplefilter("ignore")
            found = race(name, sides, threads, options.repeat)
        report(name, threads, found, None, describe)


def _logistic_peer(length: float, m: int, alpha: float | None) -> Any:
    """scikit-learn's, with C = 1 / α; for None it tries three values of C on three folds, fewer than its ten
    and five.
    """
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    model: Any = GridSearchCV(LogisticRegression(), {"C": [1.0, 100.0, 1e4]}, cv=3)
    if alpha is not None:
        model = LogisticRegression(C=1 / alpha)
    return make_pipeline(Nystroem(gamma=0.5 / length**2, n_components=m, random_state=0), model)
