"""A term of one column runs in the core where its formula allows, the same in both spellings."""

import numpy as np
import pytest

from mercer.arrays import Rows
from mercer.errors import OpenParameterError
from mercer.gram import Tiles, blocks
from mercer.kernels import PerColumn, leaf
from mercer.kernels.formulas.formula import LEFT, RIGHT, record
from mercer.kernels.leaves.leaf import LEAVES
from mercer.kernels.programs.terms import parity, read_together
from mercer.params import OPEN, Vector, positive

X = np.random.default_rng(0).normal(size=(12, 3))
Z = np.random.default_rng(1).normal(size=(7, 3))
U = np.random.default_rng(2).normal(size=(12, 2))

before = dict(LEAVES)


@leaf
class Ripples(PerColumn):
    period: Vector = positive(1.0, per_column=True)
    height: float = positive(0.5)
    reduction = "product"

    def term(self, x, z, period):
        return 1 + self.height * np.cos(2 * np.pi * (x - z) / period)


@leaf
class Cauchies(PerColumn):
    lengthscale: Vector = positive(OPEN, per_column=True)

    def term(self, x, z, lengthscale):
        return np.log1p(((z - x) / lengthscale) ** 2)

    def value(self, r):
        return np.exp(-r)


@leaf
class BothWays(PerColumn):
    def term(self, x, z):
        return (x - z) * np.sin(z - x) + np.cos(x - z)


@leaf
class Cubes(PerColumn):
    def term(self, x, z):
        return (1 + x * z) ** 3


@leaf
class Overlap(PerColumn):
    weight: float = positive(0.7)

    def term(self, x, z):
        return self.weight * np.minimum(x, z) + np.abs(x - z)


@leaf
class Overtones(PerColumn):
    heights: tuple[float, ...] = positive(ndim=1)

    def term(self, x, z):
        return sum(h * np.cos(n * (x - z)) for n, h in enumerate(self.heights, 1))


@leaf
class Alone(PerColumn):
    def term(self, x, z):
        return x**2 * z**2


@leaf
class Branches(PerColumn):
    height: float = positive(0.5)

    def term(self, x, z):
        return self.height * np.where(x > z, x - z, z - x)


LEAVES.clear()
LEAVES.update(before)

NATIVE = [
    Ripples([1.0, 2.0, 3.0], 0.3),
    Ripples(1.5),
    Cauchies([0.5, 1.0, 2.0]),
    Cauchies(1.3),
    BothWays(),
    Cubes(),
    Overlap(0.4),
    Overtones([1.0, 0.5]),
]
OTHERS = [Alone(), Branches(0.3)]


@pytest.mark.parametrize("k", NATIVE, ids=repr)
def test_a_term_that_reads_both_rows_together_is_native(k):
    assert Tiles(k, X).notes == ()
    np.testing.assert_allclose(k(X, Z), k.block(Rows(X), Rows(Z)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k(X), k.block(Rows(X), None), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("k", OTHERS, ids=repr)
def test_another_term_is_evaluated_by_numpy_and_says_so(k):
    assert "evaluated by NumPy" in Tiles(k, X).notes[0]
    np.testing.assert_array_equal(k(X, Z), k.block(Rows(X), Rows(Z)))


@pytest.mark.parametrize("k", [k for k in NATIVE + OTHERS if k.parameters], ids=repr)
def test_both_spellings_have_the_gradient_of_differences(k):
    W = U @ U.T
    step = 1e-6 * np.eye(len(k.theta))

    def total(theta):
        return (W * k.with_theta(theta).block(Rows(X), None)).sum()

    expected = [(total(k.theta + e) - total(k.theta - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(Tiles(k, X).contract(U), expected, rtol=1e-7, atol=1e-8)
    spelled = blocks.contract(k, Rows(X), None, W=W) * [p.derivative for p in k.parameters]
    np.testing.assert_allclose(spelled, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("k", NATIVE, ids=repr)
def test_the_gradient_by_the_rows_is_that_of_differences(k):
    found, _ = Tiles(k, X).contract_inputs(U)
    shift = np.zeros_like(X)
    shift[4, 1] = 1e-6
    up, down = (((U @ U.T) * k.block(Rows(X + s * shift), None)).sum() for s in (1, -1))
    np.testing.assert_allclose(found[4, 1], (up - down) / 2e-6, rtol=1e-6)


def test_an_open_parameter_of_a_term_is_refused_with_how_to_close_it():
    with pytest.raises(OpenParameterError, match="leaves its lengthscale open"):
        Cauchies()(X)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (lambda x, z: np.cos(x - z) + x * z, "even"),
        (lambda x, z: (x - z) * np.sin(z - x), "even"),
        (lambda x, z: (x - z) ** 3, "odd"),
        (lambda x, z: np.exp(x - z), "neither"),
        (lambda x, z: (x - z) + x * z, "neither"),
    ],
)
def test_parity_in_the_difference_is_read_from_the_steps(term, expected):
    assert parity(read_together(record(term, LEFT, RIGHT))) == expected
