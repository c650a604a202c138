"""Starts of the search for hyperparameters move what the user left free, and nothing else."""

import numpy as np
import pytest

from mercer import RBF, Constant, Linear, Matern, Periodic, RationalQuadratic, White
from mercer.arrays import Rows
from mercer.machines.gaussian_process.starts import open_starts, scaled_starts


def random_kernel(rng):
    """A sum of radial and other leaves; each number is left free, bounded or fixed at random."""
    d = 2

    def held(kernel):
        numbers = {}
        for p in kernel.parameters:
            numbers.setdefault(p.name.split("[")[0], []).append(p.value)
        for name, values in numbers.items():
            choice = rng.integers(3)
            if choice == 0:
                kernel = kernel.fix(name)
            elif choice == 1:
                kernel = kernel.bounded(**{name: (0.5 * min(values), 3.0 * max(values))})
        return kernel

    size = lambda: float(np.exp(rng.normal()))
    radial = [RBF(size()), RBF([size() for _ in range(d)]), Matern(size()), RationalQuadratic(size())]
    other = [Linear(), Periodic(size(), size()).on(0), Constant(size()), White(size())]
    first = held(size() * radial[rng.integers(4)])
    second = held(size() * (radial + other)[rng.integers(8)])
    return first + second + held(White(size()))


def data(rng, far):
    X = far * rng.normal(size=(15, 2)) * [1.0, 7.0]
    return Rows.of(X), far * (3.0 + rng.normal(size=(15, 1)))


@pytest.mark.parametrize("far", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("seed", range(20))
def test_a_start_leaves_bounded_and_fixed_numbers_as_they_were_given(seed, far):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(rng)
    rows, Y = data(rng, far)
    for start in [*scaled_starts(kernel, rows, Y, 0.0), *open_starts(kernel)]:
        moved = kernel.with_theta(start.theta)
        for before, after in zip(kernel.parameters, moved.parameters, strict=True):
            if before.bounds is not None or not before.free:
                assert after.value == pytest.approx(before.value, rel=1e-12), (start.name, before.name)


@pytest.mark.parametrize("far", [1e-4, 1e4])
def test_a_bounded_lengthscale_beside_a_free_one_is_not_moved(far):
    rng = np.random.default_rng(0)
    rows, Y = data(rng, far)
    kernel = 1.0 * RBF(1.0).bounded(lengthscale=(0.5, 2.0)) + 1.0 * Matern(1.0) + White(0.1)
    moved = kernel.with_theta(scaled_starts(kernel, rows, Y, 0.0)[1].theta)
    bounded, free = (p.value for p in moved.parameters if p.name.endswith("lengthscale"))
    assert bounded == pytest.approx(1.0, rel=1e-12)
    # √(d/2) times the deviation of the columns, with d = 2
    assert free == pytest.approx(np.sqrt(np.mean(np.var(rows.vectors, axis=0))))
