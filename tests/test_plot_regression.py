"""Pictures of regression: panels of curves and the paths of penalties and steps."""

import numpy as np
import pytest

from mercer import KernelLeastSquares, KernelRidge, KernelRidgeCV

pytest.importorskip("matplotlib")
from mercer import plot
from mercer.plot.style import PlotError


def data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-1, 1, size=(30, 1)), axis=0)
    return X, np.sin(4 * X[:, 0]) + 0.2 * rng.normal(size=30)


def test_panels_show_the_curve_of_each_kernel_on_shared_axes():
    X, y = data()
    figure = plot.ridge_panels(X, y, degrees=(1, 3), widths=(0.3, 3.0), truth=np.sin)
    assert [a.get_title(loc="left") for a in figure.axes] == [
        "polynomial, degree 1",
        "polynomial, degree 3",
        "RBF, width 0.3",
        "RBF, width 3",
    ]
    line = next(a for a in figure.axes[2].lines if a.get_label() == "fitted")
    from mercer import RBF

    expected = KernelRidge(RBF(0.3), 1e-3).fit(X, y).predict(line.get_xdata().reshape(-1, 1))
    np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-9)
    assert len({a.get_ylim() for a in figure.axes}) == 1
    figure.canvas.draw()
    with pytest.raises(PlotError, match="one column"):
        plot.panels({"a": None}, np.ones((3, 2)), np.ones(3))
    with pytest.raises(PlotError, match="no model"):
        plot.panels({}, X, y)


def test_paths_mark_what_was_kept():
    X, y = data()
    ridge = KernelRidgeCV("RBF(0.3)").fit(X, np.column_stack([y, -y]))
    descent = KernelLeastSquares("RBF(0.1)", early_stopping=True, tol=0.0, random_state=0).fit(X, y)
    for model, kept in ((ridge, f"kept: α = {ridge.alpha_:.3g}"), (descent, f"kept: step {descent.n_iter_}")):
        figure = plot.path(model)
        labels = [line.get_label() for line in figure.axes[0].lines]
        assert kept in labels
        marked = next(line for line in figure.axes[0].lines if line.get_label() == kept)
        place = ridge.alpha_ if model is ridge else descent.n_iter_ + 1
        assert marked.get_xdata()[0] == pytest.approx(place)
        figure.canvas.draw()
    with pytest.raises(PlotError, match="KernelRidgeCV"):
        plot.path(KernelRidge())
