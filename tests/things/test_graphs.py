"""Graphs: the forms in which they come, what is refused, and what holds for every kernel of them."""

from __future__ import annotations

import itertools
import pickle

import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from graphs_under_test import BONDED, LABELLED, PLAIN, assigned, graph_cases, trees
from mercer import SVC, Graph, OptimalAssignment, ShortestPath, WeisfeilerLehman, read_tu
from mercer.arrays import Rows
from mercer.errors import InputError, InputTypeError

CASES = graph_cases()
IDS = [case[0] for case in CASES]


def as_networkx(g):
    out = nx.Graph()
    for v in range(g.nodes):
        out.add_node(f"n{v}", **({} if g.labels is None else {"label": g.labels[v]}))
    for i, (a, b) in enumerate(g.edges.tolist()):
        out.add_edge(f"n{a}", f"n{b}", **({} if g.edge_labels is None else {"label": g.edge_labels[i]}))
    return out


# ── what a graph is ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("k", [WeisfeilerLehman(2), ShortestPath(), OptimalAssignment(1)], ids=str)
def test_every_form_of_the_same_graphs_has_the_same_kernel(k):
    K = k(LABELLED)
    forms = {
        "networkx": [as_networkx(g) for g in LABELLED],
        "matrix": [(g.adjacency().toarray(), g.labels or []) for g in LABELLED],
        "sparse": [(g.adjacency(), g.labels or []) for g in LABELLED],
        "edges": [(g.edges.tolist(), g.labels or []) for g in LABELLED],
    }
    for name, things in forms.items():
        np.testing.assert_array_equal(k(things), K, err_msg=name)
        y = np.arange(len(things)) % 2
        expected = SVC(k, C=1.0).fit(LABELLED, y).decision_function(LABELLED)
        np.testing.assert_array_equal(SVC(k, C=1.0).fit(things, y).decision_function(things), expected)
    np.testing.assert_array_equal(
        k([as_networkx(g) for g in BONDED]), k(BONDED), err_msg="labels of edges from networkx"
    )


def test_graphs_of_networkx_with_equally_many_nodes_are_no_table_of_numbers():
    things = [nx.path_graph(4), nx.cycle_graph(4), nx.star_graph(3), nx.complete_graph(4)]
    model = SVC(WeisfeilerLehman(1).normalized(), C=1.0).fit(things, [0, 1, 0, 1])
    assert model.predict(things).tolist() == [0, 1, 0, 1]
    plain = [nx.to_numpy_array(g) for g in things]
    np.testing.assert_array_equal(WeisfeilerLehman(1)(plain), WeisfeilerLehman(1)(things))


def test_an_edge_named_twice_is_one_edge():
    once = Graph(3, [(0, 1), (1, 2)], edge_labels=["a", "b"])
    assert once == Graph(3, [(2, 1), (1, 0), (0, 1)], edge_labels=["b", "a", "a"])
    assert hash(once) == hash(pickle.loads(pickle.dumps(once)))
    assert once != once.without_edge_labels()


@pytest.mark.parametrize(
    "bad, words",
    [
        (np.array([[0, 1], [0, 0]]), "not symmetric: 0 has the neighbour 1"),
        (sparse.csr_array(np.array([[0, 1.0], [0, 0]])), "not symmetric"),
        (np.array([[0, 2], [2, 0]]), r"entry \(0, 1\) .* is 2"),
        (np.array([[0, np.nan], [np.nan, 0]]), "is nan"),
        (np.zeros((2, 3)), r"square; got shape \(2, 3\)"),
        (([(0, 1)], ["C"]), r"edge \(0, 1\) leads outside the 1 nodes"),
        (([(0, -1)], ["C", "N"]), r"edge \(0, -1\) leads outside"),
        ([(0, -1)], r"edge \(0, -1\) leads outside"),
        (([(0, 1)], ["C", None]), "label 1 of the nodes is missing"),
        (([(0, 1)], ["C", float("nan")]), "label 1 of the nodes is missing"),
        (([(0, 1)], ["C", []]), "label 1 of the nodes is a list"),
        ((np.array([[0, 1], [1, 0]]), ["C", "N", "O"]), "3 labels for 2 nodes"),
        (([(0, 1)], 3), "labels must be a list"),
        (([(0, 1, 2)], ["C", "N", "O"]), "pairs of nodes"),
        (([(0, 1), (1,)], ["C", "N"]), "not a pair of nodes"),
        (([(0.0, 1.0)], ["C", "N"]), "whole numbers"),
        ("CC", "list of edges"),
        (3, "list of edges"),
        (None, "row 1 of X is None"),
        (nx.DiGraph([(0, 1)]), "directed"),
        (nx.MultiGraph([(0, 1)]), "parallel"),
    ],
    ids=str,
)
def test_a_bad_graph_is_refused_with_its_row(bad, words):
    good = Graph(2, [(0, 1)])
    for k in (WeisfeilerLehman(1), ShortestPath(), OptimalAssignment(1)):
        with pytest.raises(InputTypeError, match=words) as caught:
            k([good, bad])
        assert "row 1 of X" in str(caught.value)


