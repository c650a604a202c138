"""Which machines learn on a cluster, which refuse to, and what a user sees of it."""

import json
import signal

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from clusters import is_clean
from estimators_under_test import SUBJECTS
from mercer import SVR, GaussianProcessClassifier, KernelKMeans, KernelPCA, KernelRidge, Nystroem, choose
from mercer.errors import ClusterError, Interrupted
from mercer.gram.cluster import active, here
from mercer.machines.shared.base import KernelEstimator

ROWS = 1200
ON_CLUSTER = {
    "FalkonClassifier",
    "FalkonRegressor",
    "FeatureMachineClassifier",
    "FeatureMachineRegressor",
    "GaussianProcessRegressor",
    "KernelKMeans",
    "KernelPCA",
    "KernelRidge",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "RandomFeatures",
    "SVC",
    "SVDD",
    "SVR",
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((ROWS, 3)) + 3 * rng.integers(0, 2, (ROWS, 1))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(ROWS)


def test_components_are_those_of_here(client, data):
    X, _ = data
    local = KernelPCA("RBF(2.0)", 3, random_state=0).fit(X)
    with mercer.cluster(client):
        model = KernelPCA("RBF(2.0)", 3, memory="20MiB", random_state=0).fit(X)
        assert mercer.verify(model, X)
    np.testing.assert_allclose(model.eigenvalues_, local.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(model.transform(X[:9])), np.abs(local.transform(X[:9])), atol=1e-6)


def test_clusters_are_those_of_here(client, data):
    X, _ = data
    local = KernelKMeans("RBF(2.0)", n_clusters=2, random_state=0).fit(X)
    with mercer.cluster(client):
        model = KernelKMeans("RBF(2.0)", n_clusters=2, memory="1MiB", random_state=0).fit(X)
    assert np.array_equal(model.labels_, local.labels_)
    assert model.inertia_ == pytest.approx(local.inertia_, rel=1e-12)


def test_a_kernel_is_chosen_by_folds_on_the_cluster(client, data):
    X, y = data
    model = KernelRidge("RBF(1.0)", solver="cg", random_state=0)
    with mercer.cluster(client):
        found = choose(model, X, y, by="cv", cv=2, n_trials=2, scoring="r2", random_state=0)
    assert 0.5 < found.score <= 1
    assert found.machine.certificate_.status == "converged"


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_machine_that_cannot_learn_on_a_cluster_says_so(client, subject):
    machine = subject.make()
    if not isinstance(machine, KernelEstimator) or type(machine).__name__ in ON_CLUSTER:
        assert getattr(machine, "on_cluster", True)
        return
    with mercer.cluster(client), pytest.raises(ClusterError, match="does not learn on a cluster"):
        subject.fit()


def test_an_approximation_that_would_make_all_features_here_is_refused(client, data):
    X, y = data
    with mercer.cluster(client), pytest.raises(ClusterError, match=r"KernelRidge\(approximation"):
        SVR("RBF(1.0)", approximation=Nystroem(n_components=10)).fit(X, y)


def test_what_runs_here_inside_a_cluster_is_not_refused(client, data):
    X, y = data
    with mercer.cluster(client) as cluster:
        with here():
            assert active() is None
            GaussianProcessClassifier("RBF(1.0)", optimizer=None).fit(X[:50], y[:50] > 0)
        assert active() is cluster


def test_ctrl_c_in_conjugate_gradients_keeps_the_best_and_leaves_the_cluster_clean(client, data, monkeypatch):
    X, y = data
    gather = client.gather
    asked = []

    def gather_or_stop(futures, **options):
        asked.append(futures)
        if len(asked) == 6:
            raise KeyboardInterrupt
        return gather(futures, **options)

    monkeypatch.setattr(client, "gather", gather_or_stop)
    with mercer.cluster(client), pytest.raises(Interrupted) as stopped:
        KernelRidge("RBF(0.5)", alpha=1e-3, solver="cg", tol=1e-12, random_state=0).fit(X, y)
    model = stopped.value.model
    assert model.certificate_.status == "interrupted"
    assert np.isfinite(model.dual_coef_).all() and np.any(model.dual_coef_)
    asked.clear()
    assert is_clean(client)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no SIGPIPE here")
def test_a_worker_that_hangs_up_does_not_end_the_command_as_a_reader_does():
    from mercer.cli.fit import computing_at

    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with computing_at("local:1", insecure=False):
            assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_the_command_line_fits_a_parquet_file_on_workers_of_its_own(data, tmp_path):
    import polars

    from mercer.cli.main import app

    X, y = data
    table = tmp_path / "big.parquet"
    polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_parquet(table)
    options = ["--target", "y", "--kernel", "RBF()", "--machine", "landmarks", "--memory", "1MiB"]
    options += ["--cluster", "local:1", "-o", str(tmp_path / "m.mercer"), "--no-report", "--quiet", "--json"]
    result = CliRunner().invoke(app, ["fit", str(table), *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["machine"] == "FalkonRegressor"
    assert mercer.load(tmp_path / "m.mercer").predict(X[:5, :2]).shape == (5,)
