"""The features of some rows as a sparse matrix with names, where a kernel is their inner product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.sparse import Matrix
from mercer.typing import Array, Table


class Names(Sequence[str]):
    """The names of many features, each written when it is asked for.

    >>> Names(3, lambda i: "abc"[i])[:2]
    ['a', 'b']
    """

    def __init__(self, count: int, name: Callable[[int], str]) -> None:
        self._count = count
        self._name = name

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self._name(j) for j in range(*i.indices(self._count))]
        if not -self._count <= i < self._count:
            raise IndexError(f"feature {i} of {self._count}")
        return self._name(i % self._count)


@dataclass(frozen=True, eq=False, repr=False)
class SparseMap:
    """φ with φ(x)·φ(z) = k(x, z), on the features that the rows it was made from have.

    `matrix` holds φ of those rows; calling it gives φ of other rows, in which features that those rows did
    not have are left out. A product with a row of `matrix` is then still exact.
    """

    names: Sequence[str]
    matrix: Matrix
    of_rows: Callable[[Rows], Matrix]

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.matrix.shape[1])

    def __call__(self, X: Table | Rows) -> Matrix:
        return self.of_rows(Rows.of(X, "X"))

    def scaled(self, factor: float) -> SparseMap:
        """The map of factor² k."""
        return SparseMap(self.names, factor * self.matrix, lambda rows: factor * self.of_rows(rows))

    def divided(self, norms: Callable[[Rows], Array], here: Array) -> SparseMap:
        """The map of k(x, z) / (norm(x) norm(z)); `here` are the norms of the rows it was made from."""

        def quotient(A: Matrix, norm: Array) -> Matrix:
            inverse = np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)
            return sparse.csr_array(A.multiply(inverse[:, None]))

        return SparseMap(
            self.names,
            quotient(self.matrix, here),
            lambda rows: quotient(self.of_rows(rows), norms(rows)),
        )

    def seen_through(self, view: Callable[[Rows], Rows], prefix: str) -> SparseMap:
        """The same map of what a view makes of the rows."""
        names = Names(len(self.names), lambda i: f"{prefix}{self.names[i]}")
        return SparseMap(names, self.matrix, lambda rows: self.of_rows(view(rows)))

    def __str__(self) -> str:
        shown = ", ".join(self.names[:6])
        if self.dimension > 6:
            shown += ", …"
        return f"φ with {self.dimension:,} features ({shown})"

    __repr__ = __str__


def side_by_side(maps: Sequence[SparseMap]) -> SparseMap:
    """The map of a sum: the features of all its terms."""
    sizes = np.array([len(part.names) for part in maps])
    ends = np.cumsum(sizes)

    def name(i: int) -> str:
        which = int(np.searchsorted(ends, i, side="right"))
        start = int(ends[which] - sizes[which])
        return maps[which].names[i - start]

    return SparseMap(
        Names(int(ends[-1]), name),
        sparse.csr_array(sparse.hstack([part.matrix for part in maps])),
        lambda rows: sparse.csr_array(sparse.hstack([part.of_rows(rows) for part in maps])),
    )
