"""Samples of graphs, and kernels of graphs by slow loops from the formulas."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from scipy.linalg import expm

from mercer.kernels import (
    Diffusion,
    Graph,
    Graphlet,
    Kernel,
    OptimalAssignment,
    RandomWalk,
    RegularizedLaplacian,
    ShortestPath,
    WeisfeilerLehman,
)


def random_graph(r: np.random.Generator, n: int, share: float, labels: str = "", bonds: str = "") -> Graph:
    """Each pair is an edge with some probability."""
    edges = [pair for pair in itertools.combinations(range(n), 2) if r.random() < share]
    marks = r.choice(list(labels), size=n).tolist() if labels else None
    kinds = r.choice(list(bonds), size=len(edges)).tolist() if bonds else None
    return Graph(n, edges, marks, kinds)


def sample(seed: int, labels: str = "", bonds: str = "") -> list[Graph]:
    """Graphs without nodes, with one, with nodes that have no neighbour, with a loop, dense and sparse."""
    r = np.random.default_rng(seed)
    mark = list(labels[:1]) or None
    out = [Graph(0), Graph(1, [], mark), random_graph(r, 4, 0.0, labels, bonds)]
    for n, share in ((3, 0.9), (5, 0.4), (6, 0.5), (7, 0.3), (6, 1.0), (9, 0.25)):
        out.append(random_graph(r, n, share, labels, bonds))
    loop = Graph(2, [(0, 0), (0, 1)], mark and mark * 2, list(bonds[:1]) * 2 or None)
    return [*out, loop, out[4].permuted(r.permutation(5))]


PLAIN = sample(0)
LABELLED = sample(1, "CNO")
BONDED = sample(2, "CN", "12")


def label_of(g: Graph, v: int) -> Hashable:
    return "*" if g.labels is None else g.labels[v]


def neighbours_of(g: Graph, v: int) -> list[tuple[str, int]]:
    """Labels of edges and the nodes they lead to."""
    out = []
    for i, (a, b) in enumerate(g.edges.tolist()):
        bond = "" if g.edge_labels is None else str(g.edge_labels[i])
        if a == v:
            out.append((bond, b))
        elif b == v:
            out.append((bond, a))
    return out


def tree(g: Graph, v: int, depth: int) -> tuple[Any, ...]:
    """What is seen from a node by walks of so many steps."""
    if depth == 0:
        return (label_of(g, v),)
    return label_of(g, v), tuple(sorted((b, repr(tree(g, u, depth - 1))) for b, u in neighbours_of(g, v)))


def trees(g: Graph, depth: int) -> list[Hashable]:
    return [tree(g, v, depth) for v in range(g.nodes)]


def distances(g: Graph) -> np.ndarray:
    """By Floyd and Warshall."""
    D = np.full((g.nodes, g.nodes), np.inf)
    for a, b in g.edges.tolist():
        D[a, b] = D[b, a] = 1
    for v in range(g.nodes):
        D[v, v] = 0
    for m in range(g.nodes):
        for a in range(g.nodes):
            for b in range(g.nodes):
                D[a, b] = min(D[a, b], D[a, m] + D[m, b])
    return D


def in_common(features: Callable[[Graph, int], list[Hashable]], height: int) -> Callable[[Any, Any], float]:
    """Σ_h (pairs of equal features of two graphs at depth h)."""

    def value(a: Graph, b: Graph) -> float:
        total = 0
        for h in range(height + 1):
            there = Counter(features(b, h))
            total += sum(there[f] for f in features(a, h))
        return float(total)

    return value


def edges_seen(g: Graph, depth: int) -> list[Hashable]:
    seen = trees(g, depth)
    return [(seen[v], bond, seen[u]) for v in range(g.nodes) for bond, u in neighbours_of(g, v)]


def paths_seen(g: Graph, depth: int) -> list[Hashable]:
    seen = trees(g, depth)
    D = distances(g)
    pairs = itertools.permutations(range(g.nodes), 2)
    return [(seen[v], D[v, u], seen[u]) for v, u in pairs if np.isfinite(D[v, u])]


def assigned(height: int) -> Callable[[Any, Any], float]:
    def value(a: Graph, b: Graph) -> float:
        return float(sum((Counter(trees(a, h)) & Counter(trees(b, h))).total() for h in range(height + 1)))

    return value


def shapes_seen(size: int) -> Callable[[Graph, int], list[Hashable]]:
    """Every subset of nodes by the degrees inside it, which tell all graphs of up to four nodes apart."""

    def seen(g: Graph, depth: int) -> list[Hashable]:
        edges = {frozenset(pair) for pair in g.edges.tolist()}
        out = []
        for nodes in itertools.combinations(range(g.nodes), size):
            inside = [pair for pair in itertools.combinations(nodes, 2) if frozenset(pair) in edges]
            out.append(tuple(sorted(sum(v in pair for pair in inside) for v in nodes)))
        return out

    return seen


def common_walks(decay: float) -> Callable[[Any, Any], float]:
    """1ᵀ (I - decay A)⁻¹ 1 on the product graph, written out."""

    def value(a: Graph, b: Graph) -> float:
        pairs = [(v, u) for v in range(a.nodes) for u in range(b.nodes) if label_of(a, v) == label_of(b, u)]
        A = np.zeros((len(pairs), len(pairs)))
        for i, (v, u) in enumerate(pairs):
            for j, (w, t) in enumerate(pairs):
                there = [n for _, n in neighbours_of(a, v)]
                here = [n for _, n in neighbours_of(b, u)]
                A[i, j] = (w in there) and (t in here)
        if not pairs:
            return 0.0
        return float(np.linalg.solve(np.eye(len(pairs)) - decay * A, np.ones(len(pairs))).sum())

    return value


ROADS = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (5, 5)]
TOWNS = [0, 4, 2, 2, 6, 5, 1, 3]


def laplacian() -> np.ndarray:
    L = np.zeros((7, 7))
    for a, b in ROADS:
        if a != b:
            L[[a, b], [b, a]] -= 1
            L[[a, b], [a, b]] += 1
    return L


def entry(M: np.ndarray) -> Callable[[Any, Any], float]:
    return lambda a, b: float(M[a, b])


def node_cases() -> list[tuple[str, Kernel, list[Any], Callable[[Any, Any], float]]]:
    """Kernels of the nodes of one graph, one of which has no neighbour and one a loop."""
    heat = expm(-0.7 * laplacian())
    inverse = np.linalg.inv(np.eye(7) + 2.0 * laplacian())
    return [
        ("diffusion", Diffusion(ROADS, 0.7, nodes=7), TOWNS, entry(heat)),
        ("laplacian", RegularizedLaplacian(ROADS, 2.0, nodes=7), TOWNS, entry(inverse)),
    ]


def graph_cases() -> list[tuple[str, Kernel, list[Any], Callable[[Any, Any], float]]]:
    """Name, kernel, things, k(a, b) by a loop."""
    return [
        ("wl-labels", WeisfeilerLehman(2), LABELLED, in_common(trees, 2)),
        ("wl-plain", WeisfeilerLehman(3), PLAIN, in_common(trees, 3)),
        ("wl-bonds", WeisfeilerLehman(2), BONDED, in_common(trees, 2)),
        ("wl-labels-alone", WeisfeilerLehman(0), LABELLED, in_common(trees, 0)),
        ("wl-edges", WeisfeilerLehman(1, "edges"), LABELLED, in_common(edges_seen, 1)),
        ("wl-edges-bonds", WeisfeilerLehman(1, "edges"), BONDED, in_common(edges_seen, 1)),
        ("wl-paths", WeisfeilerLehman(2, "shortest paths"), LABELLED, in_common(paths_seen, 2)),
        ("assignment", OptimalAssignment(2), LABELLED, assigned(2)),
        ("assignment-plain", OptimalAssignment(3), PLAIN, assigned(3)),
        ("paths", ShortestPath(), LABELLED, in_common(paths_seen, 0)),
        ("paths-plain", ShortestPath(), PLAIN, in_common(paths_seen, 0)),
        ("graphlets-3", Graphlet(3), LABELLED, in_common(shapes_seen(3), 0)),
        ("graphlets-4", Graphlet(4), PLAIN, in_common(shapes_seen(4), 0)),
        ("walks", RandomWalk(0.03), LABELLED, common_walks(0.03)),
        ("walks-plain", RandomWalk(0.02), PLAIN, common_walks(0.02)),
    ]
