"""Kernels of graphs: speed and peak memory beside GraKeL, then accuracy by nested cross-validation.

Each side has its own graphs ready; the Gram matrix is what is timed. GraKeL is given the neighbours of every
node, also of those that have none, so that it keeps them. In the tables of accuracy, height and C are chosen
inside each fold of ten, by ten folds of the other nine; a kernel of height 3 then goes into a Gaussian
process, which judges ten folds too and searches for nothing, and into a kernel PCA.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

import mercer
from benchmarks import measure, pictures
from benchmarks.peers import have
from mercer import Graph, OptimalAssignment, ShortestPath, WeisfeilerLehman

HEIGHTS = (0, 1, 2, 3, 4, 5)
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
# The variance of the process before it has seen a label.
PRIOR = 5.0


def run(options: argparse.Namespace) -> None:
    found = {"random": _random()} if options.quick else _real(options.data)
    print(measure.HEAD)
    for name, (graphs, _) in found.items():
        _speed(name, graphs, options)
    print(f"\n{'set':10}{'kernel':30}{'SVM %':>14}{'GP %':>8}{'PCA: share of two axes':>25}{'peak MB':>10}")
    for name, (graphs, y) in found.items():
        if options.only not in f"accuracy, {name}":
            continue
        for kernel in (WeisfeilerLehman, OptimalAssignment):
            _accuracy(name, kernel, graphs, y, options)


def _real(folder: str) -> dict[str, tuple[list[Graph], np.ndarray]]:
    out = {}
    for name in ("mutag", "enzymes"):
        if (Path(folder) / name).exists():
            out[name] = mercer.read_tu(Path(folder) / name, edge_labels=False)
        else:
            print(f"{name} left out: no such data in {folder}")
    return out


def _random() -> tuple[list[Graph], np.ndarray]:
    """Thirty graphs of two classes, with more and with fewer edges."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    graphs = []
    for kind in y:
        pairs = np.argwhere(np.triu(rng.random((8, 8)) < 0.3 + 0.3 * kind, 1))
        graphs.append(Graph(8, pairs, rng.choice(["a", "b"], size=8)))
    return graphs, y


# ── speed ───────────────────────────────────────────────────────────────────────────────────────────────────


def _speed(name: str, graphs: list[Graph], options: argparse.Namespace) -> None:
    cells: dict[str, tuple[mercer.Kernel, dict[str, Any]]] = {
        "WL, height 5": (WeisfeilerLehman(5), {"name": "weisfeiler_lehman", "n_iter": 5}),
        "WL-OA, height 5": (
            OptimalAssignment(5),
            {"name": "weisfeiler_lehman_optimal_assignment", "n_iter": 5},
        ),
        "shortest paths": (ShortestPath(), {"name": "shortest_path"}),
    }
    whole = np.array([len(np.unique(graph.edges)) == graph.nodes for graph in graphs])
    for cell, (kernel, settings) in cells.items():
        if options.only not in f"{cell}, {name}":
            continue
        sides: dict[str, Any] = {"mercer": lambda kernel=kernel: kernel(graphs)}
        if have("grakel"):
            theirs = _grakel_graphs(graphs)
            sides["grakel"] = lambda settings=settings, theirs=theirs: _grakel(settings, theirs)
        found = measure.race(f"{cell}, {name}", sides, 1, options.repeat)
        ours = found["mercer"].value

        def certificate(side: str, K: np.ndarray, ours: np.ndarray = ours) -> str:
            worst = np.abs(K - ours) / np.maximum(np.abs(ours), 1)
            part = worst[np.ix_(whole, whole)]
            wrong = np.mean(worst > 1e-12)
            return f"off by {part.max():.1e} where no node is alone, {wrong:.1%} of all pairs differ"

        measure.report(f"{cell}, {name}", 1, found, None, certificate)


def _grakel_graphs(graphs: list[Graph]) -> list[Any]:
    import grakel

    out = []
    for graph in graphs:
        neighbours: dict[int, dict[int, float]] = {v: {} for v in range(graph.nodes)}
        for a, b in graph.edges.tolist():
            neighbours[a][b] = neighbours[b][a] = 1.0
        assert graph.labels is not None
        out.append(grakel.Graph(neighbours, node_labels=dict(enumerate(graph.labels))))
    return out


def _grakel(settings: dict[str, Any], graphs: list[Any]) -> np.ndarray:
    import grakel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(_of_grakel(grakel, **settings).fit_transform(graphs))


def _of_grakel(grakel: Any, name: str, **settings: Any) -> Any:
    classes = {
        "weisfeiler_lehman": grakel.WeisfeilerLehman,
        "weisfeiler_lehman_optimal_assignment": grakel.WeisfeilerLehmanOptimalAssignment,
        "shortest_path": grakel.ShortestPath,
    }
    if name == "weisfeiler_lehman":
        settings["base_graph_kernel"] = grakel.VertexHistogram
    return classes[name](**settings)


# ── accuracy ────────────────────────────────────────────────────────────────────────────────────────────────


def _accuracy(
    name: str, kernel: Any, graphs: list[Graph], y: np.ndarray, options: argparse.Namespace
) -> None:
    heights = HEIGHTS[:2] if options.quick else HEIGHTS
    folds = 3 if options.quick else 10
    matrices = [kernel(h).normalized()(graphs) for h in heights]
    repeats = 1 if options.quick or len(y) > 300 else 5
    scores = [_nested(matrices, y, folds, seed) for seed in range(repeats)]
    chosen = kernel(3).normalized()
    by_process = _by_process(chosen, graphs, y, folds)
    axes = mercer.KernelPCA(chosen, 2).fit(graphs)
    pictures.embedding(options, f"{name}-{kernel.__name__}", chosen, graphs, y)
    pictures.weights(options, f"{name}-{kernel.__name__}", mercer.SVC(chosen).fit(graphs, y))
    share = axes.explained_variance_ratio_.sum()
    spread = f" ± {100 * np.std(scores):.1f}" if repeats > 1 else ""
    print(
        f"{name:10}{kernel.__name__ + '(0…5).normalized()':30}{f'{100 * np.mean(scores):.1f}' + spread:>14}"
        f"{100 * by_process:>8.1f}{100 * share:>24.0f}%{measure.peak():>10.0f}",
        flush=True,
    )


def _by_process(kernel: mercer.Kernel, graphs: list[Graph], y: np.ndarray, folds: int) -> float:
    """The share of right answers of a Gaussian process with this kernel, each graph judged once."""
    right = 0
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(graphs, y):
        process = mercer.GaussianProcessClassifier(PRIOR * kernel, optimizer=None)
        process.fit([graphs[i] for i in train], y[train])
        right += int(np.sum(process.predict([graphs[i] for i in test]) == y[test]))
    return right / len(y)


def _nested(matrices: list[np.ndarray], y: np.ndarray, folds: int, seed: int) -> float:
    """The share of right answers, where height and C are chosen without the fold that is asked."""
    right = 0
    outer = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for train, test in outer.split(y, y):
        inner = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(train, y[train]))
        best: tuple[float, int, float] = (-1.0, 0, 0.0)
        for h, K in enumerate(matrices):
            for C in PENALTIES:
                score = np.mean([_score(K, y, train[a], train[b], C) for a, b in inner])
                # the first of the best: the smaller height, and the smaller C
                if score > best[0]:
                    best = (float(score), h, C)
        right += round(_score(matrices[best[1]], y, train, test, best[2]) * len(test))
    return right / len(y)


def _score(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> float:
    model = mercer.SVC("precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
    return float(np.mean(model.predict(K[np.ix_(test, train)]) == y[test]))
