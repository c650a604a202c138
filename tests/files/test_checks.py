"""What is wrong with a file is named: each check of values refuses what it is there for, and says where."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mercer
from estimators_under_test import LABELS, NEW, NUMBERS, X
from files.damage import sealed
from files.sameness import same
from files.test_saving import HomeMade
from mercer import SVC, FalkonRegressor, GaussianProcessRegressor, KernelKMeans, Nystroem
from mercer.errors import ModelFileError
from mercer.files import facts, tables
from mercer.files.container import split
from mercer.files.load import loads
from mercer.files.registry import REGISTRY


@pytest.fixture
def parts(tmp_path):
    """The header and the tensors of a model."""

    def of(model):
        saved = mercer.save(model, tmp_path / "model.mercer", force=True)
        header, tensors = split(saved.path.read_bytes())
        return json.loads(json.dumps(header)), {name: array.copy() for name, array in tensors.items()}

    return of


def svc():
    return SVC("RBF(1.5)").fit(X, LABELS)


def refused(header, tensors, words):
    with pytest.raises(ModelFileError, match=words):
        loads(sealed(header, tensors))


def test_a_sound_file_that_is_sealed_again_loads(parts):
    assert loads(sealed(*parts(svc()))).predict(NEW).tolist() == svc().predict(NEW).tolist()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("dual_coef_", lambda A: np.full_like(A, np.nan), "dual_coef_ is .* with NaN or infinity"),
        ("dual_coef_", lambda A: A[:, :-1].copy(), r"dual_coef_ is .* must be floats\[f, s\] with s = "),
        ("support_", lambda A: A + 24, "support_ has the index .* and there are 24"),
        ("support_", lambda A: -A - 1, "support_ is .* must be wholes"),
        ("support_", lambda A: A.astype(float), "support_ is float64"),
        ("support_vectors_", lambda A: A[:, :2].copy(), "support_vectors_ has 2 columns, .* fitted on 3"),
        ("support_vectors_", lambda A: A * np.inf, "support_vectors_ is .* with NaN or infinity"),
        ("intercept_", lambda A: np.zeros(4), "intercept_"),
        ("classes_", lambda A: A * 0, "classes_ is .* must be labels"),
        ("at_bound_", lambda A: A.astype(np.int8), "at_bound_ is int8"),
    ],
)
def test_numbers_that_do_not_fit_are_named(parts, name, change, words):
    header, tensors = parts(svc())
    tensors[name] = change(tensors[name])
    refused(header, tensors, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["fitted"].update(kernel_="os.system('ls')"), "kernel_ is .* must be kernel"),
        (lambda h: h["fitted"]["kernel_"].update(text="RBF("), "kernel_ has a kernel that cannot be read"),
        (
            lambda h: h["fitted"]["kernel_"].update(text=str(HomeMade(1.0))),
            "HomeMade is a kernel of your own",
        ),
        (
            lambda h: h["fitted"]["kernel_"].update(text="RBF(-1.0)"),
            "kernel_ has a kernel that cannot be read",
        ),
        (lambda h: h["fitted"].update(extra_=1), "has 'extra_', which no SVC has"),
        (lambda h: h["fitted"].update(predict=1), "has 'predict', which no SVC has"),
        (lambda h: h["fitted"].update(__class__="SVR"), "has '__class__', which no SVC has"),
        (lambda h: h["parameters"].update(gamma=1.0), "has 'gamma', which no SVC has"),
        (lambda h: h["parameters"].update(C=-1.0), "has parameters that it does not take .*C must be"),
        (lambda h: h.update(machine="Popen"), "names 'Popen', which this format does not have"),
        (lambda h: h["fitted"].update(n_features_in_=4), "support_vectors_ has 3 columns"),
        (lambda h: h["fitted"].update(n_rows_fit_=1), "support_ has the index"),
        (lambda h: h["fitted"]["certificate_"].update(of="Popen"), "certificate_ names 'Popen'"),
        (lambda h: h["fitted"]["certificate_"]["fields"].pop("gap"), "certificate_ has the fields"),
        (
            lambda h: h["fitted"]["support_"].update(tensor="secret"),
            "names the tensor 'secret'",
        ),
        (lambda h: h["fitted"].pop("dual_coef_"), "the tensor 'dual_coef_', which nothing names"),
        (lambda h: h["fitted"].update(n_iter_={"is": "eval"}), "n_iter_ is a 'eval', which this format"),
    ],
)
def test_a_header_that_lies_is_refused_with_the_place(parts, change, words):
    header, tensors = parts(svc())
    change(header)
    refused(header, tensors, words)


def test_what_only_the_machine_can_know_is_asked_of_it(parts):
    """Three classes need more than one function."""
    header, tensors = parts(svc())
    tensors["classes_"] = np.arange(3)
    tensors["class_weight_"] = np.ones(3)
    tensors["n_support_"] = np.array([5, 5, 5], dtype=np.int32)
    refused(header, tensors, "does not work with what is in the file")


@pytest.mark.parametrize(
    "model",
    [
        FalkonRegressor("RBF(1.5)", n_landmarks=6, random_state=0),
        GaussianProcessRegressor("RBF(1.5) + White(0.1)", optimizer=None),
        Nystroem("RBF(1.5)", n_components=6, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_factor_of_another_size_never_reaches_compiled_code(parts, model):
    header, tensors = parts(model.fit(X, NUMBERS))
    name = next(name for name in tensors if name.endswith("lower"))
    tensors[name] = tensors[name][:-1].copy()
    refused(header, tensors, "lower is .* must be floats")


def test_codes_of_clusters_are_those_of_clusters(parts):
    header, tensors = parts(KernelKMeans("RBF(1.5)", 2, random_state=0).fit(X))
    tensors["_codes"] = tensors["_codes"] + 1
    refused(header, tensors, "_codes has the index 2, and there are 2")


def test_every_fact_of_the_table_is_well_formed():
    """A word that is no kind of value would refuse every file."""
    tables.with_twins()
    known = {"size", "kernel", "machine", *facts._SINGLE, *facts._ARRAYS, *REGISTRY.forms}
    known |= {group for form in REGISTRY.forms.values() for group in form.groups}
    rows = [*REGISTRY.forms.values(), *REGISTRY.machines.values()]
    words = {fact for row in rows for fact in row.facts.values()}
    unknown = {word for word in words if not {fact.kind for fact in facts.parsed(word)} <= known}
    assert not unknown


def test_a_process_of_a_given_matrix_comes_back_without_its_factor(tmp_path):
    K = mercer.parse("RBF(1.5)")(X)
    model = GaussianProcessRegressor("precomputed", noise=0.1, optimizer=None).fit(K, NUMBERS)
    again = mercer.load(mercer.save(model, tmp_path / "model.mercer", compact=True).path)
    same(again.loo(), model.loo())
