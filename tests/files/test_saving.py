"""Where files go and what they say: in one step, never over another, with sentences for what cannot be."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from estimators_under_test import LABELS, NEW, NUMBERS, X
from files.damage import sealed
from files.sameness import answers, same, says_the_same
from files.test_round_trip import mixed_table, quietly
from mercer import (
    RBF,
    SVC,
    SVR,
    Custom,
    FalkonRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelMachine,
    KernelRidge,
    Nystroem,
    Radial,
    RandomFeatures,
    leaf,
)
from mercer.errors import ModelFileError
from mercer.files import container
from mercer.files.container import FORMAT, split
from mercer.files.machines import MACHINES
from mercer.files.registry import REGISTRY
from mercer.files.tables import with_models_of_tables


@pytest.fixture
def model():
    return KernelRidge("RBF(1.5)", alpha=0.1).fit(X, NUMBERS)


@leaf
class HomeMade(Radial):
    """e^(-r^1.5)."""

    def value(self, s):
        return np.exp(-(s**0.75))


# ── places ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_exists_is_replaced_only_by_force(model, tmp_path):
    path = tmp_path / "model.mercer"
    path.write_text("something else")
    with pytest.raises(ModelFileError, match=r"exists\. Pass force=True"):
        mercer.save(model, path)
    assert path.read_text() == "something else"
    mercer.save(model, path, force=True)
    says_the_same(mercer.load(path), model, NEW)
    assert [p.name for p in tmp_path.iterdir()] == ["model.mercer"]


def test_a_place_that_cannot_be_is_named(model, tmp_path):
    with pytest.raises(ModelFileError, match=r"is a directory. Name a file, .*model\.mercer"):
        mercer.save(model, tmp_path)
    with pytest.raises(ModelFileError, match=r"is no directory\. Make it first"):
        mercer.save(model, tmp_path / "nowhere" / "model.mercer")
    with pytest.raises(ModelFileError, match="does not exist"):
        mercer.load(tmp_path / "nothing.mercer")
    with pytest.raises(ModelFileError, match=r"is a directory\. Name the model file"):
        mercer.load(tmp_path)
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        mercer.load("/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to the superuser")
def test_a_folder_without_permission_is_named(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ModelFileError, match="may not be written to"):
        mercer.save(model, tmp_path / "model.mercer")


def test_a_draft_that_cannot_be_written_leaves_nothing_behind(model, tmp_path, monkeypatch):
    path = tmp_path / "model.mercer"
    mercer.save(model, path)
    before = path.read_bytes()

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "save_file", full)
    with pytest.raises(ModelFileError, match=r"could not be written.*No space left"):
        mercer.save(model, path, force=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.mercer"]


def test_a_file_may_be_read_by_whom_other_files_may(model, tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("")
    path = mercer.save(model, tmp_path / "model.mercer").path
    assert path.stat().st_mode == plain.stat().st_mode


def test_paths_may_be_text_or_path_objects(model, tmp_path):
    assert mercer.save(model, str(tmp_path / "a.mercer")).path == tmp_path / "a.mercer"
    assert mercer.load(str(tmp_path / "a.mercer")).certificate_ == model.certificate_


KILLED = """
import sys, numpy as np, mercer
X = np.random.default_rng(0).normal(size=(700, 3))
model = mercer.GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None).fit(X, X[:, 0])
print("ready", flush=True)
while True:
    mercer.save(model, sys.argv[1], force=True)
