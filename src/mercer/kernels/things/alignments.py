"""Series of different speeds: the global alignment kernel, where dynamic time warping gives none."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.paths import SERIES, path_of, same_channels
from mercer.kernels.things.sequences import all_pairs, with_themselves
from mercer.params import positive, whole
from mercer.typing import Array, Integers


@leaf
class GlobalAlignment(OnThings):
    """All the ways to align two series, each with what it costs (Cuturi); the cosine in feature space.

        K(x, z) = Σ_π Π_(i, j) in π κ_ij,     k(x, z) = K(x, z) / √(K(x, x) K(z, z))
        κ_ij = w_ij g_ij / (2 - w_ij g_ij),   g_ij = e^(-‖x_i - z_j‖² / 2ℓ²),   w_ij = max(0, 1 - |i - j| / T)

    The alignments π walk from both starts to both ends by steps of one in x, in z or in both. `triangular` is
    T, a bound on how far times may differ; 0 is no bound (w = 1). Series whose lengths differ by T or more
    then have nothing in common. `sigma=` is another name of the lengthscale. Everything is summed as
    logarithms, so that series may be long.

    >>> GlobalAlignment(1.0)([[[0.0]], [[1.0]]]).round(4)    # one alignment: κ = e^-½ / (2 - e^-½)
    array([[1.    , 0.4353],
           [0.4353, 1.    ]])
    """

    lengthscale: float = positive(1.0)
    triangular: int = whole(0, at_least=0)

    because: ClassVar = Fact(
        "geometric divisibility",
        "κ/(1 + κ) = w g / 2 is a product of kernels, of points and of times; then the sum over alignments "
        "is one (Cuturi, Vert, Birkenes and Matsui), and so is its cosine",
    )
    spellings: ClassVar = {"sigma": ("lengthscale", lambda value: value)}
    formula: ClassVar = (
        r"\frac{K(x,z)}{\sqrt{K(x,x)\,K(z,z)}},"
        r"\ K=\sum_\pi\prod_{(i,j)\in\pi}\frac{w_{ij}g_{ij}}{2-w_{ij}g_{ij}},"
        r"\ g_{ij}=e^{-\lVert x_i-z_j\rVert^2/2\cdot<lengthscale>^2},\ T=<triangular>"
    )
    things_are: ClassVar = SERIES

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = self._paths(x)
        own = with_themselves(a, self._logarithms)
        if z is None:
            K = np.exp(all_pairs(a, None, self._logarithms, 0.0) - 0.5 * (own[:, None] + own[None, :]))
            np.fill_diagonal(K, 1.0)
            return K
        b = self._paths(z)
        same_channels([a[0], *b], z.name)
        other = with_themselves(b, self._logarithms)
        return np.exp(all_pairs(a, b, self._logarithms, 0.0) - 0.5 * (own[:, None] + other[None, :]))

    def diagonal(self, x: Rows) -> Array:
        self._paths(x)
        return np.ones(len(x))

    def _paths(self, x: Rows) -> list[Array]:
        paths = list(self.each(path_of, x.things, x.name))
        same_channels(paths, x.name)
        return paths

    def _logarithms(self, one: Array, others: Array, lengths: Integers) -> Array:
        """log K of one series and several, a diagonal i + j of the table at a time."""
        cost = self._local(one, others)
        n, width, m = cost.shape
        out = np.full(m, -np.inf)
        last = np.full((n + 1, m), -np.inf)
        before = last.copy()
        for q in range(n + width - 1):
            i = np.arange(max(0, q - width + 1), min(q, n - 1) + 1)
            now = np.full((n + 1, m), -np.inf)
            # row i + 1 holds point i of the one series; row 0 is before its start
            reached = np.logaddexp(np.logaddexp(last[i + 1], last[i]), before[i])
            if q == 0:
                reached[0] = 0.0
            now[i + 1] = cost[i, q - i] + reached
            ends = lengths == q - n + 2
            out[ends] = now[n, ends]
            before = last
            last = now
        return out

    def _local(self, one: Array, others: Array) -> Array:
        """log κ of every point of one series and every point of several: n × width × m."""
        squares = np.square(one[:, None, None, :] - others.transpose(1, 0, 2)[None]).sum(axis=3)
        log = -squares / (2 * self.lengthscale**2)
        if self.triangular:
            i = np.arange(log.shape[0])[:, None]
            j = np.arange(log.shape[1])[None, :]
            with np.errstate(divide="ignore"):
                log += np.log(np.maximum(0.0, 1 - np.abs(i - j) / self.triangular))[:, :, None]
        return np.asarray(log - np.log(2 - np.exp(log)))
