"""An ONNX graph in the making, and the tensors in it, on which NumPy's functions write nodes.

A formula of a kernel is written for NumPy. Called with a `Tensor` in place of an array, every operation in it
becomes a node of the graph (`functions`), so that the formula is written down and not computed:

    >>> graph = Graph()
    >>> x = graph.input("X", 2)
    >>> y = np.exp(-0.5 * x**2)
    >>> [node.op for node in graph.nodes], y.shape
    (['Mul', 'Mul', 'Exp'], (None, 2))

What has no counterpart raises `NotExpressed` with the reason. The same operation on the same tensors is one
node, however often it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from mercer.typing import Integers, Labels

# Sizes of the axes; None is the number of new rows, which only the caller of the model knows.
Shape: TypeAlias = tuple[int | None, ...]
# What a formula combines with a tensor: another one, a number or an array.
Operand: TypeAlias = Any
Attribute: TypeAlias = int | tuple[int, ...]

NUMBERS = "float64"
FLAGS = "bool"
WHOLES = "int64"
TEXTS = "str"


class NotExpressed(Exception):
    """ONNX, or its runtime in double precision, has no counterpart; the message says of what."""


class Tensor(np.lib.mixins.NDArrayOperatorsMixin):
    """A value inside the graph: what the operators and functions of NumPy do to it becomes nodes."""

    def __init__(self, graph: Graph, name: str, shape: Shape, kind: str = NUMBERS) -> None:
        self.graph = graph
        self.name = name
        self.shape = shape
        self.kind = kind

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand, **options: Operand) -> Tensor:
        rule = self.graph.functions.get(ufunc)
        if rule is None or method != "__call__" or options:
            raise NotExpressed(f"it calls {ufunc.__name__}, which has no counterpart")
        written: Tensor = rule(*(self.graph.tensor(value) for value in inputs))
        return written

    def __array_function__(
        self,
        function: Callable[..., Operand],
        types: Operand,
        args: tuple[Operand, ...],
        options: dict[str, Operand],
    ) -> Tensor:
        rule = self.graph.functions.get(function)
        if rule is None:
            raise NotExpressed(f"it calls np.{function.__name__}, which has no counterpart")
        written: Tensor = rule(*args, **options)
        return written

    def _looks(self, *args: Operand, **options: Operand) -> NoReturn:
        raise NotExpressed("it looks at the values of its argument, which are not known yet")

    __array__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = _looks

    def __getitem__(self, key: Operand) -> Tensor:
        """Some columns, or a new axis: the rows themselves cannot be taken apart."""
        keys = list(key) if isinstance(key, tuple) else [key]
        dots = [i for i, k in enumerate(keys) if k is Ellipsis]
        for place in dots[:1]:
            missing = self.ndim - sum(k is not None for k in keys) + 1
            keys[place : place + 1] = [slice(None)] * missing
        out = self
        axis = 0
        for chosen in keys:
            if chosen is None:
                out = out.graph.unsqueeze(out, axis)
                axis += 1
            elif isinstance(chosen, slice) and chosen == slice(None):
                axis += 1
            else:
                out = out.graph.take(out, axis, chosen)
                axis = axis if isinstance(chosen, int | np.integer) else axis + 1
        return out

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self.graph.reduce("ReduceSum", self, axis, keepdims)

    def prod(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self.graph.reduce("ReduceProd", self, axis, keepdims)

    def mean(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self.graph.reduce("ReduceMean", self, axis, keepdims)

    def max(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self.graph.reduce("ReduceMax", self, axis, keepdims)

    def min(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return self.graph.reduce("ReduceMin", self, axis, keepdims)


@dataclass(frozen=True)
class Node:
    """One operation of ONNX."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...]


