"""Data comes in here: rows as people have them, made into what a kernel asks for.

`Rows` holds what the caller passed — a list, an array, a sparse matrix, a data frame, a list of strings — and
turns it into numbers only when a kernel asks for numbers, and only the columns it asks for; `vectors` says
what these numbers may be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence, Sized
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mercer.errors import InputError, InputTypeError, ShapeError
from mercer.frames import cells, frame_names, is_frame
from mercer.panels import column_ends
from mercer.sparse import Matrix, dense, take_columns
from mercer.typing import Array, Flags, Integers
from mercer.vectors import check_vectors, unmasked

Column = str | int | slice
T = TypeVar("T")

# The most rows whose columns are sorted, to find their ends and their middles at once.
MOST_SORTED = 1000
# How many things are remembered of one set of rows: more than parts of a kernel read the same columns.
MOST_REMEMBERED = 32
# What is remembered may be None.
NOTHING = object()


class Rows:
    """The rows of one data set, converted once for each set of columns that a kernel looks at."""

    def __init__(self, data: Any, name: str = "X", names: Sequence[str] | None = None) -> None:
        if names is None:
            names = column_names(data)
        self.data = cells(data) if is_frame(data) else data
        self.name = name
        self.names = None if names is None else list(names)
        self._vectors: Matrix | None = None
        self._taken: dict[tuple[object, ...], Rows] = {}
        self._remembered: dict[Hashable, Any] = {}

    def checked(self) -> Rows:
        """These rows, whose data `read_rows` has returned: numbers are not looked through once more."""
        if self.data.dtype.kind == "f" and self.data.ndim == 2:
            self._vectors = self.data
        return self

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made of these rows under this key, such as the counts of their words; made once.

        The last few are kept. Threads that ask at once may both make it, and get equal things.
        """
        known = self._remembered.get(key, NOTHING)
        if known is not NOTHING:
            found: T = known
            return found
        made = make()
        self._remembered[key] = made
        for oldest in list(self._remembered)[:-MOST_REMEMBERED]:
            self._remembered.pop(oldest, None)
        return made

    def recalled(self, key: Hashable) -> Any:
        """What was made of these rows under this key; None if nothing was."""
        return self._remembered.get(key)

    @classmethod
    def of(cls, data: object, name: str = "X") -> Rows:
        return data if isinstance(data, Rows) else cls(data, name)

    def __len__(self) -> int:
        shape = getattr(self.data, "shape", None)
        if not shape and not isinstance(self.data, Sized):
            raise ShapeError(
                f"{self.name} must have two dimensions, rows and columns, or be a list of things; "
                f"got {type(self.data).__name__}. Wrap a single thing in a list."
            )
        n: int = shape[0] if shape else len(self.data)
        if n == 0:
            raise ShapeError(f"{self.name} has 0 sample(s) while a minimum of 1 is required.")
        return n

    @property
    def vectors(self) -> Matrix:
        """The rows as a matrix of numbers, dense or CSR."""
        if self._vectors is None:
            self._vectors = check_vectors(self.data, self.name, self.names)
        return self._vectors

    def ordered(self) -> Array | None:
        """The numbers of dense rows with every column sorted, done once; None of many or sparse rows.

        >>> Rows(np.array([[2.0, 5.0], [1.0, 7.0]])).ordered().tolist()
        [[1.0, 5.0], [2.0, 7.0]]
        """
        A = self.vectors
        if sparse.issparse(A) or len(A) > MOST_SORTED:
            return None
        return self.remembered("ordered", lambda: np.sort(A, axis=0))

    def ends(self) -> tuple[Array, Array]:
        """The smallest and the largest entry of each column of dense rows, looked for once."""
        ordered = self.recalled("ordered")
        if ordered is not None:
            return ordered[0], ordered[-1]
        return self.remembered("ends", lambda: column_ends(self.vectors))

    def vanishing(self) -> Integers:
        """The rows, once read as numbers, that are not zero but so small that their squares are."""
        if self._vectors is None:
            return np.zeros(0, dtype=np.intp)
        top = abs(self._vectors).max(axis=1)
        if sparse.issparse(top):
            top = top.toarray().ravel()
        return np.flatnonzero((top > 0) & (top < 1e-145))

    @property
    def width(self) -> int:
        """The number of columns."""
        if self.names is not None:
            return len(self.names)
        if _is_table_of_objects(self.data):
            return int(self.data.shape[1])
        return int(self.vectors.shape[1])

    @property
    def columns(self) -> list[str] | int | None:
        """The names of the columns, or their number; None where the rows are things that have no columns."""
        if self.names is not None:
            return self.names
        return None if self.is_opaque else self.width

    def rows(self, index: Integers | Flags) -> Rows:
        """Some of the rows, as a sample of their own."""
        if isinstance(self.data, Sequence):
            return Rows([self.data[i] for i in index], self.name, self.names)
        read = self.data if self._vectors is None else self._vectors
        return Rows(read[index], self.name, self.names)

    @property
    def things(self) -> Sequence[Any]:
        """The rows as whatever they are: strings, graphs, arrays."""
        if sparse.issparse(self.data):
            return list(dense(self.vectors))
        if _is_table_of_objects(self.data) or self._is_named_column():
            return list(self.data[:, 0] if self.data.shape[1] == 1 else self.data)
        things: Any = self.data
        if isinstance(self.data, str) or not isinstance(self.data, Sequence | np.ndarray):
            raise InputTypeError(
                f"{self.name} must be a list or array of things; got {type(self.data).__name__}. "
                "Wrap a single thing in a list."
            )
        if len(self.data) == 0:
            raise ShapeError(f"{self.name} has 0 sample(s) while a minimum of 1 is required.")
        found: Sequence[Any] = things
        return found

    def take(self, columns: tuple[Column, ...]) -> Rows:
        """The same rows, seen through some of their columns."""
        key = tuple((c.start, c.stop, c.step) if isinstance(c, slice) else c for c in columns)
        if key not in self._taken:
            self._taken[key] = self._select(columns)
        return self._taken[key]

    def _select(self, columns: tuple[Column, ...]) -> Rows:
        one_slice = len(columns) == 1 and isinstance(columns[0], slice)
        if one_slice and self.names is None and not _is_table_of_objects(self.data):
            self._require_some(columns[0])  # type: ignore[arg-type]
            return Rows(self.vectors[:, columns[0]], self.name)
        index = self.positions(columns)
        if _is_table_of_objects(self.data):
            names = None if self.names is None else [self.names[i] for i in index]
            return Rows(self.data[:, index], self.name, names)
        names = None if self.names is None else [self.names[i] for i in index]
        if self._vectors is None and names is not None and isinstance(self.data, np.ndarray):
            # what is missing in these columns is for those to judge who read them
            return Rows(self.data[:, index], self.name, names)
        return Rows(take_columns(self.vectors, index), self.name, names)

    def _is_named_column(self) -> bool:
        """Whether the rows are the numbers of one column with a name, seen one by one."""
        return self.names is not None and isinstance(self.data, np.ndarray) and self.data.shape[1:] == (1,)

    def positions(self, columns: tuple[Column, ...]) -> list[int]:
        """Where the columns stand, in the order in which they are named."""
        return [i for column in columns for i in self._positions(column)]

    def _positions(self, column: Column) -> list[int]:
        d = self.width
        if isinstance(column, str):
            return [self._named(column).index(column)]
        if isinstance(column, slice):
            self._require_some(column)
            return list(range(*column.indices(d)))
        if not -d <= column < d:
            raise ShapeError(
                f"column {column} was asked for, but {self.name} has {d} columns (0 to {d - 1})."
            )
        return [column % d]

    def _require_some(self, column: slice) -> None:
        if not len(range(*column.indices(self.width))):
            raise ShapeError(f"{column} selects none of the {self.width} columns of {self.name}.")

    def _named(self, wanted: str) -> list[str]:
        """The names of the columns, where the wanted one is among them."""
        if self.names is None:
            raise InputError(
                f"The kernel looks at column {wanted!r} by name, but {self.name} has no column names. "
                "Pass a data frame, or choose columns by number."
            )
        if wanted not in self.names:
            raise InputError(f"{self.name} has no column {wanted!r}; it has {self.names}.")
        return self.names

    @property
    def points(self) -> Any:
        """What a user's function of the points gets: things as they came, numbers as a float64 matrix."""
        if self.is_opaque:
            return self.data
        return dense(self.vectors).astype(np.float64, copy=False)

    def require_columns_of(self, other: Rows) -> None:
        """Refuse a second sample whose columns are not those of the first, in the same order."""
        if self.names is not None and other.names is not None:
            missing = [c for c in other.names if c not in self.names]
            extra = [c for c in self.names if c not in other.names]
            if missing or extra:
                raise InputError(
                    f"{self.name} and {other.name} have different columns: {self.name} lacks {missing} and "
                    f"has {extra} besides. Pass the same columns, in the same order."
                )
            if self.names != other.names:
                raise InputError(
                    f"{self.name} has the columns of {other.name} in another order: {self.names}, not "
                    f"{other.names}. Reorder them with {self.name}[{other.name}.columns]."
                )
        elif self.vectors.shape[1] != other.vectors.shape[1]:
            raise ShapeError(
                f"{self.name} has {self.vectors.shape[1]} columns and {other.name} has "
                f"{other.vectors.shape[1]}. Pass the same columns, in the same order."
            )

    def mapped(self, function: Callable[[Any], object], what: str) -> Rows:
        """The rows after a user's map ψ; the result must have as many rows."""
        out = function(self.points)
        rows = Rows(out, f"{what}({self.name})")
        if len(rows) != len(self):
            raise ShapeError(
                f"{what} returned {len(rows)} rows for {len(self)} rows of {self.name}; it must map every "
                "row to one row. A function of a single point becomes one of all points by "
                "lambda X: np.array([f(x) for x in X])."
            )
        return rows

    @property
    def is_opaque(self) -> bool:
        """Whether the data are things rather than a table of numbers (a list of strings, say)."""
        if sparse.issparse(self.data):
            return False
        if isinstance(self.data, np.ndarray):
            return self.data.ndim != 2
        try:
            return np.asarray(self.data, dtype=object).ndim != 2
        except ValueError:
            # Arrays of different shapes: graphs, images.
            return True


