"""Around the arithmetic of a small fit nothing is asked twice, or asked where the answer is known."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import mercer
from mercer import vectors
from mercer.errors import MagnitudeError, NotFiniteError
from mercer.gram import met_features
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import Leaf
from mercer.solve.operator import relative
from mercer.solve.plan import FEW_ROWS, in_features, too_few_for_features

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
t = np.sin(X[:, 0]) + 0.3 * X[:, 1]
y = (t > 0).astype(int)

MACHINES = {
    "SVC": (lambda: mercer.SVC(mercer.RBF(1.0)), y),
    "SVR": (lambda: mercer.SVR(mercer.RBF(1.0)), t),
    "KernelRidge": (lambda: mercer.KernelRidge(mercer.RBF(1.0)), t),
    "GaussianProcessRegressor": (
        lambda: mercer.GaussianProcessRegressor(mercer.RBF(1.0), noise=0.1, optimizer=None),
        t,
    ),
}
each_machine = pytest.mark.parametrize("name", MACHINES)


def counted(monkeypatch, owner, name):
    """How often a function is called, from now on."""
    calls = []
    plain = getattr(owner, name)

    def counting(*args, **options):
        calls.append(args)
        return plain(*args, **options)

    monkeypatch.setattr(owner, name, counting)
    return calls


@pytest.mark.parametrize("kernel", ["Linear()", "Polynomial(2)", "RBF(1.0)"])
def test_a_margin_machine_on_few_rows_looks_for_no_feature_map(monkeypatch, kernel):
    asked = counted(monkeypatch, Kernel, "features")
    model = mercer.SVC(kernel).fit(X, y)
    assert model.solver_ == "working-set" and asked == []


def test_few_rows_are_those_on_which_no_features_pay():
    assert too_few_for_features(FEW_ROWS) and not too_few_for_features(FEW_ROWS + 1)
    assert not in_features(FEW_ROWS, 1, FEW_ROWS, entry=1e9, memory=2**40)
    assert in_features(FEW_ROWS + 1, 1, FEW_ROWS + 1, entry=1e9, memory=2**40)


@each_machine
def test_new_rows_are_looked_through_once(monkeypatch, name):
    make, targets = MACHINES[name]
    model = make().fit(X, targets)
    seen = counted(monkeypatch, vectors, "_check_values")
    new = X[:7] + 0.5
    model.predict(new)
    assert sum(np.shares_memory(args[0], new) for args in seen) == 1


@each_machine
def test_new_rows_that_are_no_numbers_are_still_refused(name):
    make, targets = MACHINES[name]
    model = make().fit(X, targets)
    bad = X[:7].copy()
    bad[3, 1] = np.nan
    with pytest.raises(NotFiniteError, match="row 3, column 1"):
        model.predict(bad)
    bad[3, 1] = 1e200
    with pytest.raises(MagnitudeError, match="column 1"):
        model.predict(bad)
    with pytest.raises(MagnitudeError, match="column 1"):
        make().fit(np.r_[X[:23], bad], targets)


@each_machine
def test_a_machine_that_is_not_fitted_says_so_in_the_words_of_scikit_learn(name):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        MACHINES[name][0]().predict(X)


@each_machine
def test_a_prediction_looks_for_no_features_of_things_where_a_kernel_reads_numbers(monkeypatch, name):
    make, targets = MACHINES[name]
    model = make().fit(X, targets)
    maps = counted(monkeypatch, Kernel, "sparse_map")
    keys = counted(monkeypatch, Kernel, "key")
    splits = counted(monkeypatch, met_features, "split_noise")
    model.predict(X[:7] + 0.5)
    assert maps == [] and keys == [] and splits == []


@each_machine
def test_a_fit_writes_no_sentence_of_a_proof(monkeypatch, name):
    make, targets = MACHINES[name]
    told = counted(monkeypatch, Leaf, "kept_domains")
    make().fit(X, targets)
    assert told == []
    proof = mercer.RBF([1.0, 2.0]).proof()
    assert proof is not None and told == []
    assert proof.conditions == ("lengthscale = [1.0, 2.0] > 0",) and len(told) == 1


def test_a_fit_asks_once_whether_its_kernel_is_open(monkeypatch):
    asked = counted(monkeypatch, mercer.RBF, "leaves_open")
    mercer.SVC("RBF()").fit(X, y)
    assert len(asked) == 1


def test_relative_residuals_are_the_quotients_of_norms():
    R = rng.normal(size=(40, 3))
    B = np.c_[rng.normal(size=(40, 2)), np.zeros(40)]
    expected = [np.linalg.norm(R[:, j]) / (np.linalg.norm(B[:, j]) or 1.0) for j in range(3)]
    np.testing.assert_allclose(relative(R, B), expected, rtol=1e-14)
