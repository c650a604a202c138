"""The drop-in twins against the originals, and patching."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import sklearn.svm as peer
from sklearn.base import clone
from sklearn.datasets import load_iris

import mercer.sklearn as twin

NAMES = ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_defaults_are_the_same(name):
    ours, theirs = getattr(twin, name), getattr(peer, name)
    assert ours().get_params() == theirs().get_params()
    given = [
        {(p.name, p.kind) for p in inspect.signature(kind).parameters.values()} for kind in (ours, theirs)
    ]
    assert given[0] == given[1]


@pytest.mark.filterwarnings("ignore::mercer.errors.InvalidKernelWarning")  # of the sigmoid
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "kernel",
    ["linear", "rbf", "poly", "sigmoid", lambda A, B: A @ B.T],
    ids=["linear", "rbf", "poly", "sigmoid", "callable"],
)
def test_values_and_attributes_are_the_same(name, kernel):
    X, y = load_iris(return_X_y=True)
    X = X[:, :3]
    if name.endswith("R"):
        y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(150)
    make = {"kernel": kernel, "tol": 1e-8} | ({"C": 0.7} if name in ("SVC", "SVR") else {})
    if kernel == "sigmoid":
        make |= {"gamma": 0.01}
    ours = getattr(twin, name)(**make).fit(X, y)
    theirs = getattr(peer, name)(**make).fit(X, y)
    values = "predict" if name.endswith("R") else "decision_function"
    np.testing.assert_allclose(getattr(ours, values)(X), getattr(theirs, values)(X), rtol=1e-4, atol=5e-3)
    for attribute in ("support_", "dual_coef_", "intercept_", "n_support_", "support_vectors_"):
        assert getattr(ours, attribute).ndim == getattr(theirs, attribute).ndim
        assert getattr(ours, attribute).dtype == getattr(theirs, attribute).dtype
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)  # its cache of K is float32
    assert clone(ours).get_params() == ours.get_params()


def test_patching_swaps_the_names_and_back():
    original = peer.SVC
    try:
        twin.patch()
        assert peer.SVC is twin.SVC and sys.modules["sklearn.svm"].OneClassSVM is twin.OneClassSVM
    finally:
        twin.unpatch()
    assert peer.SVC is original


def test_a_script_runs_patched_and_untouched(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom sklearn.svm import SVC\n"
        "print(SVC.__module__, SVC().fit([[0.0], [1.0]], [0, 1]).predict([[0.9]])[0], sys.argv[1:])\n"
    )
    run = [sys.executable, "-m", "mercer.sklearn", str(script), "a", "b"]
    out = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert out.strip() == "mercer.sklearn.svm 1 ['a', 'b']"
