"""Rows that are elsewhere already: Dask arrays, Dask frames, and Parquet files that every worker can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Rows
from mercer.errors import ClusterError
from mercer.gram.cluster import Cluster, Future, Spread, active, cluster, needed
from mercer.gram.lines import Lines
from mercer.typing import Array, Integers


def is_collection(X: object) -> bool:
    """Whether X is an array or a frame of Dask."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def gathered(X: Any) -> Any:
    """A Dask array as an array, a Dask frame as a frame; anything else as it is."""
    return X.compute() if is_collection(X) else X


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a frame; None of an array."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


@contextmanager
def where_it_is(X: object) -> Iterator[Cluster | None]:
    """Compute where a Dask collection is, unless a cluster was named already."""
    if active() is not None or not is_collection(X):
        yield active()
        return
    try:
        client = needed().default_client()
    except ValueError:
        # Nobody has a client: Dask's own threads compute it, and it is gathered here.
        yield None
        return
    with cluster(client) as found:
        yield found


def on_workers(cluster: Cluster, X: Any, whose: object) -> Spread:
    """The rows of a Dask array or frame, cut anew into our blocks by the workers that have them."""
    array = _as_array(X)
    n = int(array.shape[0])
    names = names_of(X)

    def taken(lines: Lines) -> list[Future]:
        sizes = tuple(np.diff(lines.ends).tolist())
        cut = cluster.client.persist(array.rechunk({0: sizes, 1: -1}))
        chunks = needed().futures_of(cut)
        order = {chunk.key[1]: chunk for chunk in chunks}
        return list(
            cluster.client.map(_as_rows, [order[b] for b in range(len(sizes))], names=names, pure=False)
        )

    return cluster.known(whose) or cluster.keep(Spread(cluster.client, n, whose, taken))


def _as_array(X: Any) -> Any:
    """A Dask array whose number of rows is known."""
    if names_of(X) is not None:
        X = X.to_dask_array(lengths=True)
    elif any(np.isnan(size) for size in X.shape):
        X = X.compute_chunk_sizes()
    if X.ndim != 2:
        raise ClusterError(f"X must have two dimensions, rows and columns; the Dask array has {X.ndim}.")
    return X


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and columns of a collection; rows of frames have to be counted."""
    if names_of(X) is not None:
        return len(X), len(X.columns)
    n, d = _as_array(X).shape
    return int(n), int(d)


def _as_rows(chunk: Any, names: list[str] | None) -> Rows:
    """A block of numbers as the rows that kernels take: a task."""
    return Rows(np.ascontiguousarray(chunk, dtype=np.float64), "X", names)


@dataclass(frozen=True)
class ParquetColumns:
    """Columns of a Parquet file, read by row groups."""

    path: str
    columns: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many rows the file has."""
        from pyarrow import parquet

        return int(parquet.ParquetFile(self.path).metadata.num_rows)

    def read(self, rows: slice) -> Array:
        """Some rows, from the row groups that hold them and from no other."""
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
            ends = np.cumsum([0, *sizes])
            first = int(np.searchsorted(ends, rows.start, side="right")) - 1
            last = int(np.searchsorted(ends, rows.stop, side="left"))
            table = file.read_row_groups(list(range(first, last)), columns=list(self.columns))
        some = table.slice(rows.start - int(ends[first]), rows.stop - rows.start)
        return np.column_stack([some.column(c).to_numpy() for c in self.columns])

    def on_workers(self, cluster: Cluster, whose: object) -> Spread:
        """The rows on the workers, each of which reads its own from the file."""

        def read(lines: Lines) -> list[Future]:
            cut = [lines.rows(b) for b in range(lines.blocks)]
            return list(cluster.client.map(_read, [self] * len(cut), cut, pure=False))

        return cluster.known(whose) or cluster.keep(Spread(cluster.client, self.count, whose, read))


def _read(file: ParquetColumns, rows: slice) -> Rows:
    """Rows of a file that every worker can read: a task."""
    return Rows(np.ascontiguousarray(file.read(rows), dtype=np.float64), "X")


def some_rows(cluster: Cluster, spread: Spread, places: Integers) -> Any:
    """Rows with these places, in this order, from the workers that have them."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    ends = spread.lines.ends
    cuts = np.searchsorted(ordered, ends)
    each = [ordered[cuts[b] : cuts[b + 1]] - ends[b] for b in range(spread.lines.blocks)]
    found = [part for part in cluster.run(spread, _taken, None, each=each, blocks=True) if len(part)]
    out = np.concatenate(found)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return out[back]


def _taken(rows: Rows, number: int, asked: None, index: Integers) -> Any:
    """Some of the rows of a block as numbers, or as the things that they are: a task."""
    if not len(index):
        return np.empty((0, 0))
    some = rows.rows(index)
    if isinstance(some.data, np.ndarray) and some.data.dtype.kind == "O":
        return some.data
    return np.asarray(some.points)
