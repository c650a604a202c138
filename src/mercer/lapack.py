"""Linear algebra that Ctrl-C can leave: scipy's functions, by the same names, for matrices of any size.

Short calls are scipy's own, and long ones run as `mercer.blas` says. Both reach the same library, so that the
numbers are the same.
"""

from __future__ import annotations

import ctypes

import numpy as np
from scipy import linalg
from scipy.linalg import cython_blas, cython_lapack, get_lapack_funcs

from mercer import blas
from mercer.blas import LONG, Argument, apart, call, in_fortran_order, subtract_product, trmm, waiting
from mercer.blas import matmul as matmul
from mercer.blas import syrk as syrk
from mercer.blas import trsm as trsm
from mercer.panels import clear_above
from mercer.threads import no_blas_threads
from mercer.typing import Array, Integers

# Of a matrix whose factor takes no time, whatever its numbers are.
FEW_ROWS = 256
# Columns that LAPACK reflects at a time, and the numbers that it wants for the triangle of such a block.
BLOCK = 64
MARGIN = 5000
# Rows of a triangle that are inverted at once, and how much that may multiply the bound of rounding.
TRIANGLE = 256
GROWTH = 200.0
# Columns of an inverse that are made at a time: some blocks of a triangle.
COLUMNS = 2 * TRIANGLE

# Multiplications of a triangle that one thread has done in a millisecond. A thread of BLAS that helped with
# them would then run in circles, some tenth of a second long, on the core that other work wants.
QUICK = 3e7

# ── factors ─────────────────────────────────────────────────────────────────────────────────────────────────


def potrf(A: Array, *, overwrite_a: bool = False) -> tuple[Array, int]:
    """The lower Cholesky factor, rubbish above its diagonal, and the row (from 1) where it failed, or 0."""
    n = len(A)
    if n < FEW_ROWS:
        return _short_potrf(A, overwrite_a)
    L = _without_negligible(in_fortran_order(A, overwrite_a))
    if n**3 / 3 < LONG:
        return _short_potrf(L, True)
    return L, _potrf_by_parts(L)


def _potrf_by_parts(L: Array) -> int:
    """The factor in place of a matrix in Fortran's order, in parts that OpenBLAS can take."""
    n = len(L)
    for part in blas.parts(n, L.itemsize):
        block = L[part, part]
        failed = _lapack("potrf", L.dtype, "L", len(block), block, apart(block))
        if failed:
            return int(part.start) + failed
        if part.stop < n:
            below = L[part.stop :, part]
            shape = ("R", "L", "T", "N", *below.shape)
            call(cython_blas, "trsm", L.dtype, *shape, 1.0, block, apart(block), below, apart(below))
            blas.add_square(-1.0, below, L[part.stop :, part.stop :])
    return 0


def _short_potrf(A: Array, overwrite: bool) -> tuple[Array, int]:
    (call,) = get_lapack_funcs(("potrf",), (A,))
    found: tuple[Array, int] = call(A, lower=1, clean=0, overwrite_a=overwrite)
    return found


def potri(L: Array, *, overwrite_c: bool = False) -> tuple[Array, int]:
    """(LLᵀ)⁻¹ in the lower triangle."""
    n = len(L)
    if 2 * n**3 / 3 < LONG:
        (call,) = get_lapack_funcs(("potri",), (L,))
        found: tuple[Array, int] = call(L, lower=1, overwrite_c=overwrite_c)
        return found
    out = in_fortran_order(L, overwrite_c)
    failed = _lapack("trtri", out.dtype, "L", "N", n, out, n)
    if not failed:
        _lauum_by_parts(out)
    return out, failed


def _lauum_by_parts(L: Array) -> None:
    """LᵀL in the lower triangle, in place of L, in parts that OpenBLAS can take."""
    n = len(L)
    for part in blas.parts(n, L.itemsize):
        block = L[part, part]
        before = L[part, : part.start]
        if part.start:
            shape = ("L", "L", "T", "N", *before.shape)
            call(cython_blas, "trmm", L.dtype, *shape, 1.0, block, apart(block), before, apart(before))
        _lapack("lauum", L.dtype, "L", len(block), block, apart(block))
        if part.stop < n:
            below = L[part.stop :, part]
            if part.start:
                blas.add_product(1.0, below, L[part.stop :, : part.start], before, turn_a=True)
            blas.add_square(1.0, below, block, trans=True)


