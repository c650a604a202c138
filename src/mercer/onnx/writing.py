"""Kernels as nodes of a graph: k(x, z) for new rows x, which are tensors, and rows z, which are known.

`leaves` and `rules` say what each kernel writes. A leaf of a family is its formula: `value`, or `term` of a
column, is called with tensors. A rule writes its parts and then its own step. What a map makes of the known
rows is computed here and now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from mercer.arrays import Rows
from mercer.errors import MercerError, ModelFileError
from mercer.kernels.base import Kernel
from mercer.kernels.formulas.formula import NotRecorded
from mercer.kernels.leaves.recording import OfOneNumber, symbolic
from mercer.kernels.leaves.writing import abbreviated
from mercer.onnx.distances import column_by_column, squared_distances
from mercer.onnx.functions import graph_of
from mercer.onnx.graph import Graph, NotExpressed, Operand, Tensor
from mercer.sparse import dense
from mercer.typing import Array

# Lengthscales whose squares are ordinary numbers.
USUAL = (1e-90, 1e90)


@dataclass(frozen=True, eq=False)
class Place:
    """What a kernel compares: new rows x with known rows z, or every new row with itself.

    `alone` is with itself; `observed` says that both are the same observation, so that noise counts. Values
    of pairs are new rows × known rows, those of rows alone new rows × 1, or anything that broadcasts to it.
    """

    x: Tensor
    z: Rows
    alone: bool = False
    observed: bool = False

    @property
    def graph(self) -> Graph:
        return self.x.graph

    @property
    def width(self) -> int:
        """The number of columns."""
        columns = self.x.shape[1]
        assert columns is not None
        return columns

    @property
    def known(self) -> Array:
        """The known rows as numbers."""
        return np.asarray(dense(self.z.vectors), dtype=np.float64)

    def itself(self, *, observed: bool) -> Place:
        """The place of every new row with itself."""
        return replace(self, alone=True, observed=observed)

    def mapped(self, x: Tensor, z: Rows) -> Place:
        """The place of a part that sees other rows; a map must make the same columns of both."""
        if x.ndim != 2 or x.shape[1] != z.width:
            raise NotExpressed(f"its map makes an array of shape {x.shape} of new rows")
        return replace(self, x=x, z=z)

    def column(self, j: int) -> tuple[Tensor, Operand]:
        """One column of the new rows, n × 1, and of what they are compared with."""
        x = self.x[:, [j]]
        if self.alone:
            return x, x
        return x, self.known[None, :, j]

    def dot(self) -> Operand:
        """x·z."""
        if self.alone:
            return (self.x * self.x).sum(1, keepdims=True)
        return self.graph.matmul(self.x, np.ascontiguousarray(self.known.T))

    def squares(self, length: float | tuple[float, ...] = 1.0) -> Operand:
        """Σ ((x_d - z_d) / ℓ_d)²."""
        if self.alone:
            return np.zeros((1, 1))
        each = np.broadcast_to(np.asarray(length, dtype=np.float64), self.width)
        low, high = USUAL
        if not np.all((each > low) & (each < high)):
            with np.errstate(over="ignore"):
                scale = 1 / each
            return np.minimum(column_by_column(self.x, self.known, scale), 1e300)
        if isinstance(length, tuple):
            return squared_distances(self.x, self.known, 1 / each)
        # one distance for all parts of the kernel that read the same columns
        return squared_distances(self.x, self.known) * length**-2.0


@singledispatch
def written(kernel: Kernel, at: Place) -> Operand:
    """The values of a kernel; here of one without a rule."""
    if kernel.takes_things():
        raise NotExpressed(
            "it compares things that are not numbers, and the input of the graph has no others"
        )
    raise NotExpressed("it has no formula")


def write(kernel: Kernel, at: Place) -> Tensor:
    """The values of a kernel at a place; a refusal names the part of the expression that it is for."""
    try:
        return at.graph.tensor(written(kernel, at))
    except ModelFileError:
        raise
    except NotExpressed as why:
        raise ModelFileError(
            f"ONNX cannot express {abbreviated(str(kernel))}: {why}. Leave this part out of the kernel, "
            "write it with operators and functions of NumPy that have a counterpart (docs/onnx.md), or "
            "keep the model with mercer.save."
        ) from why
    except MercerError as error:
        raise ModelFileError(f"ONNX cannot express {abbreviated(str(kernel))}: {error}") from error


def value_of(kernel: OfOneNumber, variable: Operand) -> Operand:
    """The formula of a leaf at what it is a function of."""
    try:
        # refuses a class that evaluates rows in its own way
        symbolic(kernel)
        formula = kernel.recorded()
    except NotRecorded as why:
        return _called(kernel, variable, why)
    with np.errstate(all="ignore"):
        return formula.at(variable, kernel.numbers())


def _called(kernel: OfOneNumber, variable: Operand, why: NotRecorded) -> Operand:
    """The function of a leaf called with a tensor: it may do what has no rule for derivatives."""
    symbolic_or_refused(kernel)
    try:
        return kernel.value(variable)
    except NotExpressed:
        raise
    except Exception as error:
        raise NotExpressed(f"its value is no formula ({why})") from error


def symbolic_or_refused(kernel: OfOneNumber) -> None:
    """Refuse a leaf that is more than its formula."""
    try:
        symbolic(kernel)
    except NotRecorded as why:
        raise NotExpressed(str(why)) from why


def spread(values: Tensor, at: Place) -> Tensor:
    """Values of pairs with all their entries, new rows × known rows, where a kernel gave fewer."""
    shape = (None, len(at.z))
    if values.shape == shape:
        return values
    zeros = graph_of(values).matmul(0.0 * at.x[:, [0]], np.ones((1, len(at.z))))
    out: Tensor = values + zeros
    return out
