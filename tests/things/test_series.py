"""Series beyond the laws: what signatures do not see, long alignments, gradients, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GlobalAlignment, Signature, parse
from mercer.arrays import Rows
from mercer.errors import InputTypeError, ParameterError, ShapeError
from mercer.gram import Dense
from mercer.kernels.things import sequences
from mercer.kernels.things.paths import signatures

r = np.random.default_rng(6)
WALKS = [r.normal(size=(int(n), 2)).cumsum(axis=0) / 3 for n in r.integers(2, 9, size=10)]


def test_a_signature_is_that_of_the_path_and_not_of_how_it_is_written():
    k = Signature(4)
    K = k(WALKS)
    moved = [walk + np.array([5.0, -3.0]) for walk in WALKS]
    twice = [np.repeat(walk, 2, axis=0) for walk in WALKS]
    halves = [np.insert(walk, 1, (walk[0] + walk[1]) / 2, axis=0) for walk in WALKS]
    for same in (moved, twice, halves):
        np.testing.assert_allclose(k(same), K, rtol=1e-10, atol=1e-10)


def test_a_line_has_the_exponential_of_its_step():
    values = signatures([np.array([[0.0, 0.0], [2.0, 3.0]])], 3, 1.0)[0]
    delta = np.array([2.0, 3.0])
    wanted = [np.ones(1), delta, np.kron(delta, delta) / 2, np.kron(np.kron(delta, delta), delta) / 6]
    np.testing.assert_allclose(values, np.concatenate(wanted), rtol=1e-15)


def test_a_path_and_back_is_no_path():
    there_and_back = [np.vstack([walk, walk[::-1]]) for walk in WALKS]
    np.testing.assert_allclose(Signature(3)(there_and_back), np.ones((10, 10)), atol=1e-10)


def test_features_have_names_and_too_many_are_refused():
    phi = Signature(2).sparse_map(Rows(WALKS))
    assert list(phi.names) == ["1", "∫0", "∫1", "∫0 0", "∫0 1", "∫1 0", "∫1 1"]
    with pytest.raises(ParameterError, match="features"):
        Signature(9)([r.normal(size=(3, 5))])


@pytest.mark.parametrize("k", [Signature(3, scale=0.7), GlobalAlignment(0.9, triangular=5)], ids=str)
def test_the_gradient_is_that_of_differences(k):
    W = r.normal(size=(10, 10))
    up, down = (k.with_theta(k.theta + h)(WALKS) for h in (1e-4, -1e-4))
    assert Dense(k, WALKS).contract(W=W)[0] == pytest.approx((W * (up - down)).sum() / 2e-4, rel=1e-5)


def test_long_series_neither_overflow_nor_vanish():
    waves = [np.sin(np.linspace(0, 9, n)) for n in (400, 500, 600)]
    K = GlobalAlignment(0.2)(waves)
    assert np.all(np.isfinite(K)) and np.all(K > 0) and np.linalg.eigvalsh(K)[0] > 0


def test_alignments_are_a_kernel_on_many_series():
    many = [r.normal(size=(int(n), 1)) for n in r.integers(1, 12, size=80)]
    for band in (0, 2, 6):
        values = np.linalg.eigvalsh(GlobalAlignment(0.7, triangular=band)(many))
        assert values[0] > -1e-12


def test_a_bound_on_times_leaves_nothing_between_lengths_too_different():
    K = GlobalAlignment(1.0, triangular=3)([np.zeros(2), np.zeros(4), np.zeros(5)])
    assert K[0, 1] > 0 and K[0, 2] == 0


def test_batches_do_not_matter(monkeypatch):
    whole = GlobalAlignment(0.8)(WALKS)
    monkeypatch.setattr(sequences, "TABLE", 1)
    np.testing.assert_allclose(GlobalAlignment(0.8)(WALKS), whole, rtol=1e-14)


def test_sigma_is_another_name():
    assert GlobalAlignment(sigma=2.0) == GlobalAlignment(2.0) == parse("GlobalAlignment(sigma=2.0)")


@pytest.mark.parametrize("k", [Signature(2), GlobalAlignment(1.0)], ids=str)
def test_bad_series_are_named_by_their_row(k):
    for bad in ("abc", [[1.0], [np.inf]], [[[1.0]]], []):
        with pytest.raises(InputTypeError, match="row 1 of X is a "):
            k([[[0.0]], bad])
    with pytest.raises(ShapeError, match="row 1 of X is a series of 2 channels"):
        k([np.zeros((2, 1)), np.zeros((2, 2))])
