"""Linear algebra that Ctrl-C can leave: scipy's functions, by the same names, for matrices of any size.

scipy holds the interpreter while LAPACK works, so that a key press waits for the factorisation of a large
matrix. Here a long call runs in a thread of its own, without the interpreter, while the main thread waits for
it or for the keyboard. On Ctrl-C its answer is dropped: it ends in the background, on arrays that nobody else
sees. Short calls are scipy's own. Both reach the same library, so that the numbers are the same.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache
from types import ModuleType
from typing import ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.linalg import cython_blas, cython_lapack, get_blas_funcs, get_lapack_funcs

from mercer.panels import clear_above, fortran, panels
from mercer.typing import Array, Integers

# Floating point operations from which a call gets its own thread: some hundredths of a second.
LONG = 3e8
# Of a matrix whose factor takes no time, whatever its numbers are.
FEW_ROWS = 256
# Columns that LAPACK reflects at a time, and the numbers that it wants for the triangle of such a block.
BLOCK = 64
MARGIN = 5000
# Seconds between two looks at the keyboard where waiting itself does not hear it.
PERIOD = 0.05

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# What a routine of LAPACK may be passed; it writes whole numbers where a `c_int` is given.
Argument: TypeAlias = Array | npt.NDArray[np.intc] | str | int | float | ctypes.c_int


def waiting(
    function: Callable[Arguments, Answer], *args: Arguments.args, **options: Arguments.kwargs
) -> Answer:
    """The function's answer, from a thread of its own, which Ctrl-C leaves at once.

    The function must let go of the interpreter.

    >>> waiting(max, 1, 2)
    2
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **options)
    found: list[Answer] = []
    failed: list[BaseException] = []
    done = threading.Event()
    context = copy_context()

    def work() -> None:
        try:
            found.append(context.run(function, *args, **options))
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True, name="mercer-lapack").start()
    while not done.wait(PERIOD):
        pass
    if failed:
        raise failed[0]
    return found[0]


def matmul(A: Array, B: Array) -> Array:
    """A @ B of two arrays."""
    short = A.ndim < 2 or B.ndim < 1 or 2.0 * A.size * B.size / max(B.shape[0], 1) < LONG
    out: Array = A @ B if short else waiting(np.matmul, A, B)
    return out


# ── factors ─────────────────────────────────────────────────────────────────────────────────────────────────


def potrf(A: Array, *, overwrite_a: bool = False) -> tuple[Array, int]:
    """The lower Cholesky factor, rubbish above its diagonal, and the row (from 1) where it failed, or 0."""
    n = len(A)
    if n < FEW_ROWS:
        return _short_potrf(A, overwrite_a)
    L = _without_negligible(_fortran(A, overwrite_a))
    if n**3 / 3 < LONG:
        return _short_potrf(L, True)
    return L, _lapack("potrf", L.dtype, "L", n, L, n)


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
    out = _fortran(L, overwrite_c)
    return out, _lapack("potri", out.dtype, "L", n, out, n)


