"""Kernels that are 0 or the same everywhere: nothing can be learned, and the certificates are true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, verify

MACHINES = [
    SVC(C=2.0),
    NuSVC(nu=0.3),
    SVR(C=3.0, epsilon=0.2),
    NuSVR(nu=0.4),
    OneClassSVM(nu=0.5),
    SVDD(nu=0.5),
]
FLAT = {
    "zero": ("0.0*RBF(1.0)", lambda X: X),
    "zero rows": ("Linear()", np.zeros_like),
    "one": ("Constant(1.0)", lambda X: X),
    "large": ("Constant(1e6)", lambda X: X),
    "small": ("Constant(1e-6)", lambda X: X),
    "all alike": ("RBF(1e9)", lambda X: X),
    "a matrix of zeros": ("precomputed", lambda X: np.zeros((len(X), len(X)))),
    "a matrix of ones": ("precomputed", lambda X: np.ones((len(X), len(X)))),
}


def drawn(seed):
    """Rows, labels of two or three classes, numbers, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    X = rng.normal(size=(n, 2)).round(int(rng.integers(0, 3)))
    labels = np.arange(n) % (2 + seed % 2)
    return X, rng.permutation(labels), rng.normal(size=n).round(1), rng.integers(0, 4, n).astype(float)


def fitted(machine, X, y, weights=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_the_certificate_is_what_verify_finds(machine, kind):
    """ν-classification claimed a gap of 0, and verify found 10: it took a margin of 0 for one of 1."""
    kernel, rows = FLAT[kind]
    for seed in range(2):
        X, labels, numbers, weights = drawn(seed)
        y = labels if isinstance(machine, SVC | NuSVC) else numbers
        for w in (None, weights):
            model = fitted(clone(machine).set_params(kernel=kernel), rows(X), y, w)
            found = verify(model, rows(X), y, sample_weight=w)
            assert found.ok, str(found)
            assert model.certificate_.converged


def test_what_is_optimal_by_hand():
    X = np.zeros((20, 1))
    labels = np.array([0] * 7 + [1] * 13)
    # f = b = 1: of each row of the smaller class max(0, 1 + 1) is lost, C times
    assert fitted(SVC("Constant(1.0)", C=2.0), X, labels).certificate_.primal == pytest.approx(2 * 2 * 7)
    # w = 0, b = 0, ρ = 0
    nothing = fitted(NuSVC("0.0*RBF(1.0)", nu=0.3), X, labels).certificate_
    assert (nothing.primal, nothing.dual, nothing.gap) == (0.0, 0.0, 0.0)
    # ½a² - ν n a with f = a everywhere: a = ν n
    assert fitted(OneClassSVM("Constant(1.0)", nu=0.5), X, None).certificate_.primal == pytest.approx(-50)
    # the best constant, looked for at every place where the loss can turn
    y = np.random.default_rng(0).normal(size=20)
    places = np.concatenate([y - 0.2, y + 0.2])
    best = min(np.maximum(np.abs(y - b) - 0.2, 0).sum() for b in places)
    assert fitted(SVR("0.0*RBF(1.0)", C=3.0, epsilon=0.2), X, y).certificate_.primal == pytest.approx(
        3 * best
    )


def test_a_lie_about_a_flat_kernel_is_found():
    X, labels, _, _ = drawn(0)
    model = fitted(NuSVC("Constant(1.0)", nu=0.3), X, labels)
    model.intercept_ = model.intercept_ + 0.1
    assert not verify(model, X, labels).ok
