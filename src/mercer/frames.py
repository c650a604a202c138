"""Tables of any make: pandas, polars, Arrow and what else narwhals reads.

A table becomes names and cells: a matrix of numbers if every column holds numbers or truth values, else an
array of objects, in which text is `str`, a date is a `datetime` or `date`, and what is missing is None (in
columns of numbers NaN).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, NoneType
from typing import Any

import numpy as np

from mercer.typing import Array, Flags

# Types of values of which only None is missing.
NEVER_NAN = {str, int, bool, NoneType, np.str_, np.int64, np.bool_}
# Types of numbers of which NaN is none.
FLOATS = {float, np.float64}


def is_frame(X: object) -> bool:
    """Whether X is a table with named columns; arrays, lists and sparse matrices are none."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    # pandas and polars have `columns`, Arrow tables have `column_names`
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return names is not None and not callable(names) and hasattr(X, "__len__")


def frame_names(X: Any) -> list[str]:
    """The names of a table's columns."""
    arrow = getattr(X, "column_names", None)
    return [str(name) for name in (X.columns if arrow is None else arrow)]


def cells(X: Any) -> np.ndarray:
    """The cells of a table, as numbers if all are, else as objects."""
    frame = _wrapped(X)
    if frame is None:
        return np.asarray(X)
    columns = [frame[:, j] for j in range(frame.shape[1])]
    if all(_is_numeric(column) for column in columns):
        numbers = np.empty(frame.shape, dtype=_common_type(columns))
        for j, column in enumerate(columns):
            numbers[:, j] = _numbers(column)
        return numbers
    out = np.empty(frame.shape, dtype=object)
    for j, column in enumerate(columns):
        out[:, j] = _objects(column)
    return out


def frame_rows(X: Any, index: Sequence[int]) -> Any:
    """Some rows of a table, as a table of the same make."""
    return _narwhals().from_native(X, eager_only=True)[list(index)].to_native()


def with_text_names(X: Any) -> Any:
    """A table whose columns are called by text: those of pandas may be called by numbers."""
    is_pandas = type(X).__module__.split(".")[0] == "pandas"
    if is_pandas and not all(isinstance(name, str) for name in X.columns):
        return X.rename(columns=str)
    return X


def frame_column(X: Any, name: str) -> Sequence[Any]:
    """One column of a table as a list, None where something is missing."""
    return without_gaps(_narwhals().from_native(X, eager_only=True)[name].to_list())


def frame_without(X: Any, names: Sequence[str]) -> Any:
    """A table without some of its columns, of the same make."""
    return _narwhals().from_native(X, eager_only=True).drop(list(names)).to_native()


def _wrapped(X: Any) -> Any:
    """The table as narwhals sees it; None for what only looks like one."""
    found = _narwhals().from_native(X, eager_only=True, pass_through=True)
    return None if found is X else found


def _narwhals() -> ModuleType:
    # read when the first table comes, not with the library
    import narwhals

    return narwhals


def _is_numeric(column: Any) -> bool:
    return bool(column.dtype.is_numeric()) or column.dtype == _narwhals().Boolean


def _common_type(columns: list[Any]) -> type[np.floating]:
    """float32 for a table of nothing else, as for arrays; else float64."""
    single = _narwhals().Float32
    return np.float32 if columns and all(column.dtype == single for column in columns) else np.float64


def _numbers(column: Any) -> Array:
    """A column of numbers or truth values as float64, NaN where there is none."""
    if column.null_count():
        return np.array(without_gaps(column.to_list()), dtype=np.float64)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _objects(column: Any) -> np.ndarray:
    """A column as Python objects, None where something is missing; numbers stay numbers with NaN."""
    out = np.empty(len(column), dtype=object)
    if _is_numeric(column):
        out[:] = _numbers(column)
        return out
    out[:] = without_gaps(column.to_list())
    return out


def without_gaps(values: Sequence[object]) -> Sequence[object]:
    """The values, with None for all that are missing."""
    if set(map(type, values)) <= NEVER_NAN:
        return values
    missing = gaps(values)
    if not missing.any():
        return values
    return [None if gap else value for value, gap in zip(values, missing.tolist(), strict=True)]


def gaps(values: Sequence[object]) -> Flags:
    """Which of the values are missing: `is_missing` of each, many plain ones at once.

    >>> gaps([1.0, None, float("nan")]).tolist(), gaps(["a", None]).tolist()
    ([False, True, True], [False, True])
    """
    kinds = set(map(type, values))
    if kinds <= NEVER_NAN:
        return np.array([value is None for value in values], dtype=bool)
    if kinds <= FLOATS | {NoneType}:
        # None becomes NaN
        return np.isnan(np.array(values, dtype=np.float64))
    return np.array([is_missing(value) for value in values], dtype=bool)


def is_missing(value: object) -> bool:
    """None, NaN, and the missing values of pandas: what a table holds where it holds nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)
