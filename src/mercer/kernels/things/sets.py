"""Kernels of sets and of amounts: what two have in common, over what either has.

    Jaccard    |x ∩ z| / |x ∪ z|              sets of anything
    MinMax     Σ min(x_j, z_j) / Σ max(...)   counts, and rows of numbers ≥ 0; Tanimoto

A row is a set, a dictionary of amounts, a list of words (each counts once, or as often as it is there), or a
row of numbers ≥ 0, an amount for each column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import DomainError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.things.counted import rows_of_counts, widened
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.params import is_real
from mercer.sparse import Matrix
from mercer.typing import Array
from mercer.vectors import require_nonnegative


class Overlap(OnThings):
    """What two rows have in common, over what either of them has; two rows that have nothing are the same."""

    is_family: ClassVar = True
    things_are: ClassVar = "sets, dictionaries of amounts, lists of words or rows of numbers >= 0"

    def shared(self, A: Matrix, B: Matrix) -> Array:
        """What every row of A has in common with every row of B."""
        return shared_amounts(A, B)

    def weighed(self, A: Matrix) -> Matrix:
        """How much each feature counts."""
        return A

    def compare_columns(self, x: Rows, z: Rows) -> None:
        if _is_numeric(x) and _is_numeric(z):
            z.require_columns_of(x)

    def block(self, x: Rows, z: Rows | None) -> Array:
        A, B = self.amounts(x, z)
        common = self.shared(A, B)
        either = (_totals(A)[:, None] + _totals(B)[None, :]) - common
        return np.divide(common, either, out=np.ones_like(common), where=either > 0)

    def diagonal(self, x: Rows) -> Array:
        self.amounts(x, None)
        return np.ones(len(x))

    def amounts(self, x: Rows, z: Rows | None) -> tuple[Matrix, Matrix]:
        """How much there is of what, a sparse row each, with the same columns for both samples."""
        features = Vocabulary()
        A = self.weighed(self._read(x, features))
        if z is None:
            return A, A
        B = self.weighed(self._read(z, features))
        return widened(A, B.shape[1]), B

    def _read(self, x: Rows, features: Vocabulary) -> Matrix:
        if not _is_numeric(x):
            rows = self.each(amounts_of, x.things, x.name)
            return rows_of_counts((_checked(row, i, x) for i, row in enumerate(rows)), features)
        X = sparse.csr_array(x.vectors, dtype=np.float64)
        require_nonnegative(X, type(self).__name__, x.name)
        at = features.columns(("column", j) for j in range(X.shape[1]))
        return sparse.csr_array((X.data, at[X.indices], X.indptr), shape=(X.shape[0], len(features)))


@leaf
class Jaccard(Overlap):
    """The share of their elements that two sets have in common (Tanimoto).

        k(x, z) = |x ∩ z| / |x ∪ z|

    Two empty sets are the same, and get 1. Of a row of numbers, the columns above 0 are the set.

    >>> Jaccard()([{"a", "b"}, {"b", "c", "d"}, set()])                  # one of four
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    because: ClassVar = Fact(
        "average of kernels",
        "put all elements in a random order: |x ∩ z| / |x ∪ z| is the probability that x and z have the same "
        "first element, and [first of x = first of z] is an inner product of indicators",
    )
    formula: ClassVar = r"\frac{|x\cap z|}{|x\cup z|}"

    def weighed(self, A: Matrix) -> Matrix:
        return sparse.csr_array((np.ones(len(A.data)), A.indices, A.indptr), shape=A.shape)

    def shared(self, A: Matrix, B: Matrix) -> Array:
        return np.asarray((A @ B.T).toarray(), dtype=np.float64)


@leaf
class MinMax(Overlap):
    """The share of their amounts that two things have in common: Tanimoto of counts, Ruzicka.

        k(x, z) = Σ_j min(x_j, z_j) / Σ_j max(x_j, z_j),   x_j, z_j ≥ 0

    Two rows that have nothing at all are the same, and get 1.

    >>> MinMax()([{"a": 2, "b": 1}, {"a": 1, "c": 1}])                   # 1 of 2 + 1 + 1
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    >>> MinMax()([[2.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """

    because: ClassVar = Fact(
        "average of kernels",
        "it is the Jaccard kernel of the sets {(j, t): 0 < t ≤ x_j}, measured by their lengths: the limit of "
        "those of finite sets, as the steps of t become fine",
    )
    formula: ClassVar = r"\frac{\sum_j \min(x_j, z_j)}{\sum_j \max(x_j, z_j)}"


def amounts_of(thing: Thing) -> Mapping[Hashable, float]:
    """What one thing has, and how much of it."""
    if isinstance(thing, Mapping):
        return thing
    if isinstance(thing, set | frozenset):
        return dict.fromkeys(thing, 1.0)
    if isinstance(thing, np.ndarray) and thing.ndim == 1:
        thing = thing.tolist()
    if not isinstance(thing, Sequence) or isinstance(thing, str | bytes):
        raise TypeError("text is taken apart first, for example by str.split, and a set stands in {}")
    if any(is_real(value) for value in thing):
        return {("column", j): value for j, value in enumerate(thing)}
    return Counter(thing)


def shared_amounts(A: Matrix, B: Matrix) -> Array:
    """Σ_j min(a_j, b_j) of every pair of rows, a column at a time."""
    out = np.zeros((A.shape[0], B.shape[0]))
    left = sparse.csc_array(A)
    right = sparse.csc_array(B)
    for j in range(A.shape[1]):
        here = slice(left.indptr[j], left.indptr[j + 1])
        there = slice(right.indptr[j], right.indptr[j + 1])
        if here.start < here.stop and there.start < there.stop:
            where = np.ix_(left.indices[here], right.indices[there])
            out[where] += np.minimum.outer(left.data[here], right.data[there])
    return out


def _checked(row: Mapping[Hashable, float], i: int, x: Rows) -> Mapping[Hashable, float]:
    for feature, value in row.items():
        if not is_real(value) or not 0 <= value < np.inf:
            raise DomainError(
                f"amounts are numbers >= 0, but row {i} of {x.name} has {value!r} of {feature!r}."
            )
    return row


def _totals(A: Matrix) -> Array:
    return np.asarray(A.sum(axis=1), dtype=np.float64).ravel()


def _is_numeric(x: Rows) -> bool:
    """Whether the rows are a table of numbers."""
    if sparse.issparse(x.data):
        return True
    return isinstance(x.data, np.ndarray) and x.data.ndim == 2 and x.data.dtype.kind in "fiub"
