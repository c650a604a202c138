"""One judge for all machines: what is no kernel is said, with what was looked at, or refused."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import (
    RBF,
    SVC,
    SVR,
    Adatron,
    Dot,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLeastSquares,
    KernelMachine,
    KernelMeanEmbedding,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    MultipleKernelClassifier,
    NuSVC,
    OneClassSVM,
    RelevanceVectorRegressor,
    verify,
)
from mercer.errors import InvalidKernelError, InvalidKernelWarning, PrecisionWarning
from mercer.gram import Precomputed
from mercer.machines import judge

X = np.random.default_rng(0).normal(size=(40, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
NUMBERS = np.sin(X[:, 0])
NO_KERNEL = "Sigmoid(1.0)"
MACHINES = [
    (SVC(NO_KERNEL), LABELS),
    (NuSVC(NO_KERNEL, nu=0.2), LABELS),
    (SVR(NO_KERNEL), NUMBERS),
    (OneClassSVM(NO_KERNEL), None),
    (KernelPerceptron(NO_KERNEL), LABELS),
    (Adatron(NO_KERNEL, 1.0, step=0.1, max_iter=20), LABELS),
    (KernelRidge(NO_KERNEL, 100.0), NUMBERS),
    (KernelLeastSquares(NO_KERNEL, max_iter=5), NUMBERS),
    (KernelMachine(NO_KERNEL, "squared", 100.0), NUMBERS),
    (GaussianProcessRegressor(NO_KERNEL, noise=100.0, optimizer=None), NUMBERS),
    (GaussianProcessClassifier("0.01*Sigmoid(1.0)", optimizer=None), LABELS),
    (KernelKMeans(2, NO_KERNEL), None),
    (KernelPCA(2, NO_KERNEL), None),
    (KernelCCA(1, NO_KERNEL, "RBF(1.0)", regularization=1.0), X[:, :1]),
    (KernelMeanEmbedding(NO_KERNEL), None),
    (MultipleKernelClassifier([NO_KERNEL, "RBF(1.0)"], p=2.0), LABELS),
]


@pytest.mark.parametrize(("machine", "y"), MACHINES, ids=lambda v: type(v).__name__)
def test_every_machine_says_that_its_kernel_is_none(machine, y):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = machine.fit(X, y)
    assert any(issubclass(w.category, InvalidKernelWarning) for w in said)
    assert any("not positive semi-definite" in note for note in model.certificate_.notes)


# of sum 0, so that centring does not take it away
SIGNS = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
INDEFINITE = np.eye(len(X)) - 1.5 * np.outer(SIGNS, SIGNS) / len(X)
OTHER = {
    "given": ("precomputed", INDEFINITE),
    "written": (mercer.Custom(lambda x, z: float(1 - abs(x[0] - z[0]))), X),
}


@pytest.mark.parametrize("other", OTHER)
@pytest.mark.parametrize(("machine", "y"), MACHINES, ids=lambda v: type(v).__name__)
def test_every_machine_refuses_what_is_no_kernel_if_asked(machine, y, other):
    strict = clone(machine).set_params(strict=True)
    with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
        strict.fit(X, y)
    if isinstance(machine, MultipleKernelClassifier | KernelCCA):
        return
    kernel, rows = OTHER[other]
    with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
        strict.set_params(kernel=kernel).fit(rows, y)


def test_a_relevance_vector_machine_takes_any_basis_and_says_so():
    with pytest.warns(ConvergenceWarning):
        model = RelevanceVectorRegressor(NO_KERNEL, max_iter=3).fit(X, NUMBERS)
    assert any("takes any basis" in note for note in model.certificate_.notes)


def with_a_bad_corner(n):
    """The identity, but for every other row, among which there is a negative eigenvalue."""
    out = np.setdiff1d(np.arange(n), np.linspace(0, n - 1, n // 2).astype(int))
    B = 0.6 * np.random.default_rng(0).normal(size=(len(out), len(out)))
    B = B + B.T
    np.fill_diagonal(B, 1)
    K = np.eye(n)
    K[np.ix_(out, out)] = B
    return K


@pytest.mark.parametrize("n", [60, 450])
def test_strict_looks_at_every_row_of_a_given_matrix(n):
    K = with_a_bad_corner(n)
    lowest = np.linalg.eigvalsh(K)[0]
    with pytest.raises(InvalidKernelError, match=f"on all {n} rows it has a negative eigenvalue") as refused:
        SVC("precomputed", strict=True).fit(K, np.where(np.arange(n) % 4 < 2, 1, -1))
    said = float(str(refused.value).split("lowest eigenvalue is ")[1].split()[0])
    assert said == pytest.approx(lowest, rel=1e-5)


def test_beyond_the_rows_of_a_factor_lanczos_finds_the_eigenvalue(monkeypatch):
    monkeypatch.setattr(judge, "EXACT_ROWS", 50)
    K = with_a_bad_corner(120)
    verdict = None
    with pytest.warns(InvalidKernelWarning, match="by Lanczos's method"):
        verdict = judge.judge_on_rows(None, Precomputed(K), np.arange(120), 120, lost="Lost.", note="note")
    rows, q = verdict.witness
    assert q @ K[np.ix_(rows, rows)] @ q == pytest.approx(np.linalg.eigvalsh(K)[0], rel=1e-6)
    good = RBF(1.0)(np.random.default_rng(1).normal(size=(120, 2)))
    assert judge.judge_on_rows(None, Precomputed(good), np.arange(120), 120, lost="", note="").valid


@pytest.mark.parametrize("n", [50, 420])
@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_is_the_sign_of_the_smallest_eigenvalue(n, seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, n // 2))
    K = F @ F.T
    if seed % 2:
        v = rng.normal(size=n)
        K -= 1e-6 * np.trace(K) * np.outer(v, v) / (v @ v)
    values = np.linalg.eigvalsh(K)
    negative = values[0] < -1e-9 * values[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = judge.judge_on_rows(None, Precomputed(K), np.arange(n), n, lost="", note="")
    assert verdict.valid == (not negative)


def odd(n):
    return n % 2 / math.factorial(n)


def test_what_was_declared_is_no_proof_for_strict():
    k = Dot(lambda t: np.sinh(t), taylor=odd)
    assert k.validity().status == "declared"
    model = SVC(k).fit(0.1 * X, LABELS)
    assert any("given what you declared" in note for note in model.certificate_.notes)
    strict = SVC(k, strict=True).fit(0.1 * X, LABELS)
    assert any(f"on all {len(X)} rows it is one" in note for note in strict.certificate_.notes)
    false = Dot(lambda t: np.sinh(t) - 2 * t, taylor=odd)
    if false.validity().status == "declared":
        with pytest.raises(InvalidKernelError, match=f"on all {len(X)} rows"):
            SVC(false, strict=True).fit(0.1 * X, LABELS)


def test_the_search_for_a_witness_is_made_once_for_a_kernel():
    calls = []

    def alike(x, z):
        calls.append(1)
        return float(np.exp(-abs(x[0] - z[0])))

    k = mercer.Custom(alike)
    judge.refutation(k, 1)
    first = len(calls)
    judge.refutation(k, 1)
    assert len(calls) == first
    SVC(k).fit(X[:20, :1], LABELS[:20])
    after = len(calls)
    SVC(k).fit(X[:21, :1], LABELS[:21])
    assert len(calls) - after < 10 * 21**2


@pytest.mark.parametrize("alpha", [0.5, 5.0, 100.0])
def test_an_invalid_kernel_leaves_no_empty_machine_that_calls_itself_converged(alpha):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelMachine(NO_KERNEL, "logistic", alpha).fit(X, LABELS)
    found = verify(model, X, LABELS)
    assert found, str(found)
    assert found.quality.status == model.certificate_.status
    if alpha < 1:
        assert model.certificate_.status == "failed"
        assert any("no minimum" in note for note in model.certificate_.notes)
        assert np.ptp(model.decision_function(X)) == 0
    assert model.certificate_.status != "converged" or model.certificate_.residual < 1e-6


def test_negative_variances_are_counted_and_not_hidden():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(InvalidKernelWarning):
        model = GaussianProcessRegressor(NO_KERNEL, noise=30.0, optimizer=None).fit(rows, np.sin(rows[:, 0]))
    new = 3 * np.random.default_rng(2).normal(size=(50, 3))
    with pytest.warns(PrecisionWarning, match=r"the variance of \d+ of 50 rows came out negative") as said:
        model.predict(new, return_std=True)
    count = int(str(said[0].message).split("variance of ")[1].split()[0])
    assert count > 0
