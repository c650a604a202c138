"""Support vector machines beside scikit-learn (LIBSVM) and scikit-learn-intelex (oneDAL),
at the same tolerance.

The certificate column holds the dual objective (larger is better; the same problem on all sides), the support
vectors and the accuracy on held-out rows; for mercer also the duality gap it proves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.measure import HEAD, race, report
from benchmarks.peers import have


@dataclass
class Cell:
    name: str
    X: Any
    y: np.ndarray
    make: Callable[[Any, str], Any]  # (library, "mercer" or "peer") -> an unfitted model
    test: tuple[Any, np.ndarray] | None = None
    gamma: float = 1.0
    linear: str = ""  # "with a bias" or "without a bias": a linear kernel, beside liblinear too


def run(options: argparse.Namespace) -> None:
    print("ratio = strongest peer / mercer; all sides at tol = 1e-3")
    print(HEAD)
    warm_up()
    for threads in options.threads:
        for cell in cells(options):
            if options.only in cell.name:
                fit(cell, threads, options)


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    n = 400 if options.quick else 20_000
    for d in (10,) if options.quick else (10, 50, 200):
        X, y = data.classes(n, d)
        for C in (1.0, 10.0, 100.0):
            yield Cell(f"SVC n={n} d={d} C={C:g}", X, y, _svc(C, 1 / d), gamma=1 / d)
    X, y = data.moons(n)
    for C in (1.0, 100.0):
        yield Cell(f"SVC moons n={n} C={C:g}", X, y, _svc(C, 1.0))
    for small in (100, 200, 500):
        X, y = data.classes(small, 10)
        yield Cell(f"SVC n={small} d=10 C=1", X, y, _svc(1.0, 0.1), gamma=0.1)
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    yield Cell("SVC digits", X / 16, y, _svc(1.0, 0.05), gamma=0.05)
    yield from _many_classes(options)
    X, y = data.waves(n, 10)
    for C in (1.0,) if options.quick else (1.0, 10.0):
        yield Cell(f"SVR n={n} d=10 C={C:g}", X, y, _svr(C, 0.1), gamma=0.1)
    X, _ = data.classes(n, 20)
    yield Cell(f"one-class n={n} d=20", X, np.ones(n), _one_class(0.05), gamma=0.05)
    yield from _linear(options)
    if not options.quick:
        yield from _real(options.data)


def _linear(options: argparse.Namespace) -> Iterator[Cell]:
    """Linear kernels: text-like sparse rows, real text, and many rows of few columns."""
    n, d = (400, 1000) if options.quick else (20_000, 50_000)
    X, y = data.documents(n, d, 100)
    for bias in (False, True):
        yield Cell(f"linear text n={n} d={d}{_said(bias)}", X, y, _straight(1.0, bias), linear=_said(bias))
    rows = 500 if options.quick else 50_000
    X, y = data.classes(rows, 20)
    # without a bias alone: LIBSVM, the peer with one, takes five minutes
    yield Cell(f"linear n={rows} d=20{_said(False)}", X, y, _straight(1.0, False), linear=_said(False))
    found = None if options.quick else data.real(options.data, "sms_spam")
    if found is not None:
        X = data.tf_idf(found["text"])
        for bias in (False, True):
            yield Cell(
                f"linear SMS spam{_said(bias)}", X, found["y"], _straight(1.0, bias), linear=_said(bias)
            )


def _said(bias: bool) -> str:
    return " with a bias" if bias else " without a bias"


def _straight(C: float, bias: bool) -> Callable[[Any, str], Any]:
    """LinearSVC has no true bias, and SVC of scikit-learn has always one."""

    def make(library: Any, side: str) -> Any:
        if side == "mercer":
            return library.SVC("Linear()", C=C, tol=1e-3, fit_intercept=bias)
        if bias:
            return library.SVC(kernel="linear", C=C, tol=1e-3, cache_size=1000)
        return library.LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-3, max_iter=10_000)

    return make


def _many_classes(options: argparse.Namespace) -> Iterator[Cell]:
    """One problem for each pair of classes: narrow rows and many pairs, wide rows and fewer."""
    X, y = data.letters(600 if options.quick else 16_000)
    gamma = float(1 / (X.shape[1] * X.var()))
    yield Cell(f"SVC letters n={len(y)}", X, y, _svc(1.0, gamma), gamma=gamma)
    for n in (300,) if options.quick else (10_000, 20_000):
        X, y = data.pixels(n)
        gamma = float(1 / (X.shape[1] * X.var()))
        yield Cell(f"SVC pixels n={n}", X, y, _svc(1.0, gamma), gamma=gamma)


def _real(folder: str) -> Iterator[Cell]:
    for name, C, gamma in (("usps", 1.0, 0.0066), ("a9a", 8.0, 0.02), ("ijcnn1", 32.0, 2.0)):
        found = data.real(folder, name)
        if found is None:
            print(f"    ({name} left out: no such data in {folder})")
            continue
        test = (found["X_test"], found["y_test"])
        yield Cell(f"SVC {name} C={C:g}", found["X_train"], found["y_train"], _svc(C, gamma), test, gamma)


def _svc(C: float, gamma: float) -> Callable[[Any, str], Any]:
    def make(library: Any, side: str) -> Any:
        if side == "mercer":
            return library.SVC(mercer.RBF(gamma=gamma), C=C, tol=1e-3)
        return library.SVC(C=C, gamma=gamma, tol=1e-3, cache_size=1000)

    return make


def _svr(C: float, gamma: float) -> Callable[[Any, str], Any]:
    def make(library: Any, side: str) -> Any:
        if side == "mercer":
            return library.SVR(mercer.RBF(gamma=gamma), C=C, epsilon=0.1, tol=1e-3)
        return library.SVR(C=C, gamma=gamma, epsilon=0.1, tol=1e-3, cache_size=1000)

    return make


def _one_class(gamma: float) -> Callable[[Any, str], Any]:
    def make(library: Any, side: str) -> Any:
        if side == "mercer":
            return library.OneClassSVM(mercer.RBF(gamma=gamma), nu=0.1, tol=1e-3)
        return library.OneClassSVM(nu=0.1, gamma=gamma, tol=1e-3, cache_size=1000)

    return make


def libraries() -> dict[str, Any]:
    from sklearn import svm

    out: dict[str, Any] = {"sklearn": svm}
    if have("sklearnex"):
        from sklearnex import svm as intel

        out["oneDAL"] = intel
    return out


def warm_up() -> None:
    """One tiny fit on each side: modules that load when first used are not what is timed."""
    X, y = data.classes(100, 10)
    for library in (*libraries().values(), mercer):
        library.SVC(C=1.0).fit(X, y)
        library.SVR(C=1.0).fit(X, y)


def fit(cell: Cell, threads: int, options: argparse.Namespace) -> None:
    def side(library: Any, kind: str) -> Callable[[], Any]:
        return lambda: cell.make(library, kind).fit(cell.X, cell.y)

    sides = {name: side(library, "peer") for name, library in libraries().items()}
    if "without" in cell.linear:
        sides = {"liblinear": sides["sklearn"]}
    sides["mercer"] = side(mercer, "mercer")
    found = race(cell.name, sides, threads, options.repeat)
    report(cell.name, threads, found, None, lambda name, model: describe(cell, name, model))


def describe(cell: Cell, name: str, model: Any) -> str:
    if cell.linear:
        return describe_linear(cell, name, model)
    parts = []
    classes = getattr(model, "classes_", ())
    if len(classes) <= 2:
        parts.append(f"dual {dual(cell, model):.6f}")
    parts.append(f"{len(model.support_)} SV")
    if cell.test is not None:
        parts.append(f"accuracy {model.score(*cell.test):.4%}")
    if name == "mercer":
        c = model.certificate_
        parts.append(f"gap {c.gap:.1e}, kkt {c.kkt:.1e}, {c.status}")
    return ", ".join(parts)


def describe_linear(cell: Cell, name: str, model: Any) -> str:
    """The primal objective, from the weights and the offset alone: the same formula for every side."""
    w = getattr(model, "coef_", None)
    if w is None:
        w = model.dual_coef_ @ model.support_vectors_
    w = np.asarray(w.todense() if hasattr(w, "todense") else w).ravel()
    signs = np.where(cell.y == model.classes_[1], 1.0, -1.0)
    # LIBSVM leaves out the last columns where no support vector has a number in them
    values = cell.X[:, : len(w)] @ w + float(np.ravel(model.intercept_)[0])
    loss = float(np.maximum(0.0, 1.0 - signs * values).sum())
    parts = [f"primal {0.5 * float(w @ w) + loss:.6f}"]
    if name == "mercer":
        c = model.certificate_
        parts.append(f"dual {c.dual:.6f}, gap {c.gap:.1e}, kkt {c.kkt:.1e}, {c.status}, {c.method}")
    return ", ".join(parts)


def dual(cell: Cell, model: Any) -> float:
    """The dual objective from the model's own coefficients: the same formula for every side."""
    beta = np.asarray(
        model.dual_coef_.todense() if hasattr(model.dual_coef_, "todense") else model.dual_coef_
    ).ravel()
    S = model.support_vectors_
    K = mercer.RBF(gamma=cell.gamma).gram(S)
    quadratic = 0.5 * float(beta @ (K @ beta))
    kind = type(model).__name__
    if kind == "OneClassSVM":
        return -quadratic
    if kind == "SVR":
        return float(beta @ cell.y[model.support_]) - 0.1 * float(np.abs(beta).sum()) - quadratic
    return float(np.abs(beta).sum()) - quadratic
