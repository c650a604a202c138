"""Small problems, where what surrounds the arithmetic is most of the time: the machines and their twins in
`mercer.sklearn` beside scikit-learn, fit and predict.

All sides solve the same problem: the same kernel, prices and tolerance. Of a Gaussian process there are two
cells: with the kernel as it is, and with the search for its parameters. There the twin does the work of
scikit-learn, from the same start between the same bounds; the native machine also searches from the scales
of the data. The certificate column holds what the fit is judged by, the same formula on all sides: the dual
objective of SVC and SVR, the sum of squared residuals and penalty of ridge, the log evidence of a process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import mercer
from benchmarks import data, measure, svm
from benchmarks.measure import HEAD, race, report

SIZES = (30, 50, 100, 200, 500)
COLUMNS = 10
GAMMA = 0.1
NOISE = 0.1
# A call takes less than a millisecond: so many are timed together, so often.
TOGETHER = 10
OFTEN = 5


@dataclass
class Cell:
    name: str
    targets: str  # "labels" or "numbers"
    make: Callable[[str], Any]  # "sklearn", "mercer" or "mercer twin" -> an unfitted model
    judge: Callable[[Any, np.ndarray, np.ndarray], str]
    together: int = TOGETHER
    often: int = OFTEN


def run(options: argparse.Namespace) -> None:
    print("ratio = scikit-learn / mercer, and / its twin; each of several calls in a row")
    print(HEAD)
    # No call here needs memory that is new to the process.
    measure.warm_bytes = 0
    for threads in options.threads:
        for cell in CELLS:
            for n in (20, 30) if options.quick else SIZES:
                for what in ("fit", "predict"):
                    name = f"{cell.name} {what} n={n}"
                    if options.only in name:
                        _measure(cell, name, what, n, threads, options)


def _measure(cell: Cell, name: str, what: str, n: int, threads: int, options: argparse.Namespace) -> None:
    made = data.classes if cell.targets == "labels" else data.waves
    X, y = made(n, COLUMNS)
    new = np.ascontiguousarray(X[::-1]) + 0.1
    models = {side: cell.make(side).fit(X, y) for side in ("sklearn", "mercer", "mercer twin")}

    calls = cell.together if what == "fit" else TOGETHER

    def several(side: str) -> Callable[[], None]:
        def call() -> None:
            for _ in range(calls):
                if what == "fit":
                    cell.make(side).fit(X, y)
                else:
                    models[side].predict(new)

        return call

    repeat = options.repeat if options.quick else options.repeat * cell.often
    found = {
        side: replace(t, best=t.best / calls, median=t.median / calls)
        for side, t in race(name, {side: several(side) for side in models}, threads, repeat).items()
    }

    def judged(side: str, value: Any) -> str:
        del value
        return _judged(cell, models[side], X, y)

    report(name, threads, found, None, judged)


def _judged(cell: Cell, model: Any, X: np.ndarray, y: np.ndarray) -> str:
    text = cell.judge(model, X, y)
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return text
    if certificate.gap is not None:
        text = f"{text}, gap {certificate.gap:.1e}"
    return f"{text}, {certificate.status}"


# ── the machines ────────────────────────────────────────────────────────────────────────────────────────────


def _svc(side: str) -> Any:
    if side == "mercer":
        return mercer.SVC(mercer.RBF(gamma=GAMMA))
    return _library(side, "svm").SVC(gamma=GAMMA)


def _svr(side: str) -> Any:
    if side == "mercer":
        return mercer.SVR(mercer.RBF(gamma=GAMMA), epsilon=0.1)
    return _library(side, "svm").SVR(gamma=GAMMA, epsilon=0.1)


def _ridge(side: str) -> Any:
    if side == "mercer":
        return mercer.KernelRidge(mercer.RBF(gamma=GAMMA), alpha=1.0)
    return _library(side, "kernel_ridge").KernelRidge(alpha=1.0, kernel="rbf", gamma=GAMMA)


def _process(side: str) -> Any:
    from sklearn.gaussian_process.kernels import RBF

    if side == "mercer":
        return mercer.GaussianProcessRegressor(mercer.RBF(2.0), noise=NOISE, optimizer=None)
    library = _library(side, "gaussian_process")
    return library.GaussianProcessRegressor(RBF(2.0), alpha=NOISE, optimizer=None)


def _searched(side: str) -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    if side == "mercer":
        ends = (1e-5, 1e5)
        kernel = 1.0 * mercer.RBF(2.0) + mercer.White(NOISE)
        return mercer.GaussianProcessRegressor(kernel.bounded(scale=ends, lengthscale=ends, noise=ends))
    library = _library(side, "gaussian_process")
    return library.GaussianProcessRegressor(ConstantKernel(1.0) * RBF(2.0) + WhiteKernel(NOISE))


def _library(side: str, module: str) -> Any:
    """The module of scikit-learn, or mercer's twins, which are in one place."""
    if side != "sklearn":
        return mercer.sklearn
    from importlib import import_module

    return import_module(f"sklearn.{module}")


# ── what a fit is judged by ─────────────────────────────────────────────────────────────────────────────────


def _dual(model: Any, X: np.ndarray, y: np.ndarray) -> str:
    cell = svm.Cell("", X, y, lambda library, side: None, gamma=GAMMA)
    return f"dual {svm.dual(cell, model):.6f}"


def _penalised(model: Any, X: np.ndarray, y: np.ndarray) -> str:
    left = y - model.predict(X)
    coef = np.ravel(model.dual_coef_)
    norm2 = float(coef @ (mercer.RBF(gamma=GAMMA).gram(X) @ coef))
    return f"objective {float(left @ left) + norm2:.6f}"


def _evidence(model: Any, X: np.ndarray, y: np.ndarray) -> str:
    if isinstance(model, mercer.GaussianProcessRegressor):
        return f"log evidence {model.log_evidence_:.6f}"
    return f"log evidence {float(model.log_marginal_likelihood_value_):.6f}"


CELLS = (
    Cell("SVC", "labels", _svc, _dual),
    Cell("SVR", "numbers", _svr, _dual),
    Cell("KernelRidge", "numbers", _ridge, _penalised),
    Cell("GP", "numbers", _process, _evidence),
    Cell("GP search", "numbers", _searched, _evidence, together=1, often=3),
)
