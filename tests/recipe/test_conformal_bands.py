"""Conformal bands of models of tables: by closed form of a process, by rows kept out of other machines."""

import numpy as np
import pytest

import mercer
from mercer import ConformalRegressor, quantiles
from mercer.recipe import estimate

rng = np.random.default_rng(4)
X = rng.uniform(-2, 2, (90, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=90)


@pytest.fixture(scope="module")
def process():
    return mercer.fit(X, Y, kernel="RBF() + White(0.1)", machine="gp")


def test_a_process_has_jackknife_in_closed_form(process):
    low, high = process.predict_interval(X[:9], 0.8, conformal=True)
    around = ConformalRegressor.around(process.machine_, level=0.8, normalize=True)
    ends = around.predict_interval(process._rows(X[:9]))
    np.testing.assert_array_equal((low, high), ends)
    assert not process.guarantee(0.8).strict and process.guarantee(0.8).at_least == pytest.approx(0.6)
    assert "jackknife+" in str(process.guarantee(0.8)) and "same rows" in str(process.guarantee(0.8))
    assert "held fixed where a row is left out" in str(process.guarantee(0.8))
    plain = process.predict_interval(X[:9], 0.8)
    assert not np.array_equal(plain, (low, high))


def test_around_is_what_a_fit_of_the_wrapper_gives():
    ridge = mercer.KernelRidge("RBF(1.0)", alpha=0.1)
    around = ConformalRegressor.around(ridge.fit(X, Y), level=0.8)
    fitted = ConformalRegressor(mercer.KernelRidge("RBF(1.0)", alpha=0.1), level=0.8).fit(X, Y)
    np.testing.assert_allclose(around.predict_interval(X[:9]), fitted.predict_interval(X[:9]), rtol=1e-12)


def test_landmarks_take_the_quantile_of_rows_kept_out():
    model = mercer.fit(X, Y, kernel="RBF()", machine="landmarks", memory="4KiB")
    on_scale = model.scale_.forward
    errors = np.abs(on_scale(model.estimate_.truth) - model.estimate_.numbers.centre)
    low, high = model.predict_interval(X[:5], 0.6, conformal=True)
    np.testing.assert_allclose(on_scale(high) - on_scale(low), 2 * quantiles.upper(errors, 0.6))
    assert "fitted to all rows" in str(model.guarantee(0.6)) and model.guarantee(0.6).at_least == 0.6


def test_the_probability_of_sets_is_that_of_the_slow_loop():
    for n in (3, 20, 40):
        truth = np.array(["a", "b"])[rng.integers(0, 2, n)]
        p = rng.uniform(0, 1, n)
        found = estimate.of_classes(
            "", np.arange(n), truth, np.array(["a", "b"]), np.column_stack([p, 1 - p])
        )
        own = np.sort(np.where(truth == "a", p, 1 - p))[::-1]
        rank = quantiles.rank(n, 0.9)
        expected = 0.0 if rank > n else own[rank - 1]
        assert estimate.least_probability(found, np.array(["a", "b"]), 0.9) == expected
