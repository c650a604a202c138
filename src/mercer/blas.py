"""Products by the one copy of BLAS that may have threads, SciPy's, which Ctrl-C can leave.

scipy holds the interpreter while BLAS and LAPACK work, so that a key press waits for the end of a long call.
Here a long call runs in a thread of its own, without the interpreter, while the main thread waits for it or
for the keyboard. On Ctrl-C its answer is dropped: it ends in the background, on arrays that nobody else sees.
Why SciPy's copy, and not NumPy's: see `mercer.threads`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache
from types import ModuleType
from typing import Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas as scipy_blas
from scipy.linalg import cython_blas, get_blas_funcs

from mercer.panels import fortran, whole_from_lower
from mercer.typing import Array

# Floating point operations from which a call gets its own thread: some hundredths of a second.
LONG = 3e8
# Multiplications from which a product goes to SciPy's copy of BLAS: some hundredths of a millisecond.
WORTH_A_CALL = 1e6
# The longest column of a symmetric matrix that OpenBLAS is given whole. Its threads share a buffer of 32 MiB
# for parts of so many columns by 384 rows on AVX-512, and write past its end where two of them work on a
# matrix of 15 200 rows or more (scipy 1.17.1 with OpenBLAS 0.3.30: dsyrk, and with it dpotrf and dpotri).
COLUMN_BYTES = 8 * 8192
# Seconds between two looks at the keyboard where waiting itself does not hear it.
PERIOD = 0.05

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# What a routine of BLAS or LAPACK may be passed; it writes whole numbers where a `c_int` is given.
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


# ── products ────────────────────────────────────────────────────────────────────────────────────────────────


def matmul(A: Array, B: Array, *, order: Literal["C", "F"] = "C") -> Array:
    """A @ B of two arrays, by SciPy's copy of BLAS unless it is small: see `mercer.threads`.

    `order` is that of a product of two matrices. A.T @ A is computed once for both of its halves, and is
    symmetric.

    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> matmul(A, A).tolist(), matmul(A, A[0]).tolist()
    ([[7.0, 10.0], [15.0, 22.0]], [5.0, 11.0])
    """
    out: Array
    if not _for_blas(A, B):
        out = A @ B
        return out
    if B.ndim == 1:
        return _gemv(A, B)
    if B.shape[1] == 1:
        return _gemv(A, B[:, 0])[:, None]
    if A.shape[0] == 1:
        return _gemv(B.T, A[0])[None, :]
    if A.shape == B.shape[::-1] and A.strides == B.strides[::-1] and A.ctypes.data == B.ctypes.data:
        return _with_its_transpose(A)
    return _gemm(A, B, order)


def _for_blas(A: Array, B: Array) -> bool:
    """Whether a product is worth a call of SciPy's copy, which takes some microseconds longer to begin."""
    if A.ndim != 2 or B.ndim not in (1, 2) or A.shape[1] != B.shape[0]:
        return False
    if A.dtype != B.dtype or A.dtype not in (np.float64, np.float32):
        return False
    if not A.size or not B.size:
        return False
    return bool(A.size * (B.size // B.shape[0]) >= WORTH_A_CALL)


def _gemm(A: Array, B: Array, order: Literal["C", "F"]) -> Array:
    if 2.0 * A.size * B.shape[1] < LONG and _is_plain(A) and _is_plain(B):
        return _short_gemm(A, B, order)
    out = np.empty((A.shape[0], B.shape[1]), A.dtype, order=order)
    left, right, into = A, B, out
    if order == "C":
        # Fortran sees the transposes of matrices in C order: (AB)ᵀ = BᵀAᵀ.
        left, right, into = B.T, A.T, out.T
    m, n = into.shape
    k = left.shape[1]
    a, lda, turn_a = _as_blas(left)
    b, ldb, turn_b = _as_blas(right)
    shape = (turn_a, turn_b, m, n, k)
    alone = 2.0 * m * n * k >= LONG
    call(cython_blas, "gemm", A.dtype, *shape, 1.0, a, lda, b, ldb, 0.0, into, m, alone=alone)
    return out


def _is_plain(A: Array) -> bool:
    return A.flags.c_contiguous or A.flags.f_contiguous


def _short_gemm(A: Array, B: Array, order: Literal["C", "F"]) -> Array:
    """The same by scipy, which begins sooner."""
    short = scipy_blas.dgemm if A.dtype == np.float64 else scipy_blas.sgemm
    found: Array
    if order == "C":
        found = _short_gemm(B.T, A.T, "F").T
        return found
    turn_a = not A.flags.f_contiguous
    turn_b = not B.flags.f_contiguous
    found = short(1.0, A.T if turn_a else A, B.T if turn_b else B, trans_a=turn_a, trans_b=turn_b)
    return found


def _gemv(A: Array, v: Array) -> Array:
    out = np.empty(len(A), A.dtype)
    a, lda, turn = _as_blas(A)
    m, n = A.shape if turn == "N" else A.shape[::-1]
    v = np.ascontiguousarray(v)
    alone = 2.0 * A.size >= LONG
    call(cython_blas, "gemv", A.dtype, turn, m, n, 1.0, a, lda, v, 1, 0.0, out, 1, alone=alone)
    return out


def _with_its_transpose(A: Array) -> Array:
    """AAᵀ, whole."""
    columns = A
    transposed = False
    if not A.flags.f_contiguous:
        columns = np.asfortranarray(A.T)
        transposed = True
    return whole_from_lower(syrk(1.0, columns, trans=transposed))


def _as_blas(A: Array) -> tuple[Array, int, str]:
    """An array that Fortran can read, how far apart its columns lie, and "N" where it is A, "T" where Aᵀ."""
    size = A.itemsize
    down, across = A.strides
    if down == size and across >= size * A.shape[0] and across % size == 0:
        return A, across // size, "N"
    if across == size and down >= size * A.shape[1] and down % size == 0:
        return A, down // size, "T"
    return np.ascontiguousarray(A), A.shape[1], "T"


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
    call(cython_blas, "trsm", B.dtype, *shape, 1.0, A, len(A), B, n, alone=not short)


def trmm(L: Array, B: Array) -> None:
    """B ← LB; L lower, both with columns that may be parts of longer ones."""
    n, columns = B.shape
    shape = ("L", "L", "N", "N", n, columns)
    call(cython_blas, "trmm", B.dtype, *shape, 1.0, L, apart(L), B, apart(B), alone=False)


def subtract_product(C: Array, A: Array, B: Array) -> None:
    """C ← C - AB; all with columns that may be parts of longer ones."""
    add_product(-1.0, A, B, C, alone=False)


def add_product(
    alpha: float,
    A: Array,
    B: Array,
    C: Array,
    *,
    beta: float = 1.0,
    turn_a: bool = False,
    turn_b: bool = False,
    alone: bool = True,
) -> None:
    """C ← βC + αAB, with Aᵀ or Bᵀ where they are turned; columns may be parts of longer ones."""
    k = A.shape[0] if turn_a else A.shape[1]
    shape = ("T" if turn_a else "N", "T" if turn_b else "N", *C.shape, k)
    factors = (float(alpha), A, apart(A), B, apart(B), float(beta))
    call(cython_blas, "gemm", C.dtype, *shape, *factors, C, apart(C), alone=alone)


def apart(A: Array) -> int:
    """How far apart the columns lie of a matrix in Fortran's order, or of a part of one."""
    if A.strides[0] != A.itemsize:
        raise ValueError("this works in place: matrices must be in Fortran's order.")
    return A.strides[1] // A.itemsize


def syrk(alpha: float, A: Array, *, beta: float = 0.0, C: Array | None = None, trans: bool = False) -> Array:
    """βC + αAAᵀ, or βC + αAᵀA with `trans`, in the lower triangle; A in Fortran's order.

    It takes the place of C where that is given.
    """
    n, k = A.shape[::-1] if trans else A.shape
    if float(n) ** 2 * k < LONG:
        (short,) = get_blas_funcs(("syrk",), (A,))
        more = {} if C is None else {"beta": beta, "c": C, "overwrite_c": 1}
        found: Array = short(alpha, A, lower=1, trans=int(trans), **more)
        return found
    A = np.asfortranarray(A)
    out = np.zeros((n, n), A.dtype, order="F") if C is None else in_fortran_order(C, True)
    add_square(alpha, A, out, beta=beta, trans=trans)
    return out


def add_square(alpha: float, A: Array, C: Array, *, beta: float = 1.0, trans: bool = False) -> None:
    """C ← βC + αAAᵀ, or βC + αAᵀA with `trans`, in the lower triangle; as `add_product`."""
    n, k = A.shape[::-1] if trans else A.shape
    for part in parts(n, A.itemsize):
        below = slice(part.stop, n)
        own, others = (A[:, part], A[:, below]) if trans else (A[part], A[below])
        block = C[part, part]
        shape = ("L", "T" if trans else "N", len(block), k)
        factors = (float(alpha), own, apart(own), float(beta))
        call(cython_blas, "syrk", C.dtype, *shape, *factors, block, apart(block))
        if part.stop < n:
            add_product(alpha, others, own, C[below, part], beta=beta, turn_a=trans, turn_b=not trans)


def parts(n: int, itemsize: int) -> list[slice]:
    """Runs of rows or columns of a symmetric matrix on which OpenBLAS may have threads.

    >>> parts(10_000, 8)
    [slice(0, 8192, None), slice(8192, 10000, None)]
    """
    step = COLUMN_BYTES // itemsize
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


# ── how they are called ─────────────────────────────────────────────────────────────────────────────────────


def in_fortran_order(A: Array, overwrite: bool) -> Array:
    """A in Fortran's order and writable, itself if it may be overwritten."""
    if overwrite and A.flags.f_contiguous and A.flags.writeable:
        return A
    return fortran(A)


def call(library: ModuleType, name: str, dtype: np.dtype, *arguments: Argument, alone: bool = True) -> None:
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
