"""Rows that need not fit in memory: read again and again, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from mercer.errors import InputError, InputTypeError, ShapeError
from mercer.gram.elsewhere import ParquetColumns
from mercer.sparse import Matrix
from mercer.typing import Array, Labels
from mercer.vectors import check_vectors, unmasked

BATCH = 1 << 16

# (X, y) or (X, y, weight), as they come.
Batch: TypeAlias = tuple[Any, ...]


class Batches:
    """A source of (X, y) or (X, y, weight) batches that can be read more than once.

    `make()` starts a fresh pass over the same batches, in the same order: a generator function will do.

    >>> source = Batches(lambda: ((np.full((2, 1), i), np.array([i, i])) for i in range(3)))
    >>> [X.shape for X, y in source], [X.shape for X, y in source]
    ([(2, 1), (2, 1), (2, 1)], [(2, 1), (2, 1), (2, 1)])
    """

    def __init__(self, make: Callable[[], Iterable[Batch]]) -> None:
        if not callable(make):
            raise InputTypeError(
                f"Batches takes a function that starts a fresh pass over the batches; got "
                f"{type(make).__name__}. A list of batches becomes one by Batches(lambda: batches)."
            )
        self.make = make
        # Whether the rows are things that are no vectors, which a machine has read already.
        self.things = False
        # Where the rows can be read from by others: a Parquet file, and its column of targets.
        self.file: ParquetColumns | None = None
        self.target: str | None = None

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.make())

    @classmethod
    def of(cls, X: Matrix, y: Labels | None, weight: Array | None = None, *, size: int = BATCH) -> Batches:
        """Slices of arrays, which may be memory-mapped files."""

        def make() -> Iterator[Batch]:
            for start in range(0, X.shape[0], size):
                part = slice(start, start + size)
                yield X[part], None if y is None else y[part], None if weight is None else weight[part]

        return cls(make)

    @classmethod
    def parquet(
        cls,
        path: str | PathLike[str],
        target: str,
        columns: Sequence[str] | None = None,
        *,
        size: int = BATCH,
    ) -> Batches:
        """Batches of a Parquet file by pyarrow: `target` is y, `columns` or all others are X."""
        from pyarrow import parquet

        if columns is None:
            wanted = [c for c in parquet.ParquetFile(path).schema_arrow.names if c != target]
        else:
            wanted = list(columns)

        def make() -> Iterator[Batch]:
            for batch in parquet.ParquetFile(path).iter_batches(batch_size=size, columns=[*wanted, target]):
                X = np.column_stack([batch.column(c).to_numpy(zero_copy_only=False) for c in wanted])
                yield X, batch.column(target).to_numpy(zero_copy_only=False)

        found = cls(make)
        found.file = ParquetColumns(str(path), tuple(wanted))
        found.target = target
        return found

    def file_targets(self) -> Labels:
        """All targets of a Parquet file: one column."""
        from pyarrow import parquet

        assert self.file is not None and self.target is not None
        column = parquet.read_table(self.file.path, columns=[self.target]).column(self.target)
        return np.asarray(column.to_numpy())


def is_source(X: object, y: object) -> TypeGuard[Iterable[Batch]]:
    """Whether X gives (X, y) batches, rather than being rows itself."""
    if isinstance(X, Batches):
        return True
    return (
        y is None
        and hasattr(X, "__iter__")
        and not hasattr(X, "shape")
        and not isinstance(X, list | tuple | str)
    )


def passes(source: Iterable[Batch], width: int | None = None) -> Iterator[tuple[Matrix, Labels, Array]]:
    """One pass: checked (X, y, weight) batches, empty ones left out; the number of columns may not change."""
    things = isinstance(source, Batches) and source.things
    for number, batch in enumerate(source):
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise InputTypeError(
                f"batch {number} must be (X, y) or (X, y, weight); got {type(batch).__name__}."
            )
        X = batch[0]
        y = batch[1]
        count = X.shape[0] if sparse.issparse(X) else len(X)
        if count == 0:
            continue
        A = X if things else check_vectors(X, f"X of batch {number}")
        if width is not None and A.shape[1] != width:
            raise ShapeError(f"batch {number} has {A.shape[1]} columns; the first one has {width}.")
        if A.ndim == 2:
            width = A.shape[1]
        if y is None:
            raise InputError("The target y is None: a fit requires y to be passed, one target for each row.")
        y = np.asarray(unmasked(y, f"y of batch {number}"))
        if y.shape != (A.shape[0],):
            raise ShapeError(f"batch {number} has {A.shape[0]} rows of X and y of shape {y.shape}.")
        w = np.ones(A.shape[0])
        if len(batch) == 3 and batch[2] is not None:
            w = np.asarray(batch[2], dtype=float)
        if w.shape != y.shape or not np.all(np.isfinite(w)) or w.min(initial=0.0) < 0:
            raise InputError(f"batch {number}: weights must be finite and >= 0, one for each row.")
        yield A, y, w
