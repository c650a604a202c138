"""Clusters for the tests: in this process where nobody is killed, else workers in processes of their own."""

import time

import pytest

distributed = pytest.importorskip("distributed", reason="the extra mercer[dask] is not installed")


def started(workers, *, processes=False, **options):
    """A LocalCluster of so many workers with one thread each, without a dashboard."""
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        dashboard_address="127.0.0.1:0",
        **options,
    )


@pytest.fixture(scope="module")
def client():
    """A client of two workers in this process."""
    with started(2) as cluster, distributed.Client(cluster) as client:
        yield client


def is_clean(client, seconds=10.0):
    """Whether client and scheduler forget every future: the word of a release takes a moment to arrive."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not client.futures and not client.run_on_scheduler(count_tasks):
            return True
        time.sleep(0.01)
    return False


def count_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)
