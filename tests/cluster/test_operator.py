"""K by the workers of a cluster: the same numbers as here, and the same bits whoever computes them."""

import copy
import os
import signal

import numpy as np
import pytest

import mercer
from clusters import distributed, is_clean, started
from mercer import RBF, GaussianProcessRegressor, KernelRidge, Linear, Matern, White
from mercer.errors import ClusterError, MemoryBudgetError, ParameterError
from mercer.gram import Dense, Distributed, Tiles
from mercer.gram.cluster import active

ROWS = 1500


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((ROWS, 3))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(ROWS)
    return X, y


def ridge(**options):
    return KernelRidge("RBF(1.0)", alpha=0.5, solver="cg", tol=1e-13, random_state=0, **options)


KERNELS = [
    RBF(1.0),
    RBF([1.0, 2.0, 3.0]) + White(0.3),
    RBF(1.0) * White(0.3) + Matern(nu=1.5, lengthscale=2.0),
    Linear() + 0.5 * RBF(0.5),
    # without a program: blocks that are met again are taken away
    Matern(nu=0.7, lengthscale=2.0) + White(0.3),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_products_columns_blocks_and_gradients_are_those_of_the_whole_matrix(client, data, kernel):
    X, _ = data
    rng = np.random.default_rng(0)
    V = rng.standard_normal((ROWS, 2))
    W = rng.standard_normal((ROWS, 2))
    chosen = rng.permutation(ROWS)[:40]
    whole = np.asarray(kernel(X))
    with mercer.cluster(client):
        K = kernel.gram(X)
        assert isinstance(K, Distributed) and K.shape == (ROWS, ROWS)
        np.testing.assert_allclose(K @ V, whole @ V, rtol=0, atol=1e-11)
        np.testing.assert_allclose(K.shifted(2.0) @ V[:, 0], whole @ V[:, 0] + 2 * V[:, 0], atol=1e-11)
        np.testing.assert_allclose(
            K.columns_times(chosen, V[:40]), whole[:, chosen] @ V[:40], rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(K.block(chosen, slice(5)), whole[chosen, :5], atol=1e-14)
        np.testing.assert_allclose(K.diag(), whole.diagonal(), rtol=1e-14)
        np.testing.assert_allclose(K.dense(), whole, atol=1e-14)
        gradient = K.contract(V, W)
    np.testing.assert_allclose(gradient, Tiles(kernel, X).contract(V, W), rtol=1e-10, atol=1e-10)


def test_large_blocks_of_wide_rows_come_from_the_workers(client, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, 130))
    kernel = RBF(20.0) + White(0.5)
    rows = rng.permutation(1100)[:900]
    monkeypatch.setattr("mercer.gram.distributed.LARGE_BLOCK", 1000)
    with mercer.cluster(client):
        found = kernel.gram(X).block(rows, slice(100, 300))
    np.testing.assert_allclose(found, np.asarray(kernel(X))[rows, 100:300], atol=1e-14)


def test_float32_products_are_right_to_float32(client, data):
    X, _ = data
    V = np.ones((ROWS, 1), dtype=np.float32)
    whole = np.asarray(RBF(1.0)(X))
    with mercer.cluster(client):
        found = mercer.gram.tiles(RBF(1.0), X, dtype=np.float32) @ V
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, whole @ V, rtol=2e-6)


def test_few_rows_and_two_samples_stay_here(client):
    X = np.linspace(0, 1, 20)[:, None]
    with mercer.cluster(client):
        assert isinstance(RBF(1.0).gram(X), Dense)
        assert isinstance(RBF(1.0).gram(np.tile(X, (60, 1)), X), Dense)


def test_ridge_is_the_same_as_here(client, data):
    X, y = data
    local = ridge().fit(X, y)
    with mercer.cluster(client):
        model = ridge().fit(X, y)
        found = mercer.verify(model, X, y)
    assert model.certificate_.status == "converged"
    np.testing.assert_allclose(model.dual_coef_, local.dual_coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.predict(X[:50]), local.predict(X[:50]), rtol=0, atol=1e-10)
    assert found, str(found)


