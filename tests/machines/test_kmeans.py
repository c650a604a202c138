"""KernelKMeans: the formula, a slow referee, scikit-learn's KMeans, weights, starts, memory,
and bad input.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import RBF, Interrupted, KernelKMeans, Linear, Polynomial, White
from mercer.errors import (
    InputError,
    InvalidKernelError,
    InvalidKernelWarning,
    ParameterError,
    PrecisionWarning,
    ShapeError,
)


def excused(estimator):
    if estimator.init == "spectral":
        return {}
    names = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    return dict.fromkeys(names, "the random start is drawn from other rows, as in scikit-learn's KMeans")


@parametrize_with_checks(
    [KernelKMeans(n_clusters=3, random_state=0), KernelKMeans(n_clusters=3, init="spectral", random_state=0)],
    expected_failed_checks=excused,
)
@pytest.mark.filterwarnings("ignore")
def test_the_contract(estimator, check):
    check(estimator)


def slow_distances(K, diagonal, members, w, k):
    """‖φ(x) - c_j‖² written out: K has rows = points, columns = sample."""
    out = np.full((len(K), k), np.inf)
    for j in range(k):
        rows = [n for n in range(len(members)) if members[n] == j and w[n] > 0]
        if not rows:
            continue
        total = sum(w[n] for n in rows)
        alpha = {n: w[n] / total for n in rows}
        own = sum(alpha[n] * alpha[m] * K_fit[n, m] for K_fit in [diagonal[1]] for n in rows for m in rows)
        for i in range(len(K)):
            out[i, j] = diagonal[0][i] - 2 * sum(alpha[n] * K[i, n] for n in rows) + own
    return out


def slow_lloyd(K, w, labels, k, steps=100):
    """Lloyd's steps by loops; the objective after each."""
    objective = []
    for _ in range(steps):
        D = slow_distances(K, (K.diagonal(), K), labels, w, k)
        objective.append(sum(w[n] * D[n, labels[n]] for n in range(len(w))))
        new = D.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels, objective


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    return rng.normal(size=(24, 2)), rng.uniform(0.5, 2.0, size=24), np.arange(24) % 3


@pytest.mark.parametrize("kernel", [RBF(0.8), Polynomial(2), RBF(1.0) + White(0.1), Linear()], ids=str)
def test_every_number_is_that_of_the_slow_loop(small, kernel):
    X, w, start = small
    K = kernel(X)
    labels, objective = slow_lloyd(K, w, start, 3)
    model = KernelKMeans(kernel, 3, init=start).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-10)
    assert model.inertia_ == pytest.approx(objective[-1], rel=1e-10)
    Z = np.random.default_rng(4).normal(size=(7, 2))
    D = slow_distances(kernel(Z, X), (kernel(Z).diagonal(), K), labels, w, 3)
    np.testing.assert_allclose(model.transform(Z) ** 2, D, atol=1e-10)
    np.testing.assert_array_equal(model.predict(Z), D.argmin(axis=1))
    assert model.score(Z) == pytest.approx(-D.min(axis=1).sum(), rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_with_the_linear_kernel_it_is_scikit_learns_kmeans(seed, weighted):
    rng = np.random.default_rng(seed)
    X = make_blobs(150, 4, centers=6, cluster_std=3.0, random_state=seed)[0]
    w = rng.uniform(0.1, 3.0, size=150) if weighted else np.ones(150)
    start = rng.integers(0, 5, size=150)
    centres = np.array([np.average(X[start == j], axis=0, weights=w[start == j]) for j in range(5)])
    peer = KMeans(5, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X, sample_weight=w)
    ours = KernelKMeans("Linear()", 5, init=start).fit(X, sample_weight=w)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=1e-10)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=1e-7)
    assert ours.certificate_.status == "converged"


@pytest.mark.parametrize("init", ["k-means++", "random", "spectral"])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises_and_ends_where_every_row_is_nearest(init, seed):
    X = np.random.default_rng(seed).normal(size=(120, 3))
    model = KernelKMeans("RBF()", 6, init=init, random_state=seed).fit(X)
    assert np.all(np.diff(model.objective_) <= 1e-10 * model.objective_[0])
    assert model.certificate_.converged and model.certificate_.primal == model.inertia_
    assert model.inertia_ == pytest.approx(model.objective_[-1], rel=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == pytest.approx((model.transform(X).min(axis=1) ** 2).sum(), rel=1e-9)
    assert len(np.unique(model.labels_)) == 6


def test_weight_two_is_a_row_twice(small):
    X, _, start = small
    w = np.where(np.arange(24) % 4 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(24), np.flatnonzero(w == 2)])
    a = KernelKMeans("RBF()", 3, init=start).fit(X, sample_weight=w)
    b = KernelKMeans("RBF()", 3, init=start[twice]).fit(X[twice])
    np.testing.assert_array_equal(a.labels_, b.labels_[:24])
    assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-12)
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-12)


