"""Support vector machines whose kernel rows come from the workers, with the same certificate."""

import numpy as np
import pytest

import mercer
from clusters import distributed, started
from mercer import SVC, SVR, NuSVC, OneClassSVM
from mercer.errors import Interrupted

ROWS = 1600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((ROWS, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(ROWS)
    return X, y


MACHINES = {
    "SVC": lambda: SVC("RBF(1.0)", C=2.0, tol=1e-4, memory="1MiB"),
    "SVC without intercept": lambda: SVC("RBF(1.0)", C=2.0, tol=1e-4, fit_intercept=False),
    "NuSVC": lambda: NuSVC("RBF(1.0)", nu=0.4, tol=1e-4),
    "SVR": lambda: SVR("RBF(1.0) + White(0.1)", C=1.0, epsilon=0.2, tol=1e-4),
    "OneClassSVM": lambda: OneClassSVM("RBF(1.0)", nu=0.2, tol=1e-4),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_optimum_is_that_of_here_and_so_is_its_certificate(client, data, name):
    X, y = data
    targets = y if name == "SVR" else (y > 0).astype(int)
    local = MACHINES[name]().fit(X, targets)
    with mercer.cluster(client):
        model = MACHINES[name]().fit(X, targets)
        found = mercer.verify(model, X, targets)
    assert model.certificate_.status == "converged"
    assert model.certificate_.kkt <= 2e-4
    assert found, str(found)
    assert model.certificate_.dual == pytest.approx(local.certificate_.dual, rel=1e-4)
    here = local.decision_function(X) if name != "SVR" else local.predict(X)
    there = model.decision_function(X) if name != "SVR" else model.predict(X)
    np.testing.assert_allclose(there, here, rtol=0, atol=2e-3 * np.abs(here).max())


def test_many_small_sets_come_to_the_same_optimum(client, data, monkeypatch):
    X, y = data
    local = SVC("RBF(1.0)", C=5.0, tol=1e-4).fit(X, y > 0)
    monkeypatch.setattr("mercer.solve.decomposed.WORKING_SET", 400)
    with mercer.cluster(client):
        model = SVC("RBF(1.0)", C=5.0, tol=1e-4).fit(X, y > 0)
    assert model.certificate_.status == "converged"
    assert model.certificate_.dual == pytest.approx(local.certificate_.dual, rel=1e-4)


def test_several_classes_are_the_same_as_here(client, data):
    X, y = data
    labels = np.digitize(y, [-0.7, 0.7])
    local = SVC("RBF(1.0)", C=1.0, tol=1e-4).fit(X, labels)
    with mercer.cluster(client):
        model = SVC("RBF(1.0)", C=1.0, tol=1e-4).fit(X, labels)
    assert np.mean(model.predict(X) == local.predict(X)) > 0.998


def test_the_number_of_workers_changes_no_bit(client, data):
    X, y = data
    with mercer.cluster(client):
        two = MACHINES["SVC"]().fit(X, y > 0)
    with started(3) as cluster, distributed.Client(cluster) as other, mercer.cluster(other):
        three = MACHINES["SVC"]().fit(X, y > 0)
    assert np.array_equal(two.dual_coef_, three.dual_coef_)
    assert np.array_equal(two.support_, three.support_)


def test_progress_is_told_and_a_limit_leaves_a_true_certificate(client, data, capsys):
    X, y = data
    with mercer.cluster(client):
        with pytest.warns(UserWarning, match="stopped before"):
            model = SVC("RBF(1.0)", C=2.0, max_iter=50, verbose=1).fit(X, y > 0)
        assert mercer.verify(model, X, y > 0)
    assert "violation" in capsys.readouterr().out
    assert model.certificate_.status == "limit"
    assert 0 < model.certificate_.iterations <= 50


def test_ctrl_c_keeps_the_best_so_far_and_leaves_the_cluster_clean(client, data):
    from clusters import is_clean

    X, y = data
    rounds = []

    def told(*numbers):
        rounds.append(numbers)
        if len(rounds) == 2:
            raise KeyboardInterrupt

    with mercer.cluster(client), pytest.raises(Interrupted) as stopped:
        SVC("RBF(1.0)", C=2.0, tol=1e-6, callback=told).fit(X, y > 0)
    assert stopped.value.model.certificate_.status == "interrupted"
    assert len(stopped.value.model.support_) > 0
    assert is_clean(client)
