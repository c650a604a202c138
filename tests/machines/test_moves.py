"""The numbers a search of hyperparameters moves: their units, limits and slopes."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    RBF,
    GaussianProcessRegressor,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    White,
    verify,
)
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.machines.gaussian_process.moves import LOGIT, search_path


def kernels():
    """Bounds that go by logarithms and not, wide and tight; lists of numbers; none."""
    ends = (1e-5, 1e5)
    return [
        1.5 * RBF(2.0) + White(0.1),
        (1.5 * RBF(2.0) + White(0.1)).bounded(scale=ends, lengthscale=ends, noise=ends),
        (1.5 * RBF([2.0, 3.0]) + White(0.1)).bounded(lengthscale=(0.5, 9.0)),
        (Matern(2.0).bounded(lengthscale=(1.9, 2.1)) + Polynomial(2, offset=2.0).bounded(offset=(0.0, 3.0))),
        Periodic(3.0, 1.0).on(0).bounded(period=(2.0, 4.0)) * RationalQuadratic(1.0, 0.5) + White(0.1),
    ]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_the_slope_in_what_is_moved_is_the_difference_quotient(number, shared):
    rng = np.random.default_rng(number)
    kernel = kernels()[number]
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 1))
    path = search_path(kernel, kernel.theta, shared=shared)
    u = np.clip(0.3 * rng.normal(size=len(path.names)), path.low / 2, path.high / 2)

    def value(u):
        return log_evidence(kernel.with_theta(path.theta(u)).gram(X), Y, 0.1)

    slope = path.slope(u, value(u).gradient)
    step = 1e-5
    steps = [step * e for e in np.eye(len(u))]
    apart = [(value(u + s).value - value(u - s).value) / (2 * step) for s in steps]
    assert slope == pytest.approx(apart, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("number", range(5))
def test_the_limits_are_the_bounds_and_no_move_is_the_start(number):
    kernel = kernels()[number]
    path = search_path(kernel, kernel.theta)
    still = np.zeros(len(path.names))
    assert path.theta(still) == pytest.approx(kernel.theta, rel=1e-12)
    for i, p in enumerate(path.parameters):
        for u, end in ((path.low[i], 0), (path.high[i], 1)):
            if not np.isfinite(u):
                assert p.bounds is None
                continue
            there = still.copy()
            there[i] = u
            value = kernel.with_theta(path.theta(there)).parameters
            found = next(q for q in value if q.name == p.name).value
            if p.bounds is None:
                assert found == pytest.approx(p.value * 10.0 ** (5 if end else -5))
            else:
                assert found == pytest.approx(p.bounds[end], rel=1e-5, abs=1e-5)
            there[i] = 2 * u
            beyond = path.theta(there)[list(path.T[:, i]).index(1.0)]
            assert p.bounds is None or abs(beyond) <= LOGIT * (1 + 1e-9)


def test_a_step_is_a_factor_of_e_with_bounds_and_without():
    for kernel in (RBF(2.0), RBF(2.0).bounded(lengthscale=(0.1, 10.0))):
        path = search_path(kernel, kernel.theta)
        moved = kernel.with_theta(path.theta(np.array([0.7])))
        assert moved.lengthscale == pytest.approx(2.0 * np.exp(0.7))


@pytest.mark.parametrize("n", [30, 50, 100, 200])
def test_wide_bounds_change_nothing_of_the_search(n):
    """Bounds that the maximum is far from leave the same maximum, in as many evaluations, or nearly."""
    rng = np.random.default_rng(n)
    X = rng.uniform(-3, 3, size=(n, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    kernel = 1.0 * RBF(2.0) + White(0.1)
    ends = (1e-5, 1e5)
    free = GaussianProcessRegressor(kernel).fit(X, y)
    held = GaussianProcessRegressor(kernel.bounded(scale=ends, lengthscale=ends, noise=ends)).fit(X, y)
    assert held.log_evidence_ == pytest.approx(free.log_evidence_, abs=1e-5)
    assert held.certificate_.iterations <= 2 * free.certificate_.iterations


def test_a_maximum_at_a_bound_is_reached_and_said():
    """Targets without noise: its variance goes to the lower bound, as far as a logit goes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(40, 1))
    y = np.sin(X[:, 0])
    kernel = (1.0 * RBF(1.0) + White(0.1)).bounded(noise=(1e-4, 1.0))
    with pytest.warns(ConvergenceWarning, match="lower end"):
        model = GaussianProcessRegressor(kernel).fit(X, y)
    noise = model.kernel_.parameters[-1]
    assert noise.name.endswith("noise")
    assert noise.value == pytest.approx(1e-4, rel=1e-5)
    assert model.certificate_.status == "converged"
    assert "lower end" in str(model.certificate_)
    assert verify(model, X, y).ok


@pytest.mark.parametrize("way", [-1.0, 1.0])
@pytest.mark.parametrize("number", range(5))
def test_only_a_slope_out_of_the_limits_is_none_that_is_left(number, way):
    """At a limit what leads back inside counts, near it what leads either way does."""
    kernel = kernels()[number]
    path = search_path(kernel, kernel.theta)
    size = len(path.names)
    for i in range(size):
        for end, sign in ((path.low, -1.0), (path.high, 1.0)):
            for share in (1.0, 0.99):
                if not np.isfinite(end[i]):
                    continue
                u = np.zeros(size)
                u[i] = share * end[i]
                # a gradient in θ that has this slope in u and none elsewhere
                unit = path.slope(u, np.eye(size)[i])[i]
                left = path.slope_left(u, way / unit * np.eye(size)[i])
                assert left == pytest.approx(0.0 if share == 1.0 and way == sign else 1.0)
