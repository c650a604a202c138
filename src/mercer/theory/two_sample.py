"""Whether two samples come from one distribution: the maximum mean discrepancy (Gretton et al., 2012)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student

from mercer import blas
from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.gram import Dense, GramOperator, Tiles
from mercer.kernels.base import Kernel
from mercer.theory.permutation import (
    KernelTest,
    batches,
    check_count,
    check_sizes,
    check_statistic,
    judged,
    p_value,
    pooled,
    rows_of,
    with_median,
)
from mercer.threads import one_blas
from mercer.typing import Array, Memory, Seed, Table

BLOCK = 256  # rows of a stored Gram matrix that are multiplied together
FEWEST_BLOCKS = 8  # for a mean of block statistics to be nearly normal
LOST = "MMD² is then no squared distance, and may be 0 or negative for different distributions."


@dataclass(frozen=True, eq=False)
class TwoSampleTest(KernelTest):
    """The result of `mmd_test`; `power` has the criterion of every kernel that was tried, by its text."""

    power: dict[str, float] = field(default_factory=dict)
    _rows: Rows | None = None

    def witness(self, points: Table) -> Array:
        """(1/m) Σ k(x_i, t) - (1/n) Σ k(z_j, t): positive where X has more mass, negative where Z has."""
        m, n = self.sizes
        signs = np.concatenate([np.full(m, 1 / m), np.full(n, -1 / n)])
        kernel = self.kernels[0]
        return np.asarray(Tiles(kernel, rows_of(points, "points", kernel), self._rows) @ signs)


def mmd_test(
    X: Table,
    Z: Table,
    kernel: Kernel | str | Sequence[Kernel | str] = "RBF()",
    *,
    statistic: str = "unbiased",
    n_permutations: int = 999,
    block_size: int | None = None,
    strict: bool = False,
    memory: Memory = "2GiB",
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> TwoSampleTest:
    """Test whether the rows of X and of Z come from the same distribution.

        MMD² = mean k(x, x') + mean k(z, z') - 2 mean k(x, z) = ‖mean φ(x) - mean φ(z)‖²

    "unbiased" leaves the pairs of a row with itself out, "biased" has them. The p-value is that of random
    relabellings of the pooled rows, all of them by products S K with rows of zeros and ones, with K never
    stored where it does not fit in `memory`.

    Parameters
    ----------
    kernel : a kernel, its text, or a list of them
        An open lengthscale is the median distance between the pooled rows. Of a list, the kernel with
        the largest MMD²/σ (σ: the standard deviation of MMD² where the distributions differ) on a random half
        of each sample is tested on the other half: that ratio decides the power of large samples (Sutherland
        et al., 2017).
    block_size : int
        Instead of permutations, average MMD² over blocks of so many rows of each sample (Zaremba et al.,
        2013): time grows with n · block_size. The p-value is Student's, right for many blocks only.
    strict : bool
        Refuse a kernel that is not positive semi-definite (after centring) instead of warning.

    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(60, 2)), rng.normal(0.8, 1.0, size=(60, 2))
    >>> found = mmd_test(X, Z, "RBF(1.0)", random_state=0)
    >>> found.p_value, bool(found.witness([[-1.0, -1.0]])[0] > 0)
    (0.001, True)
    """
    biased = check_statistic(statistic)
    tried = [kernel] if isinstance(kernel, (str, Kernel)) else list(kernel)
    x = rows_of(X, "X", *tried)
    z = rows_of(Z, "Z", *tried)
    check_sizes((len(x), len(z)), 2)
    rng = np.random.default_rng(random_state)
    power: dict[str, float] = {}
    notes: tuple[str, ...] = ()
    if not isinstance(kernel, (str, Kernel)):
        k, x, z, power = _choose(tried, x, z, rng, memory, n_jobs)
        notes = (f"the kernel was chosen out of {len(power)} on the other half of each sample",)
    else:
        k = with_median(kernel, pooled(x, z))
    notes += judged(k, pooled(x, z), strict=strict, lost=LOST)
    if block_size is not None:
        return _by_blocks(k, x, z, check_count(block_size, "block_size", 2), rng, power, notes, n_jobs)
    count = check_count(n_permutations, "n_permutations", 1)
    both = pooled(x, z)
    m = len(x)
    n = len(z)
    K = k.gram(both, memory=memory, n_jobs=n_jobs)
    found = _Discrepancy(K, m, n, biased)
    value = float(found(_labels(m, n))[0])
    with one_blas():
        null = np.concatenate([found(_relabelled(rng, m, n, size)) for size in batches(count)])
    return TwoSampleTest(
        "MMD²",
        value,
        p_value(value, null),
        null,
        (k,),
        f"{statistic}, {count} permutations",
        (m, n),
        (*notes, *K.notes),
        power,
        both,
    )


def mmd(
    X: Table, Z: Table, kernel: Kernel | str = "RBF()", *, statistic: str = "unbiased", strict: bool = False
) -> float:
    """MMD² of two samples, without a test.

    >>> mmd([[0.0], [0.0]], [[1.0], [1.0]], "Linear()"), mmd([[0.0]], [[1.0]], "Linear()", statistic="biased")
    (1.0, 1.0)
    """
    biased = check_statistic(statistic)
    x = rows_of(X, "X", kernel)
    z = rows_of(Z, "Z", kernel)
    check_sizes((len(x), len(z)), 1 if biased else 2)
    both = pooled(x, z)
    k = with_median(kernel, both)
    judged(k, both, strict=strict, lost=LOST)
    return float(_Discrepancy(k.gram(both), len(x), len(z), biased)(_labels(len(x), len(z)))[0])


class _Discrepancy:
    """MMD² for many labellings at once: rows of S are 1 for the m rows of X and 0 for the n rows of Z.

    With r = K1: Σ k(x, x') = sᵀKs, Σ k(x, z) = sᵀr - sᵀKs, and Σ k(z, z') = 1ᵀr - 2 sᵀr + sᵀKs. The mean of K
    is taken off first, which changes no MMD² and saves the digits of a kernel with a large offset.
    """

    def __init__(self, K: GramOperator, m: int, n: int, biased: bool) -> None:
        self.K = K
        self.m = m
        self.n = n
        self.biased = biased
        total = m + n
        sums = np.asarray(K @ np.ones(total), dtype=np.float64)
        self.mean = float(sums.mean()) / total
        self.sums = sums - self.mean * total
        self.diag = np.asarray(K.diag(), dtype=np.float64) - self.mean

    def __call__(self, S: Array) -> Array:
        m = self.m
        n = self.n
        out: Array
        inside = _squares(self.K, S) - self.mean * m * m
        reach = S @ self.sums
        xz = reach - inside
        zz = self.sums.sum() - 2 * reach + inside
        if self.biased:
            out = inside / m**2 + zz / n**2 - 2 * xz / (m * n)
            return out
        diagonal = S @ self.diag
        xx = inside - diagonal
        zz = zz - (self.diag.sum() - diagonal)
        out = xx / (m * (m - 1)) + zz / (n * (n - 1)) - 2 * xz / (m * n)
        return out


def _squares(K: GramOperator, S: Array) -> Array:
    """sᵀKs for each row of S; of a stored K one half is multiplied, block by block, and counted twice."""
    if not isinstance(K, Dense):
        return np.asarray(np.einsum("ij,ji->i", S, np.asarray(K @ S.T)))
    A = K.dense()
    out = np.zeros(len(S))
    for start in range(0, A.shape[0], BLOCK):
        part = slice(start, start + BLOCK)
        after = slice(start + BLOCK, None)
        own = S[:, part]
        products = blas.matmul(S[:, after], A[after, part])
        products *= 2.0
        products += blas.matmul(own, A[part, part])
        out += np.einsum("ij,ij->i", own, products)
    return out


def _labels(m: int, n: int) -> Array:
    """One row, with m ones and then n zeros."""
    S = np.zeros((1, m + n))
    S[:, :m] = 1.0
    return S


def _relabelled(rng: np.random.Generator, m: int, n: int, count: int) -> Array:
    """Rows with m ones at random places: those of the m smallest of m + n random numbers."""
    drawn = np.ascontiguousarray(rng.random((m + n, count)).T)
    S = np.zeros((count, m + n))
    np.put_along_axis(S, drawn.argpartition(m - 1, axis=1)[:, :m], 1.0, axis=1)
    return S


def power_ratio(K: GramOperator, m: int, n: int) -> float:
    """MMD²/σ, with σ² = 4 (Var h(x)/m + Var h(z)/n), h(t) the witness without the row itself."""
    S = np.zeros((m + n, 2))
    S[:m, 0] = 1.0
    S[m:, 1] = 1.0
    to_x, to_z = np.asarray(K @ S, dtype=np.float64).T
    diagonal = np.asarray(K.diag(), dtype=np.float64)
    at_x = (to_x[:m] - diagonal[:m]) / (m - 1) - to_z[:m] / n
    at_z = to_x[m:] / m - (to_z[m:] - diagonal[m:]) / (n - 1)
    squared = float(at_x.mean() - at_z.mean())
    spread = float(np.sqrt(4 * (at_x.var() / m + at_z.var() / n)))
    floor = 1e-8 * max(float(np.abs(diagonal).max()), np.finfo(float).tiny)
    return squared / (spread + floor)


def _choose(
    kernels: list[Kernel | str],
    x: Rows,
    z: Rows,
    rng: np.random.Generator,
    memory: Memory,
    n_jobs: int | None,
) -> tuple[Kernel, Rows, Rows, dict[str, float]]:
    """The kernel of most power on a random half of each sample, and the other halves."""
    if not kernels:
        raise ParameterError("kernel is an empty list; give at least one.")
    check_sizes((len(x), len(z)), 4)
    halves = [rng.permutation(len(r)) for r in (x, z)]
    train = [r.rows(np.sort(h[: len(r) // 2])) for r, h in zip((x, z), halves, strict=True)]
    test = [r.rows(np.sort(h[len(r) // 2 :])) for r, h in zip((x, z), halves, strict=True)]
    both = pooled(*train)
    tried = [with_median(k, both) for k in kernels]
    ratios = []
    for k in tried:
        K = k.gram(both, memory=memory, n_jobs=n_jobs)
        ratios.append(power_ratio(K, len(train[0]), len(train[1])))
    best = tried[int(np.argmax(ratios))]
    return best, test[0], test[1], {str(k): float(r) for k, r in zip(tried, ratios, strict=True)}


def _by_blocks(
    k: Kernel,
    x: Rows,
    z: Rows,
    size: int,
    rng: np.random.Generator,
    power: dict[str, float],
    notes: tuple[str, ...],
    n_jobs: int | None,
) -> TwoSampleTest:
    """The mean of MMD² over blocks, against its own spread."""
    count = min(len(x), len(z)) // size
    if count < FEWEST_BLOCKS:
        raise InputError(
            f"block_size={size} gives {count} blocks of {min(len(x), len(z))} rows; at least {FEWEST_BLOCKS} "
            "are needed. Use smaller blocks, or permutations."
        )
    order_x = rng.permutation(len(x))
    order_z = rng.permutation(len(z))
    first = _labels(size, size)
    values = np.empty(count)
    for b in range(count):
        part = slice(b * size, (b + 1) * size)
        rows = pooled(x.rows(order_x[part]), z.rows(order_z[part]))
        values[b] = _Discrepancy(k.gram(rows, n_jobs=n_jobs), size, size, False)(first)[0]
    value = float(values.mean())
    spread = float(values.std(ddof=1)) / np.sqrt(count)
    p = float(student.sf(value / spread, count - 1)) if spread > 0 else float(value <= 0)
    said = (*notes, "the p-value is asymptotic")
    unused = len(x) + len(z) - 2 * count * size
    if unused:
        said = (*said, f"{unused} rows did not fill a block and were not used")
    return TwoSampleTest(
        "MMD²",
        value,
        p,
        values,
        (k,),
        f"unbiased, {count} blocks",
        (len(x), len(z)),
        said,
        power,
        pooled(x, z),
    )
