"""What a machine learned, feature by feature: w with f(x) = w·φ(x) + b, for sparse features φ with names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram.functions import ByFeatures, ByRows, Functions
from mercer.gram.on_rows import Evaluated
from mercer.kernels.base import Kernel
from mercer.kernels.terms import split_noise
from mercer.kernels.things.sparse_map import SparseMap
from mercer.theory.functions import function_of
from mercer.typing import Array, Labels, Table

# Features that are printed.
PRINTED = 10


@dataclass(frozen=True, eq=False, repr=False)
class FeatureWeights:
    """The weight vectors of the functions of one machine, a column each.

    `map` is φ. Features that no row of the machine has have no weight, and are not among the names.
    """

    kernel: Kernel
    map: SparseMap
    weights: Array
    offset: Array
    titles: tuple[str, ...]

    def top(self, count: int = PRINTED, function: int = 0) -> list[tuple[str, float]]:
        """The features with the largest weights, whatever their sign, largest first."""
        w = self.weights[:, function]
        order = np.lexsort((np.array(self.map.names), -np.abs(w)))[:count]
        return [(str(self.map.names[i]), float(w[i])) for i in order]

    def values(self, X: Table) -> Array:
        """w·φ(x) + b of new rows, a column for each function: what the machine's function says of them."""
        return np.asarray(self.map(X) @ self.weights) + self.offset

    def __str__(self) -> str:
        blocks = []
        for k, title in enumerate(self.titles):
            found = self.top(PRINTED, k)
            width = max((len(name) for name, _ in found), default=0)
            lines = [f"  {name:<{width}}  {weight:+.4g}" for name, weight in found]
            more = len(self.weights) - len(found)
            if more > 0:
                lines.append(f"  and {more:,} more")
            blocks.append("\n".join([f"{title} = w·φ(x) {self.offset[k]:+.4g}", *lines]))
        return "\n".join(blocks)

    __repr__ = __str__


def feature_weights(model: object) -> FeatureWeights:
    """The features that mattered to a fitted machine: w = Σ c_i φ(x_i), by name.

    The kernel must be an inner product of sparse features (`Spectrum`, `Mismatch`, `WeightedDegree`, `Text`,
    `Hamming`, a kernel that you count yourself, and sums, scaled and normalised ones of these).

    >>> from mercer import SVC, Spectrum
    >>> from mercer.theory import feature_weights
    >>> genes = ["TATAAT", "GGCGCC", "TATATT", "GCGCGG"]
    >>> w = feature_weights(SVC(Spectrum(2), C=10.0).fit(genes, [1, 0, 1, 0]))
    >>> sorted(name for name, weight in w.top(3))
    ['AT', 'GC', 'TA']
    """
    found = function_of(model)
    if isinstance(found, ByFeatures) and found.named is not None and found.kernel is not None:
        return FeatureWeights(
            _without_noise(found.kernel), found.named, found.weights.T, found.offset, _titles(found)
        )
    if not isinstance(found, ByRows) or not isinstance(found.on, Evaluated):
        raise ParameterError(
            "the weights of features need the kernel itself and its rows: not a precomputed Gram matrix, not "
            "an approximation. Fit with the kernel."
        )
    kernel = _without_noise(found.on.kernel)
    phi = _map_of(kernel, found.on.rows)
    weights = np.asarray(phi.matrix.T @ found.coefficients).reshape(phi.dimension, -1)
    return FeatureWeights(kernel, phi, weights, found.offset, _titles(found))


def _without_noise(kernel: Kernel) -> Kernel:
    """The kernel as other rows know it: noise speaks of no other row."""
    return split_noise(kernel)[0] or kernel


def _map_of(kernel: Kernel, rows: Rows) -> SparseMap:
    phi = kernel.sparse_map(rows)
    if phi is None:
        raise ParameterError(
            f"{kernel!r} is no inner product of sparse features with names, so no feature has a weight. "
            "Kernels that count (Spectrum, Text, ...) are, and their sums, scaled and normalised."
        )
    return phi


def _titles(found: Functions) -> tuple[str, ...]:
    """What each function is called."""
    classes: Labels | None = found.classes
    if classes is None or len(found.duels) != found.count:
        if found.count == 1:
            return (found.what,)
        return tuple(f"{found.what} {k}" for k in range(found.count))
    names = []
    for plus, minus in found.duels:
        against = "the rest" if minus is None else str(classes[minus])
        names.append(f"{found.what} of {classes[plus]} against {against}")
    return tuple(names)