"""


def test_a_process_that_is_killed_while_saving_leaves_the_old_file_or_a_whole_new_one(model, tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(model, path)
    for pause in (0.004, 0.023):
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert type(mercer.load(path)) in (KernelRidge, GaussianProcessRegressor)


# ── what cannot be saved ────────────────────────────────────────────────────────────────────────────────────


def refused(model, tmp_path, words):
    with pytest.raises(ModelFileError, match=words):
        mercer.save(model, tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())


def test_code_is_refused_with_what_to_do(tmp_path):
    refused(SVR(HomeMade(1.0)).fit(X, NUMBERS), tmp_path, "HomeMade is a kernel of your own")
    refused(SVR(Custom(np.dot)).fit(X, NUMBERS), tmp_path, 'kernel="precomputed"')
    refused(SVR(RBF(1.0).of(np.sin)).fit(X, NUMBERS), tmp_path, "a function cannot be read")
    listening = SVC("RBF(1.0)", callback=lambda *args: None).fit(X, LABELS)
    refused(listening, tmp_path, r"set_params\(callback=None\)")
    mercer.save(listening.set_params(callback=None), tmp_path / "model.mercer")


def test_a_loss_or_a_penalty_of_ones_own_is_refused(tmp_path):
    refused(KernelMachine("RBF(1.0)", penalty=lambda r: r**2).fit(X, NUMBERS), tmp_path, "Python function")


def test_what_is_no_fitted_machine_is_refused(tmp_path):
    refused(SVC("RBF(1.0)"), tmp_path, "not fitted yet")
    refused(make_pipeline(StandardScaler(), SVC()).fit(X, LABELS), tmp_path, "takes the machines of mercer")

    class Own(SVC):
        pass

    refused(Own("RBF(1.0)").fit(X, LABELS), tmp_path, "class of your own")
    added = KernelRidge("RBF(1.0)").fit(X, NUMBERS)
    added.remark_ = "mine"
    refused(added, tmp_path, "del model.remark_")


def test_a_thing_that_is_no_data_is_refused_with_its_place(tmp_path):
    things = [object() for _ in range(6)]
    model = SVR(Custom(lambda a, b: 1.0 * (a is b))).fit(things, np.arange(6.0))
    model.kernel, model.kernel_ = "Linear()", mercer.Linear()
    refused(model, tmp_path, r"support_vectors_\.\d+ is <object object")


# ── what the file says ──────────────────────────────────────────────────────────────────────────────────────


def test_saving_says_how_large_the_file_is_and_which_rows_are_inside(model, tmp_path):
    saved = mercer.save(model, tmp_path / "ridge.mercer")
    assert saved.bytes == saved.path.stat().st_size
    assert saved.rows == {"X_fit_": 24}
    assert "Rows of the training data are inside (24 in X_fit_)" in str(saved)
    assert "FalkonRegressor" in str(saved)
    few = FalkonRegressor("RBF(1.5)", n_landmarks=5, random_state=0).fit(X, NUMBERS)
    assert "Landmarks are inside (5 in landmarks_)" in str(mercer.save(few, tmp_path / "falkon.mercer"))
    none = RandomFeatures("RBF(1.5)", 8, random_state=0).fit(X)
    assert "No rows of the training data" in str(mercer.save(none, tmp_path / "features.mercer"))
    both = SVR("RBF(1.5)", approximation=Nystroem(n_components=5)).fit(X, NUMBERS)
    kept = mercer.save(both, tmp_path / "both.mercer").rows
    assert kept == {"approximation_.landmarks_": 5, "support_vectors_": len(both.support_)}


def test_the_rows_of_a_file_that_keeps_none_are_not_in_it(tmp_path):
    """What is said is true: no training row can be found among the bytes."""
    features = RandomFeatures("RBF(1.5)", 8, random_state=0).fit(X)
    data = mercer.save(features, tmp_path / "features.mercer").path.read_bytes()
    assert not any(row.tobytes() in data for row in X)
    ridge = KernelRidge("RBF(1.5)").fit(X, NUMBERS)
    data = mercer.save(ridge, tmp_path / "ridge.mercer").path.read_bytes()
    assert all(row.tobytes() in data for row in X)


def test_a_file_has_no_more_in_it_than_data(model, tmp_path):
    header, tensors = split(mercer.save(model, tmp_path / "model.mercer").path.read_bytes())
    assert header["format"] == FORMAT
    assert header["machine"] == "KernelRidge"
    assert header["fitted"]["kernel_"] == {"is": "kernel", "text": "RBF(1.5)"}
    assert set(tensors) == {"X_fit_", "_weight", "_targets", "dual_coef_"}
    assert b"__reduce__" not in json.dumps(header).encode()


def test_an_array_that_a_model_holds_twice_is_stored_once(tmp_path):
    twin = mercer.sklearn.KernelRidge(kernel="rbf").fit(X, NUMBERS)
    assert twin.X_fit_ is twin.machine_.X_fit_
    again = mercer.load(mercer.save(twin, tmp_path / "twin.mercer").path)
    assert again.X_fit_ is again.machine_.X_fit_


# ── compact files ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("optimizer", [None, "L-BFGS-B"])
def test_a_process_without_its_factor_is_small_and_says_the_same_bits(optimizer, tmp_path):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(300, 2))
    y = np.sin(A[:, 0]) + 0.1 * rng.normal(size=300)
    model = quietly(GaussianProcessRegressor("RBF() + White(0.1)", optimizer=optimizer).fit, A, y)
    whole = mercer.save(model, tmp_path / "whole.mercer")
    small = mercer.save(model, tmp_path / "small.mercer", compact=True)
    if optimizer is None:
        assert whole.factor_bytes == 8 * 300**2
        assert "compact=True leaves them out" in str(whole)
        assert whole.bytes - small.bytes > 0.98 * whole.factor_bytes
    assert small.factor_bytes == 0
    assert small.bytes < 8 * 300 * 12
    again = mercer.load(small.path)
    says_the_same(again, model, rng.normal(size=(40, 2)))
    same(again.loo(), model.loo())
    assert mercer.verify(again, A, y).ok


@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_without_its_factors_is_small_and_says_the_same_bits(classes, tmp_path):
    rng = np.random.default_rng(2)
    A = rng.normal(size=(120, 2))
    y = np.digitize(A[:, 0] + 0.3 * rng.normal(size=120), np.linspace(-0.5, 0.5, classes - 1))
    model = GaussianProcessClassifier("RBF(1.0)", optimizer=None, random_state=0).fit(A, y)
    whole = mercer.save(model, tmp_path / "whole.mercer")
    small = mercer.save(model, tmp_path / "small.mercer", compact=True)
    assert whole.bytes - small.bytes > 0.98 * whole.factor_bytes > 0
    again = mercer.load(small.path)
    says_the_same(again, model, rng.normal(size=(40, 2)))
    same(again.log_evidence(gradient=True), model.log_evidence(gradient=True))
    same(again.posterior_.K, model.posterior_.K)
    assert mercer.verify(again, A, y).ok


def test_a_machine_without_factors_is_saved_as_it_is(model, tmp_path):
    saved = mercer.save(model, tmp_path / "a.mercer", compact=True)
    assert saved.bytes == mercer.save(model, tmp_path / "b.mercer").bytes
    same(mercer.load(saved.path), model)


# ── versions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_later_format_is_refused_with_its_version(model, tmp_path):
    header, tensors = split(mercer.save(model, tmp_path / "model.mercer").path.read_bytes())
    path = tmp_path / "later.mercer"
    path.write_bytes(sealed({**header, "format": FORMAT + 1, "mercer": "9.1"}, tensors))
    with pytest.raises(ModelFileError, match=rf"format {FORMAT + 1}, written by mercer '9.1'.*later version"):
        mercer.load(path)
    path.write_bytes(sealed({**header, "format": "new"}, tensors))
    with pytest.raises(ModelFileError, match="format is 'new'"):
        mercer.load(path)


def test_another_version_with_the_same_format_loads(model, tmp_path):
    header, tensors = split(mercer.save(model, tmp_path / "model.mercer").path.read_bytes())
    path = tmp_path / "other.mercer"
    path.write_bytes(sealed({**header, "mercer": "0.0.7"}, tensors))
    same(mercer.load(path), model)


def test_a_parameter_that_came_later_has_its_default(model, tmp_path):
    header, tensors = split(mercer.save(model, tmp_path / "model.mercer").path.read_bytes())
    del header["parameters"]["max_seconds"]
    path = tmp_path / "earlier.mercer"
    path.write_bytes(sealed(header, tensors))
    assert mercer.load(path).max_seconds is None


def test_other_files_are_told_apart(tmp_path):
    path = tmp_path / "other.mercer"
    path.write_bytes(save_tensors({"weights": np.zeros(3)}))
    with pytest.raises(ModelFileError, match="without a model of mercer"):
        mercer.load(path)
    path.write_text("size,price\n1,2\n")
    with pytest.raises(ModelFileError, match="This is no model file"):
        mercer.load(path)
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="This is no model file"):
        mercer.load(path)


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────


def test_every_machine_of_the_public_names_can_be_saved():
    from sklearn.base import BaseEstimator

    public = {getattr(mercer, name) for name in mercer.__all__}
    machines = {kind for kind in public if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    of_tables = {kind for kind in machines if kind.__module__.startswith("mercer.recipe")}
    wrappers = {kind for kind in machines if kind.__module__.startswith("mercer.conformal")}
    assert machines - of_tables - wrappers == set(MACHINES)
    with_models_of_tables()
    assert all(REGISTRY.machine_of(object.__new__(kind)) is not None for kind in of_tables | wrappers)


def test_every_attribute_that_a_fit_assigns_is_declared():
    """What a machine sets on itself outside of its constructor has its fact in the table of files."""
    assigned = {}
    for kind in MACHINES:
        names = set()
        for base in kind.__mro__:
            if base.__module__.startswith("mercer.machines"):
                names |= attributes_set(base)
        assigned[kind.__name__] = names - set(kind._get_param_names()) - TRANSIENT
    missing = {
        name: sorted(found - REGISTRY.machines[name].facts.keys())
        for name, found in assigned.items()
        if found - REGISTRY.machines[name].facts.keys()
    }
    assert not missing


# Set in the course of a fit and gone when it ends.
TRANSIENT = {"_order", "_labels"}
# Methods that set parameters.
CONSTRUCTORS = {"__init__", "set_params"}


def attributes_set(kind: type) -> set[str]:
    """Names x of `self.x = …` in the methods of a class itself, but for its constructor."""
    tree = ast.parse(Path(sys.modules[kind.__module__].__file__).read_text(encoding="utf-8"))
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    methods = [n for n in classes[0].body if isinstance(n, ast.FunctionDef) and n.name not in CONSTRUCTORS]
    return {
        node.attr
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


# ── files of versions before ────────────────────────────────────────────────────────────────────────────────

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.mercer")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_load_and_say_what_they_said(path):
    """Never written again: a file that was loaded once is loaded for ever."""
    model = quietly(mercer.load, path)
    wanted = np.load(path.with_suffix(".npz"), allow_pickle=False)
    rows = mixed_table(6) if "table" in path.stem else NEW
    found = answers(model, rows)
    assert found.keys() == set(wanted.files)
    for name in wanted.files:
        if wanted[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def test_there_are_files_of_every_format():
    assert len(list(GOLDEN.glob("*.mercer"))) >= 8
    formats = {split(path.read_bytes())[0]["format"] for path in GOLDEN.glob("*.mercer")}
    assert formats == set(range(1, FORMAT + 1))


@pytest.mark.parametrize("kind", [mercer.KernelRidge, mercer.SVR, mercer.GaussianProcessRegressor])
def test_what_a_machine_read_in_order_to_answer_is_not_in_its_file(tmp_path, kind):
    model = quietly(kind("RBF(1.0)").fit, X, NUMBERS)
    mercer.save(model, tmp_path / "before.mercer")
    model.predict(NEW)
    mercer.save(model, tmp_path / "after.mercer")
    before, after = ((tmp_path / f"{when}.mercer").read_bytes() for when in ("before", "after"))
    (header, tensors), (header_after, tensors_after) = split(before), split(after)
    assert header == header_after
    assert {k: v.tobytes() for k, v in tensors.items()} == {k: v.tobytes() for k, v in tensors_after.items()}
