"""Laws of the number of clusters: prediction strength against a loop over pairs, and what it chooses."""

from itertools import permutations

import numpy as np
import pytest

from mercer import RBF, KernelKMeans
from mercer.tables import grouping
from mercer.tables.grouping import most_clusters, strength_of, strengths, strongest


def by_pairs(second, by_first):
    """The share of ordered pairs of a cluster that stay together; the least of all clusters."""
    out = []
    for label in set(second.tolist()):
        members = [i for i in range(len(second)) if second[i] == label]
        pairs = list(permutations(members, 2))
        out.append(sum(by_first[i] == by_first[j] for i, j in pairs) / len(pairs) if pairs else 0.0)
    return min(out)


@pytest.mark.parametrize("seed", range(8))
def test_the_strength_is_that_of_a_loop_over_pairs(seed):
    rng = np.random.default_rng(seed)
    second, by_first = rng.integers(0, 4, size=(2, 17))
    assert strength_of(second, by_first) == pytest.approx(by_pairs(second, by_first), abs=1e-15)


def blobs(centres, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(centre, 0.3, size=(n, 2)) for centre in centres])


def test_blobs_far_apart_are_counted():
    X = blobs([(0, 0), (6, 0), (0, 6)], 20)
    found = strengths(RBF(1.0)(X), most=5)
    assert [s.clusters for s in found] == [1, 2, 3, 4, 5]
    assert found[2].mean == 1.0
    assert strongest(found) == 3


def test_one_blob_is_no_two_clusters():
    found = strengths(RBF(1.0)(np.random.default_rng(1).normal(size=(80, 4))), most=4)
    assert strongest(found) == 1


def test_few_rows_allow_few_clusters():
    assert [most_clusters(n) for n in (1, 19, 20, 45, 1000)] == [1, 1, 2, 4, 8]
    assert [s.clusters for s in strengths(np.eye(5))] == [1]


def test_a_half_is_given_to_the_centres_of_the_other_as_the_machine_would():
    X = blobs([(0, 0), (3, 0), (0, 3)], 12, seed=3)
    K = RBF(1.0)(X)
    first = np.arange(0, 36, 2)
    second = np.arange(1, 36, 2)
    rng = np.random.RandomState(0)
    one = grouping._clustered(K[np.ix_(first, first)], 3, rng)
    other = grouping._clustered(K[np.ix_(second, second)], 3, rng)
    machine = KernelKMeans("precomputed", 3, init=one.labels).fit(K[np.ix_(first, first)])
    expected = strength_of(other.labels, machine.predict(K[np.ix_(second, first)]))
    assert grouping._of_a_cut(K, first, second, 3, np.random.RandomState(0)) == expected
