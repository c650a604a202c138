"""Leading eigenpairs of a matrix in memory by Lanczos' method: one vector at a time, all of them kept.

A product with one vector reads half of the matrix and no more, and single vectors need far fewer products
than blocks: about four for each pair that is wanted. But the Krylov space of one vector holds one copy of a
multiple eigenvalue only, and no residual tells that another is missing. So when the pairs are good enough, a
second random vector begins in the complement of the space. Its largest Ritz value θ after j steps bounds what
is left there: a random start misses by more than ε of the spectrum's width with a probability of at most
1.648 √n exp(-√ε (2j - 1)) (Kuczyński and Woźniakowski 1992). The pairs count as found when what is left lies
below all of them except with probability `DOUBT`. Where a copy shows up, or the basis is full, the answer is
what a block method may start from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer import lapack
from mercer.panels import Entries
from mercer.solve import core
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.threads import no_blas_threads, threads
from mercer.typing import Array

EPS = float(np.finfo(np.float64).eps)
# The probability of a missing copy that is accepted.
DOUBT = 1e-6
# The error, as a part of the spectrum's width, that the first look at the complement allows for; and steps
# between two looks.
FIRST_LOOK = 0.8
LOOK = 2
# Vectors in the basis for each pair that is wanted, and for any number of them.
BASIS = 12
LEAST_BASIS = 60
# Steps before the first Ritz values, for each pair and for any number of them; and between two of them.
FIRST_CHECK = 3
LEAST_CHECK = 8
STEPS = 4


class RitzPairs(NamedTuple):
    """The leading pairs of a space: values, falling, vectors as columns, bounds of their residuals.

    They count as `converged` only if it is certain that no other eigenvalue lies above them.
    """

    values: Array
    vectors: Array
    residuals: Array
    steps: int
    status: Status


def can_read(entries: Entries | None) -> bool:
    """Whether the core can multiply by a matrix as it lies in memory."""
    if entries is None or entries.array.dtype != np.float64:
        return False
    return bool(entries.array.flags.c_contiguous or entries.array.flags.f_contiguous)


def leading_pairs(
    entries: Entries, k: int, tol: float, max_steps: int, rng: np.random.Generator
) -> RitzPairs | None:
    """The k leading pairs to residuals of tol · max |λ|; None where another method is needed.

    With the status "limit" or "interrupted" they are the best so far.
    """
    basis = _Basis(entries, k, max_steps, rng)
    if not basis.grow(max(FIRST_CHECK * k, LEAST_CHECK)) and basis.m < k:
        return None
    found = False
    # After an eigenproblem of some ten numbers, threads of BLAS would run in circles beside the products.
    with no_blas_threads(), Anytime[_Basis](best=basis) as run:
        found = basis.converge(max(tol, EPS)) and basis.holds_all()
    status = Status.CONVERGED
    if run.interrupted:
        status = Status.INTERRUPTED
    elif not found:
        if basis.m < max_steps:
            return None
        status = Status.LIMIT
    values, vectors, residuals = basis.ritz()
    return RitzPairs(values, vectors, residuals, basis.m, status)


class _Basis:
    """The basis and what is known of it. Of its `m` vectors, `first` came from the first random one."""

    def __init__(self, entries: Entries, k: int, max_steps: int, rng: np.random.Generator) -> None:
        array = entries.array
        n = len(array)
        # Of a symmetric matrix, either order is that of C.
        self.K = array if array.flags.c_contiguous else array.T
        self.centred = entries.centred
        self.threads = threads(entries.n_jobs)
        self.k = k
        self.max_steps = max_steps
        self.rng = rng
        self.most = min(max(BASIS * k, LEAST_BASIS), n)
        self.Q = np.empty((self.most, n))
        self.T = np.zeros((self.most, self.most))
        self.rest = np.zeros(self.most)
        self.m = 0
        self.first = 0
        # The least Ritz value, and the k-th where it has converged.
        self.lowest = 0.0
        self.bar = np.inf
        self._begin()

    def _begin(self) -> None:
        """A random vector, orthogonal to the basis, is the next to be multiplied."""
        q = self.rng.standard_normal(self.Q.shape[1])
        known = self.Q[: self.m]
        for _ in range(3):
            q -= (known @ q) @ known
            q /= np.linalg.norm(q)
        self.Q[self.m] = q

    def grow(self, steps: int) -> bool:
        """Some more vectors; False if the space has become invariant or no more are allowed."""
        stop = min(self.m + steps, self.most, self.max_steps)
        if stop <= self.m:
            return False
        self.m = core.lanczos(
            self.K, self.centred, self.Q, self.T, self.rest, self.m, stop, threads=self.threads
        )
        return self.m == stop and bool(self.rest[stop - 1] > 0)

    def converge(self, tol: float) -> bool:
        """Grow until the residuals are as small as asked; False if that cannot be."""
        growing = True
        before: tuple[int, float] | None = None
        while True:
            values, S = self._small_pairs()
            self.lowest = min(self.lowest, float(values[-1]))
            # A v - λ v of a Ritz vector v is what its last basis vector leaves.
            residual = float(self.rest[self.m - 1] * np.abs(S[-1, : self.k]).max())
            asked = tol * float(np.abs(values).max())
            if residual <= asked:
                self.first = self.m
                self.bar = float(values[self.k - 1])
                return True
            if not growing:
                return False
            steps = _steps_needed(before, self.m, residual, asked)
            before = (self.m, residual)
            growing = self.grow(steps)

    def holds_all(self) -> bool:
        """Whether all eigenvalues outside the space are below the k-th value."""
        if self.first == self.Q.shape[1]:
            return True
        if self.first == self.most:
            return False
        self._begin()
        steps = int(np.ceil((self._doubted / np.sqrt(FIRST_LOOK) + 1) / 2))
        growing = True
        while growing:
            growing = self.grow(steps)
            steps = LOOK
            outside = np.linalg.eigvalsh(self.T[self.first : self.m, self.first : self.m])
            highest = float(outside[-1])
            if highest >= self.bar:
                return False
            # A random vector has a part in every eigenspace, and so has an invariant space that holds it.
            invariant = self.rest[self.m - 1] == 0
            if invariant or self._bound(highest, float(outside[0])) < self.bar:
                return True
        return False

    def _bound(self, highest: float, lowest: float) -> float:
        """Below this are all eigenvalues outside the first space, except with probability `DOUBT`."""
        missed = (self._doubted / (2 * (self.m - self.first) - 1)) ** 2
        if missed >= 1:
            return np.inf
        return highest + missed / (1 - missed) * (highest - min(lowest, self.lowest))

    @property
    def _doubted(self) -> float:
        """√ε (2j - 1) for an error of ε after j steps."""
        return float(np.log(1.648 * np.sqrt(self.Q.shape[1]) / DOUBT))

    def _small_pairs(self) -> tuple[Array, Array]:
        """Eigenvalues of T, falling, and its vectors."""
        values, S = lapack.eigh(self.T[: self.m, : self.m])
        return values[::-1], S[:, ::-1]

    def ritz(self) -> tuple[Array, Array, Array]:
        """Values, vectors, and bounds of their residuals: what the ends of both sequences leave."""
        values, S = self._small_pairs()
        S = np.ascontiguousarray(S[:, : self.k])
        residuals = self.rest[self.m - 1] * np.abs(S[-1])
        if 0 < self.first < self.m:
            residuals = residuals + self.rest[self.first - 1] * np.abs(S[self.first - 1])
        return values[: self.k].copy(), lapack.matmul(self.Q[: self.m].T, S), residuals


def _steps_needed(before: tuple[int, float] | None, m: int, residual: float, asked: float) -> int:
    """Residuals fall by about the same factor with every step, once they fall."""
    if before is None or not 0 < residual < before[1] or asked <= 0:
        return STEPS
    fall = np.log(before[1] / residual) / (m - before[0])
    return int(np.clip(np.log(residual / asked) / fall + 0.9, 1, 3 * STEPS))
