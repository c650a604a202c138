"""Squared distances between new rows and known ones, as right as the core's.

Of few columns they are sums of squared differences, column by column. Of many, ‖x‖² + ‖z‖² - 2 x·z about the
mean of the known rows, which is one matrix product; pairs that are near each other, where this cancels, are
looked up and done again by differences.
"""

from __future__ import annotations

import numpy as np

from mercer.onnx.graph import FLAGS, WHOLES, Tensor, as_tensor
from mercer.typing import Array

# At most so many columns are taken one by one.
FEW_COLUMNS = 3
# Of ‖x‖² + ‖z‖²: a smaller distance has lost four digits or more, and is computed again.
CANCELLED = 1e-4
# A larger distance is cut to this: every radial kernel is at its limit there, and ∞ would give 0·∞.
FARTHEST = 1e300


def squared_distances(x: Tensor, Z: Array, scale: Array | None = None) -> Tensor:
    """Σ ((x_d - z_d) scale_d)² for every new row x and every known row z."""
    if Z.shape[1] <= FEW_COLUMNS:
        found = column_by_column(x, Z, scale)
    else:
        found = _expanded(x, Z, scale)
    return as_tensor(np.minimum(found, FARTHEST))


def column_by_column(x: Tensor, Z: Array, scale: Array | None) -> Tensor:
    total = None
    for j in range(Z.shape[1]):
        difference = x[:, [j]] - Z[None, :, j]
        if scale is not None:
            difference = difference * scale[j]
        square = difference * difference
        total = square if total is None else total + square
    return as_tensor(total)


def _expanded(x: Tensor, Z: Array, scale: Array | None) -> Tensor:
    middle = Z.mean(axis=0)
    near_x = x - middle
    near_z = Z - middle
    if scale is not None:
        near_x = near_x * scale
        near_z = near_z * scale
    total = (near_x * near_x).sum(1, keepdims=True) + (near_z * near_z).sum(axis=1)[None, :]
    expanded = total + near_x @ (-2.0 * near_z.T)
    # written so that NaN is computed again too
    again = np.logical_not(expanded > CANCELLED * total)
    return _by_differences(expanded, again, x, Z, scale)


def _by_differences(s: Tensor, again: Tensor, x: Tensor, Z: Array, scale: Array | None) -> Tensor:
    """`s` with the pairs that are to be done again replaced by sums of squared differences."""
    assert again.kind == FLAGS
    graph = x.graph
    places = graph.node("NonZero", again, shape=(2, None), kind=WHOLES)
    row = graph.take(places, 0, 0)
    known = graph.take(places, 0, 1)
    columns = Z.shape[1]
    a = graph.node("Gather", x, row, shape=(None, columns), axis=0)
    b = graph.node("Gather", graph.tensor(Z), known, shape=(None, columns), axis=0)
    difference = a - b
    if scale is not None:
        difference = difference * scale
    squares = (difference * difference).sum(1)
    pairs = graph.node("Transpose", places, shape=(None, 2), kind=WHOLES, perm=(1, 0))
    return graph.node("ScatterND", s, pairs, squares, shape=s.shape)
