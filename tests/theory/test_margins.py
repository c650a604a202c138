"""Bounds, margins, the representer theorem, and the picture of a decision."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

import mercer
from mercer import SVC, KernelPerceptron, OneClassSVM
from mercer.errors import NoFiniteMapError, ParameterError
from mercer.theory import (
    margin_bound,
    novikoff_bound,
    perceptron_estimate,
    radius_of,
    representer,
    support_vector_bound,
)


def test_bounds_beside_the_measured_error():
    X, y = make_moons(400, noise=0.05, random_state=0)
    model = SVC("RBF(0.5)", np.inf).fit(X[:200], y[:200])
    error = 1 - model.score(X[200:], y[200:])
    found = model.margins(X[:200], y[:200])
    assert error <= support_vector_bound(len(model.support_), 200)
    assert error <= margin_bound(radius_of("RBF(0.5)", X), found.delta[0], 200)


def test_bounds_refuse_numbers_without_meaning():
    for call in (
        lambda: margin_bound(1.0, 0.0, 10),
        lambda: support_vector_bound(11, 10),
        lambda: novikoff_bound(np.nan, 1.0),
        lambda: perceptron_estimate(0, 3),
    ):
        with pytest.raises(ParameterError):
            call()


@pytest.mark.parametrize("kernel", ["Linear()", "Polynomial(3)", "AllSubsets()", "2.0*Linear() + 1.0"])
def test_w_lies_in_the_span_and_gives_the_same_decisions(kernel):
    X, y = load_iris(return_X_y=True)
    found = representer(SVC(kernel, 0.5).fit(X, y), X)
    assert found.ok, (found.difference, found.norm_difference)


def test_an_infinite_map_has_no_w_to_compare():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NoFiniteMapError):
        representer(SVC().fit(X, y), X)


def test_decisions_are_drawn_for_two_three_and_one_class():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    two = mercer.plot.decision(SVC().fit(X[:100], y[:100]), X[:100], y[:100], resolution=40)
    labels = {t.get_text() for t in two.axes[0].get_legend().get_texts()}
    assert {"boundary f = 0", "margins f = ±1", "class 0", "class 1"} <= labels
    assert any("support vectors" in t for t in labels)
    three = mercer.plot.decision(SVC().fit(X, y), X, y, resolution=40)
    assert "boundaries" in {t.get_text() for t in three.axes[0].get_legend().get_texts()}
    mercer.plot.decision(OneClassSVM().fit(X), X, resolution=40)
    mercer.plot.decision(KernelPerceptron().fit(X[:100], y[:100]), X[:100], y[:100], resolution=40)
    with pytest.raises(mercer.errors.MercerError, match="two columns"):
        mercer.plot.decision(SVC().fit(X[:, :1], y), X[:, :1], y)
