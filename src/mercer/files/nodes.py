"""Nodes: how values are spelt in JSON, and the closed tables of names that a file may use.

    null, true, 3, 2.5, "text", [ … ]      themselves
    {"is": "array", "tensor": "alpha_"}    an array of numbers in the body of the file, bit for bit
    {"is": "kernel", "text": "RBF(1.5)"}   a kernel by its text
    {"is": "object", "of": "Certificate"}  one of the small objects of `files.forms`, field by field
    {"is": "machine", "of": "SVC"}         a machine of `files.machines`: parameters and what its fit found

The others are in the tables of `files.write` and `files.read`. No name in a file is ever imported or called.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from mercer.errors import ModelFileError, ParseError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.text import parse

# What json reads and writes: None, bool, int, float, str, and lists and dictionaries of them.
Node: TypeAlias = Any
# A value of the closed set.
Value: TypeAlias = Any

DEEPEST = 64
TENSOR_TYPES = tuple(
    np.dtype(name)
    for name in (
        *("float64", "float32", "float16", "bool"),
        *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    )
)
SCALARS = {dtype.name: dtype for dtype in TENSOR_TYPES}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
BIT_GENERATORS: dict[str, type[np.random.BitGenerator]] = {
    "MT19937": np.random.MT19937,
    "PCG64": np.random.PCG64,
}
MERSENNE_WORDS = 624
# NumPy's own generator, which scikit-learn takes where no other is named.
GLOBAL_STATE: np.random.RandomState = check_random_state(None)


def from_library(kind: type) -> bool:
    """Whether a class is part of mercer."""
    return kind.__module__.split(".")[0] == "mercer"


def unreadable(kernel: Kernel, text: str) -> str:
    """Why a kernel cannot be had again from its text; empty where it can."""
    foreign = [type(leaf).__name__ for leaf in leaves(kernel) if not from_library(type(leaf))]
    if foreign:
        return f"{foreign[0]} is a kernel of your own, which the file could not bring along"
    try:
        again = parse(text)
    except ParseError as error:
        return error.problem.rstrip(".")
    if again != kernel:
        return "its text reads as another kernel"
    return ""


def leaves(kernel: Kernel) -> list[Leaf]:
    """The leaves of an expression."""
    found: list[Leaf] = []
    left: list[object] = [kernel]
    while left:
        part = left.pop()
        if isinstance(part, Leaf):
            found.append(part)
        if isinstance(part, Kernel):
            left.extend(vars(part).values())
        elif isinstance(part, tuple | list):
            left.extend(part)
    return found


def wrong(where: str, what: str) -> NoReturn:
    """Refuse a file, with the place and what is wrong there."""
    raise ModelFileError(
        f"The model file is not sound: {where} {what}. It was changed after it was saved, or written by "
        "something else: take it from its source again."
    )


def field(node: Node, name: str, kind: type, where: str) -> Any:
    """A field of a node, which must be there and of its type."""
    if type(node) is not dict or type(node.get(name)) is not kind:
        wrong(where, f"has no {name} of type {kind.__name__}")
    return node[name]


def sizes(node: Node, where: str) -> tuple[int, ...]:
    """The shape that a node states."""
    shape = field(node, "shape", list, where)
    if len(shape) > 8 or not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        wrong(where, f"has the shape {shape!r:.60}")
    return tuple(shape)


def read_json(text: bytes, where: str) -> Node:
    """JSON without numbers that are none and without a key that comes twice."""

    def pairs(found: list[tuple[str, Node]]) -> dict[str, Node]:
        out = dict(found)
        if len(out) != len(found):
            wrong(where, "has a key twice")
        return out

    def constant(name: str) -> NoReturn:
        wrong(where, f"has {name}, which is no JSON")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        wrong(where, f"is no JSON ({error!r:.80})")
