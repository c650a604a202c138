"""Sets and amounts beyond the laws: rows of numbers, sparse rows, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer import SVC, Jaccard, MinMax
from mercer.errors import DomainError, InputTypeError, ShapeError

r = np.random.default_rng(4)
COUNTS = r.poisson(0.8, size=(30, 12)).astype(float)


def test_rows_of_truth_values_agree_with_scipy():
    flags = COUNTS > 0
    np.testing.assert_allclose(Jaccard()(flags.astype(float)), 1 - cdist(flags, flags, "jaccard"), atol=1e-15)
    np.testing.assert_array_equal(Jaccard()(COUNTS), Jaccard()(flags.astype(float)))


@pytest.mark.parametrize("k", [Jaccard(), MinMax()], ids=str)
def test_sparse_rows_dictionaries_and_numbers_are_the_same(k):
    K = k(COUNTS)
    dictionaries = [{j: v for j, v in enumerate(row) if v} for row in COUNTS]
    np.testing.assert_array_equal(k(sparse.csr_array(COUNTS)), K)
    np.testing.assert_array_equal(k(dictionaries), K)
    np.testing.assert_array_equal(k(COUNTS.tolist()), K)
    np.testing.assert_array_equal(k(COUNTS[:5], sparse.csr_array(COUNTS)), K[:5])
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    y = np.arange(30) % 2
    by_numbers = SVC(k).fit(COUNTS, y).decision_function(COUNTS)
    np.testing.assert_allclose(
        SVC(k).fit(dictionaries, y).decision_function(dictionaries), by_numbers, atol=1e-12
    )


@pytest.mark.parametrize("k", [Jaccard(), MinMax()], ids=str)
def test_the_order_of_the_elements_does_not_matter(k):
    r = np.random.default_rng(0)
    lists = [[f"w{j}" for j in r.integers(0, 9, size=int(r.integers(1, 14)))] for _ in range(12)]
    dictionaries = [{word: float(r.integers(1, 9)) / 7 for word in words} for words in lists]
    for things in (lists, dictionaries, [set(words) for words in lists], [frozenset(w) for w in lists]):
        K = k(things)
        moved = [_moved(thing, r) for thing in things]
        np.testing.assert_allclose(k(moved), K, rtol=1e-14)
        np.testing.assert_allclose(k(moved, things), k(things, things), rtol=1e-14)
        np.testing.assert_allclose(k.diag(moved), np.diag(K), rtol=1e-14)
        assert len(np.unique(K)) > 5


def _moved(thing, r):
    """The same elements, put in one after the other in another order."""
    elements = list(thing)
    order = [elements[i] for i in r.permutation(len(elements))]
    if isinstance(thing, dict):
        return {element: thing[element] for element in order}
    return type(thing)(order)


def test_whole_amounts_are_sets_of_so_many_elements():
    unary = [{(j, t) for j, v in enumerate(row) for t in range(int(v))} for row in COUNTS]
    np.testing.assert_allclose(MinMax()(COUNTS), Jaccard()(unary), rtol=1e-15)


@pytest.mark.parametrize("k", [Jaccard(), MinMax()], ids=str)
@pytest.mark.parametrize(
    ("bad", "words", "kind"),
    [
        ("abc", "row 1 of X is a str", InputTypeError),
        (7, "row 1 of X is a int", InputTypeError),
        ({"a": -1.0}, "row 1 of X has -1.0 of 'a'", DomainError),
        ({"a": float("nan")}, "row 1 of X has nan", DomainError),
        ({"a": "b"}, "row 1 of X has 'b' of 'a'", DomainError),
        ([["x"]], "row 1 of X is a list", InputTypeError),
    ],
    ids=str,
)
def test_what_is_no_set_is_named_by_its_row(k, bad, words, kind):
    with pytest.raises(kind) as refused:
        k([{"a"}, bad])
    assert words in str(refused.value)


def test_numbers_below_zero_and_other_columns_are_refused():
    with pytest.raises(DomainError, match="row 1, column 0"):
        MinMax()(np.array([[1.0, 2.0], [-1.0, 0.0]]))
    with pytest.raises(ShapeError, match="columns"):
        MinMax()(np.ones((2, 3)), np.ones((2, 4)))
