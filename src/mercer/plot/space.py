"""Where a kernel is looked at: a line for one column, the plane for two, the line (t, …, t) for more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.errors import DomainError, MagnitudeError, ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.rules.views import named_columns
from mercer.plot.style import PlotError
from mercer.typing import Array


@dataclass(frozen=True)
class Space:
    """A kernel, the number and names of its columns, and the interval shown of each."""

    kernel: Kernel
    columns: int
    names: tuple[str, ...]
    low: float
    high: float

    @property
    def plane(self) -> bool:
        return self.columns == 2

    @property
    def label(self) -> str:
        """What the horizontal axis of a line is."""
        return "x" if self.columns == 1 else f"t, at x = (t, …, t) with {self.columns} columns"

    def ticks(self, count: int) -> Array:
        return np.linspace(self.low, self.high, count)

    def points(self, count: int) -> Array:
        """`count` points on the line, or `count` × `count` on the plane, row by row."""
        t = self.ticks(count)
        if self.plane:
            return np.column_stack([m.ravel() for m in np.meshgrid(t, t)])
        return np.repeat(t[:, None], self.columns, axis=1)

    def at(self, t: float) -> Array:
        return np.full((1, self.columns), t)

    def block(self, X: Array, Z: Array | None = None) -> Array:
        """k(X, Z), or a PlotError where the values overflow."""
        try:
            return self.kernel(self._rows(X), None if Z is None else self._rows(Z))
        except MagnitudeError as error:
            raise PlotError(
                f"{self.kernel} overflows between {self.low:g} and {self.high:g}. Choose a smaller range."
            ) from error

    def _rows(self, X: Array) -> Rows | Array:
        return Rows(X, "X", self.names) if self.names else X


def space_of(k: Kernel, span: tuple[float, float] | None) -> Space:
    """The space in which to show `k`; a range that the caller did not choose is chosen from its lengths."""
    names = named_columns(k)
    exact, least = k.columns_needed()
    columns = max(exact or least, len(names))
    labels = names
    if names:
        labels += tuple(f"column {i}" for i in range(len(names), columns))
    if span is not None:
        low, high = _checked_span(span)
        return Space(k, columns, labels, low, high)
    half = _half_width(k)
    space = Space(k, columns, labels, 0.0 if k.needs_nonnegative() else -half, half)
    try:
        space.block(space.points(5))
    except DomainError:
        # a root of something negative, say: the positive half may do
        return Space(k, columns, labels, 0.0, half)
    return space


def _checked_span(span: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in span)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"the range must be two finite numbers, the smaller one first; got {span!r}.")
    return low, high


def _half_width(k: Kernel) -> float:
    """Three of the longest lengthscale, at most ten of the shortest period; 3 where there is neither."""
    leaves: dict[str, dict[str, list[float]]] = {}
    for p in k.parameters:
        owner, _, name = p.name.split("[")[0].rpartition("__")
        leaves.setdefault(owner, {}).setdefault(name, []).append(p.value)
    periods = [v for leaf in leaves.values() for v in leaf.get("period", [])]
    lengths = [v for leaf in leaves.values() if "period" not in leaf for v in leaf.get("lengthscale", [])]
    half = 3 * max(lengths or periods or [1.0])
    return min(half, 10 * min(periods)) if periods else half
