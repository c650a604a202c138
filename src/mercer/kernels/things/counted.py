"""A leaf that counts: k(x, z) = Σ_f φ_f(x) φ_f(z), where φ says how much of each feature a thing has.

A subclass gives `count(thing)`: the features of one thing and how much it has of each. Features are anything
hashable. Everything else follows: sparse matrices, native products, diagonal, proof, explicit features.

    x, z  ──counts──>  sparse rows with common columns  ──>  A Bᵀ
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.placed import Placed
from mercer.kernels.things.sparse_map import SparseMap
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.sparse import Matrix
from mercer.typing import Array

INNER_PRODUCT = Fact("inner product of features", "qᵀKq = ‖Σ q_i φ(x_i)‖² ≥ 0")

NO_FEATURE = "(none)"
"""What the one column is called where no thing has any feature."""


class Counted(OnThings):
    """A kernel of things by what they have in common.

    >>> from mercer import leaf
    >>> @leaf
    ... class Letters(Counted):
    ...     def count(self, thing):
    ...         return {letter: thing.count(letter) for letter in thing}
    >>> Letters()(["abba", "bar"])                    # 2·2 + 2·2;  2·1 + 2·1;  1 + 1 + 1
    array([[8., 4.],
           [4., 3.]])
    >>> Letters().validity().status
    'proved'
    """

    is_family: ClassVar = True

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        """The features of one thing, and how much it has of each."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        """φ of all things, a row each, with the columns of the vocabulary, which takes new features.

        Faster where it is written for all things at once. `name` is what errors call the sample.
        """
        return rows_of_counts(self.each(self.count, things, name), vocabulary)

    def placed(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> list[Placed] | None:
        """φ of each thing, shared out among its letters or nodes; None where features are in no place."""
        return None

    def feature_name(self, feature: Hashable) -> str:
        """A feature as a person would write it."""
        return str(feature)

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        """All features as a person would write them; where names are long, each when it is asked for."""
        return [self.feature_name(feature) for feature in vocabulary.features()]

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def counted(self, x: Rows, z: Rows | None) -> tuple[Matrix, Matrix | None]:
        """φ of one sample, or of two with the same columns.

        Of two, the second is counted once: it is the one that a machine keeps.
        """
        if z is None:
            return self._first(x)[1], None
        words, B = self._first(z)
        A = self.counts(x.things, words.extended(), x.name)
        # features that only the first sample has are columns of zeros in the second
        return A, widened(B, A.shape[1])

    def block(self, x: Rows, z: Rows | None) -> Array:
        A, B = self.counted(x, z)
        right = A if B is None else B
        return np.asarray((A @ right.T).toarray(), dtype=np.float64)

    def diagonal(self, x: Rows) -> Array:
        _, A = self._first(x)
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()

    def program(self, at: Place) -> None:
        if any(p.free for p in self.parameters):
            raise NotLowered(f"{type(self).__name__} has numbers of its own to tune")
        at.step("DOT", at.showing(*self.counted(at.x, at.z)).view())

    def sparse_map(self, x: Rows) -> SparseMap:
        words, A = self._first(x)
        # things without any feature have one column of zeros
        names = self.feature_names(words) if len(words) else [NO_FEATURE]
        return SparseMap(names, A, partial(self._in_words, words), partial(self._places_in_words, words))

    def _in_words(self, words: Vocabulary, rows: Rows) -> Matrix:
        """The counts of these features alone."""
        return self.counts(rows.things, words.closed(), rows.name)

    def _places_in_words(self, words: Vocabulary, rows: Rows) -> list[Placed] | None:
        """Where these features alone are."""
        return self.placed(rows.things, words.closed(), rows.name)

    def proof(self) -> Proof | None:
        """Whatever is counted, the matrix is one of inner products, unless a class computes another one."""
        above = type(self).__mro__[: type(self).__mro__.index(Counted)]
        if any(name in cls.__dict__ for cls in above for name in ("block", "diagonal", "counted")):
            return None
        return Proof(self, INNER_PRODUCT, in_domains=True)

    def _first(self, x: Rows) -> tuple[Vocabulary, Matrix]:
        """The vocabulary of one sample and its counts, made once for each sample."""

        def make() -> tuple[Vocabulary, Matrix]:
            words = Vocabulary()
            return words, self.counts(x.things, words, x.name)

        return x.remembered(self, make)


def rows_of_counts(counts: Iterable[Mapping[Hashable, float]], vocabulary: Vocabulary) -> Matrix:
    """A sparse row for each of these counts; features that a closed vocabulary lacks are left out."""
    starts = [0]
    columns: list[int] = []
    values: list[float] = []
    for found in counts:
        for feature, value in found.items():
            column = vocabulary.column(feature)
            if column != ABSENT and value != 0:
                columns.append(column)
                values.append(value)
        starts.append(len(columns))
    return sparse_rows(values, columns, starts, len(vocabulary))


def widened(A: Matrix, width: int) -> Matrix:
    """The same rows with more columns, all 0."""
    return sparse.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], width))


def sparse_rows(values: object, columns: object, starts: object, width: int) -> Matrix:
    """A CSR matrix with sorted columns, each once, from its parts."""
    A = sparse.csr_array(
        (
            np.asarray(values, dtype=np.float64),
            np.asarray(columns, dtype=np.int64),
            np.asarray(starts, dtype=np.int64),
        ),
        shape=(len(starts) - 1, max(width, 1)),  # type: ignore[arg-type]
    )
    A.sum_duplicates()
    return A