def test_weight_zero_is_no_row_but_gets_a_label(small):
    X, w, start = small
    w = np.where(np.arange(24) < 6, 0.0, w)
    a = KernelKMeans(RBF(1.0), 3, init=start).fit(X, sample_weight=w)
    b = KernelKMeans(RBF(1.0), 3, init=start[6:]).fit(X[6:], sample_weight=w[6:])
    np.testing.assert_array_equal(a.labels_, b.predict(X))
    assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-12)


def test_precomputed_is_on_the_fly_and_tiles_are_the_stored_matrix():
    X = np.random.default_rng(0).normal(size=(90, 3))
    kernel, Z = RBF(1.2) + White(0.05), np.random.default_rng(1).normal(size=(11, 3))
    stored = KernelKMeans(kernel, 4, random_state=5).fit(X)
    tiled = KernelKMeans(kernel, 4, random_state=5, memory=1000).fit(X)
    given = KernelKMeans("precomputed", 4, random_state=5).fit(kernel(X))
    for other, points in ((tiled, Z), (given, kernel(Z, X))):
        np.testing.assert_array_equal(stored.labels_, other.labels_)
        assert stored.inertia_ == pytest.approx(other.inertia_, rel=1e-10)
        np.testing.assert_array_equal(stored.predict(Z), other.predict(points))
    np.testing.assert_allclose(
        given.transform(kernel(Z, X), diagonal=kernel(Z).diagonal()), stored.transform(Z), atol=1e-9
    )
    with pytest.raises(InputError, match="diagonal"):
        given.transform(kernel(Z, X))
    with pytest.raises(ShapeError, match="11 rows"):
        given.transform(kernel(Z, X), diagonal=[1.0])


def test_curved_clusters_are_found_where_the_lines_of_kmeans_fail():
    X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    ours = KernelKMeans(RBF(0.5), 2, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(y, ours.labels_) == 1.0
    assert adjusted_rand_score(y, KMeans(2, n_init=5, random_state=0).fit(X).labels_) < 0.1


def test_the_spectral_bound_lies_below_every_clustering():
    X = make_blobs(80, 2, centers=4, cluster_std=0.3, random_state=1)[0]
    w = np.random.default_rng(0).uniform(0.5, 2, size=80)
    model = KernelKMeans(RBF(1.0), 4, init="spectral", random_state=0).fit(X, sample_weight=w)
    bound = model.certificate_.dual
    exact = np.linalg.eigvalsh(np.sqrt(w[:, None] * w) * RBF(1.0)(X))[::-1]
    assert bound == pytest.approx(w.sum() - exact[:4].sum(), rel=1e-6)
    for seed in range(5):
        other = KernelKMeans(RBF(1.0), 4, init="random", n_init=1, random_state=seed).fit(X, sample_weight=w)
        assert other.inertia_ >= bound - 1e-9
    assert model.certificate_.gap == pytest.approx(model.inertia_ - bound)


def test_more_runs_are_never_worse_and_the_same_seed_is_the_same_model():
    X = np.random.default_rng(7).normal(size=(100, 2))
    found = [
        KernelKMeans("RBF()", 7, init="random", n_init=n, random_state=0).fit(X).inertia_ for n in (1, 8)
    ]
    assert found[1] <= found[0]
    a, b = (KernelKMeans("RBF()", 7, random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_a_cluster_that_loses_its_rows_gets_the_farthest_one():
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    model = KernelKMeans(RBF(1.0), 2, init=[0, 0, 0, 0]).fit(X)
    assert model.labels_.tolist()[:3] == [model.labels_[0]] * 3 and model.labels_[3] != model.labels_[0]
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
        twins = KernelKMeans(RBF(1.0), 3, random_state=0).fit([[0.0], [0.0], [5.0], [5.0]])
    assert np.isinf(twins.transform([[1.0]])).sum() == 1
    assert twins.inertia_ == pytest.approx(0.0, abs=1e-12) and len(np.unique(twins.labels_)) == 2


def test_limits_are_said_and_the_model_is_usable():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = KernelKMeans("RBF()", 8, init=np.arange(200) % 8, max_iter=2).fit(X)
    assert model.certificate_.status == "limit" and model.n_iter_ == 2
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == pytest.approx((model.transform(X).min(axis=1) ** 2).sum(), rel=1e-9)
    loose = KernelKMeans("RBF()", 8, init=np.arange(200) % 8, tol=0.5).fit(X)
    assert loose.certificate_.converged and loose.n_iter_ < 5


def test_a_key_press_keeps_the_best_model():
    X = np.random.default_rng(0).normal(size=(200, 2))

    class Impatient(KernelKMeans):
        def _teller(self, run):
            def tell(step, inertia, moved):
                if step == 3:
                    raise KeyboardInterrupt

            return tell

    model = Impatient("RBF()", 8, init=np.arange(200) % 8)
    with pytest.raises(Interrupted):
        model.fit(X)
    assert model.certificate_.status == "interrupted" and model.n_iter_ == 2


def test_progress_is_printed(capsys):
    KernelKMeans(RBF(1.0), 2, random_state=0, verbose=1).fit([[0.0], [1.0], [5.0]])
    assert "run 1, step 1: inertia" in capsys.readouterr().out


def test_an_indefinite_kernel_is_announced_or_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(InvalidKernelWarning, match="negative eigenvalue"):
        model = KernelKMeans("Sigmoid(3.0)", 3, random_state=0).fit(X)
    assert any("negative eigenvalue" in note for note in model.certificate_.notes)
    with pytest.raises(InvalidKernelError, match="strict=False"):
        KernelKMeans("Sigmoid(3.0)", 3, strict=True).fit(X)


def test_inputs_of_every_kind_give_the_same_clusters():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32).astype(float)
    start = np.arange(50) % 3
    frozen = X.copy()
    frozen.flags.writeable = False
    expected = KernelKMeans(RBF(1.0), 3, init=start).fit(X)
    for other in (np.asfortranarray(X), X.astype(np.float32), sparse.csr_array(X), frozen, X.tolist()):
        model = KernelKMeans(RBF(1.0), 3, init=start).fit(other)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.transform(other), expected.transform(X), atol=1e-7)


def test_a_huge_offset_costs_digits_and_says_so():
    X = np.random.default_rng(0).normal(size=(40, 2)) + 1e6
    with pytest.warns(PrecisionWarning, match="Centre the columns"):
        KernelKMeans("Linear()", 3, random_state=0).fit(X)
    KernelKMeans(RBF(1.0), 3, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"n_clusters": 0}, ParameterError, "n_clusters"),
        ({"n_clusters": 60}, InputError, "n_samples=50"),
        ({"init": "best"}, ParameterError, "init"),
        ({"init": [0, 1]}, ShapeError, "one label"),
        ({"init": np.full(50, 7)}, ParameterError, "whole numbers"),
        ({"init": np.full(50, 0.5)}, ParameterError, "whole numbers"),
        ({"n_init": 0}, ParameterError, "n_init"),
        ({"max_iter": 1.5}, ParameterError, "max_iter"),
        ({"tol": -1}, ParameterError, "tol"),
        ({"tol": None}, ParameterError, "tol"),
        ({"max_seconds": "soon"}, ParameterError, "max_seconds"),
        ({"kernel": 3}, ParameterError, "kernel"),
    ],
)
def test_bad_parameters_are_refused_with_their_names(changes, error, words):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(error, match=words):
        KernelKMeans(**{"n_clusters": 3, **changes}).fit(X)