def test_labels_for_some_only_are_refused():
    some = nx.Graph()
    some.add_node(0, label="C")
    some.add_node(1)
    with pytest.raises(InputTypeError, match=r"row 0 of X .*node 0 has a label and node 1 has none"):
        WeisfeilerLehman(1)([some])
    with_labels, without = Graph(1, [], ["C"]), Graph(1)
    with pytest.raises(InputError, match=r"row 0 of X is a graph with labels .* row 2 has none"):
        WeisfeilerLehman(1)([with_labels, Graph(0), without])
    with pytest.raises(InputError, match="graphs of X have labels, and those of Z have none"):
        WeisfeilerLehman(1)([with_labels], [Graph(0), without])
    with pytest.raises(InputError, match="labels of its edges"):
        WeisfeilerLehman(1)([Graph(2, [(0, 1)], "CC", "1"), Graph(2, [(0, 1)], "CC")])
    with pytest.raises(InputError, match="two labels, '1' and '2'"):
        Graph(2, [(0, 1), (1, 0)], "CC", "12")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n0\n5\n1\n1\n",
    "edge_labels": "7\n7\n8\n8\n7\n7\n",
}


def written(folder, **changed):
    for name, text in {**FILES, **changed}.items():
        if text is not None:
            (folder / f"SET_{name}.txt").write_text(text)
    return folder


def test_files_are_read_with_their_lonely_nodes(tmp_path):
    graphs, y = read_tu(written(tmp_path))
    assert y.tolist() == [1, -1]
    assert graphs == [
        Graph(4, [(0, 1), (1, 2)], [0, 1, 0, 5], [7, 8]),
        Graph(2, [(0, 1)], [1, 1], [7]),
    ]
    assert read_tu(tmp_path, edge_labels=False)[0][1] == Graph(2, [(0, 1)], [1, 1])


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"A": "1, 5\n5, 1\n", "edge_labels": None}, "line 1 .* joins nodes of two graphs"),
        ({"A": "1, 9\n", "edge_labels": None}, "names a node outside 1 to 6"),
        ({"node_labels": "1\n"}, "has 1 lines, and 6 were expected"),
        ({"graph_indicator": "2\n1\n1\n1\n2\n2\n"}, "must ascend"),
        ({"A": "1, x\n"}, "whole number"),
        ({"A": None}, "lacks SET_A.txt"),
        ({"graph_indicator": None}, "it holds 0"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, changed, words):
    with pytest.raises(InputError, match=words):
        read_tu(written(tmp_path, **changed))


# ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_order_of_the_nodes_does_not_matter(case):
    _, k, graphs, _ = case
    r = np.random.default_rng(0)
    moved = [g.permuted(r.permutation(g.nodes)) for g in graphs]
    np.testing.assert_allclose(k(moved), k(graphs), rtol=1e-13)
    np.testing.assert_allclose(k(moved, graphs), k(graphs), rtol=1e-13)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_graph_without_nodes_has_nothing_in_common_with_any(case):
    _, k, graphs, _ = case
    assert graphs[0].nodes == 0
    np.testing.assert_array_equal(k(graphs)[0], 0.0)
    assert k([graphs[0]]).tolist() == [[0.0]]


def test_a_node_without_neighbours_keeps_its_label_at_every_depth():
    alone = Graph(1, [], ["C"])
    pair = Graph(2, [(0, 1)], ["C", "C"])
    np.testing.assert_array_equal(WeisfeilerLehman(3)([alone, pair]), [[4.0, 2.0], [2.0, 16.0]])
    assert WeisfeilerLehman(2).count(alone) == {"C": 1.0, "C()": 1.0, "C()()": 1.0}


