"""Data of the benchmarks: made here, or read from a folder of real sets (`--data`,
by default ../shared/data).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np


def classes(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes with curved borders, columns standardised."""
    from sklearn.datasets import make_classification

    informative = min(d, max(2, d // 2))
    X, y = make_classification(
        n, d, n_informative=informative, n_redundant=0, n_clusters_per_class=2, flip_y=0.05, random_state=seed
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def moons(n: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.3, random_state=0)


def waves(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of the first columns with noise, for regression."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2 % d] + 0.3 * rng.normal(size=n)


def letters(n: int) -> tuple[np.ndarray, np.ndarray]:
    """26 classes of three bumps each, 16 whole numbers from 0 to 15, like the UCI letters."""
    rng = np.random.default_rng(0)
    centres = rng.normal(7.5, 2.2, size=(26, 3, 16))
    y = rng.integers(26, size=n)
    X = centres[y, rng.integers(3, size=n)] + rng.normal(0, 1.5, size=(n, 16))
    return np.clip(np.rint(X), 0, 15), y


def pixels(n: int, side: int = 28) -> tuple[np.ndarray, np.ndarray]:
    """Ten classes of smooth strokes, mixed and bent, most pixels 0: like handwritten digits."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(0)
    styles = gaussian_filter(rng.normal(size=(10, 3, side, side)), (0, 0, 2.5, 2.5))
    y = rng.integers(10, size=n)
    share = rng.dirichlet(np.full(3, 0.4), size=n)
    bent = gaussian_filter(rng.normal(size=(n, side, side)), (0, 2.5, 2.5))
    ink = np.einsum("ns,nsij->nij", share, styles[y] / styles.std()) + 0.4 * bent / bent.std()
    window = np.sqrt(np.outer(np.hanning(side), np.hanning(side)))
    return np.clip(2 * ink * window - 0.5, 0, 1).reshape(n, -1), y


def sparse_rows(n: int, d: int, stored: int, *, words: bool) -> Any:
    """Rows with about `stored` of d columns filled, all columns alike or, like words, some of them often."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    share = 1 / (np.arange(d) + 10.0) if words else np.ones(d)
    columns = rng.choice(d, size=n * stored, p=share / share.sum())
    X = sparse.csr_matrix((rng.random(n * stored), (np.repeat(np.arange(n), stored), columns)), shape=(n, d))
    X.sum_duplicates()
    return X


def documents(n: int, d: int, words: int) -> tuple[Any, np.ndarray]:
    """Documents whose words follow Zipf's law, by tf-idf and of length 1, and two noisy classes of them."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    share = 1 / (np.arange(d) + 10.0)
    columns = rng.choice(d, size=n * words, p=share / share.sum())
    X = sparse.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), columns)), shape=(n, d))
    X.sum_duplicates()
    scores = _weighted(X) @ rng.normal(size=d)
    noisy = scores + 0.3 * scores.std() * rng.normal(size=n)
    return _weighted(X), np.where(noisy > np.median(scores), 1, -1)


def tf_idf(texts: np.ndarray) -> Any:
    """Words of texts, by tf-idf and of length 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts)


def _weighted(counts: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)


def real(folder: str, name: str) -> dict[str, Any] | None:
    """One of the real sets, or None where the folder is not there."""
    loader = Path(folder) / "load.py"
    if not loader.exists():
        return None
    spec = importlib.util.spec_from_file_location("real_data", loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(name)


def mixture(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """k classes of three Gaussian clouds each, with shapes of their own, in at most 20 directions of d."""
    rng = np.random.default_rng(seed)
    inner = min(d, 20)
    cloud = rng.integers(0, 3 * k, n)
    centres = 1.6 * rng.normal(size=(3 * k, inner))
    shapes = 0.6 * np.eye(inner) + 0.6 * rng.normal(size=(3 * k, inner, inner)) / np.sqrt(inner)
    points = centres[cloud] + np.einsum("nd,nde->ne", rng.normal(size=(n, inner)), shapes[cloud])
    if d > inner:
        points = np.tanh(points @ rng.normal(size=(inner, d)) / 4) + 0.3 * rng.normal(size=(n, d))
    return points, cloud % k