def filled_slowly(labels, w, far, k, floor):
    """Every cluster without weight in turn takes the farthest row that its own cluster can spare."""
    labels = list(labels)
    given = set()
    for j in range(k):
        if any(labels[i] == j and w[i] > 0 for i in range(len(w))):
            continue
        spare = [
            i
            for i in range(len(w))
            if i not in given
            and w[i] > 0
            and far[i] > floor
            and sum(labels[m] == labels[i] and w[m] > 0 for m in range(len(w))) > 1
        ]
        if not spare:
            continue
        row = max(spare, key=lambda i: (far[i], -i))
        given.add(row)
        labels[row] = j
    return labels


@pytest.mark.parametrize("seed", range(60))
def test_empty_clusters_take_the_farthest_rows_that_can_be_spared(seed):
    from mercer.machines.structure.lloyd import filled

    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    k = int(rng.integers(2, n))
    labels = rng.integers(0, max(1, k - int(rng.integers(0, 4))), size=n)
    w = rng.choice([0.0, 0.5, 1.0, 2.0], size=n, p=[0.2, 0.2, 0.4, 0.2])
    far = w * rng.choice([0.0, 0.5, 1.0, 1.5, 3.0], size=n)
    found = filled(labels, w, far, k, 0.0)
    assert found.tolist() == filled_slowly(labels, w, far, k, 0.0)
    before = np.bincount(labels[w > 0], minlength=k) > 0
    assert np.all((np.bincount(found[w > 0], minlength=k) > 0)[before])


@pytest.mark.parametrize("seed", range(3))
def test_the_spectral_bound_is_not_above_the_relaxed_problem(seed):
    """tr - λ₁ - … - λ_k from all eigenvalues bounds from below;
    what iterations found may not promise more.
    """
    from mercer.gram import Precomputed
    from mercer.machines.structure.spectral import spectral_start

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 4))  # beyond the rows that LAPACK solves at once
    K = RBF(0.5 + 0.2 * seed)(X)
    w = rng.uniform(0.05, 0.6, size=600)
    _, bound, _ = spectral_start(Precomputed(K), w, K.diagonal(), 6, np.random.RandomState(seed))
    s = np.sqrt(w)
    exact = float(w @ K.diagonal()) - float(np.linalg.eigvalsh(s[:, None] * K * s)[-6:].sum())
    assert bound <= exact + 1e-12 * float(w @ K.diagonal())
    assert bound >= exact - 1e-3 * float(w @ K.diagonal())
