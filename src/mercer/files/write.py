"""Values to nodes: what a model holds, as JSON and tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from datetime import date, datetime
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from mercer.errors import ModelFileError
from mercer.files.nodes import (
    BIT_GENERATORS,
    GLOBAL_STATE,
    SCALARS,
    TENSOR_TYPES,
    Node,
    Value,
    unreadable,
)
from mercer.files.registry import REGISTRY, Fields, MachineForm
from mercer.kernels.base import Kernel
from mercer.kernels.things.sparse_map import SparseMap
from mercer.machines.shared.kept import READ


class Writer:
    """Values to nodes; arrays go to `tensors`, each once."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        # By id, with the array itself, so that no id is used again.
        self._written: dict[int, tuple[np.ndarray, Node]] = {}
        self._inside_things = False
        self._pools: dict[str, list[np.ndarray]] = {}
        self._pooled: dict[str, int] = {}

    def finish(self) -> None:
        """Write what arrays inside of things share."""
        for name, parts in self._pools.items():
            self.tensors[f"things.{name}"] = np.concatenate(parts)

    def write(self, value: Value, where: str) -> Node:
        """The node of a value; `where` is its place in the model, for messages and names of tensors."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value
        if kind is float:
            return _float_node(value)
        if kind is list:
            return [self.write(item, f"{where}.{i}") for i, item in enumerate(value)]
        if kind in _WRITE:
            return _WRITE[kind](self, value, where)
        for base, write in _WRITE_KIND.items():
            if isinstance(value, base):
                return write(self, value, where)
        machine = REGISTRY.machine_of(value)
        if machine is not None:
            return {"is": "machine", **self.machine(machine, value, where)}
        form = REGISTRY.form_of(value)
        if form is None:
            refuse_value(value, where)
        return {"is": "object", "of": form.name, "fields": self._fields(form.fields_of(value), where)}

    def _fields(self, fields: Fields, where: str) -> Node:
        return {
            name: self.write(value, f"{where}.{name}" if where else name) for name, value in fields.items()
        }

    def machine(self, form: MachineForm, model: Value, where: str) -> dict[str, Node]:
        """A machine: its parameters, and what its fit left in it."""
        parameters = model.get_params(deep=False)
        fitted = {name: value for name, value in vars(model).items() if name not in (*parameters, READ)}
        if isinstance(fitted.get("feature_map_"), SparseMap):
            # it follows from the rows that are kept, and is made again when the file is loaded
            del fitted["feature_map_"]
        for name in fitted:
            if name not in form.facts:
                refuse_undeclared(name, form.name)
        return {
            "of": form.name,
            "parameters": self._fields(parameters, where),
            "fitted": self._fields(fitted, where),
        }

    def tensor(self, array: np.ndarray, where: str) -> str:
        """Keep an array in C order under a name of its own."""
        name = where
        count = 1
        while name in self.tensors:
            count += 1
            name = f"{where}#{count}"
        self.tensors[name] = np.ascontiguousarray(array)
        return name

    def array(self, value: np.ndarray, where: str) -> Node:
        if value.dtype == object:
            return self._things(value, where)
        if value.dtype.kind == "U":
            return self._words(value, where)
        if value.dtype.kind == "M":
            unit = np.datetime_data(value.dtype)[0]
            return {"is": "dates", "unit": unit, "numbers": self.array(value.view(np.int64), where)}
        if value.dtype.newbyteorder("=") not in TENSOR_TYPES:
            refuse_value(value, where)
        if self._inside_things:
            return self._part(value)
        known = self._written.get(id(value))
        if known is None:
            known = (value, self._new_array(value, where))
            self._written[id(value)] = known
        return known[1]

    def _new_array(self, value: np.ndarray, where: str) -> Node:
        # safetensors stores C order only: an array in Fortran's order is stored as its transpose.
        turned = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        stored = value.T if turned else value
        node = {"is": "array", "tensor": self.tensor(stored, where)}
        if turned:
            node["order"] = "F"
        return node

    def _part(self, value: np.ndarray) -> Node:
        """An array inside a thing: a run of the numbers that all things of the file share."""
        name = value.dtype.name
        start = self._pooled.get(name, 0)
        self._pools.setdefault(name, []).append(np.ravel(value))
        self._pooled[name] = start + value.size
        return {"is": "part", "dtype": name, "start": start, "shape": list(value.shape)}

    def _things(self, value: np.ndarray, where: str) -> Node:
        """An array of objects: its items as JSON, in a tensor of bytes, so that the header stays small."""
        outer = self._inside_things
        self._inside_things = True
        items = [self.write(item, f"{where}.{i}") for i, item in enumerate(value.ravel().tolist())]
        self._inside_things = outer
        return {"is": "things", "shape": list(value.shape), "json": self._json(items, where)}

    def _words(self, value: np.ndarray, where: str) -> Node:
        """An array of text of one width."""
        width = value.dtype.itemsize // 4
        items = self._json(value.ravel().tolist(), where)
        return {"is": "words", "width": width, "shape": list(value.shape), "json": items}

    def _json(self, items: list[Node], where: str) -> Node:
        if self._inside_things:
            return items
        text = json.dumps(items, allow_nan=False, separators=(",", ":"))
        return self.tensor(np.frombuffer(text.encode("ascii"), dtype=np.uint8), where)

    def scalar(self, value: np.generic, where: str) -> Node:
        """A number of NumPy's, which remembers its type."""
        if isinstance(value, np.str_):
            return {"is": "scalar", "dtype": "str", "value": str(value)}
        if isinstance(value, np.datetime64):
            return {"is": "scalar", "dtype": str(value.dtype), "value": int(value.astype(np.int64))}
        if value.dtype.name not in SCALARS:
            refuse_value(value, where)
        return {"is": "scalar", "dtype": value.dtype.name, "value": self.write(value.item(), where)}

    def items(self, value: Any, where: str) -> Node:
        """A tuple, or a set, whose items are put in an order that does not depend on the process."""
        kind = type(value).__name__
        items = list(value)
        if kind != "tuple":
            items.sort(key=repr)
        return {"is": kind, "items": [self.write(item, f"{where}.{i}") for i, item in enumerate(items)]}

    def dictionary(self, value: dict[Hashable, Value], where: str) -> Node:
        pairs = [
            [self.write(key, f"{where}.{i}"), self.write(item, f"{where}.{i}")]
            for i, (key, item) in enumerate(value.items())
        ]
        return {"is": "dict", "items": pairs}

    def sparse(self, value: sparse.csr_array, where: str) -> Node:
        if value.format != "csr":
            refuse_value(value, where)
        return {
            "is": "csr",
            "old": isinstance(value, sparse.spmatrix),
            "shape": [int(size) for size in value.shape],
            "data": self.array(value.data, f"{where}.data"),
            "indices": self.array(value.indices, f"{where}.indices"),
            "indptr": self.array(value.indptr, f"{where}.indptr"),
        }

    def kernel(self, value: Kernel, where: str) -> Node:
        text = str(value)
        problem = unreadable(value, text)
        if problem:
            raise ModelFileError(
                f"{where} is {text:.200}, and {problem}. A model file holds data and no code: build the "
                "kernel from the leaves and rules of the library, or keep the Python that makes it and fit "
                'again, or fit on its Gram matrix with kernel="precomputed".'
            )
        return {"is": "kernel", "text": text}

    def moment(self, value: datetime, where: str) -> Node:
        """A date with a time; those of pandas become Python's, which they are to the microsecond."""
        if value != value or getattr(value, "nanosecond", 0) != 0:
            raise ModelFileError(
                f"{where} is {value!r}, which Python's datetime cannot hold. Round it to microseconds, or "
                "leave it missing (None), before the fit."
            )
        plain = getattr(value, "to_pydatetime", lambda: value)()
        return {"is": "datetime", "text": plain.isoformat()}

    def generator(self, value: np.random.Generator | np.random.RandomState, where: str) -> Node:
        if value is GLOBAL_STATE:
            return {"is": "random", "of": "global"}
        state: Any
        if isinstance(value, np.random.RandomState):
            of, state = "RandomState", value.get_state(legacy=False)
        else:
            of, state = "Generator", value.bit_generator.state
        if state["bit_generator"] not in BIT_GENERATORS:
            refuse_value(value, where)
        return {"is": "random", "of": of, "state": self.dictionary(state, where)}