@dataclass
class Graph:
    """Nodes in the order in which they are computed, and the constants that they read, by name."""

    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Labels] = field(default_factory=dict)
    inputs: dict[str, Shape] = field(default_factory=dict)
    _known: dict[Hashable, Tensor] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[Callable[..., Operand], Callable[..., Tensor]]:
        """What is written for a function of NumPy."""
        # here, because the table is made of tensors
        from mercer.onnx.functions import FUNCTIONS

        return FUNCTIONS

    def input(self, name: str, columns: int) -> Tensor:
        """Rows that the caller gives, in double precision."""
        self.inputs[name] = (None, columns)
        return Tensor(self, name, (None, columns))

    def tensor(self, value: Operand) -> Tensor:
        """A tensor as it is; numbers and arrays as constants."""
        if isinstance(value, Tensor):
            return value
        array = np.asarray(value)
        if array.dtype.kind == "b":
            return self.constant(array, FLAGS)
        if array.dtype.kind not in "fiu":
            raise NotExpressed(f"it combines its argument with {type(value).__name__}")
        return self.constant(array.astype(np.float64), NUMBERS)

    def whole_numbers(self, values: Integers | list[int]) -> Tensor:
        """Positions and axes."""
        return self.constant(np.asarray(values, dtype=np.int64), WHOLES)

    def constant(self, array: Labels, kind: str) -> Tensor:
        key = (kind, array.shape, tuple(array.tolist()) if kind == TEXTS else array.tobytes())
        if key not in self._known:
            name = f"c{len(self.constants)}"
            self.constants[name] = array
            self._known[key] = Tensor(self, name, array.shape, kind)
        return self._known[key]

    def node(
        self,
        op: str,
        *inputs: Tensor,
        shape: Shape,
        kind: str = NUMBERS,
        results: int = 1,
        **attributes: Attribute,
    ) -> Tensor:
        """The first result of an operation; the same operation on the same tensors is written once."""
        names = tuple(t.name for t in inputs)
        key = (op, names, tuple(sorted(attributes.items())))
        if key not in self._known:
            outputs = tuple(f"t{len(self.nodes)}{'abc'[i] if i else ''}" for i in range(results))
            self.nodes.append(Node(op, names, outputs, key[2]))
            self._known[key] = Tensor(self, outputs[0], shape, kind)
        return self._known[key]

    # ── what is more than one rule for all axes ─────────────────────────────────────────────────────────────

    def pointwise(self, op: str, *inputs: Tensor, kind: str = NUMBERS, **attributes: Attribute) -> Tensor:
        """An operation on every entry, of several tensors after broadcasting."""
        shape: Shape = ()
        for t in inputs:
            shape = broadcast(shape, t.shape)
        return self.node(op, *inputs, shape=shape, kind=kind, results=1, **attributes)

    def scaled(self, t: Tensor, factor: float) -> Tensor:
        """A tensor times a number.

        onnxruntime moves a plain number that multiplies a matrix into the matrix product beside it, where it
        has single precision. So a matrix is multiplied by a row of equal numbers, and a column by a matrix.
        """
        if t.ndim != 2 or t.shape[1] is None:
            return self.pointwise("Mul", t, self.tensor(factor))
        if t.shape[1] == 1:
            return self.matmul(t, np.array([[factor]]))
        return self.pointwise("Mul", t, self.tensor(np.full((1, t.shape[1]), factor)))

    def number(self, t: Tensor) -> float | None:
        """The value of a constant that is one number."""
        array = self.constants.get(t.name)
        if array is None or array.size != 1 or t.kind != NUMBERS:
            return None
        return float(array.item())

    def reduce(self, op: str, t: Tensor, axis: int | None, keepdims: bool = False) -> Tensor:
        if axis is None or t.shape[axis] is None:
            raise NotExpressed("it brings all rows together, and new rows are looked at one by one")
        place = axis % t.ndim
        left = list(t.shape)
        left[place : place + 1] = [1] if keepdims else []
        shape = tuple(left)
        if op == "ReduceSum":
            return self.node(op, t, self.whole_numbers([place]), shape=shape, keepdims=int(keepdims))
        return self.node(op, t, shape=shape, axes=(place,), keepdims=int(keepdims))

    def unsqueeze(self, t: Tensor, axis: int) -> Tensor:
        shape = (*t.shape[:axis], 1, *t.shape[axis:])
        return self.node("Unsqueeze", t, self.whole_numbers([axis]), shape=shape, kind=t.kind)

    def take(self, t: Tensor, axis: int, chosen: int | slice | list[int] | Integers) -> Tensor:
        """Entries along an axis by their places; an integer drops the axis."""
        size = t.shape[axis] if axis < t.ndim else None
        if size is None or isinstance(chosen, Tensor):
            raise NotExpressed("it picks single rows, and new rows are looked at one by one")
        places = np.arange(size)[chosen]
        shape = (*t.shape[:axis], *np.shape(places), *t.shape[axis + 1 :])
        index = self.constant(np.asarray(places, dtype=np.int64), WHOLES)
        return self.node("Gather", t, index, shape=shape, kind=t.kind, axis=axis)

    def matmul(self, a: Operand, b: Operand) -> Tensor:
        left = self.tensor(a)
        right = self.tensor(b)
        if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[1] != right.shape[0]:
            raise NotExpressed(f"it multiplies matrices of shapes {left.shape} and {right.shape}")
        return self.node("MatMul", left, right, shape=(left.shape[0], *right.shape[1:]))

    def concat(self, parts: list[Tensor], axis: int) -> Tensor:
        sizes = [part.shape[axis] for part in parts]
        if None in sizes:
            raise NotExpressed("it puts rows below one another")
        shape = list(parts[0].shape)
        shape[axis] = sum(size for size in sizes if size is not None)
        return self.node("Concat", *parts, shape=tuple(shape), axis=axis)

    def bytes(self) -> int:
        """What the constants take."""
        return sum(array.nbytes for array in self.constants.values())


def as_tensor(value: Operand) -> Tensor:
    """What a function of NumPy made of tensors, by its own name: type checkers take it for an array."""
    assert isinstance(value, Tensor)
    return value


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of two tensors that are combined entry by entry."""
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b, strict=True)
    out: list[int | None] = []
    for left, right in pairs:
        if left != right and 1 not in (left, right):
            raise NotExpressed(f"it combines arrays of shapes {a} and {b}")
        out.append(right if left == 1 else left)
    return tuple(out)
