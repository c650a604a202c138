"""What is written to disk, when, and what is said."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest

from mercer import RBF, Custom, KernelRidge, Matern, export_onnx
from mercer.errors import ModelFileError
from onnx_runtime import run

X = np.linspace(0.0, 3.0, 12)[:, None]
Y = np.sin(X[:, 0])


def fitted(kernel="RBF(1.0)"):
    return KernelRidge(kernel, alpha=0.1).fit(X, Y)


def test_a_file_holds_the_graph_and_says_what_it_is(tmp_path):
    made = export_onnx(fitted(), tmp_path / "model.onnx")
    read = onnx.load(made.path)
    assert read == made.model
    assert {p.key: p.value for p in read.metadata_props} == {"machine": "KernelRidge", "kernel": "RBF(1.0)"}
    assert read.producer_name == "mercer"
    assert made.path.stat().st_size == made.bytes
    assert "12 rows of the training data" in str(made) and "mean: predictions" in str(made)
    np.testing.assert_allclose(run(read, X)["mean"], fitted().predict(X), rtol=1e-12)


def test_a_file_that_exists_is_replaced_only_with_force(tmp_path):
    place = tmp_path / "model.onnx"
    place.write_text("mine")
    with pytest.raises(ModelFileError, match="exists"):
        export_onnx(fitted(), place)
    assert place.read_text() == "mine"
    export_onnx(fitted(), place, force=True)
    onnx.checker.check_model(onnx.load(place))
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("kernel", [Custom(np.minimum, blocks=False), Matern(1.0, nu=1.2)], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_written_where_the_export_is_refused(tmp_path, kernel):
    place = tmp_path / "model.onnx"
    place.write_text("mine")
    model = KernelRidge(RBF(1.0) + kernel, alpha=0.1, solver="cg").fit(X, Y)
    with pytest.raises(ModelFileError, match="ONNX cannot express"):
        export_onnx(model, place, force=True)
    with pytest.raises(ModelFileError, match="ONNX cannot express"):
        export_onnx(model, tmp_path / "other.onnx")
    assert place.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_a_disk_that_fails_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    place = tmp_path / "model.onnx"
    place.write_text("mine")

    def full(self, data):
        self.touch()
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(ModelFileError, match="no space left"):
        export_onnx(fitted(), place, force=True)
    assert place.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def two_faced(rows):
    """Another function of symbols than of numbers."""
    if isinstance(rows, np.ndarray):
        return rows
    return 1.01 * rows


def test_a_function_that_does_something_else_to_symbols_is_found_out():
    with pytest.raises(ModelFileError, match="away from the machine's own"):
        export_onnx(fitted(RBF(1.0).of(two_faced)))


class Doubled(KernelRidge):
    """A machine that predicts otherwise than the one it inherits from."""

    def predict(self, X):
        return 2.0 * super().predict(X)


def test_a_class_that_predicts_otherwise_is_found_out():
    with pytest.raises(ModelFileError, match="away from the machine's own"):
        export_onnx(Doubled("RBF(1.0)", alpha=0.1).fit(X, Y))


def test_without_the_package_onnx_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "mercer.onnx.proto", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelFileError, match=r"pip install 'mercer\[onnx\]'"):
        export_onnx(fitted())


def test_a_model_too_large_for_one_file_is_refused(monkeypatch):
    monkeypatch.setattr("mercer.onnx.export.LARGEST", 100)
    with pytest.raises(ModelFileError, match="one ONNX file holds 2 GiB"):
        export_onnx(fitted())
