"""GraKeL as referee, on graphs in which every node has a neighbour."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from graphs_under_test import random_graph
from mercer import Graph, OptimalAssignment, ShortestPath, WeisfeilerLehman

grakel = pytest.importorskip("grakel")


def connected(seed):
    """Random graphs with a path through all nodes."""
    r = np.random.default_rng(seed)
    out = []
    for n in (2, 3, 5, 8, 8, 13, 20):
        g = random_graph(r, n, 0.2, "CNO")
        path = [(v, v + 1) for v in range(n - 1)]
        out.append(Graph(n, [*g.edges.tolist(), *path], g.labels))
    return out


def of_grakel(g):
    neighbours = {v: {} for v in range(g.nodes)}
    for a, b in g.edges.tolist():
        neighbours[a][b] = neighbours[b][a] = 1.0
    return grakel.Graph(neighbours, node_labels=dict(enumerate(g.labels)))


@pytest.mark.parametrize(
    "k, theirs",
    [
        (
            WeisfeilerLehman(4),
            lambda: grakel.WeisfeilerLehman(n_iter=4, base_graph_kernel=grakel.VertexHistogram),
        ),
        (
            WeisfeilerLehman(2, "shortest paths"),
            lambda: grakel.WeisfeilerLehman(n_iter=2, base_graph_kernel=grakel.ShortestPath),
        ),
        (OptimalAssignment(4), lambda: grakel.WeisfeilerLehmanOptimalAssignment(n_iter=4)),
        (ShortestPath(), lambda: grakel.ShortestPath()),
    ],
    ids=["wl", "wl-paths", "assignment", "paths"],
)
def test_the_matrix_is_that_of_grakel(k, theirs):
    graphs = connected(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs().fit_transform([of_grakel(g) for g in graphs])
    np.testing.assert_allclose(k(graphs), expected, rtol=1e-12)
