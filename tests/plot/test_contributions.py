"""Letters and nodes have the colours of their contributions; nothing is drawn over another or left out."""

import sys

import numpy as np
import pytest
from matplotlib import colormaps
from scipy.spatial.distance import pdist

from graphs_under_test import LABELLED, PLAIN
from mercer import SVC, Graph, KernelRidge, OptimalAssignment, Spectrum, WeisfeilerLehman, plot
from mercer.plot.contributions import layout
from mercer.plot.style import PlotError
from mercer.theory import contributions

GENES = ["TATAAT", "GGCGCC", "TATATT", "GCGCGG", "TTTAAT", "CCGCGC"]
STRINGS = SVC(Spectrum(2), C=10.0).fit(GENES, [1, 0, 1, 0, 1, 0])
GRAPHS = SVC(WeisfeilerLehman(1), C=10.0).fit(LABELLED[:8], np.arange(8) % 2)


def shades(found, function=0):
    """The colours that all places should have, one thing after the other."""
    values = np.concatenate([each.values[:, function] for each in found])
    return colormaps["PuOr_r"]((values / np.abs(values).max() + 1) / 2)


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_each_letter_is_a_cell_in_the_colour_of_its_contribution():
    X = ["GGTATA", "", "TATAATGCGC" * 13]
    figure = plot.contributions(STRINGS, X)
    axes = figure.axes[0]
    found = contributions(STRINGS, X)
    np.testing.assert_allclose([cell.get_facecolor() for cell in axes.patches], shades(found), atol=0.006)
    letters = [word for word in words(axes) if len(word) == 1 and word.isalpha()]
    assert "".join(letters) == "".join(X)
    for each in found:
        assert f"f = {each.total[0]:+.3g}".replace("-", "−") in words(axes)
    corners = {cell.get_xy() for cell in axes.patches}
    assert len(corners) == len(axes.patches) == 136
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert all(low <= x <= high - 1 and top <= y <= bottom - 0.9 for x, y in corners)


def test_the_title_says_what_a_colour_means_and_the_bar_has_zero_in_its_middle():
    figure = plot.contributions(STRINGS, ["GGTATA"])
    title = figure.get_suptitle()
    assert "colour is what each letter contributes" in title and "Spectrum(2)" in title
    low, high = figure.axes[-1].get_xlim()
    assert low == -high < 0
    assert figure.axes[-1].get_xlabel() == "contribution to f of 1 against 0"
    assert "each node" in plot.contributions(GRAPHS, LABELLED[:2]).get_suptitle()


def test_each_node_has_the_colour_of_its_contribution_and_each_edge_is_a_line():
    figure = plot.contributions(GRAPHS, LABELLED)
    found = contributions(GRAPHS, LABELLED)
    panels = figure.axes[: len(LABELLED)]
    nodes = [axes.collections[0].get_facecolor() for axes in panels if axes.collections]
    np.testing.assert_allclose(np.concatenate(nodes), shades(found), atol=0.006)
    for axes, graph, each in zip(panels, LABELLED, found, strict=True):
        assert len(axes.lines) == len(graph.edges)
        assert words(axes) == (list(graph.labels) if graph.nodes else ["no nodes"])
        said = "0" if each.total[0] == 0 else f"{each.total[0]:+.3g}"
        assert axes.get_title().endswith(f"f = {said}".replace("-", "−"))


def test_of_several_functions_the_one_that_is_asked_for_is_drawn():
    model = SVC(OptimalAssignment(1), C=10.0).fit(LABELLED[3:9], np.arange(6) % 3)
    found = contributions(model, LABELLED[3:5])
    for function in range(3):
        figure = plot.contributions(model, LABELLED[3:5], function=function)
        drawn = np.concatenate([axes.collections[0].get_facecolor() for axes in figure.axes[:2]])
        np.testing.assert_allclose(drawn, shades(found, function), atol=0.006)
        assert found[0].titles[function] in figure.get_suptitle()
    with pytest.raises(PlotError, match="from 0 to 2; got 3"):
        plot.contributions(model, LABELLED[3:5], function=3)


RING = Graph(9, [(i, (i + 1) % 9) for i in range(9)])
SHAPES = [*PLAIN[1:], RING, Graph(7, [(0, i) for i in range(1, 7)]), Graph(12, [(0, 1), (2, 3), (3, 4)])]


@pytest.mark.parametrize("with_networkx", [True, False])
def test_no_two_nodes_are_at_one_place(with_networkx, monkeypatch):
    if not with_networkx:
        monkeypatch.setitem(sys.modules, "networkx", None)
    for graph in SHAPES:
        at = layout(graph)
        assert at.shape == (graph.nodes, 2) and np.isfinite(at).all()
        np.testing.assert_array_equal(at, layout(graph))
        if graph.nodes > 1:
            assert pdist(at).min() > 0.1
    model = KernelRidge(WeisfeilerLehman(1), 0.1).fit(PLAIN, np.arange(len(PLAIN)))
    assert len(plot.contributions(model, SHAPES[:3]).axes) == 4


def test_a_ring_whose_nodes_come_in_any_order_is_drawn_as_a_ring():
    pytest.importorskip("networkx")
    r = np.random.default_rng(0)
    for _ in range(5):
        at = layout(RING.permuted(r.permutation(9)))
        radius = np.linalg.norm(at - at.mean(axis=0), axis=1)
        assert radius.max() < 1.1 * radius.min()


def test_what_does_not_fit_on_a_picture_is_refused():
    with pytest.raises(PlotError, match="at most 24 graphs fit on one picture; got 25"):
        plot.contributions(GRAPHS, [LABELLED[3]] * 25)
    with pytest.raises(PlotError, match="these strings take 61 lines of 50 symbols"):
        plot.contributions(STRINGS, ["GC"] * 61)
