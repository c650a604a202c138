"""Landmarks on a cluster: one pass is one task for each block, and the rows stay where they are."""

import numpy as np
import pytest

import mercer
from clusters import distributed, is_clean, started
from mercer import Batches, FalkonClassifier, FalkonRegressor, KernelRidge
from mercer.errors import ClusterError, NotFiniteError

array = pytest.importorskip("dask.array", reason="the extra mercer[dask] is not installed")

ROWS = 1500


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((ROWS, 3))
    y = np.sin(2 * X).sum(axis=1) + 0.1 * rng.standard_normal(ROWS)
    return X, y


def regressor(**options):
    return FalkonRegressor("RBF(1.5)", n_landmarks=20, alpha=1.0, random_state=0, **options)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_falkon_is_the_same_as_here_with_weights(client, data, solver):
    X, y = data
    w = np.arange(ROWS) % 3 * 1.0
    local = regressor(solver=solver, tol=1e-12).fit(X, y, w)
    with mercer.cluster(client):
        model = regressor(solver=solver, tol=1e-12).fit(X, y, w)
        assert mercer.verify(model, X, y, w)
    assert np.array_equal(model.landmarks_, local.landmarks_)
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=0, atol=1e-8)


def test_alpha_is_chosen_by_the_same_sums(client, data):
    X, y = data
    options = {"n_landmarks": 60, "random_state": 0}
    local = FalkonRegressor("RBF(1.5)", **options).fit(X, y)
    with mercer.cluster(client):
        model = FalkonRegressor("RBF(1.5)", **options).fit(X, y)
    assert model.alpha_ == pytest.approx(local.alpha_, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_classes_are_the_same_as_here(client, data, classes):
    X, y = data
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    options = {"n_landmarks": 15, "alpha": 1.0, "random_state": 0, "tol": 1e-6}
    local = FalkonClassifier("RBF(1.5)", **options).fit(X, labels)
    with mercer.cluster(client):
        model = FalkonClassifier("RBF(1.5)", **options).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), local.predict_proba(X), rtol=0, atol=1e-4)


def test_the_number_of_workers_changes_no_bit(client, data):
    X, y = data
    with mercer.cluster(client):
        two = regressor().fit(X, y)
    with started(3) as cluster, distributed.Client(cluster) as other, mercer.cluster(other):
        three = regressor().fit(X, y)
    assert np.array_equal(two.coef_, three.coef_)


def test_a_dask_array_is_fitted_where_it_is_and_never_comes_here(client, data, monkeypatch):
    X, y = data
    with mercer.cluster(client):
        expected = regressor().fit(X, y)
    lazy = array.from_array(X, chunks=(400, 2))
    monkeypatch.setattr(type(lazy), "compute", lambda self, **options: pytest.fail("the rows came here"))
    model = regressor().fit(lazy, y)
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.n_features_in_ == 3
    del lazy
    assert is_clean(client)


def test_a_dask_array_is_the_same_as_its_rows_for_a_machine_that_keeps_them(client, data):
    X, y = data
    with mercer.cluster(client):
        expected = KernelRidge("RBF(1.0)", alpha=0.5, solver="cg", random_state=0).fit(X, y)
    model = KernelRidge("RBF(1.0)", alpha=0.5, solver="cg", random_state=0).fit(
        array.from_array(X, chunks=(400, 3)), array.from_array(y, chunks=500)
    )
    assert np.array_equal(model.dual_coef_, expected.dual_coef_)
    assert np.array_equal(model.X_fit_, X)


def test_a_dask_frame_brings_the_names_of_its_columns(client, data):
    frames = pytest.importorskip("dask.dataframe", reason="frames need pandas")
    import pandas

    X, y = data
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    with mercer.cluster(client):
        expected = regressor().fit(table, y)
    model = regressor().fit(frames.from_pandas(table, npartitions=4), y)
    assert np.array_equal(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_what_goes_to_each_block_of_many_rows_is_sent_beside_the_graph(client, data, monkeypatch):
    X, y = data
    with mercer.cluster(client):
        few = regressor().fit(X, y)
        monkeypatch.setattr("mercer.gram.cluster.MANY_ROWS", 100)
        many = regressor().fit(X, y)
    assert np.array_equal(few.coef_, many.coef_)


def test_what_is_wrong_with_a_block_is_said_by_the_fit(client, data):
    X, y = data
    bad = X.copy()
    bad[700, 1] = np.nan
    with pytest.raises(NotFiniteError, match="NaN"):
        regressor().fit(array.from_array(bad, chunks=(400, 3)), y)


def test_a_parquet_file_is_read_by_the_workers_row_group_by_row_group(client, data, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow reads Parquet files")
    from pyarrow import parquet

    X, y = data
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    parquet.write_table(table, path, row_group_size=333)
    with mercer.cluster(client):
        expected = regressor().fit(X, y)
        model = regressor().fit(Batches.parquet(path, "y"))
    assert np.array_equal(model.coef_, expected.coef_)


def test_batches_of_this_process_are_refused(client, data):
    X, y = data
    with mercer.cluster(client), pytest.raises(ClusterError, match=r"Batches\.parquet"):
        regressor().fit(Batches(lambda: iter([(X, y)])))
