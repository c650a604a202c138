"""NumPy's .npz: a matrix of rows, and arrays of the same length beside it, become one table.

The rows are those of the array `X`, or `X_train`, or the largest with two axes. Its columns have the names in
an array of texts of that length, else X_1, X_2 … Arrays with one value for each row are columns under their
own names, such as `y`. What is left is not part of the table, and said. Pickled objects are never loaded.
"""

from __future__ import annotations

import io
import zipfile

import numpy as np
import polars

from mercer.errors import InputError

PREFERRED = ("X", "X_train")
MAGIC = b"PK\x03\x04"


def read_npz(name: str, content: bytes) -> tuple[polars.DataFrame, tuple[str, ...]]:
    """The table in a file of arrays, and what was assumed."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(
            f"{name} cannot be read as arrays of NumPy: {error}. Arrays of objects are not read: save "
            "numbers or texts."
        ) from error
    matrix = _matrix(name, arrays)
    X = arrays[matrix]
    names, source = _names(arrays, matrix)
    columns = {column: X[:, j] for j, column in enumerate(names)}
    unused = []
    for key, array in arrays.items():
        if key in (matrix, source):
            continue
        if array.ndim == 1 and len(array) == len(X) and key not in columns:
            columns[key] = array
        else:
            unused.append(key)
    notes = [f"rows are those of the array {matrix!r}"]
    if unused:
        notes.append(f"not part of the table: {', '.join(map(repr, unused))}")
    return polars.DataFrame(columns), tuple(notes)


def _matrix(name: str, arrays: dict[str, np.ndarray]) -> str:
    """The array whose rows are those of the table."""
    flat = {key: array for key, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biufU"}
    for key in PREFERRED:
        if key in flat:
            return key
    if not flat:
        shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
        raise InputError(f"{name} has no array with rows and columns. It has {shapes or 'no array at all'}.")
    return max(flat, key=lambda key: flat[key].size)


def _names(arrays: dict[str, np.ndarray], matrix: str) -> tuple[list[str], str | None]:
    """The names of the columns, and the array that has them."""
    width = arrays[matrix].shape[1]
    for key, array in arrays.items():
        if array.dtype.kind == "U" and array.shape == (width,) and len(set(array.tolist())) == width:
            return array.tolist(), key
    return [f"{matrix}_{j + 1}" for j in range(width)], None
