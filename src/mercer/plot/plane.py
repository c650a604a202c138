"""Two columns as a plane: the grid that a fitted model is asked about, and the names of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mercer.plot.style import PlotError
from mercer.sparse import dense
from mercer.typing import Array, Table
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class Plane:
    """The rows, and a square grid of points a little wider than they are."""

    rows: Array
    ticks: tuple[Array, Array]
    resolution: int

    @classmethod
    def of(cls, X: Table, resolution: int, *, pad: float) -> Plane:
        A: Array = dense(check_vectors(X))
        if A.shape[1] != 2:
            raise PlotError(
                f"the picture needs two columns; X has {A.shape[1]}. Choose two, or project X first."
            )
        low = A.min(axis=0)
        high = A.max(axis=0)
        around = pad * np.where(high > low, high - low, 1.0)
        first, second = (
            np.linspace(a, b, resolution) for a, b in zip(low - around, high + around, strict=True)
        )
        return cls(A, (first, second), resolution)

    @property
    def points(self) -> Array:
        """The points of the grid, row by row."""
        return np.column_stack([m.ravel() for m in np.meshgrid(*self.ticks)])

    @property
    def shape(self) -> tuple[int, int]:
        return self.resolution, self.resolution

    def frame(self, axes: Axes) -> None:
        """Show the grid, and nothing outside it."""
        across, up = self.ticks
        axes.set_xlim(across[0], across[-1])
        axes.set_ylim(up[0], up[-1])


def like_rows_of_fit(model: BaseEstimator, grid: Array) -> Table:
    """The grid as a model takes it: a data frame, if it was fitted on one."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return grid
    import pandas

    frame: Table = pandas.DataFrame(grid, columns=list(names))
    return frame
