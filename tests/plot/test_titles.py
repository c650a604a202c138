"""What a picture says is counted again from the data: titles and legends of `lifting` and `decision`."""

import re
import warnings

import numpy as np
import pytest

import mercer
from mercer import SVC, SVDD, Adatron, KernelMachine, KernelPerceptron, OneClassSVM, Perceptron
from mercer.plot.lifting import lift


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def best_threshold(x, y):
    """Whether some point separates numbers: by trying the middle of every pair of neighbours."""
    v = np.unique(x)
    return any(len(np.unique((x > t) ^ y.astype(bool))) == 1 for t in (v[1:] + v[:-1]) / 2)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 0, 1, 0]),
        ([-2.0, -1.0, 1.0, 2.0], [1, 0, 0, 1]),
        ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1]),
        ([0.0, 0.0, 1.0], [0, 1, 1]),
    ],
)
def test_the_titles_of_a_lifting_count_what_is_drawn(x, y):
    X, y = np.array(x)[:, None], np.array(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = mercer.plot.lifting(X, y)
    before, after = titles(figure)
    assert ("no point" in before) == (not best_threshold(X[:, 0], y))
    # the drawn line, read from the picture
    drawn = [o for o in figure.axes[1].lines if o.get_color() == "#111111"]
    if not drawn:
        assert "one class for all" in after
        return
    line = drawn[0]
    t, h = np.array(line.get_xdata(), float), np.array(line.get_ydata(), float)
    F = lift(X)
    above = F[:, 0] > t[0] if np.ptp(t) == 0 else F[:, 1] > np.interp(F[:, 0], t, h)
    right = max((above == (y == 1)).sum(), (above == (y == 0)).sum())
    numbers = [int(n) for n in re.findall(r"\d+", after.split(":")[1])]
    assert ("separates all" in after) == (right == len(y))
    assert numbers == ([len(y)] if right == len(y) else [right, len(y)])


def test_two_columns_that_a_line_separates_are_not_called_inseparable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0.2, "right", "left")
    X[:, 0] += np.where(y == "right", 0.5, -0.5)
    figure = mercer.plot.lifting(X, y)
    assert "a line separates them too" in titles(figure)[0]
    assert {"class left", "class right"} <= set(legend(figure.axes[0]))


MACHINES = [
    SVC("RBF(0.7)", 2.0),
    KernelPerceptron("RBF(0.7)"),
    KernelPerceptron("RBF(0.7)", average="voted"),
    Perceptron("Polynomial(2)"),
    Adatron("RBF(0.7)", C=1.0),
    KernelMachine("RBF(0.7)", "logistic"),
    KernelMachine("RBF(0.7)", "hinge"),
]


@pytest.mark.parametrize("model", MACHINES, ids=lambda m: f"{type(m).__name__} {getattr(m, 'average', '')}")
def test_rings_are_called_what_they_are(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    figure = mercer.plot.decision(model, X, y, resolution=40)
    axes, words = figure.axes[0], legend(figure.axes[0])
    title = axes.get_title(loc="left")
    perceptron = isinstance(model, KernelPerceptron | Perceptron)
    assert any("mistake" in word for word in words) == perceptron
    if perceptron:
        assert not any("support" in word or "margin" in word for word in words)
        assert f"{len(np.unique(model.mistakes_))} rows with a mistake" in title
    rings = [
        c
        for c in axes.collections
        if c.get_label() in words and c.get_label().split()[0] in ("rows", "support")
    ]
    for ring in rings:
        assert f"{len(ring.get_offsets())} {ring.get_label()}" in title
    signs = np.where(y == 1, 1.0, -1.0)
    for ring in rings:
        at = [int(np.argmin(np.abs(X - p).sum(axis=1))) for p in np.asarray(ring.get_offsets())]
        sides = signs[at] * model.decision_function(X)[at]
        if ring.get_label() == "support vectors on the margin":
            np.testing.assert_allclose(sides, 1.0, atol=5e-3)
        if ring.get_label() == "support vectors at the bound":
            assert (sides <= 1.0 + 5e-3).all()
    if "margins f = ±1" in words:
        assert isinstance(model, SVC | Adatron) or model.loss == "hinge"


@pytest.mark.parametrize("model", [OneClassSVM("RBF(0.7)", nu=0.2), SVDD("RBF(0.7)", nu=0.2)])
def test_one_class_has_a_boundary_and_no_margin(model):
    X = np.random.default_rng(2).normal(size=(40, 2))
    figure = mercer.plot.decision(model.fit(X), X, resolution=40)
    words = legend(figure.axes[0])
    assert not any("margin" in word for word in words)
    for ring in figure.axes[0].collections:
        if ring.get_label() == "support vectors on the boundary":
            near = model.decision_function(np.asarray(ring.get_offsets()))
            assert np.abs(near).max() < 1e-2
