"""`mercer.save`: a fitted machine as one file of data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ModelFileError
from mercer.files import tables
from mercer.files.container import FORMAT, check_place, write_file
from mercer.files.facts import parsed
from mercer.files.nodes import Value
from mercer.files.registry import MachineForm
from mercer.files.write import Writer
from mercer.machines.gaussian_process.compact import factor_bytes, without_factors
from mercer.memory import say_bytes

LANDMARKS = "landmarks_"


@dataclass(frozen=True)
class Saved:
    """What `mercer.save` wrote: where, how large, and which rows of the training data are in the file.

    `rows` has the number of rows by the attribute that holds them; `factor_bytes` is what `compact=True`
    would leave out, 0 if there is nothing.
    """

    path: Path
    machine: str
    bytes: int
    rows: dict[str, int]
    factor_bytes: int

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.machine}, {say_bytes(self.bytes)}"]
        lines += self._about_rows()
        if self.factor_bytes:
            lines.append(
                f"{say_bytes(self.factor_bytes)} of it are n × n factors; compact=True leaves them out, and "
                "they are computed again when they are needed."
            )
        return "\n".join(lines)

    def _about_rows(self) -> list[str]:
        if not self.rows:
            return ["No rows of the training data are inside."]
        inside = ", ".join(f"{count} in {name}" for name, count in self.rows.items())
        if all(name.endswith(LANDMARKS) for name in self.rows):
            return [
                f"Landmarks are inside ({inside}). They are rows of the training data, unless they are "
                'points of their own (landmarks="kmeans" takes centres of clusters).'
            ]
        return [
            f"Rows of the training data are inside ({inside}): a kernel machine predicts by comparing with "
            "them. Who has the file has these rows.",
            "A compressed form: FalkonRegressor and FalkonClassifier keep their landmarks alone, "
            "RandomFeatures before a linear model keeps no row.",
        ]


def save(model: Value, path: str | os.PathLike[str], *, force: bool = False, compact: bool = False) -> Saved:
    """Write a fitted machine to a file of data, from which `mercer.load` has it again, bit for bit.

    The file is a safetensors file: arrays, and a header with the machine, its parameters, the kernel's text
    and checksums (`docs/files.md`). It appears whole or not at all; one that exists is replaced only with
    `force`. `compact` leaves out the n × n factors of a Gaussian process, which are computed again when they
    are needed. Kernels and losses of your own, and other Python functions, cannot be saved.

    >>> import tempfile
    >>> import mercer
    >>> model = mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = mercer.save(model, f"{folder}/model.mercer")
    ...     again = mercer.load(saved.path)
    >>> saved.rows, bool(again.predict([[0.5]]) == model.predict([[0.5]]))
    ({'X_fit_': 3}, True)
    """
    form = _form_of(model)
    place = Path(path)
    check_place(place, force=force)
    written = _without_factors(model) if compact else model
    writer = Writer()
    parts = writer.machine(form, written, "")
    header = {"format": FORMAT, "mercer": version("mercer"), "machine": parts.pop("of"), **parts}
    writer.finish()
    size = write_file(place, header, writer.tensors, force=force)
    return Saved(place, form.name, size, dict(kept_rows(written)), factor_bytes(_inner(written)))


def _inner(model: Value) -> Value:
    """The machine inside of a model of a table; else the model itself."""
    return getattr(model, "machine_", model)


def _without_factors(model: Value) -> Value:
    inner = _inner(model)
    if inner is model:
        return without_factors(model)
    other = copy(model)
    other.machine_ = without_factors(inner)
    return other


def _form_of(model: Value) -> MachineForm:
    form = tables.machine_of(model)
    if form is None:
        raise ModelFileError(
            f"mercer.save takes the machines of mercer and of mercer.sklearn; got a "
            f"{type(model).__module__}.{type(model).__qualname__}. Save the steps of a pipeline one by one; "
            "a class of your own that inherits from a machine is code, which a model file does not hold."
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelFileError(f"This {form.name} is not fitted yet. Call fit before save.") from None
    return form


def kept_rows(model: Value, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Where rows of fit are kept, by name, and how many: in the machine, and in those that it holds."""
    form = tables.machine_of(model)
    if form is None:
        return
    for name, fact in form.facts.items():
        value: Value = vars(model).get(name)
        kind = parsed(fact)[0].kind
        if kind == "machine":
            for part in value if isinstance(value, list) else [value]:
                yield from kept_rows(part, f"{prefix}{name}.")
        elif kind == "rows" and _holds_data(value):
            yield f"{prefix}{name}", int(value.shape[0])


def _holds_data(value: Value) -> bool:
    if sparse.issparse(value):
        return bool(value.nnz)
    return isinstance(value, np.ndarray) and value.size > 0
