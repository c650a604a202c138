"""Whether two things measured on the same rows are independent: Hilbert and Schmidt's criterion (HSIC)."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from mercer.arrays import Rows
from mercer.errors import ShapeError
from mercer.gram import GramOperator
from mercer.kernels.base import Kernel
from mercer.memory import memory_limit
from mercer.panels import clear_above, without_means
from mercer.solve.precondition import pivoted_cholesky
from mercer.theory.permutation import (
    KernelTest,
    check_count,
    check_sizes,
    check_statistic,
    judged,
    p_value,
    rows_of,
    with_median,
)
from mercer.typing import Array, Integers, Memory, Seed, Table

BLOCK = 64  # rows that are permuted together
TRACE_LEFT = 1e-6  # of a Gram matrix, that its low rank factor may leave out


def hsic_test(
    X: Table,
    Y: Table,
    kernel: Kernel | str = "RBF()",
    kernel_y: Kernel | str | None = None,
    *,
    statistic: str = "unbiased",
    n_permutations: int = 499,
    strict: bool = False,
    memory: Memory = "2GiB",
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> KernelTest:
    """Test whether row i of X and row i of Y are independent (Gretton et al., 2008).

        biased      tr(KHLH) / n²,    H = I - 11ᵀ/n, K and L the Gram matrices of X and of Y
        unbiased    (tr(K̃L̃) + 1ᵀK̃1·1ᵀL̃1/((n-1)(n-2)) - 2·1ᵀK̃L̃1/(n-2)) / (n(n-3)),    ˜: diagonal 0

    The unbiased one is that of Song et al., 2012. The p-value is that of random permutations of the rows of
    Y. An open lengthscale is the median distance of its own sample; `kernel_y` is `kernel` where not given.
    Where K, L and the work on them do not fit in `memory`, both are replaced by low rank factors, which
    cannot spoil the level since they do not look at the pairing; the notes say how much of each trace is left
    out. Y may have one dimension. `strict` refuses a kernel that is not positive semi-definite (after
    centring) instead of warning.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(80, 1))
    >>> hsic_test(x, x**2, random_state=0).p_value
    0.002
    >>> hsic_test(x, rng.normal(size=80), random_state=0).p_value > 0.05
    True
    """
    biased = check_statistic(statistic)
    count = check_count(n_permutations, "n_permutations", 1)
    x, y = _pairs(X, Y, kernel, kernel if kernel_y is None else kernel_y)
    n = len(x)
    check_sizes((n,), 2 if biased else 4)
    k = with_median(kernel, x)
    l = with_median(kernel if kernel_y is None else kernel_y, y)
    notes = _judged(k, x, l, y, strict)
    rng = np.random.default_rng(random_state)
    stored = 4 * 8 * n * n <= memory_limit(memory)
    kind = _Stored if stored else _Factors
    found = kind(k.gram(x, memory=memory, n_jobs=n_jobs), l.gram(y, memory=memory, n_jobs=n_jobs), biased)
    value = found(np.arange(n))
    null = np.array([found(rng.permutation(n)) for _ in range(count)])
    return KernelTest(
        "HSIC",
        value,
        p_value(value, null),
        null,
        (k, l),
        f"{statistic}, {count} permutations",
        (n,),
        (*notes, *found.notes),
    )


def hsic(
    X: Table,
    Y: Table,
    kernel: Kernel | str = "RBF()",
    kernel_y: Kernel | str | None = None,
    *,
    statistic: str = "unbiased",
    strict: bool = False,
) -> float:
    """HSIC of paired samples, without a test.

    >>> round(hsic([[0.0], [1.0]], [[0.0], [1.0]], "Linear()", statistic="biased"), 12)  # squared covariance
    0.0625
    """
    biased = check_statistic(statistic)
    x, y = _pairs(X, Y, kernel, kernel if kernel_y is None else kernel_y)
    check_sizes((len(x),), 2 if biased else 4)
    k = with_median(kernel, x)
    l = with_median(kernel if kernel_y is None else kernel_y, y)
    _judged(k, x, l, y, strict)
    return _Stored(k.gram(x), l.gram(y), biased)(np.arange(len(x)))


def _judged(k: Kernel, x: Rows, l: Kernel, y: Rows, strict: bool) -> tuple[str, ...]:
    """What has to be said of the two kernels, once where they are one."""
    lost = "HSIC is then no squared length, and may be 0 or negative where X and Y depend on one another."
    notes = [*judged(k, x, strict=strict, lost=lost), *judged(l, y, strict=strict, lost=lost)]
    return tuple(dict.fromkeys(notes))


def _pairs(X: Table, Y: Table, kernel: Kernel | str, kernel_y: Kernel | str) -> tuple[Rows, Rows]:
    x = rows_of(X, "X", kernel)
    if np.ndim(cast("npt.ArrayLike", Y)) == 1 and np.asarray(Y).dtype.kind in "fiub":
        Y = np.asarray(Y).reshape(-1, 1)
    y = rows_of(Y, "Y", kernel_y)
    if len(x) != len(y):
        raise ShapeError(f"X has {len(x)} rows and Y has {len(y)}; row i of both must belong together.")
    return x, y


class _Stored:
    """HSIC for a permutation of Y, from the two matrices: n²/2 products, gathered block by block in cache."""

    def __init__(self, K: GramOperator, L: GramOperator, biased: bool) -> None:
        self.n: int = K.shape[0]
        self.biased = biased
        self.notes = tuple(dict.fromkeys((*K.notes, *L.notes)))
        self.K = _centred(K.dense())
        self.L = _centred(L.dense())
        if not biased:
            # Of centred matrices the formula is the same, and no digits of an offset are lost.
            np.fill_diagonal(self.K, 0.0)
            np.fill_diagonal(self.L, 0.0)
            self.k = self.K.sum(axis=1)
            self.l = self.L.sum(axis=1)
        # Both are symmetric: one half, counted twice.
        self.K *= 2.0
        np.einsum("ii->i", self.K)[:] *= 0.5
        clear_above(self.K.T)

    def __call__(self, order: Integers) -> float:
        n = self.n
        product = 0.0
        for i in range(0, n, BLOCK):
            moved = self.L[order[i : i + BLOCK]].take(order[i:], axis=1)
            product += float(np.einsum("ij,ij->", self.K[i : i + BLOCK, i:], moved))
        if self.biased:
            return product / n**2
        return _unbiased(product, self.k, self.l[order], n)


class _Factors:
    """The same from K ≈ FFᵀ and L ≈ GGᵀ: tr(KL) = ‖FᵀG‖², in n r² multiplications."""

    def __init__(self, K: GramOperator, L: GramOperator, biased: bool) -> None:
        self.n: int = K.shape[0]
        self.biased = biased
        left: list[str] = []
        self.F = _factor(K, "X", left)
        self.G = _factor(L, "Y", left)
        self.notes = tuple(dict.fromkeys((*left, *K.notes, *L.notes)))
        if not biased:
            self.diagonal_k = np.einsum("ij,ij->i", self.F, self.F)
            self.diagonal_l = np.einsum("ij,ij->i", self.G, self.G)
            self.k = self.F @ self.F.sum(axis=0) - self.diagonal_k
            self.l = self.G @ self.G.sum(axis=0) - self.diagonal_l

    def __call__(self, order: Integers) -> float:
        n = self.n
        product = float(((self.F.T @ self.G[order]) ** 2).sum())
        if self.biased:
            return product / n**2
        product -= float(self.diagonal_k @ self.diagonal_l[order])
        return _unbiased(product, self.k, self.l[order], n)


def _unbiased(product: float, k: Array, l: Array, n: int) -> float:
    """Song's statistic from tr(K̃L̃) and the row sums of K̃ and L̃."""
    between = float(k.sum() * l.sum()) / ((n - 1) * (n - 2))
    total: float = product + between - 2 * float(k @ l) / (n - 2)
    return total / (n * (n - 3))


def _centred(K: Array) -> Array:
    means = K.mean(axis=1)
    return without_means(K, means, float(means.mean()))


def _factor(K: GramOperator, name: str, left: list[str]) -> Array:
    """The centred low rank factor of a Gram operator; what it leaves out is noted."""
    trace = float(K.diag().sum())
    found = pivoted_cholesky(K, TRACE_LEFT * trace / K.shape[0])
    share = float(found.left_out or 0.0) / max(trace, np.finfo(float).tiny)
    left.append(
        f"the Gram matrix of {name} is a factor of rank {found.rank}, which leaves out {share:.2g} of its "
        "trace"
    )
    F = found.vectors * np.sqrt(np.maximum(found.values, 0.0))
    centred: Array = F - F.mean(axis=0)
    return centred
