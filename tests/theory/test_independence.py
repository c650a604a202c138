"""HSIC: the formulas by loops, the level under the null measured, power, low rank factors."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import mercer
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.theory import hsic, hsic_test, mmd


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, np.column_stack([X[:, 0] ** 2, rng.normal(size=40)])


def test_the_biased_statistic_is_the_trace(pairs):
    X, Y = pairs
    K, L = mercer.RBF(1.0)(X), mercer.Laplacian(2.0)(Y)
    H = np.eye(40) - 1 / 40
    want = np.trace(K @ H @ L @ H) / 40**2
    assert hsic(X, Y, "RBF(1.0)", "Laplacian(2.0)", statistic="biased") == pytest.approx(want, rel=1e-12)
    covariance = (X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)) / 40
    assert hsic(X, Y, "Linear()", statistic="biased") == pytest.approx((covariance**2).sum())
    assert hsic(X + 1e6, Y, "Linear()", statistic="biased") == pytest.approx((covariance**2).sum(), rel=1e-3)


def test_the_unbiased_statistic_is_the_mean_over_distinct_quadruples(pairs):
    X, Y = (part[:6] for part in pairs)
    K, L = mercer.RBF(1.0)(X), mercer.RBF(2.0)(Y)
    # The U-statistic that the closed form sums.
    terms = [K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q]) for i, j, q, r in permutations(range(6), 4)]
    assert hsic(X, Y, "RBF(1.0)", "RBF(2.0)") == pytest.approx(np.mean(terms), abs=1e-14)


@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_permutations_permute_the_rows_of_y(pairs, statistic):
    X, Y = pairs
    found = hsic_test(X, Y, "RBF(1.0)", statistic=statistic, n_permutations=3, random_state=5)
    rng = np.random.default_rng(5)
    for value in found.null:
        assert value == pytest.approx(
            hsic(X, Y[rng.permutation(40)], "RBF(1.0)", statistic=statistic), abs=1e-14
        )
    assert found.p_value == (1 + (found.null >= found.statistic).sum()) / 4


@pytest.mark.parametrize("memory", ["2GiB", "1KiB"])
def test_the_level_holds_under_the_null(memory):
    """200 independent pairs; at level 0.1, 0.999 bounds of the binomial."""
    rng = np.random.default_rng(3)
    rejected = 0
    for i in range(200):
        X, Y = rng.exponential(size=(15, 1)), rng.normal(size=(15, 2))
        rejected += hsic_test(X, Y, n_permutations=39, memory=memory, random_state=i).rejects(0.1)
    low, high = binom.ppf([0.0005, 0.9995], 200, 0.1)
    assert low <= rejected <= high, rejected


def test_dependence_without_correlation_is_seen():
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 100)
    x, y = np.cos(angle), np.sin(angle)
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.2
    assert hsic_test(x[:, None], y, random_state=0, n_permutations=199).p_value == pytest.approx(1 / 200)
    assert hsic_test(x[:, None], y, "Linear()", random_state=0, n_permutations=199).p_value > 0.05


@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_low_rank_factors_give_nearly_the_same(pairs, statistic):
    X, Y = pairs
    a = hsic_test(X, Y, "RBF(3.0)", statistic=statistic, n_permutations=50, random_state=2)
    b = hsic_test(X, Y, "RBF(3.0)", statistic=statistic, n_permutations=50, random_state=2, memory="1KiB")
    np.testing.assert_allclose(b.null, a.null, atol=1e-6)
    assert b.statistic == pytest.approx(a.statistic, abs=1e-6)
    assert sum("leaves out" in note for note in b.notes) == 2


def test_constant_samples_are_independent_of_everything(pairs):
    X, _ = pairs
    assert hsic_test(X, np.ones(40), n_permutations=19, random_state=0).p_value == 1.0


def test_bad_input_is_refused(pairs):
    X, Y = pairs
    with pytest.raises(ShapeError, match="40 rows and Y has 39"):
        hsic_test(X, Y[1:])
    with pytest.raises(InputError, match="at least 4 rows"):
        hsic_test(X[:3], Y[:3])
    with pytest.raises(NotFiniteError):
        hsic_test(X, np.where(Y > 1, np.inf, Y))
    with pytest.raises(ParameterError, match="statistic"):
        hsic_test(X, Y, statistic="other")
    with pytest.raises(ParameterError, match="n_permutations"):
        hsic_test(X, Y, n_permutations=2.5)


def test_gaps_that_the_kernel_knows_of_are_no_numbers_that_lack():
    """A table of numbers with a gap; the referee fills it by hand, and marks which values were known."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    x[[4, 17]] = np.nan
    y = rng.normal(size=40)
    table = pd.DataFrame({"x": x})
    kernel = 'RBF(1.0).of(Filled([0.25])).on("x")*Categorical(1.0).of(Known()).on("x")'
    known = np.isfinite(x)
    filled = np.where(known, x, 0.25)
    K = np.exp(-0.5 * (filled[:, None] - filled) ** 2) * np.exp(-1.0 * (known[:, None] != known))
    L = mercer.RBF(1.0)(y[:, None])
    H = np.eye(40) - 1 / 40
    found = hsic(table, y, kernel, "RBF(1.0)", statistic="biased")
    assert found == pytest.approx(np.trace(K @ H @ L @ H) / 40**2, rel=1e-12)
    assert 0 < hsic_test(table, y, kernel, "RBF(1.0)", random_state=0).p_value <= 1
    halves = table.iloc[:20], table.iloc[20:]
    want = K[:20, :20].mean() + K[20:, 20:].mean() - 2 * K[:20, 20:].mean()
    assert mmd(*halves, kernel, statistic="biased") == pytest.approx(want, abs=1e-14)
    with pytest.raises(NotFiniteError, match="column 'x'"):
        hsic(table, y, "RBF(1.0)")
