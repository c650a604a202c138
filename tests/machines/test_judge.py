"""One judge for all machines: what is no kernel is said, with what was looked at, or refused."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from estimators_under_test import SUBJECTS
from estimators_under_test import X as ROWS
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
    theory,
    verify,
)
from mercer.errors import (
    InvalidKernelError,
    InvalidKernelWarning,
    MercerError,
    ParameterError,
    PrecisionWarning,
)
from mercer.gram import Precomputed
from mercer.kernels import Radial
from mercer.kernels.leaves.leaf import LEAVES, leaf
from mercer.kernels.proofs.proof import Fact
from mercer.machines.landmarks import falkon_fit
from mercer.theory import judge

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
    (KernelKMeans(NO_KERNEL, 2), None),
    (KernelPCA(NO_KERNEL, 2), None),
    (KernelCCA(NO_KERNEL, 1, kernel_y="RBF(1.0)", regularization=1.0), X[:, :1]),
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


# ── everything public that takes a kernel ───────────────────────────────────────────────────────────────────


def distance(x, z):
    """No kernel, with or without centring, and nowhere negative, so that a smoother takes it for a window."""
    return float(np.abs(np.subtract(x, z)).sum())


@leaf
class Declared(Radial):
    """The same distance in a class that states, without being asked for more, that it is a kernel."""

    because: ClassVar = Fact("a false statement", "its author says so")

    def value(self, s):
        return np.sqrt(s)

    def slope(self, s):
        return 0.5 / np.sqrt(s)


del LEAVES["Declared"]  # of this file alone

DISTANCE = mercer.Custom(distance)
# where a kernel need not be positive semi-definite there is a note without a warning
NEEDS_NO_KERNEL = {"NadarayaWatson", "RelevanceVectorClassifier", "RelevanceVectorRegressor"}
# what takes no kernel but something with a kernel inside it
OF_FEATURES = {"Perceptron": "it takes a finite map, and the products of a map are a kernel"}
ESTIMATORS = {type(s.make()).__name__: s for s in reversed(SUBJECTS)}
CLASSES = {n: getattr(mercer, n) for n in mercer.__all__ if inspect.isclass(getattr(mercer, n))}
PUBLIC = sorted(
    n
    for n, cls in CLASSES.items()
    if issubclass(cls, BaseEstimator) and not cls.__module__.startswith(("mercer.recipe", "mercer.conformal"))
)


def with_kernel(name, kernel, **more):
    subject = ESTIMATORS[name]
    if "kernels" in subject.make().get_params(deep=False):
        return subject.make(kernels=[kernel, "RBF(1.0)"], normalize=None, **more)
    return subject.make(kernel=kernel, **more)


# what is refused before it is judged, and why
NO_RULE = {"RandomFeatures": "features are drawn from a density or a series, and no rule gives one"}
RADIAL = {
    "FeatureMachineClassifier": "it takes one radial kernel, whose distances it learns",
    "FeatureMachineRegressor": "it takes one radial kernel, whose distances it learns",
}


@pytest.mark.parametrize("name", [n for n in PUBLIC if n not in OF_FEATURES])
def test_every_public_estimator_refuses_what_is_no_kernel_if_asked(name):
    if name in NO_RULE | RADIAL:
        with pytest.raises(ParameterError, match="no rule" if name in NO_RULE else "one radial kernel"):
            with_kernel(name, DISTANCE, strict=True).fit(ROWS, ESTIMATORS[name].y)
        return
    with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
        with_kernel(name, DISTANCE, strict=True).fit(ROWS, ESTIMATORS[name].y)


@pytest.mark.parametrize("name", [n for n in PUBLIC if n not in OF_FEATURES])
def test_every_public_estimator_says_of_what_is_no_kernel_that_it_is_none(name):
    model = with_kernel(name, DISTANCE)
    refused: MercerError | None = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(ROWS, ESTIMATORS[name].y)
        except MercerError as error:
            # as where landmarks show it: nothing is fitted
            refused = error
    warned = [str(w.message) for w in said if issubclass(w.category, InvalidKernelWarning)]
    if refused is not None:
        assert name in NO_RULE | RADIAL or "not positive semi-definite" in " ".join([str(refused), *warned])
    else:
        assert bool(warned) == (name not in NEEDS_NO_KERNEL)
        assert any("not positive semi-definite" in note for note in model.certificate_.notes)


@pytest.mark.parametrize("name", [n for n in PUBLIC if n not in OF_FEATURES])
def test_what_was_declared_is_looked_at_by_every_strict_estimator(name):
    k = Declared()
    assert k.validity().status == "declared"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = with_kernel(name, k)
        try:
            model.fit(ROWS, ESTIMATORS[name].y)
        except MercerError:
            model = None
    if model is not None:
        assert any("given what you declared" in note for note in model.certificate_.notes)
    words = "no rule" if name in NO_RULE else "not positive semi-definite"
    with pytest.raises(MercerError, match=words):
        with_kernel(name, k, strict=True).fit(ROWS, ESTIMATORS[name].y)


FUNCTIONS = {
    "mmd": lambda k, **more: theory.mmd(X[:20], X[20:], k, **more),
    "mmd_test": lambda k, **more: theory.mmd_test(X[:20], X[20:], k, n_permutations=9, **more),
    "hsic": lambda k, **more: theory.hsic(X, X[:, :1], k, "RBF(1.0)", **more),
    "hsic_test": lambda k, **more: theory.hsic_test(X, X[:, :1], "RBF(1.0)", k, n_permutations=9, **more),
    "alignment": lambda k, **more: theory.alignment(k, X, NUMBERS, **more),
}
JUDGES_ITSELF = {
    "mercer_integral": "its answer is whether the kernel is positive",
    "radius_of": "it reads k(x, x) alone",
}


def test_no_function_of_the_theory_that_takes_a_kernel_is_forgotten():
    found = set()
    for name in theory.__all__:
        value = getattr(theory, name)
        if inspect.isfunction(value) and "kernel" in inspect.signature(value).parameters:
            found.add(name)
    assert found - set(FUNCTIONS) == set(JUDGES_ITSELF)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tests_say_that_a_kernel_is_none_or_refuse_it(name):
    with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
        FUNCTIONS[name](DISTANCE, strict=True)
    with pytest.warns(InvalidKernelWarning, match="not positive semi-definite"):
        found = FUNCTIONS[name](DISTANCE)
    if isinstance(found, theory.KernelTest):
        assert any("not positive semi-definite" in note for note in found.notes)


@pytest.mark.parametrize("name", [*FUNCTIONS, "KernelPCA", "KernelKMeans", "KernelCCA"])
@pytest.mark.parametrize("k", ["Linear() - 5.0", "negative distance"])
def test_what_is_a_kernel_but_for_a_constant_is_one_where_a_constant_cancels(name, k):
    kernel = mercer.Custom(lambda x, z: -distance(x, z)) if "distance" in k else k
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name in FUNCTIONS:
            FUNCTIONS[name](kernel, strict=True)
            return
        model = with_kernel(name, kernel, strict=True).fit(ROWS, ESTIMATORS[name].y)
    assert any("it is one after centring" in note for note in model.certificate_.notes)


def in_large_numbers(x, z):
    """A kernel on few rows, and none on many: k(x, x) = 1, and -s(x) s(z) / 10 for others."""
    return 1.0 if np.array_equal(x, z) else -0.1 * float(np.sign(x[0]) * np.sign(z[0]))


NOT_ON_MANY = mercer.Custom(in_large_numbers)
UNDECIDED = mercer.Custom(lambda x, z: float(np.exp(-abs(x[0] - z[0]))))


@pytest.mark.parametrize(
    "machine",
    [SVC(), KernelRidge(), KernelPCA(n_components=2), KernelKMeans(n_clusters=2), KernelPerceptron()],
)
def test_a_machine_with_an_approximation_is_told_of_the_kernel_and_not_of_its_features(machine):
    y = NUMBERS if isinstance(machine, KernelRidge) else LABELS
    few = mercer.Nystroem(n_components=3, random_state=0)
    told = clone(machine).set_params(kernel=NOT_ON_MANY, approximation=few)
    with pytest.raises(InvalidKernelError, match="not positive semi-definite"):
        clone(told).set_params(strict=True).fit(X, y)
    with pytest.warns(InvalidKernelWarning, match="not positive semi-definite"):
        told.fit(X, y)
    assert any("no features reproduce it" in note for note in told.certificate_.notes)
    model = clone(machine).set_params(kernel=UNDECIDED, approximation=few).fit(X, y)
    assert any(f"on all {len(X)} rows it is one" in note for note in model.certificate_.notes)


def test_of_a_stream_the_sentence_says_how_many_rows_were_looked_at(monkeypatch):
    monkeypatch.setattr(falkon_fit, "POOL", 20)
    k = mercer.Custom(lambda x, z: float(np.exp(-abs(x[0] - z[0]))))
    model = mercer.FalkonRegressor(k, 4, random_state=0).fit(X, NUMBERS)
    assert any(f"on 20 of {len(X)} rows it is one" in note for note in model.certificate_.notes)


# of sum 0, so that centring does not take it away
SIGNS = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
INDEFINITE = np.eye(len(X)) - 1.5 * np.outer(SIGNS, SIGNS) / len(X)
OTHER = {
    "given": ("precomputed", INDEFINITE),
    "written": (DISTANCE, X),
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
    # functions whose steps cannot be read
    sinh = np.vectorize(math.sinh)
    k = Dot(lambda t: sinh(t), taylor=odd)
    assert k.validity().status == "declared"
    model = SVC(k).fit(0.1 * X, LABELS)
    assert any("given what you declared" in note for note in model.certificate_.notes)
    strict = SVC(k, strict=True).fit(0.1 * X, LABELS)
    assert any(f"on all {len(X)} rows it is one" in note for note in strict.certificate_.notes)
    false = Dot(lambda t: sinh(t) - 2 * t, taylor=odd)
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
