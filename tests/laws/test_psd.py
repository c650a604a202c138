"""Valid kernels have no negative eigenvalue: on clouds of 100 points, on grids, on awkward points.

Small random samples alone miss indefinite kernels; the last test shows that these samples do not.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels_under_test import (
    cloud,
    every_kernel,
    every_leaf,
    every_valid_kernel,
    grid,
    points,
    registered_leaves,
)
from mercer.kernels import Custom, Stationary

VALID = pytest.mark.parametrize("case", every_valid_kernel(), ids=repr)

# The invalid ones that are leaves; every other registered leaf must be under the law of this file.
INVALID_LEAVES = {"Sigmoid", "Logistic"}


def smallest_eigenvalue(K):
    """λ_min, and how far below zero rounding alone may push it."""
    assert np.all(np.isfinite(K))
    values = np.linalg.eigvalsh(K)
    return values[0], 1e-12 * len(K) * max(abs(values[-1]), 1e-300)


def assert_positive_semidefinite(K):
    lowest, rounding = smallest_eigenvalue(K)
    assert lowest >= -rounding, f"smallest eigenvalue {lowest:.3g}, rounding {rounding:.3g}"


def test_every_registered_leaf_is_under_this_law_or_known_to_break_it():
    tested = {type(case.kernel).__name__ for case in every_leaf() if case.valid}
    assert set(registered_leaves()) - tested == INVALID_LEAVES


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [0.5, 2.0])
@VALID
def test_no_negative_eigenvalue_on_a_cloud_of_100_points(case, d, spread):
    if case.columns not in (None, d):
        pytest.skip("the kernel has its own number of columns")
    assert_positive_semidefinite(case.kernel(case.admit(spread * cloud(100, d, seed=d))))


@pytest.mark.parametrize("d, side", [(1, 100), (2, 10), (3, 4), (5, 2)])
@pytest.mark.parametrize("step", [0.1, 0.5])
@VALID
def test_no_negative_eigenvalue_on_a_grid(case, d, side, step):
    if case.columns not in (None, d):
        pytest.skip("the kernel has its own number of columns")
    X = grid(side, d, step)
    assert_positive_semidefinite(case.kernel(case.admit(X - X.mean(axis=0))))


@VALID
@given(X=points(d=3, n=st.integers(1, 20)))
def test_no_negative_eigenvalue_on_awkward_points(case, X):
    assert_positive_semidefinite(case.kernel(case.admit(X)))


@VALID
def test_the_kernel_matrix_of_repeated_rows_is_singular_but_not_indefinite(case):
    X = np.repeat(case.points(10), 3, axis=0)
    assert_positive_semidefinite(case.kernel(X))


@pytest.mark.parametrize("case", [c for c in every_kernel() if not c.valid], ids=repr)
def test_the_samples_of_this_file_expose_every_kernel_called_invalid(case):
    exposed = []
    for d in (1, 2, 3, 5):
        if case.columns in (None, d):
            lowest, rounding = smallest_eigenvalue(case.kernel(case.admit(cloud(100, d, seed=d))))
            exposed.append(lowest < -rounding)
    assert any(exposed)


def matern32_of_l1(delta):
    r = np.sqrt(3) * np.abs(delta).sum(axis=-1)
    return (1 + r) * np.exp(-r)


def test_the_grids_of_this_file_expose_matern_with_the_l1_distance():
    lowest, rounding = smallest_eigenvalue(Stationary(matern32_of_l1)(grid(10, 2, 0.5)))
    assert lowest < -1e3 * rounding


def test_the_grids_of_this_file_expose_a_box():
    k = Custom(lambda a, b: float(abs(a[0] - b[0]) <= 0.5))
    lowest, rounding = smallest_eigenvalue(k(grid(100, 1, 0.1)))
    assert lowest < -1e3 * rounding
