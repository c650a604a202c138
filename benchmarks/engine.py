"""The engine against its peers: Grams, composite kernels with gradients, matrix-free products, a CG solve."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.measure import HEAD, Machine, race, report
from mercer import RBF, _core, parse
from mercer.gram import Dense, Tiles
from mercer.memory import room
from mercer.solve import cg, nystrom

# Widest first.
INSTRUCTION_SETS = ("avx512", "avx2", "baseline")
CO2 = (
    "4356.0*RBF(67.0) + 5.76*RBF(90.0)*Periodic(1.0, lengthscale=1.3) "
    "+ 0.4356*RationalQuadratic(1.2, alpha=0.78) + White(0.0361)"
)


def run(options: argparse.Namespace) -> None:
    machine = Machine.measure()
    print(machine)
    print(
        "ratio = strongest peer / mercer; roof = share of the arithmetic and memory limit; "
        "certificate = largest error"
    )
    print(HEAD)
    for threads in options.threads:
        for suite in (grams, sparse_grams, composites, products, solves):
            suite(options, machine, threads)


def _wanted(options: argparse.Namespace, cell: str) -> bool:
    return options.only in cell


def grams(options: argparse.Namespace, machine: Machine, threads: int) -> None:
    """RBF Grams in fresh memory and in memory that is given, with each instruction set of this machine."""
    n = 300 if options.quick else 8000
    for d in (3, 20, 100, 784):
        for dtype in (np.float64, np.float32):
            X = np.random.default_rng(d).normal(size=(n, d)).astype(dtype)
            fresh = f"gram RBF n={n} d={d} {X.dtype.name}"
            if _wanted(options, fresh):
                sides = {**peers.gram_peers(X), **_each_instruction_set(X, None)}
                _report_gram(fresh, options, machine, threads, X, sides)
            reused = f"gram RBF reused n={n} d={d} {X.dtype.name}"
            if _wanted(options, reused):
                out = np.empty((n, n), dtype)
                sides = {**peers.reusing_gram_peers(X, out), **_each_instruction_set(X, room((n, n), dtype))}
                _report_gram(reused, options, machine, threads, X, sides)


def _each_instruction_set(X: np.ndarray, out: np.ndarray | None) -> dict[str, Any]:
    """The Gram by the widest instruction set ("mercer"), then by each narrower one."""
    kernel = RBF(float(np.sqrt(X.shape[1])))
    widest = _core.instruction_set()

    def by(name: str) -> np.ndarray:
        _core.force_isa(name)
        try:
            return Dense(kernel, X, out=out).array
        finally:
            _core.force_isa(widest)

    sides = {"mercer": lambda: by(widest)}
    for name in INSTRUCTION_SETS[INSTRUCTION_SETS.index(widest) + 1 :]:
        sides[f"mercer {name}"] = lambda name=name: by(name)
    return sides


def _report_gram(
    cell: str,
    options: argparse.Namespace,
    machine: Machine,
    threads: int,
    X: np.ndarray,
    sides: dict[str, Any],
) -> None:
    n, d = X.shape
    half = n * n / 2
    limit = machine.limit(
        flops=half * 2 * d,
        exps=half,
        written=n * n * X.itemsize,
        threads=threads,
        single=X.dtype == np.float32,
        fresh="reused" not in cell,
    )
    i, j = np.random.default_rng(0).integers(n, size=(2, 2000))
    exact = np.exp(-0.5 / d * ((X[i].astype(np.longdouble) - X[j]) ** 2).sum(axis=1))
    # Of each matrix only these entries are kept, so that there is never more than one in memory.
    entries = {name: lambda call=call: np.asarray(call())[i, j] for name, call in sides.items()}
    report(
        cell, threads, race(cell, entries, threads, options.repeat), limit, _error(lambda found: found, exact)
    )


def sparse_grams(options: argparse.Namespace, machine: Machine, threads: int) -> None:
    """Few columns, many columns, and words: some columns that most rows have and many that few have."""
    from sklearn.metrics.pairwise import rbf_kernel

    n = 300 if options.quick else 8000
    for d, stored, words in ((123, 14, True), (1000, 20, False), (50_000, 100, True)):
        cell = f"gram RBF sparse n={n} d={d}, {stored} a row"
        if not _wanted(options, cell):
            continue
        X = data.sparse_rows(n, d, stored, words=words)
        kernel = RBF(gamma=1 / stored)
        sides = {
            "sklearn": lambda X=X, g=1 / stored: rbf_kernel(X, gamma=g),
            "mercer": lambda X=X, k=kernel: Dense(k, X).array,
        }
        i, j = np.random.default_rng(0).integers(n, size=(2, 2000))
        exact = np.exp(-(X[i] - X[j]).power(2).sum(axis=1).A1 / stored)
        pick = _error(lambda K, i=i, j=j: K[i, j], exact)
        report(cell, threads, race(cell, sides, threads, options.repeat), None, pick)


def _error(pick: Any, exact: np.ndarray) -> Any:
    scale = float(np.abs(exact).max())
    return lambda name, value: f"max error {float(np.abs(pick(value) - exact).max()) / scale:.1e}"


def composites(options: argparse.Namespace, machine: Machine, threads: int) -> None:
    n = 200 if options.quick else 2000
    kernel = parse(CO2)
    for d in (1, 8):
        rng = np.random.default_rng(d)
        X = rng.uniform(0, 45, size=(n, d))
        W = rng.normal(size=(n, n))
        theirs = peers.sklearn_co2(d)
        tiny = peers.tinygp_co2(X)
        exps = n * n / 2 * 5

        cell = f"composite value n={n} d={d}"
        if _wanted(options, cell):
            sides: dict[str, Any] = {"sklearn": lambda X=X, k=theirs: k(X)}
            if tiny is not None:
                sides["tinygp"] = tiny[0]
            sides["mercer"] = lambda X=X: Dense(kernel, X).array
            limit = machine.limit(flops=n * n * d, exps=exps, written=8 * n * n, threads=threads)
            rows = rng.integers(n, size=5)
            exact = np.asarray(kernel.block(*_two(X, rows)))
            report(
                cell,
                threads,
                race(cell, sides, threads, options.repeat),
                limit,
                _composite_error(rows, exact, d),
            )

        cell = f"composite value+gradient n={n} d={d}"
        if _wanted(options, cell):
            sides = {
                "sklearn": lambda X=X, W=W, k=theirs: np.einsum("ij,ijp->p", W, k(X, eval_gradient=True)[1])
            }
            if tiny is not None:
                both, value = tiny[1](W), tiny[0]
                sides["tinygp"] = lambda both=both, value=value: (value(), both())[1]
            sides["mercer"] = lambda X=X, W=W: Dense(kernel, X).contract(W=W)
            report(
                cell, threads, race(cell, sides, threads, options.repeat), None, _gradient_error(kernel, X, W)
            )


def _two(X: np.ndarray, rows: np.ndarray) -> tuple[Any, Any]:
    from mercer.arrays import Rows

    return Rows(X[rows]), Rows(X)


def _composite_error(rows: np.ndarray, exact: np.ndarray, d: int) -> Any:
    def say(name: str, K: Any) -> str:
        if d > 1 and name != "mercer":
            return "another kernel: its periodic part takes the norm"
        off = np.ones_like(exact, dtype=bool)
        off[np.arange(len(rows)), rows] = False
        return f"max error {np.abs((np.asarray(K)[rows] - exact)[off]).max() / np.abs(exact).max():.1e}"

    return say


def _gradient_error(kernel: Any, X: np.ndarray, W: np.ndarray) -> Any:
    def say(name: str, gradient: Any) -> str:
        if name != "mercer":
            return f"{len(gradient)} parameters"
        theta, h, worst = kernel.theta, 1e-5, 0.0
        for i in range(len(theta)):
            step = h * np.eye(len(theta))[i]
            up, down = (
                float((W * Dense(kernel.with_theta(theta + s * step), X).array).sum()) for s in (1, -1)
            )
            worst = max(worst, abs(gradient[i] - (up - down) / (2 * h)) / (1 + np.abs(gradient).max()))
        return f"{len(gradient)} parameters, against differences {worst:.1e}"

    return say


def products(options: argparse.Namespace, machine: Machine, threads: int) -> None:
    for n in (500,) if options.quick else (20_000, 100_000):
        for d in (3, 10, 50):
            cell = f"K v n={n} d={d}"
            if not _wanted(options, cell):
                continue
            rng = np.random.default_rng(d)
            X, v = rng.normal(size=(n, d)), rng.normal(size=n)
            kernel = RBF(float(np.sqrt(d)))
            few = n > 50_000
            sides = {} if few else peers.product_peers(X, v)
            sides["mercer"] = lambda k=kernel, X=X, v=v: Tiles(k, X) @ v
            sides["mercer f32"] = lambda k=kernel, X=X, v=v: Tiles(k, X.astype(np.float32)) @ v
            half = n * n / 2  # K is symmetric: half of the entries, each used twice
            limit = machine.limit(flops=half * (2 * d + 4), exps=half, written=0, threads=threads)
            rows = rng.integers(n, size=20)
            exact = np.asarray(Tiles(kernel, X).block(rows, slice(None)) @ v)
            found = race(cell, sides, threads, options.repeat)
            report(cell, threads, found, limit, _error(lambda y, rows=rows: y[rows], exact))


def solves(options: argparse.Namespace, machine: Machine, threads: int) -> None:
    n, d = (800, 8) if options.quick else (50_000, 8)
    cell = f"CG (K + 0.1 I) a = y n={n} d={d}"
    if not _wanted(options, cell):
        return
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=n)
    K = Tiles(RBF(float(np.sqrt(d))), X)
    rank = min(1000, n // 4)

    def preconditioned() -> Any:
        P = nystrom(K, 0.1, rank=rank, sketch="columns", random_state=0)
        return cg(K, y, shift=0.1, tol=1e-6, preconditioner=P)

    sides = {"mercer plain": lambda: cg(K, y, shift=0.1, tol=1e-6, max_iter=40), "mercer": preconditioned}
    found = race(cell, sides, threads, 1)
    report(cell, threads, found, None, lambda name, s: str(s.certificate).replace("\n", "; "))
