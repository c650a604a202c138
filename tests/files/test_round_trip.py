"""Every machine comes back from its file to the bit: attributes, answers, certificate, parameters, claims."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mercer
from estimators_under_test import LABELS, NEW, NUMBERS, SUBJECTS, TWINS, Subject, X
from files.sameness import same, says_the_same
from machines.test_pickles import fitted, variants
from mercer import (
    SVC,
    SVR,
    FalkonRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelMachine,
    KernelPCA,
    KernelRidge,
    Nystroem,
    RandomFeatures,
    table_kernel,
    verify,
)
from mercer.errors import MercerError
from mercer.kernels.things.sparse_map import SparseMap
from things_under_test import every_thing_kernel


def quietly(act, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act(*args, **options)


def round_trip(model, folder, **options):
    saved = mercer.save(model, folder / "model.mercer", force=True, **options)
    return quietly(mercer.load, saved.path)


def comes_back(model, folder, rows=NEW) -> object:
    again = round_trip(model, folder)
    same(again, model)
    same(again.get_params(deep=False), model.get_params(deep=False))
    says_the_same(again, model, rows)
    return again


@pytest.mark.parametrize("s", SUBJECTS, ids=lambda s: s.name)
def test_every_machine_comes_back_to_the_bit_with_every_solver_and_little_memory(s, tmp_path):
    for changes in variants(s):
        model, refusal = fitted(s, changes)
        assert model is not None or changes, refusal
        if model is not None:
            comes_back(model, tmp_path)


@pytest.mark.parametrize("s", TWINS, ids=lambda s: s.name)
def test_every_twin_comes_back_to_the_bit(s, tmp_path):
    comes_back(quietly(s.fit), tmp_path)


@pytest.mark.parametrize("s", [*SUBJECTS, *TWINS], ids=lambda s: s.name)
def test_the_data_say_the_same_of_a_model_that_came_back(s, tmp_path):
    model = quietly(s.fit)
    again = round_trip(model, tmp_path)
    wanted = quietly(verify, model, X, s.y)
    found = quietly(verify, again, X, s.y)
    assert found.ok == wanted.ok
    assert str(found) == str(wanted)


FORMS = {
    "sparse rows": sparse.csr_array,
    "old sparse rows": sparse.csr_matrix,
    "a table": lambda A: pd.DataFrame(A, columns=["first", "second", "third"]),
    "single precision": lambda A: A.astype(np.float32),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("s", SUBJECTS, ids=lambda s: s.name)
def test_rows_of_every_form_come_back(s, form, tmp_path):
    model = quietly(s.fit, FORMS[form](X))
    comes_back(model, tmp_path, FORMS[form](NEW))


def precomputed(s: Subject):
    """The machine on its Gram matrix, or None where it takes none."""
    K = mercer.parse("RBF(1.5)")(X)
    changes = {"kernel": "precomputed"}
    if "kernels" in s.make().get_params(deep=False):
        return None
    try:
        return quietly(s.fit, K, **changes)
    except (MercerError, ValueError):
        return None


@pytest.mark.parametrize("s", [s for s in SUBJECTS if s.target != "view"], ids=lambda s: s.name)
def test_a_model_of_a_given_matrix_comes_back(s, tmp_path):
    model = precomputed(s)
    if model is not None:
        again = round_trip(model, tmp_path)
        same(again, model)


@pytest.mark.parametrize("approximation", [Nystroem(n_components=6, random_state=0), RandomFeatures(10)])
@pytest.mark.parametrize("s", SUBJECTS, ids=lambda s: s.name)
def test_a_model_with_an_approximation_comes_back(s, approximation, tmp_path):
    if "approximation" not in s.make().get_params(deep=False):
        pytest.skip("it takes no approximation")
    model, _ = fitted(s, {"approximation": approximation})
    if model is not None:
        comes_back(model, tmp_path)


SKETCHED = [
    "RBF(1.5)",
    "Matern(1.0, nu=1.5).on(0)",
    "Polynomial(2)",
    "Polynomial(5)",
    "Polynomial(3).normalized()",
    "ExpDot(0.5)",
    "ArcCosine(1)",
    "Periodic(1.0).on(1) + 0.5*Linear() + White(0.1)",
    "RBF(1.0).on(0) * RBF(2.0).on(1)",
    "RBF(1.0).on(0) * Linear()",
    "Laplacian(1.0)",
]


@pytest.mark.parametrize("kind", ["auto", "maclaurin", "tensor-sketch", "gaussian"])
@pytest.mark.parametrize("kernel", SKETCHED)
def test_random_features_of_every_kind_come_back(kernel, kind, tmp_path):
    try:
        model = quietly(RandomFeatures(kernel, 30, kind=kind, random_state=0).fit, X)
    except MercerError:
        pytest.skip("there are no such features")
    comes_back(model, tmp_path)


@pytest.mark.parametrize("case", every_thing_kernel(), ids=repr)
def test_rows_that_are_things_come_back(case, tmp_path):
    things = case.things * 2
    y = np.arange(len(things)) % 2
    for model in (
        SVC(case.kernel, C=2.0),
        KernelRidge(case.kernel, alpha=1.0),
        KernelPCA(case.kernel, n_components=2),
    ):
        try:
            quietly(model.fit, things, y)
        except MercerError:
            continue
        if not isinstance(vars(model).get("feature_map_"), SparseMap):
            comes_back(model, tmp_path, case.things)
            continue
        again = round_trip(model, tmp_path)
        ask = "predict" if isinstance(model, KernelRidge) else "decision_function"
        np.testing.assert_array_equal(getattr(again, ask)(case.things), getattr(model, ask)(case.things))
        assert list(again.feature_map_.names) == list(model.feature_map_.names)
        assert verify(again, things, y).ok


def mixed_table(n=24):
    rng = np.random.default_rng(3)
    day = datetime.date(2024, 2, 27)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "city": rng.choice(["Ulm", "Köln", "Wien"], size=n),
            "sold": [day + datetime.timedelta(days=int(i)) for i in rng.integers(900, size=n)],
            "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(10**6, size=n), unit="s"),
            "rooms": [None if i % 7 == 0 else float(i % 5) for i in range(n)],
            "note": rng.choice(["a bright flat", "dark and small", "near the river"], size=n),
        }
    )


@pytest.mark.parametrize("machine", [SVR, KernelRidge, GaussianProcessRegressor, FalkonRegressor])
def test_a_table_of_mixed_cells_comes_back(machine, tmp_path):
    table = mixed_table()
    y = np.random.default_rng(4).normal(size=len(table))
    kernel = table_kernel(table)
    model = quietly(machine(kernel).fit, table, y)
    again = comes_back(model, tmp_path, table)
    turned = table[list(table.columns[::-1])]
    np.testing.assert_array_equal(again.predict(turned), model.predict(turned))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes, and more"])[LABELS],
        np.array(["no", "yes"], dtype=object)[LABELS],
        LABELS.astype(bool),
        LABELS.astype(np.int16),
        LABELS + 1.0,
        np.array([2**53 + 1, -1])[LABELS],
    ],
    ids=["text", "objects", "truth values", "short", "numbers", "long"],
)
@pytest.mark.parametrize("s", [s for s in SUBJECTS if s.target == "labels"], ids=lambda s: s.name)
def test_classes_keep_their_type(s, labels, tmp_path):
    model = quietly(s.fit, X, labels)
    again = comes_back(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype


@pytest.mark.parametrize("s", [s for s in SUBJECTS if s.target == "numbers"], ids=lambda s: s.name)
def test_several_targets_come_back(s, tmp_path):
    try:
        model = quietly(s.fit, X, np.column_stack([NUMBERS, X[:, 1]]))
    except (MercerError, ValueError):
        pytest.skip("it takes one target")
    comes_back(model, tmp_path)


CLASSES = np.digitize(X[:, 0], [-0.4, 0.4])
SELDOM = {
    "three classes with probabilities": (GaussianProcessClassifier("RBF(1.5)", optimizer=None), CLASSES),
    "a warm start": (SVC("RBF(1.5)", warm_start=True), CLASSES),
    "a legacy generator": (
        SVC("RBF(1.5)", probability=True, random_state=np.random.RandomState(3)),
        CLASSES,
    ),
    "a generator": (
        SVR("RBF(1.5)", approximation=Nystroem(n_components=5, random_state=np.random.default_rng(3))),
        NUMBERS,
    ),
    "weights of classes": (SVC("RBF(1.5)", class_weight={0: 1.0, 1: 2.0, 2: 1.5}), CLASSES),
    "conformal sets": (SVC("RBF(1.5)", probability=True), CLASSES),
    "softmax": (KernelMachine("RBF(1.5)", "logistic", 0.1), CLASSES),
    "a witness": (SVC("Sigmoid(1.0)"), CLASSES),
    "single precision": (
        FalkonRegressor("RBF(1.5)", dtype="float32", landmarks="kmeans", n_landmarks=4, random_state=0),
        NUMBERS,
    ),
    "noise of each row": (
        GaussianProcessRegressor("RBF() + White(0.1)", noise=np.full(24, 0.1), normalize_y=True),
        NUMBERS,
    ),
    "bounds": (
        GaussianProcessRegressor('RBF(1.5).bounded(lengthscale=(0.5, 5.0)) + White(0.1).fix("noise")'),
        NUMBERS,
    ),
    "quantiles": (KernelMachine("RBF(1.5)", "quantile", 0.1, quantiles=(0.1, 0.5, 0.9)), NUMBERS),
}


@pytest.mark.parametrize("case", SELDOM)
def test_what_is_seldom_comes_back(case, tmp_path):
    model, target = SELDOM[case]
    comes_back(quietly(model.fit, X, target), tmp_path)
