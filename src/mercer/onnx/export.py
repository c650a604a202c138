"""`mercer.export_onnx`: a fitted machine as an ONNX graph that other programs run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import places
from mercer.errors import ModelFileError
from mercer.memory import say_bytes
from mercer.onnx import leaves, processes, rules
from mercer.onnx.exported import Exported
from mercer.onnx.graph import Graph
from mercer.onnx.machines import Expanded, expanded, outputs_of, require_known
from mercer.sparse import dense
from mercer.theory.functions import inner
from mercer.typing import Array

if TYPE_CHECKING:
    pass

# They say what each kernel and each machine writes.
RULES = (leaves, rules, processes)
# One protocol buffer holds 2 GiB; some room is left for the nodes.
LARGEST = 2**31 - 2**24


def export_onnx(
    model: object, path: str | os.PathLike[str] | None = None, *, force: bool = False
) -> Exported:
    """A fitted machine as an ONNX graph: input "X" in double precision, outputs as the machine has them.

    Regressors have "mean", and Gaussian processes "std" besides; classifiers "label", "decision" and, where
    the machine has them, "probabilities". The graph holds the formula of the kernel, so that a kernel of your
    own can be exported; what ONNX cannot express is refused by a `ModelFileError` that names the part. Before
    anything is written, the graph is compared with the machine on rows that it keeps.

    Without a path nothing is written, and the graph is `model` of the result. A file appears whole or not at
    all; one that exists is replaced only with `force`. It needs the package onnx (`pip install
    'mercer[onnx]'`).

    >>> import mercer
    >>> model = mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> exported = mercer.export_onnx(model)
    >>> exported.outputs, exported.rows
    ({'mean': 'predictions'}, 3)
    """
    try:
        from mercer.onnx.proto import as_proto, compare
    except ImportError as error:
        raise ModelFileError(
            f"export_onnx needs the package onnx ({error}). Install it with: pip install 'mercer[onnx]'"
        ) from error
    place = None if path is None else Path(path)
    if place is not None:
        places.check_place(place, force=force, example="model.onnx", error=ModelFileError)
    _require_fit(model)
    require_known(model)
    f = expanded(inner(model))
    known = as_numbers(f)
    graph = Graph()
    outputs = outputs_of(model, graph.input("X", known.shape[1]))
    if graph.bytes() > LARGEST:
        raise ModelFileError(
            f"The rows and coefficients of this model take {say_bytes(graph.bytes())}, and one ONNX "
            "file holds 2 GiB. Fit a machine with landmarks: FalkonRegressor, FalkonClassifier, or "
            "approximation=Nystroem()."
        )
    made = as_proto(graph, outputs, type(model).__name__, str(f.kernel))
    compare(made, outputs, known)
    exported = Exported(
        type(model).__name__,
        {name: output.meaning for name, output in outputs.items()},
        len(known),
        made.ByteSize(),
        made,
        place,
    )
    if place is not None:
        _write(made.SerializeToString(deterministic=True), place, force=force)
    return exported


def _write(data: bytes, place: Path, *, force: bool) -> None:
    try:
        with places.whole_file(place, force=force, error=ModelFileError) as draft:
            draft.write_bytes(data)
    except OSError as error:
        raise ModelFileError(f"{place} could not be written: {error}.") from error


def _require_fit(model: object) -> None:
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(
            f"mercer.export_onnx takes the machines of mercer; got a {type(model).__module__}."
            f"{type(model).__qualname__}. Export the last step of a pipeline, fitted on what comes before it."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelFileError(
            f"This {type(model).__name__} is not fitted yet. Call fit before export_onnx."
        ) from None


def as_numbers(f: Expanded) -> Array:
    """The rows or landmarks of a machine as numbers; the input of the graph has no others."""
    if f.rows.is_opaque:
        raise ModelFileError(
            f"{f.kernel!r} compares things that are not rows of numbers, and the input of an ONNX graph is a "
            "table of numbers. Keep the model with mercer.save."
        )
    data = f.rows.data
    if data.dtype.kind != "O":
        return np.asarray(dense(f.rows.vectors), dtype=np.float64)
    try:
        return np.array([[np.nan if cell is None else float(cell) for cell in row] for row in data])
    except (TypeError, ValueError):
        raise ModelFileError(
            f"The table of this model has columns that are not numbers, and the input of an ONNX graph is a "
            f"table of numbers: {f.kernel!r}. Keep the model with mercer.save."
        ) from None
