"""Features on a cluster: Nyström, random features, ridge in them and feature machines, by sums there."""

import os
import signal

import numpy as np
import pytest

import mercer
from clusters import distributed, is_clean, started
from mercer import FeatureMachineClassifier, FeatureMachineRegressor, KernelRidge, Nystroem, RandomFeatures
from mercer.errors import ClusterError
from mercer.gram.far_features import FarFeatures
from mercer.gram.on_rows import Approximated

array = pytest.importorskip("dask.array", reason="the extra mercer[dask] is not installed")

ROWS = 1600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((ROWS, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(ROWS)


def landmarks(**options):
    return Nystroem("RBF(1.5)", 30, random_state=0, **options)


@pytest.mark.parametrize("way", ["uniform", "kmeans", "leverage"])
def test_nystroem_is_the_same_as_here_by_one_pass(client, data, way):
    X, _ = data
    local = landmarks(landmarks=way).fit(X)
    with mercer.cluster(client):
        model = landmarks(landmarks=way).fit(X)
        assert mercer.verify(model, X)
    assert np.array_equal(model.landmarks_, local.landmarks_)
    assert model.residual_trace_ == pytest.approx(local.residual_trace_, rel=1e-10)
    assert model.residual_rounding_ == pytest.approx(local.residual_rounding_, rel=1e-6)
    assert np.array_equal(model.transform(X[:7]), local.transform(X[:7]))


def test_nystroem_doubles_its_landmarks_until_the_tolerance_is_met(client, data):
    X, _ = data
    options = {"tolerance": 1e-3, "random_state": 0}
    local = Nystroem("RBF(1.5)", **options).fit(X)
    with mercer.cluster(client):
        model = Nystroem("RBF(1.5)", **options).fit(X)
    assert model.residual_share_ <= 1e-3
    assert np.array_equal(model.landmark_indices_, local.landmark_indices_)


def test_the_features_of_the_rows_come_from_the_workers_if_they_are_asked_for(client, data):
    X, _ = data
    local = landmarks().fit_transform(X)
    with mercer.cluster(client):
        found = landmarks().fit_transform(X)
    np.testing.assert_allclose(found, local, rtol=0, atol=1e-13)


def test_a_greedy_choice_is_refused_with_the_reason(client, data):
    X, y = data
    with mercer.cluster(client):
        with pytest.raises(ClusterError, match="one after the other"):
            landmarks(landmarks="pivoted").fit(X)
        with pytest.raises(ClusterError, match="one after the other"):
            ridge(Nystroem(n_components=9, landmarks="pivoted")).fit(X, y)


def test_a_dask_array_is_the_same_as_its_rows(client, data):
    X, y = data
    lazy = array.from_array(X, chunks=(500, 2))
    with mercer.cluster(client):
        expected = landmarks().fit(X)
        fitted = ridge(Nystroem(n_components=20, random_state=0)).fit(X, y)
    assert landmarks().fit(lazy).residual_trace_ == expected.residual_trace_
    again = ridge(Nystroem(n_components=20, random_state=0)).fit(lazy, y)
    assert np.array_equal(again.feature_coef_, fitted.feature_coef_)


def test_random_features_are_those_of_here(client, data):
    X, _ = data
    local = RandomFeatures("RBF(1.5)", 40, random_state=0).fit(X)
    with mercer.cluster(client):
        model = RandomFeatures("RBF(1.5)", 40, random_state=0).fit(X)
        assert mercer.verify(model, X)
    assert np.array_equal(model.transform(X), local.transform(X))
    assert model.error_ == local.error_


def ridge(approximation, **options):
    return KernelRidge("RBF(1.5) + White(0.01)", alpha=0.1, approximation=approximation, **options)


APPROXIMATIONS = {
    "Nystroem": lambda: Nystroem(n_components=40, random_state=0),
    "RandomFeatures": lambda: RandomFeatures(n_components=40, random_state=0),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_ridge_in_features_is_the_same_as_here_and_they_never_come(
    client, data, monkeypatch, name, intercept
):
    X, y = data
    Y = np.column_stack([y, X[:, 2] ** 2])
    w = np.arange(ROWS) % 3 * 1.0
    local = ridge(APPROXIMATIONS[name](), fit_intercept=intercept).fit(X, Y, w)
    expected = local.loo_error_
    with mercer.cluster(client):
        with monkeypatch.context() as here:
            here.setattr(Approximated, "phi", property(lambda self: pytest.fail("Φ was made here")))
            model = ridge(APPROXIMATIONS[name](), fit_intercept=intercept).fit(X, Y, w)
            left_out = model.loo_error_
        found = mercer.verify(model, X, Y, w)
    assert found, str(found)
    assert model.solver_ == local.solver_ == "primal"
    assert model.certificate_.status == "converged"
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.dual_coef_, local.dual_coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(left_out, expected, rtol=1e-8)


def test_the_dual_of_features_and_least_squares_without_penalty_are_those_of_here(client, data):
    X, y = data
    for options in ({"solver": "cg", "alpha": 1.0, "tol": 1e-12}, {"alpha": 0.0}):
        phi = RandomFeatures(n_components=20, random_state=0)
        local = KernelRidge("RBF(1.5)", approximation=phi, random_state=0, **options).fit(X, y)
        with mercer.cluster(client):
            model = KernelRidge("RBF(1.5)", approximation=phi, random_state=0, **options).fit(X, y)
        assert model.solver_ == local.solver_
        np.testing.assert_allclose(model.feature_coef_, local.feature_coef_, rtol=0, atol=1e-7)


def test_ridge_on_landmarks_is_summed_by_the_workers(client, data, monkeypatch):
    X, y = data
    options = {"solver": "nystrom", "n_landmarks": 30, "alpha": 0.1, "random_state": 0}
    local = KernelRidge("RBF(1.5)", **options).fit(X, y)
    passes = []
    sums = FarFeatures.sums
    monkeypatch.setattr(FarFeatures, "sums", lambda self, *given: passes.append(1) or sums(self, *given))
    with mercer.cluster(client):
        model = KernelRidge("RBF(1.5)", **options).fit(X, y)
        assert mercer.verify(model, X, y)
    assert passes == [1]
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=0, atol=1e-8)
    assert model.certificate_.gap == pytest.approx(local.certificate_.gap, rel=1e-6)


def small(machine, **options):
    """A feature machine with a quick search, on landmarks: all rows would not fit in its memory."""
    given = {"n_updates": 1, "search_rows": 100, "memory": "2MiB", "n_landmarks": 30, "random_state": 0}
    return machine("RBF()", metric="diagonal", exponent=1.0, **{**given, **options})


def test_a_feature_machine_learns_its_metric_here_and_the_function_there(client, data):
    X, y = data
    local = small(FeatureMachineRegressor).fit(X, y)
    with mercer.cluster(client):
        model = small(FeatureMachineRegressor).fit(X, y)
        assert mercer.verify(model, X, y)
    assert model.solver_ == local.solver_ == "nystrom"
    assert model.kernel_ == local.kernel_
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=0, atol=1e-7)
    assert is_clean(client)


def test_a_feature_machine_of_all_rows_and_of_classes_is_the_same_as_here(client, data):
    X, y = data
    labels = np.digitize(y, [-1.0, 1.0])
    local = small(FeatureMachineClassifier, memory="1GiB").fit(X, labels)
    with mercer.cluster(client):
        model = small(FeatureMachineClassifier, memory="1GiB").fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), local.predict_proba(X), rtol=0, atol=1e-6)


