"""Verification is no second run of the code that fitted: a fault in that code, there both times,
is noticed.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from estimators_under_test import NUMBERS, VIEW, X
from mercer.errors import PrecisionWarning
from mercer.gram import Tiles, of_kernel
from mercer.machines.gaussian_process import conditioning, evidence
from mercer.machines.ridge import least_squares
from mercer.machines.structure import cca
from mercer.machines.windows import mean_embedding, nadaraya_watson
from mercer.solve import path
from mercer.theory import verify

KERNEL = "RBF(1.5)"
WEIGHT = np.where(np.arange(len(X)) % 3, 1.0, 2.0)


def changed(monkeypatch, owner, name, change):
    """The function computes what it computed, and then something of it is changed."""
    before = getattr(owner, name)
    plain = inside = before.__func__ if isinstance(owner.__dict__.get(name), classmethod) else before

    def after(*args, **kwargs):
        return change(inside(*args, **kwargs))

    monkeypatch.setattr(owner, name, after if plain is before else classmethod(after))


def scaled(part, factor=1.01):
    """A named tuple with one part changed by one per cent."""
    return lambda found: found._replace(**{part: factor * np.asarray(getattr(found, part))})


MODELS = {
    "KernelCCA": (mercer.KernelCCA(KERNEL, 1, regularization=0.1), VIEW),
    "KernelLeastSquares": (mercer.KernelLeastSquares(KERNEL, max_iter=40, tol=0.0), NUMBERS),
    "KernelLeastSquares, early": (
        mercer.KernelLeastSquares(KERNEL, early_stopping=True, tol=0.0, random_state=0),
        NUMBERS,
    ),
    "KernelMeanEmbedding": (mercer.KernelMeanEmbedding(KERNEL), None),
    "NadarayaWatson": (mercer.NadarayaWatson(KERNEL), NUMBERS),
    "NadarayaWatson, loo": (mercer.NadarayaWatson(KERNEL, bandwidth="loo"), NUMBERS),
    "KernelRidgeCV": (mercer.KernelRidgeCV(KERNEL, (0.01, 0.1, 1.0)), NUMBERS),
    "KernelRidgeCV, folds": (
        mercer.KernelRidgeCV(KERNEL, (0.01, 0.1, 1.0), cv=3, fit_intercept=True),
        NUMBERS,
    ),
    "GaussianProcessRegressor": (
        mercer.GaussianProcessRegressor(f"{KERNEL} + White(0.1)", optimizer=None),
        NUMBERS,
    ),
}
FAULTS = {
    "a ridge that is one per cent too small": ("KernelCCA", cca.Ridged, "solve", lambda v: 1.01 * v),
    "functions that are scaled wrongly": ("KernelCCA", cca, "_scaled", lambda v: (1.01 * v[0], v[1], v[2])),
    "errors on rows held out": (
        "KernelLeastSquares, early",
        least_squares,
        "_mean_square",
        lambda v: 1.01 * v,
    ),
    "an offset among the scores": ("KernelMeanEmbedding", mean_embedding, "_between", lambda v: 1.01 * v),
    "means of targets": (
        "NadarayaWatson",
        nadaraya_watson.NadarayaWatson,
        "_mean",
        lambda v: (1.01 * v[0], v[1]),
    ),
    "the width with the least error": (
        "NadarayaWatson, loo",
        nadaraya_watson,
        "by_leave_one_out",
        lambda v: (v[0].with_params({"lengthscale": 1.01 * v[0].lengthscale}), v[1]),
    ),
    "leaving one out along a path": ("KernelRidgeCV", path.RidgePath, "at", scaled("loo_errors")),
    "degrees of freedom along a path": ("KernelRidgeCV", path.RidgePath, "at", scaled("dof")),
    "coefficients on folds": ("KernelRidgeCV, folds", path.RidgePath, "at", scaled("c")),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_an_honest_fit_is_believed(name, weighted):
    machine, y = MODELS[name]
    model = machine.fit(X, y)
    assert verify(model, X, y)
    if weighted and name.split(",")[0] not in ("KernelCCA", "GaussianProcessRegressor"):
        heavy = machine.fit(X, y, sample_weight=WEIGHT)
        assert verify(heavy, X, y, sample_weight=WEIGHT)
        assert not verify(heavy, X, y)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_code_that_fits_is_noticed(fault, monkeypatch):
    name, owner, function, change = FAULTS[fault]
    changed(monkeypatch, owner, function, change)
    machine, y = MODELS[name]
    model = machine.fit(X, y)
    found = verify(model, X, y)
    assert not found and found.findings, str(found)


def test_steps_that_are_too_short_are_noticed(monkeypatch):
    def slow(self, K, w):
        before(self, K, w)
        self.step_ *= 0.99

    before = least_squares.KernelLeastSquares._set_step
    monkeypatch.setattr(least_squares.KernelLeastSquares, "_set_step", slow)
    machine, y = MODELS["KernelLeastSquares"]
    assert not verify(machine.fit(X, y), X, y)


def test_a_factor_of_another_matrix_is_noticed(monkeypatch):
    before = evidence.factor_gram

    def other(K, noise, *args, **kwargs):
        return before(K, np.asarray(noise) + 0.01, *args, **kwargs)

    for module in (evidence, conditioning):
        if "factor_gram" in vars(module):
            monkeypatch.setattr(module, "factor_gram", other)
    machine, y = MODELS["GaussianProcessRegressor"]
    with pytest.warns(PrecisionWarning, match="the residual is"):
        model = machine.fit(X, y)
    found = verify(model, X, y)
    assert not found and any("the factor" in text for text in found.findings)


@pytest.mark.parametrize("name", [n for n in MODELS if "folds" not in n])
def test_a_fault_in_the_core_that_makes_gram_matrices_is_noticed(name, monkeypatch):
    changed(monkeypatch, of_kernel, "computed", lambda made: (1.01 * made[0], made[1]))
    changed(monkeypatch, Tiles, "_matmat", lambda K: 1.01 * K)
    machine, y = MODELS[name]
    model = machine.fit(X, y)
    ratio = name in ("NadarayaWatson", "NadarayaWatson, loo")
    assert bool(verify(model, X, y)) == ratio, (
        "means do not change with a common factor of the weights, all else does"
    )


@pytest.mark.parametrize("name", MODELS)
def test_honest_fits_are_believed_whatever_the_data(name):
    machine, y = MODELS[name]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=(30, 2))
        rows[10:15] = rows[:5]
        if seed % 2 and "Ridge" not in name:
            rows += 1e4
        t = None if y is None else 10.0 ** rng.uniform(-3, 3) * (np.sin(rows[:, 0]) + rng.normal(size=30))
        model = clone(machine)
        kernel = "Laplacian()" if seed % 3 else "RBF()"
        model.set_params(kernel=f"{kernel} + White(0.01)" if "Process" in name else kernel)
        with warnings.catch_warnings():
            # windows without rows, and systems that rounding spoils
            warnings.simplefilter("ignore")
            model.fit(rows, t)
            found = verify(model, rows, t)
        assert found, f"seed {seed}: {found}"


def test_landmarks_are_counted_among_the_rows_with_weight():
    weight = np.where(np.arange(len(X)) < 6, 1.0, 0.0)
    few = mercer.Nystroem(n_components=10, random_state=0)
    model = mercer.KernelRidge(KERNEL, approximation=few).fit(X, NUMBERS, sample_weight=weight)
    assert verify(model, X, NUMBERS, sample_weight=weight)
