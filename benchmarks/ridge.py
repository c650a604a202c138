"""Kernel ridge beside scikit-learn and numpy + LAPACK: exact to a residual of 1e-10, by conjugate gradients,
and large.

The certificate column holds the relative residual ‖(K + αI)c - y‖ / ‖y‖, computed for every side by the same
products.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.measure import HEAD, race, report


@dataclass
class Cell:
    name: str
    X: np.ndarray
    y: np.ndarray
    alpha: float
    gamma: float
    sides: dict[str, dict[str, Any]] = field(default_factory=dict)  # mercer's rows: name -> options
    peers: bool = True


def run(options: argparse.Namespace) -> None:
    print("ratio = strongest peer / mercer; residual of the full system on every side")
    print(HEAD)
    for threads in options.threads:
        for cell in cells(options):
            if options.only in cell.name:
                fit(cell, threads, options)


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The ridge cells, for this suite and for any that wants them."""
    n = 400 if options.quick else 10_000
    X, y = data.waves(n, 10)
    sides = {
        "mercer exact": {"solver": "cholesky"},
        "mercer cg": {"solver": "cg"},
        "mercer": {"solver": "auto"},
    }
    for alpha in (1.0, 0.01):
        yield Cell(f"ridge n={n} d=10 alpha={alpha:g}", X, y, alpha, 0.1, sides)
    large = 800 if options.quick else 100_000
    X, y = data.waves(large, 10)
    yield Cell(
        f"ridge n={large} d=10 alpha=1",
        X,
        y,
        1.0,
        0.1,
        {"mercer": {"solver": "cg", "tol": 1e-6}},
        peers=False,
    )


def fit(cell: Cell, threads: int, options: argparse.Namespace) -> None:
    kernel = mercer.RBF(gamma=cell.gamma)

    def side(parameters: dict[str, Any]) -> Callable[[], Any]:
        return lambda: mercer.KernelRidge(kernel, cell.alpha, **parameters).fit(cell.X, cell.y)

    sides: dict[str, Callable[[], Any]] = peers(cell) if cell.peers else {}
    sides |= {name: side(parameters) for name, parameters in cell.sides.items()}
    found = race(cell.name, sides, threads, options.repeat)
    report(cell.name, threads, found, None, lambda name, model: describe(cell, name, model))


def peers(cell: Cell) -> dict[str, Callable[[], Any]]:
    from scipy.linalg import cho_factor, cho_solve
    from sklearn.kernel_ridge import KernelRidge

    def lapack() -> np.ndarray:
        X, norms = cell.X, np.einsum("ij,ij->i", cell.X, cell.X)
        K = X @ X.T
        K *= 2
        K -= norms[:, None]
        K -= norms[None, :]
        K *= cell.gamma
        np.exp(K, out=K)
        K[np.diag_indices_from(K)] += cell.alpha
        factor = cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve(factor, cell.y, check_finite=False)

    return {
        "sklearn": lambda: KernelRidge(alpha=cell.alpha, kernel="rbf", gamma=cell.gamma).fit(cell.X, cell.y),
        "LAPACK": lapack,
    }


def describe(cell: Cell, name: str, model: Any) -> str:
    c = model if isinstance(model, np.ndarray) else model.dual_coef_
    if name.startswith("mercer") and not cell.peers:
        return str(model.certificate_).splitlines()[0]
    rest = cell.y - mercer.gram.Tiles(mercer.RBF(gamma=cell.gamma), cell.X) @ c - cell.alpha * c
    residual = f"residual {np.linalg.norm(rest) / np.linalg.norm(cell.y):.1e}"
    return residual if not name.startswith("mercer") else f"{residual}, {model.certificate_.method}"
