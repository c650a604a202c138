"""What leaves write: formulas of distances, dot products and columns, and leaves of other shapes."""

from __future__ import annotations

import math

import numpy as np

from mercer.kernels import (
    ArcCosine,
    Bilinear,
    Constant,
    CosineSimilarity,
    Custom,
    DotProduct,
    PerColumn,
    Radial,
    SpectralMixture,
    Stationary,
    White,
)
from mercer.kernels.formulas.formula import LEFT, RIGHT, NotRecorded
from mercer.kernels.leaves.angles import unit_rows
from mercer.onnx.distances import squared_distances
from mercer.onnx.functions import arctan2_upper, numbers, where
from mercer.onnx.graph import NotExpressed, Operand, Tensor
from mercer.onnx.writing import Place, symbolic_or_refused, value_of, written


@written.register
def _(kernel: Radial, at: Place) -> Operand:
    return value_of(kernel, at.squares(kernel.closed_value("lengthscale")))


@written.register
def _(kernel: DotProduct, at: Place) -> Operand:
    return value_of(kernel, at.dot())


@written.register
def _(kernel: PerColumn, at: Place) -> Operand:
    terms = _terms(kernel, at)
    total = terms[0]
    for term in terms[1:]:
        if kernel.reduction == "sum":
            total = total + term
        else:
            total = total * term
    return value_of(kernel, total)


def _terms(kernel: PerColumn, at: Place) -> list[Operand]:
    """What each column contributes: the recorded term, or the function itself called with tensors."""
    symbolic_or_refused(kernel)
    columns = {name: kernel.column_values(name, at.width) for name in kernel.column_names()}
    try:
        formula = kernel.recorded_term()
    except NotRecorded:
        formula = None
    out = []
    for j in range(at.width):
        x, z = at.column(j)
        if kernel.needs_nonnegative():
            x, z = _histograms(x, z, at)
        if formula is None:
            out.append(_called_term(kernel, x, z, {name: float(v[j]) for name, v in columns.items()}))
        else:
            out.append(formula.at(None, {LEFT: x, RIGHT: z, **kernel.at_column(j)}))
    return out


def _called_term(kernel: PerColumn, x: Tensor, z: Operand, parameters: dict[str, float]) -> Operand:
    try:
        return kernel.term(x, z, **parameters)
    except NotExpressed:
        raise
    except Exception as error:
        raise NotExpressed(f"its term stops at a symbol with {type(error).__name__}: {error}") from error


def _histograms(x: Tensor, z: Operand, at: Place) -> tuple[Tensor, Operand]:
    """Numbers below 0, which the machine refuses, as NaN."""
    checked = where(x < 0.0, np.nan, x)
    if at.alone:
        return checked, checked
    return checked, z


@written.register
def _(kernel: Constant, at: Place) -> Operand:
    return kernel.value


@written.register
def _(kernel: White, at: Place) -> Operand:
    if at.alone and at.observed:
        return kernel.noise
    return 0.0


@written.register
def _(kernel: Custom, at: Place) -> Operand:
    raise NotExpressed("it is a Python function of two things")


@written.register
def _(kernel: Bilinear, at: Place) -> Operand:
    left = at.graph.matmul(at.x, kernel.matrix)
    if at.alone:
        return (left * at.x).sum(1, keepdims=True)
    return at.graph.matmul(left, np.ascontiguousarray(at.known.T))


@written.register
def _(kernel: SpectralMixture, at: Place) -> Operand:
    if at.alone:
        return math.fsum(kernel.weights)
    total: Operand = 0.0
    differences = [x - z for x, z in (at.column(j) for j in range(at.width))]
    for weight, means, scales in zip(kernel.weights, kernel.means, kernel.scales, strict=True):
        part: Operand = weight
        for delta, mean, scale in zip(differences, np.ravel(means), np.ravel(scales), strict=True):
            part = part * np.exp(-2 * (np.pi * scale * delta) ** 2) * np.cos(2 * np.pi * mean * delta)
        total = total + part
    return total


@written.register
def _(kernel: Stationary, at: Place) -> Operand:
    if at.alone:
        return kernel.diagonal(at.z)[:1, None]
    delta = at.x[:, None, :] - at.known[None, :, :]
    try:
        values = at.graph.tensor(kernel.f(delta))
    except NotExpressed:
        raise
    except Exception as error:
        raise NotExpressed(f"its function stops at a symbol with {type(error).__name__}: {error}") from error
    if values.ndim != 2:
        raise NotExpressed(f"its function makes an array of shape {values.shape} of differences")
    return values


# ── angles ──────────────────────────────────────────────────────────────────────────────────────────────────


def _unit(x: Tensor) -> Tensor:
    """Rows divided by their length, by their largest entry first; a row of zeros stays so."""
    largest = np.abs(x).max(1, keepdims=True)
    near_one = x / where(largest == 0.0, 1.0, largest)
    norm = np.sqrt((near_one * near_one).sum(1, keepdims=True))
    found: Tensor = near_one / where(norm == 0.0, 1.0, norm)
    return found


@written.register
def _(kernel: CosineSimilarity, at: Place) -> Operand:
    if at.alone:
        return numbers(np.abs(at.x).max(1, keepdims=True) > 0.0)
    return at.graph.matmul(_unit(at.x), np.ascontiguousarray(unit_rows(at.known).T))


@written.register
def _(kernel: ArcCosine, at: Place) -> Operand:
    square = (at.x * at.x).sum(1, keepdims=True)
    if at.alone:
        if kernel.order == 0:
            return where(square == 0.0, 0.5, 1.0)
        if kernel.order == 1:
            return square
        return 3.0 * square * square
    lengths = np.sqrt(square) * np.linalg.norm(at.known, axis=1)[None, :]
    return lengths**kernel.order * kernel.value(_angles(at))


def _angles(at: Place) -> Tensor:
    """The angle of every pair, π/2 where one row is zero: tan(θ/2) = ‖u - v‖ / ‖u + v‖ of unit rows."""
    u = _unit(at.x)
    v = unit_rows(at.known)
    apart = np.sqrt(squared_distances(u, v))
    across = np.sqrt(squared_distances(u, -v))
    neither = np.logical_and(apart == 0.0, across == 0.0)
    return where(neither, np.pi / 2, 2 * arctan2_upper(apart, where(neither, 1.0, across)))