def potrs(L: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹ B, in the shape of B."""
    n = len(L)
    columns = B.size // max(n, 1)
    if 2.0 * n * n * columns < LONG or not L.flags.f_contiguous:
        (call,) = get_lapack_funcs(("potrs",), (L,))
        found: Array = call(L, B, lower=1)[0]
        return found.reshape(B.shape)
    X = _fortran(np.asarray(B, dtype=L.dtype).reshape(n, columns), False)
    _lapack("potrs", X.dtype, "L", n, columns, L, n, X, n)
    return X.reshape(B.shape)


def pstrf(A: Array, tol: float) -> tuple[Array, Integers, int]:
    """Cholesky with pivots above `tol`: the lower factor, the order of the rows, from 1, and the rank."""
    n = len(A)
    if n**3 / 3 < LONG:
        factor, order, rank, _ = linalg.lapack.dpstrf(np.asfortranarray(A), tol=tol, lower=1)
        return factor, order.astype(np.intp), rank
    L = _fortran(A, False)
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
    out = _fortran(L, False)
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
    if float(len(L)) ** 2 * columns < LONG or L.dtype != np.float64:
        found: Array = linalg.solve_triangular(L, B, lower=True, trans=trans, check_finite=False)
        return found
    X = _fortran(np.asarray(B, dtype=np.float64).reshape(len(L), columns), False)
    trsm(L, X, trans=trans)
    return X.reshape(B.shape)


def cho_solve(L: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹B, L lower."""
    if float(len(L)) ** 2 * B.size / max(len(L), 1) < LONG:
        found: Array = linalg.cho_solve((L, True), B, check_finite=False)
        return found
    return solve_triangular(L, solve_triangular(L, B), trans="T")


# ── products, in place ──────────────────────────────────────────────────────────────────────────────────────


def trsm(L: Array, B: Array, *, trans: str = "N") -> None:
    """B ← L⁻¹B, or L⁻ᵀB; L lower in either order, B in Fortran's."""
    A = L
    triangle = "L"
    transposed = trans
    if not L.flags.f_contiguous:
        # A lower triangle in C order is an upper one in Fortran's.
        A = np.ascontiguousarray(L).T
        triangle = "U"
        transposed = "N" if trans == "T" else "T"
    n, columns = B.shape
    if not B.flags.f_contiguous:
        raise ValueError("trsm works in place: B must be in Fortran's order.")
    short = float(n) ** 2 * columns < LONG
    shape = ("L", triangle, transposed, "N", n, columns)
    _call(cython_blas, "trsm", B.dtype, *shape, 1.0, A, len(A), B, n, alone=not short)


def syrk(alpha: float, A: Array, *, beta: float = 0.0, C: Array | None = None, trans: bool = False) -> Array:
    """βC + αAAᵀ, or βC + αAᵀA with `trans`, in the lower triangle; A in Fortran's order.

    It takes the place of C where that is given.
    """
    n, k = A.shape[::-1] if trans else A.shape
    if float(n) ** 2 * k < LONG:
        (call,) = get_blas_funcs(("syrk",), (A,))
        more = {} if C is None else {"beta": beta, "c": C, "overwrite_c": 1}
        found: Array = call(alpha, A, lower=1, trans=int(trans), **more)
        return found
    A = np.asfortranarray(A)
    out = np.zeros((n, n), A.dtype, order="F") if C is None else _fortran(C, True)
    shape = ("L", "T" if trans else "N", n, k)
    _call(cython_blas, "syrk", A.dtype, *shape, float(alpha), A, len(A), float(beta), out, n)
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
    T = _fortran(np.asarray(A, dtype=np.float64), overwrite_a)
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
    work = _fortran(np.asarray(A, dtype=np.float64), False)
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
    return cast("Array", waiting(np.linalg.eigvalsh, A))


def svd(A: Array) -> tuple[Array, Array, Array]:
    """The thin singular value decomposition; by QR where divide and conquer does not converge."""
    found: tuple[Array, Array, Array]
    try:
        if 6.0 * max(A.shape) * min(A.shape) ** 2 < LONG:
            found = linalg.svd(A, full_matrices=False, check_finite=False)
        else:
            found = waiting(np.linalg.svd, A, full_matrices=False)
    except linalg.LinAlgError:
        found = linalg.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return found


def qr(A: Array) -> tuple[Array, Array]:
    """Orthonormal columns and an upper triangle."""
    if 4.0 * A.shape[0] * A.shape[1] ** 2 < LONG:
        found: tuple[Array, Array] = linalg.qr(A, mode="economic", check_finite=False)
        return found
    return waiting(np.linalg.qr, A)


def pivoted_qr(A: Array) -> tuple[Array, Array]:
    """Orthonormal columns, and the sizes of the diagonal of R; pivots make those fall."""
    n, columns = A.shape
    k = min(n, columns)
    if 4.0 * n * columns * k < LONG:
        thin, R, _ = linalg.qr(A, mode="economic", pivoting=True, check_finite=False)
        return thin, np.abs(R.diagonal())
    Q = _fortran(A, False)
    order = np.zeros(columns, np.intc)
    tau = np.empty(k)
    work = np.empty(2 * columns + 64 * (columns + 1))
    _lapack("geqp3", Q.dtype, n, columns, Q, n, order, tau, work, len(work))
    size: Array = np.abs(Q.diagonal())
    _lapack("orgqr", Q.dtype, n, k, k, Q, n, tau, work, len(work))
    return Q[:, :k], size


# ── how they are called ─────────────────────────────────────────────────────────────────────────────────────


def _fortran(A: Array, overwrite: bool) -> Array:
    """A in Fortran's order and writable, itself if it may be overwritten."""
    if overwrite and A.flags.f_contiguous and A.flags.writeable:
        return A
    return fortran(A)


def _without_negligible(A: Array) -> Array:
    """The lower triangle of a symmetric matrix, in place, with zeros for entries below ε²√(a_ii a_jj).

    The matrix is in Fortran's order. The factor's own rounding is a change of A by ε√(a_ii a_jj), so these
    are nothing to it. But their products are subnormal numbers, with which a processor takes a hundred times
    as long.
    """
    size = np.sqrt(np.abs(A.diagonal())) * np.finfo(A.dtype).eps
    most = size.max() ** 2
    for part in panels(len(A), A.itemsize):
        block = A[part.start :, part]
        if block.min() >= most:
            continue
        block[np.abs(block) < size[part.start :, None] * size[part]] = 0.0
    return A


def _lapack(name: str, dtype: np.dtype, *arguments: Argument) -> int:
    info = ctypes.c_int()
    _call(cython_lapack, name, dtype, *arguments, info)
    return info.value


def _call(library: ModuleType, name: str, dtype: np.dtype, *arguments: Argument, alone: bool = True) -> None:
    """One routine, without the interpreter, in a thread of its own; its arguments live as long as it runs."""
    letter = "d" if dtype == np.float64 else "s"
    passed = [_passed(value, dtype) for value in arguments]
    function = _routine(library, letter + name, len(passed))
    pointers = [pointer for pointer, _ in passed]
    if alone:
        waiting(_keeping, function, pointers, passed)
    else:
        function(*pointers)


def _keeping(function: Callable[..., None], pointers: Sequence[object], alive: object) -> None:
    function(*pointers)
    del alive


def _passed(value: Argument, dtype: np.dtype) -> tuple[object, object]:
    """A pointer to a value, as Fortran wants it, and what must stay alive meanwhile."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data), value
    held: ctypes.c_char | ctypes.c_double | ctypes.c_float | ctypes.c_int
    if isinstance(value, str):
        held = ctypes.c_char(value.encode())
    elif isinstance(value, float):
        held = ctypes.c_double(value) if dtype == np.float64 else ctypes.c_float(value)
    elif isinstance(value, int):
        held = ctypes.c_int(value)
    else:
        held = value
    return ctypes.byref(held), held


@cache
def _routine(library: ModuleType, name: str, arguments: int) -> Callable[..., None]:
    """A routine of the library that scipy itself calls, by the pointer that scipy publishes."""
    capsule = library.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype = ctypes.c_char_p
    signature.argtypes = [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, signature(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)