def test_a_gaussian_process_has_the_evidence_and_gradient_of_here(client, data):
    X, y = data
    options = {"optimizer": None, "solver": "cg", "tol": 1e-12, "probes": 4, "random_state": 0}
    local = GaussianProcessRegressor("RBF(1.0) + White(0.1)", **options).fit(X, y)
    with mercer.cluster(client):
        model = GaussianProcessRegressor("RBF(1.0) + White(0.1)", **options).fit(X, y)
    mean, std = model.predict(X[:20], return_std=True)
    np.testing.assert_allclose(model.log_evidence_, local.log_evidence_, rtol=1e-10)
    expected = local.predict(X[:20], return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=0, atol=1e-9)


def test_the_number_of_workers_changes_no_bit(client, data):
    X, y = data
    with mercer.cluster(client):
        two = ridge().fit(X, y)
    for workers in (1, 3):
        with started(workers) as cluster, distributed.Client(cluster) as other, mercer.cluster(other):
            model = ridge().fit(X, y)
        assert np.array_equal(model.dual_coef_, two.dual_coef_)
        assert model.certificate_.iterations == two.certificate_.iterations


def test_how_many_lines_are_asked_for_at_a_time_changes_no_bit(client, data, monkeypatch):
    X, _ = data
    gather = client.gather
    asked = []

    def counting(futures, **options):
        asked.append(len(futures))
        return gather(futures, **options)

    monkeypatch.setattr(client, "gather", counting)
    found = []
    for bundles in (1, 3, 50):
        monkeypatch.setattr("mercer.gram.cluster.BUNDLES", bundles)
        with mercer.cluster(client):
            found.append(RBF(1.0).gram(X) @ np.ones(ROWS))
    assert asked[0] <= 2 and asked[1] <= 6 and asked[2] == 7
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_a_killed_worker_changes_no_bit(client, data, monkeypatch):
    X, y = data
    with mercer.cluster(client):
        undisturbed = ridge().fit(X, y)
    with started(2, processes=True) as cluster, distributed.Client(cluster) as other:
        gather = other.gather
        asked = []
        killed = []

        def gather_or_kill(futures, **options):
            asked.append(len(futures))
            if len(asked) == 4:
                pid = other.run(os.getpid)
                killed.append(next(iter(pid.values())))
                os.kill(killed[0], signal.SIGKILL)
            return gather(futures, **options)

        monkeypatch.setattr(other, "gather", gather_or_kill)
        with mercer.cluster(other):
            model = ridge().fit(X, y)
        assert killed and killed[0] not in other.run(os.getpid).values()
    assert len(asked) > 5
    assert np.array_equal(model.dual_coef_, undisturbed.dual_coef_)


def test_nothing_is_left_on_the_cluster_and_operators_go_on_here(client, data):
    X, _ = data
    with mercer.cluster(client) as cluster:
        K = RBF(1.0).gram(X)
        there = K @ np.ones(ROWS)
        assert client.futures
        assert active() is cluster
    assert active() is None
    assert is_clean(client)
    np.testing.assert_allclose(K @ np.ones(ROWS), there, rtol=1e-12)
    assert not K.is_far
    np.testing.assert_allclose(K.columns_times([0], np.ones((1, 1)))[:, 0], K.block([0], slice(None))[0])
    assert type(copy.deepcopy(K)) is Tiles


def test_the_whole_matrix_is_never_put_together_beyond_the_memory_allowed(client, data):
    X, y = data
    with mercer.cluster(client):
        with pytest.raises(MemoryBudgetError, match="all entries of K at once"):
            RBF(1.0).gram(X, memory="1MiB").dense()
        model = KernelRidge("RBF(1.0)", memory="1MiB", random_state=0).fit(X, y)
    assert model.solver_ == "cg"


@pytest.mark.parametrize("address", ["tcp://10.1.2.3:8786", "ws://example.org:80", "tcp://[fe80::1]:1"])
def test_a_scheduler_without_certificates_is_refused_beyond_this_machine(address):
    class Stranger:
        def scheduler_info(self, n_workers):
            return {"address": "tcp://127.0.0.1:8786", "workers": {address: {}}}

    with pytest.raises(ClusterError, match="insecure=True"), mercer.cluster(Stranger()):
        pass
    with mercer.cluster(Stranger(), insecure=True) as cluster:
        assert active() is cluster


def test_a_cluster_is_named_by_workers_or_by_an_address():
    with pytest.raises(ParameterError, match="local:2"), mercer.cluster("local:none"):
        pass
