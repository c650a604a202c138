"""The law of proofs: what is proved has no negative eigenvalue, what is refuted has a negative form,
in 50 digits.

Random expressions, some hundreds of them; MERCER_PROOFS=5000 asks more (`make proofs`), and MERCER_SEED other
ones.
"""

from __future__ import annotations

import os
from collections import Counter

import mpmath
import numpy as np
import pytest

from mercer import kernels as m
from mercer.errors import MercerError
from mercer.kernels import Proved, ProvedAsDeclared, Refuted
from mercer.kernels.proofs import validity
from reference import proofs as referee

COUNT = int(os.environ.get("MERCER_PROOFS", "240"))
SEED = int(os.environ.get("MERCER_SEED", "0"))
PARTS = 8  # the expressions are dealt out, so that a failure names a small part
COLUMNS = 2


# ── random expressions ──────────────────────────────────────────────────────────────────────────────────────


def number(r):
    """Round numbers, on which things cancel exactly, and others, some very small."""
    kind = r.integers(4)
    if kind == 0:
        return float(r.choice([0.25, 0.5, 1.0, 2.0, 3.0]))
    if kind == 1:
        return float(10.0 ** r.integers(-9, 3))
    return float(r.uniform(0.1, 3.0))


def symmetric(r):
    B = r.integers(-2, 3, size=(int(r.integers(1, 3)), COLUMNS)).astype(float)
    A = B.T @ B
    A[0, 0] += float(r.choice([0.0, 0.0, 1e-9, -1e-9, 1e9, -0.5]))
    return A.tolist()


LEAVES = [
    lambda r: m.RBF(float(r.uniform(0.3, 3))),
    lambda r: m.RBF(1.0),
    lambda r: m.RBF([1.0, 2.0]),
    lambda r: m.Exponential(float(r.uniform(0.3, 3))),
    lambda r: m.Matern(1.0, nu=float(r.choice([0.5, 1.5, 2.5, 1.2]))),
    lambda r: m.RationalQuadratic(1.0, alpha=number(r)),
    lambda r: m.Laplacian(float(r.uniform(0.3, 3))),
    lambda r: m.Periodic(2.0, lengthscale=float(r.uniform(0.5, 2))),
    lambda r: m.ZeroMeanPeriodic(2.0, lengthscale=float(r.uniform(0.5, 2))),
    lambda r: m.Cosine(float(r.uniform(1, 4))),
    lambda r: m.Linear(),
    lambda r: m.Linear(),
    lambda r: m.Polynomial(int(r.integers(1, 4)), offset=float(r.choice([0.0, 0.5, 1.0])), scale=0.5),
    lambda r: m.ExpDot(float(r.choice([0.25, 0.5, 1.0]))),
    lambda r: m.CosineSimilarity(),
    lambda r: m.ArcCosine(int(r.integers(3))),
    lambda r: m.Constant(float(r.choice([-1.0, 1.0])) * number(r)),
    lambda r: m.White(number(r)),
    lambda r: m.AllSubsets(),
    lambda r: m.Brownian(),
    lambda r: m.Bilinear(symmetric(r)),
    lambda r: m.SpectralMixture([1.0], [[0.3, 0.1]], [[0.2, 0.4]]),
    lambda r: m.Sigmoid(number(r), offset=float(r.choice([0.0, -0.5]))),
    lambda r: m.Dot(taylor=r.choice([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0], size=3).tolist()),
    lambda r: m.Dot([np.sinh, np.cosh, np.expm1, np.sin, np.cos, np.tanh][r.integers(6)]),
]


def expression(r, depth):
    if depth == 0:
        return LEAVES[r.integers(len(LEAVES))](r)
    choice = int(r.integers(12))
    a = expression(r, depth - 1)
    if choice < 3:
        return a + expression(r, int(r.integers(depth)))
    if choice < 5:
        return a * expression(r, int(r.integers(depth)))
    if choice < 7:
        return a - number(r) * expression(r, int(r.integers(depth)))
    rules = [
        lambda: -number(r) * a if r.random() < 0.3 else number(r) * a,
        lambda: a.normalized(),
        lambda: a ** float(r.choice([0.5, 2, 3])),
        lambda: (0.5 * a).exp() - float(r.choice([0.0, 0.5, 1.0])),
        lambda: a.polynomial(r.choice([-1.0, 0.0, 0.5, 1.0], size=3).tolist()),
    ]
    return rules[choice - 7]()


def same_twice(r):
    """Sums in which a term is taken away from itself, or from something that holds it."""
    a = expression(r, 1)
    b = expression(r, 0)
    return (a + b) ** 2 - number(r) * a**2 - number(r) * (a * b)


def draw(index):
    r = np.random.default_rng([SEED, index])
    k = same_twice(r) if r.random() < 0.15 else expression(r, int(r.integers(1, 4)))
    X = r.normal(size=(6, COLUMNS)) * float(r.choice([0.3, 1.0, 2.0]))
    if r.random() < 0.3:
        X = np.round(2 * X) / 2
    return k, np.unique(X, axis=0)


# ── the law ─────────────────────────────────────────────────────────────────────────────────────────────────


def judged(k, X):
    """Whether the answer is true at these points and at its own; the answer's name."""
    answer = k.validity(columns=COLUMNS)
    name = type(answer).__name__
    if isinstance(answer, Proved | ProvedAsDeclared):
        assert referee.lowest_eigenvalue(referee.gram(k, X)) > mpmath.mpf("-1e-35"), answer
    elif isinstance(answer, Refuted):
        K = referee.gram(k, answer.X)
        value = referee.form(K, answer.q)
        assert value < 0, f"{k}: qᵀKq is {mpmath.nstr(value, 5)} at its own witness {answer}"
        assert answer.check()
        low, high = answer.bounds()
        # bounds may be exact, and then the referee's own fifty digits are what is rounded
        with mpmath.workdps(referee.DIGITS):
            slack = mpmath.mpf("1e-45") * (1 + abs(value))
            assert mpmath.mpf(low) - slack <= value <= mpmath.mpf(high) + slack
        assert high < 0 or (high == 0 and value <= 0)
    return name


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_proved_has_no_negative_eigenvalue_and_what_is_refuted_has_a_negative_form(part, monkeypatch):
    if COUNT < 1000:
        monkeypatch.setattr(validity, "_WORK", 40_000)
    seen: Counter[str] = Counter()
    for index in range(part, COUNT, PARTS):
        k, X = draw(index)
        try:
            k(X)
        except MercerError:  # not defined there: a root of a negative number, an overflow
            seen["not defined"] += 1
            continue
        seen[judged(k, X)] += 1
    print(f"part {part}:", dict(seen))
    assert seen["Proved"]
    assert seen["Refuted"]
