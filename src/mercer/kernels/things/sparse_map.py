"""The features of some rows as a sparse matrix with names, where a kernel is their inner product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.sparse import Matrix
from mercer.typing import Array, Table


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
        names = [f"{prefix}{name}" for name in self.names]
        return SparseMap(names, self.matrix, lambda rows: self.of_rows(view(rows)))

    def __str__(self) -> str:
        shown = ", ".join(self.names[:6])
        if self.dimension > 6:
            shown += ", …"
        return f"φ with {self.dimension:,} features ({shown})"

    __repr__ = __str__


def side_by_side(maps: Sequence[SparseMap]) -> SparseMap:
    """The map of a sum: the features of all its terms."""
    return SparseMap(
        [name for part in maps for name in part.names],
        sparse.csr_array(sparse.hstack([part.matrix for part in maps])),
        lambda rows: sparse.csr_array(sparse.hstack([part.of_rows(rows) for part in maps])),
    )
