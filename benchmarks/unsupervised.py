"""Structure without labels beside scikit-learn (KernelPCA, arpack and randomized) and tslearn (KernelKMeans).

Kernel PCA: the certificate is the worst residual ‖K̃u - λu‖ / λ₁ of what each side found, by the same
formula, and the sum of its eigenvalues. mercer stops at 1e-8; "arpack 1e-8" is scikit-learn told to do the
same, its default being the last digit. Kernel K-means: the certificate is the inertia (smaller is better) and
the number of steps; tslearn starts from random labels and stops when the inertia falls by less than 1e-6,
mercer starts by k-means++ and stops when no row moves. Kernel tests: the peers are the tests as one writes
them in twenty lines of NumPy; the certificate is the statistic, the same on both sides, and the p-value.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.measure import HEAD, race, report
from benchmarks.peers import have
from mercer.machines.structure.centred import Centred


def run(options: argparse.Namespace) -> None:
    print("ratio = strongest peer / mercer")
    print(HEAD)
    for threads in options.threads:
        sizes = ((150, 4), (200, 5)) if options.quick else ((500, 20), (1000, 20), (4000, 20))
        for n, d in sizes:
            for source in ("noise", "classes"):
                components(source, n, d, 5 if options.quick else 10, threads, options)
        for n, d in ((200, 5),) if options.quick else ((1000, 20), (3000, 20)):
            for source in ("noise", "classes"):
                clusters(source, n, d, 10, threads, options)
        tiles(400 if options.quick else 20_000, 10, threads, options)
        for n in (60,) if options.quick else (1000,):
            two_samples(n, 5, threads, options)
            pairs(n, 5, threads, options)


def rows(source: str, n: int, d: int) -> np.ndarray:
    return data.classes(n, d)[0] if source == "classes" else np.random.default_rng(0).normal(size=(n, d))


def components(source: str, n: int, d: int, k: int, threads: int, options: argparse.Namespace) -> None:
    from sklearn.decomposition import KernelPCA

    name = f"KernelPCA {source} n={n} d={d} k={k}"
    if options.only not in name:
        return
    X, gamma = rows(source, n, d), 1 / d

    def peer(solver: str, **more: Any) -> Any:
        model = KernelPCA(k, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0, **more)
        return lambda: model.fit(X)

    sides = {
        "arpack": peer("arpack"),
        "arpack 1e-8": peer("arpack", tol=1e-8),
        "randomized": peer("randomized"),
        "mercer": lambda: mercer.KernelPCA(mercer.RBF(gamma=gamma), k, n_jobs=threads).fit(X),
    }
    found = race(name, sides, threads, options.repeat)
    K = Centred(mercer.RBF(gamma=gamma).gram(X))

    def certificate(_: str, model: Any) -> str:
        values, U = model.eigenvalues_, model.eigenvectors_
        worst = np.linalg.norm(K @ U - U * values, axis=0).max() / values[0]
        return f"residual {worst:.1e}, Σλ {values.sum():.9g}"

    report(name, threads, found, None, certificate)


def clusters(source: str, n: int, d: int, k: int, threads: int, options: argparse.Namespace) -> None:
    name = f"KernelKMeans {source} n={n} d={d} k={k}"
    if options.only not in name:
        return
    X, gamma = rows(source, n, d), 1 / d
    sides: dict[str, Any] = {}
    if have("tslearn"):
        from tslearn.clustering import KernelKMeans

        sides["tslearn"] = lambda: KernelKMeans(
            n_clusters=k, kernel="rbf", kernel_params={"gamma": gamma}, max_iter=100, random_state=0
        ).fit(X)
    for init in ("k-means++", "spectral"):
        side = "mercer" if init == "k-means++" else f"mercer {init[:4]}"
        sides[side] = lambda init=init: mercer.KernelKMeans(
            mercer.RBF(gamma=gamma), k, init=init, random_state=0, n_jobs=threads
        ).fit(X)
    K = mercer.RBF(gamma=gamma).gram(X)
    report(
        name, threads, race(name, sides, threads, options.repeat), None, lambda _, model: _inertia(K, model)
    )


def _inertia(K: Any, model: Any) -> str:
    """The inertia of the labels, Σ k(x, x) - Σ_j 1ᵀK_jj1 / n_j: the same formula for every side."""
    H = np.eye(int(model.labels_.max()) + 1)[model.labels_]
    sizes = np.maximum(H.sum(axis=0), 1)
    found = f"inertia {K.diag().sum() - (np.einsum('ij,ij->j', H, K @ H) / sizes).sum():.6g}"
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return f"{found}, {model.n_iter_} steps"
    bound = "" if certificate.dual is None else f", bound {certificate.dual:.6g}"
    return f"{found}{bound}, {certificate.iterations} steps, {certificate.status}"


def tiles(n: int, k: int, threads: int, options: argparse.Namespace) -> None:
    """K is never stored: the memory column is what counts."""
    name = f"KernelKMeans in tiles n={n} k={k}"
    if options.only not in name:
        return
    X = data.classes(n, 10)[0]
    sides = {
        "mercer": lambda: mercer.KernelKMeans(
            mercer.RBF(gamma=0.1), k, random_state=0, memory="64MiB" if n > 1000 else 1000, n_jobs=threads
        ).fit(X)
    }
    K = mercer.RBF(gamma=0.1).gram(X, memory="64MiB")
    report(name, threads, race(name, sides, threads, 1), None, lambda _, model: _inertia(K, model))


# ── kernel tests ────────────────────────────────────────────────────────────────────────────────────────────


def two_samples(n: int, d: int, threads: int, options: argparse.Namespace) -> None:
    name = f"mmd_test n={n} d={d}"
    if options.only not in name:
        return
    X, Z, kernel = _samples(n, d)
    sides = {
        "numpy": lambda: mmd_in_numpy(X, Z, float(d), 999),
        "mercer": lambda: mercer.theory.mmd_test(X, Z, kernel, random_state=0, n_jobs=threads),
    }
    report(name, threads, race(name, sides, threads, options.repeat), None, _tested)


def pairs(n: int, d: int, threads: int, options: argparse.Namespace) -> None:
    name = f"hsic_test n={n} d={d}"
    if options.only not in name:
        return
    X, Z, kernel = _samples(n, d)
    sides = {
        "numpy": lambda: hsic_in_numpy(X, Z, float(d), 499),
        "mercer": lambda: mercer.theory.hsic_test(
            X, Z, kernel, statistic="biased", random_state=0, n_jobs=threads
        ),
    }
    report(name, threads, race(name, sides, threads, options.repeat), None, _tested)


def _samples(n: int, d: int) -> tuple[np.ndarray, np.ndarray, Any]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, d)), rng.normal(0.05, 1.0, size=(n, d)), mercer.RBF(float(np.sqrt(d)))


def _tested(_: str, found: Any) -> str:
    if isinstance(found, tuple):
        return f"statistic {found[0]:.9g}, p {found[1]:.3f}"
    return f"statistic {found.statistic:.9g}, p {found.p_value:.3f}"


def _gaussian(A: np.ndarray, squared_length: float) -> np.ndarray:
    size = np.einsum("ij,ij->i", A, A)
    return np.exp(-np.maximum(size[:, None] + size - 2 * A @ A.T, 0) / (2 * squared_length))


def mmd_in_numpy(X: np.ndarray, Z: np.ndarray, squared_length: float, count: int) -> tuple[float, float]:
    """The unbiased MMD² and its p-value; all permutations in one product."""
    m, n = len(X), len(Z)
    K = _gaussian(np.vstack([X, Z]), squared_length)
    np.fill_diagonal(K, 0.0)
    rng = np.random.default_rng(0)
    S = np.zeros((m + n, count + 1))
    S[:m, 0] = 1.0
    for j in range(1, count + 1):
        S[rng.permutation(m + n)[:m], j] = 1.0
    inside = np.einsum("ij,ij->j", S, K @ S)
    sums = K.sum(axis=0)
    reach = sums @ S
    outside = sums.sum() - 2 * reach + inside
    value = inside / (m * (m - 1)) + outside / (n * (n - 1)) - 2 * (reach - inside) / (m * n)
    return float(value[0]), float((1 + (value[1:] >= value[0]).sum()) / (count + 1))


def hsic_in_numpy(X: np.ndarray, Y: np.ndarray, squared_length: float, count: int) -> tuple[float, float]:
    """The biased HSIC and its p-value."""
    n = len(X)
    K = _gaussian(X, squared_length)
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    L = _gaussian(Y, squared_length)
    rng = np.random.default_rng(0)
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(count))]
    value = np.array([np.vdot(K, L[order][:, order]) for order in orders]) / n**2
    return float(value[0]), float((1 + (value[1:] >= value[0]).sum()) / (count + 1))
