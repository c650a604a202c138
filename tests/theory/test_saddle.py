"""Weak and strong duality, Slater's condition and saddle points: programs with known answers,
and fitted machines.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, Adatron, KernelMachine
from mercer.errors import ParameterError
from mercer.theory import convex_duality, lagrangian


@pytest.mark.parametrize("seed", range(4))
def test_a_projection_on_a_halfspace_has_its_closed_form(seed):
    rng = np.random.default_rng(seed)
    p, a, c = rng.normal(size=3), rng.normal(size=3), rng.normal()
    found = convex_duality(
        lambda x: np.square(x - p).sum(), [lambda x: a @ x - c], np.zeros(3) + c * a / (a @ a)
    )
    over = max(0.0, (a @ p - c) / (a @ a))
    np.testing.assert_allclose(found.x, p - over * a, atol=1e-5)
    assert found.multipliers[0] == pytest.approx(2 * over, abs=1e-4)
    assert found.primal == pytest.approx(over**2 * (a @ a), abs=1e-6)
    assert found.weak and found.strong and found.saddle and found.strictly_feasible


def test_equalities_have_free_multipliers():
    found = convex_duality(lambda x: x @ x, [], [1.0, 0.0], A=[[1.0, 1.0]], b=[1.0])
    assert found.multipliers == pytest.approx([-1.0], abs=1e-5)
    assert found.saddle and "Slater" in str(found)


def test_without_a_strictly_feasible_point_no_multiplier_reaches_the_optimum():
    # x = 0 is the only feasible point, and q(λ) = -1/(4λ) is below 0 for every λ:
    # none found may be moderate and exact
    found = convex_duality(lambda x: x[0], [lambda x: x[0] ** 2], [0.5])
    assert not found.strictly_feasible and found.weak
    assert found.multipliers[0] > 1e3 or not found.strong
    assert "does not hold" in str(found)


def test_an_empty_program_says_so():
    with pytest.raises(ParameterError, match="no feasible point"):
        convex_duality(lambda x: x[0] ** 2, [lambda x: x[0] + 1, lambda x: 1 - x[0]], [0.0])


def cloud(seed, gap):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y == 1, gap, -gap)
    return X, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", ["Linear()", "RBF(1.0)"])
def test_hard_and_soft_margins_are_saddle_points(seed, kernel):
    X, y = cloud(seed, 0.3)
    for C in (np.inf, 0.5):
        model = SVC(kernel, C, tol=1e-9).fit(X, y)
        found = lagrangian(model, X, y)
        assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-7)
        assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-7)
        assert found.weak and found.strong and found.strictly_feasible and found.saddle
    for other in (KernelMachine(kernel, "hinge", 2.0), Adatron(kernel, C=0.5, tol=1e-9, max_iter=20000)):
        assert lagrangian(other.fit(X, y), X, y).saddle


def test_a_fit_that_stopped_early_is_no_saddle_point():
    X, y = cloud(0, -0.5)
    with pytest.warns(UserWarning, match="stopped before"):
        model = SVC("RBF(1.0)", 10.0, max_iter=3).fit(X, y)
    found = lagrangian(model, X, y)
    assert found.weak and not found.strong and not found.saddle


def test_other_machines_are_sent_to_the_general_program():
    X, y = cloud(0, 0.1)
    with pytest.raises(ParameterError, match="convex_duality"):
        lagrangian(SVR("RBF(1.0)").fit(X, y), X, y)
    with pytest.raises(ParameterError, match="convex_duality"):
        lagrangian(SVC("RBF(1.0)").fit(X, np.arange(20) % 3), X, np.arange(20) % 3)


def test_a_gap_that_can_be_seen_is_no_strong_duality():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1, -1)
    seen = set()
    for tol in (1e-1, 1e-2, 1e-3, 1e-8):
        found = lagrangian(SVC("RBF(1.0)", C=3.0, tol=tol).fit(X, y), X, y)
        assert found.strong == (abs(found.gap) <= 1e-6 * (1 + abs(found.primal)))
        seen.add(found.strong)
    for steps in (3, 10, 30):
        with pytest.warns(ConvergenceWarning, match="stopped before"):
            found = lagrangian(SVC("RBF(1.0)", C=3.0, max_iter=steps).fit(X, y), X, y)
        assert found.weak and not found.strong and not found.saddle
    assert True in seen
