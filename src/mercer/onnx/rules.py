"""What rules write: sums, products and functions of kernels, and kernels of mapped rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from mercer.kernels import After, Before, ExpDot, Filled, Known, Metric, Ranked, Reading, Standardized
from mercer.kernels.algebra import (
    Exp,
    InSpace,
    LinearMap,
    Normalized,
    Of,
    On,
    PolynomialOf,
    Power,
    Product,
    Read,
    Scaled,
    Sum,
    Times,
)
from mercer.kernels.formulas.formula import polynomial
from mercer.onnx.functions import is_nan, numbers, where
from mercer.onnx.graph import WHOLES, NotExpressed, Operand, Tensor
from mercer.onnx.writing import Place, value_of, write, written


@written.register
def _(kernel: Scaled, at: Place) -> Operand:
    return kernel.scale * write(kernel.kernel, at)


@written.register
def _(kernel: Sum, at: Place) -> Operand:
    total = write(kernel.parts[0], at)
    for part in kernel.parts[1:]:
        total = total + write(part, at)
    return total


@written.register
def _(kernel: Product, at: Place) -> Operand:
    total = write(kernel.parts[0], at)
    for part in kernel.parts[1:]:
        total = total * write(part, at)
    return total


@written.register
def _(kernel: Power, at: Place) -> Operand:
    if kernel.revives:
        raise NotExpressed("a power so small is taken of logarithms, where values vanish")
    if kernel.exponent == 0:
        return 1.0
    return write(kernel.kernel, at) ** kernel.exponent


@written.register
def _(kernel: Exp, at: Place) -> Operand:
    return np.exp(write(kernel.kernel, at))


@written.register
def _(kernel: PolynomialOf, at: Place) -> Operand:
    return polynomial(write(kernel.kernel, at), kernel.coefs)


# ── factors ─────────────────────────────────────────────────────────────────────────────────────────────────


@written.register
def _(kernel: Times, at: Place) -> Operand:
    left = _traced(kernel.f, at.x)
    if left.ndim == 1:
        left = left[:, None]
    if left.shape != (None, 1):
        raise NotExpressed(f"its function makes an array of shape {left.shape} of new rows")
    right = left if at.alone else kernel.factor(at.z)[None, :]
    return (left * right) * write(kernel.kernel, at)


@written.register
def _(kernel: Normalized, at: Place) -> Operand:
    if isinstance(kernel.kernel, ExpDot):
        # a Gaussian, which never overflows
        return np.exp(-0.5 * kernel.kernel.scale * at.squares())
    own = write(kernel.kernel, at.itself(observed=True))
    if at.alone and at.observed:
        return where(own == 0.0, 0.0, 1.0)
    zero = own == 0.0
    left = where(zero, 0.0, 1.0 / np.sqrt(where(zero, 1.0, own)))
    right = left if at.alone else kernel.inverse_norms(at.z)[None, :]
    return (left * right) * write(kernel.kernel, at)


@written.register
def _(kernel: InSpace, at: Place) -> Operand:
    if at.alone and at.observed:
        return value_of(kernel.radial, np.zeros((1, 1)))
    left = write(kernel.space, at.itself(observed=True))
    right = left if at.alone else kernel.space.diagonal(at.z)[None, :]
    squares = np.maximum(left + right - 2.0 * write(kernel.space, at), 0.0)
    return value_of(kernel.radial, squares / kernel.length() ** 2)


# ── mapped rows ─────────────────────────────────────────────────────────────────────────────────────────────


@written.register
def _(kernel: On, at: Place) -> Operand:
    chosen = at.x[:, at.z.positions(kernel.columns)]
    return write(kernel.kernel, at.mapped(chosen, kernel.mapped(at.z)))


@written.register
def _(kernel: LinearMap, at: Place) -> Operand:
    x = at.graph.matmul(at.x, np.array(kernel.A).T)
    return write(kernel.kernel, at.mapped(x, kernel.mapped(at.z)))


@written.register
def _(kernel: Of, at: Place) -> Operand:
    return write(kernel.kernel, at.mapped(_traced(kernel.map, at.x), kernel.mapped(at.z)))


@written.register
def _(kernel: Read, at: Place) -> Operand:
    return write(kernel.kernel, at.mapped(read(kernel.reading, at.x), kernel.mapped(at.z)))


def _traced(function: Callable[..., Operand], x: Tensor) -> Tensor:
    """What a function of the rows does, as nodes."""
    try:
        return x.graph.tensor(function(x))
    except NotExpressed:
        raise
    except Exception as error:
        raise NotExpressed(f"its function stops at a symbol with {type(error).__name__}: {error}") from error


# ── readings ────────────────────────────────────────────────────────────────────────────────────────────────


@singledispatch
def read(reading: Reading, x: Tensor) -> Tensor:
    """The numbers that a reading makes of new rows."""
    raise NotExpressed(f"{type(reading).__name__} reads what is not a number")


@read.register
def _(reading: Standardized, x: Tensor) -> Tensor:
    assert reading.means is not None and reading.deviations is not None
    found: Tensor = (x - np.array(reading.means)) / np.array(reading.deviations)
    return found


@read.register
def _(reading: Metric, x: Tensor) -> Tensor:
    root = reading.root
    found: Tensor = x * root if root.ndim == 1 else x.graph.matmul(x, root)
    return found


@read.register
def _(reading: Filled, x: Tensor) -> Tensor:
    assert reading.medians is not None
    return where(is_nan(x), np.array(reading.medians), x)


@read.register
def _(reading: Known, x: Tensor) -> Tensor:
    found: Tensor = 1.0 - numbers(is_nan(x))
    return found


@read.register
def _(reading: After, x: Tensor) -> Tensor:
    found: Tensor = 1.0 / (1.0 + np.exp((reading.place - x) / reading.width))
    return found


@read.register
def _(reading: Before, x: Tensor) -> Tensor:
    found: Tensor = 1.0 / (1.0 + np.exp((x - reading.place) / reading.width))
    return found


@read.register
def _(reading: Ranked, x: Tensor) -> Tensor:
    assert reading.values is not None and reading.scores is not None
    lists = zip(reading.values, reading.scores, strict=True)
    columns = [_interpolated(x[:, [j]], *map(np.array, knots)) for j, knots in enumerate(lists)]
    return x.graph.concat(columns, 1)


def _interpolated(x: Tensor, values: np.ndarray, scores: np.ndarray) -> Tensor:
    """np.interp: between two knots along their chord, beyond the last ones level."""
    graph = x.graph
    if len(values) == 1:
        constant: Tensor = 0.0 * x + scores[0]
        return constant
    # how many inner knots are not above x: the place of the interval that it is in
    below = numbers(x >= values[None, 1:-1]) if len(values) > 2 else 0.0 * x
    place = graph.node("Cast", below.sum(1, keepdims=True), shape=(None, 1), kind=WHOLES, to=7)

    def at_place(table: np.ndarray) -> Tensor:
        return graph.node("Gather", graph.tensor(table), place, shape=(None, 1), axis=0)

    slopes = np.diff(scores) / np.diff(values)
    inside = np.minimum(np.maximum(x, values[0]), values[-1])
    found: Tensor = at_place(slopes) * (inside - at_place(values[:-1])) + at_place(scores[:-1])
    return found
