"""Matrices whose rows have very different sizes: scaled by powers of two, and forms whose sign is exact.

A Gram matrix is rounded entry by entry, and an entry of a positive semi-definite matrix is at most √(K_ii
K_jj). So the rounding of diag(1e20, 1) is not 1e20 ε in every direction: seen in D⁻¹KD⁻¹ with a unit diagonal
it is ε in each. Powers of two make that exact, and a vector y with yᵀ(D⁻¹KD⁻¹)y < 0 is a vector D⁻¹y with a
negative form of K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import linalg

from mercer.typing import Array, Integers

DEFINITE = "positive definite"
SEMIDEFINITE = "positive semi-definite to rounding"
INDEFINITE = "indefinite"
NEGATIVE = "negative definite"
NEGATIVE_SEMI = "negative semi-definite to rounding"
NOT_POSITIVE = "not positive semi-definite"
ASYMMETRIC = "not symmetric"
UNSURE = "cannot say"
REFUTED = (INDEFINITE, NEGATIVE, NEGATIVE_SEMI, NOT_POSITIVE)


EPS = float(np.finfo(np.float64).eps)
MOST_EXACT = 300  # rows of which a form is computed in whole numbers; that takes n² of them


def grades(K: Array) -> Integers:
    """Whole numbers e with |K_ij| 2^-(e_i + e_j) below 2, and about 1 on a positive diagonal.

    >>> grades(np.diag([1e20, 1.0, -1e-2])).tolist()
    [34, 1, -3]
    """
    size = np.where(K == 0, -(2**20), np.frexp(K)[1])
    diagonal = np.diag(size)
    known = diagonal > -(2**20)
    e: Integers = np.where(known, (diagonal + 1) // 2, 0)
    for i in np.flatnonzero(~known):
        # A zero on the diagonal: as large as the row allows.
        largest = int((size[i] - e).max())
        e[i] = largest if largest > -(2**19) else 0
    excess = np.maximum((size - e[:, None] - e[None, :]).max(axis=1) - 1, 0)
    out: Integers = e + (excess + 1) // 2
    return out


def scaled_by(K: Array, e: Integers) -> Array:
    """D⁻¹KD⁻¹ with D = 2^e."""
    out: Array = np.ldexp(K, -(e[:, None] + e[None, :]))
    return out


def form_sign(S: Array, y: Array) -> int:
    """The sign of yᵀSy beyond the rounding of its evaluation; 0 where it is zero, or too large a sum to say.

    >>> form_sign(np.array([[1.0, 1.0], [1.0, 1.0 - 2**-53]]), np.array([1.0, -1.0]))  # 2⁻⁵³ is rounding
    -1
    """
    kinds: tuple[np.dtype, ...] = (np.dtype(np.float64), np.dtype(np.longdouble))
    for kind in kinds:
        v = y.astype(kind)
        M = S.astype(kind)
        value = v @ (M @ v)
        bound = (2 * len(y) + 4) * np.finfo(kind).eps * (np.abs(v) @ (np.abs(M) @ np.abs(v)))
        if abs(value) > bound:
            return int(np.sign(value))
    if len(y) > MOST_EXACT:
        return 0
    whole = _whole(y)
    rows = _whole(S.ravel())
    n = len(whole)
    total = 0
    for i in range(n):
        row = rows[i * n : (i + 1) * n]
        total += whole[i] * sum(a * b for a, b in zip(row, whole, strict=True))
    return (total > 0) - (total < 0)


def _whole(values: Array) -> list[int]:
    """The numbers times one power of two that makes all of them whole."""
    exact = [Fraction(v) for v in values.tolist()]
    common = max((v.denominator for v in exact), default=1)
    return [int(v * common) for v in exact]


def definite_eigenvalues(S: Array, e: Integers) -> Array | None:
    """The eigenvalues of DSD for a positive definite S, each to the accuracy that S allows, or None.

    They are the squared singular values of DL with S = LLᵀ, which Jacobi's rotations find however DL is
    graded.
    """
    try:
        L = linalg.cholesky(S, lower=True)
    except linalg.LinAlgError:
        return None
    found = linalg.lapack.dgejsv(np.ldexp(L, e[:, None]), joba=0, jobu=3, jobv=3, jobr=0, jobt=0, jobp=0)
    sigma: Array = found[0]
    work = found[3]
    info = found[5]
    if info:
        return None
    return np.sort((sigma * (work[0] / work[1])) ** 2)


@dataclass(frozen=True, eq=False)
class Graded:
    """A matrix as the tests see it: S = D⁻¹KD⁻¹ made symmetric, with its eigenvalues and what they settle."""

    A: Array
    exponent: int
    e: Integers
    S: Array
    values: Array
    vectors: Array
    threshold: float
    lowest: Array | None
    highest: Array | None

    @classmethod
    def of(cls, K: Array, tol: float, *, by_entry: bool) -> Graded:
        """Scale and decompose; the form of `lowest` is proved negative, that of `highest` positive."""
        top = int(np.frexp(np.abs(K).max())[1])
        exponent = top + top % 2
        e = grades(K) if by_entry else np.full(len(K), exponent // 2, dtype=np.intp)
        S = scaled_by(K, e)
        S = 0.5 * (S + S.T)
        values, vectors = linalg.eigh(S)
        threshold = tol * float(np.abs(values).max())
        A = np.ldexp(K, -exponent)
        out = cls(0.5 * (A + A.T), exponent, e, S, values, vectors, threshold, None, None)
        low = out._proved(-1, by_entry=by_entry)
        high = out._proved(+1, by_entry=by_entry)
        return replace(out, lowest=low, highest=high)

    def _proved(self, sign: int, *, by_entry: bool) -> Array | None:
        """A vector whose form has this sign: an eigenvector of S, or a unit vector by the diagonal."""
        d = sign * np.diag(self.S)
        end = 0 if sign < 0 else -1
        y = self.vectors[:, end]
        reached = float(sign * self.values[end]) > self.threshold
        if reached and form_sign(self.S, y) == sign:
            return y
        if by_entry and d.max() > 0:
            unit: Array = np.eye(len(d))[int(np.argmax(d))]
            return unit
        return None

    @cached_property
    def _eigenpairs(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of K itself, over 2^exponent."""
        if int(self.e.max() - self.e.min()) == 0:
            return np.ldexp(self.values, 2 * int(self.e[0]) - self.exponent), self.vectors
        found: tuple[Array, Array] = linalg.eigh(self.A)
        return found

    @property
    def is_graded(self) -> bool:
        """Whether the diagonal spans so many powers of two that it matters."""
        return int(self.e.max() - self.e.min()) > 4

    @property
    def verdict(self) -> str:
        if self.lowest is None:
            return DEFINITE if self.values[0] > self.threshold else SEMIDEFINITE
        if self.highest is not None:
            return INDEFINITE
        return NEGATIVE if self.values[-1] < -self.threshold else NEGATIVE_SEMI

    def back(self, y: Array) -> Array:
        """The unit vector q of K that is y in S: D⁻¹y."""
        used = np.ldexp(y, -(self.e - int(self.e[y != 0].min(initial=2**20))))
        return _signed(used / np.linalg.norm(used))

    def form(self, q: Array) -> float:
        """qᵀKq / qᵀq."""
        return float(np.ldexp(q @ (self.A @ q) / (q @ q), self.exponent))

    @cached_property
    def direction(self) -> Array:
        """The lowest eigenvector of K; where only the scaled matrix has a negative form, its vector."""
        q = _signed(self._eigenpairs[1][:, 0])
        if self.lowest is not None and form_sign(self.A, q) >= 0:
            return self.back(self.lowest)
        return q

    def spectrum(self) -> Array:
        """The eigenvalues of K: where it is definite, each with its own digits, however graded."""
        if self.is_graded and self.verdict == DEFINITE:
            found = definite_eigenvalues(self.S, self.e)
            if found is not None:
                return found
        values = np.ldexp(self._eigenpairs[0], self.exponent)
        if self.lowest is not None:
            values[0] = min(values[0], self.form(self.direction))
        return values

    def search(self) -> tuple[Array, float]:
        """The q with the lowest form of K that a search finds, in K and in S."""
        q, _ = lowest_form(self.A)
        if form_sign(self.A, q) >= 0:
            y, _ = lowest_form(self.S)
            if form_sign(self.S, y) < 0:
                q = self.back(y)
        return q, self.form(q)


