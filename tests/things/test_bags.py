"""`k.bags()`: the mean of a kernel over two bags of points."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import RBF, KernelRidge, Linear, Polynomial, Spectrum, White, parse
from mercer.arrays import Rows
from mercer.errors import InputTypeError, ShapeError
from mercer.gram import Dense
from mercer.kernels.rules import bags as module
from mercer.theory import mmd

r = np.random.default_rng(2)
BAGS = [r.normal(loc=i % 3, size=(1 + i % 5, 2)) for i in range(11)]
KERNELS = [RBF(1.3), 2.0 * Linear() + 0.5, Polynomial(2), RBF(0.7) + White(0.3), RBF(1.0).on(0)]


def by_loop(k, a, b):
    return np.array([[k(x, z).mean() for z in b] for x in a])


@pytest.mark.parametrize("k", KERNELS, ids=str)
def test_the_value_is_the_mean_over_pairs_of_points(k):
    exact = by_loop(k, BAGS, BAGS)
    np.fill_diagonal(exact, [k(x).mean() for x in BAGS])
    K = k.bags()(BAGS)
    np.testing.assert_allclose(K, exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(k.bags().diag(BAGS), np.diag(exact), rtol=1e-12)
    np.testing.assert_allclose(
        k.bags()(BAGS[:4], BAGS[2:]), by_loop(k, BAGS[:4], BAGS[2:]), rtol=1e-12, atol=1e-13
    )
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * np.abs(K).max()
    assert k.bags().validity().status == "proved" and parse(str(k.bags())) == k.bags()


@pytest.mark.parametrize("at_once", [1, 7, 2**21])
def test_panels_do_not_matter(monkeypatch, at_once):
    whole = RBF(1.0).bags()(BAGS)
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    again = RBF(1.0).bags()
    np.testing.assert_allclose(again(BAGS), whole, rtol=1e-13)
    np.testing.assert_allclose(again(BAGS[:3], BAGS), whole[:3], rtol=1e-13)
    W = np.ones((11, 11))
    np.testing.assert_allclose(Dense(again, BAGS).contract(W=W), gradient(RBF(1.0).bags(), W), rtol=1e-6)


def gradient(k, W):
    out = []
    for i in range(len(k.theta)):
        up, down = (k.with_theta(k.theta + h * np.eye(len(k.theta))[i])(BAGS) for h in (1e-5, -1e-5))
        out.append((W * (up - down)).sum() / 2e-5)
    return np.array(out)


@pytest.mark.parametrize("k", [RBF(1.3) + White(0.3), 2.0 * RBF([0.5, 2.0])], ids=str)
def test_the_gradient_is_that_of_differences(k):
    W = r.normal(size=(11, 11))
    for kernel in (k.bags(), k.bags().normalized(), RBF(0.8).of(k.bags())):
        np.testing.assert_allclose(
            Dense(kernel, BAGS).contract(W=W), gradient(kernel, W), rtol=1e-5, atol=1e-7
        )


def test_the_distance_of_two_bags_is_their_mmd():
    k = RBF(1.0)
    a, b = BAGS[4], BAGS[9]
    K = k.bags()([a, b])
    distance = K[0, 0] + K[1, 1] - 2 * K[0, 1]
    exact = k(a, a).mean() + k(b, b).mean() - 2 * k(a, b).mean()
    assert distance == pytest.approx(exact, abs=1e-14)
    assert distance == pytest.approx(mmd(a, b, k, statistic="biased"), abs=1e-13)
    assert RBF(2.0).of(k.bags())([a, b])[0, 1] == pytest.approx(np.exp(-exact / 8), abs=1e-14)


def test_distribution_regression_finds_the_spread_of_bags():
    r = np.random.default_rng(0)
    spread = r.uniform(0.5, 3.0, size=60)
    X = [s * r.normal(size=(int(r.integers(30, 60)), 1)) for s in spread]
    model = KernelRidge(RBF(1.0).of(RBF().bags()), 1e-2).fit(X[:40], spread[:40])
    assert np.corrcoef(model.predict(X[40:]), spread[40:])[0, 1] > 0.9


def test_the_order_of_the_points_of_a_bag_does_not_matter():
    r = np.random.default_rng(0)
    moved = [bag[r.permutation(len(bag))] for bag in BAGS]
    for k in (RBF(1.0).bags(), RBF(0.8).of(RBF(1.0).bags())):
        np.testing.assert_allclose(k(moved), k(BAGS), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(k(moved, BAGS), k(BAGS, BAGS), rtol=1e-12, atol=1e-14)


def test_bags_of_strings():
    X = [["abab", "bc"], ["bc"], ["ab", "ab", "cb"]]
    k = Spectrum(2).bags()
    np.testing.assert_allclose(k(X), by_loop(Spectrum(2), X, X), rtol=1e-14)
    phi = k.sparse_map(Rows(X))
    np.testing.assert_allclose((phi.matrix @ phi.matrix.T).toarray(), k(X), rtol=1e-14)
    np.testing.assert_allclose((phi(X[1:]) @ phi.matrix.T).toarray(), k(X[1:], X), rtol=1e-14)


@pytest.mark.parametrize(
    ("bag", "words", "kind"),
    [
        (None, "row 1 of X is None", InputTypeError),
        (np.zeros((0, 2)), "row 1 of X is an empty bag", InputTypeError),
        ([["a", "b"]], "row 1 of X is no bag", InputTypeError),
        (np.zeros((2, 3)), "row 1 of X is a bag of points with 3 columns", ShapeError),
        (np.array([[1.0, np.nan]]), "row 1 of X, point 0, has nan in column 1", InputTypeError),
        (np.array([[1, 2], [np.inf, 3]]), "row 1 of X, point 1, has inf in column 0", InputTypeError),
    ],
)
def test_bad_bags_are_named_by_their_row(bag, words, kind):
    with pytest.raises(kind) as refused:
        RBF(1.0).bags()([np.zeros((2, 2)), bag, np.ones((1, 2))])
    assert words in str(refused.value)