def test_features_are_named_by_what_is_seen():
    chain = Graph(4, [(0, 1), (1, 2), (2, 3)], "CCNO")
    assert WeisfeilerLehman(2).count(chain) == dict.fromkeys(
        [
            "N",
            "O",
            "C(C)",
            "C(C,N)",
            "N(C,O)",
            "O(N)",
            "C(C(C,N))",
            "C(C(C),N(C,O))",
            "N(C(C,N),O(N))",
            "O(N(C,O))",
        ],
        1.0,
    ) | {"C": 2.0}
    bonded = Graph(2, [(0, 1)], "CO", "2")
    assert list(WeisfeilerLehman(1).count(bonded)) == ["C", "O", "C(2:O)", "O(2:C)"]
    assert list(WeisfeilerLehman(0, "edges").count(bonded)) == ["C -2- O", "O -2- C"]
    assert ShortestPath().count(chain)["C -3- O"] == 1.0
    phi = OptimalAssignment(0).sparse_map(Rows([chain]))
    assert list(phi.names) == ["C ≥ 1", "C ≥ 2", "N ≥ 1", "O ≥ 1"]
    assert "N(C,O)" in str(list(WeisfeilerLehman(1).on("g").sparse_map(Rows(table([chain]))).names))


def table(things):
    import pandas as pd

    return pd.DataFrame({"g": things, "n": 0})


@pytest.mark.parametrize("graphs", [LABELLED, PLAIN, BONDED], ids=["labels", "plain", "bonds"])
def test_the_assignment_is_the_best_of_all(graphs):
    height = 2
    K = OptimalAssignment(height)(graphs)
    for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate(graphs), 2):
        worth = sum(
            np.array([[p == q for q in trees(b, h)] for p in trees(a, h)])
            .reshape(a.nodes, b.nodes)
            .astype(int)
            for h in range(height + 1)
        )
        best = worth[linear_sum_assignment(worth, maximize=True)].sum()
        assert K[i, j] == best == assigned(height)(a, b)


def test_labels_that_fit_did_not_see_are_left_out_of_the_map_and_not_of_the_kernel():
    seen = [Graph(2, [(0, 1)], "CC"), Graph(2, [(0, 1)], "CN")]
    new = [Graph(2, [(0, 1)], "XC"), Graph(3, [(0, 1)], "XYC")]
    for k in (WeisfeilerLehman(2), OptimalAssignment(2), WeisfeilerLehman(1, "edges"), ShortestPath()):
        phi = k.sparse_map(Rows(seen))
        np.testing.assert_array_equal((phi(new) @ phi.matrix.T).toarray(), k(new, seen))
        np.testing.assert_array_equal(k.diag(new), np.diag(k(new)))
        assert np.all(k.diag(new) > phi(new).multiply(phi(new)).sum(axis=1).ravel())


def test_colours_agree_where_the_trees_do_on_large_random_graphs():
    r = np.random.default_rng(3)
    graphs = [nx.gnm_random_graph(60, 80, seed=int(s)) for s in r.integers(0, 999, 6)]
    K = WeisfeilerLehman(4)(graphs)
    for i, a in enumerate(graphs):
        for j, b in enumerate(graphs):
            total = a.number_of_nodes() * b.number_of_nodes()
            joined = nx.disjoint_union(a, b)
            nx.set_node_attributes(joined, "same", "mark")
            for h in range(1, 5):
                marks = nx.weisfeiler_lehman_subgraph_hashes(joined, node_attr="mark", iterations=h)
                here = [marks[v][h - 1] for v in joined]
                n = a.number_of_nodes()
                total += sum(p == q for p in here[:n] for q in here[n:])
            assert K[i, j] == total


@pytest.mark.parametrize("k", [ShortestPath(), WeisfeilerLehman(2, "shortest paths")], ids=repr)
@pytest.mark.parametrize("together", [1, 7, 50])
def test_pairs_in_parts_are_the_pairs_in_one(k, together, monkeypatch):
    rng = np.random.default_rng(0)
    graphs = [Graph(0), Graph(1, [], ["a"]), Graph(3, [], ["a", "b", "b"])]
    for n in (5, 12, 9, 2):
        graphs.append(Graph(n, np.argwhere(np.triu(rng.random((n, n)) < 0.3, 1)), rng.choice(["a", "b"], n)))
    whole = k(graphs)
    few = k.features_of(graphs[:5])(graphs).toarray()
    for name in ("paths.TOGETHER", "weisfeiler_lehman.MANY_TOGETHER"):
        monkeypatch.setattr(f"mercer.kernels.things.graphs.{name}", together)
    np.testing.assert_array_equal(k(graphs), whole)
    in_parts = k.features_of(graphs[:5])
    np.testing.assert_array_equal(in_parts(graphs).toarray() @ in_parts.matrix.toarray().T, few @ few[:5].T)
