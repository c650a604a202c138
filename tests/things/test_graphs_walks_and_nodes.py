"""Walks and their bound, graphlets of larger graphs, and kernels of the nodes of one graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphs_under_test import PLAIN, ROADS
from mercer import Diffusion, Graph, Graphlet, RandomWalk, RegularizedLaplacian, parse
from mercer.errors import InputError, InputTypeError, ParameterError
from mercer.gram import Dense
from mercer.kernels.things.graphs.graphlets import SHAPES

# ── walks ───────────────────────────────────────────────────────────────────────────────────────────────────


def by_eigenvalues(a, b, decay):
    """Σ (1ᵀp)² (1ᵀq)² / (1 - decay μ ν) over the eigenpairs of both graphs."""
    (mu, P), (nu, Q) = (np.linalg.eigh(g.adjacency().toarray()) for g in (a, b))
    weights = np.outer(P.sum(axis=0) ** 2, Q.sum(axis=0) ** 2)
    return float((weights / (1 - decay * np.outer(mu, nu))).sum())


@pytest.mark.parametrize("share", [0.1, 0.9, 0.999])
def test_walks_up_to_the_bound_are_those_of_the_eigenvalues(share):
    graphs = [g for g in PLAIN if g.nodes]
    radius = max(np.linalg.eigvalsh(g.adjacency().toarray())[-1] for g in graphs)
    decay = share / radius**2
    K = RandomWalk(decay)(graphs)
    exact = np.array([[by_eigenvalues(a, b, decay) for b in graphs] for a in graphs])
    np.testing.assert_allclose(K, exact, rtol=1e-11)
    np.testing.assert_allclose(RandomWalk(decay)(graphs[:3], graphs), exact[:3], rtol=1e-11)


def test_a_decay_that_is_too_large_is_refused_with_the_largest_that_is_not():
    graphs = [Graph(2, [(0, 1)]), Graph(4, list(nx.complete_graph(4).edges))]
    with pytest.raises(ParameterError, match=r"row 1 of X grow by 3 a step.* below 0\.111111"):
        RandomWalk(0.2)(graphs)
    with pytest.raises(ParameterError, match="row 1 of Z"):
        RandomWalk(0.2)(graphs[:1], graphs)
    assert RandomWalk(0.2)(graphs[:1]).shape == (1, 1)
    assert np.all(np.isfinite(RandomWalk(0.1111)(graphs)))


# ── graphlets ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [3, 4])
def test_every_shape_contains_itself_and_a_complete_graph_has_no_other(size):
    for name, edges in SHAPES[size].items():
        assert Graphlet(size).count(Graph(size, edges)) == {name: 1.0}
    complete = Graphlet(size).count(nx.complete_graph(9))
    assert list(complete.values()) == [float([84, 126][size - 3])]


def test_graphlets_of_a_larger_graph_add_up_to_all_subsets():
    g = nx.gnm_random_graph(80, 500, seed=1)
    found = Graphlet(4).count(g)
    assert sum(found.values()) == 80 * 79 * 78 * 77 / 24
    assert Graphlet(3).count(g)["triangle"] == sum(nx.triangles(g).values()) / 3
    squares = found["square"] + found["two triangles"] + 3 * found["all 6 edges"]
    assert squares == sum(1 for c in nx.simple_cycles(g, length_bound=4) if len(c) == 4)


def test_graphlets_read_no_labels():
    K = Graphlet(3)([Graph(3, [(0, 1)], "abc"), Graph(3, [(0, 1)])])
    np.testing.assert_array_equal(K, 1.0)


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────

LEAVES = [Diffusion, RegularizedLaplacian]


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_graph_in_any_form_gives_the_same_kernel(leaf):
    k = leaf(ROADS, 0.5, nodes=7)
    graph = Graph(7, ROADS)
    named = nx.Graph(graph.edges.tolist())
    named.add_nodes_from([6])
    same = nx.Graph()
    same.add_nodes_from(range(7))
    same.add_edges_from(named.edges)
    for form in (graph, graph.adjacency(), graph.adjacency().toarray(), same):
        assert leaf(form, 0.5) == k
    assert parse(str(k)) == k
    np.testing.assert_array_equal(k([[0], [3]]), k([0, 3]))


@pytest.mark.parametrize("leaf", LEAVES)
def test_heat_stays_and_does_not_reach_what_is_not_connected(leaf):
    K = leaf(ROADS, 1.3, nodes=7)(list(range(7)))
    np.testing.assert_allclose(K.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(K[6], np.eye(7)[6], atol=1e-15)
    np.testing.assert_allclose(K[5], np.eye(7)[5], atol=1e-15)
    assert np.all(K[:5, :5] > 0)


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_slope_of_beta_is_that_of_differences(leaf):
    k = leaf(ROADS, 0.8, nodes=7)
    nodes = [0, 3, 3, 6, 2]
    W = np.random.default_rng(0).normal(size=(5, 5))
    found = Dense(k, nodes).contract(W=W)
    up, down = (float((W * k.with_theta(k.theta + s)(nodes)).sum()) for s in (1e-6, -1e-6))
    np.testing.assert_allclose(found, [(up - down) / 2e-6], rtol=1e-7)


@pytest.mark.parametrize("bad", [7, -1, 1.5, "a", True, [1, 2]], ids=str)
def test_what_is_no_node_is_refused_with_its_row(bad):
    with pytest.raises(InputTypeError, match=r"nodes 0 to 6 .* row 1 of X"):
        Diffusion(ROADS, nodes=7)([0, bad, 2] if not isinstance(bad, list) else [[0], bad, [1]])


@pytest.mark.parametrize("bad", [[], [(0, -1)], "abc", np.zeros((2, 3)), None], ids=str)
def test_what_is_no_graph_is_refused(bad):
    with pytest.raises((ParameterError, InputError)):
        Diffusion(bad)