def _is_table_of_objects(data: object) -> bool:
    """Whether the data are the cells of a table whose columns have several types."""
    return isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind == "O"


def read_rows(X: object, things: bool = False, name: str = "X") -> Matrix:
    """The rows as float64 numbers, dense or CSR; as objects where `things` are allowed and they are none.

    >>> read_rows(["kernel", "nerve"], things=True)
    array(['kernel', 'nerve'], dtype=object)
    """
    if things and is_frame(X):
        table = cells(X)
        if table.dtype.kind == "O" or not np.isfinite(table).all():
            # each part of the kernel reads its columns, and says what it cannot read
            return table.astype(object, copy=False)
    elif things and not _is_numeric(X):
        return _as_objects(unmasked(X, name), name)
    return check_vectors(X, name).astype(np.float64, copy=False)


def _is_numeric(X: object) -> bool:
    """Whether X is a table of numbers, by its type; what could be one or not is looked at cell by cell."""
    if sparse.issparse(X):
        return True
    if isinstance(X, list | tuple) and any(_is_thing(row) for row in X):
        return False
    try:
        A = np.asarray(X)
    except (ValueError, TypeError):
        return False
    if A.dtype.kind != "O":
        return A.ndim == 2 and A.dtype.kind not in "US"
    return A.ndim == 2 and not any(isinstance(cell, str | bytes) or np.ndim(cell) for cell in A.flat)


def _is_thing(row: object) -> bool:
    """Whether NumPy could take apart a row that is no list of numbers, as a graph lists its nodes."""
    if isinstance(row, Sequence | np.ndarray) or not isinstance(row, Collection):
        return False
    # a column of a data frame is a list of numbers that NumPy knows
    return getattr(row, "__array__", None) is None


def _as_objects(X: object, name: str) -> np.ndarray:
    """Things in one dimension, or the cells of a table in two."""
    if is_frame(X):
        return cells(X).astype(object, copy=False)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X.astype(object)
    things = Rows(X, name).things
    out = np.empty(len(things), dtype=object)
    for i, thing in enumerate(things):
        out[i] = thing
    return out


def column_names(X: object) -> list[str] | None:
    """The names of a table's columns (pandas, polars, Arrow and their like), or None where there are none."""
    return frame_names(X) if is_frame(X) else None
