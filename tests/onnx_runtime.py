"""Graphs in onnxruntime, on one thread: what other programs would compute."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

from mercer.arrays import Rows
from mercer.onnx.export import Exported
from mercer.onnx.graph import Graph, Tensor
from mercer.onnx.machines import Output
from mercer.onnx.proto import as_proto
from mercer.onnx.writing import Place, spread, write


def run(model: onnx.ModelProto, X: np.ndarray) -> dict[str, np.ndarray]:
    """Every output of a graph that passes ONNX's own checks."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


def outputs(exported: Exported, X: np.ndarray) -> dict[str, np.ndarray]:
    return run(exported.model, X)


def kernel_values(kernel, new: np.ndarray, known: np.ndarray) -> dict[str, np.ndarray]:
    """k(new, known), k(x, x) of one observation, and k(x, z) at z = x of two, by a graph of the kernel."""
    graph = Graph()
    at = Place(graph.input("X", known.shape[1]), Rows(known, "Z"))
    zeros = 0.0 * at.x[:, [0]]
    made = {
        "pairs": spread(write(kernel, at), at),
        "own": write(kernel, at.itself(observed=True)) + zeros,
        "latent": write(kernel, at.itself(observed=False)) + zeros,
    }
    named = {name: Output(_tensor(value), name, np.asarray) for name, value in made.items()}
    return run(as_proto(graph, named, "kernel", str(kernel)), new)


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def apart(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, as a share of the largest value."""
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), np.finfo(float).tiny))
