"""A status is a claim: "converged" is believed where the numbers meet the tolerance, and nowhere else."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from estimators_under_test import LABELS, NUMBERS, SUBJECTS, THREE, X
from mercer import (
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
    KernelPerceptron,
    KernelRidge,
    MultipleKernelClassifier,
    MultipleKernelRegressor,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    verify,
)

pytestmark = pytest.mark.filterwarnings("ignore")
ROUGH = "RBF(0.1)"
ENDED_EARLY = {
    "SVC": (SVC(ROUGH, C=1000.0, max_iter=3), LABELS),
    "SVC, three classes": (SVC("Polynomial(3)", C=1000.0, max_iter=5), THREE),
    "SVC, projected gradient": (
        SVC("RBF(1.5)", C=1000.0, fit_intercept=False, solver="projected-gradient", max_iter=3),
        LABELS,
    ),
    "NuSVC": (NuSVC("RBF(1.0)", nu=0.3, max_iter=2), LABELS),
    "SVR": (SVR("RBF(1.0)", C=1000.0, max_iter=3), NUMBERS),
    "NuSVR": (NuSVR("RBF(1.0)", C=1000.0, max_iter=3), NUMBERS),
    "OneClassSVM": (OneClassSVM("RBF(1.0)", max_iter=1), None),
    "SVDD": (SVDD("RBF(1.0)", nu=0.3, max_iter=1), None),
    "KernelMachine, smooth": (KernelMachine("RBF(0.5)", "logistic", 1e-4, max_iter=1), LABELS),
    "KernelMachine, corners": (KernelMachine("RBF(0.5)", "quantile", 1e-4, max_iter=1), NUMBERS),
    "KernelPerceptron": (KernelPerceptron("Linear()", max_iter=1), LABELS),
    "Adatron": (Adatron("RBF(1.0)", 1000.0, max_iter=1), LABELS),
    "KernelRidge, stagnated": (KernelRidge("Polynomial(2)", 1e-13, solver="cholesky", tol=1e-16), NUMBERS),
    "KernelRidge": (KernelRidge("RBF(0.5)", 1e-6, solver="cg", max_iter=1), NUMBERS),
    "KernelLeastSquares": (KernelLeastSquares("RBF(0.5)", max_iter=2), NUMBERS),
    "FalkonClassifier": (FalkonClassifier("RBF(0.5)", 20, 1e-3, max_iter=1), LABELS),
    "GaussianProcessRegressor": (GaussianProcessRegressor("RBF(0.3) + White(0.1)", max_iter=1), NUMBERS),
    "GaussianProcessRegressor, open": (GaussianProcessRegressor(max_iter=1), NUMBERS),
    "GaussianProcessClassifier, mode": (
        GaussianProcessClassifier("9.0*RBF(1.0)", optimizer=None, max_iter_newton=1),
        LABELS,
    ),
    "GaussianProcessClassifier": (GaussianProcessClassifier("RBF(0.3)", max_iter=1), LABELS),
    "RelevanceVectorRegressor": (RelevanceVectorRegressor("RBF(1.0)", max_iter=2), NUMBERS),
    "RelevanceVectorClassifier": (RelevanceVectorClassifier("RBF(1.0)", max_iter=1), THREE),
    "KernelKMeans": (KernelKMeans("RBF(1.5)", 3, init="random", max_iter=1, random_state=1), None),
    "Nystroem": (Nystroem("RBF(0.5)", n_components=3, tolerance=1e-3, random_state=0), None),
    "MultipleKernelClassifier": (
        MultipleKernelClassifier(["RBF(1.5)", "RBF(0.4)", "Linear()"], tol=1e-9, max_iter=1),
        LABELS,
    ),
    "MultipleKernelRegressor": (
        MultipleKernelRegressor(["RBF(1.5)", "RBF(0.4)", "Linear()"], 0.1, tol=1e-9, max_iter=0),
        NUMBERS,
    ),
}
UNDECIDED = {"RelevanceVectorClassifier"}


def calls_itself_converged(model):
    out = copy.deepcopy(model)
    out.certificate_ = replace(out.certificate_, status="converged")
    if "certificates_" in vars(out):
        out.certificates_ = [replace(c, status="converged") for c in out.certificates_]
    if "converged_" in vars(out):
        out.converged_ = True
    return out


@pytest.mark.parametrize("name", ENDED_EARLY)
def test_a_fit_that_ended_early_cannot_call_itself_converged(name):
    machine, y = ENDED_EARLY[name]
    model = machine.fit(X, y)
    assert model.certificate_.status in ("limit", "stagnated"), model.certificate_
    honest = verify(model, X, y)
    assert honest, str(honest)
    assert not honest.quality.converged
    found = verify(calls_itself_converged(model), X, y)
    if name in UNDECIDED:
        assert any("that the fit converged" in text for text in found.unchecked)
        return
    assert not found and not found.quality.converged, str(found)
    assert any("converged" in text or "status" in text for text in found.findings), str(found)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_a_fit_that_converged_is_believed(subject):
    model = subject.fit()
    found = verify(model, X, subject.y)
    assert found, str(found)
    assert found.quality.status == model.certificate_.status


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_random_margin_fits_that_converged_are_believed(seed, C):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, 2)) * 10.0 ** rng.integers(-2, 3)
    codes = rng.integers(0, 2, 60)
    numbers = 10.0 ** rng.integers(-4, 5) * rng.normal(size=60)
    machines = {
        SVC(C=C, tol=1e-3): codes,
        SVC("Linear()", C=C, gap_tol=1e-2, max_iter=20_000): codes,
        SVR(C=C, tol=1e-2): numbers,
        NuSVR(C=C, tol=1e-2, nu=0.3): numbers,
        OneClassSVM(nu=0.3, tol=1e-2): None,
    }
    for machine, y in machines.items():
        model = machine.fit(rows, y)
        found = verify(model, rows, y)
        assert found, str(found)
        assert found.quality.status == model.certificate_.status
