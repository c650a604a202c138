"""w = Σ c_i φ(x_i) by name: what it says of new rows is what the machine says."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    RBF,
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    Mismatch,
    Spectrum,
    Text,
    WeightedDegree,
    White,
    plot,
)
from mercer.errors import ParameterError
from mercer.theory import feature_weights

GENES = ["TATAAT", "GGCGCC", "TATATT", "GCGCGG", "TTTAAT", "CCGCGC", "TATGAT", "GGCCCC"]
NEW = ["TATAAA", "", "GATTACA", "NNN"]
Y = np.arange(8) % 2

KERNELS = [
    Spectrum(2),
    Mismatch(3, 1).normalized(),
    WeightedDegree(3, shift=1),
    2.0 * Spectrum(3).normalized() + 0.5 * Spectrum(1) + 0.3,
    Text("characters", 1, 2, weighting="idf"),
]


@pytest.mark.parametrize("k", KERNELS, ids=str)
def test_the_weights_give_the_function_of_every_machine(k):
    for model in (SVC(k, C=3.0).fit(GENES, Y), SVC(k, C=3.0).fit(GENES, np.arange(8) % 3)):
        found = feature_weights(model).values(NEW)
        wanted = model.decision_function(NEW)
        if wanted.ndim == 1:
            np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-10, atol=1e-10)
        assert found.shape == (4, feature_weights(model).weights.shape[1])
    for model in (KernelRidge(k, 0.1), SVR(k, C=3.0)):
        model.fit(GENES, Y.astype(float))
        np.testing.assert_allclose(feature_weights(model).values(NEW)[:, 0], model.predict(NEW), atol=1e-10)
    pca = KernelPCA(k, 2).fit(GENES)
    assert np.isfinite(feature_weights(pca).values(NEW)).all()


def test_a_ridge_that_was_solved_in_few_features_has_their_weights():
    model = KernelRidge(Spectrum(1) + 0.5, 0.1).fit(GENES, np.arange(8.0))
    assert model.solver_ == "primal"
    found = feature_weights(model)
    np.testing.assert_allclose(found.values(NEW)[:, 0], model.predict(NEW), rtol=1e-10, atol=1e-10)
    by_rows = Spectrum(1).features_of(GENES).matrix.T @ model.dual_coef_
    named = dict(found.top(100))
    for name, weight in zip(Spectrum(1).features_of(GENES).names, by_rows, strict=True):
        assert named[name] == pytest.approx(weight, rel=1e-9, abs=1e-9)


def test_noise_says_nothing_of_new_rows():
    model = GaussianProcessRegressor(Spectrum(2) + White(0.5), optimizer=None).fit(GENES, Y.astype(float))
    np.testing.assert_allclose(feature_weights(model).values(NEW)[:, 0], model.predict(NEW), atol=1e-10)


def test_the_largest_come_first_and_are_printed():
    w = feature_weights(SVC(Spectrum(2), C=10.0).fit(GENES, Y))
    sizes = [abs(weight) for _, weight in w.top(100)]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == w.map.dimension
    lines = str(w).splitlines()
    assert lines[0].startswith("f of 1 against 0 = w·φ(x)") or "= w·φ(x)" in lines[0]
    name, weight = w.top(1)[0]
    assert lines[1].split() == [name, f"{weight:+.4g}"]


def test_without_names_there_are_no_weights():
    with pytest.raises(ParameterError, match="no inner product of sparse features"):
        feature_weights(SVC(RBF(1.0)).fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(ParameterError, match="precomputed"):
        feature_weights(SVC("precomputed").fit(np.eye(2), [0, 1]))


def test_bars_are_drawn_with_their_names():
    pytest.importorskip("matplotlib")
    model = SVC(Spectrum(2), C=10.0).fit(GENES, Y)
    figure = plot.feature_weights(model, count=6)
    axes = figure.axes[0]
    shown = {label.get_text() for label in axes.get_yticklabels()}
    assert shown == {name for name, _ in feature_weights(model).top(6)}
    assert sorted(bar.get_width() for bar in axes.patches) == sorted(
        v for _, v in feature_weights(model).top(6)
    )
