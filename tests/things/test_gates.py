"""Doors in time: what is there after a place or before it, by the formula and by the rules."""

import math

import numpy as np
import pytest

from mercer import RBF, After, Before, Linear, Periodic, parse
from mercer.arrays import Rows
from mercer.errors import ParameterError

T = np.linspace(-3.0, 5.0, 23)[:, None]


def _gate(x: float, place: float, width: float) -> float:
    return 1.0 / (1.0 + math.exp(-(x - place) / width))


def test_a_gate_is_its_formula():
    found = After(1.5, 0.7).read(Rows(T)).vectors.ravel()
    np.testing.assert_allclose(found, [_gate(x, 1.5, 0.7) for x in T.ravel()], rtol=1e-14)


def test_before_and_after_are_the_whole():
    whole = After(1.5, 0.7).read(Rows(T)).vectors + Before(1.5, 0.7).read(Rows(T)).vectors
    np.testing.assert_allclose(whole, 1.0, rtol=1e-15)


def test_far_away_a_gate_is_shut_without_a_warning():
    found = Before(0.0, 1e-3).read(Rows([[-1e6], [1e6]])).vectors.ravel()
    assert found.tolist() == [1.0, 0.0]


def test_a_change_point_is_a_kernel_by_its_rules_and_has_the_entries_of_the_formula():
    k = RBF(2.0) * Linear().of(Before(1.0, 0.5)) + Periodic(1.0) * Linear().of(After(1.0, 0.5))
    assert k.validity().status == "proved"
    assert parse(str(k)) == k
    K = k(T)
    for i in (0, 9, 22):
        for j in (3, 11, 20):
            x, z = float(T[i, 0]), float(T[j, 0])
            a, b = _gate(x, 1.0, 0.5), _gate(z, 1.0, 0.5)
            before = math.exp(-((x - z) ** 2) / 8) * (1 - a) * (1 - b)
            after = math.exp(-2 * math.sin(math.pi * (x - z)) ** 2) * a * b
            assert K[i, j] == pytest.approx(before + after, rel=1e-12)


def test_a_width_that_is_not_positive_is_refused():
    with pytest.raises(ParameterError, match="width must be a positive number"):
        After(1.0, 0.0)