def _float_node(value: float) -> Node:
    if math.isfinite(value):
        return value
    return {"is": "float", "text": repr(value)}


def refuse_value(value: Value, where: str) -> NoReturn:
    """Say that a value is not of the closed set, and what to do."""
    what = f"{value!r:.80} ({type(value).__module__}.{type(value).__qualname__})"
    name = where.split(".")[0]
    if callable(value):
        raise ModelFileError(
            f"{name} holds a Python function, {what}. A model file holds data and no code: set it to None "
            f"by model.set_params({name}=None) if predictions do not need it, or choose one of the library's "
            "own by name before the fit."
        )
    raise ModelFileError(
        f"{where} is {what}, which a model file cannot hold: it takes numbers, text, dates, arrays, sparse "
        "rows, sets, dictionaries, graphs of mercer.Graph, kernels and mercer's own machines. Convert it "
        "before the fit."
    )


def refuse_undeclared(name: str, machine: str) -> NoReturn:
    """An attribute that no fact is declared of cannot be saved."""
    raise ModelFileError(
        f"{machine} has the attribute {name!r:.60}, which a model file does not hold. What was added to a "
        f"machine by hand is not saved: delete it first (del model.{name:.60})."
    )


_WRITE: dict[type, Callable[[Writer, Any, str], Node]] = {
    tuple: Writer.items,
    set: Writer.items,
    frozenset: Writer.items,
    dict: Writer.dictionary,
    np.ndarray: Writer.array,
    bytes: lambda self, value, where: {"is": "bytes", "hex": value.hex()},
    slice: lambda self, value, where: {
        "is": "slice",
        "items": [self.write(v, where) for v in (value.start, value.stop, value.step)],
    },
    date: lambda self, value, where: {"is": "date", "text": value.isoformat()},
}
# By the first class that a value is an instance of.
_WRITE_KIND: dict[type, Callable[[Writer, Any, str], Node]] = {
    Kernel: Writer.kernel,
    np.generic: Writer.scalar,
    datetime: Writer.moment,
    np.random.Generator: Writer.generator,
    np.random.RandomState: Writer.generator,
    sparse.sparray: Writer.sparse,
    sparse.spmatrix: Writer.sparse,
}
