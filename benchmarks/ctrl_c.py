"""How long Ctrl-C takes to leave a fit, for every machine at a size where the fit takes many seconds.

    python -m benchmarks.ctrl_c [words of names …] [--seconds 4] [--limit | --listen]

Each fit runs in a process of its own, which presses the key on itself after some seconds and times what
follows. Times are of the processor, so that a busy machine does not change them: run it with
OMP_NUM_THREADS=1. With --listen nothing is pressed: it shows where in the whole fit a key would have waited
longest.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mercer
from mercer import (
    SVC,
    SVDD,
    SVR,
    Adatron,
    FalkonClassifier,
    FalkonRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLeastSquares,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    MercerMap,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    clock,
)
from mercer import sklearn as twins
from mercer.theory import hsic_test, mmd_test

MOST = int(os.environ.get("MERCER_ROWS", 10**9))  # rows of any task at most, for a quick look
TICK = 0.01  # seconds between two looks whether a key would be heard
K = "RBF(1.0)"
SET = ("RBF(1.0)", "RBF(0.3)", "RBF(3.0)")


def sample(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = min(n, MOST)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    numbers = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, numbers, (numbers > 0).astype(int)


def fit(model: Any, n: int, target: str = "numbers") -> Callable[..., Any]:
    X, numbers, labels = sample(n)
    y = {"numbers": numbers, "labels": labels, "none": None, "view": X[:, :3] ** 2}[target]

    def task(**limit: float) -> Any:
        return model.set_params(**limit).fit(X, y)

    return task


def predict(n: int) -> Callable[[], Any]:
    X, numbers, _ = sample(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidge(K, 1.0).fit(X[:1500], numbers[:1500])
    return lambda: model.predict(np.tile(X, (400, 1)))


def test(function: Any, n: int) -> Callable[[], Any]:
    X, _, _ = sample(n)
    return lambda: function(X, X + 0.01 * X**2, K)


def searched(width: int) -> Any:
    """The search for a witness against a kernel of one's own; a new kernel each time,
    because answers are kept.
    """
    return mercer.Custom(lambda x, z: float(np.exp(-np.sum(np.abs(x - z)) / (1 + width)))).validity(columns=3)


def choosing(machine: Any, n: int, target: str = "numbers", by: str = "auto") -> Callable[..., Any]:
    X, numbers, labels = sample(n)
    y = labels if target == "labels" else numbers

    def task(**limit: float) -> Any:
        return mercer.choose(machine, X, y, by=by, n_trials=50, max_rows=None, **limit)

    return task


TASKS: dict[str, Callable[[], Callable[[], Any]]] = {
    "SVC": lambda: fit(SVC(K, C=1e4, tol=1e-12), 15_000, "labels"),
    "SVC, probabilities": lambda: fit(SVC(K, C=1e4, tol=1e-9, probability=True), 5000, "labels"),
    "NuSVC": lambda: fit(NuSVC(K, nu=0.3, tol=1e-12), 15_000, "labels"),
    "SVR": lambda: fit(SVR(K, C=1e4, tol=1e-12), 15_000),
    "NuSVR": lambda: fit(NuSVR(K, C=1e4, tol=1e-12), 15_000),
    "OneClassSVM": lambda: fit(OneClassSVM(K, nu=0.5, tol=1e-14), 20_000, "none"),
    "SVDD": lambda: fit(SVDD(K, nu=0.5, tol=1e-14), 20_000, "none"),
    "KernelPerceptron": lambda: fit(KernelPerceptron(K, max_iter=1000), 8000, "labels"),
    "Adatron": lambda: fit(Adatron(K, C=1e4, max_iter=100_000, tol=1e-9), 5000, "labels"),
    "MultipleKernelClassifier": lambda: fit(MultipleKernelClassifier(SET, C=100.0), 6000, "labels"),
    "KernelRidge, Cholesky": lambda: fit(KernelRidge(K, 1e-6, solver="cholesky"), 9000),
    "KernelRidge, conjugate gradients": lambda: fit(KernelRidge(K, 1e-6, solver="cg"), 20_000),
    "KernelRidgeCV": lambda: fit(KernelRidgeCV(K), 5000),
    "KernelLeastSquares": lambda: fit(KernelLeastSquares(K, max_iter=10**6, tol=0.0), 8000),
    "KernelMachine, logistic": lambda: fit(KernelMachine(K, "logistic", 1e-4), 4000, "labels"),
    "KernelMachine, hinge": lambda: fit(KernelMachine(K, "hinge", 1e-5), 12_000, "labels"),
    "KernelMachine, quantile": lambda: fit(KernelMachine(K, "quantile", 1e-4), 12_000),
    "GaussianProcessRegressor": lambda: fit(GaussianProcessRegressor("RBF(1.0) + White(0.1)"), 5000),
    "GaussianProcessRegressor, cg": lambda: fit(GaussianProcessRegressor("RBF(1.0) + White(0.1)"), 12_000),
    "GaussianProcessClassifier": lambda: fit(GaussianProcessClassifier(K), 2500, "labels"),
    "RelevanceVectorRegressor": lambda: fit(RelevanceVectorRegressor(K), 5000),
    "RelevanceVectorClassifier": lambda: fit(RelevanceVectorClassifier(K), 4000, "labels"),
    "MultipleKernelRegressor": lambda: fit(MultipleKernelRegressor(SET), 4000),
    "FalkonRegressor": lambda: fit(FalkonRegressor(K, 3000, 1e-6), 60_000),
    "FalkonClassifier": lambda: fit(FalkonClassifier(K, 1500, 1e-6), 60_000, "labels"),
    "KernelKMeans": lambda: fit(KernelKMeans(K, 20, n_init=20), 15_000, "none"),
    "KernelPCA": lambda: fit(KernelPCA(K, 300), 9000, "none"),
    "KernelCCA": lambda: fit(KernelCCA(K, 2), 6000, "view"),
    "MercerMap": lambda: fit(MercerMap(K, n_components=50), 5000, "none"),
    "Nystroem": lambda: fit(Nystroem(K, n_components=5000), 40_000, "none"),
    "predict": lambda: predict(20_000),
    "choose by leave-one-out": lambda: choosing(KernelRidge(K, 0.1), 3000),
    "choose by evidence": lambda: choosing(GaussianProcessRegressor(K), 3000),
    "choose by cross-validation, SVC": lambda: choosing(SVC(K), 4000, "labels"),
    "choose by cross-validation, process": lambda: choosing(GaussianProcessRegressor(K), 3000, by="cv"),
    "validity": lambda: lambda: [searched(width) for width in range(1000)],
    "twin of SVC": lambda: fit(twins.SVC(C=1e4, tol=1e-12), 12_000, "labels"),
    "twin of KernelRidge": lambda: fit(twins.KernelRidge(kernel="rbf", alpha=1e-6), 9000),
    "twin of KernelPCA": lambda: fit(twins.KernelPCA(300, kernel="rbf"), 9000, "none"),
    "twin of GaussianProcessRegressor": lambda: fit(twins.GaussianProcessRegressor(alpha=0.1), 3000),
    "mmd_test": lambda: test(mmd_test, 8000),
    "hsic_test": lambda: test(hsic_test, 6000),
}


def press(name: str, after: float) -> None:
    """Run one task, press Ctrl-C after some seconds, and print what left it and when."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    task = TASKS[name]()
    pressed = time.process_time() + after
    # The system presses: a thread of Python would have to wait for whoever holds the interpreter.
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, after)
    try:
        task()
    except KeyboardInterrupt as stop:
        # The timer counts in steps of some milliseconds, and may be early by one.
        late = max(1000 * (time.process_time() - pressed), 0.0)
        print(f"| {name} | {late:.0f} ms | {type(stop).__name__} |", flush=True)
        os._exit(0)
    late = time.process_time() - pressed
    if late > 0:
        print(f"| {name} | swallowed for {late:.1f} s | — |", flush=True)
    else:
        print(f"| {name} | the fit took {after + late:.1f} s only | — |", flush=True)
    os._exit(0)


