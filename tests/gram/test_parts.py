"""Pairs of rows that a product leaves out: the core skips their tiles, a mask of the matrix is the law."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import RBF, Linear, Periodic, White
from mercer.gram import Tiles
from mercer.gram.core import PART_ROWS, Parts
from mercer.gram.lines import Lines

pytestmark = pytest.mark.usefixtures("threads_for_all")

KERNEL = 1.5 * RBF(2.0) * Linear() + White(0.3)


def mask(parts):
    """1 for the pairs that count, by the definition."""
    of_row = np.repeat(np.arange(len(parts.ends)), np.diff([0, *parts.ends]))
    apart = of_row[:, None] != of_row[None, :]
    return apart | (of_row[:, None] == parts.kept)


def without(kernel, X, parts, **options):
    tiles = Tiles(kernel, X, **options)
    tiles.parts = parts
    return tiles


@given(
    parts=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    last=st.integers(1, PART_ROWS),
    kept=st.integers(0, 5),
    columns=st.integers(1, 3),
    threads=st.integers(1, 2),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_products_and_gradients_leave_out_what_a_mask_would(parts, last, kept, columns, threads, seed):
    ends = (PART_ROWS * np.cumsum(parts)).tolist()
    ends[-1] += last - PART_ROWS
    parts = Parts(ends, kept % len(ends))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ends[-1], 2))
    V = rng.normal(size=(ends[-1], columns))
    U = rng.normal(size=V.shape)
    K = without(KERNEL, X, parts, n_jobs=threads)
    counts = mask(parts)
    np.testing.assert_allclose(K @ V, (KERNEL(X) * counts) @ V, rtol=0, atol=1e-10)
    whole = Tiles(KERNEL, X)
    np.testing.assert_allclose(
        K.contract(U, V), whole.contract(W=np.where(counts, U @ V.T, 0.0)), rtol=1e-9, atol=1e-8
    )


@pytest.mark.parametrize("columns", [3, 70, 200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_wide_and_sparse_rows_are_cut_alike(columns, kind, dtype, isa):
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(3 * PART_ROWS + 5, columns)) * (rng.uniform(size=columns) < 0.5)
    parts = Parts([PART_ROWS, 2 * PART_ROWS, len(X)], 1)
    V = rng.normal(size=(len(X), 1))
    K = without(RBF(5.0), kind(X.astype(dtype)), parts)
    exact = (RBF(5.0)(X) * mask(parts)) @ V
    np.testing.assert_allclose(K @ V, exact, rtol=0, atol=1e-11 if dtype == np.float64 else 1e-3)


def test_gradients_of_a_periodic_kernel_leave_out_the_same_pairs():
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 9.0, size=(2 * PART_ROWS, 1))
    parts = Parts([PART_ROWS, 2 * PART_ROWS], 1)
    kernel = Periodic(3.0).normalized()
    u = rng.normal(size=len(X))
    whole = Tiles(kernel, X).contract(W=np.where(mask(parts), np.outer(u, u), 0.0))
    np.testing.assert_allclose(without(kernel, X, parts).contract(u, u), whole, rtol=1e-9)


@pytest.mark.parametrize(
    ("ends", "kept", "words"),
    [
        ([PART_ROWS + 1, 200], 0, f"a multiple of {PART_ROWS}"),
        ([PART_ROWS, PART_ROWS, 200], 0, "one after the other"),
        ([0, 200], 0, "one after the other"),
        ([PART_ROWS], 0, f"ends at row {PART_ROWS} of 200"),
        ([PART_ROWS, 300], 0, "ends at row 300 of 200"),
        ([200], 1, "no part 1"),
        ([200], -1, "no part -1"),
    ],
)
def test_parts_that_are_none_are_refused(ends, kept, words):
    K = without(RBF(1.0), np.zeros((200, 1)), Parts(ends, kept))
    with pytest.raises(ValueError, match=re.escape(words)):
        K @ np.ones(200)
    with pytest.raises(ValueError, match=re.escape(words)):
        K.contract(np.ones(200), np.ones(200))


def test_parts_of_two_samples_are_refused():
    K = Tiles(RBF(1.0), np.zeros((4, 1)), np.zeros((4, 1)))
    K.parts = Parts([4], 0)
    with pytest.raises(ValueError, match="same observations"):
        K @ np.ones(4)


@pytest.mark.parametrize("n", [1000, 1345, 6000])
def test_every_pair_of_rows_counts_once_on_the_lines(n):
    lines = Lines.of(n)
    assert lines.of_parts
    met = np.zeros((n, n), dtype=np.int8)
    for line in range(lines.blocks):
        rows = np.concatenate([np.arange(n)[lines.rows(b)] for b in sorted(lines.on(line))])
        met[np.ix_(rows, rows)] += mask(lines.parts(line))
    assert np.all(met == 1)