def three(X, y):
    """Coefficients of a ridge in features, of a feature machine and the residual of landmarks."""
    return (
        ridge(APPROXIMATIONS["RandomFeatures"](), fit_intercept=True).fit(X, y).feature_coef_,
        small(FeatureMachineRegressor).fit(X, y).landmark_coef_,
        landmarks(landmarks="leverage").fit(X).residual_trace_,
    )


def test_the_number_of_workers_changes_no_bit(client, data):
    with mercer.cluster(client):
        two = three(*data)
    for workers in (1, 3):
        with started(workers) as cluster, distributed.Client(cluster) as other, mercer.cluster(other):
            found = three(*data)
        assert all(np.array_equal(a, b) for a, b in zip(found, two, strict=True))


def test_a_killed_worker_changes_no_bit(client, data, monkeypatch):
    X, y = data
    approximation = Nystroem(n_components=40, random_state=0)
    with mercer.cluster(client):
        undisturbed = ridge(approximation).fit(X, y)
    with started(2, processes=True) as cluster, distributed.Client(cluster) as other:
        gather = other.gather
        asked = []

        def gather_or_kill(futures, **options):
            asked.append(len(futures))
            if len(asked) == 2:
                os.kill(next(iter(other.run(os.getpid).values())), signal.SIGKILL)
            return gather(futures, **options)

        monkeypatch.setattr(other, "gather", gather_or_kill)
        with mercer.cluster(other):
            model = ridge(approximation).fit(X, y)
    assert len(asked) >= 2
    assert np.array_equal(model.feature_coef_, undisturbed.feature_coef_)
