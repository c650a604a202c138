"""`verify` is not fooled: whatever number of a fitted model is changed, and whatever the machine."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import mercer
from estimators_under_test import LABELS, NUMBERS, SUBJECTS, THREE, X
from mercer import (
    RBF,
    SVC,
    SVDD,
    SVR,
    Adatron,
    FalkonClassifier,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelKMeans,
    KernelLeastSquares,
    KernelMachine,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    RandomFeatures,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    verify,
)
from mercer.errors import MercerError, ParameterError
from tampering import missed, noticed

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOME = Nystroem(n_components=8, random_state=0)
DRAWN = RandomFeatures(n_components=12, random_state=3)
WEIGHTS = np.random.default_rng(5).integers(0, 3, size=24).astype(float)
K = RBF(1.5)(X)
K.setflags(write=False)
ROWS = sparse.csr_array(X)


def seeded(subject):
    has = "random_state" in subject.make().get_params(deep=False)
    return subject.fit(random_state=0) if has else subject.fit()


# ── the law ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_every_fitted_number_changed_by_one_per_cent_is_noticed(subject):
    model = seeded(subject)
    found = verify(model, X, subject.y)
    assert found and found.asked > 0, str(found)
    assert verify(pickle.loads(pickle.dumps(model)), X, subject.y)
    assert missed(model, X, subject.y) == []


FIRST = {s.build: s for s in reversed(SUBJECTS)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("subject", FIRST.values(), ids=lambda s: s.name)
def test_a_machine_as_it_comes_verifies_on_columns_with_units(subject):
    """Nothing is given but what must be: open lengthscales,
    scales of the data and automatic choices are followed too.
    """
    needed = [
        p.name
        for p in signature(subject.build).parameters.values()
        if p.default is p.empty and p.name != "self"
    ]
    model = subject.build(**{name: subject.settings[name] for name in needed if name in subject.settings})
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    rows = X * 10.0 ** np.arange(-1, X.shape[1] - 1) + 5.0
    y = 1e3 * subject.y + 7e4 if subject.target == "numbers" else subject.y
    found = verify(model.fit(rows, y), rows, y)
    assert found, str(found)


OTHERS = {
    "SVC on landmarks": (SVC("RBF(1.5)", approximation=SOME), X, LABELS, None),
    "SVC on landmarks, three classes": (SVC("RBF(1.5)", approximation=SOME), X, THREE, None),
    "SVC on random features": (SVC("RBF(1.5)", approximation=DRAWN), X, LABELS, None),
    "SVC, balanced": (SVC("RBF()", class_weight="balanced"), X, LABELS, WEIGHTS),
    "SVC, probabilities of three": (SVC("RBF()", probability=True, random_state=0), X, THREE, None),
    "SVC, precomputed": (SVC("precomputed"), K, THREE, WEIGHTS),
    "SVC, sparse": (SVC("RBF(1.5)"), ROWS, LABELS, WEIGHTS),
    "NuSVC on landmarks": (NuSVC("RBF(1.5)", nu=0.3, approximation=SOME), X, LABELS, None),
    "NuSVR, weights": (NuSVR("RBF(1.5)", nu=0.2), X, NUMBERS, WEIGHTS),
    "OneClassSVM, weights": (OneClassSVM("RBF(1.5)", approximation=SOME), X, None, WEIGHTS),
    "SVDD on landmarks": (SVDD("RBF(1.5)", approximation=SOME), X, None, None),
    "SVR that stopped early": (SVR("RBF(1.0)", C=1000.0, max_iter=3), X, NUMBERS, None),
    "KernelMachine on landmarks": (
        KernelMachine("RBF(1.5)", "logistic", approximation=SOME),
        X,
        THREE,
        WEIGHTS,
    ),
    "KernelMachine, levels": (
        KernelMachine("precomputed", "quantile", quantiles=(0.2, 0.5, 0.9)),
        K,
        NUMBERS,
        WEIGHTS,
    ),
    "KernelRidge, weights": (KernelRidge("RBF(1.5)", 0.1, fit_intercept=True), ROWS, NUMBERS, WEIGHTS),
    "KernelRidge, primal": (KernelRidge("Polynomial(2)", 0.1), X, np.c_[NUMBERS, X[:, 0]], WEIGHTS),
    "KernelRidge, nystrom": (
        KernelRidge("RBF(1.5)", 0.1, solver="nystrom", random_state=0),
        X,
        NUMBERS,
        WEIGHTS,
    ),
    "KernelRidge, least squares in features": (KernelRidge("Linear()", 0.0), X, NUMBERS, WEIGHTS),
    "KernelRidge, least squares and a mean": (
        KernelRidge("Linear()", 0.0, fit_intercept=True),
        X,
        np.c_[NUMBERS, X[:, 0]],
        None,
    ),
    "KernelRidge on landmarks": (KernelRidge("RBF(1.5)", 0.1, approximation=SOME), X, NUMBERS, WEIGHTS),
    "KernelRidgeCV, folds": (KernelRidgeCV("RBF(1.5)", cv=3), X, NUMBERS, None),
    "KernelLeastSquares, early": (
        KernelLeastSquares("RBF(1.5)", early_stopping=True, max_iter=50, random_state=0),
        X,
        NUMBERS,
        WEIGHTS,
    ),
    "KernelPerceptron, unknown order": (
        KernelPerceptron("RBF(1.5)", average="averaged", shuffle=True),
        X,
        LABELS,
        None,
    ),
    "KernelPerceptron on landmarks": (KernelPerceptron("RBF(1.5)", approximation=SOME), X, LABELS, None),
    "Adatron, precomputed": (Adatron("precomputed", 1.0), K, LABELS, None),
    "GaussianProcessRegressor, precomputed": (
        GaussianProcessRegressor("precomputed", noise=0.1, random_state=0),
        K,
        np.c_[NUMBERS, X[:, 0]],
        None,
    ),
    "GaussianProcessRegressor on landmarks": (
        GaussianProcessRegressor(
            "RBF(1.5) + White(0.1)", optimizer=None, approximation=SOME, random_state=0, normalize_y=True
        ),
        X,
        NUMBERS,
        None,
    ),
    "GaussianProcessClassifier, three": (
        GaussianProcessClassifier("RBF(1.5)", optimizer=None, random_state=0),
        ROWS,
        THREE,
        WEIGHTS,
    ),
    "RelevanceVectorRegressor, precomputed": (RelevanceVectorRegressor("precomputed"), K, NUMBERS, WEIGHTS),
    "RelevanceVectorClassifier, three": (RelevanceVectorClassifier("RBF(1.5)"), X, THREE, WEIGHTS),
    "KernelKMeans, bound": (KernelKMeans("precomputed", 3, init="spectral"), K, None, WEIGHTS),
    "KernelKMeans that stopped early": (
        KernelKMeans("RBF(1.5)", 3, init="random", max_iter=1, random_state=1),
        X,
        None,
        None,
    ),
    "KernelPCA, all": (KernelPCA("RBF(1.5)", 0.9, approximation=SOME), X, None, None),
    "FalkonClassifier, three": (
        FalkonClassifier("RBF(1.5)", 10, 1.0, landmarks="kmeans", random_state=0),
        ROWS,
        THREE,
        WEIGHTS,
    ),
    "MultipleKernelClassifier, three": (
        MultipleKernelClassifier(["RBF(1.5)", "RBF(0.4)", "Linear()"]),
        X,
        THREE,
        WEIGHTS,
    ),
    "MultipleKernelRegressor, precomputed": (
        MultipleKernelRegressor("precomputed", fit_intercept=True),
        [K, RBF(0.5)(X)],
        NUMBERS,
        WEIGHTS,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_also_with_features_weights_sparse_rows_and_given_matrices(name):
    machine, rows, y, weights = OTHERS[name]
    model = machine.fit(rows, y) if weights is None else machine.fit(rows, y, sample_weight=weights)
    assert verify(model, rows, y, weights), str(verify(model, rows, y, weights))
    assert verify(pickle.loads(pickle.dumps(model)), rows, y, weights)
    assert missed(model, rows, y, weights) == []


HYPERPARAMETERS = {
    "C": (SVC("RBF(1.5)"), LABELS, 1.01),
    "nu of NuSVC": (NuSVC("RBF(1.5)", nu=0.3), LABELS, 0.31),
    "nu of NuSVR": (NuSVR("RBF(1.5)", nu=0.2), NUMBERS, 0.9),
    "nu of OneClassSVM": (OneClassSVM("RBF(1.5)", nu=0.3), None, 0.31),
    "nu of SVDD": (SVDD("RBF(1.5)", nu=0.3), None, 0.31),
    "epsilon": (SVR("RBF(1.5)"), NUMBERS, 0.11),
    "kernel of SVR": (SVR("RBF(1.5)"), NUMBERS, "RBF(1.51)"),
    "kernel of KernelPCA": (KernelPCA("RBF(1.5)", 2), None, "RBF(1.51)"),
    "kernel of GaussianProcessRegressor": (
        GaussianProcessRegressor("RBF(1.5) + White(0.1)", optimizer=None),
        NUMBERS,
        "RBF(1.51) + White(0.1)",
    ),
    "alpha of KernelRidge": (KernelRidge("RBF(1.5)", 0.1), NUMBERS, 0.11),
    "alpha of KernelMachine": (KernelMachine("RBF(1.5)", "logistic"), LABELS, 1.01),
    "delta of KernelMachine": (KernelMachine("RBF(1.5)", "huber"), NUMBERS, 1.01),
    "alpha of FalkonClassifier": (FalkonClassifier("RBF(1.5)", 10, 1.0), LABELS, 1.01),
    "class_weight of SVC": (SVC("RBF(1.5)"), LABELS, {0: 2.0}),
    "p of MultipleKernelRegressor": (MultipleKernelRegressor(["RBF(1.5)", "RBF(0.5)"]), NUMBERS, 2.0),
    "noise of GaussianProcessRegressor": (
        GaussianProcessRegressor("RBF(1.5)", noise=0.1, optimizer=None),
        NUMBERS,
        0.101,
    ),
    "fit_intercept of SVC": (SVC("RBF(1.5)"), LABELS, False),
    "n_clusters of KernelKMeans": (KernelKMeans("RBF(1.5)", 2), None, 3),
    "approximation of SVC": (SVC("RBF(1.5)", approximation=SOME), LABELS, Nystroem(n_components=9)),
}


@pytest.mark.parametrize("name", HYPERPARAMETERS)
def test_a_hyperparameter_changed_after_fit_is_noticed(name):
    machine, y, value = HYPERPARAMETERS[name]
    model = machine.fit(X, y)
    assert verify(model, X, y), str(verify(model, X, y))
    setattr(model, name.split()[0], value)
    assert noticed(model, X, y)


# ── true claims and good fits are two things ────────────────────────────────────────────────────────────────


def test_a_fit_that_stopped_at_a_limit_has_true_claims_and_a_poor_quality():
    with pytest.warns(ConvergenceWarning):
        model = SVC("RBF(0.1)", C=1000.0, max_iter=3).fit(X, LABELS)
    found = verify(model, X, LABELS)
    assert found.ok and not found.quality.converged
    assert found.quality.status == "limit"
    assert found.quality.relative_gap > 0.9
    assert found.quality.gap == pytest.approx(model.certificate_.gap, rel=1e-6)
    text = str(found)
    assert "claims hold" in text and "DID NOT CONVERGE (limit" in text and "verified" not in text
    assert f"{100 * found.quality.relative_gap:.3g} %" in text


def test_the_quality_of_a_good_fit_is_what_was_recomputed():
    model = SVC("RBF(1.5)").fit(X, LABELS)
    model.certificates_[0] = dataclass_with(model.certificates_[0], gap=1.0)
    found = verify(model, X, LABELS)
    assert not found and found.quality.gap < 1e-9
    assert "CLAIMS DO NOT HOLD" in str(found) and "not true: the gap" in str(found)


def dataclass_with(certificate, **changed):
    out = copy.copy(certificate)
    for name, value in changed.items():
        object.__setattr__(out, name, value)
    return out


@pytest.mark.parametrize("which", range(3))
def test_the_quality_of_several_problems_is_that_of_the_worst(which):
    model = SVC("RBF(1.5)").fit(X, THREE)
    certificates = list(model.certificates_)
    certificates[which] = replace(certificates[which], status="limit")
    model.certificates_ = type(model.certificates_)(certificates)
    assert verify(model, X, THREE).quality.status == "limit"


# ── lies that agree with each other ─────────────────────────────────────────────────────────────────────────


def test_a_component_that_was_turned_around_is_noticed():
    model = KernelPCA("RBF(1.5)", 2).fit(X)
    for part in (model.eigenvectors_, model._coef, model._offset):
        part[..., 0] *= -1
    assert noticed(model, X, None)


def test_an_evidence_changed_together_with_its_history_is_noticed():
    model = RelevanceVectorRegressor("RBF(1.5)").fit(X, NUMBERS)
    vars(model)["log_evidence_"] *= 1.01
    model.log_evidence_path_ = [*model.log_evidence_path_[:-1], vars(model)["log_evidence_"]]
    assert noticed(model, X, NUMBERS)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_perceptron_that_corrected_rows_which_were_right_is_noticed(monkeypatch, shuffle):
    def eager(self, score, sign, norm):
        return sign * score <= 0.5

    # in an order that nobody knows there is only the record of the mistakes to follow
    machine = KernelPerceptron("RBF(1.5)", max_iter=3, shuffle=shuffle)
    assert verify(machine.fit(X, LABELS), X, LABELS)
    with monkeypatch.context() as changed:
        changed.setattr(KernelPerceptron, "_mistaken", eager)
        model = machine.fit(X, LABELS)
    assert noticed(model, X, LABELS)


def test_what_no_data_can_confirm_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC("RBF(1.5)", probability=True).fit(X, LABELS)
    found = verify(model, X, LABELS)
    assert found and any("calibration_" in text for text in found.unchecked)
    assert "not checked: calibration_" in str(found)
    features = RandomFeatures("RBF(1.5)", 16).fit(X)
    assert any("without a seed" in text for text in verify(features, X).unchecked)


# ── the cases by which it was fooled ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("factor", [-1.0, 0.0])
def test_weights_of_features_are_tied_to_the_certificate(factor):
    model = SVC("RBF(1.0)", C=3.0, approximation=SOME).fit(X, LABELS)
    model.feature_coef_ = factor * model.feature_coef_
    found = verify(model, X, LABELS)
    assert not found and any("feature_coef_" in text for text in found.findings)


def test_the_weights_of_another_kernel_and_a_certificate_of_ones_are_noticed():
    model = MultipleKernelClassifier(["RBF(1.5)", "RBF(0.5)", "Linear()"], p=2.0).fit(X, LABELS)
    assert verify(model, X, LABELS)
    other = copy.deepcopy(model)
    other.weights_ = other.weights_[::-1].copy()
    assert not verify(other, X, LABELS)
    ones = copy.deepcopy(model)
    ones.certificate_ = dataclass_with(ones.certificate_, primal=1.0, dual=1.0, gap=0.0)
    assert not verify(ones, X, LABELS)


def test_verify_says_what_it_takes():
    with pytest.raises(ParameterError, match="fitted machine of mercer"):
        mercer.verify(object(), X, LABELS)
    with pytest.raises(Exception, match="not fitted"):
        mercer.verify(SVC(), X, LABELS)
    with pytest.raises(MercerError, match="rows"):
        mercer.verify(SVC("RBF(1.0)").fit(X, LABELS), X[1:], LABELS[1:])


def test_every_estimator_with_a_certificate_can_be_verified():
    for subject in SUBJECTS:
        model = subject.fit()
        assert "certificate_" in vars(model), subject.name
        assert verify(model, X, subject.y).certificates, subject.name
