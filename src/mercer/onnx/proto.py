"""A graph as ONNX's own objects, and the comparison of what they compute with the machine."""

from __future__ import annotations

import warnings
from importlib.metadata import version

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mercer.errors import MercerError, ModelFileError
from mercer.onnx.graph import FLAGS, NUMBERS, TEXTS, WHOLES, Graph, Node, Shape
from mercer.onnx.machines import Outputs
from mercer.typing import Array, Labels

# Operators of 2022, which every runtime of today has.
OPSET = 17
IR_VERSION = 8
INPUT = "X"
# Results that are compared by the numbers they come from.
LABEL = "label"
# Of the largest value of an output: how far graph and machine may be apart here, a tenth of what is promised.
AGREEMENT = 1e-7
# A runtime may leave out the addition of a constant that is 0 in single precision.
SMALLEST = 1e-30
# Rows that are compared, and as many points halfway between two of them.
MOST_COMPARED = 32

_KINDS = {
    NUMBERS: TensorProto.DOUBLE,
    FLAGS: TensorProto.BOOL,
    WHOLES: TensorProto.INT64,
    TEXTS: TensorProto.STRING,
}


def as_proto(graph: Graph, outputs: Outputs, machine: str, kernel: str) -> onnx.ModelProto:
    """The model: nodes, constants, one input of rows, and the outputs by their names."""
    nodes = [_node(node) for node in graph.nodes]
    nodes += [helper.make_node("Identity", [out.tensor.name], [name]) for name, out in outputs.items()]
    results = []
    for name, out in outputs.items():
        shape = _shape(out.tensor.shape)
        results.append(helper.make_tensor_value_info(name, _KINDS[out.tensor.kind], shape, out.meaning))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, _shape(shape))
        for name, shape in graph.inputs.items()
    ]
    read = {name for node in nodes for name in node.input}
    constants = [_constant(name, array) for name, array in graph.constants.items() if name in read]
    made = helper.make_graph(nodes, machine, inputs, results, constants)
    opset = [helper.make_opsetid("", OPSET)]
    proto = helper.make_model(made, opset_imports=opset, ir_version=IR_VERSION)
    proto.producer_name = "mercer"
    proto.producer_version = version("mercer")
    helper.set_model_props(proto, {"machine": machine, "kernel": kernel})
    onnx.checker.check_model(proto)
    return proto


def _node(node: Node) -> onnx.NodeProto:
    made = helper.make_node(node.op, list(node.inputs), list(node.outputs))
    made.attribute.extend(helper.make_attribute(name, value) for name, value in node.attributes)
    return made


def _shape(shape: Shape) -> list[int | str]:
    return ["rows" if size is None else size for size in shape]


def _constant(name: str, array: Labels) -> onnx.TensorProto:
    if array.dtype.kind == "O":
        made = onnx.TensorProto(name=name, data_type=TensorProto.STRING, dims=array.shape)
        made.string_data.extend(str(text).encode() for text in array.tolist())
        return made
    return numpy_helper.from_array(np.asarray(array, order="C"), name)


def compare(proto: onnx.ModelProto, outputs: Outputs, known: Array) -> None:
    """Refuse a graph that does not compute what the machine says, on rows that it keeps and between them."""
    names = [name for name in outputs if name != LABEL]
    rows = between(known)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = ReferenceEvaluator(proto).run(names, {INPUT: rows})
        for name, values in zip(names, found, strict=True):
            _require_same(name, np.asarray(values), _asked(outputs, name, rows))


def _asked(outputs: Outputs, name: str, rows: Array) -> Array | None:
    try:
        return np.asarray(outputs[name].ask(rows), dtype=np.float64)
    except MercerError:
        # the machine refuses these rows, which the graph cannot
        return None


def _require_same(name: str, found: Array, wanted: Array | None) -> None:
    if wanted is None:
        return
    if found.shape != wanted.shape:
        raise ModelFileError(
            f"The graph gives {name} of shape {found.shape}, and the machine of shape {wanted.shape}. A "
            "class of your own that inherits from a machine, or a function that depends on how many "
            "rows it sees, is not written as ONNX."
        )
    scale = float(np.abs(wanted).max(initial=0.0))
    if 0.0 < scale < SMALLEST:
        raise ModelFileError(
            f"ONNX cannot express {name}, of which {scale:.3g} is the largest: runtimes take constants that "
            "small for 0. Fit with targets or a kernel of a usual size."
        )
    apart = float(np.abs(found - wanted).max(initial=0.0))
    if not apart <= AGREEMENT * max(scale, np.finfo(float).tiny):
        raise ModelFileError(
            f"The graph gives {name} up to {apart:.3g} away from the machine's own, where {scale:.3g} is the "
            "largest: too far for an export. Either a Python function in the kernel does something else to "
            "symbols than to numbers, or the model is so ill-conditioned that the order of a sum matters; a "
            "larger alpha or noise helps then."
        )


def between(known: Array) -> Array:
    """Some of the rows, and points halfway between two of them."""
    places = np.unique(np.linspace(0, len(known) - 1, MOST_COMPARED).astype(int))
    some = known[places]
    return np.vstack([some, 0.5 * (some + np.roll(some, 1, axis=0))])
