"""What letters and nodes contribute: by a slow loop, and summed up to what the machine says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphs_under_test import BONDED, LABELLED, PLAIN, neighbours_of, tree
from mercer import (
    RBF,
    SVC,
    GaussianProcessRegressor,
    Graph,
    Graphlet,
    KernelPCA,
    KernelRidge,
    Mismatch,
    OptimalAssignment,
    ShortestPath,
    Spectrum,
    Text,
    WeightedDegree,
    WeisfeilerLehman,
    White,
)
from mercer.errors import InputTypeError, ParameterError, ShapeError
from mercer.theory import Contributions, contributions, feature_weights

GENES = ["TATAAT", "GGCGCC", "TATATT", "GCGCGG", "TTTAAT", "CCGCGC", "TATGAT", "GGCCCC"]
NEW = ["TATAAA", "", "GATTACA", "NNN", "T", "TATATATATATA"]
Y = np.arange(8) % 2

ON_STRINGS = [
    Spectrum(2),
    Mismatch(3, 1).normalized(),
    WeightedDegree(3, shift=1),
    2.0 * Spectrum(3).normalized() + 0.5 * Spectrum(1) + 0.3,
    (WeightedDegree(2) + 1.5).normalized(),
    Spectrum(2) + Text("characters", 1, 2),
]
ON_GRAPHS = [
    WeisfeilerLehman(2),
    WeisfeilerLehman(2).normalized(),
    WeisfeilerLehman(1, "edges"),
    WeisfeilerLehman(1, "shortest paths"),
    OptimalAssignment(2),
    ShortestPath(),
    0.5 * OptimalAssignment(1).normalized() + 2.0 * WeisfeilerLehman(1) + Graphlet(3) + 1.0,
]


def summed(found: list[Contributions]) -> np.ndarray:
    return np.array([each.values.sum(axis=0) + each.rest + each.offset for each in found])


@pytest.mark.parametrize("k", ON_STRINGS, ids=str)
def test_letters_and_what_no_letter_carries_sum_to_what_the_machine_says(k):
    model = SVC(k, C=3.0).fit(GENES, Y)
    found = contributions(model, NEW)
    np.testing.assert_allclose(summed(found)[:, 0], model.decision_function(NEW), rtol=1e-10, atol=1e-10)
    assert [len(each.values) for each in found] == [len(gene) for gene in NEW]
    assert ["".join(each.names) for each in found] == NEW
    for machine in (KernelRidge(k, 0.1), GaussianProcessRegressor(k + White(0.5), optimizer=None)):
        machine.fit(GENES, Y.astype(float))
        np.testing.assert_allclose(
            summed(contributions(machine, NEW))[:, 0], machine.predict(NEW), rtol=1e-9, atol=1e-9
        )
    pca = KernelPCA(k, 2).fit(GENES)
    np.testing.assert_allclose(
        summed(contributions(pca, NEW)), feature_weights(pca).values(NEW), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("graphs", [PLAIN, LABELLED, BONDED], ids=["plain", "labels", "labels of edges"])
@pytest.mark.parametrize("k", ON_GRAPHS, ids=str)
def test_nodes_and_what_no_node_carries_sum_to_what_the_machine_says(k, graphs):
    y = np.arange(8) % 2
    model = SVC(k, C=3.0).fit(graphs[:8], y)
    found = contributions(model, graphs)
    np.testing.assert_allclose(summed(found)[:, 0], model.decision_function(graphs), rtol=1e-9, atol=1e-9)
    assert [len(each.values) for each in found] == [graph.nodes for graph in graphs]


def test_only_a_term_without_places_is_at_no_place():
    model = SVC(Spectrum(2), C=3.0).fit(GENES, Y)
    assert all(np.all(each.rest == 0) for each in contributions(model, NEW))
    model = KernelRidge(Spectrum(2) + 4.0, 0.1).fit(GENES, Y.astype(float))
    weights = dict(feature_weights(model).top(1000))
    for each in contributions(model, NEW):
        np.testing.assert_allclose(each.rest, 2.0 * weights["1"], rtol=1e-12)


# ── letter by letter and node by node, from the definitions ─────────────────────────────────────────────────


def near(word: str, other: str, mismatches: int) -> bool:
    return sum(a != b for a, b in zip(word, other, strict=True)) <= mismatches


@pytest.mark.parametrize("mismatches", [0, 1])
def test_a_letter_has_its_share_of_every_word_that_covers_it(mismatches):
    k = Mismatch(3, mismatches, alphabet="ACGT")
    model = SVC(k, C=3.0).fit(GENES, Y)
    weights = dict(feature_weights(model).top(1000))
    for gene, found in zip(NEW, contributions(model, NEW), strict=True):
        for i in range(len(gene)):
            wanted = 0.0
            for start in range(len(gene) - 2):
                if start <= i < start + 3:
                    piece = gene[start : start + 3]
                    wanted += sum(w for word, w in weights.items() if near(word, piece, mismatches)) / 3
            assert math.isclose(found.values[i, 0], wanted, rel_tol=1e-10, abs_tol=1e-12)


def test_a_letter_has_its_share_of_the_words_at_its_place():
    model = SVC(WeightedDegree(2), C=3.0).fit(GENES, Y)
    weights = dict(feature_weights(model).top(1000))
    for gene, found in zip(NEW, contributions(model, NEW), strict=True):
        for i, letter in enumerate(gene):
            wanted = math.sqrt(2 / 3) * weights.get(f"{letter} at {i}", 0.0)
            for start in (i - 1, i):
                word = gene[start : start + 2] if start >= 0 else ""
                if len(word) == 2:
                    wanted += math.sqrt(1 / 3) * weights.get(f"{word} at {start}", 0.0) / 2
            assert math.isclose(found.values[i, 0], wanted, rel_tol=1e-10, abs_tol=1e-12)


def node_values(model: KernelRidge, graph: Graph, graphs: list[Graph], height: int) -> list[float]:
    """Σ_h Σ_i c_i (nodes of graph i that look like this node to depth h), by trees of walks."""
    out = []
    for v in range(graph.nodes):
        total = 0.0
        for h in range(height + 1):
            mine = tree(graph, v, h)
            for c, other in zip(model.dual_coef_, graphs, strict=True):
                total += c * sum(tree(other, u, h) == mine for u in range(other.nodes))
        out.append(total)
    return out


@pytest.mark.parametrize("graphs", [PLAIN, LABELLED, BONDED], ids=["plain", "labels", "labels of edges"])
def test_a_node_has_the_weights_of_its_own_colours(graphs):
    y = np.cos(np.arange(8.0))
    model = KernelRidge(WeisfeilerLehman(2), 0.1).fit(graphs[:8], y)
    for graph, found in zip(graphs, contributions(model, graphs), strict=True):
        np.testing.assert_allclose(
            found.values[:, 0], node_values(model, graph, graphs[:8], 2), rtol=1e-9, atol=1e-9
        )


def test_either_end_of_an_edge_has_half_of_it():
    graphs = LABELLED
    model = KernelRidge(WeisfeilerLehman(0, "edges"), 0.1).fit(graphs[:8], np.cos(np.arange(8.0)))
    weights = dict(feature_weights(model).top(1000))
    for graph, found in zip(graphs, contributions(model, graphs), strict=True):
        wanted = np.zeros(graph.nodes)
        for v in range(graph.nodes):
            for _, u in neighbours_of(graph, v):
                w = weights.get(f"{graph.labels[v]} -1- {graph.labels[u]}", 0.0)
                wanted[v] += w / 2
                wanted[u] += w / 2
        np.testing.assert_allclose(found.values[:, 0], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", ON_GRAPHS, ids=str)
def test_nodes_in_another_order_have_the_same_contributions(k):
    r = np.random.default_rng(0)
    model = SVC(k, C=3.0).fit(LABELLED[:8], np.arange(8) % 2)
    orders = [r.permutation(graph.nodes) for graph in LABELLED]
    moved = [graph.permuted(order) for graph, order in zip(LABELLED, orders, strict=True)]
    for a, b, order in zip(contributions(model, LABELLED), contributions(model, moved), orders, strict=True):
        np.testing.assert_allclose(b.values, a.values[order], rtol=1e-9, atol=1e-12)


def test_nodes_of_one_colour_have_equal_parts_of_an_assignment():
    graphs = [Graph(3, [], "CCO"), Graph(2, [], "CO"), Graph(4, [], "CCCC")]
    model = KernelRidge(OptimalAssignment(0), 0.1).fit(graphs, [1.0, -1.0, 0.5])
    weights = dict(feature_weights(model).top(100))
    (found,) = contributions(model, [graphs[0]])
    each = (weights["C ≥ 1"] + weights["C ≥ 2"]) / 2
    np.testing.assert_allclose(found.values[:, 0], [each, each, weights["O ≥ 1"]], rtol=1e-12)


# ── what it says ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_largest_are_printed_with_their_place():
    model = SVC(Spectrum(2), C=3.0).fit(GENES, Y)
    (found,) = contributions(feature_weights(model), ["TATAATTATAATGC"])
    place, name, value = found.top(1)[0]
    assert abs(value) == np.abs(found.values).max()
    lines = str(found).splitlines()
    assert lines[0].startswith(f"{found.titles[0]} = {found.total[0]:.4g}")
    assert lines[1].split() == [str(place), name, f"{value:+.4g}"]
    assert lines[-1] == "  and 4 more"


def test_lists_of_symbols_have_their_symbols_as_names():
    songs = [["do", "re", "mi"], ["mi", "re", "do"], ["do", "do"]]
    model = KernelRidge(Spectrum(2), 0.1).fit(songs, [1.0, 2.0, 3.0])
    found = contributions(model, songs)
    assert found[0].names == ("do", "re", "mi")
    np.testing.assert_allclose(summed(found)[:, 0], model.predict(songs), rtol=1e-10)


def test_what_has_no_places_is_refused_with_the_way_out():
    model = SVC(Text()).fit(["a b", "c"], [0, 1])
    with pytest.raises(ParameterError, match="does not say where in a thing its features are"):
        contributions(model, ["a"])
    with pytest.raises(ParameterError, match="no inner product of sparse features"):
        contributions(SVC(RBF(1.0)).fit([[0.0], [1.0]], [0, 1]), [[0.0]])
    model = SVC(Spectrum(2)).fit(GENES, Y)
    with pytest.raises(InputTypeError, match="list of things"):
        contributions(model, "TATA")
    with pytest.raises(InputTypeError, match="row 1 of X is a int"):
        contributions(model, ["TATA", 7])
    with pytest.raises(ShapeError, match="0 sample"):
        contributions(model, [])
