"""Gaussian process classification and the Gaussian process twins beside scikit-learn,
hyperparameters searched on all sides.

The certificate column holds the log evidence (larger is better; the same problem on all sides for two classes
and for the twins), the accuracy on the training rows, and for mercer the residual of Newton's method. With
three classes the peer and mercer's twin of it solve three problems of two classes each; "mercer softmax" is
the machine that solves one problem of three, whose evidence means something else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.measure import HEAD, race, report


def run(options: argparse.Namespace) -> None:
    print("ratio = scikit-learn / mercer; L-BFGS-B from the same start")
    print(HEAD)
    for threads in options.threads:
        for name, sides in cells(options):
            if options.only in name:
                report(name, threads, race(name, sides, threads, options.repeat), None, describe)


def cells(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Callable[[], Any]]]]:
    import sklearn.gaussian_process as peer
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    from mercer import sklearn as twin

    sizes = (60,) if options.quick else (200, 500, 1000)
    for n in sizes:
        X, y = data.moons(n)
        yield (
            f"2 classes n={n} d=2",
            {
                "sklearn": lambda X=X, y=y: peer.GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y),
                "mercer": lambda X=X, y=y: mercer.GaussianProcessClassifier("1.0*RBF(1.0)").fit(X, y),
            },
        )
    for n in sizes[:2]:
        X, y = data.moons(n)
        bands = np.digitize(X[:, 0], [-0.2, 1.2])
        yield (
            f"3 classes n={n} d=2",
            {
                "sklearn": lambda X=X, y=bands: peer.GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y),
                "mercer softmax": lambda X=X, y=bands: mercer.GaussianProcessClassifier("1.0*RBF(1.0)").fit(
                    X, y
                ),
                "mercer": lambda X=X, y=bands: twin.GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y),
            },
        )
    for n in sizes:
        X, y = data.waves(n, 5)
        kernel = 1.0 * RBF(np.ones(5)) + WhiteKernel(0.1)
        yield (
            f"regression twin n={n} ARD d=5",
            {
                "sklearn": lambda X=X, y=y, k=kernel: peer.GaussianProcessRegressor(k).fit(X, y),
                "mercer": lambda X=X, y=y, k=kernel: twin.GaussianProcessRegressor(k).fit(X, y),
            },
        )


def describe(name: str, model: Any) -> str:
    if isinstance(model, mercer.GaussianProcessClassifier):
        return f"log evidence {model.log_evidence_:.6f}, residual {model.certificate_.residual:.1e}"
    return f"log evidence {model.log_marginal_likelihood_value_:.6f}"