# ── the search ──────────────────────────────────────────────────────────────────────────────────────────────


def lowest_form(S: Array) -> tuple[Array, float]:
    """The unit q with the smallest qᵀSq found by search: units, best pair, random vectors, then descent.

    The descent is the locally optimal one: each step minimises the form over q, gradient and last step.
    It does not use the eigenvalues of S, so that it can referee them.
    """
    n = len(S)
    rng = np.random.default_rng(0)
    starts = np.column_stack([_best_pair(S), rng.standard_normal((n, 32)), rng.choice([-1.0, 1.0], (n, 32))])
    starts /= np.linalg.norm(starts, axis=0)
    forms = np.einsum("ij,ij->j", starts, S @ starts)
    q = starts[:, int(np.argmin(forms))]
    last = np.zeros(n)
    rho = float(q @ S @ q)
    for _ in range(100):
        basis = linalg.orth(np.column_stack([q, S @ q - rho * q, last]))
        _, vectors = linalg.eigh(basis.T @ S @ basis)
        new = basis @ vectors[:, 0]
        new /= np.linalg.norm(new)
        last = new - (new @ q) * q
        value = float(new @ S @ new)
        if not value < rho:
            break
        q = new
        rho = value
    return _signed(q), rho


def _best_pair(S: Array) -> Array:
    """The lowest vector with at most two entries, from the worst 2-by-2 principal block."""
    n = len(S)
    d = np.diag(S)
    if n == 1:
        return np.ones(1)
    low = 0.5 * (d[:, None] + d[None, :]) - np.hypot(0.5 * (d[:, None] - d[None, :]), S)
    np.fill_diagonal(low, np.inf)
    i, j = np.unravel_index(int(np.argmin(low)), S.shape)
    q = np.zeros(n)
    q[[i, j]] = linalg.eigh(S[np.ix_([i, j], [i, j])])[1][:, 0]
    return q


def _signed(q: Array) -> Array:
    """The same direction with a last entry that counts made positive, so that runs and platforms agree."""
    last = np.nonzero(np.abs(q) > 1e-8)[0][-1]
    if q[last] < 0:
        q = -q
    # Adding 0 turns a -0 into 0.
    return q + 0.0
