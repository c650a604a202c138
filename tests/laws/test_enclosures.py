"""The bounds of interval arithmetic hold the true value of every kernel,
and what they leave open refutes nothing.
"""

from __future__ import annotations

import time

import mpmath
import numpy as np
import pytest

from mercer import kernels as m
from mercer.arrays import Rows
from mercer.kernels import Refuted
from mercer.kernels.leaves.inheritance import is_ours
from mercer.kernels.proofs import validity
from mercer.kernels.proofs.enclosure import Sample
from reference import proofs as referee

LEAVES = [
    m.Linear(),
    m.Polynomial(3, offset=0.5, scale=0.7),
    m.ExpDot(0.6),
    m.Sigmoid(0.4, offset=-0.5),
    m.Logistic(0.8, offset=0.1),
    m.Dot(taylor=[0.5, -1.0, 2.0]),
    m.RBF([0.7, 1.3]),
    m.Exponential(0.9),
    *(m.Matern(1.1, nu=nu) for nu in (0.5, 1.5, 2.5, 3.5, 4.5)),
    m.RationalQuadratic(0.8, alpha=1.7),
    m.Laplacian([0.6, 1.9]),
    m.Periodic(1.7, lengthscale=0.8),
    m.ZeroMeanPeriodic(1.7, lengthscale=0.8),
    m.Cosine(2.3),
    m.AllSubsets(),
    m.Brownian(),
    m.Intersection(),
    m.Chi2(0.7),
    m.Constant(1.3),
    m.White(0.4),
    m.Bilinear([[2.0, 1.0], [1.0, 3.0]]),
    m.CosineSimilarity(),
    *(m.ArcCosine(order) for order in (0, 1, 2)),
    m.SpectralMixture([0.7, 0.3], [[0.3, 0.1], [0.2, 0.5]], [[0.2, 0.4], [0.1, 0.3]]),
]
RULES = [
    2.5 * m.RBF(1.0),
    m.RBF(1.0) + m.Linear(),
    m.RBF(1.0) * m.Linear(),
    m.Linear() ** 3,
    m.RBF(1.0) ** 0.5,
    (0.5 * m.Linear()).exp(),
    m.Linear().polynomial([0.5, -1.0, 0.25]),
    m.Polynomial(2).normalized(),
    m.RBF(1.0).of([[1.0, 2.0], [0.5, -1.0]]),
    m.RBF(1.0).on(1),
]
POINTS = np.random.default_rng(0).uniform(0.1, 2.0, size=(4, 2))


def test_every_rule_is_under_this_law():
    waiting = [m.Kernel]
    final = set()
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if (
            is_ours(cls)
            and "is_family" not in cls.__dict__
            and {"enclosed", "enclosed_term"} & cls.__dict__.keys()
        ):
            final.add(cls)
    missing = final - {type(k) for k in LEAVES + RULES}
    assert {rule.__name__ for rule in missing} <= {"Times", "ViewOfAnything"}


@pytest.mark.parametrize("k", LEAVES + RULES, ids=str)
def test_the_bounds_hold_the_formula_and_little_else(k):
    truth = referee.gram(k, POINTS)
    found = k.enclosed(Sample.of(Rows.of(POINTS)))
    with mpmath.workdps(referee.DIGITS):
        for i, row in enumerate(found):
            for j, entry in enumerate(row):
                low, high = mpmath.mpf(str(entry.low)), mpmath.mpf(str(entry.high))
                slack = mpmath.mpf("1e-45") * (1 + abs(truth[i, j]))
                assert low - slack <= truth[i, j] <= high + slack
                assert high - low <= mpmath.mpf("1e-25") * (1 + abs(truth[i, j]))


# ── functions of a user ─────────────────────────────────────────────────────────────────────────────────────


def careless(seed):
    """A Gaussian whose last digits are noise, and symmetric."""

    def value(x, z):
        s = float(np.sum((np.asarray(x) - np.asarray(z)) ** 2))
        return float(np.exp(-0.5 * s)) * (1 + 5e-11 * np.sin(1e6 * s + seed))

    return m.Custom(value)


@pytest.mark.parametrize("seed", range(5))
def test_noise_in_the_last_digits_of_a_users_function_is_inside_the_bounds(seed):
    truth = referee.gram(m.RBF(1.0), POINTS)
    for i, row in enumerate(careless(seed).enclosed(Sample.of(Rows.of(POINTS)))):
        for j, entry in enumerate(row):
            assert mpmath.mpf(str(entry.low)) <= truth[i, j] <= mpmath.mpf(str(entry.high))


@pytest.mark.parametrize("seed", range(5))
def test_a_form_that_may_have_either_sign_is_no_witness(seed):
    """Two equal points and q = (1, -1): the form is 0, and its bounds hold both signs."""
    k = careless(seed)
    X = np.repeat(POINTS[:1], 2, axis=0)
    q = np.array([1.0, -1.0])
    search = validity._Search(k, time.monotonic() + 60, np.random.default_rng(0))
    assert search.certified(X, q) is None
    claimed = Refuted(k, X, q, -1e-12)
    low, high = claimed.bounds()
    assert low < 0 < high
    assert not claimed.check()
