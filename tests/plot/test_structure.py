"""The pictures of structure: they draw, they show the right numbers, and they refuse what cannot be drawn."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_circles

import mercer
from mercer import RBF, KernelKMeans, KernelPCA, MercerMap, Sigmoid
from mercer.errors import MercerError
from mercer.plot.lifting import lift

X, Y = load_iris(return_X_y=True)


def labels_of(axes):
    return [t.get_text() for t in axes.get_legend().get_texts()]


def test_a_spectrum_shows_eigenvalues_and_the_variance_they_explain(tmp_path):
    pca = KernelPCA("RBF()", 6).fit(X)
    figure = mercer.plot.spectrum(pca)
    left, right = figure.axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), pca.eigenvalues_)
    heights = [bar.get_height() for bar in right.patches]
    np.testing.assert_allclose(heights, np.cumsum(pca.explained_variance_ratio_))
    assert "by 6 components" in right.get_title(loc="left")
    figure.savefig(tmp_path / "spectrum.png")
    assert (tmp_path / "spectrum.png").stat().st_size > 5000


def test_a_spectrum_of_a_map_knows_what_was_left_out_and_negative_ones_are_marked():
    phi = MercerMap("RBF(1.0)", n_components=3).fit(X)
    share = [bar.get_height() for bar in mercer.plot.spectrum(phi).axes[1].patches][-1]
    assert share == pytest.approx(1 - phi.residual_share_)
    values = np.linalg.eigvalsh(Sigmoid(2.0)(X))
    figure = mercer.plot.spectrum(values, count=10)
    assert "negative, shown as -λ" in labels_of(figure.axes[0])
    assert "positive part" in figure.axes[1].get_title(loc="left")
    for bad in ("RBF()", np.zeros((2, 2)), []):
        with pytest.raises((MercerError, ValueError)):
            mercer.plot.spectrum(bad)


def test_an_embedding_shows_the_projections():
    pca = KernelPCA("RBF()", 3).fit(X)
    figure = mercer.plot.embedding(pca, X, Y, components=(0, 2))
    axes = figure.axes[0]
    assert labels_of(axes) == ["0", "1", "2"]
    drawn = np.vstack([c.get_offsets() for c in axes.collections])
    np.testing.assert_allclose(drawn, pca.transform(X)[:, [0, 2]])
    assert "component 3" in axes.get_ylabel() and "%" in axes.get_xlabel()
    mercer.plot.embedding(pca, X)
    assert len(mercer.plot.embedding(pca, X, X[:, 0]).axes) == 2  # a colour bar for a number
    with pytest.raises(MercerError, match="components"):
        mercer.plot.embedding(pca, X, components=(0, 3))
    with pytest.raises(MercerError, match="one for each"):
        mercer.plot.embedding(pca, X, Y[:3])


def test_a_gram_matrix_is_ordered_by_cluster():
    order = np.random.default_rng(0).permutation(150)
    figure = mercer.plot.gram_matrix(RBF(1.0), X[order], Y[order])
    shown = figure.axes[0].images[0].get_array()
    sizes = np.bincount(Y)
    rows = np.repeat(np.arange(3), sizes)
    K = RBF(1.0)(X)
    for a in range(3):
        for b in range(3):
            block = np.asarray(shown)[np.ix_(rows == a, rows == b)]
            assert block.mean() == pytest.approx(K[np.ix_(a == Y, b == Y)].mean())
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["0", "1", "2"]
    plain = mercer.plot.gram_matrix("precomputed", K).axes[0].images[0].get_array()
    np.testing.assert_allclose(plain, K)
    many = np.random.default_rng(0).normal(size=(1500, 2))
    assert "1200 of 1500" in mercer.plot.gram_matrix("RBF(1.0)", many).axes[0].get_title(loc="left")
    with pytest.raises(MercerError, match="one for each"):
        mercer.plot.gram_matrix(RBF(1.0), X, Y[:3])


def test_clusters_are_drawn_with_smooth_boundaries():
    C, _ = make_circles(120, factor=0.3, noise=0.05, random_state=0)
    model = KernelKMeans(RBF(0.5), 2, n_init=5, random_state=0).fit(C)
    axes = mercer.plot.clusters(model, C, resolution=60).axes[0]
    assert sorted(labels_of(axes)) == ["cluster 0", "cluster 1"]
    assert "inertia" in axes.get_title(loc="left")
    edge = np.vstack([p.vertices for c in axes.collections for p in c.get_paths() if len(p.vertices) > 30])
    assert 0.3 < np.linalg.norm(edge, axis=1).mean() < 0.9  # a ring between the circles
    with pytest.raises(MercerError, match="two columns"):
        mercer.plot.clusters(KernelKMeans(n_clusters=2, random_state=0).fit(X), X)


def test_lifting_draws_the_maps_and_counts_what_they_separate():
    both = mercer.plot.lifting()
    titles = [a.get_title(loc="left") for a in both.axes]
    assert sum("separates all 26" in t for t in titles) == sum("separates all 120" in t for t in titles) == 1
    one = mercer.plot.lifting([[-2.0], [-1.0], [1.0], [2.0]], ["far", "near", "near", "far"])
    assert "separates all 4" in one.axes[1].get_title(loc="left")
    roots = [line.get_xdata()[0] for line in one.axes[0].lines[1:]]
    np.testing.assert_allclose(sorted(roots), [-np.sqrt(2.5), np.sqrt(2.5)], rtol=1e-3)
    assert mercer.plot.lifting([[0.0, 1.0], [2.0, 2.0], [0.0, -1.0], [-2.0, 2.0]], [0, 1, 0, 1]).axes
    for bad in (([[0.0], [1.0]], None), (X, Y), ([[0.0], [1.0]], [0])):
        with pytest.raises(MercerError):
            mercer.plot.lifting(*bad)


def test_the_lifted_product_is_the_kernel():
    A = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(lift(A) @ lift(A).T, (A @ A.T) ** 2)
