"""Centring in feature space: φ(x) - φ̄, as an operator and as a judgement of kernels that only need be valid after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram import GramOperator, Precomputed
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximable
from mercer.machines.shared.base import check_finite, check_gram
from mercer.machines.shared.defaults import resolve
from mercer.panels import without_means
from mercer.theory.judge import judge_on_rows


class Centred(GramOperator):
    """HKH with H = I - 11ᵀ/n: the inner products of φ(x_i) - φ̄. K is used as it is and never copied.

    `means` holds the mean of each row of K, `mean` the mean of all; one product with K finds them.

    >>> K = Centred(Precomputed([[2.0, 0.0], [0.0, 2.0]]))
    >>> K.dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    kind = "centred"

    def __init__(self, inner: GramOperator) -> None:
        self.inner = inner
        n = inner.shape[0]
        self.means = np.asarray(inner @ np.full((n, 1), 1.0 / n, dtype=inner.dtype), dtype=np.float64)[:, 0]
        self.mean = float(self.means.mean())
        super().__init__(inner.dtype, inner.shape)

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        out = self.inner._matmat(np.ascontiguousarray(V - V.mean(axis=0)))
        return out - out.mean(axis=0)

    def diag(self) -> np.ndarray:
        return self.inner.diag() - 2 * self.means + self.mean

    def block(self, rows: Any, cols: Any) -> np.ndarray:
        return self.inner.block(rows, cols) - self.means[rows][:, None] - self.means[cols] + self.mean

    def dense(self) -> np.ndarray:
        return without_means(self.inner.dense(), self.means, self.mean)

    def low_rank_factor(self) -> np.ndarray | None:
        F = self.inner.low_rank_factor()
        return None if F is None else F - F.mean(axis=0)

    def _transpose(self) -> Centred:
        return self


def training_gram(
    machine: Any, A: Any, weight: np.ndarray | None = None
) -> tuple[Kernel | None, GramOperator]:
    """The kernel of these rows and their Gram operator: approximate if the machine has an `approximation`, else stored if it
    fits in its `memory`, else in tiles.
    """
    kernel = resolve(machine.kernel, machine._rows(A), weight)
    if isinstance(machine, Approximable):
        approximate = machine._approximate(kernel, A, weight)
        if approximate is not None:
            return kernel, approximate
    if kernel is None:
        return None, Precomputed(check_gram(A, None))
    K = kernel.gram(machine._rows(A), memory=machine.memory, n_jobs=machine.n_jobs)
    if K.kind == "dense":
        if kernel.proof() is None:
            check_gram(K.dense(), kernel)
        else:
            check_finite(K.dense(), str(kernel))
    return kernel, K


def judge(
    kernel: Kernel | None, K: GramOperator, columns: int, *, strict: bool, lost: str
) -> tuple[str, ...]:
    """What has to be said of a kernel of which only distances count; refused if `strict`."""
    note = f"the kernel is not positive semi-definite after centring: {lost}"
    rows = np.arange(K.shape[0])
    return judge_on_rows(
        kernel,
        K,
        rows,
        columns,
        strict=strict,
        lost=lost[0].upper() + lost[1:] + ".",
        note=note,
        centred=True,
    ).notes
