"""Sparse rows: their format is checked once, and what is made of them takes memory for their entries only.

Sparse rows may have any number of columns, 10⁹ say, of which a few are stored.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from mercer.errors import InputError, MemoryBudgetError
from mercer.memory import say_bytes
from mercer.typing import Array, Integers

# A 2-D numpy array or a scipy CSR array: scipy has no type that says so.
Matrix: TypeAlias = Any


def check_format(X: Matrix, name: str) -> None:
    """Refuse a sparse matrix whose indices lead outside it, before compiled code follows them.

    scipy builds such matrices without a look, for example from (data, indices, indptr).
    """
    if X.format == "coo":
        coordinates = [np.asarray(c) for c in X.coords]
        if any(len(c) != len(X.data) for c in coordinates):
            _refuse_format(name, f"{len(X.data)} values for {[len(c) for c in coordinates]} coordinates")
        for c, size in zip(coordinates, X.shape, strict=True):
            _check_indices(c, size, name)
    elif X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        lines = X.shape[0] // block[0]
        width = X.shape[1] // block[1]
        if X.format == "csc":
            lines, width = width, lines
        indptr = np.asarray(X.indptr)
        if len(indptr) != lines + 1 or indptr[0] != 0:
            said = f"indptr has {len(indptr)} entries and must have {lines + 1}, the first of them 0"
            _refuse_format(name, said)
        falls = np.flatnonzero(np.diff(indptr) < 0)
        if len(falls):
            _refuse_format(name, f"indptr decreases after entry {falls[0]}")
        stored = min(len(X.indices), len(X.data))
        if indptr[-1] > stored:
            _refuse_format(name, f"indptr ends at {indptr[-1]}, but {stored} entries are stored")
        _check_indices(np.asarray(X.indices)[: indptr[-1]], width, name)


def _check_indices(indices: Integers, size: int, name: str) -> None:
    if not indices.size:
        return
    low = int(indices.min())
    high = int(indices.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        _refuse_format(name, f"an index is {wrong}; the indices run from 0 to {size - 1}")


def _refuse_format(name: str, what: str) -> None:
    raise InputError(
        f"{name} is no well-formed sparse matrix: {what}. Build it anew, for example by "
        "scipy.sparse.coo_array with its shape, and call X.check_format()."
    )


def dense(A: Matrix) -> Array:
    """A matrix as an ordinary array (sparse ones are written out, if this machine has the memory)."""
    if not sparse.issparse(A):
        array: Array = A
        return array
    needed = A.shape[0] * A.shape[1] * A.dtype.itemsize
    if needed > _physical_memory():
        raise MemoryBudgetError(
            f"{A.shape[0]} sparse rows of {A.shape[1]} columns written out with their zeros need "
            f"{say_bytes(needed)}, and this machine has {say_bytes(_physical_memory())}. Kernels of dot "
            "products and of Euclidean distances read sparse rows as they are; for any other keep the "
            "columns that matter."
        )
    written: Array = A.toarray()
    return written


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def stored_columns(X: Matrix, Z: Matrix | None) -> tuple[Matrix, Matrix | None, Integers | None]:
    """Sparse rows without the columns that no row stores, where columns outnumber entries; and which stayed.

    Sparse rows may have any number of columns; what is computed from them should need memory for their
    entries alone.
    """
    given = [A for A in (X, Z) if A is not None]
    if not all(sparse.issparse(A) for A in given) or X.shape[1] <= sum(A.nnz for A in given):
        return X, Z, None
    columns = np.unique(np.concatenate([A.indices for A in given]))
    width = max(1, len(columns))

    def packed(A: Matrix) -> Matrix:
        place = np.searchsorted(columns, A.indices)
        return sparse.csr_array((A.data, place, A.indptr), shape=(A.shape[0], width))

    if not len(columns):
        columns = np.zeros(1, dtype=np.intp)
    return packed(X), None if Z is None else packed(Z), columns


def take_columns(A: Matrix, index: list[int]) -> Matrix:
    """The columns `index` of A, in that order; scipy would count all columns of A."""
    if not sparse.issparse(A):
        return A[:, index]
    wanted = np.unique(np.asarray(index, dtype=np.int64))
    place = np.minimum(np.searchsorted(wanted, A.indices), len(wanted) - 1)
    kept = wanted[place] == A.indices
    counts = np.concatenate([[0], np.cumsum(kept)])[A.indptr]
    few = sparse.csr_array((A.data[kept], place[kept], counts), shape=(A.shape[0], len(wanted)))
    return few[:, np.searchsorted(wanted, index)]


def stored_alike(A: Matrix, other: Matrix) -> Matrix:
    """A, sparse or dense as the other is; things that are not numbers stay what they are."""
    if sparse.issparse(A) == sparse.issparse(other):
        return A
    return sparse.csr_array(A) if sparse.issparse(other) else dense(A)
