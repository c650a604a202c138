"""Laws of every picture: it draws into the axes it is given and nowhere else, and its axes have names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelKMeans, KernelPCA, KernelRidge, KernelRidgeCV, plot
from mercer.plot.style import PlotError

RNG = np.random.default_rng(0)
PLANE = pd.DataFrame(RNG.normal(size=(24, 2)), columns=["height", "weight"])
SIDES = np.where(PLANE["height"] * PLANE["weight"] > 0, "same", "other")
LINE = pd.DataFrame({"hours": np.linspace(0.0, 3.0, 12)})
GRADE = pd.Series(np.sin(LINE["hours"]), name="grade")
WORDS = ["TATA", "GCGC", "TTAT"]

SVM = SVC("RBF(1.0)").fit(PLANE, SIDES)
GROUPS = KernelKMeans("RBF(1.0)", 2, random_state=0).fit(PLANE)
PCA = KernelPCA("RBF(1.0)", 3).fit(PLANE)
GP = GaussianProcessRegressor("RBF(1.0) + Linear()", noise=0.1).fit(LINE, GRADE)
LETTERS = SVC(mercer.Spectrum(2)).fit(WORDS, [1, 0, 1])

# Every public picture, small; what has several forms has one of each.
PICTURES = {
    "clusters": lambda **ax: plot.clusters(GROUPS, PLANE, resolution=20, **ax),
    "contributions": lambda **ax: plot.contributions(LETTERS, WORDS, **ax),
    "decision": lambda **ax: plot.decision(SVM, PLANE, SIDES, resolution=20, **ax),
    "embedding": lambda **ax: plot.embedding(PCA, PLANE, GRADE.iloc[np.arange(24) % 12], **ax),
    "feature_weights": lambda **ax: plot.feature_weights(LETTERS, **ax),
    "gram_matrix": lambda **ax: plot.gram_matrix("RBF(1.0)", PLANE, SIDES, **ax),
    "kernel": lambda **ax: plot.kernel("RBF(1.0)", **ax),
    "kernel, of two columns": lambda **ax: plot.kernel("RBF([1.0, 2.0])", **ax),
    "kernel, refuted": lambda **ax: plot.kernel("Sigmoid(1.0)", **ax),
    "lifting": lambda **ax: plot.lifting(PLANE, SIDES, **ax),
    "lifting, examples": lambda **ax: plot.lifting(**ax),
    "panels": lambda **ax: plot.panels(
        {"a ridge": KernelRidge().fit(LINE.to_numpy(), GRADE)}, LINE, GRADE, **ax
    ),
    "path": lambda **ax: plot.path(KernelRidgeCV("RBF(1.0)").fit(LINE, GRADE), **ax),
    "regression": lambda **ax: plot.regression(GP, LINE, GRADE, resolution=20, **ax),
    "regression, terms": lambda **ax: plot.regression(GP, LINE, GRADE, terms=True, resolution=20, **ax),
    "ridge_panels": lambda **ax: plot.ridge_panels(LINE.to_numpy(), GRADE, degrees=(1,), widths=(1.0,), **ax),
    "spectrum": lambda **ax: plot.spectrum(PCA, **ax),
}


def test_every_public_picture_is_here():
    assert {name.split(",")[0] for name in PICTURES} == set(plot.__all__)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_draws_into_the_axes_it_is_given_and_nowhere_else(name):
    figure = Figure(figsize=(14, 14))
    grid = figure.subplots(2, 2)
    ours = grid[1, 0]
    # the quarter of the figure that has our axes; panels that take their place may use its margins too
    right, top = figure.bbox.width / 2, figure.bbox.height / 2
    others = [axes for axes in grid.flat if axes is not ours]
    before = [(len(axes.get_children()), axes.get_position().bounds) for axes in others]
    assert PICTURES[name](ax=ours) is figure
    figure.draw_without_rendering()
    assert [(len(axes.get_children()), axes.get_position().bounds) for axes in others] == before
    drawn = [axes for axes in figure.axes if axes not in others]
    assert any(axes.has_data() or axes.texts for axes in drawn)
    for axes in drawn:
        # a pixel for rounding
        found = axes.get_window_extent()
        assert -1 <= found.x0 <= found.x1 <= right + 1
        assert -1 <= found.y0 <= found.y1 <= top + 1
    assert not (figure.legends or figure.texts or figure.get_suptitle())
    assert pyplot.get_fignums() == []


def numbered(axis):
    return axis.get_visible() and any(t.get_visible() and t.get_text() for t in axis.get_ticklabels())


@pytest.mark.parametrize("name", PICTURES)
def test_an_axis_with_numbers_has_a_name(name):
    figure = PICTURES[name]()
    figure.canvas.draw()
    for axes in figure.axes:
        if axes.axison:
            for axis in axes._axis_map.values():
                assert axis.get_label_text() or not numbered(axis), (axes.get_title(loc="left"), axis)


@pytest.mark.parametrize("name", ["clusters", "decision", "lifting"])
def test_the_axes_of_a_plane_are_called_as_the_columns_of_the_table(name):
    axes = PICTURES[name]().axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("height", "weight")


@pytest.mark.parametrize("name", ["panels", "regression"])
def test_the_axes_of_a_curve_are_called_as_the_column_and_the_target(name):
    axes = PICTURES[name]().axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hours", "grade")


def test_names_of_a_polars_table_are_found_and_an_array_has_letters():
    table = pl.DataFrame({"a": PLANE["height"].to_numpy(), "b": PLANE["weight"].to_numpy()})
    fitted = SVC("RBF(1.0)").fit(PLANE.to_numpy(), SIDES)
    named = plot.decision(fitted, table, SIDES, resolution=10).axes[0]
    assert (named.get_xlabel(), named.get_ylabel()) == ("a", "b")
    plain = plot.decision(fitted, PLANE.to_numpy(), SIDES, resolution=10).axes[0]
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("x₁", "x₂")


def test_a_legend_lies_under_the_panel_however_low_that_is():
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(3, 1)
    plot.regression(GP, LINE, GRADE, resolution=20, ax=axes[1])
    figure.draw_without_rendering()
    legend = axes[1].get_legend().get_window_extent()
    assert legend.y1 <= axes[1].xaxis.label.get_window_extent().y0


def test_axes_in_no_grid_cannot_be_divided_and_it_is_said():
    ax = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(PlotError, match="add_subplot"):
        plot.kernel("RBF(1.0)", ax=ax)
    assert plot.regression(GP, LINE, GRADE, resolution=20, ax=ax) is ax.figure
