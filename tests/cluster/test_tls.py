"""A cluster whose scheduler and workers speak TLS: what its certificates allow, and who is kept out."""

import numpy as np
import pytest

import mercer
from clusters import distributed, is_clean, started
from mercer import FalkonRegressor, KernelRidge
from mercer.errors import ClusterError

ROWS = 1100


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((ROWS, 3))
    return X, np.sin(X).sum(axis=1)


@pytest.fixture(scope="module")
def certificates():
    pytest.importorskip("cryptography", reason="the extra mercer[dask] is not installed")
    return distributed.Security.temporary()


@pytest.fixture(scope="module")
def guarded(certificates):
    """Two workers in processes of their own, which listen with certificates and on no other port."""
    with started(2, processes=True, security=certificates, protocol="tls://", host="127.0.0.1") as cluster:
        yield cluster


def fitted(X, y):
    return (
        KernelRidge("RBF(1.0)", alpha=0.5, solver="cg", random_state=0).fit(X, y).dual_coef_,
        FalkonRegressor("RBF(1.0)", n_landmarks=20, alpha=1.0, random_state=0).fit(X, y).coef_,
    )


def test_a_fit_over_tls_has_the_bits_of_one_without(guarded, certificates, client, data, monkeypatch):
    with mercer.cluster(client):
        expected = fitted(*data)
    # so that it is TLS that makes them acceptable, and not the interface that they listen on
    monkeypatch.setattr("mercer.gram.cluster.is_loopback", lambda host: False)
    with distributed.Client(guarded, security=certificates) as safe:
        known = safe.scheduler_info(n_workers=-1)
        addresses = [known["address"], *known["workers"]]
        assert len(addresses) == 3
        assert all(address.startswith("tls://") for address in addresses)
        with mercer.cluster(safe):
            found = fitted(*data)
        assert is_clean(safe)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("scheme", "said"), [("tls", "asks for certificates"), ("tcp", "no Dask scheduler")])
def test_whoever_has_no_certificate_is_not_let_in(guarded, scheme, said):
    address = guarded.scheduler_address.replace("tls", scheme)
    with pytest.raises(ClusterError, match=said), mercer.cluster(address):
        pass
