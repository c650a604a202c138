"""Centred alignment: its definition by loops, its invariances, its gradient."""

import numpy as np
import pytest

from mercer import RBF, Linear, White
from mercer.errors import NotFiniteError, ShapeError
from mercer.theory import alignment
from mercer.theory.alignment import align, targets


def by_loops(K, L):
    n = len(K)

    def centred(A, i, j):
        return A[i, j] - A[i].mean() - A[:, j].mean() + A.mean()

    pairs = [(centred(K, i, j), centred(L, i, j)) for i in range(n) for j in range(n)]
    top = sum(a * b for a, b in pairs)
    return top / np.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(15, 2))


def test_alignment_is_its_definition(rows):
    K, L = RBF(1.0)(rows), Linear()(rows)
    assert alignment(K, L) == pytest.approx(by_loops(K, L), rel=1e-12)
    y = rows[:, 0] ** 2
    assert alignment(RBF(1.0), rows, y) == pytest.approx(by_loops(K, np.outer(y, y)), rel=1e-12)
    labels = np.where(y > 0.3, "high", np.where(y > 0.05, "middle", "low"))
    same = (labels[:, None] == labels[None, :]).astype(float)
    assert alignment("RBF(1.0)", rows, labels) == pytest.approx(by_loops(K, same), rel=1e-12)


def test_scale_and_origin_do_not_matter_and_signs_of_two_classes_are_labels(rows):
    K = RBF(1.0)(rows)
    y = rows[:, 0] > 0
    assert alignment(2 * K + 7, K) == pytest.approx(1.0)
    assert alignment(RBF(1.0), rows, y) == pytest.approx(alignment(RBF(1.0), rows, np.where(y, 1.0, -1.0)))
    assert 0 <= alignment(RBF(1.0), rows, y) <= 1


@pytest.mark.parametrize("kernel", [RBF([1.0, 0.4]), 2.0 * RBF(0.7) + 0.3 * Linear(), RBF(1.0) + White(0.2)])
def test_the_gradient_is_that_of_finite_differences(rows, kernel):
    Y = targets(rows[:, 0] * rows[:, 1], len(rows))
    found = align(kernel.gram(rows), Y).gradient
    for j in range(len(kernel.theta)):
        e = 1e-6 * np.eye(len(kernel.theta))[j]
        up, down = (align(kernel.with_theta(kernel.theta + s * e).gram(rows), Y).value for s in (1, -1))
        assert found[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8)


def test_what_is_constant_is_aligned_with_nothing(rows):
    assert alignment(np.ones((3, 3)), np.eye(3)) == 0
    assert alignment("RBF(1.0)", rows, np.ones(len(rows))) == 0
    assert alignment("RBF(1.0)", [[1.0]], [2.0]) == 0


def test_bad_input_is_refused(rows):
    with pytest.raises(ShapeError, match="one shape"):
        alignment(np.eye(3), np.eye(4))
    with pytest.raises(ShapeError, match="square"):
        alignment(np.ones((2, 3)), np.eye(3))
    with pytest.raises(NotFiniteError, match="second"):
        alignment(np.eye(2), [[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ShapeError, match="one target"):
        alignment("RBF(1.0)", rows, [1.0, 2.0])
    with pytest.raises(NotFiniteError, match="row 1"):
        alignment("RBF(1.0)", rows[:2], [1.0, np.inf])
