"""Centring in feature space: φ(x) - φ̄ as an operator, and the judgement of kernels.

The kernels that are judged here need be valid only after it.
"""

from __future__ import annotations

import numpy as np

from mercer.gram import GramOperator
from mercer.gram.blocks import Index
from mercer.machines.shared.machine import Invalid
from mercer.panels import Entries, without_means
from mercer.threads import no_blas_threads
from mercer.typing import Array


class Centred(GramOperator):
    """HKH with H = I - 11ᵀ/n: the inner products of φ(x_i) - φ̄. K is used as it is and never copied.

    `means` holds the mean of each row of K, `mean` the mean of all; one product with K finds them.

    >>> from mercer.gram import Precomputed
    >>> K = Centred(Precomputed([[2.0, 0.0], [0.0, 2.0]]))
    >>> K.dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    kind = "centred"

    def __init__(self, inner: GramOperator) -> None:
        self.inner = inner
        n = inner.shape[0]
        # Threads of BLAS would save a millisecond here, and then run in circles beside what comes next.
        with no_blas_threads():
            self.means = np.asarray(inner @ np.full((n, 1), 1.0 / n, dtype=inner.dtype), dtype=np.float64)[
                :, 0
            ]
        self.mean = float(self.means.mean())
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: Array) -> Array:
        out = self.inner._matmat(np.ascontiguousarray(V - V.mean(axis=0)))
        return np.asarray(out - out.mean(axis=0))

    def diag(self) -> Array:
        return self.inner.diag() - 2 * self.means + self.mean

    def block(self, rows: Index, cols: Index) -> Array:
        return self.inner.block(rows, cols) - self.means[rows][:, None] - self.means[cols] + self.mean

    def dense(self) -> Array:
        return without_means(self.inner.dense(), self.means, self.mean)

    def low_rank_factor(self) -> Array | None:
        F = self.inner.low_rank_factor()
        return None if F is None else F - F.mean(axis=0)

    def in_memory(self) -> Entries | None:
        inner = self.inner.in_memory()
        if inner is None or inner.centred:
            return None
        return inner._replace(centred=True)

    def _transpose(self) -> Centred:
        return self


def invalid_after_centring(lost: str) -> Invalid:
    """What is lost where only distances count, so that a constant may be taken from the kernel."""
    said = lost[0].upper() + lost[1:] + "."
    return Invalid(said, f"the kernel is not positive semi-definite after centring: {lost}", centred=True)
