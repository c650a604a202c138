"""The one place that judges a kernel on rows of data: proved, valid where it was looked at, or refuted.

Machines, approximations and tests that take a kernel all ask here, so that all of them say the same.

    proved by rules                  passes at once
    proved given what was declared   passes and is noted; `strict` looks at the rows as if there were no proof
    not proved                       the Gram matrix is decided on the rows, then other points are searched
    for a witness

Of a matrix that is given or stored, or under `strict`, all rows are looked at: by Cholesky up to
`EXACT_ROWS`, beyond by Lanczos's method for the smallest eigenvalue. Of a matrix that is computed piece by
piece, `SOME_ROWS` of them. The sentence says which.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.errors import InvalidKernelError, InvalidKernelWarning, warn
from mercer.gram import Features, GramOperator, LowRank, Shifted
from mercer.gram.far_features import FarFeatures
from mercer.kernels.base import Kernel
from mercer.kernels.proofs.answers import Refuted
from mercer.solve.solution import Note
from mercer.typing import Array, Integers

EXACT_ROWS = 5000  # of a matrix that is stored, or under strict: Cholesky takes a second or two
SOME_ROWS = 400  # of a matrix that is not stored
ALL_EIGENVALUES = 400  # rows up to which all eigenvalues are computed
ROUNDING = 1e-10  # of the largest eigenvalue: what is less negative is rounding
ASYMMETRY = 1e-8  # of the largest entry
STORED = ("dense", "precomputed")


class Verdict(NamedTuple):
    """`notes` for the certificate, and a witness: rows and a vector q with qᵀKq < 0."""

    valid: bool
    notes: tuple[str, ...] = ()
    witness: tuple[Integers, Array] | None = None


class LowestEigenvalue(NamedTuple):
    """The smallest eigenvalue where it is negative beyond rounding, its vector, and what was looked at."""

    value: float | None
    vector: Array | None
    rows: Integers
    looked: str


def judge_on_rows(
    kernel: Kernel | None,
    K: GramOperator,
    rows: Integers,
    columns: int | None,
    *,
    strict: bool = False,
    lost: str,
    note: str,
    centred: bool = False,
    keeps: bool = False,
    needed: bool = True,
    out_of: int | None = None,
) -> Verdict:
    """Judge the kernel (None: a given matrix) on some rows of K.

    `lost` says what an invalid kernel costs; `note` is for the certificate and keeps its kind. With
    `centred`, what counts is qᵀKq for Σq = 0: a constant cancels in all distances. A machine that `keeps` the
    witness publishes it as `witness_`. The number of `columns` is None where the rows are no vectors: then no
    witness is sought among other points. Where the rows are a sample, `out_of` says of how many. Where
    nothing is lost, a kernel is not `needed`: then there is the note alone, without a warning.
    """
    if _of_features(K):
        # ΦΦᵀ is positive semi-definite whatever it stands for: the approximation judged the kernel itself.
        return Verdict(True)
    whose = "the precomputed Gram matrix" if kernel is None else str(kernel)
    declared = None if kernel is None else _declared(kernel)
    if declared == ():
        return Verdict(True)
    if declared and not strict:
        said = f"{whose} is proved to be a kernel given what you declared: {'; '.join(declared)}"
        return Verdict(True, (said,))
    if out_of is None:
        out_of = len(rows)
    found = _lowest(K, rows, strict, centred, out_of)
    witness = None
    if kernel is None and _asymmetric(K):
        said = f"{whose} is not positive semi-definite: it is not symmetric"
    elif found.value is not None:
        after = "after centring " if centred else ""
        said = (
            f"{whose} is not positive semi-definite: {found.looked} {after}it has a negative eigenvalue, "
            f"its lowest eigenvalue is {found.value:.6g}"
        )
        if keeps:
            said += " (rows and vector in witness_)"
        if found.vector is not None:
            witness = (found.rows, found.vector)
    else:
        known = kernel is None or declared or columns is None
        refuted = None if known else refutation(kernel, columns, centred)
        if refuted is None:
            return Verdict(True, _no_trouble(kernel, whose, found, len(rows), centred))
        said = refuted
    if strict:
        raise InvalidKernelError(
            f"{said}. Use a kernel whose validity() is proved, or strict=False to use it all the same."
        )
    if needed:
        warn(f"{said}. {lost}", InvalidKernelWarning)
    kind = note.kind if isinstance(note, Note) else None
    return Verdict(False, (Note(f"{note} ({said})", kind),), witness)


def _of_features(K: GramOperator) -> bool:
    inner = K.inner if isinstance(K, Shifted) else K
    return isinstance(inner, LowRank | Features | FarFeatures)


def _asymmetric(K: GramOperator) -> bool:
    """Whether a given matrix differs from its transpose beyond rounding."""
    A = K.dense()
    return bool(np.abs(A - A.T).max(initial=0.0) > ASYMMETRY * np.abs(A).max(initial=0.0))


def _declared(kernel: Kernel) -> tuple[str, ...] | None:
    """What the proof takes from declarations; None where there is no proof."""
    proof = kernel.known_proof()
    return None if proof is None else proof.declared()


def _no_trouble(
    kernel: Kernel | None, whose: str, found: LowestEigenvalue, n: int, centred: bool
) -> tuple[str, ...]:
    after = " after centring" if centred else ""
    if kernel is not None:
        return (f"{whose} is not proved to be a kernel; {found.looked} it is one{after}",)
    if len(found.rows) < n:
        return (f"{whose} was looked at {found.looked} only, and is positive semi-definite there{after}",)
    return ()


@lru_cache(maxsize=64)
def refutation(kernel: Kernel, columns: int, centred: bool = False) -> str | None:
    """The witness against a kernel, in a sentence; None where there is none. The kernel keeps what was found.

    With `centred`, a witness counts if its points have one of sum 0 too.
    """
    try:
        verdict = kernel.validity(columns=columns)
    except Exception:
        # A kernel that only takes this data cannot be judged on other points.
        return None
    if not isinstance(verdict, Refuted):
        return None
    if centred and not verdict.asymmetric and _negative(_about_its_mean(verdict.gram())) is None:
        return None
    return f"{kernel} is not positive semi-definite, as these points show: {verdict!s}"


# ── the smallest eigenvalue ─────────────────────────────────────────────────────────────────────────────────


def _lowest(K: GramOperator, rows: Integers, strict: bool, centred: bool, total: int) -> LowestEigenvalue:
    """The smallest eigenvalue of K on these rows of `total`, if it is negative beyond rounding."""
    n = len(rows)
    whole = K.kind in STORED or strict
    if whole and n > EXACT_ROWS:
        return _by_lanczos(K, rows, centred, total)
    some = rows
    if not whole and n > SOME_ROWS:
        some = rows[np.linspace(0, n - 1, SOME_ROWS).astype(int)]
    looked = f"on all {total} rows" if len(some) == total else f"on {len(some)} of {total} rows"
    B = np.array(K.block(some, some), dtype=np.float64)
    if centred:
        B = _about_its_mean(B)
    if len(some) > ALL_EIGENVALUES:
        return _by_cholesky(B, some, looked)
    found = _negative(B)
    if found is None:
        return LowestEigenvalue(None, None, some, looked)
    return LowestEigenvalue(*found, some, looked)


def _negative(B: Array) -> tuple[float, Array] | None:
    """The smallest eigenvalue and its vector, where it is negative beyond rounding."""
    values, vectors = np.linalg.eigh(B)
    top = max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny)
    if len(values) == 0 or values[0] >= -ROUNDING * top:
        return None
    return float(values[0]), vectors[:, 0]


def _about_its_mean(B: Array) -> Array:
    """HBH with H = I - 11ᵀ/n."""
    means = B.mean(axis=0)
    out: Array = B + means.mean() - means - means[:, None]
    return out


def _by_cholesky(B: Array, rows: Integers, looked: str) -> LowestEigenvalue:
    """Where K + rounding has a factor, K has no eigenvalue below minus that; else a witness is computed."""
    slack = ROUNDING * float(np.abs(B).sum(axis=0).max())
    shifted = B.copy()
    shifted[np.diag_indices_from(shifted)] += slack
    if lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1] == 0:
        return LowestEigenvalue(None, None, rows, looked)
    return _smallest(LinearOperator(B.shape, matvec=lambda v: B @ v, dtype=np.float64), rows, slack, looked)


def _by_lanczos(K: GramOperator, rows: Integers, centred: bool, total: int) -> LowestEigenvalue:
    """Products alone: what is found is an eigenvalue, what is not found may be there."""
    n = len(rows)

    def product(v: Array) -> Array:
        v = np.ravel(v)
        if centred:
            v = v - v.mean()
        whole = np.zeros((K.shape[0], 1))
        whole[rows, 0] = v
        out: Array = np.asarray(K @ whole, dtype=np.float64)[rows, 0]
        if centred:
            out = out - out.mean()
        return out

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    largest = eigsh(operator, 1, which="LM", tol=1e-2, v0=np.ones(n), return_eigenvectors=False)
    top = float(np.abs(largest[0]))
    which = f"all {total} rows" if n == total else f"{n} of {total} rows"
    return _smallest(operator, rows, ROUNDING * top, f"on {which}, by Lanczos's method,")


def _smallest(operator: LinearOperator, rows: Integers, slack: float, looked: str) -> LowestEigenvalue:
    start = np.random.default_rng(0).normal(size=len(rows))
    try:
        values, vectors = eigsh(operator, 1, which="SA", tol=1e-6, v0=start, maxiter=1000)
    except ArpackNoConvergence as stopped:
        values = stopped.eigenvalues
        vectors = stopped.eigenvectors
    if len(values) == 0 or values[0] >= -slack:
        return LowestEigenvalue(None, None, rows, looked)
    return LowestEigenvalue(float(values[0]), vectors[:, 0], rows, looked)