def listen(name: str, seconds: float) -> None:
    """Run one task for some seconds, and print the longest time in which it would not have heard the key,
    and where.
    """
    task = TASKS[name]()
    began = heard = time.process_time()
    deaf, where = 0.0, "—"

    def tick(number: int, frame: Any) -> None:
        nonlocal heard, deaf, where
        now = time.process_time()
        if now - heard > deaf:
            deaf, where = now - heard, _own_line(frame)
        if now - began > seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt
        heard = time.process_time()

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    with contextlib.suppress(KeyboardInterrupt):
        task()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"| {name} | {1000 * deaf:.0f} ms | {where} |", flush=True)
    os._exit(0)


def _own_line(frame: Any) -> str:
    """The innermost line of mercer that is running."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("mercer."):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "outside"


def limited(name: str, seconds: float) -> None:
    """Run one task with `max_seconds`, and print when it ended and as what."""
    task = TASKS[name]()
    clock.now = time.process_time
    began = clock.now()
    try:
        found = task(max_seconds=seconds)
    except (ValueError, TypeError):
        # It has no such limit.
        os._exit(0)
    late = clock.now() - began - seconds
    certificate = found.certificate if name.startswith("choose") else found.certificate_
    print(f"| {name} | {late:+.2f} s | {certificate.status} |", flush=True)
    os._exit(0)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("words", nargs="*")
    reader.add_argument("--seconds", type=float, default=4.0)
    reader.add_argument("--one", action="store_true", help="run the one task of that name, here")
    reader.add_argument("--limit", action="store_true", help="no key: max_seconds, and how late the fit ends")
    reader.add_argument("--listen", action="store_true", help="no key: where it would have waited longest")
    reader.add_argument("--rows", type=int, help="at most so many of them, for a quick look")
    given = reader.parse_args()
    if given.one:
        warnings.simplefilter("ignore")
        run = limited if given.limit else listen if given.listen else press
        run(" ".join(given.words), given.seconds)
    what = "from Ctrl-C to the exception | which"
    if given.limit:
        what = "after max_seconds | status"
    elif given.listen:
        what = "deaf for | until"
    around = os.environ | ({} if given.rows is None else {"MERCER_ROWS": str(given.rows)})
    print(f"| machine | {what} |\n|---|---|---|", flush=True)
    for name in TASKS:
        if given.words and not any(word in name for word in given.words):
            continue
        command = [sys.executable, "-m", "benchmarks.ctrl_c", "--one", name, "--seconds", str(given.seconds)]
        command += ["--limit"] if given.limit else []
        command += ["--listen"] if given.listen else []
        try:
            subprocess.run(command, env=around, timeout=60 + given.seconds, check=False)
        except subprocess.TimeoutExpired:
            print(f"| {name} | no answer in 60 s | — |", flush=True)


if __name__ == "__main__":
    main()