def potrs(L: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹ B, in the shape of B."""
    n = len(L)
    if n == 0:
        # LAPACK takes no empty matrices
        return np.zeros(B.shape, dtype=L.dtype)
    columns = B.size // max(n, 1)
    if 2.0 * n * n * columns < LONG or not L.flags.f_contiguous:
        (call,) = get_lapack_funcs(("potrs",), (L,))
        found: Array = call(L, B, lower=1)[0]
        return found.reshape(B.shape)
    X = in_fortran_order(np.asarray(B, dtype=L.dtype).reshape(n, columns), False)
    _lapack("potrs", X.dtype, "L", n, columns, L, n, X, n)
    return X.reshape(B.shape)


def pstrf(A: Array, tol: float) -> tuple[Array, Integers, int]:
    """Cholesky with pivots above `tol`: the lower factor, the order of the rows, from 1, and the rank."""
    n = len(A)
    if n**3 / 3 < LONG:
        factor, order, rank, _ = linalg.lapack.dpstrf(np.asfortranarray(A), tol=tol, lower=1)
        return factor, order.astype(np.intp), rank
    L = in_fortran_order(A, False)
    order = np.empty(n, np.intc)
    rank = ctypes.c_int()
    _lapack("pstrf", L.dtype, "L", n, L, n, order, rank, float(tol), np.empty(2 * n))
    return L, order.astype(np.intp), rank.value


def trtri(L: Array) -> Array:
    """L⁻¹ in the lower triangle; above it is rubbish."""
    n = len(L)
    if n**3 / 3 < LONG:
        (call,) = get_lapack_funcs(("trtri",), (L,))
        found: Array = call(L, lower=1)[0]
        return found
    out = in_fortran_order(L, False)
    _lapack("trtri", out.dtype, "L", "N", n, out, n)
    return out


def cholesky(A: Array, *, overwrite_a: bool = False) -> Array:
    """The lower factor, zeros above its diagonal; `LinAlgError` where there is none."""
    if len(A) < FEW_ROWS:
        found: Array = linalg.cholesky(A, lower=True, overwrite_a=overwrite_a, check_finite=False)
        return found
    L, info = potrf(np.asarray(A, dtype=np.float64), overwrite_a=overwrite_a)
    if info:
        raise linalg.LinAlgError(f"{info}-th leading minor of the array is not positive definite")
    return clear_above(L)


def solve_triangular(L: Array, B: Array, *, trans: str = "N") -> Array:
    """L⁻¹B, or L⁻ᵀB with trans="T"; L lower."""
    columns = B.size // max(len(L), 1)
    work = float(len(L)) ** 2 * columns
    if work < QUICK:
        with no_blas_threads():
            return _short_triangular(L, B, trans)
    if work < LONG or L.dtype != np.float64:
        return _short_triangular(L, B, trans)
    X = in_fortran_order(np.asarray(B, dtype=np.float64).reshape(len(L), columns), False)
    trsm(L, X, trans=trans)
    return X.reshape(B.shape)


def _short_triangular(L: Array, B: Array, trans: str) -> Array:
    found: Array = linalg.solve_triangular(L, B, lower=True, trans=trans, check_finite=False)
    return found


def cho_solve(L: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹B, L lower."""
    if float(len(L)) ** 2 * B.size / max(len(L), 1) < LONG:
        found: Array = linalg.cho_solve((L, True), B, check_finite=False)
        return found
    return solve_triangular(L, solve_triangular(L, B), trans="T")


class Triangle:
    """A lower triangle, in Fortran's order, with which many systems are solved.

    On a processor with AVX-512, products with a triangle take half of the time that systems take. So the
    blocks on the diagonal are inverted, and the rest is substitution. With the inverse X of a block L the
    error of a solution is that of substitution, times |X||L| at most. `growth` is the largest row sum of
    that; a block where it exceeds `GROWTH` is not inverted.

    >>> B = np.asfortranarray([[2.0], [7.0]])
    >>> Triangle(np.asfortranarray([[2.0, 0.0], [1.0, 3.0]])).solve(B)
    >>> B.ravel().round(12).tolist()
    [1.0, 2.0]
    """

    def __init__(self, lower: Array) -> None:
        self.lower = lower
        self.growth = 1.0
        self.inverses: list[Array | None] = []
        for part in self._parts():
            block = np.asfortranarray(lower[part, part])
            inverse = np.asfortranarray(np.tril(trtri(block)))
            growth = float(matmul(np.abs(inverse), np.abs(np.tril(block))).sum(axis=1).max())
            # Also where it is not a number.
            if not growth <= GROWTH:
                self.inverses.append(None)
                continue
            self.inverses.append(inverse)
            self.growth = max(self.growth, growth)

    def _parts(self) -> list[slice]:
        n = len(self.lower)
        return [slice(i, min(i + TRIANGLE, n)) for i in range(0, n, TRIANGLE)]

    def solve(self, B: Array, start: int = 0) -> None:
        """B ← L⁻¹B; B in Fortran's order.

        It may have the rows from `start` on alone, where a block begins: those before are then 0.
        """
        if float(B.shape[0]) ** 2 * B.shape[1] < LONG:
            self._solve(B, start)
        else:
            waiting(self._solve, B, start)

    def _solve(self, B: Array, start: int) -> None:
        for part, inverse in zip(self._parts(), self.inverses, strict=True):
            if part.start < start:
                continue
            own = slice(part.start - start, part.stop - start)
            if inverse is None:
                X = np.asfortranarray(B[own])
                trsm(np.asfortranarray(self.lower[part, part]), X)
                B[own] = X
            else:
                trmm(inverse, B[own])
            # what is known leaves all rows below at once: tall products are the quick ones
            if own.stop < len(B):
                subtract_product(B[own.stop :], self.lower[part.stop :, part], B[own])

    def inverse_lengths(self) -> Array:
        """The squared lengths of the columns of L⁻¹, in n³/3 operations and with n × 512 numbers of memory.

        >>> Triangle(np.asfortranarray([[2.0, 0.0], [1.0, 4.0]])).inverse_lengths()
        array([0.265625, 0.0625  ])
        """
        n = len(self.lower)
        out = np.empty(n)
        for start in range(0, n, COLUMNS):
            count = min(COLUMNS, n - start)
            B = np.eye(n - start, count, dtype=self.lower.dtype, order="F")
            self.solve(B, start)
            out[start : start + count] = np.einsum("ij,ij->j", B, B, dtype=np.float64)
        return out


# ── eigenvalues ─────────────────────────────────────────────────────────────────────────────────────────────


def eigh(A: Array, *, overwrite_a: bool = False) -> tuple[Array, Array]:
    """All eigenvalues, ascending, and eigenvectors of a symmetric matrix (divide and conquer).

    On a matrix of nearly separate blocks, such as a Gram matrix of distant groups, that may not converge;
    then the slower QR iteration does.
    """
    n = len(A)
    if 9.0 * n**3 < LONG:
        found: tuple[Array, Array]
        try:
            found = linalg.eigh(A, driver="evd", check_finite=False)
        except linalg.LinAlgError:
            found = linalg.eigh(A, driver="ev", overwrite_a=overwrite_a, check_finite=False)
        return found
    T = in_fortran_order(np.asarray(A, dtype=np.float64), overwrite_a)
    diagonal = np.empty(n)
    beside = np.empty(n)
    tau = np.empty(n)
    room = np.empty(BLOCK * n + MARGIN)
    _lapack("sytrd", T.dtype, "L", n, T, n, diagonal, beside, tau, room, len(room))
    values, Q = _tridiagonal(diagonal, beside)
    _lapack("ormtr", T.dtype, "L", "L", "N", n, n, T, n, tau, Q, n, room, len(room))
    return values, Q


def _tridiagonal(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """All eigenpairs of a tridiagonal matrix; it is left as it is for a second way, should the first fail."""
    n = len(diagonal)
    Q = np.empty((n, n), order="F")
    values = diagonal.copy()
    rest = beside.copy()
    room = np.empty(1 + 4 * n + n * n)
    whole = np.empty(3 + 5 * n, np.intc)
    info = _lapack("stedc", Q.dtype, "I", n, values, rest, Q, n, room, len(room), whole, len(whole))
    if info:
        values = diagonal.copy()
        rest = beside.copy()
        info = _lapack("steqr", Q.dtype, "I", n, values, rest, Q, n, room)
    if info:
        raise linalg.LinAlgError("Eigenvalues did not converge.")
    return values, Q


def top_eigh(A: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, ascending, and their eigenvectors.

    Where the eigenvalues of a large matrix lie within rounding of one another, LAPACK's search for some of
    them may find none: then all are computed.
    """
    n = len(A)
    if 4.0 * n**3 < LONG:
        values, vectors = linalg.eigh(A, subset_by_index=[n - k, n - 1])
        if len(values) != k:
            return _top_of_all(A, k)
        return values, vectors
    work = in_fortran_order(np.asarray(A, dtype=np.float64), False)
    w = np.empty(n)
    Z = np.empty((n, k), order="F")
    count = ctypes.c_int()
    support = np.empty(2 * n, np.intc)
    room = np.empty(64 * n)
    whole = np.empty(16 * n, np.intc)
    wanted = (0.0, 0.0, n - k + 1, n, 0.0, count)
    rest = (w, Z, n, support, room, len(room), whole, len(whole))
    info = _lapack("syevr", work.dtype, "V", "I", "L", n, work, n, *wanted, *rest)
    if info or count.value != k:
        return _top_of_all(A, k)
    return w[:k].copy(), Z


def _top_of_all(A: Array, k: int) -> tuple[Array, Array]:
    values, vectors = eigh(A)
    return values[-k:], vectors[:, -k:]


def eigvalsh(A: Array) -> Array:
    """All eigenvalues, ascending."""
    if 2.0 * len(A) ** 3 < LONG:
        found: Array = linalg.eigvalsh(A, check_finite=False)
        return found
    n = len(A)
    T = in_fortran_order(np.asarray(A, dtype=np.float64), False)
    values = np.empty(n)
    room = np.empty(BLOCK * n + MARGIN)
    info = _lapack("syev", T.dtype, "N", "L", n, T, n, values, room, len(room))
    if info:
        raise linalg.LinAlgError("Eigenvalues did not converge.")
    return values


def svd(A: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition; by QR where divide and conquer does not converge."""
    found: tuple[Array, Array, Array]
    try:
        if 6.0 * max(A.shape) * min(A.shape) ** 2 < LONG:
            found = linalg.svd(A, full_matrices=False, check_finite=False)
        else:
            found = _long_svd(A)
    except linalg.LinAlgError:
        found = linalg.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return found


def _long_svd(A: Array) -> tuple[Array, Array, Array]:
    work = in_fortran_order(np.asarray(A, dtype=np.float64), False)
    m, n = A.shape
    k = min(m, n)
    U = np.empty((m, k), order="F")
    sizes = np.empty(k)
    Vt = np.empty((k, n), order="F")
    whole = np.empty(8 * k, np.intc)
    shape = ("S", m, n, work, m, sizes, U, m, Vt, k)
    wanted = np.empty(1)
    _lapack("gesdd", work.dtype, *shape, wanted, -1, whole)
    room = np.empty(int(wanted[0]) + 1)
    if _lapack("gesdd", work.dtype, *shape, room, len(room), whole):
        raise linalg.LinAlgError("SVD did not converge")
    return U, sizes, Vt


def qr(A: Array) -> tuple[Array, Array]:
    """Orthonormal columns and an upper triangle."""
    n, columns = A.shape
    k = min(n, columns)
    if 4.0 * n * columns * k < LONG:
        found: tuple[Array, Array] = linalg.qr(A, mode="economic", check_finite=False)
        return found
    Q = in_fortran_order(np.asarray(A, dtype=np.float64), False)
    tau = np.empty(k)
    work = np.empty(BLOCK * columns + MARGIN)
    _lapack("geqrf", Q.dtype, n, columns, Q, n, tau, work, len(work))
    R = np.triu(Q[:k])
    _lapack("orgqr", Q.dtype, n, k, k, Q, n, tau, work, len(work))
    return Q[:, :k], R


def pivoted_qr(A: Array) -> tuple[Array, Array]:
    """Orthonormal columns, and the sizes of the diagonal of R; pivots make those fall."""
    n, columns = A.shape
    k = min(n, columns)
    if 4.0 * n * columns * k < LONG:
        thin, R, _ = linalg.qr(A, mode="economic", pivoting=True, check_finite=False)
        return thin, np.abs(R.diagonal())
    Q = in_fortran_order(A, False)
    order = np.zeros(columns, np.intc)
    tau = np.empty(k)
    work = np.empty(2 * columns + 64 * (columns + 1))
    _lapack("geqp3", Q.dtype, n, columns, Q, n, order, tau, work, len(work))
    size: Array = np.abs(Q.diagonal())
    _lapack("orgqr", Q.dtype, n, k, k, Q, n, tau, work, len(work))
    return Q[:, :k], size


# ── how they are called ─────────────────────────────────────────────────────────────────────────────────────


def _without_negligible(A: Array) -> Array:
    """The lower triangle of a symmetric matrix, in place, with zeros for entries below ε²√(a_ii a_jj).

    The matrix is in Fortran's order. The factor's own rounding is a change of A by ε√(a_ii a_jj), so these
    are nothing to it. But their products are subnormal numbers, with which a processor takes a hundred times
    as long.
    """
    size = np.sqrt(np.abs(A.diagonal())) * np.finfo(A.dtype).eps
    most = size.max() ** 2
    for start in range(0, len(A), BLOCK):
        part = slice(start, start + BLOCK)
        square = A[part, part]
        square[np.abs(square) < size[part, None] * size[part]] = 0.0
        below = A[start + BLOCK :, part]
        if below.size and below.min() < most:
            below[np.abs(below) < size[start + BLOCK :, None] * size[part]] = 0.0
    return A


def _lapack(name: str, dtype: np.dtype, *arguments: Argument) -> int:
    info = ctypes.c_int()
    call(cython_lapack, name, dtype, *arguments, info)
    return info.value
