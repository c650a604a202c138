"""A leaf that counts: k(x, z) = Σ_f φ_f(x) φ_f(z), where φ says how much of each feature a thing has.

A subclass gives `count(thing)`: the features of one thing and how much it has of each. Features are anything
hashable. Everything else follows: sparse matrices, native products, diagonal, proof, explicit features.

    x, z  ──counts──>  sparse rows with common columns  ──>  A Bᵀ
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import ClassVar, NoReturn

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import InputTypeError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.things.sparse_map import SparseMap
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.sparse import Matrix
from mercer.typing import Array

INNER_PRODUCT = Fact("inner product of features", "qᵀKq = ‖Σ q_i φ(x_i)‖² ≥ 0")


class Counted(Leaf):
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
    things_are: ClassVar[str] = "things"
    """What one row must be, in words: for errors."""

    # ── must override ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        """The features of one thing, and how much it has of each."""

    # ── may override ────────────────────────────────────────────────────────────────────────────────────────

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        """φ of all things, a row each, with the columns of the vocabulary, which takes new features.

        Faster where it is written for all things at once. `name` is what errors call the sample.
        """
        starts = [0]
        columns: list[int] = []
        values: list[float] = []
        for found in self._counted_one_by_one(things, name):
            for feature, value in found.items():
                column = vocabulary.column(feature)
                if column != ABSENT and value != 0:
                    columns.append(column)
                    values.append(value)
            starts.append(len(columns))
        return sparse_rows(values, columns, starts, len(vocabulary))

    def feature_name(self, feature: Hashable) -> str:
        """A feature as a person would write it."""
        return str(feature)

    def feature_names(self, vocabulary: Vocabulary) -> Sequence[str]:
        """All features as a person would write them; where names are long, each when it is asked for."""
        return [self.feature_name(feature) for feature in vocabulary.features()]

    # ── given ───────────────────────────────────────────────────────────────────────────────────────────────

    def takes_things(self) -> bool:
        return True

    def refuse(self, thing: Thing, i: int, name: str, why: str = "") -> NoReturn:
        """The error of a row that this kernel cannot read."""
        raise unreadable(type(self).__name__, self.things_are, thing, i, name, why)

    def counted(self, x: Rows, z: Rows | None) -> tuple[Matrix, Matrix | None]:
        """φ of one sample, or of two with the same columns."""
        words, A = self._first(x)
        if z is None:
            return A, None
        more = words.extended()
        B = self.counts(z.things, more, z.name)
        # features that only the second sample has are columns of zeros in the first
        wide = sparse.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], B.shape[1]))
        return wide, B

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
        names = self.feature_names(words)

        def of_rows(rows: Rows) -> Matrix:
            return self.counts(rows.things, words.closed(), rows.name)

        return SparseMap(names, A, of_rows)

    def proof(self) -> Proof | None:
        """Whatever is counted, the matrix is one of inner products, unless a class computes another one."""
        above = type(self).__mro__[: type(self).__mro__.index(Counted)]
        if any(name in cls.__dict__ for cls in above for name in ("block", "diagonal", "counted")):
            return None
        return Proof(self, INNER_PRODUCT, (), self._conditions())

    def _first(self, x: Rows) -> tuple[Vocabulary, Matrix]:
        """The vocabulary of one sample and its counts, made once for each sample."""

        def make() -> tuple[Vocabulary, Matrix]:
            words = Vocabulary()
            return words, self.counts(x.things, words, x.name)

        return x.remembered(self.key(), make)

    def _counted_one_by_one(self, things: Sequence[Thing], name: str) -> Iterator[Mapping[Hashable, float]]:
        for i, thing in enumerate(things):
            try:
                yield self.count(thing)
            except (TypeError, AttributeError) as error:
                try:
                    self.refuse(thing, i, name, str(error))
                except InputTypeError as refusal:
                    raise refusal from error


def unreadable(owner: str, things_are: str, thing: Thing, i: int, name: str, why: str) -> InputTypeError:
    """The error of a row that a kernel cannot read."""
    got = "None" if thing is None else f"a {type(thing).__name__}"
    because = f" ({why})" if why else ""
    return InputTypeError(f"{owner} reads {things_are}, but row {i} of {name} is {got}{because}.")


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
