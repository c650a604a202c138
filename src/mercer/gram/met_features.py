"""A kernel on things by the features that the things have: K = Φ Ψᵀ + noise, with sparse Φ and Ψ.

Kernels that count (substrings, words, colours of nodes) are inner products of sparse rows. A product with K
is then two sparse products, which take time and memory for the entries of Φ and Ψ, and not for pairs of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.gram.blocks import Index
from mercer.kernels.base import Kernel
from mercer.kernels.terms import split_noise
from mercer.kernels.things.sparse_map import SparseMap
from mercer.sparse import Matrix, dense
from mercer.typing import Array


@dataclass(frozen=True, eq=False)
class MetFeatures:
    """Φ of one sample and Ψ of another, with the same columns; `noise` is that of one and the same sample."""

    left: Matrix
    right: Matrix
    noise: float

    def times(self, V: Array) -> Array:
        """K V."""
        product = np.asarray(self.left @ np.asarray(self.right.T @ V))
        if self.noise:
            product += self.noise * V
        return product

    def block(self, rows: Index, cols: Index) -> Array:
        """K[rows][:, cols]."""
        out = np.asarray(dense(self.left[rows] @ self.right[cols].T), dtype=np.float64)
        if self.noise:
            i = np.arange(self.left.shape[0])[rows]
            j = np.arange(self.right.shape[0])[cols]
            out += self.noise * (i[:, None] == j[None, :])
        return out


def met_features(kernel: Kernel, x: Rows, z: Rows | None) -> MetFeatures | None:
    """The kernel by the features that these things have; None where it has no such features."""
    # of two samples the second is the one that machines keep, so that it is counted once
    phi = latent_map_on(kernel, x if z is None else z)
    if phi is None:
        return None
    if z is None:
        _, noise = split_noise(kernel)
        return MetFeatures(phi.matrix, phi.matrix, noise)
    return MetFeatures(phi(x), phi.matrix, 0.0)


def map_on(kernel: Kernel | None, x: Rows) -> SparseMap | None:
    """The map of a kernel of things on the features that these have; None for kernels of numbers alone."""
    if kernel is None or not _reads_things(kernel) or kernel.in_columns() is not None:
        return None
    return x.remembered(("map", kernel), lambda: kernel.sparse_map(x))


def latent_map_on(kernel: Kernel, x: Rows) -> SparseMap | None:
    """`map_on` for a kernel without its noise terms."""
    if not _reads_things(kernel):
        return None
    return x.remembered(("latent map", kernel), lambda: map_on(split_noise(kernel)[0], x))


def _reads_things(kernel: Kernel) -> bool:
    """Whether a part can be asked of things that are no vectors: only such a part counts what they have."""
    return any(part.takes_things() for part in kernel.walk())
