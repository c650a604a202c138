"""`verify` on the twins of scikit-learn: every number they publish is tied to the data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF as PeerRBF
from sklearn.gaussian_process.kernels import WhiteKernel

from estimators_under_test import LABELS, NUMBERS, THREE, X
from mercer import RBF, verify
from mercer.sklearn import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from tampering import changes, numbers_of, tampered

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = np.array(["b", "a", "c"])
WEIGHTS = np.random.default_rng(5).integers(0, 3, size=24).astype(float)
K = RBF(1.5)(X)
PEER = PeerRBF(1.5) + WhiteKernel(0.1)
TWINS = {
    "SVC": (SVC(), X, NAMES[LABELS], None),
    "SVC, three classes": (SVC(class_weight="balanced"), X, NAMES[THREE], WEIGHTS),
    "SVC, linear, sparse": (SVC(kernel="linear"), sparse.csr_array(X), LABELS, None),
    "SVC, precomputed": (SVC(kernel="precomputed"), K, LABELS, WEIGHTS),
    "SVC, a function": (SVC(kernel=RBF(1.5)), X, LABELS, None),
    "SVC, sigmoid": (SVC(kernel="sigmoid"), X, LABELS, None),
    "SVC, ended early": (SVC(C=1000.0, max_iter=2), X, LABELS, None),
    "SVC, probabilities": (SVC(probability=True, random_state=0), X, LABELS, None),
    "NuSVC": (NuSVC(nu=0.3), X, LABELS, None),
    "SVR": (SVR(), X, NUMBERS, WEIGHTS),
    "NuSVR": (NuSVR(), X, NUMBERS, None),
    "OneClassSVM": (OneClassSVM(nu=0.3), X, None, None),
    "KernelRidge": (KernelRidge(kernel="rbf"), X, np.c_[NUMBERS, X[:, 0]], WEIGHTS),
    "KernelRidge, precomputed": (KernelRidge(kernel="precomputed"), K, NUMBERS, None),
    "KernelRidge, singular": (KernelRidge(0.0), X, NUMBERS, None),
    "GaussianProcessRegressor": (GaussianProcessRegressor(PEER, normalize_y=True), X, NUMBERS, None),
    "GaussianProcessRegressor, two targets": (
        GaussianProcessRegressor(PEER, optimizer=None),
        X,
        np.c_[NUMBERS, X[:, 0]],
        None,
    ),
    "GaussianProcessClassifier": (GaussianProcessClassifier(PeerRBF(1.5)), X, NAMES[LABELS], None),
    "GaussianProcessClassifier, three": (
        GaussianProcessClassifier(PeerRBF(1.5), optimizer=None),
        X[:12],
        NAMES[THREE[:12]],
        None,
    ),
    "KernelPCA": (KernelPCA(3, kernel="rbf", fit_inverse_transform=True, alpha=0.1), X, None, None),
    "KernelPCA, all": (KernelPCA(), X, None, None),
    "KernelPCA, precomputed": (KernelPCA(2, kernel="precomputed"), K, None, None),
}


def fitted(name):
    twin, rows, y, weights = TWINS[name]
    model = twin.fit(rows, y) if weights is None else twin.fit(rows, y, sample_weight=weights)
    return model, (rows, y, weights)


@pytest.mark.parametrize("name", TWINS)
def test_every_number_of_a_twin_changed_by_one_per_cent_is_noticed(name):
    model, data = fitted(name)
    found = verify(model, *data)
    assert found, str(found)
    assert found.asked > 0 and found.certificates
    assert verify(pickle.loads(pickle.dumps(model)), *data)
    rng = np.random.default_rng(0)
    missed = []
    for path, leaf in numbers_of(model):
        if "estimators_" in path and path[2] > 0:
            # all problems are examined alike
            continue
        for value in changes(path, leaf, rng):
            try:
                found = bool(verify(tampered(model, path, value), *data))
            except Exception:
                found = False
            if found:
                missed.append(".".join(map(str, path)))
    assert missed == []


PARAMETERS = {
    "C": ("SVC", 1.01),
    "gamma": ("SVC", 0.3),
    "nu": ("NuSVC", 0.31),
    "epsilon": ("SVR", 0.11),
    "alpha": ("KernelRidge", 1.01),
    "alpha of": ("GaussianProcessRegressor", 0.01),
    "n_components": ("KernelPCA", 2),
    "kernel": ("KernelPCA", "linear"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_of_a_twin_changed_after_fit_is_noticed(name):
    which, value = PARAMETERS[name]
    model, data = fitted(which)
    setattr(model, name.split()[0], value)
    assert not verify(model, *data)


def test_one_against_one_is_verified_problem_by_problem():
    model = GaussianProcessClassifier(optimizer=None, multi_class="one_vs_one").fit(X, THREE)
    assert verify(model, X, THREE), str(verify(model, X, THREE))
    model.base_estimator_.estimators_[2].pi_[3] *= 1.01
    assert not verify(model, X, THREE)


def test_the_parameters_that_a_search_found_are_tied_to_the_rest():
    model, data = fitted("GaussianProcessRegressor")
    model.kernel_.theta = model.kernel_.theta + 0.01
    assert not verify(model, *data)
    model, data = fitted("GaussianProcessClassifier")
    model.base_estimator_.kernel_.theta = model.base_estimator_.kernel_.theta + 0.01
    assert not verify(model, *data)
