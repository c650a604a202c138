"""What is written for NumPy's functions: the table by which a formula becomes nodes.

onnxruntime has Atan, Sinh, Cosh and others in single precision alone, and ONNX has no expm1 and log1p: those
are written with other functions, by formulas that keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from mercer.onnx.graph import FLAGS, NUMBERS, Graph, NotExpressed, Operand, Tensor, as_tensor

# TensorProto.FLOAT and DOUBLE, as Cast names them.
_SINGLE = 1
_DOUBLE = 11


def _pointwise(op: str, kind: str = NUMBERS) -> Callable[..., Tensor]:
    """A function of numbers; true counts as 1 and false as 0, as in NumPy."""

    def write(*inputs: Tensor) -> Tensor:
        return inputs[0].graph.pointwise(op, *(numbers(t) for t in inputs), kind=kind)

    return write


def _logical(op: str) -> Callable[..., Tensor]:
    def write(*inputs: Tensor) -> Tensor:
        if any(t.kind != FLAGS for t in inputs):
            raise NotExpressed("it takes numbers for true and false")
        return inputs[0].graph.pointwise(op, *inputs, kind=FLAGS)

    return write


def numbers(t: Tensor) -> Tensor:
    """True as 1 and false as 0; numbers as they are."""
    if t.kind == FLAGS:
        return t.graph.pointwise("Cast", t, to=_DOUBLE)
    return t


def where(condition: Operand, a: Operand, b: Operand) -> Tensor:
    graph = graph_of(condition, a, b)
    flags = graph.tensor(condition)
    if flags.kind != FLAGS:
        raise NotExpressed("it takes numbers for true and false")
    return graph.pointwise("Where", flags, numbers(graph.tensor(a)), numbers(graph.tensor(b)))


def graph_of(*values: Operand) -> Graph:
    """The graph in which the tensors among these values are."""
    return next(value.graph for value in values if isinstance(value, Tensor))


def is_nan(x: Tensor) -> Tensor:
    return x.graph.pointwise("IsNaN", x, kind=FLAGS)


def arctan2_upper(a: Operand, b: Operand) -> Tensor:
    """The angle of (b, a) for b ≥ 0: found in single precision, and then put right.

    With y₀ near the angle y, tan(y - y₀) = (a cos y₀ - b sin y₀) / (b cos y₀ + a sin y₀); y - y₀ is below
    1e-6, where it is its own tangent to rounding.
    """
    graph = graph_of(a, b)
    ratio = graph.pointwise("Cast", graph.tensor(a) / b, to=_SINGLE)
    near = graph.pointwise("Cast", graph.pointwise("Atan", ratio), to=_DOUBLE)
    sine = np.sin(near)
    cosine = np.cos(near)
    found: Tensor = near + (a * cosine - b * sine) / (b * cosine + a * sine)
    return found


def _times(a: Tensor, b: Tensor) -> Tensor:
    graph = a.graph
    a = numbers(a)
    b = numbers(b)
    for factor, other in ((a, b), (b, a)):
        value = graph.number(factor)
        if value is not None and factor.ndim <= other.ndim:
            return graph.scaled(other, value)
    return graph.pointwise("Mul", a, b)


def _over(a: Tensor, b: Tensor) -> Tensor:
    value = a.graph.number(b)
    if value is None or b.ndim > a.ndim or abs(value) < 1e-300:
        return a.graph.pointwise("Div", numbers(a), numbers(b))
    return a.graph.scaled(numbers(a), 1.0 / value)


def _power(base: Tensor, exponent: Tensor) -> Tensor:
    p = base.graph.number(exponent)
    if p == 2.0:
        return as_tensor(base * base)
    if p == 0.5:
        return as_tensor(np.sqrt(base))
    return base.graph.pointwise("Pow", base, exponent)


def _expm1(x: Tensor) -> Tensor:
    """(e^x + 1) tanh(x/2), which is e^x - 1 and does not cancel."""
    return as_tensor((np.exp(x) + 1.0) * np.tanh(0.5 * x))


def _log1p(x: Tensor) -> Tensor:
    """x log(u) / (u - 1) for u = 1 + x as it is rounded (Kahan), and x where u is 1."""
    u = 1.0 + x
    same = u == 1.0
    infinite = u == np.inf
    apart = where(same, 1.0, where(infinite, x, u - 1.0))
    return where(same, x, np.log(u) * (x / apart))


def _sinh(x: Tensor) -> Tensor:
    return as_tensor(np.tanh(x) * np.cosh(x))


def _cosh(x: Tensor) -> Tensor:
    return as_tensor(0.5 * np.exp(x) + 0.5 * np.exp(-x))


def _reduced(op: str) -> Callable[..., Tensor]:
    def write(t: Tensor, axis: int | None = None, *, keepdims: bool = False, **options: Any) -> Tensor:
        if any(value is not None for value in options.values()):
            raise NotExpressed(f"it gives {', '.join(options)} to a sum, a product or an extreme value")
        return t.graph.reduce(op, t, axis, bool(keepdims))

    return write


def _norm(x: Tensor, ord: float | None = None, axis: int | None = None, keepdims: bool = False) -> Tensor:
    if ord in (None, 2):
        return as_tensor(np.sqrt((x * x).sum(axis, keepdims)))
    if ord == 1:
        return as_tensor(np.absolute(x)).sum(axis, keepdims)
    raise NotExpressed(f"it takes a norm of order {ord}")


def _clip(x: Operand, low: Operand = None, high: Operand = None) -> Tensor:
    out = x
    if low is not None:
        out = np.maximum(out, low)
    if high is not None:
        out = np.minimum(out, high)
    return graph_of(out).tensor(out)


def _column_stack(parts: Sequence[Operand]) -> Tensor:
    columns = [part[:, None] if part.ndim == 1 else part for part in parts]
    return graph_of(*columns).concat(columns, 1)


def _concatenate(parts: Sequence[Tensor], axis: int = 0) -> Tensor:
    tensors = list(parts)
    return graph_of(*tensors).concat(tensors, axis % tensors[0].ndim)


def _same(x: Tensor) -> Tensor:
    return x


FUNCTIONS: dict[Callable[..., Any], Callable[..., Tensor]] = {
    np.add: _pointwise("Add"),
    np.subtract: _pointwise("Sub"),
    np.multiply: _times,
    np.divide: _over,
    np.power: _power,
    np.float_power: _power,
    np.negative: _pointwise("Neg"),
    np.positive: _same,
    np.absolute: _pointwise("Abs"),
    np.fabs: _pointwise("Abs"),
    np.sign: _pointwise("Sign"),
    np.floor: _pointwise("Floor"),
    np.ceil: _pointwise("Ceil"),
    np.square: lambda x: x * x,
    np.reciprocal: _pointwise("Reciprocal"),
    np.sqrt: _pointwise("Sqrt"),
    np.exp: _pointwise("Exp"),
    np.exp2: lambda x: np.exp(np.log(2.0) * x),
    np.expm1: _expm1,
    np.log: _pointwise("Log"),
    np.log1p: _log1p,
    np.sin: _pointwise("Sin"),
    np.cos: _pointwise("Cos"),
    np.tanh: _pointwise("Tanh"),
    np.sinh: _sinh,
    np.cosh: _cosh,
    np.arctan: lambda x: arctan2_upper(x, 1.0),
    special.expit: _pointwise("Sigmoid"),
    np.maximum: _pointwise("Max"),
    np.minimum: _pointwise("Min"),
    np.fmod: lambda x, y: x.graph.pointwise("Mod", x, y, fmod=1),
    np.equal: _pointwise("Equal", FLAGS),
    np.greater: _pointwise("Greater", FLAGS),
    np.greater_equal: _pointwise("GreaterOrEqual", FLAGS),
    np.less: _pointwise("Less", FLAGS),
    np.less_equal: _pointwise("LessOrEqual", FLAGS),
    np.logical_and: _logical("And"),
    np.logical_or: _logical("Or"),
    np.logical_not: _logical("Not"),
    np.bitwise_and: _logical("And"),
    np.bitwise_or: _logical("Or"),
    np.invert: _logical("Not"),
    np.isnan: is_nan,
    np.matmul: lambda a, b: a.graph.matmul(a, b),
    np.where: where,
    np.sum: _reduced("ReduceSum"),
    np.prod: _reduced("ReduceProd"),
    np.mean: _reduced("ReduceMean"),
    np.max: _reduced("ReduceMax"),
    np.min: _reduced("ReduceMin"),
    np.clip: _clip,
    np.linalg.norm: _norm,
    np.column_stack: _column_stack,
    np.concatenate: _concatenate,
}
